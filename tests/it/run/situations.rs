//! What the PSP says of a payment, and what becomes of its row: each situation by the program.

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::{Decline, Situation};

use super::shop::{Engine, Payment, Shop, Words, on_both_databases, tieout_now};

on_both_databases!(
    each_situation_has_its_end,
    each_row_that_cannot_be_asked_has_its_end,
    a_pending_payment_is_waited_for,
    rows_of_one_object_are_not_both_paid,
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
