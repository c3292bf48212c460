//! A good file that was changed on its way is noticed, and one that was only re-encoded is not.

use tieout::settlement::ledger::{Inspection, State};

use super::{FIXTURES, errors, fixture, inspected, items};

/// Files whose every amount stands in an equation of the file itself.
const TIED: [&str; 6] = [
    "bai2_spec.txt",
    "camt053_v02.xml",
    "camt053_v08.xml",
    "mt940_de.sta",
    "mt940_nl.sta",
    "nacha.ach",
];

fn is_ok(bytes: &[u8]) -> bool {
    inspected(bytes).state == State::Ok
}

/// Credits and debits by currency: what a message without an amount does not change.
fn money(found: &Inspection) -> Vec<(String, i128, i128)> {
    let totals = found.sums.totals.iter();
    totals.map(|(code, t)| (code.to_string(), t.credit_minor, t.debit_minor)).collect()
}

/// A good file was changed; it must not read as a good file with other figures. What carries no
/// money (a message of BAI2) may be missing with a warning.
#[track_caller]
fn is_noticed(name: &str, good: &[u8], changed: &[u8], what: &str) {
    let (before, after) = (inspected(good), inspected(changed));
    let is_said = after.sums.problems_total > before.sums.problems_total;
    let same = after.state == State::Ok
        && money(&after) == money(&before)
        && (after.sums.entries == before.sums.entries || is_said);
    assert!(
        after.state != State::Ok || same,
        "{name}: {what} went unnoticed: {:?} {:?}",
        after.sums.totals,
        after.sums.problems
    );
}

#[test]
fn a_line_that_is_missing_or_doubled_is_noticed() {
    for name in TIED {
        let good = fixture(name);
        let text = String::from_utf8(good.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for at in 0..lines.len() {
            let mut fewer = lines.clone();
            fewer.remove(at);
            is_noticed(name, &good, fewer.join("\n").as_bytes(), &format!("no line {}", at + 1));
            let mut more = lines.clone();
            more.insert(at, lines[at]);
            is_noticed(name, &good, more.join("\n").as_bytes(), &format!("twice line {}", at + 1));
        }
    }
}

#[test]
fn a_digit_that_is_changed_is_noticed() {
    for name in TIED {
        let good = fixture(name);
        for at in 0..good.len() {
            if good[at].is_ascii_digit() {
                let mut changed = good.clone();
                changed[at] = if good[at] == b'9' { b'0' } else { good[at] + 1 };
                is_noticed(name, &good, &changed, &format!("a digit at {at}"));
            }
        }
    }
}

#[test]
fn a_sign_that_is_turned_is_noticed() {
    for (name, from, to) in [
        ("camt053_v02.xml", "<CdtDbtInd>DBIT</CdtDbtInd><Sts>", "<CdtDbtInd>CRDT</CdtDbtInd><Sts>"),
        ("camt053_v08.xml", "<ns2:CdtDbtInd>DBIT", "<ns2:CdtDbtInd>CRDT"),
        ("mt940_de.sta", "0102RC40", "0102C40"),
        ("mt940_de.sta", "1231RDR10", "1231DR10"),
        ("mt940_nl.sta", "1119D25", "1119C25"),
        ("mt942.sta", "1119C12", "1119D12"),
        ("nacha.ach", "\n627", "\n622"),
        ("camt053_v02.xml", "Ccy=\"EUR\">30.00", "Ccy=\"USD\">30.00"),
    ] {
        let good = String::from_utf8(fixture(name)).unwrap();
        assert!(good.contains(from), "{name} has {from}");
        let changed = good.replacen(from, to, 1);
        assert!(!is_ok(changed.as_bytes()), "{name}: {to}");
    }
}

#[test]
fn a_file_that_was_cut_anywhere_is_noticed() {
    for name in TIED {
        let good = fixture(name);
        let before = inspected(&good).sums;
        for length in 0..good.trim_ascii_end().len() {
            let found = inspected(&good[..length]);
            let is_whole = found.state == State::Ok && found.sums.totals == before.totals;
            // Only what carries no figure may be missing: a mark of the end, or blanks before it;
            // and with a warning the last record count of BAI2.
            let rest = String::from_utf8_lossy(&good[length..]).into_owned();
            let is_mark = rest.bytes().all(|b| b"-/}{5:\r\n 9".contains(&b))
                || found.sums.problems_total > before.problems_total;
            assert!(
                found.state != State::Ok || (is_whole && is_mark) || is_trailer(name, &rest),
                "{name} cut to {length} bytes reads as good; missing: {rest:?}"
            );
        }
    }
}

/// MT940: what follows the last booked balance is in no sum, and the file's end has no mark that
/// every bank writes, so a cut between two statements leaves a good file. The next delivery tells:
/// it begins where the missing statement ended.
fn is_trailer(name: &str, rest: &str) -> bool {
    let whole_statement =
        ["STARTUMSE\n:25:10020030/7654321\n", "940A261119\n:25:NL08ABNA0123456789\n:28C:19322/1\n"];
    name.ends_with(".sta")
        && (!rest.contains(":62F:") && !rest.contains("62F:")
            || whole_statement.iter().any(|statement| rest.contains(statement)))
}

#[test]
fn the_same_text_in_other_bytes_tells_the_same() {
    let byte = regex::Regex::new(r"byte: \d+").unwrap();
    for name in FIXTURES {
        let good = String::from_utf8(fixture(name)).unwrap();
        let strip = |bytes: &[u8]| -> Vec<String> {
            let items = items(bytes).into_iter().map(|item| format!("{item:?}"));
            items.map(|item| byte.replace_all(&item, "").into_owned()).collect()
        };
        let want = strip(good.as_bytes());
        let utf16: Vec<u8> =
            format!("\u{feff}{good}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (cp1252, _, lossy) = encoding_rs::WINDOWS_1252.encode(&good);
        assert!(!lossy, "{name}");
        for (what, bytes) in [
            ("a byte order mark", format!("\u{feff}{good}").into_bytes()),
            ("UTF-16", utf16),
            ("cp1252", cp1252.into_owned()),
        ] {
            if what == "cp1252" && good.contains("encoding=") {
                continue; // it would say of itself what it is not
            }
            assert_eq!(strip(&bytes), want, "{name} with {what}");
        }
        for (what, end) in [("CRLF", "\r\n"), ("CR", "\r")] {
            let text = good.replace('\n', end);
            let told: Vec<String> = strip(text.as_bytes());
            let plain: Vec<String> =
                told.iter().map(|t| t.replace("\\r\\n", "\\n").replace("\\r", "\\n")).collect();
            assert_eq!(plain, want, "{name} with {what}");
        }
    }
}

#[test]
fn statements_in_another_order_are_said() {
    let text = String::from_utf8(fixture("mt940_nl.sta")).unwrap();
    let at = text.rfind("{1:").unwrap();
    let swapped = format!("{}{}", &text[at..], &text[..at]);
    let found = inspected(swapped.as_bytes());
    let said = found.sums.problems.iter().any(|problem| problem.field == "opening balance");
    assert!(said, "{:?}", found.sums.problems);
}

#[test]
fn problems_name_line_field_expected_and_found() {
    let text = String::from_utf8(fixture("mt940_nl.sta")).unwrap();
    let wrong = text.replacen(":62F:C261119EUR475,75", ":62F:C261119EUR475,57", 1);
    let found = errors(&inspected(wrong.as_bytes()));
    assert_eq!(
        found[0],
        "line 13: closing balance: expected 475.57 EUR, found 475.75 EUR (opening 500.00 EUR and \
         entries -24.25 EUR)"
    );
}
