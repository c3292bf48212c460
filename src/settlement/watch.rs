//! What rows of a file that nobody described must not say unseen: titles among them, a status that
//! one row lacks, an id that stands twice, currencies that contradict each other.

use crate::model::money::Currency;
use crate::model::settlement::Problem;
use crate::settlement::amount::Refused;
use crate::settlement::bank_words as words;
use crate::settlement::numeral::Numerals;
use crate::settlement::once::Once;
use crate::settlement::sheet::{Layout, Row};

/// What is said of a row that a title or a status leaves open.
const BOOKED: &str = "rows that were booked; describe this file as a [[format]]";

/// Titles among the rows of a table: no column says what they say of the rows below them.
#[derive(Debug, Default)]
struct Titles {
    is_begun: bool,
    /// The one below which no row stands yet, and whether it was told.
    open: Option<(u64, String, bool)>,
    /// The last one, where it says that the money below it went out.
    out: Option<String>,
}

impl Titles {
    fn add(&mut self, line: u64, text: &str, is_told: bool) {
        self.out = words::titles_what_went_out(text).then(|| text.to_owned());
        // What was not booked may have more words below its title.
        let is_kept = self.open.as_ref().is_some_and(|(_, own, _)| words::titles_unbooked(own));
        let ends = || words::titles_booked(text) || words::says_none(text);
        let is_another = || words::titles_movements(text) && !words::titles_unbooked(text);
        if !is_kept || ends() || is_another() {
            self.open = Some((line, text.to_owned(), is_told));
        }
    }

    fn row(&mut self) -> Option<Problem> {
        let is_between = std::mem::replace(&mut self.is_begun, true);
        let (line, text, is_told) = self.open.take()?;
        if words::titles_unbooked(&text) {
            return Some(Problem::error(line, "row", BOOKED, text));
        }
        let found = format!("{text}: the row was passed over");
        let problem = || Problem::warning(line, "row", "no words between two rows", found);
        (is_between && !is_told).then(problem)
    }
}

/// A column of a status: the first booked row that leaves it blank, and whether a row has a word
/// there for what was booked.
#[derive(Debug)]
struct Status {
    at: usize,
    blank: Option<u64>,
    is_told: bool,
}

/// What is followed over the rows of a file.
#[derive(Debug)]
pub struct Watch {
    titles: Titles,
    statuses: Vec<Status>,
    /// Columns of the id that a transaction has of its own.
    ids: Vec<usize>,
    once: Once,
    shown: Vec<String>,
}

impl Watch {
    /// Of a file that nobody described, whose columns of a status are these.
    pub fn new(layout: &Layout, statuses: &[usize]) -> Self {
        let status = |at: &usize| Status { at: *at, blank: None, is_told: false };
        let names = layout.names.iter().enumerate();
        Self {
            titles: Titles::default(),
            statuses: statuses.iter().map(status).collect(),
            ids: names.filter(|(_, name)| words::is_own_id(name)).map(|(at, _)| at).collect(),
            once: Once::default(),
            shown: layout.shown.clone(),
        }
    }

    fn name(&self, at: usize) -> &str {
        self.shown.get(at).map_or("", String::as_str)
    }

    /// Words among the rows; `is_told`: a problem says that they were passed over.
    pub fn title(&mut self, row: &Row<'_>, is_told: bool) {
        let mut filled = (0..row.width()).map(|at| row.get(at)).filter(|text| !text.is_empty());
        let (Some(text), _, None) = (filled.next(), filled.next(), filled.next()) else { return };
        self.titles.add(row.line, text, is_told);
    }

    /// What a title above a row of the table says of it.
    pub fn below(&mut self) -> Option<Problem> {
        self.titles.row()
    }

    /// The title of what went out, above a row whose amount has no minus.
    pub fn against_title(&self, row: &Row<'_>, at: usize) -> Option<Problem> {
        let title = self.titles.out.as_ref()?;
        let expected = format!("an amount with a minus, below `{title}`; or a balance");
        Some(Problem::error(row.line, self.name(at), expected, row.get(at)))
    }

    /// A booked row that no balance stands beside: what its columns of a status say.
    pub fn status(&mut self, row: &Row<'_>) {
        for own in &mut self.statuses {
            if row.get(own.at).is_empty() {
                own.blank = own.blank.or(Some(row.line));
            } else {
                own.is_told = true;
            }
        }
    }

    /// An id that stands twice, in rows that say the same.
    pub fn twice(&mut self, row: &Row<'_>, raw: &str) -> Option<Problem> {
        let at = self.ids.iter().copied().find(|at| !row.get(*at).is_empty())?;
        // Short ones number other things, and words without a figure stand for none.
        let figures = row.get(at).chars().filter(|c| matches!(c, '1'..='9')).count();
        if row.get(at).len() < 6 || figures == 0 {
            return None;
        }
        let name = self.shown.get(at).map_or("", String::as_str);
        self.once.note(row.line, name, row.get(at), &[raw])
    }

    /// What stays open at the end of the file.
    pub fn end(&self) -> impl Iterator<Item = Problem> {
        self.statuses.iter().filter(|own| own.is_told).filter_map(|own| {
            let name = self.name(own.at);
            let expected = "a word for what was booked, or was not, as the other rows have";
            own.blank.map(|line| Problem::error(line, name, expected, "none"))
        })
    }
}

/// An amount that may be one of thousands: three figures stand behind its only mark, and its
/// currency has fewer. What another row shows of the mark proves nothing of a row that differs.
pub fn may_be_grouped(
    row: &Row<'_>,
    columns: &[usize],
    shown: &[String],
    numerals: Numerals,
    of: Currency,
) -> Option<Problem> {
    let is_open = |at: &&usize| {
        let text = row.get(**at);
        // Of nearly every amount this alone is asked.
        let decimals = text.bytes().rev().position(|byte| byte == numerals.decimal);
        decimals.is_some_and(|decimals| decimals > 2)
            && numerals.read_sure(text, of) == Err(Refused::Ambiguous)
    };
    let at = columns.iter().find(is_open)?;
    let name = shown.get(*at).map_or("", String::as_str);
    Some(Refused::Ambiguous.at(row.line, name, row.get(*at), of))
}

#[cfg(test)]
mod tests {
    use crate::settlement::ledger::{Inspection, State, inspect};

    fn look(text: &str) -> Inspection {
        inspect(Box::new(std::io::Cursor::new(text.as_bytes().to_vec())), None, None).unwrap()
    }

    fn is_refused_at(text: &str, line: u64) -> bool {
        let found = look(text);
        let mut problems = found.sums.problems.iter();
        found.state == State::Quarantined && problems.any(|one| one.line == line)
    }

    const HEAD: &str = "Date;Description;Amount;Currency\n";
    const FIRST: &str = "2026-10-01;a;-12.50;EUR\n2026-10-02;b;1500.00;EUR\n";
    const LAST: &str = "2026-10-03;c;-99.00;EUR\n";

    #[test]
    fn rows_below_a_title_of_what_was_not_booked_are_refused() {
        for title in [
            "Pending transactions",
            "Pending transactions (1)",
            "Declined transactions",
            "Upcoming payments",
            "Vorgemerkte Umsätze",
            ";Vorgemerkte Umsätze;;",
            "Opérations à venir",
            "Opérations en cours",
            "Kommande betalningar",
            "Kommende betalinger",
            "Reserverade belopp",
            "Movimientos retenidos",
            "Movimenti non contabilizzati",
            "Nog te verwerken",
            "Transakcje oczekujące",
            "Blokady",
            "Lançamentos futuros",
            "Foglalások",
            "未入账",
        ] {
            assert!(is_refused_at(&format!("{HEAD}{FIRST}{title}\n{LAST}"), 4), "{title}");
            assert!(is_refused_at(&format!("{HEAD}{title}\n{FIRST}{LAST}"), 2), "{title}");
            // No row stands below it.
            let below = look(&format!("{HEAD}{FIRST}{LAST}{title}\n"));
            assert_eq!(below.state, State::Ok, "{title}");
        }
        let above = format!("Pending transactions\n\n{HEAD}{FIRST}{LAST}");
        assert_eq!(look(&above).state, State::Quarantined);
        let after = format!("{HEAD}Pending transactions\nPosted transactions\n{FIRST}{LAST}");
        assert_eq!(look(&after).state, State::Ok, "none is pending");
    }

    #[test]
    fn other_words_between_two_rows_are_told() {
        let with = |title: &str| look(&format!("{HEAD}{FIRST}{title}\n{LAST}"));
        for title in ["Posted transactions", "Notes", ";Booked;;"] {
            let found = with(title);
            let problems = &found.sums.problems;
            assert_eq!((found.state, problems.len()), (State::Ok, 1), "{title}: {problems:?}");
        }
        assert_eq!(look(&format!("{HEAD}Posted\n{FIRST}{LAST}")).sums.problems_total, 0);
    }

    #[test]
    fn rows_below_a_title_of_what_went_out_have_a_minus() {
        let with = |title: &str, amount: &str| {
            look(&format!("{HEAD}{FIRST}{title}\n2026-10-03;c;{amount};EUR\n")).state
        };
        assert_eq!(with("Withdrawals", "99.00"), State::Quarantined);
        assert_eq!(with("Ausgaben", "99.00"), State::Quarantined);
        assert_eq!(with("Withdrawals", "-99.00"), State::Ok);
        assert_eq!(with("Deposits", "99.00"), State::Ok);
    }

    #[test]
    fn a_name_and_a_title_that_says_none_leave_the_rows_as_they_are() {
        for words in [
            "ACME Holding GmbH",
            "Future Retail Ltd",
            "Programmkino e.V.",
            "Reservation Hotel Krone AG",
            "Umsätze ohne Vormerkungen",
            "Nur gebuchte Umsätze, keine vorgemerkten",
            "Transactions (pending transactions hidden)",
            "Posted transactions only, no pending",
            "Mouvements hors opérations à venir",
            "No pending transactions",
            "Pending transactions (0)",
            "Vorgemerkte Umsätze: keine",
        ] {
            for text in [
                format!("{words}\n{HEAD}{FIRST}{LAST}"),
                format!("{HEAD}{words}\n{FIRST}{LAST}"),
                format!("{HEAD}{FIRST}{words}\n{LAST}"),
            ] {
                assert_eq!(look(&text).state, State::Ok, "{text}");
            }
        }
        let none = format!("{HEAD}Pending transactions\nNone\nAccount activity\n{FIRST}{LAST}");
        assert_eq!(look(&none).state, State::Ok);
    }

    #[test]
    fn a_status_that_others_have_is_not_blank() {
        let rows = |last: &str| {
            let rows = "2026-10-01;a;-12.50;EUR;Completed\n2026-10-02;b;1500.00;EUR;Completed\n";
            let last = format!("2026-10-03;c;-99.00;EUR;{last}\n");
            format!("Date;Description;Amount;Currency;Status\n{rows}{last}")
        };
        assert!(is_refused_at(&rows(""), 4));
        assert_eq!(look(&rows("Completed")).state, State::Ok);
        // Where only what is pending has a word, none is that of what was booked.
        let pending = rows("Pending").replace("Completed", "");
        assert_eq!(look(&pending).state, State::Ok);
    }

    #[test]
    fn a_transaction_stands_once() {
        let rows = |name: &str, id: &str, text: &str| {
            look(&format!(
                "{name};Date;Description;Amount;Currency\nTX0001;2026-10-01;a;-12.50;EUR\n\
                 TX0002;2026-10-02;b;1500.00;EUR\n{id};2026-10-02;{text};1500.00;EUR\n"
            ))
        };
        assert_eq!(rows("Transaction ID", "TX0002", "b").state, State::Quarantined);
        assert_eq!(rows("Transaction ID", "TX0002", "c").state, State::Ok, "a part of it");
        assert_eq!(rows("Transaction ID", "TX0003", "b").state, State::Ok);
        assert_eq!(rows("Reference", "TX0002", "b").state, State::Ok, "a payer's may be");
        for none in ["-", "0000000", "NOTPROVIDED", "12"] {
            let twice = format!("Transaction ID;Date;Description;Amount;Currency\n{none};");
            let row = "2026-10-02;b;-3.50;EUR\n";
            let text = format!("{twice}{row}{none};{row}TX0003;2026-10-03;c;9.00;EUR\n");
            assert_eq!(look(&text).state, State::Ok, "{none}");
        }
    }

    #[test]
    fn three_figures_behind_the_mark_are_open_unless_a_balance_proves_the_row() {
        for (first, last) in [
            ("-12.50", "125.000"),
            ("-12,50", "1,500"),
            ("-1,500.00", "2.500"),
            ("-1.500,00", "2,500"),
        ] {
            let text = format!("{HEAD}2026-10-01;a;{first};EUR\n2026-10-02;b;{last};EUR\n");
            assert!(is_refused_at(&text, 3), "{last}");
        }
        let held = |first: &str, last: &str| {
            let head = "Date;Description;Amount;Balance;Currency\n";
            look(&format!(
                "{head}2026-10-01;a;{first};1000.00;EUR\n2026-10-02;b;-12.50;987.50;EUR\n\
                 2026-10-03;c;{last};1112.50;EUR\n"
            ))
        };
        assert_eq!(held("5.00", "125.000").state, State::Ok);
        assert_eq!(held("1.500", "125.00").state, State::Quarantined, "the oldest row");
        let fine = format!("{HEAD}2026-10-01;a;-1.5;KWD\n2026-10-02;b;125.000;KWD\n");
        assert_eq!(look(&fine).state, State::Ok);
    }
}
