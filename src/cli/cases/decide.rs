//! `cases propose|approve|reject|undo`: a person's decision, from the first word to its end.
//!
//! Who proposes says what and why; who approves is shown what the case shows, and approves that
//! and nothing else. The decision is carried out by a run, which asks the PSP again first.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::args::{Common, path, word, yes_or_no};
use crate::cli::cases::kept::{kept_of, tell_kept};
use crate::cli::cases::second::{maker, needs_two, not_by, who_may};
use crate::cli::cases::select::{
    Confirm, Named, Preview, SAMPLES, done, identity, said, selected, why,
};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{database, out, page, runtime};
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::run::events::Event;
use crate::run::people::{Second, carry_out_now, second_needed, undone_in_vain};
use crate::run::setup::RunOptions;
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::inspect::Inspect;
use crate::store::people::{NewProposal, PeopleDriver, Proposal, ProposalState, What};
use crate::store::records::CaseRow;

/// The longest reference of an object.
const OBJECT_MAX: usize = 255;

/// The words of `--as`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum As {
    /// The money moved; needs an object that captured exactly the row's amount
    Succeeded,
    /// Charge again: by --object, else a new attempt
    Retryable,
    /// It failed for good
    Failed,
    /// The row stays as it is, and the case closes
    Left,
}

impl As {
    fn what(self) -> What {
        match self {
            Self::Succeeded => What::Succeeded,
            Self::Retryable => What::Retryable,
            Self::Failed => What::Failed,
            Self::Left => What::Left,
        }
    }
}

/// What is proposed.
#[derive(Debug, Clone, clap::Args)]
struct Wanted {
    /// What shall become of the row
    #[arg(
        long = "as", value_enum, value_name = "OUTCOME", env = names::CASES_AS,
        help_heading = "What"
    )]
    outcome: As,
    /// The PSP's object that succeeded, or the one to charge by
    #[arg(
        long, value_name = "REFERENCE", env = names::CASES_OBJECT, help_heading = "What"
    )]
    object: Option<String>,
    /// Why, for whoever approves it and for the records
    #[arg(long, value_name = "TEXT", env = names::CASES_WHY, help_heading = "What")]
    why: String,
    /// A document that stands behind it: its name and SHA-256 go into the records
    #[arg(
        long, value_name = "FILE", env = names::CASES_ATTACH, value_parser = path(),
        help_heading = "What"
    )]
    attach: Option<PathBuf>,
}

/// Options of `cases propose`.
#[derive(Debug, clap::Args)]
pub struct Propose {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    confirm: Confirm,
}

/// Options of `cases undo`.
#[derive(Debug, clap::Args)]
pub struct Undo {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    confirm: Confirm,
}

/// Options of `cases approve`.
#[derive(Debug, clap::Args)]
pub struct Approve {
    #[command(flatten)]
    named: Named,
    /// Why, for the records
    #[arg(long, value_name = "TEXT", env = names::CASES_WHY, help_heading = "How")]
    why: String,
    /// Leave carrying it out to the next `tieout run`
    #[arg(
        long, env = names::CASES_LATER, value_parser = yes_or_no, help_heading = "How"
    )]
    later: bool,
    #[command(flatten)]
    confirm: Confirm,
}

/// Options of `cases reject`.
#[derive(Debug, clap::Args)]
pub struct Reject {
    #[command(flatten)]
    named: Named,
    /// Why, for who proposed it
    #[arg(long, value_name = "TEXT", env = names::CASES_WHY, help_heading = "How")]
    why: String,
    #[command(flatten)]
    confirm: Confirm,
}

/// Runs `cases propose`.
pub async fn propose(
    options: &Propose,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let cases = selected(&options.named.cases, &options.named.select, true, db).await?;
    let asked = Asked { wanted: &options.wanted, confirm: &options.confirm, undoes: false };
    asked.propose(&cases, common, config, db).await
}

/// Runs `cases undo`.
pub async fn undo(
    options: &Undo,
    common: &Common,
    config: &Config,
    db: &Database,
) -> Result<Exit, Failure> {
    let cases = selected(&options.named.cases, &options.named.select, false, db).await?;
    let ended = last_ended(&cases, db).await?;
    let by_people = |case: &&CaseRow| !case.open && ended.contains_key(&case.number);
    let left = |case: &&CaseRow| !case.open && !ended.contains_key(&case.number);
    if let Some(other) = cases.iter().find(left) {
        let text = format!(
            "case C-{}: no person's decision wrote anything for it (left as it is, or ended by a \
             run), so that none is undone; nothing was done",
            other.number
        );
        let hint = "`tieout cases show` says how it ended; `tieout run --id ID` looks at a row \
                    that is stuck once more";
        return Err(Failure::new(Exit::Usage, text, hint));
    }
    if let Some(other) = cases.iter().find(|case| !by_people(case)) {
        let text = format!(
            "case C-{}: no person's decision ended it, so that none is undone; nothing was done",
            other.number
        );
        return Err(Failure::new(Exit::Usage, text, "`tieout cases show` says how it ended"));
    }
    let asked = Asked { wanted: &options.wanted, confirm: &options.confirm, undoes: true };
    asked.propose(&cases, common, config, db).await
}

/// The last proposal of each case that was carried out, by the case.
async fn last_ended(cases: &[CaseRow], db: &Database) -> Result<HashMap<i64, Proposal>, Failure> {
    let mut ended = HashMap::new();
    for proposal in proposals_of(cases, db).await? {
        if proposal.state == ProposalState::CarriedOut && proposal.what != What::Left {
            ended.insert(proposal.case_number, proposal);
        }
    }
    Ok(ended)
}

/// Every proposal of these cases, the oldest first.
pub async fn proposals_of(cases: &[CaseRow], db: &Database) -> Result<Vec<Proposal>, Failure> {
    let numbers: Vec<i64> = cases.iter().map(|case| case.number).collect();
    db.proposals(&numbers).await.map_err(|e| Failure::store(&e))
}

struct Asked<'a> {
    wanted: &'a Wanted,
    confirm: &'a Confirm,
    undoes: bool,
}

impl Asked<'_> {
    async fn propose(
        &self,
        cases: &[CaseRow],
        common: &Common,
        config: &Config,
        db: &Database,
    ) -> Result<Exit, Failure> {
        let why = said(&self.wanted.why, self.wanted.attach.as_ref())?;
        let what = self.wanted.outcome.what();
        let object = object(self.wanted.object.as_ref(), what)?;
        cases.iter().try_for_each(|case| may_be(case, what))?;
        if let Some(why) = what.unfit_to_undo().filter(|_| self.undoes) {
            return Err(Failure::usage(format!("--as {}: {why}; nothing was done", what.as_str())));
        }
        let (cases, taken) = unproposed(cases, db).await?;
        let cases = cases.as_slice();
        if self.undoes && what == What::Retryable {
            can_be_taken(cases, config, db).await?;
        }
        let asked = (what, object.as_deref());
        let needs = needs_two(cases, asked, config, db).await?;
        let by = maker(cases, &needs, db).await?;
        let kept = kept_of(cases, (asked, self.undoes), config, db).await?;
        let says = |case: &CaseRow| {
            let eyes = match needs.get(&case.number).map(Second::why) {
                Some(Some(why)) => format!("; another person approves it, since {why}"),
                Some(None) => "; another person approves it".to_owned(),
                None => String::new(),
            };
            let kept = kept.get(&case.number).map(|kept| format!("; {kept}"));
            let object = object.as_deref().map(|object| format!(" with {object}"));
            Some(format!(
                "{}{}: {why}{eyes}{}",
                what.as_str(),
                object.unwrap_or_default(),
                kept.unwrap_or_default()
            ))
        };
        let action = if self.undoes { "undo" } else { "propose" };
        let preview = Preview { action, cases, says: &says, is_bound: true };
        if !preview.confirmed(self.confirm, common, db).await? {
            return Ok(Exit::Ok);
        }
        let proposals: Vec<NewProposal> = cases
            .iter()
            .map(|case| NewProposal {
                case_number: case.number,
                what,
                psp_reference: object.clone(),
                undoes: self.undoes,
                why: why.clone(),
                evidence_sha256: case.evidence_sha256.clone(),
                four_eyes: needs.contains_key(&case.number),
            })
            .collect();
        let now = db.now().await.map_err(|e| Failure::store(&e))?;
        let stand = db.propose(&proposals, &by, now).await.map_err(|e| Failure::store(&e))?;
        let count = u64::try_from(stand.len()).unwrap_or(u64::MAX);
        let exit = done(action, count, cases.len(), common);
        for case in cases.iter().filter(|case| !stand.contains(&case.number)) {
            page::warn(&format!(
                "tieout: case C-{0}: nothing was proposed: it has a proposal already (tieout cases \
                 reject C-{0} --why TEXT ends it), or shows something else by now",
                case.number
            ));
        }
        let is_whole = stand.len() == cases.len() && taken == 0;
        Ok(if is_whole { exit } else { Exit::Partial })
    }
}

/// Those that nothing is proposed of; says so of the others, and how many they are.
async fn unproposed(cases: &[CaseRow], db: &Database) -> Result<(Vec<CaseRow>, usize), Failure> {
    let proposals = proposals_of(cases, db).await?;
    let is_live =
        |one: &&Proposal| matches!(one.state, ProposalState::Open | ProposalState::Approved);
    let live: HashSet<i64> = proposals.iter().filter(is_live).map(|one| one.case_number).collect();
    let mut free = cases.to_vec();
    free.retain(|case| !live.contains(&case.number));
    for case in cases.iter().filter(|case| live.contains(&case.number)) {
        page::warn(&format!(
            "tieout: case C-{0}: it has a proposal already (tieout cases reject C-{0} --why TEXT \
             ends one that is open)",
            case.number
        ));
    }
    if free.is_empty() {
        let text = "nothing is left to propose; nothing was done";
        let hint = "`tieout cases show` says what is proposed";
        return Err(Failure::new(Exit::Partial, text, hint));
    }
    let taken = cases.len().saturating_sub(free.len());
    Ok((free, taken))
}

/// Nobody proposes a hand-back that no worker could take.
async fn can_be_taken(cases: &[CaseRow], config: &Config, db: &Database) -> Result<(), Failure> {
    for case in cases {
        let why = undone_in_vain(db, &config.tables, case).await;
        if let Some(why) = why.map_err(|e| Failure::store(&e))? {
            let text = format!("case C-{}: {why}; nothing was proposed", case.number);
            let hint = "`tieout cases show` says how it ended";
            return Err(Failure::new(Exit::Usage, text, hint));
        }
    }
    Ok(())
}

/// Whether such a decision is one of this kind of case.
pub fn may_be(case: &CaseRow, what: What) -> Result<(), Failure> {
    let Some(why) = what.unfit_for(&case.subject_kind) else { return Ok(()) };
    let text = format!("case C-{}: {why}; nothing was done", case.number);
    Err(Failure::new(Exit::Usage, text, "`tieout cases show` says what ends it"))
}

fn object(given: Option<&String>, what: What) -> Result<Option<String>, Failure> {
    let Some(object) = word(given) else { return Ok(None) };
    let is_fine = object.len() <= OBJECT_MAX && !object.contains(char::is_control);
    if !is_fine {
        let text = format!("--object: expected a PSP's id of at most {OBJECT_MAX} bytes");
        return Err(Failure::usage(text));
    }
    match what {
        What::Succeeded | What::Retryable => Ok(Some(object)),
        What::Failed | What::Left => {
            let text = format!("--object {object}: it goes with succeeded and retryable alone");
            Err(Failure::usage(text))
        }
    }
}

/// What is proposed, with the cases.
struct Open {
    cases: Vec<CaseRow>,
    proposals: HashMap<i64, Proposal>,
}

impl Open {
    /// `with_approved`: of cases that are named, what no run has carried out yet, too.
    async fn of(named: &Named, with_approved: bool, db: &Database) -> Result<Self, Failure> {
        // What undoes a decision is proposed of a closed case.
        let is_named = !named.cases.is_empty();
        let mut cases = selected(&named.cases, &named.select, !is_named, db).await?;
        let mut proposals = HashMap::new();
        for proposal in proposals_of(&cases, db).await? {
            let is_approved = proposal.state == ProposalState::Approved;
            if proposal.state == ProposalState::Open || (is_approved && is_named && with_approved) {
                proposals.insert(proposal.case_number, proposal);
            }
        }
        cases.retain(|case| proposals.contains_key(&case.number));
        if cases.is_empty() {
            let text = "nothing is proposed of these cases; nothing was done";
            return Err(Failure::new(Exit::Partial, text, "`tieout cases list --proposed open`"));
        }
        Ok(Self { cases, proposals })
    }

    /// Takes out what this person cannot approve, and what nobody can, since its case shows
    /// something else by now; says so of each, and how many they were. `alone`: by the case, why
    /// it needs a second person whatever its amount.
    fn leave_out(
        &mut self,
        by: &str,
        is_told_apart: bool,
        alone: &HashMap<i64, String>,
    ) -> Result<usize, Failure> {
        let (mut own, mut stale) = (0_usize, 0_usize);
        let proposals = &self.proposals;
        self.cases.retain(|case| {
            let Some(proposal) = proposals.get(&case.number) else { return false };
            let number = case.number;
            if let Some(why) = moved_on(case, proposal) {
                stale = stale.saturating_add(1);
                page::warn(&format!(
                    "tieout: case C-{number}: {why}: nothing is left to approve of it (tieout \
                     cases reject C-{number} --why TEXT ends the proposal)"
                ));
            } else if proposal.is_stale(case.evidence_sha256.as_ref()) {
                stale = stale.saturating_add(1);
                page::warn(&format!("tieout: case C-{number}: {}", stale_text(number)));
            } else if let Some(why) = alone.get(&number) {
                own = own.saturating_add(1);
                page::warn(&format!("tieout: case C-{number}: {why}"));
            } else if let Some(why) = not_by(proposal, by, is_told_apart) {
                own = own.saturating_add(1);
                page::warn(&format!("tieout: case C-{number}: {why}"));
            } else {
                return true;
            }
            false
        });
        if self.cases.is_empty() {
            let text = "nothing is left to approve; nothing was done";
            let hint = match own {
                0 => "turn it down, and propose anew what the case shows now",
                _some => who_may(is_told_apart),
            };
            return Err(Failure::new(Exit::Usage, text, hint));
        }
        Ok(own.saturating_add(stale))
    }

    fn says(&self, case: &CaseRow) -> Option<String> {
        let proposal = self.proposals.get(&case.number)?;
        let object = proposal.psp_reference.as_deref().map(|object| format!(" with {object}"));
        let undoes = if proposal.undoes { "undo: " } else { "" };
        let by = proposal.approved_by.as_ref().map(|by| format!("; approved by {by}"));
        Some(format!(
            "{undoes}{}{} proposed by {}: {} (proposal {}){}",
            proposal.what.as_str(),
            object.unwrap_or_default(),
            proposal.proposed_by,
            proposal.why,
            proposal.number,
            by.unwrap_or_default()
        ))
    }
}

/// Why nobody can approve it any more: its case ended since, or was opened again.
fn moved_on(case: &CaseRow, proposal: &Proposal) -> Option<&'static str> {
    match (proposal.fits(case.open), proposal.undoes) {
        (true, _) => None,
        (false, false) => Some("it ended by itself since"),
        (false, true) => Some("it was opened again since"),
    }
}

/// What is said of such a proposal.
pub fn stale_text(case: i64) -> String {
    format!(
        "it was proposed of other evidence than the case shows now: turn it down (tieout cases \
         reject C-{case} --why TEXT), and propose anew"
    )
}

/// What a preview of approving this case says of it: the same text as the command shows.
pub fn seen_of(case: &CaseRow, proposal: &Proposal) -> String {
    let open = Open {
        cases: vec![case.clone()],
        proposals: HashMap::from([(case.number, proposal.clone())]),
    };
    let says = |case: &CaseRow| open.says(case);
    Preview { action: "approve", cases: &open.cases, says: &says, is_bound: true }.seen()
}

/// Runs `cases reject`.
pub async fn reject(options: &Reject, common: &Common, db: &Database) -> Result<Exit, Failure> {
    let why = why(&options.why)?;
    let open = Open::of(&options.named, true, db).await?;
    let says = |case: &CaseRow| open.says(case);
    let preview = Preview { action: "reject", cases: &open.cases, says: &says, is_bound: false };
    if !preview.confirmed(&options.confirm, common, db).await? {
        return Ok(Exit::Ok);
    }
    let (by, _) = identity(db).await?;
    let numbers: Vec<i64> = open.proposals.values().map(|proposal| proposal.number).collect();
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let ended = db.turn_down(&numbers, why, &by, now).await.map_err(|e| Failure::store(&e))?;
    let count = u64::try_from(ended.len()).unwrap_or(u64::MAX);
    let exit = done("reject", count, open.cases.len(), common);
    for proposal in open.proposals.values().filter(|one| !ended.contains(&one.number)) {
        page::warn(&format!(
            "tieout: case C-{0}: nothing was rejected: what was proposed had ended before (tieout \
             cases show C-{0} says how)",
            proposal.case_number
        ));
    }
    Ok(if ended.len() == open.cases.len() { exit } else { Exit::Partial })
}

/// Runs `cases approve`.
pub fn approve(options: &Approve, common: &Common, config: &Config) -> Result<Exit, Failure> {
    runtime::block_on(Box::pin(async {
        let stop = Stop::new();
        let db = database::open(config).await?;
        let ended = match runtime::listen(&stop, config.limits.grace) {
            Err(failure) => Err(failure),
            Ok(_listening) => approve_on(options, common, config, &db, &stop).await,
        };
        db.close().await;
        ended
    }))?
}

async fn approve_on(
    options: &Approve,
    common: &Common,
    config: &Config,
    db: &Database,
    stop: &Stop,
) -> Result<Exit, Failure> {
    let why = why(&options.why)?;
    let mut open = Open::of(&options.named, false, db).await?;
    let (by, is_told_apart) = identity(db).await?;
    let shown_at = db.now().await.map_err(|e| Failure::store(&e))?;
    let proposals: Vec<&Proposal> = open.proposals.values().collect();
    let alone = second_needed(db, &config.setup(), &proposals, &by, shown_at).await;
    let alone = alone.map_err(|e| Failure::store(&e))?;
    let left_out = open.leave_out(&by, is_told_apart, &alone)?;
    let samples = open.cases.iter().take(SAMPLES);
    let shown: Vec<&Proposal> =
        samples.filter_map(|case| open.proposals.get(&case.number)).collect();
    tell_kept(&shown, &open.cases, config, db).await?;
    let says = |case: &CaseRow| open.says(case);
    let preview = Preview { action: "approve", cases: &open.cases, says: &says, is_bound: true };
    if !preview.confirmed(&options.confirm, common, db).await? {
        return Ok(Exit::Ok);
    }
    let seen: Vec<(i64, Option<String>)> = open
        .cases
        .iter()
        .filter_map(|case| {
            let proposal = open.proposals.get(&case.number)?;
            Some((proposal.number, case.evidence_sha256.clone()))
        })
        .collect();
    let now = db.now().await.map_err(|e| Failure::store(&e))?;
    let approved = db.approve(&seen, why, &by, now).await.map_err(|e| Failure::store(&e))?;
    let count = u64::try_from(approved.len()).unwrap_or(u64::MAX);
    let exit = done("approve", count, open.cases.len(), common);
    let is_whole = approved.len() == open.cases.len() && left_out == 0;
    let exit = if is_whole { exit } else { Exit::Partial };
    if options.later || approved.is_empty() {
        return Ok(exit);
    }
    let carried = carry_out(&open.cases, &approved, common, config, db, stop).await?;
    Ok(exit.or_stronger(carried))
}

/// Carries out what was just approved. Where this login may not, or the PSP is down, the approval
/// stands and the next run does it.
pub async fn carry_out(
    cases: &[CaseRow],
    approved: &[i64],
    common: &Common,
    config: &Config,
    db: &Database,
    stop: &Stop,
) -> Result<Exit, Failure> {
    if !may_carry_out(db).await? {
        return left_to_a_run(cases, approved, common, db).await;
    }
    let setup = config.setup();
    let options = RunOptions { report: false, ..RunOptions::default() };
    let numbers: Vec<i64> = cases.iter().map(|case| case.number).collect();
    let mut tell = |event: Event| {
        if let Event::NotExamined { exit, text } = event {
            page::warn(&format!("tieout: {}: {text}", exit.class()));
        }
    };
    let ended = Box::pin(carry_out_now(&setup, &options, db, stop, &numbers, &mut tell)).await;
    let mut exit = match ended {
        Ok(summary) => summary.exit,
        Err(error) => {
            let failure = Failure::run(&error);
            page::warn(&format!(
                "tieout: {}: {}; what was approved stands, and the next run carries it out",
                failure.exit.class(),
                failure.text
            ));
            if let Some(hint) = &failure.hint {
                page::warn(&format!("hint: {hint}"));
            }
            failure.exit
        }
    };
    let proposals = proposals_of(cases, db).await?;
    let mut done = Vec::new();
    for proposal in proposals.iter().filter(|one| approved.contains(&one.number)) {
        tell_end(proposal, common);
        match proposal.state {
            ProposalState::CarriedOut => done.push(proposal),
            _not_yet => exit = exit.or_stronger(Exit::Partial),
        }
    }
    tell_kept(&done, cases, config, db).await?;
    Ok(exit)
}

/// Whether this login may run, and not decide alone.
pub(super) async fn may_carry_out(db: &Database) -> Result<bool, Failure> {
    let rights = db.rights().await.map_err(|e| Failure::store(&e))?;
    Ok(!rights.lacks.iter().any(|right| right == "insert on tieout_journal"))
}

/// What the role for people is for: it approves, and the next run does it. Nothing is amiss.
async fn left_to_a_run(
    cases: &[CaseRow],
    approved: &[i64],
    common: &Common,
    db: &Database,
) -> Result<Exit, Failure> {
    let proposals = proposals_of(cases, db).await?;
    let stand = proposals.iter().filter(|one| approved.contains(&one.number));
    stand.for_each(|proposal| tell_end(proposal, common));
    if !common.json && !common.quiet {
        page::say("this login decides and writes no row; the next `tieout run` carries it out");
    }
    Ok(Exit::Ok)
}

fn tell_end(proposal: &Proposal, common: &Common) {
    if common.json {
        return out::stdout(&line("proposal", body(proposal)));
    }
    if common.quiet {
        return;
    }
    let what = proposal.what.as_str();
    let text = match (proposal.state, &proposal.ended_why) {
        (ProposalState::CarriedOut, _) => format!("{what}: carried out"),
        (ProposalState::Refused, Some(why)) => format!("{what}: refused: {why}"),
        (ProposalState::Refused, None) => format!("{what}: refused"),
        (ProposalState::Rejected | ProposalState::Withdrawn, _) => {
            format!("{what}: taken back before it was carried out")
        }
        (ProposalState::Open | ProposalState::Approved, _) => {
            format!("{what}: approved, and not carried out yet")
        }
    };
    page::say(&format!("C-{}  {text}", proposal.case_number));
}

/// A proposal as an event.
pub fn body(proposal: &Proposal) -> serde_json::Value {
    let at = |at: Option<crate::model::time::Instant>| at.map(crate::model::time::to_text);
    serde_json::json!({
        "proposal": proposal.number,
        "case_id": format!("C-{}", proposal.case_number),
        "what": proposal.what.as_str(),
        "psp_reference": proposal.psp_reference,
        "undoes": proposal.undoes,
        "why": proposal.why,
        "evidence_sha256": proposal.evidence_sha256,
        "four_eyes": proposal.four_eyes,
        "proposed_by": proposal.proposed_by,
        "proposed_at": crate::model::time::to_text(proposal.proposed_at),
        "state": proposal.state.as_str(),
        "approved_by": proposal.approved_by,
        "approved_at": at(proposal.approved_at),
        "approved_why": proposal.approved_why,
        "ended_at": at(proposal.ended_at),
        "ended_why": proposal.ended_why,
        "ended_run": proposal.ended_run,
    })
}
