//! What moves during a run: the chain of its journal, what is held back, what is counted.
//! The only room from which decisions reach the store.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use crate::decide::brake::{Brake, BrakeFigures, is_tag_dropped, usual_after};
use crate::decide::decision::Verdict;
use crate::decide::policy::{Mode, Timing};
use crate::exit::Exit;
use crate::model::count::{counted, some_of};
use crate::model::reason::Reason;
use crate::model::time::{Instant, to_short_text};
use crate::model::transaction::{Kind, RowKey, hex};
use crate::report::facts::AccountCaseNote;
use crate::run::by_people::ByPeople;
use crate::run::counted::Counted;
use crate::run::error::{Doing, RunError};
use crate::run::events::{AccountNote, Event};
use crate::run::fetch::SourceNote;
use crate::run::gather::{Arrival, Weighed};
use crate::run::hold::{self, Hold};
use crate::run::match_lines::LinesNote;
use crate::run::release::ReleasedNote;
use crate::run::scene::{OpenAccount, Scene};
use crate::run::siblings::{Paid, Rehearsed, look_again, look_at_paid, oldest_first};
use crate::run::unanswered::Unanswered;
use crate::store::driver::{AccountCase, Driver, Writer};
use crate::store::effects::{RowEffects, effects};
use crate::store::error::StoreError;
use crate::store::records::{ApplyEnd, KickedBy, Planned};
use crate::store::source_table::SourceTable;

/// Rows written in one database transaction: for about half a second nobody else may change them,
/// or write to a SQLite file. Fewer would write the same pages of its indices more often.
const APPLY_AT_ONCE: usize = 5_000;

/// Rows of such a transaction at the least, where there are so many: half of all as a rule, so that
/// the database has enough to do while the others are worked out.
const APPLY_AT_LEAST: usize = 500;

/// Batches written at a time, where the table's writes do not wait for each other: the database
/// writes with one while the next travels.
const SIDE_BY_SIDE: usize = 2;

/// How often paid rows of one natural key are judged by the one that went before: a key that has
/// more of them is none, and what is left over goes to the store, which lets one through.
const PAID_ROUNDS: usize = 8;

/// Keys that are named of rows which their table refused.
const KEYS_TOLD: usize = 5;

/// Rows worked out before the database's answers are looked at again: about half a millisecond.
const WORKED_AT_ONCE: usize = 16;

/// Who is told what happens.
pub type Tell<'a> = &'a mut (dyn FnMut(Event) + Send);

/// The moving part of a run.
pub struct Books {
    /// Hand-backs that wait for the brake.
    pub hold: Hold,
    /// Hand-backs by people that wait until all of them are counted.
    pub by_people: ByPeople,
    /// What was asked of each account.
    pub notes: BTreeMap<String, AccountNote>,
    /// What the brake counted, and its word where it is on.
    pub brakes: BTreeMap<String, (BrakeFigures, Option<String>)>,
    /// Cases about accounts, as this run put them: what a report can rely on later.
    pub account_cases: Vec<AccountCaseNote>,
    /// The strongest end so far.
    pub exit: Exit,
    /// One line for each thing that was not examined.
    pub not_examined: Vec<String>,
    /// What was decided of how many rows.
    pub counted: Counted,
    /// Rows carried out, withheld, superseded.
    pub applied: (u64, u64, u64),
    /// Approvals that were refused.
    pub refused: u64,
    /// What people's decisions left in their rows, a sentence each with its case.
    pub kept: Vec<String>,
    /// Rows that lines told of as the approval of their end was refused, by table: keys. The lines
    /// are the next run's to look at, as if nobody had approved.
    pub told_in_vain: BTreeMap<String, Vec<String>>,
    /// What became of each source.
    pub sources: Vec<SourceNote>,
    /// Words of people about files, carried out or refused.
    pub releases: Vec<ReleasedNote>,
    /// A window compared whole: how many stand where.
    pub compared: BTreeMap<&'static str, u64>,
    /// What open lines of settlement files came to.
    pub lines: LinesNote,
    /// Rows that were claimed, where rows were named.
    pub looked_at: BTreeSet<RowKey>,
    /// Rows that were given back unasked, since the run's time was over.
    pub given_back_late: usize,
    /// How many rows have no answer, by account, and by what could not be read whole.
    pub unanswered: BTreeMap<(String, Option<&'static str>), Unanswered>,
    /// What people approved and is not carried out yet, by why: cases, each with its proposal.
    pub not_carried_out: BTreeMap<String, Vec<(i64, i64)>>,
    /// Rows of paused accounts that were released undecided, and why each is paused.
    pub paused: BTreeMap<String, (String, usize)>,
    /// Rows that were given back since their table refused every row of their batch, by table and
    /// its words: how many, and the first keys.
    pub refused_alike: BTreeMap<(String, String), (usize, Vec<String>)>,
    /// Whether the tags of each account's rows arrive, by their kind.
    pub arrivals: BTreeMap<(String, Kind), Arrival>,
    /// Another run closed this one: nothing may be written any more.
    pub closed: bool,
    /// What a dry run would have written or a mode withheld, for the siblings of those rows.
    rehearsed: Rehearsed,
    /// Of a dry run: rows with an open case of which something new was told, each by its table's
    /// place and its key.
    pub rehearsed_cases: HashSet<(Option<usize>, String)>,
    writers: Writers,
}

impl Books {
    /// Of a run that decided nothing yet.
    pub fn open(run_id: &str) -> Self {
        Self {
            hold: Hold::default(),
            by_people: ByPeople::default(),
            notes: BTreeMap::new(),
            brakes: BTreeMap::new(),
            account_cases: Vec::new(),
            exit: Exit::Ok,
            not_examined: Vec::new(),
            counted: Counted::default(),
            applied: (0, 0, 0),
            refused: 0,
            kept: Vec::new(),
            told_in_vain: BTreeMap::new(),
            sources: Vec::new(),
            releases: Vec::new(),
            compared: BTreeMap::new(),
            lines: LinesNote::default(),
            looked_at: BTreeSet::new(),
            given_back_late: 0,
            unanswered: BTreeMap::new(),
            not_carried_out: BTreeMap::new(),
            paused: BTreeMap::new(),
            refused_alike: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            closed: false,
            rehearsed: Rehearsed::default(),
            rehearsed_cases: HashSet::new(),
            writers: Writers { run_id: run_id.to_owned(), known: 0, idle: Vec::new() },
        }
    }

    /// Notes that something was not examined, and tells.
    pub fn miss(&mut self, exit: Exit, text: String, tell: Tell<'_>) {
        self.exit = self.exit.or_stronger(exit);
        if !self.not_examined.contains(&text) {
            tell(Event::NotExamined { exit, text: text.clone() });
            self.not_examined.push(text);
        }
    }

    /// Notes what a batch showed of an account's tags, over all its batches.
    pub fn note_arrivals(&mut self, account: &str, arrivals: &[Arrival]) {
        for arrival in arrivals {
            let key = (account.to_owned(), arrival.kind);
            let known = self.arrivals.entry(key).or_insert(*arrival);
            known.last = known.last.max(arrival.last);
            let (now, before) = (arrival.without, known.without);
            if now.map(|(newer, _)| newer) > before.map(|(newer, _)| newer) {
                known.without = arrival.without;
            }
        }
    }

    /// Says what was counted over all batches, each thing once.
    pub fn tell_counted(&mut self, scene: &Scene<'_>, tell: Tell<'_>) {
        for ((account, broken), unanswered) in std::mem::take(&mut self.unanswered) {
            if unanswered.missing > 0 {
                self.miss(Exit::Partial, unanswered.words(&account, broken), tell);
            }
        }
        for (why, approvals) in std::mem::take(&mut self.not_carried_out) {
            self.miss(Exit::Partial, not_carried_out(&why, approvals), tell);
        }
        for (account, (why, rows)) in std::mem::take(&mut self.paused) {
            let rows = counted(rows, "row", "rows");
            let text = format!("account {account} is paused ({why}); {rows} released undecided");
            self.miss(Exit::Partial, text, tell);
        }
        for ((table, words), (rows, mut keys)) in std::mem::take(&mut self.refused_alike) {
            keys.sort_unstable();
            let (keys, word) = (some_of(keys, rows), if rows == 1 { "key" } else { "keys" });
            let rows = counted(rows, "row was", "rows were");
            let text = format!(
                "table {table}: {rows} not written, and given back ({word} {keys}): the \
                 database refused them, and no row beside them was written: {words}; correct the \
                 right, the trigger or the constraint, and the next run writes them"
            );
            self.miss(Exit::Partial, text, tell);
        }
        self.tell_dropped_tags(scene, tell);
    }

    /// Says of each account, once, that its payments carry no tag of a row any more: rows wait for
    /// one, and would for days without anybody hearing of it.
    fn tell_dropped_tags(&mut self, scene: &Scene<'_>, tell: Tell<'_>) {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for ((name, kind), Arrival { last, without, .. }) in &self.arrivals {
            let (Some(open), Some((newer, since))) = (scene.accounts.get(name), *without) else {
                continue;
            };
            let is_dropped = is_tag_dropped(newer, &open.setup.brake, open.usual_permille);
            if is_dropped && last.is_none_or(|last| last <= since) {
                let words = dropped_words(name, *kind, newer, since, *last);
                texts.entry(name.clone()).or_insert(words);
            }
        }
        for text in texts.into_values() {
            self.miss(Exit::Partial, text, tell);
        }
    }

    /// Carries decisions out, in database transactions of bounded size; in a dry run tells them.
    pub async fn carry(
        &mut self,
        scene: &Scene<'_>,
        table: &SourceTable,
        account: Option<&OpenAccount>,
        rows: Vec<Weighed>,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let mode = scene.mode(table, account);
        let default_timing = Timing::default();
        let timing = account.map_or(&default_timing, |open| &open.setup.timing);
        self.rehearsed.note_withheld(mode, &table.settings.name, &rows);
        let work = Work { scene, table: Arc::new(table.clone()), mode, timing };
        let mut under_way = FuturesUnordered::new();
        let carried = self.carry_batches(&work, rows, &mut under_way, tell).await;
        // Also after trouble: what was begun ends one way or the other before the run does.
        let mut ended = Ok(());
        while let Some(written) = under_way.next().await {
            ended = ended.and(self.note_written(scene, written, tell).await);
        }
        carried.and(ended)
    }

    async fn carry_batches<'w>(
        &mut self,
        work: &Work<'w>,
        rows: Vec<Weighed>,
        under_way: &mut FuturesUnordered<BoxFuture<'w, Written>>,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let scene = work.scene;
        let most = if work.table.side_by_side { SIDE_BY_SIDE } else { 1 };
        let size = rows.len().div_ceil(2).clamp(APPLY_AT_LEAST, APPLY_AT_ONCE);
        let mut rows = rows.into_iter();
        let mut batch = work.out(&mut rows, size).await?;
        while !batch.is_empty() && !self.closed {
            for row in &batch {
                tell(Event::Decided(Box::new(row.journal.clone())));
            }
            if scene.options.dry_run {
                for row in &batch {
                    self.counted.count(&row.journal);
                    self.rehearsed.note(&row.journal);
                }
                batch = work.out(&mut rows, size).await?;
                continue;
            }
            under_way.push(Box::pin(work.write(self.writers.take(), batch)));
            // The database works elsewhere: what comes next is worked out meanwhile.
            let mut next = pin!(work.out(&mut rows, size));
            batch = loop {
                tokio::select! {
                    biased;
                    Some(written) = under_way.next() => {
                        self.note_written(scene, written, tell).await?;
                    }
                    next = &mut next => break next?,
                }
            };
            while under_way.len() >= most
                && let Some(written) = under_way.next().await
            {
                self.note_written(scene, written, tell).await?;
            }
        }
        Ok(())
    }

    async fn note_written(
        &mut self,
        scene: &Scene<'_>,
        written: Written,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let Written { counted, end } = written;
        let (writer, end) = end?;
        self.writers.idle.push(writer);
        match end {
            ApplyEnd::RunClosed => self.closed = true,
            ApplyEnd::Done { applied, withheld, superseded, elsewhere, paused, not_applied } => {
                let add = |n: &mut u64, more: usize| {
                    *n = n.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
                };
                add(&mut self.applied.0, applied);
                add(&mut self.applied.1, withheld);
                add(&mut self.applied.2, superseded);
                // An account's rows were written all, or given back all.
                let kept = counted.into_iter().filter(|(name, _)| !paused.contains_key(name));
                kept.for_each(|(_, counted)| self.counted.add(counted));
                let elsewhere = elsewhere.iter().filter(|row| !paused.contains_key(&row.account));
                let left = Counted::by_account(elsewhere);
                left.into_values().for_each(|left| self.counted.take_off(&left));
                for row in not_applied {
                    if let Some(words) = &row.refused {
                        let key = (row.table.clone(), words.clone());
                        let (rows, keys) = self.refused_alike.entry(key).or_default();
                        *rows = rows.saturating_add(1);
                        if keys.len() < KEYS_TOLD {
                            keys.push(row.key.clone());
                        }
                    }
                    tell(Event::NotApplied(Box::new(row)));
                }
                for account in paused.keys() {
                    self.miss_paused(scene, account, tell).await?;
                }
            }
        }
        Ok(())
    }

    /// Rows that were given back because somebody paused their account meanwhile did not change:
    /// the run left something unwritten, and says so.
    async fn miss_paused(
        &mut self,
        scene: &Scene<'_>,
        name: &str,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let state = scene.db.account_state(name).await.doing("reading the account's state")?;
        let why = state.paused.map_or_else(String::new, |(_, why)| format!(" ({why})"));
        let text = format!(
            "account {name} was paused meanwhile{why}; what was decided after that was not \
             written, and its rows are given back"
        );
        self.miss(Exit::Partial, text, tell);
        Ok(())
    }

    /// Carries out the paid rows that waited for older ones with their natural key: of those that
    /// are still paid the oldest succeeds, and the others are judged by it.
    pub async fn settle_paid(&mut self, scene: &Scene<'_>, tell: Tell<'_>) -> Result<(), RunError> {
        let mut paid = self.hold.take_paid();
        for round in 1..=PAID_ROUNDS {
            if paid.is_empty() || self.closed {
                return Ok(());
            }
            paid = look_at_paid(scene, &self.rehearsed, paid).await?;
            let (first, later) = match round {
                PAID_ROUNDS => (paid, Vec::new()),
                _ => oldest_first(paid),
            };
            let mut by_place: BTreeMap<(String, usize), Vec<Weighed>> = BTreeMap::new();
            for Paid { account, table, row } in first {
                by_place.entry((account, table)).or_default().push(row);
            }
            for ((account, index), rows) in by_place {
                let open = scene.accounts.get(&account);
                let Some(table) = scene.tables.get(index) else { continue };
                self.carry(scene, table, open, rows, tell).await?;
            }
            paid = later;
        }
        Ok(())
    }

    /// The brake's word over each account's held hand-backs: all go, or none.
    pub async fn brake(&mut self, scene: &Scene<'_>, tell: Tell<'_>) -> Result<(), RunError> {
        for name in self.hold.accounts() {
            let Some(open) = scene.accounts.get(&name) else { continue };
            self.judge_held_again(scene, &name, open, tell).await?;
            let (rows, figures, word) =
                self.hold.release(&name, &open.setup.brake, open.usual_permille);
            let text = match &word {
                Brake::Off => None,
                Brake::On(text) => Some(text.clone()),
            };
            self.brakes.insert(name.clone(), (figures, text.clone()));
            if let Some(text) = &text {
                self.pull(scene, &name, figures, text, tell).await?;
            } else if !scene.options.dry_run
                && let Some(usual) = usual_after(&figures)
            {
                let put = scene.db.put_account_state(&name, None, Some(usual)).await;
                put.doing("noting the account's usual share")?;
            }
            let mut by_table: BTreeMap<usize, Vec<Weighed>> = BTreeMap::new();
            for (table, mut row) in rows {
                if let Some(text) = &text {
                    hold::stop(&mut row, text, &open.setup.timing);
                }
                by_table.entry(table).or_default().push(row);
            }
            for (index, rows) in by_table {
                let Some(table) = scene.tables.get(index) else { continue };
                self.carry(scene, table, Some(open), rows, tell).await?;
            }
        }
        // Also where the brake held nothing this time: what it had held may be found by now. What
        // it holds from now on waits, even where a pause gave the rows back before that was
        // written.
        let is_pulled =
            |name: &&String| self.brakes.get(*name).is_some_and(|(_, text)| text.is_some());
        let asked: Vec<String> =
            self.notes.keys().filter(|name| !is_pulled(name)).cloned().collect();
        for name in asked {
            let why = "no row waits for the brake any more";
            self.close_case(scene, &name, Reason::AbsenceBrake, why).await?;
        }
        Ok(())
    }

    /// What was held for long, or for its siblings, is judged by how those stand now.
    async fn judge_held_again(
        &mut self,
        scene: &Scene<'_>,
        name: &str,
        open: &OpenAccount,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let rows = self.hold.recall(name);
        let mut by_table: BTreeMap<usize, Vec<Weighed>> = BTreeMap::new();
        for (table, row) in look_again(scene, open, &self.rehearsed, rows).await? {
            by_table.entry(table).or_default().push(row);
        }
        for (index, rows) in by_table {
            let Some(table) = scene.tables.get(index) else { continue };
            let (brake, timing) = (&open.setup.brake, &open.setup.timing);
            let through = if scene.mode(table, Some(open)) == Mode::Full {
                self.hold.pass(name, index, rows, brake, timing)
            } else {
                rows
            };
            self.carry(scene, table, Some(open), through, tell).await?;
        }
        Ok(())
    }

    async fn pull(
        &mut self,
        scene: &Scene<'_>,
        account: &str,
        figures: BrakeFigures,
        text: &str,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        if let Some(note) = self.notes.get_mut(account) {
            note.brake = Some(text.to_owned());
        }
        self.miss(
            Exit::Partial,
            format!("account {account}: absence brake: {text}; 0 rows ended by absence"),
            tell,
        );
        let evidence = serde_json::json!({
            "schema": crate::model::evidence::EVIDENCE_SCHEMA,
            "run": scene.run_id,
            "handbacks": figures.handbacks,
            "abandoned": figures.abandoned,
            "listed": figures.listed,
            "nearest": figures.nearest,
            "resolved": figures.resolved,
            "usual_permille": figures.usual_permille,
        });
        self.put_case(scene, account, Reason::AbsenceBrake, text, evidence.to_string()).await
    }

    /// Opens or refreshes a case about an account.
    pub async fn put_case(
        &mut self,
        scene: &Scene<'_>,
        account: &str,
        reason: Reason,
        text: &str,
        evidence: String,
    ) -> Result<(), RunError> {
        if scene.options.dry_run {
            return Ok(());
        }
        let case = AccountCase {
            account: account.to_owned(),
            reason,
            text: text.to_owned(),
            evidence,
            policy_version: scene.setup.policy_version.clone(),
        };
        let now = scene.clock.now();
        let put = scene.db.put_account_case(scene.run_id, &case, now).await;
        let number = put.doing("opening a case about an account")?;
        self.account_cases.push(AccountCaseNote {
            number,
            account: case.account,
            reason,
            text: case.text,
            evidence_sha256: Some(hex(&Sha256::digest(case.evidence.as_bytes()))),
        });
        Ok(())
    }

    /// Closes a case about an account whose cause is gone.
    pub async fn close_case(
        &mut self,
        scene: &Scene<'_>,
        account: &str,
        reason: Reason,
        resolution: &str,
    ) -> Result<(), RunError> {
        if scene.options.dry_run || self.closed {
            return Ok(());
        }
        let now = scene.clock.now();
        let closed =
            scene.db.close_account_case(scene.run_id, account, reason, resolution, now).await;
        closed.doing("closing a case about an account").map(|_was_open| ())
    }
}

/// What is wrong, since when, and what to do.
fn dropped_words(
    account: &str,
    kind: Kind,
    newer: u64,
    since: Instant,
    last: Option<Instant>,
) -> String {
    let what = match kind {
        Kind::Charge => counted(newer, "payment", "payments"),
        Kind::Refund => counted(newer, "refund", "refunds"),
        Kind::Payout => counted(newer, "payout", "payouts"),
    };
    let last = last.map_or_else(String::new, |last| {
        format!(" (the last that was seen with one is of {})", to_short_text(last))
    });
    format!(
        "account {account}: none of the {what} since {} carries a tag of a row{last}; rows that \
         were not found wait until one does; see that every call sends the tag, and ask `tieout \
         doctor`",
        to_short_text(since)
    )
}

/// The chains of a run's journal: each batch that is being written has one of its own.
struct Writers {
    run_id: String,
    known: usize,
    idle: Vec<Writer>,
}

impl Writers {
    fn take(&mut self) -> Writer {
        self.idle.pop().unwrap_or_else(|| {
            self.known = self.known.saturating_add(1);
            Writer { name: self.known.to_string(), seq: 0, head: self.run_id.clone() }
        })
    }
}

/// What waits for the next run of what people approved, in one line however many it is.
fn not_carried_out(why: &str, mut approvals: Vec<(i64, i64)>) -> String {
    approvals.sort_unstable();
    if let [(case, proposal)] = approvals.as_slice() {
        return format!(
            "case C-{case}: proposal {proposal} is approved and not carried out: {why}; the next \
             run tries again"
        );
    }
    let cases = approvals.iter().take(KEYS_TOLD).map(|(case, _)| format!("C-{case}"));
    let (all, cases) = (approvals.len(), some_of(cases, approvals.len()));
    format!(
        "{all} approved proposals are not carried out (cases {cases}): {why}; the next run tries \
         again"
    )
}

/// What a batch came to.
struct Written {
    counted: BTreeMap<String, Counted>,
    end: Result<(Writer, ApplyEnd), RunError>,
}

/// From decisions to what the database shall hold.
struct Work<'a> {
    scene: &'a Scene<'a>,
    table: Arc<SourceTable>,
    mode: Mode,
    timing: &'a Timing,
}

impl<'a> Work<'a> {
    /// The next rows of one transaction; none: all are done.
    async fn out(
        &self,
        rows: &mut (impl Iterator<Item = Weighed> + Send),
        size: usize,
    ) -> Result<Vec<RowEffects>, RunError> {
        let Self { scene, mode, timing, .. } = *self;
        let table = &self.table;
        let stages = scene.setup.stages(&table.settings);
        let kicked = scene.options.kick.as_ref();
        let kicked = kicked.map(|kick| kick.provenance(&scene.setup.rules.version));
        let mut batch = Vec::new();
        for row in rows.take(size) {
            let evidence = evidence_of(&row, kicked.as_ref())?;
            let planned = plan(row, evidence, mode, stages, &scene.setup.policy_version);
            let mut row = effects(planned, &table.settings, timing, scene.run_id);
            let is_chosen = kicked.is_some() || scene.options.ids.is_some();
            row.yields_to_people = is_chosen && row.proposal.is_none();
            batch.push(row);
            if batch.len().is_multiple_of(WORKED_AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
        Ok(batch)
    }

    /// Writes a batch in one database transaction: a task of its own, so that what is worked out
    /// meanwhile does not keep the database waiting for its next statement.
    fn write(
        &self,
        mut writer: Writer,
        batch: Vec<RowEffects>,
    ) -> impl Future<Output = Written> + Send + use<> {
        let (doing, scene) = ("writing decisions", self.scene);
        let counted = Counted::by_account(batch.iter().map(|row| &row.journal));
        let (db, table, run_id) =
            (scene.db.clone(), Arc::clone(&self.table), scene.run_id.to_owned());
        let now = scene.clock.now();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let end = db.apply(&run_id, &mut writer, &table, batch, now).await;
            end.map(|end| (writer, end))
        });
        async move {
            let end = match task.join_next().await.transpose() {
                Ok(Some(end)) => end,
                Ok(None) => Err(lost(doing, "it is not there".to_owned())),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    Err(ended) => Err(lost(doing, ended.to_string())),
                },
            };
            Written { counted, end: end.doing(doing) }
        }
    }
}

/// The task that wrote a batch ended without a word: the database rolls back what it began.
fn lost(doing: &'static str, problem: String) -> StoreError {
    StoreError::Unexpected { doing, problem }
}

/// What a decision was made from, as it is stored.
fn evidence_of(row: &Weighed, kicked: Option<&KickedBy>) -> Result<String, RunError> {
    serde_json::to_string(&row.inputs_to_store(kicked))
        .map_err(|source| RunError::Evidence { key: row.claimed.row.key.id.clone(), source })
}

fn plan(row: Weighed, evidence: String, mode: Mode, stages: bool, policy_version: &str) -> Planned {
    // That the customer paid for this row, too, is for a person to say, who has said it here.
    let is_said = row.person.is_some() && matches!(row.decision.verdict, Verdict::Succeeded);
    Planned {
        claimed: row.claimed,
        decision: row.decision,
        mode,
        now: row.now,
        evidence,
        policy_version: policy_version.to_owned(),
        lines: row.lines,
        person: row.person,
        mapped_from: row.mapped_from,
        clears_case: row.clears_case,
        stages,
        siblings: (!is_said).then_some(row.inputs.siblings),
    }
}
