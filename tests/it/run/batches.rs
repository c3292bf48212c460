//! Batch bookings: a statement books a sum, a notice lists what it is made of, and the rows of
//! those payments are settled by it, each once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::run::files::{all_wait, at_bank, bring, camt, credit, lines, shop_with_bank};
use crate::run::shop::{Engine, Shop, on_both_databases};

on_both_databases!(
    a_batch_is_explained_by_its_notice_and_settles_its_rows,
    what_is_not_all_of_the_batch_explains_nothing,
    two_bookings_of_one_reference_are_for_a_person,
    one_notice_explains_each_booking_that_it_lists,
    bookings_of_one_reference_are_explained_all_together,
    a_corrected_batch_takes_its_parts_along,
    what_a_bank_took_of_a_batch_is_no_difference,
);

const IBAN: &str = "<Acct><Id><IBAN>DE02120300000000202051</IBAN></Id><Ccy>EUR</Ccy></Acct>";

fn euros(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A batch booking of so many payments, as it stands in a statement.
fn batch(reference: &str, cents: i64, payments: usize) -> String {
    format!(
        "<Ntry><Amt Ccy=\"EUR\">{}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>\
         <BookgDt><Dt>{}</Dt></BookgDt><AcctSvcrRef>{reference}</AcctSvcrRef>\
         <NtryDtls><Btch><NbOfTxs>{payments}</NbOfTxs></Btch></NtryDtls></Ntry>",
        euros(cents),
        chrono::Utc::now().date_naive(),
    )
}

/// A statement of these entries, which come to so many cents.
fn statement(id: &str, entries: &[String], cents: i64) -> String {
    let nothing = camt("camt.053", id, &[]);
    let entries = entries.concat();
    let text = nothing.replace("</Stmt>", &format!("{entries}</Stmt>"));
    let closing = "<Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">";
    let tied = format!("{closing}{}", euros(100_000 + cents));
    text.replace(&format!("{closing}1000.00"), &tied)
}

/// A notice that lists payments under a bank's reference.
fn notice(id: &str, reference: &str, payments: &[(i64, &str)]) -> String {
    let sum: i64 = payments.iter().map(|(cents, _)| cents).sum();
    let mut details = String::new();
    for (cents, tag) in payments {
        write!(
            details,
            "<TxDtls><Refs><EndToEndId>{tag}</EndToEndId></Refs><Amt Ccy=\"EUR\">{}</Amt>\
             <CdtDbtInd>CRDT</CdtDbtInd></TxDtls>",
            euros(*cents)
        )
        .unwrap();
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.08\">\
         <BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>{id}</MsgId>\
         <CreDtTm>2026-11-19T06:00:00Z</CreDtTm></GrpHdr><Ntfctn><Id>{id}</Id>\
         <CreDtTm>2026-11-19T06:00:00Z</CreDtTm>{IBAN}\
         <Ntry><Amt Ccy=\"EUR\">{}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>\
         <BookgDt><Dt>{}</Dt></BookgDt><AcctSvcrRef>{reference}</AcctSvcrRef>\
         <NtryDtls><Btch><NbOfTxs>{}</NbOfTxs></Btch>{details}</NtryDtls></Ntry>\
         </Ntfctn></BkToCstmrDbtCdtNtfctn></Document>",
        euros(sum),
        chrono::Utc::now().date_naive(),
        payments.len(),
    )
}

/// What became of each booking of a statement, and how many parts it has.
async fn bookings(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select l.state || ' ' || coalesce(l.reason, '-') || ' ' || coalesce(l.table_name, '-') \
         || ' ' || cast((select count(*) from tieout_lines p where p.of_file = l.file_id \
         and p.of_position = l.position) as text) from tieout_lines l \
         join tieout_files f on f.id = l.file_id where f.format = 'camt.053' \
         order by l.file_id, l.position",
    )
    .await
}

async fn a_batch_is_explained_by_its_notice_and_settles_its_rows(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing"), at_bank(3, "paid")]).await;
    let sum = 10_001 + 10_002 + 10_003 + 500;
    bring(&shop, "stmt.xml", &statement("S1", &[batch("B1", sum, 4)], sum), 0).await;
    shop.run().await;
    assert_eq!(bookings(&shop).await, ["open reference_missing - 0"]);
    assert_eq!(shop.status(1).await, "processing");
    let payments = [(10_001, "pay_1"), (10_002, "pay_2"), (10_003, "pay_3"), (500, "nobody")];
    bring(&shop, "notice.xml", &notice("N1", "B1", &payments), 0).await;
    let dry = shop.run_with(&["--dry-run"]).await;
    assert_eq!(dry.of_type("run_end")[0]["lines"]["matched"], 1, "{}", dry.stdout);
    assert_eq!(bookings(&shop).await, ["open reference_missing - 0"]);
    // Nothing is due but what the booking of the batch tells of, now that it is explained.
    all_wait(&shop).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(bookings(&shop).await, ["matched - tieout_batches 4"]);
    assert_eq!(
        lines(&shop).await[1..],
        [
            "pay_1 matched settled 1",
            "pay_2 matched settled 2",
            "pay_3 matched - 3",
            "nobody open orphan -",
        ]
    );
    let records = "tieout_journal where key in ('1', '2') and reason = 'settled'";
    assert_eq!(shop.count(records).await, 2);
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    let mut matched = csv::Reader::from_path(report.join("matched.csv")).unwrap();
    let rows: Vec<BTreeMap<String, String>> = matched.deserialize().map(Result::unwrap).collect();
    let of_batch: Vec<_> = rows.iter().filter(|row| row["method"] == "batch").collect();
    assert_eq!(of_batch.len(), 1, "{rows:?}");
    assert_eq!((&*of_batch[0]["local_amount"], &*of_batch[0]["difference"]), ("305.06", "0.00"));
    // The same notice under another id adds nothing to what was booked once.
    bring(&shop, "again.xml", &notice("N2", "B1", &payments), 0).await;
    shop.due_now().await;
    assert!(shop.run().await.verdicts().is_empty());
    assert_eq!(shop.count("tieout_lines where of_file is not null").await, 4);
    shop.check(false).await;
}

async fn what_is_not_all_of_the_batch_explains_nothing(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let entries = [batch("B1", 20_003, 2), batch("B2", 10_002, 2), batch("B3", 700, 2)];
    bring(&shop, "stmt.xml", &statement("S1", &entries, 30_705), 0).await;
    // A part of the first; the second listed twice; the third by another bank account.
    bring(&shop, "one.xml", &notice("N1", "B1", &[(10_001, "pay_1")]), 0).await;
    for id in ["N2", "N3"] {
        let listed = notice(id, "B2", &[(10_000, "pay_2"), (2, "x")]);
        bring(&shop, &format!("{id}.xml"), &listed, 0).await;
    }
    let elsewhere = notice("N4", "B3", &[(300, "y"), (400, "z")]);
    let elsewhere = elsewhere.replace("DE02120300000000202051", "DE02500105170137075030");
    bring(&shop, "other.xml", &elsewhere, 0).await;
    let ran = shop.run().await;
    assert_eq!(
        bookings(&shop).await,
        ["open amount_mismatch - 0", "open amount_mismatch - 0", "open reference_missing - 0"]
    );
    assert_eq!(ran.verdict(1), "wait psp_pending");
    assert_eq!(ran.verdict(2), "wait psp_pending");
    // What is lacking comes: all of it together is the booking.
    bring(&shop, "rest.xml", &notice("N5", "B1", &[(10_002, "pay_2")]), 0).await;
    shop.due_now().await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(bookings(&shop).await[0], "matched - tieout_batches 2");
    shop.check(false).await;
}

async fn two_bookings_of_one_reference_are_for_a_person(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let entries = [batch("B1", 10_101, 2), batch("B1", 10_101, 2)];
    bring(&shop, "stmt.xml", &statement("S1", &entries, 20_202), 0).await;
    bring(&shop, "one.xml", &notice("N1", "B1", &[(10_001, "pay_1"), (100, "x")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "wait psp_pending");
    assert_eq!(bookings(&shop).await, ["open tag_unusable - 0"; 2]);
    shop.check(false).await;
}

/// The entries of notices in one.
fn joined(first: &str, second: &str) -> String {
    let begin = second.find("<Ntry>").unwrap();
    let end = second.find("</Ntfctn>").unwrap();
    first.replace("</Ntfctn>", &format!("{}</Ntfctn>", &second[begin..end]))
}

async fn one_notice_explains_each_booking_that_it_lists(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let entries = [batch("B1", 10_101, 2), batch("B2", 10_302, 2), batch("B3", 9, 2)];
    bring(&shop, "stmt.xml", &statement("S1", &entries, 20_412), 0).await;
    let one = notice("N1", "B1", &[(10_001, "pay_1"), (100, "x")]);
    let both = joined(&one, &notice("N1", "B2", &[(10_002, "pay_2"), (300, "y")]));
    bring(&shop, "notice.xml", &joined(&both, &notice("N1", "B3", &[(4, "v"), (4, "w")])), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(
        bookings(&shop).await,
        ["matched - tieout_batches 2", "matched - tieout_batches 2", "open amount_mismatch - 0"]
    );
    shop.check(false).await;
}

async fn bookings_of_one_reference_are_explained_all_together(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    // The bank books one batch in two sums, neither of which is a payment or several.
    let entries = [batch("B1", 12_000, 2), batch("B1", 8_003, 2)];
    bring(&shop, "stmt.xml", &statement("S1", &entries, 20_003), 0).await;
    bring(&shop, "one.xml", &notice("N1", "B1", &[(10_001, "pay_1")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "wait psp_pending", "what is listed is not all");
    assert_eq!(bookings(&shop).await, ["open tag_unusable - 0"; 2]);
    bring(&shop, "rest.xml", &notice("N2", "B1", &[(10_002, "pay_2")]), 0).await;
    shop.due_now().await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(
        bookings(&shop).await,
        ["matched - tieout_batches 2", "matched - tieout_batches 0"],
        "the parts stand with the first, and both have its key"
    );
    let keys =
        shop.texts("select distinct key from tieout_lines where table_name = 'tieout_batches'");
    assert_eq!(keys.await.len(), 1);
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    // The bank takes one of the sums back: what both vouched for is vouched for no more.
    let second = statement("S1", &entries[..1], 12_000);
    bring(&shop, "second.xml", &second, 3).await;
    shop.tieout(&["files", "release", "4", "--reason", "sent again"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(ran.verdict(2), "review late_contradiction");
    let parts = "tieout_lines where key in ('1', '2') and state = 'superseded'";
    assert_eq!(shop.count(parts).await, 2);
    shop.check(false).await;
}

async fn a_corrected_batch_takes_its_parts_along(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let first = statement("S1", &[batch("B1", 10_101, 2)], 10_101);
    bring(&shop, "stmt.xml", &first, 0).await;
    bring(&shop, "one.xml", &notice("N1", "B1", &[(10_001, "pay_1"), (100, "pay_2")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    // The bank takes the batch back, and books something else.
    let second = camt("camt.053", "S1", &[credit(5, "else")]);
    bring(&shop, "second.xml", &second, 3).await;
    shop.tieout(&["files", "release", "3", "--reason", "sent again"]).await.ended(0);
    shop.insert(&[at_bank(2, "processing")]).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(2), "wait psp_pending", "its line decides nothing any more");
    assert_eq!(bookings(&shop).await[0], "superseded - tieout_batches 2");
    assert_eq!(ran.verdict(1), "review late_contradiction", "what it was paid by is gone");
    let part = "tieout_lines where key = '1' and state = 'superseded'";
    assert_eq!(shop.count(part).await, 1);
    shop.check(false).await;
}

/// Charges that an entry tells of.
fn charged(text: &str, cents: i64) -> String {
    let told = format!("<TtlChrgsAndTaxAmt Ccy=\"EUR\">{}</TtlChrgsAndTaxAmt>", euros(cents));
    text.replace("<NtryDtls>", &format!("<Chrgs>{told}</Chrgs><NtryDtls>"))
}

async fn what_a_bank_took_of_a_batch_is_no_difference(engine: Engine) {
    let payments = [(10_001, "pay_1"), (10_002, "pay_2")];
    let listed = notice("N1", "B1", &payments);
    let less = charged(&listed.replace(">200.03<", ">199.03<"), 100);
    let booking = batch("B1", 19_903, 2);
    for (own, notice) in [
        (charged(&booking, 100), &less),
        (charged(&booking, 100), &listed),
        (booking.clone(), &less),
    ] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
        bring(&shop, "stmt.xml", &statement("S1", &[own], 19_903), 0).await;
        bring(&shop, "notice.xml", notice, 0).await;
        let ran = shop.run().await;
        assert_eq!(ran.verdict(1), "succeeded settled");
        assert_eq!(ran.verdict(2), "succeeded settled");
        assert_eq!(bookings(&shop).await, ["matched - tieout_batches 2"]);
        let end = &ran.of_type("run_end")[0];
        let report = shop.folder().join(end["report"].as_str().unwrap());
        shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
        let mut matched = csv::Reader::from_path(report.join("matched.csv")).unwrap();
        let rows = matched.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
        let batches: Vec<_> = rows.filter(|row| row["method"] == "batch").collect();
        let sums = (&*batches[0]["local_amount"], &*batches[0]["bank_amount"]);
        assert_eq!(sums, ("200.03", "199.03"));
        shop.check(false).await;
    }
    // Nobody tells of it, or of another sum.
    for own in [booking.clone(), charged(&booking, 99)] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[at_bank(1, "processing")]).await;
        bring(&shop, "stmt.xml", &statement("S1", &[own], 19_903), 0).await;
        bring(&shop, "notice.xml", &listed, 0).await;
        let ran = shop.run().await;
        assert_eq!(ran.verdict(1), "wait psp_pending");
        assert_eq!(bookings(&shop).await, ["open amount_mismatch - 0"]);
        shop.check(false).await;
    }
}
