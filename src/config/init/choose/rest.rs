//! Values of a status that are neither processing nor written: further words of an outcome, and
//! what is to be said of those that are ignored.

use crate::config::init::choose::{Choosing, named};
use crate::config::init::{literal, words};
use crate::store::source_table::TypeClass;
use crate::store::tellers::{says_outcome, says_success};

/// What holds of a value that stands nowhere.
const LEFT: &str = "left out of both; a run that meets such a row says so and exits 3";

impl Choosing<'_> {
    /// The value that is written for an outcome, where the status was seen to have it.
    fn target(&self, outcome: &str) -> Option<&str> {
        let mut maps = self.proposal.map.iter();
        let (_, choice) = maps.find(|(name, _)| *name == outcome)?;
        let value = choice.value.trim_matches('"');
        self.proposal.statuses.iter().map(String::as_str).find(|known| *known == value)
    }

    /// Names further words by which the application says that a row was paid: ignored, such a row
    /// would be no paid one to any check. Returns the values that are left.
    pub(super) fn further_success(
        &mut self,
        class: &TypeClass,
        rest: Vec<String>,
        mark: &str,
    ) -> Vec<String> {
        let Some(written) = self.target("succeeded").map(str::to_owned) else { return rest };
        let word = |value: &String| words::unmarked(value, mark).to_owned();
        let (said, left): (Vec<String>, Vec<String>) =
            rest.into_iter().partition(|value| says_success(&word(value)));
        let (finished, paid): (Vec<&String>, Vec<&String>) =
            said.iter().partition(|value| words::says_finished(&word(value)));
        if !finished.is_empty() {
            self.untold(format!(
                "succeeded: beside `{written}`, {} may say that a row was paid, or what became of \
                 it otherwise: where it was paid, name the value in `succeeded` of [[table]], else \
                 in `ignore`: {LEFT}",
                named(&finished)
            ));
        }
        if !paid.is_empty() {
            let items: Vec<String> = paid.iter().map(|value| literal(class, value)).collect();
            let why = format!("by its word such a row was paid, as one with `{written}` was");
            self.put("succeeded", format!("[{}]", items.join(", ")), why);
            self.untold(format!(
                "succeeded: by its word a row with {} was paid, as one with `{written}` was: it \
                 stands in `succeeded` of [[table]], and a run writes `{written}`; name another \
                 with --succeeded where that is wrong",
                named(&paid)
            ));
        }
        left
    }

    /// What is to be said of ignored values: of some a part was paid, or a call may be on its way.
    pub(super) fn remarks(&self, ignored: &[&String], mark: &str) -> Vec<String> {
        let those = |is_one: fn(&str) -> bool| -> Vec<&String> {
            let is_one = |value: &&String| is_one(words::unmarked(value, mark));
            ignored.iter().copied().filter(is_one).collect()
        };
        let mut remarks = Vec::new();
        let part = those(words::says_part_paid);
        if !part.is_empty() {
            remarks.push(format!(
                "by its word a part was paid of a row with {}: no run looks at it",
                named(&part)
            ));
        }
        let unpaid = those(words::says_unpaid);
        if !unpaid.is_empty() {
            remarks.push(format!(
                "by its word a row with {} was not paid: where a call may be on its way for it, \
                 name the value in `from`",
                named(&unpaid)
            ));
        }
        let mut maps = self.proposal.map.iter();
        if let Some((_, written)) = maps.find(|(outcome, _)| *outcome == "retryable") {
            let again = those(|value| says_outcome("retryable", value));
            if !again.is_empty() {
                remarks.push(format!(
                    "by its word a row with {} is to be charged again, as one with `{}` is: a run \
                     hands back by the latter alone, and looks at no row with the former; name \
                     another with --retryable where your worker takes that one",
                    named(&again),
                    written.value.trim_matches('"')
                ));
            }
        }
        // Where none is written, those that may be are named there.
        if let Some(written) = self.target("failed") {
            let failed = those(words::may_be_failed);
            if !failed.is_empty() {
                remarks.push(format!(
                    "by its word a row with {} failed, as one with `{written}` did: where nobody \
                     charges it any more, name the value in `unpaid` as well",
                    named(&failed)
                ));
            }
        }
        remarks
    }
}
