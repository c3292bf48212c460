//! Which rows are left out, and how many of the looked-at rows each filter leaves out: a row that
//! `where` hides is decided by no run, and no run says so.

use crate::config::document::quoted;
use crate::config::init::choose::Choosing;
use crate::config::init::words::{self, pick};
use crate::config::init::{Choice, list};
use crate::store::inspect::{Beside, CountedBy, Tally};
use crate::store::source_table::{Column, TypeClass};
use crate::store::tellers::plain;

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
            Test::NotIn(others) => format!("{{ column = {name}, not_in = {} }}", list(others)),
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
            let whys: Vec<String> = filters.iter().map(|filter| self.why_filter(filter)).collect();
            self.put("where", where_of(&filters), whys.join("; "));
        }
        for filter in &filters {
            self.tell_hidden(filter);
        }
        for filter in offered {
            self.offer_filter(filter, &mut filters);
        }
        self.may_be_deleted();
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
        let live = self.answers.live;
        for (names, wanted, why) in [
            (&words::IS_DELETED[..], false, "deleted rows are out"),
            (&words::IS_LIVE[..], live, "live and test rows in one table"),
            (&words::IS_TEST[..], !live, "live and test rows in one table"),
        ] {
            let Some(column) = pick(self.of, names, words::is_flag) else { continue };
            let (test, why) = match (self.may_be_null(column), wanted) {
                (false, wanted) => (Test::Is(wanted), why.to_owned()),
                (true, false) => (Test::IsNotTrue, why.to_owned()),
                (true, true) => (Test::Is(true), format!("{why}, and NULL is left out")),
            };
            keep(column, test, why);
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

    fn why_filter(&self, filter: &Filter<'_>) -> String {
        let why = &filter.why;
        match self.left_out(filter).filter(|left| left.rows > 0) {
            Some(LeftOut { rows, of, what, .. }) => {
                format!("{why}: {rows} of {of} looked-at {what}")
            }
            None => why.clone(),
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
        let word = if self.answers.live { "live" } else { "test" };
        let instead = if filters.is_empty() { "" } else { ", in place of the where above," };
        let why = format!(
            "`{name}` is NULL in {null} of {of} looked-at {what}, so that it could not be told by \
             it which rows are {word}; take the # away{instead} where NULL says that a row is not: \
             such a row is decided by no run then"
        );
        self.untold(format!(
            "where: `{name}` is NULL in {null} of {of} looked-at {what}, so that live and test \
             rows are not told apart: look at its line behind a # in the file"
        ));
        filters.push(filter);
        self.proposal.offers.retain(|(setting, _)| *setting != "where");
        self.proposal.offers.push(("where", Choice::new(where_of(filters), why)));
    }

    /// Columns that may say that a row is deleted, in a type that does not tell how: a row that is
    /// left in is decided and written.
    fn may_be_deleted(&mut self) {
        let (of, live) = (self.of, self.answers.live);
        let mut found: Vec<(&'a Column, &'static str, String)> = Vec::new();
        if let Some(column) = pick(of, &words::DELETED, words::is_odd_moment) {
            let is_never_null = column.class == TypeClass::Integer && !self.may_be_null(column);
            let kept = if is_never_null { "in = [0]" } else { "is = \"null\"" };
            found.push((column, "deleted", kept.to_owned()));
        }
        let test = if live { "a test" } else { "no test" };
        for (columns, says, keeps) in [
            (words::picks(of, &words::IS_DELETED, words::is_odd_flag), "deleted", false),
            (words::picks(of, &words::IS_CANCELLED, words::is_any_flag), "cancelled", false),
            (words::picks(of, &words::IS_TEST, words::is_odd_flag), test, !live),
        ] {
            for column in columns.into_iter().filter(|column| self.is_flag(column)) {
                found.push((column, says, self.kept(column, keeps)));
            }
        }
        // ERPNext and its kin.
        if let Some(column) = pick(of, &words::DOCSTATUS, words::is_whole) {
            found.push((column, "cancelled (2)", "not_in = [2]".to_owned()));
        }
        for (column, says, test) in found {
            let name = quoted(&column.name);
            self.untold(format!(
                "where: `{}` may say that a row is {says}; where it does, add {{ column = {name}, \
                 {test} }} to where: else such a row is decided and written as any other",
                column.name
            ));
        }
    }

    /// Whether a column that is called as a flag may be one, by its values: text may be a time.
    fn is_flag(&self, column: &Column) -> bool {
        if !words::is_text(&column.class) {
            return true;
        }
        let values = self.filled(column);
        let is_of_flag = |value: &&String| words::is_yes(value) || words::is_no(value);
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
                .find(|value| words::is_yes(value))
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
