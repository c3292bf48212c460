//! Letting a file count by a person's word, which a run carries out: within the caller's
//! transaction.

use std::collections::BTreeSet;

use sqlx::sqlite::SqliteConnection;
use tokio::sync::mpsc::Receiver;

use crate::model::reason::Reason;
use crate::model::time::{Instant, to_text};
use crate::store::batches::PARTED;
use crate::store::error::StoreError;
use crate::store::files::{
    FileSums, Held, LinePlace, Part, PartsEnd, StoredLine, big, case_of, zones_text,
};
use crate::store::pages::Issue;
use crate::store::release::{
    ADDED, About, CARRIED_OUT, DECIDES, Dialect, Difference, Release, Said, Spoken, TAKES_PLACE,
    WAITING, Word, gone, issues, later, refused_text, resolution, told_in_cases,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::files::{self, FileCase, Loader};
use crate::store::sqlite::sql::{execute, fetch, rendered};
use crate::store::sqlite::{lines, pages, runs, told};
use crate::store::still_told::{Still, still};

pub(super) const DOING: &str = "letting the file count";
pub(super) const ASKING: &str = "noting that the file may count";
pub(super) const WAITED: &str = "reading which files may count";
pub(super) const COMPARING: &str = "comparing a statement with its earlier issues";

pub(super) const DIALECT: Dialect = Dialect { array: "json_array", as_text: "", is: "is" };

/// Notes a person's word, and changes nothing.
pub(super) async fn ask(
    connection: &mut SqliteConnection,
    file: i64,
    word: &Word,
    now: Instant,
) -> Result<Said, StoreError> {
    let query = sqlx::query(
        "insert into tieout_releases (file_id, what, at, by_whom, why, state) \
         select f.id, case f.state when 'quarantined' then 'quarantined' else 'held' end, ?2, ?3, \
         ?4, 'waiting' from tieout_files f where f.id = ?1 and (f.state = 'quarantined' \
         or exists (select 1 from tieout_statements s where s.file_id = f.id \
         and s.state = 'held')) on conflict (file_id) where state = 'waiting' do nothing",
    )
    .bind(file)
    .bind(to_text(now))
    .bind(word.by.clone())
    .bind(word.why.clone());
    if execute(connection, ASKING, query).await? > 0 {
        return Ok(Said::Noted);
    }
    Ok(waiting(connection, Some(file)).await?.pop().map_or(Said::Nothing, Said::Waits))
}

/// The words that wait, in their order; of one file alone where it is named.
pub(super) async fn waiting(
    connection: &mut SqliteConnection,
    file: Option<i64>,
) -> Result<Vec<Spoken>, StoreError> {
    let rows = fetch(connection, WAITED, sqlx::query(WAITING).bind(file)).await?;
    let spoken = rows.iter().map(|row| {
        let cells = Cells::new(row, WAITED);
        Ok(Spoken {
            number: cells.int(0)?,
            file: cells.int(1)?,
            about: cells.word(2, About::parse)?,
            at: cells.at(3)?,
            word: Word { by: cells.text(4)?, why: cells.text(5)? },
        })
    });
    spoken.collect()
}

/// Ends a word, where it still waits.
async fn end_word(
    connection: &mut SqliteConnection,
    run_id: &str,
    number: i64,
    (state, why): (&'static str, &str),
    now: Instant,
) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "update tieout_releases set state = ?2, ended_at = ?3, ended_why = ?4, ended_run = ?5 \
         where number = ?1 and state = 'waiting'",
    )
    .bind(number)
    .bind(state)
    .bind(to_text(now))
    .bind(why.to_owned())
    .bind(run_id.to_owned());
    Ok(execute(connection, DOING, query).await? > 0)
}

/// Carries the word about a quarantined file out: loads its lines.
pub(super) async fn load(
    connection: &mut SqliteConnection,
    run_id: &str,
    spoken: &Spoken,
    (first, parts): (Part, &mut Receiver<Part>),
    now: Instant,
) -> Result<Release, StoreError> {
    if !runs::is_running(connection, run_id).await? {
        return Ok(Release::Dropped);
    }
    if !end_word(connection, run_id, spoken.number, ("carried_out", CARRIED_OUT), now).await? {
        return Ok(Release::Nothing);
    }
    let (id, word) = (spoken.file, &spoken.word);
    let query = sqlx::query(
        "update tieout_files set state = 'released', spooled_as = null, changed_at = ?2, \
         changed_by = ?3, changed_why = ?4 where id = ?1 and state = 'quarantined' \
         returning name, account",
    )
    .bind(id)
    .bind(to_text(spoken.at))
    .bind(word.by.clone())
    .bind(word.why.clone());
    let rows = fetch(connection, DOING, query).await?;
    let Some(row) = rows.first() else { return Ok(Release::Nothing) };
    let cells = Cells::new(row, DOING);
    let (name, account) = (cells.text(0)?, cells.text(1)?);
    let mut loader = Loader::new(connection, id, &name);
    let end = loader.read(first, parts).await?;
    let (added, held) = (loader.lines, loader.held);
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
        return Err(StoreError::Unexpected { doing: DOING, problem });
    }
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
    connection: &mut SqliteConnection,
    file: i64,
    sums: &FileSums,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_files set statements = ?2, entries = ?3, lines = ?4, totals = ?5, \
         zones = ?6 where id = ?1",
    )
    .bind(file)
    .bind(big(sums.statements))
    .bind(big(sums.entries))
    .bind(big(sums.lines))
    .bind(sums.totals.clone())
    .bind(zones_text(&sums.zones));
    execute(connection, DOING, query).await.map(|_| ())
}

/// The statements of a file that are held, and why.
async fn held_of(
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

/// The file by which a later issue of a statement came that was let count.
async fn later_issue(
    connection: &mut SqliteConnection,
    issue: &Issue,
) -> Result<Option<i64>, StoreError> {
    let query = rendered(&later(&DIALECT)).bind(issue.file).bind(issue.number);
    let query = query.bind(issue.id.clone());
    let rows = fetch(connection, COMPARING, query).await?;
    rows.first().map(|row| Cells::new(row, COMPARING).int(0)).transpose()
}

/// Carries the word about held statements out: lets them count.
pub(super) async fn let_count(
    connection: &mut SqliteConnection,
    run_id: &str,
    spoken: &Spoken,
    now: Instant,
) -> Result<Release, StoreError> {
    if !runs::is_running(connection, run_id).await? {
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
    execute(connection, DOING, sqlx::query(PARTED)).await?;
    note_changed(connection, spoken).await?;
    // What a later issue has corrected since stays held, and the file's case stays with it.
    if newer.is_none() {
        let ended = resolution(&spoken.word);
        files::close_case(connection, run_id, file, &ended, now).await?;
    }
    Ok(Release::Done { added, removed })
}

async fn note_changed(
    connection: &mut SqliteConnection,
    spoken: &Spoken,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_files set changed_at = ?2, changed_by = ?3, \
         changed_why = coalesce(changed_why || '; ', '') || ?4 where id = ?1",
    )
    .bind(spoken.file)
    .bind(to_text(spoken.at))
    .bind(spoken.word.by.clone())
    .bind(spoken.word.why.clone());
    execute(connection, DOING, query).await.map(|_| ())
}

/// Ends a word that cannot be carried out, and says why in the file's case, where the file still
/// is what it was; false where the word waits no more, or the run was closed: nothing was changed.
pub(super) async fn refuse(
    connection: &mut SqliteConnection,
    run_id: &str,
    spoken: &Spoken,
    why: &str,
    now: Instant,
) -> Result<bool, StoreError> {
    if !runs::is_running(connection, run_id).await?
        || !end_word(connection, run_id, spoken.number, ("refused", why), now).await?
    {
        return Ok(false);
    }
    let query = sqlx::query(
        "select f.name, f.account from tieout_files f where f.id = ?1 and case \
         when ?2 = 'quarantined' then f.state = 'quarantined' else exists (select 1 \
         from tieout_statements s where s.file_id = f.id and s.state = 'held') end",
    )
    .bind(spoken.file)
    .bind(spoken.about.as_str());
    let rows = fetch(connection, DOING, query).await?;
    if let Some(row) = rows.first() {
        let cells = Cells::new(row, DOING);
        let (name, account) = (cells.text(0)?, cells.text(1)?);
        let reason = match spoken.about {
            About::Quarantined => Reason::FileQuarantined,
            About::Held => Reason::StatementCorrected,
        };
        let text = refused_text(&name, spoken, why);
        let case = FileCase { id: spoken.file, account: &account, reason, text };
        files::put_case(connection, run_id, &case, now).await?;
    }
    Ok(true)
}

/// What only the earlier issues have counts no more; of what is deleted, nothing does. How many
/// lines those are, but for what another file goes on telling.
async fn take_out(
    connection: &mut SqliteConnection,
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
async fn let_in(connection: &mut SqliteConnection, issue: &Issue) -> Result<u64, StoreError> {
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
    connection: &mut SqliteConnection,
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
    connection: &mut SqliteConnection,
    issue: &Issue,
    text: String,
) -> Result<u64, StoreError> {
    let query = rendered(&text).bind(issue.file).bind(issue.number).bind(issue.id.clone());
    execute(connection, DOING, query).await
}

/// How the statements of a file that are held differ from what counts.
pub(super) async fn differences(
    connection: &mut SqliteConnection,
    file: i64,
) -> Result<Vec<Difference>, StoreError> {
    let mut all = Vec::new();
    for (number, held_for) in held_of(connection, file).await? {
        let issue = pages::issue(connection, file, number).await?;
        let deletes = held_for == Some(Held::Deletion);
        let gone = gone(deletes);
        let come = if deletes { "select file_id, position from new where false" } else { ADDED };
        let removed = lines_at(connection, &issue, &gone).await?;
        let added = lines_at(connection, &issue, come).await?;
        let both = "select new.file_id, new.position from new \
                    join old on old.k = new.k and old.n = new.n";
        let same = if deletes { 0 } else { places(connection, &issue, both).await?.len() };
        let same = u64::try_from(same).unwrap_or(u64::MAX);
        let still = still_told(connection, &issue, deletes).await?;
        let later = later_issue(connection, &issue).await?;
        let difference =
            Difference { statement: number, held_for, same, added, removed, still, later };
        all.push(difference);
    }
    Ok(all)
}

/// What of the lines that a statement takes out another file goes on telling.
async fn still_told(
    connection: &mut SqliteConnection,
    issue: &Issue,
    deletes: bool,
) -> Result<Vec<Still>, StoreError> {
    let text = format!("{} {}", issues(&DIALECT), still(deletes, DIALECT.is));
    let query = rendered(&text).bind(issue.file).bind(issue.number).bind(issue.id.clone());
    let rows = fetch(connection, COMPARING, query).await?;
    let told = rows.iter().map(|row| {
        let cells = Cells::new(row, COMPARING);
        Ok(Still { gone: cells.place(0)?, by: cells.place(2)?, file_name: cells.text(4)? })
    });
    told.collect()
}

async fn places(
    connection: &mut SqliteConnection,
    issue: &Issue,
    which: &str,
) -> Result<Vec<LinePlace>, StoreError> {
    let text = format!("{} {which} order by 1, 2", issues(&DIALECT));
    let query = rendered(&text).bind(issue.file).bind(issue.number).bind(issue.id.clone());
    let rows = fetch(connection, COMPARING, query).await?;
    let places = rows.iter().map(|row| {
        let cells = Cells::new(row, COMPARING);
        cells.place(0)
    });
    places.collect()
}

async fn lines_at(
    connection: &mut SqliteConnection,
    issue: &Issue,
    which: &str,
) -> Result<Vec<StoredLine>, StoreError> {
    let places = places(connection, issue, which).await?;
    lines::at(connection, &places).await
}
