//! The payouts that a file tells of, explained to the cent.

use serde_json::json;

use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::cli::page::say;
use crate::model::money::{Currency, decimal_text};
use crate::model::settlement::{Direction, LineKind};
use crate::report::payouts::is_otherwise;
use crate::store::database::Database;
use crate::store::files::{FileRow, LineState, StoredLine};
use crate::store::payouts::{Payout, PayoutDriver, PayoutKey};

/// Why a bank's line that names a payout is open once a run held it against the payout.
const COMPARED: [&str; 5] =
    ["amount_mismatch", "currency_mismatch", "tag_unusable", "duplicate_capture", "returned"];

/// Prints each payout of a file.
pub async fn print(file: &FileRow, is_json: bool, db: &Database) -> Result<(), Failure> {
    let found = db.payouts_of_file(file.id, None).await.map_err(|error| Failure::store(&error))?;
    for payout in found {
        // Its bookings by the bank are counted one by one.
        let counted = db.payout(&payout.key, None).await.map_err(|error| Failure::store(&error))?;
        let payout = counted.unwrap_or(payout);
        let beside = beside(&payout, db).await?;
        match is_json {
            true => out::stdout(&line("settlement_payout", body(&payout, &beside))),
            false => rows_beside(&payout, &beside).iter().for_each(|text| say(text)),
        }
    }
    Ok(())
}

/// The bank's lines that name a payout, and that a run found not to be its one booking; and, where
/// it was booked, what the bank took back of it.
async fn beside(payout: &Payout, db: &Database) -> Result<Vec<StoredLine>, Failure> {
    let found = db.payout_bookings(&payout.key, None).await;
    let found = found.map_err(|error| Failure::store(&error))?.into_iter().map(|one| one.line);
    let is_open = |line: &StoredLine| line.state == LineState::Open;
    let was_compared =
        |line: &StoredLine| line.reason.as_deref().is_some_and(|reason| COMPARED.contains(&reason));
    let is_booked = payout.booked > 0;
    let is_own = |line: &&StoredLine| {
        PayoutKey::of_booking(line).is_some_and(|key| key.is_one_payout(&payout.key))
    };
    let found: Vec<StoredLine> = found.collect();
    let is_otherwise = is_booked && is_otherwise(payout, found.iter().filter(is_own));
    let is_other = |line: &StoredLine| match line.kind {
        _its_own if is_own(&line) => is_otherwise,
        LineKind::Return if is_booked => true,
        _movement if is_booked => is_open(line) && line.currency.code() == payout.key.currency,
        _movement => is_open(line) && was_compared(line),
    };
    Ok(found.into_iter().filter(is_other).collect())
}

/// What is known of it, in a word.
fn state(payout: &Payout, beside: &[StoredLine]) -> &'static str {
    match (payout.adds_up(), payout.booked > 0, payout.paid.is_some()) {
        (false, _, _) => "differs",
        (true, ..) if !beside.is_empty() => "differs",
        (true, true, _) => "explained",
        (true, false, true) if payout.is_nil() => "explained",
        (true, false, true) => "unbooked",
        (true, false, false) => "open",
    }
}

/// A payout for people: what it is made of.
pub fn rows(payout: &Payout) -> Vec<String> {
    rows_beside(payout, &[])
}

fn rows_beside(payout: &Payout, beside: &[StoredLine]) -> Vec<String> {
    let code = &payout.key.currency;
    let exponent = Currency::parse(code).map_or(0, |known| known.exponent());
    let text = |minor: i128| decimal_text(minor, exponent);
    let what = match state(payout, beside) {
        "differs" if payout.adds_up() => "the bank's files have it otherwise",
        "differs" => "it does not add up to what was paid out",
        "explained" if payout.booked == 0 => "the bank has nothing to book",
        "explained" => "the bank booked it",
        "unbooked" => "no bank's file has it yet",
        _open => "the file does not say that it was paid out",
    };
    let lead = format!("payout {}: {} {code} of", payout.key.name(), text(payout.net()));
    let mut rows = vec![format!("{lead} {} lines; {what}", payout.lines)];
    let parts = [
        ("gross", payout.gross),
        ("fees", payout.fees),
        ("refunds", payout.refunds),
        ("chargebacks", payout.chargebacks),
        ("adjustments", payout.adjustments),
    ];
    let parts = parts.into_iter().filter(|(_, minor)| *minor != 0);
    rows.extend(parts.map(|(name, minor)| format!("            {name:<12}{:>16}", text(minor))));
    if let Some(paid) = payout.paid {
        rows.push(format!("            {:<12}{:>16}", "paid out", text(paid)));
    }
    rows.extend(beside.iter().map(|line| {
        let amount = line.amount.map_or("an amount".to_owned(), |money| money.to_string());
        let reason = line.reason.as_deref().unwrap_or_default();
        let did = if line.kind == LineKind::Return { "took back" } else { "booked" };
        if line.row.is_some() {
            return format!("            the bank booked {amount} of it, line {}", line.place);
        }
        let is_out = line.booked_way() == Direction::Debit;
        let did = if payout.booked > 0 && is_out { "took back" } else { did };
        let more = if payout.booked > 0 && did == "booked" { " once more" } else { "" };
        format!("            the bank {did} {amount}{more}, line {} ({reason})", line.place)
    }));
    rows
}

fn body(payout: &Payout, beside: &[StoredLine]) -> serde_json::Value {
    // Sums are texts: beyond 64 bits a JSON number loses its digits.
    let text = |minor: i128| minor.to_string();
    json!({
        "file": payout.key.file,
        "account": payout.key.account,
        "payout": payout.key.payout,
        "merchant_account": payout.key.merchant,
        "currency": payout.key.currency,
        "lines": payout.lines,
        "gross_minor": text(payout.gross),
        "fees_minor": text(payout.fees),
        "refunds_minor": text(payout.refunds),
        "chargebacks_minor": text(payout.chargebacks),
        "adjustments_minor": text(payout.adjustments),
        "net_minor": text(payout.net()),
        "paid_minor": payout.paid.map(text),
        "booked": payout.booked,
        "state": state(payout, beside),
    })
}
