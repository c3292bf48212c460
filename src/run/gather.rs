//! From claimed rows of one account to decisions: asks, resolves tags and references, decides,
//! and asks again where a decision says that one more answer could turn it into a verdict.
//!
//! Every pass asks about all its rows at once; nothing here goes row by row over a network.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::decide::absence;
use crate::decide::decision::{Asked as Why, Decision, Inputs, Verdict, Want};
use crate::decide::expected::Expected;
use crate::decide::judge::decide;
use crate::decide::person::Word;
use crate::decide::policy::Policy;
use crate::model::evidence::{Answer, EVIDENCE_SCHEMA, Evidence, Route, UntaggedMatch, Witness};
use crate::model::reason::Reason;
use crate::model::time::{Instant, later};
use crate::model::transaction::{SiblingFact, TagState, Transaction};
use crate::psp::account::{Looked, Need, Question};
use crate::psp::book::Neighbour;
use crate::run::asking::Asking;
use crate::run::attempts::{Attempts, RESOLVE_AT_ONCE, Unnamed};
use crate::run::by_files::{ByFiles, Told};
use crate::run::clock::DatabaseClock;
use crate::run::error::{Doing, RunError};
use crate::run::scene::policy_of_row;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::files::LinePlace;
use crate::store::records::{Claimed, StoredInputs};
use crate::store::source_table::SourceTable;

/// How many captured objects around a row the brake looks at.
const NEAREST: usize = 20;
/// How far past the window the search for a witness goes, in days, before it rests until the
/// next look: a tag that nothing newer carries for a month is a matter for a person.
const WITNESS_DAYS: i64 = 32;
/// After so many rows without a witness the others wait for the next look: where the tag is
/// broken, reading on for each row would list the account over and over.
const READ_ON_IN_VAIN: u8 = 3;

/// One row with its decision and everything it was made from.
pub struct Weighed {
    /// The row.
    pub claimed: Claimed,
    /// The decision.
    pub decision: Decision,
    /// When it was decided: the record, the next look and a replay all count from here.
    pub now: Instant,
    /// What it was made from.
    pub inputs: StoredInputs,
    /// For a hand-back: the captured objects nearest to the row, and whether each resolves.
    pub nearest: Vec<(String, bool)>,
    /// The lines of settlement files that told of it.
    pub lines: Vec<LinePlace>,
    /// The person's word that it is decided by, where it is.
    pub person: Option<Word>,
    /// The status that the mapping goes by, where it is another than the row's.
    pub mapped_from: Option<String>,
}

/// What asking brought besides decisions.
#[derive(Default)]
pub struct Asked {
    /// Objects listed.
    pub listed: u64,
    /// Rows with an answer.
    pub answered: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// What is gathered about each row of a batch, by its index.
struct Facts {
    evidence: Vec<Evidence>,
    near: Vec<(String, String)>,
    claimed_references: Vec<(String, String)>,
    untagged: Vec<UntaggedMatch>,
    lines: Vec<LinePlace>,
}

/// A decision with the instant that it was made for. Later passes take minutes, and a row that
/// they do not concern keeps the instant of its own: a wait of seconds that is recorded minutes
/// later would be over before it began.
struct Decided {
    decision: Decision,
    now: Instant,
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
    /// Every route is asked, whatever the judge would be content with: a person decides.
    pub whole: bool,
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

        let wanting = self.wanting(&rows, &decisions, Want::Search);
        self.ask(&rows, &wanting, Need::Search, &mut facts, &mut neighbours, &mut asked).await?;
        self.decide_again(&rows, &facts, &siblings, &wanting, &mut decisions);

        self.look_at_siblings_again(&rows, &mut siblings, &facts, &mut decisions).await?;
        self.check_references(&rows, &siblings, &mut facts, &mut decisions).await?;
        let nearest = self
            .check_hand_backs(&rows, &siblings, &neighbours, &mut facts, &mut decisions)
            .await?;
        asked.answered = u64::try_from(decisions.iter().filter(|d| d.decision.answered).count())
            .unwrap_or(u64::MAX);
        asked.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok((weighed(rows, decisions, facts, siblings, nearest), asked))
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

    /// A tag that another row has too settles neither. What is under watch goes on looking by it:
    /// the worker may have made the new row that shares it, and money is to be seen.
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
        let shared = self
            .db
            .shared_tags(self.table, self.account_name, &asking)
            .await
            .doing("looking for rows of one tag")?;
        for claimed in rows.iter_mut().filter(|claimed| shared.contains(&claimed.row.key.id)) {
            if let TagState::Usable(tag) = &claimed.row.tag
                && claimed.asked != Why::Watch
            {
                claimed.row.tag = TagState::Shared(tag.clone());
            }
        }
        Ok(())
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
        let (db, tables, account) = (self.db, self.tables, self.account_name);
        let files = ByFiles { db, tables, account, alone };
        let told = files.ask(&asking, self.clock.now()).await?;
        for (index, Told { evidence, lines }) in indices.into_iter().zip(told) {
            if let Some(fact) = facts.get_mut(index) {
                fact.evidence.extend(evidence);
                fact.lines = lines;
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
        let attempts = Attempts {
            db: self.db,
            table: self.table,
            account: self.account_name,
            expected: self.expected,
        };
        let listed = attempts.ask(&questions, self.clock.now()).await?;
        asked.listed =
            asked.listed.saturating_add(u64::try_from(listed.others.len()).unwrap_or(u64::MAX));
        neighbours.take(listed.others, &[]);
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
        Unnamed { row, from: row.created_at, to, last_attempt }
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
        let now = self.db.siblings(self.table, &keyed).await.doing("reading sibling rows again")?;
        for row in keyed {
            siblings.remove(&row.key.id);
        }
        siblings.extend(now);
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    fn policy(&self, row: &Transaction) -> &Policy {
        policy_of_row(self.policies, self.table, row)
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
        Decided { decision: decide(&inputs, self.policy(&claimed.row), now), now }
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
        neighbours.take(looked.take_others(), &looked.evidence);
        self.drop_known_tags(neighbours, &mut looked.near).await?;
        let witness = self.newest_witness(neighbours).await?;
        file_answers(&questions, looked, facts);
        set_witness(facts, which, witness.as_ref());
        Ok(())
    }

    /// A tag that is nearly this row's and belongs to another row is that row's own.
    async fn drop_known_tags(
        &self,
        neighbours: &mut Neighbours,
        near: &mut [Vec<(String, String)>],
    ) -> Result<(), RunError> {
        let tags: Vec<String> = near.iter().flatten().map(|(_, tag)| tag.clone()).collect();
        for chunk in tags.chunks(RESOLVE_AT_ONCE) {
            self.resolve(neighbours, chunk).await?;
        }
        for own in near {
            own.retain(|(_, tag)| neighbours.resolved.get(tag) != Some(&true));
        }
        Ok(())
    }

    fn question(&self, index: usize, claimed: &Claimed) -> Question {
        let Claimed { row, history, .. } = claimed;
        let policy = self.policy(row);
        let (from, to) = absence::needed_window(row, history, policy);
        // A watch looks for what should not be there: a call that lived longer than any call may
        // made its object after the window of the proof.
        let to = if claimed.asked == Why::Watch { to.max(self.clock.now()) } else { to };
        Question {
            row: index,
            reference: row.psp_reference.clone(),
            tag: row.tag.usable().map(str::to_owned),
            kinds: policy.psp.object_kinds(row.kind),
            window: (from, to),
        }
    }

    /// The newest listed object whose tag resolves to a row of this table.
    async fn newest_witness(
        &self,
        neighbours: &mut Neighbours,
    ) -> Result<Option<Witness>, RunError> {
        for chunk in neighbours.newest_tags_above_witness().chunks(RESOLVE_AT_ONCE) {
            self.resolve(neighbours, chunk).await?;
            if neighbours.settle_witness(chunk) {
                break;
            }
        }
        Ok(neighbours.witness.clone())
    }

    async fn resolve(&self, neighbours: &mut Neighbours, tags: &[String]) -> Result<(), RunError> {
        let unknown: Vec<String> =
            tags.iter().filter(|tag| !neighbours.resolved.contains_key(*tag)).cloned().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let found = self
            .db
            .resolve_tags(self.table, self.account_name, &unknown)
            .await
            .doing("resolving tags of listed objects")?;
        for tag in unknown {
            let is_row = found.contains(&tag);
            neighbours.resolved.insert(tag, is_row);
        }
        Ok(())
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
        // A witness newer than the newest attempt serves every older row too.
        lacking.sort_by_key(|index| std::cmp::Reverse(rows.get(*index).map(last_attempt)));
        let mut in_vain = 0_u8;
        for index in lacking {
            let Some(claimed) = rows.get(index) else { continue };
            if in_vain >= READ_ON_IN_VAIN || !lacks_witness(rows, facts, index) {
                continue;
            }
            let found = self.read_on(rows, which, claimed, neighbours, asked).await?;
            for (index, evidence) in found {
                if let Some(fact) = facts.get_mut(index) {
                    fact.evidence.push(evidence);
                }
            }
            let witness = self.newest_witness(neighbours).await?;
            set_witness(facts, which, witness.as_ref());
            in_vain = in_vain.saturating_add(u8::from(lacks_witness(rows, facts, index)));
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
        let (_, mut from) =
            absence::needed_window(&claimed.row, &claimed.history, self.policy(&claimed.row));
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
            neighbours.take(looked.take_others(), &looked.evidence);
            let unanswered = looked.evidence.iter().flatten().any(is_no_answer);
            for (question, evidence) in questions.iter().zip(looked.evidence) {
                found.extend(evidence.into_iter().filter_map(beyond).map(|e| (question.row, e)));
            }
            let witness = self.newest_witness(neighbours).await?;
            if unanswered || witness.is_some_and(|w| w.created_at > last_attempt) {
                break;
            }
            from = to;
        }
        Ok(found)
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
        let references: Vec<String> = decided
            .iter()
            .filter_map(|index| facts.get(*index))
            .flat_map(Facts::found_references)
            .collect();
        if references.is_empty() {
            return Ok(());
        }
        let owners = self
            .db
            .resolve_references(self.table, self.account_name, &references)
            .await
            .doing("looking whose references these are")?;
        let mut again = Vec::new();
        for index in decided {
            let (Some(claimed), Some(fact)) = (rows.get(index), facts.get_mut(index)) else {
                continue;
            };
            fact.claimed_references = fact
                .found_references()
                .into_iter()
                .flat_map(|reference| {
                    let others = owners.get(&reference).into_iter().flatten();
                    let key = &claimed.row.key;
                    let foreign = others.filter(|(t, k)| (t, k) != (&key.table, &key.id));
                    foreign.map(|(_, k)| (reference.clone(), k.clone())).collect::<Vec<_>>()
                })
                .collect();
            if !fact.claimed_references.is_empty() {
                again.push(index);
            }
        }
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(())
    }

    /// Rows that would be handed back by absence: money near them that no row explains, and the
    /// captured objects nearest to them for the brake.
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
        let around = neighbours.captured();
        let mut tags = HashSet::new();
        let mut references = HashSet::new();
        for claimed in absent.iter().filter_map(|index| rows.get(*index)) {
            for near in around.nearest(claimed) {
                tags.extend(near.tag.as_deref().map(str::to_owned));
            }
            for object in around.equal_money(claimed, self.policy(&claimed.row)) {
                tags.extend(object.tag.as_deref().map(str::to_owned));
                references.insert(object.reference.to_string());
                references.extend(object.aliases.iter().map(|alias| alias.to_string()));
            }
        }
        let resolved = self.resolve_all(neighbours, tags).await?;
        let references: Vec<String> = references.into_iter().collect();
        let owned = self
            .db
            .resolve_references(self.table, self.account_name, &references)
            .await
            .doing("looking whose references these are")?;
        let mut nearest = HashMap::new();
        for index in &absent {
            let (Some(claimed), Some(fact)) = (rows.get(*index), facts.get_mut(*index)) else {
                continue;
            };
            let is_row = |tag: &Option<Box<str>>| {
                tag.as_deref().is_some_and(|tag| resolved.get(tag).copied().unwrap_or(false))
            };
            let near = around.nearest(claimed).into_iter();
            nearest.insert(
                *index,
                near.map(|n| (n.reference.to_string(), n.own || is_row(&n.tag))).collect(),
            );
            let of_money = around
                .equal_money(claimed, self.policy(&claimed.row))
                .into_iter()
                .filter(|n| !is_row(&n.tag) && !n.is_owned(&owned))
                .filter_map(Near::untagged);
            let known: HashSet<String> =
                fact.untagged.iter().map(|one| one.reference.clone()).collect();
            fact.untagged.extend(of_money.filter(|one| !known.contains(&one.reference)));
        }
        let again: Vec<usize> = absent
            .into_iter()
            .filter(|index| facts.get(*index).is_some_and(|fact| !fact.untagged.is_empty()))
            .collect();
        self.decide_again(rows, facts, siblings, &again, decisions);
        Ok(nearest)
    }

    async fn resolve_all(
        &self,
        neighbours: &Neighbours,
        tags: HashSet<String>,
    ) -> Result<HashMap<String, bool>, RunError> {
        let mut resolved: HashMap<String, bool> = HashMap::new();
        let mut unknown = Vec::new();
        for tag in tags {
            match neighbours.resolved.get(&tag) {
                Some(is_row) => {
                    resolved.insert(tag, *is_row);
                }
                None => unknown.push(tag),
            }
        }
        for chunk in unknown.chunks(RESOLVE_AT_ONCE) {
            let found = self
                .db
                .resolve_tags(self.table, self.account_name, chunk)
                .await
                .doing("resolving tags of listed objects")?;
            resolved.extend(chunk.iter().map(|tag| (tag.clone(), found.contains(tag))));
        }
        Ok(resolved)
    }
}

impl Facts {
    fn empty() -> Self {
        Self {
            evidence: Vec::new(),
            near: Vec::new(),
            claimed_references: Vec::new(),
            untagged: Vec::new(),
            lines: Vec::new(),
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

fn last_attempt(claimed: &Claimed) -> Instant {
    absence::last_attempt(&claimed.row, &claimed.history)
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

fn is_no_answer(item: &Evidence) -> bool {
    matches!(item.answer, Answer::NoAnswer(_))
}

fn can_be_asked(row: &Transaction) -> bool {
    row.defects.is_empty() && (row.psp_reference.is_some() || row.tag.usable().is_some())
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
}

/// Only rows that are decided again hear of a newer witness: what was decided keeps the evidence
/// that it was decided from.
fn set_witness(facts: &mut [Facts], which: &[usize], witness: Option<&Witness>) {
    for index in which {
        if let Some(fact) = facts.get_mut(*index) {
            fact.set_witness(witness);
        }
    }
}

/// The captured objects around the rows, compact, and what is known of their tags.
#[derive(Default)]
struct Neighbours {
    /// Captured or not, in no order; each reference once.
    all: Vec<Near>,
    resolved: HashMap<String, bool>,
    witness: Option<Witness>,
}

struct Near {
    reference: Box<str>,
    aliases: Vec<Box<str>>,
    tag: Option<Box<str>>,
    captured: Option<crate::model::money::Money>,
    created_at: Instant,
    /// It answers one of the batch's own rows.
    own: bool,
}

impl Near {
    fn untagged(&self) -> Option<UntaggedMatch> {
        Some(UntaggedMatch {
            reference: self.reference.to_string(),
            captured: self.captured?,
            created_at: self.created_at,
            tag: self.tag.as_deref().map(str::to_owned),
        })
    }

    fn is_owned(&self, owned: &HashMap<String, Vec<(String, String)>>) -> bool {
        std::iter::once(&self.reference)
            .chain(&self.aliases)
            .any(|reference| owned.get(&**reference).is_some_and(|rows| !rows.is_empty()))
    }
}

impl Neighbours {
    /// Takes what one look showed: objects of nobody's, and those found for the batch's own rows,
    /// whose tags resolve by themselves.
    fn take(&mut self, others: Vec<Neighbour>, found: &[Vec<Evidence>]) {
        // One look has each of the others once, and none of them among what it found; files may
        // list one twice.
        let is_first = self.all.is_empty() && !found.is_empty();
        let mut seen: HashSet<Box<str>> = if is_first {
            HashSet::new()
        } else {
            self.all.iter().map(|near| near.reference.clone()).collect()
        };
        for Neighbour { reference, aliases, tag, captured, created_at, .. } in others {
            if is_first || seen.insert(reference.clone()) {
                self.all.push(Near { reference, aliases, tag, captured, created_at, own: false });
            }
        }
        let found = found.iter().flatten().filter_map(|item| match &item.answer {
            Answer::Found { objects, search: Some(_) } => Some(objects),
            Answer::Found { .. }
            | Answer::Nothing(_)
            | Answer::UnknownReference(_)
            | Answer::NoAnswer(_) => None,
        });
        for object in found.flatten() {
            let Some(tag) = &object.tag else { continue };
            self.offer_witness(&object.reference, tag, object.created_at);
            let reference: Box<str> = object.reference.as_str().into();
            if seen.insert(reference.clone()) {
                let aliases = object.aliases.iter();
                self.all.push(Near {
                    reference,
                    aliases: aliases.map(|alias| alias.as_str().into()).collect(),
                    tag: Some(tag.as_str().into()),
                    captured: object.captured,
                    created_at: object.created_at,
                    own: true,
                });
            }
        }
    }

    fn offer_witness(&mut self, reference: &str, tag: &str, created_at: Instant) {
        if self.witness.as_ref().is_none_or(|known| known.created_at < created_at) {
            self.witness =
                Some(Witness { reference: reference.to_owned(), tag: tag.to_owned(), created_at });
        }
    }

    /// Tags of objects newer than the best witness so far, newest first, each once.
    fn newest_tags_above_witness(&self) -> Vec<String> {
        let floor = self.witness.as_ref().map(|witness| witness.created_at);
        let is_open = |near: &&Near| {
            floor.is_none_or(|floor| near.created_at > floor)
                && near.tag.as_deref().is_some_and(|tag| self.resolved.get(tag) != Some(&false))
        };
        let mut above: Vec<&Near> = self.all.iter().filter(is_open).collect();
        above.sort_by(|a, b| {
            b.created_at.cmp(&a.created_at).then_with(|| a.reference.cmp(&b.reference))
        });
        let mut known = HashSet::new();
        let tags = above.into_iter().filter_map(|near| near.tag.as_deref());
        tags.filter(|tag| known.insert(*tag)).map(str::to_owned).collect()
    }

    /// Takes the newest object of the first of these tags that resolves as the witness.
    fn settle_witness(&mut self, tags: &[String]) -> bool {
        let Some(tag) = tags.iter().find(|tag| self.resolved.get(*tag) == Some(&true)) else {
            return false;
        };
        let own = self.all.iter().filter(|near| near.tag.as_deref() == Some(tag));
        let best = own.max_by(|a, b| {
            a.created_at.cmp(&b.created_at).then_with(|| b.reference.cmp(&a.reference))
        });
        let Some(best) = best else { return false };
        let (reference, at) = (best.reference.clone(), best.created_at);
        self.offer_witness(&reference, tag, at);
        true
    }

    /// The captured objects, sorted by time once for all rows that ask.
    fn captured(&self) -> Around<'_> {
        let mut by_time: Vec<&Near> = self.all.iter().filter(|n| n.captured.is_some()).collect();
        by_time.sort_by(|a, b| {
            a.created_at.cmp(&b.created_at).then_with(|| a.reference.cmp(&b.reference))
        });
        Around { by_time }
    }
}

/// Captured objects in the order of time.
struct Around<'a> {
    by_time: Vec<&'a Near>,
}

impl<'a> Around<'a> {
    /// Those nearest in time to the row's last attempt.
    fn nearest(&self, claimed: &Claimed) -> Vec<&'a Near> {
        let at = last_attempt(claimed);
        let middle = self.by_time.partition_point(|near| near.created_at < at);
        let (before, after) = self.by_time.split_at(middle);
        let (mut before, mut after) = (before.iter().rev().peekable(), after.iter().peekable());
        let mut picked = Vec::new();
        while picked.len() < NEAREST {
            let next = match (before.peek(), after.peek()) {
                (Some(old), Some(new)) if at - old.created_at <= new.created_at - at => {
                    before.next()
                }
                (_, Some(_)) => after.next(),
                (Some(_), None) => before.next(),
                (None, None) => break,
            };
            picked.extend(next.copied());
        }
        picked
    }

    /// Those of the row's own money, created while its call could have made them.
    fn equal_money(&self, claimed: &Claimed, policy: &Policy) -> Vec<&'a Near> {
        let row = &claimed.row;
        let from = row.created_at;
        let to = later(last_attempt(claimed), policy.timing.in_flight_max);
        let start = self.by_time.partition_point(|near| near.created_at < from);
        let window = self.by_time.iter().skip(start).take_while(|near| near.created_at <= to);
        window.filter(|near| !near.own && near.captured == row.money).copied().collect()
    }
}

fn weighed(
    rows: Vec<Claimed>,
    decisions: Vec<Decided>,
    facts: Vec<Facts>,
    mut siblings: HashMap<String, Vec<SiblingFact>>,
    mut nearest: HashMap<usize, Vec<(String, bool)>>,
) -> Vec<Weighed> {
    let parts = rows.into_iter().zip(decisions).zip(facts).enumerate();
    parts
        .map(|(index, ((claimed, decided), fact))| {
            let Decided { decision, now } = decided;
            let inputs = StoredInputs {
                schema: EVIDENCE_SCHEMA,
                now,
                asked: claimed.asked,
                row: claimed.row.clone(),
                siblings: siblings.remove(&claimed.row.key.id).unwrap_or_default(),
                evidence: fact.evidence,
                claimed_references: fact.claimed_references,
                untagged: fact.untagged,
                near_misses: fact.near,
                history: claimed.history.clone(),
                kicked: None,
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
