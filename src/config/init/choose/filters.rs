//! Which rows are left out, and how many of the looked-at rows each filter leaves out: a row that
//! `where` hides is decided by no run, and no run says so.

use crate::config::document::quoted;
use crate::config::init::choose::Choosing;
use crate::config::init::words::{self, pick};
use crate::config::init::{Choice, list, literal};
use crate::store::inspect::{Beside, CountedBy, Tally};
use crate::store::source_table::{Column, TypeClass};
use crate::store::tellers::{plain, says_no, says_yes};

/// Why rows are left out that another one stands for.
const SUPERSEDED: &str = "rows that another one stands for are out";

/// A filter that may be proposed.
struct Filter<'a> {
    column: &'a Column,
    test: Test,
    why: String,
}

/// Which rows a filter keeps.
enum Test {
    /// Those that have NULL there.
    IsNull,
    /// Those of this flag.
    Is(bool),
    /// Those that are not flagged; NULL is not flagged.
    IsNotTrue,
    /// Those of other values than these, and of none.
    NotIn(Vec<String>),
}

/// A column that may say that a row is not to be touched, of which only a person can tell.
struct Doubt<'a> {
    column: &'a Column,
    /// What it may say of a row.
    says: &'static str,
    /// The test of `where` that keeps the others, or those alone.
    test: String,
    /// Those alone are kept.
    keeps: bool,
}

/// How many of the looked-at rows a filter leaves out.
struct LeftOut {
    rows: i64,
    /// How many of them have NULL there.
    null: i64,
    /// Of how many.
    of: i64,
    /// What those are.
    what: &'static str,
}

impl Test {
    fn keeps(&self, value: Option<&str>) -> bool {
        match self {
            Self::IsNull => value.is_none(),
            Self::Is(wanted) => value == Some(if *wanted { "true" } else { "false" }),
            Self::IsNotTrue => value != Some("true"),
            Self::NotIn(others) => value.is_none_or(|value| others.iter().all(|it| it != value)),
        }
    }

    /// Whether a row is kept by what a person says with `true`, so that NULL may mean either.
    fn asks_for_true(&self) -> bool {
        matches!(self, Self::Is(true))
    }
}

impl Filter<'_> {
    fn text(&self) -> String {
        let name = quoted(&self.column.name);
        match &self.test {
            Test::IsNull => format!("{{ column = {name}, is = \"null\" }}"),
            Test::Is(wanted) => format!("{{ column = {name}, in = [{wanted}] }}"),
            Test::IsNotTrue => format!("{{ column = {name}, not_in = [true] }}"),
            Test::NotIn(others) => {
                let others: Vec<String> =
                    others.iter().map(|other| literal(&self.column.class, other)).collect();
                format!("{{ column = {name}, not_in = [{}] }}", others.join(", "))
            }
        }
    }
}

fn where_of(filters: &[Filter<'_>]) -> String {
    let texts: Vec<String> = filters.iter().map(Filter::text).collect();
    format!("[{}]", texts.join(", "))
}

impl<'a> Choosing<'a> {
    /// What to ask of each column that a filter may be proposed for.
    pub(super) fn filter_questions(&self) -> Vec<Beside> {
        let Some(status) = words::status(self.of, self.answers.status.as_deref()) else {
            return Vec::new();
        };
        let question = |filter: Filter<'_>| Beside {
            column: filter.column.name.clone(),
            status: status.name.clone(),
            by: match filter.test {
                Test::IsNull => CountedBy::Null,
                Test::Is(_) | Test::IsNotTrue | Test::NotIn(_) => CountedBy::Value,
            },
        };
        self.possible_filters().into_iter().map(question).collect()
    }

    pub(super) fn filters(&mut self) {
        let is_untold = |filter: &Filter<'_>| {
            let left = self.left_out(filter);
            filter.test.asks_for_true()
                && left.is_some_and(|it| it.null > it.of.saturating_sub(it.null))
        };
        let (offered, mut filters): (Vec<Filter<'a>>, Vec<Filter<'a>>) =
            self.possible_filters().into_iter().partition(is_untold);
        if !filters.is_empty() {
            let why = |filter: &Filter<'_>| self.why_filter(filter, &filters);
            let whys: Vec<String> = filters.iter().map(why).collect();
            self.put("where", where_of(&filters), whys.join("; "));
        }
        for filter in &filters {
            self.tell_hidden(filter);
        }
        for filter in offered {
            self.offer_filter(filter, &mut filters);
        }
        self.tell_doubts();
        self.may_end();
        self.may_be_test();
    }

    /// Filters by what columns are called and have, in the order of the file.
    fn possible_filters(&self) -> Vec<Filter<'a>> {
        let mut found = Vec::new();
        let mut keep = |column: &'a Column, test: Test, why: String| {
            found.push(Filter { column, test, why });
        };
        if let Some(column) = pick(self.of, &words::DELETED, words::is_moment) {
            keep(column, Test::IsNull, "deleted rows are out".to_owned());
        }
        for (column, wanted, why) in self.filtered_flags() {
            let (test, why) = match (self.may_be_null(column), wanted) {
                (false, wanted) => (Test::Is(wanted), why.to_owned()),
                (true, false) => (Test::IsNotTrue, why.to_owned()),
                (true, true) => (Test::Is(true), format!("{why}, and NULL is left out")),
            };
            keep(column, test, why);
        }
        for column in words::called(self.of, &words::SUPERSEDED_BY, words::is_no_flag) {
            if self.may_be_null(column) {
                keep(column, Test::IsNull, SUPERSEDED.to_owned());
            }
        }
        if let Some((column, values)) = self.account_column() {
            let others: Vec<String> =
                values.iter().filter(|value| words::is_other(value)).cloned().collect();
            if !others.is_empty() {
                let why = format!("{} is not asked at Stripe", others.join(", "));
                keep(column, Test::NotIn(others), why);
            }
        }
        if let Some(column) = self.takes_back() {
            let why = format!("rows that have `{}` are no charges", column.name);
            keep(column, Test::IsNull, why);
        }
        for (column, _said) in self.marked_flags() {
            let test = match &column.class {
                TypeClass::Boolean => Test::IsNotTrue,
                _other => Test::NotIn(self.seen_of(column).to_vec()),
            };
            let why = format!("rows that `{}` marks are no charges", column.name);
            keep(column, test, why);
        }
        found
    }

    /// Booleans that say plainly which rows count, each with what those have, and why.
    fn filtered_flags(&self) -> Vec<(&'a Column, bool, &'static str)> {
        let (of, live) = (self.of, self.answers.live);
        let mut found: Vec<(&'a Column, bool, &'static str)> = Vec::new();
        for (names, wanted, why) in [
            (&words::IS_DELETED[..], false, "deleted rows are out"),
            (&words::IS_LIVE[..], live, "live and test rows in one table"),
            (&words::IS_TEST[..], !live, "live and test rows in one table"),
        ] {
            found.extend(pick(of, names, words::is_flag).map(|column| (column, wanted, why)));
        }
        for (names, wanted, why) in [
            (&words::IS_CURRENT[..], true, "rows that are not current are out"),
            (&words::IS_SUPERSEDED[..], false, SUPERSEDED),
        ] {
            let columns = words::called(of, names, words::is_flag).into_iter();
            found.extend(columns.map(|column| (column, wanted, why)));
        }
        found
    }

    /// Whether a column may be NULL; of a view no catalogue tells it.
    pub(super) fn may_be_null(&self, column: &Column) -> bool {
        let relation = &self.of.relation;
        relation.is_view || relation.nullable.contains(&column.name)
    }

    /// How many of the looked-at rows a filter leaves out: of the stuck ones, where some were seen.
    fn left_out(&self, filter: &Filter<'_>) -> Option<LeftOut> {
        let tallies = self.seen.tallies.get(&filter.column.name)?;
        let stuck = self.stuck_values();
        let is_stuck = |tally: &&Tally| tally.status.as_ref().is_some_and(|it| stuck.contains(it));
        let of_stuck: Vec<&Tally> = tallies.iter().filter(is_stuck).collect();
        let (seen, what): (Vec<&Tally>, &'static str) = match of_stuck.is_empty() {
            true => (tallies.iter().collect(), "rows"),
            false => (of_stuck, "stuck rows"),
        };
        let count = |is: &dyn Fn(&Tally) -> bool| {
            let rows = seen.iter().filter(|tally| is(tally)).map(|tally| tally.rows);
            rows.fold(0_i64, i64::saturating_add)
        };
        let is_left_out = |tally: &Tally| !filter.test.keeps(tally.value.as_deref());
        Some(LeftOut {
            rows: count(&is_left_out),
            null: count(&|tally| tally.value.is_none()),
            of: count(&|_any| true),
            what,
        })
    }

    /// Why a filter is there, by its column where another one says the same, and what it leaves
    /// out.
    fn why_filter(&self, filter: &Filter<'_>, filters: &[Filter<'_>]) -> String {
        let is_shared = filters.iter().filter(|other| other.why == filter.why).count() > 1;
        let why = match is_shared {
            true => format!("{} by `{}`", filter.why, filter.column.name),
            false => filter.why.clone(),
        };
        match self.left_out(filter).filter(|left| left.rows > 0) {
            Some(LeftOut { rows, of, what, .. }) => {
                format!("{why}: {rows} of {of} looked-at {what}")
            }
            None => why,
        }
    }

    /// Tells of a filter that leaves out so many rows that it may well mean something else.
    fn tell_hidden(&mut self, filter: &Filter<'_>) {
        let Some(LeftOut { rows, of, what, .. }) = self.left_out(filter) else { return };
        let many = match &filter.test {
            Test::Is(_) | Test::IsNotTrue => rows > of.saturating_sub(rows),
            Test::IsNull | Test::NotIn(_) => rows == of,
        };
        if rows > 0 && many {
            self.untold(format!(
                "where: `{}` leaves out {rows} of {of} looked-at {what}: no run decides such a \
                 row, and none says so; take it out of where if they are to be decided",
                filter.column.name
            ));
        }
    }

    /// A flag that most rows do not have: whether NULL says yes or no only a person can tell, and
    /// no row is hidden by a guess.
    fn offer_filter(&mut self, filter: Filter<'a>, filters: &mut Vec<Filter<'a>>) {
        let Some(LeftOut { null, of, what, .. }) = self.left_out(&filter) else { return };
        let name = filter.column.name.clone();
        let is_of_versions = words::IS_CURRENT.contains(&plain(&name).as_str());
        let (word, both) = match (is_of_versions, self.answers.live) {
            (true, _) => ("current", "current and other"),
            (false, true) => ("live", "live and test"),
            (false, false) => ("test", "live and test"),
        };
        let instead = if filters.is_empty() { "" } else { ", in place of the where above," };
        let why = format!(
            "`{name}` is NULL in {null} of {of} looked-at {what}, so that it could not be told by \
             it which rows are {word}; take the # away{instead} where NULL says that a row is not: \
             such a row is decided by no run then"
        );
        self.untold(format!(
            "where: `{name}` is NULL in {null} of {of} looked-at {what}, so that {both} rows are \
             not told apart: look at its line behind a # in the file"
        ));
        filters.push(filter);
        self.proposal.offers.retain(|(setting, _)| *setting != "where");
        self.proposal.offers.push(("where", Choice::new(where_of(filters), why)));
    }

    /// Columns that may say that a row is not to be touched: a row that is left in is decided and
    /// written.
    fn tell_doubts(&mut self) {
        let mut found = self.doubtful_times();
        found.extend(self.doubtful_flags());
        // ERPNext and its kin.
        if let Some(column) = pick(self.of, &words::DOCSTATUS, words::is_whole) {
            let test = "not_in = [2]".to_owned();
            found.push(Doubt { column, says: "cancelled (2)", test, keeps: false });
        }
        for Doubt { column, says, test, keeps } in found {
            let name = quoted(&column.name);
            let such = if keeps { "a row that is not" } else { "such a row" };
            self.untold(format!(
                "where: `{}` may say that a row is {says}; where it does, add {{ column = {name}, \
                 {test} }} to where: else {such} is decided and written as any other",
                column.name
            ));
        }
    }

    /// Columns that have a time, or another row, where a row is not to be touched: in a type that
    /// does not tell how, or by a word that may mean another thing.
    fn doubtful_times(&self) -> Vec<Doubt<'a>> {
        let of = self.of;
        let deleted = pick(of, &words::DELETED, words::is_odd_moment);
        let mut found: Vec<(&'a Column, &'static str)> =
            deleted.into_iter().map(|column| (column, "deleted")).collect();
        for (names, says) in
            [(&words::REVERSED_AT[..], "reversed"), (&words::VOIDED_AT[..], "voided")]
        {
            let columns = words::called(of, names, words::is_no_flag).into_iter();
            found.extend(columns.map(|column| (column, says)));
        }
        let superseded = words::called(of, &words::SUPERSEDED_BY, words::is_no_flag).into_iter();
        let odd = superseded.filter(|column| !self.may_be_null(column));
        found.extend(odd.map(|column| (column, "superseded")));
        let doubt = |(column, says): (&'a Column, &'static str)| {
            let test = self.kept_empty(column).to_owned();
            Doubt { column, says, test, keeps: false }
        };
        found.into_iter().map(doubt).collect()
    }

    /// Flags that may say that a row is not to be touched: in a type that does not tell how, or by
    /// a word that does not say for how long, or of what.
    fn doubtful_flags(&self) -> Vec<Doubt<'a>> {
        let of = self.of;
        let mut found: Vec<(&'a Column, &'static str, bool)> = Vec::new();
        for (columns, says, keeps) in [
            (words::picks(of, &words::IS_DELETED, words::is_odd_flag), "deleted", false),
            (words::picks(of, &words::IS_CANCELLED, words::is_any_flag), "cancelled", false),
            (words::picks(of, &words::IS_TEST, words::is_odd_flag), "a test", !self.answers.live),
        ] {
            found.extend(columns.into_iter().map(|column| (column, says, keeps)));
        }
        for (columns, says, keeps) in [
            (words::called(of, &words::IS_SUPERSEDED, words::is_odd_flag), "superseded", false),
            (words::called(of, &words::IS_CURRENT, words::is_odd_flag), "current", true),
            (words::called(of, &words::IS_REVERSED, words::is_any_flag), "reversed", false),
            (words::called(of, &words::IS_VOIDED, words::is_any_flag), "voided", false),
            (words::called(of, &words::IS_REFUNDED, words::is_any_flag), "refunded", false),
            (words::called(of, &words::ON_HOLD, words::is_any_flag), "on hold", false),
            (words::called(of, &words::IS_LOCKED, words::is_any_flag), "locked", false),
            (words::called(of, &words::IS_TEMPLATE, words::is_any_flag), "a template", false),
        ] {
            let flags = columns.into_iter().filter(|column| self.has_flags(column));
            found.extend(flags.map(|column| (column, says, keeps)));
        }
        found.retain(|(column, ..)| self.is_flag(column));
        let doubt = |(column, says, keeps): (&'a Column, &'static str, bool)| {
            let test = self.kept(column, keeps);
            Doubt { column, says, test, keeps }
        };
        found.into_iter().map(doubt).collect()
    }

    /// Columns that may say until when a row counts: NULL, or a day that never comes.
    fn may_end(&mut self) {
        let of = self.of;
        for column in of.relation.columns.iter().filter(|column| words::is_valid_to(column)) {
            let name = &column.name;
            let values = self.filled(column);
            let far = values.into_iter().find(|value| words::is_for_ever(value));
            let kept = match (far, words::is_text(&column.class)) {
                (None, _) if self.may_be_null(column) => "is = \"null\"".to_owned(),
                (None, _) => "in = […]".to_owned(),
                (Some(far), true) => format!("in = [{}]", quoted(far)),
                (Some(far), false) => {
                    self.untold(format!(
                        "where: `{name}` may say that a row no longer counts, where it is not \
                         `{far}`, and no where asks for a time: where it does, read a view that \
                         leaves such rows out, else they are decided and written as any other"
                    ));
                    continue;
                }
            };
            self.untold(format!(
                "where: `{name}` may say that a row no longer counts; where it does, add {{ \
                 column = {}, {kept} }} to where: else such a row is decided and written as any \
                 other",
                quoted(name)
            ));
        }
    }

    /// The test of `where` that keeps the rows which have nothing in a column.
    fn kept_empty(&self, column: &Column) -> &'static str {
        let is_never_null = !self.may_be_null(column);
        match &column.class {
            TypeClass::Integer if is_never_null => "in = [0]",
            TypeClass::Text | TypeClass::Padded if is_never_null => "in = [\"\"]",
            _may_be_null => "is = \"null\"",
        }
    }

    /// Whether all looked-at values of a column are those of a flag.
    fn has_flags(&self, column: &Column) -> bool {
        self.filled(column).iter().all(|value| says_yes(value) || says_no(value))
    }

    /// Whether a column that is called as a flag may be one, by its values: text may be a time.
    fn is_flag(&self, column: &Column) -> bool {
        if !words::is_text(&column.class) {
            return true;
        }
        let values = self.filled(column);
        let is_of_flag = |value: &&String| says_yes(value) || says_no(value);
        match values.is_empty() {
            true => words::is_called_flag(&column.name),
            false => values.iter().all(is_of_flag),
        }
    }

    /// The test of `where` that keeps the rows which have a flag, or those that do not.
    fn kept(&self, column: &Column, keeps: bool) -> String {
        let values = self.filled(column);
        let yes = match &column.class {
            TypeClass::Boolean => "true".to_owned(),
            TypeClass::Integer => "1".to_owned(),
            _text => values
                .iter()
                .find(|value| says_yes(value))
                .map_or_else(|| "…".to_owned(), |value| quoted(value)),
        };
        let is_never_null = !self.may_be_null(column);
        match (keeps, &column.class) {
            (true, _) => format!("in = [{yes}]"),
            (false, TypeClass::Boolean) if is_never_null => "in = [false]".to_owned(),
            (false, TypeClass::Integer) if is_never_null => "in = [0]".to_owned(),
            (false, _nullable) => format!("not_in = [{yes}]"),
        }
    }

    /// Whether a column that is called so has words of live and test; a mode may be of anything.
    fn tells_live(&self, column: &Column) -> bool {
        let values = self.filled_values(column);
        let is_known = |value: &String| {
            let word = plain(value);
            words::LIVE.contains(&word.as_str()) || words::TEST.contains(&word.as_str())
        };
        plain(&column.name) != words::MODE || (!values.is_empty() && values.iter().all(is_known))
    }

    /// The known values of a column that say anything.
    fn filled_values(&self, column: &Column) -> Vec<String> {
        let values = self.seen.values.get(&column.name).into_iter().flatten();
        values.filter(|value| !value.is_empty()).cloned().collect()
    }

    /// A column that may tell live rows from test rows by its words.
    fn may_be_test(&mut self) {
        let found = words::picks(self.of, &words::ENVIRONMENT, words::is_word);
        let Some(column) = found.into_iter().find(|it| self.tells_live(it)) else { return };
        let values = self.filled_values(column).into_iter();
        let (live, test): (Vec<String>, Vec<String>) =
            values.partition(|value| words::LIVE.contains(&plain(value).as_str()));
        let (kept, others) = if self.answers.live { (live, test) } else { (test, live) };
        if others.is_empty() && !kept.is_empty() {
            return;
        }
        let kept = if kept.is_empty() { "[…]".to_owned() } else { list(&kept) };
        self.untold(format!(
            "where: `{}` may tell live rows from test rows; where it does, add {{ column = {}, \
             in = {kept} }} to where: else those of the other are decided and written as well",
            column.name,
            quoted(&column.name)
        ));
    }
}
