//! For `explain`: which rules were tried on what the PSP showed, and what a proof of absence
//! still lacks. Worked out from the stored inputs by the functions that decide, and only shown:
//! nothing here yields a verdict.

use crate::cli::rules::means::{Asked, asked};
use crate::config::Config;
use crate::decide::absence::{Unproven, call_over_at, counts, prove};
use crate::decide::policy::Policy;
use crate::model::evidence::{Answer, CompleteSearch, PspObject, Route};
use crate::model::time::{Instant, to_short_text};
use crate::model::transaction::AccountRef;
use crate::run::replay::facts;
use crate::run::scene::policy_of;
use crate::store::records::StoredInputs;

/// Which rule each found object met, a line each.
pub fn rules_tried(inputs: &StoredInputs, config: &Config) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for Asked { object, subject, code, rule } in asked(inputs, config) {
        let rule = match rule {
            Some(rule) => format!("{} → {}", rule.id, rule.effect.outcome().screen()),
            None => format!("none of {} knows it", config.rules.rules.len()),
        };
        let line = format!("{} {} {code}: {rule}", object.reference, subject.as_str());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Every object that the stored evidence shows.
pub fn found(inputs: &StoredInputs) -> impl Iterator<Item = &PspObject> {
    inputs.evidence.iter().flat_map(|evidence| match &evidence.answer {
        Answer::Found { objects, .. } => objects.as_slice(),
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => &[],
    })
}

/// What is there of a proof of absence, and what it lacks; nothing where something was found.
pub fn proof(inputs: &StoredInputs, config: &Config) -> Vec<String> {
    let searches: Vec<&CompleteSearch> = inputs
        .evidence
        .iter()
        .filter_map(|evidence| match &evidence.answer {
            Answer::Nothing(search) => Some(search),
            Answer::Found { .. } | Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
        })
        .collect();
    let best = searches.iter().find(|search| search.counts_as_miss).or(searches.first());
    let (Some(search), None) = (best, found(inputs).next()) else { return Vec::new() };
    let AccountRef::Known(name) = &inputs.row.account else { return Vec::new() };
    let Some(policy) = policy(config, name, inputs.now) else { return Vec::new() };
    let (row, history, now) = (&inputs.row, &inputs.history, inputs.now);
    let until = call_over_at(row, history, &policy);
    let call = match now > until {
        true => format!("the original call was over by {}", to_short_text(until)),
        false => format!("the original call could arrive until {}", to_short_text(until)),
    };
    let this = counts(search, row, history, &policy, now);
    let confirmed = searches.iter().any(|search| search.route == Route::Search);
    let whole = prove(search, row, name, history, &policy, confirmed, now);
    // What makes it no miss is what the proof lacks: each thing is said once.
    match (this, whole) {
        (Err(Unproven::CallMayArrive { until }), Err(Unproven::CallMayArrive { .. })) => {
            let until = to_short_text(until);
            vec![format!(
                "it lacked: the original call could arrive until {until}, and this search was made \
                 before that"
            )]
        }
        (Err(lacks), Err(same)) if lacks == same => {
            vec![call, format!("it lacked: {}; so this search is no miss", lacks.text())]
        }
        (this, whole) => {
            let of_call = |lacks: &Unproven| matches!(lacks, Unproven::CallMayArrive { .. });
            let is_said = this.as_ref().is_err_and(of_call) || whole.as_ref().is_err_and(of_call);
            let this = match this {
                Ok(()) => "this search counts as a miss".to_owned(),
                Err(lacks) => format!("this search is no miss: {}", lacks.text()),
            };
            let whole = match whole {
                Ok(_absence) => "it was whole".to_owned(),
                Err(lacks) => format!("it lacked: {}", lacks.text()),
            };
            (!is_said).then_some(call).into_iter().chain([this, whole]).collect()
        }
    }
}

/// The policy that the row would be decided by; no PSP is asked.
fn policy(config: &Config, account: &str, now: Instant) -> Option<Policy> {
    let setup = config.accounts.get(account)?;
    Some(policy_of(setup, &config.rules, facts(setup, now)?, false))
}
