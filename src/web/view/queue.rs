//! The queue: what waits, how much of it, how old it is, and the list to work through.

use std::collections::HashMap;
use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;

use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::monitor::facts::bucket_edges;
use crate::report::advice::severity;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::people::{CaseSum, PeopleDriver, Proposal, ProposalState};
use crate::store::records::CaseRow;
use crate::web::act::Act;
use crate::web::error::Refused;
use crate::web::filter::Asked;
use crate::web::form::Fields;
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{
    Here, NOTHING, Page, age, amount, amount_cell, count, fact, form, hidden, id, note, row_head,
    th, title, unseen,
};
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::view::chart::aging;

/// Cases of one page.
const SHOWN: i64 = 50;

/// The page.
pub async fn page(site: &Rc<Site>, person: &Person, query: &Fields) -> Result<Response, Refused> {
    let now = person.db.now().await?;
    let asked = Asked::read(query, now)?;
    let after = query.text("after").and_then(|text| text.parse().ok());
    let filter = CaseFilter { limit: SHOWN.saturating_add(1), after, ..asked.filter.clone() };
    let mut cases = person.db.cases(&filter).await?;
    let more = cases.len() > usize::try_from(SHOWN).unwrap_or(usize::MAX);
    cases.truncate(usize::try_from(SHOWN).unwrap_or(usize::MAX));
    let sums = person.db.case_sums(&asked.filter).await?;
    let numbers: Vec<i64> = cases.iter().map(|case| case.number).collect();
    let live = live_proposals(person.db.proposals(&numbers).await?);
    let ages = ages(person, now, site).await?;
    let all = sum_of(&sums);
    let page = Page::of(site, person, Here::Queue, "Queue")
        .with(title("Queue", of_class("span", "soft").then(found(all, &asked))))
        .with(done(query))
        .with(
            of_class("section", "overview")
                .then(figures(&sums, all))
                .then(aging("All open cases by age", &ages)),
        )
        .with(filters(site, &asked));
    let list = match cases.last() {
        None => Html::from(of_class("div", "card empty").then("No case is meant by that.")),
        Some(last) => {
            let next = more.then(|| last.number.to_string());
            let form = form(person, &Link::to("/cases/preview")).at("class", "stack");
            let words = asked.pairs().map(|(name, value)| hidden(name, value)).collect::<Vec<_>>();
            form.then(words)
                .then(table(&cases, &live, now))
                .then(acts(all, &asked, next.as_deref()))
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

/// All open cases by age, as in the reports.
async fn ages(person: &Person, now: Instant, site: &Site) -> Result<[i64; 7], Refused> {
    let edges = bucket_edges(now, site.config.business_timezone.value);
    let mut ages = [0_i64; 7];
    for line in person.db.open_cases_by_age(&edges).await? {
        if let Some(known) = ages.get_mut(line.bucket) {
            *known = known.saturating_add(line.cases);
        }
    }
    Ok(ages)
}

fn sum_of(sums: &[CaseSum]) -> i64 {
    sums.iter().fold(0, |all, sum| all.saturating_add(sum.cases))
}

fn found(all: i64, asked: &Asked) -> String {
    let state = if asked.filter.open_only { "open cases" } else { "cases" };
    let narrowed = if asked.given.is_empty() { "" } else { " that the filter means" };
    format!("{} {state}{narrowed}, the oldest first", count(all))
}

fn figures(sums: &[CaseSum], all: i64) -> El {
    let mut list = of_class("dl", "figures")
        .then(of_class("div", "big").then(el("dt").then("cases")).then(el("dd").then(count(all))));
    for sum in sums {
        let name = match sum.currency.as_str() {
            "" => "without an amount",
            code => code,
        };
        let name = Html::from(name)
            .with(of_class("span", "soft").then(format!(" ({})", count(sum.cases))));
        let (figures, _code) = amount(sum.amount_minor, &sum.currency);
        list = list.then(el("div").then(el("dt").then(name)).then(el("dd").then(figures)));
    }
    of_class("div", "card").then(el("h2").then("What the filter means")).then(list)
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

fn acts(all: i64, asked: &Asked, next: Option<&str>) -> El {
    let which = el("select")
        .at("id", "which")
        .at("name", "which")
        .then(el("option").at("value", "ticked").then("those ticked"))
        .then(el("option").at("value", "all").then(format!("all {all} that the filter means")));
    let mut what = el("select").at("id", "act").at("name", "act");
    for act in Act::IN_BULK {
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
