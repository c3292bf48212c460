//! Cases of settlement lines that no row has. See [`crate::store::files::FileDriver`].

use std::collections::HashSet;

use sqlx::sqlite::SqliteConnection;

use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{
    A_LINE_CASE, LEFT, LINE_CASE_ENDED, LineCase, clean, may_get_case, may_have_case,
};
use crate::store::sqlite::cases::close_numbered;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{
    Value, execute, execute_rows, failed, fetch, fetch_rows, json_set, rendered,
};

pub(super) const OPENING: &str = "opening cases of settlement lines";
pub(super) const CLOSING: &str = "closing cases of settlement lines";

/// Of a case `k` of a line: where that stands.
const PLACE: &str = "l.file_id = cast(substr(k.subject, 1, instr(k.subject, ':') - 1) as integer) \
     and l.position = cast(substr(k.subject, instr(k.subject, ':') + 1) as integer) \
     and k.subject_kind = 'line'";

pub(super) async fn put(
    connection: &mut SqliteConnection,
    run_id: &str,
    cases: &[LineCase],
    now: Instant,
) -> Result<u64, StoreError> {
    let rows = cases.iter().map(|case| {
        vec![
            Value::from(case.place.file),
            Value::from(case.place.position),
            Value::from(case.reason.as_str()),
        ]
    });
    let may_get_one = may_get_case("m.column3");
    let noting = |rows: &str| {
        format!(
            "update tieout_lines as l set cased = m.column3 from (values {rows}) m \
             where l.file_id = +m.column1 and l.position = +m.column2 and {may_get_one} \
             and coalesce(l.cased, '') not in (m.column3, '{LEFT}') \
             returning file_id, position"
        )
    };
    let mut noted = HashSet::new();
    for row in fetch_rows(connection, rows, noting).await.map_err(failed(OPENING))? {
        let cells = Cells::new(&row, OPENING);
        noted.insert(cells.place(0)?);
    }
    let new: Vec<&LineCase> = cases.iter().filter(|case| noted.contains(&case.place)).collect();
    let open: Vec<&LineCase> = new.iter().filter(|case| case.is_open).copied().collect();
    if !open.is_empty() {
        refresh(connection, run_id, &open, now).await?;
    }
    let new: Vec<NewCase> = new.into_iter().map(new_case).collect();
    let set = json_set(&new);
    let query = sqlx::query(
        "insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, \
         account, currency, amount_minor, policy_version, opened_at, opened_run, last_seen_at, \
         last_run) \
         select 'line', '', j.value ->> 0, j.value ->> 1, j.value ->> 2, 'open', j.value ->> 3, \
         j.value ->> 4, j.value ->> 5, r.policy_version, ?2, r.id, ?2, r.id \
         from json_each(?1) j cross join tieout_runs r where r.id = ?3 order by j.key \
         on conflict (subject_kind, table_name, subject) where state = 'open' do nothing",
    )
    .bind(set)
    .bind(to_text(now))
    .bind(run_id.to_owned());
    execute(connection, OPENING, query).await
}

/// Subject, reason, text, account, currency and minor units.
type NewCase = (String, String, String, String, String, i64);

fn new_case(case: &LineCase) -> NewCase {
    (
        case.place.to_string(),
        case.reason.as_str().to_owned(),
        clean(&case.text).into_owned(),
        case.account.clone(),
        case.money.map(|money| money.currency.code().to_owned()).unwrap_or_default(),
        case.money.map_or(0, |money| money.minor),
    )
}

/// Has these open cases say what is to be said now.
async fn refresh(
    connection: &mut SqliteConnection,
    run_id: &str,
    cases: &[&LineCase],
    now: Instant,
) -> Result<(), StoreError> {
    let said: Vec<NewCase> = cases.iter().map(|case| new_case(case)).collect();
    // The numbers first: by a number the row is found without a choice of indexes.
    let query = sqlx::query(
        "select k.number, j.value ->> 1, j.value ->> 2 from json_each(?1) j \
         cross join tieout_cases k on k.subject_kind = 'line' and k.table_name = '' \
         and k.subject = j.value ->> 0 and k.state = 'open'",
    )
    .bind(json_set(&said));
    let mut numbered = Vec::new();
    for row in fetch(connection, OPENING, query).await? {
        let cells = Cells::new(&row, OPENING);
        numbered.push((cells.int(0)?, cells.text(1)?, cells.text(2)?));
    }
    let query = sqlx::query(
        "update tieout_cases as c set reason = j.value ->> 1, text = j.value ->> 2, \
         last_seen_at = ?2, last_run = r.id, policy_version = r.policy_version, \
         times_seen = c.times_seen + 1 \
         from json_each(?1) j, tieout_runs r where r.id = ?3 and c.number = j.value ->> 0",
    )
    .bind(json_set(&numbered))
    .bind(to_text(now))
    .bind(run_id.to_owned());
    execute(connection, OPENING, query).await.map(|_| ())
}

/// Whether there is one that may have to be closed.
pub(super) async fn is_one_open(connection: &mut SqliteConnection) -> Result<bool, StoreError> {
    let rows = fetch(connection, CLOSING, sqlx::query(A_LINE_CASE)).await?;
    rows.first().map_or(Ok(false), |row| Ok(Cells::new(row, CLOSING).int(0)? != 0))
}

pub(super) async fn close(
    connection: &mut SqliteConnection,
    run_id: &str,
    now: Instant,
) -> Result<u64, StoreError> {
    let sql = format!(
        "select k.number, {LINE_CASE_ENDED} from tieout_cases k left join tieout_lines l \
         on {PLACE} where k.state = 'open' and k.subject_kind = 'line' and k.table_name = '' \
         and ({}) is not true",
        may_have_case()
    );
    let mut ended = Vec::new();
    for row in fetch(connection, CLOSING, rendered(&sql)).await? {
        let cells = Cells::new(&row, CLOSING);
        ended.push((cells.int(0)?, cells.text(1)?));
    }
    if ended.is_empty() {
        return Ok(0);
    }
    let numbers: Vec<i64> = ended.iter().map(|(number, _)| *number).collect();
    forget(connection, &numbers).await?;
    close_numbered(connection, run_id, &ended, now).await?;
    Ok(u64::try_from(numbers.len()).unwrap_or(u64::MAX))
}

/// Of lines whose cases were closed: that they have none.
async fn forget(connection: &mut SqliteConnection, cases: &[i64]) -> Result<(), StoreError> {
    let sql = format!(
        "select l.file_id, l.position from json_each(?1) j cross join tieout_cases k \
         on k.number = j.value cross join tieout_lines l on {PLACE} and l.cased <> '{LEFT}'"
    );
    let mut places = Vec::new();
    for row in fetch(connection, CLOSING, rendered(&sql).bind(json_set(cases))).await? {
        let cells = Cells::new(&row, CLOSING);
        places.push(vec![Value::from(cells.int(0)?), Value::from(cells.int(1)?)]);
    }
    let forgetting = |rows: &str| {
        format!(
            "update tieout_lines as l set cased = null from (values {rows}) m \
             where l.file_id = +m.column1 and l.position = +m.column2"
        )
    };
    execute_rows(connection, CLOSING, places.into_iter(), forgetting).await
}

/// Of a proposal that leaves a line as it is: notes that with the line, so that nobody is asked
/// again. Of any other subject nothing happens.
pub(super) async fn leave(
    connection: &mut SqliteConnection,
    doing: &'static str,
    proposal: i64,
) -> Result<(), StoreError> {
    let sql = format!(
        "select l.file_id, l.position from tieout_proposals p cross join tieout_cases k \
         on k.number = p.case_number cross join tieout_lines l on {PLACE} where p.number = ?1"
    );
    for row in fetch(connection, doing, rendered(&sql).bind(proposal)).await? {
        let cells = Cells::new(&row, doing);
        let query =
            sqlx::query("update tieout_lines set cased = ?3 where file_id = ?1 and position = ?2")
                .bind(cells.int(0)?)
                .bind(cells.int(1)?)
                .bind(LEFT);
        execute(connection, doing, query).await?;
    }
    Ok(())
}
