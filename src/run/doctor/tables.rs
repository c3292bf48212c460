//! The mapped tables: does each mapping fit, and what will tieout meet there?

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::decide::policy::Mode;
use crate::exit::Exit;
use crate::model::card::masked;
use crate::model::count::counted;
use crate::model::money::{
    AmountError, AmountUnit, Currency, Exactness, grouped_text, parse_amount,
};
use crate::model::reason::Outcome;
use crate::model::time::{later, to_short_text};
use crate::model::transaction::Kind;
use crate::psp::settings::PspKind;
use crate::run::doctor::apart::exclude_each_other;
use crate::run::doctor::database::AFTER;
use crate::run::doctor::{Finding, Indexes, Level, Say, fail, ok, warn};
use crate::run::drive::ahead_words;
use crate::run::error::{chain, store_exit};
use crate::run::fitting::map_tables;
use crate::run::left_out;
use crate::run::scene::ahead_max;
use crate::run::setup::{AccountSetup, Setup};
use crate::store::database::Database;
use crate::store::decode::kind_of;
use crate::store::driver::Driver;
use crate::store::error::{Mend, StoreError};
use crate::store::inspect::{
    Counterpart, Inspect, NamedRow, RefusedRows, STATUS_ROWS, SeenTag, Standing, index_columns,
};
use crate::store::literals::ends;
use crate::store::mapping::TableSettings;
use crate::store::notation::Notation;
use crate::store::records::ClaimFilter;
use crate::store::source_table::{SourceTable, TypeClass};
use crate::store::tellers::{
    Movement, flag_of, kind_word, may_be_on_its_way, says_outcome, takes_back,
};

/// Tags that are compared with each other.
const TAGS: i64 = 20_000;

/// Stuck rows of which the written table's row is looked at too.
const COUNTERPARTS: i64 = 100;

/// The second at which 2005 began: before that nobody paid at a PSP's API.
const OLDEST: i64 = 1_104_537_600;

/// Tags that are looked for in another table.
const TAGS_ELSEWHERE: usize = 50;

/// Tags of which it is looked whether further rows have them.
const TAGS_BESIDE: usize = 500;

/// Characters that the value of a Stripe metadata key holds.
const TAG_MAX: usize = 500;

/// So many values that are all none of what a field needs are no accident.
const VALUES: usize = 3;

/// The beginning of 2000, in Unix seconds: what stands before it is another number than a time.
const NO_PAYMENT_BEFORE: i64 = 946_684_800;

/// Names shown of many.
const SHOWN: usize = 5;

/// Looks at every mapping; those that fit come back.
pub(super) async fn look(
    setup: &Setup,
    db: &Database,
    indexes: &mut Indexes,
    say: Say<'_>,
) -> Vec<SourceTable> {
    let mut mapped = Vec::new();
    let mut tags = BTreeMap::new();
    for settings in &setup.tables {
        let beside = left_out::beside(settings, &setup.tables);
        match map_tables(db, std::slice::from_ref(settings), &setup.accounts).await {
            Ok(tables) => {
                for table in tables {
                    let found = one(db, &table, &beside, &setup.accounts, indexes, say).await;
                    tags.insert(table.settings.name.clone(), found);
                    mapped.push(table);
                }
            }
            Err(StoreError::Mapping(errors)) => {
                for error in errors {
                    let text =
                        format!("{}: {}; expected {}", error.field, error.problem, error.expected);
                    let next = match error.mend {
                        Mend::Mapping => "correct tieout.toml, then tieout config check --connect",
                        Mend::Rights | Mend::Sight => error.mend.next(),
                    };
                    say(fail(&settings.name, Exit::Config, "mapping", text, next));
                }
            }
            Err(error) => {
                let next = error.hint().unwrap_or_else(|| "tieout doctor".to_owned());
                let exit = store_exit(&error);
                say(fail(&settings.name, exit, "untold", chain(&error), next));
            }
        }
    }
    shared_by_tables(db, &mapped, &tags, say).await;
    taken_twice(db, &mapped).await.into_iter().for_each(say);
    mapped
}

/// How a table stands. A status that another mapping of it names may have no row of this one.
async fn standing(
    db: &Database,
    table: &SourceTable,
    beside: &[&TableSettings],
) -> Result<Standing, StoreError> {
    let mut standing = db.standing(table).await?;
    standing.unmapped.retain(|value| !left_out::is_left_to(&table.settings, beside, value));
    Ok(standing)
}

/// Everything about one table; a few of its tags by account come back. `beside`: the other
/// mappings of what it reads.
async fn one(
    db: &Database,
    table: &SourceTable,
    beside: &[&TableSettings],
    accounts: &BTreeMap<String, AccountSetup>,
    indexes: &mut Indexes,
    say: Say<'_>,
) -> BTreeMap<String, Vec<String>> {
    let name = table.settings.name.as_str();
    let mut findings = Vec::new();
    let mut rows = None;
    match standing(db, table, beside).await {
        Ok(mut standing) => {
            rows = standing.rows;
            standing.refused_rows.retain(|told| is_written(table, accounts, told.outcome));
            for (column, create) in &standing.lookups {
                let create = create.clone().unwrap_or_else(|| index_of_view(table, column));
                indexes.insert((name.to_owned(), column.clone()), create);
            }
            of_standing(table, &standing, &mut findings);
            of_untold(db, name, &standing.untold, &mut findings).await;
        }
        Err(error) => findings.push(warn(name, "untold", chain(&error), "tieout doctor")),
    }
    findings.extend(unread_values(db, table).await);
    findings.extend(unseen(db, table).await);
    findings.extend(unseen_targets(db, table).await);
    let mut notes = Vec::new();
    match of_where(db, table, beside).await {
        Ok(Some(note)) if note.level == Level::Ok => notes.push(note),
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(warn(name, "untold", chain(&error), "tieout doctor")),
    }
    findings.extend(written(db, table).await);
    findings.extend(times(db, table, accounts).await);
    of_mapping(table, &mut findings);
    let mut by_account = BTreeMap::new();
    let mut told = BTreeSet::new();
    for account in table.settings.accounts.values().collect::<BTreeSet<_>>() {
        match db.tags(table, account, TAGS).await {
            Ok(tags) => {
                if told.insert(table.tag_template(account).cloned().map(|t| format!("{t:?}"))) {
                    let shared = shared_by_rows(db, table, account, &tags).await;
                    of_tags(table, account, (&tags, shared), &mut findings);
                }
                if is_by_files(accounts, account) {
                    findings.extend(like_cards(table, account, &tags));
                }
                let some = texts(&tags).take(TAGS_ELSEWHERE).cloned().collect();
                by_account.insert(account.clone(), some);
            }
            Err(error) => {
                let text = format!("tags could not be compared: {}", chain(&error));
                findings.push(warn(name, "untold", text, "tieout doctor"));
            }
        }
    }
    if findings.is_empty() {
        let rows = rows.map_or(String::new(), |rows| {
            let rows = grouped_text(i128::from(rows), 0);
            format!(", about {}", counted(rows, "row", "rows"))
        });
        let mode = table.settings.mode.as_str();
        let text = format!("{} fits{rows}, mode {mode}", bare(&table.write.to_string()));
        findings.push(ok(name, "table", text));
    }
    findings.extend(looked_at_in_part(table, rows));
    findings.extend(notes.into_iter().chain(of_float(table)));
    findings.into_iter().for_each(say);
    by_account
}

/// Stuck rows that `where` leaves out: a note, where it may well be meant.
async fn of_where(
    db: &Database,
    table: &SourceTable,
    beside: &[&TableSettings],
) -> Result<Option<Finding>, StoreError> {
    let left = db.left_out(table).await?;
    if left.rows == 0 {
        return Ok(None);
    }
    let name = table.settings.name.as_str();
    let text = format!("{}; no run looks at them", left_out::words(table, &left));
    let code = "where_leaves_out";
    Ok(Some(match () {
        () if left_out::is_mistake(&left) && beside.is_empty() => {
            fail(name, Exit::Config, code, text, left_out::advice(table, &left))
        }
        () if left_out::is_whole(&left) || left_out::is_by_null(&left) => {
            warn(name, code, text, left_out::advice(table, &left))
        }
        () => ok(name, code, text),
    }))
}

/// Amounts that are kept in binary: what such a column can hold is not what was meant.
fn of_float(table: &SourceTable) -> Option<Finding> {
    let amount = table.cells.get(table.layout.amount)?;
    if amount.class != TypeClass::Float {
        return None;
    }
    let text = format!(
        "{} may hold binary floats ({}): a value within a millionth of a whole minor unit is read \
         as that, and a row with any other needs a person",
        amount.name, amount.type_name
    );
    Some(ok(&table.settings.name, "amount_float", text))
}

/// What a run cannot see: values of the status between the ends of a table that is walked by none.
fn looked_at_in_part(table: &SourceTable, rows: Option<i64>) -> Option<Finding> {
    let is_whole = rows.is_none_or(|rows| rows <= STATUS_ROWS);
    let is_known = table.knows_all_labels();
    if table.status_indexed || table.status_folded || is_known || is_whole {
        return None;
    }
    let text = format!(
        "values of {} that nobody mapped are looked for in the first and the last {} rows: no \
         index of all rows leads with it",
        table.settings.status,
        grouped_text(i128::from(STATUS_ROWS), 0)
    );
    Some(ok(&table.settings.name, "status_in_part", text))
}

/// A name as people write it.
fn bare(ident: &str) -> String {
    let name = ident.replace('"', "");
    name.strip_prefix("main.").map_or(name.clone(), str::to_owned)
}

fn of_standing(table: &SourceTable, standing: &Standing, findings: &mut Vec<Finding>) {
    let name = table.settings.name.as_str();
    let status = &table.settings.status;
    findings.extend(of_barred(name, &standing.barred));
    findings.extend(standing.refused_rows.iter().map(|refused| of_refused(table, refused)));
    of_statuses(table, standing, findings);
    findings.extend(of_labels(table, standing));
    for (relation, trigger) in &standing.triggers {
        let text = format!("trigger {trigger} of {} fires when a row is written", bare(relation));
        let next = "read what it does: where it writes another mapped table, it may undo or \
                    repeat what a run writes there";
        findings.push(warn(name, "trigger", text, next));
    }
    for (relation, index) in &standing.unique {
        let text = format!(
            "the unique index {index} of {} covers {status}: a row whose new status it refuses \
             becomes a case",
            bare(relation)
        );
        let next = "nothing to do, where two rows of one status are a mistake indeed";
        findings.push(warn(name, "unique_over_status", text, next));
    }
    if let Some(wanted) = &standing.index_wanted {
        let text = format!(
            "no index leads to the stuck rows: each run would walk {} whole",
            bare(&wanted.table)
        );
        findings.push(warn(name, "no_index", text, wanted.create.clone()));
    }
    for (column, create) in &standing.lookups {
        let columns = index_columns(table, column).join(" or ");
        let text = format!("no index leads with {columns}, by which rows are looked up");
        let next = create.clone().unwrap_or_else(|| index_of_view(table, column));
        findings.push(warn(name, "no_lookup_index", text, next));
    }
    of_accounts(table, standing, findings);
    of_kinds(table, standing, findings);
}

/// What could not be found out. Tables of tieout's may be there, and not for this login to see.
async fn of_untold(db: &Database, name: &str, untold: &[String], findings: &mut Vec<Finding>) {
    for untold in untold {
        let told =
            |why: &str, next| warn(name, "untold", format!("could not be told: {why}"), next);
        findings.push(match is_unmade(untold) {
            false => told(untold, "tieout doctor"),
            true => match db.schema_state().await {
                Ok(_unmade) => told(untold, "tieout db migrate"),
                Err(error) => told(&chain(&error), AFTER),
            },
        });
    }
}

/// Whether what could not be told needs tables of tieout's that are not there yet.
fn is_unmade(untold: &str) -> bool {
    let is_missing = untold.contains("relation \"tieout_") && untold.contains("does not exist");
    is_missing || untold.contains("no such table: tieout_")
}

/// Times of stuck rows that no payment has: a unit, a zone or a column is taken for another.
async fn times(
    db: &Database,
    table: &SourceTable,
    accounts: &BTreeMap<String, AccountSetup>,
) -> Vec<Finding> {
    let name = table.settings.name.as_str();
    let mut findings = Vec::new();
    // What cannot be found out is told of the way to stuck rows, which these go by as well.
    let filter = ClaimFilter::default();
    if let Ok(now) = db.now().await
        && let Ok(ahead) = db.stuck_ahead(table, &filter, later(now, ahead_max(accounts))).await
        && let Some(words) = ahead_words(&ahead)
    {
        let next = "correct created, attempted or time of [[table]]: no run takes a row before its \
                    time has come";
        findings.push(warn(name, "times_ahead", words, next));
    }
    if let Ok(Some(newest)) = db.newest_stuck(table).await
        && newest.timestamp() < OLDEST
    {
        let text = format!(
            "the newest stuck row was made at {}: seconds are read as milliseconds, or the column \
             is no time",
            to_short_text(newest)
        );
        let next = "correct created or time of [[table]]";
        findings.push(warn(name, "times_long_ago", text, next));
    }
    findings
}

/// Values of the mapping that a constraint refuses, each with the constraint.
fn of_barred(name: &str, barred: &[(String, String)]) -> Vec<Finding> {
    let told = barred.iter().map(|(value, check)| {
        let text = format!("the {check} refuses `{value}`, which the mapping names");
        let next = "correct the value in [[table.map]], or let the constraint take it";
        fail(name, Exit::Config, "check_refuses", text, next)
    });
    told.collect()
}

/// Whether any account's rows of the table are written for an outcome, by its mode.
fn is_written(
    table: &SourceTable,
    accounts: &BTreeMap<String, AccountSetup>,
    outcome: Outcome,
) -> bool {
    let settings = &table.settings;
    let mut own = settings.accounts.values().filter_map(|name| accounts.get(name));
    own.any(|account| ends(account.mode.min(settings.mode)).contains(&outcome))
}

/// A status that a constraint refuses of stuck rows, as other columns lack what it asks. Where it
/// takes some of them, or a trigger may give them what they lack, the mapping may be right.
fn of_refused(table: &SourceTable, told: &RefusedRows) -> Finding {
    let RefusedRows { value, outcome, check, columns, looked_at, refused, triggers } = told;
    let (name, code) = (table.settings.name.as_str(), "check_refuses_rows");
    let unless = match triggers.is_empty() {
        true => String::new(),
        false => format!(", unless a trigger mends them first ({})", triggers.join(", ")),
    };
    let text = format!(
        "the CHECK {check} of {} refuses `{value}` on {refused} of {looked_at} looked-at stuck \
         rows as a run would write them{unless}; it goes by {} as well",
        bare(&table.write.to_string()),
        some_of(columns)
    );
    let next = format!(
        "set what it asks for under {} of [table.set], or let the constraint take such rows: each \
         that it refuses becomes a case",
        outcome.as_str()
    );
    match refused == looked_at && triggers.is_empty() {
        true => fail(name, Exit::Config, code, text, next),
        false => warn(name, code, text, next),
    }
}

/// The same of a table alone. What cannot be told is left to the doctor's whole look.
pub(super) async fn refused_values(db: &Database, table: &SourceTable) -> Vec<Finding> {
    let barred = db.barred(table).await.unwrap_or_default();
    of_barred(&table.settings.name, &barred)
}

/// Columns of times and amounts of which no looked-at value is one. What cannot be looked at says
/// nothing.
pub(super) async fn unread_values(db: &Database, table: &SourceTable) -> Vec<Finding> {
    let mut findings = Vec::new();
    let layout = &table.layout;
    let times = [("created", Some(layout.created)), ("attempted", layout.attempted)];
    for (field, (cell, notation)) in times.into_iter().filter_map(|(f, it)| Some((f, it?))) {
        let is_none = |text: &str| match notation.read(text) {
            Ok(at) => at.is_some_and(|at| at.timestamp() < NO_PAYMENT_BEFORE),
            Err(_unread) => true,
        };
        let lacks_zone = |text: &str| {
            let meant = Notation::Text(Some(chrono_tz::Tz::UTC)).read(text);
            notation == Notation::Text(None) && is_none(text) && meant.is_ok()
        };
        let zoneless = no_values(db, table, (field, cell), "time with its zone", lacks_zone).await;
        let next = "set `time` in [[table]]: \"utc\", or the zone that they are meant in";
        match zoneless {
            Some(zoneless) => findings.push(Finding { next: Some(next.to_owned()), ..zoneless }),
            None => {
                let what = "time of a payment";
                findings.extend(no_values(db, table, (field, cell), what, is_none).await);
            }
        }
    }
    let amount = table.cells.get(layout.amount);
    let is_number =
        db.keeps_types() && amount.is_some_and(|column| column.class == TypeClass::Integer);
    if let Ok(any) = Currency::parse("EUR")
        && !is_number
    {
        let is_none = |text: &str| {
            let read = parse_amount(text, AmountUnit::Minor, Exactness::Float, any);
            matches!(read, Err(AmountError::NotANumber(_)))
        };
        let amount = ("amount", layout.amount);
        findings.extend(no_values(db, table, amount, "number", is_none).await);
    }
    findings
}

/// A column of which none of several values is what its field needs.
async fn no_values(
    db: &Database,
    table: &SourceTable,
    (field, cell): (&str, usize),
    what: &str,
    is_none: impl Fn(&str) -> bool,
) -> Option<Finding> {
    let column = table.cells.get(cell)?;
    let may_be_none =
        matches!(column.class, TypeClass::Text | TypeClass::Padded | TypeClass::Integer);
    if !may_be_none {
        return None;
    }
    let values = db.sampled(table, cell).await.ok()?;
    let filled: Vec<&String> = values.iter().filter(|value| !value.trim().is_empty()).collect();
    let first = filled.first()?;
    if filled.len() < VALUES || !filled.iter().all(|value| is_none(value)) {
        return None;
    }
    let name = table.settings.name.as_str();
    let text = format!(
        "none of {} looked-at values of {} is a {what}, `{}` for one: each row would need a person",
        filled.len(),
        column.name,
        masked(first)
    );
    let next = format!("correct {field} in [[table]] {name}");
    Some(fail(name, Exit::Config, "values_unreadable", text, next))
}

/// Values of the status that nobody named.
fn of_statuses(table: &SourceTable, standing: &Standing, findings: &mut Vec<Finding>) {
    if standing.lacks_status {
        let status = &table.settings.status;
        let text = format!("{status} is NULL in some rows: no map and no ignore can name them");
        let next = format!(
            "set it, or leave them out by where = [{{ column = \"{status}\", is = \"not_null\" \
             }}]: a run looks at none of them, and ends with exit 3 where it sees one"
        );
        findings.push(warn(&table.settings.name, "status_unmapped", text, next));
    }
    if standing.unmapped.is_empty() {
        return;
    }
    let text = format!(
        "{} has values that are neither mapped nor ignored: {}",
        table.settings.status,
        some_of(&standing.unmapped)
    );
    let paid = match table.says_success_itself() {
        true => ", those by which your application says that a row was paid under succeeded",
        false => "",
    };
    let next = format!(
        "name them in [[table.map]] or under ignore{paid}: a run looks at none of their rows, and \
         ends with exit 3 where it sees one"
    );
    findings.push(warn(&table.settings.name, "status_unmapped", text, next));
}

/// Labels of the status's type that nobody named and that no looked-at row has: a run says nothing
/// of them before it meets one.
fn of_labels(table: &SourceTable, standing: &Standing) -> Option<Finding> {
    let TypeClass::Enum(labels) = &table.write_status.class else { return None };
    let known = table.known_values();
    let is_idle = |label: &&String| !known.contains(label) && !standing.unmapped.contains(label);
    let idle: Vec<String> = labels.iter().filter(is_idle).cloned().collect();
    if idle.is_empty() {
        return None;
    }
    let text = format!(
        "the type of {} has labels that no looked-at row has, and that are neither mapped nor \
         ignored: {}; a run that meets one ends with exit 3",
        table.settings.status,
        some_of(&idle)
    );
    let next = "name them in [[table.map]] or under ignore; nothing to do, where they are not used";
    Some(warn(&table.settings.name, "status_label", text, next))
}

/// What the rows of a table show that its mapping passes over. What could not be found out is the
/// doctor's to say.
pub(super) async fn passed_over(
    db: &Database,
    table: &SourceTable,
    beside: &[&TableSettings],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let left = of_where(db, table, beside).await.ok().flatten();
    findings.extend(left.filter(|finding| finding.level != Level::Ok));
    if let Ok(standing) = standing(db, table, beside).await {
        of_statuses(table, &standing, &mut findings);
        of_accounts(table, &standing, &mut findings);
        of_kinds(table, &standing, &mut findings);
    }
    findings.extend(unseen(db, table).await);
    findings.extend(unseen_targets(db, table).await);
    findings
}

/// No row is stuck by the mapping, and it ignores a word that may say that one is: by a misspelt
/// value each run sees nothing, and ends well. A label of a type cannot be misspelt.
async fn unseen(db: &Database, table: &SourceTable) -> Option<Finding> {
    let ignored = table.settings.ignore.iter().map(|value| value.0.clone());
    let ignored: Vec<String> = ignored.filter(|value| may_be_on_its_way(value)).collect();
    if ignored.is_empty() || matches!(table.write_status.class, TypeClass::Enum(_)) {
        return None;
    }
    if !db.counterparts(table, 1).await.ok()?.is_empty() {
        return None;
    }
    let text = format!(
        "no looked-at row has a value of from in {} ({}), and ignore holds {}, which may say that \
         a call is on its way: where that is what stuck rows have, each run sees nothing",
        table.settings.status,
        some_of(&table.processing_values()),
        some_of(&ignored)
    );
    let next = "compare the spelling of from in [[table.map]] with the column's values; nothing to \
                do, where no row is stuck now";
    Some(warn(&table.settings.name, "from_unseen", text, next))
}

/// Words that a run writes and that no row has, where `ignore` holds one that says the same: what a
/// misspelt word says nobody reads. A label of a type cannot be misspelt.
async fn unseen_targets(db: &Database, table: &SourceTable) -> Vec<Finding> {
    let settings = &table.settings;
    if matches!(table.write_status.class, TypeClass::Enum(_)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for outcome in ["succeeded", "failed", "retryable"] {
        let ignored = settings.ignore.iter().map(|value| value.0.clone());
        let ignored: Vec<String> = ignored.filter(|value| says_outcome(outcome, value)).collect();
        let targets = settings.map.iter().filter_map(|map| match outcome {
            "succeeded" => map.succeeded.as_ref(),
            "failed" => map.failed.as_ref(),
            _retryable => map.retryable.as_ref(),
        });
        let targets: BTreeSet<String> = targets.map(|value| value.0.clone()).collect();
        let targets: Vec<String> = targets.into_iter().collect();
        if ignored.is_empty() || targets.is_empty() {
            continue;
        }
        let Ok(held) = db.held(table, &targets).await else { continue };
        let strays: Vec<String> = targets.into_iter().filter(|it| !held.contains(it)).collect();
        if strays.is_empty() {
            continue;
        }
        let text = format!(
            "no looked-at row has {}, which [[table.map]] writes as {outcome}, and ignore holds \
             {}, which says the same: what is misspelt is written as it stands, and nobody reads \
             it",
            some_of(&strays),
            some_of(&ignored)
        );
        let next = format!(
            "compare the spelling of {outcome} in [[table.map]] with the values of {}; nothing to \
             do, where the word is new",
            settings.status
        );
        findings.push(warn(&settings.name, "target_unseen", text, next));
    }
    findings
}

/// Rows whose account is not known, or is not the one that they are mapped to.
fn of_accounts(table: &SourceTable, standing: &Standing, findings: &mut Vec<Finding>) {
    let name = table.settings.name.as_str();
    let accounts = &table.settings.accounts;
    let unknown: Vec<String> = standing
        .accounts
        .iter()
        .filter(|value| !accounts.contains_key(*value) && !accounts.contains_key("*"))
        .map(|value| {
            let parts = value.split('/').map(|part| if part.is_empty() { "NULL" } else { part });
            parts.collect::<Vec<_>>().join("/")
        })
        .collect();
    if !unknown.is_empty() {
        let text = format!(
            "{} has values that name no account: {}; such rows need a person",
            table.settings.account.join(" and "),
            some_of(&unknown)
        );
        let next = "name them in [table.accounts], or leave the rows out by where";
        findings.push(warn(name, "account_unmapped", text, next));
    }
    for (column, values) in &standing.tellers {
        let text = format!(
            "the whole table is one account's, and {column} has {} values: {}; a row of another \
             PSP is never found at this one, and would be charged again",
            values.len(),
            some_of(values)
        );
        let next = format!(
            "leave the others out by where = [{{ column = \"{column}\", in = [\"…\"] }}], or \
             account = [\"{column}\"] with [table.accounts]"
        );
        findings.push(warn(name, "account_untold", text, next));
    }
}

/// Rows whose kind is not known, or is another than the one that the whole table is mapped to.
fn of_kinds(table: &SourceTable, standing: &Standing, findings: &mut Vec<Finding>) {
    let is_unknown = |value: &&Option<String>| kind_of(table, value.as_deref()).is_none();
    let word = |value: &Option<String>| match value.as_deref() {
        None => "NULL".to_owned(),
        Some("") => "''".to_owned(),
        Some(value) => value.to_owned(),
    };
    let unknown: Vec<String> = standing.kind_values.iter().filter(is_unknown).map(word).collect();
    if let Some(column) = table.settings.kind.column.as_ref().filter(|_| !unknown.is_empty()) {
        let text = format!(
            "{column} has values that name no kind: {}; such rows, once stuck, need a person",
            some_of(&unknown)
        );
        let next = match standing.kind_values.contains(&None) {
            true => {
                "name them in values of kind, or leave the rows out by where; no value names \
                     NULL: where it says charge, take kind out, leave refunds out by not_in, which \
                     NULL passes, and give them a [[table]] of their own"
            }
            false => "name them in values of kind, or leave the rows out by where",
        };
        findings.push(warn(&table.settings.name, "kind_unmapped", text, next));
    }
    let own = table.settings.kind.constant.as_deref().unwrap_or("charge");
    for (column, values) in &standing.kinds {
        let (what, next) = match takes_back(column) {
            true => taken_back(column),
            false => other_kinds(own, column, values),
        };
        let text = format!(
            "each row of the whole table is taken for a {own}, and {what}; a row of another kind \
             is never found among the objects of a {own}, and would be handed back"
        );
        findings.push(warn(&table.settings.name, "kind_untold", text, next));
    }
    for (column, values) in &standing.kinds_unsure {
        let (what, next) = other_kinds(own, column, values);
        let text = format!(
            "no column is mapped as kind, and {what}; where they tell refunds from charges, a \
             refund is looked for as a charge, is never found, and mode full hands it back"
        );
        let next = format!("{next}; where all of them are charges, say charge for each");
        findings.push(warn(&table.settings.name, "kind_unsure", text, next));
    }
}

/// What a column shows that tells kinds, and what to write.
fn other_kinds(own: &str, column: &str, values: &[String]) -> (String, String) {
    let what =
        format!("{column} has {}: {}", counted(values.len(), "value", "values"), some_of(values));
    // Numbers and flags stand as they are.
    let literal = |value: &String| {
        let is_number = value.parse::<i64>().is_ok_and(|number| number.to_string() == *value);
        let is_flag = matches!(value.as_str(), "true" | "false");
        if is_number || is_flag { value.clone() } else { format!("{value:?}") }
    };
    let word = |value: &String| kind_word(column, values, value);
    let pair = |value: &String| format!("{} = \"{}\"", literal(value), word(value).unwrap_or("…"));
    let pairs: Vec<String> = values.iter().take(SHOWN).map(pair).collect();
    // What has no flag passes by not_in, where it has NULL as well.
    let said = flag_of(column, values).filter(|_| own == "charge");
    let is_flag = said.is_some_and(|it| !matches!(it, Movement::Side | Movement::Charge));
    let test = if is_flag { "not_in" } else { "in" };
    let is_own = |value: &&String| word(value) == Some(own);
    let named = values.iter().filter(|value| is_own(value) != is_flag).map(literal);
    let named: Vec<String> = named.take(SHOWN).collect();
    let named = if named.is_empty() { "…".to_owned() } else { named.join(", ") };
    let next = format!(
        "kind = {{ column = \"{column}\", values = {{ {} }} }} with charge, refund or payout for \
         each …, or leave the others out by where = [{{ column = \"{column}\", {test} = [{named}] \
         }}]",
        pairs.join(", ")
    );
    (what, next)
}

/// The same of a column that names, in some rows, the row which theirs takes back.
fn taken_back(column: &str) -> (String, String) {
    let what = format!("some have {column}, which names the row that theirs takes back");
    let next = format!(
        "where = [{{ column = \"{column}\", is = \"null\" }}], and for refunds a [[table]] of \
         their own with is = \"not_null\" and kind = {{ const = \"refund\" }}"
    );
    (what, next)
}

fn of_mapping(table: &SourceTable, findings: &mut Vec<Finding>) {
    let name = table.settings.name.as_str();
    let settings = &table.settings;
    if settings.attempted.is_none() && settings.attempts.is_none() {
        let text = "no column says when a row was last sent: that nothing was charged is never \
                    proven, and a row that the PSP does not know goes to a person"
            .to_owned();
        let next = "map attempted, or attempts = \"once\" where the application sends once";
        findings.push(warn(name, "attempts_unknown", text, next));
    }
    findings.extend(unseen_retries(table));
}

/// A worker that is told by the status, and values from which no hand-back moves it.
pub(super) fn unseen_retries(table: &SourceTable) -> Option<Finding> {
    let silent: Vec<String> = table.unoffered_values().into_iter().map(str::to_owned).collect();
    if silent.is_empty() || table.settings.mode != Mode::Full {
        return None;
    }
    let text = format!(
        "[[table.map]] has no value of retryable for {}: a row that is handed back after a decline \
         keeps its status, and a worker that reads the status never takes it",
        some_of(&silent)
    );
    let next = "name a value for retryable there, or channel = \"outbox\" where the worker takes \
                hand-backs by the outbox";
    Some(warn(&table.settings.name, "retry_unseen", text, next))
}

/// Whether some stuck rows of what is read are the same rows in what is written.
pub(super) async fn written(db: &Database, table: &SourceTable) -> Vec<Finding> {
    if table.write_is_read {
        return Vec::new();
    }
    let name = table.settings.name.as_str();
    match db.counterparts(table, COUNTERPARTS).await {
        Ok(rows) => of_counterparts(table, &rows),
        Err(error) => {
            let text = format!("the rows of write could not be compared: {}", chain(&error));
            vec![warn(name, "untold", text, "tieout doctor")]
        }
    }
}

fn of_counterparts(table: &SourceTable, rows: &[Counterpart]) -> Vec<Finding> {
    let name = table.settings.name.as_str();
    let [read, write] = [&table.read, &table.write].map(|ident| bare(&ident.to_string()));
    let keyed: Vec<(&str, &Counterpart)> =
        rows.iter().filter_map(|row| row.id.as_deref().map(|id| (id, row))).collect();
    let mut findings = Vec::new();
    let keyless = rows.len().saturating_sub(keyed.len());
    if keyless > 0 {
        let text = format!(
            "{keyless} of {} looked-at stuck rows of {read} have no key: {} is NULL in them, and \
             no run looks at them",
            rows.len(),
            table.settings.key.join(" or ")
        );
        let next = "a key that each row has, or leave them out by where";
        findings.push(warn(name, "key_missing", text, next));
    }
    let all = keyed.len();
    let lost: Vec<&str> =
        keyed.iter().filter(|(_, row)| row.written.is_none()).map(|(id, _)| *id).collect();
    if let Some(first) = lost.first() {
        let text = format!(
            "{} of {all} looked-at stuck rows of {read} are not in {write}, `{first}` for one: \
             their status cannot be written, and they need a person",
            lost.len()
        );
        findings.push(if lost.len() == all {
            let next = "correct write or key: write names the table that holds the rows of read";
            fail(name, Exit::Config, "write_lacks", text, next)
        } else {
            let next = "leave such rows out by where, or correct write";
            warn(name, "write_lacks", text, next)
        });
    }
    let differs =
        |(_, row): &&(&str, &Counterpart)| row.written.as_ref().is_some_and(|it| *it != row.read);
    let other: Vec<&(&str, &Counterpart)> = keyed.iter().filter(differs).collect();
    if let Some((id, first)) = other.first() {
        let word = |status: Option<&str>| status.map_or("NULL".to_owned(), |it| format!("`{it}`"));
        let text = format!(
            "the status of {} of {all} looked-at stuck rows differs: `{id}` is {} in {read} and {} \
             in {write}; what is written and does not show in {read} is undone, and needs a person",
            other.len(),
            word(first.read.as_deref()),
            word(first.written.as_ref().and_then(|it| it.as_deref()))
        );
        let next = "correct write or status, unless the view turns one value into the other";
        findings.push(warn(name, "write_differs", text, next));
    }
    findings
}

/// The tags that there are.
fn texts(tags: &[SeenTag]) -> impl Iterator<Item = &String> {
    tags.iter().filter_map(|seen| seen.tag.as_ref())
}

/// Tags of stuck rows that several rows have, and how many. The other rows may be at any status:
/// an earlier try that failed, say. They are looked up where an index leads to them.
async fn shared_by_rows(
    db: &Database,
    table: &SourceTable,
    account: &str,
    tags: &[SeenTag],
) -> BTreeMap<String, usize> {
    let mut seen: BTreeMap<&String, usize> = BTreeMap::new();
    for tag in texts(tags) {
        let count = seen.entry(tag).or_default();
        *count = count.saturating_add(1);
    }
    let some: Vec<String> = seen.keys().take(TAGS_BESIDE).map(|tag| (*tag).clone()).collect();
    let mut shared: BTreeMap<String, usize> =
        seen.into_iter().map(|(tag, count)| (tag.clone(), count)).collect();
    let may_share = table.settings.tag_unique && table.sharable_tag(account).is_some();
    if may_share && looks_up_tags(table, account) {
        // What could not be looked up is met by the run, which decides no such row.
        let found = db.rows_tagged(table, account, &some).await.unwrap_or_default();
        let mut alike: BTreeMap<(String, Option<Kind>), usize> = BTreeMap::new();
        for one in found {
            let count = alike.entry((one.tag, one.kind)).or_default();
            *count = count.saturating_add(1);
        }
        for ((tag, _kind), count) in alike {
            let known = shared.entry(tag).or_default();
            *known = (*known).max(count);
        }
    }
    shared.retain(|_tag, count| *count > 1);
    shared
}

fn of_tags(
    table: &SourceTable,
    account: &str,
    (tags, shared): (&[SeenTag], BTreeMap<String, usize>),
    findings: &mut Vec<Finding>,
) {
    let name = table.settings.name.as_str();
    let seen: BTreeSet<&String> = texts(tags).collect();
    if let Some((tag, count)) = shared.first_key_value()
        && table.settings.tag_unique
    {
        let text = format!(
            "{} of the looked-at tags at {account} are shared by rows, `{tag}` by {count}: such a \
             row is settled by the PSP reference that it stores, else by a person",
            shared.len()
        );
        let next = "a tag of its own for each row; or tag_unique = false, where it is meant";
        findings.push(warn(name, "tag_shared", text, next));
    }
    let lost = tags.iter().filter(|seen| seen.leads_nowhere()).count();
    if lost > 0 {
        let (what, next) = match table.settings.psp_reference {
            Some(_) => ("no tag and no PSP reference", "leave them out by where"),
            None => ("no tag: a part is NULL", "leave them out by where, or map psp_reference"),
        };
        let text = format!(
            "{lost} of {} looked-at rows have {what}; once stuck, each needs a person",
            tags.len()
        );
        findings.push(warn(name, "tag_missing", text, next));
    }
    let longest = seen.iter().map(|tag| tag.chars().count()).max().unwrap_or(0);
    if longest > TAG_MAX {
        let text = format!(
            "a tag at {account} has {longest} characters, and the PSP keeps {TAG_MAX}: such rows \
             need a person"
        );
        findings.push(warn(name, "tag_too_long", text, "a shorter template in `tag`"));
    }
}

/// Whether files are all that tells of an account's rows.
fn is_by_files(accounts: &BTreeMap<String, AccountSetup>, account: &str) -> bool {
    accounts.get(account).is_some_and(|setup| setup.settings.psp == PspKind::Files)
}

/// The same as the doctor says it of the tags of one table, at each account that has files alone.
pub(super) async fn tags_like_cards(
    db: &Database,
    table: &SourceTable,
    accounts: &BTreeMap<String, AccountSetup>,
) -> Vec<Finding> {
    let name = table.settings.name.as_str();
    let mut findings = Vec::new();
    let own: BTreeSet<&String> = table.settings.accounts.values().collect();
    for account in own.into_iter().filter(|account| is_by_files(accounts, account)) {
        match db.tags(table, account, TAGS).await {
            Ok(tags) => findings.extend(like_cards(table, account, &tags)),
            Err(error) => {
                let text = format!("tags could not be looked at: {}", chain(&error));
                findings.push(warn(name, "untold", text, "tieout doctor"));
            }
        }
    }
    findings
}

/// Tags that no line of a file will carry: what looks like a card number is masked before it is
/// kept.
fn like_cards(table: &SourceTable, account: &str, tags: &[SeenTag]) -> Option<Finding> {
    let looked_at = texts(tags).count();
    let shown = texts(tags).map(|tag| masked(tag));
    let alike: Vec<Cow<'_, str>> = shown.filter(|shown| matches!(shown, Cow::Owned(_))).collect();
    let first = alike.first()?;
    let text = format!(
        "{} of {} looked-at tags at {account} look like card numbers, `{first}` for one: what \
         files say of them is kept masked, so that no line settles such a row and no file proves \
         that it was never attempted; it needs a person",
        alike.len(),
        grouped_text(i128::try_from(looked_at).unwrap_or(i128::MAX), 0)
    );
    let next = "a letter between the digits of `tag`, or fewer than 13 of them in a row; see Card \
                numbers in docs/settlement-files.md";
    Some(warn(&table.settings.name, "tag_like_card", text, next))
}

/// Tags of one table that are rows of another too: two rows would claim one payment.
async fn shared_by_tables(
    db: &Database,
    tables: &[SourceTable],
    tags: &BTreeMap<String, BTreeMap<String, Vec<String>>>,
    say: Say<'_>,
) {
    for (place, one) in tables.iter().enumerate() {
        for other in tables.iter().skip(place.saturating_add(1)) {
            let (name, kind) = (&one.settings.name, &one.settings.kind);
            // A charge and a refund are looked for among different objects.
            let differ = kind.constant.is_some()
                && other.settings.kind.constant.is_some()
                && kind.constant != other.settings.kind.constant;
            if differ {
                continue;
            }
            for (account, some) in tags.get(name).into_iter().flatten() {
                let is_there = other.settings.accounts.values().any(|known| known == account);
                // Two mappings of one table: a row of both is no other row to itself.
                let is_itself = one.write == other.write
                    && one.tag_template(account) == other.tag_template(account);
                if !is_there || is_itself {
                    continue;
                }
                // Without an index nothing is looked up; what was looked at is compared.
                let found = if looks_up_tags(other, account) {
                    let Ok(found) = db.resolve_tags(other, account, some).await else { continue };
                    found
                } else {
                    let others = tags.get(&other.settings.name).and_then(|of| of.get(account));
                    others.into_iter().flatten().cloned().collect()
                };
                let Some(tag) = some.iter().find(|tag| found.contains(*tag)) else { continue };
                let text = format!(
                    "`{tag}` is the tag of a row here and of one of {} at {account}: two rows \
                     claim one payment, and neither is settled by it",
                    other.settings.name
                );
                let next = format!("different templates, such as tag = \"{name}-{{…}}\"");
                say(warn(name, "tag_in_two_tables", text, next));
            }
        }
    }
}

/// Rows that two mappings of one table take both, or may come to.
pub(super) async fn taken_twice(db: &Database, tables: &[SourceTable]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (place, one) in tables.iter().enumerate() {
        for other in tables.iter().skip(place.saturating_add(1)) {
            let shared = shared_values(one, other);
            let is_same = one.write == other.write
                && one.settings.key == other.settings.key
                && one.settings.status == other.settings.status;
            if !is_same || shared.is_empty() {
                continue;
            }
            match overlap(db, one, other, &shared).await {
                Some(which) => findings.push(both_take(one, other, &which)),
                None => findings.extend(both_may_take(one, other, &shared)),
            }
        }
    }
    findings
}

/// Values of rows that are stuck to both.
fn shared_values(one: &SourceTable, other: &SourceTable) -> Vec<String> {
    let theirs = other.processing_values();
    let mut shared = one.processing_values();
    shared.retain(|value| theirs.contains(value));
    shared
}

fn both_take(one: &SourceTable, other: &SourceTable, which: &str) -> Finding {
    let name = one.settings.name.as_str();
    let text = format!(
        "of {} {which} taken by [[table]] {name} and by [[table]] {} alike: such a row is looked \
         up, decided and written by both",
        bare(&one.write.to_string()),
        other.settings.name
    );
    let next = "tell their rows apart by where, or take one of the two out";
    warn(name, "rows_taken_twice", text, next)
}

/// No looked-at row is taken by both, and nothing keeps the next one from it. What two views show
/// is their own.
fn both_may_take(one: &SourceTable, other: &SourceTable, shared: &[String]) -> Option<Finding> {
    let (ours, theirs) = (&one.settings, &other.settings);
    if one.read != other.read || exclude_each_other(&ours.filter, &theirs.filter) {
        return None;
    }
    let text = format!(
        "the where of [[table]] {} and that of [[table]] {} do not exclude each other: the next \
         row of {} in {} may meet both, and would be looked up, decided and written by both",
        ours.name,
        theirs.name,
        bare(&one.write.to_string()),
        some_of(shared)
    );
    let next = "tell their rows apart by values of one column: in = [\"a\"] in the where of one, \
                in = [\"b\"] or not_in = [\"a\"] in that of the other";
    Some(warn(&ours.name, "rows_may_be_taken_twice", text, next))
}

/// Which rows both of two mappings take, in words: all, where both choose them alike, else as far
/// as some are looked at, stuck ones or, where none is stuck, the newest of any status.
async fn overlap(
    db: &Database,
    one: &SourceTable,
    other: &SourceTable,
    shared: &[String],
) -> Option<String> {
    if one.read == other.read && one.settings.filter == other.settings.filter {
        return Some(format!("the rows in {} are", some_of(shared)));
    }
    // What cannot be looked at is told elsewhere.
    let rows = db.counterparts(one, COUNTERPARTS).await.ok()?;
    let ids: Vec<String> = rows.into_iter().filter_map(|row| row.id).collect();
    let is_shared =
        |row: &NamedRow| row.status.as_ref().is_some_and(|status| shared.contains(status));
    let stuck = in_both(db, [one, other], &ids, &is_shared).await?;
    if let Some(first) = stuck.first() {
        let verb = if stuck.len() == 1 { "is" } else { "are" };
        let rows = counted(stuck.len(), "looked-at stuck row", "looked-at stuck rows");
        let more = if stuck.len() == 1 { "" } else { ", …" };
        return Some(format!("{rows} (`{first}`{more}) {verb}"));
    }
    for table in [one, other] {
        let ids = db.newest_keys(table, COUNTERPARTS).await.ok()?;
        let both = in_both(db, [one, other], &ids, &|_any| true).await?;
        if let Some(first) = both.first() {
            let rows = counted(both.len(), "looked-at row", "looked-at rows");
            let more = if both.len() == 1 { "" } else { ", …" };
            return Some(format!("{rows} (`{first}`{more}), none of them stuck now, would be"));
        }
    }
    None
}

/// Which of these rows both of two mappings see, of those that are asked for.
async fn in_both(
    db: &Database,
    [one, other]: [&SourceTable; 2],
    ids: &[String],
    is_wanted: &(dyn Fn(&NamedRow) -> bool + Sync),
) -> Option<Vec<String>> {
    let ours = db.named_rows(one, ids).await.ok()?;
    let theirs = db.named_rows(other, ids).await.ok()?;
    let is_taken = |row: &&NamedRow| row.belongs && is_wanted(row);
    let theirs: BTreeSet<&str> =
        theirs.iter().filter(is_taken).map(|row| row.id.as_str()).collect();
    let both = ours.iter().filter(is_taken).map(|row| row.id.clone());
    Some(both.filter(|id| theirs.contains(id.as_str())).collect())
}

/// Whether tags of this table are looked up by an index.
fn looks_up_tags(table: &SourceTable, account: &str) -> bool {
    table.tag_template(account).is_some() && without_index(table, account).is_none()
}

/// The column that tags of this table would be looked up by, where no index leads with it.
pub(super) fn without_index<'t>(table: &'t SourceTable, account: &str) -> Option<&'t str> {
    let first = table.tag_template(account).and_then(|tag| tag.columns().next());
    first.filter(|column| table.unindexed.iter().any(|known| known == column))
}

/// What to do where the column is not of the written table, so that no statement can be given.
pub(super) fn index_of_view(table: &SourceTable, column: &str) -> String {
    format!(
        "make one on what {column} is below {}; where the view works it out, no index leads to it: \
         compare some tags by `tieout run --dry-run`",
        bare(&table.read.to_string())
    )
}

fn some_of(values: &[String]) -> String {
    let shown: Vec<String> = values.iter().take(SHOWN).map(|value| format!("`{value}`")).collect();
    let more = values.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}
