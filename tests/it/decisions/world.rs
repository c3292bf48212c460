//! A row with everything around it, owned, so that tests can change one thing at a time.
//!
//! The plain world is a charge of 20.00 EUR, sent once at minute 0, first seen by tieout at
//! minute 20 and decided at minute 60; the PSP was not asked yet. Minutes count from [`start`].

use chrono::TimeDelta;
use tieout::decide::absence::call_over_at;
use tieout::decide::decision::{Asked, Decision, History, Inputs};
use tieout::decide::judge::decide;
use tieout::decide::policy::{
    AbsentMeans, BrakePolicy, GaveUp, Policy, PspFacts, RouteFacts, Timing, Tolerance,
};
use tieout::decide::replay::{WouldBe, replay};
use tieout::decide::rules::{Effect, Match, Rule, RuleSet, Subject};
use tieout::model::evidence::{
    Answer, Cause, CauseKind, CompleteSearch, Evidence, Failure, Miss, ObjectState, PspObject,
    Route, UntaggedMatch, Witness,
};
use tieout::model::money::{Currency, Money};
use tieout::model::time::{Instant, from_text};
use tieout::model::transaction::{
    AccountRef, Attempts, Kind, RowKey, SiblingFact, TagState, Transaction,
};

/// The account that every row belongs to, unless a test says otherwise.
pub const ACCOUNT: &str = "stripe_live";

/// One decision's worth of inputs.
#[derive(Clone)]
pub struct World {
    pub row: Transaction,
    pub siblings: Vec<SiblingFact>,
    pub evidence: Vec<Evidence>,
    pub claimed_references: Vec<(String, String)>,
    pub untagged: Vec<UntaggedMatch>,
    pub near_misses: Vec<(String, String)>,
    pub history: History,
    pub policy: Policy,
    pub asked: Asked,
    pub now: Instant,
}

/// A line a part; of the policy what differs from the plain one.
impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?} at {}\n{:?}", self.asked, self.now, self.row)?;
        writeln!(f, "{:?}", self.history)?;
        for item in &self.evidence {
            writeln!(f, "{item:?}")?;
        }
        let around = (&self.siblings, &self.claimed_references, &self.untagged, &self.near_misses);
        writeln!(f, "{around:?}")?;
        let (policy, plain) = (&self.policy, plain_policy());
        if policy.rules != plain.rules {
            writeln!(f, "{:?}", policy.rules.rules.first())?;
        }
        if (&policy.timing, &policy.psp) != (&plain.timing, &plain.psp) {
            writeln!(f, "{:?} {:?}", policy.timing, policy.psp)?;
        }
        write!(f, "{:?} {:?} {}", policy.absent_means, policy.gave_up, policy.max_retries)
    }
}

impl World {
    pub fn plain() -> Self {
        let seen = minute(20);
        Self {
            row: plain_row(),
            siblings: Vec::new(),
            evidence: Vec::new(),
            claimed_references: Vec::new(),
            untagged: Vec::new(),
            near_misses: Vec::new(),
            history: History { first_account: Some(ACCOUNT.into()), ..History::first_look(seen) },
            policy: plain_policy(),
            asked: Asked::Run,
            now: minute(60),
        }
    }

    /// A row that is proven absent: misses at minutes 36 and 55, the index asked at 56.
    pub fn absent() -> Self {
        let mut world = Self::plain();
        world.history.misses.push(world.miss(minute(36)));
        world.evidence.push(evidence(Route::List, minute(55), Answer::Nothing(list(minute(55)))));
        world.ask_index();
        world
    }

    /// The plain world with a complete list that shows these objects, and the index asked.
    pub fn with_objects(objects: Vec<PspObject>) -> Self {
        let mut world = Self::plain();
        let search = Some(list(minute(55)));
        world.evidence.push(evidence(Route::List, minute(55), Answer::Found { objects, search }));
        world.ask_index();
        world
    }

    pub fn ask_index(&mut self) {
        let search = CompleteSearch {
            route: Route::Search,
            counts_as_miss: false,
            lag_secs: 3_600,
            ..list(minute(56))
        };
        self.evidence.push(evidence(Route::Search, minute(56), Answer::Nothing(search)));
    }

    pub fn miss(&self, asked_at: Instant) -> Miss {
        Miss {
            account: ACCOUNT.into(),
            fingerprint: self.row.fingerprint(),
            search: list(asked_at),
        }
    }

    pub fn no_answer(&mut self, route: Route, kind: CauseKind) {
        let cause = Cause { kind, detail: "planted".into() };
        self.evidence.push(evidence(route, minute(57), Answer::NoAnswer(cause)));
    }

    /// Every complete search in the evidence of this route.
    pub fn searches(&mut self, route: Route) -> impl Iterator<Item = &mut CompleteSearch> {
        self.evidence.iter_mut().filter_map(move |item| match &mut item.answer {
            Answer::Nothing(search) | Answer::Found { search: Some(search), .. }
                if search.route == route =>
            {
                Some(search)
            }
            _ => None,
        })
    }

    /// Everything as it is, a good while earlier: each question was put within the call's time.
    pub fn all_asked_before_the_call_was_over(&mut self) {
        let over_at = call_over_at(&self.row, &self.history, &self.policy);
        let Some(last) = self.evidence.iter().map(|one| one.asked_at).max() else { return };
        let by = last - (over_at - TimeDelta::seconds(1));
        for one in &mut self.evidence {
            one.asked_at -= by;
            if let Answer::Nothing(search) | Answer::Found { search: Some(search), .. } =
                &mut one.answer
            {
                search.asked_at -= by;
            }
        }
        self.now -= by;
    }

    pub fn decide(&self) -> Decision {
        decide(&self.inputs(), &self.policy, self.now)
    }

    /// What would be decided, and nothing more.
    pub fn replay(&self) -> WouldBe {
        replay(&self.inputs(), &self.policy, self.now)
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            row: &self.row,
            siblings: &self.siblings,
            evidence: &self.evidence,
            claimed_references: &self.claimed_references,
            untagged: &self.untagged,
            near_misses: &self.near_misses,
            history: &self.history,
            asked: self.asked,
        }
    }
}

/// Minute 0 of every test.
pub fn start() -> Instant {
    from_text("2026-11-19T08:00:00Z").unwrap()
}

pub fn minute(minutes: i64) -> Instant {
    start() + TimeDelta::minutes(minutes)
}

pub fn euros(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").unwrap())
}

fn plain_row() -> Transaction {
    Transaction {
        key: RowKey { table: "charges".into(), id: "r1".into() },
        status: "processing".into(),
        processing: true,
        succeeded: false,
        ignored: false,
        kind: Kind::Charge,
        money: Some(euros(2_000)),
        defects: Vec::new(),
        account: AccountRef::Known(ACCOUNT.into()),
        tag: TagState::Usable("r1".into()),
        psp_reference: None,
        natural_key: Some("sub_1/2026-11".into()),
        idempotency_key: Some("charge-r1".into()),
        created_at: start(),
        attempted_at: Some(start()),
        attempts: Attempts::Column,
        image: "('r1','processing')".into(),
    }
}

pub fn plain_policy() -> Policy {
    let route = |route, kinds: &[&str], counts_as_miss, lag_secs| RouteFacts {
        route,
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        counts_as_miss,
        lag: TimeDelta::seconds(lag_secs),
        reach: None,
    };
    Policy {
        timing: Timing::default(),
        max_retries: 5,
        gave_up: GaveUp::Review,
        absent_means: AbsentMeans::HandBack,
        rules: RuleSet { rules: plain_rules(), version: "test".into() },
        psp: PspFacts {
            psp: "stripe".into(),
            kinds: vec![Kind::Charge, Kind::Refund],
            tag_max: 500,
            routes: vec![
                route(Route::Fetch, &[], false, 0),
                route(Route::List, &[], true, 0),
                route(Route::Search, &["payment_intent", "charge"], false, 3_600),
            ],
            charges_by: vec!["payment_intent".into(), "charge".into()],
            key_life: Some(TimeDelta::hours(24)),
        },
        brake: BrakePolicy::default(),
        tolerance: Tolerance::default(),
    }
}

fn plain_rules() -> Vec<Rule> {
    vec![
        rule("card_declined", Effect::Retryable { not_before: None }),
        rule("insufficient_funds", Effect::Retryable { not_before: Some(TimeDelta::days(3)) }),
        rule("stolen_card", Effect::Failed),
    ]
}

/// A shipped rule for a failure's code.
fn rule(code: &str, effect: Effect) -> Rule {
    Rule {
        id: format!("stripe.decline.{code}"),
        own: false,
        matches: Match { codes: vec![code.to_owned()], ..match_of(Subject::Failure) },
        effect,
        means: String::new(),
    }
}

pub fn match_of(subject: Subject) -> Match {
    Match { psp: Some("stripe".into()), ..Match::of(subject) }
}

pub fn evidence(route: Route, asked_at: Instant, answer: Answer) -> Evidence {
    Evidence { account: ACCOUNT.into(), route, asked_at, answer }
}

/// A complete list of payments, wide enough for the plain row, with a witness.
pub fn list(asked_at: Instant) -> CompleteSearch {
    CompleteSearch {
        route: Route::List,
        kinds: vec!["payment_intent".into(), "charge".into()],
        from: start() - TimeDelta::days(7),
        to: asked_at,
        asked_at,
        counts_as_miss: true,
        lag_secs: 0,
        psp_skew_secs: Some(0),
        listed: 120,
        witness: Some(Witness {
            reference: "pi_witness".into(),
            tag: "r0".into(),
            created_at: minute(30),
        }),
        lacks: None,
    }
}

/// An object of the row's own amount, made a minute after the row.
pub fn object(reference: &str, state: ObjectState) -> PspObject {
    let has_money = matches!(state, ObjectState::Captured | ObjectState::Voided);
    PspObject {
        reference: reference.into(),
        aliases: Vec::new(),
        kind: "payment_intent".into(),
        status: state.as_str().to_owned(),
        state,
        amount: Some(euros(2_000)),
        captured: has_money.then(|| euros(2_000)),
        refunded_minor: 0,
        capturable_minor: 0,
        disputed: false,
        charged_back_minor: 0,
        beyond_minor: 0,
        created_at: minute(1),
        tag: Some("r1".into()),
        returned: None,
    }
}

/// A failure that is final from the first minute on.
pub fn failure(code: &str, still_payable: bool) -> ObjectState {
    ObjectState::Failed(Failure {
        code: code.into(),
        advice: None,
        network_advice: None,
        final_from: Some(minute(1)),
        still_payable,
    })
}
