//! Alerts as receivers get them: each condition once, its end once, signed where it is asked for.

use serde_json::Value;
use tieout::monitor::alerts::signature;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use super::{TWICE, configure, receiver};
use crate::cli_run::{CAPTURED, Shop};
use crate::support::receiver::{Answer, Receiver};

/// As if runs had closed them.
const CLOSE_CASES: &str = "drop trigger if exists tieout_cases_close; \
                           update tieout_cases set state = 'closed', resolution = 'refunded', \
                           closed_at = '2026-11-19T12:00:00.000000Z'";

/// What waits is due again.
const DUE: &str = "update tieout_checks set next_check_at = '2020-01-01T00:00:00.000000Z' \
                   where next_check_at is not null";

async fn shop_with(kind: &str, more: &str) -> (Shop, Receiver) {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED), ("pay_2", 500, TWICE)]).await;
    let receiver = receiver().await;
    let url = receiver.url();
    let alert = format!(
        "[monitoring]\nscope = \"shop\"\n[[monitoring.alert]]\nname = \"ops\"\nkind = \"{kind}\"\n\
         url = \"{url}/ops\"\n{more}"
    );
    configure(&shop, &alert);
    (shop, receiver)
}

fn run(shop: &Shop, code: i32) {
    let ended = shop.tieout(&["run"], &[]);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
}

fn bodies(receiver: &Receiver) -> Vec<Value> {
    receiver.sent("/ops").iter().map(|sent| serde_json::from_str(&sent.body).unwrap()).collect()
}

fn conditions(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["condition"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_is_told_once_and_its_end_once() {
    let (shop, receiver) = shop_with("webhook", "key_env = \"SHOP_KEY\"\n").await;
    run(&shop, 0);
    run(&shop, 0);
    let first = bodies(&receiver);
    assert_eq!(first.len(), 1, "a second run says nothing new: {first:?}");
    assert_eq!(first[0]["schema"], "tieout-alert/1");
    assert_eq!(first[0]["scope"], "shop");
    assert_eq!(conditions(&first[0]["raised"]), ["duplicates"]);
    assert_eq!(first[0]["raised"][0]["class"], "attention");
    assert!(conditions(&first[0]["resolved"]).is_empty());
    for never in ["pay_2", "pi_", "5.00", "sk_test"] {
        assert!(!receiver.sent("/ops")[0].body.contains(never), "{never}: {first:?}");
    }
    shop.sql(CLOSE_CASES).await;
    run(&shop, 0);
    run(&shop, 0);
    let all = bodies(&receiver);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(conditions(&all[1]["resolved"]), ["duplicates"]);
    assert_eq!(all[1]["resolved"][0]["since"], first[0]["raised"][0]["since"]);
}

/// A case is the database's: the nightly run tells it no second time, and may tell its end.
#[tokio::test(flavor = "multi_thread")]
async fn two_schedules_tell_what_is_of_the_database_once() {
    let (shop, receiver) = shop_with("webhook", "key_env = \"SHOP_KEY\"\n").await;
    let daily = |code| {
        let ended = shop.tieout(&["run", "--scope", "daily"], &[]);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    };
    // What is of runs is each schedule's own: one failed run of each is not two in a row.
    shop.psp.scenario("outage").unwrap();
    run(&shop, 3);
    shop.sql(DUE).await;
    daily(3);
    assert!(bodies(&receiver).is_empty(), "{:?}", bodies(&receiver));
    shop.psp.clear_faults();
    shop.psp.behave(|behaviour| *behaviour = tieout::sandbox::settings::Behaviour::default());
    shop.sql(DUE).await;
    run(&shop, 0);
    daily(0);
    shop.sql(CLOSE_CASES).await;
    daily(0);
    run(&shop, 0);
    let all = bodies(&receiver);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!((&all[0]["scope"], &all[1]["scope"]), (&"shop".into(), &"daily".into()));
    assert_eq!(conditions(&all[0]["raised"]), ["duplicates"]);
    assert_eq!(conditions(&all[1]["resolved"]), ["duplicates"]);
    assert_eq!(all[1]["resolved"][0]["scope"], "shop", "by which it was raised");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_signed_over_its_time_and_body() {
    let (shop, receiver) = shop_with("webhook", "key_env = \"SHOP_KEY\"\n").await;
    run(&shop, 0);
    let sent = &receiver.sent("/ops")[0];
    let header = sent.headers["tieout-signature"].to_str().unwrap();
    let at = header.split_once("t=").unwrap().1.split_once(',').unwrap().0;
    assert_eq!(header, signature("sk_test_shop", at.parse().unwrap(), &sent.body).unwrap());
    assert_ne!(header, signature("another", at.parse().unwrap(), &sent.body).unwrap());
    assert_eq!(sent.headers["content-type"], "application/json");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_did_not_take_is_told_by_the_next_run() {
    let (shop, receiver) = shop_with("webhook", "key_env = \"SHOP_KEY\"\n").await;
    receiver.answer(Answer::Status(503));
    run(&shop, 0);
    receiver.answer(Answer::Status(200));
    run(&shop, 0);
    run(&shop, 0);
    let all = bodies(&receiver);
    assert_eq!(all.len(), 2, "once in vain, once taken: {all:?}");
    assert_eq!(all[0]["raised"], all[1]["raised"]);
    assert_ne!(all[0]["run_id"], all[1]["run_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_fail_in_a_row_are_one_digest() {
    let (shop, receiver) = shop_with("slack", "min_class = \"partial\"\n").await;
    shop.psp.scenario("outage").unwrap();
    run(&shop, 3);
    assert!(receiver.sent("/ops").is_empty(), "one failed run is no condition");
    shop.sql(DUE).await;
    run(&shop, 3);
    shop.sql(DUE).await;
    run(&shop, 3);
    let all = bodies(&receiver);
    assert_eq!(all.len(), 1, "{all:?}");
    let text = all[0]["text"].as_str().unwrap();
    assert!(text.starts_with("tieout shop: 1 raised\nRAISED repeated (partial): 2 runs"), "{text}");
    shop.psp.clear_faults();
    shop.psp.behave(|behaviour| *behaviour = tieout::sandbox::settings::Behaviour::default());
    shop.sql(DUE).await;
    run(&shop, 0);
    let text = bodies(&receiver)[1]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("RESOLVED repeated: it held since "), "{text}");
    assert!(!text.contains("duplicates"), "weaker than this receiver wants: {text}");
}

/// Every row backs off, and a run that has nothing due ends well: the PSP is as silent as before.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_nothing_due_is_no_all_clear_in_an_outage() {
    let (shop, receiver) = shop_with("slack", "min_class = \"partial\"\n").await;
    let path = shop.path().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let check = format!("[monitoring]\nhealthcheck = {{ url = \"{}/check\" }}", receiver.url());
    std::fs::write(&path, text.replace("[monitoring]", &check)).unwrap();
    shop.psp.scenario("outage").unwrap();
    for _run in 0..2 {
        shop.sql(DUE).await;
        run(&shop, 3);
    }
    assert_eq!(bodies(&receiver).len(), 1);
    run(&shop, 0);
    assert_eq!(bodies(&receiver).len(), 1, "nothing was due: {:?}", bodies(&receiver));
    let pings: Vec<String> = receiver.paths();
    assert!(pings.iter().rfind(|path| path.contains("/check/")).unwrap().contains("/check/3?"));
    let said = &receiver.sent("/check/3").last().unwrap().body.clone();
    assert!(said.contains("stripe_test: gave no answer when it was asked last"), "{said}");
    shop.psp.clear_faults();
    shop.psp.behave(|behaviour| *behaviour = tieout::sandbox::settings::Behaviour::default());
    shop.sql(DUE).await;
    run(&shop, 0);
    let text = bodies(&receiver)[1]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("RESOLVED repeated: it held since "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pagerduty_joins_a_beginning_to_its_end() {
    let (shop, receiver) = shop_with("pagerduty", "key_env = \"SHOP_KEY\"\n").await;
    receiver.answer(Answer::Status(202));
    run(&shop, 0);
    shop.sql(CLOSE_CASES).await;
    run(&shop, 0);
    let all = bodies(&receiver);
    let read: Vec<(&str, &str)> = all
        .iter()
        .map(|b| (b["event_action"].as_str().unwrap(), b["dedup_key"].as_str().unwrap()))
        .collect();
    let key = "tieout/shop/duplicates";
    assert_eq!(read, [("trigger", key), ("resolve", key)]);
    assert_eq!(all[0]["payload"]["severity"], "warning");
    assert_eq!(all[0]["routing_key"], "sk_test_shop");
}

/// The row had failed, and is paid all the same: somebody may charge it again any minute.
#[tokio::test(flavor = "multi_thread")]
async fn money_after_a_hand_back_is_a_condition_of_its_own() {
    let only = "key_env = \"SHOP_KEY\"\nconditions = [\"late_contradiction\"]\n";
    let (shop, receiver) = shop_with("pagerduty", only).await;
    receiver.answer(Answer::Status(202));
    shop.sql("update charges set status = 'failed' where id = 'pay_1'").await;
    let daily = shop.tieout(&["run", "--all", "--since", "1d"], &[]);
    assert_eq!(daily.code, Some(0), "{}", daily.stderr);
    run(&shop, 0);
    shop.sql(CLOSE_CASES).await;
    run(&shop, 0);
    let all = bodies(&receiver);
    let read: Vec<(&str, &str)> = all
        .iter()
        .map(|b| (b["event_action"].as_str().unwrap(), b["dedup_key"].as_str().unwrap()))
        .collect();
    let key = "tieout/shop/late_contradiction";
    assert_eq!(read, [("trigger", key), ("resolve", key)]);
    assert_eq!(all[0]["payload"]["severity"], "warning", "as of duplicates");
    assert!(all[0]["payload"].to_string().contains("1 case of money found for a row"), "{all:?}");
}

/// The first case stays open until two people have decided it, and nobody would hear of the next.
#[tokio::test(flavor = "multi_thread")]
async fn another_case_beside_an_open_one_is_told_with_the_new_count() {
    let only = "key_env = \"SHOP_KEY\"\nconditions = [\"late_contradiction\"]\n";
    let (shop, receiver) = shop_with("pagerduty", only).await;
    receiver.answer(Answer::Status(202));
    let daily = |told: usize| {
        let ran = shop.tieout(&["run", "--all", "--since", "1d"], &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(bodies(&receiver).len(), told, "{:?}", bodies(&receiver));
    };
    shop.sql("update charges set status = 'failed' where id = 'pay_1'").await;
    daily(1);
    daily(1);
    let at = "strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 hours')";
    let values = format!("('pay_3', 700, 'EUR', 'failed', null, {at}, {at})");
    shop.sql(&format!("insert into charges values {values}")).await;
    let paid = Seed::captured("tieout_id", "pay_3", 700, "eur").standing(Situation::Succeeded);
    shop.psp.seed([paid.created_at(shop.psp.now() - 7_200)]).unwrap();
    daily(2);
    daily(2);
    shop.sql(CLOSE_CASES).await;
    run(&shop, 0);
    let all = bodies(&receiver);
    let read: Vec<(&str, &str)> = all
        .iter()
        .map(|b| (b["event_action"].as_str().unwrap(), b["dedup_key"].as_str().unwrap()))
        .collect();
    let key = "tieout/shop/late_contradiction";
    assert_eq!(read, [("trigger", key), ("trigger", key), ("resolve", key)]);
    let summary = all[1]["payload"]["summary"].as_str().unwrap();
    assert!(summary.starts_with("2 cases of money found for a row"), "{summary}");
    assert!(summary.contains(", the newest: C-"), "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_handed_to_the_command() {
    let shop = Shop::with(&[("pay_2", 500, TWICE)]).await;
    let mail = shop.path().join("mail");
    let alert = format!(
        "[[monitoring.alert]]\nname = \"ops\"\nkind = \"sendmail\"\n\
         command = [\"/usr/bin/tee\", \"{}\"]\nto = [\"ops@example.com\"]\n\
         conditions = [\"duplicates\"]\n",
        mail.display()
    );
    configure(&shop, &alert);
    run(&shop, 0);
    let text = std::fs::read_to_string(mail).unwrap();
    let (head, body) = text.split_once("\n\n").unwrap();
    assert!(head.contains("To: ops@example.com\nSubject: tieout default: 1 raised\n"), "{head}");
    assert!(body.starts_with("RAISED duplicates (attention): 1 case of money taken"), "{body}");
}
