//! The rules themselves: read, listed, shown, tried. No database is opened.

use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use serde_json::json;

use crate::cli::args::{Common, word};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::rules::List;
use crate::cli::{out, page};
use crate::config::problem::ConfigError;
use crate::decide::rules::{Effect, Match, Rule};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::near::nearest;
use crate::model::time::span_text;
use crate::psp::rules::{self, RuleError, RuleFile};

/// Words of a list that one line shows.
const WORDS_SHOWN: usize = 8;

/// The files named, or else those in force: the user's, then the shipped. Where there is no
/// configuration yet, the shipped ones alone.
pub fn of(files: &[PathBuf], common: &Common) -> Result<Vec<RuleFile>, Failure> {
    if !files.is_empty() {
        return named(files);
    }
    match crate::config::load(common.config(), &[]) {
        Ok(config) => Ok(config.rule_files),
        Err(ConfigError::NotFound { .. }) if common.config().is_none() => named(&[]),
        Err(error) => Err(error.into()),
    }
}

/// These files, and the shipped ones after them, every example tried.
pub fn named(files: &[PathBuf]) -> Result<Vec<RuleFile>, Failure> {
    rules::with_shipped(read_all(files)?).map_err(|error| refused(&error))
}

/// As [`of`], with examples that nobody tried yet.
pub fn to_try(files: &[PathBuf], common: &Common) -> Result<Vec<RuleFile>, Failure> {
    if files.is_empty() {
        return of(files, common);
    }
    let mut all = read_all(files)?;
    all.extend(rules::all_shipped().map_err(|error| refused(&error))?);
    Ok(all)
}

fn read_all(files: &[PathBuf]) -> Result<Vec<RuleFile>, Failure> {
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<RuleFile, Failure> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|error| {
        let text = format!("the rule file {name} cannot be read: {error}; nothing was done");
        Failure::new(Exit::Config, text, "check the path and the file's permissions")
    })?;
    rules::parse_bytes(&bytes, &name, true).map_err(|error| refused(&error))
}

fn refused(error: &RuleError) -> Failure {
    let text = format!("{error}; none of its rules can be put in force");
    Failure::new(Exit::Config, text, "correct this, then `tieout rules check FILE`")
}

/// `rules check`: they were read and tried to come this far.
pub fn check(files: &[RuleFile], common: &Common) -> Result<Exit, Failure> {
    let set = rules::combine(files);
    for file in files {
        if common.json {
            let body = json!({
                "name": file.name,
                "own": file.own,
                "version": file.version(),
                "label": file.label,
                "rules": file.rules.len(),
            });
            out::stdout(&line("rule_file", body));
        } else if !common.quiet {
            let own = if file.own { "yours" } else { "shipped" };
            let label = file.label.as_ref().map(|label| format!(", version {label}"));
            page::say(&format!(
                "{}  {}, {own}, {}{}",
                file.name,
                counted(file.rules.len(), "rule", "rules"),
                file.version(),
                label.unwrap_or_default()
            ));
        }
    }
    let (version, count) = (&set.version, set.rules.len());
    if common.json {
        let body = json!({ "version": version, "rules": count, "files": files.len() });
        out::stdout(&line("rules", body));
    } else if !common.quiet {
        let rules = counted(count, "rule", "rules");
        page::say(&format!("rules ok: {version}, {rules}, every example decided as it says"));
    }
    Ok(Exit::Ok)
}

/// `rules list`.
pub fn list(options: &List, files: &[RuleFile], common: &Common) -> Result<Exit, Failure> {
    let psp = word(options.psp.as_ref());
    let of_psp = |rule: &Rule| {
        let own = rule.matches.psp.as_deref();
        psp.as_deref().is_none_or(|psp| own.is_none_or(|own| own == psp))
    };
    for file in files.iter().filter(|file| file.own || !options.own) {
        for rule in file.rules.iter().filter(|rule| of_psp(rule)) {
            if common.json {
                out::stdout(&line("rule", body(rule, file)));
            } else {
                page::say(&format!("{}  {}", rule.id, described(rule)));
            }
        }
    }
    Ok(Exit::Ok)
}

/// `rules show`.
pub fn show(id: &str, files: &[RuleFile], common: &Common) -> Result<Exit, Failure> {
    let all = || files.iter().flat_map(|file| file.rules.iter().map(move |rule| (file, rule)));
    let Some((file, rule)) = all().find(|(_, rule)| rule.id == id) else {
        let near = nearest(id, all().map(|(_, rule)| rule.id.as_str()));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let text = format!("there is no rule `{id}`{near}");
        return Err(Failure::new(Exit::Usage, text, "`tieout rules list` shows them all"));
    };
    if common.json {
        out::stdout(&line("rule", body(rule, file)));
        return Ok(Exit::Ok);
    }
    let (at, toml) = written(rule, file);
    page::say(&format!("{}  {}", rule.id, described(rule)));
    page::say(&format!("{}  {}", if file.own { "yours" } else { "shipped" }, at));
    toml.lines().for_each(|text| out::stdout(&format!("  {text}")));
    Ok(Exit::Ok)
}

/// `rules test`.
pub fn test(files: &[RuleFile], common: &Common) -> Result<Exit, Failure> {
    let tried = rules::try_examples(files);
    for one in &tried {
        if common.json {
            let body = json!({
                "rule": one.rule,
                "file": one.file,
                "line": one.line,
                "found": one.found,
                "stands": one.stands,
            });
            out::stdout(&line("rule_example", body));
            continue;
        }
        let by = match &one.found {
            Some(found) if *found == one.rule => String::new(),
            Some(found) if one.stands => format!("  taken over by {found}"),
            Some(found) if one.missed => {
                format!("  decided by {found}: the rule itself does not match it")
            }
            Some(found) => format!("  decided by {found}, which comes first"),
            None => "  decided by no rule".to_owned(),
        };
        let end = if one.stands { "ok    " } else { "wrong " };
        if !(one.stands && common.quiet) {
            page::say(&format!("{end}  {}:{}  {}{by}", one.file, one.line, one.rule));
        }
    }
    let wrong = tried.iter().filter(|one| !one.stands).count();
    if wrong == 0 {
        if !common.json && !common.quiet {
            let examples = counted(tried.len(), "example", "examples");
            page::say(&format!("{examples}, each decided as it says"));
        }
        return Ok(Exit::Ok);
    }
    let whose = match wrong {
        1 => "example is not decided by its own rule",
        _several => "examples are not decided by their own rules",
    };
    let text = format!("{wrong} of {} {whose}; such a file is refused", tried.len());
    Err(Failure::new(Exit::Config, text, "the first rule that matches wins: change their order"))
}

/// Where a rule is written, and how; one that a `limit` made stands under the rule with the limit.
fn written<'a>(rule: &Rule, file: &'a RuleFile) -> (String, &'a str) {
    let is_its = |id: &str| rule.id == id || rule.id.strip_suffix(".capped") == Some(id);
    match file.written.iter().find(|written| is_its(&written.id)) {
        Some(written) => (format!("{}:{}", file.name, written.line), written.toml.as_str()),
        None => (file.name.clone(), ""),
    }
}

fn body(rule: &Rule, file: &RuleFile) -> serde_json::Value {
    let (at, toml) = written(rule, file);
    let not_before = match &rule.effect {
        Effect::Retryable { not_before } => not_before.map(|span| span.num_seconds()),
        Effect::Failed | Effect::Succeeded | Effect::Wait | Effect::Review => None,
    };
    json!({
        "id": rule.id,
        "own": rule.own,
        "at": at,
        "psp": rule.matches.psp,
        "when": rule.matches.subject.as_str(),
        "code": rule.matches.codes,
        "outcome": rule.effect.outcome(),
        "not_before_secs": not_before,
        "handbacks_below": rule.matches.handbacks_below,
        "means": rule.means,
        "toml": toml,
    })
}

/// What a rule matches and says, on one line.
pub fn described(rule: &Rule) -> String {
    let says = match &rule.effect {
        Effect::Retryable { not_before: Some(span) } => {
            format!("retryable after {}", span_text(*span))
        }
        other => other.outcome().as_str().to_owned(),
    };
    let means = if rule.means.is_empty() { String::new() } else { format!(": {}", rule.means) };
    format!("{} → {says}{means}", conditions(&rule.matches))
}

fn conditions(matches: &Match) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(matches.psp.clone());
    parts.push(matches.subject.as_str().to_owned());
    let kinds: Vec<String> = matches.kinds.iter().map(|k| k.as_str().to_owned()).collect();
    for (name, words) in [
        ("kind", &kinds),
        ("status", &matches.statuses),
        ("code", &matches.codes),
        ("advice", &matches.advices),
        ("currency", &matches.currencies),
    ] {
        parts.extend(listed(name, words));
    }
    let amount = |sign: &str, minor: Option<i64>| minor.map(|n| format!("amount {sign} {n} minor"));
    parts.extend(amount("≥", matches.amount_at_least_minor));
    parts.extend(amount("≤", matches.amount_at_most_minor));
    let age = |sign: &str, span: Option<TimeDelta>| {
        span.map(|span| format!("age {sign} {}", span_text(span)))
    };
    parts.extend(age("≥", matches.age_at_least));
    parts.extend(age("<", matches.age_below));
    parts.extend(matches.handbacks_below.map(|n| format!("hand-backs < {n}")));
    parts.join(" · ")
}

fn listed(name: &str, words: &[String]) -> Option<String> {
    let shown: Vec<&str> = words.iter().take(WORDS_SHOWN).map(String::as_str).collect();
    let more = match words.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!words.is_empty()).then(|| format!("{name} {}{more}", shown.join(", ")))
}
