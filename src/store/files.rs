//! Settlement files as they are kept: a file, its statements, its lines, and whose each line is.
//!
//! Plain data, the same for both databases. A file's lines come in parts, so that memory is flat
//! however many there are, and become visible all together or not at all.

use std::borrow::Cow;

use chrono::NaiveDate;
use tokio::sync::mpsc::Receiver;

use crate::decide::reach::Worth;
use crate::model::count::counted;
use crate::model::money::{Currency, Money};
use crate::model::reason::Reason;
use crate::model::settlement::{
    Direction, EntryStatus, Finality, LineKind, Problem, Severity, Tag, TagKind, booked_way,
};
use crate::model::time::Instant;
use crate::store::error::StoreError;
use crate::store::release::{Difference, Release, Said, Spoken, Word};
use crate::store::told::overlap_text;

/// How many lines a [`Part`] should hold: whole statements of both drivers.
pub const LINES_OF_PART: usize = 1_024;

/// How many statements are kept in memory before they are written.
pub const STATEMENTS_KEPT: usize = 512;

/// The verbs about files. See each for what must hold; every one that writes is one transaction.
#[expect(async_fn_in_trait, reason = "called on the two concrete drivers only, never as dyn")]
pub trait FileDriver {
    /// Brings a file in: all of it or nothing, in one transaction and in flat memory, whatever the
    /// parts' number. Bytes that are known already are not read again: their new name is noted.
    /// Those that are quarantined, and that no person said a word about, are read again: this
    /// program may know more than the one that refused them. [`Part::Quarantine`] keeps the file
    /// and its problems, none of its lines, and opens a case. A channel that closes before
    /// [`Part::Whole`] or [`Part::Quarantine`] leaves nothing, and so does a run that was closed
    /// meanwhile. Two that bring the same bytes at once wait for each other, and the second finds
    /// them known.
    ///
    /// A statement that is live in other bytes (same account, bank account, currency, id, sequence,
    /// period and finality; not one that goes on from it by its balances), or that says of itself
    /// that it is a copy, a deletion or the like, is held: its lines are there and none counts, and
    /// the file gets a case. So is one of a file of rows that has every row of a day of another. A
    /// line whose own id counts in another file of the account, with the same money, is that
    /// booking told again: it is kept and excluded. A report with a row that another one has with
    /// other money, or that says of what another one settled that it is void, is quarantined.
    async fn put_file(
        &self,
        run_id: &str,
        head: &FileHead,
        parts: Receiver<Part>,
        now: Instant,
    ) -> Result<FileEnd, StoreError>;

    /// Every name that a source's files came under, in the names' order.
    async fn known_names(&self, source: &str) -> Result<Vec<KnownName>, StoreError>;

    /// The names that files of an account came under from this source, in the names' order.
    async fn names_of_account(
        &self,
        source: &str,
        account: &str,
    ) -> Result<Vec<KnownName>, StoreError>;

    /// Notes the name of an archive, all of whose files are kept; `file` stands for them.
    async fn note_name(
        &self,
        run_id: &str,
        sighting: &Sighting,
        file: i64,
        now: Instant,
    ) -> Result<(), StoreError>;

    /// Notes that a source's file was put away there.
    async fn note_archived(
        &self,
        source: &str,
        name: &str,
        raw_sha256: &str,
        now: Instant,
    ) -> Result<(), StoreError>;

    /// Notes where a quarantined file's bytes are kept, for whoever lets it count.
    async fn note_spooled(&self, file: i64, spooled_as: &str) -> Result<(), StoreError>;

    /// Opens or refreshes a case about files that are not there: of `subject`, a source and what
    /// is expected of it.
    async fn put_absent_case(
        &self,
        run_id: &str,
        case: &AbsentCase,
        now: Instant,
    ) -> Result<(), StoreError>;

    /// Closes the open cases about a source's files that are not there, but for those of these
    /// subjects; how many they were.
    async fn close_absent_cases(
        &self,
        run_id: &str,
        source: &str,
        but: &[String],
        now: Instant,
    ) -> Result<u64, StoreError>;

    /// Notes a person's word that a file may count, and changes nothing else: a run carries it
    /// out. One that waits already stays as it was said.
    async fn ask_release(&self, file: i64, word: &Word, now: Instant) -> Result<Said, StoreError>;

    /// The words that wait for a run, in their order; of one file alone where it is named.
    async fn releases_waiting(&self, file: Option<i64>) -> Result<Vec<Spoken>, StoreError>;

    /// Carries the word about a quarantined file out: loads its lines, all of them or none, and
    /// ends the word in the same transaction. They are marked as untied, and statements that are
    /// live in other bytes are held as ever. A word that waits no more, and a file in any other
    /// state, is left as it is, so that nothing is done twice.
    async fn release_quarantined(
        &self,
        run_id: &str,
        spoken: &Spoken,
        parts: Receiver<Part>,
        now: Instant,
    ) -> Result<Release, StoreError>;

    /// Carries the word about the held statements of a file out: of each, what it alone has
    /// begins to count, and what only earlier issues have counts no more but keeps its row and
    /// run. One that goes on from another by its balances replaces nothing of it. One that says it
    /// deletes an earlier one takes that one's lines out. One that a later issue corrected, which
    /// was let count, stays held.
    async fn release_held(
        &self,
        run_id: &str,
        spoken: &Spoken,
        now: Instant,
    ) -> Result<Release, StoreError>;

    /// Ends a word that cannot be carried out, and says why in the file's case; false where it
    /// waits no more.
    async fn refuse_release(
        &self,
        run_id: &str,
        spoken: &Spoken,
        why: &str,
        now: Instant,
    ) -> Result<bool, StoreError>;

    /// What [`FileDriver::release_held`] would change.
    async fn differences(&self, file: i64) -> Result<Vec<Difference>, StoreError>;

    /// All lines of an account that may say something of a row and carry one of these texts as a
    /// tag, the PSP's reference or a return's original; whatever their state, but for those that
    /// another statement took the place of. In their order, by index.
    async fn lines_of(
        &self,
        account: &str,
        tags: &[String],
        references: &[String],
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// How the database would carry [`FileDriver::lines_of`] out, in its own words.
    async fn lines_plan(&self, account: &str, tags: &[String]) -> Result<Vec<String>, StoreError>;

    /// Lines of an account that decide and have no row yet, in their order, after a place.
    async fn open_lines(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<OpenLine>, StoreError>;

    /// Lines of an account that decide and have no row yet, and that moved one of these amounts, in
    /// minor units of whatever currency. In their order, so many that a person could look at them.
    async fn open_of_money(
        &self,
        account: &str,
        minors: &[i64],
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// Lines of an account that a row succeeded by, that a correction took out since, and whose
    /// row was not looked at again, in their order, after a place.
    async fn taken_out(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// Lines of what came back under an account that runs of single rows took since the last run
    /// of all rows, be it a part of the run that is under way; in their order, after a place.
    async fn taken_alone(
        &self,
        account: &str,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// The lines that these rows of a table succeeded by and that a correction took out since.
    async fn taken_out_of(
        &self,
        table: &str,
        keys: &[String],
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// Lines of an account that a correction took out which was let count since then, and that a
    /// row's line of another file tells, too, each with that row, unless it was looked at again.
    async fn told_of_rows(
        &self,
        account: &str,
        since: Instant,
    ) -> Result<Vec<(LinePlace, (String, String))>, StoreError>;

    /// Of these lines, those of a bank's statement that tell what a correction of another one took
    /// out, each with the place of that.
    async fn doubted(
        &self,
        places: &[LinePlace],
    ) -> Result<Vec<(LinePlace, LinePlace)>, StoreError>;

    /// Notes that the rows of lines that were taken out are looked at again; not of those that
    /// somebody has in work, who may not know it yet.
    async fn note_looked_again(&self, run_id: &str, places: &[LinePlace])
    -> Result<(), StoreError>;

    /// Notes that these open lines are what a bank took for itself: they decide nothing.
    async fn exclude_lines(&self, places: &[LinePlace]) -> Result<(), StoreError>;

    /// Of these rows of a table, each with a line that names it: those that wait for a look later
    /// than `now` and were not looked at since the line's file came or was released, or the batch
    /// that it is a part of was booked. None that somebody has in work.
    async fn asleep(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
        now: Instant,
    ) -> Result<Vec<String>, StoreError>;

    /// Of these rows of a table, each with a line that names it: those that nobody looks at any
    /// more, as they were left as they are, and did not since the line's file came or was released,
    /// or the batch that it is a part of was booked.
    async fn parked(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
    ) -> Result<Vec<String>, StoreError>;

    /// Of these rows of a table, each with a line that names it: those with an open case, whatever
    /// was proposed of it, that were not looked at since the line's file came or was released, or
    /// the batch that it is a part of was booked. None that somebody has in work.
    async fn cased(
        &self,
        table: &str,
        rows: &[(String, LinePlace)],
    ) -> Result<Vec<String>, StoreError>;

    /// Makes these rows of a table due: those that wait for a later look, or are watched, and that
    /// nobody has in work. How many they were.
    async fn wake(&self, table: &str, keys: &[String], now: Instant) -> Result<u64, StoreError>;

    /// Of these rows of a table: that nobody has looked at them, so that whatever files told of
    /// them is new to the next run. Not of those that somebody has in work.
    async fn forget_looks(&self, table: &str, keys: &[String]) -> Result<u64, StoreError>;

    /// Rows of an account, table and key, that were handed back since then and that lines which
    /// list attempts name by the tag they had: of a day up to the hand-back's, or of any day where
    /// nobody took it. A line counts once: whoever looks at its row next makes it that row's.
    async fn listed_after_all(
        &self,
        account: &str,
        since: Instant,
    ) -> Result<Vec<(String, String)>, StoreError>;

    /// Files, the newest first.
    async fn files(&self, filter: &FileFilter) -> Result<Vec<FileRow>, StoreError>;

    /// The statements of a file, in its order, after a number.
    async fn statements(
        &self,
        file: i64,
        after: i64,
        limit: i64,
    ) -> Result<Vec<StatementRow>, StoreError>;

    /// The files of an account, and what they say of attempts: those that list every one are whole
    /// where each of their statements counts and ties, as far as it tells. Under each name that
    /// they came by, by number.
    async fn attempt_files(&self, account: &str) -> Result<Vec<AttemptFile>, StoreError>;

    /// The banks' statements of an account that count and tie, and end on this day or later: by
    /// account at the bank, currency and days.
    async fn standings(&self, account: &str, since: NaiveDate)
    -> Result<Vec<Standing>, StoreError>;

    /// The lines of a file, in its order, after a place; in whatever state.
    async fn lines_of_file(
        &self,
        after: LinePlace,
        limit: i64,
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// A page of the lines that a run matched or noted, in their order, after a place.
    async fn lines_of_run(
        &self,
        run_id: &str,
        which: LinesOfRun,
        after: Option<LinePlace>,
        limit: i64,
    ) -> Result<Vec<LineOfRun>, StoreError>;

    /// The lines that other runs than this had matched by then to these rows, by table and key, and
    /// that counted then.
    async fn lines_of_rows(
        &self,
        run_id: &str,
        rows: &[(String, String)],
        until: Instant,
    ) -> Result<Vec<StoredLine>, StoreError>;

    /// A page of the files that a run brought in, matched lines of or noted lines of, by number,
    /// each with all its lines added up.
    async fn files_of_run(
        &self,
        run_id: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<FileOfRun>, StoreError>;

    /// Notes what was found out about lines. An open line becomes its row's; the places of lines
    /// that another row has, or that are open no more, come back and stay as they are. Without a
    /// row the reason why it is open is kept, and it stays open.
    async fn mark_lines(
        &self,
        run_id: &str,
        marks: &[LineMark],
        now: Instant,
    ) -> Result<Vec<LinePlace>, StoreError>;

    /// Opens cases of these lines, or refreshes what they say, in one transaction; how many were
    /// opened. None of a line that a row has by now, whose case says it already, that a person left
    /// as it is, or while the run was closed.
    async fn put_line_cases(
        &self,
        run_id: &str,
        cases: &[LineCase],
        now: Instant,
    ) -> Result<u64, StoreError>;

    /// Lines that were the bookings of payouts until a correction took them out, and have no case.
    async fn bookings_gone(&self) -> Result<Vec<StoredLine>, StoreError>;

    /// Closes the open cases of lines that need nobody any more: a row has them or is looked at
    /// instead, or they do not count any more. Each says which. How many they were.
    async fn close_line_cases(&self, run_id: &str, now: Instant) -> Result<u64, StoreError>;
}

/// A case of a line that no row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCase {
    /// Which line.
    pub place: LinePlace,
    /// Why it is nobody's.
    pub reason: Reason,
    /// One sentence.
    pub text: String,
    /// The PSP account.
    pub account: String,
    /// What it moved, before fees; none where it has no amount of its own.
    pub money: Option<Money>,
    /// Its case is open already, and says something else.
    pub is_open: bool,
}

/// What was found out about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMark {
    /// Which line.
    pub place: LinePlace,
    /// The row that it belongs to: table and key.
    pub row: Option<(String, String)>,
    /// Why it is open, or what is to be said of the match: a reason's code.
    pub reason: Option<String>,
    /// What the row is worth, + being money to the merchant.
    pub worth: Option<Money>,
}

/// Which of a run's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinesOfRun {
    /// Those that became a row's by it.
    Matched,
    /// Those that it was the first to look for a row for, in vain.
    Noted,
}

/// A line and what a run found out about it. Neither changes once the run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineOfRun {
    /// The line.
    pub line: StoredLine,
    /// Of a matched one: what its row is worth.
    pub worth: Option<Money>,
    /// Of a noted one: why no row was found at that time.
    pub noted: Option<String>,
}

/// What became of lines by a run, as it can still be told when later runs have gone on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineBucket {
    /// A row's, by this run.
    Matched,
    /// Looked for by this run first, and no row found.
    Noted,
    /// No row's by its kind: a fee, a payout, an attempt.
    NoRow,
    /// Another run's to tell of, before or after; or not to be looked at yet.
    Elsewhere,
}

impl LineBucket {
    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Matched, Self::Noted, Self::NoRow, Self::Elsewhere];
        all.into_iter().find(|bucket| bucket.as_str() == text)
    }

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::Noted => "noted",
            Self::NoRow => "no_row",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Lines of one file, of one currency and in one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTally {
    /// The currency's code.
    pub currency: String,
    /// What became of them.
    pub bucket: LineBucket,
    /// How many.
    pub lines: i64,
    /// Their sum, + being money to the merchant; one without an amount of its own counts as 0.
    pub minor: i128,
}

/// A file that a run brought in, or took lines of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOfRun {
    /// The file.
    pub file: FileRow,
    /// How many bytes came.
    pub raw_bytes: i64,
    /// First and last day of its statements.
    pub period: (Option<NaiveDate>, Option<NaiveDate>),
    /// Balances before and after, where it has one statement.
    pub balances: (Option<i64>, Option<i64>),
    /// Its lines.
    pub tallies: Vec<LineTally>,
    /// The run that read it again after it had been quarantined.
    pub tried_run: Option<String>,
}

impl FileOfRun {
    /// Whether it came to something else after this run had brought it in and none of its lines
    /// counted: another run read it again, or opened it and found a file of its own in it. What
    /// was wrong with it then is not kept.
    pub fn came_again_after(&self, run_id: &str) -> bool {
        let was_tried = self.tried_run.as_deref().is_some_and(|tried| tried != run_id);
        let is_opened = self.file.problems.iter().any(|problem| problem.expected == OWN_FILE);
        self.file.run_id == run_id && (was_tried || is_opened)
    }
}

/// Why a statement does not count before a person has said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The same statement is live in other bytes.
    Corrected,
    /// It says that it is a copy of one sent before.
    Copy,
    /// It says that it is a duplicate of one sent before.
    Duplicate,
    /// It says that it deletes one sent before.
    Deletion,
    /// It says that it corrects one sent before.
    Correction,
    /// It says that it is a test.
    Test,
}

impl Held {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Corrected => "corrected",
            Self::Copy => "copy",
            Self::Duplicate => "duplicate",
            Self::Deletion => "deletion",
            Self::Correction => "correction",
            Self::Test => "test",
        }
    }

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Corrected, Self::Copy, Self::Duplicate, Self::Deletion];
        let all = all.into_iter().chain([Self::Correction, Self::Test]);
        all.into_iter().find(|held| held.as_str() == text)
    }
}

/// Where a line stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineState {
    /// No row has it yet.
    Open,
    /// A row has it.
    Matched,
    /// It is no row's by its kind, status or statement.
    Excluded,
    /// Another statement took its place.
    Superseded,
}

impl LineState {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Matched => "matched",
            Self::Excluded => "excluded",
            Self::Superseded => "superseded",
        }
    }

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Open, Self::Matched, Self::Excluded, Self::Superseded];
        all.into_iter().find(|state| state.as_str() == text)
    }
}

/// Whether a line of this status and kind, in a statement of this finality, may decide a row:
/// only booked money of a closed period. What a bank or PSP takes or pays out for itself is no
/// row's, and an attempt moved nothing. A notice, which no balance ties, only says what came back.
pub fn decides(status: EntryStatus, finality: Finality, kind: LineKind) -> bool {
    let is_rows = !matches!(kind, LineKind::Fee | LineKind::Payout | LineKind::Attempt);
    let is_closed = match finality {
        Finality::Final => true,
        Finality::Notice => kind == LineKind::Return,
        Finality::Interim => false,
    };
    status == EntryStatus::Booked && is_closed && is_rows
}

/// A file on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHead {
    /// The PSP account of the configuration that its lines belong to.
    pub account: String,
    /// SHA-256 of its bytes without any wrapping (compression, encryption).
    pub sha256: String,
    /// What it is known by as long as nothing opens it: the hash of the bytes that came, and of one
    /// within an archive that of those and its name there.
    pub shut_sha256: String,
    /// Where and as what it came.
    pub sighting: Sighting,
    /// Where its bytes are kept, relative to the spool.
    pub spooled_as: Option<String>,
    /// Its format's word.
    pub format: String,
    /// The version that it names.
    pub version: String,
    /// The encoding that was said, where neither a mark nor the content tells.
    pub encoding: Option<String>,
}

impl FileHead {
    /// The hashes that it may have been known by while nothing opened it, or what it came in.
    pub(in crate::store) fn shut_hashes(&self) -> impl Iterator<Item = &str> {
        let raw = self.sighting.raw_sha256.as_str();
        let own = Some(self.shut_sha256.as_str()).filter(|own| *own != raw);
        [Some(raw), own].into_iter().flatten().filter(|shut| *shut != self.sha256)
    }

    /// Whether the bytes that came were wrapped: compressed, encrypted, in an archive.
    pub(in crate::store) fn is_unwrapped(&self) -> bool {
        self.sha256 != self.sighting.raw_sha256
    }
}

/// A name under which a source showed some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The source's name; `local` for a path that a person gave.
    pub source: String,
    /// The name there: data, never a path.
    pub name: String,
    /// SHA-256 of the bytes as they came.
    pub raw_sha256: String,
    /// How many bytes came.
    pub raw_bytes: u64,
    /// When they were last changed there, as the source says.
    pub modified_at: Option<Instant>,
}

/// The format's word of a file that could not be decrypted; its version is the stamp of the keys
/// that were tried.
pub const SEALED: &str = "openpgp";

/// A name that bytes came under, and what became of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownName {
    /// The name.
    pub name: String,
    /// SHA-256 of the bytes as they came.
    pub raw_sha256: String,
    /// How many bytes came.
    pub raw_bytes: i64,
    /// When they were last changed there, as the source says.
    pub modified_at: Option<Instant>,
    /// When they came under this name first.
    pub first_seen_at: Instant,
    /// When they were put away there.
    pub archived_at: Option<Instant>,
    /// The file.
    pub file: i64,
    /// What became of it.
    pub state: FileState,
    /// A person said what is to become of it.
    pub is_settled: bool,
    /// The version and the configuration of the run that last read it.
    pub read_by: (String, String),
    /// Of one that no key opened: the stamp of the keys that were tried.
    pub tried_keys: Option<String>,
    /// How many lines it has.
    pub lines: i64,
    /// Every statement of it is held.
    pub is_held: bool,
}

/// A case about files that are expected and not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentCase {
    /// The source.
    pub source: String,
    /// What is expected of it, by the configuration's words.
    pub expected: String,
    /// The account that the files belong to.
    pub account: String,
    /// One sentence.
    pub text: String,
}

impl AbsentCase {
    /// The case's subject: a file's number is never followed by a colon.
    pub fn subject(&self) -> String {
        format!("{}: {}", self.source, self.expected)
    }
}

/// What comes of a file while it is read, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A statement begins; its lines follow.
    Statement(Box<NewStatement>),
    /// Some lines.
    Lines(Vec<NewLine>),
    /// The statement of this number ended.
    StatementEnd(Box<StatementClose>),
    /// The file ended and is whole: what came may become visible.
    Whole(Box<FileSums>),
    /// It does not tie, or could not be read: none of its lines may be used.
    Quarantine(Box<FileSums>),
}

/// A statement's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStatement {
    /// Its place in the file, from 1.
    pub number: u64,
    /// The PSP account of the configuration that its lines belong to.
    pub account: String,
    /// As the file writes it.
    pub bank_account: String,
    /// The bank's id of it; may be empty.
    pub statement_id: String,
    /// Its number in the account's sequence; may be empty.
    pub sequence: String,
    /// What it may decide.
    pub finality: Finality,
    /// It lists every attempt, and not only what settled.
    pub covers_attempts: bool,
    /// What it says of itself that keeps it from counting.
    pub held: Option<Held>,
}

/// What is known at a statement's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementClose {
    /// Its place in the file.
    pub number: u64,
    /// Its currency, where it has one.
    pub currency: Option<Currency>,
    /// First day of its period.
    pub from: Option<NaiveDate>,
    /// Last day of its period.
    pub to: Option<NaiveDate>,
    /// Balance before its entries.
    pub opening_minor: Option<i64>,
    /// Balance after them.
    pub closing_minor: Option<i64>,
    /// Its entries.
    pub entries: u64,
    /// Its lines.
    pub lines: u64,
    /// Whether it ties; none: it declares nothing that could show it.
    pub ties: Option<bool>,
}

/// A file added up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSums {
    /// Its statements.
    pub statements: u64,
    /// Its booked entries.
    pub entries: u64,
    /// Its lines.
    pub lines: u64,
    /// JSON: entries by currency.
    pub totals: String,
    /// The first problems.
    pub problems: Vec<Problem>,
    /// All of them.
    pub problems_total: u64,
    /// Lines with a card number, whose digits are masked.
    pub card_numbers: u64,
    /// The words by which its rows name the zone of their days.
    pub zones: Vec<String>,
}

impl FileSums {
    /// Notes what the database alone could find out about the file.
    pub(in crate::store) fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
        self.problems_total = self.problems_total.saturating_add(1);
    }
}

/// A line on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// Its place in the file, from 1.
    pub position: u64,
    /// The number of its statement.
    pub statement: u64,
    /// The number of its entry.
    pub entry: u64,
    /// The line of the file.
    pub file_line: u64,
    /// What it is.
    pub kind: LineKind,
    /// Where the money went.
    pub direction: Direction,
    /// As written, never negative; none where a batch's payment has no amount of its own.
    pub minor: Option<i64>,
    /// Of `minor`.
    pub currency: Currency,
    /// Before fees, where the file tells it apart.
    pub gross: Option<Money>,
    /// Fees; positive is what was taken.
    pub fee: Option<Money>,
    /// After fees.
    pub net: Option<Money>,
    /// How sure the bank is.
    pub status: EntryStatus,
    /// A booked line of a final statement: it may decide a row.
    pub decides: bool,
    /// False: it stands for several payments.
    pub itemised: bool,
    /// The texts that may be a row's tag, the likeliest first.
    pub tags: Vec<String>,
    /// The PSP's id of the payment.
    pub psp_reference: Option<String>,
    /// Of a return: which payment came back.
    pub original: Option<String>,
    /// Of a return: why.
    pub return_reason: Option<String>,
    /// The kind in the format's own codes.
    pub type_code: Option<String>,
    /// The bank's reference of the booking.
    pub bank_reference: Option<String>,
    /// The PSP's batch or payout.
    pub batch: Option<String>,
    /// The order that a bank's batch was made by: of bookings that stand for several payments,
    /// and of lines of notices.
    pub order: Option<String>,
    /// When it was booked.
    pub booked_on: Option<NaiveDate>,
    /// From when it bears interest.
    pub value_on: Option<NaiveDate>,
    /// Every reference as the file has it.
    pub refs: Vec<Tag>,
    /// The file's own text.
    pub raw: String,
}

/// What became of a file that was brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnd {
    /// Its lines are there.
    Loaded {
        /// Its number.
        id: i64,
        /// How many statements are held: each was loaded before in other bytes.
        held: u64,
    },
    /// The same bytes were brought in before: nothing was done but to note the name.
    Known {
        /// The number it has.
        id: i64,
    },
    /// It is kept, and none of its lines counts.
    Quarantined {
        /// Its number.
        id: i64,
    },
    /// It was not read to its end (a signal, this machine's disk), or its run was closed: nothing
    /// of it was kept.
    Dropped,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinePlace {
    /// Its file.
    pub file: i64,
    /// Its place there, from 1.
    pub position: i64,
}

impl std::fmt::Display for LinePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Its lines are there.
    Loaded,
    /// None of its lines counts.
    Quarantined,
    /// It does not tie, and a person let its lines count.
    Released,
}

impl FileState {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Quarantined => "quarantined",
            Self::Released => "released",
        }
    }

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Loaded, Self::Quarantined, Self::Released];
        all.into_iter().find(|state| state.as_str() == text)
    }
}

/// Which files to list, the newest first.
#[derive(Debug, Clone, Default)]
pub struct FileFilter {
    /// Only this one.
    pub id: Option<i64>,
    /// Only those whose bytes' hash begins so.
    pub sha256: Option<String>,
    /// Only this account's.
    pub account: Option<String>,
    /// Only this source's.
    pub source: Option<String>,
    /// Only those in this state.
    pub state: Option<FileState>,
    /// Only those with a statement that is held.
    pub held: bool,
    /// Only those with a smaller number (keyset paging).
    pub before: Option<i64>,
    /// At most so many.
    pub limit: i64,
}

/// A file as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// Its number.
    pub id: i64,
    /// SHA-256 of its bytes without any wrapping.
    pub sha256: String,
    /// Where it came from first.
    pub source: String,
    /// Under which name.
    pub name: String,
    /// The PSP account.
    pub account: String,
    /// Where its bytes are kept, relative to the spool.
    pub spooled_as: Option<String>,
    /// Its format's word.
    pub format: String,
    /// The version that it names.
    pub version: String,
    /// What became of it.
    pub state: FileState,
    /// When it came.
    pub received_at: Instant,
    /// The run that brought it in.
    pub run_id: String,
    /// Its statements.
    pub statements: i64,
    /// Of those: held.
    pub held: i64,
    /// Its booked entries.
    pub entries: i64,
    /// Its lines.
    pub lines: i64,
    /// JSON: entries by currency.
    pub totals: String,
    /// The first problems.
    pub problems: Vec<Problem>,
    /// All of them.
    pub problems_total: i64,
    /// Who changed its state by hand: when, who, why.
    pub changed: Option<(Instant, String, String)>,
    /// The encoding that was said when it came.
    pub encoding: Option<String>,
}

/// A file that came, under one of its names, and what it says of attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFile {
    /// Its number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// First day of the period that it tells of itself.
    pub from: Option<NaiveDate>,
    /// Last day of it.
    pub to: Option<NaiveDate>,
    /// When it came.
    pub received_at: Instant,
    /// It has no row, and no count that says so: its header may be all that is left of it.
    pub is_empty: bool,
    /// What it says of attempts.
    pub worth: Worth,
    /// When it came by that name last.
    pub named_at: Instant,
    /// When it was last changed by that name, as its source says; else when it came.
    pub written_at: Instant,
    /// The format's word.
    pub format: String,
    /// The words by which its rows name the zone of their days.
    pub zones: Vec<String>,
    /// It has lines.
    pub has_lines: bool,
}

/// Between the words that a file names its zones by: no word has it.
const BETWEEN_ZONES: char = '\n';

/// As the column keeps them.
pub(in crate::store) fn zones_text(zones: &[String]) -> String {
    zones.join(&String::from(BETWEEN_ZONES))
}

/// The words that a column keeps.
pub(in crate::store) fn zones_of(text: &str) -> Vec<String> {
    text.split(BETWEEN_ZONES).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Opens or refreshes the case of a file or of one that is missing: subject, reason, text, account,
/// time, run.
pub(in crate::store) const PUT_FILE_CASE: &str = "insert into tieout_cases as k \
     (subject_kind, table_name, subject, reason, text, state, account, policy_version, opened_at, \
     opened_run, last_seen_at, last_run) \
     select 'file', '', $1, $2, $3, 'open', $4, policy_version, $5, id, $5, id \
     from tieout_runs where id = $6 \
     on conflict (subject_kind, table_name, subject) where state = 'open' do update \
     set reason = excluded.reason, text = excluded.text, \
     policy_version = excluded.policy_version, last_seen_at = excluded.last_seen_at, \
     last_run = excluded.last_run, times_seen = k.times_seen + 1";

/// What makes a line `l` one that may have a case: no row has it, and no row is looked at for it;
/// it names a payout that it is not the booking of, and has a case that says so; or it was one.
pub(in crate::store) fn may_have_case() -> String {
    may_be_told("l.cased")
}

/// What makes a line `l` one that gets a case for that reason.
pub(in crate::store) fn may_get_case(reason: &str) -> String {
    may_be_told(reason)
}

fn may_be_told(reason: &str) -> String {
    format!(
        "(l.state = 'open' and l.decides and (l.reason in ('orphan', 'tag_unusable', \
         'reference_missing', 'returned') or l.reason = {reason}) or {BOOKING_GONE})"
    )
}

/// What makes a line `l` one that was a payout's booking until a correction took it out, and no
/// other line is that by now.
pub(in crate::store) const BOOKING_GONE: &str = "l.state = 'superseded' \
     and l.table_name = 'tieout_payouts' and l.key is not null and not exists (select 1 \
     from tieout_lines b where b.table_name = l.table_name and b.key = l.key \
     and b.state = 'matched')";

/// Such lines that have no case, and that nobody left as they are.
pub(in crate::store) fn bookings_gone_sql() -> String {
    format!(
        "select {LINE} from tieout_lines l join tieout_files f on f.id = l.file_id \
         where {BOOKING_GONE} and l.cased is null order by l.file_id, l.position"
    )
}

/// What such a line's `cased` says once a person left it as it is.
pub(crate) const LEFT: &str = "left";

/// Where a case of a line is open: most databases have none, and are not written for it.
pub(in crate::store) const A_LINE_CASE: &str = "select exists (select 1 from tieout_cases \
     where state = 'open' and subject_kind = 'line' and table_name = '')";

/// How a case of the line `l`, which needs nobody any more, ended.
pub(in crate::store) const LINE_CASE_ENDED: &str = "case when l.state is null \
     then 'its file is not kept any more' when l.state = 'matched' \
     then 'row ' || l.key || ' of ' || l.table_name || ' has it' \
     when l.table_name = 'tieout_payouts' then 'the payout is another line''s' \
     when l.state = 'superseded' then 'another statement took its place' when l.state = 'excluded' \
     then 'it is no payment of a row' \
     when l.reason is null then 'another report of the PSP tells it' \
     else 'the row that it names is looked at instead' end";

/// What makes a line `l` one that decides, is one payment's and has no row yet.
pub(in crate::store) const OPEN_ALONE: &str =
    "l.state = 'open' and l.decides and l.itemised and l.kind not in ('fee', 'payout')";

/// So many open lines of some amounts are read.
pub(in crate::store) const OF_MONEY: i64 = 10_000;

/// What makes a line `l` one that a row succeeded by and that a correction took out. A line that
/// had a case keeps the reason of that, and what the row succeeded by in the end is on record.
pub(in crate::store) const TAKEN_OUT: &str = "l.state = 'superseded' \
     and (l.reason in ('settled', 'tolerance_delta') \
     or exists (select 1 from tieout_references p where p.table_name = l.table_name \
     and p.key = l.key and p.account = l.account \
     and p.psp_reference in (l.psp_reference, l.file_id || ':' || l.position)))";

/// Any line of a row that a correction took out, or by which money was told to have come back of a
/// row, whose row waits to be looked at again; as the index over them says it.
pub(in crate::store) const TAKEN_OUT_WAITS: &str = "l.state = 'superseded' \
     and l.again_run is null and (l.key is not null \
     or l.reason in ('returned', 'late_contradiction'))";

/// What makes a line `l` one of what came back.
pub(in crate::store) const CAME_BACK: &str =
    "l.kind in ('refund', 'return', 'chargeback', 'chargeback_reversed')";

/// What makes a run `r` one of single rows since the last run of all rows, or the one that is under
/// way. A run's scope is written without blanks.
pub(in crate::store) const RAN_ALONE: &str = "(r.state = 'running' or r.command <> 'run' \
     or r.scope not like '%\"ids\":null%') \
     and r.started_at >= coalesce((select w.started_at from tieout_runs w \
     where w.command = 'run' and w.state in ('complete', 'partial') \
     and w.scope like '%\"ids\":null%' order by w.started_at desc limit 1), r.started_at)";

/// Of the run `r` that looked at a row last, a file `f`, the run `n` that read it and the booking
/// `b` of the batch that a line of it is a part of: the row was not looked at since the file came,
/// since it was let count, or since the booking was explained. A person's word is older than the
/// run that carries it out, and another run may have looked in between.
pub(in crate::store) const UNSEEN: &str = "(r.id is null or (r.id <> n.id and r.started_at <= \
     case when f.tried_run is null then f.received_at else n.started_at end) \
     or exists (select 1 from tieout_releases w where w.file_id = f.id \
     and w.state = 'carried_out' and w.ended_run <> r.id and r.started_at < w.ended_at) \
     or (f.changed_at is not null and r.started_at < f.changed_at and not exists \
     (select 1 from tieout_releases w where w.file_id = f.id and w.state = 'carried_out')) \
     or (b.matched_at is not null and r.id <> b.run_id and r.started_at < b.matched_at))";

/// Of an open case `k`, and `f`, `n` and `b` as in [`UNSEEN`]: it was not looked at since the line
/// could tell of its row. Whoever proposed its end did so of what it showed before.
pub(in crate::store) const UNSHOWN: &str = "(k.looked_at is null or k.looked_at < f.received_at \
     or k.looked_at < n.started_at \
     or k.looked_at < b.matched_at or exists (select 1 from tieout_releases w \
     where w.file_id = f.id and w.state = 'carried_out' and k.looked_at < w.ended_at))";

/// What makes a line `l` one that lists an attempt and was told to nobody yet.
pub(in crate::store) const LISTED: &str =
    "l.state = 'open' and not l.decides and l.kind = 'attempt'";

/// What the files of an account say of attempts, under each of their names: as
/// [`crate::decide::reach::Worth`] tells it.
pub(in crate::store) const ATTEMPT_FILES: &str = "select f.id, n.name, min(s.from_on), \
     max(s.to_on), f.received_at, \
     cast(min(case when f.lines > 0 or s.ties then 1 else 0 end) as bigint), \
     case when f.state = 'loaded' and min(case when s.covers_attempts and s.state = 'live' \
     and coalesce(s.ties, true) then 1 else 0 end) = 1 then 'whole' \
     when f.state <> 'loaded' or max(case when s.covers_attempts and s.state <> 'superseded' \
     and not coalesce(s.ties, true) then 1 else 0 end) = 1 then 'doubtful' \
     when max(case when s.covers_attempts then 1 else 0 end) = 1 then 'aside' \
     else 'other' end, max(n.first_seen_at), f.format, f.zones, \
     cast(case when f.lines > 0 then 1 else 0 end as bigint), \
     coalesce(max(n.modified_at), max(n.first_seen_at)) \
     from tieout_files f join tieout_file_names n on n.file_id = f.id \
     left join tieout_statements s on s.file_id = f.id \
     where f.account = $1 group by f.id, n.name, f.received_at, f.format, f.zones, f.lines \
     order by f.id, n.name";

/// [`Standing`]s of an account from a day on.
pub(in crate::store) const STANDINGS: &str = "select s.file_id, s.number, f.name, \
     s.bank_account, s.currency, s.statement_id, s.sequence, s.from_on, s.to_on, \
     s.opening_minor, s.closing_minor \
     from tieout_statements s join tieout_files f on f.id = s.file_id \
     where s.account = $1 and s.to_on >= $2 and s.state = 'live' and s.finality = 'final' \
     and s.ties and s.bank_account <> '' and s.opening_minor is not null \
     and s.closing_minor is not null and f.format in ('camt.053', 'mt940') \
     order by s.bank_account, s.currency, s.to_on, s.file_id, s.number";

/// What a bank's statement says of where its account stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its file.
    pub file: i64,
    /// Its place in the file.
    pub number: i64,
    /// The file's name.
    pub name: String,
    /// As the file writes it.
    pub bank_account: String,
    /// Its currency.
    pub currency: String,
    /// The bank's id of it.
    pub statement_id: String,
    /// Its number in the account's sequence.
    pub sequence: String,
    /// First day of its period.
    pub from: Option<NaiveDate>,
    /// Last day of its period.
    pub to: NaiveDate,
    /// Balance before.
    pub opening_minor: i64,
    /// Balance after.
    pub closing_minor: i64,
}

impl Standing {
    /// Where it stands: file and number.
    pub fn place(&self) -> (i64, i64) {
        (self.file, self.number)
    }
}

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementState {
    /// It counts.
    Live,
    /// A person must say whether it counts.
    Held,
    /// Another took its place, or its file was taken out.
    Superseded,
}

impl StatementState {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Held => "held",
            Self::Superseded => "superseded",
        }
    }

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Live, Self::Held, Self::Superseded];
        all.into_iter().find(|state| state.as_str() == text)
    }
}

/// A statement as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRow {
    /// Its place in the file.
    pub number: i64,
    /// The PSP account.
    pub account: String,
    /// As the file writes it.
    pub bank_account: String,
    /// Its currency; empty where it has none.
    pub currency: String,
    /// The bank's id of it.
    pub statement_id: String,
    /// Its number in the account's sequence.
    pub sequence: String,
    /// First day of its period.
    pub from: Option<NaiveDate>,
    /// Last day of its period.
    pub to: Option<NaiveDate>,
    /// What it may decide.
    pub finality: Finality,
    /// It lists every attempt.
    pub covers_attempts: bool,
    /// Balance before.
    pub opening_minor: Option<i64>,
    /// Balance after.
    pub closing_minor: Option<i64>,
    /// Its entries.
    pub entries: i64,
    /// Its lines.
    pub lines: i64,
    /// Whether it ties; none: nothing could show it.
    pub ties: Option<bool>,
    /// What became of it.
    pub state: StatementState,
    /// Why it is or was held.
    pub held_for: Option<Held>,
    /// The statement that it is another issue of: file and number.
    pub rival: Option<(i64, i64)>,
}

/// A line as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// Where it stands.
    pub place: LinePlace,
    /// SHA-256 of its file.
    pub file_sha256: String,
    /// The file's name.
    pub file_name: String,
    /// The line of the file.
    pub file_line: i64,
    /// The number of its statement.
    pub statement: i64,
    /// The PSP account.
    pub account: String,
    /// The format's word.
    pub format: String,
    /// The version that its file names; of a PSP's, which of its reports that is.
    pub version: String,
    /// What it is.
    pub kind: LineKind,
    /// Where the money went.
    pub direction: Direction,
    /// As written; none: no amount of its own.
    pub amount: Option<Money>,
    /// Its currency, amount or not.
    pub currency: Currency,
    /// Before fees.
    pub gross: Option<Money>,
    /// Fees.
    pub fee: Option<Money>,
    /// After fees.
    pub net: Option<Money>,
    /// How sure the bank is.
    pub status: EntryStatus,
    /// It may decide a row.
    pub decides: bool,
    /// A person released its file although it does not tie.
    pub untied: bool,
    /// False: it stands for several payments.
    pub itemised: bool,
    /// The likeliest tag.
    pub tag: Option<String>,
    /// Texts that patterns found besides, the likeliest first: none stands in `refs` as it is.
    pub further: Vec<String>,
    /// The PSP's id of the payment.
    pub psp_reference: Option<String>,
    /// Of a return: which payment came back.
    pub original: Option<String>,
    /// Of a return: why.
    pub return_reason: Option<String>,
    /// The kind in the format's own codes.
    pub type_code: Option<String>,
    /// The bank's reference.
    pub bank_reference: Option<String>,
    /// The PSP's batch or payout.
    pub batch: Option<String>,
    /// When it was booked.
    pub booked_on: Option<NaiveDate>,
    /// Value date.
    pub value_on: Option<NaiveDate>,
    /// Every reference.
    pub refs: Vec<Tag>,
    /// Where it stands in its life.
    pub state: LineState,
    /// Why it is open or excluded: a reason's code, or `told before by` and the place that counts.
    pub reason: Option<String>,
    /// The row that it belongs to: table and key.
    pub row: Option<(String, String)>,
    /// When the file came in.
    pub received_at: Instant,
}

/// Of a line that has no row yet: by what its row is looked for. A run goes through all of them,
/// most of which its decisions read whole a little later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLine {
    /// Where it stands.
    pub place: LinePlace,
    /// What it is.
    pub kind: LineKind,
    /// Where the money went.
    pub direction: Direction,
    /// As written; none: no amount of its own.
    pub amount: Option<Money>,
    /// False: it stands for several payments.
    pub itemised: bool,
    /// The likeliest tag.
    pub tag: Option<String>,
    /// Texts that patterns found besides: [`StoredLine::further`].
    pub further: Vec<String>,
    /// The PSP's id of the payment.
    pub psp_reference: Option<String>,
    /// Of a return: which payment came back.
    pub original: Option<String>,
    /// Every reference.
    pub refs: Vec<Tag>,
    /// Why it is open: a reason's code, once it was looked at.
    pub reason: Option<String>,
    /// The kind in the format's own codes.
    pub type_code: Option<String>,
    /// Of a return: why.
    pub return_reason: Option<String>,
    /// When it was booked.
    pub booked_on: Option<NaiveDate>,
    /// Before fees, where the file tells it apart.
    pub gross: Option<Money>,
    /// What its open case says, a reason's code; or [`LEFT`].
    pub cased: Option<String>,
}

/// A statement that ended, on its way in.
#[derive(Debug, Clone)]
pub(in crate::store) struct Ended {
    /// Its head.
    pub head: NewStatement,
    /// What is known at its end.
    pub close: StatementClose,
}

/// The columns of a file `f`, in the order in which both databases' `file_of` read them.
pub(in crate::store) const FILE: &str = "f.id, f.sha256, f.source, f.name, f.account, \
     f.spooled_as, f.format, f.version, f.state, f.received_at, f.run_id, f.statements, (select \
     count(*) from tieout_statements s where s.file_id = f.id and s.state = 'held'), f.entries, \
     f.lines, f.totals, f.problems, f.problems_total, f.changed_at, f.changed_by, f.changed_why, \
     f.said_encoding";

/// The columns of a statement, in the order in which both databases' `statement_of` read them.
pub(in crate::store) const STATEMENT: &str = "number, account, bank_account, currency, \
     statement_id, sequence, from_on, to_on, finality, covers_attempts, opening_minor, \
     closing_minor, entries, lines, ties, state, held_for, rival_file, rival_number";

/// The columns of a line `l` of a file `f`, in the order in which both databases' `line_of` read
/// them.
pub(in crate::store) const LINE: &str = "l.file_id, l.position, f.sha256, f.name, \
     l.file_line, l.statement, l.account, f.format, l.kind, l.direction, l.currency, \
     l.amount_minor, l.gross_currency, l.gross_minor, l.fee_currency, l.fee_minor, \
     l.net_currency, l.net_minor, l.status, l.decides, f.state = 'released', l.itemised, l.tag, \
     l.psp_reference, l.original, l.return_reason, l.type_code, l.bank_reference, l.batch, \
     l.booked_on, l.value_on, l.refs, l.state, case when l.reason = 'told_before' \
     then 'told before by ' || l.of_file || ':' || l.of_position else l.reason end, \
     l.table_name, l.key, f.received_at, l.further, f.version";

/// The columns of a line `l`, in the order in which both databases' `open_line_of` read them.
pub(in crate::store) const OPEN_LINE: &str = "l.file_id, l.position, l.kind, l.direction, \
     l.currency, l.amount_minor, l.itemised, l.tag, l.further, l.psp_reference, l.original, \
     l.refs, l.reason, l.type_code, l.return_reason, l.booked_on, l.gross_currency, \
     l.gross_minor, l.cased";

/// How bytes stand that are brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Came {
    /// For the first time.
    New,
    /// They are quarantined, and read once more.
    Again,
    /// They are there.
    Known,
}

/// What ends a quarantined file's case.
pub(in crate::store) const TIES_NOW: &str =
    "the same bytes were read again and tie: their lines count";

/// What is said of a file that was kept as it came, and whose content another file has.
pub(in crate::store) fn opened_text(id: i64) -> String {
    format!("it was opened: what is in it is file {id}")
}

/// Gives a file that was kept as it came ($1, in the bytes $3), because nothing opened it, the hash
/// of what was in it ($2), where that is no other file: it keeps its number and its case.
pub(in crate::store) const OPENED: &str = "update tieout_files set sha256 = $2 \
     where sha256 = $1 and raw_sha256 = $3 and state = 'quarantined' and changed_at is null \
     and not exists (select 1 from tieout_files o where o.sha256 = $2)";

/// Notes that what is in a file that was kept as it came ($1, in the bytes $4) is another file
/// ($2), and what is said of it. Its number comes back.
pub(in crate::store) const OPENED_AS: &str = "update tieout_files set state = 'loaded', \
     problems = $3, problems_total = 1, spooled_as = null where sha256 = $1 and raw_sha256 = $4 \
     and id <> $2 and state = 'quarantined' and changed_at is null returning id";

/// What is right of a file whose content is another file.
const OWN_FILE: &str = "a file of its own";

/// What is said in place of a file's problems whose content is another file.
pub(in crate::store) fn opened_problems(id: i64) -> String {
    problems_json(&[Problem::warning(0, "content", OWN_FILE, format!("file {id}"))])
}

/// What ends the case of files that were not there.
pub(in crate::store) const THERE_NOW: &str = "every file that was missing is there";

/// How a file's parts ended.
#[derive(Debug)]
pub(in crate::store) enum PartsEnd {
    /// [`Part::Whole`].
    Whole(FileSums),
    /// [`Part::Quarantine`].
    Quarantine(FileSums),
    /// The channel closed.
    Dropped,
}

/// Whether the file of a line `l` books its money the other way, as [`booked_way`] says.
const IS_UNDONE: &str = "coalesce(l.kind = 'return' and l.return_reason = 'V' \
     and l.psp_reference = l.original, 1 = 0)";

/// What a line `l` moved as its file books it, + being money in.
pub(in crate::store) fn booked_minor() -> String {
    format!(
        "(case when (l.direction = 'credit') = {IS_UNDONE} then -l.amount_minor \
         else l.amount_minor end)"
    )
}

/// The direction of a line `l` as its file books it.
pub(in crate::store) fn booked_way_sql() -> String {
    format!("(case when (l.direction = 'credit') = {IS_UNDONE} then 'debit' else 'credit' end)")
}

impl StoredLine {
    /// The direction in which its file books its money, as reports have it: [`booked_way`].
    pub fn booked_way(&self) -> Direction {
        let names = (self.psp_reference.as_deref(), self.original.as_deref());
        booked_way((self.kind, self.direction), self.return_reason.as_deref(), names)
    }
}

impl OpenLine {
    /// The direction in which its file books its money, as reports have it: [`booked_way`].
    pub fn booked_way(&self) -> Direction {
        let names = (self.psp_reference.as_deref(), self.original.as_deref());
        booked_way((self.kind, self.direction), self.return_reason.as_deref(), names)
    }
}

impl NewLine {
    /// The direction in which its file books its money, as reports have it: [`booked_way`].
    pub fn booked_way(&self) -> Direction {
        let names = (self.psp_reference.as_deref(), self.original.as_deref());
        booked_way((self.kind, self.direction), self.return_reason.as_deref(), names)
    }

    /// Where it stands before any row was looked for.
    pub(in crate::store) fn state(&self) -> LineState {
        let is_open = self.decides || self.kind == LineKind::Attempt;
        if is_open { LineState::Open } else { LineState::Excluded }
    }

    /// The texts, besides its first tag, that it may be known by, each once.
    pub(in crate::store) fn further_texts(&self) -> Vec<Cow<'_, str>> {
        let more = self.tags.iter().skip(1).chain(&self.psp_reference).chain(&self.original);
        let payouts = self.refs.iter().filter(|tag| tag.kind == TagKind::PayoutId);
        let more = more.chain(self.banks_ids()).chain(payouts.map(|tag| &tag.text));
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        for text in more.map(|text| clean(text)) {
            let is_first = self.tags.first().is_some_and(|first| clean(first) == text);
            if !is_first && !text.is_empty() && !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }

    /// Of a bank's line: the ids that the payment has between banks, which a row may store.
    fn banks_ids(&self) -> impl Iterator<Item = &String> {
        let is_banks = matches!(self.kind, LineKind::Movement | LineKind::Return)
            && self.psp_reference.is_none();
        let is_id = |tag: &&Tag| matches!(tag.kind, TagKind::TransactionId | TagKind::Uetr);
        self.refs.iter().filter(move |tag| is_banks && is_id(tag)).map(|tag| &tag.text)
    }

    /// The further tags that the line's own references do not hold as they are, as JSON: they
    /// were found within longer texts. None where there are none.
    pub(in crate::store) fn further_json(&self) -> Option<String> {
        let is_known = |tag: &String| {
            let refs = self.refs.iter().filter(|own| own.kind != TagKind::Text);
            self.tags.first() == Some(tag) || refs.map(|own| &own.text).any(|own| own == tag)
        };
        let more = self.tags.iter().skip(1).filter(|tag| !is_known(tag));
        let found: Vec<Cow<'_, str>> = more.map(|tag| clean(tag)).collect();
        (!found.is_empty()).then(|| serde_json::json!(found).to_string())
    }

    /// Its references as JSON.
    pub(in crate::store) fn refs_json(&self) -> String {
        let refs: Vec<[&str; 2]> =
            self.refs.iter().map(|tag| [tag.kind.as_str(), tag.text.as_str()]).collect();
        serde_json::json!(refs).to_string()
    }
}

/// References from their JSON; none where it is not one of [`NewLine::refs_json`].
pub(in crate::store) fn refs_of(json: &str) -> Option<Vec<Tag>> {
    let refs: Vec<(String, String)> = serde_json::from_str(json).ok()?;
    let refs =
        refs.into_iter().map(|(kind, text)| Some(Tag { kind: TagKind::parse(&kind)?, text }));
    refs.collect()
}

/// Further texts from their JSON; none where it is not one of [`NewLine::further_json`].
pub(in crate::store) fn further_of(json: &str) -> Option<Vec<String>> {
    serde_json::from_str(json).ok()
}

/// Problems as JSON.
pub(in crate::store) fn problems_json(problems: &[Problem]) -> String {
    let problems = problems.iter().map(|problem| {
        serde_json::json!([
            problem.line,
            clean(&problem.field),
            clean(&problem.expected),
            clean(&problem.found),
            problem.severity.as_str(),
        ])
    });
    serde_json::Value::from_iter(problems).to_string()
}

/// Problems from their JSON; none where it is not one of [`problems_json`].
pub(in crate::store) fn problems_of(json: &str) -> Option<Vec<Problem>> {
    let problems: Vec<(u64, String, String, String, String)> = serde_json::from_str(json).ok()?;
    let problems = problems.into_iter().map(|(line, field, expected, found, severity)| {
        Some(Problem { line, field, expected, found, severity: Severity::parse(&severity)? })
    });
    problems.collect()
}

/// A currency as it is kept: `XXX` where there is none.
pub(in crate::store) fn currency_of(text: &str) -> Option<Currency> {
    if text == Currency::NONE.code() {
        Some(Currency::NONE)
    } else {
        Currency::parse_any(text).ok()
    }
}

/// A text without the one character that PostgreSQL's texts cannot hold; shown in its place is
/// the sign for it, so that both databases keep the same.
pub(in crate::store) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{2400}")) } else { text.into() }
}

/// What a file's case says of a file that is quarantined.
pub(in crate::store) fn quarantine_text(name: &str, sums: &FileSums) -> String {
    let worst = sums.problems.iter().find(|problem| problem.severity == Severity::Error);
    let worst = worst.or(sums.problems.first());
    let what = worst.map_or_else(|| "it could not be read".to_owned(), ToString::to_string);
    let more = match sums.problems_total {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many.saturating_sub(1)),
    };
    format!("{name} is quarantined, and none of its lines counts: {what}{more}")
}

/// What a file's case says of statements that are held.
fn held_text(name: &str, held: u64) -> String {
    let what = counted(held, "statement", "statements");
    format!(
        "{what} of {name} {} held, and none of the lines counts: the same was loaded in other \
         bytes, or the file says that it is no first issue",
        if held == 1 { "is" } else { "are" },
    )
}

/// What a file's case says of card numbers.
fn card_text(name: &str, lines: u64) -> String {
    let what = counted(lines, "line", "lines");
    format!("{name} has a card number in {what}: its digits were masked before it was kept")
}

/// The case that a file needs which was brought in whole, if it does.
pub(in crate::store) fn case_of(
    name: &str,
    sums: &FileSums,
    held: u64,
) -> Option<(Reason, String)> {
    if held > 0 {
        let text = overlap_text(name, sums).unwrap_or_else(|| held_text(name, held));
        return Some((Reason::StatementCorrected, text));
    }
    let lines = sums.card_numbers;
    (lines > 0).then(|| (Reason::PanDetected, card_text(name, lines)))
}

/// A number as the databases keep it.
pub(in crate::store) fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A day as both databases read it. Years beyond four digits are no days of statements.
pub(in crate::store) fn date_text(day: NaiveDate) -> String {
    day.format("%Y-%m-%d").to_string()
}
