//! `tieout schedule print`: ready files for what starts tieout. It prints, and installs nothing.
//!
//! The texts are the files of `cron/`, so that what is printed is what is tested there.

use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::out;
use crate::config;
use crate::exit::Exit;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout schedule print cron > /etc/cron.d/tieout
  tieout schedule print systemd     a service and a timer, and the daily ones
  tieout schedule print k8s | kubectl apply --dry-run=server -f -

Each says where the variables go that tieout.toml names; where a tieout.toml
is found, cron's names them. The same files lie in cron/ of the source.";

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the files of one kind of schedule
    Print(Print),
}

/// Options of `schedule print`.
#[derive(Debug, clap::Args)]
pub struct Print {
    /// What starts tieout
    #[arg(value_enum)]
    kind: Kind,
}

/// What can start tieout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A file for /etc/cron.d.
    Cron,
    /// Units of systemd.
    Systemd,
    /// `CronJob`s of Kubernetes.
    #[value(alias = "kubernetes")]
    K8s,
    /// Jobs of the Heroku Scheduler.
    Heroku,
}

/// A file: where it lies under `cron/`, where it belongs, its text.
type File = (&'static str, &'static str, &'static str);

macro_rules! file {
    ($name:literal, $place:literal) => {
        (concat!("cron/", $name), $place, include_str!(concat!("../../cron/", $name)))
    };
}

impl Kind {
    fn files(self) -> &'static [File] {
        match self {
            Self::Cron => &[file!("tieout.crontab", "/etc/cron.d/tieout")],
            Self::Systemd => &[
                file!("systemd/tieout.service", "/etc/systemd/system/tieout.service"),
                file!("systemd/tieout.timer", "/etc/systemd/system/tieout.timer"),
                file!("systemd/tieout-daily.service", "/etc/systemd/system/tieout-daily.service"),
                file!("systemd/tieout-daily.timer", "/etc/systemd/system/tieout-daily.timer"),
            ],
            Self::K8s => &[file!("kubernetes.yaml", "kubectl apply -f")],
            Self::Heroku => &[file!("heroku.txt", "the dashboard of the Heroku Scheduler")],
        }
    }
}

/// The crontab, with the variables that this configuration needs instead of the examples.
fn with_names(text: &str, names: &[String]) -> String {
    if names.is_empty() {
        return text.to_owned();
    }
    let names = format!("# This tieout.toml names: {}.\nSHELL=", names.join(", "));
    text.replacen("SHELL=", &names, 1)
}

/// Runs the command.
pub fn run(command: &Command, common: &Common) -> Exit {
    let Command::Print(options) = command;
    let files = options.kind.files();
    for (name, place, text) in files {
        let text = match options.kind {
            Kind::Cron => with_names(text, &config::variables_named(common.config())),
            Kind::Systemd | Kind::K8s | Kind::Heroku => (*text).to_owned(),
        };
        if common.json {
            let body = json!({ "file": name, "place": place, "text": text });
            out::stdout(&line("schedule", body));
            continue;
        }
        // One file is printed as it is; of several, each says where it belongs.
        if files.len() > 1 {
            out::stdout(&format!("# {place}"));
        }
        out::stdout(text.trim_end());
        if files.len() > 1 {
            out::stdout("");
        }
    }
    Exit::Ok
}
