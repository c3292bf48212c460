//! What monitoring asks and remembers. See `store::watch`.

use sqlx::sqlite::SqliteConnection;

use crate::model::reason::PAID_BESIDE;
use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::booked_way_sql;
use crate::store::records::Waiting;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{execute, fetch, json_set, rendered};
use crate::store::watch::{
    Alert, AlertAsk, CaseLine, Change, FileFigures, Mark, StoredAlert, StuckLine, Turn, turns,
};

const COUNTING: &str = "counting for monitoring";
const MARKS: &str = "moving monitoring's numbers";
const ALERTS: &str = "keeping alerts";

pub(super) async fn waiting(
    connection: &mut SqliteConnection,
    tables: &[String],
    now: Instant,
) -> Result<Waiting, StoreError> {
    let query = sqlx::query(
        "select count(*), min(next_check_at) from tieout_checks \
         where table_name in (select value from json_each(?1)) \
         and state in ('open', 'watch') and next_check_at > ?2",
    )
    .bind(json_set(tables))
    .bind(to_text(now));
    let rows = fetch(connection, COUNTING, query).await?;
    let (rows, next) = match rows.first().map(|row| Cells::new(row, COUNTING)) {
        Some(cells) => (cells.int(0)?, cells.opt_at(1)?),
        None => (0, None),
    };
    let query = sqlx::query(
        "select lease_run, count(*) from tieout_checks \
         where table_name in (select value from json_each(?1)) \
         and lease_run is not null and lease_until > ?2 group by 1 order by 2 desc, 1 limit 1",
    )
    .bind(json_set(tables))
    .bind(to_text(now));
    let held = match fetch(connection, COUNTING, query).await?.first() {
        Some(row) => {
            let cells = Cells::new(row, COUNTING);
            Some((cells.text(0)?, cells.int(1)?))
        }
        None => None,
    };
    Ok(Waiting { rows, next, held })
}

pub(super) async fn stuck(connection: &mut SqliteConnection) -> Result<Vec<StuckLine>, StoreError> {
    let query = sqlx::query(
        "select coalesce(account, ''), count(*), min(coalesce(row_created_at, first_seen_at)) \
         from tieout_checks where state = 'open' group by 1 order by 1",
    );
    let rows = fetch(connection, COUNTING, query).await?;
    let lines = rows.iter().map(|row| {
        let cells = Cells::new(row, COUNTING);
        Ok(StuckLine { account: cells.text(0)?, rows: cells.int(1)?, oldest: cells.at(2)? })
    });
    lines.collect()
}

pub(super) async fn cases(
    connection: &mut SqliteConnection,
    edges: &[Instant],
) -> Result<Vec<CaseLine>, StoreError> {
    let edges: Vec<String> = edges.iter().map(|edge| to_text(*edge)).collect();
    let query = sqlx::query(
        "select reason, coalesce(account, ''), \
         (select count(*) from json_each(?1) e where e.value > opened_at) as bucket, \
         reason = 'sibling_row' and instr(text, ?2) > 0 as paid_beside, count(*), min(number), \
         max(number) \
         from tieout_cases where state = 'open' group by 1, 2, 3, 4 order by 1, 2, 3, 4",
    )
    .bind(json_set(&edges))
    .bind(PAID_BESIDE);
    let rows = fetch(connection, COUNTING, query).await?;
    let lines = rows.iter().map(|row| {
        let cells = Cells::new(row, COUNTING);
        Ok(CaseLine {
            reason: cells.text(0)?,
            account: cells.text(1)?,
            bucket: usize::try_from(cells.int(2)?).unwrap_or_default(),
            is_paid_beside: cells.int(3)? != 0,
            cases: cells.int(4)?,
            first: cells.int(5)?,
            last: cells.int(6)?,
        })
    });
    lines.collect()
}

pub(super) async fn files(connection: &mut SqliteConnection) -> Result<FileFigures, StoreError> {
    let query = sqlx::query(
        "select source, max(received_at) from tieout_files where state <> 'quarantined' \
         group by 1 order by 1",
    );
    let rows = fetch(connection, COUNTING, query).await?;
    let newest = rows.iter().map(|row| {
        let cells = Cells::new(row, COUNTING);
        Ok((cells.text(0)?, cells.at(1)?))
    });
    let newest = newest.collect::<Result<_, StoreError>>()?;
    // A sum beyond 64 bits would be an error.
    let sql = format!(
        "select {}, l.currency, cast(min(total(l.amount_minor), 9e18) as integer) \
         from tieout_lines l where l.state = 'open' and l.decides = 1 \
         group by 1, 2 order by 1, 2",
        booked_way_sql()
    );
    let rows = fetch(connection, COUNTING, rendered(&sql)).await?;
    let unmatched = rows.iter().map(|row| {
        let cells = Cells::new(row, COUNTING);
        Ok((cells.text(0)?, cells.text(1)?, cells.int(2)?))
    });
    Ok(FileFigures { newest, unmatched: unmatched.collect::<Result<_, StoreError>>()? })
}

pub(super) async fn move_marks(
    connection: &mut SqliteConnection,
    scope: &str,
    changes: &[(String, Change)],
) -> Result<Vec<Mark>, StoreError> {
    for (name, change) in changes {
        let (sql, value) = match change {
            Change::Set(value) => (
                "insert into tieout_marks (scope, name, value) values (?1, ?2, ?3) \
                 on conflict (scope, name) do update set value = excluded.value",
                value,
            ),
            Change::Add(value) => (
                "insert into tieout_marks (scope, name, value) values (?1, ?2, ?3) \
                 on conflict (scope, name) do update set value = value + excluded.value",
                value,
            ),
            Change::Keep(value) => (
                "insert into tieout_marks (scope, name, value) values (?1, ?2, ?3) \
                 on conflict (scope, name) do nothing",
                value,
            ),
        };
        let query = sqlx::query(sql).bind(scope.to_owned()).bind(name.clone()).bind(*value);
        execute(connection, MARKS, query).await?;
    }
    marks(connection, scope).await
}

pub(super) async fn marks(
    connection: &mut SqliteConnection,
    scope: &str,
) -> Result<Vec<Mark>, StoreError> {
    let query = sqlx::query("select name, value from tieout_marks where scope = ?1 order by name")
        .bind(scope.to_owned());
    let rows = fetch(connection, MARKS, query).await?;
    let marks = rows.iter().map(|row| {
        let cells = Cells::new(row, MARKS);
        Ok(Mark { name: cells.text(0)?, value: cells.int(1)? })
    });
    marks.collect()
}

pub(super) async fn take(
    connection: &mut SqliteConnection,
    ask: &AlertAsk,
) -> Result<Vec<Alert>, StoreError> {
    let query = sqlx::query(
        "select scope, condition, text, raised_at, told_at, lease_until from tieout_alerts \
         where receiver = ?1 order by scope, condition",
    )
    .bind(ask.receiver.clone());
    let rows = fetch(connection, ALERTS, query).await?;
    let stored: Vec<StoredAlert> = rows
        .iter()
        .map(|row| {
            let cells = Cells::new(row, ALERTS);
            Ok(StoredAlert {
                scope: cells.text(0)?,
                condition: cells.text(1)?,
                text: cells.text(2)?,
                raised_at: cells.at(3)?,
                is_told: cells.opt_at(4)?.is_some(),
                lease_until: cells.opt_at(5)?,
            })
        })
        .collect::<Result<_, StoreError>>()?;
    let turns = turns(ask, &stored);
    for alert in &turns.new {
        let query = sqlx::query(
            "insert into tieout_alerts \
             (scope, receiver, condition, text, raised_at, raised_run, lease_until) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .bind(ask.scope.clone())
        .bind(ask.receiver.clone())
        .bind(alert.condition.clone())
        .bind(alert.text.clone())
        .bind(to_text(alert.raised_at))
        .bind(ask.run_id.clone())
        .bind(to_text(ask.lease_until));
        execute(connection, ALERTS, query).await?;
    }
    for alert in &turns.stored {
        let query = sqlx::query(
            "update tieout_alerts set lease_until = ?4 \
             where scope = ?1 and receiver = ?2 and condition = ?3",
        )
        .bind(alert.scope.clone())
        .bind(ask.receiver.clone())
        .bind(alert.condition.clone())
        .bind(to_text(ask.lease_until));
        execute(connection, ALERTS, query).await?;
    }
    for (scope, condition) in &turns.forget {
        forget(connection, ask, scope, condition).await?;
    }
    Ok(turns.new.into_iter().chain(turns.stored).collect())
}

async fn forget(
    connection: &mut SqliteConnection,
    ask: &AlertAsk,
    scope: &str,
    condition: &str,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "delete from tieout_alerts where scope = ?1 and receiver = ?2 and condition = ?3",
    )
    .bind(scope.to_owned())
    .bind(ask.receiver.clone())
    .bind(condition.to_owned());
    execute(connection, ALERTS, query).await.map(|_| ())
}

pub(super) async fn settle(
    connection: &mut SqliteConnection,
    ask: &AlertAsk,
    alerts: &[Alert],
    is_told: bool,
) -> Result<(), StoreError> {
    for alert in alerts {
        if is_told && alert.turn == Turn::Resolved {
            forget(connection, ask, &alert.scope, &alert.condition).await?;
            continue;
        }
        let query = sqlx::query(
            "update tieout_alerts set lease_until = null, told_at = coalesce(told_at, ?4), \
             text = coalesce(?5, text) where scope = ?1 and receiver = ?2 and condition = ?3",
        )
        .bind(alert.scope.clone())
        .bind(ask.receiver.clone())
        .bind(alert.condition.clone())
        .bind(is_told.then(|| to_text(ask.now)))
        // What was not taken is no sentence that anybody was told.
        .bind(is_told.then(|| alert.text.clone()));
        execute(connection, ALERTS, query).await?;
    }
    Ok(())
}

pub(super) async fn note(
    connection: &mut SqliteConnection,
    run_id: &str,
    problems: &[String],
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_runs set notes = json_set(notes, '$.monitoring', json(?2)) \
         where id = ?1 and state <> 'running'",
    )
    .bind(run_id.to_owned())
    .bind(json_set(problems));
    execute(connection, "noting what monitoring could not do", query).await.map(|_| ())
}
