//! `run --all`: every row of a window held against what its PSP lists and what files say, each
//! row, object and line once. It repairs nothing: what is stuck went through the run's one loop
//! before, and what is found here is reported.
//!
//! Memory is flat: rows, objects and lines go through sorted files on the disk, and meet by tag.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::decide::compare::{Back, Book, Bucket, bucket, contradicted};
use crate::decide::settled::{is_anothers, objects};
use crate::exit::Exit;
use crate::model::card::masked;
use crate::model::evidence::{Answer, ObjectState, PspObject};
use crate::model::money::{Currency, Money};
use crate::model::reason::Reason;
use crate::model::settlement::{EntryStatus, LineKind, SettledLine};
use crate::model::time::{Instant, earlier, later};
use crate::model::transaction::{AccountRef, Kind, Transaction};
use crate::psp::account::{Account, Need, Question};
use crate::psp::book::Neighbour;
use crate::report::back::Back as InWords;
use crate::report::error::ReportError;
use crate::report::said::moved;
use crate::report::sorter::{BUDGET, Sorted, Sorter, tuple_key};
use crate::run::books::{Books, Tell};
use crate::run::by_files::{Shelf, gives_charge_back, less_if_ahead};
use crate::run::error::{Doing, RunError};
use crate::run::match_lines::{Owner, Twin, may_refund, owners, told_besides};
use crate::run::scene::{OpenAccount, Scene};
use crate::run::setup::{On, Window};
use crate::store::batches::TABLE as BATCHES;
use crate::store::compare::{CompareDriver, Compared};
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, LinePlace, LineState, StoredLine};
use crate::store::payouts::TABLE as PAYOUTS;
use crate::store::records::ClaimFilter;
use crate::store::source_table::SourceTable;

/// A PSP is listed in slices this long, so that what it lists never fills the memory; and each has
/// a few requests of its own, however little it holds.
const SLICE: TimeDelta = TimeDelta::hours(6);

/// Where one listed fewer objects than this, the next may be longer by so many times, up to a
/// length that a busy day behind a quiet one still fits into.
const FEW: u64 = 100;
const LONGER: i32 = 4;
const SLICE_MAX: TimeDelta = TimeDelta::days(2);

/// How long the next slice is, behind one that listed so many objects.
fn next_slice(slice: TimeDelta, listed: u64) -> TimeDelta {
    let longer = slice.checked_mul(LONGER).unwrap_or(SLICE_MAX).min(SLICE_MAX);
    if listed < FEW { longer } else { SLICE }
}

/// Chunks of rows between the database and the comparison.
const AHEAD: usize = 2;

/// What is written, or resolved, at once.
const AT_ONCE: usize = 1_000;

/// Days that a statement may begin or end beside those that it books on.
const DAYS_AROUND: u64 = 5;

/// Files and lines read at once.
const FILES: i64 = 500;
const LINES: i64 = 5_000;

/// Compares the window whole; nothing where none was asked for.
pub async fn compare(scene: &Scene<'_>, books: &mut Books, tell: Tell<'_>) -> Result<(), RunError> {
    let Some((from, window)) = asked(scene) else { return Ok(()) };
    let to = window.to.unwrap_or_else(|| scene.clock.now());
    let folder = Folder::make(scene.run_id)?;
    let mut all = Comparison {
        scene,
        span: (from, to),
        by_alias: Sorter::new(&folder.0, "aliases", BUDGET),
        by_reference: Sorter::new(&folder.0, "references", BUDGET),
        by_tag: Sorter::new(&folder.0, "tags", BUDGET),
        by_place: Sorter::new(&folder.0, "lines", BUDGET),
        unknown: BTreeSet::new(),
        folder: &folder.0,
    };
    for (name, open) in &scene.accounts {
        if is_asked(scene, name) {
            all.list_account(name, open, books, tell).await?;
            all.read_lines(name, open).await?;
        }
    }
    for table in &scene.tables {
        all.read_rows(table, window).await?;
    }
    if scene.stop.requested().is_some() {
        let text = "the window was not compared to its end: the run was asked to stop";
        books.miss(Exit::Partial, text.to_owned(), tell);
        return Ok(());
    }
    all.meet(books).await
}

/// The window's beginning, where all its rows were asked for.
fn asked<'s>(scene: &'s Scene<'_>) -> Option<(Instant, &'s Window)> {
    let options = scene.options;
    let window = options.window.as_ref().filter(|_| options.given_up && options.ids.is_none())?;
    Some((window.from?, window))
}

fn is_asked(scene: &Scene<'_>, name: &String) -> bool {
    scene.options.accounts.as_ref().is_none_or(|names| names.contains(name))
}

/// A folder that goes when the comparison is over; payments are nobody else's to read.
struct Folder(PathBuf);

impl Folder {
    fn make(run_id: &str) -> Result<Self, RunError> {
        let path = std::env::temp_dir().join(format!("tieout-{run_id}"));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(ReportError::file("creating", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is a folder of the system's own for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An object as it waits for its row.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Listed {
    account: String,
    reference: String,
    tag: Option<String>,
    kind: Kind,
    moved: Option<(String, i64)>,
    /// What was given back of it, in minor units.
    refunded: i64,
    disputed: bool,
    at: Instant,
    /// The row that it stands with stores one of its ids.
    is_stored: bool,
}

/// A line as it waits for its row.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Told {
    account: String,
    place: (i64, i64),
    tag: String,
    money: Option<(String, i64)>,
    /// It is a row's, which may lie outside of the window.
    has_row: bool,
    /// What it books besides single payments, in words.
    books: Option<String>,
}

/// A row with what files say of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    row: Transaction,
    files: Book,
    /// By how much they differ from the row within the account's tolerance.
    delta: Option<Money>,
    back: Gone,
    lines: Vec<Told>,
}

/// What went back of a row's money, by one book.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Gone {
    /// Each as a person says it.
    words: Vec<String>,
    /// It is no part that the shop gave back itself.
    is_lost: bool,
}

impl Gone {
    fn of_files(objects: &[PspObject]) -> Self {
        let moved = objects.iter().filter(|object| object.captured.is_some());
        let mut gone = Self::default();
        for object in moved {
            gone.words.extend(InWords::of(&[object]).words());
            gone.is_lost |= Back::of_object(object).contradicts(object.captured);
        }
        gone
    }

    /// What the PSP took of it in another way, and a run called returned.
    fn add_adjusted(&mut self, lines: &[&StoredLine]) {
        let is_taken = |line: &&&StoredLine| {
            let reason = line.reason.as_deref();
            line.kind == LineKind::Adjustment && reason == Some(Reason::Returned.as_str())
        };
        for line in lines.iter().filter(is_taken) {
            let money = line.gross.or(line.amount).map(|money| format!(" {money}"));
            self.words.push(format!("adjusted by{}", money.unwrap_or_default()));
            self.is_lost = true;
        }
    }

    /// Of what the PSP lists; `has_refunds`: each refund is held against rows of its own.
    fn of_listed(listed: &[Listed], has_refunds: bool) -> Self {
        let mut gone = Self::default();
        for object in listed {
            let Some(moved) = money(object.moved.as_ref()) else { continue };
            let Listed { kind, refunded, disputed, .. } = *object;
            if refunded > 0 {
                gone.words.push(format!("refunded {}", Money { minor: refunded, ..moved }));
            }
            gone.words.extend(disputed.then(|| "disputed".to_owned()));
            let minor = if has_refunds { 0 } else { refunded };
            let back = Back { minor, is_taken: disputed };
            gone.is_lost |= back.contradicts(Some(unsigned(kind, moved)));
        }
        gone
    }

    /// What one book says of it, where it says anything.
    fn text(&self, says: &str) -> Option<String> {
        (!self.words.is_empty()).then(|| format!("{says}: {}", self.words.join(", ")))
    }
}

/// A row that stores a reference, which may be another id of an object.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    account: String,
    kind: String,
    name: String,
}

/// What meets under one name: an object before the rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Party {
    Object(Box<Listed>),
    /// An object that has this id besides: its own reference.
    Alias(String),
    /// A row that stores this reference: its name.
    Stub(String),
    /// The same, among other ids.
    Stored(Box<Stored>),
    Row(Box<Held>),
    Line(Box<Told>),
    /// The line of this place is with a row.
    WithRow((i64, i64)),
}

impl Party {
    fn rank(&self) -> i64 {
        match self {
            Self::Object(_) | Self::Alias(_) => 0,
            Self::Stub(_) | Self::Stored(_) | Self::WithRow(_) => 1,
            Self::Row(_) => 2,
            Self::Line(_) => 3,
        }
    }
}

struct Comparison<'a> {
    scene: &'a Scene<'a>,
    span: (Instant, Instant),
    /// Other ids of objects, with the rows that store one: a charge's, where the intent is listed.
    by_alias: Sorter,
    by_reference: Sorter,
    by_tag: Sorter,
    by_place: Sorter,
    /// Accounts that gave no answer for the whole window.
    unknown: BTreeSet<String>,
    folder: &'a Path,
}

impl Comparison<'_> {
    /// Everything that the PSP lists around the window.
    async fn list_account(
        &mut self,
        name: &str,
        open: &OpenAccount,
        books: &mut Books,
        tell: Tell<'_>,
    ) -> Result<(), RunError> {
        let Some(api) = open.account.api() else { return Ok(()) };
        let facts = api.facts();
        let mut kinds: Vec<String> =
            facts.kinds.iter().flat_map(|kind| facts.object_kinds(*kind)).collect();
        kinds.dedup();
        let timing = &open.setup.timing;
        let mut from = earlier(self.span.0, timing.object_before_row);
        let end = later(self.span.1, timing.in_flight_max).min(self.scene.clock.now());
        let mut is_whole = open.paused.is_none();
        let mut slice = SLICE;
        while is_whole && from < end && self.scene.stop.requested().is_none() {
            let to = later(from, slice).min(end);
            let listed = self.list_slice(name, api, &kinds, (from, to)).await?;
            is_whole = listed.is_some();
            slice = next_slice(slice, listed.unwrap_or_default());
            from = to;
        }
        if !is_whole {
            self.unknown.insert(name.to_owned());
            let text = format!(
                "account {name}: it did not list the whole window; rows that depend on it are \
                 not_asked in compared.csv"
            );
            books.miss(Exit::Partial, text, tell);
        }
        Ok(())
    }

    /// How many objects a slice holds; none where it was not listed whole.
    async fn list_slice(
        &mut self,
        name: &str,
        api: &Account,
        kinds: &[String],
        window: (Instant, Instant),
    ) -> Result<Option<u64>, RunError> {
        let question =
            Question { row: 0, reference: None, tag: None, kinds: kinds.to_vec(), window };
        let looked = api.look(&[question], Need::Complete).await;
        let mut listed: u64 = 0;
        for object in looked.others() {
            // Windows are asked in whole seconds: each object counts in one slice.
            if object.created_at >= window.0 && object.created_at < window.1 {
                listed = listed.saturating_add(1);
                self.take_object(name, object)?;
            }
        }
        let mut answers = looked.evidence.iter().flatten().map(|evidence| &evidence.answer);
        let is_whole = answers.all(|answer| !matches!(answer, Answer::NoAnswer(_)));
        Ok(is_whole.then_some(listed))
    }

    fn take_object(&mut self, account: &str, object: &Neighbour) -> Result<(), RunError> {
        let kind = match object.kind {
            "refund" => Kind::Refund,
            "payout" => Kind::Payout,
            _payment => Kind::Charge,
        };
        let moved = object
            .captured
            .map(|money| (money.currency.code().to_owned(), kind.signed(money.minor)));
        let listed = Listed {
            account: account.to_owned(),
            reference: object.reference.to_string(),
            tag: object.tag.as_deref().map(str::to_owned),
            kind,
            moved,
            refunded: object.refunded_minor,
            disputed: object.disputed,
            at: object.created_at,
            is_stored: false,
        };
        for alias in &object.aliases {
            let name = [account, kind.as_str(), alias];
            let party = Party::Alias(listed.reference.clone());
            push(&mut self.by_alias, self.folder, &name, &party)?;
        }
        let name = [account, kind.as_str(), &object.reference];
        push(&mut self.by_reference, self.folder, &name, &Party::Object(Box::new(listed)))
    }

    /// The lines that files of the window's days hold.
    async fn read_lines(&mut self, account: &str, open: &OpenAccount) -> Result<(), RunError> {
        if !open.has_files {
            return Ok(());
        }
        let zone = self.scene.setup.business_timezone;
        let day = |at: Instant| at.with_timezone(&zone).date_naive();
        let days = (day(self.span.0), day(earlier(self.span.1, TimeDelta::microseconds(1))));
        let db = self.scene.db;
        // A statement's own days and those that it books on may lie a week-end apart.
        let around = chrono::Days::new(DAYS_AROUND);
        let first = days.0.checked_sub_days(around).unwrap_or(days.0);
        let last = days.1.checked_add_days(around).unwrap_or(days.1);
        let mut after = 0;
        loop {
            let files = db.files_of_days(account, (first, last), after, FILES).await;
            let files = files.doing("looking for the files of the window")?;
            let Some(last) = files.last() else { return Ok(()) };
            after = *last;
            for file in &files {
                let mut place = LinePlace { file: *file, position: 0 };
                loop {
                    let lines = db.lines_of_file(place, LINES).await;
                    let lines = lines.doing("reading the lines of the window")?;
                    let Some(last) = lines.last() else { break };
                    place = last.place;
                    let is_in = |line: &&StoredLine| {
                        let booked = line.booked_on.is_none_or(|on| on >= days.0 && on <= days.1);
                        booked && (is_money(line) || is_psps_own(line))
                    };
                    self.take_lines(account, lines.iter().filter(is_in)).await?;
                }
            }
        }
    }

    /// Lines of one account. A row outside of the window may have one that no run matched yet.
    async fn take_lines(
        &mut self,
        account: &str,
        lines: impl Iterator<Item = &StoredLine> + Clone,
    ) -> Result<(), RunError> {
        let is_open = |line: &&StoredLine| line.row.is_none() && !is_psps_own(line);
        let open: Vec<StoredLine> = lines.clone().filter(is_open).cloned().collect();
        let owned = match open.as_slice() {
            [] => Owners::new(),
            some => Box::pin(owners(self.scene, account, some)).await?,
        };
        let alone: Vec<Twin<'_>> =
            open.iter().filter(|line| !owned.contains_key(&line.place)).map(Twin::from).collect();
        let besides = told_besides(self.scene, account, &alone).await?;
        for line in lines {
            let mut told = told(line);
            // What a row of the window has no part in is nobody's, though it bears the row's tag.
            told.has_row |= owned.get(&line.place).is_some_and(|row| !self.is_within(row));
            if let Some(other) = besides.get(&line.place) {
                told.books = Some(format!("what line F{other} tells, by another report"));
            }
            let name = place_name(line.place);
            let party = Party::Line(Box::new(told));
            push(&mut self.by_place, self.folder, &[name.as_str()], &party)?;
        }
        Ok(())
    }

    /// Whether a row is one of the window.
    fn is_within(&self, row: &Owner) -> bool {
        let on = self.scene.options.window.as_ref().map(|window| window.on);
        let at = match on {
            Some(On::Attempted) => row.attempted_at,
            Some(On::Created) | None => Some(row.created_at),
        };
        at.is_some_and(|at| at >= self.span.0 && at < self.span.1)
    }

    /// The rows of a table, as they come.
    async fn read_rows(&mut self, table: &SourceTable, window: &Window) -> Result<(), RunError> {
        let mut filter =
            ClaimFilter { accounts: self.scene.options.accounts.clone(), ..ClaimFilter::default() };
        let (from, to) = (window.from, Some(self.span.1));
        match window.on {
            On::Created => (filter.created_from, filter.created_to) = (from, to),
            On::Attempted => (filter.attempted_from, filter.attempted_to) = (from, to),
        }
        let (sender, mut receiver) = mpsc::channel(AHEAD);
        let stream = self.scene.db.stream_rows(table, &filter, sender);
        let take = async {
            while let Some(rows) = receiver.recv().await {
                if self.scene.stop.requested().is_some() {
                    break;
                }
                self.take_rows(rows).await?;
            }
            drop(receiver);
            Ok::<(), RunError>(())
        };
        let (streamed, taken) = tokio::join!(stream, take);
        taken?;
        streamed.doing("reading the rows of the window")
    }

    async fn take_rows(&mut self, rows: Vec<Transaction>) -> Result<(), RunError> {
        let mut by_account: BTreeMap<String, Vec<Transaction>> = BTreeMap::new();
        for row in rows {
            by_account.entry(row.account.text().to_owned()).or_default().push(row);
        }
        for (account, rows) in by_account {
            let has_files = self.scene.accounts.get(&account).is_some_and(|open| open.has_files);
            let own: Vec<&Transaction> = rows.iter().collect();
            let shelf = match has_files {
                true => {
                    let mut shelf = Shelf::about(self.scene.db, &account, &own).await?;
                    let tables = &self.scene.tables;
                    shelf.find_coded(self.scene.db, tables, &account).await?;
                    Some(shelf)
                }
                false => None,
            };
            let owners = match &shelf {
                Some(shelf) => owners_of(self.scene, &account, shelf, &own).await?,
                None => HashMap::new(),
            };
            for row in rows {
                self.take_row(&account, row, shelf.as_ref().zip(Some(&owners)))?;
            }
        }
        Ok(())
    }

    fn take_row(
        &mut self,
        account: &str,
        row: Transaction,
        shelf: Option<(&Shelf, &Owners)>,
    ) -> Result<(), RunError> {
        let (mut files, mut back, mut delta) = (Book::None, Gone::default(), None);
        let mut lines = Vec::new();
        if let Some((shelf, owners)) = shelf {
            let known = shelf.of_row(&row).into_iter();
            // A charge that the bank gave back is no second payment.
            let is_charge = |line: &StoredLine| {
                let said = (line.type_code.as_deref(), moved(line));
                gives_charge_back((line.kind, line.direction), said, &row)
            };
            let is_own = |line: &&StoredLine| is_ours(line, &row, owners) && !is_charge(line);
            let own: Vec<&StoredLine> = known.filter(is_own).collect();
            let now = self.scene.clock.now();
            let say =
                |line: &&StoredLine| less_if_ahead(line, shelf.said_of(line, &row), &row, now);
            let said: Vec<SettledLine> = own.iter().map(say).collect();
            let told_of = objects(&said, row.kind, row.tag.usable());
            files = match own.iter().all(|line| line.kind == LineKind::Attempt) {
                // What is under way says nothing yet: the file that has the money comes later.
                true if told_of.iter().all(is_under_way) => Book::Nothing,
                _told => Book::of_objects(&told_of),
            };
            delta = self.tolerated(account, &row, files);
            if delta.is_some() {
                // As a run took it: the bridge has the difference as an item of its own.
                files = row.money.map_or(files, Book::Moved);
            }
            back = Gone::of_files(&told_of);
            back.add_adjusted(&own);
            lines = own.iter().filter(|line| is_money(line)).map(|line| told(line)).collect();
        }
        for line in &lines {
            let (file, position) = line.place;
            let name = place_name(LinePlace { file, position });
            push(&mut self.by_place, self.folder, &[name.as_str()], &Party::WithRow(line.place))?;
        }
        let kind = row.kind.as_str();
        let name = row_name(&row);
        if let Some(reference) = &row.psp_reference {
            let stub = Party::Stub(name.clone());
            push(&mut self.by_reference, self.folder, &[account, kind, reference], &stub)?;
            let (account_name, kind_name) = (account.to_owned(), kind.to_owned());
            let stored = Stored { account: account_name, kind: kind_name, name: name.clone() };
            let stored = Party::Stored(Box::new(stored));
            push(&mut self.by_alias, self.folder, &[account, kind, reference], &stored)?;
        }
        let account = account.to_owned();
        let held = Party::Row(Box::new(Held { row, files, delta, back, lines }));
        push(&mut self.by_tag, self.folder, &[&account, kind, &name], &held)
    }

    /// By how much files differ from a row that succeeded, where that is within the tolerance.
    fn tolerated(&self, account: &str, row: &Transaction, files: Book) -> Option<Money> {
        let Book::Moved(moved) = files else { return None };
        let open = self.scene.accounts.get(account)?;
        let own = row.money.filter(|_| row.succeeded)?;
        open.setup.tolerance.delta(own, moved)
    }

    /// Objects find their rows by the reference that the row stores, be it another of their ids,
    /// then by tag; then the lines that are with no row are left.
    async fn meet(mut self, books: &mut Books) -> Result<(), RunError> {
        meet_by_alias(self.by_alias, &mut self.by_reference, self.folder)?;
        let found = Groups::of(self.by_reference.finish()?);
        for group in found {
            let group = group?;
            // Several rows that store ids of one object: it stands with the one whose tag it has,
            // else with one of them, always the same.
            let stubs = group.iter().filter_map(|party| match party {
                Party::Stub(name) => Some(name.clone()),
                _other => None,
            });
            let stubs: BTreeSet<String> = stubs.collect();
            for party in group {
                let Party::Object(mut object) = party else { continue };
                object.is_stored = !stubs.is_empty();
                let own = object.tag.as_ref().map(|tag| by_tag(tag));
                let stub = own.as_ref().filter(|own| stubs.contains(*own)).or(stubs.first());
                let name = stub.cloned().or(own);
                let name = name.unwrap_or_else(|| format!("\u{1}ref {}", object.reference));
                let account = object.account.clone();
                let at = [account.as_str(), object.kind.as_str(), &name];
                push(&mut self.by_tag, self.folder, &at, &Party::Object(object))?;
            }
        }
        let (several, alone) = sort_lines(self.by_place, self.folder)?;
        let mut out = Out {
            scene: self.scene,
            span: self.span,
            several,
            number: 0,
            batch: Vec::new(),
            lonely: Vec::new(),
            counts: BTreeMap::new(),
        };
        for group in Groups::of(self.by_tag.finish()?) {
            out.take_group(group?, &self.unknown).await?;
        }
        out.resolve().await?;
        for group in Groups::of(alone.finish()?) {
            out.take_lines(group?).await?;
        }
        out.flush().await?;
        for (bucket, count) in out.counts {
            books.compared.insert(bucket.as_str(), count);
        }
        Ok(())
    }
}

/// The lines that several rows could have, none of them told yet; and those that are with no row.
fn sort_lines(by_place: Sorter, folder: &Path) -> Result<(Several, Sorter), RunError> {
    let (mut several, mut alone) = (Several::new(), Sorter::new(folder, "alone", BUDGET));
    for group in Groups::of(by_place.finish()?) {
        let (mut rows, mut line) = (Vec::new(), None);
        for party in group? {
            match party {
                Party::WithRow(place) => rows.push(place),
                Party::Line(told) => line = Some(told),
                _other => {}
            }
        }
        match (rows.as_slice(), line) {
            ([], Some(line)) => {
                let (file, position) = line.place;
                let name = place_name(LinePlace { file, position });
                push(&mut alone, folder, &[name.as_str()], &Party::Line(line))?;
            }
            ([], None) | ([_], _) => {}
            ([place, ..], _) => {
                several.insert(*place, false);
            }
        }
    }
    Ok((several, alone))
}

/// A row that stores another id of an object stands with that object's own reference.
fn meet_by_alias(
    by_alias: Sorter,
    by_reference: &mut Sorter,
    folder: &Path,
) -> Result<(), RunError> {
    for group in Groups::of(by_alias.finish()?) {
        let (mut references, mut rows) = (Vec::new(), Vec::new());
        for party in group? {
            match party {
                Party::Alias(reference) => references.push(reference),
                Party::Stored(stored) => rows.push(stored),
                _other => {}
            }
        }
        for reference in &references {
            for stored in &rows {
                let name = [stored.account.as_str(), &stored.kind, reference];
                push(by_reference, folder, &name, &Party::Stub(stored.name.clone()))?;
            }
        }
    }
    Ok(())
}

fn is_under_way(object: &PspObject) -> bool {
    matches!(object.state, ObjectState::InFlight | ObjectState::Authorized)
}

/// A line that may be a row's money: what decides, and was not taken out.
fn is_money(line: &StoredLine) -> bool {
    let is_own = matches!(line.kind, LineKind::Fee | LineKind::Payout | LineKind::Attempt);
    line.decides && !is_own && line.state != LineState::Superseded
}

/// A fee or a payout that the PSP booked: no row's, and neither held nor told before.
fn is_psps_own(line: &StoredLine) -> bool {
    let is_own = matches!(line.kind, LineKind::Fee | LineKind::Payout);
    let counts = line.state == LineState::Excluded && line.reason.is_none();
    is_own && counts && line.status == EntryStatus::Booked
}

/// Lines that several rows could have, and whether each was told: they are few.
type Several = HashMap<(i64, i64), bool>;

/// Whose lines are that no row has, by their places.
type Owners = HashMap<LinePlace, Owner>;

/// Whose the lines are that no row has and whose tag is none of these rows': another of their
/// names may be one's.
async fn owners_of(
    scene: &Scene<'_>,
    account: &str,
    shelf: &Shelf,
    rows: &[&Transaction],
) -> Result<Owners, RunError> {
    let tags: HashSet<&str> = rows.iter().filter_map(|row| row.tag.usable()).collect();
    let is_asked = |line: &&StoredLine| {
        let by_tag = line.tag.as_ref().is_some_and(|tag| tags.contains(tag.as_str()));
        line.row.is_none() && !by_tag
    };
    let lines: Vec<StoredLine> = shelf.lines().iter().filter(is_asked).cloned().collect();
    if lines.is_empty() {
        return Ok(Owners::new());
    }
    owners(scene, account, &lines).await
}

/// A line that a row has is that row's, and one that none has goes by its tag before any other
/// name, and by the first of those that is a row's: so it is with one row, but for rows that share
/// the tag.
fn is_ours(line: &StoredLine, row: &Transaction, owners: &Owners) -> bool {
    match (&line.row, owners.get(&line.place), &line.tag) {
        (Some((table, key)), ..) => (table, key) == (&row.key.table, &row.key.id),
        (None, Some(owner), _) => owner.key == row.key,
        (None, None, _) if is_anothers(line.kind, line.direction, row.kind) => false,
        // A run found it to be of several rows: it is each one's that it could be, and so nobody's.
        (None, None, _) if line.reason.as_deref() == Some(Reason::TagUnusable.as_str()) => true,
        (None, None, Some(tag)) => row.tag.usable() == Some(tag),
        (None, None, None) => true,
    }
}

fn delta_text(delta: Money) -> String {
    let way = if delta.minor < 0 { "less" } else { "more" };
    let minor = delta.minor.saturating_abs();
    format!("in files: {} {way}, within amount_tolerance", Money { minor, ..delta })
}

fn told(line: &StoredLine) -> Told {
    let minor = |money: Money| i64::try_from(line.booked_way().signed(money.minor)).ok();
    let money = line
        .amount
        .and_then(|money| minor(money).map(|minor| (money.currency.code().to_owned(), minor)));
    let books = line.row.as_ref().and_then(|(table, _)| match table.as_str() {
        PAYOUTS => Some("the bank's booking of a payout".to_owned()),
        BATCHES => Some("the booking of a batch that notices list".to_owned()),
        _rows => None,
    });
    let books = books.or_else(|| match line.kind {
        LineKind::Fee => Some("what the PSP took".to_owned()),
        LineKind::Payout => Some("what the PSP paid out".to_owned()),
        _payments => None,
    });
    Told {
        account: line.account.clone(),
        place: (line.place.file, line.place.position),
        tag: line.tag.clone().unwrap_or_default(),
        money,
        has_row: line.row.is_some(),
        books,
    }
}

fn place_name(place: LinePlace) -> String {
    format!("{:020}:{:020}", place.file, place.position)
}

fn by_tag(tag: &str) -> String {
    format!("\u{2}{tag}")
}

/// Rows without a tag of their own meet nobody but by their reference.
fn row_name(row: &Transaction) -> String {
    match row.tag.usable() {
        Some(tag) => by_tag(tag),
        None => format!("\u{1}row {} {}", row.key.table, row.key.id),
    }
}

fn push(sorter: &mut Sorter, folder: &Path, name: &[&str], party: &Party) -> Result<(), RunError> {
    let bytes = serde_json::to_vec(party);
    let bytes = bytes.map_err(|error| ReportError::file("writing", folder)(error.into()))?;
    Ok(sorter.push(tuple_key(name, party.rank()), bytes)?)
}

/// Parties of one name, name after name.
struct Groups<T> {
    sorted: Sorted,
    next: Option<(Vec<u8>, T)>,
    begun: bool,
}

/// Bytes of a key behind its name.
const RANK: usize = 8;

impl<T: DeserializeOwned> Groups<T> {
    fn of(sorted: Sorted) -> Self {
        Self { sorted, next: None, begun: false }
    }

    fn read(&mut self) -> Result<Option<(Vec<u8>, T)>, RunError> {
        let Some(pair) = self.sorted.next().transpose()? else { return Ok(None) };
        let (mut key, record) = pair;
        key.truncate(key.len().saturating_sub(RANK));
        let party = serde_json::from_slice(&record);
        let party = party
            .map_err(|error| ReportError::file("reading", Path::new("compared"))(error.into()))?;
        Ok(Some((key, party)))
    }

    fn group(&mut self) -> Result<Option<Vec<T>>, RunError> {
        if !self.begun {
            self.begun = true;
            self.next = self.read()?;
        }
        let Some((name, first)) = self.next.take() else { return Ok(None) };
        let mut group = vec![first];
        while let Some((key, party)) = self.read()? {
            if key != name {
                self.next = Some((key, party));
                break;
            }
            group.push(party);
        }
        Ok(Some(group))
    }
}

impl<T: DeserializeOwned> Iterator for Groups<T> {
    type Item = Result<Vec<T>, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.group().transpose()
    }
}

/// What was found, on its way into the database.
struct Out<'a> {
    scene: &'a Scene<'a>,
    span: (Instant, Instant),
    several: Several,
    number: i64,
    batch: Vec<Compared>,
    /// Objects that met no row of the window.
    lonely: Vec<Listed>,
    counts: BTreeMap<Bucket, u64>,
}

impl Out<'_> {
    async fn take_group(
        &mut self,
        group: Vec<Party>,
        unknown: &BTreeSet<String>,
    ) -> Result<(), RunError> {
        let (mut listed, mut rows) = (Vec::new(), Vec::new());
        for party in group {
            match party {
                Party::Object(object) => listed.push(*object),
                Party::Row(held) => rows.push(*held),
                Party::Stub(_)
                | Party::Alias(_)
                | Party::Stored(_)
                | Party::Line(_)
                | Party::WithRow(_) => {}
            }
        }
        // An object may be found by reference in several slices' borders: once is enough.
        let mut seen = HashSet::new();
        listed.retain(|object| seen.insert(object.reference.clone()));
        if rows.is_empty() {
            let moved = listed.into_iter().filter(|object| object.moved.is_some());
            let (from, to) = self.span;
            self.lonely.extend(moved.filter(|object| object.at >= from && object.at < to));
            if self.lonely.len() >= AT_ONCE {
                self.resolve().await?;
            }
            return Ok(());
        }
        let is_shared = rows.len() > 1;
        let mut lines: BTreeMap<(i64, i64), Told> = BTreeMap::new();
        listed.sort_by_key(|object| object.moved.is_none());
        for mut held in rows {
            let own = std::mem::take(&mut held.lines).into_iter();
            // What another row could have as well is no row's, and told once.
            let (unclear, own): (Vec<Told>, Vec<Told>) =
                own.partition(|line| self.several.contains_key(&line.place));
            let is_unclear = is_shared || !unclear.is_empty();
            let unclear = unclear.into_iter().filter(|line| self.is_first(line.place));
            lines.extend(unclear.map(|line| (line.place, line)));
            let psp = self.psp(&held.row, &listed, unknown);
            let found = match is_unclear {
                true => Bucket::Ambiguous,
                false => bucket(&held.row, psp, held.files),
            };
            if is_shared {
                lines.extend(own.into_iter().map(|line| (line.place, line)));
                self.put_row(&held, &[], found, None).await?;
            } else {
                held.lines = own;
                let listed_back = Gone::of_listed(&listed, self.has_refunds(&held.row));
                let other = other_payment(&held.row, &listed);
                let is_lost = other.is_some() || listed_back.is_lost || held.back.is_lost;
                let found = contradicted(&held.row, found, is_lost);
                let notes = [
                    other,
                    listed_back.text("at the PSP"),
                    held.delta.map(delta_text),
                    held.back.text("in files"),
                ];
                let notes: Vec<String> = notes.into_iter().flatten().collect();
                let note = Some(notes.join("; ")).filter(|note| !note.is_empty());
                self.put_row(&held, &listed, found, note).await?;
            }
        }
        for line in lines.values() {
            self.put(of_line(line, Bucket::Ambiguous)).await?;
        }
        if is_shared {
            for object in &listed {
                let one = of_object(object, Bucket::Ambiguous);
                self.put(one).await?;
            }
        }
        Ok(())
    }

    /// Whether a line that several rows could have is told for the first time.
    fn is_first(&mut self, place: (i64, i64)) -> bool {
        self.several.get_mut(&place).is_some_and(|told| !std::mem::replace(told, true))
    }

    /// Whether the account's refunds have rows that they are held against, each by itself.
    fn has_refunds(&self, row: &Transaction) -> bool {
        let AccountRef::Known(name) = &row.account else { return false };
        self.scene.tables.iter().any(|table| may_refund(table, name))
    }

    fn psp(&self, row: &Transaction, listed: &[Listed], unknown: &BTreeSet<String>) -> Book {
        let AccountRef::Known(name) = &row.account else { return Book::None };
        let api = self.scene.accounts.get(name).and_then(|open| open.account.api());
        if !api.is_some_and(|api| api.facts().kinds.contains(&row.kind)) {
            return Book::None;
        }
        let moved = listed.iter().filter_map(|object| money(object.moved.as_ref()));
        let moved: Vec<Money> = moved.map(|money| unsigned(row.kind, money)).collect();
        if moved.is_empty() && unknown.contains(name) {
            return Book::Unknown;
        }
        Book::of(&moved, !listed.is_empty())
    }

    /// The row with its first object and line; further ones follow, each of its own.
    async fn put_row(
        &mut self,
        held: &Held,
        listed: &[Listed],
        found: Bucket,
        note: Option<String>,
    ) -> Result<(), RunError> {
        let row = &held.row;
        let own = Some((row.key.table.clone(), row.key.id.clone()));
        let mut one = listed.first().map_or_else(Compared::default, |o| of_object(o, found));
        one.bucket = found;
        row.account.text().clone_into(&mut one.account);
        one.row.clone_from(&own);
        one.tag = row.tag.usable().unwrap_or_default().to_owned();
        one.local_status = Some(row.status.clone());
        one.local = row.money.map(|m| Money { minor: row.kind.signed(m.minor), ..m });
        one.at = Some(row.created_at);
        one.note = note.unwrap_or_default();
        if let Some(line) = held.lines.first() {
            with_line(&mut one, line);
        }
        self.put(one).await?;
        for object in listed.iter().skip(1) {
            self.put(Compared { row: own.clone(), ..of_object(object, found) }).await?;
        }
        for line in held.lines.iter().skip(1) {
            self.put(Compared { row: own.clone(), ..of_line(line, found) }).await?;
        }
        Ok(())
    }

    /// Whether the rows of lonely objects lie outside of the window, or are nowhere.
    async fn resolve(&mut self) -> Result<(), RunError> {
        let lonely = std::mem::take(&mut self.lonely);
        let mut by_account: BTreeMap<String, Vec<Listed>> = BTreeMap::new();
        for object in lonely {
            by_account.entry(object.account.clone()).or_default().push(object);
        }
        for (account, listed) in by_account {
            let tags: Vec<String> = listed.iter().filter_map(|o| o.tag.clone()).collect();
            let mut known = HashSet::new();
            for table in &self.scene.tables {
                let found = self.scene.db.resolve_tags(table, &account, &tags).await;
                known.extend(found.doing("looking for the rows of objects")?);
            }
            for object in &listed {
                let has_row = object.tag.as_ref().is_some_and(|tag| known.contains(tag));
                let found = if has_row { Bucket::OtherWindow } else { Bucket::OnlyAtPsp };
                self.put(of_object(object, found)).await?;
            }
        }
        Ok(())
    }

    async fn take_lines(&mut self, group: Vec<Party>) -> Result<(), RunError> {
        for party in group {
            let Party::Line(line) = party else { continue };
            let found = match (&line.books, line.has_row) {
                (Some(_), _) => Bucket::Agrees,
                (None, true) => Bucket::OtherWindow,
                (None, false) => Bucket::OnlyInFile,
            };
            let note = line.books.clone().unwrap_or_default();
            self.put(Compared { note, ..of_line(&line, found) }).await?;
        }
        Ok(())
    }

    async fn put(&mut self, mut one: Compared) -> Result<(), RunError> {
        self.number = self.number.saturating_add(1);
        one.number = self.number;
        let count = self.counts.entry(one.bucket).or_default();
        *count = count.saturating_add(1);
        self.batch.push(one);
        if self.batch.len() >= AT_ONCE { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), RunError> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() || self.scene.options.dry_run {
            return Ok(());
        }
        let put = self.scene.db.put_compared(self.scene.run_id, &batch).await;
        put.doing("keeping what was compared")
    }
}

/// Why a paid row that stores a PSP's id does not stand for the payment that was captured: it
/// stores the id of another, or of none. A refund may well carry its payment's tag.
fn other_payment(row: &Transaction, listed: &[Listed]) -> Option<String> {
    let stored = row.psp_reference.as_deref().filter(|_| row.succeeded)?;
    let moved = || listed.iter().filter(|object| object.moved.is_some());
    let Some(object) = moved().find(|object| object.is_stored) else {
        let found = &moved().next()?.reference;
        return Some(format!("the row stores {stored}, and {found} was captured under its tag"));
    };
    let (tag, own) = (object.tag.as_deref()?, row.tag.usable()?);
    (object.kind == Kind::Charge && tag != own).then(|| {
        let (tag, own) = (masked(tag), masked(own));
        format!("the row stores {stored}, whose tag is `{tag}` and not `{own}`")
    })
}

fn money(money: Option<&(String, i64)>) -> Option<Money> {
    let (code, minor) = money?;
    Some(Money::new(*minor, Currency::parse(code).ok()?))
}

/// As the row keeps it: without the sign of its kind.
fn unsigned(kind: Kind, money: Money) -> Money {
    Money { minor: kind.signed(money.minor), ..money }
}

fn of_object(object: &Listed, found: Bucket) -> Compared {
    let status = if object.moved.is_some() { "captured" } else { "uncaptured" };
    Compared {
        bucket: found,
        account: object.account.clone(),
        tag: object.tag.clone().unwrap_or_default(),
        psp_reference: Some(object.reference.clone()),
        psp_status: Some(status.to_owned()),
        psp: money(object.moved.as_ref()),
        at: Some(object.at),
        ..Compared::default()
    }
}

fn of_line(line: &Told, found: Bucket) -> Compared {
    let mut one = Compared {
        bucket: found,
        account: line.account.clone(),
        tag: line.tag.clone(),
        ..Compared::default()
    };
    with_line(&mut one, line);
    one
}

fn with_line(one: &mut Compared, line: &Told) {
    let (file, position) = line.place;
    one.line = Some(LinePlace { file, position });
    one.file = money(line.money.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_window_is_listed_in_few_slices_and_a_busy_one_in_short_ones() {
        let slices = |days: i64, listed: u64| {
            let (mut left, mut slice, mut slices) = (TimeDelta::days(days), SLICE, 0);
            while left > TimeDelta::zero() {
                left -= slice;
                slice = next_slice(slice, listed);
                slices += 1;
            }
            slices
        };
        assert_eq!((slices(4, 10), slices(4, FEW)), (4, 16));
        assert_eq!(slices(90, 0), 47);
        // Where objects come again, the next slice is as short as the first.
        assert_eq!(next_slice(SLICE_MAX, FEW), SLICE);
    }
}
