//! Who hears what a run tells: a person at a terminal, a program, or nobody but cron.
//!
//! Nothing due to say is nothing said: without a terminal a good run writes no byte. Whatever was
//! not examined is a line on stderr for everyone, when it is known.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use chrono_tz::Tz;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::args::{Common, When};
use crate::cli::files::release::released_words;
use crate::cli::meter::Meter;
use crate::cli::{events, ingest, out, page, screen};
use crate::exit::Exit;
use crate::model::count::some_of;
use crate::model::money::grouped_text;
use crate::model::time::span_text;
use crate::run::events::{Event, Summary};
use crate::run::setup::{RunOptions, Setup};

/// How often the progress line is drawn anew while nothing happens.
const TICK: Duration = Duration::from_millis(200);

/// Who listens on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listener {
    Person,
    Program,
    Nobody,
}

/// Whether a person reads what is printed: a run from cron prints nothing.
pub fn is_for_a_person(common: &Common, dry_run: bool) -> bool {
    let is_asked = std::io::stdout().is_terminal() || common.verbose > 0 || dry_run;
    is_asked && !common.json && !common.quiet
}

/// Turns events into text.
pub struct Teller {
    common: Common,
    listener: Listener,
    setup: Setup,
    zone: Tz,
    narrowed: String,
    plan: Option<screen::Plan>,
    bar: ProgressBar,
    meter: Meter,
    lines: out::Lines,
    /// Rows that were not looked at, by table and why: told at the end, a line for each.
    passed_over: BTreeMap<(String, String), Vec<String>>,
}

impl Teller {
    /// For one run.
    pub fn new(common: &Common, progress: When, options: &RunOptions, setup: &Setup) -> Self {
        let dry_run = options.dry_run;
        let terminal = std::io::stdout().is_terminal();
        let listener = if common.json {
            Listener::Program
        } else if common.quiet {
            Listener::Nobody
        } else if is_for_a_person(common, dry_run) {
            Listener::Person
        } else {
            Listener::Nobody
        };
        // Logs and a moving line on one terminal would write over each other.
        let moves = progress == When::Auto
            && listener == Listener::Person
            && terminal
            && common.verbose == 0
            && std::io::stderr().is_terminal();
        Self {
            common: common.clone(),
            listener,
            zone: setup.business_timezone,
            narrowed: narrowed(options),
            setup: setup.clone(),
            plan: (dry_run && listener == Listener::Person)
                .then(|| screen::Plan::of(setup.tables.len())),
            bar: if moves { bar() } else { ProgressBar::hidden() },
            meter: if moves { Meter::shown() } else { Meter::hidden() },
            lines: out::Lines::new(),
            passed_over: BTreeMap::new(),
        }
    }

    /// One thing that happened.
    pub fn tell(&mut self, event: &Event) {
        match self.listener {
            Listener::Program => {
                for line in events::lines(event, &self.setup) {
                    self.lines.put(&line);
                }
                if !matches!(event, Event::Decided(_) | Event::LineMatched { .. }) {
                    self.lines.flush();
                }
            }
            Listener::Person => self.show(event),
            Listener::Nobody => {}
        }
        self.warn(event);
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::Started { run_id, window, dry_run, .. } => {
                let (zone, narrowed) = (self.zone, self.narrowed.as_str());
                for line in screen::narrowed_head(run_id, window.as_ref(), zone, narrowed, *dry_run)
                {
                    self.lines.put(&line);
                }
                self.lines.flush();
            }
            Event::Fetching { source, name, bytes, size } => {
                self.meter.show(source, name, *bytes, *size);
            }
            Event::Released(note) => {
                self.meter.clear();
                page::broken(&released_words(note)).iter().for_each(|row| self.lines.put(row));
                self.lines.flush();
            }
            Event::Fetched(note) => {
                self.meter.clear();
                self.lines.put(&ingest::fetched_words(note));
                self.lines.flush();
            }
            Event::Claimed { rows, .. } => {
                self.meter.clear();
                self.bar.inc_length(u64::try_from(*rows).unwrap_or(0));
            }
            Event::Asking { account, rows } => {
                self.bar.enable_steady_tick(TICK);
                let rows = i128::try_from(*rows).unwrap_or(i128::MAX);
                self.bar.set_message(format!("asking {account} about {}", screen::rows(rows)));
            }
            Event::Decided(row) => {
                self.bar.inc(1);
                if let Some(plan) = &mut self.plan {
                    plan.put(row);
                }
            }
            Event::LineMatched { place, table, id } => {
                if let Some(plan) = &mut self.plan {
                    plan.put_line(*place, table, id);
                }
            }
            Event::Ended(summary) => self.end(summary),
            Event::Abandoned(_)
            | Event::UnmappedStatus { .. }
            | Event::BroughtIn(_)
            | Event::Asked(_)
            | Event::NotApplied(_)
            | Event::NotLookedAt { .. }
            | Event::NotExamined { .. } => {}
        }
    }

    fn end(&mut self, summary: &Summary) {
        self.meter.clear();
        self.bar.finish_and_clear();
        let lines = match &self.plan {
            Some(plan) => plan.lines(summary),
            None => screen::summary(summary),
        };
        let lines = lines.iter().map(|line| self.common.copyable(line));
        for line in lines.flat_map(|line| page::broken(&line)) {
            self.lines.put(&line);
        }
        self.lines.flush();
    }

    /// What everybody must hear.
    fn warn(&mut self, event: &Event) {
        let line = match event {
            Event::NotExamined { exit, text } => format!("tieout: {}: {text}", exit.class()),
            Event::NotLookedAt { table, id, why } => {
                let key = (table.clone(), why.clone());
                self.passed_over.entry(key).or_default().push(id.clone());
                return;
            }
            Event::Abandoned(run) => {
                format!("tieout: {}", screen::abandoned(run))
            }
            Event::Ended(summary) => {
                self.tell_passed_over();
                self.hint(summary);
                if summary.exit == Exit::Ok || self.listener == Listener::Person {
                    return;
                }
                screen::last_line(summary)
            }
            _other => return,
        };
        self.meter.clear();
        self.bar.suspend(|| {
            if let Event::Ended(summary) = event {
                let held = screen::attention(summary);
                held.iter().for_each(|line| page::warn(&self.common.copyable(line)));
                screen::untied(summary).iter().for_each(|line| page::warn(line));
            }
            page::warn(&line);
        });
    }

    /// Rows that were not looked at, a line for each cause.
    fn tell_passed_over(&mut self) {
        for ((table, why), ids) in std::mem::take(&mut self.passed_over) {
            let line = match ids.as_slice() {
                [only] => format!("tieout: row {only} of {table} was not looked at: {why}"),
                several => {
                    let rows = several.len();
                    let named = some_of(several.iter().take(PASSED_OVER_NAMED), rows);
                    format!("tieout: {rows} rows of {table} were not looked at ({named}): {why}")
                }
            };
            self.meter.clear();
            self.bar.suspend(|| page::warn(&line));
        }
    }

    /// What to do about a report that could not be written.
    fn hint(&self, summary: &Summary) {
        if let Some(hint) = &summary.hint {
            page::warn(&self.common.copyable(&format!("hint: {hint}")));
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        // A run that could not go on has told of what it decided, too.
        self.lines.flush();
        self.tell_passed_over();
        self.bar.finish_and_clear();
    }
}

/// Rows that are named of those that were not looked at.
const PASSED_OVER_NAMED: usize = 5;

/// What the options narrow the rows to, besides a window. That the limit left rows is known at the
/// end alone: what is said at the beginning must be true then, too.
fn narrowed(options: &RunOptions) -> String {
    let ids = options.ids.as_ref().map(|ids| match ids.as_slice() {
        [only] => format!("row {only}"),
        several => format!("{} rows by id", several.len()),
    });
    let accounts = options.accounts.as_ref().map(|names| format!("of {}", names.join(", ")));
    let age = options.min_age.map(|age| format!("older than {}", span_text(age)));
    let narrowed = ids.into_iter().chain(accounts).chain(age).collect::<Vec<_>>().join(" ");
    match narrowed.is_empty() && options.window.is_none() {
        true => format!("due rows, at most {}", grouped_text(i128::from(options.limit), 0)),
        false => narrowed,
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("▕{bar:15}▏ {pos}/{len} rows  {elapsed}  {msg}");
    match style {
        Ok(style) => bar.with_style(style.progress_chars("██ ")),
        Err(_bad_template) => bar,
    }
}
