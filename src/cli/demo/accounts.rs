//! Rows whose account or kind is the trouble, and those that need an account of their own: what is
//! decided there would change what becomes of all others.

use std::collections::BTreeMap;

use serde_json::{Map, json};

use crate::cli::demo::cast::{Cast, Change, DAY, DemoRow, HOUR, MINUTE, SUCCEEDED, Seen};
use crate::sandbox::seeds::{DEFAULT_ACCOUNT, Seed, SeedKind};
use crate::sandbox::situations::Situation;

/// The account that hands a row back once and no more, as the table and the PSP call it.
const ONE_RETRY: &str = "one_retry";

/// The account whose payments lost their tags in a deploy.
const BROKEN_TAG: &str = "broken_tag";

/// The account at the PSP whose clock is slow.
const SLOW_CLOCK: &str = "slow_clock";

/// The keys: the file, what is in it, and whose objects it sees at the PSP.
pub const KEYS: [(&str, &str, &str); 3] = [
    ("stripe.key", "sk_test_demo", DEFAULT_ACCOUNT),
    ("one_retry.key", "sk_test_one_retry", ONE_RETRY),
    ("broken_tag.key", "sk_test_broken_tag", BROKEN_TAG),
];

impl Cast {
    /// No PSP can be asked about these, or it is not known which.
    pub(super) fn cannot_be_asked(&mut self) {
        // An import wrote no id: there is nothing to ask by.
        let row = self.row(Seen::Never, 20 * HOUR);
        self.push(DemoRow { external_id: None, ..row }, []);
        // Two rows were sent under one id: money under it could be either's.
        let first = self.row(Seen::Never, 21 * HOUR);
        let second = self.row(Seen::Never, 20 * HOUR);
        let external_id = first.external_id.clone();
        self.push(first, []);
        self.push(DemoRow { external_id, ..second }, []);
        // Payouts to partners, which the adapter cannot look up.
        for index in 0..2 {
            let row = self.row(Seen::Never, Self::spread(2, index));
            let external_id = Some(format!("payout_{}", row.id));
            self.push(DemoRow { kind: "payout", external_id, ..row }, []);
        }
        // Somebody moved two rows to another account: the money may be at either.
        for index in 0..2 {
            let row = self.row(Seen::Once, Self::spread(2, index));
            let provider = Some(ONE_RETRY);
            self.changes.push(Change { minutes_ago: 10, id: row.id, provider, attempted: None });
            self.push(row, []);
        }
    }

    /// What the PSP says excludes itself, or leaves the next step to a person.
    pub(super) fn at_odds(&mut self) {
        // Canceled, and money came in: both cannot be.
        for index in 0..2 {
            let row = self.row(Seen::Never, Self::spread(2, index));
            let mut overlay = Map::new();
            overlay.insert("amount_received".to_owned(), json!(row.amount));
            let object = Seed { overlay, ..Self::tagged(&row).standing(Situation::Canceled) };
            self.push(row, [object]);
        }
        // Canceled as the duplicate of a payment that somebody has to find.
        for index in 0..2 {
            let row = self.row(Seen::Never, Self::spread(2, index));
            let cancellation_reason = Some("duplicate".to_owned());
            let object = Self::tagged(&row).standing(Situation::Canceled);
            self.push(row, [Seed { cancellation_reason, ..object }]);
        }
        // Authorised, and let go by the PSP after its time: a shipped rule ends it.
        let row = self.row(Seen::Once, 16 * HOUR);
        let cancellation_reason = Some("automatic".to_owned());
        let object = Self::tagged(&row).standing(Situation::Canceled);
        self.push(row, [Seed { cancellation_reason, ..object }]);
        // Refunds that wait for the customer's bank details.
        for index in 0..3 {
            let row = self.row(Seen::Never, Self::spread(3, index));
            let id = Some(format!("re_demo{}", row.id));
            let external_id = Some(format!("refund_{}", row.id));
            let row = DemoRow { kind: "refund", external_id, reference: id.clone(), ..row };
            let object = Self::tagged(&row).standing(Situation::RequiresAction);
            self.push(row, [Seed { kind: SeedKind::Refund, id, ..object }]);
        }
    }

    /// Declined and handed back two hours ago; the worker took them, and they are stuck again.
    pub(super) fn given_up(&mut self) {
        let taken_at = self.base.saturating_sub(95 * MINUTE);
        for index in 0..2_i64 {
            let row = self.row(Seen::HandedBack, (5 * HOUR).saturating_add(index * HOUR));
            self.seen.entry(Seen::Once).or_default().push(row.id.to_string());
            let attempted = Some(taken_at);
            self.changes.push(Change { minutes_ago: 95, id: row.id, provider: None, attempted });
            let object = Seed {
                account: ONE_RETRY.to_owned(),
                decline_code: Some("processing_error".to_owned()),
                ..Self::tagged(&row).standing(Situation::Declined)
            };
            self.push(DemoRow { provider: ONE_RETRY, ..row }, [object]);
        }
    }

    /// For an hour no payment carried its tag: rows of that hour look absent.
    pub(super) fn without_tags(&mut self) {
        let before = (0..12_i64).map(|n| (7 * HOUR).saturating_add(n * 30 * MINUTE));
        let after = (0..6_i64).map(|n| (70 * MINUTE).saturating_add(n * 10 * MINUTE));
        for ago in before.chain(after) {
            let row = self.row(Seen::Never, ago);
            let object = Seed { account: BROKEN_TAG.to_owned(), ..Self::tagged(&row) };
            let reference = object.id.clone();
            let row = DemoRow { provider: BROKEN_TAG, status: SUCCEEDED, reference, ..row };
            self.push(row, [object]);
        }
        let deployed = self.base.saturating_sub(204 * MINUTE);
        for n in 0..24_i64 {
            // Of no row's amount.
            let blind = Seed {
                id: Some(format!("pi_blind{n}")),
                account: BROKEN_TAG.to_owned(),
                amount: 77_000_i64.saturating_add(n),
                currency: "eur".to_owned(),
                metadata: BTreeMap::new(),
                ..Seed::default()
            };
            self.objects.push(blind.created_at(deployed.saturating_add(n * 2 * MINUTE)));
        }
        for n in 0..4_i64 {
            let row = self.row(Seen::Twice, (3 * HOUR).saturating_add(n * MINUTE));
            self.push(DemoRow { provider: BROKEN_TAG, ..row }, []);
        }
    }

    /// Where the clocks differ nothing is absent; money that is found is money all the same.
    pub(super) fn by_a_slow_clock(&mut self) {
        for index in 0..3 {
            let row = self.row(Seen::Once, Self::spread(3, index));
            self.push(DemoRow { provider: SLOW_CLOCK, ..row }, []);
        }
        // For more than a week by now: no proof will come by itself.
        for index in 0..2_i64 {
            let row = self.row(Seen::DaysAgo, (9 * DAY).saturating_add(index * HOUR));
            self.push(DemoRow { provider: SLOW_CLOCK, ..row }, []);
        }
        for index in 0..2 {
            let row = self.row(Seen::Never, Self::spread(2, index));
            self.slow.push(Self::tagged(&row));
            self.push(DemoRow { provider: SLOW_CLOCK, ..row }, []);
        }
    }
}
