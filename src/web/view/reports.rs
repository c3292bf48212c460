//! The reports there are, the newest first.

use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;

use crate::model::time::from_text;
use crate::report::place::{Listed, ListedState};
use crate::web::download::listed;
use crate::web::error::Refused;
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{Here, NOTHING, Page, id, row_head, scroll, th, time, title};
use crate::web::sessions::Person;
use crate::web::site::Site;

/// Reports of the list; older ones are found through their run.
const SHOWN: usize = 200;

/// The page.
pub async fn page(site: &Rc<Site>, person: &Person) -> Result<Response, Refused> {
    let reports = listed(site).await;
    let page = Page::of(site, person, Here::Reports, "Reports")
        .with(title("Reports", of_class("span", "soft").then("the newest first")));
    if reports.is_empty() {
        let none = of_class("div", "card empty").then("No report lies where this server looks.");
        return Ok(page.with(none).answer(StatusCode::OK));
    }
    let head = el("tr")
        .then(th("Business date, and when its run began"))
        .then(th("Tie-out"))
        .then(th("End"))
        .then(th("Rows").at("class", "num"))
        .then(th("Run"));
    let rows: Vec<El> = reports.iter().take(SHOWN).map(row).collect();
    let table = of_class("table", "list").then(el("thead").then(head)).then(el("tbody").then(rows));
    Ok(page.with(of_class("div", "card flush").then(scroll(table))).answer(StatusCode::OK))
}

fn row(report: &Listed) -> El {
    let (tie, end, rows) = match &report.state {
        ListedState::Whole { tie_out, exit_class, rows, .. } => {
            let class = if tie_out == "tied" { "tag good" } else { "tag bad" };
            let tie = of_class("span", class).then(tie_out);
            (tie, exit_class.as_str(), rows.to_string())
        }
        ListedState::Unfinished => {
            (of_class("span", "tag warn").then("no manifest"), NOTHING, NOTHING.to_owned())
        }
        ListedState::Unreadable(_problem) => {
            (of_class("span", "tag bad").then("unreadable"), NOTHING, NOTHING.to_owned())
        }
    };
    // Two runs of a day differ by when they began.
    let began = match &report.state {
        ListedState::Whole { started_at, .. } => from_text(started_at).map(time),
        ListedState::Unfinished | ListedState::Unreadable(_) => None,
    };
    let began = began.map(|began| Html::from(", run of ").with(began));
    let link = el("a").href(&Link::run(&report.run_id)).then(&report.business_date).then(began);
    el("tr")
        .then(row_head(link))
        .then(el("td").then(tie))
        .then(el("td").at("data-label", "End").then(end))
        .then(of_class("td", "num").at("data-label", "Rows").then(rows))
        .then(of_class("td", "wide whole").then(id(&report.run_id)))
}
