//! Many cases at once, before anything is done: how many, how much, the first few, and the form
//! that says yes. It holds what each case showed.

use std::collections::HashMap;
use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;

use crate::model::count::counted;
use crate::model::time::Instant;
use crate::store::driver::{CaseFilter, Driver};
use crate::store::people::{PeopleDriver, Proposal, ProposalState, sums_of};
use crate::store::records::CaseRow;
use crate::web::act::{Act, MOST, seen_of};
use crate::web::error::Refused;
use crate::web::filter::Asked;
use crate::web::form::Fields;
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{
    Here, Page, age, amount, amount_cell, card, flush, form, hidden, id, row_head, scroll, small,
    th, title,
};
use crate::web::routes::number_of;
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::view::decide;
use crate::web::view::queue::{live_proposals, severity_tag, subject};

/// Cases that are shown of them.
const SAMPLES: usize = 5;

/// Cases read at once.
const PAGE: i64 = 500;

/// The page.
pub async fn page(site: &Rc<Site>, person: &Person, fields: &Fields) -> Result<Response, Refused> {
    let act = fields.text("act").and_then(Act::parse);
    let act = act.filter(|act| Act::IN_BULK.contains(act));
    let act = act.ok_or_else(|| Refused::words("The form does not say what to do"))?;
    let now = person.db.now().await?;
    let mut cases = meant(person, fields, act, now).await?;
    let numbers: Vec<i64> = cases.iter().map(|case| case.number).collect();
    let live = live_proposals(person.db.proposals(&numbers).await?);
    let chosen = cases.len();
    let lacks = fitting(act, &mut cases, &live);
    if cases.is_empty() {
        let words = if chosen > 0 { lacks } else { "no case is meant by that." };
        return Err(Refused::words(format!("Nothing to {}: {words}", act.word())));
    }
    let left = chosen.saturating_sub(cases.len());
    let heading = format!("{}: {}", act.word(), counted(cases.len(), "case", "cases"));
    let left = (left > 0).then(|| small(format!("{}: {lacks}", counted(left, "other", "others"))));
    let needs_two = cases
        .iter()
        .filter(|case| site.config.four_eyes.needed(&case.currency, case.amount_minor))
        .count();
    // Whoever worked through a narrowed list goes on with it.
    let back = Link::to("/cases").with_all(Asked::given(fields).pairs());
    let page = Page::of(site, person, Here::Queue, heading.clone())
        .with(title(heading, Html::new()))
        .with(sums(&cases).then(left))
        .with(samples(&cases, &live, now))
        .with(yes(person, act, &cases, &live, needs_two, &back));
    Ok(page.answer(StatusCode::OK))
}

/// Takes out what this cannot be done to; why not, in words.
fn fitting(act: Act, cases: &mut Vec<CaseRow>, live: &HashMap<i64, Proposal>) -> &'static str {
    let open =
        |case: &CaseRow| live.get(&case.number).filter(|one| one.state == ProposalState::Open);
    let is_of_now = |case: &CaseRow, one: &Proposal| {
        one.fits(case.open) && !one.is_stale(case.evidence_sha256.as_ref())
    };
    match act {
        Act::Approve => {
            cases.retain(|case| open(case).is_some_and(|one| is_of_now(case, one)));
            "nothing waits there to be approved of what the case shows now."
        }
        Act::Reject => {
            cases.retain(|case| open(case).is_some());
            "nothing waits there to be approved."
        }
        Act::Kick => {
            let is_approved = |case: &CaseRow| {
                let approved =
                    live.get(&case.number).filter(|one| one.state == ProposalState::Approved);
                approved.is_some_and(|one| is_of_now(case, one))
            };
            cases.retain(|case| case.subject_kind == "row" && !is_approved(case));
            "no rule decides a case of an account, a file or a line, and what people approved is \
             carried out by the next run."
        }
        Act::Comment | Act::Assign | Act::Propose | Act::Undo | Act::Merge | Act::Split => "",
    }
}

/// The cases that were ticked, or all that the filter means.
async fn meant(
    person: &Person,
    fields: &Fields,
    act: Act,
    now: Instant,
) -> Result<Vec<CaseRow>, Refused> {
    let mut filter = if fields.text("which") == Some("all") {
        Asked::read(fields, now)?.filter
    } else {
        let numbers: Vec<i64> = fields.all("case").map(number_of).collect::<Result<_, _>>()?;
        CaseFilter { numbers: Some(numbers), ..CaseFilter::default() }
    };
    // What is closed has no owner and no new decision, and is no part of anything.
    let wants_open = matches!(act, Act::Assign | Act::Propose | Act::Kick | Act::Merge);
    filter.open_only = filter.open_only || wants_open;
    filter.limit = PAGE;
    let mut found: Vec<CaseRow> = Vec::new();
    loop {
        let page = person.db.cases(&filter).await?;
        let Some(last) = page.last() else { return Ok(found) };
        filter.after = Some(last.number);
        found.extend(page);
        if found.len() > MOST {
            let text = format!("More than {MOST} cases are meant: narrow them down");
            return Err(Refused::words(text));
        }
    }
}

fn sums(cases: &[CaseRow]) -> El {
    let mut list = of_class("dl", "figures");
    for sum in sums_of(cases.iter().map(|case| (case.currency.as_str(), case.amount_minor))) {
        let currency = sum.currency.as_str();
        let name = if currency.is_empty() { "without an amount" } else { currency };
        let (figures, _code) = amount(sum.amount_minor, currency);
        let name = el("dt").then(format!("{name} ({})", sum.cases));
        list = list.then(el("div").then(name).then(el("dd").then(figures)));
    }
    card("In all").then(list)
}

fn samples(cases: &[CaseRow], live: &HashMap<i64, Proposal>, now: Instant) -> El {
    let head = el("tr")
        .then(th("Case"))
        .then(th("Age"))
        .then(th("Reason"))
        .then(th("Severity"))
        .then(th("Amount").at("class", "num"))
        .then(th("Subject"))
        .then(th("Proposed"));
    let row = |case: &CaseRow| {
        let proposed = live.get(&case.number).map(decide::proposed_words).unwrap_or_default();
        el("tr")
            .then(row_head(
                el("a").href(&Link::case(case.number)).then(format!("C-{}", case.number)),
            ))
            .then(of_class("td", "age").at("data-label", "Age").then(age(case.opened_at, now)))
            .then(of_class("td", "wide why").then(id(case.reason.as_str())))
            .then(of_class("td", "grave").then(severity_tag(case.reason)))
            .then(amount_cell(i128::from(case.amount_minor), &case.currency))
            .then(of_class("td", "wide").at("data-label", "Subject").then(id(subject(case))))
            .then(of_class("td", "wide").then(proposed))
    };
    let rows: Vec<El> = cases.iter().take(SAMPLES).map(row).collect();
    let more = cases.len().saturating_sub(SAMPLES);
    let heading = match more {
        0 => "Which".to_owned(),
        more => format!("The first {SAMPLES}, and {more} more"),
    };
    let table =
        of_class("table", "list queue").then(el("thead").then(head)).then(el("tbody").then(rows));
    flush(&heading).then(scroll(table))
}

fn yes(
    person: &Person,
    act: Act,
    cases: &[CaseRow],
    live: &HashMap<i64, Proposal>,
    needs_two: usize,
    back: &Link,
) -> El {
    let seen: Vec<El> = cases
        .iter()
        .map(|case| {
            let open = live.get(&case.number).filter(|one| one.state == ProposalState::Open);
            hidden("seen", &seen_of(case, open))
        })
        .collect();
    let inner = match act {
        Act::Assign => decide::owner_field(None),
        Act::Propose => Html::from(decide::outcomes(true, false)).with(decide::object_field(&[])),
        Act::Merge => {
            let own = "Where that is one of these, the others become its parts.";
            Html::from(decide::into_field()).with(small(own))
        }
        Act::Comment | Act::Approve | Act::Reject | Act::Undo | Act::Kick | Act::Split => {
            Html::new()
        }
    };
    let kicked = (act == Act::Kick).then(|| small(decide::KICKED));
    let why = (act != Act::Assign).then(|| decide::why_field("why", act));
    let two = (act == Act::Propose && needs_two > 0).then(|| {
        small(format!("{needs_two} of them need two people: somebody else approves them."))
    });
    let form = form(person, &Link::to("/cases/act"))
        .at("class", "stack")
        .then(hidden("act", act.word()))
        .then(hidden("back", back.as_str()))
        .then(seen)
        .then(inner)
        .then(why)
        .then(
            of_class("div", "row")
                .then(of_class("button", "main").then(format!(
                    "{} all {}",
                    act.word(),
                    cases.len()
                )))
                .then(of_class("a", "button").href(back).then("Do nothing")),
        )
        .then(two)
        .then(kicked);
    card("Yes?").then(form)
}
