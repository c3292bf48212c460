//! Carrying out decisions: one transaction for the user's rows and tieout's, set by set.
//!
//! An attempt that meets trouble is rolled back whole and made again with more care: a deadlock as
//! it was, a refused row by halves, a row that somebody holds left out, a lost lease left out; and
//! where trouble comes again and again, the row that it comes of left out. A COMMIT whose answer
//! was lost is never sent again: the journal's primary key tells whether it landed, asked while
//! holding the run's row, which the lost transaction held to its end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnection, PgPool};

use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::model::transaction::Transaction;
use crate::store::driver::Writer;
use crate::store::effects::{RowEffects, line_marks, refused_alike};
use crate::store::error::StoreError;
use crate::store::people::ProposalState;
use crate::store::postgres::connect::IDLE_IN_TRANSACTION;
use crate::store::postgres::errors::{Calls, answered, calls_for, failed, is_taken};
use crate::store::postgres::ledger::{Ledger, Loss, journal};
use crate::store::postgres::lines::mark_in;
use crate::store::postgres::lookup::siblings_in;
use crate::store::postgres::new_rows::TakeIn;
use crate::store::postgres::people;
use crate::store::postgres::rows::{Care, Fault, Rows};
use crate::store::postgres::runs::{Sums, count_row, take_back};
use crate::store::postgres::sql::Sql;
use crate::store::postgres::transactions::begin;
use crate::store::records::{Applied, ApplyEnd};
use crate::store::sibling::{handed_back_beside, overtaken};
use crate::store::source_table::SourceTable;

const APPLYING: &str = "applying the decisions";
const COMMITTING: &str = "committing the decisions";

/// Rows of one statement. More saves no round trip that counts, and costs memory.
const CHUNK: usize = 5_000;

/// Natural keys share so many locks: one for each of a batch's could be more than the server has
/// room for.
const KEY_LOCKS: u16 = 512;

/// Attempts at a batch: each kind of trouble needs one more, deadlocks may come again.
const TRIES: u32 = 12;

/// Deadlocks of a batch after which its rows are tried apart.
const DEADLOCKS: u32 = 5;

/// One batch on its way.
struct Batch<'a> {
    run_id: &'a str,
    table: &'a SourceTable,
    now: Instant,
    rows: Vec<RowEffects>,
    /// Rows as they were before this attempt changed what becomes of them.
    undo: Vec<(usize, RowEffects)>,
    /// Rows whose lease is no longer ours.
    lost: HashMap<usize, Loss>,
    /// Rows whose account a person paused: they are given back.
    held: Vec<RowEffects>,
    /// New rows that somebody else took in.
    elsewhere: Vec<RowEffects>,
    care: Care,
    /// Some of the evidence is stored already.
    is_known: bool,
    /// Some of the references are stored already.
    is_referenced: bool,
    /// Somebody has a reference that a new row claimed: who has which is asked first.
    is_claimed: bool,
}

/// How an attempt ended.
enum Attempt {
    Committed(Writer),
    RunClosed,
    /// The COMMIT was sent, and its answer never came.
    Unknown(Writer),
}

pub(super) async fn apply(
    pool: &PgPool,
    run_id: &str,
    writer: &mut Writer,
    table: &SourceTable,
    rows: Vec<RowEffects>,
    now: Instant,
) -> Result<ApplyEnd, StoreError> {
    let mut batch = Batch {
        run_id,
        table,
        now,
        rows,
        undo: Vec::new(),
        lost: HashMap::new(),
        held: Vec::new(),
        elsewhere: Vec::new(),
        care: Care { halve: false, skip_held: false, isolate: false },
        is_known: false,
        is_referenced: false,
        is_claimed: false,
    };
    let (mut tries, mut deadlocks) = (0, 0);
    loop {
        tries += 1;
        if batch.rows.is_empty() && batch.held.is_empty() {
            return Ok(batch.end());
        }
        let fault = match batch.attempt(pool, writer).await {
            Ok(Attempt::Committed(moved)) => {
                *writer = moved;
                return Ok(batch.end());
            }
            Ok(Attempt::RunClosed) => return Ok(ApplyEnd::RunClosed),
            Ok(Attempt::Unknown(moved)) => {
                return batch.find_out(pool, writer, moved).await;
            }
            Err(fault) => fault,
        };
        batch.undo();
        match fault {
            Fault::Store(error) => return Err(error),
            Fault::Refused => batch.care.halve = true,
            Fault::Apart(error) if batch.care.isolate => return Err(error),
            Fault::Apart(_) => batch.care.isolate(),
            // Nobody holds the rows themselves, but something that a trigger of one needs.
            Fault::Held if batch.care.skip_held => batch.care.isolate(),
            Fault::Held => batch.care.skip_held = true,
            Fault::Lost => batch.find_lost(pool).await?,
            Fault::Again => {
                deadlocks += 1;
                if deadlocks >= DEADLOCKS {
                    batch.care.isolate();
                }
                tokio::time::sleep(Duration::from_millis(5 << tries.min(6))).await;
            }
        }
        if tries >= TRIES {
            let message = "it met deadlocks or other trouble too often".to_owned();
            let doing = APPLYING;
            return Err(StoreError::Query {
                doing,
                message,
                code: None,
                detail: None,
                asker: None,
            });
        }
    }
}

impl Batch<'_> {
    fn end(&self) -> ApplyEnd {
        let count = |applied| self.rows.iter().filter(|r| r.journal.applied == applied).count();
        let mut paused: BTreeMap<String, usize> = BTreeMap::new();
        for row in &self.held {
            *paused.entry(row.journal.account.clone()).or_default() += 1;
        }
        let left = self.rows.iter().filter_map(RowEffects::not_applied);
        let elsewhere = self.elsewhere.iter().map(RowEffects::taken_elsewhere);
        ApplyEnd::Done {
            applied: count(Applied::Yes),
            withheld: count(Applied::Withheld),
            superseded: count(Applied::Superseded),
            elsewhere: self.elsewhere.iter().map(|row| row.journal.clone()).collect(),
            paused,
            not_applied: left
                .chain(self.held.iter().map(RowEffects::given_back))
                .chain(elsewhere)
                .collect(),
        }
    }

    /// Changes what becomes of a row, for this attempt.
    fn change(&mut self, index: usize, change: impl FnOnce(&mut RowEffects)) {
        let Some(row) = self.rows.get_mut(index) else { return };
        self.undo.push((index, row.clone()));
        change(row);
    }

    fn undo(&mut self) {
        while let Some((index, before)) = self.undo.pop() {
            if let Some(row) = self.rows.get_mut(index) {
                *row = before;
            }
        }
    }

    async fn find_lost(&mut self, pool: &PgPool) -> Result<(), StoreError> {
        let mut connection = pool.acquire().await.map_err(failed(APPLYING))?;
        let (ledger, rows) = self.ledger();
        let rows: Vec<(usize, &RowEffects)> = rows.iter().enumerate().collect();
        let lost = ledger.lost(&mut connection, &rows).await?;
        self.lose(lost);
        Ok(())
    }

    /// Leaves lost rows out of the next attempt. What this run decided before leaves the batch, as
    /// no row has two decisions in one run; so does what somebody else took in.
    fn lose(&mut self, lost: HashMap<usize, Loss>) {
        let leaves = |loss: &Loss| matches!(loss, Loss::Decided | Loss::Elsewhere);
        if !lost.values().any(leaves) {
            self.lost.extend(lost);
            return;
        }
        let rows = std::mem::take(&mut self.rows);
        for (index, row) in rows.into_iter().enumerate() {
            match lost.get(&index) {
                Some(Loss::Decided) => {}
                Some(Loss::Elsewhere) => self.elsewhere.push(row),
                Some(Loss::Taken | Loss::Ended) | None => self.rows.push(row),
            }
        }
        // The others have other places now; the next attempt finds them again.
        self.lost.clear();
    }

    fn ledger(&self) -> (Ledger<'_>, &[RowEffects]) {
        let table = self.table.settings.name.as_str();
        (Ledger { run_id: self.run_id, table, now: self.now }, &self.rows)
    }

    async fn attempt(&mut self, pool: &PgPool, writer: &Writer) -> Result<Attempt, Fault> {
        let mut tx = begin(pool).await.map_err(failed(APPLYING))?;
        let moved = match self.write(&mut tx, writer).await {
            Ok(Some(moved)) => moved,
            Ok(None) => return Ok(Attempt::RunClosed),
            Err(fault) => {
                // Over before the next attempt: what this one still held would be left out there
                // as somebody else's. Where it cannot be told so, the connection's end is its own.
                let _broken = tx.rollback().await;
                return Err(fault);
            }
        };
        match tx.commit().await {
            Ok(()) => Ok(Attempt::Committed(moved)),
            Err(error) if answered(&error).is_none() => {
                tracing::warn!(
                    run.id = %self.run_id,
                    "the connection broke while committing; reading whether it landed"
                );
                Ok(Attempt::Unknown(moved))
            }
            Err(error) => Err(match calls_for(&error) {
                Calls::Again => Fault::Again,
                Calls::FindGuilty if !self.care.halve => Fault::Refused,
                Calls::Apart | Calls::Server => Fault::Apart(failed(COMMITTING)(error)),
                Calls::FindGuilty | Calls::SkipLocked | Calls::Stop => {
                    Fault::Store(failed(COMMITTING)(error))
                }
            }),
        }
    }

    /// Everything of an attempt but its commit; `None` where the run is closed.
    async fn write(
        &mut self,
        connection: &mut PgConnection,
        writer: &Writer,
    ) -> Result<Option<Writer>, Fault> {
        if self.care.halve {
            // Deferred constraints speak at their row, not at the end where nobody can be found.
            run(connection, "set constraints all immediate").await.map_err(step)?;
        }
        let Some(paused) = self.hold_run(connection).await.map_err(step)? else {
            return Ok(None);
        };
        self.hold_back(&paused);
        let (ledger, _rows) = self.ledger();
        ledger.give_back(connection, &self.held).await.map_err(step)?;
        if self.rows.is_empty() {
            return Ok(Some(writer.clone()));
        }
        let live = self.leave_out();
        let live = self.leave_unapproved(connection, live).await?;
        let live = self.leave_to_people(connection, live).await?;
        let live = self.leave_overtaken(connection, live).await?;
        self.find_taken_references(connection, &live).await?;
        let images = self.settle_rows(connection, &live).await?;
        self.take_in(connection, &images).await?;
        let moved = self.write_ledger(connection, writer).await?;
        self.move_checks(connection, &images).await?;
        Ok(Some(moved))
    }

    /// Holds the run's row to the end of the transaction; `None` where the run is closed. Returns
    /// the accounts that are paused, held as they are.
    async fn hold_run(&self, connection: &mut PgConnection) -> sqlx::Result<Option<Vec<String>>> {
        let accounts: HashSet<&str> =
            self.rows.iter().map(|row| row.journal.account.as_str()).collect();
        let accounts: Vec<&str> = accounts.into_iter().collect();
        let (is_open, paused): (bool, Vec<String>) = sqlx::query_as(
            "with run as materialized (select from tieout_runs where id = $1 \
             and state = 'running' for key share), \
             paused as materialized (select account from tieout_accounts \
             where account = any($2) and paused_at is not null for share) \
             select exists (select from run), array(select account from paused)",
        )
        .bind(self.run_id)
        .bind(accounts)
        .fetch_one(connection)
        .await?;
        Ok(is_open.then_some(paused))
    }

    /// Takes the rows of paused accounts out of the batch: nothing is decided of them.
    fn hold_back(&mut self, paused: &[String]) {
        if paused.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.rows).into_iter();
        let (held, rows): (Vec<RowEffects>, Vec<RowEffects>) =
            rows.partition(|row| paused.contains(&row.journal.account));
        self.rows = rows;
        if !held.is_empty() {
            // The others have other places now; what is lost is found again.
            self.lost.clear();
            self.held.extend(held);
        }
    }

    /// Supersedes rows whose lease is lost; returns the others.
    fn leave_out(&mut self) -> Vec<usize> {
        let (out, live): (Vec<usize>, Vec<usize>) =
            (0..self.rows.len()).partition(|index| self.lost.contains_key(index));
        for index in out {
            self.change(index, RowEffects::supersede);
        }
        live
    }

    /// A person's word that does not stand any more, or not of what the case shows now, changes
    /// nothing; what stands is held to the end.
    async fn leave_unapproved(
        &mut self,
        connection: &mut PgConnection,
        live: Vec<usize>,
    ) -> Result<Vec<usize>, Fault> {
        let proposal_of = |rows: &[RowEffects], index: usize| {
            rows.get(index).and_then(|row: &RowEffects| row.proposal)
        };
        let words: Vec<i64> =
            live.iter().filter_map(|index| proposal_of(&self.rows, *index)).collect();
        if words.is_empty() {
            return Ok(live);
        }
        let stand: HashSet<i64> =
            people::still_approved(connection, &words).await?.into_iter().collect();
        let (live, out): (Vec<usize>, Vec<usize>) = live.into_iter().partition(|index| {
            proposal_of(&self.rows, *index).is_none_or(|word| stand.contains(&word))
        });
        for index in out {
            self.change(index, RowEffects::supersede);
        }
        Ok(live)
    }

    /// What people approved of a case while its row was being asked about again goes first.
    async fn leave_to_people(
        &mut self,
        connection: &mut PgConnection,
        live: Vec<usize>,
    ) -> Result<Vec<usize>, Fault> {
        let yielding = live.iter().filter_map(|index| self.rows.get(*index));
        let yielding = yielding.filter(|row| row.yields_to_people);
        let keys: Vec<String> = yielding.map(|row| row.journal.key.clone()).collect();
        if keys.is_empty() {
            return Ok(live);
        }
        let table = &self.table.settings.name;
        let spoken_for = people::spoken_for(connection, table, keys).await?;
        let is_left =
            |row: &RowEffects| row.yields_to_people && spoken_for.contains(&row.journal.key);
        let (left, live): (Vec<usize>, Vec<usize>) =
            live.into_iter().partition(|index| self.rows.get(*index).is_some_and(is_left));
        for index in left {
            self.change(index, RowEffects::leave_to_people);
        }
        Ok(live)
    }

    /// Of rows with one natural key one is paid or handed back, whoever else writes at this moment:
    /// what such a row was decided from is read once more, under a lock where it has siblings at
    /// all. Who comes second is decided anew; beside what may still be paid nobody stays handed
    /// back.
    async fn leave_overtaken(
        &mut self,
        connection: &mut PgConnection,
        live: Vec<usize>,
    ) -> Result<Vec<usize>, Fault> {
        let rows: Vec<(usize, &RowEffects)> = live
            .iter()
            .filter_map(|index| self.rows.get(*index).map(|row| (*index, row)))
            .filter(|(_, row)| row.beside.is_some())
            .collect();
        if rows.is_empty() {
            return Ok(live);
        }
        let of_keys = rows.iter().filter_map(|(_, row)| row.beside.as_deref());
        let mut keyed: Vec<&Transaction> = of_keys.map(|beside| &beside.row).collect();
        let now = siblings_in(connection, self.table, &keyed).await?;
        keyed.retain(|row| now.contains_key(&row.key.id));
        if keyed.is_empty() {
            return Ok(live);
        }
        lock_natural_keys(connection, self.table, &keyed).await?;
        let now = siblings_in(connection, self.table, &keyed).await?;
        let late = overtaken(&rows, &now);
        for (index, others) in handed_back_beside(&rows, &now) {
            self.change(index, |row| row.handed_back_beside = others);
        }
        for index in &late {
            self.change(*index, RowEffects::supersede);
        }
        Ok(live.into_iter().filter(|index| !late.contains(index)).collect())
    }

    /// An object explains one row for ever: who comes second goes to a person.
    async fn find_taken_references(
        &mut self,
        connection: &mut PgConnection,
        live: &[usize],
    ) -> Result<(), Fault> {
        let (ledger, rows) = self.ledger();
        let claims: Vec<(usize, &RowEffects)> =
            live.iter().filter_map(|index| rows.get(*index).map(|row| (*index, row))).collect();
        // What new rows claim is new nearly always: writing it tells where it is not.
        let asks = self.is_claimed || !claims.iter().all(|(_, row)| row.is_new());
        let (taken, is_referenced) = ledger.taken_references(connection, &claims, asks).await?;
        self.is_referenced = is_referenced;
        for (index, (table, key)) in taken {
            self.change(index, |row| {
                let text = row.explains_another(&table, &key);
                row.send_to_review(Reason::ReferenceClaimed, text);
            });
        }
        Ok(())
    }

    /// Writes and compares the user's rows; returns the new images of those that were written.
    async fn settle_rows(
        &mut self,
        connection: &mut PgConnection,
        live: &[usize],
    ) -> Result<HashMap<usize, String>, Fault> {
        let mut images = HashMap::new();
        let (mut gone, mut refused, mut trouble) = (Vec::new(), Vec::new(), None);
        for chunk in live.chunks(CHUNK) {
            let rows = Rows { table: self.table, batch: &self.rows, care: self.care };
            let end = rows.settle(connection, chunk).await?;
            gone.extend(chunk.iter().filter(|index| !end.came.contains_key(index)));
            refused.extend(end.refused);
            trouble = trouble.or(end.trouble);
            let written = end.came.into_iter();
            images.extend(written.filter_map(|(index, image)| image.map(|image| (index, image))));
        }
        // Of a full disk, say, no row is guilty.
        if let Some(error) = trouble.filter(|_| images.is_empty()) {
            return Err(Fault::Store(error));
        }
        let has_write =
            |index: &&usize| self.rows.get(**index).is_some_and(|row| row.status_to.is_some());
        let writes = live.iter().filter(has_write).count();
        let words = refused.iter().map(|(_, words)| words.as_str());
        let alike = refused_alike(words, writes, images.len());
        for (index, words) in refused {
            let of_any_row = alike.contains(&words);
            self.change(index, |row| row.turn_away(&words, of_any_row));
        }
        for index in gone {
            self.change(index, RowEffects::supersede);
        }
        Ok(images)
    }

    /// Everything of tieout's but the memory of rows; returns the writer as it is afterwards.
    async fn write_ledger(
        &mut self,
        connection: &mut PgConnection,
        writer: &Writer,
    ) -> Result<Writer, Fault> {
        let mut cases = HashMap::new();
        let (ledger, rows) = self.ledger();
        for chunk in rows.chunks(CHUNK) {
            let all: Vec<&RowEffects> = chunk.iter().collect();
            let stored = ledger.evidence(connection, &all, self.is_known).await;
            if stored.as_ref().is_err_and(|error| is_taken(error, "tieout_evidence_pkey")) {
                self.is_known = true;
                return Err(Fault::Again);
            }
            stored.map_err(step)?;
            let is_first = ledger.references(connection, &all, self.is_referenced).await;
            if !is_first.map_err(step)? {
                self.is_claimed = true;
                return Err(Fault::Again);
            }
            let marks = line_marks(all.iter().copied());
            mark_in(connection, ledger.run_id, &marks, ledger.now).await.map_err(step)?;
            cases.extend(ledger.open_cases(connection, &all).await?);
            ledger.close_cases(connection, &all).await.map_err(step)?;
            ledger.end_handbacks(connection, &all).await.map_err(step)?;
            ledger.handbacks(connection, &all).await.map_err(step)?;
            ledger.events(connection, &all).await.map_err(step)?;
            let applied = all.iter().filter(|row| row.journal.applied == Applied::Yes);
            let words: Vec<i64> = applied.filter_map(|row| row.proposal).collect();
            let (run, state) = (ledger.run_id, ProposalState::CarriedOut);
            people::end_approved(connection, run, &words, state, "carried out", ledger.now).await?;
        }
        let mut moved = writer.clone();
        for row in &mut self.rows {
            let number = cases.get(&row.journal.key).copied().filter(|_| row.opens_case);
            row.journal.case_number = number;
            moved.seq = moved.seq.saturating_add(1);
            row.journal.chain(&moved.name, moved.seq, &moved.head);
            moved.head.clone_from(&row.journal.hash);
        }
        for chunk in self.rows.chunks(CHUNK) {
            journal(connection, chunk.iter().map(|row| &row.journal)).await.map_err(step)?;
        }
        Ok(moved)
    }

    /// Takes new rows in, as they are once this batch is written: before anything else is written
    /// of them, so that whoever took one in first is met here, and the attempt made again without.
    async fn take_in(
        &self,
        connection: &mut PgConnection,
        images: &HashMap<usize, String>,
    ) -> Result<(), Fault> {
        let (ledger, rows) = self.ledger();
        let take_in = TakeIn { ledger: &ledger };
        let new: Vec<(usize, &RowEffects)> =
            rows.iter().enumerate().filter(|(_, row)| row.is_new()).collect();
        let mut taken = 0;
        for chunk in new.chunks(CHUNK) {
            let is_gone = |row: &RowEffects| row.journal.applied == Applied::Superseded;
            let (gone, done): (Vec<_>, Vec<_>) =
                chunk.iter().copied().partition(|(_, row)| is_gone(row));
            let done: Vec<(&RowEffects, Option<&str>)> = done
                .into_iter()
                .map(|(index, row)| (row, images.get(&index).map(String::as_str)))
                .collect();
            if !take_in.decided(connection, &done).await? {
                return Err(Fault::Lost);
            }
            taken += u64::try_from(done.len()).unwrap_or(u64::MAX);
            let gone: Vec<&RowEffects> = gone.into_iter().map(|(_, row)| row).collect();
            taken += take_in.changed(connection, &gone).await.map_err(step)?;
        }
        match usize::try_from(taken).is_ok_and(|taken| taken == new.len()) {
            true => Ok(()),
            false => Err(Fault::Lost),
        }
    }

    /// Moves the memory of rows on. Every row whose lease is ours must move: a lease that was
    /// lost since is found here, and the attempt is made again without its row.
    async fn move_checks(
        &self,
        connection: &mut PgConnection,
        images: &HashMap<usize, String>,
    ) -> Result<(), Fault> {
        let (ledger, rows) = self.ledger();
        let is_ours =
            |index: &usize, row: &RowEffects| !row.is_new() && !self.lost.contains_key(index);
        let ours: Vec<(usize, &RowEffects)> =
            rows.iter().enumerate().filter(|(index, row)| is_ours(index, row)).collect();
        let is_gone = |row: &RowEffects| row.journal.applied == Applied::Superseded;
        let done: Vec<_> = ours.iter().filter(|(_, row)| !is_gone(row)).collect();
        let gone: Vec<_> = ours.iter().filter(|(_, row)| is_gone(row)).collect();
        let mut moved = 0;
        for chunk in done.chunks(CHUNK) {
            let rows: Vec<(&RowEffects, Option<&str>)> = chunk
                .iter()
                .map(|(index, row)| (*row, images.get(index).map(String::as_str)))
                .collect();
            moved += ledger.checks(connection, &rows).await?;
        }
        for chunk in gone.chunks(CHUNK) {
            let rows: Vec<&RowEffects> = chunk.iter().map(|(_, row)| *row).collect();
            moved += ledger.superseded(connection, &rows).await.map_err(step)?;
        }
        if usize::try_from(moved).is_ok_and(|moved| moved == ours.len()) {
            self.take_back_released(connection).await.map_err(step)?;
            // At the end: the batch beside this one waits for the same line of the totals.
            let new = rows.iter().filter(|row| row.is_new());
            TakeIn { ledger: &ledger }.count(connection, new).await.map_err(step)?;
            // After the memory of this batch's own rows: one of them may have to be looked at anew.
            let all: Vec<&RowEffects> = rows.iter().collect();
            ledger.end_handbacks_beside(connection, &all).await.map_err(step)?;
            // Last, as heartbeats wait for it.
            return ledger.count_records(connection, rows.len()).await.map_err(step);
        }
        Err(Fault::Lost)
    }

    /// The run that took a lapsed lease counted its row as released by this run. Here it is
    /// recorded as superseded: a row leaves a run by one door.
    async fn take_back_released(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let mut sums = Sums::new();
        for (index, _) in self.lost.iter().filter(|(_, loss)| **loss == Loss::Taken) {
            let Some(row) = self.rows.get(*index) else { continue };
            let record = &row.journal;
            count_row(&mut sums, &record.table, &record.currency, record.amount_minor);
        }
        take_back(connection, self.run_id, &sums).await
    }

    /// Whether a COMMIT without an answer landed.
    async fn find_out(
        &self,
        pool: &PgPool,
        writer: &mut Writer,
        moved: Writer,
    ) -> Result<ApplyEnd, StoreError> {
        let landed = has_landed(pool, self.run_id, &moved).await.map_err(failed(COMMITTING))?;
        if landed {
            *writer = moved;
            return Ok(self.end());
        }
        let message = "the connection broke before the commit; nothing of the batch was written";
        Err(StoreError::Query {
            doing: COMMITTING,
            message: message.to_owned(),
            code: None,
            detail: None,
            asker: None,
        })
    }
}

/// Holds the natural keys of these rows to the end of the transaction, in one order for all.
async fn lock_natural_keys(
    connection: &mut PgConnection,
    table: &SourceTable,
    rows: &[&Transaction],
) -> Result<(), Fault> {
    let lock_of = |key: &str| {
        let hash = Sha256::digest(format!("{}\n{key}", table.write));
        let number = hash.iter().take(2).fold(0_u16, |sum, byte| (sum << 8) | u16::from(*byte));
        i32::from(number % KEY_LOCKS)
    };
    let locks: BTreeSet<i32> =
        rows.iter().filter_map(|row| row.natural_key.as_deref().map(lock_of)).collect();
    let mut sql = Sql::default();
    let locks = sql.bind(locks.into_iter().collect::<Vec<i32>>());
    sql.push(&format!(
        "select pg_advisory_xact_lock(hashtextextended('tieout siblings ' || n, 0)) \
         from unnest({locks}::integer[]) as n"
    ));
    match sql.run(connection).await {
        Ok(_) => Ok(()),
        // Whoever holds one writes a batch, and is done soon.
        Err(error) if calls_for(&error) == Calls::SkipLocked => Err(Fault::Again),
        Err(error) => Err(step(error)),
    }
}

/// Reads the batch's last record once the lost transaction has ended one way or the other: it
/// holds the run's row so long.
async fn has_landed(pool: &PgPool, run_id: &str, moved: &Writer) -> sqlx::Result<bool> {
    let mut tx = begin(pool).await?;
    let patience = IDLE_IN_TRANSACTION.num_milliseconds().saturating_mul(2);
    sqlx::query("select set_config('lock_timeout', $1, true)")
        .bind(patience.to_string())
        .execute(&mut *tx)
        .await?;
    sqlx::query("select 1 from tieout_runs where id = $1 for update")
        .bind(run_id)
        .execute(&mut *tx)
        .await?;
    let landed = sqlx::query_scalar(
        "select exists (select from tieout_journal \
         where run_id = $1 and writer = $2 and seq = $3 and hash = $4)",
    )
    .bind(run_id)
    .bind(&moved.name)
    .bind(moved.seq)
    .bind(&moved.head)
    .fetch_one(&mut *tx)
    .await?;
    tx.rollback().await?;
    Ok(landed)
}

/// A failed statement on tieout's own tables: nobody is guilty of it but trouble.
fn step(error: sqlx::Error) -> Fault {
    match calls_for(&error) {
        Calls::Again => Fault::Again,
        Calls::SkipLocked | Calls::FindGuilty | Calls::Apart | Calls::Server | Calls::Stop => {
            Fault::Store(failed(APPLYING)(error))
        }
    }
}

async fn run(connection: &mut PgConnection, sql: &'static str) -> sqlx::Result<()> {
    sqlx::query(sql).execute(connection).await.map(|_| ())
}
