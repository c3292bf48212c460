//! The only room that orders effects: claim → gather evidence → decide → brake → apply → deliver.
//!
//! It holds no rule of its own: what is true of a row is decided in `decide`, what is written is
//! worked out in `store::effects`. It never guesses: what was not examined is reported as such.
//! No future that owns a database step is ever dropped half-way (`select`, time-out): in sqlx a
//! cancelled `begin()` can leave a pooled connection inside a transaction.

pub mod setup;
pub mod shutdown;
pub mod clock;
pub mod error;
pub mod events;
mod as_decided;
mod at_once;
pub mod asking;
pub mod fitting;
pub mod replay;
pub mod kick;
pub mod by_files;
mod came_back;
mod attempts;
mod batches;
pub mod match_lines;
mod line_cases;
mod taken_alone;
mod named_payments;
mod compare;
pub mod gather;
mod neighbours;
mod tagged;
pub mod hold;
pub mod scene;
mod siblings;
pub mod counted;
pub mod unanswered;
pub mod books;
pub mod drive;
mod left_out;
mod named;
mod mapped;
pub mod kept;
pub mod people;
mod by_people;
pub mod deliver;
pub mod finish;
pub mod doctor;
pub mod parts;
pub mod bring;
mod spool;
pub mod fetch;
pub mod expected;
pub mod gaps;
pub mod pages;
mod inbox;
pub mod ingest;
pub mod release;

use std::time::Duration;

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use crate::model::time::{Instant, later, to_short_text};
use crate::run::books::{Books, Tell};
use crate::run::clock::DatabaseClock;
use crate::run::error::{Doing, RunError};
use crate::run::events::{Event, Summary};
use crate::run::scene::Scene;
use crate::run::setup::{RunOptions, Setup};
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::store::driver::{Driver, Undone};
use crate::store::error::StoreError;
use crate::store::inspect::NamedRow;
use crate::store::records::RunStart;

/// The commit that this program was built from; a release knows it where git was at hand.
pub const COMMIT: Option<&str> = crate::report::facts::COMMIT;
/// How long a lease holds without being renewed.
pub const LEASE: TimeDelta = TimeDelta::minutes(2);
/// A run without a sign of life for this long is closed by the next: as long as a lease, so that
/// its rows come free together.
pub const DEAD_AFTER: TimeDelta = TimeDelta::minutes(2);
/// How often life is shown: eight chances before a run counts as dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Finds the stuck rows, asks, decides, applies, reports.
///
/// # Errors
/// Where the run could not go on; what it could do stands in the database.
pub async fn run(
    setup: &Setup,
    options: &RunOptions,
    db: &Database,
    stop: &Stop,
    tell: Tell<'_>,
) -> Result<Summary, RunError> {
    let now = read_clock(db, options).await.doing("reading the database's clock")?;
    if !options.dry_run {
        let abandoned = db.close_abandoned(now, DEAD_AFTER).await;
        for run in abandoned.doing("closing runs that stopped without a word")? {
            tell(Event::Abandoned(run));
        }
    }
    let tables = Box::pin(fitting::fit_tables(db, setup)).await?;
    let named = match &options.kick {
        Some(kick) => kick::rows(db, &tables, kick).await?,
        None => named::find(db, &tables, options).await?,
    };
    let run_id = options.run_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let clock = DatabaseClock::new(now);
    let scene = Scene::open(setup, options, db, stop, &run_id, tables, clock.clone()).await?;
    if !options.dry_run {
        open(db, &start_of(setup, options, &run_id), now).await?;
    }
    let window = options.window.clone();
    let dry_run = options.dry_run;
    tell(Event::Started { run_id: run_id.clone(), window, dry_run, at: now });

    let mut books = Books::open(&run_id);
    let done = CancellationToken::new();
    let work = async {
        let result = match begin(&scene, &mut books, &named, tell).await {
            Ok(()) => Box::pin(drive::drive(&scene, &mut books, tell)).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(()) => people::look_again(&scene, &mut books, tell).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(()) => finish::settle_held(&scene, &mut books, tell).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(()) => compare::compare(&scene, &mut books, tell).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(()) => match &options.kick {
                Some(kick) => kick::tell_rest(&scene, &books, kick, &named, tell).await,
                None => named::tell_rest(&scene, &books, &named, tell).await,
            },
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(()) => deliver::after_run(&scene, &mut books, tell).await,
            Err(error) => Err(error),
        };
        done.cancel();
        result
    };
    let life = async { if dry_run { Ok(()) } else { show_life(&scene, &clock, &done).await } };
    // Apart, as they are large.
    let (result, alive) = tokio::join!(Box::pin(work), life);
    Box::pin(finish::finish(&scene, books, result.and(alive), now, tell)).await
}

/// What is done before rows are looked at.
async fn begin(
    scene: &Scene<'_>,
    books: &mut Books,
    named: &[(String, NamedRow)],
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if scene.options.dry_run {
        return inbox::tell_left(scene, books, named, tell).await;
    }
    // An idle schedule asks this much, and opens no transaction.
    let undone = match people::is_whole(scene) {
        true => scene.db.undone(scene.clock.now()).await.doing("looking for what waits")?,
        false => Undone { releases: true, ..Undone::default() },
    };
    deliver::before_run(scene, undone).await?;
    inbox::bring_in(scene, books, named, undone.releases, tell).await?;
    match undone.approvals {
        true => people::carry_out_all(scene, books, tell).await,
        false => Ok(()),
    }
}

/// Opens the run. That its id is another run's is the mistake of whoever asked for it.
async fn open(db: &Database, start: &RunStart, now: Instant) -> Result<(), RunError> {
    let Err(error) = db.start_run(start, now).await else { return Ok(()) };
    match db.run(&start.id).await {
        Ok(Some(known)) => Err(RunError::RunIdTaken {
            run_id: known.id,
            state: known.state.as_str(),
            begun: to_short_text(known.started_at),
        }),
        Ok(None) | Err(_) => Err(error).doing("opening the run"),
    }
}

/// The database's clock; in a rehearsal, moved.
pub async fn read_clock(db: &Database, options: &RunOptions) -> Result<Instant, StoreError> {
    Ok(later(db.now().await?, options.clock_offset))
}

/// Shows life until `done`. A database step is never dropped half-way: only the sleep is.
async fn show_life(
    scene: &Scene<'_>,
    clock: &DatabaseClock,
    done: &CancellationToken,
) -> Result<(), RunError> {
    let (db, run_id) = (scene.db, scene.run_id);
    loop {
        tokio::select! {
            () = done.cancelled() => return Ok(()),
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
        let shown = async {
            let now = read_clock(db, scene.options).await?;
            clock.set(now);
            db.heartbeat(run_id, now, later(now, LEASE)).await
        };
        match shown.await {
            Ok(true) => {}
            Ok(false) => return Err(RunError::Closed { run_id: run_id.to_owned() }),
            // The work meets the same database and says what it could not do. A missed beat
            // alone ends nothing: apply checks the run's row itself.
            Err(error) => {
                tracing::warn!(run.id = run_id, error = %error, "A sign of life was not written");
            }
        }
    }
}

fn start_of(setup: &Setup, options: &RunOptions, run_id: &str) -> RunStart {
    RunStart {
        id: run_id.to_owned(),
        command: options.kick.as_ref().map_or("run", |_| kick::COMMAND).to_owned(),
        host: host_name(),
        pid: i64::from(std::process::id()),
        version: setup.version.clone(),
        config_sha256: setup.config_sha256.clone(),
        policy_version: setup.policy_version.clone(),
        scope: scope_text(setup, options),
    }
}

fn scope_text(setup: &Setup, options: &RunOptions) -> String {
    let window = options.window.as_ref();
    let end = |at: Option<Instant>| at.map(crate::model::time::to_text);
    serde_json::json!({
        "window": window.map(|w| serde_json::json!({
            "words": w.words,
            "from": end(w.from),
            "to": end(w.to),
            "on": w.on.as_str(),
        })),
        "timezone": setup.business_timezone.name(),
        "ids": options.ids.as_ref().map(Vec::len),
        "kick": options.kick.as_ref().map(|kick| kick.scope(&setup.rules.version)),
        "accounts": options.accounts,
        "limit": options.limit,
        "tables": setup.tables.iter().map(|t| t.name.clone()).collect::<Vec<_>>(),
    })
    .to_string()
}

/// The machine's name: a label for people, never part of a decision.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_default()
}
