//! The PSP accounts: is the key good, is it the right kind, do answers come, do tags arrive?

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::model::time::{Instant, to_short_text};
use crate::psp::account::{Account, Surroundings};
use crate::psp::lane::StopKind;
use crate::psp::probe::{KeyKind, Probe};
use crate::psp::settings::PspKind;
use crate::run::clock::DatabaseClock;
use crate::run::doctor::database::{AFTER, unseen};
use crate::run::doctor::tables::{index_of_view, without_index};
use crate::run::doctor::{Known, Probes, Say, agreement, fail, ok, warn};
use crate::run::error::chain;
use crate::run::setup::{AccountSetup, Setup};
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::error::{StoreError, StoreErrorClass};
use crate::store::mapping::TableSettings;
use crate::store::source_table::SourceTable;

/// So many captured objects without one tag: the tag is looked for where it never is.
const UNTAGGED: usize = 20;

/// Asks every account that has an API, one after the other.
pub(super) async fn probe(
    setup: &Setup,
    stop: &Stop,
    clock: DatabaseClock,
    tables: &[SourceTable],
) -> Probes {
    let mut probes = Probes::new();
    let has_api = |(_, account): &(&String, &AccountSetup)| account.settings.psp != PspKind::Files;
    for (name, account) in setup.accounts.iter().filter(has_api) {
        let reading = clock.clone();
        let around = Surroundings {
            env: Arc::clone(&setup.env),
            db_now: Arc::new(move || reading.now()),
            stop: stop.token(),
            grace: stop.calls_may_take(),
            over: CancellationToken::new(),
        };
        let refunds = has_refunds(tables, name);
        let probed = match Account::open(account.settings.clone(), around) {
            Ok(account) => Ok(account.probe(refunds).await),
            Err(error) => Err(chain(&error)),
        };
        probes.insert(name.clone(), probed);
    }
    probes
}

fn has_refunds(tables: &[SourceTable], account: &str) -> bool {
    tables.iter().filter(|table| table.settings.accounts.values().any(|a| a == account)).any(
        |table| {
            let kind = &table.settings.kind;
            kind.constant.iter().chain(kind.values.values()).any(|word| word == "refund")
        },
    )
}

pub(super) async fn look(
    known: &Known<'_>,
    name: &str,
    probe: &Result<Probe, String>,
    say: Say<'_>,
) {
    let probe = match probe {
        Ok(probe) => probe,
        Err(text) => {
            let next = "correct [[account]] in tieout.toml";
            return say(fail(name, Exit::Config, "account_settings", text.clone(), next));
        }
    };
    paused(known, name, say).await;
    if let Some(stop) = &probe.stopped {
        let (exit, next) = match stop.kind {
            StopKind::Auth => (Exit::Auth, "check key_env, key_file or key_command, and the key"),
            StopKind::WrongEnvironment => (Exit::Auth, "check livemode, and which key it is"),
            StopKind::Misconfigured => (Exit::Config, "check base_url and api_version"),
            StopKind::NoKey => {
                (Exit::Config, "put the key where key_env, key_file or key_command says")
            }
            StopKind::Tls => (Exit::Trust, "check base_url, ca_file and the certificates"),
        };
        return say(fail(name, exit, stop.kind.as_str(), stop.text.clone(), next));
    }
    let unanswered = probe.lists.iter().filter_map(|(kind, why)| why.as_ref().map(|w| (kind, w)));
    let unanswered: Vec<String> =
        unanswered.map(|(kind, why)| format!("the list of {kind}: {why}")).collect();
    if !unanswered.is_empty() {
        let next = "look at the PSP's status page, then tieout doctor";
        let text = format!("no answer: {}", unanswered.join("; "));
        return say(fail(name, Exit::Partial, "no_answer", text, next));
    }
    answered(known, name, probe, say);
    witness(known, name, probe, say).await;
    agreement::look(known, name, probe, say).await;
}

/// What there is to say of an account whose files are all that tells of its rows.
pub(super) async fn files_only(known: &Known<'_>, name: &str, say: Say<'_>) {
    paused(known, name, say).await;
    say(ok(name, "account", "files only; no API is asked".to_owned()));
}

async fn paused(known: &Known<'_>, name: &str, say: Say<'_>) {
    let Some(db) = known.db else { return };
    // Where tieout's tables are missing, that was said.
    let Ok(state) = db.account_state(name).await else { return };
    if let Some((since, why)) = state.paused {
        let text = format!("paused since {}: {why}", to_short_text(since));
        say(warn(name, "paused", text, format!("tieout resume {name}")));
    }
}

fn answered(known: &Known<'_>, name: &str, probe: &Probe, say: Say<'_>) {
    let settings = known.setup.accounts.get(name).map(|account| &account.settings);
    let is_live = settings.is_some_and(|settings| settings.livemode);
    let mode = if is_live { "live" } else { "test" };
    let key = match probe.key {
        KeyKind::Restricted => ", restricted",
        KeyKind::Secret | KeyKind::Unknown => "",
    };
    let search = match &probe.search {
        Some(Ok(())) => "list and search answer",
        Some(Err(_)) | None => "the list answers",
    };
    let newest = match (probe.newest, known.db) {
        (Some(at), _) => format!(", newest object {}", age_text(at)),
        (None, _) => String::new(),
    };
    say(ok(name, "account", format!("key works ({mode}{key}), {search}{newest}")));
    if is_live && probe.key == KeyKind::Secret {
        let text = "its secret key (sk_) could move money, and tieout only reads".to_owned();
        let next = "make a restricted key: read for PaymentIntents, Charges and Refunds";
        say(warn(name, "key_can_write", text, next));
    }
    if let Some(Err(why)) = &probe.search {
        let next = format!("set search = false in [[account]] {name}, where it offers none");
        say(warn(name, "no_search", format!("the search does not answer: {why}"), next));
    }
}

/// `3 s old`, by the machine's clock: a label, not a decision.
fn age_text(at: Instant) -> String {
    let secs = crate::clock::now().signed_duration_since(at).num_seconds().max(0);
    match secs {
        ..=119 => format!("{secs} s old"),
        120..=7_199 => format!("{} min old", secs / 60),
        7_200..=172_799 => format!("{} h old", secs / 3_600),
        _days => format!("{} days old", secs / 86_400),
    }
}

/// What the rows say of the newest captured objects.
#[derive(Default)]
struct Rows {
    /// Tags and references that are rows'.
    found: BTreeSet<String>,
    /// What could not be asked, and what to do next.
    untold: Vec<(String, String)>,
    /// Tables whose tags no index finds: what lacks one, and what makes it.
    unlooked: Vec<(String, String)>,
}

async fn untold(db: &Database, error: &StoreError) -> (String, String) {
    match error.class() {
        StoreErrorClass::Schema => {
            let (why, next) = unseen(db).await;
            (why, next.to_owned())
        }
        _other => (chain(error), AFTER.to_owned()),
    }
}

/// Looks the objects up among the rows of every table of the account, where an index leads there.
async fn rows_of(known: &Known<'_>, db: &Database, name: &str, probe: &Probe) -> Rows {
    let tags: Vec<String> = probe.captured.iter().filter_map(|o| o.tag.clone()).collect();
    let references: Vec<String> = probe.captured.iter().map(|o| o.reference.clone()).collect();
    let mut rows = Rows::default();
    // A mapping that does not fit was told of; its rows cannot be looked up.
    let at_account =
        |table: &&TableSettings| table.accounts.values().any(|account| account == name);
    let fits = |name: &str| known.tables.iter().any(|table| table.settings.name == name);
    for table in known.setup.tables.iter().filter(at_account) {
        if fits(table.name.as_str()) {
            continue;
        }
        let next = "correct what stands above, then tieout doctor";
        let why = format!("the mapping of table {} does not fit", table.name);
        rows.untold.push((why, next.to_owned()));
    }
    for table in known.tables {
        let settings = &table.settings;
        if !settings.accounts.values().any(|account| account == name) {
            continue;
        }
        match without_index(table, name) {
            None => match db.resolve_tags(table, name, &tags).await {
                Ok(resolved) => rows.found.extend(resolved),
                Err(error) => rows.untold.push(untold(db, &error).await),
            },
            Some(column) => {
                let create = known.indexes.get(&(settings.name.clone(), column.to_owned()));
                let create = create.cloned().unwrap_or_else(|| index_of_view(table, column));
                rows.unlooked.push((format!("{column} of {}", settings.name), create));
            }
        }
        let is_indexed =
            settings.psp_reference.as_ref().is_some_and(|column| !table.unindexed.contains(column));
        if is_indexed {
            match db.resolve_references(table, name, &references).await {
                Ok(resolved) => rows.found.extend(resolved.into_keys()),
                Err(error) => rows.untold.push(untold(db, &error).await),
            }
        }
    }
    rows
}

/// Whether fewer of the captured objects are rows than the brake wants: below its share of the
/// account's own usual share no absence would be believed.
async fn is_few(known: &Known<'_>, db: &Database, name: &str, seen: (usize, usize)) -> bool {
    let (ours, all) = seen;
    let wanted = known.setup.accounts.get(name).map_or(0, |a| a.brake.min_tagged_permille);
    let usual = db.account_state(name).await.ok().and_then(|state| state.usual_permille);
    let wanted = u64::from(wanted).saturating_mul(u64::from(usual.unwrap_or(1_000)));
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    count(ours).saturating_mul(1_000_000) < count(all).saturating_mul(wanted)
}

/// How many of the newest captured objects belong to rows: the witness that absence needs.
async fn witness(known: &Known<'_>, name: &str, probe: &Probe, say: Say<'_>) {
    let Some(db) = known.db else { return };
    let all = probe.captured.len();
    let Some(newest) = probe.captured.first() else {
        let text = "no captured object yet: whether tags arrive cannot be told".to_owned();
        return say(warn(name, "no_objects", text, "tieout doctor, after the first payment"));
    };
    let place = known.setup.accounts.get(name).map_or("", |a| a.settings.tag.as_str());
    if probe.captured.iter().all(|object| object.tag.is_none()) {
        let text = format!(
            "none of the newest {all} captured objects has a tag in {place}: no row can be found \
             by its tag, and no absence proven"
        );
        let next = format!(
            "look at {} at the PSP, and put where it has your tag into tag of [[account]] {name}",
            newest.reference
        );
        return say(match all {
            ..UNTAGGED => warn(name, "no_tags", text, next),
            _many => fail(name, Exit::Config, "no_tags", text, next),
        });
    }
    let rows = rows_of(known, db, name, probe).await;
    if let Some((why, next)) = rows.untold.first() {
        let text = format!("whether tags arrive could not be told: {why}");
        return say(warn(name, "untold", text, next.clone()));
    }
    let is_row = |object: &&crate::psp::probe::CapturedObject| {
        object.tag.as_ref().is_some_and(|tag| rows.found.contains(tag))
            || rows.found.contains(&object.reference)
    };
    let ours = probe.captured.iter().filter(is_row).count();
    let is_few = is_few(known, db, name, (ours, all)).await;
    if let Some((column, create)) = rows.unlooked.first().filter(|_| is_few) {
        let text = format!(
            "whether the newest {all} captured objects are rows of yours was not looked up: no \
             index leads with {column}"
        );
        return say(warn(name, "not_looked_up", text, create.clone()));
    }
    let text = format!("{ours} of the newest {all} captured objects are rows of yours");
    let next = format!(
        "check tag of [[account]] {name} ({place}) and of [[table]], and that every charge gets it"
    );
    say(if ours == 0 {
        let text = format!("{text}: no row can be found, and no absence proven");
        fail(name, Exit::Config, "no_witness", text, next)
    } else if is_few {
        let newest = probe.captured.iter().find(is_row);
        let newest = newest.map_or_else(String::new, |object| {
            let at = to_short_text(object.created_at);
            format!("; the newest of them is {} of {at}", object.reference)
        });
        warn(name, "few_witnesses", format!("{text}{newest}"), next)
    } else {
        ok(name, "witness", text)
    });
}
