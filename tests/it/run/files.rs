//! Rows whose account has no API: what a bank's statement says of them, decided by the one loop.

use std::fmt::Write as _;

use crate::run::given_back::adyen;
use crate::run::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    a_statement_settles_what_is_stuck,
    what_a_statement_says_of_rows_that_ended,
    a_file_makes_the_rows_due_that_it_names,
    a_row_is_woken_once_for_each_file,
    a_booking_the_other_way_took_back_what_was_booked,
    what_a_bank_undid_is_there_again,
    a_payment_and_its_refund_may_share_a_tag,
    a_refund_that_is_written_later_takes_its_booking,
    what_a_shop_gave_back_itself_is_its_refund,
    what_a_bank_takes_for_itself_is_no_payment,
    a_refund_and_a_payout_may_not,
    a_line_without_a_row_is_matched_when_the_row_comes,
    a_line_finds_the_row_that_stores_what_it_carries,
    what_a_line_carries_of_two_rows_settles_neither,
    an_id_between_banks_may_name_nothing,
    rows_that_store_the_id_of_their_run_are_paid_by_their_tags,
    a_place_in_a_file_is_known_by_tieouts_own_record,
    an_interim_statement_decides_nothing,
    a_booking_of_a_day_far_ahead_pays_nobody,
    what_is_dated_far_ahead_contradicts_no_row,
    what_tells_no_day_of_its_booking_is_of_its_statements,
    what_differs_is_tolerated_only_as_configured,
    a_paid_rows_money_is_its_own_however_late_it_was_booked,
    a_booking_is_written_on_its_own_day_in_every_zone,
    what_came_back_is_no_second_payment,
    what_a_file_says_went_back_is_not_overruled,
    a_case_shows_the_line_that_came_last,
    a_batch_that_lists_no_amounts_pays_nobody,
    a_tag_that_is_nearly_a_rows_is_shown_to_a_person,
    a_line_with_the_tags_of_two_rows_is_the_likelier_ones,
    a_line_with_a_paid_rows_tag_behind_another_says_nothing_of_it,
);

/// One booking: its mark (`CRDT`, `DBIT`), its amount in cents, its EndToEndId, and the code of
/// its return.
pub struct Booking {
    mark: &'static str,
    cents: i64,
    reference: String,
    code: Option<&'static str>,
}

impl Booking {
    /// Its cents, + being money to the merchant.
    pub fn signed(&self) -> i64 {
        if self.mark == "CRDT" { self.cents } else { -self.cents }
    }
}

pub fn credit(cents: i64, reference: &str) -> Booking {
    Booking { mark: "CRDT", cents, reference: reference.to_owned(), code: None }
}

pub fn debit(cents: i64, reference: &str) -> Booking {
    Booking { mark: "DBIT", ..credit(cents, reference) }
}

pub fn returned(cents: i64, reference: &str, code: &'static str) -> Booking {
    Booking { mark: "DBIT", cents, reference: reference.to_owned(), code: Some(code) }
}

fn euros(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A camt.053 (or 052, interim) of one day, which ties.
pub fn camt(message: &str, id: &str, bookings: &[Booking]) -> String {
    camt_from(100_000, message, id, bookings)
}

/// A statement that begins with this balance: one that goes on from another.
pub fn camt_from(opening: i64, message: &str, id: &str, bookings: &[Booking]) -> String {
    let (body, head) = match message {
        "camt.053" => ("BkToCstmrStmt", "Stmt"),
        _interim => ("BkToCstmrAcctRpt", "Rpt"),
    };
    let day = chrono::Utc::now().date_naive();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{message}.001.08\"><{body}>\n\
         <GrpHdr><MsgId>{id}</MsgId><CreDtTm>2026-11-19T06:00:00Z</CreDtTm></GrpHdr>\n\
         <{head}><Id>{id}</Id><CreDtTm>2026-11-19T06:00:00Z</CreDtTm>\n\
         <Acct><Id><IBAN>DE02120300000000202051</IBAN></Id><Ccy>EUR</Ccy></Acct>\n"
    );
    let balance = |kind: &str, cents: i64| {
        let mark = if cents < 0 { "DBIT" } else { "CRDT" };
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp>\
             <Amt Ccy=\"EUR\">{}</Amt><CdtDbtInd>{mark}</CdtDbtInd>\
             <Dt><Dt>{day}</Dt></Dt></Bal>\n",
            euros(cents.abs())
        )
    };
    let sum: i64 = bookings.iter().map(|b| if b.mark == "CRDT" { b.cents } else { -b.cents }).sum();
    text.push_str(&balance("OPBD", opening));
    text.push_str(&balance("CLBD", opening + sum));
    for Booking { mark, cents, reference, code } in bookings {
        let refs = match reference.as_str() {
            "" => "<Refs/>".to_owned(),
            reference => format!("<Refs><EndToEndId>{reference}</EndToEndId></Refs>"),
        };
        let back = code
            .map_or(String::new(), |code| format!("<RtrInf><Rsn><Cd>{code}</Cd></Rsn></RtrInf>"));
        writeln!(
            text,
            "<Ntry><Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd>\
             <Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{day}</Dt></BookgDt>\
             <NtryDtls><TxDtls>{refs}<Amt Ccy=\"EUR\">{amount}</Amt>\
             <CdtDbtInd>{mark}</CdtDbtInd>{back}</TxDtls></NtryDtls></Ntry>",
            amount = euros(*cents),
        )
        .unwrap();
    }
    writeln!(text, "</{head}></{body}></Document>").unwrap();
    text
}

/// The words of a shop with a second account that has files alone.
pub fn with_bank() -> Words {
    Words {
        accounts: ", bank = \"bank\"",
        more: "[[account]]\nname = \"bank\"\npsp = \"files\"\nmode = \"full\"\nlivemode = true\n"
            .to_owned(),
        ..Words::default()
    }
}

/// A shop with a second account that has files alone.
pub async fn shop_with_bank(engine: Engine) -> Shop {
    Shop::open_with(engine, with_bank()).await
}

pub fn at_bank(id: i64, status: &'static str) -> Payment {
    Payment { account: "bank", status, ..Payment::stuck(id) }
}

/// Brings a file in; it ends so.
pub async fn bring(shop: &Shop, name: &str, text: &str, code: i32) {
    let path = shop.folder().join(name);
    std::fs::write(&path, text).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "bank"]).await.ended(code);
}

/// `tag state reason row` of every line, in order.
pub async fn lines(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select coalesce(tag, '-') || ' ' || state || ' ' || coalesce(reason, '-') || ' ' || \
         coalesce(key, '-') from tieout_lines order by file_id, position",
    )
    .await
}

async fn a_statement_settles_what_is_stuck(engine: Engine) {
    let mut shop = shop_with_bank(engine).await;
    let words = shop.words.clone();
    shop.words = words.clone().slow_calls();
    shop.write_words();
    let rows: Vec<Payment> = (1..=5).map(|id| at_bank(id, "processing")).collect();
    shop.insert(&rows).await;
    let bookings = [
        credit(10_001, "pay_1"),
        credit(9_999, "pay_2"),
        credit(10_003, "pay_3"),
        credit(10_003, "pay_3"),
        credit(10_004, "pay_4"),
        returned(10_004, "pay_4", "AC04"),
        credit(777, "nobody"),
        credit(778, ""),
    ];
    // The bank's own reference, and a word that stands for none, name no payment.
    let nobodys = "<Refs><AcctSvcrRef>B77</AcctSvcrRef><EndToEndId>NOTPROVIDED</EndToEndId></Refs>";
    let text = camt("camt.053", "S1", &bookings).replace("<Refs/>", nobodys);
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "review amount_mismatch");
    assert_eq!(ran.verdict(3), "review duplicate_capture");
    assert_eq!(ran.verdict(4), "review returned");
    assert_eq!(ran.verdict(5), "wait within_grace");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.status(5).await, "processing");
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched settled 1",
            "pay_2 matched amount_mismatch 2",
            "pay_3 matched duplicate_capture 3",
            "pay_3 matched duplicate_capture 3",
            "pay_4 matched returned 4",
            "pay_4 matched returned 4",
            "nobody open orphan -",
            "- open reference_missing -",
        ]
    );
    // A second run finds nothing new to say.
    shop.words = words;
    shop.write_words();
    shop.a_span_passes().await;
    let again = shop.run().await;
    assert_eq!(again.verdicts().len(), 1, "{:?}", again.verdicts());
    assert_eq!(again.verdict(5), "wait absence_unproven");
    shop.check(false).await;
}

/// Nothing is due for a long time, but for what a file brings.
pub async fn all_wait(shop: &Shop) {
    let later = at_text(tieout_now() + 7_200);
    let columns = "update tieout_checks set next_check_at";
    let sql = format!("{columns} = '{later}' where state in ('open', 'watch')");
    shop.raw.execute(&sql).await;
}

async fn a_file_makes_the_rows_due_that_it_names(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    shop.run().await;
    all_wait(&shop).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(10_001, "pay_1")]), 0).await;
    let would = shop.run_with(&["--dry-run"]).await;
    assert_eq!(would.verdict(1), "succeeded settled");
    assert_eq!(would.verdict(2), "not decided");
    // A paused account's row would only be given back: it sleeps on.
    shop.tieout(&["pause", "bank", "--why", "a test"]).await.ended(0);
    assert!(shop.run().await.verdicts().is_empty());
    let later = at_text(tieout_now() + 3_600);
    let asleep = format!("tieout_checks where next_check_at > '{later}'");
    assert_eq!(shop.count(&asleep).await, 2);
    shop.tieout(&["resume", "bank"]).await.ended(0);
    // So does one that another run has in work: it may be looking at the file right now.
    let lease = "update tieout_checks set lease_run";
    let other = format!("{lease} = 'other', lease_until = '{later}' where key = '1'");
    shop.raw.execute(&other).await;
    assert_eq!(shop.run().await.verdict(1), "not decided");
    assert_eq!(shop.count(&asleep).await, 2);
    shop.raw.execute(&format!("{lease} = null, lease_until = null where key = '1'")).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "not decided");
    assert_eq!(lines(&shop).await, ["pay_1 matched settled 1"]);
    assert_eq!(shop.count(&asleep).await, 1);
    shop.check(false).await;
}

/// A row that the account's mode leaves as it is keeps its open line, and is woken no more by it.
async fn a_row_is_woken_once_for_each_file(engine: Engine) {
    let mut words = with_bank();
    words.more = words.more.replace("mode = \"full\"", "mode = \"observe\"");
    let shop = Shop::open_with(engine, words).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    shop.run().await;
    let first = camt("camt.053", "S1", &[credit(10_001, "pay_1")]);
    for (name, text, verdict) in [
        ("stmt.xml", first.clone(), "succeeded settled"),
        ("again.xml", first, "not decided"),
        (
            "more.xml",
            camt_from(110_001, "camt.053", "S2", &[credit(10_001, "pay_1")]),
            "review duplicate_capture",
        ),
    ] {
        all_wait(&shop).await;
        bring(&shop, name, &text, 0).await;
        assert_eq!(shop.run().await.verdict(1), verdict, "{name}");
        all_wait(&shop).await;
        assert_eq!(shop.run().await.verdict(1), "not decided", "{name}");
    }
    assert_eq!(shop.status(1).await, "processing");
    shop.check(false).await;
}

async fn what_a_statement_says_of_rows_that_ended(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let rows = [
        at_bank(1, "paid"),
        at_bank(2, "paid"),
        at_bank(3, "failed"),
        at_bank(4, "retry"),
        at_bank(5, "paid"),
        at_bank(6, "failed"),
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(10_001, "pay_1"),
        credit(10_002, "pay_2"),
        returned(10_002, "pay_2", "MD06"),
        credit(10_003, "pay_3"),
        credit(10_004, "pay_4"),
        credit(10_005, "pay_5"),
        credit(10_005, "pay_5"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "not decided", "it agrees");
    assert_eq!(ran.verdict(2), "review late_contradiction");
    assert_eq!(ran.verdict(3), "review late_contradiction");
    assert_eq!(ran.verdict(4), "review late_contradiction");
    assert_eq!(ran.verdict(5), "review duplicate_capture");
    for (id, status) in [(1, "paid"), (2, "paid"), (3, "failed"), (4, "retry"), (5, "paid")] {
        assert_eq!(shop.status(id).await, status, "{id}");
    }
    let open = shop.count("tieout_lines where state = 'open'").await;
    assert_eq!(open, 0, "{:?}", lines(&shop).await);
    shop.due_now().await;
    assert!(shop.run().await.verdicts().is_empty(), "nothing new");
    // What comes later for a row that agreed is looked at, too.
    let later = [returned(10_001, "pay_1", "AM04")];
    bring(&shop, "later.xml", &camt("camt.053", "S2", &later), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(shop.status(1).await, "paid");
    shop.check(false).await;
}

/// Money that went out again under a charge's own tag, and that no code calls a return: it takes
/// back what was there, and nothing where nothing was.
async fn a_booking_the_other_way_took_back_what_was_booked(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().slow_calls()).await;
    let rows = [
        at_bank(1, "processing"),
        at_bank(2, "paid"),
        at_bank(3, "processing"),
        at_bank(4, "processing"),
        at_bank(5, "processing"),
        at_bank(6, "processing"),
        at_bank(7, "paid"),
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(10_001, "pay_1"),
        debit(10_001, "pay_1"),
        debit(10_002, "pay_2"),
        debit(10_003, "pay_3"),
        credit(10_004, "pay_4"),
        credit(10_005, "pay_5"),
        debit(35, "pay_5"),
        credit(10_006, "pay_6"),
        debit(4_900, "pay_6"),
        debit(4_900, "pay_6"),
        credit(10_007, "pay_7"),
        debit(4_000, "pay_7"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review returned");
    assert_eq!(ran.verdict(2), "not decided");
    assert_eq!(ran.verdict(3), "wait within_grace");
    assert_eq!(ran.verdict(4), "succeeded settled");
    assert_eq!(ran.verdict(5), "succeeded settled", "what the bank took for it");
    assert_eq!(ran.verdict(6), "review returned", "two that come to more than half");
    assert_eq!(ran.verdict(7), "not decided");
    let told = lines(&shop).await;
    assert_eq!(
        told[2..=4],
        ["pay_2 open returned -", "pay_3 open returned -", "pay_4 matched settled 4"]
    );
    // It comes later, and is paid again: neither is a second payment.
    let later = [debit(10_004, "pay_4"), credit(10_001, "pay_1"), debit(4_000, "pay_7")];
    bring(&shop, "later.xml", &camt("camt.053", "S2", &later), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(4), "review late_contradiction");
    assert_eq!(shop.status(4).await, "paid");
    assert_eq!(ran.verdict(1), "review returned");
    assert_eq!(ran.verdict(7), "review late_contradiction");
    shop.check(false).await;
}

/// A statement some of whose bookings, from 1, undo others.
fn undoing(text: &str, places: &[usize]) -> String {
    let mut parts: Vec<String> = text.split("<Ntry>").map(str::to_owned).collect();
    for place in places {
        parts[*place] = parts[*place].replace("<Sts>", "<RvslInd>true</RvslInd><Sts>");
    }
    parts.join("<Ntry>")
}

/// A bank takes a payment back and undoes that. What undoes nothing is nobody's money.
async fn what_a_bank_undid_is_there_again(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().slow_calls()).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid"), at_bank(3, "processing")]).await;
    let bookings = [
        credit(10_001, "pay_1"),
        debit(10_001, "pay_1"),
        credit(10_001, "pay_1"),
        credit(10_002, "pay_2"),
        credit(10_002, "pay_2"),
        debit(10_003, "pay_3"),
        credit(10_003, "pay_3"),
    ];
    let text = undoing(&camt("camt.053", "S1", &bookings), &[3, 5, 7]);
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(ran.verdict(2), "not decided");
    assert_eq!(ran.verdict(3), "wait within_grace");
    assert_eq!(seen(&shop).await, ["1 10001"], "what is there");
    let told = lines(&shop).await;
    assert!(told[2].starts_with("pay_1 matched "), "{told:?}");
    assert_eq!(told[4], "pay_2 open returned -");
    assert_eq!(told[5..], ["pay_3 open returned -", "pay_3 open returned -"]);
    assert_eq!(shop.run().await.verdict(1), "not decided", "it was told");
    shop.check(false).await;
}

/// Refunds that are sent with the tag of their payments.
pub const REFUNDS: &str = r#"
[[table]]
name = "refunds"
read = "refunds"
key = ["id"]
tag = "pay_{id}"
kind = { const = "refund" }
amount = { column = "cents", unit = "minor" }
currency = { const = "EUR" }
account = { const = "bank" }
status = "status"
created = "made"
attempts = "once"
psp_reference = "re_id"
mode = "full"
map = [{ from = ["sent"], succeeded = "done", failed = "failed", retryable = "again" }]
"#;

/// What moves the one is not the other's: money for a payment that was given up is told, whoever
/// else has its tag.
async fn a_payment_and_its_refund_may_share_a_tag(engine: Engine) {
    let mut words = with_bank();
    words.more.push_str(REFUNDS);
    let shop = Shop::open_with(engine, words).await;
    shop.insert(&[at_bank(1, "retry"), at_bank(2, "paid")]).await;
    let made = at_text(tieout_now() - 3_600);
    for (id, status, cents) in [(1, "done", 500), (2, "sent", 10_002)] {
        let columns = "insert into refunds (id, status, cents, made)";
        let sql = format!("{columns} values ({id}, '{status}', {cents}, '{made}')");
        shop.raw.execute(&sql).await;
    }
    let bookings = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), debit(10_002, "pay_2")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(shop.status(1).await, "retry");
    assert_eq!(shop.texts("select status from refunds where id = 2").await, ["done"]);
    let whose = "select table_name || ' ' || key from tieout_lines order by position";
    assert_eq!(shop.texts(whose).await, ["payments 1", "payments 2", "refunds 2"]);
    shop.check(false).await;
}

/// A debit does not say which of the two it is: it is neither's, and not the first's that is due.
async fn a_refund_and_a_payout_may_not(engine: Engine) {
    let mut words = with_bank();
    words.table.push_str("kind = { const = \"payout\" }\n");
    words.more.push_str(REFUNDS);
    let shop = Shop::open_with(engine, words).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let made = at_text(tieout_now() - 3_600);
    for (id, cents) in [(1, 10_001), (3, 10_003)] {
        let columns = "insert into refunds (id, status, cents, made)";
        let sql = format!("{columns} values ({id}, 'sent', {cents}, '{made}')");
        shop.raw.execute(&sql).await;
    }
    let bookings = [debit(10_001, "pay_1"), debit(10_002, "pay_2"), debit(10_003, "pay_3")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    shop.run().await;
    let decided = "select table_name || ' ' || key || ' ' || outcome || ' ' || reason \
                   from tieout_journal order by table_name, key";
    assert_eq!(
        shop.texts(decided).await,
        [
            "payments 1 review tag_unusable",
            "payments 2 succeeded settled",
            "refunds 1 review tag_unusable",
            "refunds 3 succeeded settled",
        ]
    );
    assert_eq!(lines(&shop).await[0], "pay_1 open tag_unusable -");
    shop.check(false).await;
}

/// A refund's row that is written after the bank's file: until then the debit is a case of the
/// payment, and nobody's line; then it is the refund's, and the case ends.
async fn a_refund_that_is_written_later_takes_its_booking(engine: Engine) {
    let mut words = with_bank();
    words.more.push_str(REFUNDS);
    let shop = Shop::open_with(engine, words).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let bookings = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    shop.run().await;
    assert_eq!(shop.status(1).await, "paid");
    let later = [debit(10_001, "pay_1"), debit(10_002, "pay_2")];
    bring(&shop, "later.xml", &camt("camt.053", "S2", &later), 0).await;
    let first = shop.run().await;
    assert_eq!(first.verdict(1), "review late_contradiction");
    assert_eq!(first.verdict(2), "review late_contradiction");
    assert_eq!(
        lines(&shop).await[2..],
        ["pay_1 open late_contradiction -", "pay_2 open late_contradiction -"]
    );
    let case = case_of(&shop, 2).await;
    for word in ["without a code it may be", "or it is"] {
        let said = format!("{word} a refund of yours that no mapped table has");
        assert!(case.contains(&said), "{case}");
    }
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    let made = at_text(tieout_now() - 3_600);
    let columns = "insert into refunds (id, status, cents, made)";
    let sql = format!("{columns} values (1, 'sent', 10001, '{made}')");
    shop.raw.execute(&sql).await;
    let second = shop.run().await;
    assert_eq!(shop.texts("select status from refunds").await, ["done"]);
    assert_eq!(
        lines(&shop).await[2..],
        ["pay_1 matched settled 1", "pay_2 open late_contradiction -"]
    );
    let whose = "select table_name from tieout_lines where file_id = 2 and state = 'matched'";
    assert_eq!(shop.texts(whose).await, ["refunds"], "one line decides one row");
    assert_eq!(shop.open_cases().await, ["2 late_contradiction"]);
    // What the runs wrote before stands.
    for ran in [first, second] {
        let end = &ran.of_type("run_end")[0];
        let report = shop.folder().join(end["report"].as_str().unwrap());
        shop.tieout(&["report", "verify", report.to_str().unwrap(), "--database"]).await.ended(0);
    }
    assert!(shop.run().await.verdicts().is_empty());
    shop.check(false).await;
}

/// A statement whose bookings of this reference and amount have the bank's code.
pub fn coded(text: &str, reference: &str, cents: i64, code: &str) -> String {
    let [domain, family, own] = code.split('/').collect::<Vec<_>>()[..] else { panic!("{code}") };
    let details = format!(
        "<NtryDtls><TxDtls><Refs><EndToEndId>{reference}</EndToEndId></Refs>\
         <Amt Ccy=\"EUR\">{}</Amt>",
        euros(cents)
    );
    assert!(text.contains(&details), "{text}");
    let code = format!(
        "<BkTxCd><Domn><Cd>{domain}</Cd><Fmly><Cd>{family}</Cd>\
         <SubFmlyCd>{own}</SubFmlyCd></Fmly></Domn></BkTxCd>"
    );
    text.replace(&details, &format!("{code}{details}"))
}

/// The bank says of it that it undoes a booking, and the shop's refund asks it.
async fn what_a_shop_gave_back_itself_is_its_refund(engine: Engine) {
    let mut words = with_bank();
    words.more.push_str(REFUNDS);
    let shop = Shop::open_with(engine, words).await;
    shop.insert(&[1, 2, 4].map(|id| at_bank(id, "processing"))).await;
    let made = at_text(tieout_now() - 3_600);
    for (id, cents) in [(1, 10_001), (3, 10_003), (4, 500)] {
        let columns = "insert into refunds (id, status, cents, made)";
        let sql = format!("{columns} values ({id}, 'sent', {cents}, '{made}')");
        shop.raw.execute(&sql).await;
    }
    let paid = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(10_004, "pay_4")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &paid), 0).await;
    shop.run().await;
    let back = [
        debit(10_001, "pay_1"),
        debit(10_002, "pay_2"),
        debit(10_003, "pay_3"),
        debit(10_004, "pay_4"),
    ];
    let text = [
        ("pay_1", 10_001, "PMNT/IDDT/PRDD"),
        ("pay_2", 10_002, "PMNT/RCDT/RRTN"),
        ("pay_3", 10_003, "PMNT/RCDT/RRTN"),
        ("pay_4", 10_004, "PMNT/IDDT/PRDD"),
    ]
    .iter()
    .fold(camt("camt.053", "S2", &back), |text, (reference, cents, code)| {
        coded(&text, reference, *cents, code)
    });
    bring(&shop, "back.xml", &text, 0).await;
    shop.run().await;
    let refunds = "select status from refunds order by id";
    assert_eq!(shop.texts(refunds).await, ["done", "done", "sent"]);
    // Without a refund, and of another amount, it came back.
    assert_eq!(shop.open_cases().await, ["2 late_contradiction", "4 late_contradiction"]);
    let told = lines(&shop).await;
    assert_eq!((&*told[3], &*told[5]), ("pay_1 matched settled 1", "pay_3 matched settled 3"));
    shop.check(false).await;
}

/// Under the tag of what it took it for, before the row is decided and after.
async fn what_a_bank_takes_for_itself_is_no_payment(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let bookings = [credit(10_001, "pay_1"), debit(35, "pay_1"), credit(10_002, "pay_2")];
    let text = coded(&camt("camt.053", "S1", &bookings), "pay_1", 35, "PMNT/MDOP/CHRG");
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(lines(&shop).await[1], "pay_1 excluded - -");
    // All of it, with a code of charges or of a transfer: that may be the payment itself.
    let later = [debit(10_001, "pay_1"), debit(10_002, "pay_2")];
    let text = coded(&camt("camt.053", "S2", &later), "pay_1", 10_001, "PMNT/ICDT/COMM");
    let text = coded(&text, "pay_2", 10_002, "PMNT/ICDT/ESCT");
    bring(&shop, "later.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review late_contradiction");
    assert_eq!(ran.verdict(2), "review late_contradiction");
    assert_eq!(lines(&shop).await[3], "pay_1 open late_contradiction -");
    assert!(shop.run().await.verdicts().is_empty(), "it was told");
    // A charge that the bank gave back is no second payment; half of the payment may be one.
    shop.insert(&[at_bank(3, "processing"), at_bank(4, "processing")]).await;
    let paid = [
        credit(10_003, "pay_3"),
        credit(35, "pay_3"),
        credit(10_004, "pay_4"),
        credit(5_002, "pay_4"),
    ];
    let text = coded(&camt("camt.053", "S3", &paid), "pay_3", 35, "PMNT/MDOP/CHRG");
    let text = coded(&text, "pay_4", 5_002, "PMNT/MDOP/CHRG");
    bring(&shop, "back.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(3), "succeeded settled");
    assert_eq!(ran.verdict(4), "review duplicate_capture");
    assert_eq!(lines(&shop).await[6], "pay_3 open returned -");
    shop.check(false).await;
    // Of a payout it is no second one, unless nothing says that it is the bank's.
    let mut words = with_bank();
    words.table.push_str("kind = { const = \"payout\" }\n");
    let shop = Shop::open_with(engine, words).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    let bookings = [
        debit(10_001, "pay_1"),
        debit(35, "pay_1"),
        debit(10_002, "pay_2"),
        debit(35, "pay_2"),
        debit(10_003, "pay_3"),
        debit(35, "fee-1"),
    ];
    let text = coded(&camt("camt.053", "S1", &bookings), "pay_1", 35, "PMNT/MDOP/CHRG");
    let text = coded(&text, "pay_3", 10_003, "PMNT/ICDT/COMM");
    let text = coded(&text, "fee-1", 35, "PMNT/MDOP/CHRG");
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "review duplicate_capture");
    assert_eq!(ran.verdict(3), "succeeded settled", "just its money, under its tag");
    let told = lines(&shop).await;
    assert_eq!((&*told[1], &*told[5]), ("pay_1 excluded - -", "fee-1 excluded - -"));
    shop.check(false).await;
}

async fn a_line_without_a_row_is_matched_when_the_row_comes(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(10_001, "pay_1")]), 0).await;
    shop.run().await;
    assert_eq!(lines(&shop).await, ["pay_1 open orphan -"]);
    shop.insert(&[at_bank(1, "processing")]).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(lines(&shop).await, ["pay_1 matched settled 1"]);
    shop.check(false).await;
}

async fn a_line_finds_the_row_that_stores_what_it_carries(engine: Engine) {
    for indexed in [true, false] {
        let shop = shop_with_bank(engine).await;
        if !indexed {
            shop.raw.execute("drop index payments_ref").await;
        }
        let storing = |id, reference: &str| Payment {
            psp_ref: Some(reference.to_owned()),
            ..at_bank(id, "paid")
        };
        let rows = [
            storing(1, "E2E-1"),
            storing(2, "E2E-2"),
            storing(3, "E2E-2"),
            at_bank(4, "paid"),
            storing(5, "pay_4"),
            // What another account's row stores is of that account.
            Payment { account: "live", ..storing(6, "E2E-6") },
        ];
        shop.insert(&rows).await;
        let bookings = [
            credit(10_001, "E2E-1"),
            credit(10_002, "E2E-2"),
            credit(10_004, "pay_4"),
            credit(10_006, "E2E-6"),
        ];
        bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
        let ran = shop.run().await;
        assert_eq!(ran.verdict(1), "not decided", "it agrees");
        assert_eq!(
            lines(&shop).await,
            [
                "E2E-1 matched - 1",
                "E2E-2 open tag_unusable -",
                "pay_4 open tag_unusable -",
                "E2E-6 open orphan -",
            ],
            "indexed: {indexed}"
        );
        shop.check(false).await;
    }
}

/// The EndToEndId is one row's, and an id that the payment has between banks stands in another one.
async fn what_a_line_carries_of_two_rows_settles_neither(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let storing = |id, reference: &str| Payment {
        psp_ref: Some(reference.to_owned()),
        ..at_bank(id, "processing")
    };
    let rows = [
        at_bank(1, "processing"),
        Payment { amount: Some(10_001), ..storing(2, "UETR-1") },
        storing(3, "TX-3"),
        storing(4, "AR000004"),
        storing(5, "INSTR-5"),
        at_bank(6, "processing"),
        Payment { amount: Some(10_008), ..storing(7, "AR000008") },
        at_bank(8, "processing"),
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(10_001, "pay_1"),
        credit(10_003, "unknown"),
        credit(10_004, "stranger"),
        credit(10_005, "pay_5"),
        credit(10_006, "pay_6"),
        credit(10_008, "pay_8"),
    ];
    let mut text = camt("camt.053", "S1", &bookings);
    for (reference, element, id) in [
        ("pay_1", "UETR", "UETR-1"),
        ("unknown", "TxId", "TX-3"),
        ("stranger", "AcctSvcrRef", "AR000004"),
        ("pay_5", "InstrId", "INSTR-5"),
        ("pay_6", "TxId", "TX-6"),
        ("pay_8", "AcctSvcrRef", "AR000008"),
    ] {
        let own = format!("<EndToEndId>{reference}</EndToEndId>");
        assert!(text.contains(&own));
        text = text.replace(&own, &format!("{own}<{element}>{id}</{element}>"));
    }
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review reference_claimed");
    assert_eq!(ran.verdict(2), "review reference_mismatch");
    assert_eq!(ran.verdict(3), "succeeded settled", "no other row is known to the line");
    assert_eq!(
        ran.verdict(4),
        "wait absence_unproven",
        "the bank's own reference names no payment"
    );
    assert_eq!(ran.verdict(5), "succeeded settled", "its tag and its id");
    assert_eq!(ran.verdict(6), "succeeded settled", "an id that no row stores");
    assert_eq!(ran.verdict(7), "wait absence_unproven", "the line is another row's by its tag");
    assert_eq!(ran.verdict(8), "succeeded settled", "the bank's own reference is nobody's id");
    let said = "the row stores UETR-1, whose tag is `pay_1` and not `pay_2`";
    assert!(case_of(&shop, 2).await.contains(said));
    assert_eq!(lines(&shop).await[2], "stranger open orphan -", "it is told");
    shop.check(false).await;
    // Two bookings are two payments, whatever both carry.
    let twice = [credit(10_001, "pay_1"), credit(10_001, "pay_1")];
    let own = "<EndToEndId>pay_1</EndToEndId>";
    let text = camt("camt.053", "S1", &twice).replace(own, &format!("{own}<InstrId>I1</InstrId>"));
    let shop = shop_with_bank(engine).await;
    shop.insert(&[storing(1, "I1")]).await;
    bring(&shop, "twice.xml", &text, 0).await;
    assert_eq!(shop.run().await.verdict(1), "review duplicate_capture");
    shop.check(false).await;
}

/// It may be that of a whole run, noughts, or what a row of another account stores.
async fn an_id_between_banks_may_name_nothing(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let storing = |id, reference: &str| Payment {
        psp_ref: Some(reference.to_owned()),
        ..at_bank(id, "processing")
    };
    let rows = [
        storing(1, "INSTR-1"),
        Payment { amount: Some(10_003), ..storing(2, "0") },
        at_bank(3, "processing"),
        Payment { account: "live", status: "paid", ..storing(4, "INSTR-5") },
        at_bank(5, "processing"),
        storing(6, "0"),
        Payment { status: "paid", ..storing(7, "INSTR-7") },
        storing(8, "RUN-9"),
        storing(9, "RUN-9"),
    ];
    shop.insert(&rows).await;
    let mut bookings = Vec::new();
    let ids = [
        ("theirs", 1, "INSTR-1"),
        ("pay_3", 3, "0"),
        ("pay_5", 5, "INSTR-5"),
        ("pay_6", 6, "0"),
        ("others", 7, "INSTR-7"),
        ("unknown", 8, "RUN-9"),
    ];
    for (reference, id, _) in ids {
        bookings.push(credit(10_000 + id, reference));
    }
    let mut text = camt("camt.053", "S1", &bookings);
    for (reference, _, id) in ids {
        let own = format!("<EndToEndId>{reference}</EndToEndId>");
        text = text.replace(&own, &format!("{own}<InstrId>{id}</InstrId>"));
    }
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review reference_mismatch");
    assert!(case_of(&shop, 1).await.contains("whose tag is `theirs` and not `pay_1`"));
    for id in [3, 5, 6] {
        assert_eq!(ran.verdict(id), "succeeded settled", "{id}");
    }
    assert_eq!(shop.status(2).await, "processing");
    let told = lines(&shop).await;
    assert_eq!(told[4..], ["others open orphan -", "unknown open tag_unusable -"]);
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    let exceptions = std::fs::read_to_string(report.join("exceptions.csv")).unwrap();
    assert!(exceptions.contains("one payout, go by unknown or RUN-9"), "{exceptions}");
    // Its own line shows that the id is a run's.
    let text = camt("camt.053", "S2", &[credit(10_001, "pay_1")]);
    let own = "<EndToEndId>pay_1</EndToEndId>";
    let text = text.replace(own, &format!("{own}<InstrId>INSTR-1</InstrId>"));
    bring(&shop, "own.xml", &text, 0).await;
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    assert_eq!(lines(&shop).await[0], "theirs open orphan -");
    shop.check(false).await;
}

/// The id of a payment run stands in each of its lines, and rows store it as if it were theirs. So
/// it is where one of them alone stores it, and other payments carry it, too.
async fn rows_that_store_the_id_of_their_run_are_paid_by_their_tags(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let storing = |id, reference: &str| Payment {
        psp_ref: Some(reference.to_owned()),
        ..at_bank(id, "processing")
    };
    let rows = [
        storing(1, "RUN-7"),
        storing(2, "RUN-7"),
        at_bank(3, "processing"),
        storing(4, "RUN-8"),
        at_bank(5, "processing"),
        storing(6, "RUN-6"),
    ];
    shop.insert(&rows).await;
    let runs = [("1", "RUN-7"), ("2", "RUN-7"), ("3", "RUN-7"), ("9", "RUN-7")];
    let runs = runs.into_iter().chain([("4", "RUN-8"), ("5", "RUN-8")]);
    let runs = runs.chain([("6", "RUN-6"), ("66", "RUN-6")]);
    let bookings: Vec<Booking> = runs
        .clone()
        .map(|(id, _)| credit(10_000 + id.parse::<i64>().unwrap(), &format!("pay_{id}")))
        .collect();
    let mut text = camt("camt.053", "S1", &bookings);
    for (id, run) in runs {
        let own = format!("<EndToEndId>pay_{id}</EndToEndId>");
        text = text.replace(&own, &format!("{own}<InstrId>{run}</InstrId>"));
    }
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    for id in 1..=6 {
        assert_eq!(ran.verdict(id), "succeeded settled", "{id}");
    }
    let told = lines(&shop).await;
    assert_eq!(told[6..], ["pay_6 matched settled 6", "pay_66 open orphan -"]);
    for id in 1..=3 {
        assert_eq!(told[id - 1], format!("pay_{id} matched settled {id}"));
    }
    assert!(told[3].starts_with("pay_9 open "), "{told:?}");
    shop.check(false).await;
}

/// A booking without an id of the PSP's is called by its place. Who was found to have it stands in
/// tieout's own record, unless the mapping writes it to rows that did not succeed by it.
async fn a_place_in_a_file_is_known_by_tieouts_own_record(engine: Engine) {
    for (also_failed, verdict) in [(false, "succeeded settled"), (true, "review reference_claimed")]
    {
        let shop = shop_with_bank(engine).await;
        if also_failed {
            let path = shop.folder().join("tieout.toml");
            let text = std::fs::read_to_string(&path).unwrap();
            let set = "succeeded = { psp_ref = \"{psp_reference}\" }";
            let both = format!("{set}\nfailed = {{ psp_ref = \"{{psp_reference}}\" }}");
            assert!(text.contains(set), "{text}");
            std::fs::write(&path, text.replace(set, &both)).unwrap();
        }
        let other = Payment { psp_ref: Some("1:1".to_owned()), ..at_bank(2, "failed") };
        shop.insert(&[at_bank(1, "processing"), other]).await;
        bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(10_001, "pay_1")]), 0).await;
        assert_eq!(shop.run().await.verdict(1), verdict);
        shop.check(false).await;
    }
}

async fn an_interim_statement_decides_nothing(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    bring(&shop, "intraday.xml", &camt("camt.052", "R1", &[credit(10_001, "pay_1")]), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "wait psp_pending");
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(10_001, "pay_1")]), 0).await;
    shop.due_now().await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    shop.check(false).await;
}

/// Before a holiday a booking may be told some days early; in another year it is a mistake, and
/// whoever lets the file count has it inform until then.
async fn a_booking_of_a_day_far_ahead_pays_nobody(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().slow_calls()).await;
    shop.insert(&[1, 2, 3, 4].map(|id| at_bank(id, "processing"))).await;
    for (id, days, code) in [(1, 365, 3), (2, 4, 0), (3, 9, 3), (4, 7, 0)] {
        let bookings = [credit(10_000 + id, &format!("pay_{id}"))];
        let text = in_days(&camt("camt.053", &format!("S{id}"), &bookings), days);
        // Of accounts of their own: they do not go on from each other.
        let text = text.replace("DE02120300000000202051", &format!("DE0212030000000020205{id}"));
        bring(&shop, &format!("{id}.xml"), &text, code).await;
    }
    let wrong = shop.tieout(&["files", "quarantine"]).await.ended(0).stdout;
    let wrong = wrong.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = ["booking date: expected up to ", ", seven days ahead, found "];
    assert!(said.iter().all(|words| wrong.matches(*words).count() == 2), "{wrong}");
    assert_eq!(shop.open_cases().await, ["1 file_quarantined", "3 file_quarantined"]);
    shop.tieout(&["files", "release", "1", "--reason", "so it is"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "wait psp_pending");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(ran.verdict(3), "wait within_grace");
    assert_eq!(ran.verdict(4), "succeeded settled");
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "paid"]);
    assert_eq!(shop.open_cases().await, ["3 file_quarantined"]);
    let said = shop.texts("select text from tieout_journal where key = '1'").await;
    assert!(said[0].contains("1:1 is `booked for "), "{said:?}");
    shop.check(false).await;
}

/// Nor does one that tells no day of its booking: it is of the day of its group, of its value, or
/// of what closes its statement.
async fn what_tells_no_day_of_its_booking_is_of_its_statements(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[1, 2, 3, 4].map(|id| at_bank(id, "processing"))).await;
    let day = chrono::Utc::now().date_naive() + chrono::Days::new(365);
    let booked = |opening: i64, id: i64| {
        let credits = [credit(10_000 + id, &format!("pay_{id}"))];
        let text = camt_from(opening, "camt.053", &format!("S{id}"), &credits);
        let today = chrono::Utc::now().date_naive();
        (text, format!("<BookgDt><Dt>{today}</Dt></BookgDt>"))
    };
    let (text, own) = booked(100_000, 2);
    let by_value = text.replace(&own, &format!("<ValDt><Dt>{day}</Dt></ValDt>"));
    let (text, own) = booked(110_002, 3);
    let by_closing = in_days(&text.replace(&own, ""), 365);
    let files = [
        ("1.bai2", bai2(&day.format("%y%m%d").to_string(), 10_001, "pay_1"), 3),
        // It closed today, so that it is booked; but whether the money is there, its value says.
        ("2.xml", by_value, 0),
        ("3.xml", by_closing, 3),
    ];
    for (name, text, code) in files {
        bring(&shop, name, &text, code).await;
    }
    for id in ["1", "3"] {
        shop.tieout(&["files", "release", id, "--reason", "so it is"]).await.ended(0);
    }
    let ran = shop.run().await;
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "wait psp_pending", "{id}");
        let key = format!("select text from tieout_journal where key = '{id}'");
        let said = shop.texts(&key).await;
        assert!(said[0].contains(&format!("`booked for {day} ")), "{said:?}");
    }
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let today = chrono::Utc::now().format("%y%m%d").to_string();
    bring(&shop, "4.bai2", &bai2(&today, 10_004, "pay_4"), 0).await;
    shop.due_now().await;
    assert_eq!(shop.run().await.verdict(4), "succeeded settled");
    shop.check(false).await;
}

/// A closed day of one credit.
fn bai2(day: &str, cents: i64, reference: &str) -> String {
    format!(
        "01,A,B,{day},0200,1,,,2/\n02,A,B,1,{day},2400,EUR,2/\n03,1,EUR,010,0,,,015,{cents},,/\n\
         16,195,{cents},,R1,{reference},/\n49,{sum},3/\n98,{sum},1,5/\n99,{sum},1,7/\n",
        sum = cents * 2
    )
}

/// The statement of today as one of so many days later.
pub fn in_days(text: &str, days: u64) -> String {
    let today = chrono::Utc::now().date_naive();
    let day = today.checked_add_days(chrono::Days::new(days)).unwrap();
    text.replace(&today.to_string(), &day.to_string())
}

/// Nor does it wake anybody again: only its day makes it a booking.
async fn what_is_dated_far_ahead_contradicts_no_row(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let rows = [at_bank(1, "failed"), at_bank(2, "paid"), at_bank(3, "processing")];
    shop.insert(&rows).await;
    let bookings = [1, 2, 3].map(|id| credit(10_000 + id, &format!("pay_{id}")));
    let text = in_days(&camt("camt.053", "S1", &bookings), 365);
    bring(&shop, "ahead.xml", &text, 3).await;
    shop.tieout(&["files", "release", "1", "--reason", "so it is"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!([ran.verdict(1), ran.verdict(2)], ["not decided", "not decided"]);
    assert_eq!(ran.verdict(3), "wait psp_pending");
    let open = ["pay_1 open - -", "pay_2 open - -", "pay_3 open - -"];
    for _ in 0..2 {
        assert_eq!(lines(&shop).await, open);
        all_wait(&shop).await;
        let ran = shop.run().await;
        assert!(ran.verdicts().is_empty(), "{:?}", ran.verdicts());
        assert_eq!(ran.of_type("run_end")[0]["lines"]["contradicted"], 0);
    }
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// The window is for rows that are to be decided: what a paid one lacks is a case till it is there.
async fn a_paid_rows_money_is_its_own_however_late_it_was_booked(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().policy("date_window", "\"3d\"")).await;
    let old = Some(10 * 86_400);
    shop.insert(&[Payment { age: 10 * 86_400, attempted: old, ..at_bank(1, "paid") }]).await;
    let part = |batch, own, cents| adyen(batch, &[("Settled", own, cents, "psp1", "pay_1")]);
    bring(&shop, "first.csv", &part(7, "m1", 6_000), 0).await;
    assert_eq!(shop.run().await.verdict(1), "review amount_mismatch");
    bring(&shop, "second.csv", &part(8, "m2", 4_001), 0).await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

async fn a_booking_is_written_on_its_own_day_in_every_zone(engine: Engine) {
    for zone in ["Pacific/Kiritimati", "UTC", "America/New_York"] {
        let words = Words { table: format!("time = \"{zone}\"\n"), ..with_bank() };
        let shop = Shop::open_with(engine, words).await;
        let path = shop.folder().join("tieout.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let set = "succeeded = { psp_ref = \"{psp_reference}\"";
        assert!(text.contains(set), "{text}");
        let more = format!("{set}, note = \"{{psp_time}}\"");
        std::fs::write(&path, text.replace(set, &more)).unwrap();
        if engine == Engine::Postgres {
            shop.raw.execute("grant update (note) on payments to public").await;
        }
        shop.insert(&[at_bank(1, "processing")]).await;
        let day = chrono::Utc::now().date_naive();
        bring(&shop, "stmt.xml", &camt("camt.053", "S1", &[credit(10_001, "pay_1")]), 0).await;
        assert_eq!(shop.run().await.verdict(1), "succeeded settled");
        let written = shop.texts("select note from payments").await;
        assert_eq!(written, [format!("{day} 23:59:59.000000")], "{zone}");
        shop.check(false).await;
    }
}

async fn what_differs_is_tolerated_only_as_configured(engine: Engine) {
    let words = with_bank()
        .policy("amount_tolerance", "{ EUR = \"0.02\" }")
        .policy("date_window", "\"30d\"");
    let shop = Shop::open_with(engine, words).await;
    let old = 60 * 86_400;
    let rows = [
        at_bank(1, "processing"),
        at_bank(2, "processing"),
        at_bank(3, "paid"),
        Payment { age: old, attempted: Some(old), ..at_bank(4, "processing") },
        at_bank(5, "processing"),
        Payment { amount: Some(2), ..at_bank(6, "processing") },
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(9_999, "pay_1"),
        credit(9_999, "pay_2"),
        credit(10_004, "pay_3"),
        credit(10_004, "pay_4"),
        credit(10_005, "pay_5"),
        credit(0, "pay_6"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded tolerance_delta");
    assert_eq!(ran.verdict(2), "review amount_mismatch");
    assert_eq!(ran.verdict(3), "not decided", "it agrees but for a cent");
    assert_eq!(ran.verdict(4), "review date_out_of_window");
    assert_eq!(ran.verdict(5), "succeeded settled");
    assert_eq!(ran.verdict(6), "review amount_mismatch", "a line of nothing pays nobody");
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched tolerance_delta 1",
            "pay_2 matched amount_mismatch 2",
            "pay_3 matched tolerance_delta 3",
            "pay_4 matched date_out_of_window 4",
            "pay_5 matched settled 5",
            "pay_6 matched amount_mismatch 6",
        ]
    );
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    let bridge = std::fs::read_to_string(report.join("bridge.csv")).unwrap();
    let item = bridge.lines().find(|line| line.contains("tolerance_delta"));
    assert!(item.is_some_and(|line| line.contains("-0.02")), "{bridge}");
    let summary = std::fs::read_to_string(report.join("summary.csv")).unwrap();
    let mut tolerated = summary.lines().filter(|line| line.contains("tolerance_delta"));
    assert!(tolerated.all(|line| line.contains("matched")), "nobody must look: {summary}");
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    shop.check(false).await;
}

/// What `cases show` says of a row's case, each blank one.
async fn case_of(shop: &Shop, id: i64) -> String {
    let number = format!("select cast(number as text) from tieout_cases where subject = '{id}'");
    let case = shop.texts(&number).await.remove(0);
    let shown = shop.tieout(&["cases", "show", &case]).await.ended(0).stdout;
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `key amount` of what the last decision of each row saw at the PSP, in minor units.
async fn seen(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select key || ' ' || cast(psp_amount_minor as text) from tieout_journal \
         where outcome = 'review' order by key",
    )
    .await
}

async fn what_came_back_is_no_second_payment(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    let rows = [
        at_bank(1, "processing"),
        at_bank(2, "processing"),
        at_bank(3, "processing"),
        at_bank(4, "paid"),
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(10_001, "pay_1"),
        returned(10_001, "pay_1", "AM04"),
        credit(10_001, "pay_1"),
        credit(10_002, "pay_2"),
        returned(300, "pay_2", "MD06"),
        credit(10_003, "pay_3"),
        returned(10_003, "pay_3", "AC04"),
        credit(10_004, "pay_4"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    // One of them is told once more.
    let later = [returned(10_003, "pay_3", "AC04"), returned(10_004, "pay_4", "MD06")];
    bring(&shop, "later.xml", &camt("camt.053", "S2", &later), 0).await;
    let ran = shop.run().await;
    for id in 1..=3 {
        assert_eq!(ran.verdict(id), "review returned", "{id}: {}", ran.stdout);
    }
    assert_eq!(ran.verdict(4), "review late_contradiction");
    assert_eq!(seen(&shop).await, ["1 10001", "2 9702", "3 0", "4 0"], "what is left");
    for id in 1..=4 {
        let shown = case_of(&shop, id).await;
        assert!(shown.contains("suggested ask the bank what became of it"), "{id}: {shown}");
    }
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    let exceptions = std::fs::read_to_string(report.join("exceptions.csv")).unwrap();
    assert_eq!(exceptions.matches("contact_bank").count(), 4, "{exceptions}");
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    shop.check(false).await;
}

/// The account has an API, whose answer shows nothing of what its report files say went back.
async fn what_a_file_says_went_back_is_not_overruled(engine: Engine) {
    let more = "[[source]]\nname = \"reports\"\naccount = \"shop\"\nkind = \"folder\"\n\
                path = \"in\"\nready = \"rename\"\n";
    let words = Words { more: more.to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    std::fs::create_dir(shop.folder().join("in")).unwrap();
    shop.background(20).await;
    let paid = Payment { status: "paid", ..Payment::stuck(4) };
    let rows: Vec<Payment> = [1, 2, 3, 5].map(Payment::stuck).into_iter().chain([paid]).collect();
    shop.insert(&rows).await;
    shop.plant(rows.iter().map(Payment::captured).collect());
    let day = chrono::Utc::now().date_naive();
    let mut text = "balance_transaction_id,created,available_on,currency,gross,fee,net,\
                    reporting_category,source_id,payment_intent_id,charge_id,\
                    automatic_payout_id,payment_metadata[order_id]\n"
        .to_owned();
    for (kind, id, cents) in [
        ("charge", 1, 10_001),
        ("dispute", 1, -10_001),
        ("charge", 2, 10_002),
        ("charge_failure", 2, -10_002),
        ("charge", 3, 9_503),
        ("charge", 4, 10_004),
        ("dispute", 4, -10_004),
        ("charge", 5, 10_005),
    ] {
        let sign = if cents < 0 { "-" } else { "" };
        let amount = format!("{sign}{}", euros(i64::abs(cents)));
        writeln!(
            text,
            "txn_{kind}_{id},{day} 00:00:00,{day} 00:00:00,eur,{amount},0.00,{amount},{kind},\
             {kind}_{id},pi_{id},,po_1,pay_{id}",
        )
        .unwrap();
    }
    let path = shop.folder().join("report.csv");
    std::fs::write(&path, text).unwrap();
    shop.tieout(&["ingest", path.to_str().unwrap(), "--account", "shop"]).await.ended(0);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review disputed", "{}", ran.stdout);
    assert_eq!(ran.verdict(2), "review returned");
    assert_eq!(ran.verdict(3), "review evidence_conflict");
    assert_eq!(ran.verdict(4), "review late_contradiction");
    assert_eq!(ran.verdict(5), "succeeded captured");
    let shown = case_of(&shop, 4).await;
    assert!(shown.contains("suggested ask the PSP what became of it"), "{shown}");
    assert!(!shown.contains("--as succeeded"), "{shown}");
    shop.check(false).await;
}

/// Whether the open case of a row tells of a line.
async fn tells_of(shop: &Shop, id: i64, place: &str) -> bool {
    let open = format!("select text from tieout_cases where state = 'open' and subject = '{id}'");
    shop.texts(&open).await.iter().any(|text| text.contains(place))
}

async fn a_case_shows_the_line_that_came_last(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing"), at_bank(3, "paid")]).await;
    let first = [
        credit(10_001, "pay_1"),
        credit(10_001, "pay_1"),
        returned(10_002, "pay_2", "AM04"),
        credit(10_003, "pay_3"),
        returned(10_003, "pay_3", "AM04"),
    ];
    bring(&shop, "first.xml", &camt("camt.053", "S1", &first), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review duplicate_capture");
    assert_eq!(ran.verdict(2), "review returned");
    assert_eq!(ran.verdict(3), "review late_contradiction");
    let cases = shop.open_cases().await;
    let later = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(10_003, "pay_3")];
    bring(&shop, "later.xml", &camt("camt.053", "S2", &later), 0).await;
    shop.run_with(&["--dry-run"]).await;
    assert!(!tells_of(&shop, 1, "2:1").await, "a rehearsal looks at no case");
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review duplicate_capture");
    assert!(tells_of(&shop, 1, "2:1").await);
    assert_eq!(shop.open_cases().await.len(), cases.len(), "the same cases");
    let told = lines(&shop).await;
    assert!(told[5..].iter().all(|line| line.contains(" matched ")), "{told:?}");
    assert_eq!(shop.status(1).await, "processing");
    assert_eq!(shop.status(3).await, "paid");
    // Nothing new is nothing to look at.
    assert!(shop.run().await.verdicts().is_empty());
    shop.check(false).await;
}

/// One sum for two payments, of which the file gives no amounts.
async fn a_batch_that_lists_no_amounts_pays_nobody(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let text = camt("camt.053", "S1", &[credit(20_003, "both")]);
    let (head, rest) = text.split_once("<TxDtls>").unwrap();
    let (_own, tail) = rest.split_once("</TxDtls>").unwrap();
    let detail = |tag| format!("<TxDtls><Refs><EndToEndId>{tag}</EndToEndId></Refs></TxDtls>");
    let text = [head, &detail("pay_1"), &detail("pay_2"), tail].concat();
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await;
    for id in [1, 2] {
        assert_eq!(ran.verdict(id), "review amount_mismatch");
        let case = case_of(&shop, id).await;
        assert!(case.contains("captured, and the file does not say how much"), "{case}");
    }
    shop.check(false).await;
}

/// A line of another row contradicts no paid one, though it carries its tag, too.
async fn a_line_with_a_paid_rows_tag_behind_another_says_nothing_of_it(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid")]).await;
    let text = camt("camt.053", "S1", &[credit(10_001, "pay_1"), credit(10_002, "pay_2")]);
    let own = "<EndToEndId>pay_2</EndToEndId>";
    let text = text.replace(own, &format!("<InstrId>pay_1</InstrId>{own}"));
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run().await.ended(0);
    assert!(ran.verdicts().is_empty(), "{:?}", ran.verdicts());
    let told = lines(&shop).await;
    assert!(told[0].ends_with(" 1") && told[1].ends_with(" 2"), "{told:?}");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// No line pays two rows: the likelier of its tags says whose it is, in whichever order the rows
/// are looked at, and whatever became of them.
async fn a_line_with_the_tags_of_two_rows_is_the_likelier_ones(engine: Engine) {
    let beside = |text: String, own: &str, likelier: &str| {
        let of = |tag: &str| format!("<EndToEndId>{tag}</EndToEndId>");
        text.replace(&of(likelier), &format!("<InstrId>{own}</InstrId>{}", of(likelier)))
    };
    for (status, asked_first) in [("paid", false), ("processing", false), ("processing", true)] {
        let shop = Shop::open_with(engine, with_bank().slow_calls()).await;
        let second = Payment { amount: Some(10_001), ..at_bank(2, status) };
        shop.insert(&[at_bank(1, "processing"), second, at_bank(3, "processing")]).await;
        let text = camt("camt.053", "S1", &[credit(10_001, "pay_2"), credit(10_003, "pay_4")]);
        let text = beside(beside(text, "pay_1", "pay_2"), "pay_3", "pay_4");
        bring(&shop, "stmt.xml", &text, 0).await;
        if asked_first {
            let ran = shop.run_with(&["--id", "1"]).await;
            assert_eq!(ran.verdict(1), "review tag_near_miss");
        }
        shop.run().await;
        assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "paid"]);
        let told = shop.texts("select text from tieout_journal where key = '1'").await;
        let said = "1:1 carries this row's tag `pay_1`, and before it another row's, `pay_2`";
        assert!(told.iter().all(|text| text == said), "{told:?}");
        let first = lines(&shop).await.remove(0);
        assert!(first.starts_with("pay_2 matched ") && first.ends_with(" 2"), "{first}");
        // Of a tag that is nobody's, the other reference is the row's.
        assert_eq!(shop.status(3).await, "paid");
        // Its own line settles the row, whatever the other one carries.
        let own = camt("camt.053", "S2", &[credit(10_001, "pay_1")]);
        bring(&shop, "own.xml", &own, 0).await;
        shop.run().await;
        assert_eq!(shop.status(1).await, "paid");
        shop.check(false).await;
    }
}

async fn a_tag_that_is_nearly_a_rows_is_shown_to_a_person(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().slow_calls()).await;
    shop.insert(&[1, 2, 3, 4].map(|id| at_bank(id, "processing"))).await;
    let bookings = [
        credit(10_001, "PAY_1"),
        credit(10_002, "pay2"),
        // Another amount, and another row's own tag.
        credit(999, "PAY_3"),
        credit(10_004, "pay_3"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review tag_near_miss");
    assert_eq!(ran.verdict(2), "review tag_near_miss");
    assert_eq!(ran.verdict(3), "review amount_mismatch");
    assert_eq!(ran.verdict(4), "wait within_grace");
    assert!(case_of(&shop, 1).await.contains("1:1 carries the tag `PAY_1`"));
    assert!(case_of(&shop, 2).await.contains("1:2 carries the tag `pay2`"));
    assert_eq!(lines(&shop).await[0], "PAY_1 open orphan -");
    assert_eq!(shop.status(1).await, "processing");
    // The row's own line settles it, whatever was near.
    let own = [credit(10_001, "pay_1")];
    bring(&shop, "own.xml", &camt("camt.053", "S2", &own), 0).await;
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    shop.check(false).await;
}
