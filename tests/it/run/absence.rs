//! The life of a row that the PSP does not know: from the first look to the hand-back, past it,
//! and everything that must stop it on the way.

use std::time::Duration;

use serde_json::Value;
use tieout::sandbox::faults::{Action, FaultRule, Which};
use tieout::sandbox::routes::Route;
use tieout::sandbox::seeds::{Seed, SeedKind};
use tieout::sandbox::situations::{Decline, Situation};

use super::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    absence_is_proven_over_runs_and_handed_back_once,
    money_after_the_hand_back_is_a_contradiction,
    what_may_be_paid_beside_a_hand_back_ends_it,
    a_worker_that_took_the_row_starts_a_new_proof,
    a_row_that_is_stuck_again_after_its_watch_is_not_lost,
    payments_of_another_table_are_its_rows,
    a_dropped_tag_pulls_the_brake,
    too_many_hand_backs_pull_the_brake,
    a_brake_that_a_pause_met_keeps_its_case,
    abandoned_rows_are_no_hand_backs,
    a_dropped_tag_abandons_nothing,
    without_a_witness_nothing_is_absent,
    a_tag_that_no_newer_payment_carries_is_told,
    what_appears_late_wins,
    a_change_of_the_row_voids_its_misses,
    ids_that_begin_alike_are_not_near,
    absent_rows_give_up_after_max_retries,
    without_attempts_absence_is_for_a_person,
    without_attempts_a_later_capture_is_seen_too,
    siblings_are_not_charged_beside_each_other,
    siblings_that_may_have_been_paid_hold_a_hand_back,
    the_applications_own_word_of_success_is_heard,
    a_hand_back_that_nobody_takes_is_told_once,
    a_hand_back_that_no_status_shows_is_told_too,
    a_call_that_lived_too_long_is_seen_by_the_watch,
    a_call_that_lived_too_long_is_no_witness_against_its_own_row,
    a_payment_hours_after_its_rows_times_is_found_without_a_search,
    refunds_under_their_payments_tags_are_not_absent,
    a_refund_under_its_payments_tag_may_be_the_rows,
    a_payment_is_no_witness_for_a_refund,
    a_refund_is_the_witness_for_a_refund,
    refunds_without_a_witness_do_not_keep_payments_waiting,
    what_carries_a_rows_tag_and_is_of_another_kind_is_for_a_person,
    refunds_under_payments_tags_of_equal_ids_are_not_absent,
    refunds_under_their_own_tags_of_equal_ids_are_witnesses,
    a_refund_found_for_another_row_of_equal_ids_may_be_the_rows,
    a_refund_that_was_made_before_its_row_is_another_rows,
    a_refund_that_was_made_after_its_rows_call_is_another_rows,
    a_tag_that_two_rows_make_alike_settles_neither,
    what_a_fast_clock_stamped_is_listed,
);

async fn shop_with(engine: Engine, words: Words, ids: std::ops::RangeInclusive<i64>) -> Shop {
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let rows: Vec<Payment> = ids.map(Payment::stuck).collect();
    shop.insert(&rows).await;
    shop
}

async fn absence_is_proven_over_runs_and_handed_back_once(engine: Engine) {
    // Long enough that "at once" below stays at once on a busy machine.
    let words = Words::default().policy("recheck_after", "\"8s\"");
    let shop = shop_with(engine, words, 1..=1).await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait within_grace");
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait absence_unproven");
    // Looking again at once proves nothing more: misses must stand apart.
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait absence_unproven");
    tokio::time::sleep(Duration::from_secs(8)).await;
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "retryable absent");
    assert_eq!(shop.status(1).await, "retry");
    let hand_backs = shop
        .texts(
            "select key || ' ' || cast(number as text) || ' ' || permit || ' ' || retry \
             from tieout_handbacks where ended_at is null",
        )
        .await;
    assert_eq!(hand_backs, ["1 1 absent same_key"]);
    // The brake saw only objects that belong to rows, and takes that for usual.
    let usual = "select cast(usual_permille as text) from tieout_accounts";
    assert_eq!(shop.texts(usual).await, ["1000"]);
    assert_eq!(shop.texts("select state from tieout_checks").await, ["watch"]);
    let event = shop.raw.one("select payload from tieout_outbox").await;
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!(event["type"], "transaction.retryable");
    assert_eq!(event["hand_back"]["how"], "same_key");

    // The watch looks again, and finds nothing new.
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait watched");
    assert_eq!(shop.status(1).await, "retry");
    assert_eq!(shop.count("tieout_handbacks").await, 1);
    shop.check(false).await;
}

async fn handed_back(shop: &Shop, id: i64) {
    let ran = shop.run_until_proven().await;
    assert_eq!(shop.status(id).await, "retry", "{ran:?}");
}

async fn a_hand_back_that_nobody_takes_is_told_once(engine: Engine) {
    let words = Words::default().policy("watch", "[\"1s\", \"1h\", \"2h\", \"3h\"]");
    let shop = shop_with(engine, words, 1..=1).await;
    handed_back(&shop, 1).await;
    let long_ago = at_text(tieout_now() - 25 * 3_600);
    shop.raw.execute(&format!("update tieout_handbacks set at = '{long_ago}'")).await;
    for _ in 0..2 {
        shop.due_now().await;
        assert_eq!(shop.run().await.ended(0).verdict(1), "review handback_not_taken");
        assert_eq!(shop.open_cases().await, ["1 handback_not_taken"]);
    }
    assert_eq!(shop.status(1).await, "retry", "the worker may still come");
    let open = "tieout_handbacks where ended_at is null and taken_at is null";
    assert_eq!(shop.count(open).await, 1);
    // Watched on all the same: money that turns up now must be seen.
    shop.sandbox.seed([Payment::stuck(1).captured()]).unwrap();
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "review late_contradiction");
    assert_eq!(shop.open_cases().await, ["1 late_contradiction"]);
    shop.check(false).await;
}

/// A mapping with a value for absence and none for a decline: the row of a decline is handed back
/// in processing. That it does not say `retry` is no sign that anybody took it.
async fn a_hand_back_that_no_status_shows_is_told_too(engine: Engine) {
    let words = Words::default().policy("watch", "[\"1s\", \"1h\", \"2h\", \"3h\"]");
    let mut shop = Shop::open_with(engine, words).await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let silent = text.replace("retryable = \"retry\"", "absent = \"canceled\"");
    assert_ne!(silent, text);
    std::fs::write(&path, &silent).unwrap();
    shop.background(60).await;
    let decline = Decline {
        code: "card_declined".to_owned(),
        decline_code: Some("insufficient_funds".to_owned()),
        advice_code: Some("try_again_later".to_owned()),
    };
    let declined = [1, 2].map(|id| Seed {
        decline: Some(decline.clone()),
        ..Payment::stuck(id).captured().standing(Situation::Declined)
    });
    shop.plant(declined.to_vec());
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    let ran = shop.run_until_proven().await;
    let keys = shop.texts("select key from tieout_handbacks order by key").await;
    assert_eq!(keys, ["1", "2"], "{ran:?}");
    assert_eq!(shop.count("tieout_handbacks where taken_at is not null").await, 0);
    // Somebody came for the second. Nobody for the first, though a day has passed.
    let now = at_text(tieout_now());
    let take = format!("update payments set attempted_at = '{now}' where id = 2");
    shop.raw.execute(&take).await;
    let long_ago = at_text(tieout_now() - 25 * 3_600);
    for (table, column) in
        [("handbacks", "at"), ("handbacks", "not_before"), ("checks", "fingerprint_seen_at")]
    {
        let past = format!("update tieout_{table} set {column} = '{long_ago}' where key = '1'");
        shop.raw.execute(&past).await;
    }
    shop.due_now().await;
    assert_eq!(shop.run().await.verdict(1), "review handback_not_taken");
    assert_eq!(shop.open_cases().await, ["1 handback_not_taken"]);
    let taken = shop.texts("select key from tieout_handbacks where taken_at is not null").await;
    assert_eq!(taken, ["2"]);
    assert_eq!(shop.status(1).await, "processing");
    shop.check(false).await;
}

async fn money_after_the_hand_back_is_a_contradiction(engine: Engine) {
    let mut shop = shop_with(engine, Words::default(), 1..=1).await;
    handed_back(&shop, 1).await;
    shop.plant(vec![Payment::stuck(1).captured()]);
    shop.a_span_passes().await;
    let ran = shop.run_with(&["--fail-on", "duplicates"]).await.ended(4);
    let held = "tieout: attention: duplicates (1: C-1) → tieout cases list";
    assert!(ran.stderr.contains(held), "{}", ran.stderr);
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(shop.status(1).await, "retry", "the status is left to the person");
    assert_eq!(shop.open_cases().await, ["1 late_contradiction"]);
    assert_eq!(shop.count("tieout_handbacks where ended_at is null").await, 0);
    // It is one case, however often one looks.
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("tieout_cases").await, 1);
    shop.check(false).await;
}

/// The original call did arrive, and came to no money yet: a new attempt could be paid beside it.
async fn what_may_be_paid_beside_a_hand_back_ends_it(engine: Engine) {
    let mut shop = shop_with(engine, Words::default(), 1..=5).await;
    handed_back(&shop, 5).await;
    // By the key of its first call nothing is made beside what that made.
    let anew = "update tieout_handbacks set retry = 'new_attempt', same_key_until = null \
                where key < '5'";
    shop.raw.execute(anew).await;
    let at = |id: i64, situation| Payment::stuck(id).captured().standing(situation);
    shop.plant(vec![
        at(1, Situation::RequiresCapture),
        at(2, Situation::Processing),
        at(3, Situation::RequiresAction),
        at(4, Situation::Canceled),
        at(5, Situation::Processing),
    ]);
    shop.a_span_passes().await;
    let ran = shop.run().await.ended(0);
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "review late_contradiction");
        assert_eq!(shop.status(id).await, "retry", "the status is left to the person");
    }
    assert_eq!(ran.verdict(4), "wait watched", "nothing comes of what is cancelled");
    assert_eq!(ran.verdict(5), "wait watched");
    let open = "select key from tieout_handbacks where ended_at is null order by key";
    assert_eq!(shop.texts(open).await, ["4", "5"], "no worker is offered the others any more");
    // Once nothing can come of it, a person has the row charged again, and is told so.
    shop.sandbox.move_to("pi_2", Situation::Canceled).unwrap();
    let kick = ["cases", "kick", "--reason", "late_contradiction", "--yes"];
    let said = shop.tieout(&kick).await.stderr;
    assert!(said.contains("nothing at the PSP could be paid beside a new attempt"), "{said}");
    assert_eq!(shop.count("tieout_cases where state = 'open'").await, 3);
    shop.check(false).await;
}

/// A worker held its call back for longer than `in_flight_max`: the payment was made after every
/// window that the proof had read. Where there is no search, the list alone can show it.
async fn a_call_that_lived_too_long_is_seen_by_the_watch(engine: Engine) {
    let words = Words { account: "search = false\n".to_owned(), ..Words::default() };
    let mut shop = shop_with(engine, words, 1..=1).await;
    handed_back(&shop, 1).await;
    shop.plant(vec![Payment::stuck(1).captured().created_at(tieout_now())]);
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "review late_contradiction");
    assert_eq!(shop.count("tieout_handbacks where ended_at is null").await, 0);
    shop.check(false).await;
}

/// The same before the hand-back: reading on for a witness shows the row's own payment, which is
/// found, and never what proves that there is none.
async fn a_call_that_lived_too_long_is_no_witness_against_its_own_row(engine: Engine) {
    let words = Words { account: "search = false\n".to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    shop.plant(vec![Payment::stuck(1).captured().created_at(tieout_now())]);
    let ran = shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "paid", "{ran:?}");
    // To the other it is a witness.
    assert_eq!(shop.status(2).await, "retry", "{ran:?}");
    shop.check(false).await;
}

/// Times that are read in a wrong zone put the window hours before the payment. Where there is no
/// search to see past it, the list goes on as far as zones lie apart.
async fn a_payment_hours_after_its_rows_times_is_found_without_a_search(engine: Engine) {
    let words = Words { account: "search = false\n".to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    let misread = |id: i64| Payment {
        age: 9 * 3_600 + 40 * 60,
        attempted: Some(9 * 3_600 + 30 * 60),
        ..Payment::stuck(id)
    };
    shop.insert(&[misread(1), Payment { status: "paid", ..misread(2) }]).await;
    // The other's payment lies where the first one's is looked for, and would be its witness.
    let near = tieout_now() - 9 * 3_600 - 30 * 60 + 1;
    let other = misread(2).captured().created_at(near);
    shop.plant(vec![Payment::stuck(1).captured(), other]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "succeeded captured");
    assert_eq!(shop.status(1).await, "paid");
    shop.check(false).await;
}

async fn a_worker_that_took_the_row_starts_a_new_proof(engine: Engine) {
    let mut shop = shop_with(engine, Words::default(), 1..=1).await;
    handed_back(&shop, 1).await;
    let now = super::shop::at_text(tieout_now());
    let take = format!(
        "update payments set status = 'processing', attempted_at = '{now}' \
         where id = 1 and status = 'retry'"
    );
    assert_eq!(shop.raw.execute(&take).await, 1);
    // Its call may be under way: what was proven before says nothing of it.
    let mut seen = Vec::new();
    for _ in 0..3 {
        let verdict = shop.run().await.ended(0).verdict(1);
        assert!(verdict.starts_with("wait") || verdict == "not decided", "{verdict}");
        seen.push(verdict);
        shop.a_span_passes().await;
    }
    assert!(seen.contains(&"wait within_grace".to_owned()), "{seen:?}");
    assert_eq!(shop.count("tieout_handbacks where taken_at is not null").await, 1);
    // Nothing newer than the attempt shows that the tag arrives. Then something does.
    shop.plant(
        vec![Payment::stuck(900_000).captured().created_at(tieout_now())]
            .into_iter()
            .map(|seed| Seed { id: Some("pi_witness".to_owned()), ..seed })
            .collect(),
    );
    let ran = shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "retry", "{ran:?}");
    assert_eq!(shop.count("tieout_handbacks").await, 2);
    shop.check(true).await;
}

async fn a_row_that_is_stuck_again_after_its_watch_is_not_lost(engine: Engine) {
    let words =
        Words::default().policy("stuck_after", "\"20min\"").policy("watch", "[\"1s\", \"2s\"]");
    let mut shop = shop_with(engine, words, 1..=1).await;
    handed_back(&shop, 1).await;
    // The worker takes it and dies. The watch looks while the row is too young to be stuck.
    let attempted = super::shop::at_text(tieout_now() - 600);
    let take = format!(
        "update payments set status = 'processing', attempted_at = '{attempted}' where id = 1"
    );
    shop.raw.execute(&take).await;
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait watched");
    // Then it is stuck, as it would be some minutes later.
    shop.words = shop.words.clone().policy("stuck_after", "\"5min\"");
    shop.write_words();
    let ran = shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "retry", "{ran:?}");
    assert_eq!(shop.count("tieout_handbacks").await, 2);
    shop.check(true).await;
}

/// A second table of charges at the account, in the place of the refunds.
const GIFTS: &str = r#"
[[table]]
name = "gifts"
read = "refunds"
key = ["id"]
tag = "gift-{id}"
amount = { column = "cents", unit = "minor" }
currency = { const = "EUR" }
account = []
accounts = { "*" = "shop" }
status = "status"
created = "made"
attempts = "once"
psp_reference = "re_id"
mode = "full"
map = [{ from = ["sent"], succeeded = "done", retryable = "again" }]
"#;

/// They are as busy as they like: they are nobody's money here, and pull no brake. How this table's
/// payments are tagged they do not show.
async fn payments_of_another_table_are_its_rows(engine: Engine) {
    let words = Words { more: GIFTS.to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    let now = tieout_now();
    let mut gifts = Vec::new();
    for n in 0..40 {
        // One by its stored id alone: the tag was lost on the way.
        let tag = if n == 7 { "lost".to_owned() } else { format!("gift-{n}") };
        let seed = Seed::captured("order_id", &tag, 10_001, "eur").created_at(now - 1_830 + n);
        gifts.push(Seed { id: Some(format!("pi_gift_{n}")), ..seed });
        let made = at_text(now - 1_830 + n);
        let row = format!("({n}, 'done', 10001, '{made}', 'pi_gift_{n}')");
        shop.raw.execute(&format!("insert into refunds values {row}")).await;
    }
    shop.plant(gifts);
    for _look in 0..3 {
        let ran = shop.run().await.ended(0);
        assert!(!ran.stderr.contains("carries a tag of a row"), "{}", ran.stderr);
        shop.a_span_passes().await;
    }
    let waits = "select last_reason from tieout_checks order by key";
    assert_eq!(shop.texts(waits).await, ["absence_unproven", "absence_unproven"]);
    shop.background(10).await;
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    assert_eq!([shop.status(1).await, shop.status(2).await], ["retry", "retry"]);
    shop.check(false).await;
}

async fn a_dropped_tag_pulls_the_brake(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    // A deploy: from here on objects arrive without their tag, but for a last few.
    let now = tieout_now();
    let blind = (0..40).map(|n| {
        let seed = Seed::captured("other", "x", 77_000 + n, "eur").created_at(now - 1_700 + n);
        Seed { id: Some(format!("pi_blind_{n}")), ..seed }
    });
    shop.plant(blind.collect());
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    let ran = shop.run().await.ended(3);
    for id in [1, 2] {
        assert_eq!(ran.verdict(id), "wait absence_brake", "{ran:?}");
        assert_eq!(shop.status(id).await, "processing");
    }
    let usual = "tieout_accounts where usual_permille is not null";
    assert_eq!(shop.count(usual).await, 0, "a broken tag never becomes usual");
    assert!(ran.stderr.contains("absence brake"), "{}", ran.stderr);
    assert_eq!(shop.open_cases().await, ["shop absence_brake"]);
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    for words in [
        "rows that would be handed back: 2",
        "of these objects, those of your rows: ",
        "not done  no row of the account was ended by absence",
        "next      `tieout doctor` says",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    let told = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    for words in [
        "not done   not handed back, though absence was proven: the account's brake is on",
        "the account has a case: tieout cases list --reason absence_brake",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // Again: one case, seen twice.
    shop.a_span_passes().await;
    shop.run().await.ended(3);
    assert_eq!(shop.texts("select cast(times_seen as text) from tieout_cases").await, ["2"]);
    let noted = "tieout_runs where notes like '%\"brake\":\"%captured objects nearest%'";
    assert_eq!(shop.count(noted).await, 2, "the account's line names it");
    // Somebody gives the payments their tags. Found, the rows leave the brake one by one, and with
    // the last of them the case is closed, although nothing is held any more.
    shop.plant([1, 2].map(|id| Payment::stuck(id).captured()).to_vec());
    shop.run_with(&["--id", "1"]).await.ended(0);
    assert_eq!(shop.open_cases().await, ["shop absence_brake"]);
    shop.run_with(&["--id", "2"]).await.ended(0);
    assert_eq!(shop.count("payments where status = 'paid'").await, 62);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(true).await;
}

async fn too_many_hand_backs_pull_the_brake(engine: Engine) {
    let words = Words::default().policy("max_handbacks", "3");
    let shop = shop_with(engine, words, 1..=4).await;
    let ran = shop.run_until_proven().await.ended(3);
    assert!(ran.stderr.contains("4 rows would be handed back"), "{}", ran.stderr);
    assert_eq!(shop.count("payments where status = 'processing'").await, 4);
    assert_eq!(shop.open_cases().await, ["shop absence_brake"]);
    // A person sees to one of them; three may go, and the case is closed.
    shop.raw.execute("update payments set status = 'cart' where id = 4").await;
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'retry'").await, 3);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(true).await;
}

/// Somebody pauses the account as its case is opened: the rows are given back, and the case stays.
async fn a_brake_that_a_pause_met_keeps_its_case(engine: Engine) {
    let words = Words::default().policy("max_handbacks", "3");
    let shop = shop_with(engine, words, 1..=4).await;
    let pauses = "insert into tieout_accounts (account, paused_at, paused_by, paused_why) \
                  values ('shop', '2026-11-19T12:00:00.000000Z', 'mara', 'look') \
                  on conflict (account) do update set paused_at = excluded.paused_at, \
                  paused_by = excluded.paused_by, paused_why = excluded.paused_why;";
    let trigger = match engine {
        Engine::Sqlite => format!(
            "create trigger meanwhile after insert on tieout_cases \
             when new.reason = 'absence_brake' begin {pauses} end"
        ),
        Engine::Postgres => format!(
            "create function meanwhile() returns trigger language plpgsql security definer \
             as $$ begin {pauses} return null; end $$; \
             create trigger meanwhile after insert on tieout_cases for each row \
             when (new.reason = 'absence_brake') execute function meanwhile()"
        ),
    };
    shop.raw.execute(&trigger).await;
    for _look in 0..2 {
        shop.run().await.ended(0);
        shop.a_span_passes().await;
    }
    let ran = shop.run().await.ended(3);
    assert!(ran.stderr.contains("account shop was paused meanwhile (look)"), "{}", ran.stderr);
    assert_eq!(shop.count("payments where status = 'processing'").await, 4);
    assert_eq!(shop.open_cases().await, ["shop absence_brake"]);
    shop.check(false).await;
}

/// Absence says here that the customer never paid: nobody charges again.
fn absent_means_abandoned(shop: &Shop) {
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let retry = "retryable = \"retry\"";
    let word = text.replace(retry, &format!("{retry}, absent = \"gone\""));
    assert_ne!(word, text);
    std::fs::write(&path, &word).unwrap();
}

async fn abandoned_rows_are_no_hand_backs(engine: Engine) {
    let words = Words::default().policy("max_handbacks", "3");
    let shop = shop_with(engine, words, 1..=9).await;
    absent_means_abandoned(&shop);
    let ran = shop.run_until_proven().await.ended(0);
    assert_eq!(shop.count("payments where status = 'gone'").await, 9, "{ran:?}");
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

async fn a_dropped_tag_abandons_nothing(engine: Engine) {
    let mut shop = shop_with(engine, Words::default(), 1..=2).await;
    absent_means_abandoned(&shop);
    let now = tieout_now();
    let blind = (0..40).map(|n| {
        let seed = Seed::captured("other", "x", 77_000 + n, "eur").created_at(now - 1_700 + n);
        Seed { id: Some(format!("pi_blind_{n}")), ..seed }
    });
    shop.plant(blind.collect());
    let ran = shop.run_until_proven().await.ended(3);
    assert!(ran.stderr.contains("absence brake"), "{}", ran.stderr);
    assert_eq!(shop.count("payments where status = 'processing'").await, 2);
    assert_eq!(shop.open_cases().await, ["shop absence_brake"]);
    shop.check(false).await;
}

async fn without_a_witness_nothing_is_absent(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    // The PSP is full of money that is not this shop's, and the shop's own is older.
    let now = tieout_now();
    let foreign = (0..19).map(|n| {
        let tag = format!("elsewhere_{n}");
        let seed = Seed::captured("order_id", &tag, 10 + n, "eur").created_at(now - 60 * n);
        Seed { id: Some(format!("pi_foreign_{n}")), ..seed }
    });
    shop.plant(foreign.collect());
    let old = Payment { status: "paid", psp_ref: Some("pi_7".to_owned()), ..Payment::stuck(7) };
    shop.plant(vec![old.captured().created_at(now - 45 * 60)]);
    shop.insert(&[old, Payment::stuck(1)]).await;
    for _ in 0..4 {
        let verdict = shop.run().await.ended(0).verdict(1);
        assert!(verdict.starts_with("wait"), "{verdict}");
        shop.a_span_passes().await;
    }
    let text = shop
        .texts("select text from tieout_journal where key = '1' order by at desc limit 1")
        .await;
    assert!(text[0].contains("carries a tag that resolves to a row"), "{text:?}");
    shop.check(false).await;
}

/// A deploy drops the tag completely: no witness comes any more, no row is proven absent, and no
/// brake has anything to hold.
async fn a_tag_that_no_newer_payment_carries_is_told(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    let now = tieout_now();
    let blind = (0..40).map(|n| {
        let seed = Seed::captured("other", "x", 77_000 + n, "eur").created_at(now - 1_700 + n);
        Seed { id: Some(format!("pi_blind_{n}")), ..seed }
    });
    shop.plant(blind.collect());
    let old = Payment { status: "paid", psp_ref: Some("pi_7".to_owned()), ..Payment::stuck(7) };
    shop.plant(vec![old.captured().created_at(now - 45 * 60)]);
    shop.insert(&[old, Payment::stuck(1), Payment::stuck(2)]).await;
    shop.run().await;
    shop.a_span_passes().await;
    let ran = shop.run().await.ended(3);
    for id in [1, 2] {
        assert_eq!(ran.verdict(id), "wait absence_unproven", "{ran:?}");
    }
    let said: Vec<&str> = ran.stderr.split_whitespace().collect();
    let said = said.join(" ");
    let words = "account shop: none of the 40 payments since ";
    assert_eq!(said.matches(words).count(), 1, "{said}");
    assert!(said.contains("carries a tag of a row (the last that was seen with one is"), "{said}");
    // Doctor counts the same.
    let doctor = shop.tieout(&["doctor", "--json"]).await;
    assert!(doctor.stdout.contains("\"few_witnesses\""), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("the newest of them is pi_7 of"), "{}", doctor.stdout);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

async fn what_appears_late_wins(engine: Engine) {
    let mut shop = shop_with(engine, Words::default(), 1..=4).await;
    let rows: Vec<Seed> = (1..=4).map(|id| Payment::stuck(id).captured()).collect();
    shop.plant(rows);
    let hide = |route, id: i64| {
        shop.sandbox.fault(FaultRule::on(route, Action::Hide(Which::Tagged(format!("pay_{id}")))));
    };
    // 1: a replica's list does not show it. 2: the search index does not. 3 and 4: neither does.
    for (route, id) in [
        (Route::ListIntents, 1),
        (Route::ListCharges, 1),
        (Route::SearchIntents, 2),
        (Route::SearchCharges, 2),
    ] {
        hide(route, id);
    }
    // A request takes one rule, so those for several rows stand behind each other by turns.
    let ran = shop.run_until_proven().await;
    for id in 1..=4 {
        assert_eq!(shop.status(id).await, "paid", "{id}: {ran:?}");
    }
    shop.sandbox.clear_faults();
    // Both routes blind at once, then one of them sees.
    shop.insert(&[Payment::stuck(5)]).await;
    shop.plant(vec![Payment::stuck(5).captured()]);
    let blind = |route| FaultRule::on(route, Action::Hide(Which::Tagged("pay_5".to_owned())));
    for route in
        [Route::ListIntents, Route::ListCharges, Route::SearchIntents, Route::SearchCharges]
    {
        shop.sandbox.fault(blind(route));
    }
    assert_eq!(shop.run().await.ended(0).verdict(5), "wait within_grace");
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(5), "wait absence_unproven");
    shop.sandbox.clear_faults();
    for route in [Route::ListIntents, Route::ListCharges] {
        shop.sandbox.fault(blind(route));
    }
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(5), "succeeded captured");
    shop.check(false).await;
}

async fn a_change_of_the_row_voids_its_misses(engine: Engine) {
    let shop = shop_with(engine, Words::default(), 1..=1).await;
    shop.run().await.ended(0);
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait absence_unproven");
    shop.raw.execute("update payments set amount = amount + 1 where id = 1").await;
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait within_grace", "seen anew");
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait absence_unproven");
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "retryable absent");
    shop.check(false).await;
}

async fn ids_that_begin_alike_are_not_near(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    // The tag of one is the beginning of the other's, and each is its own row.
    let paid =
        Payment { status: "paid", psp_ref: Some("pi_1000".to_owned()), ..Payment::stuck(1_000) };
    shop.plant(vec![paid.captured()]);
    shop.insert(&[paid, Payment::stuck(10_000)]).await;
    let ran = shop.run_until_proven().await;
    assert_eq!(shop.status(10_000).await, "retry", "{ran:?}");
    shop.check(false).await;
}

async fn absent_rows_give_up_after_max_retries(engine: Engine) {
    let words = Words::default().policy("max_retries", "1");
    let shop = shop_with(engine, words, 1..=1).await;
    handed_back(&shop, 1).await;
    // The worker takes it, and dies before it sends; its clock says that it was long ago.
    let attempted = super::shop::at_text(tieout_now() - 600);
    let take = format!(
        "update payments set status = 'processing', attempted_at = '{attempted}' where id = 1"
    );
    shop.raw.execute(&take).await;
    let mut last = String::new();
    for _ in 0..6 {
        last = shop.run().await.ended(0).verdict(1);
        if last.starts_with("review") {
            break;
        }
        shop.a_span_passes().await;
    }
    assert_eq!(last, "review gave_up");
    assert_eq!(shop.status(1).await, "processing");
    assert_eq!(shop.open_cases().await, ["1 gave_up"]);
    shop.check(true).await;
}

async fn without_attempts_absence_is_for_a_person(engine: Engine) {
    let shop = shop_with(engine, Words::default(), 1..=2).await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let blind = text.replace("attempted = \"attempted_at\"\n", "");
    assert_ne!(blind, text);
    std::fs::write(&path, &blind).unwrap();
    let ran = shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["1 unprovable", "2 unprovable"], "{ran:?}");
    assert_eq!(shop.count("payments where status = 'processing'").await, 2);
    shop.check(false).await;
}

/// Where nothing tells of sends, the list goes up to now: a window from the creation alone would
/// show the first of two captures, and call the row paid.
async fn without_attempts_a_later_capture_is_seen_too(engine: Engine) {
    let words = Words { account: "search = false\n".to_owned(), ..Words::default() };
    let mut shop = shop_with(engine, words, 1..=1).await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let blind = text.replace("attempted = \"attempted_at\"\n", "");
    assert_ne!(blind, text);
    std::fs::write(&path, &blind).unwrap();
    let first = Payment::stuck(1).captured().created_at(tieout_now() - 40 * 60);
    let second = Seed { id: Some("pi_1_again".to_owned()), ..Payment::stuck(1).captured() };
    shop.plant(vec![first, second]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "review duplicate_capture");
    assert_eq!(shop.status(1).await, "processing");
    shop.check(false).await;
}

/// A shop by whose mapping tieout writes no status.
async fn without_targets(engine: Engine, table: &str) -> Shop {
    let table = format!("channel = \"outbox\"\n{table}");
    let shop = Shop::open_with(engine, Words { table, ..Words::default() }).await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let targets = ", succeeded = \"paid\", failed = \"failed\", retryable = \"retry\"";
    let bare = text.replace(targets, "");
    assert_ne!(bare, text);
    std::fs::write(&path, &bare).unwrap();
    shop
}

/// Where no word of success is known, a sibling that ended may have been paid.
async fn siblings_that_may_have_been_paid_hold_a_hand_back(engine: Engine) {
    let mut shop = without_targets(engine, "").await;
    shop.background(60).await;
    let of = |order: &str, id: i64| Payment {
        order_no: Some(order.to_owned()),
        age: 40 * 60 - id,
        ..Payment::stuck(id)
    };
    let ended = Payment { status: "failed", ..of("A", 1) };
    shop.insert(&[ended, of("A", 2), of("B", 3)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["2 sibling_row"]);
    assert_eq!(shop.texts("select key from tieout_handbacks").await, ["3"]);
    shop.check(false).await;
}

/// Where tieout writes no status, the table says by which word the application does: its paid rows
/// are siblings that were paid, and what it charged after a hand-back contradicts nothing.
async fn the_applications_own_word_of_success_is_heard(engine: Engine) {
    let mut shop = without_targets(engine, "succeeded = [\"paid\"]\n").await;
    shop.background(60).await;
    let of = |order: &str, id: i64| Payment {
        order_no: Some(order.to_owned()),
        age: 40 * 60 - id,
        ..Payment::stuck(id)
    };
    let paid = Payment { status: "paid", psp_ref: Some("pi_1".to_owned()), ..of("A", 1) };
    shop.plant(vec![paid.captured()]);
    shop.insert(&[paid, of("A", 2), of("B", 3)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["2 sibling_row"]);
    assert_eq!(shop.texts("select key from tieout_handbacks").await, ["3"]);

    // The application takes the hand-back, charges, and writes its own word.
    let now = at_text(tieout_now());
    shop.raw
        .execute(&format!(
            "update tieout_handbacks set taken_at = '{now}' where key = '3';
             update payments set status = 'paid', attempted_at = '{now}', psp_ref = 'pi_3' \
             where id = 3"
        ))
        .await;
    shop.plant(vec![of("B", 3).captured().created_at(tieout_now())]);
    shop.a_span_passes().await;
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await, ["2 sibling_row"], "what was charged is no surprise");
    shop.check(true).await;
}

async fn siblings_are_not_charged_beside_each_other(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let of = |order: &str, id: i64| Payment {
        order_no: Some(order.to_owned()),
        age: 40 * 60 - id,
        ..Payment::stuck(id)
    };
    let paid = Payment { status: "paid", psp_ref: Some("pi_1".to_owned()), ..of("A", 1) };
    shop.plant(vec![paid.captured()]);
    // A: one is paid. B: two are stuck. C: both are stuck, and the younger one was captured.
    // D: the same, with another amount, so that the younger one becomes a case.
    shop.insert(&[paid, of("A", 2), of("B", 3), of("B", 4), of("C", 5), of("C", 6)]).await;
    shop.insert(&[of("D", 7), of("D", 8)]).await;
    shop.plant(vec![of("C", 6).captured(), Seed { amount: 77, ..of("D", 8).captured() }]);
    for _ in 0..5 {
        shop.run().await.ended(0);
        shop.a_span_passes().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(shop.status(2).await, "processing");
    assert_eq!(shop.status(3).await, "retry");
    assert_eq!(shop.status(4).await, "processing");
    assert_eq!(shop.status(5).await, "processing");
    assert_eq!(shop.status(6).await, "paid");
    let cases = shop.open_cases().await;
    let beside = ["2", "4", "5", "7"].map(|id| format!("{id} sibling_row"));
    assert_eq!(cases[..4], beside);
    assert_eq!(cases[4..], ["8 amount_mismatch"]);
    assert_eq!(shop.status(7).await, "processing");
    shop.check(false).await;
}

/// A shop whose one table has payments and refunds, told apart by a column.
async fn shop_of_both(engine: Engine) -> Shop {
    let kind = "kind = { column = \"note\", values = { pay = \"charge\", back = \"refund\" } }\n";
    Shop::open_with(engine, Words { table: kind.to_owned(), ..Words::default() }).await
}

/// Says which rows are refunds; all the others are payments.
async fn these_are_refunds(shop: &Shop, ids: &str) {
    shop.raw
        .execute(&format!(
            "update payments set note = 'back' where id in ({ids});
             update payments set note = 'pay' where note is null"
        ))
        .await;
}

/// A refund that was made so many seconds ago.
fn refund(id: i64, tag: &str, amount: i64, age: i64) -> Seed {
    let seed = Seed::captured("order_id", tag, amount, "eur").created_at(tieout_now() - age);
    Seed { kind: SeedKind::Refund, id: Some(format!("re_{id}")), ..seed }
}

/// A row that ended well, long ago.
fn ended(id: i64, reference: &str) -> Payment {
    let (age, attempted) = (80 * 60, Some(80 * 60));
    let psp_ref = Some(reference.to_owned());
    Payment { status: "paid", psp_ref, age, attempted, ..Payment::stuck(id) }
}

/// When a refund was made that a stuck row's call made.
const WITH_THE_ROW: i64 = 30 * 60 + 1;

/// An application that copies the payment's metadata to its refunds: their tags arrive, and say
/// nothing of the refunds' own rows.
async fn refunds_under_their_payments_tags_are_not_absent(engine: Engine) {
    let mut shop = shop_of_both(engine).await;
    let paid = [ended(101, "pi_101"), ended(102, "pi_102")];
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    shop.insert(&paid).await;
    these_are_refunds(&shop, "1, 2").await;
    shop.plant(vec![
        refund(1, "pay_101", 10_001, WITH_THE_ROW),
        refund(2, "pay_102", 77, WITH_THE_ROW),
        refund(3, "pay_101", 50, 60),
    ]);
    let ran = shop.run_until_proven().await;
    for id in [1, 2] {
        assert!(ran.verdict(id).starts_with("wait"), "{id}: {}", ran.verdict(id));
        assert_eq!(shop.status(id).await, "processing");
    }
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(false).await;
}

/// Where other refunds do carry their own rows' tags, one of the row's money under its payment's
/// tag may be the row's all the same.
async fn a_refund_under_its_payments_tag_may_be_the_rows(engine: Engine) {
    let mut shop = shop_of_both(engine).await;
    shop.insert(&[Payment::stuck(1), ended(101, "pi_101"), ended(9, "re_9")]).await;
    these_are_refunds(&shop, "1, 9").await;
    shop.plant(vec![refund(1, "pay_101", 10_001, WITH_THE_ROW), refund(9, "pay_9", 10_009, 60)]);
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["1 possible_untagged_match"]);
    assert_eq!(shop.status(1).await, "processing");
    shop.check(false).await;
}

/// What is proven of a refund does not depend on which payments are looked at beside it.
async fn a_payment_is_no_witness_for_a_refund(engine: Engine) {
    let mut shop = shop_of_both(engine).await;
    shop.background(60).await;
    let made = Payment { attempted: Some(20 * 60), ..Payment::stuck(2) };
    shop.insert(&[Payment::stuck(1), made]).await;
    these_are_refunds(&shop, "2").await;
    shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "retry");
    assert_eq!(shop.status(2).await, "processing", "no refund shows how refunds are tagged");
    assert_eq!(shop.texts("select key from tieout_handbacks").await, ["1"]);
    shop.check(false).await;
}

async fn a_refund_is_the_witness_for_a_refund(engine: Engine) {
    let mut shop = shop_of_both(engine).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2), ended(9, "re_9")]).await;
    these_are_refunds(&shop, "2, 9").await;
    // Payments that are newer than it, and of the same batch, are none.
    shop.plant(vec![refund(9, "pay_9", 10_009, 5 * 60)]);
    shop.run_until_proven().await;
    assert_eq!([shop.status(1).await, shop.status(2).await], ["retry", "retry"]);
    let said = "select text from tieout_journal where reason = 'absent' and key = '2'";
    let said = shop.texts(said).await;
    assert!(said.iter().all(|text| text.contains("witness re_9")), "{said:?}");
    assert!(!said.is_empty());
    shop.check(false).await;
}

/// Reading on in vain for refunds costs the payments nothing.
async fn refunds_without_a_witness_do_not_keep_payments_waiting(engine: Engine) {
    let mut shop = shop_of_both(engine).await;
    shop.background(60).await;
    let late = |id: i64| Payment { attempted: Some(20 * 60), ..Payment::stuck(id) };
    shop.insert(&[Payment::stuck(1), late(2), late(3), late(4), late(5)]).await;
    these_are_refunds(&shop, "2, 3, 4, 5").await;
    shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "retry");
    assert_eq!(shop.texts("select key from tieout_handbacks").await, ["1"]);
    shop.check(false).await;
}

/// Something was made for the row: that its kind is another's says that the mapping or the tag is
/// wrong, and not that nothing took place.
async fn what_carries_a_rows_tag_and_is_of_another_kind_is_for_a_person(engine: Engine) {
    let mut shop = shop_of_both(engine).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    these_are_refunds(&shop, "2").await;
    shop.plant(vec![refund(1, "pay_1", 77, WITH_THE_ROW)]);
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["1 tag_near_miss"]);
    assert_eq!(shop.status(1).await, "processing");
    let said = "select text from tieout_journal where reason = 'tag_near_miss'";
    let said = shop.texts(said).await;
    let expected = "re_1 carries this row's tag `pay_1`, and is not of its kind";
    assert!(!said.is_empty() && said.iter().all(|text| text.contains(expected)), "{said:?}");
    shop.check(false).await;
}

/// Payments and refunds in two tables that both count from 101, so that every tag names one of
/// each. These refunds are stuck, at 7.00 and so many cents; the others were made. With it comes
/// the second when the rows of refunds were made.
async fn shop_of_equal_ids(engine: Engine, stuck: &[i64]) -> (Shop, i64) {
    let refunds = super::files::REFUNDS.replace("\"bank\"", "\"shop\"");
    let shop = Shop::open_with(engine, Words { more: refunds, ..Words::default() }).await;
    let paid: Vec<Payment> = EQUAL_IDS.map(|id| ended(id, &format!("pi_{id}"))).collect();
    shop.insert(&paid).await;
    let made = tieout_now() - WITH_THE_ROW;
    for id in EQUAL_IDS {
        let (status, cents) = match stuck.contains(&id) {
            true => ("sent", 700 + id),
            false => ("done", 300 + id),
        };
        let columns = "insert into refunds (id, status, cents, made)";
        let sql = format!("{columns} values ({id}, '{status}', {cents}, '{}')", at_text(made));
        shop.raw.execute(&sql).await;
    }
    (shop, made)
}

const EQUAL_IDS: std::ops::RangeInclusive<i64> = 101..=112;

/// The refunds of all rows but these, made since: under these tags.
fn refunds_made(but: &[i64], tag_of: impl Fn(i64) -> i64) -> Vec<Seed> {
    let made = EQUAL_IDS.filter(|id| !but.contains(id));
    made.map(|id| refund(id, &format!("pay_{}", tag_of(id)), 300 + id, 900 - id)).collect()
}

async fn refund_statuses(shop: &Shop, ids: &str) -> Vec<String> {
    let sql = format!("select status from refunds where id in ({ids}) order by id");
    shop.texts(&sql).await
}

/// An application that tags refunds with their payments' ids, which by chance are refunds' as well:
/// their tags resolve to rows of refunds, and say nothing of how refunds are tagged.
async fn refunds_under_payments_tags_of_equal_ids_are_not_absent(engine: Engine) {
    let (mut shop, made) = shop_of_equal_ids(engine, &[105]).await;
    shop.plant(refunds_made(&[105, 108], |id| 213 - id));
    shop.plant(vec![refund(105, "pay_108", 805, 0).created_at(made)]);
    let ran = shop.run_until_proven().await;
    assert!(ran.verdict(105).starts_with("wait"), "{}", ran.verdict(105));
    assert_eq!(refund_statuses(&shop, "105").await, ["sent"]);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(false).await;
}

/// Equal ids alone stop no proof: a refund of its own row's amount is that row's. One of a stuck
/// row's money under the tag of a row of another amount may be the stuck row's.
async fn refunds_under_their_own_tags_of_equal_ids_are_witnesses(engine: Engine) {
    let (mut shop, made) = shop_of_equal_ids(engine, &[105, 106]).await;
    shop.plant(refunds_made(&[105, 106], |id| id));
    shop.plant(vec![refund(106, "pay_108", 806, 0).created_at(made)]);
    shop.run_until_proven().await;
    assert_eq!(refund_statuses(&shop, "105, 106").await, ["again", "sent"]);
    assert_eq!(shop.open_cases().await, ["106 possible_untagged_match"]);
    assert_eq!(shop.texts("select key from tieout_handbacks").await, ["105"]);
    let said = "select text from tieout_journal where reason = 'absent' and key = '105'";
    let said = shop.texts(said).await;
    assert!(!said.is_empty(), "it was handed back by absence");
    assert!(said.iter().all(|text| text.contains("witness re_1")), "{said:?}");
    shop.check(false).await;
}

/// The row whose tag it is by chance is stuck as well, and looked at beside it.
async fn a_refund_found_for_another_row_of_equal_ids_may_be_the_rows(engine: Engine) {
    let (mut shop, made) = shop_of_equal_ids(engine, &[105]).await;
    shop.plant(refunds_made(&[105, 108], |id| id));
    shop.plant(vec![refund(105, "pay_108", 805, 0).created_at(made)]);
    for _look in 0..2 {
        shop.run().await;
        shop.a_span_passes().await;
    }
    // It comes to be looked at in the very run that would prove the other absent.
    shop.raw.execute("update refunds set status = 'sent' where id = 108").await;
    shop.run().await;
    shop.a_span_passes().await;
    shop.run().await;
    assert_eq!(refund_statuses(&shop, "105, 108").await, ["sent", "sent"]);
    let cases = shop.open_cases().await;
    assert!(cases.contains(&"105 possible_untagged_match".to_owned()), "{cases:?}");
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(false).await;
}

/// Refunds under their payments' tags, all of one amount: what was made before the row whose tag it
/// has by chance was not made for it.
async fn a_refund_that_was_made_before_its_row_is_another_rows(engine: Engine) {
    let (mut shop, made) = shop_of_equal_ids(engine, &[105]).await;
    shop.plant(vec![refund(1, "pay_105", 805, 0).created_at(made - 600)]);
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["105 time_mismatch"]);
    assert_eq!(refund_statuses(&shop, "105").await, ["sent"]);
    shop.check(false).await;
}

/// So was what was made when no call of that row could arrive any more.
async fn a_refund_that_was_made_after_its_rows_call_is_another_rows(engine: Engine) {
    let (mut shop, made) = shop_of_equal_ids(engine, &[105]).await;
    shop.plant(vec![refund(1, "pay_105", 805, 0).created_at(made + 300)]);
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["105 time_mismatch"]);
    assert_eq!(refund_statuses(&shop, "105").await, ["sent"]);
    shop.check(false).await;
}

/// `{order_no}-{account}`: `a-b` and `live` make the tag of `a` and `b-live`.
async fn a_tag_that_two_rows_make_alike_settles_neither(engine: Engine) {
    let words = Words {
        accounts: ", \"b-live\" = \"shop\"",
        table: "tags = { shop = \"{order_no}-{account}\" }".to_owned(),
        ..Words::default()
    };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let order =
        |id: i64, order: &str| Payment { order_no: Some(order.to_owned()), ..Payment::stuck(id) };
    let other = Payment { account: "b-live", status: "paid", ..order(2, "a") };
    shop.insert(&[order(1, "a-b"), other, order(3, "c")]).await;
    let seed = |id: i64, tag: &str| {
        let mut seed = Payment::stuck(id).captured();
        seed.metadata.insert("order_id".to_owned(), tag.to_owned());
        seed
    };
    shop.plant(vec![seed(1, "a-b-live"), seed(3, "c-live")]);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review tag_unusable", "the money may be the other row's");
    assert_eq!(ran.verdict(3), "succeeded captured");
}

/// The PSP's clock is ahead, and the row's call was over before the time that its object is of: no
/// list that ends now has it, and the search is behind.
async fn what_a_fast_clock_stamped_is_listed(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let row = Payment { age: 40, attempted: Some(30), ..Payment::stuck(1) };
    shop.plant(vec![row.captured().created_at(tieout_now() + 80)]);
    shop.insert(&[row]).await;
    shop.sandbox.behave(|behaviour| behaviour.search_lag_secs = 600);
    shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.count("tieout_handbacks").await, 0);
}
