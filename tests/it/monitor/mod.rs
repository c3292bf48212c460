//! Monitoring from outside: what receivers get of a run, and what the run gets of receivers,
//! which is nothing.

mod alerts;
mod given_up;
mod harmless;
mod logs;
mod metrics;
mod shipped;

use tieout::sandbox::situations::Situation;

use crate::cli_run::{CAPTURED, Shop};
use crate::support::receiver::{Answer, Receiver};

/// Two captures under one tag: a case, and a condition.
const TWICE: &[Situation] = &[Situation::Succeeded, Situation::Succeeded];

const ID: &str = "01990000-0000-7000-8000-000000000007";

/// Adds lines to the shop's configuration.
fn configure(shop: &Shop, more: &str) {
    let path = shop.path().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{text}\n{more}")).unwrap();
}

async fn receiver() -> Receiver {
    Receiver::start(Answer::Status(200)).await
}

fn checked(receiver: &Receiver) -> String {
    format!("[monitoring]\nhealthcheck = {{ url = \"{}/check\" }}\n", receiver.url())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_pings_its_beginning_and_its_end_with_its_id() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED), ("pay_2", 500, TWICE)]).await;
    let receiver = receiver().await;
    configure(&shop, &checked(&receiver));
    let ended = shop.tieout(&["run", "--run-id", ID], &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(receiver.paths(), [format!("/check/start?rid={ID}"), format!("/check/0?rid={ID}")]);
    let body = &receiver.sent("/check/0")[0].body;
    for says in ["exit 0 (ok)", "succeeded: 1", "reason duplicate_capture: 1", "cases: 1 new"] {
        assert!(body.contains(says), "{says}: {body}");
    }
    for never in ["pay_1", "pay_2", "1999", "19.99", "EUR", "pi_", "sk_test"] {
        assert!(!body.contains(never), "{never}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_the_last_step_of_the_ping() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let receiver = receiver().await;
    configure(&shop, &checked(&receiver));
    shop.psp.scenario("outage").unwrap();
    assert_eq!(shop.tieout(&["run", "--run-id", ID], &[]).code, Some(3));
    assert_eq!(receiver.paths().last().unwrap(), &format!("/check/3?rid={ID}"));
    // A run that could not even begin is told of as well.
    let fresh = Shop::open().await;
    configure(&fresh, &checked(&receiver));
    assert_eq!(fresh.tieout(&["run", "--run-id", ID], &[]).code, Some(15));
    assert_eq!(receiver.paths().last().unwrap(), &format!("/check/15?rid={ID}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_looks_at_is_nobodys_schedule() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let receiver = receiver().await;
    configure(&shop, &checked(&receiver));
    assert_eq!(shop.tieout(&["run", "--dry-run"], &[]).code, Some(0));
    assert_eq!(shop.tieout(&["run", "--id", "pay_1"], &[]).code, Some(0));
    assert_eq!(receiver.paths(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_may_be_named_and_holds_the_scope() {
    let shop = Shop::with(&[]).await;
    let receiver = receiver().await;
    configure(&shop, "[monitoring]\nhealthcheck = { url_env = \"PING\" }\n");
    let url = format!("{}/x/{{scope}}", receiver.url());
    let words = ["run", "--run-id", ID, "--scope", "nightly"];
    assert_eq!(shop.tieout(&words, &[("PING", &url)]).code, Some(0));
    assert_eq!(receiver.paths().last().unwrap(), &format!("/x/nightly/0?rid={ID}"));
    let shown = shop.tieout(&["config", "show"], &[]).stdout;
    assert!(!shown.contains(receiver.url()), "{shown}");
    // Nobody told where to: the run goes on, and says so where it is asked.
    let ended = shop.tieout(&["run"], &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let run = shop.tieout(&["runs", "show"], &[]).stdout;
    assert!(run.contains("monitoring: healthcheck: the environment variable PING"), "{run}");
}
