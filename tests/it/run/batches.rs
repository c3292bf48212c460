//! Batch bookings: a statement books a sum, a notice lists what it is made of, and the rows of
//! those payments are settled by it, each once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::run::files::{all_wait, at_bank, bring, camt, credit, lines, shop_with_bank};
use crate::run::shop::{Engine, Shop, on_both_databases};

on_both_databases!(
    a_batch_is_explained_by_its_notice_and_settles_its_rows,
    a_notice_of_another_month_explains_nothing,
    what_is_not_all_of_the_batch_explains_nothing,
    two_bookings_of_one_reference_are_for_a_person,
    one_notice_explains_each_booking_that_it_lists,
    bookings_of_one_reference_are_explained_all_together,
    a_corrected_batch_takes_its_parts_along,
    a_corrected_notice_explains_with_what_it_left_as_it_was,
    what_a_bank_took_of_a_batch_is_no_difference,
    a_booking_that_does_not_say_that_it_is_a_batch_is_explained_all_the_same,
    what_only_may_be_a_batch_is_explained_alone_and_to_the_cent,
    of_two_tellings_the_one_that_says_it_is_a_batch_counts,
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

/// The same, as banks write it that do not say of how many.
fn unsaid(reference: &str, cents: i64) -> String {
    let said = batch(reference, cents, 2);
    said.replace("<NtryDtls><Btch><NbOfTxs>2</NbOfTxs></Btch></NtryDtls>", "")
}

/// An MT940 of a booking, which writes the account as the statement does.
fn swift(number: u32, reference: &str, cents: i64) -> String {
    let day = chrono::Utc::now().date_naive().format("%y%m%d").to_string();
    let amount = |cents: i64| euros(cents).replace('.', ",");
    format!(
        ":20:X\n:25:DE02120300000000202051\n:28C:{number}/1\n:60F:C{day}EUR0,00\n\
         :61:{day}{}C{}NTRFNONREF//{reference}\n:86:166?20SVWZ+SUM\n:62F:C{day}EUR{}\n-\n",
        &day[2..],
        amount(cents),
        amount(cents),
    )
}

/// A notice that lists payments under a bank's reference.
pub fn notice(id: &str, reference: &str, payments: &[(i64, &str)]) -> String {
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

/// A bank may use a reference again: what it booked long before is no payment of a new notice.
async fn a_notice_of_another_month_explains_nothing(engine: Engine) {
    let today = chrono::Utc::now().date_naive();
    for (days, verdict) in [(10, "succeeded settled"), (11, "wait psp_pending")] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
        let booked = statement("S1", &[batch("B1", 20_003, 2)], 20_003);
        let before = (today - chrono::Days::new(days)).to_string();
        bring(&shop, "stmt.xml", &booked.replace(&today.to_string(), &before), 0).await;
        let listed = notice("N1", "B1", &[(10_001, "pay_1"), (10_002, "pay_2")]);
        bring(&shop, "notice.xml", &listed, 0).await;
        let ran = shop.run().await;
        assert_eq!(ran.verdict(1), verdict, "{days} days");
        shop.check(false).await;
    }
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

async fn a_corrected_notice_explains_with_what_it_left_as_it_was(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    // The first issue has another payment in the place of the second.
    let first = notice("N1", "B1", &[(10_001, "pay_1"), (10_002, "nobody")]);
    bring(&shop, "first.xml", &first, 0).await;
    bring(&shop, "second.xml", &first.replace("nobody", "pay_2"), 3).await;
    shop.tieout(&["files", "release", "2", "--reason", "sent again"]).await.ended(0);
    shop.run().await;
    let booked = statement("S1", &[batch("B1", 20_003, 2)], 20_003);
    bring(&shop, "stmt.xml", &booked, 0).await;
    let ran = shop.run().await;
    assert_eq!(bookings(&shop).await, ["matched - tieout_batches 2"]);
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
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

/// What a line came to, with its format and the table that it is of.
async fn came_to(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select f.format || ' ' || l.state || ' ' || coalesce(l.reason, '-') || ' ' \
         || coalesce(l.table_name, '-') from tieout_lines l join tieout_files f \
         on f.id = l.file_id where f.format <> 'camt.054' order by l.file_id, l.position",
    )
    .await
}

async fn a_booking_that_does_not_say_that_it_is_a_batch_is_explained_all_the_same(engine: Engine) {
    let payments = [(10_001, "pay_1"), (10_002, "pay_2")];
    let listed = notice("N1", "BATCHREF01", &payments);
    let camt = statement("S1", &[unsaid("BATCHREF01", 20_003)], 20_003);
    for (name, text) in [("stmt.xml", camt), ("stmt.sta", swift(1, "BATCHREF01", 20_003))] {
        for is_first in [true, false] {
            let shop = shop_with_bank(engine).await;
            shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
            let mut files = [(name, &text), ("notice.xml", &listed)];
            if !is_first {
                files.reverse();
            }
            bring(&shop, files[0].0, files[0].1, 0).await;
            shop.run().await;
            bring(&shop, files[1].0, files[1].1, 0).await;
            all_wait(&shop).await;
            let ran = shop.run().await;
            assert_eq!(ran.verdict(1), "succeeded settled", "{name} {is_first}");
            assert_eq!(ran.verdict(2), "succeeded settled", "{name} {is_first}");
            let told = came_to(&shop).await;
            assert!(told[0].ends_with(" matched - tieout_batches"), "{told:?}");
            assert_eq!(shop.open_cases().await, Vec::<String>::new());
            let end = &ran.of_type("run_end")[0];
            let report = shop.folder().join(end["report"].as_str().unwrap());
            shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
            shop.check(false).await;
        }
    }
}

async fn what_only_may_be_a_batch_is_explained_alone_and_to_the_cent(engine: Engine) {
    let two = [(10_001, "pay_1"), (10_002, "pay_2")];
    for (entries, payments) in [
        // A cent off; twice under one reference; one payment, which may be another one.
        (vec![unsaid("BATCHREF01", 20_004)], &two[..]),
        (vec![unsaid("BATCHREF01", 20_003), unsaid("BATCHREF01", 20_003)], &two[..]),
        (vec![unsaid("BATCHREF01", 10_001)], &two[..1]),
    ] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[at_bank(1, "processing")]).await;
        let sum = if entries.len() == 2 { 40_006 } else { 20_004 };
        let sum = if payments.len() == 1 { 10_001 } else { sum };
        bring(&shop, "stmt.xml", &statement("S1", &entries, sum), 0).await;
        bring(&shop, "notice.xml", &notice("N1", "BATCHREF01", payments), 0).await;
        let ran = shop.run().await;
        assert_eq!(ran.verdict(1), "wait psp_pending");
        let open = "camt.053 open reference_missing -";
        assert_eq!(came_to(&shop).await, vec![open; entries.len()]);
        shop.check(false).await;
    }
}

/// Whatever comes first: the batch is paid, and each booking counts once.
async fn of_two_tellings_the_one_that_says_it_is_a_batch_counts(engine: Engine) {
    let payments = [(10_001, "pay_1"), (10_002, "pay_2")];
    let listed = notice("N1", "BATCHREF01", &payments);
    let said = statement("S1", &[batch("BATCHREF01", 20_003, 2)], 20_003);
    // Of another writing of the account, which no notice has.
    let sum = swift(1, "BATCHREF01", 20_003).replace("DE02120300000000202051", "12030000/202051");
    for order in ["nms", "msn", "nsm", "smn", "mns"] {
        let shop = shop_with_bank(engine).await;
        shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
        for file in order.chars() {
            match file {
                'n' => bring(&shop, "notice.xml", &listed, 0).await,
                'm' => bring(&shop, "stmt.sta", &sum, 0).await,
                _s => bring(&shop, "stmt.xml", &said, 0).await,
            }
            shop.due_now().await;
            shop.run().await;
        }
        assert_eq!(shop.status(1).await, "paid", "{order}");
        assert_eq!(shop.status(2).await, "paid", "{order}");
        let mut told = came_to(&shop).await;
        told.sort();
        let once = ["camt.053 matched - tieout_batches", "mt940 excluded told_before -"];
        assert_eq!(told, once, "{order}");
        assert_eq!(shop.open_cases().await, Vec::<String>::new(), "{order}");
        shop.check(false).await;
    }
}
