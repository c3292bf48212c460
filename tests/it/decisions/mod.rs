//! The decision table and the precedence of its reasons: `fixtures/decisions/*.txt`, one case a
//! line. Every reason that `decide` gives has a line, or the test fails.

mod given_up;
mod notation;
mod person;
pub mod world;

use std::collections::BTreeSet;

use tieout::decide::decision::{Decision, Verdict, Want};
use tieout::decide::permit::Retry;
use tieout::model::evidence::{CauseKind, Route};
use tieout::model::reason::{Leads, Outcome, Reason};
use tieout::model::time::{Instant, parse_span, to_short_text};
use tieout::model::transaction::Kind;

use notation::{read, time};
use world::World;

const TABLE: &str = include_str!("../../../fixtures/decisions/table.txt");
const PRECEDENCE: &str = include_str!("../../../fixtures/decisions/precedence.txt");

/// Reasons that nothing in `decide` gives to a row, and who does.
const DECIDED_ELSEWHERE: &[(Reason, &str)] = &[
    (Reason::Settled, "settlement files: no answer of an API settles"),
    (Reason::WriteRefused, "apply: the user's database refused the row"),
    (Reason::AbsenceBrake, "the run: the brake looks at an account's hand-backs together"),
    (Reason::AccountUnavailable, "the run: one case for an account that gives no answer"),
    (Reason::Orphan, "settlement files"),
    (Reason::Returned, "settlement files"),
    (Reason::Chargeback, "settlement files"),
    (Reason::FeeVariance, "settlement files"),
    (Reason::ByPerson, "a person: decide::person"),
    (Reason::FxVariance, "settlement files"),
    (Reason::ToleranceDelta, "settlement files"),
    (Reason::ReferenceMissing, "settlement files"),
    (Reason::ReferenceTruncated, "settlement files"),
    (Reason::NotInFile, "settlement files"),
    (Reason::NotAtPsp, "settlement files"),
    (Reason::DateOutOfWindow, "settlement files"),
    (Reason::FileMissing, "settlement files"),
    (Reason::FileQuarantined, "settlement files"),
    (Reason::FileLineRejected, "settlement files"),
    (Reason::StatementCorrected, "settlement files"),
    (Reason::PanDetected, "settlement files"),
];

/// Neighbours of the list of reasons that no line of the precedence can show, and why.
const NEVER_TOGETHER: &[(Reason, Reason, &str)] = &[
    (Reason::Voided, Reason::Captured, "one object has one state; refunded over captured is shown"),
    (Reason::PspPending, Reason::PendingTooLong, "the age says which; both over decline_unknown"),
    (Reason::DeclinedRetryable, Reason::DeclinedFinal, "the newest failure's rule says which"),
    (
        Reason::Unattempted,
        Reason::AuthorizedUncaptured,
        "what could capture by itself stands against any hand-back; the table has the line",
    ),
    (Reason::Expired, Reason::Canceled, "the newest of several dead objects says which"),
    (Reason::AbsenceUnproven, Reason::Unprovable, "the age, or the route's reach, says which"),
    (Reason::Absent, Reason::GaveUp, "one line of DESIGN: proven absent, and the count says which"),
    (Reason::GaveUp, Reason::Rule, "from here on the list names no step of the ladder"),
    (Reason::Rule, Reason::Watched, "no step of the ladder"),
    (Reason::Watched, Reason::HandbackNotTaken, "the time since the hand-back says which"),
    (Reason::HandbackNotTaken, Reason::ClockSkew, "no step of the ladder"),
];

/// One case: its line number, its cells.
type Line<'a> = (usize, Vec<&'a str>);

fn lines(text: &str, columns: usize) -> Vec<Line<'_>> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let cases = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    cases
        .map(|(number, line)| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert_eq!(cells.len(), columns, "line {number} has other columns: {line}");
            (number, cells)
        })
        .collect()
}

fn check((number, cells): &Line<'_>) -> Result<Reason, String> {
    let [row, evidence, history, policy, asked, outcome, reason, says] = cells[..] else {
        panic!("line {number}");
    };
    let world = read(row, evidence, history, policy, asked);
    let decision = world.decide();
    let mut wrong = complaints(&world, &decision, outcome);
    if decision.reason.as_str() != reason {
        wrong.insert(0, format!("reason {}", decision.reason.as_str()));
    }
    if !decision.text.contains(says) {
        wrong.push("text".to_owned());
    }
    if let Leads::To(leads) = decision.reason.leads()
        && leads != decision.outcome()
    {
        wrong.push(format!("{} never leads to {:?}", decision.reason.as_str(), leads));
    }
    if wrong.is_empty() {
        return Ok(decision.reason);
    }
    Err(format!(
        "table.txt:{number}: {}\n  {}\n  {decision:?}",
        wrong.join(", "),
        cells.join(" | ")
    ))
}

fn complaints(world: &World, decision: &Decision, cell: &str) -> Vec<String> {
    let mut words = cell.split_whitespace();
    let outcome = words.next().unwrap();
    let mut wrong = Vec::new();
    if decision.outcome().as_str() != outcome {
        wrong.push(format!("outcome {}", decision.outcome().as_str()));
    }
    if (outcome == "wait") != decision.next_check_at.is_some() {
        wrong.push("a wait, and only a wait, has a next look".to_owned());
    }
    let mut wants = None;
    for word in words {
        match word {
            "list" => wants = Some(Want::List),
            "search" => wants = Some(Want::Search),
            "siblings" => wants = Some(Want::Siblings),
            _ if expected(world, decision, word) => {}
            _ => wrong.push(word.to_owned()),
        }
    }
    if decision.wants != wants {
        wrong.push(format!("wants {:?}", decision.wants));
    }
    wrong
}

/// Whether one word of the outcome cell holds.
fn expected(world: &World, decision: &Decision, word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let hand_back = match &decision.verdict {
        Verdict::Retryable(hand_back) => Some(hand_back),
        _ => None,
    };
    let retry = hand_back.map(|hand_back| hand_back.retry().clone());
    let is_at = |got: Option<Instant>| got == Some(time(value));
    match name {
        "next" => decision.next_check_at.is_some_and(|at| {
            at > time(value) && at <= time(value) + chrono::TimeDelta::minutes(1)
        }),
        "in" => decision
            .next_check_at
            .is_some_and(|at| at > world.now && at <= world.now + parse_span(value).unwrap()),
        "watch" => is_at(decision.watch_at),
        "no_watch" => decision.watch_at.is_none(),
        "miss" => decision.miss.is_some(),
        "no_miss" => decision.miss.is_none(),
        "seen" => decision.seen.as_ref().is_some_and(|s| s.reference.replace(' ', "+") == value),
        "sum" => {
            let amount = decision.seen.as_ref().and_then(|seen| seen.amount);
            amount.map_or("none".to_owned(), |sum| sum.to_string().replace(' ', "")) == value
        }
        "rule" => decision.rule.as_deref() == Some(value),
        "same_object" => retry == Some(Retry::SameObject(value.to_owned())),
        "same_key" => retry == Some(Retry::SameKey { until: time(value) }),
        "new_attempt" => retry == Some(Retry::NewAttempt),
        "never" => retry == Some(Retry::Never),
        "before" => is_at(hand_back.map(|hand_back| hand_back.charge_before())),
        "not_before" => is_at(hand_back.and_then(|hand_back| hand_back.not_before())),
        _ => panic!("outcome: `{word}`"),
    }
}

#[test]
fn decisions_fall_as_the_table_says() {
    let results: Vec<_> = lines(TABLE, 8).iter().map(check).collect();
    let failures: Vec<_> = results.iter().filter_map(|r| r.as_ref().err().cloned()).collect();
    assert!(failures.is_empty(), "{} lines:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_reason_that_decide_gives_has_a_line() {
    let shown: BTreeSet<Reason> =
        lines(TABLE, 8).iter().map(|(_, cells)| Reason::parse(cells[6]).unwrap()).collect();
    for reason in Reason::ALL {
        let elsewhere = DECIDED_ELSEWHERE.iter().any(|(other, _why)| other == reason);
        let code = reason.as_str();
        assert!(shown.contains(reason) || elsewhere, "{code}: no line, and nobody else decides it");
        assert!(!(shown.contains(reason) && elsewhere), "{code}: has a line, and is listed");
    }
}

#[test]
fn of_two_reasons_the_upper_wins() {
    let mut failures = Vec::new();
    let mut shown = BTreeSet::new();
    for (number, cells) in lines(PRECEDENCE, 7) {
        let with: Vec<String> = cells.iter().map(|cell| cell.replace(['{', '}'], "")).collect();
        let without: Vec<String> = cells.iter().map(|cell| without_braces(cell)).collect();
        let reason_of = |c: &[String]| read(&c[0], &c[1], &c[2], &c[3], &c[4]).decide().reason;
        let (upper, lower) = (reason_of(&with).as_str(), reason_of(&without).as_str());
        if (upper, lower) != (cells[5], cells[6]) {
            failures.push(format!("precedence.txt:{number}: {upper} over {lower}\n  {cells:?}"));
        }
        shown.insert((cells[5].to_owned(), cells[6].to_owned()));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let elsewhere = |reason: &Reason| DECIDED_ELSEWHERE.iter().any(|(other, _)| other == reason);
    let ladder: Vec<Reason> = Reason::ALL.iter().copied().filter(|r| !elsewhere(r)).collect();
    for pair in ladder.windows(2) {
        let (upper, lower) = (pair[0], pair[1]);
        let is_shown = shown.contains(&(upper.as_str().to_owned(), lower.as_str().to_owned()));
        let is_exempt = NEVER_TOGETHER.iter().any(|(u, l, _why)| (*u, *l) == (upper, lower));
        let pair = format!("{} over {}", upper.as_str(), lower.as_str());
        assert!(is_shown || is_exempt, "{pair}: no line, and no reason why not");
        assert!(!(is_shown && is_exempt), "{pair}: has a line, and is exempt");
    }
}

/// What the bank took back is a person's by every rule: none hands it back, ends or settles it.
#[test]
fn no_rule_decides_what_came_back() {
    let came_back = |policy: &str| {
        let world = read("-", "list@+55m: captured pi_1 returned=AC04", "-", policy, "run");
        let decision = world.decide();
        let found = (decision.outcome().as_str(), decision.reason.as_str());
        assert_eq!(found, ("review", "returned"), "{policy}: {}", decision.text);
        decision
    };
    for effect in ["retryable", "failed", "succeeded", "wait", "review"] {
        for about in ["own=returned/AC04", "own=returned/AC*", "rule=returned", "own=returned"] {
            let decision = came_back(&format!("{about}:{effect}"));
            assert_eq!(decision.rule.as_deref(), Some("test.returned"), "{about} {effect}");
            assert!(decision.text.ends_with("(AC04); rule test.returned"), "{}", decision.text);
        }
        // Nor does one about another fact of the same object.
        let decision = came_back(&format!("own=refunded:{effect}"));
        assert_eq!(decision.rule, None, "{effect}");
        let decision = came_back(&format!("own=returned/MD06:{effect}"));
        assert_eq!(decision.rule, None, "{effect}");
    }
}

/// What a bank took back is a person's, with the sums right: no double payment where it was paid
/// again, and no success because the PSP's own answer does not show it yet.
#[test]
fn what_came_back_is_told_with_what_is_left() {
    let gone = "captured pi_1 returned=AM04 refunded=20.00";
    for (evidence, left, says) in [
        (format!("file@+55m: {gone}"), "0.00 EUR", "settled 20.00 EUR and came back (AM04)"),
        (format!("file@+55m: {gone}, captured pi_2"), "20.00 EUR", "; 20.00 EUR is left"),
        (
            format!("file@+55m: {gone}, {}", gone.replace("_1", "_2")),
            "0.00 EUR",
            "0.00 EUR is left",
        ),
        (
            "file@+55m: captured pi_1 returned=MD06 refunded=3.00".to_owned(),
            "17.00 EUR",
            "and 3.00 EUR of it came back (MD06)",
        ),
        (format!("file@+50m: {gone}; list@+55m: captured pi_1"), "0.00 EUR", "(AM04)"),
        (format!("list@+50m: captured pi_1; file@+55m: {gone}"), "0.00 EUR", "(AM04)"),
    ] {
        for policy in ["-", "own=returned:succeeded", "own=refunded:succeeded"] {
            let decision = read("-", &evidence, "-", policy, "run").decide();
            let found = (decision.outcome().as_str(), decision.reason.as_str());
            assert_eq!(found, ("review", "returned"), "{evidence}: {}", decision.text);
            let amount = decision.seen.and_then(|seen| seen.amount);
            assert_eq!(amount.map(|sum| sum.to_string()).as_deref(), Some(left), "{evidence}");
            assert!(decision.text.contains(says), "{evidence}: {}", decision.text);
        }
    }
}

/// A refund and a payout are made for their rows: never before them, nor after their calls. A file
/// tells the day alone, and a bank takes its time.
#[test]
fn what_no_call_of_the_row_that_asked_for_it_made_is_another_rows() {
    for kind in ["refund", "payout"] {
        for (route, at, wanted) in [
            ("list", "-2m", ("succeeded", "captured")),
            ("list", "-3m", ("review", "time_mismatch")),
            ("list", "+17m", ("succeeded", "captured")),
            ("list", "+18m", ("review", "time_mismatch")),
            ("file", "+50m", ("succeeded", "settled")),
            ("file", "-24h", ("succeeded", "settled")),
            ("file", "-25h", ("review", "time_mismatch")),
        ] {
            let object = format!("captured re_1 kind={kind} at={at}");
            let evidence = format!("{route}@+55m[kinds={kind}]: {object}");
            let mut world = read(&format!("kind={kind}"), &evidence, "-", "-", "run");
            world.policy.psp.kinds.push(Kind::Payout);
            let decision = world.decide();
            let found = (decision.outcome().as_str(), decision.reason.as_str());
            assert_eq!(found, wanted, "{evidence}: {}", decision.text);
        }
    }
}

/// What is replayed says what was decided, and holds nothing by which it could be done.
#[test]
fn a_replay_says_what_the_decision_was() {
    let mut handed_back = 0;
    for (number, cells) in lines(TABLE, 8) {
        let world = read(cells[0], cells[1], cells[2], cells[3], cells[4]);
        let (decision, would_be) = (world.decide(), world.replay());
        assert_eq!(would_be.outcome, decision.outcome(), "table.txt:{number}");
        assert_eq!(would_be.reason, decision.reason, "table.txt:{number}");
        assert_eq!(would_be.rule, decision.rule, "table.txt:{number}");
        assert_eq!(would_be.wants, decision.wants, "table.txt:{number}");
        assert_eq!(would_be.text, decision.text, "table.txt:{number}");
        let retry = match &decision.verdict {
            Verdict::Retryable(hand_back) => Some(hand_back.retry().as_str()),
            _ => None,
        };
        assert_eq!(would_be.retry, retry, "table.txt:{number}");
        handed_back += usize::from(retry.is_some());
    }
    assert!(handed_back > 5, "{handed_back}");
}

/// What was asked too early only lacks freshness: a replay says the end that it would have.
#[test]
fn a_replay_says_what_becomes_of_it_once_asked_afresh() {
    let mut ends = 0;
    for (number, cells) in lines(TABLE, 8) {
        let world = read(cells[0], cells[1], cells[2], cells[3], cells[4]);
        let decided = world.replay();
        assert!(decided.afresh.is_none() || decided.outcome == Outcome::Wait, "{number}");
        if decided.reason != Reason::DeclinedRetryable || decided.outcome != Outcome::Retryable {
            continue;
        }
        let mut early = world.clone();
        early.all_asked_before_the_call_was_over();
        let mut unsearched = early.clone();
        unsearched.evidence.retain(|one| one.route != Route::Search);
        for world in [early, unsearched] {
            let waits = world.replay();
            let Some(afresh) = waits.afresh else { continue };
            assert_eq!(waits.outcome, Outcome::Wait, "table.txt:{number}: {}", waits.text);
            assert_eq!(afresh.outcome, Outcome::Retryable, "table.txt:{number}");
            assert_eq!((afresh.retry, afresh.rule), (decided.retry, decided.rule.clone()));
            ends += 1;
        }
    }
    assert!(ends > 5, "{ends}");
    // What lacks more than that is no end of anything: nothing was shown at all.
    let mut nothing = World::plain();
    nothing.no_answer(Route::List, CauseKind::TimedOut);
    assert_eq!((nothing.replay().outcome, nothing.replay().afresh), (Outcome::Wait, None));
}

/// The cell without what stands in braces.
fn without_braces(cell: &str) -> String {
    let mut depth = 0_u32;
    let kept = cell.chars().filter(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => return depth == 0,
        }
        false
    });
    kept.collect()
}

#[test]
fn the_notation_reads_times() {
    assert_eq!(to_short_text(time("+90m")), "2026-11-19T09:30:00Z");
    assert_eq!(to_short_text(time("-1d")), "2026-11-18T08:00:00Z");
}
