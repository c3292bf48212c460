//! Which rows are behind a natural key, a tag, a PSP's reference: read, never written.

use std::collections::{HashMap, HashSet};

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::reason::{ABSENT_BESIDE, PARTLY_REFUNDED, Reason};
use crate::model::transaction::{SiblingFact, Transaction};
use crate::store::decode::account_of;
use crate::store::error::StoreError;
use crate::store::records::Tagged;
use crate::store::sibling::{self, Alike, Sibling};
use crate::store::source_table::{Column, SourceTable};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::rows::{Found, read, read_in_processing, read_where};
use crate::store::sqlite::sql::{fetch, fetch_each, json_set, literal, rendered};
use crate::store::sqlite::statements::{
    image, is_one_of_set, named, read_has_key, read_key, text_of,
};
use crate::store::template::{Piece, Template};

const READING: &str = "looking rows up";

/// In how many ways a tag may be read backwards before it is looked up by rendering instead.
const READINGS: usize = 16;

pub(super) async fn siblings(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    rows: &[&Transaction],
) -> Result<HashMap<String, Vec<SiblingFact>>, StoreError> {
    let asking: HashMap<&str, &Transaction> = rows
        .iter()
        .filter(|row| row.natural_key.is_some())
        .map(|row| (row.key.id.as_str(), *row))
        .collect();
    let natural: Vec<&Column> = table.cells_at(&table.layout.natural_key).collect();
    if asking.is_empty() || natural.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = siblings_sql(table, &natural);
    let keys: Vec<&str> = asking.keys().copied().collect();
    let query = rendered(&sql)
        .bind(json_set(&keys))
        .bind(table.settings.name.clone())
        .bind(Reason::SiblingPending.as_str())
        .bind(Reason::SiblingRow.as_str())
        .bind(ABSENT_BESIDE)
        .bind(Reason::Refunded.as_str())
        .bind(PARTLY_REFUNDED);
    let pairs = fetch(connection, READING, query).await?;
    let mut keys = Vec::with_capacity(pairs.len());
    for row in &pairs {
        keys.push(Cells::new(row, READING).text(1)?);
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let found = read(connection, table, &keys).await?;
    let mut same_key: HashMap<String, Vec<Sibling>> = HashMap::new();
    for row in &pairs {
        let cells = Cells::new(row, READING);
        let (asker, id) = (cells.text(0)?, cells.text(1)?);
        let Some(other) = found.get(&id) else { continue };
        same_key.entry(asker).or_default().push(Sibling {
            row: other.row.clone(),
            has_success: cells.int(2)? != 0,
            is_offered: cells.int(3)? != 0,
            waits_for: cells.opt_text(4)?,
            is_held: cells.int(5)? != 0,
            open_case: cells.opt_text(6)?,
            is_failed: cells.int(7)? != 0,
        });
    }
    let facts = same_key.into_iter().filter_map(|(asker, same_key)| {
        let facts = sibling::facts(table, asking.get(asker.as_str())?, &same_key);
        Some((asker, facts))
    });
    Ok(facts.filter(|(_, facts)| !facts.is_empty()).collect())
}

/// Pairs of rows of one natural key: one of those asked for, another, and what is remembered of it.
fn siblings_sql(table: &SourceTable, natural: &[&Column]) -> String {
    let same: Vec<String> = natural
        .iter()
        .map(|column| format!("{} = {}", named("b", column), named("a", column)))
        .collect();
    format!(
        "select s.a, s.b, \
         exists (select 1 from tieout_references r where r.table_name = ?2 and r.key = s.b), \
         exists (select 1 from tieout_handbacks h where h.table_name = ?2 and h.key = s.b \
         and h.taken_at is null and h.ended_at is null), \
         (select c.last_reason from tieout_checks c where c.table_name = ?2 and c.key = s.b \
         and c.state in ('open', 'watch') and ifnull(c.last_outcome, 'wait') = 'wait' \
         and c.image = s.image), \
         exists (select 1 from tieout_checks c join tieout_handbacks h \
         on h.table_name = c.table_name and h.key = c.key and h.number = c.handbacks \
         where c.table_name = ?2 and c.key = s.b and c.ended_as = 'retryable' \
         and c.image = s.image and h.taken_at is null and h.end_reason = ?3), \
         (select k.reason from tieout_cases k where k.subject_kind = 'row' \
         and k.table_name = ?2 and k.subject = s.b and k.state = 'open' \
         and (k.reason not in (?4, ?6) or (k.reason = ?6 and instr(k.text, ?7) > 0) \
         or (k.reason = ?4 and instr(k.text, ?5) = 1 \
         and exists (select 1 from tieout_checks c where c.table_name = ?2 and c.key = s.b \
         and c.state = 'case' and c.image = s.image)))), \
         exists (select 1 from tieout_checks c where c.table_name = ?2 and c.key = s.b \
         and c.ended_as = 'failed' and c.image = s.image) \
         from (select {} as a, {} as b, {} as image \
         from json_each(?1) j join {read} as a on {} join {read} as b on {}) s \
         where s.a <> s.b",
        read_key(table, "a"),
        read_key(table, "b"),
        image(table, |column| named("b", column)),
        read_has_key(table, "a", "j.value"),
        same.join(" and "),
        read = table.read,
    )
}

pub(super) async fn shared_tags(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    account: &str,
    rows: &[&Transaction],
) -> Result<HashSet<String>, StoreError> {
    let Some(tag) = table.sharable_tag(account).filter(|_| !rows.is_empty()) else {
        return Ok(HashSet::new());
    };
    let mut shown = tag.clone();
    shown.extend(table.layout.account.iter().chain(&table.layout.kind));
    let names = |alias: &str| {
        let names: Vec<String> = table.cells_at(&tag).map(|c| named(alias, c)).collect();
        names.join(", ")
    };
    let texts: Vec<String> =
        table.cells_at(&shown).map(|column| text_of(column, &named("t", column))).collect();
    let places: Vec<String> = (1..=shown.len()).map(|place| place.to_string()).collect();
    // The set is read once into an index of its own, as for `is_one_of_set`.
    let sql = format!(
        "select {}, count(*) from {read} as t where ({}) in \
         (select {} from json_each(?1) j join {read} as a on {}) group by {}",
        texts.join(", "),
        names("t"),
        names("a"),
        read_has_key(table, "a", "j.value"),
        places.join(", "),
        read = table.read,
    );
    let keys: Vec<&str> = rows.iter().map(|row| row.key.id.as_str()).collect();
    let groups = fetch(connection, READING, rendered(&sql).bind(json_set(&keys))).await?;
    let mut alike = Vec::with_capacity(groups.len());
    for row in &groups {
        let cells = Cells::new(row, READING);
        let found: Result<Vec<Option<String>>, StoreError> =
            (0..shown.len()).map(|place| cells.opt_text(place)).collect();
        let mut found = found?.into_iter();
        alike.push(Alike {
            tag: found.by_ref().take(tag.len()).collect(),
            account: found.by_ref().take(table.layout.account.len()).collect(),
            kind: found.next().flatten(),
            rows: cells.int(shown.len())?,
        });
    }
    Ok(sibling::sharing(table, account, &tag, rows, &alike))
}

pub(super) async fn rows_tagged(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    account: &str,
    tags: &[String],
) -> Result<Vec<Tagged>, StoreError> {
    let Some(template) = table.tag_template(account) else { return Ok(Vec::new()) };
    let (values, opaque) = read_backwards(template, tags);
    let cells = table.tag_cells(account);
    let wanted: HashSet<&str> = tags.iter().map(String::as_str).collect();
    let mut asked = Vec::new();
    if !values.is_empty() {
        asked.push((is_made_of(table, template), json_set(&values)));
    }
    if !opaque.is_empty() {
        asked.push((renders_to(table, template), json_set(&opaque)));
    }
    let mut found = Vec::new();
    for (condition, set) in asked {
        for (key, row) in alike_where(connection, table, &cells, &condition, set).await? {
            found.extend(sibling::tagged(table, account, &cells, &wanted, (key, &row)));
        }
    }
    Ok(found)
}

/// The key of each row that fulfils a condition on `t`, of the set in ?1, with the texts of its
/// tag's cells, its account's and its kind's.
async fn alike_where(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    tag: &[usize],
    condition: &str,
    set: String,
) -> Result<Vec<(String, Alike)>, StoreError> {
    let (accounts, kind) = (&table.layout.account, &table.layout.kind);
    let mut shown = tag.to_vec();
    shown.extend(accounts.iter().chain(kind));
    // A row without a key is another one all the same.
    let mut texts = vec![format!("ifnull({}, '')", read_key(table, "t"))];
    texts.extend(table.cells_at(&shown).map(|column| text_of(column, &named("t", column))));
    let sql = format!("select {} from {} as t where {condition}", texts.join(", "), table.read);
    let read = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        let found: Result<Vec<Option<String>>, StoreError> =
            (1..texts.len()).map(|place| cells.opt_text(place)).collect();
        let mut found = found?.into_iter();
        let alike = Alike {
            tag: found.by_ref().take(tag.len()).collect(),
            account: found.by_ref().take(accounts.len()).collect(),
            kind: found.next().flatten(),
            rows: 1,
        };
        Ok::<_, StoreError>((cells.text(0)?, alike))
    };
    fetch_each(connection, READING, rendered(&sql).bind(set), read).await
}

pub(super) async fn resolve_tags(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    account: &str,
    tags: &[String],
) -> Result<HashSet<String>, StoreError> {
    let Some(template) = table.tag_template(account) else { return Ok(HashSet::new()) };
    let (values, opaque) = read_backwards(template, tags);
    // What a row's tag really is: `007` finds the number 7.
    let tag = rendering(table, template, "t");
    let mut found = HashSet::new();
    if !values.is_empty() {
        let made = is_made_of(table, template);
        found.extend(texts_where(connection, table, &tag, &made, json_set(&values)).await?);
    }
    if !opaque.is_empty() {
        let renders = renders_to(table, template);
        found.extend(texts_where(connection, table, &tag, &renders, json_set(&opaque)).await?);
    }
    let wanted: HashSet<&str> = tags.iter().map(String::as_str).collect();
    found.retain(|tag: &String| wanted.contains(tag.as_str()));
    Ok(found)
}

pub(super) async fn rows_known_by(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    account: &str,
    tags: &[String],
    references: &[String],
    keys: &[String],
) -> Result<Vec<Transaction>, StoreError> {
    let mut found: HashMap<String, Found> = HashMap::new();
    if let Some(template) = table.tag_template(account) {
        let (values, opaque) = read_backwards(template, tags);
        if !values.is_empty() {
            let made = is_made_of(table, template);
            found.extend(read_where(connection, table, &made, json_set(&values)).await?);
        }
        if !opaque.is_empty() {
            let renders = renders_to(table, template);
            found.extend(read_where(connection, table, &renders, json_set(&opaque)).await?);
        }
    }
    if !keys.is_empty() {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        found.extend(read_in_processing(connection, table, &keys).await?);
    }
    let wanted: HashSet<&str> = tags.iter().map(String::as_str).collect();
    let named: HashSet<&str> = references.iter().map(String::as_str).collect();
    let rows = found.into_values().map(|found| found.row);
    Ok(rows.filter(|row| sibling::is_known_by(row, account, &wanted, &named)).collect())
}

/// What these tags may have been made of; and those that tell too little of it.
fn read_backwards<'t>(template: &Template, tags: &'t [String]) -> (Vec<Vec<String>>, Vec<&'t str>) {
    let (mut values, mut opaque) = (Vec::new(), Vec::new());
    for tag in tags {
        match template.readings(tag, READINGS) {
            Some(ways) => values.extend(ways),
            None => opaque.push(tag.as_str()),
        }
    }
    (values, opaque)
}

/// The columns of the template are together one of the set in ?1, by their indexes.
fn is_made_of(table: &SourceTable, template: &Template) -> String {
    let columns: Vec<&Column> = template.columns().filter_map(|name| column(table, name)).collect();
    is_one_of_set(&columns, "t")
}

/// The template renders to one of the set in ?1: for those that do not read backwards, by a scan.
fn renders_to(table: &SourceTable, template: &Template) -> String {
    format!("{} in (select value from json_each(?1))", rendering(table, template, "t"))
}

/// The template in SQL; NULL where one of its columns is.
fn rendering(table: &SourceTable, template: &Template, alias: &str) -> String {
    let piece = |piece: Piece<'_>| match piece {
        Piece::Literal(text) => literal(text),
        Piece::Column(name) => column(table, name)
            .map_or("null".to_owned(), |c| format!("({})", text_of(c, &named(alias, c)))),
    };
    template.pieces().map(piece).collect::<Vec<_>>().join("||")
}

fn column<'a>(table: &'a SourceTable, name: &str) -> Option<&'a Column> {
    table.cell(name).and_then(|index| table.cells.get(index))
}

/// A text of each row that fulfils a condition on `t`, of the set in ?1.
async fn texts_where(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    shown: &str,
    condition: &str,
    set: String,
) -> Result<Vec<String>, StoreError> {
    let sql = format!("select distinct {shown} from {} as t where {condition}", table.read);
    let text = |row: &SqliteRow| Cells::new(row, READING).opt_text(0);
    let texts = fetch_each(connection, READING, rendered(&sql).bind(set), text).await?;
    Ok(texts.into_iter().flatten().collect())
}

pub(super) async fn resolve_references(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    account: &str,
    references: &[String],
) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
    let mut found = taken_references(connection, account, references).await?;
    for (reference, key) in keys_storing(connection, table, account, references).await? {
        let owner = (table.settings.name.clone(), key);
        let owners = found.entry(reference).or_default();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let wanted: HashSet<&String> = references.iter().collect();
    found.retain(|reference, _| wanted.contains(reference));
    Ok(found)
}

pub(super) async fn taken_references(
    connection: &mut SqliteConnection,
    account: &str,
    references: &[String],
) -> Result<HashMap<String, Vec<(String, String)>>, StoreError> {
    let mut found: HashMap<String, Vec<(String, String)>> = HashMap::new();
    if references.is_empty() {
        return Ok(found);
    }
    let query = sqlx::query(
        "select r.psp_reference, r.table_name, r.key from json_each(?1) j \
         cross join tieout_references r on r.account = ?2 and r.psp_reference = j.value \
         order by 1, 2, 3",
    )
    .bind(json_set(references))
    .bind(account.to_owned());
    for row in &fetch(connection, READING, query).await? {
        let cells = Cells::new(row, READING);
        let owners = found.entry(cells.text(0)?).or_default();
        let owner = (cells.text(1)?, cells.text(2)?);
        // Whoever asks may name one twice.
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    Ok(found)
}

pub(super) async fn references_of(
    connection: &mut SqliteConnection,
    account: &str,
    table: &str,
    keys: &[String],
) -> Result<Vec<(String, String)>, StoreError> {
    let query = sqlx::query(
        "select r.key, r.psp_reference from json_each(?1) j \
         cross join tieout_references r on r.table_name = ?2 and r.key = j.value \
         where r.account = ?3 order by 1, 2",
    )
    .bind(json_set(keys))
    .bind(table.to_owned())
    .bind(account.to_owned());
    let rows = fetch(connection, READING, query).await?;
    let read = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        Ok((cells.text(0)?, cells.text(1)?))
    };
    rows.iter().map(read).collect()
}

/// Without an index that leads with the column the table is walked, however few they are.
pub(super) async fn keys_storing(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    account: &str,
    references: &[String],
) -> Result<Vec<(String, String)>, StoreError> {
    let mapped = table.layout.psp_reference.and_then(|index| table.cells.get(index));
    let Some(column) = mapped.filter(|_| !references.is_empty()) else { return Ok(Vec::new()) };
    let own = table.cells_at(&table.layout.account);
    let accounts: String =
        own.map(|column| format!(", {}", text_of(column, &named("t", column)))).collect();
    let sql = format!(
        "select {}, ifnull({}, ''){accounts} from {} as t where {} order by 1, 2",
        text_of(column, &named("t", column)),
        read_key(table, "t"),
        table.read,
        is_one_of_set(&[column], "t"),
    );
    let asked: Vec<[&String; 1]> = references.iter().map(|reference| [reference]).collect();
    let pair = |row: &SqliteRow| {
        let cells = Cells::new(row, READING);
        let parts: Result<Vec<Option<String>>, StoreError> = (0..table.layout.account.len())
            .map(|place| cells.opt_text(place.saturating_add(2)))
            .collect();
        let of = account_of(table, &parts?);
        Ok::<_, StoreError>((of, (cells.text(0)?, cells.text(1)?)))
    };
    let found =
        fetch_each(connection, READING, rendered(&sql).bind(json_set(&asked)), pair).await?;
    // A row of another account may have the same reference there.
    Ok(found.into_iter().filter(|(of, _)| of.may_be(account)).map(|(_, known)| known).collect())
}
