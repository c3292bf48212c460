//! What the codes of a case's objects mean, by the rules of today: for people, who decide by it.

use crate::cli::standing::found;
use crate::config::Config;
use crate::decide::rules::{Question, Rule, Subject};
use crate::model::evidence::PspObject;
use crate::model::transaction::AccountRef;
use crate::store::records::StoredInputs;

/// An object that the evidence shows, and what the rules say of it.
pub struct Asked<'a> {
    /// The object.
    pub object: &'a PspObject,
    /// What it is asked as.
    pub subject: Subject,
    /// Its code; where it has none, its status.
    pub code: &'a str,
    /// The rule that knows it.
    pub rule: Option<&'a Rule>,
}

/// Each object that rules can be asked of.
pub fn asked<'a>(inputs: &'a StoredInputs, config: &'a Config) -> Vec<Asked<'a>> {
    let AccountRef::Known(name) = &inputs.row.account else { return Vec::new() };
    let Some(account) = config.accounts.get(name) else { return Vec::new() };
    let psp = account.settings.psp.as_str();
    let ask = |object: &'a PspObject| {
        let subject = Subject::shown_by(object)?;
        let question = question(inputs, psp, subject, object);
        let code = question.code().filter(|code| !code.is_empty());
        let code = code.unwrap_or(object.status.as_str());
        Some(Asked { object, subject, code, rule: config.rules.find(&question) })
    };
    found(inputs).filter_map(ask).collect()
}

/// What the rules say of each object's code, a line each; `told` is what is said of it already.
pub fn untold(inputs: &StoredInputs, told: &str, config: &Config) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for Asked { code, rule, .. } in asked(inputs, config) {
        let is_new = |rule: &&Rule| !rule.means.is_empty() && !told.contains(&rule.means);
        let Some(rule) = rule.filter(is_new) else { continue };
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
