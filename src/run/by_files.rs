//! What the settlement files of an account say of a batch of rows: read by tag and reference in
//! one question to the database, told in the form of every other source.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::decide::expected::Expected;
use crate::decide::reach::Reach;
use crate::decide::settled::{
    counts, done_by, is_ahead, is_anothers, moves, objects, runs_back, taken_out,
};
use crate::model::evidence::{Answer, CompleteSearch, Evidence, PspObject, Route};
use crate::model::money::Money;
use crate::model::reason::Reason;
use crate::model::settlement::{Direction, LineKind, SettledLine, Tag, TagKind};
use crate::model::time::Instant;
use crate::model::transaction::{Kind, RowKey, Transaction};
use crate::psp::near::NearTags;
use crate::report::said::{back_id, ids_in, is_failed, is_given_back, moved, refund_id, settled};
use crate::run::came_back::{CameBack, OfOther, is_psps, succeeded};
use crate::run::error::{Doing, RunError};
use crate::run::match_lines::{is_of, may_refund};
use crate::settlement::kinds::{is_charge, may_be_given_back};
use crate::settlement::tags::{is_blank, names_something};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, LinePlace, OpenLine, StoredLine};
use crate::store::records::Tagged;
use crate::store::source_table::SourceTable;
use crate::store::still_told::is_banks;

/// What was found of one row.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// As evidence.
    pub evidence: Option<Evidence>,
    /// The lines that it was told by.
    pub lines: Vec<LinePlace>,
    /// Where nothing tells of it: lines that no row has, of its money and under nearly its tag,
    /// each with that tag. They are for a person.
    pub near: Vec<(String, String)>,
    /// The id that it stores, where other rows store it, too: that of a payment run. It is no
    /// claim of theirs on what it stands in.
    pub shared: Option<String>,
}

/// How an account's files are asked.
#[derive(Debug, Clone, Copy)]
pub struct ByFiles<'a> {
    /// The database.
    pub db: &'a Database,
    /// Every table: a line's text may name a row of another one.
    pub tables: &'a [SourceTable],
    /// The account.
    pub account: &'a str,
    /// Files are all there is: that they say nothing is an answer, too.
    pub alone: bool,
    /// The files that are to come for it: a PSP's lines are of the days of their zone.
    pub expected: &'a [Expected],
}

impl ByFiles<'_> {
    /// What the files say of each row, in the order of the rows.
    pub async fn ask(&self, rows: &[&Transaction], now: Instant) -> Result<Vec<Told>, RunError> {
        let mut shelf = Shelf::about(self.db, self.account, rows).await?;
        shelf.find_coded(self.db, self.tables, self.account).await?;
        self.leave_to_a_person(&mut shelf).await?;
        shelf.find_owners(self.db, self.tables, self.account, rows).await?;
        shelf.find_stored(self.db, self.tables, self.account).await?;
        let mut told: Vec<Told> = rows.iter().map(|row| self.told(row, &shelf, now)).collect();
        self.note_near(rows, &mut told).await?;
        Ok(told)
    }

    /// Notes the lines that may be a row's although its tag did not come through as it was sent.
    async fn note_near(&self, rows: &[&Transaction], told: &mut [Told]) -> Result<(), RunError> {
        let is_unnamed = |told: &Told| {
            let item = told.evidence.as_ref();
            item.is_some_and(|item| matches!(item.answer, Answer::Nothing(_)))
        };
        let mut tags = NearTags::default();
        let mut minors: HashSet<i64> = HashSet::new();
        for ((row, told), place) in rows.iter().zip(told.iter()).zip(0_u32..) {
            let (Some(tag), Some(money)) = (row.tag.usable(), row.money) else { continue };
            if self.alone && is_unnamed(told) {
                tags.add(tag, place);
                minors.insert(money.minor);
            }
        }
        if minors.is_empty() {
            return Ok(());
        }
        let minors: Vec<i64> = minors.into_iter().collect();
        let lines = self.db.open_of_money(self.account, &minors).await;
        let lines = lines.doing("looking for lines of equal money")?;
        let known = self.known(&lines).await?;
        for line in &lines {
            let names: HashSet<&str> = Names::from(line).all().collect();
            if names.iter().any(|name| known.contains(*name)) {
                continue;
            }
            for name in names {
                for place in tags.near(name) {
                    let place = usize::try_from(place).unwrap_or(usize::MAX);
                    let (Some(row), Some(told)) = (rows.get(place), told.get_mut(place)) else {
                        continue;
                    };
                    let is_its = moves(line.kind, line.direction, row.kind);
                    if is_its && moved(line) == row.money {
                        told.near.push((line.place.to_string(), name.to_owned()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Which names of these lines are rows' tags.
    async fn known(&self, lines: &[StoredLine]) -> Result<HashSet<String>, RunError> {
        let texts: HashSet<&str> = lines.iter().flat_map(|line| Names::from(line).all()).collect();
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let mut known = HashSet::new();
        if texts.is_empty() {
            return Ok(known);
        }
        for table in self.tables.iter().filter(|table| is_of(table, self.account)) {
            let found = self.db.resolve_tags(table, self.account, &texts).await;
            known.extend(found.doing("resolving tags of lines that no row has")?);
        }
        Ok(known)
    }

    /// A line whose text names several rows settles none of them.
    async fn leave_to_a_person(&self, shelf: &mut Shelf) -> Result<(), RunError> {
        let several = shelf.lines.iter().map(|line| Names::from(line).within());
        let several = several.filter(|found| found.len() > 1);
        let texts: HashSet<&str> = several.flatten().collect();
        if texts.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let mut known: HashSet<String> = HashSet::new();
        for table in self.tables {
            let found = self.db.resolve_tags(table, self.account, &texts).await;
            known.extend(found.doing("resolving tags that stand in one text")?);
        }
        for line in &mut shelf.lines {
            let found = Names::from(&*line).within();
            let rows = found.into_iter().filter(|text| known.contains(*text)).count();
            line.itemised &= rows < 2;
        }
        Ok(())
    }

    /// A bank books on a day of its own, which tells no time in any zone.
    fn dated(&self, line: &StoredLine, said: SettledLine) -> SettledLine {
        if matches!(said.kind, LineKind::Movement | LineKind::Return) {
            return said;
        }
        let at = done_by(line.booked_on, self.expected, line.received_at);
        SettledLine { at, ..said }
    }

    fn told(&self, row: &Transaction, shelf: &Shelf, now: Instant) -> Told {
        let own = shelf.told_of_row(row);
        let say = |line: &&StoredLine| {
            let said = self.dated(line, shelf.said_of(line, row));
            less_if_ahead(line, said, row, now)
        };
        let said: Vec<SettledLine> = own.iter().map(say).collect();
        let mut objects = objects(&said, row.kind, row.tag.usable());
        let payments = follow_original(row, (&own, &said), &mut objects);
        if let Some(doubted) = shelf.doubted_of(row, (&own, &said)) {
            objects = doubted;
        }
        if objects.iter().all(|object| object.captured.is_none()) {
            objects.extend(shelf.taken_out_of(row));
        }
        shelf.follow_place(row, &mut objects);
        shelf.follow_ids(row, &mut objects);
        let answer = match (objects.is_empty(), self.alone) {
            (false, _) => Answer::Found { objects, search: None },
            (true, true) => Answer::Nothing(silence(now, None)),
            (true, false) => return Told::default(),
        };
        let account = self.account.to_owned();
        let evidence = Evidence { account, route: Route::File, asked_at: now, answer };
        // What stands for several payments is no row's, and another's not this one's. A booking the
        // other way is left open: the row that it moves may be written yet.
        let is_own = |(line, its): &(&StoredLine, &SettledLine)| {
            let is_back = runs_back(line.kind, line.direction, row.kind);
            // A notice of a refund has that row as soon as the booking itself is there.
            let is_notice = line.kind == LineKind::Movement && line.format == NOTICE;
            let counts = counts(its, &said, row.kind) && (line.decides || !is_notice);
            let is_early = line.decides && !its.decides;
            counts && !is_back && !is_early && !shelf.is_another_rows(line, row)
        };
        let lines = own.into_iter().zip(&said).filter(is_own).map(|(line, _)| line.place).collect();
        let shared = shelf.shared_id(row).or(payments).map(str::to_owned);
        Told { evidence: Some(evidence), lines, near: Vec::new(), shared }
    }
}

/// What a line says of a row that it moves: of a day that is further ahead than anything is booked,
/// it informs until then, and what it tells is as old as its file.
pub(super) fn less_if_ahead(
    line: &StoredLine,
    said: SettledLine,
    row: &Transaction,
    now: Instant,
) -> SettledLine {
    let ahead = line.booked_on.filter(|day| is_ahead(Some(*day), now));
    let Some(day) = ahead.filter(|_| moves(said.kind, line.direction, row.kind)) else {
        return said;
    };
    let (word, at) = (format!("booked for {day}"), said.at.min(line.received_at));
    SettledLine { decides: false, word: Some(word), at, ..said }
}

/// A tag as banks cut it down that take letters and digits alone.
fn stripped(tag: &str) -> String {
    tag.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Files that say nothing of a row, and how far those reach that list every attempt. Without such
/// files they prove nothing: what is not among what settled may be on its way.
pub fn silence(now: Instant, reach: Option<Reach>) -> CompleteSearch {
    let counts_as_miss = reach.is_some();
    let (from, to, lacks) =
        reach.map_or((now, now, None), |reach| (reach.from, reach.to, reach.lacks));
    CompleteSearch {
        route: Route::File,
        kinds: ["charge", "refund", "payout"].map(str::to_owned).to_vec(),
        from,
        to,
        asked_at: now,
        counts_as_miss,
        lag_secs: 0,
        psp_skew_secs: None,
        listed: 0,
        witness: None,
        lacks,
    }
}

/// A refund's row may store the id of the payment that it gives back: where just one refund is the
/// row's, by its tag, that is a name of it, which it shares with the payment.
fn follow_original<'r>(
    row: &'r Transaction,
    (lines, said): (&[&StoredLine], &[SettledLine]),
    objects: &mut [PspObject],
) -> Option<&'r str> {
    let stored = row.psp_reference.as_ref().filter(|_| row.kind == Kind::Refund)?;
    let tag = row.tag.usable()?;
    let is_own =
        |object: &&mut PspObject| object.captured.is_some() && object.tag.as_deref() == Some(tag);
    let mut own = objects.iter_mut().filter(is_own);
    let (Some(only), None) = (own.next(), own.next()) else { return None };
    let gives_back = |(line, said): (&&StoredLine, &SettledLine)| {
        let name = said.payment.as_ref().unwrap_or(&said.place);
        let is_tagged = Names::from(*line).all().any(|text| text == tag);
        *name == only.reference && is_tagged && is_given_back(line, stored)
    };
    lines.iter().zip(said).any(gives_back).then(|| {
        only.aliases.push(stored.clone());
        stored.as_str()
    })
}

/// The lines of a batch, by every text that they may be known by.
pub struct Shelf {
    lines: Vec<StoredLine>,
    by_text: HashMap<String, Vec<usize>>,
    /// What came back, by the ids that it names payments by.
    came_back: CameBack,
    /// By table and key: lines that rows succeeded by and that a correction took out.
    taken_out: HashMap<(String, String), Vec<StoredLine>>,
    /// Lines that tell what a correction of another statement took out, each with that.
    doubted: HashMap<LinePlace, LinePlace>,
    /// Tags of other rows, in lines that a row is known to by its reference alone, or by a tag
    /// behind them.
    anothers: HashMap<(LinePlace, RowKey), String>,
    /// Lines that a row is there for whose money they move: a refund's, or a bank's booking.
    moved: HashSet<LinePlace>,
    /// Those of them that are a refund's row's.
    refunded: HashSet<LinePlace>,
    /// Lines under a row's tag that name the payment of another row.
    elsewhere: HashSet<(LinePlace, RowKey)>,
    /// Ids that banks' lines carry beside their tags, and that a row stores.
    stored: HashSet<String>,
    /// Those that several rows store, or several payments carry.
    shared: HashSet<String>,
    /// What the rows store that it is about: every line that carries one of these is here.
    references: HashSet<String>,
}

/// The rows that have a tag: their table's place, and they themselves.
type ByTag = HashMap<String, Vec<(usize, Tagged)>>;

impl Shelf {
    /// Every line of an account that one of these rows may be known by, and what came back of the
    /// payments among them.
    pub async fn about(
        db: &Database,
        account: &str,
        rows: &[&Transaction],
    ) -> Result<Self, RunError> {
        let tags: HashSet<String> =
            rows.iter().filter_map(|row| row.tag.usable()).map(str::to_owned).collect();
        let references: HashSet<String> =
            rows.iter().filter_map(|row| stored_id(row)).map(str::to_owned).collect();
        let (tags, asked) = (Vec::from_iter(tags), Vec::from_iter(references.iter().cloned()));
        let lines = db.lines_of(account, &tags, &asked).await;
        let lines = lines.doing("looking for lines of settlement files")?;
        let mut taken_out: HashMap<(String, String), Vec<StoredLine>> = HashMap::new();
        for (table, keys) in succeeded(rows) {
            let gone = db.taken_out_of(table, &keys).await;
            for line in gone.doing("looking for lines that were taken out")? {
                if let Some(row) = line.row.clone() {
                    taken_out.entry(row).or_default().push(line);
                }
            }
        }
        let texts: HashSet<&str> = tags.iter().chain(&asked).map(String::as_str).collect();
        let mut lines = lines;
        let beside = CameBack::about(db, account, rows, (&mut lines, &texts));
        let came_back = Box::pin(beside).await?;
        let told = lines.iter().filter(|line| line.decides && is_banks(&line.format));
        let told: Vec<LinePlace> = told.map(|line| line.place).collect();
        let doubted = db.doubted(&told).await;
        let doubted = doubted.doing("looking for what a correction took out elsewhere")?;
        let doubted = doubted.into_iter().collect();
        Ok(Self { references, came_back, doubted, ..Self::of(lines, taken_out) })
    }

    fn of(lines: Vec<StoredLine>, taken_out: HashMap<(String, String), Vec<StoredLine>>) -> Self {
        let (anothers, references) = (HashMap::new(), HashSet::new());
        let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, line) in lines.iter().enumerate() {
            for text in Names::from(line).all().collect::<HashSet<&str>>() {
                by_text.entry(text.to_owned()).or_default().push(index);
            }
        }
        let (moved, stored, shared) = (HashSet::new(), HashSet::new(), HashSet::new());
        let (came_back, doubted) = (CameBack::default(), HashMap::new());
        let (refunded, elsewhere) = (HashSet::new(), HashSet::new());
        Self {
            lines,
            by_text,
            came_back,
            taken_out,
            doubted,
            anothers,
            moved,
            refunded,
            elsewhere,
            stored,
            shared,
            references,
        }
    }

    /// What a line says of a row.
    pub fn said_of(&self, line: &StoredLine, row: &Transaction) -> SettledLine {
        let anothers = self.tag_of_another(line, row);
        let said = SettledLine { anothers, ..settled(line) };
        if row.kind == Kind::Refund && is_failed(line) {
            // It is of the refund itself; the payment's ids beside it are another row's.
            let payment = refund_id(line).map(str::to_owned);
            return SettledLine { payment, original: None, aliases: Vec::new(), ..said };
        }
        let has_row = self.refunded.contains(&line.place);
        if !self.came_back.gives_back(line, has_row) {
            return said;
        }
        let kind = if has_row { LineKind::Refund } else { said.kind };
        SettledLine { kind, original: said.payment, payment: None, aliases: Vec::new(), ..said }
    }

    /// Finds out which bookings, undone by their code or the bank's charges, are the shop's own: a
    /// row of the account has their tag, and asks just their money. They are what they would be
    /// without a code. A notice of one decides nothing, as of any payment.
    pub async fn find_coded(
        &mut self,
        db: &Database,
        tables: &[SourceTable],
        account: &str,
    ) -> Result<(), RunError> {
        let doubtful = self.lines.iter().filter(|line| is_by_code(line));
        let texts: HashSet<&str> = doubtful.flat_map(|line| Names::from(line).all()).collect();
        if texts.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let mut rows: Vec<Transaction> = Vec::new();
        for table in tables.iter().filter(|table| is_of(table, account)) {
            let found = db.rows_known_by(table, account, &texts, &[], &[]).await;
            rows.extend(found.doing("looking for the rows of coded lines")?);
        }
        for line in self.lines.iter_mut().filter(|line| is_by_code(line)) {
            let (names, money) = (Names::from(&*line), moved(line));
            if rows.iter().any(|row| is_whole_of(names, (line.kind, money), row)) {
                line.kind = LineKind::Movement;
                line.decides &= line.format != NOTICE;
            }
        }
        Ok(())
    }

    /// Finds out which ids that banks' lines carry beside their tags one row stores. What several
    /// store (the id of a whole payment run) names no payment but that of their own tag.
    pub async fn find_stored(
        &mut self,
        db: &Database,
        tables: &[SourceTable],
        account: &str,
    ) -> Result<(), RunError> {
        let ids = self.lines.iter().flat_map(banks_ids);
        let texts: HashSet<&str> = ids.filter(|id| names_something(id)).collect();
        if texts.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let mut storing: HashMap<String, HashSet<(usize, String)>> = HashMap::new();
        for (place, table) in tables.iter().enumerate().filter(|(_, it)| is_of(it, account)) {
            let found = db.keys_storing(table, account, &texts).await;
            for (text, key) in found.doing("looking for the rows that store ids of lines")? {
                storing.entry(text).or_default().insert((place, key));
            }
        }
        for (text, rows) in storing {
            let kept = if rows.len() == 1 { &mut self.stored } else { &mut self.shared };
            kept.insert(text);
        }
        let is_elsewhere = |id: &&String| !self.references.contains(*id);
        let elsewhere: Vec<String> = self.stored.iter().filter(is_elsewhere).cloned().collect();
        let carrying = match elsewhere.is_empty() {
            true => Vec::new(),
            false => {
                let lines = db.lines_of(account, &elsewhere, &[]).await;
                lines.doing("looking for payments that carry one id")?
            }
        };
        self.note_runs(&carrying);
        Ok(())
    }

    /// Notes which ids are those of whole payment runs, by these lines and those that are here.
    pub fn note_runs(&mut self, more: &[StoredLine]) {
        for id in runs_among(self.lines.iter().chain(more)) {
            self.stored.remove(&id);
            self.shared.insert(id);
        }
    }

    /// Finds out which lines are other rows' by their tag: of those that one of these rows is known
    /// to by its reference alone, or by a tag behind a likelier one, and of those that take back
    /// what one of these rows moved: a refund names the payment that it gives back, and may share
    /// its tag.
    pub async fn find_owners(
        &mut self,
        db: &Database,
        tables: &[SourceTable],
        account: &str,
        rows: &[&Transaction],
    ) -> Result<(), RunError> {
        let others: Vec<(RowKey, OfOther)> =
            rows.iter().flat_map(|row| self.others_of(row)).collect();
        let mut anothers = self.owned_elsewhere(tables, rows);
        let doubtful = self.in_doubt(rows);
        let mut texts: HashSet<&str> =
            doubtful.flat_map(|(_, line, _)| Names::from(line).all()).collect();
        texts.extend(self.behind_others(rows).flat_map(|(_, _, likelier)| likelier));
        texts.extend(others.iter().flat_map(|(_, other)| &other.tags).map(String::as_str));
        if texts.is_empty() && others.is_empty() {
            self.anothers = anothers;
            return Ok(());
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let mut tagged = ByTag::new();
        let own = tables.iter().enumerate().filter(|(_, table)| is_of(table, account));
        for (index, table) in own {
            let found = db.rows_tagged(table, account, &texts).await;
            for one in found.doing("resolving tags of lines that rows know by a reference")? {
                tagged.entry(one.tag.clone()).or_default().push((index, one));
            }
        }
        let (mut moved, mut refunded) = (HashSet::new(), HashSet::new());
        let is_anothers = |tag: &str, (row, line): (&Transaction, &StoredLine)| {
            let mut found = tagged.get(tag).into_iter().flatten();
            found.any(|(index, one)| {
                let is_row = one.key == row.key.id && is_one_table(tables, *index, row);
                !is_row && may_be_of(line, one.kind, row.kind)
            })
        };
        for (row, line, is_named) in self.in_doubt(rows) {
            if has_mover(line, &tagged, &|_| true) {
                moved.insert(line.place);
            }
            if has_mover(line, &tagged, &|kind| kind == Kind::Refund) {
                refunded.insert(line.place);
            }
            let is_doubtful = !is_named && is_by_reference(row, line);
            let mut tags = Names::from(line).all().filter(|_| is_doubtful);
            if let Some(tag) = tags.find(|tag| is_anothers(tag, (row, line))) {
                anothers.insert((line.place, row.key.clone()), tag.to_owned());
            }
        }
        for (row, line, likelier) in self.behind_others(rows) {
            if let Some(tag) = likelier.into_iter().find(|tag| is_anothers(tag, (row, line))) {
                anothers.insert((line.place, row.key.clone()), tag.to_owned());
            }
        }
        let moved = Box::pin(self.with_untagged((db, tables, account), rows, moved)).await?;
        (self.anothers, self.moved, self.refunded) = (anothers, moved, refunded);
        let has_row = |tag: &String| {
            let is_charge = |kind: Option<Kind>| kind.is_none_or(|kind| kind == Kind::Charge);
            tagged.get(tag).into_iter().flatten().any(|(_, one)| is_charge(one.kind))
        };
        let elsewhere = others
            .into_iter()
            .filter(|(_, other)| other.is_taken || other.tags.iter().any(has_row));
        self.elsewhere = elsewhere.map(|(row, other)| (other.place, row)).collect();
        Ok(())
    }

    /// Puts beside the lines that a row moves by its tag those that a refund's row knows by their
    /// id, and those that say of one of several such refunds that it failed.
    async fn with_untagged(
        &self,
        (db, tables, account): (&Database, &[SourceTable], &str),
        rows: &[&Transaction],
        mut moved: HashSet<LinePlace>,
    ) -> Result<HashSet<LinePlace>, RunError> {
        let doubtful = self.in_doubt(rows).filter(|(row, _, _)| row.kind == Kind::Charge);
        let untagged: HashMap<LinePlace, &StoredLine> = doubtful
            .filter(|(_, line, _)| !moved.contains(&line.place))
            .map(|(_, line, _)| (line.place, line))
            .collect();
        let untagged: Vec<&StoredLine> = untagged.into_values().collect();
        let known = known_by_id(db, tables, account, &untagged).await?;
        moved.extend(known);
        let unclear = untagged.iter().filter(|line| self.is_unclear(line, &moved));
        let unclear: Vec<LinePlace> = unclear.map(|line| line.place).collect();
        moved.extend(unclear);
        Ok(moved)
    }

    /// Whether a line says that a refund failed, and not which one of several: some of them have
    /// rows (their lines are in `moved`), none of which it names.
    fn is_unclear(&self, line: &StoredLine, moved: &HashSet<LinePlace>) -> bool {
        if !is_failed(line) {
            return false;
        }
        let alike = self.came_back.alike(&self.lines, line);
        let with_rows = || alike.iter().filter(|refund| moved.contains(&refund.place));
        let is_named = |refund: &&StoredLine| {
            back_id(refund).is_some_and(|own| Names::from(line).ids().any(|id| id == own))
        };
        with_rows().next().is_some() && !with_rows().any(is_named)
    }

    /// Lines under a row's tag that name another payment than the row's.
    fn others_of(&self, row: &Transaction) -> Vec<(RowKey, OfOther)> {
        let (found, _) = self.parts_of(row);
        let others = self.came_back.of_others(&self.lines, row, &found);
        others.into_iter().map(|other| (row.key.clone(), other)).collect()
    }

    /// Lines under the tag of one of these rows that carry likelier ones before it: whoever has one
    /// of those has the line, since no line pays two rows.
    fn behind_others<'s>(
        &'s self,
        rows: &'s [&'s Transaction],
    ) -> impl Iterator<Item = (&'s Transaction, &'s StoredLine, Vec<&'s str>)> {
        self.under_tags(rows).filter_map(|(row, tag, line)| {
            let likelier: Vec<&str> =
                Names::from(line).all().take_while(|own| *own != tag).collect();
            (!likelier.is_empty()).then_some((row, line, likelier))
        })
    }

    /// Lines under the tag of one of these rows that another row or a payout has already, each with
    /// that one's name, which is no tag.
    fn owned_elsewhere(
        &self,
        tables: &[SourceTable],
        rows: &[&Transaction],
    ) -> HashMap<(LinePlace, RowKey), String> {
        let owned = self.under_tags(rows).filter_map(|(row, _, line)| {
            let (table, key) = line.row.as_ref()?;
            let place = tables.iter().position(|own| own.settings.name == *table);
            let is_row = *key == row.key.id
                && (*table == row.key.table
                    || place.is_some_and(|at| is_one_table(tables, at, row)));
            let is_others = !is_row && moves(line.kind, line.direction, row.kind);
            is_others.then(|| ((line.place, row.key.clone()), format!("{table}/{key}")))
        });
        owned.collect()
    }

    /// These rows, each with its tag and the lines that carry it.
    fn under_tags<'s>(
        &'s self,
        rows: &'s [&'s Transaction],
    ) -> impl Iterator<Item = (&'s Transaction, &'s str, &'s StoredLine)> {
        let of_tag = move |(row, tag): (&'s Transaction, &'s str)| {
            let found = self.by_text.get(tag).into_iter().flatten();
            let lines = found.filter_map(|index| self.lines.get(*index));
            lines.filter(|line| line.itemised).map(move |line| (row, tag, line))
        };
        rows.iter().filter_map(|row| Some((*row, row.tag.usable()?))).flat_map(of_tag)
    }

    /// Lines that one of these rows is known to, and that may be another's; and whether a PSP names
    /// the row's payment in it, as what came back.
    fn in_doubt<'s>(
        &'s self,
        rows: &'s [&'s Transaction],
    ) -> impl Iterator<Item = (&'s Transaction, &'s StoredLine, bool)> {
        let of_row = move |row: &'s &'s Transaction| {
            let row: &'s Transaction = row;
            let (found, back) = self.parts_of(row);
            let back: BTreeSet<usize> = back.into_iter().collect();
            let all: BTreeSet<usize> = found.into_iter().chain(back.iter().copied()).collect();
            let lines = all.into_iter().filter_map(|index| Some((index, self.lines.get(index)?)));
            lines.map(move |(index, line)| (row, line, back.contains(&index) && is_psps(line)))
        };
        let is_in_doubt = |(row, line, _): &(&Transaction, &StoredLine, bool)| {
            line.itemised && (may_be_moved(line, row) || is_by_reference(row, line))
        };
        rows.iter().flat_map(of_row).filter(is_in_doubt)
    }

    /// The tag of the row that a line is another's by, where this one's reference alone stands in
    /// the line; or the line's own, where that reference may be the id of a whole payment run.
    pub fn tag_of_another(&self, line: &StoredLine, row: &Transaction) -> Option<String> {
        let known = self.anothers.get(&(line.place, row.key.clone())).cloned();
        known.or_else(|| by_instruction_alone(line, row).map(str::to_owned))
    }

    /// Whether a line carries the row's tag, and is another row's all the same: it says nothing of
    /// one that ended.
    pub fn is_behind_another(&self, line: &StoredLine, row: &Transaction) -> bool {
        !is_by_reference(row, line) && self.tag_of_another(line, row).is_some()
    }

    /// Whether a line that tells of this row is to be another row's. What says that a refund failed
    /// is the refund's row's, though it moves nothing.
    fn is_another_rows(&self, line: &StoredLine, row: &Transaction) -> bool {
        let is_its_failure = row.kind == Kind::Refund && is_failed(line);
        let is_moved = may_be_moved(line, row) && self.moved.contains(&line.place);
        let is_moved = is_moved && !is_its_failure;
        is_moved || self.tag_of_another(line, row).is_some()
    }

    /// The lines that tell of a row: those that it is known by, without bookings that run the other
    /// way and are another row's. A payment under another tag is none of them for an id that
    /// several rows store.
    pub fn told_of_row(&self, row: &Transaction) -> Vec<&StoredLine> {
        let mut own = self.of_row(row);
        own.retain(|line| {
            let is_given_back =
                self.came_back.gives_back(line, self.refunded.contains(&line.place));
            let runs_back = line.kind == LineKind::Movement && may_be_moved(line, row);
            let runs_back = runs_back && !is_given_back;
            let is_of_run = line.tag.is_some()
                && is_by_reference(row, line)
                && self.shared_id(row).is_some_and(|id| banks_ids(line).any(|own| own == id));
            let is_others = runs_back && self.is_another_rows(line, row);
            let said = (line.type_code.as_deref(), moved(line));
            let is_banks = gives_charge_back((line.kind, line.direction), said, row);
            !(is_of_run || is_others || is_banks)
        });
        own
    }

    /// All of them.
    pub fn lines(&self) -> &[StoredLine] {
        &self.lines
    }

    /// What a row succeeded by and a correction took back.
    fn taken_out_of(&self, row: &Transaction) -> Vec<PspObject> {
        let own = self.taken_out.get(&(row.key.table.clone(), row.key.id.clone()));
        // What a refund succeeded by was its own money, whatever its code says.
        let is_its_own = |line: &StoredLine| {
            let said = (line.type_code.as_deref(), line.return_reason.as_deref());
            row.kind != Kind::Charge && is_coded((line.kind, line.direction), said)
        };
        let say = |line: &StoredLine| match is_its_own(line) {
            true => SettledLine { kind: LineKind::Movement, ..settled(line) },
            false => settled(line),
        };
        let lines: Vec<SettledLine> = own.into_iter().flatten().map(say).collect();
        taken_out(&lines, row.kind, row.tag.usable())
    }

    /// Of a row that nothing pays but bookings which a correction of another statement took out:
    /// what they tell is not said any more by all who told it, so that a person looks.
    fn doubted_of(
        &self,
        row: &Transaction,
        (own, said): (&[&StoredLine], &[SettledLine]),
    ) -> Option<Vec<PspObject>> {
        let pays =
            |(line, its): &(&StoredLine, &SettledLine)| moves(its.kind, line.direction, row.kind);
        let told = own.iter().copied().zip(said);
        let (doubted, sure): (Vec<_>, Vec<_>) =
            told.partition(|both| self.doubted.contains_key(&both.0.place) && pays(both));
        if doubted.is_empty() {
            return None;
        }
        let sure: Vec<SettledLine> = sure.into_iter().map(|(_, its)| its.clone()).collect();
        let mut objects = objects(&sure, row.kind, row.tag.usable());
        if objects.iter().any(|object| object.captured.is_some()) {
            return None;
        }
        for (line, its) in doubted {
            let gone = self.doubted.get(&line.place).map(ToString::to_string);
            let why = format!(
                "{}: a correction took {} out, which {} tells still",
                Reason::StatementCorrected.as_str(),
                gone.unwrap_or_default(),
                line.place
            );
            let found = taken_out(std::slice::from_ref(its), row.kind, row.tag.usable());
            let said = |object| PspObject { returned: Some(why.clone()), ..object };
            objects.extend(found.into_iter().map(said));
        }
        Some(objects)
    }

    /// A row that succeeded by a line stores that line's place. Where a correction took the line
    /// out, and one other payment of the same money is there, that place is its name, too.
    fn follow_place(&self, row: &Transaction, objects: &mut [PspObject]) {
        let Some(stored) = row.psp_reference.as_ref() else { return };
        let own = self.taken_out.get(&(row.key.table.clone(), row.key.id.clone()));
        let is_its =
            |line: &&StoredLine| line.psp_reference.is_none() && line.place.to_string() == *stored;
        let Some(gone) = own.into_iter().flatten().find(is_its) else { return };
        let mut captured = objects.iter_mut().filter(|object| object.captured.is_some());
        if let (Some(only), None) = (captured.next(), captured.next())
            && only.captured == moved(gone)
            && only.reference != *stored
            && !only.aliases.contains(stored)
        {
            only.aliases.push(stored.clone());
        }
    }

    /// The id that a row stores, where it is not its payment's alone: others store or carry it,
    /// too, or it says nothing.
    fn shared_id<'r>(&self, row: &'r Transaction) -> Option<&'r str> {
        let is_shared = |id: &&str| self.shared.contains(*id) || !names_something(id);
        row.psp_reference.as_deref().filter(is_shared)
    }

    /// An id of a bank's line that a row stores, this one or another, is a name of its payment; one
    /// that several rows store is a name of the payment under this row's own tag. Of two bookings
    /// it is none: they are two payments, whatever they carry.
    fn follow_ids(&self, row: &Transaction, objects: &mut [PspObject]) {
        let all = objects.iter().enumerate();
        let captured: Vec<(usize, bool)> = all
            .filter(|(_, object)| object.captured.is_some())
            .map(|(at, object)| (at, object.tag.as_deref() == row.tag.usable()))
            .collect();
        let own: Vec<usize> = captured.iter().filter(|(_, own)| *own).map(|(at, _)| *at).collect();
        let only = match (captured.as_slice(), own.as_slice()) {
            ([(only, _)], _) | (_, [only]) => *only,
            _none_or_several => return,
        };
        let Some(only) = objects.get_mut(only) else { return };
        let is_its = |line: &&&StoredLine| line.place.to_string() == only.reference;
        let own = self.of_row(row);
        let Some(line) = own.iter().find(is_its) else { return };
        let shared = self.shared_id(row);
        let is_name = |id: &&str| self.stored.contains(*id) || shared == Some(*id);
        let ids = banks_ids(line).filter(is_name);
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        only.aliases.extend(ids);
        only.aliases.sort_unstable();
        only.aliases.dedup();
    }

    /// The lines that a row is known by. The bank's own reference names no payment: who stores it
    /// is not known by it, whoever else of the batch has the line.
    pub fn of_row(&self, row: &Transaction) -> Vec<&StoredLine> {
        let (mut found, back) = self.parts_of(row);
        found.extend(back);
        found.sort_unstable();
        found.dedup();
        found.into_iter().filter_map(|index| self.lines.get(index)).collect()
    }

    /// The lines that carry the row's tag or what it stores, and what came back of its payments.
    fn parts_of(&self, row: &Transaction) -> (Vec<usize>, Vec<usize>) {
        let mut found: Vec<usize> = Vec::new();
        if let Some(tag) = row.tag.usable() {
            found.extend(self.by_text.get(tag).into_iter().flatten());
        }
        let tagged = || found.iter().filter_map(|index| self.lines.get(*index));
        let is_own = |id: &&str| {
            !self.is_payments(row, &found, id) && !self.came_back.is_shared(id, tagged())
        };
        if let Some(id) = stored_id(row).filter(is_own) {
            let has_id = |line: &StoredLine| Names::from(line).but_the_banks().any(|t| t == id);
            let is_its = |index: &&usize| self.lines.get(**index).is_some_and(has_id);
            found.extend(self.by_text.get(id).into_iter().flatten().filter(is_its));
        }
        found.sort_unstable();
        found.dedup();
        if !self.elsewhere.is_empty() {
            let is_elsewhere =
                |line: &StoredLine| self.elsewhere.contains(&(line.place, row.key.clone()));
            found.retain(|index| !self.lines.get(*index).is_some_and(is_elsewhere));
        }
        let is_anothers = |line: &StoredLine| self.tag_of_another(line, row).is_some();
        let back = self.came_back.of_row(&self.lines, (row, &found), &is_anothers);
        (found, back)
    }

    /// Whether what a refund's row stores is the id of the payment that it gives back: the lines of
    /// that one, and of its other refunds, are not the row's.
    fn is_payments(&self, row: &Transaction, tagged: &[usize], id: &str) -> bool {
        let mut own = tagged.iter().filter_map(|index| self.lines.get(*index));
        row.kind == Kind::Refund && own.any(|line| is_given_back(line, id))
    }
}

/// The format whose lines decide nothing but what came back.
const NOTICE: &str = "camt.054";

/// Whether a line is the bank's charge, or undone by a code that a shop's own refund has, too.
pub fn is_coded(
    (kind, direction): (LineKind, Direction),
    (code, reason): (Option<&str>, Option<&str>),
) -> bool {
    let is_back = (kind, direction) == (LineKind::Return, Direction::Debit);
    kind == LineKind::Fee || is_back && may_be_given_back(code, reason)
}

/// The same, where nobody looked yet whose money a charge is.
fn is_by_code(line: &StoredLine) -> bool {
    let said = (line.type_code.as_deref(), line.return_reason.as_deref());
    let is_open = line.kind != LineKind::Fee || line.decides;
    is_open && is_coded((line.kind, line.direction), said)
}

/// Whether a coded line of some money may be a row's: it has the line's tag and asks just that
/// money. What is undone is a refund's or a payout's that was not given up; a charge of the bank's,
/// of all that was paid, may as well have taken a payment back.
pub fn is_whole_of(
    names: Names<'_>,
    (kind, money): (LineKind, Option<Money>),
    row: &Transaction,
) -> bool {
    let is_its = match row.kind {
        Kind::Charge => kind == LineKind::Fee,
        Kind::Refund | Kind::Payout => row.processing || row.succeeded,
    };
    let is_tagged = |tag: &str| names.all().any(|name| name == tag);
    is_its && money.is_some() && row.money == money && row.tag.usable().is_some_and(is_tagged)
}

/// Whether money in is a charge that a bank gave back, and not a payer's: its code is that of
/// charges, and it is less than half of the payment whose tag it has.
pub fn gives_charge_back(
    (kind, direction): (LineKind, Direction),
    (code, money): (Option<&str>, Option<Money>),
    row: &Transaction,
) -> bool {
    let is_in = (kind, direction) == (LineKind::Movement, Direction::Credit);
    let is_less = |(own, line): (Money, Money)| {
        own.currency == line.currency && line.minor.saturating_mul(2) < own.minor
    };
    let is_little = row.money.zip(money).is_some_and(is_less);
    is_in && row.kind == Kind::Charge && is_little && code.is_some_and(is_charge)
}

/// The ids that a payment has between banks, where a line is a bank's: each could be stored by a
/// row. A bank's own reference is none, since all payments of a batch have the same.
fn banks_ids(line: &StoredLine) -> impl Iterator<Item = &str> {
    let is_banks = matches!(line.kind, LineKind::Movement | LineKind::Return);
    Names::from(line).banks_ids().filter(move |_| is_banks)
}

/// The ids of banks' lines that several payments carry, each under an EndToEndId of its own: those
/// of whole payment runs. One in other letters or without its marks is the same.
pub fn runs_among<'l>(lines: impl Iterator<Item = &'l StoredLine>) -> HashSet<String> {
    let mut first: HashMap<&str, String> = HashMap::new();
    let mut runs = HashSet::new();
    for line in lines {
        let own = line.refs.iter().find(|tag| tag.kind == TagKind::EndToEndId);
        let Some(own) = own.filter(|tag| names_something(&tag.text)) else { continue };
        let plain = stripped(&own.text).to_lowercase();
        for id in banks_ids(line).filter(|id| *id != own.text) {
            if *first.entry(id).or_insert_with(|| plain.clone()) != plain {
                runs.insert(id.to_owned());
            }
        }
    }
    runs
}

/// What a row stores of the PSP, where that names anything.
pub fn stored_id(row: &Transaction) -> Option<&str> {
    row.psp_reference.as_deref().filter(|id| names_something(id))
}

/// The tag of a line that a row is known to by nothing but the id of its instruction: shops give
/// all payments of a run the same, and then it says nothing of the one that the row is.
pub fn by_instruction_alone<'l>(line: &'l StoredLine, row: &Transaction) -> Option<&'l str> {
    let id = stored_id(row)?;
    let tag = line.tag.as_deref().filter(|tag| *tag != id && is_by_reference(row, line))?;
    let mut kinds = line.refs.iter().filter(|own| own.text == id).map(|own| own.kind).peekable();
    let has_id = kinds.peek().is_some() && banks_ids(line).any(|own| own == id);
    (has_id && kinds.all(|kind| kind == TagKind::InstructionId)).then_some(tag)
}

/// Whether no text of a line is a row's tag: the row stores one of them.
fn is_by_reference(row: &Transaction, line: &StoredLine) -> bool {
    row.tag.usable().is_some_and(|own| Names::from(line).all().all(|name| name != own))
}

/// Whether a line takes back what a row moves, and may be what another row moves.
fn may_be_moved(line: &StoredLine, row: &Transaction) -> bool {
    is_two_sided(line) && !moves(line.kind, line.direction, row.kind)
}

/// Whether a line is one row's movement, and another's that came back; or undoes for the one what
/// it takes back from the other: a refund that failed.
fn is_two_sided(line: &StoredLine) -> bool {
    matches!(line.kind, LineKind::Refund | LineKind::Movement) || is_failed(line)
}

/// Of refunds' lines, whose tags no refund's row has: those whose own id just one such row stores.
async fn known_by_id(
    db: &Database,
    tables: &[SourceTable],
    account: &str,
    lines: &[&StoredLine],
) -> Result<HashSet<LinePlace>, RunError> {
    let refunds = lines.iter().filter(|line| line.itemised && line.kind == LineKind::Refund);
    let by_id: Vec<(LinePlace, String)> =
        refunds.filter_map(|line| Some((line.place, back_id(line)?.to_owned()))).collect();
    if by_id.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: HashSet<&String> = by_id.iter().map(|(_, id)| id).collect();
    let ids: Vec<String> = ids.into_iter().cloned().collect();
    let mut storing: HashMap<String, HashSet<RowKey>> = HashMap::new();
    for table in tables.iter().filter(|table| may_refund(table, account)) {
        let keys = db.keys_storing(table, account, &ids).await;
        let keys = keys.doing("looking for the rows that store ids of refunds")?;
        if keys.is_empty() {
            continue;
        }
        let keys: Vec<String> = keys.into_iter().map(|(_, key)| key).collect();
        let rows = db.rows_known_by(table, account, &[], &ids, &keys).await;
        let rows = rows.doing("reading the rows that store ids of refunds")?;
        for row in rows.into_iter().filter(|row| row.kind == Kind::Refund) {
            if let Some(id) = row.psp_reference {
                storing.entry(id).or_default().insert(row.key);
            }
        }
    }
    let is_known = |id: &String| storing.get(id).is_some_and(|rows| rows.len() == 1);
    Ok(by_id.into_iter().filter(|(_, id)| is_known(id)).map(|(place, _)| place).collect())
}

/// Whether a row has one of its texts as a tag whose money it moves: of a refund exactly one, since
/// it is the payment's as long as it is nobody else's.
fn has_mover(line: &StoredLine, tagged: &ByTag, wanted: &dyn Fn(Kind) -> bool) -> bool {
    let is_its = |kind: Kind| match is_failed(line) {
        true => kind == Kind::Refund,
        false => moves(line.kind, line.direction, kind),
    };
    let does =
        |kind: Option<Kind>| kind.is_some_and(|kind| wanted(kind) && is_its(kind)) && line.itemised;
    let of = |name: &str| tagged.get(name).into_iter().flatten();
    let count = |name: &str| of(name).filter(|(_, one)| does(one.kind)).count();
    let is_enough = |count: usize| match line.kind {
        LineKind::Refund => count == 1,
        _booking => count > 0,
    };
    is_two_sided(line) && Names::from(line).all().any(|name| is_enough(count(name)))
}

/// Whether a table is the one that a row stands in, under whatever name it is mapped.
fn is_one_table(tables: &[SourceTable], index: usize, row: &Transaction) -> bool {
    let own = tables.iter().find(|table| table.settings.name == row.key.table);
    tables.get(index).zip(own).is_some_and(|(other, own)| other.write == own.write)
}

/// Whether a line is to a row of a kind what it is to one of `own`: a refund's line is its row's,
/// and takes back the payment's. What a row of no known kind moves could be either.
fn may_be_of(line: &StoredLine, kind: Option<Kind>, own: Kind) -> bool {
    let does = |kind| moves(line.kind, line.direction, kind);
    let is_alike = |kind| !is_anothers(line.kind, line.direction, kind) && does(kind) == does(own);
    kind.is_none_or(is_alike)
}

/// The texts of a line that rows may know it by.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// False: it stands for several payments, and no row knows it.
    pub itemised: bool,
    tag: Option<&'a String>,
    psp_reference: Option<&'a String>,
    original: Option<&'a String>,
    further: &'a [String],
    refs: &'a [Tag],
}

impl<'a> From<&'a StoredLine> for Names<'a> {
    fn from(line: &'a StoredLine) -> Self {
        Self {
            itemised: line.itemised,
            tag: line.tag.as_ref(),
            psp_reference: line.psp_reference.as_ref(),
            original: line.original.as_ref(),
            further: &line.further,
            refs: &line.refs,
        }
    }
}

impl<'a> From<&'a OpenLine> for Names<'a> {
    fn from(line: &'a OpenLine) -> Self {
        Self {
            itemised: line.itemised,
            tag: line.tag.as_ref(),
            psp_reference: line.psp_reference.as_ref(),
            original: line.original.as_ref(),
            further: &line.further,
            refs: &line.refs,
        }
    }
}

impl<'a> Names<'a> {
    /// Each of them, the likeliest first: the tag, the ids at the PSP, what patterns found besides,
    /// every other reference.
    pub fn all(self) -> impl Iterator<Item = &'a str> {
        let own = [self.tag, self.psp_reference, self.original].into_iter().flatten();
        own.chain(self.further).chain(self.references()).map(String::as_str)
    }

    /// Whether no PSP has an id of the payment.
    pub fn is_banks(self) -> bool {
        self.psp_reference.is_none()
    }

    /// Whether any of them could be a row's: not where all that there is is the bank's own, and
    /// words that stand for none.
    pub fn has_name(self) -> bool {
        let own = [self.tag, self.psp_reference, self.original].into_iter().flatten();
        let of_payment = |tag: &&Tag| !matches!(tag.kind, TagKind::Text | TagKind::BankReference);
        let refs = self.refs.iter().filter(of_payment).map(|tag| &tag.text);
        own.chain(self.further).chain(refs).any(|text| !is_blank(text))
    }

    /// The ids by which it may name what came back at a PSP.
    pub fn ids(self) -> impl Iterator<Item = &'a str> {
        ids_in(self.psp_reference, self.original, self.refs)
    }

    /// Whether a row is known by more than the bank's own reference, which no look at the row
    /// finds its lines by.
    pub fn tell_of(self, row: &Transaction) -> bool {
        let names = [row.tag.usable(), stored_id(row)];
        self.but_the_banks().any(|text| names.contains(&Some(text)))
    }

    /// The ids that a payment has between banks, where no PSP has one of it.
    pub fn banks_ids(self) -> impl Iterator<Item = &'a str> {
        let is_banks = self.is_banks() && self.itemised;
        let is_id = |tag: &&Tag| {
            matches!(tag.kind, TagKind::InstructionId | TagKind::TransactionId | TagKind::Uetr)
        };
        let ids = self.refs.iter().filter(move |tag| is_banks && is_id(tag));
        ids.map(|tag| tag.text.as_str())
    }

    /// Every text but the bank's own reference.
    fn but_the_banks(self) -> impl Iterator<Item = &'a str> {
        let own = [self.tag, self.psp_reference, self.original].into_iter().flatten();
        let refs = self.refs.iter().filter(|tag| tag.kind != TagKind::BankReference);
        own.chain(self.further).chain(refs.map(|tag| &tag.text)).map(String::as_str)
    }

    /// The references that the line has as they stand; a payout is no row's payment.
    fn references(self) -> impl Iterator<Item = &'a String> {
        let is_payments = |tag: &&Tag| !matches!(tag.kind, TagKind::Text | TagKind::PayoutId);
        self.refs.iter().filter(is_payments).map(|tag| &tag.text)
    }

    /// The texts that were found within longer ones: none of them is better than the others, and
    /// a line that names two rows by them is neither's.
    pub fn within(self) -> Vec<&'a str> {
        let is_reference = |tag: &&String| self.references().any(|own| own == *tag);
        let first = self.tag.filter(|tag| !is_reference(tag));
        first.into_iter().chain(self.further).map(String::as_str).collect()
    }
}
