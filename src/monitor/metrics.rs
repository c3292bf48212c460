//! Metrics in Prometheus' text form: pure, from the facts of a run's end.
//!
//! A family that a run can say nothing about is left out, and what stood there before stays: so
//! the last success outlives a failed run, in the file as at a Pushgateway.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::model::reason::Outcome;
use crate::monitor::facts::{Facts, Known, bucket_word, is_success};

/// How many letters of a file are read back: far above what is ever written.
const OLD_MAX: usize = 1 << 20;

/// Reasons whose count is told even where it is zero, so that their alerts end.
const ALWAYS: [&str; 6] = [
    "duplicate_capture",
    "duplicate_live",
    "late_contradiction",
    "absence_brake",
    "account_unavailable",
    "file_missing",
];

/// A family: its name, its kind, and what it means.
pub struct Meaning {
    /// `tieout_…`.
    pub name: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// One sentence.
    pub help: &'static str,
}

const fn gauge(name: &'static str, help: &'static str) -> Meaning {
    Meaning { name, kind: "gauge", help }
}

/// Every family that tieout writes.
pub const FAMILIES: [Meaning; 18] = [
    gauge(LAST_SUCCESS, "When a run last examined everything and tied out."),
    gauge(LAST_RUN, "When a run last ended."),
    gauge(DURATION, "How long the last run took."),
    gauge(EXIT_CODE, "The last run's exit code."),
    gauge(EXAMINED, "Rows that the last run decided."),
    gauge(STUCK, "Rows that wait for an answer."),
    gauge(OLDEST, "Age of the oldest row that waits for an answer."),
    gauge(CASES, "Open cases by reason and age in business days."),
    gauge(PAID_TWICE, "Open cases of rows that were paid beside a paid row of one natural key."),
    gauge(RESIDUAL, "What does not tie out, in minor units; zero when all is well."),
    Meaning {
        name: REQUESTS,
        kind: "counter",
        help: "Requests to a PSP by how they were answered.",
    },
    gauge(STREAK, "Runs in a row in which the account gave no answer."),
    gauge(OUTBOX, "Events that wait for a sink."),
    gauge(OUTBOX_AGE, "Age of the oldest event that waits for a sink."),
    gauge(DEAD_LETTERS, "Events that could not be delivered and wait for a person."),
    gauge(FILE_AGE, "Since the newest settlement file of the source came in."),
    gauge(UNMATCHED, "Money of final statements that no row has yet, in minor units."),
    gauge(BUILD, "The version that ran last."),
];

const LAST_SUCCESS: &str = "tieout_last_success_timestamp_seconds";
const LAST_RUN: &str = "tieout_last_run_timestamp_seconds";
const DURATION: &str = "tieout_run_duration_seconds";
const EXIT_CODE: &str = "tieout_run_exit_code";
const EXAMINED: &str = "tieout_rows_examined";
const STUCK: &str = "tieout_stuck_rows";
const OLDEST: &str = "tieout_oldest_stuck_seconds";
const CASES: &str = "tieout_cases_open";
const PAID_TWICE: &str = "tieout_paid_twice";
const RESIDUAL: &str = "tieout_residual_minor";
const REQUESTS: &str = "tieout_psp_requests_total";
const STREAK: &str = "tieout_psp_unreachable_streak";
const OUTBOX: &str = "tieout_outbox_waiting";
const OUTBOX_AGE: &str = "tieout_outbox_oldest_seconds";
const DEAD_LETTERS: &str = "tieout_outbox_dead";
const FILE_AGE: &str = "tieout_file_age_seconds";
const UNMATCHED: &str = "tieout_unmatched_minor";
const BUILD: &str = "tieout_build_info";

/// The text: families in their order, samples in theirs.
pub struct Page<'a> {
    scope: &'a str,
    families: Vec<(&'static str, Vec<String>)>,
}

impl<'a> Page<'a> {
    /// Everything that the facts say.
    pub fn of(facts: &Facts<'a>) -> Self {
        let mut page = Self { scope: facts.scope, families: Vec::new() };
        let at = facts.ended_at.timestamp();
        // A run with nothing due while an account is silent is no success.
        if is_success(facts.told_exit()) {
            page.put(LAST_SUCCESS, &[], at);
        }
        page.put(LAST_RUN, &[], at);
        if let Some(started_at) = facts.tally.started_at {
            let ms = (facts.ended_at - started_at).num_milliseconds().max(0);
            page.put(DURATION, &[], format!("{}.{:03}", ms / 1_000, ms % 1_000));
        }
        page.put(EXIT_CODE, &[], facts.exit.code());
        for account in &facts.accounts {
            for outcome in Outcome::ALL {
                let rows = facts.tally.decided.get(&(account.clone(), outcome));
                let labels = [("source", account.as_str()), ("outcome", outcome.as_str())];
                page.put(EXAMINED, &labels, rows.copied().unwrap_or(0));
            }
        }
        if let Some(known) = &facts.known {
            page.known(facts, known);
        }
        page.put(BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1);
        page
    }

    fn known(&mut self, facts: &Facts<'_>, known: &Known) {
        let mut sources: BTreeSet<&str> = facts.accounts.iter().map(String::as_str).collect();
        sources.extend(known.stuck.iter().map(|line| line.account.as_str()));
        for source in sources {
            let line = known.stuck.iter().find(|line| line.account == source);
            let age = line.map_or(0, |line| (facts.ended_at - line.oldest).num_seconds().max(0));
            self.put(STUCK, &[("source", source)], line.map_or(0, |line| line.rows));
            self.put(OLDEST, &[("source", source)], age);
        }
        let mut buckets: BTreeMap<(&str, &str), i64> =
            ALWAYS.iter().map(|reason| ((*reason, bucket_word(0)), 0)).collect();
        for line in &known.cases {
            let count = buckets.entry((&line.reason, bucket_word(line.bucket))).or_default();
            *count = count.saturating_add(line.cases);
        }
        for ((reason, bucket), cases) in buckets {
            self.put(CASES, &[("reason", reason), ("age_bucket", bucket)], cases);
        }
        let twice = known.cases.iter().filter(|line| line.is_paid_beside);
        self.put(PAID_TWICE, &[], twice.map(|line| line.cases).sum::<i64>());
        for (currency, minor) in known.marks_of("residual/") {
            self.put(RESIDUAL, &[("currency", currency)], minor);
        }
        for (name, requests) in known.marks_of("requests/") {
            let Some((source, class)) = name.rsplit_once('/') else { continue };
            self.put(REQUESTS, &[("source", source), ("status_class", class)], requests);
        }
        for (source, runs) in known.marks_of("unreachable/") {
            self.put(STREAK, &[("source", source)], runs);
        }
        for sink in &known.sinks {
            let labels = [("sink", sink.sink.as_str())];
            let age = sink.oldest.map_or(0, |at| (facts.ended_at - at).num_seconds().max(0));
            self.put(OUTBOX, &labels, sink.waiting);
            self.put(OUTBOX_AGE, &labels, age);
            self.put(DEAD_LETTERS, &labels, sink.dead);
        }
        self.files(facts, known);
    }

    fn files(&mut self, facts: &Facts<'_>, known: &Known) {
        for (source, newest) in &known.files.newest {
            // Of one that is configured no more nothing comes any more.
            if facts.sources.iter().any(|name| name == source) {
                let age = (facts.ended_at - *newest).num_seconds().max(0);
                self.put(FILE_AGE, &[("source", source.as_str())], age);
            }
        }
        if known.files.newest.is_empty() {
            return;
        }
        // Zero is told too: a family that is left out keeps what it said before.
        let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for (currency, _residual) in known.marks_of("residual/") {
            sums.extend(["credit", "debit"].map(|side| ((side, currency), 0)));
        }
        for (side, currency, minor) in &known.files.unmatched {
            sums.insert((side.as_str(), currency.as_str()), *minor);
        }
        for ((side, currency), minor) in sums {
            self.put(UNMATCHED, &[("side", side), ("currency", currency)], minor);
        }
    }

    fn put(&mut self, name: &'static str, labels: &[(&str, &str)], value: impl ToString) {
        let mut sample = format!("{name}{{scope=\"{}\"", escaped(self.scope));
        for (label, text) in labels {
            // Writing to a String never fails.
            let _ = write!(sample, ",{label}=\"{}\"", escaped(text));
        }
        let _ = write!(sample, "}} {}", value.to_string());
        match self.families.iter_mut().find(|(known, _)| *known == name) {
            Some((_, samples)) => samples.push(sample),
            None => self.families.push((name, vec![sample])),
        }
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.over("")
    }

    /// The text, with the families of an older one that this one says nothing about. What is not
    /// in the text's form, or not tieout's, is dropped.
    pub fn over(&self, old: &str) -> String {
        let mut text = String::new();
        for meaning in &FAMILIES {
            let own = self.families.iter().find(|(name, _)| *name == meaning.name);
            let samples: Vec<&str> = match own {
                Some((_, samples)) => samples.iter().map(String::as_str).collect(),
                None if old.len() <= OLD_MAX => {
                    old.lines().filter(|line| is_sample_of(line, meaning.name)).collect()
                }
                None => Vec::new(),
            };
            if samples.is_empty() {
                continue;
            }
            let Meaning { name, kind, help } = meaning;
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            for sample in samples {
                let _ = writeln!(text, "{sample}");
            }
        }
        text
    }
}

fn is_sample_of(line: &str, name: &str) -> bool {
    let rest = line.strip_prefix(name).filter(|rest| rest.starts_with('{'));
    let value = rest.and_then(|rest| rest.rsplit_once("} ")).map(|(_, value)| value);
    value.is_some_and(|value| {
        !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'))
    })
}

/// A label's value: backslash, quote and line break are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::model::time::from_text;
    use crate::monitor::tally::Tally;
    use crate::store::watch::FileFigures;

    fn page<'a>(tally: &'a Tally, exit: Exit, source: &str) -> Page<'a> {
        Page::of(&Facts {
            scope: "cron",
            run_id: "r1",
            exit,
            ended_at: from_text("2026-11-19T12:00:00Z").unwrap(),
            accounts: vec![source.to_owned()],
            sources: Vec::new(),
            tally,
            summary: None,
            silent: Vec::new(),
            known: None,
        })
    }

    #[test]
    fn labels_are_escaped() {
        let tally = Tally::default();
        let text = page(&tally, Exit::Ok, "a\"b\\c\nd").text();
        assert!(text.contains(r#"source="a\"b\\c\nd",outcome="wait"} 0"#), "{text}");
    }

    #[test]
    fn files_are_told_by_age_and_by_what_no_row_has() {
        let tally = Tally::default();
        let at = |text| from_text(text).unwrap();
        let eur = ("debit".to_owned(), "EUR".to_owned(), 1_999);
        let newest = |source: &str| (source.to_owned(), at("2026-11-19T11:00:00Z"));
        let files =
            FileFigures { newest: vec![newest("bank"), newest("gone")], unmatched: vec![eur] };
        let marks = [("residual/EUR".to_owned(), 0)].into();
        let text = Page::of(&Facts {
            scope: "cron",
            run_id: "r1",
            exit: Exit::Ok,
            ended_at: at("2026-11-19T12:00:00Z"),
            accounts: Vec::new(),
            sources: vec!["bank".to_owned(), "new".to_owned()],
            tally: &tally,
            summary: None,
            silent: Vec::new(),
            known: Some(Known { files, marks, ..Known::default() }),
        })
        .text();
        let told: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with(FILE_AGE) || line.starts_with(UNMATCHED))
            .collect();
        let want = [
            "tieout_file_age_seconds{scope=\"cron\",source=\"bank\"} 3600",
            "tieout_unmatched_minor{scope=\"cron\",side=\"credit\",currency=\"EUR\"} 0",
            "tieout_unmatched_minor{scope=\"cron\",side=\"debit\",currency=\"EUR\"} 1999",
        ];
        assert_eq!(told, want);
    }

    #[test]
    fn what_a_run_says_nothing_about_stays() {
        let tally = Tally::default();
        let old = page(&tally, Exit::Ok, "a").text();
        let success = format!("{LAST_SUCCESS}{{scope=\"cron\"}} 1795089600\n");
        assert!(old.contains(&success), "{old}");
        let failed = page(&tally, Exit::Partial, "a");
        assert!(!failed.text().contains(LAST_SUCCESS));
        let over = failed.over(&format!("{old}other_metric{{}} 1\n{STUCK}{{half\n"));
        assert!(over.contains(&success) && over.contains("exit_code{scope=\"cron\"} 3"), "{over}");
        assert!(!over.contains("other_metric") && !over.contains("half"), "{over}");
    }
}
