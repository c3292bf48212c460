//! Properties of the judge: over random worlds near its edges, over every pair of objects at the
//! PSP, and over each single condition of a permit.

mod changes;
mod laws;

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tieout::decide::backoff;
use tieout::decide::brake::{Brake, BrakeFigures, brake};
use tieout::decide::decision::{Asked, Verdict};
use tieout::decide::permit::Retry;
use tieout::decide::policy::{BrakePolicy, Timing};
use tieout::model::evidence::{Answer, CauseKind, ObjectState, PspObject, Route, UntaggedMatch};
use tieout::model::reason::{Outcome, Reason};
use tieout::model::transaction::{Attempts, RowKey, SiblingFact, SiblingState};

use crate::decisions::world::{World, euros, evidence, failure, list, minute, object};
use changes::{any_state, any_world, reversed, states};
use laws::assert_lawful;

/// Few enough to be run all day; `PROPTEST_CASES=100000` searches for longer.
fn config(cases: u32) -> ProptestConfig {
    let more = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    // A failure prints its smallest world; nothing is written beside the sources.
    ProptestConfig {
        cases: more.unwrap_or(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The random worlds are worth their name: every outcome, every permit and most reasons come up.
#[test]
fn random_worlds_reach_far() {
    let mut runner = TestRunner::deterministic();
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..800 {
        let decision = any_world().new_tree(&mut runner).unwrap().current().decide();
        *counts.entry(format!("reason {}", decision.reason.as_str())).or_default() += 1;
        *counts.entry(format!("outcome {}", decision.outcome().as_str())).or_default() += 1;
        if let Verdict::Retryable(hand_back) = &decision.verdict {
            *counts.entry(format!("permit {}", hand_back.permit().as_str())).or_default() += 1;
        }
    }
    let reached =
        |kind: &str| counts.iter().filter(|(k, n)| k.starts_with(kind) && **n > 3).count();
    assert_eq!(reached("outcome"), 5, "{counts:#?}");
    assert_eq!(reached("permit"), 3, "{counts:#?}");
    assert!(reached("reason") >= 18, "{counts:#?}");
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn every_decision_is_lawful_and_repeats(world in any_world()) {
        let decision = world.decide();
        assert_lawful(&world, &decision);
        prop_assert_eq!(world.decide(), decision);
    }

    #[test]
    fn the_order_of_what_is_known_changes_nothing(
        world in any_world(),
        shuffled in Just(()).prop_perturb(|(), mut rng| rng.random::<u64>()),
    ) {
        let mut other = world.clone();
        other.evidence = reversed(&world.evidence);
        let turn = usize::try_from(shuffled % 7).unwrap() % world.evidence.len().max(1);
        other.evidence.rotate_left(turn);
        other.siblings.reverse();
        other.claimed_references.reverse();
        other.untagged.reverse();
        other.near_misses.reverse();
        other.history.misses.reverse();
        prop_assert_eq!(world.decide(), other.decide());
    }

    #[test]
    fn no_answer_never_helps(world in any_world(), route in 0_usize..3) {
        let mut other = world.clone();
        let route = [Route::Fetch, Route::List, Route::Search][route];
        other.no_answer(route, CauseKind::TimedOut);
        let (before, after) = (world.decide().outcome(), other.decide().outcome());
        let account = world.row.account.text() == crate::decisions::world::ACCOUNT;
        prop_assert!(!matches!(after, Outcome::Retryable | Outcome::Failed) || !account);
        prop_assert!(after != Outcome::Succeeded || before == Outcome::Succeeded);
    }

    #[test]
    fn a_second_capture_is_always_a_persons(world in any_world(), state in any_state()) {
        let mut world = world;
        world.row.account = tieout::model::transaction::AccountRef::Known(
            crate::decisions::world::ACCOUNT.into(),
        );
        let mut objects = vec![object("pi_a", ObjectState::Captured)];
        objects.push(object("pi_b", ObjectState::Captured));
        objects.push(object("pi_c", state));
        for object in &mut objects {
            object.tag = world.row.tag.usable().map(str::to_owned);
        }
        let is_charge = world.row.kind == tieout::model::transaction::Kind::Charge;
        if world.row.tag.usable().is_none() || !is_charge {
            return Ok(());
        }
        let answer = Answer::Found { objects, search: None };
        world.evidence.push(evidence(Route::Search, minute(50), answer));
        let decision = world.decide();
        prop_assert_eq!(decision.outcome(), Outcome::Review, "{:?}", decision);
    }

    /// Whatever the state, the rules and everything beside it: nothing ends, and nobody charges,
    /// while a sum can still be captured.
    #[test]
    fn nothing_ends_beside_a_sum_that_can_still_be_captured(
        world in any_world(),
        state in any_state(),
    ) {
        let mut world = world;
        world.row.account = tieout::model::transaction::AccountRef::Known(
            crate::decisions::world::ACCOUNT.into(),
        );
        let Some(tag) = world.row.tag.usable().map(str::to_owned) else { return Ok(()) };
        if world.row.kind != tieout::model::transaction::Kind::Charge {
            return Ok(());
        }
        let held = object("pi_held", state);
        let objects = vec![PspObject { capturable_minor: 1, tag: Some(tag), ..held }];
        let answer = Answer::Found { objects, search: None };
        world.evidence.push(evidence(Route::Search, minute(50), answer));
        let outcome = world.decide().outcome();
        prop_assert!(!matches!(outcome, Outcome::Retryable | Outcome::Failed), "{:?}", outcome);
    }

    /// An outage leaves everything as it was: no age, no attempt, no miss.
    #[test]
    fn errors_consume_nothing(
        days in 0_i64..400,
        handbacks in 0_u32..9,
        checks in 0_u32..60,
        unanswered in 0_u32..60,
        misses in 0_usize..4,
    ) {
        let mut world = World::plain();
        world.history.aged_from = minute(-1_440 * days);
        world.history.handbacks = handbacks;
        world.history.checks = checks;
        world.history.unanswered = unanswered;
        world.history.misses = vec![world.miss(minute(36)); misses];
        world.no_answer(Route::List, CauseKind::ServerError);
        let decision = world.decide();
        prop_assert_eq!(decision.reason, Reason::PspUnavailable);
        prop_assert_eq!(decision.outcome(), Outcome::Wait);
        prop_assert!(!decision.answered && decision.miss.is_none());
    }
}

/// Every pair of objects, in every order of age, under every standing of the row and every stage
/// of knowing: small, and all of it.
#[test]
fn every_pair_of_objects_is_judged_lawfully() {
    let states: Vec<Option<ObjectState>> = states().into_iter().map(Some).chain([None]).collect();
    let mut ends = [0_usize; 5];
    for first in &states {
        for second in &states {
            for world in variants(first.as_ref(), second.as_ref()) {
                let decision = world.decide();
                assert_lawful(&world, &decision);
                let is_twice = [first, second]
                    .iter()
                    .all(|s| matches!(s, Some(ObjectState::Captured | ObjectState::Voided)));
                assert!(!is_twice || decision.outcome() == Outcome::Review, "{decision:?}");
                let place = Outcome::ALL.iter().position(|o| *o == decision.outcome()).unwrap();
                ends[place] += 1;
            }
        }
    }
    assert!(ends.iter().all(|count| *count > 50), "every outcome is reached: {ends:?}");
}

fn variants(first: Option<&ObjectState>, second: Option<&ObjectState>) -> Vec<World> {
    let mut objects: Vec<PspObject> =
        first.map(|s| object("pi_1", s.clone())).into_iter().collect();
    objects.extend(
        second.map(|state| PspObject { created_at: minute(2), ..object("pi_2", state.clone()) }),
    );
    let whole = World::with_objects(objects.clone());
    let mut worlds = Vec::new();
    type Edit = fn(&mut World);
    let stages: [Edit; 7] = [
        |_| {},
        |w| w.history.misses.push(w.miss(minute(36))),
        |w| w.history.fingerprint_seen_at = minute(50),
        |w| w.history.aged_from = minute(-1_440 * 8),
        |w| w.history.handbacks = 5,
        |w| make_partial(w),
        |w| w.evidence.retain(|e| e.route == Route::List),
    ];
    let standings: [Edit; 5] = [
        |_| {},
        |w| w.asked = Asked::Kick,
        |w| w.asked = Asked::Watch,
        |w| {
            w.asked = Asked::Watch;
            (w.row.processing, w.row.status) = (false, "RETRY".into());
        },
        |w| {
            w.asked = Asked::Watch;
            (w.row.processing, w.row.succeeded) = (false, true);
        },
    ];
    for stage in stages {
        for standing in standings {
            let mut world = whole.clone();
            stage(&mut world);
            standing(&mut world);
            worlds.push(world);
        }
    }
    worlds
}

/// The list showed its objects, and was not read to its end.
fn make_partial(world: &mut World) {
    for item in world.evidence.iter_mut().filter(|item| item.route == Route::List) {
        if let Answer::Found { search, .. } = &mut item.answer {
            *search = None;
        }
    }
}

/// A condition of a permit, and the edit that drops it alone.
type Drop = (&'static str, fn(&mut World));

fn edit_lists(world: &mut World, edit: fn(&mut tieout::model::evidence::CompleteSearch)) {
    world.searches(Route::List).for_each(edit);
}

fn edit_miss(world: &mut World, edit: fn(&mut tieout::model::evidence::Miss)) {
    world.history.misses.iter_mut().for_each(edit);
}

/// What every hand-back needs, whatever its permit.
const OF_EVERY_HAND_BACK: &[Drop] = &[
    ("(a) the list is asked after the call's end", |w| {
        edit_lists(w, |list| list.asked_at = minute(35));
    }),
    ("(a) the row was seen unchanged for long enough", |w| {
        w.history.fingerprint_seen_at = minute(45);
    }),
    ("(a) the last attempt is long enough ago", |w| w.row.attempted_at = Some(minute(45))),
    ("(a) calls live no longer than that", |w| {
        w.policy.timing.in_flight_max = TimeDelta::minutes(40);
    }),
    ("(c) from early enough", |w| edit_lists(w, |list| list.from += TimeDelta::seconds(1))),
    ("(c) to late enough", |w| {
        edit_lists(w, |list| list.to = minute(15) - TimeDelta::seconds(1));
    }),
    ("(c) over every kind of object", |w| edit_lists(w, |list| list.kinds.truncate(1))),
    ("(c) over a kind that was added", |w| w.policy.psp.charges_by.push("source".into())),
    ("(c) within the route's reach", |w| {
        w.policy.psp.routes[1].reach = Some(TimeDelta::days(7));
    }),
    ("(b) by a route that counts", |w| edit_lists(w, |list| list.counts_as_miss = false)),
    ("no skew", |w| edit_lists(w, |list| list.psp_skew_secs = Some(121))),
    ("no skew the other way", |w| edit_lists(w, |list| list.psp_skew_secs = Some(-121))),
    ("no attempt in the future", |w| w.row.attempted_at = Some(minute(1_000))),
    ("a list at all", |w| w.evidence.retain(|item| item.route != Route::List)),
    ("the original account", |w| {
        w.evidence.iter_mut().for_each(|item| item.account = "stripe_eu".into());
    }),
    ("the index was asked", |w| w.evidence.retain(|item| item.route != Route::Search)),
    ("the index was asked after the call's end", |w| {
        w.searches(Route::Search).for_each(|search| search.asked_at = minute(35));
    }),
    ("the index was asked for every kind", |w| {
        w.searches(Route::Search).for_each(|search| search.kinds.truncate(1));
    }),
    ("every route answered", |w| w.no_answer(Route::Fetch, CauseKind::TimedOut)),
    ("a stored reference was asked for", |w| w.row.psp_reference = Some("pi_9".into())),
    ("no nearly equal tag", |w| w.near_misses.push(("pi_7".into(), "R1".into()))),
    ("no sibling was paid", |w| w.siblings.push(sibling(SiblingState::Succeeded))),
    ("no sibling was handed back", |w| w.siblings.push(sibling(SiblingState::HandedBack))),
    ("no sibling ended who knows how", |w| w.siblings.push(sibling(SiblingState::Unclear))),
    ("no sibling's money is a person's", |w| w.siblings.push(sibling(SiblingState::PaidCase))),
    ("no given-up sibling was paid", |w| w.siblings.push(sibling(SiblingState::PaidAfterAll))),
    ("every given-up sibling was asked about", |w| {
        w.siblings.push(sibling(SiblingState::GivenUp));
    }),
    ("no sibling may be paid", |w| w.siblings.push(sibling(SiblingState::Processing))),
    ("no sibling's payment is under way", |w| w.siblings.push(sibling(SiblingState::Pending))),
    ("no older sibling goes first", |w| w.siblings.push(sibling(SiblingState::Waiting))),
    ("hand-backs are left", |w| w.history.handbacks = w.policy.max_retries),
    ("nothing can still capture", |w| also_found(w, ObjectState::Authorized)),
    ("no sum can still be captured", |w| {
        let object = PspObject { capturable_minor: 1, ..object("pi_2", ObjectState::Canceled) };
        let answer = Answer::Found { objects: vec![object], search: None };
        w.evidence.push(evidence(Route::Fetch, minute(57), answer));
    }),
    ("nothing is in flight", |w| also_found(w, ObjectState::InFlight)),
    ("nothing waits for the customer", |w| also_found(w, ObjectState::ActionRequired)),
    ("no money of another sum was captured", |w| {
        w.row.money = Some(euros(1_999));
        also_found(w, ObjectState::Captured);
    }),
    ("no strange status", |w| also_found(w, ObjectState::Unknown)),
    ("no failure that may turn", |w| {
        also_found(w, states().pop().unwrap());
    }),
    ("the row is still processing", |w| {
        w.asked = Asked::Watch;
        (w.row.processing, w.row.status) = (false, "RETRY".into());
    }),
];

/// What absence needs besides.
const OF_ABSENCE: &[Drop] = &[
    ("(b) enough misses", |w| w.history.misses.clear()),
    ("(b) misses apart", |w| edit_miss(w, |miss| miss.search.asked_at = minute(54))),
    ("(b) of the row as it is", |w| w.row.image.push('x')),
    ("(b) at the row's account", |w| edit_miss(w, |miss| miss.account = "stripe_eu".into())),
    ("(a) kept misses after the call's end, too", |w| {
        edit_miss(w, |miss| miss.search.asked_at = minute(35));
    }),
    ("(c) kept misses wide enough, too", |w| {
        edit_miss(w, |miss| miss.search.to = minute(14));
    }),
    ("(c) kept misses over every kind, too", |w| {
        edit_miss(w, |miss| miss.search.kinds.truncate(1));
    }),
    ("(d) a witness", |w| edit_lists(w, |list| list.witness = None)),
    ("(d) a witness newer than the attempt", |w| {
        edit_lists(w, |list| list.witness.as_mut().unwrap().created_at = minute(0));
    }),
    ("(d) kept misses with a witness, too", |w| edit_miss(w, |miss| miss.search.witness = None)),
    ("attempts are known", |w| w.row.attempts = Attempts::Unknown),
    ("no untagged money", |w| {
        w.untagged.push(UntaggedMatch {
            reference: "pi_8".into(),
            captured: euros(2_000),
            created_at: minute(2),
            tag: None,
        });
    }),
    ("nothing was found", |w| also_found(w, ObjectState::Canceled)),
    ("a live key, or a third miss", |w| {
        w.row.idempotency_key = None;
        w.history.misses.truncate(1);
    }),
];

fn sibling(state: SiblingState) -> SiblingFact {
    SiblingFact { id: "r0".into(), state, older: true, lacks: None }
}

fn also_found(world: &mut World, state: ObjectState) {
    let objects = vec![PspObject { created_at: minute(2), ..object("pi_2", state) }];
    let answer = Answer::Found { objects, search: None };
    world.evidence.push(evidence(Route::Fetch, minute(57), answer));
}

fn assert_each_is_needed(base: &World, conditions: &[Drop]) {
    assert_eq!(base.decide().outcome(), Outcome::Retryable, "{:?}", base.decide());
    for (condition, drop) in conditions {
        let mut world = base.clone();
        drop(&mut world);
        let decision = world.decide();
        let is_safe = matches!(decision.outcome(), Outcome::Wait | Outcome::Review);
        assert!(is_safe, "without `{condition}`: {decision:?}");
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn each_condition_of_absence_is_needed(
        first in 36_i64..=40,
        with_key in any::<bool>(),
        once in any::<bool>(),
        skew in prop::option::of(-120_i64..=120),
    ) {
        let mut world = World::absent();
        world.history.misses = vec![world.miss(minute(first))];
        if !with_key {
            // Without a key's protection a third miss is needed; the last two are an hour later.
            world.row.idempotency_key = None;
            let second = world.miss(minute(55));
            world.history.misses.push(second);
            world.now = minute(80);
            world.searches(Route::List).for_each(|search| search.asked_at = minute(75));
        }
        if once {
            world.row.attempts = Attempts::Once;
        }
        world.searches(Route::List).for_each(|search| search.psp_skew_secs = skew);
        assert_each_is_needed(&world, OF_ABSENCE);
        assert_each_is_needed(&world, OF_EVERY_HAND_BACK);
    }

    #[test]
    fn each_condition_of_an_objects_hand_back_is_needed(
        payable in any::<bool>(),
        attempted in any::<bool>(),
        created in 0_i64..=15,
    ) {
        let state =
            if attempted { failure("card_declined", payable) } else { ObjectState::Unattempted };
        let base = World::with_objects(vec![PspObject {
            created_at: minute(created),
            ..object("pi_1", state)
        }]);
        assert_each_is_needed(&base, OF_EVERY_HAND_BACK);
    }

    #[test]
    fn a_failure_that_may_turn_is_never_an_end(
        minutes in 1_i64..10_000,
        payable in any::<bool>(),
        known in prop::sample::select(vec!["card_declined", "stolen_card"]),
    ) {
        let mut state = failure(known, payable);
        if let ObjectState::Failed(failure) = &mut state {
            failure.final_from = Some(minute(60 + minutes));
        }
        let decision = World::with_objects(vec![object("pi_1", state)]).decide();
        prop_assert_eq!(decision.outcome(), Outcome::Wait);
        prop_assert_eq!(decision.reason, Reason::FailureNotFinal);
    }

    /// Whatever the key's age, a hand-back with it lapses before it does, and leaves a worker the
    /// time for a call.
    #[test]
    fn the_key_outlives_its_hand_back(life in prop_oneof![1_i64..180_000, 3_600_i64..3_720]) {
        let mut world = World::absent();
        let life = TimeDelta::seconds(life);
        world.policy.psp.key_life = Some(life);
        world.history.misses.push(world.miss(minute(36)));
        let has_time = life - TimeDelta::minutes(60) > TimeDelta::seconds(60).min(life / 10);
        if let Verdict::Retryable(hand_back) = world.decide().verdict {
            match hand_back.retry() {
                Retry::SameKey { until } => {
                    prop_assert_eq!(*until, minute(0) + life);
                    prop_assert!(hand_back.charge_before() <= *until && has_time);
                }
                other => prop_assert!(false, "two misses without a live key: {:?}", other),
            }
        } else {
            prop_assert!(!has_time);
        }
    }

    /// Evidence of another account never makes a verdict.
    #[test]
    fn another_accounts_word_is_no_word(world in any_world()) {
        let mut world = world;
        world.evidence.iter_mut().for_each(|item| item.account = "elsewhere".into());
        let outcome = world.decide().outcome();
        prop_assert!(matches!(outcome, Outcome::Wait | Outcome::Review), "{:?}", outcome);
    }
}

fn figures() -> impl Strategy<Value = BrakeFigures> {
    (0_u64..600, 0_u64..9, 0_u64..20_000, 0_u64..500, 0_u64..500, 0_u32..=1_000).prop_map(
        |(handbacks, abandoned, listed, nearest, resolved, usual_permille)| BrakeFigures {
            handbacks,
            abandoned,
            listed,
            nearest,
            resolved: resolved.min(nearest),
            usual_permille,
        },
    )
}

proptest! {
    #![proptest_config(config(500))]

    /// More to hand back, or fewer tags that arrive, never let the brake go.
    #[test]
    fn the_brake_is_monotonic(figures in figures(), limit in prop::option::of(0_u64..100)) {
        let policy = BrakePolicy { max_handbacks: limit, ..BrakePolicy::default() };
        let is_on = |figures: &BrakeFigures| matches!(brake(figures, &policy), Brake::On(_));
        let most = limit.unwrap_or((figures.listed / 20).clamp(20, 500));
        let share_holds = figures.nearest > 0
            && figures.resolved * 1_000_000
                >= 800 * u64::from(figures.usual_permille) * figures.nearest;
        let nothing_ends = figures.handbacks == 0 && figures.abandoned == 0;
        let may_go = nothing_ends || (figures.handbacks <= most && share_holds);
        prop_assert_eq!(is_on(&figures), !may_go);
        if is_on(&figures) {
            let more = BrakeFigures { handbacks: figures.handbacks + 1, ..figures };
            let fewer = BrakeFigures { resolved: figures.resolved.saturating_sub(1), ..figures };
            prop_assert!(is_on(&more) && is_on(&fewer));
        }
    }

    #[test]
    fn delays_stay_within_their_bounds(
        first in 1_i64..10_000_000,
        cap in 1_i64..100_000_000,
        attempt in any::<u32>(),
        id in "[a-z0-9]{1,12}",
    ) {
        let timing = Timing {
            backoff_first: TimeDelta::seconds(first),
            backoff_cap: TimeDelta::seconds(cap),
            ..Timing::default()
        };
        let key = RowKey { table: "charges".into(), id };
        let delay = backoff::delay(&key, attempt, &timing);
        prop_assert_eq!(delay, backoff::delay(&key, attempt, &timing));
        let most = i128::from(first) << attempt.min(40);
        let most = most.min(i128::from(cap.max(first)));
        prop_assert!(delay >= TimeDelta::seconds(first / 10).max(TimeDelta::seconds(1)));
        prop_assert!(i128::from(delay.num_seconds()) <= most);
    }
}

/// A list asked for later than now, by whatever clock, is not believed for that.
#[test]
fn a_question_from_the_future_ends_no_grace() {
    let mut world = World::absent();
    world.now = minute(35);
    let outcome = world.decide().outcome();
    assert_eq!(outcome, Outcome::Wait);
    world.history.misses.push(world.miss(minute(20)));
    world.evidence = vec![evidence(Route::List, minute(99), Answer::Nothing(list(minute(99))))];
    assert_eq!(world.decide().reason, Reason::WithinGrace);
}
