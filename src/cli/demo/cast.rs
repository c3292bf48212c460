//! Who plays in the demo: the rows of a billing team's table and the objects at their PSP, in
//! every situation that the decision table knows.
//!
//! Everything follows from one instant (`base`), so that a second call builds the same PSP again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, json};

use crate::sandbox::faults::{Action, FaultRule, Matches};
use crate::sandbox::seeds::{Seed, SeedKind};
use crate::sandbox::settings::RetryAfter;
use crate::sandbox::situations::Situation;

/// Where the tag sits at the demo's PSP.
pub const TAG_KEY: &str = "tieout_id";

/// The status of rows that were paid.
pub const SUCCEEDED: &str = "succeeded";

/// Minutes after which the demo's rows count as stuck: the default.
const STUCK_AFTER: i64 = 20;

/// Seconds in a minute.
pub(super) const MINUTE: i64 = 60;
/// In an hour.
pub(super) const HOUR: i64 = 3_600;
/// In a day.
pub(super) const DAY: i64 = 86_400;

/// One row of the demo's table.
#[derive(Debug, Clone)]
pub struct DemoRow {
    /// The key.
    pub id: i64,
    /// With `period`, the natural key.
    pub subscription: i64,
    /// The billed month.
    pub period: String,
    /// The account column.
    pub provider: &'static str,
    /// The kind column.
    pub kind: &'static str,
    /// The tag, as the application handed it to the PSP.
    pub external_id: Option<String>,
    /// Minor units.
    pub amount: Option<i64>,
    /// The currency column.
    pub currency: String,
    /// The status column.
    pub status: &'static str,
    /// What the application stored of the PSP's id.
    pub reference: Option<String>,
    /// Unix seconds.
    pub created: i64,
    /// Unix seconds.
    pub attempted: i64,
}

/// In which of the earlier runs a row was seen already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// Eight days ago: it is too old by now.
    DaysAgo,
    /// Two hours ago and later: long enough to have been handed back since.
    HandedBack,
    /// 50 and 17 minutes ago: one miss is in the books.
    Twice,
    /// 17 minutes ago.
    Once,
    /// Never.
    Never,
}

/// What others did to a row after tieout had seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// How many minutes ago.
    pub minutes_ago: i64,
    /// The row's key.
    pub id: i64,
    /// Somebody moved it to this account.
    pub provider: Option<&'static str>,
    /// Its worker took it and sent it again at this Unix second.
    pub attempted: Option<i64>,
}

/// The whole demo.
pub struct Cast {
    /// Now, in Unix seconds, when the demo was first made.
    pub(super) base: i64,
    next_id: i64,
    /// The rows.
    pub rows: Vec<DemoRow>,
    /// The objects at the PSP from the beginning.
    pub objects: Vec<Seed>,
    /// Objects that land only after their rows were handed back.
    pub late: Vec<Seed>,
    /// The objects at the PSP whose clock is slow.
    pub slow: Vec<Seed>,
    /// What others did meanwhile.
    pub changes: Vec<Change>,
    /// Faults of the PSP.
    pub faults: Vec<FaultRule>,
    /// Rows by the runs that saw them.
    pub seen: BTreeMap<Seen, Vec<String>>,
}

impl Cast {
    /// Everyone, as of `base`.
    pub fn at(base: i64) -> Self {
        let mut cast = Self {
            base,
            next_id: 1_000,
            rows: Vec::new(),
            objects: Vec::new(),
            late: Vec::new(),
            slow: Vec::new(),
            changes: Vec::new(),
            faults: Vec::new(),
            seen: BTreeMap::new(),
        };
        cast.bystanders();
        cast.paid();
        cast.declined();
        cast.open_at_the_psp();
        cast.paid_otherwise();
        cast.taken_back();
        cast.claimed_elsewhere();
        cast.absent();
        cast.unclear();
        cast.by_bank();
        cast.cannot_be_asked();
        cast.at_odds();
        cast.given_up();
        cast.without_tags();
        cast.by_a_slow_clock();
        cast
    }

    /// The rows that a run so many minutes ago saw: those that were stuck by then.
    pub fn seen_by(&self, seen: Seen, minutes_ago: i64) -> Vec<String> {
        let ago = minutes_ago.saturating_add(STUCK_AFTER).saturating_mul(MINUTE);
        let stuck_before = self.base.saturating_sub(ago);
        let is_young = |row: &DemoRow| row.attempted >= stuck_before;
        let young: BTreeSet<String> =
            self.rows.iter().filter(|row| is_young(row)).map(|row| row.id.to_string()).collect();
        let ids = self.seen.get(&seen).into_iter().flatten();
        ids.filter(|id| !young.contains(*id)).cloned().collect()
    }

    pub(super) fn row(&mut self, seen: Seen, ago: i64) -> DemoRow {
        self.next_id = self.next_id.saturating_add(1);
        let id = self.next_id;
        let currency = match id % 5 {
            0 => "JPY",
            1 | 2 => "USD",
            _ => "EUR",
        };
        let created = self.base.saturating_sub(ago);
        self.seen.entry(seen).or_default().push(id.to_string());
        DemoRow {
            id,
            subscription: id,
            period: "2026-11".to_owned(),
            provider: "stripe",
            kind: "charge",
            external_id: Some(format!("charge_{id}")),
            amount: Some(900_i64.saturating_add(id.saturating_mul(37) % 9_000)),
            currency: currency.to_owned(),
            status: "processing",
            reference: None,
            created,
            attempted: created.saturating_add(2),
        }
    }

    pub(super) fn tagged(row: &DemoRow) -> Seed {
        let tag = row.external_id.as_deref().unwrap_or_default();
        Seed {
            id: Some(format!("pi_demo{}", row.id)),
            ..Seed::captured(
                TAG_KEY,
                tag,
                row.amount.unwrap_or_default(),
                &row.currency.to_ascii_lowercase(),
            )
        }
        .created_at(row.created.saturating_add(2))
    }

    fn charge(row: &DemoRow) -> Seed {
        Seed { kind: SeedKind::Charge, id: Some(format!("ch_demo{}", row.id)), ..Self::tagged(row) }
    }

    pub(super) fn push(&mut self, row: DemoRow, objects: impl IntoIterator<Item = Seed>) {
        self.objects.extend(objects);
        self.rows.push(row);
    }

    /// Spreads `count` rows over the last day, the youngest half an hour old.
    pub(super) fn spread(count: i64, index: i64) -> i64 {
        let step = (22 * HOUR).checked_div(count.max(1)).unwrap_or(HOUR);
        (40 * MINUTE).saturating_add(index.saturating_mul(step))
    }

    /// Healthy payments around the stuck ones: they show that the tag arrives.
    fn bystanders(&mut self) {
        for index in 0..420_i64 {
            let mut row = self.row(Seen::Never, index.saturating_mul(4 * MINUTE));
            row.status = SUCCEEDED;
            row.reference = Some(format!("pi_demo{}", row.id));
            let object = Self::tagged(&row);
            self.push(row, [object]);
        }
        for index in 0..12_i64 {
            // Some of last week and the week before, for rows that are that old.
            let mut row = self.row(Seen::Never, (7 * DAY).saturating_add(index * 4 * HOUR));
            row.status = SUCCEEDED;
            row.reference = Some(format!("pi_demo{}", row.id));
            let object = Self::tagged(&row);
            self.push(row, [object]);
        }
        if let Some(seen) = self.seen.get_mut(&Seen::Never) {
            seen.clear();
        }
    }

    fn paid(&mut self) {
        for index in 0..150 {
            let row = self.row(Seen::Never, Self::spread(150, index));
            let object = Self::tagged(&row);
            self.push(row, [object]);
        }
        for index in 0..10 {
            let mut row = self.row(Seen::Never, Self::spread(10, index));
            row.reference = Some(format!("pi_demo{}", row.id));
            let object = Self::tagged(&row);
            self.push(row, [object]);
        }
        // A first attempt failed for good, the second was captured: one payment.
        for index in 0..5 {
            let row = self.row(Seen::Never, Self::spread(5, index));
            let dead = Seed {
                id: Some(format!("ch_demo{}a", row.id)),
                decline_code: Some("insufficient_funds".to_owned()),
                ..Self::charge(&row).standing(Situation::Declined)
            };
            let object = Self::tagged(&row);
            self.push(row, [dead, object]);
        }
    }

    fn declined(&mut self) {
        let codes = [
            (Seen::Once, 14, "insufficient_funds"),
            (Seen::Once, 6, "processing_error"),
            (Seen::Once, 4, "frobnicated_by_issuer"),
            (Seen::Never, 5, "try_again_later"),
        ];
        for (seen, count, code) in codes {
            for index in 0..count {
                let row = self.row(seen, Self::spread(count, index));
                let object = Seed {
                    decline_code: Some(code.to_owned()),
                    ..Self::tagged(&row).standing(Situation::Declined)
                };
                self.push(row, [object]);
            }
        }
        for index in 0..8 {
            let row = self.row(Seen::Once, Self::spread(8, index));
            let object = Seed {
                decline_code: Some("expired_card".to_owned()),
                ..Self::charge(&row).standing(Situation::Declined)
            };
            self.push(row, [object]);
        }
    }

    fn open_at_the_psp(&mut self) {
        let situations = [
            (Seen::Never, 12, Situation::Processing),
            (Seen::DaysAgo, 2, Situation::Processing),
            (Seen::Once, 4, Situation::RequiresCapture),
            (Seen::Once, 4, Situation::RequiresAction),
            (Seen::Once, 3, Situation::Canceled),
            (Seen::Once, 6, Situation::RequiresConfirmation),
        ];
        for (seen, count, situation) in situations {
            for index in 0..count {
                let ago = if seen == Seen::DaysAgo {
                    (9 * DAY).saturating_add(index * HOUR)
                } else {
                    Self::spread(count, index)
                };
                let row = self.row(seen, ago);
                let object = Self::tagged(&row).standing(situation);
                self.push(row, [object]);
            }
        }
    }

    fn paid_otherwise(&mut self) {
        for index in 0..3 {
            let row = self.row(Seen::Never, Self::spread(3, index));
            let mut object = Self::tagged(&row);
            object.amount = object.amount.saturating_add(100);
            self.push(row, [object]);
        }
        let row = self.row(Seen::Never, 5 * HOUR);
        let object = Seed { currency: "gbp".to_owned(), ..Self::tagged(&row) };
        self.push(row, [object]);
        for index in 0..2 {
            let row = self.row(Seen::Never, Self::spread(2, index));
            let second = Seed {
                id: Some(format!("pi_demo{}b", row.id)),
                ..Self::tagged(&row).created_at(row.created.saturating_add(36))
            };
            let object = Self::tagged(&row);
            self.push(row, [object, second]);
        }
        let row = self.row(Seen::Never, 6 * HOUR);
        let second = Seed {
            id: Some(format!("pi_demo{}b", row.id)),
            ..Self::tagged(&row).standing(Situation::Processing)
        };
        let object = Self::tagged(&row);
        self.push(row, [object, second]);
        let row = self.row(Seen::Never, 7 * HOUR);
        let object = Self::tagged(&row).created_at(row.created.saturating_sub(8 * DAY));
        let reference = object.id.clone();
        self.push(DemoRow { reference, ..row }, [object]);
    }

    fn taken_back(&mut self) {
        for (count, situation) in [(3, Situation::Refunded), (2, Situation::Disputed)] {
            for index in 0..count {
                let row = self.row(Seen::Never, Self::spread(count, index));
                let object = Self::tagged(&row).standing(situation);
                self.push(row, [object]);
            }
        }
    }

    fn claimed_elsewhere(&mut self) {
        // The row's object already belongs to another row.
        let mut owner = self.row(Seen::Never, 9 * HOUR);
        owner.status = SUCCEEDED;
        let row = self.row(Seen::Never, 8 * HOUR);
        let object = Self::tagged(&row);
        owner.reference = object.id.clone();
        self.push(owner, []);
        self.push(row, [object]);
        // The row stores one reference, and another object captured.
        let row = self.row(Seen::Never, 8 * HOUR);
        let dead = Seed {
            id: Some(format!("ch_demo{}a", row.id)),
            decline_code: Some("insufficient_funds".to_owned()),
            ..Self::charge(&row).standing(Situation::Declined)
        };
        let object = Self::tagged(&row);
        let reference = dead.id.clone();
        self.push(DemoRow { reference, ..row }, [dead, object]);
        // The PSP knows no such reference.
        let row = self.row(Seen::Never, 10 * HOUR);
        let reference = Some("pi_from_another_account".to_owned());
        self.push(DemoRow { reference, ..row }, []);
        // Another row for the same subscription and month was paid.
        let mut first = self.row(Seen::Never, 12 * HOUR);
        first.status = SUCCEEDED;
        first.reference = Some(format!("pi_demo{}", first.id));
        let paid = Self::tagged(&first);
        let second = self.row(Seen::Never, 11 * HOUR);
        let object = Self::tagged(&second);
        let subscription = first.subscription;
        self.push(first, [paid]);
        self.push(DemoRow { subscription, ..second }, [object]);
    }

    fn absent(&mut self) {
        for index in 0..14 {
            let row = self.row(Seen::Twice, Self::spread(14, index));
            self.push(row, []);
        }
        for index in 0..6 {
            let row = self.row(Seen::Once, Self::spread(6, index));
            self.push(row, []);
        }
        for index in 0..8 {
            let row = self.row(Seen::Never, Self::spread(8, index));
            self.push(row, []);
        }
        for index in 0..2 {
            let row = self.row(Seen::DaysAgo, (9 * DAY).saturating_add(index * HOUR));
            self.push(row, []);
        }
        // Absent, with an older row of the same subscription and month still processing.
        let older = self.row(Seen::Never, 14 * HOUR);
        let younger = self.row(Seen::Twice, 13 * HOUR);
        let subscription = older.subscription;
        self.push(older, []);
        self.push(DemoRow { subscription, ..younger }, []);
        // Absent, and money of just this amount nearby belongs to nobody.
        let row = self.row(Seen::Twice, 15 * HOUR);
        let nobodys = Seed { metadata: BTreeMap::new(), ..Self::tagged(&row) };
        self.push(row, [nobodys]);
        // Handed back two hours ago; then the money turned up after all.
        for index in 0..2 {
            let row = self.row(Seen::HandedBack, (5 * HOUR).saturating_add(index * HOUR));
            self.late.push(Self::tagged(&row));
            self.push(row, []);
        }
    }

    /// Debits that only the bank's files tell of.
    fn by_bank(&mut self) {
        for index in 0..12_i64 {
            let row = self.row(Seen::Never, (30 * HOUR).saturating_add(index * HOUR));
            let (provider, currency) = ("bank", "EUR".to_owned());
            self.push(DemoRow { provider, currency, ..row }, []);
        }
    }

    fn unclear(&mut self) {
        for index in 0..2 {
            let mut row = self.row(Seen::Never, Self::spread(2, index));
            row.provider = "stripe_uk";
            self.push(row, []);
        }
        let mut row = self.row(Seen::Never, 3 * HOUR);
        row.currency = "EURO".to_owned();
        self.push(row, []);
        let mut row = self.row(Seen::Never, 4 * HOUR);
        row.amount = None;
        self.push(row, []);
        // The tag arrived in capitals.
        let row = self.row(Seen::Never, 16 * HOUR);
        let mut object = Self::tagged(&row);
        object.metadata = BTreeMap::from([(TAG_KEY.to_owned(), format!("CHARGE_{}", row.id))]);
        self.push(row, [object]);
        // A status that this version does not know.
        let row = self.row(Seen::Never, 17 * HOUR);
        let mut overlay = Map::new();
        overlay.insert("status".to_owned(), json!("requires_moonlight"));
        let object = Seed { overlay, ..Self::tagged(&row).standing(Situation::RequiresAction) };
        self.push(row, [object]);
        // The PSP answers 500 for this one, however often it is asked.
        let row = self.row(Seen::Never, 18 * HOUR);
        let reference = format!("pi_broken{}", row.id);
        self.faults.push(FaultRule {
            matches: Matches { object_id: Some(reference.clone()), ..Matches::default() },
            ..FaultRule::always(Action::Status {
                code: 500,
                retry_after: RetryAfter::Absent,
                reason: None,
            })
        });
        self.push(DemoRow { reference: Some(reference), ..row }, []);
    }
}
