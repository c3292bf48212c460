//! Letting a file count by a person's word: within the caller's transaction.

use sqlx::sqlite::SqliteConnection;
use tokio::sync::mpsc::Receiver;

use crate::model::time::{Instant, to_text};
use crate::store::batches::PARTED;
use crate::store::error::StoreError;
use crate::store::files::{FileSums, Held, LinePlace, Part, PartsEnd, StoredLine, big};
use crate::store::release::{
    ADDED, DECIDES, Dialect, Difference, REMOVED, Release, Word, issues, resolution,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::files::Loader;
use crate::store::sqlite::lines;
use crate::store::sqlite::sql::{execute, fetch, rendered};

pub(super) const DOING: &str = "letting the file count";
pub(super) const COMPARING: &str = "comparing a statement with its earlier issues";

const DIALECT: Dialect = Dialect { array: "json_array", as_text: "", is: "is" };

/// Loads a quarantined file's lines.
pub(super) async fn quarantined(
    connection: &mut SqliteConnection,
    file: i64,
    word: &Word,
    first: Part,
    parts: &mut Receiver<Part>,
    now: Instant,
) -> Result<Release, StoreError> {
    let query = sqlx::query(
        "update tieout_files set state = 'released', spooled_as = null, changed_at = ?2, \
         changed_by = ?3, changed_why = ?4 where id = ?1 and state = 'quarantined' \
         returning name",
    )
    .bind(file)
    .bind(to_text(now))
    .bind(word.by.clone())
    .bind(word.why.clone());
    let rows = fetch(connection, DOING, query).await?;
    let Some(row) = rows.first() else { return Ok(Release::Nothing) };
    let name = Cells::new(row, DOING).text(0)?;
    let mut loader = Loader::new(connection, file, &name);
    let end = loader.read(first, parts).await?;
    let (added, is_held) = (loader.lines, loader.held > 0);
    let sums = match end {
        PartsEnd::Dropped => return Ok(Release::Dropped),
        PartsEnd::Whole(sums) | PartsEnd::Quarantine(sums) => sums,
    };
    if added != sums.lines {
        let problem = format!("{} lines were read and {added} came", sums.lines);
        return Err(StoreError::Unexpected { doing: DOING, problem });
    }
    sum_up(connection, file, &sums).await?;
    if !is_held {
        close_case(connection, file, word, now).await?;
    }
    Ok(Release::Done { added, removed: 0 })
}

async fn sum_up(
    connection: &mut SqliteConnection,
    file: i64,
    sums: &FileSums,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_files set statements = ?2, entries = ?3, lines = ?4, totals = ?5 \
         where id = ?1",
    )
    .bind(file)
    .bind(big(sums.statements))
    .bind(big(sums.entries))
    .bind(big(sums.lines))
    .bind(sums.totals.clone());
    execute(connection, DOING, query).await.map(|_| ())
}

async fn close_case(
    connection: &mut SqliteConnection,
    file: i64,
    word: &Word,
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_cases set state = 'closed', closed_at = ?2, resolution = ?3 \
         where state = 'open' and subject_kind = 'file' and table_name = '' and subject = ?1",
    )
    .bind(file.to_string())
    .bind(to_text(now))
    .bind(resolution(word));
    execute(connection, DOING, query).await.map(|_| ())
}

/// The statements of a file that are held, and why.
async fn waiting(
    connection: &mut SqliteConnection,
    file: i64,
) -> Result<Vec<(i64, Option<Held>)>, StoreError> {
    let query = sqlx::query(
        "select number, held_for from tieout_statements where file_id = ?1 and state = 'held' \
         order by number",
    );
    let rows = fetch(connection, DOING, query.bind(file)).await?;
    let held = rows.iter().map(|row| {
        let cells = Cells::new(row, DOING);
        Ok((cells.int(0)?, cells.opt_word(1, Held::parse)?))
    });
    held.collect()
}

/// Lets the statements of a file count that are held.
pub(super) async fn held(
    connection: &mut SqliteConnection,
    file: i64,
    word: &Word,
    now: Instant,
) -> Result<Release, StoreError> {
    let held = waiting(connection, file).await?;
    if held.is_empty() {
        return Ok(Release::Nothing);
    }
    let (mut added, mut removed) = (0_u64, 0_u64);
    for (number, held_for) in held {
        let deletes = held_for == Some(Held::Deletion);
        removed = removed.saturating_add(take_out(connection, file, number, deletes).await?);
        if !deletes {
            added = added.saturating_add(let_in(connection, file, number).await?);
        }
        change_places(connection, file, number, deletes).await?;
    }
    execute(connection, DOING, sqlx::query(PARTED)).await?;
    let query = sqlx::query(
        "update tieout_files set changed_at = ?2, changed_by = ?3, \
         changed_why = coalesce(changed_why || '; ', '') || ?4 where id = ?1",
    )
    .bind(file)
    .bind(to_text(now))
    .bind(word.by.clone())
    .bind(word.why.clone());
    execute(connection, DOING, query).await?;
    close_case(connection, file, word, now).await?;
    Ok(Release::Done { added, removed })
}

/// What only the earlier issues have counts no more; of what is deleted, nothing does.
async fn take_out(
    connection: &mut SqliteConnection,
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
async fn let_in(
    connection: &mut SqliteConnection,
    file: i64,
    number: i64,
) -> Result<u64, StoreError> {
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
    connection: &mut SqliteConnection,
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
    connection: &mut SqliteConnection,
    (file, number): (i64, i64),
    text: String,
) -> Result<u64, StoreError> {
    execute(connection, DOING, rendered(&text).bind(file).bind(number)).await
}

/// How the statements of a file that are held differ from what counts.
pub(super) async fn differences(
    connection: &mut SqliteConnection,
    file: i64,
) -> Result<Vec<Difference>, StoreError> {
    let mut all = Vec::new();
    for (number, held_for) in waiting(connection, file).await? {
        let deletes = held_for == Some(Held::Deletion);
        let gone = if deletes { "select file_id, position from old" } else { REMOVED };
        let come = if deletes { "select file_id, position from new where false" } else { ADDED };
        let removed = lines_at(connection, (file, number), gone).await?;
        let added = lines_at(connection, (file, number), come).await?;
        let both = "select new.file_id, new.position from new \
                    join old on old.k = new.k and old.n = new.n";
        let same = if deletes { 0 } else { places(connection, (file, number), both).await?.len() };
        let same = u64::try_from(same).unwrap_or(u64::MAX);
        all.push(Difference { statement: number, held_for, same, added, removed });
    }
    Ok(all)
}

async fn places(
    connection: &mut SqliteConnection,
    (file, number): (i64, i64),
    which: &str,
) -> Result<Vec<LinePlace>, StoreError> {
    let text = format!("{} {which} order by 1, 2", issues(&DIALECT));
    let rows = fetch(connection, COMPARING, rendered(&text).bind(file).bind(number)).await?;
    let places = rows.iter().map(|row| {
        let cells = Cells::new(row, COMPARING);
        Ok(LinePlace { file: cells.int(0)?, position: cells.int(1)? })
    });
    places.collect()
}

async fn lines_at(
    connection: &mut SqliteConnection,
    statement: (i64, i64),
    which: &str,
) -> Result<Vec<StoredLine>, StoreError> {
    let places = places(connection, statement, which).await?;
    lines::at(connection, &places).await
}
