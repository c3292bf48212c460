//! SQL with names known at run time: text grown together with its parameters.

use chrono::NaiveDate;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{Arguments, AssertSqlSafe, Encode, Row, Type};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::LinePlace;
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::transactions::page;

/// A statement and its parameters. Only literals of this room and quoted identifiers are pushed;
/// every value is bound.
#[derive(Default)]
pub(super) struct Sql {
    text: String,
    arguments: PgArguments,
    bound: usize,
    failure: Option<String>,
}

impl Sql {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Binds a value; returns its place, `$3`.
    pub(super) fn bind<T>(&mut self, value: T) -> String
    where
        T: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        if let Err(error) = self.arguments.add(value) {
            self.failure = Some(error.to_string());
        }
        self.bound = self.bound.saturating_add(1);
        format!("${}", self.bound)
    }

    /// Asks how the statement would be carried out, and carries nothing out.
    pub(super) fn explained(mut self) -> Self {
        self.text.insert_str(0, "explain ");
        self
    }

    fn query(self) -> Result<Query<'static, Postgres, PgArguments>, sqlx::Error> {
        match self.failure {
            Some(problem) => Err(sqlx::Error::Protocol(problem)),
            None => Ok(sqlx::query_with(AssertSqlSafe(self.text), self.arguments)),
        }
    }

    pub(super) async fn fetch(self, connection: &mut PgConnection) -> sqlx::Result<Vec<PgRow>> {
        self.query()?.fetch_all(connection).await
    }

    /// The rows as they come, in flat memory.
    pub(super) fn stream(
        self,
        connection: &mut PgConnection,
    ) -> sqlx::Result<BoxStream<'_, sqlx::Result<PgRow>>> {
        Ok(self.query()?.fetch(connection))
    }

    /// What is read of each row, as the rows come: they are not all held as they came besides.
    pub(super) async fn fetch_each<T>(
        self,
        connection: &mut PgConnection,
        doing: &'static str,
        read: impl Fn(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = self.stream(connection).map_err(failed(doing))?;
        let mut found = Vec::new();
        while let Some(row) = rows.try_next().await.map_err(failed(doing))? {
            found.push(read(&row)?);
        }
        Ok(found)
    }

    /// The same of one page of a walk.
    pub(super) async fn fetch_page<T>(
        self,
        pool: &PgPool,
        doing: &'static str,
        read: impl Fn(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut tx = page(pool).await.map_err(failed(doing))?;
        let found = self.fetch_each(&mut tx, doing, read).await?;
        tx.rollback().await.map_err(failed(doing))?;
        Ok(found)
    }

    pub(super) async fn run(self, connection: &mut PgConnection) -> sqlx::Result<u64> {
        Ok(self.query()?.execute(connection).await?.rows_affected())
    }
}

/// Reads columns of a row by place, with what was being done in the error.
pub(super) struct Cells<'r> {
    row: &'r PgRow,
    doing: &'static str,
}

impl<'r> Cells<'r> {
    pub(super) fn new(row: &'r PgRow, doing: &'static str) -> Self {
        Self { row, doing }
    }

    fn get<T>(&self, index: usize) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, Postgres> + Type<Postgres>,
    {
        self.row.try_get(index).map_err(|error| unexpected(self.doing, error.to_string()))
    }

    pub(super) fn text(&self, index: usize) -> Result<String, StoreError> {
        self.get(index)
    }

    pub(super) fn maybe_text(&self, index: usize) -> Result<Option<String>, StoreError> {
        self.get(index)
    }

    pub(super) fn big(&self, index: usize) -> Result<i64, StoreError> {
        self.get(index)
    }

    /// Where a line stands: the cell here and the next.
    pub(super) fn place(&self, index: usize) -> Result<LinePlace, StoreError> {
        let position = self.big(index.saturating_add(1))?;
        Ok(LinePlace { file: self.big(index)?, position })
    }

    pub(super) fn maybe_big(&self, index: usize) -> Result<Option<i64>, StoreError> {
        self.get(index)
    }

    pub(super) fn int(&self, index: usize) -> Result<i32, StoreError> {
        self.get(index)
    }

    pub(super) fn maybe_int(&self, index: usize) -> Result<Option<i32>, StoreError> {
        self.get(index)
    }

    /// A count kept as a PostgreSQL integer; a CHECK keeps it from being negative.
    pub(super) fn count(&self, index: usize) -> Result<u32, StoreError> {
        Ok(u32::try_from(self.int(index)?).unwrap_or_default())
    }

    pub(super) fn flag(&self, index: usize) -> Result<bool, StoreError> {
        self.get(index)
    }

    pub(super) fn maybe_flag(&self, index: usize) -> Result<Option<bool>, StoreError> {
        self.get(index)
    }

    pub(super) fn at(&self, index: usize) -> Result<Instant, StoreError> {
        self.get(index)
    }

    pub(super) fn maybe_day(&self, index: usize) -> Result<Option<NaiveDate>, StoreError> {
        self.get(index)
    }

    pub(super) fn maybe_at(&self, index: usize) -> Result<Option<Instant>, StoreError> {
        self.get(index)
    }

    /// A stored word of a closed set.
    pub(super) fn word<T>(
        &self,
        index: usize,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let text = self.text(index)?;
        parse(&text).ok_or_else(|| unexpected(self.doing, format!("unknown word `{text}`")))
    }

    /// A sum, as the text of a numeric.
    pub(super) fn sum(&self, index: usize) -> Result<i128, StoreError> {
        let text = self.text(index)?;
        text.parse().map_err(|_| unexpected(self.doing, format!("`{text}` is no whole number")))
    }
}

/// A count as PostgreSQL's integer keeps it.
pub(super) fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
