//! What was approved or kicked is carried out right away, one errand after the other, by the
//! server's own login: it may write what people may not, and asks the PSP again first.
//!
//! Nothing hangs on it. An approval that could not be carried out stands in the database, and the
//! next `tieout run` does it. A kick that did not come about leaves its cases as they were, and
//! their histories say who asked for it.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::config::Config;
use crate::exit::Exit;
use crate::run::events::Event;
use crate::run::kick::Kick;
use crate::run::people::carry_out_now;
use crate::run::setup::RunOptions;
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::web::error::chain;

/// Something to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand {
    /// What people approved of these cases.
    Approved(Vec<i64>),
    /// Cases that are decided again.
    Kick(Kick),
}

/// Approvals that this page tried to carry out in vain, by their case: what stood against it.
pub type Waits = RefCell<HashMap<i64, String>>;

/// As many are remembered: beyond them the log alone says why.
const WAITS_MAX: usize = 10_000;

/// Carries out what comes, until nobody sends any more or it is told to stop.
pub async fn carry(
    mut errands: UnboundedReceiver<Errand>,
    config: &Config,
    db: &Database,
    waits: &Waits,
    stop: &Stop,
) {
    let token = stop.token();
    loop {
        let mut next = tokio::select! {
            biased;
            () = token.cancelled() => return,
            some = errands.recv() => some,
        };
        if next.is_none() {
            return;
        }
        let (mut approved, mut kicks) = (Vec::new(), Vec::new());
        while let Some(errand) = next {
            match errand {
                Errand::Approved(numbers) => approved.extend(numbers),
                Errand::Kick(kick) => kicks.push(kick),
            }
            next = errands.try_recv().ok();
        }
        if !approved.is_empty() {
            let why = Box::pin(carry_some(&approved, config, db, stop)).await;
            if let Some(why) = why {
                note(&mut waits.borrow_mut(), approved, &why);
            }
        }
        for kick in &kicks {
            if token.is_cancelled() {
                tracing::warn!(by = kick.by, "The page stopped; a kick was not begun");
                continue;
            }
            Box::pin(decide_again(kick, config, db, stop)).await;
        }
    }
}

fn note(waits: &mut HashMap<i64, String>, cases: Vec<i64>, why: &str) {
    let room = WAITS_MAX.saturating_sub(waits.len());
    waits.extend(cases.into_iter().take(room).map(|case| (case, why.to_owned())));
}

/// Carries approvals out; what kept it from some of them.
async fn carry_some(
    numbers: &[i64],
    config: &Config,
    db: &Database,
    stop: &Stop,
) -> Option<String> {
    let setup = config.setup();
    let options = RunOptions { report: false, ..RunOptions::default() };
    let mut whys = Vec::new();
    let mut tell = |event: Event| {
        if let Event::NotExamined { text, .. } = event {
            tracing::warn!(why = text, "What was approved waits");
            whys.push(text);
        }
    };
    let ended = Box::pin(carry_out_now(&setup, &options, db, stop, numbers, &mut tell)).await;
    match ended {
        Ok(summary) => {
            let (run, class) = (summary.run_id, summary.exit.class());
            tracing::info!(run.id = run, class, "What was approved was carried out");
            (summary.exit != Exit::Ok && !whys.is_empty()).then(|| whys.join("; "))
        }
        Err(error) => {
            let why = chain(&error);
            tracing::warn!(why, "What was approved stands; the next run carries it out");
            Some(why)
        }
    }
}

/// The run that `tieout cases kick` makes.
async fn decide_again(kick: &Kick, config: &Config, db: &Database, stop: &Stop) {
    let setup = config.setup();
    let options = kick.options(&setup, config.limits.max_duration, false);
    let mut tell = |event: Event| match event {
        Event::NotExamined { text: why, .. } | Event::NotLookedAt { why, .. } => {
            tracing::warn!(why, "A kicked case stays as it was");
        }
        _other => {}
    };
    let ended = Box::pin(crate::run::run(&setup, &options, db, stop, &mut tell)).await;
    match ended {
        Ok(summary) => {
            let (run, class) = (summary.run_id, summary.exit.class());
            tracing::info!(run.id = run, class, "What was kicked was looked at again");
        }
        Err(error) => {
            let why = chain(&error);
            tracing::warn!(why, "A kick could not go on; what it decided before stands");
        }
    }
}
