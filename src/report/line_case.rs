//! The case of a line that no row has: the line as its file has it, and what ends the case.

use crate::model::reason::Reason;
use crate::model::settlement::TagKind;
use crate::store::error::StoreError;
use crate::store::files::{FileDriver, LinePlace, StoredLine};
use crate::store::records::CaseRow;

/// The line that a case is about; none of any other case, and where its file is not kept any more.
pub async fn line_of(
    files: &impl FileDriver,
    case: &CaseRow,
) -> Result<Option<StoredLine>, StoreError> {
    let place = case.subject.split_once(':').filter(|_| case.subject_kind == "line");
    let place = place.and_then(|(file, at)| Some((file.parse().ok()?, at.parse::<i64>().ok()?)));
    let Some((file, position)) = place else { return Ok(None) };
    let before = LinePlace { file, position: position.saturating_sub(1) };
    let lines = files.lines_of_file(before, 1).await?;
    Ok(lines.into_iter().find(|line| line.place.position == position))
}

/// What its file says of it, a fact each.
pub fn facts(line: &StoredLine) -> Vec<String> {
    let way = line.booked_way().said();
    let money = line.gross.or(line.amount);
    let amount = money.map_or_else(|| "no amount".to_owned(), |money| money.to_string());
    let kind = line.kind.as_str().replace('_', " ");
    let day = |label: &str, day: Option<chrono::NaiveDate>| day.map(|day| format!("{label} {day}"));
    let days = [day("booked", line.booked_on), day("value", line.value_on)];
    let days: Vec<String> = days.into_iter().flatten().collect();
    let mut facts = vec![
        format!("line {} of {} (file {}), {kind}", line.file_line, line.file_name, line.place.file),
        [vec![format!("{amount} {way}")], days].concat().join(", "),
    ];
    let after = line.amount.filter(|net| Some(*net) != money);
    facts.extend(after.map(|net| format!("{net} after fees")));
    let named = |label: &str, text: Option<&String>| text.map(|text| format!("{label} {text}"));
    facts.extend(named("tag", line.tag.as_ref()));
    facts.extend(named("at the PSP", line.psp_reference.as_ref()));
    facts.extend(named("of the payment", line.original.as_ref()));
    facts.extend(named("returned for", line.return_reason.as_ref()));
    let is_told = |text: &String| line.tag.as_ref() == Some(text);
    let refs = line.refs.iter().filter(|tag| tag.kind == TagKind::Text || !is_told(&tag.text));
    facts.extend(refs.map(|tag| format!("{} {}", tag.kind.as_str().replace('_', " "), tag.text)));
    facts
}

/// What the case of a bank's line says that is not as a PSP paid out, before the payout's name.
pub const NOT_THE_BOOKING: &str = "it is not the one booking of payout";

/// What the case of a line says that was a payout's booking until a correction took it out.
pub const WAS_THE_BOOKING: &str = "was the booking of payout";

/// What ends it, for the person who reads it; where that is nothing else, it is left as it is.
pub fn advice(case: &CaseRow) -> &'static str {
    if case.text.contains(NOT_THE_BOOKING) {
        return "find out which of both is right. Where a file of the PSP or of the bank is missing \
                or was mended, bring it in: the next run holds them against each other, and the \
                case closes by itself once the line is the payout's one booking. Where the \
                difference is known, leave it as it is";
    }
    if case.text.contains(WAS_THE_BOOKING) {
        return "ask the bank where the payout is. Where another booking of it comes, the next run \
                matches it. Once that is looked into, leave this as it is";
    }
    match case.reason {
        Reason::TagUnusable => {
            "give just one of the rows the tag or reference that the line has: the next run \
             matches it, and the case closes by itself. Where none of them is meant, leave it as \
             it is"
        }
        Reason::Returned => {
            "find out what it took back or gave back. Where the shop's refund is missing, write \
             it: the next run matches it, and the case closes by itself. Where it is no row's of \
             these tables, leave it as it is"
        }
        _unknown => {
            "find out whose money it is. Where the shop's row is missing or has another tag, write \
             or mend it: the next run matches it, and the case closes by itself. Where it is no \
             payment of these tables, leave it as it is"
        }
    }
}
