//! The inputs of a decision, sorted for judging: which objects are the row's own, what each of
//! them is by all that was seen of it, and which searches were complete.
//!
//! The order in which evidence and objects come changes nothing. Money seen once does not vanish:
//! a later answer that denies it is a conflict. An answer of another account, an object of another
//! kind of movement or with another tag is never taken for the row's.

use chrono::TimeDelta;

use crate::decide::absence;
use crate::decide::backoff;
use crate::decide::decision::{Asked, Decision, History, Inputs, PastHandBack, Seen, Verdict};
use crate::decide::permit::stated_failure;
use crate::decide::policy::{Policy, Tolerance};
use crate::decide::rules::{Question, Rule, Subject};
use crate::model::evidence::{
    Answer, Cause, CompleteSearch, Evidence, ObjectState, PspObject, Route,
};
use crate::model::money::Money;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, later};
use crate::model::transaction::{AccountRef, Attempts, Kind, Transaction};

/// Hand-backs of one row may lapse so often, each proved afresh, until a person is told.
const LAPSES_UNTOLD: u32 = 7;

/// Where the row stands, apart from what the PSP says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// To be decided.
    Open,
    /// Its worker has it again: its next end is decided when it is stuck again.
    Taken,
    /// It is succeeded already.
    Settled,
    /// Handed back or failed: any money found now contradicts that.
    GivenUp,
}

/// Everything that a decision is made from, in the order in which it is asked for.
pub(super) struct View<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) policy: &'a Policy,
    pub(super) now: Instant,
    pub(super) standing: Standing,
    /// The row's own objects, oldest first.
    pub(super) items: Vec<Item<'a>>,
    /// Objects that came along and are not the row's.
    pub(super) strangers: Vec<Stranger<'a>>,
    /// What excludes each other, in a sentence.
    pub(super) conflict: Option<String>,
    lists: Vec<&'a CompleteSearch>,
    searches: Vec<&'a CompleteSearch>,
    /// When the last answer that shows the row's objects was asked for.
    found_at: Option<Instant>,
    pub(super) no_answer: Option<&'a Cause>,
    pub(super) was_asked: bool,
    unknown_reference: Option<&'a str>,
}

/// An object that came along and is not the row's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stranger<'a> {
    pub(super) reference: &'a str,
    pub(super) tag: &'a str,
    /// Files alone tell of it: they carry this row's tag, too, behind that of another row.
    pub(super) by_files: bool,
}

/// One object at the PSP by all that was seen of it.
pub(super) struct Item<'a> {
    /// What it is.
    pub(super) object: &'a PspObject,
    /// Every id that it goes by.
    names: Vec<&'a str>,
    /// From when each failure that any look showed is final; `None`: never.
    pub(super) final_from: Vec<Option<Instant>>,
    /// The row stores its reference, and it carries another row's tag.
    pub(super) has_other_tag: bool,
    /// Files alone tell of it: it is settled, and no API said that it was captured.
    pub(super) is_settled: bool,
    /// What went back of it.
    pub(super) back: Back<'a>,
}

/// What went back of an object by all that was seen of it: what one source shows of that, no answer
/// of another takes away that does not show it.
pub(super) struct Back<'a> {
    /// The sighting that says that a bank took it back.
    pub(super) returned: Option<&'a PspObject>,
    /// A dispute exists.
    pub(super) disputed: bool,
    /// A file lists a chargeback of it that stands.
    pub(super) charged_back: bool,
    /// How much of it, where the file tells a sum.
    charged: Option<Money>,
    /// A file says that a bank took it back.
    pub(super) by_file: bool,
    /// What was given back of it, in minor units: the most that any sighting says.
    pub(super) minor: i64,
    /// What lines say beside that, beyond what moved.
    beyond: i64,
}

impl<'a> Back<'a> {
    fn of(told: &[Sighting<'a>]) -> Self {
        let objects = || told.iter().map(|sighting| sighting.object);
        let by_file = || told.iter().filter(|s| s.route == Route::File).map(|s| s.object);
        let charged = |object: &PspObject| {
            let currency = object.captured?.currency;
            let minor = object.charged_back_minor;
            (object.disputed && minor > 0).then(|| Money::new(minor, currency))
        };
        let says_why = |object: &&PspObject| object.returned.as_ref().map(|code| !code.is_empty());
        Self {
            returned: objects().filter(|o| o.returned.is_some()).max_by_key(says_why),
            disputed: objects().any(|object| object.disputed),
            charged_back: by_file().any(|object| object.disputed),
            charged: by_file().filter_map(charged).max_by_key(|money| money.minor),
            by_file: by_file().any(|object| object.disputed || object.returned.is_some()),
            minor: objects().map(|object| object.refunded_minor).max().unwrap_or(0),
            beyond: objects().map(|object| object.beyond_minor).max().unwrap_or(0),
        }
    }
}

impl Item<'_> {
    pub(super) fn reference(&self) -> &str {
        &self.object.reference
    }

    pub(super) fn state(&self) -> &ObjectState {
        &self.object.state
    }

    pub(super) fn is_named(&self, reference: &str) -> bool {
        self.names.contains(&reference)
    }

    pub(super) fn has_captured(&self) -> bool {
        self.object.has_captured()
    }

    /// By its state, or by a sum that the PSP names.
    pub(super) fn can_still_capture(&self) -> bool {
        self.object.can_still_capture()
    }

    /// The PSP names a sum that can still be captured, whatever the state is.
    pub(super) fn holds_a_sum(&self) -> bool {
        self.object.capturable_minor > 0
    }

    pub(super) fn is_dead(&self) -> bool {
        self.object.is_dead()
    }

    /// How it is said of what can still capture, with how much where the PSP names a sum.
    pub(super) fn open_text(&self) -> String {
        match self.object.capturable() {
            Some(sum) => format!("can still capture {sum}"),
            None => "can still capture".to_owned(),
        }
    }

    /// The code by which a bank took it back; an empty one where it gave none.
    pub(super) fn returned(&self) -> Option<&str> {
        self.back.returned.and_then(|object| object.returned.as_deref())
    }

    /// A bank took it back, or a part of it.
    pub(super) fn came_back(&self) -> bool {
        self.back.returned.is_some() || self.back.charged_back
    }

    /// What went back of what moved. A void, and a chargeback or a return that tells no sum, took
    /// all.
    pub(super) fn gone(&self) -> Option<Money> {
        let moved = amount_of(self.object)?;
        let charged = self.charged();
        let is_whole = *self.state() == ObjectState::Voided
            || (self.back.charged_back && charged.is_none())
            || (self.back.returned.is_some() && self.back.minor == 0);
        let charged = charged.map_or(0, |charged| charged.minor);
        let minor = self.back.minor.saturating_add(charged).min(moved.minor);
        let minor = if is_whole { moved.minor } else { minor };
        Some(Money::new(minor.max(0), moved.currency))
    }

    /// What was charged back of what moved, where a file tells a sum of its currency.
    pub(super) fn charged(&self) -> Option<Money> {
        let moved = amount_of(self.object)?;
        self.back.charged.filter(|charged| charged.currency == moved.currency)
    }

    /// What was charged back of what moved, where that was another sum.
    pub(super) fn charged_part(&self) -> Option<Money> {
        let moved = amount_of(self.object)?;
        self.charged().filter(|charged| charged.minor != moved.minor)
    }

    /// What the shop gave back of what moved, beside what was charged back.
    pub(super) fn given_back(&self) -> Option<Money> {
        let moved = amount_of(self.object).filter(|_| self.back.returned.is_none())?;
        (self.back.minor > 0).then(|| Money::new(self.back.minor, moved.currency))
    }

    /// What lines say that came back or was given back beyond what moved.
    pub(super) fn told_beyond(&self) -> Option<Money> {
        let moved = amount_of(self.object)?;
        (self.back.beyond > 0).then(|| Money::new(self.back.beyond, moved.currency))
    }

    /// By how much more was given and charged back than moved.
    pub(super) fn gone_beyond(&self) -> Option<Money> {
        let moved = amount_of(self.object)?;
        let charged = self.charged()?;
        let both = self.back.minor.saturating_add(charged.minor);
        let minor = both.saturating_sub(moved.minor);
        (self.is_told() && self.back.charged_back && minor > 0)
            .then(|| Money::new(minor, moved.currency))
    }

    /// Somebody says what moved. False: it is known by what came back of it alone.
    pub(super) fn is_told(&self) -> bool {
        self.object.amount.is_some() || !self.is_settled
    }

    /// Some of what moved is left.
    pub(super) fn has_left(&self) -> bool {
        match self.left() {
            Some(left) => left.minor > 0,
            None => !self.came_back(),
        }
    }

    /// What moved, and did not go back.
    pub(super) fn left(&self) -> Option<Money> {
        let (moved, gone) = amount_of(self.object).zip(self.gone())?;
        Some(Money::new(moved.minor.saturating_sub(gone.minor), moved.currency))
    }

    /// What moved, else what was asked for, for people.
    pub(super) fn amount_text(&self) -> String {
        amount_of(self.object)
            .map_or_else(|| "an amount of an unknown currency".to_owned(), |m| m.to_string())
    }
}

fn amount_of(object: &PspObject) -> Option<Money> {
    object.captured.filter(|_| object.has_captured()).or(object.amount)
}

/// One look at one object.
#[derive(Clone, Copy)]
struct Sighting<'a> {
    object: &'a PspObject,
    asked_at: Instant,
    route: Route,
    /// Of a route that says what is true now; a search index may show the past.
    is_current: bool,
}

impl<'a> View<'a> {
    pub(super) fn of(inputs: &'a Inputs<'a>, policy: &'a Policy, now: Instant) -> Self {
        let mut view = Self {
            inputs,
            policy,
            now,
            standing: standing(inputs),
            items: Vec::new(),
            strangers: Vec::new(),
            conflict: None,
            lists: Vec::new(),
            searches: Vec::new(),
            found_at: None,
            no_answer: None,
            was_asked: false,
            unknown_reference: None,
        };
        let mut evidence: Vec<&'a Evidence> = inputs.evidence.iter().collect();
        evidence.sort_by(|a, b| {
            let order = (a.asked_at, a.route).cmp(&(b.asked_at, b.route));
            order.then_with(|| format!("{a:?}").cmp(&format!("{b:?}")))
        });
        let mut sightings = Vec::new();
        for item in evidence {
            if inputs.row.account == AccountRef::Known(item.account.clone()) {
                view.take(item, &mut sightings);
            } else {
                view.take_foreign(item);
            }
        }
        view.sort_out(sightings);
        view
    }

    fn take(&mut self, item: &'a Evidence, sightings: &mut Vec<Sighting<'a>>) {
        self.was_asked = true;
        match &item.answer {
            Answer::Found { objects, search } => {
                sightings.extend(objects.iter().map(|object| Sighting {
                    object,
                    asked_at: item.asked_at,
                    route: item.route,
                    is_current: self.is_current(item.route),
                }));
                self.note_search(search.as_ref());
            }
            Answer::Nothing(search) => self.note_search(Some(search)),
            Answer::UnknownReference(reference) => self.unknown_reference = Some(reference),
            Answer::NoAnswer(cause) => self.no_answer = self.no_answer.or(Some(cause)),
        }
    }

    /// Another account's silence says nothing of this row; an object found there is trouble.
    fn take_foreign(&mut self, item: &Evidence) {
        if let Answer::Found { objects, .. } = &item.answer
            && let Some(reference) = objects.iter().map(|o| &o.reference).min()
        {
            let own = self.row().account.text();
            let text =
                format!("{reference} was found at {}, and the row belongs to {own}", item.account);
            self.note_conflict(text);
        }
    }

    fn is_current(&self, route: Route) -> bool {
        let by_facts = || self.policy.psp.route(route).is_some_and(|facts| facts.counts_as_miss);
        route == Route::Fetch || by_facts()
    }

    fn note_search(&mut self, search: Option<&'a CompleteSearch>) {
        let Some(search) = search else { return };
        match search.route {
            Route::List | Route::File => self.lists.push(search),
            Route::Search => self.searches.push(search),
            Route::Fetch => {}
        }
    }

    /// The first in the order of text, so that the order of evidence changes nothing.
    fn note_conflict(&mut self, text: String) {
        if self.conflict.as_ref().is_none_or(|known| text < *known) {
            self.conflict = Some(text);
        }
    }

    fn sort_out(&mut self, sightings: Vec<Sighting<'a>>) {
        for mut group in same_objects(sightings) {
            group.sort_by(in_time);
            self.found_at = self.found_at.max(group.iter().map(|s| s.asked_at).max());
            self.judge(&group);
        }
        let by_age = |o: &'a PspObject| (o.created_at, o.reference.as_str());
        self.items.sort_by(|a, b| by_age(a.object).cmp(&by_age(b.object)));
        self.strangers.sort_unstable();
        self.part_with_other_kinds();
        self.part_with_failed_refunds();
    }

    /// A refund that was made again: where the row stores the id of one that stands, those that
    /// came back whole are the row's no more.
    fn part_with_failed_refunds(&mut self) {
        let stored =
            self.row().psp_reference.as_deref().filter(|_| self.row().kind == Kind::Refund);
        let Some(stored) = stored else { return };
        let stands = |item: &Item<'_>| {
            let is_its_sum = item.object.captured.is_some_and(|sum| self.row().money == Some(sum));
            let is_whole = is_its_sum && item.gone().is_some_and(|gone| gone.minor == 0);
            item.is_named(stored) && item.has_captured() && is_whole && !item.back.disputed
        };
        if self.items.iter().any(stands) {
            self.items.retain(|item| !item.has_captured() || item.has_left());
        }
    }

    /// A refund under the tag of a charge is not the charge; where no such charge shows, it says
    /// that something of it must have been there.
    fn part_with_other_kinds(&mut self) {
        let kind = self.row().kind;
        let (own, other): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.items).into_iter().partition(|item| fits(item.object, kind));
        self.items = own;
        if let Some(item) = other.first().filter(|_| self.captured().is_empty()) {
            let (reference, is) = (item.reference(), &item.object.kind);
            self.note_conflict(format!("{reference} is a {is}, and the row a {}", kind.as_str()));
        }
    }

    fn judge(&mut self, group: &[Sighting<'a>]) {
        let Some(object) = what_it_is(group) else { return };
        let told = still_told(group);
        let conflict = denied_money(group)
            .or_else(|| denied_attempt(group))
            .or_else(|| other_sum(&told, &self.policy.tolerance));
        if let Some(text) = conflict.or_else(|| impossible(object)) {
            self.note_conflict(text);
        }
        let names: Vec<&'a str> = group.iter().flat_map(|s| names_of(s.object)).collect();
        let tags: Vec<&'a str> = group.iter().filter_map(|s| s.object.tag.as_deref()).collect();
        let stored = self.row().psp_reference.as_deref();
        let is_stored = stored.is_some_and(|stored| names.contains(&stored));
        // A tag that several rows share settles none of them; there the reference alone speaks.
        let (is_tagged, has_other_tag) = match self.row().tag.usable() {
            Some(own) => (tags.contains(&own), !tags.is_empty() && !tags.contains(&own)),
            None => (false, false),
        };
        if is_tagged || is_stored {
            let failures = group.iter().filter_map(|s| stated_failure(s.object));
            let final_from = failures.map(|failure| failure.final_from).collect();
            let is_settled = group.iter().all(|sighting| sighting.route == Route::File);
            let back = Back::of(&told);
            self.items.push(Item { object, names, final_from, has_other_tag, is_settled, back });
        } else if self.row().tag.usable().is_some() {
            let tag = tags.first().copied().unwrap_or_default();
            let by_files = group.iter().all(|sighting| sighting.route == Route::File);
            self.strangers.push(Stranger { reference: &object.reference, tag, by_files });
        }
    }

    pub(super) fn row(&self) -> &'a Transaction {
        self.inputs.row
    }

    pub(super) fn history(&self) -> &'a History {
        self.inputs.history
    }

    /// Objects whose money moved.
    pub(super) fn captured(&self) -> Vec<&Item<'a>> {
        self.items.iter().filter(|item| item.has_captured()).collect()
    }

    /// Objects that can still capture with no new call.
    pub(super) fn live(&self) -> impl Iterator<Item = &Item<'a>> {
        self.items.iter().filter(|item| item.can_still_capture())
    }

    /// The stored reference, where the PSP says that it knows none such; an object seen by it
    /// anywhere else stands against that.
    pub(super) fn unknown_reference(&self) -> Option<&'a str> {
        self.unknown_reference.filter(|r| !self.items.iter().any(|item| item.is_named(r)))
    }

    /// The complete list to judge by: one that fulfils what is asked of it, else the newest.
    pub(super) fn list(&self, fit: impl Fn(&CompleteSearch) -> bool) -> Option<&'a CompleteSearch> {
        let newest_first = || self.lists.iter().rev().copied();
        newest_first().find(|list| fit(list)).or_else(|| newest_first().next())
    }

    /// When the row's objects were asked for last, at the latest now.
    pub(super) fn found_at(&self) -> Instant {
        self.found_at.map_or(self.now, |at| at.min(self.now))
    }

    /// Whether a list ended well before it was asked, and some route gave no answer: what was made
    /// after the list's end is not known.
    pub(super) fn is_cut_short(&self) -> bool {
        let ends_early = |list: &&CompleteSearch| {
            list.route == Route::List && later(list.to, absence::SKEW_MAX) < list.asked_at
        };
        self.no_answer.is_some() && self.lists.iter().any(ends_early)
    }

    /// Whether a search by tag, where there is one, was asked after the call was over. What it
    /// found is among the objects.
    pub(super) fn is_searched(&self) -> bool {
        if self.policy.psp.search_for(self.row().kind).is_none() {
            return true;
        }
        let over_at = absence::call_over_at(self.row(), self.history(), self.policy);
        let in_time = |search: &&&CompleteSearch| search.asked_at.min(self.now) > over_at;
        let searched = || self.searches.iter().filter(in_time).flat_map(|search| &search.kinds);
        let kinds = self.policy.psp.object_kinds(self.row().kind);
        kinds.iter().all(|kind| searched().any(|known| known == kind))
    }

    /// Whether it is undecided for too long, counted from the later of tieout's first look and
    /// `since`.
    pub(super) fn too_old(&self, since: Option<Instant>) -> bool {
        let from = since.map_or(self.history().aged_from, |at| at.max(self.history().aged_from));
        self.now.signed_duration_since(from) > self.policy.timing.max_age
    }

    pub(super) fn decision(&self, verdict: Verdict, reason: Reason, text: String) -> Decision {
        Decision {
            verdict,
            reason,
            rule: None,
            text,
            seen: self.items.first().map(|item| seen(item.object)),
            next_check_at: None,
            watch_at: None,
            miss: None,
            answered: self.no_answer.is_none(),
            wants: None,
        }
    }

    pub(super) fn review(&self, reason: Reason, text: String) -> Decision {
        self.decision(Verdict::Review, reason, text)
    }

    pub(super) fn review_of(&self, item: &Item<'_>, reason: Reason, text: String) -> Decision {
        Decision { seen: Some(seen(item.object)), ..self.review(reason, text) }
    }

    /// A wait; without an instant, or with one beyond all patience, the back-off says when.
    pub(super) fn wait(&self, reason: Reason, text: String, at: Option<Instant>) -> Decision {
        let key = &self.row().key;
        let timing = &self.policy.timing;
        let checks = self.history().checks;
        let horizon = later(self.now, timing.max_age.max(timing.backoff_cap));
        let next = match at.filter(|at| *at <= horizon) {
            // One second past, since a search must be *after* the instant; spread over half a
            // minute, so that rows that became due together are not all asked in one second.
            Some(at) => {
                let past = TimeDelta::seconds(1).checked_add(&backoff::spread(key, checks, 30));
                later(at.max(self.now), past.unwrap_or(TimeDelta::seconds(1)))
            }
            None => backoff::next_check_at(key, checks, timing, self.now),
        };
        Decision { next_check_at: Some(next), ..self.decision(Verdict::Wait, reason, text) }
    }

    pub(super) fn wait_for(
        &self,
        item: &Item<'_>,
        reason: Reason,
        text: String,
        at: Option<Instant>,
    ) -> Decision {
        Decision { seen: Some(seen(item.object)), ..self.wait(reason, text, at) }
    }

    /// The number of a hand-back that nobody came for yet, and until when somebody should have.
    pub(super) fn untaken(&self) -> Option<(u32, Instant)> {
        let past = self.history().untaken().filter(|_| self.standing == Standing::GivenUp)?;
        Some((past.number, later(past.open_from(), self.policy.timing.take_within)))
    }

    /// A hand-back that nobody came for was ended as there is something at the PSP for a sibling.
    pub(super) fn was_stopped(&self) -> bool {
        let past = self.history().last_handback.as_ref();
        self.untaken().is_some() && past.is_some_and(|past| past.stopped)
    }

    /// The last hand-back lapsed before anybody came for it, or waited for a sibling, and nobody
    /// changed the row since: it is proved afresh. Money found for it contradicts it as ever.
    pub(super) fn renews(&self) -> bool {
        self.lapsed().is_some_and(|past| past.lapses < LAPSES_UNTOLD)
    }

    /// The same, and so often that nobody seems to come at all: a person is told instead.
    pub(super) fn lapsed_too_often(&self) -> Option<&'a PastHandBack> {
        self.lapsed().filter(|past| past.lapses >= LAPSES_UNTOLD)
    }

    fn lapsed(&self) -> Option<&'a PastHandBack> {
        let history = self.history();
        let past = history.last_handback.as_ref().filter(|past| past.lapsed)?;
        let is_as_left = history.fingerprint_seen_at <= past.at;
        let is_last = history.ended_as == Some(Outcome::Retryable);
        (is_as_left && is_last && self.standing == Standing::GivenUp).then_some(past)
    }

    pub(super) fn first_watch(&self) -> Option<Instant> {
        self.policy.timing.watch.first().map(|span| later(self.now, *span))
    }

    /// The rule that matches, where one does.
    pub(super) fn rule_for(&self, subject: Subject, object: &PspObject) -> Option<&'a Rule> {
        self.policy.rules.find(&Question {
            psp: &self.policy.psp.psp,
            subject,
            object,
            kind: self.row().kind,
            money: self.row().money,
            handbacks: self.history().tries(),
            age: Some(self.now.signed_duration_since(self.row().created_at)),
        })
    }
}

/// What the record shows of an object.
pub(super) fn seen(object: &PspObject) -> Seen {
    Seen {
        reference: object.reference.clone(),
        status: object.status.clone(),
        amount: amount_of(object),
        created_at: object.created_at,
    }
}

/// Where the row stands. A status that is neither processing nor succeeded is the word of an end;
/// or it is tieout's own review value, and then the row is open when its case is kicked.
fn standing(inputs: &Inputs<'_>) -> Standing {
    let (row, history) = (inputs.row, inputs.history);
    if row.succeeded {
        return Standing::Settled;
    }
    let is_as_left = history.is_as_left();
    let was_taken = history.last_handback.as_ref().is_some_and(|past| past.taken_at.is_some());
    // Where an end wrote no status, the row still says "processing".
    match history.ended_as.filter(|_| is_as_left) {
        Some(Outcome::Succeeded) => Standing::Settled,
        // Taken from the outbox by a worker that writes no column before it sends: it may well
        // have charged.
        Some(Outcome::Retryable)
            if row.processing && was_taken && row.attempts != Attempts::Column =>
        {
            Standing::Open
        }
        Some(Outcome::Retryable | Outcome::Failed) => Standing::GivenUp,
        Some(Outcome::Wait | Outcome::Review) | None => match (row.processing, inputs.asked) {
            (true, Asked::Watch) if is_as_left => Standing::GivenUp,
            (true, Asked::Watch) => Standing::Taken,
            (false, Asked::Run | Asked::Watch) => Standing::GivenUp,
            (true, Asked::Run | Asked::Kick) | (false, Asked::Kick) => Standing::Open,
        },
    }
}

/// Whether an object is of the kind of movement that the row intends.
fn fits(object: &PspObject, kind: Kind) -> bool {
    match kind {
        Kind::Charge => object.kind != "refund" && object.kind != "payout",
        Kind::Refund => object.kind == "refund",
        Kind::Payout => object.kind == "payout",
    }
}

fn names_of(object: &PspObject) -> impl Iterator<Item = &str> {
    std::iter::once(object.reference.as_str()).chain(object.aliases.iter().map(String::as_str))
}

/// Sightings that share any id are of one object.
fn same_objects(sightings: Vec<Sighting<'_>>) -> Vec<Vec<Sighting<'_>>> {
    let mut groups: Vec<Vec<Sighting<'_>>> = Vec::new();
    for sighting in sightings {
        let is_same = |other: &Sighting<'_>| {
            names_of(other.object).any(|name| sighting.object.is_named(name))
        };
        let (same, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.iter().any(is_same));
        groups = others;
        let mut group: Vec<Sighting<'_>> = same.into_iter().flatten().collect();
        group.push(sighting);
        groups.push(group);
    }
    groups
}

/// What a lagging index shows is older than what a current route shows, whenever it was asked.
fn in_time(a: &Sighting<'_>, b: &Sighting<'_>) -> std::cmp::Ordering {
    let order = (a.is_current, a.asked_at, a.route).cmp(&(b.is_current, b.asked_at, b.route));
    order.then_with(|| format!("{:?}", a.object).cmp(&format!("{:?}", b.object)))
}

/// What an object is: money above all, then what could still come of it; among equals the newest
/// sighting. Of two looks in one run the more hopeful is believed, since that only means to wait;
/// an attempt seen once was made.
fn what_it_is<'a>(group: &[Sighting<'a>]) -> Option<&'a PspObject> {
    let hope = |object: &PspObject| match &object.state {
        _ if object.has_captured() => 4,
        _ if object.can_still_capture() => 3,
        ObjectState::Unattempted => 0,
        _ if object.is_dead() => 1,
        _open => 2,
    };
    // The last of the greatest is the newest.
    group.iter().map(|sighting| sighting.object).max_by_key(|object| hope(object))
}

/// A current route that was asked after money was seen says that there is none, or less.
fn denied_money(group: &[Sighting<'_>]) -> Option<String> {
    let moved = |s: &Sighting<'_>| s.object.has_captured();
    let denies = |late: &Sighting<'_>, early: &Sighting<'_>| {
        let is_less = match (early.object.captured, late.object.captured) {
            (Some(was), Some(is)) => is.currency != was.currency || is.minor < was.minor,
            (Some(_) | None, _) => false,
        };
        late.is_current && late.asked_at >= early.asked_at && (!moved(late) || is_less)
    };
    let pairs = group.iter().filter(|s| moved(s)).flat_map(|early| {
        group.iter().filter(move |late| denies(late, early)).map(move |late| (early, late))
    });
    pairs
        .map(|(early, late)| {
            format!(
                "{} was `{}` ({}) and is said to be `{}` ({})",
                early.object.reference,
                early.object.status,
                money_text(early.object),
                late.object.status,
                money_text(late.object),
            )
        })
        .min()
}

/// What is told of an object still: not what a correction took out of a file, where the API says
/// that it was captured.
fn still_told<'a>(group: &[Sighting<'a>]) -> Vec<Sighting<'a>> {
    let by_api = group.iter().any(|s| s.route != Route::File && s.object.has_captured());
    let is_taken_out = |s: &Sighting<'_>| {
        let why = Reason::StatementCorrected.as_str();
        let returned = s.object.returned.as_deref();
        s.route == Route::File && returned.is_some_and(|said| said.starts_with(why))
    };
    group.iter().filter(|s| !(by_api && is_taken_out(s))).copied().collect()
}

/// A file says that another sum moved than the PSP's own answer does. Of several answers the file
/// may tell what any of them shows; what tells no sum before fees says nothing of it.
fn other_sum(told: &[Sighting<'_>], tolerance: &Tolerance) -> Option<String> {
    let answers = sums(told, false);
    let (object, answered) = *answers.last()?;
    let agrees = |sum: Money| {
        let is_it = |own: Money| own == sum || tolerance.delta(own, sum).is_some();
        answers.iter().any(|(_, own)| is_it(*own))
    };
    let others = sums(told, true).into_iter().filter(|(_, sum)| !agrees(*sum));
    let texts = others.map(|(_, sum)| {
        let name = &object.reference;
        format!("{name} captured {answered} by the PSP's answer, and a file says {sum}")
    });
    texts.min()
}

/// The sums that files, or the PSP's answers, say to have moved for good. What a file tells of
/// money that went back is judged by that.
fn sums<'a>(told: &[Sighting<'a>], by_file: bool) -> Vec<(&'a PspObject, Money)> {
    let is_told = |object: &&PspObject| {
        let is_over = matches!(object.state, ObjectState::Captured | ObjectState::Voided);
        is_over && !(by_file && (object.disputed || object.returned.is_some()))
    };
    let own = told.iter().filter(|s| (s.route == Route::File) == by_file).map(|s| s.object);
    own.filter(is_told).filter_map(|object| Some((object, object.captured?))).collect()
}

/// A current route says "never attempted" of what was seen attempted before.
fn denied_attempt(group: &[Sighting<'_>]) -> Option<String> {
    let is_unattempted = |s: &&Sighting<'_>| s.object.state == ObjectState::Unattempted;
    let denials = group.iter().filter(is_unattempted).filter(|late| late.is_current);
    let texts = denials.flat_map(|late| {
        let attempted = group.iter().filter(|early| !is_unattempted(early));
        let before = attempted.filter(|early| early.asked_at <= late.asked_at);
        before.map(|early| {
            format!(
                "{} was `{}`, and {} is said never to have been attempted",
                early.object.reference, early.object.status, late.object.reference
            )
        })
    });
    texts.min()
}

fn money_text(object: &PspObject) -> String {
    object.captured.map_or_else(|| "nothing captured".to_owned(), |money| money.to_string())
}

/// What the record shows of several captured objects: their ids, separated by a blank, and their
/// sum, where it is one currency's.
pub(super) fn seen_together(captured: &[&Item<'_>]) -> Option<Seen> {
    seen_as(captured, |item| amount_of(item.object))
}

/// The same, where money went back: the sum is of what is left.
pub(super) fn seen_left(captured: &[&Item<'_>]) -> Option<Seen> {
    seen_as(captured, |item| item.left())
}

fn seen_as(captured: &[&Item<'_>], amount: impl Fn(&Item<'_>) -> Option<Money>) -> Option<Seen> {
    let first = seen(captured.first()?.object);
    let names: Vec<&str> = captured.iter().map(|item| item.reference()).collect();
    let mut amounts = captured.iter().map(|item| amount(item));
    let sum = amounts.next().flatten().and_then(|first| {
        amounts.try_fold(first, |sum, more| {
            let more = more.filter(|more| more.currency == sum.currency)?;
            Some(Money::new(sum.minor.checked_add(more.minor)?, sum.currency))
        })
    });
    Some(Seen { reference: names.join(" "), amount: sum, ..first })
}

/// The sum of each currency, where captured objects have several.
pub(super) fn sums_text(captured: &[&Item<'_>]) -> Option<String> {
    let mut sums: Vec<Money> = Vec::new();
    for more in captured.iter().filter_map(|item| amount_of(item.object)) {
        match sums.iter_mut().find(|sum| sum.currency == more.currency) {
            Some(sum) => *sum = Money::new(sum.minor.checked_add(more.minor)?, sum.currency),
            None => sums.push(more),
        }
    }
    let texts: Vec<String> = sums.iter().map(Money::to_string).collect();
    (texts.len() > 1).then(|| texts.join(" and "))
}

/// A state that excludes money, with money.
fn impossible(object: &PspObject) -> Option<String> {
    let excludes = match object.state {
        ObjectState::Captured
        | ObjectState::Voided
        | ObjectState::InFlight
        | ObjectState::Authorized => false,
        ObjectState::ActionRequired
        | ObjectState::Unattempted
        | ObjectState::Failed(_)
        | ObjectState::Canceled
        | ObjectState::Expired
        | ObjectState::Unknown => true,
    };
    (excludes && object.has_captured()).then(|| {
        format!(
            "{} is `{}` and is said to have captured {}",
            object.reference,
            object.status,
            money_text(object)
        )
    })
}
