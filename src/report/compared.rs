//! `compared.csv`: a window compared whole, as the run that did it kept it.

use crate::model::money::Money;
use crate::report::cells::Cell;
use crate::report::facts::Facts;
use crate::store::compare::Compared;

/// The line of a row, an object or a line of a file.
pub fn cells(one: &Compared, facts: &Facts) -> Vec<Cell> {
    let (table, key) = match &one.row {
        Some((table, key)) => (table.as_str(), key.as_str()),
        None => ("", ""),
    };
    let [local, local_minor] = money(one.local);
    let [psp, psp_minor] = money(one.psp);
    let [file, file_minor] = money(one.file);
    let place = one.line.map(|line| format!("F{line}"));
    vec![
        Cell::text(&facts.run.id),
        Cell::int(one.number),
        Cell::word(one.bucket.as_str()),
        Cell::text(&one.account),
        Cell::text(table),
        Cell::text(key),
        Cell::text(&one.tag),
        Cell::text_of(one.local_status.as_deref()),
        code(one.local),
        local,
        local_minor,
        Cell::text_of(one.psp_reference.as_deref()),
        Cell::text_of(one.psp_status.as_deref()),
        code(one.psp),
        psp,
        psp_minor,
        place.map_or(Cell::Null, |place| Cell::word(&place)),
        code(one.file),
        file,
        file_minor,
        Cell::at(one.at),
        Cell::local(one.at, facts.zone),
        Cell::text(&one.note),
    ]
}

fn code(money: Option<Money>) -> Cell {
    money.map_or(Cell::Null, |money| Cell::word(money.currency.code()))
}

fn money(money: Option<Money>) -> [Cell; 2] {
    match money {
        Some(money) => Cell::sum(money.currency.code(), i128::from(money.minor)),
        None => [Cell::Null, Cell::Null],
    }
}
