//! Looking rows up: by natural key, by tag, by PSP reference. Reads only.
//!
//! The `where` of the mapping does not narrow these: a row that tieout has nothing to do with
//! still explains an object at the PSP, and money that moved for it has moved.

use std::collections::{BTreeSet, HashMap, HashSet};

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::model::reason::{ABSENT_BESIDE, PARTLY_REFUNDED, Reason};
use crate::model::transaction::{AccountRef, RowKey, SiblingFact, Transaction};
use crate::store::decode::account_of;
use crate::store::error::StoreError;
use crate::store::postgres::claim::read_row;
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::statements::{Statements, holds};
use crate::store::records::Tagged;
use crate::store::sibling::{self, Alike, Sibling};
use crate::store::source_table::{Column, SourceTable};
use crate::store::template::{Piece, Template};

const SIBLINGS: &str = "reading sibling rows";

/// A tag that could have been made in more ways than this is looked up by rendering every row.
const READINGS_MAX: usize = 4;

pub(super) async fn siblings(
    pool: &PgPool,
    table: &SourceTable,
    rows: &[&Transaction],
) -> Result<HashMap<String, Vec<SiblingFact>>, StoreError> {
    if rows.iter().all(|row| row.natural_key.is_none()) {
        return Ok(HashMap::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(SIBLINGS))?;
    siblings_in(&mut connection, table, rows).await
}

/// The same, by this connection: within its transaction, what others committed so far.
pub(super) async fn siblings_in(
    connection: &mut PgConnection,
    table: &SourceTable,
    rows: &[&Transaction],
) -> Result<HashMap<String, Vec<SiblingFact>>, StoreError> {
    let keyed: Vec<(&Transaction, &str)> =
        rows.iter().filter_map(|row| row.natural_key.as_deref().map(|key| (*row, key))).collect();
    let natural: HashSet<&str> = keyed.iter().map(|(_, key)| *key).collect();
    if natural.is_empty() {
        return Ok(HashMap::new());
    }
    let found = siblings_sql(table, &natural).fetch(connection).await.map_err(failed(SIBLINGS))?;
    let mut by_natural: HashMap<String, Vec<Sibling>> = HashMap::new();
    for row in &found {
        let cells = Cells::new(row, SIBLINGS);
        let sibling = Sibling {
            is_offered: cells.flag(0)?,
            has_success: cells.flag(1)?,
            waits_for: cells.maybe_text(2)?,
            is_held: cells.flag(3)?,
            open_case: cells.maybe_text(4)?,
            is_failed: cells.flag(5)?,
            row: read_row(table, &cells, 6)?,
        };
        if let Some(key) = sibling.row.natural_key.clone() {
            by_natural.entry(key).or_default().push(sibling);
        }
    }
    let facts = keyed.into_iter().map(|(row, key)| {
        let same_key = by_natural.get(key).map(Vec::as_slice).unwrap_or_default();
        (row.key.id.clone(), sibling::facts(table, row, same_key))
    });
    Ok(facts.filter(|(_, facts)| !facts.is_empty()).collect())
}

fn siblings_sql(table: &SourceTable, natural: &HashSet<&str>) -> Sql {
    let parts = Statements::of(table);
    let columns: Vec<&Column> = table.cells_at(&table.layout.natural_key).collect();
    let mut values: Vec<Vec<String>> = vec![Vec::new(); columns.len()];
    for key in natural {
        let key = RowKey { table: String::new(), id: (*key).to_owned() };
        let parts = key.parts(columns.len()).unwrap_or_default();
        for (column, part) in values.iter_mut().zip(parts) {
            column.push(part);
        }
    }
    let mut sql = Sql::default();
    let name = sql.bind(table.settings.name.clone());
    let (from, joined) = join_values(&columns, values, &mut sql);
    let (key, image) = (parts.key_text("t"), parts.image("t"));
    let held = Reason::SiblingPending.as_str();
    let stands_back = Reason::SiblingRow.as_str();
    let refunded = Reason::Refunded.as_str();
    let absent = sql.bind(ABSENT_BESIDE.to_owned());
    let part = sql.bind(PARTLY_REFUNDED.to_owned());
    sql.push(&format!(
        "select exists (select from tieout_handbacks h where h.table_name = {name} \
         and h.key = {key} and h.ended_at is null and h.taken_at is null), \
         exists (select from tieout_references r where r.table_name = {name} \
         and r.key = {key}), \
         (select c.last_reason from tieout_checks c where c.table_name = {name} and c.key = {key} \
         and c.state in ('open', 'watch') and coalesce(c.last_outcome, 'wait') = 'wait' \
         and c.image = {image}), \
         exists (select from tieout_checks c join tieout_handbacks h \
         on h.table_name = c.table_name and h.key = c.key and h.number = c.handbacks \
         where c.table_name = {name} and c.key = {key} and c.ended_as = 'retryable' \
         and c.image = {image} and h.taken_at is null and h.end_reason = '{held}'), \
         (select k.reason from tieout_cases k where k.subject_kind = 'row' \
         and k.table_name = {name} and k.subject = {key} and k.state = 'open' \
         and (k.reason not in ('{stands_back}', '{refunded}') \
         or (k.reason = '{refunded}' and strpos(k.text, {part}) > 0) \
         or (k.reason = '{stands_back}' and strpos(k.text, {absent}) = 1 \
         and exists (select from tieout_checks c where c.table_name = {name} and c.key = {key} \
         and c.state = 'case' and c.image = {image})))), \
         exists (select from tieout_checks c where c.table_name = {name} and c.key = {key} \
         and c.ended_as = 'failed' and c.image = {image}), \
         {image}, {} from {from} join {} t on {joined}",
        parts.cells("t"),
        table.read,
    ));
    sql
}

/// Arrays of values as rows `u`, and the condition that `t`'s columns are equal to them.
fn join_values(columns: &[&Column], values: Vec<Vec<String>>, sql: &mut Sql) -> (String, String) {
    let arrays: Vec<String> =
        values.into_iter().map(|column| format!("{}::text[]", sql.bind(column))).collect();
    let names: Vec<String> = (0..columns.len()).map(|index| format!("v{index}")).collect();
    let equal: Vec<String> = columns
        .iter()
        .zip(&names)
        .map(|(column, name)| format!("t.{} = u.{name}::{}", column.ident, column.type_name))
        .collect();
    (set_of(&arrays, &names), equal.join(" and "))
}

/// Arrays as rows `u` that the planner knows to be a set, and few: it goes by the table's index,
/// and where there is none it reads the table once and holds each row against a hash of the set.
/// Of the arrays alone it would make a hash of the table instead, and `= any` holds each row
/// against one value after the other once the server keeps a plan for arrays of any length.
fn set_of(arrays: &[String], names: &[String]) -> String {
    let (arrays, names) = (arrays.join(", "), names.join(", "));
    format!("(select distinct {names} from unnest({arrays}) as u({names})) u")
}

pub(super) async fn shared_tags(
    pool: &PgPool,
    table: &SourceTable,
    account: &str,
    rows: &[&Transaction],
) -> Result<HashSet<String>, StoreError> {
    let doing = "looking for rows of one tag";
    let Some(cells) = table.sharable_tag(account).filter(|_| !rows.is_empty()) else {
        return Ok(HashSet::new());
    };
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let groups = shared_sql(table, &cells, rows);
    let groups = groups.fetch(&mut connection).await.map_err(failed(doing))?;
    let (tag, accounts) = (cells.len(), table.layout.account.len());
    let mut alike = Vec::with_capacity(groups.len());
    for row in &groups {
        let found = Cells::new(row, doing);
        let texts = |from: usize, count: usize| -> Result<Vec<Option<String>>, StoreError> {
            (0..count).map(|place| found.maybe_text(from.saturating_add(place))).collect()
        };
        let kind = usize::from(table.layout.kind.is_some());
        let kind_at = tag.saturating_add(accounts);
        alike.push(Alike {
            tag: texts(0, tag)?,
            account: texts(tag, accounts)?,
            kind: texts(kind_at, kind)?.pop().flatten(),
            rows: found.big(kind_at.saturating_add(kind))?,
        });
    }
    Ok(sibling::sharing(table, account, &cells, rows, &alike))
}

fn shared_sql(table: &SourceTable, tag: &[usize], rows: &[&Transaction]) -> Sql {
    let parts = Statements::of(table);
    let mut sql = Sql::default();
    let (arrays, names) = parts.bind_keys(&mut sql, rows.iter().map(|row| row.key.id.as_str()));
    let columns: Vec<&Column> = table.cells_at(tag).collect();
    let wanted = columns.iter().enumerate().map(|(place, c)| format!("a.{} as w{place}", c.ident));
    let equal = columns.iter().enumerate().map(|(place, c)| format!("t.{} = w.w{place}", c.ident));
    let mut shown = tag.to_vec();
    shown.extend(table.layout.account.iter().chain(&table.layout.kind));
    let places: Vec<String> = (1..=shown.len()).map(|place| place.to_string()).collect();
    sql.push(&format!(
        "select {}, count(*) from (select distinct {} from unnest({}) as u({}) \
         join {read} a on {}) w join {read} t on {} group by {}",
        parts.cells_at("t", &shown),
        wanted.collect::<Vec<_>>().join(", "),
        arrays.join(", "),
        names.join(", "),
        parts.is_key_of("a", false),
        equal.collect::<Vec<_>>().join(" and "),
        places.join(", "),
        read = table.read,
    ));
    sql
}

pub(super) async fn rows_tagged(
    pool: &PgPool,
    table: &SourceTable,
    account: &str,
    tags: &[String],
) -> Result<Vec<Tagged>, StoreError> {
    let doing = "looking for rows of one tag";
    let Some(template) = table.tag_template(account).filter(|_| !tags.is_empty()) else {
        return Ok(Vec::new());
    };
    let wanted: HashSet<&str> = tags.iter().map(String::as_str).collect();
    let statements = Resolver::of(table, template, What::Like).statements(&wanted);
    let tag = table.tag_cells(account);
    if statements.is_empty() || tag.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let mut found = Vec::new();
    for sql in statements {
        let read = |row: &PgRow| {
            let cells = Cells::new(row, doing);
            Ok::<_, StoreError>((cells.text(0)?, read_alike(table, &cells, tag.len())?))
        };
        for (key, row) in sql.fetch_each(&mut connection, doing, read).await? {
            found.extend(sibling::tagged(table, account, &tag, &wanted, (key, &row)));
        }
    }
    Ok(found)
}

/// One row as [`What::Like`] selects it, behind its key.
fn read_alike(table: &SourceTable, cells: &Cells<'_>, tag: usize) -> Result<Alike, StoreError> {
    let texts = |from: usize, count: usize| -> Result<Vec<Option<String>>, StoreError> {
        (0..count).map(|place| cells.maybe_text(from.saturating_add(place))).collect()
    };
    let account_at = tag.saturating_add(1);
    let accounts = table.layout.account.len();
    let kind = usize::from(table.layout.kind.is_some());
    Ok(Alike {
        tag: texts(1, tag)?,
        account: texts(account_at, accounts)?,
        kind: texts(account_at.saturating_add(accounts), kind)?.pop().flatten(),
        rows: 1,
    })
}

pub(super) async fn resolve_tags(
    pool: &PgPool,
    table: &SourceTable,
    account: &str,
    tags: &[String],
) -> Result<HashSet<String>, StoreError> {
    let doing = "resolving tags";
    let Some(template) = table.tag_template(account).filter(|_| !tags.is_empty()) else {
        return Ok(HashSet::new());
    };
    let wanted: HashSet<&str> = tags.iter().map(String::as_str).collect();
    let resolver = Resolver::of(table, template, What::Tag);
    let mut resolved = HashSet::new();
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    for sql in resolver.statements(&wanted) {
        let rows = sql.fetch(&mut connection).await.map_err(failed(doing))?;
        for row in &rows {
            let cells = Cells::new(row, doing);
            let tag = resolver.read(&cells)?;
            resolved.extend(tag.filter(|tag| wanted.contains(tag.as_str())));
        }
    }
    Ok(resolved)
}

pub(super) async fn rows_known_by(
    pool: &PgPool,
    table: &SourceTable,
    account: &str,
    tags: &[String],
    references: &[String],
    keys: &[String],
) -> Result<Vec<Transaction>, StoreError> {
    let doing = "looking for the rows of lines";
    let wanted: HashSet<&str> = tags.iter().map(String::as_str).collect();
    let named: HashSet<&str> = references.iter().map(String::as_str).collect();
    let mut statements = Vec::new();
    if let Some(template) = table.tag_template(account).filter(|_| !tags.is_empty()) {
        statements.extend(Resolver::of(table, template, What::Row).statements(&wanted));
    }
    if !keys.is_empty() {
        statements.push(keyed_sql(table, keys));
    }
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let mut found: HashMap<String, Transaction> = HashMap::new();
    for sql in statements {
        let read = |row: &PgRow| read_row(table, &Cells::new(row, doing), 0);
        for row in sql.fetch_each(&mut connection, doing, read).await? {
            if sibling::is_known_by(&row, account, &wanted, &named) {
                found.insert(row.key.id.clone(), row);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// A row's image where it may be decided, and an empty text otherwise.
fn image_in_processing(parts: &Statements<'_>, sql: &mut Sql) -> String {
    let is_processing = parts.is_processing("t", sql);
    format!("case when {is_processing} then {} else '' end", parts.image("t"))
}

/// The rows of these keys, whole.
fn keyed_sql(table: &SourceTable, keys: &[String]) -> Sql {
    let parts = Statements::of(table);
    let mut sql = Sql::default();
    let (arrays, names) = parts.bind_keys(&mut sql, keys.iter().map(String::as_str));
    let image = image_in_processing(&parts, &mut sql);
    sql.push(&format!(
        "select {image}, {} from {} join {} t on {}",
        parts.cells("t"),
        set_of(&arrays, &names),
        table.read,
        parts.is_key_of("t", false),
    ));
    sql
}

/// What of the rows that were found is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// The columns of the template.
    Tag,
    /// The key, the columns of the template, the account's and the kind's.
    Like,
    /// Every mapped column.
    Row,
}

/// Looks tags of one template up, by the columns' own indexes where it reads backwards.
struct Resolver<'a> {
    table: &'a SourceTable,
    template: &'a Template,
    what: What,
    /// The template's columns, each once.
    cells: Vec<usize>,
}

impl<'a> Resolver<'a> {
    fn of(table: &'a SourceTable, template: &'a Template, what: What) -> Self {
        let mut cells: Vec<usize> =
            template.columns().filter_map(|column| table.cell(column)).collect();
        cells.sort_unstable();
        cells.dedup();
        Self { table, template, what, cells }
    }

    /// The template's columns in its order, as often as it names them.
    fn columns(&self) -> Vec<&'a Column> {
        let indexes = self.template.columns().filter_map(|column| self.table.cell(column));
        indexes.filter_map(|index| self.table.cells.get(index)).collect()
    }

    fn statements(&self, wanted: &HashSet<&str>) -> Vec<Sql> {
        let columns = self.columns();
        let mut values: Vec<Vec<String>> = vec![Vec::new(); columns.len()];
        let mut by_rendering = Vec::new();
        for tag in wanted.iter().filter(|tag| !tag.contains('\0')) {
            let Some(readings) = self.template.readings(tag, READINGS_MAX) else {
                by_rendering.push((*tag).to_owned());
                continue;
            };
            let possible = |reading: &Vec<String>| {
                columns.iter().zip(reading).all(|(column, value)| holds(column, value))
            };
            for reading in readings.into_iter().filter(possible) {
                for (column, value) in values.iter_mut().zip(reading) {
                    column.push(value);
                }
            }
        }
        let mut statements = Vec::new();
        if values.first().is_some_and(|column| !column.is_empty()) {
            let mut sql = Sql::default();
            let (from, joined) = join_values(&columns, values, &mut sql);
            let selected = self.selected(&mut sql);
            sql.push(&format!(
                "select {selected} from {from} join {} t on {joined}",
                self.table.read
            ));
            statements.push(sql);
        }
        if !by_rendering.is_empty() {
            statements.push(self.rendering(by_rendering));
        }
        statements
    }

    fn selected(&self, sql: &mut Sql) -> String {
        let parts = Statements::of(self.table);
        match self.what {
            What::Tag => parts.cells_at("t", &self.cells),
            What::Like => {
                let mut shown = self.cells.clone();
                let layout = &self.table.layout;
                shown.extend(layout.account.iter().chain(&layout.kind));
                // A row without a key is another one all the same.
                let key = format!("coalesce({}, '')", parts.key_text("t"));
                format!("{key}, {}", parts.cells_at("t", &shown))
            }
            What::Row => format!("{}, {}", image_in_processing(&parts, sql), parts.cells("t")),
        }
    }

    /// The last resort: a walk over the table, unless an index has this very expression.
    fn rendering(&self, tags: Vec<String>) -> Sql {
        let mut sql = Sql::default();
        let pieces: Vec<String> = self
            .template
            .pieces()
            .filter_map(|piece| match piece {
                Piece::Literal(text) => Some(format!("{}::text", sql.bind(text.to_owned()))),
                Piece::Column(name) => {
                    let column = self.table.cells.get(self.table.cell(name)?)?;
                    Some(format!("t.{}::text", column.ident))
                }
            })
            .collect();
        let (tags, selected) = (sql.bind(tags), self.selected(&mut sql));
        sql.push(&format!(
            "select {selected} from {} t where {} = any({tags})",
            self.table.read,
            pieces.join(" || ")
        ));
        sql
    }

    /// The row's tag.
    fn read(&self, cells: &Cells<'_>) -> Result<Option<String>, StoreError> {
        let mut texts: HashMap<&str, String> = HashMap::new();
        for (place, index) in self.cells.iter().enumerate() {
            let Some(column) = self.table.cells.get(*index) else { continue };
            if let Some(text) = cells.maybe_text(place)? {
                texts.insert(&column.name, text);
            }
        }
        Ok(self.template.render(|column| texts.get(column).map(String::as_str)).ok())
    }
}

/// The account that a row's account columns, from this place on, name.
fn read_account(
    table: &SourceTable,
    cells: &Cells<'_>,
    from: usize,
) -> Result<AccountRef, StoreError> {
    let parts: Vec<Option<String>> = (0..table.layout.account.len())
        .map(|place| cells.maybe_text(from.saturating_add(place)))
        .collect::<Result<_, _>>()?;
    Ok(account_of(table, &parts))
}

pub(super) async fn resolve_references(
    pool: &PgPool,
    table: &SourceTable,
    account: &str,
    references: &[String],
) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
    let mut owners = taken_references(pool, account, references).await?;
    for (reference, key) in keys_storing(pool, table, account, references).await? {
        let owner = (table.settings.name.clone(), key);
        let known = owners.entry(reference).or_default();
        if !known.contains(&owner) {
            known.push(owner);
        }
    }
    Ok(owners)
}

pub(super) async fn taken_references(
    pool: &PgPool,
    account: &str,
    references: &[String],
) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
    let doing = "resolving references";
    let mut owners: HashMap<String, Vec<(String, String)>> = HashMap::new();
    if references.is_empty() {
        return Ok(owners);
    }
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let mut own = Sql::new(
        // Each by its key: all of the account's are never read for a few.
        "select r.psp_reference, r.table_name, r.key from unnest($2::text[]) as u(one) \
         cross join lateral (select psp_reference, table_name, key from tieout_references \
         where account = $1 and psp_reference = u.one offset 0) r",
    );
    own.bind(account.to_owned());
    let possible = references.iter().filter(|reference| !reference.contains('\0'));
    own.bind(possible.cloned().collect::<Vec<_>>());
    let rows = own.fetch(&mut connection).await.map_err(failed(doing))?;
    for row in &rows {
        let cells = Cells::new(row, doing);
        owners.entry(cells.text(0)?).or_default().push((cells.text(1)?, cells.text(2)?));
    }
    Ok(owners)
}

pub(super) async fn references_of(
    pool: &PgPool,
    account: &str,
    table: &str,
    keys: &[String],
) -> Result<Vec<(String, String)>, StoreError> {
    let doing = "looking for what rows succeeded by";
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let mut own = Sql::new(
        "select key, psp_reference from tieout_references \
         where account = $1 and table_name = $2 and key = any($3) order by 1, 2",
    );
    own.bind(account.to_owned());
    own.bind(table.to_owned());
    own.bind(keys.to_vec());
    let rows = own.fetch(&mut connection).await.map_err(failed(doing))?;
    let read = |row: &PgRow| {
        let cells = Cells::new(row, doing);
        Ok::<_, StoreError>((cells.text(0)?, cells.text(1)?))
    };
    rows.iter().map(read).collect()
}

pub(super) async fn keys_storing(
    pool: &PgPool,
    table: &SourceTable,
    account: &str,
    references: &[String],
) -> Result<Vec<(String, String)>, StoreError> {
    let doing = "resolving references";
    let column = table.layout.psp_reference.and_then(|index| table.cells.get(index));
    let Some(column) = column else { return Ok(Vec::new()) };
    let possible: BTreeSet<&String> =
        references.iter().filter(|reference| holds(column, reference)).collect();
    if possible.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire().await.map_err(failed(doing))?;
    let sql = storing_sql(table, column, possible.into_iter().cloned().collect());
    let read = |row: &PgRow| {
        let cells = Cells::new(row, doing);
        let of = read_account(table, &cells, 2)?;
        Ok::<_, StoreError>((of, (cells.text(0)?, cells.text(1)?)))
    };
    let found = sql.fetch_each(&mut connection, doing, read).await?;
    // A row of another account may have the same reference there.
    Ok(found.into_iter().filter(|(of, _)| of.may_be(account)).map(|(_, known)| known).collect())
}

fn storing_sql(table: &SourceTable, column: &Column, references: Vec<String>) -> Sql {
    let parts = Statements::of(table);
    let mut sql = Sql::default();
    let (from, joined) = join_values(&[column], vec![references], &mut sql);
    let account_cells = parts.cells_at("t", &table.layout.account);
    let account_cells =
        if account_cells.is_empty() { account_cells } else { format!(", {account_cells}") };
    sql.push(&format!(
        "select t.{}::text, coalesce({}, ''){account_cells} from {from} join {} t on {joined} \
         order by 1, 2",
        column.ident,
        parts.key_text("t"),
        table.read
    ));
    sql
}
