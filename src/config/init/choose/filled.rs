//! What rows of a status have in a column, and what that says: which time paid rows have, and
//! whether rows that are said to be on their way are paid already.

use crate::config::init::choose::Choosing;
use crate::config::init::words::{self, Sorted};
use crate::store::inspect::{Beside, CountedBy, Surveyed};
use crate::store::source_table::{Column, TypeClass};
use crate::store::tellers::plain;

/// Fewer rows say nothing of the others.
const ENOUGH: i64 = 3;

/// In percent: of many rows some are odd for reasons of their own.
const NEARLY_ALL: i64 = 90;

/// In percent: a time that fewer paid rows have is not that of their payment.
const HALF: i64 = 50;

/// In percent of the paid rows: what is stuck is few, and where fewer store an intent it is stored
/// before it is paid, as many applications do.
const MANY: i64 = 25;

/// Columns of times that are looked at.
const TIMES: usize = 4;

/// What WooCommerce calls the rows of a table that are orders.
const SHOP_ORDER: &str = "shop_order";

/// What an order is called that is paid and not yet sent, as shops of a language have it.
const PROCESSED: [&str; 20] = [
    "processing",
    "in_bearbeitung",
    "en_cours",
    "en_cours_de_traitement",
    "en_proceso",
    "procesando",
    "in_lavorazione",
    "in_behandeling",
    "em_processamento",
    "processando",
    "in_progress",
    "in_verarbeitung",
    "wird_verarbeitet",
    "en_traitement",
    "en_curso",
    "in_corso",
    "in_elaborazione",
    "in_verwerking",
    "wordt_verwerkt",
    "em_andamento",
];

/// What to do where `from` is left open.
const NAME_STUCK: &str = "name the values of rows that are stuck while the PSP's answer is unknown";

/// How many looked-at rows have something in a column.
#[derive(Debug, Clone, Copy, Default)]
struct Had {
    rows: i64,
    /// Of how many.
    of: i64,
}

impl Had {
    fn is_at_least(self, percent: i64) -> bool {
        self.of > 0 && self.rows.saturating_mul(100) >= self.of.saturating_mul(percent)
    }

    fn is_nearly_all(self) -> bool {
        self.of >= ENOUGH && self.is_at_least(NEARLY_ALL)
    }
}

impl Choosing<'_> {
    /// What to ask of the columns that rows fill when they are paid.
    pub(super) fn filled_questions(&self) -> Vec<Beside> {
        let Some(status) = words::status(self.of, self.answers.status.as_deref()) else {
            return Vec::new();
        };
        let times = self.times_of_payment(self.of).into_iter().take(TIMES);
        let reference = self.reference_column().map(|(column, _)| column);
        let question = |column: &Column| Beside {
            column: column.name.clone(),
            status: status.name.clone(),
            by: CountedBy::NullOrEmpty,
        };
        times.chain(reference).map(question).collect()
    }

    /// How many of the looked-at rows of these statuses have something in a column.
    fn had(&self, column: &Column, is_one: &dyn Fn(&str) -> bool) -> Had {
        let mut had = Had::default();
        for tally in self.seen.tallies.get(&column.name).into_iter().flatten() {
            if tally.status.as_deref().is_some_and(is_one) {
                had.of = had.of.saturating_add(tally.rows);
                let rows = if tally.value.is_some() { tally.rows } else { 0 };
                had.rows = had.rows.saturating_add(rows);
            }
        }
        had
    }

    /// The status of rows that are paid, as it is proposed.
    fn paid_value<'s>(&'s self, sorted: &'s Sorted) -> Option<&'s str> {
        self.answers.succeeded.as_deref().or(sorted.succeeded.as_deref())
    }

    /// Columns that may have the time at which a row was paid, the likeliest first.
    fn times_of_payment<'w>(&self, of: &'w Surveyed) -> Vec<&'w Column> {
        let mut found = words::picks(of, &words::MOVED, words::is_any_time);
        found.retain(|column| self.may_have_end(column, of));
        found
    }

    /// Whether a column that is called as a time of an end may have one: text may be a word or a
    /// day alone, and a whole number a count, so that there the values are to show it.
    fn may_have_end(&self, column: &Column, of: &Surveyed) -> bool {
        let values = self.filled(column);
        let are_times = values.iter().all(|value| value.contains(':'));
        match &column.class {
            TypeClass::Text if plain(&column.name) == words::COMPLETED => {
                are_times && !values.is_empty()
            }
            TypeClass::Text => are_times,
            // What is never NULL is never written.
            TypeClass::Integer => {
                let is_nullable =
                    of.relation.is_view || of.relation.nullable.contains(&column.name);
                is_nullable && self.has_epochs(column)
            }
            _time => true,
        }
    }

    /// The columns that get a time with an outcome that has a value, each with what it says.
    pub(super) fn ends<'w>(
        &self,
        written: &'w Surveyed,
    ) -> Vec<(&'static str, &'static str, &'w Column)> {
        let moved = self.moved(written).map(|column| ("succeeded", "was paid", column));
        let mut failed = words::picks(written, &words::FAILED_AT, words::is_any_time).into_iter();
        let failed = failed.find(|column| self.may_have_end(column, written));
        let failed = failed.filter(|_| self.proposal.choice("failed").is_some());
        let failed = failed.map(|column| ("failed", "failed", column));
        moved.into_iter().chain(failed).collect()
    }

    /// What to say of a column with the reason of a failure: whose words are read there is not
    /// known.
    pub(super) fn failed_why(&self, written: &Surveyed) -> Option<String> {
        let column = *words::called(written, &words::FAILED_WHY, words::is_text).first()?;
        let may_write = !column.generated && column.may_write;
        let has_failed = self.proposal.choice("failed").is_some();
        (may_write && has_failed).then(|| {
            format!(
                "set: `{0}` may say why a row failed; where tieout's own words may stand there \
                 (`declined_final`), add {0} = \"{{reason}}\" to failed of [table.set]",
                column.name
            )
        })
    }

    /// The column of the time at which a row was paid: of several the first that paid rows have.
    pub(super) fn moved<'w>(&self, written: &'w Surveyed) -> Option<&'w Column> {
        let found = self.times_of_payment(written);
        let had = self.status_column().and_then(|status| {
            let sorted = self.sorted(status, &self.values(status));
            let paid = self.paid_value(&sorted)?;
            let attempted = self.proposal.choice("attempted").map(|choice| choice.value.as_str());
            let is_had = |column: &&'w Column| {
                let is_sent = attempted.is_some_and(|it| it.trim_matches('"') == column.name);
                let had = self.had(column, &|status: &str| status == paid);
                !is_sent && had.is_at_least(HALF)
            };
            found.iter().copied().find(is_had)
        });
        had.or_else(|| found.first().copied())
    }

    /// Why rows that say that a call is on its way may be paid already, where they may.
    pub(super) fn may_be_paid(&self, sorted: &Sorted) -> Option<String> {
        self.stored_as_paid(sorted).or_else(|| self.ordered(sorted))
    }

    /// Many rows that store the PSP's reference as paid ones do. Where rows of other statuses do so
    /// as well, it is stored before anything is paid, and says nothing.
    fn stored_as_paid(&self, sorted: &Sorted) -> Option<String> {
        let (column, _) = self.reference_column()?;
        if self.key().contains(&column.name) {
            return None;
        }
        let paid = self.paid_value(sorted)?;
        let is_sent = |status: &str| sorted.processing.iter().any(|value| value == status);
        let of_paid = self.had(column, &|status: &str| status == paid);
        let of_others = self.had(column, &|status: &str| status != paid && !is_sent(status));
        if !of_paid.is_nearly_all() || of_others.is_nearly_all() {
            return None;
        }
        sorted.processing.iter().find_map(|value| {
            let had = self.had(column, &|status: &str| status == value);
            let is_many = had.of.saturating_mul(100) >= of_paid.of.saturating_mul(MANY);
            (is_many && had.is_nearly_all()).then(|| {
                format!(
                    "rows with `{value}` store a payment as `{paid}` ones do: are they paid \
                     already? {} of {} looked-at ones have `{}`; {NAME_STUCK}",
                    had.rows, had.of, column.name
                )
            })
        })
    }

    /// An order is processed once it is paid.
    fn ordered(&self, sorted: &Sorted) -> Option<String> {
        let values = self.values(self.status_column()?);
        let mark = words::mark_of(&values);
        let is_shop_order = || {
            let mut examples = self.seen.examples.values().flatten();
            examples.any(|value| value == SHOP_ORDER)
        };
        let is_order = plain(mark) == "wc"
            || words::is_of_orders(self.of)
            || is_shop_order()
            || words::show_orders(self.of, &values, mark);
        let is_it =
            |value: &&String| PROCESSED.contains(&plain(words::unmarked(value, mark)).as_str());
        let value = sorted.processing.iter().find(is_it).filter(|_| is_order)?;
        Some(format!(
            "`{value}` of an order mostly says that it is paid, and not yet sent: are such rows \
             paid already? {NAME_STUCK}"
        ))
    }
}
