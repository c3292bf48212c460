//! What files of a PSP tell of payments that were given back or charged back, by the PSP's own ids:
//! the lines carry no tag of the payment's row, or that of the row which gave them back.

use crate::run::files::{REFUNDS, at_bank, bring, camt, credit, debit, with_bank};
use crate::run::payouts::dir;
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
    what_undoes_may_name_alone_what_no_row_has,
    a_refund_that_two_rows_have_a_claim_to_settles_neither,
    which_of_two_equal_refunds_failed_is_for_a_person,
    another_refund_that_failed_takes_nothing_from_the_one_that_stands,
    what_one_report_alone_tells_counts_beside_the_other,
    a_refund_that_two_reports_tell_and_one_without_its_id_is_one,
    a_row_that_stores_the_refund_that_stands_is_a_case_no_more,
    a_line_that_a_run_of_one_row_took_is_told_to_the_payment_beside_it,
    what_is_refunded_and_charged_back_is_told_as_two_sums,
    a_part_that_was_charged_back_hides_no_second_payment,
    what_takes_too_little_back_is_told_though_it_comes_alone,
    what_is_there_again_ends_the_case_of_a_row_that_the_shop_set_paid,
    money_at_an_ignored_status_is_not_called_given_up,
    what_was_not_captured_is_no_refund,
    what_a_bank_undid_by_its_mark_is_no_refund_of_the_shops,
);

const BRAINTREE: &str = "Transaction ID,Transaction Type,Transaction Status,Created Datetime,\
    Created Timezone,Settlement Date,Disbursement Date,Currency ISO Code,Amount Authorized,\
    Amount Submitted For Settlement,Order ID,Refunded Transaction ID,Settlement Amount,\
    Settlement Currency ISO Code\n";

pub const PAYOUT: &str = "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,\
    net,reporting_category,source_id,automatic_payout_id,charge_id,payment_intent_id,\
    payment_metadata[order]\n";

const CHANGE: &str = "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,\
    reporting_category,source_id,charge_id,payment_intent_id,payment_metadata[order]\n";

/// With tags of the payment and of the refund: an order is `pay_1,ref_1`.
const BOTH: &str = "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,\
    reporting_category,source_id,charge_id,payment_intent_id,payment_metadata[order],\
    refund_metadata[order]\n";

/// One of Braintree's: its id, `sale` or `credit`, cents, the order's id, what it gives back.
pub fn braintree(rows: &[(&str, &str, i64, &str, &str)]) -> String {
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
pub type Moved = (&'static str, &'static str, i64, &'static str, &'static str, &'static str);

pub fn stripe(head: &str, rows: &[Moved]) -> String {
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

const SETTLEMENT: &str = "Company Account,Merchant Account,Psp Reference,Merchant Reference,\
    TimeZone,Type,Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC),\
    Net Currency,Net Debit (NC),Net Credit (NC),Batch Number,Booking Date\n";

/// One of Adyen's settlement details: the word, its modification, cents with their sign, the
/// payment, the order. The batch is paid out.
pub fn adyen(batch: u32, rows: &[(&str, &str, i64, &str, &str)]) -> String {
    let day = chrono::Utc::now().format("%Y-%m-%d 00:10:00");
    let paid: i64 = rows.iter().map(|(.., cents, _, _)| cents).sum();
    let payout = ("MerchantPayout", "payout", -paid, "", "");
    let mut text = SETTLEMENT.to_owned();
    for (word, modification, cents, payment, order) in rows.iter().chain([&payout]) {
        let amount = format!("{}.{:02}", cents.abs() / 100, cents.abs() % 100);
        let sides = if *cents < 0 { format!("{amount},") } else { format!(",{amount}") };
        text.push_str(&format!(
            "Acme,AcmeEU,{payment},{order},UTC,{word},{modification},EUR,{sides},EUR,{sides},\
             {batch},{day}\n"
        ));
    }
    text
}

pub async fn stuck(shop: &Shop, count: i64) {
    let rows: Vec<Payment> = (1..=count).map(|id| at_bank(id, "processing")).collect();
    shop.insert(&rows).await;
}

/// What a run said of a row.
pub fn gone(ran: &Ran, id: i64) -> String {
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
    // One has the payment's tag, one none, and one the refund's own.
    let rows: &[Moved] = &[
        ("refund_failure", "re_1", 2_000, "ch_1", "pi_1", "pay_1"),
        ("refund_failure", "re_2", 2_000, "ch_2", "pi_2", ""),
        ("refund_failure", "re_3", 2_000, "ch_3", "pi_3", "ref_3"),
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
            "; another refund under its tag stands: {id} (20.00 EUR); a further one would be \
             given twice"
        )
    };
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "review late_contradiction", "refund {id}");
    }
    assert_eq!(gone(&ran, 1), format!("{}{}", back("re_1"), stands("re_4")));
    assert_eq!([gone(&ran, 2), gone(&ran, 3)], [back("re_2"), back("re_3")]);
    let whose = "select coalesce(table_name, '-') || ' ' || coalesce(key, '-') from tieout_lines \
                 where kind = 'return' order by position";
    assert_eq!(shop.texts(whose).await, ["refunds 1", "refunds 2", "refunds 3"]);
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

/// No row has the refund, or the chargeback: the payment's case ends all the same.
async fn what_undoes_may_name_alone_what_no_row_has(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 3).await;
    let first = [
        ("T1", "pay_1", "T0006", "CR", 10_001, "S", ""),
        ("T2", "", "T1107", "DR", 2_000, "S", "T1"),
        ("T3", "pay_2", "T0006", "CR", 10_002, "S", ""),
        ("T4", "pay_2", "T1107", "DR", 2_000, "S", "T3"),
        ("T5", "pay_3", "T0006", "CR", 10_003, "S", ""),
    ];
    bring(&shop, "first.csv", &paypal(18, &first), 0).await;
    let ran = shop.run().await;
    assert_eq!([ran.verdict(1), ran.verdict(2)], ["review refunded", "review refunded"]);
    let second = [("T6", "", "T1201", "DR", 10_003, "S", "T5")];
    bring(&shop, "second.csv", &paypal(19, &second), 0).await;
    assert_eq!(shop.run().await.verdict(3), "review late_contradiction");
    // The second one has the invoice of another order.
    let third = [
        ("T7", "", "T1106", "CR", 2_000, "S", "T2"),
        ("T8", "pay_3", "T1106", "CR", 2_000, "S", "T4"),
        ("T9", "", "T1202", "CR", 10_003, "S", "T6"),
    ];
    bring(&shop, "third.csv", &paypal(20, &third), 0).await;
    shop.run().await;
    for id in 1..=3 {
        assert_eq!(shop.status(id).await, "paid", "row {id}");
    }
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let whose = "select psp_reference || ' ' || state || ' ' || coalesce(key, '-') \
                 from tieout_lines where file_id = 3 order by position";
    assert_eq!(shop.texts(whose).await, ["T7 matched 1", "T8 matched 2", "T9 matched 3"]);
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}

/// The payment's tag stands first in its line, that of the one row behind it, and the other row
/// stores its id. Where no row has a tag of it, who stores the id has it.
async fn a_refund_that_two_rows_have_a_claim_to_settles_neither(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 2_000), (3, 2_000)]).await;
    shop.raw.execute("update refunds set re_id = 're_1' where id = 2").await;
    shop.raw.execute("update refunds set re_id = 're_3' where id = 3").await;
    stuck(&shop, 2).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1,"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", "pay_1,ref_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2,"),
        ("refund", "re_3", -2_000, "ch_2", "pi_2", "pay_2,elsewhere"),
    ];
    bring(&shop, "change.csv", &stripe(BOTH, rows), 0).await;
    shop.run().await;
    assert_eq!(
        decided(&shop).await,
        [
            "payments 1 review refunded",
            "payments 2 review refunded",
            "refunds 1 review reference_claimed",
            "refunds 2 review reference_mismatch",
            "refunds 3 succeeded settled",
        ]
    );
    let statuses = "select status from refunds order by id";
    assert_eq!(shop.texts(statuses).await, ["sent", "sent", "done"]);
    let whose = "select table_name || ' ' || key from tieout_lines where kind = 'refund' \
                 order by position";
    assert_eq!(shop.texts(whose).await, ["refunds 1", "refunds 3"]);
    shop.check(false).await;
}

/// The payment's case counts what is there again, and that one of them failed is told. Adyen's
/// report calls the failure by an id of its own.
async fn which_of_two_equal_refunds_failed_is_for_a_person(engine: Engine) {
    let all = [1, 2, 3, 4].map(|id| (id, 2_000));
    let shop = with_refunds(engine, "", &all).await;
    stuck(&shop, 2).await;
    let first = [
        ("Settled", "c1", 10_001, "pi_1", "pay_1"),
        ("Refunded", "re_1", -2_000, "pi_1", "ref_1"),
        ("Refunded", "re_2", -2_000, "pi_1", "ref_2"),
        ("Settled", "c2", 10_002, "pi_2", "pay_2"),
        ("Refunded", "re_3", -2_000, "pi_2", "ref_3"),
        ("Refunded", "re_4", -2_000, "pi_2", "ref_4"),
        ("RefundFailed", "f8", 2_000, "pi_2", ""),
    ];
    bring(&shop, "first.csv", &adyen(1, &first), 0).await;
    let told = shop.run().await;
    assert_eq!(shop.texts("select status from refunds").await, ["done"; 4]);
    let failed = "select state || ' ' || coalesce(reason, '-') || ' ' || coalesce(key, '-') \
                  from tieout_lines where kind = 'return' order by file_id, position";
    assert_eq!(shop.texts(failed).await, ["open tag_unusable -"]);
    assert!(exceptions(&shop, &told).contains("tag_unusable"), "in one file with its refund");
    let later = [("RefundFailed", "f9", 2_000, "pi_1", "")];
    bring(&shop, "later.csv", &adyen(2, &later), 0).await;
    let told = shop.run().await;
    assert_eq!(shop.texts(failed).await, ["open tag_unusable -"; 2]);
    assert!(exceptions(&shop, &told).contains("tag_unusable"), "in a later one");
    let texts = "select text from tieout_cases where state = 'open' order by subject";
    let left = |id: i64| format!("pi_{id} captured 100.0{id} EUR and 20.00 EUR of it was refunded");
    assert_eq!(shop.texts(texts).await, [left(1), left(2)]);
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}

pub fn exceptions(shop: &Shop, ran: &Ran) -> String {
    std::fs::read_to_string(dir(shop, ran).join("exceptions.csv")).unwrap()
}

/// Stripe and PayPal say which refund failed: one of an earlier month, of the same payment and sum,
/// takes nothing from the one that was made since. Adyen does not, and there is just one.
async fn another_refund_that_failed_takes_nothing_from_the_one_that_stands(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 2_000), (3, 2_000)]).await;
    stuck(&shop, 3).await;
    let first: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", "ref_1"),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, first), 0).await;
    let second = [
        ("T1", "pay_2", "T0006", "CR", 10_002, "S", ""),
        ("T2", "ref_2", "T1107", "DR", 2_000, "S", "T1"),
    ];
    bring(&shop, "second.csv", &paypal(18, &second), 0).await;
    let third =
        [("Settled", "c3", 10_003, "pi_3", "pay_3"), ("Refunded", "re_3", -2_000, "pi_3", "ref_3")];
    bring(&shop, "third.csv", &adyen(1, &third), 0).await;
    shop.run().await;
    let open = "select table_name || ' ' || subject || ' ' || reason from tieout_cases \
                where state = 'open' order by 1";
    let refunded = [1, 2, 3].map(|id| format!("payments {id} refunded"));
    assert_eq!(shop.texts(open).await, refunded);
    let later: &[Moved] = &[
        ("refund_failure", "re_8", 2_000, "ch_1", "pi_1", ""),
        ("refund_failure", "re_9", 2_000, "ch_1", "pi_1", "ref_1"),
    ];
    bring(&shop, "later.csv", &stripe(PAYOUT, later), 0).await;
    let again = [("T8", "", "T1106", "CR", 2_000, "S", "T7")];
    bring(&shop, "again.csv", &paypal(19, &again), 0).await;
    bring(&shop, "third2.csv", &adyen(2, &[("RefundFailed", "f3", 2_000, "pi_3", "pay_3")]), 0)
        .await;
    let told = shop.run().await;
    assert_eq!(
        shop.texts(open).await,
        ["payments 1 refunded", "payments 2 refunded", "refunds 3 late_contradiction"]
    );
    let text = "select text from tieout_cases where state = 'open' and subject = '1' \
                order by table_name";
    assert_eq!(
        shop.texts(text).await,
        ["pi_1 captured 100.01 EUR and 20.00 EUR of it was refunded"],
        "the row of the refund stores the id of the one that stands"
    );
    let failed = "select coalesce(table_name || ' ' || key, '-') || ' ' || state || ' ' || reason \
                  from tieout_lines where kind = 'return' order by file_id, position";
    assert_eq!(
        shop.texts(failed).await,
        [
            "- open returned",
            "refunds 1 matched watched",
            "- open orphan",
            "payments 3 matched settled"
        ]
    );
    let told = exceptions(&shop, &told);
    assert!(told.contains(",returned,") && told.contains(",orphan,"), "{told}");
    shop.check(false).await;
}

/// It is no row's, and nothing else was decided: the report tells it, once.
async fn what_takes_too_little_back_is_told_though_it_comes_alone(engine: Engine) {
    let mut words: Words = with_bank();
    words.more.push_str(OWN_FORMAT);
    let shop = Shop::open_with(engine, words).await;
    stuck(&shop, 1).await;
    let day = chrono::Utc::now().date_naive();
    let head = "day,amount,currency,tag,payment\n";
    bring_own(&shop, &format!("{head}{day},100.01,EUR,pay_1,P1\n")).await;
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    bring_own(&shop, &format!("{head}{day},-10.00,EUR,pay_1,P1\n")).await;
    let ran = shop.run().await;
    assert_eq!(line_of(&shop, "P1").await, ["matched settled 1", "open returned -"]);
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    let exceptions = std::fs::read_to_string(report.join("exceptions.csv")).unwrap();
    let told = exceptions.lines().skip(1).filter(|line| line.contains("returned")).count();
    assert_eq!(told, 1, "{exceptions}");
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    let again = shop.run().await.of_type("run_end").remove(0);
    assert!(again["report"].is_null(), "it was told: {again}");
    shop.check(false).await;
}

/// Of what was disputed or refunded as the row was stuck: all of it ends the case, a part does not.
async fn what_is_there_again_ends_the_case_of_a_row_that_the_shop_set_paid(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    stuck(&shop, 3).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("dispute", "dp_1", -1_000, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("refund", "re_2", -2_000, "ch_2", "pi_2", "pay_2"),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("dispute", "dp_3", -1_000, "ch_3", "pi_3", "pay_3"),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, rows), 0).await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["1 disputed", "2 refunded", "3 disputed"]);
    shop.raw.execute("update payments set status = 'paid'").await;
    let rows: &[Moved] = &[
        ("dispute_reversal", "dp_1", 1_000, "ch_1", "pi_1", "pay_1"),
        ("refund_failure", "re_2", 2_000, "ch_2", "pi_2", "pay_2"),
        ("dispute_reversal", "dp_3", 400, "ch_3", "pi_3", "pay_3"),
    ];
    bring(&shop, "later.csv", &stripe(PAYOUT, rows), 0).await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["3 late_contradiction"]);
    let text = shop.texts("select text from tieout_cases where state = 'open'").await.join("");
    assert!(text.starts_with("6.00 EUR of pi_3 came back"), "{text}");
    shop.check(true).await;
}

async fn money_at_an_ignored_status_is_not_called_given_up(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "cart"), at_bank(2, "retry")]).await;
    let file =
        braintree(&[("aa1", "sale", 10_001, "pay_1", ""), ("aa2", "sale", 10_002, "pay_2", "")]);
    bring(&shop, "bt.csv", &file, 0).await;
    let ran = shop.run().await;
    let said = [
        "aa1 captured 100.01 EUR for a row that is `cart`, a status that tieout has nothing to do \
         with",
        "aa2 captured 100.02 EUR for a row that is `retry` and was given up",
    ];
    for (id, said) in (1..).zip(said) {
        assert_eq!(ran.verdict(id), "review late_contradiction");
        assert_eq!(gone(&ran, id), said);
    }
    shop.check(true).await;
}

/// A payout's report and that of the balance tell of one payment: most of it twice, and of it what
/// fell into a payout made by hand in the second alone. Checkout's breakdown gives refunds no id.
async fn what_one_report_alone_tells_counts_beside_the_other(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000)]).await;
    let rows = [at_bank(1, "paid"), at_bank(2, "paid"), at_bank(3, "processing")];
    shop.insert(&rows).await;
    let payout: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", "ref_1"),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("dispute", "dp_1", -10_002, "ch_2", "pi_2", ""),
        ("dispute_reversal", "dp_1", 10_002, "ch_2", "pi_2", ""),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("dispute", "dp_3", -1_000, "ch_3", "pi_3", ""),
    ];
    bring(&shop, "payout.csv", &stripe(PAYOUT, payout), 0).await;
    shop.run().await;
    let balance: &[Moved] = &[
        ("dispute", "dp_4", -10_001, "ch_1", "pi_1", ""),
        ("dispute", "dp_2", -10_002, "ch_2", "pi_2", ""),
        ("dispute", "dp_3", -1_000, "ch_3", "pi_3", ""),
        ("dispute", "dp_5", -1_500, "ch_3", "pi_3", ""),
    ];
    bring(&shop, "balance.csv", &stripe(CHANGE, balance), 0).await;
    shop.run().await;
    let texts = "select table_name || ' ' || subject || ': ' || text from tieout_cases \
                 where state = 'open' order by subject, table_name";
    assert_eq!(
        shop.texts(texts).await,
        [
            "payments 1: 100.01 EUR of pi_1 came back (charged back), and 20.00 EUR of it was \
             given back, together 20.00 EUR more than it captured after the row was `paid`",
            "payments 2: 100.02 EUR of pi_2 came back (charged back) after the row was `paid`",
            "payments 3: pi_3 captured 100.03 EUR and 25.00 EUR of it is disputed",
        ]
    );
    assert_eq!(shop.texts("select status from refunds").await, ["done"]);
    shop.check(false).await;
}

async fn what_is_refunded_and_charged_back_is_told_as_two_sums(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    let rows = [
        at_bank(1, "processing"),
        at_bank(2, "paid"),
        at_bank(3, "retry"),
        at_bank(4, "processing"),
    ];
    shop.insert(&rows).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", ""),
        ("dispute", "dp_1", -3_000, "ch_1", "pi_1", ""),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("refund", "re_2", -10_002, "ch_2", "pi_2", ""),
        ("dispute", "dp_2", -10_002, "ch_2", "pi_2", ""),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("refund", "re_3", -10_003, "ch_3", "pi_3", ""),
        ("charge", "ch_5", 10_003, "ch_5", "pi_5", "pay_3"),
        ("dispute", "dp_4", -1_000, "", "pi_4", "pay_4"),
    ];
    bring(&shop, "payout.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    let told = [
        "pi_1 captured 100.01 EUR and 30.00 EUR of it is disputed, and 20.00 EUR of it was given \
         back",
        "100.02 EUR of pi_2 came back (charged back), and 100.02 EUR of it was given back, \
         together 100.02 EUR more than it captured after the row was `paid`",
        "pi_3 captured 100.03 EUR and pi_5 captured 100.03 EUR for a row that is `retry` and was \
         given up; 100.03 EUR of pi_3 was given back",
        "10.00 EUR of pi_4 came back (charged back), and no file tells what pi_4 captured; the \
         row says 100.04 EUR",
    ];
    for (id, said) in (1..).zip(told) {
        assert_eq!(gone(&ran, id), said);
    }
    assert_eq!(ran.verdict(4), "review amount_mismatch");
    shop.check(true).await;
}

/// That a customer paid twice stays the first thing to tell, whatever came back of a part.
async fn a_part_that_was_charged_back_hides_no_second_payment(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "paid"), at_bank(3, "processing")]).await;
    let first = [
        ("Settled", "c1", 10_001, "aa1", "pay_1"),
        ("Settled", "c2", 10_001, "bb1", "pay_1"),
        ("Settled", "c3", 10_002, "aa2", "pay_2"),
        ("Settled", "c4", 10_002, "bb2", "pay_2"),
        ("Settled", "c5", 10_003, "aa3", "pay_3"),
        ("Settled", "c6", 10_003, "bb3", "pay_3"),
    ];
    bring(&shop, "first.csv", &adyen(1, &first), 0).await;
    let ran = shop.run().await;
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "review duplicate_capture");
    }
    let later = [
        ("Chargeback", "d1", -1_000, "bb1", "pay_1"),
        ("Chargeback", "d2", -1_000, "bb2", "pay_2"),
        ("Refunded", "r3", -10_003, "bb3", "pay_3"),
    ];
    bring(&shop, "later.csv", &adyen(2, &later), 0).await;
    shop.run().await;
    let texts = "select reason || ': ' || text from tieout_cases where state = 'open' \
                 order by subject";
    let both =
        |id: i64| format!("2 captures for one tag: aa{id} 100.0{id} EUR, bb{id} 100.0{id} EUR");
    assert_eq!(
        shop.texts(texts).await,
        [
            format!(
                "duplicate_capture: {}; 10.00 EUR of bb1 came back (charged back); 190.02 EUR is \
                 left",
                both(1)
            ),
            format!(
                "duplicate_capture: {}; 10.00 EUR of bb2 came back (charged back); 190.04 EUR is \
                 left",
                both(2)
            ),
            format!(
                "duplicate_capture: {}; 100.03 EUR of bb3 was given back; 100.03 EUR is left",
                both(3)
            ),
        ]
    );
    shop.check(false).await;
}

/// Checkout.com's breakdown calls a refund by its payment alone, and its actions by their own id.
async fn a_refund_that_two_reports_tell_and_one_without_its_id_is_one(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 2_000)]).await;
    stuck(&shop, 2).await;
    let day = chrono::Utc::now().format("%Y-%m-%dT00:10:00.000");
    let rows = [
        ("Charge", "pay_a", "pay_1", "100.01"),
        ("Refund", "pay_a", "ref_1", "-20.00"),
        ("Charge", "pay_b", "pay_2", "100.02"),
        ("Refund", "pay_b", "ref_2", "-20.00"),
    ];
    let mut breakdown = "Type,Payment ID,Reference,Processed On,Holding Currency,Payout ID,\
                         Gross In Holding Currency,Deduction In Holding Currency,\
                         Net In Holding Currency\n"
        .to_owned();
    let mut actions = "Payment ID,Reference,Action Type,Action ID,Processed On,Holding Currency,\
                       Payout ID,Breakdown Type,Holding Currency Amount\n"
        .to_owned();
    for (at, (kind, payment, tag, amount)) in rows.iter().enumerate() {
        breakdown.push_str(&format!("{kind},{payment},{tag},{day},EUR,po_1,{amount},0,{amount}\n"));
        let kind = if *kind == "Charge" { "Capture" } else { kind };
        actions
            .push_str(&format!("{payment},{tag},{kind},act_{at},{day},EUR,po_1,{kind},{amount}\n"));
    }
    bring(&shop, "actions.csv", &actions, 0).await;
    bring(&shop, "breakdown.csv", &breakdown, 0).await;
    shop.run().await;
    assert_eq!(shop.texts("select status from refunds").await, ["done"; 2]);
    let texts = "select text from tieout_cases where state = 'open' order by subject";
    assert_eq!(
        shop.texts(texts).await,
        [
            "pay_a captured 100.01 EUR and 20.00 EUR of it was refunded",
            "pay_b captured 100.02 EUR and 20.00 EUR of it was refunded",
        ]
    );
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}

/// The shop made the refund again, and wrote the id of the one that stands, before its line came.
async fn a_row_that_stores_the_refund_that_stands_is_a_case_no_more(engine: Engine) {
    let shop = with_refunds(engine, "", &[(1, 2_000), (2, 2_000), (3, 2_000)]).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid"), at_bank(3, "paid")]).await;
    shop.raw.execute("update refunds set status = 'done', re_id = 're_9' where id = 2").await;
    let first: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", "ref_1"),
        ("refund_failure", "re_1", 2_000, "ch_1", "pi_1", ""),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("refund", "re_2", -2_000, "ch_2", "pi_2", "ref_2"),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("refund", "re_3", -1_200, "ch_3", "pi_3", "ref_3"),
        ("refund", "re_4", -800, "ch_3", "pi_3", "ref_3"),
        ("refund_failure", "re_4", 800, "ch_3", "pi_3", ""),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, first), 0).await;
    shop.run().await;
    let cases = "select subject || ' ' || reason || ': ' || text from tieout_cases \
                 where state = 'open' order by subject";
    assert_eq!(
        shop.texts(cases).await,
        [
            "1 returned: re_1 settled 20.00 EUR and came back",
            "2 reference_mismatch: the row stores re_9, and re_2 captured",
            "3 returned: 2 captures for one tag: re_3 12.00 EUR, re_4 8.00 EUR; 8.00 EUR of re_4 \
             came back; 12.00 EUR is left; another refund under its tag stands: re_3 (12.00 EUR)",
        ]
    );
    shop.raw.execute("update refunds set status = 'done', re_id = 're_8' where id = 1").await;
    let later: &[Moved] = &[
        ("refund", "re_8", -2_000, "ch_1", "pi_1", "ref_1"),
        ("refund_failure", "re_2", 2_000, "ch_2", "pi_2", ""),
        ("refund", "re_9", -2_000, "ch_2", "pi_2", "ref_2"),
    ];
    bring(&shop, "later.csv", &stripe(PAYOUT, later), 0).await;
    shop.run().await;
    let left = shop.texts(cases).await;
    assert!(matches!(&left[..], [three] if three.starts_with("3 returned")), "{left:?}");
    let open = "select psp_reference from tieout_lines where state = 'open'";
    assert_eq!(shop.texts(open).await, Vec::<String>::new());
    shop.check(false).await;
}

/// A second refund came, and its row was run alone before any run of all rows.
async fn a_line_that_a_run_of_one_row_took_is_told_to_the_payment_beside_it(engine: Engine) {
    let shop = with_refunds(engine, "", &[(7, 2_000)]).await;
    stuck(&shop, 1).await;
    let first: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_7", -2_000, "ch_1", "pi_1", "ref_7"),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, first), 0).await;
    shop.run().await;
    let text = "select text from tieout_cases where state = 'open'";
    let refunded =
        |sum: &str| [format!("pi_1 captured 100.01 EUR and {sum} EUR of it was refunded")];
    assert_eq!(shop.texts(text).await, refunded("20.00"));
    let made = at_text(tieout_now() - 3_600);
    let columns = "insert into refunds (id, status, cents, made)";
    shop.raw.execute(&format!("{columns} values (8, 'sent', 1500, '{made}')")).await;
    let path = shop.folder().join("second.csv");
    let second: &[Moved] = &[("refund", "re_8", -1_500, "ch_1", "pi_1", "ref_8")];
    std::fs::write(&path, stripe(PAYOUT, second)).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "bank"]).await.ended(0);
    shop.tieout(&["run", "--id", "8", "--json"]).await.ended(0);
    assert_eq!(shop.texts("select status from refunds where id = 8").await, ["done"]);
    assert_eq!(shop.texts(text).await, refunded("20.00"), "a run of one row looks at that one");
    shop.run().await;
    assert_eq!(shop.texts(text).await, refunded("35.00"));
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    shop.check(false).await;
}

/// Stripe books what was authorised, and beside it what of that was not captured.
async fn what_was_not_captured_is_no_refund(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "paid"), at_bank(3, "processing")]).await;
    let word = "partial_capture_reversal";
    let rows: &[Moved] = &[
        ("charge", "ch_1", 15_001, "ch_1", "pi_1", "pay_1"),
        (word, "re_1", -5_000, "ch_1", "pi_1", "pay_1"),
        ("charge", "ch_2", 15_002, "ch_2", "pi_2", "pay_2"),
        (word, "re_2", -5_000, "ch_2", "pi_2", "pay_2"),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        (word, "re_3", -5_000, "ch_3", "pi_3", "pay_3"),
    ];
    bring(&shop, "payout.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "not decided");
    assert_eq!(ran.verdict(3), "review amount_mismatch");
    let whose = "select state || ' ' || coalesce(key, '-') from tieout_lines order by position";
    let whose = shop.texts(whose).await;
    assert_eq!(whose[..4], ["matched 1", "matched 1", "matched 2", "matched 2"]);
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    shop.check(false).await;
}

async fn what_a_bank_undid_by_its_mark_is_no_refund_of_the_shops(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid")]).await;
    let bookings = [
        credit(10_001, "pay_1"),
        credit(10_002, "pay_2"),
        debit(10_001, "pay_1"),
        debit(10_002, "pay_2"),
    ];
    let text = camt("camt.053", "S1", &bookings);
    let marked = "<CdtDbtInd>DBIT</CdtDbtInd><RvslInd>true</RvslInd><Sts>";
    let text = text.replacen("<CdtDbtInd>DBIT</CdtDbtInd><Sts>", marked, 1);
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    assert!(!gone(&ran, 1).contains("refund of yours"), "{}", gone(&ran, 1));
    assert!(gone(&ran, 2).contains("without a code it may be a refund of yours"));
    shop.check(false).await;
}
