//! Does the mapping fit the database? Pure: the drivers bring what their catalogue says.
//!
//! Every misfit is reported with the mapping's field, the column, its type and what was expected,
//! not only the first. What passes here can be spliced, cast and compared without surprises.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate};
use chrono_tz::Tz;

use crate::decide::policy::Mode;
use crate::model::count::counted;
use crate::model::money::Currency;
use crate::model::reason::Outcome;
use crate::model::transaction::Kind;
use crate::store::decode::boolean;
use crate::store::error::{MappingError, Mend};
use crate::store::literals::{ends, ends_written, fillings, is_own, parts};
use crate::store::mapping::{
    AttemptsSetting, CurrencySettings, FilterSettings, FilterValue, HistorySettings, KindSettings,
    MapSettings, TableSettings, UnitSetting,
};
use crate::store::notation::Notation;
use crate::store::source_table::{
    Column, Hidden, HistoryTable, Layout, QuotedIdent, Relation, SourceTable, Target, TypeClass,
};
use crate::store::template::{Template, step_of};

/// What stands for this role in a statement of what was expected; the driver knows its name.
pub(in crate::store) const THIS_ROLE: &str = "current_user";

/// What the catalogue says of the relations that a mapping names; `None`: there is none.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// What is read.
    pub read: Option<Relation>,
    /// What is written; the same as `read` where the mapping names none.
    pub write: Option<Relation>,
    /// The history table, where the mapping names one.
    pub history: Option<Relation>,
    /// The database compares times that are kept as text (SQLite).
    pub text_times: bool,
}

/// Checks a mapping; `accounts` are the configured accounts' names.
pub fn fit(
    settings: &TableSettings,
    catalogue: &Catalogue,
    accounts: &[String],
) -> Result<SourceTable, Vec<MappingError>> {
    let mut fitter = Fitter { settings: settings.clone(), accounts, errors: Vec::new() };
    let table = fitter.table(catalogue);
    match table {
        Some(table) if fitter.errors.is_empty() => Ok(table),
        Some(_) | None => Err(fitter.errors),
    }
}

/// Two mappings of one name would share their rows' memory.
pub fn unique_names(tables: &[TableSettings]) -> Vec<MappingError> {
    let mut seen = BTreeSet::new();
    let again = tables.iter().filter(|table| !seen.insert(table.name.as_str()));
    again
        .map(|table| MappingError {
            table: table.name.clone(),
            field: "name".to_owned(),
            problem: format!("`{}` names two tables", table.name),
            expected: "a name of its own for each [[table]]".to_owned(),
            mend: Mend::Mapping,
        })
        .collect()
}

/// A status whose column takes several spellings for one value. What selects rows would compare as
/// the column does and what reads them byte by byte, and a walk from value to value would step over
/// a spelling that nobody mapped: "nothing due" would mean "nothing seen". `bytewise` is the status
/// as the database compares it byte by byte.
pub fn folded_status(settings: &TableSettings, column: &Column, bytewise: &str) -> MappingError {
    MappingError {
        table: settings.name.clone(),
        field: "status".to_owned(),
        problem: format!(
            "column `{}` ({}) takes several spellings for one value, so that a row of another \
             spelling could be stepped over unseen",
            column.name, column.type_name
        ),
        expected: format!(
            "a column that tells spellings apart: as `read` a view with {bytewise} as {}, and an \
             index on that expression; the table itself as `write`",
            column.ident
        ),
        mend: Mend::Mapping,
    }
}

struct Fitter<'a> {
    settings: TableSettings,
    accounts: &'a [String],
    errors: Vec<MappingError>,
}

/// Which classes a field takes, in words for the message.
struct Wanted {
    takes: fn(&TypeClass) -> bool,
    words: &'static str,
}

const KEY: Wanted = Wanted {
    takes: |class| !matches!(class, TypeClass::Float | TypeClass::Other),
    words: "a column of whole numbers, text, uuid, bytes or times",
};
const STATUS: Wanted = Wanted {
    takes: |class| {
        matches!(
            class,
            TypeClass::Integer
                | TypeClass::Text
                | TypeClass::Padded
                | TypeClass::Enum(_)
                | TypeClass::Boolean
        )
    },
    words: "a column of text, an enum, whole numbers or booleans",
};
const VALUE: Wanted = Wanted {
    takes: |class| (STATUS.takes)(class) || matches!(class, TypeClass::Uuid),
    words: "a column of text, an enum, whole numbers, booleans or uuid",
};
const NUMBER: Wanted = Wanted {
    takes: |class| {
        matches!(
            class,
            TypeClass::Integer
                | TypeClass::Decimal
                | TypeClass::Float
                | TypeClass::Text
                | TypeClass::Padded
        )
    },
    words: "a column of whole or decimal numbers",
};
const WHOLE: Wanted = Wanted {
    takes: |class| matches!(class, TypeClass::Integer),
    words: "a column of whole numbers",
};
const CODE: Wanted = Wanted {
    takes: |class| matches!(class, TypeClass::Text | TypeClass::Padded | TypeClass::Enum(_)),
    words: "a column of text or an enum",
};
const REFERENCE: Wanted = Wanted {
    takes: |class| {
        matches!(class, TypeClass::Text | TypeClass::Padded | TypeClass::Uuid | TypeClass::Integer)
    },
    words: "a column of text, uuid or whole numbers",
};
/// What a PSP's id may be written to: those that files tell are numbers at some.
const ID: Wanted = Wanted {
    takes: |class| {
        (REFERENCE.takes)(class) || matches!(class, TypeClass::Decimal | TypeClass::Float)
    },
    words: "a column of text",
};
/// What tieout's own words may be written to; of a type of the user's only its database knows.
const WORDS: Wanted = Wanted {
    takes: |class| (CODE.takes)(class) || matches!(class, TypeClass::Other),
    words: "a column of text",
};
const TAG: Wanted = Wanted {
    takes: |class| {
        !matches!(
            class,
            TypeClass::Float
                | TypeClass::Other
                | TypeClass::Bytes
                | TypeClass::Timestamp
                | TypeClass::TimestampTz
        )
    },
    words: "a column of text, whole numbers, an enum or uuid; anything else as a column of a view \
            that writes it as your application does",
};

/// Whether a tag may be made of such a column.
pub fn may_be_tag(class: &TypeClass) -> bool {
    (TAG.takes)(class)
}

/// What a point in time may stand in.
const TIMES: &str = "a column of times, or whole numbers of the epoch";
const ANY: Wanted = Wanted { takes: |_| true, words: "a column" };

/// Where settings keep values of the status.
type Values = fn(&mut TableSettings) -> &mut Vec<FilterValue>;

impl Fitter<'_> {
    fn err(&mut self, field: &str, problem: impl Into<String>, expected: impl Into<String>) {
        self.err_of(Mend::Mapping, field, problem.into(), expected.into());
    }

    fn err_of(&mut self, mend: Mend, field: &str, problem: String, expected: String) {
        let table = self.settings.name.clone();
        let misfit = MappingError { table, field: field.to_owned(), problem, expected, mend };
        // A column that is read and written is looked at twice.
        if !self.errors.contains(&misfit) {
            self.errors.push(misfit);
        }
    }

    fn table(&mut self, catalogue: &Catalogue) -> Option<SourceTable> {
        self.names();
        let read = self.relation("read", &self.settings.read.clone(), catalogue.read.as_ref());
        let write = match self.settings.write.clone() {
            None => read,
            Some(name) => self.relation("write", &name, catalogue.write.as_ref()),
        };
        let (read, write) = (read?, write?);
        let zone = self.zone();
        let mut cells =
            Cells { relation: read, cells: Vec::new(), text_times: catalogue.text_times };
        let layout = self.layout(&mut cells, zone);
        let filter = self.filter(&mut cells);
        let status = read.column(&self.settings.status.clone()).cloned();
        let write_key = self.write_key(read, write);
        let write_status = self.column(write, "status", &self.settings.status.clone(), &STATUS);
        self.values(status.as_ref(), write_status.as_ref());
        let sets = self.sets(write, zone);
        let history = self.history(catalogue.history.as_ref(), zone);
        self.may_write(write, write_status.as_ref());
        let layout = layout?;
        self.settings.filter = filter;
        let looked_up = looked_up(&layout, &cells, &write.indexed);
        Some(SourceTable {
            read: read.name.clone(),
            write: write.name.clone(),
            statuses_in: write.name.clone(),
            write_is_read: read.name == write.name,
            read_is_view: read.is_view,
            writes_alone: write.writes_alone,
            status_indexed: write.indexed.contains(&self.settings.status),
            status_folded: false,
            status_nullable: write.is_view || write.nullable.contains(&self.settings.status),
            side_by_side: write.writes_alone
                && catalogue.history.as_ref().is_none_or(|history| history.writes_alone),
            unindexed: looked_up.into_iter().filter(|c| !write.indexed.contains(c)).collect(),
            settings: self.settings.clone(),
            cells: cells.cells,
            layout,
            write_key,
            write_status: write_status?,
            sets,
            history,
        })
    }

    /// What can be said without the catalogue.
    fn names(&mut self) {
        let settings = self.settings.clone();
        if settings.key.is_empty() {
            self.err("key", "it is empty", "the columns of the written table's unique key");
        }
        if settings.map.is_empty() {
            self.err("map", "there is none", "one [[table.map]] with the processing values");
        }
        if settings.tag.is_none() && settings.tags.is_empty() && settings.psp_reference.is_none() {
            let expected = "a tag template, or a psp_reference column, or both";
            self.err("tag", "neither a tag nor a psp_reference is mapped", expected);
        }
        if settings.attempted.is_some() && settings.attempts == Some(AttemptsSetting::Once) {
            let expected = "one of the two: the column, or attempts = \"once\" without it";
            self.err("attempts", "both `attempted` and `attempts` are set", expected);
        }
        self.account_names(&settings);
        self.kind_words(&settings.kind);
        self.currency_words(&settings);
    }

    fn account_names(&mut self, settings: &TableSettings) {
        let names = self.accounts.join(", ");
        if settings.accounts.is_empty() {
            let expected = format!("from values to accounts: {names}");
            self.err("accounts", "there is none", expected);
        }
        for (value, account) in &settings.accounts {
            if !self.accounts.contains(account) {
                let field = format!("accounts.\"{value}\"");
                self.err(&field, format!("no account `{account}`"), format!("one of: {names}"));
            }
        }
        if settings.account.is_empty() && settings.accounts.keys().any(|value| value != "*") {
            let expected = "account = [columns], or \"*\" as the only value of [table.accounts]";
            self.err("account", "no column says which account a row belongs to", expected);
        }
        for account in settings.tags.keys() {
            if !settings.accounts.values().any(|known| known == account) {
                let field = format!("tags.{account}");
                let expected = "an account of this table's [table.accounts]";
                self.err(&field, format!("`{account}` is no account of this table"), expected);
            }
        }
    }

    fn kind_words(&mut self, kind: &KindSettings) {
        let expected = "charge, refund or payout";
        match (&kind.constant, &kind.column) {
            (Some(word), None) if Kind::parse(word).is_none() => {
                self.err("kind.const", format!("`{word}` is no kind"), expected);
            }
            (Some(_), None) | (None, Some(_)) => {}
            (Some(_), Some(_)) | (None, None) => {
                let expected = "{ const = \"charge\" } or { column = …, values = { … } }";
                self.err("kind", "exactly one of const and column is needed", expected);
            }
        }
        for (value, word) in &kind.values {
            if Kind::parse(word).is_none() {
                let field = format!("kind.values.\"{value}\"");
                self.err(&field, format!("`{word}` is no kind"), expected);
            }
        }
    }

    fn currency_words(&mut self, settings: &TableSettings) {
        let CurrencySettings { column, constant, by_account } = &settings.currency;
        let given = [column.is_some(), constant.is_some(), by_account.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            let expected = "exactly one of column, const and by_account";
            self.err("currency", "it does not say where the currency stands", expected);
        }
        let expected = "an ISO 4217 code such as EUR";
        if let Some(Err(error)) = constant.as_deref().map(Currency::parse) {
            self.err("currency.const", error.to_string(), expected);
        }
        let Some(codes) = by_account else { return };
        for (account, code) in codes {
            if let Err(error) = Currency::parse(code) {
                self.err(&format!("currency.by_account.{account}"), error.to_string(), expected);
            }
        }
        for account in settings.accounts.values().collect::<BTreeSet<_>>() {
            if !codes.contains_key(account) {
                let expected = "one code for each account of this table";
                self.err("currency.by_account", format!("`{account}` has none"), expected);
            }
        }
    }

    fn relation<'r>(
        &mut self,
        field: &str,
        name: &str,
        found: Option<&'r Relation>,
    ) -> Option<&'r Relation> {
        let Some(relation) = found else {
            let expected = "a table or view that this role can see, as `schema.name` or `name`";
            self.err(field, format!("there is no `{name}`"), expected);
            return None;
        };
        if let Some(schema) = &relation.closed {
            let expected = format!("`grant usage on schema {schema} to {THIS_ROLE};` by its owner");
            let problem = format!("this role may not look into the schema of {}", relation.name);
            self.err_of(Mend::Rights, field, problem, expected);
        }
        if !relation.may_read {
            let expected = format!("grant select on {} to this role", relation.name);
            let problem = format!("this role may not read {}", relation.name);
            self.err_of(Mend::Rights, field, problem, expected);
        }
        for hidden in &relation.hidden {
            self.hidden_rows(field, &relation.name, hidden);
        }
        Some(relation)
    }

    /// Rows that no run would see, nor miss. A view reads as its owner, or as whoever asks it.
    fn hidden_rows(&mut self, field: &str, relation: &QuotedIdent, hidden: &Hidden) {
        let Hidden { table, view, owner } = hidden;
        let mut from = "this role".to_owned();
        if let (Some(owner), Some(view)) = (owner, view) {
            from = format!("{owner}, as which the view {view} reads it");
        }
        if view.is_some() && (owner.is_none() || view.as_ref() != Some(relation)) {
            from.push_str(&format!(", below the view {relation}"));
        }
        let role = owner.as_ref().map_or(THIS_ROLE.to_owned(), ToString::to_string);
        let problem = format!("row-level security hides rows of {table} from {from}");
        let expected = format!(
            "`alter role {role} bypassrls;` by a superuser, or `create policy tieout on {table} to \
             {role} using (true);` by its owner, and no restrictive policy"
        );
        self.err_of(Mend::Sight, field, problem, expected);
    }

    fn column(
        &mut self,
        relation: &Relation,
        field: &str,
        name: &str,
        wanted: &Wanted,
    ) -> Option<Column> {
        let Some(column) = relation.column(name) else {
            let names: Vec<&str> = relation.columns.iter().map(|c| c.name.as_str()).collect();
            let problem = format!("{} has no column `{name}`", relation.name);
            self.err(field, problem, format!("one of: {}", names.join(", ")));
            return None;
        };
        if !(wanted.takes)(&column.class) {
            self.err(field, typed(column), wanted.words);
            return None;
        }
        Some(column.clone())
    }

    fn zone(&mut self) -> Option<Tz> {
        let text = self.settings.time.clone()?;
        match text.as_str() {
            "utc" => Some(Tz::UTC),
            "epoch_s" | "epoch_ms" => None,
            name => name.parse().ok().or_else(|| {
                let expected = "utc, a zone name such as Europe/Berlin, epoch_s or epoch_ms";
                self.err("time", format!("`{name}` is no time zone"), expected);
                None
            }),
        }
    }

    fn cell(
        &mut self,
        cells: &mut Cells<'_>,
        field: &str,
        name: &str,
        wanted: &Wanted,
    ) -> Option<usize> {
        let column = self.column(cells.relation, field, name, wanted)?;
        Some(cells.put(column))
    }

    fn cells(
        &mut self,
        cells: &mut Cells<'_>,
        field: &str,
        names: &[String],
        wanted: &Wanted,
    ) -> Option<Vec<usize>> {
        let found: Vec<Option<usize>> =
            names.iter().map(|name| self.cell(cells, field, name, wanted)).collect();
        found.into_iter().collect()
    }

    /// An optional column: `Some(None)` where the mapping names none.
    fn maybe(
        &mut self,
        cells: &mut Cells<'_>,
        field: &str,
        name: Option<&String>,
        wanted: &Wanted,
    ) -> Option<Option<usize>> {
        match name {
            None => Some(None),
            Some(name) => self.cell(cells, field, name, wanted).map(Some),
        }
    }

    /// Minor units have no decimal places: 10.00 would be read as ten cents.
    fn unit(&mut self, cells: &Cells<'_>) {
        let settings = &self.settings.amount;
        let column = cells.relation.column(&settings.column);
        let Some(column) = column.filter(|column| column.decimals > 0) else { return };
        if matches!(settings.unit, UnitSetting::Minor) {
            let places = counted(column.decimals, "decimal place", "decimal places");
            let problem = format!("{}, of {places}, and minor units have none", typed(column));
            let expected = "`\"major\"` where 10.00 is ten units of the currency; of what counts \
                            minor units a view that casts it to whole numbers";
            self.err("amount.unit", problem, expected);
        }
    }

    fn layout(&mut self, cells: &mut Cells<'_>, zone: Option<Tz>) -> Option<Layout> {
        let settings = self.settings.clone();
        let key = self.cells(cells, "key", &settings.key, &KEY);
        let status = self.cell(cells, "status", &settings.status, &STATUS);
        let amount = self.cell(cells, "amount.column", &settings.amount.column, &NUMBER);
        self.unit(cells);
        let exponent = match &settings.amount.unit {
            UnitSetting::ExponentColumn(name) => Some(name),
            UnitSetting::Minor | UnitSetting::Major => None,
        };
        let exponent = self.maybe(cells, "amount.unit.exponent", exponent, &WHOLE);
        let currency =
            self.maybe(cells, "currency.column", settings.currency.column.as_ref(), &CODE);
        let account = self.cells(cells, "account", &settings.account, &VALUE);
        let kind = self.maybe(cells, "kind.column", settings.kind.column.as_ref(), &VALUE);
        self.kind_values(cells, kind.flatten());
        let psp_reference =
            self.maybe(cells, "psp_reference", settings.psp_reference.as_ref(), &REFERENCE);
        let created = self.time(cells, "created", &settings.created, zone);
        let attempted = match &settings.attempted {
            None => Some(None),
            Some(name) => self.time(cells, "attempted", name, zone).map(Some),
        };
        let natural_key = self.cells(cells, "natural_key", &settings.natural_key, &KEY);
        let tag = self.template(cells, "tag", settings.tag.as_ref());
        let mut tags = BTreeMap::new();
        for (account, text) in &settings.tags {
            let field = format!("tags.{account}");
            if let Some(Some(template)) = self.template(cells, &field, Some(text)) {
                tags.insert(account.clone(), template);
            }
        }
        let idempotency_key =
            self.template(cells, "idempotency_key", settings.idempotency_key.as_ref());
        Some(Layout {
            key: key?,
            status: status?,
            amount: amount?,
            exponent: exponent?,
            currency: currency?,
            account: account?,
            kind: kind?,
            psp_reference: psp_reference?,
            created: created?,
            attempted: attempted?,
            natural_key: natural_key?,
            tag: tag?,
            tags,
            idempotency_key: idempotency_key?,
        })
    }

    /// Spells the values of `kind` as the database spells them.
    fn kind_values(&mut self, cells: &Cells<'_>, index: Option<usize>) {
        let Some(column) = index.and_then(|index| cells.cells.get(index)).cloned() else { return };
        let mut values = BTreeMap::new();
        for (value, word) in self.settings.kind.values.clone() {
            if let Some(spelled) = self.spelled("kind.values", &column, &value) {
                values.insert(spelled, word);
            }
        }
        self.settings.kind.values = values;
    }

    fn time(
        &mut self,
        cells: &mut Cells<'_>,
        field: &str,
        name: &str,
        zone: Option<Tz>,
    ) -> Option<(usize, Notation)> {
        let column = self.column(cells.relation, field, name, &ANY)?;
        if !cells.text_times && matches!(column.class, TypeClass::Text | TypeClass::Padded) {
            let expected = format!(
                "{TIMES}: as `read` a view with {0}::timestamptz as {0} (::timestamp where it says \
                 no zone); the table itself as `write`",
                column.ident
            );
            self.err(field, typed(&column), expected);
            return None;
        }
        let notation = self.notation(field, &column, zone)?;
        Some((cells.put(column), notation))
    }

    /// How a column of `read` writes a point in time.
    fn notation(&mut self, field: &str, column: &Column, zone: Option<Tz>) -> Option<Notation> {
        let declared = self.settings.time.clone();
        let (problem, expected) = match (&column.class, declared.as_deref()) {
            (TypeClass::TimestampTz, _) => return Some(Notation::Zoned),
            (TypeClass::Timestamp, _) if zone.is_some() => return zone.map(Notation::Local),
            (TypeClass::Timestamp, _) => {
                let problem = format!("{}, and `time` does not name its zone", typed(column));
                (problem, "time = \"utc\" or a zone name such as Europe/Berlin")
            }
            (TypeClass::Text, Some("epoch_s" | "epoch_ms")) => match &column.odd_text {
                Some(text) => (
                    format!(
                        "column `{}` has text among its whole numbers, such as `{text}`",
                        column.name
                    ),
                    "whole numbers in every row, as `time` says epoch: change those texts, or read \
                     a view that turns them into whole numbers",
                ),
                None => (typed(column), "a column of whole numbers, as `time` says epoch"),
            },
            (TypeClass::Text, _) => return Some(Notation::Text(zone)),
            (TypeClass::Integer, Some("epoch_s")) => return Some(Notation::EpochSecs),
            (TypeClass::Integer, Some("epoch_ms")) => return Some(Notation::EpochMillis),
            (TypeClass::Integer, _) => {
                let problem = format!("{}, and `time` does not say which epoch", typed(column));
                (problem, "time = \"epoch_s\" or \"epoch_ms\"")
            }
            (_other, _) => (typed(column), TIMES),
        };
        self.err(field, problem, expected);
        None
    }

    fn template(
        &mut self,
        cells: &mut Cells<'_>,
        field: &str,
        text: Option<&String>,
    ) -> Option<Option<Template>> {
        let Some(text) = text else { return Some(None) };
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => {
                self.err(field, format!("`{text}`: {error}"), "a template such as pay_{id}");
                return None;
            }
        };
        if template.columns().next().is_none() {
            let problem = format!("`{text}` is the same for every row");
            self.err(field, problem, "a template that names a column, such as pay_{id}");
            return None;
        }
        let columns: Vec<String> = template.columns().map(str::to_owned).collect();
        self.cells(cells, field, &columns, &TAG).map(|_| Some(template))
    }

    fn filter(&mut self, cells: &mut Cells<'_>) -> Vec<FilterSettings> {
        let mut filter = self.settings.filter.clone();
        for one in &mut filter {
            let wanted = if one.is.is_some() { &ANY } else { &VALUE };
            let given = [one.is.is_some(), one.one_of.is_some(), one.not_in.is_some()];
            if given.iter().filter(|given| **given).count() != 1 {
                let problem = format!("the condition on `{}` has no single test", one.column);
                self.err("where", problem, "exactly one of is, in and not_in");
            }
            let Some(column) = self.column(cells.relation, "where", &one.column.clone(), wanted)
            else {
                continue;
            };
            for values in [&mut one.one_of, &mut one.not_in].into_iter().flatten() {
                self.spell_all("where", &column, values);
            }
            cells.put(column);
        }
        filter
    }

    /// The key must name one row of the written table, and mean the same there.
    fn write_key(&mut self, read: &Relation, write: &Relation) -> Vec<Column> {
        let key = self.settings.key.clone();
        let mut columns = Vec::new();
        for name in &key {
            let Some(read_column) = read.column(name) else { continue };
            let Some(column) = self.column(write, "key", name, &KEY) else { continue };
            if column.class != read_column.class {
                let problem = format!("{} in {}", typed(&column), write.name);
                let expected = format!("{}, as in {}", read_column.type_name, read.name);
                self.err("key", problem, expected);
            }
            columns.push(column);
        }
        let wanted: BTreeSet<&String> = key.iter().collect();
        let is_unique =
            write.unique_keys.iter().any(|unique| unique.iter().all(|c| wanted.contains(c)));
        let status = self.settings.status.clone();
        let (moving, staying): (Vec<_>, Vec<_>) =
            write.filled_keys().partition(|unique| unique.contains(&status));
        let has: BTreeSet<String> =
            staying.iter().map(|unique| format!("({})", unique.join(", "))).collect();
        let has = Vec::from_iter(has);
        if key.contains(&status) {
            let problem = format!("it holds the status column `{status}`, which a verdict changes");
            self.err("key", problem, unmoved(&status, &has));
        } else if !is_unique && columns.len() == key.len() && !key.is_empty() {
            let problem = format!("({}) is no unique key of {}", key.join(", "), write.name);
            let expected = match has.as_slice() {
                [] if !moving.is_empty() => unmoved(&status, &has),
                [] if write.is_view => "the base table in `write`, and its unique key".to_owned(),
                [] => "a table with a primary key or a unique index".to_owned(),
                some => format!("the columns of a unique index: {}", some.join(" or ")),
            };
            self.err("key", problem, expected);
        }
        for column in columns.iter().filter(|it| is_unique && it.name != status) {
            if write.nullable.contains(&column.name) {
                let problem =
                    format!("{} may be NULL, and a row without it has no key", named(column));
                let expected = match has.as_slice() {
                    [] => "NOT NULL on it, or a table with a primary key".to_owned(),
                    some => format!("NOT NULL on it, or another key: {}", some.join(" or ")),
                };
                self.err("key", problem, expected);
            }
        }
        columns
    }

    /// Checks and spells every status value: those of `map` that are targets as written, all
    /// others as read.
    fn values(&mut self, read: Option<&Column>, write: Option<&Column>) {
        let (Some(read), Some(write)) = (read, write) else { return };
        let mut maps = self.settings.map.clone();
        for map in &mut maps {
            if map.from.is_empty() {
                self.err("map.from", "it is empty", "the processing values");
            }
            self.spell_all("map.from", read, &mut map.from);
            let MapSettings { succeeded, failed, retryable, absent, review, .. } = map;
            for (field, value) in [
                ("map.succeeded", succeeded),
                ("map.failed", failed),
                ("map.retryable", retryable),
                ("map.absent", absent),
                ("map.review", review),
            ] {
                let Some(value) = value.as_mut() else { continue };
                if let Some(spelled) = self.spelled(field, write, &value.0) {
                    value.0 = spelled;
                }
            }
        }
        let lists: [(&str, Values); 3] = [
            ("ignore", |settings| &mut settings.ignore),
            ("succeeded", |settings| &mut settings.succeeded),
            ("unpaid", |settings| &mut settings.unpaid),
        ];
        for (field, list) in lists {
            let mut values = std::mem::take(list(&mut self.settings));
            self.spell_all(field, read, &mut values);
            *list(&mut self.settings) = values;
        }
        self.settings.map = maps;
        self.overlaps();
    }

    fn overlaps(&mut self) {
        let maps = self.settings.map.clone();
        let mut seen = BTreeSet::new();
        for value in maps.iter().flat_map(|map| &map.from) {
            if !seen.insert(&value.0) {
                let problem = format!("`{}` stands in it twice", value.0);
                self.err("map.from", problem, "each processing value once");
            }
        }
        let (ignore, words) = (self.settings.ignore.clone(), self.settings.succeeded.clone());
        let unpaid = self.settings.unpaid.clone();
        for (field, values, expected) in [
            ("ignore", &ignore, "values that tieout has nothing to do with"),
            ("succeeded", &words, "values that say that the movement took place"),
            ("unpaid", &unpaid, "values of rows that nobody charges any more"),
        ] {
            for FilterValue(value) in values.iter().filter(|value| seen.contains(&value.0)) {
                self.err(field, format!("`{value}` is a processing value too"), expected);
            }
        }
        let mapped = maps.iter().filter_map(|map| map.succeeded.as_ref());
        let paid: BTreeSet<&String> = mapped.chain(&words).map(|value| &value.0).collect();
        for FilterValue(value) in unpaid {
            if paid.contains(&value) {
                let problem = format!("`{value}` says succeeded too");
                self.err("unpaid", problem, "values that no paid row has");
            }
        }
        for map in &maps {
            let targets = [
                ("map.succeeded", &map.succeeded),
                ("map.failed", &map.failed),
                ("map.retryable", &map.retryable),
                ("map.absent", &map.absent),
                ("map.review", &map.review),
            ];
            for (field, value) in targets {
                let Some(FilterValue(value)) = value else { continue };
                if seen.contains(value) {
                    let problem = format!("`{value}` is a processing value too");
                    let expected = "another value, or none: the outcome then lives in tieout's \
                                    tables alone";
                    self.err(field, problem, expected);
                }
                if field != "map.succeeded" && paid.contains(value) {
                    let problem = format!("`{value}` says succeeded too");
                    self.err(field, problem, "a value that no paid row has, or none");
                }
            }
        }
    }

    fn spell_all(&mut self, field: &str, column: &Column, values: &mut [FilterValue]) {
        for value in values {
            if let Some(spelled) = self.spelled(field, column, &value.0) {
                value.0 = spelled;
            }
        }
    }

    /// A value as the database spells it when it is read back.
    fn spelled(&mut self, field: &str, column: &Column, value: &str) -> Option<String> {
        match spelling(column, value) {
            Ok(spelled) => Some(spelled),
            Err(expected) => {
                self.err(field, format!("`{value}` is no value of {}", named(column)), expected);
                None
            }
        }
    }

    fn sets(&mut self, write: &Relation, zone: Option<Tz>) -> BTreeMap<String, Target> {
        let set = self.settings.set.clone();
        let mut targets = BTreeMap::new();
        for (part, columns) in parts(&set) {
            for (name, template) in columns {
                let outcomes = ends_written(&self.settings, part, name);
                let field = format!("set.{part}.{name}");
                let target = self.set(write, &field, (name, template), zone, &outcomes);
                targets.extend(target.map(|target| (name.clone(), target)));
            }
        }
        targets
    }

    /// A column that is set with the status: none that a decision goes by.
    fn set(
        &mut self,
        write: &Relation,
        field: &str,
        (name, template): (&str, &str),
        zone: Option<Tz>,
        outcomes: &[Outcome],
    ) -> Option<Target> {
        if name == self.settings.status || self.settings.key.iter().any(|key| key == name) {
            let expected = "a column that is neither the status nor the key";
            self.err(field, format!("`{name}` is the status or the key"), expected);
            return None;
        }
        if let Some(what) = self.read_as(name) {
            let problem = format!("`{name}` is {what}, by which a row is decided");
            self.err(field, problem, "a column that no decision goes by");
            return None;
        }
        self.target(write, field, (name, template), zone, outcomes)
    }

    /// What a column tells of a row's money or of what it is a payment of, where it tells any.
    fn read_as(&self, name: &str) -> Option<&'static str> {
        let settings = &self.settings;
        let is = |column: &str| column == name;
        let exponent = match &settings.amount.unit {
            UnitSetting::ExponentColumn(column) => Some(column),
            UnitSetting::Minor | UnitSetting::Major => None,
        };
        let tags = settings.tag.iter().chain(settings.tags.values());
        let mut tags = tags.filter_map(|tag| Template::parse(tag).ok());
        let told = [
            ("the amount", is(&settings.amount.column)),
            ("the amount's exponent", exponent.is_some_and(|column| is(column))),
            ("the currency", settings.currency.column.as_deref().is_some_and(is)),
            ("the account", settings.account.iter().any(|column| is(column))),
            ("the kind", settings.kind.column.as_deref().is_some_and(is)),
            ("the time of creation", is(&settings.created)),
            ("the natural key", settings.natural_key.iter().any(|column| is(column))),
            ("the tag", tags.any(|tag| tag.columns().any(is))),
        ];
        told.into_iter().find(|(_, is_it)| *is_it).map(|(what, _)| what)
    }

    fn history(&mut self, found: Option<&Relation>, zone: Option<Tz>) -> Option<HistoryTable> {
        let HistorySettings { table, columns } = self.settings.history.clone()?;
        let relation = self.relation("history.table", &table, found)?;
        let outcomes = ends(self.settings.mode);
        let mut targets = BTreeMap::new();
        for (name, template) in &columns {
            let field = format!("history.columns.{name}");
            let target = self.target(relation, &field, (name, template), zone, &outcomes);
            targets.extend(target.map(|target| (name.clone(), target)));
        }
        for column in relation.columns.iter().filter(|c| c.required) {
            if !columns.contains_key(&column.name) {
                let problem = format!("{} is NOT NULL without a default", named(column));
                let expected = format!("a value for `{}` in it", column.name);
                self.err("history.columns", problem, expected);
            }
        }
        Some(HistoryTable { name: relation.name.clone(), columns: targets })
    }

    fn target(
        &mut self,
        relation: &Relation,
        field: &str,
        (name, template): (&str, &str),
        zone: Option<Tz>,
        outcomes: &[Outcome],
    ) -> Option<Target> {
        let column = self.column(relation, field, name, &ANY)?;
        if column.generated {
            self.generated(relation, field, &column);
        }
        if !column.may_write && self.settings.mode != Mode::Observe {
            let problem = format!("this role may not write `{name}` of {}", relation.name);
            let expected = "grant the right on it, or mode = \"observe\"".to_owned();
            self.err_of(Mend::Rights, field, problem, expected);
        }
        let notation = self.written(field, &column, template, zone, outcomes)?;
        Some(Target { column, notation })
    }

    /// Whether a template can be written into a column, and how it has times.
    fn written(
        &mut self,
        field: &str,
        column: &Column,
        template: &str,
        zone: Option<Tz>,
        outcomes: &[Outcome],
    ) -> Option<Notation> {
        let step = step_of(template);
        let counts = matches!(column.class, TypeClass::Integer | TypeClass::Decimal);
        if step.is_some() && !counts {
            self.err(field, format!("{} cannot be counted up", named(column)), WHOLE.words);
            return None;
        }
        if matches!(template, "{now}" | "{psp_time}") {
            return match &column.class {
                TypeClass::Date => Some(Notation::Day(zone.unwrap_or(Tz::UTC))),
                _other => self.moment(field, column, zone),
            };
        }
        if template == "{psp_reference}" && !(ID.takes)(&column.class) {
            self.err(field, typed(column), ID.words);
            return None;
        }
        let known = ["now", "psp_reference", "psp_time", "status", "status_before", "reason"];
        let known: Vec<String> = known
            .into_iter()
            .chain(["outcome"])
            .map(str::to_owned)
            .chain(self.settings.key.iter().cloned())
            .collect();
        match Template::parse(template) {
            Ok(parsed) => {
                for name in parsed.columns().filter(|name| !known.iter().any(|k| k == name)) {
                    let expected = format!("one of: {{{}}}, +1, or a literal", known.join("}, {"));
                    self.err(field, format!("`{{{name}}}` in `{template}`"), expected);
                }
                let says_words = template != "{psp_reference}" && parsed.columns().any(is_words);
                if says_words && !(WORDS.takes)(&column.class) {
                    self.err(field, typed(column), WORDS.words);
                } else {
                    self.filled(field, column, &parsed, outcomes);
                }
                let is_literal = parsed.columns().next().is_none() && step.is_none();
                let literal = parsed.render(|_none| None).ok().filter(|_| is_literal);
                literal.into_iter().for_each(|text| self.literal(field, column, &text));
            }
            Err(error) => {
                self.err(field, format!("`{template}`: {error}"), "a template or a literal");
            }
        }
        Some(Notation::Zoned)
    }

    /// How a column that a time is written to has it, where it has room for one.
    fn moment(&mut self, field: &str, column: &Column, zone: Option<Tz>) -> Option<Notation> {
        let notation = self.notation(field, column, zone)?;
        let written = DateTime::from_timestamp_micros(1).map(|at| notation.write(at));
        let needed = written.map_or(0, |text| text.chars().count());
        match column.max_chars {
            Some(most) if most < needed => {
                let problem = format!("{} holds {most} characters", named(column));
                self.err(field, problem, format!("room for the {needed} of a time"));
                None
            }
            _fits => Some(notation),
        }
    }

    fn generated(&mut self, relation: &Relation, field: &str, column: &Column) {
        if relation.is_view && !relation.updatable {
            // Nothing is written through it: that is told once, of the view.
            return;
        }
        let (problem, expected) = match relation.is_view {
            true => (
                format!("{} is worked out by the view {}", named(column), relation.name),
                "a column that the view takes from its table as it is, or the table in `write`",
            ),
            false => (format!("{} is generated", named(column)), "a column that is written"),
        };
        self.err(field, problem, expected);
    }

    fn literal(&mut self, field: &str, column: &Column, text: &str) {
        if let Some(expected) = unfit(column, text) {
            self.err(field, format!("`{text}` is no value of {}", named(column)), expected);
        }
    }

    /// A template of tieout's own words, which are all known before the first row: each must fit
    /// the column. With the key or the PSP's words beside them only the room for them is known.
    fn filled(&mut self, field: &str, column: &Column, template: &Template, outcomes: &[Outcome]) {
        let is_text = matches!(column.class, TypeClass::Text | TypeClass::Padded);
        let is_whole = template.columns().all(is_own);
        if !template.columns().any(is_own) || !(is_whole || is_text) {
            return;
        }
        let texts = fillings(&self.settings, template, outcomes);
        let misfits = texts.iter().filter_map(|text| Some((text, unfit(column, text)?)));
        if let Some((text, expected)) = misfits.max_by_key(|(text, _)| text.chars().count()) {
            let rest = if is_whole { "" } else { " and the rest" };
            let problem =
                format!("`{text}`{rest}, which may be written, is no value of {}", named(column));
            self.err(field, problem, expected);
        }
    }

    fn may_write(&mut self, write: &Relation, status: Option<&Column>) {
        let writes = self.settings.mode != Mode::Observe;
        if writes && !write.updatable {
            let problem =
                format!("{} is a view that the database cannot write through", write.name);
            self.err("write", problem, "the base table in `write`");
        }
        let Some(status) = status else { return };
        // Without a target the status is read alone: the application writes it in its own way.
        if writes && status.generated && self.settings.map.iter().any(has_target) {
            self.generated(write, "status", status);
        }
        if writes && !status.may_write {
            let problem = format!("this role may not write `{}` of {}", status.name, write.name);
            let expected = format!("grant update ({}) on {}", status.ident, write.name);
            self.err_of(Mend::Rights, "status", problem, expected);
        }
    }
}

/// A value as the database spells it when it is read back, or what it would take instead.
fn spelling(column: &Column, value: &str) -> Result<String, String> {
    let (spelled, expected) = match &column.class {
        TypeClass::Integer => {
            (value.trim().parse::<i64>().ok().map(|n| n.to_string()), "a whole number".into())
        }
        TypeClass::Boolean => (boolean(value).map(|flag| flag.to_string()), "true or false".into()),
        TypeClass::Enum(labels) => (
            labels.iter().find(|label| *label == value).cloned(),
            format!("one of its labels: {}", labels.join(", ")),
        ),
        TypeClass::Uuid => {
            (uuid::Uuid::parse_str(value).ok().map(|id| id.to_string()), "a uuid".into())
        }
        _text => {
            let text = if column.class == TypeClass::Padded { value.trim_end() } else { value };
            let most = column.max_chars.unwrap_or(usize::MAX);
            let fits = text.chars().count() <= most;
            (fits.then(|| text.to_owned()), format!("at most {most} characters"))
        }
    };
    spelled.ok_or(expected)
}

/// What a column would take instead of a text that it does not take; none where it may take it.
fn unfit(column: &Column, text: &str) -> Option<String> {
    if (VALUE.takes)(&column.class) {
        return spelling(column, text).err();
    }
    let is_time =
        matches!(column.class, TypeClass::Date | TypeClass::Timestamp | TypeClass::TimestampTz);
    if is_time && !may_be_a_time(text) {
        return Some("a day of the calendar, or {now}".to_owned());
    }
    let is_number = matches!(column.class, TypeClass::Decimal | TypeClass::Float);
    (is_number && !may_be_a_number(text)).then(|| "a number".to_owned())
}

struct Cells<'r> {
    relation: &'r Relation,
    cells: Vec<Column>,
    text_times: bool,
}

impl Cells<'_> {
    /// The index of a column, which is selected once however often it is mapped.
    fn put(&mut self, column: Column) -> usize {
        let known = self.cells.iter().position(|cell| cell.name == column.name);
        known.unwrap_or_else(|| {
            self.cells.push(column);
            self.cells.len().saturating_sub(1)
        })
    }
}

/// What to map as the key instead of one that changes with the status; `has`: the unique keys of
/// columns that stay.
fn unmoved(status: &str, has: &[String]) -> String {
    match has {
        [] => format!(
            "columns that stay, and a unique index over them without `{status}`; a table that is \
             partitioned by its status can have none, and no view helps there"
        ),
        some => format!("columns that stay, with a unique index: {}", some.join(" or ")),
    }
}

/// Whether a literal can be a number: a sign, digits with a point among them, an exponent.
fn may_be_a_number(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = !(whole.is_empty() && part.is_empty());
    has_digits && all_digits(whole) && all_digits(part) && exponent.parse::<i32>().is_ok()
}

/// Whether what a template names is text whatever the row is.
fn is_words(name: &str) -> bool {
    matches!(name, "outcome" | "reason" | "now" | "psp_time" | "psp_reference")
}

/// Whether any outcome has a value of its own, which would be written.
fn has_target(map: &MapSettings) -> bool {
    let MapSettings { succeeded, failed, retryable, absent, review, .. } = map;
    [succeeded, failed, retryable, absent, review].into_iter().any(Option::is_some)
}

/// Words that PostgreSQL has for times.
const TIME_WORDS: [&str; 7] =
    ["now", "today", "tomorrow", "yesterday", "epoch", "infinity", "-infinity"];

/// Whether a literal can be a time: a day of the calendar, with or without a clock behind it, as
/// ISO 8601 writes them; or a word that the database has for one.
fn may_be_a_time(text: &str) -> bool {
    let text = text.trim();
    if TIME_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return true;
    }
    let Some((day, rest)) = text.split_at_checked(10) else { return false };
    let form = |(at, c): (usize, char)| match at {
        4 | 7 => c == '-',
        _digit => c.is_ascii_digit(),
    };
    let is_day =
        day.chars().enumerate().all(form) && NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok();
    is_day && (rest.is_empty() || rest.strip_prefix(['T', 't', ' ']).is_some_and(may_be_a_clock))
}

/// Whether what stands behind the day can be a clock: hours and minutes, and then the seconds and
/// the offset, of which the database knows more forms.
fn may_be_a_clock(text: &str) -> bool {
    let part = |from: usize, most: u8| {
        let digits = text.get(from..from.saturating_add(2));
        let digits = digits.filter(|two| two.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|two| two.parse::<u8>().ok()).is_some_and(|number| number <= most)
    };
    part(0, 24) && text.get(2..3) == Some(":") && part(3, 59)
}

/// The first columns of what tieout looks rows up by. A natural key is compared as a whole: an
/// index that leads with any column of it serves.
fn looked_up(layout: &Layout, cells: &Cells<'_>, indexed: &[String]) -> Vec<String> {
    let first = |index: Option<&usize>| {
        index.and_then(|index| cells.cells.get(*index)).map(|c| c.name.clone())
    };
    let is_led = |index: &&usize| first(Some(*index)).is_some_and(|name| indexed.contains(&name));
    let tag = layout.tags.values().chain(&layout.tag);
    let tag = tag.filter_map(|template| template.columns().next().map(str::to_owned));
    [
        first(Some(&layout.status)),
        first(layout.psp_reference.as_ref()),
        first(layout.natural_key.iter().find(is_led).or(layout.natural_key.first())),
    ]
    .into_iter()
    .flatten()
    .chain(tag)
    .collect::<BTreeSet<_>>()
    .into_iter()
    .collect()
}

/// "column `amount` (double precision)".
fn named(column: &Column) -> String {
    format!("column `{}` ({})", column.name, column.type_name)
}

/// "column `amount` is double precision".
fn typed(column: &Column) -> String {
    format!("column `{}` is {}", column.name, column.type_name)
}
