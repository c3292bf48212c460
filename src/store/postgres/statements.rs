//! The parts of SQL that depend on a mapped table: its columns, its key, its conditions.
//!
//! Every name is a `QuotedIdent` of the catalogue; every type is the catalogue's own spelling;
//! every value is bound, and the bound parameter is cast, never the column.

use crate::model::time::Instant;
use crate::model::transaction::RowKey;
use crate::store::mapping::{FilterSettings, FilterValue, NullTest};
use crate::store::notation::Notation;
use crate::store::postgres::sql::Sql;
use crate::store::records::ClaimFilter;
use crate::store::source_table::{Column, SourceTable, TypeClass};

/// Renders parts for one table.
#[derive(Clone, Copy)]
pub(super) struct Statements<'t> {
    pub(super) table: &'t SourceTable,
}

impl<'t> Statements<'t> {
    pub(super) fn of(table: &'t SourceTable) -> Self {
        Self { table }
    }

    fn key_columns(&self) -> Vec<&'t Column> {
        self.table.cells_at(&self.table.layout.key).collect()
    }

    /// The key as the text that names the row everywhere.
    pub(super) fn key_text(&self, alias: &str) -> String {
        key_text(alias, &self.key_columns())
    }

    /// The same from the written table.
    pub(super) fn write_key_text(&self, alias: &str) -> String {
        key_text(alias, &self.table.write_key.iter().collect::<Vec<_>>())
    }

    /// The row has a key: a view may show rows without one, which nothing could name.
    pub(super) fn has_key(&self, alias: &str) -> String {
        let is_there = |column: &Column| format!("{alias}.{} is not null", column.ident);
        all(self.key_columns().into_iter().map(is_there).collect())
    }

    /// Whether a row of `read` is the one that a key text names.
    pub(super) fn is_keyed(&self, alias: &str, key: &str) -> String {
        let columns = self.key_columns();
        let part = |index: usize| match columns.len() {
            1 => key.to_owned(),
            _several => format!("({key}::json ->> {index})"),
        };
        let matches: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(index, c)| format!("{alias}.{} = {}::{}", c.ident, part(index), c.type_name))
            .collect();
        matches.join(" and ")
    }

    /// Whether a row is the one of `u.k0`, `u.k1`, …
    pub(super) fn is_key_of(&self, alias: &str, written: bool) -> String {
        let columns: Vec<&Column> =
            if written { self.table.write_key.iter().collect() } else { self.key_columns() };
        let matches = columns
            .iter()
            .enumerate()
            .map(|(index, c)| format!("{alias}.{} = u.k{index}::{}", c.ident, c.type_name));
        matches.collect::<Vec<_>>().join(" and ")
    }

    /// Binds the parts of key texts, one array a column; returns the arrays and their names.
    pub(super) fn bind_keys<'k>(
        &self,
        sql: &mut Sql,
        keys: impl Iterator<Item = &'k str>,
    ) -> (Vec<String>, Vec<String>) {
        let count = self.table.layout.key.len();
        let mut columns: Vec<Vec<String>> = vec![Vec::new(); count];
        for id in keys {
            let parts = key_parts(id, count);
            for (column, part) in columns.iter_mut().zip(parts) {
                column.push(part);
            }
        }
        let names = (0..count).map(|index| format!("k{index}")).collect();
        (columns.into_iter().map(|c| format!("{}::text[]", sql.bind(c))).collect(), names)
    }

    /// The row's image: every mapped column of `read`, null-safe and quoted without ambiguity.
    pub(super) fn image(&self, alias: &str) -> String {
        let columns: Vec<String> =
            self.table.cells.iter().map(|cell| format!("{alias}.{}", cell.ident)).collect();
        format!("row({})::text", columns.join(", "))
    }

    /// What orders rows in their time, as the column keeps it.
    pub(super) fn made(&self, alias: &str) -> String {
        let made = self.table.cells.get(self.table.layout.created.0);
        made.map_or("null".to_owned(), |column| format!("{alias}.{}", column.ident))
    }

    /// The cells' texts, in their order.
    pub(super) fn cells(&self, alias: &str) -> String {
        texts(alias, self.table.cells.iter())
    }

    /// The texts of these cells.
    pub(super) fn cells_at(&self, alias: &str, indexes: &[usize]) -> String {
        texts(alias, self.table.cells_at(indexes))
    }

    /// The status is one of the processing values.
    pub(super) fn is_processing(&self, alias: &str, sql: &mut Sql) -> String {
        self.has_status(alias, self.table.processing_values(), sql)
    }

    /// The row's status is one of these values.
    pub(super) fn has_status(&self, alias: &str, values: Vec<String>, sql: &mut Sql) -> String {
        let Some(status) = self.table.cells.get(self.table.layout.status) else {
            return "false".to_owned();
        };
        match &status.class {
            // As constants: a cast to an enum is not, and a partial index needs constants.
            TypeClass::Enum(labels) => {
                let labels = labels.iter().filter(|label| values.contains(label));
                let constants: Vec<String> = labels
                    .map(|label| format!("'{}'::{}", label.replace('\'', "''"), status.type_name))
                    .collect();
                format!("{alias}.{} in ({})", status.ident, constants.join(", "))
            }
            _other => is_one_of(alias, status, values, sql),
        }
    }

    /// The conditions of `where`; `true` where there are none.
    pub(super) fn filter(&self, alias: &str, sql: &mut Sql) -> String {
        let filters = self.table.settings.filter.iter();
        all(filters.filter_map(|filter| self.condition(alias, filter, sql)).collect())
    }

    /// One condition of `where`; none where nothing of its column is read.
    pub(super) fn condition(
        &self,
        alias: &str,
        filter: &FilterSettings,
        sql: &mut Sql,
    ) -> Option<String> {
        let column = self.table.cells.get(self.table.cell(&filter.column)?)?;
        Some(condition(alias, column, filter, sql))
    }

    /// What a run was narrowed to: window and accounts. `None`: to nothing.
    pub(super) fn narrow(
        &self,
        alias: &str,
        filter: &ClaimFilter,
        sql: &mut Sql,
    ) -> Option<String> {
        let mut conditions = Vec::new();
        let created = self.table.layout.created;
        if let Some(from) = filter.created_from {
            conditions.push(self.compare(alias, created, ">=", from, sql));
        }
        if let Some(to) = filter.created_to {
            conditions.push(self.before(alias, created, to, sql));
        }
        if let Some(from) = filter.attempted_from {
            conditions.push(self.attempted(alias, sql, |this, alias, cell, sql| {
                this.compare(alias, cell, ">=", from, sql)
            }));
        }
        if let Some(to) = filter.attempted_to {
            conditions.push(
                self.attempted(alias, sql, |this, alias, cell, sql| {
                    this.before(alias, cell, to, sql)
                }),
            );
        }
        if let Some(accounts) = &filter.accounts {
            conditions.push(self.belongs(alias, accounts, sql));
        }
        (!conditions.is_empty()).then(|| all(conditions))
    }

    /// Created and last attempted before the time from which a row counts as stuck.
    pub(super) fn is_stuck(&self, alias: &str, before: Instant, sql: &mut Sql) -> String {
        let mut conditions = vec![self.before(alias, self.table.layout.created, before, sql)];
        if let Some(attempted) = self.table.layout.attempted {
            conditions.push(self.before(alias, attempted, before, sql));
        }
        all(conditions)
    }

    /// Created or last attempted after this.
    pub(super) fn is_ahead(&self, alias: &str, after: Instant, sql: &mut Sql) -> String {
        let created = self.compare(alias, self.table.layout.created, ">", after, sql);
        let Some(attempted) = self.table.layout.attempted else { return created };
        format!("({created} or {})", self.compare(alias, attempted, ">", after, sql))
    }

    /// One of these keys.
    pub(super) fn is_one_of_ids(&self, alias: &str, ids: &[String], sql: &mut Sql) -> String {
        let ids: Vec<&str> =
            ids.iter().map(String::as_str).filter(|id| self.is_possible(id)).collect();
        let (arrays, names) = self.bind_keys(sql, ids.into_iter());
        let columns = self.key_columns();
        let left: Vec<String> = columns.iter().map(|c| format!("{alias}.{}", c.ident)).collect();
        let right: Vec<String> = columns
            .iter()
            .zip(&names)
            .map(|(column, name)| format!("u.{name}::{}", column.type_name))
            .collect();
        format!(
            "({}) in (select {} from unnest({}) as u({}))",
            left.join(", "),
            right.join(", "),
            arrays.join(", "),
            names.join(", ")
        )
    }

    /// A key text that the key's types can hold; anything else names no row, and would make the
    /// cast fail.
    pub(super) fn is_possible(&self, id: &str) -> bool {
        let columns = self.key_columns();
        let parts = key_parts(id, columns.len());
        parts.len() == columns.len() && columns.iter().zip(&parts).all(|(c, part)| holds(c, part))
    }

    /// The row's account values belong to one of these accounts.
    fn belongs(&self, alias: &str, accounts: &[String], sql: &mut Sql) -> String {
        let parts: Vec<String> = self
            .table
            .cells_at(&self.table.layout.account)
            .map(|column| format!("coalesce({alias}.{}::text, '')", column.ident))
            .collect();
        let joined = match parts.is_empty() {
            true => "''".to_owned(),
            false => parts.join(" || '/' || "),
        };
        let (values, rest) = self.table.account_values(accounts);
        let named = format!("({joined}) = any({})", sql.bind(values));
        if !rest {
            return named;
        }
        let others = self.table.settings.accounts.keys().filter(|value| *value != "*").cloned();
        let others = sql.bind(others.collect::<Vec<String>>());
        format!("({named} or ({joined}) <> all({others}))")
    }

    /// A condition on the last attempt: the mapped column, or the creation where it is NULL.
    fn attempted(
        &self,
        alias: &str,
        sql: &mut Sql,
        condition: impl Fn(&Self, &str, (usize, Notation), &mut Sql) -> String,
    ) -> String {
        let created = condition(self, alias, self.table.layout.created, sql);
        let Some((index, notation)) = self.table.layout.attempted else { return created };
        let Some(column) = self.table.cells.get(index) else { return created };
        let attempted = condition(self, alias, (index, notation), sql);
        let never = match notation {
            Notation::EpochSecs | Notation::EpochMillis => {
                format!("coalesce({alias}.{}, 0) = 0", column.ident)
            }
            _other => format!("{alias}.{} is null", column.ident),
        };
        format!("(case when {never} then {created} else {attempted} end)")
    }

    /// Earlier than this; NULL reads as the beginning of time.
    fn before(&self, alias: &str, cell: (usize, Notation), at: Instant, sql: &mut Sql) -> String {
        let compared = self.compare(alias, cell, "<", at, sql);
        match self.table.cells.get(cell.0) {
            Some(column) => format!("({alias}.{} is null or {compared})", column.ident),
            None => compared,
        }
    }

    fn compare(
        &self,
        alias: &str,
        (index, notation): (usize, Notation),
        operator: &str,
        at: Instant,
        sql: &mut Sql,
    ) -> String {
        let Some(column) = self.table.cells.get(index) else { return "true".to_owned() };
        let value = match notation {
            Notation::EpochSecs => format!("{}::bigint", sql.bind(at.timestamp())),
            Notation::EpochMillis => format!("{}::bigint", sql.bind(at.timestamp_millis())),
            Notation::Local(zone) | Notation::Day(zone) | Notation::Text(Some(zone)) => {
                let at = sql.bind(at);
                format!("({at} at time zone {})", sql.bind(zone.name().to_owned()))
            }
            Notation::Zoned | Notation::Text(None) | Notation::Behind(_) => sql.bind(at),
        };
        format!("{alias}.{} {operator} {value}", column.ident)
    }
}

fn texts<'c>(alias: &str, columns: impl Iterator<Item = &'c Column>) -> String {
    let texts: Vec<String> = columns.map(|c| format!("{alias}.{}::text", c.ident)).collect();
    texts.join(", ")
}

fn key_text(alias: &str, columns: &[&Column]) -> String {
    match columns {
        [only] => format!("{alias}.{}::text", only.ident),
        several => {
            let parts: Vec<String> = several
                .iter()
                .map(|column| format!("to_json({alias}.{}::text)::text", column.ident))
                .collect();
            // The very text that serde_json writes: no blank after the comma.
            format!("'[' || {} || ']'", parts.join(" || ',' || "))
        }
    }
}

fn key_parts(id: &str, count: usize) -> Vec<String> {
    let key = RowKey { table: String::new(), id: id.to_owned() };
    key.parts(count).unwrap_or_default()
}

fn condition(alias: &str, column: &Column, filter: &FilterSettings, sql: &mut Sql) -> String {
    let texts = |values: &[FilterValue]| values.iter().map(|v| v.0.clone()).collect::<Vec<_>>();
    match (&filter.is, &filter.one_of, &filter.not_in) {
        (Some(NullTest::Null), ..) => format!("{alias}.{} is null", column.ident),
        (Some(NullTest::NotNull), ..) => format!("{alias}.{} is not null", column.ident),
        (None, Some(values), _) => is_one_of(alias, column, texts(values), sql),
        (None, None, values) => {
            let values = values.as_deref().map(texts).unwrap_or_default();
            let values = sql.bind(values);
            let (ident, of) = (&column.ident, &column.type_name);
            format!("({alias}.{ident} is null or {alias}.{ident} <> all({values}::text[]::{of}[]))")
        }
    }
}

/// One of these values, each of which the column's type can hold.
fn is_one_of(alias: &str, column: &Column, values: Vec<String>, sql: &mut Sql) -> String {
    let values: Vec<String> = values.into_iter().filter(|value| holds(column, value)).collect();
    let values = sql.bind(values);
    format!("{alias}.{} = any({values}::text[]::{}[])", column.ident, column.type_name)
}

/// Whether a text from outside can be cast to the column's type without an error.
pub(super) fn holds(column: &Column, text: &str) -> bool {
    if text.contains('\0') {
        return false;
    }
    match &column.class {
        TypeClass::Integer => {
            text.parse::<i64>().is_ok_and(|number| match column.type_name.as_str() {
                "smallint" => i16::try_from(number).is_ok(),
                "integer" => i32::try_from(number).is_ok(),
                _bigint => true,
            })
        }
        TypeClass::Decimal | TypeClass::Float => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty()
                && digits.len() < 100
                && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
                && digits.bytes().filter(|b| *b == b'.').count() < 2
                && digits.bytes().any(|b| b.is_ascii_digit())
        }
        // The server knows no `urn:uuid:` before one.
        TypeClass::Uuid => !text.contains(':') && uuid::Uuid::try_parse(text).is_ok(),
        TypeClass::Boolean => crate::store::decode::boolean(text).is_some(),
        TypeClass::Enum(labels) => labels.iter().any(|label| label == text),
        TypeClass::Date | TypeClass::Timestamp | TypeClass::TimestampTz => {
            Notation::Text(Some(chrono_tz::Tz::UTC)).read(text).is_ok()
        }
        TypeClass::Bytes => text
            .strip_prefix("\\x")
            .is_some_and(|hex| hex.len() % 2 == 0 && hex.bytes().all(|b| b.is_ascii_hexdigit())),
        TypeClass::Text | TypeClass::Padded => true,
        TypeClass::Other => false,
    }
}

fn all(conditions: Vec<String>) -> String {
    match conditions.is_empty() {
        true => "true".to_owned(),
        false => conditions.join(" and "),
    }
}
