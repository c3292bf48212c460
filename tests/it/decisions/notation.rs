//! The notation of the decision table: cells of words, read into a [`World`].
//!
//! Times are `+40m`, `-7d`, `+3h` from minute 0. What `fixtures/decisions/table.txt` says of the
//! words is the specification; a word that is not known is a panic that names it.

use chrono::TimeDelta;
use tieout::decide::decision::{Asked, PastHandBack};
use tieout::decide::policy::{AbsentMeans, GaveUp};
use tieout::decide::rules::{Effect, Rule, Subject};
use tieout::model::evidence::{
    Answer, Cause, CauseKind, CompleteSearch, ObjectState, PspObject, Route, UntaggedMatch,
};
use tieout::model::money::{AmountUnit, Currency, Exactness, Money, parse_amount};
use tieout::model::reason::Outcome;
use tieout::model::time::{Instant, parse_span};
use tieout::model::transaction::{
    AccountRef, Attempts, Kind, RowDefect, SiblingFact, SiblingState, TagState,
};

use super::world::{
    ACCOUNT, World, euros, evidence, failure, list, match_of, minute, object, start,
};

/// Reads the cells of one line.
pub fn read(row: &str, evidence: &str, history: &str, policy: &str, asked: &str) -> World {
    let mut world = World::plain();
    words(row).for_each(|word| row_word(&mut world, word));
    // The fingerprint hangs on the row's image, and the misses of the history on that.
    words(policy).for_each(|word| policy_word(&mut world, word));
    words(history).for_each(|word| history_word(&mut world, word));
    asked_cell(&mut world, asked);
    for item in evidence.split(';').map(str::trim).filter(|item| !matches!(*item, "" | "-")) {
        evidence_item(&mut world, item);
    }
    world
}

fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split_whitespace().filter(|word| *word != "-")
}

/// `name=value`, or the bare name.
fn split(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

pub fn time(text: &str) -> Instant {
    start() + span(text)
}

fn span(text: &str) -> TimeDelta {
    let read = |text| parse_span(text).unwrap_or_else(|| panic!("`{text}` is no span"));
    match text.strip_prefix('-') {
        Some(rest) => -read(rest),
        None => read(text.trim_start_matches('+')),
    }
}

fn money(amount: &str, code: &str) -> Money {
    let currency = Currency::parse(code).unwrap();
    parse_amount(amount, AmountUnit::Major, Exactness::Exact, currency).unwrap()
}

fn row_word(world: &mut World, word: &str) {
    let row = &mut world.row;
    let (name, value) = split(word);
    match (name, value) {
        ("amount", "none") => row.money = None,
        ("amount", amount) => row.money = Some(money(amount, "EUR")),
        ("defect", field) => row.defects.push(RowDefect {
            field: field.to_owned(),
            problem: "`19.995` is finer than EUR allows".to_owned(),
        }),
        ("tag", "null") => row.tag = TagState::Null("external_id".into()),
        ("tag", "empty") => row.tag = TagState::Empty,
        ("tag", "unmapped") => row.tag = TagState::Unmapped,
        ("tag", "shared") => row.tag = TagState::Shared("r1".into()),
        ("tag", "long") => row.tag = TagState::TooLong { tag: "r1".into(), max: 1 },
        ("ref", reference) => row.psp_reference = Some(reference.to_owned()),
        ("account", value) => {
            row.account = match value.split_once(':') {
                Some(("unmapped", value)) => AccountRef::Unmapped(value.to_owned()),
                _ => AccountRef::Known(value.to_owned()),
            }
        }
        ("kind", kind) => row.kind = Kind::parse(kind).unwrap(),
        ("status", status) => {
            row.status = status.to_owned();
            row.processing = false;
            row.succeeded = status == "CAPTURED";
            row.image = format!("('r1','{status}')");
        }
        ("created", at) => row.created_at = time(at),
        ("attempted", at) => row.attempted_at = Some(time(at)),
        ("attempts", how) => {
            row.attempted_at = None;
            row.attempts = if how == "once" { Attempts::Once } else { Attempts::Unknown };
        }
        ("key", "none") => row.idempotency_key = None,
        ("sibling", text) => world.siblings.push(sibling(text)),
        ("claimed", text) => world.claimed_references.push(pair(text)),
        ("near", text) => world.near_misses.push(pair(text)),
        ("untagged", reference) => world.untagged.push(UntaggedMatch {
            reference: reference.to_owned(),
            captured: euros(2_000),
            created_at: minute(2),
            tag: None,
        }),
        _ => panic!("row: `{word}`"),
    }
}

fn pair(text: &str) -> (String, String) {
    let (left, right) = text.split_once(':').unwrap();
    (left.to_owned(), right.to_owned())
}

fn sibling(text: &str) -> SiblingFact {
    let (id, rest) = text.split_once(':').unwrap();
    let (state, age) = rest.split_once(':').unwrap_or((rest, "older"));
    let state = match state {
        "succeeded" => SiblingState::Succeeded,
        "processing" => SiblingState::Processing,
        "pending" => SiblingState::Pending,
        "waiting" => SiblingState::Waiting,
        "stands_back" => SiblingState::StandsBack,
        "paid_case" => SiblingState::PaidCase,
        "paid_after_all" => SiblingState::PaidAfterAll,
        "handed_back" => SiblingState::HandedBack,
        "unclear" => SiblingState::Unclear,
        "says_paid" => SiblingState::SaysPaid,
        "given_up" => SiblingState::GivenUp,
        "other" => SiblingState::Other,
        _ => panic!("sibling: `{state}`"),
    };
    SiblingFact { id: id.to_owned(), state, older: age == "older", lacks: None }
}

fn history_word(world: &mut World, word: &str) {
    let (name, value) = split(word);
    let history = &mut world.history;
    match name {
        "first_account" => history.first_account = Some(value.to_owned()),
        "seen" => history.fingerprint_seen_at = time(value),
        "aged" => history.aged_from = time(value),
        "handbacks" => history.handbacks = value.parse().unwrap(),
        "checks" => history.checks = value.parse().unwrap(),
        "unanswered" => history.unanswered = value.parse().unwrap(),
        "miss" => {
            let (at, options) = bracketed(value);
            let mut miss = world.miss(time(at));
            for option in options {
                match split(option) {
                    ("fp", other) => miss.fingerprint = other.to_owned(),
                    ("account", other) => miss.account = other.to_owned(),
                    (name, value) => search_option(&mut miss.search, name, value),
                }
            }
            world.history.misses.push(miss);
        }
        "handed_back" => {
            let (at, options) = bracketed(value);
            // `lapsed`, or `lapsed*7` for the seventh time.
            let lapses = options.iter().find_map(|option| option.strip_prefix("lapsed"));
            // `from+90m`: nobody was to come for it before.
            let from = options.iter().find_map(|option| option.strip_prefix("from"));
            // `anew`: as a new attempt.
            history.last_handback = Some(PastHandBack {
                number: 1,
                at: time(at),
                not_before: from.map(time),
                taken_at: options.contains(&"taken").then(|| time(at) + TimeDelta::minutes(1)),
                charge_before: time(at) + TimeDelta::hours(24),
                anew: options.contains(&"anew"),
                lapsed: lapses.is_some(),
                stopped: options.contains(&"stopped"),
                lapses: lapses.map_or(0, |n| n.trim_start_matches('*').parse().unwrap_or(1)),
            });
            history.handbacks = history.handbacks.max(1);
            history.ended_as = Some(Outcome::Retryable);
            history.watch_from = Some(time(at));
        }
        "ended" => {
            let (outcome, at) = value.split_once('@').unwrap();
            history.ended_as = Some(Outcome::parse(outcome).unwrap());
            history.watch_from = Some(time(at));
        }
        "watch_step" => history.watch_step = value.parse().unwrap(),
        _ => panic!("history: `{word}`"),
    }
}

/// `head[one,two]` as head and options.
fn bracketed(text: &str) -> (&str, Vec<&str>) {
    match text.split_once('[') {
        Some((head, rest)) => (head, rest.trim_end_matches(']').split(',').collect()),
        None => (text, Vec::new()),
    }
}

fn policy_word(world: &mut World, word: &str) {
    let policy = &mut world.policy;
    let (name, value) = split(word);
    match name {
        "max_retries" => policy.max_retries = value.parse().unwrap(),
        "gave_up" if value == "failed" => policy.gave_up = GaveUp::Failed,
        "abandoned" => policy.absent_means = AbsentMeans::Abandoned,
        "no_search" => policy.psp.routes.retain(|facts| facts.route != Route::Search),
        "no_keys" => policy.psp.key_life = None,
        "reach" => {
            for facts in policy.psp.routes.iter_mut().filter(|f| f.route == Route::List) {
                facts.reach = Some(span(value));
            }
        }
        "in_flight_max" => policy.timing.in_flight_max = span(value),
        "take_within" => policy.timing.take_within = span(value),
        "recheck_after" => policy.timing.recheck_after = span(value),
        "rule" | "own" => policy.rules.rules.insert(0, a_rule(value, name == "own")),
        _ => panic!("policy: `{word}`"),
    }
}

/// `authorized:wait`, `failure/card_declined:failed`.
fn a_rule(text: &str, own: bool) -> Rule {
    let (about, effect) = text.split_once(':').unwrap();
    let (subject, code) = about.split_once('/').unwrap_or((about, ""));
    let mut matches = match_of(Subject::parse(subject).unwrap());
    matches.codes.extend((!code.is_empty()).then(|| code.to_owned()));
    let effect = match effect {
        "retryable" => Effect::Retryable { not_before: None },
        "failed" => Effect::Failed,
        "succeeded" => Effect::Succeeded,
        "wait" => Effect::Wait,
        "review" => Effect::Review,
        _ => panic!("effect: `{effect}`"),
    };
    Rule { id: format!("test.{subject}"), own, matches, effect, means: String::new() }
}

fn asked_cell(world: &mut World, cell: &str) {
    let (asked, at) = cell.trim().split_once(' ').unwrap_or((cell.trim(), "+60m"));
    world.now = time(at.trim());
    world.asked = match asked {
        "run" => Asked::Run,
        "kick" => Asked::Kick,
        "watch" => Asked::Watch,
        _ => panic!("asked: `{asked}`"),
    };
}

/// `list@+50m[options]: nothing`, or objects, or `no answer KIND`, or `unknown REFERENCE`.
fn evidence_item(world: &mut World, item: &str) {
    let (head, what) = item.split_once(':').unwrap_or_else(|| panic!("evidence: `{item}`"));
    let (head, options) = bracketed(head);
    let (route, at) = head.split_once('@').unwrap_or_else(|| panic!("evidence: `{head}`"));
    let route = match route {
        "fetch" => Route::Fetch,
        "list" => Route::List,
        "search" => Route::Search,
        "file" => Route::File,
        _ => panic!("route: `{route}`"),
    };
    let asked_at = time(at);
    let mut search = CompleteSearch { route, ..list(asked_at) };
    if route == Route::Search {
        search.counts_as_miss = false;
        search.lag_secs = 3_600;
    }
    let mut account = ACCOUNT.to_owned();
    let mut is_complete = route != Route::Fetch;
    for option in options {
        match split(option) {
            ("account", other) => account = other.to_owned(),
            ("partial", _) => is_complete = false,
            (name, value) => search_option(&mut search, name, value),
        }
    }
    let answer = match what.trim() {
        "nothing" => Answer::Nothing(search),
        what => match (what.strip_prefix("no answer "), what.strip_prefix("no such ")) {
            (Some(kind), _) => Answer::NoAnswer(cause(kind)),
            (_, Some(reference)) => Answer::UnknownReference(reference.to_owned()),
            (None, None) => Answer::Found {
                objects: what
                    .split(',')
                    .map(str::trim)
                    .filter(|o| !o.is_empty())
                    .map(an_object)
                    .collect(),
                search: is_complete.then_some(search),
            },
        },
    };
    let mut item = evidence(route, asked_at, answer);
    item.account = account;
    world.evidence.push(item);
}

fn cause(kind: &str) -> Cause {
    let kinds = [
        CauseKind::Unreachable,
        CauseKind::TimedOut,
        CauseKind::ServerError,
        CauseKind::RateLimited,
        CauseKind::Unreadable,
        CauseKind::Incomplete,
        CauseKind::BreakerOpen,
        CauseKind::AccountStopped,
        CauseKind::Interrupted,
    ];
    let kind = kinds.into_iter().find(|k| k.as_str() == kind).unwrap_or_else(|| panic!("{kind}"));
    Cause { kind, detail: "planted".into() }
}

fn search_option(search: &mut CompleteSearch, name: &str, value: &str) {
    match (name, value) {
        ("from", at) => search.from = time(at),
        ("to", at) => search.to = time(at),
        ("kinds", kinds) => search.kinds = kinds.split('+').map(str::to_owned).collect(),
        ("witness", "none") => search.witness = None,
        ("witness", at) => search.witness.as_mut().unwrap().created_at = time(at),
        ("skew", secs) => search.psp_skew_secs = Some(secs.parse().unwrap()),
        ("lag", lag) => search.lag_secs = span(lag).num_seconds(),
        ("no_miss", _) => search.counts_as_miss = false,
        _ => panic!("search: `{name}`"),
    }
}

/// `captured 20.00 EUR pi_1 tag=R1 at=-9d`: the amount and its currency may be left out.
fn an_object(text: &str) -> PspObject {
    let mut words = text.split_whitespace().peekable();
    let state = words.next().unwrap();
    let is_amount = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_code = |word: &&str| word.len() == 3 && word.bytes().all(|b| b.is_ascii_uppercase());
    let amount = words.next_if(is_amount).unwrap_or("20.00");
    let money = money(amount, words.next_if(is_code).unwrap_or("EUR"));
    let reference = words.next().unwrap_or_else(|| panic!("object: `{text}`"));
    let (name, code) = state.split_once('(').unwrap_or((state, ""));
    let mut object = object(reference, a_state(name, code.trim_end_matches(')')));
    object.amount = Some(money);
    object.captured = object.captured.map(|_| money);
    words.for_each(|word| object_word(&mut object, word));
    object
}

fn a_state(name: &str, code: &str) -> ObjectState {
    match name {
        "captured" => ObjectState::Captured,
        "voided" => ObjectState::Voided,
        "in_flight" => ObjectState::InFlight,
        "authorized" => ObjectState::Authorized,
        "action_required" => ObjectState::ActionRequired,
        "unattempted" => ObjectState::Unattempted,
        "failed" => failure(code, false),
        "payable" => failure(code, true),
        "canceled" => ObjectState::Canceled,
        "expired" => ObjectState::Expired,
        "strange" => ObjectState::Unknown,
        _ => panic!("state: `{name}`"),
    }
}

fn object_word(object: &mut PspObject, word: &str) {
    let (name, value) = split(word);
    match (name, value, &mut object.state) {
        ("tag", "none", _) => object.tag = None,
        ("tag", tag, _) => object.tag = Some(tag.to_owned()),
        ("at", at, _) => object.created_at = time(at),
        ("kind", kind, _) => object.kind = kind.to_owned(),
        ("alias", alias, _) => object.aliases.push(alias.to_owned()),
        ("disputed", "", _) => object.disputed = true,
        ("disputed", amount, _) => {
            object.disputed = true;
            object.charged_back_minor = money(amount, "EUR").minor;
        }
        ("returned", code, _) => object.returned = Some(code.to_owned()),
        ("capturable", amount, _) => object.capturable_minor = money(amount, "EUR").minor,
        ("refunded", amount, _) => object.refunded_minor = money(amount, "EUR").minor,
        ("got", "none", _) => object.captured = None,
        ("got", amount, _) => object.captured = Some(money(amount, "EUR")),
        ("amount", "none", _) => object.amount = None,
        ("final", "never", ObjectState::Failed(failure)) => failure.final_from = None,
        ("final", at, ObjectState::Failed(failure)) => failure.final_from = Some(time(at)),
        _ => panic!("object: `{word}`"),
    }
}
