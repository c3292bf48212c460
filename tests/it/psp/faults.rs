//! A8.1 on the wire, each fault at the first call, a middle page and the last page of a list, at a
//! fetch and at a search: a cause, and never "nothing".

use std::fmt::Write;

use tieout::model::evidence::CauseKind::{
    self, Incomplete, RateLimited, ServerError, TimedOut, Unreachable, Unreadable,
};
use tieout::psp::account::Need;
use tieout::psp::lane::StopKind;
use tieout::sandbox::faults::{
    Action, Change, FaultRule, NearMiss, PageSpot, Removed, SchemaFault, Which,
};
use tieout::sandbox::routes::Route;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::{Door, RetryAfter};

use super::{Desk, INTENTS, QUICK, TAG, asked, by_intent, causes, complete, found, nothing};

fn status(code: u16, retry_after: RetryAfter) -> Action {
    Action::Status { code, retry_after, reason: None }
}

fn altered(change: Change) -> Action {
    Action::Alter { only: Which::All, change }
}

/// Faults of one answer, whatever was asked, with the cause that each must give.
fn faults_of_an_answer() -> Vec<(Action, CauseKind)> {
    let schema = |fault| (Action::WrongSchema(fault), Unreadable);
    vec![
        (Action::Reset, Unreachable),
        (Action::ResetAfter { bytes: 40 }, Unreachable),
        (Action::EndStreamAfter { bytes: 40 }, Unreachable),
        (Action::HalfClose { bytes: 40 }, Unreachable),
        (Action::GoAway, Unreachable),
        (Action::NoAnswer, TimedOut),
        (Action::Drip { bytes: 1, every_ms: 400 }, TimedOut),
        (Action::Delay { ms: 1_600 }, TimedOut),
        (status(500, RetryAfter::Absent), ServerError),
        (status(502, RetryAfter::Seconds(1)), ServerError),
        (status(503, RetryAfter::Text("soon".to_owned())), ServerError),
        (status(409, RetryAfter::Absent), ServerError),
        (status(429, RetryAfter::Absent), RateLimited),
        (status(429, RetryAfter::Seconds(1_000_000_000)), RateLimited),
        (status(429, RetryAfter::DateIn(-30)), RateLimited),
        (Action::Html { code: 200 }, Unreadable),
        (Action::Html { code: 503 }, ServerError),
        (Action::EmptyBody, Unreadable),
        (Action::TruncatedJson { keep_per_mille: 700 }, Unreadable),
        schema(SchemaFault::TopLevelArray),
        schema(SchemaFault::TopLevelNull),
        schema(SchemaFault::NoId),
        schema(SchemaFault::NoStatus),
        schema(SchemaFault::AmountIsText),
        schema(SchemaFault::AmountIsFraction),
        schema(SchemaFault::CreatedIsText),
        schema(SchemaFault::OtherObject),
        (Action::GzipBomb { mib: 40 }, Unreadable),
        (Action::HugeBody { mib: 20 }, Unreadable),
        (Action::DeepNesting { depth: 10_000 }, Unreadable),
        (Action::Redirect { code: 302, to: "http://198.51.100.7/".to_owned() }, Unreadable),
        (Action::Redirect { code: 307, to: "https://api.example.test/".to_owned() }, Unreadable),
    ]
}

/// Faults that only a list can have.
fn faults_of_a_list() -> Vec<(Action, CauseKind)> {
    vec![
        (Action::WrongSchema(SchemaFault::DataIsObject), Unreadable),
        (Action::WrongSchema(SchemaFault::NoData), Unreadable),
        (Action::WrongSchema(SchemaFault::NoHasMore), Unreadable),
        (Action::EmptyPageWithMore, Incomplete),
        (Action::Duplicate(Which::Place(0)), Incomplete),
        (altered(Change::Created(0)), Incomplete),
        (altered(Change::Created(253_402_300_000)), Incomplete),
        (altered(Change::CreatedBy(86_400)), Incomplete),
    ]
}

/// 250 intents: three pages, and the second look at the end. Nobody's row and the oldest row are
/// asked for.
async fn list_with(rule: FaultRule) -> (Desk, String) {
    let desk = Desk::new(&format!("{QUICK}{INTENTS}")).await;
    desk.plant(250);
    desk.sandbox.fault(rule);
    let questions = [by_intent("nobody"), by_intent("row-0")];
    let looked = desk.look(&questions, Need::Complete).await;
    let [nobody, first] = &looked.evidence[..] else { panic!() };
    let mut told = String::new();
    if nothing(nobody).is_some() || complete(first).is_some() {
        write!(told, "complete ").unwrap();
    }
    write!(told, "{:?}", causes(nobody)).unwrap();
    assert_eq!(causes(nobody), causes(first), "one window, one fate");
    (desk, told)
}

#[tokio::test]
async fn no_fault_of_a_list_reads_as_nothing() {
    let mut wrong = Vec::new();
    let everywhere = faults_of_an_answer().into_iter().chain(faults_of_a_list());
    for (action, cause) in everywhere {
        for spot in [PageSpot::First, PageSpot::Middle, PageSpot::Last] {
            let rule = FaultRule::on(Route::ListIntents, action.clone()).page(spot);
            let (_desk, told) = list_with(rule).await;
            if told != format!("[{cause:?}]") {
                wrong.push(format!("{action:?} on the {spot:?} page: {told}, not {cause:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn paging_that_loops_or_ends_early_is_noticed() {
    for (action, spot) in [
        (Action::RepeatCursor, PageSpot::Middle),
        (Action::CursorLoop, PageSpot::Middle),
        (Action::CursorLoop, PageSpot::Last),
        (Action::EndEarly, PageSpot::First),
        (Action::EndEarly, PageSpot::Middle),
        (Action::RemoveBetweenPages(Removed::Cursor), PageSpot::First),
        (Action::RemoveBetweenPages(Removed::Cursor), PageSpot::Middle),
    ] {
        let rule = FaultRule::on(Route::ListIntents, action.clone()).page(spot);
        let (_desk, told) = list_with(rule).await;
        assert_eq!(told, "[Incomplete]", "{action:?} on the {spot:?} page");
    }
}

#[tokio::test]
async fn a_window_that_the_server_ignores_is_noticed() {
    let desk = Desk::new(&format!("{QUICK}{INTENTS}")).await;
    desk.plant(3);
    let old = Seed::captured(TAG, "old", 5, "eur").created_at(1_600_000_000);
    desk.sandbox.seed([old]).unwrap();
    desk.sandbox.fault(FaultRule::on(Route::ListIntents, Action::IgnoreCreated));
    let looked = desk.look(&[by_intent("nobody")], Need::Complete).await;
    assert_eq!(causes(&looked.evidence[0]), [Incomplete]);
    assert!(nothing(&looked.evidence[0]).is_none());
}

#[tokio::test]
async fn what_moves_while_paging_and_does_no_harm_leaves_the_list_complete() {
    let newcomer = Box::new(Seed::captured(TAG, "new", 5, "eur"));
    for action in [
        Action::InsertBetweenPages(newcomer),
        Action::ShrinkPage { to: 10 },
        Action::RemoveBetweenPages(Removed::Next),
    ] {
        let rule = FaultRule::on(Route::ListIntents, action.clone()).times(3);
        let (_desk, told) = list_with(rule).await;
        assert_eq!(told, "complete []", "{action:?}");
    }
}

#[tokio::test]
async fn no_fault_of_a_fetch_or_a_search_reads_as_nothing() {
    let mut wrong = Vec::new();
    for (action, cause) in faults_of_an_answer() {
        let searching = by_intent("row-0");
        let fetching = asked(None, Some("pi_0"));
        for (question, need) in [(searching, Need::Search), (fetching, Need::Find)] {
            let desk = Desk::new(QUICK).await;
            desk.plant(1);
            desk.sandbox.fault(FaultRule::always(action.clone()));
            let looked = desk.look(&[question], need).await;
            let evidence = &looked.evidence[0];
            if causes(evidence) != [cause] || evidence.len() != 1 {
                wrong.push(format!("{action:?} by {need:?}: {evidence:?}, not {cause:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_concerns_the_whole_account_stops_it() {
    let flip = Change::FlipLivemode;
    for (action, kind) in [
        (status(401, RetryAfter::Absent), StopKind::Auth),
        (status(403, RetryAfter::Absent), StopKind::Auth),
        (status(404, RetryAfter::Absent), StopKind::Misconfigured),
        (Action::Html { code: 404 }, StopKind::Misconfigured),
        (altered(flip), StopKind::WrongEnvironment),
    ] {
        let desk = Desk::new(QUICK).await;
        desk.plant(2);
        desk.sandbox.fault(FaultRule::always(action.clone()));
        let question = asked(Some("row-0"), None);
        let looked = desk.look(std::slice::from_ref(&question), Need::Complete).await;
        assert_eq!(causes(&looked.evidence[0]), [CauseKind::AccountStopped], "{action:?}");
        let stop = desk.account.stopped().unwrap();
        assert_eq!(stop.kind, kind, "{action:?}: {}", stop.text);
        // Nothing more is asked, also where the trouble is over.
        desk.sandbox.clear_faults();
        let before = desk.sandbox.total_requests();
        for need in [Need::Find, Need::Complete, Need::Search] {
            let looked = desk.look(std::slice::from_ref(&question), need).await;
            assert_eq!(causes(&looked.evidence[0]), [CauseKind::AccountStopped], "{action:?}");
        }
        assert_eq!(desk.sandbox.total_requests(), before, "{action:?}");
    }
}

#[tokio::test]
async fn closed_doors_are_no_answer() {
    let more = format!("{QUICK}connect_timeout = \"1s\"\n");
    for door in [Door::Refusing, Door::Hanging] {
        let desk = Desk::new(&more).await;
        desk.plant(1);
        desk.sandbox.door(door, None);
        let looked = desk.look(&[asked(Some("row-0"), None)], Need::Complete).await;
        let told = causes(&looked.evidence[0]);
        assert!(told == [Unreachable] || told == [TimedOut], "{door:?}: {told:?}");
        assert!(nothing(&looked.evidence[0]).is_none());
    }
    let nobody_there = Desk::new(QUICK).await;
    let gone = super::account("https://no-such-host.invalid", QUICK, &nobody_there.stop);
    let looked = gone.look(&[asked(Some("row-0"), None)], Need::Complete).await;
    assert_eq!(causes(&looked.evidence[0]), [Unreachable]);
}

#[tokio::test]
async fn a_cache_is_not_the_psp() {
    let desk = Desk::new(&format!("{QUICK}{INTENTS}")).await;
    desk.plant(1);
    let later = tieout::sandbox::faults::Turn::From(2);
    desk.sandbox.fault(FaultRule::always(Action::StaleReplay).at(later));
    let looked = desk.look(&[by_intent("row-0")], Need::Complete).await;
    assert_eq!(causes(&looked.evidence[0]), [Unreadable], "the second look at the end is stale");
}

#[tokio::test]
async fn a_tag_that_is_nearly_right_is_a_near_miss_and_no_find() {
    for (miss, is_near) in [
        (NearMiss::UpperCase, true),
        (NearMiss::Padded, true),
        (NearMiss::Truncated(22), true),
        (NearMiss::UnderKey("other".to_owned()), false),
        (NearMiss::InDescription, false),
    ] {
        let desk = Desk::new(QUICK).await;
        let tag = "pay_0192f0c4-7a0b-7c11-9d6e";
        let seed = Seed::captured(TAG, tag, 500, "eur").created_at(super::dawn().timestamp());
        desk.sandbox.seed([seed]).unwrap();
        desk.sandbox.fault(FaultRule::always(altered(Change::NearMiss(miss.clone()))));
        let looked = desk.look(&[asked(Some(tag), None)], Need::Complete).await;
        assert!(nothing(&looked.evidence[0]).is_some(), "{miss:?}: {:?}", looked.evidence);
        assert_eq!(looked.near[0].len(), usize::from(is_near), "{miss:?}: {:?}", looked.near);
        let seen = looked.near_objects[0].iter();
        let seen: Vec<_> = seen.map(|o| (o.reference.clone(), o.state.as_str())).collect();
        let near = looked.near[0].iter().map(|(reference, _)| (reference.clone(), "captured"));
        assert_eq!(seen, near.collect::<Vec<_>>(), "{miss:?}: what is near is shown");
        assert_eq!(looked.others().count(), 1, "{miss:?}");
    }
}

#[tokio::test]
async fn an_unknown_status_is_told_as_unknown() {
    let desk = Desk::new(QUICK).await;
    desk.plant(1);
    let change = Change::Status("settling_elsewhere".to_owned());
    desk.sandbox.fault(FaultRule::always(altered(change)));
    let looked = desk.look(&[asked(Some("row-0"), None)], Need::Complete).await;
    let [object] = found(&looked.evidence[0])[..] else { panic!("{:?}", looked.evidence) };
    assert_eq!(object.state.as_str(), "unknown");
}

#[tokio::test]
async fn a_page_that_never_ends_is_cut_at_its_cap() {
    let desk = Desk::new(&format!("{QUICK}{INTENTS}pages_max = 2\n")).await;
    desk.plant(250);
    let looked = desk.look(&[by_intent("nobody")], Need::Complete).await;
    assert_eq!(causes(&looked.evidence[0]), [Incomplete]);
    assert_eq!(desk.sandbox.total_requests(), 2);
    // A crowd of objects in one page is read, and belongs to no window that was asked for.
    let crowd = Desk::new(&format!("{QUICK}{INTENTS}")).await;
    let rule = FaultRule::always(Action::ManyItems { count: 5_000 });
    crowd.sandbox.fault(rule);
    let looked = crowd.look(&[by_intent("nobody")], Need::Complete).await;
    assert!(nothing(&looked.evidence[0]).is_none(), "{:?}", looked.evidence);
}
