//! Rule files: TOML → rules, with every mistake at its line.
//!
//! The shipped rules of each PSP stand beside its adapter and name their sources. Each rule
//! carries an example that it, and no rule before it, must decide: [`check_examples`] runs them.

use chrono::TimeDelta;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::decide::rules::{Effect, Match, Question, Rule, RuleSet, Subject};
use crate::model::evidence::{Failure, ObjectState, PspObject};
use crate::model::money::{Currency, Money};
use crate::model::time::parse_span;
use crate::model::transaction::{Kind, hex};

/// The shipped rules for Stripe.
const STRIPE: &str = include_str!("stripe.rules.toml");

/// A rule file that cannot be used. Nothing of it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct RuleError {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<toml::Spanned<Line>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    psp: Option<String>,
    subject: String,
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
    example: Example,
}

/// What the rule is for: a fact that it must decide.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    #[serde(default)]
    status: String,
    #[serde(default)]
    code: String,
    advice: Option<String>,
    currency: Option<String>,
    amount_minor: Option<i64>,
    kind: Option<String>,
}

/// One rule with its example.
#[derive(Debug, Clone)]
pub struct Exampled {
    /// The rule.
    pub rule: Rule,
    object: PspObject,
    kind: Kind,
    money: Option<Money>,
    file: String,
    line: usize,
}

/// Reads a rule file.
///
/// # Errors
/// At the first mistake, with its line.
pub fn parse(text: &str, file: &str, own: bool) -> Result<Vec<Exampled>, RuleError> {
    let at = |offset: usize, problem: String| RuleError {
        file: file.to_owned(),
        line: line_of(text, offset),
        problem,
    };
    let parsed: File = toml::from_str(text).map_err(|error| {
        at(error.span().map_or(0, |span| span.start), error.message().to_owned())
    })?;
    let mut rules: Vec<Exampled> = Vec::new();
    for spanned in parsed.rule {
        let offset = spanned.span().start;
        let line = line_of(text, offset);
        let rule = exampled(spanned.into_inner(), own, file, line)
            .map_err(|problem| at(offset, problem))?;
        if rules.iter().any(|known| known.rule.id == rule.rule.id) {
            return Err(at(offset, format!("the id `{}` stands twice", rule.rule.id)));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// The user's rules, then the shipped ones, with a version that names them all.
///
/// # Errors
/// Where the shipped rules cannot be read: a defect of the build.
pub fn with_shipped(own: Vec<Exampled>) -> Result<(RuleSet, Vec<Exampled>), RuleError> {
    let mut all = own;
    all.extend(parse(STRIPE, "stripe.rules.toml", false)?);
    let mut hash = Sha256::new();
    for exampled in &all {
        hash.update(format!("{:?}\n", exampled.rule));
    }
    let version = hex(&hash.finalize()).chars().take(12).collect();
    let rules = all.iter().map(|exampled| exampled.rule.clone()).collect();
    Ok((RuleSet { rules, version }, all))
}

/// Every rule must decide its own example, and no rule before it may.
///
/// # Errors
/// With the first that does not, and which rule took its example.
pub fn check_examples(rules: &RuleSet, examples: &[Exampled]) -> Result<(), RuleError> {
    for exampled in examples {
        let question = Question {
            psp: exampled.rule.matches.psp.as_deref().unwrap_or("stripe"),
            subject: exampled.rule.matches.subject,
            object: &exampled.object,
            kind: exampled.kind,
            money: exampled.money,
            handbacks: 0,
        };
        let found = rules.find(&question).map(|rule| rule.id.as_str());
        if found != Some(exampled.rule.id.as_str()) {
            let taken = found.unwrap_or("no rule");
            return Err(RuleError {
                file: exampled.file.clone(),
                line: exampled.line,
                problem: format!("the example of `{}` is decided by {taken}", exampled.rule.id),
            });
        }
    }
    Ok(())
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1)
}

fn exampled(line: Line, own: bool, file: &str, number: usize) -> Result<Exampled, String> {
    let subject = Subject::parse(&line.subject)
        .ok_or_else(|| format!("subject `{}`: expected failure, canceled, …", line.subject))?;
    if line.source.trim().is_empty() {
        return Err(format!("rule `{}` names no source", line.id));
    }
    let kinds = line.kind.iter().map(|kind| parse_kind(kind)).collect::<Result<_, _>>()?;
    let effect = effect(&line)?;
    let (object, kind, money) = example(&line, subject)?;
    let rule = Rule {
        id: line.id,
        own,
        matches: Match {
            psp: line.psp,
            subject,
            statuses: line.status,
            codes: line.code,
            advices: line.advice,
            kinds,
            currencies: line.currency,
            amount_at_most_minor: line.amount_at_most_minor,
            handbacks_below: line.handbacks_below,
        },
        effect,
    };
    Ok(Exampled { rule, object, kind, money, file: file.to_owned(), line: number })
}

fn parse_kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| format!("kind `{text}`: expected charge, refund or payout"))
}

fn effect(line: &Line) -> Result<Effect, String> {
    let span = |text: &String| -> Result<TimeDelta, String> {
        parse_span(text).ok_or_else(|| format!("not_before `{text}`: expected 90min, 24h, 3d"))
    };
    let not_before = line.not_before.as_ref().map(span).transpose()?;
    match line.outcome.as_str() {
        "retryable" => Ok(Effect::Retryable { not_before }),
        _other if not_before.is_some() => {
            Err("not_before goes with outcome = \"retryable\" alone".to_owned())
        }
        "failed" => Ok(Effect::Failed),
        "succeeded" => Ok(Effect::Succeeded),
        "wait" => Ok(Effect::Wait),
        "review" => Ok(Effect::Review),
        other => {
            Err(format!("outcome `{other}`: expected retryable, failed, succeeded, wait or review"))
        }
    }
}

fn example(line: &Line, subject: Subject) -> Result<(PspObject, Kind, Option<Money>), String> {
    let example = &line.example;
    let state = match subject {
        Subject::Failure => ObjectState::Failed(Failure {
            code: example.code.clone(),
            advice: example.advice.clone(),
            final_from: None,
            still_payable: false,
        }),
        Subject::Refunded | Subject::Disputed => ObjectState::Captured,
        Subject::Voided => ObjectState::Voided,
        Subject::Authorized => ObjectState::Authorized,
        Subject::ActionRequired => ObjectState::ActionRequired,
        Subject::Canceled => ObjectState::Canceled,
        Subject::Expired => ObjectState::Expired,
        Subject::UnknownStatus => ObjectState::Unknown,
    };
    let money = match (&example.currency, example.amount_minor) {
        (Some(code), minor) => {
            let currency = Currency::parse(code).map_err(|error| error.to_string())?;
            Some(Money::new(minor.unwrap_or(0), currency))
        }
        (None, Some(_)) => return Err("an example with an amount needs its currency".to_owned()),
        (None, None) => None,
    };
    let kind = example.kind.as_deref().map_or(Ok(Kind::Charge), parse_kind)?;
    let object = PspObject {
        reference: "example".to_owned(),
        aliases: Vec::new(),
        kind: String::new(),
        state,
        status: example.status.clone(),
        amount: money,
        captured: None,
        refunded_minor: 0,
        disputed: subject == Subject::Disputed,
        created_at: crate::model::time::Instant::default(),
        tag: None,
    };
    Ok((object, kind, money))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_rules_decide_their_own_examples() {
        let (rules, examples) = with_shipped(Vec::new()).unwrap();
        assert!(examples.len() > 20);
        check_examples(&rules, &examples).unwrap();
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let rule = |rest: &str| format!("\n[[rule]]\nid = \"x\"\n{rest}");
        let cases = [
            ("subject = \"failure\"", "missing field"),
            (
                "subject = \"nonsense\"\noutcome = \"failed\"\nsource = \"s\"\nexample = {}",
                "subject",
            ),
            ("subject = \"failure\"\noutcome = \"win\"\nsource = \"s\"\nexample = {}", "outcome"),
            ("subject = \"failure\"\noutcome = \"failed\"\nsource = \" \"\nexample = {}", "source"),
            (
                "subject = \"failure\"\noutcome = \"failed\"\nnot_before = \"1h\"\nsource = \"s\"\n\
                 example = {}",
                "not_before",
            ),
            ("subject = \"failure\"\noutcomes = \"failed\"", "unknown field"),
        ];
        for (rest, part) in cases {
            let error = parse(&rule(rest), "mine.toml", true).unwrap_err();
            assert!(error.to_string().contains(part), "{rest}: {error}");
            assert!(error.line >= 2, "{error}");
        }
    }

    #[test]
    fn an_example_that_an_earlier_rule_takes_is_a_mistake() {
        let rule = |id: &str| {
            format!(
                "[[rule]]\nid = \"{id}\"\nsubject = \"failure\"\ncode = [\"a\"]\n\
                 outcome = \"failed\"\nsource = \"s\"\nexample = {{ code = \"a\" }}\n"
            )
        };
        let own = parse(&format!("{}{}", rule("one"), rule("two")), "mine.toml", true).unwrap();
        let (rules, examples) = with_shipped(own).unwrap();
        let error = check_examples(&rules, &examples).unwrap_err();
        assert!(error.to_string().contains("`two` is decided by one"), "{error}");
    }
}
