//! Writing the user's rows: compared whole, written in sets, a refused row isolated.
//!
//! The caller holds the file's write lock, so that nothing changes between comparing and writing
//! but by our own statements and the user's triggers. A statement that the user's database
//! refuses is undone to its savepoint and tried again by halves, until each refusal has its row;
//! one that no row of the table could pass is not tried again.

use std::collections::{BTreeMap, HashMap, HashSet};

use sqlx::sqlite::SqliteConnection;

use crate::store::effects::RowEffects;
use crate::store::error::StoreError;
use crate::store::source_table::{Change, Column, SourceTable, Target, TypeClass};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::rows::{images, statuses, written};
use crate::store::sqlite::sql::{
    BOUND_ROWS, REFUSED, Value, execute, failed, fetch, fetch_rows, refusal, refusal_of_table,
};
use crate::store::sqlite::statements::{
    Statement, has_key, image, is_compared_by_text, key_text, named,
};

const WRITING: &str = "writing the mapped table";

const PUT_BACK: &str = "a trigger put the row back as it was";
const OVERWRITTEN: &str = "the row has another status after the write: a trigger sets it";

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// It was as decided from; its image is this now.
    Done(String),
    /// It had changed.
    Changed,
    /// The user's database refused the change, in these words.
    Refused(String),
    /// It refuses every change like this one, whatever the row, in these words.
    TableRefused(String),
}

/// One row's change, with its values in the order of its shape.
struct Write<'a> {
    key: &'a str,
    image: &'a str,
    status: &'a str,
    before: &'a str,
    sets: Vec<Option<String>>,
    history: Vec<Option<String>>,
}

/// Rows that one statement can write: the same columns in the same way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shape<'a> {
    sets: Vec<(&'a str, Change)>,
    history: Vec<&'a str>,
}

/// Compares every row, and writes those that have a status to write. `refused`: what the user's
/// database said when the change of this one row was to be committed; it is not tried again.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    effects: &[&RowEffects],
    refused: Option<&str>,
) -> Result<HashMap<String, Written>, StoreError> {
    let mut outcome = HashMap::with_capacity(effects.len());
    let mut shapes: BTreeMap<Shape<'_>, Vec<Write<'_>>> = BTreeMap::new();
    // Where the image stands in another relation than the status, it is compared by a read.
    let by_update = |effect: &RowEffects| {
        effect.status_to.is_some() && table.write_is_read && refused.is_none()
    };
    let read: Vec<&&RowEffects> = effects.iter().filter(|effect| !by_update(effect)).collect();
    let keys: Vec<&str> = read.iter().map(|effect| effect.journal.key.as_str()).collect();
    let mut now =
        if keys.is_empty() { HashMap::new() } else { images(connection, table, &keys).await? };
    for effect in read {
        let found = now.remove(&effect.journal.key).filter(|image| *image == effect.image);
        let written = found.map_or(Written::Changed, Written::Done);
        outcome.insert(effect.journal.key.clone(), written);
    }
    for effect in effects {
        if matches!(outcome.get(&effect.journal.key), Some(Written::Changed)) {
            continue;
        }
        let Some(status) = &effect.status_to else { continue };
        if let Some(why) = refused {
            outcome.insert(effect.journal.key.clone(), Written::Refused(why.to_owned()));
            continue;
        }
        let (shape, write) = shaped(table, effect, status)?;
        shapes.entry(shape).or_default().push(write);
    }
    if !shapes.is_empty() {
        let has_triggers = has_triggers(connection, table).await?;
        for (shape, writes) in &shapes {
            let group = Group { table, shape, has_triggers };
            outcome.extend(group.write(connection, writes).await?);
        }
    }
    Ok(outcome)
}

fn shaped<'a>(
    table: &'a SourceTable,
    effect: &'a RowEffects,
    status: &'a str,
) -> Result<(Shape<'a>, Write<'a>), StoreError> {
    let unknown = |column: &str| StoreError::Unexpected {
        doing: WRITING,
        problem: format!("`{column}` was not checked against the catalogue"),
    };
    let mut shape = Shape { sets: Vec::new(), history: Vec::new() };
    let mut write = Write {
        key: &effect.journal.key,
        image: &effect.image,
        status,
        before: &effect.journal.status_before,
        sets: Vec::new(),
        history: Vec::new(),
    };
    for (column, value) in &effect.sets {
        let target = table.sets.get(column).ok_or_else(|| unknown(column))?;
        let (change, text) = target.change(value);
        shape.sets.push((column, change));
        write.sets.push(text);
    }
    let targets = table.history.as_ref().map(|history| &history.columns);
    for (column, value) in &effect.history {
        let target = targets.and_then(|t| t.get(column)).ok_or_else(|| unknown(column))?;
        shape.history.push(column);
        write.history.push(target.change(value).1);
    }
    Ok((shape, write))
}

/// Whether triggers of the written relation may change what was just written.
async fn has_triggers(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<bool, StoreError> {
    let name = table.settings.write.as_ref().unwrap_or(&table.settings.read);
    let name = name.split_once('.').map_or(name.as_str(), |(_, name)| name);
    let query = sqlx::query(
        "select 1 from sqlite_master where type = 'trigger' and tbl_name = ?1 collate nocase",
    )
    .bind(name.to_owned());
    Ok(!fetch(connection, WRITING, query).await?.is_empty())
}

/// Whether any trigger deletes rows: what it can take away may be gone, and has no other key.
async fn takes_rows_away(connection: &mut SqliteConnection) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "select 1 from sqlite_master where type = 'trigger' and sql like '%delete from%' limit 1",
    );
    Ok(!fetch(connection, WRITING, query).await?.is_empty())
}

/// How SQLite would write a batch of rows, step by step.
pub(super) async fn plan(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<Vec<String>, StoreError> {
    let shape = Shape { sets: Vec::new(), history: Vec::new() };
    let group = Group { table, shape: &shape, has_triggers: false };
    let mut statement = Statement::default();
    statement.push(&group.updating(&vec!["(?, ?, ?)"; BOUND_ROWS].join(", ")));
    let rows = fetch(connection, WRITING, statement.explained().query()).await?;
    rows.iter().map(|row| Cells::new(row, WRITING).text(3)).collect()
}

/// One shape's statements.
struct Group<'a> {
    table: &'a SourceTable,
    shape: &'a Shape<'a>,
    has_triggers: bool,
}

/// How trying a part of a group ended.
enum Tried {
    Done(HashMap<String, Written>),
    Refused(String),
    TableRefused(String),
}

impl Group<'_> {
    async fn write(
        &self,
        connection: &mut SqliteConnection,
        writes: &[Write<'_>],
    ) -> Result<HashMap<String, Written>, StoreError> {
        let mut outcome = HashMap::with_capacity(writes.len());
        let mut parts = vec![writes];
        while let Some(part) = parts.pop() {
            savepoint(connection, "savepoint tieout_rows").await?;
            match self.try_write(connection, part).await? {
                Tried::Done(written) => outcome.extend(written),
                Tried::TableRefused(why) => {
                    undo(connection, &why).await?;
                    // What was refused held nothing against the rows as they are.
                    let keys: Vec<&str> = part.iter().map(|write| write.key).collect();
                    let now = images(connection, self.table, &keys).await?;
                    let refused = |write: &Write<'_>| {
                        let is_same = now.get(write.key).is_some_and(|now| *now == write.image);
                        let written = match is_same {
                            true => Written::TableRefused(why.clone()),
                            false => Written::Changed,
                        };
                        (write.key.to_owned(), written)
                    };
                    outcome.extend(part.iter().map(refused));
                }
                Tried::Refused(why) => {
                    undo(connection, &why).await?;
                    match part {
                        [only] => {
                            outcome.insert(only.key.to_owned(), Written::Refused(why));
                        }
                        several => {
                            let middle = several.len().div_ceil(2);
                            let (first, second) = several.split_at(middle);
                            parts.push(second);
                            parts.push(first);
                        }
                    }
                }
            }
            savepoint(connection, "release tieout_rows").await?;
        }
        Ok(outcome)
    }

    async fn try_write(
        &self,
        connection: &mut SqliteConnection,
        part: &[Write<'_>],
    ) -> Result<Tried, StoreError> {
        let updated = match self.update(connection, part).await? {
            Ok(updated) => updated,
            Err(refused) => return Ok(refused),
        };
        let asked: HashSet<&str> = part.iter().map(|write| write.key).collect();
        if updated.keys().any(|key| !asked.contains(key.as_str())) {
            return Ok(Tried::Refused(self.table.rekeyed()));
        }
        if let Some(refused) = self.insert_history(connection, part, &updated).await? {
            return Ok(refused);
        }
        if !self.is_read_again(part.len(), updated.len()) {
            let done = updated.into_iter().map(|(key, image)| (key, Written::Done(image)));
            return Ok(Tried::Done(done.collect()));
        }
        if let Some(why) = self.not_kept(connection, part, &updated).await? {
            return Ok(Tried::Refused(why));
        }
        let keys: Vec<&str> = part.iter().map(|write| write.key).collect();
        let mut now = images(connection, self.table, &keys).await?;
        if let Some(why) = self.lost(connection, part, &updated, &now).await? {
            return Ok(Tried::Refused(why));
        }
        let mut outcome = HashMap::with_capacity(part.len());
        for write in part {
            let image = now.remove(write.key);
            let written = match (updated.get(write.key), image) {
                (Some(_), Some(image)) if self.has_triggers && image == write.image => {
                    return Ok(Tried::Refused(PUT_BACK.to_owned()));
                }
                (Some(_), Some(image)) => Written::Done(image),
                // A trigger took the row away once it was written.
                (Some(after), None) => Written::Done(after.clone()),
                (None, Some(image)) if image == write.image && !self.has_triggers => {
                    Written::Refused(self.table.not_there())
                }
                // A trigger that says `raise(ignore)` skips the row without an error.
                (None, Some(image)) if image == write.image => {
                    Written::Refused(self.table.skipped())
                }
                (None, Some(_) | None) => Written::Changed,
            };
            outcome.insert(write.key.to_owned(), written);
        }
        Ok(Tried::Done(outcome))
    }

    /// Why a row that was written does not show the status that it was given. In a view, where it
    /// shows the old one: the write met another table's row, whose key and status are called the
    /// same. In the table itself: a trigger that came after the write set another one.
    async fn not_kept(
        &self,
        connection: &mut SqliteConnection,
        part: &[Write<'_>],
        updated: &HashMap<String, String>,
    ) -> Result<Option<String>, StoreError> {
        let is_itself = self.table.write_is_read;
        if is_itself && !self.has_triggers {
            return Ok(None);
        }
        let written = part.iter().filter(|write| updated.contains_key(write.key));
        let moved: Vec<&Write<'_>> = written.filter(|write| write.status != write.before).collect();
        let keys: Vec<&str> = moved.iter().map(|write| write.key).collect();
        let now = statuses(connection, self.table, &keys).await?;
        for write in moved {
            // What a trigger took away is gone.
            let Some(now) = now.get(write.key) else { continue };
            let now = now.as_deref();
            if now == Some(write.before) {
                let why = if is_itself { PUT_BACK.to_owned() } else { self.table.elsewhere() };
                return Ok(Some(why));
            }
            if is_itself && now != Some(write.status) {
                return Ok(Some(OVERWRITTEN.to_owned()));
            }
        }
        Ok(None)
    }

    /// Why a row that was written is not found again by its key: it is there, and what is read
    /// shows it no more, so that nobody would look at it; or a trigger gave it another key. What a
    /// trigger took away, as far as one can, is gone. `now`: the images that are shown.
    async fn lost(
        &self,
        connection: &mut SqliteConnection,
        part: &[Write<'_>],
        updated: &HashMap<String, String>,
        now: &HashMap<String, String>,
    ) -> Result<Option<String>, StoreError> {
        let table = self.table;
        let keys = part.iter().map(|write| write.key);
        let gone: Vec<&str> =
            keys.filter(|key| updated.contains_key(*key) && !now.contains_key(*key)).collect();
        if gone.is_empty() {
            return Ok(None);
        }
        let is_hidden = match table.write_is_read {
            // Of a view that is written through nothing else tells of its rows.
            true => table.read_is_view,
            false => !written(connection, table, &gone).await?.is_empty(),
        };
        if is_hidden {
            return Ok(Some(table.unseen()));
        }
        Ok((!takes_rows_away(connection).await?).then(|| table.rekeyed()))
    }

    /// What `returning` said is not the end of it where triggers, another relation, or rows that
    /// did not come back are in play.
    fn is_read_again(&self, wanted: usize, updated: usize) -> bool {
        self.has_triggers || !self.table.write_is_read || updated < wanted
    }

    /// The statement that writes rows, each with its key, its image and its new values.
    fn updating(&self, rows: &str) -> String {
        let table = self.table;
        let key: Vec<&Column> = table.write_key.iter().collect();
        let plain = |column: &Column| column.ident.to_string();
        let status = &table.write_status;
        let mut sets = vec![format!("{} = {}", status.ident, assigned(status, "j.column3"))];
        for (place, (name, change)) in self.shape.sets.iter().enumerate() {
            let Some(target) = table.sets.get(*name) else { continue };
            let value = format!("j.column{}", place.saturating_add(4));
            sets.push(format!("{} = {}", target.column.ident, changed(target, *change, &value)));
        }
        let (compared, after) = if table.write_is_read {
            let is_same = format!(" and {} = +j.column2", image(table, |c| named("w", c)));
            (is_same, image(table, plain))
        } else {
            (String::new(), "''".to_owned())
        };
        // With a `+` the batch's own columns are nothing to index: else SQLite walks the whole
        // table by them for each batch, once it was analyzed with one status in it. A key that is
        // compared by its text has no index in the table, and is better off with one here.
        let by_text = key.iter().any(|column| is_compared_by_text(column));
        let id = if by_text { "j.column1" } else { "+j.column1" };
        format!(
            "update {} as w set {} from (values {rows}) j where {}{compared} returning {}, {after}",
            table.write,
            sets.join(", "),
            has_key(&key, "w", id),
            key_text(&key, plain),
        )
    }

    /// The keys that were updated, with their new images (empty where another relation is read);
    /// or the refusal.
    async fn update(
        &self,
        connection: &mut SqliteConnection,
        part: &[Write<'_>],
    ) -> Result<Result<HashMap<String, String>, Tried>, StoreError> {
        let table = self.table;
        let status = &table.write_status;
        let sql = |rows: &str| self.updating(rows);
        let values = part.iter().map(|write| {
            let columns = self.shape.sets.iter().filter_map(|(name, _)| table.sets.get(*name));
            let head =
                [write.key.into(), write.image.into(), value_for(status, Some(write.status))];
            let rest = columns
                .zip(&write.sets)
                .map(|(target, text)| value_for(&target.column, text.as_deref()));
            head.into_iter().chain(rest).collect()
        });
        let rows = match fetch_rows(connection, values, sql).await {
            Ok(rows) => rows,
            Err(error) => return refused(error).map(Err),
        };
        let pair = |row| {
            let cells = Cells::new(row, WRITING);
            Ok((cells.text(0)?, cells.text(1)?))
        };
        rows.iter().map(pair).collect::<Result<_, StoreError>>().map(Ok)
    }

    /// One INSERT for every row that was updated; the refusal, where there is one.
    async fn insert_history(
        &self,
        connection: &mut SqliteConnection,
        part: &[Write<'_>],
        updated: &HashMap<String, String>,
    ) -> Result<Option<Tried>, StoreError> {
        let Some(history) = self.table.history.as_ref().filter(|_| !self.shape.history.is_empty())
        else {
            return Ok(None);
        };
        let targets: Vec<&Target> =
            self.shape.history.iter().filter_map(|name| history.columns.get(*name)).collect();
        let names: Vec<String> = targets.iter().map(|t| t.column.ident.to_string()).collect();
        let values: Vec<String> = (1..=targets.len())
            .zip(&targets)
            .map(|(place, target)| assigned(&target.column, &format!("j.column{place}")))
            .collect();
        let sql = |rows: &str| {
            format!(
                "insert into {} ({}) select {} from (values {rows}) j",
                history.name,
                names.join(", "),
                values.join(", ")
            )
        };
        let rows = part.iter().filter(|write| updated.contains_key(write.key)).map(|write| {
            let values = targets.iter().zip(&write.history);
            values.map(|(t, v)| value_for(&t.column, v.as_deref())).collect()
        });
        match fetch_rows(connection, rows, sql).await {
            Ok(_) => Ok(None),
            Err(error) => refused(error).map(Some),
        }
    }
}

/// What a statement that failed comes to: a refusal of the user's database, or trouble.
fn refused(error: sqlx::Error) -> Result<Tried, StoreError> {
    if let Some(why) = refusal(&error) {
        return Ok(Tried::Refused(why));
    }
    refusal_of_table(&error).map(Tried::TableRefused).ok_or_else(|| failed(WRITING)(error))
}

/// A value as the one that becomes what the column holds.
fn value_for(column: &Column, text: Option<&str>) -> Value {
    let Some(text) = text else { return Value::Text(None) };
    let number = match column.class {
        TypeClass::Boolean => crate::store::decode::boolean(text).map(i64::from),
        TypeClass::Integer => text.parse().ok(),
        TypeClass::Decimal
        | TypeClass::Float
        | TypeClass::Text
        | TypeClass::Padded
        | TypeClass::Uuid
        | TypeClass::Enum(_)
        | TypeClass::TimestampTz
        | TypeClass::Timestamp
        | TypeClass::Date
        | TypeClass::Bytes
        | TypeClass::Other => None,
    };
    number.map_or_else(|| text.into(), |number: i64| number.into())
}

/// A value on its way into a column.
fn assigned(column: &Column, value: &str) -> String {
    if column.class == TypeClass::Bytes {
        return format!("unhex({value})");
    }
    value.to_owned()
}

fn changed(target: &Target, change: Change, value: &str) -> String {
    let before = named("w", &target.column);
    match change {
        Change::Assign => assigned(&target.column, value),
        Change::Plus => format!("ifnull({before}, 0) + {value}"),
        // Text that is empty holds nothing either: applications write '' where others write NULL.
        Change::IfNull if target.is_text() => {
            format!("case when trim({before}) <> '' then {before} else {value} end")
        }
        Change::IfNull => format!("ifnull({before}, {})", assigned(&target.column, value)),
    }
}

/// Back to before the refused statement. A trigger that says `raise(rollback)` has ended the whole
/// transaction; the refusal then goes up to whoever holds it, and is told by its code.
async fn undo(connection: &mut SqliteConnection, why: &str) -> Result<(), StoreError> {
    savepoint(connection, "rollback to tieout_rows").await.map_err(|_| StoreError::Query {
        doing: WRITING,
        message: why.to_owned(),
        code: Some(REFUSED.to_string()),
        detail: Some("a trigger rolled the whole transaction back".to_owned()),
        asker: None,
    })
}

async fn savepoint(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), StoreError> {
    execute(connection, WRITING, sqlx::query(sql)).await.map(|_| ())
}
