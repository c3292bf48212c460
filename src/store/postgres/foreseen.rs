//! CHECKs over the status and other columns: which of them would refuse stuck rows as a run would
//! write them. Each is asked of a few real rows, and nothing is written.
//!
//! A CHECK over a column whose value is not known before the decision, as what the PSP says, is not
//! asked: whatever stood in its place would be held against the CHECK, and a healthy table refused.

use std::collections::BTreeSet;
use std::time::{Duration, Instant as Tick};

use serde::Deserialize;
use sqlx::postgres::PgPool;

use crate::clock;
use crate::model::reason::Outcome;
use crate::store::effects::SetValue;
use crate::store::error::StoreError;
use crate::store::inspect::RefusedRows;
use crate::store::literals::ends;
use crate::store::mapping::SetSettings;
use crate::store::postgres::inspect::{LOOKING, parsed, read, stuck_of, texts};
use crate::store::postgres::rows::new_value;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::statements::Statements;
use crate::store::records::ClaimFilter;
use crate::store::source_table::{QuotedIdent, SourceTable};
use crate::store::template::{Template, step_of};

/// Stuck rows that CHECKs are asked of.
const ROWS: i64 = 20;

/// How long CHECKs are asked, all in all: one may call what takes long.
const PATIENCE: Duration = Duration::from_secs(5);

/// CHECKs of the written table over its status and other columns, none of which the database
/// computes, with the triggers that may change a row before the CHECK sees it.
const CHECKS: &str = "\
select json_build_object(
    'name', k.conname,
    'holds', pg_get_expr(k.conbin, k.conrelid),
    'columns', (select json_agg(a.attname order by a.attnum) from pg_attribute a
        where a.attrelid = k.conrelid and a.attnum = any(k.conkey)),
    'triggers', (select coalesce(json_agg(distinct t.tgname), '[]') from pg_trigger t
        where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype::integer & 19 = 19
            and (t.tgrelid = k.conrelid
                or t.tgrelid in (select p.relid from pg_partition_tree(k.conrelid) p)
                or t.tgrelid in (select h.inhrelid from pg_inherits h
                    where h.inhparent = k.conrelid)))
)::text
from pg_constraint k
join pg_attribute s on s.attrelid = k.conrelid and s.attname = $2 and not s.attisdropped
where k.conrelid = $1::text::regclass and k.contype = 'c' and s.attnum = any(k.conkey)
    and array_length(k.conkey, 1) > 1
    and pg_get_constraintdef(k.oid) not like '%NOT ENFORCED'
    and not exists (select from pg_attribute g where g.attrelid = k.conrelid
        and g.attnum = any(k.conkey) and g.attgenerated <> '')
order by k.conname limit 20";

#[derive(Debug, Deserialize)]
struct Check {
    name: String,
    holds: String,
    columns: Vec<String>,
    triggers: Vec<String>,
}

/// A status that the mapping writes for an outcome, and from which.
struct Write<'t> {
    outcome: Outcome,
    to: &'t str,
    from: BTreeSet<&'t str>,
}

/// Statuses that a CHECK over them and other columns refuses of stuck rows. A question that the
/// database does not answer, or not in time, is left out with its CHECK.
pub(super) async fn refused_rows(
    pool: &PgPool,
    table: &SourceTable,
) -> Result<Vec<RefusedRows>, StoreError> {
    let checks = checks(pool, table).await?;
    let keys = if checks.is_empty() { Vec::new() } else { stuck_keys(pool, table).await? };
    let mut found: Vec<RefusedRows> = Vec::new();
    if keys.is_empty() {
        return Ok(found);
    }
    let writes = writes(table);
    let began = Tick::now();
    for check in &checks {
        for write in &writes {
            let is_it = |told: &RefusedRows| told.check == check.name && told.value == write.to;
            if found.iter().any(is_it) || began.elapsed() > PATIENCE {
                continue;
            }
            let Some(sql) = asked(table, check, write, &keys) else { continue };
            let Ok(rows) = read(pool, sql).await else { break };
            let Some(row) = rows.first() else { continue };
            let cells = Cells::new(row, LOOKING);
            let (looked_at, refused) = (cells.big(0)?, cells.big(1)?);
            if refused > 0 {
                found.push(told(table, check, write, (looked_at, refused)));
            }
        }
    }
    Ok(found)
}

fn told(
    table: &SourceTable,
    check: &Check,
    write: &Write<'_>,
    (looked_at, refused): (i64, i64),
) -> RefusedRows {
    let others = check.columns.iter().filter(|column| **column != table.settings.status);
    RefusedRows {
        value: write.to.to_owned(),
        outcome: write.outcome,
        check: check.name.clone(),
        columns: others.cloned().collect(),
        looked_at,
        refused,
        triggers: check.triggers.clone(),
    }
}

async fn checks(pool: &PgPool, table: &SourceTable) -> Result<Vec<Check>, StoreError> {
    let mut sql = Sql::new(CHECKS);
    sql.bind(table.write.to_string());
    sql.bind(table.settings.status.clone());
    let found = texts(pool, sql).await?;
    found.iter().map(|text| parsed(text)).collect()
}

async fn stuck_keys(pool: &PgPool, table: &SourceTable) -> Result<Vec<String>, StoreError> {
    let key = Statements::of(table).key_text("t");
    let mut sql = Sql::new(format!("select {key} from "));
    let from = stuck_of(pool, table, &ClaimFilter::default(), &mut sql).await?;
    sql.push(&format!("{from} limit {ROWS}"));
    texts(pool, sql).await
}

/// Statuses that the mode writes.
pub(super) fn written_statuses(table: &SourceTable) -> Vec<&str> {
    writes(table).into_iter().map(|write| write.to).collect()
}

/// What the mode writes. One status may be written for several outcomes, with other columns.
fn writes(table: &SourceTable) -> Vec<Write<'_>> {
    let mut writes: Vec<Write<'_>> = Vec::new();
    let ends = ends(table.settings.mode);
    for map in &table.settings.map {
        let targets = [
            (Outcome::Succeeded, &map.succeeded),
            (Outcome::Failed, &map.failed),
            (Outcome::Retryable, &map.retryable),
            (Outcome::Retryable, &map.absent),
            (Outcome::Review, &map.review),
        ];
        let written = targets.into_iter().filter(|(outcome, _)| ends.contains(outcome));
        for (outcome, to) in written.filter_map(|(outcome, to)| Some((outcome, to.as_ref()?))) {
            let from = map.from.iter().map(|value| value.0.as_str()).filter(|from| *from != to.0);
            match writes.iter_mut().find(|write| write.outcome == outcome && write.to == to.0) {
                Some(write) => write.from.extend(from),
                None => writes.push(Write { outcome, to: &to.0, from: from.collect() }),
            }
        }
    }
    writes
}

/// How many of these rows are in a status from which it is written, and how many of those the
/// CHECK refuses; none where what a column will hold is not known.
fn asked(table: &SourceTable, check: &Check, write: &Write<'_>, keys: &[String]) -> Option<Sql> {
    let parts = Statements::of(table);
    let mut sql = Sql::new("select count(*), count(*) filter (where a.holds is false) from ");
    let (arrays, names) = parts.bind_keys(&mut sql, keys.iter().map(String::as_str));
    let from = sql.bind(write.from.iter().map(|from| (*from).to_owned()).collect::<Vec<String>>());
    let mut columns = Vec::new();
    for name in &check.columns {
        let value = write.after(table, name, &mut sql)?;
        columns.push(format!("{value} as {}", QuotedIdent::of_catalogue(name)));
    }
    sql.push(&format!(
        "{} w join unnest({}) as u({}) on {} \
         cross join lateral (select ({}) as holds from (select {}) r) a \
         where w.{}::text = any({from}::text[])",
        table.write,
        arrays.join(", "),
        names.join(", "),
        parts.is_key_of("w", true),
        check.holds,
        columns.join(", "),
        table.write_status.ident,
    ));
    Some(sql)
}

impl Write<'_> {
    /// What a column holds once the row is written; none where only the decision tells.
    fn after(&self, table: &SourceTable, name: &str, sql: &mut Sql) -> Option<String> {
        if name == table.settings.status {
            let place = sql.bind(self.to.to_owned());
            return Some(format!("{place}::text::{}", table.write_status.type_name));
        }
        let before = format!("w.{}", QuotedIdent::of_catalogue(name));
        let Some(template) = self.template(&table.settings.set, name) else { return Some(before) };
        let target = table.sets.get(name)?;
        let (change, text) = target.change(&self.foreseen(template)?);
        let place = sql.bind(text.unwrap_or_default());
        Some(new_value(target, change, &format!("{place}::text")))
    }

    /// What is written into a column with this status.
    fn template<'s>(&self, set: &'s SetSettings, column: &str) -> Option<&'s String> {
        let named = set.with(self.outcome).and_then(|columns| columns.get(column));
        named.or_else(|| set.always.get(column))
    }

    /// What a template comes to, where that does not depend on the row or the decision.
    fn foreseen(&self, template: &str) -> Option<SetValue> {
        if let Some(step) = step_of(template) {
            return Some(SetValue::Plus(step));
        }
        if template == "{now}" {
            return Some(SetValue::At(clock::now()));
        }
        let rendered = Template::parse(template).ok()?.render(|name| match name {
            "status" => Some(self.to),
            "outcome" => Some(self.outcome.as_str()),
            _decided => None,
        });
        rendered.ok().map(SetValue::Text)
    }
}
