//! What was approved is carried out right away, one approval after the other, by the server's own
//! login: it may write what people may not, and asks the PSP again first.
//!
//! Nothing hangs on it. What could not be carried out stands in the database as approved, and the
//! next `tieout run` does it.

use tokio::sync::mpsc::UnboundedReceiver;

use crate::config::Config;
use crate::run::events::Event;
use crate::run::people::carry_out_now;
use crate::run::setup::RunOptions;
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::web::error::chain;

/// Carries out what comes, until nobody sends any more or it is told to stop.
pub async fn carry(
    mut cases: UnboundedReceiver<Vec<i64>>,
    config: &Config,
    db: &Database,
    stop: &Stop,
) {
    let token = stop.token();
    loop {
        let some = tokio::select! {
            biased;
            () = token.cancelled() => return,
            some = cases.recv() => some,
        };
        let Some(mut numbers) = some else { return };
        while let Ok(more) = cases.try_recv() {
            numbers.extend(more);
        }
        Box::pin(carry_some(&numbers, config, db, stop)).await;
    }
}

async fn carry_some(numbers: &[i64], config: &Config, db: &Database, stop: &Stop) {
    let setup = config.setup();
    let options = RunOptions { report: false, ..RunOptions::default() };
    let mut tell = |event: Event| {
        if let Event::NotExamined { text, .. } = event {
            tracing::warn!(why = text, "What was approved waits");
        }
    };
    let ended = Box::pin(carry_out_now(&setup, &options, db, stop, numbers, &mut tell)).await;
    match ended {
        Ok(summary) => {
            let (run, class) = (summary.run_id, summary.exit.class());
            tracing::info!(run.id = run, class, "What was approved was carried out");
        }
        Err(error) => {
            let why = chain(&error);
            tracing::warn!(why, "What was approved stands; the next run carries it out");
        }
    }
}
