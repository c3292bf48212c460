//! CHECKs over the status and other columns: which of them would refuse stuck rows as a run would
//! write them. Each is asked of a few real rows, and nothing is written.
//!
//! What is not known before a decision never makes a CHECK fail: where a value comes from the PSP,
//! the CHECK must be false both with a value in its place and with the column left as it is.

use serde::Deserialize;
use sqlx::postgres::PgPool;

use crate::clock;
use crate::model::reason::Outcome;
use crate::model::time::to_text;
use crate::store::effects::SetValue;
use crate::store::error::StoreError;
use crate::store::inspect::RefusedRows;
use crate::store::mapping::{MapSettings, SetSettings};
use crate::store::postgres::inspect::{LOOKING, parsed, read, stuck_of, texts};
use crate::store::postgres::rows::new_value;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::statements::Statements;
use crate::store::records::ClaimFilter;
use crate::store::source_table::{QuotedIdent, SourceTable, Target};
use crate::store::template::Template;

/// Stuck rows that CHECKs are asked of.
const ROWS: i64 = 20;

/// What stands for a text that only the PSP knows.
const STAND_IN: &str = "tieout";

/// CHECKs of the written table over its status and other columns, none of which the database
/// computes, with the triggers that may change a row before the CHECK sees it.
const CHECKS: &str = "\
select json_build_object(
    'name', k.conname,
    'holds', pg_get_expr(k.conbin, k.conrelid),
    'columns', (select json_agg(a.attname order by a.attnum) from pg_attribute a
        where a.attrelid = k.conrelid and a.attnum = any(k.conkey)),
    'triggers', (select coalesce(json_agg(t.tgname order by t.tgname), '[]') from pg_trigger t
        where t.tgrelid = k.conrelid and not t.tgisinternal and t.tgenabled <> 'D'
            and t.tgtype::integer & 19 = 19)
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

/// A status that a line of the mapping writes.
struct Write<'t> {
    map: &'t MapSettings,
    outcome: Outcome,
    to: &'t str,
}

/// A value that is written with a status, before anything was decided.
struct Foreseen {
    value: SetValue,
    /// Every run writes it; else what it is, and whether there is one, the PSP says.
    is_sure: bool,
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
    for check in &checks {
        for write in &writes {
            let is_it = |told: &RefusedRows| told.check == check.name && told.value == write.to;
            if found.iter().any(is_it) {
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

fn writes(table: &SourceTable) -> Vec<Write<'_>> {
    let mut writes = Vec::new();
    for map in &table.settings.map {
        let targets = [
            (Outcome::Succeeded, &map.succeeded),
            (Outcome::Failed, &map.failed),
            (Outcome::Retryable, &map.retryable),
            (Outcome::Retryable, &map.absent),
            (Outcome::Review, &map.review),
        ];
        let named = targets.into_iter().filter_map(|(outcome, to)| Some((outcome, to.as_ref()?)));
        writes.extend(named.map(|(outcome, to)| Write { map, outcome, to: &to.0 }));
    }
    writes
}

/// How many of these rows are in a status from which it is written, and how many of those the
/// CHECK refuses; none where a column's value is of a type that nothing can stand for.
fn asked(table: &SourceTable, check: &Check, write: &Write<'_>, keys: &[String]) -> Option<Sql> {
    let parts = Statements::of(table);
    let mut sql = Sql::new(
        "select count(*), count(*) filter (where a.holds is false and b.holds is false) from ",
    );
    let (arrays, names) = parts.bind_keys(&mut sql, keys.iter().map(String::as_str));
    let from = write.map.from.iter().map(|value| value.0.clone());
    let from = sql.bind(from.filter(|from| from != write.to).collect::<Vec<String>>());
    let most = columns(table, check, write, true, &mut sql)?;
    let least = columns(table, check, write, false, &mut sql)?;
    let holds = &check.holds;
    let of =
        |columns: &str| format!("lateral (select ({holds}) as holds from (select {columns}) r)");
    sql.push(&format!(
        "{} w join unnest({}) as u({}) on {} cross join {} a cross join {} b \
         where w.{}::text = any({from}::text[])",
        table.write,
        arrays.join(", "),
        names.join(", "),
        parts.is_key_of("w", true),
        of(&most),
        of(&least),
        table.write_status.ident,
    ));
    Some(sql)
}

/// The columns of a CHECK as they are once the row is written, with or without what is not sure.
fn columns(
    table: &SourceTable,
    check: &Check,
    write: &Write<'_>,
    has_unsure: bool,
    sql: &mut Sql,
) -> Option<String> {
    let mut columns = Vec::new();
    for name in &check.columns {
        let value = write.after(table, name, has_unsure, sql)?;
        columns.push(format!("{value} as {}", QuotedIdent::of_catalogue(name)));
    }
    Some(columns.join(", "))
}

impl Write<'_> {
    /// What a column holds once the row is written.
    fn after(
        &self,
        table: &SourceTable,
        name: &str,
        has_unsure: bool,
        sql: &mut Sql,
    ) -> Option<String> {
        if name == table.settings.status {
            let place = sql.bind(self.to.to_owned());
            return Some(format!("{place}::text::{}", table.write_status.type_name));
        }
        let before = format!("w.{}", QuotedIdent::of_catalogue(name));
        let Some(template) = self.template(&table.settings.set, name) else { return Some(before) };
        let target = table.sets.get(name)?;
        let Foreseen { value, is_sure } = self.foreseen(template, target)?;
        if !is_sure && !has_unsure {
            return Some(before);
        }
        let (change, text) = target.change(&value);
        let place = sql.bind(text.unwrap_or_default());
        Some(new_value(target, change, &format!("{place}::text")))
    }

    /// What is written into a column with this status.
    fn template<'s>(&self, set: &'s SetSettings, column: &str) -> Option<&'s String> {
        let by_outcome = match self.outcome {
            Outcome::Succeeded => Some(&set.succeeded),
            Outcome::Failed => Some(&set.failed),
            Outcome::Retryable => Some(&set.retryable),
            Outcome::Review => Some(&set.review),
            Outcome::Wait => None,
        };
        let named = by_outcome.and_then(|columns| columns.get(column));
        named.or_else(|| set.always.get(column))
    }

    /// What a template comes to; none where nothing of the column's type can stand for it.
    fn foreseen(&self, template: &str, target: &Target) -> Option<Foreseen> {
        let sure = |value| Some(Foreseen { value, is_sure: true });
        let unsure = |value| Some(Foreseen { value, is_sure: false });
        if let Some(step) = template.strip_prefix('+').and_then(|step| step.parse::<i64>().ok()) {
            return sure(SetValue::Plus(step));
        }
        let at = clock::now();
        match template {
            "{now}" => return sure(SetValue::At(at)),
            "{psp_time}" => return unsure(SetValue::AtIfNull(at)),
            "{psp_reference}" if target.is_text() => {
                return unsure(SetValue::TextIfNull(STAND_IN.to_owned()));
            }
            _other => {}
        }
        let now = to_text(at);
        let rendered = Template::parse(template).ok()?.render(|name| match name {
            "status" => Some(self.to),
            "outcome" => Some(self.outcome.as_str()),
            "now" => Some(now.as_str()),
            _decided => None,
        });
        match rendered {
            Ok(text) => sure(SetValue::Text(text)),
            Err(_unknown) if target.is_text() => unsure(SetValue::Text(STAND_IN.to_owned())),
            Err(_unknown) => None,
        }
    }
}
