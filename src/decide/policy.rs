//! What the configuration says about deciding, resolved for one table and one account.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decide::rules::RuleSet;
use crate::model::evidence::Route;
use crate::model::money::{Currency, Money};
use crate::model::transaction::Kind;

/// How far a table or an account lets tieout go. The stricter of both holds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Decides, journals, reports; writes no status, stages no event, hands nothing back.
    Observe,
    /// Writes succeeded; everything else is withheld.
    SucceedOnly,
    /// Writes every outcome that has a target and hands rows back.
    Full,
}

impl Mode {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::SucceedOnly => "succeed_only",
            Self::Full => "full",
        }
    }
}

/// What becomes of a row that was handed back `max_retries` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GaveUp {
    /// Failed for good.
    Failed,
    /// A person decides.
    Review,
}

/// What proven absence means in this table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbsentMeans {
    /// Safe to charge again.
    HandBack,
    /// The customer never paid: the row ends in a status of its own and nobody charges it.
    Abandoned,
}

/// Spans of time. DESIGN section 5 explains each default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// The longest that the charging worker's call can still live.
    pub in_flight_max: TimeDelta,
    /// How long a row must be processing before anyone looks; at least `in_flight_max`.
    pub stuck_after: TimeDelta,
    /// The least time between two misses.
    pub recheck_after: TimeDelta,
    /// How much older than its row an object may be (intents are made at cart time).
    pub object_before_row: TimeDelta,
    /// How long a row may stay undecided while the source answers.
    pub max_age: TimeDelta,
    /// How long an account may give no answer before a person is told.
    pub unavailable_for: TimeDelta,
    /// How long a hand-back may wait to be taken, from when it may be.
    pub take_within: TimeDelta,
    /// Until when, from the hand-back, the charge must be sent.
    pub charge_before: TimeDelta,
    /// When the tag is looked at again after a hand-back or an end.
    pub watch: Vec<TimeDelta>,
    /// First delay of the back-off; it doubles from here …
    pub backoff_first: TimeDelta,
    /// … up to this.
    pub backoff_cap: TimeDelta,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            in_flight_max: TimeDelta::minutes(15),
            stuck_after: TimeDelta::minutes(20),
            recheck_after: TimeDelta::minutes(15),
            object_before_row: TimeDelta::days(7),
            max_age: TimeDelta::days(7),
            unavailable_for: TimeDelta::hours(6),
            take_within: TimeDelta::hours(24),
            charge_before: TimeDelta::hours(24),
            watch: vec![
                TimeDelta::minutes(15),
                TimeDelta::hours(1),
                TimeDelta::hours(24),
                TimeDelta::hours(72),
            ],
            backoff_first: TimeDelta::minutes(5),
            backoff_cap: TimeDelta::hours(6),
        }
    }
}

/// What an adapter declares of one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteFacts {
    /// Which route.
    pub route: Route,
    /// The object kinds that it covers; empty: all. Stripe's search knows no refunds.
    pub kinds: Vec<String>,
    /// Whether a complete search of it that saw nothing counts as a miss.
    pub counts_as_miss: bool,
    /// How far it may lag behind what the PSP knows.
    pub lag: TimeDelta,
    /// How far back it reaches; `None`: for ever.
    pub reach: Option<TimeDelta>,
}

/// What an adapter declares of its PSP, with the account's own settings in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PspFacts {
    /// The adapter: `stripe`.
    pub psp: String,
    /// Which kinds of movement it can look up.
    pub kinds: Vec<Kind>,
    /// How many characters the tag's place holds.
    pub tag_max: usize,
    /// Its routes.
    pub routes: Vec<RouteFacts>,
    /// The object kinds that this account charges by; refund rows list refunds.
    pub charges_by: Vec<String>,
    /// How long an idempotency key protects, from its first use; `None`: there are no keys.
    pub key_life: Option<TimeDelta>,
}

impl PspFacts {
    /// The declared facts of one route.
    pub fn route(&self, route: Route) -> Option<&RouteFacts> {
        self.routes.iter().find(|facts| facts.route == route)
    }

    /// Whether there is an API to ask, and not files alone.
    pub fn has_api(&self) -> bool {
        let routes = [Route::Fetch, Route::List, Route::Search];
        routes.into_iter().any(|route| self.route(route).is_some())
    }

    /// The search by tag, where there is one for every object kind that a row of `kind` needs.
    pub fn search_for(&self, kind: Kind) -> Option<&RouteFacts> {
        let wanted = self.object_kinds(kind);
        self.route(Route::Search).filter(|facts| {
            facts.kinds.is_empty() || wanted.iter().all(|kind| facts.kinds.contains(kind))
        })
    }

    /// The object kinds that a search for a row of `kind` must cover.
    pub fn object_kinds(&self, kind: Kind) -> Vec<String> {
        match kind {
            Kind::Charge => self.charges_by.clone(),
            Kind::Refund => vec!["refund".to_owned()],
            Kind::Payout => vec!["payout".to_owned()],
        }
    }
}

/// The brake's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrakePolicy {
    /// In thousandths: below this share of the account's usual share nothing is handed back.
    pub min_tagged_permille: u32,
    /// A fixed limit; `None`: max(20, 5 % of the listed objects), at most 500.
    pub max_handbacks: Option<u64>,
}

impl Default for BrakePolicy {
    fn default() -> Self {
        Self { min_tagged_permille: 800, max_handbacks: None }
    }
}

/// How far a line of a settlement file may lie from its row. By default not at all: an amount is
/// the row's to the cent, and a day is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// By how many minor units of a currency its amount may differ.
    pub amounts: BTreeMap<Currency, i64>,
    /// How long after the row's last attempt it may be booked; none: whenever.
    pub date_window: Option<TimeDelta>,
}

impl Tolerance {
    /// By how much a line's money differs from the row's, + being more: where it does, in the
    /// row's own currency, and by no more than is allowed. What moved nothing pays for nothing.
    pub fn delta(&self, row: Money, line: Money) -> Option<Money> {
        let most = self.amounts.get(&row.currency).filter(|_| row.currency == line.currency)?;
        let minor = line.minor.checked_sub(row.minor)?;
        let is_within = minor != 0 && minor.unsigned_abs() <= most.unsigned_abs();
        let both_move = row.minor > 0 && line.minor > 0;
        (is_within && both_move).then(|| Money::new(minor, row.currency))
    }
}

/// Everything that deciding a row of one table at one account depends on, besides the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Spans of time.
    pub timing: Timing,
    /// How often a row may be handed back.
    pub max_retries: u32,
    /// What then.
    pub gave_up: GaveUp,
    /// What proven absence means.
    pub absent_means: AbsentMeans,
    /// Statuses and codes as data: shipped rules, the user's on top.
    pub rules: RuleSet,
    /// What the adapter declares.
    pub psp: PspFacts,
    /// The brake.
    pub brake: BrakePolicy,
    /// How far a settled line may lie from its row.
    pub tolerance: Tolerance,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_tolerated_but_what_is_said() {
        let money = |minor, code| Money::new(minor, Currency::parse(code).unwrap());
        let euro = |minor| money(minor, "EUR");
        let two =
            Tolerance { amounts: BTreeMap::from([(euro(0).currency, 2)]), ..Tolerance::default() };
        assert_eq!(two.delta(euro(500), euro(502)), Some(euro(2)));
        assert_eq!(two.delta(euro(500), euro(498)), Some(euro(-2)));
        for (row, line) in [
            (euro(500), euro(500)),
            (euro(500), euro(503)),
            (euro(500), money(501, "USD")),
            (money(500, "USD"), money(501, "USD")),
            (euro(i64::MIN), euro(i64::MAX)),
            (euro(2), euro(0)),
            (euro(0), euro(2)),
        ] {
            assert_eq!(two.delta(row, line), None, "{row} {line}");
        }
        assert_eq!(Tolerance::default().delta(euro(500), euro(501)), None);
    }
}
