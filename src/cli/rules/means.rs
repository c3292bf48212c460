//! What the codes of a case's objects mean, by the rules of today: for people, who decide by it.

use crate::cli::standing::found;
use crate::config::Config;
use crate::decide::rules::{Question, Subject};
use crate::model::evidence::PspObject;
use crate::model::transaction::AccountRef;
use crate::store::records::StoredInputs;

/// What the rules say of each object's code, a line each; `told` is what is said of it already.
pub fn untold(inputs: &StoredInputs, told: &str, config: &Config) -> Vec<String> {
    let AccountRef::Known(name) = &inputs.row.account else { return Vec::new() };
    let Some(account) = config.accounts.get(name) else { return Vec::new() };
    let mut lines: Vec<String> = Vec::new();
    for object in found(inputs) {
        let Some(subject) = Subject::shown_by(object) else { continue };
        let question = question(inputs, account.settings.psp.as_str(), subject, object);
        let Some(rule) = config.rules.find(&question) else { continue };
        if rule.means.is_empty() || told.contains(&rule.means) {
            continue;
        }
        let code = question.code().filter(|code| !code.is_empty());
        let code = code.unwrap_or(object.status.as_str());
        let line = format!("{code}: {} (rule {})", rule.means, rule.id);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// What a rule is asked of an object.
pub(super) fn question<'a>(
    inputs: &'a StoredInputs,
    psp: &'a str,
    subject: Subject,
    object: &'a PspObject,
) -> Question<'a> {
    Question {
        psp,
        subject,
        object,
        kind: inputs.row.kind,
        money: inputs.row.money,
        handbacks: inputs.history.tries(),
        age: Some(inputs.now.signed_duration_since(inputs.row.created_at)),
    }
}
