//! Which cases a page is about: the words of its address, and what they mean to the store.

use crate::model::money::{AmountUnit, Currency, Exactness, parse_amount};
use crate::model::reason::Reason;
use crate::model::time::{Instant, parse_ago};
use crate::store::driver::CaseFilter;
use crate::store::people::ProposalState;
use crate::web::error::Refused;
use crate::web::form::Fields;
use crate::web::routes::number_of;

/// The names of a filter's words.
pub const NAMES: [&str; 15] = [
    "state",
    "reason",
    "account",
    "table",
    "owner",
    "currency",
    "amount_from",
    "amount_to",
    "older",
    "younger",
    "rule",
    "policy",
    "run",
    "part_of",
    "proposed",
];

/// What a filter is called in the address, and its words as they were given.
#[derive(Debug, Clone)]
pub struct Asked {
    /// For the store, without its page.
    pub filter: CaseFilter,
    /// The words that were given.
    pub given: Vec<(&'static str, String)>,
}

impl Asked {
    /// Reads the words.
    ///
    /// # Errors
    /// With the first that cannot be meant.
    pub fn read(fields: &Fields, now: Instant) -> Result<Self, Refused> {
        let word = |name: &str| fields.text(name).map(str::to_owned);
        let currency = word("currency").map(|text| currency_of(&text)).transpose()?;
        let filter = CaseFilter {
            open_only: word("state").as_deref() != Some("all"),
            reason: word("reason").map(reason_of).transpose()?,
            account: word("account"),
            table: word("table"),
            owner: word("owner").map(|name| if name == "-" { String::new() } else { name }),
            amount_from: amount(word("amount_from"), currency)?,
            amount_to: amount(word("amount_to"), currency)?,
            currency: currency.map(|currency| currency.code().to_owned()),
            opened_to: word("older").map(|text| before(&text, now)).transpose()?,
            opened_from: word("younger").map(|text| before(&text, now)).transpose()?,
            rule: word("rule"),
            policy_version: word("policy"),
            opened_run: word("run"),
            whole: word("part_of").map(|text| number_of(&text)).transpose()?,
            proposed: word("proposed").map(|text| state_of(&text)).transpose()?,
            ..CaseFilter::default()
        };
        let given = NAMES.into_iter().filter_map(|name| Some((name, word(name)?))).collect();
        Ok(Self { filter, given })
    }

    /// The word of a name, as it was given.
    pub fn word(&self, name: &str) -> &str {
        let found = self.given.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The words, for an address.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Whether words were given that stand behind the first row of fields.
    pub fn is_detailed(&self) -> bool {
        let plain = ["reason", "account", "owner", "older", "proposed"];
        self.given.iter().any(|(name, _)| !plain.contains(name))
    }
}

fn reason_of(text: String) -> Result<String, Refused> {
    match Reason::parse(&text) {
        Some(_known) => Ok(text),
        None => Err(Refused::words(format!("There is no reason {text}"))),
    }
}

fn state_of(text: &str) -> Result<ProposalState, Refused> {
    let state = ProposalState::parse(text);
    state.ok_or_else(|| Refused::words(format!("There is no state {text} of a proposal")))
}

fn currency_of(text: &str) -> Result<Currency, Refused> {
    Currency::parse(text).map_err(|error| Refused::words(error.to_string()))
}

fn amount(given: Option<String>, currency: Option<Currency>) -> Result<Option<i64>, Refused> {
    let Some(text) = given else { return Ok(None) };
    let Some(currency) = currency else {
        return Err(Refused::words(format!("{text} of which currency? Name one as well")));
    };
    let money = parse_amount(&text, AmountUnit::Major, Exactness::Exact, currency);
    let money = money.map_err(|error| Refused::words(format!("{text}: {error}")))?;
    Ok(Some(money.minor))
}

fn before(text: &str, now: Instant) -> Result<Instant, Refused> {
    parse_ago(text, now).ok_or_else(|| {
        Refused::words(format!("{text}: expected a span such as 90min, 6h or 3d, at most 36500d"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Asked, Refused> {
        let now = crate::model::time::from_text("2026-11-20T00:00:00Z").unwrap();
        Asked::read(&Fields::read(text), now)
    }

    #[test]
    fn words_mean_what_the_command_line_means_by_them() {
        let asked = read("owner=-&older=3d&currency=eur&amount_from=20&reason=").unwrap();
        assert_eq!(asked.filter.owner.as_deref(), Some(""));
        assert_eq!(asked.filter.amount_from, Some(2_000));
        assert_eq!(asked.filter.currency.as_deref(), Some("EUR"));
        assert!(asked.filter.open_only);
        assert_eq!(asked.word("older"), "3d");
        assert_eq!(asked.pairs().count(), 4);
        assert!(!read("state=all").unwrap().filter.open_only);
        for bad in ["reason=none", "older=soon", "amount_from=5", "currency=XXY", "proposed=x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for bad in ["older=99999999999d", "younger=36501d"] {
            assert_eq!(read(bad).unwrap_err().status.as_u16(), 422, "{bad}");
        }
    }
}
