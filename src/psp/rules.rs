//! Rule files: what a PSP's statuses and codes mean, as TOML that a person can read and check.
//!
//! A rule without a source or an example is refused, and so is one whose own example another rule
//! takes first: what is never reached misleads whoever reads it. The effect of a rule is bounded
//! by the decision table; a rule file cannot make money appear or a partial answer complete.
//!
//! ```toml
//! psp = "stripe"                     # of every rule of the file; leave out to mean every PSP
//!
//! [[rule]]
//! id = "stripe.delayed"
//! when = "failure"                   # failure, refunded, voided, disputed, authorized,
//!                                    # action_required, canceled, expired, unknown_status
//! code = ["insufficient_funds"]      # also: advice, status, kind, currency
//! handbacks_below = 3                # also: amount_at_most_minor
//! outcome = "retryable"              # retryable, failed, succeeded, wait, review
//! not_before = "24h"                 # of a retryable one: how much later
//! source = "https://docs.stripe.com/declines/codes"
//! example = { status = "requires_payment_method", code = "insufficient_funds" }
//! ```

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use crate::decide::rules::{Effect, Match, Question, Rule, RuleSet, Subject};
use crate::model::evidence::{Failure, ObjectState, PspObject};
use crate::model::money::{Currency, Money};
use crate::model::time::parse_span;
use crate::model::transaction::{Kind, hex};

/// Characters of the version: enough to tell rule files apart in a journal.
const VERSION_CHARS: usize = 12;

const STRIPE_RULES: &str = include_str!("stripe.rules.toml");

/// A rule file, read and checked.
#[derive(Debug, Clone)]
pub struct RuleFile {
    /// Its rules, in their order.
    pub rules: Vec<Rule>,
    examples: Vec<Example>,
    text: String,
}

/// Why a rule file is refused: where, and what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct RuleError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what was expected.
    pub problem: String,
}

/// A case that a rule must decide.
#[derive(Debug, Clone)]
struct Example {
    rule: String,
    line: usize,
    file: String,
    psp: Option<String>,
    subject: Subject,
    case: RawExample,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    psp: Option<String>,
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: String,
    when: String,
    #[serde(default)]
    status: Vec<String>,
    #[serde(default)]
    code: Vec<String>,
    #[serde(default)]
    advice: Vec<String>,
    #[serde(default)]
    kind: Vec<String>,
    #[serde(default)]
    currency: Vec<String>,
    amount_at_most_minor: Option<i64>,
    handbacks_below: Option<u32>,
    outcome: String,
    not_before: Option<String>,
    source: String,
    example: RawExample,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExample {
    #[serde(default)]
    status: String,
    #[serde(default)]
    code: String,
    advice: Option<String>,
    #[serde(default = "charge")]
    kind: String,
    currency: Option<String>,
    amount_minor: Option<i64>,
    #[serde(default)]
    handbacks: u32,
}

fn charge() -> String {
    Kind::Charge.as_str().to_owned()
}

/// Reads a rule file. `own` says that it is the user's and not shipped.
///
/// # Errors
/// With the file, the line and what was expected.
pub fn parse(text: &str, source_name: &str, own: bool) -> Result<RuleFile, RuleError> {
    let refuse = |offset: usize, problem: String| RuleError {
        file: source_name.to_owned(),
        line: line_of(text, offset),
        problem,
    };
    let raw: RawFile = toml::from_str(text)
        .map_err(|e| refuse(e.span().map_or(0, |span| span.start), e.message().to_owned()))?;
    let mut file = RuleFile { rules: Vec::new(), examples: Vec::new(), text: text.to_owned() };
    let mut ids = HashSet::new();
    for spanned in raw.rule {
        let offset = spanned.span().start;
        let raw_rule = spanned.into_inner();
        if !ids.insert(raw_rule.id.clone()) {
            return Err(refuse(offset, format!("a second rule has the id `{}`", raw_rule.id)));
        }
        let (rule, subject) = rule_of(&raw_rule, raw.psp.as_deref(), own)
            .map_err(|problem| refuse(offset, format!("rule `{}`: {problem}", raw_rule.id)))?;
        file.examples.push(Example {
            rule: rule.id.clone(),
            line: line_of(text, offset),
            file: source_name.to_owned(),
            psp: raw.psp.clone(),
            subject,
            case: raw_rule.example,
        });
        file.rules.push(rule);
    }
    Ok(file)
}

/// The rules shipped for a PSP; an adapter without rules has none.
///
/// # Errors
/// Never for the files shipped, which the tests read.
pub fn shipped(psp: &str) -> Result<RuleFile, RuleError> {
    match psp {
        "stripe" => parse(STRIPE_RULES, "stripe.rules.toml", false),
        _other => parse("", "none", false),
    }
}

/// Puts rule files together in the order in which their rules are tried: the user's first.
#[must_use]
pub fn combine(files: &[RuleFile]) -> RuleSet {
    let mut digest = Sha256::new();
    for file in files {
        // The length keeps a line moved from one file's end to the next's start visible.
        digest.update(u64::try_from(file.text.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(file.text.as_bytes());
    }
    let version: String = hex(&digest.finalize()).chars().take(VERSION_CHARS).collect();
    RuleSet { rules: files.iter().flat_map(|file| file.rules.clone()).collect(), version }
}

/// Tries every file's examples against all of them together, in their order: each must be decided
/// by the rule that it stands in.
///
/// # Errors
/// With the first example that another rule decides, or none.
pub fn check_examples(files: &[RuleFile]) -> Result<(), RuleError> {
    let set = combine(files);
    let own: HashSet<&str> =
        files.iter().flat_map(|f| &f.rules).filter(|r| r.own).map(|r| r.id.as_str()).collect();
    for example in files.iter().flat_map(|file| &file.examples) {
        let found = decided_by(&set, example);
        // The user may take over what a shipped rule said: that is what own rules are for.
        let is_taken_over = found.as_deref().is_some_and(|id| own.contains(id))
            && !own.contains(example.rule.as_str());
        if found.as_deref() == Some(example.rule.as_str()) || is_taken_over {
            continue;
        }
        let problem = match found {
            Some(other) => format!("its example is decided by rule `{other}`, which comes first"),
            None => "it does not match its own example".to_owned(),
        };
        return Err(RuleError {
            file: example.file.clone(),
            line: example.line,
            problem: format!("rule `{}`: {problem}", example.rule),
        });
    }
    Ok(())
}

fn decided_by(set: &RuleSet, example: &Example) -> Option<String> {
    let kind = Kind::parse(&example.case.kind)?;
    let currency = Currency::parse(example.case.currency.as_deref().unwrap_or("EUR")).ok()?;
    let money = Money::new(example.case.amount_minor.unwrap_or(1_000), currency);
    let object = object_of(example, money);
    let question = Question {
        psp: example.psp.as_deref().unwrap_or("any"),
        subject: example.subject,
        object: &object,
        kind,
        money: Some(money),
        handbacks: example.case.handbacks,
    };
    set.find(&question).map(|rule| rule.id.clone())
}

/// An object that shows the example's fact.
fn object_of(example: &Example, money: Money) -> PspObject {
    let failure = Failure {
        code: example.case.code.clone(),
        advice: example.case.advice.clone(),
        final_from: None,
        still_payable: false,
    };
    let state = match example.subject {
        Subject::Failure => ObjectState::Failed(failure),
        Subject::Refunded | Subject::Disputed => ObjectState::Captured,
        Subject::Voided => ObjectState::Voided,
        Subject::Authorized => ObjectState::Authorized,
        Subject::ActionRequired => ObjectState::ActionRequired,
        Subject::Canceled => ObjectState::Canceled,
        Subject::Expired => ObjectState::Expired,
        Subject::UnknownStatus => ObjectState::Unknown,
    };
    PspObject {
        reference: "example".to_owned(),
        aliases: Vec::new(),
        kind: "example".to_owned(),
        state,
        status: example.case.status.clone(),
        amount: Some(money),
        captured: None,
        refunded_minor: 0,
        disputed: example.subject == Subject::Disputed,
        created_at: DateTime::<chrono::Utc>::MIN_UTC,
        tag: None,
        returned: None,
    }
}

fn rule_of(raw: &RawRule, psp: Option<&str>, own: bool) -> Result<(Rule, Subject), String> {
    let is_id = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if raw.id.is_empty() || !raw.id.bytes().all(is_id) {
        return Err("id: expected letters, digits, `.`, `_` or `-`".to_owned());
    }
    if raw.source.trim().is_empty() {
        return Err("source: expected where this is written, or who decided it".to_owned());
    }
    let subject = Subject::parse(&raw.when).ok_or_else(|| {
        format!(
            "when: `{}` is none of failure, refunded, voided, disputed, authorized, \
             action_required, canceled, expired, unknown_status",
            raw.when
        )
    })?;
    if subject != Subject::Failure && !(raw.code.is_empty() && raw.advice.is_empty()) {
        return Err(format!("code and advice go with when = \"failure\", not `{}`", raw.when));
    }
    let effect = effect_of(raw)?;
    let can_retry = matches!(subject, Subject::Failure);
    if matches!(effect, Effect::Retryable { .. }) && !can_retry {
        return Err("outcome: only a stated failure can make a row retryable".to_owned());
    }
    let matches = Match {
        psp: psp.map(str::to_owned),
        subject,
        statuses: raw.status.clone(),
        codes: raw.code.clone(),
        advices: raw.advice.clone(),
        kinds: kinds_of(raw)?,
        currencies: currencies_of(raw)?,
        amount_at_most_minor: raw.amount_at_most_minor,
        handbacks_below: raw.handbacks_below,
    };
    if Kind::parse(&raw.example.kind).is_none() {
        return Err(format!("example: kind `{}` is no kind of movement", raw.example.kind));
    }
    Ok((Rule { id: raw.id.clone(), own, matches, effect }, subject))
}

fn effect_of(raw: &RawRule) -> Result<Effect, String> {
    let not_before = match &raw.not_before {
        Some(text) => {
            Some(parse_span(text).filter(|s| *s >= TimeDelta::zero()).ok_or_else(|| {
                format!("not_before: `{text}` is not a span such as 15min, 24h or 7d")
            })?)
        }
        None => None,
    };
    let effect = match raw.outcome.as_str() {
        "retryable" => return Ok(Effect::Retryable { not_before }),
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
    match not_before {
        Some(_) => Err("not_before goes with outcome = \"retryable\"".to_owned()),
        None => Ok(effect),
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

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    before.filter(|byte| *byte == b'\n').count().saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "[[rule]]\nid = \"a\"\nwhen = \"failure\"\ncode = [\"x\"]\n\
                        outcome = \"failed\"\nsource = \"us\"\nexample = { code = \"x\" }\n";

    #[test]
    fn the_shipped_rules_decide_their_own_examples() {
        let file = shipped("stripe").unwrap();
        check_examples(std::slice::from_ref(&file)).unwrap();
        assert!(file.rules.iter().all(|rule| !rule.own));
        let set = combine(&[file]);
        assert_eq!(set.version.len(), VERSION_CHARS);
    }

    #[test]
    fn every_decline_code_of_the_reference_has_a_rule_and_unknown_ones_have_none() {
        let file = shipped("stripe").unwrap();
        let find = |code: &str| {
            file.rules
                .iter()
                .find(|r| r.matches.codes.iter().any(|c| c == code))
                .map(|rule| rule.effect.outcome().as_str())
        };
        for (codes, outcome) in [
            (
                "try_again_later processing_error issuer_not_available reenter_transaction \
              approve_with_id",
                "retryable",
            ),
            (
                "insufficient_funds card_velocity_exceeded withdrawal_count_limit_exceeded \
              do_not_honor generic_decline call_issuer no_action_taken",
                "retryable",
            ),
            (
                "authentication_required authentication_not_handled \
              mobile_device_authentication_required incorrect_number incorrect_cvc incorrect_pin \
              incorrect_zip incorrect_address invalid_cvc invalid_expiry_month \
              invalid_expiry_year invalid_number invalid_pin offline_pin_required \
              online_or_offline_pin_required",
                "failed",
            ),
            (
                "expired_card lost_card stolen_card pickup_card restricted_card fraudulent \
              merchant_blacklist do_not_try_again revocation_of_authorization \
              revocation_of_all_authorizations stop_payment_order security_violation \
              service_not_allowed transaction_not_allowed not_permitted invalid_account \
              new_account_information_available card_not_supported currency_not_supported \
              pin_try_exceeded invalid_amount testmode_decline blocked",
                "failed",
            ),
            ("duplicate_transaction", "review"),
        ] {
            for code in codes.split_whitespace() {
                assert_eq!(find(code), Some(outcome), "{code}");
            }
        }
        assert_eq!(find("a_code_of_tomorrow"), None);
    }

    #[test]
    fn a_bad_rule_is_refused_with_its_line() {
        for (from, to, says) in [
            ("source = \"us\"\n", "", "f.toml:1: missing field `source`"),
            ("source = \"us\"", "source = \" \"", "f.toml:1: rule `a`: source"),
            ("example = { code = \"x\" }\n", "", "missing field `example`"),
            ("outcome = \"failed\"", "outcome = \"paid\"", "outcome: `paid` is none of"),
            ("when = \"failure\"", "when = \"broken\"", "when: `broken` is none of"),
            ("when = \"failure\"", "when = \"canceled\"", "code and advice go with"),
            ("id = \"a\"", "id = \"a b\"", "id: expected"),
            ("code = [\"x\"]", "codes = [\"x\"]", "f.toml:4: unknown field `codes`"),
            ("code = [\"x\"]", "code = [", "f.toml:5"),
            ("outcome = \"failed\"", "outcome = \"failed\"\nnot_before = \"1h\"", "goes with"),
            ("code = [\"x\"]", "currency = [\"XYZ\"]", "currency: `XYZ`"),
            ("code = [\"x\"]", "kind = [\"gift\"]", "kind: `gift`"),
        ] {
            let text = RULE.replace(from, to);
            let said = parse(&text, "f.toml", true).unwrap_err().to_string();
            assert!(said.contains(says), "{to}: {said}");
        }
        let twice = parse(&format!("{RULE}\n{RULE}"), "f.toml", true).unwrap_err();
        assert_eq!((twice.line, twice.problem.as_str()), (9, "a second rule has the id `a`"));
    }

    #[test]
    fn an_example_that_another_rule_takes_is_refused() {
        let second = RULE.replace("\"a\"", "\"b\"");
        let file = parse(&format!("{RULE}{second}"), "f.toml", false).unwrap();
        let said = check_examples(&[file]).unwrap_err().to_string();
        assert_eq!(
            said,
            "f.toml:8: rule `b`: its example is decided by rule `a`, which comes first"
        );
        let missed =
            parse(&RULE.replace("{ code = \"x\" }", "{ code = \"y\" }"), "f", true).unwrap();
        assert!(check_examples(&[missed]).unwrap_err().to_string().contains("own example"));
        let (own, base) = (parse(RULE, "own", true).unwrap(), parse(&second, "b", false).unwrap());
        check_examples(&[own.clone(), base.clone()]).unwrap();
        assert_ne!(combine(std::slice::from_ref(&own)).version, combine(&[own, base]).version);
    }
}
