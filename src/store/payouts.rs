//! Payouts of a PSP: what its report says that each is made of, and the bank's booking of it.
//!
//! A payout is no row of the user's. A bank's line that is a payout's belongs to [`TABLE`], under
//! the payout's key, so that every line is still some one thing's.

use crate::store::error::StoreError;

/// What stands for a mapped table where a line is a payout's.
pub const TABLE: &str = "tieout_payouts";

/// The verbs about payouts.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait PayoutDriver {
    /// The payouts that carry one of these texts: as the PSP's id of the payout, or among the
    /// references of the line that says it was paid out. Only such lines that were not taken out.
    async fn payouts_named(&self, texts: &[String]) -> Result<Vec<NamedPayout>, StoreError>;

    /// What a payout is made of; none where its file has no such line.
    async fn payout(&self, key: &PayoutKey) -> Result<Option<Payout>, StoreError>;

    /// The payouts that a file tells of, by id and currency.
    async fn payouts_of_file(&self, file: i64) -> Result<Vec<Payout>, StoreError>;
}

/// Which payout: one file tells of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayoutKey {
    /// The PSP account.
    pub account: String,
    /// The PSP's id of the payout or batch.
    pub payout: String,
    /// Its currency.
    pub currency: String,
    /// The file.
    pub file: i64,
}

impl PayoutKey {
    /// As a composite key: a JSON array.
    pub fn text(&self) -> String {
        serde_json::json!([self.account, self.payout, self.currency, self.file]).to_string()
    }

    /// Reads [`PayoutKey::text`].
    pub fn parse(text: &str) -> Option<Self> {
        let (account, payout, currency, file) = serde_json::from_str(text).ok()?;
        Some(Self { account, payout, currency, file })
    }
}

/// A payout and the text that it was found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPayout {
    /// The text.
    pub text: String,
    /// The payout.
    pub key: PayoutKey,
}

/// What a payout is made of, in minor units, + being money to the merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payout {
    /// Which.
    pub key: PayoutKey,
    /// How many lines it is made of, the payout's own not counted.
    pub lines: i64,
    /// Payments, before fees.
    pub gross: i128,
    /// What the PSP took.
    pub fees: i128,
    /// Refunds, and what came back.
    pub refunds: i128,
    /// Chargebacks, less those that were undone.
    pub chargebacks: i128,
    /// Reserves, corrections and whatever else.
    pub adjustments: i128,
    /// What the PSP says that it paid out, + being money to the merchant; none: it does not say.
    pub paid: Option<i128>,
    /// Bank lines that are this payout's already.
    pub booked: i64,
}

impl Payout {
    /// What all its lines come to.
    pub fn net(&self) -> i128 {
        [self.fees, self.refunds, self.chargebacks, self.adjustments]
            .into_iter()
            .fold(self.gross, i128::saturating_add)
    }

    /// Whether it adds up to what the PSP says that it paid out, where it says so.
    pub fn adds_up(&self) -> bool {
        self.paid.is_none_or(|paid| paid == self.net())
    }
}

/// The sums of one payout as the databases add them up: see [`Sums::payout`].
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::store) struct Sums {
    pub lines: i64,
    pub gross: i128,
    pub fees: i128,
    pub refunds: i128,
    pub chargebacks: i128,
    pub adjustments: i128,
    /// Of the payout's own lines: how many, and what they come to.
    pub payouts: i64,
    pub paid: i128,
    pub booked: i64,
}

impl Sums {
    /// A payout leaves the PSP's balance, and comes to the merchant; some exports write it as
    /// what came.
    pub(in crate::store) fn payout(self, key: PayoutKey) -> Payout {
        let payout = Payout {
            key,
            lines: self.lines,
            gross: self.gross,
            fees: self.fees,
            refunds: self.refunds,
            chargebacks: self.chargebacks,
            adjustments: self.adjustments,
            paid: None,
            booked: self.booked,
        };
        let is_as_it_came = self.paid == payout.net();
        let paid = if is_as_it_came { self.paid } else { self.paid.saturating_neg() };
        Payout { paid: (self.payouts > 0).then_some(paid), ..payout }
    }
}

/// The sums in SQL, in the order of [`Sums`], of lines `l`. An amount that a fee was taken from
/// is told before it and with the fee; `{sum}` makes a sum of what stands in it.
pub(in crate::store) fn sums_sql(sum: impl Fn(&str) -> String) -> String {
    const MOVED: &str =
        "(case l.direction when 'credit' then l.amount_minor else -l.amount_minor end)";
    const FEE: &str =
        "(case when l.fee_currency = l.currency then coalesce(l.fee_minor, 0) else 0 end)";
    let of = |kinds: &str, what: &str| {
        sum(&format!("case when l.kind in ({kinds}) then {what} else 0 end"))
    };
    let before = format!("{MOVED} + {FEE}");
    let taken = format!(
        "case when l.kind = 'fee' then {MOVED} when l.kind = 'payout' then 0 \
         else -{FEE} end"
    );
    [
        "count(*) - count(case when l.kind = 'payout' then 1 end)".to_owned(),
        of("'payment', 'movement'", &before),
        sum(&taken),
        of("'refund', 'return'", &before),
        of("'chargeback', 'chargeback_reversed'", &before),
        of("'adjustment'", &before),
        "count(case when l.kind = 'payout' then 1 end)".to_owned(),
        of("'payout'", MOVED),
    ]
    .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back() {
        let key = PayoutKey {
            account: "stripe, \"live\"".into(),
            payout: "po_1".into(),
            currency: "EUR".into(),
            file: 7,
        };
        assert_eq!(PayoutKey::parse(&key.text()), Some(key));
        assert_eq!(PayoutKey::parse("7"), None);
    }

    #[test]
    fn a_payout_is_money_to_the_merchant_however_the_file_signs_it() {
        let key = || PayoutKey {
            account: "a".into(),
            payout: "p".into(),
            currency: "EUR".into(),
            file: 1,
        };
        let sums = Sums { gross: 1_000, fees: -30, payouts: 1, ..Sums::default() };
        assert_eq!(Sums { paid: -970, ..sums }.payout(key()).paid, Some(970));
        assert_eq!(Sums { paid: 970, ..sums }.payout(key()).paid, Some(970));
        let wrong = Sums { paid: -900, ..sums }.payout(key());
        assert_eq!((wrong.paid, wrong.adds_up()), (Some(900), false));
        assert!(Sums { payouts: 0, ..sums }.payout(key()).adds_up(), "it does not say");
    }
}
