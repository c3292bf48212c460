//! The queue as CSV: what `cases list` shows, whole.

use crate::model::money::{Currency, decimal_text};
use crate::model::time::to_text;
use crate::report::cells::would_run;
use crate::store::records::CaseRow;

/// The columns, in their order; new ones are appended.
pub const COLUMNS: [&str; 20] = [
    "case_id",
    "state",
    "subject_kind",
    "table",
    "subject",
    "account",
    "reason",
    "reason_text",
    "currency",
    "amount",
    "amount_minor",
    "rule",
    "policy_version",
    "evidence_sha256",
    "opened_at",
    "last_seen_at",
    "times_seen",
    "owner",
    "closed_at",
    "resolution",
];

/// The first line, without its end.
pub fn header() -> String {
    COLUMNS.join(",")
}

/// The line of a case, without its end.
pub fn line(case: &CaseRow) -> String {
    let currency = Currency::parse(&case.currency).ok();
    let amount =
        currency.map(|currency| decimal_text(i128::from(case.amount_minor), currency.exponent()));
    let texts = [
        format!("C-{}", case.number),
        if case.open { "open" } else { "closed" }.to_owned(),
        case.subject_kind.clone(),
        case.table.clone(),
        case.subject.clone(),
        case.account.clone().unwrap_or_default(),
        case.reason.as_str().to_owned(),
        case.text.clone(),
        case.currency.clone(),
        amount.unwrap_or_default(),
        case.amount_minor.to_string(),
        case.rule.clone().unwrap_or_default(),
        case.policy_version.clone(),
        case.evidence_sha256.clone().unwrap_or_default(),
        to_text(case.opened_at),
        to_text(case.last_seen_at),
        case.times_seen.to_string(),
        case.owner.clone().unwrap_or_default(),
        case.closed_at.map(to_text).unwrap_or_default(),
        case.resolution.clone().unwrap_or_default(),
    ];
    let cells: Vec<String> = texts.iter().map(|text| cell(text)).collect();
    cells.join(",")
}

/// One cell by RFC 4180. A text that a spreadsheet would take for a formula is put in quotes with
/// an apostrophe before it. What steers a terminal is written as JSON escapes it: who looks at the
/// file runs nothing that a PSP or a customer sent.
fn cell(text: &str) -> String {
    let text = plain(text);
    let is_number = text.parse::<i64>().is_ok() || is_decimal(&text);
    let is_formula = would_run(&text) && !is_number;
    let text = if is_formula { format!("'{text}") } else { text };
    match text.contains(['"', ',', '\n']) || is_formula {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// The text without letters that steer: `\u001b` for an escape. A break and a tab stay.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() && !matches!(letter, '\n' | '\t') {
            true => plain.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => plain.push(letter),
        }
    }
    plain
}

/// `-12.50`
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    text.split_once('.').is_some_and(|(whole, part)| digits(whole) && digits(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_no_formula_and_an_amount_stays_one() {
        for (text, want) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "\"'=1+1\""),
            ("-12.50", "-12.50"),
            ("-500", "-500"),
            ("-x", "\"'-x\""),
            (" =1", "\"' =1\""),
            ("\u{feff}@x", "\"'\u{feff}@x\""),
            ("\tx", "\"'\tx\""),
            ("＝1+1", "\"'＝1+1\""),
            ("\u{a0}=1", "\"'\u{a0}=1\""),
            ("\u{3000}－x", "\"'\u{3000}－x\""),
            ("\u{a0}plain", "\u{a0}plain"),
            ("two\nlines", "\"two\nlines\""),
            ("\u{1b}[2Jgone\u{7}", "\\u001b[2Jgone\\u0007"),
            ("a\rb\u{9b}31m\0", "a\\u000db\\u009b31m\\u0000"),
            ("", ""),
        ] {
            assert_eq!(cell(text), want, "{text}");
        }
        assert_eq!(header().split(',').count(), COLUMNS.len());
    }
}
