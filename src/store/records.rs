//! What passes through the store's door: plain data, the same for both databases.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::decide::decision::{Asked, Decision, History, Inputs};
use crate::decide::person::Word;
use crate::decide::policy::Mode;
use crate::model::evidence::{Answer, Evidence, PspObject, UntaggedMatch};
use crate::model::lean::is_default;
use crate::model::reason::{Outcome, Reason};
use crate::model::time::Instant;
use crate::model::transaction::{Kind, SiblingFact, Transaction};
use crate::store::files::LinePlace;

/// Opens a run.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// UUIDv7, or the caller's own.
    pub id: String,
    /// `run`, `ingest`, …
    pub command: String,
    /// This machine's name.
    pub host: String,
    /// This process.
    pub pid: i64,
    /// tieout's version.
    pub version: String,
    /// SHA-256 of the effective configuration, secrets left out.
    pub config_sha256: String,
    /// Names rules and settings together.
    pub policy_version: String,
    /// JSON: window and filters.
    pub scope: String,
}

/// A row of a mapped table, by its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    /// Its tag.
    pub tag: String,
    /// Its key's text.
    pub key: String,
    /// What it moves; `None`: a value that nobody mapped.
    pub kind: Option<Kind>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Going on.
    Running,
    /// Everything in scope was examined.
    Complete,
    /// Something was not examined.
    Partial,
    /// It could not go on.
    Failed,
    /// A signal stopped it.
    Interrupted,
    /// It stopped without a word; another run closed it.
    Abandoned,
}

impl RunState {
    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Abandoned => "abandoned",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Running,
            Self::Complete,
            Self::Partial,
            Self::Failed,
            Self::Interrupted,
            Self::Abandoned,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
    }
}

/// Closes a run.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// Never `Running`.
    pub state: RunState,
    /// The process's exit code.
    pub exit_code: i32,
    /// Its class: `ok`, `partial`, …
    pub exit_class: String,
    /// JSON: per account what was asked, the brake's figures, what was not examined.
    pub notes: String,
}

/// One run as it is stored.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// The command.
    pub command: String,
    /// Where it stands.
    pub state: RunState,
    /// When it began.
    pub started_at: Instant,
    /// When it last showed life.
    pub heartbeat_at: Instant,
    /// When it ended.
    pub ended_at: Option<Instant>,
    /// Where it ran.
    pub host: String,
    /// Its process.
    pub pid: i64,
    /// tieout's version.
    pub version: String,
    /// SHA-256 of its configuration.
    pub config_sha256: String,
    /// Its policy.
    pub policy_version: String,
    /// JSON: window and filters.
    pub scope: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Its exit class.
    pub exit_class: Option<String>,
    /// JSON: notes of its end.
    pub notes: String,
    /// How many journal records it wrote.
    pub journal_count: i64,
    /// Its place in the chain of closed runs.
    pub close_number: Option<i64>,
    /// Binds its records to the chain.
    pub close_hash: Option<String>,
}

/// What waits for later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Rows whose next look is planned.
    pub rows: i64,
    /// The soonest of those looks.
    pub next: Option<Instant>,
    /// The run that holds most rows now, at work or dead, and how many.
    pub held: Option<(String, i64)>,
}

/// A run that another run found dead and closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedRun {
    /// Its id.
    pub id: String,
    /// Its last sign of life.
    pub heartbeat_at: Instant,
    /// Rows it had decided.
    pub decided: i64,
    /// Rows it had claimed and not decided.
    pub released: i64,
}

/// Which due rows to take.
#[derive(Debug, Clone, Default)]
pub struct ClaimFilter {
    /// Creation at or after this.
    pub created_from: Option<Instant>,
    /// Creation before this.
    pub created_to: Option<Instant>,
    /// Last attempt at or after this.
    pub attempted_from: Option<Instant>,
    /// Last attempt before this.
    pub attempted_to: Option<Instant>,
    /// Only these keys (texts as in `RowKey::id`); due or not, their turn is now.
    pub ids: Option<Vec<String>>,
    /// Only these accounts (configured names).
    pub accounts: Option<Vec<String>>,
    /// Stuck means: processing, and created and last attempted before this.
    pub stuck_before: Option<Instant>,
    /// Rows that were given up are looked at as well, once, as a watch does.
    pub given_up: bool,
    /// So are those of `ids` that ended in any other way.
    pub ended: bool,
    /// Of `ids` only rows that have an open case; they are asked about as `Kick`.
    pub kicked: bool,
}

/// The watch step of a row that is looked at once, beyond every step that a policy has.
pub const LAST_LOOK: u32 = 1_000;

/// Why a hand-back ended whose row is gone.
pub const ROW_GONE: &str = "row_gone";

/// One claimed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The row, read under the lease.
    pub row: Transaction,
    /// What is remembered.
    pub history: History,
    /// Why it is looked at.
    pub asked: Asked,
    /// The fencing token; [`UNLEASED`].
    pub token: i64,
    /// The number of its open case.
    pub open_case: Option<i64>,
    /// How many events were staged for it so far.
    pub events: u32,
}

/// The token of a row that no run ever leased.
pub const UNLEASED: i64 = 0;

impl Claimed {
    /// A stuck row that tieout knows nothing of yet.
    pub fn unleased(row: Transaction, now: Instant) -> Self {
        Self {
            row,
            history: History::first_look(now),
            asked: Asked::Run,
            token: UNLEASED,
            open_case: None,
            events: 0,
        }
    }
}

/// These keys in their order, without those that are among them several times.
pub fn only_once(mut keys: Vec<String>) -> Vec<String> {
    keys.sort_unstable();
    let alike = keys.chunk_by(|one, other| one == other);
    alike.filter_map(|alike| if let [one] = alike { Some(one.clone()) } else { None }).collect()
}

/// Everything that a decision was made from, as it is stored and replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredInputs {
    /// Version of this JSON.
    pub schema: u32,
    /// The time of the decision.
    pub now: Instant,
    /// Why the row was looked at.
    pub asked: Asked,
    /// The row.
    pub row: Transaction,
    /// Its siblings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub siblings: Vec<SiblingFact>,
    /// What the sources said.
    #[serde(default, skip_serializing_if = "is_default")]
    pub evidence: Vec<Evidence>,
    /// References that other rows have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub claimed_references: Vec<(String, String)>,
    /// Money that no row explains.
    #[serde(default, skip_serializing_if = "is_default")]
    pub untagged: Vec<UntaggedMatch>,
    /// Nearly equal tags.
    #[serde(default, skip_serializing_if = "is_default")]
    pub near_misses: Vec<(String, String)>,
    /// What was seen of the objects that have them, as far as they were read whole.
    #[serde(default, skip_serializing_if = "is_default")]
    pub near_objects: Vec<PspObject>,
    /// What was remembered.
    pub history: History,
    /// By whose word its case was decided again, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kicked: Option<KickedBy>,
}

impl StoredInputs {
    /// What the judge takes.
    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            row: &self.row,
            siblings: &self.siblings,
            evidence: &self.evidence,
            claimed_references: &self.claimed_references,
            untagged: &self.untagged,
            near_misses: &self.near_misses,
            history: &self.history,
            asked: self.asked,
        }
    }

    /// What each source shows, the newest look at each object, the oldest object first.
    pub fn objects(&self) -> Vec<(&Evidence, &PspObject)> {
        let mut newest: BTreeMap<&str, (&Evidence, &PspObject)> = BTreeMap::new();
        for item in &self.evidence {
            let Answer::Found { objects, .. } = &item.answer else { continue };
            for object in objects {
                let known = newest.entry(object.reference.as_str()).or_insert((item, object));
                if item.asked_at >= known.0.asked_at {
                    *known = (item, object);
                }
            }
        }
        let mut found: Vec<(&Evidence, &PspObject)> = newest.into_values().collect();
        found.sort_by_key(|(_, object)| object.created_at);
        found
    }
}

/// [`StoredInputs`] on their way to the database: the same fields in the same order, none of them
/// a copy. A batch holds thousands of them.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct InputsToStore<'a> {
    /// Version of this JSON.
    pub schema: u32,
    /// The time of the decision.
    pub now: Instant,
    /// Why the row was looked at.
    pub asked: Asked,
    /// The row.
    pub row: &'a Transaction,
    /// Its siblings.
    #[serde(skip_serializing_if = "is_default")]
    pub siblings: &'a [SiblingFact],
    /// What the sources said.
    #[serde(skip_serializing_if = "is_default")]
    pub evidence: &'a [Evidence],
    /// References that other rows have.
    #[serde(skip_serializing_if = "is_default")]
    pub claimed_references: &'a [(String, String)],
    /// Money that no row explains.
    #[serde(skip_serializing_if = "is_default")]
    pub untagged: &'a [UntaggedMatch],
    /// Nearly equal tags.
    #[serde(skip_serializing_if = "is_default")]
    pub near_misses: &'a [(String, String)],
    /// What was seen of the objects that have them.
    #[serde(skip_serializing_if = "is_default")]
    pub near_objects: &'a [PspObject],
    /// What was remembered.
    pub history: &'a History,
    /// By whose word its case was decided again, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kicked: Option<&'a KickedBy>,
}

/// By whose word a case was decided again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KickedBy {
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
    /// The version of the rules.
    pub rules: String,
}

/// A decision on its way to the database.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The row, as claimed.
    pub claimed: Claimed,
    /// The decision.
    pub decision: Decision,
    /// The stricter of the table's and the account's mode.
    pub mode: Mode,
    /// When it was decided.
    pub now: Instant,
    /// The JSON of [`StoredInputs`].
    pub evidence: String,
    /// Names rules and settings.
    pub policy_version: String,
    /// The lines of settlement files that it was decided from.
    pub lines: Vec<LinePlace>,
    /// The person's word that it is, where it is one.
    pub person: Option<Word>,
    /// The status that the mapping goes by, where it is another than the row's: what the row had
    /// before tieout wrote its present one.
    pub mapped_from: Option<String>,
    /// Its open case ends with this look, which decided nothing: nothing contradicts the paid row
    /// any more.
    pub clears_case: bool,
    /// Events of the table are staged: a sink takes them, or the outbox is the table's channel.
    pub stages: bool,
    /// The siblings that it was decided from. It is not carried out where one of them went first
    /// since; `None`: it stands whatever they became.
    pub siblings: Option<Vec<SiblingFact>>,
}

/// Whether a decision was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// As decided.
    Yes,
    /// The row, its lease or its run had changed; nothing was written to it.
    Superseded,
    /// The mode forbids it; this is what would have been.
    Withheld,
}

impl Applied {
    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Superseded => "superseded",
            Self::Withheld => "withheld",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Yes, Self::Superseded, Self::Withheld].into_iter().find(|a| a.as_str() == text)
    }
}

/// One record of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRow {
    /// The run.
    pub run_id: String,
    /// Which of the run's writers.
    pub writer: String,
    /// From 1, without gaps, within (run, writer).
    pub seq: i64,
    /// When the decision was written (the database's clock).
    pub at: Instant,
    /// The table's name.
    pub table: String,
    /// The row's key.
    pub key: String,
    /// The account's name, or the unmapped value.
    pub account: String,
    /// The tag.
    pub tag: String,
    /// `charge`, `refund`, `payout`.
    pub kind: String,
    /// Code, or empty where the row could not be read.
    pub currency: String,
    /// Minor units; + is money to the merchant.
    pub amount_minor: i64,
    /// Why the row was looked at.
    pub asked: Asked,
    /// What was decided.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// The rule's id.
    pub rule: Option<String>,
    /// One sentence with the numbers.
    pub text: String,
    /// Whether it was carried out.
    pub applied: Applied,
    /// The status before.
    pub status_before: String,
    /// The status after.
    pub status_after: String,
    /// The PSP's id.
    pub psp_reference: Option<String>,
    /// The PSP's word.
    pub psp_status: Option<String>,
    /// The PSP's currency.
    pub psp_currency: Option<String>,
    /// The PSP's amount, with the sign of the row's kind.
    pub psp_amount_minor: Option<i64>,
    /// The row's fingerprint.
    pub fingerprint: String,
    /// The evidence.
    pub evidence_sha256: String,
    /// The row's creation.
    pub row_created_at: Option<Instant>,
    /// The row's last attempt.
    pub row_attempted_at: Option<Instant>,
    /// Looks that were answered, this one included.
    pub checks: u32,
    /// The next look.
    pub next_check_at: Option<Instant>,
    /// The hand-back's number.
    pub handback_number: Option<u32>,
    /// The case's number.
    pub case_number: Option<i64>,
    /// Names rules and settings.
    pub policy_version: String,
    /// The record before, of the same run and writer; the first has the run's id here.
    pub prev_hash: String,
    /// SHA-256 over `prev_hash` and [`JournalRow::canonical`].
    pub hash: String,
}

/// A case as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseRow {
    /// `C-1043` on screens.
    pub number: i64,
    /// `row`, `line`, `file`, `account`.
    pub subject_kind: String,
    /// The table's name; empty for accounts and files.
    pub table: String,
    /// The row's key, the account's name, …
    pub subject: String,
    /// Why.
    pub reason: Reason,
    /// One sentence.
    pub text: String,
    /// Whether it is open.
    pub open: bool,
    /// The account.
    pub account: Option<String>,
    /// Code, or empty.
    pub currency: String,
    /// Minor units.
    pub amount_minor: i64,
    /// The rule tried.
    pub rule: Option<String>,
    /// The policy it was decided by.
    pub policy_version: String,
    /// The evidence.
    pub evidence_sha256: Option<String>,
    /// When it was opened.
    pub opened_at: Instant,
    /// By which run.
    pub opened_run: String,
    /// When it was last decided again.
    pub last_seen_at: Instant,
    /// By which run.
    pub last_run: String,
    /// How many decisions led here.
    pub times_seen: i64,
    /// Who has it.
    pub owner: Option<String>,
    /// When it was closed.
    pub closed_at: Option<Instant>,
    /// How.
    pub resolution: Option<String>,
}

/// A hand-back as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandbackRow {
    /// The table's name.
    pub table: String,
    /// The row's key.
    pub key: String,
    /// From 1.
    pub number: u32,
    /// By which run.
    pub run_id: String,
    /// When.
    pub at: Instant,
    /// The original account: the only one to charge at.
    pub account: String,
    /// The row's fingerprint when it was handed back.
    pub fingerprint: String,
    /// `absent`, `declined`, `unattempted`.
    pub permit: String,
    /// `same_object`, `same_key`, `new_attempt`.
    pub retry: String,
    /// The object of `same_object`.
    pub psp_reference: Option<String>,
    /// The end of `same_key`.
    pub same_key_until: Option<Instant>,
    /// Not earlier.
    pub not_before: Option<Instant>,
    /// Not later.
    pub charge_before: Instant,
    /// The evidence.
    pub evidence_sha256: String,
    /// When the worker took it.
    pub taken_at: Option<Instant>,
    /// When it ended; from then on nobody may charge by it.
    pub ended_at: Option<Instant>,
    /// Why: `lapsed`, `late_contradiction`, …
    pub end_reason: Option<String>,
}

/// What one apply did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyEnd {
    /// Every row was applied, withheld, superseded or given back; how many of each.
    Done {
        /// Carried out.
        applied: usize,
        /// Withheld by the mode.
        withheld: usize,
        /// The row, or its lease, had changed.
        superseded: usize,
        /// Rows without a lease that somebody else had taken in meanwhile: this run has no part in
        /// them any more.
        elsewhere: Vec<JournalRow>,
        /// Given back, as a person paused their account before the write: how many, by account.
        paused: BTreeMap<String, usize>,
        /// The rows that were not carried out as they had been decided.
        not_applied: Vec<NotApplied>,
    },
    /// The run is closed (abandoned by another): nothing was written, and nothing ever may be.
    RunClosed,
}

/// What the record of a row says that was given back, as its table refused it.
pub const TABLE_REFUSED: &str = "; not written, the database refused its table: ";

/// A row that was not carried out as it had been decided, and what stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotApplied {
    /// The table's name.
    pub table: String,
    /// The row's key.
    pub key: String,
    /// The reason for which it went to a person instead (`write_refused`, `reference_claimed`), or
    /// as decided, but without the status, which the user's database refused; `None`: it was
    /// superseded or given back, and is decided again.
    pub reason: Option<Reason>,
    /// It was given back, as a person paused its account before the write.
    pub paused: bool,
    /// The words of the user's database, where it refused every row that its batch was to write:
    /// the row is given back.
    pub refused: Option<String>,
    /// Why, in a sentence.
    pub text: String,
    /// The status that it kept; `None` where it was superseded or given back: somebody may have
    /// changed it.
    pub status: Option<String>,
}

impl NotApplied {
    /// The word for why.
    pub fn why(&self) -> &'static str {
        let again = if self.paused { "paused" } else { "superseded" };
        self.reason.map_or(again, Reason::as_str)
    }
}

/// One line of a run's control totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TotalLine {
    /// The table's name.
    pub table: String,
    /// Code, or empty.
    pub currency: String,
    /// `claimed`, `released`, or an outcome, or `superseded`.
    pub bucket: String,
    /// How many rows.
    pub rows: i64,
    /// Their sum.
    pub amount_minor: i128,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evidence::{Answer, Cause, CauseKind, EVIDENCE_SCHEMA, ObjectState, Route};
    use crate::model::money::{Currency, Money};
    use crate::model::time::from_text;
    use crate::model::transaction::{AccountRef, Attempts, Kind, RowKey, SiblingState, TagState};

    fn stored(kicked: Option<KickedBy>) -> StoredInputs {
        let now = from_text("2026-11-19T12:00:00Z").unwrap();
        let cause = Cause { kind: CauseKind::TimedOut, detail: "late".to_owned() };
        let money = Money::new(100, Currency::parse("EUR").unwrap());
        let pair = || ("pi_1".to_owned(), "7".to_owned());
        StoredInputs {
            schema: EVIDENCE_SCHEMA,
            now,
            asked: Asked::Kick,
            row: Transaction {
                key: RowKey { table: "t".to_owned(), id: "1".to_owned() },
                status: "processing".to_owned(),
                processing: true,
                succeeded: false,
                ignored: false,
                kind: Kind::Charge,
                money: Some(money),
                defects: Vec::new(),
                account: AccountRef::Known("a".to_owned()),
                tag: TagState::Usable("x".to_owned()),
                psp_reference: None,
                natural_key: None,
                idempotency_key: None,
                created_at: now,
                attempted_at: Some(now),
                attempts: Attempts::Column,
                image: "(1)".to_owned(),
            },
            siblings: vec![SiblingFact {
                id: "2".to_owned(),
                state: SiblingState::Pending,
                older: true,
                lacks: Some("acc_20261118.csv did not come whole yet".to_owned()),
            }],
            evidence: vec![Evidence {
                account: "a".to_owned(),
                route: Route::List,
                asked_at: now,
                answer: Answer::NoAnswer(cause),
            }],
            claimed_references: vec![pair()],
            untagged: vec![UntaggedMatch {
                reference: "pi_2".to_owned(),
                captured: money,
                created_at: now,
                tag: None,
            }],
            near_misses: vec![pair(), pair()],
            near_objects: vec![PspObject {
                reference: "pi_1".to_owned(),
                aliases: Vec::new(),
                kind: "payment_intent".to_owned(),
                state: ObjectState::Captured,
                status: "succeeded".to_owned(),
                amount: Some(money),
                captured: Some(money),
                refunded_minor: 0,
                capturable_minor: 0,
                disputed: false,
                charged_back_minor: 0,
                beyond_minor: 0,
                created_at: now,
                tag: Some("7".to_owned()),
                returned: None,
            }],
            history: History::first_look(now),
            kicked,
        }
    }

    #[test]
    fn what_is_stored_reads_back_byte_for_byte() {
        let by =
            KickedBy { by: "eva".to_owned(), why: "new rule".to_owned(), rules: "r".to_owned() };
        for stored in [stored(None), stored(Some(by))] {
            let borrowed = InputsToStore {
                schema: stored.schema,
                now: stored.now,
                asked: stored.asked,
                row: &stored.row,
                siblings: &stored.siblings,
                evidence: &stored.evidence,
                claimed_references: &stored.claimed_references,
                untagged: &stored.untagged,
                near_misses: &stored.near_misses,
                near_objects: &stored.near_objects,
                history: &stored.history,
                kicked: stored.kicked.as_ref(),
            };
            let text = serde_json::to_string(&borrowed).unwrap();
            assert_eq!(text, serde_json::to_string(&stored).unwrap());
            assert_eq!(serde_json::from_str::<StoredInputs>(&text).unwrap(), stored);
        }
    }
}
