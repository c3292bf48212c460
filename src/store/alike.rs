//! One statement in two files that call it otherwise: what both databases share of telling it.
//!
//! A bank that sends a statement again may spell its account otherwise, count it as `1` instead of
//! `001`, or give it another id. It is the same where its account and days are, and either its id
//! and number are but for their spelling, or it goes from the same balance to another by the same
//! lines: an account does not do so twice. Such a statement is taken under the earlier one's words,
//! and held as every correction is. Lines that all have the bank's own reference are known by it
//! ([`crate::store::told`]), whatever statement tells them.

use crate::model::settlement::Finality;
use crate::store::files::{Ended, NewStatement, clean};
use crate::store::release::{Dialect, SAME};
use crate::store::told::is_one_account;

/// A live statement of another file of the same format, with the same days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Alike {
    /// Its file and number.
    pub place: (i64, i64),
    /// As the file writes it.
    pub bank_account: String,
    /// The bank's id of it.
    pub statement_id: String,
    /// Its number in the account's sequence.
    pub sequence: String,
    /// It goes from the same balance to the same other one, by as many entries and lines.
    pub has_sums: bool,
}

impl Alike {
    /// A statement under the words of this one.
    pub fn words_for(&self, ended: &Ended) -> Ended {
        let head = NewStatement {
            bank_account: self.bank_account.clone(),
            statement_id: self.statement_id.clone(),
            sequence: self.sequence.clone(),
            ..ended.head.clone()
        };
        Ended { head, close: ended.close.clone() }
    }
}

/// Whether a statement may be another one's under other words.
pub(in crate::store) fn may_be_alike(ended: &Ended) -> bool {
    let Ended { head, close } = ended;
    head.finality == Finality::Final
        && !head.bank_account.is_empty()
        && close.from.is_some()
        && close.to.is_some()
}

/// The live statements that one may be, by the index of periods: [`Alike`]'s fields in their order.
/// $1 to $5 are its file, account, currency, first and last day, $6 to $9 its balances, entries and
/// lines, $10 its id.
pub(in crate::store) fn alike() -> String {
    let sums = "(o.opening_minor = $6 and o.closing_minor = $7 \
                and o.opening_minor <> o.closing_minor and o.entries = $8 and o.lines = $9)";
    format!(
        "select o.file_id, o.number, o.bank_account, o.statement_id, o.sequence, \
         cast(case when {sums} then 1 else 0 end as bigint) \
         from tieout_statements o join tieout_files f on f.id = o.file_id \
         where o.state = 'live' and o.account = $2 and o.currency = $3 and o.from_on = $4 \
         and o.to_on = $5 and o.finality = 'final' and o.file_id <> $1 \
         and (o.statement_id <> '' or o.sequence <> '') \
         and f.format = (select g.format from tieout_files g where g.id = $1) \
         and ({sums} or (o.statement_id <> '' and lower(o.statement_id) = lower($10))) \
         order by o.file_id, o.number"
    )
}

/// 1 where the statement $2 of the file $1 has a line without the bank's own reference, and where
/// $5 is 0 the same lines as the statement $4 of the file $3, which has as many.
pub(in crate::store) fn has_its_lines(dialect: &Dialect) -> String {
    let Dialect { array, as_text, .. } = dialect;
    let told = |file: &str, number: &str| {
        format!(
            "select {array}({SAME}){as_text} as k, count(*) as c from tieout_lines l \
             where l.file_id = {file} and l.statement = {number} group by 1"
        )
    };
    format!(
        "select cast(case when exists (select 1 from tieout_lines l where l.file_id = $1 \
         and l.statement = $2 and l.bank_reference is null \
         and l.refs not like '%\"bank_reference\"%') \
         and ($5 = 1 or not exists ({} except {})) then 1 else 0 end as bigint)",
        told("$1", "$2"),
        told("$3", "$4")
    )
}

/// Of these, those that the statement is by what both call themselves, or may be by its sums; with
/// each, whether its words do. None where one has its words as they are: that is told without us.
pub(in crate::store) fn candidates(ended: &Ended, found: Vec<Alike>) -> Vec<(Alike, bool)> {
    let head = &ended.head;
    let (account, id) = (clean(&head.bank_account), clean(&head.statement_id));
    let sequence = clean(&head.sequence);
    let is_exact = |other: &Alike| {
        other.bank_account == account && other.statement_id == id && other.sequence == sequence
    };
    if found.iter().any(is_exact) {
        return Vec::new();
    }
    let currency = ended.close.currency.map(|currency| currency.code().to_owned());
    let currency = currency.unwrap_or_default();
    let zeros = |text: &str| text.trim_start_matches('0').to_owned();
    let candidate = |other: Alike| {
        let is_named = !id.is_empty()
            && other.statement_id.eq_ignore_ascii_case(&id)
            && zeros(&other.sequence) == zeros(&sequence);
        let is_its = is_one_account(&other.bank_account, &account, &currency);
        (is_its && (is_named || other.has_sums)).then_some((other, is_named))
    };
    found.into_iter().filter_map(candidate).collect()
}
