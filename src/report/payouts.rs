//! `payouts.csv`: gross − fees − refunds − chargebacks ± adjustments = what the PSP paid out = what
//! the bank booked, each payout to the cent and in its own currency.

use crate::report::cells::Cell;
use crate::report::facts::Facts;
use crate::report::lines::signed;
use crate::store::files::StoredLine;
use crate::store::payouts::Payout;

/// A line of the file; `bank`: the booking that this run matched.
pub fn cells(payout: &Payout, bank: Option<&StoredLine>, facts: &Facts) -> Vec<Cell> {
    let code = &payout.key.currency;
    let net = payout.net();
    let state = match (bank, payout.adds_up()) {
        (_, false) => "differs",
        (Some(_), true) => "explained",
        (None, true) if payout.paid.is_none() => "open",
        (None, true) => "unbooked",
    };
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
    for minor in
        [payout.gross, payout.fees, payout.refunds, payout.chargebacks, payout.adjustments, net]
    {
        put(Some(minor));
    }
    put(payout.paid);
    put(payout.paid.map(|paid| paid.saturating_sub(net)));
    cells.push(Cell::text_of(bank.map(|line| line.account.as_str())));
    let booked = bank.map(signed);
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
    ]);
    cells
}
