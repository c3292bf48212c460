//! A foreign schema in a database of its own, with tieout's tables beside it.

use chrono::TimeDelta;
use serde::Deserialize;
use sqlx::{AssertSqlSafe, PgPool};
use tieout::model::time::{Instant, from_text, to_text};
use tieout::model::transaction::{AccountRef, TagState, Transaction};
use tieout::store::database::Database as Store;
use tieout::store::driver::{Driver, Writer};
use tieout::store::error::StoreError;
use tieout::store::mapping::TableSettings;
use tieout::store::records::{ClaimFilter, Claimed, RunStart};
use tieout::store::settings::DatabaseSettings;
use tieout::store::source_table::SourceTable;

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

    /// The rows of a query whose columns are all texts, a line a row.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        let sql = format!("select concat_ws(' ', {sql}");
        let rows = sqlx::query_scalar(AssertSqlSafe(sql.clone())).fetch_all(&self.pool).await;
        rows.unwrap_or_else(|error| panic!("{error}\nin: {sql}"))
    }
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
        || row.defects.iter().map(|d| format!("{}: {}", d.field, d.problem)).collect(),
        |money| money.to_string(),
    );
    let mut line = format!(
        "{} status={} {money} account={account} tag={tag} ref={} at={}",
        row.key.id,
        row.status,
        text(&row.psp_reference),
        to_text(row.created_at),
    );
    if let Some(at) = row.attempted_at {
        line.push_str(&format!(" tried={}", to_text(at)));
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
