//! The review page: the built program, spoken to as browsers do and as nobody should.

mod browser;
mod chromium;
mod lists;
mod people;
mod runs;

use std::time::Duration;

use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::situations::Situation;
use tieout::web::token::hash_of;

use crate::cli_run::Shop;
use browser::{Browser, Site};

/// The token of each person of these tests.
fn token_of(name: &str) -> String {
    format!("{name}-s-token-of-the-tests")
}

/// A shop with a payment that was captured twice, and its case; mara and jonas may look at it.
async fn shop_with(id: &str, more: &str) -> Shop {
    shop_of(&[id], more).await
}

/// The same with several such payments.
async fn shop_of(ids: &[&str], more: &str) -> Shop {
    shop_of_amount(ids, 1_999, more).await
}

/// The same, each of so many minor units.
async fn shop_of_amount(ids: &[&str], minor: i64, more: &str) -> Shop {
    let twice: &[Situation] = &[Situation::Succeeded, Situation::Succeeded];
    let rows: Vec<(&str, i64, &[Situation])> = ids.iter().map(|id| (*id, minor, twice)).collect();
    let shop = Shop::with(&rows).await;
    let path = shop.path().join("tieout.toml");
    let mut config = std::fs::read_to_string(&path).unwrap();
    config.push_str(&format!("[web]\n{more}\n"));
    for name in ["mara", "jonas"] {
        let hash = hash_of(&token_of(name));
        config.push_str(&format!("[[web.person]]\nname = '{name}'\ntoken_sha256 = '{hash}'\n"));
    }
    std::fs::write(&path, config).unwrap();
    let ran = shop.tieout(&["run", "--json"], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    shop
}

fn serve(shop: &Shop) -> Site {
    Site::of(shop.begin(&["serve", "--listen", "127.0.0.1:0", "--json"]))
}

async fn sign_in(site: &Site, name: &str) -> Browser {
    Browser::of(site, name, &token_of(name)).await
}

const CONFIRMED: &[(&str, &str)] =
    &[("as", "succeeded"), ("other_object", "{object}"), ("why", "one order only")];

/// The objects that captured, as the case's page offers them.
async fn objects(browser: &Browser) -> Vec<String> {
    let page = browser.get("/cases/C-1").await.ended(200).body;
    let (_, select) = page.split_once("<select id=\"object\"").expect("a choice of objects");
    let select = select.split("</select>").next().unwrap();
    let values = select.split("value=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    values.filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

async fn propose(browser: &Browser) {
    let object = objects(browser).await.swap_remove(0);
    let fields: Vec<(&str, &str)> = CONFIRMED
        .iter()
        .map(|(name, value)| (*name, if *value == "{object}" { object.as_str() } else { *value }))
        .collect();
    let answer = browser.act(1, "propose", &fields).await.ended(303);
    assert_eq!(answer.location(), "/cases/C-1?done=propose");
}

/// Asks until something holds; what carries decisions out is another task.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within half a minute");
}

async fn status(shop: &Shop) -> String {
    shop.statuses().await.swap_remove(0).1
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_anything_without_signing_in() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mut nobody = Browser::new(&site);
    for path in ["/", "/cases", "/cases/C-1", "/cases.csv", "/runs", "/reports", "/none"] {
        let answer = nobody.get(path).await.ended(401);
        assert!(answer.body.contains("name=\"secret\""), "{path}: {}", answer.body);
        assert!(!answer.body.contains("pay_1"), "{path}: {}", answer.body);
    }
    let act = [("csrf", ""), ("act", "comment"), ("seen", "1.-.-"), ("why", "x")];
    nobody.post("/cases/act", &act).await.ended(403);
    for (name, secret) in [
        ("mara", "wrong".to_owned()),
        ("mara", token_of("jonas")),
        ("nobody", token_of("mara")),
        ("", token_of("mara")),
        ("mara", String::new()),
    ] {
        let answer = nobody.sign_in(name, &secret).await.ended(401);
        assert!(answer.body.contains("do not go together"), "{}", answer.body);
        assert_eq!(nobody.cookie(), "");
    }
    let answer = nobody.sign_in("mara", &token_of("mara")).await.ended(303);
    let cookie = answer.headers.get("set-cookie").unwrap().to_str().unwrap();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    let queue = nobody.get("/cases").await.ended(200);
    assert!(queue.body.contains("C-1"), "{}", queue.body);
    assert!(queue.body.contains("signed in as <strong>mara</strong>"), "{}", queue.body);
    nobody.post("/logout", &[("csrf", &queue.csrf())]).await.ended(303);
    nobody.get("/cases").await.ended(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_forbids_scripts_frames_and_caches() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let run = shop.tieout(&["runs", "list", "--json"], &[]).stdout;
    let run: serde_json::Value = serde_json::from_str(run.lines().next().unwrap()).unwrap();
    let run = format!("/runs/{}", run["run_id"].as_str().unwrap());
    for path in ["/cases", "/cases/C-1", "/runs", &run, "/reports", "/login", "/none", "/style.css"]
    {
        let answer = mara.get(path).await;
        let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "same-origin", "{path}");
        let is_style = path == "/style.css";
        assert_eq!(header("cache-control").contains("no-store"), !is_style, "{path}");
        for part in ["<script", "style=\"", "onclick", "http://", "https://"] {
            assert!(is_style || !answer.body.contains(part), "{path}: {part}: {}", answer.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_another_site_does_nothing() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let page = mara.get("/cases/C-1").await.ended(200);
    let (csrf, seen) = (page.csrf(), page.seen("comment"));
    let fields = |csrf: &'static str| {
        [("csrf", csrf), ("act", "comment"), ("seen", "1.-.-"), ("why", "from elsewhere")]
    };
    let mut whole = fields("");
    (whole[0].1, whole[2].1) = (&csrf, &seen);
    for origin in
        [None, Some("null"), Some("https://evil.example"), Some("http://127.0.0.1:1"), Some("")]
    {
        mara.post_from(origin, "/cases/act", &whole).await.ended(403);
    }
    // A page that knows the origin does not know the secret.
    for wrong in ["", "0", "undefined"] {
        mara.post("/cases/act", &fields(wrong)).await.ended(403);
    }
    let other = sign_in(&site, "mara").await.get("/cases").await.csrf();
    assert_ne!(other, csrf, "each session has its own");
    let mut others = whole;
    others[0].1 = &other;
    mara.post("/cases/act", &others).await.ended(403);
    let history = mara.get("/cases/C-1").await.body;
    assert!(!history.contains("from elsewhere"), "{history}");
    mara.post("/cases/act", &whole).await.ended(303);
    let history = mara.get("/cases/C-1").await.body;
    assert!(history.contains("from elsewhere"), "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_made_to_point_here_is_refused() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let port = site.url.rsplit(':').next().unwrap();
    for host in ["evil.example".to_owned(), format!("evil.example:{port}"), "127.0.0.1".to_owned()]
    {
        let answer = mara.get_with("/cases", "host", &host).await.ended(421);
        assert!(!answer.body.contains("pay_1"), "{host}: {}", answer.body);
    }
    mara.get_with("/cases", "host", &format!("localhost:{port}")).await.ended(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_maker_is_no_checker_and_another_person_is() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let (mara, jonas) = (sign_in(&site, "mara").await, sign_in(&site, "jonas").await);
    propose(&mara).await;
    let own = mara.get("/cases/C-1").await.ended(200);
    assert!(own.body.contains("It needs a second person"), "{}", own.body);
    assert!(!own.body.contains("value=\"approve\""), "{}", own.body);
    // The form that she is not shown is refused as well.
    let (csrf, seen) = (own.csrf(), own.seen("reject"));
    let why = [("why", "I am sure")];
    let answer = mara.act_seen(&csrf, &seen, "approve", &why).await.ended(403);
    assert!(answer.body.contains("needs another person than mara"), "{}", answer.body);
    assert_eq!(status(&shop).await, "processing");
    let answer = jonas.act(1, "approve", &[("why", "checked")]).await.ended(303);
    assert_eq!(answer.location(), "/cases/C-1?done=approve");
    until("the row is paid", async || status(&shop).await == "paid").await;
    until("the case ended", async || mara.get("/cases/C-1").await.body.contains("It ended: "))
        .await;
    let page = mara.get("/cases/C-1").await.body;
    assert!(page.contains("<strong>jonas</strong> approved: checked"), "{page}");
    assert!(page.contains("<strong>tieout</strong> carried it out<"), "{page}");
    let ended = "It ended: succeeded, as mara proposed and jonas approved: one order only";
    assert!(page.contains(ended), "{page}");
    let queue = mara.get("/cases").await.body;
    assert!(queue.contains("No case is meant by that"), "{queue}");
    let verified = shop.tieout(&["audit", "verify"], &[]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_seen_is_not_approved() {
    let shop = shop_with("pay_1", "carry_out = false").await;
    let site = serve(&shop);
    let (mara, jonas) = (sign_in(&site, "mara").await, sign_in(&site, "jonas").await);
    propose(&mara).await;
    let seen = jonas.get("/cases/C-1").await.ended(200);
    // Somebody looks again meanwhile: the case shows new evidence.
    let again = shop.tieout(&["run", "--id", "pay_1", "--json"], &[]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let form = (seen.csrf(), seen.seen("approve"));
    let why = [("why", "as I saw it")];
    let answer = jonas.act_seen(&form.0, &form.1, "approve", &why).await.ended(409);
    assert!(answer.body.contains("shows something else by now"), "{}", answer.body);
    // Looked at again it was proposed of other evidence than the case shows: no button, and the
    // store refuses the form that is sent all the same.
    let page = jonas.get("/cases/C-1").await.ended(200);
    assert!(page.body.contains("It was proposed of other evidence"), "{}", page.body);
    let answer = jonas.act_seen(&page.csrf(), &page.seen("reject"), "approve", &why).await;
    assert!(answer.ended(409).body.contains("nothing was done; the case changed meanwhile"));
    assert_eq!(status(&shop).await, "processing");
    // Taken back, proposed anew, approved; and here the next run carries it out.
    mara.act(1, "reject", &[("why", "anew")]).await.ended(303);
    propose(&mara).await;
    jonas.act(1, "approve", &[("why", "checked")]).await.ended(303);
    assert_eq!(status(&shop).await, "processing");
    let ran = shop.tieout(&["run", "--json"], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(status(&shop).await, "paid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_key_is_shown_as_it_is_and_does_nothing() {
    let hostile = "\"><script>alert(1)</script>&lt;\u{202e}gpj";
    let shop = shop_with(hostile, "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    for path in ["/cases", "/cases/C-1", "/cases?owner=%22%3E%3Cscript%3E"] {
        let page = mara.get(path).await.ended(200).body;
        assert!(!page.contains("<script"), "{path}: {page}");
        assert!(!page.contains('\u{202e}'), "{path}: {page}");
    }
    let page = mara.get("/cases/C-1").await.body;
    let shown = "charges/&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;lt;\u{fffd}202Egpj";
    assert!(page.contains(shown), "{page}");
    mara.act(1, "comment", &[("why", "<b>bold</b> & \"quoted\"")]).await.ended(303);
    let page = mara.get("/cases/C-1").await.body;
    assert!(page.contains("&lt;b&gt;bold&lt;/b&gt; &amp; &quot;quoted&quot;"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_downloaded_byte_for_byte_and_nothing_beside_them_is() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let listed = shop.tieout(&["report", "list", "--json"], &[]).stdout;
    let report: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let (day, run) =
        (report["business_date"].as_str().unwrap(), report["run_id"].as_str().unwrap());
    let dir = shop.path().join("reports").join(day).join(run);
    let page = mara.get(&format!("/runs/{run}")).await.ended(200).body;
    assert!(page.contains("ties out"), "{page}");
    // The page shows what the run counted at its end, which is what is counted anew.
    let shown = shop.tieout(&["runs", "show", run, "--json"], &[]).stdout;
    let mut shown: serde_json::Value = serde_json::from_str(shown.trim()).unwrap();
    for line in shown["totals"].as_array_mut().unwrap() {
        line.as_object_mut().unwrap().remove("amount_minor");
    }
    assert!(!shown["totals"].as_array().unwrap().is_empty(), "{shown}");
    assert_eq!(shown["notes"]["totals"], shown["totals"]);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = format!("/reports/{day}/{run}/{name}");
        assert!(page.contains(&format!("href=\"{path}\"")), "{path}: {page}");
        let answer = mara.get(&path).await.ended(200);
        assert_eq!(answer.body, std::fs::read_to_string(dir.join(&name)).unwrap(), "{name}");
        let how = answer.headers["content-disposition"].to_str().unwrap();
        assert!(how.starts_with("attachment"), "{how}");
    }
    for path in [
        format!("/reports/{day}/{run}/..%2f..%2f..%2ftieout.toml"),
        format!("/reports/..%2f{day}/{run}/manifest.json"),
        format!("/reports/{day}/{run}/none.csv"),
        format!("/reports/{day}/none/manifest.json"),
    ] {
        mara.get(&path).await.ended(404);
    }
    // Runs of one day are told apart by when they began.
    let list = mara.get("/reports").await.ended(200).body;
    assert!(list.contains(&format!(">{day}, run of <time datetime=\"20")), "{list}");
    let csv = mara.get("/cases.csv").await.ended(200).body;
    assert_eq!(csv, shop.tieout(&["cases", "export"], &[]).stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_cases_are_previewed_before_anything_is_done() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let csrf = mara.get("/cases").await.ended(200).csrf();
    let all = [("csrf", csrf.as_str()), ("which", "all"), ("act", "assign")];
    let preview = mara.post("/cases/preview", &all).await.ended(200);
    assert!(preview.body.contains("assign: 1 case"), "{}", preview.body);
    assert!(!preview.body.contains("1 cases"), "{}", preview.body);
    assert!(preview.body.contains("EUR (1)"), "{}", preview.body);
    let seen = preview.seen("assign");
    let owner = [("owner", "jonas")];
    mara.act_seen(&csrf, &seen, "assign", &owner).await.ended(303);
    let queue = mara.get("/cases?owner=jonas").await.ended(200).body;
    assert!(queue.contains("C-1"), "{queue}");
    let ticked = [("csrf", csrf.as_str()), ("which", "ticked"), ("act", "comment")];
    mara.post("/cases/preview", &ticked).await.ended(422);
    let approve = [("csrf", csrf.as_str()), ("which", "all"), ("act", "approve")];
    mara.post("/cases/preview", &approve).await.ended(422);
}

/// A hundred thousand open cases more, of another account.
const MANY_CASES: &str = "\
insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, account, \
currency, amount_minor, policy_version, opened_at, opened_run, last_seen_at, last_run) \
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) \
select 'row', 'charges', 'many_' || i, 'decline_unknown', 'a text', 'open', 'other', 'EUR', i, \
'p', '2026-11-19T10:00:00.000000Z', 'r' || i, '2026-11-19T10:00:00.000000Z', 'r' from n";

/// What is not counted to its end is told as that, and never as a number.
#[tokio::test(flavor = "multi_thread")]
async fn more_cases_than_are_counted_are_told_as_more() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let one = mara.get("/cases").await.ended(200).body;
    assert!(one.contains("1 open case, the oldest first"), "{one}");
    assert!(one.contains("All open cases by age"), "{one}");
    shop.sql(MANY_CASES).await;
    let all = mara.get("/cases").await.ended(200).body;
    assert!(all.contains("100,001 open cases, the oldest first"), "{all}");
    assert!(all.contains("The first 100,000 open cases by age"), "{all}");
    let some = mara.get("/cases?account=other").await.ended(200).body;
    assert!(some.contains("100,000 or more open cases that the filter means"), "{some}");
    assert!(some.contains("The sums are of the first 100,000 cases, by number."), "{some}");
    let few = mara.get("/cases?run=r7").await.ended(200).body;
    assert!(few.contains("1 open case that the filter means"), "{few}");
    assert!(few.contains("<dd>0.07</dd>"), "{few}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kick_asks_the_psp_again_and_the_history_tells_of_it() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let before = mara.get("/cases/C-1").await.ended(200);
    let (csrf, old) = (before.csrf(), before.seen("kick"));
    mara.act_seen("0", &old, "kick", &[("why", "from elsewhere")]).await.ended(403);
    mara.act_seen(&csrf, &old, "kick", &[]).await.ended(422);
    let answer = mara.act(1, "kick", &[("why", "look again")]).await.ended(303);
    assert_eq!(answer.location(), "/cases/C-1?done=kick");
    until("what came of it is told", async || {
        mara.get("/cases/C-1").await.body.contains(": needs a person (duplicate_capture)")
    })
    .await;
    let page = mara.get("/cases/C-1").await.body;
    let kicked = "kicked by mara on the review page (look again) with run ";
    assert!(page.contains(kicked), "{page}");
    assert!(page.contains("asked for a kick: look again"), "{page}");
    let shown = shop.tieout(&["cases", "show", "C-1"], &[]).stdout;
    assert!(shown.contains(kicked), "{shown}");
    let run = shop.tieout(&["runs", "show"], &[]).stdout;
    assert!(run.contains("1 case kicked by mara on the review page (C-1): look again"), "{run}");
    // What was seen before is not what the case shows now: a form that is sent twice kicks once.
    mara.act_seen(&csrf, &old, "kick", &[("why", "once more")]).await.ended(409);
    let all = [("csrf", csrf.as_str()), ("which", "all"), ("act", "kick")];
    let preview = mara.post("/cases/preview", &all).await.ended(200);
    assert!(preview.body.contains("kick: 1 case"), "{}", preview.body);
    assert!(preview.body.contains("The PSP is asked again"), "{}", preview.body);
    let verified = shop.tieout(&["audit", "verify"], &[]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

/// What was approved beside a PSP that is down says so on its case, and is kicked by nobody.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_waits_says_for_what_and_is_not_kicked() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let (mara, jonas) = (sign_in(&site, "mara").await, sign_in(&site, "jonas").await);
    propose(&mara).await;
    shop.psp.fault(FaultRule::always(Action::Reset));
    jonas.act(1, "approve", &[("why", "checked")]).await.ended(303);
    let said = "It was tried, and waits: ";
    until("the case says what it waits for", async || {
        mara.get("/cases/C-1").await.body.contains(said)
    })
    .await;
    let page = mara.get("/cases/C-1").await;
    assert!(page.body.contains("It stands; the next run carries it out."), "{}", page.body);
    let csrf = page.csrf();
    let all = [("csrf", csrf.as_str()), ("which", "all"), ("act", "kick")];
    let preview = mara.post("/cases/preview", &all).await.ended(422);
    let left = "what people approved is carried out by the next run";
    assert!(preview.body.contains(left), "{}", preview.body);
    let kicked = mara.act(1, "kick", &[("why", "look again")]).await.ended(422);
    assert!(kicked.body.contains("takes the approval back"), "{}", kicked.body);
    shop.psp.clear_faults();
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    assert_eq!(status(&shop).await, "paid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_carries_nothing_out_kicks_nothing() {
    let shop = shop_with("pay_1", "carry_out = false").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    for path in ["/cases", "/cases/C-1"] {
        let page = mara.get(path).await.ended(200).body;
        assert!(!page.contains("value=\"kick\""), "{path}: {page}");
    }
    let page = mara.get("/cases/C-1").await;
    let (csrf, seen) = (page.csrf(), page.seen("comment"));
    let answer = mara.act_seen(&csrf, &seen, "kick", &[("why", "x")]).await.ended(422);
    assert!(answer.body.contains("carries nothing out"), "{}", answer.body);
    let page = mara.get("/cases/C-1").await.body;
    assert!(!page.contains("asked for a kick"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_of_one_cause_are_made_parts_of_one() {
    let shop = shop_of(&["pay_1", "pay_2", "pay_3"], "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let csrf = mara.get("/cases").await.ended(200).csrf();
    let own = [("csrf", csrf.as_str()), ("act", "merge")];
    let chosen = [("which", "ticked"), ("case", "2"), ("case", "3")];
    let ticked = [&own[..], &chosen[..]].concat();
    let preview = mara.post("/cases/preview", &ticked).await.ended(200).body;
    assert!(preview.contains("merge: 2 cases"), "{preview}");
    let seen = preview.split("name=\"seen\" value=\"").skip(1);
    let seen: Vec<(&str, &str)> =
        seen.map(|rest| ("seen", rest.split('"').next().unwrap())).collect();
    assert_eq!(seen.len(), 2);
    let merge = async |into: &'static str| {
        let said = [("into", into), ("why", "one outage")];
        mara.post("/cases/act", &[&own[..], &seen[..], &said[..]].concat()).await
    };
    for wrong in ["C-99", "x", ""] {
        merge(wrong).await.ended(422);
    }
    assert_eq!(merge("C-1").await.ended(303).location(), "/cases?done=merge&many=2");
    let whole = mara.get("/cases?part_of=C-1").await.ended(200).body;
    for name in ["C-1", "C-2", "C-3"] {
        assert!(whole.contains(&format!(">{name}</a>")), "{name}: {whole}");
    }
    let part = mara.get("/cases/C-2").await.ended(200);
    assert!(part.body.contains("Part of C-1"), "{}", part.body);
    assert!(part.body.contains("merged: into C-1: one outage"), "{}", part.body);
    // A part has no parts, and what has parts is none.
    let more = [("into", "C-3"), ("why", "x")];
    mara.act_seen(&csrf, &part.seen("comment"), "merge", &more).await.ended(422);
    let lead = mara.get("/cases/C-1").await.ended(200);
    assert!(!lead.body.contains("value=\"merge\""), "{}", lead.body);
    let answer = mara.act(2, "split", &[("why", "another one")]).await.ended(303);
    assert_eq!(answer.location(), "/cases/C-2?done=split");
    let alone = mara.get("/cases/C-2").await.ended(200).body;
    assert!(!alone.contains("Part of C-1"), "{alone}");
    // As one case it is done on its own page.
    let back = [("into", "C-1"), ("why", "after all")];
    mara.act(2, "merge", &back).await.ended(303);
    assert!(mara.get("/cases/C-2").await.body.contains("Part of C-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_is_tried_so_often_and_no_more() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mut browser = Browser::new(&site);
    for _ in 0..10 {
        browser.sign_in("mara", "guessed").await.ended(401);
    }
    // Even the right one has to wait now, and another name does not.
    let answer = browser.sign_in("mara", &token_of("mara")).await.ended(429);
    assert_eq!(answer.headers.get("retry-after").unwrap(), "60");
    browser.sign_in("jonas", &token_of("jonas")).await.ended(303);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_served_to_this_machine_alone_unless_told() {
    let shop = shop_with("pay_1", "").await;
    for (words, code, part) in [
        (&["serve", "--listen", "0.0.0.0:0"][..], 2, "other machines reach"),
        (&["serve", "--listen", "0.0.0.0:0", "--beyond-loopback"][..], 10, "unencrypted"),
        (&["serve", "--listen", "nowhere"][..], 2, "expected an address"),
    ] {
        let ended = shop.tieout(words, &[]);
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
    }
    let path = shop.path().join("tieout.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let (without, _people) = config.split_once("[[web.person]]").unwrap();
    std::fs::write(&path, without).unwrap();
    let ended = shop.tieout(&["serve", "--listen", "127.0.0.1:0"], &[]);
    assert_eq!(ended.code, Some(10), "{}", ended.stderr);
    assert!(ended.stderr.contains("nobody may sign in"), "{}", ended.stderr);
}

/// Who could sign in as two people would be maker and checker of one decision.
#[tokio::test(flavor = "multi_thread")]
async fn one_token_is_one_persons() {
    let shop = shop_with("pay_1", "").await;
    let path = shop.path().join("tieout.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let (mara, jonas) = (hash_of(&token_of("mara")), hash_of(&token_of("jonas")));
    std::fs::write(&path, config.replace(&jonas, &mara.to_uppercase())).unwrap();
    for words in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let ended = shop.tieout(words, &[]);
        assert_eq!(ended.code, Some(10), "{words:?}: {}", ended.stderr);
        let line = config[..config.find(&jonas).unwrap()].lines().count();
        for part in ["jonas and mara have one token", &format!("tieout.toml:{line}:")] {
            assert!(ended.stderr.contains(part), "{words:?}: {part}: {}", ended.stderr);
        }
    }
    // What a file holds nobody knows before it is read.
    std::fs::write(shop.path().join("token"), &mara).unwrap();
    let from_file = config.replace(&format!("token_sha256 = '{jonas}'"), "key_file = 'token'");
    std::fs::write(&path, from_file).unwrap();
    let ended = shop.tieout(&["serve", "--listen", "127.0.0.1:0"], &[]);
    assert_eq!(ended.code, Some(10), "{}", ended.stderr);
    assert!(ended.stderr.contains("jonas and mara have one token"), "{}", ended.stderr);
}

/// What the page says to type is typed as it stands there.
#[tokio::test(flavor = "multi_thread")]
async fn a_suggested_command_is_one_that_a_shell_takes() {
    let shop = shop_with("pay_1", "").await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let sql = r#"update tieout_cases set reason = 'amount_mismatch',
        subject = '["Zoë''s \"Shop\"","pay_136"]'"#;
    shop.sql(sql).await;
    let page = mara.get("/cases/C-1").await.ended(200).body;
    let command = r#"tieout run --id '["Zoë'\''s \"Shop\"","pay_136"]'"#;
    let shown = command.replace('\'', "&#39;").replace('"', "&quot;");
    assert!(page.contains(&shown), "{shown}: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_forms_come_from_what_browsers_see() {
    let shop = shop_with("pay_1", "origin = 'https://tieout.example.com'").await;
    let site = serve(&shop);
    assert_eq!(site.url, "https://tieout.example.com");
    let mut mara = Browser::new(&site);
    let token = token_of("mara");
    let login = [("name", "mara"), ("secret", token.as_str())];
    let here = format!("http://{}", site.address);
    mara.post_from(Some(&here), "/login", &login).await.ended(403);
    let answer = mara.sign_in("mara", &token_of("mara")).await.ended(303);
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-tieout="), "{cookie}");
    assert!(cookie.contains("; Secure"), "{cookie}");
    mara.get_with("/cases", "host", "tieout.example.com").await.ended(200);
    mara.get_with("/cases", "host", "other.example.com").await.ended(421);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_made_and_only_its_hash_is_for_keeping() {
    let shop = Shop::open().await;
    let made = shop.tieout(&["serve", "--new-token", "mara", "--json"], &[]);
    let event: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
    let token = event["token"].as_str().unwrap();
    assert_eq!(event["token_sha256"], hash_of(token));
    assert_eq!(token.len(), 64);
    let other = shop.tieout(&["serve", "--new-token", "mara"], &[]);
    assert!(other.stdout.contains("[[web.person]]\nname = \"mara\"\n"), "{}", other.stdout);
    assert!(!other.stdout.contains(token));
    assert_eq!(shop.tieout(&["serve", "--new-token", "a\"b"], &[]).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_cleanly() {
    let shop = shop_with("pay_1", "").await;
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let mut site = serve(&shop);
        let mara = sign_in(&site, "mara").await;
        mara.get("/cases").await.ended(200);
        // The browser keeps its connection open.
        crate::run::shop::signal(site.pid(), name).await;
        assert_eq!(site.ended(), Some(code));
    }
}
