//! What PostgreSQL's catalogue says of the relations that a mapping names: one query for all.

use serde::Deserialize;
use sqlx::postgres::PgConnection;

use crate::decide::policy::Mode;
use crate::store::error::{MappingError, Mend, StoreError};
use crate::store::fit::{Catalogue, THIS_ROLE, fit, folded_status, unique_names};
use crate::store::inspect::STATUS_ROWS;
use crate::store::literals::{literals, unfit_keys};
use crate::store::mapping::TableSettings;
use crate::store::postgres::errors::{answered, failed, unexpected};
use crate::store::postgres::sql::{Cells, Sql};
use crate::store::source_table::{Column, Hidden, QuotedIdent, Relation, SourceTable, TypeClass};

const READING: &str = "reading the catalogue";

/// How many unmapped status values are told at most; the point is made by then.
const UNMAPPED_MAX: i64 = 100;

#[derive(Debug, Clone, Deserialize)]
struct Found {
    schema: String,
    name: String,
    kind: String,
    /// No view, without rules and row-level security.
    plain: bool,
    updatable: bool,
    hidden: Vec<FoundHidden>,
    may_read: bool,
    may_enter: bool,
    writes_alone: bool,
    rule: Option<String>,
    columns: Vec<FoundColumn>,
    indexes: Vec<FoundIndex>,
}

/// A table of which row-level security hides rows, with the view that reads it and the view's
/// owner, where that is who reads it.
#[derive(Debug, Clone, Deserialize)]
struct FoundHidden {
    schema: String,
    name: String,
    view_schema: Option<String>,
    view: Option<String>,
    owner: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct FoundColumn {
    name: String,
    spelled: String,
    base: String,
    category: String,
    labels: Option<Vec<String>>,
    typmod: i64,
    required: bool,
    filled: bool,
    generated: bool,
    may_select: bool,
    may_update: bool,
    may_insert: bool,
    folds: bool,
    /// The schema of its type, in SQL, where this role may not look into it.
    closed: Option<String>,
    /// Its type is a domain over an enum: PostgreSQL has no `=` for one.
    unequal: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct FoundIndex {
    unique: bool,
    whole: bool,
    columns: Vec<Option<String>>,
    nullable: Vec<String>,
}

/// Relations by the place of their name. A view carries the indexes of the tables that it reads;
/// one that is written through, those of the table that is written alone: what is unique in a
/// parent of a scalar subquery says nothing of the view's rows. That table is the first relation
/// of its range table: an updatable view has one relation in FROM, and subqueries stand behind it.
/// What such a view works out, and does not take from there, is as generated as a table's column,
/// unless a trigger (80: INSTEAD OF UPDATE) or a rule of its own says how it is written.
///
/// Row-level security hides nothing where policies for this role, or for everybody, show and take
/// each row by every command that the role may give, and none restricts them. It holds of what a
/// view reads as well, however many views lie between: for the owner of the view that reads it, or
/// for whoever asks, where that view says so (`security_invoker`). What a view reads and does not
/// write is only read.
///
/// A name without a schema that is nowhere to be seen is looked for in those of the search path
/// that the server passes over, since this role may not look into them.
const RELATIONS: &str = "\
select n.place, json_build_object(
    'schema', s.nspname, 'name', c.relname, 'kind', c.relkind,
    'updatable', (pg_relation_is_updatable(c.oid, true) & 4) = 4,
    'hidden', /*hidden*/,
    'may_read', has_table_privilege(c.oid, 'select') or has_any_column_privilege(c.oid, 'select'),
    'may_enter', has_schema_privilege(s.oid, 'usage'),
    'writes_alone', c.relkind in ('r', 'p') and not c.relhasrules
        and (c.relkind = 'p' or not exists (select from pg_inherits i where i.inhparent = c.oid))
        and not exists (select from pg_trigger g
            where not g.tgisinternal and g.tgenabled <> 'D' and (g.tgrelid = c.oid
                or g.tgrelid in (select p.relid from pg_partition_tree(c.oid) p))),
    'plain', c.relkind <> 'v' and not c.relrowsecurity and not c.relhasrules,
    'rule', /*rule*/,
    'columns', (
        select coalesce(json_agg(json_build_object(
            'name', a.attname, 'spelled', format_type(a.atttypid, -1),
            'base', b.typname, 'category', b.typcategory, 'typmod',
            case when t.typtype = 'd' then t.typtypmod else a.atttypmod end,
            'labels', (select json_agg(e.enumlabel order by e.enumsortorder)
                from pg_enum e where e.enumtypid = b.oid),
            'required', a.attnotnull and not a.atthasdef
                and a.attidentity = '' and a.attgenerated = '',
            'filled', a.attnotnull or t.typnotnull,
            'generated', a.attgenerated <> '' or a.attidentity = 'a'
                /*of_view*/,
            'may_select', has_column_privilege(c.oid, a.attnum, 'select'),
            'may_update', has_column_privilege(c.oid, a.attnum, 'update'),
            'may_insert', has_column_privilege(c.oid, a.attnum, 'insert'),
            'closed', (select quote_ident(y.nspname) from pg_namespace y
                where y.oid = t.typnamespace and not has_schema_privilege(y.oid, 'usage')),
            'unequal', t.typtype = 'd' and b.typtype = 'e',
            'folds', b.typname = 'citext' or exists (select from pg_collation l
                where l.oid = a.attcollation and not l.collisdeterministic)
        ) order by a.attnum), '[]')
        from pg_attribute a
        join pg_type t on t.oid = a.atttypid
        left join pg_type d on t.typtype = 'd' and d.oid = t.typbasetype
        join pg_type b on b.oid = case
            when t.typtype <> 'd' then t.oid
            when d.typtype = 'd' then d.typbasetype
            else d.oid end
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
    'indexes', (
        select coalesce(json_agg(json_build_object(
            'unique', i.indisunique and i.indpred is null and i.indexprs is null,
            'whole', i.indpred is null and m.amname = 'btree',
            'columns', (select json_agg(a.attname order by k.at)
                from unnest(i.indkey::int2[]) with ordinality k(attnum, at)
                left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
                where k.at <= i.indnkeyatts),
            'nullable', (select coalesce(json_agg(a.attname), '[]')
                from unnest(i.indkey::int2[]) k(attnum)
                join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
                join pg_type t on t.oid = a.atttypid
                where not a.attnotnull and not t.typnotnull)
        )), '[]')
        from pg_index i
        join pg_class x on x.oid = i.indexrelid
        join pg_am m on m.oid = x.relam
        where i.indisvalid and i.indrelid in (
            select c.oid
            /*under_view*/))
)::text
from unnest($1::text[], $2::text[]) with ordinality as n(schema, name, place)
join pg_class c on c.relname = n.name and c.relkind in ('r', 'p', 'v', 'm', 'f')
join pg_namespace s on s.oid = c.relnamespace
where case when n.schema is not null then s.nspname = n.schema
    else pg_table_is_visible(c.oid)
        or to_regclass(quote_ident(n.name)) is null and not has_schema_privilege(s.oid, 'usage')
            and s.nspname in (select trim(both '\" ' from p) from unnest(string_to_array(
                replace(current_setting('search_path'), '$user', current_user), ',')) as p) end";

/// The places of [`RELATIONS`], each with what stands there for plain tables, and what for views
/// and for relations with rules or row-level security. A session opens each catalogue for the first
/// time, and plans all of them: those that nothing needs are a quarter of the whole.
const PLACES: [(&str, &str, &str); 4] = [
    (
        "/*hidden*/",
        "'[]'::json",
        "\
(
        with recursive me(oid) as (select r.oid from pg_roles r where r.rolname = current_user),
        below(oid, kind, via, written) as (
            select c.oid, c.relkind, null::oid, true
            union
            select k.oid, k.relkind, b.oid, b.written
                and pg_relation_is_updatable(b.oid, false) & 4 = 4 and k.oid = (
                    select m[1]::oid
                    from regexp_matches(r.ev_action::text, ':relid ([0-9]+)', 'g')
                        with ordinality as e(m, at)
                    where m[1]::oid <> b.oid order by e.at limit 1)
            from below b
            join pg_rewrite r on r.ev_class = b.oid and r.ev_type = '1' and b.kind = 'v'
            join pg_depend p on p.classid = 'pg_rewrite'::regclass and p.objid = r.oid
                and p.refclassid = 'pg_class'::regclass and p.refobjid <> b.oid
            join pg_class k on k.oid = p.refobjid and k.relkind in ('r', 'p', 'v'))
        select coalesce(json_agg(distinct jsonb_build_object(
            'schema', s.nspname, 'name', t.relname, 'view_schema', w.nspname, 'view', v.relname,
            'owner', (select o.rolname from pg_roles o where o.oid = u.oid and o.oid <> me.oid)
        )), '[]')
        from below b
        cross join me
        join pg_class t on t.oid = b.oid
        join pg_namespace s on s.oid = t.relnamespace
        left join pg_class v on v.oid = b.via
        left join pg_namespace w on w.oid = v.relnamespace
        cross join lateral (select case
            when v.oid is null or exists (select from pg_options_to_table(v.reloptions) o
                where case when o.option_name = 'security_invoker'
                    then o.option_value::boolean end)
            then me.oid else v.relowner end) as u(oid)
        where t.relrowsecurity
        and not exists (select from pg_roles o
            where o.oid = u.oid and (o.rolsuper or o.rolbypassrls))
        and (t.relforcerowsecurity or not pg_has_role(u.oid, t.relowner, 'usage'))
        and (exists (select from pg_policy p where p.polrelid = t.oid and not p.polpermissive)
        or exists (select from unnest(array['r', 'w', 'a']) as need(cmd)
            where (need.cmd = 'r'
                or b.written and need.cmd = 'w' and has_any_column_privilege(c.oid, 'update')
                or b.written and need.cmd = 'a' and has_any_column_privilege(c.oid, 'insert'))
            and not exists (select from pg_policy p
                where p.polrelid = t.oid and p.polcmd::text in ('*', need.cmd)
                and exists (select from unnest(p.polroles) as g(role)
                    where g.role = 0 or pg_has_role(u.oid, g.role, 'usage'))
                and (need.cmd = 'a' or pg_get_expr(p.polqual, p.polrelid) = 'true')
                and (need.cmd = 'r' or coalesce(pg_get_expr(p.polwithcheck, p.polrelid),
                    pg_get_expr(p.polqual, p.polrelid)) = 'true')))))",
    ),
    (
        "/*rule*/",
        "null",
        "\
(select case when not bool_or(pg_get_ruledef(w.oid) like '%RETURNING %')
            then min(w.rulename::text) end
        from pg_rewrite w
        where w.ev_class = c.oid and w.ev_type = '2' and w.is_instead and w.ev_enabled <> 'D')",
    ),
    (
        "/*of_view*/",
        "",
        "\
or c.relkind = 'v' and not pg_column_is_updatable(c.oid, a.attnum, false)
                and not exists (select from pg_trigger g
                    where g.tgrelid = c.oid and g.tgtype & 80 = 80)
                and not exists (select from pg_rewrite w
                    where w.ev_class = c.oid and w.ev_type = '2' and w.is_instead)",
    ),
    (
        "/*under_view*/",
        "",
        "\
union all
            select p.refobjid from pg_rewrite r
            join pg_depend p on p.classid = 'pg_rewrite'::regclass and p.objid = r.oid
                and p.refclassid = 'pg_class'::regclass and p.refobjid <> c.oid
            where c.relkind = 'v' and r.ev_class = c.oid
                and (pg_relation_is_updatable(c.oid, false) & 4 = 0 or p.refobjid = (
                    select m[1]::oid
                    from regexp_matches(r.ev_action::text, ':relid ([0-9]+)', 'g')
                        with ordinality as e(m, at)
                    where m[1]::oid <> c.oid order by e.at limit 1))",
    ),
];

pub(super) async fn map_tables(
    connection: &mut PgConnection,
    tables: &[TableSettings],
    accounts: &[String],
    rehearses: bool,
) -> Result<Vec<SourceTable>, StoreError> {
    let names: Vec<&str> = tables.iter().flat_map(names_of).collect();
    let found = relations(connection, &names).await?;
    let only_reads = rehearses && !carries_runs_out(connection).await?;
    let find = |name: &str| {
        let place = names.iter().position(|known| *known == name)?;
        found.iter().find(|(at, _)| *at == place).map(|(_, relation)| relation)
    };
    let mut errors = unique_names(tables);
    let mut mapped = Vec::new();
    for settings in tables {
        let unusable = unusable(settings, &find);
        if !unusable.is_empty() {
            errors.extend(unusable);
            continue;
        }
        let read = find(&settings.read).map(|found| relation(found, false));
        errors.extend(find(&settings.read).and_then(|found| folded(settings, found)));
        let write = settings.write.as_deref().unwrap_or(&settings.read);
        errors.extend(find(write).and_then(|found| ruled(settings, found)));
        let mut catalogue = Catalogue {
            read,
            write: find(write).map(|found| relation(found, false)),
            history: settings
                .history
                .as_ref()
                .and_then(|history| find(&history.table))
                .map(|found| relation(found, true)),
            text_times: false,
        };
        let is_unseen = only_reads && leave_writing_out(&mut catalogue);
        match fit(settings, &catalogue, accounts) {
            Ok(mut table) => {
                errors.extend(find(&settings.read).and_then(|found| unread(&table, found)));
                errors.extend(find(&settings.read).and_then(|found| unnamed_read(&table, found)));
                if !only_reads {
                    errors.extend(find(write).and_then(|found| unread_written(&table, found)));
                    errors.extend(unnamed_written(&table, &find));
                }
                let partly = find(write).map(leading).unwrap_or_default();
                table.unindexed.retain(|column| !partly.contains(column));
                if find(write).is_some_and(|found| folded(settings, found).is_some()) {
                    table.status_folded = std::mem::take(&mut table.status_indexed);
                }
                if is_unseen {
                    table.statuses_in = table.read.clone();
                    (table.status_indexed, table.status_folded) = (false, false);
                }
                mapped.push(table);
            }
            Err(misfits) => errors.extend(misfits),
        }
    }
    for table in &mapped {
        errors.extend(unfit_keys(table));
        errors.extend(untaken(connection, table).await?);
    }
    name_role(connection, &mut errors).await?;
    if errors.is_empty() { Ok(mapped) } else { Err(StoreError::Mapping(errors)) }
}

/// Writes the role's name into statements that are for it.
async fn name_role(
    connection: &mut PgConnection,
    errors: &mut [MappingError],
) -> Result<(), StoreError> {
    let names_it = |error: &MappingError| error.expected.contains(THIS_ROLE);
    if !errors.iter().any(names_it) {
        return Ok(());
    }
    let sql = Sql::new("select current_user::text");
    let rows = sql.fetch(connection).await.map_err(failed(READING))?;
    let Some(row) = rows.first() else { return Ok(()) };
    let role = format!("\"{}\"", Cells::new(row, READING).text(0)?.replace('"', "\"\""));
    for error in errors.iter_mut().filter(|error| names_it(error)) {
        error.expected = error.expected.replace(THIS_ROLE, &role);
    }
    Ok(())
}

/// Types of which [`fit`] has held each literal against all that the type takes.
const HELD: [&str; 6] = ["text", "character varying", "character", "boolean", "uuid", "bigint"];

/// Literals that the database itself does not take for their columns: numbers out of range, what
/// a domain refuses, words of types that tieout does not know. Each is cast once, and nothing is
/// written.
async fn untaken(
    connection: &mut PgConnection,
    table: &SourceTable,
) -> Result<Vec<MappingError>, StoreError> {
    let mut refused = Vec::new();
    for literal in literals(table) {
        let type_name = &literal.column.type_name;
        let is_told = |known: &MappingError| known.field == literal.field;
        if HELD.contains(&type_name.as_str()) || refused.last().is_some_and(is_told) {
            continue;
        }
        let mut sql = Sql::new("select cast(");
        let text = sql.bind(literal.text.clone());
        sql.push(&format!("{text}::text as {type_name}) is null"));
        let Err(error) = sql.fetch(connection).await else { continue };
        let Some(said) = answered(&error) else { return Err(failed(READING)(error)) };
        // Data and integrity; what else is wrong is not the literal's.
        if matches!(said.code().get(..2), Some("22" | "23")) {
            refused.push(literal.refused(table, said.message()));
        }
    }
    Ok(refused)
}

/// Whether this login carries runs out: it adds to the journal, as the triggers of tieout's tables
/// ask as well. What a run would be refused its dry run is refused too; any other login only looks.
async fn carries_runs_out(connection: &mut PgConnection) -> Result<bool, StoreError> {
    let sql = Sql::new(
        "select coalesce(has_table_privilege(to_regclass('tieout_journal')::oid, 'insert'), false)",
    );
    let rows = sql.fetch(connection).await.map_err(failed(READING))?;
    rows.first().map_or(Ok(false), |row| Cells::new(row, READING).flag(0))
}

/// Asks for no right to write. True where what is written is another relation that this login may
/// not read either: a dry run does without it.
fn leave_writing_out(catalogue: &mut Catalogue) -> bool {
    let relations = [&mut catalogue.read, &mut catalogue.write, &mut catalogue.history];
    for relation in relations.into_iter().flatten() {
        relation.columns.iter_mut().for_each(|column| column.may_write = true);
    }
    if let Some(history) = &mut catalogue.history {
        history.hidden.clear();
        history.closed = None;
    }
    let read = catalogue.read.as_ref().map(|read| &read.name);
    match &mut catalogue.write {
        Some(write) if read != Some(&write.name) && (!write.may_read || write.closed.is_some()) => {
            write.may_read = true;
            write.closed = None;
            write.hidden.clear();
            true
        }
        Some(_) | None => false,
    }
}

fn names_of(settings: &TableSettings) -> impl Iterator<Item = &str> {
    let history = settings.history.as_ref().map(|history| history.table.as_str());
    [Some(settings.read.as_str()), settings.write.as_deref(), history].into_iter().flatten()
}

/// What is known of these relations, each with the place of its name.
pub(super) async fn described(
    connection: &mut PgConnection,
    names: &[&str],
) -> Result<Vec<(usize, Relation)>, StoreError> {
    let found = relations(connection, names).await?;
    Ok(found.iter().map(|(place, found)| (*place, relation(found, false))).collect())
}

async fn relations(
    connection: &mut PgConnection,
    names: &[&str],
) -> Result<Vec<(usize, Found)>, StoreError> {
    let split: Vec<(Option<String>, String)> = names.iter().map(|name| split_name(name)).collect();
    let (schemas, tables): (Vec<Option<String>>, Vec<String>) = split.into_iter().unzip();
    let known = found(connection, &schemas, &tables, true).await?;
    if known.iter().all(|(_, found)| found.plain) {
        return Ok(known);
    }
    found(connection, &schemas, &tables, false).await
}

/// The same, true of plain tables alone or of all relations.
async fn found(
    connection: &mut PgConnection,
    schemas: &[Option<String>],
    tables: &[String],
    plain: bool,
) -> Result<Vec<(usize, Found)>, StoreError> {
    let text = PLACES.iter().fold(RELATIONS.to_owned(), |text, (place, of_plain, of_any)| {
        text.replace(place, if plain { of_plain } else { of_any })
    });
    let mut sql = Sql::new(&text);
    sql.bind(schemas.to_vec());
    sql.bind(tables.to_vec());
    let rows = sql.fetch(connection).await.map_err(failed(READING))?;
    let mut found = Vec::new();
    for row in &rows {
        let cells = Cells::new(row, READING);
        let place = usize::try_from(cells.big(0)?.saturating_sub(1)).unwrap_or(usize::MAX);
        let relation = serde_json::from_str(&cells.text(1)?)
            .map_err(|error| unexpected(READING, error.to_string()))?;
        found.push((place, relation));
    }
    Ok(found)
}

/// `schema.name` or `name`, each as the catalogue spells it; `"a.b"."c"` where a name has a point.
fn split_name(name: &str) -> (Option<String>, String) {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(part) = parts.last_mut() else { break };
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                part.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => part.push(other),
        }
    }
    match parts.as_slice() {
        [name] => (None, name.clone()),
        [schema, name] => (Some(schema.clone()), name.clone()),
        // No relation has such a name: `fit` says so.
        _more => (Some(String::new()), name.to_owned()),
    }
}

/// Mapped columns that this role may not read, though it may read others of the relation.
fn unread(table: &SourceTable, found: &Found) -> Option<MappingError> {
    let names: Vec<&str> = table.cells.iter().map(|cell| cell.name.as_str()).collect();
    barred(table, "read", found, &names)
}

/// The same of what is written. Its rows are found by their key and status, and what is counted up,
/// or written only where it is NULL, is read first.
fn unread_written(table: &SourceTable, found: &Found) -> Option<MappingError> {
    if table.settings.mode == Mode::Observe {
        return None;
    }
    let key = table.write_key.iter().map(|column| column.name.as_str());
    let names = key.chain([table.write_status.name.as_str()]).chain(read_first(table));
    // What is read and written is told once, as what is read.
    let is_told = |name: &&str| table.write_is_read && table.cell(name).is_some();
    let names: Vec<&str> = names.filter(|name| !is_told(name)).collect();
    barred(table, if table.write_is_read { "set" } else { "write" }, found, &names)
}

/// Columns of `set` whose new value depends on the old.
fn read_first(table: &SourceTable) -> Vec<&str> {
    let set = &table.settings.set;
    let parts = [&set.always, &set.succeeded, &set.failed, &set.retryable, &set.review];
    let depends = |template: &str| {
        template.starts_with('+') || matches!(template, "{psp_reference}" | "{psp_time}")
    };
    let columns = parts.into_iter().flatten().filter(|(_, template)| depends(template));
    columns.map(|(name, _)| name.as_str()).collect()
}

/// Those of these columns that this role may not read. Of a relation of which it may read nothing,
/// `fit` says so.
fn barred(table: &SourceTable, field: &str, found: &Found, names: &[&str]) -> Option<MappingError> {
    let is_barred =
        |column: &&FoundColumn| !column.may_select && names.contains(&column.name.as_str());
    let columns: Vec<&FoundColumn> = found.columns.iter().filter(is_barred).collect();
    if columns.is_empty() {
        return None;
    }
    let relation = QuotedIdent::qualified(&found.schema, &found.name);
    let shown: Vec<String> = columns.iter().map(|column| format!("`{}`", column.name)).collect();
    let idents: Vec<String> =
        columns.iter().map(|it| QuotedIdent::of_catalogue(&it.name).to_string()).collect();
    Some(MappingError {
        table: table.settings.name.clone(),
        field: field.to_owned(),
        problem: format!("this role may not read {} of {relation}", shown.join(", ")),
        expected: format!("grant select ({}) on {relation} to this role", idents.join(", ")),
        mend: Mend::Rights,
    })
}

/// Columns by which rows are looked for, of types that this role may not name: what they are
/// compared with is cast to them. Amounts and times are only read.
fn unnamed_read(table: &SourceTable, found: &Found) -> Option<MappingError> {
    let layout = &table.layout;
    let times = [Some(layout.created.0), layout.attempted.map(|(at, _)| at)];
    let only_read =
        [Some(layout.amount), layout.exponent, layout.currency].into_iter().chain(times);
    let only_read: Vec<usize> = only_read.flatten().collect();
    let cells = table.cells.iter().enumerate().filter(|(at, _)| !only_read.contains(at));
    let names: Vec<&str> = cells.map(|(_, cell)| cell.name.as_str()).collect();
    unnamed(table, "read", found, &names).or_else(|| unequal(table, "read", found, &names))
}

/// Columns that are compared, of types that nothing can be compared with.
fn unequal(
    table: &SourceTable,
    field: &str,
    found: &Found,
    names: &[&str],
) -> Option<MappingError> {
    let mut own = found.columns.iter().filter(|column| names.contains(&column.name.as_str()));
    let column = own.find(|column| column.unequal)?;
    Some(MappingError {
        table: table.settings.name.clone(),
        field: field.to_owned(),
        problem: format!(
            "`{}` is of {}, a domain over an enum, and PostgreSQL compares no values of one",
            column.name, column.spelled
        ),
        expected: "a column of the enum itself or of text, or a view that casts it".to_owned(),
        mend: Mend::Mapping,
    })
}

/// The same of what is written, here and into the history.
fn unnamed_written<'f>(
    table: &SourceTable,
    find: &impl Fn(&str) -> Option<&'f Found>,
) -> Vec<MappingError> {
    let settings = &table.settings;
    if settings.mode == Mode::Observe {
        return Vec::new();
    }
    let write = settings.write.as_deref().unwrap_or(&settings.read);
    let key = table.write_key.iter().map(|column| column.name.as_str());
    let names = key.chain([table.write_status.name.as_str()]);
    let names = names.filter(|name| !table.write_is_read || table.cell(name).is_none());
    let names: Vec<&str> = names.chain(table.sets.keys().map(String::as_str)).collect();
    let written = find(write).and_then(|found| unnamed(table, "write", found, &names));
    let history = settings.history.as_ref().and_then(|history| {
        let names: Vec<&str> = history.columns.keys().map(String::as_str).collect();
        unnamed(table, "history.table", find(&history.table)?, &names)
    });
    written.into_iter().chain(history).collect()
}

fn unnamed(
    table: &SourceTable,
    field: &str,
    found: &Found,
    names: &[&str],
) -> Option<MappingError> {
    let own = found.columns.iter().filter(|column| names.contains(&column.name.as_str()));
    let closed: Vec<(&FoundColumn, &str)> =
        own.filter_map(|column| Some((column, column.closed.as_deref()?))).collect();
    let (_, schema) = closed.first()?;
    let columns: Vec<String> = closed
        .iter()
        .filter(|(_, other)| other == schema)
        .map(|(column, _)| format!("`{}` ({})", column.name, column.spelled))
        .collect();
    let relation = QuotedIdent::qualified(&found.schema, &found.name);
    Some(MappingError {
        table: table.settings.name.clone(),
        field: field.to_owned(),
        problem: format!(
            "this role may not look into the schema of the type of {} of {relation}",
            columns.join(", ")
        ),
        expected: format!("`grant usage on schema {schema} to {THIS_ROLE};` by its owner"),
        mend: Mend::Rights,
    })
}

/// Relations that exist and still cannot serve.
fn unusable<'f>(
    settings: &TableSettings,
    find: &impl Fn(&str) -> Option<&'f Found>,
) -> Vec<MappingError> {
    let write = settings.write.as_deref();
    let named = [("read", Some(settings.read.as_str())), ("write", write)];
    let mut errors = Vec::new();
    for (field, name) in named {
        let Some(found) = name.and_then(find) else { continue };
        let (problem, expected) = match found.kind.as_str() {
            "m" => ("a materialized view, which shows yesterday", "the table, or a plain view"),
            "f" => {
                ("a foreign table, which no transaction here covers", "a table of this database")
            }
            _other => continue,
        };
        errors.push(MappingError {
            table: settings.name.clone(),
            field: field.to_owned(),
            problem: format!("`{}` is {problem}", found.name),
            expected: expected.to_owned(),
            mend: Mend::Mapping,
        });
    }
    errors
}

/// What is written, where a rule writes something else instead: an UPDATE then answers with no row,
/// and the server refuses to say which it wrote.
fn ruled(settings: &TableSettings, found: &Found) -> Option<MappingError> {
    let rule = found.rule.as_ref().filter(|_| settings.mode != Mode::Observe)?;
    Some(MappingError {
        table: settings.name.clone(),
        field: "write".to_owned(),
        problem: format!(
            "`{}` has the rule `{rule}` ON UPDATE DO INSTEAD, by which no row is written as it is \
             told",
            found.name
        ),
        expected: "a table without such a rule: a trigger in its place, or in `write` the table \
                   that it leads to"
            .to_owned(),
        mend: Mend::Mapping,
    })
}

/// The status, where its column takes for one value what bytes tell apart: `citext`, and
/// collations that are not deterministic.
fn folded(settings: &TableSettings, found: &Found) -> Option<MappingError> {
    let status = found.columns.iter().find(|it| it.folds && it.name == settings.status)?;
    let status = column(status, false);
    let bytewise = format!("{}::text collate \"C\"", status.ident);
    Some(folded_status(settings, &status, &bytewise))
}

fn relation(found: &Found, inserted: bool) -> Relation {
    let unique = found.indexes.iter().filter(|index| index.unique);
    let whole = found.indexes.iter().filter(|index| index.whole);
    Relation {
        name: QuotedIdent::qualified(&found.schema, &found.name),
        is_view: found.kind == "v",
        updatable: found.updatable,
        hidden: found.hidden.iter().map(hidden).collect(),
        may_read: found.may_read || inserted,
        closed: (!found.may_enter).then(|| QuotedIdent::of_catalogue(&found.schema)),
        columns: found.columns.iter().map(|column| self::column(column, inserted)).collect(),
        unique_keys: unique
            .map(|index| index.columns.iter().flatten().cloned().collect())
            .collect(),
        nullable: nullable(found),
        indexed: whole.filter_map(first).collect(),
        writes_alone: found.writes_alone,
    }
}

fn hidden(found: &FoundHidden) -> Hidden {
    let view = found.view_schema.as_ref().zip(found.view.as_ref());
    Hidden {
        table: QuotedIdent::qualified(&found.schema, &found.name),
        view: view.map(|(schema, name)| QuotedIdent::qualified(schema, name)),
        owner: found.owner.as_deref().map(QuotedIdent::of_catalogue),
    }
}

/// Columns that may be NULL. Of a view's the catalogue says nothing: there the unique indexes tell
/// of the tables that it reads.
fn nullable(found: &Found) -> Vec<String> {
    if found.kind != "v" {
        let columns = found.columns.iter().filter(|column| !column.filled);
        return columns.map(|column| column.name.clone()).collect();
    }
    let unique = || found.indexes.iter().filter(|index| index.unique);
    let is_filled = |name: &String| {
        unique().any(|index| {
            let has = index.columns.iter().flatten().any(|column| column == name);
            has && !index.nullable.contains(name)
        })
    };
    let names = unique().flat_map(|index| index.nullable.clone());
    names.filter(|name| !is_filled(name)).collect()
}

/// What leads any index, partial ones too.
fn leading(found: &Found) -> Vec<String> {
    found.indexes.iter().filter_map(first).collect()
}

fn first(index: &FoundIndex) -> Option<String> {
    index.columns.first().cloned().flatten()
}

fn column(found: &FoundColumn, inserted: bool) -> Column {
    let is_limited = matches!(found.base.as_str(), "varchar" | "bpchar");
    // The limit is kept with four bytes on top of it.
    let max_chars = usize::try_from(found.typmod.saturating_sub(4)).ok().filter(|n| *n > 0);
    // The precision stands in the upper half of it, and the scale, of eleven bits, below.
    let scale = usize::try_from(found.typmod.saturating_sub(4) & 0x7ff).unwrap_or(0);
    let has_scale = found.base == "numeric" && found.typmod >= 4 && scale < 0x400;
    Column {
        name: found.name.clone(),
        ident: QuotedIdent::of_catalogue(&found.name),
        type_name: found.spelled.clone(),
        class: class(found),
        max_chars: max_chars.filter(|_| is_limited),
        odd_text: None,
        decimals: if has_scale { scale } else { 0 },
        required: found.required,
        generated: found.generated,
        may_write: if inserted { found.may_insert } else { found.may_update },
    }
}

fn class(found: &FoundColumn) -> TypeClass {
    match (found.base.as_str(), found.category.as_str()) {
        ("int2" | "int4" | "int8", _) => TypeClass::Integer,
        ("numeric", _) => TypeClass::Decimal,
        ("float4" | "float8", _) => TypeClass::Float,
        ("bpchar", _) => TypeClass::Padded,
        ("uuid", _) => TypeClass::Uuid,
        ("bool", _) => TypeClass::Boolean,
        ("timestamptz", _) => TypeClass::TimestampTz,
        ("timestamp", _) => TypeClass::Timestamp,
        ("date", _) => TypeClass::Date,
        ("bytea", _) => TypeClass::Bytes,
        (_, "E") => TypeClass::Enum(found.labels.clone().unwrap_or_default()),
        (_, "S") => TypeClass::Text,
        _other => TypeClass::Other,
    }
}

/// Status values that the mapping neither maps nor ignores, and that a row has (of an enum that has
/// no other labels nothing is asked): what a walk from value to value over an index led by the
/// status finds; without one, those of the first and the last rows. Where that steps over
/// spellings, those of the processing values are read beside it: what is stuck is few.
pub(super) async fn unmapped_statuses(
    connection: &mut PgConnection,
    table: &SourceTable,
) -> Result<Vec<String>, StoreError> {
    if table.knows_all_labels() {
        return Ok(Vec::new());
    }
    let known = table.known_values();
    let status = &table.write_status;
    let most = i64::try_from(known.len()).unwrap_or_default().saturating_add(UNMAPPED_MAX);
    let is_led = table.status_indexed || table.status_folded;
    let mut sql = Sql::new(match is_led {
        true => walk(&status.ident, &table.statuses_in),
        false => format!(
            "select distinct s.v collate \"C\" from ({}) s where s.v is not null limit ",
            both_ends(&status.ident, &table.statuses_in, newest_by(table), STATUS_ROWS)
        ),
    });
    let limit = sql.bind(most);
    sql.push(&limit);
    let doing = "reading the status values";
    let mut rows = sql.fetch(connection).await.map_err(failed(doing))?;
    if table.status_folded {
        let spellings = spellings_sql(table).fetch(connection).await;
        rows.extend(spellings.map_err(failed(doing))?);
    }
    let texts = rows.iter().map(|row| Cells::new(row, doing).text(0));
    let mut values = texts.collect::<Result<Vec<_>, _>>()?;
    if table.status_folded {
        values.sort();
        values.dedup();
    }
    Ok(values.into_iter().filter(|value| !known.contains(value)).collect())
}

/// Whether a row has no status: asked of an index led by it, else of the first and the last rows.
pub(super) async fn lacks_status(
    connection: &mut PgConnection,
    table: &SourceTable,
) -> Result<bool, StoreError> {
    if !table.may_lack_status() {
        return Ok(false);
    }
    let (relation, status) = (&table.statuses_in, &table.write_status.ident);
    let sql = match table.status_indexed || table.status_folded {
        true => format!("select 1 from {relation} t where t.{status} is null limit 1"),
        false => format!(
            "select 1 from ({}) s where s.v is null limit 1",
            both_ends(status, relation, newest_by(table), STATUS_ROWS)
        ),
    };
    let rows = Sql::new(sql).fetch(connection).await;
    Ok(!rows.map_err(failed("looking for rows without a status"))?.is_empty())
}

/// By what the last rows are found: an index leads there in what is written, and may not in a view.
fn newest_by(table: &SourceTable) -> Option<&Column> {
    table.sole_key().filter(|_| table.statuses_in == table.write)
}

/// Spellings that the written column takes for a processing value, and the mapping does not name.
fn spellings_sql(table: &SourceTable) -> Sql {
    let status = &table.write_status;
    let bytewise = format!("t.{}::text collate \"C\"", status.ident);
    let mut sql = Sql::new(format!(
        "select distinct {bytewise} from {} t where t.{} = any(",
        table.statuses_in, status.ident
    ));
    let processing = sql.bind(table.processing_values());
    sql.push(&format!("{processing}::text[]::{}[]) and {bytewise} <> all(", status.type_name));
    let known = sql.bind(table.known_values());
    sql.push(&format!("{known}::text[]) limit {UNMAPPED_MAX}"));
    sql
}

/// From value to value over an index.
fn walk(ident: &QuotedIdent, write: &QuotedIdent) -> String {
    format!(
        "with recursive seen as (\
         (select t.{ident} as value from {write} t where t.{ident} is not null \
         order by t.{ident} limit 1) \
         union all \
         select (select t.{ident} from {write} t where t.{ident} > seen.value \
         order by t.{ident} limit 1) from seen where seen.value is not null) \
         select value::text from seen where value is not null limit "
    )
}

/// A column's values in the first rows, and in the last ones by a column that an index leads with:
/// what is stuck now is seldom among the oldest.
pub(super) fn both_ends(
    ident: &QuotedIdent,
    table: &QuotedIdent,
    key: Option<&Column>,
    rows: i64,
) -> String {
    let first = format!("(select t.{ident}::text as v from {table} t limit {rows})");
    match key {
        Some(key) => format!(
            "{first} union all (select t.{ident}::text from {table} t \
             order by t.{} desc limit {rows})",
            key.ident
        ),
        None => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_as_they_are_quoted() {
        for (name, schema, table) in [
            ("charges", None, "charges"),
            ("billing.charges", Some("billing"), "charges"),
            ("My Schema.Pay Ments", Some("My Schema"), "Pay Ments"),
            ("\"a.b\".\"c\"\"d\"", Some("a.b"), "c\"d"),
            ("a.b.c", Some(""), "a.b.c"),
        ] {
            let expected = (schema.map(str::to_owned), table.to_owned());
            assert_eq!(split_name(name), expected, "{name}");
        }
    }
}
