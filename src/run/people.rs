//! What people approved is carried out here, by fresh evidence and through the gate that a rule's
//! decision passes; and cases that only time or an outage opened are looked at again.
//!
//! An approval that no PSP could be asked about stands, and the next run tries it again. One that
//! the evidence stands against is refused, and its case stays open with what was found.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use crate::decide::decision::{Asked as Why, Decision, Inputs, Verdict};
use crate::decide::person::{Refusal, Wish, Word, decide_by_person, may_be_its_own, only_two};
use crate::decide::policy::Mode;
use crate::decide::since::{came_since, gone_since};
use crate::model::evidence::{Answer, Evidence, ObjectState, PspObject};
use crate::model::reason::{Outcome, Reason};
use crate::model::time::{Instant, earlier, later};
use crate::model::transaction::AccountRef;
use crate::run::books::{Books, Tell};
use crate::run::by_files::ByFiles;
use crate::run::by_people::{self, Unseen, is_unseen, too_many};
use crate::run::clock::DatabaseClock;
use crate::run::drive::{self, ask, by_account, give_back, without_account};
use crate::run::error::{Doing, RunError};
use crate::run::events::{Event, Summary};
use crate::run::finish::finish;
use crate::run::fitting::map_tables;
use crate::run::gather::{Weighed, check_tag_length};
use crate::run::kept::note_kept;
use crate::run::mapped::{Mapped, as_left, reopen};
use crate::run::match_lines::contradicted;
use crate::run::replay::facts;
use crate::run::scene::{OpenAccount, Scene, nobody, policy_of, policy_of_row};
use crate::run::setup::{AccountSetup, RunOptions, Setup};
use crate::run::shutdown::Stop;
use crate::run::{read_clock, show_life, start_of};
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::effects::map_of;
use crate::store::error::StoreError;
use crate::store::files::FileDriver;
use crate::store::mapping::TableSettings;
use crate::store::people::{Approved, PeopleDriver, Proposal, What};
use crate::store::records::{CaseRow, ClaimFilter, Claimed, RunStart, StoredInputs};
use crate::store::replay::{ReplayDriver, SHOWN_AT_ONCE, Written};
use crate::store::source_table::SourceTable;

/// Approvals carried out together.
const AT_ONCE: i64 = 500;

/// Cases of a table that one run looks at again; the others are the next run's.
const LOOKS_AT_ONCE: i64 = 1_000;

/// Open cases among which those of some rows are looked for.
const CASES: i64 = 100_000;

/// How long a case that only time opened is left alone.
const LOOK_EVERY: TimeDelta = TimeDelta::days(1);

/// Where the PSP gave no answer, it is asked again this soon; the others have their turn first.
const LOOK_SOON: TimeDelta = TimeDelta::hours(1);

/// Reasons of cases that end by themselves where nothing contradicts the paid row any more.
pub(super) const CLEARED: [Reason; 8] = [
    Reason::LateContradiction,
    Reason::AmountMismatch,
    Reason::CurrencyMismatch,
    Reason::ReferenceMismatch,
    Reason::DuplicateCapture,
    Reason::Refunded,
    Reason::Disputed,
    Reason::Returned,
];

/// Reasons that say no more than that time went by without an answer.
pub(super) const ONLY_TIME: [Reason; 2] = [Reason::PendingTooLong, Reason::Unprovable];

/// Keys of rows, by the place of their table.
pub(super) type RowsByTable = BTreeMap<usize, BTreeSet<String>>;

/// Carries out what people approved for these cases, in a run of its own.
///
/// # Errors
/// Where the run could not go on; what it could do stands in the database.
pub async fn carry_out_now(
    setup: &Setup,
    options: &RunOptions,
    db: &Database,
    stop: &Stop,
    cases: &[i64],
    tell: Tell<'_>,
) -> Result<Summary, RunError> {
    let now = read_clock(db, options).await.doing("reading the database's clock")?;
    let tables = map_tables(db, &setup.tables, &setup.accounts).await;
    let tables = tables.doing("checking the mapping against the database")?;
    let run_id = options.run_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let clock = DatabaseClock::new(now);
    let scene = Scene::open(setup, options, db, stop, &run_id, tables, clock.clone()).await?;
    let start = RunStart { command: "cases".to_owned(), ..start_of(setup, options, &run_id) };
    db.start_run(&start, now).await.doing("opening the run")?;
    tell(Event::Started { run_id: run_id.clone(), window: None, dry_run: false, at: now });
    let mut books = Books::open(&run_id);
    let done = CancellationToken::new();
    let work = async {
        let result = Box::pin(carry_out(&scene, &mut books, Some(cases), tell)).await;
        let result = match result {
            // A row that was looked at first may wait for others with its natural key.
            Ok(()) => Box::pin(books.settle_paid(&scene, tell)).await,
            Err(error) => Err(error),
        };
        done.cancel();
        result
    };
    let (result, alive) = tokio::join!(work, show_life(&scene, &clock, &done));
    finish(&scene, books, result.and(alive), now, tell).await
}

/// Whether a run takes care of everything, and not of some rows that were named.
pub(super) fn is_whole(scene: &Scene<'_>) -> bool {
    let options = scene.options;
    let is_narrowed = options.ids.is_some()
        || options.kick.is_some()
        || options.window.is_some()
        || options.accounts.is_some();
    !is_narrowed && !options.dry_run
}

/// Carries out everything that people approved; part of every run that is not narrowed.
pub async fn carry_out_all(
    scene: &Scene<'_>,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    Box::pin(carry_out(scene, books, None, tell)).await
}

async fn carry_out(
    scene: &Scene<'_>,
    books: &mut Books,
    cases: Option<&[i64]>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let mut after = 0;
    while scene.stop.requested().is_none() && !books.closed {
        let page = scene.db.approved(cases, after, AT_ONCE).await;
        let page = page.doing("reading what people approved")?;
        let Some(last) = page.last() else { break };
        after = last.proposal.number;
        let is_success = |approved: &&Approved| approved.proposal.what == What::Succeeded;
        let successes: Vec<Approved> = page.iter().filter(is_success).cloned().collect();
        let mut by_table: BTreeMap<usize, Vec<Approved>> = BTreeMap::new();
        for approved in page {
            if let Some(why) = approved.is_stale() {
                refuse(scene, books, &approved, why).await?;
            } else if let Some(why) = lacks_second(scene, &approved) {
                refuse(scene, books, &approved, &why).await?;
            } else if approved.proposal.what == What::Left {
                leave(scene, books, &approved, tell).await?;
            } else if let Some(index) = place_of(scene, &approved) {
                by_table.entry(index).or_default().push(approved);
            } else {
                let why = "its table is not mapped any more";
                keep(books, &approved, why);
            }
        }
        for (index, some) in by_table {
            let Some(table) = scene.tables.get(index) else { continue };
            Box::pin(rows(scene, books, table, some, tell)).await?;
        }
        note_kept(scene, books, &successes).await?;
    }
    by_people::settle(scene, books, tell).await
}

/// Why one person is not enough. Whether a proposal needs two is written by whoever makes it, by a
/// configuration of their own: what counts is that of who carries it out.
fn lacks_second(scene: &Scene<'_>, approved: &Approved) -> Option<String> {
    let is_needed = scene.setup.four_eyes.needed(&approved.currency, approved.amount_minor);
    (is_needed && approved.is_of_one()).then(|| {
        format!(
            "{} alone proposed and approved it, and it needs two people here ([cases] \
             four_eyes_from)",
            approved.proposal.proposed_by
        )
    })
}

fn place_of(scene: &Scene<'_>, approved: &Approved) -> Option<usize> {
    let is_its = |table: &SourceTable| table.settings.name == approved.table;
    scene.tables.iter().position(is_its).filter(|_| approved.subject_kind == "row")
}

/// Ends an approval that cannot be carried out; its case stays open.
pub(super) async fn refuse(
    scene: &Scene<'_>,
    books: &mut Books,
    approved: &Approved,
    why: &str,
) -> Result<(), RunError> {
    let (number, now) = (approved.proposal.number, scene.clock.now());
    let refused = scene.db.refuse_approved(scene.run_id, number, why, now).await;
    let is_ours = refused.doing("noting that an approval was refused")?;
    books.refused = books.refused.saturating_add(u64::from(is_ours));
    Ok(())
}

async fn leave(
    scene: &Scene<'_>,
    books: &mut Books,
    approved: &Approved,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if let Some(why) = approved.proposal.what.unfit_to_undo().filter(|_| approved.proposal.undoes) {
        return refuse(scene, books, approved, why).await;
    }
    if let Some(news) = Box::pin(came_by_files(scene, approved)).await? {
        return show_first(scene, books, approved, &news, tell).await;
    }
    let number = approved.proposal.number;
    let left = scene.db.leave_as_is(scene.run_id, number, scene.clock.now()).await;
    if !left.doing("closing a case by a person's word")? {
        keep(books, approved, "another run holds its row");
    }
    Ok(())
}

/// What settlement files tell by now of a row that is to be left as it is, and what its case does
/// not show.
async fn came_by_files(scene: &Scene<'_>, approved: &Approved) -> Result<Option<String>, RunError> {
    let table = place_of(scene, approved).and_then(|index| scene.tables.get(index));
    let number = approved.proposal.case_number;
    let mut shown = shown_by(scene, std::slice::from_ref(&number)).await?;
    let Some((table, shown)) = table.zip(shown.remove(&number)) else { return Ok(None) };
    let AccountRef::Known(name) = &shown.row.account else { return Ok(None) };
    let open = scene.accounts.get(name).filter(|open| open.has_files);
    let Some(open) = open else { return Ok(None) };
    let keys = std::slice::from_ref(&approved.subject);
    let rows = scene.db.rows_known_by(table, name, &[], &[], keys).await;
    let rows = rows.doing("reading the row of a case")?;
    let Some(row) = rows.first() else { return Ok(None) };
    let files = ByFiles {
        db: scene.db,
        tables: &scene.tables,
        account: name,
        alone: false,
        expected: &open.expected,
    };
    let now = scene.clock.now();
    let told = files.ask(&[row], now).await?;
    let evidence: Vec<Evidence> = told.into_iter().filter_map(|told| told.evidence).collect();
    let known = shown.inputs();
    let found = Inputs { row, evidence: &evidence, ..shown.inputs() };
    let policy = policy_of_row(&open.policies, table, &row.status);
    Ok(came_since((&found, Some(&known)), policy, now, None))
}

/// Looks at a row that is to be left as it is before that is done: whoever approved it did not know
/// what files tell by now, and the case is to show it.
async fn show_first(
    scene: &Scene<'_>,
    books: &mut Books,
    approved: &Approved,
    news: &str,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let table = place_of(scene, approved).and_then(|index| scene.tables.get(index));
    if let Some(table) = table {
        let keys = vec![approved.subject.clone()];
        Box::pin(look_at_cases(scene, books, table, keys, tell)).await?;
    }
    let Proposal { number, case_number, .. } = approved.proposal;
    let again = scene.db.approved(Some(&[case_number]), number.saturating_sub(1), 1).await;
    match again.doing("reading what people approved")?.first().map(Approved::is_stale) {
        Some(Some(why)) => refuse(scene, books, approved, &format!("{news}: {why}")).await?,
        Some(None) => {
            let why = format!("{news}, and the row could not be looked at");
            keep(books, approved, &why);
        }
        // Somebody ended it meanwhile.
        None => {}
    }
    Ok(())
}

/// What these cases show, by number; what this version cannot read tells of nothing.
async fn shown_by(
    scene: &Scene<'_>,
    numbers: &[i64],
) -> Result<HashMap<i64, StoredInputs>, RunError> {
    let mut shown = HashMap::new();
    for numbers in numbers.chunks(SHOWN_AT_ONCE) {
        let texts = scene.db.shown_by_cases(numbers).await;
        for (number, text) in texts.doing("reading what cases show")? {
            let stored = serde_json::from_str::<StoredInputs>(&text).ok();
            shown.extend(stored.map(|stored| (number, stored)));
        }
    }
    Ok(shown)
}

/// It stands, and is tried again: said, so that nobody waits for it in silence.
fn keep(books: &mut Books, approved: &Approved, why: &str) {
    let Proposal { number, case_number, .. } = approved.proposal;
    books.not_carried_out.entry(why.to_owned()).or_default().push((case_number, number));
}

/// The approvals of one table.
async fn rows(
    scene: &Scene<'_>,
    books: &mut Books,
    table: &SourceTable,
    some: Vec<Approved>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let undone: Vec<String> = some
        .iter()
        .filter(|approved| approved.proposal.undoes)
        .map(|approved| approved.subject.clone())
        .collect();
    if !undone.is_empty() {
        let enrolled = scene.db.enrol(table, &contradicted(undone), scene.clock.now()).await;
        enrolled.doing("taking rows whose decision is undone into the work list")?;
    }
    let mut words: HashMap<String, Approved> =
        some.into_iter().map(|approved| (approved.subject.clone(), approved)).collect();
    let ids = words.keys().cloned().collect();
    let mut claimed = claim(scene, table, ids).await?;
    tell(Event::Claimed { table: table.settings.name.clone(), rows: claimed.len() });
    // A person asks: whatever the row's status is by now, it is looked at for a decision.
    claimed.iter_mut().for_each(|one| one.asked = Why::Kick);
    let mapped = as_left(scene, table, &claimed).await?;
    for (account, some) in by_account(scene, claimed) {
        let open = account.as_deref().and_then(|name| scene.accounts.get_key_value(name));
        let of_account: Vec<Approved> =
            some.iter().filter_map(|one| words.remove(&one.row.key.id)).collect();
        at_account(scene, books, (table, &mapped), open, of_account, some, tell).await?;
    }
    for approved in words.into_values() {
        let check = scene.db.check(&approved.table, &approved.subject).await;
        match check.doing("reading a row's check")?.and_then(|check| check.lease) {
            Some(_) => keep(books, &approved, "another run holds its row"),
            None => {
                let why = "the row is gone from its table, or nothing of it can be looked at";
                refuse(scene, books, &approved, why).await?;
            }
        }
    }
    Ok(())
}

async fn claim(
    scene: &Scene<'_>,
    table: &SourceTable,
    ids: Vec<String>,
) -> Result<Vec<Claimed>, RunError> {
    let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    let filter = ClaimFilter { ids: Some(ids), ..ClaimFilter::default() };
    drive::claim(scene, table, &filter, limit).await
}

/// Asks about rows of one account, as for any other decision.
async fn weigh(
    scene: &Scene<'_>,
    table: &SourceTable,
    open: Option<(&String, &OpenAccount)>,
    mut rows: Vec<Claimed>,
    mapped: &Mapped,
    whole: bool,
) -> Result<Vec<Weighed>, RunError> {
    let Some((name, account)) = open else {
        return Ok(rows.into_iter().map(|row| without_account(scene, row)).collect());
    };
    let tag_max = account.account.facts().tag_max;
    rows.iter_mut().for_each(|row| check_tag_length(row, tag_max));
    let (_, _, result) =
        ask(scene, table, (name.as_str(), account), rows, mapped, whole, None).await;
    result.map(|(weighed, _)| weighed)
}

async fn at_account(
    scene: &Scene<'_>,
    books: &mut Books,
    (table, mapped): (&SourceTable, &Mapped),
    open: Option<(&String, &OpenAccount)>,
    words: Vec<Approved>,
    claimed: Vec<Claimed>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let account = open.map(|(_, account)| account);
    if let Some((_, why)) = account.and_then(|account| account.paused.as_ref()) {
        for approved in &words {
            keep(books, approved, &format!("its account is paused ({why})"));
        }
        return give_back(scene, &claimed).await;
    }
    let mode = scene.mode(table, account);
    let numbers: Vec<i64> = words.iter().map(|one| one.proposal.case_number).collect();
    let shown = shown_by(scene, &numbers).await?;
    let mut words: HashMap<String, Approved> =
        words.into_iter().map(|approved| (approved.subject.clone(), approved)).collect();
    let (mut carried, mut left) = (Vec::new(), Vec::new());
    for mut row in weigh(scene, table, open, claimed, mapped, true).await? {
        let Some(approved) = words.remove(&row.claimed.row.key.id) else {
            left.push(row.claimed);
            continue;
        };
        let case = shown.get(&approved.proposal.case_number);
        match judge(scene, table, (account, mode), &row, &approved, case) {
            Ok((decision, word)) => {
                row.decision = decision;
                row.person = Some(word);
                let Some((name, open)) = open.filter(|_| is_unseen(&row.decision)) else {
                    carried.push(row);
                    continue;
                };
                let table = table.settings.name.clone();
                let one = Unseen { table, approved, row };
                if let Some(one) = books.by_people.hold(name, open, one) {
                    refuse(scene, books, &one.approved, &too_many(name, open)).await?;
                    left.push(one.row.claimed);
                }
            }
            Err(Refusal::NotNow(why)) => {
                keep(books, &approved, &why);
                left.push(row.claimed);
            }
            Err(refusal @ (Refusal::Stands(_) | Refusal::NeedsSecond(_))) => {
                let by = approved.proposal.approved_by.as_deref().unwrap_or_default();
                let why = refusal.text(by);
                refuse(scene, books, &approved, &why).await?;
                if !row.lines.is_empty() {
                    let keys = books.told_in_vain.entry(table.settings.name.clone()).or_default();
                    keys.push(row.claimed.row.key.id.clone());
                }
                if is_news(scene, &mut row, &approved, &why).await? {
                    carried.push(row);
                } else {
                    left.push(row.claimed);
                }
            }
        }
    }
    give_back(scene, &left).await?;
    books.carry(scene, table, account, carried, tell).await
}

/// Gives back, at the end of a run, what the looks of refused approvals took from the next one:
/// that lines of files which came meanwhile were not looked at yet.
pub(super) async fn give_lines_back(scene: &Scene<'_>, books: &Books) -> Result<(), RunError> {
    for (table, keys) in &books.told_in_vain {
        let forgotten = scene.db.forget_looks(table, keys).await;
        forgotten.doing("leaving lines to the next run")?;
    }
    Ok(())
}

/// Whether a case takes what was found as its approval was refused, and shows it from now on. What
/// a run would decide by itself stays a person's here, who had just decided otherwise, and the case
/// says so.
async fn is_news(
    scene: &Scene<'_>,
    row: &mut Weighed,
    approved: &Approved,
    why: &str,
) -> Result<bool, RunError> {
    // A row that is watched goes on being watched.
    if row.claimed.history.watch_from.is_some() || approved.proposal.undoes {
        return Ok(false);
    }
    if row.decision.outcome() != Outcome::Review {
        if !row.decision.answered {
            return Ok(false);
        }
        let number = approved.proposal.case_number;
        let case = scene.db.case(number).await.doing("reading a case")?;
        let Some(case) = case.filter(|case| case.open) else { return Ok(false) };
        let decision = &row.decision;
        let would = would_decide(number, decision);
        let text = format!("proposal {} was refused: {why}; {would}", approved.proposal.number);
        leave_to_case(row, case.reason, text);
    }
    row.mapped_from = None;
    Ok(true)
}

/// What a case says of an end that nobody but a person may write now.
fn would_decide(number: i64, decision: &Decision) -> String {
    format!(
        "a run would decide {} ({}) by what was found: `tieout cases kick C-{number}`",
        decision.outcome().as_str(),
        decision.text
    )
}

/// Leaves a row to its case, which says so and shows what was found.
fn leave_to_case(row: &mut Weighed, reason: Reason, text: String) {
    row.decision = Decision {
        verdict: Verdict::Review,
        reason,
        text,
        next_check_at: None,
        watch_at: None,
        ..row.decision.clone()
    };
    // A line that would have settled it is not used up by a row that is still open.
    row.lines.clear();
}

/// Whether the case of a row that waits for a person only because time went by is to say that it
/// would end now, which it does not do by itself. Said once, until it is another end.
async fn says_end(scene: &Scene<'_>, row: &mut Weighed) -> Result<bool, RunError> {
    let number = row.claimed.open_case.filter(|_| row.decision.answered);
    let Some(number) = number.filter(|_| row.claimed.history.watch_from.is_none()) else {
        return Ok(false);
    };
    let case = scene.db.case(number).await.doing("reading a case")?;
    let is_of_time = |case: &CaseRow| case.open && ONLY_TIME.contains(&case.reason);
    let Some(case) = case.filter(is_of_time) else { return Ok(false) };
    let text = would_decide(number, &row.decision);
    let is_said = case.text == text;
    leave_to_case(row, case.reason, text);
    Ok(!is_said)
}

/// The person's decision of a row by what was found just now, and by what its case shows.
fn judge(
    scene: &Scene<'_>,
    table: &SourceTable,
    (account, mode): (Option<&OpenAccount>, Mode),
    row: &Weighed,
    approved: &Approved,
    shown: Option<&StoredInputs>,
) -> Result<(Decision, Word), Refusal> {
    let proposal = &approved.proposal;
    let Some(wish) = proposal.what.wish() else {
        return Err(Refusal::Stands("nothing is decided of the row".to_owned()));
    };
    let is_allowed = match mode {
        Mode::Observe => false,
        Mode::SucceedOnly => wish == Wish::Succeeded,
        Mode::Full => true,
    };
    if !is_allowed {
        let text = "the mode of its table or account allows no such decision";
        return Err(Refusal::Stands(text.to_owned()));
    }
    if let Some(why) = not_ours(table, row, approved) {
        return Err(Refusal::Stands(why));
    }
    let left_from = row.mapped_from.as_deref().filter(|_| wish == Wish::Retryable);
    if let Some(from) = left_from.filter(|from| writes_no_retryable(&table.settings, from)) {
        return Err(Refusal::Stands(never_taken(&row.claimed.row.status, from)));
    }
    let word = word_of(proposal, wish, proposal.approved_by.as_deref().unwrap_or_default());
    let policy = match account {
        Some(account) => policy_of_row(&account.policies, table, row.mapped_status()),
        None => &scene.nobody,
    };
    let decision = decide_by_person(&row.inputs(), policy, row.now, &word)?;
    let (found, shown) = (row.inputs(), shown.map(StoredInputs::inputs));
    // The other ends need that nothing is there, and that nothing vanished that was.
    if wish != Wish::Succeeded
        && let Some(shown) = &shown
        && let Some(gone) = gone_since((&found, shown), policy, row.now)
    {
        return Err(Refusal::Stands(gone));
    }
    // A row that ended has a case of its own for what came since.
    if wish == Wish::Succeeded && !proposal.undoes {
        let taken = decision.seen.as_ref().map(|seen| seen.reference.as_str());
        let news = came_since((&found, shown.as_ref()), policy, row.now, taken);
        if let Some(news) = news {
            return Err(Refusal::Stands(news));
        }
    }
    Ok((decision, word))
}

/// Whether a hand-back of a row that tieout took out of this status leaves its status as it is.
fn writes_no_retryable(table: &TableSettings, from: &str) -> bool {
    map_of(table, from).is_some_and(|map| map.retryable.is_none())
}

/// A worker that takes hand-backs by the outbox takes them of rows that are processing.
fn never_taken(status: &str, from: &str) -> String {
    format!(
        "its status is `{status}`, and the mapping has no retryable value: a hand-back would leave \
         it so, and a worker takes none but of a row that is `{from}`; set the row back to \
         `{from}`, and a run decides it anew, or name a retryable value in [[table.map]]"
    )
}

/// Why a hand-back that takes the place of a person's decision could never be taken, as the
/// status that was written with the decision stays.
///
/// # Errors
/// Where the database cannot be read.
pub async fn undone_in_vain(
    db: &Database,
    tables: &[TableSettings],
    case: &CaseRow,
) -> Result<Option<String>, StoreError> {
    let table = tables.iter().find(|table| table.name == case.table);
    let lacks = |table: &&TableSettings| table.map.iter().any(|map| map.retryable.is_none());
    let Some(table) = table.filter(lacks) else { return Ok(None) };
    let mut last = db.last_written(&case.table, std::slice::from_ref(&case.subject)).await?;
    let is_end = |written: &Written| written.outcome != Outcome::Review;
    let written = last.remove(&case.subject).filter(is_end);
    let written = written.filter(|one| writes_no_retryable(table, &one.status_before));
    Ok(written.map(|one| never_taken(&one.status_after, &one.status_before)))
}

/// Of decisions that this person alone proposed: why each needs a second one whatever its amount,
/// by its case's number. By what the cases show: where no API can answer for the row, and where
/// something lies beside it that may be its own. All else the API is asked as the decision is
/// carried out.
///
/// # Errors
/// Where the database cannot be read.
pub async fn second_needed(
    db: &Database,
    setup: &Setup,
    proposals: &[&Proposal],
    by: &str,
    now: Instant,
) -> Result<HashMap<i64, String>, StoreError> {
    let own = proposals.iter().filter(|one| one.proposed_by == by);
    let word = |one: &Proposal| Some((one.case_number, word_of(one, one.what.wish()?, by)));
    let words = own.filter_map(|one| word(one)).collect();
    let needed = alone_too_few(db, setup, &words, now).await?;
    Ok(needed.into_iter().map(|(case, why)| (case, only_two(&why, by))).collect())
}

/// Why a decision needs two people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Second {
    /// Its amount: `[cases] four_eyes_from`.
    ByAmount,
    /// Whatever its amount, for this reason: what its case shows.
    ByEvidence(String),
}

impl Second {
    /// In words, where it is no matter of the amount.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::ByAmount => None,
            Self::ByEvidence(why) => Some(why),
        }
    }
}

/// Of what one person is about to propose of these cases: why it needs two, by the case's number.
///
/// # Errors
/// Where the database cannot be read.
pub async fn second_needed_for(
    db: &Database,
    setup: &Setup,
    cases: &[CaseRow],
    (what, reference): (What, Option<&str>),
    now: Instant,
) -> Result<HashMap<i64, Second>, StoreError> {
    let by_amount = |case: &&CaseRow| setup.four_eyes.needed(&case.currency, case.amount_minor);
    let of_amount = cases.iter().filter(by_amount);
    let mut needed: HashMap<i64, Second> =
        of_amount.map(|case| (case.number, Second::ByAmount)).collect();
    let Some(word) = word_of_one(what, reference) else { return Ok(needed) };
    let words = cases.iter().map(|case| (case.number, word.clone())).collect();
    let alone = alone_too_few(db, setup, &words, now).await?;
    needed.extend(alone.into_iter().map(|(case, why)| (case, Second::ByEvidence(why))));
    Ok(needed)
}

/// The same by what one case shows.
pub fn second_needed_by(
    setup: &Setup,
    shown: &StoredInputs,
    what: What,
    now: Instant,
) -> Option<String> {
    needs_two(setup, shown, &word_of_one(what, None)?, now)
}

/// What one person says who is nobody yet.
fn word_of_one(what: What, reference: Option<&str>) -> Option<Word> {
    Some(Word {
        proposal: 0,
        wish: what.wish()?,
        reference: reference.map(str::to_owned),
        why: String::new(),
        proposed_by: String::new(),
        approved_by: String::new(),
    })
}

async fn alone_too_few(
    db: &Database,
    setup: &Setup,
    words: &HashMap<i64, Word>,
    now: Instant,
) -> Result<HashMap<i64, String>, StoreError> {
    let numbers: Vec<i64> = words.keys().copied().collect();
    let mut needed = HashMap::new();
    for numbers in numbers.chunks(SHOWN_AT_ONCE) {
        for (number, text) in db.shown_by_cases(numbers).await? {
            let stored = serde_json::from_str::<StoredInputs>(&text).ok();
            let why = stored
                .zip(words.get(&number))
                .and_then(|(stored, word)| needs_two(setup, &stored, word, now));
            needed.extend(why.map(|why| (number, why)));
        }
    }
    Ok(needed)
}

fn needs_two(setup: &Setup, stored: &StoredInputs, word: &Word, now: Instant) -> Option<String> {
    let account = match &stored.row.account {
        AccountRef::Known(name) => setup.accounts.get(name),
        AccountRef::Unmapped(_) => None,
    };
    let of_account = |account: &AccountSetup| {
        let psp = facts(account, now)?;
        Some(policy_of(account, &setup.rules, psp, false))
    };
    let policy = account.and_then(of_account).unwrap_or_else(nobody);
    let beside = may_be_its_own(&stored.inputs(), &policy, now);
    // What a PSP left open it may answer as it is asked again; what lies beside the row stays.
    if policy.psp.has_api() && !stored.evidence.is_empty() && beside.is_none() {
        return None;
    }
    match decide_by_person(&stored.inputs(), &policy, now, word) {
        Err(Refusal::NeedsSecond(why)) => Some(why),
        // By the time that it is carried out the call is over.
        Err(Refusal::NotNow(_)) if word.wish != Wish::Succeeded => beside,
        Err(Refusal::NotNow(_) | Refusal::Stands(_)) | Ok(_) => None,
    }
}

fn word_of(proposal: &Proposal, wish: Wish, approved_by: &str) -> Word {
    Word {
        proposal: proposal.number,
        wish,
        reference: proposal.psp_reference.clone(),
        why: proposal.why.clone(),
        proposed_by: proposal.proposed_by.clone(),
        approved_by: approved_by.to_owned(),
    }
}

/// What the proposal did not know of: a later case of the row, or a status of somebody else's.
fn not_ours(table: &SourceTable, row: &Weighed, approved: &Approved) -> Option<String> {
    let claimed = &row.claimed;
    if let Some(number) = claimed.open_case.filter(|_| approved.proposal.undoes) {
        return Some(format!("the row has a case of its own by now: decide C-{number}"));
    }
    let status = &claimed.row.status;
    let is_mapped = row.mapped_from.is_some() || map_of(&table.settings, status).is_some();
    let number = approved.proposal.case_number;
    // Nobody should set a paid row back so that a case may say that it is paid.
    let is_paid = claimed.row.succeeded;
    (!is_mapped).then(|| match is_paid {
        true => format!(
            "its status is `{status}` by now, which says that it was paid, and somebody else \
             wrote that: `tieout cases propose C-{number} --as left` closes the case"
        ),
        false => format!(
            "its status is `{status}` by now, and somebody else wrote that or changed the row \
             since: set it back to its processing value to have it decided"
        ),
    })
}

/// Looks again, once a day, at rows that wait for a person only because time went by. They close
/// by themselves to nothing but a success; whatever else is new is shown by their case.
pub async fn look_again(
    scene: &Scene<'_>,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if !is_whole(scene) {
        return Ok(());
    }
    for table in &scene.tables {
        if scene.stop.requested().is_some() || scene.over.is_cancelled() || books.closed {
            return Ok(());
        }
        let name = &table.settings.name;
        let before = earlier(scene.clock.now(), LOOK_EVERY);
        let keys = scene.db.rows_to_look_at(name, &ONLY_TIME, before, LOOKS_AT_ONCE, false).await;
        let keys = keys.doing("looking for cases to look at again")?;
        if keys.is_empty() {
            continue;
        }
        let mut claimed = claim(scene, table, keys).await?;
        tell(Event::Claimed { table: name.clone(), rows: claimed.len() });
        let mapped = reopen(scene, table, &mut claimed).await?;
        for (account, some) in by_account(scene, claimed) {
            let open = account.as_deref().and_then(|name| scene.accounts.get_key_value(name));
            let no_news: &[Reason] = &ONLY_TIME;
            look_at(scene, books, (table, &mapped), open, (some, no_news), tell).await?;
        }
    }
    Ok(())
}

/// Looks again at those of these rows that have an open case of one of these reasons.
pub(super) async fn look_at_cases_of(
    scene: &Scene<'_>,
    books: &mut Books,
    rows: &RowsByTable,
    reasons: &[Reason],
    tell: Tell<'_>,
) -> Result<(), RunError> {
    for (index, ids) in rows {
        let Some(table) = scene.tables.get(*index) else { continue };
        let (name, now) = (&table.settings.name, scene.clock.now());
        let keys = scene.db.rows_to_look_at(name, reasons, now, CASES, true).await;
        let mut keys = keys.doing("looking for cases of rows that lines tell of")?;
        keys.retain(|key| ids.contains(key));
        Box::pin(look_at_cases(scene, books, table, keys, tell)).await?;
    }
    Ok(())
}

/// Looks again at these rows of a table, which wait for a person: something new tells of them, and
/// their cases show it. They close by themselves to nothing but a success, too.
pub(super) async fn look_at_cases(
    scene: &Scene<'_>,
    books: &mut Books,
    table: &SourceTable,
    mut keys: Vec<String>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    if scene.options.dry_run {
        // Nothing is written that would show what came of it.
        let index = place_in(scene, table);
        keys.retain(|key| !books.rehearsed_cases.contains(&(index, key.clone())));
    }
    if keys.is_empty() {
        return Ok(());
    }
    let mut claimed = claim(scene, table, keys).await?;
    tell(Event::Claimed { table: table.settings.name.clone(), rows: claimed.len() });
    let mapped = reopen(scene, table, &mut claimed).await?;
    for (account, some) in by_account(scene, claimed) {
        let open = account.as_deref().and_then(|name| scene.accounts.get_key_value(name));
        let no_news: &[Reason] = &[];
        look_at(scene, books, (table, &mapped), open, (some, no_news), tell).await?;
    }
    Ok(())
}

/// A table's place in the setup.
fn place_in(scene: &Scene<'_>, table: &SourceTable) -> Option<usize> {
    scene.tables.iter().position(|one| one.settings.name == table.settings.name)
}

/// Whether a paid row's case told of what contradicted it, or of what had gone back before the shop
/// called it paid, and nothing does any more: its money is there as it should be.
async fn is_cleared(scene: &Scene<'_>, row: &Weighed) -> Result<bool, RunError> {
    let (claimed, decision) = (&row.claimed, &row.decision);
    let is_there = decision.outcome() == Outcome::Wait
        && decision.reason == Reason::Watched
        && decision.seen.is_some();
    // A row that was handed back is watched on, and so is its case.
    let is_paid = claimed.row.succeeded && claimed.history.handbacks == 0;
    let Some(number) = claimed.open_case.filter(|_| is_there && is_paid) else {
        return Ok(false);
    };
    let case = scene.db.case(number).await.doing("reading a case")?;
    // What went back before the shop called the row paid is no contradiction, and no end either.
    let is_over = |reason: Reason| {
        let seen = decision.seen.as_ref().map_or("", |seen| seen.reference.as_str());
        let mut own = shown_of(&row.inputs.evidence).filter(|object| object.is_named(seen));
        let is_there = match reason {
            Reason::Refunded => !own.any(|object| went_back(object) || object.refunded_minor != 0),
            // What the shop gives back besides is its own.
            Reason::Disputed | Reason::Returned => !own.any(went_back),
            _contradicts_the_end => true,
        };
        CLEARED.contains(&reason) && is_there
    };
    Ok(case.is_some_and(|case| case.open && is_over(case.reason)))
}

/// Every look at every object.
fn shown_of(evidence: &[Evidence]) -> impl Iterator<Item = &PspObject> {
    evidence.iter().flat_map(|item| match &item.answer {
        Answer::Found { objects, .. } => objects.as_slice(),
        Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => &[],
    })
}

/// Whether somebody else took money of an object back, as far as that look tells.
fn went_back(object: &PspObject) -> bool {
    object.state == ObjectState::Voided || object.disputed || object.returned.is_some()
}

/// Looks at rows that wait for a person, to whom these reasons are no news.
async fn look_at(
    scene: &Scene<'_>,
    books: &mut Books,
    (table, mapped): (&SourceTable, &Mapped),
    open: Option<(&String, &OpenAccount)>,
    (claimed, no_news): (Vec<Claimed>, &[Reason]),
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let account = open.map(|(_, account)| account);
    let (mut news, mut left) = (Vec::new(), Vec::new());
    let (mut looked_at, mut unanswered) = (Vec::new(), Vec::new());
    let is_asked = account.is_some_and(|account| account.paused.is_none());
    let (claimed, unasked) = if is_asked { (claimed, Vec::new()) } else { (Vec::new(), claimed) };
    unanswered.extend(unasked.iter().map(|one| one.row.key.id.clone()));
    left.extend(unasked);
    for mut row in weigh(scene, table, open, claimed, mapped, false).await? {
        row.clears_case = is_cleared(scene, &row).await?;
        let answered = row.decision.answered;
        let is_news = match row.decision.outcome() {
            Outcome::Succeeded => true,
            Outcome::Review => !no_news.contains(&row.decision.reason),
            Outcome::Wait => row.clears_case,
            Outcome::Retryable | Outcome::Failed => says_end(scene, &mut row).await?,
        };
        if is_news {
            news.push(row);
            continue;
        }
        let key = row.claimed.row.key.id.clone();
        if answered {
            looked_at.push(key);
        } else {
            unanswered.push(key);
        }
        left.push(row.claimed);
    }
    let now: Instant = scene.clock.now();
    let soon = later(earlier(now, LOOK_EVERY), LOOK_SOON);
    for (keys, at) in [(looked_at, now), (unanswered, soon)] {
        if !keys.is_empty() && !scene.options.dry_run {
            let noted = scene.db.note_looked_at(&table.settings.name, &keys, at).await;
            noted.doing("noting that cases were looked at")?;
        }
    }
    give_back(scene, &left).await?;
    let index = place_in(scene, table);
    if scene.options.dry_run {
        let keys = news.iter().map(|row| row.claimed.row.key.id.clone());
        books.rehearsed_cases.extend(keys.map(|key| (index, key)));
    }
    let news = match (open, index) {
        (Some((name, _)), Some(place)) => books.hold.keep_paid(name, place, news),
        (_, _) => news,
    };
    books.carry(scene, table, account, news, tell).await
}
