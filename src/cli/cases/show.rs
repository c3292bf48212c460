//! `cases show`: everything that a person decides by, on one screen.
//!
//! The row and what the sources showed stand side by side, each field marked as equal or not.
//! Nothing of it can be edited: what is said of a case is added to its history.

use chrono::TimeDelta;
use serde_json::json;

use crate::cli::args::{Common, yes_or_no};
use crate::cli::cases::decide::{body as proposal_body, seen_of, stale_text};
use crate::cli::cases::{body, find, money, number_of, subject};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::files::kept::line_body;
use crate::cli::rules::means::untold;
use crate::cli::{evidence, out, page, screen};
use crate::config::{Config, names};
use crate::decide::permit::stated_failure;
use crate::exit::Exit;
use crate::model::evidence::{Failure as Stated, PspObject};
use crate::model::money::Money;
use crate::model::reason::Reason;
use crate::model::time::{Instant, span_text, to_short_text, to_text};
use crate::psp::settings::PspKind;
use crate::report::advice::{
    Content, action_after, bank_question, next_of_file, remedy_after, rule_settles, severity,
    wants_look,
};
use crate::report::back::{Back, looks_at};
use crate::report::duplicates::Captures;
use crate::report::exceptions::shown;
use crate::report::line_case;
use crate::report::past::{Past, ended_as, past_of, with_undone};
use crate::run::kept::kept_by_newest;
use crate::run::release::content_of;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::files::{FileDriver as _, FileFilter, StoredLine};
use crate::store::people::{CaseLinks, CaseNote, PeopleDriver, Proposal, ProposalState, What};
use crate::store::records::{CaseRow, StoredInputs};

/// Objects beside the row on one screen of eighty columns; more follow below.
const BESIDE: usize = 3;

/// How wide the row's column of the comparison is: a whole instant.
const ROW_COLUMN: usize = 22;

/// How wide an object's column is where three stand beside each other.
const COLUMN: usize = 16;

/// Similar cases that are shown.
const SIMILAR: i64 = 3;

/// The SHA-256 is told in full by --json.
const SHORT_HASH: usize = 12;

/// Options of `cases show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The case: C-1043 or 1043
    case: String,
    /// The stored evidence itself, redacted as it was stored
    #[arg(long, env = names::CASES_RAW, value_parser = yes_or_no)]
    raw: bool,
}

/// All that is known of one case.
pub struct Known {
    pub case: CaseRow,
    pub evidence: Option<String>,
    /// The settlement line that it is about.
    line: Option<StoredLine>,
    /// What is known of the file that it is about.
    content: Content,
    notes: Vec<CaseNote>,
    /// What runs did with it.
    past: Vec<Past>,
    proposals: Vec<Proposal>,
    links: CaseLinks,
    similar: Vec<CaseRow>,
    /// What the objects' codes mean, where the case does not say it itself.
    means: Vec<String>,
    /// Where the account's dashboard is.
    dashboard: Option<String>,
    /// What an undo that was carried out left in the row.
    kept: Option<String>,
}

impl Known {
    /// The proposal that waits for somebody to approve it.
    pub fn open_proposal(&self) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.state == ProposalState::Open)
    }

    /// The objects that the evidence shows, as the screen numbers them.
    pub fn objects(&self) -> Vec<String> {
        let inputs = inputs_of(self.evidence.as_deref());
        let found = inputs.as_ref().map(StoredInputs::objects).unwrap_or_default();
        found.into_iter().map(|(_, object)| object.reference.clone()).collect()
    }

    /// What a person would usually decide, where that is a decision of tieout's.
    pub fn suggested(&self) -> Option<(What, Option<String>)> {
        let inputs = inputs_of(self.evidence.as_deref());
        suggestion(&self.case, inputs.as_ref()).1
    }
}

fn inputs_of(evidence: Option<&str>) -> Option<StoredInputs> {
    evidence.and_then(|text| serde_json::from_str(text).ok())
}

/// Runs the command.
pub async fn show(
    options: &Show,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let known = read(number_of(&options.case)?, config, db).await?;
    if options.raw {
        let raw = known.evidence.as_deref().unwrap_or("null");
        let value: serde_json::Value = serde_json::from_str(raw).unwrap_or_default();
        out::stdout(&serde_json::to_string_pretty(&value).unwrap_or_default());
    } else if common.json {
        out::stdout(&line("case", json_of(&known)));
    } else {
        screen(&known, common).iter().for_each(|line| page::say(line));
    }
    Ok(Exit::Ok)
}

/// Reads all of it.
pub async fn read(number: i64, config: &Config, db: &Database) -> Result<Known, Failure> {
    let case = find(number, db).await?;
    let failed = |e: crate::store::error::StoreError| Failure::store(&e);
    let evidence = match &case.evidence_sha256 {
        Some(hash) => db.evidence(hash).await.map_err(failed)?,
        None => None,
    };
    let inputs = inputs_of(evidence.as_deref());
    let proposals = db.proposals(&[number]).await.map_err(failed)?;
    let similar = db.similar_cases(&case, SIMILAR).await.map_err(failed)?;
    Ok(Known {
        evidence,
        line: line_case::line_of(db, &case).await.map_err(failed)?,
        content: content_of_file(db, &case).await.map_err(failed)?,
        notes: db.case_notes(number).await.map_err(failed)?,
        past: past_of(db, &case, &proposals).await.map_err(failed)?,
        kept: kept_by_newest(db, &config.tables, (&case).into(), &proposals)
            .await
            .map_err(failed)?,
        proposals,
        links: db.case_links(number).await.map_err(failed)?,
        similar: with_undone(db, similar).await.map_err(failed)?,
        dashboard: dashboard(config, case.account.as_deref()),
        means: inputs.map(|inputs| untold(&inputs, &case.text, config)).unwrap_or_default(),
        case,
    })
}

/// What is known of the file of a case; of any other case nothing is to be said of one.
async fn content_of_file(db: &Database, case: &CaseRow) -> Result<Content, StoreError> {
    let Some(id) = case.subject.parse().ok().filter(|_| case.subject_kind == "file") else {
        return Ok(Content::Known);
    };
    let filter = FileFilter { id: Some(id), limit: 1, ..FileFilter::default() };
    let found = db.files(&filter).await?;
    Ok(found.first().map_or(Content::Known, content_of))
}

fn json_of(known: &Known) -> serde_json::Value {
    let evidence = known.evidence.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let evidence: serde_json::Value = evidence.unwrap_or_default();
    let name = |number: &i64| format!("C-{number}");
    let resolution = ended_as(&known.case, &known.proposals);
    let case = CaseRow { resolution, ..known.case.clone() };
    let mut shown = json!({
        "case": body(&case),
        "evidence": evidence,
        "history": known.notes.iter().map(note_body).collect::<Vec<_>>(),
        "proposals": known.proposals.iter().map(proposal_body).collect::<Vec<_>>(),
        "similar": known.similar.iter().map(body).collect::<Vec<_>>(),
        "part_of": known.links.part_of.as_ref().map(name),
        "parts": known.links.parts.iter().map(name).collect::<Vec<_>>(),
        "seen": known.open_proposal().map(|proposal| seen_of(&known.case, proposal)),
    });
    if let (Some(fields), Some(line)) = (shown.as_object_mut(), &known.line) {
        fields.insert("line".to_owned(), line_body(line));
    }
    shown
}

fn note_body(note: &CaseNote) -> serde_json::Value {
    json!({
        "at": to_text(note.at),
        "kind": note.kind,
        "by": note.by,
        "text": note.text,
        "proposal": note.proposal,
        "run_id": note.run_id,
    })
}

/// The screen of one case. What people wrote stays as they wrote it.
pub fn screen(known: &Known, common: &Common) -> Vec<String> {
    let case = &known.case;
    let copyable = |text: String| common.copyable(&text).into_owned();
    let inputs = inputs_of(known.evidence.as_deref());
    let mut lines = head(known);
    if let Some(inputs) = &inputs {
        lines.extend(side_by_side(inputs, known.dashboard.as_deref()));
    }
    let heard = known.evidence.as_deref().map(evidence::lines).unwrap_or_default();
    lines.extend(labelled("evidence", &heard));
    lines.extend(labelled("means", &known.means));
    lines.extend(account_lines(case));
    lines.extend(file_lines(known));
    lines.extend(settled_line(known));
    if case.open && case.subject_kind == "row" {
        lines.extend(advice(case, inputs.as_ref()).into_iter().map(copyable));
    }
    lines.extend(labelled("proposed", &proposed(known, common)));
    lines.extend(entries("history", &history(known)));
    let similar: Vec<String> = known.similar.iter().map(similar_text).collect();
    lines.extend(labelled("similar", &similar));
    if case.subject_kind == "row" {
        let key = screen::shell_word(&case.subject);
        lines.push(copyable(format!("journal   tieout explain {key} --table {}", case.table)));
    }
    lines
}

/// The first line under its label, the others beneath it.
fn labelled(label: &str, texts: &[String]) -> Vec<String> {
    let line =
        |(at, text): (usize, &String)| format!("{:<10}{text}", if at == 0 { label } else { "" });
    texts.iter().enumerate().map(line).collect()
}

/// The same, of texts that people write: what goes on stands further right than what begins, so
/// that no words of theirs look like another entry.
fn entries(label: &str, texts: &[String]) -> Vec<String> {
    let lines = labelled(label, texts);
    lines.iter().flat_map(|line| page::broken_deeper(line)).collect()
}

fn head(known: &Known) -> Vec<String> {
    let case = &known.case;
    let owner = case.owner.as_deref().unwrap_or("–");
    let state = match (case.open, case.closed_at) {
        (false, Some(at)) => format!("closed {}", to_short_text(at)),
        (true, _) | (false, None) => "open".to_owned(),
    };
    let short = case.evidence_sha256.as_deref().and_then(|hash| hash.get(..SHORT_HASH));
    let mut lines = vec![
        format!(
            "C-{}  {}  {}  {}  {state}  owner {owner}",
            case.number,
            case.reason.as_str(),
            severity(case.reason),
            money(case)
        ),
        format!("subject   {}", subject(case)),
        format!("account   {}", case.account.as_deref().unwrap_or("–")),
        format!("why       {}", case.text),
        format!("          {}", case.reason.meaning()),
    ];
    lines.extend(case.rule.as_ref().map(|rule| format!("rule      {rule}")));
    let seen = short.map_or_else(|| "none".to_owned(), |short| format!("{short}…"));
    lines.push(format!("shows     evidence {seen}, policy {}", case.policy_version));
    lines.extend(known.links.part_of.map(|lead| format!("part of   C-{lead}")));
    if !known.links.parts.is_empty() {
        let parts: Vec<String> = known.links.parts.iter().map(|part| format!("C-{part}")).collect();
        lines.push(format!("parts     {}", parts.join(", ")));
    }
    let ended = ended_as(case, &known.proposals);
    lines.extend(ended.map(|ended| format!("ended     {ended}")));
    lines
}

/// Where a person looks an account's objects up: Stripe's own dashboard, and no other's.
fn dashboard(config: &Config, account: Option<&str>) -> Option<String> {
    let settings = &config.accounts.get(account?)?.settings;
    let is_its_own = settings.base_url.starts_with("https://api.stripe.com");
    let connected = settings.stripe_account.as_ref().map(|id| format!("{id}/"));
    let test = if settings.livemode { "" } else { "test/" };
    (settings.psp == PspKind::Stripe && is_its_own)
        .then(|| format!("https://dashboard.stripe.com/{}{test}", connected.unwrap_or_default()))
}

/// An object's page there.
fn link(dashboard: &str, reference: &str) -> Option<String> {
    let kind = reference.split_once('_').map(|(kind, _)| kind)?;
    let folder = match kind {
        "pi" | "ch" | "py" => "payments",
        "po" => "payouts",
        _other => return None,
    };
    Some(format!("{dashboard}{folder}/{reference}"))
}

/// The row beside the objects, field by field.
fn side_by_side(inputs: &StoredInputs, dashboard: Option<&str>) -> Vec<String> {
    let found = inputs.objects();
    if found.is_empty() {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for (at, (item, object)) in found.iter().enumerate() {
        let number = at.saturating_add(1);
        let label = if at == 0 { "objects" } else { "" };
        lines.push(format!(
            "{label:<10}[{number}] {} ({} of {})",
            object.reference,
            item.route.as_str(),
            item.account
        ));
        let link = dashboard.and_then(|dashboard| link(dashboard, &object.reference));
        lines.extend(link.map(|link| format!("{:<14}{link}", "")));
    }
    let numbered: Vec<(usize, &PspObject)> =
        found.iter().enumerate().map(|(at, (_, object))| (at.saturating_add(1), *object)).collect();
    for some in numbered.chunks(BESIDE) {
        lines.extend(block(inputs, some));
    }
    lines
}

fn block(inputs: &StoredInputs, some: &[(usize, &PspObject)]) -> Vec<String> {
    let row = &inputs.row;
    let wanted = row.money.map_or_else(|| "–".to_owned(), |money| money.to_string());
    let stored = row.psp_reference.as_deref();
    let each = |text: &dyn Fn(&PspObject) -> String| -> Vec<String> {
        some.iter().map(|(_, object)| text(object)).collect()
    };
    let mut fields = vec![
        ("status", row.status.clone(), each(&|object| object.status.clone())),
        ("amount", wanted, each(&|object| amount_text(object, row.money))),
        ("money", String::new(), each(&|object| object.state.as_str().to_owned())),
    ];
    let said = failures(some).into_iter().chain(went_back(inputs, some)).chain(still_open(some));
    fields.extend(said.map(|(label, others)| (label, String::new(), others)));
    let created = each(&|object| apart(row.created_at, object.created_at));
    fields.extend([
        ("created", to_short_text(row.created_at), created),
        ("tag", row.tag.text().to_owned(), each(&|object| tag_text(object, row.tag.text()))),
        ("reference", stored.unwrap_or("–").to_owned(), each(&|object| named_text(object, stored))),
    ]);
    let heads = some.iter().map(|(number, _)| format!("[{number}]")).collect::<Vec<_>>();
    let width = column_width(fields.iter().map(|(_, _, others)| others.as_slice()));
    let mut lines = vec![cells("", "row", &heads, width)];
    lines.extend(fields.iter().map(|(label, own, others)| cells(label, own, others, width)));
    lines
}

/// As wide as the longest text of an object needs, and as the screen has room for.
fn column_width<'a>(fields: impl Iterator<Item = &'a [String]>) -> usize {
    let (mut width, mut objects) = (COLUMN, 1_usize);
    for others in fields {
        let longest = others.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        width = width.max(longest.saturating_add(1));
        objects = objects.max(others.len());
    }
    let room = COLUMN.saturating_mul(BESIDE).checked_div(objects).unwrap_or(COLUMN);
    width.min(room.max(COLUMN))
}

/// What went back of each object, a line for each way in which any of them has some.
fn went_back(
    inputs: &StoredInputs,
    some: &[(usize, &PspObject)],
) -> Vec<(&'static str, Vec<String>)> {
    let looks: Vec<&PspObject> = shown(inputs).collect();
    let back: Vec<Back> =
        some.iter().map(|(_, object)| Back::of(&looks_at(object, &looks))).collect();
    let ways: [(&str, Vec<Option<&String>>); 3] = [
        ("refunded", back.iter().map(|back| back.refunded.as_ref()).collect()),
        ("disputed", back.iter().map(|back| back.disputed.as_ref()).collect()),
        ("returned", back.iter().map(|back| back.returned.as_ref()).collect()),
    ];
    where_any(ways.into())
}

/// What can still be captured of each object, whatever its status is.
fn still_open(some: &[(usize, &PspObject)]) -> Vec<(&'static str, Vec<String>)> {
    let sum_of = |object: &PspObject| {
        let sum = object.capturable().map_or_else(|| "yes".to_owned(), |sum| sum.to_string());
        (object.capturable_minor > 0).then_some(sum)
    };
    let sums: Vec<Option<String>> = some.iter().map(|(_, object)| sum_of(object)).collect();
    where_any(vec![("capturable", sums.iter().map(Option::as_ref).collect())])
}

/// The code and the advice of each object's failure: rules go by both. What the card network
/// advises stands beside it.
fn failures(some: &[(usize, &PspObject)]) -> Vec<(&'static str, Vec<String>)> {
    let of = |said: fn(&Stated) -> Option<&String>| -> Vec<Option<&String>> {
        some.iter().map(|(_, object)| stated_failure(object).and_then(said)).collect()
    };
    where_any(vec![
        ("code", of(|failure| Some(&failure.code).filter(|code| !code.is_empty()))),
        ("advice", of(|failure| failure.advice.as_ref())),
        ("network", of(|failure| failure.network_advice.as_ref())),
    ])
}

/// The lines in which any object has something.
fn where_any(lines: Vec<(&'static str, Vec<Option<&String>>)>) -> Vec<(&'static str, Vec<String>)> {
    let cell = |text: Option<&String>| text.cloned().unwrap_or_else(|| "–".to_owned());
    lines
        .into_iter()
        .filter(|(_, texts)| texts.iter().any(Option::is_some))
        .map(|(label, texts)| (label, texts.into_iter().map(cell).collect()))
        .collect()
}

fn cells(label: &str, own: &str, others: &[String], width: usize) -> String {
    let mut text = format!("{label:<10}{:<ROW_COLUMN$}", cut(own, ROW_COLUMN));
    for other in others {
        text.push_str(&format!("{:<width$}", cut(other, width)));
    }
    text.trim_end().to_owned()
}

/// What is too long for a column; the ids stand whole above it.
fn cut(text: &str, width: usize) -> String {
    let most = width.saturating_sub(1);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    // The mark at the end says more than the last letters.
    let mark = ["=", "≠"].into_iter().find(|mark| text.ends_with(*mark));
    let keep = most.saturating_sub(mark.map_or(1, |_| 3));
    let head: String = text.chars().take(keep).collect();
    match mark {
        Some(mark) => format!("{head}… {mark}"),
        None => format!("{head}…"),
    }
}

fn mark(is_equal: bool) -> &'static str {
    if is_equal { "=" } else { "≠" }
}

fn amount_text(object: &PspObject, wanted: Option<Money>) -> String {
    match object.captured.or(object.amount) {
        Some(money) => format!("{money} {}", mark(wanted == Some(money))),
        None => "unknown ≠".to_owned(),
    }
}

fn tag_text(object: &PspObject, own: &str) -> String {
    let tag = object.tag.as_deref().unwrap_or("none");
    format!("{tag} {}", mark(tag == own))
}

fn named_text(object: &PspObject, stored: Option<&str>) -> String {
    match stored {
        Some(stored) => mark(object.is_named(stored)).to_owned(),
        None => "–".to_owned(),
    }
}

/// How far apart two instants are: by a tenth of a second where that is close, else in minutes
/// before or after.
fn apart(row: Instant, object: Instant) -> String {
    let span = object.signed_duration_since(row);
    let tenths = span.num_milliseconds().saturating_abs() / 100;
    if tenths < 1_200 {
        return format!("{}.{} s apart", tenths / 10, tenths % 10);
    }
    let sign = if span < TimeDelta::zero() { '-' } else { '+' };
    let minutes = TimeDelta::minutes(span.num_minutes().saturating_abs());
    format!("{sign}{}", span_text(minutes))
}

/// What a person would usually do, and what was not done.
fn advice(case: &CaseRow, inputs: Option<&StoredInputs>) -> Vec<String> {
    let not_done = match inputs {
        Some(_) => "no end was written; nobody was charged, and nothing was refunded",
        None => "no row was changed by it",
    };
    let (text, _) = suggestion(case, inputs);
    vec![format!("suggested {text}"), format!("not done  {not_done}")]
}

/// What a person would usually do, in words, and as a decision where it is one.
fn suggestion(
    case: &CaseRow,
    inputs: Option<&StoredInputs>,
) -> (String, Option<(What, Option<String>)>) {
    let is_found = inputs.is_some_and(|inputs| !inputs.objects().is_empty());
    let captures = inputs.map(Captures::of).unwrap_or_default();
    let over = captures.given_back().map(|text| format!("{text}; ")).unwrap_or_default();
    let decided = |what: What, object: Option<&str>| {
        let with = object.map(|object| format!(" --object {object}")).unwrap_or_default();
        let number = case.number;
        let text =
            format!("tieout cases propose C-{number} --as {}{with} --why TEXT", what.as_str());
        (text, Some((what, object.map(str::to_owned))))
    };
    let words = |text: &str| (text.to_owned(), None);
    if would_end(case) {
        return words(&format!("tieout cases kick C-{} --why TEXT", case.number));
    }
    let wanted = inputs.and_then(|inputs| inputs.row.money);
    let action = action_after(case.reason, is_found, wanted, inputs.into_iter().flat_map(shown));
    match (action, captures.keep) {
        ("confirm_success", Some(keep)) => {
            let (text, decision) = decided(What::Succeeded, Some(keep));
            (format!("{over}{text}"), decision)
        }
        ("refund_duplicate", Some(keep)) if !captures.others.is_empty() => {
            let (text, decision) = decided(What::Succeeded, Some(keep));
            let others = captures.others.join(", ");
            (format!("{over}refund {others} at the PSP, then {text}"), decision)
        }
        ("refund_duplicate", _) => words("refund at the PSP what was paid twice"),
        ("retry_at_original_psp", _) => decided(What::Retryable, None),
        ("wait_until", _) => words("wait; it is looked at again"),
        ("contact_psp", _) if rule_settles(case.reason, inputs.into_iter().flat_map(shown)) => {
            words(&format!(
                "find out what its code means; a rule then settles all like it: \
                 tieout rules new --from-case C-{}",
                case.number
            ))
        }
        ("contact_psp", _) => match remedy_after(case.reason, inputs.into_iter().flat_map(shown)) {
            Some(text) if wants_look(case.reason) && case.subject_kind == "row" => {
                let key = screen::shell_word(&case.subject);
                words(&format!("{text}, then tieout run --id {key}"))
            }
            Some(text) => words(text),
            None => words("ask the PSP what became of it"),
        },
        ("contact_bank", _) => {
            words(bank_question(case.reason, inputs.into_iter().flat_map(shown)))
        }
        ("fix_reference", _) => words("mend the row's tag or reference"),
        ("write_off", _) => decided(What::Failed, None),
        (_none, _) if case.reason == Reason::WriteRefused => words(
            "mend what the database names, then tieout cases kick --reason write_refused: all of \
             them at once",
        ),
        (_none, _) => words("nothing by itself: look at the evidence"),
    }
}

/// Whether the daily look found that a run would decide what only time opened: there is nobody left
/// to be asked then.
fn would_end(case: &CaseRow) -> bool {
    let is_of_time = matches!(case.reason, Reason::PendingTooLong | Reason::Unprovable);
    is_of_time && case.text.ends_with(&format!("`tieout cases kick C-{}`", case.number))
}

fn proposed(known: &Known, common: &Common) -> Vec<String> {
    let mut texts = Vec::new();
    let stale = stale_text(known.case.number);
    for proposal in &known.proposals {
        let object = proposal.psp_reference.as_deref().map(|object| format!(" with {object}"));
        let is_stale = proposal.is_stale(known.case.evidence_sha256.as_ref());
        let state = match proposal.state {
            ProposalState::Open if is_stale => stale.as_str(),
            ProposalState::Open if proposal.four_eyes => "waits for another person",
            ProposalState::Open => "waits to be approved",
            ProposalState::Approved => "approved; the next run carries it out",
            ProposalState::Rejected => "rejected",
            ProposalState::Withdrawn => "withdrawn",
            ProposalState::Refused => "refused",
            ProposalState::CarriedOut => "carried out",
        };
        texts.push(format!(
            "{}{} by {}: {}; {state}",
            proposal.what.as_str(),
            object.unwrap_or_default(),
            proposal.proposed_by,
            proposal.why
        ));
        if proposal.state == ProposalState::Refused {
            texts.extend(proposal.ended_why.as_ref().map(|why| format!("  because: {why}")));
        }
    }
    let shown = known.case.evidence_sha256.as_ref();
    let open = known.open_proposal().filter(|proposal| !proposal.is_stale(shown));
    if let Some(proposal) = open {
        let seen = seen_of(&known.case, proposal);
        let short = seen.get(..SHORT_HASH).unwrap_or(&seen);
        let number = known.case.number;
        let command = format!("tieout cases approve C-{number} --why TEXT --yes --seen {short}");
        texts.push(common.copyable(&command).into_owned());
    }
    texts.extend(known.kept.as_ref().map(|kept| format!("  {kept}")));
    texts
}

/// What happened, in the order of its happening.
fn history(known: &Known) -> Vec<String> {
    let case = &known.case;
    let last = format!("last decided by run {} (seen {}×)", case.last_run, case.times_seen);
    let mut entries = vec![
        (case.opened_at, format!("opened by run {}", case.opened_run)),
        (case.last_seen_at, last),
    ];
    for note in &known.notes {
        let kind = note.kind.replace('_', " ");
        entries.push((note.at, format!("{kind} by {}: {}", note.by, note.text)));
    }
    entries.extend(known.past.iter().map(|past| (past.at, past.words())));
    entries.sort_by_key(|(at, _)| *at);
    entries.into_iter().map(|(at, text)| format!("{} {text}", to_short_text(at))).collect()
}

fn similar_text(case: &CaseRow) -> String {
    let how = case.resolution.as_deref().unwrap_or("closed");
    format!("C-{}  {}  {how}", case.number, money(case))
}

/// What a case about an account kept from happening, and what ends it: no person's word does.
fn account_lines(case: &CaseRow) -> Vec<String> {
    let (not_done, next) = match case.reason {
        Reason::AbsenceBrake => (
            "no row of the account was ended by absence; what was found paid or declined was \
             decided as always",
            "`tieout doctor` says how many of the newest payments carry your tag; the runbook \
             (docs/runbook.md, the absence brake) says what to mend. Nobody approves it: the next \
             runs prove again, let go of what is absent then, and close the case",
        ),
        Reason::AccountUnavailable => (
            "no row of the account was changed, and none lost a turn",
            "`tieout doctor` asks the account now; the first answer that a run gets closes the \
             case",
        ),
        _of_a_row => return Vec::new(),
    };
    if !case.open {
        return Vec::new();
    }
    vec![format!("not done  {not_done}"), format!("next      {next}")]
}

/// The settlement line that a case is about, and what ends the case.
fn settled_line(known: &Known) -> Vec<String> {
    let case = &known.case;
    let facts = known.line.as_ref().map(line_case::facts).unwrap_or_default();
    let mut lines = labelled("line", &facts);
    if case.open && case.subject_kind == "line" {
        lines.push("not done  no row was changed by it".to_owned());
        lines.push(format!("next      {}:", line_case::advice(case)));
        let number = case.number;
        lines.push(format!("          tieout cases propose C-{number} --as left --why TEXT"));
    }
    lines
}

/// What ends the case of a file: the commands that let it count, or leave it out.
fn file_lines(known: &Known) -> Vec<String> {
    let case = &known.case;
    if !case.open || case.subject_kind != "file" {
        return Vec::new();
    }
    let next = next_of_file(case.reason, (&case.subject, known.content), case.number);
    vec!["not done  no row was changed by it".to_owned(), format!("next      {next}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_its_mark() {
        assert_eq!(cut("pay_1 =", COLUMN), "pay_1 =");
        assert_eq!(cut("a_very_long_tag_indeed =", COLUMN), "a_very_long_… =");
        assert_eq!(cut("requires_payment_method", COLUMN), "requires_payme…");
        for text in ["x".repeat(99), format!("{} ≠", "y".repeat(99))] {
            assert_eq!(cut(&text, COLUMN).chars().count(), COLUMN - 1, "{text}");
        }
    }

    #[test]
    fn a_column_takes_the_room_that_is_free() {
        let width = |texts: &[&str]| {
            let others: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            column_width([others.as_slice()].into_iter())
        };
        assert_eq!(width(&["succeeded"]), COLUMN);
        assert_eq!(width(&["requires_payment_method", "succeeded"]), 24);
        assert_eq!(width(&["requires_payment_method", "succeeded", "x"]), COLUMN);
        let long = "x".repeat(99);
        assert_eq!(width(&[&long]), 48);
    }

    #[test]
    fn instants_stand_apart() {
        let noon = crate::model::time::from_text("2026-11-19T12:00:00.000000Z").unwrap();
        for (ms, text) in [
            (0, "0.0 s apart"),
            (-1_000, "1.0 s apart"),
            (36_400, "36.4 s apart"),
            (119_999, "119.9 s apart"),
            (120_000, "+2min"),
            (-3_661_000, "-61min"),
            (7_200_000, "+2h"),
        ] {
            assert_eq!(apart(noon, noon + TimeDelta::milliseconds(ms)), text);
        }
    }

    #[test]
    fn an_object_has_its_page() {
        let base = "https://dashboard.stripe.com/test/";
        assert_eq!(link(base, "pi_1").as_deref(), Some(&*format!("{base}payments/pi_1")));
        assert_eq!(link(base, "po_1").as_deref(), Some(&*format!("{base}payouts/po_1")));
        assert_eq!(link(base, "8835"), None);
    }
}
