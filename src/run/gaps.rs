//! Statements that a bank sends one after the other: whether one between two files is lacking.
//!
//! Each begins with the balance that the one before it ended with. Where one begins elsewhere, and
//! none that came ended there, what moved between them is in no file. It may come later, in any
//! order: the case about it is closed then.

use std::collections::HashMap;

use chrono::Days;

use crate::model::time::Instant;
use crate::run::error::{Doing, RunError};
use crate::run::pages::shown;
use crate::store::database::Database;
use crate::store::files::{AbsentCase, FileDriver, Standing};

/// Statements of so many days are held against each other.
const DAYS: u64 = 92;

/// One statement that begins elsewhere than any before it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap<'s> {
    /// The last one before it that came.
    before: &'s Standing,
    /// It.
    after: &'s Standing,
}

impl Gap<'_> {
    fn case(&self, account: &str) -> AbsentCase {
        let Self { before, after } = self;
        let (ended, begins) =
            (before.money(before.closing_minor), after.money(after.opening_minor));
        let (own, its) = (after.called(), before.called());
        AbsentCase {
            source: source_of(account),
            expected: format!("the one before {own}, file {}", after.file),
            account: account.to_owned(),
            text: format!(
                "{own} of {} begins with {begins} (file {}, {}), and {its} ended with {ended} on \
                 {} (file {}, {}): what moved between them is in no file; ask the bank for the \
                 statement between",
                after.bank_account, after.file, after.name, before.to, before.file, before.name
            ),
        }
    }
}

impl Standing {
    /// As the bank calls it, or by its day.
    fn called(&self) -> String {
        let names = [&self.sequence, &self.statement_id].into_iter().find(|name| !name.is_empty());
        names
            .map_or_else(|| format!("the statement to {}", self.to), |id| format!("statement {id}"))
    }

    fn money(&self, minor: i64) -> String {
        shown(minor, &self.currency).unwrap_or_else(|| minor.to_string())
    }

    fn begins_on(&self) -> chrono::NaiveDate {
        self.from.unwrap_or(self.to)
    }
}

/// What stands for a source in the cases of an account's statements.
fn source_of(account: &str) -> String {
    format!("statements of {account}")
}

/// What is lacking between these, which are in the order of their accounts at the bank.
pub fn gaps(told: &[Standing]) -> Vec<Gap<'_>> {
    let is_one =
        |a: &Standing, b: &Standing| a.bank_account == b.bank_account && a.currency == b.currency;
    told.chunk_by(is_one).flat_map(gaps_of).collect()
}

fn gaps_of(told: &[Standing]) -> Vec<Gap<'_>> {
    let mut by_closing: HashMap<i64, Vec<&Standing>> = HashMap::new();
    for one in told {
        by_closing.entry(one.closing_minor).or_default().push(one);
    }
    let goes_on = |own: &Standing| {
        let ended = by_closing.get(&own.opening_minor).into_iter().flatten();
        let mut others = ended.filter(|other| other.place() != own.place());
        others.any(|other| other.to <= own.to)
    };
    let before = |own: &Standing| {
        let is_before = |other: &&Standing| other.to < own.to && other.to <= own.begins_on();
        told.iter().filter(is_before).max_by_key(|other| (other.to, other.place()))
    };
    // A month's statement begins where its first day's does: that one is asked for what is before.
    let is_asked = |own: &Standing| {
        let of = |one: &Standing| (one.begins_on(), one.opening_minor);
        let shorter = |other: &Standing| (other.to, other.place()) < (own.to, own.place());
        told.iter().any(|other| of(other) == of(own) && shorter(other))
    };
    let open = told.iter().filter(|own| !goes_on(own) && !is_asked(own));
    open.filter_map(|after| Some(Gap { before: before(after)?, after })).collect()
}

/// Opens a case for each statement that lacks the one before it, and closes those of statements
/// that are there now. Of those `told`, by bank account and number, it is told that a page
/// lacks before them.
pub(super) async fn note_gaps(
    db: &Database,
    run_id: &str,
    account: &str,
    now: Instant,
    told: &[(String, String)],
) -> Result<(), RunError> {
    let since = now.date_naive().checked_sub_days(Days::new(DAYS)).unwrap_or_default();
    let standings = db.standings(account, since).await.doing("reading how statements follow")?;
    let mut open: Vec<String> = Vec::new();
    let is_told = |gap: &&Gap<'_>| {
        let (account, number) = (&gap.after.bank_account, &gap.after.sequence);
        told.iter().any(|(own, next)| (own, next) == (account, number))
    };
    for gap in gaps(&standings).iter().filter(|gap| !is_told(gap)) {
        let case = gap.case(account);
        tracing::warn!(account, file = gap.after.file, "{}", case.text);
        let put = db.put_absent_case(run_id, &case, now).await;
        put.doing("opening a case about a missing statement")?;
        open.push(case.subject());
    }
    let closed = db.close_absent_cases(run_id, &source_of(account), &open, now).await;
    closed.doing("closing cases about missing statements")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement of so many days of November, and its balances.
    fn one(file: i64, (from, to): (u32, u32), (opening, closing): (i64, i64)) -> Standing {
        let day = |day| chrono::NaiveDate::from_ymd_opt(2026, 11, day).unwrap();
        Standing {
            file,
            number: 1,
            name: format!("s{file}.xml"),
            bank_account: "DE02".to_owned(),
            currency: "EUR".to_owned(),
            statement_id: String::new(),
            sequence: file.to_string(),
            from: Some(day(from)),
            to: day(to),
            opening_minor: opening,
            closing_minor: closing,
        }
    }

    fn files(told: &[Standing]) -> Vec<(i64, i64)> {
        gaps(told).iter().map(|gap| (gap.before.file, gap.after.file)).collect()
    }

    #[test]
    fn a_statement_that_none_before_it_leads_to_lacks_one() {
        let first = one(1, (2, 2), (10_000, 11_000));
        let second = one(2, (3, 3), (11_000, 13_000));
        let third = one(3, (4, 4), (13_000, 12_000));
        assert_eq!(files(&[first.clone(), second.clone(), third.clone()]), []);
        assert_eq!(files(&[first.clone(), third.clone()]), [(1, 3)]);
        assert_eq!(files(std::slice::from_ref(&third)), [], "nothing came before it");
        // An MT940 begins on the day that the one before it ended on.
        let next = one(2, (2, 3), (11_000, 13_000));
        assert_eq!(files(&[first.clone(), next, third.clone()]), []);
        let text = gaps(&[first.clone(), third.clone()])[0].case("bank").text;
        let says = "statement 3 of DE02 begins with 130.00 EUR (file 3, s3.xml), and statement 1 \
                    ended with 110.00 EUR on 2026-11-02 (file 1, s1.xml)";
        assert!(text.starts_with(says), "{text}");
        let other = Standing { bank_account: "DE03".to_owned(), ..third };
        assert_eq!(files(&[first, other]), [], "of another account");
    }

    #[test]
    fn statements_of_one_day_and_of_a_month_go_on_from_any_that_ended_there() {
        let days = [
            one(1, (2, 2), (10_000, 11_000)),
            one(3, (3, 3), (12_000, 13_000)),
            one(2, (3, 3), (11_000, 12_000)),
        ];
        assert_eq!(files(&days), []);
        let month = one(9, (1, 30), (9_000, 13_000));
        assert_eq!(files(&[&days[..], &[month]].concat()), [], "it begins before all of them");
        // Nothing is known of what was before the first day, in one statement or in two.
        let weeks = [one(9, (2, 4), (10_000, 15_000)), one(8, (2, 3), (10_000, 13_000))];
        assert_eq!(files(&[&days[..], &weeks].concat()), []);
        let halves = [one(1, (2, 2), (10_000, 10_500)), one(7, (2, 2), (10_500, 11_000))];
        assert_eq!(files(&[&halves[..], &days[1..], &weeks].concat()), []);
        let lacking = [one(6, (1, 1), (8_000, 9_500))];
        let all = [&lacking[..], &days[..], &weeks].concat();
        assert_eq!(files(&all), [(6, 1)], "asked once");
        // Nothing moved: it leads to itself, and lacks what was before.
        let still = one(4, (5, 5), (14_000, 14_000));
        assert_eq!(files(&[&days[..], &[still]].concat()), [(3, 4)]);
    }
}
