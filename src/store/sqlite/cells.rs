//! Reading tieout's own columns out of a row, strictly: what this version did not write is said.

use std::str::FromStr;

use chrono::NaiveDate;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::model::time::{Instant, from_text, to_text};
use crate::store::error::StoreError;
use crate::store::files::LinePlace;

/// One row, read by position.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r> {
    row: &'r SqliteRow,
    doing: &'static str,
}

impl<'r> Cells<'r> {
    pub(super) fn new(row: &'r SqliteRow, doing: &'static str) -> Self {
        Self { row, doing }
    }

    pub(super) fn wrong(&self, column: usize, problem: impl std::fmt::Display) -> StoreError {
        let name = self.row.columns().get(column).map_or("?", |c| sqlx::Column::name(c));
        StoreError::Unexpected { doing: self.doing, problem: format!("column {name}: {problem}") }
    }

    pub(super) fn text(&self, column: usize) -> Result<String, StoreError> {
        self.row.try_get(column).map_err(|error| self.wrong(column, error))
    }

    pub(super) fn opt_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        self.row.try_get(column).map_err(|error| self.wrong(column, error))
    }

    pub(super) fn str(&self, column: usize) -> Result<&'r str, StoreError> {
        self.row.try_get(column).map_err(|error| self.wrong(column, error))
    }

    pub(super) fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.row.try_get(column).map_err(|error| self.wrong(column, error))
    }

    /// Where a line stands: the cell here and the next.
    pub(super) fn place(&self, column: usize) -> Result<LinePlace, StoreError> {
        let position = self.int(column.saturating_add(1))?;
        Ok(LinePlace { file: self.int(column)?, position })
    }

    pub(super) fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        self.row.try_get(column).map_err(|error| self.wrong(column, error))
    }

    pub(super) fn count(&self, column: usize) -> Result<u32, StoreError> {
        u32::try_from(self.int(column)?).map_err(|error| self.wrong(column, error))
    }

    pub(super) fn opt_small<T: TryFrom<i64>>(&self, column: usize) -> Result<Option<T>, StoreError>
    where
        T::Error: std::fmt::Display,
    {
        self.opt_int(column)?
            .map(T::try_from)
            .transpose()
            .map_err(|error| self.wrong(column, error))
    }

    pub(super) fn at(&self, column: usize) -> Result<Instant, StoreError> {
        self.instant(column, self.str(column)?)
    }

    pub(super) fn opt_at(&self, column: usize) -> Result<Option<Instant>, StoreError> {
        let text: Option<&str> =
            self.row.try_get(column).map_err(|error| self.wrong(column, error))?;
        text.map(|text| self.instant(column, text)).transpose()
    }

    /// Only the one notation that sorts as time is tieout's own.
    fn instant(&self, column: usize, text: &str) -> Result<Instant, StoreError> {
        from_text(text)
            .filter(|at| to_text(*at) == text)
            .ok_or_else(|| self.wrong(column, format!("`{text}` is not a time of tieout's")))
    }

    pub(super) fn opt_day(&self, column: usize) -> Result<Option<NaiveDate>, StoreError> {
        let text: Option<&str> =
            self.row.try_get(column).map_err(|error| self.wrong(column, error))?;
        text.map(|text| text.parse().map_err(|error| self.wrong(column, error))).transpose()
    }

    /// A closed set of words.
    pub(super) fn word<T>(
        &self,
        column: usize,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let text = self.str(column)?;
        parse(text).ok_or_else(|| self.wrong(column, format!("`{text}` is not a word it knows")))
    }

    /// A closed set of words, or NULL.
    pub(super) fn opt_word<T>(
        &self,
        column: usize,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        match self.opt_text(column)? {
            Some(_) => self.word(column, parse).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn parse<T: FromStr>(&self, column: usize) -> Result<T, StoreError>
    where
        T::Err: std::fmt::Display,
    {
        self.str(column)?.parse().map_err(|error: T::Err| self.wrong(column, error))
    }

    pub(super) fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: usize,
    ) -> Result<T, StoreError> {
        serde_json::from_str(self.str(column)?).map_err(|error| self.wrong(column, error))
    }
}
