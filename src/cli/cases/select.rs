//! Which cases a command means, what they are together, and the yes to it.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::cli::args::{Common, sentence, word, yes_or_no};
use crate::cli::cases::{PAGE, find, number_of, row};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{out, page, person};
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::money::{
    AmountUnit, Currency, Exactness, decimal_text, grouped_text, parse_amount,
};
use crate::model::near::nearest;
use crate::model::reason::Reason;
use crate::model::time::{Instant, parse_ago};
use crate::model::transaction::hex;
use crate::store::database::Database;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::people::{CaseSum, PeopleDriver, ProposalState, sums_of};
use crate::store::records::CaseRow;

/// More cases than this at once were probably not meant.
const MOST: usize = 10_000;

/// Cases that a preview shows.
pub const SAMPLES: usize = 5;

/// The shortest beginning of what was seen that is taken for it.
const SEEN_MIN: usize = 12;

/// The longest name of a document that is told.
const NAME_MAX: usize = 100;

/// Which cases.
#[derive(Debug, Clone, clap::Args)]
pub struct Select {
    /// Only of this reason
    #[arg(
        long, value_name = "REASON", env = names::CASES_REASON, help_heading = "Which cases"
    )]
    reason: Option<String>,
    /// Only of this PSP account
    #[arg(
        long, value_name = "ACCOUNT", env = names::CASES_ACCOUNT, help_heading = "Which cases"
    )]
    account: Option<String>,
    /// Only of this mapped table
    #[arg(long, value_name = "TABLE", env = names::CASES_TABLE, help_heading = "Which cases")]
    table: Option<String>,
    /// Only this owner's; - for those that nobody has
    #[arg(long, value_name = "NAME", env = names::CASES_OWNER, help_heading = "Which cases")]
    owner: Option<String>,
    /// Only of this currency
    #[arg(
        long, value_name = "CODE", env = names::CASES_CURRENCY, help_heading = "Which cases"
    )]
    currency: Option<String>,
    /// Only of at least this amount; needs --currency
    #[arg(
        long, value_name = "AMOUNT", env = names::CASES_AMOUNT_FROM,
        help_heading = "Which cases"
    )]
    amount_from: Option<String>,
    /// Only of at most this amount; needs --currency
    #[arg(
        long, value_name = "AMOUNT", env = names::CASES_AMOUNT_TO, help_heading = "Which cases"
    )]
    amount_to: Option<String>,
    /// Only those opened longer ago than 90min, 6h, 3d
    #[arg(
        long, value_name = "SPAN", env = names::CASES_OLDER_THAN, help_heading = "Which cases"
    )]
    older_than: Option<String>,
    /// Only those opened within the last 90min, 6h, 3d
    #[arg(
        long, value_name = "SPAN", env = names::CASES_YOUNGER_THAN,
        help_heading = "Which cases"
    )]
    younger_than: Option<String>,
    /// Only those that this rule was tried for
    #[arg(long, value_name = "RULE", env = names::CASES_RULE, help_heading = "Which cases")]
    rule: Option<String>,
    /// Only those decided by this version of rules and settings last
    #[arg(
        long, value_name = "VERSION", env = names::CASES_POLICY, help_heading = "Which cases"
    )]
    policy: Option<String>,
    /// Only those that this run opened
    #[arg(long, value_name = "UUID", env = names::CASES_RUN, help_heading = "Which cases")]
    run: Option<String>,
    /// Only this case and its parts
    #[arg(long, value_name = "CASE", env = names::CASES_PART_OF, help_heading = "Which cases")]
    part_of: Option<String>,
    /// Only those with a proposal that is open, approved, refused, …
    #[arg(
        long, value_name = "STATE", env = names::CASES_PROPOSED, help_heading = "Which cases"
    )]
    proposed: Option<String>,
}

impl Select {
    /// What it means to the store.
    pub fn filter(&self, now: Instant) -> Result<CaseFilter, Failure> {
        let owner = word(self.owner.as_ref());
        let currency = word(self.currency.as_ref()).map(|text| currency_of(&text)).transpose()?;
        let part_of = word(self.part_of.as_ref()).map(|text| number_of(&text)).transpose()?;
        Ok(CaseFilter {
            reason: word(self.reason.as_ref()).map(reason_of).transpose()?,
            account: word(self.account.as_ref()),
            table: word(self.table.as_ref()),
            owner: owner.map(|name| if name == "-" { String::new() } else { name }),
            amount_from: amount("--amount-from", self.amount_from.as_ref(), currency)?,
            amount_to: amount("--amount-to", self.amount_to.as_ref(), currency)?,
            currency: currency.map(|currency| currency.code().to_owned()),
            opened_to: before("--older-than", self.older_than.as_ref(), now)?,
            opened_from: before("--younger-than", self.younger_than.as_ref(), now)?,
            rule: word(self.rule.as_ref()),
            policy_version: word(self.policy.as_ref()),
            opened_run: word(self.run.as_ref()),
            whole: part_of,
            proposed: word(self.proposed.as_ref()).map(state_of).transpose()?,
            ..CaseFilter::default()
        })
    }

    /// What a filter names that is not configured, for whoever wonders why nothing is meant by it.
    pub fn unknown(&self, config: &Config) -> Option<String> {
        let (account, table) = (word(self.account.as_ref()), word(self.table.as_ref()));
        config.unknown_names(account.as_deref(), table.as_deref())
    }

    /// Whether any filter was given.
    pub fn narrows(&self) -> bool {
        let given = [
            &self.reason,
            &self.account,
            &self.table,
            &self.owner,
            &self.currency,
            &self.amount_from,
            &self.amount_to,
            &self.older_than,
            &self.younger_than,
            &self.rule,
            &self.policy,
            &self.run,
            &self.part_of,
            &self.proposed,
        ];
        given.into_iter().any(|text| word(text.as_ref()).is_some())
    }
}

fn reason_of(text: String) -> Result<String, Failure> {
    if Reason::parse(&text).is_some() {
        return Ok(text);
    }
    let near = nearest(&text, Reason::ALL.iter().map(|reason| reason.as_str()));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(Failure::usage(format!("--reason {text}: there is no such reason{near}")))
}

fn state_of(text: String) -> Result<ProposalState, Failure> {
    ProposalState::parse(&text).ok_or_else(|| {
        let known: Vec<&str> = ProposalState::ALL.iter().map(|state| state.as_str()).collect();
        Failure::usage(format!("--proposed {text}: expected one of {}", known.join(", ")))
    })
}

fn currency_of(text: &str) -> Result<Currency, Failure> {
    Currency::parse(text).map_err(|error| Failure::usage(format!("--currency: {error}")))
}

fn amount(
    flag: &str,
    given: Option<&String>,
    currency: Option<Currency>,
) -> Result<Option<i64>, Failure> {
    let Some(text) = word(given) else { return Ok(None) };
    let Some(currency) = currency else {
        return Err(Failure::usage(format!("{flag} {text}: of which currency? add --currency")));
    };
    let money = parse_amount(&text, AmountUnit::Major, Exactness::Exact, currency);
    let money = money.map_err(|error| Failure::usage(format!("{flag} {text}: {error}")))?;
    Ok(Some(money.minor))
}

fn before(flag: &str, given: Option<&String>, now: Instant) -> Result<Option<Instant>, Failure> {
    let Some(text) = word(given) else { return Ok(None) };
    let at = parse_ago(&text, now).ok_or_else(|| {
        let expected = "expected a span such as 90min, 6h or 3d, at most 36500d";
        Failure::usage(format!("{flag} {text}: {expected}"))
    })?;
    Ok(Some(at))
}

/// Cases by name, or all that the filters mean.
#[derive(Debug, Clone, clap::Args)]
pub struct Named {
    /// The cases: C-1043 or 1043; none: all open ones that the filters mean
    #[arg(value_name = "CASE")]
    pub cases: Vec<String>,
    /// The filters.
    #[command(flatten)]
    pub select: Select,
}

/// The cases that a command is about.
pub async fn selected(
    names: &[String],
    select: &Select,
    open_only: bool,
    db: &Database,
) -> Result<Vec<CaseRow>, Failure> {
    if names.is_empty() && !select.narrows() {
        let text = "which cases? name them, or narrow them by --reason, --older-than and the like";
        return Err(Failure::usage(text));
    }
    meant(names, select, open_only, db).await
}

/// The cases that are named or that the filters mean; all of them where there are none.
pub async fn meant(
    names: &[String],
    select: &Select,
    open_only: bool,
    db: &Database,
) -> Result<Vec<CaseRow>, Failure> {
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let mut filter = CaseFilter { open_only, limit: PAGE, ..select.filter(now)? };
    if !names.is_empty() {
        let numbers: Vec<i64> =
            names.iter().map(|name| number_of(name)).collect::<Result<_, _>>()?;
        for number in &numbers {
            let case = find(*number, db).await?;
            if open_only && !case.open {
                let text = format!("case C-{number} is closed; nothing was done");
                let hint = "`tieout cases undo` takes back what a person decided; `tieout run \
                            --id ID` looks at a row that is stuck once more";
                return Err(Failure::new(Exit::Usage, text, hint));
            }
        }
        filter.numbers = Some(numbers);
    }
    let mut found = Vec::new();
    loop {
        let page = db.cases(&filter).await.map_err(|e| Failure::store(&e))?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.number);
        found.extend(page);
        if found.len() > MOST {
            let most = grouped_text(i128::try_from(MOST).unwrap_or(i128::MAX), 0);
            let text = format!("more than {most} cases are meant at once; nothing was done");
            let hint = "narrow them down (--reason, --account, --older-than, …), and go on until \
                        none is left";
            return Err(Failure::new(Exit::Usage, text, hint));
        }
    }
    if found.is_empty() {
        return Err(Failure::usage("no case is meant by that"));
    }
    Ok(found)
}

/// `2 EUR 40.00, 1 without an amount`.
pub fn sums_text(sums: &[CaseSum]) -> String {
    let texts = sums.iter().map(|sum| match Currency::parse(&sum.currency) {
        Ok(currency) => {
            let amount = decimal_text(sum.amount_minor, currency.exponent());
            format!("{} of {amount} {currency}", sum.cases)
        }
        Err(_none) => format!("{} without an amount", sum.cases),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Cases as every preview shows them: how many, their sums by currency, and the first of them.
pub struct Outline {
    /// Their sums.
    pub sums: Vec<CaseSum>,
    count: usize,
}

impl Outline {
    /// Of cases with their currencies' codes and minor units.
    pub fn of<'c>(cases: impl ExactSizeIterator<Item = (&'c str, i64)>) -> Self {
        Self { count: cases.len(), sums: sums_of(cases) }
    }

    /// `7 cases: 7 of 700.28 EUR`; of none, how many they are.
    pub fn head(&self) -> String {
        let cases = counted(self.count, "case", "cases");
        match self.sums.is_empty() {
            true => cases,
            false => format!("{cases}: {}", sums_text(&self.sums)),
        }
    }

    /// What is not among the samples.
    pub fn rest(&self) -> Option<String> {
        let more = self.count.checked_sub(SAMPLES).filter(|more| *more > 0)?;
        Some(format!("  … and {more} more"))
    }
}

/// The yes to what was shown.
#[derive(Debug, Clone, clap::Args)]
pub struct Confirm {
    /// Do not ask; a decision also needs --seen
    #[arg(
        long, env = names::CASES_YES, value_parser = yes_or_no, help_heading = "How"
    )]
    pub yes: bool,
    /// What the preview showed, by its hash: where it changed since, nothing is done
    #[arg(long, value_name = "HASH", env = names::CASES_SEEN, help_heading = "How")]
    pub seen: Option<String>,
    /// Show the preview, and do nothing
    #[arg(
        long, env = names::CASES_DRY_RUN, value_parser = yes_or_no, help_heading = "How"
    )]
    pub dry_run: bool,
}

/// What is about to be done to cases.
pub struct Preview<'a> {
    /// `approve`, `assign to mara`.
    pub action: &'a str,
    /// The cases.
    pub cases: &'a [CaseRow],
    /// What is said of each beside its line, where there is something.
    pub says: &'a dyn Fn(&CaseRow) -> Option<String>,
    /// A decision: the yes is bound to what was shown.
    pub is_bound: bool,
}

/// What a preview leaves out.
pub struct Left<'a> {
    /// How many.
    pub cases: usize,
    /// Why.
    pub says: &'a str,
}

impl Preview<'_> {
    /// Names what is shown: each case, its evidence, who has it, and what is said of it.
    pub fn seen(&self) -> String {
        let mut hash = Sha256::new();
        for case in self.cases {
            let evidence = case.evidence_sha256.as_deref().unwrap_or("-");
            let says = (self.says)(case).unwrap_or_default();
            let owner = case.owner.as_deref().unwrap_or("-");
            hash.update(format!("{} {evidence} {owner} {says}\n", case.number));
        }
        hex(&hash.finalize())
    }

    fn show(&self, now: Instant, seen: &str, common: &Common, left: Option<&Left<'_>>) {
        let cases = self.cases.iter();
        let outline = Outline::of(cases.map(|case| (case.currency.as_str(), case.amount_minor)));
        if common.json {
            let mut body = serde_json::json!({
                "action": self.action,
                "cases": self.cases.len(),
                "sums": outline.sums.iter().map(sum_body).collect::<Vec<_>>(),
                "samples": self.cases.iter().take(SAMPLES).map(|case| {
                    format!("C-{}", case.number)
                }).collect::<Vec<_>>(),
                "seen": seen,
            });
            if let (Some(left), Some(fields)) = (left, body.as_object_mut()) {
                fields.insert("left_out".to_owned(), left.cases.into());
            }
            return out::stdout(&line("cases_preview", body));
        }
        if common.quiet {
            return;
        }
        page::say(&format!("{}: {}", self.action, outline.head()));
        for case in self.cases.iter().take(SAMPLES) {
            page::say(&format!("  {}", row(case, now)));
            if let Some(says) = (self.says)(case) {
                page::say(&format!("          {says}"));
            }
        }
        if let Some(rest) = outline.rest() {
            page::say(&rest);
        }
        if let Some(left) = left.filter(|left| left.cases > 0) {
            page::say(left.says);
        }
        out::stdout(&format!("seen  {seen}"));
    }

    /// Shows it and asks; false: nothing is to be done.
    pub async fn confirmed(
        &self,
        confirm: &Confirm,
        common: &Common,
        db: &Database,
    ) -> Result<bool, Failure> {
        self.confirmed_beside(None, confirm, common, db).await
    }

    /// The same, where others that were meant stay as they are.
    pub async fn confirmed_beside(
        &self,
        left: Option<&Left<'_>>,
        confirm: &Confirm,
        common: &Common,
        db: &Database,
    ) -> Result<bool, Failure> {
        let now = db.now().await.map_err(|e| Failure::store(&e))?;
        let seen = self.seen();
        self.show(now, &seen, common, left);
        if confirm.dry_run {
            return Ok(false);
        }
        if let Some(given) = word(confirm.seen.as_ref()) {
            if given.len() < SEEN_MIN || !seen.starts_with(&given.to_ascii_lowercase()) {
                let text = format!("--seen {given}: the cases show something else by now");
                let hint = "look at the preview again; nothing was done";
                return Err(Failure::new(Exit::Usage, text, hint));
            }
        } else if confirm.yes && self.is_bound {
            let text = format!(
                "a decision is bound to what was seen: add --seen {} where the preview is meant",
                seen.get(..SEEN_MIN).unwrap_or(&seen)
            );
            return Err(Failure::usage(text));
        }
        if confirm.yes {
            return Ok(true);
        }
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            page::warn(&format!("{}? [y/N]", self.action));
            let mut answer = String::new();
            let read = std::io::stdin().read_line(&mut answer);
            if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
                return Ok(true);
            }
        }
        let bound = match self.is_bound && word(confirm.seen.as_ref()).is_none() {
            true => format!(" --seen {}", seen.get(..SEEN_MIN).unwrap_or(&seen)),
            false => String::new(),
        };
        Err(Failure::usage(format!(
            "{}: nothing was done; add --yes{bound} where that is meant",
            self.action
        )))
    }
}

/// Their sum of one currency as an event has it.
pub fn sum_body(sum: &CaseSum) -> serde_json::Value {
    serde_json::json!({
        "currency": sum.currency,
        "cases": sum.cases,
        // Beyond 64 bits a JSON number would lose its last digits.
        "amount_minor_text": sum.amount_minor.to_string(),
    })
}

/// One line that says why.
pub fn why(text: &str) -> Result<&str, Failure> {
    sentence("--why", text, "")
}

/// What is said, with the name and the hash of a document that stands behind it. The document
/// itself stays where it is.
pub fn said(text: &str, attached: Option<&PathBuf>) -> Result<String, Failure> {
    let text = why(text)?;
    let Some(file) = attached.filter(|file| !file.as_os_str().is_empty()) else {
        return Ok(text.to_owned());
    };
    let failed =
        |error: std::io::Error| Failure::usage(format!("--attach {}: {error}", file.display()));
    let mut document = std::fs::File::open(file).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut some = vec![0_u8; 64 * 1_024];
    loop {
        let count = document.read(&mut some).map_err(failed)?;
        let Some(read) = some.get(..count).filter(|read| !read.is_empty()) else { break };
        hash.update(read);
    }
    let name: String = file.file_name().map(|name| name.to_string_lossy()).map_or_else(
        || "document".to_owned(),
        |name| name.chars().filter(|letter| !letter.is_control()).take(NAME_MAX).collect(),
    );
    Ok(format!("{text} (attached {name}, sha256 {})", hex(&hash.finalize())))
}

/// Who speaks: the database's own word where it has one.
pub async fn identity(db: &Database) -> Result<(String, bool), Failure> {
    let known = db.identity().await.map_err(|e| Failure::store(&e))?;
    Ok(match known {
        Some(name) => (name, true),
        None => (person::name(), false),
    })
}

/// Says what an action came to.
pub fn done(action: &str, changed: u64, meant: usize, common: &Common) -> Exit {
    let left = u64::try_from(meant).unwrap_or(u64::MAX).saturating_sub(changed);
    if common.json {
        let body = serde_json::json!({ "action": action, "cases": changed, "left_out": left });
        out::stdout(&line("cases_done", body));
    } else if !common.quiet {
        let rest = match left {
            0 => String::new(),
            1 => "; 1 left as it was: it changed meanwhile, or was so before".to_owned(),
            left => {
                format!("; {left} left as they were: they changed meanwhile, or were so before")
            }
        };
        page::say(&format!("{action}: {}{rest}", counted(changed, "case", "cases")));
    }
    Exit::Ok
}
