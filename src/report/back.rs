//! What went back of an object, in words, for whoever reads a case.

use crate::model::evidence::{ObjectState, PspObject};
use crate::model::money::Money;

/// Stands for a sum that nobody tells.
const NO_SUM: &str = "yes";

/// What went back of an object by all that was seen of it: what one look shows of that, no other
/// takes away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Back {
    /// How much the shop gave back.
    pub refunded: Option<String>,
    /// A dispute exists: how much was charged back, or `yes` where no sum is told.
    pub disputed: Option<String>,
    /// A bank took it back: how much, with its code where it gave one.
    pub returned: Option<String>,
}

impl Back {
    /// Of looks at one object.
    pub fn of(looks: &[&PspObject]) -> Self {
        let most = looks.iter().max_by_key(|object| object.refunded_minor);
        let sum = most.filter(|object| object.refunded_minor > 0);
        let sum = sum.map(|object| amount_text(object, object.refunded_minor));
        let codes = looks.iter().filter_map(|object| object.returned.as_deref());
        let returned = codes.max_by_key(|code| !code.is_empty());
        let disputed = looks.iter().filter(|object| object.disputed);
        let disputed = disputed.max_by_key(|object| object.charged_back_minor);
        let how_much = || sum.clone().unwrap_or_else(|| "all".to_owned());
        Self {
            disputed: disputed.map(|object| match object.charged_back_minor {
                0 => NO_SUM.to_owned(),
                minor => amount_text(object, minor),
            }),
            returned: returned.map(|code| match code {
                "" => how_much(),
                code => format!("{} ({code})", how_much()),
            }),
            refunded: sum.filter(|_| returned.is_none()),
        }
    }

    /// All of it, each as a person says it.
    pub fn words(&self) -> Vec<String> {
        let refunded = self.refunded.as_ref().map(|sum| format!("refunded {sum}"));
        let disputed = self.disputed.as_ref().map(|sum| match sum.as_str() {
            NO_SUM => "disputed".to_owned(),
            sum => format!("charged back {sum}"),
        });
        let returned = self.returned.as_ref().map(|sum| format!("returned {sum}"));
        refunded.into_iter().chain(disputed).chain(returned).collect()
    }
}

fn amount_text(object: &PspObject, minor: i64) -> String {
    let money = object.captured.or(object.amount);
    money.map_or_else(|| NO_SUM.to_owned(), |money| Money::new(minor, money.currency).to_string())
}

/// What can still be captured of an object, as a person says it, where the PSP names a sum.
pub fn still_open(object: &PspObject) -> Option<String> {
    let sum = object.capturable().map_or_else(|| "some of it".to_owned(), |sum| sum.to_string());
    (object.capturable_minor > 0).then(|| format!("{sum} can still be captured"))
}

/// Whether two looks are at one object.
pub fn is_same(one: &PspObject, other: &PspObject) -> bool {
    let mut names = std::iter::once(&other.reference).chain(&other.aliases);
    names.any(|name| one.is_named(name))
}

/// Of all looks those at this object.
pub fn looks_at<'a>(object: &PspObject, looks: &[&'a PspObject]) -> Vec<&'a PspObject> {
    looks.iter().copied().filter(|look| is_same(look, object)).collect()
}

/// Whether the shop gave back all that an object captured. What is disputed or came back from a
/// bank is not over by that.
pub fn is_given_back(object: &PspObject, looks: &[&PspObject]) -> bool {
    let own = looks_at(object, looks);
    let is_whole = |look: &&PspObject| {
        let refunded =
            look.captured.is_some_and(|sum| (1..=look.refunded_minor).contains(&sum.minor));
        refunded || look.state == ObjectState::Voided
    };
    own.iter().any(is_whole) && own.iter().all(|look| !look.disputed && look.returned.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;

    fn object() -> PspObject {
        let money = Money::new(2_000, Currency::parse("EUR").unwrap());
        PspObject {
            aliases: vec!["ch_1".to_owned()],
            amount: Some(money),
            captured: Some(money),
            tag: Some("x".to_owned()),
            ..PspObject::plain("payment_intent", ObjectState::Captured)
        }
    }

    #[test]
    fn what_went_back_is_said_of_each_object() {
        let refunded = || PspObject { refunded_minor: 500, ..object() };
        let returned = |code: &str| PspObject { returned: Some(code.to_owned()), ..object() };
        let disputed = || PspObject { disputed: true, ..object() };
        let words = |looks: &[PspObject]| {
            let looks: Vec<&PspObject> = looks.iter().collect();
            Back::of(&looks).words().join(", ")
        };
        assert_eq!(words(&[]), "");
        assert_eq!(words(&[object()]), "");
        assert_eq!(words(&[refunded(), object()]), "refunded 5.00 EUR", "a later look hides none");
        assert_eq!(words(&[disputed(), refunded()]), "refunded 5.00 EUR, disputed");
        let charged = PspObject { charged_back_minor: 700, ..disputed() };
        assert_eq!(words(&[charged]), "charged back 7.00 EUR");
        assert_eq!(words(&[returned("")]), "returned all");
        assert_eq!(words(&[returned(""), returned("AC04")]), "returned all (AC04)");
        let part = PspObject { refunded_minor: 300, ..returned("MD06") };
        assert_eq!(words(&[part]), "returned 3.00 EUR (MD06)");
    }

    #[test]
    fn what_can_still_be_captured_is_said_with_its_sum() {
        let held = PspObject { captured: None, capturable_minor: 700, ..object() };
        assert_eq!(still_open(&held).as_deref(), Some("7.00 EUR can still be captured"));
        let unnamed = PspObject { amount: None, ..held };
        assert_eq!(still_open(&unnamed).as_deref(), Some("some of it can still be captured"));
        assert_eq!(still_open(&object()), None);
    }

    #[test]
    fn what_was_refunded_whole_is_given_back() {
        let whole = || PspObject { refunded_minor: 2_000, ..object() };
        let by_charge = || PspObject { reference: "ch_1".to_owned(), aliases: vec![], ..whole() };
        let is_back = |looks: &[PspObject]| {
            let looks: Vec<&PspObject> = looks.iter().collect();
            is_given_back(&object(), &looks)
        };
        assert!(is_back(&[whole()]));
        assert!(is_back(&[object(), by_charge()]), "by whichever of its ids");
        assert!(is_back(&[PspObject { state: ObjectState::Voided, ..object() }]));
        assert!(!is_back(&[object()]));
        assert!(!is_back(&[PspObject { refunded_minor: 1_999, ..object() }]));
        assert!(!is_back(&[PspObject { disputed: true, ..object() }, whole()]));
        assert!(!is_back(&[PspObject { returned: Some(String::new()), ..whole() }]));
        let other = PspObject { reference: "pi_2".to_owned(), aliases: vec![], ..whole() };
        assert!(!is_back(&[object(), other]), "another object's refund");
    }
}
