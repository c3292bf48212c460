//! Named rehearsals: a bad day of a PSP, ready to be switched on.
//!
//! To add one: a line in `SCENARIOS`, an arm in `rules`.

use serde::Serialize;

use super::faults::{Action, Change, FaultRule, Matches, NearMiss, Turn, Which};
use super::routes::Route;
use super::settings::{Behaviour, RateLimit, RetryAfter, SandboxError};

/// A rehearsal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Scenario {
    /// What it is switched on by.
    pub name: &'static str,
    /// What happens, in one line.
    pub about: &'static str,
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "calm", about: "everything works; switches any other scenario off" },
    Scenario { name: "outage", about: "every request gets 503, with Retry-After 2" },
    Scenario { name: "flaky", about: "one request in five fails with 500, 502 or a reset" },
    Scenario { name: "slow", about: "every answer takes 2 to 4 seconds" },
    Scenario { name: "dripping", about: "lists come in drops of 64 bytes, one a second" },
    Scenario { name: "silent", about: "requests are taken and never answered" },
    Scenario { name: "rate_limited", about: "5 requests a second, then 429 without Retry-After" },
    Scenario { name: "dropped_tag", about: "new objects lose their metadata, without a word" },
    Scenario {
        name: "half_dropped_tag",
        about: "half of the new objects lose their metadata, as after a bad deploy",
    },
    Scenario {
        name: "lost_answers",
        about: "every third write is carried out, and its answer is lost in a reset",
    },
    Scenario {
        name: "late_landing",
        about: "every third write gets no answer and is carried out 30 seconds later",
    },
    Scenario { name: "lagging_search", about: "search does not see the last hour" },
    Scenario { name: "lagging_lists", about: "lists do not see the last ten minutes" },
    Scenario {
        name: "two_replicas",
        about: "every second list misses one of its objects, as from a replica that lags",
    },
    Scenario { name: "maintenance_page", about: "every request gets an HTML page with status 200" },
    Scenario { name: "schema_drift", about: "every status is one that nobody knows" },
    Scenario { name: "endless_pages", about: "lists never end: each page comes again" },
    Scenario { name: "early_end", about: "lists end after their first page, whole or not" },
    Scenario { name: "near_tags", about: "tags come back cut to 22 characters" },
    Scenario { name: "wrong_amounts", about: "every amount is a hundred times what it was" },
    Scenario { name: "clock_skew", about: "the PSP's clock is ten minutes ahead" },
    Scenario { name: "revoked_key", about: "every request gets 401" },
];

/// All rehearsals there are.
#[must_use]
pub fn scenarios() -> &'static [Scenario] {
    SCENARIOS
}

pub(super) fn find(name: &str) -> Result<&'static Scenario, SandboxError> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        SandboxError::UnknownScenario { name: name.to_owned(), known: names.join(", ") }
    })
}

/// What a scenario sets; the sandbox's clock offset stays as it is.
pub(super) fn staging_of(
    scenario: &Scenario,
    clock_offset_secs: i64,
) -> (Behaviour, Vec<FaultRule>) {
    let calm = Behaviour { clock_offset_secs, ..Behaviour::default() };
    let behaviour = match scenario.name {
        "slow" => Behaviour { latency_ms: 2_000, jitter_ms: 2_000, ..calm },
        "rate_limited" => {
            let limit = RateLimit {
                per_second: 5,
                burst: 5,
                per_route: None,
                retry_after: RetryAfter::Absent,
            };
            Behaviour { rate_limit: Some(limit), ..calm }
        }
        "dropped_tag" => Behaviour { dropped_tags_per_mille: 1000, ..calm },
        "half_dropped_tag" => Behaviour { dropped_tags_per_mille: 500, ..calm },
        "lagging_search" => Behaviour { search_lag_secs: 3_600, ..calm },
        "lagging_lists" => Behaviour { list_lag_secs: 600, ..calm },
        "clock_skew" => Behaviour { date_skew_secs: 600, created_skew_secs: 600, ..calm },
        _ => calm,
    };
    (behaviour, rules(scenario.name))
}

fn rules(name: &str) -> Vec<FaultRule> {
    let status = |code, retry_after| Action::Status { code, retry_after, reason: None };
    let one = |action| vec![FaultRule::always(action)];
    let all = || Which::All;
    match name {
        "outage" => one(status(503, RetryAfter::Seconds(2))),
        "flaky" => {
            [status(500, RetryAfter::Absent), status(502, RetryAfter::Absent), Action::Reset]
                .into_iter()
                .map(|action| FaultRule::always(action).at(Turn::PerMille(72)))
                .collect()
        }
        "dripping" => on_lists(&Action::Drip { bytes: 64, every_ms: 1000 }, Turn::Always),
        "silent" => one(Action::NoAnswer),
        "lost_answers" => {
            vec![on_writes(Action::ActThen(Box::new(Action::Reset)), Turn::Every(3))]
        }
        "late_landing" => {
            let meanwhile = Box::new(Action::NoAnswer);
            vec![on_writes(Action::ActLate { after_ms: 30_000, meanwhile }, Turn::Every(3))]
        }
        "two_replicas" => on_lists(&Action::Hide(Which::Place(0)), Turn::Every(2)),
        "maintenance_page" => one(Action::Html { code: 200 }),
        "schema_drift" => {
            let change = Change::Status("settling_elsewhere".to_owned());
            one(Action::Alter { only: all(), change })
        }
        "endless_pages" => on_lists(&Action::RepeatCursor, Turn::Always),
        "early_end" => on_lists(&Action::EndEarly, Turn::Always),
        "near_tags" => {
            let change = Change::NearMiss(NearMiss::Truncated(22));
            one(Action::Alter { only: all(), change })
        }
        "wrong_amounts" => one(Action::Alter { only: all(), change: Change::AmountTimes(100) }),
        "revoked_key" => one(status(401, RetryAfter::Absent)),
        _ => Vec::new(),
    }
}

fn on_lists(action: &Action, turn: Turn) -> Vec<FaultRule> {
    [Route::ListIntents, Route::ListCharges, Route::ListRefunds]
        .into_iter()
        .map(|route| FaultRule::on(route, action.clone()).at(turn))
        .collect()
}

fn on_writes(action: Action, turn: Turn) -> FaultRule {
    let matches = Matches { method: Some("POST".to_owned()), turn, ..Matches::default() };
    FaultRule { matches, ..FaultRule::always(action) }
}
