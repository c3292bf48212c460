//! The sinks of this machine and of the database: a file, a program, NOTIFY; and no sink at all.

use std::os::unix::fs::PermissionsExt as _;

use sqlx::postgres::PgListener;

use super::{BY_HAND, deliver, event_ids, fresh, ids, lines_of, of_sink, sold};
use crate::run::shop::{Engine, Payment, Shop, Words, on_both_databases};
use crate::support::raw::Raw;

on_both_databases!(
    without_a_sink_nothing_is_staged,
    an_outbox_stages_without_a_sink,
    a_sink_gets_only_what_it_wants,
    two_databases_have_no_event_in_common,
);

async fn without_a_sink_nothing_is_staged(engine: Engine) {
    let words = Words { sinks: String::new(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    let paid = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&paid)).await;
    shop.plant(vec![paid.captured()]);
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.count("tieout_outbox").await, 0);
    let ran = shop.tieout(&["deliver"]).await.ended(10);
    assert!(ran.stderr.contains("no [[sink]] is configured"), "{}", ran.stderr);
}

/// The application reads it there; a sink that comes later gets what comes later.
async fn an_outbox_stages_without_a_sink(engine: Engine) {
    let table = "channel = \"outbox\"\n".to_owned();
    let words = Words { sinks: String::new(), table, ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    let paid = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&paid)).await;
    shop.plant(vec![paid.captured()]);
    shop.run().await.ended(0);
    assert_eq!(shop.count("tieout_outbox where kind = 'transaction.succeeded'").await, 1);
    shop.run().await.ended(0);
    assert_eq!(shop.count("tieout_outbox where delivered_at is null").await, 0);
    assert_eq!(shop.count("tieout_deliveries").await, 0);
}

/// Both have the same rows; a receiver of both that keeps the ids must lose nothing.
async fn two_databases_have_no_event_in_common(engine: Engine) {
    let file = "[[sink]]\nname = \"file\"\nkind = \"file\"\npath = \"file.ndjson\"\n";
    let (one, other) = (sold(engine, file, 2).await, sold(engine, file, 2).await);
    let keys = "select key from tieout_outbox order by key";
    assert_eq!(one.texts(keys).await, other.texts(keys).await);
    let others = event_ids(&other).await;
    assert!(event_ids(&one).await.iter().all(|id| !others.contains(id)), "{others:?}");
}

/// Each saw the other's delivery as still open, and the event never ended.
#[tokio::test]
async fn the_last_two_sinks_of_an_event_end_it_at_the_same_time() {
    let file =
        |name: &str| format!("[[sink]]\nname = \"{name}\"\nkind = \"file\"\npath = \"{name}\"\n");
    let sinks = file("one") + &file("two") + &file("none") + "events = [\"transaction.failed\"]\n";
    let shop = sold(Engine::Postgres, &sinks, 1).await;
    deliver(&shop, &["--sink", "none"]).await.ended(0);
    let Raw::Postgres(pool) = &shop.raw else { panic!("PostgreSQL's alone") };
    let mut two = pool.begin().await.unwrap();
    let took = "update tieout_deliveries set state = 'delivered', ended_at = now() \
         where sink = 'two'";
    sqlx::query(took).execute(&mut *two).await.unwrap();
    sqlx::query("select from tieout_outbox for update").execute(&mut *two).await.unwrap();
    let second = async {
        shop.raw.until_a_lock_is_waited_for().await;
        two.commit().await.unwrap();
    };
    let (one, ()) = tokio::join!(deliver(&shop, &["--sink", "one"]), second);
    assert_eq!(of_sink(&one.ended(0), "one")["delivered"], 1);
    assert_eq!(shop.count("tieout_outbox where delivered_at is null").await, 0);
}

async fn a_sink_gets_only_what_it_wants(engine: Engine) {
    let file = |name: &str, more: &str| {
        format!("[[sink]]\nname = \"{name}\"\nkind = \"file\"\npath = \"{name}.ndjson\"\n{more}\n")
    };
    let sinks = file("all", "")
        + &file("paid", "events = [\"transaction.succeeded\"]")
        + &file("other", "events = [\"transaction.failed\"]")
        + &file("payments", "tables = [\"payments\"]");
    let shop = sold(engine, &sinks, 3).await;
    deliver(&shop, &[]).await.ended(0);
    let all = event_ids(&shop).await;
    for name in ["all", "paid", "payments"] {
        let lines = lines_of(&shop.folder().join(format!("{name}.ndjson")));
        assert_eq!(ids(&lines), all, "{name}");
    }
    assert!(!shop.folder().join("other.ndjson").exists(), "it had nothing to send");
    assert_eq!(shop.count("tieout_outbox where delivered_at is null").await, 0);
    let mode = std::fs::metadata(shop.folder().join("all.ndjson")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    shop.check(false).await;
}

const PROGRAM: &str = "#!/bin/sh
read -r event
case $event in
    *'\"key\":\"1\"'*) exit 65 ;;
    *'\"key\":\"2\"'*) [ -e again ] || { touch again; exit 1; } ;;
esac
printf '%s\\n' \"$event\" >>taken.ndjson
[ \"$TIEOUT_EVENT_TYPE\" = transaction.succeeded ]
";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_says_by_its_exit_what_it_took() {
    let sink = "[[sink]]\nname = \"own\"\nkind = \"command\"\ncommand = [\"./take\"]\n";
    let shop = sold(Engine::Sqlite, sink, 4).await;
    let path = shop.folder().join("take");
    // Not there yet: nothing is lost.
    let ran = deliver(&shop, &[]).await.ended(10);
    assert_eq!(of_sink(&ran, "own")["waiting"], 4);
    std::fs::write(&path, PROGRAM).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = deliver(&shop, &["--now"]).await.ended(3);
    let note = of_sink(&ran, "own");
    assert_eq!((&note["delivered"], &note["put_off"]), (&2.into(), &1.into()));
    assert_eq!((&note["died"], &note["dead"]), (&1.into(), &1.into()));
    let past = crate::run::shop::at_text(crate::run::shop::tieout_now() - 1);
    shop.raw.execute(&format!("update tieout_deliveries set next_attempt_at = '{past}'")).await;
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "own")["delivered"], 1);
    assert_eq!(lines_of(&shop.folder().join("taken.ndjson")).len(), 3);
}

/// A script that waits for a worker of its own: both are ended, before another try calls a second.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_takes_too_long_leaves_nothing_behind() {
    let sink = "[[sink]]\nname = \"own\"\nkind = \"command\"\ncommand = [\"./hang\"]\n\
                timeout = \"3s\"\n";
    let shop = sold(Engine::Sqlite, sink, 1).await;
    let path = shop.folder().join("hang");
    std::fs::write(&path, "#!/bin/sh\nsleep 300 &\necho $! >worker\nwait\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "own")["put_off"], 1);
    let id = std::fs::read_to_string(shop.folder().join("worker")).unwrap();
    // Gone, or a zombie that nobody waited for yet.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "it goes on: {stat}");
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_hear_of_each_event() {
    let channel = fresh("tieout");
    let sink = format!("[[sink]]\nname = \"bell\"\nkind = \"notify\"\nchannel = \"{channel}\"\n");
    let shop = sold(Engine::Postgres, &sink, 3).await;
    let mut listener = PgListener::connect(shop.place()).await.unwrap();
    listener.listen(&channel).await.unwrap();
    deliver(&shop, &[]).await.ended(0);
    let mut heard = Vec::new();
    for _each in 0..3 {
        let told = listener.recv().await.unwrap();
        heard.push(serde_json::from_str(told.payload()).unwrap());
    }
    assert_eq!(ids(&heard), event_ids(&shop).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_has_no_bell() {
    let sink = "[[sink]]\nname = \"bell\"\nkind = \"notify\"\nchannel = \"c\"\n";
    let words = Words { sinks: format!("{sink}{BY_HAND}"), ..Words::default() };
    let shop = Shop::open_bare(Engine::Sqlite, words).await;
    let ran = shop.tieout(&["config", "check"]).await.ended(10);
    assert!(ran.stderr.contains("[[sink]] bell: `kind`: SQLite has no NOTIFY"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_left_the_configuration_keeps_what_waits() {
    let sink = "[[sink]]\nname = \"old\"\nkind = \"file\"\npath = \"/nowhere/at/all\"\n";
    let mut shop = sold(Engine::Sqlite, sink, 2).await;
    deliver(&shop, &[]).await.ended(3);
    shop.words.sinks =
        format!("[[sink]]\nname = \"new\"\nkind = \"file\"\npath = \"new.ndjson\"\n{BY_HAND}");
    shop.write_words();
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "old")["state"], "unknown");
    let doctor = shop.tieout(&["doctor", "--json"]).await;
    assert!(doctor.stdout.contains("sink_unknown"), "{}", doctor.stdout);
    let words = ["purge", "--sink", "old", "--waiting", "--reason", "gone"];
    let ran = deliver(&shop, &words).await.ended(0);
    assert_eq!(ran.of_type("letters")[0]["given_up"], 2);
    deliver(&shop, &[]).await.ended(0);
    assert_eq!(shop.count("tieout_outbox where suppressed_at is null").await, 0);
}
