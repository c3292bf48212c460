//! Where events are delivered: does each sink answer and let us in, and what waits for it? Nothing
//! is sent.

use futures_util::future::join_all;

use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::time::to_short_text;
use crate::run::deliver::{is_unknown, later_events, waits};
use crate::run::doctor::{Finding, Say, fail, ok, warn};
use crate::run::setup::Setup;
use crate::sinks::settings::Sink;
use crate::sinks::{Down, probe};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::outbox::{OutboxDriver, SinkState};

/// Asks every sink, side by side; they are told in the configuration's order.
pub(super) async fn look(setup: &Setup, db: Option<&Database>, say: Say<'_>) {
    let probes = setup.sinks.iter().map(|sink| probe(sink, &setup.env));
    let probed = join_all(probes).await;
    // Tables that are not there, or not of this version, were told of already.
    let states = match db {
        Some(db) => states(db).await.unwrap_or_default(),
        None => Vec::new(),
    };
    for (sink, probed) in setup.sinks.iter().zip(probed) {
        say(told(sink, probed));
        if let Some(state) = states.iter().find(|state| state.sink == sink.name) {
            warnings(sink, state).into_iter().for_each(&mut *say);
        }
    }
    for state in states.iter().filter(|state| is_unknown(setup, state)) {
        let SinkState { sink, waiting, dead, .. } = state;
        let text = format!(
            "it is configured no more; {} for it, and {}",
            counted(waiting, "event waits", "events wait"),
            counted(dead, "dead letter", "dead letters")
        );
        let next = format!("tieout deliver purge --sink {sink} --waiting --reason …");
        say(warn(sink, "sink_unknown", text, next));
    }
}

async fn states(db: &Database) -> Result<Vec<SinkState>, StoreError> {
    let now = db.now().await?;
    db.sink_states(now).await
}

fn label(sink: &Sink) -> String {
    format!("{} {}", sink.name, sink.kind.as_str())
}

fn told(sink: &Sink, probed: Result<String, Down>) -> Finding {
    let what = label(sink);
    match probed {
        Ok(text) => ok(&what, "sink", text),
        Err(down) => {
            let next = match down.exit {
                Exit::Auth => format!("correct the login that [[sink]] {} names", sink.name),
                Exit::Trust => format!("set ca_file of [[sink]] {}", sink.name),
                Exit::Config => format!("correct [[sink]] {} in tieout.toml", sink.name),
                _other => format!("let this machine reach the sink {}", sink.name),
            };
            fail(&what, down.exit, "sink", down.text, next)
        }
    }
}

/// What works, and should be known or mended.
fn warnings(sink: &Sink, state: &SinkState) -> Vec<Finding> {
    let what = label(sink);
    let mut found = Vec::new();
    if let Some(since) = state.failing_since {
        let error = state.last_error.as_deref().unwrap_or_default();
        let text = format!(
            "it takes nothing since {}: {error}; {}",
            to_short_text(since),
            waits(state.waiting, state.later)
        );
        let next = format!("tieout deliver --now --sink {}", sink.name);
        found.push(warn(&what, "sink_failing", text, next));
    }
    if state.dead > 0 {
        let letters = counted(state.dead, "dead letter", "dead letters");
        let text = format!("{letters}; {}", later_events(state.dead));
        let next = format!("tieout deliver list --sink {}", sink.name);
        found.push(warn(&what, "dead_letters", text, next));
    }
    found
}
