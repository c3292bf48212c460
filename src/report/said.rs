//! What a kept line of a settlement file says, in the form in which a decision reads it: the money
//! that moved before fees, in which of its sender's reports, and of which payment.

use std::collections::{HashMap, HashSet};

use crate::decide::settled::{moved_at, moves};
use crate::model::money::Money;
use crate::model::settlement::{Direction, FailedRefund, LineKind, SettledLine, Tag, TagKind};
use crate::model::transaction::Kind;
use crate::settlement::kinds::is_undone_by_mark;
use crate::store::files::StoredLine;

/// Whether a PSP's line of this kind tells of a refund that failed or was reversed.
pub fn is_failed_refund((kind, direction): (LineKind, Direction), is_banks: bool) -> bool {
    !is_banks && (kind, direction) == (LineKind::Return, Direction::Credit)
}

/// The same of a kept line.
pub fn is_failed(line: &StoredLine) -> bool {
    is_failed_refund((line.kind, line.direction), line.psp_reference.is_none())
}

/// What a line moved, without a sign, where it says so.
pub fn moved(line: &StoredLine) -> Option<Money> {
    let money = line.gross.or(line.amount.filter(|_| line.fee.is_none_or(|fee| fee.minor == 0)));
    money.map(|money| Money { minor: money.minor.saturating_abs(), ..money })
}

/// Which of its sender's reports a line stands in: those of one PSP may tell the same payment, each
/// in its own words. Banks' messages of several versions are one.
fn report_of(line: &StoredLine) -> String {
    match line.format.as_str() {
        "stripe" | "braintree" => format!("{} {}", line.format, line.version),
        format => format.to_owned(),
    }
}

/// A kept line as the decision reads it. What moved is compared before fees: a net line is never
/// held against the row's gross.
pub fn settled(line: &StoredLine) -> SettledLine {
    let text = |kind| named(&line.refs, kind).map(str::to_owned);
    // A refund has an id of its own; the payment's, which stands beside it, is another row's.
    let (payment, original, aliases) = if line.kind == LineKind::Refund {
        (own_id(line).map(str::to_owned), given_back(line).map(str::to_owned), Vec::new())
    } else {
        let ids = [text(TagKind::PaymentId), text(TagKind::ChargeId)];
        let aliases = ids.into_iter().flatten().collect();
        (line.psp_reference.clone(), line.original.clone(), aliases)
    };
    SettledLine {
        place: line.place.to_string(),
        format: report_of(line),
        kind: line.kind,
        direction: line.direction,
        money: moved(line),
        decides: line.decides,
        itemised: line.itemised,
        payment,
        original,
        aliases,
        event: event(line).map(str::to_owned),
        failed: failed_refund(line),
        refund_reference: refund_reference(line).map(str::to_owned),
        payout: line.batch.clone(),
        code: line.return_reason.clone().or_else(|| marked(line).map(str::to_owned)),
        word: line.type_code.clone(),
        anothers: None,
        at: moved_at(line.booked_on, line.received_at),
    }
}

/// Formats of banks that mark what undoes a booking.
const MARKING: [&str; 5] = ["camt.052", "camt.053", "camt.054", "mt940", "mt942"];

/// What stands for the code of a booking that a bank undid by a mark.
fn marked(line: &StoredLine) -> Option<&'static str> {
    let (code, reason) = (line.type_code.as_deref(), line.return_reason.as_deref());
    let is_its = MARKING.contains(&line.format.as_str());
    (is_its && is_undone_by_mark(line.kind, code, reason)).then_some("reversal")
}

fn named(refs: &[Tag], kind: TagKind) -> Option<&str> {
    refs.iter().find(|tag| tag.kind == kind).map(|tag| tag.text.as_str())
}

/// The id of a refund itself: what the report calls so, or, where it calls nothing so, the line's
/// id where that is not the payment's.
fn own_id(line: &StoredLine) -> Option<&str> {
    let own = line.psp_reference.as_deref().filter(|id| !is_payments(line, id));
    refund_id(line).or(own)
}

/// What the PSP calls what came back itself; some lines have their payment's ids alone.
fn event(line: &StoredLine) -> Option<&str> {
    if line.kind == LineKind::Refund {
        return own_id(line);
    }
    let names_payment = |id: &&str| line.original.as_deref().is_some_and(|own| own != *id);
    let beside = own_beside(line).filter(names_payment);
    refund_id(line).or_else(|| named(&line.refs, TagKind::DisputeId)).or(beside)
}

/// A line's own id, where the payment is not called so.
fn own_beside(line: &StoredLine) -> Option<&str> {
    let kinds = [TagKind::PaymentId, TagKind::ChargeId];
    let is_called = |id: &str| kinds.iter().any(|kind| named(&line.refs, *kind) == Some(id));
    let own = line.psp_reference.as_deref();
    own.filter(|id| line.original.as_deref() != Some(*id) && !is_called(id))
}

/// Which refund a line says to have failed. Stripe's source and PayPal's reference are what it is
/// of; Adyen numbers each modification, the failure as well.
pub fn failed_refund(line: &StoredLine) -> Option<FailedRefund> {
    let (id, is_sure) = match line.format.as_str() {
        "stripe" => (refund_id(line), true),
        "paypal_stl" | "paypal_trr" => (line.original.as_deref(), true),
        _other => (refund_id(line), false),
    };
    let id = id.filter(|_| is_failed(line))?.to_owned();
    Some(FailedRefund { id, is_sure })
}

/// What the merchant calls the refund that a line is of, or that it says to have failed: Adyen
/// tells it behind the payment's reference, where it is another.
pub fn refund_reference(line: &StoredLine) -> Option<&str> {
    let mut own = line.refs.iter().filter(|tag| tag.kind == TagKind::MerchantReference);
    let is_refunds = line.kind == LineKind::Refund || is_failed(line);
    let is_its = is_refunds && line.format.starts_with("adyen_");
    own.nth(1).map(|tag| tag.text.as_str()).filter(|_| is_its)
}

/// What a report calls the refund that it tells of.
pub fn refund_id(line: &StoredLine) -> Option<&str> {
    named(&line.refs, TagKind::RefundId)
}

/// The id that a refund or a chargeback has of its own, and not of the payment: what undoes it may
/// name that one alone.
pub fn back_id(line: &StoredLine) -> Option<&str> {
    if line.kind == LineKind::Refund {
        return own_id(line);
    }
    own_beside(line).filter(|_| line.kind == LineKind::Chargeback)
}

/// The payment that a refund's line gives back, or a chargeback takes, where it names one.
pub fn given_back(line: &StoredLine) -> Option<&str> {
    let beside = || line.psp_reference.as_deref().filter(|id| own_id(line) != Some(id));
    line.original.as_deref().or_else(beside)
}

/// Whether a refund's line gives back the payment that is called by this id, be it the charge's or
/// the intent's.
pub fn is_given_back(line: &StoredLine, id: &str) -> bool {
    let mut ids = ids_in(line.psp_reference.as_ref(), line.original.as_ref(), &line.refs);
    line.kind == LineKind::Refund && own_id(line) != Some(id) && ids.any(|own| own == id)
}

/// Whether the id that a refund's line is known by is that of the payment.
fn is_payments(line: &StoredLine, id: &str) -> bool {
    let kinds = [TagKind::PaymentId, TagKind::ChargeId];
    match &line.original {
        Some(original) => original == id,
        None => kinds.iter().any(|kind| named(&line.refs, *kind) == Some(id)),
    }
}

/// The ids that a PSP's line gives what it moved, each of which a line of what came back of it may
/// name: a payment's own, its charge's, its intent's; a refund's own.
pub fn ids_of(line: &StoredLine) -> impl Iterator<Item = &str> {
    let is_refund = line.kind == LineKind::Refund;
    let of_payment = ids_in(line.psp_reference.as_ref(), None, &line.refs);
    let own = own_id(line).filter(|_| is_refund);
    own.into_iter().chain(of_payment.filter(move |_| !is_refund))
}

/// The ids by which a PSP's line may name what came back. A bank's names none.
pub fn ids_in<'l>(
    psp_reference: Option<&'l String>,
    original: Option<&'l String>,
    refs: &'l [Tag],
) -> impl Iterator<Item = &'l str> {
    let is_id =
        |tag: &&Tag| matches!(tag.kind, TagKind::PaymentId | TagKind::ChargeId | TagKind::RefundId);
    let refs = refs.iter().filter(is_id).map(|tag| &tag.text);
    let is_psps = psp_reference.is_some();
    let all = psp_reference.into_iter().chain(original).chain(refs);
    all.filter(move |_| is_psps).map(String::as_str)
}

/// Ids that no payment is called by alone: payments under several tags carry them, as those of one
/// order do.
pub fn shared_ids<'l>(lines: impl Iterator<Item = &'l StoredLine>) -> HashSet<String> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut shared = HashSet::new();
    for line in lines.filter(|line| moves(line.kind, line.direction, Kind::Charge)) {
        let Some(tag) = &line.tag else { continue };
        for id in ids_of(line) {
            if *first.entry(id).or_insert(tag) != tag {
                shared.insert(id.to_owned());
            }
        }
    }
    shared
}
