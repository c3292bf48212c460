//! Dead letters: they wait for a person, hold back their rows' later events, and leave by retry,
//! purge or merge, each recorded.

use serde_json::Value;

use super::hook::hook_sink;
use super::{deliver, of_sink, sold, stage};
use crate::run::shop::{Engine, Ran, Shop, on_both_databases};
use crate::support::receiver::{Answer, Receiver};

on_both_databases!(
    what_is_refused_waits_for_a_person,
    merged_letters_leave_the_newest,
    a_merge_shows_all_that_it_gives_up,
    a_row_tells_of_its_dead_letters,
    what_a_person_does_needs_no_sink,
    purged_letters_say_who_and_why,
    a_name_that_nothing_has_is_refused,
);

/// A shop with two rows of two events each, the first of which were refused.
async fn refused(engine: Engine, hook: &Receiver) -> Shop {
    let shop = sold(engine, &hook_sink("hook", hook.url()), 2).await;
    stage(&shop, "1", 2).await;
    stage(&shop, "2", 2).await;
    let ran = deliver(&shop, &[]).await.ended(3);
    let note = of_sink(&ran, "hook");
    assert_eq!((&note["died"], &note["dead"]), (&2.into(), &2.into()), "{note}");
    assert_eq!(note["waiting"], 2, "the second events wait for the first");
    assert!(ran.stderr.contains("2 dead letters"), "{}", ran.stderr);
    shop
}

fn came(hook: &Receiver, from: usize) -> Vec<String> {
    let sent = hook.sent("").split_off(from);
    let mut came: Vec<String> = sent
        .iter()
        .map(|sent| {
            let body: Value = serde_json::from_str(&sent.body).unwrap();
            format!("{} v{}", body["key"].as_str().unwrap(), body["version"])
        })
        .collect();
    came.sort();
    came
}

async fn what_is_refused_waits_for_a_person(engine: Engine) {
    let hook = Receiver::start(Answer::Status(422)).await;
    let shop = refused(engine, &hook).await;
    let letters = deliver(&shop, &["list"]).await.ended(0).of_type("letter");
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[0]["error"], "answered 422");
    assert_eq!(deliver(&shop, &["list", "--waiting"]).await.of_type("letter").len(), 4);
    assert_eq!(deliver(&shop, &["list", "--error", "500"]).await.of_type("letter").len(), 0);
    // It never goes by itself.
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    deliver(&shop, &["--now"]).await.ended(3);
    assert_eq!(hook.sent("").len(), before);
    let plan = deliver(&shop, &["retry", "--id", "1", "--dry-run"]).await.ended(0);
    assert_eq!(plan.of_type("letters")[0]["matching"], 1);
    let done = deliver(&shop, &["retry", "--id", "1", "--error", "422"]).await.ended(0);
    assert_eq!(done.of_type("letters")[0]["again"], 1);
    deliver(&shop, &[]).await.ended(3);
    assert_eq!(came(&hook, before), ["1 v1", "1 v2"]);
    deliver(&shop, &["retry"]).await.ended(0);
    deliver(&shop, &[]).await.ended(0);
    assert_eq!(came(&hook, before), ["1 v1", "1 v2", "2 v1", "2 v2"]);
}

async fn merged_letters_leave_the_newest(engine: Engine) {
    let hook = Receiver::start(Answer::Status(422)).await;
    let shop = refused(engine, &hook).await;
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    let counts = |done: &Ran| {
        let end = &done.of_type("letters")[0];
        (end["again"].clone(), end["given_up"].clone())
    };
    // The newest waits behind the one that died.
    assert_eq!(planned(&shop).await, (vec!["1 v1 dead".to_owned(), "2 v1 dead".to_owned()], 2));
    let done = deliver(&shop, &["merge", "--id", "1", "--reason", "newest"]).await.ended(0);
    assert_eq!(counts(&done), (1.into(), 1.into()));
    let why = shop.texts("select why from tieout_deliveries where state = 'purged'").await;
    assert!(why.len() == 1 && why[0].ends_with(": newest"), "{why:?}");
    deliver(&shop, &[]).await.ended(3);
    assert_eq!(came(&hook, before), ["1 v2"]);
    // Or nothing does: the one that died is the newest.
    stage(&shop, "1", 3).await;
    hook.answer(Answer::Status(422));
    deliver(&shop, &[]).await.ended(3);
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    assert_eq!(planned(&shop).await, (vec!["2 v1 dead".to_owned()], 2), "its newest is sent");
    let done = deliver(&shop, &["merge", "--reason", "newest"]).await.ended(0);
    assert_eq!(counts(&done), (2.into(), 1.into()));
    deliver(&shop, &[]).await.ended(0);
    assert_eq!(came(&hook, before), ["1 v3", "2 v2"]);
}

/// What a merge says that it gives up, and of how many rows it says that it sends the newest.
async fn planned(shop: &Shop) -> (Vec<String>, u64) {
    let plan = deliver(shop, &["merge", "--reason", "newest", "--dry-run"]).await.ended(0);
    let word = |letter: &Value, field: &str| letter[field].as_str().unwrap().to_owned();
    let mut given_up: Vec<String> = plan
        .of_type("letter")
        .iter()
        .map(|one| format!("{} v{} {}", word(one, "txn_id"), one["version"], word(one, "state")))
        .collect();
    given_up.sort();
    let end = &plan.of_type("letters")[0];
    assert_eq!((&end["matching"], &end["given_up"]), (&given_up.len().into(), &end["matching"]));
    (given_up, end["again"].as_u64().unwrap())
}

/// What waits behind a dead letter is given up with it, unless it is the newest: it is shown, too.
async fn a_merge_shows_all_that_it_gives_up(engine: Engine) {
    let hook = Receiver::start(Answer::Status(422)).await;
    let shop = refused(engine, &hook).await;
    stage(&shop, "1", 3).await;
    deliver(&shop, &[]).await.ended(3);
    let all = ["1 v1 dead", "1 v2 waiting", "2 v1 dead"].map(str::to_owned);
    assert_eq!(planned(&shop).await, (all.to_vec(), 2));
    assert_eq!(shop.count("tieout_deliveries where state = 'purged'").await, 0, "nothing is done");
    let words = ["deliver", "merge", "--reason", "newest", "--dry-run"];
    let screen = shop.tieout(&words).await.ended(0).stdout;
    let end = "would send the newest letter of 2 rows, and give 3 older ones up. Nothing was";
    assert!(screen.contains(end), "{screen}");
    let done = deliver(&shop, &["merge", "--reason", "newest"]).await.ended(0);
    let end = &done.of_type("letters")[0];
    assert_eq!((&end["again"], &end["given_up"]), (&2.into(), &3.into()), "{end}");
}

/// What no sink got is told of its row: what, since when, and who gave it up and why.
async fn a_row_tells_of_its_dead_letters(engine: Engine) {
    let hook = Receiver::start(Answer::Status(422)).await;
    let shop = refused(engine, &hook).await;
    let explain = async |id: &str| shop.tieout(&["explain", id]).await.ended(0).stdout;
    let of_row = async |id: &str| {
        let ran = shop.tieout(&["explain", id, "--json"]).await.ended(0);
        ran.of_type("row").remove(0)["undelivered"].clone()
    };
    let dead = explain("1").await;
    let (line, error) = ("events     v1 transaction.succeeded for hook: a dead letter", "answered");
    assert!(dead.contains(line) && dead.contains(error), "{dead}");
    let said = of_row("1").await;
    assert_eq!((&said[0]["state"], &said[0]["by"]), (&"dead".into(), &Value::Null), "{said}");
    deliver(&shop, &["purge", "--id", "1", "--reason", "by hand"]).await.ended(0);
    let gone = explain("1").await;
    let line = "events     v1 transaction.succeeded for hook: given up at ";
    assert!(gone.contains(line) && gone.contains("purge by "), "{gone}");
    let said = of_row("1").await;
    assert_eq!(said[0]["state"], "purged", "{said}");
    assert!(said[0]["by"].is_string(), "{said}");
    assert!(said[0]["why"].as_str().unwrap().ends_with(": by hand"), "{said}");
    assert_eq!(of_row("2").await.as_array().unwrap().len(), 1, "what waits is on its way");
    // What a sink took is no trouble.
    hook.answer(Answer::Status(200));
    deliver(&shop, &["retry"]).await.ended(0);
    deliver(&shop, &[]).await.ended(0);
    assert_eq!(of_row("2").await, serde_json::json!([]));
    assert!(!explain("2").await.contains("\nevents "), "nothing is said of it");
}

/// Letters outlive the configuration of their sink; only who sends needs one.
async fn what_a_person_does_needs_no_sink(engine: Engine) {
    let hook = Receiver::start(Answer::Status(422)).await;
    let mut shop = refused(engine, &hook).await;
    shop.words.sinks = super::BY_HAND.to_owned();
    shop.write_words();
    deliver(&shop, &[]).await.ended(10);
    deliver(&shop, &["list"]).await.ended(0);
    deliver(&shop, &["retry", "--dry-run"]).await.ended(0);
    let done = deliver(&shop, &["merge", "--reason", "gone"]).await.ended(0);
    assert_eq!(done.of_type("letters")[0]["given_up"], 2, "{}", done.stdout);
    let words = ["purge", "--sink", "hook", "--waiting", "--reason", "gone"];
    let done = deliver(&shop, &words).await.ended(0);
    assert_eq!(done.of_type("letters")[0]["given_up"], 2, "{}", done.stdout);
}

async fn purged_letters_say_who_and_why(engine: Engine) {
    let hook = Receiver::start(Answer::Status(422)).await;
    let shop = refused(engine, &hook).await;
    shop.tieout(&["deliver", "purge"]).await.ended(2);
    for all in [&[][..], &["--table", "payments"], &["--older-than", "1s", "--waiting"]] {
        let words = [&["deliver", "purge", "--reason", "by hand"], all].concat();
        let all = shop.tieout(&words).await.ended(2);
        assert!(all.stderr.contains("which letters? narrow them"), "{words:?}: {}", all.stderr);
    }
    let done = deliver(&shop, &["purge", "--id", "1", "--reason", "by hand"]).await.ended(0);
    assert_eq!(done.of_type("letters")[0]["given_up"], 1);
    let why = shop.texts("select why from tieout_deliveries where state = 'purged'").await;
    assert!(why[0].starts_with("purge by ") && why[0].ends_with(": by hand"), "{why:?}");
    hook.answer(Answer::Status(200));
    let before = hook.sent("").len();
    deliver(&shop, &[]).await.ended(3);
    assert_eq!(came(&hook, before), ["1 v2"], "what waited for it goes on");
    let ended = "tieout_outbox where key = '1' and version = 1 and suppressed_at is not null";
    assert_eq!(shop.count(ended).await, 1);
}

/// A mistyped name must not look as if nothing waited there.
async fn a_name_that_nothing_has_is_refused(engine: Engine) {
    let hook = Receiver::start(Answer::Status(422)).await;
    let shop = refused(engine, &hook).await;
    let whys: &[&[&str]] = &[&[], &[], &["--reason", "gone"], &["--reason", "gone"]];
    for (word, why) in ["list", "retry", "purge", "merge"].iter().zip(whys) {
        for (flag, name, says) in [
            ("--sink", "hok", "--sink hok: there is no such sink; did you mean `hook`?"),
            ("--sink", "nosuch", "there is no such sink; known: hook."),
            ("--table", "paymnts", "there is no such table; did you mean `payments`?"),
            ("--table", "nosuch", "there is no such table; mapped: payments."),
        ] {
            let words = [&[*word, flag, name][..], why].concat();
            let ran = deliver(&shop, &words).await.ended(2);
            assert!(ran.stderr.contains(says), "{words:?}: {}", ran.stderr);
            assert!(ran.of_type("letters").is_empty(), "{words:?}: {}", ran.stdout);
        }
    }
    assert_eq!(shop.count("tieout_deliveries where state = 'dead'").await, 2, "nothing was done");
    // What left the configuration keeps its letters, and its name.
    shop.raw.execute("update tieout_deliveries set sink = 'gone', table_name = 'old'").await;
    for words in [&["list", "--sink", "gone"][..], &["list", "--table", "old"]] {
        let ran = deliver(&shop, words).await.ended(0);
        assert_eq!(ran.of_type("letter").len(), 2, "{words:?}: {}", ran.stdout);
    }
    deliver(&shop, &["list", "--sink", "hook"]).await.ended(0);
}
