//! What the PSP says of a payment, and what becomes of its row: each situation by the program.

use tieout::sandbox::seeds::{Seed, SeedKind};
use tieout::sandbox::situations::{Decline, Situation};

use super::shop::{Engine, Payment, Shop, Words, on_both_databases, tieout_now};

on_both_databases!(
    each_situation_has_its_end,
    an_uncaptured_charge_is_said_to_be_one,
    each_row_that_cannot_be_asked_has_its_end,
    a_pending_payment_is_waited_for,
    rows_of_one_object_are_not_both_paid,
    a_reference_to_another_rows_money_is_no_second_capture,
    what_another_row_stores_ends_no_row,
    rows_that_share_a_tag_are_not_settled_by_it,
    a_verdict_that_is_not_written_is_taken_back,
    an_end_that_came_as_money_was_seen_is_held_against_it,
);

fn at(id: i64, situation: Situation) -> Seed {
    Payment::stuck(id).captured().standing(situation)
}

fn declined(id: i64, code: &str, advice: Option<&str>) -> Seed {
    let decline = Decline {
        code: "card_declined".to_owned(),
        decline_code: Some(code.to_owned()),
        advice_code: advice.map(str::to_owned),
    };
    Seed { decline: Some(decline), ..at(id, Situation::Declined) }
}

async fn each_situation_has_its_end(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let again = Some("try_again_later");
    let never = Some("do_not_try_again");
    let wanted = [
        (at(1, Situation::Succeeded), "paid", "succeeded captured"),
        (at(2, Situation::Processing), "processing", "wait psp_pending"),
        (at(3, Situation::RequiresAction), "processing", "wait rule"),
        (at(4, Situation::RequiresCapture), "processing", "review authorized_uncaptured"),
        (at(5, Situation::RequiresConfirmation), "retry", "retryable unattempted"),
        (declined(6, "insufficient_funds", again), "retry", "retryable declined_retryable"),
        (declined(7, "stolen_card", never), "failed", "failed declined_final"),
        (declined(8, "moon_phase", None), "processing", "review decline_unknown"),
        (at(9, Situation::Canceled), "failed", "failed rule"),
        (at(10, Situation::Refunded), "processing", "review refunded"),
        (at(11, Situation::Disputed), "processing", "review disputed"),
        (at(12, Situation::DisputeLost), "processing", "review disputed"),
        (
            Seed { moved_amount: Some(1), ..at(13, Situation::Refunded) },
            "processing",
            "review refunded",
        ),
        (
            Seed { moved_amount: Some(1), ..at(14, Situation::Succeeded) },
            "processing",
            "review amount_mismatch",
        ),
        (
            at(15, Situation::Succeeded).created_at(tieout_now() - 3 * 3_600),
            "processing",
            "review time_mismatch",
        ),
    ];
    let mut ids = Vec::new();
    for (seed, _, _) in &wanted {
        let tag = &seed.metadata["order_id"];
        ids.push(tag.trim_start_matches("pay_").parse::<i64>().unwrap());
        shop.plant(vec![seed.clone()]);
    }
    let rows: Vec<Payment> = ids.iter().map(|id| Payment::stuck(*id)).collect();
    shop.insert(&rows).await;
    shop.run_until_proven().await;
    let mut wrong = Vec::new();
    for (id, (_, status, verdict)) in ids.iter().zip(&wanted) {
        let got = shop
            .texts(&format!(
                "select outcome || ' ' || reason from tieout_journal where key = '{id}' \
                 and reason <> 'watched' order by at desc limit 1"
            ))
            .await;
        let now = shop.status(*id).await;
        if got != [*verdict] || now != *status {
            wrong.push(format!("row {id}: {now} after {got:?}, wanted {status} after {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(shop.count("payments where psp_ref = 'pi_1'").await, 1);
    shop.check(false).await;
}

/// What reads the column's other times must read this one: a `Z` says that it is UTC.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_written_to_a_file_as_its_others_are() {
    for (other, like) in [
        ("2026-11-19 08:00:00.123Z", "____-__-__ __:__:__.______Z"),
        ("2026-11-19T08:00:00Z", "____-__-__T__:__:__.______Z"),
        ("2026-11-19 08:00:00", "____-__-__ __:__:__.______"),
    ] {
        let words = Words { table: "time = \"utc\"\n".to_owned(), ..Words::default() };
        let mut shop = Shop::open_with(Engine::Sqlite, words).await;
        shop.background(5).await;
        shop.raw.execute(&format!("update payments set updated_at = '{other}'")).await;
        shop.plant(vec![Payment::stuck(1).captured()]);
        shop.insert(&[Payment::stuck(1)]).await;
        shop.run().await.ended(0);
        let written = format!("payments where id = 1 and updated_at like '{like}'");
        assert_eq!(shop.count(&written).await, 1, "{other}");
    }
}

/// A charge without an intent calls itself succeeded as soon as its money is held.
async fn an_uncaptured_charge_is_said_to_be_one(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(30).await;
    let id = Some("ch_1".to_owned());
    let seed = Seed { kind: SeedKind::Charge, id, ..at(1, Situation::RequiresCapture) };
    shop.plant(vec![seed]);
    shop.insert(&[Payment::stuck(1)]).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "review authorized_uncaptured");
    let verdicts = ran.of_type("verdict");
    let said = "ch_1 is `succeeded`, and its money is authorized and not captured";
    assert!(verdicts[0]["text"].as_str().unwrap().contains(said), "{verdicts:?}");
}

async fn each_row_that_cannot_be_asked_has_its_end(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let rows = [
        (Payment { amount: None, ..Payment::stuck(1) }, "row_unreadable"),
        (Payment { amount: Some(-5), ..Payment::stuck(2) }, "row_unreadable"),
        (Payment { currency: "EURO", ..Payment::stuck(3) }, "row_unreadable"),
        (Payment { account: "closed_2019", ..Payment::stuck(4) }, "unknown_account"),
        (
            Payment { psp_ref: Some("pi_never_was".to_owned()), ..Payment::stuck(5) },
            "reference_unknown",
        ),
    ];
    let payments: Vec<Payment> = rows.iter().map(|(row, _)| row.clone()).collect();
    shop.insert(&payments).await;
    // A row whose object captured, and which stores another one's reference.
    let other = Payment { psp_ref: Some("pi_900010".to_owned()), ..Payment::stuck(6) };
    shop.plant(vec![other.captured()]);
    shop.insert(&[other]).await;
    let ran = shop.run().await.ended(0);
    for (row, reason) in &rows {
        assert_eq!(ran.verdict(row.id), format!("review {reason}"));
        assert_eq!(shop.status(row.id).await, "processing");
    }
    assert!(ran.verdict(6).starts_with("review "), "{}", ran.verdict(6));
    // The account of a row that was looked at changes.
    shop.insert(&[Payment::stuck(7)]).await;
    shop.run().await.ended(0);
    shop.raw.execute("update payments set account = 'closed_2019' where id = 7").await;
    shop.a_span_passes().await;
    let verdict = shop.run().await.ended(0).verdict(7);
    assert!(["review account_changed", "review unknown_account"].contains(&verdict.as_str()));
    shop.check(false).await;
}

async fn a_pending_payment_is_waited_for(engine: Engine) {
    let words = Words::default().policy("max_age", "\"1min\"");
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    shop.plant(vec![at(1, Situation::Processing), at(2, Situation::Processing)]);
    for _ in 0..3 {
        let ran = shop.run().await.ended(0);
        assert_eq!(ran.verdict(1), "wait psp_pending");
        // Whoever looks on is told until when; a run from cron stays silent.
        let told = shop.tieout(&["run", "--dry-run"]).await.ended(0).stdout;
        assert!(told.contains("\nnothing is due; 2 rows wait, the next at 20"), "{told}");
        let narrowed = shop.tieout(&["run", "--dry-run", "--psp", "shop"]).await.ended(0).stdout;
        assert!(narrowed.contains("\nnothing is due. Nothing"), "{narrowed}");
        assert_eq!(shop.tieout(&["run"]).await.ended(0).stdout, "");
        shop.due_now().await;
    }
    shop.sandbox.move_to("pi_1", Situation::Succeeded).unwrap();
    assert_eq!(shop.run().await.ended(0).verdict(1), "succeeded captured");
    // The other one was pending for longer than max_age.
    let past = super::shop::at_text(tieout_now() - 120);
    shop.raw.execute(&format!("update tieout_checks set aged_from = '{past}'")).await;
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(2), "review pending_too_long");
    // Its case is decided again when somebody asks for the row.
    shop.sandbox.move_to("pi_2", Situation::Succeeded).unwrap();
    let kicked = shop.run_with(&["--id", "2"]).await.ended(0);
    assert_eq!(kicked.verdict(2), "succeeded captured");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

async fn rows_of_one_object_are_not_both_paid(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let amount = Some(4_200);
    let of = |id| Payment { amount, psp_ref: Some("pi_1".to_owned()), ..Payment::stuck(id) };
    shop.plant(vec![of(1).captured()]);
    shop.insert(&[of(1), of(2)]).await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("payments where status = 'paid' and id < 900000").await, 0);
    let cases = shop.open_cases().await;
    assert_eq!(cases.len(), 2, "{cases:?}");
    shop.check(false).await;
}

async fn a_reference_to_another_rows_money_is_no_second_capture(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let owner = Payment { status: "paid", psp_ref: Some("pi_2".to_owned()), ..Payment::stuck(2) };
    // 1 has a payment of its own and stores that of 2; what 3 stores belongs to no row that
    // stores it, and has the tag of 4.
    let rows = [1, 3].map(|id| {
        let psp_ref = Some(format!("pi_{}", id + 1));
        Payment { psp_ref, ..Payment::stuck(id) }
    });
    let gone = Payment { status: "paid", ..Payment::stuck(4) };
    shop.plant([&rows[0], &rows[1], &owner, &gone].map(Payment::captured).to_vec());
    shop.insert(&[rows[0].clone(), rows[1].clone(), owner, gone]).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "review reference_claimed");
    assert_eq!(ran.verdict(3), "review reference_mismatch");
    shop.check(false).await;
}

async fn what_another_row_stores_ends_no_row(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    // Under the tags of 1 and 2 stand objects of earlier attempts that other rows store.
    let codes = [(1, "stolen_card"), (2, "insufficient_funds")];
    for (id, code) in codes {
        let row = Payment::stuck(id);
        let seed = row.captured().standing(Situation::Declined);
        shop.plant(vec![Seed { decline_code: Some(code.to_owned()), ..seed }]);
        let psp_ref = Some(format!("pi_{id}"));
        let earlier = Payment { status: "failed", psp_ref, ..Payment::stuck(10 + id) };
        shop.insert(&[row, earlier]).await;
    }
    let ran = shop.run_until_proven().await;
    for (id, _code) in codes {
        assert_eq!(shop.status(id).await, "processing", "{ran:?}");
    }
    assert_eq!(shop.open_cases().await, ["1 reference_claimed", "2 reference_claimed"]);
    shop.check(false).await;
}

async fn rows_that_share_a_tag_are_not_settled_by_it(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let by_order = text.replace("tag = \"pay_{id}\"", "tag = \"{order_no}\"");
    assert_ne!(by_order, text);
    std::fs::write(&path, by_order).unwrap();
    let of = |id, order: &str| Payment { order_no: Some(order.to_owned()), ..Payment::stuck(id) };
    let seed = |row: &Payment| {
        let tag = row.order_no.clone().unwrap();
        Seed { metadata: [("order_id".to_owned(), tag)].into(), ..row.captured() }
    };
    // A: the first attempt was paid for another period, the second never arrived; the third
    // stores its own. B: nobody shares.
    let first = Payment { status: "failed", ..of(1, "A") };
    let third = Payment { psp_ref: Some("pi_3".to_owned()), ..of(3, "A") };
    let alone = of(4, "B");
    shop.plant([&first, &third, &alone].map(seed).to_vec());
    shop.insert(&[first, of(2, "A"), third, alone]).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(2), "review tag_unusable");
    assert_eq!(ran.verdict(3), "succeeded captured");
    assert_eq!(ran.verdict(4), "succeeded captured");
    assert_eq!(shop.status(2).await, "processing");
    shop.check(false).await;
}

async fn a_verdict_that_is_not_written_is_taken_back(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    let rows = [Payment::stuck(1), Payment::stuck(2)];
    shop.insert(&rows).await;
    shop.plant(rows.iter().map(Payment::captured).collect());
    // The user's own rule knows something of row 1.
    shop.raw.execute("create unique index noted on payments (note) where status = 'paid'").await;
    shop.raw
        .execute(
            "insert into payments (id, account, status, amount, currency, created_at, note)
             values (900, 'live', 'paid', 1, 'EUR', '2026-01-01T00:00:00Z', 'one');
             update payments set note = 'one' where id = 1",
        )
        .await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded captured");
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "paid"]);
    let told = ran.of_type("not_applied");
    assert_eq!(told.len(), 1, "{}", ran.stdout);
    assert_eq!(told[0]["table"], "payments");
    assert_eq!(told[0]["txn_id"], "1");
    assert_eq!(told[0]["why"], "write_refused");
    assert_eq!(told[0]["outcome"], "review");
    assert_eq!(told[0]["status"], "processing");
    let events = ran.events();
    let place = |kind: &str, id: &str| {
        events.iter().position(|event| event["type"] == kind && event["txn_id"] == id).unwrap()
    };
    assert!(place("verdict", "1") < place("not_applied", "1"));
    assert!(events.last().is_some_and(|event| event["type"] == "run_end"));
    assert!(ran.of_type("verdict").iter().all(|verdict| verdict["planned"] == "yes"));
}

/// The application ends rows of its own between the claim and the write.
async fn an_end_that_came_as_money_was_seen_is_held_against_it(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(30).await;
    let rows = [Payment::stuck(1), Payment::stuck(2), Payment::stuck(3)];
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop.insert(&rows).await;
    let ends = "update payments set status = \
                case id when 1 then 'failed' when 2 then 'retry' else 'paid' end \
                where status = 'processing' and id = ";
    let trigger = match engine {
        Engine::Sqlite => format!(
            "create trigger meanwhile after update on tieout_checks \
             when new.lease_run is not null \
             begin {ends} cast(new.key as integer); end"
        ),
        Engine::Postgres => format!(
            "create function meanwhile() returns trigger language plpgsql as $$ begin \
             if new.lease_run is not null then {ends} new.key::bigint; end if; \
             return null; end $$; \
             create trigger meanwhile after update on tieout_checks \
             for each row execute function meanwhile()"
        ),
    };
    shop.raw.execute(&trigger).await;
    shop.run().await.ended(0);
    assert_eq!(shop.count("tieout_journal where applied = 'superseded'").await, 3);
    assert_eq!(shop.open_cases().await, [""; 0]);
    let ran = shop.run().await.ended(0);
    let verdicts = [ran.verdict(1), ran.verdict(2), ran.verdict(3)];
    let late = "review late_contradiction";
    assert_eq!(verdicts, [late, late, "not decided"]);
    assert_eq!(shop.open_cases().await, ["1 late_contradiction", "2 late_contradiction"]);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["failed", "retry"]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "not decided");
    shop.check(true).await;
}
