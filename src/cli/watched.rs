//! A command that opens a run, with monitoring around it. What monitoring says or fails to say
//! never changes how the command ends.

use crate::cli::failure::Failure;
use crate::cli::{database, runtime};
use crate::config::{Config, variable};
use crate::exit::Exit;
use crate::monitor::watch::{Around, Watch};
use crate::run::events::{Event, Summary};
use crate::run::shutdown::Stop;
use crate::store::database::Database;

/// Who is told of a run's events besides the command itself.
pub type Note<'a> = &'a mut (dyn FnMut(&Event) + Send);

/// Opens the database, does the work, and then tells whoever is to be told. `run_id` is `None`
/// where nobody is: a dry run, or one of named rows, is nobody's schedule. For a dry run the
/// database is opened to read alone.
pub fn watched(
    config: &Config,
    run_id: Option<&str>,
    dry_run: bool,
    work: impl AsyncFnOnce(&Database, &Stop, Note<'_>) -> Result<Summary, Failure>,
) -> Result<Exit, Failure> {
    runtime::block_on(Box::pin(async {
        let stop = Stop::new();
        let run_id = run_id.filter(|_| config.monitoring.is_on());
        let mut watch =
            run_id.map(|id| Watch::begin(&config.monitoring, around(config, &stop), id));
        let db = match dry_run {
            true => database::rehearse(config).await,
            false => database::open(config).await,
        };
        let (ended, _listening) = match &db {
            Err(failure) => (Err(failure.clone()), None),
            Ok(db) => match runtime::listen(&stop, config.limits.grace) {
                Err(failure) => (Err(failure), None),
                Ok(listening) => {
                    let mut note = |event: &Event| {
                        if let Some(watch) = &mut watch {
                            watch.note(event);
                        }
                    };
                    (work(db, &stop, &mut note).await, Some(listening))
                }
            },
        };
        if let Some(watch) = watch {
            let exit = ended.as_ref().map_or_else(|failure| failure.exit, |summary| summary.exit);
            let _noted = watch.end(exit, ended.as_ref().ok(), db.as_ref().ok()).await;
        }
        if let Ok(db) = &db {
            db.close().await;
        }
        ended.map(|summary| summary.exit)
    }))?
}

/// What surrounds what is watched.
pub(super) fn around(config: &Config, stop: &Stop) -> Around {
    let folder = config.path.parent().unwrap_or(std::path::Path::new("")).to_owned();
    Around {
        env: std::sync::Arc::new(variable),
        zone: config.business_timezone.value,
        folder,
        accounts: config.accounts.keys().cloned().collect(),
        sources: config.sources.iter().map(|source| source.name.clone()).collect(),
        stop: stop.token(),
    }
}
