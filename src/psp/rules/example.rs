//! An example of a rule: an object that shows the rule's fact, and who decides it.

use chrono::{DateTime, TimeDelta, Utc};

use crate::decide::rules::{Question, Rule, RuleSet, Subject};
use crate::model::evidence::{Failure, ObjectState, PspObject};
use crate::model::money::{Currency, Money};
use crate::model::time::parse_span;
use crate::model::transaction::Kind;
use crate::psp::rules::raw::RawExample;

/// How old an example's row is where it does not say so.
const AGE: TimeDelta = TimeDelta::hours(1);

/// A case that a rule must decide.
#[derive(Debug, Clone)]
pub(super) struct Example {
    pub(super) rule: Rule,
    pub(super) line: usize,
    pub(super) case: RawExample,
}

impl Example {
    /// The rule that decides it.
    pub(super) fn decided_by(&self, set: &RuleSet) -> Option<String> {
        let kind = Kind::parse(&self.case.kind)?;
        let currency = Currency::parse(self.case.currency.as_deref().unwrap_or("EUR")).ok()?;
        let money = Money::new(self.case.amount_minor.unwrap_or(1_000), currency);
        let object = self.object(money);
        let psp = self.case.psp.as_deref().or(self.rule.matches.psp.as_deref());
        let question = Question {
            psp: psp.unwrap_or("any"),
            subject: self.rule.matches.subject,
            object: &object,
            kind,
            money: Some(money),
            handbacks: self.case.handbacks,
            age: Some(self.case.age.as_deref().and_then(parse_span).unwrap_or(AGE)),
        };
        set.find(&question).map(|rule| rule.id.clone())
    }

    /// An object that shows the example's fact.
    fn object(&self, money: Money) -> PspObject {
        let subject = self.rule.matches.subject;
        let failure = Failure {
            code: self.case.code.clone(),
            advice: self.case.advice.clone(),
            network_advice: None,
            final_from: None,
            still_payable: false,
        };
        let state = match subject {
            Subject::Failure => ObjectState::Failed(failure),
            Subject::Refunded | Subject::Disputed | Subject::Returned => ObjectState::Captured,
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
            status: self.case.status.clone(),
            amount: Some(money),
            captured: None,
            refunded_minor: 0,
            capturable_minor: 0,
            disputed: subject == Subject::Disputed,
            charged_back_minor: 0,
            beyond_minor: 0,
            created_at: DateTime::<Utc>::MIN_UTC,
            tag: None,
            returned: (subject == Subject::Returned).then(|| self.case.code.clone()),
        }
    }
}
