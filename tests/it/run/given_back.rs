//! What files of a PSP tell of payments that were given back or charged back, by the PSP's own ids:
//! the lines carry no tag of the payment's row, or that of the row which gave them back.

use crate::run::files::{REFUNDS, at_bank, bring, with_bank};
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, tieout_now};
use crate::run::twice::paypal;

on_both_databases!(
    what_went_back_counts_by_the_payments_id,
    what_goes_back_later_finds_the_row_by_the_payments_id,
    a_refunds_row_and_its_payments_are_told_by_one_line,
    two_reports_of_a_psp_tell_one_payment,
    a_refund_that_failed_gave_nothing_back,
    what_went_back_of_a_payment_that_the_api_told_is_told,
    a_refund_that_fails_later_is_told_to_both_rows,
    what_names_a_payment_is_of_that_one_whatever_its_tag,
    an_id_of_several_payments_names_none,
    a_refund_may_carry_the_id_of_its_payment,
    refunds_that_store_their_payment_are_told_by_their_tags,
    a_payout_gives_no_payment_back,
    a_case_knows_each_refund_that_a_row_of_its_own_has,
    a_chargeback_of_a_part_is_told_with_its_sum,
    a_refund_that_was_made_again_is_told_beside_the_one_that_failed,
    a_case_of_another_amount_knows_what_came_back_since,
    a_reversal_may_name_the_refund_alone,
);

const BRAINTREE: &str = "Transaction ID,Transaction Type,Transaction Status,Created Datetime,\
    Created Timezone,Settlement Date,Disbursement Date,Currency ISO Code,Amount Authorized,\
    Amount Submitted For Settlement,Order ID,Refunded Transaction ID,Settlement Amount,\
    Settlement Currency ISO Code\n";

const PAYOUT: &str = "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,\
    reporting_category,source_id,automatic_payout_id,charge_id,payment_intent_id,\
    payment_metadata[order]\n";

const CHANGE: &str = "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,\
    reporting_category,source_id,charge_id,payment_intent_id,payment_metadata[order]\n";

/// One of Braintree's: its id, `sale` or `credit`, cents, the order's id, what it gives back.
fn braintree(rows: &[(&str, &str, i64, &str, &str)]) -> String {
    let day = chrono::Utc::now().format("%m/%d/%Y");
    let mut text = BRAINTREE.to_owned();
    for (id, kind, cents, order, of) in rows {
        let amount = format!("{}.{:02}", cents / 100, cents % 100);
        text.push_str(&format!(
            "{id},{kind},settled,{day} 00:10:00,UTC,{day},{day},EUR,{amount},{amount},{order},{of},\
             {amount},EUR\n"
        ));
    }
    text
}

/// Stripe's: the word, its source, cents with their sign, the charge, the intent, the order.
type Moved = (&'static str, &'static str, i64, &'static str, &'static str, &'static str);

fn stripe(head: &str, rows: &[Moved]) -> String {
    let day = chrono::Utc::now().format("%Y-%m-%d 00:10:00");
    let payout = if head == PAYOUT { ",po_1" } else { "" };
    let mut text = head.to_owned();
    for (at, (word, source, cents, charge, intent, order)) in rows.iter().enumerate() {
        let sign = if *cents < 0 { "-" } else { "" };
        let amount = format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100);
        text.push_str(&format!(
            "txn_{at}_{source},{day},{day},eur,{amount},0.00,{amount},{word},{source}{payout},\
             {charge},{intent},{order}\n"
        ));
    }
    text
}

async fn stuck(shop: &Shop, count: i64) {
    let rows: Vec<Payment> = (1..=count).map(|id| at_bank(id, "processing")).collect();
    shop.insert(&rows).await;
}

/// What a run said of a row.
fn gone(ran: &Ran, id: i64) -> String {
    let verdicts = ran.of_type("verdict");
    let own = verdicts.iter().find(|one| one["txn_id"] == id.to_string().as_str());
    own.map_or(String::new(), |one| one["text"].as_str().unwrap_or_default().to_owned())
}

async fn line_of(shop: &Shop, id: &str) -> Vec<String> {
    let whose = format!(
        "select state || ' ' || coalesce(reason, '-') || ' ' || coalesce(key, '-') \
         from tieout_lines where psp_reference = '{id}' order by file_id, position"
    );
    shop.texts(&whose).await
}

/// What names the payment alone counts as what carries the tag: the whole, a part, two halves.
async fn what_went_back_counts_by_the_payments_id(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 5).await;
    let file = braintree(&[
        ("aa1", "sale", 10_001, "pay_1", ""),
        ("bb1", "credit", 10_001, "", "aa1"),
        ("aa2", "sale", 10_002, "pay_2", ""),
        ("bb2", "credit", 3_000, "", "aa2"),
        ("aa3", "sale", 10_003, "pay_3", ""),
        ("bb3", "credit", 5_000, "", "aa3"),
        ("bb4", "credit", 5_003, "unknown", "aa3"),
        ("aa4", "sale", 10_004, "pay_4", ""),
        ("bb5", "credit", 10_004, "", "zz9"),
        ("aa5", "sale", 10_005, "pay_5", ""),
        ("bb6", "credit", 1_005, "pay_5", ""),
    ]);
    bring(&shop, "bt.csv", &file, 0).await;
    let ran = shop.run().await;
    for id in [1, 2, 3, 5] {
        assert_eq!(ran.verdict(id), "review refunded", "row {id}");
    }
    assert_eq!(ran.verdict(4), "succeeded settled");
    assert_eq!(gone(&ran, 2), "aa2 captured 100.02 EUR and 30.00 EUR of it was refunded");
    assert_eq!(gone(&ran, 5), "aa5 captured 100.05 EUR and 10.05 EUR of it was refunded");
    assert_eq!(line_of(&shop, "bb5").await, ["open orphan -"], "of a payment of nobody");
    shop.check(false).await;
}

/// After the row was paid: a refund becomes its line, a chargeback contradicts it.
async fn what_goes_back_later_finds_the_row_by_the_payments_id(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 3).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, rows), 0).await;
    shop.run().await;
    assert_eq!([shop.status(1).await, shop.status(2).await], ["paid", "paid"]);
    // What the row stores names nothing that the next lines carry: they know the charge alone.
    let rows: &[Moved] = &[
        ("refund", "re_1", -3_000, "ch_1", "", ""),
        ("dispute", "dp_2", -10_002, "ch_2", "", ""),
        ("refund", "re_9", -500, "ch_9", "", ""),
    ];
    bring(&shop, "second.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "not decided");
    assert_eq!(ran.verdict(2), "review late_contradiction");
    assert_eq!(line_of(&shop, "re_1").await, ["matched - 1"]);
    assert_eq!(line_of(&shop, "re_9").await, ["open orphan -"]);
    assert_eq!(line_of(&shop, "dp_2").await, ["matched late_contradiction 2"]);
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}

/// Refunds with a tag of their own, which store what they are at the PSP.
fn own_refunds() -> String {
    let set = "[table.set]\nsucceeded = { re_id = \"{psp_reference}\" }\n";
    format!("{}{set}", REFUNDS.replace("pay_{id}", "ref_{id}"))
}

/// `table key outcome reason` of every decision.
async fn decided(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select table_name || ' ' || key || ' ' || outcome || ' ' || reason \
         from tieout_journal order by table_name, key",
    )
    .await
}

async fn with_refunds(engine: Engine, more: &str, refunds: &[(i64, i64)]) -> Shop {
    let mut words: Words = with_bank();
    words.more.push_str(&own_refunds());
    words.more.push_str(more);
    let shop = Shop::open_with(engine, words).await;
    let made = at_text(tieout_now() - 3_600);
    for (id, cents) in refunds {
        let columns = "insert into refunds (id, status, cents, made)";
        shop.raw.execute(&format!("{columns} values ({id}, 'sent', {cents}, '{made}')")).await;
    }
    shop
}

/// The refund's row is settled by its line, and the payment's row knows that it was given back.
async fn a_refunds_row_and_its_payments_are_told_by_one_line(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 10_001), (2, 3_000)]).await;
    stuck(&shop, 3).await;
    let file = braintree(&[
        ("aa1", "sale", 10_001, "pay_1", ""),
        ("bb1", "credit", 10_001, "ref_1", "aa1"),
        ("aa2", "sale", 10_002, "pay_2", ""),
        ("bb2", "credit", 3_000, "ref_2", "aa2"),
        ("aa3", "sale", 10_003, "pay_3", ""),
    ]);
    bring(&shop, "bt.csv", &file, 0).await;
    shop.run().await;
    assert_eq!(
        decided(&shop).await,
        [
            "payments 1 review refunded",
            "payments 2 review refunded",
            "payments 3 succeeded settled",
            "refunds 1 succeeded settled",
            "refunds 2 succeeded settled",
        ]
    );
    assert_eq!(shop.texts("select re_id from refunds order by id").await, ["bb1", "bb2"]);
    let whose = "select table_name || ' ' || key from tieout_lines where kind = 'refund' \
                 order by position";
    assert_eq!(shop.texts(whose).await, ["refunds 1", "refunds 2"]);
    shop.check(false).await;
}

/// Each of the reports tells the payment, and it moved once.
async fn two_reports_of_a_psp_tell_one_payment(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 3).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 5_001, "ch_2", "pi_2", "pay_2"),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("refund", "re_3", -4_000, "ch_3", "pi_3", "pay_3"),
    ];
    bring(&shop, "payout.csv", &stripe(PAYOUT, rows), 0).await;
    bring(&shop, "change.csv", &stripe(CHANGE, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "review amount_mismatch", "half of it, told twice");
    assert_eq!(ran.verdict(3), "review refunded");
    assert_eq!(gone(&ran, 3), "pi_3 captured 100.03 EUR and 40.00 EUR of it was refunded");
    shop.check(false).await;
}

/// What failed is there again, and its line is the row's; what was done again went back once.
async fn a_refund_that_failed_gave_nothing_back(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 3).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", "pay_1"),
        ("refund_failure", "re_1", 2_000, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("refund", "re_2", -2_000, "ch_2", "pi_2", ""),
        ("refund_failure", "re_2", 2_000, "ch_2", "pi_2", ""),
        ("refund", "re_3", -2_000, "ch_2", "pi_2", ""),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
    ];
    bring(&shop, "payout.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(line_of(&shop, "pi_1").await, ["matched settled 1"; 3]);
    assert_eq!(ran.verdict(2), "review refunded");
    assert_eq!(gone(&ran, 2), "pi_2 captured 100.02 EUR and 20.00 EUR of it was refunded");
    // And so it is of a row that is paid: both lines are its own, and neither is a case.
    let rows: &[Moved] = &[
        ("refund", "re_4", -2_000, "ch_3", "pi_3", ""),
        ("refund_failure", "re_4", 2_000, "ch_3", "pi_3", ""),
    ];
    bring(&shop, "later.csv", &stripe(PAYOUT, rows), 0).await;
    assert_eq!(shop.run().await.verdict(3), "not decided");
    assert_eq!(line_of(&shop, "pi_3").await, ["matched settled 3", "matched - 3", "matched - 3"]);
    shop.check(false).await;
}

/// The API told the payment, and the row stores nothing of it: the chargeback names it alone.
async fn what_went_back_of_a_payment_that_the_api_told_is_told(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    let rows = [Payment::stuck(1), Payment::stuck(2)];
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop.insert(&rows).await;
    shop.run().await;
    assert_eq!([shop.status(1).await, shop.status(2).await], ["paid", "paid"]);
    shop.raw.execute("update payments set psp_ref = null").await;
    let rows: &[Moved] = &[
        ("dispute", "dp_1", -10_001, "ch_1", "pi_1", ""),
        ("refund", "re_2", -3_000, "ch_2", "pi_2", ""),
    ];
    let path = shop.folder().join("payout.csv");
    std::fs::write(&path, stripe(PAYOUT, rows)).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "shop"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(ran.verdict(2), "not decided");
    assert_eq!(line_of(&shop, "pi_2").await, ["matched - 2"]);
    shop.check(false).await;
}

/// The customer has not got it: the refund's row is a case, and that of the payment knows.
async fn a_refund_that_fails_later_is_told_to_both_rows(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 2_000), (3, 2_000)]).await;
    stuck(&shop, 3).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", "ref_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("refund", "re_2", -2_000, "ch_2", "pi_2", "ref_2"),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("refund", "re_3", -2_000, "ch_3", "pi_3", "ref_3"),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, rows), 0).await;
    shop.run().await;
    let last = "select table_name || ' ' || key || ' ' || reason from tieout_cases \
                where state = 'open' order by 1";
    let last = last.replace("|| key ||", "|| subject ||");
    assert_eq!(
        shop.texts(&last).await,
        ["payments 1 refunded", "payments 2 refunded", "payments 3 refunded"]
    );
    assert_eq!(shop.texts("select status from refunds").await, ["done"; 3]);
    // One has the payment's tag, one none, and one an id of its own.
    let rows: &[Moved] = &[
        ("refund_failure", "re_1", 2_000, "ch_1", "pi_1", "pay_1"),
        ("refund_failure", "re_2", 2_000, "ch_2", "pi_2", ""),
        ("refund_failure", "re_9", 2_000, "ch_3", "pi_3", "pay_3"),
    ];
    bring(&shop, "later.csv", &stripe(PAYOUT, rows), 0).await;
    shop.run().await;
    for id in 1..=3 {
        assert_eq!(shop.status(id).await, "paid", "row {id}");
    }
    let told: Vec<String> = (1..=3).map(|id| format!("refunds {id} late_contradiction")).collect();
    assert_eq!(shop.texts(&last).await, told);
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}

/// The PSP's id says more than the order's: the retry's order stands at the refund of the first.
async fn what_names_a_payment_is_of_that_one_whatever_its_tag(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 4).await;
    let alike = |id| Payment { amount: Some(5_000), ..at_bank(id, "processing") };
    shop.insert(&[alike(5), alike(6), alike(7)]).await;
    let file = braintree(&[
        ("aa5", "sale", 5_000, "pay_5", ""),
        ("aa6", "sale", 5_000, "pay_6", ""),
        ("bb5", "credit", 5_000, "pay_6", "aa5"),
        ("aa7", "sale", 5_000, "pay_7", ""),
        ("aa9", "sale", 5_000, "pay_9", ""),
        ("bb9", "credit", 5_000, "pay_7", "aa9"),
        ("aa1", "sale", 10_001, "pay_1", ""),
        ("aa2", "sale", 10_002, "pay_2", ""),
        ("bb1", "credit", 10_001, "pay_2", "aa1"),
        ("aa3", "sale", 10_003, "pay_3", ""),
        ("bb3", "credit", 500, "pay_4", "aa3"),
    ]);
    bring(&shop, "bt.csv", &file, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review refunded");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(ran.verdict(3), "review refunded");
    assert!(ran.verdict(4).starts_with("wait "), "{}", ran.verdict(4));
    assert_eq!(line_of(&shop, "bb1").await, ["matched refunded 1"]);
    assert_eq!(ran.verdict(5), "review refunded");
    assert_eq!(ran.verdict(6), "succeeded settled");
    assert_eq!(ran.verdict(7), "review refunded", "the other payment is nobody's");
    shop.check(false).await;
}

/// An id that payments under several tags carry is that of an order: what names it goes by its tag.
async fn an_id_of_several_payments_names_none(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 2).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_1", "pay_2"),
        ("refund", "re_2", -2_000, "", "pi_1", ""),
        ("refund", "re_3", -3_000, "ch_2", "pi_1", "pay_2"),
        ("dispute", "dp_1", -10_002, "", "pi_1", ""),
    ];
    bring(&shop, "payout.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "review refunded");
    let open = "select kind || ' ' || reason from tieout_lines where state = 'open' \
                order by position";
    assert_eq!(shop.texts(open).await, ["refund orphan", "chargeback orphan"]);
    shop.run().await;
    assert_eq!(shop.texts(open).await, ["refund orphan", "chargeback orphan"]);
    shop.check(false).await;
}

/// A table of one's own, in which a refund's row has the id of the payment, and none of its own.
const OWN_FORMAT: &str = r#"
[[format]]
name = "acquirer"
date = "day"
date_pattern = "%Y-%m-%d"
amount = "amount"
decimal = "."
currency = "currency"
psp_reference = "payment"
tag = [{ column = "tag", kind = "merchant_reference" }]
"#;

async fn bring_own(shop: &Shop, text: &str) {
    let path = shop.folder().join("own.csv");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    shop.tieout(&["ingest", path, "--account", "bank", "--format", "acquirer"]).await.ended(0);
}

async fn a_refund_may_carry_the_id_of_its_payment(engine: Engine) {
    let shop = with_refunds(engine, OWN_FORMAT, &[(1, 3_000)]).await;
    stuck(&shop, 2).await;
    let day = chrono::Utc::now().date_naive();
    let file = format!(
        "day,amount,currency,tag,payment\n{day},100.01,EUR,pay_1,P1\n{day},-30.00,EUR,ref_1,P1\n\
         {day},100.02,EUR,pay_2,P2\n"
    );
    bring_own(&shop, &file).await;
    shop.run().await;
    assert_eq!(
        decided(&shop).await,
        [
            "payments 1 review refunded",
            "payments 2 succeeded settled",
            "refunds 1 succeeded settled",
        ]
    );
    shop.check(false).await;
}

/// The id that each of them stores is the payment's, and claims neither.
async fn refunds_that_store_their_payment_are_told_by_their_tags(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 3_000), (3, 2_500), (4, 1_000)]).await;
    shop.raw.execute("update refunds set re_id = 'aa1' where id < 3").await;
    shop.raw.execute("update refunds set re_id = 'pi_3' where id = 3").await;
    shop.raw.execute("update refunds set re_id = 'aa4' where id = 4").await;
    let file = braintree(&[
        ("aa1", "sale", 10_001, "pay_1", ""),
        ("bb1", "credit", 2_000, "ref_1", "aa1"),
        ("bb2", "credit", 3_000, "ref_2", "aa1"),
        ("aa4", "sale", 10_004, "pay_4", ""),
        ("bb4", "credit", 1_000, "elsewhere", "aa4"),
    ]);
    bring(&shop, "bt.csv", &file, 0).await;
    let rows: &[Moved] = &[
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("refund", "re_3", -2_500, "ch_3", "pi_3", "ref_3"),
    ];
    bring(&shop, "payout.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "succeeded settled", "refund {id}");
    }
    assert_eq!(ran.verdict(4), "review reference_mismatch", "it is not known by its payment");
    shop.check(false).await;
}

/// The id may be the customer's: what is paid out under it is no refund.
async fn a_payout_gives_no_payment_back(engine: Engine) {
    let mut words: Words = with_bank();
    words.more.push_str(&own_refunds().replace("\"refund\"", "\"payout\""));
    words.more.push_str(OWN_FORMAT);
    let shop = Shop::open_with(engine, words).await;
    let made = at_text(tieout_now() - 3_600);
    let columns = "insert into refunds (id, status, cents, made)";
    shop.raw.execute(&format!("{columns} values (1, 'sent', 4000, '{made}')")).await;
    stuck(&shop, 1).await;
    let day = chrono::Utc::now().date_naive();
    let file = format!(
        "day,amount,currency,tag,payment\n{day},100.01,EUR,pay_1,K1\n{day},-40.00,EUR,ref_1,K1\n"
    );
    bring_own(&shop, &file).await;
    shop.run().await;
    assert_eq!(
        decided(&shop).await,
        ["payments 1 succeeded settled", "refunds 1 succeeded settled"]
    );
    shop.check(false).await;
}

/// The second comes in a later file: the payment's case shows all of it.
async fn a_case_knows_each_refund_that_a_row_of_its_own_has(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 3_000)]).await;
    stuck(&shop, 1).await;
    let first = braintree(&[
        ("aa1", "sale", 10_001, "pay_1", ""),
        ("bb1", "credit", 2_000, "ref_1", "aa1"),
    ]);
    bring(&shop, "first.csv", &first, 0).await;
    let told = shop.run().await.of_type("verdict");
    let said = "aa1 captured 100.01 EUR and 20.00 EUR of it was refunded";
    assert!(told.iter().any(|one| one["text"] == said), "{told:?}");
    bring(&shop, "later.csv", &braintree(&[("bb2", "credit", 3_000, "ref_2", "aa1")]), 0).await;
    shop.run().await;
    assert_eq!(shop.texts("select status from refunds").await, ["done", "done"]);
    let case = shop.texts("select text from tieout_cases where state = 'open'").await.join("");
    assert!(case.contains("50.00 EUR of it was refunded"), "{case}");
    shop.check(false).await;
}

/// What is disputed is the part that was charged back, and not all that was paid.
async fn a_chargeback_of_a_part_is_told_with_its_sum(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 3).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("dispute", "dp_1", -1_000, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("dispute", "dp_3", -10_003, "ch_3", "pi_3", "pay_3"),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review disputed");
    assert_eq!(gone(&ran, 1), "pi_1 captured 100.01 EUR and 10.00 EUR of it is disputed");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(ran.verdict(3), "review disputed");
    assert_eq!(gone(&ran, 3), "pi_3 captured 100.03 EUR and is disputed");
    let rows: &[Moved] = &[("dispute", "dp_2", -1_000, "ch_2", "pi_2", "")];
    bring(&shop, "later.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(2), "review late_contradiction");
    let said = "10.00 EUR of pi_2 came back (charged back) after the row was `paid`";
    assert_eq!(gone(&ran, 2), said);
    shop.check(false).await;
}

/// Whoever reads only that the first one failed gives the money back a third time.
async fn a_refund_that_was_made_again_is_told_beside_the_one_that_failed(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 2_000), (3, 2_000)]).await;
    let again = |id: &'static str, order| ("refund", id, -2_000, "ch_1", "pi_1", order);
    let failed = |id: &'static str, order| ("refund_failure", id, 2_000, "ch_1", "pi_1", order);
    let paid = ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1");
    let first = [paid, again("re_1", "ref_1"), again("re_2", "ref_2"), again("re_3", "ref_3")];
    bring(&shop, "first.csv", &stripe(PAYOUT, &first), 0).await;
    shop.run().await;
    assert_eq!(shop.texts("select status from refunds").await, ["done"; 3]);
    // One is made again in the file that tells of the failure, one in the next, one never.
    let later = [
        failed("re_1", "ref_1"),
        failed("re_2", "ref_2"),
        failed("re_3", "ref_3"),
        again("re_4", "ref_1"),
    ];
    bring(&shop, "later.csv", &stripe(PAYOUT, &later), 0).await;
    let ran = shop.run().await;
    let back = |id: &str| format!("20.00 EUR of {id} came back after the row was `done`");
    let stands = |id: &str| {
        format!(
            "; another refund of 20.00 EUR under its tag stands: {id}; a further one would be \
             given twice"
        )
    };
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "review late_contradiction", "refund {id}");
    }
    assert_eq!(gone(&ran, 1), format!("{}{}", back("re_1"), stands("re_4")));
    assert_eq!([gone(&ran, 2), gone(&ran, 3)], [back("re_2"), back("re_3")]);
    let last = [again("re_5", "ref_2")];
    bring(&shop, "last.csv", &stripe(PAYOUT, &last), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(2), "review late_contradiction");
    assert_eq!(gone(&ran, 2), format!("{}{}", back("re_2"), stands("re_5")));
    shop.check(false).await;
}

/// Of the row's amount or not: what came back is in its text, whichever file tells of it.
async fn a_case_of_another_amount_knows_what_came_back_since(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 2).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 5_000, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 5_000, "ch_2", "pi_2", "pay_2"),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(gone(&ran, 1), "pi_1 captured 50.00 EUR; the row says 100.01 EUR");
    let rows: &[Moved] =
        &[("refund", "re_1", -2_000, "ch_1", "", ""), ("dispute", "dp_2", -1_000, "ch_2", "", "")];
    bring(&shop, "later.csv", &stripe(PAYOUT, rows), 0).await;
    shop.run().await;
    let texts = "select reason || ': ' || text from tieout_cases where state = 'open' \
                 order by subject";
    assert_eq!(
        shop.texts(texts).await,
        [
            "amount_mismatch: pi_1 captured 50.00 EUR; the row says 100.01 EUR; \
             20.00 EUR of pi_1 was given back",
            "amount_mismatch: pi_2 captured 50.00 EUR; the row says 100.02 EUR; \
             10.00 EUR of pi_2 came back (charged back)",
        ]
    );
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}

/// PayPal's names no payment, and carries the payment's invoice or none.
async fn a_reversal_may_name_the_refund_alone(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 2_000)]).await;
    stuck(&shop, 2).await;
    let first = [
        ("T1", "pay_1", "T0006", "CR", 10_001, "S", ""),
        ("T2", "ref_1", "T1107", "DR", 2_000, "S", "T1"),
        ("T3", "pay_2", "T0006", "CR", 10_002, "S", ""),
        ("T4", "ref_2", "T1107", "DR", 2_000, "S", "T3"),
    ];
    bring(&shop, "first.csv", &paypal(18, &first), 0).await;
    shop.run().await;
    let open = "select table_name || ' ' || subject || ' ' || reason from tieout_cases \
                where state = 'open' order by 1";
    assert_eq!(shop.texts(open).await, ["payments 1 refunded", "payments 2 refunded"]);
    let later = [
        ("T5", "", "T1106", "CR", 2_000, "S", "T2"),
        ("T6", "pay_2", "T1106", "CR", 2_000, "S", "T4"),
    ];
    bring(&shop, "later.csv", &paypal(19, &later), 0).await;
    shop.run().await;
    assert_eq!([shop.status(1).await, shop.status(2).await], ["paid", "paid"]);
    let told: Vec<String> = (1..=2).map(|id| format!("refunds {id} late_contradiction")).collect();
    assert_eq!(shop.texts(open).await, told);
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}
