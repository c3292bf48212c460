//! Rows whose account has no API: what a bank's statement says of them, decided by the one loop.

use std::fmt::Write as _;

use crate::run::shop::{Engine, Payment, Shop, Words, on_both_databases};

on_both_databases!(
    a_statement_settles_what_is_stuck,
    what_a_statement_says_of_rows_that_ended,
    a_line_without_a_row_is_matched_when_the_row_comes,
    an_interim_statement_decides_nothing,
    what_differs_is_tolerated_only_as_configured,
);

/// One booking: its mark (`CRDT`, `DBIT`), its amount in cents, its EndToEndId, and the code of
/// its return.
pub struct Booking {
    mark: &'static str,
    cents: i64,
    reference: String,
    code: Option<&'static str>,
}

pub fn credit(cents: i64, reference: &str) -> Booking {
    Booking { mark: "CRDT", cents, reference: reference.to_owned(), code: None }
}

pub fn returned(cents: i64, reference: &str, code: &'static str) -> Booking {
    Booking { mark: "DBIT", cents, reference: reference.to_owned(), code: Some(code) }
}

fn euros(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A camt.053 (or 052, interim) of one day, which ties.
pub fn camt(message: &str, id: &str, bookings: &[Booking]) -> String {
    let (body, head) = match message {
        "camt.053" => ("BkToCstmrStmt", "Stmt"),
        _interim => ("BkToCstmrAcctRpt", "Rpt"),
    };
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
             <Dt><Dt>2026-11-18</Dt></Dt></Bal>\n",
            euros(cents.abs())
        )
    };
    let sum: i64 = bookings.iter().map(|b| if b.mark == "CRDT" { b.cents } else { -b.cents }).sum();
    text.push_str(&balance("OPBD", 100_000));
    text.push_str(&balance("CLBD", 100_000 + sum));
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
            day = chrono::Utc::now().date_naive(),
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
    let shop = shop_with_bank(engine).await;
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
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
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
    shop.a_span_passes().await;
    let again = shop.run().await;
    assert_eq!(again.verdicts().len(), 1, "{:?}", again.verdicts());
    assert_eq!(again.verdict(5), "wait absence_unproven");
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
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(9_999, "pay_1"),
        credit(9_999, "pay_2"),
        credit(10_004, "pay_3"),
        credit(10_004, "pay_4"),
        credit(10_005, "pay_5"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded tolerance_delta");
    assert_eq!(ran.verdict(2), "review amount_mismatch");
    assert_eq!(ran.verdict(3), "not decided", "it agrees but for a cent");
    assert_eq!(ran.verdict(4), "review date_out_of_window");
    assert_eq!(ran.verdict(5), "succeeded settled");
    assert_eq!(
        lines(&shop).await,
        [
            "pay_1 matched tolerance_delta 1",
            "pay_2 matched amount_mismatch 2",
            "pay_3 matched tolerance_delta 3",
            "pay_4 matched date_out_of_window 4",
            "pay_5 matched settled 5",
        ]
    );
    let end = &ran.of_type("run_end")[0];
    let report = shop.folder().join(end["report"].as_str().unwrap());
    let bridge = std::fs::read_to_string(report.join("bridge.csv")).unwrap();
    let item = bridge.lines().find(|line| line.contains("tolerance_delta"));
    assert!(item.is_some_and(|line| line.contains("-0.02")), "{bridge}");
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    shop.check(false).await;
}
