//! Delivering what is staged: distribute, suppress what is no news any more, and then every sink
//! by itself, side by side, so that none holds up another.
//!
//! One deliverer at a time holds a sink. Of each transaction one event is on its way, and the next
//! follows when that one is marked: their order holds, and what was sent and not marked is sent
//! again. Whatever waits for later waits as data; nothing here sleeps. No step at the database is
//! ever dropped half-way.

use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde::Serialize;

use crate::decide::backoff;
use crate::decide::policy::Timing;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::{Instant, later, to_short_text};
use crate::model::transaction::RowKey;
use crate::run::books::{Books, Tell};
use crate::run::clock::DatabaseClock;
use crate::run::error::{Doing, RunError};
use crate::run::scene::Scene;
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::run::{LEASE, host_name};
use crate::sinks::settings::{How, Sink};
use crate::sinks::{Answer, Down, Event, Line, Sent, Until, notify};
use crate::store::database::Database;
use crate::store::driver::{Driver, Undone};
use crate::store::outbox::{
    Health, Letter, LetterEnd, OutboxDriver, SinkLease, SinkState, Stale, Taker, Turn, Which,
};

/// Events that get their deliveries in one transaction.
const DISTRIBUTED_AT_ONCE: i64 = 5_000;

/// Letters on their way together: of so many transactions.
const LETTERS_AT_ONCE: i64 = 200;

/// How long letters of one lot may be begun, and their answers be waited for: with the longest
/// time-out of a sink behind it, the lease still holds.
const LOT: Duration = Duration::from_secs(45);

/// How a sink did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkTurn {
    /// It took what there was.
    Well,
    /// It took nothing more.
    Failing,
    /// It took nothing before, and is left alone.
    LeftAlone,
    /// Another process sends to it.
    Busy,
    /// Time was over, or the process shall end.
    CutShort,
    /// It is configured no more.
    Unknown,
}

/// What became of one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkNote {
    /// Its name.
    pub sink: String,
    /// Its kind; empty where it is configured no more.
    pub kind: &'static str,
    /// How it did.
    pub state: SinkTurn,
    /// Events that it took.
    pub delivered: u64,
    /// Events that it failed at, which are tried again.
    pub put_off: u64,
    /// Events that became dead letters just now.
    pub died: u64,
    /// Events that wait for it now.
    pub waiting: i64,
    /// Those of them that wait for their own time alone.
    pub later: i64,
    /// Dead letters that wait for a person.
    pub dead: i64,
    /// When the oldest that waits was staged.
    pub oldest: Option<Instant>,
    /// When it is tried again.
    pub until: Option<Instant>,
    /// Why it took nothing.
    pub error: Option<String>,
    /// The class of the trouble.
    pub exit: Exit,
}

impl SinkNote {
    fn of(sink: &Sink) -> Self {
        Self {
            sink: sink.name.clone(),
            kind: sink.kind.as_str(),
            state: SinkTurn::Well,
            delivered: 0,
            put_off: 0,
            died: 0,
            waiting: 0,
            later: 0,
            dead: 0,
            oldest: None,
            until: None,
            error: None,
            exit: Exit::Ok,
        }
    }

    /// Of a sink that something waits for, and that nobody configures any more.
    fn unknown(state: &SinkState) -> Self {
        Self {
            sink: state.sink.clone(),
            kind: "",
            state: SinkTurn::Unknown,
            delivered: 0,
            put_off: 0,
            died: 0,
            waiting: state.waiting,
            later: state.later,
            dead: state.dead,
            oldest: state.oldest,
            until: None,
            error: None,
            exit: Exit::Partial,
        }
    }

    /// It said something of an event in this turn, for good.
    fn is_alive(&self) -> bool {
        self.delivered > 0 || self.died > 0
    }

    fn stand(&mut self, state: &SinkState) {
        self.waiting = state.waiting;
        self.later = state.later;
        self.dead = state.dead;
        self.oldest = state.oldest;
        if state.dead > 0 || (self.state == SinkTurn::LeftAlone && state.due() > 0) {
            self.exit = self.exit.or_stronger(Exit::Partial);
        }
    }

    /// What was not delivered, and what to do next; none where all is well.
    pub fn trouble(&self) -> Option<(String, String)> {
        let Self { sink, waiting, later, dead, .. } = self;
        let letters = counted(dead, "dead letter", "dead letters");
        let error = self.error.as_deref().unwrap_or("it took nothing");
        let again = self
            .until
            .map_or(String::new(), |at| format!("; it is tried again from {}", to_short_text(at)));
        match self.state {
            SinkTurn::Failing | SinkTurn::LeftAlone if waiting > later || self.exit != Exit::Ok => {
                let text = format!("sink {sink}: {error}; {}{again}", waits(*waiting, *later));
                Some((text, format!("tieout deliver --now --sink {sink}")))
            }
            SinkTurn::Unknown => {
                let text = format!(
                    "sink {sink} is configured no more; {} for it, and {letters}",
                    counted(waiting, "event waits", "events wait")
                );
                let next = format!("tieout deliver purge --sink {sink} --waiting --reason …");
                Some((text, next))
            }
            _other if *dead > 0 => {
                let text = format!("sink {sink}: {letters}; {}", later_events(*dead));
                Some((text, format!("tieout deliver list --sink {sink}")))
            }
            SinkTurn::Well
            | SinkTurn::Busy
            | SinkTurn::CutShort
            | SinkTurn::Failing
            | SinkTurn::LeftAlone => None,
        }
    }
}

/// How many wait; those that wait for their own time alone are told apart.
pub fn waits(waiting: i64, later: i64) -> String {
    let text = counted(waiting.saturating_sub(later), "event waits", "events wait");
    match later {
        0 => text,
        1 => format!("{text}, and 1 more for its time"),
        many => format!("{text}, and {many} more for their time"),
    }
}

/// What dead letters hold back.
pub(super) fn later_events(dead: i64) -> &'static str {
    match dead {
        1 => "later events of its row wait for it",
        _several => "later events of their rows wait for them",
    }
}

/// How it is delivered.
#[derive(Debug, Clone, Default)]
pub struct DeliverOptions {
    /// Only to these sinks.
    pub only: Option<Vec<String>>,
    /// Begins nothing new after this long.
    pub at_most: Option<Duration>,
    /// Tries sinks that are to be left alone, too.
    pub now_at_all: bool,
}

/// What delivering came to.
#[derive(Debug, Clone, Default)]
pub struct Delivered {
    /// Each sink, in the configuration's order; then those that are configured no more.
    pub notes: Vec<SinkNote>,
    /// What was no news any more.
    pub stale: Stale,
}

impl Delivered {
    /// The strongest of all.
    pub fn exit(&self) -> Exit {
        self.notes.iter().fold(Exit::Ok, |exit, note| exit.or_stronger(note.exit))
    }
}

/// Delivers what is due.
///
/// # Errors
/// Where the database could not go on; what a sink took before is marked, or is sent again.
pub async fn deliver(
    setup: &Setup,
    db: &Database,
    stop: &Stop,
    options: &DeliverOptions,
) -> Result<Delivered, RunError> {
    let now = db.now().await.doing("reading the database's clock")?;
    if !setup.sinks.is_empty() {
        let takers: Vec<Taker> = setup.sinks.iter().map(taker).collect();
        while stop.requested().is_none() {
            let done = db.distribute(&takers, DISTRIBUTED_AT_ONCE, now).await;
            if done.doing("distributing events to the sinks")? == 0 {
                break;
            }
        }
    }
    let stale = db.suppress_stale(now).await.doing("suppressing what is no news any more")?;
    let deadline = options.at_most.map(|most| tokio::time::Instant::now() + most);
    let round = Round {
        setup,
        db,
        clock: DatabaseClock::new(now),
        owner: format!("{} {}", host_name(), std::process::id()),
        until: Until { deadline, answers: far_off(), stop: stop.token() },
        now_at_all: options.now_at_all,
    };
    let is_asked =
        |sink: &&Sink| options.only.as_ref().is_none_or(|only| only.contains(&sink.name));
    let rounds = setup.sinks.iter().filter(is_asked).map(|sink| round.take(sink));
    // Each owns steps at the database: all are waited for, whatever became of one.
    let ended: Vec<Result<SinkNote, RunError>> = join_all(rounds).await;
    let mut notes = ended.into_iter().collect::<Result<Vec<SinkNote>, RunError>>()?;
    let states = db.sink_states(round.clock.now()).await.doing("reading how the sinks stand")?;
    for state in &states {
        match notes.iter_mut().find(|note| note.sink == state.sink) {
            Some(note) => note.stand(state),
            None if is_unknown(setup, state) && options.only.is_none() => {
                notes.push(SinkNote::unknown(state));
            }
            None => {}
        }
    }
    Ok(Delivered { notes, stale })
}

/// Before a run looks at rows: hand-backs that nobody came for in time lapse, so that it proves
/// them afresh; and what workers read in the outbox by themselves waits for no sink.
///
/// # Errors
/// Where the database could not go on.
pub(super) async fn before_run(scene: &Scene<'_>, undone: Undone) -> Result<(), RunError> {
    let (db, now) = (scene.db, scene.clock.now());
    if scene.setup.sinks.is_empty() && undone.events {
        // A sink that is configured later gets what comes later.
        while scene.stop.requested().is_none() {
            let done = db.distribute(&[], DISTRIBUTED_AT_ONCE, now).await;
            if done.doing("marking events that no sink waits for")? == 0 {
                break;
            }
        }
    }
    if undone.stale {
        db.suppress_stale(now).await.doing("ending hand-backs that nobody took in time")?;
    }
    Ok(())
}

/// At the end of a run, within its bound: what it staged, and what waited from before. What could
/// not be delivered is told, and waits.
///
/// # Errors
/// As [`deliver`].
pub(super) async fn after_run(
    scene: &Scene<'_>,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let at_most = scene.setup.delivery.after_run.to_std().unwrap_or_default();
    let is_off = scene.options.dry_run
        || scene.setup.sinks.is_empty()
        || at_most.is_zero()
        || books.closed
        || scene.stop.requested().is_some();
    if is_off || scene.db.outbox_is_empty().await.doing("looking for events that wait")? {
        return Ok(());
    }
    let options = DeliverOptions { at_most: Some(at_most), ..DeliverOptions::default() };
    let delivered = Box::pin(deliver(scene.setup, scene.db, scene.stop, &options)).await?;
    for note in &delivered.notes {
        if let Some((text, next)) = note.trouble() {
            books.miss(note.exit, format!("{text}; {next}"), tell);
        }
    }
    Ok(())
}

/// Something waits for it, and nobody configures it.
pub(super) fn is_unknown(setup: &Setup, state: &SinkState) -> bool {
    let is_known = setup.sinks.iter().any(|sink| sink.name == state.sink);
    !is_known && (state.waiting > 0 || state.dead > 0)
}

/// Beyond every lease: each lot of letters has its own end.
fn far_off() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(24 * 3_600)
}

fn taker(sink: &Sink) -> Taker {
    Taker { sink: sink.name.clone(), tables: sink.tables.clone(), kinds: sink.events.clone() }
}

/// What sending one lot came to.
enum Lot {
    /// Nothing of this kind is due.
    Empty,
    /// Each of them was answered, or time was over.
    Sent,
    /// It failed at several in a row, and was not asked for the rest.
    Streak(Down),
    /// It takes nothing more.
    Down(Down),
    /// Nothing more is to be sent in this turn.
    Over,
}

/// One time through the sinks.
struct Round<'a> {
    setup: &'a Setup,
    db: &'a Database,
    clock: DatabaseClock,
    /// Who holds the sinks, for people.
    owner: String,
    until: Until,
    now_at_all: bool,
}

impl Round<'_> {
    async fn take(&self, sink: &Sink) -> Result<SinkNote, RunError> {
        let mut note = SinkNote::of(sink);
        let now = self.clock.now();
        let turn = self
            .db
            .lease_sink(&sink.name, &self.owner, now, later(now, LEASE), self.now_at_all)
            .await
            .doing("taking a sink")?;
        let lease = match turn {
            Turn::Ours(lease) => lease,
            Turn::Busy(until) => {
                return Ok(SinkNote { state: SinkTurn::Busy, until: Some(until), ..note });
            }
            Turn::LeftAlone(until, error) => {
                let (until, error) = (Some(until), Some(error));
                return Ok(SinkNote { state: SinkTurn::LeftAlone, until, error, ..note });
            }
        };
        let down = self.send_all(sink, &lease, &mut note).await?;
        let now = self.clock.now();
        let took = note.is_alive();
        let health = match down {
            None if note.put_off > 0 && !took => {
                // It answers, and failed at all that there was: each event has its own back-off,
                // and whatever is new is sent at once.
                let error = note.error.clone().unwrap_or_default();
                note.state = SinkTurn::Failing;
                note.exit = note.exit.or_stronger(Exit::Partial);
                Health::Failing { took, until: now, error }
            }
            None => Health::Well { took },
            Some(down) => {
                let failures = if took { 0 } else { lease.failures };
                let until = self.left_alone_until(sink, failures, &down, now);
                note.state = SinkTurn::Failing;
                note.until = Some(until);
                note.error = Some(down.text.clone());
                note.exit = note.exit.or_stronger(down.exit);
                Health::Failing { took, until, error: down.text }
            }
        };
        self.db.release_sink(&lease, &health, now).await.doing("giving a sink back")?;
        Ok(note)
    }

    /// Sends until nothing is due, time is over, or the sink takes nothing more.
    ///
    /// What never failed goes first, lot by lot in turn with what failed before: one event that is
    /// taken proves the sink alive, and from then on a failure is the event's. So a few events that
    /// it will never take neither hold up the others nor make it look dead; and where only they
    /// wait, their failing says nothing of the sink, which is not left alone for it.
    async fn send_all(
        &self,
        sink: &Sink,
        lease: &SinkLease,
        note: &mut SinkNote,
    ) -> Result<Option<Down>, RunError> {
        let mut open = None;
        let mut more_tried = true;
        loop {
            let new = match self.lot((sink, lease), Which::New, &mut open, note).await? {
                Lot::Sent => true,
                Lot::Empty => false,
                Lot::Streak(down) | Lot::Down(down) => return Ok(Some(down)),
                Lot::Over => return Ok(None),
            };
            // New ones failed, and none was taken: enough was asked of it.
            if note.put_off > 0 && !note.is_alive() {
                return Ok(None);
            }
            if new && !more_tried {
                continue;
            }
            more_tried = match self.lot((sink, lease), Which::Tried, &mut open, note).await? {
                Lot::Sent => true,
                Lot::Empty => false,
                Lot::Streak(_theirs) if note.is_alive() => true,
                Lot::Down(down) => return Ok(Some(down)),
                Lot::Streak(_) | Lot::Over => return Ok(None),
            };
            if !new && !more_tried {
                return Ok(None);
            }
        }
    }

    /// Sends the next lot of these.
    async fn lot(
        &self,
        (sink, lease): (&Sink, &SinkLease),
        which: Which,
        open: &mut Option<Option<Line>>,
        note: &mut SinkNote,
    ) -> Result<Lot, RunError> {
        if self.until.is_over() {
            note.state = SinkTurn::CutShort;
            return Ok(Lot::Over);
        }
        let now = self.db.now().await.doing("reading the database's clock")?;
        self.clock.set(now);
        let until = later(now, LEASE);
        let due = self.db.due_letters(lease, which, LETTERS_AT_ONCE, now, until).await;
        let Some(letters) = due.doing("reading events that wait for a sink")? else {
            note.state = SinkTurn::Busy;
            return Ok(Lot::Over);
        };
        if letters.is_empty() {
            return Ok(Lot::Empty);
        }
        // Only where there is something to send: an idle schedule calls on nobody.
        let line = match open {
            Some(line) => line,
            None => match Line::open(sink, &self.setup.env).await {
                Ok(line) => open.insert(line),
                Err(down) => return Ok(Lot::Down(down)),
            },
        };
        let sent = self.send(sink, line.as_mut(), &letters).await;
        let ends = self.ends((sink, lease), &letters, &sent, note);
        if !ends.is_empty() {
            let marked = self.db.settle_letters(lease, &ends, self.clock.now()).await;
            if !marked.doing("marking what a sink took")? {
                note.state = SinkTurn::Busy;
                return Ok(Lot::Over);
            }
            count(note, &ends);
        }
        Ok(match sent.down {
            Some(down) if down.streak => Lot::Streak(down),
            Some(down) => Lot::Down(down),
            None if ends.is_empty() => {
                note.state = SinkTurn::CutShort;
                Lot::Over
            }
            None => Lot::Sent,
        })
    }

    async fn send(&self, sink: &Sink, line: Option<&mut Line>, letters: &[Letter]) -> Sent {
        let events: Vec<Event> = letters.iter().map(event_of).collect();
        match (line, &sink.how) {
            (Some(line), _) => {
                let lot = tokio::time::Instant::now() + LOT;
                let until = Until { answers: lot, ..self.until.clone() };
                line.send(sink, &events, &until).await
            }
            (None, How::Notify(channel)) => self.notify(channel, &events).await,
            (None, _) => Sent::nothing(events.len()),
        }
    }

    /// The database itself tells those who listen.
    async fn notify(&self, channel: &str, events: &[Event]) -> Sent {
        let payloads: Vec<String> = events.iter().map(notify::payload).collect();
        let mut sent = Sent::nothing(events.len());
        match self.db.notify(channel, &payloads).await {
            Ok(()) => (0..events.len()).for_each(|index| sent.note(index, Answer::Taken)),
            Err(error) => sent.down = Some(Down::partial(error.to_string())),
        }
        sent
    }

    /// What becomes of each letter that was answered. A failure counts against an event only where
    /// the sink took another one: else it is the sink's.
    fn ends(
        &self,
        (sink, lease): (&Sink, &SinkLease),
        letters: &[Letter],
        sent: &Sent,
        note: &SinkNote,
    ) -> Vec<(String, LetterEnd)> {
        let is_word =
            |answer: &Option<Answer>| matches!(answer, Some(Answer::Taken | Answer::Refused(_)));
        let is_alive = note.is_alive() || sent.answers.iter().any(is_word);
        let answered = letters.iter().zip(&sent.answers);
        let ends = answered.filter_map(|(letter, answer)| {
            let end = match answer.as_ref()? {
                Answer::Taken => LetterEnd::Delivered,
                Answer::Refused(text) => {
                    let attempts = letter.attempts.saturating_add(1);
                    LetterEnd::Dead { attempts, error: text.clone() }
                }
                Answer::Failed(text) => self.failed((sink, lease), letter, text, is_alive),
            };
            Some((letter.event_id.clone(), end))
        });
        ends.collect()
    }

    fn failed(
        &self,
        (sink, lease): (&Sink, &SinkLease),
        letter: &Letter,
        text: &str,
        is_alive: bool,
    ) -> LetterEnd {
        let attempts = letter.attempts.saturating_add(u32::from(is_alive));
        if attempts >= sink.max_attempts {
            return LetterEnd::Dead { attempts, error: text.to_owned() };
        }
        let key = RowKey { table: sink.name.clone(), id: letter.event_id.clone() };
        // Once the sink takes others, its rounds of silence are over.
        let step = if is_alive { attempts } else { attempts.saturating_add(lease.failures) };
        let at = backoff::next_check_at(&key, step, &self.timing(), self.clock.now());
        LetterEnd::Again { at, attempts, error: text.to_owned() }
    }

    fn left_alone_until(&self, sink: &Sink, failures: u32, down: &Down, now: Instant) -> Instant {
        let key = RowKey { table: "sink".to_owned(), id: sink.name.clone() };
        let at = backoff::next_check_at(&key, failures, &self.timing(), now);
        let pause = down.pause.and_then(|pause| TimeDelta::from_std(pause).ok());
        pause.map_or(at, |pause| at.max(later(now, pause)))
    }

    fn timing(&self) -> Timing {
        let delivery = &self.setup.delivery;
        Timing {
            backoff_first: delivery.backoff_first,
            backoff_cap: delivery.backoff_cap,
            ..Timing::default()
        }
    }
}

fn event_of(letter: &Letter) -> Event {
    Event {
        id: letter.event_id.clone(),
        kind: letter.kind.clone(),
        table: letter.table.clone(),
        key: letter.key.clone(),
        version: letter.version,
        staged_at: letter.staged_at,
        payload: letter.payload.clone(),
    }
}

fn count(note: &mut SinkNote, ends: &[(String, LetterEnd)]) {
    for (_, end) in ends {
        let number = match end {
            LetterEnd::Delivered => &mut note.delivered,
            LetterEnd::Again { error, .. } => {
                note.error = Some(error.clone());
                &mut note.put_off
            }
            LetterEnd::Dead { .. } => &mut note.died,
        };
        *number = number.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_the_sink_and_for_its_time_are_told_apart() {
        for (waiting, later, text) in [
            (3, 0, "3 events wait"),
            (1, 0, "1 event waits"),
            (3, 2, "1 event waits, and 2 more for their time"),
            (3, 1, "2 events wait, and 1 more for its time"),
        ] {
            assert_eq!(waits(waiting, later), text);
        }
    }
}
