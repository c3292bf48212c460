//! What banks call the columns of their exports, as [`crate::settlement::sheet::normal`] makes the
//! names: English, German, Dutch, French, Spanish, Italian, Portuguese, Polish, Czech, Swedish,
//! Danish, Norwegian, Finnish, Hungarian. A catalogue; only names that mean one thing.

use regex::Regex;

use crate::model::settlement::TagKind;
use crate::settlement::table::{Column, TagRule};

/// When it was booked, the surest first.
pub const DATE: &[&str] = &[
    "booking date",
    "posting date",
    "posted date",
    "date posted",
    "buchungstag",
    "buchungsdatum",
    "boekdatum",
    "boekingsdatum",
    "uitvoeringsdatum",
    "date d exécution",
    "date de comptabilisation",
    "date comptable",
    "fecha contable",
    "data contabile",
    "data księgowania",
    "datum zaúčtování",
    "bokföringsdag",
    "bokföringsdatum",
    "bokförd",
    "bogføringsdato",
    "bokføringsdato",
    "kirjauspäivä",
    "completed date",
    "könyvelés dátuma",
    "date",
    "datum",
    "dato",
    "data",
    "fecha",
    "transaction date",
    "transactiedatum",
    "transaktionsdatum",
    "transaktionsdag",
    "date opération",
    "date operation",
    "date de l opération",
    "fecha operación",
    "fecha operacion",
    "data operazione",
    "data operacji",
    "data transakcji",
    "data movimento",
    "data mov",
    "datum provedení",
    "buchung",
    "created",
    "päivämäärä",
    "dátum",
];

/// From when it bears interest.
pub const VALUE_DATE: &[&str] = &[
    "value date",
    "valutadatum",
    "wertstellung",
    "wertstellungsdatum",
    "wert",
    "rentedatum",
    "date de valeur",
    "date valeur",
    "fecha valor",
    "data valuta",
    "data waluty",
    "data valor",
    "valutadag",
    "rentedato",
    "arvopäivä",
    "valuta",
];

/// The amount, with its sign or beside a flag.
pub const AMOUNT: &[&str] = &[
    "amount",
    "transaction amount",
    "booked amount",
    "betrag",
    "bedrag",
    "montant",
    "importe",
    "importo",
    "quantia",
    "kwota",
    "kwota operacji",
    "kwota transakcji",
    "kwota transakcji waluta rachunku",
    "belopp",
    "beløb",
    "beløp",
    "määrä",
    "summa",
    "částka",
    "objem",
    "zaúčtovaná částka",
    "összeg",
];

/// A second amount, of which a column of the currency may speak.
pub const FOREIGN: &[&str] = &["amount currency"];

/// What names of further amounts hold: `original amount`, `kwota w walucie`.
const AMOUNTS: &[&str] = &[
    "amount", "betrag", "bedrag", "montant", "importe", "importo", "kwota", "belopp", "beløb",
    "beløp", "částka", "összeg",
];

/// Of these the ones that are taxes and fees, in the currency of the rest.
const TAKEN: &[&str] = &[
    "fee",
    "tax",
    "vat",
    "charge",
    "commission",
    "cashback",
    "gebühr",
    "mwst",
    "provision",
    "btw",
    "tva",
    "iva",
    "moms",
];

/// Whether a name is one of an amount, whichever.
pub fn is_amount(name: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(AMOUNTS) && !has(TAKEN) && !is_currency(name)
}

/// Whether a name may be one of a currency, also of that of a foreign amount.
pub fn is_currency(name: &str) -> bool {
    let is = |word: &str| CURRENCY.contains(&word);
    is(name) || name.ends_with("currency") || name.rsplit(' ').next().is_some_and(is)
}

/// Columns of a file that lists what a card paid.
pub const CARD: &[&str] = &[
    "card",
    "card id",
    "cardid",
    "card number",
    "card no",
    "card ending",
    "card last four",
    "card last 4",
    "card name",
    "card member",
    "cardmember",
    "card holder",
    "cardholder",
    "cardholder name",
    "card holder name",
    "kartennummer",
    "kreditkarte",
    "karteninhaber",
    "kaartnummer",
    "kortnummer",
    "kortinnehavare",
    "kortmedlem",
    "korttinumero",
    "numéro de carte",
    "número de tarjeta",
    "tarjeta",
    "numero carta",
    "numer karty",
];

/// Money out.
pub const DEBIT: &[&str] = &[
    "debit",
    "debet",
    "debits",
    "debit amount",
    "withdrawal",
    "withdrawals",
    "withdrawal amount",
    "paid out",
    "money out",
    "soll",
    "belastung",
    "lastschrift",
    "débit",
    "debito",
    "débito",
    "cargo",
    "cargos",
    "dare",
    "uscite",
    "obciążenia",
    "ut fra konto",
];

/// Money in.
pub const CREDIT: &[&str] = &[
    "credit",
    "credits",
    "credit amount",
    "deposit",
    "deposits",
    "deposit amount",
    "paid in",
    "money in",
    "haben",
    "gutschrift",
    "crédit",
    "credito",
    "crédito",
    "abono",
    "abonos",
    "avere",
    "entrate",
    "uznania",
    "inn på konto",
];

/// Which way the amount went.
pub const FLAG: &[&str] = &[
    "af bij",
    "debit credit",
    "credit debit",
    "credit debit indicator",
    "debet credit",
    "creditdebet",
    "d c",
    "dc",
    "cd",
    "c d",
    "dr cr",
    "s h",
    "soll haben",
    "sens",
    "cdtdbtind",
    "transaction type",
    "type",
];

/// Values of [`FLAG`] for money in.
pub const CREDITS: &[&str] = &["c", "cr", "credit", "crdt", "bij", "h", "haben", "crédit"];

/// And for money out.
pub const DEBITS: &[&str] = &["d", "dr", "debit", "debet", "dbit", "af", "s", "soll", "débit"];

/// Of the amount.
pub const CURRENCY: &[&str] = &[
    "currency",
    "currency code",
    "account currency",
    "ccy",
    "monn",
    "whg",
    "währung",
    "waehrung",
    "munt",
    "munt v d rekening",
    "munteenheid",
    "devies",
    "muntsoort",
    "valutacode",
    "valuta rekening",
    "devise",
    "devise du compte",
    "divisa",
    "moneda",
    "moeda",
    "waluta",
    "měna",
    "měna účtu",
    "devizanem",
    "valuuta",
    "valuta",
];

/// After the row.
pub const BALANCE: &[&str] = &[
    "balance",
    "running balance",
    "account balance",
    "balance after",
    "saldo",
    "saldo na trn",
    "saldo na mutatie",
    "saldo na boeking",
    "saldo nach buchung",
    "saldo po operacji",
    "saldo po transakcji",
    "saldo disponibile",
    "kontostand",
    "solde",
    "solde apres operation",
    "solde après opération",
    "zůstatek",
    "egyenleg",
    "bokfört saldo",
];

/// The own account. Names that some banks give to the other side are not here.
pub const ACCOUNT: &[&str] = &[
    "auftragskonto",
    "iban auftragskonto",
    "bezeichnung auftragskonto",
    "iban bban",
    "rekening",
    "own account",
    "account number",
    "account",
];

/// What a row says that tells how much there was, and not what moved.
pub const STANDS: &[&str] = &[
    "tagessaldo",
    "anfangssaldo",
    "endsaldo",
    "opening balance",
    "closing balance",
    "beginning balance",
    "ending balance",
    "balance brought forward",
    "balance carried forward",
    "solde initial",
    "solde final",
    "saldo inicial",
    "saldo final",
    "saldo iniziale",
    "saldo finale",
    "likutis pradžiai",
    "likutis pabaigai",
];

/// Of these the ones that no payer writes.
pub const NEVER_PAID: &[&str] = &["tagessaldo"];

/// Taken besides the amount.
pub const FEE: &[&str] =
    &["fee", "fees", "fee amount", "total fees", "gebühr", "gebühren", "poplatek", "kosten"];

/// Whether it was booked.
pub const STATUS: &[&str] =
    &["status", "statut", "state", "info", "transaction status", "booking status"];

/// Values of [`STATUS`] for what was.
pub const BOOKED: &[&str] = &[
    "completed",
    "complete",
    "booked",
    "posted",
    "settled",
    "cleared",
    "success",
    "successful",
    "umsatz gebucht",
    "gebucht",
    "executed",
    "geaccepteerd",
    "accepté",
    "",
];

/// References and texts.
pub const TAGS: &[(TagKind, &[&str])] = &[
    (
        TagKind::EndToEndId,
        &["kundenreferenz end to end", "end to end id", "endtoendid", "end to end reference"],
    ),
    (TagKind::Mandate, &["mandatsreferenz", "machtigingskenmerk", "mandate reference"]),
    (
        TagKind::CreditorReference,
        &[
            "betalingskenmerk",
            "variable symbol",
            "variable symbol 1",
            "variabilní symbol",
            "viite",
            "kid",
        ],
    ),
    (
        TagKind::CustomerReference,
        &[
            "reference",
            "payment reference",
            "customer reference",
            "reference number",
            "kundenreferenz",
            "referentie",
            "referens",
            "référence",
            "referencia",
            "riferimento",
        ],
    ),
    (
        TagKind::TransactionId,
        &["transaction id", "transactionid", "transactiereferentie", "transaction reference", "id"],
    ),
    (
        TagKind::Text,
        &[
            "description",
            "transaction description",
            "details",
            "transaction details",
            "narrative",
            "narration",
            "particulars",
            "memo",
            "text",
            "message",
            "remittance information",
            "payee",
            "name description",
            "verwendungszweck",
            "buchungstext",
            "buchungsdetails",
            "beschreibung",
            "omschrijving",
            "omschrijving 1",
            "omschrijving 2",
            "omschrijving 3",
            "naam omschrijving",
            "mededelingen",
            "mededeling",
            "communication",
            "communications",
            "libellés",
            "détails",
            "libellé",
            "libelle",
            "concepto",
            "descripción",
            "descripcion",
            "descrizione",
            "descrizione operazione",
            "causale",
            "descrição",
            "opis",
            "opis operacji",
            "opis transakcji",
            "tytuł",
            "tytuł operacji",
            "popis",
            "poznámka",
            "zpráva",
            "zpráva pro příjemce",
            "message for payee",
            "tekst",
            "forklaring",
            "beskrivning",
            "beskrivelse",
            "rubrik",
            "viesti",
            "selitys",
            "közlemény",
        ],
    ),
];

/// What a column of this kind yields: texts of German banks hold the payer's reference, too.
pub fn tag_rules(at: usize, kind: TagKind) -> Vec<TagRule> {
    let column = Column::Number(at.saturating_add(1));
    let whole = TagRule { column: column.clone(), kind, pattern: None };
    let word = r"EREF\+\s?(.+?)\s*(?:(?:KREF|MREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE)\+|$)";
    let within = match kind {
        TagKind::Text => Regex::new(word).ok(),
        _whole => None,
    };
    let within =
        within.map(|pattern| TagRule { column, kind: TagKind::EndToEndId, pattern: Some(pattern) });
    within.into_iter().chain([whole]).collect()
}
