//! Statements that go on from each other: what both databases share of telling them from issues of
//! one statement.
//!
//! Pages of a statement have its id and its number, and some banks call all statements of a day
//! the same. What a bank sends again, corrected, begins with the balance that it began with. One
//! that begins with the balance that another of its name ended with goes on from that: it replaces
//! nothing, and stands beside it under its id and the balance that it goes on from. Balances show
//! it only where both statements tie by them. Where nothing shows it, the statement is held.

use chrono::NaiveDate;

use crate::model::money::Money;
use crate::model::settlement::{Finality, PAGE_FROM, page_from};
use crate::store::files::{Ended, StatementRow, clean, currency_of};

/// A statement whose balances say where it stands in its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Own {
    /// Its file.
    pub file: i64,
    /// Statements of its file before this number that are held are there as well: who lets one
    /// count lets all, in their order. 0: they are not.
    pub below: i64,
    /// The PSP account.
    pub account: String,
    /// As the file writes it.
    pub bank_account: String,
    /// Its currency.
    pub currency: String,
    /// The bank's id of it.
    pub id: String,
    /// Its number in the account's sequence.
    pub sequence: String,
    /// First day of its period.
    pub from: Option<NaiveDate>,
    /// Last day of it.
    pub to: Option<NaiveDate>,
    /// Balance before.
    pub opening: Money,
    /// Balance after.
    pub closing_minor: i64,
}

/// Another statement of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Fellow {
    /// Under which id it stands.
    pub id: String,
    /// Balance before.
    pub opening_minor: i64,
    /// Balance after.
    pub closing_minor: i64,
    /// It counts.
    pub is_live: bool,
}

/// A statement that is held, and the id by which its earlier issues are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Issue {
    /// Its file.
    pub file: i64,
    /// Its place in the file.
    pub number: i64,
    /// The id.
    pub id: String,
}

impl Own {
    /// Of a statement that ended; none where its balances say nothing.
    pub fn of(file: i64, ended: &Ended) -> Option<Self> {
        let Ended { head, close } = ended;
        let is_sure = head.finality == Finality::Final && close.ties == Some(true);
        let opening = Money::new(close.opening_minor?, close.currency?);
        is_sure.then_some(Self {
            file,
            below: 0,
            account: head.account.clone(),
            bank_account: clean(&head.bank_account).into_owned(),
            currency: opening.currency.code().to_owned(),
            id: clean(&head.statement_id).into_owned(),
            sequence: clean(&head.sequence).into_owned(),
            from: close.from,
            to: close.to,
            opening,
            closing_minor: close.closing_minor?,
        })
    }

    /// Of one that is kept.
    pub fn of_row(file: i64, row: &StatementRow) -> Option<Self> {
        let is_sure = row.finality == Finality::Final && row.ties == Some(true);
        let opening = Money::new(row.opening_minor?, currency_of(&row.currency)?);
        is_sure.then_some(Self {
            file,
            below: row.number,
            account: row.account.clone(),
            bank_account: row.bank_account.clone(),
            currency: row.currency.clone(),
            id: row.statement_id.clone(),
            sequence: row.sequence.clone(),
            from: row.from,
            to: row.to,
            opening,
            closing_minor: row.closing_minor?,
        })
    }

    fn beside(&self, page: &str) -> String {
        if self.id.is_empty() { page.to_owned() } else { format!("{} {page}", self.id) }
    }

    /// What the ids of all that stand beside it begin with.
    pub fn start(&self) -> String {
        self.beside(PAGE_FROM)
    }

    /// Under which id it stands among these: that of the one that it is another issue of; its own
    /// and its balance where it goes on from one of them, or one from it; else its own.
    pub fn id_among(&self, fellows: &[Fellow]) -> String {
        let opening = self.opening.minor;
        let mut counting = fellows.iter().filter(|fellow| fellow.is_live);
        if let Some(issue) = counting.find(|fellow| fellow.opening_minor == opening) {
            return issue.id.clone();
        }
        let goes_on = |fellow: &Fellow| {
            fellow.closing_minor == opening || fellow.opening_minor == self.closing_minor
        };
        if fellows.iter().any(goes_on) {
            return self.beside(&page_from(self.opening));
        }
        self.id.clone()
    }
}

/// The statements of the same name as one of a bank's: id, balances, and whether it counts. The
/// parameters are the fields of [`Own`] up to the sequence but for the id, then its days, its id
/// and what the ids beside it begin with. `is`: equal, also where both are null.
pub(in crate::store) fn fellows(is: &str) -> String {
    format!(
        "select s.statement_id, s.opening_minor, s.closing_minor, s.state = 'live' \
         from tieout_statements s join tieout_files f on f.id = s.file_id \
         join tieout_files g on g.id = $1 and g.format = f.format \
         where (s.state = 'live' or (s.state = 'held' and s.file_id = $1 and s.number < $2)) \
         and s.account = $3 and s.bank_account = $4 and s.currency = $5 and s.sequence = $6 \
         and s.from_on {is} $7 and s.to_on {is} $8 \
         and (s.statement_id = $9 or substr(s.statement_id, 1, length($10)) = $10) \
         and (s.statement_id <> '' or s.sequence <> '') and s.finality = 'final' and s.ties \
         and s.opening_minor is not null and s.closing_minor is not null \
         and f.format in ('camt.053', 'mt940') order by s.file_id, s.number"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;

    fn own(opening: i64, closing: i64) -> Own {
        let euro = Currency::parse("EUR").unwrap();
        Own {
            file: 2,
            below: 0,
            account: "bank".to_owned(),
            bank_account: "DE02".to_owned(),
            currency: "EUR".to_owned(),
            id: "S9".to_owned(),
            sequence: String::new(),
            from: None,
            to: None,
            opening: Money::new(opening, euro),
            closing_minor: closing,
        }
    }

    fn fellow(id: &str, opening_minor: i64, closing_minor: i64) -> Fellow {
        Fellow { id: id.to_owned(), opening_minor, closing_minor, is_live: true }
    }

    #[test]
    fn what_goes_on_from_another_stands_beside_it() {
        let first = [fellow("S9", 0, 6_000)];
        assert_eq!(own(6_000, 13_000).id_among(&first), "S9 page from 60.00 EUR");
        assert_eq!(own(-500, 0).id_among(&first), "S9 page from -5.00 EUR", "it came before");
        assert_eq!(own(6_000, 6_000).id_among(&first), "S9 page from 60.00 EUR");
        let unnamed = Own { id: String::new(), ..own(6_000, 13_000) };
        assert_eq!(unnamed.id_among(&first), "page from 60.00 EUR");
        assert_eq!([own(0, 1).start(), unnamed.start()], ["S9 page from ", PAGE_FROM]);
        // Who lets a file count lets the one before it in first.
        let held = Fellow { is_live: false, ..fellow("S9", 6_000, 13_000) };
        let both = [fellow("S9", 0, 6_000), held];
        assert_eq!(own(13_000, 21_000).id_among(&both), "S9 page from 130.00 EUR");
        assert_eq!(own(6_000, 13_001).id_among(&both), "S9 page from 60.00 EUR");
    }

    #[test]
    fn what_begins_as_another_did_is_another_issue_of_it() {
        let both = [fellow("S9", 0, 6_000), fellow("S9 page from 60.00 EUR", 6_000, 13_000)];
        for closing in [6_000, 5_000, 0, 13_000] {
            assert_eq!(own(0, closing).id_among(&both), "S9", "{closing}");
        }
        for closing in [13_000, 13_001, 6_000] {
            let issue = own(6_000, closing).id_among(&both);
            assert_eq!(issue, "S9 page from 60.00 EUR", "{closing}");
        }
        // Nothing shows that it goes on.
        assert_eq!(own(7_000, 8_000).id_among(&both), "S9");
        assert_eq!(own(7_000, 8_000).id_among(&[]), "S9");
    }
}
