//! A bank's CSV export that nobody described, where its header row and its own rows leave no doubt:
//! one date, one amount (signed, or debit and credit, or with a flag), its currency, a text.
//!
//! Names of columns are known in a dozen languages. The decimal mark, and which of day and month
//! stands first, must show in the rows; a currency must stand in a column or in the name of the
//! amount's. A running balance decides between a sign and its opposite, and then proves every row.
//! Whatever stays open makes the file an unknown format, and [`seen`] says what to describe.

use std::collections::BTreeSet;

use crate::model::money::Currency;
use crate::model::settlement::{EntryStatus, Problem, TagKind};
use crate::settlement::Parse;
use crate::settlement::balance::Chain;
use crate::settlement::bank_words::{self as words, Deed};
use crate::settlement::numeral::{Numerals, Order, day, decimal_of, is_day, order_of};
use crate::settlement::own_signs;
use crate::settlement::sheet::{self, Layout, column};
use crate::settlement::table::{
    Amounts, Column, CurrencyOf, Cut, Dates, Declared, Declares, Table,
};
use crate::settlement::table_rows;
use crate::settlement::text::{Source, unreadable};

/// Rows of the head that are looked at.
const LOOKED_AT: usize = 2_000;

/// What PSPs call the parts of what their API tells.
const OF_AN_API: &[&str] = &["id", "amount", "currency", "created"];

/// A head this long was cut somewhere: its last row may be half a row.
const CUT: usize = 60 * 1024;

/// What each row of a bank that writes no header row is known by.
type IsBare = fn(&[String]) -> bool;

/// The columns of such banks, and their rows.
const BARE: &[(&[&str], IsBare)] = &[
    (
        &["account", "buchungstext", "buchungsdatum", "valutadatum", "betrag", "währung"],
        is_bare_account,
    ),
    (
        &["buchungsdatum", "buchungstext", "valutadatum", "betrag", "währung", "", ""],
        is_bare_moment,
    ),
    (
        &[
            "boekingsdatum",
            "rekening",
            "tegenrekening",
            "naam tegenpartij",
            "",
            "",
            "",
            "valutasoort rekening",
            "saldo voor mutatie",
            "valutasoort mutatie",
            "transactiebedrag",
            "journaaldatum",
            "valutadatum",
            "",
            "",
            "",
            "betalingskenmerk",
            "omschrijving",
            "",
        ],
        is_bare_before,
    ),
    (
        &[
            "rekeningnummer",
            "muntsoort",
            "transactiedatum",
            "beginsaldo",
            "eindsaldo",
            "rentedatum",
            "transactiebedrag",
            "omschrijving",
        ],
        is_bare_between,
    ),
    (
        &[
            "rekeningnummer",
            "muntsoort",
            "rentedatum",
            "af bij",
            "bedrag",
            "tegenrekening",
            "naam tegenpartij",
            "boekdatum",
            "",
            "",
            "omschrijving 1",
            "omschrijving 2",
            "omschrijving 3",
            "",
            "",
            "",
            "end to end id",
            "",
            "",
        ],
        is_bare_marked,
    ),
];

/// What the header and the first rows say together.
pub fn recognise(head: &str) -> Option<String> {
    infer(head, None).or_else(|| bare(head)).map(|_| String::new())
}

/// As [`recognise`], of a file that names no currency where a person said which it is: its code.
pub fn recognise_in(head: &str, currency: Currency) -> Option<String> {
    infer(head, Some(currency)).map(|_| currency.code().to_owned())
}

/// Begins to read.
pub fn open(mut source: Source) -> Box<dyn Parse> {
    let head = match source.head() {
        Ok(head) => String::from_utf8_lossy(head).into_owned(),
        Err(error) => return sheet::refused(unreadable(1, &error)),
    };
    let currency = source.currency();
    if let Some((table, layout)) = infer(&head, None) {
        return table_rows::open_at(table, layout, source);
    }
    if let Some((table, layout)) = bare(&head) {
        return table_rows::open_bare(table, layout, source);
    }
    match currency.and_then(|currency| infer(&head, Some(currency))) {
        Some((table, layout)) => table_rows::open_at(table, layout, source),
        None => sheet::refused(seen(&head, currency).unwrap_or_else(|| {
            Problem::error(1, "header row", "names of columns that are known", "none")
        })),
    }
}

/// Beginnings of what is sent instead of a settlement file, as they are decoded where nothing says
/// how, and what a person calls it.
const OTHERS: [(&str, &str); 8] = [
    ("%PDF", "a PDF document: ask for the file that programs read"),
    ("-----BEGIN PGP", "an OpenPGP message: decrypt it, or let its [[source]] do so"),
    ("BZh", "what bzip2 packed: unpack it"),
    ("\u{fd}7zXZ", "what xz packed: unpack it"),
    ("7z\u{bc}\u{af}", "a 7z archive: unpack it"),
    ("Rar!", "a RAR archive: unpack it"),
    ("\u{28}\u{b5}/\u{fd}", "what zstd packed: unpack it"),
    ("{\\rtf", "a document of a word processor: save it as CSV"),
];

/// What a file is that holds no text, or no rows of it.
fn no_settlement_file(head: &str) -> Option<&'static str> {
    let known = OTHERS.iter().find(|(start, _)| head.starts_with(start)).map(|(_, what)| *what);
    let is_binary = |c: char| matches!(c, '\0'..='\u{8}' | '\u{e}'..='\u{19}');
    let binary = "bytes that are no text: encrypted, packed, or of another program";
    known.or_else(|| head.chars().take(400).any(is_binary).then_some(binary))
}

/// What a file without anything is expected to be.
pub const SOMETHING: &str = "a settlement file";

/// What a file shows that nothing recognised, for whoever describes it. `currency` is what a person
/// said that it is in.
pub fn seen(head: &str, currency: Option<Currency>) -> Option<Problem> {
    let head = head.trim_start_matches('\u{feff}');
    let nothing = match () {
        () if head.is_empty() => Some("nothing: it is empty"),
        () if head.trim().is_empty() => Some("nothing but blanks where it begins"),
        () => None,
    };
    if let Some(nothing) = nothing {
        return Some(Problem::error(0, "file", SOMETHING, nothing));
    }
    if let Some(what) = no_settlement_file(head) {
        return Some(Problem::error(0, "file", "a settlement file, as text", what));
    }
    of_another_kind(head).or_else(|| table_seen(head, currency)).or_else(|| text_seen(head))
}

/// Messages of ISO 20022 that tell nothing of what settled, and what they are.
const MESSAGES: [(&str, &str); 6] = [
    ("pain.001", "pain.001, orders to pay: the bank's answer to it is pain.002"),
    ("pain.007", "pain.007, orders to take payments back"),
    ("pain.008", "pain.008, orders to collect: the bank's answer to it is pain.002"),
    ("pacs.", "a message between banks (pacs)"),
    ("camt.029", "camt.029, an answer to an inquiry"),
    ("camt.06", "a camt message that is no statement"),
];

/// What a file is that begins as no table does.
fn of_another_kind(head: &str) -> Option<Problem> {
    let text = head.trim_start();
    let told = |found: String| Problem::error(1, "file", "a settlement file that is read", found);
    if text.starts_with("{1:") || text.starts_with(':') {
        let is_one = ["940", "942", "950"].into_iter().any(|kind| {
            text.contains(&format!("{{2:I{kind}")) || text.contains(&format!("{{2:O{kind}"))
        });
        let found = if is_one {
            "an MT940, MT942 or MT950 whose fields do not begin rows: ask for one with line ends"
        } else {
            "a SWIFT message that is none of MT940, MT942"
        };
        return Some(told(found.to_owned()));
    }
    if text.starts_with(['{', '[']) {
        return Some(told("JSON: export the report as CSV".to_owned()));
    }
    if text.starts_with("OFXHEADER") {
        return Some(told("OFX: export the statement in another format".to_owned()));
    }
    let element = xml_element(text)?;
    if element.eq_ignore_ascii_case("html") || head.to_ascii_lowercase().contains("<!doctype html")
    {
        let found = "an HTML page: a server that wants a login, or a table that is called XLS: \
                     save it as CSV";
        return Some(told(found.to_owned()));
    }
    let known =
        MESSAGES.iter().find(|(name, _)| head.contains(&format!("iso:20022:tech:xsd:{name}")));
    Some(told(match known {
        Some((_, what)) => (*what).to_owned(),
        None => {
            let space = text.split_once("xmlns=\"").and_then(|(_, rest)| rest.split_once('"'));
            let space = space.map_or_else(String::new, |(space, _)| format!(" of {space}"));
            let space: String = space.chars().take(80).collect();
            format!("XML whose first element is <{element}>{space}")
        }
    }))
}

/// The name of the first element of XML, where the text is XML.
fn xml_element(text: &str) -> Option<String> {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, ':' | '_' | '-' | '.');
    text.starts_with('<').then(|| {
        let mut elements = text.split('<').skip(1).filter(|own| !own.starts_with(['?', '!']));
        let first = elements.next().unwrap_or_default();
        first.chars().take_while(|c| is_of_name(*c)).take(60).collect()
    })
}

/// What the first line of a text says that is no table.
fn text_seen(head: &str) -> Option<Problem> {
    let (line, first) = (1_u64..).zip(head.lines()).find(|(_, line)| !line.trim().is_empty())?;
    let first: String = first.trim().chars().take(60).collect();
    let expected = "a settlement file that is read: a table, or a message of a bank";
    Some(Problem::error(line, "file", expected, format!("text that begins with `{first}`")))
}

/// What a file of rows shows.
fn table_seen(head: &str, currency: Option<Currency>) -> Option<Problem> {
    let (delimiter, rows) = [b'\t', b';', b'|', b',']
        .into_iter()
        .filter_map(|delimiter| {
            let rows = sheet::rows_of(head, delimiter, 60);
            let fields: usize = rows.iter().map(Vec::len).sum();
            let first = rows.iter().position(|row| row.len() >= 3)?;
            let likeliest = header_of(&rows).map_or(first, |(at, _)| at);
            let known = header_of(&rows).map_or(0, |(_, known)| known);
            Some((known, fields, delimiter, rows.into_iter().skip(likeliest).collect::<Vec<_>>()))
        })
        .max_by_key(|(known, fields, ..)| (*known, *fields))
        .map(|(_, _, by, rows)| (by, rows))?;
    let (row, below) = rows.split_first()?;
    let columns: Vec<String> = row.iter().map(|name| name.chars().take(60).collect()).collect();
    let names: Vec<String> = row.iter().map(|name| column(name)).collect();
    let needed = needed(&names, below);
    let is_said = |what: &str| what == "currency" && currency.is_some();
    let lacks = needed.iter().filter(|(what, own)| own.is_empty() && !is_said(what));
    let lacks: Vec<&str> = lacks.map(|(what, _)| *what).collect();
    let expected = match lacks.as_slice() {
        ["currency"] if needs_currency_alone(head) => CURRENCY_ALONE,
        _more => COLUMNS,
    };
    let lacks = if lacks.is_empty() {
        let said = |(what, own): &(&str, Vec<usize>)| {
            let own = own.iter().filter_map(|at| columns.get(*at)).map(String::as_str);
            format!("{what} {}", own.collect::<Vec<_>>().join(", "))
        };
        let said: Vec<String> = needed.iter().map(said).collect();
        let open = match left_open(head, currency) {
            Some(cell) => format!("but {cell} leaves open what the rows say"),
            None => "but which of several, or what the rows say, is left open".to_owned(),
        };
        format!("each is there: {}; {open}", said.join("; "))
    } else {
        format!("none is known of: {}", lacks.join(", "))
    };
    let misread = if is_misread(&columns) {
        "; read as Latin letters: are they Cyrillic, as with --encoding windows-1251?"
    } else {
        ""
    };
    let by = match delimiter {
        b'\t' => "tabs".to_owned(),
        other => format!("`{}`", char::from(other)),
    };
    let found = format!("by {by}: {} ({lacks}){misread}", columns.join(" | "));
    Some(Problem::error(line_of(head, row), "header row", expected, found))
}

/// What is told where nothing but a currency is missing.
const CURRENCY_ALONE: &str = "a column that names the currency; or --currency CODE, which \
                              `currency` of a [[source]] says for all of its files; or a \
                              [[format]] with `currency_is`";

/// What is told where columns are missing, or what they say is left open.
const COLUMNS: &str = "columns whose names say date, amount, currency and text; or --config FILE \
                       --format NAME with a [[format]] that names `date`, `amount` (or `debit` and \
                       `credit`) and `currency` (or `currency_is`)";

/// Whether a file would be read if somebody said its currency: one with decimals or without, of
/// the signs that amounts may have.
fn needs_currency_alone(head: &str) -> bool {
    let mut known = ["EUR", "JPY", "USD", "GBP", "SEK", "BRL", "INR"].into_iter();
    known.any(|code| Currency::parse(code).is_ok_and(|own| infer(head, Some(own)).is_some()))
}

/// The first cell of a file with all columns that leaves open what its rows say.
fn left_open(head: &str, currency: Option<Currency>) -> Option<String> {
    let layout = sheet::find(head, |names| Roles::of(names).is_some())?;
    let mut roles = Roles::of(&layout.names)?;
    if roles.named_currency.is_none() && roles.currencies.is_empty() {
        roles.named_currency = currency;
    }
    let rows = whole_rows(head, layout.delimiter);
    let rows: Vec<Vec<String>> = rows.into_iter().skip(layout.above.saturating_add(1)).collect();
    let inference = Inference { head, roles: &roles, layout: &layout, rows: &rows };
    let (row, at) = inference.left_open()?;
    let (name, text) = (layout.shown.get(at)?, row.get(at)?);
    let text: String = text.chars().take(60).collect();
    Some(format!("line {}, {name}: `{text}`,", line_of(head, row)))
}

/// Whether names are letters of another alphabet that were read as Latin ones.
fn is_misread(names: &[String]) -> bool {
    let letters = || names.iter().flat_map(|name| name.chars()).filter(|c| c.is_alphabetic());
    let accented = letters().filter(|c| matches!(c, '\u{c0}'..='\u{ff}')).count();
    accented.saturating_mul(2) > letters().count()
}

/// The line that holds all fields of a row; the first one where they stand on several.
fn line_of(head: &str, row: &[String]) -> u64 {
    let is_of = |line: &str| row.iter().all(|field| line.contains(field.as_str()));
    let line = (1_u64..).zip(head.lines()).find(|(_, line)| is_of(line));
    line.map_or(1, |(line, _)| line)
}

/// Where the row stands that has the most names which are known, and how many: two at least.
fn header_of(rows: &[Vec<String>]) -> Option<(usize, usize)> {
    let known = |row: &Vec<String>| {
        let names = row.iter().map(|name| column(name)).filter(|name| !name.is_empty());
        names.filter(|name| words::is_known(&without_currency(name).0)).count()
    };
    let wide = rows.iter().enumerate().filter(|(_, row)| row.len() >= 3);
    let counted = wide.map(|(at, row)| (at, known(row)));
    // Of those with as many, the first.
    counted.rev().max_by_key(|(_, known)| *known).filter(|(_, known)| *known > 1)
}

/// What a bank's export needs, and the columns that are it by their names. A word for a currency in
/// one language is one for a day in others.
fn needed(names: &[String], below: &[Vec<String>]) -> [(&'static str, Vec<usize>); 4] {
    let split: Vec<(String, Option<Currency>)> =
        names.iter().map(|name| without_currency(name)).collect();
    let stems: Vec<String> = split.iter().map(|(stem, _)| stem.clone()).collect();
    let of = |known: &[&str]| all(&stems, known);
    let (debits, credits) = (of(words::DEBIT), of(words::CREDIT));
    let mut amounts = of(words::AMOUNT);
    if amounts.is_empty() && !of(words::BALANCE).is_empty() {
        amounts = of(words::PROVEN_AMOUNT);
    }
    if !debits.is_empty() && !credits.is_empty() {
        amounts.extend(debits.into_iter().chain(credits));
    } else if let Some((debit, credit)) = words::pair(&stems) {
        amounts.extend([debit, credit]);
    }
    let mut currencies = all(names, words::CURRENCY);
    currencies.retain(|at| !holds_days(below, *at));
    let named = split.iter().enumerate().filter(|(_, (_, currency))| currency.is_some());
    currencies.extend(named.map(|(at, _)| at));
    if words::is_in_dollars(names) {
        currencies.extend(first(names, &["amount"]));
    }
    let tags = words::TAGS.iter().map(|(_, known)| *known).chain([words::TEXT_ALONE]);
    let mut texts: Vec<usize> = tags.flat_map(|known| all(names, known)).collect();
    texts.sort_unstable();
    [
        ("date", all(&without_patterns(names), words::DATE)),
        ("amount", amounts),
        ("currency", currencies),
        ("text or reference", texts),
    ]
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
        .filter(|(_, name)| !is_own(name.as_str()) && !words::is_part(name))
        .filter(|(_, name)| words::is_amount(name))
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
            let bare = [" in", " en", " i"].iter().find_map(|word| stem.strip_suffix(word));
            // `paid in gbp` is money that came in.
            let bare = bare.filter(|_| !words::is_known(stem));
            (bare.unwrap_or(stem).to_owned(), Some(currency))
        }
        _word => (name.to_owned(), None),
    }
}

/// A name without the pattern of its days, and what that says of them: `date dd mm yyyy`.
fn without_pattern(name: &str) -> (&str, Option<Order>) {
    let known = [(" dd mm", Order::DayFirst), (" mm dd", Order::MonthFirst)];
    let own = known.into_iter().find_map(|(pattern, order)| Some((name.find(pattern)?, order)));
    let Some((at, order)) = own else { return (name, None) };
    let (stem, pattern) = name.split_at(at);
    let is_pattern = pattern.split(' ').all(|word| ["", "dd", "mm", "yy", "yyyy"].contains(&word));
    if is_pattern { (stem, Some(order)) } else { (name, None) }
}

fn without_patterns(names: &[String]) -> Vec<String> {
    names.iter().map(|name| without_pattern(name).0.to_owned()).collect()
}

impl Roles {
    /// The columns of what moved: the amount, or its two sides.
    fn moved(&self) -> impl Iterator<Item = usize> {
        let sides = self.sides.map(|(debit, credit)| [debit, credit]);
        self.amount.into_iter().chain(sides.into_iter().flatten())
    }

    /// Whether more than signs shows which way money went: in a card's file they are its issuer's.
    fn shows_ways(&self) -> bool {
        self.balance.is_some() || self.sides.is_some()
    }

    fn of(names: &[String]) -> Option<Self> {
        let bare = without_patterns(names);
        let date = first(&bare, words::DATE).or_else(|| words::date_beside_value(names))?;
        let split: Vec<(String, Option<Currency>)> =
            names.iter().map(|name| without_currency(name)).collect();
        let stems: Vec<String> = split.iter().map(|(stem, _)| stem.clone()).collect();
        let any = |known: &[&str]| stems.iter().any(|name| known.contains(&name.as_str()));
        let balance = only(&stems, words::BALANCE);
        let is_alone = !any(words::AMOUNT) && !any(words::DEBIT) && !any(words::CREDIT);
        let of_account = only(&stems, words::OF_ACCOUNT);
        let proven = of_account.or_else(|| only(&stems, words::PROVEN_AMOUNT));
        let is_proven = balance.is_some() || words::is_billed(names);
        let proven = proven.filter(|_| is_alone && is_proven);
        let (amounts, currencies) = words::amounts(names);
        let whole = proven.or_else(|| only(&stems, amounts));
        let sides = only(&stems, words::DEBIT).zip(only(&stems, words::CREDIT));
        // Beside an amount they may be accounts, or counts.
        let sides = sides.or_else(|| words::pair(&stems).filter(|_| whole.is_none()));
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
        // A PSP's report that was cut within its header row.
        if words::is_begun_report(names) {
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
            value_date: first(&bare, words::VALUE_DATE),
            amount,
            sides,
            beside,
            others: others(&stems, whole),
            card: any(words::CARD)
                || words::is_unnamed_card(names)
                || names.get(date).is_some_and(|own| own == words::BOUGHT_ON),
            issuers: sheet::has(names, words::ISSUERS),
            kinds: all(names, words::KINDS),
            currency_like: names.iter().filter(|name| words::is_currency(name)).count(),
            flags: all(names, words::FLAG),
            ways: only(names, words::WAYS),
            currencies: all(names, currencies),
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

/// How a file is read, where it shows all of it but, at most, the currency, which a person said.
fn infer(head: &str, said: Option<Currency>) -> Option<(Table, Layout)> {
    if head.trim_start().starts_with(['<', '{']) {
        return None;
    }
    let layout = sheet::find(head, |names| Roles::of(names).is_some());
    let layout = layout.or_else(|| of_two(head)).or_else(|| of_code(head))?;
    let mut roles = Roles::of(&layout.names)?;
    let rows = whole_rows(head, layout.delimiter);
    let rows: Vec<Vec<String>> = rows.into_iter().skip(layout.above.saturating_add(1)).collect();
    // A word for a currency in one language is one for a day in others.
    roles.currencies.retain(|at| !holds_days(&rows, *at));
    if let Some(at) = booked_on(&layout.names, &rows) {
        roles.date = at;
        roles.statuses.retain(|own| *own != at);
    }
    if roles.named_currency.is_none() && roles.currencies.is_empty() {
        let in_dollars = words::is_in_dollars(&layout.names);
        let dollar = || Currency::parse("USD").ok().filter(|_| in_dollars);
        let own = || currency_above(head, &layout).filter(|_| roles.shows_ways());
        let may_be = |said: &Currency| {
            let above = sheet::rows_of(head, layout.delimiter, layout.above);
            let told: Vec<Currency> =
                above.iter().flat_map(|row| words::codes_above(row)).collect();
            (told.is_empty() || told.contains(said)) && is_open_to(*said, &layout, &rows)
        };
        let of_sides = sign_of(&roles, &layout).or(roles.of_balance);
        let of_bank = || only_currency(&roles, &layout, &rows);
        let known = of_sides.or_else(dollar).or_else(own).or_else(of_bank);
        roles.named_currency = known.or_else(|| said.filter(may_be));
    }
    let table = Inference { head, roles: &roles, layout: &layout, rows: &rows }.table()?;
    Some((table, layout))
}

/// Whether neither the name of a column nor one of codes alone says that a file is in another
/// currency than this; of what a card paid abroad it may be.
fn is_open_to(said: Currency, layout: &Layout, rows: &[Vec<String>]) -> bool {
    let is_other = |at: usize, name: &str| {
        let mut values = rows.iter().filter_map(|row| row.get(at)).filter(|text| !text.is_empty());
        let own = |text: &String| Currency::parse(text).ok().filter(|_| is_code(text));
        let first = values.next().and_then(own);
        let is_of_codes = first.is_some() && values.clone().all(|text| own(text).is_some());
        let named = without_currency(name).1.filter(|named| *named != said);
        named.is_some()
            || is_of_codes && (first != Some(said) || values.any(|text| own(text) != first))
    };
    let mut own = layout.names.iter().enumerate().filter(|(_, name)| !words::is_abroad(name));
    !own.any(|(at, name)| is_other(at, name))
}

/// The currency of a bank that names none, where each amount has its sign.
fn only_currency(roles: &Roles, layout: &Layout, rows: &[Vec<String>]) -> Option<Currency> {
    let (currency, sign) = words::only_currency(&layout.names)?;
    let amounts = rows.iter().flat_map(|row| roles.moved().filter_map(|at| row.get(at)));
    let mut amounts = amounts.filter(|text| !text.is_empty());
    amounts.all(|text| text.contains(sign)).then_some(currency)
}

/// The rows of a head, without one that is cut at its end.
fn whole_rows(head: &str, delimiter: u8) -> Vec<Vec<String>> {
    let mut rows = sheet::rows_of(head, delimiter, LOOKED_AT);
    if head.len() >= CUT || rows.len() == LOOKED_AT {
        rows.pop();
    }
    rows
}

/// Whether a column holds days, and nothing else.
fn holds_days(rows: &[Vec<String>], at: usize) -> bool {
    let values = rows.iter().filter_map(|row| row.get(at)).filter(|text| !text.is_empty());
    let mut values = values.peekable();
    values.peek().is_some() && values.all(|text| is_day(text))
}

/// The column that says of a row on which day it was booked, by a name that elsewhere is one of a
/// status: no status is a day.
fn booked_on(names: &[String], rows: &[Vec<String>]) -> Option<usize> {
    let at = only(names, words::BOOKED_ON)?;
    let mut values = rows.iter().filter_map(|row| row.get(at));
    values.any(|text| is_day(text)).then_some(at)
}

/// The columns of a bank that writes amounts of two currencies, each into a column of its own,
/// where all rows fill one of them, which then is the amount.
fn of_two(head: &str) -> Option<Layout> {
    let mut layout = sheet::find(head, |names| sheet::has(names, words::OF_TWO))?;
    let rows = whole_rows(head, layout.delimiter);
    let rows = || rows.iter().skip(layout.above.saturating_add(1));
    let at = |wanted: &str| layout.names.iter().position(|name| name == wanted);
    let (kind, cad, usd) = (at("account type")?, at("cad")?, at("usd")?);
    let value = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
    let fills = |at: usize| rows().any(|row| !value(row, at).is_empty());
    let (own, other, name) = match (fills(cad), fills(usd)) {
        (true, false) => (cad, usd, "amount cad"),
        (false, true) => (usd, cad, "amount usd"),
        _both => return None,
    };
    // A card's signs may be its issuer's.
    if !rows().all(|row| words::is_deposit(&value(row, kind))) {
        return None;
    }
    *layout.names.get_mut(own)? = name.to_owned();
    // An amount there, in a row that was not looked at, quarantines the file.
    *layout.names.get_mut(other)? = "charges".to_owned();
    Some(layout)
}

fn is_named_code(name: &str) -> bool {
    name.len() == 3 && Currency::parse(name).is_ok()
}

/// The columns of a bank whose amounts have the code of their currency for a name.
fn of_code(head: &str) -> Option<Layout> {
    let codes = |names: &[String]| names.iter().filter(|name| is_named_code(name)).count();
    let is_own = |names: &[String]| sheet::has(names, words::OF_CODE) && codes(names) == 1;
    let mut layout = sheet::find(head, is_own)?;
    let own = layout.names.iter_mut().find(|name| is_named_code(name))?;
    *own = format!("importo {own}");
    Some(layout)
}

/// A file without a header row whose rows leave no doubt, for each is one of the same bank's.
fn bare(head: &str) -> Option<(Table, Layout)> {
    let is_text = |c: char| !c.is_whitespace() && !matches!(c, '\u{1a}' | '\0');
    let cut = |delimiter: u8| {
        let mut rows = whole_rows(head, delimiter);
        rows.retain(|row| row.iter().any(|field| field.contains(is_text)));
        let is_of = |is: &IsBare| !rows.is_empty() && rows.iter().all(|row| is(row));
        let (names, _) = BARE.iter().find(|(_, is)| is_of(is))?;
        Some((delimiter, rows, *names))
    };
    let (delimiter, rows, names) = [b';', b'\t', b'|', b','].into_iter().find_map(cut)?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let layout = Layout { delimiter, above: 0, shown: names.clone(), names };
    let roles = Roles::of(&layout.names)?;
    let inference = Inference { head, roles: &roles, layout: &layout, rows: &rows };
    let table = inference.table()?;
    inference.goes_on(&table).then_some((table, layout))
}

/// A day with points between its parts.
fn is_dotted(day: &str) -> bool {
    is_day(day) && day.contains('.')
}

/// An amount with decimals behind this mark, with its sign or none.
fn is_bare_money(amount: &str, mark: char) -> bool {
    let digits = amount.trim_start_matches(['-', '+']);
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.contains(mark)
}

fn is_code(text: &str) -> bool {
    text.len() == 3 && Currency::parse_any(text).is_ok()
}

/// A row of the own IBAN, a text, two days, an amount and its currency, and nothing else. Before
/// there were IBANs the account had eleven figures; then each amount must have its sign.
fn is_bare_account(row: &[String]) -> bool {
    let [account, text, booked, value, amount, currency] = row else { return false };
    let is_old = account.len() == 11 && account.bytes().all(|byte| byte.is_ascii_digit());
    (is_iban(account) || is_old && amount.starts_with(['-', '+']))
        && !text.is_empty()
        && is_dotted(booked)
        && is_dotted(value)
        && is_bare_money(amount, ',')
        && is_code(currency)
}

/// A row of a day, a text, another day, an amount, its currency, and the moment to a thousandth of
/// a second, as no other bank writes it; or two empty fields instead of it.
fn is_bare_moment(row: &[String]) -> bool {
    let [booked, text, value, amount, currency, moment, rest @ ..] = row else { return false };
    let is_time = moment.split_once(' ').is_some_and(|(day, time)| {
        let widths: Vec<usize> = time.split(':').map(str::len).collect();
        let is_digits = time.chars().all(|c| c.is_ascii_digit() || c == ':');
        is_dotted(day) && is_digits && widths == [2, 2, 2, 3]
    });
    (is_time || moment.is_empty() && rest.len() == 1)
        && rest.iter().all(String::is_empty)
        && rest.len() <= 1
        && !text.is_empty()
        && is_dotted(booked)
        && is_dotted(value)
        && is_bare_money(amount, ',')
        && is_code(currency)
}

/// A row of nineteen fields: the own IBAN, and beside the amount what the account held before it.
fn is_bare_before(row: &[String]) -> bool {
    let at = |at: usize| row.get(at).map_or("", String::as_str);
    let is_dashed = |at: &str| is_day(at) && at.split('-').count() == 3;
    row.len() == 19
        && [0, 11, 12].into_iter().all(|own| is_dashed(at(own)))
        && is_iban(at(1))
        && [4, 5, 6].into_iter().all(|own| at(own).is_empty())
        && is_code(at(7))
        && at(7) == at(9)
        && [8, 10].into_iter().all(|own| is_bare_money(at(own), '.') || is_bare_money(at(own), ','))
}

/// Eight figures, the year first.
fn is_plain_day(text: &str) -> bool {
    let is_figures = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_figures && chrono::NaiveDate::parse_from_str(text, "%Y%m%d").is_ok()
}

/// The account as a Dutch bank numbered it before there were IBANs, or by its IBAN.
fn is_dutch_account(text: &str) -> bool {
    let is_figures = (9..=10).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_figures || is_iban(text)
}

/// A row of the own account, its currency, a day, what the account held before and after, another
/// day, the amount, and a text.
fn is_bare_between(row: &[String]) -> bool {
    let [account, currency, booked, before, after, value, amount, _text] = row else {
        return false;
    };
    is_dutch_account(account)
        && is_code(currency)
        && is_plain_day(booked)
        && is_plain_day(value)
        && [before, after, amount].into_iter().all(|own| is_bare_money(own, ','))
}

/// A row of nineteen fields: the own account, its currency, a day, `D` or `C`, the amount without a
/// sign, the other account and its name, another day, and two letters for how it was paid.
fn is_bare_marked(row: &[String]) -> bool {
    let at = |at: usize| row.get(at).map_or("", String::as_str);
    row.len() == 19
        && is_dutch_account(at(0))
        && is_code(at(1))
        && is_plain_day(at(2))
        && ["D", "C"].contains(&at(3))
        && is_bare_money(at(4), '.')
        && at(4).starts_with(|c: char| c.is_ascii_digit())
        && is_plain_day(at(7))
        && at(8).len() == 2
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
    let said = rows.iter().zip(below).flat_map(|(row, below)| {
        let alone = || words::currency_below(row, below?);
        let one =
            words::declared_currency(row).or_else(alone).or_else(|| words::titled_currency(row));
        let euro = || Currency::parse("EUR").ok().filter(|_| words::is_in_euros(row));
        one.or_else(euro).into_iter().chain(words::currencies_within(row))
    });
    let said: Vec<Currency> = said.collect();
    let balances = || {
        let said = rows.iter().filter_map(|row| words::declared(row.iter().map(String::as_str)));
        let said = said.filter(|(_, what, _)| *what != Declares::Count);
        said.filter_map(|(_, _, value)| currency_within(value)).collect()
    };
    let said = if said.is_empty() { balances() } else { said };
    let beside = || rows.iter().flat_map(|row| words::currencies_beside(row)).collect();
    let said: Vec<Currency> = if said.is_empty() { beside() } else { said };
    let first = said.first()?;
    said.iter().all(|other| other == first).then_some(*first)
}

/// The own account that rows above the header row say: one IBAN, or what one word for it names.
fn account_above(head: &str, layout: &Layout) -> Option<String> {
    let rows = sheet::rows_of(head, layout.delimiter, layout.above);
    let mut said: Vec<(bool, String)> = rows.iter().flat_map(|row| words::accounts(row)).collect();
    let own = |at: usize| rows.get(at).map_or(&[][..], Vec::as_slice);
    let below = (0..rows.len()).map(|at| [at, at.saturating_add(1), at.saturating_add(2)]);
    said.extend(below.flat_map(|rows| words::accounts_below(rows.map(own))));
    said.retain(|(_, text)| is_iban(text) || words::may_be_account(text));
    let one = |mut texts: Vec<String>| {
        texts.dedup();
        texts.pop().filter(|_| texts.is_empty())
    };
    let compact = |text: &str| text.split_whitespace().collect::<String>();
    let ibans = said.iter().filter(|(_, text)| is_iban(text)).map(|(_, text)| compact(text));
    let ibans: Vec<String> = ibans.collect();
    if !ibans.is_empty() {
        return one(ibans);
    }
    one(said.into_iter().filter(|(is_iban, _)| !is_iban).map(|(_, text)| text).collect())
}

/// What stands above the header row and says what the rows come to.
fn declared(head: &str, layout: &Layout) -> Vec<Declared> {
    let rows = sheet::rows_of(head, layout.delimiter, layout.above);
    let said = rows.iter().flat_map(|row| words::all_declared(row));
    let declared = said.map(|(name, what, value)| {
        let mut lines = (1_u64..).zip(head.lines());
        let line = lines.find(|(_, line)| line.contains(name)).map_or(1, |(line, _)| line);
        Declared { line, what, value: value.to_owned() }
    });
    let below = rows.iter().skip(1);
    let sides = rows.iter().zip(below).flat_map(|(heads, row)| {
        let own = words::side_heads(heads).into_iter();
        own.filter_map(move |(at, what)| Some((row, what, row.get(at)?)))
    });
    let sides = sides.map(|(row, what, value)| {
        let line = line_of(head, row);
        Declared { line, what, value: value.clone() }
    });
    declared.chain(sides).collect()
}

/// `Betrag (€)`, `Amount (£)`: the sign of the euro or the pound in the names of the amounts.
fn sign_of(roles: &Roles, layout: &Layout) -> Option<Currency> {
    let signed = [('€', "EUR"), ('£', "GBP")].into_iter().find(|(sign, _)| {
        let says = |at: usize| layout.shown.get(at).is_some_and(|name| name.contains(*sign));
        roles.moved().all(says)
    });
    signed.and_then(|(_, code)| Currency::parse(code).ok())
}

/// Whether a text is an amount, whatever its mark.
fn is_money(text: &str) -> bool {
    let decimal = decimal_of(text).unwrap_or(b'.');
    let of = Currency::parse("EUR");
    let read = of.map(|of| Numerals { decimal, grouped: true }.read_at(text, of, 8));
    read.is_ok_and(|read| read.is_ok())
}

/// An amount without its sign, as fine as any is written.
fn figure(text: &str) -> Option<i128> {
    let decimal = decimal_of(text).unwrap_or(b'.');
    let of = Currency::parse("EUR").ok()?;
    let read = Numerals { decimal, grouped: true }.read_at(text, of, 8).ok()?;
    Some(read.saturating_abs())
}

fn figure_at(row: &[String], at: usize) -> Option<i128> {
    row.get(at).and_then(|text| figure(text)).filter(|read| *read != 0)
}

/// Whether the second of each two is the first by about one rate, as amounts in two currencies are:
/// what an account held after each row is not.
fn is_one_rate(pairs: &[(i128, i128)]) -> bool {
    let within = |one: (i128, i128), next: (i128, i128)| {
        let (of, by) = (next.1.saturating_mul(one.0), one.1.saturating_mul(next.0));
        of.saturating_mul(4) <= by.saturating_mul(5)
    };
    let Some(first) = pairs.first() else { return false };
    pairs.iter().all(|pair| within(*first, *pair) && within(*pair, *first))
}

/// Whether the second of each two is what was left after the first moved, in either order of rows.
fn is_running(pairs: &[(i128, i128)]) -> bool {
    let follows = |one: &(i128, i128), next: &(i128, i128)| {
        let moved = one.1.saturating_sub(next.1).saturating_abs();
        moved == one.0 || moved == next.0
    };
    let mut both = pairs.iter().zip(pairs.iter().skip(1)).peekable();
    both.peek().is_some() && both.all(|(one, next)| follows(one, next))
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
        let is_side = self.roles.sides.is_some_and(|(debit, credit)| at == debit || at == credit);
        let values = values.map(String::as_str).filter(|value| !value.is_empty());
        values.filter(move |value| !(is_side && sheet::is_dash(value)))
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
        let mut telling: Vec<usize> = all.iter().copied().filter(|at| tells(*at)).collect();
        if telling.is_empty() != all.is_empty() {
            return None;
        }
        let others = self.layout.names.iter().enumerate();
        let others = others.filter(|(at, name)| !all.contains(at) && words::may_be_status(name));
        let says = |at: &usize| self.values(*at).any(|value| known(*at, value));
        telling.extend(others.map(|(at, _)| at).filter(says));
        let sure = telling.iter().all(|at| self.values(*at).all(|value| known(*at, value)));
        sure.then_some(telling)
    }

    /// Whether nothing in a row says that it was not booked.
    fn is_booked(&self, row: &[String]) -> bool {
        let day = row.get(self.roles.date).map_or("", String::as_str);
        // As where the rows are read: a row without a day says so by its kind, or its balance.
        let names = self.layout.names.iter().enumerate();
        let kinds = names.filter(|(_, name)| words::is_kind(name)).map(|(at, _)| at);
        let mut beside = kinds.chain(self.roles.balance).filter(|_| day.is_empty());
        let is_open = beside.any(|at| row.get(at).is_some_and(|own| words::is_doubtful(own)));
        let day = words::unbooked(day);
        let is_other = |at: &usize| {
            let value = row.get(*at).map_or("", String::as_str);
            let status = words::status_of(&self.layout.names, *at, value);
            status.is_some_and(|status| status != EntryStatus::Booked) || words::is_doubtful(value)
        };
        day.is_none() && !is_open && !self.roles.statuses.iter().any(is_other)
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
        table.inverted =
            is_open || self.is_inverted(&table, currency, numerals) || self.is_turned(&table);
        let taken = self.fee_at().filter(|_| !table.inverted);
        let signed = |fee| self.less_fee(&table, fee, currency, numerals).map(|way| (fee, way));
        if let Some((fee, is_signed)) = taken.and_then(signed) {
            (table.fee, table.less_fee) = (Some(number(fee)), true);
            table.fee_signed = is_signed;
        }
        Some(table)
    }

    /// The column of pockets, each with a balance of its own, where the rows are of several: in
    /// exports that say of each row whether it was booked, and what was taken.
    fn pockets_at(&self) -> Option<usize> {
        let at = self.product_at()?;
        (self.pockets(at).len() > 1).then_some(at)
    }

    /// The column of pockets, be it that all rows are of one.
    fn product_at(&self) -> Option<usize> {
        let roles = self.roles;
        let is_such = roles.balance.is_some() && self.fee_at().is_some();
        let is_such = is_such && !roles.statuses.is_empty();
        only(&self.layout.names, words::POCKETS).filter(|_| is_such)
    }

    /// The column of what was taken, by whichever name.
    fn fee_at(&self) -> Option<usize> {
        self.roles.fee.or(self.roles.taken)
    }

    fn pockets(&self, at: usize) -> BTreeSet<&str> {
        self.dated().filter_map(|row| row.get(at)).map(String::as_str).collect()
    }

    /// The own account: where another side is named, only a column that says the same in each row
    /// and does not stand behind that name.
    fn account(&self) -> Option<usize> {
        if let Some(at) = self.pockets_at() {
            return Some(at);
        }
        let Some(at) = self.roles.account else { return self.leading_account() };
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

    /// A column that leads its row, before the day, and says one account in each: that of the other
    /// side stands behind the day.
    fn leading_account(&self) -> Option<usize> {
        let names = self.layout.names.iter().enumerate().take(self.roles.date);
        let mut own = names.filter(|(_, name)| words::LEADING_ACCOUNT.contains(&name.as_str()));
        let said = |at: usize| self.dated().map(move |row| row.get(at).map_or("", String::as_str));
        let is_one = |(at, name): &(usize, &String)| {
            let mut values = said(*at);
            let first = values.next().unwrap_or_default();
            let is_account = is_iban(first) || *name != "iban" && words::may_be_account(first);
            is_account && values.all(|other| other == first)
        };
        own.find(is_one).map(|(at, _)| at)
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
            assumes_mark: false,
            currency,
            balance: roles.balance.map(number),
            account: None,
            account_is: account_above(self.head, self.layout),
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
            fee_signed: false,
            trailer: None,
            batch: None,
            covers_attempts: false,
            declared: declared(self.head, self.layout),
            agree: self.agreeing().into_iter().map(number).collect(),
            held_in: roles.of_balance,
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
        // Beside an amount that no row fills the column is that one's all the same, where it says
        // more than one.
        let is_lone = self.named_others().count() == self.roles.others.len();
        let agree = agree && (is_lone || own.iter().all(|other| Some(other) == own.first()));
        let agree = agree && !self.may_be_abroad(own);
        own.first().filter(|_| agree).map(|first| (Some(*at), *first))
    }

    /// Columns of currencies beside a currency that the amount's own name says: each row must say
    /// the same twice.
    fn agreeing(&self) -> Vec<usize> {
        let is_code = |at: &usize| {
            let mut codes = self.values(*at).map(Currency::parse_any).peekable();
            codes.peek().is_some() && codes.all(|code| code.is_ok())
        };
        // One behind or before an amount of another name is that one's.
        let is_money = |at: Option<usize>| {
            let own = at.filter(|at| !self.money_columns().contains(at));
            let has_mark = |at| self.values(at).any(|text| decimal_of(text).is_some());
            own.is_some_and(|at| has_mark(at) && self.values(at).all(is_money))
        };
        let is_beside = |at: usize| is_money(at.checked_sub(1)) || is_money(at.checked_add(1));
        let mut own = self.roles.currencies.clone();
        own.retain(|at| self.roles.named_currency.is_some() && !self.is_of_other(*at));
        own.retain(|at| is_code(at) && !is_beside(*at));
        own
    }

    /// Whether currencies that differ may be those of what a card paid abroad, told by a name that
    /// is not known: no balance says which one each account has, and another column holds money.
    fn may_be_abroad(&self, currencies: &[Currency]) -> bool {
        let is_one = currencies.windows(2).all(|pair| matches!(pair, [one, next] if one == next));
        if is_one || self.roles.balance.is_some() {
            return false;
        }
        let is_figure = |text: &str| {
            let numerals = decimal_of(text).map(|decimal| Numerals { decimal, grouped: true });
            let of = currencies.first().zip(numerals);
            of.is_some_and(|(currency, numerals)| numerals.read(text, *currency).is_ok())
        };
        let is_money = |at: usize| {
            let mut values = self.values(at).peekable();
            values.peek().is_some() && values.all(is_figure)
        };
        let names = self.layout.names.iter().enumerate();
        let mut others =
            names.filter(|(_, name)| !words::is_known_figure(&without_currency(name).0));
        others.any(|(at, _)| is_money(at))
    }

    /// Amounts of another name that the rows say. Where all of the file was looked at, one that no
    /// row fills has no currency either.
    fn named_others(&self) -> impl Iterator<Item = usize> {
        let is_whole = self.is_whole();
        let is_filled = move |at: &usize| {
            self.rows.iter().any(|row| row.get(*at).is_some_and(|own| !own.is_empty()))
        };
        self.roles.others.iter().copied().filter(move |at| !is_whole || is_filled(at))
    }

    fn is_whole(&self) -> bool {
        let looked_at = self.rows.len().saturating_add(self.layout.above).saturating_add(1);
        self.head.len() < CUT && looked_at < LOOKED_AT
    }

    /// Other amounts: by their names, and those that only their values tell.
    fn others(&self) -> impl Iterator<Item = usize> {
        self.named_others().chain(self.unnamed_others())
    }

    /// Amounts whose name is not known for one, or ends in a word for a currency (`betrag in
    /// fremdwährung`), and that hold another figure than what moved: a card's file may write its
    /// currency beside what was paid abroad alone.
    fn unnamed_others(&self) -> impl Iterator<Item = usize> {
        let names = self.layout.names.iter().enumerate();
        names.filter(|(at, name)| self.is_unnamed_other(*at, name)).map(|(at, _)| at)
    }

    fn is_unnamed_other(&self, at: usize, name: &str) -> bool {
        let roles = self.roles;
        let is_own = self.money_columns().into_iter().chain(roles.beside).any(|own| own == at);
        if is_own || roles.others.contains(&at) || words::is_part(name) {
            return false;
        }
        let stem = without_currency(name).0;
        let is_named = words::holds_amount(&stem) && words::is_currency(&stem);
        if !is_named && (words::is_known_figure(&stem) || words::may_be_held(&stem)) {
            return false;
        }
        let has_mark = self.values(at).any(|text| decimal_of(text).is_some());
        if !has_mark || !self.values(at).all(is_money) {
            return false;
        }
        let pairs: Vec<(i128, i128)> = self.dated().filter_map(|row| self.pair(row, at)).collect();
        let differs = pairs.iter().any(|(own, other)| own != other);
        if is_named {
            // Rows that were not looked at may hold another one.
            return differs || !self.is_whole();
        }
        let is_filled = self.dated().filter_map(|row| self.moved_in(row)).count() == pairs.len();
        differs && is_filled && is_one_rate(&pairs) && !is_running(&pairs)
    }

    /// What moved in a row, and what another column says, both without their signs.
    fn pair(&self, row: &[String], at: usize) -> Option<(i128, i128)> {
        Some((self.moved_in(row)?, figure_at(row, at)?))
    }

    fn moved_in(&self, row: &[String]) -> Option<i128> {
        self.roles.moved().find_map(|at| figure_at(row, at))
    }

    /// Whether a column of currencies speaks of what moved the account: it stands nearer to that
    /// than to any other amount, or as near where each amount may have a currency of its own.
    fn is_of_amount(&self, at: usize) -> bool {
        let own = self.money_columns().into_iter().chain(self.roles.beside);
        let own = own.filter(|own| Some(*own) != self.roles.balance);
        let Some(near) = own.map(|own| own.abs_diff(at)).min() else { return false };
        // One that is named as a currency is none.
        let unnamed: Vec<usize> = self.unnamed_others().collect();
        let named =
            |at: &usize| self.layout.names.get(*at).is_some_and(|own| words::is_currency(own));
        let like = self.roles.currency_like;
        let like = like.saturating_sub(unnamed.iter().filter(|at| named(at)).count());
        let each = like > self.roles.others.len().saturating_add(unnamed.len());
        self.others().all(|other| {
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
        let other = self.others().map(|other| other.abs_diff(at)).min();
        near.zip(other).is_some_and(|(near, other)| other < near) || self.is_changed(at)
    }

    /// Whether a column of currencies speaks of an amount before it that the rate between them
    /// changed into the one behind: `foreign amount; rate; currency; amount`.
    fn is_changed(&self, at: usize) -> bool {
        let is = |back: usize, is: fn(&str) -> bool| {
            let name = at.checked_sub(back).and_then(|at| self.layout.names.get(at));
            name.is_some_and(|name| is(name))
        };
        let is_own = |at: usize| self.roles.moved().any(|own| own == at);
        let is_behind = self.roles.moved().any(|own| own > at);
        is_behind
            && is(1, words::is_rate)
            && is(2, words::holds_amount)
            && !at.checked_sub(2).is_some_and(is_own)
    }

    /// The currency that every amount carries: the sign of the euro or the pound, or the same code.
    fn in_amounts(&self) -> Option<Currency> {
        let mut values = self.roles.moved().flat_map(|at| self.values(at)).map(currency_within);
        let first = values.next()??;
        values.all(|other| other == Some(first)).then_some(first)
    }

    /// Whether what the account held before each row goes on from the row that stands before it, in
    /// one order of the rows; also where no column says that.
    fn goes_on(&self, table: &Table) -> bool {
        let Some(held) = only(&self.layout.names, words::HELD_BEFORE) else { return true };
        let Some((amount, numerals)) = self.roles.amount.zip(table.numerals) else { return false };
        let Some((_, of)) = self.currency() else { return false };
        let read = |row: &[String], at: usize| {
            let minor = row.get(at).and_then(|text| numerals.read(text, of).ok());
            minor.map(i128::from)
        };
        let after = |row: &[String]| Some(read(row, held)?.saturating_add(read(row, amount)?));
        let is_next = |before: &[String], next: &[String]| {
            after(before).is_some_and(|minor| read(next, held) == Some(minor))
        };
        let account = |row: &[String]| self.roles.account.and_then(|at| row.get(at).cloned());
        let pairs = || {
            let pairs = self.rows.iter().zip(self.rows.iter().skip(1));
            pairs.filter(|(one, other)| account(one) == account(other))
        };
        pairs().all(|(one, other)| is_next(one, other))
            || pairs().all(|(one, other)| is_next(other, one))
    }

    /// Whether the amount beside two sides is in another currency than they are, by the column
    /// behind it: what a card paid abroad.
    fn is_abroad(&self, row: &[String]) -> bool {
        let behind = self.roles.beside.map(|at| at.saturating_add(1));
        let is_original = |at: &usize| {
            self.layout.names.get(*at).is_some_and(|name| words::ORIGINAL.contains(&name.as_str()))
        };
        let of = |at: usize| row.get(at).and_then(|code| Currency::parse_any(code).ok());
        let paid = behind.filter(is_original).and_then(of);
        let own = self.roles.currencies.first().and_then(|at| of(*at));
        paid.zip(own).is_some_and(|(paid, own)| paid != own)
    }

    /// Whether the amount beside two sides says in each row what they say.
    fn agrees(&self, currency: Currency, numerals: Numerals) -> bool {
        let (Some(beside), Some((debit, credit))) = (self.roles.beside, self.roles.sides) else {
            return true;
        };
        let read = |row: &[String], at: usize| match row.get(at).map_or("", String::as_str) {
            text if text.is_empty() || sheet::is_dash(text) => Some(0),
            text => numerals.read(text, currency).ok().map(i64::saturating_abs),
        };
        let is_same =
            |row: &[String]| match (read(row, beside), read(row, debit), read(row, credit)) {
                (Some(whole), Some(out), Some(into)) => {
                    whole == 0 || whole == out.saturating_add(into)
                }
                _unreadable => false,
            };
        self.dated().all(|row| self.is_abroad(row) || is_same(row))
    }

    fn money_columns(&self) -> Vec<usize> {
        self.roles.moved().chain(self.roles.balance).collect()
    }

    /// The decimal mark that the amounts show, by which then all of them read.
    fn numerals(&self, currency: Currency) -> Option<Numerals> {
        let columns = self.money_columns();
        let texts = || columns.iter().flat_map(|at| self.values(*at));
        let beside = self.roles.beside.into_iter().flat_map(|at| self.values(at));
        let mut marks = texts().chain(beside).filter_map(decimal_of);
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
            // Rows without a day, too, which may be told as pending.
            None if texts().chain(self.undated(&columns)).any(ambiguous) => {
                let whole = || self.only_groups(currency, texts());
                self.stated_mark().or_else(whole)?
            }
            None => b'.',
        };
        let numerals = Numerals { decimal, grouped: true };
        let reads = |text: &str| {
            let read = numerals.read(text, currency);
            !matches!(read, Err(crate::settlement::amount::Refused::NotANumber))
        };
        texts().all(reads).then_some(numerals)
    }

    /// The mark that then is no decimal one, where all currencies are without decimals: what stands
    /// before three figures groups them.
    fn only_groups<'a>(
        &self,
        currency: Currency,
        texts: impl Iterator<Item = &'a str>,
    ) -> Option<u8> {
        if self.currencies(currency).iter().any(|own| own.exponent() > 0) {
            return None;
        }
        let marks: BTreeSet<char> =
            texts.flat_map(|text| text.chars().filter(|c| matches!(c, '.' | ','))).collect();
        match (marks.contains(&'.'), marks.contains(&',')) {
            (false, true) => Some(b'.'),
            (true, false) => Some(b','),
            _both => None,
        }
    }

    /// The first cell that leaves open what the rows say: a currency that is none, an amount that
    /// cannot be read or whose mark is open, a status that is not known.
    fn left_open(&self) -> Option<(&[String], usize)> {
        let first = |at: usize, is: &dyn Fn(&str) -> bool| {
            let filled = |row: &&[String]| row.get(at).is_some_and(|text| !text.is_empty());
            let mut own = self.dated().filter(filled);
            own.find(|row| row.get(at).is_some_and(|text| is(text))).map(|row| (row, at))
        };
        let is_code = |text: &str| Currency::parse_any(text).is_ok();
        let none_of_codes = |at: &usize| {
            let is_such = self.roles.named_currency.is_none() && self.values(*at).any(is_code);
            first(*at, &|text| !is_code(text)).filter(|_| is_such)
        };
        let currency = self.roles.currencies.iter().find_map(none_of_codes);
        let columns = self.money_columns();
        let shown: Vec<u8> =
            columns.iter().flat_map(|at| self.values(*at)).filter_map(decimal_of).collect();
        let commas = shown.iter().filter(|mark| **mark == b',').count();
        let decimal = if commas.saturating_mul(2) > shown.len() { b',' } else { b'.' };
        let of = self.currency().map(|(_, of)| of).or_else(|| Currency::parse("EUR").ok())?;
        let is_open = |text: &str| {
            let is_other = decimal_of(text).is_some_and(|mark| mark != decimal);
            let is_unsure = shown.is_empty() && text.contains(['.', ',']);
            is_other || is_unsure || Numerals { decimal, grouped: true }.read(text, of).is_err()
        };
        let amount = || columns.iter().find_map(|at| first(*at, &is_open));
        let status = |at: &usize| {
            let is_known = |text: &str| {
                let status = words::status_of(&self.layout.names, *at, text);
                status.is_some() || words::is_doubtful(text)
            };
            first(*at, &|text| !is_known(text))
        };
        currency.or_else(amount).or_else(|| self.roles.statuses.iter().find_map(status))
    }

    /// The decimal mark that the balances above the table show.
    fn stated_mark(&self) -> Option<u8> {
        let stated = declared(self.head, self.layout).into_iter();
        let stated = stated.filter(|own| own.what != Declares::Count);
        let stated = stated.filter_map(|own| decimal_of(&own.value));
        let above = sheet::rows_of(self.head, self.layout.delimiter, self.layout.above);
        let of_a_day = above.iter().filter_map(|row| words::balance_of_day(row));
        let mut marks = stated.chain(of_a_day.filter_map(decimal_of));
        let first = marks.next()?;
        marks.all(|other| other == first).then_some(first)
    }

    /// What looks like an amount in these columns of rows without a day.
    fn undated<'a>(&'a self, columns: &'a [usize]) -> impl Iterator<Item = &'a str> {
        let is_dated = |row: &&Vec<String>| row.get(self.roles.date).is_some_and(|d| is_day(d));
        let rows = self.rows.iter().filter(move |row| !is_dated(row));
        let texts = rows.flat_map(|row| columns.iter().filter_map(|at| row.get(*at)));
        texts.map(String::as_str).filter(|text| !text.contains(char::is_alphabetic))
    }

    /// Which of day and month stands first. Where no booking date shows it, other days of the rows
    /// and those above the table do, if they are written with the same mark.
    fn order(&self) -> Order {
        let orders = |texts: &mut dyn Iterator<Item = &str>| {
            let mut orders = texts.filter_map(order_of);
            let first = orders.next()?;
            Some(if orders.all(|other| other == first) { first } else { Order::Unknown })
        };
        if let Some(order) = orders(&mut self.values(self.roles.date)) {
            return order;
        }
        let named = self.layout.names.get(self.roles.date).map(|name| without_pattern(name));
        if let Some((_, Some(order))) = named {
            return order;
        }
        if words::is_month_first(&self.layout.names) {
            return Order::MonthFirst;
        }
        let mark = |text: &str| text.chars().find(|c| !c.is_alphanumeric());
        let Some(own) = self.values(self.roles.date).next().map(mark) else {
            return Order::Unknown;
        };
        let is_alike = |text: &&str| is_day(text) && mark(text) == own;
        let names = self.layout.names.iter().enumerate();
        let days = names.filter(|(_, name)| words::is_date(name)).map(|(at, _)| at);
        let above = sheet::rows_of(self.head, self.layout.delimiter, self.layout.above);
        let above = above.iter().flatten().map(String::as_str);
        let mut beside = days.flat_map(|at| self.values(at)).chain(above).filter(is_alike);
        orders(&mut beside).unwrap_or(Order::Unknown)
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
        // Under a name that is no flag's: balances show whether it is one.
        if filled.is_empty() && self.roles.balance.is_some() {
            filled.extend(self.ways());
        }
        let is_known = |at: &usize| self.values(*at).all(|value| words::is_debit(value).is_some());
        let unsigned = self.values(amount).all(|text| !text.starts_with(['-', '+', '(']));
        match (filled.iter().copied().find(is_known), unsigned) {
            (Some(flag), true) => {
                let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
                let (credits, debits) = (own(words::CREDITS), own(words::DEBITS));
                Some(Amounts::Flagged(number(amount), number(flag), credits, debits))
            }
            (None, true) if !filled.is_empty() && !own_signs::are_known(&self.layout.names) => None,
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
    /// one: whose view a card's file takes, only a balance shows, or a flag that says the same.
    fn signed(&self, amount: usize) -> Option<Amounts> {
        let shown = self.roles.balance.is_some() || self.roles.issuers || !self.is_cards();
        let shown = shown
            || self.flags().into_iter().any(|flag| {
                self.is_alike(amount, flag) || self.roles.card && self.is_against(amount, flag)
            });
        shown.then(|| Amounts::Signed(number(amount)))
    }

    /// Whether the file is a card's: by a name that is one of such a file alone; or by one that
    /// holds a word for a card and has values, or numbers of which all but the end is hidden,
    /// unless rows name accounts of other sides, as only an account's do.
    fn is_cards(&self) -> bool {
        let mut names = self.layout.names.iter().enumerate();
        let has_values = |at: usize| self.values(at).next().is_some();
        let mut sides = names.clone().filter(|(_, name)| words::is_other_account(name));
        if self.roles.card || words::is_of_account(&self.layout.names) {
            return self.roles.card;
        }
        let is_such = |(at, name): (usize, &String)| match words::may_be_cards(name) {
            true => has_values(at),
            false => !words::may_be_accounts(name) && self.values(at).any(words::is_masked),
        };
        !sides.any(|(at, _)| has_values(at)) && names.any(is_such)
    }

    /// Whether a flag says of each amount the way that its sign does, and both ways are there: what
    /// was bought is a debit in everyone's view.
    fn is_alike(&self, amount: usize, flag: usize) -> bool {
        let ways = self.dated().map(|row| {
            let is_out = row.get(flag).and_then(|text| words::is_debit(text))?;
            let has_minus = row.get(amount)?.starts_with('-');
            (is_out == has_minus).then_some(is_out)
        });
        let ways: Option<BTreeSet<bool>> = ways.collect();
        ways.is_some_and(|ways| ways.len() == 2)
    }

    /// Whether it says of each the other way, and both are there: then the signs of a card's file
    /// are its issuer's.
    fn is_against(&self, amount: usize, flag: usize) -> bool {
        let ways = self.dated().map(|row| {
            let is_out = row.get(flag).and_then(|text| words::is_debit(text))?;
            (is_out != row.get(amount)?.starts_with('-')).then_some(is_out)
        });
        let ways: Option<BTreeSet<bool>> = ways.collect();
        ways.is_some_and(|ways| ways.len() == 2)
    }

    /// Whether the signs of a card's file are its issuer's, by a flag in each row.
    fn is_turned(&self, table: &Table) -> bool {
        let (true, Amounts::Signed(Column::Number(number))) = (self.roles.card, &table.amounts)
        else {
            return false;
        };
        let amount = number.saturating_sub(1);
        self.roles.balance.is_none()
            && self.flags().into_iter().any(|flag| self.is_against(amount, flag))
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

    /// Whether a fee carries its own sign, where balances follow only with it beside the amount;
    /// none where they do not, or where nothing tells. The oldest row is in no equation: of a fee
    /// there alone, an account that held nothing before shows it, and the layout of which every
    /// issue takes the fee besides.
    fn less_fee(
        &self,
        table: &Table,
        fee: usize,
        currency: Currency,
        numerals: Numerals,
    ) -> Option<bool> {
        let (Some(balance), Amounts::Signed(Column::Number(amount))) =
            (self.roles.balance, &table.amounts)
        else {
            return None;
        };
        let at = (amount.saturating_sub(1), balance);
        let all = |sign: i64| -> Vec<Chain> {
            let less = |of: Currency, row: &[String], minor: i64| {
                let taken = row.get(fee).and_then(|text| numerals.read(text, of).ok());
                minor.saturating_sub(taken.unwrap_or(0).saturating_mul(sign))
            };
            let chains = |of| self.chains(at, of, numerals, |row, minor| less(of, row, minor));
            self.currencies(currency).into_iter().flat_map(chains).collect()
        };
        let (plain, less, more) = (all(0), all(1), all(-1));
        let shows = |of: &[Chain], is_so: fn(&Chain, &Chain) -> bool| {
            plain.iter().zip(of).any(|(plain, of)| is_so(plain, of))
        };
        let proves = |of: &[Chain]| shows(of, |plain, of| !plain.ties() && of.proves());
        let is_new =
            |of: &[Chain]| shows(of, |plain, of| !plain.begins_at_nil() && of.begins_at_nil());
        let name = self.layout.names.get(fee);
        let is_within = name.is_some_and(|name| words::is_within(name))
            || plain.iter().any(|chain| chain.fees().0 > 0);
        let is_open = !is_within && plain.iter().any(|chain| chain.fees().1 > 0);
        match (proves(&less), proves(&more)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) if !is_open => None,
            (false, false) if is_new(&less) => Some(false),
            (false, false) if is_new(&more) => Some(true),
            (false, false) => self.product_at().map(|_| false),
        }
    }

    /// The currencies that rows are in; those that are none are told where the rows are read.
    fn currencies(&self, first: Currency) -> Vec<Currency> {
        let Some(at) = self.currency().and_then(|(at, _)| at) else { return vec![first] };
        let mut all = vec![first];
        for own in self.values(at).filter_map(|code| Currency::parse_any(code).ok()) {
            if !all.contains(&own) {
                all.push(own);
            }
        }
        all
    }

    /// The balances that the booked rows of a currency say, by pocket where there are several, and
    /// what `of` makes of their amounts.
    fn chains(
        &self,
        at: (usize, usize),
        currency: Currency,
        numerals: Numerals,
        of: impl Fn(&[String], i64) -> i64,
    ) -> Vec<Chain> {
        let Some(pocket) = self.pockets_at() else {
            return vec![self.chain(at, currency, numerals, |_row| true, of)];
        };
        let one = |name: &str| {
            let is_own = |row: &[String]| row.get(pocket).is_some_and(|own| own == name);
            self.chain(at, currency, numerals, is_own, &of)
        };
        self.pockets(pocket).into_iter().map(one).collect()
    }

    fn chain(
        &self,
        (amount, balance): (usize, usize),
        currency: Currency,
        numerals: Numerals,
        is_of_pocket: impl Fn(&[String]) -> bool,
        of: impl Fn(&[String], i64) -> i64,
    ) -> Chain {
        let (order, fee) = (self.order(), self.fee_at());
        let mut chain = Chain::new(currency);
        let of_row = self.currency().and_then(|(at, _)| at);
        let is_own = |row: &[String]| {
            let code = of_row.and_then(|at| row.get(at));
            code.is_none_or(|code| Currency::parse_any(code).is_ok_and(|own| own == currency))
        };
        let counts = |row: &[String]| self.is_booked(row) && is_own(row) && is_of_pocket(row);
        for (line, row) in (1_u64..).zip(self.rows).filter(|(_, row)| counts(row)) {
            let read = |at: usize| numerals.read(row.get(at)?, currency).ok();
            if let Some(minor) = read(amount) {
                let known = read(balance);
                chain.add(line, of(row, minor), known);
                chain.fee(known.is_some(), fee.and_then(read).is_some_and(|minor| minor != 0));
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
        let chains = |sign: i64| {
            self.chains(at, currency, numerals, |_row, minor| minor.saturating_mul(sign))
        };
        let is_plain = chains(1).iter().any(Chain::proves);
        !is_plain && chains(-1).iter().any(Chain::shows_signs)
    }
}

/// The sign of the euro, the real or the pound, or the code of a currency before or behind an
/// amount. Other pounds have another sign, or a letter beside it.
fn currency_within(text: &str) -> Option<Currency> {
    if text.contains('€') {
        return Currency::parse("EUR").ok();
    }
    if text.contains("R$") {
        return Currency::parse("BRL").ok();
    }
    if text.contains('£') && !text.contains(char::is_alphabetic) {
        return Currency::parse("GBP").ok();
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

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use crate::model::money::Currency;
    use crate::model::settlement::Severity;
    use crate::settlement::ledger::{Inspection, Said, State, inspect};

    fn look(text: &str) -> Inspection {
        inspect(Box::new(std::io::Cursor::new(text.as_bytes().to_vec())), None, None).unwrap()
    }

    /// The state, and credits and debits of all currencies.
    fn sums(text: &str) -> (State, Vec<(String, i128, i128)>) {
        let found = look(text);
        let sums = found.sums.booked.iter();
        let sums = sums.map(|(of, own)| (of.to_string(), own.credit_minor, own.debit_minor));
        (found.state, sums.collect())
    }

    fn ok(code: &str, credits: i128, debits: i128) -> (State, Vec<(String, i128, i128)>) {
        (State::Ok, vec![(code.to_owned(), credits, debits)])
    }

    fn look_in(code: &str, text: &str) -> Inspection {
        let said = Said { currency: Some(Currency::parse(code).unwrap()), ..Said::default() };
        let input = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
        inspect(input, None, Some(said)).unwrap()
    }

    #[test]
    fn a_person_says_the_currency_and_nothing_else() {
        let rows = "Date,Text,Amount,Balance\n2026-11-18,a,-10.00,90.00\n2026-11-19,b,5.00,95.00\n";
        assert_eq!(look(rows).state, State::UnknownFormat);
        let found = look_in("USD", rows);
        assert_eq!((found.state, found.version.as_str()), (State::Ok, "USD"));
        // It says no sign, no decimal mark, and no column.
        for open in [
            "Date,Text,Amount\n2026-11-18,a,10.00\n2026-11-19,b,5.00\n",
            "Date,Text,Amount,Balance\n2026-11-18,a,-1.000,9.000\n",
            "Date,Text,Figure\n2026-11-18,a,-10.00\n",
        ] {
            assert_ne!(look_in("USD", open).state, State::Ok, "{open}");
        }
    }

    #[test]
    fn what_a_file_names_counts_before_what_a_person_says() {
        let rows = "Date,Text,Amount\n2026-11-18,a,-10.00\n2026-11-19,b,5.00\n";
        let of = |code: &str, text: &str| {
            let found = look_in(code, text);
            let sums = found.sums.booked.keys().map(ToString::to_string);
            (found.state, sums.collect::<Vec<_>>().join(" "))
        };
        let named = rows.replace("Amount", "Amount (EUR)");
        assert_eq!(of("USD", &named), (State::Ok, "EUR".to_owned()));
        for above in ["Account;12 EUR", "Kontoauszug in CHF", "Controvalore in: Euro"] {
            let text = format!("{above}\n\n{}", rows.replace(',', ";"));
            assert_eq!(of("USD", &text).0, State::UnknownFormat, "{above}");
        }
        for other in [
            "Date,Text,Debit EUR,Credit CHF\n2026-11-18,a,10.00,\n2026-11-19,b,,5.00\n",
            "Date,Text,Amount,Unit\n2026-11-18,a,-10.00,HUF\n2026-11-19,b,5.00,HUF\n",
            "Date,Text,Amount,Unit\n2026-11-18,a,-10.00,USD\n2026-11-19,b,5.00,HUF\n",
        ] {
            assert_ne!(of("USD", other).0, State::Ok, "{other}");
        }
        let abroad = "Date,Text,Amount,Original currency\n2026-11-18,a,-10.00,EUR\n\
                      2026-11-19,b,5.00,\n";
        assert_eq!(of("CHF", abroad), (State::Ok, "CHF".to_owned()));
        for amount in ["€-10.00", "-10.00 CHF", "£-10.00", "-10.00 kr"] {
            let text = rows.replace("-10.00", amount);
            assert_ne!(of("USD", &text).0, State::Ok, "{amount}");
        }
        let rupees = rows.replace("-10.00", "-₹10.00");
        assert_eq!(of("INR", &rupees), (State::Ok, "INR".to_owned()));
        let conta = "Conta;0001;EUR\n\nData mov.;Descrição;Débito;Crédito\n18-11-2026;a;10,00;\n";
        assert_eq!(sums(conta), ok("EUR", 0, 1_000));
    }

    /// A card's file that says the currency of what was paid abroad alone, beside that amount.
    #[test]
    fn an_amount_named_as_a_currency_is_another_one() {
        let of = |names: &str, rows: [&str; 2]| {
            sums(&format!("{names}\n23-11-2026;a;{}\n22-11-2026;b;{}\n", rows[0], rows[1]))
        };
        let (paid, own) = (["-9,30;USD;-10,00", "-18,60;USD;-20,00"], ["-9,30;EUR;-9,30"; 2]);
        for names in [
            "Datum;Omschrijving;Bedrag;Valuta;Bedrag in oorspronkelijke valuta",
            "Buchungsdatum;Verwendungszweck;Betrag;Währung;Betrag in Fremdwährung",
            "Date;Description;Amount;Currency;Amount in foreign currency",
            "Bokføringsdato;Beskrivelse;Beløp;Valuta;Beløp (valuta)",
            "Data;Descrizione;Importo;Divisa;Controvalore",
            "Kirjauspäivä;Selitys;Määrä;Valuutta;Määrä valuutassa",
        ] {
            assert_eq!(of(names, paid).0, State::UnknownFormat, "{names}");
            assert_eq!(of(names, own), ok("EUR", 0, 1_860), "{names}");
        }
        let card = "Datum;Omschrijving;Debit/Credit;Bedrag;Valuta;\
                    Bedrag in oorspronkelijke valuta\n23-11-2026;a;D;9,30;USD;10,00\n\
                    22-11-2026;b;D;11,16;USD;12,00\n";
        assert_eq!(look(card).state, State::UnknownFormat);
        // What the account held, by whatever name, is no amount.
        let held = "Datum;Omschrijving;Bedrag;Valuta;Stand\n23-11-2026;a;-9,30;EUR;90,70\n\
                    22-11-2026;b;-8,60;EUR;100,00\n";
        assert_eq!(sums(held), ok("EUR", 0, 1_790));
        // Nor before it; a rate, or a bonus that one row has, is none either.
        for names in ["Beginsaldo", "Cours"] {
            let head = format!("Datum,Valuta,{names},Bedrag,Omschrijving");
            let one = format!("{head}\n23-11-2026,EUR,2.50,-9.30,a\n");
            assert_eq!(sums(&one), ok("EUR", 0, 930), "{names}");
        }
        let bonus = "Datum;Omschrijving;Bedrag;Bonus;Valuta\n23-11-2026;a;-9,30;0,90;EUR\n\
                     22-11-2026;b;-8,60;0,00;EUR\n";
        assert_eq!(sums(bonus), ok("EUR", 0, 1_790));
    }

    #[test]
    fn banks_whose_accounts_are_in_one_currency_are_known_by_their_columns() {
        let chase = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n\
                     DEBIT,11/06/2026,a,-37.50,ACH_PAYMENT,4555.10,,\n\
                     DEBIT,11/07/2026,b,-2.50,FEE_TRANSACTION,4552.60,,\n";
        assert_eq!(sums(chase), ok("USD", 0, 4_000));
        let found = look(chase);
        assert!(
            found.sums.problems.is_empty(),
            "the month stands first: {:?}",
            found.sums.problems
        );
        let days = found.sums.statements.iter().map(|one| one.head.from);
        assert!(days.flatten().eq(NaiveDate::from_ymd_opt(2026, 11, 6)));
        assert_eq!(sums(&chase.replace("Slip #", "Slip #,")), ok("USD", 0, 4_000));
        let other = chase.replace("Details,", "Kind,");
        assert_eq!(look(&other).state, State::UnknownFormat);
        let hdfc = "  Date     ,Narration ,Value Dat,Debit Amount ,Credit Amount,Chq/Ref Number,\
                    Closing Balance\n15/11/26,a,15/11/26,250.00,0.00,1,9750.00\n";
        assert_eq!(sums(hdfc), ok("INR", 0, 25_000));
    }

    #[test]
    fn a_file_that_lost_all_of_its_rows_is_no_empty_one() {
        let head = |before: &str, after: &str, came: &str| {
            format!(
                "Description,,Summary Amt.\nBeginning balance as of 11/01/2026,,\"{before}\"\n\
                 Total credits,,\"{came}\"\nEnding balance as of 11/30/2026,,\"{after}\"\n\n\
                 Date,Description,Amount,Running Bal.\n"
            )
        };
        assert_eq!(look(&head("5,000.00", "5,000.00", "0.00")).state, State::Ok);
        let lost = look(&head("5,000.00", "5,500.00", "500.00"));
        assert_eq!(lost.state, State::Quarantined);
        let fields = lost.sums.problems.iter().map(|one| (one.line, one.expected.as_str()));
        let wants = [
            (4, "rows that bring 5,000.00 to 5,500.00"),
            (3, "what the file says there is: in 500.00"),
        ];
        assert!(fields.eq(wants), "{:?}", lost.sums.problems);
        assert_eq!(look(&head("0.00", "0.00", "500.00")).state, State::Quarantined);
        let came = head("5,000.00", "5,500.00", "500.00") + "11/18/2026,a,500.00,\"5,500.00\"\n";
        assert_eq!(sums(&came), ok("USD", 50_000, 0));
    }

    #[test]
    fn what_is_no_settlement_file_is_called_by_its_name() {
        for (bytes, says) in [
            (&b"%PDF-1.7\n1 0 obj"[..], "a PDF document"),
            (b"-----BEGIN PGP MESSAGE-----\n\nhQ", "an OpenPGP message"),
            (b"\x85\x02\x0c\x03\xaa;\xbb;\xcc", "bytes that are no text"),
            (b"BZh91AY&SY", "bzip2"),
            (b"\xfd7zXZ\x00\x00", "xz"),
            (b"7z\xbc\xaf\x27\x1c", "7z"),
            (b"(\xb5/\xfd\x04", "zstd"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1", "bytes that are no text"),
        ] {
            let input = Box::new(std::io::Cursor::new(bytes.to_vec()));
            let found = crate::settlement::ledger::inspect(input, None, None).unwrap();
            assert_eq!(found.state, State::UnknownFormat);
            let problem = found.sums.problems.first().map(|problem| problem.found.clone());
            let problem = problem.unwrap_or_default();
            assert!(problem.contains(says), "{says}: {problem}");
        }
        let found = crate::settlement::bank_csv::no_settlement_file;
        assert_eq!(found("Date;Amount\n2026-11-01;7\u{1a}"), None);
    }

    #[test]
    fn of_what_was_agreed_and_what_moved_the_account_the_latter_is_read() {
        let vtb = "Номер карты/счета/договора;Дата операции;Дата обработки;Сумма операции;\
                   Валюта операции;Сумма пересчитанная в валюту счета;Валюта счета;Основание;\
                   Статус\n\
                   '40817;2026-09-15 09:02:50;2026-09-15;100,00;EUR;9500,00;RUB;a;Исполнено\n\
                   '40817;2026-09-18 16:47:57;2026-09-18;-44,30;RUB;-44,30;RUB;b;Исполнено\n";
        assert_eq!(sums(vtb), ok("RUB", 950_000, 4_430));
        let privat = "Дата,Категорія,Картка,Опис операції,Сума в валюті картки,Валюта картки,\
                      Сума транзакції,Валюта транзакції,Залишок на кінець періоду,Валюта залишку\n\
                      17.06.2026,a,1234,b,-447.30,UAH,-10.00,EUR,552.70,UAH\n\
                      16.06.2026,a,1234,b,1000.00,UAH,1000.00,UAH,1000.00,UAH\n";
        assert_eq!(sums(privat), ok("UAH", 100_000, 44_730));
        assert_eq!(sums(&privat.replace(",552.70", ",552.60")).0, State::Quarantined);
        let finom = "Buchungsdatum,Time completed,Status,Transaktionsart,Verwendungszweck,\
                     Ursprungswährung,Ursprungsbetrag,Zahlungswährung,Zahlungsbetrag,\
                     Wallet-Saldo nach Transaktion\n\
                     13.03.2026,13.03.2026,Completed,Transfer,a,EUR,500.00,EUR,500.00,500.00\n\
                     14.03.2026,14.03.2026,Completed,Card,b,USD,-22.00,EUR,-20.00,480.00\n";
        assert_eq!(sums(finom), ok("EUR", 50_000, 2_000));
        let vivid = "Completed date,Counterparty name,Reference,Payment amount,Payment currency\n\
                     13.03.2026,a,Gehalt,2500.00,EUR\n13.03.2026,b,Miete,-650.00,EUR\n";
        assert_eq!(sums(vivid), ok("EUR", 250_000, 65_000));
        let freedom = "Дата операции;Дата обработки;Описание;Сумма;Валюта;ID операции\n\
                       23.05.2026 14:35;24.05.2026;MAGNUM;\u{2212}1 234,56;KZT;freedom-1\n";
        assert_eq!(sums(freedom), ok("KZT", 0, 123_456));
        let air = "Datum provedení;Měna účtu;Částka v měně účtu;Poplatek v měně účtu;Původní měna \
                   úhrady;Původní částka úhrady;Název protistrany;Poznámka k úhradě\n\
                   13.09.2026;CZK;-245,00;0,00;EUR;-10,00;ALBERT;\n\
                   14.09.2026;CZK;500,00;0,00;CZK;500,00;Jana;a\n";
        assert_eq!(sums(air), ok("CZK", 50_000, 24_500));
        let fee = air.replace("-245,00;0,00", "-245,00;5,00");
        assert_eq!(sums(&fee).0, State::Quarantined, "nobody says whether it is within");
    }

    #[test]
    fn a_balance_behind_each_row_is_one_in_more_languages() {
        let gopay = "ID pohybu;Datum;Typ;Protistrana;ID objednávky/VS;Částka;Počáteční stav;\
                     Koncový stav;Měna;ID referenčního pohybu\n\
                     3001;13.10.2026 10:00;Platba;Jan;2026101;500,00;0,00;500,00;CZK;\n\
                     3002;13.10.2026 10:00;Poplatek;GoPay;2026101;-11,50;500,00;488,50;CZK;3001\n";
        assert_eq!(sums(gopay), ok("CZK", 50_000, 1_150));
        assert_eq!(sums(&gopay.replace("488,50", "488,40")).0, State::Quarantined);
        let barion = "Transaction time,Transaction type,Customer/beneficiary,Transaction amount,\
                      Balance after transaction,Currency,Payment ID generated by shop\n\
                      2026-10-02 12:00,Card payment,a@example.com,25.00,25.00,EUR,ORD-3001\n\
                      2026-10-02 12:00,Fee,Barion,-0.45,24.55,EUR,ORD-3001\n";
        assert_eq!(sums(barion), ok("EUR", 2_500, 45));
        let mbank = "mBank S.A.\n\n;;;;;;#Počáteční zůstatek:;6 000,00 CZK;\n\n\
                     #Datum uskutečnění transakce;#Datum zaúčtování transakce;#Popis transakce;\
                     #Částka transakce;#Účetní zůstatek po transakci;\n\
                     06-09-2026;17-09-2026;a;-231,90;5 768,10;\n\
                     11-09-2026;17-09-2026;b;750,00;6 518,10;\n\n\
                     ;;;#Konečný zůstatek:;6 518,10 CZK;\n";
        assert_eq!(sums(mbank), ok("CZK", 75_000, 23_190));
    }

    #[test]
    fn the_sign_of_the_real_is_its_code() {
        let bradesco = "Extrato de: Ag: 1 | Conta: 2-8\nData;Histórico;Docto.;Crédito (R$);Débito \
                        (R$);Saldo (R$);\n30/12/25;SALDO ANTERIOR;;;;\"1,00\";\n\
                        22/01/26;Resgate;1965112;\"3.919,07\";;\"3.920,07\";\n\
                        22/01/26;Pagto;0000384;;\"-3.919,07\";\"1,00\";\n";
        assert_eq!(sums(bradesco), ok("BRL", 391_907, 391_907));
        let without =
            bradesco.replace("22/01/26;Resgate;1965112;\"3.919,07\";;\"3.920,07\";\n", "");
        assert_eq!(sums(&without).0, State::Quarantined);
        // An R alone is that of the rand.
        assert_eq!(sums(&bradesco.replace("(R$)", "(R)")).0, State::UnknownFormat);
        let inter = "Data Lançamento;Histórico;Descrição;Valor;Saldo\n\
                     13/10/2026;Pix recebido;a;R$ 80,00;R$ 1.080,00\n\
                     14/10/2026;Pix enviado;b;R$ -300,00;R$ 780,00\n";
        assert_eq!(sums(inter), ok("BRL", 8_000, 30_000));
        assert_eq!(sums(&inter.replace("R$ -300", "-R$ 300")), ok("BRL", 8_000, 30_000));
    }

    #[test]
    fn currencies_that_may_be_those_of_another_amount_are_not_the_accounts() {
        let card = "Datum;Text;Belopp;Valuta;Fremmed værdi\n2026-03-10;a;-650,00;SEK;\n\
                    2026-03-12;b;-150,00;GBP;12,34\n2026-03-13;c;10,00;SEK;\n";
        assert_eq!(sums(card).0, State::UnknownFormat);
        let empty = card.replace("12,34", "");
        let both = vec![("GBP".to_owned(), 0, 15_000), ("SEK".to_owned(), 1_000, 65_000)];
        assert_eq!(sums(&empty), (State::Ok, both));
        let beside_tax = "Datum;Text;Ort;Valuta;Utl.belopp/moms;Belopp\n\
                          2026-03-10;a;ORT;SEK;;-650,00\n2026-03-12;b;LUX;GBP;12,34;-150,00\n";
        assert_eq!(sums(beside_tax).0, State::UnknownFormat);
    }

    #[test]
    fn a_title_among_the_rows_that_says_another_currency_is_no_remark() {
        let text = |title: &str, last: &str| {
            format!(
                "Currency: EUR\nDate;Description;Debit;Credit\n2026-09-13;a;10.00;\n\
                 2026-09-14;b;;25.00\n{title}\n{last}"
            )
        };
        let row = "2026-09-15;c;30.00;\n";
        for title in ["Currency: USD", "Currency;USD;", "Transactions in USD", "USD", "USD;;;"] {
            assert_eq!(sums(&text(title, row)).0, State::Quarantined, "{title}");
        }
        for title in ["Currency: EUR", "Transactions in EUR", "Some more words", "Rate 1.08 USD"] {
            assert_eq!(sums(&text(title, row)), ok("EUR", 2_500, 4_000), "{title}");
        }
        let below = text("Ask us for an account in USD", "");
        assert_eq!(sums(&below), ok("EUR", 2_500, 1_000), "no row stands below it");
    }

    #[test]
    fn a_column_that_is_called_like_a_status_is_one_where_its_words_are_known() {
        let text = |name: &str, last: &str| {
            format!(
                "Datum;Text;Betrag;Währung;{name}\n13.09.2026;a;-10,00;EUR;Gebucht\n\
                 14.09.2026;b;25,00;EUR;Gebucht\n15.09.2026;c;-30,00;EUR;{last}\n"
            )
        };
        for name in ["Transaktionsstatus", "Status operacji", "Stato operazione", "Order state"] {
            assert_eq!(sums(&text(name, "Gebucht")), ok("EUR", 2_500, 4_000), "{name}");
            assert_eq!(sums(&text(name, "Vorgemerkt")), ok("EUR", 2_500, 1_000), "{name}");
            for word in ["in Prüfung", "w realizacji", "Autorizzato", "unheard of"] {
                assert_ne!(sums(&text(name, word)).0, State::Ok, "{name}: {word}");
            }
        }
        // Of an account, and without a word that is known, it says nothing of a row.
        assert_eq!(sums(&text("Account status", "other")), ok("EUR", 2_500, 4_000));
        let plain = text("Order status", "other").replace("Gebucht", "one");
        assert_eq!(sums(&plain), ok("EUR", 2_500, 4_000));
    }

    #[test]
    fn a_balance_that_is_told_as_an_amount_beside_none_is_no_movement() {
        for word in
            ["Opening balance", "Saldovortrag", "Saldo otwarcia", "Total", "Solde d'ouverture"]
        {
            let text = format!(
                "Datum;Text;Betrag;Währung;Saldo\n01.09.2026;{word};1000,00;EUR;\n\
                 02.09.2026;a;-20,00;EUR;980,00\n03.09.2026;b;-30,00;EUR;950,00\n"
            );
            assert_eq!(sums(&text).0, State::Quarantined, "{word}");
        }
    }

    #[test]
    fn no_balance_excuses_a_flag_of_the_oldest_row() {
        let text = |column: &str, flags: [&str; 3]| {
            let rows = [("13.09.2026", "-10,00", "90,00"), ("14.09.2026", "-20,00", "70,00")];
            let rows = rows.into_iter().chain([("15.09.2026", "5,00", "75,00")]);
            let rows = rows.zip(flags).map(|((day, amount, balance), flag)| {
                format!("{day};a;{amount};EUR;{balance};{flag}\n")
            });
            let rows: Vec<String> = rows.collect();
            let head = format!("Datum;Text;Betrag;Währung;Saldo;{column}\n");
            let newest_first: String = rows.iter().rev().map(String::as_str).collect();
            [format!("{head}{}", rows.concat()), format!("{head}{newest_first}")]
        };
        for (column, no, yes) in
            [("Storniert", "nein", "ja"), ("Is pending", "no", "yes"), ("Note", "", "Erstattet")]
        {
            for rows in text(column, [no, yes, no]) {
                assert_eq!(sums(&rows), ok("EUR", 500, 3_000), "the balance proves it: {rows}");
            }
            for rows in text(column, [yes, no, no]) {
                assert_eq!(sums(&rows).0, State::Quarantined, "{rows}");
                // An account that held nothing before it.
                let new = rows.replace("90,00", "-10,00").replace("70,00", "-30,00");
                let new = new.replace("75,00", "-25,00");
                assert_eq!(sums(&new), ok("EUR", 500, 3_000), "{new}");
            }
        }
    }

    #[test]
    fn figures_without_decimals_are_grouped_where_no_currency_has_any() {
        let text = |code: &str, amounts: [&str; 2]| {
            let [first, second] = amounts;
            format!(
                "Date;Description;Amount;Currency\n2026-10-01;a;{first};{code}\n\
                 2026-10-16;b;{second};{code}\n"
            )
        };
        assert_eq!(sums(&text("JPY", ["-1,505", "150,000"])), ok("JPY", 150_000, 1_505));
        assert_eq!(sums(&text("CLP", ["-1.505", "150.000"])), ok("CLP", 150_000, 1_505));
        assert_eq!(look(&text("EUR", ["-1,505", "150,000"])).state, State::UnknownFormat);
        assert_eq!(look(&text("JPY", ["-1,505", "150.000"])).state, State::UnknownFormat);
    }

    #[test]
    fn sides_by_names_that_mean_them_beside_each_other_are_read() {
        for (out, into) in [("Payments", "Receipts"), ("Debe", "Haber"), ("Wydatki", "Wpływy")] {
            let text = format!(
                "Date;Description;{out};{into};Currency\n2026-10-01;a;12.50;;EUR\n\
                 2026-10-16;b;;1500.00;EUR\n"
            );
            assert_eq!(sums(&text), ok("EUR", 150_000, 1_250), "{out}");
        }
        let pound = "Date;Description;Amount (£)\n2026-10-01;a;-12.50\n2026-10-16;b;1500.00\n";
        assert_eq!(sums(pound), ok("GBP", 150_000, 1_250));
        let above = "Currency\t:\tINR\n\nDate\tDescription\tDebit\tCredit\tBalance\n\
                     2026-10-01\ta\t12.50\t\t987.50\n2026-10-16\tb\t\t1500.00\t2487.50\n";
        assert_eq!(sums(above), ok("INR", 150_000, 1_250));
    }

    #[test]
    fn words_of_two_banks_for_what_is_to_come_are_pending() {
        let danish = "Dato;Kategori;Underkategori;Tekst;Beløb i DKK;Saldo;Status;Afstemt\n\
                      15.10.2026;x;y;a;-12,50;987,50;Udført;Nej\n\
                      16.10.2026;x;y;b;1.500,00;2.487,50;Udført;Nej\n\
                      17.10.2026;x;y;c;-99,00;;Venter;Nej\n";
        assert_eq!(sums(danish), ok("DKK", 150_000, 1_250));
        let other = danish.replace("Underkategori", "Andet");
        assert_eq!(look(&other).state, State::Quarantined, "of another bank");
    }

    #[test]
    fn the_first_cell_that_leaves_a_file_open_is_named() {
        let rows = |code: &str, amount: &str| {
            let text = format!(
                "Date;Description;Amount;Currency\n2026-10-01;a;-12.50;EUR\n\
                 2026-10-16;b;{amount};{code}\n"
            );
            let found = look(&text);
            assert_eq!(found.state, State::UnknownFormat, "{text}");
            found.sums.problems[0].found.clone()
        };
        for (code, amount, said) in [
            ("EUR", "#####", "line 3, Amount: `#####`"),
            ("EUR", "12,00", "line 3, Amount: `12,00`"),
            ("TALER", "12.00", "line 3, Currency: `TALER`"),
        ] {
            assert!(rows(code, amount).contains(said), "{}", rows(code, amount));
        }
        let cyrillic = "Äàòà;Ñóììà;Âàëþòà\n15.10.2026;-10,00;RUB\n";
        let found = look(cyrillic).sums.problems[0].found.clone();
        assert!(found.contains("windows-1251"), "{found}");
    }

    #[test]
    fn exports_in_norwegian_are_read() {
        let sided = "Utført dato;Bokført dato;Beskrivelse;Beløp inn;Beløp ut;Valuta;Status\n\
                     04.09.2026;;a;;-112.000;NOK;Reservert\n\
                     17.08.2026;17.08.2026;b;;-364.8;NOK;Bokført\n\
                     14.08.2026;14.08.2026;c;50631.02;;NOK;Bokført\n";
        assert_eq!(sums(sided), ok("NOK", 5_063_102, 36_480));
        let all = look(sided).sums.totals.values().map(|of| of.debit_minor).sum::<i128>();
        assert_eq!(all, 36_480 + 11_200, "a third nil beyond a mark that other rows show");
        // Where none shows it, it may be a group.
        let whole = sided.replace("364.8", "364").replace("50631.02", "50631");
        assert_eq!(look(&whole).state, State::UnknownFormat);
        let signed = "Bokføringsdato;Beløp;Navn;Tittel;Valuta;Betalingstype\n\
                      Reservert;-115,70;;a;NOK;Varekjøp\n2026/09/03;-300,00;;b;NOK;Visa\n\
                      2026/08/17;10000,00;;c;NOK;Overførsel\n";
        assert_eq!(sums(signed), ok("NOK", 1_000_000, 30_000));
    }

    #[test]
    fn exports_in_turkish_are_read() {
        let sided = "İşlem Tarihi;Açıklama;Borç;Alacak;Bakiye;Para Birimi\n\
                     05.01.2026;a;;1.500,00;2.500,00;TRY\n06.01.2026;b;1.250,00;;1.250,00;TRY\n";
        assert_eq!(sums(sided), ok("TRY", 150_000, 125_000));
        let signed = "Tarih;Açıklama;Tutar;Bakiye;Para Birimi\n05.03.2026;a;1.250,00-;750,00;TRY\n\
                      06.03.2026;b;15.000,00;15.750,00;TRY\n";
        assert_eq!(sums(signed), ok("TRY", 1_500_000, 125_000));
        // A card's file is written so, too, with the signs of its issuer.
        let card = "Tarih;Açıklama;Tutar;Para Birimi\n05.03.2026;a;12,50;TRY\n\
                    06.03.2026;b;-9,00;TRY\n";
        assert_eq!(look(card).state, State::UnknownFormat);
    }

    #[test]
    fn more_exports_of_ubs_are_read() {
        let legacy = "IBAN;Whrg.;Beschreibung;Abschluss;Buchungsdatum;Valuta;Beschreibung 1;\
                      Transaktions-Nr.;Devisenkurs zum Originalbetrag in Abrechnungswährung;\
                      Einzelbetrag;Belastung;Gutschrift;Saldo\n\
                      CH9300762011623852957;CHF;x;29.09.2026;30.09.2026;30.09.2026;a;T1;;;23.40;;\
                      1'026.60\n\
                      CH9300762011623852957;CHF;x;28.09.2026;28.09.2026;28.09.2026;b;T2;;;;200.00;\
                      1'050.00\n";
        assert_eq!(sums(legacy), ok("CHF", 20_000, 2_340));
        let account = look(legacy).sums.statements.remove(0).head.account;
        assert_eq!(account.as_deref(), Some("CH9300762011623852957"));
        let signed = "Abschlussdatum;Buchungsdatum;Währung;Transaktionsbetrag;\
                      Belastung/Gutschrift;Saldo;Beschreibung1\n\
                      2026-09-29;2026-09-30;CHF;-23.40;Belastung;1026.60;a\n\
                      2026-09-28;2026-09-28;CHF;200.00;Gutschrift;1050.00;b\n";
        assert_eq!(sums(signed), ok("CHF", 20_000, 2_340));
        let french = "Produit;Monn.;Description;Date de valeur;Débit;Crédit;Solde\n\
                      1;CHF;a;28.02.2026;10.00;;11'373.94\n1;CHF;b;31.03.2026;;240.00;11'613.94\n";
        assert_eq!(sums(french), ok("CHF", 24_000, 1_000));
    }

    #[test]
    fn names_of_more_banks_are_read() {
        for (code, text) in [
            (
                "EUR",
                "Data operazione;Causale / Descrizione operazione;Importo (EUR)\n\
                 24/09/2026;a;-5,10\n20/09/2026;b;+1000,00\n",
            ),
            (
                "CHF",
                "Transaktions-ID,Belastung oder Gutschrift,Buchungs-Datum,Transaktions-Datum,\
                 Transaktions-Info,Betrag,Belastung (CHF),Gutschrift (CHF)\n\
                 1,Belastung,2026-09-24,2026-09-23,a,-5.10,5.10,\n\
                 2,Gutschrift,2026-09-20,2026-09-20,b,1000.00,,1000.00\n",
            ),
            (
                "CAD",
                "Date de transaction,Libellé,Montant,Devise\n2026-04-02,a,-5.10,CAD\n\
                 2026-04-24,b,1000.00,CAD\n",
            ),
            (
                "HUF",
                "Könyvelés dátuma;Terhelés;Jóváírás;Devizanem;Közlemény\n\
                 2026.09.15.;5,10;;HUF;a\n2026.09.16.;;1000,00;HUF;b\n",
            ),
            (
                "CHF",
                "IBAN;Booked At;Text;Credit/Debit Amount;Currency;Balance\n\
                 CH9300762011623852957;2026-09-20 00:00:00.0;a;-5.10;CHF;94.90\n\
                 CH9300762011623852957;2026-09-21 00:00:00.0;b;1000;CHF;1094.90\n",
            ),
            (
                "DKK",
                "Dato;Tekst;Beløb;Saldo;Status;Afstemt;Valuta\n\
                 04.05.2026;a;-5,10;94,90;Udført;Ja;DKK\n\
                 07.05.2026;b;1000,00;1.094,90;Udført;Ja;DKK\n",
            ),
            (
                "PLN",
                "#Numer rachunku;PL1;\n#Saldo początkowe;100,00 PLN;\n\
                 #Data księgowania;#Opis operacji;#Kwota;#Saldo po operacji;\n\
                 2026-01-10;a;-5,10;94,90;\n2026-01-11;b;1000,00;1 094,90;\n",
            ),
            (
                "EUR",
                "FECHA OPER;FECHA VALOR;CONCEPTO;IMPORTE;DIVISA;SALDO\n\
                 28/06/2026;26/06/2026;a;-5,10;Euro;1.094,90\n\
                 28/06/2026;26/06/2026;b;1.000,00;Euro;1.100,00\n",
            ),
            (
                "INR",
                "S.No,Transaction Date (dd/mm/yyyy),Value Date (dd/mm/yyyy),Particulars,\
                 Amount(INR),Debit/Credit,Balance(INR)\n\
                 1,,,OPENING BALANCE,,,\"-,77,65,682.30\"\n\
                 2,01/08/2026,01/08/2026,a,5.10,DR,\"-,77,65,687.40\"\n\
                 3,02/08/2026,02/08/2026,b,\"\t1,000.00\",CR,\"-,77,64,687.40\"\n",
            ),
            (
                "EUR",
                "id,name,state,kind,date,amount,currency,extra info\n\
                 1,a,APPROVED,C2B,\"24 lug 2026. 02:59:45\",\"-5,10 \",EUR,\"\"\n\
                 2,b,NOT APPROVED,C2B,\"1 mar 2026. 09:44:27\",\"-7,00 \",EUR,\"\"\n\
                 3,c,APPROVED,BANK,\"1 mar 2026. 09:44:27\",\"1000,00 \",EUR,\"\"\n",
            ),
        ] {
            assert_eq!(sums(text), ok(code, 100_000, 510), "{text}");
        }
    }

    #[test]
    fn sums_and_balances_of_nil_among_the_rows_are_no_movements() {
        let card = "Numéro de compte;Numéro de carte;Titulaire de compte/carte;Date d'achat;\
             Texte comptable;Secteur;Montant;Monnaie originale;Cours;Monnaie;Débit;Crédit;\
             Ecriture\n\
             1;;A;19.10.2026;Report de solde;;;;;CHF;;0.00;\n\
             1;15;A;16.11.2026;a;s;119.40;CHF;;;;;\n\
             1;15;A;13.11.2026;a;s;5.00;EUR;1.02;CHF;5.10;;15.11.2026\n\
             1;15;A;25.10.2026;b;s;1000.00;CHF;;CHF;;1000.00;27.10.2026\n\n\
             ;;;;Total par monnaie;;;;;;;;Total\n\
             ;;;;Total des écritures de carte;;;;;CHF;5.10;1000.00;994.90\n";
        assert_eq!(sums(card), ok("CHF", 100_000, 510));
        let (rows, _sums) = card.split_once("\n\n").unwrap();
        assert_eq!(look(&format!("{rows}\n")).state, State::Ok);
        let brought = rows.replace(";0.00;", ";12.00;");
        assert_eq!(look(&format!("{brought}\n")).state, State::Quarantined);
        let sides = "\tConto Corrente\t0001\tSaldo disponibile\t11.111,10 €\n\n\
             \tData operazione\tData valuta\tDescrizione\tEntrate\tUscite\tCategoria\tStato\n\
             \t29 gennaio 2026\t29 gennaio 2026\ta\t1000\t\tBONIFICO\tContabilizzato\n\
             \t26 gennaio 2026\t25 gennaio 2026\tb\t\t-5,1\tBONIFICO\tContabilizzato\n\
             \t\t\tTotale\t1.000,00\t-5,10\t\t\n";
        assert_eq!(sums(sides), ok("EUR", 100_000, 510));
        let list = "Saldo Iniziale,\"627,89 EUR\",,Saldo Finale,,\"1.622,79 EUR\",\n\n\
             Data Op.,Data Val.,Causale,Descrizione,Importo,Div.,\n\
             16/12/2026,16/12/2026,a,b,-5.10,EUR,\n16/12/2026,16/12/2026,a,b,1000.00,EUR,\n\
             ,,,Totale Entrate €,1000.00,,\n,,,Totale Uscite €,5.10,,\n\
             ,,,Totale Movimenti €,994.90,,\n";
        assert_eq!(sums(list), ok("EUR", 100_000, 510));
        let torn = list.replace("16/12/2026,16/12/2026,a,b,-5.10,EUR,\n", "");
        assert_eq!(look(&torn).state, State::Quarantined);
    }

    #[test]
    fn a_balance_behind_the_rows_shows_the_end_of_a_file_without_one() {
        let text = "Letzter Kontostand;;;;312,47;EUR\n\
             Buchungstag;Wert;Umsatzart;Begünstigter / Auftraggeber;Verwendungszweck;Betrag;Soll;\
             Haben;Währung\n\
             31.12.2026;31.12.2026;SEPA Lastschrift;a;b;-25,00;-25;;EUR\n\
             Kontostand;31.12.2026;;;287,47;EUR";
        assert_eq!(sums(text), ok("EUR", 0, 2_500));
        for cut in [";EUR", "7;EUR", ",47;EUR", "287,47;EUR"] {
            let text = text.strip_suffix(cut).unwrap();
            assert_eq!(look(text).state, State::Quarantined, "{text}");
        }
        let torn = text.replace("31.12.2026;31.12.2026;SEPA Lastschrift;a;b;-25,00;-25;;EUR\n", "");
        assert_ne!(look(&torn).state, State::Ok);
    }

    #[test]
    fn exports_of_cards_and_of_central_europe_are_read() {
        for (code, text) in [
            (
                "EUR",
                "Belegdatum;Wertstellung;Status;Beschreibung;Umsatztyp;Betrag (€);\
                 Fremdwährungsbetrag\n26.09.26;28.09.26;Gebucht;a;x;-5,10 €;\n\
                 22.09.26;22.09.26;Gebucht;b;x;1.000,00 €;\n",
            ),
            (
                "EUR",
                "Umsatz getätigt von;Belegdatum;Buchungsdatum;Originalbetrag;Originalwährung;\
                 Umrechnungskurs;Buchungsbetrag;Buchungswährung;Transaktionsbeschreibung\n\
                 1;26.09.26;28.09.26;-6,09;USD;1,20;-5,10;EUR;a\n\
                 1;22.09.26;22.09.26;1000,00;EUR;1,00;1000,00;EUR;b\n",
            ),
            (
                "EUR",
                "Movimientos de la cuenta ES12 3456;;;;;\nImportes expresados en euros;;;;;\n\
                 Fecha;Fecha valor;Movimiento;Más datos;Importe;Saldo\n\
                 03/09/2026;03/09/2026;a;x;-5,10;1.094,90\n13/09/2026;13/09/2026;b;;1.000,00;\
                 2.094,90\n",
            ),
            (
                "RON",
                "Data tranzactiei;Descriere;Suma debit;Suma credit;Valuta\n\
                 02.07.2026;a;5,10;;RON\n05.07.2026;b;;1.000,00;RON\n",
            ),
            (
                "EUR",
                "Datum knjiženja;Datum valute;Opis;Iznos;Valuta;Saldo\n\
                 15.01.2026;15.01.2026;a;-5,10;EUR;94,90\n\
                 16.01.2026;16.01.2026;b;1.000,00;EUR;1.094,90\n",
            ),
            (
                "GBP",
                "Date,Description,Paid out (GBP),Paid in (GBP),Balance (GBP)\n\
                 14 Sep 2026,a,5.10,,94.90\n15 Sep 2026,b,,1000.00,1094.90\n",
            ),
            (
                "GBP",
                "Date,Description,Paid out,Paid in,Balance\n14 Sep 2026,a,£5.10,,£94.90\n\
                 15 Sep 2026,b,,\"£1,000.00\",\"£1,094.90\"\n",
            ),
        ] {
            assert_eq!(sums(text), ok(code, 100_000, 510), "{text}");
        }
        let pounds = "Date,Description,Paid out,Paid in\n14 Sep 2026,a,£5.10,\n\
                      15 Sep 2026,b,,E£1000.00\n";
        assert_eq!(look(pounds).state, State::UnknownFormat, "another pound");
    }

    /// Each pocket of a holder has a balance of its own, and fees that go out besides.
    #[test]
    fn balances_are_followed_by_pocket() {
        let head = "Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,\
                    State,Balance\n";
        let row = |product: &str, day: &str, rest: &str| {
            format!("Transfer,{product},{day} 08:00:00,{day} 08:00:04,x,{rest}\n")
        };
        let text = |second: &str| {
            let rows = [
                row("Current", "2026-07-01", "5000.00,0.00,CZK,COMPLETED,5000.00"),
                row("Savings", "2026-07-02", "0.17,0.00,CZK,COMPLETED,0.17"),
                row("Current", "2026-07-12", "-1000.00,7.00,CZK,COMPLETED,3993.00"),
                row("Savings", "2026-07-13", second),
                row("Current", "2026-07-20", "-54.00,0.00,CZK,COMPLETED,3939.00"),
            ];
            format!("{head}{}", rows.concat())
        };
        let whole = text("-0.17,0.00,CZK,COMPLETED,0.00");
        assert_eq!(sums(&whole), ok("CZK", 500_017, 106_117));
        let broken = text("-0.17,0.00,CZK,COMPLETED,0.10");
        let found = look(&broken);
        assert_eq!(found.state, State::Quarantined, "{:?}", found.sums.problems);
    }

    /// The oldest row is in no equation: an account that began with nothing shows its fee, and so
    /// does the layout with pockets; otherwise nothing does.
    #[test]
    fn a_fee_in_no_equation_is_taken_as_the_account_began() {
        let bare = "Date,Text,Amount,Fee,Currency,Balance\n";
        let pockets = "Produkt,Date,Text,Amount,Fee,Currency,State,Balance\n";
        let of = |rows: &[&str]| format!("{bare}{}", rows.concat());
        let in_pocket = |rows: &[&str]| {
            let row = |row: &&str| {
                let (lead, balance) = row.rsplit_once(',').unwrap();
                format!("Current,{lead},COMPLETED,{balance}")
            };
            format!("{pockets}{}", rows.iter().map(row).collect::<String>())
        };
        let new = ["2026-07-01,a,16.94,0.17,EUR,16.77\n", "2026-07-13,b,-2.85,0.00,EUR,13.92\n"];
        let held = ["2026-07-01,a,16.94,0.17,EUR,26.77\n", "2026-07-13,b,-2.85,0.00,EUR,23.92\n"];
        let whole = ok("EUR", 1_677, 285);
        for rows in [new, [new[1], new[0]]] {
            assert_eq!(sums(&of(&rows)), whole, "{rows:?}");
            assert_eq!(sums(&in_pocket(&rows)), whole, "{rows:?}");
        }
        for rows in [held, [held[1], held[0]]] {
            assert_eq!(sums(&in_pocket(&rows)), whole, "{rows:?}");
            let found = look(&of(&rows));
            assert_eq!(found.state, State::Quarantined, "{rows:?}");
            assert!(found.sums.problems.iter().any(|one| one.field == "fee"), "{rows:?}");
        }
        let signed = new.map(|row| row.replace("0.17", "-0.17"));
        assert_eq!(sums(&of(&[&signed[0], &signed[1]])), whole);
        // With the other sign, it may have been given back.
        let signed = held.map(|row| row.replace("0.17", "-0.17"));
        let found = look(&in_pocket(&[&signed[0], &signed[1]]));
        assert_eq!(found.state, State::Quarantined, "{:?}", found.sums.problems);
        // Within, where the account began so, where a later row shows it, or by its name.
        let within = ["2026-07-01,a,16.94,0.17,EUR,16.94\n", "2026-07-13,b,-2.85,0.00,EUR,14.09\n"];
        assert_eq!(sums(&of(&within)), ok("EUR", 1_694, 285));
        let later = format!("{}2026-07-14,c,-3.00,0.50,EUR,20.92\n", of(&held));
        assert_eq!(sums(&later), ok("EUR", 1_694, 585));
        let named = of(&held).replace("Fee", "Total fees");
        assert_eq!(sums(&named), ok("EUR", 1_694, 285));
    }

    /// What is taken besides has many names, and nothing but a balance shows whether it is within.
    #[test]
    fn what_was_taken_by_any_name_needs_a_balance() {
        let state = |name: &str| {
            let rows = "2026-01-02,A,-20.00,2.00,EUR\n2026-01-03,B,30.00,2.00,EUR\n";
            look(&format!("Date,Description,Amount,{name},Currency\n{rows}")).state
        };
        for name in [
            "Processing fee",
            "Bank fee",
            "tax",
            "Withholding tax",
            "Commission amount",
            "Cashback",
            "Bankspesen",
            "Kontogebühr",
            "Poplatky",
            "Fees & charges",
        ] {
            assert_eq!(state(name), State::Quarantined, "{name}");
        }
        for name in ["Tax number", "Fee type", "VAT", "Umsatzsteuer", "Steuer-Nr", "Points"] {
            assert_eq!(state(name), State::Ok, "{name}");
        }
    }

    #[test]
    fn a_balance_or_a_sum_among_the_rows_is_known_by_its_words() {
        let state = |kind: &str, text: &str| {
            let rows = "2026-01-02,Payment,A,-20.00,EUR\n2026-01-03,Payment,B,30.00,EUR\n";
            let first = format!("2026-01-01,{kind},{text},500.00,EUR\n");
            look(&format!("Date,Type,Description,Amount,Currency\n{first}{rows}")).state
        };
        for text in [
            "Balance B/F from last statement",
            "BALANCE B/F FROM 31-12-2025",
            "Balance brought forward from previous statement",
            "Opening balance EUR",
            "Saldo inicial en cuenta",
            "Saldo Anterior - Conta Corrente",
            "SALDO TOTAL DISPONÍVEL DIA",
            "Anfangsbestand EUR",
            "Report solde précédent",
            "Nouveau solde au",
            "Beginsaldo rekening",
            "Stan na początek",
            "Total January",
            "Week total",
            "Total for the period",
        ] {
            assert_eq!(state("Payment", text), State::Quarantined, "{text}");
        }
        assert_eq!(state("Opening balance", "Account 1"), State::Quarantined, "by its kind");
        for (kind, text) in [
            ("Payment", "Balance of order 17"),
            ("Payment", "Sold EUR"),
            ("Sold EUR", "Berlin"),
            ("Total", "Berlin"),
        ] {
            assert_eq!(state(kind, text), State::Ok, "{kind} {text}");
        }
    }

    /// Fees of one currency tell of those of another, whichever comes first.
    #[test]
    fn fees_are_proven_by_the_balances_of_any_currency() {
        let rows = "Date,Text,Amount,Fee,Currency,Balance\n2026-07-01,a,100.00,0.00,EUR,100.00\n\
                    2026-07-13,b,-50.00,0.00,EUR,50.00\n2026-07-14,c,60.00,0.00,USD,60.00\n\
                    2026-07-15,d,-9.40,0.60,USD,50.00\n";
        let found = look(rows);
        assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
        let dollars = found.sums.booked.iter().find(|(of, _)| of.to_string() == "USD").unwrap().1;
        assert_eq!((dollars.credit_minor, dollars.debit_minor), (6_000, 1_000));
    }

    /// One issuer's export in the languages of its holders: the names of its first three columns
    /// and of the others, and the words for what is done and what is not.
    const LANGUAGES: &[[&str; 4]] = &[
        [
            "Type,Product,Startdatum",
            "Datum voltooid,Beschrijving,Bedrag,Kosten,Valuta,Status,Saldo",
            "VOLTOOID",
            "TERUGGEDRAAID",
        ],
        [
            "Tipo,Produto,Data de início",
            "Data de Conclusão,Descrição,Montante,Comissão,Moeda,Estado,Saldo",
            "CONCLUÍDA",
            "REVERTIDA",
        ],
        [
            "Tipo,Produto,Data de início",
            "Data de conclusão,Descrição,Montante,Taxa,Moeda,Estado,Saldo",
            "CONCLUÍDO",
            "REVERTIDO",
        ],
        [
            "Typ,Produkt,Datum zahájení",
            "Datum dokončení,Popis,Částka,Poplatek,Měna,State,Zůstatek",
            "DOKONČENO",
            "ZRUŠENO",
        ],
        [
            "Тип,Продукт,Дата начала",
            "Дата выполнения,Описание,Сумма,Комиссия,Валюта,State,Остаток средств",
            "ВЫПОЛНЕНО",
            "REVERTED",
        ],
        [
            "Típus,Termék,Kezdés dátuma",
            "Teljesítés dátuma,Leírás,Összeg,Díj,Pénznem,State,Egyenleg",
            "ELVÉGEZVE",
            "REVERTED",
        ],
        [
            "Type,Produkt,Startdato",
            "Fullført på dato,Beskrivelse,Beløp,Gebyr,Valuta,Delstat,Saldo",
            "Fullført",
            "REVERTED",
        ],
        [
            "Typ,Produkt,Dátum začiatku",
            "Dátum dokončenia,Popis,Suma,Poplatok,Mena,State,Zostatok",
            "DOKONČENÉ",
            "REVERTED",
        ],
        [
            "Tipo,Producto,Fecha de inicio",
            "Fecha de finalización,Descripción,Importe,Comisión,Divisa,State,Saldo",
            "COMPLETADO",
            "REVERTIDO",
        ],
        [
            "Rodzaj,Produkt,Data rozpoczęcia",
            "Data zrealizowania,Opis,Kwota,Opłata,Waluta,State,Saldo",
            "ZAKOŃCZONO",
            "COFNIĘTO",
        ],
        [
            "Tipo,Prodotto,Data di inizio",
            "Data di completamento,Descrizione,Importo,Costo,Valuta,State,Saldo",
            "COMPLETATO",
            "OPERAZIONE ANNULLATA",
        ],
    ];

    #[test]
    fn pockets_are_known_in_many_languages() {
        for [lead, names, done, undone] in LANGUAGES {
            let row = |pocket: &str, day: &str, rest: &str, state: &str, balance: &str| {
                let (from, to) = (format!("{day} 08:00:00"), format!("{day} 08:00:04"));
                format!("x,{pocket},{from},{to},y,{rest},EUR,{state},{balance}\n")
            };
            let text = [
                format!("{lead},{names}\n"),
                row("A", "2026-07-01", "50.00,0.00", done, "50.00"),
                row("B", "2026-07-02", "7.00,0.00", done, "7.00"),
                row("A", "2026-07-13", "-10.00,0.50", done, "39.50"),
                row("A", "2026-07-14", "-10.00,0.00", undone, "39.50"),
                row("B", "2026-07-15", "-1.00,0.00", done, "6.00"),
            ];
            assert_eq!(sums(&text.concat()), ok("EUR", 5_700, 1_150), "{names}");
        }
    }

    /// Whether a bank's layout shows the signs of rows that all came in: whole, in any order of its
    /// columns, but not with one more of them.
    #[test]
    fn a_known_layout_proves_the_signs_of_credits_alone() {
        for (name, row, code) in [
            (
                "Buchungsdatum;Wertstellung;Status;Zahlungspflichtige*r;Zahlungsempfänger*in;\
                 Verwendungszweck;Umsatztyp;IBAN;Betrag (€);Gläubiger-ID;Mandatsreferenz;\
                 Kundenreferenz",
                "03.01.26;03.01.26;Gebucht;a;b;c;Eingang;DE98;2.500,00;;;",
                "EUR",
            ),
            (
                "Auftragskonto;Buchungstag;Valutadatum;Buchungstext;Verwendungszweck;\
                 Beguenstigter/Zahlungspflichtiger;Kontonummer;BLZ;Betrag;Waehrung;Info",
                "1;03.01.26;03.01.26;GUTSCHRIFT;a;b;2;3;2500,00;EUR;Umsatz gebucht",
                "EUR",
            ),
            (
                "Bokføringsdato;Beløp;Avsender;Mottaker;Navn;Tittel;Valuta;Betalingstype",
                "2026/01/23;2500,00;;;a;b;NOK;Overførsel",
                "NOK",
            ),
            (
                "Type;Product;Started Date;Completed Date;Description;Amount;Fee;Currency;State;\
                 Balance",
                "Topup;Current;2026-01-23 10:00:00;2026-01-23 10:00:01;a;2500.00;0.00;PLN;\
                 COMPLETED;2500.00",
                "PLN",
            ),
        ] {
            assert_eq!(sums(&format!("{name}\n{row}\n")), ok(code, 250_000, 0), "{name}");
            assert_eq!(sums(&format!("{name};\n{row};\n")), ok(code, 250_000, 0), "{name}");
            let more = look(&format!("{name};Zusatz\n{row};x\n"));
            assert_ne!(more.state, State::Ok, "{name}");
            let taken = row.replacen(";a", ";Card payment", 1);
            assert_eq!(look(&format!("{name}\n{taken}\n")).state, State::Quarantined, "{taken}");
            let less = name.rsplit_once(';').unwrap().0;
            let less = look(&format!("{less}\n{}\n", row.rsplit_once(';').unwrap().0));
            assert_ne!(less.state, State::Ok, "{name}");
        }
    }

    /// What was agreed in another currency is not what moved the account.
    #[test]
    fn amounts_of_the_account_are_told_from_those_of_the_operation() {
        let alior = "Data transakcji;Data księgowania;Nazwa nadawcy;Szczegóły transakcji;\
                     Kwota operacji;Waluta operacji;Kwota w walucie rachunku;Waluta rachunku\n\
                     12-10-2026;13-10-2026;;a;-10,00;EUR;-43,09;PLN\n\
                     12-10-2026;14-10-2026;x;b;620,00;PLN;620,00;PLN\n";
        assert_eq!(sums(alior), ok("PLN", 62_000, 4_309));
        let other = alior.replace("Waluta rachunku", "Waluta");
        assert_eq!(look(&other).state, State::UnknownFormat, "of which of the two");
        let text = |status: &str, aside: &str| {
            format!(
                "Дата операции;Дата платежа;Номер карты;Статус;Сумма операции;Валюта операции;\
                 Сумма платежа;Валюта платежа;Кэшбэк;Описание;Округление на инвесткопилку\n\
                 17.08.2026 10:00:00;18.08.2026;*1;OK;-10,00;USD;-950,00;RUB;;a;{aside}\n\
                 17.08.2026 12:00:00;17.08.2026;*1;{status};34667,00;RUB;34667,00;RUB;;b;0,00\n"
            )
        };
        assert_eq!(sums(&text("OK", "0,00")), ok("RUB", 3_466_700, 95_000));
        assert_eq!(sums(&text("FAILED", "0,00")), ok("RUB", 0, 95_000));
        assert_ne!(look(&text("WAITING", "0,00")).state, State::Ok);
        assert_eq!(look(&text("OK", "5,00")).state, State::Quarantined, "put aside");
        let fortis = "Volgnummer;Uitvoeringsdatum;Valutadatum;Bedrag;Valuta rekening;\
                      Rekeningnummer;Type verrichting;Tegenpartij;Naam van de tegenpartij;\
                      Mededeling;Details;Status;Reden van weigering\n\
                      1;15/01/2026;15/01/2026;-50,00;EUR;BE1;a;;b;c;d;Uitgevoerd;\n\
                      2;16/01/2026;16/01/2026;-70,00;EUR;BE1;a;;b;c;d;Geweigerd;saldo\n";
        assert_eq!(sums(fortis), ok("EUR", 0, 5_000));
    }

    #[test]
    fn what_was_taken_under_another_name_needs_a_balance() {
        let names = ["Service charge", "FX Fee", "Surcharge", "Tip", "Payout", "Refunded"];
        for name in names {
            let text = |of: &str| {
                format!(
                    "Date,Description,Amount,{name},Currency\n2026-10-13,a,100.00,{of},EUR\n\
                     2026-10-14,b,-20.00,0.00,EUR\n"
                )
            };
            assert_eq!(sums(&text("0.00")), ok("EUR", 10_000, 2_000), "{name}");
            assert_eq!(look(&text("1.50")).state, State::Quarantined, "{name}");
        }
    }

    /// Where rows begin with words, the last words of a file may be a row that was cut.
    #[test]
    fn words_at_the_end_of_a_file_may_be_the_begin_of_a_row() {
        let rows = "Type,Date,Description,Amount,Currency\nTransfer,2026-10-13,a,100.00,EUR\n\
                    Transfer,2026-10-14,b,-20.00,EUR\n";
        assert_eq!(sums(&format!("{rows}Card\n")), ok("EUR", 10_000, 2_000), "a whole line");
        for cut in ["C", "Card pay", "Transfer"] {
            let found = look(&format!("{rows}{cut}"));
            assert_eq!(found.state, State::Quarantined, "{cut}");
            assert!(found.sums.problems.iter().any(|one| one.field == "last row"), "{cut}");
        }
    }

    #[test]
    fn what_did_not_come_to_be_is_not_counted_whatever_its_column_is_called() {
        for name in ["Status", "Result", "Outcome"] {
            let text = |word: &str| {
                format!(
                    "Date,Description,Amount,Currency,{name}\n2026-10-13,a,100.00,EUR,Success\n\
                     2026-10-14,b,-20.00,EUR,Success\n2026-10-15,c,30.00,EUR,{word}\n"
                )
            };
            assert_eq!(sums(&text("success")), ok("EUR", 13_000, 2_000), "{name}");
            assert_eq!(sums(&text("Failed")), ok("EUR", 10_000, 2_000), "{name}");
            assert_ne!(look(&text("gone")).state, State::Ok, "{name}");
        }
    }

    #[test]
    fn a_flag_that_says_that_a_row_was_not_booked_is_no_booking() {
        let text = |name: &str, booked: &str, last: &str| {
            format!(
                "Date,Description,Amount,Currency,{name}\n2026-10-13,a,100.00,EUR,{booked}\n\
                 2026-10-14,b,-20.00,EUR,{booked}\n2026-10-15,c,30.00,EUR,{last}\n"
            )
        };
        for (name, booked, not) in [
            ("Posted", "Yes", "No"),
            ("Gebucht", "Ja", "Nein"),
            ("Voided", "", "Yes"),
            ("Cancelled", "false", "true"),
            ("Failure reason", "", "insufficient funds"),
            ("Error code", "0", "51"),
        ] {
            assert_eq!(sums(&text(name, booked, booked)), ok("EUR", 13_000, 2_000), "{name}");
            assert_eq!(look(&text(name, booked, not)).state, State::Quarantined, "{name}");
        }
        let days = text("Posted", "2026-10-16", "2026-10-17");
        assert_eq!(sums(&days), ok("EUR", 13_000, 2_000));
    }

    /// Where whole amounts have no decimals, what is stated above the table shows their mark.
    #[test]
    fn a_mark_of_thousands_is_told_from_a_decimal_one_by_what_is_stated() {
        let text = |stated: &str| {
            format!(
                "\"Kontostand vom 30.12.2026:\";\"{stated} €\"\n\
                 \"Buchungsdatum\";\"Verwendungszweck\";\"Betrag (€)\"\n\
                 \"16.12.26\";\"a\";\"1.000\"\n\"30.09.26\";\"b\";\"-2.000\"\n"
            )
        };
        assert_eq!(sums(&text("3.600,00")), ok("EUR", 100_000, 200_000));
        assert_eq!(look(&text("3.600")).state, State::UnknownFormat);
        assert_eq!(look(&text("3600")).state, State::UnknownFormat);
    }

    /// The rate stands between what was paid and its currency: that is not the account's.
    #[test]
    fn a_rate_is_no_step_between_an_amount_and_its_currency() {
        let text = |head: &str| {
            format!(
                "TransactionDate;Text;{head};BookDate;ValueDate\n\
                 14.08.2026;x;-182,52;0,214880561;PLN;-39,22;16.08.2026;14.08.2026\n\
                 13.08.2026;y;-10,00;0,214880561;PLN;-2,15;16.08.2026;14.08.2026\n"
            )
        };
        for head in [
            "Currency Amount;Currency Rate;Currency;Amount",
            "Foreign Amount;Rate;Currency;Amount",
            "Betrag Originalwährung;Wechselkurs;Währung;Betrag",
            "Importe original;Tipo de cambio;Divisa;Importe",
        ] {
            assert_eq!(look(&text(head)).state, State::UnknownFormat, "{head}");
        }
    }

    #[test]
    fn balances_beside_and_among_the_rows_hold() {
        let fio = |closing: &str| {
            look(&format!(
                "accountId;2900123456\nPočáteční stav účtu k 01.03.2026;1000.00\n\
                 Koncový stav účtu k 31.03.2026;{closing}\n\nID operace;Datum;Objem;Měna;Zpráva \
                 pro příjemce\n1;03.03.2026;27,70;EUR;a\n2;15.03.2026;-9,90;EUR;b\n"
            ))
        };
        assert_eq!(fio("1017.80").state, State::Ok);
        assert_eq!(fio("1027.70").state, State::Quarantined);
        let rabobank = |rows: &[&str]| {
            let head = "IBAN/BBAN,Ccy,Date,Amount,Bal After Bkng,Description-1\n";
            look(&format!("{head}{}", rows.concat()))
        };
        let row = [
            "NL20INGB0001234567,EUR,2026-07-01,\"+442,98\",\"+3436,04\",a\n",
            "NL20INGB0001234567,EUR,2026-07-02,\"-30,00\",\"+3406,04\",b\n",
            "NL20INGB0001234567,EUR,2026-07-13,\"-5,00\",\"+3401,04\",c\n",
        ];
        assert_eq!(rabobank(&row).state, State::Ok);
        assert_eq!(rabobank(&[row[0], row[2]]).state, State::Quarantined, "a row is lost");
        let starling = look(
            "Date,Counter Party,Reference,Type,Amount (GBP),Balance (GBP)\n\
             01/09/2026,Opening Balance,,,0.00,1000.00\n02/09/2026,a,x,y,-12.34,987.66\n\
             13/09/2026,b,x,y,2000.00,2987.66\n",
        );
        let booked = starling.sums.booked.values().next().unwrap();
        assert_eq!((booked.credits, booked.debits), (1, 1), "{:?}", starling.sums.problems);
    }

    #[test]
    fn the_account_is_what_names_the_own_one() {
        let rows = "Datum;Buchungstext;Betrag;Währung;Saldo\n01.09.2026;a;10.00;CHF;110.00\n\
                    28.09.2026;b;-20.00;CHF;90.00\n";
        let of = |above: &str| {
            let found = look(&format!("{above}\n{rows}"));
            assert_eq!(found.state, State::Ok, "{above}: {:?}", found.sums.problems);
            found.sums.statements.into_iter().next().and_then(|own| own.head.account)
        };
        let iban = Some("CH9300762011623852957".to_owned());
        for above in [
            "IBAN:;CH93 0076 2011 6238 5295 7;",
            "IBAN: CH9300762011623852957",
            "Kontonummer:;0278 00122087.01\nIBAN:;CH9300762011623852957",
            "Konto:;=\"CH9300762011623852957\"",
        ] {
            assert_eq!(of(above), iban, "{above}");
        }
        // Its check digits are wrong.
        let named = "Kontonummer:;0278 00122087.01;\nIBAN:;CH93 0000 0000 0000 0000 0;";
        assert_eq!(of(named).as_deref(), Some("0278 00122087.01"));
        for above in [
            "IBAN:;CH93 0000 0000 0000 0000 0;",
            "Konto:;Privatkonto",
            "Konto:;1234\nKonto:;5678",
            "Gegenkonto:;CH9300762011623852957",
        ] {
            assert_eq!(of(above), None, "{above}");
        }
    }

    /// Of a shop all of them may be its PSP's.
    #[test]
    fn a_column_of_accounts_behind_the_day_is_the_other_side_s() {
        let iban = "CH9300762011623852957";
        let of = |head: &str, rows: [String; 2]| {
            let found = look(&format!("{head}\n{}\n{}\n", rows[0], rows[1]));
            assert_eq!(found.state, State::Ok, "{head}: {:?}", found.sums.problems);
            found.sums.statements.into_iter().next().and_then(|own| own.head.account)
        };
        let before = |first: &str, second: &str| {
            let head = "IBAN;Datum;Buchungstext;Betrag;Währung";
            let row = |iban: &str, amount: &str| format!("{iban};01.09.2026;a;{amount};CHF");
            of(head, [row(first, "10.00"), row(second, "-20.00")])
        };
        assert_eq!(before(iban, iban).as_deref(), Some(iban));
        assert_eq!(before(iban, "CH5109000000250092291"), None);
        let row = |amount: &str| format!("01.09.2026;a;{amount};CHF;{iban}");
        let head = "Datum;Buchungstext;Betrag;Währung;IBAN";
        assert_eq!(of(head, [row("10.00"), row("-20.00")]), None);
    }

    #[test]
    fn another_day_of_the_rows_shows_which_of_day_and_month_stands_first() {
        let with = |above: &str, dealt: &str| {
            let rows = "CHF;-5.00;95.00;a\n";
            look(&format!(
                "Währung:;CHF\n{above}\nAbschlussdatum;Buchungsdatum;Währung;Betrag;Saldo;\
                 Buchungstext\n{dealt};01/04/2026;{rows}"
            ))
        };
        let shows = |found: Inspection| {
            let first = found.sums.statements.first().unwrap();
            (first.head.from.map(|day| day.to_string()), found.sums.problems_total)
        };
        let april = Some("2026-04-01".to_owned());
        assert_eq!(shows(with("x", "30/03/2026")), (april.clone(), 0));
        assert_eq!(shows(with("Bis:;30/03/2026", "01/04/2026")), (april, 0));
        assert_eq!(shows(with("Bis:;30.03.2026", "01/04/2026")), (None, 1), "another mark");
        let both = with("Bis:;30/03/2026", "03/30/2026");
        assert_eq!(shows(both), (None, 1), "they differ");
    }

    #[test]
    fn an_unknown_file_shows_its_header_row_and_what_lacks() {
        let said = |text: &str| {
            let found = look(text);
            assert_eq!(found.state, State::UnknownFormat, "{text}");
            let problem = found.sums.problems[0].clone();
            assert_eq!(problem.severity, Severity::Error);
            (problem.line, problem.found)
        };
        let words = "Kontoauszug von:;2026-10-01;x\n\nDatum;Buchungstext;Betrag;Valuta\n\
                     30.09.2026;a;-23.40;29.09.2026\n";
        let (line, found) = said(words);
        assert_eq!(line, 3);
        assert!(found.starts_with("by `;`: Datum | Buchungstext | Betrag | Valuta"), "{found}");
        assert!(found.ends_with("(none is known of: currency)"), "a word for a day: {found}");
        let commas = "Kontoutdrag,,,,\nBokföringsdag;Beskrivning;Belopp;x\n2026-06-30;a;1,00;y\n";
        assert!(said(commas).1.starts_with("by `;`: Bokföringsdag"));
        let two = said("Date,Text,Amount,Betrag,Currency\n2026-06-01,a,-5.10,-5.10,EUR\n").1;
        assert!(two.contains("amount Amount, Betrag; currency Currency"), "{two}");
    }

    /// A card's file: rows that were not booked have no amount of a side, and what both sides come
    /// to stands below, also where its line does not end.
    #[test]
    fn sums_of_both_sides_below_a_card_s_rows_hold() {
        let text = |head: &str, total: &str, debits: &str| {
            format!(
                "sep=;\n{head}\n\
                 1111 2222 3333;;;;Saldovortrag;;;;;CHF;40.00;;\n\
                 1111 2222 3333;x;M;16.09.2026;a;Food;24.45;CHF;;CHF;;;\n\
                 1111 2222 3333;x;M;13.09.2026;b;Food;16.3;CHF;;CHF;16.3;;15.09.2026\n\
                 1111 2222 3333;x;M;12.09.2026;c;Food;10.00;EUR;0.95;CHF;9.50;;14.09.2026\n\
                 1111 2222 3333;;M;11.09.2026;d;;60.0;CHF;;CHF;;60.0;12.09.2026\n\n\
                 ;;;;Total per currency;;;;;;;;Total\n\
                 ;;;;{total};;;;;CHF;{debits};60.00;34.20"
            )
        };
        let english = "Account number;Card number;Account/Cardholder;Purchase date;Booking text;\
                       Sector;Amount;Original currency;Rate;Currency;Debit;Credit;Booked";
        let german = "Kontonummer;Kartennummer;Konto-/Karteninhaber;Einkaufsdatum;Buchungstext;\
                      Branche;Betrag;Originalwährung;Kurs;Währung;Belastung;Gutschrift;Buchung";
        for (head, total) in [(english, "Total card bookings"), (german, "Total Kartenbuchungen")] {
            assert_eq!(sums(&text(head, total, "25.80")), ok("CHF", 6_000, 2_580), "{head}");
            let wrong = look(&text(head, total, "65.80"));
            assert_eq!(wrong.state, State::Quarantined, "{head}");
            let is_said = wrong.sums.problems.iter().any(|one| one.found.contains("25.80"));
            assert!(is_said, "{head}: {:?}", wrong.sums.problems);
            // Without the sums a balance is not told from a movement.
            let bare = text(head, total, "25.80");
            let (bare, _) = bare.split_once(";;;;Total per").unwrap();
            assert_eq!(look(bare).state, State::Quarantined, "{head}");
        }
    }

    #[test]
    fn sums_of_columns_below_the_rows_hold() {
        let text = |rest: &str| {
            format!(
                "Konto,Privatkonto\nSaldo,130.00 CHF\nBuchungen\nBuchungsdatum,Text,Belastung,\
                 Gutschrift,Valutadatum,Saldo,Valutasaldo,Buchungszeitpunkt\n\
                 30.09.2026,a,,100.00,30.09.2026,130.00,130.00,30.09.2026 04:12:12\n\
                 29.09.2026,b,20.00,,28.09.2026,30.00,30.00,29.09.2026 04:12:12\n\
                 Total Spalte,,{rest}"
            )
        };
        for rest in ["20.00,100.00,,,,\n", "20.00,100.00,,,,", "20.00,100.00"] {
            assert_eq!(sums(&text(rest)), ok("CHF", 10_000, 2_000), "{rest}");
        }
        for rest in ["20.00,100.01,,,,\n", "20.00,,,,,\n", "20.00,10"] {
            assert_eq!(look(&text(rest)).state, State::Quarantined, "{rest}");
        }
    }

    #[test]
    fn one_of_two_columns_of_currencies_is_the_amount() {
        let text = |rows: &str| {
            format!(
                "\"Account Type\",\"Account Number\",\"Transaction Date\",\"Cheque Number\",\
                 \"Description 1\",\"Description 2\",\"CAD$\",\"USD$\"\n{rows}"
            )
        };
        let row =
            |kind: &str, rest: &str| format!("{kind},00001-123,9/20/2026,,\"A\",\"\",{rest}\n");
        let cad = row("Chequing", "-105.00,") + &row("Chequing", "60.00,");
        assert_eq!(sums(&text(&cad)), ok("CAD", 6_000, 10_500));
        let usd = row("Savings", ",-105.00") + &row("Savings", ",60.00");
        assert_eq!(sums(&text(&usd)), ok("USD", 6_000, 10_500));
        for rows in [
            format!("{cad}{usd}"),
            cad.clone() + &row("Chequing", "-1.00,-1.00"),
            cad.replace("Chequing", "Visa"),
        ] {
            assert_eq!(look(&text(&rows)).state, State::UnknownFormat, "{rows}");
        }
        // Behind the rows that are looked at.
        let many = cad.repeat(2_000);
        assert_eq!(look(&text(&many)).state, State::Ok);
        for last in ["-1.00,-1.00", ",-1.00"] {
            let found = look(&text(&format!("{many}{}", row("Chequing", last))));
            assert_eq!(found.state, State::Quarantined, "{last}");
        }
    }

    #[test]
    fn rows_that_end_early_are_read_where_both_balances_prove_them() {
        let text = |closing: &str, early: &str| {
            format!(
                "\"Počáteční stav účtu k 01.07.2026: 100,00 CZK\"\n\
                 \"Koncový stav účtu k 31.07.2026: {closing} CZK\"\n\n\
                 \"ID operace\";\"Datum\";\"Objem\";\"Měna\";\"Poznámka\";\"BIC\";\"ID pokynu\"\n\
                 \"1\";\"04.07.2026\";\"-50\";\"CZK\";\"a\";\"\";\"7\"\n\
                 \"2\";\"13.07.2026\";\"300,5\";\"CZK\"{early}\n\
                 \"3\";\"14.07.2026\";\"-20\";\"CZK\";\"c\";\"\";\"8\"\n"
            )
        };
        assert_eq!(sums(&text("330,50", ";\"b\"")), ok("CZK", 30_050, 7_000));
        assert_eq!(look(&text("330,51", ";\"b\"")).state, State::Quarantined);
        assert_eq!(look(&text("330,50", "")).state, State::Quarantined, "within the currency");
        let whole = text("330,50", ";\"b\"");
        let (_, rows) = whole.split_once("\n\n").unwrap();
        assert_eq!(look(rows).state, State::Quarantined, "no balances");
        let cut = whole.replace(";\"c\";\"\";\"8\"\n", ";\"c\"");
        assert_eq!(look(&cut).state, State::Quarantined, "the last row");
    }

    #[test]
    fn banks_that_name_no_currency_are_known_by_all_of_their_columns() {
        let crowns = "Datum;Text;Typ;Budgetgrupp;Belopp;Saldo\n\
                      2026-01-17;a;Korttransaktion;Övrigt;-144,75 kr;1 419,87 kr\n\
                      2026-01-18;b;Insättning;Övrigt;2 500,00 kr;3 919,87 kr\n";
        assert_eq!(sums(crowns), ok("SEK", 250_000, 14_475));
        let dollars = "\"Date\",\"Status\",\"Type\",\"CheckNumber\",\"Description\",\"Withdrawal\",\
                       \"Deposit\",\"RunningBalance\"\n\
                       \"07/31/2026\",\"Posted\",\"ACH\",\"\",\"a\",\"\",\"$1.00\",\"$1,000.00\"\n\
                       \"02/03/2026\",\"Posted\",\"ACH\",\"\",\"b\",\"$2.50\",\"\",\"$999.00\"\n";
        assert_eq!(sums(dollars), ok("USD", 100, 250));
        for text in [
            crowns.replace("Budgetgrupp", "Grupp"),
            crowns.replace(" kr;", ";"),
            dollars.replace('$', ""),
            dollars.replace("$2.50", "2.50"),
            dollars.replace("CheckNumber", "Number"),
        ] {
            assert_eq!(look(&text).state, State::UnknownFormat, "{text}");
        }
        let broken = dollars.replace("$999.00", "$998.00");
        assert_eq!(look(&broken).state, State::Quarantined);
    }

    #[test]
    fn exports_of_granit_and_hsbc_are_read() {
        let forint = "Típus;Könyvelés dátuma;Értéknap;Azonosító;Összeg;Közlemény/1;Közlemény/2\n\
                      A;2026.11.17., kedd;2026.11.17., kedd;G1;+7 000,00 HUF;a;\n\
                      B;2026.11.18., szerda;2026.11.18., szerda;G2;-2 000,00 HUF;b;\n";
        assert_eq!(sums(forint), ok("HUF", 700_000, 200_000));
        let debit = "Date,Description,Billing amount,Billing currency,Balance,Balance currency\n\
                     14/08/2026,a,-22.50,USD,545.39,USD\n13/08/2026,b,100.00,USD,567.89,USD\n";
        assert_eq!(sums(debit), ok("USD", 10_000, 2_250));
        let credit = "Transaction date,Post date,Description,Billing amount,Billing currency,\
                      Transaction status,Merchant name,Country / region,Credit / Debit\n\
                      02/04/2026,13/04/2026,a,\"-1,100.00\"\t,CNY,POSTED,a,CHINA,DEBIT\n\
                      05/04/2026,15/04/2026,PAYMENT - THANK YOU,\"50.00\"\t,CNY,POSTED,,,CREDIT\n";
        assert_eq!(sums(credit), ok("CNY", 5_000, 110_000));
        for (from, to) in [("CREDIT", "DEBIT"), ("\"50.00", "\"-50.00"), (",Credit / Debit", ",x")]
        {
            assert_eq!(look(&credit.replace(from, to)).state, State::UnknownFormat, "{from}");
        }
        let open = debit.replace(",Balance,", ",x,");
        assert_eq!(look(&open).state, State::UnknownFormat, "no balance proves it");
    }

    #[test]
    fn more_banks_that_write_no_header_row_are_read() {
        let old = "12345678901;a|1;02.07.2026;30.06.2026;-5,99;EUR\n\
                   12345678901;b;21.06.2026;19.06.2026;+1.030,99;EUR\n";
        assert_eq!(sums(old), ok("EUR", 103_099, 599));
        assert_eq!(look(&old.replace('+', "")).state, State::UnknownFormat);
        let moment = "28.06.2026;\"a\";01.07.2026;0,58;EUR;28.06.2026 00:00:30:989;\n\
                      29.06.2026;\"b\";01.07.2026;-1.010,15;EUR;29.06.2026 00:00:31:010;\n";
        assert_eq!(sums(moment), ok("EUR", 58, 101_015));
        assert_eq!(look(&moment.replace(":989", "")).state, State::UnknownFormat);
        let iban = "NL91ABNA0417164300";
        let row = |held: &str, amount: &str| {
            let days = "20-01-2026,20-01-2026";
            format!("20-01-2026,{iban},,x,,,,EUR,{held},EUR,{amount},{days},1,B,1,,'a',1\n")
        };
        let held = row("1000.00", "-45.00") + &row("955.00", "2000.00");
        assert_eq!(sums(&held), ok("EUR", 200_000, 4_500));
        let newest = row("955.00", "2000.00") + &row("1000.00", "-45.00");
        assert_eq!(sums(&newest), ok("EUR", 200_000, 4_500));
        let lost = row("1000.00", "-45.00") + &row("955.01", "2000.00");
        assert_eq!(look(&lost).state, State::UnknownFormat);
        let account = look(&held).sums.statements.remove(0).head.account;
        assert_eq!(account.as_deref(), Some(iban));
    }

    #[test]
    fn swedbank_s_rows_are_those_of_the_account_that_each_names() {
        let head = "* Transaktionsrapport Period 2026-08-01 - 2026-08-11\n\
                    Radnr,Clnr,Kontonr,Produkt,Valuta,Bokfdag,Transdag,Valutadag,Referens,Text,\
                    Belopp,Saldo\n";
        let first = "1,8000,0012345678,Konto,SEK,2026-08-11,2026-08-10,,a,b,-199.00,801.00\n\
                     2,8000,0012345678,Konto,SEK,2026-08-10,2026-08-09,,c,d,50.00,1000.00\n";
        let second = "3,8000,0099999999,Spar,SEK,2026-08-11,2026-08-11,,e,f,100.00,1100.00\n";
        let found = look(&format!("{head}{first}{second}"));
        assert_eq!(found.state, State::Ok);
        let accounts = found.sums.statements.iter().map(|one| one.head.account.clone());
        let accounts: Vec<String> = accounts.flatten().collect();
        assert_eq!(accounts, ["0012345678", "0099999999"]);
        let days = found.sums.statements.first().map(|one| (one.head.from, one.head.to)).unwrap();
        let day = |text: &str| text.parse().ok();
        assert_eq!(days, (day("2026-08-10"), day("2026-08-11")), "the day that it was booked");
    }

    #[test]
    fn a_currency_beside_a_limit_above_the_rows_is_that_of_the_account() {
        let card = "\"Credit Limit:\",\"SGD 5000\"\n\"Available Limit:\",\"SGD 3250.35\"\n\n\
                    Transaction Date,Transaction Description,Transaction Status,Debit Amount,\
                    Credit Amount\n19 Dec 2024,a,Settled,,450.25\n15 Dec 2024,b,Settled,6.50,\n";
        assert_eq!(sums(card), ok("SGD", 45_025, 650));
        let other = card.replace("SGD 3250", "USD 3250");
        assert_eq!(look(&other).state, State::UnknownFormat);
        let kbank = "Date,Transaction Type,Withdrawal (THB),Deposit (THB),\
                     Outstanding Balance (THB)\n14/10/2020,Deposit,,\"1,000.00\",\"6,000.00\"\n\
                     15/10/2020,Transfer,20.00,,\"5,980.00\"\n";
        assert_eq!(sums(kbank), ok("THB", 100_000, 2_000));
        assert_eq!(look(&kbank.replace("5,980", "5,981")).state, State::Quarantined);
    }

    #[test]
    fn cards_whose_columns_say_nothing_of_one_are_left_open() {
        let bought = "Date,Description,Note,Amount(GBP)\n05/09/2026,a,b,-8.5\n23/09/2026,c,d,30\n";
        assert_eq!(look(bought).state, State::UnknownFormat);
        let paid = "Date,Text,Amount,Currency\n23/09/2026,Software,3.49,GBP\n\
                    24/09/2026,Books,12.00,GBP\n28/09/2026,Payment,-15.49,GBP\n";
        assert_eq!(look(paid).state, State::Quarantined, "the card's bill");
        let account = paid.replace("Payment", "Rent");
        assert_eq!(sums(&account), ok("GBP", 1_549, 1_549));
    }

    #[test]
    fn an_account_is_known_without_the_currency_behind_it() {
        let text = "\"Kontonummer:\";\"DE12120300000000000000 / EUR\"\n\n\
                    Buchungstag;Verwendungszweck;Betrag;Währung\n02.01.2026;a;-12,50;EUR\n\
                    03.01.2026;b;20,00;EUR\n";
        let account = look(text).sums.statements.remove(0).head.account;
        assert_eq!(account.as_deref(), Some("DE12120300000000000000"));
    }

    #[test]
    fn an_oldest_row_without_a_sign_may_have_gone_the_other_way() {
        let head = "Date,Description,Amount,Balance,Currency\n";
        let up = "2026-11-21,b,60.00,960.00,EUR\n2026-11-22,c,10.00,970.00,EUR\n";
        let down = "2026-11-21,b,60.00,1040.00,EUR\n2026-11-22,c,10.00,1030.00,EUR\n";
        let first = |balance: &str| format!("2026-11-20,a,100.00,{balance},EUR\n");
        for (held, others) in [("900.00", up), ("1100.00", down)] {
            let found = look(&format!("{head}{}{others}", first(held)));
            assert_eq!(found.state, State::Quarantined, "{held}");
        }
        let new = format!("{head}{}2026-11-21,b,60.00,160.00,EUR\n", first("100.00"));
        assert_eq!(sums(&new), ok("EUR", 16_000, 0));
        let told = format!("Opening balance,1000.00\n{head}{}{down}", first("1100.00"));
        assert_eq!(sums(&told).0, State::Quarantined, "it went in, and the others out");
        let signed = format!("{head}{}{up}", first("900.00").replace("100.00", "-100.00"));
        assert_eq!(sums(&signed), ok("EUR", 7_000, 10_000));
    }

    #[test]
    fn banks_whose_rows_say_what_the_account_held_or_a_mark_need_no_header_row() {
        let no_moment = "18.09.2017;\"a\";18.09.2017;-33,87;EUR;;\n\
                         20.09.2017;\"b\";20.09.2017;24,00;EUR;;\n";
        assert_eq!(sums(no_moment), ok("EUR", 2_400, 3_387));
        assert_eq!(look(&no_moment.replace(";;", ";x;")).state, State::UnknownFormat);
        let between = "519929173\tEUR\t20110101\t100,00\t92,50\t20110101\t-7,50\tBEA   NR:1\n\
                       519929173\tEUR\t20110102\t92,50\t192,50\t20110102\t100,00\tSEPA\n";
        assert_eq!(sums(between), ok("EUR", 10_000, 750));
        let held = look(between).sums.statements.remove(0);
        assert_eq!(held.head.account.as_deref(), Some("519929173"));
        let balances = [held.opening, held.closing].map(|told| told.map(|found| found.minor));
        assert_eq!((balances, held.ties), ([Some(10_000), Some(19_250)], Some(true)));
        for (from, to) in
            [("192,50", "192,51"), ("-7,50", "-7,51"), ("20110102\t92", "20110102\t91")]
        {
            assert_ne!(look(&between.replace(from, to)).state, State::Ok, "{from}");
        }
        let row = |mark: &str, amount: &str, end_to_end: &str| {
            let head = format!("NL91ABNA0417164300,EUR,20130102,{mark},{amount},0987654321,SHOP");
            format!("{head},20130101,ba,,X,,,,,,{end_to_end},,\n")
        };
        let marked = row("D", "12.50", "") + &row("C", "1100.00", "E1");
        assert_eq!(sums(&marked), ok("EUR", 110_000, 1_250));
        assert_eq!(look(&marked.replace(",D,", ",X,")).state, State::UnknownFormat);
        assert_eq!(look(&marked.replace("12.50", "-12.50")).state, State::UnknownFormat);
    }
}
