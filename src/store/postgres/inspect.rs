//! What PostgreSQL shows of itself without being changed: every question in a short read-only
//! transaction with time-outs of its own.

use serde::Deserialize;
use sqlx::postgres::{PgPool, PgRow};

use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::inspect::{
    AHEAD_MAX, APPEND_ONLY, Ahead, Beside, CountedBy, Counterpart, ENDED_ROWS, FIRST_ROWS,
    IndexWanted, Inspect, LEFT_OUT_MAX, LeftOut, Link, NEWEST_ROWS, NamedRow, Passing, Rights,
    STATUS_ROWS, SeenTag, Server, Standing, Surveyed, Tally, Times, Tried, VALUES_MAX, ahead_of,
    chooses_by, filled, filled_or_null, index_columns, joined, left_out_of, lookups, may_tell,
    rows_looked_at, status_literals, told, told_apart, written_values,
};
use crate::store::mapping::FilterSettings;
use crate::store::postgres::claim::stuck_rows;
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::roles::RUN;
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::postgres::statements::Statements;
use crate::store::postgres::transactions::begin_with;
use crate::store::postgres::{PgStore, catalogue, foreseen, guards, migrate};
use crate::store::records::ClaimFilter;
use crate::store::source_table::{Column, QuotedIdent, SourceTable, TypeClass};
use crate::store::tellers::is_pointer;
use crate::store::template::Piece;

pub(super) const LOOKING: &str = "looking at the database";

/// Relations that a survey describes at most: no application has more.
const RELATIONS_MAX: i64 = 3_000;

/// Examples of a column's values.
const EXAMPLES: i64 = 20;

/// The relations below a written one that have the column of this name, with what touches it. Below
/// a view that is written through that is the table in its FROM, not the parents of its subqueries.
/// A view may call the column otherwise than its table: the rule of the view notes of each column
/// which one of what it reads it is.
const BASES: &str = "\
with recursive base(oid, kind, status) as (
    select c.oid, c.relkind, $2::text collate \"C\" from pg_class c
    where c.oid = $1::text::regclass
    union
    select k.oid, k.relkind, coalesce((
        select o.attname::text from pg_attribute v
        cross join regexp_matches(r.ev_action::text, ':resno ' || v.attnum
            || E' :resname (?:\\\\\\\\.|[^ \\\\\\\\])+ :ressortgroupref [0-9]+'
            || ' :resorigtbl ' || k.oid || ' :resorigcol ([0-9]+) ', 'g')
            with ordinality as e(m, at)
        join pg_attribute o on o.attrelid = k.oid and o.attnum = m[1]::int
        where v.attrelid = b.oid and v.attname = b.status
        order by e.at desc limit 1), b.status)
    from base b
    join pg_rewrite r on r.ev_class = b.oid and b.kind = 'v'
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
        and d.refclassid = 'pg_class'::regclass and d.refobjid <> b.oid
        and (pg_relation_is_updatable(b.oid, false) & 4 = 0 or d.refobjid = (
            select m[1]::oid from regexp_matches(r.ev_action::text, ':relid ([0-9]+)', 'g')
                with ordinality as e(m, at)
            where m[1]::oid <> b.oid order by e.at limit 1))
    join pg_class k on k.oid = d.refobjid and k.relkind in ('r', 'p', 'v'))
select json_build_object(
    'name', quote_ident(n.nspname) || '.' || quote_ident(c.relname),
    'kind', c.relkind,
    'status', b.status,
    'definition', case when c.relkind = 'v' then pg_get_viewdef(c.oid) end,
    'rows', case when c.relkind = 'p' then (
            select sum(l.reltuples) from pg_partition_tree(c.oid) t
            join pg_class l on l.oid = t.relid where t.isleaf and l.reltuples > 0)
        else nullif(c.reltuples, -1) end::bigint,
    'has_created', exists (select from pg_attribute x where x.attrelid = c.oid
        and x.attname = $3 and not x.attisdropped),
    'columns', (select json_agg(x.attname) from pg_attribute x where x.attrelid = c.oid
        and x.attnum > 0 and not x.attisdropped),
    'triggers', (select coalesce(json_agg(t.tgname order by t.tgname), '[]') from pg_trigger t
        where t.tgrelid = c.oid and not t.tgisinternal and t.tgenabled <> 'D'
            and t.tgtype::integer & 16 = 16),
    'unique', (select coalesce(json_agg(x.relname order by x.relname), '[]') from pg_index i
        join pg_class x on x.oid = i.indexrelid
        where i.indrelid = c.oid and i.indisunique and i.indisvalid
            and (a.attnum = any(i.indkey::int2[]) or exists (
                select from pg_depend d where d.classid = 'pg_class'::regclass
                    and d.objid = i.indexrelid and d.refclassid = 'pg_class'::regclass
                    and d.refobjid = c.oid and d.refobjsubid = a.attnum))
            and not exists (select from pg_index u where u.indrelid = c.oid and u.indisunique
                and u.indpred is null and u.indexprs is null
                and u.indkey::int2[] <@ i.indkey::int2[]
                and a.attnum <> all(u.indkey::int2[]))),
    'checks', (select coalesce(json_agg(json_build_object('name', k.name, 'holds', k.holds)
            order by k.name), '[]')
        from (select 'CHECK ' || k.conname as name, pg_get_expr(k.conbin, k.conrelid) as holds
            from pg_constraint k
            where k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum]
            union all
            select 'foreign key ' || k.conname,
                format('exists (select from %s r where r.%I = s.%I)', k.confrelid::regclass,
                    r.attname, a.attname)
            from pg_constraint k
            join pg_attribute r on r.attrelid = k.confrelid and r.attnum = k.confkey[1]
            where k.conrelid = c.oid and k.contype = 'f' and k.conkey = array[a.attnum]
                and has_column_privilege(k.confrelid, r.attnum, 'select')) k)
)::text
from base b
join pg_class c on c.oid = b.oid
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attname = b.status and a.attnum > 0
    and not a.attisdropped
order by c.relkind = 'v', c.oid <> $1::text::regclass, c.relname";

/// What this role may do that nobody who runs tieout needs, and whose tables they are.
const EXCESS: &str = "\
select c.relname::text, has_table_privilege(c.oid, 'update'),
    has_table_privilege(c.oid, 'delete'), has_table_privilege(c.oid, 'truncate'),
    pg_has_role(c.relowner, 'usage'),
    (select coalesce(json_agg(json_build_array(lower(a.privilege_type),
        case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end)),
        '[]')::text
        from aclexplode(c.relacl) a where a.grantee = 0 or pg_has_role(a.grantee, 'usage'))
from pg_class c
where c.relname like 'tieout\\_%' and c.relkind = 'r' and pg_table_is_visible(c.oid)
order by c.relname";

/// Triggers of tieout's tables that do not fire, PostgreSQL's own for foreign keys among them, and
/// those of its records that are gone: without them whoever may write a table changes what stands
/// there. They are whole from the schema on in which records can be pruned.
const UNGUARDED: &str = "\
select c.relname::text, t.tgname::text from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relname like 'tieout\\_%' and c.relkind = 'r' and pg_table_is_visible(c.oid)
    and t.tgenabled not in ('O', 'A')
union all
select c.relname::text, c.relname || e.what from pg_class c
cross join unnest(array['_append_only', '_no_delete', '_no_truncate']) as e(what)
where c.relname = any($1::text[]) and c.relkind = 'r' and pg_table_is_visible(c.oid)
    and to_regclass('tieout_prunes') is not null
    and not exists (select from pg_trigger t where t.tgrelid = c.oid
        and t.tgname = c.relname || e.what)
order by 1, 2";

/// Which of these rights on tieout's tables this role lacks: by table, right and column, none
/// meaning the table. Tables that are not there are left out.
const LACKS: &str = "\
select distinct u.place from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
    as u(name, may, col, place)
join pg_class c on c.relname = u.name and c.relkind = 'r' and pg_table_is_visible(c.oid)
where not (has_table_privilege(c.oid, u.may) or coalesce((
    select has_column_privilege(c.oid, a.attnum, u.may) from pg_attribute a
    where a.attrelid = c.oid and a.attname = u.col), false))
order by u.place";

/// Roles for looking and for people, whatever their prefix, whose rights this role has.
const LOOKS_BY: &str = "\
select r.rolname::text from pg_roles r
where r.rolname ~ '_(read|people)$' and pg_has_role(current_user, r.oid, 'usage')
and exists (select from pg_class c where c.relname = 'tieout_journal' and c.relkind = 'r'
    and pg_table_is_visible(c.oid) and has_table_privilege(r.oid, c.oid, 'select'))
order by 1";

/// Roles for runs, whatever their prefix, that `db roles` made here: for tables that this role
/// sees, or for those of a schema that it may not look into.
const RUNS_BY: &str = "\
select r.rolname::text from pg_roles r
where r.rolname ~ '_run$' and not r.rolcanlogin and not r.rolsuper
and exists (select from pg_class c where c.relname = 'tieout_journal' and c.relkind = 'r'
    and (pg_table_is_visible(c.oid)
        or c.relnamespace = (select n.oid from pg_namespace n where n.nspname = $1::text))
    and has_table_privilege(r.oid, c.oid, 'insert'))
order by r.rolname <> 'tieout_run', 1";

/// Where this session fires no trigger, as a replica's applier does: the statements that undo it,
/// and a blank where none of a role's or a database's settings say so.
const SILENCED: &str = "\
select coalesce(case
    when s.setrole <> 0 and s.setdatabase <> 0
        then format('alter role %I in database %I', r.rolname, d.datname)
    when s.setrole <> 0 then format('alter role %I', r.rolname)
    when s.setdatabase <> 0 then format('alter database %I', d.datname)
    when s.setdatabase = 0 then 'alter role all' end
    || ' reset session_replication_role;', '')
from (select) as one
left join pg_db_role_setting s on 'session_replication_role=replica' = any(s.setconfig)
    and s.setrole in (0, (select oid from pg_roles where rolname = session_user))
    and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
left join pg_roles r on r.oid = s.setrole
left join pg_database d on d.oid = s.setdatabase
where current_setting('session_replication_role') = 'replica' order by 1";

/// Tables and views that this role may read, with their keys, parents, bases and checks; and those
/// that it might, but for their schema.
const SURVEY: &str = "\
select json_build_object(
    'schema', n.nspname, 'name', c.relname, 'is_visible', pg_table_is_visible(c.oid),
    'rows', nullif(c.reltuples, -1)::bigint,
    'primary_key', (select coalesce(json_agg(a.attname order by k.at), '[]') from pg_index i
        cross join unnest(i.indkey::int2[]) with ordinality k(attnum, at)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
        where i.indrelid = c.oid and i.indisprimary),
    'parents', (select coalesce(json_agg(json_build_array(a.attname, p.relname)), '[]')
        from pg_constraint f
        join pg_attribute a on a.attrelid = c.oid and a.attnum = f.conkey[1]
        join pg_class p on p.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f' and array_length(f.conkey, 1) = 1),
    'bases', (select coalesce(json_agg(distinct d.refobjid::regclass::text), '[]')
        from pg_rewrite r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> c.oid
        where r.ev_class = c.oid and c.relkind = 'v'),
    'checks', (select coalesce(json_agg(pg_get_expr(k.conbin, k.conrelid)), '[]')
        from pg_constraint k where k.conrelid = c.oid and k.contype = 'c'),
    'closed', case when not has_schema_privilege(n.oid, 'usage')
        then format('grant usage on schema %I to %I;', n.nspname, current_user) end
)::text
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v') and not c.relispartition
    and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg\\_%'
    and not (c.relname like 'tieout\\_%' and c.relkind = 'r')
    and (has_table_privilege(c.oid, 'select') or has_any_column_privilege(c.oid, 'select'))
order by n.nspname, c.relname
limit ";

#[derive(Debug, Deserialize)]
struct Base {
    name: String,
    kind: String,
    /// What it calls the status.
    status: String,
    /// The text of a view.
    definition: Option<String>,
    rows: Option<i64>,
    has_created: bool,
    columns: Vec<String>,
    triggers: Vec<String>,
    unique: Vec<String>,
    checks: Vec<Check>,
}

#[derive(Debug, Deserialize)]
struct Check {
    name: String,
    holds: String,
}

#[derive(Debug, Deserialize)]
struct Found {
    schema: String,
    name: String,
    is_visible: bool,
    rows: Option<i64>,
    primary_key: Vec<String>,
    parents: Vec<(String, String)>,
    bases: Vec<String>,
    checks: Vec<String>,
    closed: Option<String>,
}

/// How a question is answered.
#[derive(Clone, Copy)]
enum Look {
    /// As the planner likes.
    Freely,
    /// Where no table is walked that an index leads into.
    ByIndex,
    /// Where a plan says of conditions that contradict each other that no row can meet them.
    ByProof,
}

impl Look {
    /// Begins a transaction that can write nothing and ends soon; all at once, so that it travels
    /// but once.
    fn begin(self) -> &'static str {
        match self {
            Self::Freely => {
                "begin read only; set local statement_timeout = '5s'; \
                 set local lock_timeout = '1s'"
            }
            Self::ByIndex => {
                "begin read only; set local statement_timeout = '5s'; \
                 set local lock_timeout = '1s'; set local enable_seqscan = off"
            }
            Self::ByProof => {
                "begin read only; set local statement_timeout = '5s'; \
                 set local lock_timeout = '1s'; set local constraint_exclusion = on"
            }
        }
    }
}

async fn ask(pool: &PgPool, look: Look, sql: Sql) -> Result<Vec<PgRow>, StoreError> {
    let mut tx = begin_with(pool, look.begin()).await.map_err(failed(LOOKING))?;
    let rows = sql.fetch(&mut tx).await.map_err(failed(LOOKING));
    tx.rollback().await.map_err(failed(LOOKING))?;
    rows
}

pub(super) async fn read(pool: &PgPool, sql: Sql) -> Result<Vec<PgRow>, StoreError> {
    ask(pool, Look::Freely, sql).await
}

pub(super) async fn texts(pool: &PgPool, sql: Sql) -> Result<Vec<String>, StoreError> {
    texts_by(pool, Look::Freely, sql).await
}

async fn texts_by(pool: &PgPool, look: Look, sql: Sql) -> Result<Vec<String>, StoreError> {
    let rows = ask(pool, look, sql).await?;
    rows.iter().map(|row| Cells::new(row, LOOKING).text(0)).collect()
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| unexpected(LOOKING, error.to_string()))
}

async fn bases(pool: &PgPool, table: &SourceTable) -> Result<Vec<Base>, StoreError> {
    bases_of(pool, table, &table.write).await
}

async fn bases_of(
    pool: &PgPool,
    table: &SourceTable,
    relation: &QuotedIdent,
) -> Result<Vec<Base>, StoreError> {
    let mut sql = Sql::new(BASES);
    sql.bind(relation.to_string());
    sql.bind(table.settings.status.clone());
    sql.bind(table.settings.created.clone());
    let found = texts(pool, sql).await?;
    found.iter().map(|text| parsed(text)).collect()
}

/// Rights of the run's role, as `db roles` grants them, that this role lacks, and how many there
/// are.
async fn lacks(pool: &PgPool) -> Result<(Vec<String>, usize), StoreError> {
    let mut needed: Vec<(&str, &str)> = Vec::new();
    for (table, rights) in RUN {
        needed.push((*table, "select"));
        needed.extend(rights.iter().map(|right| (*table, *right)));
    }
    let (mut names, mut may, mut columns, mut places) = (vec![], vec![], vec![], vec![]);
    for (place, (table, right)) in needed.iter().enumerate() {
        let (word, of) = right.split_once(" (").unwrap_or((*right, ""));
        for column in of.trim_end_matches(')').split(", ") {
            names.push((*table).to_owned());
            may.push(word.to_owned());
            columns.push(column.to_owned());
            places.push(i64::try_from(place).unwrap_or_default());
        }
    }
    let mut sql = Sql::new(LACKS);
    sql.bind(names);
    sql.bind(may);
    sql.bind(columns);
    sql.bind(places);
    let mut lacks = Vec::new();
    for row in &read(pool, sql).await? {
        let place = usize::try_from(Cells::new(row, LOOKING).big(0)?).unwrap_or(usize::MAX);
        if let Some((table, right)) = needed.get(place) {
            lacks.push(format!("{right} on {table}"));
        }
    }
    Ok((lacks, needed.len()))
}

/// Mapped values that a CHECK on the status alone refuses, a foreign key to the table of its words,
/// or the type itself.
async fn barred(
    pool: &PgPool,
    table: &SourceTable,
    bases: &[Base],
) -> Result<Vec<(String, String)>, StoreError> {
    let type_name = &table.write_status.type_name;
    let mut barred = Vec::new();
    let tables = bases.iter().filter(|base| base.kind != "v");
    for (base, check) in tables.flat_map(|base| base.checks.iter().map(move |it| (base, it))) {
        let status = QuotedIdent::of_catalogue(&base.status);
        let mut sql = Sql::new(format!(
            "select s.tieout_v from (select u.tieout_v, cast(u.tieout_v as {type_name}) \
             as {status} from unnest("
        ));
        let values = sql.bind(written_values(table));
        sql.push(&format!("{values}::text[]) as u(tieout_v)) s where not ({})", check.holds));
        let refused = texts(pool, sql).await?;
        barred.extend(refused.into_iter().map(|value| (value, check.name.clone())));
    }
    Ok(barred)
}

/// Whether an index leads to the stuck rows, as the planner sees it where it may not walk.
async fn is_served(pool: &PgPool, table: &SourceTable) -> Result<bool, StoreError> {
    if table.status_indexed {
        return Ok(true);
    }
    let before = crate::store::inspect::an_hour_ago();
    let filter = ClaimFilter { stuck_before: Some(before), ..ClaimFilter::default() };
    let mut sql = Sql::new("explain (costs off) ");
    let stuck = stuck_rows(table, &filter, &mut sql);
    sql.push(&stuck);
    goes_by_status(pool, table, sql).await
}

/// What the status is called in what is read, and below it where that is a view.
async fn status_names(pool: &PgPool, table: &SourceTable) -> Result<Vec<String>, StoreError> {
    let mut names = vec![table.settings.status.clone()];
    if table.read_is_view {
        let below = bases_of(pool, table, &table.read).await?;
        names.extend(below.into_iter().map(|base| base.status));
    }
    Ok(names)
}

/// Whether a statement that is explained goes by an index of the status where it may not walk.
async fn goes_by_status(
    pool: &PgPool,
    table: &SourceTable,
    explained: Sql,
) -> Result<bool, StoreError> {
    let plan = texts_by(pool, Look::ByIndex, explained).await?;
    let indexes: Vec<String> = plan.iter().filter_map(|step| index_of(step)).collect();
    let mut sql = Sql::new(
        "select x.relname::text from pg_class x join pg_index i on i.indexrelid = x.oid \
         left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0] \
         where x.relname = any(",
    );
    let names = sql.bind(indexes);
    let statuses = sql.bind(status_names(pool, table).await?);
    sql.push(&format!(
        "{names}::text[]) and exists (select from unnest({statuses}::text[]) as u(status) \
         where a.attname = u.status \
         or position(quote_ident(u.status) in pg_get_expr(i.indpred, i.indrelid)) > 0)"
    ));
    Ok(!texts(pool, sql).await?.is_empty())
}

/// The table and the conditions of its stuck rows: by an index where one leads to them, else of the
/// first rows.
pub(super) async fn stuck_of(
    pool: &PgPool,
    table: &SourceTable,
    filter: &ClaimFilter,
    sql: &mut Sql,
) -> Result<String, StoreError> {
    let parts = Statements::of(table);
    let columns: Vec<String> = table.cells.iter().map(|cell| cell.ident.to_string()).collect();
    let rows = match is_served(pool, table).await? {
        true => format!("{} t", table.read),
        false => {
            let columns = columns.join(", ");
            format!("(select {columns} from {} limit {FIRST_ROWS}) t", table.read)
        }
    };
    let mut conditions =
        vec![parts.is_processing("t", sql), parts.filter("t", sql), parts.has_key("t")];
    conditions.extend(parts.narrow("t", filter, sql));
    Ok(format!("{rows} where {}", conditions.join(" and ")))
}

/// These columns of the first rows and, where an index leads there, of the last ones.
fn ends(table: &SourceTable, columns: &str, joined_by: &str) -> String {
    let read = &table.read;
    let first = format!("(select {columns} from {read} t limit {STATUS_ROWS})");
    match table.sole_key().filter(|_| table.write_is_read) {
        Some(key) => format!(
            "{first} {joined_by} (select {columns} from {read} t order by t.{} desc \
             limit {STATUS_ROWS})",
            key.ident
        ),
        None => first,
    }
}

/// Stuck rows as each condition of `where` sees them: by an index where one leads to them, whatever
/// `where` says, else of the rows at both ends.
async fn tried(pool: &PgPool, table: &SourceTable) -> Result<Vec<Tried>, StoreError> {
    let parts = Statements::of(table);
    let read = &table.read;
    let mut explained = Sql::new("explain (costs off) select 1 ");
    let stuck = parts.is_processing("t", &mut explained);
    explained.push(&format!("from {read} t where {stuck}"));
    let is_led = (table.status_indexed && table.write_is_read)
        || goes_by_status(pool, table, explained).await?;
    let mut sql = Sql::new("select ");
    // The key keeps rows apart that are alike in all else.
    let mut columns = vec![format!("{} as k", parts.key_text("t"))];
    let mut names = Vec::new();
    for (place, filter) in table.settings.filter.iter().enumerate() {
        let passes = parts.condition("t", filter, &mut sql).unwrap_or_else(|| "true".to_owned());
        let cell = table.cell(&filter.column).and_then(|index| table.cells.get(index));
        let value = text_of(cell.filter(|_| filter.is.is_none()));
        columns.push(format!("({passes}) as c{place}, {value} as v{place}"));
        names.push(format!("s.c{place}, s.v{place}"));
    }
    let stuck = parts.is_processing("t", &mut sql);
    columns.push(format!("({stuck}) as p"));
    let columns = columns.join(", ");
    let rows = match is_led {
        true => format!("select {columns} from {read} t where {stuck} limit {LEFT_OUT_MAX}"),
        false => ends(table, &columns, "union"),
    };
    let names = names.join(", ");
    sql.push(&format!("{names} from ({rows}) s where s.p limit {LEFT_OUT_MAX}"));
    let rows = ask(pool, if is_led { Look::ByIndex } else { Look::Freely }, sql).await?;
    let tried = rows.iter().map(|row| {
        let cells = Cells::new(row, LOOKING);
        let of = |place: usize| {
            let passes = cells.maybe_flag(place.saturating_mul(2))?.unwrap_or(false);
            Ok((passes, cells.maybe_text(place.saturating_mul(2).saturating_add(1))?))
        };
        (0..table.settings.filter.len()).map(of).collect::<Result<Tried, StoreError>>()
    });
    tried.collect()
}

/// Columns that lead an index of what is read; of a view nothing is known.
async fn indexed(pool: &PgPool, table: &SourceTable) -> Result<Vec<String>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(LOOKING))?;
    let name = table.read.to_string();
    let described = catalogue::described(&mut connection, &[&name]).await?;
    let tables = described.into_iter().filter(|(_, relation)| !relation.is_view);
    Ok(tables.flat_map(|(_, relation)| relation.indexed).collect())
}

/// Whether any row passes a condition: by an index of its column, where that serves it, else of the
/// rows at both ends.
async fn passing(
    pool: &PgPool,
    table: &SourceTable,
    filter: &FilterSettings,
    indexed: &[String],
) -> Result<Passing, StoreError> {
    let mut sql = Sql::new("select ");
    let condition = Statements::of(table).condition("t", filter, &mut sql);
    let Some(passes) = condition else { return Ok(Passing::Rows) };
    let read = &table.read;
    let is_led = filter.not_in.is_none() && indexed.contains(&filter.column);
    let planned = if is_led { Look::ByIndex } else { Look::Freely };
    sql.push(&match is_led {
        true => format!("exists (select from {read} t where {passes}), true"),
        false => format!(
            "exists (select from ({}) s where s.p), \
             (select count(*) from (select from {read} t limit {STATUS_ROWS}) f) < {STATUS_ROWS}",
            ends(table, &format!("({passes}) as p"), "union all")
        ),
    });
    let rows = ask(pool, planned, sql).await?;
    let row = rows.first().ok_or_else(|| unexpected(LOOKING, "no answer"))?;
    let cells = Cells::new(row, LOOKING);
    Ok(match (cells.flag(0)?, cells.flag(1)?) {
        (true, _) => Passing::Rows,
        (false, true) => Passing::NoRow,
        (false, false) => Passing::NoneSeen,
    })
}

fn created_of(table: &SourceTable) -> Option<&Column> {
    table.cells.get(table.layout.created.0)
}

fn text_of(column: Option<&Column>) -> String {
    column.map_or("null::text".to_owned(), |column| format!("t.{}::text", column.ident))
}

/// The index that a step of a plan uses.
fn index_of(step: &str) -> Option<String> {
    let after = ["Index Scan using ", "Index Only Scan using ", "Bitmap Index Scan on "]
        .iter()
        .find_map(|words| step.split_once(words))?
        .1;
    let name = match after.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => after.split(' ').next(),
    };
    name.map(str::to_owned)
}

fn index_wanted(table: &SourceTable, bases: &[Base]) -> Option<IndexWanted> {
    let base = bases.iter().find(|base| base.kind != "v")?;
    let status = QuotedIdent::of_catalogue(&base.status);
    let created = table.cells.get(table.layout.created.0).filter(|_| base.has_created);
    let column = created.map_or(&status, |column| &column.ident);
    let condition = format!(" where {status} {}", status_literals(table));
    let create = create_index(&base.name, base.kind == "p", &column.to_string(), &condition);
    Some(IndexWanted { table: base.name.clone(), create })
}

/// The statement that makes an index while the table is written. An index of a partitioned table
/// cannot be made concurrently; those of its parts can, and then it takes them over.
fn create_index(table: &str, is_parted: bool, column: &str, condition: &str) -> String {
    let of = format!("({column}){condition};");
    if !is_parted {
        return format!("create index concurrently on {table} {of}");
    }
    let name = format!("tieout_{}", crate::store::tellers::plain(column));
    let index = match table.split_once('.') {
        Some((schema, _)) => format!("{schema}.{name}"),
        None => name.clone(),
    };
    format!(
        "create index {name} on only {table} {of} for each partition P: create index concurrently \
         P_{name} on P {of} alter index {index} attach partition P_{name}; (a plain create index \
         on {table} stops its writes while it runs)"
    )
}

/// Values of the status: those that the catalogue or an index knows whole, else what statistics
/// and the first rows show.
async fn unmapped(pool: &PgPool, table: &SourceTable) -> Result<Vec<String>, StoreError> {
    let known = table.known_values();
    let status = &table.write_status;
    if table.knows_all_labels() || table.status_indexed {
        let mut connection = pool.acquire().await.map_err(failed(LOOKING))?;
        return catalogue::unmapped_statuses(&mut connection, table).await;
    }
    let mut sql = Sql::new(format!(
        "select distinct s.v from ({}) s \
         where s.v is not null union select unnest(m.most_common_vals::text::{}[])::text \
         from pg_stats m where format('%I.%I', m.schemaname, m.tablename) = ",
        catalogue::both_ends(&status.ident, &table.write, table.write_key.first(), FIRST_ROWS),
        // As the column's own, or booleans would be told as letters and char(n) with its padding.
        status.type_name
    ));
    // The catalogue spells names as quoting needs it; ours are always quoted.
    let name = sql.bind(table.write.to_string());
    sql.push(&format!(
        "(select format('%I.%I', n.nspname, c.relname) from pg_class c \
        join pg_namespace n on n.oid = c.relnamespace where c.oid = {name}::text::regclass) \
        and m.attname = "
    ));
    let column = sql.bind(table.settings.status.clone());
    sql.push(&format!("{column} limit {VALUES_MAX}"));
    let seen = texts(pool, sql).await?;
    Ok(seen.into_iter().filter(|value| !known.contains(value)).collect())
}

async fn lacks_status(pool: &PgPool, table: &SourceTable) -> Result<bool, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(LOOKING))?;
    catalogue::lacks_status(&mut connection, table).await
}

/// The column that leads the key of a table, where an index leads with it.
fn newest_first(of: &Surveyed) -> Option<&Column> {
    let key = of.primary_key.first().filter(|_| !of.relation.is_view)?;
    of.relation.column(key).filter(|column| of.relation.indexed.contains(&column.name))
}

/// Joined values of these cells in the first rows.
async fn found_values(
    pool: &PgPool,
    table: &SourceTable,
    at: &[usize],
) -> Result<Vec<Vec<Option<String>>>, StoreError> {
    let columns: Vec<&Column> = table.cells_at(at).collect();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<String> = columns.iter().map(|c| format!("t.{}::text", c.ident)).collect();
    let names: Vec<String> = (0..columns.len()).map(|at| format!("v{at}")).collect();
    let mut sql = Sql::new("");
    let belongs = Statements::of(table).filter("t", &mut sql);
    sql.push(&format!(
        "select distinct {} from (select {}, {belongs} from {} t limit {FIRST_ROWS}) \
         s({}, belongs) where s.belongs limit {VALUES_MAX}",
        names.join(", "),
        texts.join(", "),
        table.read,
        names.join(", ")
    ));
    let rows = read(pool, sql).await?;
    let mut values = Vec::new();
    for row in &rows {
        let cells = Cells::new(row, LOOKING);
        let parts: Result<Vec<Option<String>>, StoreError> =
            (0..columns.len()).map(|at| cells.maybe_text(at)).collect();
        values.push(parts?);
    }
    values.sort();
    Ok(values)
}

/// Columns that may tell accounts or kinds apart, where the mapping names one for the whole table,
/// with their values.
async fn tell(
    pool: &PgPool,
    table: &SourceTable,
) -> Result<Vec<(String, Vec<String>)>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed(LOOKING))?;
    let name = table.read.to_string();
    let described = catalogue::described(&mut connection, &[&name]).await?;
    drop(connection);
    let mut found = Vec::new();
    let columns = described.iter().flat_map(|(_, relation)| may_tell(table, relation));
    for column in columns {
        let mut sql = Sql::new("");
        let belongs = Statements::of(table).filter("t", &mut sql);
        let most = rows_looked_at(column);
        let value = match is_pointer(&column.name) {
            true => filled(&format!("t.{}", column.ident)),
            false => format!("t.{}::text", column.ident),
        };
        let of = |order: &str| {
            format!("(select {value}, {belongs} from {} t{order} limit {most})", table.read)
        };
        let mut rows = of("");
        if let Some(key) = table.write_key.first().filter(|_| table.write_is_read) {
            rows.push_str(&format!(
                " union all {}",
                of(&format!(" order by t.{} desc", key.ident))
            ));
        }
        sql.push(&format!(
            "select distinct s.v from ({rows}) s(v, belongs) where s.belongs and s.v is not null \
             order by 1 limit {VALUES_MAX}"
        ));
        found.push((column.name.clone(), texts(pool, sql).await?));
    }
    Ok(found)
}

/// Of the newest rows of what is written a few that are over: is each in what is read?
fn newest_ended(table: &SourceTable, ended: &[String]) -> Sql {
    let status = &table.write_status.ident;
    let mut columns: Vec<String> =
        table.write_key.iter().map(|column| format!("n.{}", column.ident)).collect();
    columns.push(format!("n.{status}"));
    let newest = table.sole_key().map(|key| format!(" order by n.{} desc", key.ident));
    let pairs = table.cells_at(&table.layout.key).zip(&table.write_key);
    let same: Vec<String> = pairs
        .map(|(read, write)| {
            format!("t.{} = w.{}::text::{}", read.ident, write.ident, read.type_name)
        })
        .collect();
    // OFFSET 0 keeps it a look-up by key for each row.
    let mut sql = Sql::new(format!(
        "select exists (select from {} t where {} offset 0) \
         from (select {} from {} n{} limit {NEWEST_ROWS}) w where w.{status}::text = any(",
        table.read,
        same.join(" and "),
        columns.join(", "),
        table.write,
        newest.unwrap_or_default(),
    ));
    let ended = sql.bind(ended.to_vec());
    sql.push(&format!("{ended}::text[]) limit {ENDED_ROWS}"));
    sql
}

/// Whether a view that is read and written shows no row of a status that a run writes into it, or
/// none of any row that is over. Its own text says so: the planner proves by it, of a view that
/// chooses by the status, that no row can be there, and not one row is looked at.
async fn hides_once_written(
    pool: &PgPool,
    table: &SourceTable,
    ended: &[String],
) -> Result<bool, StoreError> {
    let bases = bases(pool, table).await?;
    let names: Vec<&String> = bases.iter().map(|base| &base.status).collect();
    let mut texts_of = bases.iter().filter_map(|base| base.definition.as_ref());
    if !texts_of.any(|text| names.iter().any(|name| chooses_by(text, name))) {
        return Ok(false);
    }
    let mut sql = Sql::new("select quote_literal(u.value) from unnest(");
    let values = sql.bind(ended.to_vec());
    sql.push(&format!("{values}::text[]) with ordinality as u(value, at) order by u.at"));
    let literals = texts(pool, sql).await?;
    let mut hidden: Vec<&String> = Vec::new();
    for (value, literal) in ended.iter().zip(&literals) {
        let (read, status) = (&table.read, &table.write_status.ident);
        // Of a parameter the planner does not know the enum's label. The server quoted the literal.
        let sql = format!("explain (costs off) select from {read} t where t.{status} = {literal}");
        let plan = texts_by(pool, Look::ByProof, Sql::new(sql)).await?;
        if plan.get(1).is_some_and(|step| step.trim() == "One-Time Filter: false") {
            hidden.push(value);
        }
    }
    let written = foreseen::written_statuses(table);
    let is_written = |value: &&String| written.contains(&value.as_str());
    Ok(hidden.len() == ended.len() || hidden.iter().any(is_written))
}

/// Whether what is read shows a row that is stuck or on its way, and one that is over.
fn shows(table: &SourceTable, ended: Vec<String>) -> Sql {
    let parts = Statements::of(table);
    let mut sql = Sql::new("select ");
    let open = parts.is_processing("t", &mut sql);
    let over = parts.has_status("t", ended, &mut sql);
    let read = &table.read;
    sql.push(&format!(
        "exists (select from {read} t where {open}), exists (select from {read} t where {over})"
    ));
    sql
}

impl Inspect for PgStore {
    async fn server(&self) -> Result<Server, StoreError> {
        let sql = Sql::new(
            "select current_setting('server_version'), \
             coalesce((select s.version from pg_stat_ssl s where s.pid = pg_backend_pid() \
             and s.ssl), ''), \
             inet_server_addr() is null or inet_server_addr() = inet_client_addr(), \
             (select coalesce(json_agg(quote_ident(n.nspname) order by n.nspname), '[]')::text \
             from pg_class c join pg_namespace n on n.oid = c.relnamespace \
             where c.relname = 'tieout_migrations' and c.relkind = 'r' \
             and not pg_table_is_visible(c.oid))",
        );
        let rows = read(&self.pool, sql).await?;
        let row = rows.first().ok_or_else(|| unexpected(LOOKING, "no answer"))?;
        let cells = Cells::new(row, LOOKING);
        let version = cells.text(0)?;
        let version = version.split(' ').next().unwrap_or_default().to_owned();
        let link = match (cells.text(1)?, cells.flag(2)?) {
            (tls, _) if !tls.is_empty() => Link::Tls(tls),
            (_, true) => Link::Local,
            (_, false) => Link::Plain,
        };
        let product = format!("PostgreSQL {version}");
        Ok(Server { product, link, elsewhere: parsed(&cells.text(3)?)? })
    }

    async fn rights(&self) -> Result<Rights, StoreError> {
        let sql = Sql::new(
            "select current_user::text, \
             (select r.rolsuper from pg_roles r where r.rolname = current_user)",
        );
        let rows = read(&self.pool, sql).await?;
        let row = rows.first().ok_or_else(|| unexpected(LOOKING, "no answer"))?;
        let cells = Cells::new(row, LOOKING);
        let mut rights = Rights {
            role: Some(cells.text(0)?),
            is_superuser: cells.maybe_flag(1)? == Some(true),
            ..Rights::default()
        };
        for row in &read(&self.pool, Sql::new(EXCESS)).await? {
            let cells = Cells::new(row, LOOKING);
            let table = cells.text(0)?;
            let guarded = APPEND_ONLY.contains(&table.as_str());
            let given: Vec<(String, String)> = parsed(&cells.text(5)?)?;
            // An alert that is resolved is forgotten.
            let forgets = table == "tieout_alerts";
            for (right, at, is_excess) in
                [("update", 1, guarded), ("delete", 2, !forgets), ("truncate", 3, true)]
            {
                if is_excess && cells.flag(at)? {
                    let right_on = format!("{right} on {table}");
                    let by = given.iter().filter(|(given, _)| given == right);
                    for (_, role) in by {
                        let of_role = rights.excess_by.entry(role.clone()).or_default();
                        of_role.push(right_on.clone());
                    }
                    rights.excess.push(right_on);
                }
            }
            rights.owns_journal |= table == "tieout_journal" && cells.flag(4)?;
        }
        let mut sql = Sql::new(UNGUARDED);
        sql.bind(APPEND_ONLY.map(str::to_owned).to_vec());
        for row in &read(&self.pool, sql).await? {
            let cells = Cells::new(row, LOOKING);
            rights.unguarded.push((cells.text(0)?, cells.text(1)?));
        }
        guards::look(&self.pool, &mut rights).await?;
        rights.silenced = texts(&self.pool, Sql::new(SILENCED)).await?;
        (rights.lacks, rights.needs) = lacks(&self.pool).await?;
        rights.looks_by = texts(&self.pool, Sql::new(LOOKS_BY)).await?;
        let closed = migrate::closed(&self.pool).await?;
        let mut sql = Sql::new(RUNS_BY);
        sql.bind(closed.as_ref().map_or(String::new(), |schema| schema.name.clone()));
        rights.runs_by = texts(&self.pool, sql).await?;
        // Of tables that are not seen no other right is looked at.
        if let Some(schema) = closed {
            rights.lacks = vec![format!("usage on schema {}", schema.quoted)];
        }
        Ok(rights)
    }

    async fn sampled(&self, table: &SourceTable, cell: usize) -> Result<Vec<String>, StoreError> {
        let Some(column) = table.cells.get(cell) else { return Ok(Vec::new()) };
        let sql = format!(
            "select s.v from (select t.{}::text as v from {} t limit 1000) s \
             where s.v is not null limit {EXAMPLES}",
            column.ident, table.read
        );
        texts(&self.pool, Sql::new(sql)).await
    }

    async fn barred(&self, table: &SourceTable) -> Result<Vec<(String, String)>, StoreError> {
        let bases = bases(&self.pool, table).await?;
        barred(&self.pool, table, &bases).await
    }

    async fn standing(&self, table: &SourceTable) -> Result<Standing, StoreError> {
        let pool = &self.pool;
        let bases = bases(pool, table).await?;
        let mut standing = Standing::default();
        let written = bases.iter().find(|base| base.kind != "v");
        standing.rows = written.and_then(|base| base.rows);
        for base in &bases {
            let name = |item: &String| (base.name.clone(), item.clone());
            standing.triggers.extend(base.triggers.iter().map(name));
            standing.unique.extend(base.unique.iter().map(name));
        }
        let untold = &mut standing.untold;
        let refused = barred(pool, table, &bases).await;
        standing.barred = told(untold, "CHECK constraints", refused).unwrap_or_default();
        // A foresight: what it cannot tell, a run meets and tells.
        standing.refused_rows = foreseen::refused_rows(pool, table).await.unwrap_or_default();
        let served = is_served(pool, table).await;
        let is_served = told(untold, "the way to stuck rows", served).unwrap_or(true);
        standing.index_wanted = (!is_served).then(|| index_wanted(table, &bases)).flatten();
        if let Some(base) = written {
            let create = |column: &str| create_index(&base.name, base.kind == "p", column, "");
            standing.lookups = lookups(table, create);
            for (column, statement) in &mut standing.lookups {
                // What only the view has stands in no index of the table.
                let mut columns = index_columns(table, column).into_iter();
                if !columns.all(|column| base.columns.iter().any(|known| known == column)) {
                    *statement = None;
                }
            }
        }
        let values = unmapped(pool, table).await;
        standing.unmapped = told(untold, "status values", values).unwrap_or_default();
        let lacking = lacks_status(pool, table).await;
        standing.lacks_status = told(untold, "rows without a status", lacking).unwrap_or_default();
        let values = found_values(pool, table, &table.layout.account).await;
        let found = told(untold, "account values", values).unwrap_or_default();
        standing.accounts = found.iter().map(|parts| joined(parts)).collect();
        standing.accounts.sort();
        let values = found_values(pool, table, table.layout.kind.as_slice()).await;
        let found = told(untold, "kind values", values).unwrap_or_default();
        standing.kind_values = found.into_iter().flatten().collect();
        let values = tell(pool, table).await;
        let found = told(untold, "other PSPs", values).unwrap_or_default();
        told_apart(table, found, &mut standing);
        Ok(standing)
    }

    async fn tags(
        &self,
        table: &SourceTable,
        account: &str,
        most: i64,
    ) -> Result<Vec<SeenTag>, StoreError> {
        let Some(template) = table.tag_template(account) else { return Ok(Vec::new()) };
        let mut sql = Sql::new("select ");
        let mut parts = Vec::new();
        for piece in template.pieces() {
            parts.push(match piece {
                Piece::Literal(text) => format!("{}::text", sql.bind(text.to_owned())),
                Piece::Column(name) => match table.cell(name).and_then(|i| table.cells.get(i)) {
                    Some(column) => format!("t.{}::text", column.ident),
                    None => "null".to_owned(),
                },
            });
        }
        let reference = table.layout.psp_reference.and_then(|at| table.cells.get(at));
        let reference =
            reference.map_or("null".to_owned(), |column| format!("t.{}::text", column.ident));
        sql.push(&format!("{}, {reference} from {} t", parts.join(" || "), table.read));
        if table.status_indexed {
            let condition = Statements::of(table).is_processing("t", &mut sql);
            sql.push(&format!(" where {condition}"));
        }
        let limit = sql.bind(most);
        sql.push(&format!(" limit {limit}"));
        let rows = read(&self.pool, sql).await?;
        let seen = |row| {
            let cells = Cells::new(row, LOOKING);
            Ok(SeenTag::of(cells.maybe_text(0)?, cells.maybe_text(1)?.as_deref()))
        };
        rows.iter().map(seen).collect()
    }

    async fn held(
        &self,
        table: &SourceTable,
        values: &[String],
    ) -> Result<Vec<String>, StoreError> {
        if !table.status_indexed {
            let (ident, write) = (&table.write_status.ident, &table.write);
            let ends = catalogue::both_ends(ident, write, table.write_key.first(), FIRST_ROWS);
            let mut sql = Sql::new(format!("select distinct s.v from ({ends}) s where s.v = any("));
            let wanted = sql.bind(values.to_vec());
            sql.push(&format!("{wanted}::text[])"));
            return texts(&self.pool, sql).await;
        }
        let mut held = Vec::new();
        for value in values {
            let mut sql = Sql::new("select ");
            let has = Statements::of(table).has_status("t", vec![value.clone()], &mut sql);
            sql.push(&format!("exists (select from {} t where {has})", table.read));
            let rows = read(&self.pool, sql).await?;
            if rows.first().map_or(Ok(false), |row| Cells::new(row, LOOKING).flag(0))? {
                held.push(value.clone());
            }
        }
        Ok(held)
    }

    async fn survey(&self) -> Result<Vec<Surveyed>, StoreError> {
        let mut sql = Sql::new(SURVEY);
        let limit = sql.bind(RELATIONS_MAX);
        sql.push(&limit);
        let texts = texts(&self.pool, sql).await?;
        let found: Result<Vec<Found>, StoreError> = texts.iter().map(|t| parsed(t)).collect();
        let found = found?;
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let names: Vec<String> =
            found.iter().map(|f| format!("{}.{}", quoted(&f.schema), quoted(&f.name))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut connection = self.pool.acquire().await.map_err(failed(LOOKING))?;
        let described = catalogue::described(&mut connection, &names).await?;
        let mut surveyed = Vec::new();
        for (at, relation) in described {
            let Some(found) = found.get(at) else { continue };
            surveyed.push(Surveyed {
                name: mapped_name(found),
                relation,
                rows: found.rows,
                primary_key: found.primary_key.clone(),
                parents: found.parents.clone(),
                bases: found.bases.clone(),
                checks: found.checks.clone(),
                closed: found.closed.clone(),
            });
        }
        Ok(surveyed)
    }

    async fn distinct(&self, of: &Surveyed, column: &str) -> Result<Vec<String>, StoreError> {
        let Some(column) = of.relation.column(column) else { return Ok(Vec::new()) };
        if let TypeClass::Enum(labels) = &column.class {
            return Ok(labels.clone());
        }
        let (ident, read) = (&column.ident, &of.relation.name);
        if is_pointer(&column.name) {
            let rows = catalogue::both_ends(ident, read, newest_first(of), FIRST_ROWS);
            let sql = format!("select distinct {} from ({rows}) s order by 1", filled("s.v"));
            return texts(&self.pool, Sql::new(sql)).await;
        }
        let sql = match of.relation.indexed.contains(&column.name) && !of.relation.is_view {
            true => format!(
                "with recursive seen as ((select t.{ident} as v from {read} t \
                 where t.{ident} is not null order by t.{ident} limit 1) union all \
                 select (select t.{ident} from {read} t where t.{ident} > seen.v \
                 order by t.{ident} limit 1) from seen where seen.v is not null) \
                 select v::text from seen where v is not null limit {VALUES_MAX}"
            ),
            false => format!(
                "select distinct s.v from ({}) s where s.v is not null order by 1 \
                 limit {VALUES_MAX}",
                catalogue::both_ends(ident, read, newest_first(of), FIRST_ROWS)
            ),
        };
        texts(&self.pool, Sql::new(sql)).await
    }

    async fn named_rows(
        &self,
        table: &SourceTable,
        ids: &[String],
    ) -> Result<Vec<NamedRow>, StoreError> {
        let parts = Statements::of(table);
        let mut sql = Sql::new("");
        let belongs = parts.filter("t", &mut sql);
        let is_named = parts.is_one_of_ids("t", ids, &mut sql);
        sql.push(&format!(
            "select {}, t.{}::text, coalesce({belongs}, false) from {} t where {is_named}",
            parts.key_text("t"),
            table.write_status.ident,
            table.read
        ));
        let rows = read(&self.pool, sql).await?;
        let named = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            let (id, status) = (cells.text(0)?, cells.maybe_text(1)?);
            Ok(NamedRow { id, status, belongs: cells.flag(2)? })
        });
        named.collect()
    }

    async fn newest_keys(&self, table: &SourceTable, most: i64) -> Result<Vec<String>, StoreError> {
        let parts = Statements::of(table);
        let key = table.cells_at(&table.layout.key).map(|c| format!("t.{}", c.ident));
        let columns = key.collect::<Vec<_>>().join(", ");
        let newest = table.sole_key().filter(|_| table.write_is_read);
        let newest = newest.map(|key| format!(" order by t.{} desc", key.ident));
        let mut sql = Sql::new("select s.k from (select ");
        let most = sql.bind(most);
        sql.push(&format!(
            "{} as k from (select {columns} from {} t{} limit {most}) t) s where s.k is not null",
            parts.key_text("t"),
            table.read,
            newest.unwrap_or_default(),
        ));
        texts(&self.pool, sql).await
    }

    async fn counterparts(
        &self,
        table: &SourceTable,
        most: i64,
    ) -> Result<Vec<Counterpart>, StoreError> {
        let parts = Statements::of(table);
        let key: Vec<&Column> = table.cells_at(&table.layout.key).collect();
        let status = &table.write_status.ident;
        let mut columns: Vec<String> = key.iter().map(|c| format!("t.{}", c.ident)).collect();
        columns.push(format!("t.{status}"));
        let columns = columns.join(", ");
        let mut sql = Sql::new("select ");
        let rows = match table.status_indexed {
            true => format!("{} t", table.read),
            false => format!("(select {columns} from {} t limit {FIRST_ROWS}) t", table.read),
        };
        let processing = parts.is_processing("t", &mut sql);
        let most = sql.bind(most);
        let pairs = key.iter().zip(&table.write_key);
        let same: Vec<String> = pairs
            .map(|(read, write)| {
                format!("w.{} = t.{}::text::{}", write.ident, read.ident, write.type_name)
            })
            .collect();
        sql.push(&format!(
            "{}, t.{status}::text, w.there, w.status from (select {columns} from {rows} \
             where {processing} limit {most}) t left join lateral (select true as there, \
             w.{status}::text as status from {} w where {} limit 1) w on true",
            parts.key_text("t"),
            table.write,
            same.join(" and ")
        ));
        let rows = read(&self.pool, sql).await?;
        let found = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            let there = cells.maybe_flag(2)?.unwrap_or(false);
            let status = cells.maybe_text(3)?;
            let (id, read) = (cells.maybe_text(0)?, cells.maybe_text(1)?);
            Ok(Counterpart { id, read, written: there.then_some(status) })
        });
        found.collect()
    }

    async fn hides_by_status(&self, table: &SourceTable) -> Result<bool, StoreError> {
        let ended = table.ended_values();
        let is_unreadable = table.statuses_in != table.write;
        if is_unreadable || ended.is_empty() || (table.write_is_read && !table.read_is_view) {
            return Ok(false);
        }
        let pool = self.pool().await;
        if table.write_is_read {
            return hides_once_written(pool, table, &ended).await;
        }
        let rows = read(pool, newest_ended(table, &ended)).await?;
        for row in &rows {
            if Cells::new(row, LOOKING).flag(0)? {
                return Ok(false);
            }
        }
        if rows.is_empty() {
            return Ok(false);
        }
        let rows = ask(pool, Look::ByIndex, shows(table, ended)).await?;
        let row = rows.first().ok_or_else(|| unexpected(LOOKING, "no answer"))?;
        let cells = Cells::new(row, LOOKING);
        if !cells.flag(0)? || cells.flag(1)? {
            return Ok(false);
        }
        let mut sql = Sql::new("select pg_get_viewdef(to_regclass(");
        let name = sql.bind(table.read.to_string());
        sql.push(&format!("{name}::text))"));
        let definition = texts(pool, sql).await?;
        Ok(definition.iter().any(|text| chooses_by(text, &table.write_status.name)))
    }

    async fn stuck_ahead(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        after: Instant,
    ) -> Result<Ahead, StoreError> {
        let mut sql = Sql::new("select ");
        let is_ahead = Statements::of(table).is_ahead("t", after, &mut sql);
        let pool = self.pool().await;
        let from = stuck_of(pool, table, filter, &mut sql).await?;
        let sent = table.layout.attempted.and_then(|(index, _)| table.cells.get(index));
        let [made, sent] = [created_of(table), sent].map(text_of);
        let most = sql.bind(AHEAD_MAX);
        sql.push(&format!("{made}, {sent} from {from} and {is_ahead} limit {most}"));
        let rows = read(pool, sql).await?;
        let times = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            Ok((cells.maybe_text(0)?, cells.maybe_text(1)?))
        });
        Ok(ahead_of(table, &times.collect::<Result<Vec<Times>, StoreError>>()?))
    }

    async fn newest_stuck(&self, table: &SourceTable) -> Result<Option<Instant>, StoreError> {
        let Some(created) = created_of(table) else { return Ok(None) };
        let mut sql = Sql::new("select ");
        let from = stuck_of(&self.pool, table, &ClaimFilter::default(), &mut sql).await?;
        let (text, column) = (text_of(Some(created)), &created.ident);
        sql.push(&format!("{text} from {from} and t.{column} is not null "));
        sql.push(&format!("order by t.{column} desc limit 1"));
        let newest = texts(&self.pool, sql).await?;
        let read = |text: &String| table.layout.created.1.read(text).ok().flatten();
        Ok(newest.first().and_then(read))
    }

    async fn left_out(&self, table: &SourceTable) -> Result<LeftOut, StoreError> {
        if table.settings.filter.is_empty() {
            return Ok(LeftOut::default());
        }
        let pool = self.pool().await;
        let mut left = left_out_of(table, &tried(pool, table).await?);
        let stuck = left.stuck;
        if left.by.iter().any(|barrier| barrier.rows == stuck) {
            let indexed = indexed(pool, table).await?;
            for barrier in left.by.iter_mut().filter(|barrier| barrier.rows == stuck) {
                barrier.passing = passing(pool, table, &barrier.filter, &indexed).await?;
            }
        }
        Ok(left)
    }

    async fn knows_a_row(&self, table: &SourceTable) -> Result<bool, StoreError> {
        let mut sql = Sql::new("select exists (select from tieout_checks c where c.table_name = ");
        let name = sql.bind(table.settings.name.clone());
        sql.push(&format!("{name})"));
        let rows = read(self.pool().await, sql).await?;
        rows.first().map_or(Ok(false), |row| Cells::new(row, LOOKING).flag(0))
    }

    async fn tallied(&self, of: &Surveyed, column: &str) -> Result<Vec<(String, i64)>, StoreError> {
        let Some(column) = of.relation.column(column) else { return Ok(Vec::new()) };
        let sql = format!(
            "select s.v, count(*) from (select t.{}::text as v from {} t limit {FIRST_ROWS}) s \
             where s.v is not null group by 1 order by 2 desc, 1 limit {VALUES_MAX}",
            column.ident, of.relation.name
        );
        let rows = read(&self.pool, Sql::new(sql)).await?;
        let tallied = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            Ok((cells.text(0)?, cells.big(1)?))
        });
        tallied.collect()
    }

    async fn beside(&self, of: &Surveyed, asked: &Beside) -> Result<Vec<Tally>, StoreError> {
        let column = |name: &str| of.relation.column(name);
        let (Some(value), Some(status)) = (column(&asked.column), column(&asked.status)) else {
            return Ok(Vec::new());
        };
        let value = match asked.by {
            CountedBy::NullOrEmpty => {
                filled_or_null(&format!("nullif(t.{}::text, '')", value.ident))
            }
            CountedBy::Null => filled_or_null(&format!("t.{}", value.ident)),
            CountedBy::Value => format!("t.{}::text", value.ident),
        };
        let order = newest_first(of).map(|key| format!(" order by t.{} desc", key.ident));
        let sql = format!(
            "select s.v, s.w, count(*) from (select {value} as v, t.{}::text as w \
             from {} t{} limit {FIRST_ROWS}) s group by 1, 2 order by 3 desc, 1, 2 \
             limit {VALUES_MAX}",
            status.ident,
            of.relation.name,
            order.unwrap_or_default()
        );
        let rows = read(&self.pool, Sql::new(sql)).await?;
        let tallies = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            let (value, status) = (cells.maybe_text(0)?, cells.maybe_text(1)?);
            Ok(Tally { value, status, rows: cells.big(2)? })
        });
        tallies.collect()
    }

    async fn examples(&self, of: &Surveyed, column: &str) -> Result<Vec<String>, StoreError> {
        let Some(column) = of.relation.column(column) else { return Ok(Vec::new()) };
        let sql = format!(
            "select s.v from (select t.{}::text as v from {} t limit 1000) s \
             where s.v is not null limit {EXAMPLES}",
            column.ident, of.relation.name
        );
        texts(&self.pool, Sql::new(sql)).await
    }
}

/// As a mapping names it: with its schema where it needs one, quoted where a point would mislead.
fn mapped_name(found: &Found) -> String {
    let plain = |name: &str| match name.contains(['.', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    };
    match found.is_visible {
        true => plain(&found.name),
        false => format!("{}.{}", plain(&found.schema), plain(&found.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_made_while_its_table_is_written() {
        assert_eq!(
            create_index("pay.sent", false, "\"made_at\"", " where \"state\" = 1"),
            "create index concurrently on pay.sent (\"made_at\") where \"state\" = 1;"
        );
        assert_eq!(
            create_index("pay.sent", true, "\"made_at\"", ""),
            "create index tieout_made_at on only pay.sent (\"made_at\"); for each partition P: \
             create index concurrently P_tieout_made_at on P (\"made_at\"); alter index \
             pay.tieout_made_at attach partition P_tieout_made_at; (a plain create index on \
             pay.sent stops its writes while it runs)"
        );
    }

    #[test]
    fn steps_of_plans_name_their_index() {
        for (step, index) in [
            ("Index Scan using charges_state on charges t", Some("charges_state")),
            ("  ->  Bitmap Index Scan on \"Payments CreatedAt\"", Some("Payments CreatedAt")),
            ("Index Only Scan using a_b on c", Some("a_b")),
            ("Seq Scan on charges t", None),
        ] {
            assert_eq!(index_of(step).as_deref(), index, "{step}");
        }
    }
}
