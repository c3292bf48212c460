//! The word that a misspelt one was probably meant to be.

/// The word among `known` that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let limit = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (edits(&folded, &fold(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A word without its case, and with one mark between its parts.
pub fn fold(word: &str) -> Vec<char> {
    word.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// How many insertions, deletions, changes or swaps of neighbours lead from `a` to `b`.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i.saturating_add(1)];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX);
            let changed = at(&last, j).saturating_add(usize::from(x != y));
            let shorter = at(&last, j.saturating_add(1)).saturating_add(1);
            let longer = at(&row, j).saturating_add(1);
            let mut best = changed.min(shorter).min(longer);
            let swapped = i > 0
                && j > 0
                && a.get(i.saturating_sub(1)) == Some(y)
                && b.get(j.saturating_sub(1)) == Some(x);
            if swapped {
                best = best.min(at(&before, j.saturating_sub(1)).saturating_add(1));
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}
