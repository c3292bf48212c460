//! Letting a file count by a person's word: the word is noted by itself, and a run carries it out
//! in one transaction, whatever the file's size.

use std::collections::BTreeSet;

use sqlx::postgres::{PgConnection, PgPool};
use tokio::sync::mpsc::Receiver;

use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::store::batches::PARTED;
use crate::store::error::StoreError;
use crate::store::files::{
    FileSums, Held, LinePlace, Part, PartsEnd, StoredLine, big, case_of, zones_text,
};
use crate::store::pages::Issue;
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::files::{self, FileCase, Loader};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;
use crate::store::postgres::{lines, pages, told};
use crate::store::release::{
    ADDED, About, CARRIED_OUT, DECIDES, Dialect, Difference, Release, Said, Spoken, TAKES_PLACE,
    WAITING, Word, gone, issues, later, refused_text, resolution, told_in_cases,
};
use crate::store::still_told::{Still, still};

const DOING: &str = "letting the file count";
const ASKING: &str = "noting that the file may count";
const WAITED: &str = "reading which files may count";
const COMPARING: &str = "comparing a statement with its earlier issues";

pub(super) const DIALECT: Dialect =
    Dialect { array: "jsonb_build_array", as_text: "::text", is: "is not distinct from" };

/// Notes a person's word, and changes nothing.
pub(super) async fn ask(
    pool: &PgPool,
    file: i64,
    word: &Word,
    now: Instant,
) -> Result<Said, StoreError> {
    let noted = sqlx::query(
        "insert into tieout_releases (file_id, what, at, by_whom, why, state) \
         select f.id, case f.state when 'quarantined' then 'quarantined' else 'held' end, $2, \
         $3 || ' (database user ' || session_user || ')', $4, 'waiting' from tieout_files f \
         where f.id = $1 and (f.state = 'quarantined' or exists (select from tieout_statements s \
         where s.file_id = f.id and s.state = 'held')) \
         on conflict (file_id) where state = 'waiting' do nothing",
    )
    .bind(file)
    .bind(now)
    .bind(&word.by)
    .bind(&word.why)
    .execute(pool)
    .await
    .map_err(failed(ASKING))?;
    if noted.rows_affected() > 0 {
        return Ok(Said::Noted);
    }
    Ok(waiting(pool, Some(file)).await?.pop().map_or(Said::Nothing, Said::Waits))
}

type Stored = (i64, i64, String, Instant, String, String);

fn spoken_of((number, file, about, at, by, why): Stored) -> Result<Spoken, StoreError> {
    let about = About::parse(&about)
        .ok_or_else(|| unexpected(WAITED, format!("`{about}` is not a word it knows")))?;
    Ok(Spoken { number, file, about, at, word: Word { by, why } })
}

/// The words that wait, in their order; of one file alone where it is named.
pub(super) async fn waiting(pool: &PgPool, file: Option<i64>) -> Result<Vec<Spoken>, StoreError> {
    let stored: Vec<Stored> =
        sqlx::query_as(WAITING).bind(file).fetch_all(pool).await.map_err(failed(WAITED))?;
    stored.into_iter().map(spoken_of).collect()
}

/// Ends a word, where it still waits and the run is under way. Whoever ends it at once is waited
/// for.
async fn end_word(
    connection: &mut PgConnection,
    run_id: &str,
    number: i64,
    (state, why): (&'static str, &str),
    now: Instant,
) -> Result<bool, StoreError> {
    let ended = sqlx::query(
        "update tieout_releases set state = $2, ended_at = $3, ended_why = $4, ended_run = $5 \
         where number = $1 and state = 'waiting'",
    )
    .bind(number)
    .bind(state)
    .bind(now)
    .bind(why)
    .bind(run_id)
    .execute(connection)
    .await
    .map_err(failed(DOING))?;
    Ok(ended.rows_affected() > 0)
}

/// Carries the word about a quarantined file out: loads its lines.
pub(super) async fn quarantined(
    pool: &PgPool,
    run_id: &str,
    spoken: &Spoken,
    parts: &mut Receiver<Part>,
    now: Instant,
) -> Result<Release, StoreError> {
    // The first part is waited for outside of the transaction, which must not idle.
    let Some(first) = parts.recv().await else { return Ok(Release::Dropped) };
    let mut tx = begin(pool).await.map_err(failed(DOING))?;
    let done = load(&mut tx, run_id, spoken, (first, parts), now).await?;
    match done {
        Release::Done { .. } => tx.commit().await.map_err(failed(DOING))?,
        Release::Nothing | Release::Dropped | Release::Empty | Release::Later(_) => {
            tx.rollback().await.map_err(failed(DOING))?;
        }
    }
    Ok(done)
}

async fn load(
    connection: &mut PgConnection,
    run_id: &str,
    spoken: &Spoken,
    (first, parts): (Part, &mut Receiver<Part>),
    now: Instant,
) -> Result<Release, StoreError> {
    files::be_patient(connection).await?;
    if !files::is_open(connection, run_id).await? {
        return Ok(Release::Dropped);
    }
    if !end_word(connection, run_id, spoken.number, ("carried_out", CARRIED_OUT), now).await? {
        return Ok(Release::Nothing);
    }
    let (id, word) = (spoken.file, &spoken.word);
    let file: Option<(String, String)> = sqlx::query_as(
        "update tieout_files set state = 'released', spooled_as = null, changed_at = $2, \
         changed_by = $3, changed_why = $4 where id = $1 and state = 'quarantined' \
         returning name, account",
    )
    .bind(id)
    .bind(spoken.at)
    .bind(&word.by)
    .bind(&word.why)
    .fetch_optional(&mut *connection)
    .await
    .map_err(failed(DOING))?;
    let Some((name, account)) = file else { return Ok(Release::Nothing) };
    let mut loader = Loader::new(connection, id, &name);
    let end = loader.read(Some(first), parts).await?;
    let (added, held) = (loader.lines(), loader.held);
    let overlaps = std::mem::take(&mut loader.overlaps);
    let mut sums = match end {
        PartsEnd::Dropped => return Ok(Release::Dropped),
        PartsEnd::Whole(sums) | PartsEnd::Quarantine(sums) => sums,
    };
    if added == 0 {
        return Ok(Release::Empty);
    }
    if added != sums.lines {
        let problem = format!("{} lines were read and {added} came", sums.lines);
        return Err(unexpected(DOING, problem));
    }
    // Statements whose end did not come have no record; the parser ends each before the file.
    sum_up(connection, id, &sums).await?;
    told::mark(connection, id).await?;
    overlaps.into_iter().for_each(|problem| sums.note(problem));
    match case_of(&name, &sums, held).filter(|_| held > 0) {
        Some((reason, text)) => {
            let case = FileCase { id, account: &account, reason, text };
            files::put_case(connection, run_id, &case, now).await?;
        }
        None => files::close_case(connection, run_id, id, &resolution(word), now).await?,
    }
    Ok(Release::Done { added, removed: 0 })
}

async fn sum_up(
    connection: &mut PgConnection,
    file: i64,
    sums: &FileSums,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_files set statements = $2, entries = $3, lines = $4, totals = $5, \
         zones = $6 where id = $1",
    )
    .bind(file)
    .bind(big(sums.statements))
    .bind(big(sums.entries))
    .bind(big(sums.lines))
    .bind(&sums.totals)
    .bind(zones_text(&sums.zones))
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(failed(DOING))
}

/// The statements of a file that are held, and why.
async fn held_of(
    connection: &mut PgConnection,
    file: i64,
) -> Result<Vec<(i64, Option<Held>)>, StoreError> {
    let held: Vec<(i64, Option<String>)> = sqlx::query_as(
        "select number, held_for from tieout_statements where file_id = $1 and state = 'held' \
         order by number",
    )
    .bind(file)
    .fetch_all(connection)
    .await
    .map_err(failed(DOING))?;
    let held = held.into_iter();
    Ok(held.map(|(number, why)| (number, why.as_deref().and_then(Held::parse))).collect())
}

/// The file by which a later issue of a statement came that was let count.
async fn later_issue(
    connection: &mut PgConnection,
    issue: &Issue,
) -> Result<Option<i64>, StoreError> {
    let mut sql = Sql::new(later(&DIALECT));
    sql.bind(issue.file);
    sql.bind(issue.number);
    sql.bind(issue.id.clone());
    let rows = sql.fetch(connection).await.map_err(failed(COMPARING))?;
    rows.first().map(|row| Cells::new(row, COMPARING).big(0)).transpose()
}

/// Carries the word about held statements out: lets them count.
pub(super) async fn held(
    pool: &PgPool,
    run_id: &str,
    spoken: &Spoken,
    now: Instant,
) -> Result<Release, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(DOING))?;
    // Two issues of one statement, released side by side, would each be held against the first.
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('tieout files release', 0))")
        .execute(&mut *tx)
        .await
        .map_err(failed(DOING))?;
    let done = let_count(&mut tx, run_id, spoken, now).await?;
    match done {
        Release::Done { .. } => tx.commit().await.map_err(failed(DOING))?,
        Release::Nothing | Release::Dropped | Release::Empty | Release::Later(_) => {
            tx.rollback().await.map_err(failed(DOING))?;
        }
    }
    Ok(done)
}

async fn let_count(
    connection: &mut PgConnection,
    run_id: &str,
    spoken: &Spoken,
    now: Instant,
) -> Result<Release, StoreError> {
    if !files::is_open(connection, run_id).await? {
        return Ok(Release::Dropped);
    }
    if !end_word(connection, run_id, spoken.number, ("carried_out", CARRIED_OUT), now).await? {
        return Ok(Release::Nothing);
    }
    let file = spoken.file;
    let (mut added, mut removed) = (0_u64, 0_u64);
    let mut counting = false;
    let mut newer: Option<i64> = None;
    for (number, held_for) in held_of(connection, file).await? {
        let issue = pages::issue(connection, file, number).await?;
        if let Some(later) = later_issue(connection, &issue).await? {
            newer = newer.max(Some(later));
            continue;
        }
        counting = true;
        let deletes = held_for == Some(Held::Deletion);
        removed = removed.saturating_add(take_out(connection, &issue, deletes).await?);
        if !deletes {
            added = added.saturating_add(let_in(connection, &issue).await?);
        }
        change_places(connection, &issue, deletes).await?;
    }
    if !counting {
        return Ok(newer.map_or(Release::Nothing, Release::Later));
    }
    told::again(connection, file).await?;
    Sql::new(PARTED).run(connection).await.map_err(failed(DOING))?;
    note_changed(connection, spoken).await?;
    // What a later issue has corrected since stays held, and the file's case stays with it.
    if newer.is_none() {
        let ended = resolution(&spoken.word);
        files::close_case(connection, run_id, file, &ended, now).await?;
    }
    Ok(Release::Done { added, removed })
}

async fn note_changed(connection: &mut PgConnection, spoken: &Spoken) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_files set changed_at = $2, changed_by = $3, \
         changed_why = coalesce(changed_why || '; ', '') || $4 where id = $1",
    )
    .bind(spoken.file)
    .bind(spoken.at)
    .bind(&spoken.word.by)
    .bind(&spoken.word.why)
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(failed(DOING))
}

/// Ends a word that cannot be carried out, and says why in the file's case, where the file still
/// is what it was; false where the word waits no more.
pub(super) async fn refuse(
    pool: &PgPool,
    run_id: &str,
    spoken: &Spoken,
    why: &str,
    now: Instant,
) -> Result<bool, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(DOING))?;
    if !files::is_open(&mut tx, run_id).await?
        || !end_word(&mut tx, run_id, spoken.number, ("refused", why), now).await?
    {
        tx.rollback().await.map_err(failed(DOING))?;
        return Ok(false);
    }
    let file: Option<(String, String)> = sqlx::query_as(
        "select f.name, f.account from tieout_files f where f.id = $1 and case \
         when $2 = 'quarantined' then f.state = 'quarantined' else exists (select \
         from tieout_statements s where s.file_id = f.id and s.state = 'held') end",
    )
    .bind(spoken.file)
    .bind(spoken.about.as_str())
    .fetch_optional(&mut *tx)
    .await
    .map_err(failed(DOING))?;
    if let Some((name, account)) = file {
        let reason = match spoken.about {
            About::Quarantined => Reason::FileQuarantined,
            About::Held => Reason::StatementCorrected,
        };
        let text = refused_text(&name, spoken, why);
        let case = FileCase { id: spoken.file, account: &account, reason, text };
        files::put_case(&mut tx, run_id, &case, now).await?;
    }
    tx.commit().await.map_err(failed(DOING))?;
    Ok(true)
}

/// What only the earlier issues have counts no more; of what is deleted, nothing does. How many
/// lines those are, but for what another file goes on telling.
async fn take_out(
    connection: &mut PgConnection,
    issue: &Issue,
    deletes: bool,
) -> Result<u64, StoreError> {
    let telling = format!("{} {}", issues(&DIALECT), told_in_cases(deletes));
    run(connection, issue, telling).await?;
    let still = still_told(connection, issue, deletes).await?;
    let still: BTreeSet<LinePlace> = still.into_iter().map(|still| still.gone).collect();
    let gone = gone(deletes);
    let taken = run(
        connection,
        issue,
        format!(
            "{} update tieout_lines as l set state = 'superseded' from ({gone}) g \
             where l.file_id = g.file_id and l.position = g.position",
            issues(&DIALECT)
        ),
    )
    .await?;
    Ok(taken.saturating_sub(u64::try_from(still.len()).unwrap_or(u64::MAX)))
}

/// What only this issue has counts from now on.
async fn let_in(connection: &mut PgConnection, issue: &Issue) -> Result<u64, StoreError> {
    run(
        connection,
        issue,
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
    issue: &Issue,
    deletes: bool,
) -> Result<(), StoreError> {
    run(
        connection,
        issue,
        format!(
            "{} update tieout_statements as o set state = 'superseded', rival_file = $1, \
             rival_number = $2 from same where o.file_id = same.file_id \
             and o.number = same.number and o.state = 'live' and {TAKES_PLACE}",
            issues(&DIALECT)
        ),
    )
    .await?;
    let state = if deletes { "superseded" } else { "live" };
    run(
        connection,
        issue,
        format!(
            "update tieout_statements set state = '{state}', statement_id = $3 \
             where file_id = $1 and number = $2"
        ),
    )
    .await
    .map(|_| ())
}

async fn run(
    connection: &mut PgConnection,
    issue: &Issue,
    text: String,
) -> Result<u64, StoreError> {
    let mut sql = Sql::new(text);
    sql.bind(issue.file);
    sql.bind(issue.number);
    sql.bind(issue.id.clone());
    sql.run(connection).await.map_err(failed(DOING))
}

/// How the statements of a file that are held differ from what counts.
pub(super) async fn differences(pool: &PgPool, file: i64) -> Result<Vec<Difference>, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(COMPARING))?;
    let mut all = Vec::new();
    for (number, held_for) in held_of(&mut tx, file).await? {
        let issue = pages::issue(&mut tx, file, number).await?;
        let deletes = held_for == Some(Held::Deletion);
        let gone = gone(deletes);
        let come = if deletes { "select file_id, position from new where false" } else { ADDED };
        let removed = lines_at(&mut tx, &issue, &gone).await?;
        let added = lines_at(&mut tx, &issue, come).await?;
        let both = "select new.file_id, new.position from new \
                    join old on old.k = new.k and old.n = new.n";
        let same = if deletes { 0 } else { places(&mut tx, &issue, both).await?.len() };
        let same = u64::try_from(same).unwrap_or(u64::MAX);
        let still = still_told(&mut tx, &issue, deletes).await?;
        let later = later_issue(&mut tx, &issue).await?;
        let difference =
            Difference { statement: number, held_for, same, added, removed, still, later };
        all.push(difference);
    }
    Ok(all)
}

/// What of the lines that a statement takes out another file goes on telling.
async fn still_told(
    connection: &mut PgConnection,
    issue: &Issue,
    deletes: bool,
) -> Result<Vec<Still>, StoreError> {
    let text = format!("{} {}", issues(&DIALECT), still(deletes, DIALECT.is));
    let mut sql = Sql::new(text);
    sql.bind(issue.file);
    sql.bind(issue.number);
    sql.bind(issue.id.clone());
    let rows = sql.fetch(connection).await.map_err(failed(COMPARING))?;
    let told = rows.iter().map(|row| {
        let cells = Cells::new(row, COMPARING);
        Ok(Still { gone: cells.place(0)?, by: cells.place(2)?, file_name: cells.text(4)? })
    });
    told.collect()
}

async fn places(
    connection: &mut PgConnection,
    issue: &Issue,
    which: &str,
) -> Result<Vec<LinePlace>, StoreError> {
    let mut sql = Sql::new(format!("{} {which} order by 1, 2", issues(&DIALECT)));
    sql.bind(issue.file);
    sql.bind(issue.number);
    sql.bind(issue.id.clone());
    let rows = sql.fetch(connection).await.map_err(failed(COMPARING))?;
    let places = rows.iter().map(|row| {
        let cells = Cells::new(row, COMPARING);
        cells.place(0)
    });
    places.collect()
}

async fn lines_at(
    connection: &mut PgConnection,
    issue: &Issue,
    which: &str,
) -> Result<Vec<StoredLine>, StoreError> {
    let places = places(connection, issue, which).await?;
    lines::at(connection, &places).await
}
