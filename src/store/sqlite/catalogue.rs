//! What SQLite's catalogue says of the relations that a mapping names.
//!
//! SQLite types values, not columns: the declared type says what a column should hold, and where
//! it says little (no type, `datetime`, a name of the user's own) a few rows say what it does
//! hold. Only the first rows are looked at, so that a check at start never walks a large table.

use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::store::error::{MappingError, Mend, StoreError};
use crate::store::fit::{Catalogue, fit, folded_status, unique_names};
use crate::store::inspect::{STATUS_ROWS, VALUES_MAX};
use crate::store::mapping::TableSettings;
use crate::store::notation::Notation;
use crate::store::source_table::{
    Column, HistoryTable, QuotedIdent, Relation, SourceTable, TypeClass,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{fetch, literal, rendered};
use crate::store::sqlite::statements::{UNTYPED, named, text_of};

const READING: &str = "reading the catalogue";

/// How many rows are looked at to see what a column holds.
const SAMPLED: usize = 100;

/// How many characters of a text are shown.
const TEXT_SHOWN: usize = 40;

pub(super) async fn map_tables(
    connection: &mut SqliteConnection,
    tables: &[TableSettings],
    accounts: &[String],
) -> Result<Vec<SourceTable>, StoreError> {
    let mut errors = unique_names(tables);
    let mut mapped = Vec::new();
    for settings in tables {
        let is_epoch = matches!(settings.time.as_deref(), Some("epoch_s" | "epoch_ms"));
        let read = relation(connection, &settings.read, is_epoch).await?;
        let write = match settings.write.as_deref().filter(|name| *name != settings.read) {
            Some(name) => relation(connection, name, is_epoch).await?,
            None => read.clone(),
        };
        let history = match &settings.history {
            Some(history) => relation(connection, &history.table, is_epoch).await?,
            None => None,
        };
        errors.extend(folded(connection, read.as_ref(), settings).await?);
        errors.extend([&read, &write].into_iter().flatten().find_map(|it| timed(settings, it)));
        let write_folds = folded(connection, write.as_ref(), settings).await?.is_some();
        let catalogue = Catalogue { read, write, history, text_times: true };
        match fit(settings, &catalogue, accounts) {
            Ok(mut table) => {
                if write_folds {
                    table.status_folded = std::mem::take(&mut table.status_indexed);
                }
                write_alike(connection, &mut table).await?;
                mapped.push(table);
            }
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(mapped) } else { Err(StoreError::Mapping(errors)) }
}

/// Has times written as their column's others are: where those end in `Z`, whoever reads them
/// would take a text without for a time of another zone, and sort it elsewhere.
async fn write_alike(
    connection: &mut SqliteConnection,
    table: &mut SourceTable,
) -> Result<(), StoreError> {
    let of_write = table.sets.values_mut().map(|target| (&table.write, target));
    let history = table.history.iter_mut();
    let of_history = history.flat_map(|HistoryTable { name, columns }| {
        let name = &*name;
        columns.values_mut().map(move |target| (name, target))
    });
    for (relation, target) in of_write.chain(of_history) {
        if !matches!(target.notation, Notation::Text(_)) {
            continue;
        }
        let sql = format!(
            "select cast(s.v as text) from (select t.{} as v from {relation} as t \
             limit {SAMPLED}) s where s.v <> ''",
            target.column.ident
        );
        let rows = fetch(connection, READING, rendered(&sql)).await?;
        let texts = rows.iter().map(|row| Cells::new(row, READING).text(0));
        let texts = texts.collect::<Result<Vec<String>, StoreError>>()?;
        let Some(first) = texts.first() else { continue };
        let Some(zone) = zone_behind(first) else { continue };
        if texts.iter().all(|text| zone_behind(text) == Some(zone)) {
            let has_blank = first.get(10..11) == Some(" ");
            target.notation = if has_blank { Notation::Behind(zone) } else { Notation::Text(None) };
        }
    }
    Ok(())
}

/// How texts of times say that they are of UTC, as JavaScript, Go and PostgreSQL write them.
fn zone_behind(text: &str) -> Option<&'static str> {
    // The longer ones first: one ends with the other.
    ["Z", " +00:00", "+00:00", "+00"].into_iter().find(|zone| text.ends_with(zone))
}

/// The status, where its column is declared to hold times: its texts would be taken for words.
fn timed(settings: &TableSettings, relation: &Relation) -> Option<MappingError> {
    let column = relation.column(&settings.status)?;
    let declared = column.type_name.to_ascii_uppercase();
    let is_time = ["DATE", "TIME"].iter().any(|part| declared.contains(part));
    is_time.then(|| MappingError {
        table: settings.name.clone(),
        field: "status".to_owned(),
        problem: format!("column `{}` is {}", column.name, column.type_name),
        expected: "a column of text, whole numbers or booleans".to_owned(),
        mend: Mend::Mapping,
    })
}

/// The status, where its column takes for one value what bytes tell apart. The catalogue does not
/// tell a column's collation, and an index may have another: the first values tell how the column
/// compares them with other spellings of theirs. What is empty hides nothing.
async fn folded(
    connection: &mut SqliteConnection,
    relation: Option<&Relation>,
    settings: &TableSettings,
) -> Result<Option<MappingError>, StoreError> {
    let Some(relation) = relation else { return Ok(None) };
    let status = relation.column(&settings.status).filter(|it| it.class == TypeClass::Text);
    let Some(status) = status else { return Ok(None) };
    let name = format!("t.{}", status.ident);
    let differs =
        |to: &str| format!("({name} = {to}({name}) and {name} <> {to}({name}) collate binary)");
    let sql = format!(
        "select 1 from (select typeof({name}) = 'text' and \
         ({name} = {name} || ' ' or {} or {}) as folds from {} as t limit {SAMPLED}) s \
         where s.folds limit 1",
        differs("upper"),
        differs("lower"),
        relation.name,
    );
    let folds = !fetch(connection, READING, rendered(&sql)).await?.is_empty();
    let bytewise = format!("{} collate binary", status.ident);
    Ok(folds.then(|| folded_status(settings, status, &bytewise)))
}

/// A relation by its name in the mapping: `name`, or `schema.name` of an attached file.
pub(super) async fn relation(
    connection: &mut SqliteConnection,
    name: &str,
    is_epoch: bool,
) -> Result<Option<Relation>, StoreError> {
    let (schema, name) = name.split_once('.').unwrap_or(("main", name));
    let query = sqlx::query(
        "select schema, name, type from pragma_table_list \
         where name = ?1 collate nocase and schema = ?2 collate nocase \
         and type in ('table', 'view', 'virtual')",
    )
    .bind(name.to_owned())
    .bind(schema.to_owned());
    let rows = fetch(connection, READING, query).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let cells = Cells::new(row, READING);
    let (schema, name, is_view) = (cells.text(0)?, cells.text(1)?, cells.str(2)? == "view");
    let (mut columns, mut nullable) = columns(connection, &schema, &name).await?;
    if is_view {
        nullable.clear();
    }
    let ident = QuotedIdent::qualified(&schema, &name);
    look_at_values(connection, &ident, &mut columns, is_epoch).await?;
    let (unique_keys, indexed) = indexes(connection, &schema, &name).await?;
    let updatable = !is_view || is_writable_view(connection, &name).await?;
    Ok(Some(Relation {
        name: ident,
        is_view,
        updatable,
        hidden: Vec::new(),
        may_read: true,
        closed: None,
        columns,
        unique_keys,
        nullable,
        indexed,
        // One writes to the file at a time.
        writes_alone: false,
    }))
}

/// The columns, and the names of those that may be NULL. A primary key is not counted: SQLite lets
/// NULL into most of them, and nobody who has one means it.
async fn columns(
    connection: &mut SqliteConnection,
    schema: &str,
    name: &str,
) -> Result<(Vec<Column>, Vec<String>), StoreError> {
    let query = sqlx::query(
        "select name, type, \"notnull\", dflt_value is not null, pk, hidden \
         from pragma_table_xinfo(?1, ?2) where hidden <> 1 order by cid",
    )
    .bind(name.to_owned())
    .bind(schema.to_owned());
    let rows = fetch(connection, READING, query).await?;
    let keys = rows.iter().filter(|row| Cells::new(row, READING).int(4).is_ok_and(|pk| pk > 0));
    let has_one_key = keys.count() == 1;
    let (mut columns, mut nullable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        let cells = Cells::new(row, READING);
        if cells.int(2)? == 0 && cells.int(4)? == 0 {
            nullable.push(cells.text(0)?);
        }
        columns.push(column(cells, has_one_key)?);
    }
    Ok((columns, nullable))
}

fn column(cells: Cells<'_>, has_one_key: bool) -> Result<Column, StoreError> {
    let (name, declared) = (cells.text(0)?, cells.text(1)?);
    let is_rowid = has_one_key && cells.int(4)? > 0 && declared.eq_ignore_ascii_case("integer");
    let is_filled = is_rowid || cells.int(3)? != 0;
    Ok(Column {
        ident: QuotedIdent::of_catalogue(&name),
        class: declared_class(&declared),
        decimals: declared_decimals(&declared),
        type_name: if declared.is_empty() { UNTYPED.to_owned() } else { declared },
        name,
        max_chars: None,
        odd_text: None,
        required: cells.int(2)? != 0 && !is_filled,
        generated: cells.int(5)? > 1,
        may_write: true,
    })
}

/// The 2 of `DECIMAL(10,2)`.
fn declared_decimals(declared: &str) -> usize {
    let inner = declared.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let places = inner.and_then(|(inner, _)| inner.split_once(',')).map(|(_, places)| places);
    places.and_then(|places| places.trim().parse().ok()).unwrap_or(0)
}

/// What a declared type promises, by SQLite's own rules of affinity, and by the names that people
/// give to what SQLite has no type for. `Other`: it says nothing; the values will.
fn declared_class(declared: &str) -> TypeClass {
    let name = declared.to_ascii_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["BOOL"]) {
        TypeClass::Boolean
    } else if has(&["INT"]) && !has(&["POINT", "INTERVAL"]) {
        TypeClass::Integer
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        TypeClass::Text
    } else if has(&["BLOB", "BINARY"]) {
        TypeClass::Bytes
    } else if has(&["REAL", "FLOA", "DOUB", "DEC", "NUM", "MONEY"]) {
        TypeClass::Float
    } else {
        TypeClass::Other
    }
}

/// Columns whose declared type says nothing are what their first values are.
async fn look_at_values(
    connection: &mut SqliteConnection,
    relation: &QuotedIdent,
    columns: &mut [Column],
    is_epoch: bool,
) -> Result<(), StoreError> {
    let unclear: Vec<&mut Column> =
        columns.iter_mut().filter(|column| column.class == TypeClass::Other).collect();
    if unclear.is_empty() {
        return Ok(());
    }
    let types: Vec<String> =
        unclear.iter().map(|column| format!("typeof(t.{})", column.ident)).collect();
    let sql = format!("select {} from {relation} as t limit {SAMPLED}", types.join(", "));
    let rows = fetch(connection, READING, rendered(&sql)).await?;
    for (index, column) in unclear.into_iter().enumerate() {
        column.class = valued_class(&rows, index, &column.type_name, is_epoch);
        if is_epoch && has_kind(&rows, index, "text") && has_kind(&rows, index, "integer") {
            let text = first_text(connection, relation, &column.ident).await?;
            column.odd_text = text;
        }
    }
    Ok(())
}

/// The first text in the looked-at rows of a column, as far as it is shown.
async fn first_text(
    connection: &mut SqliteConnection,
    relation: &QuotedIdent,
    column: &QuotedIdent,
) -> Result<Option<String>, StoreError> {
    let sql = format!(
        "select substr(s.v, 1, {TEXT_SHOWN}) from (select t.{column} as v from {relation} as t \
         limit {SAMPLED}) s where typeof(s.v) = 'text' limit 1"
    );
    let rows = fetch(connection, READING, rendered(&sql)).await?;
    rows.first().map(|row| Cells::new(row, READING).text(0)).transpose()
}

/// Whether a looked-at row has a value of this kind.
fn has_kind(rows: &[SqliteRow], index: usize, kind: &str) -> bool {
    rows.iter().any(|row| row.try_get::<&str, _>(index).is_ok_and(|value| value == kind))
}

fn valued_class(rows: &[SqliteRow], index: usize, declared: &str, is_epoch: bool) -> TypeClass {
    let seen = |kind: &str| has_kind(rows, index, kind);
    let is_time = ["DATE", "TIME"].iter().any(|t| declared.to_ascii_uppercase().contains(t));
    match () {
        () if seen("text") => TypeClass::Text,
        () if seen("real") => TypeClass::Float,
        () if seen("integer") => TypeClass::Integer,
        () if seen("blob") => TypeClass::Bytes,
        () if is_time && is_epoch => TypeClass::Integer,
        () => TypeClass::Text,
    }
}

/// Column sets of the unique indexes, and the columns that lead an index.
async fn indexes(
    connection: &mut SqliteConnection,
    schema: &str,
    name: &str,
) -> Result<(Vec<Vec<String>>, Vec<String>), StoreError> {
    // The primary key first: of a rowid table it may have no index of its own.
    let query = sqlx::query(
        "select '' as idx, 1, name, pk as place from pragma_table_info(?1, ?2) where pk > 0 \
         union all \
         select l.name, l.\"unique\", i.name, i.seqno from pragma_index_list(?1, ?2) l, \
         pragma_index_info(l.name, ?2) i where l.partial = 0 order by 1, 4",
    )
    .bind(name.to_owned())
    .bind(schema.to_owned());
    let (mut unique, mut leading) = (Vec::new(), Vec::new());
    let mut current: Option<(String, bool, Vec<Option<String>>)> = None;
    let mut finish = |index: Option<(String, bool, Vec<Option<String>>)>| {
        let Some((_, is_unique, columns)) = index else { return };
        leading.extend(columns.first().cloned().flatten());
        // An expression in the index has no name, and makes it no key of columns.
        let named: Option<Vec<String>> = columns.into_iter().collect();
        unique.extend(named.filter(|_| is_unique));
    };
    for row in &fetch(connection, READING, query).await? {
        let cells = Cells::new(row, READING);
        let (index, is_unique, column) = (cells.text(0)?, cells.int(1)? != 0, cells.opt_text(2)?);
        match &mut current {
            Some((known, _, columns)) if *known == index => columns.push(column),
            _other => finish(current.replace((index, is_unique, vec![column]))),
        }
    }
    finish(current);
    Ok((unique, leading))
}

/// SQLite writes through a view only where a trigger says how.
async fn is_writable_view(
    connection: &mut SqliteConnection,
    name: &str,
) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "select 1 from sqlite_master where type = 'trigger' and tbl_name = ?1 collate nocase \
         and lower(sql) like '%instead%of%update%'",
    )
    .bind(name.to_owned());
    Ok(!fetch(connection, READING, query).await?.is_empty())
}

/// Values of the status column that the mapping does not name, hopping from value to value of an
/// index; where none leads with the status, those of the first and the last rows. Where that steps
/// over spellings, those of the processing values are read beside it: what is stuck is few.
pub(super) async fn unmapped_statuses(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<Vec<String>, StoreError> {
    let (relation, status) = (&table.statuses_in, &table.write_status.ident);
    let sql = match table.status_indexed || table.status_folded {
        true => format!(
            "with recursive seen(value) as (select min(t.{status}) from {relation} as t union all \
             select (select min(t.{status}) from {relation} as t where t.{status} > seen.value) \
             from seen where seen.value is not null) \
             select cast(value as text) from seen where value is not null"
        ),
        false => {
            let text = text_of(&table.write_status, &named("t", &table.write_status));
            let rows = both_ends(&text, relation, table.sole_key(), STATUS_ROWS);
            format!(
                "select distinct v collate binary from ({rows}) where v is not null \
                 limit {VALUES_MAX}"
            )
        }
    };
    let known = table.known_values();
    let is_boolean = table.write_status.class == TypeClass::Boolean;
    let mut unmapped = Vec::new();
    let doing = "looking for unmapped status values";
    let mut rows = fetch(connection, doing, rendered(&sql)).await?;
    if table.status_folded {
        let values: Vec<String> =
            table.processing_values().iter().map(|value| literal(value)).collect();
        let spellings = format!(
            "select distinct cast(t.{status} as text) collate binary from {relation} as t \
             where t.{status} in ({})",
            values.join(", ")
        );
        rows.extend(fetch(connection, doing, rendered(&spellings)).await?);
    }
    for row in &rows {
        let value = Cells::new(row, READING).text(0)?;
        let flag = crate::store::decode::boolean(&value).filter(|_| is_boolean);
        let value = flag.map_or(value, |flag| flag.to_string());
        if !known.contains(&value) && !unmapped.contains(&value) {
            unmapped.push(value);
        }
    }
    Ok(unmapped)
}

/// Whether a row has no status: asked of an index led by it, else of the first and the last rows.
pub(super) async fn lacks_status(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<bool, StoreError> {
    if !table.may_lack_status() {
        return Ok(false);
    }
    let (relation, status) = (&table.statuses_in, &table.write_status.ident);
    let sql = match table.status_indexed || table.status_folded {
        true => format!("select 1 from {relation} as t where t.{status} is null limit 1"),
        false => {
            let value = format!("t.{status}");
            let rows = both_ends(&value, relation, table.sole_key(), STATUS_ROWS);
            format!("select 1 from ({rows}) where v is null limit 1")
        }
    };
    let doing = "looking for rows without a status";
    Ok(!fetch(connection, doing, rendered(&sql)).await?.is_empty())
}

/// A value in the first rows, and in the last ones by the key: what is stuck now is seldom among
/// the oldest.
pub(super) fn both_ends(
    value: &str,
    table: &QuotedIdent,
    key: Option<&Column>,
    rows: i64,
) -> String {
    let of = |order: &str| {
        format!("select * from (select {value} as v from {table} as t{order} limit {rows})")
    };
    match key {
        Some(key) => {
            format!("{} union all {}", of(""), of(&format!(" order by t.{} desc", key.ident)))
        }
        None => of(""),
    }
}

#[cfg(test)]
mod tests {
    use super::{declared_decimals, zone_behind};

    #[test]
    fn a_time_may_say_behind_it_that_it_is_of_utc() {
        for (text, zone) in [
            ("2026-11-23T11:18:29.123Z", Some("Z")),
            ("2026-11-23 11:18:29.123 +00:00", Some(" +00:00")),
            ("2026-11-23 11:18:29.123456789+00:00", Some("+00:00")),
            ("2026-11-23 11:18:29+00", Some("+00")),
            ("2026-11-23 11:18:29", None),
            ("2026-11-23 11:18:29+02:00", None),
        ] {
            assert_eq!(zone_behind(text), zone, "{text}");
        }
    }

    #[test]
    fn a_declared_type_may_say_how_many_places_it_has() {
        for (declared, places) in [
            ("DECIMAL(10,2)", 2),
            ("numeric ( 20 , 8 )", 8),
            ("DECIMAL(10)", 0),
            ("INTEGER", 0),
            ("VARCHAR(20)", 0),
            ("", 0),
        ] {
            assert_eq!(declared_decimals(declared), places, "{declared}");
        }
    }
}
