//! `[policy]`, and `policy` of an account: everything that deciding depends on besides the rules.
//!
//! Every setting may be left out; an account's own value wins over `[policy]`, and that over the
//! default of [`Timing`]. Adding one: a field here, its range in [`SPANS`] or `ranges`, a line in
//! `default.toml`.

use std::collections::BTreeMap;
use std::fmt;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error as _, Unexpected, Visitor};

use crate::decide::policy::{BrakePolicy, GaveUp, Timing, Tolerance};
use crate::model::money::{AmountUnit, Currency, Exactness, Money, parse_amount};
use crate::model::time::{parse_span, span_text};

/// What a span looks like, for the schema of the file.
const SPAN_PATTERN: &str = r"^\s*[0-9]+\s*[a-z]+\s*$";

/// A span of time as the configuration writes it: `90s`, `15min`, `24h`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(extend("pattern" = SPAN_PATTERN))]
pub struct Span(#[schemars(with = "String")] pub TimeDelta);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a span such as \"90s\", \"15min\", \"24h\" or \"7d\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                let span = parse_span(text).map(Span);
                span.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Words)
    }
}

/// A share between 0 and 1, held exactly as thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(extend("type" = "number", "minimum" = 0, "maximum" = 1), with = "serde_json::Value")]
pub struct Permille(pub u32);

impl<'de> Deserialize<'de> for Permille {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The number's own text is read: a float would not hold 0.8.
        let value = toml::Value::deserialize(deserializer)?;
        let text = value.to_string();
        let permille = permille_of(&text).map(Self);
        permille.ok_or_else(|| {
            D::Error::custom(format!(
                "this is {text}, expected a share from 0 to 1 with at most three decimals, \
                 such as 0.8"
            ))
        })
    }
}

fn permille_of(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths: u32 = format!("{fraction:0<3}").parse().ok()?;
    let whole: u32 = whole.parse().ok()?;
    let permille = whole.checked_mul(1_000)?.checked_add(thousandths)?;
    (permille <= 1_000).then_some(permille)
}

/// The words of `[policy]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// The longest that the charging worker's call can still live.
    pub in_flight_max: Option<Span>,
    /// How long a row must be processing before anyone looks.
    pub stuck_after: Option<Span>,
    /// The least time between two misses.
    pub recheck_after: Option<Span>,
    /// How much older than its row an object may be.
    pub object_before_row: Option<Span>,
    /// How long a row may stay undecided while the source answers.
    pub max_age: Option<Span>,
    /// How long an account may give no answer before a person is told.
    pub unavailable_for: Option<Span>,
    /// How often a row may be handed back.
    pub max_retries: Option<u32>,
    /// What then: `review` or `failed`.
    pub gave_up: Option<GaveUp>,
    /// How long a hand-back may wait to be taken, from when it may be.
    pub take_within: Option<Span>,
    /// Until when, from the hand-back, the charge must be sent.
    pub charge_before: Option<Span>,
    /// When the tag is looked at again after a hand-back or an end.
    pub watch: Option<Vec<Span>>,
    /// First delay of the back-off.
    pub backoff_first: Option<Span>,
    /// Its longest delay.
    pub backoff_cap: Option<Span>,
    /// Below this share of the account's usual share nothing is handed back.
    pub min_tagged_share: Option<Permille>,
    /// A fixed limit of hand-backs for an account and run.
    pub max_handbacks: Option<u64>,
    /// By how much a line of a settlement file may differ from its row, by currency. What it
    /// differs by is journalled as `tolerance_delta`.
    pub amount_tolerance: Option<BTreeMap<String, String>>,
    /// How long after the row's last attempt a line of a settlement file may be booked.
    pub date_window: Option<Span>,
}

/// The policy of one account, every setting worked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Spans of time.
    pub timing: Timing,
    /// How often a row may be handed back.
    pub max_retries: u32,
    /// What then.
    pub gave_up: GaveUp,
    /// The brake.
    pub brake: BrakePolicy,
    /// By currency: how much a settled line may differ by, in major units.
    pub amount_tolerance: BTreeMap<String, String>,
    /// How long after the last attempt it may be booked.
    pub date_window: Option<TimeDelta>,
}

impl Resolved {
    /// How far a settled line may lie from its row; what cannot be read allows nothing.
    pub fn tolerance(&self) -> Tolerance {
        let amounts = self.amount_tolerance.iter();
        Tolerance {
            amounts: amounts.filter_map(|(code, text)| tolerated(code, text).ok()).collect(),
            date_window: self.date_window,
        }
    }
}

/// A currency and the most that amounts of it may differ by, in minor units.
fn tolerated(code: &str, text: &str) -> Result<(Currency, i64), String> {
    let currency = Currency::parse(code).map_err(|unknown| unknown.to_string())?;
    let read = parse_amount(text, AmountUnit::Major, Exactness::Exact, currency);
    let money = read.map_err(|wrong| wrong.to_string())?;
    if money.minor <= 0 {
        return Err(format!("`{text}` of {code}; expected an amount above 0"));
    }
    Ok((currency, money.minor))
}

/// Amounts as the configuration writes them.
pub fn amount_texts(tolerance: &Tolerance) -> BTreeMap<String, String> {
    let amounts = tolerance.amounts.iter();
    let text = |(currency, minor): (&Currency, &i64)| {
        (currency.code().to_owned(), Money::new(*minor, *currency).to_decimal())
    };
    amounts.map(text).collect()
}

impl Default for Resolved {
    fn default() -> Self {
        Self {
            timing: Timing::default(),
            max_retries: 5,
            gave_up: GaveUp::Review,
            brake: BrakePolicy::default(),
            amount_tolerance: BTreeMap::new(),
            date_window: None,
        }
    }
}

fn or(span: Option<Span>, default: TimeDelta) -> TimeDelta {
    span.map_or(default, |span| span.0)
}

impl PolicySettings {
    /// These settings over `base`.
    pub fn over(&self, base: &Resolved) -> Resolved {
        let old = &base.timing;
        let in_flight_max = or(self.in_flight_max, old.in_flight_max);
        // The first look of the watch follows the end of the call that may still be under way, and
        // a later one that this has overtaken is left out.
        let follows = old.watch.contains(&old.in_flight_max);
        let is_overtaken =
            |span: &&TimeDelta| follows && **span > old.in_flight_max && **span <= in_flight_max;
        let kept = old.watch.iter().filter(|span| !is_overtaken(span));
        let inherited =
            kept.map(|span| if *span == old.in_flight_max { in_flight_max } else { *span });
        let watch = match &self.watch {
            Some(spans) => spans.iter().map(|span| span.0).collect(),
            None => inherited.collect(),
        };
        let timing = Timing {
            in_flight_max,
            stuck_after: or(self.stuck_after, old.stuck_after),
            recheck_after: or(self.recheck_after, old.recheck_after),
            object_before_row: or(self.object_before_row, old.object_before_row),
            max_age: or(self.max_age, old.max_age),
            unavailable_for: or(self.unavailable_for, old.unavailable_for),
            take_within: or(self.take_within, old.take_within),
            charge_before: or(self.charge_before, old.charge_before),
            watch,
            backoff_first: or(self.backoff_first, old.backoff_first),
            backoff_cap: or(self.backoff_cap, old.backoff_cap),
        };
        let brake = BrakePolicy {
            min_tagged_permille: self
                .min_tagged_share
                .map_or(base.brake.min_tagged_permille, |share| share.0),
            max_handbacks: self.max_handbacks.or(base.brake.max_handbacks),
        };
        Resolved {
            timing,
            max_retries: self.max_retries.unwrap_or(base.max_retries),
            gave_up: self.gave_up.unwrap_or(base.gave_up),
            brake,
            amount_tolerance: self
                .amount_tolerance
                .clone()
                .unwrap_or_else(|| base.amount_tolerance.clone()),
            date_window: self.date_window.map(|span| span.0).or(base.date_window),
        }
    }
}

/// The least and the most that a span may be: outside, it is a slip of the pen.
fn ranges(timing: &Timing) -> [(&'static str, TimeDelta, TimeDelta, TimeDelta); 10] {
    let second = TimeDelta::seconds(1);
    let year = TimeDelta::days(366);
    [
        ("in_flight_max", timing.in_flight_max, second, TimeDelta::days(7)),
        ("stuck_after", timing.stuck_after, second, year),
        ("recheck_after", timing.recheck_after, second, TimeDelta::days(7)),
        ("object_before_row", timing.object_before_row, TimeDelta::zero(), year),
        ("max_age", timing.max_age, TimeDelta::minutes(1), TimeDelta::days(3_660)),
        ("unavailable_for", timing.unavailable_for, TimeDelta::minutes(1), year),
        ("take_within", timing.take_within, TimeDelta::minutes(1), year),
        ("charge_before", timing.charge_before, TimeDelta::minutes(1), year),
        ("backoff_first", timing.backoff_first, second, year),
        ("backoff_cap", timing.backoff_cap, second, year),
    ]
}

/// What cannot be meant so: (the setting to mark, the sentence).
pub fn misfits(resolved: &Resolved) -> Vec<(&'static str, String)> {
    let timing = &resolved.timing;
    let mut found = Vec::new();
    for (name, span, least, most) in ranges(timing) {
        if span < least || span > most {
            let text = format!(
                "`{name}` is {}; expected {} to {}",
                span_text(span),
                span_text(least),
                span_text(most)
            );
            found.push((name, text));
        }
    }
    if timing.stuck_after < timing.in_flight_max {
        let text = format!(
            "`stuck_after` ({}) is below `in_flight_max` ({}): a call that may still be under way \
             would be taken for stuck; raise `stuck_after` to at least {}",
            span_text(timing.stuck_after),
            span_text(timing.in_flight_max),
            span_text(timing.in_flight_max)
        );
        found.push(("stuck_after", text));
    }
    if timing.backoff_cap < timing.backoff_first {
        let text = format!(
            "`backoff_cap` ({}) is below `backoff_first` ({})",
            span_text(timing.backoff_cap),
            span_text(timing.backoff_first)
        );
        found.push(("backoff_cap", text));
    }
    let rising = timing.watch.windows(2).all(|pair| pair.first() < pair.last());
    let positive = timing.watch.iter().all(|span| *span > TimeDelta::zero());
    if !rising || !positive || timing.watch.is_empty() || timing.watch.len() > 12 {
        let text =
            "`watch` expects 1 to 12 spans above 0, each longer than the one before".to_owned();
        found.push(("watch", text));
    }
    if resolved.max_retries > 100 {
        let text = format!("`max_retries` is {}; expected 0 to 100", resolved.max_retries);
        found.push(("max_retries", text));
    }
    for (code, text) in &resolved.amount_tolerance {
        if let Err(wrong) = tolerated(code, text) {
            found.push(("amount_tolerance", format!("`amount_tolerance`: {wrong}")));
        }
    }
    if resolved.date_window.is_some_and(|window| window <= TimeDelta::zero()) {
        found.push(("date_window", "`date_window` expects a span above 0".to_owned()));
    }
    found
}

/// Every setting with its value as the configuration writes it, in the order of `default.toml`.
pub fn listed(resolved: &Resolved) -> Vec<(&'static str, String)> {
    let timing = &resolved.timing;
    let quoted = |span: TimeDelta| format!("\"{}\"", span_text(span));
    let watch: Vec<String> = timing.watch.iter().map(|span| quoted(*span)).collect();
    let gave_up = match resolved.gave_up {
        GaveUp::Failed => "\"failed\"",
        GaveUp::Review => "\"review\"",
    };
    let permille = resolved.brake.min_tagged_permille;
    let share = crate::model::money::decimal_text(i128::from(permille), 3);
    let handbacks = resolved.brake.max_handbacks;
    let mut all = vec![
        ("in_flight_max", quoted(timing.in_flight_max)),
        ("stuck_after", quoted(timing.stuck_after)),
        ("recheck_after", quoted(timing.recheck_after)),
        ("object_before_row", quoted(timing.object_before_row)),
        ("max_age", quoted(timing.max_age)),
        ("unavailable_for", quoted(timing.unavailable_for)),
        ("max_retries", resolved.max_retries.to_string()),
        ("gave_up", gave_up.to_owned()),
        ("take_within", quoted(timing.take_within)),
        ("charge_before", quoted(timing.charge_before)),
        ("watch", format!("[{}]", watch.join(", "))),
        ("backoff_first", quoted(timing.backoff_first)),
        ("backoff_cap", quoted(timing.backoff_cap)),
        ("min_tagged_share", share),
        ("max_handbacks", handbacks.map_or("\"by size\"".to_owned(), |n| n.to_string())),
    ];
    // Without them nothing is tolerated: they are no settings with a default.
    let amounts = resolved.amount_tolerance.iter();
    let amounts: Vec<String> = amounts.map(|(code, text)| format!("{code} = \"{text}\"")).collect();
    if !amounts.is_empty() {
        all.push(("amount_tolerance", format!("{{ {} }}", amounts.join(", "))));
    }
    all.extend(resolved.date_window.map(|window| ("date_window", quoted(window))));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        for (text, want) in [
            ("0.8", Some(800)),
            ("1", Some(1_000)),
            ("1.0", Some(1_000)),
            ("0.005", Some(5)),
            ("0", Some(0)),
            ("0.0005", None),
            ("1.1", None),
            ("-0.5", None),
            ("nan", None),
            ("\"0.8\"", None),
        ] {
            assert_eq!(permille_of(text), want, "{text}");
        }
    }

    #[test]
    fn an_account_wins_over_the_policy_and_the_policy_over_the_default() {
        let minutes = |n| Some(Span(TimeDelta::minutes(n)));
        let policy = PolicySettings {
            in_flight_max: minutes(30),
            stuck_after: minutes(40),
            max_retries: Some(3),
            ..PolicySettings::default()
        };
        let account = PolicySettings { stuck_after: minutes(50), ..PolicySettings::default() };
        let resolved = account.over(&policy.over(&Resolved::default()));
        assert_eq!(resolved.timing.stuck_after, TimeDelta::minutes(50));
        assert_eq!(resolved.timing.in_flight_max, TimeDelta::minutes(30));
        assert_eq!(resolved.timing.watch.first(), Some(&TimeDelta::minutes(30)));
        assert_eq!(resolved.max_retries, 3);
        assert_eq!(resolved.timing.max_age, Timing::default().max_age);
        assert_eq!(misfits(&resolved), vec![]);
    }

    #[test]
    fn a_watch_that_nobody_wrote_follows_the_longest_call() {
        let days = TimeDelta::days;
        for (longest, watch) in [
            (TimeDelta::minutes(30), vec![TimeDelta::minutes(30), TimeDelta::hours(1), days(1)]),
            (TimeDelta::hours(1), vec![TimeDelta::hours(1), days(1)]),
            (TimeDelta::hours(2), vec![TimeDelta::hours(2), days(1)]),
            (days(3), vec![]),
        ] {
            let policy = PolicySettings {
                in_flight_max: Some(Span(longest)),
                stuck_after: Some(Span(longest)),
                ..PolicySettings::default()
            };
            let resolved = policy.over(&Resolved::default());
            let watch = [watch, vec![days(3)]].concat();
            assert_eq!(resolved.timing.watch, watch, "{longest}");
            assert_eq!(misfits(&resolved), vec![], "{longest}");
        }
        // What somebody wrote is theirs, and judged as it stands.
        let written = PolicySettings {
            in_flight_max: Some(Span(TimeDelta::hours(2))),
            stuck_after: Some(Span(TimeDelta::hours(2))),
            watch: Some(vec![Span(TimeDelta::hours(2)), Span(TimeDelta::hours(1))]),
            ..PolicySettings::default()
        };
        assert_eq!(misfits(&written.over(&Resolved::default())).len(), 1);
    }

    #[test]
    fn what_is_tolerated_is_said_exactly() {
        let of = |code: &str, text: &str| Resolved {
            amount_tolerance: BTreeMap::from([(code.to_owned(), text.to_owned())]),
            ..Resolved::default()
        };
        let euro = Currency::parse("EUR").unwrap();
        assert_eq!(of("EUR", "0.02").tolerance().amounts, BTreeMap::from([(euro, 2)]));
        assert_eq!(misfits(&of("EUR", "0.02")), vec![]);
        for (code, text) in [("EUR", "0.005"), ("EUR", "0"), ("EUR", "-1"), ("EUX", "1")] {
            assert_eq!(misfits(&of(code, text)).len(), 1, "{code} {text}");
            assert_eq!(of(code, text).tolerance(), Tolerance::default());
        }
        assert_eq!(Resolved::default().tolerance(), Tolerance::default());
    }

    #[test]
    fn the_defaults_hold_their_own_ranges() {
        assert_eq!(misfits(&Resolved::default()), vec![]);
    }
}
