//! Reads a file of rows by a [`Table`].
//!
//! Never a guess: a row that does not follow the description is a problem, and the file is
//! quarantined. Only rows without any amount are passed over, each with a warning, where they have
//! the fields of the header: in one that was cut, or has one more, the amount stands elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use chrono::NaiveDate;

use crate::model::money::Currency;
use crate::model::settlement::{
    Balance, Control, EntryStatus, Finality, Found, Line, LineKind, Measure, Problem, Severity,
    StatementEnd, TagKind, Tie,
};
use crate::settlement::Parse;
use crate::settlement::amount::{Refused, minor};
use crate::settlement::balance::{Chain, OfKind};
use crate::settlement::bank_words::{self as words, Deed};
use crate::settlement::doubts::{Doubts, Parts, no_amount, nothing_moved};
use crate::settlement::last_row::{Ends, Last};
use crate::settlement::marks::{Beside, Marks};
use crate::settlement::numeral::{Numerals, day, decimal_of, is_day, is_no_day, order_of};
use crate::settlement::own_signs;
use crate::settlement::sheet::{self, Layout, Out, Report, Row, currency, money, normal, some};
use crate::settlement::table::{
    Amounts, BatchSettings, Column, CurrencyOf, Cut, Dates, Declared, Declares, Table, TagRule,
    TestSettings, TrailerSettings,
};
use crate::settlement::tags::{is_blank_in_mt940, is_cut_out};
use crate::settlement::text::{Source, unreadable};
use crate::settlement::watch::{self, Watch};

/// More batches than any file has.
const BATCHES: usize = 200_000;

/// So many rows of balances and sums are held of a statement.
const STANDS: usize = 100;

/// So many accounts, each in each of its currencies, are followed across a file's statements.
const FOLLOWED: usize = 1_000;

/// So many kinds of rows are counted.
const KINDS: usize = 1_000;

/// Begins to read `source` as `table` says.
pub fn open(table: &Table, mut source: Source) -> Box<dyn Parse> {
    let table = table.clone();
    if let Cut::Fixed(fields) = &table.cut {
        let names: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
        let ranges = fields.iter().map(|(_, range)| range.clone()).collect();
        let layout = layout_of(b'|', 0, names);
        return match Rows::new(table, layout) {
            Ok(rows) => sheet::read_fixed(source, ranges, rows),
            Err(problem) => sheet::refused(problem),
        };
    }
    let Cut::Delimited(delimiter) = table.cut else {
        return sheet::refused(Problem::error(0, "format", "a delimiter", "none"));
    };
    if !table.header {
        let layout = layout_of(delimiter.unwrap_or(b','), table.skip, Vec::new());
        return match Rows::new(table, layout.clone()) {
            Ok(rows) => sheet::read(source, layout.delimiter, rows),
            Err(problem) => sheet::refused(problem),
        };
    }
    let head = match source.head() {
        Ok(head) => String::from_utf8_lossy(head).into_owned(),
        Err(error) => return sheet::refused(unreadable(1, &error)),
    };
    let names = table.needed();
    let accept = |own: &[String]| names.iter().all(|name| own.contains(name));
    let layout = match delimiter {
        Some(delimiter) => sheet::find_by(&head, delimiter, accept),
        None => sheet::find(&head, accept),
    };
    match layout {
        Some(layout) => open_at(table, layout, source),
        None => sheet::refused(no_header(&head, delimiter, &names)),
    }
}

/// No row has all the columns: what the one lacks that has most of them, each with the name that is
/// nearest to it.
fn no_header(head: &str, delimiter: Option<u8>, names: &[String]) -> Problem {
    let known = |own: &[String]| names.iter().filter(|name| own.contains(*name)).count();
    let find = |least: usize| {
        let accept = |own: &[String]| known(own) >= least;
        match delimiter {
            Some(delimiter) => sheet::find_by(head, delimiter, accept),
            None => sheet::find(head, accept),
        }
    };
    let most = (1..names.len()).rev().find_map(find);
    let Some(layout) = most.filter(|layout| known(&layout.names).saturating_mul(2) >= names.len())
    else {
        let expected = format!("the columns {}", names.join(", "));
        return Problem::error(1, "header row", expected, first_row(head));
    };
    let mut lacks: Vec<&String> =
        names.iter().filter(|name| !layout.names.contains(*name)).collect();
    lacks.dedup();
    let near = lacks.iter().filter_map(|name| Some(format!("`{}`", layout.near(name)?)));
    let near = near.collect::<Vec<_>>().join(", ");
    let near = if near.is_empty() { String::new() } else { format!("{near} is near to it, in ") };
    let lacks = lacks.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let found = format!("none; {near}{}", layout.shown.join(" | "));
    Problem::error(1, "header row", format!("a column {lacks}"), found)
}

/// Begins to read rows below a header row that was found.
pub fn open_at(table: Table, layout: Layout, mut source: Source) -> Box<dyn Parse> {
    let above = match source.head() {
        Ok(head) => {
            let head = String::from_utf8_lossy(head);
            row_above(&table, &layout, &head).or_else(|| title_above(&table, &layout, &head))
        }
        Err(error) => return sheet::refused(unreadable(1, &error)),
    };
    if let Some(problem) = above {
        return sheet::refused(problem);
    }
    let cut = Severity::Warning;
    sheet::read_layout(source, layout, cut, |layout| Rows::new(table, layout))
}

/// Begins to read rows that have no header row, and the columns of `layout`.
pub fn open_bare(table: Table, layout: Layout, source: Source) -> Box<dyn Parse> {
    let delimiter = layout.delimiter;
    match Rows::new(table, layout) {
        Ok(rows) => sheet::read(source, delimiter, rows),
        Err(problem) => sheet::refused(problem),
    }
}

/// A row of the table above its header row, where none is read: its day and its amount stand where
/// those of the others do.
fn row_above(table: &Table, layout: &Layout, head: &str) -> Option<Problem> {
    let amounts = match &table.amounts {
        Amounts::Signed(amount) | Amounts::Flagged(amount, ..) => vec![amount],
        Amounts::TwoSided(debit, credit) => vec![debit, credit],
    };
    let date = place(layout, table.date.as_ref()?).ok()?;
    let is_date = |text: &String| match &table.dates {
        Dates::Any(_) => is_day(text),
        dates @ Dates::Pattern(_) => dates.read(text).is_some(),
    };
    let is_amount = |text: &String| {
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        letters <= 3 && text.contains(|c: char| c.is_ascii_digit())
    };
    let mut rows = sheet::rows_of(head, layout.delimiter, layout.above).into_iter();
    let row = rows.find(|row| {
        let mut amounts = amounts.iter().filter_map(|column| place(layout, column).ok());
        row.get(date).is_some_and(is_date) && amounts.any(|at| row.get(at).is_some_and(is_amount))
    })?;
    let is_of = |line: &str| row.iter().all(|field| line.contains(field.as_str()));
    let line = (1_u64..).zip(head.lines()).find(|(_, line)| is_of(line));
    let (line, _) = line.unwrap_or((1, ""));
    let expected = "above all rows of the table";
    Some(Problem::error(line, "header row", expected, format!("below {}", row.join(" | "))))
}

/// A title right above the table of what was not booked.
fn title_above(table: &Table, layout: &Layout, head: &str) -> Option<Problem> {
    let rows = sheet::rows_of(head, layout.delimiter, layout.above);
    let mut filled = rows.last()?.iter().filter(|text| !text.is_empty());
    let title = filled.next().filter(|_| filled.next().is_none())?;
    let is_such = table.recognised && !title.contains(':') && words::titles_unbooked(title);
    let line = (1_u64..).zip(head.lines()).find(|(_, line)| line.contains(title.as_str()));
    let expected = "a table of what was booked; describe this file as a [[format]]";
    let line = line.map_or(1, |(line, _)| line);
    is_such.then(|| Problem::error(line, "header row", expected, format!("below {title}")))
}

fn first_row(head: &str) -> String {
    let row = head.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    row.chars().take(200).collect()
}

fn layout_of(delimiter: u8, above: usize, shown: Vec<String>) -> Layout {
    let names = shown.iter().map(|name| normal(name)).collect();
    Layout { delimiter, above, names, shown }
}

impl Table {
    /// The names that the header row must have.
    fn needed(&self) -> Vec<String> {
        let mut columns: Vec<&Column> = match &self.amounts {
            Amounts::Signed(amount) => vec![amount],
            Amounts::Flagged(amount, flag, _, _) => vec![amount, flag],
            Amounts::TwoSided(debit, credit) => vec![debit, credit],
        };
        let optional =
            [&self.date, &self.value_date, &self.balance, &self.account, &self.psp_reference];
        columns.extend(optional.into_iter().flatten());
        columns.extend([&self.kind, &self.gross, &self.fee].into_iter().flatten());
        if let CurrencyOf::Column(column) = &self.currency {
            columns.push(column);
        }
        columns.extend(self.tags.iter().map(|tag| &tag.column));
        columns.extend(self.ignore.iter().chain(&self.booked).map(|test| &test.column));
        let names = columns.into_iter().filter_map(|column| match column {
            Column::Name(name) => Some(normal(name)),
            Column::Number(_) => None,
        });
        names.collect()
    }
}

/// A test with its column found.
struct Test {
    at: usize,
    is: Vec<String>,
}

impl Test {
    fn of(layout: &Layout, test: &TestSettings) -> Result<Self, Problem> {
        Ok(Self { at: place(layout, &test.column)?, is: test.is.clone() })
    }

    fn all(layout: &Layout, tests: &[TestSettings]) -> Result<Vec<Self>, Problem> {
        tests.iter().map(|test| Self::of(layout, test)).collect()
    }

    fn holds(&self, row: &Row<'_>) -> bool {
        let value = row.get(self.at);
        self.is.iter().any(|known| known.eq_ignore_ascii_case(value))
    }
}

fn place(layout: &Layout, column: &Column) -> Result<usize, Problem> {
    let name = match column {
        Column::Number(number) => return Ok(number.saturating_sub(1)),
        Column::Name(name) => name,
    };
    layout.need(&normal(name)).map_err(|problem| {
        // As the description writes it, and not as it is compared.
        let is_none = layout.column(&[&normal(name)]).is_none();
        let field = if is_none { name.clone() } else { problem.field };
        Problem { field, ..problem }
    })
}

/// The column of batches, and what tells their payouts.
fn batch_of(table: &Table, layout: &Layout) -> Result<Option<(usize, Option<Test>)>, Problem> {
    let Some(BatchSettings { column, payout }) = &table.batch else { return Ok(None) };
    let payout = payout.as_ref().map(|test| Test::of(layout, test)).transpose()?;
    Ok(Some((place(layout, column)?, payout)))
}

/// The columns of the amount, found.
enum AmountAt {
    Signed(usize),
    Flagged(usize, usize),
    TwoSided(usize, usize),
}

struct Places {
    amount: AmountAt,
    currency: Option<usize>,
    date: Option<usize>,
    value_date: Option<usize>,
    balance: Option<usize>,
    account: Option<usize>,
    psp_reference: Option<usize>,
    kind: Option<usize>,
    gross: Option<usize>,
    fee: Option<usize>,
    tags: Vec<usize>,
    statuses: Vec<usize>,
    beside: Vec<usize>,
    kinds: Vec<usize>,
    agree: Vec<usize>,
}

impl Places {
    /// The columns of the amount.
    fn amounts(&self) -> [usize; 2] {
        match self.amount {
            AmountAt::Signed(at) | AmountAt::Flagged(at, _) => [at, at],
            AmountAt::TwoSided(debit, credit) => [debit, credit],
        }
    }

    /// Whether a column is that of an amount, or of the balance.
    fn holds(&self, at: usize) -> bool {
        let is_amount = match self.amount {
            AmountAt::Signed(amount) | AmountAt::Flagged(amount, _) => amount == at,
            AmountAt::TwoSided(debit, credit) => debit == at || credit == at,
        };
        is_amount || self.balance == Some(at)
    }

    fn new(table: &Table, layout: &Layout) -> Result<Self, Problem> {
        let at = |column: &Column| place(layout, column);
        let maybe = |column: &Option<Column>| column.as_ref().map(at).transpose();
        let amount = match &table.amounts {
            Amounts::Signed(amount) => AmountAt::Signed(at(amount)?),
            Amounts::Flagged(amount, flag, _, _) => AmountAt::Flagged(at(amount)?, at(flag)?),
            Amounts::TwoSided(debit, credit) => AmountAt::TwoSided(at(debit)?, at(credit)?),
        };
        Ok(Self {
            amount,
            currency: match &table.currency {
                CurrencyOf::Column(column) => Some(at(column)?),
                CurrencyOf::All(_) => None,
            },
            date: maybe(&table.date)?,
            value_date: maybe(&table.value_date)?,
            balance: maybe(&table.balance)?,
            account: maybe(&table.account)?,
            psp_reference: maybe(&table.psp_reference)?,
            kind: maybe(&table.kind)?,
            gross: maybe(&table.gross)?,
            fee: maybe(&table.fee)?,
            tags: table.tags.iter().map(|tag| at(&tag.column)).collect::<Result<_, _>>()?,
            statuses: table.status.iter().map(at).collect::<Result<_, _>>()?,
            beside: table.beside.iter().map(at).collect::<Result<_, _>>()?,
            kinds: table.kinds.iter().map(at).collect::<Result<_, _>>()?,
            agree: table.agree.iter().map(at).collect::<Result<_, _>>()?,
        })
    }
}

/// What a batch adds up to.
#[derive(Default)]
struct Sum {
    items: i128,
    paid: i128,
    paid_out: bool,
    line: u64,
}

/// What an account holds of one currency, over all of a file: where rows of several currencies
/// stand in turns, each few of them are a statement, and the first of each proves nothing there.
struct Followed {
    chain: Chain,
    statements: u64,
    /// One of the statements has no two balances.
    unproven: bool,
    /// What the account held before all of it is told.
    opened: bool,
    /// The first and the last row beside which words say that it was not booked, or came back,
    /// and a balance that may prove otherwise.
    excused: [Option<Problem>; 2],
}

/// What a row says of itself.
struct Said {
    status: EntryStatus,
    /// The column that says that it was not booked, or came back, beside a balance that may prove
    /// otherwise.
    excused: Option<usize>,
}

/// A row that says what all above it come to.
struct TotalRow {
    controls: Vec<Control>,
    line: u64,
    text: String,
}

/// What a row moved.
struct Moved {
    of: Currency,
    minor: i64,
    status: EntryStatus,
    /// What of that is open, beside a balance that may prove otherwise.
    open: Option<Problem>,
}

impl Said {
    const fn plainly(status: EntryStatus) -> Self {
        Self { status, excused: None }
    }

    fn is_booked(&self) -> bool {
        self.status == EntryStatus::Booked
    }
}

/// Rows of a statement that tell a balance or a sum. They are passed over where what moved is what
/// lies between the two balances.
#[derive(Default)]
struct Stands {
    before: Option<Balance>,
    after: Option<Balance>,
    /// One end is told twice, or there are too many rows.
    unclear: bool,
    /// One does not stand among debits, without a minus.
    signed: bool,
    /// What moved.
    net: i128,
    /// Where they stand, what they say, and whether that is nil: of money it would be none.
    rows: Vec<(u64, String, bool)>,
}

impl Stands {
    fn add(&mut self, balance: Balance, text: String) {
        let slot = match words::is_before(&text) {
            Some(true) => Some(&mut self.before),
            Some(false) => Some(&mut self.after),
            None => None,
        };
        if let Some(slot) = slot {
            self.unclear |= slot.replace(balance).is_some();
        }
        if self.rows.len() < STANDS {
            self.rows.push((balance.line, text, balance.minor == 0));
        } else {
            self.unclear = true;
        }
    }

    /// The two balances, where they prove what moved.
    fn proven(&self) -> Option<(Balance, Balance)> {
        let (before, after) = self.before.zip(self.after).filter(|_| !self.unclear)?;
        if self.is_between(before, after) {
            return Some((before, after));
        }
        // Some write all balances where debits stand, whichever way the account is.
        let turn = |own: Balance| Balance { minor: own.minor.saturating_neg(), ..own };
        let (before, after) = (turn(before), turn(after));
        (!self.signed && self.is_between(before, after)).then_some((before, after))
    }

    /// Whether what moved is what lies between two balances.
    fn is_between(&self, before: Balance, after: Balance) -> bool {
        let moved = i128::from(after.minor).saturating_sub(i128::from(before.minor));
        moved != 0 && moved == self.net
    }
}

struct Rows {
    places: Places,
    ignore: Vec<Test>,
    booked: Option<Test>,
    batch: Option<(usize, Option<Test>)>,
    sums: BTreeMap<(String, Currency), Sum>,
    open: Option<(String, Currency)>,
    chain: Option<Chain>,
    followed: BTreeMap<(String, Currency), Followed>,
    from: Option<NaiveDate>,
    to: Option<NaiveDate>,
    skip: usize,
    /// The most fields that a row has, and one of those that are ignored or of the trailer, too.
    widest: usize,
    widest_of_all: usize,
    /// The title of another table, of what was not booked.
    further: Option<u64>,
    /// Of a column of debits: some have a minus, and some have none.
    debits: [bool; 2],
    /// The same of marks of direction.
    marks: Marks,
    trailer: bool,
    negative: bool,
    positive: bool,
    proven: bool,
    /// Whether any amount carries a sign: where none does, nothing says that one would.
    has_sign: bool,
    /// The file is of a bank that is known to write a minus before all that went out, and no row
    /// shows otherwise.
    own_signs: bool,
    /// Columns of kinds that may say which way money went.
    ways: Vec<usize>,
    /// A row of a chain that is not followed, without a sign and in no equation.
    unsigned: Option<OfKind>,
    /// Columns that may say that a row was not booked, in other words than a status.
    flags: Vec<usize>,
    /// Columns whose words may say within them that a row was not booked, those of a bank's own
    /// words among the texts, and those of the currency of the balance.
    asks: Vec<usize>,
    kind_texts: Vec<usize>,
    held_codes: Vec<usize>,
    /// What the account held before each row, where its balance is what it held after.
    held_before: Option<usize>,
    /// Columns of what was paid in another currency.
    originals: Vec<usize>,
    watch: Option<Watch>,
    /// How many rows are of a kind, by its hash.
    kinds_seen: HashMap<u64, usize>,
    fees: bool,
    /// Rows with a fee, of chains that are not followed: in equations of balances, and in none.
    fee_rows: (u64, u64),
    /// Columns of what may have been taken besides, which only balances can tell.
    besides: Vec<usize>,
    /// Columns of what was taken besides, and of what both come to.
    taken: Vec<usize>,
    totals: Vec<usize>,
    /// Columns that name the other side.
    sides: Vec<usize>,
    /// Columns of what a payment to many was made of, of currencies, and of days.
    part_columns: Vec<usize>,
    codes: Vec<usize>,
    days: Vec<usize>,
    parts: Parts,
    /// Where the row before names balances whose values stand below their names.
    heads: Vec<(usize, Declares)>,
    /// The first row whose booking date is that of another column, for a balance may prove it.
    undated: Option<Problem>,
    /// Rows so far; whether one was not booked, and whether they have several currencies.
    told: u64,
    unbooked: bool,
    several: bool,
    /// The first row where one of these is another amount.
    total: Option<Problem>,
    /// A title among rows of one currency that says another one, until a row stands below it.
    titled: Option<Problem>,
    /// Rows that say what all above them come to: how many, and what the first of them says.
    total_rows: u64,
    total_said: Option<TotalRow>,
    /// The first row whose day could be two.
    two_days: Option<Problem>,
    stands: Stands,
    /// What all debits and all credits come to, and the line of a row that says just that.
    side_sums: BTreeMap<Currency, (i128, i128)>,
    summed: Option<u64>,
    /// The first row that ends early, for balances beside the table may prove it.
    short: Option<Problem>,
    /// Balances of rows without an amount, and whether they are of the beginning.
    told_ends: Vec<(bool, Balance)>,
    /// How many statements began, and whether all rows were read.
    begun: u64,
    is_over: bool,
    ends: Ends,
    doubts: Doubts,
    layout: Layout,
    table: Table,
}

/// The columns of a file that nobody described whose names are such.
fn named(table: &Table, layout: &Layout, is: fn(&str) -> bool) -> Vec<usize> {
    let names = layout.names.iter().enumerate().filter(|_| table.recognised);
    names.filter(|(_, name)| is(name.as_str())).map(|(at, _)| at).collect()
}

/// The column of what the account held before each row of a file that nobody described, where it
/// names what it held after by that name's pair.
fn held_before(table: &Table, layout: &Layout, balance: Option<usize>) -> Option<usize> {
    let after = layout.names.get(balance.filter(|_| table.recognised)?)?;
    let (before, _) = words::BEFORE_AND_AFTER.iter().find(|(_, own)| own == after)?;
    layout.names.iter().position(|name| name == before)
}

/// Instead of the hash of a kind, of a row that has none.
const NO_KIND: u64 = 0;

impl Rows {
    fn new(table: Table, layout: Layout) -> Result<Self, Problem> {
        let named = |is| named(&table, &layout, is);
        let places = Places::new(&table, &layout)?;
        let watch = table.recognised.then(|| Watch::new(&layout, &places.statuses));
        let taken = named(words::is_fee).into_iter().filter(|at| !places.holds(*at)).collect();
        Ok(Self {
            held_before: held_before(&table, &layout, places.balance),
            places,
            booked: table.booked.as_ref().map(|test| Test::of(&layout, test)).transpose()?,
            ignore: Test::all(&layout, &table.ignore)?,
            batch: batch_of(&table, &layout)?,
            sums: BTreeMap::new(),
            open: None,
            chain: None,
            followed: BTreeMap::new(),
            from: None,
            to: None,
            skip: if table.header { 0 } else { table.skip },
            widest: 0,
            widest_of_all: 0,
            further: None,
            debits: [false; 2],
            marks: Marks::default(),
            trailer: false,
            negative: false,
            positive: false,
            proven: false,
            has_sign: false,
            own_signs: table.recognised && !table.inverted && own_signs::are_known(&layout.names),
            ways: named(words::is_kind),
            unsigned: None,
            flags: named(words::is_flag),
            asks: named(words::may_ask),
            kind_texts: named(words::is_kind_text),
            held_codes: named(words::is_code_of_balance),
            originals: named(words::is_original_amount),
            watch,
            kinds_seen: HashMap::new(),
            fees: false,
            fee_rows: (0, 0),
            besides: named(words::may_be_besides),
            taken,
            totals: named(words::is_total),
            sides: named(words::is_other_side),
            part_columns: named(words::is_part),
            codes: named(words::is_code),
            days: named(words::is_date),
            parts: Parts::default(),
            heads: Vec::new(),
            undated: None,
            titled: None,
            total_rows: 0,
            total_said: None,
            told: 0,
            unbooked: false,
            several: false,
            total: None,
            two_days: None,
            stands: Stands::default(),
            side_sums: BTreeMap::new(),
            summed: None,
            short: None,
            told_ends: Vec::new(),
            begun: 0,
            is_over: false,
            ends: Ends::default(),
            doubts: Doubts::default(),
            layout,
            table,
        })
    }

    /// By which settings of its `[[format]]` an amount was read that is none, where somebody
    /// described it.
    fn as_described(&self, refused: Refused) -> String {
        if self.table.recognised || refused == Refused::TooLarge {
            return String::new();
        }
        let Some(Numerals { decimal, grouped }) = self.table.numerals else {
            return " (`unit = \"minor\"` of the [[format]])".to_owned();
        };
        if refused == Refused::Ambiguous {
            return " (say `decimal` in the [[format]], and `grouped` where it is one)".to_owned();
        }
        let decimal = char::from(decimal);
        format!(" (`decimal = \"{decimal}\"` and `grouped = {grouped}` of the [[format]])")
    }

    fn read(&self, row: &Row<'_>, column: &str, text: &str, of: Currency) -> Result<i64, Problem> {
        let read = match self.table.numerals {
            Some(numerals) if self.table.assumes_mark => numerals.read_sure(text, of),
            Some(numerals) => numerals.read(text, of),
            None => signed_minor(text),
        };
        read.map_err(|refused| {
            let problem = refused.at(row.line, column, text, of);
            let expected = format!("{}{}", problem.expected, self.as_described(refused));
            Problem { expected, ..problem }
        })
    }

    /// The signed amount; none where the row has none at all.
    fn amount(&self, row: &Row<'_>, of: Currency) -> Result<i64, Problem> {
        let shown = |at: usize| {
            let name = self.layout.shown.get(at).cloned();
            name.unwrap_or_else(|| format!("column {}", at.saturating_add(1)))
        };
        let signed = match (&self.places.amount, &self.table.amounts) {
            (AmountAt::Flagged(..), Amounts::Flagged(..)) => {
                let (minor, is_debit) = self.flagged(row, of)?;
                Ok(if is_debit { minor.saturating_neg() } else { minor })
            }
            (AmountAt::TwoSided(debit, credit), _) => {
                let side = |at: usize| match row.get(at) {
                    "" => Ok(0),
                    text => self.read(row, &shown(at), text, of),
                };
                let (out, into) = (side(*debit)?, side(*credit)?);
                match (out, into) {
                    (0, into) if into >= 0 => Ok(into),
                    // Some write what went out with a minus besides.
                    (out, 0) => Ok(out.saturating_abs().saturating_neg()),
                    (_, _) => {
                        let name = format!("{} and {}", shown(*debit), shown(*credit));
                        let found = format!("{}, {}", row.get(*debit), row.get(*credit));
                        Err(Problem::error(row.line, name, "an amount in one of the two", found))
                    }
                }
            }
            (AmountAt::Signed(at) | AmountAt::Flagged(at, _), _) => {
                self.read(row, &shown(*at), row.get(*at), of)
            }
        };
        let signed = signed.map(|minor| match self.table.inverted {
            true => minor.saturating_neg(),
            false => minor,
        })?;
        Ok(signed.saturating_sub(self.taken_besides(row, of)?))
    }

    /// The amount as it stands, and whether the mark beside it is one of a debit.
    fn flagged(&self, row: &Row<'_>, of: Currency) -> Result<(i64, bool), Problem> {
        let (AmountAt::Flagged(amount, flag), Amounts::Flagged(_, _, credit, debit)) =
            (&self.places.amount, &self.table.amounts)
        else {
            return Err(no_amount(row.line));
        };
        let minor = self.read(row, &self.name(*amount), row.get(*amount), of)?;
        let value = row.get(*flag);
        let is = |values: &[String]| values.iter().any(|own| own.eq_ignore_ascii_case(value));
        let is_debit = match (is(credit), is(debit)) {
            _any if self.table.recognised => words::is_debit(value),
            (true, false) => Some(false),
            (false, true) => Some(true),
            _neither => None,
        };
        let is_debit = is_debit.ok_or_else(|| {
            let all: Vec<&str> = credit.iter().chain(debit).map(String::as_str).collect();
            let expected = format!("one of {}", all.join(", "));
            Problem::error(row.line, self.name(*flag), expected, value)
        })?;
        Ok((minor, is_debit))
    }

    /// The signed amount of a described file whose marks say which way money went. A minus besides
    /// may be a part of its mark, or turn it round: see [`Marks`].
    fn marked(&mut self, row: &Row<'_>, of: Currency) -> Result<i64, Problem> {
        let (minor, is_debit) = self.flagged(row, of)?;
        let beside = self.beside_mark(row, of);
        let Some(minor) = self.marks.read(minor, is_debit, beside) else {
            return Err(self.against_mark(row));
        };
        Ok(if self.table.inverted { minor.saturating_neg() } else { minor })
    }

    /// What the balance of a row says of the amount beside its mark.
    fn beside_mark(&self, row: &Row<'_>, of: Currency) -> Beside {
        let text = row.maybe(self.places.balance);
        // Of more accounts than are followed, nothing would tell what stays open.
        if text.is_empty() || self.followed.len() >= FOLLOWED {
            return Beside::Nothing;
        }
        let Ok(balance) = self.read(row, "balance", text, of) else { return Beside::Nothing };
        let own = self.followed.get(&(self.account(row), of));
        let moved = own.and_then(|own| own.chain.moved_to(balance));
        let turn = |moved: i128| if self.table.inverted { moved.saturating_neg() } else { moved };
        moved.map_or(Beside::Balance, |moved| Beside::Moved(turn(moved)))
    }

    /// That a sign says another way than the mark beside it, or the same where others do not.
    fn against_mark(&self, row: &Row<'_>) -> Problem {
        let (amount, flag) = match self.places.amount {
            AmountAt::Flagged(amount, flag) => (amount, flag),
            AmountAt::Signed(at) | AmountAt::TwoSided(at, _) => (at, at),
        };
        let expected = "a minus in all debits and in no credit, or in none, or balances that show \
                        what it means";
        let found = format!("{} beside {}", row.get(amount), row.get(flag));
        Problem::error(row.line, self.name(amount), expected, found)
    }

    /// The same of a minus beside a mark that a balance may prove: where it is in no equation, it
    /// is open, unless all others are of one kind.
    fn open_mark(&self, row: &Row<'_>, of: Currency) -> Option<Problem> {
        if self.table.recognised || !matches!(self.places.amount, AmountAt::Flagged(..)) {
            return None;
        }
        let is_minus = self.flagged(row, of).is_ok_and(|(minor, _)| minor < 0);
        is_minus.then(|| self.against_mark(row))
    }

    /// The fee, where it went out besides the amount.
    fn taken_besides(&self, row: &Row<'_>, of: Currency) -> Result<i64, Problem> {
        match row.maybe(self.places.fee) {
            text if self.table.less_fee && !text.is_empty() => {
                self.read(row, "fee", text, of).map(|minor| self.fee(minor))
            }
            _none => Ok(0),
        }
    }

    /// What a fee took, by what its column says.
    fn fee(&self, minor: i64) -> i64 {
        if self.table.fee_signed { minor.saturating_neg() } else { minor }
    }

    /// The signed amount, with what it shows of the file's signs.
    fn noted_amount(&mut self, row: &Row<'_>, of: Currency) -> Result<i64, Problem> {
        let is_marked = matches!(self.places.amount, AmountAt::Flagged(..));
        let minor = match is_marked && !self.table.recognised {
            true => self.marked(row, of)?,
            false => self.amount(row, of)?,
        };
        self.note_debit(row, of)?;
        self.note_sign(row);
        Ok(minor)
    }

    /// Debits of a described file, where a minus tells nothing unless all have one or none has: in
    /// one of the others it takes back what went out.
    fn note_debit(&mut self, row: &Row<'_>, of: Currency) -> Result<(), Problem> {
        let AmountAt::TwoSided(at, _) = self.places.amount else { return Ok(()) };
        let text = row.get(at);
        if self.table.recognised || text.is_empty() {
            return Ok(());
        }
        let name = self.name(at);
        let minor = self.read(row, &name, text, of)?;
        self.debits[0] |= minor < 0;
        self.debits[1] |= minor > 0;
        if self.debits == [true, true] {
            let expected = "debits that all have a minus, or none of them";
            return Err(Problem::error(row.line, name, expected, text));
        }
        Ok(())
    }

    /// That no row of a described file reaches one of its columns: a number that is none of its
    /// columns' would pass every row over, leave all of them pending, or find no reference.
    fn out_of_reach(&self, line: u64, out: &mut Out) {
        let amounts = match self.places.amount {
            AmountAt::Signed(at) => [Some(at), None],
            AmountAt::Flagged(at, flag) => [Some(at), Some(flag)],
            AmountAt::TwoSided(debit, credit) => [Some(debit), Some(credit)],
        };
        let Places { date, value_date, currency, balance, account, .. } = self.places;
        let Places { psp_reference, kind, gross, fee, .. } = self.places;
        let beside =
            [date, value_date, currency, balance, account, psp_reference, kind, gross, fee];
        let tests = self.booked.iter().map(|test| test.at);
        let batch = self.batch.iter().flat_map(|(at, payout)| {
            [Some(*at), payout.as_ref().map(|test| test.at)].into_iter().flatten()
        });
        let columns = amounts.into_iter().chain(beside).flatten();
        let columns = columns.chain(self.places.tags.iter().copied()).chain(tests).chain(batch);
        let is_beyond = |at: &usize| self.widest > 0 && *at >= self.widest;
        // Rows that are ignored may be the only ones that have the column which says so.
        let ignore = self.ignore.iter().map(|test| test.at).filter(|at| *at >= self.widest_of_all);
        if let Some(at) = columns.chain(ignore).find(is_beyond) {
            let expected = format!("rows with a column {}", at.saturating_add(1));
            let found = format!("{} columns at most", self.widest);
            out.push(Problem::error(line, self.name(at), expected, found));
        }
    }

    /// The gross amount of a described file is what a row of the user's is compared with: it goes
    /// the way of the amount, and is what is left and the fee where one is told.
    fn gross_holds(&self, row: &Row<'_>, line: &Line, minor: i64) -> Result<(), Problem> {
        let Some(gross) = line.gross.filter(|_| !self.table.recognised) else { return Ok(()) };
        let name = self.places.gross.map_or_else(String::new, |at| self.name(at));
        let found = row.maybe(self.places.gross);
        let is_other_way = gross.minor.signum().saturating_mul(minor.signum()) < 0;
        let whole = line.fee.map(|fee| minor.checked_add(fee.minor));
        if whole.is_some_and(|whole| whole != Some(gross.minor)) {
            let expected = "the amount and the fee";
            return Err(Problem::error(row.line, name, expected, found));
        }
        if is_other_way && line.fee.is_none() {
            return Err(Problem::error(row.line, name, "the sign of the amount", found));
        }
        Ok(())
    }

    /// A row of two sides without the dash that some write into the one that is empty.
    fn without_dash<'a>(&self, row: &Row<'a>) -> Row<'a> {
        let AmountAt::TwoSided(debit, credit) = self.places.amount else { return *row };
        let sides = [(debit, credit), (credit, debit)];
        let is_empty = |at: usize| row.get(at).is_empty() || sheet::is_dash(row.get(at));
        let own =
            sides.iter().find(|(at, other)| sheet::is_dash(row.get(*at)) && !is_empty(*other));
        own.filter(|_| self.table.recognised).map_or(*row, |(at, _)| row.without(*at))
    }

    /// Whether a row is above another table of what was not booked: its title, which may stand
    /// where an amount would, or its names of columns. Rows below it are none of this table.
    fn is_further_table(&mut self, row: &Row<'_>) -> bool {
        let AmountAt::TwoSided(debit, credit) = self.places.amount else { return false };
        if !self.table.recognised || is_day(row.maybe(self.places.date)) {
            return false;
        }
        let fields = || (0..row.width()).map(|at| row.get(at)).filter(|text| !text.is_empty());
        let is_alone =
            fields().count() == 1 && [debit, credit].iter().any(|at| !row.get(*at).is_empty());
        let is_title = is_alone && fields().all(words::titles_unbooked);
        let is_named =
            |at: &usize| self.layout.names.get(*at) == Some(&sheet::column(row.get(*at)));
        let is_below = self.further.is_some() && [debit, credit].iter().all(is_named);
        if is_title {
            self.further = Some(row.line);
        }
        is_title || is_below
    }

    /// Whether a row is passed over before its amount is looked for.
    fn is_none_of_table(&mut self, row: &Row<'_>, out: &mut Out) -> Result<bool, Problem> {
        self.widest_of_all = self.widest_of_all.max(row.width());
        let is_ignored = self.ignore.iter().any(|test| test.holds(row));
        Ok(is_ignored || self.trailer(row, out)? || self.is_further_table(row))
    }

    /// A row of another table than the one whose columns are known.
    fn is_of_further(&self, row: &Row<'_>) -> Result<(), Problem> {
        self.further.map_or(Ok(()), |line| {
            let expected = format!("rows of the first table alone: another begins on line {line}");
            Err(Problem::error(row.line, "row", expected, "an amount below its title"))
        })
    }

    fn has_amount(&self, row: &Row<'_>) -> bool {
        match self.places.amount {
            AmountAt::Signed(at) | AmountAt::Flagged(at, _) => !row.get(at).is_empty(),
            AmountAt::TwoSided(debit, credit) => {
                !row.get(debit).is_empty() || !row.get(credit).is_empty()
            }
        }
    }

    /// Fields at fixed places: a row that ends within its amount says a smaller one, and one that
    /// ends before it has a day alone. Only texts may be short.
    fn reaches(&self, row: &Row<'_>) -> Result<(), Problem> {
        let Cut::Fixed(fields) = &self.table.cut else { return Ok(()) };
        let places = &self.places;
        let wanted = |at: usize| fields.get(at).map_or(0, |(_, range)| range.len());
        let lacks = |at: &usize| row.field(*at).chars().count() < wanted(*at);
        let is_within = |at: &usize| !row.get(*at).is_empty() && lacks(at);
        let (amounts, flag) = match places.amount {
            AmountAt::Signed(at) => ([Some(at), None], None),
            AmountAt::Flagged(at, flag) => ([Some(at), None], Some(flag)),
            AmountAt::TwoSided(debit, credit) => ([Some(debit), Some(credit)], None),
        };
        let mut amounts = amounts.into_iter().flatten();
        let short = if self.has_amount(row) {
            let whole = [flag, places.date].into_iter().flatten().find(lacks);
            let beside = [places.gross, places.fee, places.value_date];
            amounts.chain(beside.into_iter().flatten()).find(is_within).or(whole)
        } else {
            let has_day = matches!(self.day(row, places.date), Ok(Some(_)));
            amounts.find(lacks).filter(|_| has_day)
        };
        let Some(at) = short else { return Ok(()) };
        let expected = format!("{} characters: the row ends before", wanted(at));
        Err(Problem::error(row.line, self.name(at), expected, row.field(at)))
    }

    /// Whether a row without an amount is none of the table, where nobody described the file: words
    /// below the rows are in fewer fields. With a day, it is a row that was cut.
    fn is_words(&self, row: &Row<'_>) -> bool {
        let width = self.layout.names.len();
        let is_beyond = (width..row.width()).any(|at| !row.get(at).is_empty());
        let has_day = is_day(row.maybe(self.places.date));
        self.table.recognised && !is_beyond && !has_day
    }

    /// Whether a row of two sides that has no day says what each of them comes to: it holds.
    fn is_sums(&mut self, row: &Row<'_>, out: &mut Out) -> Result<bool, Problem> {
        let AmountAt::TwoSided(debit, credit) = self.places.amount else { return Ok(false) };
        let day = row.maybe(self.places.date);
        if !self.table.recognised || is_day(day) {
            return Ok(false);
        }
        let texts = self.places.tags.iter().map(|at| row.get(*at)).chain([day]);
        let is_whole = [debit, credit].iter().all(|at| !row.get(*at).is_empty());
        let is_booked = self.said(row).is_ok_and(|said| said.is_booked());
        let mut said = texts.filter(|text| words::is_sum_of_sides(text));
        // A shop is called `Total`, too.
        let is_said = said.any(|text| is_whole || text.contains(' ')) && is_booked;
        let only = || self.side_sums.keys().next().filter(|_| self.side_sums.len() == 1).copied();
        let Some(of) = self.currency_of(row).or_else(only).filter(|_| is_said) else {
            return Ok(false);
        };
        let own = self.side_sums.get(&of).copied().unwrap_or_default();
        let mut holds = true;
        for (at, own) in [(debit, own.0), (credit, own.1)] {
            let text = row.get(at);
            let name = self.name(at);
            let said = if text.is_empty() { 0 } else { self.read(row, &name, text, of)? };
            let expected = i128::from(said.saturating_abs());
            holds &= expected == own;
            out.push(Control {
                line: row.line,
                field: format!("sum of {name}"),
                expected,
                found: Found::Is(own),
                currency: Some(of),
                severity: Severity::Error,
            });
        }
        if holds {
            self.summed = Some(row.line);
            self.not_summed(of, out);
        }
        Ok(true)
    }

    /// Rows of balances that no sum of the sides holds are no movements.
    fn not_summed(&mut self, of: Currency, out: &mut Out) {
        if self.side_sums.keys().all(|own| *own == of) {
            let stands = std::mem::take(&mut self.stands);
            out.extend(stands.rows.iter().map(|(line, text, _)| passed_over(*line, text)));
            self.stands.net = stands.net;
        }
    }

    /// Whether the row moves nothing: it has no amount, or its amount is how much there was.
    fn is_no_movement(&mut self, row: &Row<'_>, out: &mut Out) -> Result<bool, Problem> {
        self.widest = self.widest.max(row.width());
        if !self.has_amount(row) {
            return self.without_amount(row, out).map(|()| true);
        }
        if self.is_sums(row, out)? {
            return Ok(true);
        }
        if let Some(text) = self.word_beside(row) {
            let is_used = self.begun <= 1 && self.is_declared(row);
            if !self.is_total(row, &text) && !is_used {
                out.push(passed_over(row.line, &text));
            }
            return Ok(true);
        }
        if let Some(text) = self.begins_with(row) {
            return Err(no_movement(row.line, &text));
        }
        if let Some(text) = self.stands_at(row) {
            if words::is_before(&text) == Some(true) {
                self.told_end(row, true);
            }
            out.push(passed_over(row.line, &text));
            return Ok(true);
        }
        let Some(text) = self.stand(row) else { return Ok(false) };
        if !words::NEVER_PAID.contains(&text.as_str()) {
            return self.held(row, text, out).map(|()| true);
        }
        out.push(passed_over(row.line, &text));
        Ok(true)
    }

    /// A row without an amount: a part of a payment, one that stood still, or words.
    fn without_amount(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        self.note_end(row);
        if self.is_part(row) {
            return Ok(());
        }
        self.stands_still(row, out)?;
        self.is_lost(row).map_or(Ok(()), Err)?;
        let is_remark = self.is_remark(row);
        let is_read = self.table.recognised && self.is_declared(row);
        if !is_remark && !is_read {
            out.push(nothing_moved(row.line));
        }
        if !is_day(row.maybe(self.places.date))
            && let Some(watch) = &mut self.watch
        {
            watch.title(row, !is_remark);
        }
        Ok(())
    }

    /// Whether a row without an amount and a day tells a balance that is read.
    fn is_declared(&self, row: &Row<'_>) -> bool {
        let fields = || (0..row.width()).map(|at| row.get(at));
        let what = words::declared(fields()).map(|(_, what, _)| what);
        let is_end = self.is_opened() && words::closing_of_day(fields()).is_some();
        let is_balance = is_end || what.is_some_and(|what| what != Declares::Count);
        !is_day(row.maybe(self.places.date)) && is_balance
    }

    /// Whether the balance before all rows stands beside the table.
    fn is_opened(&self) -> bool {
        self.table.declared.iter().any(|one| one.what == Declares::Opening)
    }

    /// Whether a row tells the balance after all rows whole, which shows that none lacks: more
    /// fields follow.
    fn tells_end(&self, row: &Row<'_>) -> bool {
        let fields = || (0..row.width()).map(|at| row.get(at));
        let closing = words::declared(fields()).filter(|(_, what, _)| *what == Declares::Closing);
        let closing = closing.map(|(.., value)| value);
        let told = words::closing_of_day(fields()).or(closing);
        let last = row.get(row.width().saturating_sub(1));
        self.table.recognised && told.is_some_and(|value| value != last)
    }

    /// Words in fewer fields that are what was left of a movement, or say that the file broke off.
    fn is_lost(&self, row: &Row<'_>) -> Option<Problem> {
        let is_short = row.width() < self.layout.names.len();
        if !self.table.recognised || is_day(row.maybe(self.places.date)) {
            return None;
        }
        let fields = || (0..row.width()).map(|at| row.get(at)).filter(|text| !text.is_empty());
        let first = fields().next()?;
        if words::says_broken_off(first) {
            return Some(Problem::error(row.line, "row", "rows to the end of the file", first));
        }
        let is_bare = |text: &str| {
            let is_of = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | ' ');
            let has_figure = text.contains(|c: char| c.is_ascii_digit());
            // Without a minus it may be a rate, a credit line, a time.
            let is_out = text.starts_with('-') || text.ends_with('-');
            has_figure
                && is_out
                && text.chars().all(is_of)
                && decimal_of(text).is_some()
                && !is_day(text)
        };
        let is_within = |text: &str| {
            text.split_whitespace().any(is_bare) && text.split_whitespace().any(is_day)
        };
        let is_told = || fields().any(words::names_figure) || !self.heads.is_empty();
        let lost = fields().find(|text| is_bare(text) || is_within(text));
        let lost = lost.filter(|_| is_short && !is_told() && !self.is_declared(row))?;
        let expected = format!("{} fields", self.layout.names.len());
        let found = format!("{}, with an amount: {lost}", row.width());
        Some(Problem::error(row.line, "row", expected, found))
    }

    /// Whether a row that is a sum by the word where its day would stand says what the booked rows
    /// above it come to, net or on a side: where it is the only one, it holds at the end. Neither
    /// a further one nor one below rows that were not all booked, or of several currencies.
    fn is_total(&mut self, row: &Row<'_>, text: &str) -> bool {
        let mut sums = self.side_sums.iter();
        let only = sums.next().filter(|_| sums.next().is_none() && !self.unbooked);
        let Some((of, (debits, credits))) = only.filter(|_| words::is_sum_of_sides(text)) else {
            return false;
        };
        let net = credits.saturating_sub(*debits);
        let all = credits.saturating_add(*debits);
        let [first, second] = self.places.amounts();
        let is_signed = first == second;
        let mut is_said = false;
        let mut said_here = Vec::new();
        for (at, own) in [(first, if is_signed { net } else { *debits }), (second, *credits)] {
            let said = self.read(row, "", row.get(at), *of);
            let Ok(said) = said.map(|minor| i128::from(minor.saturating_abs())) else { continue };
            if is_signed && is_said {
                break;
            }
            let known = [own, net.saturating_abs()].into_iter();
            let holds = known
                .chain(is_signed.then_some([*debits, *credits, all]).into_iter().flatten())
                .any(|own| own.saturating_abs() == said);
            is_said = true;
            said_here.push(Control {
                line: row.line,
                field: format!("sum of {}", self.name(at)),
                expected: said,
                found: Found::Is(if holds { said } else { own.saturating_abs() }),
                currency: Some(*of),
                severity: Severity::Error,
            });
        }
        if !is_said {
            return false;
        }
        self.total_rows = self.total_rows.saturating_add(1);
        if self.total_rows > 1 {
            return false;
        }
        self.total_said = Some(TotalRow { controls: said_here, line: row.line, text: text.into() });
        true
    }

    /// Whether a row without an amount says nothing but words, where nobody described the file: one
    /// field without a figure.
    fn is_remark(&self, row: &Row<'_>) -> bool {
        let mut filled = (0..row.width()).map(|at| row.get(at)).filter(|text| !text.is_empty());
        let first = filled.next().unwrap_or_default();
        let has_figure = first.contains(char::is_numeric);
        self.table.recognised && filled.next().is_none() && !has_figure
    }

    /// Whether a row without an amount and with a day is a part of the payment above it, as its
    /// amount in another column says: it is held until all of them are there.
    fn is_part(&mut self, row: &Row<'_>) -> bool {
        let Some(minor) = self.part(row) else { return false };
        let is_dated = is_day(row.maybe(self.places.date));
        self.parts.add(row.line, minor, &self.reference(row), is_dated)
    }

    fn part(&self, row: &Row<'_>) -> Option<i64> {
        let of = self.parts.currency().filter(|_| row.maybe(self.places.balance).is_empty())?;
        let mut texts = self.part_columns.iter().map(|at| row.get(*at));
        let text = texts.find(|text| !text.is_empty())?;
        let is_other = |at: &usize| Currency::parse_any(row.get(*at)).is_ok_and(|own| own != of);
        let is_booked = self.said(row).is_ok_and(|said| said.is_booked());
        if !is_booked || self.codes.iter().any(is_other) || texts.any(|other| !other.is_empty()) {
            return None;
        }
        self.read(row, "amount", text, of).ok()
    }

    /// The bank's reference of a row.
    fn reference(&self, row: &Row<'_>) -> String {
        let mut rules = self.table.tags.iter().zip(&self.places.tags);
        let own = rules.find(|(rule, _)| rule.kind == TagKind::TransactionId);
        own.map(|(_, at)| row.get(*at).to_owned()).unwrap_or_default()
    }

    /// Whether a row lacks fields at its end, as one bank leaves out those that are empty. What
    /// stands beside the table must then prove all amounts.
    fn ends_early(&mut self, row: &Row<'_>) -> bool {
        let places = &self.places;
        let AmountAt::Signed(amount) = places.amount else { return false };
        let mut needed = [Some(amount), places.currency, places.date].into_iter().flatten();
        let width = row.width();
        let is_such = self.table.recognised
            && !row.is_last()
            && places.balance.is_none()
            && width < self.layout.names.len()
            && needed.all(|at| at.saturating_add(1) < width)
            && words::may_end_early(&self.layout.names);
        if is_such && let Err(problem) = row.fits(&self.layout) {
            self.short.get_or_insert(problem);
        }
        is_such
    }

    /// A row that moved may be a payment to many, whose parts follow; one that was not booked is
    /// none.
    fn whole(&mut self, row: &Row<'_>, moved: Option<(i64, Currency)>, out: &mut Out) {
        self.told = self.told.saturating_add(1);
        self.unbooked |= moved.is_none();
        if !self.part_columns.is_empty() {
            let whole = moved.map(|(minor, of)| (minor, of, self.reference(row)));
            self.parts.begin(whole, out);
        }
    }

    /// A row without a day that has a word for a balance or a sum where a day or an amount would
    /// stand, where nobody described the file: it is none of the table.
    fn word_beside(&self, row: &Row<'_>) -> Option<String> {
        let day = row.maybe(self.places.date);
        if !self.table.recognised || is_day(day) {
            return None;
        }
        let amounts = match self.places.amount {
            AmountAt::Signed(at) | AmountAt::Flagged(at, _) => [at, at],
            AmountAt::TwoSided(debit, credit) => [debit, credit],
        };
        let texts = [day].into_iter().chain(amounts.map(|at| row.get(at)));
        // Shops are called `Total`, and a row of theirs has a day.
        let is_sum = |text: &String| text.contains(' ') && words::is_sum_of_sides(text);
        let sum = || self.places.tags.iter().map(|at| normal(row.get(*at))).find(is_sum);
        texts.map(normal).find(|text| words::is_stand(text)).or_else(sum)
    }

    /// A row with a day and no amount, where nobody described the file: what moved may stand in a
    /// column that is not known, unless the balance beside it, or a word, shows that nothing did.
    fn stands_still(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        if !self.table.recognised || !is_day(row.maybe(self.places.date)) {
            return Ok(());
        }
        let is_booked = self.said(row).ok().is_none_or(|said| said.is_booked());
        if !is_booked || self.told_stand(row).is_some() {
            return Ok(());
        }
        let balance = row.maybe(self.places.balance);
        let own = self.currency_of(row);
        let of = own.or(self.open.as_ref().map(|(_, currency)| *currency));
        let (Some(of), false) = (of, balance.is_empty()) else {
            return Err(no_amount(row.line));
        };
        let (balance, day) =
            (self.read(row, "balance", balance, of)?, self.day(row, self.places.date)?);
        self.statement(row, of, out);
        self.follow(row.line, (0, None, false), Some(balance), day);
        Ok(())
    }

    /// The currency of a row, where it says one.
    fn currency_of(&self, row: &Row<'_>) -> Option<Currency> {
        match (&self.table.currency, self.places.currency) {
            (CurrencyOf::All(currency), _) => Some(*currency),
            (CurrencyOf::Column(_), at) => Currency::parse_any(row.maybe(at)).ok(),
        }
    }

    /// Keeps the balance of a row without an amount that says by its text which end of the rows it
    /// is of, where nobody described the file: the rows must begin or end with it.
    fn note_end(&mut self, row: &Row<'_>) {
        let balance = row.maybe(self.places.balance);
        if !self.table.recognised || balance.is_empty() {
            return;
        }
        if let Some(is_before) = self.told_stand(row).and_then(|text| words::is_before(&text)) {
            self.told_end(row, is_before);
        }
    }

    /// Keeps the balance of a row that is of the beginning of all rows, or of their end.
    fn told_end(&mut self, row: &Row<'_>, is_before: bool) {
        let balance = row.maybe(self.places.balance);
        let of = self.currency_of(row).or(self.open.as_ref().map(|(_, currency)| *currency));
        let minor = of.and_then(|of| self.read(row, "balance", balance, of).ok());
        if let Some((currency, minor)) = of.zip(minor).filter(|_| self.told_ends.len() < STANDS) {
            let balance = Balance { minor, currency, date: None, line: row.line };
            self.told_ends.push((is_before, balance));
        }
    }

    /// The ends that rows of the statement told: each at most once.
    fn take_ends(&mut self, of: Option<Currency>) -> [Option<Balance>; 2] {
        let told = std::mem::take(&mut self.told_ends);
        [true, false].map(|wanted| {
            let own = told.iter().filter(|(is_before, _)| *is_before == wanted);
            let mut own = own.filter(|(_, balance)| Some(balance.currency) == of);
            let (_, first) = own.next()?;
            own.next().is_none().then_some(*first)
        })
    }

    /// What a row says that tells a balance as if it were what moved: its amount is its balance,
    /// which no row before it proves.
    fn begins_with(&self, row: &Row<'_>) -> Option<String> {
        let balance = row.maybe(self.places.balance);
        if !self.table.recognised || balance.is_empty() {
            return None;
        }
        let text = self.told_stand(row).filter(|text| !self.is_paid(row, text))?;
        let of = self.currency_of(row)?;
        let (minor, balance) = (self.amount(row, of).ok()?, self.read(row, "", balance, of).ok()?);
        (minor == balance && minor != 0).then_some(text)
    }

    /// What a row says that tells a balance beside an amount of nil: by its text, or where the
    /// other side would stand.
    fn stands_at(&self, row: &Row<'_>) -> Option<String> {
        if !self.table.recognised || row.maybe(self.places.balance).is_empty() {
            return None;
        }
        let of = self.currency_of(row)?;
        let is_nil = self.amount(row, of).is_ok_and(|minor| minor == 0);
        let beside = || self.sides.iter().map(|at| normal(row.get(*at)));
        let is_own = |text: &String| text.contains(' ') && words::is_stand(text);
        let text = || self.told_stand(row).or_else(|| beside().find(is_own));
        is_nil.then(text).flatten()
    }

    /// Holds a row of a balance until the statement ends, where it can be read.
    fn held(&mut self, row: &Row<'_>, text: String, out: &mut Out) -> Result<(), Problem> {
        let of = self.currency_of(row);
        let Some((of, minor)) = of.and_then(|of| Some((of, self.amount(row, of).ok()?))) else {
            return Err(no_movement(row.line, &text));
        };
        self.statement(row, of, out);
        // Where it was money after all, it shows that amounts have signs.
        self.negative |= minor < 0;
        let is_out = match self.places.amount {
            AmountAt::TwoSided(debit, _) => {
                row.get(debit).starts_with(|c: char| c.is_ascii_digit())
            }
            AmountAt::Signed(_) | AmountAt::Flagged(..) => false,
        };
        self.stands.signed |= !is_out;
        self.stands.add(Balance { minor, currency: of, date: None, line: row.line }, text);
        Ok(())
    }

    /// The statement ended: the balances that its rows tell, where they prove what moved; else what
    /// is open of each.
    fn end_stands(&mut self, out: &mut Out) -> Option<(Balance, Balance)> {
        let stands = std::mem::take(&mut self.stands);
        let proven = stands.proven();
        out.extend(stands.rows.iter().map(|(line, text, is_nil)| {
            let is_sure = proven.is_some() || *is_nil;
            if is_sure { passed_over(*line, text) } else { no_movement(*line, text) }
        }));
        proven
    }

    /// What a row says that tells a balance or a sum, where nobody described the file and no
    /// balance proves what moved.
    fn stand(&self, row: &Row<'_>) -> Option<String> {
        let is_open = self.table.recognised && row.maybe(self.places.balance).is_empty();
        is_open.then(|| self.told_stand(row)).flatten().filter(|text| !self.is_paid(row, text))
    }

    /// Whether a row whose word shops are called as well has what a sum has not: a reference of its
    /// payment, or the name of its other side.
    fn is_paid(&self, row: &Row<'_>, stand: &str) -> bool {
        let says = |at: &usize| {
            let text = normal(row.get(*at));
            !text.is_empty() && text != stand
        };
        let is_of_payment = |rule: &TagRule| {
            use TagKind::{CreditorReference, CustomerReference, EndToEndId, Mandate};
            [EndToEndId, Mandate, CreditorReference, CustomerReference].contains(&rule.kind)
        };
        let mut tags = self.table.tags.iter().zip(&self.places.tags);
        let has_reference = tags.any(|(rule, at)| is_of_payment(rule) && says(at));
        words::may_be_a_name(stand) && (has_reference || self.sides.iter().any(says))
    }

    /// The same of any row: all of its texts are one of the words for it; where it has none, all of
    /// its references.
    fn told_stand(&self, row: &Row<'_>) -> Option<String> {
        let said = |is_any: bool| {
            let rules = self.table.tags.iter().zip(&self.places.tags);
            let own = rules.filter(move |(rule, _)| is_any || rule.kind == TagKind::Text);
            let texts = own.map(|(_, at)| normal(row.get(*at))).filter(|text| !text.is_empty());
            texts.collect::<Vec<_>>()
        };
        // Some write the word where a reference stands, and no text at all.
        let texts = Some(said(false)).filter(|texts| !texts.is_empty());
        let texts = texts.unwrap_or_else(|| said(true));
        let first = texts.first()?;
        let is_stand = words::is_stand(first) && texts.iter().all(|text| text == first);
        is_stand.then(|| first.clone()).or_else(|| self.stand_by_kind(row))
    }

    /// The same by the column of its kind: a word there is of the row, whatever its texts say.
    fn stand_by_kind(&self, row: &Row<'_>) -> Option<String> {
        let kinds = self.ways.iter().map(|at| row.get(*at)).filter(|text| text.contains(' '));
        let mut kinds = kinds.map(normal).filter(|text| !words::may_be_a_name(text));
        kinds.find(|text| words::is_stand(text))
    }

    fn day(&self, row: &Row<'_>, at: Option<usize>) -> Result<Option<NaiveDate>, Problem> {
        let text = row.maybe(at);
        let (Some(at), false) = (at, text.is_empty()) else { return Ok(None) };
        let found = self.table.dates.read(text);
        let ambiguous = self.table.recognised && crate::settlement::numeral::is_day(text);
        if found.is_none() && !ambiguous {
            return Err(self.no_day(row.line, at, text));
        }
        Ok(found)
    }

    /// That a column does not say a day as it should.
    fn no_day(&self, line: u64, at: usize, found: &str) -> Problem {
        let expected = match &self.table.dates {
            Dates::Pattern(pattern) => format!("a date as {pattern}"),
            Dates::Any(_) => "a date".to_owned(),
        };
        Problem::error(line, self.name(at), expected, found)
    }

    /// The account of a row.
    fn account(&self, row: &Row<'_>) -> String {
        // Where the quotes of a row are not in pairs, one stays.
        let account = row.maybe(self.places.account).trim_matches('"');
        let said = self.table.account_is.as_deref().filter(|_| self.places.account.is_none());
        said.unwrap_or(account).to_owned()
    }

    fn statement(&mut self, row: &Row<'_>, of: Currency, out: &mut Out) {
        let account = self.account(row);
        self.several |= self.open.as_ref().is_some_and(|(_, currency)| *currency != of);
        let is_open = self.open.as_ref().is_some_and(|(own, currency)| {
            *own == account && (self.places.balance.is_none() || *currency == of)
        });
        if is_open {
            return;
        }
        // This row's is of the statement that begins with it.
        let undated = self.undated.take_if(|problem| problem.line == row.line);
        self.end_statement(row.line, out);
        self.undated = undated;
        self.begun = self.begun.saturating_add(1);
        out.begin(row.line, Finality::Final, |statement| statement.account = some(&account));
        self.chain = self.places.balance.map(|_| Chain::new(of));
        let open = (account, of);
        let may_follow = self.followed.len() < FOLLOWED || self.followed.contains_key(&open);
        if self.chain.is_some() && may_follow {
            let new = || Followed {
                chain: Chain::new(of),
                statements: 0,
                unproven: false,
                opened: false,
                excused: [None, None],
            };
            let followed = self.followed.entry(open.clone()).or_insert_with(new);
            followed.statements = followed.statements.saturating_add(1);
        }
        self.open = Some(open);
    }

    /// The balance of a row, where it says one. One that may be cut is believed where others tie
    /// to it.
    fn balance(&self, row: &Row<'_>, of: Currency, out: &mut Out) -> Result<Option<i64>, Problem> {
        let text = row.maybe(self.places.balance);
        let Some(at) = self.places.balance.filter(|_| !text.is_empty()) else { return Ok(None) };
        let mark = self.table.numerals.map(|numerals| numerals.decimal);
        let is_whole = || self.ends.is_whole_amount(text, mark, of.exponent());
        let is_first = self.chain.as_ref().is_none_or(Chain::is_new);
        if is_first && row.may_be_cut(at) && !is_whole() {
            out.extend(sheet::unbelieved(row, at, &self.name(at)));
            return Ok(None);
        }
        self.read(row, "balance", text, of).map(Some)
    }

    /// The balance that a row says, after its amount; `kind`: as for [`Chain::add_of`]; `has_fee`:
    /// as for [`Chain::fee`].
    fn follow(
        &mut self,
        line: u64,
        (minor, kind, has_fee): (i64, Option<u64>, bool),
        balance: Option<i64>,
        day: Option<NaiveDate>,
    ) {
        let followed = self.open.as_ref().and_then(|open| self.followed.get_mut(open));
        let chains = self.chain.iter_mut().chain(followed.map(|own| &mut own.chain));
        for chain in chains {
            chain.add_of(line, minor, balance, kind);
            chain.fee(balance.is_some(), has_fee);
            chain.day(day);
        }
    }

    /// Holds the balance before and the one after, where a row says both, against its amount.
    fn between(
        &self,
        row: &Row<'_>,
        (minor, of): (i64, Currency),
        after: Option<i64>,
        out: &mut Out,
    ) {
        let before = self.held_before.map(|at| (at, row.get(at)));
        let (Some((at, text)), Some(after)) = (before, after) else { return };
        match self.read(row, &self.name(at), text, of) {
            Ok(before) => out.push(Control {
                line: row.line,
                field: format!(
                    "{}, by {} and the amount",
                    self.places.balance.map_or_else(String::new, |at| self.name(at)),
                    self.name(at)
                ),
                expected: i128::from(after),
                found: Found::Is(i128::from(before).saturating_add(i128::from(minor))),
                currency: Some(of),
                severity: Severity::Error,
            }),
            Err(problem) => out.push(problem),
        }
    }

    /// Whether a fee stands beside the amount that only a balance can tell: one that is not taken
    /// off it, or that is and has the other sign than what is taken, for then nobody knows whether
    /// it was given back.
    fn has_fee(&self, row: &Row<'_>, of: Currency) -> bool {
        if self.table.less_fee {
            return self.taken_besides(row, of).is_ok_and(|minor| minor < 0);
        }
        let is_some = |at: &usize| {
            let text = row.get(*at);
            !text.is_empty() && self.read(row, "fee", text, of).is_ok_and(|minor| minor != 0)
        };
        self.besides.iter().any(is_some)
    }

    /// Whether no equation of balances holds a fee, and rows have one: within their amounts or
    /// besides, nothing tells.
    fn fee_is_open(&self) -> bool {
        let own = self.followed.values().map(|own| match own.chain.fees() {
            (held, open) if own.opened => (held.saturating_add(open), 0),
            fees => fees,
        });
        let all: Vec<(u64, u64)> = own.chain([self.fee_rows]).collect();
        all.iter().all(|(held, _)| *held == 0) && all.iter().any(|(_, open)| *open > 0)
    }

    /// Of which kind a row is; none where that tells which way its money went.
    fn kind(&mut self, row: &Row<'_>, minor: i64) -> Option<u64> {
        // Only a file whose amounts could have a sign, and have none, is asked for it.
        let is_signed = matches!(self.places.amount, AmountAt::Signed(_));
        if self.has_sign || !self.table.recognised || !is_signed {
            return None;
        }
        if self.way(row).is_some_and(|(_, is_out)| is_out == (minor < 0)) {
            return None;
        }
        if self.ways.iter().all(|at| row.get(*at).is_empty()) {
            let texts = (0..row.width()).map(|at| row.get(at));
            let whole = texts.filter(|text| !words::is_abbreviated(text));
            let mut ways = whole.filter_map(words::is_debit);
            return (!ways.any(|is_out| is_out == (minor < 0))).then_some(NO_KIND);
        }
        let mut hasher = DefaultHasher::new();
        self.ways.iter().for_each(|at| row.get(*at).hash(&mut hasher));
        let kind = hasher.finish();
        let is_known = self.kinds_seen.contains_key(&kind);
        if minor != 0 && (is_known || self.kinds_seen.len() < KINDS) {
            let seen = self.kinds_seen.entry(kind).or_default();
            *seen = seen.saturating_add(1);
        }
        Some(kind)
    }

    /// Which way the kind of a row says that its money went: out (true), or in.
    fn way(&self, row: &Row<'_>) -> Option<(usize, bool)> {
        self.ways.iter().find_map(|at| Some((*at, words::way_of(row.get(*at))?)))
    }

    /// Whether an amount carries a sign.
    fn note_sign(&mut self, row: &Row<'_>) {
        if let AmountAt::Signed(at) = self.places.amount {
            self.has_sign |= row.get(at).contains(['-', '+', '(', '\u{2212}', '\u{2013}']);
        }
    }

    /// A row whose amount has no sign in a file where none has, which no balance proves, and none
    /// of a row of its kind either: by kinds some tell which way money went, and by nothing else.
    /// Without kinds the others' balances may say just what they would if all went that way.
    fn unsigned(&self) -> Option<u64> {
        let is_said = self.has_sign || self.own_signs || self.held_before.is_some();
        let is_open = self.table.recognised && !is_said;
        if !is_open || !matches!(self.places.amount, AmountAt::Signed(_)) {
            return None;
        }
        let followed = self.followed.values().filter(|own| !own.opened);
        let followed = followed.filter_map(|own| own.chain.unproven());
        let alone: Vec<OfKind> = followed.chain(self.unsigned).collect();
        let is_unproven = |(_, kind): &&OfKind| {
            let own = alone.iter().filter(|(_, other)| other == kind).count();
            *kind == NO_KIND || self.kinds_seen.get(kind).is_none_or(|seen| *seen <= own)
        };
        alone.iter().filter(is_unproven).map(|(line, _)| *line).min()
    }

    /// Balances go on from those of the same account and currency, whatever stands between them.
    /// Where each statement proves itself they may be of two accounts that nothing tells apart.
    fn end_followed(&self, out: &mut Out) {
        let in_turns = |own: &&Followed| own.statements > 1 && own.unproven;
        let broken = self.followed.values().filter(in_turns).filter_map(|own| own.chain.problem());
        broken.for_each(|problem| out.push(problem));
        let beyond = self.followed.values().filter_map(|own| own.chain.newest_open());
        out.extend(beyond.map(|line| {
            let expected = "a balance, as all other rows have: one without it may not be booked";
            Problem::error(line, "balance", expected, "none")
        }));
        for own in self.followed.values().filter(|own| !own.opened) {
            let ends = own.chain.open_ends();
            let is_told = self.table.recognised || self.marks.are_several();
            let is_open = |problem: &&Problem| is_told && ends.contains(&Some(problem.line));
            let [first, last] = own.excused.each_ref().map(Option::as_ref);
            let last = last.filter(|last| first.is_none_or(|first| first.line != last.line));
            out.extend(first.into_iter().chain(last).filter(is_open).cloned());
        }
    }

    /// Keeps what a row says of itself that its balance may prove wrong, until it did.
    fn note_excused(&mut self, excused: Option<Problem>) {
        let Some(problem) = excused else { return };
        let followed = self.open.as_ref().and_then(|open| self.followed.get_mut(open));
        if let Some(Followed { excused: [first, last], .. }) = followed {
            *last = Some(problem.clone());
            first.get_or_insert(problem);
        }
    }

    /// That a currency which another column says, or a column's name, is another one.
    fn currencies_agree(&self, row: &Row<'_>, of: Currency) -> Result<(), Problem> {
        if !self.table.recognised {
            return Ok(());
        }
        let is_held = !row.maybe(self.places.balance).is_empty();
        let held = self.held_codes.iter().filter(|_| is_held);
        for at in self.places.agree.iter().chain(held) {
            let code = row.get(*at);
            if !code.is_empty() && Currency::parse_any(code) != Ok(of) {
                return Err(Problem::error(row.line, self.name(*at), of.code(), code));
            }
        }
        match (self.table.held_in.filter(|own| is_held && *own != of), self.places.balance) {
            (Some(own), Some(at)) => {
                let expected = format!("an amount of {own}, as the balance beside it");
                Err(Problem::error(row.line, self.name(at), expected, of.code()))
            }
            _same => Ok(()),
        }
    }

    /// What a row moved, and what of that a balance beside it may prove otherwise.
    fn moved(&mut self, row: &Row<'_>) -> Result<Moved, Problem> {
        let of = match (&self.table.currency, self.places.currency) {
            (CurrencyOf::All(currency), _) => *currency,
            (CurrencyOf::Column(name), at) => currency(row, &name.shown(), row.maybe(at))?,
        };
        self.currencies_agree(row, of)?;
        let minor = self.noted_amount(row, of)?;
        let said = self.status(row)?;
        let grouped = if said.is_booked() { self.open_amount(row, (minor, of))? } else { None };
        let open = said.excused.map(|at| self.unbooked(row, at)).or(grouped);
        let open = open.or_else(|| self.open_mark(row, of));
        Ok(Moved { of, minor, status: said.status, open })
    }

    /// What an amount leaves open that only a balance beside it may prove: how many decimals it
    /// has, and its way, below a title of what went out.
    fn open_amount(
        &self,
        row: &Row<'_>,
        (minor, of): (i64, Currency),
    ) -> Result<Option<Problem>, Problem> {
        let Some((watch, numerals)) = self.watch.as_ref().zip(self.table.numerals) else {
            return Ok(None);
        };
        let columns = self.places.amounts();
        let open = watch::may_be_grouped(row, &columns, &self.layout.shown, numerals, of);
        let is_signed = matches!(self.places.amount, AmountAt::Signed(_));
        let at = columns.first().copied().filter(|_| is_signed && minor > 0);
        let open = open.or_else(|| watch.against_title(row, at?));
        match open {
            Some(problem) if row.maybe(self.places.balance).is_empty() => Err(problem),
            open => Ok(open),
        }
    }

    /// What the only row of a sum among the rows says; of several each may be of a part, and all
    /// are told as passed over.
    fn total_declared(&mut self, out: &mut Out) {
        let Some(said) = self.total_said.take() else { return };
        if self.total_rows > 1 {
            out.push(passed_over(said.line, &said.text));
            return;
        }
        said.controls.into_iter().for_each(|control| out.push(control));
    }

    /// What is followed over all booked rows.
    fn watched(&mut self, row: &Row<'_>, raw: &str, out: &mut Out) {
        let is_open = row.maybe(self.places.balance).is_empty();
        if let Some(watch) = &mut self.watch {
            if is_open {
                watch.status(row);
            }
            out.extend(watch.twice(row, raw));
        }
    }

    /// A row that a column says was not booked, where nothing shows what it was.
    fn unbooked(&self, row: &Row<'_>, at: usize) -> Problem {
        let expected = "rows that were booked; describe this file as a [[format]]";
        Problem::error(row.line, self.name(at), expected, row.get(at))
    }

    fn end_statement(&mut self, line: u64, out: &mut Out) {
        self.parts.settle(out);
        let (from, to) = (self.from.take(), self.to.take());
        let mut end = StatementEnd { line, ..StatementEnd::default() };
        let chain = self.chain.take();
        let beside = self.beside_table();
        let own = chain.as_ref().map(|chain| chain.end(line));
        let within = own.as_ref().map_or([None; 2], |end| self.take_ends(end.currency));
        let stated = match &own {
            Some(end) => self.stated(beside, within, end),
            None => self.both(beside),
        };
        let is_shown =
            stated.is_some_and(|(opening, closing)| self.stands.is_between(opening, closing));
        let told = self.end_stands(out).or(stated);
        let is_proven = match chain.as_ref() {
            Some(chain) => chain.proves() || is_shown,
            None => is_shown || told.is_some() && stated.is_none(),
        };
        self.doubts.end_statement(is_proven, out);
        out.extend(self.undated.take().filter(|_| !is_proven));
        out.extend(self.short.take().filter(|_| !is_shown));
        let [before, _] = beside;
        let [first, _] = within;
        let is_opened = told.is_some() || before.or(first).is_some();
        let followed = self.open.as_ref().and_then(|open| self.followed.get_mut(open));
        if let Some(followed) = followed {
            followed.unproven |= !is_proven && chain.as_ref().is_some_and(Chain::ties);
            followed.opened |= is_opened && followed.statements == 1;
        } else if let Some(chain) = chain.as_ref().filter(|_| !is_opened) {
            self.unsigned = self.unsigned.or(chain.unproven());
            let (held, open) = chain.fees();
            let own = &mut self.fee_rows;
            *own = (own.0.saturating_add(held), own.1.saturating_add(open));
        }
        self.proven |= is_proven;
        if let Some(own) = own {
            against_table(beside, &own, out);
            against_table(within, &own, out);
            end = own;
        }
        if let Some((opening, closing)) = told {
            (end.opening, end.closing) = (Some(opening), Some(closing));
            (end.currency, end.tie) = (Some(opening.currency), Tie::Balances);
        }
        if let Some(problem) = chain.and_then(|chain| chain.problem()) {
            end.tie = Tie::Declared(false);
            out.push(problem);
        }
        self.count_declared(out);
        self.sums_declared(out);
        self.total_declared(out);
        out.end(StatementEnd { from, to, ..end });
    }

    /// Both balances that are stated beside the table. Where a row was not booked, and each says
    /// its currency, what they count is only known where they hold.
    fn both(&self, [before, after]: [Option<Balance>; 2]) -> Option<(Balance, Balance)> {
        let is_sure = !self.unbooked || matches!(self.table.currency, CurrencyOf::All(_));
        let both = before.zip(after);
        both.filter(|(before, after)| is_sure || self.stands.is_between(*before, *after))
    }

    /// The ends of a statement whose running balance does not say both: the opening balance is what
    /// the file states, beside the table or in a row without an amount, and so is the closing one
    /// where no row's balance is it. With a row that was not booked, only where they hold.
    fn stated(
        &self,
        [before, after]: [Option<Balance>; 2],
        [first, last]: [Option<Balance>; 2],
        end: &StatementEnd,
    ) -> Option<(Balance, Balance)> {
        let is_open = end.opening.is_none() || end.closing.is_none();
        let is_whole = self.is_over && self.begun == 1 && end.tie != Tie::Declared(false);
        let opening = before.or(first).filter(|_| is_open && is_whole)?;
        let closing = end.closing.or(after).or(last)?;
        let moved = i128::from(closing.minor).saturating_sub(i128::from(opening.minor));
        let is_told = !self.unbooked || moved == self.stands.net;
        is_told.then_some((opening, closing))
    }

    /// The balances that stand beside the table, before and after all rows. Those of a file of
    /// several accounts or currencies may be of one of them.
    fn beside_table(&self) -> [Option<Balance>; 2] {
        let of = match (&self.table.currency, &self.open) {
            (CurrencyOf::All(currency), _) => Some(*currency),
            (CurrencyOf::Column(_), Some((_, currency))) if self.is_of_one_currency() => {
                Some(*currency)
            }
            (CurrencyOf::Column(_), _) => None,
        };
        let (Some(of), Some(numerals)) = (of, self.table.numerals) else { return [None; 2] };
        [Declares::Opening, Declares::Closing].map(|wanted| {
            let mut said = self.declared(wanted).filter_map(|Declared { line, value, .. }| {
                // Some write it with another mark than the rows.
                let decimal = decimal_of(value).unwrap_or(numerals.decimal);
                let minor = Numerals { decimal, ..numerals }.read(value, of).ok()?;
                Some(Balance { minor, currency: of, date: None, line: *line })
            });
            let first = said.next()?;
            said.all(|other| other.minor == first.minor).then_some(first)
        })
    }

    /// Rows with a balance are cut into statements by their currency.
    fn is_of_one_currency(&self) -> bool {
        self.places.balance.is_some() || !self.several
    }

    /// What the file declares of all its rows, once they were read and are one statement.
    fn declared(&self, wanted: Declares) -> impl Iterator<Item = &Declared> {
        let is_whole = self.is_over && self.begun == 1;
        self.table.declared.iter().filter(move |one| is_whole && one.what == wanted)
    }

    /// Some count the parts of a payment to many, and others do not: it is only said.
    fn count_declared(&self, out: &mut Out) {
        let counts = self.declared(Declares::Count);
        let all = i128::from(self.told.saturating_add(self.parts.counted()));
        for (line, expected) in counts.filter_map(|one| Some((one.line, one.value.parse().ok()?))) {
            let found =
                if expected == all { Found::Is(all) } else { Found::Statement(Measure::Entries) };
            out.push(Control {
                line,
                field: "rows, as the file says".to_owned(),
                expected,
                found,
                currency: None,
                severity: Severity::Warning,
            });
        }
    }

    /// What the file says that all its rows come to on each side, where all are booked and of one
    /// currency.
    fn sums_declared(&self, out: &mut Out) {
        let mut sums = self.side_sums.iter();
        let only = sums.next().filter(|_| sums.next().is_none() && !self.unbooked);
        let Some(((of, (debits, credits)), numerals)) = only.zip(self.table.numerals) else {
            return;
        };
        let sides = [(Declares::In, *credits, "credits"), (Declares::Out, *debits, "debits")];
        for (what, own, side) in sides {
            for Declared { line, value, .. } in self.declared(what) {
                // A whole number may be how many there were.
                let Some(decimal) = decimal_of(value) else { continue };
                let Ok(said) = (Numerals { decimal, ..numerals }).read(value, *of) else {
                    continue;
                };
                out.push(Control {
                    line: *line,
                    field: format!("sum of {side}, as the file says"),
                    expected: i128::from(said.saturating_abs()),
                    found: Found::Is(own),
                    currency: Some(*of),
                    severity: Severity::Error,
                });
            }
        }
    }

    /// A file that says what its rows came to, and has none, lost them: both balances of an account
    /// that nothing moved are the same. It may name no currency, so figures are compared.
    fn nothing_came(&self, out: &mut Out) {
        if self.begun > 0 || !self.table.recognised {
            return;
        }
        let said = |wanted: Declares| {
            let own = self.table.declared.iter().filter(move |one| one.what == wanted);
            own.filter_map(|one| Some((one, figure(&one.value)?)))
        };
        let (opening, closing) = (said(Declares::Opening).next(), said(Declares::Closing).next());
        if let Some(((before, first), (after, last))) = opening.zip(closing)
            && first != last
        {
            let expected = format!("rows that bring {} to {}", before.value, after.value);
            out.push(Problem::error(after.line, "row", expected, "none"));
        }
        for (what, of) in [(Declares::In, "in"), (Declares::Out, "out"), (Declares::Count, "rows")]
        {
            for (one, _) in said(what).filter(|(_, moved)| *moved != 0) {
                let expected = format!("what the file says there is: {of} {}", one.value);
                out.push(Problem::error(one.line, "row", expected, "none"));
            }
        }
    }

    /// What stands below the rows and says what they come to.
    fn note_declared(&mut self, row: &Row<'_>) {
        if !self.table.recognised || self.table.declared.len() >= STANDS {
            return;
        }
        let line = row.line;
        for (at, what) in std::mem::take(&mut self.heads) {
            self.table.declared.push(Declared { line, what, value: row.get(at).to_owned() });
        }
        let fields = || (0..row.width()).map(|at| row.get(at));
        self.heads = words::declared_heads(fields());
        if let Some((_, what, value)) = words::declared(fields()).filter(|_| self.heads.is_empty())
        {
            self.table.declared.push(Declared { line, what, value: value.to_owned() });
        }
        if let Some(value) = words::closing_of_day(fields()).filter(|_| self.is_opened()) {
            let (what, value) = (Declares::Closing, value.to_owned());
            self.table.declared.push(Declared { line, what, value });
        }
    }

    fn grouped(&mut self, row: &Row<'_>, minor: i64, of: Currency) -> Result<(), Problem> {
        let Some((at, payout)) = &self.batch else { return Ok(()) };
        if self.sums.len() >= BATCHES {
            let found = format!("more than {BATCHES}");
            return Err(Problem::error(row.line, "batch", "fewer batches", found));
        }
        let sum = self.sums.entry((row.get(*at).to_owned(), of)).or_default();
        sum.line = row.line;
        let side = if payout.as_ref().is_some_and(|test| test.holds(row)) {
            sum.paid_out = true;
            &mut sum.paid
        } else {
            &mut sum.items
        };
        *side = side.saturating_add(i128::from(minor));
        Ok(())
    }

    fn fill(
        &self,
        row: &Row<'_>,
        (minor, of): (i64, Currency),
        line: &mut Line,
    ) -> Result<(), Problem> {
        for (field, at, slot) in
            [("gross", self.places.gross, &mut line.gross), ("fee", self.places.fee, &mut line.fee)]
        {
            let text = row.maybe(at);
            // Some write a dash where there was none.
            let is_none = text.is_empty() || self.table.recognised && text == "-";
            if !is_none {
                let told = self.read(row, field, text, of)?;
                *slot = money(if field == "fee" { self.fee(told) } else { told }, of);
            }
        }
        self.gross_holds(row, line, minor)?;
        for (rule, at) in self.table.tags.iter().zip(&self.places.tags) {
            // Of a reference that was cut another one may be left.
            let text = if row.may_be_cut(*at) { "" } else { row.get(*at) };
            match &rule.pattern {
                None => line.tag(rule.kind, text),
                Some(pattern) => {
                    let own = !self.table.recognised;
                    let found = pattern.captures_iter(text);
                    let found = found.filter(|found| !(own && is_cut_out(text, found)));
                    let found = found.filter_map(|found| Some(found.get(1)?.as_str()));
                    let found: Vec<&str> = found.collect();
                    // Of several that stand in one text none is better than the others.
                    let is_one = found.iter().all(|text| Some(text) == found.first());
                    let kind = if own && !is_one { TagKind::Text } else { rule.kind };
                    for text in found {
                        // A word for no reference would be taken for one.
                        if own || !is_blank_in_mt940(text) {
                            line.tag(kind, text);
                        }
                    }
                }
            }
        }
        let reference = self.places.psp_reference.filter(|at| !row.may_be_cut(*at));
        line.psp_reference = some(row.maybe(reference));
        if let Some(id) = &line.psp_reference {
            let id = id.clone();
            line.tag(TagKind::PaymentId, &id);
        }
        line.batch_id = self.batch.as_ref().and_then(|(at, _)| some(row.get(*at)));
        Ok(())
    }

    fn trailer(&mut self, row: &Row<'_>, out: &mut Out) -> Result<bool, Problem> {
        let Some(trailer) = self.table.trailer.clone() else { return Ok(false) };
        let at = trailer.column.saturating_sub(1);
        if !trailer.is.iter().any(|value| value == row.get(at)) {
            return Ok(false);
        }
        self.trailer = true;
        self.controls(row, &trailer, out)?;
        Ok(true)
    }

    fn controls(
        &self,
        row: &Row<'_>,
        trailer: &TrailerSettings,
        out: &mut Out,
    ) -> Result<(), Problem> {
        let of = match self.table.currency {
            CurrencyOf::All(currency) => Some(currency),
            CurrencyOf::Column(_) => self.open.as_ref().map(|(_, currency)| *currency),
        };
        let at = |column: Option<usize>| column.map(|column| row.get(column.saturating_sub(1)));
        if let Some(text) = at(trailer.count) {
            let expected = text.parse::<i128>();
            let expected = expected
                .map_err(|_no| Problem::error(row.line, "trailer count", "a count", text))?;
            let found = Found::File(Measure::Entries);
            let field = "trailer count".to_owned();
            let (line, currency, severity) = (row.line, None, Severity::Error);
            out.push(Control { line, field, expected, found, currency, severity });
        }
        for (column, field, measure) in [
            (trailer.sum, "trailer sum", Measure::NetMinor),
            (trailer.credits, "trailer credits", Measure::CreditMinor),
            (trailer.debits, "trailer debits", Measure::DebitMinor),
        ] {
            let (Some(text), Some(currency)) = (at(column), of) else { continue };
            let expected = i128::from(self.read(row, field, text, currency)?);
            out.push(Control {
                line: row.line,
                field: field.to_owned(),
                expected,
                // Of all currencies: one sum over several would be none.
                found: Found::File(measure),
                currency: Some(currency),
                severity: Severity::Error,
            });
        }
        Ok(())
    }

    /// Whether the row was booked.
    fn status(&self, row: &Row<'_>) -> Result<Said, Problem> {
        match &self.booked {
            _any if self.table.recognised => self.said(row),
            Some(booked) if !booked.holds(row) => Ok(Said::plainly(EntryStatus::Pending)),
            _booked => Ok(Said::plainly(EntryStatus::Booked)),
        }
    }

    /// The same where nobody described the file: by its columns of a status, and by the day that
    /// the row does not have yet. A word for what was not booked in any other column, its texts
    /// and references apart, leaves open what the row is.
    fn said(&self, row: &Row<'_>) -> Result<Said, Problem> {
        let places = &self.places;
        let mut said = Said::plainly(EntryStatus::Booked);
        for at in &places.statuses {
            let Some(status) = words::status_of(&self.layout.names, *at, row.get(*at)) else {
                let expected = "a word for what was booked, or was not";
                return Err(Problem::error(row.line, self.name(*at), expected, row.get(*at)));
            };
            if status != EntryStatus::Booked {
                said.status = status;
            }
        }
        // The balance beside it shows whether the row moved.
        let is_shown = !row.maybe(places.balance).is_empty();
        said.excused = self.flag(row).filter(|_| said.is_booked());
        if let Some(at) = said.excused.filter(|_| !is_shown) {
            return Err(self.unbooked(row, at));
        }
        for at in (0..row.width()).filter(|at| !places.statuses.contains(at)) {
            let is_own = self.kind_texts.contains(&at);
            if places.tags.contains(&at) && !is_own {
                continue;
            }
            let is_word = words::is_doubtful(row.get(at));
            let is_asked = || self.asks.contains(&at) && words::is_asked(row.get(at));
            if !is_word && !is_asked() {
                continue;
            }
            if is_own || !is_word {
                said.excused = said.excused.or(Some(at));
                if is_shown || !said.is_booked() {
                    continue;
                }
                return Err(self.unbooked(row, at));
            }
            if is_shown && words::came_back(row.get(at)) {
                said.excused = said.excused.or(Some(at));
                continue;
            }
            let status = words::unbooked(row.get(at));
            let status = status.filter(|_| self.is_of_status(row, at));
            said.status = status.ok_or_else(|| self.unbooked(row, at))?;
        }
        Ok(said)
    }

    /// The column of a flag that says that the row was not booked.
    fn flag(&self, row: &Row<'_>) -> Option<usize> {
        let is_open = |at: &usize| !self.places.statuses.contains(at);
        let says = |at: &usize| {
            let name = self.layout.names.get(*at).map_or("", String::as_str);
            words::flags_unbooked(name, row.get(*at))
        };
        self.flags.iter().copied().filter(is_open).find(says)
    }

    /// Whether a word for what was not booked is of the row: where its day would stand, and where
    /// it has none yet, in the column of its kind or of its balance.
    fn is_of_status(&self, row: &Row<'_>, at: usize) -> bool {
        let (date, balance) = (self.places.date, self.places.balance);
        let is_open = row.maybe(date).is_empty();
        Some(at) == date || is_open && (Some(at) == balance || self.ways.contains(&at))
    }

    /// A column's name as it stands.
    fn name(&self, at: usize) -> String {
        let name = self.layout.shown.get(at).filter(|name| !name.is_empty()).cloned();
        name.unwrap_or_else(|| format!("column {}", at.saturating_add(1)))
    }

    /// Booking and value date; what was not booked need have none.
    fn days(
        &mut self,
        row: &Row<'_>,
        status: EntryStatus,
        out: &mut Out,
    ) -> Result<(Option<NaiveDate>, Option<NaiveDate>), Problem> {
        let places = &self.places;
        let is_out = self.table.recognised && status != EntryStatus::Booked;
        let day_at = places.date.filter(|at| row.get(*at).is_empty());
        if let Some(at) = day_at.filter(|_| !self.table.recognised && status == EntryStatus::Booked)
        {
            // A sum or a balance among the rows has none.
            return Err(self.no_day(row.line, at, "none"));
        }
        if self.table.recognised && !is_out && row.maybe(places.date).is_empty() {
            let expected = "a date beside the amount";
            let problem = Problem::error(row.line, "date", expected, "none: is it a sum?");
            let Some(day) = self.other_day(row) else { return Err(problem) };
            let value_on = self.value_day(row, out)?;
            if self.undated.is_none() {
                self.undated = Some(problem);
            }
            return Ok((Some(day), value_on));
        }
        let but_out = |found: Result<Option<NaiveDate>, Problem>| match found {
            Err(_none) if is_out => Ok(None),
            found => found,
        };
        Ok((but_out(self.day(row, places.date))?, but_out(self.value_day(row, out))?))
    }

    /// The value date. One that no calendar has is told, and the row has none.
    fn value_day(&self, row: &Row<'_>, out: &mut Out) -> Result<Option<NaiveDate>, Problem> {
        let at = self.places.value_date;
        let text = row.maybe(at);
        let Some(at) = at.filter(|_| is_no_day(text)) else { return self.day(row, at) };
        let expected = "a day of the calendar";
        out.push(Problem::warning(row.line, self.name(at), expected, text));
        Ok(None)
    }

    /// The day of a row without a booking date that has a balance, which may prove that it was
    /// booked: what all its other days say.
    fn other_day(&self, row: &Row<'_>) -> Option<NaiveDate> {
        let Dates::Any(order) = &self.table.dates else { return None };
        let texts = self.days.iter().map(|at| row.get(*at)).filter(|text| !text.is_empty());
        let mut days = texts.map(|text| day(text, *order));
        let first = days.next()?.filter(|_| !row.maybe(self.places.balance).is_empty())?;
        days.all(|other| other == Some(first)).then_some(first)
    }

    /// What stands beside the amount of a booked row: a fee, another amount in total, words.
    fn beside(&mut self, row: &Row<'_>, minor: i64, of: Currency) {
        let read = |at: &usize| {
            let text = Some(row.get(*at)).filter(|text| !text.is_empty())?;
            self.read(row, "fee", text, of).ok().filter(|minor| *minor != 0)
        };
        let is_taken = self.taken.iter().any(|at| read(at).is_some());
        let own = minor.unsigned_abs();
        let is_other = |at: &&usize| read(at).is_some_and(|all| all.unsigned_abs() != own);
        let other = self.totals.iter().find(is_other).map(|at| {
            let expected = "what the amount says, or a balance; describe this file as a [[format]]";
            Problem::error(row.line, self.name(*at), expected, row.get(*at))
        });
        self.fees |= is_taken;
        if self.total.is_none() {
            self.total = other;
        }
        self.note_way(row, minor);
    }

    /// A day that nothing in the file tells from another one.
    fn two_days(&mut self, row: &Row<'_>, day: Option<NaiveDate>) {
        let text = row.maybe(self.places.date);
        let Some(at) = self.places.date.filter(|_| day.is_none() && !text.is_empty()) else {
            return;
        };
        if self.table.recognised && self.two_days.is_none() {
            let expected = match order_of(text) {
                // This one shows it, and another shows otherwise.
                Some(_) => {
                    "day and month in one order in all rows; days that could be two are not told"
                }
                None => {
                    "a row whose day shows which of day and month stands first; days that do not \
                         are not told"
                }
            };
            self.two_days = Some(Problem::warning(row.line, self.name(at), expected, text));
        }
    }

    /// A row without a minus, in a file that has none so far, that says that its money went out:
    /// then the layout proves nothing.
    fn note_way(&mut self, row: &Row<'_>, minor: i64) {
        if self.own_signs && minor > 0 && !self.negative {
            self.own_signs = !(0..row.width()).any(|at| own_signs::went_out(row.get(at)));
        }
    }

    /// Which signs and days the booked rows have.
    fn note(&mut self, minor: i64, day: Option<NaiveDate>) {
        self.negative |= minor < 0;
        self.positive |= minor > 0;
        if let Some(day) = day {
            self.from = Some(self.from.map_or(day, |from| from.min(day)));
            self.to = Some(self.to.map_or(day, |to| to.max(day)));
        }
    }

    fn add_side(&mut self, minor: i64, of: Currency) {
        let (out, into) = self.side_sums.entry(of).or_default();
        let side = if minor < 0 { out } else { into };
        *side = side.saturating_add(i128::from(minor.saturating_abs()));
    }

    /// What only a balance can settle, of a booked row of a file that nobody described.
    fn doubt(&mut self, row: &Row<'_>, minor: i64, of: Currency) {
        if !self.table.recognised {
            return;
        }
        self.doubts.row(row.line, minor, of);
        if let Some(at) = self.places.value_date {
            self.doubts.value_day(row.line, !row.get(at).is_empty());
        }
        let (at, flag) = match &self.places.amount {
            AmountAt::TwoSided(debit, _) => (*debit, None),
            AmountAt::Flagged(amount, flag) => (*amount, Some(*flag)),
            AmountAt::Signed(amount) => (*amount, None),
        };
        let text = row.get(at);
        if text.is_empty() {
            return;
        }
        let Ok(own) = self.read(row, "amount", text, of) else { return };
        self.deeds(row, text, minor);
        if matches!(self.places.amount, AmountAt::TwoSided(..)) {
            if own != 0 {
                let name = self.name(at);
                self.doubts.debit(row.line, &name, text, own < 0);
            }
            return;
        }
        let is_against = |way: &usize| match words::is_debit(row.get(*way)) {
            // A flag alone tells the way of an amount without a sign.
            _any if flag == Some(*way) => own < 0,
            Some(is_debit) => own != 0 && is_debit != (minor < 0),
            None => false,
        };
        if let Some((way, is_out)) = self.way(row).filter(|_| own != 0 && flag.is_none())
            && is_out != (minor < 0)
        {
            let (name, found) = (self.name(way), format!("{} beside {text}", row.get(way)));
            self.doubts.against(row.line, &name, found);
            return;
        }
        // What a card paid abroad is written without a minus by some, and never with one beside
        // money in.
        let is_original = |at: &&usize| {
            let text = row.get(**at);
            minor > 0 && text.starts_with(['-', '\u{2212}']) && decimal_of(text).is_some()
        };
        if let Some(at) = self.originals.iter().find(is_original) {
            let (name, found) = (self.name(*at), format!("{} beside {text}", row.get(*at)));
            self.doubts.against(row.line, &name, found);
            return;
        }
        if let Some(way) = self.places.beside.iter().copied().chain(flag).find(is_against) {
            let (name, found) = (self.name(way), format!("{} beside {text}", row.get(way)));
            self.doubts.against(row.line, &name, found);
        }
    }

    /// What a row says of itself that shows whose signs these are.
    fn deeds(&mut self, row: &Row<'_>, text: &str, minor: i64) {
        if minor == 0 || !matches!(self.places.amount, AmountAt::Signed(_)) {
            return;
        }
        for at in &self.places.kinds {
            if let Some(deed) = words::deed(row.get(*at)) {
                let (name, found) = (self.name(*at), format!("{} beside {text}", row.get(*at)));
                let is_out = matches!(deed, Deed::Bought | Deed::Sold);
                if self.table.inverted && is_out != (minor < 0) {
                    self.doubts.against(row.line, &name, found);
                } else {
                    self.doubts.deed(row.line, &name, deed, minor < 0, found);
                }
            }
        }
        if minor > 0 {
            return;
        }
        let say = |is: fn(&str) -> bool| {
            let is_text =
                |(rule, at): &(&TagRule, &usize)| rule.kind == TagKind::Text && is(row.get(**at));
            let (_, at) = self.table.tags.iter().zip(&self.places.tags).find(is_text)?;
            Some((self.name(*at), format!("{} beside {text}", row.get(*at))))
        };
        if let Some((name, found)) = say(words::came_in) {
            self.doubts.against(row.line, &name, found);
        } else if let Some((name, found)) = say(words::has_thanks) {
            self.doubts.thanks(row.line, &name, found);
        } else if let Some((name, found)) = say(words::may_have_come_in) {
            self.doubts.bill(row.line, &name, found);
        } else if self.only_text(row).is_some_and(|at| words::is_direct_debit(row.get(at)))
            && let Some((name, found)) = say(words::is_direct_debit)
        {
            self.doubts.bill(row.line, &name, found);
        }
    }

    /// The only text of a row; none where it has several, or names its other side.
    fn only_text(&self, row: &Row<'_>) -> Option<usize> {
        let says = |at: &usize| !row.get(*at).is_empty();
        if self.sides.iter().any(says) {
            return None;
        }
        let tags = self.table.tags.iter().zip(&self.places.tags);
        let whole = tags.filter(|(rule, _)| rule.kind == TagKind::Text);
        let mut filled = whole.map(|(_, at)| *at).filter(says);
        let first = filled.next()?;
        filled.all(|other| other == first).then_some(first)
    }

    /// The last column, and what it is.
    fn last(&self, row: &Row<'_>) -> (usize, Last) {
        let named = self.layout.names.iter().rposition(|name| !name.is_empty());
        let width = self.ends.width().max(row.width());
        let at = named.unwrap_or_else(|| width.saturating_sub(1));
        let places = &self.places;
        let is_amount = places.holds(at) && places.balance != Some(at);
        let mark = self.table.numerals.map(|numerals| numerals.decimal);
        // Of minor units that somebody described, nothing ever shows that the last are whole.
        let can_show = self.table.recognised || mark.is_some();
        let is_money = is_amount || [places.gross, places.fee].contains(&Some(at));
        let last = if is_money && can_show {
            Last::Money(mark)
        } else if [places.date, places.value_date].contains(&Some(at)) {
            Last::Day
        } else if places.statuses.contains(&at) {
            Last::Status
        } else {
            Last::Other
        };
        (at, last)
    }

    /// Whether a whole row was cut within its last field, where its line does not end; and a word
    /// for whoever misses its reference.
    fn cut(
        &self,
        row: &Row<'_>,
        (at, last): (usize, Last),
        of: Currency,
        out: &mut Out,
    ) -> Option<Problem> {
        if !row.is_open() {
            return None;
        }
        let mut tags = self.places.tags.iter().chain(&self.places.psp_reference);
        out.extend(tags.find_map(|at| sheet::unbelieved(row, *at, &self.name(*at))));
        self.ends.cut(row, at, last, of.exponent(), &self.name(at))
    }

    /// A row that was passed over: what it says of the rows around it; and where it ends with the
    /// file and not with its line, was it cut?
    fn note_passed_over(&mut self, row: &Row<'_>, out: &mut Out) {
        let is_short = row.width() < self.layout.names.len();
        // What both sides come to shows that no row before it lacks.
        let is_open = row.is_last() && self.summed != Some(row.line) && !self.tells_end(row);
        self.ends.note_below(row);
        if self.table.recognised && is_open && is_short && self.ends.is_begun(row) {
            let expected = "a whole row, and the end of its line";
            out.push(Problem::error(row.line, "last row", expected, "a row that was cut"));
        }
        self.note_declared(row);
        self.note_titled(row);
    }

    /// Where all rows are of one currency by what stands above them, a title among them may be that
    /// of rows of another one.
    fn note_titled(&mut self, row: &Row<'_>) {
        let CurrencyOf::All(own) = self.table.currency else { return };
        if !self.table.recognised || is_day(row.maybe(self.places.date)) {
            return;
        }
        let fields: Vec<String> = (0..row.width()).map(|at| row.get(at).to_owned()).collect();
        let Some(said) = words::currency_of_title(&fields) else { return };
        let expected = format!("rows of {own} alone");
        let found = fields.join(" ");
        let problem = || Problem::error(row.line, "currency", expected, found.trim());
        self.titled = (said != own).then(problem);
    }

    /// Nobody described the file: its signs must show themselves.
    fn shown(&mut self, line: u64, out: &mut Out) {
        let total = self.total.take().filter(|_| !self.proven);
        out.extend(total.into_iter().chain(self.two_days.take()));
        let signed = matches!(self.places.amount, AmountAt::Signed(_)) && !self.own_signs;
        if self.table.recognised && signed && !self.proven && self.positive && !self.negative {
            let expected = "amounts of both signs, or a balance, that show which way money went; \
                            describe this file as a [[format]]";
            out.push(Problem::error(line, "amount", expected, "amounts without a sign"));
        } else if let Some(line) = self.unsigned() {
            let expected = "a sign in any amount, a column of debit and credit, or the balance \
                            before the first row, that shows which way its money went; describe \
                            this file as a [[format]]";
            let found = "an amount without a sign, which no balance proves";
            out.push(Problem::error(line, "amount", expected, found));
        }
        if self.table.recognised && (self.fees && !self.proven || self.fee_is_open()) {
            let expected = "a balance that shows whether fees are within the amounts; describe \
                            this file as a [[format]]";
            out.push(Problem::error(line, "fee", expected, "fees beside the amounts"));
        }
    }
}

/// Holds the balances that stand beside the table against those that its rows say.
fn against_table(beside: [Option<Balance>; 2], end: &StatementEnd, out: &mut Out) {
    let [before, after] = beside;
    for (beside, own, name) in
        [(before, end.opening, "opening balance"), (after, end.closing, "closing balance")]
    {
        let Some((beside, own)) = beside.zip(own) else { continue };
        out.push(Control {
            line: beside.line,
            field: format!("{name} beside the rows"),
            expected: i128::from(beside.minor),
            found: Found::Is(i128::from(own.minor)),
            currency: Some(own.currency),
            severity: Severity::Error,
        });
    }
}

/// A row of a balance that may be one of money.
fn no_movement(line: u64, text: &str) -> Problem {
    Problem::error(line, "amount", "a movement", format!("{text}: is it a balance?"))
}

/// The figures of an amount of any currency, the same for all ways of writing it.
fn figure(value: &str) -> Option<i128> {
    let is_of = |c: &char| c.is_ascii_digit() || c.is_whitespace() || ".,-'’".contains(*c);
    let value: String = value.chars().filter(is_of).collect();
    let decimal = decimal_of(value.trim()).unwrap_or(b'.');
    let of = Currency::parse("EUR").ok()?;
    Numerals { decimal, grouped: true }.read_at(&value, of, 8).ok()
}

/// A row of a balance that is surely none of money.
fn passed_over(line: u64, text: &str) -> Problem {
    let what = if words::is_sum_of_sides(text) { "a sum" } else { "a balance" };
    let found = format!("{text}: {what}; the row was passed over");
    Problem::warning(line, "amount", "a movement", found)
}

fn signed_minor(text: &str) -> Result<i64, Refused> {
    match text.strip_prefix('-') {
        Some(rest) => minor(rest).map(i64::saturating_neg),
        None => minor(text.strip_prefix('+').unwrap_or(text)),
    }
}

impl Report for Rows {
    fn row(&mut self, row: &Row<'_>, out: &mut Out) -> Result<(), Problem> {
        if self.skip > 0 {
            self.skip = self.skip.saturating_sub(1);
            return Ok(());
        }
        let row = &self.without_dash(row);
        if self.is_none_of_table(row, out)? {
            return Ok(());
        }
        self.reaches(row)?;
        let has_header = !self.layout.names.is_empty() && self.table.header;
        if has_header && !self.has_amount(row) && !self.is_words(row) {
            row.fits(&self.layout)?;
        }
        if self.is_no_movement(row, out)? {
            self.note_passed_over(row, out);
            return Ok(());
        }
        self.is_of_further(row)?;
        out.extend(self.titled.take());
        out.extend(self.watch.as_mut().and_then(Watch::below));
        if has_header && !self.ends_early(row) {
            row.fits(&self.layout)?;
        }
        if self.trailer {
            let found = "a row after it";
            return Err(Problem::error(row.line, "trailer", "at the end", found));
        }
        let Moved { of, minor, status, open } = self.moved(row)?;
        let is_out = self.table.recognised && status != EntryStatus::Booked;
        let (booked_on, value_on) = self.days(row, status, out)?;
        let (at, last) = self.last(row);
        let cut = self.cut(row, (at, last), of, out);
        self.ends.add(row, at, last);
        self.statement(row, of, out);
        self.grouped(row, minor, of)?;
        let (mut entry, mut line) = out.entry(row, minor, of);
        self.fill(row, (minor, of), &mut line)?;
        if self.table.covers_attempts && status != EntryStatus::Booked {
            line.kind = LineKind::Attempt;
        }
        entry.booked_on = booked_on;
        entry.value_on = value_on;
        entry.type_code = some(row.maybe(self.places.kind));
        entry.status = status;
        if is_out {
            cut.into_iter().for_each(|problem| out.push(problem));
            self.whole(row, None, out);
            out.tell(entry, line);
            return Ok(());
        }
        let known = self.balance(row, of, out)?;
        let kind = self.kind(row, minor);
        let has_fee = self.has_fee(row, of);
        self.follow(row.line, (minor, kind, has_fee), known, booked_on);
        self.between(row, (minor, of), known, out);
        self.note_excused(open);
        let is_proven = self.chain.as_ref().is_some_and(Chain::proves_last);
        let cut = cut.filter(|_| !(is_proven && matches!(last, Last::Money(_))));
        cut.into_iter().for_each(|problem| out.push(problem));
        self.doubt(row, minor, of);
        self.add_side(minor, of);
        self.fees |= !self.table.less_fee && line.fee.is_some_and(|fee| fee.minor != 0);
        self.beside(row, minor, of);
        self.two_days(row, booked_on);
        self.note(minor, entry.booked_on);
        self.stands.net = self.stands.net.saturating_add(i128::from(minor));
        self.whole(row, Some((minor, of)), out);
        self.watched(row, &line.raw, out);
        out.tell(entry, line);
        Ok(())
    }

    fn end(&mut self, line: u64, out: &mut Out) {
        self.is_over = true;
        if !self.table.recognised && matches!(self.table.cut, Cut::Delimited(_)) {
            self.out_of_reach(line, out);
        }
        self.end_statement(line, out);
        self.nothing_came(out);
        self.end_followed(out);
        // A statement of one row proves nothing; all of an account's may.
        self.proven |= self.followed.values().any(|own| own.statements > 1 && own.chain.proves());
        if self.table.trailer.is_some() && !self.trailer {
            out.push(Problem::error(line, "trailer", "at the end", "none: the file was cut"));
        }
        for ((batch, currency), sum) in &self.sums {
            // What was paid out is written with either sign.
            let paid = if sum.paid == sum.items { sum.paid } else { sum.paid.saturating_neg() };
            out.push(Control {
                line: sum.line,
                field: format!("sum of batch {batch}"),
                expected: if sum.paid_out { paid } else { 0 },
                found: Found::Is(sum.items),
                currency: Some(*currency),
                severity: Severity::Error,
            });
        }
        self.shown(line, out);
        out.extend(self.watch.iter().flat_map(Watch::end).filter(|_| !self.proven));
        self.doubts.end(self.proven, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::settlement::ledger::{Inspection, State, inspect};

    fn look(text: &str) -> Inspection {
        inspect(Box::new(std::io::Cursor::new(text.as_bytes().to_vec())), None, None).unwrap()
    }

    /// State, whether the only statement ties, its balances, and the fields of the errors.
    fn ends(text: &str) -> (State, Option<bool>, [Option<i64>; 2]) {
        let found = look(text);
        assert_eq!(found.sums.statements_total, 1, "{text}");
        let own = found.sums.statements.first().unwrap();
        let balances = [own.opening, own.closing].map(|of| of.map(|balance| balance.minor));
        (found.state, own.ties, balances)
    }

    const ROWS: &str = "29.09.2026;a;-23.40;CHF;826.60\n28.09.2026;b;-150.00;CHF;";

    fn stated(opening: &str, closing: &str, rows: &str) -> String {
        format!(
            "Anfangssaldo:;{opening}\nSchlusssaldo:;{closing}\n\n\
             Buchungsdatum;Buchungstext;Betrag;Währung;Saldo\n{rows}\n"
        )
    }

    #[test]
    fn balances_that_are_stated_hold_though_the_rows_have_one_or_none() {
        let whole = (State::Ok, Some(true), [Some(100_000), Some(82_660)]);
        let none = ROWS.replace(";826.60", ";");
        for rows in [ROWS, none.as_str()] {
            assert_eq!(ends(&stated("1000.00", "826.60", rows)), whole, "{rows}");
            let wrong = look(&stated("999.00", "826.60", rows));
            assert_eq!(wrong.state, State::Quarantined, "{rows}");
            let problem = wrong.sums.problems.iter().find(|one| one.field == "closing balance");
            let problem = problem.unwrap();
            assert!(problem.expected.contains("826.60") && problem.found.contains("825.60"));
        }
        // Without a column of balances, and with a currency in each row.
        let bare = |opening: &str| {
            let text = stated(opening, "826.60", &none);
            text.replace(";Saldo", "").replace("CHF;", "CHF")
        };
        assert_eq!(ends(&bare("1000.00")), whole);
        assert_eq!(ends(&bare("999.00")).0, State::Quarantined);
        // The balance of the only row is the closing one.
        let one = |opening: &str| {
            let text = stated(opening, "x", "28.09.2026;b;-150.00;CHF;850.00");
            ends(&text.replace("Schlusssaldo:;x\n", ""))
        };
        assert_eq!(one("1000.00"), (State::Ok, Some(true), [Some(100_000), Some(85_000)]));
        assert_eq!(one("999.00").0, State::Quarantined);
    }

    #[test]
    fn a_value_date_that_no_calendar_has_is_told_and_the_row_counts() {
        let of = |value: &str| {
            look(&format!(
                "Datum;Valuta;Text;Betrag;Währung;Saldo\n28.02.2026;28.02.2026;a;-5,00;EUR;95,00\n\
                 02.03.2026;{value};Zinsen;10,00;EUR;105,00\n"
            ))
        };
        let found = of("30.02.2026");
        assert_eq!((found.state, found.sums.entries), (State::Ok, 2));
        assert_eq!(found.sums.problems.len(), 1, "{:?}", found.sums.problems);
        assert_eq!(of("prenotata").state, State::Quarantined);
        let booked = of("02.03.2026").sums.problems.len();
        assert_eq!(booked, 0);
    }

    #[test]
    fn balances_of_another_scope_are_not_held_against_the_rows() {
        let none = ROWS.replace(";826.60", ";");
        let other = none.replace("b;-150.00;CHF", "b;-150.00;EUR");
        let text = stated("999.00", "826.60", &other).replace(";Saldo", "");
        let text = text.replace("CHF;", "CHF").replace("EUR;", "EUR");
        assert_eq!(ends(&text), (State::Ok, None, [None, None]), "two currencies");
        let pending = |opening: &str| {
            format!(
                "Anfangssaldo:;{opening}\nSchlusssaldo:;826.60\n\n\
                 Buchungsdatum;Buchungstext;Betrag;Währung;Status\n\
                 29.09.2026;a;-23.40;CHF;Gebucht\n28.09.2026;b;-150.00;CHF;Gebucht\n\
                 30.09.2026;c;-1.00;CHF;Vorgemerkt\n"
            )
        };
        assert_eq!(ends(&pending("999.00")), (State::Ok, None, [None, None]));
        let holds = (State::Ok, Some(true), [Some(100_000), Some(82_660)]);
        assert_eq!(ends(&pending("1000.00")), holds);
        let one = stated("999.00", "826.60", &none).replace("Schlusssaldo", "Saldo");
        assert_eq!(ends(&one), (State::Ok, None, [None, None]), "one of them alone");
    }

    /// A payment to many of 150.00, whose parts have a day.
    fn collective(second: &str, count: u8) -> String {
        format!(
            "Anfangssaldo:;-3815.44;\nSchlusssaldo:;1234.56;\n\
             Anzahl Transaktionen in diesem Zeitraum:;{count};\n\n\
             Buchungsdatum;Währung;Belastung;Gutschrift;Einzelbetrag;Saldo;Transaktions-Nr.;\
             Beschreibung1;\n2026-09-28;CHF;-150.00;;;1234.56;T2;Sammelauftrag;\n\
             2026-09-28;CHF;;;-100.00;;T2;a;\n2026-09-28;{second};b;\n\
             2026-09-25;CHF;;5200.00;;1384.56;T3;c;\n"
        )
    }

    #[test]
    fn parts_of_a_payment_to_many_may_have_a_day() {
        for count in [2, 4] {
            let found = look(&collective("CHF;;;-50.00;;T2", count));
            let problems = &found.sums.problems;
            assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{problems:?}");
            let lines: Vec<u64> = problems.iter().map(|one| one.line).collect();
            assert_eq!(lines, [7, 8], "{count}: {problems:?}");
        }
        assert_eq!(look(&collective("CHF;;;-50.00;;T2", 3)).sums.problems_total, 3);
        for second in ["CHF;;;-50.01;;T2", "CHF;;;-50.00;;T9", "EUR;;;-50.00;;T2", "CHF;;;;;T2"] {
            let found = look(&collective(second, 4));
            let is_said = found.sums.problems.iter().any(|one| one.found == "a day, and no amount");
            assert!(is_said && found.state == State::Quarantined, "{second}");
        }
    }

    #[test]
    fn a_row_without_a_booking_date_is_booked_where_the_balances_prove_it() {
        let with = |dealt: &str, value: &str, last: &str| {
            look(&format!(
                "Abschlussdatum;Buchungsdatum;Valutadatum;Währung;Betrag;Saldo;Buchungstext\n\
                 {dealt};;{value};CHF;-23.40;826.60;a\n\
                 2026-09-28;2026-09-28;2026-09-28;CHF;-150.00;{last};b\n"
            ))
        };
        let day = "2026-09-29";
        let found = with(day, day, "850.00");
        assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{:?}", found.sums.problems);
        let to = found.sums.statements.first().and_then(|own| own.head.to);
        assert_eq!(to.map(|to| to.to_string()).as_deref(), Some(day));
        for (dealt, value, last) in [
            (day, "2026-09-30", "850.00"),
            ("", "", "850.00"),
            (day, day, ""),
            (day, day, "851.00"),
        ] {
            let found = with(dealt, value, last);
            let is_said = found.sums.problems.iter().any(|one| one.field == "date");
            assert!(is_said && found.state == State::Quarantined, "{dealt} {value} {last}");
        }
    }

    #[test]
    fn a_statement_of_the_caisse_d_epargne_is_read() {
        let with = |opening: &str| {
            format!(
                "Code de la banque : 10101;Code de l'agence : 00100;;;;\n\
                 Numéro de compte : 01234567890;Nom du compte : M. DUPONT;Devise : EUR;;;\n\n\
                 Solde en fin de période;;;;655,25;\n\
                 Date;Numéro d'opération;Libellé;Débit;Crédit;Détail\n\
                 05/01/2026;1;a;;250,50;x\n15/01/2026;2;b;-95,25;;x\n\
                 Solde en début de période;;;;{opening};\n"
            )
        };
        let whole = (State::Ok, Some(true), [Some(50_000), Some(65_525)]);
        assert_eq!(ends(&with("500,00")), whole);
        let account = look(&with("500,00")).sums.statements.remove(0).head.account;
        assert_eq!(account.as_deref(), Some("01234567890"));
        assert_eq!(ends(&with("500,01")).0, State::Quarantined);
    }

    fn state(text: &str) -> State {
        look(text).state
    }

    const PLAIN: &str = "Date;Description;Amount;Currency\n2026-10-01;a;-12.50;EUR\n\
                         2026-10-16;b;1500.00;EUR\n";

    #[test]
    fn a_total_beside_one_column_is_held_against_the_rows() {
        for (total, want) in [
            ("1487.50", State::Ok),
            ("1500.00", State::Ok),
            ("12.50", State::Ok),
            ("1999.50", State::Quarantined),
        ] {
            for word in ["Total", "Summe", "Grand total", "Total:"] {
                let text = format!("{PLAIN}{word};;{total};EUR\n");
                assert_eq!(state(&text), want, "{word} {total}");
            }
        }
        let sides = |total: &str| {
            state(&format!(
                "Date;Description;Debit;Credit;Currency\n2026-10-01;a;12.50;;EUR\n\
                 2026-10-16;b;;1500.00;EUR\nTotal;;{total};EUR\n"
            ))
        };
        for total in ["12.50;", ";1500.00", ";1487.50", "12.50;1500.00"] {
            assert_eq!(sides(total), State::Ok, "{total}");
        }
        for total in ["22.50;", ";1587.50", "12.50;1500.01"] {
            assert_eq!(sides(total), State::Quarantined, "{total}");
        }
    }

    #[test]
    fn what_was_left_of_a_row_is_no_words() {
        for lost in [
            "Payment to Bob;-99.00",
            "Payment to Bob -99.00 EUR on 2026-10-17",
            "Bob\n-99.00",
            "ERROR: export aborted",
            "... (truncated, 320 more rows)",
            "Only the first 2 transactions are shown",
        ] {
            assert_eq!(state(&format!("{PLAIN}{lost}\n")), State::Quarantined, "{lost}");
        }
        for words in [
            "Available balance;1,487.50",
            "Verfügbar: 1.487,50 EUR am 16.10.2026",
            "Errors and omissions excepted",
            "Created 2026-10-17",
            "Stand: 16.10.2026 14.05 Uhr",
            "Zinssatz;2,50",
            "Kreditlinie;5.000,00",
            "Vorgemerkt;0,00",
            "USD/EUR;1,0850",
            "Fehler vorbehalten",
            "Es werden nur die letzten 90 Tage angezeigt",
            "Only the first 35 characters of the description are shown",
            "Descriptions may be truncated",
        ] {
            assert_eq!(state(&format!("{PLAIN}{words}\n")), State::Ok, "{words}");
        }
    }

    #[test]
    fn more_names_of_both_balances_are_held_against_the_rows() {
        for (opening, closing) in [
            ("Alter Saldo", "Neuer Saldo"),
            ("Anfangssaldo", "Endsaldo"),
            ("Beginsaldo", "Eindsaldo"),
            ("Ingående saldo", "Utgående saldo"),
            ("Startsaldo", "Slutsaldo"),
            ("Starting balance", "Ending balance"),
            ("Beginning balance as of 10/01/2026", "Ending balance as of 10/31/2026"),
            ("Balance brought forward", "Balance carried forward"),
            ("Входящий остаток", "Исходящий остаток"),
            ("Nyitó egyenleg", "Záró egyenleg"),
        ] {
            let text = |end: &str| {
                format!("{opening};1000.00\n{closing};{end}\n\n{PLAIN}").replace("1500", "500")
            };
            assert_eq!(state(&text("1487.50")), State::Ok, "{opening}");
            assert_eq!(state(&text("1587.50")), State::Quarantined, "{opening}");
        }
    }

    #[test]
    fn currencies_that_contradict_each_other_are_refused() {
        let rows = |header: &str, code: &str, more: [&str; 2]| {
            let [first, second] = more;
            state(&format!(
                "{header}\n2026-10-01;a;-12.50;{code}{first}\n2026-10-16;b;1500.00;{code}{second}\n"
            ))
        };
        let held = [";987.50", ";2487.50"];
        for (header, more) in [
            ("Date;Description;Amount (EUR);Currency", ["", ""]),
            ("Datum;Text;Betrag in EUR;Währung", ["", ""]),
            ("Date;Description;Amount;Currency;Balance (EUR)", held),
            ("Date;Description;Amount;Currency;Balance EUR", held),
        ] {
            assert_eq!(rows(header, "EUR", more), State::Ok, "{header}");
            assert_eq!(rows(header, "USD", more), State::Quarantined, "{header}");
        }
        let codes = [";987.50;EUR", ";2487.50;EUR"];
        let header = "Date;Description;Amount;Currency;Balance;Balance currency";
        assert_eq!(rows(header, "EUR", codes), State::Ok);
        assert_eq!(rows(header, "USD", codes), State::Quarantined);
        // Beside another amount it is that one's.
        let abroad = "Date;Description;Amount (EUR);Original sum;Currency\n\
                      2026-10-01;a;-12.50;-13.50;USD\n2026-10-16;b;1500.00;1500.00;EUR\n";
        assert_eq!(state(abroad), State::Ok);
    }

    #[test]
    fn a_newest_row_without_a_balance_where_all_others_have_one_is_refused() {
        let old = "2026-10-01;a;-12.50;987.50;EUR\n2026-10-16;b;1500.00;2487.50;EUR\n";
        let new = "2026-10-17;c;-99.00;;EUR\n";
        let text = format!("Date;Description;Amount;Balance;Currency\n{old}{new}");
        assert_eq!(ends(&text), (State::Quarantined, None, [None, Some(248_750)]));
        assert_eq!(state(&text.replace(new, "")), State::Ok);
        let between = text.replace("987.50", "");
        assert_eq!(state(&between), State::Ok, "balances of days");
    }

    #[test]
    fn a_kind_that_says_that_a_row_was_asked_for_is_refused() {
        let with = |name: &str, kind: &str, more: [&str; 3]| {
            let [head, first, last] = more;
            state(&format!(
                "Date;Description;Amount;Currency;{name}{head}\n\
                 2026-10-01;a;-12.50;EUR;Card{first}\n2026-10-16;b;1500.00;EUR;Transfer;\n\
                 2026-10-17;c;-99.00;EUR;{kind}{last}\n"
            ))
        };
        for (name, kind) in [
            ("Type", "Card authorization hold"),
            ("Type", "Pre-authorization"),
            ("Type", "Autorisierung"),
            ("Typ operacji", "Autoryzacja kartowa"),
            ("Transaction type", "Pending card payment"),
            ("Vorgang", "Vorgemerkte Lastschrift"),
            ("Buchungstext", "vorgemerkt"),
            ("Captured", "false"),
        ] {
            assert_eq!(with(name, kind, ["", "", ""]), State::Quarantined, "{name} {kind}");
        }
        assert_eq!(with("Type", "Card payment", ["", "", ""]), State::Ok);
        let held = [";Balance", ";987.50", ";2388.50"];
        let proven = with("Type", "Pending card payment", held);
        assert_eq!(proven, State::Ok, "the balance moved");
    }

    #[test]
    fn more_words_say_which_way_money_went_or_what_was_taken_besides() {
        let with = |name: &str, first: &str, second: &str| {
            state(&format!(
                "Date;Description;Amount;Currency;{name}\n2026-10-01;a;-12.50;EUR;{first}\n\
                 2026-10-16;b;1500.00;EUR;{second}\n"
            ))
        };
        for (name, out, into) in [
            ("Umsatztyp", "Ausgang", "Eingang"),
            ("Směr úhrady", "Odchozí", "Příchozí"),
            ("Type", "Debit Transfer", "Credit Transfer"),
        ] {
            assert_eq!(with(name, out, into), State::Ok, "{name}");
            assert_eq!(with(name, into, out), State::Quarantined, "{name}");
        }
        for name in ["Tarifa", "Taxa", "IOF", "Costs", "Palvelumaksu", "手续费"] {
            assert_eq!(with(name, "0.50", "30.00"), State::Quarantined, "{name}");
            assert_eq!(with(name, "0.00", ""), State::Ok, "{name}");
        }
    }

    #[test]
    fn money_in_beside_an_original_amount_with_a_minus_is_refused() {
        let with = |first: &str, second: &str| {
            state(&format!(
                "Date,Description,Amount,Currency,Original Amount,Original Currency\n\
                 2026-10-01,a,{first},USD\n2026-10-16,b,{second},EUR\n"
            ))
        };
        assert_eq!(with("-12.50,EUR,-13.50", "1500.00,EUR,1500.00"), State::Ok);
        assert_eq!(with("-12.50,EUR,13.50", "1500.00,EUR,1500.00"), State::Ok);
        assert_eq!(with("12.50,EUR,-13.50", "-1500.00,EUR,1500.00"), State::Quarantined);
    }

    #[test]
    fn sums_above_the_table_are_held_against_the_rows() {
        for (head, good, bad) in [
            ("#Waluta;#Wpływy;#Wydatki;\nEUR;", "1500.00;-12.50;", "1500.00;-22.50;"),
            ("Total credits;1500.00\nTotal debits;", "12.50", "22.50"),
        ] {
            let text = |end: &str| state(&format!("{head}{end}\n\n{PLAIN}"));
            assert_eq!(text(good), State::Ok, "{head}");
            assert_eq!(text(bad), State::Quarantined, "{head}");
        }
    }

    #[test]
    fn balances_below_the_rows_may_stand_below_their_names() {
        let with = |closing: &str| {
            format!(
                "Whrg.;Buchungsdatum;Beschreibung;Belastung;Gutschrift;Saldo\n\
                 CHF;30.09.2026;a;23.40;;1026.60\nCHF;28.09.2026;b;;200.00;1050.00\n;;;;;\n\
                 Schlusssaldo;Anfangssaldo;;;;\n{closing};850.00;;;;\n"
            )
        };
        let whole = (State::Ok, Some(true), [Some(85_000), Some(102_660)]);
        assert_eq!(ends(&with("1026.60")), whole);
        assert_eq!(ends(&with("1026.61")).0, State::Quarantined);
    }

    #[test]
    fn words_below_the_rows_are_passed_over_in_silence() {
        let rows = "Datum;Buchungstext;Betrag;Währung\n01.09.2026;a;10.00;CHF\n\
                    28.09.2026;b;-20.00;CHF\n";
        let told = |below: &str| {
            let found = look(&format!("{rows}\n{below}\n"));
            assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{below}");
            found.sums.problems_total
        };
        assert_eq!(told("Disclaimer:\nDies ist kein Dokument der Bank."), 0);
        let card = "Period;Booking date;Booking details;Credit in CHF;Debit in CHF\n\
                    Current;31.10.2026;a;;-34\nCurrent;30.10.2026;b;;-98.85\n";
        let end = "The content was generated by filters. The bank is not responsible for it.";
        let state = |below: &str| look(&format!("{card}{below}{end}")).state;
        assert_eq!(state("Disclaimer:;;;;;\n"), State::Ok);
        assert_eq!(state(""), State::Quarantined);
        assert_eq!(told("Stand: 30.09.2026"), 1);
        assert_eq!(told("Hinweis;zwei Felder"), 1);
    }

    #[test]
    fn several_sums_among_the_rows_are_told_as_passed_over_and_one_is_held() {
        let rows = "Datum;Buchungstext;Betrag;Währung\n01.09.2026;a;-10.00;CHF\n\
                    01.09.2026;c;30.00;CHF\n";
        let told = |below: &str| {
            let found = look(&format!("{rows}{below}"));
            assert_eq!(found.sums.entries, 2 + u64::from(below.contains(";b;")), "{below}");
            (found.state, found.sums.problems_total)
        };
        assert_eq!(told("Total;;20.00;CHF\n"), (State::Ok, 0));
        assert_eq!(told("Total;;11.00;CHF\n"), (State::Quarantined, 1));
        let more = "Total;;20.00;CHF\n02.09.2026;b;5.00;CHF\nTotal;;25.00;CHF\n";
        assert_eq!(told(more), (State::Ok, 2));
    }
}
