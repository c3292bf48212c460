//! Banks whose exports always write a minus before what went out, known by all names of their
//! header row. There the layout proves the signs of a file that nothing went out in.
//!
//! Sources: the banks' own exports as their customers publish them with converters for budgeting
//! programs, and what those converters make of their signs. A layout is known whole or not at all:
//! one more column may be the flag of another edition, whose amounts have no sign.

use crate::settlement::sheet::normal;

/// The header rows, by bank.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "Belfius",
        &["Rekening;Boekingsdatum;Rekeninguittrekselnummer;Transactienummer;Rekening tegenpartij;\
             Naam tegenpartij bevat;Straat en nummer;Postcode en plaats;Transactie;Valutadatum;\
             Bedrag;Devies;BIC;Landcode;Mededelingen"],
    ),
    (
        "BNP Paribas Fortis",
        &[
            "Volgnummer;Uitvoeringsdatum;Valutadatum;Bedrag;Valuta rekening;Rekeningnummer;\
             Type verrichting;Tegenpartij;Naam van de tegenpartij;Mededeling;Details;Status;\
             Reden van weigering",
            "Nº de séquence;Date d'exécution;Date valeur;Montant;Devise du compte;\
             Numéro de compte;Type de transaction;Contrepartie;Nom de la contrepartie;\
             Communication;Détails;Statut;Motif du refus",
        ],
    ),
    (
        "Commerzbank",
        &[
            "Buchungstag;Wertstellung;Umsatzart;Buchungstext;Betrag;Währung;Auftraggeberkonto;\
             Bankleitzahl Auftraggeberkonto;IBAN Auftraggeberkonto",
            "Buchungstag;Wertstellung;Umsatzart;Buchungstext;Betrag;Währung;Auftraggeberkonto;\
             Bankleitzahl Auftraggeberkonto;IBAN Auftraggeberkonto;Kategorie",
            "Buchungstag;Wertstellung;Umsatzart;Buchungstext;Betrag;Währung;IBAN Kontoinhaber;\
             Kategorie",
        ],
    ),
    (
        "DKB",
        &[
            "Buchungstag;Wertstellung;Buchungstext;Auftraggeber / Begünstigter;Verwendungszweck;\
             Kontonummer;BLZ;Betrag (EUR);Gläubiger-ID;Mandatsreferenz;Kundenreferenz",
            "Buchungsdatum;Wertstellung;Status;Zahlungspflichtige*r;Zahlungsempfänger*in;\
             Verwendungszweck;Umsatztyp;IBAN;Betrag (€);Gläubiger-ID;Mandatsreferenz;\
             Kundenreferenz",
            "Buchungsdatum;Wertstellung;Status;Zahlungspflichtige*r;Zahlungsempfänger*in;\
             Verwendungszweck;Umsatztyp;Betrag (€);Gläubiger-ID;Mandatsreferenz;Kundenreferenz",
        ],
    ),
    (
        "Fio banka",
        &["ID operace;Datum;Objem;Měna;Protiúčet;Název protiúčtu;Kód banky;Název banky;KS;VS;SS;\
             Poznámka;Zpráva pro příjemce;Typ;Provedl;Upřesnění;Poznámka;BIC;ID pokynu"],
    ),
    (
        "ING-DiBa",
        &[
            "Buchung;Valuta;Auftraggeber/Empfänger;Buchungstext;Verwendungszweck;Saldo;Währung;\
             Betrag;Währung",
            "Buchung;Valuta;Auftraggeber/Empfänger;Buchungstext;Verwendungszweck;Betrag;Währung",
            "Buchung;Wertstellungsdatum;Auftraggeber/Empfänger;Buchungstext;Verwendungszweck;\
             Saldo;Währung;Betrag;Währung",
            "Buchung;Wertstellungsdatum;Auftraggeber/Empfänger;Buchungstext;Verwendungszweck;\
             Betrag;Währung",
        ],
    ),
    (
        "mBank",
        &[
            "#Data operacji;#Opis operacji;#Rachunek;#Kategoria;#Kwota",
            "#Data operacji;#Opis operacji;#Rachunek;#Kategoria;#Kwota;#Saldo po operacji",
            "#Data księgowania;#Data operacji;#Opis operacji;#Tytuł;#Nadawca/Odbiorca;\
             #Numer konta;#Kwota;#Saldo po operacji",
        ],
    ),
    (
        "N26",
        &[
            "Date;Payee;Account number;Transaction type;Payment reference;Amount (EUR);\
             Amount (Foreign Currency);Type Foreign Currency;Exchange Rate",
            "Datum;Empfänger;Kontonummer;Transaktionstyp;Verwendungszweck;Kategorie;Betrag (EUR);\
             Betrag (Fremdwährung);Fremdwährung;Wechselkurs",
            "Booking Date;Value Date;Partner Name;Partner Iban;Type;Payment Reference;\
             Account Name;Amount (EUR);Original Amount;Original Currency;Exchange Rate",
        ],
    ),
    (
        "Nordea",
        &[
            "Kirjauspäivä;Määrä;Maksaja;Maksunsaaja;Nimi;Otsikko;Viitenumero;Valuutta",
            "Kirjauspäivä;Määrä;Maksaja;Maksunsaaja;Nimi;Otsikko;Viesti;Viitenumero;Saldo;Valuutta",
            "Bokföringsdag;Belopp;Avsändare;Mottagare;Namn;Rubrik;Saldo;Valuta",
            "Bokföringsdag;Belopp;Avsändare;Mottagare;Namn;Rubrik;Meddelande;Egna anteckningar;\
             Saldo;Valuta",
            "Bokføringsdato;Beløp;Avsender;Mottaker;Navn;Tittel;Valuta;Betalingstype",
        ],
    ),
    (
        "OP",
        &["Kirjauspäivä;Arvopäivä;Määrä EUROA;Laji;Selitys;Saaja/Maksaja;\
             Saajan tilinumero ja pankin BIC;Viite;Viesti;Arkistointitunnus"],
    ),
    (
        "Rabobank",
        &["IBAN/BBAN;Munt;BIC;Volgnr;Datum;Rentedatum;Bedrag;Saldo na trn;\
             Tegenrekening IBAN/BBAN;Naam tegenpartij;Naam uiteindelijke partij;\
             Naam initiërende partij;BIC tegenpartij;Code;Batch ID;Transactiereferentie;\
             Machtigingskenmerk;Incassant ID;Betalingskenmerk;Omschrijving-1;Omschrijving-2;\
             Omschrijving-3;Reden retour;Oorspr bedrag;Oorspr munt;Koers"],
    ),
    (
        "Revolut",
        &[
            "Type;Product;Started Date;Completed Date;Description;Amount;Fee;Currency;State;\
             Balance",
            "Art;Produkt;Datum des Beginns;Datum des Abschlusses;Beschreibung;Betrag;Gebühr;\
             Währung;Status;Kontostand",
            "Rodzaj;Produkt;Data rozpoczęcia;Data zrealizowania;Opis;Kwota;Opłata;Waluta;State;\
             Saldo",
            "Tipo;Producto;Fecha de inicio;Fecha de finalización;Descripción;Importe;Comisión;\
             Divisa;State;Saldo",
            "Tipo;Producto;Fecha de inicio;Fecha de finalización;Descripción;Importe;Comisión;\
             Divisa;Estado;Saldo",
            "Type;Produit;Date de début;Date de fin;Description;Montant;Frais;Devise;État;Solde",
            "Type;Product;Startdatum;Datum voltooid;Beschrijving;Bedrag;Kosten;Valuta;Status;\
             Saldo",
            "Typ;Produkt;Datum zahájení;Datum dokončení;Popis;Částka;Poplatek;Měna;State;\
             Zůstatek",
            "Tipo;Produto;Data de início;Data de conclusão;Descrição;Montante;Comissão;Moeda;\
             Estado;Saldo",
            "Typ;Produkt;Dátum začiatku;Dátum dokončenia;Popis;Suma;Poplatok;Mena;State;Zostatok",
            "Típus;Termék;Kezdés dátuma;Teljesítés dátuma;Leírás;Összeg;Díj;Pénznem;State;\
             Egyenleg",
        ],
    ),
    (
        "Sparkasse",
        &[
            "Auftragskonto;Buchungstag;Valutadatum;Buchungstext;Verwendungszweck;\
             Beguenstigter/Zahlungspflichtiger;Kontonummer;BLZ;Betrag;Waehrung;Info",
            "Auftragskonto;Buchungstag;Valutadatum;Buchungstext;Verwendungszweck;Glaeubiger ID;\
             Mandatsreferenz;Kundenreferenz (End-to-End);Sammlerreferenz;\
             Lastschrift Ursprungsbetrag;Auslagenersatz Ruecklastschrift;\
             Beguenstigter/Zahlungspflichtiger;Kontonummer/IBAN;BIC (SWIFT-Code);Betrag;Waehrung;\
             Info",
        ],
    ),
    (
        "Starling",
        &["Date;Counter Party;Reference;Type;Amount (GBP);Balance (GBP);Spending Category;Notes"],
    ),
    (
        "Volksbanken and Raiffeisenbanken",
        &["Bezeichnung Auftragskonto;IBAN Auftragskonto;BIC Auftragskonto;\
             Bankname Auftragskonto;Buchungstag;Valutadatum;Name Zahlungsbeteiligter;\
             IBAN Zahlungsbeteiligter;BIC (SWIFT-Code) Zahlungsbeteiligter;Buchungstext;\
             Verwendungszweck;Betrag;Waehrung;Saldo nach Buchung;Bemerkung;\
             Gekennzeichneter Umsatz;Glaeubiger ID;Mandatsreferenz"],
    ),
    (
        "Wise",
        &[
            "TransferWise ID;Date;Amount;Currency;Description;Payment Reference;Running Balance;\
             Exchange From;Exchange To;Exchange Rate;Payer Name;Payee Name;Payee Account Number;\
             Merchant;Card Last Four Digits;Card Holder Full Name;Attachment;Note;Total fees",
            "TransferWise ID;Date;Amount;Currency;Description;Payment Reference;Running Balance;\
             Exchange From;Exchange To;Exchange Rate;Payer Name;Payee Name;Payee Account Number;\
             Merchant;Card Last Four Digits;Card Holder Full Name;Attachment;Note;Total fees;\
             Exchange To Amount",
            "TransferWise ID;Date;Date Time;Amount;Currency;Description;Payment Reference;\
             Running Balance;Exchange From;Exchange To;Exchange Rate;Payer Name;Payee Name;\
             Payee Account Number;Merchant;Card Last Four Digits;Card Holder Full Name;Attachment;\
             Note;Total fees;Exchange To Amount;Transaction Type;Transaction Details Type",
        ],
    ),
];

/// What rows say of money that went out, in whichever column: where none has a minus, some program
/// took them away.
const WENT_OUT: &[&str] = &[
    "ausgang",
    "ausgehend",
    "outgoing",
    "lastschrift",
    "dauerauftrag",
    "debit transfer",
    "direct debit",
    "kartenzahlung",
    "kartenbezahlung",
    "card payment",
    "card purchase",
    "card transaction",
    "mastercard",
    "presentment",
    "bankomat",
    "geldautomat",
    "withdrawal",
    "purchase",
    "einkauf",
    "sent money",
    "płatność kartą",
    "zakup",
    "pago con tarjeta",
    "compra",
    "cajero",
    "paiement par carte",
    "retrait",
    "pagamento con carta",
    "aankoop",
    "betaling met",
    "kortköp",
    "varekjøp",
    "korttiosto",
    "platba kartou",
    "plata cu cardul",
];

/// Whether a field says that money went out.
pub fn went_out(field: &str) -> bool {
    let field = normal(field);
    WENT_OUT.iter().any(|words| field.contains(words))
}

/// Whether these are the names of such a layout, as [`normal`] makes them, in any order; some end
/// each row, and so the header row, with one more delimiter.
pub fn are_known(names: &[String]) -> bool {
    let end = names.iter().rposition(|name| !name.is_empty()).map_or(0, |at| at.saturating_add(1));
    let mut own: Vec<String> = names.iter().take(end).cloned().collect();
    own.sort_unstable();
    let is_own = |header: &str| {
        let mut names: Vec<String> = header.split(';').map(normal).collect();
        names.sort_unstable();
        names == own
    };
    KNOWN.iter().any(|(_bank, headers)| headers.iter().any(|header| is_own(header)))
}
