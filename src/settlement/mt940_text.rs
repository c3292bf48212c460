//! `:86:`, the information to the account owner, in the dialects that banks write it in.
//!
//! German banks (DFÜ-Abkommen, Anlage 3, chapter 8.2.4): three digits of transaction code, then
//! subfields of two digits behind a separator, which is the fourth character (`?`, at some banks
//! `>`, `~`, `<`, `^`). Purpose is in 20 to 29 and 60 to 63, cut at 27 characters without regard
//! to words, so the pieces are joined with nothing between. Dutch banks: `/EREF/…/REMI/…`, cut at
//! 65 characters without regard to codewords. Others write `EREF+…` or `EREF: …` into free text.
//! What the payer wrote may hold the same letters: only a codeword that stands where the bank's
//! stand is read (`own_words`, `slashed`).

use crate::model::settlement::{Line, TagKind};
use crate::settlement::kinds::RETURNS;
use crate::settlement::tags::is_blank_in_mt940;

/// The codewords of SEPA in purposes, each followed by `+` or `:`.
const WORDS: [&str; 14] = [
    "EREF", "KREF", "MREF", "CRED", "DEBT", "COAM", "OAMT", "SVWZ", "ABWA", "ABWE", "IBAN", "BIC",
    "PURP", "RREF",
];

/// The codewords between slashes. Others that begin a row end a reference, too ([`row_words`]).
const SLASHED: [&str; 42] = [
    "TRTP", "EREF", "KREF", "MARF", "CSID", "REMI", "RTRN", "IBAN", "BIC", "NAME", "ADDR", "ORDP",
    "BENM", "CNTP", "PURP", "ISDT", "PREF", "SVCL", "ULTD", "ULTC", "ULTB", "CREF", "TRCD", "OCMT",
    "CHGS", "EXCH", "INIT", "ACCW", "BUSP", "MREF", "SVWZ", "OAMT", "DBNM", "CRNM", "DACT", "CACT",
    "DBIC", "CBIC", "DCID", "IDNM", "OPRP", "FXRT",
];

/// The codewords whose values are references.
const REFERENCES: [&str; 6] = ["EREF", "KREF", "CREF", "PREF", "MREF", "MARF"];

/// Stands for a codeword that is not known.
const OTHER: &str = "";

/// Banks that cut a text without regard to its words cut it at so many characters.
const FULL: usize = 65;

/// A row behind `:61:` has so many characters.
const FURTHER: usize = 34;

/// An end-to-end reference of ISO 20022 has at most so many characters.
const LONGEST: usize = 35;

/// Reads the references of an entry's texts into its line: `further` stands on the row behind
/// `:61:`, `rows` are those of `:86:`.
pub fn read(further: &str, rows: &[String], line: &mut Line) {
    let joined = rows.concat();
    if let Some(separator) = separator(&joined) {
        structured(&joined, separator, line);
    } else if joined.starts_with('/') || joined.contains("/EREF/") || joined.contains("/REMI/") {
        slashed(rows, "", line);
        line.tag(TagKind::Text, &joined);
    } else if starts_slashed(&joined) {
        slashed(rows, "/", line);
        line.tag(TagKind::Text, &joined);
    } else {
        let pieces: Vec<&str> = rows.iter().map(String::as_str).collect();
        worded(&pieces, false, line);
        let own = rows.join(" ");
        let goes_on = !further.trim_start().starts_with('/');
        line.tag(TagKind::Text, &if goes_on { behind(further, &own) } else { own });
        if goes_on {
            return;
        }
    }
    let further = further.trim();
    match further.starts_with('/') {
        true => slashed(&[further.to_owned()], "", line),
        false => line.tag(TagKind::Text, further),
    }
}

/// A text that begins on the row behind `:61:`: a full row is cut within a word.
fn behind(further: &str, text: &str) -> String {
    let is_full = further.chars().count() >= FURTHER;
    let gap = if is_full || further.is_empty() || text.is_empty() { "" } else { " " };
    format!("{further}{gap}{text}")
}

/// The business code that a text of a German bank begins with; empty where it is none.
pub fn business_code(rows: &[String]) -> String {
    let joined = rows.concat();
    let code = separator(&joined).and_then(|_| joined.get(..3));
    code.unwrap_or_default().to_owned()
}

/// `EREF/…/PREF/…`: codewords, of which the first has no slash before it.
fn starts_slashed(text: &str) -> bool {
    let first = text.split_once('/').map_or("", |(word, _)| word);
    matches!(first, "EREF" | "KREF" | "PREF" | "CREF" | "MARF" | "REMI")
}

/// The fourth character, where the text begins with three digits and it parts subfields.
fn separator(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let code = characters.by_ref().take(3).all(|c| c.is_ascii_digit());
    let separator = characters.next().filter(|c| code && "?>~<^*&@$!|".contains(*c))?;
    characters.take(2).all(|c| c.is_ascii_digit()).then_some(separator)
}

fn structured(text: &str, separator: char, line: &mut Line) {
    let code = text.get(..3).unwrap_or_default();
    let mut purpose: Vec<&str> = Vec::new();
    let mut texts: Vec<&str> = Vec::new();
    for subfield in subfields(text, separator) {
        let (number, value) = subfield.split_at(2.min(subfield.len()));
        match number.parse::<u8>() {
            Ok(0) => texts.push(value),
            Ok(20..=29 | 60..=63) => purpose.push(value),
            Ok(32 | 33) => texts.push(value),
            Ok(34) if RETURNS.contains(&code) && !value.trim().is_empty() => {
                line.return_reason = Some(value.trim().to_owned());
            }
            _other => {}
        }
    }
    worded(&purpose, true, line);
    spelled_out(&purpose.concat(), line);
    if RETURNS.contains(&code) {
        let own = line.tags.iter().find(|tag| tag.kind == TagKind::EndToEndId);
        line.original_reference = own.map(|tag| tag.text.clone());
    }
    line.tag(TagKind::Text, &purpose.concat());
    line.tag(TagKind::Text, &texts.join(" "));
}

/// One bank's own words for the payer's reference; the next of its words ends it.
fn spelled_out(purpose: &str, line: &mut Line) {
    let Some((_, after)) = purpose.split_once("END-TO-END-REF.:") else { return };
    let words =
        ["CORE", "B2B", "MANDATSREF", "GLÄUBIGER-ID", "GLAEUBIGER-ID", "Ref. ", "KUNDENREF"];
    let end = words.iter().filter_map(|word| after.find(word)).min().unwrap_or(after.len());
    keep("EREF", after.get(..end).unwrap_or_default().trim(), line);
}

/// The text behind each separator that two digits follow; others are text.
fn subfields(text: &str, separator: char) -> Vec<&str> {
    let starts: Vec<usize> = text
        .match_indices(separator)
        .filter(|(at, found)| {
            let rest = text.get(at.saturating_add(found.len())..).unwrap_or_default();
            rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_digit())
        })
        .map(|(at, _)| at)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let width = separator.len_utf8();
    let cut = starts.iter().zip(ends);
    cut.filter_map(|(start, end)| text.get(start.saturating_add(width)..end)).collect()
}

/// A codeword where it was found.
#[derive(Clone, Copy)]
struct Found {
    at: usize,
    word: &'static str,
    /// It begins a piece.
    begins: bool,
    /// It is followed by `+`, and not by `: `.
    plus: bool,
}

/// The codewords of a text that are the bank's. One begins a piece, or stands behind a blank and
/// the value of another: what payers wrote (`SVWZ`, or no codeword at all) may hold what looks like
/// one. Where a text has no subfields, two in a row are the bank's, whatever stands before them.
/// The dialect of `EREF: ` sets its codewords behind the payer's words, each once.
fn own_words(found: &[Found], has_subfields: bool) -> Vec<(usize, &'static str)> {
    let mut own: Vec<(usize, &'static str)> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for (index, one) in found.iter().enumerate() {
        let last = own.last().map(|(_, word)| *word);
        let counts = match last {
            _any if one.begins => true,
            Some("SVWZ") if one.plus => false,
            Some("SVWZ") => !known.contains(&one.word),
            None if one.plus => {
                let next = found.get(index.saturating_add(1));
                !has_subfields && next.is_some_and(|next| next.plus)
            }
            _behind => true,
        };
        if counts {
            own.push((one.at, one.word));
            if !known.contains(&one.word) {
                known.push(one.word);
            }
        }
    }
    own
}

/// What follows a codeword without one of its own goes on with it.
fn worded(pieces: &[&str], has_subfields: bool, line: &mut Line) {
    let mut joined = String::new();
    let mut found: Vec<Found> = Vec::new();
    for piece in pieces {
        let base = joined.len();
        let bytes = piece.as_bytes();
        // The mark behind a codeword is far rarer than the letters of one.
        for end in memchr::memchr2_iter(b'+', b':', bytes) {
            let after = bytes.get(end..).unwrap_or_default();
            let before = bytes.get(..end).unwrap_or_default();
            let plus = after.starts_with(b"+");
            let word = WORDS.into_iter().find(|word| before.ends_with(word.as_bytes()));
            let Some(word) = word.filter(|_| plus || after.starts_with(b": ")) else { continue };
            let at = end.saturating_sub(word.len());
            let begins = at == 0;
            if begins || bytes.get(at.saturating_sub(1)) == Some(&b' ') {
                found.push(Found { at: base.saturating_add(at), word, begins, plus });
            }
        }
        joined.push_str(piece);
    }
    let starts = own_words(&found, has_subfields);
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([joined.len()]);
    for ((start, word), end) in starts.iter().zip(ends) {
        let from = start.saturating_add(word.len()).saturating_add(1);
        let value = joined.get(from..end).unwrap_or_default().trim();
        keep(word, value, line);
    }
}

/// Codewords between slashes. In the payer's words (`REMI`) what stands behind a blank, or was
/// there before, is the payer's; where the text does not begin with one, two in a row are the
/// bank's.
fn slashed(rows: &[String], lead: &str, line: &mut Line) {
    let joined = format!("{lead}{}", rows.concat());
    let mut starts: Vec<(usize, &str)> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    let words = slashed_words(&joined, &row_words(rows, lead.len()));
    for (index, (at, word)) in words.iter().enumerate() {
        let before = joined.get(..*at).unwrap_or_default();
        let counts = match starts.last() {
            Some((_, "REMI" | "SVWZ")) => {
                *word != OTHER && !before.ends_with(' ') && !known.contains(word)
            }
            Some((_, last)) => *word != OTHER || REFERENCES.contains(last),
            None if *word == OTHER => false,
            None => {
                let mut behind = words.iter().skip(index.saturating_add(1));
                before.trim().is_empty() || behind.any(|(_, next)| *next != OTHER)
            }
        };
        if counts {
            starts.push((*at, *word));
            if !known.contains(word) {
                known.push(*word);
            }
        }
    }
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([joined.len()]);
    for ((start, word), end) in starts.iter().zip(ends) {
        let from = start.saturating_add(word.len()).saturating_add(2);
        let value = joined.get(from..end).unwrap_or_default();
        let value = if *word == "EREF" { at_most(value) } else { value };
        keep(word, value.trim_matches(['/', ' ']), line);
    }
}

/// What is longer than a reference ends at the first word between slashes.
fn at_most(value: &str) -> &str {
    if value.trim_matches(['/', ' ']).chars().count() <= LONGEST {
        return value;
    }
    let mut parts = value.match_indices('/').map(|(at, _)| at);
    let end = parts.find(|at| value.get(*at..).and_then(codeword).is_some_and(|it| it.len() >= 4));
    end.and_then(|end| value.get(..end)).unwrap_or(value)
}

/// The codeword between slashes that a text begins with, whether it is known or not.
fn codeword(text: &str) -> Option<&str> {
    let (word, _) = text.strip_prefix('/')?.split_once('/')?;
    let is_word = (2..=9).contains(&word.len())
        && word.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    is_word.then_some(word)
}

/// Where rows begin with a codeword, in the rows' text behind so many bytes; but not where the row
/// before was full, and the next one may begin within a value.
fn row_words(rows: &[String], lead: usize) -> Vec<usize> {
    let (mut at, mut is_cut) = (lead, false);
    let mut found = Vec::new();
    for row in rows {
        if !is_cut && codeword(row).is_some() {
            found.push(at);
        }
        at = at.saturating_add(row.len());
        is_cut = row.chars().count() >= FULL;
    }
    found
}

/// Where codewords stand between slashes; of those that are not known, where they begin a row.
fn slashed_words(joined: &str, of_rows: &[usize]) -> Vec<(usize, &'static str)> {
    let mut starts: Vec<(usize, &'static str)> = Vec::new();
    let slashes: Vec<usize> = memchr::memchr_iter(b'/', joined.as_bytes()).collect();
    for (at, end) in slashes.iter().zip(slashes.iter().skip(1)) {
        let between = joined.get(at.saturating_add(1)..*end).unwrap_or_default();
        let word = SLASHED.into_iter().find(|word| *word == between);
        let other = Some(OTHER).filter(|_| of_rows.contains(at));
        let Some(word) = word.or(other) else { continue };
        // A slash that ended this same word does not begin it again.
        let ended = |(start, last): &(usize, &str)| {
            *last == word
                && word != OTHER
                && start.saturating_add(last.len()).saturating_add(1) == *at
        };
        if !starts.last().is_some_and(ended) {
            starts.push((*at, word));
        }
    }
    starts
}

fn keep(word: &str, value: &str, line: &mut Line) {
    let kind = match word {
        "EREF" => TagKind::EndToEndId,
        "KREF" | "CREF" => TagKind::CustomerReference,
        "MREF" | "MARF" => TagKind::Mandate,
        "PREF" => TagKind::PaymentInfoId,
        "SVWZ" | "REMI" => TagKind::Text,
        "RTRN" => {
            let code = value.split('/').next().unwrap_or_default().trim();
            line.return_reason = Some(code.to_owned()).filter(|code| !code.is_empty());
            return;
        }
        _other => return,
    };
    if !is_blank_in_mt940(value) {
        line.tag(kind, value);
    }
}

/// What ING's statements end with behind their balances: credits and debits, each how many and what
/// they come to. `/SUM/` with debits, credits and their two sums; or the same behind their letters,
/// `D000003C000002D0,15C0,06`. Sources: ING's descriptions of MT940 for Mijn ING Zakelijk and for
/// Inside Business Payments.
pub fn sums(text: &str) -> Option<[(i128, String); 2]> {
    let text = text.trim();
    let [debits, credits, debit, credit]: [&str; 4] = match text.strip_prefix("/SUM/") {
        Some(rest) => {
            let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
            parts.try_into().ok()?
        }
        None => {
            let (debits, rest) = text.strip_prefix('D')?.split_once('C')?;
            let (credits, rest) = rest.split_once('D')?;
            let (debit, credit) = rest.split_once('C')?;
            [debits, credits, debit, credit]
        }
    };
    let count = |text: &str| {
        let is_count = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_count.then(|| text.parse::<i128>().ok())?
    };
    let is_sum = |text: &str| {
        text.contains(',') && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
    };
    let is_told = is_sum(debit) && is_sum(credit);
    let sides = [(count(credits)?, credit.to_owned()), (count(debits)?, debit.to_owned())];
    is_told.then_some(sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_sides_come_to_is_read_in_either_form() {
        let want = Some([(2, "0,06".to_owned()), (3, "0,15".to_owned())]);
        for text in ["/SUM/3/2/0,15/0,06/", "D000003C000002D0,15C0,06", " /SUM/3/2/0,15/0,06"] {
            assert_eq!(sums(text), want, "{text}");
        }
        for text in ["/SUM/3/2/0,15/", "/SUM/3/x/0,15/0,06/", "D3C2D15C06", "DEBIT CARD", ""] {
            assert_eq!(sums(text), None, "{text}");
        }
    }
}
