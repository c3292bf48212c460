//! Cases of settlement lines that no row has. See [`crate::store::files::FileDriver`].

use sqlx::sqlite::SqliteConnection;

use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{LINE_CASE_ENDED, LineCase, MAY_HAVE_CASE, clean};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::people::end_outrun;
use crate::store::sqlite::sql::{execute, fetch, json_set, rendered};

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
        serde_json::json!([
            case.place.to_string(),
            case.place.file,
            case.place.position,
            case.reason.as_str(),
            clean(&case.text),
            case.account,
            case.money.as_ref().map_or("", |money| money.currency.code()),
            case.money.map_or(0, |money| money.minor),
        ])
    });
    let set = serde_json::Value::from_iter(rows).to_string();
    let query = sqlx::query(
        "update tieout_cases as k set reason = j.value ->> 3, text = j.value ->> 4, \
         last_seen_at = ?2, last_run = r.id, policy_version = r.policy_version, \
         times_seen = k.times_seen + 1 \
         from json_each(?1) j, tieout_runs r where r.id = ?3 and k.state = 'open' \
         and k.subject_kind = 'line' and k.table_name = '' and k.subject = j.value ->> 0 \
         and (k.reason is not j.value ->> 3 or k.text is not j.value ->> 4)",
    )
    .bind(set.clone())
    .bind(to_text(now))
    .bind(run_id.to_owned());
    execute(connection, OPENING, query).await?;
    let sql = format!(
        "insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, \
         account, currency, amount_minor, policy_version, opened_at, opened_run, last_seen_at, \
         last_run) \
         select 'line', '', j.value ->> 0, j.value ->> 3, j.value ->> 4, 'open', j.value ->> 5, \
         j.value ->> 6, j.value ->> 7, r.policy_version, ?2, r.id, ?2, r.id \
         from json_each(?1) j cross join tieout_lines l on l.file_id = j.value ->> 1 \
         and l.position = j.value ->> 2 cross join tieout_runs r on r.id = ?3 \
         where {MAY_HAVE_CASE} and l.left_case is null \
         order by l.file_id, l.position \
         on conflict (subject_kind, table_name, subject) where state = 'open' do nothing"
    );
    let query = rendered(&sql).bind(set).bind(to_text(now)).bind(run_id.to_owned());
    execute(connection, OPENING, query).await
}

pub(super) async fn close(
    connection: &mut SqliteConnection,
    run_id: &str,
    now: Instant,
) -> Result<u64, StoreError> {
    let sql = format!(
        "select k.number, {LINE_CASE_ENDED} from tieout_cases k left join tieout_lines l \
         on {PLACE} where k.state = 'open' and k.subject_kind = 'line' and k.table_name = '' \
         and ({MAY_HAVE_CASE}) is not true"
    );
    let mut ended = Vec::new();
    for row in fetch(connection, CLOSING, rendered(&sql)).await? {
        let cells = Cells::new(&row, CLOSING);
        ended.push((cells.int(0)?, cells.text(1)?));
    }
    if ended.is_empty() {
        return Ok(0);
    }
    let query = sqlx::query(
        "update tieout_cases as c set state = 'closed', closed_at = ?2, closed_run = ?3, \
         resolution = j.value ->> 1 from json_each(?1) j where c.number = j.value ->> 0",
    )
    .bind(json_set(&ended))
    .bind(to_text(now))
    .bind(run_id.to_owned());
    execute(connection, CLOSING, query).await?;
    let numbers: Vec<i64> = ended.iter().map(|(number, _)| *number).collect();
    end_outrun(connection, run_id, &numbers, now).await?;
    Ok(u64::try_from(numbers.len()).unwrap_or(u64::MAX))
}

/// Of a proposal that leaves a line as it is: notes that with the line, so that nobody is asked
/// again. Of any other subject nothing happens.
pub(super) async fn leave(
    connection: &mut SqliteConnection,
    doing: &'static str,
    proposal: i64,
) -> Result<(), StoreError> {
    let sql = format!(
        "update tieout_lines as l set left_case = k.number \
         from tieout_proposals p, tieout_cases k where p.number = ?1 \
         and k.number = p.case_number and {PLACE}"
    );
    execute(connection, doing, rendered(&sql).bind(proposal)).await.map(|_| ())
}
