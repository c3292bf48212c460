//! What may stand in an error, a log line or stored evidence.
//!
//! Texts of this room are written by us and never quote a body; this is the second line of
//! defence, for the few foreign words that they name (paths, codes, request ids).

/// The longest run of digits that cannot be a card number.
const DIGITS_MAX: usize = 12;

/// Masks what looks like an API key or a card number, and control characters.
pub(super) fn redact(text: &str) -> String {
    let words: Vec<String> = text.split(' ').map(redact_word).collect();
    mask_digits(&words.join(" "))
}

fn redact_word(word: &str) -> String {
    let is_key = ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_org_", "whsec_"]
        .iter()
        .any(|prefix| word.contains(prefix));
    if is_key {
        return "[redacted]".to_owned();
    }
    word.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Masks runs of 13 and more digits, also where single blanks or dashes stand between them.
fn mask_digits(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    let mut digits = 0_usize;
    for c in text.chars() {
        let is_gap =
            matches!(c, ' ' | '-') && digits > 0 && run.ends_with(|l: char| l.is_ascii_digit());
        if c.is_ascii_digit() || is_gap {
            digits = digits.saturating_add(usize::from(c.is_ascii_digit()));
            run.push(c);
            continue;
        }
        flush(&mut out, &mut run, &mut digits);
        out.push(c);
    }
    flush(&mut out, &mut run, &mut digits);
    out
}

fn flush(out: &mut String, run: &mut String, digits: &mut usize) {
    if *digits > DIGITS_MAX {
        out.push_str("[digits]");
        let tail = run.chars().rev().take_while(|c| !c.is_ascii_digit()).count();
        out.extend(std::iter::repeat_n(' ', tail.min(1)));
    } else {
        out.push_str(run);
    }
    run.clear();
    *digits = 0;
}

/// A foreign word that may be shown: a Stripe code, type or request id. Anything else is dropped.
pub(super) fn plain_word(word: &str) -> Option<&str> {
    let is_plain = !word.is_empty()
        && word.len() <= 64
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    is_plain.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_card_numbers_never_show() {
        for (text, shown) in [
            ("GET /v1/charges answered 500", "GET /v1/charges answered 500"),
            ("with sk_live_abc123 sent", "with [redacted] sent"),
            ("Bearer:rk_test_abc", "[redacted]"),
            ("card 4242424242424242 was", "card [digits] was"),
            ("card 4242 4242 4242 4242 was", "card [digits] was"),
            ("card 4242-4242-4242-4242.", "card [digits]."),
            ("at 1700000000 in 250 ms", "at 1700000000 in 250 ms"),
            ("a\u{1b}[31mb\nc", "a?[31mb?c"),
        ] {
            assert_eq!(redact(text), shown, "{text}");
        }
        assert_eq!(plain_word("card_declined"), Some("card_declined"));
        assert_eq!(plain_word("<script>"), None);
    }
}
