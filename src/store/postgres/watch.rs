//! What monitoring asks and remembers. See `store::watch`.

use sqlx::postgres::{PgConnection, PgPool, PgRow};

use crate::model::reason::PAID_BESIDE;
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::booked_way_sql;
use crate::store::postgres::errors::failed;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;
use crate::store::records::Waiting;
use crate::store::watch::{
    Alert, AlertAsk, CaseLine, Change, FileFigures, Mark, StoredAlert, StuckLine, Turn, turns,
};

const COUNTING: &str = "counting for monitoring";
const MARKS: &str = "moving monitoring's numbers";
const ALERTS: &str = "keeping alerts";

const READ_MARKS: &str = "select name, value from tieout_marks where scope = $1 order by name";

pub(super) async fn waiting(
    pool: &PgPool,
    tables: &[String],
    now: Instant,
) -> Result<Waiting, StoreError> {
    let (rows, next): (i64, Option<Instant>) = sqlx::query_as(
        "select count(*), min(next_check_at) from tieout_checks where table_name = any($1) \
         and state in ('open', 'watch') and next_check_at > $2",
    )
    .bind(tables)
    .bind(now)
    .fetch_one(pool)
    .await
    .map_err(failed(COUNTING))?;
    let held: Option<(String, i64)> = sqlx::query_as(
        "select lease_run, count(*) from tieout_checks where table_name = any($1) \
         and lease_run is not null and lease_until > $2 group by 1 order by 2 desc, 1 limit 1",
    )
    .bind(tables)
    .bind(now)
    .fetch_optional(pool)
    .await
    .map_err(failed(COUNTING))?;
    Ok(Waiting { rows, next, held })
}

pub(super) async fn stuck(pool: &PgPool) -> Result<Vec<StuckLine>, StoreError> {
    let lines: Vec<(String, i64, Instant)> = sqlx::query_as(
        "select coalesce(account, ''), count(*), min(coalesce(row_created_at, first_seen_at)) \
         from tieout_checks where state = 'open' group by 1 order by 1",
    )
    .fetch_all(pool)
    .await
    .map_err(failed(COUNTING))?;
    let line = |(account, rows, oldest)| StuckLine { account, rows, oldest };
    Ok(lines.into_iter().map(line).collect())
}

/// Reason, account, bucket, whether money was found beside a sibling, how many, lowest, highest.
type CaseRow = (String, String, i64, bool, i64, i64, i64);

pub(super) async fn cases(pool: &PgPool, edges: &[Instant]) -> Result<Vec<CaseLine>, StoreError> {
    let lines: Vec<CaseRow> = sqlx::query_as(
        "select reason, coalesce(account, ''), \
         (select count(*) from unnest($1::timestamptz[]) e where e > opened_at), \
         reason = 'sibling_row' and strpos(text, $2::text) > 0, count(*), min(number), \
         max(number) \
         from tieout_cases where state = 'open' group by 1, 2, 3, 4 order by 1, 2, 3, 4",
    )
    .bind(edges)
    .bind(PAID_BESIDE)
    .fetch_all(pool)
    .await
    .map_err(failed(COUNTING))?;
    let line = |(reason, account, bucket, is_paid_beside, cases, first, last): CaseRow| {
        let bucket = usize::try_from(bucket).unwrap_or_default();
        CaseLine { reason, account, bucket, is_paid_beside, cases, first, last }
    };
    Ok(lines.into_iter().map(line).collect())
}

pub(super) async fn files(pool: &PgPool) -> Result<FileFigures, StoreError> {
    let newest: Vec<(String, Instant)> = sqlx::query_as(
        "select source, max(received_at) from tieout_files where state <> 'quarantined' \
         group by 1 order by 1",
    )
    .fetch_all(pool)
    .await
    .map_err(failed(COUNTING))?;
    // By the index of open lines, of which there are few.
    let sql = Sql::new(format!(
        "select {}, l.currency, \
         least(coalesce(sum(l.amount_minor), 0), 9223372036854775807)::bigint \
         from tieout_lines l where l.state = 'open' and l.decides group by 1, 2 order by 1, 2",
        booked_way_sql()
    ));
    let figure = |row: &PgRow| {
        let cells = Cells::new(row, COUNTING);
        Ok((cells.text(0)?, cells.text(1)?, cells.big(2)?))
    };
    let mut connection = pool.acquire().await.map_err(failed(COUNTING))?;
    let unmatched = sql.fetch_each(&mut connection, COUNTING, figure).await?;
    Ok(FileFigures { newest, unmatched })
}

pub(super) async fn move_marks(
    pool: &PgPool,
    scope: &str,
    changes: &[(String, Change)],
) -> Result<Vec<Mark>, StoreError> {
    // In one order everywhere, so that two runs never wait for each other.
    let mut changes: Vec<&(String, Change)> = changes.iter().collect();
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    let moving = async {
        let mut tx = begin(pool).await?;
        for (name, change) in changes {
            let (sql, value) = match change {
                Change::Set(value) => (
                    "insert into tieout_marks (scope, name, value) values ($1, $2, $3) \
                     on conflict (scope, name) do update set value = excluded.value",
                    value,
                ),
                Change::Add(value) => (
                    "insert into tieout_marks as m (scope, name, value) values ($1, $2, $3) \
                     on conflict (scope, name) do update set value = m.value + excluded.value",
                    value,
                ),
                Change::Keep(value) => (
                    "insert into tieout_marks (scope, name, value) values ($1, $2, $3) \
                     on conflict (scope, name) do nothing",
                    value,
                ),
            };
            sqlx::query(sql).bind(scope).bind(name).bind(value).execute(&mut *tx).await?;
        }
        let marks: Vec<(String, i64)> =
            sqlx::query_as(READ_MARKS).bind(scope).fetch_all(&mut *tx).await?;
        tx.commit().await?;
        Ok(marks)
    };
    let marks = moving.await.map_err(failed(MARKS))?;
    Ok(marks.into_iter().map(|(name, value)| Mark { name, value }).collect())
}

pub(super) async fn marks(pool: &PgPool, scope: &str) -> Result<Vec<Mark>, StoreError> {
    let read = sqlx::query_as(READ_MARKS).bind(scope).fetch_all(pool).await;
    let marks: Vec<(String, i64)> = read.map_err(failed(MARKS))?;
    Ok(marks.into_iter().map(|(name, value)| Mark { name, value }).collect())
}

type StoredRow = (String, String, String, Instant, bool, Option<Instant>);

pub(super) async fn take(pool: &PgPool, ask: &AlertAsk) -> Result<Vec<Alert>, StoreError> {
    let taking = async {
        let mut tx = begin(pool).await?;
        // One after the other: what two schedules see at once is told by one of them.
        sqlx::query("select pg_advisory_xact_lock(hashtextextended('tieout alerts ' || $1, 0))")
            .bind(&ask.receiver)
            .execute(&mut *tx)
            .await?;
        let stored: Vec<StoredRow> = sqlx::query_as(
            "select scope, condition, text, raised_at, told_at is not null, lease_until \
             from tieout_alerts where receiver = $1 order by scope, condition for update",
        )
        .bind(&ask.receiver)
        .fetch_all(&mut *tx)
        .await?;
        let stored: Vec<StoredAlert> = stored
            .into_iter()
            .map(|(scope, condition, text, raised_at, is_told, lease_until)| StoredAlert {
                scope,
                condition,
                text,
                raised_at,
                is_told,
                lease_until,
            })
            .collect();
        let turns = turns(ask, &stored);
        let mut mine = Vec::new();
        for alert in turns.new {
            if insert(&mut tx, ask, &alert).await? {
                mine.push(alert);
            }
        }
        for alert in turns.stored {
            sqlx::query(
                "update tieout_alerts set lease_until = $4 \
                 where scope = $1 and receiver = $2 and condition = $3",
            )
            .bind(&alert.scope)
            .bind(&ask.receiver)
            .bind(&alert.condition)
            .bind(ask.lease_until)
            .execute(&mut *tx)
            .await?;
            mine.push(alert);
        }
        for (scope, condition) in &turns.forget {
            forget(&mut tx, ask, scope, condition).await?;
        }
        tx.commit().await?;
        Ok(mine)
    };
    taking.await.map_err(failed(ALERTS))
}

/// False where another run was first: it tells.
async fn insert(
    connection: &mut PgConnection,
    ask: &AlertAsk,
    alert: &Alert,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "insert into tieout_alerts \
         (scope, receiver, condition, text, raised_at, raised_run, lease_until) \
         values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing",
    )
    .bind(&ask.scope)
    .bind(&ask.receiver)
    .bind(&alert.condition)
    .bind(&alert.text)
    .bind(alert.raised_at)
    .bind(&ask.run_id)
    .bind(ask.lease_until)
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn forget(
    connection: &mut PgConnection,
    ask: &AlertAsk,
    scope: &str,
    condition: &str,
) -> sqlx::Result<()> {
    sqlx::query("delete from tieout_alerts where scope = $1 and receiver = $2 and condition = $3")
        .bind(scope)
        .bind(&ask.receiver)
        .bind(condition)
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn settle(
    pool: &PgPool,
    ask: &AlertAsk,
    alerts: &[Alert],
    is_told: bool,
) -> Result<(), StoreError> {
    let settling = async {
        let mut tx = begin(pool).await?;
        for alert in alerts {
            if is_told && alert.turn == Turn::Resolved {
                forget(&mut tx, ask, &alert.scope, &alert.condition).await?;
                continue;
            }
            sqlx::query(
                "update tieout_alerts set lease_until = null, told_at = coalesce(told_at, $4), \
                 text = coalesce($5, text) where scope = $1 and receiver = $2 and condition = $3",
            )
            .bind(&alert.scope)
            .bind(&ask.receiver)
            .bind(&alert.condition)
            .bind(is_told.then_some(ask.now))
            // What was not taken is no sentence that anybody was told.
            .bind(is_told.then_some(alert.text.as_str()))
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await
    };
    settling.await.map_err(failed(ALERTS))
}

pub(super) async fn note(
    pool: &PgPool,
    run_id: &str,
    problems: &[String],
) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_runs \
         set notes = jsonb_set(notes::jsonb, '{monitoring}', to_jsonb($2::text[]))::text \
         where id = $1 and state <> 'running'",
    )
    .bind(run_id)
    .bind(problems)
    .execute(pool)
    .await
    .map_err(failed("noting what monitoring could not do"))?;
    Ok(())
}
