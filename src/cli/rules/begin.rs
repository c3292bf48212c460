//! `tieout rules new --from-case`: a rule begun from what a case shows.

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::cli::rules::New;
use crate::cli::rules::means::question;
use crate::cli::standing::found;
use crate::config::Config;
use crate::decide::rules::{Question, Subject};
use crate::exit::Exit;
use crate::model::evidence::PspObject;
use crate::model::transaction::AccountRef;
use crate::psp::rules::draft::{Draft, draft};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::records::{CaseRow, StoredInputs};

/// Runs the command.
pub async fn run(
    options: &New,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let digits = options.from_case.trim_start_matches(['C', 'c', '-']);
    let number: i64 = digits.parse().map_err(|_bad| {
        let given = &options.from_case;
        Failure::usage(format!("--from-case {given}: expected a case's number such as C-1043"))
    })?;
    let case = db.case(number).await.map_err(|e| Failure::store(&e))?;
    let case = case.ok_or_else(|| {
        let text = format!("there is no case C-{number}");
        Failure::new(Exit::Usage, text, "`tieout cases list --all` shows them")
    })?;
    let stored = match &case.evidence_sha256 {
        Some(hash) => db.evidence(hash).await.map_err(|e| Failure::store(&e))?,
        None => None,
    };
    let stored = stored.and_then(|text| serde_json::from_str::<StoredInputs>(&text).ok());
    let stored = stored.ok_or_else(|| nothing_to_match(&case))?;
    let text = begun(&case, &stored, config)?;
    if common.json {
        let body = json!({ "case_id": format!("C-{number}"), "toml": text });
        out::stdout(&line("rule_draft", body));
    } else {
        text.lines().for_each(out::stdout);
    }
    Ok(Exit::Ok)
}

fn nothing_to_match(case: &CaseRow) -> Failure {
    let text = format!(
        "case C-{} ({}) shows no status or code that a rule could speak of; no rule was begun",
        case.number,
        case.reason.as_str()
    );
    let hint = format!("`tieout cases show C-{}` says what it is", case.number);
    Failure::new(Exit::Usage, text, hint)
}

/// The rule for what no rule knows; else for the newest object.
fn begun(case: &CaseRow, inputs: &StoredInputs, config: &Config) -> Result<String, Failure> {
    let AccountRef::Known(account) = &inputs.row.account else {
        return Err(nothing_to_match(case));
    };
    let account = config.accounts.get(account).ok_or_else(|| nothing_to_match(case))?;
    let psp = account.settings.psp.as_str();
    let is_new = |subject: Subject, object: &PspObject| -> bool {
        config.rules.find(&question(inputs, psp, subject, object)).is_none()
    };
    let shown = found(inputs).filter_map(|object| Some((Subject::shown_by(object)?, object)));
    let newest =
        shown.max_by_key(|(subject, object)| (is_new(*subject, object), object.created_at));
    let (subject, object) = newest.ok_or_else(|| nothing_to_match(case))?;
    let question = question(inputs, psp, subject, object);
    is_one_code(case, &question)?;
    let name = format!("C-{}", case.number);
    Ok(draft(&Draft { question, case: &name, reason: case.reason.as_str() }))
}

/// A rule would take more than what the case shows where that has no code, or one that reads as a
/// family.
fn is_one_code(case: &CaseRow, question: &Question<'_>) -> Result<(), Failure> {
    let needs_code = matches!(question.subject, Subject::Failure | Subject::Returned);
    let code = question.code().filter(|code| !code.is_empty());
    let named = code.unwrap_or(question.object.status.as_str());
    let why = match (code, named.contains(['*', '?'])) {
        (None, _) if needs_code => format!(
            "case C-{} shows no code: a rule without one would take every `{}`",
            case.number,
            question.subject.as_str()
        ),
        (_, true) => format!(
            "case C-{} shows `{named}`, which a rule would read as a family of codes, and not as \
             this one",
            case.number
        ),
        _one => return Ok(()),
    };
    let hint = format!("decide the case: tieout cases show C-{}", case.number);
    Err(Failure::new(Exit::Usage, format!("{why}; no rule was begun"), hint))
}
