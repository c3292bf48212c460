//! Whether the triggers that guard tieout's tables, and their functions, are those that the
//! migrations made: whoever puts another function in the place of one leaves the trigger standing,
//! and a trigger of the same name may fire at something else, or never.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::postgres::PgPool;

use crate::store::error::StoreError;
use crate::store::inspect::{Altered, Rights};
use crate::store::postgres::inspect::{parsed, texts};
use crate::store::postgres::migrate::{MIGRATIONS, state};
use crate::store::postgres::sql::Sql;

/// The schema of tieout's tables, as SQL names it.
const SCHEMA: &str = "\
select quote_ident(n.nspname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relname = 'tieout_journal' and c.relkind = 'r' and pg_table_is_visible(c.oid)";

/// The functions and triggers that guard tieout's tables: those that are there.
const THERE: &str = "\
select json_build_array(c.relname, t.tgname, pg_get_triggerdef(t.oid, true), p.proname, p.prosrc,
    p.prosecdef, coalesce(array_to_string(p.proconfig, '; '), ''))::text
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where c.relname like 'tieout\\_%' and c.relkind = 'r' and pg_table_is_visible(c.oid)
    and not t.tgisinternal
union all
select json_build_array('', '', '', p.proname, p.prosrc,
    p.prosecdef, coalesce(array_to_string(p.proconfig, '; '), ''))::text
from pg_proc p
where p.proname like 'tieout\\_%' and p.pronamespace = (select c.relnamespace from pg_class c
    where c.relname = 'tieout_journal' and c.relkind = 'r' and pg_table_is_visible(c.oid))";

/// A setting of every guard, once a later migration made it so: without it, whoever may make a
/// function could put one before PostgreSQL's own.
const SEARCH_PATH: &str = "search_path = pg_catalog, pg_temp";

/// That setting as the catalogue keeps it.
const SEARCH_PATH_KEPT: &str = "search_path=pg_catalog, pg_temp";

/// A function as a migration makes it.
struct Function {
    /// Up to its body.
    head: String,
    body: &'static str,
    /// Whether its search path is set.
    is_settled: bool,
}

impl Function {
    /// How it differs from what is called so.
    fn differs(&self, there: &BTreeSet<Body>) -> Option<&'static str> {
        let settings = if self.is_settled { SEARCH_PATH_KEPT } else { "" };
        if there.is_empty() || there.iter().any(|it| it.text != self.body) {
            return Some("");
        }
        if there.iter().any(|it| it.is_definer) {
            return Some(" runs as its owner");
        }
        there.iter().any(|it| it.settings != settings).then_some(" has other settings")
    }

    /// The statement that makes it again.
    fn remade(&self) -> String {
        let head = self.head.replacen("create function", "create or replace function", 1);
        let made = format!("{head} $${}$$;", self.body);
        let signature = head.split_once("function ").map_or("", |(_, rest)| rest);
        let signature = signature.split_once(" returns").map_or("", |(signature, _)| signature);
        match head.contains(SEARCH_PATH) || !self.is_settled {
            true => made,
            // A later migration set it, and who makes a function again unsets it.
            false => format!("{made}\nalter function {signature} set {SEARCH_PATH};"),
        }
    }
}

/// A trigger as a migration makes it, or as PostgreSQL tells it.
struct Trigger {
    /// The name of what it calls.
    calls: String,
    statement: String,
}

/// A function of such a name that is there.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Body {
    text: String,
    /// It does what its owner may do, whoever calls it.
    is_definer: bool,
    settings: String,
}

/// What is there.
#[derive(Default)]
struct There {
    /// A trigger may call a function of the same name in another schema.
    functions: BTreeMap<String, BTreeSet<Body>>,
    /// By table and name.
    triggers: BTreeMap<(String, String), Trigger>,
}

impl There {
    async fn read(pool: &PgPool) -> Result<Self, StoreError> {
        type Row = (String, String, String, String, String, bool, String);
        let mut there = Self::default();
        for row in texts(pool, Sql::new(THERE)).await? {
            let (table, name, statement, calls, text, is_definer, settings): Row = parsed(&row)?;
            let body = Body { text, is_definer, settings };
            there.functions.entry(calls.clone()).or_default().insert(body);
            if !name.is_empty() {
                there.triggers.insert((table, name), Trigger { calls, statement });
            }
        }
        Ok(there)
    }
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
                ["alter", "function", name, .., "set", "search_path", "=", _, _] => {
                    if let Some(function) = self.functions.get_mut(&called(name)) {
                        function.is_settled = true;
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
                        let is_settled = head.contains(SEARCH_PATH);
                        made.functions.insert(name, Function { head, body: part, is_settled });
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

/// When a trigger fires, and with which arguments, in words that are the same in a migration's
/// statement and in PostgreSQL's own.
fn fires(statement: &str) -> String {
    let text = statement.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let (text, call) = text.split_once(" execute function ").unwrap_or((&text, ""));
    let arguments = call.split_once('(').map_or("", |(_, rest)| rest).trim_end_matches(';');
    let (text, when) = text.split_once(" when ").unwrap_or((text, ""));
    let (what, on) = text.split_once(" on ").unwrap_or((text, ""));
    let each = on.split_once(' ').map_or("", |(_table, each)| each);
    let kind = what.split(' ').nth(1).unwrap_or_default();
    // PostgreSQL has an order of its own for events.
    let (_, events) =
        what.split_once(" before ").or(what.split_once(" after ")).unwrap_or_default();
    let events: BTreeSet<&str> = events.split(" or ").collect();
    let time = if what.contains(" before ") { "before" } else { "after" };
    format!("{kind} {time} {events:?} {each} {} ({arguments}", condition(when))
}

/// The words of a condition. PostgreSQL tells it in others, and one version not as the next: a
/// comparison of rows as one of each of their columns, `in` as `any (array …)`.
fn condition(when: &str) -> String {
    let is_word = |letter: char| letter.is_alphanumeric() || "_.'".contains(letter);
    let is_operator = |letter: char| "<>=!~+-*/|&%".contains(letter);
    let words = when.split(|letter: char| !is_word(letter));
    let operators = when.split(|letter: char| !is_operator(letter));
    let ands = words.clone().filter(|word| *word == "and").count();
    let is_said =
        |word: &&str| !["", "=", "in", "any", "array", "row", "or", "text"].contains(word);
    let all: BTreeSet<&str> = words.chain(operators).filter(is_said).collect();
    format!("{ands} {all:?}")
}

impl Made {
    /// Adds what is gone, and what is not as it was made. Functions come before what calls them.
    fn compare(&self, there: &There, rights: &mut Rights) {
        let none = BTreeSet::new();
        for (name, function) in &self.functions {
            let Some(how) = function.differs(there.functions.get(name).unwrap_or(&none)) else {
                continue;
            };
            let went = |(at, trigger): (&(String, String), &Trigger)| {
                trigger.calls == *name && !there.triggers.contains_key(at)
            };
            let is_gone = !there.functions.contains_key(name);
            if is_gone && self.triggers.iter().any(went) {
                rights.gone.push(function.remade());
            } else {
                let what = format!("{name}{how}");
                rights.altered.push(Altered { what, remade: function.remade() });
            }
        }
        for (at, trigger) in &self.triggers {
            let (table, name) = at;
            let how = match there.triggers.get(at) {
                None => {
                    if !rights.unguarded.contains(at) {
                        rights.unguarded.push(at.clone());
                    }
                    rights.gone.push(trigger.statement.clone());
                    continue;
                }
                Some(own) if own.calls != trigger.calls => format!(" calls {}", own.calls),
                Some(own) if fires(&own.statement) != fires(&trigger.statement) => {
                    " fires at something else".to_owned()
                }
                Some(_same) => continue,
            };
            rights.altered.push(Altered {
                what: format!("{name} of {table}{how}"),
                remade: format!("drop trigger {name} on {table}; {}", trigger.statement),
            });
        }
    }
}

/// Adds what is gone, and what is not as the migrations made it.
pub(super) async fn look(pool: &PgPool, rights: &mut Rights) -> Result<(), StoreError> {
    rights.schema = texts(pool, Sql::new(SCHEMA)).await?.into_iter().next();
    // Where the number may not be read, what this role lacks is told.
    let Ok((found, wanted)) = state(pool).await else { return Ok(()) };
    // What a newer tieout made is not known here.
    if found > wanted || found == 0 {
        return Ok(());
    }
    Made::by(found).compare(&There::read(pool).await?, rights);
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

    #[test]
    fn a_trigger_as_the_server_tells_it_fires_as_its_migration_says() {
        let all = Made::by(MIGRATIONS.last().unwrap().0);
        // As PostgreSQL tells those whose words it changes.
        for (table, name, told) in [
            (
                "tieout_prunes",
                "tieout_prunes_done",
                "CREATE CONSTRAINT TRIGGER tieout_prunes_done AFTER INSERT ON tieout_prunes \
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
                 EXECUTE FUNCTION tieout_prune_is_done()",
            ),
            (
                "tieout_prunes",
                "tieout_prunes_guard",
                "CREATE TRIGGER tieout_prunes_guard BEFORE INSERT OR DELETE OR UPDATE \
                 ON tieout_prunes FOR EACH ROW EXECUTE FUNCTION tieout_prune_guard()",
            ),
            (
                "tieout_case_notes",
                "tieout_case_notes_line",
                "CREATE TRIGGER tieout_case_notes_line BEFORE INSERT ON tieout_case_notes \
                 FOR EACH ROW EXECUTE FUNCTION tieout_one_line_guard('by_whom', 'text')",
            ),
            (
                "tieout_case_notes",
                "tieout_case_notes_proposal",
                "CREATE TRIGGER tieout_case_notes_proposal BEFORE INSERT ON tieout_case_notes \
                 FOR EACH ROW WHEN (new.run_id IS NULL AND (new.kind = ANY (ARRAY[\
                 'proposed'::text, 'approved'::text, 'rejected'::text, 'withdrawn'::text]))) \
                 EXECUTE FUNCTION tieout_case_note_proposal_guard()",
            ),
            (
                "tieout_cases",
                "tieout_cases_close_guard",
                "CREATE TRIGGER tieout_cases_close_guard BEFORE UPDATE ON tieout_cases \
                 FOR EACH ROW WHEN ((new.subject_kind = ANY (ARRAY['row'::text, \
                 'line'::text])) AND (new.state IS DISTINCT FROM old.state OR \
                 new.closed_at IS DISTINCT FROM old.closed_at OR \
                 new.resolution IS DISTINCT FROM old.resolution)) \
                 EXECUTE FUNCTION tieout_case_close_guard()",
            ),
            (
                "tieout_runs",
                "tieout_runs_closed",
                "CREATE TRIGGER tieout_runs_closed BEFORE UPDATE ON tieout_runs FOR EACH ROW \
                 WHEN (old.state <> 'running'::text) EXECUTE FUNCTION tieout_closed_run_guard()",
            ),
        ] {
            let made = &all.triggers[&(table.to_owned(), name.to_owned())].statement;
            assert_eq!(fires(told), fires(made));
        }
    }

    #[test]
    fn a_trigger_of_the_same_name_fires_at_something_else() {
        let all = Made::by(MIGRATIONS.last().unwrap().0);
        for trigger in all.triggers.values() {
            let made = &trigger.statement;
            let (head, call) = made.split_once(" execute ").unwrap();
            let swapped = |one: &str, other: &str| match made.contains(one) {
                true => made.replacen(one, other, 1),
                false => made.replacen(other, one, 1),
            };
            let (bare, otherwise) = match head.split_once(" when ") {
                None => (head, "new.at is null".to_owned()),
                Some((bare, when)) => (bare, format!("{when} and false")),
            };
            let mut others = vec![
                swapped(" before ", " after "),
                swapped("for each row", "for each statement"),
                swapped("create trigger", "create constraint trigger"),
                made.replacen(" on ", " of at on ", 1),
                format!("{head} execute {}", call.replacen('(', "('other', ", 1)),
                format!("{bare} when ({otherwise}) execute {call}"),
                format!("{bare} when (false) execute {call}"),
            ];
            if bare != head {
                others.push(format!("{bare} execute {call}"));
            }
            let (what, on) = made.split_once(" on ").unwrap();
            let event = if what.ends_with("truncate") { "insert" } else { "truncate" };
            let (start, _) = what.rsplit_once(' ').unwrap();
            others.push(format!("{start} {event} on {on}"));
            for other in &others {
                assert_ne!(fires(other), fires(made), "{other}");
            }
        }
    }

    /// What is there where nobody changed anything.
    fn untouched(made: &Made) -> There {
        let settings = SEARCH_PATH_KEPT.to_owned();
        let body = |function: &Function| Body {
            text: function.body.to_owned(),
            is_definer: false,
            settings: settings.clone(),
        };
        let functions = made.functions.iter();
        let triggers = made.triggers.iter().map(|(at, trigger)| {
            let Trigger { calls, statement } = trigger;
            (at.clone(), Trigger { calls: calls.clone(), statement: statement.clone() })
        });
        There {
            functions: functions.map(|(name, it)| (name.clone(), [body(it)].into())).collect(),
            triggers: triggers.collect(),
        }
    }

    #[test]
    fn a_function_is_made_before_the_triggers_that_call_it() {
        let made = Made::by(MIGRATIONS.last().unwrap().0);
        let mut rights = Rights::default();
        made.compare(&untouched(&made), &mut rights);
        assert_eq!(rights, Rights::default());
        let mut there = untouched(&made);
        there.functions.remove("tieout_unless_pruned");
        there.triggers.retain(|_, trigger| trigger.calls != "tieout_unless_pruned");
        made.compare(&there, &mut rights);
        assert_eq!((rights.unguarded.len(), rights.altered.len()), (2, 0));
        let starts: Vec<_> = rights.gone.iter().map(|it| it.split(' ').next().unwrap()).collect();
        assert_eq!(starts, ["create", "create", "create"]);
        assert!(rights.gone[0].contains("function tieout_unless_pruned()"), "{}", rights.gone[0]);
        assert!(rights.gone[1].starts_with("create trigger "), "{}", rights.gone[1]);
    }

    #[test]
    fn what_a_function_may_do_is_compared_too() {
        let made = Made::by(MIGRATIONS.last().unwrap().0);
        let name = "tieout_unless_pruned";
        for (is_definer, settings, what) in [
            (true, SEARCH_PATH_KEPT, Some("tieout_unless_pruned runs as its owner")),
            (false, "", Some("tieout_unless_pruned has other settings")),
            (false, SEARCH_PATH_KEPT, None),
        ] {
            let mut there = untouched(&made);
            let (text, settings) = (made.functions[name].body.to_owned(), settings.to_owned());
            there.functions.insert(name.to_owned(), [Body { text, is_definer, settings }].into());
            let mut rights = Rights::default();
            made.compare(&there, &mut rights);
            assert_eq!(rights.altered.first().map(|one| one.what.as_str()), what);
        }
        assert!(!Made::by(16).functions[name].is_settled && made.functions[name].is_settled);
    }
}
