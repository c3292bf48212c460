//! A bank's CSV export that nobody described, where its header row and its own rows leave no doubt:
//! one date, one amount (signed, or debit and credit, or with a flag), its currency, a text.
//!
//! Names of columns are known in a dozen languages. The decimal mark, and which of day and month
//! stands first, must show in the rows; a currency must stand in a column or in the name of the
//! amount's. A running balance decides between a sign and its opposite, and then proves every row.
//! Whatever stays open makes the file an unknown format, and [`seen`] says what to describe.

use crate::model::money::Currency;
use crate::model::settlement::{EntryStatus, Problem, TagKind};
use crate::settlement::Parse;
use crate::settlement::balance::Chain;
use crate::settlement::bank_words::{self as words, Deed};
use crate::settlement::numeral::{Numerals, Order, day, decimal_of, is_day, order_of};
use crate::settlement::sheet::{self, Layout, normal};
use crate::settlement::table::{Amounts, Column, CurrencyOf, Cut, Dates, Declared, Table};
use crate::settlement::table_rows;
use crate::settlement::text::{Source, unreadable};

/// Rows of the head that are looked at.
const LOOKED_AT: usize = 2_000;

/// What PSPs call the parts of what their API tells.
const OF_AN_API: &[&str] = &["id", "amount", "currency", "created"];

/// A head this long was cut somewhere: its last row may be half a row.
const CUT: usize = 60 * 1024;

/// The columns of a bank that writes no header row, and what they are.
const BARE: [&str; 6] =
    ["account", "buchungstext", "buchungsdatum", "valutadatum", "betrag", "währung"];

/// What the header and the first rows say together.
pub fn recognise(head: &str) -> Option<String> {
    infer(head).or_else(|| bare(head)).map(|_| String::new())
}

/// Begins to read.
pub fn open(mut source: Source) -> Box<dyn Parse> {
    let head = match source.head() {
        Ok(head) => String::from_utf8_lossy(head).into_owned(),
        Err(error) => return sheet::refused(unreadable(1, &error)),
    };
    match infer(&head) {
        Some((table, layout)) => table_rows::open_at(table, layout, source),
        None => match bare(&head) {
            Some((table, layout)) => table_rows::open_bare(table, layout, source),
            None => sheet::refused(seen(&head).unwrap_or_else(|| {
                Problem::error(1, "header row", "names of columns that are known", "none")
            })),
        },
    }
}

/// What a file of rows shows that nothing recognised, for whoever describes it.
pub fn seen(head: &str) -> Option<Problem> {
    let head = head.trim_start_matches('\u{feff}');
    if head.is_empty() {
        return Some(Problem::error(0, "file", "a settlement file", "nothing: it is empty"));
    }
    if head.trim_start().starts_with(['<', '{', '[', ':']) {
        return None;
    }
    let tried = [b'\t', b';', b'|', b','].into_iter().filter_map(|delimiter| {
        let rows = sheet::rows_of(head, delimiter, 60);
        let fields: usize = rows.iter().map(Vec::len).sum();
        let row = rows.into_iter().find(|row| row.len() >= 3)?;
        Some((delimiter, row, fields))
    });
    let (delimiter, row, _) = tried.max_by_key(|(_, _, fields)| *fields)?;
    let columns: Vec<String> = row.iter().map(|name| name.chars().take(60).collect()).collect();
    let expected = "columns whose names say date, amount, currency and text; or --config FILE \
                    --format NAME with a [[format]] that names `date`, `amount` (or `debit` and \
                    `credit`) and `currency` (or `currency_is`)";
    let names: Vec<String> = row.iter().map(|name| normal(name)).collect();
    let lacks = lacking(&names);
    let lacks = match lacks.as_slice() {
        [] => "each is there, but which of several, or what the rows say, is left open".to_owned(),
        lacks => format!("none is known of: {}", lacks.join(", ")),
    };
    let found = format!("by `{}`: {} ({lacks})", char::from(delimiter), columns.join(" | "));
    Some(Problem::error(1, "header row", expected, found))
}

/// Which of the needed columns no name is known of.
fn lacking(names: &[String]) -> Vec<&'static str> {
    let split: Vec<(String, Option<Currency>)> =
        names.iter().map(|name| without_currency(name)).collect();
    let any = |known: &[&str]| split.iter().any(|(stem, _)| known.contains(&stem.as_str()));
    let is_proven = any(words::PROVEN_AMOUNT) && any(words::BALANCE);
    let has_amount = any(words::AMOUNT) || is_proven || any(words::DEBIT) && any(words::CREDIT);
    let is_named =
        words::is_in_dollars(names) || split.iter().any(|(_, currency)| currency.is_some());
    let mut tags = words::TAGS.iter().map(|(_, known)| *known).chain([words::TEXT_ALONE]);
    let has_tag = tags.any(|known| !all(names, known).is_empty());
    let needed = [
        ("date", !all(names, words::DATE).is_empty()),
        ("amount", has_amount),
        ("currency", is_named || !all(names, words::CURRENCY).is_empty()),
        ("text or reference", has_tag),
    ];
    needed.into_iter().filter(|(_, is_there)| !is_there).map(|(what, _)| what).collect()
}

/// The columns that a bank's export needs, by what they are.
struct Roles {
    date: usize,
    value_date: Option<usize>,
    amount: Option<usize>,
    sides: Option<(usize, usize)>,
    /// An amount that stands beside the two sides, and must say the same.
    beside: Option<usize>,
    /// Amounts in a currency of their own.
    others: Vec<usize>,
    /// The file speaks of a card: its issuer may write what was bought without a minus.
    card: bool,
    /// Of one issuer that does so.
    issuers: bool,
    /// Of what kind a row is.
    kinds: Vec<usize>,
    /// Which way money went, by the name.
    flags: Vec<usize>,
    /// What may say so.
    ways: Option<usize>,
    currencies: Vec<usize>,
    /// How many columns may be a currency, that of a foreign amount too.
    currency_like: usize,
    named_currency: Option<Currency>,
    /// The currency that the name of the balance says.
    of_balance: Option<Currency>,
    balance: Option<usize>,
    account: Option<usize>,
    fee: Option<usize>,
    /// What may be one, where the balances prove it.
    taken: Option<usize>,
    statuses: Vec<usize>,
    tags: Vec<(usize, TagKind)>,
}

/// The only column that has one of these names; none where there are two.
fn only(names: &[String], known: &[&str]) -> Option<usize> {
    let mut found = names.iter().enumerate().filter(|(_, name)| known.contains(&name.as_str()));
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at)
}

/// Every column with one of these names.
fn all(names: &[String], known: &[&str]) -> Vec<usize> {
    let found = names.iter().enumerate().filter(|(_, name)| known.contains(&name.as_str()));
    found.map(|(at, _)| at).collect()
}

/// The first in the order of `known`.
fn first(names: &[String], known: &[&str]) -> Option<usize> {
    known.iter().find_map(|known| names.iter().position(|name| name == known))
}

/// Amounts of another name than the one that moved the account has: `original amount`.
fn others(stems: &[String], whole: Option<usize>) -> Vec<usize> {
    let own = [words::AMOUNT, words::DEBIT, words::CREDIT, words::BALANCE, words::FEE];
    let is_own = |name: &str| own.iter().any(|known| known.contains(&name));
    let names = stems.iter().enumerate().filter(|(at, _)| Some(*at) != whole);
    names
        .filter(|(_, name)| !is_own(name.as_str()) && words::is_amount(name))
        .map(|(at, _)| at)
        .collect()
}

/// The columns of references and texts; where none is a text, those that may be one.
fn tags(names: &[String]) -> Vec<(usize, TagKind)> {
    let named = names.iter().enumerate().filter_map(|(at, name)| {
        let known = words::TAGS.iter().find(|(_, known)| known.contains(&name.as_str()));
        known.map(|(kind, _)| (at, *kind))
    });
    let mut tags: Vec<(usize, TagKind)> = named.collect();
    if tags.iter().all(|(_, kind)| *kind != TagKind::Text) {
        tags.extend(all(names, words::TEXT_ALONE).into_iter().map(|at| (at, TagKind::Text)));
    }
    tags
}

/// A name without the currency at its end: `amount czk`, `betrag in eur`, `määrä euroa`.
fn without_currency(name: &str) -> (String, Option<Currency>) {
    if let Some(stem) = name.strip_suffix(" euroa").or_else(|| name.strip_suffix(" euros")) {
        return (stem.to_owned(), Currency::parse("EUR").ok());
    }
    let Some((stem, code)) = name.rsplit_once(' ') else { return (name.to_owned(), None) };
    match Currency::parse(code) {
        Ok(currency) if code.len() == 3 => {
            let bare = stem.strip_suffix(" in").or_else(|| stem.strip_suffix(" en"));
            (bare.unwrap_or(stem).to_owned(), Some(currency))
        }
        _word => (name.to_owned(), None),
    }
}

impl Roles {
    /// Whether more than signs shows which way money went: in a card's file they are its issuer's.
    fn shows_ways(&self) -> bool {
        self.balance.is_some() || self.sides.is_some()
    }

    fn of(names: &[String]) -> Option<Self> {
        let date = first(names, words::DATE)?;
        let split: Vec<(String, Option<Currency>)> =
            names.iter().map(|name| without_currency(name)).collect();
        let stems: Vec<String> = split.iter().map(|(stem, _)| stem.clone()).collect();
        let any = |known: &[&str]| stems.iter().any(|name| known.contains(&name.as_str()));
        let balance = only(&stems, words::BALANCE);
        let is_alone = !any(words::AMOUNT) && !any(words::DEBIT) && !any(words::CREDIT);
        let of_account = only(&stems, words::OF_ACCOUNT);
        let proven = of_account.or_else(|| only(&stems, words::PROVEN_AMOUNT));
        let proven = proven.filter(|_| is_alone && balance.is_some());
        let whole = proven.or_else(|| only(&stems, words::AMOUNT));
        let sides = only(&stems, words::DEBIT).zip(only(&stems, words::CREDIT));
        let (amount, beside) = if sides.is_some() { (None, whole) } else { (whole, None) };
        // Two columns of a kind: which one moved the account is not certain.
        if whole.is_none() && any(words::AMOUNT) || amount.is_some() == sides.is_some() {
            return None;
        }
        // An amount beside one side alone: either may have moved it.
        if amount.is_some() && (any(words::DEBIT) || any(words::CREDIT)) {
            return None;
        }
        // The currency beside it may be that of the foreign amount, and not of the booked one.
        if any(words::FOREIGN) {
            return None;
        }
        // Objects of an API, whose amounts are minor units.
        if names.iter().any(|name| name == "object") {
            return None;
        }
        let named = |at: usize| split.get(at).and_then(|(_, currency)| *currency);
        let of_balance = balance.and_then(named);
        let named_currency = match (amount, sides) {
            (Some(amount), _) => named(amount),
            (None, Some((debit, credit))) => {
                named(debit).filter(|currency| named(credit) == Some(*currency))
            }
            (None, None) => None,
        };
        let tags = tags(names);
        if tags.is_empty() {
            return None;
        }
        Some(Self {
            date,
            value_date: first(names, words::VALUE_DATE),
            amount,
            sides,
            beside,
            others: others(&stems, whole),
            card: any(words::CARD),
            issuers: sheet::has(names, words::ISSUERS),
            kinds: all(names, words::KINDS),
            currency_like: names.iter().filter(|name| words::is_currency(name)).count(),
            flags: all(names, words::FLAG),
            ways: only(names, words::WAYS),
            currencies: all(names, words::CURRENCY),
            named_currency,
            of_balance,
            balance,
            account: first(names, words::ACCOUNT).or_else(|| words::own_beside(names)),
            fee: only(&stems, words::FEE),
            taken: stems.iter().position(|name| words::may_be_taken(name)),
            statuses: all(names, words::STATUS),
            tags,
        })
    }
}

fn infer(head: &str) -> Option<(Table, Layout)> {
    if head.trim_start().starts_with(['<', '{']) {
        return None;
    }
    let layout = sheet::find(head, |names| Roles::of(names).is_some())?;
    let mut roles = Roles::of(&layout.names)?;
    let mut rows = sheet::rows_of(head, layout.delimiter, LOOKED_AT);
    if head.len() >= CUT || rows.len() == LOOKED_AT {
        rows.pop();
    }
    let rows: Vec<Vec<String>> = rows.into_iter().skip(layout.above.saturating_add(1)).collect();
    // A word for a currency in one language is one for a day in others.
    roles.currencies.retain(|at| !holds_days(&rows, *at));
    if roles.named_currency.is_none() && roles.currencies.is_empty() {
        let in_dollars = words::is_in_dollars(&layout.names);
        let dollar = || Currency::parse("USD").ok().filter(|_| in_dollars);
        let said = || currency_above(head, &layout).filter(|_| roles.shows_ways());
        let of_sides = euro_of(&roles, &layout).or(roles.of_balance);
        roles.named_currency = of_sides.or_else(dollar).or_else(said);
    }
    let table = Inference { head, roles: &roles, layout: &layout, rows: &rows }.table()?;
    Some((table, layout))
}

/// Whether a column holds days, and nothing else.
fn holds_days(rows: &[Vec<String>], at: usize) -> bool {
    let values = rows.iter().filter_map(|row| row.get(at)).filter(|text| !text.is_empty());
    let mut values = values.peekable();
    values.peek().is_some() && values.all(|text| is_day(text))
}

/// A file without a header row whose rows leave no doubt: each has the own IBAN, a text, two days,
/// an amount and its currency, and nothing else.
fn bare(head: &str) -> Option<(Table, Layout)> {
    let is_text = |c: char| !c.is_whitespace() && !matches!(c, '\u{1a}' | '\0');
    let cut = |delimiter: u8| {
        let mut rows = sheet::rows_of(head, delimiter, LOOKED_AT);
        if head.len() >= CUT || rows.len() == LOOKED_AT {
            rows.pop();
        }
        rows.retain(|row| row.iter().any(|field| field.contains(is_text)));
        let is_sure = !rows.is_empty() && rows.iter().all(|row| is_bare(row));
        is_sure.then_some((delimiter, rows))
    };
    let (delimiter, rows) = [b';', b'\t', b'|', b','].into_iter().find_map(cut)?;
    let names: Vec<String> = BARE.iter().map(|name| (*name).to_owned()).collect();
    let layout = Layout { delimiter, above: 0, shown: names.clone(), names };
    let roles = Roles::of(&layout.names)?;
    let table = Inference { head, roles: &roles, layout: &layout, rows: &rows }.table()?;
    Some((table, layout))
}

/// Whether a row has what the columns of [`BARE`] hold.
fn is_bare(row: &[String]) -> bool {
    let [account, text, booked, value, amount, currency] = row else { return false };
    let is_dotted = |day: &str| is_day(day) && day.contains('.');
    let digits = amount.trim_start_matches(['-', '+']);
    let is_money = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.contains(',');
    let is_code = currency.len() == 3 && Currency::parse_any(currency).is_ok();
    is_iban(account)
        && !text.is_empty()
        && is_dotted(booked)
        && is_dotted(value)
        && is_money
        && is_code
}

/// Whether a text is an IBAN by its check digits.
fn is_iban(text: &str) -> bool {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (Some(first), Some(rest)) = (text.get(..4), text.get(4..)) else { return false };
    if !(15..=34).contains(&text.len()) || !first.starts_with(|c: char| c.is_ascii_uppercase()) {
        return false;
    }
    let sum = rest.chars().chain(first.chars()).try_fold(0_u32, |sum, c| {
        let digit = c.to_digit(36)?;
        let shift = if digit < 10 { 10 } else { 100 };
        Some(sum.saturating_mul(shift).saturating_add(digit).rem_euclid(97))
    });
    sum == Some(1)
}

/// The currency that rows above the header row say, where they say one.
fn currency_above(head: &str, layout: &Layout) -> Option<Currency> {
    let rows = sheet::rows_of(head, layout.delimiter, layout.above);
    let below = rows.iter().skip(1).map(Some).chain([None]);
    let said = rows.iter().zip(below).filter_map(|(row, below)| {
        let alone = || words::currency_below(row, below?);
        words::declared_currency(row).or_else(alone).or_else(|| words::titled_currency(row))
    });
    let said: Vec<Currency> = said.collect();
    let first = said.first()?;
    said.iter().all(|other| other == first).then_some(*first)
}

/// What stands above the header row and says what the rows come to.
fn declared(head: &str, layout: &Layout) -> Vec<Declared> {
    let rows = sheet::rows_of(head, layout.delimiter, layout.above);
    let said = rows.iter().filter_map(|row| words::declared(row.iter().map(String::as_str)));
    let declared = said.map(|(name, what, value)| {
        let mut lines = (1_u64..).zip(head.lines());
        let line = lines.find(|(_, line)| line.contains(name)).map_or(1, |(line, _)| line);
        Declared { line, what, value: value.to_owned() }
    });
    declared.collect()
}

/// `Betrag (€)`: the sign of the euro, which is no other currency's, in the names of the amounts.
fn euro_of(roles: &Roles, layout: &Layout) -> Option<Currency> {
    let sides = roles.sides.map(|(debit, credit)| [debit, credit]);
    let mut amounts = roles.amount.into_iter().chain(sides.into_iter().flatten());
    let says = |at: usize| layout.shown.get(at).is_some_and(|name| name.contains('€'));
    amounts.all(says).then(|| Currency::parse("EUR").ok()).flatten()
}

struct Inference<'a> {
    head: &'a str,
    roles: &'a Roles,
    layout: &'a Layout,
    rows: &'a [Vec<String>],
}

impl Inference<'_> {
    /// Rows that have a date.
    fn dated(&self) -> impl Iterator<Item = &[String]> {
        let is_dated = |row: &&[String]| row.get(self.roles.date).is_some_and(|d| is_day(d));
        self.rows.iter().map(Vec::as_slice).filter(is_dated)
    }

    /// The values of a column in rows that have a date.
    fn values(&self, at: usize) -> impl Iterator<Item = &str> {
        let values = self.dated().filter_map(move |row| row.get(at));
        values.map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The columns that say whether a row was booked, each by words that are known. Where there
    /// are several, one that has none of these words is of another kind.
    fn statuses(&self) -> Option<Vec<usize>> {
        let all = &self.roles.statuses;
        // Of what leaves open whether it was booked, the row is told.
        let known = |at: usize, value: &str| {
            let status = words::status_of(&self.layout.names, at, value);
            status.is_some() || words::is_doubtful(value)
        };
        let tells = |at: usize| {
            self.values(at).next().is_none() || self.values(at).any(|value| known(at, value))
        };
        let telling: Vec<usize> = all.iter().copied().filter(|at| tells(*at)).collect();
        let sure = telling.iter().all(|at| self.values(*at).all(|value| known(*at, value)));
        (sure && telling.is_empty() == all.is_empty()).then_some(telling)
    }

    /// Whether nothing in a row says that it was not booked.
    fn is_booked(&self, row: &[String]) -> bool {
        let day = row.get(self.roles.date).and_then(|day| words::unbooked(day));
        let is_other = |at: &usize| {
            let value = row.get(*at).map_or("", String::as_str);
            let status = words::status_of(&self.layout.names, *at, value);
            status.is_some_and(|status| status != EntryStatus::Booked) || words::is_doubtful(value)
        };
        day.is_none() && !self.roles.statuses.iter().any(is_other)
    }

    fn table(&self) -> Option<Table> {
        let (currency_at, currency) = self.currency()?;
        let numerals = self.numerals(currency)?;
        if !self.agrees(currency, numerals) {
            return None;
        }
        let mut table = self.plain(currency_at, currency, numerals)?;
        table.status = self.statuses()?.into_iter().map(number).collect();
        table.account = self.account().map(number);
        let is_open = self.roles.issuers && self.roles.balance.is_none();
        if is_open && !self.is_issuers(currency, numerals) {
            return None;
        }
        table.inverted = is_open || self.is_inverted(&table, currency, numerals);
        let taken = self.roles.fee.or(self.roles.taken).filter(|_| !table.inverted);
        if let Some(fee) = taken.filter(|fee| self.is_less_fee(&table, *fee, currency, numerals)) {
            (table.fee, table.less_fee) = (Some(number(fee)), true);
        }
        Some(table)
    }

    /// The own account: where another side is named, only a column that says the same in each row
    /// and does not stand behind that name.
    fn account(&self) -> Option<usize> {
        let at = self.roles.account?;
        let names = &self.layout.names;
        let is = |at: usize, known: &[&str]| {
            names.get(at).is_some_and(|name| known.contains(&name.as_str()))
        };
        let is_named = (0..names.len()).any(|other| is(other, words::OTHER_SIDE));
        if !is(at, words::EITHER_ACCOUNT) || !is_named {
            return Some(at);
        }
        let behind = at.checked_sub(1).is_some_and(|before| is(before, words::OTHER_SIDE));
        let mut values = self.dated().map(|row| row.get(at).map_or("", String::as_str));
        let first = values.next().unwrap_or_default();
        let is_one = !first.is_empty() && values.all(|other| other == first);
        (is_one && !behind).then_some(at)
    }

    fn plain(
        &self,
        currency_at: Option<usize>,
        currency: Currency,
        numerals: Numerals,
    ) -> Option<Table> {
        let roles = self.roles;
        let currency = match currency_at {
            Some(at) => CurrencyOf::Column(number(at)),
            None => CurrencyOf::All(currency),
        };
        Some(Table {
            name: String::new(),
            cut: Cut::Delimited(Some(self.layout.delimiter)),
            header: true,
            skip: 0,
            encoding: None,
            date: Some(number(roles.date)),
            value_date: roles.value_date.filter(|at| Some(*at) != currency_at).map(number),
            dates: Dates::Any(self.order()),
            amounts: self.amounts()?,
            inverted: false,
            numerals: Some(numerals),
            currency,
            balance: roles.balance.map(number),
            account: None,
            psp_reference: None,
            kind: None,
            gross: None,
            fee: roles.fee.map(number),
            tags: roles.tags.iter().flat_map(|(at, kind)| words::tag_rules(*at, *kind)).collect(),
            ignore: Vec::new(),
            booked: None,
            status: Vec::new(),
            beside: self.ways().into_iter().map(number).collect(),
            kinds: roles.kinds.iter().copied().map(number).collect(),
            less_fee: false,
            trailer: None,
            batch: None,
            covers_attempts: false,
            declared: declared(self.head, self.layout),
            recognised: true,
        })
    }

    /// The currency that the amount's own name says; else the column whose values are currencies,
    /// and the first of them. Several such columns must say the same in every row.
    fn currency(&self) -> Option<(Option<usize>, Currency)> {
        if let Some(currency) = self.roles.named_currency {
            return Some((None, currency));
        }
        let columns = &self.roles.currencies;
        if self.rows.is_empty() {
            // Without rows nothing is in any currency.
            return Some((columns.first().copied().map(Some)?, Currency::parse("EUR").ok()?));
        }
        if columns.is_empty() {
            return self.in_amounts().map(|currency| (None, currency));
        }
        let own = columns.iter().filter(|at| !self.is_of_other(**at));
        let known = own.filter_map(|at| {
            let all: Result<Vec<Currency>, _> = self.values(*at).map(Currency::parse_any).collect();
            all.ok().filter(|all| !all.is_empty()).map(|all| (*at, all))
        });
        let known: Vec<(usize, Vec<Currency>)> = known.collect();
        // Of those of the amount and of the balance, the one that stands behind the amount.
        let amount = self.roles.amount.or(self.roles.beside).unwrap_or(0);
        let (at, own) = known.iter().min_by_key(|(at, _)| (at.abs_diff(amount), *at < amount))?;
        let agree = known.iter().all(|(_, other)| other == own) && self.is_of_amount(*at);
        own.first().filter(|_| agree).map(|first| (Some(*at), *first))
    }

    /// Whether a column of currencies speaks of what moved the account: it stands nearer to that
    /// than to any other amount, or as near where each amount may have a currency of its own.
    fn is_of_amount(&self, at: usize) -> bool {
        let own = self.money_columns().into_iter().chain(self.roles.beside);
        let own = own.filter(|own| Some(*own) != self.roles.balance);
        let Some(near) = own.map(|own| own.abs_diff(at)).min() else { return false };
        let each = self.roles.currency_like > self.roles.others.len();
        self.roles.others.iter().all(|other| {
            let far = other.abs_diff(at);
            near < far || near == far && each
        })
    }

    /// Whether a column of currencies speaks of another amount than what moved the account: it
    /// stands nearer to that one.
    fn is_of_other(&self, at: usize) -> bool {
        let own = self.money_columns().into_iter().chain(self.roles.beside);
        let own = own.filter(|own| Some(*own) != self.roles.balance);
        let near = own.map(|own| own.abs_diff(at)).min();
        let other = self.roles.others.iter().map(|other| other.abs_diff(at)).min();
        near.zip(other).is_some_and(|(near, other)| other < near)
    }

    /// The currency that every amount carries: the sign of the euro, or the same code.
    fn in_amounts(&self) -> Option<Currency> {
        let amount = self.roles.amount?;
        let mut values = self.values(amount).map(currency_within);
        let first = values.next()??;
        values.all(|other| other == Some(first)).then_some(first)
    }

    /// Whether the amount beside two sides says in each row what they say.
    fn agrees(&self, currency: Currency, numerals: Numerals) -> bool {
        let (Some(beside), Some((debit, credit))) = (self.roles.beside, self.roles.sides) else {
            return true;
        };
        let read = |row: &[String], at: usize| match row.get(at).map_or("", String::as_str) {
            "" => Some(0),
            text => numerals.read(text, currency).ok().map(i64::saturating_abs),
        };
        self.dated().all(|row| match (read(row, beside), read(row, debit), read(row, credit)) {
            (Some(whole), Some(out), Some(into)) => whole == 0 || whole == out.saturating_add(into),
            _unreadable => false,
        })
    }

    fn money_columns(&self) -> Vec<usize> {
        let (amount, balance) = (self.roles.amount, self.roles.balance);
        let sides = self.roles.sides.map(|(debit, credit)| [debit, credit]);
        amount.into_iter().chain(balance).chain(sides.into_iter().flatten()).collect()
    }

    /// The decimal mark that the amounts show, by which then all of them read.
    fn numerals(&self, currency: Currency) -> Option<Numerals> {
        let columns = self.money_columns();
        let texts = || columns.iter().flat_map(|at| self.values(*at));
        let mut marks = texts().filter_map(decimal_of);
        let mark = marks.next();
        if marks.any(|other| Some(other) != mark) {
            return None;
        }
        let ambiguous = |text: &str| text.contains(['.', ',']);
        let decimal = match mark {
            Some(mark) => mark,
            // So the objects of an API are called, and then nothing shows that these are no cents.
            None if sheet::has(&self.layout.names, OF_AN_API) && currency.exponent() > 0 => {
                return None;
            }
            None if texts().any(ambiguous) => return None,
            None => b'.',
        };
        let numerals = Numerals { decimal, grouped: true };
        let reads = |text: &str| {
            let read = numerals.read(text, currency);
            !matches!(read, Err(crate::settlement::amount::Refused::NotANumber))
        };
        texts().all(reads).then_some(numerals)
    }

    fn order(&self) -> Order {
        let mut orders = self.values(self.roles.date).filter_map(order_of);
        match orders.next() {
            Some(order) if orders.all(|other| other == order) => order,
            _none => Order::Unknown,
        }
    }

    fn amounts(&self) -> Option<Amounts> {
        if let Some((debit, credit)) = self.roles.sides {
            return Some(Amounts::TwoSided(number(debit), number(credit)));
        }
        let amount = self.roles.amount?;
        if self.roles.issuers {
            return self.signed(amount);
        }
        let mut filled = self.flags();
        filled.retain(|at| self.values(*at).next().is_some());
        let is_known = |at: &usize| self.values(*at).all(|value| words::is_debit(value).is_some());
        let unsigned = self.values(amount).all(|text| !text.starts_with(['-', '+', '(']));
        match (filled.iter().copied().find(is_known), unsigned) {
            (Some(flag), true) => {
                let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
                let (credits, debits) = (own(words::CREDITS), own(words::DEBITS));
                Some(Amounts::Flagged(number(amount), number(flag), credits, debits))
            }
            (None, true) if !filled.is_empty() => None,
            // A column of other kinds, beside amounts that carry their sign.
            _signed => self.signed(amount),
        }
    }

    /// The columns that are flags by their name; one of kinds that holds nothing but a bank's two
    /// words for it, and one without a name behind the amount that is nothing else by its values.
    fn flags(&self) -> Vec<usize> {
        let mut flags = self.roles.flags.clone();
        let holds = |at: usize, is_way: fn(&str) -> bool| {
            let mut values = self.values(at).peekable();
            values.peek().is_some() && values.all(is_way)
        };
        flags.extend(self.roles.ways.filter(|at| holds(*at, words::is_spelled_way)));
        let behind = self.roles.amount.map(|amount| amount.saturating_add(1));
        let is_bare = |at: &usize| self.layout.names.get(*at).is_some_and(String::is_empty);
        let is_known: fn(&str) -> bool = |value| words::is_debit(value).is_some();
        flags.extend(behind.filter(is_bare).filter(|at| holds(*at, is_known)));
        flags
    }

    /// Columns that say which way money went: a sign beside them must say the same. What holds
    /// nothing but words for it, and those of both ways, is one under whatever name; but only one
    /// whose name is known makes a sign, for `Debit` and `Credit` are kinds of cards, too.
    fn ways(&self) -> Vec<usize> {
        let flags = self.flags();
        let tells = |at: &usize| {
            let ways: Vec<Option<bool>> = self.values(*at).map(words::is_debit).collect();
            if flags.contains(at) {
                return ways.iter().any(Option::is_some);
            }
            let both = ways.contains(&Some(true)) && ways.contains(&Some(false));
            let sure = both || self.values(*at).all(words::is_abbreviated);
            !ways.is_empty() && ways.iter().all(Option::is_some) && sure
        };
        (0..self.layout.names.len()).filter(tells).collect()
    }

    /// Amounts with a sign. Issuers of cards write a purchase without a minus and a refund with
    /// one: whose view a card's file takes, only a balance shows.
    fn signed(&self, amount: usize) -> Option<Amounts> {
        let shown = !self.roles.card || self.roles.balance.is_some() || self.roles.issuers;
        shown.then(|| Amounts::Signed(number(amount)))
    }

    /// Whether an issuer that is known writes what was bought without a minus here, and nothing
    /// otherwise: rows say by their kind what they are.
    fn is_issuers(&self, currency: Currency, numerals: Numerals) -> bool {
        let Some(amount) = self.roles.amount else { return false };
        let minor = |row: &[String]| numerals.read(row.get(amount)?, currency).ok();
        let deeds = self.dated().filter_map(|row| {
            let kinds = self.roles.kinds.iter().filter_map(|at| row.get(*at));
            Some((kinds.filter_map(|kind| words::deed(kind)).next()?, minor(row)?))
        });
        let mut turned = deeds.map(|(deed, minor)| match deed {
            Deed::Bought | Deed::Sold => minor >= 0,
            Deed::Paid | Deed::Returned => minor <= 0,
        });
        turned.all(|is_turned| is_turned)
    }

    /// Whether balances follow only where the fee is taken from the amount.
    fn is_less_fee(
        &self,
        table: &Table,
        fee: usize,
        currency: Currency,
        numerals: Numerals,
    ) -> bool {
        let (Some(balance), Amounts::Signed(Column::Number(amount))) =
            (self.roles.balance, &table.amounts)
        else {
            return false;
        };
        let at = (amount.saturating_sub(1), balance);
        let less = self.chain(at, currency, numerals, |row, minor| {
            let taken = row.get(fee).and_then(|text| numerals.read(text, currency).ok());
            minor.saturating_sub(taken.unwrap_or(0))
        });
        let plain = self.chain(at, currency, numerals, |_row, minor| minor);
        !plain.ties() && less.proves()
    }

    /// The balances that the booked rows of a currency say, and what `of` makes of their amounts.
    fn chain(
        &self,
        (amount, balance): (usize, usize),
        currency: Currency,
        numerals: Numerals,
        of: impl Fn(&[String], i64) -> i64,
    ) -> Chain {
        let order = self.order();
        let mut chain = Chain::new(currency);
        let of_row = self.currency().and_then(|(at, _)| at);
        let is_own = |row: &[String]| {
            let code = of_row.and_then(|at| row.get(at));
            code.is_none_or(|code| Currency::parse_any(code).is_ok_and(|own| own == currency))
        };
        let counts = |row: &[String]| self.is_booked(row) && is_own(row);
        for (line, row) in (1_u64..).zip(self.rows).filter(|(_, row)| counts(row)) {
            let read = |at: usize| numerals.read(row.get(at)?, currency).ok();
            if let Some(minor) = read(amount) {
                chain.add(line, of(row, minor), read(balance));
                chain.day(row.get(self.roles.date).and_then(|text| day(text, order)));
            }
        }
        chain
    }

    /// Whether the balances follow only from the opposite signs.
    fn is_inverted(&self, table: &Table, currency: Currency, numerals: Numerals) -> bool {
        let (Some(balance), Amounts::Signed(Column::Number(amount))) =
            (self.roles.balance, &table.amounts)
        else {
            return false;
        };
        let at = (amount.saturating_sub(1), balance);
        let chain = |sign: i64| {
            self.chain(at, currency, numerals, |_row, minor| minor.saturating_mul(sign))
        };
        !chain(1).proves() && chain(-1).shows_signs()
    }
}

/// The sign of the euro, or the code of a currency before or behind an amount.
fn currency_within(text: &str) -> Option<Currency> {
    if text.contains('€') {
        return Currency::parse("EUR").ok();
    }
    let is_code = |word: &&str| word.len() == 3 && word.bytes().all(|b| b.is_ascii_uppercase());
    // Some write it without a blank: `12,00EUR`.
    let is_apart = |c: char| c.is_whitespace() || c.is_ascii_digit();
    let code = text.split(is_apart).find(is_code)?;
    Currency::parse(code).ok()
}

fn number(at: usize) -> Column {
    Column::Number(at.saturating_add(1))
}
