//! The queue: what waits, how much of it, how old it is, and the list to work through.

use std::collections::HashMap;
use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;

use crate::model::count::counted;
use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::monitor::facts::bucket_edges;
use crate::report::advice::severity;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::people::{CaseSum, PeopleDriver, Proposal, ProposalState, sums_of};
use crate::store::records::CaseRow;
use crate::web::act::Act;
use crate::web::error::Refused;
use crate::web::filter::Asked;
use crate::web::form::Fields;
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{
    Here, NOTHING, Page, age, amount, amount_cell, count, fact, form, hidden, id, note, row_head,
    small, th, title, unseen,
};
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::view::chart::aging;

/// Cases of one page.
const SHOWN: i64 = 50;

/// Where no index holds what is counted, so many cases are read and counted at most, the first by
/// number; of more it is said that there are more. A million would keep whoever waits waiting.
const COUNTED: i64 = 100_000;

/// How many cases the filter means.
struct Counted {
    sums: Vec<CaseSum>,
    all: i64,
    /// False: there may be more, which were not counted.
    is_whole: bool,
}

impl Counted {
    fn of(sums: Vec<CaseSum>, most: Option<i64>) -> Self {
        let all = sums.iter().fold(0_i64, |all, sum| all.saturating_add(sum.cases));
        Self { sums, all, is_whole: most.is_none_or(|most| all < most) }
    }

    /// `1,284`, or `100,000 or more`.
    fn words(&self) -> String {
        let more = if self.is_whole { "" } else { " or more" };
        format!("{}{more}", count(self.all))
    }
}

/// The page.
pub async fn page(site: &Rc<Site>, person: &Person, query: &Fields) -> Result<Response, Refused> {
    let now = person.db.now().await?;
    let asked = Asked::read(query, now)?;
    let after = query.text("after").and_then(|text| text.parse().ok());
    let filter = CaseFilter { limit: SHOWN.saturating_add(1), after, ..asked.filter.clone() };
    let mut cases = person.db.cases(&filter).await?;
    let more = cases.len() > usize::try_from(SHOWN).unwrap_or(usize::MAX);
    cases.truncate(usize::try_from(SHOWN).unwrap_or(usize::MAX));
    let is_all = !more && after.is_none();
    let counted = how_many(person, &asked.filter, is_all.then_some(cases.as_slice())).await?;
    let numbers: Vec<i64> = cases.iter().map(|case| case.number).collect();
    let live = live_proposals(person.db.proposals(&numbers).await?);
    let ages = ages(person, now, site).await?;
    let page = Page::of(site, person, Here::Queue, "Queue")
        .with(title("Queue", of_class("span", "soft").then(found(&counted, &asked))))
        .with(done(query))
        .with(of_class("section", "overview").then(figures(&counted)).then(ages))
        .with(filters(site, &asked));
    let list = match cases.last() {
        None => Html::from(of_class("div", "card empty").then("No case is meant by that.")),
        Some(last) => {
            let next = more.then(|| last.number.to_string());
            let form = form(person, &Link::to("/cases/preview")).at("class", "stack");
            let words = asked.pairs().map(|(name, value)| hidden(name, value)).collect::<Vec<_>>();
            form.then(words)
                .then(table(&cases, &live, now))
                .then(acts(site, &counted, &asked, next.as_deref()))
                .into()
        }
    };
    Ok(page.with(list).answer(StatusCode::OK))
}

/// A note of what was done just now.
fn done(query: &Fields) -> Option<El> {
    let said = Act::ALL.iter().find(|act| query.text("done") == Some(act.word()))?;
    Some(note("note good", said.done()))
}

/// The proposals that wait for something, by case.
pub fn live_proposals(proposals: Vec<Proposal>) -> HashMap<i64, Proposal> {
    let is_live = |proposal: &Proposal| {
        matches!(proposal.state, ProposalState::Open | ProposalState::Approved)
    };
    let live = proposals.into_iter().filter(is_live);
    live.map(|proposal| (proposal.case_number, proposal)).collect()
}

/// How many there are, and their sums. A list that ends on its first page is all there is; the
/// sums of all open cases stand in an index; anything else is counted as far as [`COUNTED`].
async fn how_many(
    person: &Person,
    filter: &CaseFilter,
    all: Option<&[CaseRow]>,
) -> Result<Counted, Refused> {
    if let Some(cases) = all {
        let amounts = cases.iter().map(|case| (case.currency.as_str(), case.amount_minor));
        return Ok(Counted::of(sums_of(amounts), None));
    }
    if *filter == (CaseFilter { open_only: true, ..CaseFilter::default() }) {
        return Ok(Counted::of(person.db.case_sums(filter).await?, None));
    }
    let sums = person.db.case_sums_of_first(filter, COUNTED).await?;
    Ok(Counted::of(sums, Some(COUNTED)))
}

/// The open cases by age, as in the reports: all of them, or as many as are counted.
async fn ages(person: &Person, now: Instant, site: &Site) -> Result<El, Refused> {
    let edges = bucket_edges(now, site.config.business_timezone.value);
    let (mut ages, mut all) = ([0_i64; 7], 0_i64);
    for (bucket, cases) in person.db.open_ages_of_first(&edges, COUNTED).await? {
        all = all.saturating_add(cases);
        if let Some(known) = ages.get_mut(bucket) {
            *known = known.saturating_add(cases);
        }
    }
    if all < COUNTED {
        return Ok(aging("All open cases by age", &ages));
    }
    let heading = format!("The first {} open cases by age", count(COUNTED));
    let words = "By number, which is nearly by age; those behind them are not in the bars.";
    Ok(aging(&heading, &ages).then(small(words)))
}

fn found(all: &Counted, asked: &Asked) -> String {
    let (one, many) = match asked.filter.open_only {
        true => ("open case", "open cases"),
        false => ("case", "cases"),
    };
    let narrowed = if asked.given.is_empty() { "" } else { " that the filter means" };
    format!("{}{narrowed}, the oldest first", counted(all.words(), one, many))
}

fn figures(counted: &Counted) -> El {
    let all = el("dd").then(counted.words());
    let mut list = of_class("dl", "figures")
        .then(of_class("div", "big").then(el("dt").then("cases")).then(all));
    for sum in &counted.sums {
        let name = match sum.currency.as_str() {
            "" => "without an amount",
            code => code,
        };
        let name = Html::from(name)
            .with(of_class("span", "soft").then(format!(" ({})", count(sum.cases))));
        let (figures, _code) = amount(sum.amount_minor, &sum.currency);
        list = list.then(el("div").then(el("dt").then(name)).then(el("dd").then(figures)));
    }
    let cut = (!counted.is_whole).then(|| {
        small(format!("The sums are of the first {} cases, by number.", count(counted.all)))
    });
    of_class("div", "card").then(el("h2").then("What the filter means")).then(list).then(cut)
}

fn filters(site: &Site, asked: &Asked) -> El {
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let accounts: Vec<&str> = site.config.accounts.keys().map(String::as_str).collect();
    let states: Vec<&str> = ProposalState::ALL.iter().map(|state| state.as_str()).collect();
    let buttons = of_class("div", "row")
        .then(of_class("button", "main").then("Filter"))
        .then(of_class("a", "button").href(&Link::to("/cases")).then("Clear"));
    let first = of_class("div", "fields")
        .then(choice(asked, "reason", "Reason", &reasons))
        .then(choice(asked, "account", "Account", &accounts))
        .then(typed(asked, "owner", "Owner", "- for nobody"))
        .then(typed(asked, "older", "Older than", "3d"))
        .then(choice(asked, "proposed", "Proposal", &states))
        .then(buttons);
    let second = of_class("div", "fields")
        .then(choice(asked, "state", "State", &["all"]))
        .then(typed(asked, "currency", "Currency", "EUR"))
        .then(typed(asked, "amount_from", "From amount", "500.00"))
        .then(typed(asked, "amount_to", "To amount", ""))
        .then(typed(asked, "younger", "Younger than", "6h"))
        .then(typed(asked, "table", "Table", ""))
        .then(typed(asked, "run", "Opened by run", ""))
        .then(typed(asked, "rule", "Rule", ""))
        .then(typed(asked, "policy", "Policy", ""))
        .then(typed(asked, "part_of", "Part of case", "C-1043"));
    let more = el("details")
        .flag("open", asked.is_detailed())
        .then(of_class("summary", "small").then("Amount, currency, table, run, rule"))
        .then(second);
    of_class("form", "card stack screen")
        .at("method", "get")
        .action(&Link::to("/cases"))
        .at("aria-label", "Filter")
        .then(first)
        .then(more)
}

fn choice(asked: &Asked, name: &'static str, label: &str, words: &[&str]) -> El {
    let given = asked.word(name);
    let none = if name == "state" { "open" } else { "any" };
    let mut select = el("select").at("id", name).at("name", name);
    select = select.then(el("option").at("value", "").then(none));
    for word in words {
        let option = el("option").at("value", word).flag("selected", *word == given);
        select = select.then(option.then(*word));
    }
    el("div").then(el("label").at("for", name).then(label)).then(select)
}

fn typed(asked: &Asked, name: &'static str, label: &str, hint: &str) -> El {
    let input = el("input")
        .at("id", name)
        .at("name", name)
        .at("value", asked.word(name))
        .at("placeholder", hint);
    el("div").then(el("label").at("for", name).then(label)).then(input)
}

fn table(cases: &[CaseRow], live: &HashMap<i64, Proposal>, now: Instant) -> El {
    let head = el("tr")
        .then(el("th").at("scope", "col").at("class", "tick").then(unseen("Choose")))
        .then(th("Case"))
        .then(th("Age"))
        .then(th("Reason"))
        .then(th("Severity"))
        .then(th("Amount").at("class", "num"))
        .then(th("Subject"))
        .then(th("Account"))
        .then(th("Owner"))
        .then(th("Proposal"));
    let rows: Vec<El> = cases.iter().map(|case| row(case, live.get(&case.number), now)).collect();
    let table = of_class("table", "list")
        .then(of_class("caption", "hidden").then("Cases, the oldest first"))
        .then(el("thead").then(head))
        .then(el("tbody").then(rows));
    of_class("div", "card flush").then(table)
}

fn row(case: &CaseRow, proposal: Option<&Proposal>, now: Instant) -> El {
    let name = format!("C-{}", case.number);
    let tick = el("input")
        .at("type", "checkbox")
        .at("name", "case")
        .at("value", case.number)
        .at("aria-label", &name);
    let reason = of_class("td", "wide")
        .then(id(case.reason.as_str()))
        .then(of_class("span", "small soft").then(&case.text));
    let owner = match &case.owner {
        Some(owner) => el("td").at("data-label", "Owner").then(owner),
        None => of_class("td", "none").then(NOTHING),
    };
    let account = case.account.as_deref().unwrap_or(NOTHING);
    el("tr")
        .then(of_class("td", "tick").then(tick))
        .then(row_head(el("a").href(&Link::case(case.number)).then(name)))
        .then(
            of_class("td", "age")
                .at("data-label", "Age")
                .then(age(case.opened_at, case.closed_at.unwrap_or(now))),
        )
        .then(reason)
        .then(el("td").then(severity_tag(case.reason)))
        .then(amount_cell(i128::from(case.amount_minor), &case.currency))
        .then(of_class("td", "wide").at("data-label", "Subject").then(id(subject(case))))
        .then(el("td").at("data-label", "Account").then(account))
        .then(owner)
        .then(state_cell(case, proposal))
}

fn state_cell(case: &CaseRow, proposal: Option<&Proposal>) -> El {
    let (class, words) = match proposal.map(|proposal| proposal.state) {
        Some(ProposalState::Open) => ("tag good", "proposed"),
        Some(_) => ("tag good", "approved"),
        None if !case.open => ("tag", "closed"),
        None => return of_class("td", "none"),
    };
    el("td").then(of_class("span", class).then(words))
}

/// How grave it is: in words, and with a colour.
pub fn severity_tag(reason: Reason) -> El {
    let words = severity(reason);
    let class = match words {
        "critical" | "high" => "tag bad",
        "medium" => "tag warn",
        _low => "tag",
    };
    of_class("span", class).then(words)
}

/// What a case is about.
pub fn subject(case: &CaseRow) -> String {
    if case.table.is_empty() {
        format!("{} {}", case.subject_kind, case.subject)
    } else {
        format!("{}/{}", case.table, case.subject)
    }
}

fn acts(site: &Site, counted: &Counted, asked: &Asked, next: Option<&str>) -> El {
    let all = format!("all {} that the filter means", counted.words());
    let which = el("select")
        .at("id", "which")
        .at("name", "which")
        .then(el("option").at("value", "ticked").then("those ticked"))
        .then(el("option").at("value", "all").then(all));
    let mut what = el("select").at("id", "act").at("name", "act");
    for act in Act::IN_BULK.into_iter().filter(|act| *act != Act::Kick || site.carrier.is_some()) {
        what = what.then(el("option").at("value", act.word()).then(act.word()));
    }
    let labelled = |name: &'static str, label: &str, field: El| {
        el("div").then(el("label").at("for", name).then(label)).then(field)
    };
    let export = Link::to("/cases.csv").with_all(asked.pairs());
    let next = next.map(|after| {
        let link = Link::to("/cases").with_all(asked.pairs()).with("after", after);
        of_class("a", "button").href(&link).at("rel", "next").then("Next page")
    });
    of_class("div", "card row acts")
        .then(labelled("which", "Which", which))
        .then(labelled("act", "What", what))
        .then(of_class("button", "low").then("Preview …"))
        .then(
            of_class("div", "row right").then(
                Html::from(of_class("a", "button").href(&export).then("Export CSV")).with(next),
            ),
        )
}

/// Facts of a list of definitions.
pub fn facts(pairs: Vec<(&str, Html)>) -> El {
    let facts: Vec<El> = pairs.into_iter().map(|(name, value)| fact(name, value)).collect();
    of_class("dl", "facts").then(facts)
}
