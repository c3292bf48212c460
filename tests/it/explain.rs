//! Why is this row here? What explain says of rules and of a proof that is not whole yet.

use std::time::Duration;

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use crate::run::files::{at_bank, bring, camt, credit, debit, shop_with_bank};
use crate::run::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};

/// The lines under one label.
fn under(screen: &str, label: &str) -> Vec<String> {
    let mut lines = screen.lines().skip_while(|line| !line.starts_with(label));
    let first = lines.next().map(|line| line.trim_start_matches(label).trim().to_owned());
    let more = lines.take_while(|line| line.starts_with(' ')).map(|line| line.trim().to_owned());
    first.into_iter().chain(more).collect()
}

async fn rules_and_the_state_of_a_proof_are_told(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default()).await;
    shop.background(30).await;
    let (absent, declined, odd) = (Payment::stuck(1), Payment::stuck(2), Payment::stuck(3));
    let refused = |payment: &Payment, code: &str| {
        let seed = payment.captured().standing(Situation::Declined);
        Seed { decline_code: Some(code.to_owned()), ..seed }
    };
    shop.plant(vec![refused(&declined, "insufficient_funds"), refused(&odd, "never_heard_of")]);
    let stored = Payment { psp_ref: Some("pi_gone".to_owned()), ..Payment::stuck(4) };
    shop.insert(&[absent, declined, odd, stored]).await;
    shop.run().await;
    let explain = async |id: &str| shop.tieout(&["explain", id]).await.ended(0).stdout;

    let screen = explain("1").await;
    // Once, with the time: it is why the row waits, what the proof lacks and why the search is no
    // miss.
    let why = under(&screen, "why");
    let until = "within_grace: nothing found; the original call can still arrive until 20";
    assert!(why[0].starts_with(until), "{screen}");
    assert_eq!(screen.matches(" arrive").count(), 1, "{screen}");
    assert!(under(&screen, "proof").is_empty(), "{screen}");
    assert!(under(&screen, "rules").is_empty(), "{screen}");

    let screen = explain("2").await;
    let rules = under(&screen, "rules");
    assert_eq!(rules.len(), 1, "{screen}");
    assert!(rules[0].contains("insufficient_funds: stripe.") && rules[0].contains('→'), "{screen}");
    assert!(under(&screen, "proof").is_empty(), "{screen}");

    let screen = explain("3").await;
    assert!(under(&screen, "rules")[0].contains("never_heard_of: none of "), "{screen}");

    // A row with a reference lacks something else, and its call is told of no more often.
    let screen = explain("4").await;
    let of_call = |line: &&String| line.contains("original call");
    assert!(under(&screen, "proof").iter().filter(of_call).count() <= 1, "{screen}");

    // The call is over by then; what is lacking is the second miss.
    shop.a_span_passes().await;
    shop.run().await;
    let screen = explain("1").await;
    let proof = under(&screen, "proof");
    assert!(proof[0].starts_with("the original call was over by"), "{screen}");
    assert_eq!(proof[1], "this search counts as a miss", "{screen}");
    assert!(proof[2].starts_with("it lacked: "), "{screen}");
}

async fn a_hand_back_is_told_as_it_was_decided(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default()).await;
    shop.background(30).await;
    let (absent, declined) = (Payment::stuck(1), Payment::stuck(2));
    let seed = declined.captured().standing(Situation::Declined);
    shop.plant(vec![Seed { decline_code: Some("insufficient_funds".to_owned()), ..seed }]);
    shop.insert(&[absent, declined]).await;
    let explain = async |id: &str| shop.tieout(&["explain", id]).await.ended(0).stdout;
    let mut looks = 0;
    while shop.run().await.verdict(1) != "retryable absent" {
        looks += 1;
        assert!(looks < 9, "{}", explain("1").await);
        shop.a_span_passes().await;
    }
    let whole = under(&explain("1").await, "proof");
    assert_eq!(whole.len(), 1, "{whole:?}");
    assert!(whole[0].starts_with("it was whole at 20"), "{whole:?}");
    // Under settings by which those misses would be too close together.
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let later = text.replace("recheck_after = \"1s\"", "recheck_after = \"3h\"");
    assert_ne!(later, text);
    std::fs::write(&path, later).unwrap();
    let screen = explain("1").await;
    assert_eq!(under(&screen, "proof"), whole, "{screen}");
    let charges = "nothing was charged by tieout: the worker charges again";
    assert_eq!(under(&screen, "not done"), [charges], "{screen}");
    // Its tag is looked at again, and that ends nothing.
    shop.a_span_passes().await;
    shop.run().await.ended(0);
    let screen = explain("1").await;
    let kept = "no status was written: the row was ended before, and its tag is only looked at";
    assert_eq!(under(&screen, "not done"), [kept], "{screen}");
    assert!(under(&screen, "proof").is_empty(), "{screen}");
    // A worker is told from when on it may charge.
    let screen = explain("2").await;
    let hand_backs = under(&screen, "hand-backs");
    assert!(hand_backs[0].contains("charge not before 20"), "{screen}");
    assert!(hand_backs[0].contains(", before 20"), "{screen}");
    let json = shop.tieout(&["explain", "2", "--json"]).await.ended(0).stdout;
    let row: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert!(row["handbacks"][0]["not_before"].is_string(), "{json}");
}

/// tieout's own commands name the configuration that was read, to be copied; a person's words are
/// theirs, whatever they say.
async fn what_people_wrote_is_no_command(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default()).await;
    shop.background(30).await;
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run().await.ended(0);
    let why = "mara says: no tieout run before tieout doctor";
    shop.tieout(&["pause", "shop", "--why", why]).await.ended(0);
    let screen = shop.tieout(&["explain", "1", "--config", "tieout.toml"]).await.ended(0).stdout;
    let own = "not before `tieout --config tieout.toml resume shop`: paused since ";
    assert!(screen.contains(own), "{screen}");
    assert!(screen.contains(&format!(": {why}\n")), "{screen}");
}

/// Who reads that a hand-back waits to be taken may charge by it.
async fn a_hand_back_that_ended_is_not_said_to_wait(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default()).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run_until_proven().await;
    let waits = hand_back_of(&shop, "1").await;
    assert!(waits.ends_with(", not taken yet"), "{waits}");
    shop.plant(vec![Payment::stuck(1).captured()]);
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "review late_contradiction");
    let ended = hand_back_of(&shop, "1").await;
    assert!(ended.contains(", ended 20") && ended.ends_with("Z: late_contradiction"), "{ended}");
    assert!(!ended.contains("taken"), "{ended}");
    let json = shop.tieout(&["explain", "1", "--json"]).await.ended(0);
    let row = &json.of_type("row")[0];
    assert_eq!(row["handbacks"][0]["end_reason"], "late_contradiction", "{row}");
    assert!(row["handbacks"][0]["ended_at"].is_string(), "{row}");
    shop.raw.execute("update tieout_handbacks set taken_at = ended_at").await;
    let both = hand_back_of(&shop, "1").await;
    assert!(both.contains(", taken 20") && both.ends_with("Z: late_contradiction"), "{both}");
}

/// A rule of one's own with a limit of one hand-back.
const LIMITED: &str = "[[rule]]\nid = \"own.lim\"\npsp = \"stripe\"\nwhen = \"failure\"\n\
    code = [\"call_issuer\"]\noutcome = \"retryable\"\nlimit = 1\nthen = \"failed\"\n\
    source = \"us\"\nexample = { code = \"call_issuer\" }\n";

/// By the code alone it may be charged again: what ended it is what somebody wrote down.
async fn a_row_that_a_limit_failed_says_so(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default()).await;
    std::fs::write(shop.folder().join("own.toml"), LIMITED).unwrap();
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[rules]\nfiles = [\"own.toml\"]\n")).unwrap();
    shop.background(30).await;
    let declined = Payment::stuck(1);
    let seed = declined.captured().standing(Situation::Declined);
    shop.plant(vec![Seed { decline_code: Some("call_issuer".to_owned()), ..seed }]);
    shop.insert(&[declined]).await;
    until_it_is(&shop, "retryable declined_retryable").await;
    // The worker takes it, and is declined again.
    let attempted = at_text(tieout_now() - 600);
    let take = format!(
        "update payments set status = 'processing', attempted_at = '{attempted}' where id = 1"
    );
    shop.raw.execute(&take).await;
    until_it_is(&shop, "failed declined_final").await;
    let screen = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    let why = under(&screen, "why");
    assert!(why[0].contains("call_issuer (rule own.lim.capped"), "{screen}");
    let limit = "it was handed back as often as the `limit` of rule own.lim allows; its `then` \
                 failed it, and not the PSP";
    assert_eq!(why[1], limit, "{screen}");
    let not_done = ["not handed back: the `limit` of rule own.lim is used up"];
    assert_eq!(under(&screen, "not done"), not_done, "{screen}");
    assert!(!screen.contains("pointless or forbidden"), "{screen}");
}

/// Looks again until row 1 is decided so.
async fn until_it_is(shop: &Shop, verdict: &str) {
    for _look in 0..9 {
        if shop.run().await.ended(0).verdict(1) == verdict {
            return;
        }
        shop.a_span_passes().await;
    }
    panic!("{}", shop.tieout(&["explain", "1"]).await.stdout);
}

/// What explain says of a row's first hand-back.
async fn hand_back_of(shop: &Shop, id: &str) -> String {
    let screen = shop.tieout(&["explain", id]).await.ended(0).stdout;
    under(&screen, "hand-backs").join(" ")
}

/// Who asks has what the PSP or a customer named: a tag, or the PSP's own id.
async fn a_row_is_found_by_its_tag_and_by_a_reference(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default()).await;
    shop.background(30).await;
    let paid = Payment::stuck(1);
    shop.plant(vec![paid.captured()]);
    shop.insert(&[paid]).await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "succeeded captured");
    let by_key = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    assert_eq!(shop.tieout(&["explain", "payments/1"]).await.ended(0).stdout, by_key);
    for (text, lead) in [
        ("pay_1", "pay_1 is the tag of payments/1\n"),
        ("pi_1", "pi_1 is the PSP's reference, as tieout recorded it, of payments/1\n"),
        // As somebody else writes the key.
        ("001", "001 is written payments/1\n"),
    ] {
        let screen = shop.tieout(&["explain", text]).await.ended(0).stdout;
        assert_eq!(screen, format!("{lead}{by_key}"));
        let json = shop.tieout(&["explain", text, "--json"]).await.ended(0);
        assert_eq!(json.of_type("row")[0]["txn_id"], "1", "{}", json.stdout);
    }
    let said = shop.tieout(&["run", "--dry-run", "--id", "001"]).await.ended(2).stderr;
    assert!(said.contains("by that text: such a key is written 1"), "{said}");
    // A row that stores the id, and that tieout has never looked at.
    let said = shop.tieout(&["explain", "pi_900000"]).await.ended(2).stderr;
    assert!(said.contains("as the row stores it, of payments/900000, and"), "{said}");
    // A run by its id would not look at it, and is not named.
    assert!(said.contains("`tieout run --all --since 3d`"), "{said}");
    assert!(!said.contains("--dry-run"), "{said}");
    let ended = "its status is `paid`: your application has it as succeeded, it is not stuck";
    assert!(said.contains(ended), "{said}");
    let tried = shop.tieout(&["run", "--dry-run", "--id", "900000"]).await;
    assert_ne!(tried.code, Some(2), "{}", tried.stderr);
    // One that is known by its key alone, as the hint says.
    shop.insert(&[Payment::stuck(2)]).await;
    let said = shop.tieout(&["explain", "2"]).await.ended(2).stderr;
    assert!(said.contains("`tieout run --dry-run --id 2`"), "{said}");
    assert!(said.contains("`processing`: it is not stuck yet, or no run came to it"), "{said}");
    for (status, says) in [("new", "in which no row is stuck"), ("odd", "which is not mapped")] {
        shop.raw.execute(&format!("update payments set status = '{status}' where id = 2")).await;
        let said = shop.tieout(&["explain", "2"]).await.ended(2).stderr;
        assert!(said.contains(&format!("its status is `{status}`, {says}; ")), "{said}");
    }
    // None; and no hint that would be refused.
    let said = shop.tieout(&["explain", "nobody"]).await.ended(2).stderr;
    assert!(said.contains("tieout knows no row nobody") && !said.contains("--dry-run"), "{said}");
    let twice = "update payments set psp_ref = 'pi_two' where id in (900001, 900002)";
    shop.raw.execute(twice).await;
    let said = shop.tieout(&["explain", "pi_two"]).await.ended(2).stderr;
    assert!(said.contains("several rows: payments/900001, payments/900002"), "{said}");
    // What no index leads to is not looked for: that would read the whole table.
    shop.raw.execute("drop index payments_ref").await;
    let said = shop.tieout(&["explain", "pi_two"]).await.ended(2).stderr;
    assert!(said.contains("tieout knows no row pi_two"), "{said}");
}

/// Money that carries a row's tag and is no word about the row: whoever looks for it finds it.
async fn lines_of_the_other_side_are_named(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let bookings = [debit(10_001, "pay_1"), credit(10_002, "pay_2"), debit(10_002, "pay_2")];
    bring(&shop, "out.xml", &camt("camt.053", "S1", &bookings[..2]), 0).await;
    shop.run().await;
    let screen = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    let beside = under(&screen, "beside");
    assert_eq!(beside.len(), 1, "{screen}");
    assert!(beside[0].starts_with("out.xml line "), "{screen}");
    assert!(beside[0].contains(" (1:1): 100.01 EUR out on 20"), "{screen}");
    let why = "(movement): a charge moves money the other way, and nothing was booked before that \
               this could have taken back: it is as what a refund or a payout moves";
    assert!(beside[0].ends_with(why), "{screen}");
    // What a row was decided from stands in its evidence; and so does what took it back.
    assert_eq!(shop.status(2).await, "paid");
    let explain = async || shop.tieout(&["explain", "2"]).await.ended(0).stdout;
    assert!(under(&explain().await, "beside").is_empty());
    bring(&shop, "back.xml", &camt("camt.053", "S2", &bookings[2..]), 0).await;
    shop.run().await;
    assert!(under(&explain().await, "beside").is_empty());
}

on_both_databases!(
    lines_of_the_other_side_are_named,
    a_row_is_found_by_its_tag_and_by_a_reference,
    rules_and_the_state_of_a_proof_are_told,
    a_hand_back_is_told_as_it_was_decided,
    a_hand_back_that_ended_is_not_said_to_wait,
    a_row_that_a_limit_failed_says_so,
    what_people_wrote_is_no_command,
);

/// Times that tables were read from end to end, and that the journal was read by an index.
async fn scans(shop: &Shop) -> (Vec<String>, i64) {
    let whole = "select relname || ' ' || seq_scan from pg_stat_user_tables \
                 where relname like 'tieout%' or relname = 'payments' order by 1";
    let by_index = "select cast(idx_scan as text) from pg_stat_user_tables \
                    where relname = 'tieout_journal'";
    (shop.texts(whole).await, shop.texts(by_index).await[0].parse().unwrap())
}

/// However long the journal is, one row's records are found by an index, and the user's table is
/// not read.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_large_is_read_from_end_to_end() {
    let shop = Shop::open(Engine::Postgres).await;
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run().await.ended(0);
    for table in ["journal", "checks"] {
        let other = match table {
            "journal" => "'seq', 1000 + n, 'key', 'k' || n",
            _checks => "'key', 'k' || n",
        };
        shop.raw
            .execute(&format!(
                "insert into tieout_{table} select (jsonb_populate_record(null::tieout_{table}, \
                 to_jsonb(one) || jsonb_build_object({other}))).* \
                 from (select * from tieout_{table} limit 1) one, generate_series(1, 5000) n; \
                 analyze tieout_{table}"
            ))
            .await;
    }
    // What was done so far is counted: here at once, elsewhere when the connection ends.
    shop.raw.execute("select pg_stat_force_next_flush()").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (before, by_index) = scans(&shop).await;
    shop.tieout(&["explain", "1"]).await.ended(0);
    let mut now = scans(&shop).await;
    for _ in 0..100 {
        if now.1 > by_index {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        now = scans(&shop).await;
    }
    assert!(now.1 > by_index, "the journal was read by an index");
    let large = |text: &&String| {
        ["tieout_journal ", "tieout_checks ", "payments "].iter().any(|name| text.starts_with(name))
    };
    let large = |all: &[String]| all.iter().filter(large).cloned().collect::<Vec<_>>();
    assert_eq!(large(&now.0), large(&before));
}
