//! Letting a file count by a person's word: one transaction, whatever the file's size.

use sqlx::postgres::{PgConnection, PgPool};
use tokio::sync::mpsc::Receiver;

use crate::model::time::Instant;
use crate::store::batches::PARTED;
use crate::store::error::StoreError;
use crate::store::files::{FileSums, Held, LinePlace, Part, PartsEnd, StoredLine, big};
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::files::Loader;
use crate::store::postgres::lines;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::release::{
    ADDED, DECIDES, Dialect, Difference, REMOVED, Release, Word, issues, resolution,
};

const DOING: &str = "letting the file count";
const COMPARING: &str = "comparing a statement with its earlier issues";

const DIALECT: Dialect =
    Dialect { array: "jsonb_build_array", as_text: "::text", is: "is not distinct from" };

/// Loads a quarantined file's lines.
pub(super) async fn quarantined(
    pool: &PgPool,
    file: i64,
    word: &Word,
    parts: &mut Receiver<Part>,
    now: Instant,
) -> Result<Release, StoreError> {
    // The first part is waited for outside of the transaction, which must not idle.
    let Some(first) = parts.recv().await else { return Ok(Release::Dropped) };
    let mut tx = pool.begin().await.map_err(failed(DOING))?;
    sqlx::query("set local statement_timeout = 0")
        .execute(&mut *tx)
        .await
        .map_err(failed(DOING))?;
    let name: Option<String> = sqlx::query_scalar(
        "update tieout_files set state = 'released', spooled_as = null, changed_at = $2, \
         changed_by = $3 || ' (database user ' || session_user || ')', changed_why = $4 \
         where id = $1 and state = 'quarantined' returning name",
    )
    .bind(file)
    .bind(now)
    .bind(&word.by)
    .bind(&word.why)
    .fetch_optional(&mut *tx)
    .await
    .map_err(failed(DOING))?;
    let Some(name) = name else { return Ok(Release::Nothing) };
    let mut loader = Loader::new(&mut tx, file, &name);
    let end = loader.read(Some(first), parts).await?;
    let sums = match end {
        PartsEnd::Dropped => {
            tx.rollback().await.map_err(failed(DOING))?;
            return Ok(Release::Dropped);
        }
        PartsEnd::Whole(sums) | PartsEnd::Quarantine(sums) => sums,
    };
    if loader.lines() != sums.lines {
        let problem = format!("{} lines were read and {} came", sums.lines, loader.lines());
        return Err(unexpected(DOING, problem));
    }
    let (added, is_held) = (loader.lines(), loader.held > 0);
    // Statements whose end did not come have no record; the parser ends each before the file.
    sum_up(&mut tx, file, &sums).await?;
    if !is_held {
        close_case(&mut tx, file, word, now).await?;
    }
    tx.commit().await.map_err(failed(DOING))?;
    Ok(Release::Done { added, removed: 0 })
}

async fn sum_up(
    connection: &mut PgConnection,
    file: i64,
    sums: &FileSums,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_files set statements = $2, entries = $3, lines = $4, totals = $5 \
         where id = $1",
    )
    .bind(file)
    .bind(big(sums.statements))
    .bind(big(sums.entries))
    .bind(big(sums.lines))
    .bind(&sums.totals)
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(failed(DOING))
}

async fn close_case(
    connection: &mut PgConnection,
    file: i64,
    word: &Word,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_cases set state = 'closed', closed_at = $2, resolution = $3 \
         where state = 'open' and subject_kind = 'file' and table_name = '' and subject = $1",
    )
    .bind(file.to_string())
    .bind(now)
    .bind(resolution(word))
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(failed(DOING))
}

/// Lets the statements of a file count that are held.
pub(super) async fn held(
    pool: &PgPool,
    file: i64,
    word: &Word,
    now: Instant,
) -> Result<Release, StoreError> {
    let mut tx = pool.begin().await.map_err(failed(DOING))?;
    // Two issues of one statement, released side by side, would each be held against the first.
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('tieout files release', 0))")
        .execute(&mut *tx)
        .await
        .map_err(failed(DOING))?;
    let held: Vec<(i64, Option<String>)> = sqlx::query_as(
        "select number, held_for from tieout_statements where file_id = $1 and state = 'held' \
         order by number",
    )
    .bind(file)
    .fetch_all(&mut *tx)
    .await
    .map_err(failed(DOING))?;
    if held.is_empty() {
        return Ok(Release::Nothing);
    }
    let (mut added, mut removed) = (0_u64, 0_u64);
    for (number, held_for) in held {
        let deletes = held_for.as_deref() == Some(Held::Deletion.as_str());
        removed = removed.saturating_add(take_out(&mut tx, file, number, deletes).await?);
        if !deletes {
            added = added.saturating_add(let_in(&mut tx, file, number).await?);
        }
        change_places(&mut tx, file, number, deletes).await?;
    }
    Sql::new(PARTED).run(&mut tx).await.map_err(failed(DOING))?;
    sqlx::query(
        "update tieout_files set changed_at = $2, \
         changed_by = $3 || ' (database user ' || session_user || ')', \
         changed_why = coalesce(changed_why || '; ', '') || $4 where id = $1",
    )
    .bind(file)
    .bind(now)
    .bind(&word.by)
    .bind(&word.why)
    .execute(&mut *tx)
    .await
    .map_err(failed(DOING))?;
    close_case(&mut tx, file, word, now).await?;
    tx.commit().await.map_err(failed(DOING))?;
    Ok(Release::Done { added, removed })
}

/// What only the earlier issues have counts no more; of what is deleted, nothing does.
async fn take_out(
    connection: &mut PgConnection,
    file: i64,
    number: i64,
    deletes: bool,
) -> Result<u64, StoreError> {
    let gone = if deletes { "select file_id, position from old" } else { REMOVED };
    run(
        connection,
        (file, number),
        format!(
            "{} update tieout_lines as l set state = 'superseded' from ({gone}) g \
             where l.file_id = g.file_id and l.position = g.position",
            issues(&DIALECT)
        ),
    )
    .await
}

/// What only this issue has counts from now on.
async fn let_in(connection: &mut PgConnection, file: i64, number: i64) -> Result<u64, StoreError> {
    run(
        connection,
        (file, number),
        format!(
            "{} update tieout_lines as l set decides = {DECIDES}, reason = null, \
             state = case when {DECIDES} or l.kind = 'attempt' then 'open' else 'excluded' end \
             from ({ADDED}) g, tieout_statements s where l.file_id = g.file_id \
             and l.position = g.position and s.file_id = $1 and s.number = $2",
            issues(&DIALECT)
        ),
    )
    .await
}

/// The live issue gives its place to this one.
async fn change_places(
    connection: &mut PgConnection,
    file: i64,
    number: i64,
    deletes: bool,
) -> Result<(), StoreError> {
    run(
        connection,
        (file, number),
        format!(
            "{} update tieout_statements as o set state = 'superseded', rival_file = $1, \
             rival_number = $2 from same where o.file_id = same.file_id \
             and o.number = same.number and o.state = 'live'",
            issues(&DIALECT)
        ),
    )
    .await?;
    let state = if deletes { "superseded" } else { "live" };
    run(
        connection,
        (file, number),
        format!(
            "update tieout_statements set state = '{state}' where file_id = $1 and number = $2"
        ),
    )
    .await
    .map(|_| ())
}

async fn run(
    connection: &mut PgConnection,
    (file, number): (i64, i64),
    text: String,
) -> Result<u64, StoreError> {
    let mut sql = Sql::new(text);
    sql.bind(file);
    sql.bind(number);
    sql.run(connection).await.map_err(failed(DOING))
}

/// How the statements of a file that are held differ from what counts.
pub(super) async fn differences(pool: &PgPool, file: i64) -> Result<Vec<Difference>, StoreError> {
    let mut tx = pool.begin().await.map_err(failed(COMPARING))?;
    let held: Vec<(i64, Option<String>)> = sqlx::query_as(
        "select number, held_for from tieout_statements where file_id = $1 and state = 'held' \
         order by number",
    )
    .bind(file)
    .fetch_all(&mut *tx)
    .await
    .map_err(failed(COMPARING))?;
    let mut all = Vec::new();
    for (number, held_for) in held {
        let held_for = held_for.as_deref().and_then(Held::parse);
        let deletes = held_for == Some(Held::Deletion);
        let gone = if deletes { "select file_id, position from old" } else { REMOVED };
        let come = if deletes { "select file_id, position from new where false" } else { ADDED };
        let removed = lines_at(&mut tx, (file, number), gone).await?;
        let added = lines_at(&mut tx, (file, number), come).await?;
        let both = "select new.file_id, new.position from new \
                    join old on old.k = new.k and old.n = new.n";
        let same = if deletes { 0 } else { places(&mut tx, (file, number), both).await?.len() };
        let same = u64::try_from(same).unwrap_or(u64::MAX);
        all.push(Difference { statement: number, held_for, same, added, removed });
    }
    Ok(all)
}

async fn places(
    connection: &mut PgConnection,
    (file, number): (i64, i64),
    which: &str,
) -> Result<Vec<LinePlace>, StoreError> {
    let mut sql = Sql::new(format!("{} {which} order by 1, 2", issues(&DIALECT)));
    sql.bind(file);
    sql.bind(number);
    let rows = sql.fetch(connection).await.map_err(failed(COMPARING))?;
    let places = rows.iter().map(|row| {
        let cells = Cells::new(row, COMPARING);
        Ok(LinePlace { file: cells.big(0)?, position: cells.big(1)? })
    });
    places.collect()
}

async fn lines_at(
    connection: &mut PgConnection,
    statement: (i64, i64),
    which: &str,
) -> Result<Vec<StoredLine>, StoreError> {
    let places = places(connection, statement, which).await?;
    lines::at(connection, &places).await
}
