//! Writing and comparing the user's own rows, set by set.
//!
//! A row is written only where its image is still the one that was decided from; rows whose
//! status stays are locked and compared all the same. A batch that the user's database refuses is
//! halved until the guilty row stands alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use sqlx::postgres::PgConnection;

use crate::decide::policy::Mode;
use crate::store::effects::{RowEffects, SetValue};
use crate::store::error::StoreError;
use crate::store::postgres::errors::{
    Calls, calls_for, failed, failure, is_limit, is_of_machine, is_raised, shown, unexpected,
};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::statements::Statements;
use crate::store::source_table::{Change, SourceTable, Target};

const WRITING: &str = "writing the decided rows";

/// How long one row may wait for a lock where each is tried by itself.
const SHORT_PATIENCE: &str = "250ms";

/// Why an attempt at a batch ended without a commit.
#[derive(Debug)]
pub(super) enum Fault {
    /// A deadlock or a serialization failure: the whole again.
    Again,
    /// Somebody holds a row for long: again, leaving out what is held.
    Held,
    /// A row is refused: again, one half at a time.
    Refused,
    /// It may be one row's alone: again, each row apart, and where they were apart it cannot be
    /// done.
    Apart(StoreError),
    /// Some rows' leases are no longer ours: again without them.
    Lost,
    /// It cannot be done.
    Store(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A failed statement on the user's rows.
pub(super) fn fault(error: sqlx::Error) -> Fault {
    match calls_for(&error) {
        Calls::Again => Fault::Again,
        Calls::SkipLocked => Fault::Held,
        Calls::FindGuilty => Fault::Refused,
        Calls::Apart | Calls::Server => Fault::Apart(failed(WRITING)(error)),
        Calls::Stop => Fault::Store(failed(WRITING)(error)),
    }
}

/// With which care a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Care {
    /// Halve what is refused.
    pub(super) halve: bool,
    /// Leave out rows that somebody holds.
    pub(super) skip_held: bool,
    /// Trouble that came again and again is some row's: halve it too, and leave that row out.
    pub(super) isolate: bool,
}

impl Care {
    /// Tries rows apart, so that trouble is one row's alone.
    pub(super) fn isolate(&mut self) {
        (self.halve, self.isolate) = (true, true);
    }
}

/// What became of a set of rows.
#[derive(Debug, Default)]
pub(super) struct RowsEnd {
    /// Rows that were still as decided, with their new image where they were written.
    pub(super) came: HashMap<usize, Option<String>>,
    /// Rows that the user's database refuses, with its words.
    pub(super) refused: Vec<(usize, String)>,
    /// Rows that could not be had for now, though nobody holds the row itself.
    pub(super) held: HashSet<usize>,
    /// What looks like the server's own trouble, of rows that were tried alone: it is, where no row
    /// could be written.
    pub(super) trouble: Option<StoreError>,
}

/// The rows of one batch at one table.
pub(super) struct Rows<'a> {
    pub(super) table: &'a SourceTable,
    pub(super) batch: &'a [RowEffects],
    pub(super) care: Care,
}

const UNDONE: &str = "the row has another status after the write: a trigger undoes it";

/// Why a set of rows could not be written.
enum Refusal {
    Error(sqlx::Error),
    /// The database wrote another status than it was told.
    Undone,
    /// The written row is not the one that the view shows.
    Elsewhere,
    /// The view shows the row no more.
    Unseen,
    /// No row has the key any more under which it was written.
    Rekeyed,
}

impl Refusal {
    fn fault(self) -> Fault {
        match self {
            Self::Error(error) => fault(error),
            Self::Undone | Self::Elsewhere | Self::Unseen | Self::Rekeyed => Fault::Refused,
        }
    }

    /// What it says in the words of the server's own trouble.
    fn trouble(&self) -> Option<StoreError> {
        match self {
            Self::Error(error) if calls_for(error) == Calls::Server => {
                Some(failure(WRITING, error))
            }
            Self::Error(_) | Self::Undone | Self::Elsewhere | Self::Unseen | Self::Rekeyed => None,
        }
    }
}

/// Columns that a row's write changes, and how: rows of one shape go in one statement.
type Shape = Vec<(String, Change)>;

impl Rows<'_> {
    /// Writes and compares these rows.
    pub(super) async fn settle(
        &self,
        connection: &mut PgConnection,
        indexes: &[usize],
    ) -> Result<RowsEnd, Fault> {
        let mut end = RowsEnd::default();
        let (written, compared): (Vec<usize>, Vec<usize>) =
            indexes.iter().copied().partition(|index| self.status_to(*index).is_some());
        let unchanged = self.table.write_is_read && !self.care.skip_held;
        let held = match unchanged {
            true => None,
            false => Some(self.hold(connection, indexes, &mut end).await?),
        };
        let is_held = |index: &usize| held.as_ref().is_none_or(|held| held.contains(index));
        let written: Vec<usize> = written.into_iter().filter(&is_held).collect();
        let patience = match self.care.isolate {
            true => Some(lose_patience(connection).await?),
            false => None,
        };
        for (shape, group) in self.shapes(&written) {
            self.write(connection, &shape, group, &mut end).await?;
        }
        if let Some(patience) = patience {
            wait_for_locks(connection, &patience).await?;
        }
        self.find_swallowed(connection, &written, &mut end).await?;
        let refused: Vec<usize> = end.refused.iter().map(|(index, _)| *index).collect();
        let compared: Vec<usize> = compared.into_iter().filter(&is_held).chain(refused).collect();
        match self.table.write_is_read {
            true => self.compare(connection, &compared, &mut end).await?,
            // Held, and compared through the view.
            false => end.came.extend(compared.into_iter().map(|index| (index, None))),
        }
        if !self.table.write_is_read {
            self.read_new_images(connection, &mut end).await?;
        }
        Ok(end)
    }

    fn status_to(&self, index: usize) -> Option<&str> {
        self.batch.get(index).and_then(|row| row.status_to.as_deref())
    }

    fn key(&self, index: usize) -> &str {
        self.batch.get(index).map_or("", |row| row.journal.key.as_str())
    }

    fn image(&self, index: usize) -> &str {
        self.batch.get(index).map_or("", |row| row.image.as_str())
    }

    fn shapes(&self, indexes: &[usize]) -> BTreeMap<Shape, Vec<usize>> {
        let mut shapes: BTreeMap<Shape, Vec<usize>> = BTreeMap::new();
        for index in indexes {
            let Some(row) = self.batch.get(*index) else { continue };
            let shape = row.sets.iter().filter_map(|(column, value)| {
                let target = self.table.sets.get(column)?;
                Some((column.clone(), target.change(value).0))
            });
            shapes.entry(shape.collect()).or_default().push(*index);
        }
        shapes
    }

    async fn write(
        &self,
        connection: &mut PgConnection,
        shape: &Shape,
        group: Vec<usize>,
        end: &mut RowsEnd,
    ) -> Result<(), Fault> {
        if !self.care.halve {
            let came = self.write_set(connection, shape, &group).await?;
            end.came.extend(came.map_err(|refusal| refusal.fault())?);
            return Ok(());
        }
        let mut parts = vec![group];
        while let Some(part) = parts.pop() {
            plain(connection, "savepoint tieout_rows").await?;
            let refusal = match self.write_set(connection, shape, &part).await? {
                Ok(came) => {
                    plain(connection, "release savepoint tieout_rows").await?;
                    end.came.extend(came);
                    continue;
                }
                Err(refusal) => refusal,
            };
            let trouble = refusal.trouble();
            let blamed = self.blamed(refusal)?;
            plain(connection, "rollback to savepoint tieout_rows").await?;
            plain(connection, "release savepoint tieout_rows").await?;
            match part.as_slice() {
                [guilty] => {
                    end.trouble = end.trouble.take().or(trouble);
                    match blamed {
                        Some(words) => end.refused.push((*guilty, words)),
                        None => {
                            end.held.insert(*guilty);
                        }
                    }
                }
                several => {
                    let (left, right) = several.split_at(several.len() / 2);
                    parts.push(right.to_vec());
                    parts.push(left.to_vec());
                }
            }
        }
        Ok(())
    }

    /// What is to be said of a row that was not written for this; none where nothing is wrong with
    /// it, and it can only not be had for now.
    fn blamed(&self, refusal: Refusal) -> Result<Option<String>, Fault> {
        let error = match refusal {
            Refusal::Undone => return Ok(Some(UNDONE.to_owned())),
            Refusal::Elsewhere => return Ok(Some(self.table.elsewhere())),
            Refusal::Unseen => return Ok(Some(self.table.unseen())),
            Refusal::Rekeyed => return Ok(Some(self.table.rekeyed())),
            Refusal::Error(error) => error,
        };
        match calls_for(&error) {
            Calls::FindGuilty => Ok(Some(shown(&error))),
            Calls::Again | Calls::SkipLocked | Calls::Apart if self.care.isolate => {
                Ok((is_raised(&error) || is_limit(&error)).then(|| shown(&error)))
            }
            Calls::Server if self.care.isolate => {
                Ok((is_raised(&error) || !is_of_machine(&error)).then(|| shown(&error)))
            }
            Calls::Again | Calls::SkipLocked | Calls::Apart | Calls::Server | Calls::Stop => {
                Err(fault(error))
            }
        }
    }

    /// One UPDATE, and one INSERT into the history for what it changed.
    async fn write_set(
        &self,
        connection: &mut PgConnection,
        shape: &Shape,
        group: &[usize],
    ) -> Result<Result<Vec<(usize, Option<String>)>, Refusal>, StoreError> {
        let rows = match self.update_sql(shape, group).fetch(&mut *connection).await {
            Ok(rows) => rows,
            Err(error) => return Ok(Err(Refusal::Error(error))),
        };
        let by_key = self.by_key(group);
        let mut came = Vec::with_capacity(rows.len());
        let mut seen = HashSet::with_capacity(rows.len());
        for row in &rows {
            let cells = Cells::new(row, WRITING);
            let key = cells.text(0)?;
            // What was written, and is no row of the batch, was one before the write.
            let Some(index) = by_key.get(key.as_str()) else { return Ok(Err(Refusal::Rekeyed)) };
            if !seen.insert(*index) {
                let problem = format!("{} has several rows of the key {key}", self.table.write);
                return Err(unexpected(WRITING, problem));
            }
            if cells.maybe_text(2)?.as_deref() != self.status_to(*index) {
                return Ok(Err(Refusal::Undone));
            }
            came.push((*index, Some(cells.text(1)?)));
        }
        if self.is_elsewhere(connection, &came).await? {
            return Ok(Err(Refusal::Elsewhere));
        }
        if let Some(refusal) = self.not_kept(connection, &came).await? {
            return Ok(Err(refusal));
        }
        if let Some(sql) = self.history_sql(&came)
            && let Err(error) = sql.run(connection).await
        {
            return Ok(Err(Refusal::Error(error)));
        }
        Ok(Ok(came))
    }

    /// Whether the view still shows the old status of a row that was written: then the write met
    /// another table's row, whose key and status are called the same.
    async fn is_elsewhere(
        &self,
        connection: &mut PgConnection,
        came: &[(usize, Option<String>)],
    ) -> Result<bool, StoreError> {
        if self.table.write_is_read || came.is_empty() {
            return Ok(false);
        }
        let parts = Statements::of(self.table);
        let mut sql = Sql::default();
        let keys = came.iter().map(|(index, _)| self.key(*index));
        let (mut arrays, mut names) = parts.bind_keys(&mut sql, keys);
        let before = came.iter().map(|(index, _)| {
            let row = self.batch.get(*index).map(|row| &row.journal);
            let before = row.map(|record| record.status_before.as_str());
            before.filter(|before| self.status_to(*index) != Some(before))
        });
        arrays.push(text_array(&mut sql, before));
        names.push("before".to_owned());
        sql.push(&format!(
            "select 1 from {} as t join unnest({}) as u({}) on {} where {} = u.before limit 1",
            self.table.read,
            arrays.join(", "),
            names.join(", "),
            parts.is_key_of("t", false),
            parts.cells_at("t", &[self.table.layout.status]),
        ));
        Ok(!sql.fetch(connection).await.map_err(failed(WRITING))?.is_empty())
    }

    /// Whether a row that was written does not read back so: a view shows it no more, and nobody
    /// would look at it again; or a trigger that came after the write set another status, and the
    /// row is not what was decided; or it gave the row another key. What a trigger took away, as
    /// far as one can, is gone. What RETURNING said was before such triggers.
    async fn not_kept(
        &self,
        connection: &mut PgConnection,
        came: &[(usize, Option<String>)],
    ) -> Result<Option<Refusal>, StoreError> {
        let table = self.table;
        let may_hide = table.read_is_view || !table.write_is_read;
        let may_undo = table.write_is_read && !table.writes_alone;
        if came.is_empty() || !(may_hide || may_undo) {
            return Ok(None);
        }
        let parts = Statements::of(table);
        let mut sql = Sql::default();
        let keys = came.iter().map(|(index, _)| self.key(*index));
        let (mut arrays, mut names) = parts.bind_keys(&mut sql, keys);
        let written = came.iter().map(|(index, _)| self.status_to(*index));
        arrays.push(text_array(&mut sql, written));
        names.push("written".to_owned());
        let hidden = match (may_hide, table.write_is_read) {
            (false, _) => "false".to_owned(),
            (true, true) => "r.there is null".to_owned(),
            // OFFSET 0 keeps it a look-up by key for each row.
            (true, false) => format!(
                "r.there is null and exists (select from {} as w where {} offset 0)",
                table.write,
                parts.is_key_of("w", true)
            ),
        };
        let undone = match may_undo {
            true => "r.there and r.status is distinct from u.written",
            false => "false",
        };
        sql.push(&format!(
            "select r.there is null, coalesce(({hidden}) or ({undone}), false) \
             from unnest({}) as u({}) left join lateral (\
             select true as there, {} as status from {} as t where {} limit 1) r on true \
             where r.there is null or ({undone}) order by 2 desc limit 1",
            arrays.join(", "),
            names.join(", "),
            parts.cells_at("t", &[table.layout.status]),
            table.read,
            parts.is_key_of("t", false),
        ));
        let found = sql.fetch(connection).await.map_err(failed(WRITING))?;
        let Some(row) = found.first() else { return Ok(None) };
        let cells = Cells::new(row, WRITING);
        Ok(match (cells.flag(0)?, cells.flag(1)?) {
            (true, true) => Some(Refusal::Unseen),
            (false, _) => Some(Refusal::Undone),
            (true, false) => (!self.takes_rows_away(connection).await?).then_some(Refusal::Rekeyed),
        })
    }

    /// Whether a trigger of the written table deletes rows: what it can take away may be gone, and
    /// has no other key.
    async fn takes_rows_away(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        let mut sql = Sql::new("with w as (select ");
        let name = sql.bind(self.table.write.to_string());
        sql.push(&format!(
            "{name}::text::regclass::oid as oid) \
             select exists (select from w, pg_trigger g join pg_proc p on p.oid = g.tgfoid \
             where not g.tgisinternal and g.tgenabled <> 'D' \
             and p.prosrc ~* 'delete[[:space:]]+from' and (g.tgrelid = w.oid \
             or g.tgrelid in (select t.relid from pg_partition_tree(w.oid) t)))"
        ));
        let rows = sql.fetch(connection).await.map_err(failed(WRITING))?;
        rows.first().map_or(Ok(false), |row| Cells::new(row, WRITING).flag(0))
    }

    fn update_sql(&self, shape: &Shape, group: &[usize]) -> Sql {
        let parts = Statements::of(self.table);
        let mut sql = Sql::default();
        let keys = group.iter().map(|index| self.key(*index));
        let (mut arrays, mut names) = parts.bind_keys(&mut sql, keys);
        let status = &self.table.write_status;
        let mut sets = vec![format!("{} = u.s::{}", status.ident, status.type_name)];
        arrays.push(text_array(&mut sql, group.iter().map(|index| self.status_to(*index))));
        names.push("s".to_owned());
        for (place, (column, change)) in shape.iter().enumerate() {
            let Some(target) = self.table.sets.get(column) else { continue };
            let values = group.iter().map(|index| self.set_text(*index, column, target));
            arrays.push(text_array(&mut sql, values));
            names.push(format!("v{place}"));
            let value = new_value(target, *change, &format!("u.v{place}"));
            sets.push(format!("{} = {value}", target.column.ident));
        }
        let mut conditions = vec![parts.is_key_of("w", true)];
        // A view's rows were locked and compared before: the image is not the written table's.
        if self.table.write_is_read {
            arrays.push(text_array(&mut sql, group.iter().map(|index| Some(self.image(*index)))));
            names.push("image".to_owned());
            conditions.push(format!("{} = u.image", parts.image("w")));
        }
        let image = match self.table.write_is_read {
            true => parts.image("w"),
            false => "''".to_owned(),
        };
        sql.push(&format!(
            "update {} as w set {} from unnest({}) as u({}) where {} \
             returning {}, {image}, w.{}::text",
            self.table.write,
            sets.join(", "),
            arrays.join(", "),
            names.join(", "),
            conditions.join(" and "),
            parts.write_key_text("w"),
            status.ident,
        ));
        sql
    }

    fn set_text(&self, index: usize, column: &str, target: &Target) -> Option<String> {
        let row = self.batch.get(index)?;
        let (_, value) = row.sets.iter().find(|(known, _)| known == column)?;
        target.change(value).1
    }

    /// The INSERT into the history for rows that were changed.
    fn history_sql(&self, came: &[(usize, Option<String>)]) -> Option<Sql> {
        let history = self.table.history.as_ref()?;
        let rows: Vec<&Vec<(String, SetValue)>> = came
            .iter()
            .filter_map(|(index, _)| self.batch.get(*index))
            .map(|row| &row.history)
            .filter(|columns| !columns.is_empty())
            .collect();
        if rows.is_empty() || history.columns.is_empty() {
            return None;
        }
        let mut sql = Sql::default();
        let (mut arrays, mut names) = (Vec::new(), Vec::new());
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (place, (name, target)) in history.columns.iter().enumerate() {
            let texts = rows.iter().map(|row| {
                let (_, value) = row.iter().find(|(known, _)| known == name)?;
                target.change(value).1
            });
            arrays.push(text_array(&mut sql, texts));
            names.push(format!("v{place}"));
            columns.push(target.column.ident.to_string());
            values.push(format!("u.v{place}::{}", target.column.type_name));
        }
        sql.push(&format!(
            "insert into {} ({}) select {} from unnest({}) as u({})",
            history.name,
            columns.join(", "),
            values.join(", "),
            arrays.join(", "),
            names.join(", "),
        ));
        Some(sql)
    }

    /// Rows that were as decided and that the write did not return: a trigger swallowed it.
    async fn find_swallowed(
        &self,
        connection: &mut PgConnection,
        written: &[usize],
        end: &mut RowsEnd,
    ) -> Result<(), Fault> {
        let refused: HashSet<usize> = end.refused.iter().map(|(index, _)| *index).collect();
        let is_missing = |index: &&usize| {
            let is_told = refused.contains(*index) || end.held.contains(*index);
            !end.came.contains_key(*index) && !is_told
        };
        let missing: Vec<usize> = written.iter().filter(is_missing).copied().collect();
        let mut unchanged = RowsEnd::default();
        match self.table.write_is_read {
            true => self.compare(connection, &missing, &mut unchanged).await?,
            // Held and compared before the write.
            false => unchanged.came.extend(missing.into_iter().map(|index| (index, None))),
        }
        let swallowed = unchanged.came.into_keys().map(|index| (index, self.table.skipped()));
        end.refused.extend(swallowed);
        Ok(())
    }

    /// Locks and compares rows whose status stays.
    async fn compare(
        &self,
        connection: &mut PgConnection,
        indexes: &[usize],
        end: &mut RowsEnd,
    ) -> Result<(), Fault> {
        if indexes.is_empty() {
            return Ok(());
        }
        let parts = Statements::of(self.table);
        let mut sql = Sql::default();
        let keys = indexes.iter().map(|index| self.key(*index));
        let (mut arrays, mut names) = parts.bind_keys(&mut sql, keys);
        arrays.push(text_array(&mut sql, indexes.iter().map(|index| Some(self.image(*index)))));
        names.push("image".to_owned());
        sql.push(&format!(
            "select {} from {} as w join unnest({}) as u({}) on {} where {} = u.image {}",
            parts.write_key_text("w"),
            self.table.write,
            arrays.join(", "),
            names.join(", "),
            parts.is_key_of("w", true),
            parts.image("w"),
            self.locking("w", ""),
        ));
        let rows = sql.fetch(connection).await.map_err(fault)?;
        let by_key = self.by_key(indexes);
        for row in &rows {
            let key = Cells::new(row, WRITING).text(0)?;
            if let Some(index) = by_key.get(key.as_str()) {
                end.came.insert(*index, None);
            }
        }
        Ok(())
    }

    /// Locks rows of the written table in the order of their keys, and answers which of them are
    /// still as decided, read anew: through the view where there is one.
    async fn hold(
        &self,
        connection: &mut PgConnection,
        indexes: &[usize],
        end: &mut RowsEnd,
    ) -> Result<HashSet<usize>, Fault> {
        if indexes.is_empty() {
            return Ok(HashSet::new());
        }
        let parts = Statements::of(self.table);
        let mut sql = Sql::default();
        let keys = indexes.iter().map(|index| self.key(*index));
        let (arrays, names) = parts.bind_keys(&mut sql, keys);
        let order: Vec<String> =
            self.table.write_key.iter().map(|column| format!("w.{}", column.ident)).collect();
        let held = if self.care.skip_held { "skip locked" } else { "" };
        sql.push(&format!(
            "select {} from {} as w join unnest({}) as u({}) on {} order by {} {}",
            parts.write_key_text("w"),
            self.table.write,
            arrays.join(", "),
            names.join(", "),
            parts.is_key_of("w", true),
            order.join(", "),
            self.locking("w", held),
        ));
        let rows = sql.fetch(&mut *connection).await.map_err(fault)?;
        let by_key = self.by_key(indexes);
        let mut locked = Vec::with_capacity(rows.len());
        for row in &rows {
            let key = Cells::new(row, WRITING).text(0)?;
            locked.extend(by_key.get(key.as_str()).copied());
        }
        let images = self.read_images(connection, indexes).await?;
        let is_same = |index: &usize| images.get(index).is_some_and(|i| i == self.image(*index));
        let locked: HashSet<usize> = locked.into_iter().collect();
        // What somebody holds may be there all the same.
        if !self.care.skip_held {
            let is_missing = |index: &&usize| {
                is_same(index) && !locked.contains(*index) && self.status_to(**index).is_some()
            };
            let missing = indexes.iter().filter(is_missing);
            end.refused.extend(missing.map(|index| (*index, self.table.not_there())));
        }
        Ok(locked.into_iter().filter(is_same).collect())
    }

    /// Where tieout only observes, it needs no right to lock.
    fn locking(&self, alias: &str, how: &str) -> String {
        match self.table.settings.mode {
            Mode::Observe => String::new(),
            Mode::SucceedOnly | Mode::Full => format!("for no key update of {alias} {how}"),
        }
    }

    async fn read_new_images(
        &self,
        connection: &mut PgConnection,
        end: &mut RowsEnd,
    ) -> Result<(), Fault> {
        let written: Vec<usize> =
            end.came.iter().filter(|(_, image)| image.is_some()).map(|(index, _)| *index).collect();
        let images = self.read_images(connection, &written).await?;
        end.came.extend(images.into_iter().map(|(index, image)| (index, Some(image))));
        Ok(())
    }

    /// The images as they read now.
    async fn read_images(
        &self,
        connection: &mut PgConnection,
        indexes: &[usize],
    ) -> Result<HashMap<usize, String>, Fault> {
        if indexes.is_empty() {
            return Ok(HashMap::new());
        }
        let parts = Statements::of(self.table);
        let mut sql = Sql::default();
        let keys = indexes.iter().map(|index| self.key(*index));
        let (arrays, names) = parts.bind_keys(&mut sql, keys);
        sql.push(&format!(
            "select {}, {} from {} as t join unnest({}) as u({}) on {}",
            parts.key_text("t"),
            parts.image("t"),
            self.table.read,
            arrays.join(", "),
            names.join(", "),
            parts.is_key_of("t", false),
        ));
        let rows = sql.fetch(connection).await.map_err(fault)?;
        let by_key = self.by_key(indexes);
        let mut images = HashMap::with_capacity(rows.len());
        for row in &rows {
            let cells = Cells::new(row, WRITING);
            let key = cells.text(0)?;
            if let Some(index) = by_key.get(key.as_str()) {
                images.insert(*index, cells.text(1)?);
            }
        }
        Ok(images)
    }

    fn by_key(&self, indexes: &[usize]) -> HashMap<&str, usize> {
        indexes.iter().map(|index| (self.key(*index), *index)).collect()
    }
}

/// What a column of the written row `w` becomes.
pub(super) fn new_value(target: &Target, change: Change, value: &str) -> String {
    let (ident, of) = (&target.column.ident, &target.column.type_name);
    match change {
        Change::Assign => format!("{value}::{of}"),
        Change::Plus => format!("coalesce(w.{ident}, 0) + {value}::{of}"),
        // Text that is empty holds nothing either: applications write '' where others write NULL.
        Change::IfNull if target.is_text() => {
            format!("case when btrim(w.{ident}::text) <> '' then w.{ident} else {value}::{of} end")
        }
        Change::IfNull => format!("coalesce(w.{ident}, {value}::{of})"),
    }
}

fn text_array<T: Into<String>>(sql: &mut Sql, texts: impl Iterator<Item = Option<T>>) -> String {
    let texts: Vec<Option<String>> = texts.map(|text| text.map(Into::into)).collect();
    format!("{}::text[]", sql.bind(texts))
}

/// Waits for no lock for long from here on; returns how long it was.
async fn lose_patience(connection: &mut PgConnection) -> Result<String, StoreError> {
    let sql = Sql::new("select current_setting('lock_timeout')");
    let rows = sql.fetch(&mut *connection).await.map_err(failed(WRITING))?;
    let row = rows.first().ok_or_else(|| unexpected(WRITING, "no answer"))?;
    let patience = Cells::new(row, WRITING).text(0)?;
    wait_for_locks(connection, SHORT_PATIENCE).await?;
    Ok(patience)
}

/// Sets how long a lock is waited for, up to the transaction's end.
async fn wait_for_locks(connection: &mut PgConnection, span: &str) -> Result<(), StoreError> {
    let mut sql = Sql::new("select set_config('lock_timeout', $1, true)");
    sql.bind(span.to_owned());
    sql.fetch(connection).await.map_err(failed(WRITING))?;
    Ok(())
}

async fn plain(connection: &mut PgConnection, sql: &'static str) -> Result<(), StoreError> {
    sqlx::query(sql).execute(connection).await.map_err(failed(WRITING))?;
    Ok(())
}
