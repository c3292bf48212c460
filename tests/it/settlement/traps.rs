//! The traps that real files set, each as small as it can be.

use tieout::model::money::Currency;
use tieout::model::settlement::TagKind;
use tieout::settlement::Item;
use tieout::settlement::ledger::{Inspection, State};

use super::{errors, fixture, inspected, items};

fn camt(balances: (&str, &str), entries: &str) -> String {
    let balance = |kind: &str, amount: &str| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">{amount}</Amt>\
             <Dt><Dt>2026-11-19</Dt></Dt></Bal>"
        )
    };
    format!(
        "<Document><BkToCstmrStmt><Stmt><Id>1</Id><Acct><Id><IBAN>X</IBAN></Id></Acct>{}{}\
         {entries}</Stmt></BkToCstmrStmt></Document>",
        balance("OPBD", balances.0),
        balance("CLBD", balances.1),
    )
}

fn entry(amount: &str, sign: &str, more: &str) -> String {
    format!("<Ntry><Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>{sign}</CdtDbtInd>{more}</Ntry>")
}

fn camt_found(balances: (&str, &str), entries: &str) -> Inspection {
    inspected(camt(balances, entries).as_bytes())
}

#[track_caller]
fn refused(found: &Inspection, part: &str) {
    assert_eq!(found.state, State::Quarantined, "{part}");
    let errors = errors(found);
    assert!(errors.iter().any(|error| error.contains(part)), "{part}: {errors:?}");
}

#[test]
fn a_netted_batch_is_summed_with_each_sign() {
    let details = |second: &str| {
        format!(
            "<NtryDtls><TxDtls><Amt Ccy=\"EUR\">7</Amt></TxDtls><TxDtls><Amt Ccy=\"EUR\">{second}\
             </Amt><CdtDbtInd>DBIT</CdtDbtInd></TxDtls></NtryDtls>"
        )
    };
    let good = camt_found(("0", "5"), &entry("5", "CRDT", &details("2")));
    assert_eq!((good.state, good.sums.lines), (State::Ok, 2));
    let bad = camt_found(("0", "5"), &entry("5", "CRDT", &details("3")));
    refused(&bad, "Ntry/Amt against the sum of its TxDtls: expected 5.00 EUR, found 4.00 EUR");
    let charged = format!("<Chrgs><Rcrd><Amt Ccy=\"EUR\">1</Amt></Rcrd></Chrgs>{}", details("3"));
    let charged = camt_found(("0", "5"), &entry("5", "CRDT", &charged));
    assert_eq!(charged.state, State::Ok, "charges stand between: {:?}", charged.sums.problems);
}

#[test]
fn amounts_finer_than_the_currency_name_their_element() {
    refused(&camt_found(("0", "1"), &entry("1.001", "CRDT", "")), "Ntry/Amt: expected at most 2");
    refused(&camt_found(("0.001", "1"), &entry("1", "CRDT", "")), "Bal/Amt OPBD");
    refused(&camt_found(("0", "1"), &entry("1.2E+2", "CRDT", "")), "an amount in digits");
    refused(&camt_found(("0", "1"), &entry("1", "DEBIT", "")), "Ntry/CdtDbtInd");
}

#[test]
fn pending_and_informing_entries_are_in_no_balance() {
    for (status, want) in [
        ("<Sts>PDNG</Sts>", State::Ok),
        ("<Sts><Cd>INFO</Cd></Sts>", State::Ok),
        ("<Sts>BOOK</Sts>", State::Quarantined),
        ("", State::Quarantined),
    ] {
        let entries = [entry("5", "CRDT", ""), entry("9", "CRDT", status)].concat();
        assert_eq!(camt_found(("0", "5"), &entries).state, want, "{status}");
    }
}

#[test]
fn xml_that_reaches_outside_or_grows_is_refused() {
    let plain = camt(("0", "0"), "");
    let bomb = format!("<!DOCTYPE d [<!ENTITY a \"aaaa\">]>{plain}");
    refused(&inspected(bomb.as_bytes()), "DOCTYPE");
    let entity = plain.replace("<Id>1", "<Id>&a;");
    refused(&inspected(entity.as_bytes()), "an entity of its own");
    let deep = plain.replace("<Id>1</Id>", &format!("{}{}", "<x>".repeat(80), "</x>".repeat(80)));
    refused(&inspected(deep.as_bytes()), "more elements within one another");
    let attribute = plain.replace("<Id>1", &format!("<Id a=\"{}\">1", "x".repeat(9_000_000)));
    refused(&inspected(attribute.as_bytes()), "more than 8 MiB");
    let long = plain.replace("<Id>1", &format!("<Other>{}</Other><Id>1", "x".repeat(900_000)));
    assert_eq!(inspected(long.as_bytes()).state, State::Ok, "a long text that nobody reads");
}

#[test]
fn versions_are_read_by_names_and_not_by_namespaces() {
    let plain = camt(("0", "5"), &entry("5", "CRDT", ""));
    for (from, to, version) in [
        ("<Document>", "<Document xmlns=\"iso:20023\">", ""),
        (
            "<Document>",
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.13\">",
            "camt.053.001.13",
        ),
        ("BkToCstmrStmt>", "BkToCstmrStmtV01>", ""),
        ("<Document>", "<Envelope><Header/><Document>", ""),
    ] {
        let mut text = plain.replace(from, to);
        if to.starts_with("<Env") {
            text.push_str("</Envelope>");
        }
        let found = inspected(text.as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Ok, 1), "{to}");
        assert_eq!(found.version, version, "{to}");
    }
}

fn statement(rows: &str, closing: &str) -> Inspection {
    let text = format!(":20:X\n:25:1\n:28C:1\n:60F:C261119EUR10,\n{rows}\n:62F:{closing}\n-\n");
    inspected(text.as_bytes())
}

#[test]
fn marks_of_reversals_turn_the_sign() {
    for (row, closing) in [
        (":61:261119RC4,NTRFX", "C261119EUR6,"),
        (":61:261119RD4,NTRFX", "C261119EUR14,"),
        (":61:2611191120CR4,NTRFX", "C261119EUR14,"),
        (":61:2611191120RCR4,NTRFX", "C261119EUR6,"),
        (":61:2611191120DR14,NTRFX", "D261119EUR4,"),
        (":61:261119C4NTRFX", "C261119EUR14,"),
        (":61:261119C4.50NTRFX", "C261119EUR14.50"),
    ] {
        let found = statement(row, closing);
        assert_eq!(found.state, State::Ok, "{row}: {:?}", found.sums.problems);
    }
    refused(&statement(":61:261119D-4,NTRFX", "C261119EUR6,"), ":61:");
    refused(&statement(":61:261119C4,005NTRFX", "C261119EUR14,"), "at most 2 decimals of EUR");
}

/// What `:86:` says of the payer's reference, in one bank's words beside another's.
#[test]
fn the_reference_is_found_in_every_dialect() {
    for (text, want) in [
        ("166?00X?20EREF+A-1?21B?22SVWZ+x", Some("A-1B")),
        ("166>00X>20EREF+A-1>21SVWZ+EREF+", Some("A-1")),
        ("166?00X?20SVWZ+x EREF: A-1 MREF: 7", Some("A-1")),
        ("820?20TEST?22END-TO-END-REF.:?23A-?24 1?25CORE / MANDATSREF.:", Some("A- 1")),
        ("820?20TEST?22END-TO-END-REF.:?23NICHT AN\nGEGEBEN?24Ref. 7T2C/1", None),
        ("/TRTP/X/EREF/A-1/REMI/y", Some("A-1")),
        ("/REMI/y/ERE\nF/A-\n1", Some("A-1")),
        ("free text EREF+A-1 KREF+7", Some("A-1")),
        ("166?20EREF+NOTPROVIDED?21SVWZ+x", None),
        ("no reference here", None),
    ] {
        let file = format!(
            ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR0,\n:61:261119C1,NTRFNONREF\n:86:{text}\n\
             :62F:C261119EUR1,\n"
        );
        let tags = items(file.as_bytes()).into_iter().filter_map(|item| match item {
            Item::Line(line) => Some(line.tags),
            _other => None,
        });
        let found = tags.flatten().find(|tag| tag.kind == TagKind::EndToEndId);
        assert_eq!(found.map(|tag| tag.text).as_deref(), want, "{text}");
    }
}

#[test]
fn dates_that_no_calendar_has_are_said_and_the_money_counts() {
    let found = statement(":61:2302300230C4,NTRFX", "C261119EUR14,");
    assert_eq!((found.state, found.sums.problems_total), (State::Ok, 1));
}

#[test]
fn a_statement_without_its_balance_is_not_whole() {
    let whole = ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR10,\n:61:261119C4,NTRFX\n";
    refused(&inspected(whole.as_bytes()), ":62F:");
    refused(&inspected(b":20:X\n:25:1\n:28C:1\n:62F:C261119EUR10,\n"), ":60F:");
}

#[test]
fn yen_and_dinar_have_their_own_decimals() {
    let found = inspected(
        b":20:X\n:25:1\n:28C:1\n:60F:C261119JPY1000,\n:61:261119C500,NTRFX\n:62F:C261119JPY1500,\n",
    );
    let yen = Currency::parse("JPY").unwrap();
    assert_eq!(found.state, State::Ok);
    assert_eq!(found.sums.totals[&yen].credit_minor, 500);
    let finer = b":20:X\n:25:1\n:28C:1\n:60F:C261119JPY1000,5\n:62F:C261119JPY1000,5\n";
    refused(&inspected(finer), "at most 0 decimals of JPY");
}

/// Text that looks like the frame of a message.
#[test]
fn rows_of_text_may_begin_with_a_dash_a_colon_or_a_brace() {
    let text = ":61:261119C4,NTRFX\n:86:one\n-two\n-\n:three:\n{four\n-five";
    let found = statement(text, "C261119EUR14,");
    assert_eq!((found.state, found.sums.entries), (State::Ok, 1), "{:?}", found.sums.problems);
}

#[test]
fn records_of_bai2_may_share_a_line_and_counts_only_warn() {
    let text = "01,A,B,261119,0200,1,,,2/ 02,A,B,1,261118,2400,USD,2/03,1,,010,5,,/\n\
                16,142,3,Z,,,A / B/ 16,451,2,Z,,,C/\n49,10,9/ 98,10,1,9/\n99,10,1,9/";
    let found = inspected(text.as_bytes());
    assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{:?}", found.sums.problems);
    assert_eq!(found.sums.problems_total, 3, "{:?}", found.sums.problems);
    refused(&inspected(text.replace("49,10,", "49,11,").as_bytes()), "49 account total");
    refused(&inspected(text.replace("99,10,1", "99,10,2").as_bytes()), "99 group count");
}

#[test]
fn records_of_nacha_may_lack_line_ends_or_blanks() {
    let text = String::from_utf8(fixture("nacha.ach")).unwrap();
    let padded: Vec<String> = text.lines().map(|line| format!("{line:<94}")).collect();
    let want = inspected(text.as_bytes()).sums.totals;
    for joined in [padded.concat(), padded.join("\n"), format!("{}\u{1a}", padded.join("\r\n"))] {
        let found = inspected(joined.as_bytes());
        assert_eq!((found.state, &found.sums.totals), (State::Ok, &want), "{joined}");
    }
    let without_fill: Vec<&str> = text.lines().filter(|line| !line.starts_with("99")).collect();
    assert_eq!(inspected(without_fill.join("\n").as_bytes()).state, State::Ok);
}

#[test]
fn what_is_no_settlement_file_is_not_guessed_at() {
    for text in [
        "",
        "\n\n",
        "hello",
        "<html></html>",
        "<Document><CstmrCdtTrfInitn/></Document>",
        "01,2",
        "a,b,c\n1,2,3\n",
        ":20: is no statement",
    ] {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::UnknownFormat, "{text}");
    }
    assert!(items(&fixture("camt052.xml")).len() > 3);
}
