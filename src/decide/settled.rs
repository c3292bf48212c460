//! What lines of settlement files say of one row, in the form that every other source has.
//!
//! A PSP's lines about one payment are one object: what was captured, less what was given back. A
//! bank's booking is an object of its own, and so two bookings under one tag are two payments.
//! Lines that may not decide (interim statements, notices, bookings still pending, corrections
//! that nobody released) say only that something is under way, and only where nothing better is
//! said. A fee, a payout and a correction of the PSP's own balance are nobody's payment.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate};

use crate::decide::expected::Expected;
use crate::decide::policy::Tolerance;
use crate::decide::reports::{is_return, may_be_told_twice, told_best, told_by_any};
use crate::model::evidence::{Failure, ObjectState, PspObject};
use crate::model::money::{Currency, Money};
use crate::model::reason::Reason;
use crate::model::settlement::{Direction, LineKind, SettledLine};
use crate::model::time::Instant;
use crate::model::transaction::{Kind, Transaction};

/// The format of ACH entries.
const ACH: &str = "nacha";

/// A booking is told a few days before its day at most: ahead of holidays, by a sender whose day
/// begins earlier. What is dated later was not booked yet, or on another day.
const AHEAD: Days = Days::new(7);

/// The last day of which a booking may be told now.
pub fn last_booked(now: Instant) -> Option<NaiveDate> {
    now.date_naive().checked_add_days(AHEAD)
}

/// Whether a line is of a day on which nothing was booked yet.
pub fn is_ahead(booked_on: Option<NaiveDate>, now: Instant) -> bool {
    booked_on.zip(last_booked(now)).is_some_and(|(day, last)| day > last)
}

/// The objects that `lines`, all under one row's tag or reference, tell of; `tag` is that row's.
/// One whose lines carry another row's tag is told under that tag.
pub fn objects(lines: &[SettledLine], kind: Kind, tag: Option<&str>) -> Vec<PspObject> {
    let mut objects: Vec<(bool, PspObject)> = payments(lines, kind)
        .0
        .into_iter()
        .filter_map(|(reference, group)| group.object(reference, kind, tag))
        .collect();
    // What only informs is of no use beside what decides: it is the same money, told earlier.
    if objects.iter().any(|(decides, _)| *decides) {
        objects.retain(|(decides, _)| *decides);
    }
    objects.into_iter().map(|(_, object)| object).collect()
}

/// What moved by lines that are all one row's, + being money to the merchant, by currency: each
/// movement once, however many reports tell it, and attempts move nothing. None where one of the
/// lines does not tell how much.
pub fn moved(lines: &[SettledLine], kind: Kind) -> Option<BTreeMap<Currency, i128>> {
    let is_of_money = |line: &&SettledLine| line.kind != LineKind::Attempt;
    let mut lines: Vec<SettledLine> = lines.iter().filter(is_of_money).cloned().collect();
    // What only informs is the same money as what decides; alone it is all that is known.
    let is_decided = lines.iter().any(|line| line.decides);
    lines.iter_mut().for_each(|line| line.decides |= !is_decided);
    let (groups, beside) = payments(&lines, kind);
    let mut told: Vec<(&SettledLine, Direction)> = Vec::new();
    told.extend(told_by_any(&beside).into_iter().map(|line| (line, line.direction)));
    for group in groups.values() {
        let moves = told_best(&group.moves);
        if moves.is_empty() {
            // A payment that says of itself that it came back had come in before.
            let said = group.back.iter().copied().filter(|line| says_itself(line));
            let came = told_by_any(&said.collect::<Vec<_>>());
            told.extend(came.into_iter().take(1).map(|line| (line, line.direction.opposite())));
        }
        let all = moves.into_iter().chain(group.came_back());
        told.extend(all.map(|line| (line, line.direction)));
    }
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    for (line, way) in told {
        let money = line.money?;
        let sum = sums.entry(money.currency).or_default();
        *sum = sum.saturating_add(way.signed(money.minor));
    }
    Some(sums)
}

/// The lines by the payment that they are of, under the payment's id; and those that are of none.
fn payments(lines: &[SettledLine], kind: Kind) -> (BTreeMap<String, Group<'_>>, Vec<&SettledLine>) {
    let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
    let mut beside: Vec<&SettledLine> = Vec::new();
    let (mut back, mut undone): (Vec<&SettledLine>, Vec<&SettledLine>) = (Vec::new(), Vec::new());
    for line in lines {
        let own = || line.payment.clone().unwrap_or_else(|| line.place.clone());
        match role(line, kind) {
            Role::Moves => groups.entry(own()).or_default().moves.push(line),
            Role::RunsBack | Role::GivesAgain | Role::Undoes if !counts(line, lines, kind) => {
                beside.push(line);
            }
            Role::TakesBack if calls_another(line, lines, kind) => beside.push(line),
            Role::Undoes => undone.push(line),
            Role::GivesAgain => groups.entry(own()).or_default().moves.push(line),
            Role::TakesBack | Role::RunsBack => back.push(line),
            Role::Attempts => groups.entry(own()).or_default().attempts.push(line),
            Role::Nothing => beside.push(line),
        }
    }
    if kind == Kind::Refund {
        name_refunds(&mut groups);
    }
    // In the order of time, so that the same lines in another order are the same objects; a payment
    // that says of itself that it came back is there before the line by which it did.
    back.sort_by_key(|line| (!says_itself(line), line.at, line.place.as_str()));
    let mut homes: BTreeMap<AchEntry<'_>, String> = BTreeMap::new();
    for line in back {
        // What is told again is of the payment that it was of: it is no further payment's return.
        let entry = ach_entry(line);
        let known = entry.and_then(|entry| homes.get(&entry).cloned());
        let own = known.unwrap_or_else(|| home_of(line, &groups));
        if let Some(entry) = entry {
            homes.entry(entry).or_insert_with(|| own.clone());
        }
        groups.entry(own).or_default().back.push(line);
    }
    for line in undone {
        match undone_of(line, &groups) {
            Some(own) => groups.entry(own).or_default().undone.push(line),
            None => beside.push(line),
        }
    }
    (groups, beside)
}

/// Lines that a row succeeded by and that count no more: payments that a correction took back.
pub fn taken_out(lines: &[SettledLine], kind: Kind, tag: Option<&str>) -> Vec<PspObject> {
    let mut gone = objects(lines, kind, tag);
    for object in &mut gone {
        object.refunded_minor = object.captured.map_or(0, |money| money.minor);
        let why = || Reason::StatementCorrected.as_str().to_owned();
        object.returned.get_or_insert_with(why);
    }
    gone
}

/// Puts refunds that one report tells without an id under the ids that another one gives them.
fn name_refunds(groups: &mut BTreeMap<String, Group<'_>>) {
    let is_nameless = |group: &Group<'_>| {
        let mut moves = group.moves.iter();
        !group.moves.is_empty() && moves.all(|line| line.payment.is_none() && is_psps_refund(line))
    };
    let nameless = groups.iter().filter(|(_, group)| is_nameless(group));
    let nameless: Vec<String> = nameless.map(|(own, _)| own.clone()).collect();
    for own in nameless {
        let Some(group) = groups.get(&own) else { continue };
        let named = groups.iter().find(|(_, other)| other.tells_elsewhere(group));
        let Some(name) = named.map(|(name, _)| name.clone()) else { continue };
        let moves = groups.remove(&own).map_or_else(Vec::new, |group| group.moves);
        groups.entry(name).or_default().moves.extend(moves);
    }
}

/// Whether a line says that a refund failed which the merchant calls otherwise than this row's own.
fn calls_another(line: &SettledLine, lines: &[SettledLine], kind: Kind) -> bool {
    let is_called = |other: &&SettledLine| {
        matches!(role(other, kind), Role::Moves) && other.refund_reference.is_some()
    };
    let mut called = lines.iter().filter(is_called).peekable();
    line.failed.is_some()
        && called.peek().is_some()
        && called.all(|refund| calls_otherwise(line, refund))
}

/// Whether the merchant calls the refund that failed otherwise than this one.
fn calls_otherwise(line: &SettledLine, refund: &SettledLine) -> bool {
    let both = line.refund_reference.as_ref().zip(refund.refund_reference.as_ref());
    both.is_some_and(|(failed, own)| failed != own)
}

/// Only a PSP's report calls a line a refund, and says of which payment.
fn is_psps_refund(line: &SettledLine) -> bool {
    line.kind == LineKind::Refund && line.original.is_some()
}

/// What a line is to a row of some kind.
enum Role {
    /// The movement that the row intends.
    Moves,
    /// It came back.
    TakesBack,
    /// A bank's booking the other way: it came back, where it was booked before.
    RunsBack,
    /// A bank's, that undoes what came back: it is there again.
    GivesAgain,
    /// A PSP's: a refund of it failed, or was reversed.
    Undoes,
    /// On its way, or refused.
    Attempts,
    /// Not of this row.
    Nothing,
}

fn role(line: &SettledLine, kind: Kind) -> Role {
    match bearing(line.kind, line.direction, kind) {
        _several if !line.itemised => Role::Nothing,
        // A PSP has words of its own for what it undoes, but for a refund of it.
        Role::GivesAgain if line.payment.is_some() => match kind {
            Kind::Charge => Role::Undoes,
            Kind::Refund | Kind::Payout => Role::Nothing,
        },
        role => role,
    }
}

fn bearing(line: LineKind, direction: Direction, kind: Kind) -> Role {
    use Direction::{Credit, Debit};
    use LineKind as L;
    match (kind, line, direction) {
        (_, L::Attempt, _) => Role::Attempts,
        (Kind::Charge, L::Payment | L::Movement, Credit) => Role::Moves,
        // A report's own word for a payment, with money out: it was taken back.
        (Kind::Charge, L::Refund | L::Chargeback | L::ChargebackReversed, _)
        | (Kind::Charge, L::Payment | L::Return, Debit)
        | (Kind::Refund, L::Refund, Credit)
        | (Kind::Refund | Kind::Payout, L::Return, Credit) => Role::TakesBack,
        // Not every bank gives a return its code.
        (Kind::Charge, L::Movement, Debit) | (Kind::Refund | Kind::Payout, L::Movement, Credit) => {
            Role::RunsBack
        }
        (Kind::Refund, L::Refund, Debit) | (Kind::Refund | Kind::Payout, L::Movement, Debit) => {
            Role::Moves
        }
        (Kind::Charge, L::Return, Credit) | (Kind::Refund | Kind::Payout, L::Return, Debit) => {
            Role::GivesAgain
        }
        (_, L::Fee | L::Payout | L::Adjustment, _)
        | (Kind::Refund, L::Payment | L::Chargeback | L::ChargebackReversed, _)
        | (Kind::Payout, L::Payment | L::Refund | L::Chargeback | L::ChargebackReversed, _) => {
            Role::Nothing
        }
    }
}

/// Whether a line is of money that no row of this kind moves or gets back: a payment under a
/// refund's tag. It may be the row's of another kind that has the tag, too; it is not this one's.
/// So it is of a return that went the other way, unless [`gives_again`].
pub fn is_anothers(line: LineKind, direction: Direction, kind: Kind) -> bool {
    let is_nobodys = matches!(line, LineKind::Fee | LineKind::Payout | LineKind::Adjustment);
    let bearing = bearing(line, direction, kind);
    !is_nobodys && matches!(bearing, Role::Nothing | Role::GivesAgain)
}

/// Whether a line may undo what came back of a row of this kind: a return that went the other way.
pub fn gives_again(line: LineKind, direction: Direction, kind: Kind) -> bool {
    matches!(bearing(line, direction, kind), Role::GivesAgain)
}

/// Whether a line counts for a row of this kind, of which `lines` are all that there are. A bank's
/// booking that runs the other way does where the row's own movement was booked by then, and half
/// of it went, by this line and others like it: before it, nothing was there that could have come
/// back, what comes back may be less the charges of the banks on its way, and still less is a
/// bank's fee, say. One that undoes what came back does where just so much had come back by then;
/// so does a PSP's that undoes a refund.
pub fn counts(line: &SettledLine, lines: &[SettledLine], kind: Kind) -> bool {
    let covers = |other: &SettledLine| {
        let went = went_back(line, other, lines, kind);
        let both = other.money.zip(went);
        both.is_some_and(|(moved, back)| {
            moved.currency == back.currency && moved.minor <= back.minor.saturating_mul(2)
        })
    };
    let is_earlier =
        |other: &SettledLine| matches!(role(other, kind), Role::Moves) && other.at <= line.at;
    match role(line, kind) {
        Role::Nothing => false,
        Role::RunsBack => lines.iter().any(|other| is_earlier(other) && covers(other)),
        Role::GivesAgain => {
            let is_undone = |other: &SettledLine| undoes(line, other, lines, kind);
            lines.iter().any(is_earlier) && lines.iter().any(is_undone)
        }
        // Reports book on days of their own: the refund that is named is that one.
        Role::Undoes => lines.iter().any(|other| {
            gave_back(other, line) && (names_refund(line, other) || is_before(other, line))
        }),
        Role::Moves | Role::TakesBack | Role::Attempts => true,
    }
}

/// Whether one line stands before another one: by its day, and of one day by its place.
fn is_before(one: &SettledLine, other: &SettledLine) -> bool {
    (one.at, in_file(&one.place)) < (other.at, in_file(&other.place))
}

/// What bookings that run the other way, as a line does, come to since the movement of `moved`, as
/// the line's format tells.
fn went_back(
    line: &SettledLine,
    moved: &SettledLine,
    lines: &[SettledLine],
    kind: Kind,
) -> Option<Money> {
    let own = line.money?;
    let is_alike = |other: &&SettledLine| {
        matches!(role(other, kind), Role::RunsBack)
            && (&other.format, other.decides) == (&line.format, line.decides)
            && other.at >= moved.at
    };
    let alike = lines.iter().filter(is_alike).filter_map(|other| other.money);
    let same = alike.filter(|money| money.currency == own.currency);
    let minor = same.fold(0_i64, |sum, money| sum.saturating_add(money.minor));
    Some(Money { minor: minor.max(own.minor), ..own })
}

/// Whether a line undoes what another one took back at a bank.
fn undoes(line: &SettledLine, back: &SettledLine, lines: &[SettledLine], kind: Kind) -> bool {
    let is_banks = matches!(back.kind, LineKind::Return | LineKind::Movement);
    let is_back = matches!(role(back, kind), Role::TakesBack | Role::RunsBack);
    let is_equal = back.money.is_some() && back.money == line.money;
    is_banks && is_back && is_equal && back.at <= line.at && counts(back, lines, kind)
}

/// Whether a line is a bank's booking that runs the other way than rows of this kind move money:
/// what came back, another row's, or the bank's own.
pub fn runs_back(line: LineKind, direction: Direction, kind: Kind) -> bool {
    matches!(bearing(line, direction, kind), Role::RunsBack)
}

/// Whether a line is of what came back, or of what undid that, to rows of this kind.
pub fn takes_back(line: LineKind, direction: Direction, kind: Kind) -> bool {
    let bearing = bearing(line, direction, kind);
    matches!(bearing, Role::TakesBack | Role::RunsBack | Role::GivesAgain)
}

/// Whether a line is of the movement that rows of this kind intend.
pub fn moves(line: LineKind, direction: Direction, kind: Kind) -> bool {
    matches!(bearing(line, direction, kind), Role::Moves)
}

/// The ids that a line names a payment by: of what comes back first which one that was.
fn named(line: &SettledLine) -> impl Iterator<Item = &String> {
    [&line.original, &line.payment].into_iter().flatten()
}

/// The payment that a line names. A refund names the charge, and the payment may be called by its
/// intent.
fn named_by<'a>(line: &SettledLine, groups: &'a BTreeMap<String, Group<'_>>) -> Option<&'a String> {
    named(line).find_map(|name| {
        let is_its = |(own, group): &(&String, &Group<'_>)| {
            let mut ids = group.moves.iter().flat_map(|moved| &moved.aliases);
            !group.moves.is_empty() && (*own == name || ids.any(|id| id == name))
        };
        groups.iter().find(is_its).map(|(own, _)| own)
    })
}

/// The payment of which a PSP's line undoes a refund: the one that it names, where that much was
/// given back of it; else any of which it was.
fn undone_of(line: &SettledLine, groups: &BTreeMap<String, Group<'_>>) -> Option<String> {
    let gave = |group: &Group<'_>| group.back.iter().any(|other| gave_back(other, line));
    let own = named_by(line, groups).filter(|own| groups.get(*own).is_some_and(gave));
    let found = || groups.iter().find(|(_, group)| gave(group)).map(|(own, _)| own);
    own.or_else(found).cloned()
}

/// Whether one line is a refund of just the money whose refund the other one undoes: the one that
/// it names, in whichever report; else, where it may be any of the payment's, one of its own.
fn gave_back(refund: &SettledLine, line: &SettledLine) -> bool {
    let is_equal = refund.kind == LineKind::Refund
        && refund.money.is_some()
        && refund.money == line.money
        && refund.decides == line.decides;
    is_equal
        && (names_refund(line, refund)
            || (refund.format == line.format && !names_another(line, refund)))
}

/// The ids by which a line may name the refund that failed.
fn failed_ids(line: &SettledLine) -> impl Iterator<Item = &String> {
    line.failed.iter().map(|failed| &failed.id).chain(named(line))
}

fn names_refund(line: &SettledLine, refund: &SettledLine) -> bool {
    refund.payment.as_ref().is_some_and(|own| failed_ids(line).any(|id| id == own))
}

/// Whether what failed is another refund for sure: the merchant calls it otherwise; or a report
/// that names the one that did named one that is neither this nor its payment.
fn names_another(line: &SettledLine, refund: &SettledLine) -> bool {
    if calls_otherwise(line, refund) {
        return true;
    }
    let ids = || [&refund.payment, &refund.original].into_iter().flatten();
    let failed = line.failed.as_ref().filter(|failed| failed.is_sure && refund.payment.is_some());
    failed.is_some_and(|failed| ids().all(|id| *id != failed.id))
}

/// The group of what a returning line takes back: the payment that it names; else the movement that
/// fits; else, where the row's lines have none that could be it, it stands for itself.
fn home_of(line: &SettledLine, groups: &BTreeMap<String, Group<'_>>) -> String {
    let named = || named(line);
    if let Some(id) = another_refund(line, groups) {
        return id.to_owned();
    }
    let own = named_by(line, groups)
        .or_else(|| said_of(line, groups))
        .or_else(|| fitting(line, groups))
        .or_else(|| named().find(|name| groups.contains_key(*name)))
        .or_else(|| named().next());
    own.cloned().unwrap_or_else(|| line.place.clone())
}

/// The refund that failed, where a report names it for sure, and none of these is that one.
fn another_refund<'a>(
    line: &'a SettledLine,
    groups: &BTreeMap<String, Group<'_>>,
) -> Option<&'a str> {
    let failed = line.failed.as_ref().filter(|failed| failed.is_sure)?;
    let mut moved = groups.values().flat_map(|group| &group.moves).peekable();
    moved.peek()?;
    moved.all(|refund| names_another(line, refund)).then_some(failed.id.as_str())
}

/// The payment that says of itself that it came back, by just so much, where the line by which it
/// did is not there yet: a line that names none may be that one.
fn said_of<'a>(line: &SettledLine, groups: &'a BTreeMap<String, Group<'_>>) -> Option<&'a String> {
    let is_its = |group: &Group<'_>| {
        let mut beside = group.back_beside(line).filter(|other| is_return(other.kind));
        let said = beside.next().filter(|other| says_itself(other) && other.money == line.money);
        said.is_some() && beside.next().is_none()
    };
    let may_be = line.kind == LineKind::Return && line.original.is_none();
    let mut found = groups.iter().filter(|(_, group)| may_be && is_its(group));
    found.next().map(|(name, _)| name)
}

/// The movement that a line takes back without naming it: one of its amount that nothing took back
/// yet; else, since what was taken back is never a payment beside the one that was made, that of
/// which most is left. A refund that names another payment is of that one. What only informs is the
/// same money as what decides, told earlier.
fn fitting<'a>(line: &SettledLine, groups: &'a BTreeMap<String, Group<'_>>) -> Option<&'a String> {
    let mut moved: Vec<_> = groups.iter().filter(|(_, group)| !group.moves.is_empty()).collect();
    if moved.iter().any(|(_, group)| group.decides()) {
        moved.retain(|(_, group)| group.decides());
    }
    let own = moved.iter().find(|(_, group)| group.is_of(line));
    let largest =
        || moved.iter().max_by_key(|(name, group)| (group.left_beside(line), Reverse(*name)));
    let is_anothers = line.kind == LineKind::Refund && line.original.is_some();
    let own = if is_anothers { own } else { own.or_else(largest) };
    own.map(|(name, _)| *name)
}

/// Lines of one payment.
#[derive(Default)]
struct Group<'a> {
    moves: Vec<&'a SettledLine>,
    back: Vec<&'a SettledLine>,
    /// Refunds that failed.
    undone: Vec<&'a SettledLine>,
    attempts: Vec<&'a SettledLine>,
}

impl<'a> Group<'a> {
    fn all(&self) -> impl Iterator<Item = &'a SettledLine> + '_ {
        self.moves.iter().chain(&self.back).chain(&self.undone).chain(&self.attempts).copied()
    }

    /// The tag of the row that it is another's by, where every line of it is.
    fn anothers(&self) -> Option<&'a str> {
        let is_anothers = self.all().all(|line| line.anothers.is_some());
        let tags = self.all().filter_map(|line| line.anothers.as_deref());
        tags.min().filter(|_| is_anothers)
    }

    /// Whether it has an id, and is by its sum and payment what another report tells by no id.
    fn tells_elsewhere(&self, nameless: &Group<'_>) -> bool {
        let told = nameless.moves.first().copied();
        told.is_some_and(|told| {
            let is_it = |own: &&SettledLine| {
                own.payment.is_some()
                    && (&own.original, own.decides) == (&told.original, told.decides)
                    && may_be_told_twice(own, told)
            };
            !self.moves.is_empty()
                && self.moves.iter().all(|own| own.format != told.format)
                && self.moves.iter().copied().all(|own| is_it(&own))
        })
    }

    /// Whether a movement of it may decide.
    fn decides(&self) -> bool {
        self.moves.iter().any(|line| line.decides)
    }

    /// What came back of it, as the format of `line` tells. Each format tells all of it, and what
    /// informs is told again by what decides.
    fn back_beside<'b>(
        &'b self,
        line: &'b SettledLine,
    ) -> impl Iterator<Item = &'a SettledLine> + 'b {
        let is_beside = move |other: &&'a SettledLine| {
            other.format == line.format && other.decides == line.decides
        };
        self.back.iter().copied().filter(is_beside)
    }

    /// Whether it is by its amount what a line takes back, or what one gives again.
    fn is_of(&self, line: &SettledLine) -> bool {
        if line.kind == LineKind::ChargebackReversed {
            return self.back_beside(line).any(|other| other.kind == LineKind::Chargeback);
        }
        let is_whole = self.back_beside(line).next().is_none();
        is_whole && self.moves.iter().any(|moved| moved.money == line.money)
    }

    /// What is left of it beside a line, in minor units.
    fn left_beside(&self, line: &SettledLine) -> i64 {
        let deciding = told_best(&self.moves);
        let moved = if deciding.is_empty() { sum(&self.moves) } else { sum(&deciding) };
        let moved = moved.map_or(0, |money| money.minor);
        self.back_beside(line).fold(moved, |left, other| {
            let minor = other.money.map_or(0, |money| money.minor);
            match other.kind == LineKind::ChargebackReversed {
                true => left.saturating_add(minor),
                false => left.saturating_sub(minor),
            }
        })
    }

    /// The object, and whether it may decide.
    fn object(
        &self,
        reference: String,
        kind: Kind,
        tag: Option<&str>,
    ) -> Option<(bool, PspObject)> {
        let first = self.all().min_by_key(|line| (line.at, line.place.as_str()))?;
        let (let_go, back): (Vec<_>, Vec<_>) =
            self.came_back().into_iter().partition(|line| lets_go(line));
        let mut deciding = told_best(&self.moves);
        let is_told = !deciding.is_empty();
        if !is_told {
            // What a bank took back had moved before, in a file that is not here.
            deciding = back.iter().copied().filter(|line| was_moved(line.kind)).collect();
        }
        let decides = !deciding.is_empty();
        let moved = if decides { sum(&deciding) } else { None };
        let moved = moved.map(|moved| less(moved, &let_go));
        let back = back.iter();
        let given_back = back
            .clone()
            .filter(|line| line.kind == LineKind::Refund || is_return(line.kind))
            .filter_map(|line| line.money)
            .fold(0_i64, |sum, money| sum.saturating_add(money.minor));
        // A return that two statements tell took no more than there was; whether they do, a person
        // sees.
        let given_back_in_all = given_back;
        let given_back = moved.map_or(given_back, |moved| given_back.min(moved.minor));
        let beyond = given_back_in_all.saturating_sub(given_back);
        let (disputed, charged_back) = charged_back(back.clone().copied());
        let charged_back = charged_back
            .filter(|back| disputed && moved.is_some_and(|moved| moved.currency == back.currency));
        let returned = back.clone().find(|line| is_return(line.kind));
        let state = if decides { ObjectState::Captured } else { self.attempted(kind) };
        let asked = self.all().find_map(|line| line.money);
        let mut aliases: Vec<String> =
            self.all().flat_map(|line| line.aliases.iter().cloned()).collect();
        aliases.sort_unstable();
        aliases.dedup();
        aliases.retain(|alias| *alias != reference);
        let object = PspObject {
            reference,
            aliases,
            kind: object_kind(kind).to_owned(),
            state,
            status: self.status(first),
            // By what came back alone, nobody knows what the payment was.
            amount: moved.or(asked).filter(|_| is_told || !decides),
            captured: moved,
            refunded_minor: given_back,
            capturable_minor: 0,
            disputed,
            charged_back_minor: charged_back.map_or(0, |money| money.minor),
            beyond_minor: beyond,
            created_at: first.at,
            tag: self.anothers().or(tag).map(str::to_owned),
            returned: returned.map(|line| self.code_of(line).unwrap_or_default().to_owned()),
        };
        Some((decides, object))
    }

    /// Why a return came back: a statement may tell it without the code that its notice has.
    fn code_of<'l>(&'l self, line: &'l SettledLine) -> Option<&'l str> {
        let told = self.back.iter().filter(|other| is_return(other.kind));
        let mut told = told.filter(|other| other.money == line.money);
        line.code.as_deref().or_else(|| told.find_map(|other| other.code.as_deref()))
    }

    /// What came back of it, each once, without refunds that failed.
    fn came_back(&self) -> Vec<&'a SettledLine> {
        let mut back = each_once(told_by_any(&self.back));
        let mut failed: BTreeSet<&str> = BTreeSet::new();
        for line in told_by_any(&self.undone) {
            // Two lines may say that one refund failed.
            if failed_ids(line).any(|id| failed.contains(id.as_str())) {
                continue;
            }
            let is_named = |back: &&SettledLine| gave_back(back, line) && names_refund(line, back);
            let at = back.iter().position(is_named);
            if let Some(at) = at {
                failed.extend(back.remove(at).payment.as_deref());
            } else if let Some(at) = back.iter().position(|back| gave_back(back, line)) {
                back.remove(at);
            }
        }
        back
    }

    /// What lines that moved nothing say: the last word counts.
    fn attempted(&self, kind: Kind) -> ObjectState {
        if !self.moves.is_empty() || !self.back.is_empty() {
            return ObjectState::InFlight;
        }
        let last = self.attempts.iter().max_by_key(|line| (line.at, in_file(&line.place)));
        let word = last.and_then(|line| line.word.as_deref()).unwrap_or_default();
        let failed = |still_payable: bool| {
            ObjectState::Failed(Failure {
                code: last.and_then(|line| line.code.clone()).unwrap_or_else(|| word.to_owned()),
                advice: None,
                network_advice: None,
                final_from: None,
                still_payable,
            })
        };
        match word.to_ascii_lowercase().as_str() {
            "refused" | "error" | "rjct" => failed(false),
            // The authorisation stands, and a capture of it may be asked for again.
            "capturefailed" if kind == Kind::Charge => failed(true),
            "refundfailed" if kind == Kind::Refund => failed(true),
            "cancelled" | "canceled" | "canc" => ObjectState::Canceled,
            "expired" => ObjectState::Expired,
            _on_its_way => ObjectState::InFlight,
        }
    }

    /// The file's own words of it, the last first.
    fn status(&self, first: &SettledLine) -> String {
        let last = self.all().max_by_key(|line| (line.at, in_file(&line.place))).unwrap_or(first);
        let word = last.word.as_deref().unwrap_or(last.kind.as_str());
        format!("{word} ({})", last.place)
    }
}

/// A place in the order of files and of the lines in them: the tenth stands behind the ninth.
fn in_file(place: &str) -> (Option<u64>, Option<u64>, &str) {
    let (file, line) = place.split_once(':').unwrap_or((place, ""));
    (file.trim_start_matches('F').parse().ok(), line.parse().ok(), place)
}

/// Whether some of what was charged back is gone still, and how much; none where a line tells no
/// sum, or the sums are of several currencies. What is given back is of what was taken before: a
/// chargeback behind a reversal stands, also where the first one is in a file that is not here.
fn charged_back<'a>(back: impl Iterator<Item = &'a SettledLine>) -> (bool, Option<Money>) {
    let is_its = |line: &&SettledLine| {
        matches!(line.kind, LineKind::Chargeback | LineKind::ChargebackReversed)
    };
    let mut events: Vec<&SettledLine> = back.filter(is_its).collect();
    events.sort_by_key(|line| (line.at, in_file(&line.place)));
    let total = sum(&events);
    let (mut open, mut minor) = (0_u32, 0_i64);
    for line in events {
        let own = line.money.map_or(0, |money| money.minor);
        if line.kind == LineKind::Chargeback {
            (open, minor) = (open.saturating_add(1), minor.saturating_add(own));
        } else {
            (open, minor) = (open.saturating_sub(1), minor.saturating_sub(own).max(0));
        }
    }
    let left = total.map(|money| Money { minor, ..money });
    (open > 0 || left.is_some_and(|left| left.minor > 0), left)
}

/// Whether a line says how much of what was authorised was not captured: Stripe books a partial
/// capture whole, and this beside it. The shop never had it.
fn lets_go(line: &SettledLine) -> bool {
    let is_its = |word: &str| word.eq_ignore_ascii_case("partial_capture_reversal");
    // Earlier versions called it a refund.
    let may_be = matches!(line.kind, LineKind::Payment | LineKind::Refund);
    may_be && line.direction == Direction::Debit && line.word.as_deref().is_some_and(is_its)
}

/// What moved without what was let go of it, in its currency.
fn less(moved: Money, let_go: &[&SettledLine]) -> Money {
    let own = let_go.iter().filter_map(|line| line.money);
    let own = own.filter(|money| money.currency == moved.currency);
    let minor = own.fold(moved.minor, |left, money| left.saturating_sub(money.minor));
    Money { minor: minor.max(0), ..moved }
}

/// A line of this kind takes back a payment whole.
fn was_moved(kind: LineKind) -> bool {
    is_return(kind) || kind == LineKind::Chargeback
}

/// What takes back, each once: a payment's own line may say that it came back, and the line by
/// which it did says it again. An ACH entry comes back once: a return that was sent again, in a
/// file of another letter or of another day, and one that was dishonoured or contested (R61 to
/// R77), name the same entry by its trace.
fn each_once(mut back: Vec<&SettledLine>) -> Vec<&SettledLine> {
    let mut entries: BTreeSet<AchEntry<'_>> = BTreeSet::new();
    back.retain(|line| ach_entry(line).is_none_or(|entry| entries.insert(entry)));
    if back.iter().any(|line| is_return(line.kind) && !says_itself(line)) {
        back.retain(|line| !says_itself(line));
    }
    back
}

/// An ACH entry that comes back: its trace and amount.
type AchEntry<'a> = (&'a str, Option<i64>);

fn ach_entry(line: &SettledLine) -> Option<AchEntry<'_>> {
    let trace = line.original.as_deref().filter(|_| line.format == ACH)?;
    Some((trace, line.money.map(|money| money.minor)))
}

/// Whether a line is a payment's own, which says that it came back.
fn says_itself(line: &SettledLine) -> bool {
    line.kind == LineKind::Return && line.payment.is_some() && line.payment == line.original
}

/// Whether two of these payments may be one booking that two files tell: known by nothing but the
/// place of a line, in files that differ, of equal money and of one day.
pub fn may_be_one<'a>(objects: impl IntoIterator<Item = &'a PspObject>) -> bool {
    let mut files: BTreeMap<(NaiveDate, String, i64), &str> = BTreeMap::new();
    objects.into_iter().any(|object| {
        let Some((file, money)) = file_of(object).zip(object.captured) else { return false };
        let day = object.created_at.date_naive();
        let booking = (day, money.currency.code().to_owned(), money.minor);
        *files.entry(booking).or_insert(file) != file
    })
}

/// Whether what a bank booked back, without a return's code, may as well be the shop's own refund
/// of a payment, under its tag.
pub fn may_be_refund(object: &PspObject) -> bool {
    is_booking(object) && object.kind == "charge" && object.returned.as_deref() == Some("")
}

/// Whether a payment is a bank's booking, which is called by its place in a file.
pub fn is_booking(object: &PspObject) -> bool {
    file_of(object).is_some()
}

fn file_of(object: &PspObject) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (file, place) = object.reference.split_once(':')?;
    (is_number(file) && is_number(place)).then_some(file)
}

/// What several captures of one payment come to; none where one tells no amount, or they are of
/// several currencies.
fn sum(lines: &[&SettledLine]) -> Option<Money> {
    let mut total: Option<Money> = None;
    for line in lines {
        let money = line.money?;
        total = Some(match total {
            None => money,
            Some(sum) if sum.currency == money.currency => {
                Money::new(sum.minor.checked_add(money.minor)?, sum.currency)
            }
            Some(_other) => return None,
        });
    }
    total
}

fn object_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Charge => "charge",
        Kind::Refund => "refund",
        Kind::Payout => "payout",
    }
}

/// When a line's money moved at the latest: the end of its day, since a file tells no more, else
/// when it came in.
pub fn moved_at(booked_on: Option<NaiveDate>, received_at: Instant) -> Instant {
    let end = booked_on.and_then(|day| day.and_hms_opt(23, 59, 59));
    end.map_or(received_at, |end| end.and_utc())
}

/// When what a PSP's line tells of was done at the latest: the end of its day in the zone of the
/// files that are to come for the account. Where those are of several zones, the end that comes
/// last; where none is to come, [`moved_at`].
pub fn done_by(
    booked_on: Option<NaiveDate>,
    expected: &[Expected],
    received_at: Instant,
) -> Instant {
    let ends = |day| expected.iter().filter_map(move |one| one.last_second(day)).max();
    booked_on.and_then(ends).unwrap_or_else(|| moved_at(booked_on, received_at))
}

/// What lines that no decision was made from say of a row that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterEnd {
    /// Nothing that the row does not say itself: the lines are its own.
    Agrees,
    /// The row must be looked at again.
    Differs,
}

/// Whether the objects of a row that ended agree with it: one payment of its money where it
/// succeeded, none where it was given up, and nothing that was taken back by a bank.
pub fn after_end(row: &Transaction, objects: &[PspObject], tolerance: &Tolerance) -> AfterEnd {
    let mut captured = objects.iter().filter(|object| object.captured.is_some());
    let has_left = |object: &PspObject| {
        object.disputed || object.returned.is_some() || object.captured.is_none()
    };
    let agrees = match (captured.next(), captured.next()) {
        (None, _) => objects.iter().all(|object| object.state != ObjectState::Captured),
        (Some(only), None) => {
            let both = row.money.zip(only.captured);
            let delta = both.and_then(|(own, line)| tolerance.delta(own, line));
            let is_its = only.captured == row.money || delta.is_some();
            row.succeeded && is_its && !has_left(only)
        }
        (Some(_), Some(_)) => false,
    };
    if agrees { AfterEnd::Agrees } else { AfterEnd::Differs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::settlement::FailedRefund;
    use crate::model::time::from_text;

    fn eur(minor: i64) -> Option<Money> {
        Some(Money::new(minor, Currency::parse("EUR").unwrap()))
    }

    /// `42 payment + 1000 psp=P1 of=P0 code=AC04 word=Settled tag=r2 in=adyen` and the marks
    /// `informs`, `batch`.
    fn line(text: &str) -> SettledLine {
        let mut words = text.split_whitespace();
        let place = words.next().unwrap();
        let kind = LineKind::parse(words.next().unwrap()).unwrap();
        let direction =
            if words.next().unwrap() == "+" { Direction::Credit } else { Direction::Debit };
        let mut line = SettledLine {
            place: format!("F1:{place}"),
            format: "f".to_owned(),
            kind,
            direction,
            money: None,
            decides: true,
            itemised: true,
            payment: None,
            original: None,
            aliases: Vec::new(),
            event: None,
            failed: None,
            refund_reference: None,
            payout: None,
            code: None,
            word: None,
            anothers: None,
            at: from_text("2026-11-19T12:00:00Z").unwrap(),
        };
        for word in words {
            match word.split_once('=') {
                Some(("psp", id)) => line.payment = Some(id.to_owned()),
                Some(("as", id)) => line.aliases.push(id.to_owned()),
                Some(("of", id)) => line.original = Some(id.to_owned()),
                Some(("code", code)) => line.code = Some(code.to_owned()),
                Some(("word", own)) => line.word = Some(own.to_owned()),
                Some(("tag", tag)) => line.anothers = Some(tag.to_owned()),
                Some(("in", format)) => line.format = format.to_owned(),
                Some(("at", day)) => {
                    line.at = from_text(&format!("2026-11-{day}T12:00:00Z")).unwrap();
                }
                Some(("out", id)) => line.payout = Some(id.to_owned()),
                Some(("event", id)) => line.event = Some(id.to_owned()),
                Some(("calls", own)) => line.refund_reference = Some(own.to_owned()),
                Some(("fails", id)) => {
                    line.failed = Some(FailedRefund { id: id.to_owned(), is_sure: true });
                }
                Some((other, _)) => panic!("{other}"),
                None if word == "informs" => line.decides = false,
                None if word == "batch" => line.itemised = false,
                None => line.money = eur(word.parse().unwrap()),
            }
        }
        line
    }

    /// `reference state captured/refunded` and the marks `disputed` (and how much), `returned`.
    fn shown(object: &PspObject) -> String {
        let captured = object.captured.map_or("-".to_owned(), |money| money.minor.to_string());
        let mut text = format!(
            "{} {} {captured}/{}",
            object.reference,
            object.state.as_str(),
            object.refunded_minor
        );
        if object.disputed {
            text.push_str(" disputed");
        }
        if object.charged_back_minor != 0 {
            text.push_str(&format!(" {}", object.charged_back_minor));
        }
        if object.beyond_minor != 0 {
            text.push_str(&format!(" beyond {}", object.beyond_minor));
        }
        if let Some(code) = &object.returned {
            text.push_str(&format!(" returned {code}"));
        }
        text
    }

    /// What it shows, the row's kind, lines, objects.
    const CASES: &[(&str, Kind, &[&str], &[&str])] = &[
        ("a credit is a charge", Kind::Charge, &["1 movement + 500"], &["F1:1 captured 500/0"]),
        (
            "an ACH return that was sent again, or dishonoured, is that one",
            Kind::Charge,
            &[
                "1 return - 300 of=T1 code=R02 in=nacha",
                "2 return - 300 of=T1 code=R02 in=nacha at=20",
                "3 return - 300 of=T1 code=R61 in=nacha at=21",
            ],
            &["T1 captured 300/300 returned R02"],
        ),
        (
            "it is that one also where the money was collected again",
            Kind::Charge,
            &[
                "1 movement + 300 in=bai2",
                "2 return - 300 code=R01 in=bai2 at=20",
                "3 return - 300 of=T1 code=R01 in=nacha at=20",
                "4 movement + 300 in=bai2 at=22",
                "5 return - 300 of=T1 code=R01 in=nacha at=20",
                "6 return - 300 of=T1 code=R61 in=nacha at=23",
            ],
            &["F1:1 captured 300/300 returned R01", "F1:4 captured 300/0"],
        ),
        (
            "that of the other payment is another one",
            Kind::Charge,
            &[
                "1 movement + 300 in=bai2",
                "2 return - 300 of=T1 code=R01 in=nacha at=20",
                "3 movement + 300 in=bai2 at=22",
                "4 return - 300 of=T2 code=R01 in=nacha at=23",
            ],
            &["F1:1 captured 300/300 returned R01", "F1:3 captured 300/300 returned R01"],
        ),
        (
            "that of another entry is another one",
            Kind::Charge,
            &[
                "1 return - 300 of=T1 code=R02 in=nacha",
                "2 return - 300 of=T2 code=R02 in=nacha at=20",
            ],
            &["T1 captured 300/300 returned R02", "T2 captured 300/300 returned R02"],
        ),
        (
            "a capture that failed is the last word, as the tenth line behind the ninth",
            Kind::Charge,
            &[
                "9 attempt + 1000 psp=P1 word=SentForSettle",
                "10 attempt + 1000 psp=P1 word=CaptureFailed",
            ],
            &["P1 failed -/0"],
        ),
        (
            "it says nothing of a refund",
            Kind::Refund,
            &["1 attempt + 1000 psp=P1 word=CaptureFailed"],
            &["P1 in_flight -/0"],
        ),
        ("a debit is none", Kind::Charge, &["1 movement - 500"], &[]),
        (
            "a debit behind its credit took it back, with a code or without",
            Kind::Charge,
            &["1 movement + 500", "2 movement - 500"],
            &["F1:1 captured 500/500 returned "],
        ),
        (
            "what the bank took for it is no return",
            Kind::Charge,
            &["1 movement + 500", "2 movement - 35"],
            &["F1:1 captured 500/0"],
        ),
        (
            "nor is less than half of it, by a cent",
            Kind::Charge,
            &["1 movement + 1001", "2 movement - 500"],
            &["F1:1 captured 1001/0"],
        ),
        (
            "half of it is",
            Kind::Charge,
            &["1 movement + 1000", "2 movement - 500"],
            &["F1:1 captured 1000/500 returned "],
        ),
        (
            "and so are several that come to more than half of it",
            Kind::Charge,
            &["1 movement + 1000", "2 movement - 490", "3 movement - 490"],
            &["F1:1 captured 1000/980 returned "],
        ),
        (
            "what the bank took with it is",
            Kind::Charge,
            &["1 movement + 500", "2 movement - 850"],
            &["F1:1 captured 500/500 beyond 350 returned "],
        ),
        (
            "paid, taken back and paid again without a code",
            Kind::Charge,
            &["1 movement + 500", "2 movement - 500", "3 movement + 500"],
            &["F1:1 captured 500/500 returned ", "F1:3 captured 500/0"],
        ),
        (
            "what undid it is there again",
            Kind::Charge,
            &["1 movement + 500", "2 movement - 500", "3 return + 500"],
            &["F1:1 captured 500/500 returned ", "F1:3 captured 500/0"],
        ),
        (
            "what undoes another amount, or nothing, is not the row's",
            Kind::Charge,
            &["1 movement + 500", "2 return + 500", "3 return - 200 code=AM04", "4 return + 100"],
            &["F1:1 captured 500/200 returned AM04"],
        ),
        (
            "nor is what undoes what took nothing",
            Kind::Charge,
            &["1 movement - 500", "2 return + 500"],
            &[],
        ),
        (
            "a credit behind a refund brought it back",
            Kind::Refund,
            &["1 movement - 500", "2 movement + 500"],
            &["F1:1 captured 500/500 returned "],
        ),
        (
            "what was not captured of what was authorised is no refund",
            Kind::Charge,
            &[
                "1 payment + 3000 psp=P1",
                "2 refund - 500 psp=R1 of=P1 word=partial_capture_reversal",
                "3 refund - 200 psp=R2 of=P1 word=refund",
            ],
            &["P1 captured 2500/200"],
        ),
        (
            "nor what this version calls a payment's own",
            Kind::Charge,
            &[
                "1 payment + 3000 psp=P1",
                "2 payment - 500 psp=R1 of=P1 word=partial_capture_reversal",
                "3 refund - 200 psp=R2 of=P1 word=refund",
            ],
            &["P1 captured 2500/200"],
        ),
        (
            "nor is it the payment, where that is told elsewhere",
            Kind::Charge,
            &["2 payment - 500 psp=R1 of=P1 word=partial_capture_reversal"],
            &["P1 in_flight -/0"],
        ),
        (
            "of a refund's row it is nothing",
            Kind::Refund,
            &[
                "1 payment + 3000 psp=P1",
                "2 payment - 500 psp=R1 of=P1 word=partial_capture_reversal",
            ],
            &[],
        ),
        ("a debit is a payout", Kind::Payout, &["1 movement - 500"], &["F1:1 captured 500/0"]),
        (
            "two bookings are two payments",
            Kind::Charge,
            &["1 movement + 500", "2 movement + 500"],
            &["F1:1 captured 500/0", "F1:2 captured 500/0"],
        ),
        (
            "of two returns one payment is gone, and a person sees both",
            Kind::Charge,
            &["1 movement + 500", "2 return - 500 code=AM04", "3 return - 500 code=AM04"],
            &["F1:1 captured 500/500 beyond 500 returned AM04"],
        ),
        (
            "a return of the same amount takes one back",
            Kind::Charge,
            &["1 movement + 500", "2 return - 500 code=AC04"],
            &["F1:1 captured 500/500 returned AC04"],
        ),
        (
            "a part that a bank took back",
            Kind::Charge,
            &["1 movement + 500", "2 return - 300 code=MD06"],
            &["F1:1 captured 500/300 returned MD06"],
        ),
        (
            "a return is of that of which most is left",
            Kind::Charge,
            &["1 movement + 300", "2 movement + 500", "3 return - 100 code=MD06"],
            &["F1:1 captured 300/0", "F1:2 captured 500/100 returned MD06"],
        ),
        (
            "a return of what another id names is of the payment that there is",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 return - 500 of=Q code=AC04"],
            &["P captured 500/500 returned AC04"],
        ),
        (
            "a part given back of what is named by its other id",
            Kind::Charge,
            &["1 payment + 500 psp=P as=C", "2 refund - 200 psp=R of=C"],
            &["P captured 500/200"],
        ),
        (
            "all of it in several parts, and another payment beside it",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P as=C",
                "2 refund - 200 psp=R of=C",
                "3 payment + 700 psp=Q as=D",
                "4 refund - 300 psp=S of=C",
            ],
            &["P captured 500/500", "Q captured 700/0"],
        ),
        (
            "parts given back by lines that name no payment",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 refund - 250 psp=R", "3 refund - 250 psp=S"],
            &["P captured 500/500"],
        ),
        (
            "a part of what names another payment is that one's",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 refund - 200 psp=R of=Q"],
            &["P captured 500/0"],
        ),
        (
            "two reports of one payment and of what was given back",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P as=T in=stripe_a",
                "2 refund - 200 psp=R of=P in=stripe_a",
                "3 payment + 500 psp=P as=T in=stripe_b",
                "4 refund - 200 psp=R of=P in=stripe_b",
            ],
            &["P captured 500/200"],
        ),
        (
            "two reports, each with a refund of its own",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 refund - 200 psp=R of=P in=a",
                "3 payment + 500 psp=P in=b",
                "4 refund - 300 psp=S of=P in=b",
                "5 refund - 200 psp=R of=P in=b",
            ],
            &["P captured 500/500"],
        ),
        (
            "two reports, each with what the other one lacks",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 refund - 200 psp=R of=P in=a event=R",
                "3 payment + 500 psp=P in=b",
                "4 chargeback - 300 psp=P in=b event=D",
            ],
            &["P captured 500/200 disputed 300"],
        ),
        (
            "a dispute in each of two reports, and one in both",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 chargeback - 100 psp=P in=a event=D",
                "3 chargeback - 50 psp=P in=a event=E",
                "4 chargeback - 100 psp=P in=b event=D",
                "5 chargeback - 150 psp=P in=b event=F",
            ],
            &["P captured 500/0 disputed 300"],
        ),
        (
            "one that was won in one report, and another in the other",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 chargeback - 500 psp=P in=a event=D",
                "3 chargeback_reversed + 500 psp=P in=a event=D",
                "4 chargeback - 500 psp=P in=b event=E",
            ],
            &["P captured 500/0 disputed 500"],
        ),
        (
            "a chargeback that two reports tell without its id",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 chargeback - 200 psp=P in=a",
                "3 payment + 500 psp=P in=b",
                "4 chargeback - 200 psp=P in=b event=D",
            ],
            &["P captured 500/0 disputed 200"],
        ),
        (
            "a refund whose failure another report tells",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 refund - 200 psp=R of=P in=a event=R",
                "3 return + 200 psp=P in=b fails=R event=R",
            ],
            &["P captured 500/0"],
        ),
        (
            "and which is booked before it there",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 return + 200 psp=P in=b fails=R event=R",
                "3 refund - 200 psp=R of=P in=a event=R at=20",
            ],
            &["P captured 500/0"],
        ),
        (
            "refunds of one sum under two tags, one in each report",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 refund - 200 of=P in=a tag=r8",
                "3 refund - 200 of=P in=b tag=r9",
            ],
            &["P captured 500/400"],
        ),
        (
            "and one of them in both",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 refund - 200 of=P in=a tag=r8",
                "3 refund - 200 of=P in=b tag=r9",
                "4 refund - 200 of=P in=b tag=r8",
            ],
            &["P captured 500/400"],
        ),
        (
            "chargebacks of one sum in two payouts, one in each report",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a out=1",
                "2 chargeback - 100 psp=P in=a out=1",
                "3 chargeback - 100 psp=P in=b out=2",
            ],
            &["P captured 500/0 disputed 200"],
        ),
        (
            "and on days far apart",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P in=a",
                "2 chargeback - 100 psp=P in=a at=19",
                "3 chargeback - 100 psp=P in=b at=22",
                "4 chargeback - 100 psp=P in=b at=21",
            ],
            &["P captured 500/0 disputed 200"],
        ),
        (
            "a refund that was made twice, once in each report",
            Kind::Refund,
            &["1 refund - 200 of=P in=a out=1", "2 refund - 200 psp=B of=P in=b out=2"],
            &["B captured 200/0", "F1:1 captured 200/0"],
        ),
        (
            "a return that another bank's statement tells less its charges",
            Kind::Charge,
            &[
                "1 movement + 500 in=a",
                "2 return - 300 code=AC04 in=a",
                "3 return - 295 code=AC04 in=b",
            ],
            &["F1:1 captured 500/295 returned AC04"],
        ),
        (
            "one refund that two reports tell, and one of them without its id",
            Kind::Refund,
            &[
                "1 refund - 200 of=P in=breakdown",
                "2 refund - 200 of=P in=breakdown",
                "3 refund - 200 psp=A of=P in=actions event=A",
                "4 refund - 200 psp=B of=P in=actions event=B",
                "5 refund - 300 of=P in=breakdown",
            ],
            &["A captured 200/0", "B captured 200/0", "F1:5 captured 300/0"],
        ),
        (
            "a refund beside one that failed, which is another",
            Kind::Refund,
            &["1 refund - 200 psp=B of=P", "2 return + 200 psp=A fails=A"],
            &["A captured 200/200 returned ", "B captured 200/0"],
        ),
        (
            "of whose payment the failure is, by a report that names that alone",
            Kind::Refund,
            &["1 refund - 200 psp=B of=P", "2 return + 200 psp=X of=P fails=P"],
            &["B captured 200/200 returned "],
        ),
        (
            "a refund of the payment, and the failure of another one",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 refund - 200 psp=B of=P",
                "3 return + 200 psp=P of=P fails=A",
            ],
            &["P captured 500/200"],
        ),
        (
            "a refund that failed gave nothing back",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 refund - 200 psp=R of=P", "3 return + 200 psp=P of=P"],
            &["P captured 500/0"],
        ),
        (
            "and done again it did, once",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 refund - 200 psp=R of=P",
                "3 return + 200 psp=R",
                "4 refund - 200 psp=S of=P",
            ],
            &["P captured 500/200"],
        ),
        (
            "one that two lines say to have failed did once",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 refund - 200 psp=R of=P",
                "3 refund - 200 psp=S of=P",
                "4 return + 200 psp=T of=R",
                "5 return + 200 psp=R of=R",
            ],
            &["P captured 500/200"],
        ),
        (
            "what undoes another amount undoes nothing",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 refund - 200 psp=R of=P", "3 return + 100 psp=R"],
            &["P captured 500/200"],
        ),
        (
            "a chargeback of which a part alone is back",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 chargeback - 500 psp=P",
                "3 chargeback_reversed + 300 psp=P",
            ],
            &["P captured 500/0 disputed 200"],
        ),
        (
            "a chargeback of no amount is of the payment that there is",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 chargeback - psp=Q"],
            &["P captured 500/0 disputed"],
        ),
        (
            "paid, returned, and paid again",
            Kind::Charge,
            &["1 movement + 500", "2 return - 500 code=AM04", "3 movement + 500"],
            &["F1:1 captured 500/500 returned AM04", "F1:3 captured 500/0"],
        ),
        (
            "a return that a notice tells before it is booked",
            Kind::Charge,
            &[
                "1 movement + 500",
                "2 return - 500 of=r1 code=AC04 in=notice informs",
                "3 return - 500 of=r1 code=AC04",
            ],
            &["F1:1 captured 500/500 returned AC04"],
        ),
        (
            "a return whose code the notice alone tells",
            Kind::Charge,
            &["1 movement + 500", "2 return - 500 code=AC04 in=notice", "3 return - 500"],
            &["F1:1 captured 500/500 returned AC04"],
        ),
        (
            "and beside another payment",
            Kind::Charge,
            &[
                "1 movement + 500",
                "2 return - 500 code=AC04 in=notice",
                "3 return - 500 code=AC04",
                "4 movement + 500",
            ],
            &["F1:1 captured 500/500 returned AC04", "F1:4 captured 500/0"],
        ),
        (
            "a return that two statements tell takes no more than there was",
            Kind::Charge,
            &["1 movement + 500", "2 return - 500 code=AC04", "3 return - 500 code=AC04"],
            &["F1:1 captured 500/500 beyond 500 returned AC04"],
        ),
        (
            "a payment that says of itself that it came back",
            Kind::Charge,
            &["1 return - 500 psp=P of=P code=V"],
            &["P captured 500/500 returned V"],
        ),
        (
            "and was told before",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 return - 500 psp=P of=P code=V"],
            &["P captured 500/500 returned V"],
        ),
        (
            "and the line by which it did",
            Kind::Charge,
            &["1 return - 500 psp=P of=P code=V", "2 return - 500 psp=R of=P code=T1106"],
            &["P captured 500/500 returned T1106"],
        ),
        (
            "and that line names no payment",
            Kind::Charge,
            &["1 return - 500 psp=R code=T1106", "2 return - 500 psp=P of=P code=V"],
            &["P captured 500/500 returned T1106"],
        ),
        (
            "and another payment of the row stands",
            Kind::Charge,
            &[
                "1 payment + 500 psp=O",
                "2 payment + 500 psp=P",
                "3 return - 500 psp=P of=P code=V",
                "4 return - 500 psp=R code=T1106",
            ],
            &["O captured 500/0", "P captured 500/500 returned T1106"],
        ),
        (
            "a return is of what was booked, and not of what announced it",
            Kind::Charge,
            &["1 movement + 500 informs", "2 movement + 500", "3 return - 500 code=AC04"],
            &["F1:2 captured 500/500 returned AC04"],
        ),
        (
            "a payout that came back",
            Kind::Payout,
            &["1 movement - 500", "2 return + 500 code=R03"],
            &["F1:1 captured 500/500 returned R03"],
        ),
        (
            "captures of one payment add up",
            Kind::Charge,
            &["1 payment + 300 psp=P", "2 payment + 200 psp=P"],
            &["P captured 500/0"],
        ),
        (
            "two reports of one payment are one",
            Kind::Charge,
            &["1 payment + 500 psp=P in=a", "2 payment + 500 psp=P in=b"],
            &["P captured 500/0"],
        ),
        (
            "two payments are two",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 payment + 500 psp=Q"],
            &["P captured 500/0", "Q captured 500/0"],
        ),
        (
            "a refund is of the payment that it names",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 refund - 200 psp=R of=P"],
            &["P captured 500/200"],
        ),
        (
            "a refund's own row",
            Kind::Refund,
            &["1 refund - 200 psp=P", "2 payment + 500 psp=P"],
            &["P captured 200/0"],
        ),
        (
            "a chargeback that stands",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 chargeback - 500 psp=P"],
            &["P captured 500/0 disputed 500"],
        ),
        (
            "a chargeback that was undone",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 chargeback - 500 psp=P",
                "3 chargeback_reversed + 500 psp=P",
            ],
            &["P captured 500/0"],
        ),
        (
            "a chargeback behind a reversal, the first one in a file that is not here",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 chargeback_reversed + 500 psp=P",
                "3 chargeback - 500 psp=P",
            ],
            &["P captured 500/0 disputed 500"],
        ),
        (
            "and without the payment",
            Kind::Charge,
            &["1 chargeback_reversed + 500 psp=P", "2 chargeback - 500 psp=P"],
            &["P captured 500/0 disputed 500"],
        ),
        (
            "a second one behind both",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 chargeback - 500 psp=P",
                "3 chargeback_reversed + 500 psp=P",
                "4 chargeback - 500 psp=P at=25",
            ],
            &["P captured 500/0 disputed 500"],
        ),
        (
            "a refund behind the one that failed stands",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 return + 500 psp=P event=M1 at=20",
                "3 refund - 500 psp=M2 of=P at=20",
            ],
            &["P captured 500/500"],
        ),
        (
            "the refund's own row knows nothing of another one that failed",
            Kind::Refund,
            &[
                "1 refund - 500 psp=M2 of=P calls=r2",
                "2 return + 500 psp=M1 event=M1 fails=M1 calls=r1",
            ],
            &["M2 captured 500/0"],
        ),
        (
            "and so does one that the merchant calls otherwise",
            Kind::Charge,
            &[
                "1 payment + 500 psp=P",
                "2 refund - 500 psp=M2 of=P calls=r2",
                "3 return + 500 psp=P event=M1 calls=r1",
            ],
            &["P captured 500/500"],
        ),
        (
            "an interim line informs",
            Kind::Charge,
            &["1 movement + 500 informs"],
            &["F1:1 in_flight -/0"],
        ),
        (
            "and says nothing beside the final one",
            Kind::Charge,
            &["1 movement + 500 informs", "2 movement + 500"],
            &["F1:2 captured 500/0"],
        ),
        ("a batch is no single payment", Kind::Charge, &["1 movement + 500 batch"], &[]),
        (
            "fees, payouts and corrections are nobody's",
            Kind::Charge,
            &["1 fee - 5", "2 payout - 495", "3 adjustment + 1"],
            &[],
        ),
        (
            "a refused attempt",
            Kind::Charge,
            &["1 attempt + 500 psp=P word=Refused informs"],
            &["P failed -/0"],
        ),
        (
            "an attempt on its way",
            Kind::Charge,
            &["1 attempt + 500 psp=P word=SentForSettle informs"],
            &["P in_flight -/0"],
        ),
        (
            "an attempt that settled",
            Kind::Charge,
            &["1 attempt + 500 psp=P word=Authorised informs", "2 payment + 500 psp=P"],
            &["P captured 500/0"],
        ),
        ("an amount that nobody tells", Kind::Charge, &["1 movement +"], &["F1:1 captured -/0"]),
        ("a refund alone", Kind::Charge, &["1 refund - 200 psp=P"], &["P in_flight -/200"]),
        (
            "a chargeback alone",
            Kind::Charge,
            &["1 chargeback - 500 psp=P"],
            &["P captured 500/0 disputed 500"],
        ),
        (
            "a payment whose money went out",
            Kind::Charge,
            &["1 payment - 500 psp=P"],
            &["P captured 500/500 returned "],
        ),
        (
            "a payment, and it once more with its money out",
            Kind::Charge,
            &["1 payment + 500 psp=P", "2 payment - 500 psp=P"],
            &["P captured 500/500 returned "],
        ),
        (
            "a refund whose money came in",
            Kind::Refund,
            &["1 refund - 200 psp=R", "2 refund + 200 psp=R"],
            &["R captured 200/200"],
        ),
        (
            "a return alone",
            Kind::Charge,
            &["1 return - 500 code=AM04"],
            &["F1:1 captured 500/500 returned AM04"],
        ),
    ];

    #[test]
    fn lines_under_one_tag_are_objects() {
        for (name, kind, lines, wanted) in CASES {
            let mut lines: Vec<SettledLine> = lines.iter().map(|text| line(text)).collect();
            let found: Vec<String> = objects(&lines, *kind, Some("r1")).iter().map(shown).collect();
            assert_eq!(found, *wanted, "{name}");
            lines.reverse();
            let back: Vec<String> = objects(&lines, *kind, Some("r1")).iter().map(shown).collect();
            assert_eq!(back, *wanted, "{name}, in the other order");
        }
    }

    /// A line that another row's tag stands in is told under that tag, whoever stores its id.
    #[test]
    fn a_line_of_another_row_is_told_under_that_rows_tag() {
        let of = |texts: &[&str]| {
            let lines: Vec<SettledLine> = texts.iter().map(|text| line(text)).collect();
            let found = objects(&lines, Kind::Charge, Some("r1"));
            let tags = found.into_iter().map(|object| object.tag.unwrap_or_default());
            tags.collect::<Vec<_>>()
        };
        assert_eq!(of(&["1 payment + 500 psp=P tag=r2"]), ["r2"]);
        assert_eq!(of(&["1 payment + 500 psp=P", "2 payment + 500 psp=Q tag=r2"]), ["r1", "r2"]);
        assert_eq!(of(&["1 payment + 300 psp=P", "2 payment + 200 psp=P tag=r2"]), ["r1"]);
    }

    #[test]
    fn what_a_correction_took_out_was_paid_and_came_back() {
        let gone: Vec<SettledLine> =
            ["1 movement + 500", "2 payment + 300 psp=P"].iter().map(|text| line(text)).collect();
        let found: Vec<String> =
            taken_out(&gone, Kind::Charge, Some("r1")).iter().map(shown).collect();
        let why = "returned statement_corrected";
        assert_eq!(
            found,
            [format!("F1:1 captured 500/500 {why}"), format!("P captured 300/300 {why}")]
        );
        assert_eq!(taken_out(&[], Kind::Charge, Some("r1")), []);
    }

    /// The same day ends seventeen hours apart.
    #[test]
    fn an_attempt_is_of_its_day_in_the_senders_zone() {
        use crate::decide::expected::Calendar;
        use crate::model::time::to_short_text;
        use chrono_tz::{America::Los_Angeles, Asia::Tokyo, Europe::Berlin, Tz};

        let by = |zones: &[Tz]| {
            let series = |zone: &Tz| Expected {
                name: "received_%Y%m%d.csv".to_owned(),
                by: chrono::NaiveTime::MIN,
                zone: *zone,
                lag_days: 1,
                calendar: Calendar::weekdays(),
            };
            let expected: Vec<Expected> = zones.iter().map(series).collect();
            let received_at = from_text("2026-11-25T06:00:00Z").unwrap();
            let day = NaiveDate::from_ymd_opt(2026, 11, 21);
            to_short_text(done_by(day, &expected, received_at))
        };
        assert_eq!(by(&[]), "2026-11-21T23:59:59Z");
        assert_eq!(by(&[Berlin]), "2026-11-21T22:59:59Z");
        assert_eq!(by(&[Tokyo]), "2026-11-21T14:59:59Z");
        assert_eq!(by(&[Los_Angeles]), "2026-11-22T07:59:59Z");
        assert_eq!(by(&[Los_Angeles, Tokyo]), "2026-11-22T07:59:59Z");
    }
}
