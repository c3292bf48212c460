//! A format of rows described in the configuration: any CSV or fixed-width file, because every
//! bank has its own.
//!
//! [`FormatSettings`] is what `[[format]]` says, [`Table`] is that, checked; `table_rows` reads a
//! file by it. A description leaves nothing to guess: where the file does not follow it, the file
//! is quarantined.

use std::ops::Range;

use chrono::{Datelike, NaiveDate, NaiveTime};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::money::Currency;
use crate::model::settlement::TagKind;
use crate::settlement::numeral::{Numerals, Order, day};
use crate::settlement::sheet::normal;
use crate::settlement::tags::tag_kind;
use crate::settlement::text::is_encoding;

/// The first and the last year of a date that is meant.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=2199;

/// `[[format]]`: a bank's or PSP's own file of rows.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatSettings {
    /// Its name, for `--format`.
    pub name: String,
    /// What stands between fields: `,` `;` `|` or a tab. Without it the header row shows it.
    pub delimiter: Option<String>,
    /// Fields that stand at fixed places of each line, instead of a delimiter.
    #[serde(default)]
    pub fixed: Vec<FieldSettings>,
    /// Whether a row names the columns. Without one, columns are numbers from 1.
    #[serde(default = "yes")]
    pub header: bool,
    /// How many rows stand above the first row of the body, where there is no header row.
    #[serde(default)]
    pub skip: usize,
    /// The encoding, where it is not UTF-8: `windows-1252`, `iso-8859-15`.
    pub encoding: Option<String>,
    /// The column of the booking date.
    pub date: Option<Column>,
    /// How dates are written: `%d.%m.%Y`, `%Y%m%d`; with `%H` and so on where a time follows.
    pub date_pattern: Option<String>,
    /// The column of the value date.
    pub value_date: Option<Column>,
    /// The column of the amount: signed, or with `flag`.
    pub amount: Option<Column>,
    /// Two columns instead of `amount`: money out.
    pub debit: Option<Column>,
    /// And money in.
    pub credit: Option<Column>,
    /// A column whose values say which way the amount went. A minus besides is read where all
    /// debits have one and no credit has, or a balance shows what it means.
    pub flag: Option<FlagSettings>,
    /// Turns every sign around, as for a card whose purchases are written without a minus.
    #[serde(default)]
    pub inverted: bool,
    /// The decimal mark: `.` or `,`. Without it `.`, and an amount that may be in thousands
    /// (`1.000`) is refused.
    pub decimal: Option<String>,
    /// Whether whole parts are grouped in threes.
    #[serde(default)]
    pub grouped: bool,
    /// Whether amounts are major units (`12.50`) or minor units (`1250`).
    #[serde(default)]
    pub unit: Unit,
    /// The column of the currency.
    pub currency: Option<Column>,
    /// The currency of every row, where no column says it.
    pub currency_is: Option<String>,
    /// The column of the running balance, which then proves the rows.
    pub balance: Option<Column>,
    /// The column of the account.
    pub account: Option<Column>,
    /// The column of the PSP's own id of the payment.
    pub psp_reference: Option<Column>,
    /// The column of the kind of row.
    pub kind: Option<Column>,
    /// The column of the amount before fees, signed.
    pub gross: Option<Column>,
    /// The column of the fee; what was taken is positive.
    pub fee: Option<Column>,
    /// Columns that carry references.
    #[serde(default)]
    pub tag: Vec<TagSettings>,
    /// Rows that are no movement: `{ column = 1, is = ["H"] }`.
    #[serde(default)]
    pub ignore: Vec<TestSettings>,
    /// Rows that were booked, where a column says so; the others are pending.
    pub booked: Option<TestSettings>,
    /// The row that counts and sums up the others.
    pub trailer: Option<TrailerSettings>,
    /// Rows that belong together and must come to nothing, or to what was paid out.
    pub batch: Option<BatchSettings>,
    /// What a file lists: what settled, or every attempt, so that what it does not name was not
    /// attempted on its day. Of attempts, `booked` says which moved money; without it all did.
    #[serde(default)]
    pub covers: Covers,
}

fn yes() -> bool {
    true
}

/// A field at a fixed place of the line.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldSettings {
    /// Its name, for the settings that name columns.
    pub name: String,
    /// Its first character, from 1.
    pub first: usize,
    /// Its last character.
    pub last: usize,
}

/// A column, by its name in the header row or by its number from 1.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Column {
    /// Its number, from 1.
    Number(usize),
    /// Its name; case and punctuation are ignored.
    Name(String),
}

impl Column {
    /// For messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Number(number) => format!("column {number}"),
            Self::Name(name) => name.clone(),
        }
    }
}

/// In which unit amounts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// `12.50`.
    #[default]
    Major,
    /// `1250`, in the currency's own minor unit.
    Minor,
}

/// What a file lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// What settled.
    #[default]
    Settled,
    /// Every attempt.
    Attempts,
}

/// Which values of a column are credits and which debits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlagSettings {
    /// The column.
    pub column: Column,
    /// Its values of money in.
    pub credit: Vec<String>,
    /// Its values of money out.
    pub debit: Vec<String>,
}

/// A column that carries a reference.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TagSettings {
    /// The column.
    pub column: Column,
    /// What it is: `end_to_end_id`, `merchant_reference`, `customer_reference`, `order_id`, `text`
    /// and so on.
    pub kind: String,
    /// A regular expression whose one group is the reference; without it the whole field is.
    pub pattern: Option<String>,
}

/// Rows with one of these values in this column.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestSettings {
    /// The column.
    pub column: Column,
    /// Its values.
    pub is: Vec<String>,
}

/// Where the trailer is and what it says. Its columns are numbers: it rarely follows the header.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrailerSettings {
    /// The column that tells it from other rows.
    pub column: usize,
    /// That column's values.
    pub is: Vec<String>,
    /// Where the count of rows stands.
    pub count: Option<usize>,
    /// Where the sum stands, credits less debits.
    pub sum: Option<usize>,
    /// Where the sum of credits stands.
    pub credits: Option<usize>,
    /// Where the sum of debits stands, without a sign.
    pub debits: Option<usize>,
}

/// What holds of rows that belong together, in each currency.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchSettings {
    /// The column that names the batch.
    pub column: Column,
    /// The rows that pay it out; their amount, whichever its sign, is what the others add up to.
    /// Without them, all of a batch must come to nothing.
    pub payout: Option<TestSettings>,
}

/// How amounts and their way are written.
#[derive(Debug, Clone)]
pub enum Amounts {
    /// One column with a sign.
    Signed(Column),
    /// One column without, and the values of another that are credits and debits.
    Flagged(Column, Column, Vec<String>, Vec<String>),
    /// Money out and money in.
    TwoSided(Column, Column),
}

/// How days are written.
#[derive(Debug, Clone)]
pub enum Dates {
    /// By a pattern of `strftime`.
    Pattern(String),
    /// In whichever way, with this order of day and month.
    Any(Order),
}

/// Which currency a row has.
#[derive(Debug, Clone)]
pub enum CurrencyOf {
    /// This column's.
    Column(Column),
    /// This one.
    All(Currency),
}

/// How rows are cut.
#[derive(Debug, Clone)]
pub enum Cut {
    /// By a delimiter; none: the header row shows it.
    Delimited(Option<u8>),
    /// By the characters of the line, each range named.
    Fixed(Vec<(String, Range<usize>)>),
}

/// A column that carries a reference, checked.
#[derive(Debug, Clone)]
pub struct TagRule {
    /// The column.
    pub column: Column,
    /// What it is.
    pub kind: TagKind,
    /// Which part of the field.
    pub pattern: Option<Regex>,
}

/// What stands beside a table and says what its rows come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Where.
    pub line: u64,
    /// What it is.
    pub what: Declares,
    /// What it says.
    pub value: String,
}

/// What is declared beside a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declares {
    /// The balance before all rows.
    Opening,
    /// The balance after them.
    Closing,
    /// How many rows there are.
    Count,
    /// What came in.
    In,
    /// What went out.
    Out,
}

/// A described format, checked.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// How rows are cut.
    pub cut: Cut,
    /// Whether a row names the columns.
    pub header: bool,
    /// Rows above the body, where none does.
    pub skip: usize,
    /// The encoding, where the file's marks do not tell.
    pub encoding: Option<String>,
    /// Booking date.
    pub date: Option<Column>,
    /// Value date.
    pub value_date: Option<Column>,
    /// How both are written.
    pub dates: Dates,
    /// The amount and its way.
    pub amounts: Amounts,
    /// Whether every sign is turned around.
    pub inverted: bool,
    /// How numbers are written; none where they are minor units.
    pub numerals: Option<Numerals>,
    /// The decimal mark is the usual one, and nobody said so.
    pub assumes_mark: bool,
    /// The currency.
    pub currency: CurrencyOf,
    /// The running balance.
    pub balance: Option<Column>,
    /// The account.
    pub account: Option<Column>,
    /// The account of every row, where no column says it and a row above the table does.
    pub account_is: Option<String>,
    /// The PSP's id.
    pub psp_reference: Option<Column>,
    /// The kind of row.
    pub kind: Option<Column>,
    /// Before fees.
    pub gross: Option<Column>,
    /// Fees.
    pub fee: Option<Column>,
    /// References.
    pub tags: Vec<TagRule>,
    /// Rows that are no movement.
    pub ignore: Vec<TestSettings>,
    /// Rows that were booked; others are pending.
    pub booked: Option<TestSettings>,
    /// Where nobody described the file: the columns whose words say whether a row was booked.
    pub status: Vec<Column>,
    /// And those that say which way money went, beside amounts that carry their sign.
    pub beside: Vec<Column>,
    /// And those that say of what kind a row is.
    pub kinds: Vec<Column>,
    /// The fee was taken besides the amount: the balance shows it.
    pub less_fee: bool,
    /// It carries the sign of what it moved: a minus where it was taken.
    pub fee_signed: bool,
    /// The trailer.
    pub trailer: Option<TrailerSettings>,
    /// Batches.
    pub batch: Option<BatchSettings>,
    /// It lists every attempt, and not only what settled.
    pub covers_attempts: bool,
    /// What is declared above its rows.
    pub declared: Vec<Declared>,
    /// Columns of currencies that must say that of the row, and the one of the balance where its
    /// name says it.
    pub agree: Vec<Column>,
    /// As [`Self::agree`].
    pub held_in: Option<Currency>,
    /// Nobody described it: what proves its signs must be in the file itself.
    pub recognised: bool,
}

/// A mistake of a description: the setting, and what is wrong.
pub type Misfit = (&'static str, String);

impl Dates {
    /// The day that a text says; none where it is not written so. More may stand behind it, as a
    /// time, and none of its own figures.
    pub fn read(&self, text: &str) -> Option<NaiveDate> {
        let pattern = match self {
            Self::Any(order) => return day(text, *order),
            Self::Pattern(pattern) => pattern,
        };
        let (date, rest) = NaiveDate::parse_and_remainder(text, pattern).ok()?;
        let own = text.strip_suffix(rest).unwrap_or(text);
        // Where nothing stands between the numbers, one that lacks a figure takes the next one's.
        let is_apart = own.chars().any(|c| !c.is_ascii_digit());
        let midnight = date.and_time(NaiveTime::MIN).and_utc();
        let is_whole = is_apart || own.len() == midnight.format(pattern).to_string().len();
        let goes_on = rest.starts_with(|c: char| c.is_alphanumeric() && !matches!(c, 'T' | 'Z'));
        (YEARS.contains(&date.year()) && is_whole && !goes_on).then_some(date)
    }
}

impl FormatSettings {
    /// Checks the description.
    ///
    /// # Errors
    /// With everything that is wrong with it.
    pub fn check(&self) -> Result<Table, Vec<Misfit>> {
        let mut wrong = Vec::new();
        let cut = keep(self.cut(), &mut wrong);
        let amounts = keep(self.amounts(), &mut wrong);
        let currency = keep(self.currency(), &mut wrong);
        let numerals = keep(self.numerals(), &mut wrong);
        let dates = keep(self.dates(), &mut wrong);
        let tags = keep(self.tags(), &mut wrong);
        wrong.extend(self.columns());
        wrong.extend(self.overlaps());
        wrong.extend(self.words());
        wrong.extend(self.attempts());
        let all = (cut, amounts, currency, numerals, dates, tags);
        let (Some(cut), Some(amounts), Some(currency), Some(numerals), Some(dates), Some(tags)) =
            all
        else {
            return Err(wrong);
        };
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Table {
            name: self.name.clone(),
            cut,
            header: self.header && self.fixed.is_empty(),
            skip: self.skip,
            encoding: self.encoding.clone(),
            date: self.date.clone(),
            value_date: self.value_date.clone(),
            dates,
            amounts,
            inverted: self.inverted,
            numerals,
            assumes_mark: self.decimal.is_none(),
            currency,
            balance: self.balance.clone(),
            account: self.account.clone(),
            account_is: None,
            psp_reference: self.psp_reference.clone(),
            kind: self.kind.clone(),
            gross: self.gross.clone(),
            fee: self.fee.clone(),
            tags,
            ignore: self.ignore.clone(),
            booked: self.booked.clone(),
            status: Vec::new(),
            beside: Vec::new(),
            kinds: Vec::new(),
            less_fee: false,
            fee_signed: false,
            trailer: self.trailer.clone(),
            batch: self.batch.clone(),
            covers_attempts: self.covers == Covers::Attempts,
            declared: Vec::new(),
            agree: Vec::new(),
            held_in: None,
            recognised: false,
        })
    }

    /// What a file that proves absence must show: a row that was cut off would be one that was
    /// never attempted, and would be charged again.
    fn attempts(&self) -> Vec<Misfit> {
        if self.covers == Covers::Settled {
            return Vec::new();
        }
        let mut wrong = Vec::new();
        let mut need = |is_there: bool, text: &str| {
            if !is_there {
                wrong.push(("covers", format!("a file that lists every attempt needs {text}")));
            }
        };
        need(self.date.is_some(), "`date`: of which day an attempt was");
        need(!self.tag.is_empty(), "`tag`: what an attempt is known by");
        need(
            self.trailer.as_ref().is_some_and(|trailer| trailer.count.is_some()),
            "a `trailer` with a `count`, which shows that no row is lacking",
        );
        wrong
    }

    fn cut(&self) -> Result<Cut, Misfit> {
        if !self.fixed.is_empty() {
            if self.delimiter.is_some() {
                let text = "stands beside `fixed`; a file has one or the other";
                return Err(("delimiter", text.to_owned()));
            }
            let fields = self.fixed.iter().map(|field| {
                let start = field.first.checked_sub(1).filter(|_| field.first <= field.last);
                let start = start.ok_or_else(|| {
                    let name = &field.name;
                    ("fixed", format!("`{name}`: expected first and last character, from 1"))
                })?;
                Ok((field.name.clone(), start..field.last))
            });
            return fields.collect::<Result<_, _>>().map(Cut::Fixed);
        }
        let delimiter = match self.delimiter.as_deref() {
            None if self.header => None,
            None => {
                let text = "is needed where no header row shows it";
                return Err(("delimiter", text.to_owned()));
            }
            Some(given) => match given.as_bytes() {
                [byte] if *byte != b'"' && !byte.is_ascii_alphanumeric() => Some(*byte),
                _other => {
                    return Err(("delimiter", format!("`{given}`: expected , ; | or a tab")));
                }
            },
        };
        Ok(Cut::Delimited(delimiter))
    }

    fn amounts(&self) -> Result<Amounts, Misfit> {
        match (&self.amount, &self.debit, &self.credit, &self.flag) {
            (Some(amount), None, None, None) => Ok(Amounts::Signed(amount.clone())),
            (Some(amount), None, None, Some(flag)) => {
                let FlagSettings { column, credit, debit } = flag.clone();
                if credit.is_empty() && debit.is_empty() {
                    let text = "has neither values of credits nor of debits";
                    return Err(("flag", text.to_owned()));
                }
                Ok(Amounts::Flagged(amount.clone(), column, credit, debit))
            }
            (None, Some(debit), Some(credit), None) => {
                Ok(Amounts::TwoSided(debit.clone(), credit.clone()))
            }
            _other => {
                let text = "expected `amount`, or `amount` and `flag`, or `debit` and `credit`";
                Err(("amount", text.to_owned()))
            }
        }
    }

    fn currency(&self) -> Result<CurrencyOf, Misfit> {
        match (&self.currency, &self.currency_is) {
            (Some(column), None) => Ok(CurrencyOf::Column(column.clone())),
            (None, Some(code)) => match Currency::parse_any(code) {
                Ok(currency) => Ok(CurrencyOf::All(currency)),
                Err(unknown) => Err(("currency_is", unknown.to_string())),
            },
            _both => {
                Err(("currency", "expected `currency` or `currency_is`, one of them".to_owned()))
            }
        }
    }

    fn numerals(&self) -> Result<Option<Numerals>, Misfit> {
        match (self.unit, self.decimal.as_deref().unwrap_or(".")) {
            (Unit::Minor, _) => Ok(None),
            (Unit::Major, ".") => Ok(Some(Numerals { decimal: b'.', grouped: self.grouped })),
            (Unit::Major, ",") => Ok(Some(Numerals { decimal: b',', grouped: self.grouped })),
            (Unit::Major, other) => Err(("decimal", format!("`{other}`: expected . or ,"))),
        }
    }

    fn dates(&self) -> Result<Dates, Misfit> {
        match &self.date_pattern {
            Some(pattern) => {
                let mut items = chrono::format::StrftimeItems::new(pattern);
                if items.any(|item| matches!(item, chrono::format::Item::Error)) {
                    let text = format!("`{pattern}`: expected a pattern such as %d.%m.%Y");
                    return Err(("date_pattern", text));
                }
                let dates = Dates::Pattern(pattern.clone());
                // What it writes of a day it must read as that day.
                let day = NaiveDate::from_ymd_opt(2033, 12, 25).unwrap_or_default();
                let noon = day.and_hms_opt(13, 14, 15).unwrap_or_default().and_utc();
                let written = noon.format(pattern).to_string();
                if dates.read(&written) != Some(day) {
                    let text = format!("`{pattern}`: expected day, month and year, as %d.%m.%Y");
                    return Err(("date_pattern", text));
                }
                Ok(dates)
            }
            None if self.date.is_none() && self.value_date.is_none() => {
                Ok(Dates::Any(Order::Unknown))
            }
            None => Err(("date_pattern", "is needed to read the dates".to_owned())),
        }
    }

    fn tags(&self) -> Result<Vec<TagRule>, Misfit> {
        let rules = self.tag.iter().map(|tag| {
            let kind = tag_kind(&tag.kind, &TagKind::ALL).map_err(|text| ("tag", text))?;
            let pattern = tag.pattern.as_deref().map(|text| {
                let regex = Regex::new(text).map_err(|error| ("tag", error.to_string()))?;
                // The whole match is the first of them.
                match regex.captures_len() {
                    2 => Ok(regex),
                    _other => Err(("tag", format!("`{text}`: expected one group in brackets"))),
                }
            });
            Ok(TagRule { column: tag.column.clone(), kind, pattern: pattern.transpose()? })
        });
        rules.collect()
    }

    /// Columns that cannot be found in any file: numbers where names are, or 0.
    fn columns(&self) -> Vec<Misfit> {
        let named = self.header || !self.fixed.is_empty();
        let wrong = |column: &Column| match column {
            Column::Number(0) => Some("columns are numbered from 1".to_owned()),
            Column::Number(number) if !self.fixed.is_empty() && *number > self.fixed.len() => {
                Some(format!("column {number} is not among the {} of `fixed`", self.fixed.len()))
            }
            Column::Name(name) if !named => {
                Some(format!("`{name}`: without a header row a column is a number"))
            }
            Column::Name(name) if !self.fixed.is_empty() => {
                let known = self.fixed.iter().any(|own| normal(&own.name) == normal(name));
                (!known).then(|| format!("`{name}` is not among `fixed`"))
            }
            _good => None,
        };
        let columns = self.all_columns();
        columns.into_iter().filter_map(|(field, c)| Some((field, wrong(c)?))).collect()
    }

    /// Fields at fixed places that share a character, where what they say is money or a day.
    fn overlaps(&self) -> Option<Misfit> {
        let own = [&self.date, &self.amount, &self.debit, &self.credit, &self.balance];
        let more = [&self.currency, &self.gross, &self.fee, &self.value_date];
        let flag = self.flag.as_ref().map(|flag| &flag.column);
        let columns = own.into_iter().chain(more).filter_map(Option::as_ref).chain(flag);
        let field = |column: &Column| match column {
            Column::Number(number) => self.fixed.get(number.checked_sub(1)?),
            Column::Name(name) => self.fixed.iter().find(|own| normal(&own.name) == normal(name)),
        };
        let fields: Vec<&FieldSettings> = columns.filter_map(field).collect();
        let shares = |one: &FieldSettings, other: &FieldSettings| {
            one.name != other.name && one.first <= other.last && other.first <= one.last
        };
        let pair = fields.iter().enumerate().find_map(|(at, one)| {
            let other = fields.iter().skip(at.saturating_add(1)).find(|other| shares(one, other));
            other.map(|other| (one, other))
        });
        let (one, other) = pair?;
        Some(("fixed", format!("`{}` and `{}` share a character", one.name, other.name)))
    }

    /// Words that say nothing, or two things.
    fn words(&self) -> Vec<Misfit> {
        let mut wrong = Vec::new();
        if self.name.trim().is_empty() {
            wrong.push(("name", "expected a name, for `format` of a [[source]]".to_owned()));
        }
        if let Some(encoding) = self.encoding.as_deref().filter(|name| !is_encoding(name)) {
            let text = format!("`{encoding}` is no encoding; expected one as windows-1252");
            wrong.push(("encoding", text));
        }
        if self.debit.is_some() && self.debit == self.credit {
            wrong.push(("credit", "is the column of `debit`".to_owned()));
        }
        let flag = self.flag.iter();
        let both = flag.flat_map(|flag| flag.credit.iter().map(move |word| (word, &flag.debit)));
        let mut both =
            both.filter(|(word, debit)| debit.iter().any(|other| other.eq_ignore_ascii_case(word)));
        if let Some((word, _)) = both.next() {
            wrong.push(("flag", format!("`{word}` is both a credit and a debit")));
        }
        wrong
    }

    fn all_columns(&self) -> Vec<(&'static str, &Column)> {
        let single = [
            ("date", &self.date),
            ("value_date", &self.value_date),
            ("amount", &self.amount),
            ("debit", &self.debit),
            ("credit", &self.credit),
            ("currency", &self.currency),
            ("balance", &self.balance),
            ("account", &self.account),
            ("psp_reference", &self.psp_reference),
            ("kind", &self.kind),
            ("gross", &self.gross),
            ("fee", &self.fee),
        ];
        let mut all: Vec<_> =
            single.into_iter().filter_map(|(field, c)| Some((field, c.as_ref()?))).collect();
        all.extend(self.flag.iter().map(|flag| ("flag", &flag.column)));
        all.extend(self.tag.iter().map(|tag| ("tag", &tag.column)));
        all.extend(self.ignore.iter().map(|test| ("ignore", &test.column)));
        all.extend(self.booked.iter().map(|test| ("booked", &test.column)));
        let batch = self.batch.iter();
        all.extend(batch.clone().map(|batch| ("batch", &batch.column)));
        all.extend(batch.filter_map(|b| Some(("batch", &b.payout.as_ref()?.column))));
        all
    }
}

fn keep<T>(found: Result<T, Misfit>, wrong: &mut Vec<Misfit>) -> Option<T> {
    found.map_err(|misfit| wrong.push(misfit)).ok()
}
