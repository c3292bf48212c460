//! Making the demo: its directory, its PSP, its past, and the run that is shown.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use chrono_tz::Tz;
use serde_json::json;

use crate::cli::demo::accounts::KEYS;
use crate::cli::demo::cast::{Cast, Change, Seen};
use crate::cli::demo::files::{FOLDERS, files};
use crate::exit::Exit;
use crate::model::time::{from_text, to_text};
use crate::run::error::RunError;
use crate::run::events::{Event, Summary};
use crate::run::run;
use crate::run::setup::{RunOptions, Setup};
use crate::run::shutdown::Stop;
use crate::sandbox::settings::{ApiKey, Behaviour, SandboxError, Settings};
use crate::sandbox::{Handle, Sandbox};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::files::{FileDriver, FileFilter, FileRow};
use crate::store::payouts::{Payout, PayoutDriver};

/// The demo's configuration; it is a good beginning for one's own.
const CONFIG: &str = include_str!("tieout.toml");

/// The runs of the past: who is looked at, and how many minutes ago.
const PAST: [(Seen, i64); 7] = [
    (Seen::DaysAgo, 8 * 24 * 60),
    (Seen::HandedBack, 140),
    (Seen::HandedBack, 118),
    (Seen::HandedBack, 100),
    (Seen::Twice, 50),
    (Seen::Once, 17),
    (Seen::Twice, 17),
];

/// How far the clock of the second PSP is from everybody's, in seconds.
const SLOW_BY: i64 = -240;

/// Why the demo could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A file of the demo.
    #[error("{path}: {doing} failed")]
    File {
        /// Which.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The directory holds something else.
    #[error("{path} exists and is no demo of tieout's; nothing was written")]
    NotADemo {
        /// Which.
        path: PathBuf,
    },
    /// The sandbox.
    #[error("the demo's PSP could not be started")]
    Sandbox(#[source] SandboxError),
    /// The database.
    #[error("the demo's database")]
    Store(#[source] StoreError),
    /// The configuration.
    #[error("the demo's configuration")]
    Config(#[source] crate::config::problem::ConfigError),
    /// A run.
    #[error("the demo's run")]
    Run(#[source] Box<RunError>),
}

/// What the demo came to.
pub struct Shown {
    /// The last run.
    pub summary: Summary,
    /// The zone of business days.
    pub zone: Tz,
    /// Whether the demo was there before this call.
    pub again: bool,
    /// Rows by status, before and after the last run.
    pub before: Vec<(String, i64)>,
    /// The same, after.
    pub after: Vec<(String, i64)>,
    /// The files that came, by source and name.
    pub files: Vec<FileRow>,
    /// The payouts that they explain.
    pub payouts: Vec<Payout>,
    /// How many rows are paid by what a bank's statement says.
    pub by_bank: i64,
}

/// Makes the demo in `dir`, or goes on with the one that is there, and runs the main job.
///
/// # Errors
/// Where a file, the database or a run failed.
pub async fn show(
    dir: &Path,
    stop: &Stop,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<Shown, DemoError> {
    let (base, again) = base_of(dir)?;
    let cast = Cast::at(base);
    let psps = Psps::start(&cast).await?;
    write_config(dir, &psps)?;
    let database = dir.join("demo.db");
    if !again {
        let rows = rows_json(&cast);
        crate::store::demo::create(&database, &rows).await.map_err(DemoError::Store)?;
    }
    let path = dir.join("tieout.toml");
    let config = crate::config::load(Some(&path), &[]).map_err(DemoError::Config)?;
    let setup = config.setup();
    let db = Database::connect(&config.database).await.map_err(DemoError::Store)?;
    if !again {
        db.migrate().await.map_err(DemoError::Store)?;
        let past = live_through_the_past(&cast, &psps, &setup, &db, &database, stop);
        Box::pin(past).await?;
        // They come only now: the runs of the past did not know of them.
        for file in files(&cast) {
            write(dir.join(file.path), &file.text)?;
        }
        finish_making(dir, base)?;
    }
    psps.main.seed(cast.late.clone()).map_err(DemoError::Sandbox)?;
    let before = crate::store::demo::statuses(&database).await.map_err(DemoError::Store)?;
    let options = RunOptions::default();
    let ran = run(&setup, &options, &db, stop, tell).await;
    let summary = ran.map_err(|error| DemoError::Run(Box::new(error)))?;
    let after = crate::store::demo::statuses(&database).await.map_err(DemoError::Store)?;
    psps.shutdown().await;
    let by_bank = crate::store::demo::paid_by_bank(&database).await.map_err(DemoError::Store)?;
    let (files, payouts) = came(&db).await.map_err(DemoError::Store)?;
    let zone = setup.business_timezone;
    Ok(Shown { summary, zone, again, before, after, files, payouts, by_bank })
}

/// The files that came, and what they tell of payouts.
async fn came(db: &Database) -> Result<(Vec<FileRow>, Vec<Payout>), StoreError> {
    let mut files = db.files(&FileFilter { limit: 20, ..FileFilter::default() }).await?;
    files.sort_by(|a, b| (&a.source, &a.name).cmp(&(&b.source, &b.name)));
    let mut payouts = Vec::new();
    for file in &files {
        for payout in db.payouts_of_file(file.id, None).await? {
            // Its bookings by the bank are counted one by one.
            payouts.push(db.payout(&payout.key, None).await?.unwrap_or(payout));
        }
    }
    Ok((files, payouts))
}

/// The instant that the demo was made for. A directory that was begun and not finished is made
/// anew; a directory of somebody else's is left alone.
fn base_of(dir: &Path) -> Result<(i64, bool), DemoError> {
    let made = dir.join("made_at");
    if let Ok(text) = std::fs::read_to_string(&made) {
        let base = from_text(text.trim()).map(|at| at.timestamp());
        return base.map(|base| (base, true)).ok_or(DemoError::NotADemo { path: dir.to_owned() });
    }
    let begun = dir.join("begun");
    let is_empty = std::fs::read_dir(dir).is_ok_and(|mut found| found.next().is_none());
    if dir.exists() && !is_empty && !begun.exists() {
        return Err(DemoError::NotADemo { path: dir.to_owned() });
    }
    let failed = |doing| {
        let path = dir.to_owned();
        move |source| DemoError::File { path, doing, source }
    };
    if begun.exists() {
        std::fs::remove_dir_all(dir).map_err(failed("clearing a demo that was not finished"))?;
    }
    std::fs::create_dir_all(dir).map_err(failed("making the directory"))?;
    std::fs::write(&begun, "").map_err(failed("writing a mark"))?;
    Ok((crate::clock::now().timestamp(), false))
}

fn finish_making(dir: &Path, base: i64) -> Result<(), DemoError> {
    let at = chrono::DateTime::from_timestamp(base, 0).unwrap_or_default();
    let path = dir.join("made_at");
    std::fs::write(&path, to_text(at)).map_err(|source| DemoError::File {
        path,
        doing: "writing a mark",
        source,
    })
}

/// The demo's PSP, and a second one for the account whose clock is slow.
struct Psps {
    main: Handle,
    slow: Handle,
}

impl Psps {
    async fn start(cast: &Cast) -> Result<Self, DemoError> {
        let keys = KEYS.map(|(_, secret, account)| ApiKey {
            secret: secret.to_owned(),
            account: account.to_owned(),
        });
        let faults = cast.faults.clone();
        let settings = Settings { keys: keys.to_vec(), faults, ..Settings::default() };
        let main = Sandbox::start(settings).await.map_err(DemoError::Sandbox)?;
        main.seed(cast.objects.clone()).map_err(DemoError::Sandbox)?;
        let behaviour = Behaviour { date_skew_secs: SLOW_BY, ..Behaviour::default() };
        let settings = Settings { behaviour, ..Settings::default() };
        let slow = Sandbox::start(settings).await.map_err(DemoError::Sandbox)?;
        slow.seed(cast.slow.clone()).map_err(DemoError::Sandbox)?;
        Ok(Self { main, slow })
    }

    /// Sets both clocks back by so much.
    fn set_back(&self, by: TimeDelta) {
        for psp in [&self.main, &self.slow] {
            psp.behave(|behaviour| behaviour.clock_offset_secs = -by.num_seconds());
        }
    }

    async fn shutdown(self) {
        self.main.shutdown().await;
        self.slow.shutdown().await;
    }
}

/// The configuration, with the addresses that the PSPs have this time, and the keys.
fn write_config(dir: &Path, psps: &Psps) -> Result<(), DemoError> {
    let config = CONFIG.replace("{base_url}", &psps.main.base_url());
    let config = config.replace("{slow_base_url}", &psps.slow.base_url());
    let keys = KEYS.map(|(file, secret, _)| (file, format!("{secret}\n")));
    for folder in FOLDERS {
        let path = dir.join(folder);
        let made = std::fs::create_dir_all(&path);
        made.map_err(|source| DemoError::File { path, doing: "making it", source })?;
    }
    write(dir.join("tieout.toml"), &config)?;
    for (name, text) in keys {
        let path = dir.join(name);
        write(path.clone(), &text)?;
        // As the doctor asks of everybody's.
        let mode = std::fs::Permissions::from_mode(0o600);
        let set = std::fs::set_permissions(&path, mode);
        set.map_err(|source| DemoError::File { path, doing: "keeping it to its owner", source })?;
    }
    Ok(())
}

fn write(path: PathBuf, text: &str) -> Result<(), DemoError> {
    let written = std::fs::write(&path, text);
    written.map_err(|source| DemoError::File { path, doing: "writing it", source })
}

/// A time as the demo's table has it.
fn time(secs: i64) -> Option<String> {
    chrono::DateTime::from_timestamp(secs, 0).map(|at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

fn rows_json(cast: &Cast) -> String {
    let rows: Vec<serde_json::Value> = cast
        .rows
        .iter()
        .map(|row| {
            json!({
                "id": row.id,
                "subscription_id": row.subscription,
                "period": row.period,
                "provider": row.provider,
                "kind": row.kind,
                "external_id": row.external_id,
                "amount": row.amount,
                "currency": row.currency,
                "status": row.status,
                "reference": row.reference,
                "created": time(row.created),
                "attempted": time(row.attempted),
            })
        })
        .collect();
    serde_json::Value::from(rows).to_string()
}

/// What others did to rows from so many minutes ago to so many.
async fn meanwhile(cast: &Cast, database: &Path, (from, to): (i64, i64)) -> Result<(), DemoError> {
    let is_due = |change: &&Change| (to..from).contains(&change.minutes_ago);
    let changes: Vec<serde_json::Value> = cast
        .changes
        .iter()
        .filter(is_due)
        .map(|change| {
            let minutes = change.minutes_ago.saturating_mul(60);
            json!({
                "id": change.id,
                "provider": change.provider,
                "status": change.attempted.map(|_| "processing"),
                "attempted": change.attempted.and_then(time),
                "at": time(cast.base.saturating_sub(minutes)),
            })
        })
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    let changes = serde_json::Value::from(changes).to_string();
    crate::store::demo::change(database, &changes).await.map_err(DemoError::Store)
}

/// Earlier runs, each over the rows that it saw, with all clocks set back, and what others did to
/// rows between them.
async fn live_through_the_past(
    cast: &Cast,
    psps: &Psps,
    setup: &Setup,
    db: &Database,
    database: &Path,
    stop: &Stop,
) -> Result<(), DemoError> {
    let mut since = i64::MAX;
    for (seen, minutes_ago) in PAST {
        meanwhile(cast, database, (since, minutes_ago)).await?;
        since = minutes_ago;
        let ids = cast.seen_by(seen, minutes_ago);
        if ids.is_empty() {
            continue;
        }
        let back = TimeDelta::minutes(minutes_ago);
        psps.set_back(back);
        let options = RunOptions {
            ids: Some(ids),
            clock_offset: -back,
            report: false,
            ..RunOptions::default()
        };
        let ran = run(setup, &options, db, stop, &mut |_event| {}).await;
        ran.map_err(|error| DemoError::Run(Box::new(error)))?;
    }
    psps.set_back(TimeDelta::zero());
    meanwhile(cast, database, (since, 0)).await
}

impl DemoError {
    /// The process's end.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Sandbox(_) => Exit::Internal,
            Self::NotADemo { .. } => Exit::Usage,
            Self::File { source, .. } => Exit::of_file(source, Exit::Config),
            Self::Config(_) => Exit::Config,
            Self::Store(error) => crate::run::error::store_exit(error),
            Self::Run(error) => error.exit(),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { .. } | Self::NotADemo { .. } => {
                Some("choose another place: `tieout demo --dir DIR`".into())
            }
            Self::Store(error) => error.hint(),
            Self::Run(error) => error.hint(),
            Self::Sandbox(_) | Self::Config(_) => None,
        }
    }
}
