//! `inputs.csv`: what each account was asked and what it gave, as the run noted it.

use crate::report::cells::Cell;
use crate::report::columns::INPUTS;
use crate::report::facts::{AccountNote, Facts};

/// The lines, by account.
pub fn lines(facts: &Facts) -> Vec<Vec<Cell>> {
    let mut notes: Vec<&AccountNote> = facts.notes.accounts.iter().collect();
    notes.sort_by(|a, b| a.account.cmp(&b.account));
    notes.into_iter().map(line).collect()
}

fn line(note: &AccountNote) -> Vec<Cell> {
    let is_whole = note.stopped.is_none() && note.answered == note.rows;
    let mut cells = vec![
        Cell::text(note.psp.as_deref().unwrap_or(&note.account)),
        Cell::word("api"),
        Cell::text(&note.account),
        Cell::Null, // sha256: an API is no file
        Cell::Null, // bytes
        Cell::int(note.requests),
        Cell::Null, // declared_count
        Cell::int(note.listed),
    ];
    // declared_sum, parsed_sum, opening and closing balance, first and last instant: of files.
    cells.extend([Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null]);
    cells.extend([
        Cell::word(if is_whole { "ok" } else { "incomplete" }),
        Cell::text(&remark(note)),
        Cell::int(note.rows),
        Cell::int(note.answered),
        Cell::int(note.retries),
        Cell::int(note.duration_ms),
    ]);
    // What follows is of files.
    cells.resize(INPUTS.columns.len(), Cell::Null);
    cells
}

fn remark(note: &AccountNote) -> String {
    let stopped = note.stopped.as_ref().map(|why| format!("stopped: {why}"));
    let brake = note.brake.as_ref().map(|why| format!("brake: {why}"));
    let parts: Vec<String> = stopped.into_iter().chain(brake).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_that_did_not_answer_for_every_row_is_incomplete() {
        let state = INPUTS.columns.iter().position(|column| *column == "state").unwrap();
        let whole = AccountNote { rows: 3, answered: 3, ..AccountNote::default() };
        let partly = AccountNote { rows: 3, answered: 2, ..AccountNote::default() };
        let stopped = AccountNote { stopped: Some("401".into()), ..whole.clone() };
        for (note, want) in [(whole, "ok"), (partly, "incomplete"), (stopped, "incomplete")] {
            let cells = line(&note);
            assert_eq!(cells.len(), INPUTS.columns.len());
            assert_eq!(cells[state], Cell::word(want));
        }
    }
}
