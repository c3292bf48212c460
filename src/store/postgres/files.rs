//! Bringing settlement files in: one transaction a file, its lines by COPY.
//!
//! A COPY holds the connection to its end, so that what else is to be written waits for it: the
//! further texts of lines and the statements are kept meanwhile, up to a limit each.

use sqlx::postgres::{PgConnection, PgPool};
use tokio::sync::mpsc::Receiver;

use crate::model::reason::Reason;
use crate::model::settlement::Problem;
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::files::{
    Came, Ended, FileEnd, FileHead, FileSums, Held, NewLine, NewStatement, OPENED, OPENED_AS,
    PUT_FILE_CASE, Part, PartsEnd, STATEMENTS_KEPT, Sighting, StatementClose, TIES_NOW, big,
    case_of, clean, opened_problems, opened_text, problems_json, quarantine_text, zones_text,
};
use crate::store::postgres::copy::CopyRow;
use crate::store::postgres::errors::{failed, unexpected};
use crate::store::postgres::transactions::begin;
use crate::store::postgres::{alike, pages, told};
use crate::store::told::{overlap_problem, told_problem};

pub(super) const DOING: &str = "bringing the file in";

/// How much text of further references is kept before it is written.
const KEPT: usize = 4 << 20;

/// How many lines one COPY takes at most: what the server refuses is found out at its end.
const COPIED: u64 = 200_000;

const COPY_LINES: &str = "copy tieout_lines (file_id, position, statement, entry, file_line, \
     account, kind, direction, currency, amount_minor, gross_currency, gross_minor, fee_currency, \
     fee_minor, net_currency, net_minor, status, decides, itemised, tag, psp_reference, original, \
     return_reason, type_code, bank_reference, batch, booked_on, value_on, refs, raw, state, \
     further, order_ref) from stdin";

const COPY_TEXTS: &str = "copy tieout_line_tags (account, text, file_id, position) from stdin";

pub(super) async fn put(
    pool: &PgPool,
    run_id: &str,
    head: &FileHead,
    mut parts: Receiver<Part>,
    now: Instant,
) -> Result<FileEnd, StoreError> {
    // The first part is waited for outside of the transaction, which must not idle.
    let Some(first) = parts.recv().await else { return Ok(FileEnd::Dropped) };
    let mut tx = begin(pool).await.map_err(failed(DOING))?;
    let end = put_in(&mut tx, run_id, head, first, &mut parts, now).await?;
    match end {
        FileEnd::Dropped => tx.rollback().await.map_err(failed(DOING))?,
        _kept => tx.commit().await.map_err(failed(DOING))?,
    }
    Ok(end)
}

async fn put_in(
    connection: &mut PgConnection,
    run_id: &str,
    head: &FileHead,
    first: Part,
    parts: &mut Receiver<Part>,
    now: Instant,
) -> Result<FileEnd, StoreError> {
    be_patient(connection).await?;
    if !is_open(connection, run_id).await? {
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
    run(connection, "savepoint tieout_lines").await?;
    let mut loader = Loader::new(connection, id, &head.sighting.name);
    let end = loader.read(Some(first), parts).await?;
    let (lines, held) = (loader.lines(), loader.held);
    let overlaps = std::mem::take(&mut loader.overlaps);
    let case = |reason, text| FileCase { id, account: &head.account, reason, text };
    match end {
        PartsEnd::Dropped => Ok(FileEnd::Dropped),
        PartsEnd::Whole(mut sums) => {
            if lines != sums.lines {
                let problem = format!("{} lines were read and {lines} came", sums.lines);
                return Err(unexpected(DOING, problem));
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
    connection: &mut PgConnection,
    run_id: &str,
    (id, head): (i64, &FileHead),
    sums: FileSums,
    now: Instant,
) -> Result<FileEnd, StoreError> {
    run(connection, "rollback to savepoint tieout_lines").await?;
    let sums = FileSums { lines: 0, ..sums };
    sum_up(connection, id, "quarantined", &sums).await?;
    let text = quarantine_text(&head.sighting.name, &sums);
    let case = FileCase { id, account: &head.account, reason: Reason::FileQuarantined, text };
    put_case(connection, run_id, &case, now).await?;
    Ok(FileEnd::Quarantined { id })
}

/// A file of ten million lines takes its time, and so does the other one of the same bytes.
pub(super) async fn be_patient(connection: &mut PgConnection) -> Result<(), StoreError> {
    run(connection, "set local statement_timeout = 0").await?;
    run(connection, "set local lock_timeout = '10min'").await
}

/// Whether the run is under way.
pub(super) async fn is_open(
    connection: &mut PgConnection,
    run_id: &str,
) -> Result<bool, StoreError> {
    sqlx::query_scalar(
        "with run as materialized (select from tieout_runs where id = $1 and state = 'running' \
         for key share) select exists (select from run)",
    )
    .bind(run_id)
    .fetch_one(connection)
    .await
    .map_err(failed(DOING))
}

async fn run(connection: &mut PgConnection, sql: &'static str) -> Result<(), StoreError> {
    sqlx::query(sql).execute(connection).await.map(|_| ()).map_err(failed(DOING))
}

/// The file's number, and how its bytes stand. Whoever brings the same at once is waited for.
async fn take_in(
    connection: &mut PgConnection,
    run_id: &str,
    head: &FileHead,
    now: Instant,
) -> Result<(i64, Came), StoreError> {
    if head.is_unwrapped() {
        note_opened_itself(connection, head).await?;
    }
    let Sighting { source, name, raw_sha256, raw_bytes, modified_at } = &head.sighting;
    let new: Option<i64> = sqlx::query_scalar(
        "insert into tieout_files (sha256, source, name, account, raw_sha256, raw_bytes, \
         modified_at, spooled_as, format, version, state, received_at, run_id, \
         said_encoding) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'loaded', $11, $12, $13) \
         on conflict (sha256) do nothing returning id",
    )
    .bind(&head.sha256)
    .bind(source)
    .bind(clean(name))
    .bind(&head.account)
    .bind(raw_sha256)
    .bind(big(*raw_bytes))
    .bind(modified_at)
    .bind(&head.spooled_as)
    .bind(&head.format)
    .bind(clean(&head.version))
    .bind(now)
    .bind(run_id)
    .bind(head.encoding.as_deref().unwrap_or_default())
    .fetch_optional(&mut *connection)
    .await
    .map_err(failed(DOING))?;
    if let Some(id) = new {
        return Ok((id, Came::New));
    }
    let again: Option<i64> = sqlx::query_scalar(
        "update tieout_files set account = $2, format = $3, version = $4, \
         spooled_as = coalesce($5, spooled_as), tried_run = $6, said_encoding = $7 \
         where sha256 = $1 and state = 'quarantined' and changed_at is null returning id",
    )
    .bind(&head.sha256)
    .bind(&head.account)
    .bind(&head.format)
    .bind(clean(&head.version))
    .bind(&head.spooled_as)
    .bind(run_id)
    .bind(head.encoding.as_deref().unwrap_or_default())
    .fetch_optional(&mut *connection)
    .await
    .map_err(failed(DOING))?;
    if let Some(id) = again {
        return Ok((id, Came::Again));
    }
    let known = sqlx::query_scalar("select id from tieout_files where sha256 = $1")
        .bind(&head.sha256)
        .fetch_one(connection)
        .await
        .map_err(failed(DOING))?;
    Ok((known, Came::Known))
}

/// A file that nothing opened, and that is opened now, becomes what is in it.
async fn note_opened_itself(
    connection: &mut PgConnection,
    head: &FileHead,
) -> Result<(), StoreError> {
    for shut in head.shut_hashes() {
        let query = sqlx::query(OPENED).bind(shut).bind(&head.sha256);
        let query = query.bind(&head.sighting.raw_sha256);
        query.execute(&mut *connection).await.map_err(failed(DOING))?;
    }
    Ok(())
}

/// Ends what is said of a file that nothing opened, once what is in it is another file.
async fn note_opened(
    connection: &mut PgConnection,
    run_id: &str,
    head: &FileHead,
    id: i64,
    now: Instant,
) -> Result<(), StoreError> {
    for shut in head.shut_hashes() {
        let kept: Option<i64> = sqlx::query_scalar(OPENED_AS)
            .bind(shut)
            .bind(id)
            .bind(opened_problems(id))
            .bind(&head.sighting.raw_sha256)
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed(DOING))?;
        if let Some(kept) = kept {
            close_case(connection, run_id, kept, &opened_text(id), now).await?;
        }
    }
    Ok(())
}

/// Notes a name. What a listing tells of it now is what the next listing is held against.
pub(super) async fn note_name(
    connection: &mut PgConnection,
    run_id: &str,
    sighting: &Sighting,
    id: i64,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into tieout_file_names (source, name, raw_sha256, raw_bytes, modified_at, \
         file_id, first_seen_at, run_id) values ($1, $2, $3, $4, $5, $6, $7, $8) \
         on conflict (source, name, raw_sha256) do update \
         set modified_at = excluded.modified_at",
    )
    .bind(&sighting.source)
    .bind(clean(&sighting.name))
    .bind(&sighting.raw_sha256)
    .bind(big(sighting.raw_bytes))
    .bind(sighting.modified_at)
    .bind(id)
    .bind(now)
    .bind(run_id)
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(failed(DOING))
}

async fn sum_up(
    connection: &mut PgConnection,
    id: i64,
    state: &'static str,
    sums: &FileSums,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_files set state = $2, statements = $3, entries = $4, lines = $5, \
         totals = $6, problems = $7, problems_total = $8, zones = $9, \
         spooled_as = case when $2 = 'quarantined' then spooled_as end where id = $1",
    )
    .bind(id)
    .bind(state)
    .bind(big(sums.statements))
    .bind(big(sums.entries))
    .bind(big(sums.lines))
    .bind(&sums.totals)
    .bind(problems_json(&sums.problems))
    .bind(big(sums.problems_total))
    .bind(zones_text(&sums.zones))
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(failed(DOING))
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
    connection: &mut PgConnection,
    run_id: &str,
    case: &FileCase<'_>,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(PUT_FILE_CASE)
        .bind(case.id.to_string())
        .bind(case.reason.as_str())
        .bind(clean(&case.text))
        .bind(case.account)
        .bind(now)
        .bind(run_id)
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(failed(DOING))
}

/// Closes the file's open case, if there is one.
pub(super) async fn close_case(
    connection: &mut PgConnection,
    run_id: &str,
    id: i64,
    resolution: &str,
    now: Instant,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tieout_cases set state = 'closed', closed_at = $2, closed_run = $3, \
         resolution = $4 where state = 'open' and subject_kind = 'file' and table_name = '' \
         and subject = $1",
    )
    .bind(id.to_string())
    .bind(now)
    .bind(run_id)
    .bind(resolution)
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(failed(DOING))
}

/// A file's parts on their way into the tables.
pub(super) struct Loader<'a> {
    connection: &'a mut PgConnection,
    kept: Kept<'a>,
    /// Statements that are held.
    pub(super) held: u64,
    /// What is to be said of days that other files told.
    pub(super) overlaps: Vec<Problem>,
}

/// What waits for the COPY of lines to end.
struct Kept<'a> {
    id: i64,
    name: &'a str,
    open: Option<NewStatement>,
    ended: Vec<Ended>,
    texts: String,
    lines: u64,
}

impl<'a> Loader<'a> {
    pub(super) fn new(connection: &'a mut PgConnection, id: i64, name: &'a str) -> Self {
        let (open, ended, texts) = (None, Vec::new(), String::new());
        let kept = Kept { id, name, open, ended, texts, lines: 0 };
        Self { connection, kept, held: 0, overlaps: Vec::new() }
    }

    /// How many lines were written.
    pub(super) fn lines(&self) -> u64 {
        self.kept.lines
    }

    /// Reads all parts and writes what they bring.
    pub(super) async fn read(
        &mut self,
        first: Option<Part>,
        parts: &mut Receiver<Part>,
    ) -> Result<PartsEnd, StoreError> {
        let mut next = first;
        if next.is_none() {
            next = parts.recv().await;
        }
        while let Some(part) = next {
            next = match part {
                Part::Lines(lines) => self.copy(&lines, parts).await?,
                Part::Whole(sums) => {
                    self.write_kept().await?;
                    return Ok(PartsEnd::Whole(*sums));
                }
                Part::Quarantine(sums) => return Ok(PartsEnd::Quarantine(*sums)),
                Part::Statement(head) => {
                    self.kept.open = Some(*head);
                    parts.recv().await
                }
                Part::StatementEnd(close) => {
                    self.kept.end(*close)?;
                    if self.kept.is_full() {
                        self.write_kept().await?;
                    }
                    parts.recv().await
                }
            };
        }
        Ok(PartsEnd::Dropped)
    }

    /// Writes lines until something else is due; that part comes back.
    async fn copy(
        &mut self,
        lines: &[NewLine],
        parts: &mut Receiver<Part>,
    ) -> Result<Option<Part>, StoreError> {
        let Self { connection, kept, .. } = self;
        let upto = kept.lines.saturating_add(COPIED);
        let mut buffer = String::new();
        kept.encode(&mut buffer, lines)?;
        let mut copy = connection.copy_in_raw(COPY_LINES).await.map_err(failed(DOING))?;
        copy.send(buffer.as_bytes()).await.map_err(failed(DOING))?;
        let next = loop {
            match parts.recv().await {
                _part @ None => break Ok(None),
                Some(part) if kept.is_full() || kept.lines >= upto => break Ok(Some(part)),
                Some(Part::Statement(head)) => kept.open = Some(*head),
                Some(Part::StatementEnd(close)) => {
                    if let Err(error) = kept.end(*close) {
                        break Err(error);
                    }
                }
                Some(Part::Lines(lines)) => {
                    buffer.clear();
                    if let Err(error) = kept.encode(&mut buffer, &lines) {
                        break Err(error);
                    }
                    copy.send(buffer.as_bytes()).await.map_err(failed(DOING))?;
                }
                Some(end @ (Part::Whole(_) | Part::Quarantine(_))) => break Ok(Some(end)),
            }
        };
        copy.finish().await.map_err(failed(DOING))?;
        let next = next?;
        if next.is_some() {
            self.write_kept().await?;
        }
        Ok(next)
    }

    /// Writes what waited for the lines.
    async fn write_kept(&mut self) -> Result<(), StoreError> {
        if !self.kept.texts.is_empty() {
            let mut copy = self.connection.copy_in_raw(COPY_TEXTS).await.map_err(failed(DOING))?;
            copy.send(self.kept.texts.as_bytes()).await.map_err(failed(DOING))?;
            copy.finish().await.map_err(failed(DOING))?;
            self.kept.texts.clear();
        }
        for ended in std::mem::take(&mut self.kept.ended) {
            let overlaps = &mut self.overlaps;
            let is_held = put_statement(self.connection, self.kept.id, &ended, overlaps).await?;
            self.held = self.held.saturating_add(u64::from(is_held));
        }
        Ok(())
    }
}

impl Kept<'_> {
    fn is_full(&self) -> bool {
        self.texts.len() >= KEPT || self.ended.len() >= STATEMENTS_KEPT
    }

    fn end(&mut self, close: StatementClose) -> Result<(), StoreError> {
        let head = self.open.take().filter(|head| head.number == close.number);
        let head = head.ok_or_else(|| self.out_of_order("the end of a statement"))?;
        self.ended.push(Ended { head, close });
        Ok(())
    }

    fn out_of_order(&self, what: &str) -> StoreError {
        unexpected(DOING, format!("{}: {what} came out of its order", self.name))
    }

    /// Lines as COPY reads them.
    fn encode(&mut self, buffer: &mut String, lines: &[NewLine]) -> Result<(), StoreError> {
        let Some(statement) = &self.open else { return Err(self.out_of_order("a line")) };
        for line in lines {
            let place = Place { file: self.id, account: &statement.account };
            place.encode(buffer, line);
            for text in line.further_texts() {
                let mut row = CopyRow(&mut self.texts);
                row.foreign(&statement.account).foreign(&text).number(self.id);
                row.number(big(line.position)).end();
            }
        }
        self.lines = self.lines.saturating_add(u64::try_from(lines.len()).unwrap_or(u64::MAX));
        Ok(())
    }
}

/// Where lines belong.
struct Place<'a> {
    file: i64,
    account: &'a str,
}

impl Place<'_> {
    /// The columns of [`COPY_LINES`].
    fn encode(&self, buffer: &mut String, line: &NewLine) {
        let mut row = CopyRow(buffer);
        row.number(self.file).number(big(line.position)).number(big(line.statement));
        row.number(big(line.entry)).number(big(line.file_line)).foreign(self.account);
        row.word(line.kind.as_str()).word(line.direction.as_str()).word(line.currency.code());
        row.maybe_number(line.minor).money(line.gross).money(line.fee).money(line.net);
        row.word(line.status.as_str()).flag(line.decides).flag(line.itemised);
        for text in [
            line.tags.first(),
            line.psp_reference.as_ref(),
            line.original.as_ref(),
            line.return_reason.as_ref(),
            line.type_code.as_ref(),
            line.bank_reference.as_ref(),
            line.batch.as_ref(),
        ] {
            row.maybe_foreign(text);
        }
        row.date(line.booked_on).date(line.value_on);
        row.foreign(&line.refs_json()).foreign(&line.raw).word(line.state().as_str());
        row.maybe_foreign(line.further_json().as_ref()).maybe_foreign(line.order.as_ref()).end();
    }
}

/// Writes a statement, live unless it must be held; says whether it is held.
async fn put_statement(
    connection: &mut PgConnection,
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
    sqlx::query(
        "update tieout_lines set decides = false, state = 'excluded', reason = $3 \
         where file_id = $1 and statement = $2",
    )
    .bind(id)
    .bind(big(ended.head.number))
    .bind(Reason::StatementCorrected.as_str())
    .execute(connection)
    .await
    .map_err(failed(DOING))?;
    Ok(true)
}

/// False: the same statement is live already.
async fn insert_statement(
    connection: &mut PgConnection,
    id: i64,
    ended: &Ended,
    held: Option<(Held, Option<(i64, i64)>)>,
) -> Result<bool, StoreError> {
    let Ended { head, close } = ended;
    let rival = held.and_then(|(_, rival)| rival);
    let written = sqlx::query(
        "insert into tieout_statements (file_id, number, account, bank_account, currency, \
         statement_id, sequence, from_on, to_on, finality, covers_attempts, opening_minor, \
         closing_minor, entries, lines, ties, state, held_for, rival_file, rival_number) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
         case when $17::text is null then 'live' else 'held' end, $17, $18, $19) \
         on conflict do nothing",
    )
    .bind(id)
    .bind(big(head.number))
    .bind(&head.account)
    .bind(clean(&head.bank_account))
    .bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default())
    .bind(clean(&head.statement_id))
    .bind(clean(&head.sequence))
    .bind(close.from)
    .bind(close.to)
    .bind(head.finality.as_str())
    .bind(head.covers_attempts)
    .bind(close.opening_minor)
    .bind(close.closing_minor)
    .bind(big(close.entries))
    .bind(big(close.lines))
    .bind(close.ties)
    .bind(held.map(|(held, _)| held.as_str()))
    .bind(rival.map(|(file, _)| file))
    .bind(rival.map(|(_, number)| number))
    .execute(connection)
    .await
    .map_err(failed(DOING))?;
    Ok(written.rows_affected() > 0)
}

/// The live statement that this one is another issue of.
async fn live_rival(
    connection: &mut PgConnection,
    ended: &Ended,
) -> Result<Option<(i64, i64)>, StoreError> {
    let Ended { head, close } = ended;
    sqlx::query_as(
        "select file_id, number from tieout_statements where state = 'live' \
         and (statement_id <> '' or sequence <> '') and account = $1 and bank_account = $2 \
         and currency = $3 and statement_id = $4 and sequence = $5 \
         and coalesce(from_on, date '0001-01-01') = coalesce($6, date '0001-01-01') \
         and coalesce(to_on, date '0001-01-01') = coalesce($7, date '0001-01-01') \
         and finality = $8",
    )
    .bind(&head.account)
    .bind(clean(&head.bank_account))
    .bind(close.currency.map(|currency| currency.code().to_owned()).unwrap_or_default())
    .bind(clean(&head.statement_id))
    .bind(clean(&head.sequence))
    .bind(close.from)
    .bind(close.to)
    .bind(head.finality.as_str())
    .fetch_optional(connection)
    .await
    .map_err(failed(DOING))
}
