//! The pause switch: a person stops an account, and nothing of it is written any more.

use sqlx::sqlite::SqliteConnection;

use crate::model::time::{Instant, to_text};
use crate::store::driver::{Pause, Paused};
use crate::store::error::StoreError;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{execute, fetch};

pub(super) const PAUSING: &str = "pausing the account";
pub(super) const RESUMING: &str = "resuming the account";

pub(super) async fn pause(
    connection: &mut SqliteConnection,
    account: &str,
    by: &str,
    why: &str,
    now: Instant,
) -> Result<Paused, StoreError> {
    let query = sqlx::query(
        "insert into tieout_accounts (account, paused_at, paused_by, paused_why) \
         values (?1, ?2, ?3, ?4) on conflict (account) do update \
         set paused_at = excluded.paused_at, paused_by = excluded.paused_by, \
         paused_why = excluded.paused_why where tieout_accounts.paused_at is null",
    )
    .bind(account.to_owned())
    .bind(to_text(now))
    .bind(by.to_owned())
    .bind(why.to_owned());
    let is_new = execute(connection, PAUSING, query).await? > 0;
    let pause = all(connection, Some(account)).await?.pop().ok_or(StoreError::Unexpected {
        doing: PAUSING,
        problem: "the pause is not there".to_owned(),
    })?;
    Ok(Paused { pause, is_new, is_settled: true })
}

pub(super) async fn resume(
    connection: &mut SqliteConnection,
    account: &str,
) -> Result<Option<Pause>, StoreError> {
    let pause = all(connection, Some(account)).await?.pop();
    let query = sqlx::query(
        "update tieout_accounts set paused_at = null, paused_by = null, paused_why = null \
         where account = ?1 and paused_at is not null",
    )
    .bind(account.to_owned());
    execute(connection, RESUMING, query).await?;
    Ok(pause)
}

/// The paused accounts, or only `account`.
pub(super) async fn all(
    connection: &mut SqliteConnection,
    account: Option<&str>,
) -> Result<Vec<Pause>, StoreError> {
    let doing = "reading the paused accounts";
    let query = sqlx::query(
        "select account, paused_at, paused_by, paused_why from tieout_accounts \
         where paused_at is not null and (?1 is null or account = ?1) order by account",
    )
    .bind(account.map(str::to_owned));
    let rows = fetch(connection, doing, query).await?;
    let pauses = rows.iter().map(|row| {
        let cells = Cells::new(row, doing);
        Ok(Pause {
            account: cells.text(0)?,
            at: cells.at(1)?,
            by: cells.text(2)?,
            why: cells.opt_text(3)?.unwrap_or_default(),
        })
    });
    pauses.collect()
}
