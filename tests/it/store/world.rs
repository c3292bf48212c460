//! A database with one mapped table, the store on it, and short words for what the tests do.

use chrono::TimeDelta;
use tieout::decide::decision::{Asked, Decision, History, Inputs, Seen, Verdict};
use tieout::decide::judge::decide;
use tieout::decide::permit::HandBack;
use tieout::decide::policy::{
    AbsentMeans, BrakePolicy, GaveUp, Mode, Policy, PspFacts, Timing, Tolerance,
};
use tieout::decide::rules::RuleSet;
use tieout::model::evidence::{Answer, Evidence, ObjectState, PspObject, Route};
use tieout::model::money::Money;
use tieout::model::reason::{Outcome, Reason};
use tieout::model::time::{Instant, from_text};
use tieout::model::transaction::{Kind, Transaction};
use tieout::store::batches::BatchDriver;
use tieout::store::compare::CompareDriver;
use tieout::store::driver::{Driver, Writer};
use tieout::store::effects::{RowEffects, effects};
use tieout::store::files::FileDriver;
use tieout::store::inspect::Inspect;
use tieout::store::mapping::TableSettings;
use tieout::store::payouts::PayoutDriver;
use tieout::store::postgres::PgStore;
use tieout::store::records::{
    ApplyEnd, ClaimFilter, Claimed, Planned, RunEnd, RunStart, RunState, TotalLine,
};
use tieout::store::settings::DatabaseSettings;
use tieout::store::source_table::SourceTable;
use tieout::store::sqlite::SqliteStore;

use crate::invariants::{Mapped, assert_invariants};
use crate::support::postgres::{Database, postgres_database_from};
use crate::support::raw::Raw;
use crate::support::sqlite_path;

/// The tests' noon.
pub fn noon() -> Instant {
    from_text("2026-11-19T12:00:00Z").unwrap()
}

/// Minutes after noon.
pub fn at(minutes: i64) -> Instant {
    noon() + TimeDelta::minutes(minutes)
}

/// The user's table and mapping of most tests; both databases read the same text.
const CHARGES: &str = "
    create table charges (
        id bigint primary key, account text, status text not null, amount bigint, currency text,
        created_at timestamptz not null, attempted_at timestamptz, psp_ref text,
        subscription bigint, moto boolean not null default false,
        attempt integer not null default 1,
        updated_at timestamptz, version integer, note text);
    create index charges_status on charges (status, created_at);
    create index charges_subscription on charges (subscription);
    create table charge_events (charge_id bigint not null, status text not null,
        was text, happened timestamptz not null);";

/// The mapping of [`CHARGES`].
pub const MAPPING: &str = r#"
    name = "charges"
    read = "charges"
    key = ["id"]
    tag = "pay_{id}"
    idempotency_key = "charge-{id}-{attempt}"
    natural_key = ["subscription"]
    where = [{ column = "moto", in = [false] }]
    amount = { column = "amount", unit = "minor" }
    currency = { column = "currency" }
    account = ["account"]
    accounts = { stripe = "stripe_live", adyen = "adyen_live" }
    status = "status"
    created = "created_at"
    attempted = "attempted_at"
    psp_reference = "psp_ref"
    time = "utc"
    mode = "full"
    ignore = ["new"]
    [[map]]
    from = ["processing", "sent"]
    succeeded = "paid"
    failed = "failed"
    retryable = "retry"
    [set]
    always = { updated_at = "{now}", version = "+1" }
    succeeded = { psp_ref = "{psp_reference}" }
    [history]
    table = "charge_events"
    [history.columns]
    charge_id = "{id}"
    status = "{status}"
    was = "{status_before}"
    happened = "{now}"
"#;

/// One database under test.
pub struct World<D> {
    pub store: D,
    pub raw: Raw,
    pub place: String,
    pub table: SourceTable,
    _place: Place,
}

/// What goes away with the test: the file, or the server's database.
pub type Place = Box<dyn std::any::Any>;

/// A database that a suite runs on. Adding one: this trait, and a line in `conformance!`.
pub trait Under:
    Sized + Driver + Inspect + FileDriver + CompareDriver + PayoutDriver + BatchDriver
{
    /// A fresh database with `ddl` run, migrated.
    async fn fresh(ddl: &str) -> (Self, Raw, String, Place);
    /// Another process's connection to the same database.
    async fn again(place: &str) -> Self;
}

impl Under for SqliteStore {
    async fn fresh(ddl: &str) -> (Self, Raw, String, Place) {
        let place = sqlite_path();
        let url = place.url();
        let raw = Raw::open(&url).await;
        raw.execute(ddl).await;
        let store = Self::again(&url).await;
        store.migrate().await.unwrap();
        (store, raw, url, Box::new(place))
    }

    async fn again(place: &str) -> Self {
        SqliteStore::connect(place).await.unwrap()
    }
}

impl Under for PgStore {
    async fn fresh(ddl: &str) -> (Self, Raw, String, Place) {
        let database = migrated().await;
        let url = database.url().to_owned();
        let raw = Raw::open(&url).await;
        raw.execute(ddl).await;
        (Self::again(&url).await, raw, url, Box::new(database))
    }

    async fn again(place: &str) -> Self {
        PgStore::connect(&DatabaseSettings::of_url(place)).await.unwrap()
    }
}

/// A PostgreSQL database with tieout's tables.
pub async fn migrated() -> Database {
    const MIGRATION: &str = concat!(
        include_str!("../../../migrations/postgres/0001_init.sql"),
        include_str!("../../../migrations/postgres/0002_monitoring.sql"),
        include_str!("../../../migrations/postgres/0003_prunes.sql"),
        include_str!("../../../migrations/postgres/0004_files.sql"),
        include_str!("../../../migrations/postgres/0005_release.sql"),
        include_str!("../../../migrations/postgres/0006_line_marks.sql"),
        include_str!("../../../migrations/postgres/0007_compared.sql"),
        include_str!("../../../migrations/postgres/0008_line_names.sql"),
        include_str!("../../../migrations/postgres/0009_batches.sql"),
        include_str!("../../../migrations/postgres/0010_taken_out.sql"),
        include_str!("../../../migrations/postgres/0011_people.sql"),
        include_str!("../../../migrations/postgres/0012_delivery.sql"),
        include_str!("../../../migrations/postgres/0013_lapses.sql"),
        include_str!("../../../migrations/postgres/0014_runs_word.sql"),
        include_str!("../../../migrations/postgres/0015_case_lists.sql"),
        include_str!("../../../migrations/postgres/0016_releases.sql"),
        include_str!("../../../migrations/postgres/0017_guards.sql"),
        include_str!("../../../migrations/postgres/0018_said_now.sql"),
        include_str!("../../../migrations/postgres/0019_closed_runs.sql"),
        include_str!("../../../migrations/postgres/0020_tried_letters.sql"),
        include_str!("../../../migrations/postgres/0021_said_by_whom.sql"),
        include_str!("../../../migrations/postgres/0022_noted_of_proposals.sql"),
        include_str!("../../../migrations/postgres/0023_rejected_by_people.sql")
    );
    postgres_database_from(MIGRATION, async |url| {
        let store = PgStore::again(&url).await;
        store.migrate().await.unwrap();
        store.close().await;
    })
    .await
}

/// A mapping's words.
pub fn settings(text: &str) -> TableSettings {
    toml::from_str(text).unwrap()
}

/// The configured accounts.
pub fn accounts() -> Vec<String> {
    ["stripe_live", "adyen_live"].map(str::to_owned).to_vec()
}

impl<D: Under> World<D> {
    /// The database of most tests.
    pub async fn new() -> Self {
        Self::of(CHARGES, MAPPING).await
    }

    /// A database with these tables and this mapping.
    pub async fn of(ddl: &str, mapping: &str) -> Self {
        let (store, raw, place, kept) = D::fresh(ddl).await;
        let tables = store.map_tables(&[settings(mapping)], &accounts()).await;
        let table = tables.unwrap_or_else(|error| panic!("{error:?}")).remove(0);
        Self { store, raw, place, table, _place: kept }
    }

    /// Maps the table in other words.
    pub async fn mapped(&self, mapping: &str) -> SourceTable {
        let tables = self.store.map_tables(&[settings(mapping)], &accounts()).await;
        tables.unwrap_or_else(|error| panic!("{error:?}")).remove(0)
    }

    /// Inserts stuck charges of 19.00 EUR, one a minute, the first an hour before noon.
    pub async fn stuck(&self, ids: std::ops::RangeInclusive<i64>) {
        for id in ids {
            let created = at(-60 + id);
            self.raw
                .execute(&format!(
                    "insert into charges (id, account, status, amount, currency, created_at, \
                     attempted_at, subscription) values ({id}, 'stripe', 'processing', \
                     {}, 'EUR', '{created}', '{created}', {id})",
                    1900 + id,
                    created = tieout::model::time::to_text(created),
                ))
                .await;
        }
    }

    /// Opens a run.
    pub async fn start(&self, id: &str, now: Instant) -> Writer {
        let start = RunStart {
            id: id.to_owned(),
            command: "run".to_owned(),
            host: "test".to_owned(),
            pid: 1,
            version: "0".to_owned(),
            config_sha256: "c".to_owned(),
            policy_version: "p1".to_owned(),
            scope: "{}".to_owned(),
        };
        self.store.start_run(&start, now).await.unwrap();
        Writer { name: "w1".to_owned(), seq: 0, head: id.to_owned() }
    }

    /// Enrols and claims.
    pub async fn claim(&self, run: &str, limit: i64, now: Instant) -> Vec<Claimed> {
        self.claim_with(run, &ClaimFilter::default(), limit, now).await
    }

    /// Enrols and claims by a filter.
    pub async fn claim_with(
        &self,
        run: &str,
        filter: &ClaimFilter,
        limit: i64,
        now: Instant,
    ) -> Vec<Claimed> {
        self.store.enrol(&self.table, filter, now).await.unwrap();
        let until = now + TimeDelta::minutes(2);
        self.store.claim_due(run, &self.table, filter, limit, now, until).await.unwrap()
    }

    /// Applies one decision to every row; counts alone.
    pub async fn apply(
        &self,
        run: &str,
        writer: &mut Writer,
        claimed: &[Claimed],
        decision: impl Fn(&Claimed) -> Decision,
        now: Instant,
    ) -> ApplyEnd {
        let mut end = self.apply_all(run, writer, claimed, decision, now).await;
        if let ApplyEnd::Done { not_applied, .. } = &mut end {
            not_applied.clear();
        }
        end
    }

    /// Applies one decision to every row; also which rows were not carried out so.
    pub async fn apply_all(
        &self,
        run: &str,
        writer: &mut Writer,
        claimed: &[Claimed],
        decision: impl Fn(&Claimed) -> Decision,
        now: Instant,
    ) -> ApplyEnd {
        let batch = claimed.iter().map(|c| self.effect(run, c, decision(c), now)).collect();
        self.store.apply(run, writer, &self.table, batch, now).await.unwrap()
    }

    /// What a decision changes.
    pub fn effect(
        &self,
        run: &str,
        claimed: &Claimed,
        decision: Decision,
        now: Instant,
    ) -> RowEffects {
        self.effect_in(Mode::Full, run, claimed, decision, now)
    }

    /// What a decision changes in a mode.
    pub fn effect_in(
        &self,
        mode: Mode,
        run: &str,
        claimed: &Claimed,
        decision: Decision,
        now: Instant,
    ) -> RowEffects {
        effect_in(&self.table, mode, run, claimed, decision, now)
    }

    /// Closes a run.
    pub async fn close(&self, run: &str, now: Instant) -> bool {
        let end = RunEnd {
            state: RunState::Complete,
            exit_code: 0,
            exit_class: "ok".to_owned(),
            notes: "{}".to_owned(),
        };
        self.store.close_run(run, &end, now).await.unwrap().is_some()
    }

    /// The status of a charge.
    pub async fn status(&self, id: &str) -> String {
        self.raw.one(&format!("select cast(status as text) from charges where id = {id}")).await
    }

    /// The run's totals, asserted to tie out, as `table/currency/bucket` → (rows, amount).
    pub async fn totals(&self, run: &str) -> Vec<(String, i64, i128)> {
        let lines = self.store.run_totals(run).await.unwrap();
        tied(&lines);
        let word = |line: &TotalLine| format!("{}/{}", line.currency, line.bucket);
        lines.iter().map(|line| (word(line), line.rows, line.amount_minor)).collect()
    }

    /// How many rows and how much a run claimed, whatever it still holds.
    pub async fn claimed_total(&self, run: &str) -> (i64, i128) {
        let lines = self.store.run_totals(run).await.unwrap();
        let claimed = lines.iter().filter(|line| line.bucket == "claimed");
        claimed.fold((0, 0), |sum, line| (sum.0 + line.rows, sum.1 + line.amount_minor))
    }

    /// The end of every test: what must always hold, holds.
    pub async fn finish(&self) {
        let mapped = Mapped {
            name: "charges",
            relation: "charges",
            key: "cast(t.id as text)",
            status: "t.status",
        };
        assert_invariants(&self.place, &[mapped]).await;
        self.finish_unmapped().await;
    }

    /// As [`World::finish`], where other hands changed statuses, or the table is another.
    pub async fn finish_unmapped(&self) {
        assert_invariants(&self.place, &[]).await;
        let finding = self.store.verify_audit().await.unwrap();
        assert_eq!(finding.breaks, Vec::<String>::new());
    }
}

/// What a decision changes.
pub fn effect_of(
    table: &SourceTable,
    run: &str,
    claimed: &Claimed,
    decision: Decision,
    now: Instant,
) -> RowEffects {
    effect_in(table, Mode::Full, run, claimed, decision, now)
}

fn effect_in(
    table: &SourceTable,
    mode: Mode,
    run: &str,
    claimed: &Claimed,
    decision: Decision,
    now: Instant,
) -> RowEffects {
    let planned = Planned {
        claimed: claimed.clone(),
        evidence: format!("{{\"key\":\"{}\",\"run\":\"{run}\"}}", claimed.row.key.id),
        decision,
        mode,
        now,
        policy_version: "p1".to_owned(),
        lines: Vec::new(),
        person: None,
        mapped_from: None,
        clears_case: false,
        stages: true,
        siblings: None,
    };
    effects(planned, &table.settings, &Timing::default(), run)
}

fn tied(lines: &[TotalLine]) {
    let mut sums = std::collections::BTreeMap::new();
    for line in lines {
        let sign = if line.bucket == "claimed" { 1 } else { -1 };
        let (rows, amount): &mut (i64, i128) =
            sums.entry((&line.table, &line.currency)).or_default();
        *rows += sign * line.rows;
        *amount += i128::from(sign) * line.amount_minor;
    }
    assert!(sums.values().all(|sum| *sum == (0, 0)), "it does not tie out: {lines:#?}");
}

/// A decision without a verdict's particulars.
fn decision(verdict: Verdict, reason: Reason) -> Decision {
    Decision {
        verdict,
        reason,
        rule: None,
        text: format!("because {}", reason.as_str()),
        seen: None,
        next_check_at: None,
        watch_at: None,
        miss: None,
        answered: true,
        wants: None,
    }
}

/// Captured under a reference of the row's own.
pub fn succeeded(claimed: &Claimed) -> Decision {
    succeeded_by(claimed, &format!("pi_{}", claimed.row.key.id))
}

/// Captured under this reference.
pub fn succeeded_by(claimed: &Claimed, reference: &str) -> Decision {
    let seen = Seen {
        reference: reference.to_owned(),
        status: "succeeded".to_owned(),
        amount: claimed.row.money,
        created_at: claimed.row.created_at,
    };
    Decision { seen: Some(seen), ..decision(Verdict::Succeeded, Reason::Captured) }
}

/// Failed for good.
pub fn failed(_claimed: &Claimed) -> Decision {
    decision(Verdict::Failed, Reason::DeclinedFinal)
}

/// A person is needed.
pub fn review(_claimed: &Claimed) -> Decision {
    decision(Verdict::Review, Reason::AmountMismatch)
}

/// Not yet; again in half an hour.
pub fn wait(now: Instant) -> impl Fn(&Claimed) -> Decision {
    move |_| Decision {
        next_check_at: Some(now + TimeDelta::minutes(30)),
        ..decision(Verdict::Wait, Reason::PspPending)
    }
}

/// Handed back: an object that was never attempted. Only `decide` can make the permit.
pub fn retryable(now: Instant) -> impl Fn(&Claimed) -> Decision {
    move |claimed| {
        let made = unattempted(&claimed.row, now);
        assert_eq!(made.outcome(), Outcome::Retryable, "{}", made.text);
        Decision { watch_at: Some(now + TimeDelta::minutes(15)), ..made }
    }
}

/// The hand-back in a decision.
pub fn hand_back(decision: &Decision) -> &HandBack {
    match &decision.verdict {
        Verdict::Retryable(hand_back) => hand_back,
        other => panic!("{other:?} hands nothing back"),
    }
}

fn unattempted(row: &Transaction, now: Instant) -> Decision {
    // A person's approval is not written yet: the permit is made as if the row were stuck again.
    let row = &Transaction { processing: true, succeeded: false, ..row.clone() };
    let object = PspObject {
        reference: format!("pi_{}", row.key.id),
        aliases: Vec::new(),
        kind: "payment_intent".to_owned(),
        state: ObjectState::Unattempted,
        status: "requires_confirmation".to_owned(),
        amount: row.money,
        captured: None,
        refunded_minor: 0,
        capturable_minor: 0,
        disputed: false,
        charged_back_minor: 0,
        beyond_minor: 0,
        created_at: row.created_at,
        tag: row.tag.usable().map(str::to_owned),
        returned: None,
    };
    let search = tieout::model::evidence::CompleteSearch {
        route: Route::List,
        kinds: vec!["payment_intent".to_owned(), "charge".to_owned()],
        from: row.created_at - TimeDelta::days(8),
        to: now,
        asked_at: now,
        counts_as_miss: true,
        lag_secs: 0,
        psp_skew_secs: Some(0),
        listed: 1,
        witness: None,
        lacks: None,
    };
    let evidence = [Evidence {
        account: row.account.text().to_owned(),
        route: Route::List,
        asked_at: now,
        answer: Answer::Found { objects: vec![object], search: Some(search) },
    }];
    let history = History::first_look(now - TimeDelta::days(1));
    let inputs = Inputs {
        row,
        siblings: &[],
        evidence: &evidence,
        claimed_references: &[],
        untagged: &[],
        near_misses: &[],
        history: &history,
        asked: Asked::Run,
    };
    decide(&inputs, &policy(), now)
}

fn policy() -> Policy {
    Policy {
        timing: Timing::default(),
        max_retries: 5,
        gave_up: GaveUp::Review,
        absent_means: AbsentMeans::HandBack,
        rules: RuleSet { rules: Vec::new(), version: "r1".to_owned() },
        psp: PspFacts {
            psp: "stripe".to_owned(),
            kinds: vec![Kind::Charge],
            tag_max: 500,
            routes: Vec::new(),
            charges_by: vec!["payment_intent".to_owned(), "charge".to_owned()],
            key_life: None,
        },
        brake: BrakePolicy::default(),
        tolerance: Tolerance::default(),
    }
}

/// 19.00 EUR and so on, for comparisons.
pub fn eur(minor: i64) -> Money {
    Money::new(minor, tieout::model::money::Currency::parse("EUR").unwrap())
}
