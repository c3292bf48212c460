//! One run, watched: a ping at its beginning in the background, and at its end everything else.
//!
//! No database step is ever dropped halfway: only what goes over the network is, when its time
//! is over or a signal asks the process to end.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::TimeDelta;
use chrono_tz::Tz;
use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::model::time::{Instant, later};
use crate::monitor::alerts::tell;
use crate::monitor::conditions::{Condition, Kind, holding, late};
use crate::monitor::facts::{Facts, GIVEN_UP_TOLD, Known, bucket_edges, is_interrupted};
use crate::monitor::healthcheck::{Ping, ping};
use crate::monitor::metrics::Page;
use crate::monitor::prometheus::{push, textfile, write};
use crate::monitor::send::Post;
use crate::monitor::settings::{AlertSettings, MonitoringSettings};
use crate::monitor::tally::Tally;
use crate::monitor::words;
use crate::run::events::{Event, Summary};
use crate::secret::EnvLookup;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::outbox::OutboxDriver;
use crate::store::watch::{Alert, AlertAsk, Change, FileFigures, Mark};

/// What is left for the network once a signal asked for the end: the run itself had the rest.
const STOPPED: Duration = Duration::from_secs(1);

/// How long an alert that one run is telling is left alone by the others.
const LEASE: TimeDelta = TimeDelta::minutes(1);

/// What surrounds a watched run.
pub struct Around {
    /// Looks up the variables that settings name.
    pub env: EnvLookup,
    /// The zone of business days.
    pub zone: Tz,
    /// Paths are relative to this folder: the configuration's.
    pub folder: PathBuf,
    /// The configured accounts.
    pub accounts: Vec<String>,
    /// The configured sources of settlement files.
    pub sources: Vec<String>,
    /// Cancelled when the process shall end.
    pub stop: CancellationToken,
}

/// Where it is remembered what all schedules see: how their sources were met, and how many rows
/// were given up. No schedule is called so.
const OF_ALL: &str = "all schedules";

/// What fetching files alone can judge.
const OF_FILES: &[Kind] = &[Kind::SourceUnavailable, Kind::FileMissing];

/// A run, watched.
pub struct Watch<'a> {
    settings: &'a MonitoringSettings,
    /// What it can judge.
    judges: &'static [Kind],
    around: Around,
    post: Post,
    run_id: String,
    tally: Tally,
    started: JoinSet<Result<(), String>>,
}

/// What is sent, and by whom: its result is told under this name.
type Sent = (String, Result<(), String>);

impl<'a> Watch<'a> {
    /// Begins, in the background: the run does not wait for it.
    pub fn begin(settings: &'a MonitoringSettings, around: Around, run_id: &str) -> Self {
        let mut watch = Self::new(settings, around, run_id, Kind::ALL);
        if let Some(check) = &settings.healthcheck {
            let (post, place, id) = (watch.post.clone(), check.place(), run_id.to_owned());
            let most = to_std(settings.ping_timeout());
            watch.started.spawn(async move {
                let start = async {
                    let url = post.resolve(place).await?;
                    ping(&post, url, &id, Ping::Start).await
                };
                within(most, start).await
            });
        }
        watch
    }

    /// Begins for what only fetches files and decides no row: it tells what it can judge of
    /// those, and is no sign that the schedule's run is alive.
    pub fn of_files(settings: &'a MonitoringSettings, around: Around, run_id: &str) -> Self {
        Self::new(settings, around, run_id, OF_FILES)
    }

    fn new(
        settings: &'a MonitoringSettings,
        around: Around,
        run_id: &str,
        judges: &'static [Kind],
    ) -> Self {
        let post = Post {
            env: std::sync::Arc::clone(&around.env),
            scope: settings.scope.clone(),
            proxy: settings.proxy.clone(),
        };
        let (run_id, started) = (run_id.to_owned(), JoinSet::new());
        Self { settings, judges, around, post, run_id, tally: Tally::default(), started }
    }

    /// Whether it is the schedule's own run.
    fn is_run(&self) -> bool {
        self.judges.len() == Kind::ALL.len()
    }

    /// One thing that the run told.
    pub fn note(&mut self, event: &Event) {
        self.tally.note(event);
    }

    /// Tells everybody how it ended. What could not be told comes back, one line each; it stands
    /// in the run's notes as well.
    pub async fn end(
        mut self,
        exit: Exit,
        summary: Option<&Summary>,
        db: Option<&Database>,
    ) -> Vec<String> {
        let ended_at = summary.map_or_else(crate::clock::now, |summary| summary.ended_at);
        let tally = std::mem::take(&mut self.tally);
        let mut facts = Facts {
            scope: &self.settings.scope,
            run_id: &self.run_id,
            exit,
            ended_at,
            accounts: self.around.accounts.clone(),
            sources: self.around.sources.clone(),
            tally: &tally,
            summary,
            silent: Vec::new(),
            known: None,
        };
        let mut problems = Vec::new();
        if let Some(db) = db.filter(|_| is_interrupted(exit))
            && let Err(error) = leave_to_the_next(db, &facts).await
        {
            problems.push(format!("the database: {error}"));
        }
        let db = db.filter(|_| !is_interrupted(exit));
        let mut asks = Vec::new();
        if let Some(db) = db {
            match self.prepare(db, &mut facts).await {
                Ok(taken) => asks = taken,
                Err(error) => problems.push(format!("the database: {error}")),
            }
        }
        let started = std::mem::take(&mut self.started);
        let (sent, told) = Box::pin(self.send_all(started, &facts, &asks)).await;
        let failed = sent.into_iter().filter_map(|(who, sent)| Some((who, sent.err()?)));
        problems.extend(failed.map(|(who, why)| format!("{who}: {why}")));
        if let Some(db) = db {
            let settled = self.settle(db, &asks, told, &mut problems).await;
            if let Err(error) = settled {
                problems.push(format!("the database: {error}"));
            }
        }
        for problem in &problems {
            tracing::warn!(run.id = self.run_id, problem, "Monitoring was not told");
        }
        problems
    }

    /// Moves what is remembered, reads what is known, and takes what is to be told.
    async fn prepare(
        &self,
        db: &Database,
        facts: &mut Facts<'_>,
    ) -> Result<Vec<(&'a AlertSettings, AlertAsk, Vec<Alert>)>, StoreError> {
        let changes = if self.is_run() { facts.changes() } else { Vec::new() };
        let mut marks = db.move_marks(facts.scope, &changes).await?;
        if self.is_run() {
            facts.silent = silent(db, facts, &marks).await?;
            marks = db.move_marks(facts.scope, &facts.changes_of_end()).await?;
        }
        // The later one counts: a schedule may remember a source from before.
        let mut of_all = facts.changes_of_sources();
        of_all.extend(facts.changes_of_given_up());
        marks.extend(db.move_marks(OF_ALL, &of_all).await?);
        let stuck = db.stuck_by_account().await?;
        let edges = bucket_edges(facts.ended_at, self.around.zone);
        let cases = db.open_cases_by_age(&edges).await?;
        let sinks = db.sink_states(facts.ended_at).await?;
        let files = match &self.settings.prometheus {
            Some(_) if self.is_run() => db.file_figures().await?,
            Some(_) | None => FileFigures::default(),
        };
        facts.known = Some(Known { sinks, files, ..Known::new(stuck, cases, marks) });
        let holding = holding(facts, self.settings);
        let late = late(facts);
        let now = db.now().await?;
        let mut asks = Vec::new();
        for to in &self.settings.alert {
            let ask = self.ask(to, &holding, late.as_ref(), now);
            let alerts = db.take_alerts(&ask).await?;
            if !alerts.is_empty() {
                asks.push((to, ask, alerts));
            }
        }
        let (given_up, untold) = facts.known.as_ref().map(Known::given_up).unwrap_or_default();
        if self.is_run() && untold > 0 {
            // What a receiver does not take now stands beside its own alert.
            let told = (GIVEN_UP_TOLD.to_owned(), Change::Set(given_up));
            db.move_marks(OF_ALL, &[told]).await?;
        }
        Ok(asks)
    }

    fn ask(
        &self,
        to: &AlertSettings,
        holding: &[Condition],
        late: Option<&Condition>,
        now: Instant,
    ) -> AlertAsk {
        let judged = holding.iter().filter(|held| self.judges.contains(&held.kind));
        let wanted = judged.filter(|held| to.wants(held.kind, held.class));
        let late = late.filter(|late| to.wants(late.kind, late.class));
        AlertAsk {
            scope: self.settings.scope.clone(),
            receiver: to.name.clone(),
            run_id: self.run_id.clone(),
            holding: wanted.map(|held| (held.name(), held.text.clone())).collect(),
            judged: self.judges.iter().map(|kind| kind.as_str()).collect(),
            shared: self
                .judges
                .iter()
                .filter(|kind| !kind.is_of_runs())
                .map(|kind| kind.as_str())
                .collect(),
            late: late.map(|late| (late.name(), late.text.clone())).into_iter().collect(),
            growing: Kind::ALL.iter().filter(|kind| kind.grows()).map(|k| k.as_str()).collect(),
            now,
            lease_until: later(now, LEASE),
        }
    }

    /// Everything that leaves the process, side by side, each with its own deadline.
    async fn send_all(
        &self,
        started: JoinSet<Result<(), String>>,
        facts: &Facts<'_>,
        asks: &[(&AlertSettings, AlertAsk, Vec<Alert>)],
    ) -> (Vec<Sent>, Vec<Vec<Result<(), String>>>) {
        let most = to_std(self.settings.timeout);
        let page = Page::of(facts);
        // A signal leaves time for the ping alone.
        let is_told = self.is_run() && !is_interrupted(facts.exit);
        let metrics = self.settings.prometheus.as_ref().filter(|_| is_told);
        let mut sent: Vec<Sent> = Vec::new();
        sent.extend(metrics.and_then(|to| self.textfile(to.textfile.as_ref()?, &page)));
        let pinging = async {
            let most = to_std(self.settings.ping_timeout());
            let ping = self.last_ping(started, facts);
            ("healthcheck".to_owned(), self.bounded(most, ping).await)
        };
        let pushing = async {
            let to = metrics.and_then(|to| to.push.as_ref());
            let sending = async {
                match to {
                    Some(to) => push(&self.post, to, page.text()).await,
                    None => Ok(()),
                }
            };
            ("prometheus push".to_owned(), self.bounded(most, sending).await)
        };
        let telling = asks.iter().map(async |(to, _, alerts)| {
            let told = async { Ok(tell(&self.post, to, facts, alerts).await) };
            match self.bounded(most, told).await {
                Ok(told) => told,
                Err(why) => alerts.iter().map(|_alert| Err(why.clone())).collect(),
            }
        });
        let ((pinged, pushed), told) =
            tokio::join!(async { tokio::join!(pinging, pushing) }, join_all(telling));
        sent.extend([pinged, pushed]);
        (sent, told)
    }

    /// The end, after the beginning where that is still on its way.
    async fn last_ping(
        &self,
        mut started: JoinSet<Result<(), String>>,
        facts: &Facts<'_>,
    ) -> Result<(), String> {
        let check = self.settings.healthcheck.as_ref().filter(|_| self.is_run());
        let Some(check) = check else { return Ok(()) };
        let half = to_std(self.settings.ping_timeout()) / 2;
        tokio::select! {
            _began = started.join_next() => {}
            () = tokio::time::sleep(half) => {}
            () = self.around.stop.cancelled() => {}
        }
        started.abort_all();
        let url = self.post.resolve(check.place()).await?;
        let end = Ping::End { code: facts.told_exit().code(), body: words::ping(facts) };
        ping(&self.post, url, facts.run_id, end).await
    }

    fn textfile(&self, path: &Path, page: &Page<'_>) -> Option<Sent> {
        let path = self.around.folder.join(textfile(path, &self.settings.scope));
        let written = write(&path, page).map_err(|error| error.to_string());
        Some((format!("prometheus textfile {}", shown(&path)), written))
    }

    /// Until it is done, its time is over, or the process shall end.
    async fn bounded<T>(
        &self,
        most: Duration,
        work: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let stopped = async {
            self.around.stop.cancelled().await;
            tokio::time::sleep(STOPPED).await;
        };
        tokio::select! {
            done = within(most, work) => done,
            () = stopped => Err("given up: the process was asked to end".to_owned()),
        }
    }

    /// Notes what receivers took and what failed.
    async fn settle(
        &self,
        db: &Database,
        asks: &[(&AlertSettings, AlertAsk, Vec<Alert>)],
        told: Vec<Vec<Result<(), String>>>,
        problems: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        for ((to, ask, alerts), told) in asks.iter().zip(told) {
            let (taken, left): (Vec<_>, Vec<_>) =
                alerts.iter().cloned().zip(told).partition(|(_, told)| told.is_ok());
            let only = |pairs: Vec<(Alert, Result<(), String>)>| {
                pairs.into_iter().map(|(alert, _)| alert).collect::<Vec<Alert>>()
            };
            if let Some((_, Err(why))) = left.first() {
                let count = left.len();
                problems.push(format!("alert {}: {why}; {count} left for the next run", to.name));
            }
            db.settle_alerts(ask, &only(taken), true).await?;
            db.settle_alerts(ask, &only(left), false).await?;
        }
        if problems.is_empty() {
            return Ok(());
        }
        db.note_monitoring(&self.run_id, problems).await
    }
}

/// A run that was interrupted tells nobody: that it gave up rows is the next one's to tell.
async fn leave_to_the_next(db: &Database, facts: &Facts<'_>) -> Result<(), StoreError> {
    let changes = facts.changes_of_given_up();
    if !changes.is_empty() {
        db.move_marks(OF_ALL, &changes).await?;
    }
    Ok(())
}

/// The accounts that gave no answer when this schedule asked them last, and none to anybody since.
async fn silent(
    db: &Database,
    facts: &Facts<'_>,
    marks: &[Mark],
) -> Result<Vec<String>, StoreError> {
    let mut silent = Vec::new();
    for mark in marks.iter().filter(|mark| mark.value > 0) {
        let account = mark.name.strip_prefix("unreachable/");
        let Some(account) = account.filter(|name| facts.accounts.iter().any(|own| own == name))
        else {
            continue;
        };
        if db.account_state(account).await?.unanswered_since.is_some() {
            silent.push(account.to_owned());
        }
    }
    Ok(silent)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

async fn within<T>(
    most: Duration,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    match tokio::time::timeout(most, work).await {
        Ok(done) => done,
        Err(_elapsed) => Err("no answer in time".to_owned()),
    }
}

fn to_std(span: TimeDelta) -> Duration {
    span.to_std().unwrap_or(Duration::ZERO)
}
