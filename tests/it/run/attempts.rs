//! Rows of an account without an API that lists every attempt in daily files: what no file of an
//! unbroken stretch names was never attempted, and one file less is no proof.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{Days, NaiveDate};

use crate::run::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    a_closed_set_of_files_proves_absence,
    a_sibling_that_was_given_up_and_is_listed_may_be_paid,
    a_sibling_that_was_given_up_waits_for_the_file_of_its_day,
    a_payment_in_a_file_is_no_witness_for_a_refund,
    lines_under_payments_tags_of_equal_ids_prove_no_refund_absent,
    lines_under_their_own_tags_of_equal_ids_are_witnesses,
    files_that_list_payments_alone_prove_no_refund_absent,
    a_later_file_that_did_not_come_stops_the_proof,
    every_series_and_every_part_of_a_day_is_needed_whole,
    a_payment_that_may_be_the_rows_stops_the_proof,
    a_tag_with_other_marks_stops_the_proof,
    a_tag_that_was_masked_stops_the_proof,
    a_report_that_may_have_been_cut_proves_nothing,
    a_report_of_another_zones_days_proves_nothing,
    a_later_report_without_a_row_is_believed_where_no_row_was_made,
    a_row_that_a_report_lists_after_all_is_a_case_at_once,
    a_row_that_was_sent_again_and_is_listed_after_all_is_a_case,
    what_settled_proves_no_absence,
    a_banks_own_file_proves_absence_where_it_says_so,
    a_day_is_that_of_any_of_several_zones,
    an_attempt_of_the_senders_own_day_is_the_second_one,
    a_day_without_a_payment_ties_out,
    a_file_that_was_written_before_its_day_was_over_proves_nothing,
    a_row_that_was_sent_before_it_was_made_needs_the_file_of_that_day,
    nearly_its_tag_stops_the_proof_on_any_later_day,
    a_pending_row_of_a_described_list_ends_a_hand_back,
);

/// The rows were sent so many days ago.
const AGO: u64 = 4;

fn day(ago: u64) -> NaiveDate {
    chrono::Utc::now().date_naive().checked_sub_days(Days::new(ago)).unwrap()
}

fn name(ago: u64) -> String {
    day(ago).format("received_%Y_%m_%d.csv").to_string()
}

/// A report of the payments that were received on a day: reference, tag, cents, status.
fn received(ago: u64, payments: &[(String, String, i64, &str)]) -> String {
    let mut text = "Company Account,Merchant Account,Psp Reference,Merchant Reference,\
                    Payment Method,Creation Date,TimeZone,Currency,Amount,Type\n"
        .to_owned();
    for (reference, tag, cents, kind) in payments {
        let day = day(ago);
        let (units, rest) = (cents / 100, cents % 100);
        writeln!(
            text,
            "Acme,AcmeEU,{reference},{tag},visa,{day} 10:00:00,UTC,EUR,{units}.{rest:02},{kind}"
        )
        .unwrap();
    }
    text
}

/// The same as a report of all records, which lists refunds as well.
fn accounting(ago: u64, payments: &[(String, String, i64, &str)]) -> String {
    let mut text = "Company Account,Merchant Account,Psp Reference,Merchant Reference,\
                    Payment Method,Booking Date,TimeZone,Main Currency,Main Amount,Record Type,\
                    Settlement Currency,Payable (SC)\n"
        .to_owned();
    for (reference, tag, cents, kind) in payments {
        let (day, units, rest) = (day(ago), cents / 100, cents % 100);
        writeln!(
            text,
            "Acme,AcmeEU,{reference},{tag},visa,{day} 10:00:00,UTC,EUR,{units}.{rest:02},{kind},,"
        )
        .unwrap();
    }
    text
}

/// Payments of rows that were paid long since: their tags are known.
fn known(ago: u64) -> Vec<(String, String, i64, &'static str)> {
    (101..=130)
        .map(|id| (format!("PSP{ago}{id}"), format!("pay_{id}"), 50_000 + id, "Authorised"))
        .collect()
}

fn one(reference: &str, tag: &str, cents: i64) -> (String, String, i64, &'static str) {
    (reference.to_owned(), tag.to_owned(), cents, "Authorised")
}

/// A report whose days are those of a zone, by its word.
fn in_zone(word: &str, report: &str) -> String {
    report.replace(",UTC,", &format!(",{word},"))
}

async fn shop_with_files(engine: Engine) -> Shop {
    shop_with(engine, "").await
}

async fn shop_with(engine: Engine, formats: &str) -> Shop {
    shop_in(engine, "UTC", formats).await
}

/// The sender's days are those of a zone.
async fn shop_in(engine: Engine, zone: &str, formats: &str) -> Shop {
    let more = "[[account]]\nname = \"bank\"\npsp = \"files\"\nmode = \"full\"\nlivemode = true\n\
                [[source]]\nname = \"adyen\"\nkind = \"folder\"\npath = \"in\"\n\
                account = \"bank\"\nzone = \"[zone]\"\n\
                [[source.expected]]\nname = \"received_%Y_%m_%d.csv\"\nby = \"23:00\"\n\
                days = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\", \"sun\"]\n";
    let more = format!("{}{formats}", more.replace("[zone]", zone));
    let words = Words { accounts: ", bank = \"bank\"", more, ..Words::default() };
    let shop = Shop::open_with(engine, words).await;
    std::fs::create_dir(shop.folder().join("in")).unwrap();
    shop
}

/// Made at noon so many days ago and sent a minute later.
fn stuck(id: i64) -> Payment {
    let noon = day(AGO).and_hms_opt(12, 0, 0).unwrap().and_utc().timestamp();
    let age = chrono::Utc::now().timestamp() - noon;
    Payment { account: "bank", age, attempted: Some(age - 60), ..Payment::stuck(id) }
}

fn paid(id: i64) -> Payment {
    Payment { account: "bank", status: "paid", ..Payment::stuck(id) }
}

/// The files since, up to yesterday's: nothing in them, but that they came.
async fn bring_later(shop: &Shop) {
    for ago in 1..AGO - 1 {
        bring(shop, ago, &known(ago)).await;
    }
}

async fn bring(shop: &Shop, ago: u64, payments: &[(String, String, i64, &str)]) {
    bring_text(shop, ago, &received(ago, payments)).await;
}

async fn bring_text(shop: &Shop, ago: u64, text: &str) {
    let path = shop.folder().join(name(ago));
    std::fs::write(&path, text).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "bank"]).await.ended(0);
}

/// Runs twice: the first look at a row only tells that nothing moves it any more. Then what was
/// decided last of each row, and why.
async fn decided(shop: &Shop) -> BTreeMap<String, (String, String)> {
    shop.run().await;
    shop.a_span_passes().await;
    shop.run().await;
    let records = shop
        .texts(
            "select key || ' ' || outcome || ' ' || reason || '|' || text from tieout_journal \
             where reason <> 'watched' order by at, seq",
        )
        .await;
    let mut last = BTreeMap::new();
    for record in records {
        let (head, text) = record.split_once('|').unwrap();
        let (key, verdict) = head.split_once(' ').unwrap();
        last.insert(key.to_owned(), (verdict.to_owned(), text.to_owned()));
    }
    last
}

#[track_caller]
fn is(decided: &BTreeMap<String, (String, String)>, id: &str, verdict: &str, says: &str) {
    let (own, text) = &decided[id];
    assert_eq!(own, verdict, "{text}");
    assert!(text.contains(says), "{text}");
}

async fn a_closed_set_of_files_proves_absence(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2)]).await;
    // The day before and the day after came, and their own did not.
    bring(&shop, AGO + 1, &known(AGO + 1)).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    let lacks = format!("{} did not come whole yet", name(AGO));
    is(&now, "1", "wait absence_unproven", &lacks);
    // Of a day without a payment: it says nothing of either row, and a witness came later.
    let own = [known(AGO), vec![one("PSP2", "pay_2", 10_002)]].concat();
    bring(&shop, AGO, &own).await;
    shop.due_now().await;
    let now = decided(&shop).await;
    let says = format!("in no file of bank from {}T00:00:00Z", day(AGO + 1));
    is(&now, "1", "retryable absent", &says);
    is(&now, "2", "wait psp_pending", "");
    assert_eq!(shop.status(1).await, "retry");
    assert_eq!(shop.status(2).await, "processing");
    shop.check(false).await;
}

/// A PSP that leaves the day's list at noon and again at night: of what was sent in between the
/// first one says nothing. The same bytes at night say that nothing was added.
async fn a_file_that_was_written_before_its_day_was_over_proves_nothing(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1)]).await;
    let at = |ago: u64, hour: u32| day(ago).and_hms_opt(hour, 0, 0).unwrap().and_utc();
    let touch = |written: chrono::DateTime<chrono::Utc>| {
        let file = std::fs::File::options().write(true).open(shop.folder().join(name(AGO)));
        file.unwrap().set_modified(written.into()).unwrap();
    };
    let path = shop.folder().join(name(AGO));
    let ingest = ["ingest", path.to_str().unwrap(), "--account", "bank"];
    bring(&shop, AGO + 1, &known(AGO + 1)).await;
    std::fs::write(&path, received(AGO, &known(AGO))).unwrap();
    touch(at(AGO, 14));
    shop.tieout(&ingest).await.ended(0);
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let says = format!("{} was written before the day was over", name(AGO));
    is(&decided(&shop).await, "1", "wait absence_unproven", &says);
    touch(at(AGO - 1, 0));
    shop.tieout(&ingest).await.ended(0);
    shop.due_now().await;
    is(&decided(&shop).await, "1", "retryable absent", "in no file of bank");
    shop.check(false).await;
}

/// A row that was copied in says that it was sent before it was made. Where it was made just after
/// midnight, another clock may have listed it on the day before.
async fn a_row_that_was_sent_before_it_was_made_needs_the_file_of_that_day(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    let ago = |days: u64, minutes: i64| {
        let at = day(days).and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp() + minutes * 60;
        chrono::Utc::now().timestamp() - at
    };
    let row = |id, made: i64, sent: i64| Payment { age: made, attempted: Some(sent), ..stuck(id) };
    let (noon, next) = (ago(AGO + 1, 720), ago(AGO, 720));
    shop.insert(&[row(1, next, noon), row(2, ago(AGO, 1), ago(AGO, 1))]).await;
    shop.insert(&[row(3, ago(AGO, 5), ago(AGO, 5))]).await;
    bring(&shop, AGO, &known(AGO)).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    let lacks = format!("{} did not come whole yet", name(AGO + 1));
    is(&now, "1", "wait absence_unproven", &lacks);
    is(&now, "2", "wait absence_unproven", &lacks);
    is(&now, "3", "retryable absent", "in no file of bank");
    bring(&shop, AGO + 1, &known(AGO + 1)).await;
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "1", "retryable absent", "in no file of bank");
    is(&now, "2", "retryable absent", "in no file of bank");
    shop.check(false).await;
}

/// What was sent late may be listed on a later day, and then under a tag that is nearly the row's.
async fn nearly_its_tag_stops_the_proof_on_any_later_day(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2)]).await;
    bring(&shop, AGO, &known(AGO)).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring(&shop, AGO - 2, &[known(AGO - 2), vec![one("PSP2", "PAY-2", 777)]].concat()).await;
    bring(&shop, 1, &known(1)).await;
    let now = decided(&shop).await;
    is(&now, "1", "retryable absent", "in no file of bank");
    is(&now, "2", "review tag_near_miss", "`PAY-2`, nearly this row's `pay_2`");
    shop.check(false).await;
}

/// An attempt that may still be paid, of a row that was handed back by a list that lacked it.
async fn a_pending_row_of_a_described_list_ends_a_hand_back(engine: Engine) {
    let stated =
        OWN.replace("covers =", "booked = { column = \"state\", is = [\"paid\"] }\ncovers =");
    let shop = shop_with(engine, &stated).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1)]).await;
    let list = |ago: u64, rows: &[(i64, &str)]| {
        let head = "day;amount;reference;state\n";
        let row = |(id, state): &(i64, &str)| {
            let cents = 10_000 + id;
            format!("{};{}.{:02};pay_{id};{state}\n", day(ago), cents / 100, cents % 100)
        };
        let body: String = rows.iter().map(row).collect();
        format!("{head}{body}END;{}\n", rows.len())
    };
    let bring = async |ago: u64, rows: &[(i64, &str)]| {
        let path = shop.folder().join(name(ago));
        std::fs::write(&path, list(ago, rows)).unwrap();
        let path = path.to_str().unwrap();
        shop.tieout(&["ingest", path, "--account", "bank", "--format", "own"]).await.ended(0);
    };
    for ago in 1..=AGO {
        bring(ago, &[(i64::try_from(ago).unwrap() + 110, "paid")]).await;
    }
    is(&decided(&shop).await, "1", "retryable absent", "in no file of bank");
    let later = at_text(tieout_now() + 7_200);
    let columns = "update tieout_checks set next_check_at";
    let wait = format!("{columns} = '{later}' where state in ('open', 'watch')");
    shop.raw.execute(&wait).await;
    bring(AGO - 1, &[(113, "paid"), (1, "pending")]).await;
    assert_eq!(shop.run().await.verdict(1), "review late_contradiction");
    let ended = "select key || ' ' || end_reason from tieout_handbacks where ended_at is not null";
    assert_eq!(shop.texts(ended).await, ["1 late_contradiction"]);
    shop.check(false).await;
}

/// Nobody is charged again beside a payment that the files list, whatever its row says.
async fn a_sibling_that_was_given_up_and_is_listed_may_be_paid(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    let of = |id, order: &str| Payment { order_no: Some(order.to_owned()), ..stuck(id) };
    let failed = |id, order| Payment { status: "failed", ..of(id, order) };
    shop.insert(&[of(1, "A"), failed(2, "A"), of(3, "B"), failed(4, "B")]).await;
    for ago in [AGO + 1, AGO - 1] {
        bring(&shop, ago, &known(ago)).await;
    }
    bring_later(&shop).await;
    bring(&shop, AGO, &[known(AGO), vec![one("PSP2", "pay_2", 10_002)]].concat()).await;
    let now = decided(&shop).await;
    is(&now, "1", "wait sibling_pending", "row 2 with the same natural key may still be paid");
    is(&now, "3", "retryable absent", "in no file of bank");
    shop.check(false).await;
}

/// What a file may list that did not come yet may be paid; of what was before the first one nobody
/// can tell. What was handed back so is not taken back because an earlier file is found to lack.
async fn a_sibling_that_was_given_up_waits_for_the_file_of_its_day(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    let of = |id, order: &str| Payment { order_no: Some(order.to_owned()), ..stuck(id) };
    let failed = |id, order, days: i64| {
        let row = of(id, order);
        let (age, attempted) = (row.age + days * 86_400, row.attempted.unwrap() + days * 86_400);
        Payment { status: "failed", age, attempted: Some(attempted), ..row }
    };
    let (day_before, long_ago) = (1, 40);
    shop.insert(&[of(1, "A"), failed(2, "A", day_before)]).await;
    shop.insert(&[of(3, "B"), failed(4, "B", day_before)]).await;
    shop.insert(&[of(5, "C"), failed(6, "C", long_ago)]).await;
    // Sent twice: its first call was refused, and the file of its second did not come.
    let second = failed(8, "D", day_before).attempted;
    let sent_twice = Payment { attempted: second, ..failed(8, "D", day_before + 1) };
    shop.insert(&[of(7, "D"), sent_twice]).await;
    // What a line carries is nearly its tag, and just its money.
    let masked = Payment { amount: Some(4_711), ..failed(10, "E", 0) };
    shop.insert(&[of(9, "E"), masked]).await;
    let refused = ("PSP8".to_owned(), "pay_8".to_owned(), 10_008, "Refused");
    bring(&shop, AGO + 2, &[known(AGO + 2), vec![refused]].concat()).await;
    bring(&shop, AGO, &[known(AGO), vec![one("PSP10", "PAY_10", 4_711)]].concat()).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    let waits = |id: u8| {
        let lacks = format!("{} did not come whole yet", name(AGO + 1));
        format!(
            "row {id} with the same natural key is older and may still be paid at the PSP: {lacks}"
        )
    };
    is(&now, "1", "wait sibling_pending", &waits(2));
    is(&now, "3", "wait sibling_pending", &waits(4));
    is(&now, "5", "retryable absent", "in no file of bank");
    is(&now, "7", "wait sibling_pending", &waits(8));
    is(&now, "9", "wait sibling_pending", "row 10 with the same natural key");
    bring(&shop, AGO + 42, &known(AGO + 42)).await;
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "3", "wait sibling_pending", &waits(4));
    assert_eq!(shop.status(5).await, "retry");
    assert_eq!(shop.texts("select key from tieout_handbacks where ended_at is null").await, ["5"]);
    bring(&shop, AGO + 1, &[known(AGO + 1), vec![one("PSP2", "pay_2", 10_002)]].concat()).await;
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "1", "wait sibling_pending", "row 2 with the same natural key is older and may");
    is(&now, "3", "retryable absent", "in no file of bank");
    shop.check(false).await;
}

/// Lines of payments show how payments are tagged, and nothing of how refunds are.
async fn a_payment_in_a_file_is_no_witness_for_a_refund(engine: Engine) {
    let mut shop = shop_with_files(engine).await;
    let kinds = "kind = { column = \"note\", values = { pay = \"charge\", back = \"refund\" } }\n";
    shop.words.table = kinds.to_owned();
    shop.write_words();
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2)]).await;
    shop.raw
        .execute(
            "update payments set note = 'pay' where id <> 1;
             update payments set note = 'back' where id = 1",
        )
        .await;
    for ago in 1..=AGO + 1 {
        bring_text(&shop, ago, &accounting(ago, &known(ago))).await;
    }
    let now = decided(&shop).await;
    is(&now, "1", "wait absence_unproven", "carries a tag that resolves to a row");
    is(&now, "2", "retryable absent", "in no file of bank");
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "retry"]);
    shop.check(false).await;
}

/// Payments and refunds in two tables that both have the ids 101 to 130: each of these tags names
/// one of each. Beside them these refunds are stuck, at 7.00 and so many cents.
async fn shop_of_equal_ids(engine: Engine, stuck_refunds: &[i64]) -> Shop {
    let shop = shop_with(engine, super::files::REFUNDS).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    let noon = day(AGO).and_hms_opt(12, 0, 0).unwrap().and_utc().timestamp();
    let done = (101..=130_i64).map(|id| (id, "done", 300 + id));
    let sent = stuck_refunds.iter().map(|id| (*id, "sent", 700 + *id));
    for (id, status, cents) in done.chain(sent) {
        let columns = "insert into refunds (id, status, cents, made)";
        let sql = format!("{columns} values ({id}, '{status}', {cents}, '{}')", at_text(noon));
        shop.raw.execute(&sql).await;
    }
    shop
}

/// A day's payments, of what their rows say, and its refunds, under these tags.
fn both(ago: u64, tag_of: impl Fn(i64) -> i64) -> Vec<(String, String, i64, &'static str)> {
    let payment = |id: i64| one(&format!("PSP{ago}{id}"), &format!("pay_{id}"), 10_000 + id);
    let refund = |id: i64| one(&format!("RE{ago}{id}"), &format!("pay_{}", tag_of(id)), 300 + id);
    (101..=110).map(payment).chain((111..=130).map(refund)).collect()
}

/// Refunds that are sent with their payments' ids, which by chance are other refunds' as well.
async fn lines_under_payments_tags_of_equal_ids_prove_no_refund_absent(engine: Engine) {
    let shop = shop_of_equal_ids(engine, &[201]).await;
    for ago in 1..=AGO + 1 {
        let own = (ago == AGO).then(|| one("REOWN", "pay_112", 901));
        let lines = both(ago, |id| 241 - id).into_iter().chain(own);
        bring_text(&shop, ago, &accounting(ago, &lines.collect::<Vec<_>>())).await;
    }
    let now = decided(&shop).await;
    let says = "carries a tag that resolves to a row";
    is(&now, "201", "wait absence_unproven", says);
    let status = shop.texts("select status from refunds where id = 201").await;
    assert_eq!(status, ["sent"]);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(false).await;
}

/// Equal ids alone stop no proof; money of a stuck row under the tag of a row of another amount
/// does.
async fn lines_under_their_own_tags_of_equal_ids_are_witnesses(engine: Engine) {
    let shop = shop_of_equal_ids(engine, &[201, 202]).await;
    for ago in 1..=AGO + 1 {
        let own = (ago == AGO).then(|| one("REOWN", "pay_112", 902));
        let lines = both(ago, |id| id).into_iter().chain(own);
        bring_text(&shop, ago, &accounting(ago, &lines.collect::<Vec<_>>())).await;
    }
    let now = decided(&shop).await;
    is(&now, "201", "retryable absent", "in no file of bank from");
    is(&now, "202", "review possible_untagged_match", "REOWN");
    let statuses = "select status from refunds where id in (201, 202) order by id";
    assert_eq!(shop.texts(statuses).await, ["again", "sent"]);
    shop.check(false).await;
}

/// A report of received payments has no line of a refund, whichever came.
async fn files_that_list_payments_alone_prove_no_refund_absent(engine: Engine) {
    let shop = shop_of_equal_ids(engine, &[201]).await;
    for ago in 1..=AGO + 1 {
        bring(&shop, ago, &both(ago, |id| id)).await;
    }
    let now = decided(&shop).await;
    is(&now, "201", "wait absence_unproven", "what settled and not what was attempted");
    assert_eq!(shop.texts("select status from refunds where id = 201").await, ["sent"]);
    shop.check(false).await;
}

/// What was sent late in the day may be listed on the next one.
async fn a_later_file_that_did_not_come_stops_the_proof(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2)]).await;
    bring(&shop, AGO, &known(AGO)).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    let lacks = format!("{} did not come whole yet", name(AGO - 1));
    is(&now, "1", "wait absence_unproven", &lacks);
    is(&now, "2", "wait absence_unproven", &lacks);
    let late = [known(AGO - 1), vec![one("PSP2", "pay_2", 10_002)]].concat();
    bring(&shop, AGO - 1, &late).await;
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "1", "retryable absent", "in no file of bank from");
    is(&now, "2", "wait psp_pending", "");
    shop.check(false).await;
}

/// Reports of a second part of the business, in one or several files a day.
const PARTS: &str = "[[source.expected]]\nname = \"part_%Y_%m_%d*.csv\"\nby = \"23:00\"\n\
    days = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\", \"sun\"]\n";

async fn every_series_and_every_part_of_a_day_is_needed_whole(engine: Engine) {
    let shop = shop_with(engine, PARTS).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1)]).await;
    let part = async |ago: u64, number: u8, text: &str, code: i32| {
        let name = day(ago).format("part_%Y_%m_%d").to_string();
        let path = shop.folder().join(format!("{name}_{number}.csv"));
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        shop.tieout(&["ingest", path, "--account", "bank"]).await.ended(code);
    };
    let of = |ago: u64, tag: &str| received(ago, &[one(&format!("PART{ago}"), tag, 777)]);
    for ago in 1..=AGO {
        bring(&shop, ago, &known(ago)).await;
    }
    let lacking = day(AGO).format("part_%Y_%m_%d*.csv").to_string();
    // Nothing came of the second series: nobody knows what it would have listed.
    is(&decided(&shop).await, "1", "wait absence_unproven", &lacking);
    for ago in 1..=AGO {
        part(ago, 1, &of(ago, "pay_101"), 0).await;
    }
    // The day's second part lists it, and none of its lines counts.
    part(AGO, 2, &format!("{}Acme,AcmeEU,cut", of(AGO, "pay_1")), 3).await;
    shop.due_now().await;
    let lacks = format!("{lacking} did not come whole yet");
    is(&decided(&shop).await, "1", "wait absence_unproven", &lacks);
    part(AGO, 2, &of(AGO, "pay_102"), 0).await;
    shop.due_now().await;
    is(&decided(&shop).await, "1", "retryable absent", "in no file of bank from");
    shop.check(false).await;
}

async fn a_payment_that_may_be_the_rows_stops_the_proof(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2), stuck(3), stuck(4)]).await;
    let own = [
        known(AGO),
        vec![one("PSP1", "PAY_1", 777), one("PSP2", "", 10_002), one("PSP3", "other", 10_003)],
    ]
    .concat();
    bring(&shop, AGO, &own).await;
    // The same money on another day is nobody's business.
    let next = [known(AGO - 1), vec![one("PSP4", "", 10_004)]].concat();
    bring(&shop, AGO - 1, &next).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    is(&now, "1", "review tag_near_miss", "");
    is(&now, "2", "review possible_untagged_match", "");
    is(&now, "3", "review possible_untagged_match", "");
    is(&now, "4", "retryable absent", "");
    shop.check(false).await;
}

/// Whatever money it moved, it may be the row's; but for a tag that is another row's own, be it by
/// a mark alone.
async fn a_tag_with_other_marks_stops_the_proof(engine: Engine) {
    let shop = shop_with_files(engine).await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let by_order = text.replace("tag = \"pay_{id}\"", "tag = \"{order_no}\"");
    assert_ne!(by_order, text);
    std::fs::write(&path, by_order).unwrap();
    let with = |row: Payment, tag: &str| Payment { order_no: Some(tag.to_owned()), ..row };
    let paid = (101..=130).map(|id| with(paid(id), &format!("pay_{id}")));
    shop.insert(&paid.collect::<Vec<_>>()).await;
    let own = ["ee-5", "order-100045", "INV-2026-77", "a-1", "a1"];
    let rows = own.into_iter().zip(1..).map(|(tag, id)| with(stuck(id), tag));
    shop.insert(&rows.collect::<Vec<_>>()).await;
    let listed = [
        one("PSP1", "ee5", 5_400),
        one("PSP2", "order_100045", 777),
        one("PSP3", "INV 2026/77", 778),
        one("PSP5", "a1", 10_005),
    ];
    bring(&shop, AGO, &[&known(AGO)[..], &listed].concat()).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    is(&now, "1", "review tag_near_miss", "`ee5`, nearly this row's `ee-5`");
    is(&now, "2", "review tag_near_miss", "`order_100045`, nearly this row's `order-100045`");
    is(&now, "3", "review tag_near_miss", "`INV 2026/77`, nearly this row's `INV-2026-77`");
    is(&now, "4", "retryable absent", "in no file of bank from");
    is(&now, "5", "wait psp_pending", "");
    shop.check(false).await;
}

/// An order number with the look of a card number is masked in what is kept of a file.
async fn a_tag_that_was_masked_stops_the_proof(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    let looks_so = 4_111_111_111_111_111;
    shop.insert(&[Payment { amount: Some(10_001), ..stuck(looks_so) }]).await;
    let own = [known(AGO), vec![one("PSP1", &format!("pay_{looks_so}"), 777)]].concat();
    bring(&shop, AGO, &own).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    is(&now, &looks_so.to_string(), "review tag_near_miss", "pay_************1111");
    assert_eq!(shop.status(looks_so).await, "processing");
    shop.check(false).await;
}

/// The proof was wrong, and nobody may have charged again yet: that is not to wait for the watch.
async fn a_row_that_a_report_lists_after_all_is_a_case_at_once(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2), stuck(3)]).await;
    bring(&shop, AGO, &known(AGO)).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    for id in ["1", "2", "3"] {
        is(&now, id, "retryable absent", "");
    }
    let later = at_text(tieout_now() + 7_200);
    let columns = "update tieout_checks set next_check_at";
    let wait = format!("{columns} = '{later}' where state in ('open', 'watch')");
    shop.raw.execute(&wait).await;
    let refused = ("PSP2".to_owned(), "pay_2".to_owned(), 10_002, "Refused");
    let late = [known(AGO - 1), vec![one("PSP1", "pay_1", 10_001), refused]].concat();
    bring(&shop, AGO - 1, &late).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(ran.verdict(2), "wait watched", "it may be charged again all the same");
    assert_eq!(ran.verdict(3), "not decided");
    assert_eq!(shop.status(1).await, "retry");
    let ended = "select key || ' ' || end_reason from tieout_handbacks where ended_at is not null";
    assert_eq!(shop.texts(ended).await, ["1 late_contradiction"]);
    shop.raw.execute(&wait).await;
    assert!(shop.run().await.verdicts().is_empty(), "its lines are told");
    shop.check(false).await;
}

/// It was sent twice by now: nobody is to wait for what settles to learn of it.
async fn a_row_that_was_sent_again_and_is_listed_after_all_is_a_case(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1)]).await;
    bring(&shop, AGO, &known(AGO)).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    is(&decided(&shop).await, "1", "retryable absent", "");
    let sent = at_text(tieout_now());
    let again =
        format!("update payments set status = 'processing', attempted_at = '{sent}' where id = 1");
    shop.raw.execute(&again).await;
    let late = [known(AGO - 1), vec![one("PSP1", "pay_1", 10_001)]].concat();
    bring(&shop, AGO - 1, &late).await;
    for _look in 0..3 {
        shop.a_span_passes().await;
        shop.due_now().await;
        shop.run().await;
    }
    let now = decided(&shop).await;
    is(&now, "1", "review late_contradiction", "was handed back: its call did arrive");
    // The worker sent it again.
    shop.check(true).await;
}

async fn what_settled_proves_no_absence(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1)]).await;
    let now = decided(&shop).await;
    let says = "tell what settled and not what was attempted";
    is(&now, "1", "wait absence_unproven", says);
    // Whole days, and nothing in them that shows that tags still arrive.
    for ago in 1..=AGO {
        bring(&shop, ago, &[one(&format!("PSP{ago}"), "nobody", 777)]).await;
    }
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "1", "wait absence_unproven", "carries a tag that resolves");
    shop.check(false).await;
}

/// Such a report has no sum: at a row's end, or behind its header, nothing else shows a cut.
async fn a_report_that_may_have_been_cut_proves_nothing(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2)]).await;
    bring(&shop, AGO - 1, &known(AGO - 1)).await;
    bring_later(&shop).await;
    let path = shop.folder().join(name(AGO));
    let whole = received(AGO, &[known(AGO), vec![one("PSP2", "pay_2", 10_002)]].concat());
    let cut = whole.lines().count() - 1;
    let cut: Vec<&str> = whole.lines().take(cut).collect();
    std::fs::write(&path, cut.join("\n")).unwrap();
    let ran = shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "bank"]).await.ended(0);
    assert!(ran.stdout.contains("it may have been cut: tieout files show"), "{}", ran.stdout);
    let now = decided(&shop).await;
    let lacks = format!("{} did not come whole yet", name(AGO));
    is(&now, "1", "wait absence_unproven", &lacks);
    is(&now, "2", "wait absence_unproven", &lacks);
    bring(&shop, AGO, &[]).await;
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "2", "wait absence_unproven", &format!("{} came without a row", name(AGO)));
    std::fs::write(&path, whole).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "bank"]).await.ended(0);
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "1", "retryable absent", "in no file of bank from");
    is(&now, "2", "wait psp_pending", "");
    shop.check(false).await;
}

/// A shop that was closed has nothing to list; one that was open has.
async fn a_later_report_without_a_row_is_believed_where_no_row_was_made(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    let noon = day(AGO - 1).and_hms_opt(12, 0, 0).unwrap().and_utc().timestamp();
    let next = Payment { age: chrono::Utc::now().timestamp() - noon, ..paid(99) };
    shop.insert(&[stuck(1), next]).await;
    bring(&shop, AGO, &known(AGO)).await;
    bring(&shop, AGO - 1, &[]).await;
    bring_later(&shop).await;
    let now = decided(&shop).await;
    is(&now, "1", "wait absence_unproven", &format!("{} came without a row", name(AGO - 1)));
    shop.raw.execute("delete from payments where id = 99").await;
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "1", "retryable absent", "in no file of bank from");
    shop.check(false).await;
}

/// A bank's own rows: every one is counted by the last.
const OWN: &str = "[[format]]\nname = \"own\"\ndelimiter = \";\"\ndate = \"day\"\n\
    date_pattern = \"%Y-%m-%d\"\namount = \"amount\"\ncurrency_is = \"EUR\"\n\
    covers = \"attempts\"\n\
    tag = [{ column = \"reference\", kind = \"merchant_reference\" }]\n\
    trailer = { column = 1, is = [\"END\"], count = 2 }\n";

fn own(ago: u64, ids: &[i64]) -> String {
    let mut text = "day;amount;reference\n".to_owned();
    for id in ids {
        let cents = 10_000 + id;
        writeln!(text, "{};{}.{:02};pay_{id}", day(ago), cents / 100, cents % 100).unwrap();
    }
    writeln!(text, "END;{}", ids.len()).unwrap();
    text
}

async fn a_banks_own_file_proves_absence_where_it_says_so(engine: Engine) {
    let shop = shop_with(engine, OWN).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2)]).await;
    let bring = async |ago: u64, text: &str, code: i32| {
        let path = shop.folder().join(name(ago));
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        shop.tieout(&["ingest", path, "--account", "bank", "--format", "own"]).await.ended(code);
    };
    let ids = |from: i64| (from..from + 10).collect::<Vec<_>>();
    bring(AGO + 1, &own(AGO + 1, &ids(101)), 0).await;
    bring(AGO - 1, &own(AGO - 1, &ids(121)), 0).await;
    bring(AGO - 2, &own(AGO - 2, &ids(141)), 0).await;
    bring(1, &own(1, &ids(151)), 0).await;
    // Their own day's came, and was cut.
    let whole = own(AGO, &[ids(111), vec![2]].concat());
    let (cut, _trailer) = whole.split_once("END").unwrap();
    bring(AGO, cut, 3).await;
    let lacks = format!("{} did not come whole yet", name(AGO));
    is(&decided(&shop).await, "1", "wait absence_unproven", &lacks);
    bring(AGO, &whole, 0).await;
    shop.due_now().await;
    let now = decided(&shop).await;
    is(&now, "1", "retryable absent", "in no file of bank from");
    is(&now, "2", "succeeded settled", "");
    assert_eq!(shop.status(1).await, "retry");
    shop.check(false).await;
}

/// A second sender, fourteen hours ahead of UTC.
const EAST: &str = "[[source]]\nname = \"east\"\nkind = \"folder\"\npath = \"east\"\n\
    account = \"bank\"\nzone = \"Pacific/Kiritimati\"\n\
    [[source.expected]]\nname = \"east_%Y_%m_%d.csv\"\nby = \"23:00\"\n\
    days = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\", \"sun\"]\n";

/// Where the rows were sent it was noon, and there the next day had begun: a payment without a tag
/// that is told of that day may be a row's own.
async fn a_day_is_that_of_any_of_several_zones(engine: Engine) {
    let shop = shop_with(engine, EAST).await;
    std::fs::create_dir(shop.folder().join("east")).unwrap();
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1), stuck(2)]).await;
    for ago in 1..=AGO {
        bring(&shop, ago, &known(ago)).await;
        let own = one(&format!("EAST{ago}"), "pay_101", 777);
        let blind = match ago {
            ago if ago == AGO - 1 => vec![own, one("BLIND1", "", 10_001)],
            ago if ago == AGO - 2 => vec![own, one("BLIND2", "", 10_002)],
            _another => vec![own],
        };
        let path = shop.folder().join(day(ago).format("east_%Y_%m_%d.csv").to_string());
        std::fs::write(&path, in_zone("+14", &received(ago, &blind))).unwrap();
        let path = path.to_str().unwrap();
        shop.tieout(&["ingest", path, "--account", "bank"]).await.ended(0);
    }
    let now = decided(&shop).await;
    is(&now, "1", "review possible_untagged_match", "BLIND1");
    is(&now, "2", "retryable absent", "in no file of bank from");
    shop.check(false).await;
}

/// Eleven hours behind UTC it was still the day before when the row was handed back, and when it
/// was sent again: what is listed of that day is the second attempt.
async fn an_attempt_of_the_senders_own_day_is_the_second_one(engine: Engine) {
    let shop = shop_in(engine, "Pacific/Pago_Pago", "").await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1)]).await;
    for ago in 1..=AGO {
        bring_text(&shop, ago, &in_zone("SST", &received(ago, &known(ago)))).await;
    }
    is(&decided(&shop).await, "1", "retryable absent", "");
    let given_back = format!("update tieout_handbacks set at = '{}T03:00:00.000000Z'", day(1));
    shop.raw.execute(&given_back).await;
    let again = format!(
        "update payments set status = 'processing', attempted_at = '{}T04:00:00.000000Z' \
         where id = 1",
        day(1)
    );
    shop.raw.execute(&again).await;
    let own = [known(2), vec![one("PSP1", "pay_1", 10_001)]].concat();
    bring_text(&shop, 2, &in_zone("SST", &received(2, &own))).await;
    for _look in 0..3 {
        shop.a_span_passes().await;
        shop.due_now().await;
        shop.run().await;
    }
    is(&decided(&shop).await, "1", "wait psp_pending", "");
    shop.check(true).await;
}

/// A day of the sender's ends when it does there: until the configuration says so, its report
/// proves nothing of the hours that it does not have.
async fn a_report_of_another_zones_days_proves_nothing(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&(101..=130).map(paid).collect::<Vec<_>>()).await;
    shop.insert(&[stuck(1)]).await;
    for ago in 1..=AGO + 1 {
        bring_text(&shop, ago, &in_zone("PST", &received(ago, &known(ago)))).await;
    }
    let says = format!("{} tells days of PST, and the `zone` of its source is UTC", name(AGO));
    is(&decided(&shop).await, "1", "wait absence_unproven", &says);
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let theirs = text.replace("zone = \"UTC\"", "zone = \"America/Los_Angeles\"");
    assert_ne!(theirs, text);
    std::fs::write(&path, theirs).unwrap();
    shop.due_now().await;
    is(&decided(&shop).await, "1", "retryable absent", "in no file of bank");
    shop.check(false).await;
}

/// A report of nothing but its header has lines of no currency.
async fn a_day_without_a_payment_ties_out(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&[stuck(1)]).await;
    bring(&shop, AGO, &[]).await;
    let ran = shop.run().await;
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    let verify = ["report", "verify", report.to_str().unwrap()];
    shop.tieout(&verify).await.ended(0);
    shop.tieout(&[&verify[..], &["--database"]].concat()).await.ended(0);
    shop.check(false).await;
}
