//! The brake: on the day when the tag is broken, no row is handed back.
//!
//! Absence is proven per row; this looks at the whole account and run. Where too few of the
//! captured objects around the rows resolve to rows, or too many rows would be handed back at
//! once, all hand-backs by absence of the account wait, and one case asks a person.
//! Rows that absence only ends as abandoned wait with them, since a broken tag makes paid rows look
//! abandoned too; but they do not count as hand-backs: nobody charges them, and a shop may well
//! have thousands of customers a day who never paid.
//! A failure that the PSP states by itself needs no tag and is not braked.

use crate::decide::policy::BrakePolicy;

/// What was counted around an account's hand-backs in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrakeFigures {
    /// How many rows would be handed back by absence.
    pub handbacks: u64,
    /// How many more would end as abandoned by absence, with nobody to charge them.
    pub abandoned: u64,
    /// How many objects the run listed at the account.
    pub listed: u64,
    /// Captured objects nearest to those rows (20 for each) that were looked at …
    pub nearest: u64,
    /// … and how many of them resolve to rows.
    pub resolved: u64,
    /// The account's own usual share in thousandths; 1000 until it has one.
    pub usual_permille: u32,
}

/// Whether the account's hand-backs may go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Brake {
    /// They may.
    Off,
    /// None may; the text has the figures.
    On(String),
}

/// How many rows a run may hand back at an account that listed `listed` objects.
pub fn handbacks_allowed(listed: u64, policy: &BrakePolicy) -> u64 {
    let five_percent = listed.checked_div(20).unwrap_or(0);
    policy.max_handbacks.unwrap_or_else(|| five_percent.clamp(20, 500))
}

/// Decides whether the brake is on.
pub fn brake(figures: &BrakeFigures, policy: &BrakePolicy) -> Brake {
    if figures.handbacks == 0 && figures.abandoned == 0 {
        return Brake::Off;
    }
    let allowed = handbacks_allowed(figures.listed, policy);
    let many = (figures.handbacks > allowed).then(|| {
        format!(
            "{} rows would be handed back at once, and {allowed} are allowed ({} objects listed)",
            figures.handbacks, figures.listed
        )
    });
    // Where both hold, the share comes first: a tag that does not arrive makes many look absent.
    match (low_share(figures, policy), many) {
        (None, None) => Brake::Off,
        (Some(low), Some(many)) => Brake::On(format!("{low}; also, {many}")),
        (Some(text), None) | (None, Some(text)) => Brake::On(text),
    }
}

/// Why too few of the captured objects near the rows are rows; `None`: enough are.
fn low_share(figures: &BrakeFigures, policy: &BrakePolicy) -> Option<String> {
    if figures.nearest == 0 {
        return Some("no captured object near to the rows tells whether tags arrive".to_owned());
    }
    // Shares in millionths: of the objects near the rows, and of the account's own usual share.
    let share =
        figures.resolved.saturating_mul(1_000_000).checked_div(figures.nearest).unwrap_or(0);
    let wanted =
        u64::from(policy.min_tagged_permille).saturating_mul(u64::from(figures.usual_permille));
    (share < wanted).then(|| {
        format!(
            "{} of the {} captured objects nearest to the rows resolve to rows \
             ({} in 1000; at least {} are wanted)",
            figures.resolved,
            figures.nearest,
            share.checked_div(1_000).unwrap_or(0),
            wanted.div_ceil(1_000)
        )
    })
}

/// Fewer objects than this say nothing of what is usual.
const NEAR_MIN: u64 = 20;
/// So many payments with a tag must be missing among the newer ones, before it is told that the tag
/// is dropped: where few payments are tagged, twenty without one are nothing odd.
const MISSED_MIN: u64 = 8;
/// How slowly the usual share follows: one run moves it by a sixteenth of the way.
const INERTIA: u32 = 16;

/// The account's usual share after a run whose brake stayed off; `None`: too little was seen. It
/// follows slowly, and never a day on which the brake was on: a tag that stops arriving must not
/// become usual.
pub fn usual_after(figures: &BrakeFigures) -> Option<u32> {
    if figures.nearest < NEAR_MIN {
        return None;
    }
    let share = figures.resolved.saturating_mul(1_000).checked_div(figures.nearest)?;
    let share = u32::try_from(share).ok()?.min(1_000);
    let usual = figures.usual_permille;
    let step = usual.abs_diff(share).div_ceil(INERTIA);
    Some(if share < usual { usual.saturating_sub(step) } else { usual.saturating_add(step) })
}

/// Whether `newer` captured objects, none of which carries a tag of a row, show that the tag is
/// dropped: no fewer than the usual share is learnt from, and enough for some to be tagged where
/// the wanted part of the account's usual share were (`usual_permille`, 1000 until it has one).
pub fn is_tag_dropped(newer: u64, policy: &BrakePolicy, usual_permille: u32) -> bool {
    // In millionths.
    let wanted = u64::from(policy.min_tagged_permille).saturating_mul(u64::from(usual_permille));
    let missed = newer.saturating_mul(wanted).checked_div(1_000_000).unwrap_or(0);
    newer >= NEAR_MIN && missed >= MISSED_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_share_follows_slowly() {
        let seen = |nearest, resolved, usual_permille| {
            usual_after(&BrakeFigures { usual_permille, ..figures(1, 100, nearest, resolved) })
        };
        assert_eq!(seen(19, 19, 1_000), None, "too few to be usual");
        assert_eq!(seen(20, 20, 1_000), Some(1_000));
        assert_eq!(seen(100, 84, 1_000), Some(990), "a sixteenth of the way");
        assert_eq!(seen(100, 100, 984), Some(985), "and back");
        let mut usual = 1_000;
        for _run in 0..200 {
            usual = seen(100, 90, usual).unwrap();
        }
        assert_eq!(usual, 900, "it gets there");
    }

    #[test]
    fn a_dropped_tag_is_told_by_enough_payments_without_one() {
        let policy = BrakePolicy::default();
        let told = |newer, usual| is_tag_dropped(newer, &policy, usual);
        assert!(!told(0, 1_000), "a quiet account");
        assert!(!told(19, 1_000), "too few to tell");
        assert!(told(20, 1_000));
        assert!(!told(99, 100), "a tenth is usual: one in ten, and a little less");
        assert!(told(100, 100));
        let never = BrakePolicy { min_tagged_permille: 0, ..policy.clone() };
        assert!(!is_tag_dropped(9_999, &never, 1_000), "no share is wanted");
    }

    fn figures(handbacks: u64, listed: u64, nearest: u64, resolved: u64) -> BrakeFigures {
        BrakeFigures { handbacks, abandoned: 0, listed, nearest, resolved, usual_permille: 1_000 }
    }

    /// The person who reads it looks first at what it says first.
    #[test]
    fn a_tag_that_does_not_arrive_is_told_before_how_many_look_absent() {
        let says = |figures| match brake(&figures, &BrakePolicy::default()) {
            Brake::On(text) => text,
            Brake::Off => String::new(),
        };
        let many = "59 rows would be handed back at once, and 32 are allowed (640 objects listed)";
        let low = "28 of the 138 captured objects nearest to the rows resolve to rows \
                   (202 in 1000; at least 800 are wanted)";
        assert_eq!(says(figures(59, 640, 138, 28)), format!("{low}; also, {many}"));
        assert_eq!(says(figures(59, 640, 138, 138)), many);
        assert_eq!(says(figures(32, 640, 138, 28)), low);
        let none = "no captured object near to the rows tells whether tags arrive";
        assert_eq!(says(figures(1, 640, 0, 0)), none);
        assert_eq!(says(figures(0, 640, 0, 0)), "", "nothing is to be handed back");
    }

    #[test]
    fn the_brake_holds_at_the_share_and_at_the_count() {
        let policy = BrakePolicy::default();
        let is_on = |f: BrakeFigures| matches!(brake(&f, &policy), Brake::On(_));
        assert!(!is_on(figures(0, 0, 0, 0)), "nothing to hand back");
        assert!(!is_on(figures(1, 100, 20, 16)), "exactly 80 %");
        assert!(is_on(figures(1, 100, 20, 15)), "below 80 %");
        assert!(is_on(figures(1, 100, 0, 0)), "nothing near: nothing shows that the tag arrives");
        assert!(!is_on(figures(20, 100, 400, 400)));
        assert!(is_on(figures(21, 100, 420, 420)));
        assert!(!is_on(figures(500, 1_000_000, 9_000, 9_000)));
        assert!(is_on(figures(501, 1_000_000, 9_000, 9_000)));
        let abandoned = |resolved| BrakeFigures { abandoned: 900, ..figures(0, 100, 20, resolved) };
        assert!(!is_on(abandoned(16)), "nobody charges these, however many");
        assert!(is_on(abandoned(15)), "their tag must arrive all the same");
        assert!(is_on(BrakeFigures { abandoned: 1, ..figures(21, 100, 420, 420) }));
        let shared = BrakeFigures { usual_permille: 500, ..figures(1, 100, 20, 8) };
        assert!(!is_on(shared), "80 % of its own usual half");
    }
}
