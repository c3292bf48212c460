//! The traps that real files set, each as small as it can be.

use std::io::Cursor;

use tieout::model::money::Currency;
use tieout::model::settlement::{Direction, Line, TagKind};
use tieout::settlement::ledger::{Inspection, State, inspect};
use tieout::settlement::{Format, Item};

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

/// Italian banks wrap the message, and write their own word before its name.
#[test]
fn a_statement_in_an_italian_envelope_is_read() {
    let text = camt(("0", "5"), &entry("5", "CRDT", ""));
    let (name, whole) = ("<BkToCstmrStmt>", "</BkToCstmrStmt></Document>");
    let begun = "<CBIBdyBkToCstmrStmtReq><CBIBkToCstmrStmtReq>";
    let text = text.replace("<Document>", "<CBIBkToCstmrStmtReqPhyMsg>").replace(name, begun);
    let ended = "</CBIBkToCstmrStmtReq></CBIBdyBkToCstmrStmtReq></CBIBkToCstmrStmtReqPhyMsg>";
    let found = inspected(text.replace(whole, ended).as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    assert_eq!((found.sums.entries, found.sums.statements[0].ties), (1, Some(true)));
}

/// Whether sums held where there are no balances was asked of a file, and not told.
#[test]
fn a_notice_ties_by_the_sums_that_it_declares() {
    let notice = |sums: &str| {
        format!(
            "<Document><BkToCstmrDbtCdtNtfctn><Ntfctn><Id>1</Id><Acct><Id><IBAN>X</IBAN></Id>\
             </Acct><TxsSummry>{sums}</TxsSummry>{}{}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>",
            entry("5", "CRDT", "<Sts>BOOK</Sts>"),
            entry("2", "DBIT", "<Sts>BOOK</Sts>"),
        )
    };
    let credits = "<TtlCdtNtries><NbOfNtries>1</NbOfNtries><Sum>5</Sum></TtlCdtNtries>";
    let debits = "<TtlDbtNtries><Sum>2</Sum></TtlDbtNtries>";
    let both = format!("{credits}{debits}");
    for (sums, state, ties) in [
        (both.as_str(), State::Ok, Some(true)),
        (credits, State::Ok, None),
        ("<TtlNtries><NbOfNtries>2</NbOfNtries></TtlNtries>", State::Ok, None),
        ("<TtlNtries><Sum>7</Sum></TtlNtries>", State::Ok, Some(true)),
        (&both.replace("<Sum>2<", "<Sum>3<"), State::Quarantined, Some(false)),
        ("", State::Ok, None),
    ] {
        let found = inspected(notice(sums).as_bytes());
        assert_eq!((found.state, found.sums.statements[0].ties), (state, ties), "{sums}");
    }
}

#[test]
fn an_interim_report_ties_by_the_sums_that_it_declares() {
    let report = |floor: &str, sums: &str| {
        format!(
            ":20:X\n:25:1\n:28C:1\n:34F:EUR{floor}\n:13D:2611191200+0100\n\
             :61:2611191119C5,NTRFR\n:61:2611191119D2,NTRFR\n{sums}-\n"
        )
    };
    let both = ":90D:1EUR2,\n:90C:1EUR5,\n";
    for (floor, sums, state, ties) in [
        ("0,", both, State::Ok, Some(true)),
        ("0,", ":90C:1EUR5,\n", State::Ok, None),
        ("0,", ":90D:1EUR2,\n:90C:1EUR6,\n", State::Quarantined, Some(false)),
        ("0,", ":90D:2EUR2,\n:90C:1EUR5,\n", State::Quarantined, Some(false)),
        ("1,", ":90D:1EUR2,\n:90C:2EUR6,\n", State::Ok, None),
        ("0,", "", State::Ok, None),
    ] {
        let found = inspected(report(floor, sums).as_bytes());
        let ties_found = found.sums.statements[0].ties;
        assert_eq!(
            (found.state, ties_found),
            (state, ties),
            "{floor} {sums}: {:?}",
            errors(&found)
        );
    }
}

/// A mark that was turned into that of a reversal, and a sum that is lost.
#[test]
fn sums_of_an_interim_report_that_prove_no_side_are_said() {
    let report = |marks: [&str; 2], sums: &str| {
        let [first, second] = marks;
        let text = format!(
            ":20:X\n:25:1\n:28C:1\n:34F:EUR0,\n:13D:2611191200+0100\n\
             :61:2611191119{first}5,NTRFR\n:61:2611191119{second}2,NTRFR\n{sums}-\n"
        );
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{marks:?}: {:?}", found.sums.problems);
        let fields = found.sums.problems.iter().map(|one| one.field.clone());
        (found.sums.statements[0].ties, fields.collect::<Vec<_>>())
    };
    let both = ":90D:1EUR2,\n:90C:1EUR5,\n";
    assert_eq!(report(["C", "D"], both), (Some(true), vec![]));
    let said = vec![":90D: and :90C:".to_owned()];
    assert_eq!(report(["RC", "D"], both), (None, said.clone()));
    assert_eq!(report(["C", "RD"], both), (None, said));
    assert_eq!(report(["RC", "D"], ":90D:2EUR7,\n:90C:0EUR0,\n"), (Some(true), vec![]));
    let lacks = |name: &str| (None::<bool>, vec![name.to_owned()]);
    assert_eq!(report(["C", "D"], ":9XC:1EUR5,\n:90D:1EUR2,\n"), lacks(":90C:"));
    assert_eq!(report(["C", "D"], ":90C:1EUR5,\n"), lacks(":90D:"));
    assert_eq!(report(["C", "D"], ""), (None, vec![]));
}

/// Some write a debit that was taken back so. Only balances tell it from a dash.
#[test]
fn a_minus_behind_the_mark_turns_it_where_balances_prove_it() {
    let statement = |mark: &str, closing: &str| {
        format!(
            ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR200,00\n\
             :61:2611191119{mark}NMSCR\n:62F:C261119EUR{closing}\n-\n"
        )
    };
    for (mark, closing, direction) in
        [("D-104,12", "304,12", Direction::Credit), ("C-104,12", "95,88", Direction::Debit)]
    {
        let text = statement(mark, closing);
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{mark}: {:?}", found.sums.problems);
        let directions = items(text.as_bytes()).into_iter().filter_map(|item| match item {
            Item::Entry(entry) => Some(entry.direction),
            _other => None,
        });
        assert_eq!(directions.collect::<Vec<_>>(), [direction], "{mark}");
    }
    refused(&inspected(statement("D-104,12", "95,88").as_bytes()), "closing balance");
    let interim = ":20:X\n:25:1\n:28C:1\n:34F:EUR0,\n:13D:2611191200+0100\n\
                   :61:2611191119D-5,NTRFR\n-\n";
    refused(&inspected(interim.as_bytes()), "an amount without a sign");
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
fn one_detail_of_another_amount_is_said_and_matched_to_nothing() {
    let detail = |place: &str| {
        format!(
            "<NtryDtls><TxDtls><AmtDtls><{place}><Amt Ccy=\"EUR\">4</Amt></{place}></AmtDtls>\
             </TxDtls></NtryDtls>"
        )
    };
    // What was instructed need not be what was booked; what the bank calls the payment's amount is.
    for (place, problems, not_itemised) in [("TxAmt", 1, 1), ("InstdAmt", 0, 0)] {
        let text = camt(("0", "5"), &entry("5", "CRDT", &detail(place)));
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{place}: {:?}", found.sums.problems);
        let sums = &found.sums;
        assert_eq!((sums.problems_total, sums.not_itemised), (problems, not_itemised), "{place}");
        let lines = items(text.as_bytes()).into_iter().filter_map(|item| match item {
            Item::Line(line) => line.minor,
            _other => None,
        });
        assert_eq!(lines.collect::<Vec<_>>(), [500], "{place}: as booked");
    }
    let instructed = detail("InstdAmt").replace("<NtryDtls>", "").replace("</NtryDtls>", "");
    let batch = format!("<NtryDtls>{instructed}{instructed}</NtryDtls>");
    let batch = camt_found(("0", "5"), &entry("5", "CRDT", &batch));
    assert_eq!((batch.state, batch.sums.problems_total), (State::Ok, 1));
}

/// A line's amount, what moved before charges, its direction, and whether it may decide a row.
type Shown = (Option<i64>, Option<i64>, &'static str, bool);

fn lines_shown(text: &str) -> Vec<Shown> {
    let lines = items(text.as_bytes()).into_iter().filter_map(|item| match item {
        Item::Line(line) => Some(line),
        _other => None,
    });
    let shown = |line: Box<Line>| {
        let direction = if line.direction == Direction::Credit { "in" } else { "out" };
        (line.minor, line.gross.map(|gross| gross.minor), direction, line.itemised)
    };
    lines.map(shown).collect()
}

/// A row of what was only instructed, or of a detail that nothing holds against what was booked,
/// would be called paid.
#[test]
fn a_detail_decides_by_what_was_booked_alone() {
    let detail = |amount: &str, more: &str| {
        let amount = match amount {
            "" => String::new(),
            amount => format!("<Amt Ccy=\"EUR\">{amount}</Amt>"),
        };
        format!("<TxDtls>{amount}{more}</TxDtls>")
    };
    let instructed = |amount: &str| {
        format!("<AmtDtls><InstdAmt><Amt Ccy=\"EUR\">{amount}</Amt></InstdAmt></AmtDtls>")
    };
    let charge = |amount: &str| {
        format!("<Chrgs><TtlChrgsAndTaxAmt Ccy=\"EUR\">{amount}</TtlChrgsAndTaxAmt></Chrgs>")
    };
    let of = |sign: &str, before: &str, details: &[String]| {
        let details = details.concat();
        let balances = if sign == "CRDT" { ("0", "59") } else { ("59", "0") };
        camt(balances, &entry("59", sign, &format!("{before}<NtryDtls>{details}</NtryDtls>")))
    };
    let count = "<NtryDtls><Btch><NbOfTxs>3</NbOfTxs></Btch></NtryDtls>";
    let booked = (Some(5_900), None, "in", false);
    let beside = (None, None, "in", false);
    for (name, text, lines, problems) in [
        // One detail.
        (
            "instructed",
            of("CRDT", "", &[detail("59", &instructed("300"))]),
            vec![(Some(5_900), None, "in", true)],
            0,
        ),
        (
            "instructed and charged",
            of("CRDT", "", &[detail("59", &(instructed("60") + &charge("1")))]),
            vec![(Some(5_900), Some(6_000), "in", true)],
            0,
        ),
        (
            "before charges",
            of("CRDT", "", &[detail("61", &charge("2"))]),
            vec![(Some(5_900), Some(6_100), "in", true)],
            0,
        ),
        (
            "before the entry's charges",
            of("CRDT", &charge("2"), &[detail("61", "")]),
            vec![(Some(5_900), Some(6_100), "in", true)],
            0,
        ),
        (
            "charged beside it",
            of("CRDT", "", &[detail("59", &charge("0.50"))]),
            vec![(Some(5_900), None, "in", true)],
            0,
        ),
        ("no charges to speak of", of("CRDT", &charge("0"), &[detail("300", "")]), vec![booked], 1),
        ("other charges", of("CRDT", "", &[detail("300", &charge("0.50"))]), vec![booked], 1),
        (
            "instructed alone",
            of("CRDT", "", &[detail("", &instructed("300"))]),
            vec![(Some(5_900), None, "in", true)],
            0,
        ),
        // Several.
        (
            "other charges, several",
            of("CRDT", "", &[detail("30", &charge("1")), detail("300", "")]),
            vec![booked, beside],
            1,
        ),
        (
            "their charges",
            of("CRDT", "", &[detail("30", &charge("1")), detail("31", &charge("1"))]),
            vec![(Some(2_900), Some(3_000), "in", true), (Some(3_000), Some(3_100), "in", true)],
            0,
        ),
        (
            "the entry's charges",
            of("CRDT", &charge("2"), &[detail("30", ""), detail("31", "")]),
            vec![
                (Some(3_000), None, "in", true),
                (Some(3_100), None, "in", true),
                (Some(200), None, "out", true),
            ],
            0,
        ),
        (
            "instructed, several",
            of("CRDT", "", &[detail("", &instructed("30")), detail("", &instructed("300"))]),
            vec![booked, beside],
            1,
        ),
        (
            "instructed besides",
            of("CRDT", "", &[detail("30", &instructed("300")), detail("29", "")]),
            vec![(Some(3_000), None, "in", true), (Some(2_900), None, "in", true)],
            0,
        ),
        (
            "as the original went",
            of(
                "DBIT",
                "",
                &[
                    detail("30", "<CdtDbtInd>CRDT</CdtDbtInd>"),
                    detail("29", "<CdtDbtInd>CRDT</CdtDbtInd>"),
                ],
            ),
            vec![(Some(3_000), None, "out", true), (Some(2_900), None, "out", true)],
            1,
        ),
        (
            "both ways, and minus what was booked",
            of(
                "DBIT",
                "",
                &[
                    detail("89", "<CdtDbtInd>CRDT</CdtDbtInd>"),
                    detail("30", "<CdtDbtInd>DBIT</CdtDbtInd>"),
                ],
            ),
            vec![(Some(5_900), None, "out", false), (None, None, "out", false)],
            1,
        ),
        (
            "one has no amount",
            of("CRDT", "", &[detail("300", ""), detail("", "")]),
            vec![booked, beside],
            1,
        ),
        (
            "one has no amount, and the other has all",
            of("CRDT", "", &[detail("59", ""), detail("", "")]),
            vec![(Some(5_900), None, "in", true), (None, None, "in", true)],
            0,
        ),
        (
            "one has another currency",
            of(
                "CRDT",
                "",
                &[detail("300", ""), "<TxDtls><Amt Ccy=\"USD\">30</Amt></TxDtls>".into()],
            ),
            vec![booked, beside],
            1,
        ),
        (
            "none has an amount",
            of("CRDT", "", &[detail("", ""), detail("", "")]),
            vec![(None, None, "in", true), (None, None, "in", true)],
            0,
        ),
        (
            "one is not listed",
            of("CRDT", count, &[detail("30", ""), detail("20", "")]),
            vec![booked, beside],
            1,
        ),
    ] {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{name}: {:?}", found.sums.problems);
        assert_eq!(found.sums.problems_total, problems, "{name}: {:?}", found.sums.problems);
        assert_eq!(lines_shown(&text), lines, "{name}");
    }
    refused(
        &inspected(of("CRDT", &charge("0"), &[detail("30", ""), detail("300", "")]).as_bytes()),
        "Ntry/Amt against the sum of its TxDtls: expected 59.00 EUR, found 330.00 EUR",
    );
}

/// What did not move would be counted.
/// Which of the two holds nobody knows.
#[test]
fn an_amount_and_a_sign_stand_once_in_an_entry_of_camt() {
    let notice = |entry: &str| {
        let text = format!(
            "<Document><BkToCstmrDbtCdtNtfctn><Ntfctn><Id>1</Id><Acct><Id><IBAN>X</IBAN></Id>\
             </Acct>{entry}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>"
        );
        inspected(text.as_bytes())
    };
    let amount = "<Amt Ccy=\"EUR\">7</Amt>";
    for (more, part) in [
        (amount.to_owned(), "Ntry/Amt: expected one, found another: 7"),
        ("<CdtDbtInd>DBIT</CdtDbtInd>".to_owned(), "Ntry/CdtDbtInd: expected one"),
        (
            format!("<NtryDtls><TxDtls>{amount}{amount}</TxDtls></NtryDtls>"),
            "TxDtls/Amt: expected one",
        ),
    ] {
        refused(&notice(&entry("7", "CRDT", &more)), part);
    }
    for more in ["", "<AmtDtls><TxAmt><Amt Ccy=\"USD\">8</Amt></TxAmt></AmtDtls>"] {
        assert_eq!(notice(&entry("7", "CRDT", more)).state, State::Ok, "{more}");
    }
    refused(&notice(&entry("7", "C", "")), "expected CRDT or DBIT, found C");
}

/// Words that no message has are passed over, but no entry is.
#[test]
fn an_entry_that_is_not_read_is_never_passed_over() {
    let whole = camt(("0", "5"), &entry("5", "CRDT", "<Sts>BOOK</Sts>"));
    let own = "<SplmtryData><Envlp><Ntry/></Envlp></SplmtryData>";
    let more = |more: &str| whole.replace("</BkToCstmrStmt>", &format!("{more}</BkToCstmrStmt>"));
    for text in [more(own), more("<Other/>"), whole.replace("</Stmt>", &format!("{own}</Stmt>"))] {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{text}: {:?}", found.sums.problems);
    }
    let another = entry("1", "CRDT", "");
    for (text, part) in [
        (more(&format!("<Rpt>{another}</Rpt>")), "Rpt: expected a Stmt, found Rpt"),
        (more(&format!("<stmt>{another}</stmt>")), "stmt: expected a Stmt, found stmt"),
        (more(&another), "found in Document/BkToCstmrStmt, which is not read"),
        (whole.replace("</Stmt>", &format!("<More>{another}</More></Stmt>")), "Ntry: expected in"),
        (whole.replace("Stmt>", "Rpt>").replace("BkToCstmrRpt", "BkToCstmrStmt"), "a Stmt"),
        ("<Document><BkToCstmrStmt><GrpHdr/></BkToCstmrStmt></Document>".to_owned(), "document"),
    ] {
        let found = inspected(text.as_bytes());
        refused(&found, part);
        assert_eq!(errors(&found).len(), 1, "{:?}", errors(&found));
    }
}

#[test]
fn balances_of_one_day_that_differ_are_not_both_believed() {
    let balance = |kind: &str, amount: &str, day: &str| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">{amount}</Amt>\
             <Dt><Dt>2026-11-{day}</Dt></Dt></Bal>"
        )
    };
    let look = |more: &str| camt_found(("0", "5"), &format!("{more}{}", entry("5", "CRDT", "")));
    let day = |first: &str, second: &str, minor| {
        let (ended, begun) = (balance("CLBD", minor, first), balance("OPBD", minor, second));
        format!("{ended}{begun}")
    };
    for more in [balance("OPBD", "0.00", "19"), day("19", "19", "3"), day("18", "19", "0")] {
        let found = look(&more);
        let errors = errors(&found);
        assert!(!errors.iter().any(|error| error.contains("of the same day")), "{errors:?}");
    }
    for kind in ["OPBD", "CLBD"] {
        let expected = if kind == "OPBD" { "0.00 EUR, as on line 1" } else { "5.00 EUR, as on" };
        let part = format!("Bal/Amt {kind}: expected {expected}");
        refused(&look(&balance(kind, "7", "19")), &part);
        let before = camt(("0", "5"), &entry("5", "CRDT", ""));
        let before = before.replacen("<Bal>", &format!("{}<Bal>", balance(kind, "7", "19")), 1);
        refused(&inspected(before.as_bytes()), &format!("Bal/Amt {kind}: expected 7.00 EUR"));
    }
}

#[test]
fn a_statement_names_its_account_and_its_currency() {
    let said = |account: &str| {
        let text = camt(("0", "5"), &entry("5", "CRDT", "<Sts>BOOK</Sts>"));
        let text = text.replace("<Acct><Id><IBAN>X</IBAN></Id></Acct>", account);
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{account}: {:?}", found.sums.problems);
        found.sums.problems.iter().map(|problem| problem.field.clone()).collect::<Vec<_>>()
    };
    let named = "<Acct><Id><IBAN>X</IBAN></Id><Ccy>EUR</Ccy></Acct>";
    assert!(said(named).is_empty());
    assert_eq!(said(&named.replace("EUR", "USD")), ["Acct/Ccy"]);
    assert_eq!(said(""), ["Acct/Id"]);
}

#[test]
fn a_status_that_nobody_knows_is_booked_only_where_the_balances_prove_it() {
    let two = [entry("10", "CRDT", "<Sts>RJCT</Sts>"), entry("5", "CRDT", "<Sts>BOOK</Sts>")];
    let tied = camt_found(("0", "15"), &two.concat());
    assert_eq!((tied.state, tied.sums.problems_total), (State::Ok, 1), "{:?}", tied.sums.problems);
    refused(&camt_found(("0", "5"), &two.concat()), "Ntry/Sts: expected BOOK, PDNG, INFO or FUTR");
    let notice = |status: &str| {
        let text = camt(("0", "5"), &entry("5", "CRDT", status));
        let text = text.replace("OPBD", "XPCD").replace("CLBD", "FWAV");
        let text = text.replace("BkToCstmrStmt", "BkToCstmrDbtCdtNtfctn");
        inspected(text.replace("Stmt>", "Ntfctn>").as_bytes())
    };
    for status in ["", "<Sts></Sts>", "<Sts>BOOK</Sts>", "<Sts><Cd>INFO</Cd></Sts>"] {
        let found = notice(status);
        assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "{status}");
    }
    for status in ["<Sts>RJCT</Sts>", "<Sts><Prtry>REJECTED</Prtry></Sts>"] {
        refused(&notice(status), "no balances prove that it was booked");
    }
    // Balances that tie with them and without them prove nothing.
    let pair = ["CRDT", "DBIT"].map(|sign| entry("4", sign, "<Sts>RJCT</Sts>")).concat();
    refused(&camt_found(("7", "7"), &pair), "no balances prove that it was booked");
}

/// Nearly half of all entries have no status: balances say that they were booked.
#[test]
fn without_a_status_and_without_balances_nothing_says_that_money_moved() {
    let text = camt(("0", "5"), &entry("5", "CRDT", ""));
    let without = text.replace("OPBD", "XPCD").replace("CLBD", "FWAV");
    let wrong = "Ntry/Sts: expected BOOK, PDNG, INFO or FUTR; no balances prove that it was booked";
    refused(&inspected(without.as_bytes()), wrong);
    let said = without.replace("</Ntry>", "<Sts>BOOK</Sts></Ntry>");
    assert_eq!(inspected(said.as_bytes()).state, State::Ok);
    for kinds in [["OPBD", "XPCD"], ["CLBD", "FWAV"], ["CLBD", "CLAV"]] {
        let one = text.replace(kinds[0], kinds[1]);
        let found = inspected(one.as_bytes());
        assert_eq!(found.state, State::Ok, "{kinds:?}: {:?}", found.sums.problems);
    }
    let report = without.replace("BkToCstmrStmt", "BkToCstmrAcctRpt").replace("Stmt>", "Rpt>");
    assert_eq!(inspected(report.as_bytes()).state, State::Ok, "it decides nothing");
}

#[test]
fn balances_of_binary_fractions_are_rounded_where_they_then_tie() {
    let debit = entry("34.00", "DBIT", "");
    for balances in [
        ("100.0000000000005", "66.0000000000001"),
        ("99.9999999999999", "65.9999999999999"),
        ("100", "66.00000000"),
    ] {
        let found = camt_found(balances, &debit);
        assert_eq!(found.state, State::Ok, "{balances:?}: {:?}", found.sums.problems);
        let statement = &found.sums.statements[0];
        assert_eq!(statement.opening.map(|balance| balance.minor), Some(10_000));
        assert_eq!(statement.ties, Some(true), "{balances:?}");
    }
    for balances in [
        ("100.0000000000005", "67.0000000000001"),
        ("100.00001", "66"),
        ("100.0000100000005", "66"),
    ] {
        refused(&camt_found(balances, &debit), "Bal/Amt OPBD: expected at most 2 decimals of EUR");
    }
    let open = camt(("100.0000000000005", "66"), &debit).replace("CLBD", "FWAV");
    refused(&inspected(open.as_bytes()), "Bal/Amt OPBD");
    let fine = entry("34.0000000000001", "DBIT", "");
    refused(&camt_found(("100", "66"), &fine), "Ntry/Amt: expected at most 2 decimals of EUR");
}

#[test]
fn available_balances_tie_a_statement_that_has_no_others_and_never_untie_it() {
    let text = camt(("0", "5"), &entry("5", "CRDT", ""));
    let available = text.replace("OPBD", "OPAV").replace("CLBD", "CLAV");
    let tied = inspected(available.as_bytes()).sums;
    assert_eq!((tied.statements[0].ties, tied.problems_total), (Some(true), 1));
    assert!(tied.problems[0].found.contains("OPAV, CLAV"), "{:?}", tied.problems);
    let other = inspected(available.replacen(">5<", ">6<", 1).as_bytes());
    assert_eq!((other.state, other.sums.statements[0].ties), (State::Ok, None));
    let beside = text.replace("OPBD", "OPAV");
    assert_eq!(inspected(beside.as_bytes()).sums.statements[0].ties, None, "one of each");
    let booked = "<Bal><Tp><Cd>OPBD</Cd></Tp><Amt Ccy=\"EUR\">1</Amt></Bal><Bal>";
    let both = available.replacen("<Bal>", booked, 1);
    assert_eq!(inspected(both.as_bytes()).sums.statements[0].ties, None, "a booked one goes first");
}

/// Pages are joined by interim balances, also where the whole file is one row of text.
#[test]
fn an_interim_balance_opens_or_closes_a_page() {
    let text = camt(("0", "5"), &entry("5", "CRDT", ""));
    for from in ["CLBD", "OPBD"] {
        let page = inspected(text.replace(from, "ITBD").as_bytes()).sums;
        assert_eq!(page.problems_total, 0, "{from}: {:?}", page.problems);
        assert_eq!(page.statements[0].ties, Some(true), "{from}");
    }
    let changed = text.replace("CLBD", "ITBD").replace(">5<", ">6<");
    let changed = changed.replacen("<Ntry><Amt Ccy=\"EUR\">6<", "<Ntry><Amt Ccy=\"EUR\">5<", 1);
    refused(&inspected(changed.as_bytes()), "closing balance: expected 6.00 EUR");
    let alone = text.replace("OPBD", "OPAV").replace("CLBD", "ITBD");
    let alone = inspected(alone.as_bytes()).sums;
    assert_eq!((alone.statements[0].ties, alone.problems_total), (None, 1), "one is not both");
}

/// Statements of one message.
fn one_message(statements: &[&str]) -> String {
    let own = |text: &&str| {
        let (from, to) = (text.find("<Stmt>").unwrap(), text.find("</BkToCstmrStmt>").unwrap());
        text[from..to].to_owned()
    };
    let all: String = statements.iter().map(own).collect();
    format!("<Document><BkToCstmrStmt>{all}</BkToCstmrStmt></Document>")
}

#[test]
fn pages_of_a_camt_begin_where_the_one_before_ended() {
    let payment = entry("7", "CRDT", "");
    let first = camt(("0", "7"), &payment).replace("CLBD", "ITBD");
    let page = |opening, closing| camt((opening, closing), &payment).replace("OPBD", "ITBD");
    let second = page("7", "14").replace("CLBD", "ITBD");
    let last = page("14", "21");
    let found = inspected(one_message(&[&first, &second, &last]).as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    assert_eq!(found.sums.problems_total, 0, "{:?}", found.sums.problems);
    let missing = "Bal/Amt ITBD: expected 7.00 EUR, where the page before it ended, found 14.00";
    refused(&inspected(one_message(&[&first, &last]).as_bytes()), missing);
    let other = page("8", "15");
    let changed = missing.replace("found 14.00", "found 8.00");
    refused(&inspected(one_message(&[&first, &other]).as_bytes()), &changed);
    let with_period = |text: &str| {
        let days = "<FrToDt><FrDt>2026-11-18</FrDt><ToDt>2026-11-20</ToDt></FrToDt>";
        text.replace("<Id>1</Id>", &format!("<Id>1</Id>{days}"))
    };
    let later = |text: &str| text.replace("2026-11-19", "2026-11-20");
    let whole = [with_period(&first), with_period(&later(&other))];
    refused(&inspected(one_message(&[&whole[0], &whole[1]]).as_bytes()), &changed);
    // What goes on elsewhere is no page of it.
    for (name, text) in [
        ("another statement", other.replace("<Id>1</Id>", "<Id>2</Id>")),
        ("another account", other.replace("<IBAN>X", "<IBAN>Y")),
        ("another day of a bank that calls all the same", later(&other)),
        ("a statement of its own", camt(("8", "15"), &payment)),
    ] {
        let found = inspected(one_message(&[&first, &text]).as_bytes());
        assert_eq!(found.state, State::Ok, "{name}: {:?}", found.sums.problems);
    }
    let ended = camt(("0", "7"), &payment);
    assert_eq!(inspected(one_message(&[&ended, &other]).as_bytes()).state, State::Ok);
    assert_eq!(inspected(last.as_bytes()).state, State::Ok, "a page alone");
}

/// Nearly every message is its own page 1, whatever pages of statements it holds.
#[test]
fn a_page_is_known_by_its_balance_where_it_has_no_number() {
    let page = camt(("7", "14"), &entry("7", "CRDT", "")).replace("OPBD", "ITBD");
    let message = |text: &str, number: &str| {
        let head = format!("<GrpHdr><MsgPgntn><PgNb>{number}</PgNb></MsgPgntn></GrpHdr><Stmt>");
        text.replace("<Stmt>", &head)
    };
    let own = |text: &str, number: &str| {
        let head = format!("<Id>1</Id><StmtPgntn><PgNb>{number}</PgNb></StmtPgntn>");
        text.replace("<Id>1</Id>", &head)
    };
    let called = |text: &str| {
        let mut all = items(text.as_bytes()).into_iter();
        let page = all.find_map(|item| match item {
            Item::Statement(statement) => Some(statement.page),
            _other => None,
        });
        page.unwrap()
    };
    let by_balance = Some("page from 7.00 EUR".to_owned());
    for text in [page.clone(), message(&page, "1"), own(&page, "1"), own(&page, "0")] {
        assert_eq!(called(&text), by_balance, "{text}");
    }
    for text in [message(&page, "2"), own(&page, "2"), own(&message(&page, "1"), "2")] {
        assert_eq!(called(&text).as_deref(), Some("page 2"), "{text}");
    }
    let first = camt(("7", "14"), &entry("7", "CRDT", "")).replace("CLBD", "ITBD");
    for text in [first.clone(), message(&first, "1"), message(&first, "2"), own(&first, "1")] {
        assert_eq!(called(&text), None, "{text}");
    }
}

#[test]
fn balances_may_be_named_by_the_codes_of_bai() {
    let text = camt(("0", "5"), &entry("5", "CRDT", ""));
    let text = text.replace("<Cd>OPBD</Cd>", "<Prtry>010</Prtry>");
    let text = text.replace("<Cd>CLBD</Cd>", "<Prtry>015</Prtry>");
    let found = inspected(text.as_bytes()).sums;
    assert_eq!((found.problems_total, found.statements[0].ties), (0, Some(true)));
    refused(&inspected(text.replacen(">5<", ">6<", 1).as_bytes()), "closing balance");
}

#[test]
fn a_report_may_sum_up_what_it_does_not_list() {
    let sums = "<TxsSummry><TtlCdtNtries><NbOfNtries>2</NbOfNtries><Sum>5.00</Sum></TtlCdtNtries>\
                </TxsSummry>";
    let text = camt(("0", "5"), sums).replace("CLBD", "ITBD");
    let report = text.replace("BkToCstmrStmt", "BkToCstmrAcctRpt").replace("Stmt>", "Rpt>");
    let found = inspected(report.as_bytes());
    assert_eq!((found.state, found.sums.problems_total), (State::Ok, 2));
    refused(&inspected(text.as_bytes()), "Sum: expected 5.00, found no entry is listed");
    let listed = report.replace("<TxsSummry>", &format!("{}<TxsSummry>", entry("4", "CRDT", "")));
    refused(&inspected(listed.as_bytes()), "Sum: expected 5.00 EUR, found 4.00 EUR");
    refused(&inspected(listed.replace("5.00", "4,00").as_bytes()), "found 4,00");
}

/// One issuer writes it so; only of debits, and nothing else.
#[test]
fn the_sum_of_debits_may_carry_a_minus() {
    let with = |kind: &str, sum: &str| {
        let (code, sign) = if kind == "Dbt" { ("10", "DBIT") } else { ("0", "CRDT") };
        let closing = if kind == "Dbt" { "5" } else { "5.00" };
        let sums = format!("<Ttl{kind}Ntries><NbOfNtries>1</NbOfNtries><Sum>{sum}</Sum>");
        let sums = format!("<TxsSummry>{sums}</Ttl{kind}Ntries></TxsSummry>");
        camt_found((code, closing), &[sums, entry("5", sign, "")].concat())
    };
    for sum in ["-5.00", "5.00"] {
        let found = with("Dbt", sum);
        assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "{sum}");
    }
    refused(&with("Dbt", "-6.00"), "TtlDbtNtries/Sum: expected 6.00 EUR, found 5.00 EUR");
    refused(&with("Dbt", "--5.00"), "found --5.00");
    refused(&with("Cdt", "-5.00"), "TtlCdtNtries/Sum: expected a figure in digits, found -5.00");
    let nil = "<TxsSummry><TtlDbtNtries><NbOfNtries>0</NbOfNtries><Sum>-0.00</Sum></TtlDbtNtries>\
               </TxsSummry>";
    assert_eq!(camt_found(("5", "5"), nil).sums.problems_total, 0);
}

/// A notification has no balances: what it says of all its entries may be all that proves them.
#[test]
fn the_sums_of_all_entries_prove_those_of_a_notification() {
    let notice = |sums: &str, entries: &str| {
        let text = format!(
            "<Document><BkToCstmrDbtCdtNtfctn><Ntfctn><Id>1</Id><TxsSummry>{sums}</TxsSummry>\
             {entries}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>"
        );
        inspected(text.as_bytes())
    };
    let of = |sum: &str, net: &str, way: &str| {
        let net = format!("<TtlNetNtry><Amt>{net}</Amt><CdtDbtInd>{way}</CdtDbtInd></TtlNetNtry>");
        format!("<TtlNtries><NbOfNtries>2</NbOfNtries><Sum>{sum}</Sum>{net}</TtlNtries>")
    };
    let two = |first: (&str, &str), second: &str| {
        let booked = "<Sts>BOOK</Sts>";
        [entry(first.0, first.1, booked), entry("2.50", second, booked)].concat()
    };
    let good = two(("4", "CRDT"), "DBIT");
    let old = "<TtlNtries><TtlNetNtryAmt>1.5</TtlNetNtryAmt><CdtDbtInd>CRDT</CdtDbtInd>\
               </TtlNtries>";
    let net_alone = of("1.50", "1.50", "CRDT");
    let per_code = "<TtlNtriesPerBkTxCd><Sum>9</Sum><TtlNetNtry><Amt>9</Amt></TtlNetNtry>\
                    </TtlNtriesPerBkTxCd>";
    let sums = of("6.50", "1.50", "CRDT");
    for sums in [sums.as_str(), net_alone.as_str(), old, per_code] {
        let found = notice(sums, &good);
        assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "{sums}");
    }
    let pending = [good.clone(), entry("9", "CRDT", "<Sts>PDNG</Sts>")].concat();
    let found = notice(&sums.replace(">2<", ">3<"), &pending);
    assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0), "of the booked ones");
    let turned = "TtlNetNtry: expected 1.50 EUR, found 6.50 EUR";
    refused(&notice(&sums, &two(("4", "CRDT"), "CRDT")), turned);
    refused(&notice(old, &two(("4", "CRDT"), "CRDT")), turned);
    let both = two(("4", "DBIT"), "CRDT");
    refused(&notice(&sums, &both), "TtlNetNtry: expected 1.50 EUR, found -1.50 EUR");
    let other = two(("5", "CRDT"), "DBIT");
    let changed = "TtlNtries/Sum: expected 6.50 EUR, found 7.50 EUR";
    refused(&notice("<TtlNtries><Sum>6.50</Sum></TtlNtries>", &other), changed);
    refused(&notice("<TtlNtries><Sum>6,50</Sum></TtlNtries>", &good), "a figure in digits");
    refused(&notice(&sums, ""), "TtlNetNtry: expected 1.50, found no entry is listed");
    // Banks reckon it in ways of their own: where sums of both sides prove the entries, or the sign
    // of what undoes another entry was turned, it is only said.
    let odd = of("99", "99", "DBIT");
    let sides = "<TtlCdtNtries><Sum>4</Sum></TtlCdtNtries><TtlDbtNtries><Sum>2.5</Sum>\
                 </TtlDbtNtries>";
    let proven = format!("{odd}{sides}");
    let undone = entry("2.50", "CRDT", "<RvslInd>true</RvslInd><Sts>BOOK</Sts>");
    let undoes = [entry("4", "CRDT", "<Sts>BOOK</Sts>"), undone].concat();
    for (sums, entries, problems) in [(&proven, &good, 2), (&sums, &undoes, 1)] {
        let found = notice(sums, entries);
        assert_eq!((found.state, found.sums.problems_total), (State::Ok, problems), "{sums}");
    }
    refused(&notice(&odd, &good), "TtlNetNtry: expected -99.00 EUR, found 1.50 EUR");
    let tied = camt_found(("0", "1.50"), &format!("<TxsSummry>{odd}</TxsSummry>{good}"));
    assert_eq!((tied.state, tied.sums.problems_total), (State::Ok, 2), "by its balances");
}

#[test]
fn amounts_finer_than_the_currency_name_their_element() {
    let plus = camt_found(("+0", "+1"), &entry("+1.00", "CRDT", ""));
    assert_eq!((plus.state, plus.sums.problems_total), (State::Ok, 0), "as XML has numbers");
    refused(&camt_found(("0", "1"), &entry("1.001", "CRDT", "")), "Ntry/Amt: expected at most 2");
    refused(&camt_found(("0", "1"), &entry("-1", "CRDT", "")), "Ntry/Amt: expected an amount");
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

/// A statement of another format behind it would be lost.
#[test]
fn words_beside_a_document_are_not_passed_over() {
    let text = camt(("0", "5"), &entry("5", "CRDT", ""));
    assert_eq!(inspected(format!("{text}\n--\0\u{1a}").as_bytes()).state, State::Ok);
    let behind = format!("{text}\n:20:X\n:25:1\n");
    refused(&inspected(behind.as_bytes()), "nothing beside its elements, found 20:X");
    refused(&inspected(format!("a.xml {text}").as_bytes()), "nothing beside its elements");
    let mut archive = vec![0; 512];
    archive[257..262].copy_from_slice(b"ustar");
    archive.extend(text.bytes());
    let read = inspect(Box::new(Cursor::new(archive)), None, None);
    assert!(read.is_err_and(|error| error.to_string().contains("tar archive")));
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
        (
            "<Document>",
            "<Document xmlns=\"http://bank.example/de/camt.053.001.04.ch.02.xsd\">",
            "camt.053.001.04.ch.02",
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
        (":61:2611191120d4,NTRFX", "C261119EUR6,"),
        (":61:261119C4NTRFX", "C261119EUR14,"),
        (":61:261119C4.50NTRFX", "C261119EUR14.50"),
    ] {
        let found = statement(row, closing);
        assert_eq!(found.state, State::Ok, "{row}: {:?}", found.sums.problems);
    }
    refused(&statement(":61:261119D-4,NTRFX", "C261119EUR6,"), "closing balance");
    refused(&statement(":61:261119C4,005NTRFX", "C261119EUR14,"), "at most 2 decimals of EUR");
}

#[test]
fn movements_may_hold_blanks_or_be_cut_before_the_amount() {
    for row in [
        ":61:261119    C4,NTRFX-1",
        ":61:261119 1119 C 4,NTRFX-1",
        ":61:2611191119C 4,NTRFX-1",
        ":61:2611191119C4, NTRFX-1",
        ":61:2611191119CR\n4,00NTRFX-1",
    ] {
        let found = statement(row, "C261119EUR14,");
        assert_eq!(found.state, State::Ok, "{row}: {:?}", found.sums.problems);
        let references = found.sums.references.get(&TagKind::CustomerReference).copied();
        assert_eq!(references, Some(1), "{row}");
    }
    let text = ":20:X\n:25:1\n:60F:C261119EUR0,\n:61:261119C1, NTRFNONREF\n:62F:C261119EUR1,\n";
    assert!(inspected(text.as_bytes()).sums.references.is_empty(), "a blank is no reference");
    refused(&statement(":61:2611191119CR\nfour", "C261119EUR14,"), ":61:");
}

/// An interim report, which no balance proves.
fn report(rows: &str) -> Inspection {
    let head = ":20:X\n:25:1\n:28C:0\n:34F:EUR0,\n:13:2611191200\n";
    inspected(format!("{head}{rows}\n").as_bytes())
}

#[test]
fn a_movement_that_was_cut_within_its_amount_goes_on_in_the_next_row() {
    let euro = Currency::parse("EUR").unwrap();
    for (row, minor) in [
        ("C1\n0,50NTRFX", 1_050),
        ("C10\n,50NTRFX", 1_050),
        ("C10,\n50NTRFX", 1_050),
        ("C10,5\n0NTRFX", 1_050),
        // Whole, with a row of text behind them.
        ("C10,50NTRFX\n123 text", 1_050),
        ("C500NTRFX\n0123 text", 50_000),
        ("C10,NTRFX\n50 text", 1_000),
        ("C10,50//7\n50 text", 1_050),
    ] {
        let found = report(&format!(":61:2611191119{row}"));
        assert_eq!(found.state, State::Ok, "{row}: {:?}", found.sums.problems);
        assert_eq!(found.sums.totals[&euro].credit_minor, minor, "{row}");
    }
    for row in ["C1\n0 pieces", "C1\n0,50 text", "C10,\n5", "C1 000,00NTRFX", "C1'000,00NTRFX"] {
        refused(&report(&format!(":61:2611191119{row}")), "date, mark, amount, type and reference");
    }
}

/// Behind an amount without a type the next row may be the bank's text.
#[test]
fn a_row_of_text_behind_a_movement_is_no_part_of_its_amount() {
    let euro = Currency::parse("EUR").unwrap();
    for row in [
        "D200,\n15 JUNE RENT",
        "D200,\n15 MAY RENT",
        "D200,\n5 INVOICES PAID",
        "D200,\n1INVOICE 44",
        "D200,\n2024 INVOICE",
        "D200,\nRENT 15",
        "D200,00\n5 INVOICES",
        "D200\n,00NTRF",
        "D\n200,00NTRF",
    ] {
        let found = report(&format!(":61:2611191119{row}"));
        assert_eq!(found.state, State::Ok, "{row}: {:?}", found.sums.problems);
        assert_eq!(found.sums.totals[&euro].debit_minor, 20_000, "{row}");
    }
    for row in [
        "D200",
        "D200\n15,00 JUNE RENT",
        "D20\n24 INVOICES",
        "D1\n000,00 SALARY PAYMENT",
        "D12,3\n4 BANK STREET",
        "D200,\n15 NTRF",
        "D\n15 JUNE RENT",
    ] {
        refused(&report(&format!(":61:2611191119{row}")), ":61:");
    }
    for row in ["C4", "C4,\n15 JUNE RENT"] {
        let found = statement(&format!(":61:2611191119{row}"), "C261119EUR14,");
        assert_eq!(found.state, State::Ok, "{row}: {:?}", found.sums.problems);
    }
}

#[test]
fn a_mark_that_may_be_one_of_thousands_is_no_decimal_mark() {
    let part = "an amount whose mark cannot be one of thousands, found ";
    for amount in ["1.000", "1,000", "12,560", "123.000"] {
        let row = format!(":61:2611191119C{amount}NTRFX");
        refused(&report(&row), &format!("{part}{amount}"));
    }
    refused(&report(":61:2611191119C1,NTRFX\n:90C:1EUR1.000"), "count, currency and sum");
    let balances = |code: &str, amounts: [&str; 3]| {
        let [opening, moved, closing] = amounts;
        let text = format!(
            ":20:X\n:25:1\n:28C:1\n:60F:C261119{code}{opening}\n:61:261119C{moved}NTRFX\n\
             :62F:C261119{code}{closing}\n-\n"
        );
        inspected(text.as_bytes())
    };
    for amount in ["1,234.56", "1.234,56", "1,2,3"] {
        let part = format!("a decimal comma, and no mark of thousands, found {amount}");
        refused(&report(&format!(":61:2611191119C{amount}NTRFX")), &part);
    }
    // All of it a thousand times too small would tie.
    refused(&balances("JPY", ["10.000", "1.000", "11.000"]), &format!("{part}10.000"));
    refused(&balances("EUR", ["10.000", "1.000", "11.000"]), &format!("{part}1.000"));
    for (code, amounts, minor) in [
        ("JPY", ["0,", "1000,00", "1000,00"], 1_000),
        ("KWD", ["0,000", "1,234", "1,234"], 1_234),
        ("KWD", ["0.000", "1.234", "1.234"], 1_234),
        ("EUR", ["0,000", "000000012,50", "12,50"], 1_250),
        ("EUR", [",00", "1234.560", "1234.56"], 123_456),
    ] {
        let found = balances(code, amounts);
        assert_eq!(found.state, State::Ok, "{amounts:?}: {:?}", found.sums.problems);
        let currency = Currency::parse(code).unwrap();
        assert_eq!(found.sums.totals[&currency].credit_minor, minor, "{amounts:?}");
    }
}

#[test]
fn a_balance_report_is_named_and_not_read() {
    let body = ":20:X\n:25:1\n:28:1/1\n:13D:2611191200+0100\n:60F:C261119EUR10,\n\
                :90D:1EUR5,\n:90C:2EUR15,\n:62F:C261119EUR20,\n:64:C261119EUR20,\n";
    let quiet = body.replace("1EUR5,", "0EUR0,").replace("2EUR15,", "0EUR0,");
    let quiet = quiet.replace("EUR20", "EUR10");
    for text in [body.to_owned(), format!("{{1:F01X}}{{2:I941XN}}{{4:\n{quiet}-}}")] {
        let found = inspected(text.as_bytes());
        refused(&found, "MT941, a balance report: it lists none");
        assert_eq!((found.sums.problems_total, found.sums.entries), (1, 0), "{text}");
    }
    // Without a movement, and sums that say so, it is a statement all the same.
    let found = inspected(quiet.as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    let listed = body.replace(":62F:", ":61:261119D5,NTRFX\n:61:261119C15,NTRFY\n:62F:");
    assert_eq!(inspected(listed.as_bytes()).sums.entries, 2);
}

#[test]
fn a_message_may_end_behind_its_last_figure() {
    let row = ":61:261119C4,NTRFX\n:86:text-}and more";
    let found = statement(row, "C261119EUR14,-}");
    assert_eq!((found.state, found.sums.entries), (State::Ok, 1), "{:?}", found.sums.problems);
    refused(&statement(row, "C261119EUR13,-}"), "closing balance");
    refused(&statement(row, "C261119EUR14,-"), ":62F:");
    let message = |id: &str, opening: &str, closing: &str| {
        format!(
            "{{1:F01X}}{{2:I940XN}}{{4:\n:20:{id}\n:25:1\n:28C:{id}\n:60F:c261119EUR{opening}\n\
             :61:261119C4,NTRFX\n:62F:C261119EUR{closing}-}}{{5:{{CHK:0}}}}"
        )
    };
    let text = [message("1", "10,", "14,"), message("2", "14,", "18,")].concat();
    let found = inspected(text.as_bytes());
    assert_eq!((found.state, found.sums.statements_total), (State::Ok, 2));
    assert_eq!((found.sums.entries, found.sums.problems_total), (2, 0));
}

#[test]
fn balances_may_leave_out_the_currency_that_the_statement_began_in() {
    let page = |number: &str, opening: &str, row: &str, closing: &str| {
        format!(":20:X\n:25:1\n:28:1/{number}\n{opening}\n:61:{row}S051\n{closing}\n")
    };
    let text = [
        page("1", ":60F:C020315DEM10,00", "0203170320CM4,00", ":62M:C02031514,00"),
        page("2", ":60M:C020315DEM14,00", "020322D1,00", ":62F:C02032213,00"),
    ]
    .concat();
    let found = inspected(text.as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    assert_eq!((found.sums.statements_total, found.sums.entries), (1, 2));
    refused(&inspected(text.replace("2213,00", "2212,00").as_bytes()), "closing balance");
    refused(&inspected(text.replace("DEM10", "10").as_bytes()), ":60F: currency");
}

/// Pages of one account: the number, the opening, one entry, the closing.
fn pages(pages: &[(&str, &str, &str, &str)]) -> String {
    let page = |(number, opening, amount, closing): &(&str, &str, &str, &str)| {
        format!(
            ":20:X\n:25:1\n:28C:{number}\n:{opening}\n:61:261119C{amount},NTRFX\n:{closing}\n-\n"
        )
    };
    pages.iter().map(page).collect()
}

#[test]
fn pages_of_a_statement_begin_where_the_one_before_ended() {
    let first = ("7/1", "60F:C261119EUR10,", "4", "62M:C261119EUR14,");
    let second = ("7/2", "60M:C261119EUR14,", "5", "62M:C261119EUR19,");
    let third = ("7/3", "60M:C261119EUR19,", "1", "62F:C261119EUR20,");
    let all = inspected(pages(&[first, second, third]).as_bytes());
    assert_eq!((all.state, all.sums.problems_total), (State::Ok, 0), "{:?}", all.sums.problems);
    assert_eq!((all.sums.statements_total, all.sums.entries), (1, 3));
    let gap = inspected(pages(&[first, third]).as_bytes());
    refused(&gap, ":60M:: expected 14.00 EUR, where the page before it ended, found 19.00 EUR");
    refused(&gap, ":28C:: expected page 2, found page 3");
    // What a page between them came to may be nothing.
    let nothing = ("7/3", "60M:C261119EUR14,", "1", "62F:C261119EUR15,");
    let gap = inspected(pages(&[first, nothing]).as_bytes());
    refused(&gap, ":28C:: expected page 2, found page 3");
    // Some give all pages one number, and some each page one of its own.
    for number in ["7/1", "8/1", "7"] {
        let last = (number, "60M:C261119EUR14,", "1", "62F:C261119EUR15,");
        let found = inspected(pages(&[first, last]).as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{number}");
    }
    let other = ("8/1", "60M:C261119EUR15,", "1", "62F:C261119EUR16,");
    refused(&inspected(pages(&[first, other]).as_bytes()), "the last page is missing");
}

#[test]
fn a_statement_that_ends_in_a_page_is_not_whole() {
    let first = ("7/1", "60F:C261119EUR10,", "4", "62M:C261119EUR14,");
    let missing = ":62M:: expected the page that goes on from here (:60M:), or :62F:, found none";
    let second = ("7/2", "60M:C261119EUR14,", "5", "62M:C261119EUR19,");
    refused(&inspected(pages(&[first, second]).as_bytes()), missing);
    // A bank may make a file of each page.
    for page in [first, second] {
        let alone = inspected(pages(&[page]).as_bytes());
        assert_eq!((alone.state, alone.sums.problems_total), (State::Ok, 1));
        assert_eq!(alone.sums.statements[0].ties, Some(true));
    }
    let next = ("8", "60F:C261120EUR14,", "1", "62F:C261120EUR15,");
    refused(&inspected(pages(&[first, next]).as_bytes()), missing);
    let cut = format!("{}:20:X\n:25:1\n:28C:7/2\n:60M:C261119EUR14,\n", pages(&[first]));
    refused(&inspected(cut.as_bytes()), missing);
    // One that begins with a later page may be all that was sent.
    let last = ("7/2", "60M:C261119EUR14,", "1", "62F:C261119EUR15,");
    assert_eq!(inspected(pages(&[last]).as_bytes()).state, State::Ok);
}

#[test]
fn a_message_whose_envelope_does_not_end_was_cut() {
    for body in [
        ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR10,\n:61:261119C4,NTRFX\n:62F:C261119EUR14,",
        ":20:X\n:25:1\n:34F:EUR0,\n:13D:2611191200+0100\n:61:261119C4,NTRFX\n:86:x",
    ] {
        let begun = format!("{{1:F01X}}{{2:I940XN}}{{4:\n{body}");
        for end in ["\n-}", "\n-}{5:{CHK:0}}\n", "-}", "\n-\n", "\n-\n}\n"] {
            let found = inspected(format!("{begun}{end}").as_bytes());
            assert_eq!(found.state, State::Ok, "{end:?}: {:?}", found.sums.problems);
        }
        for end in ["", "\n"] {
            let found = inspected(format!("{begun}{end}").as_bytes());
            refused(&found, "{4:: expected the end (`-}`) of the message that begins on line 1");
        }
    }
}

#[test]
fn a_file_that_ends_within_the_blocks_of_a_message_was_cut() {
    let message = "{1:F01X}{2:I940XN}{4:\n:20:X\n:25:1\n:28C:1\n:60F:C261119EUR10,\n\
                   :61:261119C4,NTRFX\n:62F:C261119EUR14,\n-}";
    let ack = "{1:F21X}{4:{177:2611191200}{451:0}}";
    for end in ["", "{5:{CHK:0}}", ack, "{5:{CHK:0}}\n", "\n}\n", "{5:{CHK:0}\n"] {
        for begin in ["", ack] {
            let found = inspected(format!("{begin}{message}{end}").as_bytes());
            assert_eq!(found.state, State::Ok, "{end:?}: {:?}", found.sums.problems);
            assert_eq!((found.sums.entries, found.sums.statements_total), (1, 1), "{end:?}");
        }
    }
    for (end, part) in [
        ("\n{1:F01X", "{1:: expected the message (`{4:`) of the blocks that begin on line 9"),
        ("\n {1:F01X}{2:I940XN}{3:{108:1}}\n", "{1:"),
        ("{5:{CHK:0}}{1:F01X}{2:", "{1:"),
        ("{5:{MAC:0", "{5:: expected a brace that ends each block"),
    ] {
        refused(&inspected(format!("{message}{end}").as_bytes()), part);
    }
}

#[test]
fn an_interim_report_that_was_cut_is_not_whole() {
    let head = ":20:X\n:25:1\n:28C:1\n:34F:EUR0,\n:13D:2611191200+0100\n";
    let moved = format!("{head}:61:2611191119C14,99NTRFX\n:86:x");
    for end in ["\n-", "\n", "\n:90C:1EUR14,99", "\n-\n", "\n-\n\u{1a}"] {
        let found = inspected(format!("{moved}{end}").as_bytes());
        assert_eq!(found.state, State::Ok, "{end:?}");
        let fields = found.sums.problems.iter().map(|problem| problem.field.as_str());
        assert!(!fields.collect::<Vec<_>>().contains(&"-"), "{end:?}");
    }
    let found = inspected(moved.as_bytes());
    assert_eq!(found.state, State::Ok);
    assert_eq!(found.sums.problems.first().unwrap().field, "-", "neither an end nor sums");
    for (cut, part) in [
        (":61:2611191119C14,99NTRFX\n:6", ":6: expected a field of the message"),
        (":61:2611191119C14,9", ":61:: expected type and reference"),
        (":61:2611191119C14,99NT", ":61:: expected type and reference"),
        (":61:2611191119C5", ":61:: expected type and reference"),
        (":61:26111911", ":61:: expected type and reference"),
        (":61:2611191119C1,NTRF:61:2611191119C2,NTRFX\n-\n", "on a line of its own"),
        (":61:2611191119C1,NTRFX\n-\n:2", ":2: expected a field of the message"),
    ] {
        refused(&inspected(format!("{head}{cut}").as_bytes()), part);
    }
    refused(&inspected(b":20:X\n:25:1\n:28C:1\n:34F:EUR0,"), ":13D:");
}

#[test]
fn what_a_message_lacks_is_said() {
    let said = |text: &str| {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{text}: {:?}", found.sums.problems);
        found.sums.problems.iter().map(|problem| problem.field.clone()).collect::<Vec<_>>()
    };
    let interim = ":20:X\n:25:1\n:34F:EUR0,\n:61:261119C4,NTRFX\n-\n";
    assert_eq!(said(interim), [":28C:, :13D:"]);
    let statement = ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR10,\n:62F:C261119EUR10,\n-\n";
    assert!(said(statement).is_empty());
    assert_eq!(said(&statement.replace(":25:1\n", "")), [":25:"]);
    let joined = statement.replace(":25:1\n", ":25:1");
    refused(&inspected(joined.as_bytes()), ":25:: expected an account");
}

#[test]
fn a_confirmation_between_statements_is_named_and_passed_over() {
    let message = "{1:F01X}{2:I940XN}{4:\n:20:X\n:25:1\n:28C:1\n:60F:C261119EUR10,\n\
                   :61:261119C4,NTRFX\n:62F:C261119EUR14,\n-}\n";
    let other = "{1:F01X}{2:O9101200X}{4:\n:20:Y\n:21:Z\n:25:1\n:13D:2611191200+0100\n\
                 :32A:261119EUR5,00\n-}\n";
    for text in [format!("{message}{other}"), format!("{other}{message}")] {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
        assert_eq!((found.sums.entries, found.sums.statements_total), (1, 1));
        let said = found.sums.problems.iter().map(|problem| problem.found.as_str());
        assert_eq!(said.collect::<Vec<_>>(), ["MT910, a confirmation of credit"]);
    }
    let without = other.replace("O910", "O940").replace(":13D:2611191200+0100\n", "");
    refused(&inspected(format!("{message}{without}").as_bytes()), ":60F:");
}

#[test]
fn the_same_statement_twice_in_a_file_does_not_count_twice() {
    let row = ("7", "60F:C261119EUR10,", "4", "62F:C261119EUR14,");
    let twice = inspected(pages(&[row, row]).as_bytes());
    refused(&twice, "statement: expected each statement once");
    let next = ("8", "60F:C261120EUR14,", "4", "62F:C261120EUR18,");
    assert_eq!(inspected(pages(&[row, next]).as_bytes()).state, State::Ok);
    let one = camt(("0", "5"), &entry("5", "CRDT", ""));
    let twice = |second: &str| inspected(format!("{one}{second}").as_bytes());
    refused(&twice(&one), "statement: expected each statement once");
    let second = camt(("5", "10"), &entry("5", "CRDT", ""));
    let found = twice(&second);
    assert_eq!(found.state, State::Ok, "another page: {:?}", found.sums.problems);
    let again = &one[one.find("<Stmt>").unwrap()..one.find("</Stmt>").unwrap()];
    let within = one.replace("</Stmt>", &format!("</Stmt>{again}</Stmt>"));
    refused(&inspected(within.as_bytes()), "statement: expected each statement once");
    // A day without movements, and a report of the running day that is told again.
    let none = camt(("5", "5"), "");
    assert_eq!(inspected(format!("{none}{none}").as_bytes()).state, State::Ok);
    let report = one.replace("BkToCstmrStmt", "BkToCstmrAcctRpt").replace("Stmt>", "Rpt>");
    assert_eq!(inspected(format!("{report}{report}").as_bytes()).state, State::Ok);
}

#[test]
fn what_a_block_says_that_it_comes_to_is_what_it_lists_or_what_was_booked() {
    let detail = |amount: &str| format!("<TxDtls><Amt Ccy=\"EUR\">{amount}</Amt></TxDtls>");
    let block = |total: &str, payments: &str, details: &str| {
        format!(
            "<NtryDtls><Btch><NbOfTxs>{payments}</NbOfTxs><TtlAmt Ccy=\"EUR\">{total}</TtlAmt>\
             </Btch>{details}</NtryDtls>"
        )
    };
    let (both, whole) = ([detail("2"), detail("3")].concat(), detail("5"));
    let look = |more: &str| camt_found(("0", "5"), &entry("5", "CRDT", more));
    for (total, payments, details, problems) in [
        ("5", "2", both.as_str(), 0),
        ("5.00", "1", whole.as_str(), 0),
        ("5", "2", "", 0),
        // Of 94 payments two are listed, or there are more than it says.
        ("5", "94", both.as_str(), 1),
        ("5", "1", both.as_str(), 1),
    ] {
        let found = look(&block(total, payments, details));
        assert_eq!(found.state, State::Ok, "{total} {payments}: {:?}", found.sums.problems);
        let told = found.sums.problems_total;
        assert_eq!(told, problems, "{total} {payments}: {:?}", found.sums.problems);
    }
    let wrong = "Btch/TtlAmt: expected what the entry or the sum of its TxDtls is, 5.00 EUR, found";
    refused(&look(&block("6", "2", &both)), &format!("{wrong} 6.00 EUR, and its TxDtls come to"));
    refused(&look(&block("6", "2", "")), &format!("{wrong} 6.00 EUR"));
    let two = |second: &str| [block("2", "1", &detail("2")), block(second, "2", "")].concat();
    assert_eq!(look(&two("3")).state, State::Ok);
    refused(&look(&two("4")), wrong);
    // Charges may stand between them, and another currency says nothing.
    let charges = "<Chrgs><Rcrd><Amt Ccy=\"EUR\">1</Amt></Rcrd></Chrgs>";
    let charged = look(&format!("{charges}{}", block("6", "2", "")));
    assert_eq!((charged.state, charged.sums.problems_total), (State::Ok, 1));
    let foreign = block("6", "2", &both).replace("<TtlAmt Ccy=\"EUR\">", "<TtlAmt Ccy=\"USD\">");
    assert_eq!(look(&foreign).state, State::Ok);
}

#[test]
fn a_closing_balance_in_another_currency_alone_ties_nothing() {
    let text = camt(("0", "5"), &entry("5", "CRDT", ""));
    let (before, after) = text.split_at(text.find("CLBD").unwrap());
    let other = format!("{before}{}", after.replacen("EUR", "USD", 1));
    refused(&inspected(other.as_bytes()), "closing (CLBD) balance: expected one in EUR, found USD");
    // An account may be told in several.
    let bal = &text[text.find("<Bal>").unwrap()..text.rfind("</Bal>").unwrap()];
    let beside = format!("{}</Bal></Stmt>", bal.replace("EUR", "USD"));
    let several = inspected(text.replace("</Stmt>", &beside).as_bytes());
    assert_eq!(several.state, State::Ok, "{:?}", several.sums.problems);
}

#[test]
fn the_reference_of_the_bank_may_begin_the_row_behind() {
    let text = ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR10,\n:61:261119C4,NTRFX\n//OF-THE-BANK\n\
                :62F:C261119EUR14,\n-\n";
    let found = inspected(text.as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    assert_eq!(found.sums.references.get(&TagKind::BankReference), Some(&1));
}

#[test]
fn balances_of_a_whole_statement_may_lack_their_letter() {
    let text = ":20:X\n:25:1\n:28:1\n:60:C261119EUR10,\n:61:261119C4,NTRFX\n:62:C261119EUR14,\n-\n";
    let found = inspected(text.as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    assert_eq!((found.sums.statements_total, found.sums.entries), (1, 1));
    refused(&inspected(text.replace("EUR14", "EUR13").as_bytes()), "closing balance");
}

/// What a file lacks quarantines it; what it has is added up all the same.
#[test]
fn entries_without_an_opening_balance_are_added_up() {
    let euro = Currency::parse("EUR").unwrap();
    for (text, part) in [
        (":20:X\n:25:1\n:28C:1\n:61:261119C4,NTRFX\n:62F:C261119EUR14,\n", ":60F:"),
        (":20:X\n:25:1\n:60F:C261119EUR1O,\n:61:261119C4,NTRFX\n:62F:C261119EUR14,\n", ":60F:"),
        (":20:X\n:25:10020030/12EUR\n:28C:1\n:61:261119C4,NTRFX\n", ":62F:"),
        (":20:X\n:25:NL12BANK0123 EUR\n:28C:1\n:61:261119C4,NTRFX\n", ":62F:"),
    ] {
        let found = inspected(text.as_bytes());
        refused(&found, part);
        assert_eq!(found.sums.entries, 1, "{text}");
        assert_eq!(found.sums.totals[&euro].credit_minor, 400, "{text}");
    }
    let two = ":20:X\n:25:1\n:61:261119C4,NTRFX\n:62F:C261119EUR1,\n:20:Y\n:25:1\n\
               :60F:C261119USD1,\n:62F:C261119USD1,\n";
    refused(&inspected(two.as_bytes()), ":61: currency");
}

#[test]
fn two_at_signs_stand_for_a_line_end() {
    let text = "@@:20:STARTUMS@@:25:1@@:28C:0@@:60F:C261119EUR10,@@:61:261119C4,NTRFNONREF@@\
                :86:166?20EREF+A-@@1?21SVWZ+x@@:62F:C261119EUR14,@@-@@";
    let found = inspected(text.as_bytes());
    assert_eq!((found.state, found.sums.entries), (State::Ok, 1), "{:?}", found.sums.problems);
    assert_eq!(found.sums.references.get(&TagKind::EndToEndId), Some(&1));
}

#[test]
fn counts_of_an_interim_report_may_be_left_out_or_hold_what_is_not_listed() {
    let report = |floor: &str, credits: &str| {
        let text = format!(
            ":20:X\n:25:1\n:28C:0\n:34F:{floor}\n:13:2611191200\n:61:261119C,02NTRFX\n\
             :90D:EUR,00\n:90C:{credits}\n"
        );
        inspected(text.as_bytes())
    };
    for (floor, credits, problems) in
        [("EUR0,", "1EUR,02", 0), ("EUR 99,99", "1EUR 0,02", 0), ("EUR0,02", "3EUR0,04", 2)]
    {
        let found = report(floor, credits);
        assert_eq!(found.state, State::Ok, "{credits}: {:?}", found.sums.problems);
        assert_eq!(found.sums.problems_total, problems, "{credits}");
    }
    refused(&report("EUR0,", "3EUR0,04"), ":90C: sum");
    refused(&report("EUR0,02", "0EUR0,00"), ":90C: sum");
}

/// SWIFT's subfield 9, the row behind `:61:`: the bank's own words, which may go on in `:86:`.
#[test]
fn the_row_behind_a_movement_is_text() {
    for (rows, text, reference) in [
        ("\nBALANCE_CASHBACK-510151a4\n", "BALANCE_CASHBACK-510151a4", None),
        ("\nREFUNDED CHARGES\n:86:4547\n", "REFUNDED CHARGES 4547", None),
        (
            "\nF/FLOW ACCOUNTNAME    TFRPAYMENTRE\n:86:FERENCE12\n",
            "F/FLOW ACCOUNTNAME    TFRPAYMENTREFERENCE12",
            None,
        ),
        ("\n/OCMT/EUR4,/EREF/A-1/\n", "", Some("A-1")),
        ("\nNL96RBOS0523149468\n:86:/EREF/A-1/REMI/y\n", "NL96RBOS0523149468", Some("A-1")),
        ("\nINVOICE 7\n:86:166?00X?20EREF+A-1?21SVWZ+y\n", "INVOICE 7", Some("A-1")),
        ("\n//BANKS\n:86:y\n", "y", None),
        ("\n:86:y\n", "y", None),
    ] {
        let file = format!(
            ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR0,\n:61:261119C1,NTRFNONREF{rows}\
             :62F:C261119EUR1,\n"
        );
        let lines = items(file.as_bytes()).into_iter().filter_map(|item| match item {
            Item::Line(line) => Some(line),
            _other => None,
        });
        let lines: Vec<_> = lines.collect();
        let of = |kind: TagKind| -> Vec<&str> {
            let own = lines[0].tags.iter().filter(|tag| tag.kind == kind);
            own.map(|tag| tag.text.as_str()).collect()
        };
        assert_eq!(of(TagKind::EndToEndId), reference.into_iter().collect::<Vec<_>>(), "{rows}");
        let texts = of(TagKind::Text);
        assert!(text.is_empty() && texts.is_empty() || texts.contains(&text), "{rows}: {texts:?}");
    }
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
        // Codewords that are not known begin a row, but not behind one that is full.
        ("/EREF/A/B-1\n/DBNM/BANK\n/XYZ9/C\n/REMI/y", Some("A/B-1")),
        ("/EREF/A-1\n/ZZZZ/BANK", Some("A-1")),
        ("/EREF/NOTPROVIDED\n/DACT/83/DBIC/X", None),
        ("/EREF/A-1/OAMT/116-33/FCCY/GBP", Some("A-1")),
        (
            "/TRTP/SEPA INCASSO ALGEMEEN DOORLOPEND/CSID/NL11ZZZ2222/EREF/A-1/X\n/YZ/2",
            Some("A-1/X/YZ/2"),
        ),
        ("/EREF/A-1/SOME/23456789012345678901234567890/NAMED/B", Some("A-1")),
        ("free text EREF+A-1 KREF+7", Some("A-1")),
        ("EREF/A-1/PREF/B/7", Some("A-1")),
        ("166?20EREF+NOTPROVIDED?21SVWZ+x", None),
        ("no reference here", None),
        // Subfields are full, and keys behind one another.
        ("166?20EREF+A-?211?22KREF+B?23SVWZ+x EREF+C", Some("A-1")),
        ("166?20MREF+7 EREF+A-1 KREF+B?21SVWZ+x", Some("A-1")),
        ("166?20EREF+A-1?21SVWZ+x EREF: B IBAN: D", Some("A-1")),
        ("166?20text?21EREF+A-1", Some("A-1")),
        ("EREF+A-1 MREF+7 SVWZ+see EREF+B", Some("A-1")),
        ("/TRTP/X/EREF/A-1/REMI/pay /EREF/B/x", Some("A-1")),
        // What payers wrote.
        ("166?20SVWZ+Zahlung zu EREF+INV-OTHER", None),
        ("166?20Zahlung zu EREF+INV-OTHER", None),
        ("Zahlung zu EREF+INV-OTHER danke", None),
        ("SVWZ+Zahlung zu EREF+INV-OTHER KREF+B", None),
        ("Zahlung zu /EREF/INV-OTHER/ danke", None),
        ("/TRTP/X/REMI/pay /EREF/INV-OTHER/x", None),
    ] {
        let file = format!(
            ":20:X\n:25:1\n:28C:1\n:60F:C261119EUR0,\n:61:261119C1,NTRFNONREF\n:86:{text}\n\
             :62F:C261119EUR1,\n"
        );
        let tags = items(file.as_bytes()).into_iter().filter_map(|item| match item {
            Item::Line(line) => Some(line.tags),
            _other => None,
        });
        let of_payer = tags.flatten().filter(|tag| tag.kind == TagKind::EndToEndId);
        let found: Vec<String> = of_payer.map(|tag| tag.text).collect();
        assert_eq!(found, want.into_iter().collect::<Vec<_>>(), "{text}");
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
    for text in ["one\n-two\n-\n:three:\n{four\n-five", "166?20X 2026-11-19T16\n:20:37 Folge"] {
        let found = statement(&format!(":61:261119C4,NTRFX\n:86:{text}"), "C261119EUR14,");
        assert_eq!((found.state, found.sums.entries), (State::Ok, 1), "{:?}", found.sums.problems);
    }
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

/// An account of BAI2 whose 03 says sums (code, amount, items), and its details.
fn bai2_with(summary: &[(&str, i64, &str)], rows: &[(&str, i64)]) -> Inspection {
    let said = |(code, minor, items): &(&str, i64, &str)| format!(",{code},{minor},{items},");
    let declared: String = summary.iter().map(said).collect();
    let details: String =
        rows.iter().map(|(code, minor)| format!("16,{code},{minor},Z,,,x/\n")).collect();
    let said: i64 = summary.iter().map(|(_, minor, _)| minor).sum();
    let total = said + rows.iter().map(|(_, minor)| minor).sum::<i64>();
    let count = rows.len();
    let text = format!(
        "01,A,B,261119,0200,1,,,2/\n02,A,B,1,261118,2400,USD,2/\n03,1,{declared}/\n{details}\
         49,{total},{}/\n98,{total},1,{}/\n99,{total},1,{}/\n",
        count + 2,
        count + 4,
        count + 6
    );
    inspected(text.as_bytes())
}

#[test]
fn details_of_bai2_come_to_no_more_than_the_account_s_own_sums() {
    let sums = [("100", 700, "2"), ("400", 100, "1")];
    let whole = [("195", 400), ("165", 300), ("475", 100)];
    for (rows, problems) in [
        (&whole[..], 0),
        // A part of the day, nothing of it, and one for several.
        (&whole[..1], 2),
        (&whole[..0], 0),
        (&[("174", 700), ("475", 100)][..], 0),
        (&[("195", 400), ("165", 200), ("165", 100), ("475", 100)][..], 1),
    ] {
        let found = bai2_with(&sums, rows);
        assert_eq!(found.state, State::Ok, "{rows:?}: {:?}", found.sums.problems);
        assert_eq!(found.sums.problems_total, problems, "{rows:?}: {:?}", found.sums.problems);
    }
    let apart = [("100", 700, ""), ("105", 300, "")];
    assert_eq!(bai2_with(&apart, &whole[..1]).sums.problems_total, 0, "300 are not listed");
    let turned = bai2_with(&sums, &[("195", 400), ("165", 300), ("375", 100)]);
    refused(&turned, "03 total credits (100): expected 7.00 USD, found 8.00 USD");
    let turned = bai2_with(&sums, &[("195", 400), ("465", 300), ("475", 100)]);
    refused(&turned, "03 total debits (400): expected 1.00 USD, found 4.00 USD");
    let status = bai2_with(&sums, &[("195", 400), ("165", 300), ("075", 100)]);
    refused(&status, "16 type code: expected the code of a credit or a debit, found 075");
}

/// A bank's own codes went as both sums show; where these leave them out, nothing does.
#[test]
fn the_sums_of_bai2_show_the_sides_of_a_bank_s_own_codes() {
    let sums = [("100", 700, "2"), ("400", 200, "2")];
    let dollar = Currency::parse("USD").unwrap();
    for rows in [
        [("195", 400), ("920", 300), ("475", 100), ("960", 100)],
        // A debit by the specification, and a credit by all that is said.
        [("195", 600), ("475", 100), ("475", 100), ("960", 100)],
    ] {
        let found = bai2_with(&sums, &rows);
        assert_eq!(found.state, State::Ok, "{rows:?}: {:?}", found.sums.problems);
        assert_eq!(found.sums.problems_total, 0, "{rows:?}: {:?}", found.sums.problems);
        let totals = found.sums.totals[&dollar];
        assert_eq!((totals.credit_minor, totals.debit_minor), (700, 200), "{rows:?}");
    }
    // Details beside sums that leave them out, and beside a part of the day.
    let beside = [("195", 400), ("165", 300), ("475", 200), ("959", 50), ("999", 20)];
    let part = [("195", 400), ("475", 200), ("970", 20)];
    for rows in [&beside[..], &part[..]] {
        refused(&bai2_with(&sums, rows), "codes of the bank's own");
    }
    for (rows, said) in [
        // A debit as a credit: less than the total, but for the bank's own codes.
        (
            [("195", 400), ("920", 300), ("175", 20), ("960", 180)],
            "credits (100): expected 7.00 USD, found 7.20 USD",
        ),
        (
            [("195", 400), ("920", 300), ("920", 100), ("960", 100)],
            "credits (100): expected 7.00 USD, found 8.00 USD",
        ),
    ] {
        refused(&bai2_with(&sums, &rows), said);
    }
}

/// A minus before a debit took it back, or is how the bank writes its debits.
#[test]
fn a_minus_before_a_detail_of_bai2_is_to_be_proven() {
    let said = "16 amount: expected no sign, or balances or sums that show";
    let (out, back) = ([("195", 400), ("475", -100)], [("195", 400), ("475", 400), ("475", -100)]);
    for (sums, rows, is_shown) in [
        (vec![("010", 5_000, ""), ("015", 5_500, "")], &out[..], true),
        (vec![("010", 5_000, ""), ("015", 5_300, "")], &out[..], false),
        (vec![("100", 400, ""), ("400", 300, "")], &back[..], true),
        (vec![("100", 400, ""), ("400", 100, "")], &out[..], false),
        (vec![("100", 400, ""), ("400", -200, "")], &out[..], false),
        (vec![], &back[..], false),
    ] {
        let found = bai2_with(&sums, rows);
        if is_shown {
            assert_eq!(found.state, State::Ok, "{sums:?}: {:?}", found.sums.problems);
            assert_eq!(found.sums.problems_total, 1, "{sums:?}: {:?}", found.sums.problems);
        } else {
            refused(&found, said);
        }
    }
    let signed = bai2_with(&[("100", 400, ""), ("400", -100, "")], &out);
    assert_eq!((signed.state, signed.sums.problems_total), (State::Ok, 0), "and so is their sum");
    let totals = signed.sums.totals[&Currency::parse("USD").unwrap()];
    assert_eq!((totals.credit_minor, totals.debit_minor), (400, 100));
    // Balances say which of the two it is, and what they do not hold with is not believed.
    let with = |closing: i64| {
        let balances = [("010", 5_000, ""), ("015", closing, "")];
        bai2_with(&[&balances[..], &[("100", 400, ""), ("400", -100, "")]].concat(), &out)
    };
    for (closing, moved) in [(5_300, (400, 100)), (5_500, (500, 0))] {
        let found = with(closing);
        assert_eq!(found.state, State::Ok, "{closing}: {:?}", found.sums.problems);
        assert_eq!(found.sums.statements[0].ties, Some(true), "{closing}");
        let totals = found.sums.totals[&Currency::parse("USD").unwrap()];
        assert_eq!((totals.credit_minor, totals.debit_minor), moved, "{closing}");
    }
    refused(&with(5_400), said);
}

/// Only the balances show that a code was turned, where a bank writes no sums of its own.
#[test]
fn a_turned_code_of_bai2_is_seen_by_its_balances() {
    let of = |closing: i64, sums: &[(&str, i64)], rows: &[(&str, i64)]| {
        let details: String =
            rows.iter().map(|(code, minor)| format!("16,{code},{minor},Z,,,x/\n")).collect();
        let declared: String =
            sums.iter().map(|(code, minor)| format!(",{code},{minor},,")).collect();
        let amounts = sums.iter().chain(rows).map(|(_, minor)| minor);
        let total = 5_000 + closing + amounts.sum::<i64>();
        let count = rows.len();
        let text = format!(
            "01,A,B,261119,0200,1,,,2/\n02,A,B,1,261118,2400,USD,2/\n\
             03,1,,010,5000,,,015,{closing},,{declared}/\n{details}\
             49,{total},{}/\n98,{total},1,{}/\n99,{total},1,{}/\n",
            count + 2,
            count + 4,
            count + 6
        );
        inspected(text.as_bytes())
    };
    let look = |closing, rows: &[(&str, i64)]| of(closing, &[], rows);
    // What the balances differ by was not listed, as the account's own sums say.
    let sums = [("100", 2_997), ("400", 999)];
    let part = of(6_998, &sums, &[("195", 999), ("475", 999)]);
    assert_eq!(part.state, State::Ok, "{:?}", part.sums.problems);
    assert_eq!(part.sums.statements[0].ties, Some(false), "a part of the day's movements");
    let none = look(5_650, &[]);
    assert_eq!(none.state, State::Ok, "no movements at all: {:?}", none.sums.problems);
    let whole = [("195", 400), ("165", 300), ("475", 100)];
    let found = look(5_600, &whole);
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    assert_eq!(found.sums.statements[0].ties, Some(true));
    // Balances may be of more than what is listed, as the account's own sums of a kind (190) or of
    // all may say; where those say so, too, and by something else, or where there are none, nobody
    // knows what moved.
    for sums in [vec![("100", 700), ("400", 100)], vec![("190", 750)]] {
        let found = of(5_650, &sums, &whole);
        assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
        assert_eq!(found.sums.statements[0].ties, Some(false), "a part of the day's movements");
    }
    let wrong = "03 closing ledger (015): expected 56.50 USD, found 56.00 USD";
    refused(&of(5_650, &[("100", 760), ("400", 100)], &whole), wrong);
    refused(&look(5_650, &whole), wrong);
    refused(&look(5_300, &[("195", 400), ("195", 400), ("475", 100)]), "015): expected 53.00 USD");
    let wrong = "03 closing ledger (015): expected 56.00 USD, found";
    let turned = look(5_600, &[("195", 400), ("165", 300), ("375", 100)]);
    refused(&turned, &format!("{wrong} 58.00 USD"));
    let turned = look(5_600, &[("495", 400), ("165", 300), ("475", 100)]);
    refused(&turned, &format!("{wrong} 48.00 USD"));
    // A bank's own code went as the balances show.
    let own = look(5_600, &[("965", 400), ("165", 300), ("475", 100)]);
    assert_eq!(own.state, State::Ok, "{:?}", own.sums.problems);
    assert_eq!(own.sums.totals[&Currency::parse("USD").unwrap()].credit_minor, 700);
}

/// One digit more makes a loan or nothing of a credit: what no side has moves nothing unproven.
#[test]
fn a_code_of_bai2_that_has_no_side_is_to_be_proven() {
    let said = "16 type code: expected the code of a credit or a debit";
    let balances = |closing: i64| [("010", 5_000, ""), ("015", closing, "")];
    let sums = [("100", 400, ""), ("400", 100, "")];
    for code in ["795", "895", "890", "910", "735", "100", "400"] {
        let rows = [("195", 400), ("475", 100), (code, 70)];
        refused(&bai2_with(&[], &rows), said);
        refused(&bai2_with(&balances(5_400), &rows), said);
        let with = bai2_with(&[("100", 470, ""), ("400", 100, "")], &rows);
        // A bank's own status is the credit that both sums show it to be.
        match code {
            "910" => assert_eq!(with.state, State::Ok, "{:?}", with.sums.problems),
            _code => refused(&with, said),
        }
    }
    // Nothing moved by it, as the balances or both sums say.
    for code in ["895", "890", "910"] {
        let rows = [("195", 400), ("475", 100), (code, 70)];
        for shown in [&balances(5_300)[..], &sums[..]] {
            let found = bai2_with(shown, &rows);
            assert_eq!(found.state, State::Ok, "{code}: {:?}", found.sums.problems);
        }
    }
    let moved = [("195", 400), ("475", 100), ("735", 70)];
    assert_eq!(bai2_with(&balances(5_370), &moved).state, State::Ok, "balances hold with it");
    refused(&bai2_with(&sums, &moved), said);
    // The specification's own, and one without an amount.
    for row in [("720", 70), ("760", 70), ("890", 0), ("910", 0)] {
        let found = bai2_with(&[], &[row]);
        assert_eq!(found.state, State::Ok, "{row:?}: {:?}", found.sums.problems);
    }
}

#[test]
fn a_day_of_bai2_stands_once_in_a_file() {
    let account = |number: &str, closing: i64, amount: i64, text: &str| {
        let total = 5_000 + closing + amount;
        let records = format!(
            "03,{number},,010,5000,,,015,{closing},,/\n16,195,{amount},Z,B,C,{text}\n\
             49,{total},3/\n"
        );
        (records, total)
    };
    let of = |day: [&str; 2], finality: &str, accounts: [(String, i64); 2]| {
        let group = |day: &str, (records, total): &(String, i64)| {
            format!("02,A,B,1,{day},2400,USD,{finality}/\n{records}98,{total},1,5/\n")
        };
        let total = accounts[0].1 + accounts[1].1;
        let groups = [group(day[0], &accounts[0]), group(day[1], &accounts[1])].concat();
        inspected(format!("01,A,B,261119,0200,1,,,2/\n{groups}99,{total},2,12/\n").as_bytes())
    };
    let (one, said) = (|| account("1", 5_400, 400, "x"), "statement: expected each statement once");
    let days = ["261118", "261118"];
    refused(&of(days, "2", [one(), one()]), said);
    refused(&of(days, "2", [one(), account("1", 5_400, 400, "y")]), said);
    for (days, finality, other) in [
        (days, "2", account("2", 5_400, 400, "x")),
        (days, "2", account("1", 5_300, 300, "x")),
        (["261118", "261119"], "2", one()),
        // A report of the running day may come again.
        (days, "3", one()),
    ] {
        let found = of(days, finality, [one(), other]);
        assert_eq!(found.state, State::Ok, "{days:?} {finality}: {:?}", found.sums.problems);
    }
    let part = "03,1,/\n16,195,400,Z,B,C,x\n49,400,3/\n";
    refused(&of(days, "2", [(part.to_owned(), 400), (part.to_owned(), 400)]), said);
}

#[test]
fn an_account_of_bai2_without_any_amount_may_lack_its_total() {
    let text = |account: &str| {
        let records = account.lines().count();
        format!(
            "01,A,B,261119,0200,1,,,2/\n02,A,B,1,261118,2400,USD,2/\n{account}\n98,0,1,{}/\n\
             99,0,1,{}/",
            records + 2,
            records + 4
        )
    };
    let found = inspected(text("03,1,/\n49,,2/").as_bytes());
    assert_eq!((found.state, found.sums.problems_total), (State::Ok, 0));
    assert_eq!(found.sums.statements[0].ties, Some(true));
    for account in [
        "03,1,/\n16,142,3,Z,,,A/\n49,,3/",
        "03,1,,040,-3,,/\n16,142,3,Z,,,A/\n49,,3/",
        "03,1,/\n49,x,2/",
    ] {
        refused(&inspected(text(account).as_bytes()), "49 account total");
    }
}

#[test]
fn the_row_of_a_mailbox_may_stand_above_bai2() {
    let text = String::from_utf8(fixture("bai2_spec.txt")).unwrap();
    let want = inspected(text.as_bytes()).sums.totals;
    for end in ["\n", "\r\n", "\r"] {
        let below = format!("$$ADD ID=X BATCHID=Y\n{text}").replace('\n', end);
        let found = inspected(below.as_bytes());
        assert_eq!((found.state, &found.sums.totals), (State::Ok, &want), "{end:?}");
    }
    let other = format!("$$END\n{text}");
    assert_eq!(inspected(other.as_bytes()).state, State::UnknownFormat);
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
fn a_list_of_payouts_holds_no_rows_that_they_paid_out() {
    let head = "payout_id,effective_at,balance_transaction_id,currency,gross,fee,net,\
                reporting_category,payout_status";
    let listed = |amounts: &str| {
        let row = format!("po_1,2026-11-05,txn_1,eur,{amounts},payout,paid");
        inspected(format!("{head}\n{row}\n").as_bytes())
    };
    let found = listed("-97.00,0.00,-97.00");
    assert_eq!((found.state, found.version.as_str()), (State::Ok, "payouts.itemized"));
    assert_eq!(found.sums.lines, 1, "{:?}", found.sums.problems);
    refused(&listed("-97.00,1.00,-97.00"), "gross less fee, -98.00 EUR");
}

#[test]
fn a_minus_that_agrees_with_the_type_of_the_row_is_said_once() {
    let row = |kind: &str, amount: &str| {
        let head = "Transaction ID,Transaction Type,Transaction Status,Currency ISO Code,\
                    Amount Submitted For Settlement";
        inspected(format!("{head}\nt1,{kind},settled,EUR,{amount}\n").as_bytes())
    };
    let found = row("credit", "-4.00");
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    let euro = Currency::parse("EUR").unwrap();
    assert_eq!(found.sums.totals[&euro].debit_minor, 400);
    refused(&row("sale", "-4.00"), "found -4.00");
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

/// A field too many moves the status under another name.
#[test]
fn a_row_of_paypals_has_the_fields_and_the_status_of_its_kind() {
    let whole = String::from_utf8(fixture("psp/paypal_trr.csv")).unwrap();
    let of = |from: &str, to: &str| {
        assert_eq!(whole.matches(from).count(), 1, "{from}");
        inspected(whole.replace(from, to).as_bytes())
    };
    let row = "\"USD\",\"S\",\"custom-1\"";
    refused(&of(row, "\"USD\",\"\",\"S\",\"custom-1\""), "20 fields");
    refused(&of(row, "\"USD\",\"custom-1\""), "20 fields");
    for status in ["X", "", "Denied", "Pending"] {
        let text = format!("\"USD\",\"{status}\",\"custom-1\"");
        refused(&of(row, &text), "S, P, D, V or F");
    }
    for status in ["V", "F", "P", "D"] {
        let text = format!("\"USD\",\"{status}\",\"custom-1\"");
        assert_eq!(of(row, &text).state, State::Ok, "{status}");
    }
}

/// What FH numbers are files of one report, and no issues of each other.
#[test]
fn files_of_one_report_of_paypals_are_its_pages() {
    let whole = String::from_utf8(fixture("psp/paypal_stl.csv")).unwrap();
    let page = |text: &str| {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok);
        found.sums.statements[0].head.page.clone()
    };
    assert_eq!(page(&whole), None);
    assert_eq!(page(&whole.replace("\"FH\",1\n", "\"FH\",2\n")), Some("2".to_owned()));
}

/// Batches are numbered anew in each file, and returns repeat the day of what they return.
#[test]
fn batches_of_nacha_are_of_the_file_that_they_stand_in() {
    let text = String::from_utf8(fixture("nacha.ach")).unwrap();
    let of = |text: &str| inspected(text.as_bytes()).sums.statements[0].head.sequence.clone();
    let own = of(&text).unwrap();
    let (day, which) = own.split_once(' ').unwrap();
    let header = text.lines().next().unwrap();
    assert_eq!((&header[23..29], &header[33..34]), (day, which));
    let other = format!("{}Z{}", &header[..33], &header[34..]);
    assert_eq!(of(&text.replacen(header, &other, 1)), Some(format!("{day} Z")));
}

/// Days that could not be read were dropped without a word, and whatever goes by days went blind.
#[test]
fn a_day_that_cannot_be_read_is_told_in_every_format() {
    let told = |text: &str| {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
        let told = found.sums.problems.iter().map(|one| (one.field.clone(), one.found.clone()));
        told.collect::<Vec<_>>()
    };
    let days = "<Sts>BOOK</Sts><BookgDt><Dt>2026-11-19</Dt></BookgDt>\
                <ValDt><DtTm>2026-11-20T08:00:00</DtTm></ValDt>";
    let period = "<FrToDt><FrDtTm>2026-11-18T00:00:00</FrDtTm></FrToDt><Acct>";
    let camt = camt(("0", "5"), &entry("5", "CRDT", days)).replace("<Acct>", period);
    let read = |name: &str| String::from_utf8(fixture(name)).unwrap();
    let (nacha, adyen) = (read("nacha.ach"), read("psp/adyen_settlement.csv"));
    let batch = nacha.lines().find(|line| line.starts_with('5')).unwrap();
    let with = |day: &str| nacha.replace(batch, &format!("{}{day}{}", &batch[..69], &batch[75..]));
    let row = adyen.lines().nth(1).unwrap();
    let day = row.split(',').rfind(|text| text.starts_with("2026-")).unwrap();
    let other = |to: &str| adyen.replacen(day, to, 1);
    for (whole, texts) in [
        (
            camt.clone(),
            vec![
                (
                    camt.replace(">2026-11-19</Dt></BookgDt>", ">2026-02-30</Dt></BookgDt>"),
                    "BookgDt/Dt",
                ),
                (camt.replace("2026-11-20T08", "20261120T08"), "ValDt/DtTm"),
                (camt.replace("2026-11-18T", "0000-01-01T"), "FrToDt/FrDtTm"),
                (camt.replacen("2026-11-19", "19.11.2026", 1), "Bal/Dt/Dt"),
            ],
        ),
        (with("      "), vec![(with("xxxxxx"), "5 effective entry date")]),
        (with("000000"), vec![(with("261399"), "5 effective entry date")]),
        (
            adyen.clone(),
            vec![(other("2026-13-20 10:00:00"), "date"), (other("20/11/2026"), "date")],
        ),
    ] {
        let before = told(&whole);
        for (text, field) in texts {
            let mut now = told(&text);
            now.retain(|one| !before.contains(one));
            let fields: Vec<&str> = now.iter().map(|(field, _)| field.as_str()).collect();
            assert_eq!(fields, [field], "{now:?}");
        }
    }
}

#[test]
fn a_heading_behind_the_last_message_is_one_that_was_cut() {
    let message = |number: &str| {
        format!(
            "BANKATWWXXX  0000{number}\n940 01\nNET-INT\n:20:X{number}\n:25:10020030/1234567\n\
             :28C:{number}/1\n:60F:C261211EUR10,00\n:61:2612121212C5,00NTRFNONREF//950\n:86:a\n\
             :62F:C261212EUR15,00\n-\n"
        )
    };
    let one = message("1");
    assert_eq!(inspected(one.as_bytes()).state, State::Ok);
    let (second, all) = (message("2"), format!("{one}{}", message("2").replace("26121", "26131")));
    let heading = second.find(":20:").unwrap();
    for end in 1..heading {
        let found = inspected(format!("{one}{}", &second[..end]).as_bytes());
        assert_eq!(found.state, State::Quarantined, "{}", &second[..end]);
    }
    assert_ne!(all, one);
    // What another system puts below is no heading.
    assert_eq!(inspected(format!("{one}END OF FILE\n").as_bytes()).state, State::Ok);
    let plain = one.split_once(":20:").unwrap().1;
    assert_eq!(inspected(format!(":20:{plain}BANKATWWXXX\n").as_bytes()).state, State::Ok);
}

#[test]
fn a_dash_before_the_account_hides_it_not() {
    let text = ":20:STARTUMSE\n-:25:12030000/1019815776\n:28C:00000/002\n:60F:C261031EUR76,22\n\
                :61:2611021102DR76,22N062NONREF\n:86:166?00LAST\n-:25:x\n:62F:C261102EUR0,00\n-\n";
    let found = inspected(text.as_bytes());
    assert_eq!((found.state, found.sums.statements.len()), (State::Ok, 1));
    let account = found.sums.statements[0].head.account.as_deref();
    assert_eq!(account, Some("12030000/1019815776"), "and a row of a text is none");
    assert!(found.sums.problems.is_empty(), "{:?}", found.sums.problems);
}

/// Some banks write no line end between the fields of a message.
#[test]
fn a_message_on_one_row_ties_as_it_would_on_several() {
    let message = |number: &str, from: &str, to: &str| {
        format!(
            "{{1:F01TESTIDJAXXXX0000000000}}{{2:I940TESTDEFFXXXXN}}{{4::20:X{number}:25:88001234\
             :28C:{number}/1:60F:C261118EUR{from}:61:2611181118D2,00NTRFA-1//B-1:86:PAID \
             14:20:05 REF:25:61 HOURS:61:2611181118C7,00NTRFNONREF:86:IN - OUT:62F:C261118EUR{to}\
             :86:END-}}"
        )
    };
    let one = message("1", "10,00", "15,00");
    let two = format!("{one}{}", message("2", "15,00", "20,00"));
    let below = format!("{one}\r\n{}\r\n", message("2", "15,00", "20,00"));
    for (text, count) in [(&one, 1), (&format!("{one}\n"), 1), (&two, 2), (&below, 2)] {
        let found = inspected(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{text}: {:?}", found.sums.problems);
        assert_eq!(found.format, Some(Format::Mt940));
        assert!(found.sums.problems.is_empty(), "{:?}", found.sums.problems);
        let ties: Vec<_> = found.sums.statements.iter().map(|one| one.ties).collect();
        assert_eq!(ties, vec![Some(true); count], "{text}");
        assert_eq!(found.sums.entries, 2 * u64::try_from(count).unwrap(), "{text}");
        let accounts = found.sums.statements.iter().map(|one| one.head.account.as_deref());
        assert!(accounts.into_iter().all(|account| account == Some("88001234")), "{text}");
    }
    let rows = one.replace(":20:X", "\n:20:X").replace(":25:88", "\n:25:88");
    let rows = rows.replace(":28C:", "\n:28C:").replace(":60F:", "\n:60F:");
    let rows = rows.replace(":61:26", "\n:61:26").replace(":86:", "\n:86:");
    let rows = rows.replace(":62F:", "\n:62F:").replace("-}", "\n-}");
    let (of_one, of_rows) = (lines_of(&one), lines_of(&rows));
    assert_eq!(of_one, of_rows);
    assert_eq!(of_one.len(), 2);
    // No part of it is a whole one, and a balance that does not hold is said.
    let ended = one.find(":62F:C261118EUR15,00").unwrap() + ":62F:C261118EUR1".len();
    for end in 1..=ended {
        let found = inspected(&one.as_bytes()[..end]);
        assert_ne!(found.state, State::Ok, "{}", &one[..end]);
    }
    refused(&inspected(message("1", "10,00", "16,00").as_bytes()), "15.00");
}

fn lines_of(text: &str) -> Vec<String> {
    let all = items(text.as_bytes()).into_iter();
    let lines = all.filter_map(|item| if let Item::Line(line) = item { Some(line) } else { None });
    lines.map(|line| format!("{:?} {:?}", line.minor, line.tags)).collect()
}

#[test]
fn a_report_on_one_row_ties_by_its_sums() {
    let report = |credits: &str| {
        format!(
            ":20:X:25:88001234:28C:1/1:34F:EUR0,:13D:2611191200+0100:61:2611191119C5,00NTRFA-1\
             :86:AT 11:34:10:61:2611191119D2,00NTRFNONREF:86:B:90D:1EUR2,00:90C:1EUR{credits}-}}"
        )
    };
    let found = inspected(report("5,00").as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    assert_eq!(found.format, Some(Format::Mt942));
    assert_eq!((found.sums.entries, found.sums.statements[0].ties), (2, Some(true)));
    assert_eq!(inspected(report("6,00").as_bytes()).state, State::Quarantined);
}

/// What stands between the fields may be none of the ends that lines have.
#[test]
fn a_message_whose_fields_begin_no_rows_is_named() {
    let text = "{1:F01TESTTWTPXXXX0000000000}{2:I940TESTTWTPXXXXN}{4:##:20:X##:25:88001234\
                ##:28C:1/1##:60F:C261118TWD10,##:62F:C261118TWD10,##-}";
    for (kind, found) in [("940", "whose fields do not begin rows"), ("103", "none of MT940")] {
        let named = inspected(text.replace("I940", &format!("I{kind}")).as_bytes());
        assert_eq!(named.state, State::UnknownFormat, "{kind}");
        let errors = errors(&named);
        assert!(errors.iter().any(|error| error.contains(found)), "{kind}: {errors:?}");
    }
}
