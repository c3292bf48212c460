//! What a camt statement says that its entries come to, credits and debits together, and what they
//! came to.

use crate::model::money::Currency;
use crate::model::settlement::{Control, Direction, Entry, Found, Measure, Problem, Severity};
use crate::settlement::Item;
use crate::settlement::amount::unsigned;

/// A figure as it is written, and its line.
pub type Figure = (String, u64);

/// A text as a figure; none where it is empty.
pub fn written(text: &str, line: u64) -> Option<Figure> {
    Some((text.to_owned(), line)).filter(|_| !text.is_empty())
}

/// What a program meant that reckons in binary fractions and wrote all their digits:
/// `66.0000000000001` is less than a millionth of a minor unit off.
pub fn nearest(text: &str, currency: Currency) -> Option<i64> {
    let (whole, decimals) = text.split_once('.')?;
    let (own, noise) = decimals.split_at_checked(usize::try_from(currency.exponent()).ok()?)?;
    let below = unsigned(&format!("{whole}.{own}"), b'.', currency).ok()?;
    let is_number = noise.bytes().all(|byte| byte.is_ascii_digit());
    match noise.get(..6)? {
        "000000" if is_number => Some(below),
        "999999" if is_number => below.checked_add(1),
        _other => None,
    }
}

/// A figure of a summary: whether it has a minus, and what it is without its sign. Without an
/// entry, and so without a currency, it can only be nil.
pub fn figure(text: &str, currency: Option<Currency>) -> Option<(bool, i128)> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let minor = match currency {
        Some(currency) => {
            let exact = unsigned(digits, b'.', currency).ok();
            exact.or_else(|| nearest(digits, currency))?
        }
        None => digits.bytes().all(|byte| byte == b'0' || byte == b'.').then_some(0)?,
    };
    Some((text.starts_with('-'), i128::from(minor)))
}

/// How many credits and debits there are, and what they come to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Credits.
    pub credits: i128,
    /// Debits.
    pub debits: i128,
    /// What credits come to.
    pub credit: i128,
    /// What debits come to.
    pub debit: i128,
    /// What entries moved that say of themselves that they undo others (`RvslInd`), signed.
    undone: i128,
}

impl Totals {
    /// One more entry.
    pub fn add(&mut self, entry: &Entry) {
        let (count, sum) = match entry.direction {
            Direction::Credit => (&mut self.credits, &mut self.credit),
            Direction::Debit => (&mut self.debits, &mut self.debit),
        };
        *count = count.saturating_add(1);
        *sum = sum.saturating_add(i128::from(entry.minor));
        if entry.reversal {
            let signed = entry.direction.signed(entry.minor);
            self.undone = self.undone.saturating_add(signed);
        }
    }

    fn gross(&self) -> i128 {
        self.credit.saturating_add(self.debit)
    }

    fn net(&self) -> i128 {
        self.measure(Measure::NetMinor)
    }

    /// The net as one bank reckons it that turns the sign of what undoes another entry.
    fn turned_net(&self) -> i128 {
        self.net().saturating_sub(self.undone.saturating_mul(2))
    }

    /// One of its figures.
    pub fn measure(&self, measure: Measure) -> i128 {
        match measure {
            Measure::Entries => self.credits.saturating_add(self.debits),
            Measure::Credits => self.credits,
            Measure::Debits => self.debits,
            Measure::CreditMinor => self.credit,
            Measure::DebitMinor => self.debit,
            Measure::NetMinor => self.credit.saturating_sub(self.debit),
        }
    }
}

/// `TtlNtries`, or the same of one code: what is said of credits and debits together, as it is
/// written, and where.
#[derive(Debug, Default)]
pub struct Whole {
    sum: Option<Figure>,
    net: Option<Figure>,
    /// Which way the net went.
    way: Option<Direction>,
}

impl Whole {
    /// A leaf below it.
    pub fn leaf(&mut self, leaf: &str, text: &str, line: u64) {
        match leaf {
            "Sum" => self.sum = written(text, line),
            "TtlNetNtry/Amt" | "TtlNetNtryAmt" => self.net = written(text, line),
            "TtlNetNtry/CdtDbtInd" | "CdtDbtInd" => {
                self.way = match text {
                    "CRDT" => Some(Direction::Credit),
                    "DBIT" => Some(Direction::Debit),
                    _other => None,
                };
            }
            _other => {}
        }
    }

    /// Its figures, called `field`, as controls: held against all entries, or the booked ones
    /// (`both`); `severity` says what a difference means.
    pub fn controls(
        &self,
        field: &str,
        both: [&Totals; 2],
        currency: Option<Currency>,
        severity: Severity,
    ) -> impl Iterator<Item = Item> {
        let sum = held((self.sum.as_ref(), format!("{field}/Sum")), currency, severity, |found| {
            sum_against(both, found, severity)
        });
        let net = (self.net.as_ref(), format!("{field}/TtlNetNtry"));
        let net = held(net, currency, severity, |found| self.net_against(both, found, severity));
        sum.into_iter().chain(net)
    }

    fn net_against(
        &self,
        both: [&Totals; 2],
        (is_minus, minor): (bool, i128),
        severity: Severity,
    ) -> Against {
        let [all, _booked] = both;
        let way = if is_minus { Some(Direction::Debit) } else { self.way };
        let (expected, is_signed) = match way {
            Some(Direction::Debit) => (minor.saturating_neg(), true),
            Some(Direction::Credit) => (minor, true),
            None => (minor, false),
        };
        let own = |net: i128| if is_signed { net } else { net.saturating_abs() };
        let is_turned = both.iter().any(|of| own(of.turned_net()) == expected);
        match both.iter().any(|of| own(of.net()) == expected) {
            true => (expected, expected, severity),
            false if is_turned => (expected, own(all.net()), Severity::Warning),
            false => (expected, own(all.net()), severity),
        }
    }
}

/// What is expected, what was found, and what a difference means.
type Against = (i128, i128, Severity);

/// Some banks write the net where the sum stands.
fn sum_against(both: [&Totals; 2], (is_minus, minor): (bool, i128), severity: Severity) -> Against {
    let ([all, _booked], nets) = (both, both.map(Totals::net));
    let is_net = nets.iter().any(|net| net.saturating_abs() == minor);
    let is_sum = is_net || both.iter().any(|of| of.gross() == minor);
    let out = minor.saturating_neg();
    match is_minus {
        // Only a net can have gone out.
        true if nets.contains(&out) => (out, out, severity),
        true => (out, all.net(), severity),
        false if is_sum => (minor, minor, severity),
        false => (minor, all.gross(), severity),
    }
}

/// A figure with its name as a control: `against` holds it against the entries.
pub fn held(
    (written, field): (Option<&Figure>, String),
    currency: Option<Currency>,
    severity: Severity,
    against: impl Fn((bool, i128)) -> Against,
) -> Option<Item> {
    let (text, line) = written?;
    let line = *line;
    let Some(found) = figure(text, currency) else {
        let problem = match currency {
            Some(_) => Problem::error(line, field, "a figure in digits", text.as_str()),
            None => Problem::error(line, field, text.as_str(), "no entry is listed"),
        };
        return Some(Problem { severity, ..problem }.into());
    };
    let (expected, found, severity) = against(found);
    let found = Found::Is(found);
    Some(Control { line, field, expected, found, currency, severity }.into())
}
