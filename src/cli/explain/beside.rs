//! Lines of settlement files that carry a row's tag or reference and say nothing of it: of the
//! other side, of another row, of several payments. Who looks for the money finds them first.

use crate::decide::settled::{counts, is_anothers, moves, runs_back};
use crate::model::settlement::{Direction, SettledLine};
use crate::model::transaction::{Kind, Transaction};
use crate::report::said::settled;
use crate::store::database::Database;
use crate::store::error::StoreError;
use crate::store::files::{FileDriver, StoredLine};

/// Lines that are shown; `tieout files show FILE --lines` has all.
const SHOWN: usize = 5;

/// Each such line, where it stands, and why the row is not decided by it.
pub(super) async fn lines(
    db: &Database,
    account: &str,
    row: &Transaction,
) -> Result<Vec<String>, StoreError> {
    let tags: Vec<String> = row.tag.usable().map(str::to_owned).into_iter().collect();
    let references: Vec<String> = row.psp_reference.clone().into_iter().collect();
    if tags.is_empty() && references.is_empty() {
        return Ok(Vec::new());
    }
    let found = db.lines_of(account, &tags, &references).await?;
    let said: Vec<SettledLine> = found.iter().map(settled).collect();
    let told = found.iter().zip(&said);
    let mut told: Vec<String> =
        told.filter_map(|(line, its)| Some(words(line, &why(line, (its, &said), row)?))).collect();
    let more = told.len().saturating_sub(SHOWN);
    told.truncate(SHOWN);
    told.extend((more > 0).then(|| format!("… and {more} more")));
    Ok(told)
}

/// What a line is, and in which file.
fn words(line: &StoredLine, why: &str) -> String {
    let money = line.amount.map_or_else(|| "no amount".to_owned(), |money| money.to_string());
    let way = match line.booked_way() {
        Direction::Credit => "in",
        Direction::Debit => "out",
    };
    let day = line.booked_on.map_or_else(String::new, |day| format!(" on {day}"));
    let (file, at, place, kind) = (&line.file_name, line.file_line, line.place, line.kind.as_str());
    format!("{file} line {at} ({place}): {money} {way}{day} ({kind}): {why}")
}

/// Why a line says nothing of a row; none where it does.
fn why(
    line: &StoredLine,
    (its, all): (&SettledLine, &[SettledLine]),
    row: &Transaction,
) -> Option<String> {
    let own = row.kind.as_str();
    match &line.row {
        Some((table, key)) if (table, key) == (&row.key.table, &row.key.id) => return None,
        Some((table, key)) => return Some(format!("it is {table}/{key}'s")),
        None if !line.itemised => return Some("it stands for several payments".to_owned()),
        None => {}
    }
    if is_anothers(line.kind, line.direction, row.kind) {
        return Some(match movers(line) {
            None => format!("it tells nothing of a {own}"),
            Some(others) => format!("that is what {others} moves, and this row is a {own}"),
        });
    }
    let is_back = runs_back(line.kind, line.direction, row.kind) && !counts(its, all, row.kind);
    let others = movers(line).unwrap_or_default();
    is_back.then(|| {
        format!(
            "a {own} moves money the other way, and nothing was booked before that this could \
             have taken back: it is as what {others} moves"
        )
    })
}

/// What kinds of rows move money as a line does.
fn movers(line: &StoredLine) -> Option<String> {
    let kinds = [Kind::Charge, Kind::Refund, Kind::Payout].into_iter();
    let kinds = kinds.filter(|kind| moves(line.kind, line.direction, *kind));
    let kinds: Vec<String> = kinds.map(|kind| format!("a {}", kind.as_str())).collect();
    (!kinds.is_empty()).then(|| kinds.join(" or "))
}
