//! Cases of settlement lines that no row has. See [`crate::store::files::FileDriver`].

use std::collections::HashSet;

use sqlx::postgres::{PgConnection, PgPool};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{
    A_LINE_CASE, LEFT, LINE_CASE_ENDED, LineCase, LinePlace, clean, may_get_case, may_have_case,
};
use crate::store::postgres::errors::failed;
use crate::store::postgres::people::end_outrun;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::transactions::begin;

const OPENING: &str = "opening cases of settlement lines";
const CLOSING: &str = "closing cases of settlement lines";

/// Of a case `k` of a line: where that stands. Of any other subject there is no such place.
const FILE: &str =
    "case when k.subject_kind = 'line' then split_part(k.subject, ':', 1)::bigint end";
const POSITION: &str =
    "case when k.subject_kind = 'line' then split_part(k.subject, ':', 2)::bigint end";

/// Binds the cases; returns `unnest(…) as u(file, position, reason, …)`.
fn cases_in(sql: &mut Sql, cases: &[LineCase]) -> String {
    let files = sql.bind(cases.iter().map(|case| case.place.file).collect::<Vec<_>>());
    let positions = sql.bind(cases.iter().map(|case| case.place.position).collect::<Vec<_>>());
    let texts = |pick: fn(&LineCase) -> String| cases.iter().map(pick).collect::<Vec<_>>();
    let reasons = sql.bind(texts(|case| case.reason.as_str().to_owned()));
    let words = sql.bind(texts(|case| clean(&case.text).into_owned()));
    let accounts = sql.bind(texts(|case| case.account.clone()));
    let currency = |case: &LineCase| case.money.map(|money| money.currency.code().to_owned());
    let currencies = sql.bind(cases.iter().map(currency).collect::<Vec<_>>());
    let minor = |case: &LineCase| case.money.map(|money| money.minor);
    let minors = sql.bind(cases.iter().map(minor).collect::<Vec<_>>());
    format!(
        "unnest({files}::bigint[], {positions}::bigint[], {reasons}::text[], {words}::text[], \
         {accounts}::text[], {currencies}::text[], {minors}::bigint[]) \
         as u(file, position, reason, text, account, currency, minor)"
    )
}

pub(super) async fn put(
    pool: &PgPool,
    run_id: &str,
    cases: &[LineCase],
    now: Instant,
) -> Result<u64, StoreError> {
    let mut tx = begin(pool).await.map_err(failed(OPENING))?;
    // Of two runs that look at a line at once, the second finds that its case says so already.
    let mut sql = Sql::default();
    let (run, left) = (sql.bind(run_id.to_owned()), sql.bind(LEFT.to_owned()));
    let (from, may_get_one) = (cases_in(&mut sql, cases), may_get_case("u.reason"));
    sql.push(&format!(
        "update tieout_lines l set cased = u.reason from {from} \
         where l.file_id = u.file and l.position = u.position and {may_get_one} \
         and coalesce(l.cased, '') not in (u.reason, {left}) \
         and exists (select from tieout_runs r where r.id = {run} and r.state = 'running') \
         returning l.file_id, l.position"
    ));
    let noted = sql.fetch(&mut tx).await.map_err(failed(OPENING))?;
    let place_of = |row| {
        let cells = Cells::new(row, OPENING);
        cells.place(0)
    };
    let noted: Result<HashSet<LinePlace>, StoreError> = noted.iter().map(place_of).collect();
    let noted = noted?;
    let new = cases.iter().filter(|case| noted.contains(&case.place)).cloned();
    let opened = put_noted(&mut tx, run_id, &new.collect::<Vec<_>>(), now).await;
    let opened = opened.map_err(failed(OPENING))?;
    tx.commit().await.map_err(failed(OPENING))?;
    Ok(opened)
}

/// Refreshes the open ones of these cases and opens the others; how many those are.
async fn put_noted(
    connection: &mut PgConnection,
    run_id: &str,
    cases: &[LineCase],
    now: Instant,
) -> sqlx::Result<u64> {
    let open: Vec<LineCase> = cases.iter().filter(|case| case.is_open).cloned().collect();
    if !open.is_empty() {
        refresh(connection, run_id, &open, now).await?;
    }
    let mut sql = Sql::default();
    let (run, at) = (sql.bind(run_id.to_owned()), sql.bind(now));
    let from = cases_in(&mut sql, cases);
    // By the conflict alone, whatever is known of the table's size: no plan compares all cases.
    sql.push(&format!(
        "insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, \
         account, currency, amount_minor, policy_version, opened_at, opened_run, last_seen_at, \
         last_run) \
         select 'line', '', u.file || ':' || u.position, u.reason, u.text, 'open', u.account, \
         coalesce(u.currency, ''), coalesce(u.minor, 0), r.policy_version, {at}, r.id, {at}, r.id \
         from {from} join tieout_runs r on r.id = {run} order by u.file, u.position \
         on conflict (subject_kind, table_name, subject) where state = 'open' do nothing"
    ));
    sql.run(connection).await
}

/// Has these open cases say what is to be said now.
async fn refresh(
    connection: &mut PgConnection,
    run_id: &str,
    cases: &[LineCase],
    now: Instant,
) -> sqlx::Result<()> {
    let mut sql = Sql::default();
    let (run, at) = (sql.bind(run_id.to_owned()), sql.bind(now));
    let from = cases_in(&mut sql, cases);
    // `offset 0` keeps each look-up one of its own, by the index.
    sql.push(&format!(
        "update tieout_cases k set reason = f.reason, text = f.text, last_seen_at = {at}, \
         last_run = f.id, policy_version = f.policy_version, times_seen = k.times_seen + 1 \
         from (select o.number, u.reason, u.text, r.id, r.policy_version \
         from {from} join tieout_runs r on r.id = {run} cross join lateral (select c.number \
         from tieout_cases c where c.state = 'open' and c.subject_kind = 'line' \
         and c.table_name = '' and c.subject = u.file || ':' || u.position offset 0) o) f \
         where k.number = f.number and k.state = 'open'"
    ));
    sql.run(connection).await.map(|_| ())
}

pub(super) async fn close(pool: &PgPool, run_id: &str, now: Instant) -> Result<u64, StoreError> {
    let is_one_open = sqlx::query_scalar(A_LINE_CASE).fetch_one(pool).await;
    if !is_one_open.map_err(failed(CLOSING))? {
        return Ok(0);
    }
    let mut tx = begin(pool).await.map_err(failed(CLOSING))?;
    let mut sql = Sql::default();
    let (run, now_bound) = (sql.bind(run_id.to_owned()), sql.bind(now));
    let may_have_one = may_have_case();
    sql.push(&format!(
        "update tieout_cases c set state = 'closed', closed_at = {now_bound}, closed_run = r.id, \
         resolution = e.ended from tieout_runs r, \
         (select k.number, {LINE_CASE_ENDED} as ended from tieout_cases k \
         left join tieout_lines l on l.file_id = {FILE} and l.position = {POSITION} \
         where k.state = 'open' and k.subject_kind = 'line' and k.table_name = '' \
         and ({may_have_one}) is not true) e \
         where r.id = {run} and r.state = 'running' and c.number = e.number \
         and c.state = 'open' returning c.number"
    ));
    let closed = sql.fetch(&mut tx).await.map_err(failed(CLOSING))?;
    let number = |row| sqlx::Row::try_get(row, 0);
    let closed: sqlx::Result<Vec<i64>> = closed.iter().map(number).collect();
    let closed = closed.map_err(failed(CLOSING))?;
    forget(&mut tx, &closed).await.map_err(failed(CLOSING))?;
    end_outrun(&mut tx, run_id, &closed, now).await.map_err(failed(CLOSING))?;
    tx.commit().await.map_err(failed(CLOSING))?;
    Ok(u64::try_from(closed.len()).unwrap_or(u64::MAX))
}

/// Of lines whose cases were closed: that they have none.
async fn forget(connection: &mut PgConnection, cases: &[i64]) -> sqlx::Result<()> {
    if cases.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::default();
    let (cases, left) = (sql.bind(cases.to_vec()), sql.bind(LEFT.to_owned()));
    sql.push(&format!(
        "update tieout_lines l set cased = null from tieout_cases k \
         where k.number = any({cases}) and l.file_id = {FILE} and l.position = {POSITION} \
         and l.cased <> {left}"
    ));
    sql.run(connection).await.map(|_| ())
}

/// Of a proposal that leaves a line as it is: notes that with the line, so that nobody is asked
/// again. Of any other subject nothing happens.
pub(super) fn leaving(proposal: i64) -> Sql {
    let mut sql = Sql::default();
    let (proposal, left) = (sql.bind(proposal), sql.bind(LEFT.to_owned()));
    sql.push(&format!(
        "update tieout_lines l set cased = {left} \
         from tieout_proposals p join tieout_cases k on k.number = p.case_number \
         where p.number = {proposal} and l.file_id = {FILE} and l.position = {POSITION}"
    ));
    sql
}
