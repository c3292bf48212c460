//! How many pages a window has, told from a few of them.
//!
//! The newest page says how dense a window is at its newest end, and nothing of the rest: an hour
//! of many payments in an empty week would count as a week of many. So a few pages are read
//! further down, each a multiple as far from the top as the one before it, and between two pages
//! the density is taken to go evenly from what the upper one ended with to what the lower one
//! began with.

use crate::psp::stripe::PAGE;

/// What the newest page of a stretch of seconds showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Objects on it.
    pub(super) objects: u64,
    /// Seconds from the top of the stretch to its last object.
    pub(super) from_top: u64,
    /// Seconds from its first object to its last.
    pub(super) own: u64,
}

impl Sample {
    /// Objects and the seconds that they took, right below the top of the stretch.
    fn begun(self) -> (u128, u128) {
        (u128::from(self.objects), u128::from(self.from_top.max(1)))
    }

    /// The same, where the page ended.
    fn ended(self) -> (u128, u128) {
        (u128::from(self.objects), u128::from(self.own.max(1)))
    }
}

/// Pages in the unread seconds below a page and above another. Where nothing was read below, what
/// the page showed on the whole is all that is known.
pub(super) fn pages_between(secs: u64, above: Sample, below: Option<Sample>) -> u64 {
    let (upper, lower) = match below {
        Some(below) => (above.ended(), below.begun()),
        None => (above.begun(), above.begun()),
    };
    let sum = upper.0.saturating_mul(lower.1).saturating_add(lower.0.saturating_mul(upper.1));
    let per_page = u128::try_from(PAGE).unwrap_or(1);
    let scale = upper.1.saturating_mul(lower.1).saturating_mul(2).saturating_mul(per_page);
    let pages = u128::from(secs).saturating_mul(sum).checked_div(scale).unwrap_or(0);
    u64::try_from(pages).unwrap_or(u64::MAX)
}

/// How far below the top of so many unread seconds pages are worth reading, the nearest first: at
/// most so many, and none where the next page gets there anyway.
pub(super) fn cuts(secs: u64, above: Sample, most: u64) -> Vec<u64> {
    let page = above.own.max(1);
    let octaves = secs.checked_div(page).and_then(u64::checked_ilog2).map_or(0, u64::from);
    let step = octaves.div_ceil(most.saturating_add(1)).max(1);
    let mut cuts: Vec<u64> = (1..=most)
        .map(|place| u32::try_from(place.saturating_mul(step)).unwrap_or(u32::MAX))
        .map(|shift| secs.checked_shr(shift).unwrap_or(0))
        .take_while(|cut| *cut > page)
        .collect();
    cuts.reverse();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sample(objects: u64, from_top: u64, own: u64) -> Sample {
        Sample { objects, from_top, own }
    }

    #[test]
    fn between_two_pages_the_density_goes_evenly_from_one_to_the_other() {
        for (secs, above, below, pages) in [
            (10_000, sample(100, 100, 100), Some(sample(100, 100, 100)), 100),
            (10_000, sample(100, 100, 100), Some(sample(0, 1_000, 1)), 50),
            // A gap above the page is no part of how dense it ended, and one is of how it began.
            (10_000, sample(100, 1_000, 100), Some(sample(100, 1_000, 100)), 55),
            (10_000, sample(100, 1_000, 100), None, 10),
            (0, sample(100, 100, 100), None, 0),
            (u64::MAX, sample(u64::MAX, 0, 0), None, u64::MAX),
        ] {
            assert_eq!(pages_between(secs, above, below), pages, "{secs} {above:?} {below:?}");
        }
    }

    #[test]
    fn pages_are_read_each_a_multiple_as_far_down_as_the_one_before() {
        let week = 604_800;
        for (page, most, want) in [
            (60, 8, &[147, 590, 2_362, 9_450, 37_800, 151_200][..]),
            (60, 2, &[590, 18_900]),
            (60, 0, &[]),
            (200_000, 8, &[302_400]),
            (400_000, 8, &[]),
            (0, 1, &[590]),
        ] {
            assert_eq!(cuts(week, sample(100, page, page), most), want, "{page} {most}");
        }
        assert!(cuts(0, sample(100, 1, 1), 8).is_empty());
    }
}
