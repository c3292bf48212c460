//! What is known of accounts, and their cases.

use sha2::{Digest, Sha256};
use sqlx::postgres::PgPool;

use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::model::transaction::hex;
use crate::store::driver::{AccountCase, AccountState};
use crate::store::error::StoreError;
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::transactions::begin;

pub(super) async fn put_case(
    pool: &PgPool,
    run_id: &str,
    case: &AccountCase,
    now: Instant,
) -> Result<i64, StoreError> {
    let doing = "opening the account's case";
    let hash = hex(&Sha256::digest(case.evidence.as_bytes()));
    let mut tx = begin(pool).await.map_err(failed(doing))?;
    sqlx::query(
        "insert into tieout_evidence (sha256, body, created_at) values ($1, $2, $3) \
         on conflict do nothing",
    )
    .bind(&hash)
    .bind(&case.evidence)
    .bind(now)
    .execute(&mut *tx)
    .await
    .map_err(failed(doing))?;
    let number = sqlx::query_scalar(
        "insert into tieout_cases as k (subject_kind, table_name, subject, reason, text, state, \
         account, policy_version, evidence_sha256, opened_at, opened_run, last_seen_at, last_run) \
         values ('account', '', $2, $1, $3, 'open', $2, $4, $5, $6, $7, $6, $7) \
         on conflict (subject_kind, table_name, subject) where state = 'open' do update \
         set reason = excluded.reason, text = excluded.text, \
         policy_version = excluded.policy_version, \
         evidence_sha256 = excluded.evidence_sha256, last_seen_at = excluded.last_seen_at, \
         last_run = excluded.last_run, times_seen = k.times_seen + 1 returning k.number",
    )
    .bind(case.reason.as_str())
    .bind(&case.account)
    .bind(&case.text)
    .bind(&case.policy_version)
    .bind(&hash)
    .bind(now)
    .bind(run_id)
    .fetch_one(&mut *tx)
    .await
    .map_err(failed(doing))?;
    tx.commit().await.map_err(failed(doing))?;
    Ok(number)
}

pub(super) async fn close_case(
    pool: &PgPool,
    run_id: &str,
    account: &str,
    reason: Reason,
    resolution: &str,
    now: Instant,
) -> Result<bool, StoreError> {
    let closed = sqlx::query(
        // By the case, so that without one no check is looked at.
        "update tieout_cases k set state = 'closed', closed_at = $1, closed_run = $2, \
         resolution = $3 where k.state = 'open' and k.subject_kind = 'account' \
         and k.reason = $4 and k.subject = $5 and not exists (select from tieout_checks c \
         where c.account = k.subject and c.last_reason = k.reason and c.state = 'open')",
    )
    .bind(now)
    .bind(run_id)
    .bind(resolution)
    .bind(reason.as_str())
    .bind(account)
    .execute(pool)
    .await
    .map_err(failed("closing the account's case"))?;
    Ok(closed.rows_affected() > 0)
}

pub(super) async fn state(pool: &PgPool, account: &str) -> Result<AccountState, StoreError> {
    type Stored = (Option<Instant>, Option<String>, Option<Instant>, Option<i32>, bool);
    let doing = "reading the account";
    let stored: Stored = sqlx::query_as(
        "select a.paused_at, a.paused_why, a.unanswered_since, a.usual_permille, \
         exists (select from tieout_files f where f.account = n.account) \
         from (select $1::text as account) n \
         left join tieout_accounts a on a.account = n.account",
    )
    .bind(account)
    .fetch_one(pool)
    .await
    .map_err(failed(doing))?;
    let (paused_at, why, unanswered_since, permille, has_files) = stored;
    let usual_permille = permille
        .map(u32::try_from)
        .transpose()
        .map_err(|_| unexpected(doing, "a negative share"))?;
    Ok(AccountState {
        paused: paused_at.map(|at| (at, why.unwrap_or_default())),
        unanswered_since,
        usual_permille,
        has_files,
    })
}

pub(super) async fn put_state(
    pool: &PgPool,
    account: &str,
    unanswered_since: Option<Instant>,
    usual_permille: Option<u32>,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into tieout_accounts (account, unanswered_since, usual_permille) \
         values ($1, $2, $3) on conflict (account) do update \
         set unanswered_since = excluded.unanswered_since, \
         usual_permille = coalesce(excluded.usual_permille, tieout_accounts.usual_permille)",
    )
    .bind(account)
    .bind(unanswered_since)
    .bind(usual_permille.map(|permille| i32::try_from(permille).unwrap_or(i32::MAX)))
    .execute(pool)
    .await
    .map_err(failed("storing what is known of the account"))?;
    Ok(())
}
