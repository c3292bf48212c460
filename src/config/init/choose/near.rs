//! Columns that are not taken for the amount, the currency or the status, and that may be meant by
//! a word of their names; and what about them hinders.

use crate::config::init::choose::amount::names;
use crate::config::init::choose::{Choosing, NAMED};
use crate::config::init::words;
use crate::store::inspect::Surveyed;
use crate::store::source_table::{Column, TypeClass};

impl<'a> Choosing<'a> {
    /// Columns that may be the amount, those last that may be a part of it.
    pub(super) fn near_amounts(&self) -> Vec<&'a Column> {
        let of = self.of;
        let mut near = words::may_be_amounts(of);
        near.retain(|column| !self.has_no_sum(column));
        near.sort_by_key(|column| words::is_part(of, column));
        near.truncate(NAMED);
        near
    }

    /// What to say where no column is taken for the currency.
    pub(super) fn currency_untold(&self) -> String {
        let mut near = words::may_be_currencies(self.of);
        near.truncate(NAMED);
        if near.is_empty() {
            return "no column tells it: name one currency for the table, such as EUR".to_owned();
        }
        let odd = near.iter().find(|column| !words::is_word(&column.class));
        let odd = odd.map_or(String::new(), |column| {
            let such = if words::is_currency_number(column) { ", such as EUR for 978" } else { "" };
            format!(
                "; `{}` is {}, and no code: read a view that has the code as a column{such}",
                column.name, column.type_name
            )
        });
        format!(
            "no column tells it (is it {}?): name it, or one currency for the table, such as \
             EUR{odd}",
            names(near.into_iter())
        )
    }

    /// What to say where a column points at the table that has the currencies.
    pub(super) fn pointed_currency(&self) -> Option<String> {
        let near = words::may_be_currencies(self.of);
        let mut pointers = near.into_iter().filter(|column| !words::is_word(&column.class));
        let (column, parent) =
            pointers.find_map(|column| Some((column, self.parent_of(column)?)))?;
        let is_parent = |one: &&Surveyed| one.name.rsplit('.').next() == Some(parent);
        let code = self.survey.iter().find(is_parent).and_then(words::currency_code);
        let code = code.map_or(String::new(), |code| format!(" (`{}` there)", code.name));
        Some(format!(
            "`{}` points at `{parent}`, where it stands: read a view that has its code{code} as a \
             column, or name one currency for the table, such as EUR",
            column.name
        ))
    }

    /// What to say where no column is taken for the status.
    pub(super) fn status_untold(&self) -> String {
        let near = words::may_be_statuses(self.of);
        if near.is_empty() {
            return "no column looks like a status".to_owned();
        }
        let listed = near.iter().find_map(|column| Some((column, self.parent_of(column)?)));
        let listed = listed.map_or(String::new(), |(column, parent)| {
            format!("; `{parent}` lists what the values of `{}` mean", column.name)
        });
        let bits = near.iter().find(|column| words::has_bits(column));
        let bits = bits.map_or(String::new(), |column| {
            format!("; of `{}` each sum of bits that rows have is a value", column.name)
        });
        format!(
            "no column looks like a status (is it {}?): name it with --status, and what its values \
             say with --processing, --succeeded and --failed{listed}{bits}",
            names(near.into_iter())
        )
    }
}

/// ` (is it `a` or `b`?)` of columns that may be the amount, and what hinders; or nothing.
pub(super) fn asked_amount(near: &[&Column]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let odd = near.iter().find(|column| column.class == TypeClass::Other);
    let odd = odd.map_or(String::new(), |column| {
        format!(
            "; `{}` is {}, and no plain number: read a view that has its number as a numeric \
             column",
            column.name, column.type_name
        )
    });
    let micros = near.iter().find(|column| words::says_micros(&column.name));
    let micros = micros.map_or(String::new(), |column| format!("; {}", millionths(column)));
    format!(" (is it {}?){odd}{micros}", names(near.iter().copied()))
}

/// What to do with an amount in millionths, which are units of no currency.
pub(super) fn millionths(column: &Column) -> String {
    format!(
        "`{0}` has millionths by its name, which are neither minor nor major units: read a view \
         that has {1} / 1000000.0 as its amount, with unit = \"major\"",
        column.name, column.ident
    )
}
