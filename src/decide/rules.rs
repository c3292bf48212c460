//! Rules as data: what a PSP's status or failure code means for a row.
//!
//! The shipped rules of a PSP are a TOML file beside its adapter; the user's own stand on top.
//! The first rule that matches wins. Every rule carries an example, which the tests run.
//! Adding one: a `[[rule]]` with id, what it matches, the outcome, its source and an example.

use chrono::TimeDelta;

use crate::decide::permit::stated_failure;
use crate::model::evidence::{Failure, ObjectState, PspObject};
use crate::model::money::Money;
use crate::model::reason::Outcome;
use crate::model::transaction::Kind;
use crate::model::wildcard::fits;

/// What kind of fact a rule speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A stated failure, by code or advice.
    Failure,
    /// Captured, then refunded.
    Refunded,
    /// Captured, then voided.
    Voided,
    /// Captured and disputed.
    Disputed,
    /// Booked, and taken back by the bank. It is a person's, whatever a rule says; the rule says
    /// what the bank's code means.
    Returned,
    /// Authorised and not captured.
    Authorized,
    /// Waiting for the customer.
    ActionRequired,
    /// Cancelled.
    Canceled,
    /// Expired.
    Expired,
    /// A status the adapter does not know.
    UnknownStatus,
}

impl Subject {
    /// The word of rule files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Refunded => "refunded",
            Self::Voided => "voided",
            Self::Disputed => "disputed",
            Self::Returned => "returned",
            Self::Authorized => "authorized",
            Self::ActionRequired => "action_required",
            Self::Canceled => "canceled",
            Self::Expired => "expired",
            Self::UnknownStatus => "unknown_status",
        }
    }

    /// All, in the order of the pages that list them.
    pub const ALL: [Self; 10] = [
        Self::Failure,
        Self::Returned,
        Self::Refunded,
        Self::Voided,
        Self::Disputed,
        Self::Authorized,
        Self::ActionRequired,
        Self::Canceled,
        Self::Expired,
        Self::UnknownStatus,
    ];

    /// Reads the word of rule files.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.as_str() == text)
    }

    /// The subject by which a rule may speak of an object, money that moved included; `None` where
    /// rules have no say.
    pub fn shown_by(object: &PspObject) -> Option<Self> {
        if object.returned.is_some() {
            Some(Self::Returned)
        } else if object.disputed {
            Some(Self::Disputed)
        } else if object.state == ObjectState::Captured && object.refunded_minor != 0 {
            Some(Self::Refunded)
        } else {
            Self::of(object)
        }
    }

    /// The rule subject of an object that captured nothing; `None` where rules have no say.
    pub fn of(object: &PspObject) -> Option<Self> {
        match object.state {
            ObjectState::Failed(_) => Some(Self::Failure),
            ObjectState::Authorized => Some(Self::Authorized),
            ObjectState::ActionRequired => Some(Self::ActionRequired),
            ObjectState::Canceled => Some(Self::Canceled),
            ObjectState::Expired => Some(Self::Expired),
            ObjectState::Unknown => Some(Self::UnknownStatus),
            ObjectState::Voided => Some(Self::Voided),
            ObjectState::Captured | ObjectState::InFlight | ObjectState::Unattempted => None,
        }
    }
}

/// What a rule matches; a field that is `None` or empty matches everything. In codes and statuses
/// `*` stands for any text and `?` for one character, so that a family of codes is one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The adapter.
    pub psp: Option<String>,
    /// What kind of fact.
    pub subject: Subject,
    /// The PSP's own status words.
    pub statuses: Vec<String>,
    /// Codes of a failure, or of what came back.
    pub codes: Vec<String>,
    /// The PSP's own advice.
    pub advices: Vec<String>,
    /// Kinds of movement.
    pub kinds: Vec<Kind>,
    /// Currency codes.
    pub currencies: Vec<String>,
    /// Only at least this amount.
    pub amount_at_least_minor: Option<i64>,
    /// Only at most this amount.
    pub amount_at_most_minor: Option<i64>,
    /// Only rows made at least so long ago.
    pub age_at_least: Option<TimeDelta>,
    /// Only rows made less than so long ago.
    pub age_below: Option<TimeDelta>,
    /// Only while the row has been handed back fewer times than this.
    pub handbacks_below: Option<u32>,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Charging again is allowed, this much later.
    Retryable {
        /// Counted from the decision.
        not_before: Option<TimeDelta>,
    },
    /// It failed for good.
    Failed,
    /// The money is the row's all the same (a refund after the fact).
    Succeeded,
    /// Look again later.
    Wait,
    /// A person decides.
    Review,
}

impl Effect {
    /// The outcome's word.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Retryable { .. } => Outcome::Retryable,
            Self::Failed => Outcome::Failed,
            Self::Succeeded => Outcome::Succeeded,
            Self::Wait => Outcome::Wait,
            Self::Review => Outcome::Review,
        }
    }
}

/// One line of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Unique: `stripe.advice.do_not_try_again`.
    pub id: String,
    /// The user's own, not shipped. Where it sends to a person the reason is `rule`; a shipped rule
    /// that does so leaves the reason that the state has by itself.
    pub own: bool,
    /// What it matches.
    pub matches: Match,
    /// What it says.
    pub effect: Effect,
    /// What the code means, for people; empty where the code says it.
    pub means: String,
}

impl Rule {
    /// How sentences name it.
    pub fn words(&self) -> String {
        match self.means.as_str() {
            "" => format!("rule {}", self.id),
            means => format!("rule {}: {means}", self.id),
        }
    }
}

/// Rules in the order in which they are tried, and the version that journals name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSet {
    /// The user's first, then the shipped.
    pub rules: Vec<Rule>,
    /// A short hash of the rules' text.
    pub version: String,
}

/// What a rule is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The adapter.
    pub psp: &'a str,
    /// What kind of fact.
    pub subject: Subject,
    /// The object that shows it.
    pub object: &'a PspObject,
    /// The row's kind.
    pub kind: Kind,
    /// The row's money.
    pub money: Option<Money>,
    /// How often the row was handed back.
    pub handbacks: u32,
    /// How long ago the row was made.
    pub age: Option<TimeDelta>,
}

impl<'a> Question<'a> {
    /// The code that the fact states: why it failed, or why it came back.
    pub fn code(&self) -> Option<&'a str> {
        if self.subject == Subject::Returned {
            return self.object.returned.as_deref();
        }
        stated_failure(self.object).map(|failure| failure.code.as_str())
    }
}

impl RuleSet {
    /// The first rule that matches.
    pub fn find(&self, question: &Question<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches.holds(question))
    }
}

impl Match {
    /// Everything that is of one subject.
    pub fn of(subject: Subject) -> Self {
        Self {
            psp: None,
            subject,
            statuses: Vec::new(),
            codes: Vec::new(),
            advices: Vec::new(),
            kinds: Vec::new(),
            currencies: Vec::new(),
            amount_at_least_minor: None,
            amount_at_most_minor: None,
            age_at_least: None,
            age_below: None,
            handbacks_below: None,
        }
    }

    fn holds(&self, q: &Question<'_>) -> bool {
        let failure = stated_failure(q.object);
        self.subject == q.subject
            && self.psp.as_deref().is_none_or(|psp| psp == q.psp)
            && fits_any(&self.statuses, &q.object.status)
            && (self.codes.is_empty() || q.code().is_some_and(|code| fits_any(&self.codes, code)))
            && (self.advices.is_empty() || failure.is_some_and(|f| has_advice(self, f)))
            && (self.kinds.is_empty() || self.kinds.contains(&q.kind))
            && self.money_holds(q.money)
            && self.age_holds(q.age)
            && self.handbacks_below.is_none_or(|limit| q.handbacks < limit)
    }

    fn money_holds(&self, money: Option<Money>) -> bool {
        let (least, most) = (self.amount_at_least_minor, self.amount_at_most_minor);
        if self.currencies.is_empty() && least.is_none() && most.is_none() {
            return true;
        }
        money.is_some_and(|money| {
            any_of(&self.currencies, money.currency.code())
                && least.is_none_or(|least| money.minor >= least)
                && most.is_none_or(|most| money.minor <= most)
        })
    }

    fn age_holds(&self, age: Option<TimeDelta>) -> bool {
        self.age_at_least.is_none_or(|least| age.is_some_and(|age| age >= least))
            && self.age_below.is_none_or(|limit| age.is_some_and(|age| age < limit))
    }
}

fn has_advice(rule: &Match, failure: &Failure) -> bool {
    failure.advice.as_deref().is_some_and(|advice| any_of(&rule.advices, advice))
}

fn any_of(list: &[String], value: &str) -> bool {
    list.is_empty() || list.iter().any(|item| item.eq_ignore_ascii_case(value))
}

/// As [`any_of`], where a word may also stand for a family.
fn fits_any(list: &[String], value: &str) -> bool {
    let is_family = |item: &String| {
        item.contains(['*', '?']) && fits(&item.to_ascii_lowercase(), &value.to_ascii_lowercase())
    };
    any_of(list, value) || list.iter().any(is_family)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;
    use crate::model::time::from_text;

    fn matching(subject: Subject) -> Match {
        Match::of(subject)
    }

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    fn declined(code: &str, advice: Option<&str>) -> PspObject {
        let created_at = from_text("2026-11-19T08:00:00Z").unwrap();
        PspObject {
            reference: "pi_1".into(),
            aliases: Vec::new(),
            kind: "payment_intent".into(),
            state: ObjectState::Failed(Failure {
                code: code.into(),
                advice: advice.map(str::to_owned),
                network_advice: None,
                final_from: Some(created_at),
                still_payable: true,
            }),
            status: "requires_payment_method".into(),
            amount: None,
            captured: None,
            refunded_minor: 0,
            capturable_minor: 0,
            disputed: false,
            charged_back_minor: 0,
            beyond_minor: 0,
            created_at,
            tag: None,
            returned: None,
        }
    }

    fn ask<'a>(subject: Subject, object: &'a PspObject) -> Question<'a> {
        let money = Money::new(2_000, Currency::parse("EUR").unwrap());
        let (kind, money) = (Kind::Charge, Some(money));
        let age = Some(TimeDelta::hours(3));
        Question { psp: "stripe", subject, object, kind, money, handbacks: 2, age }
    }

    #[test]
    fn each_field_of_a_match_narrows_it() {
        let object = declined("card_declined", Some("try_again_later"));
        let question = ask(Subject::Failure, &object);
        let failure = || matching(Subject::Failure);
        let holds = [
            failure(),
            Match { psp: Some("stripe".into()), ..failure() },
            Match { statuses: words(&["canceled", "requires_payment_method"]), ..failure() },
            Match { codes: words(&["expired_card", "CARD_DECLINED"]), ..failure() },
            Match { advices: words(&["try_again_later"]), ..failure() },
            Match { kinds: vec![Kind::Refund, Kind::Charge], ..failure() },
            Match { currencies: words(&["eur"]), ..failure() },
            Match { amount_at_most_minor: Some(2_000), ..failure() },
            Match { amount_at_least_minor: Some(2_000), ..failure() },
            Match { age_at_least: Some(TimeDelta::hours(3)), ..failure() },
            Match { age_below: Some(TimeDelta::hours(4)), ..failure() },
            Match { handbacks_below: Some(3), ..failure() },
            Match { codes: words(&["expired_card", "card_*"]), ..failure() },
            Match { codes: words(&["CARD_DECLINE?"]), ..failure() },
            Match { statuses: words(&["requires_*"]), ..failure() },
        ];
        for (index, rule) in holds.iter().enumerate() {
            assert!(rule.holds(&question), "{index}: {rule:?}");
        }
        let fails = [
            matching(Subject::Canceled),
            Match { psp: Some("adyen".into()), ..failure() },
            Match { statuses: words(&["canceled"]), ..failure() },
            Match { codes: words(&["card"]), ..failure() },
            Match { advices: words(&["do_not_try_again"]), ..failure() },
            Match { kinds: vec![Kind::Refund], ..failure() },
            Match { currencies: words(&["USD"]), ..failure() },
            Match { amount_at_most_minor: Some(1_999), ..failure() },
            Match { amount_at_least_minor: Some(2_001), ..failure() },
            Match { age_at_least: Some(TimeDelta::hours(4)), ..failure() },
            Match { age_below: Some(TimeDelta::hours(3)), ..failure() },
            Match { handbacks_below: Some(2), ..failure() },
            Match { codes: words(&["card_?", "*_card"]), ..failure() },
            Match { statuses: words(&["*s_action"]), ..failure() },
        ];
        for (index, rule) in fails.iter().enumerate() {
            assert!(!rule.holds(&question), "{index}: {rule:?}");
        }
    }

    #[test]
    fn what_is_not_known_matches_no_condition_on_it() {
        let object = declined("card_declined", None);
        let question = Question { money: None, age: None, ..ask(Subject::Failure, &object) };
        let failure = || matching(Subject::Failure);
        assert!(failure().holds(&question));
        for rule in [
            Match { advices: words(&["try_again_later"]), ..failure() },
            Match { currencies: words(&["EUR"]), ..failure() },
            Match { amount_at_most_minor: Some(i64::MAX), ..failure() },
            Match { amount_at_least_minor: Some(0), ..failure() },
            Match { age_at_least: Some(TimeDelta::zero()), ..failure() },
            Match { age_below: Some(TimeDelta::days(9_999)), ..failure() },
        ] {
            assert!(!rule.holds(&question), "{rule:?}");
        }
        let dead = PspObject { state: ObjectState::Canceled, ..declined("", None) };
        let coded = Match { codes: words(&["card_declined"]), ..matching(Subject::Canceled) };
        assert!(!coded.holds(&ask(Subject::Canceled, &dead)), "a cancellation states no code");
    }

    #[test]
    fn what_came_back_is_matched_by_the_banks_code() {
        let back = |code: &str| PspObject {
            state: ObjectState::Captured,
            returned: Some(code.to_owned()),
            ..declined("", None)
        };
        let family = Match { codes: words(&["AC*"]), ..matching(Subject::Returned) };
        assert!(family.holds(&ask(Subject::Returned, &back("AC04"))));
        assert!(!family.holds(&ask(Subject::Returned, &back("AM04"))));
        assert!(!family.holds(&ask(Subject::Returned, &back(""))), "it came back without a code");
        // A refusal of this code never moved money: another fact.
        assert!(!family.holds(&ask(Subject::Returned, &declined("AC04", None))));
        assert!(!family.holds(&ask(Subject::Failure, &back("AC04"))));
        assert_eq!(Subject::shown_by(&back("AC04")), Some(Subject::Returned));
        assert_eq!(Subject::shown_by(&declined("AC04", None)), Some(Subject::Failure));
        let paid = PspObject { returned: None, ..back("") };
        assert_eq!(Subject::shown_by(&paid), None);
        let given_back = PspObject { refunded_minor: 1, ..paid };
        assert_eq!(Subject::shown_by(&given_back), Some(Subject::Refunded));
    }

    #[test]
    fn the_first_rule_that_matches_wins() {
        let rule = |id: &str, codes: &[&str], effect| Rule {
            id: id.into(),
            own: false,
            matches: Match { codes: words(codes), ..matching(Subject::Failure) },
            effect,
            means: String::new(),
        };
        let rules = RuleSet {
            rules: vec![
                rule("own", &["stolen_card"], Effect::Review),
                rule("shipped", &["stolen_card", "card_declined"], Effect::Failed),
                rule("rest", &[], Effect::Wait),
            ],
            version: String::new(),
        };
        for (code, id) in
            [("stolen_card", "own"), ("card_declined", "shipped"), ("mystery", "rest")]
        {
            let object = declined(code, None);
            let found = rules.find(&ask(Subject::Failure, &object)).map(|rule| rule.id.as_str());
            assert_eq!(found, Some(id));
            assert_eq!(rules.find(&ask(Subject::Expired, &object)), None);
        }
    }

    #[test]
    fn subjects_read_back_as_they_are_written() {
        for subject in Subject::ALL {
            assert_eq!(Subject::parse(subject.as_str()), Some(subject));
        }
        assert_eq!(Subject::parse("captured"), None);
    }
}
