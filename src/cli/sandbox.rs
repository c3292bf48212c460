//! `tieout sandbox`: serves a PSP that misbehaves on purpose, to rehearse a bad day.

use std::net::{IpAddr, Ipv4Addr};

use chrono::TimeDelta;
use clap::Args as ClapArgs;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{out, page, runtime};
use crate::config::names;
use crate::exit::Exit;
use crate::run::shutdown::Stop;
use crate::sandbox::scenarios::scenarios;
use crate::sandbox::settings::{SandboxError, Settings};
use crate::sandbox::{Handle, Sandbox};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout sandbox                          a calm one
  tieout sandbox --scenario outage        every request gets 503
  tieout sandbox --list                   the bad days there are

Point an account at it: base_url = \"http://127.0.0.1:12111\", livemode = false,
and any key that begins with sk_test_. Change it while it runs:
  curl -X POST http://127.0.0.1:12111/_sandbox/scenarios/calm
  curl http://127.0.0.1:12111/_sandbox
  curl --data '[{\"created\": 1763546405, \"amount\": 1999, \"currency\": \"eur\",
    \"metadata\": {\"order_id\": \"1001\"}}]' http://127.0.0.1:12111/_sandbox/objects
docs/sandbox.md tells what payments and faults can say.";

/// From a signal to the end.
const GRACE: TimeDelta = TimeDelta::seconds(2);

/// Options of `sandbox`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The bad day to begin with
    #[arg(
        long, value_name = "NAME", env = names::SANDBOX_SCENARIO, default_value = "calm",
        hide_default_value = true
    )]
    scenario: String,
    /// List the bad days there are, and end
    #[arg(long, env = names::SANDBOX_LIST, value_parser = yes_or_no)]
    list: bool,
    /// The address to listen on; no other machine reaches the default
    #[arg(
        long, value_name = "ADDRESS", env = names::SANDBOX_HOST,
        default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST)
    )]
    host: IpAddr,
    /// The port; 0 takes a free one
    #[arg(
        long, value_name = "PORT", env = names::SANDBOX_PORT, default_value_t = 12_111
    )]
    port: u16,
    /// The seed of ids, jitter and chance: the same seed, the same day
    #[arg(long, value_name = "NUMBER", env = names::SANDBOX_SEED, default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub fn run(args: &Args, common: &Common) -> Result<Exit, Failure> {
    if args.list {
        list(common);
        return Ok(Exit::Ok);
    }
    runtime::block_on(serve(args, common))?
}

fn list(common: &Common) {
    for scenario in scenarios() {
        if common.json {
            out::stdout(&line("scenario", scenario));
        } else {
            page::say(&format!("{:<18}{}", scenario.name, scenario.about));
        }
    }
}

async fn serve(args: &Args, common: &Common) -> Result<Exit, Failure> {
    let stop = Stop::new();
    let _listening = runtime::listen(&stop, GRACE)?;
    let settings =
        Settings { host: args.host, port: args.port, seed: args.seed, ..Settings::default() };
    let handle = Sandbox::start(settings).await.map_err(|error| failure(&error))?;
    handle.scenario(&args.scenario).map_err(|error| failure(&error))?;
    announce(&handle, args, common);
    stop.token().cancelled().await;
    handle.shutdown().await;
    Ok(stop.exit().unwrap_or(Exit::Ok))
}

fn announce(handle: &Handle, args: &Args, common: &Common) {
    let url = handle.base_url();
    if common.json {
        let body = json!({ "base_url": url, "scenario": args.scenario, "seed": args.seed });
        out::stdout(&line("sandbox", body));
    } else if !common.quiet {
        page::say(&format!("sandbox  {url} · scenario {} · seed {}", args.scenario, args.seed));
        page::say(&format!("account  base_url = \"{url}\", livemode = false, any sk_test_ key"));
        out::stdout(&format!("change   curl -X POST {url}/_sandbox/scenarios/outage"));
        out::stdout("Ctrl-C ends it.");
    }
}

fn failure(error: &SandboxError) -> Failure {
    let exit = match error {
        SandboxError::UnknownScenario { .. } => Exit::Usage,
        SandboxError::Listen { .. } => Exit::Config,
        SandboxError::Identity { .. }
        | SandboxError::Seed { .. }
        | SandboxError::Full { .. }
        | SandboxError::NoSuchObject { .. } => Exit::Internal,
    };
    Failure::of(error, exit, None)
}
