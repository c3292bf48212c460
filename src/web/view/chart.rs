//! How old what waits is: bars, drawn as SVG, told in words as well.

use crate::web::html::{El, Html, el, of_class};
use crate::web::page::{card, count as grouped, small};

/// The ages, youngest first, with the days that each begins after.
pub const AGES: [(&str, &str, i64); 7] = [
    ("0-1", "0–1 d", 0),
    ("2-3", "2–3 d", 2),
    ("4-7", "4–7 d", 4),
    ("8-30", "8–30 d", 8),
    ("31-60", "31–60 d", 31),
    ("61-90", "61–90 d", 61),
    ("90+", "90+ d", 91),
];

/// Ages from here on are old, …
const OLD: usize = 3;

/// … and from here on oldest.
const OLDEST: usize = 4;

/// What a bar and the room before the next take.
const STEP: i64 = 66;
const BAR: i64 = 58;
const HIGHEST: i64 = 108;
const BASE: i64 = 140;

/// The card with the bars: how many of each age.
pub fn aging(heading: &str, counts: &[i64; 7]) -> El {
    let all: i64 = counts.iter().fold(0, |all, count| all.saturating_add(*count));
    let card = card(heading);
    if all == 0 {
        return card.then(small("Nothing waits for a person."));
    }
    // A list of cases tells their ages in spans of 24 hours: both are right, where each says which.
    let days = "In days of the business's calendar, as in the reports: today is 0, yesterday 1.";
    card.then(chart(heading, counts)).then(small(days))
}

fn chart(heading: &str, counts: &[i64; 7]) -> El {
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let told: Vec<String> = AGES
        .iter()
        .zip(counts)
        .map(|((_, words, _), number)| format!("{words}: {}", grouped(*number)))
        .collect();
    let width = STEP.saturating_mul(7);
    let mut drawn = el("g")
        .at("aria-hidden", "true")
        .then(of_class("line", "base").at("x1", 0).at("x2", width).at("y1", BASE).at("y2", BASE));
    for (at, ((_, words, _), count)) in AGES.iter().zip(counts).enumerate() {
        drawn = drawn.then(bar(at, words, *count, most));
    }
    of_class("svg", "chart")
        .at("viewBox", format!("0 0 {width} 170"))
        .at("preserveAspectRatio", "xMinYMid meet")
        .at("role", "img")
        .then(el("title").then(heading))
        .then(el("desc").then(told.join(", ")))
        .then(drawn)
}

fn bar(at: usize, words: &str, count: i64, most: i64) -> Html {
    let left = i64::try_from(at).unwrap_or_default().saturating_mul(STEP).saturating_add(4);
    let middle = left.saturating_add(BAR / 2);
    // A bar of one among thousands is still seen.
    let scaled = count.saturating_mul(HIGHEST).checked_div(most).unwrap_or_default();
    let high = if count > 0 { scaled.max(2) } else { 0 };
    let top = BASE.saturating_sub(high);
    let class = match at {
        OLDEST.. => "oldest",
        OLD.. => "old",
        _young => "bar",
    };
    let shape = (count > 0).then(|| {
        of_class("rect", class)
            .at("x", left)
            .at("y", top)
            .at("width", BAR)
            .at("height", high)
            .at("rx", 3)
    });
    let label = |class: &'static str, y: i64, words: &str| {
        of_class("text", class).at("x", middle).at("y", y).at("text-anchor", "middle").then(words)
    };
    Html::new()
        .with(shape)
        .with(label("value", top.saturating_sub(7), &grouped(count)))
        .with(label("age", BASE.saturating_add(20), words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::aging::bucket;

    #[test]
    fn ages_are_those_of_the_report() {
        for (word, _, days) in AGES {
            assert_eq!(bucket(days), word);
        }
    }

    #[test]
    fn one_among_many_is_still_seen_and_none_is_no_bar() {
        let made = Html::from(aging("By age", &[100_000, 1, 0, 0, 0, 0, 3])).into_string();
        assert_eq!(made.matches("<rect").count(), 3, "{made}");
        assert!(made.contains("height=\"2\""), "{made}");
        assert!(made.contains("2–3 d: 1"), "{made}");
        assert!(made.contains("0–1 d: 100,000") && made.contains(">100,000<"), "{made}");
        assert!(made.contains("class=\"oldest\""), "{made}");
        assert!(made.contains("calendar, as in the reports: today is 0"), "{made}");
        let none = Html::from(aging("By age", &[0; 7])).into_string();
        assert!(!none.contains("<svg"), "{none}");
    }
}
