//! Exports of banks, each as small as it can be: whose sign nothing shows, and names of columns.

use tieout::model::money::Currency;
use tieout::settlement::ledger::{Inspection, State};

use super::{errors, inspected};

fn look(text: &str) -> Inspection {
    inspected(text.as_bytes())
}

#[track_caller]
fn refused(text: &str, part: &str) {
    let found = look(text);
    assert_eq!(found.state, State::Quarantined, "{text}");
    let errors = errors(&found);
    assert!(errors.iter().any(|error| error.contains(part)), "{part}: {errors:?}");
}

/// Credits, debits, and whether the first statement ties.
#[track_caller]
fn read(text: &str, code: &str) -> (i128, i128, Option<bool>) {
    let found = look(text);
    assert_eq!(found.state, State::Ok, "{text}: {:?}", found.sums.problems);
    let own = &found.sums.booked[&Currency::parse(code).unwrap()];
    (own.credit_minor, own.debit_minor, found.sums.statements[0].ties)
}

const HEAD: &str = "Date;Description;Buchungsart;Amount;Currency;Balance\n";

#[test]
fn the_oldest_row_of_amounts_without_a_sign_is_not_taken_for_a_credit() {
    let rows =
        ["13.03.2026;a;Order;100,00;EUR;900,00\n", "14.03.2026;b;Sale;500,00;EUR;1.400,00\n"];
    let oldest = format!("{HEAD}{}{}", rows[0], rows[1]);
    refused(&oldest, "an amount without a sign, which no balance proves");
    assert!(errors(&look(&oldest))[0].contains('2'), "its line");
    refused(&format!("{HEAD}{}{}", rows[1], rows[0]), "an amount without a sign");
    // Of two accounts in turns each has an oldest row.
    let other = "14.03.2026;b;Sale;500,00;USD;1.400,00\n";
    let nil = "13.03.2026;a;Order;0,00;EUR;900,00\n";
    refused(&format!("{HEAD}{nil}{}{}", rows[1], other.replace("Sale", "Order")), "without a sign");
    // A card's, all of it bought by what its balances say.
    let bought = "13.03.2026;a;x;100,00;EUR;900,00\n14.03.2026;b;y;500,00;EUR;400,00\n\
                  15.03.2026;c;y;50,00;EUR;350,00\n";
    refused(&format!("{HEAD}{bought}"), "an amount without a sign");
}

#[test]
fn the_oldest_row_went_as_others_of_its_kind_and_where_none_has_a_kind_is_open() {
    let rows = |kind: &str, balances: [&str; 3]| {
        let [first, second, third] = balances;
        format!(
            "{HEAD}13.03.2026;a;{kind};100,00;EUR;{first}\n14.03.2026;b;Sale;500,00;EUR;{second}\n\
             15.03.2026;c;Fee;50,00;EUR;{third}\n"
        )
    };
    let known = ["900,00", "1.400,00", "1.450,00"];
    assert_eq!(read(&rows("Sale", known), "EUR"), (65_000, 0, Some(true)));
    assert_eq!(look(&rows("Order", known)).state, State::Quarantined);
    // A new account held nothing.
    let new = ["100,00", "600,00", "650,00"];
    assert_eq!(read(&rows("Order", new), "EUR"), (65_000, 0, Some(true)));
    let plain = "Date;Description;Amount;Currency;Balance\n13.03.2026;a;100,00;EUR;900,00\n\
                 14.03.2026;b;500,00;EUR;1.400,00\n";
    assert_eq!(look(plain).state, State::Quarantined, "it may have gone out of 1.000,00");
}

#[test]
fn a_sign_in_any_amount_or_an_opening_balance_shows_which_way_the_oldest_row_went() {
    let rows = |first: &str, second: &str| {
        format!(
            "{HEAD}13.03.2026;a;Order;{first};EUR;900,00\n\
             14.03.2026;b;Sale;500,00;EUR;1.400,00\n15.03.2026;c;Fee;{second}\n"
        )
    };
    let plain = "50,00;EUR;1.450,00";
    assert_eq!(read(&rows("100,00", "-50,00;EUR;1.350,00"), "EUR"), (60_000, 5_000, Some(true)));
    assert_eq!(read(&rows("+100,00", plain), "EUR"), (65_000, 0, Some(true)));
    assert_eq!(read(&rows("0,00", plain), "EUR"), (55_000, 0, Some(true)));
    let stated = |opening: &str| format!("Anfangssaldo;{opening}\n\n{}", rows("100,00", plain));
    assert_eq!(read(&stated("800,00"), "EUR"), (65_000, 0, Some(true)));
    assert_eq!(look(&stated("1.000,00")).state, State::Quarantined, "it went out");
    // One bank writes it in a row beside nil.
    let row = |opening: &str| {
        let opening = format!("{HEAD}12.03.2026;Opening Balance;;0,00;EUR;{opening}\n");
        rows("100,00", plain).replace(HEAD, &opening)
    };
    assert_eq!(read(&row("800,00"), "EUR"), (65_000, 0, Some(true)));
    assert_eq!(look(&row("1.000,00")).state, State::Quarantined, "it went out");
}

#[test]
fn the_kind_of_a_row_may_say_which_way_its_money_went() {
    let rows = |first: &str, second: &str| {
        format!(
            "Data operacji;Typ transakcji;Kwota;Waluta;Saldo po transakcji;Opis transakcji\n\
             2026-03-07;{first};100,00;PLN;900,00;a\n2026-03-08;{second};2500,00;PLN;3400,00;b\n"
        )
    };
    let (out, into) = ("Przelew wychodzący", "Przelew przychodzacy");
    refused(&rows(out, into), "an amount without a sign");
    refused(&rows("Zakup", "Przelew"), "an amount without a sign");
    assert_eq!(read(&rows(into, into), "PLN"), (260_000, 0, Some(true)));
    // Beside signs that no balance proves.
    let signed = |out: &str| {
        format!(
            "Data operacji;Typ transakcji;Kwota;Waluta;Opis transakcji\n\
             2026-03-07;Przelew wychodzący;{out}100,00;PLN;a\n\
             2026-03-08;Zakup;-25,00;PLN;b\n"
        )
    };
    refused(&signed(""), "Przelew wychodzący beside 100,00");
    assert_eq!(read(&signed("-"), "PLN"), (0, 12_500, None));
}

/// What a balance of each row does not prove: the way of the oldest one.
#[test]
fn a_column_of_two_words_tells_the_way_under_whatever_name() {
    for (name, out, into) in [
        ("Tipo", "D", "C"),
        ("Natureza", "D", "C"),
        ("Movimiento", "Cargo", "Abono"),
        ("Causale", "ADDEBITO", "ACCREDITO"),
        ("Buchungstext", "LASTSCHRIFT", "GUTSCHRIFT"),
        ("Details", "DEBIT", "CREDIT"),
        ("Type opération", "Débit", "Crédit"),
    ] {
        let file = |first: &str| {
            format!(
                "Date;Description;Amount;Currency;{name};Balance\n\
                 2026-09-15;a;7.99;EUR;{first};500.00\n2026-09-16;b;300.00;EUR;{into};800.00\n\
                 2026-09-17;c;1.00;EUR;{into};801.00\n"
            )
        };
        let found = look(&file(out));
        let is_refused = found.state != State::Ok;
        assert!(is_refused || read(&file(out), "EUR") == (30_100, 799, Some(true)), "{name}");
        assert_eq!(read(&file(into), "EUR").1, 0, "{name}");
    }
}

/// An opening balance among the rows lacks what all of them have.
#[test]
fn the_only_row_without_the_day_of_its_value_is_doubtful() {
    let file = |day: &str, more: &str| {
        let rows = |n: u32| format!("0{n}.07.2026;0{n}.07.2026;9{n}.00;;EUR;t;26{more}\n");
        let rows: String = (2..6).map(rows).collect();
        let head = "DATA;VALUTA;DARE;AVERE;DIVISA;DESCRIZIONE_OPERAZIONE;CAUSALE_ABI\n";
        format!("{head}{rows}01.07.2026;{day};;1924.41;EUR;t;\n")
    };
    refused(&file("", ""), "one without it may be a balance");
    assert_eq!(read(&file("01.07.2026", ""), "EUR"), (192_441, 37_400, None));
}

/// Words for balances and sums where no column of balances proves them.
#[test]
fn words_for_balances_in_more_languages_are_no_movements() {
    for word in [
        "Saldo di apertura",
        "Saldo di chiusura",
        "Saldo attuale",
        "Riporto saldo",
        "Riporto",
        "Totale complessivo",
        "Total des écritures",
        "Saldo a fecha 30/06/2024",
        "SALDO A 30/06/2024",
        "Bilans otwarcia",
        "Utgående balanse",
        "RULAJ TOTAL CONT",
        "期初余额",
        "前期繰越",
        "Εκ μεταφοράς",
    ] {
        let text = format!(
            "Date;Description;Amount;Currency\n2024-07-03;a;-5.00;EUR\n2024-07-02;b;7.00;EUR\n\
             2024-07-01;{word};1924.41;EUR\n"
        );
        assert_ne!(look(&text).state, State::Ok, "{word}");
    }
    for word in ["Saldo GmbH", "Total Berlin", "Di Apertura", "Attuale"] {
        let text = format!(
            "Date;Description;Amount;Currency\n2024-07-03;a;-5.00;EUR\n2024-07-01;{word};1.00;EUR\n"
        );
        assert_eq!(read(&text, "EUR"), (100, 500, None), "{word}");
    }
}

/// Issuers of cards write what was bought without a minus.
#[test]
fn a_cards_file_is_known_by_any_name_of_a_card_and_by_its_numbers() {
    let rows = |name: &str, number: &str| {
        format!(
            "Datum;Beschreibung;{name};Währung;Betrag\n26/06/2026;a;{number};CHF;39.64\n\
             21/06/2026;b;{number};CHF;-22.35\n19/06/2026;c;;CHF;-447.30\n"
        )
    };
    for name in [
        "Karte",
        "Karten-Nr.",
        "Kartennummer (letzte 4)",
        "Carte bancaire",
        "N° de carte",
        "Carta",
        "Numero della carta",
        "Nº tarjeta",
        "Número do cartão",
        "Kaartnr",
        "Kortnr",
        "Kortti",
        "Nr karty",
        "Číslo karty",
        "Номер карты",
        "Card used",
        "Merchant category",
        "Esercente",
        "Einkaufsdatum",
        "MCC",
    ] {
        let found = look(&rows(name, "x"));
        assert_eq!(found.state, State::UnknownFormat, "{name}");
    }
    for number in ["**2748", "4155 XXXX XXXX 1234", "xxxx-xxxx-xxxx-1234", "••••1234"] {
        assert_eq!(look(&rows("Nr", number)).state, State::UnknownFormat, "{number}");
        assert_eq!(read(&rows("Konto", number), "CHF"), (3_964, 46_965, None), "{number}");
    }
    // Of an account whose rows name those of other sides, and of a bank whose layout is known.
    let row = rows("Karte;IBAN Zahlungsbeteiligter", "x;DE02120300000000202051");
    assert_eq!(read(&row.replace(";;CHF", ";;;CHF"), "CHF"), (3_964, 46_965, None));
    let known = "Date (UTC),Description,Amount,Status,Source Account,Bank Description,Reference,\
                 Note,Last Four Digits,Name On Card,Category,GL Code,Timestamp,Original Currency\n\
                 03-17-2026,a,-12.00,Sent,Mercury Checking xx12,a,,,5678,c,,,,USD\n\
                 03-16-2026,b,15.00,Sent,Mercury Checking xx12,b,,,,,,,,\n";
    assert_eq!(read(known, "USD"), (1_500, 1_200, None));
    // A column without values, and numbers that hide nothing.
    for (name, number) in [("Karte", ""), ("Nr", "2748"), ("Nr", "X1"), ("Nr", "100**")] {
        assert_eq!(read(&rows(name, number), "CHF"), (3_964, 46_965, None), "{name} {number}");
    }
}

#[test]
fn exports_in_italian_and_french_are_read() {
    for (text, want) in [
        (
            "Data;Tipo di movimento;Testo di avviso;Accredito in CHF;Addebito in CHF\n\
             07.04.2026;Contabilizzazione;a;;-25.00\n08.04.2026;Contabilizzazione;b;4.50;\n",
            (450, 2_500, None),
        ),
        (
            "Data dell'operazione;Ora dell'operazione;Data di contabilizzazione;Data di valuta;\
             Moneta;Addebito;Accredito;Importo singolo;Saldo;N. di transazione;Descrizione1\n\
             2026-11-08;;2026-11-08;2026-11-08;CHF;;43.20;;118.20;9;a\n\
             2026-11-06;;2026-11-06;2026-11-06;CHF;-25.00;;;75.00;8;b\n",
            (4_320, 2_500, Some(true)),
        ),
        (
            "Période de facturation;Date d’écriture;Date d’achat;Détails de comptabilisation;\
             Crédit en CHF;Débit en CHF\nx;31.10.2026;30.10.2026;Chur;;-34\n\
             x;31.10.2026;30.10.2026;Pay;;-98.85\n",
            (0, 13_285, None),
        ),
        (
            "Валюта;Дата операции;Референс проводки;Описание операции;Приход;Расход;\n\
             RUB;31.05.26;A;a;33123,56;0;\nRUB;03.05.26;B;b;0;50;\n",
            (3_312_356, 5_000, None),
        ),
    ] {
        let code = if text.contains("RUB") { "RUB" } else { "CHF" };
        assert_eq!(read(text, code), want, "{text}");
    }
}

#[test]
fn words_of_thanks_beside_a_minus_are_of_a_card_s_issuer() {
    let card = |text: &str, more: &str| {
        let head = "Date,Description,Amount,Currency\n2026-05-29,Shop,50.00,EUR\n";
        format!("{head}2026-05-28,Fuel,12.50,EUR\n2026-05-27,\"{text}\",-500.00,EUR\n{more}")
    };
    let back = "2026-05-26,Shop,-5.00,EUR\n";
    for text in [
        "DIRECT DEBIT RECEIVED THANK YOU",
        "BPAY PAYMENT-THANK YOU",
        "Addebito in c/c - grazie",
        "Platba přijata, děkujeme",
        "Dziękujemy za wpłatę",
        "Obrigado",
        "Kiitos!",
    ] {
        // A row that came back has a minus as well.
        refused(&card(text, back), "more rows with a minus than without one");
    }
    refused(&card("PAGAMENTO RECEBIDO", back), "PAGAMENTO RECEBIDO beside -500.00");
    // A shop thanks as well, of whom money goes to.
    let own = back.repeat(4);
    assert_eq!(read(&card("Danke für Ihren Einkauf", &own), "EUR").1, 52_000);
    for text in ["Spłata karty", "Credit card repayment", "Lastschrift", "DIRECT DEBIT"] {
        refused(&card(text, ""), "more rows with a minus than without one");
    }
    for text in ["Mercier", "Tackle", "Lastschrift Strom", "Dankeschoen GmbH"] {
        assert_eq!(read(&card(text, ""), "EUR"), (6_250, 50_000, None), "{text}");
    }
}

#[test]
fn a_table_between_its_last_balance_and_that_of_a_day_ties() {
    let file = |opening: &str, closing: &str| {
        format!(
            "Umsätze\n1.3.2026 - 1.4.2026\n{opening};;;;2.123,8;EUR\n\
             Buchungstag;Wert;Verwendungszweck;Betrag;Soll;Haben;Währung\n\
             1.3.2026;1.3.2026;a;-12,9;-12,9;;EUR\n2.3.2026;2.3.2026;b;500,0;;500,0;EUR\n\
             Kontostand;1.4.2026;;;{closing};EUR\n"
        )
    };
    let own = "Letzter Kontostand";
    assert_eq!(read(&file(own, "2.610,9"), "EUR"), (50_000, 1_290, Some(true)));
    refused(&file(own, "2.110,9"), "closing balance");
    // Without the other it is that of any day.
    assert_eq!(read(&file("Konto", "1,0"), "EUR").2, None);
}

#[test]
fn a_fee_may_carry_its_own_sign() {
    let rows = |fee: &str, balance: &str| {
        format!(
            "Date,Description,Amount,Fee,Currency,Balance\n2026-09-01,a,100.00,0.00,CHF,100.00\n\
             2026-09-02,b,-50.00,{fee},CHF,{balance}\n2026-09-03,c,10.00,0.00,CHF,59.75\n"
        )
    };
    for fee in ["-0.25", "0.25"] {
        assert_eq!(read(&rows(fee, "49.75"), "CHF"), (11_000, 5_025, Some(true)), "{fee}");
        refused(&rows(fee, "49.70"), "balance");
    }
}

#[test]
fn a_row_without_its_day_may_say_by_its_kind_that_it_is_pending() {
    let rows = |day: &str| {
        format!(
            "Data operacji;Data waluty;Typ transakcji;Kwota;Waluta;Saldo po transakcji;\
             Opis transakcji\n2026-07-14;2026-07-14;Przelew;+33.00;PLN;+1033.00;a\n\
             {day};2026-07-13;Blokada;-90.34;PLN;W rozliczeniu;b\n\
             2026-07-13;2026-07-13;Zakup;-90.00;PLN;+1000.00;c\n"
        )
    };
    assert_eq!(read(&rows(""), "PLN"), (3_300, 9_000, Some(true)));
    assert_ne!(look(&rows("2026-07-13")).state, State::Ok, "a day, and none");
}

#[test]
fn a_code_beside_a_balance_or_an_account_above_the_table_is_its_currency() {
    let table = |above: &str| {
        format!(
            "{above}\nBuchungsdatum;Text;Belastung;Gutschrift;Saldo\n\
             01.03.2026;a;10.00;;90.00\n02.03.2026;b;;20.00;110.00\n"
        )
    };
    for above in ["Saldo;1'110.00 CHF", "Saldo: CHF 110.00;;;", ";Konto-Nr.;00000/01 CHF"] {
        assert_eq!(read(&table(above), "CHF"), (2_000, 1_000, Some(true)), "{above}");
    }
    for above in
        ["Saldo;110.00", "Saldo;1.00 CHF\nKonto;1/2 EUR", "Saldo;CHF", "Limit;1.00 CHF", "x"]
    {
        assert_eq!(look(&table(above)).state, State::UnknownFormat, "{above}");
    }
}

#[test]
fn more_names_of_columns_are_known() {
    let ties = Some(true);
    for (code, ties, text) in [
        (
            "EUR",
            None,
            "Date;Label;Amount;Currency\n2026-09-14;a;-5,10;EUR\n\
                       2026-09-15;b;10,00;EUR\n",
        ),
        (
            "EUR",
            None,
            "Date;Name;Amount;Currency;Reason\n2026-09-14;x;-5,10;EUR;a\n\
                       2026-09-15;y;10,00;EUR;b\n",
        ),
        (
            "EUR",
            ties,
            "Data di registrazione;Data valuta;Testo;Importo di addebito (EUR);\
                       Importo di accredito (EUR);Saldo (EUR)\n15.09.2026;15.09.2026;b;;10.00;\
                       14.90\n14.09.2026;14.09.2026;a;5.10;;4.90\n",
        ),
        (
            "INR",
            ties,
            "Value Date,Transaction Date,Transaction Remarks,Withdrawal Amount (INR),\
                       Deposit Amount (INR),Balance (INR)\n14/09/2026,14/09/2026,a,5.10,0.00,\
                       \"1,25,000.00\"\n15/09/2026,15/09/2026,b,0.00,10.00,\"1,25,010.00\"\n",
        ),
        (
            "EUR",
            None,
            "Data valuta;Data;Parola chiave;Movimento;Importo;Valuta;Disponibile;\
                       Valuta;Osservazioni\n15/09/2026;15/09/2026;x;b;10.00;EUR;14.90;EUR;y\n\
                       14/09/2026;14/09/2026;x;a;-5.10;EUR;4.90;EUR;y\n",
        ),
        (
            "CHF",
            ties,
            "Auftragsdatum;Buchungstext;Belastungsbetrag (CHF);Gutschriftsbetrag (CHF);\
                       Valutadatum;Saldo (CHF)\n15.09.2026;b;;10.00;15.09.2026;14.90\n\
                       14.09.2026;a;5.10;;14.09.2026;4.90\n",
        ),
        (
            "CHF",
            None,
            "Date de comptabilisation;Date de valeur;Monnaie;Débit;Crédit;Sous-montant;\
                       Description1\n2026-09-15;2026-09-15;CHF;;10.00;;b\n2026-09-14;2026-09-14;\
                       CHF;-5.10;;;a\n;;CHF;;;-5.10;a\n",
        ),
        (
            "UAH",
            ties,
            "Дата i час операції,Деталі операції,Сума в валюті картки (UAH),Сума в \
                       валюті операції,Валюта,Залишок після операції\n15.09.2026 10:00:00,b,10.00,\
                       10.00,UAH,14.90\n14.09.2026 10:00:00,a,-5.10,-0.10,EUR,4.90\n",
        ),
        (
            "UAH",
            ties,
            "Date and time,Description,\"Card currency amount, (UAH)\",Operation amount,\
                       Operation currency,Balance\n15.09.2026 10:00:00,b,10.00,10.00,UAH,14.90\n\
                       14.09.2026 10:00:00,a,-5.10,-0.10,EUR,4.90\n",
        ),
        (
            "EUR",
            ties,
            "Saldo Iniziale,\"1,00 EUR\",,Saldo Finale,\"5,90 EUR\"\nData Op.,Data Val.,\
                       Causale,Importo,Div.\n15/09/2026,15/09/2026,b,10.00,EUR\n\
                       14/09/2026,14/09/2026,a,-5.10,EUR\n",
        ),
    ] {
        assert_eq!(read(text, code), (1_000, 510, ties), "{text}");
    }
}

#[test]
fn a_dash_is_an_empty_side_and_no_amount() {
    let rows = |first: &str, second: &str| {
        format!(
            "Date,Description,Debit,Credit,Currency\n15/02/2026,a,{first},EUR\n\
             16/02/2026,b,{second},EUR\n"
        )
    };
    for dash in ["-", " - ", "–", "—"] {
        let text = rows(&format!("12.50,{dash}"), &format!("{dash},1500.00"));
        assert_eq!(read(&text, "EUR"), (150_000, 1_250, None), "{dash}");
    }
    assert_ne!(look(&rows("-,-", "-,1500.00")).state, State::Ok, "nothing says what moved");
    assert_ne!(look(&rows("-12.50,--", "-,1500.00")).state, State::Ok, "no dash");
}

#[test]
fn a_currency_beside_an_amount_that_rows_have_is_not_taken_for_the_account_s() {
    let file = |original: &str| {
        format!(
            "Buchungsdatum;Beschreibung;Originalbetrag;Währung;Gutschrift;Belastung\n\
             30.10.2026;a;;CHF;629.78;\n29.10.2026;b;{original};;-72.10\n"
        )
    };
    assert_eq!(read(&file(";CHF"), "CHF"), (62_978, 7_210, None));
    assert_ne!(look(&file("80.00;EUR")).state, State::Ok);
    assert_ne!(look(&file("72.10;CHF")).state, State::Ok);
    assert_ne!(look(&file(";EUR")).state, State::Ok, "two currencies");
}

#[test]
fn a_flag_that_says_the_other_way_than_all_signs_tells_a_card_s() {
    let file = |flags: [&str; 3]| {
        format!(
            "Transaction Date,Posting Date,Billing Amount,Merchant,Reference Number,\
             Debit/Credit Flag,SICMCC Code\n14/10/2026,15/10/2026,-£20.00,a,,{},\n\
             05/10/2026,07/10/2026,-£5.00,b,1,{},5942\n03/10/2026,04/10/2026,£12.34,c,2,{},5942\n",
            flags[0], flags[1], flags[2]
        )
    };
    assert_eq!(read(&file(["Credit", "Credit", "Debit"]), "GBP"), (2_500, 1_234, None));
    assert_eq!(read(&file(["Debit", "Debit", "Credit"]), "GBP"), (1_234, 2_500, None));
    for flags in [["Credit", "Debit", "Debit"], ["Credit", "Credit", ""]] {
        assert_ne!(look(&file(flags)).state, State::Ok, "{flags:?}");
    }
}

#[test]
fn a_table_of_what_was_not_booked_below_the_rows_is_none_of_theirs() {
    let file = |closing: &str, below: &str| {
        format!(
            ";;Controvalore in:;EUR;\nData contabile;Data valuta;Descrizione;Accrediti;Addebiti\n\
             ;;Saldo contabile iniziale in Euro;;111\n13/10/26;13/10/26;a;;-8,12\n\
             14/10/26;14/10/26;b;12,01;\n;;Saldo contabile finale in Euro;;{closing}\n\
             ;;;Operazioni non contabilizzate;\n;Data;Descrizione;Accrediti;Addebiti\n{below}"
        )
    };
    assert_eq!(read(&file("114,89", ""), "EUR"), (1_201, 812, Some(true)));
    assert_ne!(look(&file("115,00", "")).state, State::Ok, "no balance of these rows");
    // Overdrawn by the first, and less by the last.
    assert_eq!(read(&file("107,11", ""), "EUR"), (1_201, 812, Some(true)));
    refused(&file("114,89", ";15/10/26;c;;-20,00\n"), "another begins on line 7");
    refused(&file("114,89", "15/10/26;15/10/26;c;;-20,00\n"), "another begins on line 7");
}

#[test]
fn an_account_is_known_by_names_above_it_and_by_a_title() {
    let account = |above: &str| {
        let text = format!("{above}Date;Text;Amount;Currency\n13/10/2026;a;-5,00;EUR\n");
        let found = look(&text);
        assert_eq!(found.state, State::Ok, "{above}");
        found.sums.statements[0].head.account.clone()
    };
    let iban = "DE89370400440532013000";
    let table = format!("Konto;Nummer;IBAN;Währung\nGiro;330 1 00;{iban};EUR\n\n");
    assert_eq!(account(&table).as_deref(), Some(iban));
    assert_eq!(account("#Numer rachunku;\n89 1140 2004;\n").as_deref(), Some("89 1140 2004"));
    assert_eq!(account("Výpis č. 7 z účtu Jan\n").as_deref(), None, "a name");
    let title = "\"Výpis č. 7 z účtu \"\"12345/2010\"\"\"\n";
    assert_eq!(account(title).as_deref(), Some("12345/2010"));
    // Of a list of accounts it may be any.
    assert_eq!(account("Konto;Saldo\n12345;1,00\n67890;2,00\n\n"), None);
}

#[test]
fn a_balance_that_is_used_is_not_told_as_passed_over() {
    let text = "Umsätze\n1.3.2026 - 1.4.2026\nLetzter Kontostand;;;;2.123,8;EUR\n\
                Buchungstag;Wert;Verwendungszweck;Betrag;Soll;Haben;Währung\n\
                1.3.2026;1.3.2026;a;-12,9;-12,9;;EUR\n2.3.2026;2.3.2026;b;500,0;;500,0;EUR\n\
                Kontostand;1.4.2026;;;2.610,9;EUR\n";
    let found = look(text);
    assert_eq!(
        (found.state, found.sums.problems.len()),
        (State::Ok, 0),
        "{:?}",
        found.sums.problems
    );
    let alone = text.replace("Letzter Kontostand", "Konto");
    assert_eq!(look(&alone).sums.problems.len(), 1, "where no opening balance makes it one");
}

/// Its columns begin as those of a bank do.
#[test]
fn a_report_of_mollie_cut_in_its_header_is_no_empty_bank_csv() {
    let header = "Date,Payment method,Currency,Amount,Status,ID,Description,Consumer name,\
                  Consumer bank account,Consumer BIC,Settlement currency,Settlement amount,\
                  Settlement reference";
    for end in 1..header.len() {
        assert_ne!(look(&header[..end]).state, State::Ok, "{}", &header[..end]);
    }
}

#[test]
fn an_apostrophe_of_thousands_that_was_lost_is_none_in_the_way() {
    let file = |mark: &str, header: &str| {
        format!(
            "Data;Data valuta;Numero di ordine;{header};Addebiti (CHF);Accrediti (CHF);\
             Saldo (CHF)\n\n\
             11.10.2026;11.10.2026;1;a;;208.85;60{mark}908.02\n\
             10.10.2026;10.10.2026;2;b;1{mark}710.30;;60{mark}699.17\n"
        )
    };
    let header = "\"Tipo di ordine\nTesto di contabilizzazione\"";
    for mark in ["'", "’", "\u{fffd}", " ", ""] {
        assert_eq!(read(&file(mark, header), "CHF"), (20_885, 171_030, Some(true)), "{mark}");
    }
    assert_ne!(look(&file("\u{fffd}0", header)).state, State::Ok, "no group of three");
    let old = "Data,Descrizione movimento,Rif. esterno,Testo contabilizzazione,Data valuta,\
               Quantità,Saldo,Divisa\n09.12.26,a,4,b,10.12.26,26'500.00,187'308.94,CHF\n\
               28.11.26,c,3,d,30.11.26,-3.00,160'808.94,CHF\n";
    assert_eq!(read(old, "CHF"), (2_650_000, 300, Some(true)));
    // It may be a count of things.
    assert_ne!(look(&old.replace("187'308.94", "187'308.95")).state, State::Ok);
    assert_ne!(look(&old.replace("Saldo", "Posizione")).state, State::Ok);
}

#[test]
fn a_column_of_amounts_may_be_called_by_its_currency() {
    let file = |column: &str, amount: &str| {
        format!(
            "Rapporto IT XX;;;;\n;;;;\nData;;Descrizione;{column};Caus.\nOperaz.;Valuta;;;\n\
             13.11.2026;13.11.2026;a;-12.41;198\n14.11.2026;13.11.2026;b;{amount};280\n"
        )
    };
    assert_eq!(read(&file("EUR", "66.98"), "EUR"), (6_698, 1_241, None));
    assert_eq!(read(&file("USD", "-66.98"), "USD"), (0, 7_939, None));
    assert_ne!(look(&file("EUR", "x")).state, State::Ok);
    assert_ne!(look(&file("Quote", "66.98")).state, State::Ok, "in no currency");
}
