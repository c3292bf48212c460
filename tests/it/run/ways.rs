//! The ways to run: modes, windows, limits, several tables, nothing to do.

use tieout::sandbox::seeds::Seed;

use super::files::{at_bank, with_bank};
use super::shop::{Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, tieout_now};
use crate::support::events;
use crate::support::raw::Raw;

on_both_databases!(
    observing_writes_no_status,
    what_a_mode_withheld_is_told,
    what_a_killed_run_withheld_is_told,
    succeed_only_withholds_hand_backs,
    the_stricter_mode_holds,
    nothing_due_says_nothing,
    a_good_run_from_cron_says_nothing,
    limits_are_kept,
    a_limit_that_nobody_asked_for_says_what_it_left,
    an_id_that_is_another_runs_is_a_mistake,
    ids_narrow_and_are_due,
    many_are_written_side_by_side,
    windows_narrow,
    a_run_ends_at_its_deadline,
    after_its_deadline_no_question_is_begun,
    times_in_the_future_are_not_nothing_due,
    a_status_that_nobody_mapped_is_seen,
    a_status_of_another_mapping_is_no_news,
    a_row_without_a_status_is_told,
    a_where_that_hides_every_stuck_row_is_seen,
    two_tables_in_one_run,
    a_tag_of_two_tables_settles_neither,
    a_paused_account_is_left_alone,
    a_paused_account_holds_up_no_other,
    a_pause_in_the_middle_of_a_run_is_no_success,
    after_a_pause_no_further_batch_is_asked_about,
    what_was_given_up_is_looked_at_once_more,
    without_its_tables_nothing_runs,
    a_report_that_cannot_be_written_is_made_later,
    what_ended_a_run_is_kept_with_it,
    a_trigger_that_a_deploy_broke_is_one_line_and_no_case,
    bytes_are_a_tag_as_a_view_writes_them,
);

/// Where the database writes two batches at a time, each has a chain of its own in the journal; not
/// where a trigger might make one of them wait for the other.
async fn many_are_written_side_by_side(engine: Engine) {
    let shop = Shop::open(engine).await;
    let rows: Vec<Payment> = (1..=1_600).map(Payment::stuck).collect();
    shop.insert(&rows).await;
    let written = async || {
        shop.due_now().await;
        let ran = shop.run().await.ended(0);
        let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
        let of_run = "select distinct writer from tieout_journal where run_id =";
        shop.texts(&format!("{of_run} '{run_id}' order by 1")).await
    };
    let several: &[&str] = if engine == Engine::Postgres { &["1", "2"] } else { &["1"] };
    // Where the first batch is written before the second is worked out, one writer does both.
    let mut runs = 1;
    while written().await != several {
        runs += 1;
        assert!(runs < 8, "never by {several:?}");
    }
    assert_eq!(shop.count("tieout_journal").await, 1_600 * runs);
    if engine == Engine::Postgres {
        shop.raw
            .execute(
                "create function touch() returns trigger language plpgsql as \
                 $$ begin return new; end $$; \
                 create trigger touched before update on payments \
                 for each row execute function touch()",
            )
            .await;
        assert_eq!(written().await, ["1"]);
    }
    shop.tieout(&["audit", "verify"]).await.ended(0);
    shop.check(false).await;
}

async fn with_captured(engine: Engine, words: Words, ids: std::ops::RangeInclusive<i64>) -> Shop {
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let rows: Vec<Payment> = ids.map(Payment::stuck).collect();
    shop.insert(&rows).await;
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop
}

async fn observing_writes_no_status(engine: Engine) {
    let words = Words { account_mode: "observe", ..Words::default() };
    let shop = with_captured(engine, words, 1..=3).await;
    shop.insert(&[Payment::stuck(9)]).await;
    let payments = shop.dump().await.remove("payments");
    shop.run_until_proven().await;
    let verdicts = shop
        .texts(
            "select distinct key || ' ' || outcome || ' ' || applied from tieout_journal \
             where outcome <> 'wait' order by 1",
        )
        .await;
    let withheld = "succeeded withheld";
    let wanted = [format!("1 {withheld}"), format!("2 {withheld}"), format!("3 {withheld}")];
    assert_eq!(verdicts[..3], wanted);
    assert_eq!(verdicts[3..], ["9 retryable withheld"]);
    assert_eq!(shop.dump().await.remove("payments"), payments);
    assert_eq!(shop.count("tieout_outbox").await, 0);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(false).await;
}

/// Who reads the summary does not take withheld rows for written ones.
async fn what_a_mode_withheld_is_told(engine: Engine) {
    let words = Words { account_mode: "observe", ..Words::default() };
    let shop = with_captured(engine, words, 1..=3).await;
    let ran = shop.tieout(&["run", "--verbose"]).await.ended(0);
    let told = "withheld 3 rows by the mode: nothing was written or handed back";
    assert!(ran.stdout.lines().any(|line| line == told), "{}", ran.stdout);
    let shown = shop.tieout(&["runs", "show"]).await.ended(0).stdout;
    assert!(shown.lines().any(|line| line == told), "{shown}");
    assert_eq!(shop.status(1).await, "processing");
    shop.check(false).await;
}

/// What no run noted at its end stands in its records: nobody takes it for written.
async fn what_a_killed_run_withheld_is_told(engine: Engine) {
    let words = Words { account_mode: "observe", ..Words::default() };
    let shop = with_captured(engine, words, 1..=3).await;
    shop.run().await.ended(0);
    // As a process leaves it that is killed before it can close its run.
    shop.change_runs(
        "state = 'running', notes = '{}', ended_at = null, exit_code = null, exit_class = null, \
         close_number = null, prev_close_hash = null, close_hash = null",
    )
    .await;
    let run = shop.texts("select id from tieout_runs").await.remove(0);
    let told = "withheld 3 rows by the mode: nothing was written or handed back";
    let says_so = async |state: &str| {
        let shown = shop.tieout(&["runs", "show", &run]).await.ended(0).stdout;
        assert!(shown.contains(&format!(" · {state}")), "{shown}");
        assert!(shown.lines().any(|line| line == told), "{shown}");
        let json = shop.tieout(&["runs", "show", &run, "--json"]).await.ended(0);
        assert_eq!(json.of_type("run")[0]["notes"]["withheld"], 3, "{}", json.stdout);
        events::check(&json.stdout);
        shown
    };
    let shown = says_so("running").await;
    let dies = "silent for 120 s it counts as dead, and the next `tieout run` closes it";
    assert!(shown.contains(dies), "{shown}");
    shop.ten_minutes_pass().await;
    shop.run().await.ended(0);
    let shown = says_so("abandoned").await;
    assert!(shown.contains("tie-out  EUR residual 0.00 ✓"), "{shown}");
    let written = "payments where id <= 3 and status <> 'processing'";
    assert_eq!(shop.count(written).await, 0);
    shop.check(false).await;
}

async fn succeed_only_withholds_hand_backs(engine: Engine) {
    let words = Words { table_mode: "succeed_only", ..Words::default() };
    let shop = with_captured(engine, words, 1..=2).await;
    shop.insert(&[Payment::stuck(9)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.status(9).await, "processing");
    let applied =
        shop.texts("select distinct applied from tieout_journal where outcome = 'retryable'").await;
    assert_eq!(applied, ["withheld"]);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(false).await;
}

async fn the_stricter_mode_holds(engine: Engine) {
    let words = Words { table_mode: "full", account_mode: "succeed_only", ..Words::default() };
    let shop = with_captured(engine, words, 1..=1).await;
    shop.insert(&[Payment::stuck(9)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.status(9).await, "processing");
    shop.check(false).await;
}

async fn nothing_due_says_nothing(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(20).await;
    shop.sandbox.clear_requests();
    let before = shop.files();
    let ran = shop.tieout(&["run"]).await.ended(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(shop.sandbox.total_requests(), 0, "nobody is asked about nothing");
    assert_eq!(shop.files(), before, "no report of nothing");
    assert_eq!(shop.texts("select state from tieout_runs").await, ["complete"]);
    shop.run_with(&["--fail-on", "empty"]).await.ended(4);
    shop.check(false).await;
}

async fn a_good_run_from_cron_says_nothing(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=3).await;
    let ran = shop.tieout(&["run"]).await.ended(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(shop.count("payments where status = 'paid'").await, 63);
    let reports: Vec<_> = shop.files();
    assert!(reports.iter().any(|path| path.ends_with("manifest.json")), "{reports:?}");
    shop.check(false).await;
}

async fn limits_are_kept(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=10).await;
    for words in [["--concurrency", "0"], ["--concurrency", "257"], ["--rate", "fast"]] {
        let ran = shop.run_with(&words).await.ended(2);
        assert!(ran.stderr.contains("expected 1 to"), "{}", ran.stderr);
        assert_eq!(shop.sandbox.total_requests(), 0);
    }
    let mut by_variable = shop.program(&["run"]);
    let ran = by_variable.env("TIEOUT_RATE", "fast").spawn().unwrap();
    let ran = Ran::once_over(ran).await.ended(10);
    assert!(ran.stderr.contains("TIEOUT_RATE: `fast`: expected 1 to 1000"), "{}", ran.stderr);
    // Words of the command line, not of the file.
    for words in [
        ["--limit", "0"],
        ["--min-age", "x"],
        ["--max-duration", "0s"],
        ["--tz", "Mars/X"],
        ["--fail-on", "x"],
        ["--scope", "a/b"],
        ["--since", "99999999d"],
    ] {
        let ran = shop.run_with(&words).await.ended(2);
        assert!(ran.stderr.contains(words[0]), "{}", ran.stderr);
        assert!(ran.stderr.contains("nothing was done"), "{}", ran.stderr);
        assert_eq!(shop.count("tieout_runs").await, 0, "{words:?}");
    }
    for left in [7, 4, 1, 0, 0] {
        shop.run_with(&["--limit", "3", "--concurrency", "1", "--rate", "50/s"]).await.ended(0);
        assert_eq!(shop.count("payments where status = 'processing'").await, left);
    }
    shop.check(false).await;
}

async fn a_limit_that_nobody_asked_for_says_what_it_left(engine: Engine) {
    let words = Words { limits: "rows = 3".to_owned(), ..Words::default() };
    let shop = with_captured(engine, words, 1..=7).await;
    let told = "limit: 3 rows were taken (limits.rows); rows still due were left";
    let ran = shop.tieout(&["run", "--dry-run"]).await.ended(3);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(ran.stdout.contains(" · due rows, at most 3\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("would decide 3 rows"), "{}", ran.stdout);
    let ran = shop.run().await.ended(3);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let manifest = shop.files().into_iter().find(|path| path.ends_with("manifest.json")).unwrap();
    let manifest = std::fs::read_to_string(manifest).unwrap();
    assert!(manifest.contains(told), "{manifest}");
    assert_eq!(shop.count("payments where status = 'processing'").await, 4);
    // Whoever asks for so few knows that there may be more; where none is left, none is told of.
    let ran = shop.run_with(&["--limit", "1"]).await.ended(0);
    assert_eq!((ran.verdicts().len(), ran.stderr.as_str()), (1, ""));
    for dry in [&["--dry-run"][..], &[]] {
        let ran = shop.run_with(dry).await.ended(0);
        assert_eq!((ran.verdicts().len(), ran.stderr.as_str()), (3, ""));
    }
    assert_eq!(shop.count("payments where status = 'processing'").await, 0);
    shop.check(false).await;
}

async fn an_id_that_is_another_runs_is_a_mistake(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=1).await;
    let id = "01900000-0000-7000-8000-000000000001";
    shop.run_with(&["--run-id", id]).await.ended(0);
    shop.insert(&[Payment::stuck(2)]).await;
    let before = shop.dump().await;
    let ran = shop.run_with(&["--run-id", id]).await.ended(2);
    let told = format!("run {id} exists already (complete, begun ");
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing was done"), "{}", ran.stderr);
    assert!(ran.stderr.contains("leave --run-id out"), "{}", ran.stderr);
    assert_eq!(shop.dump().await, before);
}

async fn ids_narrow_and_are_due(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=5).await;
    let ran = shop.run_with(&["--id", "2", "--id", "4"]).await.ended(0);
    assert_eq!(ran.verdicts().into_keys().collect::<Vec<_>>(), ["2", "4"]);
    let file = shop.folder().join("ids.txt");
    std::fs::write(&file, "\u{feff}1\r\n\n 5 \n").unwrap();
    let ran = shop.run_with(&["--ids-from", file.to_str().unwrap()]).await.ended(0);
    assert_eq!(ran.verdicts().into_keys().collect::<Vec<_>>(), ["1", "5"]);
    assert_eq!(shop.status(3).await, "processing");
    // One that is not there is a mistake, and nothing is done; one that is done is named.
    let runs = shop.count("tieout_runs").await;
    // An empty word, as of a shell's variable that is not set, is not every row.
    for flag in ["--id", "--ids-from", "--psp", "--date", "--from", "--to", "--since"] {
        let ran = shop.run_with(&[flag, ""]).await.ended(2);
        let told = format!("{flag} is empty; nothing was done");
        assert!(ran.verdicts().is_empty() && ran.stderr.contains(&told), "{ran:?}");
    }
    for dry in [&[][..], &["--dry-run"]] {
        for (named, is) in [("999", "row 999 is"), ("nope", "row nope is")] {
            let ran = shop.run_with(&[&["--id", "3", "--id", named], dry].concat()).await.ended(2);
            assert!(ran.verdicts().is_empty() && ran.stderr.contains(is), "{ran:?}");
            assert!(ran.stderr.contains("in none of the mapped tables; nothing was done"));
        }
        let ran = shop.run_with(&[&["--id", "2"], dry].concat()).await.ended(0);
        assert!(ran.verdicts().is_empty(), "{ran:?}");
        let why = "row 2 of payments was not looked at: its status is `paid`, which is not stuck";
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    assert_eq!(
        (shop.status(3).await.as_str(), shop.count("tieout_runs").await),
        ("processing", runs + 1)
    );
    // One that `where` leaves out is there, and is not looked at.
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let left_out = "account = [\"account\"]\nwhere = [{ column = \"id\", not_in = [3] }]";
    std::fs::write(&path, text.replace("account = [\"account\"]", left_out)).unwrap();
    let ran = shop.run_with(&["--id", "3", "--dry-run"]).await.ended(0);
    let why = "row 3 of payments was not looked at: the mapping's where leaves it out";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    std::fs::write(&path, text).unwrap();
    // Due or not: a row that is planned for later is looked at when it is named.
    shop.insert(&[Payment::stuck(9)]).await;
    shop.run().await.ended(0);
    assert_eq!(shop.run().await.ended(0).verdict(9), "not decided");
    let named = shop.run_with(&["--id", "9"]).await.ended(0);
    assert!(named.verdict(9).starts_with("wait "), "{}", named.verdict(9));
    shop.check(false).await;
}

async fn windows_narrow(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(20).await;
    let hour = 3_600;
    let old = Payment { age: 50 * hour, attempted: Some(50 * hour), ..Payment::stuck(1) };
    let retried = Payment { age: 50 * hour, attempted: Some(hour), ..Payment::stuck(2) };
    let young = Payment { age: hour, attempted: Some(hour), ..Payment::stuck(3) };
    for row in [&old, &retried, &young] {
        shop.plant(vec![row.captured()]);
    }
    shop.insert(&[old, retried, young]).await;
    let keys = |ran: super::shop::Ran| ran.verdicts().into_keys().collect::<Vec<_>>();
    let on = ["--dry-run", "--on", "attempted"];
    let since = |span: &'static str| ["--dry-run", "--since", span];
    assert_eq!(keys(shop.run_with(&since("2h")).await), ["3"]);
    assert_eq!(keys(shop.run_with(&since("60h")).await), ["1", "2", "3"]);
    let attempted = [on.as_slice(), &["--since", "2h"]].concat();
    assert_eq!(keys(shop.run_with(&attempted).await), ["2", "3"]);
    let (from, to) = (at_text(tieout_now() - 51 * hour), at_text(tieout_now() - 49 * hour));
    let instants = ["--dry-run", "--from", &from, "--to", &to];
    assert_eq!(keys(shop.run_with(&instants).await), ["1", "2"]);
    let attempted = [on.as_slice(), &["--from", &from, "--to", &to]].concat();
    assert_eq!(keys(shop.run_with(&attempted).await), ["1"]);
    // And for real: what is outside of the window stays.
    shop.run_with(&["--since", "2h"]).await.ended(0);
    assert_eq!(shop.count("payments where status = 'processing'").await, 2);
    shop.check(false).await;
}

async fn a_run_ends_at_its_deadline(engine: Engine) {
    let words = Words { limits: "batch = 1".to_owned(), ..Words::default() };
    let shop = with_captured(engine, words, 1..=40).await;
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 150);
    let ran = shop.run_with(&["--max-duration", "1s"]).await.ended(3);
    assert!(ran.stderr.contains("deadline"), "{}", ran.stderr);
    let left = shop.count("payments where status = 'processing'").await;
    assert!((1..40).contains(&left), "{left} left");
    assert_eq!(shop.count("tieout_checks where lease_run is not null").await, 0);
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 0);
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'processing'").await, 0);
    shop.check(false).await;
}

/// One batch, of a PSP that takes its time: what was not asked by then is given back, and nothing
/// is made of it. Where nothing was left, nothing is said to be.
async fn after_its_deadline_no_question_is_begun(engine: Engine) {
    let mut words = Words::default().patient();
    words.account.push_str("concurrency = 1\n");
    let shop = with_captured(engine, words.clone(), 1..=40).await;
    shop.insert(&[Payment::stuck(50)]).await;
    let began = std::time::Instant::now();
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 700);
    let ran = shop.run_with(&["--max-duration", "1s"]).await.ended(3);
    let told = "deadline: 1s are over; rows still due were left";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(!ran.stderr.contains("no answer"), "{}", ran.stderr);
    assert!(began.elapsed().as_secs() < 15, "{:?}", began.elapsed());
    assert!(shop.sandbox.total_requests() <= 3, "{}", shop.sandbox.total_requests());
    // Given back: due at once, with nothing kept against them.
    assert_eq!(ran.verdict(50), "not decided");
    let open = "tieout_checks where key = '50' and state = 'open' and lease_run is null";
    assert_eq!(shop.count(&format!("{open} and misses = '[]' and unanswered = 0")).await, 1);
    assert_eq!(shop.count("tieout_accounts where unanswered_since is not null").await, 0);
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 0);
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'processing'").await, 1);
    shop.check(false).await;
    // A question that is under way may end; where that was the only one, nothing was left.
    let mut shop = Shop::open_with(engine, words).await;
    let row = Payment { psp_ref: Some("pi_1".to_owned()), ..Payment::stuck(1) };
    shop.plant(vec![row.captured()]);
    shop.insert(&[row]).await;
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 1_300);
    let ran = shop.run_with(&["--max-duration", "1s"]).await;
    // On a machine that takes a second to begin, it is left.
    let is_left = ran.verdict(1) == "not decided";
    assert_eq!(ran.stderr.contains(told), is_left, "{ran:?}");
    assert_eq!(ran.code, Some(if is_left { 3 } else { 0 }), "{}", ran.stderr);
    shop.check(false).await;
}

/// Rows whose times lie ahead are never due: that is said, and they are not passed over in silence.
async fn times_in_the_future_are_not_nothing_due(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(20).await;
    let day = 24 * 3_600;
    let sent = Payment { attempted: Some(-day), ..Payment::stuck(1) };
    let made = Payment { age: -day, attempted: None, ..Payment::stuck(2) };
    shop.insert(&[sent, made]).await;
    shop.plant(vec![Payment::stuck(1).captured()]);
    for words in [&["--dry-run"][..], &[]] {
        let ran = shop.run_with(words).await.ended(3);
        let told = "table payments: 2 stuck rows have times in the future (the newest ";
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
        assert!(ran.stderr.contains("): is `time` right?"), "{}", ran.stderr);
        assert!(ran.verdicts().is_empty(), "{ran:?}");
    }
    // A clock that is a minute off, and a row that only its window leaves out, are no news.
    let near = Payment { attempted: Some(-60), ..Payment::stuck(3) };
    shop.insert(&[near]).await;
    let told = shop.run().await.ended(3).stderr;
    assert!(told.contains("2 stuck rows"), "{told}");
    // Named, they are looked at, and what was paid is seen.
    let ran = shop.run_with(&["--id", "1"]).await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded captured");
    let ran = shop.run_with(&["--id", "2"]).await.ended(0);
    assert!(ran.verdict(2).starts_with("wait "), "{}", ran.verdict(2));
    let text = ran.of_type("verdict")[0]["text"].to_string();
    assert!(text.contains("lies in the future"), "{text}");
    shop.check(false).await;
}

async fn a_status_that_nobody_mapped_is_seen(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=1).await;
    let new = Payment { status: "capture_pending", ..Payment::stuck(2) };
    shop.insert(&[new]).await;
    let ran = shop.run().await.ended(3);
    assert_eq!(ran.verdict(1), "succeeded captured", "the others are looked at all the same");
    assert_eq!(ran.of_type("unmapped_status")[0]["value"], "capture_pending");
    assert!(ran.stderr.contains("`capture_pending`"), "{}", ran.stderr);
    assert_eq!(shop.status(2).await, "capture_pending");
    // Nor is "nothing is due" the last word where no index leads with the status.
    shop.raw.execute("drop index payments_status").await;
    let ran = shop.run().await.ended(3);
    assert_eq!(ran.of_type("unmapped_status")[0]["value"], "capture_pending");
    shop.check(false).await;
}

/// What is left out by mistake is told until a row passes; what is left out on purpose, never.
async fn a_where_that_hides_every_stuck_row_is_seen(engine: Engine) {
    let misspelt = "where = [{ column = \"via\", in = [\"Stripe\"] }]";
    let shop = Shop::open(engine).await;
    shop.raw.execute("alter table payments add column via text default 'stripe'").await;
    shop.raw.execute("alter table payments add column hidden boolean").await;
    let quiet = async || {
        let ran = shop.run().await.ended(0);
        assert!(!ran.stderr.contains("where leaves out"), "{}", ran.stderr);
    };
    let told = async |more: &[&str], part: &str| {
        let ran = shop.run_with(more).await.ended(3);
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    };
    let path = shop.folder().join("tieout.toml");
    let filter = |from: &str, to: &str| {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in\n{text}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    };
    let status = "status = \"status\"\n";
    filter(status, &format!("{status}{misspelt}\n"));
    quiet().await;
    shop.insert(&[Payment::stuck(1)]).await;
    let said = "table payments: where leaves out 1 of 1 looked-at rows";
    told(&[], said).await;
    told(&["--dry-run"], said).await;
    // A value that may be to come.
    let to_come = misspelt.replace("Stripe", "braintree");
    filter(misspelt, &to_come);
    quiet().await;
    filter(&to_come, misspelt);
    // One of another PSP: somebody's row passes, though none that is stuck.
    shop.insert(&[Payment { status: "paid", ..Payment::stuck(2) }]).await;
    shop.raw.execute("update payments set via = 'Stripe' where id = 2").await;
    quiet().await;
    // A row that was deleted.
    let flag = "where = [{ column = \"hidden\", in = [false] }]";
    filter(misspelt, "where = [{ column = \"via\", not_in = [\"stripe\"] }]");
    quiet().await;
    filter("where = [{ column = \"via\", not_in = [\"stripe\"] }]", flag);
    shop.raw.execute("update payments set hidden = false where id = 2").await;
    told(&[], "in them it is NULL (1)").await;
    shop.raw.execute("update payments set hidden = true where id = 1").await;
    quiet().await;
    // Once a row was taken, others are left out as they may be.
    shop.raw.execute("update payments set hidden = false where id = 1").await;
    quiet().await;
    assert_eq!(shop.count("tieout_checks").await, 1);
    shop.raw.execute("update payments set hidden = null where id = 1").await;
    quiet().await;
}

const REFUNDS: &str = r#"
[[table]]
name = "refunds"
read = "refunds"
key = ["id"]
tag = "refund-{id}"
kind = { const = "refund" }
amount = { column = "cents", unit = "minor" }
currency = { const = "EUR" }
account = []
accounts = { "*" = "shop" }
status = "status"
created = "made"
attempts = "once"
psp_reference = "re_id"
mode = "full"
map = [{ from = ["sent"], succeeded = "done", failed = "failed", retryable = "again" }]
"#;

/// Two mappings of one table, each of its own part: what the one names, the other may pass over.
async fn a_status_of_another_mapping_is_no_news(engine: Engine) {
    let backs = r#"
[[table]]
name = "backs"
read = "payments"
where = [{ column = "note", in = ["back"] }]
key = ["id"]
tag = "back_{id}"
kind = { const = "refund" }
amount = { column = "amount", unit = "minor" }
currency = { column = "currency" }
account = ["account"]
accounts = { live = "shop" }
status = "status"
created = "created_at"
attempted = "attempted_at"
mode = "full"
map = [{ from = ["processing"], succeeded = "paid" }]
"#;
    let table = "where = [{ column = \"note\", not_in = [\"back\"] }]\n".to_owned();
    let words = Words { table, more: backs.to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    let rows: Vec<Payment> = (1..=3).map(Payment::stuck).collect();
    shop.plant(vec![rows[0].captured()]);
    shop.insert(&rows).await;
    shop.raw.execute("update payments set note = 'pay'").await;
    shop.raw.execute("update payments set status = 'cart' where id = 2").await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded captured");
    let told = shop.tieout(&["doctor", "--json"]).await.stdout;
    assert!(!told.contains("status_unmapped"), "{told}");
    // What neither names is told by both.
    shop.raw.execute("update payments set status = 'odd' where id = 3").await;
    let ran = shop.run().await.ended(3);
    assert_eq!(ran.of_type("unmapped_status").len(), 2);
    shop.check(false).await;
}

async fn a_row_without_a_status_is_told(engine: Engine) {
    let words = Words { more: REFUNDS.to_owned(), ..Words::default() };
    let shop = with_captured(engine, words, 1..=1).await;
    for sql in [
        "drop table refunds",
        "create table refunds (id bigint primary key, status text, cents bigint not null, \
         made timestamptz not null, re_id text)",
        "insert into refunds values (1, null, 70, '2026-01-01T00:00:00Z', null)",
    ] {
        shop.raw.execute(sql).await;
    }
    if engine == Engine::Postgres {
        shop.raw.execute("grant select, update on refunds to public").await;
    }
    let ran = shop.run().await.ended(3);
    assert_eq!(ran.of_type("unmapped_status")[0]["value"], "NULL");
    assert!(ran.stderr.contains("table refunds: status is NULL in some rows"), "{}", ran.stderr);
    assert_eq!(shop.status(1).await, "paid", "the others are looked at all the same");
    let told = shop.tieout(&["doctor", "--json"]).await.stdout;
    assert!(told.contains("status is NULL in some rows"), "{told}");
    shop.check(false).await;
}

async fn two_tables_in_one_run(engine: Engine) {
    use tieout::sandbox::seeds::{Seed, SeedKind};
    let words = Words { more: REFUNDS.to_owned(), ..Words::default() };
    let mut shop = with_captured(engine, words, 1..=3).await;
    let now = tieout_now();
    let refund = |id: i64, age: i64| Seed {
        kind: SeedKind::Refund,
        id: Some(format!("re_{id}")),
        ..Seed::captured("order_id", &format!("refund-{id}"), 70 + id, "eur").created_at(now - age)
    };
    // Refunds that were made, and one that was not; the last is the witness.
    for id in (1..=12).filter(|id| *id != 7) {
        shop.plant(vec![refund(id, 1_800 - 100 * id)]);
    }
    for id in 1..=12 {
        let status = if [1, 2, 7].contains(&id) { "sent" } else { "done" };
        let made = at_text(now - 1_801 + 100 * id);
        let sql = format!(
            "insert into refunds (id, status, cents, made) values ({id}, '{status}', {}, '{made}')",
            70 + id
        );
        shop.raw.execute(&sql).await;
    }
    // A key alone names no row where there are several tables.
    let dry = shop.tieout(&["run", "--dry-run"]).await;
    assert!(dry.stdout.contains("\n  1 of refunds  sent → done"), "{}", dry.stdout);
    let ran = shop.run().await.ended(0);
    let tables: Vec<_> =
        ran.of_type("claimed").iter().map(|event| event["table"].to_string()).collect();
    assert_eq!(tables, ["\"payments\"", "\"refunds\""]);
    let told = shop.tieout(&["explain", "1", "--table", "refunds"]).await.ended(0);
    assert!(told.stdout.contains("nothing is sent again: the money moved"), "{}", told.stdout);
    let done = shop.texts("select status from refunds where id in (1, 2) order by id").await;
    assert_eq!(done, ["done", "done"]);
    assert_eq!(shop.count("payments where status = 'paid'").await, 63);
    let totals = shop
        .texts(
            "select table_name || ' ' || currency || ' ' || cast(rows as text) || ' ' || \
             cast(amount_minor as text) from tieout_run_totals where side = 'claimed' order by 1",
        )
        .await;
    assert_eq!(totals, ["payments EUR 3 30006", "refunds EUR 3 -220"]);
    shop.run_until_proven().await;
    let again = shop.texts("select status from refunds where id = 7").await;
    let said =
        shop.texts("select reason || ': ' || text from tieout_journal where key = '7'").await;
    assert_eq!(again, ["again"], "a refund that was never made may be made again: {said:#?}");
    shop.check(false).await;
}

/// Two tables that both charge by one tag: which of the rows a payment pays for cannot be told, and
/// the table that stands first has no better claim, nor has a row that is not stuck any more.
async fn a_tag_of_two_tables_settles_neither(engine: Engine) {
    let orders = REFUNDS
        .replace("name = \"refunds\"", "name = \"orders\"")
        .replace("refund-{id}", "pay_{id}")
        .replace("{ const = \"refund\" }", "{ const = \"charge\" }");
    let words = Words { more: orders, ..Words::default() };
    let shop = with_captured(engine, words, 1..=3).await;
    let made = at_text(tieout_now() - 2_400);
    for (id, status) in [(1, "sent"), (2, "done")] {
        let sql = format!(
            "insert into refunds (id, status, cents, made) \
             values ({id}, '{status}', {}, '{made}')",
            10_000 + id
        );
        shop.raw.execute(&sql).await;
    }
    let verdicts = |ran: &super::shop::Ran| {
        let words = ["table", "txn_id", "outcome", "reason"];
        let text = |event: &serde_json::Value| {
            words.map(|word| event[word].as_str().unwrap_or_default().to_owned()).join(" ")
        };
        let mut all: Vec<String> = ran.of_type("verdict").iter().map(text).collect();
        all.sort();
        all
    };
    let expected = [
        "orders 1 review tag_unusable",
        "payments 1 review tag_unusable",
        "payments 2 review tag_unusable",
        "payments 3 succeeded captured",
    ];
    let rehearsed = shop.run_with(&["--dry-run"]).await;
    assert_eq!(verdicts(&rehearsed), expected, "{}", rehearsed.stderr);
    let ran = shop.run().await;
    assert_eq!(verdicts(&ran), expected, "{}", ran.stderr);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "processing"]);
    assert_eq!(shop.status(3).await, "paid");
    let left = shop.texts("select status from refunds order by id").await;
    assert_eq!(left, ["sent", "done"]);

    // What a row of another table succeeded by is told with that table.
    let stores = format!(
        "insert into refunds (id, status, cents, made, re_id) \
         values (9, 'sent', 10003, '{made}', 'pi_3')"
    );
    shop.raw.execute(&stores).await;
    let ran = shop.run().await;
    assert_eq!(verdicts(&ran), ["orders 9 review reference_claimed"], "{}", ran.stderr);
    let text = ran.of_type("verdict")[0]["text"].to_string();
    assert!(text.contains("already belongs to row 3 of payments"), "{text}");
    shop.check(false).await;
}

async fn what_was_given_up_is_looked_at_once_more(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let failed = |id| Payment { status: "failed", ..Payment::stuck(id) };
    // 1 was paid at the PSP, 2 was not, 3 cannot be asked about, 4 is too old to be asked about.
    let nameless = Payment { account: "nobody", ..failed(3) };
    let old = Payment { age: 9 * 86_400, attempted: Some(9 * 86_400), ..failed(4) };
    shop.plant(vec![failed(1).captured(), old.captured()]);
    shop.insert(&[failed(1), failed(2), nameless, old]).await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("tieout_checks").await, 0, "nothing is stuck");
    let ran = shop.run_with(&["--all"]).await.ended(2);
    assert!(ran.stderr.contains("--all needs a beginning"), "{}", ran.stderr);
    let window = ["--all", "--since", "3d"];
    let would = shop.run_with(&[&window[..], &["--dry-run"]].concat()).await.ended(0);
    assert_eq!(shop.count("tieout_checks").await, 0, "a dry run writes nothing");
    for time in 1..=2 {
        let ran = shop.run_with(&window).await.ended(0);
        assert_eq!(ran.verdict(2), "wait watched", "{ran:?}");
        assert_eq!(ran.verdict(3), "wait watched", "{ran:?}");
        assert_eq!(ran.verdict(4), "not decided");
        let first = if time == 1 { "review late_contradiction" } else { "not decided" };
        assert_eq!(ran.verdict(1), first, "a case waits for a person");
        assert_eq!(shop.open_cases().await, ["1 late_contradiction"]);
    }
    for id in [1, 2, 3] {
        assert_eq!(would.verdict(id).split(' ').count(), 2, "{would:?}");
        assert_eq!(shop.status(id).await, "failed", "a look changes no row");
    }
    assert_eq!(would.verdict(1), "review late_contradiction");
    shop.check(false).await;
}

async fn a_paused_account_is_left_alone(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=2).await;
    let now = at_text(tieout_now());
    shop.raw
        .execute(&format!(
            "insert into tieout_accounts (account, paused_at, paused_by, paused_why) \
             values ('shop', '{now}', 'ops', 'migration')"
        ))
        .await;
    let ran = shop.run().await.ended(3);
    assert!(ran.stderr.contains("paused (migration)"), "{}", ran.stderr);
    assert_eq!(shop.sandbox.total_requests(), 0);
    assert_eq!(shop.count("payments where status = 'processing'").await, 2);
    shop.raw.execute("update tieout_accounts set paused_at = null, paused_by = null").await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'processing'").await, 0);
    shop.check(false).await;
}

/// Whoever stops an account in haste is told why nothing happens.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_says_what_it_waits_for() {
    let shop = Shop::open(Engine::Postgres).await;
    let Raw::Postgres(pool) = &shop.raw else { unreachable!() };
    let mut batch = pool.begin().await.unwrap();
    sqlx::query("select account from tieout_accounts where paused_at is not null for share")
        .execute(&mut *batch)
        .await
        .unwrap();
    let pausing = shop.tieout(&["pause", "shop", "--why", "a test"]);
    let ends = async {
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        batch.commit().await.unwrap();
    };
    let (paused, ()) = tokio::join!(pausing, ends);
    let paused = paused.ended(0);
    let note = "tieout: note: waiting for a batch that was begun before to end\n";
    assert_eq!(paused.stderr, note);
    assert!(paused.stdout.starts_with("shop is paused since "), "{}", paused.stdout);
    shop.check(false).await;
}

/// Its rows stand first, and are as many as a run takes: the other account's have their turn in the
/// next run all the same.
async fn a_paused_account_holds_up_no_other(engine: Engine) {
    let shop = with_captured(engine, with_bank(), 9..=9).await;
    let rows: Vec<Payment> = (1..=3).map(|id| at_bank(id, "processing")).collect();
    shop.insert(&rows).await;
    for account in ["bank", "shop"] {
        shop.tieout(&["pause", account, "--why", "a test"]).await.ended(0);
    }
    // All are known, and due at one time.
    shop.run().await.ended(3);
    shop.due_now().await;
    shop.tieout(&["resume", "shop"]).await.ended(0);
    let few = ["--limit", "2"];
    assert_eq!(shop.run_with(&few).await.ended(3).verdict(9), "not decided");
    assert_eq!(shop.run_with(&few).await.ended(3).verdict(9), "succeeded captured");
    shop.check(false).await;
}

async fn a_pause_in_the_middle_of_a_run_is_no_success(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=2).await;
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 1_500);
    let child = shop.program(&["run", "--json"]).spawn().unwrap();
    // Asked about, and not answered yet: the rows are claimed, and nothing of them is written.
    while shop.sandbox.total_requests() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let now = at_text(tieout_now());
    shop.raw
        .execute(&format!(
            "insert into tieout_accounts (account, paused_at, paused_by, paused_why) \
             values ('shop', '{now}', 'ops', 'migration')"
        ))
        .await;
    let ran = Ran::of(&child.wait_with_output().await.unwrap()).ended(3);
    assert!(ran.stderr.contains("paused meanwhile (migration)"), "{}", ran.stderr);
    // Nothing about the rows changed, and nothing says so.
    let told = ran.of_type("not_applied");
    assert!(told.len() == 2 && told.iter().all(|row| row["why"] == "paused"), "{told:?}");
    // Nothing was examined, whatever was decided before.
    let end = &ran.of_type("run_end")[0];
    assert_eq!((&end["examined"], &end["waits"]), (&0.into(), &serde_json::json!({})), "{end}");
    assert!(ran.stderr.contains(" examined=0 "), "{}", ran.stderr);
    let tied = &ran.of_type("tieout")[0];
    assert_eq!((&tied["accounted_rows"], &tied["tied"]), (&2.into(), &true.into()), "{tied}");
    let shown = shop.tieout(&["runs", "show"]).await.ended(0).stdout;
    assert!(shown.contains("given back") && !shown.contains("changed meanwhile"), "{shown}");
    assert_eq!(shop.count("payments where status = 'processing'").await, 2);
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 0);
    shop.raw.execute("update tieout_accounts set paused_at = null, paused_by = null").await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'processing'").await, 0);
    shop.check(false).await;
}

/// What is asked about when the pause comes is answered; what is claimed after it is given back.
async fn after_a_pause_no_further_batch_is_asked_about(engine: Engine) {
    let words = Words { limits: "batch = 1".to_owned(), ..Words::default() };
    let shop = with_captured(engine, words, 1..=3).await;
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 1_500);
    let child = shop.program(&["run", "--json"]).spawn().unwrap();
    while shop.sandbox.total_requests() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let now = at_text(tieout_now());
    shop.raw
        .execute(&format!(
            "insert into tieout_accounts (account, paused_at, paused_by, paused_why) \
             values ('shop', '{now}', 'ops', 'migration')"
        ))
        .await;
    shop.sandbox.behave(|behaviour| behaviour.latency_ms = 0);
    let ran = Ran::of(&child.wait_with_output().await.unwrap()).ended(3);
    let asked = ran.of_type("asking");
    assert!(asked.len() == 1 && asked[0]["rows"] == 1, "{asked:?}");
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let left = "account shop is paused (migration); 2 rows released undecided";
    assert!(said.contains(left), "{said}");
    assert_eq!(shop.count("payments where status = 'processing'").await, 3);
    shop.tieout(&["resume", "shop"]).await.ended(0);
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'processing'").await, 0);
    shop.check(false).await;
}

async fn without_its_tables_nothing_runs(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=1).await;
    shop.raw.execute("drop table tieout_migrations").await;
    let ran = shop.run().await.ended(15);
    assert!(ran.stderr.contains("db migrate"), "{}", ran.stderr);
    assert_eq!(shop.status(1).await, "processing");
}

async fn a_report_that_cannot_be_written_is_made_later(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=2).await;
    let in_its_place = shop.folder().join("reports");
    std::fs::write(&in_its_place, "a file").unwrap();
    let ran = shop.run().await.ended(3);
    assert!(ran.stderr.contains("its report could not be written"), "{}", ran.stderr);
    // All else is told as by every run, and this run is named.
    assert_eq!(ran.of_type("verdict").len(), 2);
    let end = ran.of_type("run_end").remove(0);
    assert_eq!((&end["exit"], &end["report"]), (&3.into(), &serde_json::Value::Null), "{end}");
    let run = end["run_id"].as_str().unwrap();
    assert!(ran.stderr.contains(&format!("then `tieout report build {run}`")), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("tieout: run {run} exit=3")), "{}", ran.stderr);
    assert!(ran.stderr.contains("reports is a file, and stands where a folder"), "{}", ran.stderr);
    assert_eq!(shop.status(1).await, "paid");
    std::fs::remove_file(&in_its_place).unwrap();
    shop.tieout(&["report", "build", run]).await.ended(0);
    shop.tieout(&["report", "verify", run]).await.ended(0);
    shop.check(false).await;
}

async fn what_ended_a_run_is_kept_with_it(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=2).await;
    let refuse = match engine {
        Engine::Sqlite => {
            "create trigger no_evidence before insert on tieout_evidence
             begin select raise(abort, 'the disk of evidence is away'); end"
        }
        Engine::Postgres => {
            "create function no_evidence() returns trigger language plpgsql as $$
             begin raise exception 'the disk of evidence is away'; end $$;
             create trigger no_evidence before insert on tieout_evidence
             for each row execute function no_evidence()"
        }
    };
    shop.raw.execute(refuse).await;
    let code = shop.run().await.code;
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    let shown = shop.tieout(&["runs", "show"]).await.ended(0).stdout;
    let ended_by = shown.lines().find(|line| line.starts_with("ended by: "));
    let ended_by = ended_by.unwrap_or_else(|| panic!("{shown}"));
    assert!(ended_by.contains("the disk of evidence is away"), "{ended_by}");
    assert_eq!(shop.status(1).await, "processing");
}

/// A deploy breaks the table's trigger: no row is a person's, and the next run writes them all.
async fn a_trigger_that_a_deploy_broke_is_one_line_and_no_case(engine: Engine) {
    let shop = with_captured(engine, Words::default(), 1..=3).await;
    let (broken, why) = match engine {
        Engine::Sqlite => (
            "create trigger audited before update on payments
             begin insert into audit_log values (new.id); end",
            "no such table: main.audit_log",
        ),
        Engine::Postgres => (
            "create function audited() returns trigger language plpgsql as $$
             begin insert into audit_log values (new.id); return new; end $$;
             create trigger audited before update on payments
             for each row execute function audited()",
            "(42P01)",
        ),
    };
    shop.raw.execute(broken).await;
    for _run in 0..2 {
        let ran = shop.run().await.ended(3);
        let said: Vec<&str> = ran.stderr.split_whitespace().collect();
        let said = said.join(" ");
        let words = "table payments: 3 rows were not written, and given back (keys 1, 2, 3): \
                     the database refused them, and no row beside them was written: ";
        assert_eq!(said.matches(words).count(), 1, "{said}");
        let told = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
        let told = told.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(told.contains("(its table refused the write: not applied)"), "{told}");
        assert!(told.contains("the table refused it, and the next run tries again"), "{told}");
        assert!(!told.contains("changed meanwhile"), "{told}");
        assert!(said.contains(why), "{said}");
        assert_eq!(shop.open_cases().await, Vec::<String>::new());
        for id in 1..=3 {
            assert_eq!(shop.status(id).await, "processing");
        }
    }
    shop.raw.execute("create table audit_log (id bigint)").await;
    if engine == Engine::Postgres {
        shop.raw.execute("grant insert on audit_log to public").await;
    }
    shop.run().await.ended(0);
    for id in 1..=3 {
        assert_eq!(shop.status(id).await, "paid");
    }
    shop.check(false).await;
}

/// Bytes have no text of their own: every application hands them over in its own way. They are
/// refused in a tag, and looked up as the user's view writes them.
async fn bytes_are_a_tag_as_a_view_writes_them(engine: Engine) {
    let parcels = r#"
[[table]]
name = "parcels"
read = "parcels"
key = ["id"]
tag = "parcel_{id}"
amount = { column = "cents", unit = "minor" }
currency = { const = "EUR" }
account = { const = "shop" }
status = "status"
created = "made"
attempts = "once"
time = "utc"
mode = "full"
map = [{ from = ["processing"], succeeded = "paid", retryable = "retry" }]
"#;
    let words = Words { more: parcels.to_owned(), ..Words::default() };
    let mut shop = Shop::open_bare(engine, words).await;
    let made = at_text(tieout_now() - 1_800);
    let [bytes, id, hex] = match engine {
        Engine::Sqlite => ["blob", "x'00ff10'", "lower(hex(p.id))"],
        Engine::Postgres => ["bytea", "'\\x00ff10'", "encode(p.id, 'hex')"],
    };
    for sql in [
        format!(
            "create table parcels (id {bytes} primary key, status text not null, \
             cents bigint not null, made timestamp not null)"
        ),
        "create index parcels_status on parcels (status)".to_owned(),
        format!("create view parcels_seen as select p.*, {hex} as id_hex from parcels p"),
        format!("insert into parcels values ({id}, 'processing', 500, '{made}')"),
    ] {
        shop.raw.execute(&sql).await;
    }
    shop.tieout(&["db", "migrate"]).await.ended(0);
    let refused = format!(
        "parcels: tag: column `id` is {bytes}; expected a column of text, whole numbers, an enum \
         or uuid; anything else as a column of a view that writes it as your application does"
    );
    for words in [&["config", "check", "--connect"][..], &["run"]] {
        let ran = shop.tieout(words).await.ended(10);
        assert!(ran.stderr.to_lowercase().contains(&refused), "{}", ran.stderr);
    }
    assert_eq!(shop.count("tieout_runs").await, 0);

    let seen = parcels.replace("\"parcel_{id}\"", "\"parcel_{id_hex}\"");
    shop.words.more =
        seen.replace("read = \"parcels\"", "read = \"parcels_seen\"\nwrite = \"parcels\"");
    shop.write_words();
    let paid = Seed::captured("order_id", "parcel_00ff10", 500, "eur");
    shop.plant(vec![paid.created_at(tieout_now() - 1_800)]);
    shop.tieout(&["config", "check", "--connect"]).await.ended(0);
    shop.run().await.ended(0);
    assert_eq!(shop.texts("select status from parcels").await, ["paid"]);
}
