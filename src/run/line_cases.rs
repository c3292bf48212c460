//! Cases of lines that no row has: money that nothing of the shop's explains is for a person.
//!
//! One is opened as a run looks at the line for the second time, on the day after its booking or
//! later; it closes by itself once a row has the line. A bank account sees more than the shop's
//! payments, so that by default only what could be a tag of its rows is somebody's to ask.

use std::collections::HashMap;

use chrono::NaiveDate;

use crate::model::money::Money;
use crate::model::reason::Reason;
use crate::model::settlement::{Direction, LineKind, TagKind};
use crate::psp::settings::LineCases;
use crate::report::line_case::{NOT_THE_BOOKING, WAS_THE_BOOKING};
use crate::run::books::Books;
use crate::run::error::{Doing as _, RunError};
use crate::run::match_lines::is_of;
use crate::run::scene::Scene;
use crate::store::files::{
    FileDriver as _, LEFT, LineCase, LineMark, LinePlace, OpenLine, StoredLine,
};
use crate::store::payouts::PayoutKey;
use crate::store::source_table::{Column, SourceTable, TypeClass};
use crate::store::template::{Piece, Template};

/// A tag that could be read in more ways is of a template that anything fits.
const READINGS: usize = 8;

/// Opens the cases of those of these lines that need one: `marks` says why no row has them, and
/// `misbooked` which payout is not what a line of the bank's says.
pub async fn open(
    scene: &Scene<'_>,
    account: &str,
    lines: &[OpenLine],
    (marks, misbooked): (&[LineMark], &HashMap<LinePlace, PayoutKey>),
    books: &mut Books,
) -> Result<(), RunError> {
    let wanted = scene.accounts.get(account).map(|open| open.setup.settings.line_cases);
    let Some(wanted) = wanted.filter(|wanted| *wanted != LineCases::None) else { return Ok(()) };
    let now = scene.clock.now();
    // PSPs date their lines by UTC, and banks by their own days: over is what is over by both.
    let own = now.with_timezone(&scene.setup.business_timezone).date_naive();
    let today = own.min(now.date_naive());
    let reason_of = |mark: &LineMark| Reason::parse(mark.reason.as_deref()?);
    let open = marks.iter().filter(|mark| mark.row.is_none());
    let reasons: HashMap<LinePlace, Reason> =
        open.filter_map(|mark| Some((mark.place, reason_of(mark)?))).collect();
    let alone = lines.iter().filter_map(|line| Some((line, *reasons.get(&line.place)?)));
    let cases: Vec<LineCase> = alone
        .filter(|(line, reason)| has_waited(line, today) && !is_cased(line, *reason))
        .filter_map(|(line, reason)| match misbooked.get(&line.place) {
            Some(payout) => Some(case_of_payout(account, line, reason, payout)),
            None => case_of(&scene.tables, account, line, reason, wanted),
        })
        .collect();
    if cases.is_empty() {
        return Ok(());
    }
    let opened = scene.db.put_line_cases(scene.run_id, &cases, now).await;
    let opened = opened.doing("opening cases of lines that no row has")?;
    books.lines.cases = books.lines.cases.saturating_add(opened);
    Ok(())
}

/// Opens the cases of lines that were the bookings of payouts until a correction took them out:
/// money that a PSP paid out is not at the bank any more, and no row tells of it.
pub async fn open_gone(scene: &Scene<'_>, books: &mut Books) -> Result<(), RunError> {
    const DOING: &str = "opening cases of bookings that were taken out";
    let gone = scene.db.bookings_gone().await.doing(DOING)?;
    let is_wanted = |line: &StoredLine| {
        let open = scene.accounts.get(&line.account);
        open.is_some_and(|open| open.setup.settings.line_cases != LineCases::None)
    };
    let cases: Vec<LineCase> =
        gone.iter().filter(|line| is_wanted(line)).filter_map(case_of_gone).collect();
    if !cases.is_empty() {
        let opened = scene.db.put_line_cases(scene.run_id, &cases, scene.clock.now()).await;
        books.lines.cases = books.lines.cases.saturating_add(opened.doing(DOING)?);
    }
    Ok(())
}

fn case_of_gone(line: &StoredLine) -> Option<LineCase> {
    let (_, key) = line.row.as_ref()?;
    let payout = PayoutKey::parse(key)?;
    let money = line.gross.or(line.amount);
    let text = format!(
        "{} (line F{}) {WAS_THE_BOOKING} {} of {}, and a correction that counts by now \
         does not have it: `tieout files show {}` says what that comes to",
        moved(money, line.booked_way(), line.booked_on),
        line.place,
        payout.name(),
        payout.account,
        payout.file,
    );
    Some(LineCase {
        place: line.place,
        reason: Reason::LateContradiction,
        text,
        account: line.account.clone(),
        money,
        is_open: false,
    })
}

/// Closes the cases of lines that need nobody any more.
pub async fn close(scene: &Scene<'_>) -> Result<(), RunError> {
    let closed = scene.db.close_line_cases(scene.run_id, scene.clock.now()).await;
    closed.doing("closing cases of lines").map(|_| ())
}

/// Whether an earlier run looked for its row, and the day of its booking, in which that may still
/// be written, is over.
fn has_waited(line: &OpenLine, today: NaiveDate) -> bool {
    line.reason.is_some() && line.booked_on.is_none_or(|day| day < today)
}

/// Whether its case says so already, or a person left it as it is.
fn is_cased(line: &OpenLine, reason: Reason) -> bool {
    line.cased.as_deref().is_some_and(|said| said == LEFT || said == reason.as_str())
}

fn case_of(
    tables: &[SourceTable],
    account: &str,
    line: &OpenLine,
    reason: Reason,
    wanted: LineCases,
) -> Option<LineCase> {
    let could_be = tags_of(line).into_iter().find(|tag| is_of_a_row(tables, account, line, tag));
    let is_wanted = match reason {
        Reason::TagUnusable | Reason::Returned => true,
        Reason::Orphan => could_be.is_some() || wanted == LineCases::All,
        Reason::ReferenceMissing => wanted == LineCases::All,
        _of_a_row => false,
    };
    let named = could_be.or_else(|| tags_of(line).into_iter().next());
    (is_wanted && line.itemised && line.kind != LineKind::Payout).then(|| LineCase {
        place: line.place,
        reason,
        text: text_of(line, reason, named),
        account: account.to_owned(),
        money: line.gross.or(line.amount),
        is_open: line.cased.is_some(),
    })
}

/// Of what a bank booked otherwise than the PSP says that it paid out.
fn case_of_payout(account: &str, line: &OpenLine, reason: Reason, payout: &PayoutKey) -> LineCase {
    let money = line.gross.or(line.amount);
    let text = format!(
        "{} (line F{}), and {NOT_THE_BOOKING} {} of {}: `tieout files show {}` \
         says what that comes to",
        moved(money, line.booked_way(), line.booked_on),
        line.place,
        payout.name(),
        payout.account,
        payout.file,
    );
    let (account, is_open) = (account.to_owned(), line.cased.is_some());
    LineCase { place: line.place, reason, text, account, money, is_open }
}

/// Its texts that could be a row's tag, the likeliest first.
fn tags_of(line: &OpenLine) -> Vec<&str> {
    let is_shops = |kind: TagKind| {
        matches!(
            kind,
            TagKind::EndToEndId | TagKind::MerchantReference | TagKind::CustomerReference
        )
    };
    let refs = line.refs.iter().filter(|tag| is_shops(tag.kind)).map(|tag| &tag.text);
    line.tag.iter().chain(&line.further).chain(refs).map(String::as_str).collect()
}

/// Whether a row of one of the account's tables could have this tag. Whatever a PSP tells was sent
/// by the shop; in a bank's line plain words or digits are anybody's.
fn is_of_a_row(tables: &[SourceTable], account: &str, line: &OpenLine, tag: &str) -> bool {
    let is_banks = matches!(line.kind, LineKind::Movement | LineKind::Return);
    tables.iter().filter(|table| is_of(table, account)).any(|table| {
        let Some(template) = table.tag_template(account) else { return false };
        let columns = template.columns().filter_map(|name| table.cell(name));
        let columns: Vec<&Column> = columns.filter_map(|cell| table.cells.get(cell)).collect();
        // Banks write capitals, and some nothing else.
        let spellings = [tag.to_owned(), tag.to_lowercase(), tag.to_uppercase()];
        let readings = spellings.iter().filter_map(|tag| template.readings(tag, READINGS));
        readings.flatten().any(|values| {
            let fit = columns.iter().zip(&values).all(|(column, text)| fits(&column.class, text));
            fit && (!is_banks || is_telling(template) || values.iter().any(|value| is_uuid(value)))
        })
    })
}

/// Whether the template adds letters or digits of its own.
fn is_telling(template: &Template) -> bool {
    let is_own = |piece: Piece<'_>| match piece {
        Piece::Literal(text) => text.chars().any(char::is_alphanumeric),
        Piece::Column(_) => false,
    };
    template.pieces().any(is_own)
}

/// Whether a column of this class could hold the text.
fn fits(class: &TypeClass, text: &str) -> bool {
    match class {
        TypeClass::Integer => text.parse::<i64>().is_ok(),
        TypeClass::Uuid => is_uuid(text),
        TypeClass::Enum(labels) => labels.iter().any(|label| label == text),
        _other => !text.is_empty(),
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

fn text_of(line: &OpenLine, reason: Reason, named: Option<&str>) -> String {
    let money = line.gross.or(line.amount);
    let net = line.amount.filter(|net| Some(*net) != money);
    let net = net.map(|net| format!(", {net} after fees")).unwrap_or_default();
    let why = match (reason, named) {
        (Reason::TagUnusable, Some(tag)) => format!("several rows could be meant by `{tag}`"),
        (Reason::TagUnusable, None) => "several rows could be meant".to_owned(),
        (Reason::Orphan, Some(tag)) => format!("no row is known by `{tag}`"),
        (Reason::Returned, _) => "the row that it names moves money the other way, or nothing was \
                                  booked before that it could have taken back"
            .to_owned(),
        _unnamed => "it names no row".to_owned(),
    };
    let moved = moved(money, line.booked_way(), line.booked_on);
    format!("{moved} (line F{}{net}), and {why}", line.place)
}

/// `9.85 EUR in on 2026-11-28`.
fn moved(money: Option<Money>, direction: Direction, day: Option<NaiveDate>) -> String {
    let amount = money.map_or_else(|| "money".to_owned(), |money| money.to_string());
    let day = day.map(|day| format!(" on {day}")).unwrap_or_default();
    format!("{amount} {}{day}", direction.said())
}
