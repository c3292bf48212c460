//! A foreign schema in a database of its own, with tieout's tables beside it.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::Deserialize;
use sqlx::{AssertSqlSafe, PgPool};
use tieout::decide::decision::Decision;
use tieout::decide::policy::Timing;
use tieout::model::time::{Instant, from_text, to_text};
use tieout::model::transaction::{AccountRef, TagState, Transaction};
use tieout::store::database::Database as Store;
use tieout::store::driver::{Driver, Writer};
use tieout::store::effects::{RowEffects, effects};
use tieout::store::error::StoreError;
use tieout::store::mapping::TableSettings;
use tieout::store::records::{ApplyEnd, ClaimFilter, Claimed, Planned, RunEnd, RunStart, RunState};
use tieout::store::settings::DatabaseSettings;
use tieout::store::source_table::SourceTable;

use crate::store::world::succeeded;
use crate::support::postgres::Database;

#[derive(Deserialize)]
struct Tables {
    table: Vec<TableSettings>,
}

/// The tests' noon.
pub fn noon() -> Instant {
    from_text("2026-11-19T12:00:00Z").unwrap()
}

/// An empty database with tieout's tables, and the store on it.
pub async fn migrated() -> (Database, Store) {
    let database = crate::store::world::migrated().await;
    let store = Store::connect(&DatabaseSettings::of_url(database.url())).await.unwrap();
    (database, store)
}

/// The mappings of a text.
pub fn settings(toml: &str) -> Vec<TableSettings> {
    toml::from_str::<Tables>(toml).unwrap_or_else(|error| panic!("{error}\nin: {toml}")).table
}

/// The accounts of the tests' configuration.
pub fn accounts() -> Vec<String> {
    ["stripe_live", "stripe_eu"].map(str::to_owned).to_vec()
}

/// A mapped foreign schema.
pub struct Foreign {
    pub database: Database,
    pub pool: PgPool,
    pub store: Store,
    pub tables: Vec<SourceTable>,
}

impl Foreign {
    /// Loads `fixtures/schemas/NAME.sql` and maps it by `NAME.toml`.
    pub async fn open(name: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/schemas");
        let read = |ending: &str| {
            let path = format!("{folder}/{name}.{ending}");
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        Self::of(&read("sql"), &read("toml")).await.unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Loads and maps these texts.
    pub async fn of(sql: &str, toml: &str) -> Result<Self, StoreError> {
        let (database, store) = migrated().await;
        database.execute(sql).await;
        let pool = database.pool().await;
        let tables = store.map_tables(&settings(toml), &accounts()).await?;
        Ok(Self { database, pool, store, tables })
    }

    /// The first table.
    pub fn table(&self) -> &SourceTable {
        &self.tables[0]
    }

    /// Opens a run.
    pub async fn start(&self, id: &str) -> Writer {
        let start = RunStart {
            id: id.to_owned(),
            command: "run".to_owned(),
            host: "test".to_owned(),
            pid: 1,
            version: "0".to_owned(),
            config_sha256: "c".to_owned(),
            policy_version: "p".to_owned(),
            scope: "{}".to_owned(),
        };
        self.store.start_run(&start, noon()).await.unwrap();
        Writer { name: "w".to_owned(), seq: 0, head: id.to_owned() }
    }

    /// Enrols and claims the stuck rows of a table, in the order of their keys.
    pub async fn claim(&self, run: &str, table: &SourceTable) -> Vec<Claimed> {
        let filter = ClaimFilter {
            stuck_before: Some(noon() - TimeDelta::minutes(20)),
            ..ClaimFilter::default()
        };
        self.claim_by(run, table, &filter).await
    }

    /// Enrols and claims by a filter.
    pub async fn claim_by(
        &self,
        run: &str,
        table: &SourceTable,
        filter: &ClaimFilter,
    ) -> Vec<Claimed> {
        self.store.enrol(table, filter, noon()).await.unwrap();
        let until = noon() + TimeDelta::minutes(2);
        let mut claimed =
            self.store.claim_due(run, table, filter, 1000, noon(), until).await.unwrap();
        claimed.sort_by(|a, b| a.row.key.cmp(&b.row.key));
        claimed
    }

    /// What a run claims of the first table, a line a row.
    pub async fn claimed(&self, run: &str) -> Vec<String> {
        self.start(run).await;
        self.claim(run, self.table()).await.iter().map(|claimed| line(&claimed.row)).collect()
    }

    /// Closes a run, which gives its rows back.
    pub async fn close(&self, run: &str) {
        let end = RunEnd {
            state: RunState::Complete,
            exit_code: 0,
            exit_class: "ok".to_owned(),
            notes: "{}".to_owned(),
        };
        assert!(self.store.close_run(run, &end, noon()).await.unwrap().is_some());
    }

    /// The rows of a query of texts, a line a row.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        let rows: Result<Vec<Option<String>>, _> =
            sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&self.pool).await;
        let rows = rows.unwrap_or_else(|error| panic!("{error}\nin: {sql}"));
        rows.into_iter().map(|row| row.unwrap_or_else(|| "NULL".to_owned())).collect()
    }

    /// What decisions change.
    pub fn effects(
        &self,
        run: &str,
        table: &SourceTable,
        claimed: &[Claimed],
        decide: impl Fn(&Claimed) -> Decision,
    ) -> Vec<RowEffects> {
        let effect = |claimed: &Claimed| {
            let planned = Planned {
                claimed: claimed.clone(),
                decision: decide(claimed),
                mode: table.settings.mode,
                now: noon(),
                evidence: format!("{{\"key\":{:?}}}", claimed.row.key.id),
                policy_version: "p".to_owned(),
                lines: Vec::new(),
                person: None,
                mapped_from: None,
                clears_case: false,
                stages: true,
                siblings: None,
            };
            effects(planned, &table.settings, &Timing::default(), run)
        };
        claimed.iter().map(effect).collect()
    }

    /// Claims every stuck row of a table in a run of its own, and decides.
    pub async fn decide(
        &self,
        run: &str,
        table: &SourceTable,
        decide: impl Fn(&Claimed) -> Decision,
    ) -> ApplyEnd {
        let mut writer = self.start(run).await;
        let claimed = self.claim(run, table).await;
        let batch = self.effects(run, table, &claimed, decide);
        counted(self.store.apply(run, &mut writer, table, batch, noon()).await.unwrap())
    }

    /// Each mapped column, changed between the claim and the write of one row, supersedes the
    /// decision; afterwards the same decision is carried out once, and not twice.
    ///
    /// `places` are the relations with the row and what names it there; `changes` are columns with
    /// a new value: `(relation, column, value)`.
    pub async fn is_written_once(
        &self,
        table: &SourceTable,
        key: &str,
        places: &[(&str, &str)],
        changes: &[(&str, &str, &str)],
    ) {
        let filter = ClaimFilter { ids: Some(vec![key.to_owned()]), ..ClaimFilter::default() };
        let keys: Vec<&String> = table.settings.key.iter().collect();
        for cell in table.cells.iter().filter(|cell| !keys.contains(&&cell.name)) {
            let is_tried = changes.iter().any(|(_, column, _)| *column == cell.name);
            assert!(is_tried, "{} of {} is untried", cell.name, table.read);
        }
        for (number, (relation, column, value)) in changes.iter().enumerate() {
            let at = places.iter().find(|(known, _)| known == relation).unwrap().1;
            let run = format!("change-{}-{number}", table.settings.name);
            let mut writer = self.start(&run).await;
            let claimed = self.claim_by(&run, table, &filter).await;
            assert_eq!(claimed.len(), 1, "{column}");
            let kept = format!("create table kept as select * from {relation} where {at}");
            self.database.execute(kept).await;
            let change = format!("update {relation} set \"{column}\" = {value} where {at}");
            self.database.execute(change).await;
            let batch = self.effects(&run, table, &claimed, succeeded);
            let end = self.store.apply(&run, &mut writer, table, batch, noon()).await.unwrap();
            assert_eq!(counted(end), done(0, 0, 1), "{relation}.{column} = {value}");
            let undo = format!(
                "update {relation} set \"{column}\" = (select \"{column}\" from kept) where {at}; \
                 drop table kept"
            );
            self.database.execute(undo).await;
        }
        let run = format!("once-{}", table.settings.name);
        let mut writer = self.start(&run).await;
        let claimed = self.claim_by(&run, table, &filter).await;
        let batch = self.effects(&run, table, &claimed, succeeded);
        let again = batch.clone();
        let end = self.store.apply(&run, &mut writer, table, batch, noon()).await.unwrap();
        assert_eq!(end, done(1, 0, 0));
        let end = self.store.apply(&run, &mut writer, table, again, noon()).await.unwrap();
        assert_eq!(end, done(0, 0, 0), "what the run decided before is left out");
    }
}

/// The counts alone.
fn counted(mut end: ApplyEnd) -> ApplyEnd {
    if let ApplyEnd::Done { not_applied, .. } = &mut end {
        not_applied.clear();
    }
    end
}

/// How many rows were carried out, withheld, superseded.
pub fn done(applied: usize, withheld: usize, superseded: usize) -> ApplyEnd {
    let (paused, not_applied) = (BTreeMap::new(), Vec::new());
    let elsewhere = Vec::new();
    ApplyEnd::Done { applied, withheld, superseded, elsewhere, paused, not_applied }
}

/// A time without the zeros at its end.
fn shown(at: Instant) -> String {
    to_text(at).replace(".000000Z", "Z").replace(":00Z", "Z")
}

/// A row as a line.
pub fn line(row: &Transaction) -> String {
    let account = match &row.account {
        AccountRef::Known(name) => name.clone(),
        AccountRef::Unmapped(value) => format!("?{value}"),
    };
    let tag = match &row.tag {
        TagState::Usable(tag) => tag.clone(),
        other => format!("{other:?}"),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let money = row.money.map_or_else(
        || format!("({}: {})", row.defects[0].field, row.defects[0].problem),
        |money| money.to_string(),
    );
    let mut line = format!(
        "{} status={} {money} account={account} tag={tag} ref={} at={}",
        row.key.id,
        row.status,
        text(&row.psp_reference),
        shown(row.created_at),
    );
    if let Some(at) = row.attempted_at {
        line.push_str(&format!(" tried={}", shown(at)));
    }
    if let Some(key) = &row.natural_key {
        line.push_str(&format!(" natural={key}"));
    }
    if let Some(key) = &row.idempotency_key {
        line.push_str(&format!(" key={key}"));
    }
    if row.kind != tieout::model::transaction::Kind::Charge {
        line.push_str(&format!(" kind={}", row.kind.as_str()));
    }
    line
}
