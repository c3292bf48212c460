//! One case: everything that a person decides by, and the forms to decide it.
//!
//! Nothing of what the sources showed can be edited. What is said is added to the history.

use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;

use crate::cli::screen::shell_word;
use crate::model::time::Instant;
use crate::report::advice::{action_after, bank_question, remedy_after, rule_settles, wants_look};
use crate::report::duplicates::Captures;
use crate::report::exceptions::shown;
use crate::report::line_case;
use crate::report::past::{Past, ended_as, past_of, with_undone};
use crate::run::kept::{OfCase, kept_by, kept_by_last, kept_if};
use crate::run::people::second_needed_by;
use crate::store::driver::Driver;
use crate::store::files::StoredLine;
use crate::store::people::{CaseLinks, CaseNote, PeopleDriver, Proposal, ProposalState, What};
use crate::store::records::{CaseRow, StoredInputs};
use crate::web::act::Act;
use crate::web::error::Refused;
use crate::web::form::Fields;
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{
    Here, NOTHING, Page, age, amount, amount_cell, card, flush, id, note, row_head, scroll, short,
    small, time, title,
};
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::view::decide::Deciding;
use crate::web::view::queue::{facts, severity_tag, subject};
use crate::web::view::{beside, said};

/// Similar cases that are shown.
const SIMILAR: i64 = 5;

/// Digits of a hash that are shown.
const SHORT_HASH: usize = 12;

/// All that is known of one case.
struct Known {
    case: CaseRow,
    inputs: Option<StoredInputs>,
    /// The settlement line that it is about.
    line: Option<StoredLine>,
    notes: Vec<CaseNote>,
    past: Vec<Past>,
    proposals: Vec<Proposal>,
    links: CaseLinks,
    similar: Vec<CaseRow>,
    /// What the undo that waits or is proposed next would leave in the row, where it is by a
    /// success; and what the one that ended the case left.
    keeps: Option<String>,
    kept: Option<String>,
}

/// The page.
pub async fn page(
    site: &Rc<Site>,
    person: &Person,
    number: i64,
    query: &Fields,
) -> Result<Response, Refused> {
    let known = read(site, person, number).await?;
    let now = person.db.now().await?;
    let case = &known.case;
    let objects = known.inputs.as_ref().map(beside::named).unwrap_or_default();
    let deciding = Deciding {
        person,
        case,
        proposals: &known.proposals,
        objects: &objects,
        links: &known.links,
        can_kick: site.carrier.is_some(),
        needs_two: site.config.four_eyes.needed(&case.currency, case.amount_minor),
        alone_too_few: too_few(site, known.inputs.as_ref(), now),
        keeps: known.keeps.clone(),
        carried_by: match site.carrier {
            Some(_) => "It is carried out within moments.",
            None => "The next run carries it out.",
        },
        waits_for: site.waits.borrow().get(&case.number).cloned(),
    };
    let (figures, code) = amount(i128::from(case.amount_minor), &case.currency);
    let heading = format!("C-{} · {}", case.number, case.reason.as_str());
    let state = match case.closed_at {
        Some(at) => Html::from("closed ").with(time(at)),
        None => format!("open for {}", age(case.opened_at, now)).into(),
    };
    let columns = of_class("div", "case")
        .then(el("div").then(evidence(&known)))
        .then(el("div").then(suggestion(&known)).then(deciding.cards()));
    let page = Page::of(site, person, Here::Queue, format!("C-{}", case.number))
        .with(title(heading, of_class("span", "amount").then(format!("{figures} {code}"))))
        .with(done(query))
        .with(head(&known, state))
        .with(columns);
    Ok(page.answer(StatusCode::OK))
}

/// Why one person is not enough to charge the row of a case again, or to end it as failed.
fn too_few(site: &Site, shown: Option<&StoredInputs>, now: Instant) -> Option<String> {
    let (shown, setup) = (shown?, site.config.setup());
    let ends = [What::Retryable, What::Failed];
    ends.into_iter().find_map(|what| second_needed_by(&setup, shown, what, now))
}

async fn read(site: &Site, person: &Person, number: i64) -> Result<Known, Refused> {
    let db = &person.db;
    let case = db.case(number).await?.ok_or_else(Refused::no_page)?;
    let stored = match &case.evidence_sha256 {
        Some(hash) => db.evidence(hash).await?,
        None => None,
    };
    let proposals = db.proposals(&[number]).await?;
    let similar = db.similar_cases(&case, SIMILAR).await?;
    let (tables, row) = (&site.config.tables, OfCase::from(&case));
    let open = proposals.iter().find(|one| one.state == ProposalState::Open);
    let keeps = match open {
        Some(decision) => kept_by(db, tables, row, decision, &proposals).await?,
        None => kept_if(db, tables, row, (What::Succeeded, None), &proposals).await?,
    };
    Ok(Known {
        keeps,
        kept: kept_by_last(db, tables, row, &proposals).await?,
        inputs: stored.and_then(|text| serde_json::from_str(&text).ok()),
        line: line_case::line_of(db, &case).await?,
        notes: db.case_notes(number).await?,
        past: past_of(db, &case, &proposals).await?,
        proposals,
        links: db.case_links(number).await?,
        similar: with_undone(db, similar).await?,
        case,
    })
}

fn done(query: &Fields) -> Option<El> {
    let said = Act::ALL.iter().find(|act| query.text("done") == Some(act.word()))?;
    Some(note("note good", said.done()))
}

fn head(known: &Known, state: Html) -> El {
    let case = &known.case;
    let raw = Link::case(case.number).part("evidence.json");
    let hash = case.evidence_sha256.as_ref().map(|hash| {
        let short: String = hash.chars().take(SHORT_HASH).collect();
        of_class("a", "id").href(&raw).then(format!("{short}…"))
    });
    let text = |words: Option<&String>| match words {
        Some(words) => Html::from(words),
        None => NOTHING.into(),
    };
    let case_link = |number: &i64| el("a").href(&Link::case(*number)).then(format!("C-{number} "));
    let mut pairs = vec![
        ("severity", severity_tag(case.reason).into()),
        ("state", state),
        ("owner", text(case.owner.as_ref())),
        ("subject", id(subject(case)).into()),
        ("account", text(case.account.as_ref())),
        ("evidence", hash.map_or_else(|| NOTHING.into(), Html::from)),
        ("policy", id(&case.policy_version).into()),
    ];
    pairs.extend(case.rule.as_ref().map(|rule| ("rule", id(rule).into())));
    pairs.extend(known.links.part_of.map(|lead| ("part of", case_link(&lead).into())));
    if !known.links.parts.is_empty() {
        let parts: Vec<El> = known.links.parts.iter().map(case_link).collect();
        pairs.push(("parts", parts.into()));
    }
    let ended = ended_as(case, &known.proposals).map(|ended| plainly(&ended, &known.proposals));
    let ended = ended.map(|ended| of_class("p", "note").then("It ended: ").then(ended));
    let words = short(&case.text);
    let whole = (words != case.text).then(|| {
        el("details").then(el("summary").then("The whole text")).then(el("p").then(&case.text))
    });
    of_class("section", "card")
        .then(el("p").then(el("strong").then(words)))
        .then(whole)
        .then(of_class("p", "soft").then(case.reason.meaning()))
        .then(facts(pairs))
        .then(ended)
        .then(known.kept.as_ref().map(|kept| small(format!("The status is written; {kept}."))))
}

/// What is known: side by side, in lines, and what was said of it.
fn evidence(known: &Known) -> Html {
    let Known { case, inputs, .. } = known;
    let lines: Vec<El> = inputs
        .as_ref()
        .map(said::lines)
        .unwrap_or_default()
        .into_iter()
        .map(|line| el("li").then(line))
        .collect();
    let heard = (!lines.is_empty())
        .then(|| card("What the sources said").then(of_class("ul", "plain").then(lines)));
    let nothing = (inputs.is_none() && case.evidence_sha256.is_some()).then(|| {
        let raw = Link::case(case.number).part("evidence.json");
        card("Evidence").then(
            el("p")
                .then("It is about no row: its figures stand in ")
                .then(el("a").href(&raw).then("the stored evidence"))
                .then("."),
        )
    });
    Html::from(inputs.as_ref().and_then(beside::comparison))
        .with(heard)
        .with(known.line.as_ref().map(settled_line))
        .with(nothing)
        .with(history(known))
        .with(similar(known))
}

/// The settlement line, as its file has it.
fn settled_line(line: &StoredLine) -> El {
    let facts = line_case::facts(line).into_iter().map(|fact| el("li").then(fact));
    let facts: Vec<El> = facts.collect();
    card("The line of the file").then(of_class("ul", "plain").then(facts))
}

fn history(known: &Known) -> El {
    let case = &known.case;
    let run = |id: &str| of_class("a", "id").href(&Link::run(id)).then(short_id(id));
    let entry = |at: Instant| el("li").then(time(at));
    let seen = match case.times_seen {
        0 | 1 => String::new(),
        several => format!(" ({several} decisions led here)"),
    };
    let opened = entry(case.opened_at).then(" opened by run ").then(run(&case.opened_run));
    let last = entry(case.last_seen_at)
        .then(" last decided by run ")
        .then(run(&case.last_run))
        .then(of_class("span", "soft").then(seen));
    let mut entries = vec![(case.opened_at, opened), (case.last_seen_at, last)];
    for note in &known.notes {
        let by = el("strong").then(&note.by);
        let said = entry(note.at).then(" ").then(by).then(" ").then(did(note));
        entries.push((note.at, said));
    }
    for past in &known.past {
        let link = past.run_id.as_deref().map(run);
        let after = plainly(&past.after, &known.proposals);
        let text = entry(past.at).then(" ").then(&past.before).then(link).then(after);
        entries.push((past.at, text));
    }
    entries.sort_by_key(|(at, _)| *at);
    let entries: Vec<El> = entries.into_iter().map(|(_, entry)| entry).collect();
    card("History").then(of_class("ol", "history").then(entries))
}

/// What somebody did, and what they said of it: the kinds are words of the records.
fn did(note: &CaseNote) -> String {
    let what = match note.kind.as_str() {
        "comment" => "commented",
        "withdrawn" => "took it back",
        "carried_out" if note.text == "carried out" => return "carried it out".to_owned(),
        "carried_out" => "carried it out",
        "parted" => "took it out",
        other => other,
    };
    format!("{what}: {}", note.text)
}

/// An end by people, told so that nobody reads of a person who succeeded: the records have it
/// shorter.
fn plainly(text: &str, proposals: &[Proposal]) -> String {
    let ended = proposals.iter().filter(|one| one.state == ProposalState::CarriedOut);
    ended.fold(text.to_owned(), |text, proposal| {
        let maker = &proposal.proposed_by;
        let Some(checker) = &proposal.approved_by else { return text };
        let people = match maker == checker {
            true => format!(", as {maker} proposed and approved"),
            false => format!(", as {maker} proposed and {checker} approved"),
        };
        text.replacen(&format!(" by {checker}, proposed by {maker}"), &people, 1)
    })
}

/// The beginning of a run's id.
pub fn short_id(id: &str) -> String {
    let short: String = id.chars().take(8).collect();
    format!("{short}…")
}

fn similar(known: &Known) -> Option<El> {
    let rows: Vec<El> = known
        .similar
        .iter()
        .map(|case| {
            let name = el("a").href(&Link::case(case.number)).then(format!("C-{}", case.number));
            let how = case.resolution.as_deref().unwrap_or("closed");
            el("tr")
                .then(row_head(name))
                .then(amount_cell(i128::from(case.amount_minor), &case.currency))
                .then(of_class("td", "wide").then(how))
        })
        .collect();
    let table = |rows: Vec<El>| scroll(of_class("table", "list").then(el("tbody").then(rows)));
    (!rows.is_empty()).then(|| flush("Similar cases that closed").then(table(rows)))
}

/// What really helps, where the PSP has already said what became of it.
fn helps(known: &Known) -> Html {
    let case = &known.case;
    let Some(text) = remedy_after(case.reason, known.inputs.iter().flat_map(shown)) else {
        return "Ask the PSP what became of it.".into();
    };
    let text = capital(text);
    if wants_look(case.reason) && case.subject_kind == "row" {
        return Html::from(format!("{text}, then "))
            .with(id(format!("tieout run --id {}", shell_word(&case.subject))))
            .with(".");
    }
    Html::from(format!("{text}."))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// What a person would usually do, and what was not done.
fn suggestion(known: &Known) -> Option<El> {
    let case = &known.case;
    if !case.open || case.subject_kind == "account" {
        return None;
    }
    if case.subject_kind == "line" {
        let words = format!("{}.", capital(line_case::advice(case)));
        let words = el("p").then(words);
        return Some(card("Suggested").then(words).then(small("No row was changed by it.")));
    }
    let captures = known.inputs.as_ref().map(Captures::of).unwrap_or_default();
    let over = captures.given_back().map(|text| format!("{text}. ")).unwrap_or_default();
    let saw = known.inputs.as_ref().is_some_and(|inputs| !inputs.objects().is_empty());
    let wanted = known.inputs.as_ref().and_then(|inputs| inputs.row.money);
    let action = action_after(case.reason, saw, wanted, known.inputs.iter().flat_map(shown));
    let words: Html = match (action, captures.keep) {
        ("confirm_success", Some(keep)) => {
            Html::from(over).with("Propose that it succeeded with ").with(id(keep)).with(".")
        }
        ("refund_duplicate", Some(keep)) if !captures.others.is_empty() => {
            Html::from(format!("{over}Refund "))
                .with(id(captures.others.join(", ")))
                .with(" at the PSP, then propose that it succeeded with ")
                .with(id(keep))
                .with(".")
        }
        ("refund_duplicate", _) => "Refund at the PSP what was paid twice.".into(),
        ("retry_at_original_psp", _) => "Propose to charge again.".into(),
        ("wait_until", _) => "Wait: it is looked at again.".into(),
        ("contact_psp", _) if rule_settles(case.reason, known.inputs.iter().flat_map(shown)) => {
            Html::from("Find out what its code means. A rule then settles all like it: ")
                .with(id(format!("tieout rules new --from-case C-{}", case.number)))
                .with(".")
        }
        ("contact_psp", _) => helps(known),
        ("contact_bank", _) => {
            let question = bank_question(case.reason, known.inputs.iter().flat_map(shown));
            Html::from(format!("{}.", capital(question)))
        }
        ("fix_reference", _) => "Mend the row's tag or reference.".into(),
        ("write_off", _) => "Propose that it failed for good.".into(),
        (_none, _) => "Nothing by itself: look at the evidence.".into(),
    };
    let not_done = match known.inputs {
        Some(_) => "No end was written; nobody was charged, and nothing was refunded.",
        None => "No row was changed by it.",
    };
    Some(card("Suggested").then(el("p").then(words)).then(small(not_done)))
}
