//! The database, its role, and the clocks.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use chrono::TimeDelta;

use crate::clock;
use crate::exit::Exit;
use crate::model::count::counted;
use crate::run::clock::DatabaseClock;
use crate::run::doctor::{Finding, Level, Probes, Reading, Say, fail, ok, warn};
use crate::run::error::{chain, store_exit};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::StoreError;
use crate::store::inspect::{Inspect, Link, Rights, Server};

/// From here on no row is handed back: a miss could be older than the attempt that it denies.
const SKEW_MAX_SECS: i64 = 120;

/// The Date header has whole seconds, and an answer takes its time.
const SKEW_NOTED_SECS: i64 = 10;

/// What to do where tieout's tables are missing or older.
const MIGRATE: &str = "tieout db migrate, then tieout doctor";

/// What to do where something that was told already stands in the way.
pub(super) const AFTER: &str = "tieout doctor, after what stands above";

/// What each login that carries runs out may do, whatever else it lacks.
const TO_THE_JOURNAL: &str = "insert on tieout_journal";

/// A database that cannot be opened, in the words of the error.
pub(super) fn refused(error: &StoreError) -> Finding {
    let next = error.hint().unwrap_or_else(|| "see the server's log".to_owned());
    fail("database", store_exit(error), "database_refused", chain(error), next)
}

/// Whether the role is one that only looks comes back: it carries out no run.
pub(super) async fn look(db: &Database, say: Say<'_>) -> bool {
    let server = match db.server().await {
        Ok(server) => server,
        Err(error) => {
            say(refused(&error));
            return false;
        }
    };
    let is_server = matches!(db, Database::Postgres(_));
    let state = db.schema_state().await;
    say(schema(&server, is_server, &state));
    if server.link == Link::Plain {
        let text = "the connection is not encrypted: whoever listens reads it".to_owned();
        say(warn("database", "no_tls", text, "add sslmode=verify-full to [database] url"));
    }
    if is_server {
        // A connection through one that hands statements around would have been refused.
        let text = "the session keeps its settings (no pooler in transaction mode)".to_owned();
        say(ok("pool mode", "pool_mode", text));
    }
    match db.rights().await {
        Ok(rights) => {
            role(&rights, untold(&state), say);
            carries_no_run_out(&rights)
        }
        Err(error) => {
            say(warn("role", "untold", chain(&error), "tieout doctor"));
            false
        }
    }
}

/// The database and the version of tieout's tables in it: found, wanted.
fn schema(server: &Server, is_server: bool, state: &Result<(i64, i64), StoreError>) -> Finding {
    let (found, wanted) = match state {
        Ok(known) => *known,
        Err(error) => return refused(error),
    };
    let link = match &server.link {
        Link::Local => String::new(),
        Link::Tls(protocol) => format!(", {protocol}"),
        Link::Plain => ", no TLS".to_owned(),
    };
    let primary = if is_server { ", primary" } else { "" };
    let text = format!("{}{primary}{link}, schema {found}/{wanted}", server.product);
    match found.cmp(&wanted) {
        Ordering::Equal => ok("database", "database", text),
        Ordering::Less if found == 0 && !server.elsewhere.is_empty() => {
            let text = format!(
                "{text}: tieout's tables are not made yet where search_path leads to; they stand \
                 in schema {}",
                server.elsewhere.join(", ")
            );
            let next = "name that schema in search_path of [database]; or, for a second set of \
                        its own, tieout db migrate";
            fail("database", Exit::Schema, "schema_behind", text, next)
        }
        Ordering::Less => {
            let text = match found {
                0 => format!("{text}: tieout's tables are not made yet"),
                _older => format!("{text}: tieout's tables are of an older version"),
            };
            fail("database", Exit::Schema, "schema_behind", text, "tieout db migrate")
        }
        Ordering::Greater => {
            let text = format!("{text}: tieout's tables are of a newer version");
            fail("database", Exit::Schema, "schema_ahead", text, "install the newer tieout")
        }
    }
}

/// Why it cannot be told that a role may do all that a run needs, and what to do next: rights on
/// tables that are not there are nobody's.
fn untold(state: &Result<(i64, i64), StoreError>) -> Option<(&'static str, &'static str)> {
    match state {
        Ok((found, wanted)) if found >= wanted => None,
        Ok((0, _)) => Some(("tieout's tables are not made yet", MIGRATE)),
        Ok(_older) => Some(("tieout's tables are of an older version", MIGRATE)),
        Err(_refused) => Some(("tieout's tables could not be looked at", AFTER)),
    }
}

/// Why tables of tieout's that were asked for are not seen, and what to do next: they are not made,
/// or this login may not look into their schema.
pub(super) async fn unseen(db: &Database) -> (String, &'static str) {
    match db.schema_state().await {
        Err(error) => (chain(&error), AFTER),
        Ok(_unmade) => ("tieout's tables are not made yet".to_owned(), MIGRATE),
    }
}

/// What to say of tables of tieout's that this login may not look at. Where they are not made,
/// nothing.
pub(super) async fn out_of_sight(db: &Database) -> Option<Finding> {
    let error = db.schema_state().await.err()?;
    Some(Finding { level: Level::Warn, ..refused(&error) })
}

/// What to say of a role that only looks, where this is one: it carries out no run. What could not
/// be told is left to the doctor's whole look.
pub(super) async fn only_looks(db: &Database) -> Option<Finding> {
    let rights = db.rights().await.ok()?;
    carries_no_run_out(&rights).then(|| lacking(&rights, named(&rights)))
}

fn named(rights: &Rights) -> &str {
    rights.role.as_deref().unwrap_or("this user")
}

fn role(rights: &Rights, untold: Option<(&str, &str)>, say: Say<'_>) {
    let role = named(rights);
    let mut is_fine = true;
    if !rights.lacks.is_empty() {
        is_fine = false;
        say(lacking(rights, role));
    }
    if rights.is_superuser || rights.owns_journal {
        is_fine = false;
        let what = match rights.is_superuser {
            true => "is a superuser",
            false => "owns tieout's tables",
        };
        let text = format!("{role} {what}, and could rewrite the journal that a run only adds to");
        let next = "run tieout by a role that owns nothing: tieout db roles";
        say(warn("role", "role_owns_journal", text, next));
    } else if !rights.excess.is_empty() {
        is_fine = false;
        let text = format!("{role} can {}", listed(&rights.excess));
        let by_role = rights.excess_by.iter();
        let next: Vec<String> =
            by_role.map(|(role, rights)| statements("revoke", rights, "from", role)).collect();
        let next = match next.is_empty() {
            // By a role of the server's own, which stands on no table.
            true => grants("revoke", &rights.excess, "from", role),
            false => next.join(" "),
        };
        say(fail("role", Exit::Config, "rights_excess", text, next));
    }
    if !rights.unguarded.is_empty() {
        is_fine = false;
        let off: Vec<String> =
            rights.unguarded.iter().map(|(on, trigger)| format!("{trigger} of {on}")).collect();
        let text = format!(
            "triggers that guard tieout's tables are switched off or gone: {}; what stands there \
             can be changed without a trace",
            off.join(", ")
        );
        let statements = switches(rights).into_iter().chain(rights.gone.iter().cloned());
        let next = format!("by the owner:{}", in_schema(rights, statements));
        say(fail("role", Exit::Config, "guard_off", text, next));
    }
    is_fine &= guards_stand(rights, say);
    if is_fine {
        say(may(rights, untold));
    }
}

/// What to say of a role of which nothing else is to be said.
fn may(rights: &Rights, untold: Option<(&str, &str)>) -> Finding {
    match (&rights.role, untold) {
        (None, _) => ok("role", "role", "the file and its folder can be written".to_owned()),
        (Some(role), None) => {
            let text = format!("{role} may do what a run needs, and no more to the journal");
            ok("role", "role", text)
        }
        (Some(role), Some((why, next))) => {
            let text = format!("whether {role} may do what a run needs cannot be told yet: {why}");
            warn("role", "untold", text, next)
        }
    }
}

/// The statements that switch on what is switched off, a table each. SQLite switches no trigger
/// off: there all of them are gone.
fn switches(rights: &Rights) -> Vec<String> {
    if rights.role.is_none() {
        return Vec::new();
    }
    // PostgreSQL's own triggers are no owner's to switch.
    let is_system = |trigger: &str| trigger.contains("ConstraintTrigger_");
    let tables: BTreeSet<&String> = rights.unguarded.iter().map(|(on, _)| on).collect();
    let switch = |table: &String| {
        let mut off = rights.unguarded.iter().filter(|(on, _)| on == table);
        match off.any(|(_, trigger)| is_system(trigger)) {
            true => format!("alter table {table} enable trigger all; -- by a superuser"),
            false => format!("alter table {table} enable trigger user;"),
        }
    };
    tables.into_iter().map(switch).collect()
}

/// A line each, in the schema of tieout's tables: the owner's own search path may lead to another,
/// where a function would be made that no trigger calls.
fn in_schema(rights: &Rights, statements: impl Iterator<Item = String>) -> String {
    let path = rights.schema.iter().map(|schema| format!("set search_path = {schema};"));
    path.chain(statements).map(|statement| format!("\n{statement}")).collect()
}

/// Whether what guards tieout's tables is as the migrations made it, and fires.
fn guards_stand(rights: &Rights, say: Say<'_>) -> bool {
    if !rights.altered.is_empty() {
        let what: Vec<&str> = rights.altered.iter().map(|one| one.what.as_str()).collect();
        let text = format!(
            "what guards tieout's tables is not as `tieout db migrate` made it: {}; what stands \
             there can be changed without a trace",
            what.join(", ")
        );
        let made = in_schema(rights, rights.altered.iter().map(|one| one.remade.clone()));
        let next = format!("find out who changed it, and make it again, by the owner:{made}");
        say(fail("role", Exit::Config, "guard_altered", text, next));
    }
    if !rights.silenced.is_empty() {
        let text = "session_replication_role is replica in this login's sessions: no trigger \
                    fires, neither those that guard tieout's tables nor those of yours, and no \
                    foreign key is held"
            .to_owned();
        let resets: Vec<&str> =
            rights.silenced.iter().map(String::as_str).filter(|reset| !reset.is_empty()).collect();
        let next = match resets.is_empty() {
            true => "take session_replication_role out of what the address, PGOPTIONS or the \
                     server's own configuration sets"
                .to_owned(),
            false => resets.join(" "),
        };
        say(fail("role", Exit::Config, "guard_silenced", text, next));
    }
    rights.altered.is_empty() && rights.silenced.is_empty()
}

/// The role for runs, as `db roles` made it here: of several that of this login's own prefix.
fn run_role(rights: &Rights) -> &str {
    let prefix = |role: &str| role.rsplit_once('_').map(|(prefix, _)| prefix.to_owned());
    let own = rights.looks_by.first().and_then(|role| prefix(role));
    let is_own = |role: &&String| own.is_some() && prefix(role) == own;
    let role = rights.runs_by.iter().find(is_own).or(rights.runs_by.first());
    role.map_or("tieout_run", String::as_str)
}

/// Whether it is a login for looking, or a person's, that reads all that it is to read.
fn is_for_looking(rights: &Rights) -> bool {
    let reads = !rights.lacks.iter().any(|right| right.starts_with("select on "));
    !rights.looks_by.is_empty() && reads
}

/// Whether it only looks, or says a person's word: no run can be carried out by it.
fn carries_no_run_out(rights: &Rights) -> bool {
    is_for_looking(rights) && rights.lacks.iter().any(|it| it == TO_THE_JOURNAL)
}

/// What to say of a role that may not do all that a run needs.
fn lacking(rights: &Rights, role: &str) -> Finding {
    if rights.lacks.iter().any(|right| right.starts_with("usage on schema ")) {
        return shut_out(rights, role);
    }
    if is_for_looking(rights) {
        let by = rights.looks_by.join(", ");
        let is_persons = rights.looks_by.iter().any(|it| it.ends_with("_people"));
        let what = if is_persons { "people" } else { "looking" };
        let text = format!("{role} is for {what} ({by}): no run can be carried out by it");
        let run = run_role(rights);
        let next = format!("nothing to do, where this login only looks; a run needs {run}");
        return warn("role", "role_looks", text, next);
    }
    // What one line grants is granted by one; the rest by the roles that are made for it.
    let is_most = rights.lacks.len().saturating_mul(2) > rights.needs && rights.needs > 0;
    if is_most {
        let text = format!("{role} lacks most of what a run needs ({})", tallied(&rights.lacks));
        let run = run_role(rights);
        let prefix = match run.strip_suffix("_run") {
            None | Some("tieout") => String::new(),
            Some(prefix) => format!(" --prefix {prefix}"),
        };
        let next = format!(
            "tieout db roles{prefix} | psql -v ON_ERROR_STOP=1 \"$OWNER_URL\", then grant {run} to \
             \"{role}\";"
        );
        return fail("role", Exit::Config, "rights_missing", text, next);
    }
    let text = format!("{role} lacks {}", listed(&rights.lacks));
    let next = match rights.role {
        Some(_) => grants("grant", &rights.lacks, "to", role),
        None => "let the user that runs tieout write there".to_owned(),
    };
    fail("role", Exit::Config, "rights_missing", text, next)
}

/// What to say of a role that may not look into the schema of tieout's tables. What else it lacks
/// shows when it may; the role for runs, where there is one, has all of it.
fn shut_out(rights: &Rights, role: &str) -> Finding {
    let text = format!("{role} lacks {}: it sees no table of tieout's", listed(&rights.lacks));
    let usage = grants("grant", &rights.lacks, "to", role);
    let next = match rights.runs_by.first() {
        Some(run) if run != role => {
            format!("{usage} or, with all that a run needs, grant {run} to \"{role}\";")
        }
        _none => usage,
    };
    fail("role", Exit::Config, "rights_missing", text, next)
}

/// `select on 2 tables, update on 1`: rights on some columns are counted as those on the table.
fn tallied(rights: &[String]) -> String {
    let mut all: Vec<(&str, usize)> = Vec::new();
    for word in rights.iter().filter_map(|right| right.split(' ').next()) {
        match all.iter_mut().find(|(known, _)| *known == word) {
            Some((_, tables)) => *tables = tables.saturating_add(1),
            None => all.push((word, 1)),
        }
    }
    let parts = all.iter().enumerate().map(|(place, (word, tables))| match place {
        0 => format!("{word} on {}", counted(tables, "table", "tables")),
        _later => format!("{word} on {tables}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Rights by what may be done: (`delete`, its tables).
fn by_right(rights: &[String]) -> Vec<(&str, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for (right, table) in rights.iter().filter_map(|right| right.split_once(" on ")) {
        match all.iter_mut().find(|(known, _)| *known == right) {
            Some((_, tables)) => tables.push_str(&format!(", {table}")),
            None => all.push((right, table.to_owned())),
        }
    }
    all
}

/// `delete on a, b; update on c`.
fn listed(rights: &[String]) -> String {
    let parts = by_right(rights).into_iter().map(|(right, on)| format!("{right} on {on}"));
    let listed = parts.collect::<Vec<_>>().join("; ");
    if listed.is_empty() { rights.join(", ") } else { listed }
}

/// `revoke delete on a, b from role; …`: one statement for each right.
fn grants(verb: &str, rights: &[String], to: &str, role: &str) -> String {
    statements(verb, rights, to, &format!("\"{role}\""))
}

/// The same with the role as SQL names it.
fn statements(verb: &str, rights: &[String], to: &str, role: &str) -> String {
    let statements = by_right(rights)
        .into_iter()
        .map(|(right, on)| format!("{verb} {right} on {on} {to} {role};"));
    statements.collect::<Vec<_>>().join(" ")
}

/// Reads the database's clock between two readings of this machine's.
pub(super) async fn clock(db: Option<&Database>) -> Reading {
    let before = clock::now();
    let there = match db {
        Some(db) => db.now().await.ok(),
        None => None,
    };
    let passed = clock::now().signed_duration_since(before);
    let ahead_ms = there.map(|there| {
        let half = TimeDelta::milliseconds(passed.num_milliseconds() / 2);
        there.signed_duration_since(before).num_milliseconds() - half.num_milliseconds()
    });
    Reading { clock: DatabaseClock::new(there.unwrap_or_else(clock::now)), ahead_ms }
}

impl Reading {
    /// The one line of all clocks.
    pub(super) fn tell(&self, probes: &Probes, say: Say<'_>) {
        let mut parts = Vec::new();
        let mut worst = 0_i64;
        if let Some(ms) = self.ahead_ms {
            parts.push(format!("database {}", secs_text(ms)));
        }
        for (name, probe) in probes {
            if let Some(skew) = probe.as_ref().ok().and_then(|probe| probe.skew_secs) {
                worst = worst.max(skew.saturating_abs());
                parts.push(format!("{name} {}", secs_text(skew.saturating_mul(1_000))));
            }
        }
        let machine = self.ahead_ms.map_or(0, |ms| ms.saturating_abs() / 1_000);
        let text = match parts.as_slice() {
            [] => "no other clock answered".to_owned(),
            some => some.join(", "),
        };
        let next = "let time be set by NTP on the database's server and on this machine";
        say(if worst > SKEW_MAX_SECS {
            let text = format!("{text}: above 2 min no row is handed back");
            fail("clock", Exit::Config, "clock_skew", text, next)
        } else if worst.max(machine) > SKEW_NOTED_SECS {
            warn("clock", "clock_skew", text, next)
        } else {
            ok("clock", "clock", text)
        });
    }
}

/// `+0.4 s`, by a tenth.
fn secs_text(ms: i64) -> String {
    let tenths = ms.saturating_abs().saturating_add(50) / 100;
    let sign = if ms < 0 { "-" } else { "+" };
    format!("{sign}{}.{} s", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_by_a_tenth() {
        for (ms, text) in [(0, "+0.0 s"), (-40, "-0.0 s"), (60, "+0.1 s"), (-61_980, "-62.0 s")] {
            assert_eq!(secs_text(ms), text);
        }
    }

    #[test]
    fn guards_are_switched_on_by_whoever_may() {
        let off = [
            ("tieout_cases", "RI_ConstraintTrigger_a_16405"),
            ("tieout_cases", "tieout_cases_close_guard"),
            ("tieout_journal", "tieout_journal_no_delete"),
            ("tieout_journal", "tieout_journal_no_truncate"),
        ];
        let rights = Rights {
            role: Some("run".to_owned()),
            unguarded: off.map(|(on, trigger)| (on.to_owned(), trigger.to_owned())).to_vec(),
            schema: Some("\"Shop\"".to_owned()),
            ..Rights::default()
        };
        assert_eq!(
            in_schema(&rights, switches(&rights).into_iter()),
            "\nset search_path = \"Shop\";\
             \nalter table tieout_cases enable trigger all; -- by a superuser\
             \nalter table tieout_journal enable trigger user;"
        );
        assert!(switches(&Rights { role: None, ..rights }).is_empty());
    }

    #[test]
    fn rights_become_one_statement_each() {
        let rights = ["delete on a", "update on b", "delete on c"].map(str::to_owned);
        assert_eq!(
            grants("revoke", &rights, "from", "run"),
            "revoke delete on a, c from \"run\"; revoke update on b from \"run\";"
        );
        assert_eq!(listed(&rights), "delete on a, c; update on b");
        assert_eq!(tallied(&rights), "delete on 2 tables, update on 1");
        assert_eq!(listed(&["writing /x".to_owned()]), "writing /x");
    }
}
