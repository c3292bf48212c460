//! Whether the triggers that guard tieout's tables, and their functions, are those that the
//! migrations made: whoever puts another function in the place of one leaves the trigger standing.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::postgres::PgPool;

use crate::store::error::StoreError;
use crate::store::inspect::{Altered, Rights};
use crate::store::postgres::inspect::{parsed, texts};
use crate::store::postgres::migrate::{MIGRATIONS, state};
use crate::store::postgres::sql::Sql;

/// The functions and triggers that guard tieout's tables: those that are there.
const THERE: &str = "\
select json_build_array(c.relname, t.tgname, p.proname, p.prosrc)::text
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where c.relname like 'tieout\\_%' and c.relkind = 'r' and pg_table_is_visible(c.oid)
    and not t.tgisinternal
union all
select json_build_array('', '', p.proname, p.prosrc)::text from pg_proc p
where p.proname like 'tieout\\_%' and p.pronamespace = (select c.relnamespace from pg_class c
    where c.relname = 'tieout_journal' and c.relkind = 'r' and pg_table_is_visible(c.oid))";

/// A setting of every guard: without it, whoever may make a function could put one before
/// PostgreSQL's own.
const SEARCH_PATH: &str = "search_path = pg_catalog, pg_temp";

/// A function as a migration makes it.
struct Function {
    /// Up to its body.
    head: String,
    body: &'static str,
}

impl Function {
    /// The statement that makes it again.
    fn remade(&self) -> String {
        let head = self.head.replacen("create function", "create or replace function", 1);
        let made = format!("{head} $${}$$;", self.body);
        let signature = head.split_once("function ").map_or("", |(_, rest)| rest);
        let signature = signature.split_once(" returns").map_or("", |(signature, _)| signature);
        match head.contains(SEARCH_PATH) {
            true => made,
            // A later migration set it, and who makes a function again unsets it.
            false => format!("{made}\nalter function {signature} set {SEARCH_PATH};"),
        }
    }
}

/// A trigger as a migration makes it.
struct Trigger {
    /// The name of what it calls.
    calls: String,
    statement: String,
}

/// What the migrations make.
#[derive(Default)]
struct Made {
    functions: BTreeMap<String, Function>,
    /// By table and name.
    triggers: BTreeMap<(String, String), Trigger>,
}

impl Made {
    /// What stands between two bodies of functions; says which function it leaves to its body.
    fn read(&mut self, text: &str) -> Option<(String, String)> {
        let is_said = |line: &&str| !line.trim_start().starts_with("--");
        let text = text.lines().filter(is_said).collect::<Vec<_>>().join("\n");
        let mut last = None;
        for statement in text.split(';') {
            let words: Vec<&str> = statement.split_whitespace().collect();
            last = None;
            match words.as_slice() {
                ["create", "function", name, ..]
                | ["create", "or", "replace", "function", name, ..] => {
                    last = Some((called(name), words.join(" ")));
                }
                ["create", "trigger", name, rest @ ..]
                | ["create", "constraint", "trigger", name, rest @ ..] => {
                    let after = |word: &str| {
                        let at = rest.iter().position(|it| *it == word)?;
                        rest.get(at.saturating_add(1)).map(|it| called(it))
                    };
                    if let (Some(table), Some(calls)) = (after("on"), after("function")) {
                        let statement = format!("{};", words.join(" "));
                        let trigger = Trigger { calls, statement };
                        self.triggers.insert((table, (*name).to_owned()), trigger);
                    }
                }
                ["drop", "trigger", name, "on", table] => {
                    self.triggers.remove(&((*table).to_owned(), (*name).to_owned()));
                }
                _other => {}
            }
        }
        last
    }

    /// What stands once this many migrations were carried out.
    fn by(number: i64) -> Self {
        let mut made = Self::default();
        for (_, _, text) in MIGRATIONS.iter().filter(|(own, ..)| *own <= number) {
            let mut open: Option<(String, String)> = None;
            for (at, part) in text.split("$$").enumerate() {
                match (at % 2, open.take()) {
                    (0, _) => open = made.read(part),
                    (_, Some((name, head))) => {
                        made.functions.insert(name, Function { head, body: part });
                    }
                    (_, None) => {}
                }
            }
        }
        made
    }
}

/// A name without its arguments.
fn called(word: &str) -> String {
    word.split('(').next().unwrap_or_default().to_owned()
}

/// Adds what is gone, and what is not as the migrations made it.
pub(super) async fn look(pool: &PgPool, rights: &mut Rights) -> Result<(), StoreError> {
    // Where the number may not be read, what this role lacks is told.
    let Ok((found, wanted)) = state(pool).await else { return Ok(()) };
    // What a newer tieout made is not known here.
    if found > wanted || found == 0 {
        return Ok(());
    }
    let mut calls: BTreeMap<(String, String), String> = BTreeMap::new();
    // A trigger may call a function of the same name in another schema.
    let mut bodies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in texts(pool, Sql::new(THERE)).await? {
        let (table, trigger, function, text): (String, String, String, String) = parsed(&row)?;
        bodies.entry(function.clone()).or_default().insert(text);
        if !trigger.is_empty() {
            calls.insert((table, trigger), function);
        }
    }
    let made = Made::by(found);
    for (at, trigger) in &made.triggers {
        let (table, name) = at;
        match calls.get(at) {
            None => {
                if !rights.unguarded.contains(at) {
                    rights.unguarded.push(at.clone());
                }
                rights.gone.push(trigger.statement.clone());
            }
            Some(other) if *other != trigger.calls => rights.altered.push(Altered {
                what: format!("{name} of {table} calls {other}"),
                remade: format!("drop trigger {name} on {table}; {}", trigger.statement),
            }),
            Some(_same) => {}
        }
    }
    for (name, function) in &made.functions {
        let is_made = |bodies: &BTreeSet<String>| bodies.iter().all(|it| it == function.body);
        if !bodies.get(name).is_some_and(is_made) {
            rights.altered.push(Altered { what: name.clone(), remade: function.remade() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guards_are_read_out_of_the_migrations() {
        let number = MIGRATIONS.last().unwrap().0;
        let (first, all) = (Made::by(1), Made::by(number));
        assert_eq!(first.functions.keys().collect::<Vec<_>>(), ["tieout_append_only"]);
        assert_eq!(first.triggers.len(), 4);
        let at = ("tieout_journal".to_owned(), "tieout_journal_append_only".to_owned());
        let (before, now) = (&first.triggers[&at].statement, &all.triggers[&at].statement);
        assert_ne!(before, now, "another migration changed it");
        assert_eq!(all.triggers[&at].calls, "tieout_append_only");
        let at = ("tieout_journal".to_owned(), "tieout_journal_no_delete".to_owned());
        assert_eq!(all.triggers[&at].calls, "tieout_unless_pruned");
        let whole: String = MIGRATIONS.iter().map(|(.., text)| *text).collect();
        let created = |words: &str| {
            let lines = whole.lines().filter(|line| line.starts_with(words));
            lines.count()
        };
        let triggers = created("create trigger ") + created("create constraint trigger ");
        assert_eq!(all.triggers.len(), triggers - created("drop trigger "));
        assert_eq!(all.functions.len(), created("create function "));
        for function in all.functions.values() {
            let remade = function.remade();
            assert!(remade.starts_with("create or replace function tieout_"), "{remade}");
            assert!(remade.contains(SEARCH_PATH) && !remade.contains("function  set"), "{remade}");
        }
        let remade = all.functions["tieout_may_speak_for_run"].remade();
        let alters = "alter function tieout_may_speak_for_run(home text, run text) set search_path";
        assert!(remade.contains(alters), "{remade}");
    }
}
