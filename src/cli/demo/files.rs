//! What the demo's bank and PSP leave in folders: a statement that settles what is stuck, one that
//! does not tie, and the report that explains a payout.

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDate, TimeDelta};

use crate::cli::demo::cast::{Cast, DemoRow, SUCCEEDED};
use crate::model::money::decimal_text;

/// The folders, which are the sources of the demo's configuration.
pub const FOLDERS: [&str; 2] = ["bank", "payouts"];

/// The payout that the PSP's report lists and the bank's statement books.
const PAYOUT: &str = "po_demo1";

/// Rows of the first statement, of which the last is booked with another amount.
const FIRST: usize = 8;

/// Rows of the second. What is left is in no file yet.
const SECOND: usize = 3;

/// What was in the bank account before, in cents.
const OPENING: i64 = 2_500_000;

/// A file, by its path within the demo.
pub struct DemoFile {
    /// The path.
    pub path: &'static str,
    /// What is in it.
    pub text: String,
}

/// All of them, as of the cast's day.
pub fn files(cast: &Cast) -> Vec<DemoFile> {
    let day = cast.day();
    let rows: Vec<&DemoRow> = cast.rows.iter().filter(|row| row.provider == "bank").collect();
    let (payout, net) = payout(cast, day);
    let mut credits: Vec<(i64, String)> = booked(rows.iter().take(FIRST));
    if let Some((cents, _)) = credits.last_mut() {
        *cents = cents.saturating_sub(100);
    }
    credits.push((net, PAYOUT.to_owned()));
    credits.push((4_200, "INVOICE 4711".to_owned()));
    let sum = |credits: &[(i64, String)]| {
        credits.iter().fold(OPENING, |sum, (cents, _)| sum.saturating_add(*cents))
    };
    let closing = sum(&credits);
    // The bank's second file lacks an entry that its closing balance counts.
    let cut = booked(rows.iter().skip(FIRST).take(SECOND));
    let untied = sum(&cut).saturating_add(1_999);
    vec![
        DemoFile { path: "bank/statement-1.xml", text: statement("1", day, &credits, closing) },
        DemoFile { path: "bank/statement-2.xml", text: statement("2", day, &cut, untied) },
        DemoFile { path: "payouts/po_demo1.csv", text: payout },
    ]
}

fn booked<'r>(rows: impl Iterator<Item = &'r &'r DemoRow>) -> Vec<(i64, String)> {
    rows.map(|row| (row.amount.unwrap_or_default(), format!("charge_{}", row.id))).collect()
}

fn euros(cents: i64) -> String {
    decimal_text(cents.into(), 2)
}

/// A camt.053 of one day.
fn statement(number: &str, day: NaiveDate, credits: &[(i64, String)], closing: i64) -> String {
    let at = format!("{day}T06:00:00Z");
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"><BkToCstmrStmt>\n\
         <GrpHdr><MsgId>DEMO-{number}</MsgId><CreDtTm>{at}</CreDtTm></GrpHdr>\n\
         <Stmt><Id>STMT-{number}</Id><CreDtTm>{at}</CreDtTm>\n\
         <Acct><Id><IBAN>DE02120300000000202051</IBAN></Id><Ccy>EUR</Ccy></Acct>\n"
    );
    for (kind, cents) in [("OPBD", OPENING), ("CLBD", closing)] {
        let amount = euros(cents);
        text.push_str(&format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp>\
             <Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>\
             <Dt><Dt>{day}</Dt></Dt></Bal>\n"
        ));
    }
    for (cents, reference) in credits {
        let amount = euros(*cents);
        text.push_str(&format!(
            "<Ntry><Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>\
             <Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{day}</Dt></BookgDt><NtryDtls><TxDtls>\
             <Refs><EndToEndId>{reference}</EndToEndId></Refs><Amt Ccy=\"EUR\">{amount}</Amt>\
             <CdtDbtInd>CRDT</CdtDbtInd></TxDtls></NtryDtls></Ntry>\n"
        ));
    }
    text.push_str("</Stmt></BkToCstmrStmt></Document>\n");
    text
}

/// The PSP's report of what a payout is made of, and what was paid out in cents.
fn payout(cast: &Cast, day: NaiveDate) -> (String, i64) {
    let mut text = "balance_transaction_id,created,available_on,currency,gross,fee,net,\
         reporting_category,source_id,payment_intent_id,charge_id,automatic_payout_id\n"
        .to_owned();
    let mut total = 0_i64;
    let mut add = |kind: &str, source: &str, payment: &str, gross: i64, fee: i64| {
        let net = gross.saturating_sub(fee);
        let number = text.lines().count();
        let (gross, fee, net_text) = (euros(gross), euros(fee), euros(net));
        // Writing into a text cannot fail.
        let _written = writeln!(
            text,
            "txn_{number},{day} 06:00:00,{day} 06:00:00,eur,{gross},{fee},{net_text},{kind},\
             {source},{payment},,{PAYOUT}"
        );
        net
    };
    let is_of_last_week = |row: &&DemoRow| {
        row.status == SUCCEEDED && row.currency == "EUR" && cast.is_of_last_week(row.created)
    };
    for row in cast.rows.iter().filter(is_of_last_week) {
        let gross = row.amount.unwrap_or_default();
        let fee = gross.checked_div(70).unwrap_or_default().saturating_add(25);
        let payment = row.reference.as_deref().unwrap_or_default();
        let net = add("charge", &format!("ch_demo{}", row.id), payment, gross, fee);
        total = total.saturating_add(net);
    }
    for (kind, source, gross) in [
        ("refund", "re_demo1", -1_900),
        ("fee", "fee_demo1", -200),
        ("other_adjustment", "adj_1", 150),
    ] {
        total = total.saturating_add(add(kind, source, "", gross, 0));
    }
    add("payout", PAYOUT, "", total.saturating_neg(), 0);
    (text, total)
}

impl Cast {
    /// The day that it is for.
    fn day(&self) -> NaiveDate {
        DateTime::from_timestamp(self.base, 0).unwrap_or_default().date_naive()
    }

    /// Whether something is of a week ago or before.
    fn is_of_last_week(&self, created: i64) -> bool {
        created <= self.base.saturating_sub(TimeDelta::days(7).num_seconds())
    }
}
