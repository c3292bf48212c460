//! Batch bookings: a bank books many payments as one sum, and lists them in a notice of its own.
//!
//! Only all of it counts: every line that notices list under the booking's reference, together to
//! the cent what was booked, or that and the charges that the bank tells of. No part of them is
//! looked for that would fit, and where two bookings or two notices carry the same reference
//! nothing is taken first-come: bookings of one reference are explained all together, to the cent,
//! or not at all. The booking is the batch's then, and its parts decide rows as the lines of its
//! own statement would.
//!
//! A booking that names no payment, and does not say that it stands for several, is taken for such
//! a one only where it alone carries the reference and several lines of notices come to it to the
//! cent. Else it is what it was.

use std::collections::HashMap;

use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::reason::Reason;
use crate::run::books::{Books, Tell};
use crate::run::error::{Doing, RunError};
use crate::run::events::Event;
use crate::run::scene::Scene;
use crate::store::batches::{
    BatchBy, BatchDriver, BatchParts, ExplainedBatch, Says, TABLE, key_of,
};
use crate::store::files::{LinePlace, StoredLine};

/// Bookings that are looked up together.
const AT_ONCE: i64 = 1_000;

/// Bookings that notices say something of, and do not explain: why not.
pub type Refused = HashMap<LinePlace, Reason>;

/// Explains the open batch bookings of an account, before its lines are matched to rows: the
/// parts are among those then. A dry run writes nothing, and its parts do not decide.
pub async fn explain_batches(
    scene: &Scene<'_>,
    account: &str,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<Refused, RunError> {
    let mut refused = Refused::new();
    if scene.options.ids.is_some() {
        return Ok(refused);
    }
    let matched = books.lines.matched;
    let mut after = None;
    loop {
        let batches = scene.db.open_batches(account, Says::Several, after, AT_ONCE).await;
        let batches = batches.doing("reading batch bookings that nothing explains yet")?;
        let Some(last) = batches.last() else { break };
        after = Some(last.place);
        for booking in &batches {
            match explained(scene, booking).await? {
                Some(Ok(batch)) => take(scene, books, &batch, tell).await?,
                Some(Err(reason)) => {
                    refused.insert(booking.place, reason);
                }
                None => {}
            }
        }
    }
    explain_unsaid(scene, account, books, tell).await?;
    let matched = books.lines.matched.saturating_sub(matched);
    if scene.options.dry_run && matched > 0 {
        let bookings = counted(matched, "batch booking", "batch bookings");
        let text = format!(
            "account {account}: a run explains {bookings} first, and decides rows by their parts; \
             a dry run does not, and what it says of those rows may be another"
        );
        books.miss(Exit::Ok, text, tell);
    }
    Ok(refused)
}

/// Explains bookings that do not say that they stand for several payments. They are read whole
/// before one is taken: two of one reference are nobody's.
async fn explain_unsaid(
    scene: &Scene<'_>,
    account: &str,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let mut by_reference: HashMap<String, Vec<StoredLine>> = HashMap::new();
    let mut after = None;
    loop {
        let some = scene.db.open_batches(account, Says::Nothing, after, AT_ONCE).await;
        let some = some.doing("reading bookings that notices may explain")?;
        let Some(last) = some.last() else { break };
        after = Some(last.place);
        for booking in some {
            let reference = booking.bank_reference.clone().unwrap_or_default();
            by_reference.entry(reference).or_default().push(booking);
        }
    }
    let mut sole: Vec<StoredLine> =
        by_reference.into_values().filter(|own| own.len() == 1).flatten().collect();
    sole.sort_unstable_by_key(|booking| booking.place);
    for booking in &sole {
        if let Some(Ok(batch)) = explained(scene, booking).await?
            && batch.lines > 1
            && batch.fellows == 0
        {
            take(scene, books, &batch, tell).await?;
        }
    }
    Ok(())
}

/// What notices make of a booking; none where none of them knows it.
async fn explained(
    scene: &Scene<'_>,
    booking: &StoredLine,
) -> Result<Option<Result<ExplainedBatch, Reason>>, RunError> {
    for by in BatchBy::ALL {
        let parts = scene.db.batch_parts(booking.place, by).await;
        let parts = parts.doing("looking for the payments of a batch booking")?;
        if parts.lines == 0 {
            continue;
        }
        let booked = booking.amount.map(|money| booking.direction.signed(money.minor));
        let charge = booking.fee.filter(|fee| fee.currency == booking.currency);
        let charge = charge.map(|fee| i128::from(fee.minor));
        return Ok(Some(all_of_it(booked, charge, &parts).map(|minor| ExplainedBatch {
            booking: booking.place,
            by,
            lines: parts.lines,
            minor,
            fellows: parts.fellows,
            key: key_of(booking),
        })));
    }
    Ok(None)
}

/// What the batch is worth, where the parts are all of what is booked: by this booking, and by the
/// others of the reference where there are some. What the bank took may stand between the two, to
/// the cent: as the notices tell it, or as the only booking itself does.
fn all_of_it(
    booked: Option<i128>,
    charge: Option<i128>,
    parts: &BatchParts,
) -> Result<i64, Reason> {
    let booked = booked.ok_or(Reason::ReferenceMissing)?;
    let own = charge.filter(|_| parts.rivals == 0).unwrap_or(0);
    let listed =
        [Some(parts.minor), parts.minor.checked_add(parts.charged), parts.minor.checked_sub(own)];
    let all = booked.checked_add(parts.fellow_minor);
    let is_same = all.is_some() && listed.contains(&all);
    if parts.rivals > 0 && (parts.rivals != parts.fellows || !is_same) {
        return Err(Reason::TagUnusable);
    }
    if !is_same {
        return Err(Reason::AmountMismatch);
    }
    if parts.usable != parts.lines {
        return Err(Reason::ReferenceMissing);
    }
    i64::try_from(parts.minor).map_err(|_too_large| Reason::AmountMismatch)
}

async fn take(
    scene: &Scene<'_>,
    books: &mut Books,
    batch: &ExplainedBatch,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if scene.options.dry_run {
        let (table, id) = (TABLE.to_owned(), batch.key.clone());
        books.lines.matched = books.lines.matched.saturating_add(1);
        tell(Event::LineMatched { place: batch.booking, table, id });
        return Ok(());
    }
    let done = scene.db.explain_batch(scene.run_id, batch, scene.clock.now()).await;
    // What another run took meanwhile is that run's, and looked at by it.
    if done.doing("noting what a batch booking is made of")? {
        let bookings = u64::try_from(batch.fellows).unwrap_or(0).saturating_add(1);
        books.lines.looked_at = books.lines.looked_at.saturating_add(bookings);
        books.lines.matched = books.lines.matched.saturating_add(bookings);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_listed_explains_a_booking_or_nothing_does() {
        let parts = BatchParts { lines: 2, usable: 2, minor: 5_000, ..BatchParts::default() };
        let say = |parts| all_of_it(Some(5_000), None, &parts);
        assert_eq!(say(parts), Ok(5_000));
        assert_eq!(all_of_it(None, None, &parts), Err(Reason::ReferenceMissing));
        assert_eq!(say(BatchParts { rivals: 1, ..parts }), Err(Reason::TagUnusable));
        assert_eq!(say(BatchParts { minor: 4_999, ..parts }), Err(Reason::AmountMismatch));
        assert_eq!(say(BatchParts { minor: -5_000, ..parts }), Err(Reason::AmountMismatch));
        assert_eq!(say(BatchParts { usable: 1, ..parts }), Err(Reason::ReferenceMissing));
        // Bookings of one reference are explained all together.
        let two = BatchParts { rivals: 1, fellows: 1, fellow_minor: 700, ..parts };
        assert_eq!(say(BatchParts { minor: 5_700, ..two }), Ok(5_700));
        assert_eq!(say(two), Err(Reason::TagUnusable), "the parts of one of them");
        assert_eq!(say(BatchParts { minor: 5_699, ..two }), Err(Reason::TagUnusable));
        let taken = BatchParts { rivals: 2, minor: 5_700, ..two };
        assert_eq!(say(taken), Err(Reason::TagUnusable), "one of them is something else's");
        let part_of_another = BatchParts { minor: 5_700, usable: 1, ..two };
        assert_eq!(say(part_of_another), Err(Reason::ReferenceMissing));
    }

    #[test]
    fn what_a_bank_took_stands_between_a_booking_and_its_parts_to_the_cent() {
        let parts = BatchParts { lines: 2, usable: 2, minor: 5_100, ..BatchParts::default() };
        let say = |charge, parts| all_of_it(Some(5_000), charge, &parts);
        assert_eq!(say(None, parts), Err(Reason::AmountMismatch), "nobody tells of it");
        assert_eq!(say(Some(100), parts), Ok(5_100), "as the booking tells");
        let noticed = BatchParts { charged: -100, ..parts };
        assert_eq!(say(None, noticed), Ok(5_100), "as the notices tell");
        assert_eq!(say(Some(100), noticed), Ok(5_100), "both tell of the same");
        for off in [99_i128, 101, -100] {
            assert_eq!(say(Some(off), parts), Err(Reason::AmountMismatch), "{off}");
            let noticed = BatchParts { charged: -off, ..parts };
            assert_eq!(say(None, noticed), Err(Reason::AmountMismatch), "{off}");
        }
        // Of money out the bank took more.
        let out = BatchParts { minor: -5_000, charged: -100, ..parts };
        assert_eq!(all_of_it(Some(-5_100), None, &out), Ok(-5_000));
        let untold = BatchParts { charged: 0, ..out };
        assert_eq!(all_of_it(Some(-5_100), Some(100), &untold), Ok(-5_000));
        // Of several bookings of one reference, each may tell of all that was taken.
        let two = BatchParts { rivals: 1, fellows: 1, fellow_minor: 700, minor: 5_800, ..parts };
        assert_eq!(say(Some(100), two), Err(Reason::TagUnusable));
        assert_eq!(say(None, BatchParts { charged: -100, ..two }), Ok(5_800));
    }
}
