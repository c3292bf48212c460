//! What a SQLite file shows of itself without being changed.
//!
//! SQLite keeps CHECK constraints and the conditions of indexes only in the statement that made
//! the table: they are read from there, and a condition that cannot be tried alone is left out.

use sqlx::sqlite::SqliteConnection;

use crate::model::time::Instant;
use crate::model::transaction::RowKey;
use crate::store::error::StoreError;
use crate::store::inspect::{
    AHEAD_MAX, Ahead, Beside, CountedBy, Counterpart, ENDED_ROWS, FIRST_ROWS, IndexWanted, Inspect,
    LEFT_OUT_MAX, LeftOut, Link, NEWEST_ROWS, NamedRow, Passing, Rights, STATUS_ROWS, SeenTag,
    Server, Standing, Surveyed, Tally, Times, Tried, VALUES_MAX, ahead_of, an_hour_ago, chooses_by,
    filled, filled_or_null, joined, left_out_of, lookups, may_tell, rows_looked_at, told,
    told_apart, written_values,
};
use crate::store::mapping::FilterSettings;
use crate::store::records::ClaimFilter;
use crate::store::source_table::{Column, QuotedIdent, SourceTable};
use crate::store::sqlite::catalogue::relation;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::claim::{Turn, plan};
use crate::store::sqlite::rows::statuses;
use crate::store::sqlite::sql::{fetch, json_set, literal, rendered};
use crate::store::sqlite::statements::{
    Statement, belongs, condition, has_status, in_scope, is_ahead, is_compared_by_text, is_named,
    is_processing, key_text, named, read_has_key, read_key, text_of,
};
use crate::store::sqlite::{SqliteStore, catalogue, guards};
use crate::store::tellers::is_pointer;
use crate::store::template::Piece;

const LOOKING: &str = "looking at the database";

/// Tables, views and indexes share their names, whatever the letters' case.
const NAMES: &str = "select lower(name) from sqlite_master";

/// The most names that are tried for an index.
const NAMES_MAX: u32 = 99;

/// Examples of a column's values.
const EXAMPLES: i64 = 20;

pub(super) async fn texts(
    connection: &mut SqliteConnection,
    sql: &str,
) -> Result<Vec<String>, StoreError> {
    let rows = fetch(connection, LOOKING, rendered(sql)).await?;
    rows.iter().map(|row| Cells::new(row, LOOKING).text(0)).collect()
}

/// The name of a relation without its schema, as `sqlite_master` has it.
fn bare(table: &SourceTable) -> String {
    let name = table.write.to_string();
    let name = name.split_once("\".\"").map_or(name.as_str(), |(_, name)| name);
    name.trim_matches('"').replace("\"\"", "\"")
}

async fn definition(connection: &mut SqliteConnection, name: &str) -> Result<String, StoreError> {
    let query = sqlx::query("select sql from sqlite_master where name = ?1 and sql is not null")
        .bind(name.to_owned());
    let rows = fetch(connection, LOOKING, query).await?;
    rows.first().map_or(Ok(String::new()), |row| Cells::new(row, LOOKING).text(0))
}

/// Conditions of the CHECKs in a statement, in their order.
fn checks(sql: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = sql;
    while let Some(at) = find_word(rest, "check") {
        let after = rest.get(at.saturating_add(5)..).unwrap_or("");
        if after.trim_start().starts_with('(') {
            found.extend(inside(after.trim_start()));
        }
        rest = after;
    }
    found
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    lower.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = lower.get(..*at).and_then(|text| text.chars().next_back());
        let after = lower.get(at.saturating_add(word.len())..).and_then(|t| t.chars().next());
        !is_part(before) && !is_part(after)
    })
}

/// What stands between the first parenthesis and its end; quotes are skipped.
fn inside(text: &str) -> Option<String> {
    let mut depth = 0_u32;
    let mut quote: Option<char> = None;
    let mut inner = String::new();
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => {
                depth = depth.saturating_add(1);
                if depth == 1 {
                    continue;
                }
            }
            (None, ')') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(inner);
                }
            }
            (None, _) => {}
        }
        inner.push(c);
    }
    None
}

async fn barred(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    sql: &str,
) -> Result<Vec<(String, String)>, StoreError> {
    let status = &table.write_status;
    let values = json_set(&written_values(table));
    let mut barred = Vec::new();
    for condition in checks(sql) {
        if find_word(&condition, &status.name.to_ascii_lowercase()).is_none() {
            continue;
        }
        // Stored as the column's affinity would store it.
        let statement = format!(
            "select s.tieout_v from (select j.value as tieout_v, cast(j.value as {}) as {} \
             from json_each({}) j) s where not ({condition})",
            if status.class == crate::store::source_table::TypeClass::Integer {
                "integer"
            } else {
                "text"
            },
            status.ident,
            literal(&values),
        );
        // A condition over other columns cannot be tried alone.
        if let Ok(refused) = texts(connection, &statement).await {
            let check = format!("CHECK {condition}");
            barred.extend(refused.into_iter().map(|value| (value, check.clone())));
        }
    }
    barred.extend(unlisted(connection, table, &values).await?);
    Ok(barred)
}

/// Mapped values that are not in the table which a foreign key of the status leads to.
async fn unlisted(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    values: &str,
) -> Result<Vec<(String, String)>, StoreError> {
    let query = sqlx::query(
        "select f.\"table\", coalesce(f.\"to\", (select p.name \
         from pragma_table_info(f.\"table\") p where p.pk = 1)) \
         from pragma_foreign_key_list(?1) f where f.\"from\" = ?2 collate nocase \
         and (select count(*) from pragma_foreign_key_list(?1) g where g.id = f.id) = 1",
    );
    let query = query.bind(bare(table)).bind(table.write_status.name.clone());
    let mut found = Vec::new();
    for row in &fetch(connection, LOOKING, query).await? {
        let cells = Cells::new(row, LOOKING);
        let (parent, Some(column)) = (cells.text(0)?, cells.opt_text(1)?) else { continue };
        let statement = format!(
            "select j.value from json_each({}) j where not exists \
             (select 1 from {} r where r.{} = j.value)",
            literal(values),
            QuotedIdent::of_catalogue(&parent),
            QuotedIdent::of_catalogue(&column),
        );
        let key = format!("foreign key to {parent}");
        let missing = texts(connection, &statement).await?;
        found.extend(missing.into_iter().map(|value| (value, key.clone())));
    }
    Ok(found)
}

/// Unique indexes that a change of the status can violate.
async fn unique(
    connection: &mut SqliteConnection,
    name: &str,
    status: &str,
) -> Result<Vec<String>, StoreError> {
    let query = sqlx::query(
        "select l.name, coalesce(m.sql, ''), \
         (select group_concat(i.name, ',') from pragma_index_info(l.name) i) \
         from pragma_index_list(?1) l left join sqlite_master m on m.name = l.name \
         where l.\"unique\" = 1",
    )
    .bind(name.to_owned());
    let mut found = Vec::new();
    for row in &fetch(connection, LOOKING, query).await? {
        let cells = Cells::new(row, LOOKING);
        let (index, sql, columns) = (cells.text(0)?, cells.text(1)?, cells.opt_text(2)?);
        let holds_it = columns.unwrap_or_default().split(',').any(|column| column == status);
        let condition = find_word(&sql, "where").and_then(|at| sql.get(at..)).unwrap_or("");
        if holds_it || find_word(condition, &status.to_ascii_lowercase()).is_some() {
            found.push(index);
        }
    }
    Ok(found)
}

/// The statement that makes an index; its name is of the table and of what it is for, and one that
/// nothing else in the file has.
fn create_index(table: &str, what: &str, columns: &str, taken: &[String]) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let plain = format!("{table}_{what}");
    let is_free = |name: &String| !taken.contains(&name.to_ascii_lowercase());
    let others = (2..=NAMES_MAX).map(|number| format!("{plain}_{number}"));
    let free = std::iter::once(plain.clone()).chain(others).find(is_free);
    let index = free.unwrap_or(plain);
    format!("create index {} on {} ({columns});", quoted(&index), quoted(table))
}

async fn walks(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    name: &str,
) -> Result<bool, StoreError> {
    if table.status_indexed {
        return Ok(false);
    }
    let before = an_hour_ago();
    let filter = ClaimFilter { stuck_before: Some(before), ..ClaimFilter::default() };
    let turn = Turn { table, filter: &filter, run_id: None, limit: 1, now: before };
    let steps = plan(connection, &turn).await?;
    // A view's plan names the alias; a walk without an index is a SCAN either way.
    let is_walk = |step: &String| {
        step.starts_with("SCAN")
            && !step.contains(" USING ")
            && (step.starts_with("SCAN t") || step.contains(name))
    };
    Ok(steps.iter().any(is_walk))
}

/// The table and the conditions of its stuck rows: by an index where one leads to them, else of the
/// first rows.
async fn stuck_of(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    filter: &ClaimFilter,
    statement: &mut Statement,
) -> Result<String, StoreError> {
    let read = &table.read;
    let rows = match walks(connection, table, &bare(table)).await? {
        true => format!("(select * from {read} limit {FIRST_ROWS})"),
        false => read.to_string(),
    };
    let conditions = [
        is_processing(table, "t"),
        belongs(table, "t"),
        is_named(table, "t"),
        in_scope(statement, table, "t", filter),
    ];
    Ok(format!("{rows} as t where {}", conditions.join(" and ")))
}

/// These columns of the first rows and, by a key of one column, of the last ones.
fn ends(table: &SourceTable, columns: &str, joined_by: &str) -> String {
    let of = |order: &str| {
        format!(
            "select * from (select {columns} from {} as t{order} limit {STATUS_ROWS})",
            table.read
        )
    };
    match table.sole_key().filter(|_| table.write_is_read) {
        Some(key) => {
            let last = of(&format!(" order by {} desc", named("t", key)));
            format!("{} {joined_by} {last}", of(""))
        }
        None => of(""),
    }
}

/// Whether an index leads to the stuck rows, whatever `where` says.
async fn leads_to_stuck(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<bool, StoreError> {
    let stuck = is_processing(table, "t");
    let sql = format!("explain query plan select 1 from {} as t where {stuck}", table.read);
    for row in &fetch(connection, LOOKING, rendered(&sql)).await? {
        if Cells::new(row, LOOKING).text(3)?.starts_with("SCAN") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stuck rows as each condition of `where` sees them: by an index where one leads to them, else of
/// the rows at both ends.
async fn tried(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<Vec<Tried>, StoreError> {
    // The key keeps rows apart that are alike in all else.
    let mut columns = vec![format!("{} as k", read_key(table, "t"))];
    let mut names = Vec::new();
    for (place, filter) in table.settings.filter.iter().enumerate() {
        let passes = condition(table, "t", filter);
        let cell = table.cell(&filter.column).and_then(|index| table.cells.get(index));
        let value = match cell.filter(|_| filter.is.is_none()) {
            Some(column) => text_of(column, &named("t", column)),
            None => "null".to_owned(),
        };
        columns.push(format!("({passes}) as c{place}, {value} as v{place}"));
        names.push(format!("c{place}, v{place}"));
    }
    let stuck = is_processing(table, "t");
    columns.push(format!("({stuck}) as p"));
    let (names, columns) = (names.join(", "), columns.join(", "));
    let rows = match leads_to_stuck(connection, table).await? {
        true => {
            format!("select {columns} from {} as t where {stuck} limit {LEFT_OUT_MAX}", table.read)
        }
        false => ends(table, &columns, "union"),
    };
    let sql = format!("select {names} from ({rows}) where p limit {LEFT_OUT_MAX}");
    let rows = fetch(connection, LOOKING, rendered(&sql)).await?;
    let tried = rows.iter().map(|row| {
        let cells = Cells::new(row, LOOKING);
        let of = |place: usize| {
            let passes = cells.opt_int(place.saturating_mul(2))?.is_some_and(|flag| flag != 0);
            Ok((passes, cells.opt_text(place.saturating_mul(2).saturating_add(1))?))
        };
        (0..table.settings.filter.len()).map(of).collect::<Result<Tried, StoreError>>()
    });
    tried.collect()
}

/// Columns by which an index leads to rows of what is read; of a view nothing is known.
async fn indexed(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<Vec<String>, StoreError> {
    if !table.write_is_read {
        return Ok(Vec::new());
    }
    let found = relation(connection, &bare(table), false).await?.filter(|it| !it.is_view);
    let mut columns = found.map(|relation| relation.indexed).unwrap_or_default();
    // What is compared by its text goes by no index.
    columns.retain(|name| {
        let cell = table.cell(name).and_then(|index| table.cells.get(index));
        cell.is_some_and(|column| !is_compared_by_text(column))
    });
    Ok(columns)
}

/// Whether any row passes a condition: by an index of its column, where that serves it, else of the
/// rows at both ends.
async fn passing(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    filter: &FilterSettings,
    indexed: &[String],
) -> Result<Passing, StoreError> {
    let (read, passes) = (&table.read, condition(table, "t", filter));
    let is_led = filter.not_in.is_none() && indexed.contains(&filter.column);
    let sql = match is_led {
        true => format!("select exists (select 1 from {read} as t where {passes}), 1"),
        false => format!(
            "select exists (select 1 from ({}) where p), \
             (select count(*) from (select 1 from {read} as t limit {STATUS_ROWS})) \
             < {STATUS_ROWS}",
            ends(table, &format!("({passes}) as p"), "union all")
        ),
    };
    let rows = fetch(connection, LOOKING, rendered(&sql)).await?;
    let Some(row) = rows.first() else { return Ok(Passing::Rows) };
    let cells = Cells::new(row, LOOKING);
    Ok(match (cells.int(0)? != 0, cells.int(1)? != 0) {
        (true, _) => Passing::Rows,
        (false, true) => Passing::NoRow,
        (false, false) => Passing::NoneSeen,
    })
}

/// Joined values of these cells in the first rows.
async fn found_values(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    at: &[usize],
) -> Result<Vec<Vec<Option<String>>>, StoreError> {
    let columns: Vec<&Column> = table.cells_at(at).collect();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| format!("{} as v{at}", text_of(column, &named("t", column))))
        .collect();
    let names: Vec<String> = (0..columns.len()).map(|at| format!("v{at}")).collect();
    let sql = format!(
        "select distinct {} from (select {}, {} as tieout_in from {} as t limit {FIRST_ROWS}) \
         where tieout_in limit {VALUES_MAX}",
        names.join(", "),
        texts.join(", "),
        belongs(table, "t"),
        table.read
    );
    let mut values = Vec::new();
    for row in &fetch(connection, LOOKING, rendered(&sql)).await? {
        let cells = Cells::new(row, LOOKING);
        let parts: Result<Vec<Option<String>>, StoreError> =
            (0..columns.len()).map(|at| cells.opt_text(at)).collect();
        values.push(parts?);
    }
    values.sort();
    Ok(values)
}

/// The column that leads the key of a table.
fn newest_first(of: &Surveyed) -> Option<&Column> {
    of.primary_key.first().filter(|_| !of.relation.is_view).and_then(|key| of.relation.column(key))
}

async fn unmapped(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<Vec<String>, StoreError> {
    if table.status_indexed {
        return catalogue::unmapped_statuses(connection, table).await;
    }
    let status = &table.write_status;
    let sql = format!(
        "select distinct v from ({}) where v is not null limit {VALUES_MAX}",
        catalogue::both_ends(
            &text_of(status, &named("t", status)),
            &table.write,
            table.write_key.first(),
            FIRST_ROWS
        )
    );
    let known = table.known_values();
    let seen = texts(connection, &sql).await?;
    Ok(seen.into_iter().filter(|value| !known.contains(value)).collect())
}

/// Columns that may tell accounts or kinds apart, where the mapping names one for the whole table,
/// with their values.
async fn tell(
    connection: &mut SqliteConnection,
    table: &SourceTable,
) -> Result<Vec<(String, Vec<String>)>, StoreError> {
    let name = table.read.to_string();
    let name = name.split_once("\".\"").map_or(name.as_str(), |(_, name)| name);
    let name = name.trim_matches('"').replace("\"\"", "\"");
    let Some(relation) = relation(connection, &name, false).await? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for column in may_tell(table, &relation) {
        let most = rows_looked_at(column);
        let value = match is_pointer(&column.name) {
            true => filled(&named("t", column)),
            false => text_of(column, &named("t", column)),
        };
        let of = |order: &str| {
            format!(
                "select * from (select {value} as v, {} as tieout_in from {} as t{order} \
                 limit {most})",
                belongs(table, "t"),
                table.read
            )
        };
        let mut rows = of("");
        if let Some(key) = table.write_key.first().filter(|_| table.write_is_read) {
            rows.push_str(&format!(
                " union all {}",
                of(&format!(" order by t.{} desc", key.ident))
            ));
        }
        let sql = format!(
            "select distinct v from ({rows}) where tieout_in and v is not null order by 1 \
             limit {VALUES_MAX}"
        );
        found.push((column.name.clone(), texts(connection, &sql).await?));
    }
    Ok(found)
}

/// Keys of a few rows that are over, of the newest rows of what is written.
async fn newest_ended(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    ended: &[String],
) -> Result<Vec<String>, StoreError> {
    let (status, write) = (&table.write_status, &table.write);
    let key: Vec<&Column> = table.write_key.iter().collect();
    let newest = table.sole_key().map(|key| format!(" order by {} desc", named("w", key)));
    let ended: Vec<String> = ended.iter().map(|value| literal(value)).collect();
    let sql = format!(
        "select k from (select {} as k, {} as s from {write} as w{} limit {NEWEST_ROWS}) \
         where k is not null and s in ({}) limit {ENDED_ROWS}",
        key_text(&key, |column| named("w", column)),
        text_of(status, &named("w", status)),
        newest.unwrap_or_default(),
        ended.join(", "),
    );
    texts(connection, &sql).await
}

/// Whether what is read shows a row that fulfils a condition on `t`.
async fn shows(
    connection: &mut SqliteConnection,
    table: &SourceTable,
    condition: &str,
) -> Result<bool, StoreError> {
    let sql = format!("select 1 from {} as t where {condition} limit 1", table.read);
    Ok(!fetch(connection, LOOKING, rendered(&sql)).await?.is_empty())
}

impl Inspect for SqliteStore {
    async fn server(&self) -> Result<Server, StoreError> {
        let mut connection = self.read(LOOKING).await?;
        let version = texts(&mut connection, "select sqlite_version()").await?.concat();
        let product = format!("SQLite {version}");
        Ok(Server { product, link: Link::Local, elsewhere: Vec::new() })
    }

    async fn rights(&self) -> Result<Rights, StoreError> {
        let mut connection = self.read(LOOKING).await?;
        let files = "select file from pragma_database_list where name = 'main'";
        let file = texts(&mut connection, files).await?.concat();
        let mut rights = Rights::default();
        let path = std::path::Path::new(&file);
        let may_write =
            |path: &std::path::Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        if !may_write(path) {
            rights.lacks.push(format!("writing {file}"));
        }
        // The write-ahead log is made beside the file.
        if let Some(folder) = path.parent().filter(|folder| !may_write(folder)) {
            rights.lacks.push(format!("making files in {}", folder.display()));
        }
        guards::look(&mut connection, &mut rights).await?;
        Ok(rights)
    }

    async fn sampled(&self, table: &SourceTable, cell: usize) -> Result<Vec<String>, StoreError> {
        let Some(column) = table.cells.get(cell) else { return Ok(Vec::new()) };
        let text = text_of(column, "v");
        let sql = format!(
            "select {text} from (select t.{} as v from {} as t limit 1000) \
             where v is not null limit {EXAMPLES}",
            column.ident, table.read
        );
        texts(&mut *self.read(LOOKING).await?, &sql).await
    }

    async fn barred(&self, table: &SourceTable) -> Result<Vec<(String, String)>, StoreError> {
        let mut connection = self.read(LOOKING).await?;
        let sql = definition(&mut connection, &bare(table)).await?;
        barred(&mut connection, table, &sql).await
    }

    async fn standing(&self, table: &SourceTable) -> Result<Standing, StoreError> {
        let mut connection = self.read(LOOKING).await?;
        let name = bare(table);
        let mut standing = Standing::default();
        let query = sqlx::query(
            "select name from sqlite_master where type = 'trigger' \
             and tbl_name = ?1 collate nocase and lower(sql) like '%update%on%' order by name",
        )
        .bind(name.clone());
        for row in &fetch(&mut connection, LOOKING, query).await? {
            standing.triggers.push((name.clone(), Cells::new(row, LOOKING).text(0)?));
        }
        let status = table.settings.status.clone();
        let over = unique(&mut connection, &name, &status).await?;
        standing.unique = over.into_iter().map(|index| (name.clone(), index)).collect();
        let sql = definition(&mut connection, &name).await?;
        let untold = &mut standing.untold;
        let refused = barred(&mut connection, table, &sql).await;
        standing.barred = told(untold, "CHECK constraints", refused).unwrap_or_default();
        let taken = texts(&mut connection, NAMES).await?;
        let walked = walks(&mut connection, table, &name).await;
        if told(untold, "the way to stuck rows", walked) == Some(true) {
            let created = table.cells.get(table.layout.created.0);
            let columns: Vec<String> = std::iter::once(table.write_status.ident.to_string())
                .chain(created.map(|column| column.ident.to_string()))
                .collect();
            let create = create_index(&name, "status", &columns.join(", "), &taken);
            standing.index_wanted = Some(IndexWanted { table: name.clone(), create });
        }
        standing.lookups = lookups(table, |columns| {
            create_index(&name, &columns.replace('"', "").replace(", ", "_"), columns, &taken)
        });
        let values = unmapped(&mut connection, table).await;
        standing.unmapped = told(untold, "status values", values).unwrap_or_default();
        let lacking = catalogue::lacks_status(&mut connection, table).await;
        standing.lacks_status = told(untold, "rows without a status", lacking).unwrap_or_default();
        let layout = &table.layout;
        let values = found_values(&mut connection, table, &layout.account).await;
        let found = told(untold, "account values", values).unwrap_or_default();
        standing.accounts = found.iter().map(|parts| joined(parts)).collect();
        standing.accounts.sort();
        let values = found_values(&mut connection, table, layout.kind.as_slice()).await;
        let found = told(untold, "kind values", values).unwrap_or_default();
        standing.kind_values = found.into_iter().flatten().collect();
        let values = tell(&mut connection, table).await;
        let found = told(untold, "other PSPs", values).unwrap_or_default();
        told_apart(table, found, &mut standing);
        Ok(standing)
    }

    async fn tags(
        &self,
        table: &SourceTable,
        account: &str,
        most: i64,
    ) -> Result<Vec<SeenTag>, StoreError> {
        let Some(template) = table.tag_template(account) else { return Ok(Vec::new()) };
        let parts: Vec<String> = template
            .pieces()
            .map(|piece| match piece {
                Piece::Literal(text) => literal(text),
                Piece::Column(name) => match table.cell(name).and_then(|i| table.cells.get(i)) {
                    Some(column) => text_of(column, &named("t", column)),
                    None => "null".to_owned(),
                },
            })
            .collect();
        let condition = match table.status_indexed {
            true => is_processing(table, "t"),
            false => "true".to_owned(),
        };
        let reference = table.layout.psp_reference.and_then(|at| table.cells.get(at));
        let reference =
            reference.map_or("null".to_owned(), |column| text_of(column, &named("t", column)));
        let sql = format!(
            "select {}, {reference} from {} as t where {condition} limit {most}",
            parts.join(" || "),
            table.read
        );
        let mut connection = self.read(LOOKING).await?;
        let rows = fetch(&mut connection, LOOKING, rendered(&sql)).await?;
        let seen = |row| {
            let cells = Cells::new(row, LOOKING);
            Ok(SeenTag::of(cells.opt_text(0)?, cells.opt_text(1)?.as_deref()))
        };
        rows.iter().map(seen).collect()
    }

    async fn held(
        &self,
        table: &SourceTable,
        values: &[String],
    ) -> Result<Vec<String>, StoreError> {
        let mut connection = self.read(LOOKING).await?;
        if !table.status_indexed {
            let status = &table.write_status;
            let value = text_of(status, &named("t", status));
            let first = table.write_key.first();
            let ends = catalogue::both_ends(&value, &table.write, first, FIRST_ROWS);
            let wanted: Vec<String> = values.iter().map(|value| literal(value)).collect();
            let sql = format!("select distinct v from ({ends}) where v in ({})", wanted.join(", "));
            return texts(&mut connection, &sql).await;
        }
        let mut held = Vec::new();
        for value in values {
            let has = has_status(table, "t", std::slice::from_ref(value));
            if shows(&mut connection, table, &has).await? {
                held.push(value.clone());
            }
        }
        Ok(held)
    }

    async fn survey(&self) -> Result<Vec<Surveyed>, StoreError> {
        let mut connection = self.read(LOOKING).await?;
        let names = "select name from pragma_table_list where schema = 'main' \
                     and type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\' \
                     and not (type = 'table' and name like 'tieout\\_%' escape '\\') \
                     order by name";
        let names = texts(&mut connection, names).await?;
        let mut surveyed = Vec::new();
        for name in &names {
            let Some(relation) = relation(&mut connection, name, false).await? else { continue };
            let sql = definition(&mut connection, name).await?;
            let quoted = literal(name);
            let keys =
                format!("select name from pragma_table_info({quoted}) where pk > 0 order by pk");
            let parents = format!(
                "select \"from\" || char(0) || \"table\" from pragma_foreign_key_list({quoted})"
            );
            let parents = texts(&mut connection, &parents).await?;
            let parents = parents.iter().filter_map(|both| both.split_once('\0'));
            let reads = |other: &&String| {
                *other != name && find_word(&sql, &other.to_ascii_lowercase()).is_some()
            };
            surveyed.push(Surveyed {
                name: name.clone(),
                rows: None,
                primary_key: texts(&mut connection, &keys).await?,
                parents: parents.map(|(a, b)| (a.to_owned(), b.to_owned())).collect(),
                bases: match relation.is_view {
                    true => names.iter().filter(reads).cloned().collect(),
                    false => Vec::new(),
                },
                checks: checks(&sql),
                closed: None,
                relation,
            });
        }
        Ok(surveyed)
    }

    async fn distinct(&self, of: &Surveyed, column: &str) -> Result<Vec<String>, StoreError> {
        let Some(column) = of.relation.column(column) else { return Ok(Vec::new()) };
        let (ident, read) = (&column.ident, &of.relation.name);
        if is_pointer(&column.name) {
            let value = format!("t.{ident}");
            let rows = catalogue::both_ends(&value, read, newest_first(of), FIRST_ROWS);
            let sql = format!("select distinct {} from ({rows}) order by 1", filled("v"));
            return texts(&mut *self.read(LOOKING).await?, &sql).await;
        }
        let text = text_of(column, "v");
        let sql = match of.relation.indexed.contains(&column.name) && !of.relation.is_view {
            true => format!(
                "with recursive seen(v) as (select min(t.{ident}) from {read} as t union all \
                 select (select min(t.{ident}) from {read} as t where t.{ident} > seen.v) \
                 from seen where seen.v is not null) \
                 select {text} from seen where v is not null limit {VALUES_MAX}"
            ),
            false => format!(
                "select distinct {text} from ({}) where v is not null order by 1 \
                 limit {VALUES_MAX}",
                catalogue::both_ends(&format!("t.{ident}"), read, newest_first(of), FIRST_ROWS)
            ),
        };
        texts(&mut *self.read(LOOKING).await?, &sql).await
    }

    async fn named_rows(
        &self,
        table: &SourceTable,
        ids: &[String],
    ) -> Result<Vec<NamedRow>, StoreError> {
        // A text that is no key of several parts would be no JSON either.
        let parts = table.layout.key.len();
        let is_key = |id: &&String| {
            let key = RowKey { table: String::new(), id: (*id).clone() };
            key.parts(parts).is_some()
        };
        let ids: Vec<String> = ids.iter().filter(is_key).cloned().collect();
        let status = &table.write_status;
        let sql = format!(
            "select {}, {}, ifnull({}, 0) from json_each({}) i join {} as t on {}",
            read_key(table, "t"),
            text_of(status, &named("t", status)),
            belongs(table, "t"),
            literal(&json_set(&ids)),
            table.read,
            read_has_key(table, "t", "i.value"),
        );
        let mut connection = self.read(LOOKING).await?;
        let rows = fetch(&mut connection, LOOKING, rendered(&sql)).await?;
        let named = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            let (id, status) = (cells.text(0)?, cells.opt_text(1)?);
            Ok(NamedRow { id, status, belongs: cells.int(2)? != 0 })
        });
        named.collect()
    }

    async fn newest_keys(&self, table: &SourceTable, most: i64) -> Result<Vec<String>, StoreError> {
        let newest = table.sole_key().filter(|_| table.write_is_read);
        let newest = newest.map(|key| format!(" order by {} desc", named("t", key)));
        let sql = format!(
            "select {} from (select * from {} as t{} limit {most}) as t where {}",
            read_key(table, "t"),
            table.read,
            newest.unwrap_or_default(),
            is_named(table, "t"),
        );
        texts(&mut *self.read(LOOKING).await?, &sql).await
    }

    async fn counterparts(
        &self,
        table: &SourceTable,
        most: i64,
    ) -> Result<Vec<Counterpart>, StoreError> {
        let (read, status) = (&table.read, &table.write_status);
        let Some(seen) = table.cells.get(table.layout.status) else { return Ok(Vec::new()) };
        let rows = match table.status_indexed {
            true => read.to_string(),
            false => format!("(select * from {read} limit {FIRST_ROWS})"),
        };
        let pairs = table.cells_at(&table.layout.key).zip(&table.write_key);
        let same: Vec<String> = pairs
            .map(|(read, write)| format!("{} = {}", named("w", write), named("t", read)))
            .collect();
        let there = table.write_key.first().map_or("null".to_owned(), |key| named("w", key));
        let sql = format!(
            "select case when {} then {} end, {}, {there} is not null, {} \
             from (select * from {rows} as t where {} limit {most}) as t left join {} as w on {}",
            is_named(table, "t"),
            read_key(table, "t"),
            text_of(seen, &named("t", seen)),
            text_of(status, &named("w", status)),
            is_processing(table, "t"),
            table.write,
            same.join(" and "),
        );
        let mut connection = self.read(LOOKING).await?;
        let rows = fetch(&mut connection, LOOKING, rendered(&sql)).await?;
        let found = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            let (id, read) = (cells.opt_text(0)?, cells.opt_text(1)?);
            let (there, status) = (cells.int(2)? != 0, cells.opt_text(3)?);
            Ok(Counterpart { id, read, written: there.then_some(status) })
        });
        found.collect()
    }

    async fn hides_by_status(&self, table: &SourceTable) -> Result<bool, StoreError> {
        let ended = table.ended_values();
        if table.write_is_read || ended.is_empty() {
            return Ok(false);
        }
        let mut connection = self.read(LOOKING).await?;
        let keys = newest_ended(&mut connection, table, &ended).await?;
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        if keys.is_empty() || !statuses(&mut connection, table, &keys).await?.is_empty() {
            return Ok(false);
        }
        let is_over = has_status(table, "t", &ended);
        if !shows(&mut connection, table, &is_processing(table, "t")).await?
            || shows(&mut connection, table, &is_over).await?
        {
            return Ok(false);
        }
        let query = sqlx::query(
            "select sql from sqlite_master where type = 'view' and name = ?1 collate nocase",
        );
        let query = query.bind(table.settings.read.clone());
        let rows = fetch(&mut connection, LOOKING, query).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        Ok(chooses_by(&Cells::new(row, LOOKING).text(0)?, &table.write_status.name))
    }

    async fn stuck_ahead(
        &self,
        table: &SourceTable,
        filter: &ClaimFilter,
        after: Instant,
    ) -> Result<Ahead, StoreError> {
        let mut connection = self.read(LOOKING).await?;
        let mut statement = Statement::default();
        let from = stuck_of(&mut connection, table, filter, &mut statement).await?;
        let is_ahead = is_ahead(&mut statement, table, "t", after);
        let sent = table.layout.attempted.and_then(|(index, _)| table.cells.get(index));
        let text = |column: Option<&Column>| {
            column.map_or("null".to_owned(), |column| text_of(column, &named("t", column)))
        };
        let (made, sent) = (text(table.cells.get(table.layout.created.0)), text(sent));
        let sql = format!("select {made}, {sent} from {from} and {is_ahead} limit {AHEAD_MAX}");
        statement.push(&sql);
        let rows = fetch(&mut connection, LOOKING, statement.query()).await?;
        let times = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            Ok((cells.opt_text(0)?, cells.opt_text(1)?))
        });
        Ok(ahead_of(table, &times.collect::<Result<Vec<Times>, StoreError>>()?))
    }

    async fn newest_stuck(&self, table: &SourceTable) -> Result<Option<Instant>, StoreError> {
        let (index, notation) = table.layout.created;
        let Some(created) = table.cells.get(index) else { return Ok(None) };
        let mut connection = self.read(LOOKING).await?;
        let mut statement = Statement::default();
        let filter = ClaimFilter::default();
        let from = stuck_of(&mut connection, table, &filter, &mut statement).await?;
        let column = named("t", created);
        let text = text_of(created, &column);
        let sql = format!("select {text} from {from} and {column} is not null ");
        statement.push(&sql);
        statement.push(&format!("order by {column} desc limit 1"));
        let rows = fetch(&mut connection, LOOKING, statement.query()).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(notation.read(&Cells::new(row, LOOKING).text(0)?).ok().flatten())
    }

    async fn left_out(&self, table: &SourceTable) -> Result<LeftOut, StoreError> {
        if table.settings.filter.is_empty() {
            return Ok(LeftOut::default());
        }
        let mut connection = self.read(LOOKING).await?;
        let mut left = left_out_of(table, &tried(&mut connection, table).await?);
        let stuck = left.stuck;
        if left.by.iter().any(|barrier| barrier.rows == stuck) {
            let indexed = indexed(&mut connection, table).await?;
            for barrier in left.by.iter_mut().filter(|barrier| barrier.rows == stuck) {
                let filter = &barrier.filter;
                barrier.passing = passing(&mut connection, table, filter, &indexed).await?;
            }
        }
        Ok(left)
    }

    async fn knows_a_row(&self, table: &SourceTable) -> Result<bool, StoreError> {
        let sql = format!(
            "select exists (select 1 from tieout_checks c where c.table_name = {})",
            literal(&table.settings.name)
        );
        let mut connection = self.read(LOOKING).await?;
        let rows = fetch(&mut connection, LOOKING, rendered(&sql)).await?;
        rows.first().map_or(Ok(false), |row| Ok(Cells::new(row, LOOKING).int(0)? != 0))
    }

    async fn tallied(&self, of: &Surveyed, column: &str) -> Result<Vec<(String, i64)>, StoreError> {
        let Some(column) = of.relation.column(column) else { return Ok(Vec::new()) };
        let text = text_of(column, "v");
        let sql = format!(
            "select {text}, count(*) from (select t.{} as v from {} as t limit {FIRST_ROWS}) \
             where v is not null group by 1 order by 2 desc, 1 limit {VALUES_MAX}",
            column.ident, of.relation.name
        );
        let mut connection = self.read(LOOKING).await?;
        let rows = fetch(&mut connection, LOOKING, rendered(&sql)).await?;
        let tallied = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            Ok((cells.text(0)?, cells.int(1)?))
        });
        tallied.collect()
    }

    async fn beside(&self, of: &Surveyed, asked: &Beside) -> Result<Vec<Tally>, StoreError> {
        let column = |name: &str| of.relation.column(name);
        let (Some(value), Some(status)) = (column(&asked.column), column(&asked.status)) else {
            return Ok(Vec::new());
        };
        let order = newest_first(of).map(|key| format!(" order by t.{} desc", key.ident));
        let shown = match asked.by {
            CountedBy::NullOrEmpty => filled_or_null("nullif(v, '')"),
            CountedBy::Null => filled_or_null("v"),
            CountedBy::Value => text_of(value, "v"),
        };
        let sql = format!(
            "select {shown}, {}, count(*) from (select t.{} as v, t.{} as w from {} as t{} \
             limit {FIRST_ROWS}) group by 1, 2 order by 3 desc, 1, 2 limit {VALUES_MAX}",
            text_of(status, "w"),
            value.ident,
            status.ident,
            of.relation.name,
            order.unwrap_or_default()
        );
        let mut connection = self.read(LOOKING).await?;
        let rows = fetch(&mut connection, LOOKING, rendered(&sql)).await?;
        let tallies = rows.iter().map(|row| {
            let cells = Cells::new(row, LOOKING);
            let (value, status) = (cells.opt_text(0)?, cells.opt_text(1)?);
            Ok(Tally { value, status, rows: cells.int(2)? })
        });
        tallies.collect()
    }

    async fn examples(&self, of: &Surveyed, column: &str) -> Result<Vec<String>, StoreError> {
        let Some(column) = of.relation.column(column) else { return Ok(Vec::new()) };
        let text = text_of(column, "v");
        let sql = format!(
            "select {text} from (select t.{} as v from {} as t limit 1000) \
             where v is not null limit {EXAMPLES}",
            column.ident, of.relation.name
        );
        texts(&mut *self.read(LOOKING).await?, &sql).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_read_out_of_the_statement() {
        let sql = "create table t (a text check (a in ('x)', 'y')), checked int, \
                   constraint c CHECK ((b > 0) or (c is null)))";
        assert_eq!(checks(sql), ["a in ('x)', 'y')", "(b > 0) or (c is null)"]);
        assert!(checks("create table t (check_no int)").is_empty());
    }
}
