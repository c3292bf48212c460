//! What must hold of every decision, said again and naively: nothing here asks `decide` how it
//! came to its verdict, and no helper of it is used beyond the plain data.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use tieout::decide::decision::{Asked, Decision, Verdict, Want};
use tieout::decide::permit::{HandBack, Permit, Retry};
use tieout::decide::policy::AbsentMeans;
use tieout::decide::rules::{Effect, Subject};
use tieout::model::evidence::{
    Answer, CompleteSearch, Evidence, Failure, ObjectState, PspObject, Route,
};
use tieout::model::reason::{Leads, Outcome, Reason};
use tieout::model::time::Instant;
use tieout::model::transaction::{AccountRef, Attempts, Kind, SiblingState};

use crate::decisions::world::{ACCOUNT, World};

/// The laws that a decision breaks.
pub fn broken(world: &World, decision: &Decision) -> Vec<&'static str> {
    let laws = Laws { world, own: own_objects(world) };
    let mut broken = laws.shape(decision);
    broken.extend(match &decision.verdict {
        Verdict::Succeeded => laws.success(decision),
        Verdict::Retryable(hand_back) => laws.hand_back(decision, hand_back),
        Verdict::Failed => laws.failure(decision),
        Verdict::Wait | Verdict::Review => Vec::new(),
    });
    broken
}

pub fn assert_lawful(world: &World, decision: &Decision) {
    let broken = broken(world, decision);
    assert!(broken.is_empty(), "{broken:#?}\n{decision:?}\n{world:?}");
}

struct Laws<'a> {
    world: &'a World,
    /// Every sighting of an object that is the row's.
    own: Vec<&'a PspObject>,
}

/// The laws whose condition is false.
fn unless(laws: &[(bool, &'static str)]) -> Vec<&'static str> {
    laws.iter().filter(|(holds, _)| !holds).map(|(_, law)| *law).collect()
}

impl Laws<'_> {
    fn shape(&self, decision: &Decision) -> Vec<&'static str> {
        let World { now, asked, .. } = self.world;
        let is_wait = decision.outcome() == Outcome::Wait;
        let leads = match decision.reason.leads() {
            Leads::To(outcome) => outcome == decision.outcome(),
            Leads::ByPolicy => true,
        };
        let no_answer = own_evidence(self.world).any(|e| matches!(e.answer, Answer::NoAnswer(_)));
        let ends = matches!(decision.outcome(), Outcome::Retryable | Outcome::Failed);
        let unavailable = decision.reason == Reason::PspUnavailable;
        unless(&[
            (is_wait == decision.next_check_at.is_some(), "a wait, and only it, has a next look"),
            (decision.next_check_at.is_none_or(|at| at > *now), "the next look is to come"),
            (decision.watch_at.is_none_or(|at| at > *now), "the watch is to come"),
            (leads, "a reason leads where it says"),
            (!decision.text.is_empty(), "a decision says why"),
            (!(no_answer && ends), "no answer is no ground for an end"),
            (!no_answer || !decision.answered, "a missing answer is recorded as one"),
            (!unavailable || (is_wait && !decision.answered), "an outage is no answer"),
            (!unavailable || decision.miss.is_none(), "an outage is no miss"),
            (!ends || *asked != Asked::Watch || self.world.row.processing, "a watch ends nothing"),
            (!ends || !self.world.row.succeeded, "a success is not taken back"),
            (decision.wants != Some(Want::List) || !ends, "who still asks does not end"),
        ])
    }

    fn success(&self, decision: &Decision) -> Vec<&'static str> {
        let row = &self.world.row;
        let equal = |o: &&&PspObject| o.captured.is_some() && o.captured == row.money;
        let is_captured = |o: &&&PspObject| o.state == ObjectState::Captured;
        let by_rule = decision.reason == Reason::Rule;
        let seen = decision.seen.as_ref().and_then(|seen| seen.amount);
        let moved: BTreeSet<&str> =
            self.own.iter().filter(|o| has_money(o)).map(|o| o.reference.as_str()).collect();
        let is_paid = |s: &SiblingState| {
            use SiblingState::{PaidAfterAll, PaidCase, Succeeded};
            matches!(s, Succeeded | PaidCase | PaidAfterAll)
        };
        let paid = self.world.siblings.iter().any(|s| is_paid(&s.state));
        let taken_back = self.own.iter().all(|o| o.disputed || o.refunded_minor != 0);
        unless(&[
            (self.own.iter().filter(equal).any(|o| by_rule || is_captured(&o)), "equal money"),
            (seen.is_some() && seen == row.money, "the record shows the equal money"),
            (moved.len() == 1 || self.are_one(&moved), "one movement"),
            (!paid, "no sibling was paid"),
            (by_rule || !taken_back, "what was taken back is no plain success"),
            (row.processing || self.world.asked == Asked::Kick, "only what is open succeeds"),
            (row.defects.is_empty() && row.money.is_some(), "the row can be read"),
        ])
    }

    /// Several references that some object names together.
    fn are_one(&self, moved: &BTreeSet<&str>) -> bool {
        self.own.iter().any(|o| moved.iter().all(|name| o.is_named(name)))
    }

    fn ended(&self) -> Vec<&'static str> {
        let World { now, .. } = self.world;
        let is_final = |o: &PspObject| match &o.state {
            ObjectState::Failed(failure) => failure.final_from.is_some_and(|from| from <= *now),
            _ => true,
        };
        let all_final = self.own.iter().all(|o| is_final(o));
        unless(&[
            (!self.own.iter().any(|o| has_money(o)), "no money was seen"),
            (!self.own.iter().any(|o| can_capture(o)), "nothing can still capture"),
            (*now > self.over_at(), "(a) the call is over"),
            (all_final, "every failure is final"),
            (self.is_reference_known(), "the stored reference is known"),
            (self.knows_everything(), "(a), (c) a complete, wide list after the call's end"),
        ])
    }

    fn hand_back(&self, decision: &Decision, hand_back: &HandBack) -> Vec<&'static str> {
        let World { policy, now, siblings, near_misses, history, .. } = self.world;
        let charges = *hand_back.retry() != Retry::Never;
        let taken = |s: &SiblingState| {
            use SiblingState::{HandedBack, PaidAfterAll, PaidCase, Succeeded, Unclear};
            matches!(s, Succeeded | HandedBack | PaidCase | PaidAfterAll | Unclear)
        };
        let may_be_paid = |s: &SiblingState| {
            use SiblingState::{GivenUp, Pending, Processing};
            matches!(s, Processing | Pending | GivenUp)
        };
        let goes_first = |s: &SiblingState| *s == SiblingState::Waiting;
        let in_time = match hand_back.retry() {
            Retry::SameKey { until } => hand_back.charge_before() <= *until && until > now,
            _ => true,
        };
        let from = hand_back.not_before().unwrap_or(*now).max(*now);
        let mut broken = self.ended();
        broken.extend(unless(&[
            (near_misses.is_empty(), "no tag is nearly this one"),
            (!charges || !siblings.iter().any(|s| taken(&s.state)), "no sibling has it"),
            (
                !charges || !siblings.iter().any(|s| goes_first(&s.state) && s.older),
                "no older sibling goes first",
            ),
            (
                !charges || !siblings.iter().any(|s| may_be_paid(&s.state)),
                "no sibling may turn out to be paid",
            ),
            (!charges || history.handbacks < policy.max_retries, "not more often than allowed"),
            (
                charges == (policy.absent_means == AbsentMeans::HandBack)
                    || decision.reason != Reason::Absent,
                "what means abandoned is charged by nobody, and nothing else is",
            ),
            (in_time, "charge_before lies within the key's life"),
            (hand_back.charge_before() >= from.min(*now), "charge_before is to come"),
            (hand_back.charge_before() <= from + policy.timing.charge_before, "a day at most"),
            (self.is_index_asked(), "the index was asked after the call's end"),
            (decision.watch_at.is_some(), "the tag is watched"),
        ]));
        broken.extend(match hand_back.permit() {
            Permit::Absent(_) => self.absent(decision),
            Permit::Declined(_) => self.declined(decision, hand_back.retry()),
            Permit::Unattempted(_) => self.unattempted(decision, hand_back.retry()),
            Permit::Person(_) => vec!["no person decided this"],
        });
        broken
    }

    fn absent(&self, decision: &Decision) -> Vec<&'static str> {
        let World { row, untagged, .. } = self.world;
        unless(&[
            (decision.reason == Reason::Absent, "absence has its reason"),
            (self.own.is_empty(), "nothing was found"),
            (row.psp_reference.is_none(), "no reference is stored"),
            (row.attempts != Attempts::Unknown, "attempts are known"),
            (untagged.is_empty(), "no untagged money could be its own"),
            (self.misses_apart() >= self.misses_needed(), "(b) enough misses, apart"),
            (self.lists().any(|list| self.is_miss(list)), "(d) a witness in this run's list"),
        ])
    }

    fn declined(&self, decision: &Decision, retry: &Retry) -> Vec<&'static str> {
        let is_retryable = |o: &&&PspObject| self.rule_says_retry(o);
        let mut broken = self.object_retry(retry);
        broken.extend(unless(&[
            (decision.reason == Reason::DeclinedRetryable, "a decline has its reason"),
            (self.own.iter().any(|o| is_retryable(&o)), "a rule says so of a stated failure"),
        ]));
        broken
    }

    fn unattempted(&self, decision: &Decision, retry: &Retry) -> Vec<&'static str> {
        let mut broken = self.object_retry(retry);
        broken.extend(unless(&[
            (decision.reason == Reason::Unattempted, "it has its reason"),
            (matches!(retry, Retry::SameObject(_)), "by the same object only"),
        ]));
        broken
    }

    fn object_retry(&self, retry: &Retry) -> Vec<&'static str> {
        let payable = |o: &PspObject| match &o.state {
            ObjectState::Failed(Failure { still_payable, .. }) => *still_payable,
            ObjectState::Unattempted => true,
            _ => false,
        };
        // An object that was seen waiting may have gone on since; one that only waits has not.
        let waits = |name: &str| {
            let mut seen = self.own.iter().filter(|o| o.is_named(name));
            seen.all(|o| o.state == ObjectState::ActionRequired)
        };
        let how = match retry {
            Retry::SameObject(name) => self.own.iter().any(|o| o.reference == *name && payable(o)),
            Retry::NewAttempt => self.own.iter().all(|one| {
                self.own.iter().any(|o| o.is_named(&one.reference) && o.state.is_dead())
            }),
            Retry::SameKey { .. } | Retry::Never => false,
        };
        unless(&[
            (how, "the same object where one can be paid, a new one where all are dead"),
            (!self.own.iter().any(|o| waits(&o.reference)), "nothing waits for the customer"),
        ])
    }

    fn failure(&self, decision: &Decision) -> Vec<&'static str> {
        let gave_up = decision.reason == Reason::GaveUp;
        let by_rule = self.own.iter().any(|o| self.effect(o) == Some(&Effect::Failed));
        let mut broken = self.ended();
        broken.extend(unless(&[
            (gave_up || by_rule, "a rule says so, or the policy"),
            (decision.watch_at.is_some(), "the tag is watched"),
        ]));
        broken
    }

    fn effect(&self, object: &PspObject) -> Option<&Effect> {
        let subject = match object.state {
            ObjectState::Failed(_) => Subject::Failure,
            ObjectState::Authorized => Subject::Authorized,
            ObjectState::ActionRequired => Subject::ActionRequired,
            ObjectState::Canceled => Subject::Canceled,
            ObjectState::Expired => Subject::Expired,
            ObjectState::Unknown => Subject::UnknownStatus,
            _ => return None,
        };
        let code = match &object.state {
            ObjectState::Failed(failure) => failure.code.as_str(),
            _ => "",
        };
        let rules = &self.world.policy.rules.rules;
        let fits = |codes: &[String]| codes.is_empty() || codes.iter().any(|c| c == code);
        rules
            .iter()
            .find(|rule| rule.matches.subject == subject && fits(&rule.matches.codes))
            .map(|rule| &rule.effect)
    }

    fn rule_says_retry(&self, object: &PspObject) -> bool {
        matches!(object.state, ObjectState::Failed(_))
            && matches!(self.effect(object), Some(Effect::Retryable { .. }))
    }

    fn last_attempt(&self) -> Instant {
        let World { row, history, .. } = self.world;
        let told = row.attempted_at.unwrap_or(row.created_at).max(row.created_at);
        match row.attempts {
            Attempts::Column => told,
            // What it sent after a hand-back it wrote nowhere.
            Attempts::Once | Attempts::Unknown if history.handbacks > 0 => {
                let taken_at = history.last_handback.as_ref().and_then(|past| past.taken_at);
                told.max(history.fingerprint_seen_at).max(taken_at.unwrap_or(told))
            }
            Attempts::Once | Attempts::Unknown => told,
        }
    }

    fn over_at(&self) -> Instant {
        let World { history, policy, .. } = self.world;
        self.last_attempt().max(history.fingerprint_seen_at) + policy.timing.in_flight_max
    }

    fn kinds(&self) -> Vec<String> {
        match self.world.row.kind {
            Kind::Charge => self.world.policy.psp.charges_by.clone(),
            Kind::Refund => vec!["refund".into()],
            Kind::Payout => vec!["payout".into()],
        }
    }

    fn lists(&self) -> impl Iterator<Item = &CompleteSearch> {
        own_evidence(self.world).filter_map(search_of).filter(|s| s.route == Route::List)
    }

    /// (a), (c) and the clocks.
    fn is_wide(&self, search: &CompleteSearch) -> bool {
        let World { row, policy, now, .. } = self.world;
        let from = row.created_at - policy.timing.object_before_row;
        let to = self.last_attempt() + policy.timing.in_flight_max;
        let reach = policy.psp.routes.iter().find(|f| f.route == search.route).unwrap().reach;
        search.asked_at > self.over_at()
            && *now > self.over_at()
            && search.counts_as_miss
            && search.from <= from
            && search.to >= to
            && reach.is_none_or(|reach| search.asked_at - reach <= from)
            && self.kinds().iter().all(|kind| search.kinds.contains(kind))
            && search.psp_skew_secs.is_none_or(|secs| (-120..=120).contains(&secs))
    }

    fn is_miss(&self, search: &CompleteSearch) -> bool {
        let is_newer = |at: Instant| at > self.last_attempt();
        self.is_wide(search) && search.witness.as_ref().is_some_and(|w| is_newer(w.created_at))
    }

    /// Either a wide list, or, where no tag can be searched by, the last attempt's own object.
    fn knows_everything(&self) -> bool {
        let World { row, .. } = self.world;
        if row.tag.usable().is_some() {
            return self.lists().any(|list| self.is_wide(list));
        }
        let skew = TimeDelta::minutes(2);
        let is_its_own = |o: &&PspObject| o.created_at >= self.last_attempt() - skew;
        let asked_late = own_evidence(self.world)
            .any(|e| matches!(e.answer, Answer::Found { .. }) && e.asked_at > self.over_at());
        row.attempts != Attempts::Unknown && asked_late && self.own.iter().any(is_its_own)
    }

    fn is_reference_known(&self) -> bool {
        let stored = self.world.row.psp_reference.as_deref();
        stored.is_none_or(|stored| self.own.iter().any(|o| o.is_named(stored)))
    }

    fn is_index_asked(&self) -> bool {
        let World { row, policy, .. } = self.world;
        let Some(facts) = policy.psp.routes.iter().find(|f| f.route == Route::Search) else {
            return true;
        };
        let kinds = self.kinds();
        let knows = |kind: &String| facts.kinds.is_empty() || facts.kinds.contains(kind);
        if row.tag.usable().is_none() || !kinds.iter().all(knows) {
            return true;
        }
        let searched = |kind: &String| {
            own_evidence(self.world).filter_map(search_of).any(|search| {
                search.route == Route::Search
                    && search.asked_at > self.over_at()
                    && search.kinds.contains(kind)
            })
        };
        kinds.iter().all(searched)
    }

    fn misses_needed(&self) -> usize {
        let World { row, policy, now, .. } = self.world;
        let life = policy.psp.key_life.filter(|_| row.idempotency_key.is_some());
        if life.is_some_and(|life| row.created_at + life > *now) { 2 } else { 3 }
    }

    /// The most misses that can be picked so that each is the gap away from the others.
    fn misses_apart(&self) -> usize {
        let World { row, policy, history, .. } = self.world;
        let lag = self.lists().map(|list| list.lag_secs).min().unwrap_or(0);
        let gap = policy.timing.recheck_after.max(TimeDelta::seconds(lag));
        let kept = history
            .misses
            .iter()
            .filter(|miss| miss.account == ACCOUNT && miss.fingerprint == row.fingerprint());
        let all = kept.map(|miss| &miss.search).chain(self.lists());
        let mut times: Vec<Instant> =
            all.filter(|search| self.is_miss(search)).map(|search| search.asked_at).collect();
        times.sort_unstable();
        let mut picked: Vec<Instant> = Vec::new();
        for at in times {
            if picked.last().is_none_or(|last| at - *last >= gap) {
                picked.push(at);
            }
        }
        picked.len()
    }
}

fn own_evidence(world: &World) -> impl Iterator<Item = &Evidence> {
    world.evidence.iter().filter(|e| AccountRef::Known(e.account.clone()) == world.row.account)
}

fn search_of(evidence: &Evidence) -> Option<&CompleteSearch> {
    match &evidence.answer {
        Answer::Nothing(search) | Answer::Found { search: Some(search), .. } => Some(search),
        _ => None,
    }
}

fn has_money(object: &PspObject) -> bool {
    matches!(object.state, ObjectState::Captured | ObjectState::Voided)
        || object.captured.is_some_and(|money| money.minor > 0)
}

fn can_capture(object: &PspObject) -> bool {
    object.capturable_minor > 0
        || matches!(object.state, ObjectState::InFlight | ObjectState::Authorized)
}

/// Sightings by the row's tag or stored reference, and whatever shares an id with one of them.
fn own_objects(world: &World) -> Vec<&PspObject> {
    let row = &world.row;
    let all: Vec<&PspObject> = own_evidence(world)
        .filter_map(|e| match &e.answer {
            Answer::Found { objects, .. } => Some(objects),
            _ => None,
        })
        .flatten()
        .filter(|o| match row.kind {
            Kind::Charge => o.kind != "refund",
            Kind::Refund => o.kind == "refund",
            Kind::Payout => o.kind == "payout",
        })
        .collect();
    let names = |o: &PspObject| -> Vec<String> {
        o.aliases.iter().cloned().chain([o.reference.clone()]).collect()
    };
    let mut known: BTreeSet<String> = row.psp_reference.iter().cloned().collect();
    let tagged =
        |o: &&&PspObject| row.tag.usable().is_some() && o.tag.as_deref() == row.tag.usable();
    known.extend(all.iter().filter(tagged).flat_map(|o| names(o)));
    loop {
        let before = known.len();
        let linked = all.iter().filter(|o| names(o).iter().any(|name| known.contains(name)));
        let more: Vec<String> = linked.flat_map(|o| names(o)).collect();
        known.extend(more);
        if known.len() == before {
            break;
        }
    }
    all.into_iter().filter(|o| names(o).iter().any(|name| known.contains(name))).collect()
}
