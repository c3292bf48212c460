//! The user's tables in SQL: expressions over a mapped row, rendered from what the catalogue said.
//!
//! A column is never cast where a row is looked up by it, so that its index serves; values are
//! spelled so that SQLite's own affinity makes them the column's. Literals of the configuration
//! are quoted here; instants and sets are bound.

use chrono::TimeDelta;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Sqlite};

use crate::model::time::{Instant, later};
use crate::store::mapping::{FilterSettings, FilterValue, NullTest};
use crate::store::notation::Notation;
use crate::store::records::ClaimFilter;
use crate::store::source_table::{Column, SourceTable, TypeClass};
use crate::store::sqlite::sql::literal;

/// How a column without a declared type is called.
pub(super) const UNTYPED: &str = "of no declared type";

/// Milliseconds that stand for "before everything": a creation that cannot be read.
const NEVER_MS: &str = "-62135596800000";

/// A statement under construction: its text and what is bound, in order.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) sql: String,
    binds: Vec<Bind>,
}

#[derive(Debug)]
enum Bind {
    Text(String),
    Int(i64),
}

impl Statement {
    pub(super) fn push(&mut self, text: &str) {
        self.sql.push_str(text);
    }

    fn place(&mut self, bind: Bind) -> String {
        self.binds.push(bind);
        format!("?{}", self.binds.len())
    }

    /// Binds a text; the placeholder to write.
    pub(super) fn text(&mut self, text: impl Into<String>) -> String {
        self.place(Bind::Text(text.into()))
    }

    /// Binds a number; the placeholder to write.
    pub(super) fn int(&mut self, number: i64) -> String {
        self.place(Bind::Int(number))
    }

    /// Asks how the statement would be carried out, and carries nothing out.
    pub(super) fn explained(mut self) -> Self {
        self.sql.insert_str(0, "explain query plan ");
        self
    }

    pub(super) fn query(self) -> sqlx::query::Query<'static, Sqlite, SqliteArguments> {
        let query = sqlx::query(AssertSqlSafe(self.sql));
        self.binds.into_iter().fold(query, |query, bind| match bind {
            Bind::Text(text) => query.bind(text),
            Bind::Int(number) => query.bind(number),
        })
    }
}

/// A column of the row that `alias` names.
pub(super) fn named(alias: &str, column: &Column) -> String {
    format!("{alias}.{}", column.ident)
}

/// A column's exact text, as `decode` reads it.
pub(super) fn text_of(column: &Column, name: &str) -> String {
    match column.class {
        TypeClass::Bytes => format!("lower(hex({name}))"),
        // Seventeen digits tell any two floats apart; a cast would give fifteen.
        TypeClass::Float | TypeClass::Other => format!(
            "case typeof({name}) when 'real' then printf('%!.17g', {name}) \
             else cast({name} as text) end"
        ),
        TypeClass::Boolean => format!(
            "case when {name} is null then null when {name} in (1, 't', 'true') then 'true' \
             when {name} in (0, 'f', 'false') then 'false' else cast({name} as text) end"
        ),
        TypeClass::Integer
        | TypeClass::Decimal
        | TypeClass::Text
        | TypeClass::Padded
        | TypeClass::Uuid
        | TypeClass::Enum(_)
        | TypeClass::TimestampTz
        | TypeClass::Timestamp
        | TypeClass::Date => format!("cast({name} as text)"),
    }
}

/// `column = value`, in the way that lets the column's index serve. `value` has no affinity.
pub(super) fn equals(column: &Column, name: &str, value: &str) -> String {
    if column.class == TypeClass::Bytes {
        format!("{name} = unhex({value})")
    } else if is_compared_by_text(column) {
        format!("({}) = {value}", text_of(column, name))
    } else {
        format!("{name} = {value}")
    }
}

/// The columns are together one of the set in ?1, an array of arrays. The set is read once into an
/// index of its own: it serves an index of the columns, and where there is none the table is read
/// once and not once for each of the set.
pub(super) fn is_one_of_set(columns: &[&Column], alias: &str) -> String {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (place, column) in columns.iter().enumerate() {
        let (name, value) = (named(alias, column), format!("j.value ->> {place}"));
        let (name, value) = match &column.class {
            TypeClass::Bytes => (name, format!("unhex({value})")),
            _other if is_compared_by_text(column) => {
                (format!("({})", text_of(column, &name)), value)
            }
            _other => (name, value),
        };
        names.push(name);
        values.push(value);
    }
    let (names, values) = (names.join(", "), values.join(", "));
    format!("({names}) in (select {values} from json_each(?1) j)")
}

/// Without a declared type there is no affinity that would make a text the column's own value.
pub(super) fn is_compared_by_text(column: &Column) -> bool {
    column.class == TypeClass::Boolean || column.type_name == UNTYPED
}

fn key_columns(table: &SourceTable) -> Vec<&Column> {
    table.cells_at(&table.layout.key).collect()
}

/// The text that names the row everywhere; the same as `RowKey::id_of`.
pub(super) fn key_text(columns: &[&Column], name: impl Fn(&Column) -> String) -> String {
    let texts: Vec<String> = columns.iter().map(|column| text_of(column, &name(column))).collect();
    match texts.as_slice() {
        [only] => only.clone(),
        several => format!("json_array({})", several.join(", ")),
    }
}

/// The key's text of a row of `read`.
pub(super) fn read_key(table: &SourceTable, alias: &str) -> String {
    key_text(&key_columns(table), |column| named(alias, column))
}

/// The row has a key: a view may show rows without one, which nothing could name.
pub(super) fn is_named(table: &SourceTable, alias: &str) -> String {
    // The sign keeps it from leading anywhere: nearly every row has one.
    let parts = key_columns(table).into_iter();
    let parts: Vec<String> =
        parts.map(|column| format!("+{} is not null", named(alias, column))).collect();
    if parts.is_empty() { "true".to_owned() } else { parts.join(" and ") }
}

/// `alias` is the row whose key's text `id` is.
pub(super) fn has_key(columns: &[&Column], alias: &str, id: &str) -> String {
    let equal = |(place, column): (usize, &&Column)| match columns.len() {
        1 => equals(column, &named(alias, column), id),
        _several => equals(column, &named(alias, column), &format!("({id} ->> {place})")),
    };
    columns.iter().enumerate().map(equal).collect::<Vec<_>>().join(" and ")
}

/// As [`has_key`], for a row of `read`.
pub(super) fn read_has_key(table: &SourceTable, alias: &str, id: &str) -> String {
    has_key(&key_columns(table), alias, id)
}

/// The row's mapped columns as one text: equal only where every column is, NULLs included.
pub(super) fn image(table: &SourceTable, name: impl Fn(&Column) -> String) -> String {
    let quoted: Vec<String> =
        table.cells.iter().map(|column| format!("quote({})", name(column))).collect();
    format!("concat_ws('|', {})", quoted.join(", "))
}

/// The texts of all mapped columns, in their order.
pub(super) fn cell_texts(table: &SourceTable, alias: &str) -> String {
    let texts: Vec<String> =
        table.cells.iter().map(|column| text_of(column, &named(alias, column))).collect();
    texts.join(", ")
}

/// A value of the mapping, spelled for a comparison with the column.
fn spelled(column: &Column, value: &str) -> String {
    let is_number = column.class == TypeClass::Integer && value.parse::<i64>().is_ok();
    if is_number { value.to_owned() } else { literal(value) }
}

/// `column in (values)`.
fn is_one_of(column: &Column, alias: &str, values: &[String]) -> String {
    let name = named(alias, column);
    let by_text = is_compared_by_text(column);
    let name = if by_text { format!("({})", text_of(column, &name)) } else { name };
    let spell = |value: &String| if by_text { literal(value) } else { spelled(column, value) };
    let values: Vec<String> = values.iter().map(spell).collect();
    match values.as_slice() {
        [only] => format!("{name} = {only}"),
        several => format!("{name} in ({})", several.join(", ")),
    }
}

/// The row's status is a processing value.
pub(super) fn is_processing(table: &SourceTable, alias: &str) -> String {
    has_status(table, alias, &table.processing_values())
}

/// The row's status is one of these values.
pub(super) fn has_status(table: &SourceTable, alias: &str, values: &[String]) -> String {
    match table.cells.get(table.layout.status) {
        Some(column) => is_one_of(column, alias, values),
        None => "false".to_owned(),
    }
}

/// The row is one that the mapping's `where` means.
pub(super) fn belongs(table: &SourceTable, alias: &str) -> String {
    let conditions = table.settings.filter.iter().map(|one| condition(table, alias, one));
    let all = conditions.collect::<Vec<_>>().join(" and ");
    if all.is_empty() { "true".to_owned() } else { all }
}

/// One condition of `where`.
pub(super) fn condition(table: &SourceTable, alias: &str, filter: &FilterSettings) -> String {
    let cell = table.cell(&filter.column).and_then(|index| table.cells.get(index));
    let Some(column) = cell else { return "false".to_owned() };
    let name = named(alias, column);
    let texts = |values: &[FilterValue]| -> Vec<String> {
        values.iter().map(|FilterValue(text)| text.clone()).collect()
    };
    match (filter.is, &filter.one_of, &filter.not_in) {
        (Some(NullTest::Null), _, _) => format!("{name} is null"),
        (Some(NullTest::NotNull), _, _) => format!("{name} is not null"),
        (None, Some(values), _) => is_one_of(column, alias, &texts(values)),
        (None, None, Some(values)) => {
            format!("({name} is null or not {})", is_one_of(column, alias, &texts(values)))
        }
        (None, None, None) => "true".to_owned(),
    }
}

/// The row's accounts are among the filter's; `true` where it names none.
pub(super) fn of_accounts(table: &SourceTable, alias: &str, filter: &ClaimFilter) -> String {
    let Some(accounts) = &filter.accounts else { return "true".to_owned() };
    let (values, takes_rest) = table.account_values(accounts);
    let parts: Vec<String> = table
        .cells_at(&table.layout.account)
        .map(|column| format!("ifnull({}, '')", text_of(column, &named(alias, column))))
        .collect();
    let joined = if parts.is_empty() { "''".to_owned() } else { parts.join("||'/'||") };
    let list = |values: &[String]| {
        values.iter().map(|value| literal(value)).collect::<Vec<_>>().join(", ")
    };
    let named: Vec<String> =
        table.settings.accounts.keys().filter(|v| v.as_str() != "*").cloned().collect();
    let rest =
        if takes_rest { format!("{joined} not in ({})", list(&named)) } else { "false".into() };
    let is_clear: Vec<String> = match parts.as_slice() {
        [] | [_] => vec!["true".to_owned()],
        several => several.iter().map(|part| format!("instr({part}, '/') = 0")).collect(),
    };
    format!("({joined} in ({}) or {rest}) and {}", list(&values), is_clear.join(" and "))
}

/// A time column in milliseconds since 1970, as its own notation means it; NULL where it is NULL,
/// never, or cannot be read. With it, how a bound must be written to be compared.
fn millis(column: &Column, alias: &str, notation: Notation) -> String {
    let name = named(alias, column);
    match notation {
        Notation::EpochSecs => format!("(nullif({name}, 0) * 1000)"),
        Notation::EpochMillis => format!("nullif({name}, 0)"),
        Notation::Zoned
        | Notation::Local(_)
        | Notation::Text(_)
        | Notation::Day(_)
        | Notation::Behind(_) => {
            format!("cast(round(unixepoch({name}, 'subsec') * 1000) as integer)")
        }
    }
}

/// `at` in the milliseconds of [`millis`]: a text without offset is compared as local time.
fn bound(
    statement: &mut Statement,
    column: &Column,
    alias: &str,
    notation: Notation,
    at: Instant,
) -> String {
    let utc = statement.int(at.timestamp_millis());
    let Some(zone) = notation.zone().filter(|zone| *zone != chrono_tz::Tz::UTC) else {
        return utc;
    };
    let local = at.with_timezone(&zone).naive_local().and_utc().timestamp_millis();
    let local = statement.int(local);
    let name = named(alias, column);
    format!(
        "case when {name} glob '*[zZ]' or {name} glob '*:*[+-][0-9][0-9]*' \
         then {utc} else {local} end"
    )
}

/// What orders rows in their time, as the column keeps it.
pub(super) fn made(table: &SourceTable, alias: &str) -> String {
    let made = table.cells.get(table.layout.created.0);
    made.map_or("null".to_owned(), |column| named(alias, column))
}

/// Which of a row's two times is compared.
#[derive(Clone, Copy)]
enum Clock {
    Created,
    Attempted,
}

/// `clock (>= | <) at`; a row that was never attempted counts by its creation.
fn compare(
    statement: &mut Statement,
    table: &SourceTable,
    alias: &str,
    clock: Clock,
    operator: &str,
    at: Instant,
) -> String {
    let (created_index, created_as) = table.layout.created;
    let Some(created) = table.cells.get(created_index) else { return "false".to_owned() };
    let by_creation = {
        let limit = bound(statement, created, alias, created_as, at);
        format!("ifnull({}, {NEVER_MS}) {operator} {limit}", millis(created, alias, created_as))
    };
    let attempted = table.layout.attempted.filter(|_| matches!(clock, Clock::Attempted));
    let found = attempted.and_then(|(index, as_is)| table.cells.get(index).map(|c| (c, as_is)));
    let Some((column, notation)) = found else { return by_creation };
    let limit = bound(statement, column, alias, notation, at);
    let value = millis(column, alias, notation);
    format!("case when {value} is null then {by_creation} else {value} {operator} {limit} end")
}

/// The same, or the next whole millisecond: SQLite's times are told no finer. Of whole ones those
/// before an instant are those before the next whole one.
fn to_whole_milli(at: Instant) -> Instant {
    match at.timestamp_subsec_nanos() % 1_000_000 {
        0 => at,
        past => later(at, TimeDelta::nanoseconds(1_000_000_i64.saturating_sub(past.into()))),
    }
}

/// The row is in the filter's windows and accounts.
pub(super) fn in_scope(
    statement: &mut Statement,
    table: &SourceTable,
    alias: &str,
    filter: &ClaimFilter,
) -> String {
    let mut conditions = vec![of_accounts(table, alias, filter)];
    for (at, clock, operator) in [
        (filter.created_from, Clock::Created, ">="),
        (filter.created_to, Clock::Created, "<"),
        (filter.attempted_from, Clock::Attempted, ">="),
        (filter.attempted_to, Clock::Attempted, "<"),
    ] {
        let Some(at) = at else { continue };
        conditions.push(compare(statement, table, alias, clock, operator, to_whole_milli(at)));
    }
    conditions.join(" and ")
}

/// The filter narrows the rows themselves, not only how long they must be stuck.
pub(super) fn narrows(filter: &ClaimFilter) -> bool {
    filter.accounts.is_some()
        || filter.created_from.is_some()
        || filter.created_to.is_some()
        || filter.attempted_from.is_some()
        || filter.attempted_to.is_some()
}

/// Created and last attempted before the filter's limit. Rows that are named are due now, however
/// young they are.
pub(super) fn is_stuck(
    statement: &mut Statement,
    table: &SourceTable,
    alias: &str,
    filter: &ClaimFilter,
) -> String {
    let before = filter.stuck_before.filter(|_| filter.ids.is_none());
    let Some(before) = before else { return "true".to_owned() };
    let created = compare(statement, table, alias, Clock::Created, "<", before);
    let attempted = compare(statement, table, alias, Clock::Attempted, "<", before);
    format!("{created} and {attempted}")
}

/// Created or last attempted after this.
pub(super) fn is_ahead(
    statement: &mut Statement,
    table: &SourceTable,
    alias: &str,
    after: Instant,
) -> String {
    let created = compare(statement, table, alias, Clock::Created, ">", after);
    let attempted = compare(statement, table, alias, Clock::Attempted, ">", after);
    format!("({created} or {attempted})")
}
