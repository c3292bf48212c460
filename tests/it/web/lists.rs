//! The queue as people narrow it and work through it: filters that are mistyped, pages, and many
//! cases at once.

use super::browser::{Answer, Browser};
use super::{serve, shop_of, shop_with, sign_in};

/// More open cases of the same reason: their numbers follow those that are there.
fn more_cases(many: u32) -> String {
    format!(
        "insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, \
         account, currency, amount_minor, policy_version, opened_at, opened_run, last_seen_at, \
         last_run) with recursive n(i) as (select 1 union all select i + 1 from n \
         where i < {many}) select 'row', 'charges', 'more_' || i, 'decline_unknown', 'a text', \
         'open', 'stripe_test', 'EUR', i, 'p', '2026-11-19T10:00:00.000000Z', 'r', \
         '2026-11-19T10:00:00.000000Z', 'r' from n"
    )
}

/// Where the page's link of this kind leads.
fn link(page: &str, rel: &str) -> Option<String> {
    let (_, rest) =
        page.split("<a ").find(|a| a.contains(&format!("rel=\"{rel}\"")))?.split_once("href=\"")?;
    Some(rest.split('"').next().unwrap().replace("&amp;", "&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_filter_is_told_above_the_filter_as_it_was_typed() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    for (query, says) in [
        ("state=closed", "There is no state closed"),
        ("reason=duplicate_captur&owner=mara", "did you mean `duplicate_capture`?"),
        ("older=soon", "expected a span"),
        ("amount_from=5", "of which currency?"),
        ("part_of=x", "expected a case&#39;s number"),
        ("owner=%00", "has a letter in it that nobody sees"),
        ("stat=all", "There is no filter `stat` (did you mean `state`?)"),
        ("after=x", "names no page"),
        ("after=5&trail=0.x", "names no page"),
    ] {
        let page = mara.get(&format!("/cases?{query}")).await.ended(422).body;
        assert!(page.contains(says), "{query}: {page}");
        assert!(page.contains("aria-label=\"Filter\""), "{query}: {page}");
        assert!(!page.contains("C-1<"), "nothing is listed beside it: {query}: {page}");
    }
    let page = mara.get("/cases?reason=duplicate_captur&owner=mara").await.body;
    assert!(page.contains("value=\"duplicate_captur\" selected"), "{page}");
    assert!(page.contains("name=\"owner\" value=\"mara\""), "{page}");
    mara.get("/cases.csv?state=closed").await.ended(422);
    mara.get("/cases?state=open&reason=&owner=").await.ended(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn reasons_that_never_make_a_case_are_not_offered() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let page = sign_in(&site, "mara").await.get("/cases").await.ended(200).body;
    for offered in ["duplicate_capture", "gave_up", "rule", "orphan", "absence_brake"] {
        assert!(page.contains(&format!("<option value=\"{offered}\"")), "{offered}: {page}");
    }
    for other in ["captured", "settled", "within_grace", "absent", "watched", "by_person"] {
        assert!(!page.contains(&format!("<option value=\"{other}\"")), "{other}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_several_pages_is_turned_forth_and_back() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    shop.sql(&more_cases(129)).await;
    let mut path = "/cases?account=stripe_test".to_owned();
    let mut seen = Vec::new();
    for (first, words) in [("C-1<", "oldest first<"), ("C-51<", "page 2<"), ("C-101<", "page 3<")] {
        let page = mara.get(&path).await.ended(200).body;
        assert!(page.contains(first) && page.contains(words), "{path}: {page}");
        assert!(page.contains("130 open cases that the filter means"), "{page}");
        seen.push(path);
        match link(&page, "next") {
            Some(next) => path = next,
            None => break,
        }
    }
    assert_eq!(seen.len(), 3);
    for at in [2, 1] {
        let page = mara.get(&seen[at]).await.ended(200).body;
        assert_eq!(link(&page, "prev").as_ref(), Some(&seen[at - 1]));
    }
    let first = mara.get(&seen[0]).await.ended(200).body;
    assert_eq!(link(&first, "prev"), None);
    // Whoever came by a number alone is led to the beginning.
    let page = mara.get("/cases?after=60").await.ended(200).body;
    assert_eq!(link(&page, "prev").as_deref(), Some("/cases"), "{page}");
    assert!(!page.contains(" · page "), "{page}");
}

/// Everything that the preview of an action on all open cases of a filter keeps.
async fn preview(mara: &Browser, filter: &[(&str, &str)], act: &str) -> (Answer, Kept) {
    let csrf = mara.get("/cases").await.ended(200).csrf();
    let own = [("csrf", csrf.as_str()), ("which", "all"), ("act", act)];
    let page = mara.post("/cases/preview", &[&own[..], filter].concat()).await.ended(200);
    let values = |name: &str| {
        let lead = format!("name=\"{name}\" value=\"");
        let found = page.body.split(&lead).skip(1).map(|rest| rest.split('"').next().unwrap());
        found.map(|value| value.replace("&amp;", "&")).collect::<Vec<_>>()
    };
    let mut kept = vec![("csrf", csrf), ("act", act.to_owned())];
    kept.extend(values("back").into_iter().map(|back| ("back", back)));
    kept.extend(values("seen").into_iter().map(|seen| ("seen", seen)));
    (page, kept)
}

type Kept = Vec<(&'static str, String)>;

async fn say(mara: &Browser, kept: &Kept, fields: &[(&str, &str)]) -> Answer {
    let kept: Vec<(&str, &str)> =
        kept.iter().map(|(name, value)| (*name, value.as_str())).collect();
    mara.post("/cases/act", &[&kept[..], fields].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_on_many_leads_back_to_the_filter_and_says_how_many() {
    let shop = shop_of(&["pay_1", "pay_2"], "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let filter = [("reason", "duplicate_capture"), ("currency", "EUR")];
    let (page, kept) = preview(&mara, &filter, "propose").await;
    let list = "/cases?reason=duplicate_capture&currency=EUR";
    assert!(page.body.contains(&format!("href=\"{}\"", list.replace('&', "&amp;"))), "Do nothing");
    let left = [("as", "left"), ("why", "booked by hand")];
    let answer = say(&mara, &kept, &left).await.ended(303);
    assert_eq!(answer.location(), format!("{list}&done=propose&many=2"));
    let page = mara.get(answer.location()).await.ended(200).body;
    assert!(page.contains("2 cases: proposed. Nothing is done before it is approved."), "{page}");
    // The form that is sent again does nothing, and says so.
    let again = say(&mara, &kept, &left).await.ended(409).body;
    let words =
        "propose: nothing was done; each of the 2 cases changed meanwhile, or was so before";
    assert!(again.contains(words), "{again}");
    // One that is left of many leads back as well.
    let (_, kept) = preview(&mara, &[("currency", "EUR"), ("owner", "-")], "comment").await;
    let answer = say(&mara, &kept[..3].to_vec(), &[("seen", "2.-.-"), ("why", "called")]).await;
    let answer = answer.ended(303);
    assert_eq!(answer.location(), "/cases?owner=-&currency=EUR&done=comment&many=1");
    // A form that names another place leads to none.
    let fields = [("seen", "2.-.-"), ("why", "x"), ("back", "https://evil.example/cases")];
    let answer = say(&mara, &kept[..2].to_vec(), &fields).await.ended(303);
    assert_eq!(answer.location(), "/cases/C-2?done=comment");
}

/// The issue's own way: a filter means fourteen, and one of them is what the others belong to.
#[tokio::test(flavor = "multi_thread")]
async fn all_that_a_filter_means_become_parts_of_one_of_them() {
    let shop = shop_of(&["pay_1", "pay_2", "pay_3"], "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let (page, kept) = preview(&mara, &[("reason", "duplicate_capture")], "merge").await;
    assert!(page.body.contains("merge: 3 cases"), "{}", page.body);
    let answer = say(&mara, &kept, &[("into", "C-2"), ("why", "one outage")]).await.ended(303);
    assert_eq!(answer.location(), "/cases?reason=duplicate_capture&done=merge&many=2");
    let lead = mara.get("/cases/C-2").await.ended(200).body;
    assert!(lead.contains(">C-1 </a>") && lead.contains(">C-3 </a>"), "{lead}");
    let page = mara.get("/cases/C-2").await;
    let (csrf, seen) = (page.csrf(), page.seen("comment"));
    let own = [("into", "C-2"), ("why", "x")];
    let answer = mara.act_seen(&csrf, &seen, "merge", &own).await.ended(422);
    assert!(answer.body.contains("no part of itself"), "{}", answer.body);
}

/// The box counts letters, and so does what reads it: a language with umlauts says as much.
#[tokio::test(flavor = "multi_thread")]
async fn a_reason_is_as_long_as_the_box_lets_it_be() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let why = "ä".repeat(500);
    mara.act(1, "comment", &[("why", &why)]).await.ended(303);
    assert!(mara.get("/cases/C-1").await.body.contains(&why));
    let answer = mara.act(1, "comment", &[("why", &format!("{why}ä"))]).await.ended(422);
    assert!(answer.body.contains("in 1 to 500 characters"), "{}", answer.body);
    let owner = "ü".repeat(100);
    mara.act(1, "assign", &[("owner", &owner)]).await.ended(303);
    mara.act(1, "assign", &[("owner", &format!("{owner}ü"))]).await.ended(422);
    let said = shop.tieout(&["cases", "comment", "C-1", "--why", &why], &[]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let long = shop.tieout(&["cases", "comment", "C-1", "--why", &format!("{why}ä")], &[]);
    assert_eq!(long.code, Some(2), "{}", long.stderr);
}
