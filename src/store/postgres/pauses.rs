//! The pause switch: a person stops an account, and nothing of it is written any more.

use sqlx::postgres::{PgConnection, PgPool};

use crate::model::time::Instant;
use crate::store::driver::{Pause, Paused};
use crate::store::error::StoreError;
use crate::store::postgres::errors::{answered, failed};
use crate::store::postgres::transactions::begin;

const PAUSING: &str = "pausing the account";

type Stored = (String, Instant, String, Option<String>);

fn pause_of((account, at, by, why): Stored) -> Pause {
    Pause { account, at, by, why: why.unwrap_or_default() }
}

pub(super) async fn pause(
    pool: &PgPool,
    account: &str,
    by: &str,
    why: &str,
    now: Instant,
) -> Result<Paused, StoreError> {
    // An apply reads the switch under a lock of this table that it keeps to its end: while this
    // one is held, no batch that read it before is under way, and none begins.
    match write(pool, true, (account, by, why, now)).await {
        Ok((pause, is_new)) => Ok(Paused { pause, is_new, is_settled: true }),
        Err(error) if answered(&error).is_some_and(|pg| pg.code() == "55P03") => {
            // Somebody stands still in the middle of a batch: the pause must hold all the same.
            let (pause, is_new) =
                write(pool, false, (account, by, why, now)).await.map_err(failed(PAUSING))?;
            Ok(Paused { pause, is_new, is_settled: false })
        }
        Err(error) => Err(failed(PAUSING)(error)),
    }
}

async fn write(
    pool: &PgPool,
    waits: bool,
    (account, by, why, now): (&str, &str, &str, Instant),
) -> sqlx::Result<(Pause, bool)> {
    let mut tx = begin(pool).await?;
    if waits {
        sqlx::query("lock table tieout_accounts in exclusive mode").execute(&mut *tx).await?;
    }
    let written = sqlx::query(
        "insert into tieout_accounts as a (account, paused_at, paused_by, paused_why) \
         values ($1, $4, $2 || ' (database user ' || session_user || ')', $3) \
         on conflict (account) do update set paused_at = excluded.paused_at, \
         paused_by = excluded.paused_by, paused_why = excluded.paused_why \
         where a.paused_at is null",
    )
    .bind(account)
    .bind(by)
    .bind(why)
    .bind(now)
    .execute(&mut *tx)
    .await?;
    let pause = one(&mut tx, account).await?.ok_or(sqlx::Error::RowNotFound)?;
    tx.commit().await?;
    Ok((pause, written.rows_affected() > 0))
}

async fn one(connection: &mut PgConnection, account: &str) -> sqlx::Result<Option<Pause>> {
    let sql = "select account, paused_at, paused_by, paused_why from tieout_accounts \
               where paused_at is not null and account = $1";
    let stored: Option<Stored> =
        sqlx::query_as(sql).bind(account).fetch_optional(connection).await?;
    Ok(stored.map(pause_of))
}

pub(super) async fn resume(pool: &PgPool, account: &str) -> Result<Option<Pause>, StoreError> {
    let doing = "resuming the account";
    let mut tx = begin(pool).await.map_err(failed(doing))?;
    let pause = one(&mut tx, account).await.map_err(failed(doing))?;
    sqlx::query(
        "update tieout_accounts set paused_at = null, paused_by = null, paused_why = null \
         where account = $1 and paused_at is not null",
    )
    .bind(account)
    .execute(&mut *tx)
    .await
    .map_err(failed(doing))?;
    tx.commit().await.map_err(failed(doing))?;
    Ok(pause)
}

pub(super) async fn all(pool: &PgPool) -> Result<Vec<Pause>, StoreError> {
    let stored: Vec<Stored> = sqlx::query_as(
        "select account, paused_at, paused_by, paused_why from tieout_accounts \
         where paused_at is not null order by account collate \"C\"",
    )
    .fetch_all(pool)
    .await
    .map_err(failed("reading the paused accounts"))?;
    Ok(stored.into_iter().map(pause_of).collect())
}
