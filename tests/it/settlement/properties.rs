//! What is written reads back: any statement, in any of the formats, to the same sums.

use proptest::prelude::*;
use tieout::model::money::{Currency, decimal_text};
use tieout::settlement::ledger::{Inspection, State};

use super::inspected;

/// Entries: whether it is a credit, and minor units.
fn entries() -> impl Strategy<Value = Vec<(bool, i64)>> {
    prop::collection::vec((any::<bool>(), 0..100_000_000_i64), 0..40)
}

fn net(entries: &[(bool, i64)]) -> i64 {
    entries.iter().map(|(credit, minor)| if *credit { *minor } else { -minor }).sum()
}

fn of(entries: &[(bool, i64)], credit: bool) -> i128 {
    entries.iter().filter(|(c, _)| *c == credit).map(|(_, minor)| i128::from(*minor)).sum()
}

fn holds(found: &Inspection, code: &str, entries: &[(bool, i64)]) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
    prop_assert_eq!(found.sums.entries, entries.len() as u64);
    let currency = Currency::parse(code).unwrap();
    let totals = found.sums.totals.get(&currency).copied().unwrap_or_default();
    prop_assert_eq!(totals.credit_minor, of(entries, true));
    prop_assert_eq!(totals.debit_minor, of(entries, false));
    Ok(())
}

fn camt(opening: i64, entries: &[(bool, i64)], code: &str, off: i64) -> String {
    let exponent = Currency::parse(code).unwrap().exponent();
    let amount = |minor: i64| decimal_text(i128::from(minor.abs()), exponent);
    let sign = |minor: i64| if minor < 0 { "DBIT" } else { "CRDT" };
    let balance = |kind: &str, minor: i64| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy=\"{code}\">{}</Amt>\
             <CdtDbtInd>{}</CdtDbtInd></Bal>",
            amount(minor),
            sign(minor)
        )
    };
    let rows: String = entries
        .iter()
        .map(|(credit, minor)| {
            let sign = sign(if *credit { 1 } else { -1 });
            let money = amount(*minor);
            format!("<Ntry><Amt Ccy=\"{code}\">{money}</Amt><CdtDbtInd>{sign}</CdtDbtInd></Ntry>")
        })
        .collect();
    let closing = opening + net(entries) + off;
    format!(
        "<Document><BkToCstmrStmt><Stmt>{}{}{rows}</Stmt></BkToCstmrStmt></Document>",
        balance("OPBD", opening),
        balance("CLBD", closing)
    )
}

fn mt940(opening: i64, entries: &[(bool, i64)], code: &str, off: i64) -> String {
    let exponent = Currency::parse(code).unwrap().exponent();
    let amount = |minor: i64| {
        let text = decimal_text(i128::from(minor.abs()), exponent).replace('.', ",");
        if text.contains(',') { text } else { format!("{text},") }
    };
    let sign = |minor: i64| if minor < 0 { "D" } else { "C" };
    let mut text = format!(":20:X\n:25:1\n:28C:1\n:60F:{}261119{code}", sign(opening));
    text += &format!("{}\n", amount(opening));
    for (credit, minor) in entries {
        let mark = if *credit { "C" } else { "D" };
        text += &format!(":61:2611191119{mark}{}NTRFREF\n:86:x\n", amount(*minor));
    }
    let closing = opening + net(entries) + off;
    text + &format!(":62F:{}261119{code}{}\n-\n", sign(closing), amount(closing))
}

fn bai2(entries: &[(bool, i64)], off: i64) -> String {
    let sum: i64 = entries.iter().map(|(_, minor)| minor).sum::<i64>() + 7 + off;
    let rows: String = entries
        .iter()
        .map(|(credit, minor)| {
            format!("16,{},{minor},Z,,,x/\n", if *credit { "165" } else { "475" })
        })
        .collect();
    let count = entries.len();
    format!(
        "01,A,B,261119,0200,1,,,2/\n02,A,B,1,261118,2400,USD,2/\n03,1,,040,7,,/\n{rows}\
         49,{sum},{}/\n98,{sum},1,{}/\n99,{sum},1,{}/\n",
        count + 2,
        count + 4,
        count + 6
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn camt_reads_back(
        opening in -1_000_000_i64..1_000_000,
        entries in entries(),
        code in prop::sample::select(vec!["EUR", "JPY", "KWD"]),
        off in prop::sample::select(vec![0_i64, 1, -1]),
    ) {
        let found = inspected(camt(opening, &entries, code, off).as_bytes());
        if off == 0 {
            holds(&found, code, &entries)?;
        } else {
            prop_assert_eq!(found.state, State::Quarantined);
        }
    }

    #[test]
    fn mt940_reads_back(
        opening in -1_000_000_i64..1_000_000,
        entries in entries(),
        code in prop::sample::select(vec!["EUR", "JPY", "KWD"]),
        off in prop::sample::select(vec![0_i64, 1, -1]),
    ) {
        let found = inspected(mt940(opening, &entries, code, off).as_bytes());
        if off == 0 {
            holds(&found, code, &entries)?;
        } else {
            prop_assert_eq!(found.state, State::Quarantined);
        }
    }

    #[test]
    fn bai2_reads_back(
        entries in entries(),
        off in prop::sample::select(vec![0_i64, 1, -1]),
    ) {
        let found = inspected(bai2(&entries, off).as_bytes());
        if off == 0 {
            holds(&found, "USD", &entries)?;
        } else {
            prop_assert_eq!(found.state, State::Quarantined);
        }
    }
}
