//! What is found of a row against what people saw of it: an approval is of what its case showed,
//! and closes nothing over what came since; and what they decided by is no news once more.

use crate::decide::decision::Inputs;
use crate::decide::policy::Policy;
use crate::decide::view::{Item, Standing, View};
use crate::model::money::Money;
use crate::model::time::Instant;

/// What the case of a row did not show, in words: money that went back, and money that moved
/// beside the object that is `taken` for the row's. Of a paid row: what contradicts that.
pub fn came_since(
    (found, shown): (&Inputs<'_>, Option<&Inputs<'_>>),
    policy: &Policy,
    now: Instant,
    taken: Option<&str>,
) -> Option<String> {
    let found = View::of(found, policy, now);
    let shown = shown.map(|shown| View::of(shown, policy, now));
    let shown: Vec<&Item<'_>> = shown.iter().flat_map(|view| view.items.iter()).collect();
    let is_paid = found.standing == Standing::Settled;
    let is_alone = found.items.iter().filter(|item| item.has_captured()).count() < 2;
    found.items.iter().find_map(|item| {
        let known: Vec<&Item<'_>> =
            shown.iter().filter(|known| is_one(known, item)).copied().collect();
        let is_taken = taken.is_some_and(|name| item.is_named(name));
        let is_known = is_taken || known.iter().any(|known| known.has_captured());
        if item.has_captured() && !is_known && !(is_paid && is_alone) {
            let (name, amount) = (item.reference(), item.amount_text());
            return Some(format!("{name} captured {amount}, which the case does not show"));
        }
        // Giving back what was paid twice is what the case asks for; and giving back a part of
        // what was paid is what a shop does.
        let is_beside = taken.is_some() && !is_taken;
        let tells = item.came_back() || item.back.disputed || !(is_paid || is_beside);
        if tells { more_back(item, &known) } else { None }
    })
}

/// What the case of a row shows that captured, or can still, and that is not found any more, in
/// words. An answer that sees less takes nothing of that away: who approved by the case has not
/// seen that it is gone.
pub fn gone_since(
    (found, shown): (&Inputs<'_>, &Inputs<'_>),
    policy: &Policy,
    now: Instant,
) -> Option<String> {
    let (found, shown) = (View::of(found, policy, now), View::of(shown, policy, now));
    let is_found = |item: &Item<'_>| found.items.iter().any(|one| is_one(one, item));
    let moves = |item: &&Item<'_>| item.has_captured() || item.can_still_capture();
    let gone = shown.items.iter().filter(moves).find(|item| !is_found(item))?;
    let how = match gone.has_captured() {
        true => format!("captured {}", gone.amount_text()),
        false => gone.open_text(),
    };
    let name = gone.reference();
    Some(format!("the case shows that {name} {how}, and the PSP does not show {name} any more"))
}

/// Whether money is where it was as people ended the row: everything that captured, and what went
/// back of it, they knew.
pub fn is_as_decided(
    (found, shown): (&Inputs<'_>, &Inputs<'_>),
    policy: &Policy,
    now: Instant,
) -> bool {
    let (found, shown) = (View::of(found, policy, now), View::of(shown, policy, now));
    let is_known = |item: &Item<'_>| {
        let known: Vec<&Item<'_>> =
            shown.items.iter().filter(|known| is_one(known, item)).collect();
        let is_same = |known: &&Item<'_>| known.object.captured == item.object.captured;
        known.iter().any(is_same) && more_back(item, &known).is_none()
    };
    let mut captured = found.items.iter().filter(|item| item.has_captured());
    found.conflict.is_none() && captured.all(is_known)
}

/// Whether two looks mean one object: either may know it by another of its names.
fn is_one(known: &Item<'_>, item: &Item<'_>) -> bool {
    known.is_named(item.reference()) || item.is_named(known.reference())
}

/// That more of an object went back than the case shows.
fn more_back(item: &Item<'_>, known: &[&Item<'_>]) -> Option<String> {
    let name = item.reference();
    let before = known.iter().filter_map(|known| known.gone()).map(|gone| gone.minor).max();
    let before = before.unwrap_or(0);
    if let Some(gone) = item.gone().filter(|gone| gone.minor > before) {
        let before = Money::new(before, gone.currency);
        return Some(format!("{gone} of {name} went back by now, and the case shows {before}"));
    }
    let refunded = known.iter().map(|known| known.back.minor).max().unwrap_or(0);
    let charged = known.iter().map(|known| known.object.charged_back_minor).max().unwrap_or(0);
    let is_more = item.back.minor > refunded || item.object.charged_back_minor > charged;
    let is_back = item.came_back() && !known.iter().any(|known| known.came_back());
    let is_disputed = item.back.disputed && !known.iter().any(|known| known.back.disputed);
    let is_told = is_more || is_back || is_disputed;
    is_told.then(|| format!("more of {name} went back by now than the case shows"))
}
