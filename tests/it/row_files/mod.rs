//! Files of rows: reports of PSPs, exports of banks, and formats that the configuration describes.
//! Each fixture reads to its known sums in every way of writing it, and what has a control of its
//! own is refused once a row is dropped, doubled or changed.

pub mod described;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use tieout::model::money::Currency;
use tieout::model::settlement::{EntryStatus, Problem, TagKind};
use tieout::settlement::ledger::{Inspection, State, Totals, inspect};
use tieout::settlement::{Format, Item};

use crate::settlement::items;

/// A fixture, its format, its entries, and its credits and debits by currency.
type Case = (&'static str, &'static str, u64, &'static [(&'static str, i128, i128)], Option<bool>);

const CASES: &[Case] = &[
    (
        "psp/adyen_settlement.csv",
        "adyen_settlement",
        8,
        &[("EUR", 12_760, 12_760), ("USD", 2_500, 2_500)],
        Some(true),
    ),
    ("psp/adyen_accounting.csv", "adyen_accounting", 5, &[("EUR", 9_850, 0)], None),
    ("psp/adyen_received.csv", "adyen_received", 2, &[("EUR", 10_000, 0), ("JPY", 1_200, 0)], None),
    ("psp/stripe_payout.csv", "stripe", 6, &[("JPY", 1_440, 0), ("USD", 9_680, 9_680)], Some(true)),
    ("psp/stripe_history.csv", "stripe", 2, &[("USD", 109_680, 109_680)], Some(true)),
    (
        "psp/paypal_stl.csv",
        "paypal_stl",
        6,
        &[("BRL", 5_000, 5_000), ("USD", 10_980, 2_500)],
        Some(true),
    ),
    (
        "psp/paypal_trr.csv",
        "paypal_trr",
        6,
        &[("BRL", 5_000, 5_000), ("USD", 10_980, 2_500)],
        Some(true),
    ),
    ("psp/braintree.csv", "braintree", 4, &[("EUR", 10_000, 2_000), ("JPY", 1_200, 0)], None),
    ("psp/braintree_fees.csv", "braintree", 3, &[("EUR", 10_000, 2_000), ("JPY", 1_200, 0)], None),
    ("psp/checkout_breakdown.csv", "checkout_breakdown", 4, &[("USD", 4_850, 1_220)], Some(true)),
    // To the cent what the payout comes to: 135.5285.
    ("psp/checkout_fractions.csv", "checkout_breakdown", 4, &[("USD", 14_563, 1_010)], Some(true)),
    ("psp/checkout_actions.csv", "checkout_actions", 5, &[("GBP", 10_000, 1_219)], None),
    ("psp/checkout_payouts.csv", "checkout_payouts", 1, &[("USD", 3_630, 0)], Some(true)),
    ("psp/trustly.csv", "trustly", 3, &[("USD", 86_000, 2_910)], Some(true)),
    ("psp/mollie.csv", "mollie", 4, &[("EUR", 15_000, 2_288)], None),
    ("psp/shopify.csv", "shopify", 2, &[("USD", 4_339, 1_000)], Some(true)),
    ("psp/amazon.tsv", "amazon", 4, &[("EUR", 12_000, 1_850)], Some(true)),
    ("psp/amazon_v1.tsv", "amazon", 6, &[("CAD", 13_445, 6_009)], Some(true)),
    ("psp/mercadopago.csv", "mercadopago", 3, &[("BRL", 8_500, 8_500)], Some(true)),
    ("psp/mercadopago_release.csv", "mercadopago_release", 3, &[("BRL", 9_000, 8_000)], Some(true)),
    // A hold among them is pending.
    ("psp/paypal_activity.csv", "paypal_activity", 3, &[("EUR", 120_660, 101_000)], Some(true)),
    ("bank_csv/nl_signed_balance.csv", "bank_csv", 3, &[("EUR", 5_000, 208_749)], Some(true)),
    ("bank_csv/de_newest_first.csv", "bank_csv", 3, &[("EUR", 325_000, 90_050)], Some(true)),
    ("bank_csv/en_debit_credit.csv", "bank_csv", 3, &[("GBP", 100_000, 3_000)], Some(true)),
    ("bank_csv/nl_flag.csv", "bank_csv", 2, &[("EUR", 125_000, 1_250)], None),
    ("bank_csv/inverted.csv", "bank_csv", 3, &[("EUR", 2_550, 2_550)], Some(true)),
    ("bank_csv/de_two_currencies.csv", "bank_csv", 3, &[("EUR", 130_000, 80_000)], Some(true)),
    ("bank_csv/de_euro_sign.csv", "bank_csv", 2, &[("EUR", 110_010, 90_005)], None),
    // A foreign amount that no row has.
    ("bank_csv/ch_cic.csv", "bank_csv", 2, &[("CHF", 62_978, 7_210)], None),
    // Signs of the issuer, which the flag turns round.
    ("bank_csv/gb_card_flag.csv", "bank_csv", 3, &[("GBP", 2_500, 1_234)], None),
    ("bank_csv/ie_dashes.csv", "bank_csv", 3, &[("EUR", 100_000, 10_249)], None),
    // One row of it is not booked, and one of the dollars' was called off.
    ("bank_csv/it_intesa.csv", "bank_csv", 3, &[("EUR", 100_000, 750)], None),
    ("bank_csv/us_mercury.csv", "bank_csv", 3, &[("USD", 100_000, 10_410)], None),
    ("bank_csv/it_unicredit.csv", "bank_csv", 2, &[("EUR", 100_000, 510)], None),
    ("bank_csv/ie_aib.csv", "bank_csv", 3, &[("EUR", 100_000, 2_510)], Some(true)),
    ("bank_csv/fi_nordea.csv", "bank_csv", 2, &[("EUR", 100_000, 510)], Some(true)),
    ("bank_csv/pl_ing.csv", "bank_csv", 3, &[("PLN", 100_000, 2_510)], Some(true)),
    ("bank_csv/fr_agricole.csv", "bank_csv", 2, &[("EUR", 100_000, 510)], None),
    ("bank_csv/cz_csob.csv", "bank_csv", 2, &[("CZK", 100_000, 510)], Some(true)),
    (
        "bank_csv/ch_swissquote.csv",
        "bank_csv",
        4,
        &[("CHF", 100_000, 510), ("USD", 10_000, 2_000)],
        Some(true),
    ),
    (
        "bank_csv/ch_swissquote_de.csv",
        "bank_csv",
        4,
        &[("CHF", 100_000, 510), ("USD", 10_000, 2_000)],
        Some(true),
    ),
    // The details of a batch have no day, and no amount in a column of one.
    ("bank_csv/ch_balance_named.csv", "bank_csv", 2, &[("CHF", 100_000, 510)], Some(true)),
    ("bank_csv/it_addebiti.csv", "bank_csv", 2, &[("CHF", 100_000, 510)], Some(true)),
    ("bank_csv/sk_tatra.csv", "bank_csv", 2, &[("EUR", 100_000, 510)], None),
    // A fee is taken besides the amount, in one currency of two.
    (
        "bank_csv/de_revolut.csv",
        "bank_csv",
        4,
        &[("EUR", 100_000, 10_100), ("USD", 10_700, 700)],
        Some(true),
    ),
    ("bank_csv/ee_swedbank.csv", "bank_csv", 2, &[("EUR", 100_000, 510)], Some(true)),
    ("bank_csv/lt_swedbank.csv", "bank_csv", 2, &[("EUR", 100_000, 510)], Some(true)),
    ("bank_csv/lv_swedbank.csv", "bank_csv", 2, &[("EUR", 100_000, 510)], Some(true)),
    (BARE, "bank_csv", 2, &[("EUR", 100_000, 510)], None),
];

/// It has no header row.
const BARE: &str = "bank_csv/at_no_header.csv";

fn look(bytes: &[u8]) -> Inspection {
    inspect(Box::new(Cursor::new(bytes.to_vec())), None, None).unwrap()
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/settlement"))
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// A format, a state, entries, and credits and debits by currency.
type Said = (Option<Format>, State, u64, BTreeMap<String, (i128, i128)>);

/// What is the same however a file is written: all but line numbers and encodings.
fn said(found: &Inspection) -> Said {
    let totals = found.sums.totals.iter();
    let totals =
        totals.map(|(c, t)| (c.code().to_owned(), (t.credit_minor, t.debit_minor))).collect();
    (found.format, found.state, found.sums.entries, totals)
}

#[test]
fn each_fixture_reads_to_its_known_sums() {
    let mut seen = Vec::new();
    for (name, format, entries, totals, ties) in CASES {
        let found = look(fixture(name).as_bytes());
        let wanted: BTreeMap<_, _> =
            totals.iter().map(|(c, credit, debit)| ((*c).to_owned(), (*credit, *debit))).collect();
        let problems = &found.sums.problems;
        assert_eq!(
            said(&found),
            (Format::parse(format), State::Ok, *entries, wanted),
            "{name}: {problems:?}"
        );
        assert_eq!(found.sums.statements.first().unwrap().ties, *ties, "{name}");
        assert_eq!(found.sums.lines, *entries, "{name}");
        seen.push((*name).to_owned());
    }
    for kind in ["psp", "bank_csv"] {
        for entry in std::fs::read_dir(folder().join(kind)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(seen.contains(&format!("{kind}/{name}")), "no case for {kind}/{name}");
        }
    }
}

/// The rows of a file, cut as its format cuts them.
fn rows(text: &str, delimiter: u8) -> Vec<Vec<String>> {
    let mut builder = csv::ReaderBuilder::new();
    let reader = builder.has_headers(false).flexible(true).delimiter(delimiter);
    let records = reader.from_reader(text.as_bytes()).into_records();
    records.map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

fn written(rows: &[Vec<String>], delimiter: u8, quote: csv::QuoteStyle) -> String {
    let mut builder = csv::WriterBuilder::new();
    let mut writer =
        builder.flexible(true).delimiter(delimiter).quote_style(quote).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

fn delimiter_of(text: &str) -> u8 {
    let count = |delimiter: &u8| text.matches(char::from(*delimiter)).count();
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap()
}

/// By position, in rows of several kinds: their columns cannot change places.
fn is_by_position(format: &str) -> bool {
    ["paypal_stl", "paypal_trr", "trustly"].contains(&format)
}

#[test]
fn every_way_of_writing_a_file_reads_equal() {
    for (name, format, ..) in CASES {
        let text = fixture(name);
        let want = said(&look(text.as_bytes()));
        let rows = rows(&text, delimiter_of(&text));
        let utf16 = |big: bool| -> Vec<u8> {
            let units: Vec<u16> = format!("\u{feff}{text}").encode_utf16().collect();
            units.iter().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
        };
        let mut ways: Vec<(&str, Vec<u8>)> = vec![
            ("byte order mark", format!("\u{feff}{text}").into_bytes()),
            ("UTF-16 LE", utf16(false)),
            ("UTF-16 BE", utf16(true)),
            ("CRLF", text.replace('\n', "\r\n").into_bytes()),
            ("CR", text.replace('\n', "\r").into_bytes()),
            ("no end of the last line", text.trim_end().as_bytes().to_vec()),
            ("blank lines", text.replace('\n', "\n\n").into_bytes()),
            ("an end mark", format!("{text}\u{1a}").into_bytes()),
            ("zeros behind the end", format!("{text}{}", "\0".repeat(16)).into_bytes()),
            ("quotes", written(&rows, delimiter_of(&text), csv::QuoteStyle::Always).into_bytes()),
        ];
        if *format != "trustly" {
            for delimiter in [b',', b';', b'\t', b'|'] {
                let text = written(&rows, delimiter, csv::QuoteStyle::Necessary);
                ways.push(("another delimiter", text.into_bytes()));
            }
        }
        if !is_by_position(format) && *name != BARE {
            ways.extend(by_name(&rows, format));
        }
        // Its last field is an amount, of which more decimals could follow.
        let is_open = *name == "psp/checkout_actions.csv";
        ways.retain(|(way, _)| !is_open || *way != "no end of the last line");
        for (way, bytes) in ways {
            let found = look(&bytes);
            assert_eq!(said(&found), want, "{name}, {way}: {:?}", found.sums.problems);
        }
    }
}

/// Ways of writing a file whose columns are known by name.
fn by_name(rows: &[Vec<String>], format: &str) -> Vec<(&'static str, Vec<u8>)> {
    let header = rows.iter().position(|row| row.iter().filter(|f| !f.is_empty()).count() > 4);
    let header = header.unwrap();
    let body = &rows[header..];
    let map = |change: &dyn Fn(usize, &Vec<String>) -> Vec<String>| {
        let rows: Vec<Vec<String>> =
            body.iter().enumerate().map(|(at, row)| change(at, row)).collect();
        written(&rows, b',', csv::QuoteStyle::Necessary).into_bytes()
    };
    let upper = map(&|at, row| match at {
        0 => row.iter().map(|name| name.to_uppercase()).collect(),
        _body => row.clone(),
    });
    let extra = map(&|at, row| {
        let field = if at == 0 { "Some New Column" } else { "x" };
        [[field.to_owned()].as_slice(), row].concat()
    });
    let words = [b"Report of June\n\nby Acme, Inc.\n".as_slice(), &map(&|_, row| row.clone())];
    let mut ways =
        vec![("upper case", upper), ("a new column", extra), ("words above", words.concat())];
    // The payouts' own columns are all that follow the amount.
    if format != "checkout_payouts" {
        ways.push(("turned around", map(&|_, row| row.iter().rev().cloned().collect())));
    }
    ways
}

/// Whether a row is of the body: of the kind that moves money.
fn is_body(format: &str, at: usize, row: &[String]) -> bool {
    match format {
        "paypal_stl" | "paypal_trr" => row[0] == "SB",
        "trustly" => row[0] == "I",
        _by_name => at > 0,
    }
}

/// Files whose own sums prove every row.
const PROVEN: [&str; 4] =
    ["psp/adyen_settlement.csv", "psp/paypal_stl.csv", "psp/paypal_trr.csv", "psp/trustly.csv"];

#[test]
fn a_row_that_is_dropped_or_doubled_is_noticed() {
    for name in PROVEN {
        let format = CASES.iter().find(|case| case.0 == name).unwrap().1;
        let rows = rows(&fixture(name), b',');
        let mut tried = 0;
        for (at, row) in rows.iter().enumerate() {
            // Outside Adyen's own account nothing was netted.
            let moves_nothing = row.iter().any(|field| field == "SettledExternally");
            if !is_body(format, at, row) || moves_nothing {
                continue;
            }
            let dropped = [&rows[..at], &rows[at + 1..]].concat();
            let doubled = [&rows[..=at], &rows[at..]].concat();
            for changed in [dropped, doubled] {
                let text = written(&changed, b',', csv::QuoteStyle::Necessary);
                let found = look(text.as_bytes());
                assert_eq!(found.state, State::Quarantined, "{name}, row {at}:\n{text}");
                tried += 1;
            }
        }
        assert!(tried >= 6, "{name}");
    }
}

#[test]
fn a_digit_that_is_changed_is_noticed() {
    // The columns of money that the sums are over: gross and fee, amount and fee, net.
    for (name, columns) in [
        ("psp/adyen_settlement.csv", [14, 15].as_slice()),
        ("psp/paypal_stl.csv", [9, 12].as_slice()),
        ("psp/paypal_trr.csv", [9, 12].as_slice()),
        ("psp/trustly.csv", [15, 22].as_slice()),
    ] {
        let format = CASES.iter().find(|case| case.0 == name).unwrap().1;
        let rows = rows(&fixture(name), b',');
        let mut tried = 0;
        for at in 0..rows.len() {
            for column in columns {
                let Some(field) = rows[at].get(*column).filter(|f| !f.is_empty()) else { continue };
                if !is_body(format, at, &rows[at]) {
                    continue;
                }
                let digit = field.find(|c: char| c.is_ascii_digit()).unwrap();
                let other = if field.as_bytes()[digit] == b'7' { "8" } else { "7" };
                let mut changed = rows.clone();
                changed[at][*column].replace_range(digit..=digit, other);
                let text = written(&changed, b',', csv::QuoteStyle::Necessary);
                assert_eq!(look(text.as_bytes()).state, State::Quarantined, "{name}:\n{text}");
                tried += 1;
            }
        }
        assert!(tried >= 4, "{name}");
    }
}

#[test]
fn a_file_that_was_cut_is_not_taken_for_a_whole_one() {
    for name in PROVEN {
        let text = fixture(name);
        let whole = text.trim_end().len();
        let header = text.find('\n').unwrap() + 1;
        let at_line = |end: &usize| text.as_bytes()[end - 1] == b'\n';
        for end in ((header + 1)..whole).filter(|end| end % 7 == 0 || at_line(end)) {
            let found = look(&text.as_bytes()[..end]);
            assert_ne!(found.state, State::Ok, "{name} cut at {end}");
        }
    }
}

/// Whether its last line ends or not, a whole row is one.
#[test]
fn a_banks_file_that_was_cut_within_its_last_row_is_not_taken_for_a_whole_one() {
    let text = fixture("bank_csv/de_two_currencies.csv");
    let whole = text.trim_end();
    assert_eq!(look(whole.as_bytes()).state, State::Ok);
    let last = whole.rfind('\n').unwrap() + 1;
    for end in (last + 1)..whole.len() {
        let found = look(&whole.as_bytes()[..end]);
        assert_ne!(found.state, State::Ok, "cut within {}", &whole[last..end]);
    }
    // Words below the rows are none.
    let below = format!("{whole}\nEnde der Liste");
    assert_eq!(look(below.as_bytes()).state, State::Ok);
}

#[test]
fn a_report_of_paypal_ends_with_its_last_footer() {
    let text = fixture("psp/paypal_stl.csv");
    let without = |kinds: &[&str]| {
        let is_left = |line: &&str| !kinds.iter().any(|kind| line.starts_with(kind));
        let left: Vec<&str> = text.lines().filter(is_left).collect();
        look(left.join("\n").as_bytes())
    };
    // Of a report in several files only the last has RF and RC.
    for kinds in [&["\"RF\"", "\"RC\""][..], &["\"FH\"", "\"FF\""][..]] {
        let found = without(kinds);
        assert_eq!(found.state, State::Ok, "{kinds:?}: {:?}", found.sums.problems);
    }
    for (kinds, want) in [
        (&["\"FF\""][..], "no FF: the file was cut"),
        (&["\"RC\"", "\"FF\""][..], "no FF: the file was cut"),
        (&["\"FH\"", "\"RC\"", "\"FF\""][..], "no RC: the file was cut"),
        (&["\"SF\"", "\"SC\"", "\"RF\"", "\"RC\"", "\"FF\""][..], "none: the file was cut"),
    ] {
        let found = without(kinds);
        assert_eq!(found.state, State::Quarantined, "{kinds:?}");
        let said = found.sums.problems.iter().any(|problem| problem.found == want);
        assert!(said, "{kinds:?}: {:?}", found.sums.problems);
    }
}

/// What stands below the rows of a bank's export may be words; what has a day is a row.
#[test]
fn a_row_that_was_cut_before_its_amount_is_not_passed_over() {
    let head = "Datum;Verwendungszweck;Betrag;Währung\n";
    let rows = "01.06.2026;a;12,50;EUR\n02.06.2026;b;-1,00;EUR\n";
    let with = |row: &str| look(format!("{head}{rows}{row}").as_bytes());
    for words in ["Kontoauszug\n", "erstellt auf Wunsch;;\n"] {
        let found = with(words);
        assert_eq!(found.state, State::Ok, "{words}: {:?}", found.sums.problems);
    }
    for cut in ["03.06.2026", "03.06.2026;c", "03.06.2026;c;"] {
        let problems = with(cut).sums.problems;
        let said = problems.iter().any(|one| one.field == "row" && one.expected == "4 fields");
        assert!(said, "{cut}: {problems:?}");
    }
}

/// What moved may stand in a column that is not known.
#[test]
fn a_row_with_a_day_and_without_an_amount_is_not_passed_over() {
    let with = |head: &str, row: &str| {
        let rows = "2026-11-01,a,,27.10,,GBP\n2026-11-02,b,1080.50,,,GBP\n";
        format!("Date,Description,{head},Currency\n{rows}{row}")
    };
    let head = "Deposits,Withdrawals,Checks";
    let found = look(with(head, "").as_bytes());
    assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{:?}", found.sums.problems);
    let check = with(head, "2026-11-03,c,,,50.00,GBP\n");
    let refused = refusals("a check", &check);
    assert_eq!((refused[0].0, refused[0].2.as_str()), (4, "a day, and no amount"), "{refused:?}");
    // A balance shows that nothing moved; so does a word.
    let head = "Deposits,Withdrawals,Balance";
    let with = |row: &str| {
        let rows = "2026-11-01,a,,20.00,80.00,GBP\n2026-11-02,b,1000.00,,1080.00,GBP\n";
        format!("Date,Description,{head},Currency\n{rows}{row}")
    };
    for text in ["c", "Closing balance", "Summe"] {
        let still = with(&format!("2026-11-03,{text},,,1080.00,GBP\n"));
        let found = look(still.as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{text}");
    }
    let moved = refusals("moved", &with("2026-11-03,c,,,1030.00,GBP\n"));
    assert!(moved.iter().any(|one| one.1 == "balance"), "{moved:?}");
    // One side beside an amount: which of them moved is open.
    for head in ["Amount,Debit", "Amount,Credit", "Amount,Withdrawals", "Abono,Importe"] {
        let rows = "2026-11-01,a,-27.10,,GBP\n2026-11-02,b,,1080.50,GBP\n";
        let text = format!("Date,Description,{head},Currency\n{rows}");
        assert_eq!(look(text.as_bytes()).state, State::UnknownFormat, "{head}");
    }
}

/// Where the last line does not end, its last field may be cut.
#[test]
fn a_field_that_was_cut_at_the_end_of_a_file_is_not_believed() {
    let cut = |text: &str, most: usize| {
        for less in 1..=most {
            let found = look(&text.as_bytes()[..text.len() - less]);
            assert_ne!(found.state, State::Ok, "{less} less: {text}");
        }
    };
    let amount = "Date;Text;Currency;Amount\n2026-11-01;a;EUR;10.00\n2026-11-02;b;EUR;-5.25\n\
                  2026-11-03;c;EUR;1234.56";
    let german = "Datum;Text;Währung;Betrag\n01.11.2026;a;EUR;10,00\n02.11.2026;b;EUR;-5,25\n\
                  03.11.2026;c;EUR;-1.234,56";
    let credit = "Date;Text;Currency;Debit;Credit\n2026-11-01;a;EUR;;10.00\n\
                  2026-11-02;b;EUR;5.25;\n2026-11-03;c;EUR;;1234.00";
    let account = "Account;Currency;Date;Text;Amount;Balance\nDE1;EUR;2026-11-01;a;10.00;10.00\n\
                   DE1;EUR;2026-11-02;b;-5.25;4.75\nDE1;EUR;2026-11-03;c;7.00;11.75";
    let day = "Account;Text;Amount;Currency;Date\nDE1;a;10.00;EUR;2026-11-01\n\
               DE1;b;-5.25;EUR;2026-11-02\nDE1;c;1234.50;EUR;2026-11-13";
    let status = "Date;Text;Amount;Currency;Status\n2026-11-01;a;-10.00;EUR;Booked\n\
                  2026-11-02;b;5.25;EUR;Pending";
    for (text, most) in
        [(amount, 7), (german, 9), (credit, 7), (day, 10), (status, 7), (account, 30)]
    {
        let found = look(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{text}: {:?}", found.sums.problems);
        // Of the balance of the last row no figure may lack that is not nil.
        let most_of_balance = if text == account { 5 } else { 0 };
        let whole = &text[..text.len() - most_of_balance];
        cut(whole, most - most_of_balance);
    }
    // The sign behind it.
    let signs = german.replace("-5,25", "5,25-").replace("-1.234,56", "1.234,56-");
    assert_eq!(look(signs.as_bytes()).state, State::Ok);
    cut(&signs, 9);
    // Its own quote ends a field, and a row that is there ends it.
    for end in ["\n", "\r\n", "\n\u{1a}", ";"] {
        let round = format!("{}{end}", amount.replace("1234.56", "1234"));
        assert_eq!(look(round.as_bytes()).state, State::Ok, "{round:?}");
    }
    let quoted = amount.replace("1234.56", "\"1234\"");
    assert_eq!(look(quoted.as_bytes()).state, State::Ok);
    // The balance proves the amount behind it.
    let proven = "Date;Text;Currency;Balance;Amount\n2026-11-01;a;EUR;10.00;10.00\n\
                  2026-11-02;b;EUR;15.00;5";
    assert_eq!(look(proven.as_bytes()).state, State::Ok);
    assert_ne!(look(proven.replace("15.00", "15.50").as_bytes()).state, State::Ok);
}

#[test]
fn words_below_the_rows_are_no_row_that_was_cut() {
    let rows = "Date,Description,Amount,Currency\n2026-11-01,a,10.00,EUR\n\
                2026-11-02,b,-5.25,EUR\n";
    for words in ["Total", "----", "3", "1/1", "..", "2 rows", "End of list, of all", "***", ""] {
        let found = look(format!("{rows}{words}").as_bytes());
        let problems = &found.sums.problems;
        assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{words}: {problems:?}");
    }
    for cut in ["2", "2026-1", "2026-11-03", "2026-11-03,c", "x,y"] {
        assert_ne!(look(format!("{rows}{cut}").as_bytes()).state, State::Ok, "{cut}");
    }
    // Its own quote ends a field; the file may be cut behind it.
    let quoted = "\"Account\";\"Currency\";\"Date\";\"Text\";\"Amount\"\n\
                  \"DE12\";\"EUR\";\"2026-11-01\";\"a\";\"10.00\"\n\
                  \"DE12\";\"EUR\";\"2026-11-02\";\"b\";\"-5.25\"\n";
    for cut in ["\"DE12\"", "\"DE12\";\"EUR\""] {
        let refused = refusals(cut, &format!("{quoted}{cut}"));
        assert_eq!((refused[1].0, refused[1].1.as_str()), (4, "last row"), "{refused:?}");
    }
    let by_id = "\"Id\";\"Date\";\"Text\";\"Amount\";\"Currency\"\n\
                 \"CARD-17\";\"2026-11-01\";\"a\";\"10.00\";\"EUR\"\n\
                 \"BALANCE-2\";\"2026-11-02\";\"b\";\"-5.25\";\"EUR\"\n";
    assert_eq!(look(by_id.as_bytes()).state, State::Ok);
    let cut = refusals("an id", &format!("{by_id}\"TRANSFER-2\""));
    assert_eq!((cut[1].0, cut[1].1.as_str()), (4, "last row"), "{cut:?}");
    for words in ["\"Total\"", "\"End of list\";\"1/1\""] {
        let found = look(format!("{quoted}{words}").as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{words}");
    }
    // A currency that need not be there, and texts that are codes.
    for text in [
        "Date,Text,Amount,Currency,Exchange Currency\n2026-11-01,a,10.00,EUR,USD\n\
         2026-11-02,b,-5.25,EUR,",
        "Date,Text,Amount,Currency,Category\n2026-11-01,a,10.00,EUR,ALL\n\
         2026-11-02,b,-5.25,EUR,Travel",
    ] {
        assert_eq!(look(text.as_bytes()).state, State::Ok, "{text}");
    }
}

/// `INV-1003` may be what is left of `INV-10034`.
#[test]
fn no_row_is_known_by_a_reference_that_may_be_cut() {
    let head = "Date;Amount;Currency;Text;Reference\n2026-11-01;-5.25;EUR;b;INV-1002\n";
    let last = |row: &str| {
        let text = format!("{head}2026-11-03;7.00;EUR;c;{row}");
        let found = look(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{row}: {:?}", found.sums.problems);
        let said = found.sums.problems.iter().filter(|one| one.field == "Reference").count();
        (references(&text, TagKind::CustomerReference), said)
    };
    let both = vec!["INV-1002".to_owned(), "INV-1003".to_owned()];
    for whole in ["INV-1003\n", "INV-1003\r\n", "INV-1003;", "\"INV-1003\""] {
        assert_eq!(last(whole), (both.clone(), 0), "{whole:?}");
    }
    assert_eq!(last("INV-1003"), (vec!["INV-1002".to_owned()], 1));
    assert_eq!(last(""), (vec!["INV-1002".to_owned()], 0));
}

/// What follows such a quote would be part of the field, and so would an amount that was cut.
#[test]
fn a_quote_that_is_open_at_the_end_of_a_file_is_not_taken_for_a_closed_one() {
    let head = "Date,Description,Currency,Amount,Balance\n2026-11-01,\"a \"\"b\"\", c\",USD,";
    for whole in ["-20.00,80.00\n", "-20.00,\"80.00\"", "\"-20.00\",\"80.00\"\n\u{1a}"] {
        assert_eq!(look(format!("{head}{whole}").as_bytes()).state, State::Ok, "{whole:?}");
    }
    let row = "-20.00,80.00\n2026-11-02,d\"e\"f,USD,-20.00,";
    assert_eq!(look(format!("{head}{row}60.00\n").as_bytes()).state, State::Ok, "in a field");
    for cut in ["\"", "\"60", "\"60.00", "\"60.00\n", "\"60.00\"\"", "\"60.00\n\u{1a}"] {
        let found = look(format!("{head}{row}{cut}").as_bytes());
        assert_ne!(found.state, State::Ok, "{cut:?}");
        let problem = &found.sums.problems[0];
        let is_said = problem.expected == "each quote closed" && problem.line == 3;
        assert!(is_said || found.format.is_none(), "{cut:?}: {problem:?}");
    }
    // Wherever the parts end that a long file is read by.
    for more in 0..40 {
        let text =
            format!("{head}-20.00,80.00\n{}", "2026-11-02,\"d\"\"e\",USD,0,80.00\n".repeat(3_000));
        let text = format!("{text}2026-11-03,{},USD,-1.00,\"79.0\"\"", "x".repeat(more));
        let found = look(text.as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Quarantined, 3_001), "{more}");
        assert_eq!(found.sums.problems_total, 1, "{:?}", found.sums.problems);
    }
}

/// What was cut off an amount is a wrong total, and off a word another kind of row.
#[test]
fn a_psp_s_report_that_was_cut_within_its_last_field_is_not_believed() {
    let actions =
        "Payment ID,Action Type,Breakdown Type,Holding Currency,Holding Currency Amount\n";
    let braintree = "Transaction ID,Transaction Type,Transaction Status,Currency ISO Code,\
                     Amount Submitted For Settlement\nt1,sale,settled,USD,10.00\n";
    let status = "Transaction ID,Transaction Type,Currency ISO Code,\
                  Amount Submitted For Settlement,Transaction Status\nt1,sale,USD,10.00,settled\n";
    let settled = "Transaction ID,Transaction Type,Transaction Status,Currency ISO Code,\
                   Amount Submitted For Settlement,Settlement Amount,\
                   Settlement Currency ISO Code\nt1,sale,settled,USD,10.00,9.00,EUR\n";
    let received = "Merchant Account,Psp Reference,Merchant Reference,Creation Date,TimeZone,\
                    Currency,Amount\nM,P1,o1,2026-11-01,CET,EUR,10.00\n";
    let stripe = "balance_transaction_id,currency,gross,fee,net,reporting_category\n\
                  t1,usd,10,1,9,charge_failure\n";
    for (what, head, row, whole, cuts) in [
        ("actions", actions, "p1,Capture,Capture,GBP,", "100.00000000", ["100.00", "10", ""]),
        ("braintree", braintree, "t2,sale,settled,USD,", "100.00", ["100.0", "1", ""]),
        ("status", status, "t2,sale,USD,10.00,", "\"settled\"", ["settled", "settle", ""]),
        ("settled", settled, "t2,sale,settled,USD,10.00,9.00,", "EUR", ["EU", "E", ""]),
        ("received", received, "M,P2,o2,2026-11-01,CET,EUR,", "100.00", ["100.0", "1", ""]),
        ("stripe", stripe, "t2,usd,10,1,9,", "\"charge\"", ["charge", "char", ""]),
    ] {
        let with = |last: &str| look(format!("{head}{row}{last}").as_bytes());
        for whole in [whole.to_owned(), format!("{whole}\n")] {
            let found = with(&whole);
            assert_eq!(found.state, State::Ok, "{what} {whole:?}: {:?}", found.sums.problems);
        }
        for cut in cuts {
            let found = with(cut);
            let said = found.sums.problems.iter().any(|one| one.field == "last row");
            assert!(found.state == State::Quarantined && said, "{what}, {cut:?}");
        }
    }
    // The net proves itself, in whichever column.
    let proven = "balance_transaction_id,currency,gross,fee,reporting_category,net\n\
                  t1,usd,10,1,charge,";
    assert_eq!(look(format!("{proven}9").as_bytes()).state, State::Ok);
    // A reference is not known by what is left of it.
    let text = fixture("psp/stripe_payout.csv");
    let orders = |text: &str| references(text, TagKind::MerchantReference).len();
    assert_eq!((orders(&text), orders(text.trim_end())), (4, 3));
    let found = look(text.trim_end().as_bytes());
    assert_eq!((found.state, found.sums.problems_total), (State::Ok, 1));
}

#[test]
fn a_report_of_attempts_without_the_end_of_its_last_line_is_doubted() {
    for name in ["psp/adyen_accounting.csv", "psp/adyen_received.csv"] {
        let text = fixture(name);
        let whole = look(text.as_bytes());
        let ties = |found: &Inspection| found.sums.statements.first().and_then(|sum| sum.ties);
        assert_eq!(ties(&whole), None, "{name}");
        let text = text.trim_end();
        // The line's end may be written in any way, and old marks of an end stand behind it.
        for end in ["\r\n", "\r\n\u{1a}"] {
            assert_eq!(ties(&look(format!("{text}{end}").as_bytes())), None, "{name}");
        }
        let header = text.lines().next().unwrap();
        for (cut, state) in [(text, State::Ok), (header, State::Quarantined)] {
            let found = look(cut.as_bytes());
            assert_eq!((found.state, ties(&found)), (state, Some(false)), "{name}: {cut}");
            let fields: Vec<&str> =
                found.sums.problems.iter().map(|problem| problem.field.as_str()).collect();
            assert!(fields.contains(&"last row"), "{name}: {fields:?}");
        }
        let empty = look(format!("{header}\n").as_bytes());
        assert_eq!((empty.sums.problems_total, ties(&empty)), (0, None), "{name}");
    }
}

#[test]
fn rows_that_a_balance_proves_cannot_be_changed() {
    for name in
        ["nl_signed_balance", "de_newest_first", "en_debit_credit", "inverted", "de_two_currencies"]
    {
        let text = fixture(&format!("bank_csv/{name}.csv"));
        let mut lines: Vec<&str> = text.lines().collect();
        let middle = lines.len() - 2;
        let row = lines[middle];
        lines.remove(middle);
        let dropped = lines.join("\n");
        lines.splice(middle..middle, [row, row]);
        let doubled = lines.join("\n");
        for changed in [dropped, doubled] {
            assert_ne!(look(changed.as_bytes()).state, State::Ok, "{name}:\n{changed}");
        }
    }
}

/// Each row is a statement of its currency: only the balances across them prove it.
#[test]
fn rows_of_several_currencies_in_turns_are_proven_by_the_balances_of_each() {
    let head = "Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,State";
    let text = |rows: &[(&str, &str, &str)], newest_first: bool| {
        let row = |(at, (amount, of, balance)): (usize, &(&str, &str, &str))| {
            let day = format!("2026-11-{} 10:00:00", at + 10);
            format!("TRANSFER,Current,{day},{day},x {at},{amount},0.00,{of},COMPLETED,{balance}\n")
        };
        let mut rows: Vec<String> = rows.iter().enumerate().map(row).collect();
        if newest_first {
            rows.reverse();
        }
        format!("{head},Balance\n{}", rows.concat())
    };
    let rows = [
        ("10.00", "EUR", "10.00"),
        ("5.00", "USD", "5.00"),
        ("-2.00", "EUR", "8.00"),
        ("-1.00", "USD", "4.00"),
        ("3.00", "EUR", "11.00"),
        ("7.00", "USD", "11.00"),
    ];
    let dropped = [&rows[..3], &rows[4..]].concat();
    let mut turned = rows;
    turned[2].0 = "2.00";
    let mut changed = rows;
    changed[4].0 = "300.00";
    for newest_first in [false, true] {
        let found = look(text(&rows, newest_first).as_bytes());
        assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
        assert_eq!(found.sums.problems_total, 0, "{:?}", found.sums.problems);
        for other in [&dropped[..], &turned[..], &changed[..]] {
            let found = look(text(other, newest_first).as_bytes());
            assert_eq!(found.state, State::Quarantined, "{other:?}");
            let is_balance = |problem: &&Problem| problem.field == "balance";
            assert_eq!(found.sums.problems.iter().filter(is_balance).count(), 1, "{other:?}");
        }
    }
    // Two accounts that nothing tells apart, each of which proves itself.
    let two = [
        ("10.00", "EUR", "10.00"),
        ("-2.00", "EUR", "8.00"),
        ("5.00", "USD", "5.00"),
        ("-1.00", "USD", "4.00"),
        ("1.00", "EUR", "101.00"),
        ("-1.00", "EUR", "100.00"),
    ];
    let found = look(text(&two, false).as_bytes());
    assert_eq!(found.state, State::Ok, "{:?}", found.sums.problems);
}

#[test]
fn a_header_without_rows_is_an_empty_file_and_not_an_unknown_one() {
    for name in ["psp/adyen_settlement.csv", "psp/stripe_payout.csv", "psp/braintree.csv"] {
        let text = fixture(name);
        let header = text.lines().next().unwrap();
        let found = look(format!("{header}\n").as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Ok, 0), "{name}");
    }
}

/// Columns and rows may lack behind it.
#[test]
fn a_header_row_that_was_cut_is_not_taken_for_an_empty_report() {
    for name in ["psp/adyen_settlement.csv", "psp/stripe_payout.csv", "psp/braintree.csv"] {
        let text = fixture(name);
        let header = text.lines().next().unwrap();
        for cut in [header, &header[..header.len() - 2]] {
            let found = look(cut.as_bytes());
            assert_eq!((found.state, found.sums.entries), (State::Quarantined, 0), "{name}");
            // Of a quoted name that was cut, the quote is open.
            let field = found.sums.problems[0].field.as_str();
            assert!(["header row", "row"].contains(&field), "{name}: {field}");
        }
    }
    let bank = "Date,Description,Amount,Currency,Bala";
    let found = look(bank.as_bytes());
    assert_eq!((found.state, found.sums.problems_total), (State::Ok, 1), "a bank's is doubted");
    assert_eq!(look(format!("{bank}nce\n").as_bytes()).sums.problems_total, 0);
}

/// It is in no equation: any balance would follow from it.
#[test]
fn a_balance_that_no_other_follows_proves_nothing() {
    let head = "Date,Description,Currency,Amount,Balance\n";
    let found = |rows: &str| look(format!("{head}{rows}").as_bytes());
    let shown = |rows: &str| {
        let found = found(rows);
        let statement = found.sums.statements.first().unwrap();
        let [opening, closing] =
            [statement.opening, statement.closing].map(|of| of.map(|balance| balance.minor));
        (found.state, statement.ties, opening, closing)
    };
    let one = "2026-11-01,a,USD,-20.00,1080.00";
    let two = format!("{one}\n2026-11-02,b,USD,-20.00,1060.00");
    assert_eq!(shown(one), (State::Ok, None, None, Some(108_000)));
    assert_eq!(shown(&two), (State::Ok, Some(true), Some(110_000), Some(106_000)));
    let cut = &one[..one.len() - 4];
    assert_eq!(shown(cut), (State::Ok, None, None, None), "a balance that was cut");
    assert_eq!(found(cut).sums.problems[0].found, "108");
    for rows in [
        "2026-11-01,a,USD,20.00,1080.00\n",
        "2026-11-01,a,USD,20.00,1080.00\n2026-11-02,b,USD,0.00,1080.00\n",
    ] {
        let refused = refusals("nothing moved", &format!("{head}{rows}"));
        assert!(refused.iter().any(|one| one.2 == "amounts without a sign"), "{refused:?}");
    }
}

/// Issuers write what was bought without a minus.
#[test]
fn signs_of_a_card_s_issuer_are_not_taken_for_those_of_an_account() {
    let head = "Transaction Date,Clearing Date,Description,Merchant,Category,Type,Amount (USD)";
    let bought = "07/01/2026,07/02/2026,a,A,Other,Purchase,5.10";
    let paid = "07/13/2026,07/14/2026,b,B,Payment,Payment,-1000.00";
    for (head, more) in [(head.to_owned(), ""), (format!("{head},Purchased By"), ",Me")] {
        reads("its words say so", &format!("{head}\n{bought}{more}\n{paid}{more}\n"), "USD");
    }
    let text = format!("{head}\n{bought}\n{paid}\n");
    for (from, to) in [(",5.10", ",-5.10"), ("-1000.00", "1000.00"), ("Clearing Date", "Cleared")] {
        let found = look(text.replace(from, to).as_bytes());
        assert_eq!(found.state, State::UnknownFormat, "{from} to {to}");
    }
    let many = format!("{bought}\n").repeat(4_000);
    let far = format!("{head}\n{many}{paid}\n{}\n", bought.replace("5.10", "-5.10"));
    let wanted = (4_003, "Type".to_owned(), "Purchase beside -5.10".to_owned());
    assert!(refusals("far", &far).contains(&wanted));
    for (what, name, rows, is_read) in [
        ("paid", "Type", ["Purchase,5.00", "Payment,-9.00"], false),
        ("given back", "Type", ["Purchase,5.00", "Refund,-9.00"], false),
        ("sold", "Transaction Type", ["Sale,5.00", "Payment,-9.00"], false),
        ("an account's", "Type", ["Purchase,-5.00", "Payment,9.00"], true),
        ("a shop's", "Type", ["Sale,5.00", "Refund,-9.00"], true),
        ("a text", "Text", ["Shop,5.00", "PAYMENT RECEIVED - THANK YOU,-9.00"], false),
        ("a text", "Text", ["Shop,5.00", "Geincasseerd vorig saldo,-9.00"], false),
        ("a text", "Text", ["Shop,-5.00", "Payment received from a shop,9.00"], true),
        ("a text", "Text", ["Shop,5.00", "Zahlung/Überweisung erhalten Besten Dank,-9.00"], false),
        ("a text", "Text", ["Shop,5.00", "HARTELIJK BEDANKT VOOR UW BETALING,-9.00"], false),
        ("a text", "Text", ["Shop,5.00", "PRELEVEMENT AUTOMATIQUE ENREGISTRE-MERCI,-9.00"], false),
        ("a text", "Text", ["Shop,5.00", "PAGO RECIBIDO GRACIAS,-9.00"], false),
        // An account writes these with a minus, too, where it pays a card's bill.
        ("a bill", "Text", ["Shop,5.00", "AUTOPAY PAYMENT,-9.00"], true),
        ("a bill", "Text", ["Shop,5.00", "Automatic payment,-9.00"], true),
        ("a bill", "Text", ["Shop,5.00", "E-PAYMENT,-9.00"], true),
        ("a bill", "Text", ["Shop,5.00", "CREDIT CARD PAYMENT,-9.00"], true),
        ("a bill", "Text", ["Shop,5.00", "Lastschrift Kontoausgleich,-9.00"], true),
        ("an account's", "Text", ["Shop,-5.00", "Credit card payment,-9.00"], true),
    ] {
        let [first, second] = rows;
        let head = format!("Date,{name},Amount,Currency,Message");
        let text = format!("{head}\n2026-11-01,{first},USD,a\n2026-11-02,{second},USD,b\n");
        assert_eq!(look(text.as_bytes()).state == State::Ok, is_read, "{what}: {rows:?}");
    }
    // Nothing else has a minus, and more comes in than that: a card's file by all that it shows.
    for (rows, is_read) in [
        (["Shop,5.00", "Shop,6.00", "AUTOPAY PAYMENT,-9.00"], false),
        (["Shop,5.00", "Shop,6.00", "Lastschrift Kontoausgleich,-9.00"], false),
        (["Shop,5.00", "Fee,-6.00", "Direct debit payment,-9.00"], true),
        (["Shop,5.00", "Shop,6.00", "Supplier,-9.00"], true),
    ] {
        let [one, two, three] = rows.map(|row| format!("2026-11-01,{row},USD,a\n"));
        let text = format!("Date,Text,Amount,Currency,Message\n{one}{two}{three}");
        assert_eq!(look(text.as_bytes()).state == State::Ok, is_read, "{rows:?}");
    }
    for name in ["Merchant", "MerchantName", "Purchased By"] {
        let text = format!(
            "Date,{name},Amount,Currency,Text\n2026-11-01,A,5.00,USD,a\n2026-11-02,,-9.00,USD,b\n"
        );
        assert_eq!(look(text.as_bytes()).state, State::UnknownFormat, "{name}");
    }
}

#[test]
fn objects_of_an_api_are_not_taken_for_a_report_in_major_units() {
    let row = "txn_1,charge,ch_1,1000,59,941,usd,2026-11-01 10:00,x\n\
               txn_2,refund,re_1,-500,0,-500,usd,2026-11-02 10:00,y\n";
    let with = |created: &str| {
        let head = format!("id,type,source,amount,fee,net,currency,{created},description");
        look(format!("{head}\n{row}").as_bytes())
    };
    assert_eq!(with("Created (UTC)").format, Format::parse("stripe"));
    assert_eq!(with("created").state, State::UnknownFormat);
    for head in ["id,object,amount,currency,created,description", "id,amount,currency,created,text"]
    {
        let object = if head.contains("object") { "refund," } else { "" };
        let row = |id: u8, amount: &str| format!("{id},{object}{amount},usd,2026-11-0{id},x\n");
        let text = format!("{head}\n{}{}", row(1, "1000"), row(2, "-500"));
        assert_eq!(look(text.as_bytes()).state, State::UnknownFormat, "{head}");
    }
}

/// Of a payment to many, each would be a statement of an account that is nobody's own.
#[test]
fn an_account_behind_a_payee_s_name_is_not_the_own_one() {
    let accounts = |head: &str, rows: [&str; 2]| {
        let [first, second] = rows;
        let text = format!("{head},Amount (EUR)\n{first},-5.00\n{second},7.00\n");
        let found = look(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{text}: {:?}", found.sums.problems);
        found.sums.statements.into_iter().map(|sum| sum.head.account).collect::<Vec<_>>()
    };
    let of = |name: &str| Some(name.to_owned());
    let payee = "Date,Payee,Account number,Payment reference";
    let rows = ["2026-11-01,A,DE1,a", "2026-11-02,B,DE2,b"];
    assert_eq!(accounts(payee, rows), [None]);
    assert_eq!(accounts(payee, ["2026-11-01,A,DE1,a", "2026-11-02,A,DE1,b"]), [None]);
    let apart = "Account number,Date,Payee,Payment reference";
    assert_eq!(accounts(apart, ["DE1,2026-11-01,A,a", "DE1,2026-11-02,B,b"]), [of("DE1")]);
    assert_eq!(accounts(apart, ["DE1,2026-11-01,A,a", "DE2,2026-11-02,B,b"]), [None]);
    let own = "Account number,Date,Payment reference";
    let two = ["DE1,2026-11-01,a", "DE2,2026-11-02,b"];
    assert_eq!(accounts(own, two), [of("DE1"), of("DE2")], "nobody else is named");
}

#[test]
fn days_that_could_be_two_are_said() {
    let with = |day: &str| {
        let rows = format!("01/02/2026,a,-5.00,USD\n{day},b,7.00,USD\n");
        let found = look(format!("Date,Description,Amount,Currency\n{rows}").as_bytes());
        assert_eq!(found.state, State::Ok, "{day}");
        let days = found.sums.statements[0].head.from;
        (days.is_some(), found.sums.problems_total)
    };
    assert_eq!(with("03/04/2026"), (false, 1));
    assert_eq!(with("03/14/2026"), (true, 0));
}

/// The balance shows that the account paid both.
#[test]
fn a_fee_beside_the_amount_is_taken_from_it_where_the_balances_say_so() {
    let head = "Type,Completed Date,Description,Amount,Fee,Currency,State,Balance";
    let rows = "TOPUP,2026-11-01 10:00:00,a,1000.00,0.00,EUR,COMPLETED,1000.00\n\
                TRANSFER,2026-11-02 10:00:00,b,-5.00,0.10,EUR,COMPLETED,994.90\n";
    reads("besides", &format!("{head}\n{rows}"), "EUR");
    let within = rows.replace("-5.00,0.10", "-5.10,0.10");
    reads("within", &format!("{head}\n{within}"), "EUR");
    let neither = rows.replace("994.90", "994.80");
    assert_eq!(look(format!("{head}\n{neither}").as_bytes()).state, State::Quarantined);
}

#[test]
fn exports_of_banks_in_german_french_and_dutch_are_read() {
    for (what, currency, text) in [
        (
            "turnover in euros, under words and above them",
            "EUR",
            ";\n\"Umsätze Girokonto\";\"Zeitraum: 30 Tage\";\n\
             \"Neuer Kontostand\";\"1.003,90 EUR\";\n\n\
             \"Buchungstag\";\"Wertstellung (Valuta)\";\"Vorgang\";\"Buchungstext\";\
             \"Umsatz in EUR\";\n\
             \"05.06.2026\";\"05.06.2026\";\"Lastschrift\";\"a\";\"-5,10\";\n\
             \"04.06.2026\";\"04.06.2026\";\"Gutschrift\";\"b\";\"1.000,00\";\n\n\
             \"Alter Kontostand\";\"9,00 EUR\";\n",
        ),
        (
            "sides with their currency",
            "CHF",
            "Datum von:;=\"2026-06-01\"\nWährung:;=\"CHF\"\n\n\
             Datum;Bewegungstyp;Avisierungstext;Gutschrift in CHF;Lastschrift in CHF;Label\n\
             05.06.2026;Buchung;\"a\";;-5.10;\n04.06.2026;Buchung;\"b\";1000;;\n\nHinweis:\nx\n",
        ),
        (
            "sides with their currency in French",
            "CHF",
            "Date;Texte de notification;Crédit en CHF;Débit en CHF\n\
             05.06.2026;a;;-5.10\n04.06.2026;b;1000;\n",
        ),
        (
            "sides behind a currency, and a part of one of them",
            "CHF",
            "Kontonummer:;0123;\nAnfangssaldo:;0.00;\n\n\
             Abschlussdatum;Buchungsdatum;Valutadatum;Währung;Belastung;Gutschrift;Einzelbetrag;\
             Saldo;Transaktions-Nr.;Beschreibung1;Beschreibung2\n\
             2026-06-05;2026-06-05;2026-06-05;CHF;-5.10;;;994.90;T1;\"a\";\"x\";;\n\
             2026-06-04;2026-06-04;2026-06-04;CHF;;1000.00;;1000.00;T2;\"b\";\"x\";;\n",
        ),
        (
            "Austrian names",
            "EUR",
            "\"Buchungsdatum\",\"Partnername\",\"Betrag\",\"Währung\",\"Buchungs-Details\",\
             \"Buchungsreferenz\"\n\"04.06.2026\",\"A\",\"1.000,00\",\"EUR\",\"b\",\"r1\"\n\
             \"05.06.2026\",\"B\",\"-5,10\",\"EUR\",\"a\",\"r2\"\n",
        ),
        (
            "balances before and after, by tabs",
            "EUR",
            "Rekeningnummer\tMuntsoort\tTransactiedatum\tRentedatum\tBeginsaldo\tEindsaldo\t\
             Transactiebedrag\tOmschrijving\n\
             1\tEUR\t20260604\t20260604\t10,00\t1010,00\t1000,00\tb\n\
             1\tEUR\t20260605\t20260605\t1010,00\t1004,90\t-5,10\ta\n",
        ),
        (
            "a local amount with a currency of its own",
            "EUR",
            "Statut;Date de l'opération (UTC);Nom de la contrepartie;Montant total (TTC);Devise;\
             Montant total (TTC) (local);Devise (local)\n\
             Exécuté;15-06-2026 10:00:00;A;-5,10;EUR;-6,00;USD\n\
             Exécuté;14-06-2026 10:00:00;B;1000,00;EUR;1000,00;EUR\n",
        ),
    ] {
        reads(what, text, currency);
    }
    let pending = "Buchungstag;Buchungstext;Umsatz in EUR\noffen;a;-5,00\n04.06.2026;b;7,00\n\
                   03.06.2026;c;-1,00\n";
    let wanted = [(EntryStatus::Booked, 2), (EntryStatus::Pending, 1)];
    assert_eq!(statuses("not booked", pending), wanted);
    let sums = look(pending.as_bytes()).sums;
    let debits = [&sums.totals, &sums.booked]
        .map(|of| of.values().map(|totals| totals.debit_minor).sum::<i128>());
    assert_eq!(debits, [600, 100], "with and without what was not booked");
    let flagged = "Buchungstag;Verwendungszweck;Währung;Umsatz;\n04.06.2026;a;EUR;5,10;S\n\
                   03.06.2026;b;EUR;1.000,00;H\n";
    reads("a flag without a name", flagged, "EUR");
    let other = flagged.replace(";S\n", ";S\n02.06.2026;c;EUR;-5,00;S\n");
    assert_ne!(look(other.as_bytes()).state, State::Ok, "a correction");
}

#[test]
fn balances_beside_a_table_are_those_of_its_rows() {
    let words = |before: &str, after: &str| {
        format!(
            "\"Neuer Kontostand\";\"{after} EUR\";\n\n\
             \"Buchungstag\";\"Buchungstext\";\"Umsatz in EUR\";\n\
             \"05.06.2026\";\"a\";\"-5,10\";\n\"04.06.2026\";\"b\";\"1.000,00\";\n\n\
             \"Alter Kontostand\";\"{before} EUR\";\n"
        )
    };
    let whole = words("9,00", "1.003,90");
    reads("words", &whole, "EUR");
    let statement = look(whole.as_bytes()).sums.statements.remove(0);
    let balances = [statement.opening, statement.closing].map(|of| of.unwrap().minor);
    assert_eq!((statement.ties, balances), (Some(true), [900, 100_390]));
    let refused = refusals("another amount", &words("9,00", "1.003,91"));
    assert!(refused.iter().any(|one| one.1 == "closing balance"), "{refused:?}");
    let fields = |before: &str, after: &str, count: u8| {
        format!(
            "Anfangssaldo:;{before};\nSchlusssaldo:;{after};\n\
             Anzahl Transaktionen in diesem Zeitraum:;{count};\n\n\
             Buchungsdatum;Währung;Belastung;Gutschrift;Saldo;Beschreibung1;\n\
             2026-06-05;CHF;-5.10;;994.90;\"a\";\n2026-06-04;CHF;;1000.00;1000.00;\"b\";\n"
        )
    };
    let whole = fields("0.00", "994.90", 2);
    reads("fields", &whole, "CHF");
    assert_eq!(look(whole.as_bytes()).sums.problems_total, 0);
    for (before, after, name) in [("1.00", "994.90", "opening"), ("0.00", "995.90", "closing")] {
        let refused = refusals(name, &fields(before, after, 2));
        let field = format!("{name} balance beside the rows");
        assert!(refused.iter().any(|one| one.1 == field), "{refused:?}");
    }
    let more = look(fields("0.00", "994.90", 3).as_bytes());
    assert_eq!((more.state, more.sums.problems_total), (State::Ok, 1), "some count parts");
}

#[test]
fn a_row_above_the_header_row_is_not_swallowed() {
    let with = |above: &str| {
        format!(
            "{above}\nDate;Text;Amount;Currency\n2026-11-02;b;-1.00;EUR\n2026-11-03;c;7.00;EUR\n"
        )
    };
    let refused = refusals("a row", &with("2026-11-01;a;5.00;EUR"));
    assert_eq!((refused[0].0, refused[0].1.as_str()), (1, "header row"), "{refused:?}");
    for words in ["Export;2026-11-01", "2026-11-01;an export of;all rows;", "From;;2026;"] {
        assert_eq!(look(with(words).as_bytes()).state, State::Ok, "{words}");
    }
}

#[test]
fn exports_of_banks_on_the_web_are_read() {
    for (what, currency, text) in [
        (
            "in English, with a settlement date",
            "EUR",
            "Status,Settlement date (UTC),Operation date (UTC),Total amount (incl. VAT),Currency,\
             Counterparty name,Reference,VAT amount,Transaction ID\n\
             executed,2026-06-05 10:00:00,2026-06-05 09:00:00,-5.10,EUR,A,ref,0.00,tx-1\n\
             executed,2026-06-04 10:00:00,2026-06-04 09:00:00,1000.00,EUR,A,ref,0.00,tx-2\n",
        ),
        (
            "an amount beside both sides, and a local one",
            "GBP",
            "Transaction ID,Date,Type,Name,Amount,Currency,Local amount,Local currency,\
             Description,Money Out,Money In\n\
             tx_1,13/06/2026,Card payment,A,-5.10,GBP,-6.00,EUR,x,-5.10,\n\
             tx_2,14/06/2026,Faster payment,A,1000.00,GBP,1000.00,GBP,x,,1000.00\n",
        ),
        (
            "a payment currency between two amounts",
            "EUR",
            "Date started (UTC),Date completed (UTC),ID,Type,State,Description,Reference,\
             Card number,Orig currency,Orig amount,Payment currency,Amount,Total amount,Fee,\
             Fee currency,Balance,Account\n\
             2026-06-05,2026-06-05,id2,TRANSFER,COMPLETED,x,r,,USD,-6.00,EUR,-5.10,-5.10,0.00,\
             EUR,994.90,Main\n\
             2026-06-04,2026-06-04,id1,TOPUP,COMPLETED,x,r,,EUR,1000.00,EUR,1000.00,1000.00,0.00,\
             EUR,1000.00,Main\n",
        ),
        (
            "a currency right behind each amount",
            "EUR",
            "Fecha;Fecha valor;Movimiento;Más datos;Importe;Saldo\n\
             15/06/2026;15/06/2026;x;y;-5,10EUR;994,90EUR\n\
             14/06/2026;14/06/2026;x;y;1.000,00EUR;1.000,00EUR\n",
        ),
        (
            "amounts in rupees",
            "INR",
            "Date,Narration,Value Date,Withdrawal Amt. (INR),Deposit Amt. (INR),Closing Balance\n\
             14/06/26,x,14/06/26,,1000.00,1000.00\n15/06/26,x,15/06/26,5.10,,994.90\n",
        ),
    ] {
        reads(what, text, currency);
    }
}

/// Whoever describes the file wants to know what is missing.
#[test]
fn a_file_of_rows_that_is_not_known_says_which_columns_lack() {
    let found = |head: &str| {
        let found = look(format!("{head}\n2026-11-01,a,-1.00,x\n2026-11-02,b,2.00,y\n").as_bytes());
        assert_eq!(found.state, State::UnknownFormat, "{head}");
        found.sums.problems[0].found.clone()
    };
    for (head, lacks) in [
        ("When,Text,Amount,Currency", "none is known of: date)"),
        ("Date,Text,Moved,Currency", "none is known of: amount)"),
        ("Date,Text,Debit,Currency", "none is known of: amount)"),
        ("Date,Text,Amount,Which", "none is known of: currency)"),
        ("Date,Who,Amount (EUR),Which", "none is known of: text or reference)"),
        ("One,Two,Three,Four", "none is known of: date, amount, currency, text or reference)"),
        ("Date,Text,Amount,Currency", "or what the rows say, is left open)"),
    ] {
        let said = found(head);
        assert!(said.ends_with(lacks), "{head}: {said}");
    }
}

/// The problems of a file that was changed here and there, as (field, expected, found).
fn problems_of(name: &str, changes: &[(&str, &str)]) -> Vec<(String, String, String)> {
    let mut text = fixture(name);
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let problems = look(text.as_bytes()).sums.problems;
    problems.into_iter().map(|p| (p.field, p.expected, p.found)).collect()
}

/// Of all three reports; and a batch whose rows all stand twice comes to nothing, too.
#[test]
fn a_reference_that_a_spreadsheet_wrote_and_a_batch_that_stands_twice_are_refused() {
    for (name, from) in [
        ("psp/adyen_settlement.csv", "PSPREF0000000001"),
        ("psp/adyen_settlement.csv", "order-1"),
        ("psp/adyen_settlement.csv", "MODREF0000000001"),
        ("psp/adyen_accounting.csv", "PSPREF0000000001"),
        ("psp/adyen_accounting.csv", "order-1"),
        ("psp/adyen_accounting.csv", "MODREF0000000001"),
        ("psp/adyen_received.csv", "PSPREF0000000001"),
        ("psp/adyen_received.csv", "order-1"),
    ] {
        let problems = problems_of(name, &[(from, "7.4E+022")]);
        let said = "a reference: this file went through a spreadsheet";
        let is_said = problems.iter().any(|one| one.1 == said && one.2 == "7.4E+022");
        assert!(is_said, "{name}: {problems:?}");
    }
    let text = fixture("psp/adyen_settlement.csv");
    let (head, rows) = text.split_once('\n').unwrap();
    let twice = look(format!("{head}\n{rows}{rows}").as_bytes());
    assert_eq!(twice.state, State::Quarantined, "{:?}", twice.sums.problems);
    let is_said = |found: &str| twice.sums.problems.iter().any(|one| one.found.contains(found));
    assert!(is_said("every row twice") && is_said("the payout of batch"), "one after the other");
    let each: String = rows.lines().map(|row| format!("{row}\n{row}\n")).collect();
    assert_eq!(look(format!("{head}\n{each}").as_bytes()).state, State::Quarantined);
}

#[test]
fn what_cannot_be_read_surely_says_where_and_why() {
    let (adyen, stripe) = ("psp/adyen_settlement.csv", "psp/stripe_payout.csv");
    let (paypal, checkout) = ("psp/paypal_stl.csv", "psp/checkout_breakdown.csv");
    for (name, changes, field, expected, found) in [
        (
            adyen,
            [(",98.50,", ",98.505,")],
            "Net Credit (NC)",
            "at most 2 decimals of EUR",
            "98.505",
        ),
        (adyen, [(",98.50,", ",98,50,")], "row", "26 fields", "27"),
        (
            adyen,
            [(",EUR,,98.50", ",EUR,1,98.50")],
            "Net Debit (NC) and Net Credit (NC)",
            "one of the two",
            "1, 98.50",
        ),
        (
            adyen,
            [("74000000000000000000001", "7.4E+022")],
            "ARN",
            "23 digits: this file went through a spreadsheet",
            "7.4E+022",
        ),
        (adyen, [(",EUR,,98.50", ",EUX,,98.50")], "Net Currency", "an ISO 4217 currency", "EUX"),
        (stripe, [("3.20,96.80", "3.20,96.90")], "net", "gross less fee, 96.80 USD", "96.90 USD"),
        (
            stripe,
            [("jpy,1500,60,1440", "jpy,1500.5,60,1440.5")],
            "gross",
            "at most 0 decimals of JPY",
            "1500.5",
        ),
        (
            paypal,
            [("\"CR\",10000", "\"XX\",10000")],
            "transaction debit or credit",
            "CR or DR",
            "XX",
        ),
        (
            paypal,
            [("10000,\"USD\"", "100.00,\"USD\"")],
            "gross transaction amount",
            "digits without a sign or a decimal mark",
            "100.00",
        ),
        (paypal, [("\"SC\",6", "\"SC\",7")], "SC count of rows", "7", "6"),
        (
            paypal,
            [("\"SB\",\"T1\"", "\"XX\",\"T1\"")],
            "row",
            "RH, FH, SH, CH, SB, SF, SC, RF, RC, FF",
            "XX",
        ),
        (
            checkout,
            [("-1.5,48.5", "-1.5,48.6")],
            "Net In Holding Currency",
            "gross + deduction, 48.50 USD",
            "48.60 USD",
        ),
    ] {
        let problems = problems_of(name, &changes);
        let wanted = (field.to_owned(), expected.to_owned(), found.to_owned());
        assert!(problems.contains(&wanted), "{name} {changes:?}: {problems:?}");
    }
}

#[test]
fn fractions_of_a_cent_add_up_exactly_and_are_told_in_cents() {
    let name = "psp/checkout_fractions.csv";
    let net = "Net In Holding Currency".to_owned();
    let wanted = "whole minor units; its rows of payout 0000001K2 were rounded, to 135.53 USD";
    let told = (net.clone(), wanted.to_owned(), "135.52850000 USD".to_owned());
    assert_eq!(problems_of(name, &[]), [told]);
    for (from, to, expected, found) in [
        (",97.0865", ",97.0866", "gross + deduction, 97.08650000 USD", "97.08660000 USD"),
        (",97.0865", ",97.09", "gross + deduction, 97.08650000 USD", "97.09 USD"),
        (",97.0865", ",97.086500001", "at most 8 decimals", "97.086500001"),
        (",97.0865", ",97.08.65", "an amount in digits", "97.08.65"),
    ] {
        let problems = problems_of(name, &[(from, to)]);
        let problem = (net.clone(), expected.to_owned(), found.to_owned());
        assert!(problems.contains(&problem), "{to}: {problems:?}");
        let text = fixture(name).replacen(from, to, 1);
        assert_eq!(look(text.as_bytes()).state, State::Quarantined, "{to}");
    }
}

/// A row of whole cents keeps its amount, on whichever side of nil the fractions before it stand.
#[test]
fn a_row_of_whole_cents_is_not_rounded() {
    let head = "Type,Payment ID,Reference,Holding Currency,Payout ID,Gross In Holding Currency,\
                Deduction In Holding Currency,Net In Holding Currency";
    for part in ["0.005", "-0.005", "-0.0149", "0.0001"] {
        let rows = format!("Fee,,,USD,P,0,{part},{part}\nCharge,p,o,USD,P,1.00,0,1.00\n");
        let only = look(format!("{head}\nFee,,,USD,P,0,{part},{part}\n").as_bytes()).sums.totals;
        let both = look(format!("{head}\n{rows}").as_bytes());
        assert_eq!(both.state, State::Ok, "{part}: {:?}", both.sums.problems);
        let net = |totals: &BTreeMap<Currency, Totals>| -> i128 {
            totals.values().map(Totals::net_minor).sum()
        };
        assert_eq!(net(&both.sums.totals) - net(&only), 100, "{part}");
    }
}

#[test]
fn a_payout_of_fractions_is_rounded_and_said() {
    let head = "Entity ID,Holding Currency,Payout ID,Payout Date,Payout Amount,Fees,Payments";
    let payout = |amounts: &str| {
        let row = format!("ent_1,USD,P1,2026-06-02T00:00:00.000,{amounts}");
        look(format!("{head}\n{row}\n").as_bytes())
    };
    let found = payout("86.98650000,-1,87.9865");
    let totals = found.sums.totals.values().next().map(|totals| totals.credit_minor);
    assert_eq!((found.state, totals), (State::Ok, Some(8_699)), "{:?}", found.sums.problems);
    let problems: Vec<&str> = found.sums.problems.iter().map(|p| p.expected.as_str()).collect();
    assert_eq!(problems, ["whole minor units; it was rounded to 86.99 USD"]);
    assert_eq!(payout("86.98,-1,87.98").sums.problems_total, 0);
    assert_eq!(payout("8.7E1,-1,88").state, State::Quarantined);
}

/// Nothing tells which of two columns is meant: the first of them could be anybody's.
#[test]
fn a_report_with_a_column_of_money_twice_is_refused() {
    for (name, mark, column, value) in [
        ("adyen_settlement.csv", ',', "Net Credit (NC)", "1.00"),
        ("adyen_settlement.csv", ',', "Gross Currency", "USD"),
        ("adyen_settlement.csv", ',', "Markup (NC)", "0"),
        ("adyen_accounting.csv", ',', "Payable (SC)", "1.00"),
        ("adyen_accounting.csv", ',', "Main Amount", "77.00"),
        ("adyen_accounting.csv", ',', "Settlement Currency", "USD"),
        ("adyen_received.csv", ',', "Amount", "7.00"),
        ("stripe_payout.csv", ',', "gross", "7.00"),
        ("stripe_history.csv", ',', "Currency", "eur"),
        ("braintree_fees.csv", ',', "Settlement Amount", "7.00"),
        ("checkout_actions.csv", ',', "Holding Currency", "USD"),
        ("checkout_actions.csv", ',', "Holding Currency Amount", "7.00"),
        ("checkout_breakdown.csv", ',', "Gross in Holding Currency", "7"),
        ("checkout_payouts.csv", ',', "Payout Amount", "7"),
        ("mollie.csv", ',', "Amount", "7.00"),
        ("shopify.csv", ',', "Net", "7.00"),
        ("amazon.tsv", '\t', "amount", "7,00"),
        ("mercadopago.csv", ',', "FEE_AMOUNT", "7.00"),
        ("mercadopago_release.csv", ';', "MP_FEE_AMOUNT", "7.00"),
        ("paypal_activity.csv", ',', "Balance", "7.00"),
    ] {
        let text = fixture(&format!("psp/{name}"));
        let rows = text.lines().enumerate();
        let rows = rows.map(|(at, row)| {
            let first = if at == 0 { column } else { value };
            format!("{first}{mark}{row}\n")
        });
        let found = look(rows.collect::<String>().as_bytes());
        assert_eq!(found.state, State::Quarantined, "{name}: {column}");
        let is_said = |problem: &Problem| {
            let is_header = problem.found.contains("2 of them, columns 1 and ");
            is_header || problem.expected.contains("the other column of this name")
        };
        let problems = &found.sums.problems;
        assert!(problems.iter().any(is_said), "{name}: {column}: {problems:?}");
    }
    let text =
        fixture("psp/paypal_stl.csv").replace("\"Invoice ID\"", "\"Gross Transaction Amount\"");
    assert_eq!(look(text.as_bytes()).state, State::Quarantined);
}

#[test]
fn a_fee_report_of_braintree_books_what_was_settled() {
    let name = "psp/braintree_fees.csv";
    assert_eq!(look(fixture(name).as_bytes()).version, "transaction_level_fees");
    for (from, to, expected, found) in [
        ("EUR,100.00,", "EUR,,", "an amount in digits", ""),
        ("EUR,100.00,", "EUR,-100.00,", "an amount in digits", "-100.00"),
        ("EUR,100.00,", "EUR,100.005,", "at most 2 decimals of EUR", "100.005"),
        ("EUR,100.00,", "EUX,100.00,", "an ISO 4217 currency", "EUX"),
        (",sale,", ",void,", "sale or credit", "void"),
        (",2.90", ",2.905", "at most 2 decimals of EUR", "2.905"),
    ] {
        let problems = problems_of(name, &[(from, to)]);
        let is_said = |(_, e, f): &(String, String, String)| e == expected && f == found;
        assert!(problems.iter().any(is_said), "{to}: {problems:?}");
        let state = look(fixture(name).replacen(from, to, 1).as_bytes()).state;
        let is_fee = to.ends_with("905");
        assert_eq!(state == State::Ok, is_fee, "{to}: a fee is in no sum");
    }
    let text = fixture(name).replace(",2026-06-02,", ",,");
    let statuses: Vec<_> = look(text.as_bytes()).sums.statuses.into_iter().collect();
    assert_eq!(statuses, [(EntryStatus::Pending, 3)], "no day of settlement");
}

#[test]
fn paypal_is_only_read_where_the_decimals_of_a_currency_are_sure() {
    let text = fixture("psp/paypal_stl.csv").replace("USD", "JPY");
    let found = look(text.as_bytes());
    assert_eq!(found.state, State::Ok, "the amounts show whole yen: {:?}", found.sums.problems);
    for code in ["JPY", "HUF", "TWD"] {
        let round = fixture("psp/paypal_stl.csv").replace("USD", code);
        let round = round.replace("320", "300").replace("58", "100").replace("980", "900");
        let found = look(round.as_bytes());
        assert_eq!(found.state, State::Quarantined, "{code}");
        let last = found.sums.problems.last().unwrap();
        assert!(last.expected.contains("[[format]]"), "{last:?}");
    }
}

#[test]
fn amounts_whose_sign_nothing_shows_are_not_taken_for_credits() {
    let head = "Date,Description,Amount,Currency\n";
    let found = look(format!("{head}2026-06-01,a,5.00,EUR\n2026-06-02,b,6.10,EUR\n").as_bytes());
    assert_eq!(found.state, State::Quarantined);
    let found = look(format!("{head}2026-06-01,a,5.00,EUR\n2026-06-02,b,-6.10,EUR\n").as_bytes());
    assert_eq!(found.state, State::Ok);
    for (what, text) in [
        ("a status", "Date,Text,Amount,Currency,Status\n2026-06-01,a,-5.00,EUR,On its way\n"),
        (
            "marks that differ",
            "Date;Text;Amount;Currency\n2026-06-01;a;-5.10;EUR\n2026-06-01;a;-5,10;EUR\n",
        ),
        ("a mark that may group", "Date,Text,Amount,Currency\n2026-06-01,a,-5.100,EUR\n"),
        ("two amounts", "Date,Text,Amount,Betrag,Currency\n2026-06-01,a,-5.10,-5.10,EUR\n"),
        ("no currency", "Date,Text,Amount\n2026-06-01,a,-5.10\n"),
    ] {
        let found = look(text.as_bytes());
        assert_eq!(found.state, State::UnknownFormat, "{what}");
        let problem = &found.sums.problems[0];
        assert!(problem.found.contains("Date | Text | Amount"), "{what}: {problem:?}");
        assert!(problem.expected.contains("[[format]]"), "{what}: {problem:?}");
    }
}

#[test]
fn sums_below_the_rows_and_fees_beside_them_are_not_passed_over() {
    let head = "Date,Description,Amount,Fee,Currency\n";
    for text in [
        format!("{head}2026-06-01,a,-5.00,0,EUR\n,Total,-5.00,,EUR\n"),
        format!("{head}2026-06-01,a,-5.00,0.10,EUR\n"),
    ] {
        assert_eq!(look(text.as_bytes()).state, State::Quarantined, "{text}");
    }
}

#[test]
fn what_was_taken_besides_is_known_by_more_names() {
    let with = |name: &str, first: &str, second: &str| {
        let rows = format!("2026-06-01,a,-5.00,{first},EUR\n2026-06-02,b,80.50,{second},EUR\n");
        format!("Date,Description,Amount,{name},Currency\n{rows}")
    };
    for name in ["Charges", "Bank charges", "Commission", "Spesen", "Comisión", "Fee EUR"] {
        let refused = refusals(name, &with(name, "", "10.00"));
        assert!(refused.iter().any(|one| one.2 == "fees beside the amounts"), "{refused:?}");
        for none in ["", "0.00"] {
            assert_eq!(look(with(name, none, none).as_bytes()).state, State::Ok, "{name}");
        }
    }
    // Who bears them.
    assert_eq!(look(with("Charges", "SHA", "OUR").as_bytes()).state, State::Ok);
    for name in ["Total", "Net"] {
        let wanted = (3, name.to_owned(), "70.50".to_owned());
        assert!(refusals(name, &with(name, "-5.00", "70.50")).contains(&wanted), "{name}");
        assert_eq!(look(with(name, "-5.00", "80.50").as_bytes()).state, State::Ok, "{name}");
    }
}

/// A title says the currency of a table whose balances prove what moved.
#[test]
fn a_title_may_say_the_currency_of_the_rows_below_it() {
    let text = "Izvod prometa po računu HR0000000000000000001 Valuta EUR Razdoblje \
                01.06.2026 - 30.06.2026\n\
                Redni broj;Datum valute;Datum izvršenja;Opis plaćanja;Broj računa;Isplate;Uplate;\
                Stanje;PNB platitelja;PNB primatelja;Platitelj/Primatelj;Mjesto;Referenca\n\
                1;02.06.2026;02.06.2026;Naknada;HR0000000000000000001;5,10;;994,90;;;Banka;;R1\n\
                2;05.06.2026;05.06.2026;order-1;HR0000000000000000001;;1.000,00;1.994,90;;\
                HR00 17;Kupac;;R2\n";
    let found = look(text.as_bytes());
    let problems = &found.sums.problems;
    assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{problems:?}");
    let totals = found.sums.totals.iter().next().unwrap();
    assert_eq!(totals.0.code(), "EUR");
    assert_eq!((totals.1.credit_minor, totals.1.debit_minor), (100_000, 510));
    for title in ["Valuta 02.06.2026", "Valuta", "Razdoblje EUR"] {
        let other = text.replacen("Valuta EUR", title, 1);
        assert_eq!(look(other.as_bytes()).state, State::UnknownFormat, "{title}");
    }
}

/// Nothing before the oldest row proves its amount but a balance that the file tells beside it.
#[test]
fn the_balance_before_all_rows_proves_the_oldest_of_them() {
    let head = "Date;Text;Amount;Balance;Currency\n";
    let rows = |first: &str| {
        format!("02.06.2026;order-1;{first};1010.00;EUR\n03.06.2026;order-2;-5.50;1004.50;EUR\n")
    };
    let turned = |first: &str| {
        format!("03.06.2026;order-2;-5.50;1004.50;EUR\n02.06.2026;order-1;{first};1010.00;EUR\n")
    };
    let told = |first: &str| {
        [
            format!("{head}01.06.2026;Opening balance;;1000.00;EUR\n{}", rows(first)),
            format!("{head};Balance brought forward;;1000.00;EUR\n{}", rows(first)),
            format!("{head}{}01.06.2026;Saldo iniziale;;1000.00;EUR\n", turned(first)),
            format!("Opening balance:;1000.00;;;\n{head}{}", rows(first)),
        ]
    };
    for text in told("10.00") {
        let found = look(text.as_bytes());
        assert_eq!(found.state, State::Ok, "{text}: {:?}", found.sums.problems);
        let totals = found.sums.totals.values().next().unwrap();
        assert_eq!((totals.credit_minor, totals.debit_minor), (1_000, 550), "{text}");
    }
    for text in told("11.00") {
        let found = look(text.as_bytes());
        let is_said = |problem: &Problem| problem.field == "opening balance beside the rows";
        assert_eq!(found.state, State::Quarantined, "{text}");
        assert!(found.sums.problems.iter().any(is_said), "{text}: {:?}", found.sums.problems);
    }
    // So does a closing balance; and one that stands where money would is none.
    let closing = |minor: &str| format!("{head}{};Closing balance;;{minor};EUR\n", rows("10.00"));
    assert_eq!(look(closing("1004.50").as_bytes()).state, State::Ok);
    assert_eq!(look(closing("1004.00").as_bytes()).state, State::Quarantined);
    for text in [
        format!("{head}01.06.2026;Opening balance;1000.00;1000.00;EUR\n{}", rows("10.00")),
        format!("{head}{}01.06.2026;Saldovortrag;1000.00;1000.00;EUR\n", turned("10.00")),
    ] {
        let found = look(text.as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Quarantined, 2), "{text}");
        assert!(found.sums.problems[0].found.contains("is it a balance?"), "{text}");
    }
}

#[test]
fn a_balance_among_the_rows_is_no_movement() {
    let head = "Datum;Verwendungszweck;Betrag;Währung\n";
    let rows = "01.06.2026;order-1;-5,00;EUR\n02.06.2026;order-2;7,00;EUR\n";
    let with = |text: &str| look(format!("{head}{rows}02.06.2026;{text};102,00;EUR\n").as_bytes());
    let found = with("Tagessaldo");
    assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{:?}", found.sums.problems);
    assert!(found.sums.problems[0].found.contains("tagessaldo: a balance"));
    for text in ["Endsaldo", "Closing balance", "OPENING  BALANCE", "Disponibilita al"] {
        let found = with(text);
        assert_eq!((found.state, found.sums.entries), (State::Quarantined, 2), "{text}");
        assert!(found.sums.problems[0].found.contains("is it a balance?"), "{text}");
    }
    for text in ["Schlusssaldo per 30.06.2026", "Balance b/f", "Kontostand 30.06.", "Turnover"] {
        let found = with(text);
        assert_eq!((found.state, found.sums.entries), (State::Quarantined, 2), "{text}");
    }
    for text in [
        "Tagessaldo Juni",
        "order-3",
        "",
        "Total 4711 Berlin",
        "Primo Hotel",
        "Turnover tax",
        "Kontostandsabfrage",
    ] {
        let found = with(text);
        assert_eq!((found.state, found.sums.entries), (State::Ok, 3), "{text}: who pays writes");
    }
}

#[test]
fn a_balance_is_known_in_the_languages_of_banks() {
    let head = "Date;Description;Amount;Currency\n2026-10-31;";
    let rows = ";100.00;EUR\n2026-11-01;a;-1.50;EUR\n2026-11-02;b;10.50;EUR\n";
    for text in [
        "Saldo anterior",
        "SALDO DO DIA",
        "S A L D O",
        "Saldo",
        "Saldo al 31/10/2026",
        "Saldo em 31/10",
        "Solde précédent",
        "SOLDE CRÉDITEUR AU 31/10/2026",
        "Nouveau solde",
        "Alter Saldo",
        "Previous balance",
        "Balance as of 10/31",
        "Bal B/F",
        "Bal. c/d",
        "Carried forward",
        "Zwischensumme",
        "Stan początkowy",
        "Slotsaldo",
        "Devreden bakiye",
        "Záró egyenleg",
        "Sold inițial",
        "Zůstatek",
        "Počiatočný stav",
        "Total debits",
        "Saldo disponible",
        "Gesamtsumme",
        "Balance",
        "B/F",
        "C/F",
        "New balance",
        "New Balance as of 11/30",
        "Account balance",
        "Book balance",
        "Startsaldo",
        "Slutsaldo",
        "Ny saldo",
        "Gammal saldo",
        "Kontostand neu",
        "Kontostand alt",
        "Vortrag",
        "Saldo ant.",
        "Saldo em conta",
        "Saldo ultimo",
        "Saldo primo",
        "Primo",
        "Ultimo",
        "Saldo ostatni",
        "Zostatok",
        "Stav účtu",
        "Stan konta",
        "Op. Bal",
        "Running total",
        "Total",
        "Net total",
        "Sum of transactions",
        "Summa",
        "Yhteensä",
        "Totale entrate",
        "Totaal bij",
        "Summe Haben",
        "Summe Umsätze",
        "Umsatzsumme",
        "Gesamtbetrag",
        "Day sum",
        "Остаток на конец",
        "期末残高",
        "Stanje",
        "Jääk",
        "Fin de mes saldo",
    ] {
        let refused = refusals(text, &format!("{head}{text}{rows}"));
        let said = refused.iter().any(|one| one.0 == 2 && one.2.contains("is it a balance?"));
        assert!(said, "{text}: {refused:?}");
    }
    for text in [
        "Saldo factura 17",
        "balance of order 17",
        "Saldo 2024/117",
        "Bal",
        "Sold",
        "Final payment",
        "Balance sheet",
        "Saldo Rechnung",
        "Total Energies",
        "Sum Sum Bar",
        "Ultimo Caffè",
        "Summe aus Rechnung",
    ] {
        let found = look(format!("{head}{text}{rows}").as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Ok, 3), "{text}: who pays writes");
    }
}

/// Some banks write the balances as rows of the table.
#[test]
fn balances_among_the_rows_prove_what_moved_between_them() {
    let row = |kind: u8, text: &str, amount: &str, way: char| {
        format!("EE1;{kind};1{kind}.01.2026;;{text};{amount};EUR;{way}\n")
    };
    let head = "Client account;Row type;Date;Beneficiary/Payer;Details;Amount;Currency;\
                Debit/Credit\n";
    let moved = row(2, "a", "5,10", 'D') + &row(3, "b", "1000,00", 'K');
    let sums = row(5, "Turnover", "5,10", 'D') + &row(6, "Turnover", "1000,00", 'K');
    let with = |opening: &str, closing: &str, between: &str| {
        let opening = row(1, opening, "10,00", 'K');
        format!("{head}{opening}{between}{}", row(7, closing, "1004,90", 'K'))
    };
    let (before, after) = ("Opening balance", "closing balance");
    let whole = with(before, after, &(moved.clone() + &sums));
    reads("whole", &whole, "EUR");
    let statement = look(whole.as_bytes()).sums.statements.remove(0);
    let balances = [statement.opening, statement.closing].map(|of| of.unwrap().minor);
    assert_eq!((statement.ties, balances), (Some(true), [1_000, 100_490]));
    for (what, text) in [
        ("a row is missing", with(before, after, &row(3, "b", "1000,00", 'K'))),
        ("an amount is another", whole.replacen("5,10", "5,11", 1)),
        ("no end", with(before, before, &moved)),
        ("neither", with("Turnover", "Turnover", &moved)),
        ("two begins", with(before, after, &(row(2, before, "10,00", 'K') + &moved))),
    ] {
        let refused = refusals(what, &text);
        assert!(refused.iter().any(|one| one.2.contains("is it a balance?")), "{what}");
    }
}

#[test]
fn sums_of_debits_and_of_credits_are_no_movements() {
    let rows = "2026-11-01,a,-1.50,EUR\n2026-11-02,b,10.50,EUR\n2026-11-03,c,7.25,EUR\n";
    let sums = "2026-11-03,x,-1.50,EUR\n2026-11-03,y,17.75,EUR\n";
    let refused = refusals("sums", &format!("Date,Description,Amount,Currency\n{rows}{sums}"));
    assert!(refused[0].0 == 5 && refused[0].2.contains("are they sums?"), "{refused:?}");
    let rows = "2026-11-01,a,1.50,,EUR\n2026-11-02,b,,10.50,EUR\n2026-11-03,c,,7.25,EUR\n";
    let sums = "2026-11-03,x,1.50,,EUR\n2026-11-03,y,,17.75,EUR\n";
    let text = format!("Date,Description,Debit,Credit,Currency\n{rows}{sums}");
    assert_eq!(refusals("sides", &text)[0].0, 5);
    let other = text.replace(",17.75,", ",17.76,");
    assert_eq!(look(other.as_bytes()).state, State::Ok);
}

#[test]
fn a_currency_is_told_by_the_sign_of_the_euro_or_by_columns_that_agree() {
    for (what, text) in [
        ("a sign", "Date;Text;Amount\n2026-06-01;a;-5,10 €\n2026-06-02;b;1.000,00 €\n"),
        ("a sign in a name", "Date;Text;Amount (€)\n2026-06-01;a;-5,10\n2026-06-02;b;1000,00\n"),
        (
            "two columns",
            "Date;Text;Balance;Currency;Amount;Currency\n\
             2026-06-01;a;4,90;EUR;-5,10;EUR\n2026-06-02;b;1004,90;EUR;1000,00;EUR\n",
        ),
        (
            "a flag in one word",
            "EXPORT;;;;;\nTransactiedatum;Valutacode;CreditDebet;Bedrag;Omschrijving;\n\
             21-06-2026;EUR;D;5,10;a;\n22-06-2026;EUR;C;1000;b;\n",
        ),
    ] {
        let found = look(text.as_bytes());
        let wanted = [("EUR".to_owned(), (100_000, 510))].into_iter().collect();
        let problems = &found.sums.problems;
        let bank_csv = Format::parse("bank_csv");
        assert_eq!(said(&found), (bank_csv, State::Ok, 2, wanted), "{what}: {problems:?}");
    }
    for (what, text) in [
        ("a row without it", "Date;Text;Amount\n2026-06-01;a;-5,10 €\n2026-06-02;b;1,00\n"),
        (
            "columns that differ",
            "Date;Text;Amount;Currency;Balance;Currency\n2026-06-01;a;-5,10;EUR;9,00;USD\n",
        ),
        (
            "a foreign amount",
            "Date;Text;Currency;Amount;Amount Currency\n2026-06-01;a;USD;-5,10;-6,00\n",
        ),
    ] {
        assert_eq!(look(text.as_bytes()).state, State::UnknownFormat, "{what}");
    }
}

/// What a file reads to that holds 1,000.00 in and 5.10 out.
fn reads(what: &str, text: &str, currency: &str) {
    let found = look(text.as_bytes());
    let wanted = [(currency.to_owned(), (100_000, 510))].into_iter().collect();
    let problems = &found.sums.problems;
    let bank_csv = Format::parse("bank_csv");
    assert_eq!(said(&found), (bank_csv, State::Ok, 2, wanted), "{what}: {problems:?}");
}

#[test]
fn a_currency_is_that_of_the_amount_that_moved_the_account() {
    for (what, text) in [
        (
            "each amount has its own",
            "Date;Text;Amount;Currency;Original Amount;Original Currency\n\
             2026-06-01;a;-5,10;EUR;-6,00;USD\n2026-06-02;b;1000,00;EUR;1000,00;EUR\n",
        ),
        (
            "the other amount stands far away",
            "Date,Amount,Currency,Text,Balance,Exchange To Amount\n\
             2026-06-01,-5.10,EUR,a,4.90,6.00\n2026-06-02,1000.00,EUR,b,1004.90,\n",
        ),
    ] {
        reads(what, text, "EUR");
    }
    for (what, text) in [
        (
            "it stands behind the foreign amount",
            "Date;Text;Original Amount;Currency;Amount\n2026-06-01;a;-6,00;USD;-5,10\n",
        ),
        (
            "it stands between the two",
            "Date;Text;Amount;Currency;Foreign Amount\n2026-06-01;a;-5,10;USD;-6,00\n",
        ),
        ("codes that differ", "Date;Text;Amount\n2026-06-01;a;-5,10 PLN\n2026-06-02;b;1,00 EUR\n"),
        ("a code that is none", "Date;Text;Amount\n2026-06-01;a;-5,10 QQQ\n"),
    ] {
        assert_eq!(look(text.as_bytes()).state, State::UnknownFormat, "{what}");
    }
}

#[test]
fn the_signs_of_a_card_s_file_are_only_taken_where_a_balance_shows_them() {
    let head = "Date,Card Number,Description,Amount,Currency";
    let bought = "2026-06-01,1,a,5.10,EUR\n2026-06-02,1,b,-1000.00,EUR\n";
    assert_eq!(look(format!("{head}\n{bought}").as_bytes()).state, State::UnknownFormat);
    let rows = "2026-06-01,1,a,-5.10,EUR,4.90\n2026-06-02,1,b,1000.00,EUR,1004.90\n";
    reads("a balance", &format!("{head},Balance\n{rows}"), "EUR");
    let sides = "Date,Card Number,Description,Debit,Credit,Currency\n\
                 2026-06-01,1,a,5.10,,EUR\n2026-06-02,1,b,,1000.00,EUR\n";
    reads("two sides", sides, "EUR");
}

#[test]
fn signs_are_not_turned_around_where_balances_may_stand_before_their_rows() {
    let head = "Date,Description,Amount,Currency,Balance\n";
    let before = |days: [u8; 3]| {
        let rows =
            days.into_iter().zip([("20.00", "100.00"), ("5.50", "120.00"), ("-1.00", "125.50")]);
        let rows = rows
            .map(|(day, (amount, balance))| format!("2026-06-0{day},a,{amount},EUR,{balance}\n"));
        format!("{head}{}", rows.collect::<String>())
    };
    for days in [[1, 1, 1], [1, 2, 3]] {
        assert_eq!(look(before(days).as_bytes()).state, State::Quarantined, "{days:?}");
    }
    let two = "2026-06-02,a,49.00,EUR,1289.43\n2026-06-01,b,89.05,EUR,1338.43\n";
    assert_eq!(look(format!("{head}{two}").as_bytes()).state, State::Quarantined);
    assert_eq!(look(fixture("bank_csv/inverted.csv").as_bytes()).state, State::Ok);
}

#[test]
fn exports_of_more_banks_are_read() {
    for (what, currency, text) in [
        (
            "the amount beside its sides, and a balance below the rows",
            "EUR",
            "Letzter Kontostand;;;;10,00;EUR\n\
             Buchungstag;Wert;Umsatzart;Verwendungszweck;IBAN;Betrag;Schecks;Soll;Haben;Währung\n\
             1.6.2026;1.6.2026;x;a;DE00;-5,10;;-5,10;;EUR\n\
             2.6.2026;2.6.2026;x;b;DE00;1.000;;;1.000;EUR\nKontostand;2.6.2026;;;1.004,90;EUR\n",
        ),
        (
            "the code within the amount",
            "PLN",
            "#Data operacji;#Opis operacji;#Kwota;\n\
             2026-06-01;\"a\";-5,10 PLN;;\n2026-06-02;\"b\";1 000,00 PLN;;\n",
        ),
        (
            "Swedish names, newest first",
            "SEK",
            "Radnummer;Kontonummer;Valuta;Bokföringsdag;Valutadag;Beskrivning;Belopp;\
             Bokfört saldo\n1;2;SEK;2026-06-02;2026-06-02;b;1000,00;1004,90\n\
             2;2;SEK;2026-06-01;2026-06-01;a;-5,10;4,90\n",
        ),
        (
            "Belgian names",
            "EUR",
            "Volgnummer;Uitvoeringsdatum;Valutadatum;Bedrag;Valuta rekening;Mededeling;Status\n\
             1;01/06/2026;01/06/2026;-5,10;EUR;a;Geaccepteerd\n\
             2;13/06/2026;13/06/2026;1000,00;EUR;b;Geaccepteerd\n",
        ),
        (
            "Polish names with a currency for each amount",
            "PLN",
            "Data księgowania;Tytuł;Kwota transakcji (waluta rachunku);Waluta;Kwota blokady;\
             Waluta;Saldo po transakcji;Waluta\n2026-06-02;b;1000,00;PLN;;;1004,90;PLN\n\
             2026-06-01;a;-5,10;PLN;;;4,90;PLN\n",
        ),
    ] {
        reads(what, text, currency);
    }
}

#[test]
fn exports_of_banks_of_more_countries_are_read() {
    for (what, currency, text) in [
        (
            "an Italian one without a reason",
            "EUR",
            "Data Registrazione;Data valuta;Descrizione;Importo (EUR);\n\
             14/06/2026;14/06/2026;b;1.000,00;\n13/06/2026;13/06/2026;a;-5,10;\n",
        ),
        (
            "a French one without a value date",
            "EUR",
            "Date;Libellé;Débit euros;Crédit euros;\n\
             14/06/2026;\"b\n\";;1\u{a0}000,00;\n13/06/2026;\"a\n\";5,10;;\n",
        ),
        (
            "a Finnish one without a message",
            "EUR",
            "Kirjauspäivä;Määrä;Maksaja;Maksunsaaja;Nimi;Otsikko;Viitenumero;Valuutta\n\
             2026/06/14;1000,00;;x;A;b;;EUR\n2026/06/13;-5,10;x;;B;a;;EUR\n",
        ),
        (
            "a Lithuanian one in English",
            "EUR",
            "\"Account No\",\"\",\"Date\",\"Beneficiary\",\"Details\",\"Amount\",\"Currency\",\
             \"D/K\",\n\
             \"LT1\",\"10\",\"2026-06-13\",\"\",\"Opening balance\",\"10.00\",\"EUR\",\"K\",\n\
             \"LT1\",\"20\",\"2026-06-13\",\"A\",\"a\",\"5.10\",\"EUR\",\"D\",\n\
             \"LT1\",\"20\",\"2026-06-14\",\"B\",\"b\",\"1000.00\",\"EUR\",\"K\",\n\
             \"LT1\",\"86\",\"2026-06-14\",\"\",\"Closing balance\",\"1004.90\",\"EUR\",\"K\",\n",
        ),
        (
            "a Slovak one",
            "EUR",
            "Dátum zaúčtovania;Suma;Mena;Variabilný symbol;Názov protiúčtu;Správa pre príjemcu\n\
             14.06.2026;1 000,00;EUR;1;A;b\n13.06.2026;-5,10;EUR;;B;a\n",
        ),
        (
            "a Slovene one, with another amount and its currency",
            "EUR",
            "Račun;Datum knjiženja;Datum valute;Dobro;Breme;Valuta;Namen;\
             Odliv v izvorni valuti;Izvorna valuta\n\
             1;14.06.2026;14.06.2026;1.000,00;;EUR;b;;\n\
             1;13.06.2026;13.06.2026;;5,10;EUR;a;6,00;USD\n",
        ),
        (
            "a Croatian one with its currency above",
            "EUR",
            "Valuta: EUR;;;;\nDatum valute;Datum izvršenja;Opis plaćanja;Isplate;Uplate;Stanje\n\
             13.06.2026;13.06.2026;a;5,10;;4,90\n14.06.2026;14.06.2026;b;;1.000,00;1.004,90\n",
        ),
        (
            "a Portuguese one with its currency above",
            "EUR",
            "Histórico de conta;;;;\nMoeda:;EUR;;;\n;;;;\n\
             Data Lanc.;Data Valor;Descrição;Valor;Saldo\n\
             13/06/2026;13/06/2026;a;-5,10;4,90\n14/06/2026;14/06/2026;b;1 000,00;1 004,90\n",
        ),
        (
            "a Polish one with its currency and its balances around the table",
            "PLN",
            "mBank;\n\n#Waluta;\nPLN;\n\n#Saldo początkowe;10,00 PLN;\n\n\
             #Data księgowania;#Opis operacji;#Numer konta;#Kwota;#Saldo po operacji;\n\
             2026-06-13;a;;-5,10;4,90;\n2026-06-14;b;;1 000,00;1 004,90;\n\
             ;;;#Saldo końcowe;1 004,90 PLN;\n",
        ),
        (
            "a Polish one with a balance where the day stands",
            "PLN",
            "#Data operacji;#Opis operacji;#Kategoria;#Kwota;#Saldo po operacji;\n\
             2026-06-13;a;x;-5,10 PLN;4,90 PLN;\n2026-06-14;b;x;1 000,00 PLN;1 004,90 PLN;\n\
             #Saldo końcowe;;;1 004,90 PLN;\n",
        ),
    ] {
        reads(what, text, currency);
    }
    let other = "#Data operacji;#Opis operacji;#Kwota;#Saldo po operacji;\n\
                 2026-06-13;a;-5,10 PLN;4,90 PLN;\n2026-06-14;b;1,00 PLN;5,90 PLN;\n\
                 #Saldo końcowe;;6,90 PLN;\n";
    let refused = refusals("another balance", other);
    assert!(refused.iter().any(|one| one.1 == "closing balance beside the rows"), "{refused:?}");
}

/// Such files differ from an account's by nothing but their signs.
#[test]
fn a_currency_above_the_table_is_taken_only_where_signs_show_themselves() {
    for (what, text) in [
        (
            "a card's, without a balance",
            "Moeda:;EUR;;\n;;;\nData Lanc.;Data Valor;Descrição;Valor;\n\
             13/06/2026;13/06/2026;COMPRA;135,33;\n14/06/2026;14/06/2026;PAGAMENTO;-1 374,06;\n",
        ),
        (
            "signs alone",
            "Currency:;EUR;;\nDate;Text;Amount;\n2026-06-13;a;-5,10;\n2026-06-14;b;7,00;\n",
        ),
        (
            "a word that is a code, too",
            "Currency:;ALL;;\nDate;Text;Amount;Balance\n2026-06-13;a;-5,10;4,90\n\
             2026-06-14;b;7,00;11,90\n",
        ),
        (
            "two of them",
            "Currency:;EUR;;\nCurrency:;USD;;\nDate;Text;Amount;Balance\n\
             2026-06-13;a;-5,10;4,90\n2026-06-14;b;7,00;11,90\n",
        ),
    ] {
        assert_eq!(look(text.as_bytes()).state, State::UnknownFormat, "{what}");
    }
}

#[test]
fn rows_without_a_header_row_are_read_only_where_each_says_all() {
    let text = fixture(BARE);
    for (from, to) in [
        ("AT611904300234573201;Bez", "AT611904300234573202;Bez"),
        (";13.06.2026;12.06.2026;", ";13.06.2026;;"),
        ("-5,10;EUR", "-5,10;"),
        ("-5,10;EUR", "-5,10;EUR;x"),
        ("-5,10;", "a;"),
    ] {
        assert!(text.contains(from), "{from}");
        let found = look(text.replacen(from, to, 1).as_bytes());
        assert_eq!(found.state, State::UnknownFormat, "{from} to {to}");
    }
}

#[test]
fn letters_of_central_europe_and_the_baltic_are_read_by_their_words() {
    use encoding_rs::{ISO_8859_2, WINDOWS_1250, WINDOWS_1257};
    for (name, encoding) in [
        ("bank_csv/pl_ing.csv", WINDOWS_1250),
        ("bank_csv/pl_ing.csv", ISO_8859_2),
        ("bank_csv/cz_csob.csv", WINDOWS_1250),
        ("bank_csv/lt_swedbank.csv", WINDOWS_1257),
        ("bank_csv/lv_swedbank.csv", WINDOWS_1257),
    ] {
        let text = fixture(name);
        let (bytes, _, is_lossy) = encoding.encode(&text);
        assert!(!is_lossy, "{name}");
        let found = look(&bytes);
        let problems = &found.sums.problems;
        assert_eq!(said(&found), said(&look(text.as_bytes())), "{name}: {problems:?}");
        let texts = |bytes: &[u8]| -> Vec<String> {
            let lines = items(bytes).into_iter().filter_map(|item| match item {
                Item::Line(line) => Some(line.raw),
                _other => None,
            });
            lines.collect()
        };
        assert_eq!(texts(&bytes), texts(text.as_bytes()), "{name} as {}", encoding.name());
    }
}

/// Of money that came back, or of the payment that it was of: only a balance shows which.
#[test]
fn a_row_whose_money_came_back_is_named() {
    let with = |name: &str, booked: &str, word: &str| {
        format!(
            "Date,Description,Amount,Currency,{name}\n2026-06-01,a,-5.00,EUR,{booked}\n\
             2026-06-02,b,7.00,EUR,{word}\n2026-06-13,c,-7.00,EUR,{booked}\n"
        )
    };
    for word in ["Returned", "Refunded", "Rückerstattet", "Zwrócono"] {
        for (name, booked) in [("Status", "Completed"), ("Type", "Card")] {
            let refused = refusals(word, &with(name, booked, word));
            assert!(refused.contains(&(3, name.to_owned(), word.to_owned())), "{refused:?}");
        }
    }
    let reverted = with("State", "Completed", "Reverted");
    let wanted = [(EntryStatus::Booked, 2), (EntryStatus::Info, 1)];
    assert_eq!(statuses("reverted", &reverted), wanted);
    let balanced = |second: &str, third: &str| {
        format!(
            "Date,Description,Amount,Currency,Type,Balance\n2026-06-01,a,-5.00,EUR,Card,5.00\n\
             2026-06-02,b,7.00,EUR,Returned,{second}\n2026-06-13,c,-7.00,EUR,Card,{third}\n"
        )
    };
    assert_eq!(statuses("it moved", &balanced("12.00", "5.00")), [(EntryStatus::Booked, 3)]);
    let still = refusals("it did not", &balanced("5.00", "-2.00"));
    assert!(still.iter().any(|one| one.1 == "balance"), "{still:?}");
}

/// A sum has no reference, and nobody on its other side.
#[test]
fn a_payee_who_is_called_as_a_sum_is_paid() {
    let with = |row: &str| {
        format!(
            "Date,Payee,Counterparty,Reference,Amount,Currency\n2026-06-01,A,,r1,5.00,EUR\n\
             2026-06-02,{row},-7.00,EUR\n2026-06-13,B,,r3,9.00,EUR\n"
        )
    };
    for row in ["TOTAL,,r2", "PRIMO,Primo Group,", "Saldo,,r2", "Total,Total Energies,r2"] {
        let found = look(with(row).as_bytes());
        let wanted = [("EUR".to_owned(), (1_400, 700))].into_iter().collect();
        assert_eq!((found.state, said(&found).3), (State::Ok, wanted), "{row}");
    }
    for row in ["TOTAL,,", "PRIMO,Primo,", "Opening balance,,r2", "Saldo inicial,Bank,r2"] {
        let refused = refusals(row, &with(row));
        assert!(refused[0].2.contains("is it a balance?"), "{row}: {refused:?}");
        let is_other = refused.iter().any(|one| one.2 == "amounts without a sign");
        assert!(!is_other, "its sign is shown: {refused:?}");
    }
}

#[test]
fn balances_among_the_rows_are_known_by_short_names() {
    for (before, after) in [
        ("Saldo pocz.", "Saldo końc."),
        ("Kontostand alt", "Kontostand neu"),
        ("Stan początkowy", "Stan końcowy"),
        ("stan poczatkowy", "stan koncowy"),
    ] {
        let text = format!(
            "Date;Text;Amount;Currency\n2026-06-01;{before};10,00;EUR\n2026-06-01;a;-5,10;EUR\n\
             2026-06-13;b;1000,00;EUR\n2026-06-13;{after};1004,90;EUR\n"
        );
        reads(before, &text, "EUR");
        assert_eq!(look(text.as_bytes()).sums.statements[0].ties, Some(true), "{before}");
        let other = text.replace("1004,90", "1004,91");
        assert_eq!(look(other.as_bytes()).state, State::Quarantined, "{before}");
    }
}

#[test]
fn more_names_of_amounts_and_sides_are_read() {
    for (what, currency, text) in [
        (
            "sides behind an amount, blank where there is none",
            "EUR",
            "Munt;Datum;Omschrijving;Valuta;Bedrag;Saldo;credit;debet\n\
             EUR;13/06/2026;b;13/06/2026;1000,00;1004,90;1000,00;     \n\
             EUR;12/06/2026;a;12/06/2026;-5,10;4,90;     ;-5,10\n",
        ),
        (
            "euros in Finnish",
            "EUR",
            "Kirjauspäivä;Arvopäivä;Määrä  EUROA;\"Laji\";Selitys;Viite;Viesti;\n\
             24.06.2026;24.06.2026;1000,00;\"1\";PANO;;b;\n\
             24.06.2026;24.06.2026;-5,10;2;OTTO;;a;\n",
        ),
        (
            "Czech names",
            "CZK",
            "číslo účtu;datum zaúčtování;částka;měna;zůstatek;variabilní symbol;poznámka\n\
             1/0300;19.02.2026;1000;CZK;1004,9;1;b\n1/0300;18.02.2026;-5,1;CZK;4,9;2;a\n",
        ),
    ] {
        reads(what, text, currency);
    }
    let differs = "Buchungstag;Verwendungszweck;Betrag;Soll;Haben;Währung\n\
                   01.06.2026;a;-5,20;-5,10;;EUR\n02.06.2026;b;1000,00;;1000,00;EUR\n";
    assert_eq!(look(differs.as_bytes()).state, State::UnknownFormat);
}

#[test]
fn a_quote_that_is_left_over_makes_no_other_account() {
    let row = |account: &str, amount: &str, balance: &str| {
        format!("{account},EUR,2026-06-01,\"{amount}\",\"{balance}\",a\n")
    };
    let head = "\"IBAN/BBAN\",\"Munt\",\"Datum\",\"Bedrag\",\"Saldo na trn\",\"Omschrijving-1\"\n";
    let first = row("\"NL00\"", "-1,00", "9,00");
    let text = [head, &first, &row("NL00\"", "2,00", "11,00")].concat();
    let found = look(text.as_bytes());
    assert_eq!((found.state, found.sums.statements_total), (State::Ok, 1));
    let text = [head, &first, &row("NL00\"", "2,00", "21,00")].concat();
    assert_eq!(look(text.as_bytes()).state, State::Quarantined, "the rows between are missing");
}

/// The errors of a file that must be quarantined, as (line, field, found).
fn refusals(what: &str, text: &str) -> Vec<(u64, String, String)> {
    let found = look(text.as_bytes());
    assert_eq!(found.state, State::Quarantined, "{what}: {:?}", found.sums.problems);
    assert_eq!(found.format, Format::parse("bank_csv"), "{what}");
    found.sums.problems.into_iter().map(|p| (p.line, p.field, p.found)).collect()
}

#[test]
fn a_word_for_what_was_not_booked_is_not_passed_over_in_any_column() {
    for word in [
        "Vormerkposten",
        "PENDING",
        "Non contabilizzato",
        "Rejeté",
        "(declined)",
        "Cancelado",
        "Nicht gebucht",
        "Storniert",
        "Odrzucona",
        "Not booked",
        "On hold",
        "Reserverat",
        "Processing",
        "Reservation",
        "Hold",
        "Blocked",
        "Initiated",
        "Draft",
    ] {
        let rows = format!("02.01.2026;a;-5,00;EUR;Lastschrift\n03.01.2026;b;7,00;EUR;{word}\n");
        let text = format!("Buchungstag;Verwendungszweck;Betrag;Währung;Umsatzart\n{rows}");
        let wanted = (3, "Umsatzart".to_owned(), word.to_owned());
        assert!(refusals(word, &text).contains(&wanted), "{word}");
        // A payer may write it.
        let paid = text.replace(";b;", &format!(";{word};"));
        let paid = paid.replace(&format!(";{word}\n"), ";\n");
        let found = look(paid.as_bytes());
        assert_eq!((found.state, found.sums.entries), (State::Ok, 2), "{word}");
    }
    // As far behind the head as it likes.
    let row = "2026-06-01,an order of many,-5.00,EUR,Card\n".repeat(4_000);
    let head = "Date,Description,Amount,Currency,Category";
    let text = format!("{head}\n{row}2026-06-02,b,7.00,EUR,Pending\n");
    assert_eq!(refusals("far", &text), [(4_002, "Category".to_owned(), "Pending".to_owned())]);
}

/// What a file with a status reads to: its statuses, where it is whole.
fn statuses(what: &str, text: &str) -> Vec<(EntryStatus, u64)> {
    let found = look(text.as_bytes());
    assert_eq!(found.state, State::Ok, "{what}: {:?}", found.sums.problems);
    found.sums.statuses.into_iter().collect()
}

#[test]
fn a_status_is_read_in_the_languages_of_the_names() {
    use EntryStatus::{Booked, Info, Pending};
    for (name, booked, other, status) in [
        ("Status", "Completed", "Pending", Pending),
        ("Transaction State", "Posted", "Declined", Info),
        ("Stato", "Contabilizzato", "Non contabilizzato", Pending),
        ("Estado", "", "Pendiente", Pending),
        ("Etat", "Comptabilisé", "Rejeté", Info),
        ("Stav", "Zaúčtováno", "Blokace", Pending),
        ("Buchungsstatus", "gebucht", "vorgemerkt", Pending),
        ("Pending", "false", "true", Pending),
        ("Booked", "yes", "no", Pending),
    ] {
        let with = |value: &str| {
            let rows = "2026-06-01,a,-5.00,EUR,";
            let head = format!("Date,Description,Amount,Currency,{name}");
            format!("{head}\n{rows}{booked}\n2026-06-02,b,7.00,EUR,{value}\n")
        };
        assert_eq!(statuses(name, &with(booked)), [(Booked, 2)], "{name}");
        assert_eq!(statuses(name, &with(other)), [(Booked, 1), (status, 1)], "{name}");
        assert_eq!(look(with("On its way").as_bytes()).state, State::UnknownFormat, "{name}");
    }
    let head = "Datum;Text;Betrag;Währung;Zustand\n2026-06-01;a;-5,00;EUR;gebucht\n";
    let of_status = |word: &str| look(format!("{head}2026-06-02;b;7,00;EUR;{word}\n").as_bytes());
    assert_eq!(of_status("gebucht").state, State::Ok);
    assert_eq!(of_status("unterwegs").state, State::UnknownFormat);
    // Another column of such a name says something else.
    let two = "Date,Description,Amount,Currency,Status,State\n\
               2026-06-01,a,-5.00,EUR,Posted,CA\n2026-06-02,b,7.00,EUR,Pending,NY\n";
    assert_eq!(statuses("two", two), [(Booked, 1), (Pending, 1)]);
}

#[test]
fn rows_that_were_not_booked_stay_out_of_the_balance() {
    use EntryStatus::{Booked, Info, Pending};
    let head = "Completed Date,Description,Amount,Currency,State,Balance\n";
    let booked = "2026-06-01,a,-5.00,EUR,COMPLETED,95.00\n2026-06-02,b,7.00,EUR,COMPLETED,102.00\n";
    let with = |rows: &str| format!("{head}{booked}{rows}");
    let two = with(",c,-2.00,EUR,REVERTED,\n,d,-1.00,EUR,PENDING,101.00\n");
    assert_eq!(statuses("two", &two), [(Booked, 2), (Pending, 1), (Info, 1)]);
    let sums = look(two.as_bytes()).sums;
    let statement = &sums.statements[0];
    assert_eq!((statement.ties, statement.closing.map(|b| b.minor)), (Some(true), Some(10_200)));
    let wrong = with("2026-06-03,c,-2.00,EUR,COMPLETED,101.00\n");
    assert_eq!(refusals("a balance", &wrong)[0].1, "balance");
    let undated = with(",c,-2.00,EUR,COMPLETED,100.00\n");
    assert_eq!(refusals("no day", &undated)[0].1, "date");
    let reserved = "Bogføringsdato;Beløb;Beskrivelse;Saldo;Valuta\n\
                    Reserveret;-7,00;x;;DKK\n2026/01/03;100,00;b;587,50;DKK\n\
                    2026/01/02;-12,50;a;487,50;DKK\n";
    assert_eq!(statuses("reserved", reserved), [(Booked, 2), (Pending, 1)]);
}

#[test]
fn a_row_that_is_what_all_others_come_to_is_a_sum() {
    let head = "Buchungstag;Verwendungszweck;Betrag;Währung\n";
    let (a, b) = ("02.01.2026;a;-12,50;EUR\n", "03.01.2026;b;100,00;EUR\n");
    let last = "31.01.2026;Monat;87,50;EUR\n";
    let opening = "01.01.2026;Stand;500,00;EUR\n";
    let closing = "31.01.2026;Stand;587,50;EUR\n";
    for (what, rows, line) in [
        ("below", [a, b, last].concat(), 4),
        ("above", [last, b, a].concat(), 2),
        ("both balances", [opening, a, b, closing].concat(), 5),
    ] {
        let refused = refusals(what, &format!("{head}{rows}"));
        assert_eq!((refused[0].0, refused[0].1.as_str()), (line, "amount"), "{what}: {refused:?}");
        assert!(refused[0].2.contains("what all other rows come to"), "{what}: {refused:?}");
    }
    let swept = "31.01.2026;Abführung;-87,50;EUR\n";
    for rows in [[a, b, swept].concat(), [a, "02.01.2026;a;-12,50;EUR\n"].concat()] {
        let found = look(format!("{head}{rows}").as_bytes());
        assert_eq!(found.state, State::Ok, "{rows}: {:?}", found.sums.problems);
    }
    // A balance proves that it moved.
    let head = "Date,Description,Amount,Currency,Balance\n";
    let rows = "2026-06-01,a,5.00,EUR,5.00\n2026-06-02,b,-2.00,EUR,3.00\n\
                2026-06-03,c,3.00,EUR,6.00\n";
    assert_eq!(look(format!("{head}{rows}").as_bytes()).state, State::Ok);
    // The sum of several accounts has none of its own.
    let rows = "1,2026-06-01,a,5.00,EUR\n2,2026-06-02,b,-2.00,EUR\n,2026-06-30,c,3.00,EUR\n";
    let text = format!("Account,Date,Description,Amount,Currency\n{rows}");
    assert_eq!(refusals("accounts", &text)[0].0, 4);
    let noted = "Buchungstag;Verwendungszweck;Kundenreferenz;Betrag;Währung\n\
                 02.01.2026;a;;-12,50;EUR\n03.01.2026;;Anfangssaldo;22,00;EUR\n";
    assert!(refusals("a reference", noted)[0].2.contains("is it a balance?"));
}

#[test]
fn a_flag_and_a_sign_must_say_the_same() {
    let head = "Datum;Omschrijving;Debet / Credit;Valuta;Bedrag";
    let with = |rows: &str| format!("{head}\n{rows}");
    let agree = with("02-01-2026;a;D;EUR;-5,10\n13-01-2026;b;C;EUR;1000,00\n");
    reads("both", &agree, "EUR");
    let flagged = "02-01-2026;a;D;EUR;5,10\n13-01-2026;b;C;EUR;1000,00\n";
    reads("the flag alone", &with(flagged), "EUR");
    let correction = with(&format!("{flagged}14-01-2026;c;D;EUR;-5,00\n"));
    let wanted = (2, "Debet / Credit".to_owned(), "D beside 5,10".to_owned());
    assert!(refusals("a correction", &correction).contains(&wanted));
    let many = "02-01-2026;a transfer of that day;D;EUR;5,10\n".repeat(4_000);
    let far = with(&format!("{many}14-01-2026;c;D;EUR;-5,00\n"));
    let wanted = (4_002, "Debet / Credit".to_owned(), "D beside -5,00".to_owned());
    assert!(refusals("far", &far).contains(&wanted));
    let balance = "Date,Description,Type,Amount,Currency,Balance\n\
                   2026-06-01,a,Debit,-5.10,EUR,4.90\n2026-06-02,b,Debit,1000.00,EUR,1004.90\n";
    reads("a balance", balance, "EUR");
}

/// The name of a flag may be any: a correction with a minus beside it makes no signs of the rest.
#[test]
fn a_flag_is_known_by_its_values() {
    let rows = |name: &str, last: &str| {
        format!(
            "Date,Description,Amount,{name},Currency\n2026-11-01,a,27.10,DR,GBP\n\
             2026-11-02,b,1080.50,CR,GBP\n2026-11-03,c,{last},GBP\n"
        )
    };
    for name in ["Cr/Dr", "Txn Type", "Nature", "Mvt", "Kind", "DR|CR", "DebitCredit"] {
        let refused = refusals(name, &rows(name, "-5.00,CR"));
        assert_eq!((refused[0].0, refused[0].1.as_str()), (2, name), "{refused:?}");
        assert_eq!(refused[0].2, "DR beside 27.10", "{name}");
    }
    let one = refusals("one way", &rows("Nature", "-5.00,DR").replace(",CR,", ",DR,"));
    assert_eq!(one[0].2, "DR beside 27.10");
    // Beside another column of such a name, too.
    let two = rows("Cr/Dr", "-5.00,CR").replace("Description", "Type");
    let two = two.replace("Currency\n", "Currency,Text\n").replace(",GBP\n", ",GBP,x\n");
    assert_eq!(refusals("two", &two)[0].2, "DR beside 27.10");
    // What is known by its values alone makes no sign; what is known by its name does.
    let kind = rows("Kind", "5.00,CR");
    let said_so = refusals("kind", &kind).iter().any(|one| one.2 == "amounts without a sign");
    assert!(said_so, "{kind}");
    for (name, debit, credit) in [("CR/DR", "DR", "CR"), ("Sign", "-", "+"), ("DRCR", "D", "C")] {
        let text = rows(name, "5.00,CR").replace(",DR,", &format!(",{debit},"));
        let found = look(text.replace(",CR,", &format!(",{credit},")).as_bytes());
        let wanted = [("GBP".to_owned(), (108_550, 2_710))].into_iter().collect();
        assert_eq!(said(&found).3, wanted, "{name}: {:?}", found.sums.problems);
        assert_eq!(found.state, State::Ok, "{name}");
    }
    // A column of other kinds beside signs is none.
    let other = rows("Category", "-5.00,Card").replace(",DR,", ",Food,").replace(",CR,", ",Pay,");
    assert_eq!(look(other.as_bytes()).state, State::Ok);
}

#[test]
fn debits_with_and_without_a_minus_are_not_all_taken_for_debits() {
    let head = "Date,Description,Debit,Credit,Currency";
    let with =
        |last: &str| format!("{head}\n2026-01-02,a,{last},,EUR\n2026-01-13,b,,1000.00,EUR\n");
    reads("plain", &with("5.10"), "EUR");
    reads("a minus", &with("-5.10"), "EUR");
    let mixed = format!("{}2026-01-14,c,-5.00,,EUR\n", with("5.10"));
    assert_eq!(refusals("mixed", &mixed)[0], (4, "Debit".to_owned(), "-5.00".to_owned()));
}

/// The references of one kind in a file of rows.
fn references(text: &str, kind: TagKind) -> Vec<String> {
    let lines = items(text.as_bytes()).into_iter().filter_map(|item| match item {
        Item::Line(line) => Some(line.tags),
        _other => None,
    });
    lines.flatten().filter(|tag| tag.kind == kind).map(|tag| tag.text).collect()
}

#[test]
fn the_payer_s_reference_is_found_in_the_texts_of_german_and_dutch_banks() {
    for (text, wanted) in [
        ("EREF+A-1 KREF+7 SVWZ+x", Some("A-1")),
        ("EREF+A-1KREF+7", Some("A-1")),
        ("Rechnung 7 EREF: A-1 MREF: M1 CRED: DE98 IBAN: DE2 BIC: X", Some("A-1")),
        ("EREF: A-1", Some("A-1")),
        ("Kunde End-to-End-Ref.: A-1 CORE / Mandatsref.: 5", Some("A-1")),
        ("END-TO-END-REF.: A-1 Kundenref.: 5", Some("A-1")),
        ("End-to-End-Ref.: NICHT ANGEGEBEN CORE / Mandatsref.: 5", None),
        ("Rechnung 7 EREF: NOTPROVIDED", None),
        ("XEREF: A-1", None),
        ("/TRTP/SEPA OVERBOEKING/IBAN/NL1/BIC/X/NAME/Y/REMI/F 1/EREF/A-1", Some("A-1")),
        ("/EREF/A/B-1/REMI/x", Some("A/B-1")),
        ("/TRTP/SEPA/REMI/x/EREF/NOTPROVIDED", None),
        ("Rechnung /EREF/A-1", None),
    ] {
        let head = "Buchungstag;Verwendungszweck;Betrag;Währung";
        let text = format!("{head}\n02.01.2026;{text};-12,50;EUR\n");
        let wanted: Vec<&str> = wanted.into_iter().collect();
        assert_eq!(references(&text, TagKind::EndToEndId), wanted, "{text}");
    }
}

#[test]
fn a_creditor_s_reference_is_read_without_the_word_before_it() {
    let text = "Kirjauspäivä;Määrä EUROA;Selitys;Viite\n\
                2026-01-02;-12,50;a;\"ref=\"\n2026-01-03;100,00;b;ref=123\n\
                2026-01-04;10,00;c;456\n";
    assert_eq!(references(text, TagKind::CreditorReference), ["123", "456"]);
}
