//! What files that list every attempt say of rows that none of them names.
//!
//! Only such files can say "not there", and only where none is missing (`decide::reach`). They
//! are read from end to end for the days in question, page by page: a tag that is nearly the
//! row's, or a payment of its money without a tag, may be its own, and a line whose tag is known
//! shows that tags still arrive.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{Days, NaiveDate};
use tokio::sync::mpsc;

use crate::decide::expected::Expected;
use crate::decide::reach::{AttemptFiles, Came, Worth};
use crate::decide::settled::moves;
use crate::model::evidence::{CompleteSearch, UntaggedMatch, Witness};
use crate::model::money::Money;
use crate::model::settlement::LineKind;
use crate::model::time::Instant;
use crate::model::transaction::{Kind, Kinds, Transaction};
use crate::psp::book::Neighbour;
use crate::psp::near::NearTags;
use crate::report::said::{moved, settled};
use crate::run::by_files::silence;
use crate::run::error::{Doing, RunError};
use crate::run::match_lines::is_of;
use crate::run::tagged::{RowsOfTag, Seen, rows_elsewhere, rows_of_tags};
use crate::settlement::Format;
use crate::store::compare::CompareDriver;
use crate::store::database::Database;
use crate::store::files::{AttemptFile, FileDriver, LinePlace, StoredLine};
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

/// Lines read at once.
const PAGE: i64 = 1_024;

/// How many tags are resolved in one question to the database.
pub const RESOLVE_AT_ONCE: usize = 500;

/// A row that no file names.
#[derive(Debug, Clone, Copy)]
pub struct Unnamed<'a> {
    /// The row.
    pub row: &'a Transaction,
    /// Its call may have been made from here …
    pub from: Instant,
    /// … to here.
    pub to: Instant,
    /// The last attempt: a witness must be newer.
    pub last_attempt: Instant,
}

/// What the files say of one of them.
#[derive(Debug, Clone)]
pub struct NotNamed {
    /// How far they reach.
    pub search: CompleteSearch,
    /// Payments whose tag is nearly the row's: reference and tag.
    pub near: Vec<(String, String)>,
    /// Payments of the row's money that no row explains.
    pub untagged: Vec<UntaggedMatch>,
}

/// All that was read.
#[derive(Debug, Default)]
pub struct Listed {
    /// Of each row, in their order.
    pub rows: Vec<NotNamed>,
    /// The payments of those days.
    pub others: Vec<Neighbour>,
}

/// An account's files, asked about rows that they do not name.
#[derive(Debug, Clone, Copy)]
pub struct Attempts<'a> {
    /// The database.
    pub db: &'a Database,
    /// The table of the rows.
    pub table: &'a SourceTable,
    /// Every table: the account may have rows in others, too.
    pub tables: &'a [SourceTable],
    /// The account.
    pub account: &'a str,
    /// The files that are to come for it.
    pub expected: &'a [Expected],
}

impl Attempts<'_> {
    /// What the files say of each row.
    pub async fn ask(&self, rows: &[Unnamed<'_>], now: Instant) -> Result<Listed, RunError> {
        let (Some(from), Some(to)) =
            (rows.iter().map(|row| row.from).min(), rows.iter().map(|row| row.to).max())
        else {
            return Ok(Listed::default());
        };
        let (files, stored) = self.laid_out((from, to), now).await?;
        if !files.all.exist() {
            let none = |_row| NotNamed::unproven(silence(now, None));
            return Ok(Listed { rows: rows.iter().map(none).collect(), ..Listed::default() });
        }
        let reach = |row: &Unnamed<'_>| {
            let files = files.of(row.row.kind);
            NotNamed::unproven(silence(now, files.map(|files| files.reach(row.from, row.to))))
        };
        let mut found: Vec<NotNamed> = rows.iter().map(reach).collect();
        let mut day = Reading::of(rows);
        for file in in_days(&stored, from, to) {
            self.read(file, &mut |line| day.take(line)).await?;
        }
        // What was sent then may be listed late, under a tag that is nearly the row's.
        for file in later_than(&stored, to) {
            self.read(file.id, &mut |line| day.note_near(line)).await?;
        }
        let mut known = self.known(day.tags_in_question()).await?;
        self.know_others(day.tags_in_question(), &mut known).await?;
        for (place, (found, row)) in found.iter_mut().zip(rows).enumerate() {
            found.search.listed = day.listed;
            found.near = day.near_of(place, &known);
            found.untagged = day.untagged_of(row, &known, self.expected);
        }
        let kinds: BTreeSet<Kind> = rows.iter().map(|one| one.row.kind).collect();
        for kind in kinds {
            let witness = self.witness(&day, &stored, rows, to, kind).await?;
            let alike = found.iter_mut().zip(rows).filter(|(_, one)| one.row.kind == kind);
            alike.for_each(|(found, _)| found.search.witness.clone_from(&witness));
        }
        Ok(Listed { rows: found, others: day.others })
    }

    /// What the files lack, in words, that may list an attempt of each of these spans.
    pub async fn lacking(
        &self,
        spans: &[(Kind, Instant, Instant)],
        now: Instant,
    ) -> Result<Vec<Option<String>>, RunError> {
        let (Some(from), Some(to)) =
            (spans.iter().map(|span| span.1).min(), spans.iter().map(|span| span.2).max())
        else {
            return Ok(Vec::new());
        };
        let (files, _stored) = self.laid_out((from, to), now).await?;
        let lacks = |(kind, from, to): &(Kind, Instant, Instant)| {
            files.of(*kind).and_then(|files| files.lacks_since_begun(*from, *to))
        };
        Ok(spans.iter().map(lacks).collect())
    }

    /// The files that came, laid out over the days from a span on, and those of them that are
    /// whole.
    async fn laid_out(
        &self,
        (from, to): (Instant, Instant),
        now: Instant,
    ) -> Result<(LaidOut, Vec<AttemptFile>), RunError> {
        let files = self.db.attempt_files(self.account).await;
        let files = files.doing("looking for files that list every attempt")?;
        let lay = |came: &[Came]| AttemptFiles::of(self.expected, came, (from, to.max(now)), now);
        let mut all = lay(&files.iter().map(came).collect::<Vec<_>>());
        let mut with_rows = Vec::new();
        for day in all.empty_days() {
            if self.has_rows_of(day).await? {
                with_rows.push(day);
            }
        }
        all.doubt(&with_rows);
        let is_of_payments = |file: &AttemptFile| lists_payments_alone(&file.format);
        let besides = files.iter().any(is_of_payments).then(|| {
            let came = files.iter().map(|file| match is_of_payments(file) {
                true => Came { worth: Worth::Other, ..came(file) },
                false => came(file),
            });
            let mut besides = lay(&came.collect::<Vec<_>>());
            besides.doubt(&with_rows);
            besides
        });
        let is_whole = |file: &AttemptFile| file.worth == Worth::Whole;
        Ok((LaidOut { all, besides }, files.into_iter().filter(is_whole).collect()))
    }

    /// Whether any row of the account was made in this span: then its file should list one.
    async fn has_rows_of(&self, (from, to): (Instant, Instant)) -> Result<bool, RunError> {
        let filter = ClaimFilter {
            accounts: Some(vec![self.account.to_owned()]),
            created_from: Some(from),
            created_to: Some(to),
            ..ClaimFilter::default()
        };
        for table in self.tables.iter().filter(|table| is_of(table, self.account)) {
            let (sender, mut receiver) = mpsc::channel(1);
            let reading = self.db.stream_rows(table, &filter, sender);
            // The first rows are enough: who reads on finds nobody there, and ends.
            let first = async move { receiver.recv().await.is_some() };
            let (read, found) = tokio::join!(reading, first);
            read.doing("looking for rows of a day whose file lists none")?;
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a file's lines from end to end.
    async fn read(
        &self,
        file: i64,
        take: &mut (dyn FnMut(&StoredLine) + Send),
    ) -> Result<(), RunError> {
        let mut after = LinePlace { file, position: 0 };
        loop {
            let page = self.db.lines_of_file(after, PAGE).await;
            let page = page.doing("reading files that list every attempt")?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.place;
            page.iter().for_each(&mut *take);
        }
    }

    /// Which of these tags are rows', and of which kinds.
    async fn known(&self, tags: Vec<String>) -> Result<HashMap<String, RowsOfTag>, RunError> {
        let mut known = HashMap::new();
        for chunk in tags.chunks(RESOLVE_AT_ONCE) {
            let found = rows_of_tags(self.db, self.table, self.tables, self.account, chunk).await;
            known.extend(found.doing("resolving tags of files")?);
        }
        Ok(known)
    }

    /// Takes in which of these tags are rows' of the account's other tables alone.
    async fn know_others(
        &self,
        tags: Vec<String>,
        known: &mut HashMap<String, RowsOfTag>,
    ) -> Result<(), RunError> {
        let strange = tags.into_iter().filter(|tag| !known.contains_key(tag));
        let strange: Vec<String> = strange.collect();
        for chunk in strange.chunks(RESOLVE_AT_ONCE) {
            let found = rows_elsewhere(self.db, self.table, self.tables, self.account, chunk);
            known.extend(found.await.doing("resolving tags of files")?);
        }
        Ok(())
    }

    /// The newest line of a kind of movement whose tag is a row's of that kind: of the days in
    /// question, else of the first file after them that has one.
    async fn witness(
        &self,
        day: &Reading<'_>,
        stored: &[AttemptFile],
        rows: &[Unnamed<'_>],
        to: Instant,
        kind: Kind,
    ) -> Result<Option<Witness>, RunError> {
        let alike = rows.iter().filter(|one| one.row.kind == kind);
        let newest = alike.map(|one| one.last_attempt).max();
        let is_enough = |witness: &Witness| newest.is_none_or(|at| witness.created_at > at);
        let mut best = self.newest_known(&day.tagged, kind).await?;
        for file in later_than(stored, to) {
            if best.as_ref().is_some_and(is_enough) {
                break;
            }
            let mut tagged = Vec::new();
            self.read(file.id, &mut |line| tagged.extend(Tagged::of(line))).await?;
            best = self.newest_known(&tagged, kind).await?.or(best);
        }
        Ok(best)
    }

    async fn newest_known(
        &self,
        tagged: &[Tagged],
        kind: Kind,
    ) -> Result<Option<Witness>, RunError> {
        let mut newest_first: Vec<&Tagged> =
            tagged.iter().filter(|one| one.moves.has(kind)).collect();
        newest_first.sort_by(|a, b| b.day.cmp(&a.day).then_with(|| a.tag.cmp(&b.tag)));
        newest_first.dedup_by(|a, b| a.tag == b.tag && a.money == b.money);
        for chunk in newest_first.chunks(RESOLVE_AT_ONCE) {
            let known = self.known(chunk.iter().map(|one| one.tag.clone()).collect()).await?;
            let is_row =
                |one: &&&Tagged| known.get(&one.tag).is_some_and(|rows| rows.has(kind, one.seen()));
            if let Some(one) = chunk.iter().find(is_row) {
                let begun = begin_of(self.expected, one.day);
                return Ok(begun.map(|created_at| Witness {
                    reference: one.reference.clone(),
                    tag: one.tag.clone(),
                    created_at,
                }));
            }
        }
        Ok(None)
    }
}

/// The files that list attempts, day by day.
struct LaidOut {
    all: AttemptFiles,
    /// Without those that list payments alone; none where there are no such.
    besides: Option<AttemptFiles>,
}

impl LaidOut {
    /// Those that list what rows of this kind are; none where no file does.
    fn of(&self, kind: Kind) -> Option<&AttemptFiles> {
        let files = match (&self.besides, kind) {
            (Some(besides), Kind::Refund | Kind::Payout) => besides,
            (Some(_) | None, _) => &self.all,
        };
        files.exist().then_some(files)
    }
}

/// Whether a report lists every payment that was asked for, and no refund or payout.
fn lists_payments_alone(format: &str) -> bool {
    format == Format::AdyenReceived.name()
}

fn came(file: &AttemptFile) -> Came {
    let period = file.from.zip(file.to);
    Came {
        number: file.id,
        name: file.name.clone(),
        at: file.named_at,
        written: Some(file.written_at),
        worth: file.worth,
        period,
        is_empty: file.is_empty,
        zones: file.zones.clone(),
        has_lines: file.has_lines,
    }
}

/// A file tells a day and no time: the first instant of it is the earliest that is meant. Of
/// several series in several zones it is any one's: the earliest of all.
fn begin_of(expected: &[Expected], day: NaiveDate) -> Option<Instant> {
    expected.iter().filter_map(|one| one.midnight(day)).min()
}

/// When a day is over in all of them.
fn end_of(expected: &[Expected], day: NaiveDate) -> Option<Instant> {
    let next = day.checked_add_days(Days::new(1))?;
    expected.iter().filter_map(|one| one.midnight(next)).max()
}

fn after_days(to: Instant) -> NaiveDate {
    to.date_naive().checked_add_days(Days::new(1)).unwrap_or(NaiveDate::MAX)
}

/// The files of the days around a span, each once. One that tells no period is of the days before
/// it came.
fn in_days(stored: &[AttemptFile], from: Instant, to: Instant) -> Vec<i64> {
    let first = from.date_naive().checked_sub_days(Days::new(1)).unwrap_or(NaiveDate::MIN);
    let last = after_days(to);
    let is_of_them = |file: &&AttemptFile| match file.from.zip(file.to) {
        Some((begun, ended)) => begun <= last && ended >= first,
        None => file.received_at >= from,
    };
    let mut files: Vec<i64> = stored.iter().filter(is_of_them).map(|file| file.id).collect();
    files.dedup();
    files
}

/// The files of the days after those.
fn later_than(stored: &[AttemptFile], to: Instant) -> Vec<&AttemptFile> {
    let is_later = |file: &&AttemptFile| file.from.is_some_and(|from| from > after_days(to));
    let mut later: Vec<&AttemptFile> = stored.iter().filter(is_later).collect();
    later.sort_by_key(|file| (file.from, file.id));
    later.dedup_by_key(|file| file.id);
    later
}

impl NotNamed {
    fn unproven(search: CompleteSearch) -> Self {
        Self { search, near: Vec::new(), untagged: Vec::new() }
    }
}

/// A line that carries a tag.
#[derive(Debug, Clone)]
struct Tagged {
    tag: String,
    reference: String,
    day: NaiveDate,
    moves: Kinds,
    money: Option<Money>,
}

impl Tagged {
    fn of(line: &StoredLine) -> Option<Self> {
        let (tag, day) = (line.tag.clone()?, line.booked_on?);
        let (reference, moves, money) = (reference_of(line), moves_of(line), moved(line));
        Some(Self { tag, reference, day, moves, money })
    }

    fn seen(&self) -> Seen<'_> {
        seen(&self.reference, self.money)
    }
}

/// Of which kinds the rows are that a line may be the movement of. An attempt does not say it.
fn moves_of(line: &StoredLine) -> Kinds {
    let is_attempt = line.kind == LineKind::Attempt;
    let kinds = [Kind::Charge, Kind::Refund, Kind::Payout].into_iter();
    if is_attempt && lists_payments_alone(&line.format) {
        return kinds.filter(|kind| *kind == Kind::Charge).collect();
    }
    kinds.filter(|kind| is_attempt || moves(line.kind, line.direction, *kind)).collect()
}

fn reference_of(line: &StoredLine) -> String {
    line.psp_reference.clone().unwrap_or_else(|| line.place.to_string())
}

/// What a line shows of itself to the rows of its tag.
fn seen(reference: &str, money: Option<Money>) -> Seen<'_> {
    Seen { money, reference, aliases: &[] }
}

/// A line whose tag is nearly a row's.
#[derive(Debug, Clone)]
struct NearLine {
    row: usize,
    reference: String,
    tag: String,
    money: Option<Money>,
}

/// A payment of the money of one of the rows.
#[derive(Debug, Clone)]
struct OfMoney {
    tag: Option<String>,
    moves: Kinds,
    day: Option<NaiveDate>,
    is: UntaggedMatch,
}

impl OfMoney {
    /// Whether a row explains it, so that it cannot be one's of this kind. What is of this kind
    /// only a row that may have moved it explains: a refund's tag may be its payment's. Where rows
    /// of several kinds have the tag, one of this kind must have moved exactly this.
    fn is_explained(&self, kind: Kind, known: &HashMap<String, RowsOfTag>) -> bool {
        let rows = self.tag.as_ref().and_then(|tag| known.get(tag));
        let seen = seen(&self.is.reference, Some(self.is.captured));
        rows.is_some_and(|rows| !self.moves.has(kind) || rows.explain(self.moves, kind, seen))
    }
}

/// The days in question while they are read.
struct Reading<'a> {
    rows: &'a [Unnamed<'a>],
    tags: NearTags,
    near: Vec<NearLine>,
    of_money: HashMap<Money, Vec<OfMoney>>,
    tagged: Vec<Tagged>,
    others: Vec<Neighbour>,
    listed: u64,
}

impl<'a> Reading<'a> {
    fn of(rows: &'a [Unnamed<'a>]) -> Self {
        let mut tags = NearTags::default();
        let mut of_money = HashMap::new();
        for (place, unnamed) in rows.iter().enumerate() {
            if let (Some(tag), Ok(place)) = (unnamed.row.tag.usable(), u32::try_from(place)) {
                tags.add(tag, place);
            }
            of_money.extend(unnamed.row.money.map(|money| (money, Vec::new())));
        }
        let (near, tagged, others) = (Vec::new(), Vec::new(), Vec::new());
        Self { rows, tags, near, of_money, tagged, others, listed: 0 }
    }

    fn take(&mut self, line: &StoredLine) {
        self.listed = self.listed.saturating_add(1);
        self.note_near(line);
        let reference = reference_of(line);
        // What a PSP takes, pays out or corrects for itself is nobody's payment.
        if matches!(line.kind, LineKind::Fee | LineKind::Payout | LineKind::Adjustment) {
            return;
        }
        let told = settled(line);
        if let Some(same) = told.money.and_then(|money| self.of_money.get_mut(&money)) {
            same.extend(told.money.map(|captured| OfMoney {
                tag: line.tag.clone(),
                moves: moves_of(line),
                day: line.booked_on,
                is: UntaggedMatch {
                    reference: reference.clone(),
                    captured,
                    created_at: told.at,
                    tag: line.tag.clone(),
                },
            }));
        }
        self.tagged.extend(Tagged::of(line));
        self.others.push(Neighbour {
            reference: reference.into(),
            aliases: Vec::new(),
            kind: "charge",
            moves: moves_of(line),
            tag: line.tag.as_deref().map(Into::into),
            captured: told.money,
            refunded_minor: 0,
            disputed: false,
            created_at: told.at,
        });
    }

    /// Of which rows a line has nearly the tag.
    fn note_near(&mut self, line: &StoredLine) {
        let refs = line.refs.iter().map(|tag| &tag.text);
        let texts = line.tag.iter().chain(&line.further).chain(refs);
        for text in texts.collect::<HashSet<_>>() {
            for place in self.tags.near(text) {
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                let (reference, tag) = (reference_of(line), text.clone());
                self.near.push(NearLine { row: place, reference, tag, money: moved(line) });
            }
        }
    }

    /// Tags of which it matters whether they are rows'.
    fn tags_in_question(&self) -> Vec<String> {
        let near = self.near.iter().map(|line| &line.tag);
        let same = self.of_money.values().flatten().filter_map(|one| one.tag.as_ref());
        let tags: HashSet<&String> = near.chain(same).collect();
        tags.into_iter().cloned().collect()
    }

    /// A tag that is nearly this row's and is another row's own is no near miss. Its own, on a
    /// line that tells of no payment of its kind, is one: something was made for it.
    fn near_of(&self, row: usize, known: &HashMap<String, RowsOfTag>) -> Vec<(String, String)> {
        let Some(asking) = self.rows.get(row).map(|one| one.row) else { return Vec::new() };
        let is_anothers = |line: &NearLine| {
            let seen = seen(&line.reference, line.money);
            known.get(&line.tag).is_some_and(|rows| rows.agree(asking.kind, seen))
        };
        let is_near = |line: &&NearLine| {
            let is_own = asking.tag.usable() == Some(line.tag.as_str());
            line.row == row && (is_own || !is_anothers(line))
        };
        let own = self.near.iter().filter(is_near);
        let mut near: Vec<_> = own.map(|one| (one.reference.clone(), one.tag.clone())).collect();
        near.sort_unstable();
        near.dedup();
        near
    }

    /// Payments of the row's money, on a day when its call may have made them, that no row's tag
    /// explains.
    fn untagged_of(
        &self,
        unnamed: &Unnamed<'_>,
        known: &HashMap<String, RowsOfTag>,
        expected: &[Expected],
    ) -> Vec<UntaggedMatch> {
        let same = unnamed.row.money.and_then(|money| self.of_money.get(&money));
        let is_within = |day: Option<NaiveDate>| {
            let Some(day) = day else { return true };
            let begun = begin_of(expected, day).is_none_or(|begun| begun <= unnamed.to);
            begun && end_of(expected, day).is_none_or(|ended| ended > unnamed.from)
        };
        let kind = unnamed.row.kind;
        let is_anybodys = |one: &&OfMoney| is_within(one.day) && !one.is_explained(kind, known);
        let mut seen = HashSet::new();
        same.into_iter()
            .flatten()
            .filter(is_anybodys)
            .filter(|one| seen.insert(one.is.reference.clone()))
            .map(|one| one.is.clone())
            .collect()
    }
}
