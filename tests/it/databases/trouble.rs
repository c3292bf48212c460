//! Trouble in the middle of a run: answers that are lost, backends that are terminated, rows and
//! statements that the server refuses for the moment.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::routes::Route;

use super::proxy::{self, Cut};
use super::{assert_paid_once, go_through, shop_with};
use crate::run::shop::{Shop, Words};

/// The COMMIT was carried out and its answer lost: the run reads that it landed.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_read_and_not_repeated() {
    let mut shop = shop_with(Words::default(), 1..=3).await;
    let (through, has_cut) = proxy::before(shop.server().unwrap().url(), Cut::AfterCommit).await;
    go_through(&mut shop, through);
    shop.run().await.ended(0);
    assert!(has_cut.load(Ordering::SeqCst), "nothing was cut");
    assert_paid_once(&shop, 1..=3).await;
    // And the next run has nothing to do.
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=3).await;
}

/// The COMMIT never arrived: nothing was written, nothing is claimed to be, the next run decides.
#[tokio::test]
async fn a_commit_that_was_lost_itself_is_not_taken_for_done() {
    let mut shop = shop_with(Words::default(), 1..=3).await;
    let direct = shop.server().unwrap().url().to_owned();
    let (through, has_cut) = proxy::before(&direct, Cut::BeforeCommit).await;
    go_through(&mut shop, through);
    let ran = shop.run().await.ended(14);
    assert!(has_cut.load(Ordering::SeqCst), "nothing was cut");
    assert!(ran.stderr.contains("nothing of the batch was written"), "{}", ran.stderr);
    for id in 1..=3 {
        assert_eq!(shop.status(id).await, "processing");
    }
    assert_eq!(shop.count("tieout_journal").await, 0);
    go_through(&mut shop, direct);
    again(&shop).await;
    assert_paid_once(&shop, 1..=3).await;
}

/// A server that ends nothing and answers nothing is not waited for: its own limits are gone with
/// it. One that is gone altogether is not tried again at every step.
#[tokio::test]
async fn a_server_that_went_away_in_the_middle_ends_the_run() {
    for (cut, said) in [(Cut::Silence, "it says nothing"), (Cut::Gone, "cannot be reached")] {
        let words = Words { database_more: "connect_timeout = \"2s\"", ..Words::default() };
        let mut shop = shop_with(words, 1..=3).await;
        let direct = shop.server().unwrap().url().to_owned();
        let (through, has_cut) = proxy::before(&direct, cut).await;
        go_through(&mut shop, through);
        let began = Instant::now();
        let ran = shop.run().await.ended(14);
        assert!(has_cut.load(Ordering::SeqCst), "nothing was cut");
        assert!(ran.stderr.contains(said), "{cut:?}: {}", ran.stderr);
        // Not by a limit of the server's, which are minutes.
        assert!(began.elapsed() < Duration::from_secs(60), "{cut:?}: {:?}", began.elapsed());
        for id in 1..=3 {
            assert_eq!(shop.status(id).await, "processing");
        }
        go_through(&mut shop, direct);
        again(&shop).await;
        assert_paid_once(&shop, 1..=3).await;
    }
}

/// Whoever only looks waits no longer than a connection may take.
#[tokio::test]
async fn a_server_that_lets_in_and_says_nothing_is_not_waited_for() {
    let words = Words { database_more: "connect_timeout = \"2s\"", ..Words::default() };
    let mut shop = shop_with(words, 1..=1).await;
    let direct = shop.server().unwrap().url().to_owned();
    for args in [&["runs", "list"][..], &["run"], &["doctor"]] {
        let (through, has_cut) = proxy::before(&direct, Cut::SilenceAtFirst).await;
        go_through(&mut shop, through);
        let began = Instant::now();
        let ran = shop.tieout(args).await.ended(14);
        assert!(has_cut.load(Ordering::SeqCst), "nothing was cut");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("it says nothing, 2 s after it was asked"), "{args:?}: {said}");
        assert!(began.elapsed() < Duration::from_secs(40), "{args:?}: {:?}", began.elapsed());
    }
}

/// A run that went away is closed by the next, and its rows are free.
async fn again(shop: &Shop) {
    shop.ten_minutes_pass().await;
    shop.due_now().await;
    shop.run().await.ended(0);
}

const TERMINATE: &str = "select count(pg_terminate_backend(pid))::text from pg_stat_activity \
     where datname = current_database() and application_name = 'tieout'";

/// As at a restart of the server: every connection of the run ends while it asks the PSP. The run
/// connects anew and goes on.
#[tokio::test]
async fn terminated_backends_lose_no_row_and_decide_nothing_twice() {
    let shop = shop_with(Words::default(), 1..=3).await;
    shop.sandbox.fault(FaultRule::on(Route::ListIntents, Action::Delay { ms: 900 }));
    let run = shop.program(&["run", "--json"]).spawn().unwrap();
    let claimed = "tieout_checks where lease_run is not null";
    while shop.count(claimed).await < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_ne!(shop.raw.one(TERMINATE).await, "0");
    crate::run::shop::Ran::of(&run.wait_with_output().await.unwrap()).ended(0);
    assert_paid_once(&shop, 1..=3).await;
}

/// The server's own trouble (a full disk, no memory) is no fault of a row: nothing is written, no
/// case is made, and the next run decides.
#[tokio::test]
async fn trouble_of_the_server_blames_no_row() {
    for code in ["53100", "53200", "58030"] {
        let shop = shop_with(Words::default(), 1..=3).await;
        shop.raw
            .execute(&format!(
                "create function trouble() returns trigger language plpgsql as $$ begin \
                     raise exception 'as it happens to 4111111111111111' \
                         using errcode = '{code}'; end $$; \
                 create trigger trouble before update on payments \
                     for each row execute function trouble()"
            ))
            .await;
        let ran = shop.run().await.ended(14);
        let said: Vec<&str> = ran.stderr.split_whitespace().collect();
        let said = said.join(" ");
        assert!(said.contains("as it happens to ************1111"), "{said}");
        assert!(!said.contains("4111111111111111"), "{said}");
        assert_eq!(shop.count("tieout_journal").await, 0);
        assert_eq!(shop.count("tieout_cases").await, 0);
        shop.raw.execute("drop trigger trouble on payments").await;
        again(&shop).await;
        assert_paid_once(&shop, 1..=3).await;
    }
}

/// A migration of the application's in the middle of a run: a column more, an index, a label.
#[tokio::test]
async fn a_column_that_is_added_during_a_run_disturbs_nothing() {
    let shop = shop_with(Words::default(), 1..=3).await;
    shop.sandbox.fault(FaultRule::on(Route::ListIntents, Action::Delay { ms: 700 }));
    let run = shop.program(&["run", "--json"]).spawn().unwrap();
    while shop.count("tieout_checks where lease_run is not null").await < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    shop.raw
        .execute(
            "alter table payments add column region text not null default 'eu'; \
             create index payments_region on payments (region)",
        )
        .await;
    crate::run::shop::Ran::of(&run.wait_with_output().await.unwrap()).ended(0);
    assert_paid_once(&shop, 1..=3).await;
}

/// A statement that meets a serialization failure or a deadlock was not wrong: it is made again.
#[tokio::test]
async fn what_passes_by_itself_is_tried_again() {
    for code in ["40001", "40P01"] {
        let shop = shop_with(Words::default(), 1..=3).await;
        shop.raw
            .execute(&format!(
                "create sequence trouble; \
                 create function trouble() returns trigger language plpgsql as $$ begin \
                     if nextval('trouble') <= 3 then \
                         raise exception 'as it happens' using errcode = '{code}'; \
                     end if; \
                     return new; end $$; \
                 create trigger trouble before update on payments \
                     for each row execute function trouble()"
            ))
            .await;
        shop.run().await.ended(0);
        assert_eq!(shop.raw.one("select (last_value > 3)::text from trouble").await, "true");
        assert_paid_once(&shop, 1..=3).await;
    }
}

/// A trigger that says so of one row each time: that row needs a person, and the others are paid.
#[tokio::test]
async fn a_row_whose_trigger_always_raises_holds_up_no_other() {
    let passing = ["40001", "40P01", "55P03", "57014", "54001"];
    let servers = ["53100", "57P01", "08006", "XX000", "25006", "25P02", "55000", "58030"];
    for code in passing.into_iter().chain(servers) {
        let shop = shop_with(Words::default(), 1..=5).await;
        shop.raw
            .execute(&format!(
                "create function trouble() returns trigger language plpgsql as $$ begin \
                     if new.id = 2 then \
                         raise exception 'as it happens' using errcode = '{code}'; \
                     end if; \
                     return new; end $$; \
                 create trigger trouble before update on payments \
                     for each row execute function trouble()"
            ))
            .await;
        let ran = shop.run().await;
        assert!([Some(0), Some(3)].contains(&ran.code), "{code}: {ran:?}");
        assert_eq!(shop.open_cases().await, ["2 write_refused"], "{code}");
        let told = shop.raw.one("select text from tieout_cases").await;
        assert!(told.contains("as it happens"), "{told}");
        for id in [1, 3, 4, 5] {
            assert_eq!(shop.status(id).await, "paid", "{code}: row {id}");
        }
        assert_eq!(shop.status(2).await, "processing", "{code}");
        shop.check(false).await;
    }
}

/// What a row's trigger meets without raising it itself, in the words of the server's own trouble,
/// is that row's as well, while others are written.
#[tokio::test]
async fn what_a_rows_trigger_meets_is_that_rows() {
    let shop = shop_with(Words::default(), 1..=5).await;
    shop.raw
        .execute(
            "create function trouble() returns trigger language plpgsql as $$ begin \
                 if new.id = 2 then perform currval('never_used'); end if; \
                 return new; end $$; \
             create sequence never_used; \
             create trigger trouble before update on payments \
                 for each row execute function trouble()",
        )
        .await;
    let ran = shop.run().await;
    assert!([Some(0), Some(3)].contains(&ran.code), "{ran:?}");
    assert_eq!(shop.open_cases().await, ["2 write_refused"]);
    let told = shop.raw.one("select text from tieout_cases").await;
    assert!(told.contains("never_used") && told.contains("(55000)"), "{told}");
    for id in [1, 3, 4, 5] {
        assert_eq!(shop.status(id).await, "paid", "row {id}");
    }
    shop.check(false).await;
}

/// A row's trigger may write to another row of the same statement: then they are written apart.
#[tokio::test]
async fn a_row_whose_trigger_writes_to_another_holds_up_none() {
    let shop = shop_with(Words::default(), 1..=5).await;
    shop.raw
        .execute(
            "create function trouble() returns trigger language plpgsql as $$ begin \
                 if new.id = 2 then update payments set psp_ref = psp_ref where id = 5; end if; \
                 return new; end $$; \
             create trigger trouble before update on payments \
                 for each row execute function trouble()",
        )
        .await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=5).await;
    shop.check(false).await;
}

/// A run of rows 1 to 5 pays all but the second, and makes no case of that one.
async fn the_second_of_five_is_left(shop: &Shop) {
    let ran = shop.run().await;
    assert!([Some(0), Some(3)].contains(&ran.code), "{ran:?}");
    for id in [1, 3, 4, 5] {
        assert_eq!(shop.status(id).await, "paid", "row {id}");
    }
    assert_eq!(shop.status(2).await, "processing");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
}

/// A statement that its limit of time cancels for one row's trigger says nothing against that row:
/// it is left for the next run, and the others are paid.
#[tokio::test]
async fn a_row_whose_trigger_takes_too_long_holds_up_no_other() {
    let words = Words { database_more: "statement_timeout = \"2s\"", ..Words::default() };
    let shop = shop_with(words, 1..=5).await;
    shop.raw
        .execute(
            "create function trouble() returns trigger language plpgsql as $$ begin \
                 if new.id = 2 then perform pg_sleep(30); end if; \
                 return new; end $$; \
             create trigger trouble before update on payments \
                 for each row execute function trouble()",
        )
        .await;
    the_second_of_five_is_left(&shop).await;
    shop.raw.execute("drop trigger trouble on payments").await;
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=5).await;
}

/// What a row's trigger needs is held by another for long: that row is left for the next run, and
/// no case is made of it.
#[tokio::test]
async fn a_row_whose_trigger_waits_for_another_is_left_for_the_next_run() {
    let words = Words { database_more: "lock_timeout = \"1s\"", ..Words::default() };
    let shop = shop_with(words, 1..=5).await;
    shop.raw
        .execute(
            "create table parents (id bigint primary key, paid integer not null default 0); \
             insert into parents (id) select id from payments; \
             create function tell() returns trigger language plpgsql security definer as $$ begin \
                 update parents set paid = paid + 1 where id = new.id; \
                 return new; end $$; \
             create trigger tell before update on payments \
                 for each row execute function tell()",
        )
        .await;
    let mut other = shop.begin_holding(99).await;
    other.try_execute("select from parents where id = 2 for update").await.unwrap();
    the_second_of_five_is_left(&shop).await;
    other.rollback().await;
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=5).await;
    assert_eq!(shop.count("parents where paid = 1").await, 5);
}

/// Two lock the same rows in opposite order: whoever the server picks, nobody crashes.
#[tokio::test]
async fn a_deadlock_with_the_application_ends_well() {
    let shop = shop_with(Words::default(), 1..=2).await;
    // The application updates 2 and then 1; tieout is held at 1 until it has begun.
    let mut other = shop.begin_holding(2).await;
    let run = shop.program(&["run", "--json"]).spawn().unwrap();
    shop.raw.until_a_lock_is_waited_for().await;
    let _either = other.try_execute("update payments set note = 'mine' where id = 1").await;
    other.rollback().await;
    let ran = crate::run::shop::Ran::of(&run.wait_with_output().await.unwrap());
    assert!([Some(0), Some(3)].contains(&ran.code), "{ran:?}");
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=2).await;
}

/// Who holds a row for longer keeps it: it is left for the next run, and the others are decided.
#[tokio::test]
async fn a_row_that_somebody_holds_is_left_for_the_next_run() {
    let words = Words { database_more: "lock_timeout = \"1s\"", ..Words::default() };
    let shop = shop_with(words, 1..=3).await;
    let mut other = shop.begin_holding(2).await;
    let ran = shop.run().await;
    assert!([Some(0), Some(3)].contains(&ran.code), "{ran:?}");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.status(2).await, "processing");
    assert_eq!(shop.status(3).await, "paid");
    other.rollback().await;
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=3).await;
}
