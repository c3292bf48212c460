//! Stored decisions made again from their stored inputs, by the rules in force or by other ones:
//! said, and never done. No PSP is asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::decide::policy::{AbsentMeans, Policy, PspFacts};
use crate::decide::replay::{WouldBe, replay};
use crate::decide::rules::RuleSet;
use crate::model::time::Instant;
use crate::model::transaction::AccountRef;
use crate::psp::account::Surroundings;
use crate::run::asking::Asking;
use crate::run::scene::policy_of;
use crate::run::setup::{AccountSetup, Setup};
use crate::store::effects::absent_means;
use crate::store::records::StoredInputs;

/// What an account's adapter declares; no PSP is asked.
pub fn facts(account: &AccountSetup, now: Instant) -> Option<PspFacts> {
    let around = Surroundings {
        env: Arc::new(|_name: &str| None),
        db_now: Arc::new(move || now),
        stop: CancellationToken::new(),
        grace: Duration::ZERO,
        over: CancellationToken::new(),
    };
    Some(Asking::open(&account.settings, around).ok()?.facts())
}

/// What becomes of stored inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// This would be decided.
    Said(Box<WouldBe>),
    /// The row was of no account: nobody is asked, whatever the rules are.
    Nobody,
    /// Its account is not configured any more.
    UnknownAccount,
}

/// Decides stored inputs again by one set of rules, under the settings of today.
pub struct Replays<'a> {
    setup: &'a Setup,
    rules: &'a RuleSet,
    /// By account, and by whether proven absence means "abandoned".
    policies: BTreeMap<(String, bool), Option<Policy>>,
}

impl<'a> Replays<'a> {
    /// By these rules.
    pub fn by(setup: &'a Setup, rules: &'a RuleSet) -> Self {
        Self { setup, rules, policies: BTreeMap::new() }
    }

    /// What would be decided, at the time of the stored decision.
    pub fn would_be(&mut self, stored: &StoredInputs) -> Replayed {
        let AccountRef::Known(account) = &stored.row.account else { return Replayed::Nobody };
        let Some(policy) = self.policy(account, stored) else { return Replayed::UnknownAccount };
        Replayed::Said(Box::new(replay(&stored.inputs(), policy, stored.now)))
    }

    fn policy(&mut self, account: &str, stored: &StoredInputs) -> Option<&Policy> {
        let (setup, rules) = (self.setup, self.rules);
        let table = setup.tables.iter().find(|table| table.name == stored.row.key.table);
        let means = table.map(|table| absent_means(table, &stored.row.status));
        let abandoned = means == Some(AbsentMeans::Abandoned);
        let policy = self.policies.entry((account.to_owned(), abandoned)).or_insert_with(|| {
            let account = setup.accounts.get(account)?;
            Some(policy_of(account, rules, facts(account, stored.now)?, abandoned))
        });
        policy.as_ref()
    }
}
