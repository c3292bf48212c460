//! What must hold for any journal, with texts that have broken CSV before.

use proptest::prelude::*;
use tieout::model::reason::{Outcome, Reason};
use tieout::report;
use tieout::report::cells::Dialect;
use tieout::store::records::{Applied, JournalRow};

use super::vectors::{Vectors, built, manifest, record, sound, table};

fn currency() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("EUR"), Just("USD"), Just("JPY"), Just("BHD"), Just("")]
}

/// Texts that have broken CSV before, and any other text.
fn trap() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("=cmd|' /C calc'!A0".to_owned()),
        Just("\u{feff}=1+1".to_owned()),
        Just("a\r\nb".to_owned()),
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("''x".to_owned()),
        Just("00123".to_owned()),
        Just("1E5".to_owned()),
        Just(";,\t|".to_owned()),
        Just("\0".to_owned()),
        Just("naïve — ключ 鍵".to_owned()),
        Just("-5".to_owned()),
        any::<String>(),
        "[ -~]{1,20}",
    ]
}

prop_compose! {
    fn any_record()(
        table in prop_oneof![Just("charges"), Just("refunds")],
        key in trap(),
        texts in (trap(), trap(), trap(), trap()),
        local in (currency(), -5_000_000_000_000_i64..5_000_000_000_000),
        psp in (currency(), proptest::option::of(any::<i64>())),
        outcome in 0..5_usize,
        applied in 0..3_usize,
        reason in 0..Reason::ALL.len(),
        writer in 0..3_u8,
        same in any::<bool>(),
    ) -> JournalRow {
        let (account, tag, text, status) = texts;
        let (currency, minor) = local;
        let (psp_currency, psp_minor) = if same { (currency, Some(minor)) } else { psp };
        let psp_known = !psp_currency.is_empty();
        let outcome = Outcome::ALL[outcome];
        let applied = [Applied::Yes, Applied::Superseded, Applied::Withheld][applied];
        let is_case = outcome == Outcome::Review && applied != Applied::Superseded;
        JournalRow {
            writer: format!("w{writer}"),
            table: table.into(),
            key,
            account,
            tag,
            text,
            status_before: status.clone(),
            status_after: status,
            currency: currency.into(),
            amount_minor: if currency.is_empty() { 0 } else { minor },
            psp_currency: psp_known.then(|| psp_currency.to_owned()),
            psp_amount_minor: psp_minor.filter(|_| psp_known),
            outcome,
            applied,
            reason: Reason::ALL[reason],
            case_number: is_case.then_some(1),
            ..record(1)
        }
    }
}

fn any_source() -> impl Strategy<Value = Vectors> {
    proptest::collection::vec(any_record(), 0..40).prop_map(|mut journal| {
        for (record, number) in journal.iter_mut().zip(1..) {
            record.case_number = record.case_number.map(|_| number);
        }
        Vectors::of(journal)
    })
}

fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop_oneof![Just(Dialect::Plain), Just(Dialect::Excel), Just(Dialect::ExcelEu)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_journal_ties_out_verifies_and_reads_back(
        source in any_source(),
        dialect in any_dialect(),
    ) {
        let (_root, built) = built(&source, dialect);
        prop_assert_eq!(&built.untied, &Vec::<String>::new());
        sound(&source, &built.dir);
        let unmarked = |text: &str| {
            let is_marked = dialect != Dialect::Plain && text.starts_with('\'');
            text.strip_prefix('\'').filter(|_| is_marked).unwrap_or(text).to_owned()
        };
        let rows = table(&built.dir, "reconciliation.csv", dialect);
        prop_assert_eq!(rows.len(), source.journal.len());
        for row in &rows {
            let seq: i64 = row["audit_seq"].parse().unwrap();
            let of = |r: &&JournalRow| r.writer == row["writer"] && r.seq == seq;
            let record = source.journal.iter().find(of).unwrap();
            for (column, text) in [
                ("key", &record.key),
                ("account", &record.account),
                ("tag", &record.tag),
                ("reason_text", &record.text),
                ("status_before", &record.status_before),
            ] {
                prop_assert_eq!(&unmarked(&row[column]), text, "{}", column);
                if dialect != Dialect::Plain {
                    let behind = row[column].trim_start_matches(['\u{feff}', ' ']);
                    let runs = behind.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\0']);
                    prop_assert!(!runs, "{}: {:?} would run", column, row[column]);
                }
            }
        }
    }

    #[test]
    fn one_unit_or_one_row_off_is_never_tied(
        source in any_source(),
        which in any::<prop::sample::Index>(),
        by_rows in any::<bool>(),
        by in prop_oneof![Just(-1_i64), Just(1)],
    ) {
        prop_assume!(!source.totals.is_empty());
        let mut source = source;
        let which = which.index(source.totals.len());
        let total = &mut source.totals[which];
        if by_rows { total.rows += by } else { total.amount_minor += i128::from(by) }
        let (_root, built) = built(&source, Dialect::Plain);
        prop_assert!(!built.untied.is_empty());
        prop_assert_eq!(&manifest(&built.dir)["tie_out"], "UNTIED");
        let found = report::verify(&built.dir).unwrap();
        prop_assert!(!found.untied.is_empty());
    }
}
