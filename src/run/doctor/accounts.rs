//! The PSP accounts: is the key good, is it the right kind, do answers come, do tags arrive?

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::exit::Exit;
use crate::model::time::{Instant, to_short_text};
use crate::psp::account::{Account, Surroundings};
use crate::psp::lane::StopKind;
use crate::psp::probe::{KeyKind, Probe};
use crate::run::clock::DatabaseClock;
use crate::run::doctor::tables::looks_up_tags;
use crate::run::doctor::{Known, Probes, Say, fail, ok, warn};
use crate::run::error::chain;
use crate::run::setup::Setup;
use crate::run::shutdown::Stop;
use crate::store::driver::Driver;
use crate::store::source_table::SourceTable;

/// Below this share of captured objects that are rows, in percent, something is odd.
const FEW: usize = 50;

/// Asks every account, one after the other.
pub(super) async fn probe(
    setup: &Setup,
    stop: &Stop,
    clock: DatabaseClock,
    tables: &[SourceTable],
) -> Probes {
    let mut probes = Probes::new();
    for (name, account) in &setup.accounts {
        let reading = clock.clone();
        let around = Surroundings {
            env: Arc::clone(&setup.env),
            db_now: Arc::new(move || reading.now()),
            stop: stop.token(),
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

/// How many of the newest captured objects belong to rows: the witness that absence needs.
async fn witness(known: &Known<'_>, name: &str, probe: &Probe, say: Say<'_>) {
    let Some(db) = known.db else { return };
    let all = probe.captured.len();
    if all == 0 {
        let text = "no captured object yet: whether tags arrive cannot be told".to_owned();
        return say(warn(name, "no_objects", text, "tieout doctor, after the first payment"));
    }
    let tags: Vec<String> = probe.captured.iter().filter_map(|o| o.tag.clone()).collect();
    let references: Vec<String> = probe.captured.iter().map(|o| o.reference.clone()).collect();
    let mut found = BTreeSet::new();
    let mut untold = Vec::new();
    for table in known.tables {
        let settings = &table.settings;
        if !settings.accounts.values().any(|account| account == name) {
            continue;
        }
        if looks_up_tags(table, name) {
            match db.resolve_tags(table, name, &tags).await {
                Ok(resolved) => found.extend(resolved),
                Err(error) => untold.push(chain(&error)),
            }
        }
        let is_indexed =
            settings.psp_reference.as_ref().is_some_and(|column| !table.unindexed.contains(column));
        if is_indexed {
            match db.resolve_references(table, name, &references).await {
                Ok(resolved) => found.extend(resolved.into_keys()),
                Err(error) => untold.push(chain(&error)),
            }
        }
    }
    if let Some(untold) = untold.first() {
        let text = format!("whether tags arrive could not be told: {untold}");
        return say(warn(name, "untold", text, "tieout doctor, after what stands above"));
    }
    let is_row = |object: &&crate::psp::probe::CapturedObject| {
        object.tag.as_ref().is_some_and(|tag| found.contains(tag))
            || found.contains(&object.reference)
    };
    let ours = probe.captured.iter().filter(is_row).count();
    let place = known.setup.accounts.get(name).map_or("", |a| a.settings.tag.as_str());
    let text = match tags.len() {
        0 => format!("none of the newest {all} captured objects has a tag in {place}"),
        _some => format!("{ours} of the newest {all} captured objects are rows of yours"),
    };
    let next = format!(
        "check tag of [[account]] {name} ({place}) and of [[table]], and that every charge gets it"
    );
    say(if ours == 0 {
        let text = format!("{text}: no row can be found, and no absence proven");
        fail(name, Exit::Config, "no_witness", text, next)
    } else if ours.saturating_mul(100) < all.saturating_mul(FEW) {
        warn(name, "few_witnesses", text, next)
    } else {
        ok(name, "witness", text)
    });
}
