//! Runs: how they ended, and whether what was claimed is what became of it.

use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use crate::cli::runs::{closed_by, noted_totals, waits, watched, withheld, withheld_words};
use crate::cli::screen::apart;
use crate::model::count::counted;
use crate::model::reason::Outcome;
use crate::model::time::Instant;
use crate::report::aging::AgingLine;
use crate::report::tie::{TieLine, TieOut, currency_words};
use crate::store::driver::Driver;
use crate::store::records::{RunRow, RunState, TotalLine};
use crate::web::download::{Report, report_of};
use crate::web::error::Refused;
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{
    Here, NOTHING, Page, amount, card, count, flush, id, note, row_head, scroll, scroll_of, small,
    th, time, title,
};
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::view::chart::{AGES, aging};
use crate::web::view::queue::facts;

/// Runs of the list.
const SHOWN: i64 = 50;

/// The list, the newest first.
pub async fn list(site: &Rc<Site>, person: &Person) -> Result<Response, Refused> {
    let runs = person.db.runs(SHOWN).await?;
    let page = Page::of(site, person, Here::Runs, "Runs")
        .with(title("Runs", of_class("span", "soft").then("the newest first")));
    if runs.is_empty() {
        let none = of_class("div", "card empty").then("No run yet.");
        return Ok(page.with(none).answer(StatusCode::OK));
    }
    let head = el("tr")
        .then(th("Began"))
        .then(th("Command"))
        .then(th("End"))
        .then(th("Records").at("class", "num"))
        .then(th("On"))
        .then(th("Run"));
    let rows: Vec<El> = runs.iter().map(row).collect();
    let table = of_class("table", "list").then(el("thead").then(head)).then(el("tbody").then(rows));
    Ok(page.with(of_class("div", "card flush").then(scroll(table))).answer(StatusCode::OK))
}

fn row(run: &RunRow) -> El {
    el("tr")
        .then(row_head(el("a").href(&Link::run(&run.id)).then(time(run.started_at))))
        .then(el("td").then(&run.command))
        .then(el("td").then(end_tag(run)))
        .then(of_class("td", "num").at("data-label", "Records").then(count(run.journal_count)))
        .then(el("td").at("data-label", "On").then(&run.host))
        .then(of_class("td", "wide whole").then(id(&run.id)))
}

/// How a run ended, in words and with a colour.
fn end_tag(run: &RunRow) -> El {
    let (class, words) = match (run.exit_code, run.exit_class.as_deref()) {
        (Some(0), Some(class)) => ("tag good", class.to_owned()),
        (Some(code @ (3 | 4)), Some(class)) => ("tag warn", format!("{class} (exit {code})")),
        (Some(code), Some(class)) => ("tag bad", format!("{class} (exit {code})")),
        _open if run.state == RunState::Running => ("tag", "running".to_owned()),
        _odd => ("tag warn", run.state.as_str().to_owned()),
    };
    of_class("span", class).then(words)
}

/// One run.
pub async fn page(site: &Rc<Site>, person: &Person, run: &str) -> Result<Response, Refused> {
    let run = person.db.run(run).await?.ok_or_else(Refused::no_page)?;
    let report = report_of(site, &run.id).await;
    let notes: Value = serde_json::from_str(&run.notes).unwrap_or_default();
    // What a run counted at its end stays as it is: its journal only grows while it runs.
    let noted = noted_totals(&notes);
    let is_noted = noted.is_some();
    let totals = match noted {
        Some(totals) => totals,
        None => person.db.run_totals(&run.id).await?,
    };
    let pruned_at = person.db.pruned_at(&run.id).await?;
    let is_lost = pruned_at.is_some() && !is_noted && totals.is_empty();
    let kept_back = withheld(&person.db, &run, pruned_at.is_some()).await?;
    let tie = crate::report::tie_out(&totals);
    let shown = apart(&totals, &waits(&notes), &watched(&notes)).unwrap_or(totals);
    let beside = verdict(&run, &tie, is_lost);
    let heading = format!("Run of {}", run.started_at.format("%Y-%m-%d %H:%MZ"));
    let aged =
        ages(&notes).map(|counts| aging("Open cases by age at the end of this run", &counts));
    let page = Page::of(site, person, Here::Runs, heading.clone())
        .with(title(heading, beside))
        .with(head(&run))
        .with(life(&run))
        .with(gone(pruned_at))
        .with(not_examined(&notes))
        .with(
            withheld_words(kept_back).map(|words| note("note warn", format!("Withheld: {words}."))),
        )
        .with(if is_lost { lost() } else { ties(&run, &tie, &shown) })
        .with(aged)
        .with(downloads(report.as_ref()));
    Ok(page.answer(StatusCode::OK))
}

/// What is said of both sides at first sight: nothing, where there is none to be compared.
fn verdict(run: &RunRow, tie: &TieOut, is_lost: bool) -> El {
    if run.state == RunState::Running {
        of_class("span", "tag").then("running")
    } else if is_lost {
        of_class("span", "tag").then("pruned")
    } else if tie.is_tied() {
        of_class("span", "tag good").then("ties out")
    } else {
        of_class("span", "tag bad").then(format!("UNTIED: {}", tie.untied().join(", ")))
    }
}

fn head(run: &RunRow) -> El {
    let ended = run.ended_at.map_or_else(|| NOTHING.into(), |at| Html::from(time(at)));
    let pairs = vec![
        ("run", id(&run.id).into()),
        ("command", Html::from(&run.command)),
        ("began", time(run.started_at).into()),
        ("ended", ended),
        ("end", end_tag(run).into()),
        ("on", format!("{} (pid {})", run.host, run.pid).into()),
        ("journal", counted(count(run.journal_count), "record", "records").into()),
        ("policy", id(&run.policy_version).into()),
        ("tieout", Html::from(&run.version)),
    ];
    of_class("section", "card").then(facts(pairs))
}

/// When a run that has not ended last showed that it goes on.
fn life(run: &RunRow) -> Option<El> {
    if run.state != RunState::Running {
        return None;
    }
    // To the second: two minutes of silence are all there is to it.
    let at = run.heartbeat_at.format("%Y-%m-%d %H:%M:%SZ").to_string();
    let at = el("time").at("datetime", at.replace(' ', "T")).then(at);
    let words = Html::from("Its last sign of life was at ").with(at);
    Some(note("note", words.with(format!("; {}.", closed_by()))))
}

/// In the place of sums that nobody knows any more. That rows were claimed, its records said.
fn lost() -> El {
    let words = "Its totals went with its records; where its report was kept, its summary.csv \
                 has them.";
    card("Tie-out").then(small(words))
}

/// That nobody can count anew what is shown.
fn gone(pruned_at: Option<Instant>) -> Option<El> {
    let at = pruned_at?;
    let words = Html::from("Its records were pruned ");
    let rest = "; what it counted at its end is shown, where it noted that.";
    Some(note("note", words.with(time(at)).with(rest)))
}

/// What did not come about, loudest of all.
fn not_examined(notes: &Value) -> Option<El> {
    let texts = |name: &str| {
        let list = notes[name].as_array().cloned().unwrap_or_default();
        list.into_iter().filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut lines = texts("not_examined");
    lines.extend(notes["error"].as_str().map(|text| format!("ended by: {text}")));
    lines.extend(texts("monitoring"));
    if lines.is_empty() {
        return None;
    }
    let lines: Vec<El> = lines.into_iter().map(|line| el("li").then(line)).collect();
    let head = el("p").then(el("strong").then("Not examined"));
    Some(of_class("div", "note warn").then(head).then(of_class("ul", "plain").then(lines)))
}

/// Claimed against all that became of it, by table and currency.
fn ties(run: &RunRow, tie: &TieOut, totals: &[TotalLine]) -> El {
    if tie.lines.is_empty() {
        return card("Tie-out").then(small("No row was claimed."));
    }
    let cards: Vec<El> = tie.lines.iter().map(|line| tie_card(run, line, totals)).collect();
    let figures = |minor: i128, currency: &str| amount(minor, currency).0.chars().count();
    let claimed = tie.lines.iter().map(|line| figures(line.claimed.amount_minor, &line.currency));
    let others = totals.iter().map(|total| figures(total.amount_minor, &total.currency));
    let longest = claimed.chain(others).max().unwrap_or_default();
    of_class("section", breadth(longest)).at("aria-label", "Tie-out").then(cards)
}

/// How broad the cards are whose longest figure has so many letters: no figure is cut off in them.
fn breadth(letters: usize) -> &'static str {
    match letters {
        0..=10 => "ties",
        11..=16 => "ties long",
        17..=24 => "ties longer",
        _more => "ties longest",
    }
}

/// The buckets in the order of a screen.
fn buckets() -> Vec<(&'static str, &'static str)> {
    let outcomes =
        [Outcome::Succeeded, Outcome::Retryable, Outcome::Failed, Outcome::Wait, Outcome::Review];
    let mut buckets: Vec<(&str, &str)> =
        outcomes.iter().map(|outcome| (outcome.as_str(), outcome.screen())).collect();
    buckets.extend([
        ("watched", "watched"),
        ("superseded", "changed meanwhile"),
        ("released", "released undecided"),
    ]);
    buckets
}

fn tie_card(run: &RunRow, line: &TieLine, totals: &[TotalLine]) -> El {
    let is_running = run.state == RunState::Running;
    let heading = format!("{} · {}", line.table, currency_words(&line.currency));
    let (claimed, residual) = (line.claimed, line.residual());
    let cells = |row: El, rows: i64, minor: i128| {
        let (figures, _code) = amount(minor, &line.currency);
        row.then(of_class("td", "num").then(count(rows))).then(of_class("td", "num").then(figures))
    };
    let mut body = el("tbody").then(cells(
        el("tr").then(row_head("claimed")),
        claimed.rows,
        claimed.amount_minor,
    ));
    for (bucket, words) in buckets() {
        let is_it = |total: &&TotalLine| {
            total.table == line.table && total.currency == line.currency && total.bucket == bucket
        };
        let Some(total) = totals.iter().find(is_it).filter(|total| total.rows != 0) else {
            continue;
        };
        let row = el("tr").then(row_head(words).at("class", "part"));
        body = body.then(cells(row, total.rows, total.amount_minor));
    }
    let left = if is_running { "not done with yet" } else { "not accounted for" };
    let row = of_class("tr", "sum").then(row_head(left));
    body = body.then(cells(row, residual.rows, residual.amount_minor));
    let head = el("tr")
        .then(el("th").at("scope", "col").then(""))
        .then(th("Rows").at("class", "num"))
        .then(th("Amount").at("class", "num"));
    // Rows that a run still holds are no difference.
    let verdict = if is_running {
        of_class("span", "tag").then("running")
    } else if line.is_tied() {
        of_class("span", "tag good").then("ties out")
    } else {
        of_class("span", "tag bad").then("UNTIED")
    };
    let table = el("table").then(el("thead").then(head)).then(body);
    of_class("div", "card flush")
        .then(el("h2").then(&heading).then(" ").then(verdict))
        .then(scroll_of(&heading, table))
}

/// The ages that the run itself noted at its end.
fn ages(notes: &Value) -> Option<[i64; 7]> {
    let lines: Vec<AgingLine> = serde_json::from_value(notes["aging"].clone()).ok()?;
    let mut counts = [0_i64; 7];
    for line in &lines {
        let at = AGES.iter().position(|(word, _, _)| *word == line.bucket);
        let Some(known) = at.and_then(|at| counts.get_mut(at)) else { continue };
        let closing = line.opening.saturating_add(line.new).saturating_sub(line.closed);
        *known = known.saturating_add(i64::try_from(closing).unwrap_or(i64::MAX));
    }
    Some(counts)
}

/// The files of a run's report.
pub fn downloads(report: Option<&Report>) -> El {
    let Some(report) = report else {
        return card("Report").then(small("No report of this run lies where this server looks."));
    };
    let rows: Vec<El> = report
        .files
        .iter()
        .map(|file| {
            let link = Link::to("/reports").part(&report.day).part(&report.run_id).part(&file.name);
            let rows = file.rows.map_or_else(|| NOTHING.to_owned(), |rows| rows.to_string());
            el("tr")
                .then(row_head(el("a").href(&link).flag("download", true).then(&file.name)))
                .then(of_class("td", "num").at("data-label", "Rows").then(rows))
                .then(of_class("td", "wide whole").then(id(&file.sha256)))
        })
        .collect();
    let head = el("tr").then(th("File")).then(th("Rows").at("class", "num")).then(th("SHA-256"));
    let table = of_class("table", "list").then(el("thead").then(head)).then(el("tbody").then(rows));
    flush("Report").at("id", "report").then(scroll(table))
}
