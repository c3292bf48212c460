//! From the texts of a row's mapped columns to a [`Transaction`]: pure, the same for both drivers.
//!
//! Nothing is rounded, guessed or left out: what cannot be read exactly becomes a defect of the
//! row, which sends it to a person.

use chrono::DateTime;

use crate::model::money::{AmountUnit, Currency, Money, parse_amount};
use crate::model::time::Instant;
use crate::model::transaction::{
    AccountRef, Attempts, Kind, RowDefect, RowKey, TagState, Transaction,
};
use crate::store::mapping::{AttemptsSetting, FilterValue, UnitSetting};
use crate::store::notation::Notation;
use crate::store::source_table::{SourceTable, TypeClass};
use crate::store::template::Template;

/// Reads a row. `cells` are the texts of [`SourceTable::cells`] in their order; `image` is the
/// text that apply compares.
pub fn decode(table: &SourceTable, cells: &[Option<String>], image: String) -> Transaction {
    let reader = Reader { table, cells };
    let mut defects = Vec::new();
    let account = reader.account();
    let kind = reader.kind(&mut defects);
    let money = reader.money(&account, &mut defects);
    let created_at = reader.created_at(&mut defects);
    let attempted_at = reader.attempted_at(&mut defects);
    let status = reader.text(table.layout.status).unwrap_or_default();
    Transaction {
        key: reader.key(),
        processing: is_processing(table, &status),
        succeeded: is_succeeded(table, &status),
        ignored: is_ignored(table, &status),
        kind,
        money,
        tag: reader.tag(&account),
        account,
        psp_reference: reader.filled(table.layout.psp_reference),
        natural_key: reader.joined(&table.layout.natural_key),
        idempotency_key: reader.idempotency_key(),
        created_at,
        attempted_at,
        attempts: attempts(table),
        defects,
        status,
        image,
    }
}

/// Whether a status is one of the mapping's processing values.
pub fn is_processing(table: &SourceTable, status: &str) -> bool {
    table.settings.map.iter().any(|map| map.from.iter().any(|value| value.0 == status))
}

/// Whether a status is one that says of success, tieout's or the application's own; a processing
/// value is none.
fn is_succeeded(table: &SourceTable, status: &str) -> bool {
    let is_value = |value: &FilterValue| value.0 == status;
    let targets = table.settings.map.iter().filter_map(|map| map.succeeded.as_ref());
    targets.chain(&table.settings.succeeded).any(is_value) && !is_processing(table, status)
}

/// Whether a status is one that the mapping ignores, and that says nothing of the row: neither of
/// success nor that it was given up.
fn is_ignored(table: &SourceTable, status: &str) -> bool {
    let settings = &table.settings;
    let is_value = |value: &FilterValue| value.0 == status;
    settings.ignore.iter().any(is_value)
        && !settings.unpaid.iter().any(is_value)
        && !is_processing(table, status)
        && !is_succeeded(table, status)
        && !table.given_up_values().iter().any(|value| value == status)
}

/// The account that a joined value names; what names none is shown with NULL as such.
pub fn account_of(table: &SourceTable, parts: &[Option<String>]) -> AccountRef {
    let texts: Vec<&str> = parts.iter().map(|part| part.as_deref().unwrap_or_default()).collect();
    let joined = texts.join("/");
    // `a/b` + `c` and `a` + `b/c` would read alike: such a value names no account.
    let is_clear = texts.len() < 2 || !texts.iter().any(|part| part.contains('/'));
    let accounts = &table.settings.accounts;
    let known = accounts.get(&joined).or_else(|| accounts.get("*")).filter(|_| is_clear);
    if let Some(account) = known {
        return AccountRef::Known(account.clone());
    }
    let shown: Vec<&str> = parts.iter().map(|part| part.as_deref().unwrap_or("NULL")).collect();
    AccountRef::Unmapped(shown.join("/"))
}

/// The kind of movement that a row's kind column says, or the constant one; `None`: a value that
/// nobody mapped.
pub fn kind_of(table: &SourceTable, value: Option<&str>) -> Option<Kind> {
    let settings = &table.settings.kind;
    if table.layout.kind.is_none() {
        let constant = settings.constant.as_deref().and_then(Kind::parse);
        return Some(constant.unwrap_or(Kind::Charge));
    }
    value.and_then(|value| settings.values.get(value)).and_then(|kind| Kind::parse(kind))
}

fn attempts(table: &SourceTable) -> Attempts {
    match (&table.layout.attempted, table.settings.attempts) {
        (Some(_), _) => Attempts::Column,
        (None, Some(AttemptsSetting::Once)) => Attempts::Once,
        (None, None) => Attempts::Unknown,
    }
}

struct Reader<'a> {
    table: &'a SourceTable,
    cells: &'a [Option<String>],
}

impl<'a> Reader<'a> {
    fn raw(&self, index: usize) -> Option<&'a str> {
        self.cells.get(index).and_then(Option::as_deref)
    }

    /// A cell's text, booleans spelled as the mapping spells them.
    fn text(&self, index: usize) -> Option<String> {
        let text = self.raw(index)?;
        let is_boolean = self.table.cells.get(index).is_some_and(|c| c.class == TypeClass::Boolean);
        Some(match boolean(text).filter(|_| is_boolean) {
            Some(flag) => flag.to_string(),
            None => text.to_owned(),
        })
    }

    /// A cell's text, where it is neither NULL nor empty.
    fn filled(&self, index: Option<usize>) -> Option<String> {
        self.text(index?).filter(|text| !text.trim().is_empty())
    }

    fn named(&self, column: &str) -> Option<&'a str> {
        self.table.cell(column).and_then(|index| self.raw(index))
    }

    fn key(&self) -> RowKey {
        let parts: Vec<String> =
            self.table.layout.key.iter().map(|i| self.text(*i).unwrap_or_default()).collect();
        RowKey { table: self.table.settings.name.clone(), id: RowKey::id_of(&parts) }
    }

    /// Several columns as one text; `None` where one of them is NULL.
    fn joined(&self, indexes: &[usize]) -> Option<String> {
        let parts: Option<Vec<String>> = indexes.iter().map(|index| self.text(*index)).collect();
        parts.filter(|parts| !parts.is_empty()).map(|parts| RowKey::id_of(&parts))
    }

    fn account(&self) -> AccountRef {
        let parts: Vec<Option<String>> =
            self.table.layout.account.iter().map(|index| self.text(*index)).collect();
        account_of(self.table, &parts)
    }

    fn kind(&self, defects: &mut Vec<RowDefect>) -> Kind {
        let value = self.table.layout.kind.and_then(|index| self.text(index));
        kind_of(self.table, value.as_deref()).unwrap_or_else(|| {
            defects.push(defect("kind", &unmapped(value.as_deref())));
            Kind::Charge
        })
    }

    fn money(&self, account: &AccountRef, defects: &mut Vec<RowDefect>) -> Option<Money> {
        let currency = self.currency(account, defects);
        let index = self.table.layout.amount;
        let Some(text) = self.raw(index) else {
            defects.push(defect("amount", "it is NULL"));
            return None;
        };
        let unit = self.unit(defects)?;
        let exactness = self.table.cells.get(index)?.exactness();
        match parse_amount(text, unit, exactness, currency?) {
            Ok(money) if money.minor < 0 => {
                defects.push(defect("amount", &format!("`{text}` is negative")));
                None
            }
            Ok(money) => Some(money),
            Err(error) => {
                defects.push(defect("amount", &error.to_string()));
                None
            }
        }
    }

    fn unit(&self, defects: &mut Vec<RowDefect>) -> Option<AmountUnit> {
        match (&self.table.settings.amount.unit, self.table.layout.exponent) {
            (UnitSetting::Minor, _) => Some(AmountUnit::Minor),
            (UnitSetting::Major, _) => Some(AmountUnit::Major),
            (UnitSetting::ExponentColumn(_), index) => {
                let text = index.and_then(|index| self.raw(index));
                let places = text.and_then(|text| text.trim().parse::<u32>().ok());
                if places.is_none() {
                    let found = text.map_or("NULL".to_owned(), |text| format!("`{text}`"));
                    defects.push(defect("amount", &format!("its exponent is {found}")));
                }
                places.map(AmountUnit::Scaled)
            }
        }
    }

    fn currency(&self, account: &AccountRef, defects: &mut Vec<RowDefect>) -> Option<Currency> {
        let settings = &self.table.settings.currency;
        let text = match (self.table.layout.currency, &settings.constant, &settings.by_account) {
            (Some(index), _, _) => self.raw(index),
            (None, Some(code), _) => Some(code.as_str()),
            (None, None, by_account) => {
                by_account.as_ref().and_then(|codes| codes.get(account.text())).map(String::as_str)
            }
        };
        match text.map(currency_of) {
            Some(Ok(currency)) => return Some(currency),
            Some(Err(problem)) => defects.push(defect("currency", &problem)),
            None if self.table.layout.currency.is_some() => {
                defects.push(defect("currency", "it is NULL"));
            }
            None => {
                let text = format!("the account `{}` has none", account.text());
                defects.push(defect("currency", &text));
            }
        }
        None
    }

    fn tag(&self, account: &AccountRef) -> TagState {
        let Some(template) = self.table.tag_template(account.text()) else {
            return TagState::Unmapped;
        };
        match self.render(template) {
            Err(column) => TagState::Null(column),
            Ok(tag) if tag.trim().is_empty() => TagState::Empty,
            Ok(tag) if !self.table.settings.tag_unique => TagState::Shared(tag),
            Ok(tag) => TagState::Usable(tag),
        }
    }

    fn idempotency_key(&self) -> Option<String> {
        let template = self.table.layout.idempotency_key.as_ref()?;
        self.render(template).ok().filter(|key| !key.is_empty())
    }

    fn render(&self, template: &Template) -> Result<String, String> {
        template.render(|column| self.named(column)).map_err(|null| null.column)
    }

    fn created_at(&self, defects: &mut Vec<RowDefect>) -> Instant {
        let (index, notation) = self.table.layout.created;
        match self.time(index, notation) {
            Ok(Some(at)) => return at,
            Ok(None) => defects.push(defect("created", "it is NULL or never")),
            Err(problem) => defects.push(defect("created", &problem)),
        }
        DateTime::UNIX_EPOCH
    }

    fn attempted_at(&self, defects: &mut Vec<RowDefect>) -> Option<Instant> {
        let (index, notation) = self.table.layout.attempted?;
        // Text that is empty holds nothing either: applications write '' where others write NULL.
        let class = self.table.cells.get(index).map(|column| &column.class);
        let is_text = matches!(class, Some(TypeClass::Text | TypeClass::Padded));
        if is_text && self.raw(index).is_some_and(|text| text.trim().is_empty()) {
            return None;
        }
        self.time(index, notation).unwrap_or_else(|problem| {
            defects.push(defect("attempted", &problem));
            None
        })
    }

    fn time(&self, index: usize, notation: Notation) -> Result<Option<Instant>, String> {
        self.raw(index).map_or(Ok(None), |text| notation.read(text))
    }
}

/// A boolean in the words of either database.
pub fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "t" | "1" | "yes" | "y" | "on" => Some(true),
        "false" | "f" | "0" | "no" | "n" | "off" => Some(false),
        _other => None,
    }
}

/// A code, or a code with the places of its minor unit, as some ledgers write it: `EUR/2`.
fn currency_of(text: &str) -> Result<Currency, String> {
    let (code, places) = text.split_once('/').map_or((text, None), |(c, p)| (c, Some(p.trim())));
    let currency = Currency::parse(code).map_err(|error| error.to_string())?;
    let own = currency.exponent();
    match places {
        Some(places) if places.parse() != Ok(own) => Err(format!(
            "`{text}` says that the minor unit has {places} places, and that of {} has {own}",
            currency.code()
        )),
        Some(_) | None => Ok(currency),
    }
}

fn defect(field: &str, problem: &str) -> RowDefect {
    RowDefect { field: field.to_owned(), problem: problem.to_owned() }
}

fn unmapped(value: Option<&str>) -> String {
    value.map_or_else(
        || "it is NULL".to_owned(),
        |value| format!("the mapping has no kind for `{value}`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::to_text;
    use crate::store::sample;

    const ROW: [(&str, Option<&str>); 16] = [
        ("id", Some("7")),
        ("tenant", Some("acme")),
        ("external_id", Some("x-1")),
        ("status", Some("sending")),
        ("amount", Some("12.50")),
        ("places", Some("2")),
        ("ratio", Some("19.989999999999998")),
        ("currency", Some("eur")),
        ("provider", Some("stripe")),
        ("gateway_id", Some("11")),
        ("refund", Some("f")),
        ("created_at", Some("2026-11-19 08:14:03.123456+00")),
        ("sent_at", Some("2026-11-19 09:20:00")),
        ("sent_s", Some("0")),
        ("psp_id", None),
        ("order_id", Some("99")),
    ];

    /// Reads the sample row under a mapping, with some cells changed.
    fn read(more: &str, changed: &[(&str, Option<&str>)]) -> Transaction {
        let table = sample::table(more);
        let text = |name: &str| {
            let known = changed.iter().chain(&ROW).find(|(column, _)| *column == name);
            known.and_then(|(_, value)| value.map(str::to_owned))
        };
        let cells: Vec<Option<String>> = table.cells.iter().map(|cell| text(&cell.name)).collect();
        decode(&table, &cells, "(image)".to_owned())
    }

    fn shown(money: Option<Money>) -> String {
        money.map_or("-".to_owned(), |money| money.to_string())
    }

    #[test]
    fn a_plain_row_reads_whole() {
        let row = read("attempted = 'sent_at'\ntime = 'Europe/Berlin'", &[]);
        assert_eq!(row.key, RowKey { table: "payments".into(), id: "7".into() });
        assert!(row.processing);
        assert_eq!(shown(row.money), "12.50 EUR");
        assert_eq!(row.account, AccountRef::Known("stripe_live".into()));
        assert_eq!(row.tag, TagState::Usable("7".into()));
        assert_eq!(to_text(row.created_at), "2026-11-19T08:14:03.123456Z");
        assert_eq!(row.attempted_at.map(to_text).as_deref(), Some("2026-11-19T08:20:00.000000Z"));
        assert_eq!((row.attempts, row.defects), (Attempts::Column, vec![]));
        assert_eq!((row.natural_key, row.idempotency_key, row.psp_reference), (None, None, None));
    }

    #[test]
    fn money_is_exact_or_a_defect() {
        let minor = "amount = { column = 'amount', unit = 'minor' }";
        let scaled = "amount = { column = 'amount', unit = { exponent = 'places' } }";
        let float = "amount = { column = 'ratio', unit = 'major' }";
        let yen = "currency = { const = 'JPY' }";
        let by_account = "currency = { by_account = { stripe_live = 'CHF' } }";
        for (more, column, value, money, defect) in [
            ("", "amount", Some("12.5"), "12.50 EUR", ""),
            ("", "amount", Some("0"), "0.00 EUR", ""),
            ("", "amount", Some("-1"), "-", "amount: `-1` is negative"),
            ("", "amount", None, "-", "amount: it is NULL"),
            (
                "",
                "amount",
                Some("1.005"),
                "-",
                "amount: `1.005` is finer than EUR allows (2 decimals)",
            ),
            ("", "amount", Some("NaN"), "-", "amount: `NaN` is not a decimal number"),
            ("", "currency", None, "-", "currency: it is NULL"),
            ("", "currency", Some("EUR "), "12.50 EUR", ""),
            ("", "currency", Some("eur/2"), "12.50 EUR", ""),
            (
                "",
                "currency",
                Some("EUR/4"),
                "-",
                "currency: `EUR/4` says that the minor unit has 4 places, and that of EUR has 2",
            ),
            ("", "currency", Some("XYZ"), "-", "currency: `XYZ` is not an ISO 4217 currency code"),
            (minor, "amount", Some("1250"), "12.50 EUR", ""),
            (
                scaled,
                "places",
                Some("3"),
                "-",
                "amount: `12.50` is finer than EUR allows (2 decimals)",
            ),
            (scaled, "places", None, "-", "amount: its exponent is NULL"),
            (float, "amount", None, "19.99 EUR", ""),
            (yen, "amount", Some("1500.00"), "1500 JPY", ""),
            (
                yen,
                "amount",
                Some("1500.50"),
                "-",
                "amount: `1500.50` is finer than JPY allows (0 decimals)",
            ),
            (by_account, "amount", Some("3"), "3.00 CHF", ""),
            (by_account, "provider", Some("adyen"), "-", "currency: the account `adyen` has none"),
        ] {
            let row = read(more, &[(column, value)]);
            let defects: Vec<String> =
                row.defects.iter().map(|d| format!("{}: {}", d.field, d.problem)).collect();
            assert_eq!(shown(row.money), money, "{more} {column}={value:?}");
            assert_eq!(defects.join("; "), defect, "{more} {column}={value:?}");
        }
    }

    #[test]
    fn accounts_are_looked_up_and_never_guessed() {
        let two = "account = ['provider', 'tenant']\n\
                   accounts = { 'stripe/acme' = 'stripe_live', 'a/b/c' = 'stripe_eu' }";
        let star = "account = []\naccounts = { '*' = 'stripe_eu' }";
        let known = |name: &str| AccountRef::Known(name.to_owned());
        let unmapped = |text: &str| AccountRef::Unmapped(text.to_owned());
        for (more, provider, tenant, expected) in [
            ("", Some("stripe"), None, known("stripe_live")),
            ("", Some("Stripe"), None, unmapped("Stripe")),
            ("", None, None, unmapped("NULL")),
            ("", Some(""), None, unmapped("")),
            (two, Some("stripe"), Some("acme"), known("stripe_live")),
            (two, Some("stripe"), None, unmapped("stripe/NULL")),
            // Which of its parts holds the slash, nobody can tell.
            (two, Some("a/b"), Some("c"), unmapped("a/b/c")),
            (star, Some("anything"), None, known("stripe_eu")),
        ] {
            let row = read(more, &[("provider", provider), ("tenant", tenant)]);
            assert_eq!(row.account, expected, "{more} {provider:?} {tenant:?}");
        }
    }

    #[test]
    fn tags_say_why_they_cannot_be_asked_by() {
        let external = "tag = 'pay_{external_id}'";
        let shared = "tag = '{external_id}'\ntag_unique = false";
        let by_account = "tags = { stripe_live = 'S{id}' }";
        let none = "tag = '(absent)'\npsp_reference = 'psp_id'";
        for (more, external_id, expected) in [
            (external, Some("x-1"), TagState::Usable("pay_x-1".into())),
            (external, None, TagState::Null("external_id".into())),
            ("tag = '{external_id}'", Some(""), TagState::Empty),
            ("tag = '{external_id}'", Some("  "), TagState::Empty),
            (shared, Some("x-1"), TagState::Shared("x-1".into())),
            (by_account, None, TagState::Usable("S7".into())),
            (none, None, TagState::Unmapped),
        ] {
            let row = read(more, &[("external_id", external_id)]);
            assert_eq!(row.tag, expected, "{more} {external_id:?}");
        }
    }

    #[test]
    fn times_keys_and_kinds() {
        let epoch = read("attempted = 'sent_s'\ntime = 'epoch_s'", &[]);
        assert_eq!((epoch.attempted_at, epoch.defects.len()), (None, 0));
        let null = read("", &[("created_at", None)]);
        assert_eq!(null.created_at, DateTime::UNIX_EPOCH);
        assert_eq!(null.defects, [defect("created", "it is NULL or never")]);
        let infinite = read("", &[("created_at", Some("infinity"))]);
        let problem = "`infinity` is not a time that can be read";
        assert_eq!(infinite.defects, [defect("created", problem)]);

        let keys = "natural_key = ['order_id', 'tenant']\nidempotency_key = 'c-{id}-{order_id}'";
        let row = read(keys, &[]);
        assert_eq!(row.natural_key.as_deref(), Some(r#"["99","acme"]"#));
        assert_eq!(row.idempotency_key.as_deref(), Some("c-7-99"));
        let row = read(keys, &[("order_id", None)]);
        assert_eq!((row.natural_key, row.idempotency_key), (None, None));

        let kinds = "kind = { column = 'refund', values = { true = 'refund', 0 = 'charge' } }";
        assert_eq!(read(kinds, &[]).kind, Kind::Charge);
        assert_eq!(read(kinds, &[("refund", Some("t"))]).kind, Kind::Refund);
        assert_eq!(read(kinds, &[("refund", None)]).defects, [defect("kind", "it is NULL")]);
    }
}
