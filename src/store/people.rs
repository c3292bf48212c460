//! Decisions by people: what was proposed, who said yes, and the history of a case.
//!
//! Nothing here writes a status: a decision that was approved is carried out by
//! [`crate::store::driver::Driver::apply`] like any other, which also ends its proposal. Who
//! speaks is the database's session user where there is one; `by` counts only where there is none.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::decide::person::Wish;
use crate::model::reason::Reason;
use crate::model::time::Instant;
use crate::store::driver::CaseFilter;
use crate::store::error::StoreError;
use crate::store::records::{CaseRow, RunRow};

/// Who notes what a run did.
pub const BY_RUN: &str = "tieout";

/// The longest sentence of a person's, in characters: it stands on one line of a screen.
pub const SAID_MAX: usize = 500;

/// What a person said, where it is one line of 1 to [`SAID_MAX`] characters.
pub fn one_line(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_fit = (1..=SAID_MAX).contains(&text.chars().count());
    (is_fit && !text.contains(char::is_control)).then_some(text)
}

/// Similar cases are looked for among so many of the newest.
pub const SIMILAR_AMONG: i64 = 1_000;

/// Kicks of one case that are read, the newest.
pub const KICKS_READ: i64 = 20;

/// What a person proposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The money moved.
    Succeeded,
    /// Charge again.
    Retryable,
    /// It failed for good.
    Failed,
    /// The row stays as it is, and the case closes.
    Left,
}

impl What {
    /// All, in the order of the help.
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Retryable, Self::Failed, Self::Left];

    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Retryable => "retryable",
            Self::Failed => "failed",
            Self::Left => "left",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.as_str() == text)
    }

    /// What it wants of the row; none where the row stays as it is.
    pub fn wish(self) -> Option<Wish> {
        match self {
            Self::Succeeded => Some(Wish::Succeeded),
            Self::Retryable => Some(Wish::Retryable),
            Self::Failed => Some(Wish::Failed),
            Self::Left => None,
        }
    }

    /// Why no decision is undone so; none where it may be. What undoes one is another end.
    pub fn unfit_to_undo(self) -> Option<&'static str> {
        match self {
            Self::Succeeded | Self::Retryable | Self::Failed => None,
            Self::Left => Some(
                "to leave the row as it is undoes nothing: say what it shall be instead \
                 (succeeded, retryable or failed)",
            ),
        }
    }

    /// Why no case about this kind of subject is decided so; none where it may be.
    pub fn unfit_for(self, subject_kind: &str) -> Option<&'static str> {
        match subject_kind {
            "account" => Some("it is about an account, and ends by itself with its cause"),
            "row" => None,
            _line_or_file if self == Self::Left => None,
            _line_or_file => Some("it is about no row: it can only be left as it is"),
        }
    }
}

/// Where a proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalState {
    /// It waits for somebody to approve it.
    Open,
    /// It waits for a run that asks the PSP again and carries it out.
    Approved,
    /// Somebody said no.
    Rejected,
    /// Who proposed it took it back.
    Withdrawn,
    /// It was approved, and what the run found stood against it.
    Refused,
    /// It was carried out.
    CarriedOut,
}

impl ProposalState {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::Open,
        Self::Approved,
        Self::Rejected,
        Self::Withdrawn,
        Self::Refused,
        Self::CarriedOut,
    ];

    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
            Self::CarriedOut => "carried_out",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A decision as somebody proposes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProposal {
    /// The case.
    pub case_number: i64,
    /// What shall become of it.
    pub what: What,
    /// The object that succeeded, or the one to charge by.
    pub psp_reference: Option<String>,
    /// It takes the place of a person's decision that was carried out.
    pub undoes: bool,
    /// Why.
    pub why: String,
    /// What the case shows.
    pub evidence_sha256: Option<String>,
    /// It needs a second person.
    pub four_eyes: bool,
}

/// A proposal as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Its number.
    pub number: i64,
    /// The case.
    pub case_number: i64,
    /// What shall become of it.
    pub what: What,
    /// The object that succeeded, or the one to charge by.
    pub psp_reference: Option<String>,
    /// It takes the place of a person's decision that was carried out.
    pub undoes: bool,
    /// Why.
    pub why: String,
    /// What the case showed then.
    pub evidence_sha256: Option<String>,
    /// It needs a second person.
    pub four_eyes: bool,
    /// Who proposed it.
    pub proposed_by: String,
    /// When.
    pub proposed_at: Instant,
    /// Where it stands.
    pub state: ProposalState,
    /// Who approved it.
    pub approved_by: Option<String>,
    /// When.
    pub approved_at: Option<Instant>,
    /// Why.
    pub approved_why: Option<String>,
    /// When it ended.
    pub ended_at: Option<Instant>,
    /// How.
    pub ended_why: Option<String>,
    /// By which run.
    pub ended_run: Option<String>,
}

impl Proposal {
    /// Whether its case shows other evidence by now than it was proposed of.
    pub fn is_stale(&self, evidence_sha256: Option<&String>) -> bool {
        self.evidence_sha256.as_ref() != evidence_sha256
    }

    /// Whether its case is what it is about still: open, or ended where it takes an end's place.
    pub fn fits(&self, is_open: bool) -> bool {
        self.undoes != is_open
    }
}

/// An approved proposal with the case that it is about, as that stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// The proposal.
    pub proposal: Proposal,
    /// `row`, `line`, `file`.
    pub subject_kind: String,
    /// The mapped table; empty for files.
    pub table: String,
    /// The row's key, …
    pub subject: String,
    /// Whether the case is open.
    pub is_open: bool,
    /// What the case shows now.
    pub evidence_sha256: Option<String>,
    /// Its currency's code, or empty, …
    pub currency: String,
    /// … and its amount.
    pub amount_minor: i64,
}

impl Approved {
    /// Why it cannot be carried out any more, where the case moved on since.
    pub fn is_stale(&self) -> Option<&'static str> {
        let proposal = &self.proposal;
        match (proposal.fits(self.is_open), proposal.undoes) {
            (false, false) => Some("the case ended by itself before it was carried out"),
            (false, true) => Some("the case was opened again since"),
            (true, _) => proposal
                .is_stale(self.evidence_sha256.as_ref())
                .then_some("the case shows something else than what was approved"),
        }
    }

    /// Whether one person alone proposed and approved it.
    pub fn is_of_one(&self) -> bool {
        self.proposal.approved_by.as_ref().is_none_or(|by| *by == self.proposal.proposed_by)
    }
}

/// One entry of a case's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseNote {
    /// When.
    pub at: Instant,
    /// `assigned`, `comment`, `proposed`, …
    pub kind: String,
    /// Who.
    pub by: String,
    /// What.
    pub text: String,
    /// The proposal that it is about.
    pub proposal: Option<i64>,
    /// The run that noted it.
    pub run_id: Option<String>,
}

/// Cases of one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseSum {
    /// Code, or empty.
    pub currency: String,
    /// How many.
    pub cases: i64,
    /// Their sum.
    pub amount_minor: i128,
}

/// The sums of cases, by currency: of each its currency's code, or none, and its minor units.
pub fn sums_of<'c>(cases: impl Iterator<Item = (&'c str, i64)>) -> Vec<CaseSum> {
    let mut sums: BTreeMap<&str, (i64, i128)> = BTreeMap::new();
    for (currency, amount_minor) in cases {
        let (count, sum) = sums.entry(currency).or_default();
        *count = count.saturating_add(1);
        *sum = sum.saturating_add(i128::from(amount_minor));
    }
    let sum_of = |(currency, (cases, amount_minor)): (&str, (i64, i128))| CaseSum {
        currency: currency.to_owned(),
        cases,
        amount_minor,
    };
    sums.into_iter().map(sum_of).collect()
}

/// Buckets with their counts, of how many there are in all and how many are older than each edge,
/// the latest edge first; empty ones are left out.
pub fn buckets_of(older: &[i64]) -> Vec<(usize, i64)> {
    let next = older.iter().skip(1).copied().chain([0]);
    let counts = older.iter().zip(next).map(|(all, older)| all.saturating_sub(older));
    counts.enumerate().filter(|(_, cases)| *cases > 0).collect()
}

/// Runs that a case's history names beside the one that opened it and the one that decided last.
#[derive(Debug, Clone, Default)]
pub struct CaseRuns {
    /// Kicks that may have meant it, by what they were told, oldest first; of more than
    /// [`KICKS_READ`] the newest.
    pub kicks: Vec<RunRow>,
    /// The run that closed it.
    pub closed: Option<RunRow>,
}

/// Which case another one is a part of, and which are parts of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseLinks {
    /// The case that it is a part of.
    pub part_of: Option<i64>,
    /// Its parts, by number.
    pub parts: Vec<i64>,
}

/// The verbs of decisions by people. Each that writes is one transaction, and notes in the case's
/// history what it did.
#[expect(async_fn_in_trait, reason = "called on concrete types only, never as dyn")]
pub trait PeopleDriver {
    /// The database's own name of who asks; none where it has none.
    async fn identity(&self) -> Result<Option<String>, StoreError>;

    /// How many cases the filter means, and their sums; its page is left aside.
    async fn case_sums(&self, filter: &CaseFilter) -> Result<Vec<CaseSum>, StoreError>;

    /// The same of the first cases by number, at most so many: where no index holds the sums, as
    /// many cases are read as are counted.
    async fn case_sums_of_first(
        &self,
        filter: &CaseFilter,
        most: i64,
    ) -> Result<Vec<CaseSum>, StoreError>;

    /// How many of the first open cases by number, at most so many, are how old: edges and buckets
    /// as of [`crate::store::driver::Driver::open_cases_by_age`], each bucket with its count.
    async fn open_ages_of_first(
        &self,
        edges: &[Instant],
        most: i64,
    ) -> Result<Vec<(usize, i64)>, StoreError>;

    /// The kicks that may have meant this case, and the run that closed it.
    async fn case_runs(&self, case: &CaseRow) -> Result<CaseRuns, StoreError>;

    /// How the database would list these cases, step by step.
    async fn case_plan(&self, filter: &CaseFilter) -> Result<Vec<String>, StoreError>;

    /// The history of a case, oldest first.
    async fn case_notes(&self, case: i64) -> Result<Vec<CaseNote>, StoreError>;

    /// Which cases belong together.
    async fn case_links(&self, case: i64) -> Result<CaseLinks, StoreError>;

    /// The same of many cases at once, by number; one that stands alone has none.
    async fn links_of(&self, cases: &[i64]) -> Result<HashMap<i64, CaseLinks>, StoreError>;

    /// Closed cases of the same reason, those of the same account first, the newest first.
    async fn similar_cases(&self, case: &CaseRow, limit: i64) -> Result<Vec<CaseRow>, StoreError>;

    /// The proposals of these cases, by number.
    async fn proposals(&self, cases: &[i64]) -> Result<Vec<Proposal>, StoreError>;

    /// Approved proposals after a number, those of these cases alone where some are named.
    async fn approved(
        &self,
        cases: Option<&[i64]>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Approved>, StoreError>;

    /// Gives open cases to somebody, or to nobody; returns how many changed.
    async fn assign_cases(
        &self,
        cases: &[i64],
        owner: Option<&str>,
        by: &str,
        now: Instant,
    ) -> Result<u64, StoreError>;

    /// Adds a sentence to the history of cases.
    async fn comment_cases(
        &self,
        cases: &[i64],
        text: &str,
        by: &str,
        now: Instant,
    ) -> Result<u64, StoreError>;

    /// Proposes decisions; returns the cases of those that stand. Left out is a case that closed,
    /// shows something else by now, or has a proposal that is open or approved.
    async fn propose(
        &self,
        proposals: &[NewProposal],
        by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError>;

    /// Approves these open proposals as seen: (number, what the case showed). Returns those that
    /// are approved now. Left out is one that somebody ended or approved before, whose case shows
    /// something else by now, or which this person proposed and which needs a second one.
    async fn approve(
        &self,
        proposals: &[(i64, Option<String>)],
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError>;

    /// Ends proposals that are open, or approved and carried out by no run yet: withdrawn by who
    /// made them, else rejected. Returns those that ended.
    async fn turn_down(
        &self,
        proposals: &[i64],
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<Vec<i64>, StoreError>;

    /// Ends an approved proposal that could not be carried out; false where it had ended.
    async fn refuse_approved(
        &self,
        run_id: &str,
        proposal: i64,
        why: &str,
        now: Instant,
    ) -> Result<bool, StoreError>;

    /// Carries out an approved proposal to leave the subject as it is: the case closes, and its
    /// row is left out until it changes. False where it had ended, the case moved on, or a run
    /// holds the row just now.
    async fn leave_as_is(
        &self,
        run_id: &str,
        proposal: i64,
        now: Instant,
    ) -> Result<bool, StoreError>;

    /// Makes open cases parts of an open one, or parts no more where that is none. Returns how
    /// many changed.
    async fn merge_cases(
        &self,
        into: Option<i64>,
        cases: &[i64],
        why: &str,
        by: &str,
        now: Instant,
    ) -> Result<u64, StoreError>;

    /// Of these cases those that [`Self::purge_cases`] would delete now, by number.
    async fn purgeable_cases(&self, cases: &[i64], before: Instant)
    -> Result<Vec<i64>, StoreError>;

    /// Deletes closed cases that were closed before an instant, whose run was pruned or wrote no
    /// record; their history goes with them. One of which a decision waits stays, and so does the
    /// whole of a part that stays. Returns how many.
    async fn purge_cases(&self, cases: &[i64], before: Instant) -> Result<u64, StoreError>;

    /// Keys of rows that wait for a person for one of these reasons alone, and that nobody looked
    /// at since `before`, those waiting longest first; those of which an end is `proposed`, too, or
    /// not.
    async fn rows_to_look_at(
        &self,
        table: &str,
        reasons: &[Reason],
        before: Instant,
        limit: i64,
        proposed: bool,
    ) -> Result<Vec<String>, StoreError>;

    /// Notes that these rows' open cases were looked at and stay.
    async fn note_looked_at(
        &self,
        table: &str,
        keys: &[String],
        now: Instant,
    ) -> Result<(), StoreError>;
}

/// Of an open case `k`: nobody's word of its end waits.
pub(in crate::store) const UNPROPOSED: &str = "and not exists (select 1 from tieout_proposals p \
     where p.case_number = k.number and p.state in ('open', 'approved'))";

/// Reasons as the list of an SQL `in`, spelt as the index of such cases spells them.
pub fn reasons_sql(reasons: &[Reason]) -> String {
    let codes: Vec<String> =
        reasons.iter().map(|reason| format!("'{}'", reason.as_str())).collect();
    codes.join(", ")
}

/// What belongs to which of these cases, by what is a part of what: (a case, what it is a part of).
pub(in crate::store) fn linked(
    cases: &[i64],
    parts: impl IntoIterator<Item = (i64, i64)>,
) -> HashMap<i64, CaseLinks> {
    let cases: HashSet<i64> = cases.iter().copied().collect();
    let mut links: HashMap<i64, CaseLinks> = HashMap::new();
    for (part, whole) in parts {
        if cases.contains(&part) {
            links.entry(part).or_default().part_of = Some(whole);
        }
        if cases.contains(&whole) {
            links.entry(whole).or_default().parts.push(part);
        }
    }
    links
}

/// What the history says of a proposal that nobody had approved when a run ended its case: what it
/// was about is over.
pub(in crate::store) fn outrun_text(run_id: &str) -> String {
    format!("its case was ended by run {run_id} before anybody approved it")
}

/// What the history says of an assignment.
pub fn assigned_text(owner: Option<&str>) -> String {
    match owner {
        Some(owner) => format!("to {owner}"),
        None => "to nobody".to_owned(),
    }
}

/// What the history says of a proposal.
pub fn proposed_text(proposal: &NewProposal) -> String {
    let object = proposal.psp_reference.as_deref().map(|object| format!(" with {object}"));
    let undoes = if proposal.undoes { "to undo it: " } else { "" };
    format!("{undoes}{}{}: {}", proposal.what.as_str(), object.unwrap_or_default(), proposal.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_wholes_are_told_of_the_cases_that_were_asked_for() {
        let links = linked(&[1, 2, 7, 8], [(2, 1), (3, 1), (7, 9)]);
        let of = |part_of, parts: &[i64]| CaseLinks { part_of, parts: parts.to_vec() };
        assert_eq!(links.get(&1), Some(&of(None, &[2, 3])));
        assert_eq!(links.get(&2), Some(&of(Some(1), &[])));
        assert_eq!(links.get(&7), Some(&of(Some(9), &[])));
        assert_eq!(links.len(), 3);
    }
}
