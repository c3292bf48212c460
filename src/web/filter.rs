//! Which cases a page is about: the words of its address, and what they mean to the store.

use crate::model::money::{AmountUnit, Currency, Exactness, parse_amount};
use crate::model::near::nearest;
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

/// What an address says beside the filter: where its page begins, which pages came before it, and
/// what was done just now to how many.
const BESIDE: [&str; 4] = ["after", "trail", "done", "many"];

/// What a filter is called in the address, and its words as they were given.
#[derive(Debug, Clone)]
pub struct Asked {
    /// For the store, without its page.
    pub filter: CaseFilter,
    /// The words that were given.
    pub given: Vec<(&'static str, String)>,
}

impl Asked {
    /// Reads the words of an address, which says nothing else: a mistyped name must not look as if
    /// it had narrowed the list.
    ///
    /// # Errors
    /// With the first that cannot be meant.
    pub fn of_address(fields: &Fields, now: Instant) -> Result<Self, Refused> {
        let known = || NAMES.into_iter().chain(BESIDE);
        if let Some(name) = fields.names().find(|name| !known().any(|known| known == *name)) {
            let near = nearest(name, NAMES).map(|near| format!(" (did you mean `{near}`?)"));
            let text = format!("There is no filter `{name}`{}", near.unwrap_or_default());
            return Err(Refused::words(text));
        }
        Self::read(fields, now)
    }

    /// The words as they were given, whatever they mean.
    pub fn given(fields: &Fields) -> Self {
        let word = |name: &'static str| Some((name, fields.text(name)?.to_owned()));
        let filter = CaseFilter { open_only: true, ..CaseFilter::default() };
        Self { filter, given: NAMES.into_iter().filter_map(word).collect() }
    }

    /// Reads the words among other fields.
    ///
    /// # Errors
    /// With the first that cannot be meant.
    pub fn read(fields: &Fields, now: Instant) -> Result<Self, Refused> {
        let Self { given, .. } = Self::given(fields);
        // No database takes all of them, and none has one that somebody could look for.
        if let Some((name, _)) = given.iter().find(|(_, word)| word.contains(char::is_control)) {
            return Err(Refused::words(format!("`{name}` has a letter in it that nobody sees")));
        }
        let word = |name: &str| fields.text(name).map(str::to_owned);
        let currency = word("currency").map(|text| currency_of(&text)).transpose()?;
        let filter = CaseFilter {
            open_only: word("state").map(|text| is_open_only(&text)).transpose()?.unwrap_or(true),
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
            whole: word("part_of").map(|text| case_of(&text)).transpose()?,
            proposed: word("proposed").map(|text| state_of(&text)).transpose()?,
            ..CaseFilter::default()
        };
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

fn is_open_only(text: &str) -> Result<bool, Refused> {
    match text {
        "open" => Ok(true),
        "all" => Ok(false),
        _odd => Err(Refused::words(format!("There is no state {text}: open, or all"))),
    }
}

fn reason_of(text: String) -> Result<String, Refused> {
    if Reason::parse(&text).is_some() {
        return Ok(text);
    }
    let near = nearest(&text, Reason::ALL.iter().map(|reason| reason.as_str()));
    let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    Err(Refused::words(format!("There is no reason {text}{near}")))
}

fn case_of(text: &str) -> Result<i64, Refused> {
    number_of(text)
        .map_err(|_none| Refused::words(format!("{text}: expected a case's number such as C-1043")))
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
        for bad in [
            "older=99999999999d",
            "younger=36501d",
            "state=closed",
            "part_of=x",
            "owner=%00",
            "rule=a%1bb",
        ] {
            assert_eq!(read(bad).unwrap_err().status.as_u16(), 422, "{bad}");
        }
        assert!(read("state=open").unwrap().filter.open_only);
    }

    #[test]
    fn an_address_names_filters_and_nothing_else() {
        let now = crate::model::time::from_text("2026-11-20T00:00:00Z").unwrap();
        let read = |text: &str| Asked::of_address(&Fields::read(text), now);
        assert!(read("owner=mara&state=&after=50&trail=0&done=kick&many=3").is_ok());
        let text = read("reasn=orphan").unwrap_err().text;
        assert!(text.contains("no filter `reasn` (did you mean `reason`?)"), "{text}");
        assert!(read("csrf=1").is_err());
        let given = Asked::given(&Fields::read("owner=mara&reason=nonsense&csrf=1"));
        assert_eq!(given.word("reason"), "nonsense");
        assert_eq!(given.pairs().count(), 2);
    }
}
