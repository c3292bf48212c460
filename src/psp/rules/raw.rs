//! The words of a rule file, and what they come to: everything that cannot be meant so is refused.

use chrono::TimeDelta;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use toml::Spanned;

use crate::decide::rules::{Effect, Match, Rule, Subject};
use crate::model::money::Currency;
use crate::model::time::parse_span;
use crate::model::transaction::Kind;
use crate::psp::settings::PspKind;

/// The most hand-backs that a `limit` may name, as for `max_retries`.
const LIMIT_MAX: u32 = 100;
/// Nobody waits longer than this for another try.
const NOT_BEFORE_MAX: TimeDelta = TimeDelta::days(366);
/// The most characters of `means`: it stands in a sentence.
const MEANS_MAX: usize = 120;

/// Rules: what statuses and codes mean. The first rule that matches wins.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(title = "rules.toml")]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    /// The PSP of every rule of the file that names none; left out: any.
    #[schemars(extend("enum" = ["stripe", "files", null]))]
    pub(super) psp: Option<String>,
    /// The file's version, in words of your own.
    pub(super) version: Option<String>,
    /// The rules, in the order in which they are tried.
    #[serde(default)]
    #[schemars(with = "Vec<RawRule>")]
    pub(super) rule: Vec<Spanned<RawRule>>,
}

/// A rule: what it matches, what it says, where that is written, and an example.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    /// The name that journals and cases call it by: letters, digits, `.`, `_`, `-`.
    pub(super) id: String,
    /// The PSP.
    #[schemars(extend("enum" = ["stripe", "files", null]))]
    psp: Option<String>,
    /// What the rule speaks of.
    #[schemars(extend("enum" = [
        "failure", "returned", "refunded", "voided", "disputed", "authorized", "action_required",
        "canceled", "expired", "unknown_status",
    ]))]
    when: String,
    /// The PSP's own status words; `*` and `?` make a family.
    #[serde(default)]
    status: Vec<String>,
    /// Codes of a failure or a return; `AC*` is a family.
    #[serde(default)]
    code: Vec<String>,
    /// The PSP's own advice on a failure.
    #[serde(default)]
    advice: Vec<String>,
    /// Kinds of movement: charge, refund, payout.
    #[serde(default)]
    kind: Vec<String>,
    /// Currencies of the row.
    #[serde(default)]
    currency: Vec<String>,
    /// Only at least this amount, in minor units of `currency`.
    amount_at_least_minor: Option<i64>,
    /// Only at most this amount, in minor units of `currency`.
    amount_at_most_minor: Option<i64>,
    /// Only rows made at least so long ago: `3d`.
    age_at_least: Option<String>,
    /// Only rows made less than so long ago.
    age_below: Option<String>,
    /// Only rows handed back fewer times than this.
    handbacks_below: Option<u32>,
    /// What it says.
    #[schemars(extend("enum" = ["retryable", "failed", "succeeded", "wait", "review"]))]
    outcome: String,
    /// Of a retryable one: how much later to charge.
    not_before: Option<String>,
    /// Of a retryable one: at most so many hand-backs.
    limit: Option<u32>,
    /// What it says beyond the limit.
    #[schemars(extend("enum" = ["review", "failed", null]))]
    then: Option<String>,
    /// What the code means, in a few words.
    means: Option<String>,
    /// Where it is written, or who decided it.
    pub(super) source: String,
    /// A case that this rule must decide.
    example: RawExample,
}

/// A case that a rule must decide.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExample {
    /// The PSP, where the rule names none.
    pub(super) psp: Option<String>,
    /// The PSP's status word.
    #[serde(default)]
    pub(super) status: String,
    /// The code.
    #[serde(default)]
    pub(super) code: String,
    /// The PSP's advice.
    pub(super) advice: Option<String>,
    /// The row's kind.
    #[serde(default = "charge")]
    pub(super) kind: String,
    /// The row's currency; EUR where it is left out.
    pub(super) currency: Option<String>,
    /// The row's amount, in minor units; 1000 where it is left out.
    pub(super) amount_minor: Option<i64>,
    /// How long ago the row was made; an hour where it is left out.
    pub(super) age: Option<String>,
    /// How often the row was handed back.
    #[serde(default)]
    pub(super) handbacks: u32,
}

/// The JSON schema of a rule file, in draft 2020-12.
pub(super) fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RawFile>().to_value()
}

fn charge() -> String {
    Kind::Charge.as_str().to_owned()
}

/// The rules that a `[[rule]]` stands for, each with its example: two where it has a `limit`.
pub(super) fn rules_of(
    raw: &RawRule,
    psp: Option<&str>,
    own: bool,
) -> Result<Vec<(Rule, RawExample)>, String> {
    words_are_sound(raw)?;
    let subject = subject_of(raw)?;
    let matches = match_of(raw, raw.psp.as_deref().or(psp), subject)?;
    let rule = Rule {
        id: raw.id.clone(),
        own,
        matches,
        effect: effect_of(raw, subject)?,
        means: raw.means.clone().unwrap_or_default(),
    };
    let Some((limit, then)) = limit_of(raw)? else { return Ok(vec![(rule, raw.example.clone())]) };
    let mut limited = rule.clone();
    limited.matches.handbacks_below = Some(limit);
    let capped = Rule { id: format!("{}.capped", rule.id), effect: then, ..rule };
    let beyond = RawExample { handbacks: limit, ..raw.example.clone() };
    Ok(vec![(limited, raw.example.clone()), (capped, beyond)])
}

fn words_are_sound(raw: &RawRule) -> Result<(), String> {
    let is_id = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if raw.id.is_empty() || !raw.id.bytes().all(is_id) {
        return Err("id: expected letters, digits, `.`, `_` or `-`".to_owned());
    }
    if raw.source.trim().is_empty() {
        return Err("source: expected where this is written, or who decided it".to_owned());
    }
    let is_sentence = |means: &String| {
        !means.trim().is_empty() && !means.contains('\n') && means.chars().count() <= MEANS_MAX
    };
    if raw.means.as_ref().is_some_and(|means| !is_sentence(means)) {
        return Err(format!("means: expected a few words on one line, at most {MEANS_MAX}"));
    }
    if Kind::parse(&raw.example.kind).is_none() {
        return Err(format!("example: kind `{}` is no kind of movement", raw.example.kind));
    }
    if let Some(age) = raw.example.age.as_ref().filter(|age| parse_span(age).is_none()) {
        return Err(format!("example: age: `{age}` is not a span such as 15min, 24h or 7d"));
    }
    Ok(())
}

fn subject_of(raw: &RawRule) -> Result<Subject, String> {
    let subject = Subject::parse(&raw.when).ok_or_else(|| {
        let known = Subject::ALL.map(Subject::as_str).join(", ");
        format!("when: `{}` is none of {known}", raw.when)
    })?;
    let is_coded = matches!(subject, Subject::Failure | Subject::Returned);
    let has_advice = !raw.advice.is_empty() && subject != Subject::Failure;
    if has_advice || (!raw.code.is_empty() && !is_coded) {
        return Err(format!("code and advice go with when = \"failure\", not `{}`", raw.when));
    }
    Ok(subject)
}

fn match_of(raw: &RawRule, psp: Option<&str>, subject: Subject) -> Result<Match, String> {
    let known = [PspKind::Stripe, PspKind::Files].map(PspKind::as_str);
    if let Some(psp) = psp.filter(|psp| !known.contains(psp)) {
        return Err(format!("psp: `{psp}` is none of {}", known.join(", ")));
    }
    let matches = Match {
        psp: psp.map(str::to_owned),
        statuses: raw.status.clone(),
        codes: raw.code.clone(),
        advices: raw.advice.clone(),
        kinds: kinds_of(raw)?,
        currencies: currencies_of(raw)?,
        amount_at_least_minor: raw.amount_at_least_minor,
        amount_at_most_minor: raw.amount_at_most_minor,
        age_at_least: span_of("age_at_least", raw.age_at_least.as_ref())?,
        age_below: span_of("age_below", raw.age_below.as_ref())?,
        handbacks_below: raw.handbacks_below,
        ..Match::of(subject)
    };
    ranges_hold(&matches)?;
    Ok(matches)
}

/// A range that holds nothing is a slip of the pen; so is an amount of no currency, since a minor
/// unit is a hundredth here and a whole there.
fn ranges_hold(matches: &Match) -> Result<(), String> {
    let (least, most) = (matches.amount_at_least_minor, matches.amount_at_most_minor);
    for (field, amount) in [("amount_at_least_minor", least), ("amount_at_most_minor", most)] {
        if let Some(amount) = amount.filter(|amount| *amount < 0) {
            return Err(format!("{field}: {amount} is no amount of a row; expected 0 or more"));
        }
    }
    if (least.is_some() || most.is_some()) && matches.currencies.is_empty() {
        let text = "amount_at_least_minor, amount_at_most_minor: amounts are counted in a \
                    currency; name it";
        return Err(text.to_owned());
    }
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        return Err(format!("amount: at least {least} and at most {most} is nothing"));
    }
    if let (Some(least), Some(limit)) = (matches.age_at_least, matches.age_below)
        && least >= limit
    {
        return Err("age: nothing is at least so old and younger than that".to_owned());
    }
    Ok(())
}

fn span_of(field: &str, text: Option<&String>) -> Result<Option<TimeDelta>, String> {
    text.map(|text| {
        parse_span(text)
            .filter(|span| *span >= TimeDelta::zero())
            .ok_or_else(|| format!("{field}: `{text}` is not a span such as 15min, 24h or 7d"))
    })
    .transpose()
}

fn effect_of(raw: &RawRule, subject: Subject) -> Result<Effect, String> {
    let not_before = span_of("not_before", raw.not_before.as_ref())?;
    if not_before.is_some_and(|span| span > NOT_BEFORE_MAX) {
        return Err("not_before: expected at most 366d".to_owned());
    }
    let effect = match raw.outcome.as_str() {
        "retryable" => Effect::Retryable { not_before },
        "failed" => Effect::Failed,
        "succeeded" => Effect::Succeeded,
        "wait" => Effect::Wait,
        "review" => Effect::Review,
        other => {
            return Err(format!(
                "outcome: `{other}` is none of retryable, failed, succeeded, wait, review"
            ));
        }
    };
    let is_retryable = matches!(effect, Effect::Retryable { .. });
    if not_before.is_some() && !is_retryable {
        return Err("not_before goes with outcome = \"retryable\"".to_owned());
    }
    if is_retryable && subject != Subject::Failure {
        return Err("outcome: only a stated failure can make a row retryable".to_owned());
    }
    let decides = is_retryable || effect == Effect::Failed;
    if decides {
        names_what_it_decides(raw, subject)?;
    }
    if subject == Subject::Returned && effect != Effect::Review {
        let text = "outcome: what came back is a person's, expected review; the rule says what \
                    the code means";
        return Err(text.to_owned());
    }
    let has_moved = matches!(subject, Subject::Refunded | Subject::Voided | Subject::Disputed);
    if effect == Effect::Failed && has_moved {
        return Err(format!(
            "outcome: money moved by a `{}`: such a row is a person's and no rule fails it; \
             expected succeeded, wait or review",
            raw.when
        ));
    }
    if effect == Effect::Succeeded && !has_moved {
        return Err(format!("outcome: nothing moved by a `{}`: it cannot succeed", raw.when));
    }
    Ok(effect)
}

/// What is unheard of is named, and no family of it stands for all that there may be: `a*` and its
/// 25 sisters together would be every failure. An unknown status may be one that still captures.
fn names_what_it_decides(raw: &RawRule, subject: Subject) -> Result<(), String> {
    let none: &[String] = &[];
    let (first, second, names, every) = match subject {
        Subject::Failure => (&*raw.code, &*raw.advice, "codes or advices", "failure"),
        Subject::UnknownStatus => (&*raw.status, none, "statuses", "unknown status"),
        _known => return Ok(()),
    };
    let mut words = first.iter().chain(second).peekable();
    if words.peek().is_none() || words.clone().any(|word| !names_anything(word)) {
        return Err(format!(
            "outcome: a {} rule names its {names}; one that takes every {every} would decide what \
             nobody has thought of yet",
            raw.outcome
        ));
    }
    match words.find(|word| is_too_broad(word)) {
        Some(broad) => Err(format!(
            "outcome: `{broad}` is too broad a family for a {} rule: it names at least two letters \
             or digits in a row, as `AC*` does; with fewer it would decide what nobody has thought \
             of yet",
            raw.outcome
        )),
        None => Ok(()),
    }
}

fn names_anything(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_alphanumeric())
}

/// A family whose longest word is one letter.
fn is_too_broad(word: &str) -> bool {
    let is_family = word.contains(['*', '?']);
    let mut words = word.split(|c: char| !c.is_alphanumeric());
    is_family && !words.any(|part| part.chars().count() >= 2)
}

/// How often, and what then.
fn limit_of(raw: &RawRule) -> Result<Option<(u32, Effect)>, String> {
    let Some(limit) = raw.limit else {
        return match raw.then {
            Some(_) => Err("then goes with a limit".to_owned()),
            None => Ok(None),
        };
    };
    if raw.outcome != "retryable" {
        return Err("limit goes with outcome = \"retryable\"".to_owned());
    }
    if raw.handbacks_below.is_some() {
        return Err("limit and handbacks_below are two words for one thing".to_owned());
    }
    if limit == 0 || limit > LIMIT_MAX {
        return Err(format!("limit: expected 1 to {LIMIT_MAX} hand-backs"));
    }
    match raw.then.as_deref().unwrap_or("review") {
        "review" => Ok(Some((limit, Effect::Review))),
        "failed" => Ok(Some((limit, Effect::Failed))),
        other => Err(format!("then: `{other}` is neither review nor failed")),
    }
}

fn kinds_of(raw: &RawRule) -> Result<Vec<Kind>, String> {
    let kinds = raw.kind.iter();
    kinds
        .map(|kind| {
            Kind::parse(kind)
                .ok_or_else(|| format!("kind: `{kind}` is none of charge, refund, payout"))
        })
        .collect()
}

fn currencies_of(raw: &RawRule) -> Result<Vec<String>, String> {
    let currencies = raw.currency.iter();
    currencies
        .map(|text| {
            let currency = Currency::parse(text).map_err(|unknown| format!("currency: {unknown}"));
            currency.map(|currency| currency.code().to_owned())
        })
        .collect()
}
