//! Random worlds: one that decides, and a few changes to it, most of them near an edge.

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::select;
use tieout::decide::decision::{Asked, PastHandBack};
use tieout::decide::policy::{AbsentMeans, GaveUp};
use tieout::decide::rules::{Effect, Rule, Subject};
use tieout::model::evidence::{
    Answer, CauseKind, CompleteSearch, Evidence, ObjectState, PspObject, Route, UntaggedMatch,
    Witness,
};
use tieout::model::money::{Currency, Money};
use tieout::model::reason::Outcome;
use tieout::model::time::Instant;
use tieout::model::transaction::{
    AccountRef, Attempts, Kind, RowDefect, SiblingFact, SiblingState, TagState,
};

use crate::decisions::world::{World, euros, evidence, failure, list, match_of, minute, object};

/// One change to a world.
#[derive(Debug, Clone)]
pub enum Change {
    Defect,
    NoMoney,
    Amount(i64),
    Tag(TagState),
    Reference(Option<&'static str>),
    Account(AccountRef),
    Kind(Kind),
    Status(&'static str),
    Attempts(Attempts),
    Attempted(Instant),
    Created(Instant),
    NoKey,
    Image,
    Sibling(SiblingState, bool),
    Claimed(&'static str),
    Near,
    Untagged,
    Seen(Instant),
    Aged(Instant),
    Handbacks(u32),
    HandedBack(Instant, bool),
    Ended(Outcome, Instant),
    WatchStep(u32),
    Miss(Instant),
    DropMisses,
    Asked(Asked),
    Now(Instant),
    NoSearchRoute,
    NoKeys,
    Reach(i64),
    Abandoned,
    GaveUpFails,
    InFlightMax(i64),
    Rule(Subject, Effect, bool),
    Add(Route, Instant, Vec<PspObject>, bool),
    Nothing(Route, Instant),
    UnknownReference(&'static str),
    NoAnswer(Route, CauseKind),
    ForeignFind,
    DropEvidence(usize),
    Skew(i64),
    From(Instant),
    To(Instant),
    Kinds(Vec<&'static str>),
    Witness(Option<Instant>),
    Lag(i64),
    NoMiss,
}

impl Change {
    pub fn apply(&self, world: &mut World) {
        if !(self.to_row(world) || self.to_history(world) || self.to_policy(world)) {
            self.to_evidence(world);
        }
    }

    fn to_row(&self, world: &mut World) -> bool {
        let row = &mut world.row;
        match self {
            Self::Defect => {
                row.defects
                    .push(RowDefect { field: "amount".into(), problem: "unreadable".into() });
            }
            Self::NoMoney => row.money = None,
            Self::Amount(minor) => row.money = Some(euros(*minor)),
            Self::Tag(tag) => row.tag = tag.clone(),
            Self::Reference(reference) => row.psp_reference = reference.map(str::to_owned),
            Self::Account(account) => row.account = account.clone(),
            Self::Kind(kind) => row.kind = *kind,
            Self::Status(status) => {
                row.status = (*status).to_owned();
                row.processing = *status == "processing";
                row.succeeded = *status == "CAPTURED";
            }
            Self::Attempts(attempts) => {
                row.attempts = *attempts;
                row.attempted_at = row.attempted_at.filter(|_| *attempts == Attempts::Column);
            }
            Self::Attempted(at) => row.attempted_at = Some(*at),
            Self::Created(at) => row.created_at = *at,
            Self::NoKey => row.idempotency_key = None,
            Self::Image => row.image.push('x'),
            _ => return false,
        }
        true
    }

    fn to_history(&self, world: &mut World) -> bool {
        let history = &mut world.history;
        match self {
            Self::Seen(at) => history.fingerprint_seen_at = *at,
            Self::Aged(at) => history.aged_from = *at,
            Self::Handbacks(count) => history.handbacks = *count,
            Self::HandedBack(at, taken) => {
                history.handbacks = history.handbacks.max(1);
                history.ended_as = Some(Outcome::Retryable);
                history.watch_from = Some(*at);
                history.last_handback = Some(PastHandBack {
                    number: 1,
                    at: *at,
                    not_before: None,
                    taken_at: taken.then_some(*at),
                    charge_before: *at + TimeDelta::hours(24),
                    anew: true,
                    lapsed: false,
                    stopped: false,
                    lapses: 0,
                });
            }
            Self::Ended(outcome, at) => {
                history.ended_as = Some(*outcome);
                history.watch_from = Some(*at);
            }
            Self::WatchStep(step) => history.watch_step = *step,
            Self::DropMisses => history.misses.clear(),
            Self::Miss(at) => {
                let miss = world.miss(*at);
                world.history.misses.push(miss);
            }
            _ => return false,
        }
        true
    }

    fn to_policy(&self, world: &mut World) -> bool {
        let policy = &mut world.policy;
        match self {
            Self::Asked(asked) => world.asked = *asked,
            Self::Now(now) => world.now = *now,
            Self::NoSearchRoute => policy.psp.routes.retain(|f| f.route != Route::Search),
            Self::NoKeys => policy.psp.key_life = None,
            Self::Reach(days) => {
                let lists = policy.psp.routes.iter_mut().filter(|f| f.route == Route::List);
                lists.for_each(|facts| facts.reach = Some(TimeDelta::days(*days)));
            }
            Self::Abandoned => policy.absent_means = AbsentMeans::Abandoned,
            Self::GaveUpFails => policy.gave_up = GaveUp::Failed,
            Self::InFlightMax(mins) => policy.timing.in_flight_max = TimeDelta::minutes(*mins),
            Self::Rule(subject, effect, own) => policy.rules.rules.insert(
                0,
                Rule {
                    id: format!("test.{}", subject.as_str()),
                    own: *own,
                    matches: match_of(*subject),
                    effect: effect.clone(),
                    means: String::new(),
                },
            ),
            _ => return false,
        }
        true
    }

    fn to_evidence(&self, world: &mut World) {
        match self {
            Self::Sibling(state, older) => {
                let id = format!("s{}", world.siblings.len());
                world.siblings.push(SiblingFact { id, state: *state, older: *older, lacks: None });
            }
            Self::Claimed(name) => {
                world.claimed_references.push(((*name).to_owned(), "r7".to_owned()));
            }
            Self::Near => world.near_misses.push(("pi_7".into(), "R1".into())),
            Self::Untagged => world.untagged.push(UntaggedMatch {
                reference: "pi_8".into(),
                captured: euros(2_000),
                created_at: minute(2),
                tag: None,
            }),
            Self::Add(route, at, objects, complete) => {
                let search = complete.then(|| search_by(*route, *at));
                let answer = Answer::Found { objects: objects.clone(), search };
                world.evidence.push(evidence(*route, *at, answer));
            }
            Self::Nothing(route, at) => {
                let answer = Answer::Nothing(search_by(*route, *at));
                world.evidence.push(evidence(*route, *at, answer));
            }
            Self::UnknownReference(name) => {
                let answer = Answer::UnknownReference((*name).to_owned());
                world.evidence.push(evidence(Route::Fetch, minute(54), answer));
            }
            Self::NoAnswer(route, kind) => world.no_answer(*route, *kind),
            Self::ForeignFind => {
                let objects = vec![object("pi_1", ObjectState::Captured)];
                let answer = Answer::Found { objects, search: None };
                let mut item = evidence(Route::List, minute(55), answer);
                item.account = "stripe_eu".into();
                world.evidence.push(item);
            }
            Self::DropEvidence(index) if !world.evidence.is_empty() => {
                world.evidence.remove(index % world.evidence.len());
            }
            change => world.searches(Route::List).for_each(|search| change.to_search(search)),
        }
    }

    fn to_search(&self, search: &mut CompleteSearch) {
        match self {
            Self::Skew(secs) => search.psp_skew_secs = Some(*secs),
            Self::From(at) => search.from = *at,
            Self::To(at) => search.to = *at,
            Self::Kinds(kinds) => {
                search.kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            }
            Self::Witness(at) => {
                search.witness = at.map(|created_at| Witness {
                    reference: "pi_w".into(),
                    tag: "r0".into(),
                    created_at,
                });
            }
            Self::Lag(secs) => search.lag_secs = *secs,
            Self::NoMiss => search.counts_as_miss = false,
            _ => {}
        }
    }
}

fn search_by(route: Route, at: Instant) -> CompleteSearch {
    CompleteSearch { route, counts_as_miss: route == Route::List, ..list(at) }
}

pub fn any_world() -> impl Strategy<Value = World> {
    let bases = select(vec![
        World::plain(),
        World::absent(),
        World::with_objects(vec![object("pi_1", ObjectState::Captured)]),
        World::with_objects(vec![object("pi_1", failure("card_declined", false))]),
        World::with_objects(vec![object("pi_1", failure("card_declined", true))]),
        World::with_objects(vec![object("pi_1", failure("stolen_card", false))]),
        World::with_objects(vec![object("pi_1", ObjectState::Unattempted)]),
    ]);
    (bases, prop::collection::vec(any_change(), 0..6)).prop_map(|(mut world, changes)| {
        changes.iter().for_each(|change| change.apply(&mut world));
        world
    })
}

fn near_minutes() -> impl Strategy<Value = Instant> {
    prop_oneof![
        select(vec![0, 15, 30, 34, 35, 36, 40, 41, 54, 55, 56, 59, 60]).prop_map(minute),
        (-20_i64..90).prop_map(minute),
        (-60_i64..60).prop_map(|days| minute(days * 1_440)),
    ]
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        2 => row_change(),
        2 => history_change(),
        1 => policy_change(),
        3 => evidence_change(),
        1 => search_change(),
    ]
}

fn row_change() -> impl Strategy<Value = Change> {
    let tags = select(vec![
        TagState::Unmapped,
        TagState::Null("external_id".into()),
        TagState::Shared("r1".into()),
        TagState::Usable("r2".into()),
    ]);
    prop_oneof![
        Just(Change::Defect),
        Just(Change::NoMoney),
        select(vec![-1_i64, 0, 1_999, 2_000]).prop_map(Change::Amount),
        tags.prop_map(Change::Tag),
        select(vec![None, Some("pi_1"), Some("ch_1"), Some("pi_9")]).prop_map(Change::Reference),
        select(vec![AccountRef::Known("stripe_eu".into()), AccountRef::Unmapped("x".into())])
            .prop_map(Change::Account),
        select(vec![Kind::Charge, Kind::Refund, Kind::Payout]).prop_map(Change::Kind),
        select(vec!["RETRY", "FAILED", "CAPTURED", "processing"]).prop_map(Change::Status),
        select(vec![Attempts::Column, Attempts::Once, Attempts::Unknown])
            .prop_map(Change::Attempts),
        near_minutes().prop_map(Change::Attempted),
        near_minutes().prop_map(Change::Created),
        Just(Change::NoKey),
        Just(Change::Image),
        (any_sibling(), any::<bool>()).prop_map(|(state, older)| Change::Sibling(state, older)),
        select(vec!["pi_1", "pi_2"]).prop_map(Change::Claimed),
        Just(Change::Near),
        Just(Change::Untagged),
    ]
}

fn any_sibling() -> impl Strategy<Value = SiblingState> {
    use SiblingState as S;
    select(vec![
        S::Succeeded,
        S::Processing,
        S::Pending,
        S::Waiting,
        S::StandsBack,
        S::PaidCase,
        S::HandedBack,
        S::Other,
    ])
}

fn history_change() -> impl Strategy<Value = Change> {
    let ends = select(vec![Outcome::Succeeded, Outcome::Retryable, Outcome::Failed, Outcome::Wait]);
    prop_oneof![
        near_minutes().prop_map(Change::Seen),
        near_minutes().prop_map(Change::Aged),
        (0_u32..8).prop_map(Change::Handbacks),
        (near_minutes(), any::<bool>()).prop_map(|(at, taken)| Change::HandedBack(at, taken)),
        (ends, near_minutes()).prop_map(|(outcome, at)| Change::Ended(outcome, at)),
        (0_u32..6).prop_map(Change::WatchStep),
        near_minutes().prop_map(Change::Miss),
        Just(Change::DropMisses),
    ]
}

fn policy_change() -> impl Strategy<Value = Change> {
    let subjects = select(vec![
        Subject::Failure,
        Subject::Refunded,
        Subject::Voided,
        Subject::Disputed,
        Subject::Returned,
        Subject::Authorized,
        Subject::ActionRequired,
        Subject::Canceled,
        Subject::Expired,
        Subject::UnknownStatus,
    ]);
    let effects = select(vec![
        Effect::Retryable { not_before: None },
        Effect::Retryable { not_before: Some(TimeDelta::hours(2)) },
        Effect::Failed,
        Effect::Succeeded,
        Effect::Wait,
        Effect::Review,
    ]);
    prop_oneof![
        select(vec![Asked::Run, Asked::Kick, Asked::Watch]).prop_map(Change::Asked),
        near_minutes().prop_map(Change::Now),
        Just(Change::NoSearchRoute),
        Just(Change::NoKeys),
        (1_i64..60).prop_map(Change::Reach),
        Just(Change::Abandoned),
        Just(Change::GaveUpFails),
        (1_i64..60).prop_map(Change::InFlightMax),
        (subjects, effects, any::<bool>()).prop_map(|(s, e, own)| Change::Rule(s, e, own)),
    ]
}

fn any_route() -> impl Strategy<Value = Route> {
    select(vec![Route::Fetch, Route::List, Route::Search])
}

fn evidence_change() -> impl Strategy<Value = Change> {
    let objects = || prop::collection::vec(any_object(), 0..3);
    let kinds = select(vec![CauseKind::TimedOut, CauseKind::RateLimited, CauseKind::Incomplete]);
    prop_oneof![
        4 => (any_route(), near_minutes(), objects(), any::<bool>())
            .prop_map(|(route, at, objects, complete)| {
                Change::Add(route, at, objects, complete && route != Route::Fetch)
            }),
        2 => (select(vec![Route::List, Route::Search]), near_minutes())
            .prop_map(|(route, at)| Change::Nothing(route, at)),
        1 => select(vec!["pi_1", "pi_9"]).prop_map(Change::UnknownReference),
        1 => (any_route(), kinds).prop_map(|(route, kind)| Change::NoAnswer(route, kind)),
        1 => Just(Change::ForeignFind),
        1 => any::<usize>().prop_map(Change::DropEvidence),
    ]
}

fn search_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        select(vec![-121_i64, -120, 0, 120, 121]).prop_map(Change::Skew),
        near_minutes().prop_map(Change::From),
        near_minutes().prop_map(Change::To),
        select(vec![vec!["charge"], vec!["refund"], vec!["payment_intent", "charge", "refund"]])
            .prop_map(Change::Kinds),
        prop::option::of(near_minutes()).prop_map(Change::Witness),
        select(vec![0_i64, 1_200, i64::MAX]).prop_map(Change::Lag),
        Just(Change::NoMiss),
    ]
}

pub fn any_state() -> impl Strategy<Value = ObjectState> {
    select(states())
}

/// Every state, failures by what rules know of them.
pub fn states() -> Vec<ObjectState> {
    vec![
        ObjectState::Captured,
        ObjectState::Voided,
        ObjectState::InFlight,
        ObjectState::Authorized,
        ObjectState::ActionRequired,
        ObjectState::Unattempted,
        ObjectState::Canceled,
        ObjectState::Expired,
        ObjectState::Unknown,
        failure("card_declined", false),
        failure("card_declined", true),
        failure("stolen_card", false),
        failure("stolen_card", true),
        failure("mystery", false),
        not_final(Some(minute(180))),
        not_final(None),
    ]
}

fn not_final(from: Option<Instant>) -> ObjectState {
    match failure("card_declined", false) {
        ObjectState::Failed(failure) => {
            ObjectState::Failed(tieout::model::evidence::Failure { final_from: from, ..failure })
        }
        other => other,
    }
}

fn any_object() -> impl Strategy<Value = PspObject> {
    let names = select(vec!["pi_1", "pi_1", "pi_2", "pi_3", "ch_1"]);
    let tags = select(vec![Some("r1"), Some("r1"), Some("r1"), Some("R1"), None]);
    let kinds = select(vec!["payment_intent", "payment_intent", "payment_intent", "refund"]);
    let sums = select(vec![None, None, None, Some(euros(1_999)), Some(dollars(2_000))]);
    let extras = (sums, any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (names, any_state(), tags, kinds, near_minutes(), extras).prop_map(
        |(name, state, tag, kind, created_at, (sum, alias, disputed, refunded))| {
            // An id is of one kind.
            let name = if kind == "refund" { "re_1" } else { name };
            PspObject {
                tag: tag.map(str::to_owned),
                kind: kind.to_owned(),
                created_at,
                aliases: (alias && name == "pi_1").then(|| "ch_1".into()).into_iter().collect(),
                disputed,
                refunded_minor: if refunded { 2_000 } else { 0 },
                captured: sum.or(object(name, state.clone()).captured),
                ..object(name, state)
            }
        },
    )
}

fn dollars(minor: i64) -> Money {
    Money::new(minor, Currency::parse("USD").unwrap())
}

/// For shuffling: the evidence in another order, with its objects in another order.
pub fn reversed(items: &[Evidence]) -> Vec<Evidence> {
    let mut items = items.to_vec();
    items.reverse();
    for item in &mut items {
        if let Answer::Found { objects, .. } = &mut item.answer {
            objects.reverse();
        }
    }
    items
}
