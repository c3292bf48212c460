//! Lines for people: none wider than eighty columns (or `COLUMNS`), broken between words, what
//! follows standing under the text that it goes on with.

use std::io::IsTerminal;
use std::sync::LazyLock;

use crate::cli::out;
use crate::model::fill::filled;

/// What every terminal and every mail shows whole.
const WIDTH: usize = 80;

/// `COLUMNS`, as POSIX has it: for who wants lines longer, or shorter.
#[expect(clippy::disallowed_methods, reason = "of the terminal, and no setting of tieout's")]
static COLUMNS: LazyLock<usize> = LazyLock::new(|| {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.map_or(WIDTH, |columns: usize| columns.clamp(40, 10_000))
});

/// How wide lines for people may be.
pub fn width() -> usize {
    *COLUMNS
}

/// Labels are shorter; a gap further right is one between the cells of a table.
const LABEL: usize = 30;

/// Prints a line.
pub fn say(line: &str) {
    broken(line).iter().for_each(|line| out::stdout(line));
}

/// Tells on stderr what went wrong or is asked. On a terminal in lines that fit; in a log, a mail
/// or a pipe a text stays on one line, to be searched for.
pub fn warn(text: &str) {
    lines_of(text, *IS_READ).iter().for_each(|line| out::stderr(line));
}

fn lines_of(text: &str, is_read: bool) -> Vec<String> {
    match is_read {
        true => text.split('\n').flat_map(broken).collect(),
        false => vec![text.to_owned()],
    }
}

/// Whether a person reads stderr.
static IS_READ: LazyLock<bool> = LazyLock::new(|| std::io::stderr().is_terminal());

/// A line as lines that fit. A word is never broken: it may be there to be copied. It is one line:
/// what a row's key or a bank's text has of breaks begins none of its own.
pub fn broken(line: &str) -> Vec<String> {
    broken_at(&one_line(line), *COLUMNS)
}

/// The same, and what goes on stands two further right than the text that it goes on with: of
/// several texts below each other each that begins is told from what goes on.
pub fn broken_deeper(line: &str) -> Vec<String> {
    let line = one_line(line);
    let indent = hanging(&line).saturating_add(2);
    broken_by(&line, *COLUMNS, indent)
}

/// A text without breaks, each shown as JSON escapes it.
pub fn one_line(text: &str) -> String {
    out::seen(text).replace('\n', "\\n")
}

fn broken_at(line: &str, width: usize) -> Vec<String> {
    broken_by(line, width, hanging(line))
}

fn broken_by(line: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > width {
        let is_gap = |at: &usize| rest.get(*at) == Some(&' ') && *at > indent;
        let before = (0..=width).rev().find(is_gap);
        let Some(at) = before.or_else(|| (width..rest.len()).find(is_gap)) else { break };
        let (head, tail) = rest.split_at(at);
        let head: String = head.iter().collect();
        let tail: String = tail.iter().collect();
        let tail = tail.trim_start();
        if tail.is_empty() {
            break;
        }
        lines.push(head.trim_end().to_owned());
        rest = format!("{:indent$}{tail}", "").chars().collect();
    }
    lines.push(rest.into_iter().collect::<String>().trim_end().to_owned());
    lines
}

/// Where the text of a line begins: after its label, or after its own indent.
fn hanging(line: &str) -> usize {
    let letters: Vec<char> = line.chars().collect();
    let lead = letters.iter().take_while(|letter| **letter == ' ').count();
    if lead >= 4 {
        return lead;
    }
    let mut gap = 0_usize;
    for (at, letter) in letters.iter().enumerate().skip(lead) {
        if *letter == ' ' {
            gap = gap.saturating_add(1);
        } else if gap >= 2 {
            return at;
        } else if at > LABEL {
            break;
        } else {
            gap = 0;
        }
    }
    lead.saturating_add(2)
}

/// A text in lines of at most so many characters, broken between words.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    filled(text.split_whitespace(), width, ("", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_stays_as_it_is() {
        for line in ["", "why        captured: pi_1 captured 19.99 EUR", "  1001  processing"] {
            assert_eq!(broken_at(line, WIDTH), [line]);
        }
    }

    #[test]
    fn what_is_long_goes_on_under_its_text() {
        let text = "no verdict was written: a person decides, and nobody else does it for them";
        for (label, indent) in
            [("not done   ", 11), ("           ", 11), ("  1001  ", 8), ("at ", 2)]
        {
            let lines = broken_at(&format!("{label}{text} {text}"), WIDTH);
            assert!(lines.len() > 1);
            assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
            for line in &lines[1..] {
                let lead = line.chars().take_while(|letter| *letter == ' ').count();
                assert_eq!(lead, indent, "{lines:#?}");
            }
            let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
            assert!(words.join(" ").ends_with(&format!("{text} {text}")), "{lines:#?}");
        }
    }

    #[test]
    fn a_word_is_never_broken_at() {
        let word = "x".repeat(100);
        assert_eq!(broken_at(&word, WIDTH), [word.as_str()]);
        assert_eq!(
            broken_at(&format!("hash  {word} and more"), WIDTH),
            [format!("hash  {word}"), "      and more".to_owned()]
        );
    }

    #[test]
    fn no_text_of_strangers_begins_a_line() {
        let forged = "C-5  charges/7\nexit 0 (ok)\u{1b}[2J";
        assert_eq!(broken(forged), ["C-5  charges/7\\nexit 0 (ok)\\u001b[2J"]);
    }

    #[test]
    fn what_goes_on_is_told_from_what_begins() {
        let begins = "          2026-11-19T12:00Z comment by mara: ";
        let forged = "2026-11-19T13:00Z approved by tom: ok";
        let lines = broken_by(&format!("{begins}{} {forged}", "x".repeat(30)), WIDTH, 12);
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert_eq!(lines[1], format!("            {forged}"));
        // What was broken so is not broken anew.
        assert!(lines.iter().all(|line| broken_at(line, WIDTH) == [line.as_str()]));
        let deeper = broken_deeper(&format!("{begins}{} {forged}", "x".repeat(30)));
        assert_eq!(deeper.concat(), lines.concat());
    }

    #[test]
    fn errors_are_broken_for_who_reads_them_on_a_terminal() {
        let long = "tieout: config: no configuration found; nothing was done; looked for \
                    tieout.toml, /etc/tieout/tieout.toml";
        let text = format!("{long}\n  3 | modus = \"full\"\n    | ^^^^^ did you mean `mode`?");
        let lines = lines_of(&text, true);
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
        assert_eq!(lines[3], "    | ^^^^^ did you mean `mode`?");
        assert_eq!(lines_of(&text, false), [text]);
    }

    #[test]
    fn texts_break_between_words() {
        assert_eq!(wrapped("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrapped("abcdefgh ij", 5), ["abcdefgh", "ij"]);
        assert!(wrapped("", 5).is_empty());
    }
}
