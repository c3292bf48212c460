//! The SQL of three roles that may do what their work needs, and no more.
//!
//! It is printed for a person to read and run; nothing here changes a right. `run` is for the
//! schedule, `read` for looking and for dry runs, `people` for pausing accounts, releasing files
//! and for the cases: what people say is carried out by a run. None of them may change or delete a
//! journal record or an evidence, and none of them migrates or prunes: that is the owner's.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sqlx::postgres::{PgConnection, PgPool};

use crate::decide::policy::Mode;
use crate::store::error::{Asker, PREFIX, StoreError};
use crate::store::layout::laid_out;
use crate::store::postgres::errors::failed;
use crate::store::source_table::{QuotedIdent, SourceTable};

const READING: &str = "reading the catalogue for the roles";

/// tieout's tables and what `run` may do with each beside reading it. A new table is a line here;
/// the test of the roles counts them.
pub(super) const RUN: &[(&str, &[&str])] = &[
    ("tieout_migrations", &[]),
    ("tieout_prunes", &[]),
    (
        "tieout_runs",
        &[
            "insert",
            "update (state, heartbeat_at, ended_at, exit_code, exit_class, notes, journal_count, \
             close_number, prev_close_hash, close_hash)",
        ],
    ),
    ("tieout_run_totals", &["insert", "update (rows, amount_minor)"]),
    ("tieout_checks", &["insert", "update"]),
    ("tieout_evidence", &["insert"]),
    ("tieout_cases", &["insert", "update"]),
    ("tieout_case_notes", &["insert"]),
    ("tieout_proposals", &["update (state, ended_at, ended_why, ended_run)"]),
    ("tieout_handbacks", &["insert", "update (taken_at, ended_at, end_reason)"]),
    ("tieout_journal", &["insert"]),
    ("tieout_references", &["insert", "update (key)"]),
    (
        "tieout_outbox",
        &["insert", "update (delivered_at, suppressed_at, suppressed_why, distributed_at)"],
    ),
    (
        "tieout_deliveries",
        &["insert", "update (state, attempts, next_attempt_at, last_error, ended_at, why)"],
    ),
    ("tieout_sinks", &["insert", "update"]),
    (
        "tieout_accounts",
        &[
            "insert (account, unanswered_since, usual_permille)",
            "update (unanswered_since, usual_permille)",
        ],
    ),
    ("tieout_marks", &["insert", "update (value)"]),
    ("tieout_alerts", &["insert", "update (text, told_at, lease_until)", "delete"]),
    ("tieout_files", &["insert", "update"]),
    ("tieout_file_names", &["insert", "update (modified_at, archived_at)"]),
    ("tieout_statements", &["insert", "update"]),
    ("tieout_lines", &["insert", "update"]),
    ("tieout_line_tags", &["insert"]),
    ("tieout_releases", &["update (state, ended_at, ended_why, ended_run)"]),
    ("tieout_compared", &["insert"]),
];

/// What `people` may do beside reading everything.
const PEOPLE: &[(&str, &[&str])] = &[
    ("tieout_accounts", &["insert", "update"]),
    // Who decides of a row or a file carries nothing out and closes no case: that is a run's.
    ("tieout_cases", &["update (owner, merged_into)"]),
    ("tieout_case_notes", &["insert (case_number, at, kind, by_whom, text, proposal)"]),
    (
        "tieout_proposals",
        &[
            "insert (case_number, what, psp_reference, undoes, why, evidence_sha256, four_eyes, \
             proposed_by, proposed_at, state)",
            "update (state, approved_by, approved_at, approved_why, approved_evidence, ended_at, \
             ended_why)",
        ],
    ),
    // What files say decides rows: people say that one may count, and write nothing of it.
    ("tieout_releases", &["insert (file_id, what, at, by_whom, why, state)"]),
    ("tieout_outbox", &["update (delivered_at, suppressed_at, suppressed_why)"]),
    (
        "tieout_deliveries",
        &["update (state, attempts, next_attempt_at, ended_at, why, changed_by)"],
    ),
];

/// This role, and what the roles that were made here begin with: of several prefixes its own.
const ASKER: &str = "\
select current_user::text, (
    select regexp_replace(r.rolname::text, '_(run|read|people)$', '')
    from pg_roles r
    join pg_class c on c.relname = 'tieout_journal' and c.relkind = 'r'
        and has_table_privilege(r.oid, c.oid, 'select')
    where r.rolname ~ '_(run|read|people)$' and not r.rolsuper
    order by not pg_has_role(current_user, r.oid, 'usage'), not pg_table_is_visible(c.oid),
        r.rolcanlogin, r.rolname !~ '^tieout_(run|read|people)$', r.rolname
    limit 1)";

/// Who asks, for whoever was refused.
pub(super) async fn asker(pool: &PgPool) -> sqlx::Result<Asker> {
    let asked = sqlx::query_as(ASKER).fetch_one(pool).await;
    asked.map(|(login, prefix): (String, Option<String>)| Asker {
        login,
        prefix: prefix.unwrap_or_else(|| PREFIX.to_owned()),
    })
}

/// What the catalogue says beyond the mapping.
struct Found {
    database: String,
    /// Where tieout's tables are.
    home: String,
    /// The schemas of the mapped tables, and of the types of their mapped columns.
    schemas: Vec<String>,
    /// Sequences that the history tables number their rows by.
    sequences: Vec<String>,
}

pub(super) async fn statements(
    connection: &mut PgConnection,
    tables: &[SourceTable],
    prefix: &str,
) -> Result<String, StoreError> {
    let found = find(connection, tables).await.map_err(failed(READING))?;
    let role = |name: &str| QuotedIdent::of_catalogue(&format!("{prefix}_{name}"));
    let (run, read, people) = (role("run"), role("read"), role("people"));
    let all = format!("{run}, {read}, {people}");
    let mut text = String::new();
    put(&mut text, &format!("-- Three roles for tieout in the database {}.", found.database));
    text.push_str(&heading(prefix));
    for (role, what) in [
        (&run, "what the schedule runs as"),
        (&read, "for looking: dry runs, explain, runs, cases, reports, verifying"),
        (&people, "for pausing accounts, releasing files and for the cases"),
    ] {
        make_role(&mut text, role, what);
    }
    let mut schemas: BTreeSet<&str> = found.schemas.iter().map(String::as_str).collect();
    schemas.insert(&found.home);
    let schemas: Vec<&str> = schemas.into_iter().collect();
    put(&mut text, &format!("\ngrant usage on schema {} to {all};", schemas.join(", ")));
    put(&mut text, "\n-- tieout's own tables.");
    let home = &found.home;
    for (table, may) in RUN {
        put(&mut text, &format!("revoke all on {home}.{table} from {all};"));
        put(&mut text, &format!("grant select on {home}.{table} to {all};"));
        if !may.is_empty() {
            put(&mut text, &format!("grant {} on {home}.{table} to {run};", may.join(", ")));
        }
    }
    for (table, may) in PEOPLE {
        put(&mut text, &format!("grant {} on {home}.{table} to {people};", may.join(", ")));
    }
    mapped(&mut text, tables, &run, &all);
    for sequence in &found.sequences {
        put(&mut text, &format!("grant usage on sequence {sequence} to {run};"));
    }
    put(&mut text, "\ncommit;");
    Ok(text)
}

/// One statement or comment, after the empty lines that it begins with.
fn put(text: &mut String, line: &str) {
    let statement = line.trim_start_matches('\n');
    text.extend(line.chars().take_while(|letter| *letter == '\n'));
    put_in(text, 0, statement);
}

/// The same within a block.
fn put_in(text: &mut String, indent: usize, statement: &str) {
    for line in laid_out(statement, 80_usize.saturating_sub(indent), 4) {
        let _fits = writeln!(text, "{:indent$}{line}", "");
    }
}

fn heading(prefix: &str) -> String {
    let named = if prefix == "tieout" { String::new() } else { format!(" --prefix {prefix}") };
    format!(
        "-- Nothing was changed: read this, then run it as the tables' owner after\n\
         -- `tieout db migrate`, and again when the mapping or the version changes:\n\
         --   tieout db roles{named} | psql -v ON_ERROR_STOP=1 \"$OWNER_URL\"\n\
         -- The roles cannot log in. Give each to a login:\n\
         --   grant {prefix}_run to some_login;\n\
         -- Triggers of yours run as the role that writes: grant it what they need.\n\
         -- Migrating and pruning stay with the owner.\n\
         -- Granting takes the owner; making the roles takes createrole or a superuser.\n\
         -- An owner who may not has them made first, each of the three so:\n\
         --   create role {prefix}_run nologin;\n\
         -- What is there is not made again.\n\
         begin;\n"
    )
}

fn make_role(text: &mut String, role: &QuotedIdent, what: &str) {
    let literal = role.to_string();
    let literal = literal.trim_matches('"').replace("\"\"", "\"").replace('\'', "''");
    put(text, &format!("\n-- {role}: {what}."));
    put(text, "do $$ begin");
    let condition =
        format!("if not exists (select from pg_roles where rolname = '{literal}') then");
    put_in(text, 4, &condition);
    put_in(text, 8, &format!("create role {role} nologin;"));
    put_in(text, 4, "end if;");
    put(text, "end $$;");
}

/// The user's tables: read what is read, write the columns that the mapping writes.
fn mapped(text: &mut String, tables: &[SourceTable], run: &QuotedIdent, all: &str) {
    // First what an earlier mapping granted: two mappings may share a table.
    let histories = tables.iter().filter_map(|table| table.history.as_ref());
    let relations: BTreeSet<&QuotedIdent> = tables
        .iter()
        .flat_map(|table| [&table.read, &table.write])
        .chain(histories.map(|history| &history.name))
        .collect();
    put(text, "\n-- Your tables: read what is mapped, write the columns the mapping writes.");
    for relation in relations {
        put(text, &format!("revoke all on {relation} from {all};"));
    }
    for table in tables {
        put(text, &format!("\n-- [[table]] {}.", one_line(&table.settings.name)));
        let (read, write) = (&table.read, &table.write);
        put(text, &format!("grant select on {read} to {all};"));
        if table.settings.mode == Mode::Observe {
            continue;
        }
        if !table.write_is_read {
            put(text, &format!("grant select on {write} to {run};"));
        }
        let columns: BTreeSet<&QuotedIdent> = table
            .sets
            .values()
            .map(|target| &target.column.ident)
            .chain([&table.write_status.ident])
            .collect();
        put(text, &format!("grant update ({}) on {write} to {run};", list(columns)));
        if let Some(history) = &table.history {
            let columns = history.columns.values().map(|target| &target.column.ident);
            let columns = list(columns);
            put(text, &format!("grant insert ({columns}) on {} to {run};", history.name));
        }
    }
}

fn list<'a>(names: impl IntoIterator<Item = &'a QuotedIdent>) -> String {
    names.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A name within a comment must not end it.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Each relation of a mapping with the columns that are mapped of it.
fn mapped_columns(table: &SourceTable) -> Vec<(String, &str)> {
    let read = table.cells.iter().map(|cell| (table.read.to_string(), cell.name.as_str()));
    let written = table.write_key.iter().chain([&table.write_status]);
    let written = written.chain(table.sets.values().map(|target| &target.column));
    let written = written.map(|column| (table.write.to_string(), column.name.as_str()));
    let history = table.history.iter().flat_map(|history| {
        let columns = history.columns.keys();
        columns.map(|column| (history.name.to_string(), column.as_str()))
    });
    read.chain(written).chain(history).collect()
}

async fn find(connection: &mut PgConnection, tables: &[SourceTable]) -> sqlx::Result<Found> {
    let mut relations: Vec<String> = Vec::new();
    for table in tables {
        relations.extend([table.read.to_string(), table.write.to_string()]);
        relations.extend(table.history.as_ref().map(|history| history.name.to_string()));
    }
    let histories: Vec<String> =
        tables.iter().filter_map(|t| t.history.as_ref()).map(|h| h.name.to_string()).collect();
    let (database, home): (String, String) = sqlx::query_as(
        "select quote_ident(current_database()), quote_ident(coalesce((select n.nspname \
         from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where c.oid = to_regclass('tieout_runs')), current_schema()))",
    )
    .fetch_one(&mut *connection)
    .await?;
    let (of, columns): (Vec<String>, Vec<&str>) = tables.iter().flat_map(mapped_columns).unzip();
    let schemas = sqlx::query_scalar(
        "select quote_ident(n.nspname) from unnest($1::text[]) as u(name) \
         join pg_class c on c.oid = u.name::regclass \
         join pg_namespace n on n.oid = c.relnamespace \
         union select quote_ident(n.nspname) from unnest($2::text[], $3::text[]) as u(name, col) \
         join pg_attribute a on a.attrelid = u.name::regclass and a.attname = u.col \
         join pg_type t on t.oid = a.atttypid \
         join pg_namespace n on n.oid = t.typnamespace and n.nspname <> 'pg_catalog' order by 1",
    )
    .bind(relations)
    .bind(of)
    .bind(columns)
    .fetch_all(&mut *connection)
    .await?;
    let sequences = sqlx::query_scalar(
        "select distinct quote_ident(n.nspname) || '.' || quote_ident(s.relname) \
         from unnest($1::text[]) as u(name) \
         join pg_attrdef d on d.adrelid = u.name::regclass \
         join pg_depend p on p.classid = 'pg_attrdef'::regclass and p.objid = d.oid \
         and p.refclassid = 'pg_class'::regclass \
         join pg_class s on s.oid = p.refobjid and s.relkind = 'S' \
         join pg_namespace n on n.oid = s.relnamespace order by 1",
    )
    .bind(histories)
    .fetch_all(&mut *connection)
    .await?;
    Ok(Found { database, home, schemas, sequences })
}
