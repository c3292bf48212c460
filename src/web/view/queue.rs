//! The queue: what waits, how much of it, how old it is, and the list to work through.

use std::collections::HashMap;
use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;

use crate::model::count::counted;
use crate::model::reason::{Leads, Outcome, Reason};
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
    scroll, short, small, th, title, unseen,
};
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::view::chart::aging;

/// Cases of one page.
const SHOWN: i64 = 50;

/// Where no index holds what is counted, so many cases are read and counted at most, the first by
/// number; of more it is said that there are more. A million would keep whoever waits waiting.
const COUNTED: i64 = 100_000;

/// Pages before this one whose beginnings an address holds; who goes further begins anew.
const TRAIL: usize = 200;

/// Where a page stands among those of its list: the number that it begins after, and those that
/// the pages before it began after; of the first one that is 0.
struct Place {
    after: Option<i64>,
    trail: Vec<i64>,
}

impl Place {
    fn read(query: &Fields) -> Result<Self, Refused> {
        let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
        let odd = || Refused::words("The address names no page of the list");
        let after = query.text("after").map(|text| number(text).ok_or_else(odd)).transpose()?;
        let trail = query.text("trail").unwrap_or_default().split('.');
        let trail = trail.filter(|part| !part.is_empty()).map(|part| number(part).ok_or_else(odd));
        Ok(Self { after, trail: trail.collect::<Result<_, _>>()? })
    }

    /// `page 3`; of a page whose way is not known nothing is said.
    fn words(&self) -> Option<String> {
        let number = self.trail.len().saturating_add(1);
        (number > 1).then(|| format!(" · page {number}"))
    }

    fn link(asked: &Asked, after: i64, trail: &[i64]) -> Link {
        let link = Link::to("/cases").with_all(asked.pairs());
        if after == 0 {
            return link;
        }
        let trail: Vec<String> = trail.iter().map(i64::to_string).collect();
        let link = link.with("after", &after.to_string());
        if trail.is_empty() { link } else { link.with("trail", &trail.join(".")) }
    }

    /// The page before this one; the first one where the way here is not known.
    fn previous(&self, asked: &Asked) -> Option<(Link, &'static str)> {
        self.after?;
        match self.trail.split_last() {
            Some((after, trail)) => Some((Self::link(asked, *after, trail), "Previous page")),
            None => Some((Self::link(asked, 0, &[]), "First page")),
        }
    }

    /// The page after this one, whose last case this is.
    fn next(&self, asked: &Asked, last: i64) -> Link {
        let mut trail = self.trail.clone();
        // Of a page that was come to by its number alone nobody knows which one it is.
        if self.after.is_none() || !trail.is_empty() {
            trail.push(self.after.unwrap_or_default());
        }
        if trail.len() > TRAIL {
            trail.clear();
        }
        Self::link(asked, last, &trail)
    }
}

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
    let read = Asked::of_address(query, now).and_then(|asked| Ok((asked, Place::read(query)?)));
    let (asked, place) = match read {
        Ok(read) => read,
        Err(refused) => return Ok(mistaken(site, person, query, &refused)),
    };
    let after = place.after;
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
        .with(title("Queue", of_class("span", "soft").then(found(&counted, &asked, &place))))
        .with(done(query))
        .with(of_class("section", "overview").then(figures(&counted)).then(ages))
        .with(filters(site, &asked));
    let list = match cases.last() {
        None => Html::from(of_class("div", "card empty").then(none_meant(site, &asked))),
        Some(last) => {
            let next = more.then(|| place.next(&asked, last.number));
            let turns = [
                place.previous(&asked).map(|(link, words)| turn(&link, "prev", words)),
                next.map(|link| turn(&link, "next", "Next page")),
            ];
            let form = form(person, &Link::to("/cases/preview")).at("class", "stack");
            let words = asked.pairs().map(|(name, value)| hidden(name, value)).collect::<Vec<_>>();
            form.then(words)
                .then(table(&cases, &live, now))
                .then(acts(site, &counted, &asked, turns))
                .into()
        }
    };
    Ok(page.with(list).answer(StatusCode::OK))
}

/// That there is none, and which name of the filter is none that is configured.
fn none_meant(site: &Site, asked: &Asked) -> String {
    let word = |name| Some(asked.word(name)).filter(|word| !word.is_empty());
    match site.config.unknown_names(word("account"), word("table")) {
        Some(why) => format!("No case is meant by that: {why}."),
        None => "No case is meant by that.".to_owned(),
    }
}

/// What was typed in the filter and cannot be meant, above the filter as it was typed.
fn mistaken(site: &Site, person: &Person, query: &Fields, refused: &Refused) -> Response {
    let words = of_class("div", "note bad")
        .at("role", "alert")
        .then(el("p").then(el("strong").then(&refused.text)))
        .then(el("p").then("Next: correct it here, or clear the filter."));
    Page::of(site, person, Here::Queue, "Queue")
        .with(title("Queue", Html::new()))
        .with(words)
        .with(filters(site, &Asked::given(query)))
        .answer(refused.status)
}

/// A note of what was done just now, and to how many.
fn done(query: &Fields) -> Option<El> {
    let act = Act::ALL.into_iter().find(|act| query.text("done") == Some(act.word()))?;
    let many = query.text("many").and_then(|text| text.parse::<usize>().ok());
    let said = match many {
        Some(many) => format!("{}: {}", counted(many, "case", "cases"), act.done_to_many()),
        None => act.done().to_owned(),
    };
    Some(note("note good", said))
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

fn found(all: &Counted, asked: &Asked, place: &Place) -> String {
    let (one, many) = match asked.filter.open_only {
        true => ("open case", "open cases"),
        false => ("case", "cases"),
    };
    let narrowed = if asked.given.is_empty() { "" } else { " that the filter means" };
    let page = place.words().unwrap_or_default();
    format!("{}{narrowed}, the oldest first{page}", counted(all.words(), one, many))
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
    let reasons = Reason::ALL.iter().copied().filter(|reason| is_of_cases(*reason));
    let reasons: Vec<&str> = reasons.map(Reason::as_str).collect();
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

/// Whether a case may have this reason: it sends to a person, or a rule or a setting may say so.
fn is_of_cases(reason: Reason) -> bool {
    match reason.leads() {
        Leads::To(outcome) => outcome == Outcome::Review,
        // A person's word ends a case, and opens none.
        Leads::ByPolicy => reason != Reason::ByPerson,
    }
}

fn choice(asked: &Asked, name: &'static str, label: &str, words: &[&str]) -> El {
    let given = asked.word(name);
    let none = if name == "state" { "open" } else { "any" };
    let mut select = el("select").at("id", name).at("name", name);
    select = select.then(el("option").at("value", "").then(none));
    // What the address says stands here too where it is none that is offered.
    let is_other = !given.is_empty() && !words.contains(&given);
    for word in words.iter().copied().chain(is_other.then_some(given)) {
        let option = el("option").at("value", word).flag("selected", word == given);
        select = select.then(option.then(word));
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
        .then(th("Subject, account"))
        .then(th("Owner"))
        .then(th("Proposal"));
    let rows: Vec<El> = cases.iter().map(|case| row(case, live.get(&case.number), now)).collect();
    let table = of_class("table", "list queue")
        .then(of_class("caption", "hidden").then("Cases, the oldest first"))
        .then(el("thead").then(head))
        .then(el("tbody").then(rows));
    of_class("div", "card flush").then(scroll(table))
}

fn row(case: &CaseRow, proposal: Option<&Proposal>, now: Instant) -> El {
    let name = format!("C-{}", case.number);
    let tick = el("input")
        .at("type", "checkbox")
        .at("name", "case")
        .at("value", case.number)
        .at("aria-label", &name);
    let reason = of_class("td", "wide why")
        .then(id(case.reason.as_str()))
        .then(of_class("span", "small soft").then(short(&case.text)));
    let owner = match &case.owner {
        Some(owner) => {
            let name = of_class("span", "name").at("title", owner).then(owner);
            el("td").at("data-label", "Owner").then(name)
        }
        None => of_class("td", "none").then(NOTHING),
    };
    let account = of_class("span", "small soft").then(case.account.as_deref().unwrap_or(NOTHING));
    el("tr")
        .then(of_class("td", "tick").then(tick))
        .then(row_head(el("a").href(&Link::case(case.number)).then(name)))
        .then(
            of_class("td", "age")
                .at("data-label", "Age")
                .then(age(case.opened_at, case.closed_at.unwrap_or(now))),
        )
        .then(reason)
        .then(of_class("td", "grave").then(severity_tag(case.reason)))
        .then(amount_cell(i128::from(case.amount_minor), &case.currency))
        .then(of_class("td", "wide").then(id(subject(case))).then(account))
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

/// Another page of the list.
fn turn(link: &Link, rel: &'static str, words: &str) -> El {
    of_class("a", "button").href(link).at("rel", rel).then(words)
}

fn acts(site: &Site, counted: &Counted, asked: &Asked, turns: [Option<El>; 2]) -> El {
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
    let export = of_class("a", "button").href(&export).then("Export CSV");
    let turns = turns.into_iter().fold(Html::from(export), Html::with);
    of_class("div", "card row acts")
        .then(labelled("which", "Which", which))
        .then(labelled("act", "What", what))
        .then(of_class("button", "low").then("Preview …"))
        .then(of_class("div", "row right").then(turns))
}

/// Facts of a list of definitions.
pub fn facts(pairs: Vec<(&str, Html)>) -> El {
    let facts: Vec<El> = pairs.into_iter().map(|(name, value)| fact(name, value)).collect();
    of_class("dl", "facts").then(facts)
}
