//! What `tieout_checks` remembers of a row, as it is read.

use std::collections::HashMap;

use sqlx::postgres::PgConnection;

use crate::decide::decision::{History, PastHandBack};
use crate::model::reason::Outcome;
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::sql::{Cells, Sql};

/// The columns that [`Remembered::read`] reads, of `tieout_checks c`; the last one
/// is its open case. Asked for each row by the index, never joined: the planner knows nothing of
/// cases that the run itself opened, and would hold every row against all of them.
pub(super) const COLUMNS: &str = "\
c.key, c.state, c.lease_token, c.lease_run, c.currency, c.amount_minor, c.account, c.image, \
c.first_seen_at, c.fingerprint_seen_at, c.aged_from, c.unanswered_since, c.unanswered, c.checks, \
c.misses, c.handbacks, c.watch_from, c.watch_step, c.ended_as, c.events, c.next_check_at, \
c.lease_until, (select k.number from tieout_cases k where k.state = 'open' \
and k.subject_kind = 'row' and k.table_name = c.table_name and k.subject = c.key)";

/// How many columns that is.
pub(super) const COUNT: usize = 23;

/// One row of `tieout_checks`.
pub(super) struct Remembered {
    pub(super) key: String,
    pub(super) state: String,
    pub(super) token: i64,
    pub(super) lease_run: Option<String>,
    pub(super) currency: String,
    pub(super) amount_minor: i64,
    pub(super) image: String,
    pub(super) history: History,
    pub(super) events: u32,
    pub(super) next_check_at: Option<Instant>,
    pub(super) lease_until: Option<Instant>,
    pub(super) open_case: Option<i64>,
}

impl Remembered {
    pub(super) fn read(cells: &Cells<'_>, doing: &'static str) -> Result<Self, StoreError> {
        let misses = cells.text(14)?;
        let ended_as = match cells.maybe_text(18)? {
            None => None,
            Some(_) => Some(cells.word(18, Outcome::parse)?),
        };
        let history = History {
            first_account: cells.maybe_text(6)?,
            first_seen_at: cells.at(8)?,
            fingerprint_seen_at: cells.at(9)?,
            aged_from: cells.at(10)?,
            unanswered_since: cells.maybe_at(11)?,
            unanswered: cells.count(12)?,
            checks: cells.count(13)?,
            misses: serde_json::from_str(&misses)
                .map_err(|error| unexpected(doing, format!("the misses kept: {error}")))?,
            handbacks: cells.count(15)?,
            last_handback: None,
            watch_from: cells.maybe_at(16)?,
            watch_step: cells.count(17)?,
            ended_as,
        };
        Ok(Self {
            key: cells.text(0)?,
            state: cells.text(1)?,
            token: cells.big(2)?,
            lease_run: cells.maybe_text(3)?,
            currency: cells.text(4)?,
            amount_minor: cells.big(5)?,
            image: cells.text(7)?,
            history,
            events: cells.count(19)?,
            next_check_at: cells.maybe_at(20)?,
            lease_until: cells.maybe_at(21)?,
            open_case: cells.maybe_big(22)?,
        })
    }
}

/// The last hand-back of each of these rows, and whether its worker may have come for it unseen.
pub(super) async fn last_handbacks(
    connection: &mut PgConnection,
    table: &str,
    keys: &[String],
) -> Result<HashMap<String, (PastHandBack, bool)>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let doing = "reading the last hand-backs";
    let mut sql = Sql::new(
        "select distinct on (h.key) h.key, h.number, h.at, h.taken_at, h.charge_before, \
         h.taken_at is null \
         and (h.ended_at is null or h.end_reason in ('lapsed', 'sibling_pending')), \
         coalesce(h.end_reason in ('lapsed', 'sibling_pending'), false), \
         (select count(*) from tieout_handbacks l where l.table_name = h.table_name \
         and l.key = h.key and l.end_reason in ('lapsed', 'sibling_pending'))::integer, \
         h.taken_at is null and coalesce(h.end_reason = 'sibling_row', false), h.not_before, \
         h.retry = 'new_attempt' \
         from tieout_handbacks h where h.table_name = $1 and h.key = any($2) \
         order by h.key, h.number desc",
    );
    sql.bind(table.to_owned());
    sql.bind(keys.to_vec());
    let rows = sql.fetch(connection).await.map_err(failed(doing))?;
    rows.iter()
        .map(|row| {
            let cells = Cells::new(row, doing);
            let past = PastHandBack {
                number: cells.count(1)?,
                at: cells.at(2)?,
                not_before: cells.maybe_at(9)?,
                taken_at: cells.maybe_at(3)?,
                charge_before: cells.at(4)?,
                anew: cells.flag(10)?,
                lapsed: cells.flag(6)?,
                lapses: cells.count(7)?,
                stopped: cells.flag(8)?,
            };
            Ok((cells.text(0)?, (past, cells.flag(5)?)))
        })
        .collect()
}
