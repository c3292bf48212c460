//! Receivers that hang, refuse, fail or lead astray: the run ends as it would have.

use super::{ID, TWICE, configure};
use crate::cli_run::{CAPTURED, Shop, signal, until_asked};
use crate::support::ports::Refusing;
use crate::support::receiver::{Answer, Receiver};

/// Every receiver there is, at one address.
fn everything(url: &str, timeout: &str) -> String {
    format!(
        r#"
[monitoring]
timeout = "{timeout}"
healthcheck = {{ url = "{url}/check" }}
prometheus = {{ textfile = "no/such/folder/tieout.prom", push = "{url}/push" }}
[[monitoring.alert]]
name = "hook"
kind = "webhook"
url = "{url}/hook"
key_env = "SHOP_KEY"
[[monitoring.alert]]
name = "chat"
kind = "slack"
url = "{url}/chat"
[[monitoring.alert]]
name = "pager"
kind = "pagerduty"
url = "{url}/pager"
key_env = "SHOP_KEY"
[[monitoring.alert]]
name = "mail"
kind = "sendmail"
command = ["false"]
to = ["ops@example.com"]
"#
    )
}

const RECEIVERS: [&str; 6] = [
    "monitoring: healthcheck: ",
    "monitoring: prometheus push: ",
    "monitoring: prometheus textfile ",
    "monitoring: alert hook: ",
    "monitoring: alert chat: ",
    "monitoring: alert pager: ",
];

async fn shop_with(url: &str, timeout: &str) -> Shop {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED), ("pay_2", 500, TWICE)]).await;
    configure(&shop, &everything(url, timeout));
    shop
}

/// The run is what it would be without: exit, streams, rows; and its notes say what was not told.
async fn ends_as_ever(shop: &Shop, says: &str) {
    let ended = shop.tieout(&["run", "--run-id", ID], &[]);
    let streams = (ended.stdout.as_str(), ended.stderr.as_str());
    assert_eq!((ended.code, streams), (Some(0), ("", "")));
    let want = [("pay_1", "paid"), ("pay_2", "processing")];
    assert_eq!(shop.statuses().await, want.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let run = shop.tieout(&["runs", "show"], &[]).stdout;
    assert!(run.contains("· complete · exit 0 (ok)"), "{run}");
    for receiver in RECEIVERS {
        assert!(run.contains(receiver), "{receiver}: {run}");
    }
    assert!(run.contains("monitoring: alert mail: `false` failed"), "{run}");
    assert_eq!(run.matches(says).count(), 5, "{says}: {run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_fails_changes_nothing() {
    let receiver = Receiver::start(Answer::Status(500)).await;
    let shop = shop_with(receiver.url(), "5s").await;
    ends_as_ever(&shop, ": answered 500").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_leads_elsewhere_is_not_followed() {
    let receiver = Receiver::start(Answer::Redirect).await;
    let shop = shop_with(receiver.url(), "5s").await;
    ends_as_ever(&shop, ": answered 302; redirects are not followed").await;
    assert!(receiver.sent("/elsewhere").is_empty(), "{:?}", receiver.paths());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_not_there_changes_nothing() {
    let gone = Refusing::new();
    let shop = shop_with(&format!("http://127.0.0.1:{}", gone.port()), "5s").await;
    ends_as_ever(&shop, ": cannot be reached").await;
}

/// None of them is ever answered: the process goes away by itself, and hangs up on all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_is_hung_up_on() {
    let receiver = Receiver::start(Answer::Hang).await;
    let shop = shop_with(receiver.url(), "1s").await;
    ends_as_ever(&shop, ": no answer in time").await;
    let asked = receiver.paths().len();
    assert!(asked >= 5, "{:?}", receiver.paths());
    for _try in 0..100 {
        if receiver.hung_up() == asked {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{asked} were asked, and {} hung up on", receiver.hung_up());
}

/// What is decided stands in the database, and is said, before anyone outside is asked.
#[tokio::test(flavor = "multi_thread")]
async fn receivers_are_told_after_the_runs_end() {
    let receiver = Receiver::start(Answer::Hang).await;
    let shop = shop_with(receiver.url(), "30s").await;
    let mut child = shop.begin(&["run", "--run-id", ID]);
    receiver.until("/hook", 1).await;
    let run = shop.tieout(&["runs", "show"], &[]).stdout;
    assert!(run.contains("· complete · exit 0 (ok)"), "{run}");
    // Asked to end, it does not wait for receivers that have half a minute left, and its end is
    // the run's.
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let run = shop.tieout(&["runs", "show"], &[]).stdout;
    let given_up = "given up: the process was asked to end";
    assert_eq!(run.matches(given_up).count(), 5, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_still_ends_a_run_cleanly() {
    let receiver = Receiver::start(Answer::Hang).await;
    let shop = shop_with(receiver.url(), "30s").await;
    shop.psp.scenario("silent").unwrap();
    let path = shop.path().join("tieout.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, config.replace("deadline = \"2s\"", "deadline = \"60s\"")).unwrap();
    let mut child = shop.begin(&["run", "--run-id", ID]);
    until_asked(&shop).await;
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let runs = shop.tieout(&["runs", "list"], &[]).stdout;
    assert!(runs.contains("interrupted"), "{runs}");
    let pings = [format!("/check/start?rid={ID}"), format!("/check/143?rid={ID}")];
    assert_eq!(receiver.paths(), pings, "a signal leaves time for the ping alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_told_is_a_warning_where_one_is_asked_for() {
    let receiver = Receiver::start(Answer::Status(500)).await;
    let shop = shop_with(receiver.url(), "5s").await;
    let ended = shop.tieout(&["run", "-v"], &[]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("Monitoring was not told"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(receiver.url()), "an address is a secret: {}", ended.stderr);
}
