//! `payouts.csv`: gross − fees − refunds − chargebacks ± adjustments = what the PSP paid out = what
//! the bank booked, each payout to the cent and in its own currency.

use crate::model::reason::Reason;
use crate::model::settlement::LineKind;
use crate::model::time::Instant;
use crate::report::cells::Cell;
use crate::report::facts::Facts;
use crate::report::lines::{self, signed};
use crate::store::files::{LineOfRun, StoredLine};
use crate::store::payouts::{Booking, Payout, PayoutKey};

/// The first of the bank's lines that were matched to the payout by then.
pub fn booked<'a>(payout: &Payout, found: &'a [Booking], until: Instant) -> Option<&'a StoredLine> {
    let mut own = found.iter().filter(|one| is_matched(one, until) && is_own(payout, one));
    own.next().map(|one| &one.line)
}

fn is_matched(one: &Booking, until: Instant) -> bool {
    one.matched_at.is_some_and(|at| at <= until)
}

fn is_own(payout: &Payout, one: &Booking) -> bool {
    PayoutKey::of_booking(&one.line).is_some_and(|key| key.is_one_payout(&payout.key))
}

/// The first of the bank's lines that name a payout and that no run had matched by then, where they
/// are not its one booking. Where the payout was booked, what the bank took back of it, or booked
/// once more; under its id in another currency it is another payout.
pub fn beside<'a>(payout: &Payout, found: &'a [Booking], until: Instant) -> Option<&'a StoredLine> {
    let is_matched = |one: &Booking| is_matched(one, until);
    let mut own = found.iter().filter(|one| is_matched(one) && is_own(payout, one)).peekable();
    if let Some(first) = own.peek().copied() {
        // What it is made of changed since.
        if is_otherwise(payout, own.map(|one| &one.line)) {
            return Some(&first.line);
        }
        let is_more = |one: &&Booking| {
            let is_again = !is_matched(one) && one.line.currency.code() == payout.key.currency;
            one.line.kind == LineKind::Return || is_again
        };
        return found.iter().find(is_more).map(|one| &one.line);
    }
    let mut open = found.iter().filter(|one| !is_matched(one)).map(|one| &one.line);
    let line = open.next()?;
    let is_own = line.currency.code() == payout.key.currency;
    let is_its = is_own && payout.booked_as() == Some(signed(line)) && open.next().is_none();
    (!is_its).then_some(line)
}

/// Whether what the bank booked as a payout is not what it comes to by now.
pub fn is_otherwise<'a>(payout: &Payout, own: impl Iterator<Item = &'a StoredLine>) -> bool {
    let booked = own.fold(0_i128, |sum, line| sum.saturating_add(signed(line)));
    payout.booked_as().is_some_and(|comes_to| comes_to != booked)
}

/// What a line that no row has may name a payout by, where it is said not to be as that was paid.
pub fn names_of(own: &LineOfRun) -> Vec<String> {
    let line = &own.line;
    let is_such = matches!(
        lines::noted_reason(own),
        Reason::AmountMismatch
            | Reason::CurrencyMismatch
            | Reason::DuplicateCapture
            | Reason::Returned
            | Reason::TagUnusable
    );
    if !is_such || !matches!(line.kind, LineKind::Movement | LineKind::Return) {
        return Vec::new();
    }
    let own = [&line.tag, &line.psp_reference, &line.original].into_iter().flatten();
    let refs = line.refs.iter().map(|tag| &tag.text);
    own.chain(&line.further).chain(refs).cloned().collect()
}

/// The payout's state and its line of the file; `bank`: the booking that was matched; `beside`: a
/// line of the bank's that names the payout and is not its booking.
pub fn cells(
    payout: &Payout,
    bank: Option<&StoredLine>,
    beside: Option<&StoredLine>,
    facts: &Facts,
) -> (&'static str, Vec<Cell>) {
    let code = &payout.key.currency;
    let net = payout.net();
    let state = match (bank, beside, payout.adds_up()) {
        (_, _, false) | (_, Some(_), true) => "differs",
        (Some(_), None, true) => "explained",
        (None, None, true) if payout.paid.is_none() => "open",
        (None, None, true) if payout.is_nil() => "explained",
        (None, None, true) => "unbooked",
    };
    let bank = beside.or(bank);
    let mut cells = vec![
        Cell::text(&facts.run.id),
        Cell::text(&payout.key.account),
        Cell::text(&payout.key.payout),
        Cell::word(code),
        Cell::int(payout.lines),
    ];
    let mut put = |minor: Option<i128>| {
        cells.extend(match minor {
            Some(minor) => Cell::sum(code, minor),
            None => [Cell::Null, Cell::Null],
        });
    };
    for minor in [payout.gross, payout.fees, payout.refunds, payout.chargebacks, payout.adjustments]
    {
        // Of a payout that is only listed nobody says what it is made of.
        put(Some(minor).filter(|_| !payout.is_only_listed()));
    }
    put(Some(net));
    put(payout.paid);
    put(payout.paid.map(|paid| paid.saturating_sub(net)));
    cells.push(Cell::text_of(bank.map(|line| line.account.as_str())));
    let booked = bank.filter(|line| line.currency.code() == code).map(signed);
    cells.extend(match booked {
        Some(minor) => Cell::sum(code, minor),
        None => [Cell::Null, Cell::Null],
    });
    let day = bank.and_then(|line| line.booked_on).map(|day| day.to_string());
    let place = bank.map(|line| format!("F{}", line.place));
    cells.extend([
        day.map_or(Cell::Null, |day| Cell::word(&day)),
        place.map_or(Cell::Null, |place| Cell::word(&place)),
        Cell::text_of(bank.and_then(|line| line.bank_reference.as_deref())),
        Cell::word(state),
        Cell::word(&format!("F{}", payout.key.file)),
        Cell::text_of(Some(payout.key.merchant.as_str()).filter(|own| !own.is_empty())),
    ]);
    (state, cells)
}
