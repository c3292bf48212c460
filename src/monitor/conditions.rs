//! What a person should be told of: pure, from the facts of a run's end.
//!
//! A condition has a name that stays the same while it holds. Where a run could not judge it, it
//! says nothing: what was told before then stays as it is.

use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::reason::Reason;
use crate::model::time::{Instant, span_text, to_short_text};
use crate::monitor::facts::{Facts, Known};
use crate::monitor::settings::MonitoringSettings;
use crate::store::outbox::SinkState;
use crate::store::watch::{CaseLine, SO_FAR};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident $word:literal;)+) => {
        /// The conditions there are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Kind {
            /// All.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

kinds! {
    /// A bug, a broken invariant, or a chain that does not verify.
    Integrity "integrity";
    /// The newest run with rows does not tie out.
    Untied "untied";
    /// Several runs in a row did not examine everything.
    Repeated "repeated";
    /// No run examined everything for two intervals.
    NoSuccess "no_success";
    /// An account gives no answer for so long that a person was told.
    AccountUnavailable "account_unavailable";
    /// Files cannot be fetched from a source.
    SourceUnavailable "source_unavailable";
    /// Files that are expected did not come by their time.
    FileMissing "file_missing";
    /// Hand-backs are withheld at an account.
    AbsenceBrake "absence_brake";
    /// A payment was taken twice, or could still be.
    Duplicates "duplicates";
    /// Money was found for a row that was handed back, or had failed.
    LateContradiction "late_contradiction";
    /// Rows were given up, after as many hand-backs as the policy allows.
    GaveUp "gave_up";
    /// A row waits for too long.
    OldestStuck "oldest_stuck";
    /// A sink takes no events, and some wait for it.
    SinkUnavailable "sink_unavailable";
    /// Events could not be delivered, and wait for a person.
    DeadLetters "dead_letters";
}

impl Kind {
    /// Whether it is of one schedule's runs. What is of the database, its accounts, files, cases
    /// and sinks is told once for all schedules.
    pub fn is_of_runs(self) -> bool {
        matches!(self, Self::Integrity | Self::Untied | Self::Repeated | Self::NoSuccess)
    }

    /// Whether it is told anew when more cases of it are open: each is of a payment that somebody
    /// may charge again, or that nobody will, and a case may stay open for days.
    pub fn grows(self) -> bool {
        matches!(self, Self::Duplicates | Self::LateContradiction | Self::GaveUp)
    }

    /// Reads the stable word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}

/// A condition that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Which.
    pub kind: Kind,
    /// Of which account or source, where it is one's.
    pub subject: Option<String>,
    /// How bad.
    pub class: Exit,
    /// One sentence with the figures.
    pub text: String,
}

impl Condition {
    /// The name that stays: `untied`, `absence_brake/stripe_live`.
    pub fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{}/{subject}", self.kind.as_str()),
            None => self.kind.as_str().to_owned(),
        }
    }
}

/// The class of a condition by its name, for telling its end too.
pub fn class_of(name: &str) -> Exit {
    match Kind::parse(name.split('/').next().unwrap_or(name)) {
        Some(Kind::Integrity) => Exit::Integrity,
        Some(Kind::Untied) => Exit::Untied,
        Some(Kind::Duplicates | Kind::LateContradiction | Kind::GaveUp | Kind::OldestStuck) => {
            Exit::Attention
        }
        Some(
            Kind::Repeated
            | Kind::NoSuccess
            | Kind::AccountUnavailable
            | Kind::SourceUnavailable
            | Kind::FileMissing
            | Kind::AbsenceBrake
            | Kind::SinkUnavailable
            | Kind::DeadLetters,
        )
        | None => Exit::Partial,
    }
}

/// What holds now. Every kind is judged where the database answered, and none where it did not.
pub fn holding(facts: &Facts<'_>, settings: &MonitoringSettings) -> Vec<Condition> {
    let Some(known) = &facts.known else { return Vec::new() };
    let mut holding = Vec::new();
    let mut put = |kind: Kind, subject: Option<&str>, text: String| {
        let subject = subject.map(str::to_owned);
        let class = class_of(kind.as_str());
        holding.push(Condition { kind, subject, class, text });
    };
    let run = facts.run_id;
    if known.mark("integrity").unwrap_or(0) > 0 {
        let text = "a run ended with exit 1 or 16: a bug, a report that could not be written, or \
                    a chain that does not verify; `tieout runs list` shows it";
        put(Kind::Integrity, None, text.to_owned());
    }
    if let Some(currencies) = known.mark("untied").filter(|count| *count > 0) {
        let totals = counted(currencies, "currency", "currencies");
        let text = format!("the totals of {totals} do not tie out, seen by {run}");
        put(Kind::Untied, None, text);
    }
    let failed = known.mark("failed_in_a_row").unwrap_or(0);
    if failed >= i64::from(settings.repeated) {
        let class = facts.exit.class();
        let text = format!("{failed} runs in a row did not examine everything; the last: {class}");
        put(Kind::Repeated, None, text);
    }
    no_success(facts, known, settings, &mut put);
    for (account, (_, case)) in known.cases_of("account_unavailable") {
        let text = format!("account {account} gives no answer; case C-{case}");
        put(Kind::AccountUnavailable, Some(account), text);
    }
    for (source, _) in known.marks_of("source/").filter(|(_, failed)| *failed > 0) {
        // One that is configured no more says nothing.
        if facts.sources.iter().any(|name| name == source) {
            let text = format!(
                "files cannot be fetched from source {source}; `tieout sources test {source}` \
                 says why"
            );
            put(Kind::SourceUnavailable, Some(source), text);
        }
    }
    for (account, (_, case)) in known.cases_of("file_missing") {
        let text = format!("files of account {account} did not come; case C-{case}");
        put(Kind::FileMissing, Some(account), text);
    }
    for (account, (_, case)) in known.cases_of("absence_brake") {
        let text = format!("hand-backs at account {account} are withheld; case C-{case}");
        put(Kind::AbsenceBrake, Some(account), text);
    }
    if let Some((what, which)) = taken_twice(known) {
        let text = format!("{what} of money taken twice, or nearly; {which}");
        put(Kind::Duplicates, None, text);
    }
    if let Some((what, which)) = several(known, "late_contradiction") {
        let text = format!(
            "{what} of money found for a row that was handed back or had failed; see that nobody \
             charges it; {which}"
        );
        put(Kind::LateContradiction, None, text);
    }
    gave_up(facts, known, &mut put);
    oldest_stuck(facts.ended_at, known, settings, &mut put);
    sinks(known, &mut put);
    holding
}

/// How many cases of this reason are open, and the first and the newest, in words; `None`: none
/// is.
fn several(known: &Known, reason: &str) -> Option<(String, String)> {
    summed(known.cases.iter().filter(|line| line.reason == reason))
}

/// The same, of money that was taken twice, or nearly: for one row, or for two of one natural key.
fn taken_twice(known: &Known) -> Option<(String, String)> {
    let is_twice = |line: &&CaseLine| {
        line.is_paid_beside
            || matches!(line.reason.as_str(), "duplicate_capture" | "duplicate_live")
    };
    summed(known.cases.iter().filter(is_twice))
}

fn summed<'k>(lines: impl Iterator<Item = &'k CaseLine>) -> Option<(String, String)> {
    let lines: Vec<&CaseLine> = lines.collect();
    let cases: i64 = lines.iter().map(|line| line.cases).sum();
    let first = lines.iter().map(|line| line.first).min()?;
    let last = lines.iter().map(|line| line.last).max().filter(|last| *last > first);
    let newest = last.map_or_else(String::new, |last| format!(", the newest: C-{last}"));
    Some((counted(cases, "case", "cases"), format!("the first: C-{first}{newest}")))
}

fn sinks(known: &Known, put: Put<'_>) {
    for state in &known.sinks {
        let SinkState { sink, dead, .. } = state;
        if let Some(since) = state.failing_since.filter(|_| state.due() > 0) {
            let text = format!(
                "sink {sink} takes nothing since {}; {} for it",
                to_short_text(since),
                counted(state.due(), "event waits", "events wait")
            );
            put(Kind::SinkUnavailable, Some(sink.as_str()), text);
        }
        if *dead > 0 {
            let events = counted(dead, "event", "events");
            let text = format!("sink {sink} refused {events}; `tieout deliver list`");
            put(Kind::DeadLetters, Some(sink.as_str()), text);
        }
    }
}

type Put<'a> = &'a mut dyn FnMut(Kind, Option<&str>, String);

fn no_success(facts: &Facts<'_>, known: &Known, settings: &MonitoringSettings, put: Put<'_>) {
    let last = known.mark("last_success").or_else(|| known.mark("since"));
    let Some(last) = last else { return };
    let interval = settings.interval_of(facts.scope);
    let limit = interval.num_seconds().saturating_mul(2);
    if facts.ended_at.timestamp().saturating_sub(last) > limit {
        let text =
            format!("no run examined everything for longer than twice {}", span_text(interval));
        put(Kind::NoSuccess, None, text);
    }
}

/// By the policy they are a person's, whose cases are open, or the run ended them: of those no case
/// tells, and the condition holds until a run gives up none. By the count of cases it grows, and by
/// the sum of what runs ended.
fn gave_up(facts: &Facts<'_>, known: &Known, put: Put<'_>) {
    let open = several(known, Reason::GaveUp.as_str());
    let cases = open.map(|(what, which)| format!("{what} of rows that were given up; {which}"));
    let (sum, fresh) = known.given_up();
    // Of a run that was interrupted the next one tells.
    let is_own = i64::try_from(facts.tally.given_up.len()).is_ok_and(|own| own == fresh);
    let by = if is_own { "by" } else { "up to" };
    let ended = match (fresh, sum) {
        (0, 0) => None,
        (0, _) if cases.is_none() => None,
        (0, _) => Some(format!("given up as failed {SO_FAR}{sum}")),
        _some => {
            let rows = counted(fresh, "row", "rows");
            Some(format!("{rows} given up as failed {by} {} ({SO_FAR}{sum})", facts.run_id))
        }
    };
    let said: Vec<String> = cases.into_iter().chain(ended).collect();
    if !said.is_empty() {
        put(Kind::GaveUp, None, said.join("; "));
    }
}

/// What a receiver may not have taken while it held, and what it is told then though it holds no
/// more: of each run that gave up rows somebody hears.
pub fn late(facts: &Facts<'_>) -> Option<Condition> {
    let (sum, _) = facts.known.as_ref()?.given_up();
    let run = facts.run_id;
    let text = format!("rows were given up as failed before {run}, untold as yet ({SO_FAR}{sum})");
    let kind = Kind::GaveUp;
    (sum > 0).then(|| Condition { kind, subject: None, class: class_of(kind.as_str()), text })
}

fn oldest_stuck(now: Instant, known: &Known, settings: &MonitoringSettings, put: Put<'_>) {
    let late = known.stuck.iter().filter(|line| now - line.oldest > settings.oldest_stuck);
    let accounts: Vec<&str> =
        late.map(|line| if line.account.is_empty() { "none" } else { &line.account }).collect();
    if !accounts.is_empty() {
        let text = format!(
            "rows wait for longer than {} at: {}",
            span_text(settings.oldest_stuck),
            accounts.join(", ")
        );
        put(Kind::OldestStuck, None, text);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::TimeDelta;

    use super::*;
    use crate::model::time::from_text;
    use crate::monitor::tally::Tally;
    use crate::store::watch::StuckLine;

    fn now() -> Instant {
        from_text("2026-11-19T12:00:00Z").unwrap()
    }

    fn told(exit: Exit, known: Known) -> Vec<String> {
        told_of("cron", exit, known)
    }

    fn told_of(scope: &str, exit: Exit, known: Known) -> Vec<String> {
        let tally = Tally::default();
        let facts = facts_of(scope, exit, known, &tally);
        holding(&facts, &settings()).iter().map(Condition::name).collect()
    }

    fn settings() -> MonitoringSettings {
        MonitoringSettings::default()
    }

    fn facts_of<'a>(scope: &'a str, exit: Exit, known: Known, tally: &'a Tally) -> Facts<'a> {
        Facts {
            scope,
            run_id: "r1",
            exit,
            ended_at: now(),
            accounts: Vec::new(),
            sources: Vec::new(),
            tally,
            summary: None,
            silent: Vec::new(),
            known: Some(known),
        }
    }

    fn marks(marks: &[(&str, i64)]) -> Known {
        let marks: BTreeMap<String, i64> =
            marks.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Known { marks, ..Known::default() }
    }

    #[test]
    fn numbers_that_are_fine_are_no_condition() {
        let at = now().timestamp();
        let fine = [("last_success", at), ("failed_in_a_row", 0), ("untied", 0), ("integrity", 0)];
        assert_eq!(told(Exit::Ok, marks(&fine)), Vec::<String>::new());
        assert_eq!(told(Exit::Ok, Known::default()), Vec::<String>::new());
    }

    #[test]
    fn each_number_has_its_limit() {
        let at = now().timestamp();
        for (name, value, want) in [
            ("failed_in_a_row", 1, None),
            ("failed_in_a_row", 2, Some("repeated")),
            ("untied", 1, Some("untied")),
            ("integrity", 1, Some("integrity")),
            ("last_success", at - 1_200, None),
            ("last_success", at - 1_201, Some("no_success")),
            // Watched for longer than that, and never a success.
            ("since", at - 1_201, Some("no_success")),
        ] {
            let told = told(Exit::Partial, marks(&[(name, value)]));
            assert_eq!(told.first().map(String::as_str), want, "{name} {value}");
        }
        let both = marks(&[("since", at - 9_999), ("last_success", at - 60)]);
        assert_eq!(told(Exit::Partial, both), Vec::<String>::new());
    }

    #[test]
    fn a_daily_schedule_succeeds_daily() {
        let at = now().timestamp();
        for (scope, seconds, want) in [
            ("cron", 86_400, vec!["no_success"]),
            ("daily", 86_400, vec![]),
            ("daily", 2 * 86_400, vec![]),
            ("daily", 2 * 86_400 + 1, vec!["no_success"]),
        ] {
            let last = marks(&[("last_success", at - seconds)]);
            assert_eq!(told_of(scope, Exit::Partial, last), want, "{scope} {seconds}");
        }
    }

    #[test]
    fn cases_and_waiting_rows_are_conditions_of_their_own() {
        let case = |reason: &str, account: &str| CaseLine {
            reason: reason.to_owned(),
            account: account.to_owned(),
            bucket: 0,
            is_paid_beside: false,
            cases: 2,
            first: 7,
            last: 9,
        };
        let cases = vec![
            case("absence_brake", "a"),
            case("absence_brake", "b"),
            case("account_unavailable", "a"),
            case("duplicate_live", "a"),
            case("duplicate_capture", "b"),
            case("late_contradiction", "a"),
            case("late_contradiction", "b"),
            case("amount_mismatch", "a"),
        ];
        let waits = |account: &str, hours| StuckLine {
            account: account.to_owned(),
            rows: 1,
            oldest: now() - TimeDelta::hours(hours),
        };
        let stuck = vec![waits("a", 24), waits("b", 25)];
        let sink = |name: &str, (waiting, later), dead, is_failing: bool| SinkState {
            sink: name.to_owned(),
            waiting,
            later,
            oldest: None,
            dead,
            failing_since: is_failing.then(now),
            next_attempt_at: None,
            last_error: None,
            last_delivered_at: None,
        };
        let sinks = vec![
            sink("idle", (0, 0), 0, true),
            sink("slow", (3, 0), 0, false),
            sink("early", (2, 2), 0, true),
            sink("gone", (3, 1), 1, true),
        ];
        let told = told(Exit::Ok, Known { stuck, cases, sinks, ..Known::default() });
        let want = [
            "account_unavailable/a",
            "absence_brake/a",
            "absence_brake/b",
            "duplicates",
            "late_contradiction",
            "oldest_stuck",
            "sink_unavailable/gone",
            "dead_letters/gone",
        ];
        assert_eq!(told, want);
    }

    #[test]
    fn of_several_cases_the_first_and_the_newest_are_named() {
        let line = |cases, first, last| CaseLine {
            reason: "late_contradiction".to_owned(),
            account: "a".to_owned(),
            bucket: 0,
            is_paid_beside: false,
            cases,
            first,
            last,
        };
        let words = |cases| several(&Known { cases, ..Known::default() }, "late_contradiction");
        let said = |what: &str, which: &str| Some((what.to_owned(), which.to_owned()));
        assert_eq!(words(Vec::new()), None);
        assert_eq!(words(vec![line(1, 7, 7)]), said("1 case", "the first: C-7"));
        let both = words(vec![line(2, 7, 9), line(1, 3, 3)]);
        assert_eq!(both, said("3 cases", "the first: C-3, the newest: C-9"));
    }

    /// What runs ended is told of once, with the sum, what is a person's as long as it is.
    #[test]
    fn rows_that_were_given_up_are_told_of_whatever_the_policy_makes_of_them() {
        let case = CaseLine {
            reason: "gave_up".to_owned(),
            account: "a".to_owned(),
            bucket: 0,
            is_paid_beside: false,
            cases: 2,
            first: 7,
            last: 9,
        };
        // Rows of this run, of all runs, and those told of before.
        let text = |(own, sum, told): (usize, i64, i64), cases: Vec<CaseLine>| {
            let mut tally = Tally::default();
            tally.given_up.extend((0..own).map(|key| ("t".to_owned(), key.to_string())));
            let marks = marks(&[("given_up", sum), ("given_up_told", told)]);
            let facts = facts_of("cron", Exit::Ok, Known { cases, ..marks }, &tally);
            let holding = holding(&facts, &settings());
            holding.first().map(|held| format!("{}: {}", held.name(), held.text))
        };
        assert_eq!(text((0, 0, 0), Vec::new()), None);
        assert_eq!(text((0, 3, 3), Vec::new()), None);
        let ended = text((3, 7, 4), Vec::new());
        assert_eq!(ended.as_deref(), Some("gave_up: 3 rows given up as failed by r1 (so far: 7)"));
        // An earlier run was interrupted, and told nobody.
        let ended = text((0, 7, 6), Vec::new());
        let want = "gave_up: 1 row given up as failed up to r1 (so far: 7)";
        assert_eq!(ended.as_deref(), Some(want));
        let cases = "gave_up: 2 cases of rows that were given up; the first: C-7, the newest: C-9";
        assert_eq!(text((0, 0, 0), vec![case.clone()]).as_deref(), Some(cases));
        let before = format!("{cases}; given up as failed so far: 4");
        assert_eq!(text((0, 4, 4), vec![case.clone()]), Some(before));
        let both = format!("{cases}; 1 row given up as failed by r1 (so far: 5)");
        assert_eq!(text((1, 5, 4), vec![case]), Some(both));
    }

    /// Of two rows with one natural key, both paid, and of one that is absent beside a paid one.
    #[test]
    fn a_payment_that_two_rows_paid_is_taken_twice() {
        let sibling = |is_paid_beside| CaseLine {
            reason: "sibling_row".to_owned(),
            account: "a".to_owned(),
            bucket: 0,
            is_paid_beside,
            cases: 1,
            first: 7,
            last: 7,
        };
        let told_of = |cases: Vec<CaseLine>| told(Exit::Ok, Known { cases, ..Known::default() });
        assert_eq!(told_of(vec![sibling(false)]), Vec::<String>::new());
        assert_eq!(told_of(vec![sibling(false), sibling(true)]), ["duplicates"]);
    }
}
