//! What stands still during a run: the configuration, the mapped tables, the open accounts.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use crate::decide::absence::SKEW_MAX;
use crate::decide::expected::Expected;
use crate::decide::policy::{
    AbsentMeans, BrakePolicy, GaveUp, Mode, Policy, PspFacts, Timing, Tolerance,
};
use crate::decide::rules::RuleSet;
use crate::model::time::Instant;
use crate::psp::account::Surroundings;
use crate::run::asking::Asking;
use crate::run::clock::DatabaseClock;
use crate::run::error::{Doing, RunError};
use crate::run::setup::{AccountSetup, RunOptions, Setup};
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::effects::absent_means;
use crate::store::source_table::SourceTable;

/// The stage of one run.
pub struct Scene<'a> {
    /// The configuration.
    pub setup: &'a Setup,
    /// The command's options.
    pub options: &'a RunOptions,
    /// The database.
    pub db: &'a Database,
    /// The request to stop.
    pub stop: &'a Stop,
    /// The run's id.
    pub run_id: &'a str,
    /// The mapped tables, in the order of the setup.
    pub tables: Vec<SourceTable>,
    /// The accounts that may be asked, by name.
    pub accounts: BTreeMap<String, OpenAccount>,
    /// Decides rows that belong to no configured account: only to say so.
    pub nobody: Policy,
    /// The database's clock.
    pub clock: DatabaseClock,
    /// Cancelled when the run's time is over: no question is begun after it.
    pub over: CancellationToken,
}

/// An account with everything that asking and deciding at it needs.
pub struct OpenAccount {
    /// How it is asked.
    pub account: Asking,
    /// Settlement files of it are brought in, or were.
    pub has_files: bool,
    /// The files that are to come for it.
    pub expected: Vec<Expected>,
    /// Its settings.
    pub setup: AccountSetup,
    /// Since when and why a person paused it.
    pub paused: Option<(Instant, String)>,
    /// Since when it gives no answer.
    pub unanswered_since: Option<Instant>,
    /// Its usual share of tagged objects, in thousandths.
    pub usual_permille: u32,
    /// Policies by whether proven absence means "abandoned".
    pub policies: BTreeMap<bool, Policy>,
}

impl<'a> Scene<'a> {
    /// Opens the accounts that the tables name. No PSP is asked yet.
    pub async fn open(
        setup: &'a Setup,
        options: &'a RunOptions,
        db: &'a Database,
        stop: &'a Stop,
        run_id: &'a str,
        tables: Vec<SourceTable>,
        clock: DatabaseClock,
    ) -> Result<Self, RunError> {
        let mut accounts = BTreeMap::new();
        let over = CancellationToken::new();
        let ends = (stop, &over);
        for (name, account) in &setup.accounts {
            let open = OpenAccount::open(name, account, setup, db, ends, &clock).await?;
            accounts.insert(name.clone(), open);
        }
        let nobody = nobody();
        Ok(Self { setup, options, db, stop, run_id, tables, accounts, nobody, clock, over })
    }

    /// The stricter of the table's and the account's mode.
    pub fn mode(&self, table: &SourceTable, account: Option<&OpenAccount>) -> Mode {
        let table_mode = table.settings.mode;
        account.map_or(table_mode, |open| open.setup.mode.min(table_mode))
    }

    /// How long rows of any account must be stuck before the claim takes them.
    pub fn stuck_after(&self) -> chrono::TimeDelta {
        let configured = self.setup.accounts.values().map(|a| a.timing.stuck_after).max();
        let stuck_after = configured.unwrap_or_else(|| Timing::default().stuck_after);
        self.options.min_age.map_or(stuck_after, |age| age.max(stuck_after))
    }
}

/// How far ahead of the clock a stuck row's times may lie: a call that is under way was begun by
/// now, and two clocks differ by so much.
pub fn ahead_max(accounts: &BTreeMap<String, AccountSetup>) -> chrono::TimeDelta {
    let in_flight = accounts.values().map(|account| account.timing.in_flight_max).max();
    in_flight.unwrap_or(SKEW_MAX).max(SKEW_MAX)
}

impl OpenAccount {
    async fn open(
        name: &str,
        setup: &AccountSetup,
        whole: &Setup,
        db: &Database,
        (stop, over): (&Stop, &CancellationToken),
        clock: &DatabaseClock,
    ) -> Result<Self, RunError> {
        let reading = clock.clone();
        let around = Surroundings {
            env: std::sync::Arc::clone(&whole.env),
            db_now: std::sync::Arc::new(move || reading.now()),
            stop: stop.token(),
            grace: stop.calls_may_take(),
            over: over.clone(),
        };
        let account = Asking::open(&setup.settings, around)
            .map_err(|source| RunError::Account { account: name.to_owned(), source })?;
        let state = db.account_state(name).await.doing("reading the account's state")?;
        let policies = [false, true]
            .into_iter()
            .map(|abandoned| {
                (abandoned, policy_of(setup, &whole.rules, account.facts(), abandoned))
            })
            .collect();
        Ok(Self {
            // A file may be brought in by hand, where no source of it is configured.
            has_files: state.has_files || whole.accounts_with_files.contains(name),
            expected: whole.expected_for(name),
            account,
            setup: setup.clone(),
            paused: state.paused,
            unanswered_since: state.unanswered_since,
            usual_permille: state.usual_permille.unwrap_or(1_000),
            policies,
        })
    }
}

/// By what absence means in the status that the mapping goes by.
pub fn policy_of_row<'p>(
    policies: &'p BTreeMap<bool, Policy>,
    table: &SourceTable,
    status: &str,
) -> &'p Policy {
    let means = absent_means(&table.settings, status);
    // Both entries are always made (`OpenAccount::open`); the map is never empty.
    policies.get(&(means == AbsentMeans::Abandoned)).unwrap_or_else(|| &policies[&false])
}

/// What deciding at an account depends on.
pub fn policy_of(setup: &AccountSetup, rules: &RuleSet, psp: PspFacts, abandoned: bool) -> Policy {
    Policy {
        timing: setup.timing.clone(),
        max_retries: setup.max_retries,
        gave_up: setup.gave_up,
        absent_means: if abandoned { AbsentMeans::Abandoned } else { AbsentMeans::HandBack },
        rules: rules.clone(),
        psp,
        brake: setup.brake.clone(),
        tolerance: setup.tolerance.clone(),
    }
}

/// A policy under which only what needs no PSP can be said of a row.
pub(super) fn nobody() -> Policy {
    Policy {
        timing: Timing::default(),
        max_retries: 0,
        gave_up: GaveUp::Review,
        absent_means: AbsentMeans::HandBack,
        rules: RuleSet::default(),
        psp: PspFacts {
            psp: String::new(),
            kinds: Vec::new(),
            tag_max: usize::MAX,
            routes: Vec::new(),
            charges_by: Vec::new(),
            key_life: None,
        },
        brake: BrakePolicy::default(),
        tolerance: Tolerance::default(),
    }
}
