//! What is found, by which route, and what it costs.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tieout::model::evidence::{Answer, ObjectState, Route as By};
use tieout::psp::account::{Need, Question};
use tieout::sandbox::faults::{Action, Change, FaultRule, Which};
use tieout::sandbox::routes::Route;
use tieout::sandbox::seeds::{Seed, SeedKind};
use tieout::sandbox::situations::Situation;

use super::{
    Desk, INTENTS, QUICK, TAG, asked, by_intent, causes, complete, dawn, found, nothing, paths,
    refund, routes,
};

#[tokio::test]
async fn a_charge_stands_within_its_intent() {
    let desk = Desk::new(QUICK).await;
    let seed = Seed {
        id: Some("pi_a".to_owned()),
        charge_id: Some("ch_a".to_owned()),
        ..Seed::captured(TAG, "a", 1_999, "eur").created_at(dawn().timestamp())
    };
    desk.sandbox.seed([seed]).unwrap();
    for question in [
        asked(Some("a"), None),
        asked(None, Some("pi_a")),
        asked(None, Some("ch_a")),
        asked(Some("a"), Some("ch_a")),
    ] {
        for need in [Need::Find, Need::Complete] {
            let looked = desk.look(std::slice::from_ref(&question), need).await;
            let objects = found(&looked.evidence[0]);
            assert!(!objects.is_empty(), "{:?}", looked.evidence);
            for object in objects {
                assert_eq!(object.reference, "pi_a");
                assert_eq!(object.aliases, ["ch_a"]);
                assert_eq!(object.captured.unwrap().to_string(), "19.99 EUR");
                assert_eq!(object.tag.as_deref(), Some("a"));
            }
            assert_eq!(looked.others().count(), 0);
        }
    }
}

/// The intent `pi_old`, a month old and tagged `old`, and its charge `ch_late` of this second,
/// which carries no tag.
fn old_intent_charged_at(second: i64) -> [Seed; 2] {
    let old = Seed {
        id: Some("pi_old".to_owned()),
        ..Seed::captured(TAG, "old", 700, "eur")
            .created_at((dawn() - TimeDelta::days(30)).timestamp())
            .standing(Situation::RequiresPaymentMethod)
    };
    let late = Seed {
        kind: SeedKind::Charge,
        id: Some("ch_late".to_owned()),
        payment_intent: Some("pi_old".to_owned()),
        amount: 700,
        currency: "eur".to_owned(),
        ..Seed::default()
    };
    [old, late.created_at(second)]
}

#[tokio::test]
async fn a_charge_whose_intent_is_older_than_the_window_folds_all_the_same() {
    let desk = Desk::new(QUICK).await;
    desk.sandbox.seed(old_intent_charged_at(dawn().timestamp())).unwrap();
    let looked = desk.look(&[asked(Some("old"), None)], Need::Complete).await;
    let [object] = found(&looked.evidence[0])[..] else { panic!("{:?}", looked.evidence) };
    assert_eq!(
        (object.reference.as_str(), object.aliases.as_slice()),
        ("pi_old", &["ch_late".to_owned()][..])
    );
}

#[tokio::test]
async fn what_was_listed_past_the_windows_once_is_not_listed_again() {
    let desk = Desk::new(QUICK).await;
    desk.plant(2_000);
    let first = dawn();
    desk.sandbox.seed(old_intent_charged_at(first.timestamp() + 400)).unwrap();
    let later = |tag: &str, from: i64| Question {
        window: (first + TimeDelta::seconds(from), Utc::now()),
        ..asked(Some(tag), None)
    };
    let batch = [later("row-3", 10), later("row-300", 200), later("none", 5)];
    let looked = desk.account.look_later(&batch, Need::Complete).await;
    let all = looked.pages;
    assert!(all >= 40, "{all}");
    let references = |looked: &tieout::psp::account::Looked| -> Vec<Vec<String>> {
        let of = |evidence: &Vec<_>| found(evidence).iter().map(|o| o.reference.clone()).collect();
        looked.evidence.iter().map(of).collect()
    };
    // The first was made before its window; whoever lists it by the way finds it all the same.
    assert_eq!(references(&looked)[1..], [vec!["pi_300".to_owned()], Vec::new()]);
    assert_eq!(looked.others().count(), 0, "nobody's are not kept");
    let made = Seed::captured(TAG, "made", 900, "eur").created_at(Utc::now().timestamp());
    desk.sandbox.seed([Seed { id: Some("pi_made".to_owned()), ..made }]).unwrap();
    let batch = [
        later("row-100", 350),
        later("row-500", 350),
        later("old", 350),
        later("made", 350),
        later("none", 350),
    ];
    let looked = desk.account.look_later(&batch, Need::Complete).await;
    let expected = [&[][..], &["pi_500"], &["pi_old"], &["pi_made"], &[]];
    assert_eq!(references(&looked), expected);
    assert!(looked.pages <= 12, "{} of {all} pages", looked.pages);
    assert!(looked.evidence.iter().all(|evidence| causes(evidence).is_empty()));
    // What cannot be read leaves no row without its cause, whichever of its windows it was.
    let failing = Action::Status { code: 500, retry_after: Default::default(), reason: None };
    desk.sandbox.fault(FaultRule::on(Route::ListIntents, failing));
    let looked = desk.account.look_later(&batch, Need::Complete).await;
    assert!(looked.evidence.iter().all(|evidence| !causes(evidence).is_empty()));
}

#[tokio::test]
async fn what_was_taken_back_is_seen_though_nothing_is_expanded() {
    let desk = Desk::new(&format!("{QUICK}{INTENTS}")).await;
    let stand = |tag: &str, situation| {
        Seed::captured(TAG, tag, 900, "eur").created_at(dawn().timestamp()).standing(situation)
    };
    let seeds = [stand("r", Situation::Refunded), stand("d", Situation::Disputed)];
    desk.sandbox.seed(seeds).unwrap();
    // A server that ignores expand[]: the charge is an id, and is fetched.
    let id = "ch_plain";
    desk.sandbox
        .seed([Seed { charge_id: Some(id.to_owned()), ..stand("p", Situation::Refunded) }])
        .unwrap();
    let change = Change::Set { path: "latest_charge".to_owned(), value: json!(id) };
    let only = Which::Tagged("p".to_owned());
    let rule = FaultRule::on(Route::ListIntents, Action::Alter { only, change });
    desk.sandbox.fault(rule);
    let questions = ["r", "d", "p"].map(by_intent);
    let looked = desk.look(&questions, Need::Complete).await;
    let told: Vec<(i64, bool)> = looked
        .evidence
        .iter()
        .flat_map(|evidence| found(evidence))
        .map(|object| (object.refunded_minor, object.disputed))
        .collect();
    assert_eq!(told, [(900, false), (0, true), (900, false)]);
    assert!(paths(&desk.sandbox).contains_key(&format!("/v1/charges/{id}")));
}

#[tokio::test]
async fn an_object_that_cannot_be_read_whole_leaves_its_row_without_an_answer() {
    let desk = Desk::new(&format!("{QUICK}{INTENTS}")).await;
    desk.plant(2);
    let change = Change::Set { path: "latest_charge".to_owned(), value: json!("ch_gone") };
    let only = Which::Tagged("row-0".to_owned());
    desk.sandbox.fault(FaultRule::on(Route::ListIntents, Action::Alter { only, change }));
    let failing = Action::Status { code: 500, retry_after: Default::default(), reason: None };
    desk.sandbox.fault(FaultRule::on(Route::GetCharge, failing));
    let looked = desk.look(&[by_intent("row-0"), by_intent("row-1")], Need::Complete).await;
    assert!(found(&looked.evidence[0]).is_empty() && nothing(&looked.evidence[0]).is_none());
    assert_eq!(causes(&looked.evidence[0]).len(), 1);
    assert!(complete(&looked.evidence[1]).is_some(), "the other row has its answer");
}

#[tokio::test]
async fn a_reference_that_nobody_knows_is_said_to_be_unknown() {
    let desk = Desk::new(QUICK).await;
    desk.plant(1);
    for reference in ["pi_none", "ch_none", "re_none", "cs_other", "../v1/charges", "pi_a/b", ""] {
        let looked = desk.look(&[asked(None, Some(reference))], Need::Find).await;
        let answers: Vec<&Answer> = looked.evidence[0].iter().map(|item| &item.answer).collect();
        let unknown = Answer::UnknownReference(reference.to_owned());
        assert_eq!(answers, [&unknown], "{reference}");
    }
    // Its tag is looked for all the same.
    let looked = desk.look(&[asked(Some("row-0"), Some("pi_none"))], Need::Find).await;
    assert_eq!(found(&looked.evidence[0]).len(), 1);
    assert!(routes(&looked.evidence[0]).contains(&By::Fetch));
}

#[tokio::test]
async fn a_search_is_exact_reads_its_hits_again_and_never_counts_as_a_miss() {
    let desk = Desk::new(QUICK).await;
    let tag = r#"it's "row" \ 7"#;
    let seed = |tag: &str| Seed::captured(TAG, tag, 500, "eur").created_at(dawn().timestamp());
    desk.sandbox.seed([seed(tag), seed("Row-X")]).unwrap();
    let questions = [asked(Some(tag), None), asked(Some("row-x"), None), asked(Some("none"), None)];
    let looked = desk.look(&questions, Need::Search).await;
    assert_eq!(found(&looked.evidence[0]).len(), 1);
    assert_eq!(looked.near[1].len(), 1, "another case is a near miss: {:?}", looked.near);
    for evidence in &looked.evidence[1..] {
        let search = nothing(evidence).unwrap();
        assert_eq!((search.route, search.counts_as_miss), (By::Search, false));
    }
    // The index says succeeded; the object itself says refunded by now.
    let hit = found(&looked.evidence[0])[0].reference.clone();
    let change = Change::Set { path: "status".to_owned(), value: json!("processing") };
    let rule = FaultRule::on(Route::SearchIntents, Action::Alter { only: Which::All, change });
    desk.sandbox.fault(rule);
    desk.sandbox.move_to(&hit, Situation::Refunded).unwrap();
    let looked = desk.look(&questions[..1], Need::Search).await;
    let [object] = found(&looked.evidence[0])[..] else { panic!() };
    assert_eq!((object.status.as_str(), object.refunded_minor), ("succeeded", 500));
}

#[tokio::test]
async fn refunds_are_listed_and_fetched_and_have_no_search() {
    let desk = Desk::new(QUICK).await;
    let seed = Seed {
        kind: SeedKind::Refund,
        id: Some("re_1".to_owned()),
        ..Seed::captured(TAG, "r-1", 250, "eur").created_at(dawn().timestamp())
    };
    desk.sandbox.seed([seed]).unwrap();
    desk.plant(1);
    for need in [Need::Find, Need::Complete] {
        let looked = desk.look(&[refund("r-1"), refund("r-2"), refund("row-0")], need).await;
        let [object] = found(&looked.evidence[0])[..] else { panic!("{:?}", looked.evidence) };
        assert_eq!((object.kind.as_str(), object.state.as_str()), ("refund", "captured"));
        assert!(nothing(&looked.evidence[1]).is_some());
        assert!(nothing(&looked.evidence[2]).is_some(), "a payment's tag is no refund's");
    }
    let looked = desk.look(&[refund("r-1")], Need::Search).await;
    assert!(looked.evidence[0].is_empty());
    let facts = desk.account.facts();
    assert!(facts.search_for(tieout::model::transaction::Kind::Refund).is_none());
    assert!(facts.search_for(tieout::model::transaction::Kind::Charge).is_some());
}

/// A refund that was made twice, by a worker that lost the first answer: the row stores one of
/// them, and both left the account.
#[tokio::test]
async fn a_second_refund_under_the_tag_is_seen_beside_the_stored_one() {
    let desk = Desk::new(QUICK).await;
    let paid = Seed {
        id: Some("pi_sold".to_owned()),
        charge_id: Some("ch_sold".to_owned()),
        ..Seed::captured(TAG, "sold", 1_000, "eur").created_at(dawn().timestamp())
    };
    let made = |id: &str, tag: &str| Seed {
        kind: SeedKind::Refund,
        id: Some(id.to_owned()),
        charge: Some("ch_sold".to_owned()),
        ..Seed::captured(TAG, tag, 250, "eur").created_at(dawn().timestamp())
    };
    desk.sandbox.seed([paid, made("re_1", "r-1"), made("re_2", "r-2")]).unwrap();
    let asked = || Question { reference: Some("re_1".to_owned()), ..refund("r-1") };
    // Those of other rows are theirs; and that there is no other is no search of any window.
    let looked = desk.look(&[asked()], Need::Find).await;
    assert_eq!(found(&looked.evidence[0]).len(), 1, "{:?}", looked.evidence);
    assert!(complete(&looked.evidence[0]).is_none());
    assert_eq!(routes(&looked.evidence[0]), [By::Fetch]);
    desk.sandbox.seed([made("re_3", "r-1")]).unwrap();
    let looked = desk.look(&[asked()], Need::Find).await;
    let told: Vec<&str> =
        found(&looked.evidence[0]).iter().map(|object| object.reference.as_str()).collect();
    assert_eq!(told, ["re_1", "re_3"]);
    // A list that fails is said to have failed.
    let failing = Action::Status { code: 500, retry_after: Default::default(), reason: None };
    desk.sandbox.fault(FaultRule::on(Route::ListRefunds, failing));
    let looked = desk.look(&[asked()], Need::Find).await;
    assert_eq!(causes(&looked.evidence[0]).len(), 1, "{:?}", looked.evidence);
}

/// Without a search only a list shows what else stands under the tag of a row that stores one.
#[tokio::test]
async fn without_a_search_a_second_capture_beside_the_stored_one_is_listed() {
    let desk = Desk::new(&format!("{QUICK}search = false\n")).await;
    let paid = |id: &str| Seed {
        id: Some(id.to_owned()),
        ..Seed::captured(TAG, "twice", 1_000, "eur").created_at(dawn().timestamp())
    };
    desk.sandbox.seed([paid("pi_one"), paid("pi_two")]).unwrap();
    let looked = desk.look(&[asked(Some("twice"), Some("pi_one"))], Need::Find).await;
    assert_eq!(found(&looked.evidence[0]).len(), 2, "{:?}", looked.evidence);
}

#[tokio::test]
async fn objects_of_another_system_are_neither_neighbours_nor_counted() {
    let ours = "ours = { field = \"metadata[system]\", value = \"shop\" }\n";
    let desk = Desk::new(&format!("{QUICK}{ours}")).await;
    let seed = |tag: &str, system: &str| {
        let mut seed = Seed::captured(TAG, tag, 500, "eur").created_at(dawn().timestamp());
        seed.metadata.insert("system".to_owned(), system.to_owned());
        seed
    };
    desk.sandbox.seed([seed("a", "shop"), seed("b", "crm"), seed("c", "crm")]).unwrap();
    let looked = desk.look(&[asked(Some("c"), None)], Need::Complete).await;
    let others: Vec<_> = looked.others().map(|other| other.tag.as_deref().unwrap()).collect();
    assert_eq!(others, ["a"]);
    assert_eq!(looked.listed, 1);
    assert_eq!(found(&looked.evidence[0]).len(), 1, "a find is a find");
}

#[tokio::test]
async fn a_list_says_what_it_covers_and_no_more() {
    let desk = Desk::new(QUICK).await;
    desk.plant(5);
    let mut open = asked(Some("nobody"), None);
    open.window.1 = Utc::now() + TimeDelta::days(1);
    let before = Utc::now();
    let looked = desk.look(&[open.clone(), asked(Some("nobody"), None)], Need::Complete).await;
    let search = nothing(&looked.evidence[0]).unwrap();
    assert_eq!(search.kinds, ["payment_intent", "charge"]);
    assert!(search.from <= open.window.0);
    assert_eq!(search.to, search.asked_at, "it cannot cover what was made after it was asked");
    assert!(search.asked_at >= before && search.asked_at <= Utc::now());
    assert_eq!((search.listed, looked.listed), (10, 5), "each intent and its charge");
    assert!(search.counts_as_miss && search.witness.is_none());
    assert!(search.psp_skew_secs.unwrap().abs() <= 2);
    let bare = Question { tag: None, ..asked(None, None) };
    let looked = desk.look(&[bare], Need::Complete).await;
    assert!(nothing(&looked.evidence[0]).is_some(), "a question without a name lists its window");
}

#[tokio::test]
async fn the_cheaper_way_is_taken() {
    let desk = Desk::new(&format!("{QUICK}{INTENTS}")).await;
    desk.plant(900);
    // One row among nine pages is asked for by itself.
    let looked = desk.look(&[by_intent("row-5")], Need::Find).await;
    assert_eq!(routes(&looked.evidence[0]), [By::Search], "{}", looked.why);
    // Fifty rows: the list is ten calls, the searches a hundred.
    desk.sandbox.clear_requests();
    let questions: Vec<Question> = (0..50).map(|n| by_intent(&format!("row-{n}"))).collect();
    let looked = desk.look(&questions, Need::Find).await;
    assert!(looked.evidence.iter().all(|evidence| complete(evidence).is_some()), "{}", looked.why);
    assert!(desk.sandbox.total_requests() < 15, "{}", desk.sandbox.total_requests());
    // Four rows: two pages show that nine would be read, and eight single questions are fewer.
    desk.sandbox.clear_requests();
    let looked = desk.look(&questions[..4], Need::Find).await;
    assert!(looked.evidence.iter().all(|evidence| found(evidence).len() == 1), "{}", looked.why);
    let calls = desk.sandbox.total_requests();
    assert!(calls <= 11, "{calls}: {}", looked.why);
    // A stored reference outside the window is fetched, and its tag searched for a second object.
    let elsewhere = Question {
        window: (dawn() - TimeDelta::days(9), dawn() - TimeDelta::days(8)),
        ..asked(Some("row-0"), Some("pi_0"))
    };
    let looked = desk.look(&[elsewhere], Need::Find).await;
    assert_eq!(routes(&looked.evidence[0]), [By::Fetch, By::Search]);
}

/// Payments of a week of one desk, and what it costs to find some of them.
struct Week {
    desk: Desk,
    from: i64,
}

impl Week {
    /// Of payments made so many seconds before the week's end.
    async fn of(made: impl Iterator<Item = (String, i64)>) -> Self {
        let desk = Desk::new("concurrency = 2\nrequests_per_second = 1000\n").await;
        let to = Utc::now().timestamp();
        let seed = |(tag, before): (String, i64)| {
            Seed::captured(TAG, &tag, 2_500, "eur").created_at(to - before)
        };
        desk.sandbox.seed(made.map(seed)).unwrap();
        Self { desk, from: to - 7 * 86_400 }
    }

    /// Finds the first so many of a name: how many requests that takes, and whether by list.
    async fn find(&self, name: &str, rows: i64) -> (u64, bool, String) {
        let from = DateTime::from_timestamp(self.from, 0).unwrap();
        let window = (from, from + TimeDelta::days(7));
        let ask = |n: i64| Question { window, ..asked(Some(&format!("{name}-{n}")), None) };
        let questions: Vec<Question> = (0..rows).map(ask).collect();
        self.desk.sandbox.clear_requests();
        let looked = self.desk.look(&questions, Need::Find).await;
        assert!(looked.evidence.iter().all(|evidence| !found(evidence).is_empty()));
        let listed = looked.evidence.iter().filter(|e| complete(e).is_some()).count();
        assert!([0, questions.len()].contains(&listed), "{listed}: {}", looked.why);
        (self.desk.sandbox.total_requests(), listed > 0, looked.why)
    }
}

/// Nightly billing: 1,500 payments in ten minutes, seven times, and nothing between. A page of it
/// is as dense as a window of five thousand pages of each kind, and it has a hundred.
#[tokio::test]
async fn a_week_of_nightly_bursts_is_listed() {
    let night = |night: i64| {
        let tag = move |n: i64| format!("night{night}-{n}");
        (0..1_500).map(move |n| (tag(n), 7_200 + night * 86_400 - n * 2 / 5))
    };
    let week = Week::of((0..7).flat_map(night)).await;
    for _ in 0..5 {
        let (requests, is_listed, why) = week.find("night0", 300).await;
        // 105 pages of each of two kinds.
        assert!(is_listed && requests <= 210 * 6 / 5 + 20, "{requests}: {why}");
    }
}

#[tokio::test]
async fn an_empty_week_below_a_burst_is_seen_as_empty() {
    let week = Week::of((0..300).map(|n| (format!("only-{n}"), 7_200 - n))).await;
    for _ in 0..5 {
        let (requests, is_listed, why) = week.find("only", 300).await;
        assert!(is_listed && requests <= 30, "{requests}: {why}");
    }
}

/// The other way round: nothing new, and far more at the old end than the rows are worth.
#[tokio::test]
async fn a_dense_old_end_below_an_empty_week_is_not_listed() {
    let made = |n: i64| (format!("old-{n}"), 7 * 86_400 - 70_000 + n * 4);
    let week = Week::of((0..9_000).map(made)).await;
    for _ in 0..2 {
        let (requests, is_listed, why) = week.find("old", 15).await;
        // 90 pages of each of two kinds, or at most three requests for each row.
        assert!(!is_listed && requests <= 15 * 3 + 40, "{requests}: {why}");
    }
}

#[tokio::test]
async fn a_stored_reference_does_not_hide_a_second_object_under_the_tag() {
    let desk = Desk::new(QUICK).await;
    desk.plant(900);
    let first = dawn().timestamp();
    let second = Seed::captured(TAG, "row-0", 700, "eur").created_at(first);
    desk.sandbox.seed([Seed { id: Some("pi_second".to_owned()), ..second }]).unwrap();
    for need in [Need::Find, Need::Complete] {
        let looked = desk.look(&[asked(Some("row-0"), Some("pi_0"))], need).await;
        let mut seen: Vec<&str> =
            found(&looked.evidence[0]).iter().map(|object| object.reference.as_str()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, ["pi_0", "pi_second"], "{need:?}: {}", looked.why);
    }
}

#[tokio::test]
async fn slices_side_by_side_see_every_object_once() {
    let more = "concurrency = 8\nrequests_per_second = 1000\n";
    let desk = Desk::new(more).await;
    desk.plant(1_200);
    // A second in which more than a page was made, and quiet hours around it.
    let burst = (0..250).map(|n| {
        let seed = Seed::captured(TAG, &format!("burst-{n}"), 1, "eur");
        seed.created_at((dawn() - TimeDelta::minutes(5)).timestamp())
    });
    desk.sandbox.seed(burst).unwrap();
    let asks: Vec<Question> =
        ["row-0", "row-1199", "burst-0", "burst-249"].map(|tag| asked(Some(tag), None)).into();
    let looked = desk.look(&asks, Need::Complete).await;
    for evidence in &looked.evidence {
        let [object] = found(evidence)[..] else { panic!("{evidence:?}") };
        assert!(matches!(object.state, ObjectState::Captured));
    }
    let search = complete(&looked.evidence[0]).unwrap();
    assert_eq!((search.listed, looked.listed), (2_900, 1_450));
    assert_eq!(looked.others().count(), 1_446);
    // 15 pages of each kind hold them; how many more the slices cost is a benchmark's to say.
    assert!(looked.pages >= 30, "{}", looked.pages);
}
