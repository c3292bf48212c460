//! `tieout pause` and `tieout resume`: the switch by which a person stops an account.
//!
//! The switch is read inside the transaction that writes rows: what was decided before the pause
//! and is not written yet, is not written any more.

use std::time::Duration;

use serde_json::json;

use crate::cli::args::{Common, sentence};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{out, page, person};
use crate::config::Config;
use crate::config::names;
use crate::exit::Exit;
use crate::model::near::nearest;
use crate::model::time::{to_short_text, to_text};
use crate::store::driver::{Driver, Pause};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout pause stripe_live --why migration
  tieout resume stripe_live

Rows of a paused account are claimed and released undecided; runs exit 3.
What a run had decided by then and not written yet, it releases too.";

/// For `--help`.
pub const RESUME_EXAMPLES: &str = "\
Examples:
  tieout resume stripe_live";

/// A person is told of what takes longer.
const SILENT: Duration = Duration::from_secs(3);

/// Options of `pause`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The account's name in the configuration
    account: String,
    /// Why, for whoever finds it paused
    #[arg(long, value_name = "TEXT", env = names::PAUSE_WHY)]
    why: String,
}

/// Options of `resume`.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// The account's name in the configuration
    account: String,
}

/// Runs `pause`.
pub async fn run<D: Driver>(
    args: &Args,
    common: &Common,
    config: &Config,
    db: &D,
) -> Result<Exit, Failure> {
    known("pause", &args.account, config)?;
    let why = sentence("--why", &args.why, "; nothing was done")?;
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let by = person::name();
    let mut pausing = std::pin::pin!(db.pause_account(&args.account, &by, why, now));
    let paused = tokio::select! {
        paused = &mut pausing => paused,
        () = tokio::time::sleep(SILENT) => {
            page::warn("tieout: note: waiting for a batch that was begun before to end");
            pausing.await
        }
    };
    let paused = paused.map_err(|e| Failure::store(&e))?;
    if common.json {
        let mut body = body(&paused.pause);
        body["paused"] = json!(true);
        body["changed"] = json!(paused.is_new);
        body["settled"] = json!(paused.is_settled);
        out::stdout(&line("account", body));
    } else if !common.quiet {
        let account = &args.account;
        let words = words(&paused.pause);
        page::say(&match paused.is_new {
            true => format!("{account} is paused {words}"),
            false => format!("{account} was paused before, {words}; nothing was changed"),
        });
        page::say(&common.copyable(match paused.is_settled {
            true => "none of its rows is written until `tieout resume` names it",
            false => "no batch of its rows is begun until `tieout resume` names it",
        }));
    }
    if paused.is_settled {
        return Ok(Exit::Ok);
    }
    page::warn(
        "tieout: partial: a batch that was begun before did not end in time: it may still be \
         written; `tieout runs list` shows the run",
    );
    Ok(Exit::Partial)
}

/// Runs `resume`.
pub async fn resume<D: Driver>(
    args: &ResumeArgs,
    common: &Common,
    config: &Config,
    db: &D,
) -> Result<Exit, Failure> {
    let account = &args.account;
    // An account that left the configuration while it was paused can still be resumed.
    let pauses = db.pauses().await.map_err(|e| Failure::store(&e))?;
    if !pauses.iter().any(|pause| pause.account == *account) {
        known("resume", account, config)?;
    }
    let pause = db.resume_account(account).await.map_err(|e| Failure::store(&e))?;
    if common.json {
        let mut body = match &pause {
            Some(pause) => body(pause),
            None => json!({ "account": account }),
        };
        body["paused"] = json!(false);
        body["changed"] = json!(pause.is_some());
        out::stdout(&line("account", body));
    } else if !common.quiet {
        page::say(&match &pause {
            Some(pause) => format!("{account} goes on; it was paused {}", words(pause)),
            None => format!("{account} was not paused; nothing was changed"),
        });
    }
    Ok(Exit::Ok)
}

/// A pause in words, for people.
pub fn words(pause: &Pause) -> String {
    format!("since {} by {}: {}", to_short_text(pause.at), pause.by, pause.why)
}

fn body(pause: &Pause) -> serde_json::Value {
    json!({
        "account": pause.account,
        "paused_at": to_text(pause.at),
        "paused_by": pause.by,
        "why": pause.why,
    })
}

fn known(command: &str, account: &str, config: &Config) -> Result<(), Failure> {
    if config.accounts.contains_key(account) {
        return Ok(());
    }
    let names: Vec<&str> = config.accounts.keys().map(String::as_str).collect();
    let help = match nearest(account, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("configured: {}.", names.join(", ")),
    };
    let text = format!("{command} {account}: there is no such account; {help} Nothing was done");
    Err(Failure::usage(text))
}
