//! What the settlement files of an account say of a batch of rows: read by tag and reference in
//! one question to the database, told in the form of every other source.

use std::collections::{HashMap, HashSet};

use crate::decide::reach::Reach;
use crate::decide::settled::{moved_at, objects};
use crate::model::evidence::{Answer, CompleteSearch, Evidence, Route};
use crate::model::money::Money;
use crate::model::settlement::{LineKind, SettledLine, TagKind};
use crate::model::time::Instant;
use crate::model::transaction::Transaction;
use crate::run::error::{Doing, RunError};
use crate::store::database::Database;
use crate::store::files::{FileDriver, LinePlace, StoredLine};

/// What was found of one row.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// As evidence.
    pub evidence: Option<Evidence>,
    /// The lines that it was told by.
    pub lines: Vec<LinePlace>,
}

/// How an account's files are asked.
#[derive(Debug, Clone, Copy)]
pub struct ByFiles<'a> {
    /// The database.
    pub db: &'a Database,
    /// The account.
    pub account: &'a str,
    /// Files are all there is: that they say nothing is an answer, too.
    pub alone: bool,
}

impl ByFiles<'_> {
    /// What the files say of each row, in the order of the rows.
    pub async fn ask(&self, rows: &[&Transaction], now: Instant) -> Result<Vec<Told>, RunError> {
        let shelf = Shelf::about(self.db, self.account, rows).await?;
        Ok(rows.iter().map(|row| self.told(row, &shelf, now)).collect())
    }

    fn told(&self, row: &Transaction, shelf: &Shelf, now: Instant) -> Told {
        let own = shelf.of_row(row);
        let settled: Vec<SettledLine> = own.iter().map(|line| settled(line)).collect();
        let objects = objects(&settled, row.kind, row.tag.usable());
        let answer = match (objects.is_empty(), self.alone) {
            (false, _) => Answer::Found { objects, search: None },
            (true, true) => Answer::Nothing(silence(now, None)),
            (true, false) => return Told::default(),
        };
        let account = self.account.to_owned();
        let evidence = Evidence { account, route: Route::File, asked_at: now, answer };
        Told { evidence: Some(evidence), lines: own.iter().map(|line| line.place).collect() }
    }
}

/// Files that say nothing of a row, and how far those reach that list every attempt. Without such
/// files they prove nothing: what is not among what settled may be on its way.
pub fn silence(now: Instant, reach: Option<Reach>) -> CompleteSearch {
    let counts_as_miss = reach.is_some();
    let (from, to, lacks) =
        reach.map_or((now, now, None), |reach| (reach.from, reach.to, reach.lacks));
    CompleteSearch {
        route: Route::File,
        kinds: ["charge", "refund", "payout"].map(str::to_owned).to_vec(),
        from,
        to,
        asked_at: now,
        counts_as_miss,
        lag_secs: 0,
        psp_skew_secs: None,
        listed: 0,
        witness: None,
        lacks,
    }
}

/// The lines of a batch, by every text that they may be known by.
pub struct Shelf {
    lines: Vec<StoredLine>,
    by_text: HashMap<String, Vec<usize>>,
    /// Lines that only a pattern of the configuration found a tag in, by that tag.
    by_pattern: HashMap<String, Vec<usize>>,
}

impl Shelf {
    /// Every line of an account that one of these rows may be known by.
    pub async fn about(
        db: &Database,
        account: &str,
        rows: &[&Transaction],
    ) -> Result<Self, RunError> {
        let tags: HashSet<String> =
            rows.iter().filter_map(|row| row.tag.usable()).map(str::to_owned).collect();
        let references: HashSet<String> =
            rows.iter().filter_map(|row| row.psp_reference.clone()).collect();
        let (tags, references) = (Vec::from_iter(tags), Vec::from_iter(references));
        let lines = db.lines_of(account, &tags, &references).await;
        let lines = lines.doing("looking for lines of settlement files")?;
        Ok(Self::of(lines, &tags, &references))
    }

    fn of(lines: Vec<StoredLine>, tags: &[String], references: &[String]) -> Self {
        let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_pattern: HashMap<String, Vec<usize>> = HashMap::new();
        let asked: HashSet<&str> = tags.iter().chain(references).map(String::as_str).collect();
        for (index, line) in lines.iter().enumerate() {
            for text in names_of(line).collect::<HashSet<&str>>() {
                by_text.entry(text.to_owned()).or_default().push(index);
            }
            // One that carries a row's name by itself is that row's, whatever its text holds.
            if names_of(line).all(|name| !asked.contains(name))
                && let Some(tag) = within(line, tags)
            {
                by_pattern.entry(tag.to_owned()).or_default().push(index);
            }
        }
        Self { lines, by_text, by_pattern }
    }

    /// The lines that a row is known by.
    pub fn of_row(&self, row: &Transaction) -> Vec<&StoredLine> {
        let names = [row.tag.usable(), row.psp_reference.as_deref()];
        let mut found: Vec<usize> = names
            .into_iter()
            .flatten()
            .filter_map(|name| self.by_text.get(name))
            .flatten()
            .copied()
            .collect();
        if let Some(tag) = row.tag.usable().filter(|_| found.is_empty()) {
            found.extend(self.by_pattern.get(tag).into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().filter_map(|index| self.lines.get(index)).collect()
    }
}

/// The one tag of these that stands in a line's free text. A tag that is a piece of another is not
/// meant where the other stands; of two, neither is known to be.
fn within<'t>(line: &StoredLine, tags: &'t [String]) -> Option<&'t str> {
    let texts: Vec<&str> = line
        .refs
        .iter()
        .filter(|tag| tag.kind == TagKind::Text)
        .map(|tag| tag.text.as_str())
        .collect();
    let says = |tag: &&String| texts.iter().any(|text| stands_in(text, tag));
    let found: Vec<&String> = tags.iter().filter(says).collect();
    let is_whole =
        |tag: &&&String| found.iter().all(|other| other == *tag || !other.contains(tag.as_str()));
    let mut whole = found.iter().filter(is_whole);
    whole.next().filter(|_| whole.next().is_none()).map(|tag| tag.as_str())
}

/// Whether a tag stands in a text by itself: no letter or digit goes on before or after it.
fn stands_in(text: &str, tag: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    !tag.is_empty()
        && text.match_indices(tag).any(|(at, _)| {
            let (before, rest) = text.split_at(at);
            let after = rest.strip_prefix(tag).unwrap_or_default();
            ends(before.chars().next_back()) && ends(after.chars().next())
        })
}

/// Every text that a row may know a line by, the likeliest first.
pub fn names_of(line: &StoredLine) -> impl Iterator<Item = &str> {
    let own = [&line.tag, &line.psp_reference, &line.original];
    let refs = line.refs.iter().filter(|tag| tag.kind != TagKind::Text).map(|tag| &tag.text);
    own.into_iter().flatten().chain(refs).map(String::as_str)
}

/// A kept line as the decision reads it. What moved is compared before fees: a net line is never
/// held against the row's gross.
pub fn settled(line: &StoredLine) -> SettledLine {
    let named = |kind: TagKind| line.refs.iter().find(move |tag| tag.kind == kind);
    let text = |kind| named(kind).map(|tag| tag.text.clone());
    let money = line.gross.or(line.amount.filter(|_| line.fee.is_none_or(|fee| fee.minor == 0)));
    // A refund has an id of its own; the payment's, which stands beside it, is another row's.
    let (payment, original, aliases) = if line.kind == LineKind::Refund {
        let original = line.original.clone().or_else(|| line.psp_reference.clone());
        let is_own = |own: &String| line.original.as_ref().is_some_and(|other| other != own);
        let own = || line.psp_reference.clone().filter(is_own);
        (text(TagKind::RefundId).or_else(own), original, Vec::new())
    } else {
        let ids = [text(TagKind::PaymentId), text(TagKind::ChargeId)];
        let aliases = ids.into_iter().flatten().collect();
        (line.psp_reference.clone(), line.original.clone(), aliases)
    };
    SettledLine {
        place: line.place.to_string(),
        format: line.format.clone(),
        kind: line.kind,
        direction: line.direction,
        money: money.map(|money| Money { minor: money.minor.saturating_abs(), ..money }),
        decides: line.decides,
        itemised: line.itemised,
        payment,
        original,
        aliases,
        code: line.return_reason.clone(),
        word: line.type_code.clone(),
        at: moved_at(line.booked_on, line.received_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_stands_in_a_text_only_by_itself() {
        for (text, tag, want) in [
            ("Order pay_1 thanks", "pay_1", true),
            ("pay_1", "pay_1", true),
            ("ref:pay_1/x", "pay_1", true),
            ("Order pay_12 thanks", "pay_1", false),
            ("xpay_1", "pay_1", false),
            ("pay_12 and pay_1", "pay_1", true),
            ("ßpay_1ß", "pay_1", false),
            ("anything", "", false),
        ] {
            assert_eq!(stands_in(text, tag), want, "{text} {tag}");
        }
    }
}
