//! From a table and what was seen in it to a mapping: one choice after the other, each with its
//! reason.

mod amount;
mod filled;
mod filters;
mod near;
mod reference;
mod rest;

use std::collections::BTreeSet;

use crate::config::document::quoted;
use crate::config::init::words::{self, pick};
use crate::config::init::{
    Answers, Choice, OPEN, Proposal, Seen, is_stray, list, literal, tables_below, written_below,
};
use crate::model::count;
use crate::model::money::Currency;
use crate::psp::settings::PspKind;
use crate::store::fit::may_be_tag;
use crate::store::inspect::{Beside, CountedBy, Surveyed};
use crate::store::source_table::{Column, TypeClass};
use crate::store::tellers::{
    ACCOUNTS_MAX, Movement, are_codes, are_ids_at_stripe, coded, flag_in, flags, flags_kinds,
    is_noun, is_of_kinds, is_teller, is_uncoded, kind_word, marks_alone, may_be_on_its_way,
    may_flag_kinds, may_tell_kinds, movement_in, plain, pointers, points_in_some, says_no,
    says_yes, takes_back, tell_accounts, tells_kinds, tells_psps,
};

/// A whole number of this size is milliseconds since 1970, a smaller one seconds.
const MILLIS_FROM: i64 = 100_000_000_000;

/// What follows where nobody says which rows mean one payment.
const NO_SIBLINGS: &str = "without it no row's siblings are known, and mode full hands one back \
    while another of its payment is paid";

/// What to say of an amount in binary floats.
const FLOAT: &str = "; a float, which is read only where it is a whole number of minor units \
    within 1e-6, and else its row goes to a person: whole minor units in an integer column, or \
    PostgreSQL's numeric, are exact";

/// The least whole number that is taken for seconds since 1970: of March 1973.
const SECONDS_FROM: i64 = 100_000_000;

/// The largest count of writes that a version is taken for; what is larger is a date or an id.
const WRITES_MAX: i64 = 1_000_000;

/// What stands behind a target that nobody named.
const BY_WORD: &str = "by its word";

/// What words of targets end with that may as well be of a call on its way.
const DOUBTFUL: [&str; 2] = ["retrying", "confirmed"];

/// Values that are named in a sentence.
const NAMED: usize = 5;

/// Values that are named where one of them was meant.
const NAMED_TO_CHOOSE: usize = 20;

/// What to ask of the columns by which rows may be left out, and of those that paid rows fill, once
/// their values are known.
pub fn questions(
    of: &Surveyed,
    survey: &[Surveyed],
    answers: &Answers,
    seen: &Seen,
) -> Vec<Beside> {
    let choosing = Choosing::new(of, survey, answers, seen);
    let mut questions = choosing.filter_questions();
    for question in choosing.filled_questions().into_iter().chain(choosing.null_questions()) {
        if !questions.iter().any(|known| known.column == question.column) {
            questions.push(question);
        }
    }
    questions
}

/// Proposes a mapping of this table.
pub fn propose(of: &Surveyed, survey: &[Surveyed], answers: &Answers, seen: &Seen) -> Proposal {
    let mut choosing = Choosing::new(of, survey, answers, seen);
    choosing.relations();
    choosing.key_and_tag();
    choosing.natural_key();
    choosing.money();
    choosing.account();
    choosing.filters();
    choosing.kind();
    choosing.taken_back();
    choosing.one_account();
    choosing.status();
    choosing.other_statuses();
    choosing.times();
    choosing.reference();
    choosing.map();
    choosing.sets();
    choosing.histories();
    choosing.unread();
    choosing.proposal
}

struct Choosing<'a> {
    of: &'a Surveyed,
    survey: &'a [Surveyed],
    answers: &'a Answers,
    seen: &'a Seen,
    proposal: Proposal,
}

impl<'a> Choosing<'a> {
    fn new(of: &'a Surveyed, survey: &'a [Surveyed], answers: &'a Answers, seen: &'a Seen) -> Self {
        let short = of.name.rsplit('.').next().unwrap_or(&of.name).trim_matches('"');
        let proposal = Proposal { name: plain(short), ..Proposal::default() };
        Self { of, survey, answers, seen, proposal }
    }

    fn put(&mut self, setting: &'static str, value: impl Into<String>, why: impl Into<String>) {
        self.proposal.lines.push((setting, Choice::new(value, why)));
    }

    fn open(&mut self, setting: &'static str, value: impl Into<String>, why: &str) {
        self.proposal.untold.push(format!("{setting}: {why}"));
        self.proposal.lines.push((setting, Choice::open(value, why)));
    }

    fn untold(&mut self, text: impl Into<String>) {
        self.proposal.untold.push(text.into());
    }

    fn column(&self, name: &str) -> Option<&'a Column> {
        self.of.relation.column(name)
    }

    /// The table that a column points at.
    fn parent_of(&self, column: &Column) -> Option<&'a str> {
        let mut parents = self.of.parents.iter();
        parents.find(|(own, _)| *own == column.name).map(|(_, parent)| parent.as_str())
    }

    /// What somebody named must be a column; a misspelt one is left open rather than ignored.
    fn named(&mut self, setting: &'static str, name: &str) -> Option<&'a Column> {
        let found = self.column(name);
        if found.is_none() {
            let why = format!("{} has no column `{name}`", self.of.name);
            self.open(setting, quoted(OPEN), &why);
        }
        found
    }

    fn key(&self) -> Vec<String> {
        if !self.answers.key.is_empty() {
            let is_kept = !self.has_status(&self.answers.key);
            return if is_kept { self.answers.key.clone() } else { Vec::new() };
        }
        let primary = self.primary();
        if let Some(key) = primary.filter(|key| !self.has_status(key)) {
            return key.clone();
        }
        let (base, main) = (self.base(), self.main());
        // Where the status stands in a table of its own, that one's key is no row's.
        let is_of_main = |key: &&Vec<String>| {
            let main = main.filter(|_| base.is_none());
            main.is_none_or(|main| main.relation.unique_keys.contains(*key))
        };
        let unique = self.of.relation.filled_keys().filter(|key| self.is_there(key));
        let unique = unique.filter(is_of_main).filter(|key| !self.has_status(key));
        // The primary key's other columns come first, where they are unique without the status.
        let is_part = |key: &[String]| {
            primary.is_some_and(|primary| key.iter().all(|column| primary.contains(column)))
        };
        unique.min_by_key(|key| !is_part(key)).cloned().unwrap_or_default()
    }

    /// The primary key, or that of the table below a view.
    fn primary(&self) -> Option<&'a Vec<String>> {
        let of = self.of;
        if !of.primary_key.is_empty() {
            return Some(&of.primary_key);
        }
        let below = self.base().or_else(|| self.main()).map(|base| &base.primary_key);
        below.filter(|key| self.is_there(key))
    }

    /// Whether all of these are columns that are read.
    fn is_there(&self, key: &[String]) -> bool {
        !key.is_empty() && key.iter().all(|column| self.column(column).is_some())
    }

    /// Whether the status is among these columns: what is written is not found by them again.
    fn has_status(&self, key: &[String]) -> bool {
        key.iter()
            .any(|column| words::is_the_status(self.of, self.answers.status.as_deref(), column))
    }

    /// The unique columns with the status among them, where no others are unique.
    fn key_of_status(&self) -> &'a [String] {
        let (of, answers) = (self.of, self.answers);
        let said = Some(&answers.key).filter(|key| !key.is_empty());
        let found = said.or_else(|| self.primary());
        let found = found.or_else(|| of.relation.filled_keys().find(|key| self.has_status(key)));
        found.filter(|key| self.has_status(key)).map_or(&[][..], Vec::as_slice)
    }

    /// The table below a view that has the money: the only one with a column called as the amount.
    fn main(&self) -> Option<&'a Surveyed> {
        let amount = self.amount_column()?;
        let [only]: [&Surveyed; 1] =
            tables_below(self.of, self.survey, &amount.name).try_into().ok()?;
        Some(only)
    }

    /// The table below a view: the only one that has a column called as the status. One that lists
    /// the words of a status, once for all rows, is none.
    fn base(&self) -> Option<&'a Surveyed> {
        let base = written_below(self.of, self.survey, self.answers).map(|(base, _)| base);
        base.filter(|base| !self.lists_words(base))
    }

    /// Whether a table lists words that the rows of the one with the money point to.
    fn lists_words(&self, base: &Surveyed) -> bool {
        let Some(main) = self.main().filter(|main| main.name != base.name) else { return false };
        let status = words::status(self.of, self.answers.status.as_deref());
        let pointer = status.map(|status| format!("{}_id", plain(&status.name)));
        let is_pointer = |name: &str| Some(plain(name)) == pointer;
        let is_pointed_to = match base.primary_key.as_slice() {
            [own] => main.primary_key != base.primary_key && main.relation.column(own).is_some(),
            _several => false,
        };
        is_pointed_to || main.relation.columns.iter().any(|column| is_pointer(&column.name))
    }

    /// The tables below a view that have a column called as the status.
    fn bases(&self) -> Vec<&'a Surveyed> {
        let status = words::status(self.of, self.answers.status.as_deref());
        status.map_or(Vec::new(), |status| tables_below(self.of, self.survey, &status.name))
    }

    /// The status, where nothing is written through it though the relation is written through:
    /// the database works it out. Of what a join shows no catalogue tells that.
    fn worked_out(&self) -> Option<&'a Column> {
        let status = words::status(self.of, self.answers.status.as_deref());
        status.filter(|status| self.of.relation.updatable && status.generated)
    }

    /// The status, where it is not left open.
    fn status_column(&self) -> Option<&'a Column> {
        let status = words::status(self.of, self.answers.status.as_deref());
        status.filter(|&status| self.why_open(status).is_none())
    }

    /// Why a status is left open, where it is: nothing has it that can be written, or what is
    /// written would not be what is read.
    fn why_open(&self, status: &'a Column) -> Option<String> {
        if self.worked_out().is_some() && self.bases().is_empty() {
            return Some(unwritable(self.of, status));
        }
        self.strange(status).filter(|_| self.answers.status.is_none())
    }

    /// What to say where a view shows words that the table below it does not have.
    fn strange(&self, status: &'a Column) -> Option<String> {
        let (base, (_, theirs)) = (self.base()?, self.written(status));
        let strange: Vec<String> =
            self.values(status).into_iter().filter(|value| !theirs.contains(value)).collect();
        let is_told = !strange.is_empty() && !theirs.is_empty();
        is_told.then(|| {
            format!(
                "`{}` shows {} that `{}` was not seen to have: what is read and what is written \
                 must be the same words; name a column that the view takes from its table as it is",
                self.of.name,
                counted(&strange),
                base.name
            )
        })
    }

    fn relations(&mut self) {
        let rows = self.of.rows.map_or(String::new(), |rows| {
            format!(", about {}", count::counted(rows, "row", "rows"))
        });
        let what = if self.of.relation.is_view { "view" } else { "table" };
        let why = match self.answers.names_table {
            true => format!("as you said: a {what}{rows}"),
            false => format!("the {what} that looks most like payments{rows}"),
        };
        self.put("read", quoted(&self.of.name), why);
        self.hidden_rows();
        if !self.of.relation.is_view {
            return;
        }
        let worked_out = self.worked_out();
        // Where nothing has a status that can be written, it is the status that is left open.
        let is_enough =
            self.of.relation.updatable && (worked_out.is_none() || self.bases().is_empty());
        match self.base() {
            Some(_) if self.of.relation.updatable && self.survey.len() == 1 => {}
            Some(base) => {
                let usual = "the table below the view that has the status; it is written by key";
                let why = match worked_out {
                    Some(status) => format!(
                        "the view works `{}` out, so that it cannot be written there; the table \
                         below has a column of the name, and is written by key",
                        status.name
                    ),
                    None => usual.to_owned(),
                };
                self.put("write", quoted(&base.name), why);
            }
            None if is_enough => {}
            None if self.bases().len() > 1 => {
                let names: Vec<&str> = self.bases().iter().map(|base| base.name.as_str()).collect();
                let why = format!(
                    "{} have a column of the status's name: name the one whose status the view \
                     shows",
                    names.join(" and ")
                );
                self.open("write", quoted(OPEN), &why);
            }
            None => {
                let why = "the view cannot be written, and which table has the status is not plain";
                self.open("write", quoted(OPEN), why);
            }
        }
    }

    /// Rows that a policy hides are decided by no run.
    fn hidden_rows(&mut self) {
        let of = self.of;
        if of.relation.hidden.is_empty() {
            return;
        }
        let rows =
            of.rows.filter(|rows| *rows > 0 && self.seen.examples.values().all(Vec::is_empty));
        let none = rows.map_or(String::new(), |rows| {
            format!(" (of about {} none was seen)", count::counted(rows, "row", "rows"))
        });
        self.untold(format!(
            "read: row-level security hides rows of `{}` from this login{none}, so that little can \
             be told of it, and no run takes it so: `tieout config check --connect` says what to \
             grant",
            of.name
        ));
    }

    fn key_and_tag(&mut self) {
        let key = self.key();
        match key.as_slice() {
            [] => {
                let why = self.why_no_key();
                self.open("key", list(&[OPEN.to_owned()]), &why);
            }
            _some => {
                let why = self.why_key(&key);
                self.put("key", list(&key), why);
            }
        }
        match &self.answers.tag {
            Some(tag) => self.put("tag", quoted(tag), "as you said"),
            None if key.is_empty() => self.tag(self.key_of_status()),
            None => self.tag(&key),
        }
    }

    /// A tag made of the key, where each column of it may be in one.
    fn tag(&mut self, key: &[String]) {
        let (columns, why) = self.tag_of(key);
        let mut known = columns.iter().filter_map(|name| self.column(name));
        let (tag, why) = match known.find(|column| !may_be_tag(&column.class)) {
            None => {
                let parts: Vec<String> =
                    columns.iter().map(|column| format!("{{{column}}}")).collect();
                (parts.join("-"), why.to_owned())
            }
            Some(odd) => {
                let (name, kind) = (&odd.name, &odd.type_name);
                let Some(beside) = self.unique_text() else {
                    let why = format!(
                        "`{name}` is {kind}, of which no tag is made: name the column that holds \
                         as text what your application hands the PSP, or as `read` take a view \
                         that writes it so"
                    );
                    return self.open("tag", quoted(OPEN), &why);
                };
                let why = format!(
                    "`{name}` is {kind}, of which no tag is made, and `{beside}` is unique; check \
                     what your application hands the PSP"
                );
                (format!("{{{beside}}}"), why)
            }
        };
        if tag.is_empty() {
            return;
        }
        self.put("tag", quoted(&tag), why);
        self.untold(format!(
            "tag: what your application hands the PSP to know a row by; `{tag}` is a guess"
        ));
    }

    /// A column of text that each row has for itself, and that the PSP did not make.
    fn unique_text(&self) -> Option<&'a str> {
        let reference = self.reference_column().map(|(column, _)| column.name.as_str());
        let mut alone = self.of.relation.filled_keys().filter(|key| !self.has_status(key));
        alone.find_map(|key| {
            let [name] = key.as_slice() else { return None };
            let class = &self.column(name)?.class;
            let is_text = matches!(class, TypeClass::Text | TypeClass::Padded | TypeClass::Uuid);
            (is_text && reference != Some(name.as_str())).then_some(name.as_str())
        })
    }

    /// Columns of these for a tag, without those that no tag holds; and why.
    fn tag_of<'k>(&self, key: &'k [String]) -> (Vec<&'k String>, &'static str) {
        let lasting: Vec<&String> =
            key.iter().filter(|column| !self.has_status(std::slice::from_ref(*column))).collect();
        let own: Vec<&String> =
            lasting.iter().copied().filter(|column| !self.is_time(column)).collect();
        let (own, why) = if lasting.len() < key.len() {
            let why = "the key without its status, which changes; check what your application \
                       hands the PSP";
            (if own.is_empty() { lasting } else { own }, why)
        } else if own.len() == key.len() || own.is_empty() {
            (lasting, "the key, as it is; check what your application hands the PSP")
        } else {
            let why = "the key without its time, which no tag holds; check what your application \
                       hands the PSP";
            (own, why)
        };
        (own, why)
    }

    /// Why no key is proposed, and what to do.
    fn why_no_key(&self) -> String {
        let of_status = self.key_of_status();
        if !of_status.is_empty() {
            let status = words::status(self.of, self.answers.status.as_deref());
            let status = status.map_or("", |status| status.name.as_str());
            return format!(
                "no key was found but (`{}`), and `{status}` changes with each write, so that a \
                 row is not found by it again: name the columns of a unique index without \
                 `{status}`, or make one",
                of_status.join("`, `")
            );
        }
        let relation = &self.of.relation;
        let whole: Vec<&Vec<String>> = relation.filled_keys().collect();
        let mut keys = relation.unique_keys.iter();
        let may_be = |key: &Vec<String>| !key.is_empty() && !self.has_status(key);
        let partly = keys.find(|key| may_be(key) && !whole.contains(key));
        let partly = partly.map_or(String::new(), |key| {
            format!(" (`{}` is unique, but may be NULL)", key.join("`, `"))
        });
        format!("no unique key was found{partly}: name the columns that make a row one of a kind")
    }

    /// What rows that mean one payment share. Rows that are taken for siblings and are none hold
    /// each other up and go to people: what no two rows share is put as it stands, and what they
    /// may share only offered.
    fn natural_key(&mut self) {
        let of = self.of;
        let mut unique = of.relation.unique_keys.iter();
        if let Some(columns) = unique.find(|columns| self.is_one_payment(columns)) {
            if *columns != self.key() {
                let why = "unique, and by its names what one payment is for";
                self.put("natural_key", list(columns), why);
            }
            return;
        }
        let named = || Some((self.named_payment()?, "by its name".to_owned()));
        let Some((columns, seen)) = self.tried().or_else(named) else {
            return self.untold(format!(
                "natural_key: where your application makes a new row for each try of one payment, \
                 name the columns that the tries share: {NO_SIBLINGS}"
            ));
        };
        let why = format!(
            "{seen} it may be what one payment is for; take the # away where rows that share it \
             are tries of one payment, and no parts of it: none is handed back beside a paid one"
        );
        self.proposal.offers.push(("natural_key", Choice::new(list(&columns), why)));
        self.untold(format!(
            "natural_key: `{}` may say what one payment is for: where rows that share it are \
             tries of one payment, and no parts of it, take the # from its line: {NO_SIBLINGS}",
            columns.join("`, `")
        ));
    }

    /// Whether these columns, and no others, say by their names what one payment is for.
    fn is_one_payment(&self, columns: &[String]) -> bool {
        let is_of = |column: &String, names: &[&str]| names.contains(&plain(column).as_str());
        let has = |names: &[&str]| columns.iter().any(|column| is_of(column, names));
        let known = [
            &words::PAID_ONCE[..],
            &words::PAID_AGAIN,
            &words::PERIOD,
            &words::INSTALMENT,
            &words::TENANT,
        ];
        let is_known = |name: &String| {
            let is_shared = self.column(name).is_some_and(|it| words::is_shared(&it.class));
            is_shared && known.iter().any(|names| is_of(name, names))
        };
        let is_named = has(&words::PAID_ONCE) || (has(&words::PAID_AGAIN) && has(&words::PERIOD));
        is_named && columns.iter().all(is_known)
    }

    /// What is unique together with the number of a try, without that number; and how it is seen.
    fn tried(&self) -> Option<(Vec<String>, String)> {
        let is_try = |name: &&String| {
            let column = self.column(name).filter(|column| words::is_whole(&column.class));
            column.is_some() && words::TRY.contains(&plain(name).as_str())
        };
        self.of.relation.unique_keys.iter().find_map(|columns| {
            let number = columns.iter().find(is_try)?;
            let shared: Vec<String> =
                columns.iter().filter(|column| *column != number).cloned().collect();
            let seen = format!("unique together with `{number}`,");
            self.is_one_payment(&shared).then_some((shared, seen))
        })
    }

    /// Columns that say by their names what one payment is for. A charge has several refunds.
    fn named_payment(&self) -> Option<Vec<String>> {
        let exact = |names: &[&str]| {
            let of_name =
                |name: &&str| self.of.relation.columns.iter().find(|c| plain(&c.name) == **name);
            names.iter().find_map(of_name).map(|column| column.name.clone())
        };
        let own = match exact(&words::PAID_ONCE) {
            Some(once) => vec![once],
            None => vec![exact(&words::PAID_AGAIN)?, exact(&words::PERIOD)?],
        };
        let around = exact(&words::TENANT).into_iter();
        let columns: Vec<String> = around.chain(own).chain(exact(&words::INSTALMENT)).collect();
        let is_back = ["refund", "payout"].iter().any(|kind| self.proposal.name.contains(kind));
        let reference = self.reference_column().map(|(column, _)| &column.name);
        let is_ours = columns.iter().all(|column| Some(column) != reference);
        (!is_back && is_ours && self.is_one_payment(&columns)).then_some(columns)
    }

    /// A column of times: tables are partitioned by one, and no tag is made of it.
    fn is_time(&self, name: &str) -> bool {
        let class = self.column(name).map(|column| &column.class);
        matches!(class, Some(TypeClass::TimestampTz | TypeClass::Timestamp | TypeClass::Date))
    }

    /// What makes these columns the key.
    fn why_key(&self, key: &[String]) -> &'static str {
        let is_primary = |of: &Surveyed| of.primary_key.as_slice() == key;
        if is_primary(self.of) || self.base().or_else(|| self.main()).is_some_and(is_primary) {
            "its primary key"
        } else if self.answers.key.is_empty() {
            "a unique key of it"
        } else {
            "as you said"
        }
    }

    fn money(&mut self) {
        let amount = match &self.answers.amount {
            Some(name) => self.named("amount", name),
            None => {
                let found = self.amount_column();
                match found {
                    Some(column) => self.other_amounts(column),
                    None => self.amount_untold(),
                }
                found
            }
        };
        if let Some(amount) = amount {
            let (unit, mut why) = self.unit(amount);
            if is_binary(amount) {
                why.push_str(FLOAT);
            }
            let value = format!("{{ column = {}, unit = {unit} }}", quoted(&amount.name));
            match unit.contains(OPEN) {
                true => self.open("amount", value, &why),
                false => self.put("amount", value, why),
            }
            self.below_zero(amount);
        }
        self.currency();
        if let Some(amount) = amount {
            self.exchange_rate(amount);
        }
    }

    /// A sign may be all that tells refunds from charges.
    fn below_zero(&mut self, amount: &Column) {
        let examples = self.seen.examples.get(&amount.name).into_iter().flatten();
        let mut below = examples.filter(|value| value.trim().starts_with('-'));
        let Some(value) = below.next().cloned() else { return };
        self.untold(format!(
            "amount: `{}` has values below zero (`{value}`): no such row is handed back, but each \
             that is stuck goes to a person; leave them out by where, or read a view that has the \
             amount without its sign, and a column that says charge or refund",
            amount.name
        ));
    }

    fn unit(&mut self, amount: &Column) -> (String, String) {
        if let Some(unit) = &self.answers.unit {
            return (quoted(unit), "as you said".to_owned());
        }
        if words::says_micros(&amount.name) {
            return (quoted(OPEN), near::millionths(amount));
        }
        let name = plain(&amount.name);
        let exponent = pick(self.of, &words::EXPONENT, words::is_whole);
        let has_point = self
            .seen
            .examples
            .get(&amount.name)
            .is_some_and(|examples| examples.iter().any(|value| value.contains('.')));
        let is_seen = self.seen.examples.get(&amount.name).is_some_and(|seen| !seen.is_empty());
        match (&amount.class, exponent) {
            (TypeClass::Integer, Some(exponent)) => {
                let unit = format!("{{ exponent = {} }}", quoted(&exponent.name));
                (unit, format!("whole numbers, scaled by {}", exponent.name))
            }
            (TypeClass::Integer, None) if name.contains("cent") || name.contains("minor") => {
                (quoted("minor"), format!("{} says so", amount.name))
            }
            (TypeClass::Integer, None) => {
                self.untold(format!(
                    "amount: `{}` has whole numbers; taken as minor units (cents)",
                    amount.name
                ));
                (quoted("minor"), "whole numbers: taken as minor units; check a row".to_owned())
            }
            (TypeClass::Decimal | TypeClass::Float | TypeClass::Text | TypeClass::Padded, _)
                if words::says_minor(&amount.name) =>
            {
                self.unit_by_name(amount)
            }
            (TypeClass::Decimal | TypeClass::Float, _) if is_seen && !has_point => {
                self.untold(format!(
                    "amount: `{}` has whole numbers alone; taken as major units",
                    amount.name
                ));
                (quoted("major"), "whole numbers: taken as major units; check a row".to_owned())
            }
            (TypeClass::Text | TypeClass::Padded, _) if !has_point => {
                self.untold(format!("amount: `{}` is text; taken as major units", amount.name));
                (quoted("major"), "text: taken as major units; check a row".to_owned())
            }
            _decimals => (quoted("major"), format!("it is {}", amount.type_name)),
        }
    }

    /// The unit of an amount that is no whole number by its type, and in minor units by its name:
    /// by the wrong one each payment is of a hundred times its sum.
    fn unit_by_name(&self, amount: &Column) -> (String, String) {
        let name = &amount.name;
        let broken = self.filled(amount).into_iter().find(|value| has_fraction(value));
        match broken {
            None => (quoted("minor"), format!("{name} says so, and no value has a fraction")),
            Some(value) => {
                let why = format!(
                    "`{name}` has minor units by its name, and `{value}`, which is no whole number \
                     of them: say minor or major, or name the column of what is charged"
                );
                (quoted(OPEN), why)
            }
        }
    }

    fn currency(&mut self) {
        if let Some(word) = &self.answers.currency {
            let value = match self.column(word) {
                Some(column) => format!("{{ column = {} }}", quoted(&column.name)),
                None if Currency::parse(word).is_ok() => {
                    format!("{{ const = {} }}", quoted(&word.to_ascii_uppercase()))
                }
                None => format!("{{ const = {} }}", quoted(OPEN)),
            };
            let why = format!("as you said: {word}");
            return match value.contains(OPEN) {
                true => self.open("currency", value, &format!("`{word}` is no column and no code")),
                false => self.put("currency", value, why),
            };
        }
        if let Some(column) = pick(self.of, &words::CURRENCY, words::is_word) {
            let value = format!("{{ column = {} }}", quoted(&column.name));
            return self.put("currency", value, format!("it is {}", column.type_name));
        }
        let value = format!("{{ const = {} }}", quoted(OPEN));
        let why = match (self.pointed_currency(), self.seen.currency_at.first()) {
            (Some(why), _) => why,
            (None, Some(parent)) => format!(
                "it stands on `{parent}`: read a view that has it as a column, or name one \
                 currency for the table"
            ),
            (None, None) => self.currency_untold(),
        };
        self.open("currency", value, &why);
    }

    fn account(&mut self) {
        let name = self.answers.account.clone();
        let Some((column, values)) = self.account_column() else {
            return self.account_untold(&name);
        };
        self.put("account", list(std::slice::from_ref(&column.name)), "it names the PSP");
        self.accounts_of(column, values, &name);
        let is_left = |value: &&String| !words::is_stripe(value) && !words::is_other(value);
        let left: Vec<String> = values.iter().filter(is_left).cloned().collect();
        if !left.is_empty() {
            self.untold(format!(
                "accounts: `{}` has {} besides, which no account was found for: name theirs, or \
                 leave their rows out by where",
                column.name,
                counted(&left)
            ));
        }
        self.list_tellers(Some(&column.name));
    }

    /// Which values are the account's. Several may well be several accounts at Stripe, or none: a
    /// row of another one is never found at this one, and would be handed back.
    fn accounts_of(&mut self, column: &Column, values: &[String], name: &str) {
        let ours: Vec<&String> = values.iter().filter(|v| words::is_stripe(v)).collect();
        let is_taken = |value: &String| match ours.len() {
            1 => words::is_called_stripe(value) || !words::may_be_no_stripe(value),
            _several => words::is_called_stripe(value),
        };
        let pair = |value: &&String| {
            let account = if is_taken(value) { name } else { OPEN };
            format!("{} = {}", quoted(value), quoted(account))
        };
        let pairs: Vec<String> = ours.iter().map(pair).collect();
        let pairs = format!("{{ {} }}", pairs.join(", "));
        let (taken, left): (Vec<&String>, Vec<&String>) =
            ours.iter().copied().partition(|value| is_taken(value));
        if taken.len() > 1 {
            self.untold(format!(
                "accounts: {} of `{}` are taken for one account at Stripe",
                named(&taken),
                column.name
            ));
        }
        if left.is_empty() {
            let why = format!("values of {} that name Stripe", column.name);
            return self.put("accounts", pairs, why);
        }
        let left: Vec<String> = left.into_iter().cloned().collect();
        let why = format!(
            "`{}` has {}, which may be another account at Stripe, or none: say \"{name}\" for each \
             that is this account's, name an [[account]] of its own for each other, or take it out \
             here and leave its rows out by where; a row of another account is never found at this \
             one, and mode full hands it back",
            column.name,
            counted(&left)
        );
        self.open("accounts", pairs, &why);
    }

    /// The column that names Stripe: by its own name first, else by its values alone.
    fn account_column(&self) -> Option<(&'a Column, &'a Vec<String>)> {
        let columns = &self.of.relation.columns;
        let status = words::status(self.of, self.answers.status.as_deref());
        let named = pick(self.of, &words::ACCOUNT, words::is_word);
        let is_named = |column: &Column| named.is_some_and(|known| known.name == column.name);
        let told = tell_accounts(columns).into_iter().filter(|c| words::is_word(&c.class));
        let all = named.into_iter().chain(told).chain(coded(columns));
        let else_than_status =
            all.filter(|column| status.is_none_or(|status| status.name != column.name));
        else_than_status
            .filter_map(|column| self.seen.values.get(&column.name).map(|v| (column, v)))
            .filter(|(column, values)| is_named(column) || are_codes(values))
            .filter(|(column, values)| {
                let is_said = is_named(column) || is_teller(&column.name);
                is_said || !is_uncoded(&column.name) || tells_psps(&column.name, values)
            })
            .find(|(_, values)| values.iter().any(|value| words::is_stripe(value)))
    }

    /// Columns that may tell accounts apart and do: each with its values.
    fn tellers(&self) -> Vec<(&'a Column, &'a Vec<String>)> {
        let reference = self.reference_column().map(|(column, _)| column.name.as_str());
        let columns = &self.of.relation.columns;
        let status = words::status(self.of, self.answers.status.as_deref());
        let by_value = coded(columns).into_iter().filter(|column| {
            let values = self.seen.values.get(&column.name);
            !is_teller(&column.name)
                && status.is_none_or(|status| status.name != column.name)
                && values.is_some_and(|values| tells_psps(&column.name, values))
        });
        let tellers = tell_accounts(columns).into_iter().chain(by_value);
        tellers
            .filter(|column| reference != Some(column.name.as_str()))
            .filter_map(|column| self.seen.values.get(&column.name).map(|v| (column, v)))
            // Ids of saved cards and the like are no accounts.
            .filter(|(_, values)| !are_ids_at_stripe(values))
            .filter(|(_, values)| values.len() > 1 || values.iter().any(|v| words::is_other(v)))
            .collect()
    }

    fn list_tellers(&mut self, besides: Option<&str>) {
        for (column, values) in self.tellers() {
            if besides != Some(column.name.as_str()) {
                self.untold(format!(
                    "account: `{}` has {}; are all of these rows of this one account?",
                    column.name,
                    counted(values)
                ));
            }
        }
    }

    /// No value names Stripe. A row of another PSP that is taken for Stripe's is not found there,
    /// and so would be charged again: where a column may tell them apart, it is left open.
    fn account_untold(&mut self, name: &str) {
        let tellers = self.tellers();
        let few = tellers.iter().find(|(_, values)| values.len() <= ACCOUNTS_MAX);
        let besides = match (few, tellers.first()) {
            (Some((column, values)), _) => {
                let own = std::slice::from_ref(&column.name);
                self.put("account", list(own), "it may tell PSPs apart");
                let why = format!(
                    "`{}` has {}: say \"{name}\" for each that is this account's, and leave the \
                     rows of the others out by where; a row of another PSP is never found here, \
                     and would be charged again",
                    column.name,
                    counted(values)
                );
                let open = |value: &String| format!("{} = {}", quoted(value), quoted(OPEN));
                let pairs: Vec<String> = values.iter().map(open).collect();
                self.open("accounts", format!("{{ {} }}", pairs.join(", ")), &why);
                Some(column.name.as_str())
            }
            (None, Some((column, values))) => {
                let why = format!(
                    "`{}` has {}: say \"{name}\" where every row is this account's, else leave \
                     the rows of other PSPs out by where; one of those is never found here, and \
                     would be charged again",
                    column.name,
                    counted(values)
                );
                let value = format!("{{ const = {} }}", quoted(OPEN));
                self.open("account", value, &why);
                Some(column.name.as_str())
            }
            (None, None) => {
                let value = format!("{{ const = {} }}", quoted(name));
                self.put("account", value, "no column tells accounts apart");
                None
            }
        };
        self.list_tellers(besides);
    }

    /// What kind of movement the rows are. A refund that is looked for among charges is not found
    /// there, and so would be handed back: a column that tells is never passed over.
    fn kind(&mut self) {
        let own = self.own_kind();
        let flag = self.kind_flag();
        let open = self.open_flag().filter(|_| flag.is_none());
        let by_flag = flag.as_ref().map(|(column, ..)| *column);
        let by_flag = by_flag.or(open.as_ref().map(|(column, _)| *column));
        self.other_flags(by_flag.map(|column| column.name.as_str()));
        self.marked_rows();
        if let Some(column) = by_flag.filter(|column| self.may_be_null(column)) {
            self.untold(format!(
                "kind: `{}` may be NULL, which no value of kind names: a stuck row with NULL there \
                 goes to a person; where NULL says charge, take kind out, leave refunds out by {{ \
                 column = {}, {} }} in where, which NULL passes, and give them a [[table]] of \
                 their own",
                column.name,
                quoted(&column.name),
                self.not_marked(column)
            ));
        }
        let tellers = self.kind_tellers(own.unwrap_or("charge"));
        let (chosen, others) = match (flag, tellers.split_first()) {
            (Some((flag, values, word)), _) => {
                let value =
                    format!("{{ column = {}, values = {{ {values} }} }}", quoted(&flag.name));
                self.put("kind", value, format!("a flag tells {word}s"));
                (flag, tellers.as_slice())
            }
            (None, Some(((column, values), others))) => {
                self.kind_by(column, values);
                (*column, others)
            }
            (None, None) => {
                if let Some((column, values)) = open {
                    self.kind_open(column, &values);
                } else if let Some(kind) = own {
                    self.put("kind", format!("{{ const = {} }}", quoted(kind)), "the name says so");
                }
                return;
            }
        };
        for (column, values) in others {
            self.untold(format!(
                "kind: `{}` has {} too; kinds are told apart by `{}` alone",
                column.name,
                counted(values),
                chosen.name
            ));
        }
    }

    /// The flag that tells refunds or payouts, its values as a mapping names them, and which of the
    /// two.
    fn kind_flag(&self) -> Option<(&'a Column, String, &'static str)> {
        let marked: Vec<&str> =
            self.marked_flags().iter().map(|(column, _)| column.name.as_str()).collect();
        let is_unmarked = |column: &&Column| !marked.contains(&column.name.as_str());
        let by_name = pick(self.of, &words::IS_REFUND, words::is_flag);
        if let Some(column) = by_name.filter(is_unmarked) {
            let values = "false = \"charge\", true = \"refund\"".to_owned();
            return Some((column, values, "refund"));
        }
        self.flags().into_iter().find_map(|(column, said)| {
            let word = said.word().filter(|_| said != Movement::Charge)?;
            if !is_unmarked(&column) || is_decimal(column) {
                return None;
            }
            let pairs = self.flag_pairs(column);
            (!pairs.is_empty()).then_some((column, pairs, word))
        })
    }

    /// The values of a flag as `kind` of a mapping names them; open where only a person can say.
    fn flag_pairs(&self, column: &Column) -> String {
        let values: Vec<String> = match &column.class {
            TypeClass::Boolean => ["false", "true"].map(str::to_owned).to_vec(),
            TypeClass::Integer if self.seen_of(column).iter().all(|it| is_bit(it)) => {
                ["0", "1"].map(str::to_owned).to_vec()
            }
            _text => self.seen_of(column).to_vec(),
        };
        let pair = |value: &String| {
            let key = match &column.class {
                TypeClass::Boolean => value.clone(),
                _other => quoted(value),
            };
            let kind = kind_word(&column.name, &values, value).unwrap_or(OPEN);
            format!("{key} = \"{kind}\"")
        };
        let pairs: Vec<String> = values.iter().map(pair).collect();
        pairs.join(", ")
    }

    /// The flag that tells charges from other rows, of which only a person can say what they are,
    /// with its values; none where another column tells kinds, or the table's name does.
    fn open_flag(&self) -> Option<(&'a Column, String)> {
        let is_told = self.own_kind().is_some() || !self.kind_tellers("charge").is_empty();
        let marked = self.marked_flags();
        let is_marked = |column: &Column| marked.iter().any(|(known, _)| known.name == column.name);
        self.flags().into_iter().filter(|_| !is_told).find_map(|(column, said)| {
            let (name, seen) = (&column.name, self.seen_of(column));
            let tells = match said {
                Movement::Back | Movement::Side | Movement::Charge => {
                    seen.is_empty() || flags_kinds(name, seen, "charge")
                }
                // What has NULL where it is no refund no values of kind can tell.
                Movement::Unsure => {
                    let is_whole = !self.may_be_null(column) || !marks_alone(seen);
                    is_noun(name) && is_whole && may_flag_kinds(name, seen)
                }
                Movement::Refund | Movement::Payout | Movement::Other => false,
            };
            let pairs = self.flag_pairs(column);
            let is_named = !is_decimal(column) && !pairs.is_empty();
            (tells && is_named && !is_marked(column)).then_some((column, pairs))
        })
    }

    /// The looked-at values of a column.
    fn seen_of(&self, column: &Column) -> &'a [String] {
        self.seen.values.get(&column.name).map_or(&[][..], Vec::as_slice)
    }

    /// Flags that say what their row is, and that have NULL where it is a charge, each with what
    /// they say: no value of `kind` names NULL.
    fn marked_flags(&self) -> Vec<(&'a Column, Movement)> {
        let is_marked = |(column, _): &(&'a Column, Movement)| match &column.class {
            TypeClass::Boolean => self.is_mostly_null(column),
            _other => marks_alone(self.seen_of(column)),
        };
        self.null_flags().into_iter().filter(is_marked).collect()
    }

    /// Flags that say what their row is, and that may have NULL where it is a charge.
    fn null_flags(&self) -> Vec<(&'a Column, Movement)> {
        if self.own_kind().is_some() {
            return Vec::new();
        }
        let may_be = |(column, said): &(&'a Column, Movement)| {
            matches!(said, Movement::Refund | Movement::Payout | Movement::Back)
                && !is_decimal(column)
                && self.may_be_null(column)
        };
        self.flags().into_iter().filter(may_be).collect()
    }

    /// What to ask of booleans among them: whether NULL is what most rows have.
    fn null_questions(&self) -> Vec<Beside> {
        let status = words::status(self.of, self.answers.status.as_deref());
        let flags = self.null_flags().into_iter().map(|(column, _)| column);
        let flags = flags.filter(|column| column.class == TypeClass::Boolean);
        let asked = |column: &Column| {
            let (column, status) = (column.name.clone(), status?.name.clone());
            Some(Beside { column, status, by: CountedBy::Value })
        };
        flags.filter_map(asked).collect()
    }

    /// Whether some looked-at rows have a value in a column, and most of them NULL.
    fn is_mostly_null(&self, column: &Column) -> bool {
        let tallies = self.seen.tallies.get(&column.name).into_iter().flatten();
        let (mut null, mut of) = (0_i64, 0_i64);
        for tally in tallies {
            of = of.saturating_add(tally.rows);
            null = null.saturating_add(if tally.value.is_none() { tally.rows } else { 0 });
        }
        let filled = of.saturating_sub(null);
        filled > 0 && null > filled
    }

    /// What is left out as such flags mark it.
    fn marked_rows(&mut self) {
        for (column, said) in self.marked_flags() {
            let marks = match &column.class {
                TypeClass::Boolean => "true".to_owned(),
                _other => self.literals(column, |_any| true),
            };
            let kind = said.word().unwrap_or("…");
            self.untold(format!(
                "where: rows that have {marks} in `{0}` are left out, as it marks what is no \
                 charge, and NULL says charge; for refunds make a [[table]] of their own, with {{ \
                 column = {1}, in = [{marks}] }} in where and kind = {{ const = \"{kind}\" }}",
                column.name,
                quoted(&column.name)
            ));
        }
    }

    /// The looked-at values of a flag that are such, as a `where` has them.
    fn literals(&self, column: &Column, is: fn(&str) -> bool) -> String {
        let values = self.seen_of(column).iter().filter(|value| is(value));
        let literals: Vec<String> = values.map(|value| literal(&column.class, value)).collect();
        if literals.is_empty() { "…".to_owned() } else { literals.join(", ") }
    }

    /// The test of `where` that leaves out what a flag marks.
    fn not_marked(&self, column: &Column) -> String {
        match &column.class {
            TypeClass::Boolean => "not_in = [true]".to_owned(),
            _other if self.seen_of(column).is_empty() => match &column.class {
                TypeClass::Integer => "not_in = [1]".to_owned(),
                _text => "not_in = […]".to_owned(),
            },
            // Which of two codes marks them nobody knows.
            _other
                if self.seen_of(column).iter().all(|value| !says_no(value))
                    && !marks_alone(self.seen_of(column)) =>
            {
                "not_in = […]".to_owned()
            }
            _other => format!("not_in = [{}]", self.literals(column, |value| !says_no(value))),
        }
    }

    /// Kinds by such a flag.
    fn kind_open(&mut self, column: &Column, values: &str) {
        let name = quoted(&column.name);
        // NULL passes by not_in alone.
        let test = if self.may_be_null(column) { "not_in" } else { "in" };
        let why = format!(
            "`{}` tells charges from other rows: say charge, refund or payout for each {OPEN} \
             (charge for both, where it says something else), or take the line out and leave the \
             others out by where = [{{ column = {name}, {test} = […] }}]; a refund is never \
             found among charges, and would be handed back",
            column.name
        );
        let value = format!("{{ column = {name}, values = {{ {values} }} }}");
        self.open("kind", value, &why);
    }

    /// What the table's name says that all of its rows are.
    fn own_kind(&self) -> Option<&'static str> {
        ["refund", "payout"].into_iter().find(|kind| self.proposal.name.contains(kind))
    }

    /// Whether a column tells kinds.
    fn has_kinds(&self) -> bool {
        self.kind_flag().is_some()
            || self.open_flag().is_some()
            || !self.kind_tellers("charge").is_empty()
    }

    /// The column that names, in some rows, the row which theirs takes back, where nothing else
    /// tells such rows.
    fn takes_back(&self) -> Option<&'a Column> {
        let is_told = self.own_kind().is_some() || self.has_kinds();
        let mut pointers = self.pointers().into_iter().filter(|_| !is_told);
        let found = pointers.find(|(column, values)| {
            let is_named = takes_back(&column.name);
            is_named && points_in_some(values)
        });
        found.map(|(column, _)| column)
    }

    /// Columns that name another row, each with whether it is NULL.
    fn pointers(&self) -> Vec<(&'a Column, &'a [String])> {
        let reference = self.reference_column().map(|(column, _)| column.name.as_str());
        let key = self.key();
        pointers(&self.of.relation.columns)
            .into_iter()
            .filter(|column| reference != Some(column.name.as_str()))
            .filter(|column| !key.contains(&column.name))
            .map(|column| {
                let values = self.seen.values.get(&column.name);
                (column, values.map_or(&[][..], Vec::as_slice))
            })
            .collect()
    }

    /// Columns that name another row, which may be the one that theirs takes back.
    fn taken_back(&mut self) {
        if self.own_kind().is_some() || self.has_kinds() {
            return;
        }
        let left_out = self.takes_back().map(|column| column.name.as_str());
        for (column, values) in self.pointers() {
            let name = &column.name;
            if left_out == Some(name.as_str()) {
                self.untold(format!(
                    "where: rows that have `{name}` are left out, as they take another one back; \
                     for refunds make a [[table]] of their own, with is = \"not_null\" there and \
                     kind = {{ const = \"refund\" }}"
                ));
            } else if points_in_some(values) || (takes_back(name) && values.is_empty()) {
                self.untold(format!(
                    "where: `{name}` may say that a row takes another one back; where it does, \
                     add {{ column = {}, is = \"null\" }} to where: such a row is never found \
                     among charges, and would be handed back",
                    quoted(name)
                ));
            }
        }
    }

    /// Columns that are flags of another kind of row, each with what it says.
    fn flags(&self) -> Vec<(&'a Column, Movement)> {
        let said =
            |column: &'a Column| flag_in(column, self.seen_of(column)).map(|said| (column, said));
        flags(&self.of.relation.columns).into_iter().filter_map(said).collect()
    }

    /// Flags besides the chosen one: of voids, of reversals, and those that may say something else.
    fn other_flags(&mut self, chosen: Option<&str>) {
        let marked = self.marked_flags();
        for (column, said) in self.flags() {
            let is_marked = marked.iter().any(|(known, _)| known.name == column.name);
            if chosen == Some(column.name.as_str()) || is_marked {
                continue;
            }
            if is_decimal(column) {
                self.untold(format!(
                    "kind: `{}` ({}) may say that a row is no charge, and neither kind nor where \
                     takes its type; where it does, read a view that has it as a whole number: \
                     such a row is never found among charges, and would be handed back",
                    column.name, column.type_name
                ));
                continue;
            }
            let (yes, no) = match &column.class {
                TypeClass::Boolean => ("true".to_owned(), "false".to_owned()),
                TypeClass::Integer => ("1".to_owned(), "0".to_owned()),
                _text => (self.literals(column, says_yes), self.literals(column, says_no)),
            };
            let is_null = self.may_be_null(column) || no == "…";
            let kept = match said {
                Movement::Charge => format!("in = [{yes}]"),
                Movement::Side => "in = […]".to_owned(),
                // NULL says that it is a charge.
                _no_charge if is_null => self.not_marked(column),
                _no_charge => format!("in = [{no}]"),
            };
            let passes = if kept.starts_with("not_in") { ", which NULL passes" } else { "" };
            self.untold(format!(
                "kind: `{}` may say that a row is no charge; where it does, add {{ column = {}, \
                 {kept} }} to where{passes}: such a row is never found among charges, and would be \
                 handed back",
                column.name,
                quoted(&column.name)
            ));
        }
    }

    /// Where nothing tells PSPs or kinds apart, that is said: what is not seen is handed back in
    /// the end.
    fn one_account(&mut self) {
        let Some(account) = self.proposal.choice("account").filter(|it| !it.is_open()) else {
            return;
        };
        let has_kind = self.proposal.choice("kind").is_some() || !self.marked_flags().is_empty();
        let is_one = account.value.contains("const");
        let may_tell = if has_kind { String::new() } else { self.may_tell_kinds() };
        if !is_one {
            if !has_kind {
                self.untold(format!(
                    "kind: no column was seen to tell refunds from charges{may_tell}, so that \
                     every row is looked for as a charge: a refund is never found there, and mode \
                     full hands it back"
                ));
            }
            return;
        }
        let refund = match has_kind {
            true => String::new(),
            false => format!(", or a refund among charges{may_tell},"),
        };
        self.untold(format!(
            "account: no column was seen to tell PSPs apart, so that every row is looked for at \
             Stripe: a row of another PSP{refund} is never found there, and mode full hands it back"
        ));
    }

    /// Columns that may tell kinds by what they are called, in the brackets of a sentence.
    fn may_tell_kinds(&self) -> String {
        let status = words::status(self.of, self.answers.status.as_deref());
        let account = self.account_column().map(|(column, _)| column.name.as_str());
        let is_else = |column: &&&Column| {
            let is_status = status.is_some_and(|status| status.name == column.name);
            !is_status && account != Some(column.name.as_str())
        };
        let columns = coded(&self.of.relation.columns);
        let may_be = columns.iter().filter(is_else).filter_map(|column| {
            let values = self.seen.values.get(&column.name)?;
            let values: Vec<&String> = values.iter().filter(|value| !value.is_empty()).collect();
            let owned: Vec<String> = values.iter().map(|value| (*value).clone()).collect();
            let is_it = may_tell_kinds(&column.name, &owned);
            is_it.then(|| format!("`{}`, which has {}", column.name, named(&values)))
        });
        let may_be: Vec<String> = may_be.take(NAMED).collect();
        match may_be.is_empty() {
            true => String::new(),
            false => format!(" (is it {}?)", may_be.join(", or ")),
        }
    }

    /// Columns some of whose values say another kind than `own`: those that are called so first.
    fn kind_tellers(&self, own: &str) -> Vec<(&'a Column, &'a Vec<String>)> {
        let status = words::status(self.of, self.answers.status.as_deref());
        let account = self.account_column().map(|(column, _)| column.name.as_str());
        let reference = self.reference_column().map(|(column, _)| column.name.as_str());
        let is_else = |column: &&'a Column| {
            let name = Some(column.name.as_str());
            let is_status = status.is_some_and(|status| status.name == column.name);
            !is_status && name != account && name != reference
        };
        let columns = coded(&self.of.relation.columns).into_iter().filter(is_else);
        let mut found: Vec<(&'a Column, &'a Vec<String>)> = columns
            .filter_map(|column| self.seen.values.get(&column.name).map(|v| (column, v)))
            .filter(|(column, values)| tells_kinds(&column.name, values, own))
            .collect();
        found.sort_by_key(|(column, _)| !is_of_kinds(&column.name));
        found
    }

    /// Kinds by the values of a column: those that say theirs; another is a person's to name.
    fn kind_by(&mut self, column: &Column, values: &[String]) {
        let (mut pairs, mut unsure, mut none) = (Vec::new(), Vec::new(), Vec::new());
        for value in values {
            let said = movement_in(&column.name, values, value);
            if said == Some(Movement::Other) {
                none.push(value.clone());
                continue;
            }
            let word = said.and_then(Movement::word);
            if word.is_none() {
                unsure.push(value.clone());
            }
            pairs.push(format!("{} = {}", quoted(value), quoted(word.unwrap_or(OPEN))));
        }
        let name = &column.name;
        if !none.is_empty() {
            self.untold(format!(
                "kind: of `{name}` {} no charge, refund or payout: leave such rows out by where, \
                 or each that is stuck goes to a person",
                said_of(&none)
            ));
        }
        if pairs.is_empty() {
            let why = format!(
                "`{name}` has {}, and no value that says charge: say what its rows are, and leave \
                 the others out by where",
                counted(values)
            );
            return self.open("kind", format!("{{ const = {} }}", quoted(OPEN)), &why);
        }
        let value = format!("{{ column = {}, values = {{ {} }} }}", quoted(name), pairs.join(", "));
        if unsure.is_empty() {
            let why = format!("values of {name} tell charges, refunds and payouts");
            return self.put("kind", value, why);
        }
        let why = format!(
            "`{name}` tells kinds, and has {} besides: say charge, refund or payout for each, or \
             take it out here and leave its rows out by where; a refund is never found among \
             charges, and would be handed back",
            counted(&unsure)
        );
        self.open("kind", value, &why);
    }

    fn status(&mut self) {
        let status = match &self.answers.status {
            Some(name) => self.named("status", name),
            None => words::status(self.of, None),
        };
        match status {
            Some(column) => match self.why_open(column) {
                Some(why) => self.open("status", quoted(OPEN), &why),
                None => {
                    self.put("status", quoted(&column.name), format!("it is {}", column.type_name));
                    if let Some(parent) = self.parent_of(column) {
                        let name = &column.name;
                        let text = format!("`{parent}` lists what the values of `{name}` mean");
                        self.untold(format!("status: {text}"));
                    }
                    if let Some(why) = self.strange(column) {
                        self.untold(format!("status: {why}"));
                    }
                }
            },
            None if self.answers.status.is_none() => {
                let why = self.status_untold();
                self.open("status", quoted(OPEN), &why);
            }
            None => {}
        }
    }

    /// Another column with the same words may be the one that says how a payment stands.
    fn other_statuses(&mut self) {
        let Some(status) = self.status_column() else { return };
        let told = |values: Vec<String>| -> BTreeSet<String> {
            values.iter().map(|value| plain(value)).collect()
        };
        let own = told(self.values(status));
        for other in words::other_statuses(self.of, status) {
            let theirs = told(self.values(other));
            let both: Vec<String> = own.intersection(&theirs).cloned().collect();
            if both.len() >= 2 {
                self.untold(format!(
                    "status: `{}` has the same words as `{}` ({}); rows are found and written by \
                     `{}` alone",
                    other.name,
                    status.name,
                    both.join(", "),
                    status.name
                ));
            }
        }
    }

    fn times(&mut self) {
        let mut used = Vec::new();
        let created = match &self.answers.created {
            Some(name) => self.named("created", name),
            None => {
                let found = self.likely_time(&words::CREATED, &[]);
                if found.is_none() {
                    self.open("created", quoted(OPEN), "no column looks like a creation time");
                }
                found
            }
        };
        if let Some(column) = created {
            self.put_time("created", column, &format!("it is {}", column.type_name));
            used.push(column);
        }
        match self.answers.attempted.as_deref() {
            Some("once") => self.put("attempts", quoted("once"), "as you said: it sends once"),
            Some("none") => {}
            Some(name) => {
                if let Some(column) = self.named("attempted", name) {
                    self.put_time("attempted", column, "as you said");
                    used.push(column);
                }
            }
            None => match self.likely_time(&words::ATTEMPTED, &used) {
                Some(column) => {
                    let why = "check that the application writes it before every send";
                    self.put_time("attempted", column, why);
                    used.push(column);
                }
                None => self.attempted_untold(&used),
            },
        }
        self.zone(&used);
    }

    /// Whether a column has times as text where the database does not compare such as times.
    fn is_text_time(&self, column: &Column) -> bool {
        !self.seen.text_times && words::is_text(&column.class)
    }

    /// The likeliest column of times of these names that is not used yet, one that is compared as
    /// such first.
    fn likely_time(&self, names: &[&str], used: &[&Column]) -> Option<&'a Column> {
        let mut found = words::picks(self.of, names, words::is_time);
        found.retain(|column| used.iter().all(|known| known.name != column.name));
        let fit = found.iter().copied().find(|column| !self.is_text_time(column));
        fit.or_else(|| found.first().copied())
    }

    /// Takes a column of times. Of one whose text is not compared as times the way out is said.
    fn put_time(&mut self, setting: &'static str, column: &Column, why: &str) {
        if !self.is_text_time(column) {
            return self.put(setting, quoted(&column.name), why);
        }
        let (name, ident) = (&column.name, &column.ident);
        let why = format!(
            "`{name}` is {}, and PostgreSQL compares no text as times: as `read` take a view with \
             {ident}::timestamptz as {ident} (::timestamp where it says no zone)",
            column.type_name
        );
        self.untold(format!("{setting}: {why}"));
        self.put(setting, quoted(name), why);
    }

    /// No column says when a row was last sent: those that may.
    fn attempted_untold(&mut self, used: &[&Column]) {
        let is_used = |column: &&Column| used.iter().any(|known| known.name == column.name);
        let may_be = words::may_be_attempted(self.of).into_iter();
        let may_be: Vec<String> = may_be
            .filter(|column| !is_used(column))
            .take(NAMED)
            .map(|column| format!("`{}`", column.name))
            .collect();
        let may_be = match may_be.is_empty() {
            true => String::new(),
            false => format!(" (is it {}?)", may_be.join(" or ")),
        };
        self.untold(format!(
            "attempted: no column says when a row was last sent{may_be}; without it, or attempts = \
             \"once\", nothing is proven absent"
        ));
    }

    /// What times mean that do not say their zone.
    fn zone(&mut self, used: &[&Column]) {
        if let Some(time) = &self.answers.time {
            return self.put("time", quoted(&time.clone()), "as you said");
        }
        let examples = |column: &Column| self.seen.examples.get(&column.name);
        let whole = used.iter().find(|column| column.class == TypeClass::Integer);
        if let Some(column) = whole {
            let largest = examples(column).into_iter().flatten();
            let largest = largest.filter_map(|value| value.parse::<i64>().ok()).max();
            let unit = largest.map_or("epoch_s", epoch_of);
            if largest.is_none() {
                self.untold(format!("time: no value of `{}` shows its unit", column.name));
            }
            return self.put("time", quoted(unit), "whole numbers since 1970, by their size");
        }
        let shown: Vec<(&Column, Vec<&String>)> =
            used.iter().map(|column| (*column, self.filled(column))).collect();
        // What holds nothing yet will be written as the column beside it.
        let says = |values: &[&String]| values.iter().all(|value| says_zone(value));
        let is_text = |column: &Column| column.class == TypeClass::Text;
        let texts = shown.iter().filter(|(column, values)| is_text(column) && !values.is_empty());
        let texts: Vec<&Vec<&String>> = texts.map(|(_, values)| values).collect();
        let all_say = !texts.is_empty() && texts.iter().all(|values| says(values));
        let zoneless = shown.iter().find(|(column, values)| match &column.class {
            TypeClass::Timestamp => true,
            TypeClass::Text if values.is_empty() => !all_say,
            TypeClass::Text => !says(values),
            _zoned => false,
        });
        let zoneless = zoneless.map(|(column, _)| *column);
        if let Some(column) = zoneless {
            let why = format!("`{}` has no zone: taken as UTC; check a row", column.name);
            self.untold(format!("time: {why}"));
            self.put("time", quoted("utc"), why);
        }
    }

    /// The looked-at values of a column that say anything.
    fn filled(&self, column: &Column) -> Vec<&'a String> {
        let values = self.seen.examples.get(&column.name).into_iter().flatten();
        values.filter(|value| !value.trim().is_empty()).collect()
    }

    fn reference(&mut self) {
        if let Some(name) = &self.answers.reference {
            if name != "none"
                && let Some(column) = self.named("psp_reference", name)
            {
                self.put("psp_reference", quoted(&column.name), "as you said");
            }
            return;
        }
        match self.reference_column() {
            Some((column, why)) => self.put("psp_reference", quoted(&column.name), why),
            None => self.reference_untold(),
        }
    }

    /// No column has the PSP's own ids for sure: those that may.
    fn reference_untold(&mut self) {
        let may_be = self.may_be_reference();
        let named: Vec<String> =
            may_be.iter().take(NAMED).map(|column| format!("`{}`", column.name)).collect();
        let named = match named.is_empty() {
            true => String::new(),
            false => format!(" (is it {}?)", named.join(" or ")),
        };
        let has_json = self.of.relation.columns.iter().any(|c| c.type_name.contains("json"));
        let inside = match has_json {
            true => "; where they stand inside JSON, read a view that has them as a column",
            false => "",
        };
        self.untold(format!(
            "psp_reference: no column was seen to have the PSP's own ids{named}: name it where \
             there is one{inside}; without it a payment is found by its tag alone, and its id is \
             not written into the row"
        ));
        if let Some(first) = may_be.first() {
            let write = match self.has_charges(first) {
                true => String::new(),
                false => format!(
                    ", and write it by {} = \"{{psp_reference}}\" in succeeded of [table.set]",
                    first.name
                ),
            };
            let why = format!(
                "by its name it may be the PSP's own id, which no value shows; take the # away \
                 where it is{write}"
            );
            let choice = Choice::new(quoted(&first.name), why);
            self.proposal.offers.push(("psp_reference", choice));
        }
    }

    /// Columns that may have the PSP's own ids by their names, the likeliest first.
    fn may_be_reference(&self) -> Vec<&'a Column> {
        let key = self.key();
        let account = self.account_column().map(|(column, _)| column.name.as_str());
        let may_be = |column: &&Column| {
            words::is_text(&column.class)
                && !key.contains(&column.name)
                && account != Some(column.name.as_str())
                && !self.points(column)
                && !self.repeats(column)
        };
        let of = self.of;
        let called = |name: &&str| of.relation.columns.iter().find(|c| plain(&c.name) == **name);
        words::MAY_BE_REFERENCE.iter().filter_map(called).filter(may_be).collect()
    }

    /// Whether a column points at another table.
    fn points(&self, column: &Column) -> bool {
        self.parent_of(column).is_some()
    }

    /// Ids of payments differ; what repeats names something that many rows share.
    fn repeats(&self, column: &Column) -> bool {
        let examples = self.seen.examples.get(&column.name).into_iter().flatten();
        let mut known = BTreeSet::new();
        examples.into_iter().any(|value| !known.insert(value))
    }

    /// The column of the PSP's own id, and what shows it.
    fn reference_column(&self) -> Option<(&'a Column, &'static str)> {
        if let Some(name) = &self.answers.reference {
            return self.column(name).map(|column| (column, "as you said"));
        }
        if let Some(column) = self.shown_reference() {
            return Some((column, "its values are ids of Stripe (pi_, ch_, re_)"));
        }
        let account = self.account_column().map(|(column, _)| column);
        let by_name = self.named_reference().filter(|column| {
            !self.points(column)
                && account.is_none_or(|a| a.name != column.name)
                && !(tell_accounts(&self.of.relation.columns).iter().any(|c| c.name == column.name)
                    && self.repeats(column))
        });
        by_name.map(|column| (column, "by its name; no value of it was seen that shows it"))
    }

    fn map(&mut self) {
        let Some(status) = self.status_column() else { return self.map_as_said() };
        let class = status.class.clone();
        let values = self.values(status);
        let sorted = self.sorted(status, &values);
        let (column, theirs) = self.written(status);
        let written = self.sorted(column, &theirs);
        // A view that leaves rows out shows fewer words than are written, and one that shows
        // others would not know again what was written.
        let is_strange = self.strange(status).is_some();
        let is_known = |value: &String| !is_strange || values.contains(value);
        let mut used: BTreeSet<String> = BTreeSet::new();
        self.from(&class, &sorted, &mut used);
        let said = self.answers;
        for (outcome, said, found) in [
            ("succeeded", &said.succeeded, written.succeeded),
            ("failed", &said.failed, written.failed),
            ("retryable", &said.retryable, written.retryable),
        ] {
            let why = if said.is_some() { "as you said" } else { BY_WORD };
            let found = found.filter(|value| !used.contains(value) && is_known(value));
            let value = said.clone().or(found);
            match value {
                Some(value) => {
                    if said.is_some() && is_stray(outcome, &value, &theirs) {
                        self.tell_strays(outcome, status, &[&value], &theirs);
                    }
                    let choice = Choice::new(literal(&column.class, &value), why);
                    self.proposal.map.push((outcome, choice));
                    used.insert(value);
                }
                None => {
                    let left = |value: &&String| !used.contains(*value) && is_known(value);
                    let left: Vec<&String> = theirs.iter().filter(left).collect();
                    self.untold(without(outcome, &status.name, &left));
                }
            }
        }
        let unused = |value: &&String| !used.contains(*value);
        let mut rest: Vec<String> = values.iter().filter(unused).cloned().collect();
        // A run names each value of the written table that the mapping does not know.
        let fits = !is_strange && (class == column.class || class == TypeClass::Text);
        let more = theirs.iter().filter(|value| fits && !values.contains(*value));
        rest.extend(more.filter(unused).cloned());
        let mut maps = self.proposal.map.iter();
        let is_open = maps.any(|(name, choice)| *name == "from" && choice.is_open());
        // Who says which values are stuck has said it of the others too, where all of them are.
        let mut known: Vec<String> = values.iter().chain(&theirs).cloned().collect();
        known.sort();
        known.dedup();
        let is_known = |value: &&String| known.is_empty() || known.contains(value);
        let strays: Vec<&String> = said.processing.iter().filter(|it| !is_known(it)).collect();
        if !strays.is_empty() {
            self.tell_strays("from", status, &strays, &known);
        }
        let is_said = !said.processing.is_empty() && strays.is_empty();
        self.doubtful_words();
        self.proposal.statuses = theirs;
        let told = Told { mark: words::mark_of(&values).to_owned(), is_open, is_said };
        let rest = self.further_success(&class, rest, &told.mark);
        self.ignore(&class, &rest, &told);
    }

    /// What was said of a status's values stands as it was said, whichever column will be the
    /// status: as text it is taken for numbers, too.
    fn map_as_said(&mut self) {
        let said = self.answers;
        let from = match said.processing.is_empty() {
            true => Choice::open(list(&[OPEN.to_owned()]), "no status"),
            false => Choice::new(list(&said.processing), "as you said"),
        };
        self.proposal.map.push(("from", from));
        for (outcome, value) in [
            ("succeeded", &said.succeeded),
            ("failed", &said.failed),
            ("retryable", &said.retryable),
        ] {
            if let Some(value) = value {
                self.proposal.map.push((outcome, Choice::new(quoted(value), "as you said")));
            }
        }
    }

    /// Tells of words that were taken for an outcome, and may also say that a call is on its way.
    fn doubtful_words(&mut self) {
        let is_doubtful = |choice: &Choice| {
            let word = plain(&choice.value);
            choice.why == BY_WORD && DOUBTFUL.contains(&word.rsplit('_').next().unwrap_or_default())
        };
        let maps = self.proposal.map.iter().filter(|(_, choice)| is_doubtful(choice));
        let told: Vec<String> = maps
            .map(|(outcome, choice)| {
                format!(
                    "{outcome}: {} may also say that a call is on its way; where it does, name it \
                     in `from`, and another value here",
                    choice.value
                )
            })
            .collect();
        self.proposal.untold.extend(told);
    }

    /// Tells of values that were named and that no row has. By a misspelt word of `from` a run
    /// would see nothing, and say nothing; another it would write.
    fn tell_strays(&mut self, setting: &str, status: &Column, strays: &[&String], of: &[String]) {
        let first: Vec<&String> = of.iter().take(NAMED_TO_CHOOSE).collect();
        let more = if of.len() > first.len() { ", …" } else { "" };
        let harm = match setting {
            "from" => "by a word that no row has, a run sees nothing and says nothing",
            _target => "a run writes it as it stands, and where it is misspelt nobody reads it",
        };
        self.untold(format!(
            "{setting}: `{}` was not seen to have {}; its values are {}{more}: {harm}",
            status.name,
            named(strays),
            named(&first)
        ));
    }

    /// Values that are neither processing nor targets. Only what is known to ask nothing is
    /// ignored: of another value a run says that it does not know it, rather than nothing.
    fn ignore(&mut self, class: &TypeClass, rest: &[String], told: &Told) {
        let word = |value: &String| words::unmarked(value, &told.mark).to_owned();
        let is_ignored = |value: &&String| match told.is_open {
            // Any other may be the one that is stuck.
            true => words::is_over(&word(value)),
            false => {
                let word = word(value);
                words::is_at_rest(&word) || (told.is_said && may_be_on_its_way(&word))
            }
        };
        let (ignored, open): (Vec<&String>, Vec<&String>) = rest.iter().partition(is_ignored);
        let (on_its_way, unknown): (Vec<&String>, Vec<&String>) =
            open.into_iter().partition(|value| may_be_on_its_way(&word(value)));
        let by_said: Vec<&String> =
            ignored.iter().filter(|value| !words::is_at_rest(&word(value))).copied().collect();
        if !by_said.is_empty() && !told.is_open {
            let by_said = named(&by_said);
            self.untold(format!("ignore: {by_said} only because of what you said of `from`"));
        }
        let left = "left out of `from` and of `ignore`; a run that meets such a row says so and \
                    exits 3";
        if !on_its_way.is_empty() {
            self.untold(format!(
                "ignore: {} may also say that a call is on its way: {left}",
                named(&on_its_way)
            ));
        }
        if !unknown.is_empty() && told.is_open {
            let unknown = named(&unknown);
            self.untold(format!("ignore: {unknown} may be what `from` is to name: {left}"));
        } else if !unknown.is_empty() {
            self.untold(format!("ignore: the meaning of {} is not known: {left}", named(&unknown)));
        }
        if !ignored.is_empty() {
            let items: Vec<String> = ignored.iter().map(|value| literal(class, value)).collect();
            let mut why = "values that tieout has nothing to do with".to_owned();
            for remark in self.remarks(&ignored, &told.mark) {
                why = format!("{why}; {remark}");
                self.untold(format!("ignore: {remark}"));
            }
            self.put("ignore", format!("[{}]", items.join(", ")), why);
        }
    }

    fn values(&self, status: &Column) -> Vec<String> {
        let seen = self.seen.values.get(&status.name).cloned().unwrap_or_default();
        values_of(self.of, status, seen)
    }

    /// The status as it is written, with its values: a view may leave rows out.
    fn written(&self, status: &'a Column) -> (&'a Column, Vec<String>) {
        match written_below(self.of, self.survey, self.answers) {
            Some((base, column)) => (column, values_of(base, column, self.seen.written.clone())),
            None => (status, self.values(status)),
        }
    }

    fn sorted(&self, status: &Column, values: &[String]) -> words::Sorted {
        // `settled`: false is on its way, true is done.
        if status.class == TypeClass::Boolean {
            return words::Sorted {
                processing: vec!["false".to_owned()],
                succeeded: Some("true".to_owned()),
                ..words::Sorted::default()
            };
        }
        words::sorted(values)
    }

    /// Values of rows that are stuck, as far as it is known.
    fn stuck_values(&self) -> Vec<String> {
        if !self.answers.processing.is_empty() {
            return self.answers.processing.clone();
        }
        let Some(status) = self.status_column() else { return Vec::new() };
        let sorted = self.sorted(status, &self.values(status));
        if sorted.processing.is_empty() { sorted.pending } else { sorted.processing }
    }

    fn from(&mut self, class: &TypeClass, sorted: &words::Sorted, used: &mut BTreeSet<String>) {
        let said = &self.answers.processing;
        if let Some(why) = self.may_be_paid(sorted).filter(|_| said.is_empty()) {
            return self.leave_from_open(&why);
        }
        let (from, why) = match (said.as_slice(), sorted.processing.as_slice()) {
            ([_, ..], _) => (said.clone(), "as you said"),
            ([], [_, ..]) => (sorted.processing.clone(), "by their words: a call is on its way"),
            ([], []) => (sorted.pending.clone(), "by its word; see what could not be told"),
        };
        if from.is_empty() {
            let why = "no value says that a call is on its way: name the values of rows that are \
                       stuck while the PSP's answer is unknown";
            return self.leave_from_open(why);
        }
        let is_unpaid = |value: &&String| {
            said.is_empty() && (sorted.processing.is_empty() || words::may_be_unpaid(value))
        };
        let unpaid: Vec<&String> = from.iter().filter(is_unpaid).collect();
        if !unpaid.is_empty() {
            self.untold(format!(
                "from: {} may also mean that the customer has not paid yet; then give absent a \
                 value of its own",
                named(&unpaid)
            ));
        }
        let items: Vec<String> = from.iter().map(|value| literal(class, value)).collect();
        let choice = Choice::new(format!("[{}]", items.join(", ")), why);
        self.proposal.map.push(("from", choice));
        used.extend(from);
    }

    fn leave_from_open(&mut self, why: &str) {
        self.untold(format!("from: {why}"));
        let open = Choice::open(list(&[OPEN.to_owned()]), why);
        self.proposal.map.push(("from", open));
    }

    fn sets(&mut self) {
        // Columns of the written table, whichever relation is read.
        let written = match self.of.relation.is_view {
            true => self.base().unwrap_or(self.of),
            false => self.of,
        };
        let mut set = Vec::new();
        let mut put = |part: &'static str, column: &Column, template: &str| {
            if !column.generated && column.may_write {
                set.push((part, column.name.clone(), template.to_owned()));
            }
        };
        let (always, mut told) = self.always(written);
        for (column, template) in always {
            put("always", column, template);
        }
        let reference = self.proposal.choice("psp_reference").map(|c| c.value.clone());
        // Where the PSP's own id is the key, it is there from the beginning.
        let key = self.proposal.choice("key").map(|c| c.value.clone()).unwrap_or_default();
        let same = |column: &&Column| {
            let name = quoted(&column.name);
            reference.as_ref() == Some(&name) && !key.contains(&name)
        };
        let mut narrow = None;
        match written.relation.columns.iter().find(same) {
            Some(column) if self.has_charges(column) => {
                narrow = Some(format!(
                    "set: `{}` has ids of charges (ch_), so that none is written: what would be \
                     written is the payment intent's id (pi_); rows are found by either",
                    column.name
                ));
            }
            Some(column) if has_room(column) => put("succeeded", column, "{psp_reference}"),
            Some(column) => {
                narrow = Some(format!(
                    "set: `{}` ({}) has no room for an id of Stripe's, so that none is written",
                    column.name, column.type_name
                ));
            }
            None => {}
        }
        for (outcome, says, column) in self.ends(written) {
            match self.misfit(column, &format!("{{psp_time}}\" to {outcome}")) {
                None => put(outcome, column, "{psp_time}"),
                Some(why) => told.push(format!(
                    "set: `{}` may say when a row {says}, and is not written: {why}",
                    column.name
                )),
            }
        }
        told.extend(self.failed_why(written));
        self.proposal.set = set;
        self.proposal.untold.extend(told);
        self.proposal.untold.extend(narrow);
    }

    /// What each write changes besides: when it was, and how many there were; and what to say.
    fn always<'w>(&self, written: &'w Surveyed) -> (Vec<(&'w Column, &'static str)>, Vec<String>) {
        let key = self.key();
        let is_written =
            |column: &&Column| !column.generated && column.may_write && !key.contains(&column.name);
        let (mut always, mut told) = (Vec::new(), Vec::new());
        if let Some(column) = self.updated(written).filter(is_written) {
            match self.misfit(column, "{now}\" to always") {
                None => always.push((column, "{now}")),
                Some(why) => told.push(format!(
                    "set: `{}` may say when a row was changed, and is not written: {why}",
                    column.name
                )),
            }
        }
        let lock = pick(written, &words::LOCK, words::is_whole).filter(is_written);
        let version = words::version(written).filter(is_written);
        match (lock, version) {
            (Some(column), _) => always.push((column, "+1")),
            (None, Some(column)) if self.counts_writes(column, written) => {
                always.push((column, "+1"));
                told.push(format!(
                    "set: `{}` is counted up with each write, as optimistic locking does; take it \
                     out of always where it counts something else",
                    column.name
                ));
            }
            (None, Some(column)) => told.push(format!(
                "set: `{0}` may count the writes of a row; where your application counts it up, \
                 add {0} = \"+1\" to always: else a save of what it read before takes the write \
                 back",
                column.name
            )),
            (None, None) => {}
        }
        (always, told)
    }

    /// The column that says when a row was changed last: a time, or a whole number that looks so.
    fn updated<'w>(&self, written: &'w Surveyed) -> Option<&'w Column> {
        let is_time = |column: &&Column| self.has_epochs(column) || self.filled(column).is_empty();
        let whole = || pick(written, &words::UPDATED, words::is_whole).filter(is_time);
        pick(written, &words::UPDATED, words::is_moment).or_else(whole)
    }

    /// Whether the whole numbers of a column count from 1970, by their size.
    fn has_epochs(&self, column: &Column) -> bool {
        self.largest(column).is_some_and(|largest| largest >= SECONDS_FROM)
    }

    /// The largest looked-at number of a column; none where all are 0, as for never.
    fn largest(&self, column: &Column) -> Option<i64> {
        let numbers =
            self.filled(column).into_iter().filter_map(|it| it.trim().parse::<i64>().ok());
        numbers.max().filter(|largest| *largest != 0)
    }

    /// Whether a column of whole numbers that is called so counts the writes of a row.
    fn counts_writes(&self, column: &Column, written: &Surveyed) -> bool {
        let relation = &written.relation;
        let is_filled = !relation.is_view && !relation.nullable.contains(&column.name);
        let is_count = |value: &&String| {
            value.trim().parse::<i64>().is_ok_and(|count| (0..=WRITES_MAX).contains(&count))
        };
        is_filled && self.filled(column).iter().all(is_count)
    }

    /// Why no time can be written into a column: `time` says of all columns how theirs are meant.
    /// `template` ends the sentence that says what to add.
    fn misfit(&self, column: &Column, template: &str) -> Option<String> {
        let time = self.proposal.choice("time").map(|choice| choice.value.trim_matches('"'));
        let is_epoch = matches!(time, Some("epoch_s" | "epoch_ms"));
        let unit = self.largest(column).map(epoch_of);
        let says_utc = words::says_utc(&column.name);
        let fits = match &column.class {
            TypeClass::Timestamp if says_utc => time == Some("utc"),
            TypeClass::Timestamp => time.is_some() && !is_epoch,
            TypeClass::Text => !is_epoch,
            TypeClass::Integer => is_epoch && unit.is_none_or(|unit| time == Some(unit)),
            _zoned => true,
        };
        let said = match &column.class {
            TypeClass::Timestamp if says_utc => "utc",
            TypeClass::Timestamp => "a zone",
            TypeClass::Text => "no epoch",
            _whole => unit.unwrap_or("epoch_s or epoch_ms"),
        };
        (!fits).then(|| {
            format!(
                "it is {}, and `time` would have to say {said}; where that fits all columns of \
                 times, say so, and add {} = \"{template}",
                column.type_name, column.name
            )
        })
    }

    /// Columns whose values could not be read: what they tell is not known.
    fn unread(&mut self) {
        if !self.seen.unread.is_empty() {
            self.untold(format!(
                "account and kind: the values of `{}` could not be read; do they tell accounts, or \
                 refunds from charges?",
                self.seen.unread.join("`, `")
            ));
        }
    }

    fn histories(&mut self) {
        for table in &self.seen.histories {
            let found = self.survey.iter().find(|one| one.name == *table);
            let counted_on = found.map_or(Vec::new(), words::counted_on);
            let text = match counted_on.is_empty() {
                true => format!(
                    "history: `{table}` points at this table; where the application records each \
                     change there, map it as [table.history]"
                ),
                false => format!(
                    "history: `{table}` points at this table, and is nothing for [table.history]: \
                     what stands in {} follows from the row before, which no template tells, so \
                     that a unique index refuses the INSERT, and with it the status; let your \
                     application record there what tieout wrote",
                    named(&counted_on.iter().map(|column| &column.name).collect::<Vec<_>>())
                ),
            };
            self.proposal.untold.push(text);
        }
    }
}

/// What is known of a status besides its values.
struct Told {
    /// What all values begin with.
    mark: String,
    /// Nothing tells which of them are stuck.
    is_open: bool,
    /// A person said which of them are.
    is_said: bool,
}

/// What to say of an outcome that has no value, of these that are left.
fn without(outcome: &str, status: &str, left: &[&String]) -> String {
    let may_be = |value: &&String| outcome == "failed" && words::may_be_failed(value);
    let candidates: Vec<String> =
        left.iter().copied().filter(may_be).map(|value| format!("`{value}`")).collect();
    if candidates.is_empty() {
        return format!(
            "{outcome}: no value of {status} says it; the outcome lives in tieout's tables alone"
        );
    }
    format!(
        "{outcome}: could be {}; name it with --{outcome}, or the outcome lives in tieout's tables \
         alone",
        candidates.join(" or ")
    )
}

/// A status's values: those that were seen, and those that CHECKs over it alone name. What one over
/// several columns names may be another's.
fn values_of(of: &Surveyed, status: &Column, seen: Vec<String>) -> Vec<String> {
    let mut values = seen;
    if status.class == TypeClass::Boolean {
        values = vec!["false".to_owned(), "true".to_owned()];
    }
    for check in of.checks.iter().filter(|check| is_of_alone(check, status, of)) {
        values.extend(check.split('\'').skip(1).step_by(2).map(str::to_owned));
    }
    let mut known = BTreeSet::new();
    values.retain(|value| !value.is_empty() && known.insert(value.clone()));
    values
}

/// Whether a CHECK names this column, and no other of its relation.
fn is_of_alone(check: &str, column: &Column, of: &Surveyed) -> bool {
    // Between its literals, whose quotes are doubled inside.
    let outside: Vec<&str> = check.split('\'').step_by(2).collect();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let names = |name: &str| {
        let mut words = outside.iter().flat_map(|text| text.split(|c| !is_word(c)));
        let quoted = format!("\"{name}\"");
        words.any(|word| word.eq_ignore_ascii_case(name))
            || (!name.chars().all(is_word) && outside.iter().any(|text| text.contains(&quoted)))
    };
    let mut others = of.relation.columns.iter().filter(|other| other.name != column.name);
    names(&column.name) && !others.any(|other| names(&other.name))
}

/// Why a status cannot be written, for whoever names another.
fn unwritable(of: &Surveyed, status: &Column) -> String {
    let Column { name, type_name, .. } = status;
    match of.relation.is_view {
        true => format!(
            "`{name}` ({type_name}) is worked out by the view and cannot be written, and no table \
             that this login sees below it has a column of the name: name a column that the view \
             takes from its table as it is"
        ),
        false => format!(
            "`{name}` ({type_name}) is generated and cannot be written: name the column that your \
             application writes"
        ),
    }
}

/// `` `a`, `b` ``.
fn named(values: &[&String]) -> String {
    let named: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    named.join(", ")
}

/// `` `a` is ``, `` `a`, `b` are ``.
fn said_of(values: &[String]) -> String {
    let verb = if values.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", named(&values.iter().collect::<Vec<_>>()))
}

/// `2 values (`a`, `b`)`.
fn counted(values: &[String]) -> String {
    let named: Vec<String> = values.iter().take(NAMED).map(|v| format!("`{v}`")).collect();
    let more = if values.len() > NAMED { ", …" } else { "" };
    let count = count::counted(values.len(), "value", "values");
    format!("{count} ({}{more})", named.join(", "))
}

/// Whether an amount has a fraction that is not 0.
fn has_fraction(value: &str) -> bool {
    let fraction = value.rsplit_once(['.', ',']).map_or("", |(_, fraction)| fraction);
    fraction.contains(|c: char| matches!(c, '1'..='9'))
}

/// Whether a column is a number that may have a fraction: no setting takes it for a flag.
fn is_decimal(column: &Column) -> bool {
    matches!(column.class, TypeClass::Decimal | TypeClass::Float)
}

/// Whether a whole number is one of a flag.
fn is_bit(value: &str) -> bool {
    matches!(value, "0" | "1")
}

/// What a whole number counts since 1970, by its size.
fn epoch_of(largest: i64) -> &'static str {
    if largest >= MILLIS_FROM { "epoch_ms" } else { "epoch_s" }
}

/// Whether a column is of binary floats by its name; SQLite's decimals are called otherwise.
fn is_binary(column: &Column) -> bool {
    let name = column.type_name.to_ascii_uppercase();
    column.class == TypeClass::Float && ["REAL", "FLOA", "DOUB"].iter().any(|it| name.contains(it))
}

/// Whether a time as text says its zone: `…Z`, `…+01:00`, `…+01`.
fn says_zone(value: &str) -> bool {
    let time = value.get(11..).unwrap_or("");
    value.ends_with('Z') || time.contains('+') || time.contains('-')
}

/// Whether a column can hold an id of Stripe's.
fn has_room(column: &Column) -> bool {
    let most = column.max_chars.unwrap_or(usize::MAX);
    let is_text = matches!(column.class, TypeClass::Text | TypeClass::Padded);
    is_text && PspKind::Stripe.id_chars().is_none_or(|least| most >= least)
}
