//! A rule begun from what a case shows, for a person to finish.
//!
//! It says `review`, which is what the case is by itself: what the code really means, and where
//! that is written, is the person's to say. As it stands it changes no outcome.

use crate::decide::permit::stated_failure;
use crate::decide::rules::{Question, Subject};

/// What a draft is made from.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    /// What a rule is asked about.
    pub question: Question<'a>,
    /// The case: `C-1043`.
    pub case: &'a str,
    /// Why it is a case.
    pub reason: &'a str,
}

/// The text of a rule and its example.
#[must_use]
pub fn draft(from: &Draft<'_>) -> String {
    let q = &from.question;
    let code = q.code().filter(|code| !code.is_empty());
    let named = code.unwrap_or(q.object.status.as_str());
    let mut lines = vec![
        format!("# From case {} ({}): edit", from.case, from.reason),
        "# `outcome` and `source`, and say by `means` what the code means;".to_owned(),
        "# `tieout rules diff FILE` shows what it would change.".to_owned(),
        "[[rule]]".to_owned(),
        format!("id = {}", quoted(&format!("own.{}", id_of(q.subject.as_str(), named)))),
        format!("psp = {}", quoted(q.psp)),
        format!("when = {}", quoted(q.subject.as_str())),
        format!("kind = [{}]", quoted(q.kind.as_str())),
    ];
    match code {
        Some(code) => lines.push(format!("code = [{}]", quoted(code))),
        None if q.object.status.is_empty() => {}
        None => lines.push(format!("status = [{}]", quoted(&of_any_line(&q.object.status)))),
    }
    let others = others(q).map(|words| format!("            # or {words}"));
    lines.push(format!("outcome = \"review\"{}", others.unwrap_or_default()));
    let source = format!("case {}; who decided it, and where it is written", from.case);
    lines.push(format!("source = {}", quoted(&source)));
    lines.push(format!("example = {{ {} }}", example(q)));
    lines.join("\n")
}

/// What else such a rule may say, as a comment.
fn others(q: &Question<'_>) -> Option<&'static str> {
    match q.subject {
        Subject::Returned => None,
        Subject::Refunded | Subject::Voided | Subject::Disputed => Some("succeeded, wait"),
        _ if q.object.can_still_capture() => Some("wait; none ends what can still be captured"),
        Subject::Failure => Some("retryable, failed, wait"),
        Subject::Authorized
        | Subject::ActionRequired
        | Subject::Canceled
        | Subject::Expired
        | Subject::UnknownStatus => Some("failed, wait"),
    }
}

/// What the case showed, so that the rule is tried on it ever after.
fn example(q: &Question<'_>) -> String {
    let mut fields = vec![format!("status = {}", quoted(&q.object.status))];
    if let Some(code) = q.code() {
        fields.push(format!("code = {}", quoted(code)));
    }
    if let Some(advice) = stated_failure(q.object).and_then(|failure| failure.advice.as_deref()) {
        fields.push(format!("advice = {}", quoted(advice)));
    }
    fields.push(format!("kind = {}", quoted(q.kind.as_str())));
    if let Some(money) = q.money {
        fields.push(format!("currency = {}", quoted(money.currency.code())));
        fields.push(format!("amount_minor = {}", money.minor));
    }
    if q.handbacks > 0 {
        fields.push(format!("handbacks = {}", q.handbacks));
    }
    fields.join(", ")
}

/// What a file says of a payment names the line; the same word of another line is meant too.
fn of_any_line(status: &str) -> String {
    match status.split_once(" (F") {
        Some((word, _place)) => format!("{word} (*"),
        None => status.to_owned(),
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// An id's letters, of whatever the PSP wrote.
fn id_of(when: &str, text: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let id: String = text.chars().take(60).map(kept).collect();
    format!("{when}.{}", id.trim_matches('_'))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::model::evidence::{Failure, ObjectState, PspObject};
    use crate::model::money::{Currency, Money};
    use crate::model::transaction::Kind;
    use crate::psp::rules::{parse, with_shipped};

    fn object(code: &str) -> PspObject {
        let state = ObjectState::Failed(Failure {
            code: code.to_owned(),
            advice: None,
            network_advice: None,
            final_from: None,
            still_payable: true,
        });
        PspObject::plain("payment_intent", state)
    }

    #[test]
    fn what_can_still_be_captured_is_offered_no_end() {
        for (minor, words) in
            [(0, "# or failed, wait"), (700, "# or wait; none ends what can still")]
        {
            let state = ObjectState::Unknown;
            let object = PspObject { state, capturable_minor: minor, ..object("") };
            let question = Question {
                psp: "stripe",
                subject: Subject::UnknownStatus,
                object: &object,
                kind: Kind::Charge,
                money: None,
                handbacks: 0,
                age: None,
            };
            let text = draft(&Draft { question, case: "C-7", reason: "psp_status_unknown" });
            assert!(text.contains(words), "{text}");
            parse(&text, "draft.toml", true).unwrap_or_else(|e| panic!("{e}: {text}"));
        }
    }

    #[test]
    fn a_draft_is_a_rule_that_holds_as_it_stands() {
        for code in ["frobnicated_by_issuer", "with \"quotes\" and \\ and\nlines", "Ä*?"] {
            let failed = object(code);
            let strange = PspObject { state: ObjectState::Unknown, ..object("") };
            let back = PspObject { returned: Some(code.to_owned()), ..object("") };
            for (object, subject) in [
                (&failed, Subject::Failure),
                (&strange, Subject::UnknownStatus),
                (&back, Subject::Returned),
            ] {
                let question = Question {
                    psp: "stripe",
                    subject,
                    object,
                    kind: Kind::Charge,
                    money: Some(Money::new(1_999, Currency::parse("EUR").unwrap())),
                    handbacks: 2,
                    age: Some(TimeDelta::hours(2)),
                };
                let text = draft(&Draft { question, case: "C-7", reason: "decline_unknown" });
                let file = parse(&text, "draft.toml", true);
                let file = file.unwrap_or_else(|e| panic!("{e}: {text}"));
                assert_eq!(file.rules.len(), 1, "{text}");
                with_shipped(vec![file]).unwrap_or_else(|e| panic!("{e}: {text}"));
            }
        }
    }
}
