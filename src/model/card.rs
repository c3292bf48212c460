//! Card numbers: what looks like one is kept nowhere whole, whoever wrote it where.

use std::borrow::Cow;

/// The text with all but the last four digits of each card number masked.
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(start) = (at..bytes.len()).find(|i| is_digit(bytes, *i)) {
        // In groups, as on the card; then each group alone: a date may stand before it.
        let grouped = run_of_digits(bytes, start, true);
        let alone = run_of_digits(bytes, start, false);
        at = alone.1;
        for (digits, end) in [grouped, alone] {
            if is_card_number(&digits) {
                let hidden = hide(text.get(start..end).unwrap_or_default(), digits.len());
                // One byte for one byte: the places are the same in the copy.
                out.get_or_insert_with(|| text.to_owned()).replace_range(start..end, &hidden);
                at = end;
                break;
            }
        }
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// All but the last four of so many digits as stars.
fn hide(text: &str, digits: usize) -> String {
    let mut left = digits.saturating_sub(4);
    let hide_one = |c: char| {
        let hides = c.is_ascii_digit() && left > 0;
        left = left.saturating_sub(usize::from(hides));
        if hides { '*' } else { c }
    };
    text.chars().map(hide_one).collect()
}

fn is_digit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(u8::is_ascii_digit)
}

/// Digits from `start` on and where they end; with `grouped`, single blanks or dashes between
/// them are passed over.
fn run_of_digits(bytes: &[u8], start: usize, grouped: bool) -> (Vec<u8>, usize) {
    let (mut digits, mut at) = (Vec::new(), start);
    loop {
        match bytes.get(at) {
            Some(digit) if digit.is_ascii_digit() => digits.push(digit.saturating_sub(b'0')),
            Some(b' ' | b'-') if grouped && is_digit(bytes, at.saturating_add(1)) => {}
            _other => return (digits, at),
        }
        at = at.saturating_add(1);
    }
}

/// Of an issuer's range and length, and with the check digit that it must have.
fn is_card_number(digits: &[u8]) -> bool {
    let lead = |count: usize| {
        let lead = digits.get(..count).unwrap_or_default();
        lead.iter().fold(0_u32, |n, d| n.saturating_mul(10).saturating_add(u32::from(*d)))
    };
    let is_issued = match (digits.len(), lead(2), lead(4)) {
        (13 | 16 | 19, 40..=49, _) => true,
        (16, 51..=55, _) | (16, _, 2_221..=2_720) => true,
        (15, 34 | 37, _) => true,
        (14, 36 | 38 | 39, _) | (14, _, 3_000..=3_059) => true,
        (16..=19, 62 | 64 | 65, _) | (16..=19, _, 6_011) => true,
        (16, _, 3_528..=3_589) => true,
        _other => false,
    };
    is_issued && luhn(digits)
}

fn luhn(digits: &[u8]) -> bool {
    let sum = digits.iter().rev().enumerate().fold(0_u32, |sum, (at, digit)| {
        let digit = u32::from(*digit);
        let doubled = if at % 2 == 1 { digit.saturating_mul(2) } else { digit };
        sum.saturating_add(if doubled > 9 { doubled.saturating_sub(9) } else { doubled })
    });
    sum % 10 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_numbers_are_masked() {
        for (text, want) in [
            ("4111111111111111", "************1111"),
            ("card 4111 1111-1111 1111, thanks", "card **** ****-**** 1111, thanks"),
            ("é 378282246310005", "é ***********0005"),
            ("5555555555554444/30569309025904", "************4444/**********5904"),
            ("2026-11-18 4111111111111111", "2026-11-18 ************1111"),
        ] {
            assert_eq!(masked(text), want);
        }
        // No check digit, no issuer, too long, too short, and digits of an account.
        for text in [
            "4111111111111112",
            "9111111111111111",
            "41111111111111111111",
            "411111111111",
            "DE02120300000000202051",
            "2026-11-19 12:00:00",
            "",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
