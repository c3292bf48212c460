//! From claimed rows of one account to decisions: asks, resolves tags and references, decides,
//! and asks again where a decision says that one more answer could turn it into a verdict.
//!
//! Every pass asks about all its rows at once; nothing here goes row by row over a network.

mod given_up;
mod shown;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::decide::absence;
use crate::decide::decision::{Asked as Why, Decision, Inputs, Verdict, Want};
use crate::decide::expected::Expected;
use crate::decide::judge::decide;
use crate::decide::person::Word;
use crate::decide::policy::Policy;
use crate::model::evidence::{
    Answer, CompleteSearch, EVIDENCE_SCHEMA, Evidence, PspObject, Route, UntaggedMatch, Witness,
};
use crate::model::reason::Reason;
use crate::model::time::{Instant, later};
use crate::model::transaction::{
    Attempts as AttemptsTold, Kind, SiblingFact, TagState, Transaction,
};
use crate::psp::account::{Looked, Need, Question};
use crate::run::asking::Asking;
use crate::run::attempts::{Attempts, RESOLVE_AT_ONCE, Unnamed};
use crate::run::by_files::{ByFiles, Told};
use crate::run::clock::DatabaseClock;
use crate::run::error::{Doing, RunError};
use crate::run::gather::shown::stays;
use crate::run::mapped::Mapped;
use crate::run::neighbours::{About, Near, Neighbours, last_attempt};
use crate::run::scene::policy_of_row;
use crate::run::siblings::keep_asked;
use crate::run::tagged::{RowsOfTag, others_of, rows_elsewhere, rows_of_tags};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::LinePlace;
use crate::store::records::{Claimed, InputsToStore, KickedBy, Tagged};
use crate::store::source_table::SourceTable;

/// How far past the window the search for a witness goes, in days, before it rests until the
/// next look: a tag that nothing newer carries for a month is a matter for a person.
const WITNESS_DAYS: i64 = 32;
/// After so many rows of a kind without a witness its others wait for the next look: where the tag
/// is broken, reading on for each row would list the account over and over.
const READ_ON_IN_VAIN: u8 = 3;
/// How far apart two zones are at most, in hours: a wrong one moves a row's times by no more.
const ZONES_APART: i64 = 26;

/// One row with its decision and everything it was made from.
pub struct Weighed {
    /// The row.
    pub claimed: Claimed,
    /// The decision.
    pub decision: Decision,
    /// When it was decided: the record, the next look and a replay all count from here.
    pub now: Instant,
    /// What it was made from, besides the row and its history.
    pub inputs: Gathered,
    /// For a hand-back: the captured objects nearest to the row, and whether each resolves.
    pub nearest: Vec<(String, bool)>,
    /// The lines of settlement files that told of it.
    pub lines: Vec<LinePlace>,
    /// The person's word that it is decided by, where it is.
    pub person: Option<Word>,
    /// The status that the mapping goes by, where it is another than the row's.
    pub mapped_from: Option<String>,
    /// Its open case ends with this look: nothing contradicts the paid row any more.
    pub clears_case: bool,
}

/// What was gathered about a row.
#[derive(Default)]
pub struct Gathered {
    /// Its siblings.
    pub siblings: Vec<SiblingFact>,
    /// What the sources said.
    pub evidence: Vec<Evidence>,
    /// References that other rows have.
    pub claimed_references: Vec<(String, String)>,
    /// Money that no row explains.
    pub untagged: Vec<UntaggedMatch>,
    /// Nearly equal tags.
    pub near_misses: Vec<(String, String)>,
    /// What was seen of the objects that have them, as far as they were read whole.
    pub near_objects: Vec<PspObject>,
}

impl Weighed {
    /// The status that the mapping goes by.
    pub fn mapped_status(&self) -> &str {
        self.mapped_from.as_deref().unwrap_or(&self.claimed.row.status)
    }

    /// What it is decided from.
    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            row: &self.claimed.row,
            siblings: &self.inputs.siblings,
            evidence: &self.inputs.evidence,
            claimed_references: &self.inputs.claimed_references,
            untagged: &self.inputs.untagged,
            near_misses: &self.inputs.near_misses,
            history: &self.claimed.history,
            asked: self.claimed.asked,
        }
    }

    /// All that the decision was made from.
    pub fn inputs_to_store<'a>(&'a self, kicked: Option<&'a KickedBy>) -> InputsToStore<'a> {
        let Inputs {
            row,
            siblings,
            evidence,
            claimed_references,
            untagged,
            near_misses,
            history,
            asked,
        } = self.inputs();
        InputsToStore {
            schema: EVIDENCE_SCHEMA,
            now: self.now,
            asked,
            row,
            siblings,
            evidence,
            claimed_references,
            untagged,
            near_misses,
            near_objects: &self.inputs.near_objects,
            history,
            kicked,
        }
    }
}

/// What asking brought besides decisions.
#[derive(Default)]
pub struct Asked {
    /// Objects listed.
    pub listed: u64,
    /// Rows with an answer.
    pub answered: u64,
    /// Rows that were given on as paid while others were still asked about.
    pub paid: usize,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Of each kind of row that was asked about: whether its tag arrives.
    pub arrivals: Vec<Arrival>,
}

/// Whether the tag of rows of one kind arrives at the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The rows' kind.
    pub kind: Kind,
    /// When the newest object with a tag of a row was made, as far as was looked.
    pub last: Option<Instant>,
    /// Where rows lack nothing but a newer one: how many captured objects without a tag of a row
    /// are newer than the last attempt of the first of these rows, and when that was.
    pub without: Option<(u64, Instant)>,
}

/// What is gathered about each row of a batch, by its index.
struct Facts {
    evidence: Vec<Evidence>,
    near: Vec<(String, String)>,
    /// Of these objects, those that were read whole.
    near_objects: Vec<PspObject>,
    claimed_references: Vec<(String, String)>,
    untagged: Vec<UntaggedMatch>,
    lines: Vec<LinePlace>,
    /// The id that the row stores with others: it claims nothing.
    shared: Option<String>,
    /// Objects that its case shows, and that gave no answer when they were asked for.
    unanswered: Vec<String>,
}

/// A decision with the instant that it was made for. Later passes take minutes, and a row that
/// they do not concern keeps the instant of its own: a wait of seconds that is recorded minutes
/// later would be over before it began.
struct Decided {
    decision: Decision,
    now: Instant,
}

/// What is not listed in any case goes back further than this: an account that takes ten payments a
/// second then has ninety pages, a second of requests.
const RECENT: chrono::TimeDelta = chrono::TimeDelta::minutes(15);

/// Between the plan of a list that ends now and its first request.
const A_MOMENT: chrono::TimeDelta = chrono::TimeDelta::seconds(2);

/// Takes rows that are decided while others are still asked about.
pub type Early<'a> = &'a (dyn Fn(Vec<Weighed>) + Send + Sync);

/// Rows with what is known and decided of each, by the same index.
struct Batch {
    rows: Vec<Claimed>,
    facts: Vec<Facts>,
    decisions: Vec<Decided>,
}

impl Batch {
    /// Takes the rows out that no further answer could change.
    fn take_paid(&mut self) -> Self {
        let is_paid = |one: &Decided| matches!(one.decision.verdict, Verdict::Succeeded);
        let which: Vec<bool> = self.decisions.iter().map(is_paid).collect();
        Self {
            rows: take_those(&mut self.rows, &which),
            facts: take_those(&mut self.facts, &which),
            decisions: take_those(&mut self.decisions, &which),
        }
    }
}

fn take_those<T>(all: &mut Vec<T>, which: &[bool]) -> Vec<T> {
    let mut which = which.iter();
    all.extract_if(.., |_| which.next().copied().unwrap_or(false)).collect()
}

impl Asked {
    fn note_answered(&mut self, decisions: &[Decided]) {
        // What was decided was answered, also where another route was not.
        let is_answered = |one: &&Decided| one.decision.reason != Reason::PspUnavailable;
        let answered = decisions.iter().filter(is_answered).count();
        self.answered = self.answered.saturating_add(u64::try_from(answered).unwrap_or(u64::MAX));
    }
}

/// Asks and decides for the rows of one table at one account.
pub struct Gather<'a> {
    /// The database.
    pub db: &'a Database,
    /// The table.
    pub table: &'a SourceTable,
    /// Every table.
    pub tables: &'a [SourceTable],
    /// The account.
    pub account: &'a Asking,
    /// Whether its settlement files are read, too.
    pub has_files: bool,
    /// The files that are to come for it.
    pub expected: &'a [Expected],
    /// Its name.
    pub account_name: &'a str,
    /// Policies by what absence means in the row's status.
    pub policies: &'a BTreeMap<bool, Policy>,
    /// The database's clock.
    pub clock: &'a DatabaseClock,
    /// The statuses that the mapping goes by, where they are others than the rows'.
    pub mapped: &'a Mapped,
    /// Every route is asked, whatever the judge would be content with: a person decides.
    pub whole: bool,
    /// Takes rows that are paid before the search for the others, which takes its time.
    pub early: Option<Early<'a>>,
}

impl Gather<'_> {
    /// Takes the rows through all passes.
    pub async fn weigh(&self, mut rows: Vec<Claimed>) -> Result<(Vec<Weighed>, Asked), RunError> {
        let began = tokio::time::Instant::now();
        let mut asked = Asked::default();
        self.mark_shared_tags(&mut rows).await?;
        let mut facts: Vec<Facts> = rows.iter().map(|_| Facts::empty()).collect();
        let mut siblings = self.siblings(&rows).await?;
        let mut neighbours = Neighbours::default();
        self.read_files(&rows, &mut facts).await?;
        self.read_attempts(&rows, &mut facts, &mut neighbours, &mut asked).await?;

        let everyone: Vec<usize> = (0..rows.len()).collect();
        self.ask(&rows, &everyone, Need::Find, &mut facts, &mut neighbours, &mut asked).await?;
        let mut decisions = self.decide_all(&rows, &facts, &siblings);

        let wanting = self.wanting(&rows, &decisions, Want::List);
        self.ask(&rows, &wanting, Need::Complete, &mut facts, &mut neighbours, &mut asked).await?;
        // Rows that the first pass listed already may lack a witness as well.
        let unproven = indices(&decisions, |d| {
            self.whole || d.wants == Some(Want::List) || d.reason == Reason::AbsenceUnproven
        });
        self.find_witnesses(&rows, &unproven, &mut facts, &mut neighbours, &mut asked).await?;
        self.decide_again(&rows, &facts, &siblings, &unproven, &mut decisions);
        self.look_past_lists(&rows, &siblings, &mut facts, &mut decisions).await;
        self.ask_for_shown(&rows, &siblings, &mut facts, &mut decisions).await?;

        let mut batch = Batch { rows, facts, decisions };
        self.give_paid(&mut batch, &mut siblings, &mut asked).await?;
        let Batch { rows, mut facts, mut decisions } = batch;
        let wanting = self.wanting(&rows, &decisions, Want::Search);
        self.ask(&rows, &wanting, Need::Search, &mut facts, &mut neighbours, &mut asked).await?;
        self.decide_again(&rows, &facts, &siblings, &wanting, &mut decisions);

        self.ask_for_given_up(&rows, &mut siblings, &mut facts, &mut decisions).await?;
        self.look_at_siblings_again(&rows, &mut siblings, &facts, &mut decisions).await?;
        self.check_references(&rows, &siblings, &mut facts, &mut decisions).await?;
        let nearest = self
            .check_hand_backs(&rows, &siblings, &neighbours, &mut facts, &mut decisions)
            .await?;
        asked.arrivals = self.arrivals(&rows, &facts, &decisions, &neighbours).await?;
        asked.note_answered(&decisions);
        asked.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let batch = Batch { rows, facts, decisions };
        Ok((self.mapped_of(weighed(batch, siblings, nearest)), asked))
    }

    /// The rows with the statuses that the mapping goes by.
    fn mapped_of(&self, mut rows: Vec<Weighed>) -> Vec<Weighed> {
        for row in &mut rows {
            row.mapped_from = self.mapped.get(&row.claimed.row.key.id).cloned();
        }
        rows
    }

    /// Gives on the rows that are paid, where others are to be searched for: they can be written
    /// meanwhile.
    async fn give_paid(
        &self,
        batch: &mut Batch,
        siblings: &mut HashMap<String, Vec<SiblingFact>>,
        asked: &mut Asked,
    ) -> Result<(), RunError> {
        let Some(early) = self.early else { return Ok(()) };
        if self.wanting(&batch.rows, &batch.decisions, Want::Search).is_empty() {
            return Ok(());
        }
        let mut paid = batch.take_paid();
        let keys = paid.rows.iter().map(|one| &one.row.key.id);
        let siblings: HashMap<String, Vec<SiblingFact>> =
            keys.filter_map(|key| siblings.remove_entry(key)).collect();
        let Batch { rows, facts, decisions } = &mut paid;
        self.check_references(rows, &siblings, facts, decisions).await?;
        asked.note_answered(&paid.decisions);
        asked.paid = paid.rows.len();
        early(self.mapped_of(weighed(paid, siblings, HashMap::new())));
        Ok(())
    }

    /// The rows that a route is asked about: those whose decision wants it, and all that have a tag
    /// where a person decides.
    fn wanting(&self, rows: &[Claimed], decisions: &[Decided], want: Want) -> Vec<usize> {
        let by_person = |index: usize| {
            self.whole && rows.get(index).is_some_and(|one| one.row.tag.usable().is_some())
        };
        let wants = |(index, decided): (usize, &Decided)| {
            (decided.decision.wants == Some(want) || by_person(index)).then_some(index)
        };
        decisions.iter().enumerate().filter_map(wants).collect()
    }

    /// A tag that another row has too, in this table or in another mapped one, settles neither: the
    /// table that comes first in the file has no better claim. What is under watch goes on looking
    /// by it: the worker may have made the new row that shares it, and money is to be seen.
    async fn mark_shared_tags(&self, rows: &mut [Claimed]) -> Result<(), RunError> {
        let asking: Vec<&Transaction> = rows
            .iter()
            .filter(|claimed| claimed.asked != Why::Watch)
            .map(|claimed| &claimed.row)
            .filter(|row| row.tag.usable().is_some())
            .collect();
        if asking.is_empty() {
            return Ok(());
        }
        let mut shared = self
            .db
            .shared_tags(self.table, self.account_name, &asking)
            .await
            .doing("looking for rows of one tag")?;
        let others: Vec<&SourceTable> =
            self.tables.iter().filter(|other| self.may_share(other)).collect();
        shared.extend(self.written_otherwise(&asking).await?);
        let own = self.may_share_between_kinds(&asking).then_some(self.table);
        for other in others.into_iter().chain(own) {
            shared.extend(self.shared_with(other, &asking).await?);
        }
        for claimed in rows.iter_mut().filter(|claimed| shared.contains(&claimed.row.key.id)) {
            if let TagState::Usable(tag) = &claimed.row.tag
                && claimed.asked != Why::Watch
            {
                claimed.row.tag = TagState::Shared(tag.clone());
            }
        }
        Ok(())
    }

    /// The keys of those of these rows whose tag another one of their table has, made of other
    /// values: of `{shop}-{number}`, `a-b` and `c` make the tag of `a` and `b-c`.
    async fn written_otherwise(&self, asking: &[&Transaction]) -> Result<Vec<String>, RunError> {
        let template = self.table.tag_template(self.account_name);
        // What is made of one value alone is made of no other.
        let Some(template) = template.filter(|made| made.columns().count() > 1) else {
            return Ok(Vec::new());
        };
        let is_plain = |tag: &str| template.readings(tag, 1).is_some_and(|ways| ways.len() == 1);
        let tags: HashSet<&str> =
            asking.iter().filter_map(|row| row.tag.usable()).filter(|tag| !is_plain(tag)).collect();
        if tags.is_empty() {
            return Ok(Vec::new());
        }
        let tags: Vec<String> = tags.into_iter().map(str::to_owned).collect();
        let found = self.db.rows_tagged(self.table, self.account_name, &tags).await;
        let found = found.doing("looking for rows of one tag that is made otherwise")?;
        let by_tag = by_tag(&found);
        let is_shared = |row: &&&Transaction| {
            let others = row.tag.usable().and_then(|tag| by_tag.get(tag)).into_iter().flatten();
            let is_other = |one: &&&Tagged| one.key != row.key.id;
            others.filter(is_other).any(|one| one.kind.is_none_or(|kind| kind == row.kind))
        };
        Ok(asking.iter().filter(is_shared).map(|row| row.key.id.clone()).collect())
    }

    /// Whether a row of another mapped table may carry the tag of one of this table. Rows that are
    /// mapped twice are no others to themselves: where the keys differ, that cannot be told.
    fn may_share(&self, other: &SourceTable) -> bool {
        let (mine, others) = (&self.table.settings, &other.settings);
        let is_at_account = others.accounts.values().any(|name| name == self.account_name);
        let can_be_told = other.write != self.table.write || others.key == mine.key;
        others.name != mine.name && is_at_account && can_be_told
    }

    /// Whether rows of this table itself may share a tag although they are of several kinds.
    fn may_share_between_kinds(&self, asking: &[&Transaction]) -> bool {
        let has_kinds = self.table.settings.kind.constant.is_none();
        let pays_out = asking.iter().any(|row| row.kind != Kind::Charge);
        has_kinds && pays_out && self.account.api().is_none()
    }

    /// Whether what one kind moves could be taken for what the other does. A payment and its refund
    /// are two objects at the PSP, and a credit and a debit at the bank. A refund and a payout are
    /// debits both, and a file's line does not say which.
    fn may_be_one(&self, kind: Kind, other: Kind) -> bool {
        let pays_out = |kind| kind != Kind::Charge;
        let is_by_files = self.account.api().is_none();
        kind == other || (is_by_files && pays_out(kind) && pays_out(other))
    }

    /// The keys of those of these rows whose tag a row of another mapped table has, too: in any
    /// status, of a kind that may be taken for it. Of their own table those of another kind.
    async fn shared_with(
        &self,
        other: &SourceTable,
        asking: &[&Transaction],
    ) -> Result<Vec<String>, RunError> {
        let constant = other.settings.kind.constant.as_deref().and_then(Kind::parse);
        let is_alike =
            |row: &Transaction| constant.is_none_or(|kind| self.may_be_one(kind, row.kind));
        let alike: Vec<&Transaction> = asking.iter().copied().filter(|row| is_alike(row)).collect();
        let tags: HashSet<&str> = alike.iter().filter_map(|row| row.tag.usable()).collect();
        let tags: Vec<String> = tags.into_iter().map(str::to_owned).collect();
        if tags.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.db.rows_tagged(other, self.account_name, &tags).await;
        let found = found.doing("looking for rows of one tag in another table")?;
        let by_tag = by_tag(&found);
        let is_same_table = other.write == self.table.write;
        let is_own = other.settings.name == self.table.settings.name;
        let is_other = |row: &Transaction, one: &Tagged| {
            let may_be = match one.kind {
                Some(kind) => self.may_be_one(kind, row.kind) && !(is_own && kind == row.kind),
                // What a row of no known kind moves could be this row's.
                None => !is_own,
            };
            may_be && !(is_same_table && one.key == row.key.id)
        };
        let is_shared = |row: &Transaction| {
            let tagged = row.tag.usable().and_then(|tag| by_tag.get(tag));
            tagged.is_some_and(|tagged| tagged.iter().any(|one| is_other(row, one)))
        };
        Ok(alike.iter().filter(|row| is_shared(row)).map(|row| row.key.id.clone()).collect())
    }

    /// The account's settlement files; `alone`: that they say nothing is an answer, too.
    fn by_files(&self, alone: bool) -> ByFiles<'_> {
        let (db, tables, account) = (self.db, self.tables, self.account_name);
        ByFiles { db, tables, account, alone, expected: self.expected }
    }

    /// Those of its files that list every attempt.
    fn attempts(&self) -> Attempts<'_> {
        Attempts {
            db: self.db,
            table: self.table,
            tables: self.tables,
            account: self.account_name,
            expected: self.expected,
        }
    }

    /// What settlement files say stands beside what the API says, and before it is asked.
    async fn read_files(&self, rows: &[Claimed], facts: &mut [Facts]) -> Result<(), RunError> {
        if !self.has_files {
            return Ok(());
        }
        let alone = self.account.api().is_none();
        let asking = rows.iter().enumerate().filter(|(_, claimed)| can_be_asked(&claimed.row));
        let (indices, asking): (Vec<usize>, Vec<&Transaction>) =
            asking.map(|(index, claimed)| (index, &claimed.row)).unzip();
        let told = self.by_files(alone).ask(&asking, self.clock.now()).await?;
        for (index, Told { evidence, lines, near, shared }) in indices.into_iter().zip(told) {
            if let Some(fact) = facts.get_mut(index) {
                fact.evidence.extend(evidence);
                fact.lines = lines;
                fact.shared = shared;
                fact.near.extend(near);
            }
        }
        Ok(())
    }

    /// Files that list every attempt can say that a row's is not among them, where files are all
    /// that there is.
    async fn read_attempts(
        &self,
        rows: &[Claimed],
        facts: &mut [Facts],
        neighbours: &mut Neighbours,
        asked: &mut Asked,
    ) -> Result<(), RunError> {
        if self.account.api().is_some() {
            return Ok(());
        }
        let is_unnamed = |fact: &Facts| {
            fact.evidence.iter().any(|item| matches!(item.answer, Answer::Nothing(_)))
        };
        let unnamed: Vec<usize> =
            (0..rows.len()).filter(|index| facts.get(*index).is_some_and(is_unnamed)).collect();
        let questions: Vec<Unnamed<'_>> = unnamed
            .iter()
            .filter_map(|index| rows.get(*index))
            .map(|claimed| self.unnamed(claimed))
            .collect();
        let listed = self.attempts().ask(&questions, self.clock.now()).await?;
        asked.listed =
            asked.listed.saturating_add(u64::try_from(listed.others.len()).unwrap_or(u64::MAX));
        neighbours.take(listed.others, &[], &[]);
        for (index, told) in unnamed.into_iter().zip(listed.rows) {
            let Some(fact) = facts.get_mut(index) else { continue };
            for item in &mut fact.evidence {
                if let Answer::Nothing(search) = &mut item.answer {
                    *search = told.search.clone();
                }
            }
            fact.near.extend(told.near);
            fact.untagged.extend(told.untagged);
        }
        Ok(())
    }

    fn unnamed<'r>(&self, claimed: &'r Claimed) -> Unnamed<'r> {
        let Claimed { row, history, .. } = claimed;
        let (_, to) = absence::needed_window(row, history, self.policy(row));
        let last_attempt = last_attempt(claimed);
        Unnamed { row, from: absence::first_attempt(row), to, last_attempt }
    }

    async fn siblings(
        &self,
        rows: &[Claimed],
    ) -> Result<HashMap<String, Vec<SiblingFact>>, RunError> {
        let with_key: Vec<&Transaction> =
            rows.iter().map(|c| &c.row).filter(|row| row.natural_key.is_some()).collect();
        if with_key.is_empty() {
            return Ok(HashMap::new());
        }
        self.db.siblings(self.table, &with_key).await.doing("reading sibling rows")
    }

    /// Asking took its time: how the siblings of rows to be handed back stand now.
    async fn look_at_siblings_again(
        &self,
        rows: &[Claimed],
        siblings: &mut HashMap<String, Vec<SiblingFact>>,
        facts: &[Facts],
        decisions: &mut [Decided],
    ) -> Result<(), RunError> {
        let again =
            indices(decisions, |d| self.whole || matches!(d.verdict, Verdict::Retryable(_)));
        let keyed: Vec<&Transaction> = again
            .iter()
            .filter_map(|index| rows.get(*index).map(|claimed| &claimed.row))
            .filter(|row| row.natural_key.is_some())
            .collect();
        if keyed.is_empty() {
            return Ok(());
        }
        let now = self.db.siblings(self.table, &keyed).await;
        let mut now = now.doing("reading sibling rows again")?;
        for row in keyed {
            let before = siblings.remove(&row.key.id).unwrap_or_default();
            if let Some(now) = now.get_mut(&row.key.id) {
                keep_asked(&before, now);
            }
        }
        siblings.extend(now);
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    fn policy(&self, row: &Transaction) -> &Policy {
        let status = self.mapped.get(&row.key.id).unwrap_or(&row.status);
        policy_of_row(self.policies, self.table, status)
    }

    fn decide_one(
        &self,
        claimed: &Claimed,
        facts: &Facts,
        siblings: &HashMap<String, Vec<SiblingFact>>,
    ) -> Decided {
        let inputs = Inputs {
            row: &claimed.row,
            siblings: siblings.get(&claimed.row.key.id).map_or(&[], Vec::as_slice),
            evidence: &facts.evidence,
            claimed_references: &facts.claimed_references,
            untagged: &facts.untagged,
            near_misses: &facts.near,
            history: &claimed.history,
            asked: claimed.asked,
        };
        let now = self.clock.now();
        let policy = self.policy(&claimed.row);
        let decision = decide(&inputs, policy, now);
        match facts.lost() {
            Some(lost) => {
                Decided { decision: stays(claimed, decision.wants, lost, policy, now), now }
            }
            None => Decided { decision, now },
        }
    }

    fn decide_all(
        &self,
        rows: &[Claimed],
        facts: &[Facts],
        siblings: &HashMap<String, Vec<SiblingFact>>,
    ) -> Vec<Decided> {
        rows.iter().zip(facts).map(|(row, fact)| self.decide_one(row, fact, siblings)).collect()
    }

    fn decide_again(
        &self,
        rows: &[Claimed],
        facts: &[Facts],
        siblings: &HashMap<String, Vec<SiblingFact>>,
        which: &[usize],
        decisions: &mut [Decided],
    ) {
        for index in which {
            let (Some(row), Some(fact), Some(decision)) =
                (rows.get(*index), facts.get(*index), decisions.get_mut(*index))
            else {
                continue;
            };
            *decision = self.decide_one(row, fact, siblings);
        }
    }

    /// One pass: asks about the rows at `which`, adds what came back to their facts.
    async fn ask(
        &self,
        rows: &[Claimed],
        which: &[usize],
        need: Need,
        facts: &mut [Facts],
        neighbours: &mut Neighbours,
        asked: &mut Asked,
    ) -> Result<(), RunError> {
        let questions: Vec<Question> = which
            .iter()
            .filter_map(|index| rows.get(*index).map(|claimed| (*index, claimed)))
            .filter(|(_, claimed)| can_be_asked(&claimed.row))
            .map(|(index, claimed)| self.question(index, claimed))
            .collect();
        let Some(account) = self.account.api().filter(|_| !questions.is_empty()) else {
            return Ok(());
        };
        let mut looked = account.look(&questions, need).await;
        asked.listed = asked.listed.saturating_add(looked.listed);
        let about = asked_about(rows, &questions);
        neighbours.take(looked.take_others(), &about, &looked.evidence);
        self.drop_known_tags(&about, neighbours, &mut looked.near).await?;
        self.settle_witnesses(neighbours).await?;
        file_answers(&questions, looked, facts);
        set_witnesses(rows, facts, which, neighbours);
        Ok(())
    }

    /// A tag that is nearly this row's and belongs to another row of its kind is that row's own.
    async fn drop_known_tags(
        &self,
        about: &[About<'_>],
        neighbours: &mut Neighbours,
        near: &mut [Vec<(String, String)>],
    ) -> Result<(), RunError> {
        let tags: Vec<String> = near.iter().flatten().map(|(_, tag)| tag.clone()).collect();
        for chunk in tags.chunks(RESOLVE_AT_ONCE) {
            self.resolve(neighbours, chunk).await?;
        }
        for (own, About { kind, .. }) in near.iter_mut().zip(about) {
            own.retain(|(reference, tag)| !neighbours.is_row(reference, tag, *kind));
        }
        Ok(())
    }

    fn question(&self, index: usize, claimed: &Claimed) -> Question {
        let Claimed { row, history, .. } = claimed;
        let policy = self.policy(row);
        let (from, to) = absence::needed_window(row, history, policy);
        // A watch looks for what should not be there: a call that lived longer than any call may
        // made its object after the window of the proof. And where nothing tells of sends, any of
        // them may have made one up to now: the row's own, or a second one.
        let is_open = claimed.asked == Why::Watch || row.attempts == AttemptsTold::Unknown;
        // Times in a wrong zone put the window hours before the row's own object. The search by tag
        // sees past it; where there is none, the list must.
        let is_blind = policy.psp.search_for(row.kind).is_none();
        // The PSP's clock may be ahead: what it just made is stamped in this one's future, and what
        // the row's call made after that was over.
        let now = later(self.clock.now(), absence::SKEW_MAX);
        let to = match () {
            () if is_open => to.max(now),
            () if is_blind => to.max(now.min(later(to, chrono::TimeDelta::hours(ZONES_APART)))),
            () => to.max(now.min(later(to, absence::SKEW_MAX))),
        };
        Question {
            row: index,
            reference: row.psp_reference.clone(),
            tag: row.tag.usable().map(str::to_owned),
            kinds: policy.psp.object_kinds(row.kind),
            window: (from, to),
        }
    }

    /// Of each kind of row that was asked about, the newest listed object of that kind whose tag
    /// resolves to a row of that kind: a payment shows nothing of how refunds are tagged.
    async fn settle_witnesses(&self, neighbours: &mut Neighbours) -> Result<(), RunError> {
        for kind in neighbours.asked() {
            for chunk in neighbours.newest_tags_above_witness(kind).chunks(RESOLVE_AT_ONCE) {
                self.resolve(neighbours, chunk).await?;
                if neighbours.settle_witness(kind, chunk) {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn rows_of_tags(&self, tags: &[String]) -> Result<HashMap<String, RowsOfTag>, RunError> {
        rows_of_tags(self.db, self.table, self.tables, self.account_name, tags)
            .await
            .doing("resolving tags of listed objects")
    }

    async fn resolve(&self, neighbours: &mut Neighbours, tags: &[String]) -> Result<(), RunError> {
        let unknown: Vec<String> =
            tags.iter().filter(|tag| !neighbours.resolved.contains_key(*tag)).cloned().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mut found = self.rows_of_tags(&unknown).await?;
        for tag in unknown {
            let rows = found.remove(&tag).unwrap_or_default();
            neighbours.resolved.insert(tag, rows);
        }
        Ok(())
    }

    /// Whether tags arrive: rows that lack nothing but a witness wait for ever where a deploy
    /// dropped the tag, beside payments that came since and carry none.
    async fn arrivals(
        &self,
        rows: &[Claimed],
        facts: &[Facts],
        decisions: &[Decided],
        neighbours: &Neighbours,
    ) -> Result<Vec<Arrival>, RunError> {
        let mut lacking: HashMap<Kind, Instant> = HashMap::new();
        for ((claimed, fact), decided) in rows.iter().zip(facts).zip(decisions) {
            if !self.lacks_witness_alone(claimed, fact, &decided.decision, decided.now) {
                continue;
            }
            let (kind, at) = (claimed.row.kind, last_attempt(claimed));
            let first = lacking.entry(kind).or_insert(at);
            *first = at.min(*first);
        }
        let mut arrivals = Vec::new();
        for kind in neighbours.asked() {
            let without = match lacking.get(&kind) {
                Some(at) => Some((self.untagged_since(neighbours, kind, *at).await?, *at)),
                None => None,
            };
            let last = neighbours.witness(kind).map(|witness| witness.created_at);
            arrivals.push(Arrival { kind, last, without });
        }
        Ok(arrivals)
    }

    /// How many captured objects are newer and carry no tag of any row. Those of another table's
    /// rows say nothing of this one's tags.
    async fn untagged_since(
        &self,
        neighbours: &Neighbours,
        kind: Kind,
        since: Instant,
    ) -> Result<u64, RunError> {
        let newer = neighbours.untagged_since(kind, since);
        let tags = newer.iter().filter_map(|near| near.tag.as_deref().map(str::to_owned));
        let resolved = self.resolve_all(neighbours, tags.collect()).await?;
        let untagged = newer.iter().filter(|near| !near.is_explained(kind, &resolved));
        Ok(u64::try_from(untagged.count()).unwrap_or(u64::MAX))
    }

    /// Whether a list that would count shows nothing of the row, and nothing newer of any other.
    fn lacks_witness_alone(
        &self,
        claimed: &Claimed,
        fact: &Facts,
        decision: &Decision,
        now: Instant,
    ) -> bool {
        let Claimed { row, history, .. } = claimed;
        if decision.reason != Reason::AbsenceUnproven || row.psp_reference.is_some() {
            return false;
        }
        let policy = self.policy(row);
        fact.evidence.iter().any(|item| match &item.answer {
            Answer::Nothing(search) if search.route == Route::List => {
                let counted = absence::counts(search, row, history, policy, now);
                counted == Err(absence::Unproven::NoWitness)
            }
            Answer::Nothing(_)
            | Answer::Found { .. }
            | Answer::UnknownReference(_)
            | Answer::NoAnswer(_) => false,
        })
    }

    /// A list that ended before anything newer than the row's last attempt is read on, day by
    /// day, until a witness turns up: a year-old row costs a day's list, not a year's.
    async fn find_witnesses(
        &self,
        rows: &[Claimed],
        which: &[usize],
        facts: &mut [Facts],
        neighbours: &mut Neighbours,
        asked: &mut Asked,
    ) -> Result<(), RunError> {
        let mut lacking: Vec<usize> =
            which.iter().copied().filter(|i| lacks_witness(rows, facts, *i)).collect();
        // A witness newer than the newest attempt serves every older row of its kind too.
        lacking.sort_by_key(|index| std::cmp::Reverse(rows.get(*index).map(last_attempt)));
        let mut in_vain: HashMap<Kind, u8> = HashMap::new();
        for index in lacking {
            let Some(claimed) = rows.get(index) else { continue };
            let in_vain = in_vain.entry(claimed.row.kind).or_default();
            if *in_vain >= READ_ON_IN_VAIN || !lacks_witness(rows, facts, index) {
                continue;
            }
            let found = self.read_on(rows, which, claimed, neighbours, asked).await?;
            for (index, evidence) in found {
                if let Some(fact) = facts.get_mut(index) {
                    fact.evidence.push(evidence);
                }
            }
            self.settle_witnesses(neighbours).await?;
            set_witnesses(rows, facts, which, neighbours);
            *in_vain = in_vain.saturating_add(u8::from(lacks_witness(rows, facts, index)));
        }
        Ok(())
    }

    /// Reads on past a row's window. What is found there of any of the rows is a find, however
    /// late it came: their calls were to be over by then.
    async fn read_on(
        &self,
        rows: &[Claimed],
        which: &[usize],
        claimed: &Claimed,
        neighbours: &mut Neighbours,
        asked: &mut Asked,
    ) -> Result<Vec<(usize, Evidence)>, RunError> {
        let last_attempt = last_attempt(claimed);
        let (_, mut from) = self.question(0, claimed).window;
        let until = self.clock.now();
        let mut found = Vec::new();
        let Some(account) = self.account.api() else { return Ok(found) };
        let all = which.iter().filter_map(|index| rows.get(*index).map(|one| (*index, one)));
        let mut questions: Vec<Question> = all
            .filter(|(_, one)| one.row.kind == claimed.row.kind && can_be_asked(&one.row))
            .map(|(index, one)| self.question(index, one))
            .collect();
        for _day in 0..WITNESS_DAYS {
            if from >= until {
                break;
            }
            let to = later(from, chrono::TimeDelta::days(1)).min(until);
            questions.iter_mut().for_each(|question| question.window = (from, to));
            let mut looked = account.look(&questions, Need::Complete).await;
            asked.listed = asked.listed.saturating_add(looked.listed);
            let about = asked_about(rows, &questions);
            neighbours.take(looked.take_others(), &about, &looked.evidence);
            let unanswered = looked.evidence.iter().flatten().any(is_no_answer);
            for (question, evidence) in questions.iter().zip(looked.evidence) {
                found.extend(evidence.into_iter().filter_map(beyond).map(|e| (question.row, e)));
            }
            self.settle_witnesses(neighbours).await?;
            let witness = neighbours.witness(claimed.row.kind);
            if unanswered || witness.is_some_and(|w| w.created_at > last_attempt) {
                break;
            }
            from = to;
        }
        Ok(found)
    }

    /// A list ends where a row's own call is over, and a second one may have been sent later. Rows
    /// that end by such a list are asked about once more, from its end to now, by the cheaper
    /// of a list and the search by tag. Where neither answers, the row is paid all the same: it is
    /// watched, and looked at later. A kind without a search was listed further in the first place.
    async fn look_past_lists(
        &self,
        rows: &[Claimed],
        siblings: &HashMap<String, Vec<SiblingFact>>,
        facts: &mut [Facts],
        decisions: &mut [Decided],
    ) {
        let Some(account) = self.account.api() else { return };
        // All of them together: one list from the first of the ends to now is of them all. What is
        // recent is listed in any case: the search may not have caught up with it.
        let (mut recent, mut old) = (Vec::new(), Vec::new());
        let is_end = |d: &Decision| matches!(d.verdict, Verdict::Succeeded | Verdict::Failed);
        for index in indices(decisions, is_end) {
            let (Some(claimed), Some(fact)) = (rows.get(index), facts.get(index)) else { continue };
            let row = &claimed.row;
            let can_be_searched = self.policy(row).psp.search_for(row.kind).is_some();
            let is_open = can_be_searched && row.tag.usable().is_some();
            let is_past = |end: &Instant| *end < self.clock.now();
            let Some(end) = fact.list_end().filter(|_| is_open).filter(is_past) else { continue };
            let window = (end, self.clock.now());
            let question = Question { reference: None, window, ..self.question(index, claimed) };
            let is_recent = later(end, RECENT) >= self.clock.now();
            if is_recent { &mut recent } else { &mut old }.push(question);
        }
        let mut again = Vec::new();
        for (questions, need) in [(recent, Need::Complete), (old, Need::Find)] {
            if questions.is_empty() {
                continue;
            }
            let looked = account.look_later(&questions, need).await;
            for (question, evidence) in questions.iter().zip(looked.evidence) {
                let fact = facts.get_mut(question.row);
                if fact.is_some_and(|fact| fact.take_later(evidence)) {
                    again.push(question.row);
                }
            }
        }
        self.decide_again(rows, facts, siblings, &again, decisions);
    }

    /// References of what was found that another row already has: such an object is never this
    /// row's verdict, captured or not. A wait is none, unless it is one for siblings, which the
    /// run still turns into a hand-back.
    async fn check_references(
        &self,
        rows: &[Claimed],
        siblings: &HashMap<String, Vec<SiblingFact>>,
        facts: &mut [Facts],
        decisions: &mut [Decided],
    ) -> Result<(), RunError> {
        let decided = indices(decisions, |d| {
            self.whole || !matches!(d.verdict, Verdict::Wait) || d.wants == Some(Want::Siblings)
        });
        let owners = self.owners(&decided, facts, decisions).await?;
        let beside = self.kept_beside(&decided, rows, facts, &owners).await?;
        let mut again = Vec::new();
        for index in decided {
            let (Some(claimed), Some(fact)) = (rows.get(index), facts.get_mut(index)) else {
                continue;
            };
            fact.claimed_references = fact
                .found_references()
                .into_iter()
                .filter(|reference| fact.shared.as_ref() != Some(reference))
                .flat_map(|reference| {
                    let others = owners.get(&reference).into_iter().flatten();
                    let key = &claimed.row.key;
                    let foreign = others.filter(|(t, k)| (t, k) != (&key.table, &key.id));
                    let of = |kind: Kind| beside.get(&(reference.clone(), kind));
                    let is_beside = |k: &String| {
                        let other = match claimed.row.kind {
                            Kind::Charge => of(Kind::Refund),
                            Kind::Refund => of(Kind::Charge),
                            Kind::Payout => None,
                        };
                        other.is_some_and(|keys| keys.contains(k))
                    };
                    let foreign = foreign.filter(|(t, k)| *t != key.table || !is_beside(k));
                    let named = |t: &String, k: &String| match *t == key.table {
                        true => k.clone(),
                        false => format!("{k} of {t}"),
                    };
                    foreign.map(|(t, k)| (reference.clone(), named(t, k))).collect::<Vec<_>>()
                })
                .collect();
            if !fact.claimed_references.is_empty() {
                again.push(index);
            }
        }
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    /// Of other rows that store a reference of what was found and did not succeed by it, those of
    /// each kind: a refund's row may store the id of the payment that it gives back, and owns it as
    /// little as the payment's row owns the refund.
    async fn kept_beside(
        &self,
        which: &[usize],
        rows: &[Claimed],
        facts: &[Facts],
        owners: &HashMap<String, Vec<(String, String)>>,
    ) -> Result<HashMap<(String, Kind), HashSet<String>>, RunError> {
        let table = &self.table.settings.name;
        let asked = which.iter().filter_map(|index| rows.get(*index).zip(facts.get(*index)));
        let mut foreign: HashMap<String, HashSet<String>> = HashMap::new();
        for (claimed, fact) in asked {
            for reference in fact.found_references() {
                let others = owners.get(&reference).into_iter().flatten();
                let others = others.filter(|(t, k)| t == table && *k != claimed.row.key.id);
                for (_, key) in others {
                    foreign.entry(reference.clone()).or_default().insert(key.clone());
                }
            }
        }
        let mut beside: HashMap<(String, Kind), HashSet<String>> = HashMap::new();
        let keys: HashSet<&String> = foreign.values().flatten().collect();
        if keys.is_empty() {
            return Ok(beside);
        }
        let doing = "looking whose references these are";
        let keys: Vec<String> = keys.into_iter().cloned().collect();
        let rows = self.db.rows_known_by(self.table, self.account_name, &[], &[], &keys).await;
        let kinds: HashMap<String, Kind> =
            rows.doing(doing)?.into_iter().map(|row| (row.key.id, row.kind)).collect();
        let names: Vec<String> = foreign.keys().cloned().collect();
        let taken = self.db.taken_references(self.account_name, &names).await.doing(doing)?;
        for (reference, keys) in foreign {
            let by: Vec<&String> =
                taken.get(&reference).into_iter().flatten().map(|(_, key)| key).collect();
            for key in keys.into_iter().filter(|key| !by.contains(&key)) {
                if let Some(kind) = kinds.get(&key) {
                    beside.entry((reference.clone(), *kind)).or_default().insert(key);
                }
            }
        }
        Ok(beside)
    }

    /// Which rows have the references of what was found for these. A payment that a file gives no
    /// id is called by its line's place, which tieout gave: a row that has it succeeded by it, and
    /// stands in tieout's own record. The user's table is not read for it (where its column has no
    /// index: from one end to the other), unless the row may be charged again.
    async fn owners(
        &self,
        which: &[usize],
        facts: &[Facts],
        decisions: &[Decided],
    ) -> Result<HashMap<String, Vec<(String, String)>>, RunError> {
        let is_recorded = self.table.settings.set.writes_reference_with_success_alone();
        let (mut given, mut own) = (Vec::new(), Vec::new());
        for index in which {
            let (Some(fact), Some(decided)) = (facts.get(*index), decisions.get(*index)) else {
                continue;
            };
            let is_safe = matches!(decided.decision.verdict, Verdict::Succeeded | Verdict::Review);
            let by_record = is_recorded && is_safe && !self.whole;
            for reference in fact.found_references() {
                let is_own = by_record && fact.is_place(&reference);
                let among = if is_own { &mut own } else { &mut given };
                among.push(reference);
            }
        }
        let doing = "looking whose references these are";
        let owners = self.db.resolve_references(self.table, self.account_name, &given).await;
        let mut owners = owners.doing(doing)?;
        let taken = self.db.taken_references(self.account_name, &own).await.doing(doing)?;
        for (reference, rows) in taken {
            owners.entry(reference).or_insert(rows);
        }
        Ok(owners)
    }

    /// Rows that would be handed back by absence: money near them that no row explains, objects
    /// that carry their tag without being of their kind, and the captured objects nearest to them
    /// for the brake.
    async fn check_hand_backs(
        &self,
        rows: &[Claimed],
        siblings: &HashMap<String, Vec<SiblingFact>>,
        neighbours: &Neighbours,
        facts: &mut [Facts],
        decisions: &mut [Decided],
    ) -> Result<HashMap<usize, Vec<(String, bool)>>, RunError> {
        let absent = indices(decisions, |d| {
            let is_absent =
                d.reason == Reason::Absent && matches!(d.verdict, Verdict::Retryable(_));
            self.whole || is_absent || d.wants == Some(Want::Siblings)
        });
        if absent.is_empty() {
            return Ok(HashMap::new());
        }
        let these: Vec<&Claimed> = absent.iter().filter_map(|index| rows.get(*index)).collect();
        let around = neighbours.captured(these.iter().map(|one| one.row.kind));
        let mut tags: HashSet<String> = HashSet::new();
        let mut equal: HashMap<(Kind, &str), &Near> = HashMap::new();
        for claimed in these {
            for near in around.nearest(claimed) {
                tags.extend(near.tag.as_deref().map(str::to_owned));
            }
            for object in around.equal_money(claimed, self.policy(&claimed.row)) {
                tags.extend(object.tag.as_deref().map(str::to_owned));
                equal.insert((claimed.row.kind, &*object.reference), object);
            }
        }
        let strays = self.strays(rows, &absent, neighbours);
        let tagged = strays.values().flatten().filter_map(|near| near.named());
        tags.extend(tagged.map(|(_, tag)| tag));
        let resolved = self.resolve_all(neighbours, tags).await?;
        // What a row is known for by its tag is nobody's to claim.
        equal.retain(|(kind, _), near| !near.is_explained(*kind, &resolved));
        let references: Vec<String> = equal.into_values().flat_map(Near::references).collect();
        let owned = self.owned(&references).await?;
        let mut nearest = HashMap::new();
        for index in &absent {
            let (Some(claimed), Some(fact)) = (rows.get(*index), facts.get_mut(*index)) else {
                continue;
            };
            let near = around.nearest(claimed).into_iter();
            nearest.insert(
                *index,
                near.map(|n| (n.reference.to_string(), n.own || n.is_resolved(&resolved)))
                    .collect(),
            );
            let of_money = around
                .equal_money(claimed, self.policy(&claimed.row))
                .into_iter()
                .filter(|n| !n.is_explained(claimed.row.kind, &resolved) && !n.is_owned(&owned))
                .filter_map(Near::untagged);
            let known: HashSet<String> =
                fact.untagged.iter().map(|one| one.reference.clone()).collect();
            fact.untagged.extend(of_money.filter(|one| !known.contains(&one.reference)));
            let strays = strays.get(index).into_iter().flatten();
            let strays = strays.filter(|n| !n.has_row(&resolved));
            fact.near.extend(strays.filter_map(|n| n.named()));
        }
        let is_doubted = |fact: &Facts| !fact.untagged.is_empty() || !fact.near.is_empty();
        let again: Vec<usize> =
            absent.into_iter().filter(|index| facts.get(*index).is_some_and(is_doubted)).collect();
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(nearest)
    }

    /// Objects that carry the very tag of one of these rows and are of another kind. They are seen
    /// where the rows of a batch are of several kinds, and were listed anyway.
    fn strays<'n>(
        &self,
        rows: &[Claimed],
        which: &[usize],
        neighbours: &'n Neighbours,
    ) -> HashMap<usize, Vec<&'n Near>> {
        let mut found = HashMap::new();
        if self.account.api().is_none() || self.table.settings.kind.constant.is_some() {
            return found;
        }
        for kind in neighbours.asked() {
            let by_tag = neighbours.of_another_kind(kind);
            for index in which {
                let Some(row) = rows.get(*index).map(|one| &one.row) else { continue };
                let tagged = row.tag.usable().and_then(|tag| by_tag.get(tag));
                if let Some(tagged) = tagged.filter(|_| row.kind == kind) {
                    found.insert(*index, tagged.clone());
                }
            }
        }
        found
    }

    /// Whose these tags are: the table's rows', and of what none of these has, other tables'.
    async fn resolve_all(
        &self,
        neighbours: &Neighbours,
        all: HashSet<String>,
    ) -> Result<HashMap<String, RowsOfTag>, RunError> {
        let mut resolved: HashMap<String, RowsOfTag> = HashMap::new();
        let mut unknown = Vec::new();
        for tag in &all {
            match neighbours.resolved.get(tag) {
                Some(rows) => {
                    resolved.insert(tag.clone(), rows.clone());
                }
                None => unknown.push(tag.clone()),
            }
        }
        for chunk in unknown.chunks(RESOLVE_AT_ONCE) {
            resolved.extend(self.rows_of_tags(chunk).await?);
        }
        let has_none = |tag: &&String| resolved.get(*tag).is_none_or(RowsOfTag::is_none);
        let strange: Vec<String> = all.iter().filter(has_none).cloned().collect();
        for chunk in strange.chunks(RESOLVE_AT_ONCE) {
            let found = rows_elsewhere(self.db, self.table, self.tables, self.account_name, chunk);
            resolved.extend(found.await.doing("resolving tags in other tables")?);
        }
        Ok(resolved)
    }

    /// Whose these references are, in whichever of the account's tables.
    async fn owned(
        &self,
        references: &[String],
    ) -> Result<HashMap<String, Vec<(String, String)>>, RunError> {
        let doing = "looking whose references these are";
        let own = self.db.resolve_references(self.table, self.account_name, references).await;
        let mut owned = own.doing(doing)?;
        for other in others_of(self.table, self.tables, self.account_name) {
            let found = self.db.resolve_references(other, self.account_name, references).await;
            for (reference, rows) in found.doing(doing)? {
                owned.entry(reference).or_default().extend(rows);
            }
        }
        Ok(owned)
    }
}

impl Facts {
    fn empty() -> Self {
        Self {
            evidence: Vec::new(),
            near: Vec::new(),
            near_objects: Vec::new(),
            claimed_references: Vec::new(),
            untagged: Vec::new(),
            lines: Vec::new(),
            shared: None,
            unanswered: Vec::new(),
        }
    }

    /// Every id of every object found, each once.
    fn found_references(&self) -> BTreeSet<String> {
        self.evidence
            .iter()
            .filter_map(|item| match &item.answer {
                Answer::Found { objects, .. } => Some(objects),
                Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
            })
            .flatten()
            .flat_map(|object| {
                std::iter::once(object.reference.clone()).chain(object.aliases.iter().cloned())
            })
            .collect()
    }

    /// Whether a reference is no PSP's: the place of a line that told of the row.
    fn is_place(&self, reference: &str) -> bool {
        self.lines.iter().any(|line| line.to_string() == reference)
    }

    /// Where the list ended that the row was found by, if that was before it was asked and no
    /// search by tag saw past it.
    fn list_end(&self) -> Option<Instant> {
        let complete = || self.evidence.iter().filter_map(search_of);
        if complete().any(|search| search.route == Route::Search) {
            return None;
        }
        let lists = complete().filter(|search| search.route == Route::List);
        let last = lists.max_by_key(|search| search.to)?;
        (later(last.to, A_MOMENT) < last.asked_at).then_some(last.to)
    }

    /// Takes what a look past the list showed: other objects than those known, and that it had no
    /// answer. That there is nothing more is no news. Says whether there is any.
    fn take_later(&mut self, evidence: Vec<Evidence>) -> bool {
        let known = self.found_references();
        let before = self.evidence.len();
        for item in evidence {
            let answer = match item.answer {
                Answer::Found { mut objects, .. } => {
                    objects.retain(|object| !known.iter().any(|name| object.is_named(name)));
                    Answer::Found { objects, search: None }
                }
                other => other,
            };
            let is_news = match &answer {
                Answer::Found { objects, .. } => !objects.is_empty(),
                Answer::NoAnswer(_) => true,
                Answer::Nothing(_) | Answer::UnknownReference(_) => false,
            };
            if is_news {
                self.evidence.push(Evidence { answer, ..item });
            }
        }
        self.evidence.len() > before
    }

    fn set_witness(&mut self, witness: Option<&Witness>) {
        for item in &mut self.evidence {
            let search = match &mut item.answer {
                Answer::Nothing(search) => Some(search),
                Answer::Found { search, .. } => search.as_mut(),
                Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
            };
            if let Some(search) = search.filter(|search| search.route == Route::List) {
                search.witness = witness.cloned();
            }
        }
    }
}

/// Of what a list past the row's window showed: what was found, which is no look at the window.
fn beyond(item: Evidence) -> Option<Evidence> {
    match item.answer {
        Answer::Found { objects, .. } => {
            Some(Evidence { answer: Answer::Found { objects, search: None }, ..item })
        }
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
    }
}

/// The search that an answer is, where it was read to its end.
fn search_of(item: &Evidence) -> Option<&CompleteSearch> {
    match &item.answer {
        Answer::Nothing(search) => Some(search),
        Answer::Found { search, .. } => search.as_ref(),
        Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
    }
}

fn is_no_answer(item: &Evidence) -> bool {
    matches!(item.answer, Answer::NoAnswer(_))
}

fn can_be_asked(row: &Transaction) -> bool {
    row.defects.is_empty() && (row.psp_reference.is_some() || row.tag.usable().is_some())
}

fn by_tag(found: &[Tagged]) -> HashMap<&str, Vec<&Tagged>> {
    let mut by_tag: HashMap<&str, Vec<&Tagged>> = HashMap::new();
    for one in found {
        by_tag.entry(&one.tag).or_default().push(one);
    }
    by_tag
}

fn indices(decisions: &[Decided], wanted: impl Fn(&Decision) -> bool) -> Vec<usize> {
    let hits = decisions.iter().enumerate().filter(|(_, decided)| wanted(&decided.decision));
    hits.map(|(index, _)| index).collect()
}

fn lacks_witness(rows: &[Claimed], facts: &[Facts], index: usize) -> bool {
    let (Some(claimed), Some(fact)) = (rows.get(index), facts.get(index)) else { return false };
    let last_attempt = last_attempt(claimed);
    fact.evidence.iter().any(|item| match &item.answer {
        Answer::Nothing(search) if search.route == Route::List => {
            search.witness.as_ref().is_none_or(|witness| witness.created_at <= last_attempt)
        }
        Answer::Nothing(_)
        | Answer::Found { .. }
        | Answer::UnknownReference(_)
        | Answer::NoAnswer(_) => false,
    })
}

/// Puts the answers of one pass into the facts of their rows.
fn file_answers(questions: &[Question], looked: Looked, facts: &mut [Facts]) {
    for (question, evidence) in questions.iter().zip(looked.evidence) {
        if let Some(fact) = facts.get_mut(question.row) {
            // A later complete list stands in place of the earlier, incomplete one.
            let routes: HashSet<Route> = evidence.iter().map(|item| item.route).collect();
            fact.evidence.retain(|old| !(is_no_answer(old) && routes.contains(&old.route)));
            fact.evidence.extend(evidence);
        }
    }
    for (question, near) in questions.iter().zip(looked.near) {
        if let Some(fact) = facts.get_mut(question.row) {
            fact.near.extend(near);
        }
    }
    for (question, objects) in questions.iter().zip(looked.near_objects) {
        if let Some(fact) = facts.get_mut(question.row) {
            fact.near_objects.extend(objects);
        }
    }
}

/// Only rows that are decided again hear of a newer witness: what was decided keeps the evidence
/// that it was decided from. Each hears of the one of its own kind.
fn set_witnesses(rows: &[Claimed], facts: &mut [Facts], which: &[usize], neighbours: &Neighbours) {
    for index in which {
        if let (Some(claimed), Some(fact)) = (rows.get(*index), facts.get_mut(*index)) {
            fact.set_witness(neighbours.witness(claimed.row.kind));
        }
    }
}

/// Whom each question is about.
fn asked_about<'q>(rows: &[Claimed], questions: &'q [Question]) -> Vec<About<'q>> {
    let about = |one: &'q Question| {
        let row = rows.get(one.row).map(|claimed| &claimed.row);
        let kind = row.map_or(Kind::Charge, |row| row.kind);
        About { kind, tag: one.tag.as_deref(), money: row.and_then(|row| row.money) }
    };
    questions.iter().map(about).collect()
}

fn weighed(
    batch: Batch,
    mut siblings: HashMap<String, Vec<SiblingFact>>,
    mut nearest: HashMap<usize, Vec<(String, bool)>>,
) -> Vec<Weighed> {
    let Batch { rows, facts, decisions } = batch;
    let parts = rows.into_iter().zip(decisions).zip(facts).enumerate();
    parts
        .map(|(index, ((claimed, decided), mut fact))| {
            let Decided { decision, now } = decided;
            // What belongs to another row by its tag is none of this one's.
            fact.near_objects.retain(|object| {
                fact.near.iter().any(|(reference, _)| *reference == object.reference)
            });
            let inputs = Gathered {
                siblings: siblings.remove(&claimed.row.key.id).unwrap_or_default(),
                evidence: fact.evidence,
                claimed_references: fact.claimed_references,
                untagged: fact.untagged,
                near_misses: fact.near,
                near_objects: fact.near_objects,
            };
            let nearest = nearest.remove(&index).unwrap_or_default();
            Weighed {
                claimed,
                decision,
                now,
                inputs,
                nearest,
                lines: fact.lines,
                person: None,
                mapped_from: None,
                clears_case: false,
            }
        })
        .collect()
}

/// Marks tags that do not fit their place at the PSP.
pub fn check_tag_length(claimed: &mut Claimed, tag_max: usize) {
    if let TagState::Usable(tag) = &claimed.row.tag
        && tag.chars().count() > tag_max
    {
        claimed.row.tag = TagState::TooLong { tag: tag.clone(), max: tag_max };
    }
}
