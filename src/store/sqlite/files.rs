//! Bringing settlement files in: one transaction a file, its lines many rows a statement.

use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;
use tokio::sync::mpsc::Receiver;

use crate::model::reason::Reason;
use crate::model::settlement::Problem;
use crate::model::time::{Instant, to_text};
use crate::store::error::StoreError;
use crate::store::files::{
    Came, Ended, FileEnd, FileHead, FileSums, Held, NewLine, NewStatement, OPENED, OPENED_AS,
    PUT_FILE_CASE, Part, PartsEnd, Sighting, StatementClose, TIES_NOW, big, case_of, clean,
    date_text, opened_problems, opened_text, problems_json, quarantine_text, zones_text,
};
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::sql::{Value, execute, execute_rows, fetch};
use crate::store::sqlite::{alike, pages, runs, told};
use crate::store::told::{overlap_problem, told_problem};

pub(super) const DOING: &str = "bringing the file in";

const LINE_COLUMNS: &str = "file_id, position, statement, entry, file_line, account, kind, \
     direction, currency, amount_minor, gross_currency, gross_minor, fee_currency, fee_minor, \
     net_currency, net_minor, status, decides, itemised, tag, psp_reference, original, \
     return_reason, type_code, bank_reference, batch, booked_on, value_on, refs, raw, state, \
     further, order_ref";

pub(super) async fn put(
    connection: &mut SqliteConnection,
    run_id: &str,
    head: &FileHead,
    first: Part,
    parts: &mut Receiver<Part>,
    now: Instant,
) -> Result<FileEnd, StoreError> {
    if !runs::is_running(connection, run_id).await? {
        return Ok(FileEnd::Dropped);
    }
    let (id, came) = take_in(connection, run_id, head, now).await?;
    note_name(connection, run_id, &head.sighting, id, now).await?;
    if head.is_unwrapped() {
        note_opened(connection, run_id, head, id, now).await?;
    }
    if came == Came::Known {
        return Ok(FileEnd::Known { id });
    }
    execute(connection, DOING, sqlx::query("savepoint tieout_lines")).await?;
    let mut loader = Loader::new(connection, id, &head.sighting.name);
    let end = loader.read(first, parts).await?;
    let (lines, held) = (loader.lines, loader.held);
    let overlaps = std::mem::take(&mut loader.overlaps);
    let case = |reason, text| FileCase { id, account: &head.account, reason, text };
    match end {
        PartsEnd::Dropped => Ok(FileEnd::Dropped),
        PartsEnd::Whole(mut sums) => {
            if lines != sums.lines {
                let problem = format!("{} lines were read and {lines} came", sums.lines);
                return Err(StoreError::Unexpected { doing: DOING, problem });
            }
            overlaps.into_iter().for_each(|problem| sums.note(problem));
            let told = told::mark(connection, id).await?;
            if told > 0 {
                sums.note(told_problem(told));
            }
            let clashes = told::clashes(connection, id).await?;
            if !clashes.is_empty() {
                clashes.into_iter().for_each(|problem| sums.note(problem));
                return set_aside(connection, run_id, (id, head), sums, now).await;
            }
            sum_up(connection, id, "loaded", &sums).await?;
            if let Some((reason, text)) = case_of(&head.sighting.name, &sums, held) {
                put_case(connection, run_id, &case(reason, text), now).await?;
            } else if came == Came::Again {
                close_case(connection, run_id, id, TIES_NOW, now).await?;
            }
            Ok(FileEnd::Loaded { id, held })
        }
        PartsEnd::Quarantine(sums) => set_aside(connection, run_id, (id, head), sums, now).await,
    }
}

/// Keeps what is wrong with a file, and none of its lines.
async fn set_aside(
    connection: &mut SqliteConnection,
    run_id: &str,
    (id, head): (i64, &FileHead),
    sums: FileSums,
    now: Instant,
) -> Result<FileEnd, StoreError> {
    execute(connection, DOING, sqlx::query("rollback to tieout_lines")).await?;
    let sums = FileSums { lines: 0, ..sums };
    sum_up(connection, id, "quarantined", &sums).await?;
    let text = quarantine_text(&head.sighting.name, &sums);
    let case = FileCase { id, account: &head.account, reason: Reason::FileQuarantined, text };
    put_case(connection, run_id, &case, now).await?;
    Ok(FileEnd::Quarantined { id })
}

/// The file's number, and how its bytes stand.
async fn take_in(
    connection: &mut SqliteConnection,
    run_id: &str,
    head: &FileHead,
    now: Instant,
) -> Result<(i64, Came), StoreError> {
    if head.is_unwrapped() {
        for shut in head.shut_hashes() {
            let query = sqlx::query(OPENED).bind(shut.to_owned()).bind(head.sha256.clone());
            let query = query.bind(head.sighting.raw_sha256.clone());
            execute(connection, DOING, query).await?;
        }
    }
    let again = sqlx::query(
        "update tieout_files set account = ?2, format = ?3, version = ?4, \
         spooled_as = coalesce(?5, spooled_as), tried_run = ?6, said_encoding = ?7 \
         where sha256 = ?1 and state = 'quarantined' and changed_at is null returning id",
    )
    .bind(head.sha256.clone())
    .bind(head.account.clone())
    .bind(head.format.clone())
    .bind(clean(&head.version).into_owned())
    .bind(head.spooled_as.clone())
    .bind(run_id.to_owned())
    .bind(head.encoding.clone().unwrap_or_default());
    if let Some(row) = fetch(connection, DOING, again).await?.first() {
        return Ok((Cells::new(row, DOING).int(0)?, Came::Again));
    }
    let known = sqlx::query("select id from tieout_files where sha256 = ?1");
    let known = fetch(connection, DOING, known.bind(head.sha256.clone())).await?;
    if let Some(row) = known.first() {
        return Ok((Cells::new(row, DOING).int(0)?, Came::Known));
    }
    let Sighting { source, name, raw_sha256, raw_bytes, modified_at } = &head.sighting;
    let query = sqlx::query(
        "insert into tieout_files (sha256, source, name, account, raw_sha256, raw_bytes, \
         modified_at, spooled_as, format, version, state, received_at, run_id, said_encoding) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'loaded', ?11, ?12, ?13) returning id",
    )
    .bind(head.sha256.clone())
    .bind(source.clone())
    .bind(clean(name).into_owned())
    .bind(head.account.clone())
    .bind(raw_sha256.clone())
    .bind(big(*raw_bytes))
    .bind(modified_at.map(to_text))
    .bind(head.spooled_as.clone())
    .bind(head.format.clone())
    .bind(clean(&head.version).into_owned())
    .bind(to_text(now))
    .bind(run_id.to_owned())
    .bind(head.encoding.clone().unwrap_or_default());
    let rows = fetch(connection, DOING, query).await?;
    let row = rows.first().ok_or_else(|| StoreError::Unexpected {
        doing: DOING,
        problem: "the file has no number".to_owned(),
    })?;
    Ok((Cells::new(row, DOING).int(0)?, Came::New))
}

/// Ends what is said of a file that nothing opened, once what is in it is another file.
async fn note_opened(
    connection: &mut SqliteConnection,
    run_id: &str,
    head: &FileHead,
    id: i64,
    now: Instant,
) -> Result<(), StoreError> {
    for shut in head.shut_hashes() {
        let query = sqlx::query(OPENED_AS)
            .bind(shut.to_owned())
            .bind(id)
            .bind(opened_problems(id))
            .bind(head.sighting.raw_sha256.clone());
        if let Some(row) = fetch(connection, DOING, query).await?.first() {
            let kept = Cells::new(row, DOING).int(0)?;
            close_case(connection, run_id, kept, &opened_text(id), now).await?;
        }
    }
    Ok(())
}

/// Notes a name. What a listing tells of it now is what the next listing is held against.
pub(super) async fn note_name(
    connection: &mut SqliteConnection,
    run_id: &str,
    sighting: &Sighting,
    id: i64,
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "insert into tieout_file_names (source, name, raw_sha256, raw_bytes, modified_at, \
         file_id, first_seen_at, run_id) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
         on conflict (source, name, raw_sha256) do update \
         set modified_at = excluded.modified_at",
    )
    .bind(sighting.source.clone())
    .bind(clean(&sighting.name).into_owned())
    .bind(sighting.raw_sha256.clone())
    .bind(big(sighting.raw_bytes))
    .bind(sighting.modified_at.map(to_text))
    .bind(id)
    .bind(to_text(now))
    .bind(run_id.to_owned());
    execute(connection, DOING, query).await.map(|_| ())
}

async fn sum_up(
    connection: &mut SqliteConnection,
    id: i64,
    state: &'static str,
    sums: &FileSums,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_files set state = ?2, statements = ?3, entries = ?4, lines = ?5, \
         totals = ?6, problems = ?7, problems_total = ?8, zones = ?9, \
         spooled_as = case when ?2 = 'quarantined' then spooled_as end where id = ?1",
    )
    .bind(id)
    .bind(state)
    .bind(big(sums.statements))
    .bind(big(sums.entries))
    .bind(big(sums.lines))
    .bind(sums.totals.clone())
    .bind(problems_json(&sums.problems))
    .bind(big(sums.problems_total))
    .bind(zones_text(&sums.zones));
    execute(connection, DOING, query).await.map(|_| ())
}

/// A case whose subject is a file.
pub(super) struct FileCase<'a> {
    pub(super) id: i64,
    pub(super) account: &'a str,
    pub(super) reason: Reason,
    pub(super) text: String,
}

/// Opens or refreshes the file's case.
pub(super) async fn put_case(
    connection: &mut SqliteConnection,
    run_id: &str,
    case: &FileCase<'_>,
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(PUT_FILE_CASE)
        .bind(case.id.to_string())
        .bind(case.reason.as_str())
        .bind(clean(&case.text).into_owned())
        .bind(case.account.to_owned())
        .bind(to_text(now))
        .bind(run_id.to_owned());
    execute(connection, DOING, query).await.map(|_| ())
}

/// Closes the file's open case, if there is one.
pub(super) async fn close_case(
    connection: &mut SqliteConnection,
    run_id: &str,
    id: i64,
    resolution: &str,
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_cases set state = 'closed', closed_at = ?2, closed_run = ?3, \
         resolution = ?4 where state = 'open' and subject_kind = 'file' and table_name = '' \
         and subject = ?1",
    )
    .bind(id.to_string())
    .bind(to_text(now))
    .bind(run_id.to_owned())
    .bind(resolution.to_owned());
    execute(connection, DOING, query).await.map(|_| ())
}

/// A file's parts on their way into the tables.
pub(super) struct Loader<'a> {
    connection: &'a mut SqliteConnection,
    id: i64,
    name: &'a str,
    open: Option<NewStatement>,
    /// Lines written.
    pub(super) lines: u64,
    /// Statements that are held.
    pub(super) held: u64,
    /// What is to be said of days that other files told.
    pub(super) overlaps: Vec<Problem>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(connection: &'a mut SqliteConnection, id: i64, name: &'a str) -> Self {
        Self { connection, id, name, open: None, lines: 0, held: 0, overlaps: Vec::new() }
    }

    /// Reads all parts and writes what they bring.
    pub(super) async fn read(
        &mut self,
        first: Part,
        parts: &mut Receiver<Part>,
    ) -> Result<PartsEnd, StoreError> {
        let mut next = Some(first);
        while let Some(part) = next {
            match part {
                Part::Statement(head) => self.open = Some(*head),
                Part::Lines(lines) => self.write(&lines).await?,
                Part::StatementEnd(close) => self.end(*close).await?,
                Part::Whole(sums) => return Ok(PartsEnd::Whole(*sums)),
                Part::Quarantine(sums) => return Ok(PartsEnd::Quarantine(*sums)),
            }
            next = parts.recv().await;
        }
        Ok(PartsEnd::Dropped)
    }

    fn out_of_order(&self, what: &str) -> StoreError {
        let problem = format!("{}: {what} came out of its order", self.name);
        StoreError::Unexpected { doing: DOING, problem }
    }

    async fn end(&mut self, close: StatementClose) -> Result<(), StoreError> {
        let head = self.open.take().filter(|head| head.number == close.number);
        let head = head.ok_or_else(|| self.out_of_order("the end of a statement"))?;
        let ended = Ended { head, close };
        let overlaps = &mut self.overlaps;
        let is_held = put_statement(self.connection, self.id, &ended, overlaps).await?;
        self.held = self.held.saturating_add(u64::from(is_held));
        Ok(())
    }

    async fn write(&mut self, lines: &[NewLine]) -> Result<(), StoreError> {
        let Some(statement) = &self.open else { return Err(self.out_of_order("a line")) };
        let account: Arc<str> = Arc::from(statement.account.as_str());
        let rows = lines.iter().map(|line| values(self.id, &account, line));
        let sql = |rows: &str| format!("insert into tieout_lines ({LINE_COLUMNS}) values {rows}");
        execute_rows(self.connection, DOING, rows, sql).await?;
        let texts = lines.iter().flat_map(|line| {
            line.further_texts().into_iter().map(|text| {
                vec![
                    Value::from(&account),
                    Value::from(text.as_ref()),
                    Value::from(self.id),
                    Value::from(big(line.position)),
                ]
            })
        });
        let sql = |rows: &str| {
            format!("insert into tieout_line_tags (account, text, file_id, position) values {rows}")
        };
        execute_rows(self.connection, DOING, texts, sql).await?;
        self.lines = self.lines.saturating_add(u64::try_from(lines.len()).unwrap_or(u64::MAX));
        Ok(())
    }
}

/// The values of [`LINE_COLUMNS`].
fn values(file: i64, account: &Arc<str>, line: &NewLine) -> Vec<Value> {
    let text = |text: Option<&String>| Value::from(text.map(|text| clean(text)).as_deref());
    let code = |money: Option<crate::model::money::Money>| {
        Value::from(money.map(|money| money.currency.code().to_owned()))
    };
    let minor =
        |money: Option<crate::model::money::Money>| Value::from(money.map(|money| money.minor));
    vec![
        Value::from(file),
        Value::from(big(line.position)),
        Value::from(big(line.statement)),
        Value::from(big(line.entry)),
        Value::from(big(line.file_line)),
        Value::from(account),
        Value::from(line.kind.as_str()),
        Value::from(line.direction.as_str()),
        Value::from(line.currency.code()),
        Value::from(line.minor),
        code(line.gross),
        minor(line.gross),
        code(line.fee),
        minor(line.fee),
        code(line.net),
        minor(line.net),
        Value::from(line.status.as_str()),
        Value::from(i64::from(line.decides)),
        Value::from(i64::from(line.itemised)),
        text(line.tags.first()),
        text(line.psp_reference.as_ref()),
        text(line.original.as_ref()),
        text(line.return_reason.as_ref()),
        text(line.type_code.as_ref()),
        text(line.bank_reference.as_ref()),
        text(line.batch.as_ref()),
        Value::from(line.booked_on.map(date_text)),
        Value::from(line.value_on.map(date_text)),
        Value::from(clean(&line.refs_json()).as_ref()),
        Value::from(clean(&line.raw).as_ref()),
        Value::from(line.state().as_str()),
        Value::from(line.further_json()),
        text(line.order.as_ref()),
    ]
}

/// Writes a statement, live unless it must be held; says whether it is held.
async fn put_statement(
    connection: &mut SqliteConnection,
    id: i64,
    ended: &Ended,
    problems: &mut Vec<Problem>,
) -> Result<bool, StoreError> {
    let ended = &alike::reworded(connection, id, ended).await?;
    let overlaps = told::overlapped(connection, id, ended).await?;
    let may_count = ended.head.held.is_none() && overlaps.is_empty();
    if may_count && insert_statement(connection, id, ended, None).await? {
        return Ok(false);
    }
    // Its name is taken: by an earlier issue of it, or by one that it goes on from.
    let ended = &pages::named(connection, id, ended).await?;
    if may_count && insert_statement(connection, id, ended, None).await? {
        return Ok(false);
    }
    let held = ended.head.held.unwrap_or(Held::Corrected);
    let rival = match overlaps.first() {
        Some(overlap) => Some(overlap.rival),
        None => live_rival(connection, ended).await?,
    };
    if !overlaps.is_empty() {
        problems.push(overlap_problem(&overlaps));
    }
    insert_statement(connection, id, ended, Some((held, rival))).await?;
    let query = sqlx::query(
        "update tieout_lines set decides = 0, state = 'excluded', reason = ?3 \
         where file_id = ?1 and statement = ?2",
    )
    .bind(id)
    .bind(big(ended.head.number))
    .bind(Reason::StatementCorrected.as_str());
    execute(connection, DOING, query).await?;
    Ok(true)
}

/// False: the same statement is live already.
async fn insert_statement(
    connection: &mut SqliteConnection,
    id: i64,
    ended: &Ended,
    held: Option<(Held, Option<(i64, i64)>)>,
) -> Result<bool, StoreError> {
    let Ended { head, close } = ended;
    let rival = held.and_then(|(_, rival)| rival);
    let query = sqlx::query(
        "insert into tieout_statements (file_id, number, account, bank_account, currency, \
         statement_id, sequence, from_on, to_on, finality, covers_attempts, opening_minor, \
         closing_minor, entries, lines, ties, state, held_for, rival_file, rival_number) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
         case when ?17 is null then 'live' else 'held' end, ?17, ?18, ?19) \
         on conflict do nothing",
    )
    .bind(id)
    .bind(big(head.number))
    .bind(head.account.clone())
    .bind(clean(&head.bank_account).into_owned())
    .bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default())
    .bind(clean(&head.statement_id).into_owned())
    .bind(clean(&head.sequence).into_owned())
    .bind(close.from.map(date_text))
    .bind(close.to.map(date_text))
    .bind(head.finality.as_str())
    .bind(i64::from(head.covers_attempts))
    .bind(close.opening_minor)
    .bind(close.closing_minor)
    .bind(big(close.entries))
    .bind(big(close.lines))
    .bind(close.ties.map(i64::from))
    .bind(held.map(|(held, _)| held.as_str()))
    .bind(rival.map(|(file, _)| file))
    .bind(rival.map(|(_, number)| number));
    Ok(execute(connection, DOING, query).await? > 0)
}

/// The live statement that this one is another issue of.
async fn live_rival(
    connection: &mut SqliteConnection,
    ended: &Ended,
) -> Result<Option<(i64, i64)>, StoreError> {
    let Ended { head, close } = ended;
    let query = sqlx::query(
        "select file_id, number from tieout_statements where state = 'live' \
         and (statement_id <> '' or sequence <> '') and account = ?1 and bank_account = ?2 \
         and currency = ?3 and statement_id = ?4 and sequence = ?5 \
         and coalesce(from_on, '') = coalesce(?6, '') and coalesce(to_on, '') = coalesce(?7, '') \
         and finality = ?8",
    )
    .bind(head.account.clone())
    .bind(clean(&head.bank_account).into_owned())
    .bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default())
    .bind(clean(&head.statement_id).into_owned())
    .bind(clean(&head.sequence).into_owned())
    .bind(close.from.map(date_text))
    .bind(close.to.map(date_text))
    .bind(head.finality.as_str());
    let rows = fetch(connection, DOING, query).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let cells = Cells::new(row, DOING);
    Ok(Some((cells.int(0)?, cells.int(1)?)))
}
