//! Faults of paging: what a client that proves completeness has to see through.

use serde_json::json;
use tieout::sandbox::faults::{Action, FaultRule, PageSpot, Removed, Turn, Which};
use tieout::sandbox::seeds::Seed;

use super::{DAWN, Rig, ids, read};

const LIST: &str = "/v1/payment_intents?limit=2";

/// Ids of the pages that a trusting client reads, at most five, and the last `has_more`.
async fn walk(rig: &Rig) -> (Vec<String>, bool) {
    let mut pages = Vec::new();
    let mut path = LIST.to_owned();
    let mut more = true;
    while more && pages.len() < 5 {
        let page = rig.json(&path).await;
        let seen = ids(&page);
        pages.push(seen.join(" "));
        more = page["has_more"] == json!(true);
        let Some(last) = seen.last() else { break };
        path = format!("{LIST}&starting_after={last}");
    }
    (pages, more)
}

#[tokio::test]
async fn pages_go_wrong_in_every_way() {
    let cases: &[(FaultRule, &[&str], bool)] = &[
        (
            FaultRule::always(Action::ShrinkPage { to: 1 }),
            &["pi_4", "pi_3", "pi_2", "pi_1", "pi_0"],
            false,
        ),
        (
            FaultRule::always(Action::RepeatCursor),
            &["pi_4 pi_3", "pi_4 pi_3", "pi_4 pi_3", "pi_4 pi_3", "pi_4 pi_3"],
            true,
        ),
        (
            FaultRule::always(Action::CursorLoop).at(Turn::Every(3)),
            &["pi_4 pi_3", "pi_2 pi_1", "pi_4 pi_3", "pi_2 pi_1", "pi_0"],
            false,
        ),
        (
            FaultRule::always(Action::EmptyPageWithMore).page(PageSpot::Middle),
            &["pi_4 pi_3", ""],
            true,
        ),
        (FaultRule::always(Action::EndEarly).page(PageSpot::First), &["pi_4 pi_3"], false),
        (
            FaultRule::always(Action::EndEarly).page(PageSpot::Middle),
            &["pi_4 pi_3", "pi_2 pi_1"],
            false,
        ),
        (
            FaultRule::always(Action::EmptyPageWithMore).page(PageSpot::Last),
            &["pi_4 pi_3", "pi_2 pi_1", ""],
            true,
        ),
        (
            FaultRule::always(Action::RemoveBetweenPages(Removed::Next)).times(1),
            &["pi_4 pi_3", "pi_1 pi_0"],
            false,
        ),
        (
            FaultRule::always(Action::RemoveBetweenPages(Removed::Id("pi_0".to_owned()))).times(1),
            &["pi_4 pi_3", "pi_2 pi_1"],
            false,
        ),
        (
            FaultRule::always(Action::Hide(Which::Id("pi_2".to_owned()))),
            &["pi_4 pi_3", "pi_1", "pi_0"],
            false,
        ),
        (
            FaultRule::always(Action::Duplicate(Which::Place(1))).times(1),
            &["pi_4 pi_3 pi_3", "pi_2 pi_1", "pi_0"],
            false,
        ),
    ];
    for (rule, pages, more) in cases {
        let rig = Rig::with_payments(5).await;
        rig.sandbox.fault(rule.clone());
        let (seen, last_more) = walk(&rig).await;
        assert_eq!(
            (seen, last_more),
            (pages.iter().map(ToString::to_string).collect(), *more),
            "{rule:?}"
        );
    }
}

#[tokio::test]
async fn an_object_comes_between_two_pages() {
    let rig = Rig::with_payments(5).await;
    let late = Seed { id: Some("pi_late".to_owned()), ..Seed::default().created_at(DAWN + 2) };
    rig.sandbox.fault(FaultRule::always(Action::InsertBetweenPages(Box::new(late))).times(1));
    let (seen, _) = walk(&rig).await;
    assert_eq!(seen, ["pi_4 pi_3", "pi_late pi_2", "pi_1 pi_0"]);
}

#[tokio::test]
async fn a_cursor_goes_between_two_pages() {
    let rig = Rig::with_payments(5).await;
    rig.sandbox.fault(FaultRule::always(Action::RemoveBetweenPages(Removed::Cursor)).times(1));
    assert_eq!(ids(&rig.json(LIST).await), ["pi_4", "pi_3"]);
    let (status, body) = read(rig.get(&format!("{LIST}&starting_after=pi_3"))).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("resource_missing")));
}

#[tokio::test]
async fn a_created_filter_is_ignored() {
    let rig = Rig::with_payments(5).await;
    let path = "/v1/payment_intents?created[gte]=1700000003";
    assert_eq!(ids(&rig.json(path).await), ["pi_4", "pi_3"]);
    rig.fault(Action::IgnoreCreated);
    assert_eq!(ids(&rig.json(path).await).len(), 5);
}

#[tokio::test]
async fn search_pages_repeat_too() {
    let rig = Rig::with_payments(5).await;
    let search = |page: Option<&str>| {
        let request = rig.get("/v1/payment_intents/search?query=status:'succeeded'&limit=2");
        request.query(&page.map(|page| [("page", page)]).into_iter().flatten().collect::<Vec<_>>())
    };
    let (_, first) = read(search(None)).await;
    let token = first["next_page"].as_str().unwrap();
    rig.fault(Action::RepeatCursor);
    let (_, second) = read(search(Some(token))).await;
    assert_eq!((&second["next_page"], &second["has_more"]), (&json!(token), &json!(true)));
}

#[tokio::test]
async fn a_replica_shows_an_object_on_alternate_answers() {
    let rig = Rig::with_payments(1).await;
    let hide = FaultRule::always(Action::Hide(Which::Tagged("row-0".to_owned())));
    rig.sandbox.fault(hide.at(Turn::Every(2)));
    for round in 0..3 {
        assert_eq!(ids(&rig.json(LIST).await), ["pi_0"], "round {round}");
        assert!(ids(&rig.json(LIST).await).is_empty(), "round {round}");
    }
    assert_eq!(read(rig.get("/v1/payment_intents/pi_0")).await.0, 200);
    assert_eq!(read(rig.get("/v1/payment_intents/pi_0")).await.0, 404);
}
