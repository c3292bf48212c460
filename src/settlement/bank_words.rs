//! What banks call the columns of their exports, as [`crate::settlement::sheet::normal`] makes the
//! names: English, German, Dutch, French, Spanish, Italian, Portuguese, Polish, Czech, Swedish,
//! Slovak, Slovene, Croatian, Danish, Norwegian, Finnish, Hungarian, Estonian, Latvian, Lithuanian,
//! Turkish.
//! A catalogue; only names that mean one thing.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::model::money::Currency;
use crate::model::settlement::{EntryStatus, TagKind};
use crate::settlement::numeral::is_day;
use crate::settlement::sheet::{self, normal};
use crate::settlement::table::{Column, Declares, TagRule};

/// When it was booked, the surest first.
pub const DATE: &[&str] = &[
    "transaction value date",
    "booking date",
    "posting date",
    "post date",
    "posted date",
    "date posted",
    "posted transactions date",
    "buchungstag",
    "buchungsdatum",
    "buchungs datum",
    "booked at",
    "bokført dato",
    "bogført dato",
    "fullført på dato",
    "datum voltooid",
    "data de conclusão",
    "datum dokončení",
    "dátum dokončenia",
    "teljesítés dátuma",
    "дата выполнения",
    "fecha ctble",
    "boekdatum",
    "boekingsdatum",
    "uitvoeringsdatum",
    "date d exécution",
    "date de comptabilisation",
    "data di contabilizzazione",
    "date d écriture",
    "date comptable",
    "fecha contable",
    "data contabile",
    "data registrazione",
    "data di registrazione",
    "date d enregistrement",
    "data księgowania",
    "datum zaúčtování",
    "datum zaúčtování transakce",
    "dátum zaúčtovania",
    "dátum zúčtovania",
    "datum knjiženja",
    "datum izvršenja",
    "datum izvrsenja",
    "datum zuctovani",
    "datum verrekening",
    "bokföringsdag",
    "bokfdag",
    "bokföringsdatum",
    "bokförd",
    "bogføringsdato",
    "bokføringsdato",
    "kirjauspäivä",
    "completed date",
    "datum des abschlusses",
    "fecha de finalización",
    "data di completamento",
    "data zrealizowania",
    "könyvelés dátuma",
    "date completed utc",
    "settlement date utc",
    "date",
    "date utc",
    "datum",
    "dato",
    "data",
    "datums",
    "kuupäev",
    "data lanc",
    "data lançamento",
    "fecha",
    "txn date",
    "transaction date",
    "transactiedatum",
    "transactie datum",
    "transactiondate",
    "transaktionsdatum",
    "transaktionsdag",
    "date opération",
    "date operation",
    "date de l opération",
    "date de l opération utc",
    "fecha oper",
    "fecha operación",
    "fecha operacion",
    "fecha de operación",
    "fecha de operacion",
    "data operazione",
    "data dell operazione",
    "data operacji",
    "data transakcji",
    "дата платежа",
    "дата операции",
    "дата",
    "data movimento",
    "data mov",
    "data op",
    "date and time",
    "transaction time",
    "execution date",
    // Some mix letters of two alphabets.
    "дата і час операції",
    "дата i час операції",
    "datum provedení",
    "buchung",
    "created",
    "päivämäärä",
    "tarih",
    "işlem tarihi",
    "data tranzactiei",
    "data tranzacției",
    "data tranzacţiei",
    "tranzakció dátuma",
    "date de transaction",
    "utført dato",
    "transaktions datum",
    "dátum",
    // When a card was used.
    "belegdatum",
    "purchase date",
    "date d achat",
    "data di acquisto",
    // Of a row; beside another day of it, it may be the end of what was paid for.
    "date de fin",
    // Some tell no other one.
    "date de valeur",
];

/// When it was agreed or bought: a day beside the others.
const DEALT: &[&str] =
    &["abschlussdatum", "abschluss", "trade date", "kaufdatum", "auftragsdatum", "erfassungsdatum"];

/// Of these the ones that are when it was booked where the only other day is that of its value.
const BESIDE_VALUE: &[&str] = &["auftragsdatum", "erfassungsdatum"];

/// The day of a row whose value has one, too.
pub fn date_beside_value(names: &[String]) -> Option<usize> {
    let has_value = names.iter().any(|name| VALUE_DATE.contains(&name.as_str()));
    let own = names.iter().position(|name| BESIDE_VALUE.contains(&name.as_str()));
    own.filter(|_| has_value)
}

/// Whether a name is one of any day of a row.
pub fn is_date(name: &str) -> bool {
    [DATE, VALUE_DATE, DEALT].iter().any(|known| known.contains(&name))
}

/// What a payment to many was made of: an amount of a part, which moved nothing by itself.
const PARTS: &[&str] = &[
    "einzelbetrag",
    "sous montant",
    "importo singolo",
    "betrag detail",
    "betrag einzelzahlung",
    "amount detail",
    "individual amount",
    "detail",
];

/// Whether a name is one of the amount of a part, the currency at its end apart.
pub fn is_part(name: &str) -> bool {
    let stem = match name.rsplit_once(' ') {
        Some((stem, code)) if code.len() == 3 => stem,
        _name => name,
    };
    PARTS.contains(&name) || PARTS.contains(&stem)
}

/// From when it bears interest.
pub const VALUE_DATE: &[&str] = &[
    "value date",
    "valutadatum",
    "wertstellung",
    "wertstellungsdatum",
    "wertstellung valuta",
    "valuedate",
    "wert",
    "rentedatum",
    "date de valeur",
    "date valeur",
    "date de la valeur utc",
    "fecha valor",
    "data valuta",
    "data di valuta",
    "data val",
    "data waluty",
    "datum valute",
    "data valor",
    "valutadag",
    "rentedato",
    "arvopäivä",
    "valuta",
    "valuta date",
    "értéknap",
    "valör",
];

/// The amount, with its sign or beside a flag.
pub const AMOUNT: &[&str] = &[
    "amount",
    "transaction amount",
    "booked amount",
    "total amount incl vat",
    "betrag",
    "umsatz",
    "bedrag",
    "transactiebedrag",
    "montant",
    "montant total ttc",
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
    "suma",
    "čiastka",
    "částka",
    "objem",
    "zaúčtovaná částka",
    "částka transakce",
    "částka v měně účtu",
    "összeg",
    "tranzakció összege",
    "transaktionsbetrag",
    "buchungsbetrag",
    "iznos",
    "monto",
    "credit debit amount",
    "card currency amount",
    "сума в валюті картки",
    "сума у валюті картки",
];

/// Names of the amount that are also those of something else (a day, a part of another amount, a
/// card's file with its issuer's signs): only where none of [`AMOUNT`] is there, and a balance that
/// proves it.
pub const PROVEN_AMOUNT: &[&str] = &[
    "net amount",
    "value",
    "nettobetrag",
    "quantità",
    "valor",
    "montante",
    "tutar",
    "işlem tutarı",
    "сумма",
    "billing amount",
];

/// The columns of a card whose amounts have a name of the former, and a sign and a flag besides.
const BILLED: &[&str] = &[
    "transaction date",
    "post date",
    "billing amount",
    "billing currency",
    "transaction status",
    "merchant name",
    "credit debit",
];

/// The same of one whose amounts have the sign of their currency, and its issuer's minus.
const BILLED_IN_POUNDS: &[&str] = &[
    "transaction date",
    "posting date",
    "billing amount",
    "merchant",
    "reference number",
    "debit credit flag",
    "sicmcc code",
];

/// Whether a file has the columns of such a card.
pub fn is_billed(names: &[String]) -> bool {
    [BILLED, BILLED_IN_POUNDS].iter().any(|of| of.iter().all(|own| names.iter().any(|n| n == own)))
}

/// Of these the ones of a broker that says what moved the account beside what was paid.
pub const OF_ACCOUNT: &[&str] =
    &["nettobetrag in der währung des kontos", "nettobetrag in kontowährung"];

/// Banks that say of each row what was agreed and what that moved the account by, each with a
/// currency, or call it by a name that is another thing elsewhere: of all names that tell the bank,
/// the last two are those of the account.
const IN_ACCOUNT: &[&[&str]] = &[
    &[
        "data transakcji",
        "data księgowania",
        "szczegóły transakcji",
        "kwota operacji",
        "waluta operacji",
        "kwota w walucie rachunku",
        "waluta rachunku",
    ],
    &[
        "дата операции",
        "дата платежа",
        "номер карты",
        "статус",
        "описание",
        "сумма операции",
        "валюта операции",
        "сумма платежа",
        "валюта платежа",
    ],
    &[
        "дата операции",
        "дата обработки",
        "сумма операции",
        "валюта операции",
        "основание",
        "статус",
        "сумма пересчитанная в валюту счета",
        "валюта счета",
    ],
    &["дата операции", "дата обработки", "описание", "id операции", "сумма", "валюта"],
    &[
        "дата",
        "опис операції",
        "сума транзакції",
        "валюта транзакції",
        "сума в валюті картки",
        "валюта картки",
    ],
    &[
        "buchungsdatum",
        "time completed",
        "transaktionsart",
        "ursprungswährung",
        "ursprungsbetrag",
        "wallet saldo nach transaktion",
        "zahlungsbetrag",
        "zahlungswährung",
    ],
    &["completed date", "counterparty name", "reference", "payment amount", "payment currency"],
    &[
        "date",
        "transaction type",
        "description",
        "original amount",
        "original currency",
        "currency rate",
        "fee amount",
        "fee currency",
        "settlement amount",
        "settlement currency",
    ],
];

/// Whether a layout is one that is known to be an account's, whatever cards stand in it.
pub fn is_of_account(names: &[String]) -> bool {
    in_account(names).is_some() || WITH_CARDS.iter().any(|own| sheet::has(names, own))
}

/// Of such a bank's file, the names of what moved the account and of its currency.
fn in_account(names: &[String]) -> Option<(&'static [&'static str], &'static [&'static str])> {
    let own = IN_ACCOUNT.iter().find(|own| sheet::has(names, own))?;
    own.split_last_chunk::<2>().map(|(_, of_account)| of_account.split_at(1))
}

/// What the amount and its currency are called in a file with these names.
pub fn amounts(names: &[String]) -> (&'static [&'static str], &'static [&'static str]) {
    in_account(names).unwrap_or((AMOUNT, CURRENCY))
}

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

/// And those of a rate between two of them.
const RATES: &[&str] = &["kurs", "exchange rate"];

/// Whether a name is one of such a rate.
pub fn is_rate(name: &str) -> bool {
    let is_named = RATES.iter().any(|word| name.contains(word)) || name == "rate";
    is_named || name.ends_with(" rate") || ["tipo de cambio", "tasso di cambio"].contains(&name)
}

/// Whether a name is one of an amount, whichever.
pub fn is_amount(name: &str) -> bool {
    // Beside the tax there, what a card paid abroad.
    if name.starts_with("utl belopp") {
        return true;
    }
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    holds_amount(name) && !has(TAKEN) && !has(RATES) && !is_currency(name)
}

/// Whether a name holds a word for one.
pub fn holds_amount(name: &str) -> bool {
    AMOUNTS.iter().any(|word| name.contains(word))
}

/// Whether a name may be one of a currency, also of that of a foreign amount.
pub fn is_currency(name: &str) -> bool {
    let is = |word: &str| CURRENCY.contains(&word);
    let is_local = name.strip_suffix(" local").is_some_and(is);
    let is_whole = name.ends_with("currency") || name.ends_with("währung");
    is(name) || is_local || is_whole || name.rsplit(' ').next().is_some_and(is)
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
    "purchased by",
    "clearing date",
    "merchant",
    "merchant name",
    "merchantname",
    "händler",
    "handelaar",
];

/// How words begin, or what they hold, that name a card in the languages of banks.
const CARDS: &[&str] = &["carte", "carta", "kort", "tarjeta", "cartão", "cartao", "kárty", "карт"];
const CARDS_WITHIN: &[&str] = &["card", "kart", "kaart", "bankkort", "kreditkort", "debitkort"];

/// Other columns that a card's file may have: the shop, when something was bought beside another
/// day, and the end of a number.
const OF_CARDS: &[&str] = &[
    "merchant category",
    "merchant category code",
    "merchant type",
    "merchant city",
    "mcc",
    "händlername",
    "händlerkategorie",
    "commerçant",
    "esercente",
    "comercio",
    "einkaufsdatum",
    "kaufdatum",
    "date d achat",
    "data di acquisto",
    "last 4 digits",
    "last four",
    "last four digits",
];

/// What layouts of accounts have in which a card stands beside some rows.
const WITH_CARDS: &[&[&str]] =
    &[&["date utc", "description", "amount", "status", "source account", "bank description"]];

/// Whether a name is one of a column that a card's file has.
pub fn may_be_cards(name: &str) -> bool {
    let is_card = |word: &str| {
        CARDS.iter().any(|begin| word.starts_with(begin))
            || CARDS_WITHIN.iter().any(|part| word.contains(part))
    };
    // `Conto o carta` is either.
    !ACCOUNT.contains(&name) && (OF_CARDS.contains(&name) || name.split(' ').any(is_card))
}

/// Whether a name is one of an account, whose number may be masked as a card's is.
pub fn may_be_accounts(name: &str) -> bool {
    ["account", "konto", "conto", "compte", "cuenta", "conta", "rekening", "iban", "счет", "счёт"]
        .iter()
        .any(|part| name.contains(part))
}

/// Whether a name is one of the other side's account, which an account's file has and a card's has
/// not.
pub fn is_other_account(name: &str) -> bool {
    const OTHERS: [&str; 12] = [
        "protistran",
        "protiúčt",
        "counteraccount",
        "counter account",
        "counterparty account",
        "counterparty iban",
        "tegenrekening",
        "kontrahent",
        "beneficiary account",
        "partner iban",
        "partner account",
        "zahlungsbeteiligt",
    ];
    OTHERS.iter().any(|part| name.contains(part))
}

/// Whether a text is the number of a card whose digits are hidden but for a few: `**2748`,
/// `4155 XXXX XXXX 1234`.
pub fn is_masked(text: &str) -> bool {
    let is_mark = |c: char| matches!(c, '*' | 'X' | 'x' | '•');
    let is_own = |c: char| is_mark(c) || c.is_ascii_digit() || matches!(c, ' ' | '-' | '.');
    let marks = text.chars().filter(|c| is_mark(*c)).count();
    let shown = text.chars().rev().take_while(char::is_ascii_digit).count();
    text.len() <= 40 && marks >= 2 && (3..=6).contains(&shown) && text.chars().all(is_own)
}

/// All columns of cards whose names say nothing of one, and whose issuers write what was bought
/// without a minus.
const UNNAMED_CARDS: &[&[&str]] = &[
    &["date", "id", "amount", "description"],
    &["date", "description", "amount gbp"],
    &["date", "description", "note", "amount gbp"],
];

/// Whether a file has the columns of such a card, and no others.
pub fn is_unnamed_card(names: &[String]) -> bool {
    UNNAMED_CARDS.iter().any(|own| own.len() == names.len() && sheet::has(names, own))
}

/// Columns of one issuer's card, which writes what was bought without a minus.
pub const ISSUERS: &[&str] = &[
    "transaction date",
    "clearing date",
    "description",
    "merchant",
    "category",
    "type",
    "amount usd",
];

/// Columns that say of what kind a row is.
pub const KINDS: &[&str] = &[
    "type",
    "typ",
    "kind",
    "category",
    "kategorie",
    "transaction type",
    "transactiontype",
    "transaktionstyp",
    "umsatzart",
    "type operation",
];

/// More columns that do, whose words may say which way money went, and no more.
const MORE_KINDS: &[&str] = &[
    "typ transakcji",
    "typ operacji",
    "rodzaj transakcji",
    "rodzaj operacji",
    "tipo di ordine",
    "tipo di movimento",
    "tipo",
    "tipo movimento",
    "tipo de movimento",
    "natureza",
    "type opération",
    "tipo de operación",
    "auftragsart",
    "transaktionsart",
    "buchungsart",
    "type d opération",
    "type de transaction",
    "soort transactie",
    "mutatiesoort",
    "typ transakce",
    "typ pohybu",
    "umsatztyp",
    "směr úhrady",
];

/// Whether a name is one of the kind of a row.
pub fn is_kind(name: &str) -> bool {
    KINDS.contains(&name) || MORE_KINDS.contains(&name)
}

/// How words for what goes out begin, without accents, and those for what comes in.
const GOES_OUT: &[&str] = &[
    "outgoing",
    "wychodzac",
    "ausgehend",
    "ausgang",
    "zahlungsausgang",
    "uitgaand",
    "sortant",
    "saliente",
    "odchozi",
];
const COMES_IN: &[&str] = &[
    "incoming",
    "przychodzac",
    "eingehend",
    "eingang",
    "zahlungseingang",
    "inkomend",
    "inkommande",
    "entrant",
    "prichozi",
];

/// Whether the kind of a row says that its money went out (true) or came in; none where it says
/// neither, or both.
pub fn way_of(kind: &str) -> Option<bool> {
    let kind: String = kind.chars().flat_map(char::to_lowercase).map(bare).collect();
    let has = |known: &[&str]| {
        let mut words = kind.split(|c: char| !c.is_alphanumeric());
        words.any(|word| known.iter().any(|begin| word.starts_with(begin)))
    };
    // An invoice that came in is paid, and what was undone went the other way.
    if ["rechnung", "storno", "ruck", "fracht"].iter().any(|own| kind.contains(own)) {
        return None;
    }
    // That of a credit says nothing: so a scheme for money either way is called.
    let is_out = has(GOES_OUT) || kind.trim() == "debit transfer";
    match (is_out, has(COMES_IN)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _neither => None,
    }
}

/// What a row says that its money did, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It bought: money out for whoever holds the account.
    Bought,
    /// A sale, to whoever holds a card, or by whoever has a shop.
    Sold,
    /// It paid the card's bill, or came back: money in.
    Paid,
    /// It came back: money in for a buyer, and out for a shop.
    Returned,
}

const DEEDS: &[(Deed, &[&str])] = &[
    (
        Deed::Bought,
        &[
            "purchase",
            "purchases",
            "einkauf",
            "kauf",
            "achat",
            "compra",
            "acquisto",
            "aankoop",
            "zakup",
            "köp",
            "køb",
            "kjøp",
        ],
    ),
    (Deed::Sold, &["sale", "sales"]),
    (Deed::Paid, &["payment", "payments", "zahlung", "paiement", "pago", "pagamento", "betaling"]),
    (
        Deed::Returned,
        &["return", "refund", "credit", "gutschrift", "remboursement", "rimborso", "retour"],
    ),
];

/// What the word for a kind says.
pub fn deed(kind: &str) -> Option<Deed> {
    let kind = normal(kind);
    let known = DEEDS.iter().find(|(_, words)| words.contains(&kind.as_str()));
    known.map(|(deed, _)| *deed)
}

/// How the text of money begins that came in, as when a card's bill was paid.
const CAME_IN: &[&str] = &[
    "payment received",
    "payment thank you",
    "automatic payment thank",
    "autopay payment thank",
    "thank you for your payment",
    "ihre zahlung",
    "zahlung danke",
    "zahlung besten dank",
    "votre paiement",
    "paiement merci",
    "geincasseerd vorig saldo",
    "inbetalning",
    "indbetaling",
    "innbetaling",
    "zahlung erhalten",
    "zahlung überweisung erhalten",
    "überweisung erhalten",
    "zahlungseingang",
    "hartelijk bedankt",
    "bedankt voor uw betaling",
    "prelevement automatique enregistre",
    "prélèvement automatique enregistré",
    "paiement reçu",
    "paiement recu",
    "merci pour votre paiement",
    "pago recibido",
    "gracias por su pago",
    "pagamento ricevuto",
    "pagamento recebido",
    "betaling mottatt",
    "betaling modtaget",
    "betalning mottagen",
];

/// The same of a card's bill, where an account that pays one writes it, too.
const MAY_HAVE_COME_IN: &[&str] = &[
    "autopay",
    "auto pay",
    "automatic payment",
    "online payment",
    "internet payment",
    "mobile payment",
    "electronic payment",
    "web payment",
    "e payment",
    "epayment",
    "credit card payment",
    "direct debit payment",
    "direct debit thank",
    "einzahlung",
    "lastschrift kontoausgleich",
    "kontoausgleich",
    "ausgleich kreditkarte",
    "ausgleich kreditkartenkonto",
    "kreditkartenausgleich",
    "addebito in conto",
    "betaling eurocard",
    "repayment",
    "card repayment",
    "credit card repayment",
    "splata karty",
    "spłata karty",
];

/// All of the text of such a row, where it says no more: an account writes so of any direct debit,
/// or payment.
const DIRECT_DEBITS: &[&str] = &[
    "lastschrift",
    "direct debit",
    "sepa direct debit",
    "sepa lastschrift",
    "bankeinzug",
    "payment",
];

/// Whether a text says that something was collected or paid, and neither by whom nor for what.
pub fn is_direct_debit(text: &str) -> bool {
    text.len() <= 40 && DIRECT_DEBITS.contains(&normal(text).as_str())
}

/// Words of thanks, without accents: whoever is paid writes them, a card's issuer and a shop alike.
const THANKS: &[&str] = &[
    "thank",
    "thanks",
    "thankyou",
    "danke",
    "dank",
    "merci",
    "grazie",
    "gracias",
    "obrigado",
    "obrigada",
    "tack",
    "takk",
    "bedankt",
    "kiitos",
    "dekujeme",
    "dakujeme",
    "dziekujemy",
];

/// Whether a text thanks, anywhere.
pub fn has_thanks(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        let letters = word.chars().flat_map(char::to_lowercase).map(bare);
        let begins = |known: &&str| known.chars().next() == letters.clone().next();
        THANKS.iter().filter(|known| begins(known)).any(|known| known.chars().eq(letters.clone()))
    })
}

fn begins_as(text: &str, known: &[&str]) -> bool {
    let text = text.trim_start();
    // Most begin otherwise.
    let first = text.chars().next().and_then(|c| c.to_lowercase().next());
    if !first.is_some_and(|first| known.iter().any(|begin| begin.starts_with(first))) {
        return false;
    }
    let text = normal(text);
    known.iter().any(|begin| text.starts_with(begin))
}

/// Whether a text is of money that came in, and not of money that went out.
pub fn came_in(text: &str) -> bool {
    begins_as(text, CAME_IN)
}

/// Whether a text is of money that came in for a card, and went out of an account that paid it.
pub fn may_have_come_in(text: &str) -> bool {
    begins_as(text, MAY_HAVE_COME_IN)
}

/// Money out.
pub const DEBIT: &[&str] = &[
    "debit",
    "debet",
    "debits",
    "debit amount",
    "withdrawal",
    "withdrawals",
    "withdrawal amount",
    "withdrawal amt",
    "paid out",
    "money out",
    "soll",
    "belastung",
    "belastungsbetrag",
    "importo di addebito",
    "montant du débit",
    "montant de débit",
    "montant débité",
    "lastschrift",
    "débit",
    "debito",
    "débito",
    "cargo",
    "cargos",
    "dare",
    "uscite",
    "addebito",
    "addebiti",
    "obciążenia",
    "isplata",
    "isplate",
    "breme",
    "v breme",
    "ut fra konto",
    "beløp ut",
    "borç",
    "terhelés",
    "suma debit",
];

/// Money in.
pub const CREDIT: &[&str] = &[
    "credit",
    "credits",
    "credit amount",
    "deposit",
    "deposits",
    "deposit amount",
    "deposit amt",
    "paid in",
    "money in",
    "haben",
    "gutschrift",
    "gutschriftsbetrag",
    "importo di accredito",
    "montant du crédit",
    "montant de crédit",
    "montant crédité",
    "crédit",
    "credito",
    "crédito",
    "abono",
    "abonos",
    "avere",
    "entrate",
    "accredito",
    "accrediti",
    "uznania",
    "uplata",
    "uplate",
    "dobro",
    "v dobro",
    "inn på konto",
    "beløp inn",
    "alacak",
    "jóváírás",
    "suma credit",
];

/// Two sides whose names mean them only beside each other: money out, and in.
const PAIRS: &[(&str, &str)] = &[
    ("payments", "receipts"),
    ("out", "in"),
    ("debe", "haber"),
    ("egresos", "ingresos"),
    ("wydatki", "wpływy"),
    ("расход", "приход"),
    ("дебет", "кредит"),
    ("na vrub", "ve prospěch"),
    ("uttag", "insättning"),
    ("ut", "inn"),
    ("hævet", "indsat"),
    ("dr", "cr"),
    ("借方", "贷方"),
    ("支出", "收入"),
];

/// Where the only such pair stands among the names.
pub fn pair(names: &[String]) -> Option<(usize, usize)> {
    let only = |wanted: &str| {
        let mut places = names.iter().enumerate().filter(|(_, name)| *name == wanted);
        let (at, _) = places.next()?;
        places.next().is_none().then_some(at)
    };
    let mut pairs = PAIRS.iter().filter_map(|(out, into)| only(out).zip(only(into)));
    let first = pairs.next()?;
    pairs.next().is_none().then_some(first)
}

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
    "cr dr",
    "crdr",
    "drcr",
    "debitcredit",
    "dbt cdt",
    "cdt dbt",
    "dbtcdt",
    "cdtdbt",
    "d c indicator",
    "dr cr indicator",
    "cr dr indicator",
    "debit credit indicator",
    "debit credit flag",
    "deebet kreedit",
    "deebet kreedit d c",
    "debets kredīts",
    "debet kredit",
    "d k",
    "debe haber",
    "dare avere",
    "indicator",
    "direction",
    "belastung gutschrift",
    "belastung oder gutschrift",
    "sign",
    "in out",
    "transaction type",
    "type",
];

/// What one bank calls it, and others what kind a row is: only by [`is_spelled_way`].
pub const WAYS: &[&str] = &["typ"];

/// Whether a value is one of the two words of that bank; kinds of cards are others.
pub fn is_spelled_way(value: &str) -> bool {
    ["debet", "kredit"].contains(&normal(value).as_str())
}

/// Values of [`FLAG`] for money in.
pub const CREDITS: &[&str] = &[
    "c",
    "cr",
    "credit",
    "crdt",
    "bij",
    "h",
    "haben",
    "crédit",
    "crédito",
    "credito",
    "k",
    "kredit",
    "kreedit",
    "haber",
    "abono",
    "avere",
    "deposit",
    "in",
    "incoming",
    "+",
    "gutschrift",
    "accredito",
    "entrata",
    "entrada",
    "ingreso",
];

/// And for money out.
pub const DEBITS: &[&str] = &[
    "d",
    "dr",
    "debit",
    "debet",
    "dbit",
    "af",
    "s",
    "soll",
    "débit",
    "débito",
    "debito",
    "deebet",
    "debe",
    "belastung",
    "lastschrift",
    "addebito",
    "uscita",
    "saída",
    "gasto",
    "cargo",
    "dare",
    "withdrawal",
    "out",
    "outgoing",
    "-",
];

/// Of both the ones that mean nothing else: one of them alone makes a column a flag.
const ABBREVIATED: &[&str] = &["cr", "dr", "crdt", "dbit"];

/// Whether a value of [`FLAG`] is one for money out; none where it is not known.
pub fn is_debit(flag: &str) -> Option<bool> {
    let (bare, flag) = (flag.trim(), normal(flag));
    let is = |words: &[&str]| words.iter().any(|word| *word == flag || *word == bare);
    if is(DEBITS) { Some(true) } else { is(CREDITS).then_some(false) }
}

/// Whether a value can only be one of [`FLAG`].
pub fn is_abbreviated(flag: &str) -> bool {
    ABBREVIATED.contains(&normal(flag).as_str())
}

/// Whether a name is known at all, the currency at its end apart.
pub fn is_known(name: &str) -> bool {
    let lists = [
        DATE,
        VALUE_DATE,
        DEALT,
        AMOUNT,
        PROVEN_AMOUNT,
        DEBIT,
        CREDIT,
        FLAG,
        CURRENCY,
        BALANCE,
        ACCOUNT,
        STATUS,
        FEE,
        KINDS,
        TEXT_ALONE,
    ];
    let mut tags = TAGS.iter().map(|(_, known)| *known);
    lists.iter().any(|known| known.contains(&name)) || tags.any(|known| known.contains(&name))
}

/// Of the amount.
pub const CURRENCY: &[&str] = &[
    "currency",
    "currency code",
    "account currency",
    "posted currency",
    "payment currency",
    "billing currency",
    "ccy",
    "monn",
    "monnaie",
    "moneta",
    "whg",
    "whrg",
    "para birimi",
    "curr",
    "währung",
    "waehrung",
    "buchungswährung",
    "munt",
    "munt v d rekening",
    "munteenheid",
    "devies",
    "muntsoort",
    "valutacode",
    "valuta rekening",
    "valutasoort rekening",
    "valutasoort mutatie",
    "devise",
    "devise du compte",
    "divisa",
    "div",
    "moneda",
    "moeda",
    "waluta",
    "měna",
    "měna účtu",
    "mena",
    "devizanem",
    "pénznem",
    "deviza",
    "összeg devizaneme",
    "tranzakció devizaneme",
    "валюта",
    "mutationcode",
    "valuuta",
    "valuutta",
    "valiuta",
    "valūta",
    "valuta",
];

/// Whether a name is one of the currency of a row.
pub fn is_code(name: &str) -> bool {
    CURRENCY.contains(&name)
}

/// The columns of one bank whose accounts are all in dollars: its file tells the currency of what a
/// card paid, and never that of the amount, which is always the account's.
const IN_DOLLARS: &[&str] =
    &["date utc", "description", "amount", "status", "bank description", "reference", "note"];

/// Whether a file's columns are those of accounts in dollars.
pub fn is_in_dollars(names: &[String]) -> bool {
    sheet::has(names, IN_DOLLARS)
}

/// Exports that name no currency, of banks whose accounts with these columns are in one alone, by
/// the customers who publish them: Chase's accounts and cards, Bank of America's, Capital One's
/// 360, and a credit union of the United States (Digital); HDFC Bank, with the day that it
/// misspells. A layout that a bank of another country has as well, as Capital One's cards in
/// Canada, is none.
const IN_ONE: &[(&str, &[&str])] = &[
    (
        "USD",
        &[
            "details;posting date;description;amount;type;balance;check or slip",
            "transaction date;post date;description;category;type;amount;memo",
            "card;transaction date;post date;description;category;type;amount;memo",
            "date;description;amount;running bal",
            "account number;transaction description;transaction date;transaction type;\
             transaction amount;balance",
            "date;transaction type;description;amount;id;memo;current balance",
        ],
    ),
    (
        "INR",
        &["date;narration;value dat;debit amount;credit amount;chq ref number;closing balance"],
    ),
];

/// The columns of two more banks that name no currency: one of the United States, whose amounts
/// have the sign of a dollar, and one of Sweden, whose amounts have that of a crown.
const CHECKING: &[&str] = &[
    "date",
    "status",
    "type",
    "checknumber",
    "description",
    "withdrawal",
    "deposit",
    "runningbalance",
];
const IN_CROWNS: &[&str] = &["datum", "text", "typ", "budgetgrupp", "belopp", "saldo"];

/// The currency of a bank that has accounts in one alone, by all of its columns, and the sign that
/// each of its amounts has.
pub fn only_currency(names: &[String]) -> Option<(Currency, &'static str)> {
    let is = |own: &[&str]| names.len() == own.len() && sheet::has(names, own);
    let known = [(CHECKING, "USD", "$"), (IN_CROWNS, "SEK", "kr")];
    let signed = known.into_iter().find(|(own, ..)| is(own)).map(|(_, code, sign)| (code, sign));
    let (code, sign) = signed.or_else(|| in_one(names).map(|code| (code, "")))?;
    Currency::parse(code).ok().map(|currency| (currency, sign))
}

/// The currency of one of [`IN_ONE`]; some end the header row, too, with one more delimiter.
fn in_one(names: &[String]) -> Option<&'static str> {
    let end = names.iter().rposition(|name| !name.is_empty()).map_or(0, |at| at.saturating_add(1));
    let names = names.get(..end)?;
    let is_row = |row: &&str| row.split(';').eq(names.iter().map(String::as_str));
    let known = IN_ONE.iter().find(|(_, rows)| rows.iter().any(is_row));
    known.map(|(code, _)| *code)
}

/// Whether a file's columns are those of a bank of the United States, which write the month first.
pub fn is_month_first(names: &[String]) -> bool {
    in_one(names) == Some("USD")
}

/// The columns of a bank that calls its amounts by the code of their currency alone.
pub const OF_CODE: &[&str] = &["data", "descrizione", "caus"];

/// The columns of a bank that writes amounts of two currencies, each into a column of its own.
pub const OF_TWO: &[&str] = &[
    "account type",
    "account number",
    "transaction date",
    "cheque number",
    "description 1",
    "description 2",
    "cad",
    "usd",
];

/// Whether a kind of account of that bank's is none of a card.
pub fn is_deposit(kind: &str) -> bool {
    let kind = normal(kind);
    kind.split(' ').any(|word| ["chequing", "savings"].contains(&word))
}

/// Columns of a bank that leaves out what is empty at the end of a row.
const ENDS_EARLY: &[&str] = &["id operace", "datum", "objem", "měna", "id pokynu"];

/// Whether a file's columns are those of rows that may end early.
pub fn may_end_early(names: &[String]) -> bool {
    sheet::has(names, ENDS_EARLY)
}

/// After the row.
pub const BALANCE: &[&str] = &[
    "balance",
    "running balance",
    "running bal",
    "runningbalance",
    "account balance",
    "balance after",
    "balance after transaction",
    "wallet saldo nach transaktion",
    "closing balance",
    "outstanding balance",
    "saldo",
    "saldo na trn",
    "saldo na mutatie",
    "saldo na boeking",
    "bal after bkng",
    "saldo nach buchung",
    "eindsaldo",
    "endsaldo",
    "saldo po operacji",
    "saldo po transakcji",
    "saldo disponibile",
    "kontostand",
    "solde",
    "solde apres operation",
    "solde après opération",
    "zůstatek",
    "účetní zůstatek po transakci",
    "koncový stav",
    "zostatok",
    "stanje",
    "egyenleg",
    "bokfört saldo",
    "bogført saldo",
    "остаток средств",
    "bakiye",
    "залишок після операції",
    "залишок на кінець періоду",
];

/// What the account held before each row and after it, where both stand beside the amount.
pub const BEFORE_AND_AFTER: &[(&str, &str)] = &[
    ("beginsaldo", "eindsaldo"),
    ("saldo voor mutatie", "saldo na mutatie"),
    ("počáteční stav", "koncový stav"),
];

/// What the account held before the row.
pub const HELD_BEFORE: &[&str] = &["saldo voor mutatie", "počáteční stav"];

/// Names of the own account, each beside the name of the other side's: alone they are either's.
const OWN_BESIDE: &[(&str, &[&str])] = &[
    ("konto", &["nr rachunku"]),
    ("číslo účtu", &["číslo účtu protiúčtu", "číslo protiúčtu"]),
    // Of one's own bank a row says the clearing number, too.
    ("kontonr", &["clnr"]),
    ("kontonummer", &["clearingnummer"]),
];

/// The own account by its name, where that of the other side is there as well.
pub fn own_beside(names: &[String]) -> Option<usize> {
    OWN_BESIDE.iter().find_map(|(own, others)| {
        let is_beside = names.iter().any(|name| others.contains(&name.as_str()));
        names.iter().position(|name| name == own).filter(|_| is_beside)
    })
}

/// Names of the other side. A column of an account behind one of these is theirs.
pub const OTHER_SIDE: &[&str] = &[
    "payee",
    "payer",
    "payee name",
    "payer name",
    "beneficiary",
    "beneficiary payer",
    "counterparty",
    "counterparty name",
    "partner name",
    "name",
    "recipient",
    "sender",
];

/// Names of [`ACCOUNT`] that some banks give to the other side's.
pub const EITHER_ACCOUNT: &[&str] = &["account number", "account no", "account"];

/// More names of the other side, none of which is one of the account's holder.
const SIDES: &[&str] = &[
    "partnername",
    "name zahlungsbeteiligter",
    "auftraggeber empfänger",
    "beguenstigter zahlungspflichtiger",
    "begünstigter zahlungspflichtiger",
    "naam tegenpartij",
    "tegenrekening",
    "dane kontrahenta",
    "counter party",
    "saaja maksja",
    "saņēmējs maksātājs",
    "gavėjas",
];

/// Whether a name is one of the other side of a payment.
pub fn is_other_side(name: &str) -> bool {
    // `name` may be that of the account's holder.
    SIDES.contains(&name) || name != "name" && OTHER_SIDE.contains(&name)
}

/// The own account.
pub const ACCOUNT: &[&str] = &[
    "auftragskonto",
    "iban auftragskonto",
    "bezeichnung auftragskonto",
    "iban bban",
    "rekening",
    "own account",
    "client account",
    "source account",
    "posted account",
    "conto o carta",
    "kliendi konto",
    "klienta konts",
    "sąskaitos nr",
    "account no",
    "account number",
    "account",
];

/// Names of an account that are those of the own one only where it leads the row.
pub const LEADING_ACCOUNT: &[&str] = &["iban", "konto", "kontonummer", "rekeningnummer"];

/// What rows above a table call the own account by; and `iban`.
const ACCOUNT_ABOVE: &[&str] = &[
    "konto",
    "kontonummer",
    "konto nr",
    "kontonr",
    "account number",
    "account no",
    "accountid",
    "account id",
    "numéro de compte",
    "numero de compte",
    "número de cuenta",
    "numero di conto",
    "numer rachunku",
    "rekeningnummer",
];

/// The accounts that a row above the table names, in one field (`IBAN: CH93…`) or in the next, and
/// whether it calls them an IBAN.
pub fn accounts(row: &[String]) -> Vec<(bool, String)> {
    let said = named(row).filter_map(|(name, value)| account_named(&name, value));
    said.chain(titled_account(row).map(|own| (false, own))).collect()
}

fn account_named(name: &str, value: &str) -> Option<(bool, String)> {
    let is_own = name == "iban" || ACCOUNT_ABOVE.contains(&name);
    let value = value.trim_matches(|c: char| matches!(c, '=' | '"') || c.is_whitespace());
    let value = without_currency(value);
    is_own.then(|| (name == "iban", value.to_owned()))
}

/// The same of a row whose names stand above what they say: the next row has as many fields. A
/// further account below that one makes a list of them, of which any may be the file's.
pub fn accounts_below([heads, row, next]: [&[String]; 3]) -> Vec<(bool, String)> {
    let is_table = heads.len() == row.len() && !heads.iter().any(|name| may_be_account(name));
    let pairs = heads.iter().zip(row).enumerate().filter(|_| is_table);
    let is_one = |at: usize| next.get(at).is_none_or(|further| !may_be_account(further));
    let own = pairs.filter(|(at, _)| is_one(*at));
    own.filter_map(|(_, (name, value))| account_named(&normal(name), value)).collect()
}

/// The account within a title that is alone in its row: `Výpis č. 7/2026 z účtu "123/2010"`.
fn titled_account(row: &[String]) -> Option<String> {
    let mut filled = row.iter().filter(|field| !field.is_empty());
    let title = filled.next().filter(|_| filled.next().is_none())?;
    let (_, behind) = title.split_once(" z účtu ")?;
    Some(behind.trim_matches(['"', ' ']).to_owned())
}

/// An account without its currency behind it: `DE12… / EUR`.
fn without_currency(account: &str) -> &str {
    let Some((before, code)) = account.rsplit_once(' ') else { return account };
    match code.len() == 3 && Currency::parse(code).is_ok() {
        true => before.trim_end_matches([' ', '/']),
        false => account,
    }
}

/// What a row above the table says by each name: behind it in one field (`IBAN: CH93…`), or in the
/// next.
fn named(row: &[String]) -> impl Iterator<Item = (String, &str)> {
    let next = row.iter().skip(1).map(Some).chain([None]);
    row.iter().zip(next).filter_map(|(field, next)| {
        let (name, value) = match field.split_once(':') {
            Some((name, value)) if !value.trim().is_empty() => (name, value),
            _alone => (field.as_str(), next?.as_str()),
        };
        Some((normal(name), value))
    })
}

/// Whether a text may be what an account is known by, and no name of its kind: it has figures, and
/// no word.
pub fn may_be_account(text: &str) -> bool {
    let figures = text.chars().filter(char::is_ascii_digit).count();
    let is_part = |c: char| {
        c.is_ascii_digit() || c.is_ascii_uppercase() || matches!(c, ' ' | '-' | '.' | '/')
    };
    figures >= 4 && text.len() <= 40 && text.chars().all(is_part)
}

/// What a row says that tells how much there was, or what all came to, and not what moved. Words
/// that payers write as well (`Übertrag`) are not here.
pub const STANDS: &[&str] = &[
    "nouveau solde au",
    "stan na początek",
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
    "solde en début de période",
    "solde en fin de période",
    "saldo inicial",
    "saldo final",
    "saldo iniziale",
    "saldo contabile iniziale in euro",
    "saldo contabile finale in euro",
    "saldo finale",
    "disponibilità",
    "disponibilita",
    "disponibilidad",
    "disponibilité",
    "likutis pradžiai",
    "likutis pabaigai",
    "saldovortrag",
    "schlusssaldo",
    "kontostand",
    "alter kontostand",
    "neuer kontostand",
    "balance b f",
    "balance c f",
    "b f",
    "c f",
    "b fwd",
    "c fwd",
    "beginsaldo",
    "eindsaldo",
    "oud saldo",
    "nieuw saldo",
    "ingående saldo",
    "utgående saldo",
    "saldo początkowe",
    "saldo końcowe",
    "počáteční zůstatek",
    "konečný zůstatek",
    "algsaldo",
    "lõppsaldo",
    "käive",
    "apyvarta",
    "turnover",
    "atlikums",
    "sākuma atlikums",
    "beigu atlikums",
    "apgrozījums",
    "totals",
    "summe",
    "umsatz gesamt",
    "totale",
    "totaal",
    "brought forward",
    "carried forward",
    "anfangsbestand",
    "endbestand",
    "zwischensaldo",
    "zwischensumme",
    "abschlusssaldo",
    "gesamtsumme",
    "alkusaldo",
    "loppusaldo",
    "primosaldo",
    "ultimosaldo",
    "slotsaldo",
    "total debit",
    "total debits",
    "total credit",
    "total credits",
    "subtotal",
    "sous total",
    "grand total",
    "total general",
    "razem",
    "összesen",
    "αρχικό υπόλοιπο",
    "τελικό υπόλοιπο",
    "входящий остаток",
    "исходящий остаток",
    "остаток на начало",
    "остаток на конец",
    "начално салдо",
    "крайно салдо",
    "startsaldo",
    "slutsaldo",
    "saldo em conta",
    "anfangsguthaben",
    "gesamtsaldo",
    "eröffnungssaldo",
    "saldoübertrag",
    "buchsaldo",
    "bal fwd",
    "solde reporté",
    "report à nouveau",
    "suma y sigue",
    "saldo a nuevo",
    "openingssaldo",
    "sluitingssaldo",
    "aanvangssaldo",
    "saldo z przeniesienia",
    "nyitóegyenleg",
    "záróegyenleg",
    "algjääk",
    "lõppjääk",
    "pradinis likutis",
    "galutinis likutis",
    "ienākošais atlikums",
    "izejošais atlikums",
    "входящее сальдо",
    "исходящее сальдо",
    "начальный остаток",
    "конечный остаток",
    "вхідний залишок",
    "вихідний залишок",
    "начален баланс",
    "краен баланс",
    "gesamtumsatz",
    "totalbetrag",
    "zwischentotal",
    "subtotaal",
    "subtotale",
    "mezisoučet",
    "delsumma",
    "totalsumma",
    "kokonaissumma",
    "genel toplam",
    "ara toplam",
    "sveukupno",
];

/// The same, where they are all of the text: shops and payees are called so, with more behind it.
const STANDS_ALONE: &[&str] = &[
    "primo",
    "ultimo",
    "vortrag",
    "op bal",
    "cl bal",
    "devir",
    "rulaj",
    "rulaj zi",
    "rulaj total cont",
    "riporto",
    "riporto saldo",
    "bilans otwarcia",
    "ab likutis",
    "εκ μεταφοράς",
    "期初余额",
    "上期结余",
    "承上余额",
    "前期繰越",
    "остаток",
    "υπόλοιπο",
    "салдо",
    "итого",
    "残高",
    "期初残高",
    "期末残高",
    "繰越",
    "合計",
];

/// Words for a sum that stand alone, or beside some of [`SUMMED`]; without accents.
const SUMS: &[&str] = &[
    "total",
    "totale",
    "totaal",
    "summe",
    "summa",
    "suma",
    "sum",
    "somme",
    "gesamt",
    "gesamtbetrag",
    "umsatzsumme",
    "tagessumme",
    "monatssumme",
    "endsumme",
    "yhteensa",
    "celkem",
    "spolu",
    "toplam",
    "sammanlagt",
    "ialt",
    "totals",
    "totali",
    "totales",
    "totais",
    "totaux",
    "osszesen",
    "ukupno",
    "kokku",
    "итого",
    "всего",
    "合計",
    "合计",
];

/// What it is a sum of.
const SUMMED: &[&str] = &[
    "for",
    "week",
    "weekly",
    "account",
    "statement",
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "januar",
    "februar",
    "marz",
    "mai",
    "juni",
    "juli",
    "oktober",
    "dezember",
    "of",
    "des",
    "der",
    "de",
    "du",
    "the",
    "all",
    "alle",
    "net",
    "grand",
    "running",
    "day",
    "daily",
    "month",
    "monthly",
    "page",
    "period",
    "general",
    "generale",
    "transactions",
    "operations",
    "operaciones",
    "movimientos",
    "movimenti",
    "complessivo",
    "ecritures",
    "mouvements",
    "umsatze",
    "umsaetze",
    "buchungen",
    "haben",
    "soll",
    "debit",
    "debits",
    "credit",
    "credits",
    "deposits",
    "withdrawals",
    "debet",
    "kredit",
    "debe",
    "haber",
    "dare",
    "avere",
    "entrate",
    "uscite",
    "cargos",
    "abonos",
    "bij",
    "af",
    "in",
    "out",
    "einnahmen",
    "ausgaben",
    "amount",
    "amounts",
    "belastungen",
    "gutschriften",
    "lastschriften",
    "eingange",
    "ausgange",
    "payments",
    "purchases",
    "debiti",
    "debitos",
    "creditos",
    "addebiti",
    "accrediti",
    "ingresos",
    "gastos",
    "adeudos",
    "uitgaven",
    "inkomsten",
    "obciazen",
    "uznan",
    "operacji",
    "prijmu",
    "vydaju",
];

/// Words for a balance that stand alone, or beside one of [`WHICH`]; without accents.
const BALANCES: &[&str] = &[
    "anfangsbestand",
    "endbestand",
    "anfangssaldo",
    "endsaldo",
    "beginsaldo",
    "eindsaldo",
    "saldo",
    "solde",
    "balance",
    "balans",
    "balanse",
    "kontostand",
    "zustatek",
    "zostatok",
    "egyenleg",
    "bakiye",
    "stanje",
    "jaak",
];

/// And those that mean one beside it only.
const BALANCES_WITH: &[&str] = &["bal", "sold", "stan", "stav", "bakiyesi"];

/// Which balance it is.
const WHICH: &[&str] = &[
    "anterior",
    "inicial",
    "initial",
    "iniziale",
    "final",
    "finale",
    "precedente",
    "precedent",
    "previo",
    "disponible",
    "disponibile",
    "disponivel",
    "available",
    "actual",
    "atual",
    "actuel",
    "apertura",
    "chiusura",
    "attuale",
    "di",
    "contabile",
    "contable",
    "contabil",
    "ledger",
    "statement",
    "daily",
    "opening",
    "closing",
    "beginning",
    "ending",
    "start",
    "end",
    "running",
    "current",
    "previous",
    "brought",
    "carried",
    "forward",
    "b",
    "c",
    "d",
    "f",
    "bf",
    "cf",
    "intermediaire",
    "ancien",
    "nouveau",
    "crediteur",
    "debiteur",
    "alter",
    "alt",
    "neuer",
    "neu",
    "vorig",
    "vorige",
    "huidig",
    "ingaende",
    "inngaende",
    "utgaende",
    "del",
    "do",
    "dia",
    "de",
    "du",
    "jour",
    "dnia",
    "poczatkowy",
    "poczatkowe",
    "koncowy",
    "koncowe",
    "biezacy",
    "pocatecni",
    "pociatocny",
    "konecny",
    "nyito",
    "zaro",
    "pocetno",
    "konacno",
    "zavrsno",
    "acilis",
    "kapanis",
    "devreden",
    "new",
    "old",
    "account",
    "book",
    "ny",
    "nytt",
    "gammal",
    "gammel",
    "gammelt",
    "ant",
    "primo",
    "ultimo",
    "ostatni",
    "uctu",
    "konta",
    "rachunku",
    "pocz",
    "konc",
    "fin",
    "mes",
    "vorheriger",
    "vorherig",
    "letzter",
    "aktueller",
    "verfugbar",
    "verfugbarer",
    "eroffnung",
    "starting",
    "prior",
    "last",
    "ouverture",
    "cloture",
    "depart",
    "debut",
    "anterieur",
    "reporte",
    "comptable",
    "apertura",
    "cierre",
    "inicio",
    "arrastrado",
    "chiusura",
    "riportato",
    "liquido",
    "abertura",
    "fecho",
    "transportado",
    "contabilistico",
    "otwarcia",
    "zamkniecia",
    "poczatek",
    "koniec",
    "poprzednie",
    "poprzedni",
    "przeniesienia",
    "dostepne",
    "predchozi",
    "predosly",
    "predchadzajuci",
    "zacatku",
    "minuleho",
    "vypisu",
    "elozo",
    "indulo",
    "indgaende",
    "udgaende",
    "overfort",
    "forrige",
    "foregaende",
    "edellinen",
    "deschidere",
    "onceki",
    "donem",
    "basi",
    "prethodno",
    "novo",
    "staro",
    "prejsnje",
    "zacetno",
    "koncno",
    "laatste",
    "okresu",
    "from",
    "en",
    "na",
    "total",
    "totale",
    "report",
    "cuenta",
    "conta",
    "corrente",
    "rekening",
    "konto",
    "kontos",
    "period",
    "periodo",
];

/// What it is in, behind these: alone beside a word that means other things, too, it says nothing
/// (`Sold EUR` sold euros).
const IN: &[&str] = &[
    "eur", "usd", "gbp", "chf", "sek", "nok", "dkk", "pln", "czk", "huf", "ron", "tl", "try", "brl",
];

/// What goes on behind one of these: `Schlusssaldo per 31.10.2026`, `Closing balance as of`.
const STANDS_AT: &[&str] = &[
    "per", "vom", "zum", "am", "as", "at", "on", "al", "du", "au", "na", "op", "pr", "k", "ke",
    "from",
];

/// A letter without its accent.
fn bare(c: char) -> char {
    match c {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' => 'e',
        'ì' | 'í' | 'î' | 'ï' | 'ı' => 'i',
        'ñ' | 'ń' | 'ň' => 'n',
        'ř' => 'r',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ő' | 'ø' => 'o',
        'ś' | 'š' | 'ş' | 'ș' => 's',
        'ť' | 'ţ' | 'ț' => 't',
        'ù' | 'ú' | 'û' | 'ü' | 'ů' | 'ű' => 'u',
        'ý' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    }
}

/// Whether words are a day: `31 10 2026`, or `31 10`.
fn is_some_day(words: &[&str]) -> bool {
    let is_part = |word: &&str| word.len() <= 2 && word.parse::<u8>().is_ok_and(|n| n <= 31);
    match words {
        [first, second] => is_part(first) && is_part(second),
        _three => is_day(&words.join(" ")),
    }
}

/// Whether a text is a word for a balance and what says which, each once or not at all, with its
/// day or without. What a payer writes about one (`balance of order 17`) has other words.
fn is_balance(text: &str) -> bool {
    let text: String = text.chars().map(bare).collect();
    let spaced = text.split(' ').all(|word| word.chars().count() == 1);
    let text = if spaced { text.replace(' ', "") } else { text };
    let words: Vec<&str> = text.split(' ').collect();
    let is_of_day = |word: &&str| {
        STANDS_AT.contains(word)
            || ["of", "em", "el", "a", "fecha"].contains(word)
            || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let (own, day) = words.split_at(words.iter().position(is_of_day).unwrap_or(words.len()));
    let is_figure = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let (before, day) = day.split_at(day.iter().position(is_figure).unwrap_or(day.len()));
    let is_told = !before.is_empty() || !day.is_empty();
    if is_told && !(before.iter().all(is_of_day) && is_some_day(day)) {
        return false;
    }
    let is_noun = |word: &&str| BALANCES.contains(word) || BALANCES_WITH.contains(word);
    let (nouns, which): (Vec<&str>, Vec<&str>) = own.iter().copied().partition(is_noun);
    let [noun] = nouns.as_slice() else { return false };
    let (within, which): (Vec<&str>, Vec<&str>) =
        which.into_iter().partition(|word| IN.contains(word));
    let is_sure = BALANCES.contains(noun) || !which.is_empty();
    let is_short = within.len() <= 1 && which.len() <= 5;
    is_sure && is_short && which.iter().all(|word| WHICH.contains(word))
}

/// Whether a text is a word for a sum and what it is of, and nothing else: `Total 4711 Berlin` is
/// a shop.
fn is_sum(text: &str) -> bool {
    if text.len() > 60 {
        return false;
    }
    let text: String = text.chars().map(bare).collect();
    let is_sum = |word: &&str| SUMS.contains(word);
    let (sums, of): (Vec<&str>, Vec<&str>) = text.split(' ').partition(is_sum);
    sums.len() == 1 && of.len() <= 3 && of.iter().all(|word| SUMMED.contains(word))
}

/// What two banks call the row below their table that says what each side comes to.
const SUMS_OF_SIDES: &[&str] = &[
    "total card bookings",
    "total kartenbuchungen",
    "total des écritures de carte",
    "total spalte",
    "total column",
];

/// Of the words for sums those that are of some of the rows.
const OF_SOME: &[&str] =
    &["day", "daily", "week", "weekly", "month", "monthly", "page", "tagessumme", "monatssumme"];

/// Whether a text is the word for a sum where a row says what both sides come to.
pub fn is_sum_of_sides(text: &str) -> bool {
    let text = normal(text);
    let is_of_some = text.split(' ').any(|word| OF_SOME.contains(&word));
    SUMS_OF_SIDES.contains(&text.as_str()) || !is_of_some && is_sum(&text)
}

/// Names of the currency in which a card paid, behind what it paid.
pub const ORIGINAL: &[&str] =
    &["original currency", "originalwährung", "monnaie originale", "moneta originale"];

/// The day of a row in the file of a card alone.
pub const BOUGHT_ON: &str = "purchase date";

/// A status by its name that holds the day of it, in the file of a card.
pub const BOOKED_ON: &[&str] = &["booked", "ecriture", "écriture"];

/// [`STANDS`] by their first words, as texts of every row are held against them.
static STANDS_BY_WORD: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut by_word: HashMap<&str, Vec<&str>> = HashMap::new();
    for stand in STANDS {
        by_word.entry(stand.split(' ').next().unwrap_or(stand)).or_default().push(stand);
    }
    by_word
});

/// Whether a text, as [`normal`] makes it, is one of [`STANDS`], alone or with its day, or another
/// name of a balance or a sum.
pub fn is_stand(text: &str) -> bool {
    let is_at = |rest: &str| {
        let next = rest.split(' ').next().unwrap_or_default();
        STANDS_AT.contains(&next) || next.starts_with(|c: char| c.is_ascii_digit())
    };
    let first = text.split(' ').next().unwrap_or_default();
    let mut known = STANDS_BY_WORD.get(first).into_iter().flatten();
    let is_known = known.any(|word| match text.strip_prefix(*word) {
        Some("") => true,
        Some(rest) => rest.strip_prefix(' ').is_some_and(is_at),
        None => false,
    });
    is_known || STANDS_ALONE.contains(&text) || is_balance(text) || is_sum(text)
}

/// Whether a text that is a balance or a sum by [`is_stand`] is a single word that shops are called
/// as well: `Total`, `Primo`, `Saldo`.
pub fn may_be_a_name(stand: &str) -> bool {
    !stand.contains(' ') && !STANDS.contains(&stand)
}

/// What names of a balance before all movements hold, and of one after them.
const BEFORE: &[&str] = &[
    "opening",
    "anfang",
    "inicial",
    "initial",
    "inizial",
    "algsaldo",
    "pradžiai",
    "sākuma",
    "pocz",
    "begin",
    "brought",
    "b f",
    "alku",
    "počáteční",
    "počiatočn",
    "ingående",
    "inngående",
    "en début",
    "startsaldo",
    "alter ",
    " alt",
    "primo",
    "anterior",
    "precedente",
    "précédent",
    "previous",
    "poprzedni",
    "předchozí",
    "vorherig",
    "vortrag",
    "forward",
];
const AFTER: &[&str] = &[
    "closing",
    "endsaldo",
    "endbestand",
    "ending",
    "final",
    "lõppsaldo",
    "pabaigai",
    "beigu",
    "końc",
    "konc",
    "eindsaldo",
    "carried",
    "c f",
    "loppu",
    "konečný",
    "utgående",
    "en fin",
    "schluss",
    "slutsaldo",
    "neuer ",
    " neu",
    "ultimo",
];

/// Whether a text that is one of [`STANDS`] is of the balance before all movements (true) or after
/// them; none where it does not say.
pub fn is_before(stand: &str) -> Option<bool> {
    let has = |words: &[&str]| words.iter().any(|word| stand.contains(word));
    match (has(BEFORE), has(AFTER)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _neither => None,
    }
}

/// What some write beside their table.
const DECLARED: &[(Declares, &[&str])] = &[
    (
        Declares::Opening,
        &[
            "anfangssaldo",
            "alter kontostand",
            "letzter kontostand",
            "kontostand alt",
            "saldo początkowe",
            "saldo pocz",
            "stan początkowy",
            "počáteční zůstatek",
            "počáteční stav účtu",
            "opening balance",
            "openingbalance",
            "inngående saldo",
            "solde en début de période",
            "solde initial",
            "saldo iniziale",
            "saldo inicial",
            "alter saldo",
            "anfangsbestand",
            "beginning balance",
            "starting balance",
            "balance brought forward",
            "ingående saldo",
            "beginsaldo",
            "startsaldo",
            "saldo anterior",
            "nyitó egyenleg",
            "входящий остаток",
        ],
    ),
    (
        Declares::Closing,
        &[
            "schlusssaldo",
            "neuer kontostand",
            "kontostand neu",
            "saldo końcowe",
            "saldo końc",
            "stan końcowy",
            "konečný zůstatek",
            "konečný stav účtu",
            "koncový stav účtu",
            "closing balance",
            "closingbalance",
            "utgående saldo",
            "solde en fin de période",
            "solde final",
            "saldo finale",
            "saldo final",
            "endsaldo",
            "endbestand",
            "neuer saldo",
            "ending balance",
            "balance carried forward",
            "eindsaldo",
            "slutsaldo",
            "záró egyenleg",
            "исходящий остаток",
        ],
    ),
    (
        Declares::Count,
        &["anzahl transaktionen in diesem zeitraum", "number of transactions", "number of rows"],
    ),
    (Declares::In, &["total credits", "total credit", "summe gutschriften", "totale entrate"]),
    (Declares::Out, &["total debits", "total debit", "summe belastungen", "totale uscite"]),
];

/// Whether the day that a balance is of stands behind its name: `per 31.10.2026`.
fn is_of_day(rest: &str) -> bool {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let Some((at, day)) = words.split_first() else { return false };
    let day = day.strip_prefix(&["of"]).unwrap_or(day);
    STANDS_AT.contains(at) && is_some_day(day)
}

/// What a row beside the table declares: its word as it stands, what that is, and its value, in the
/// same field (`Počáteční stav účtu k 01.07.2026: 382,38 CZK`) or the next one.
pub fn declared<'a>(fields: impl Iterator<Item = &'a str>) -> Option<(&'a str, Declares, &'a str)> {
    let mut filled = fields.filter(|field| !field.is_empty());
    let name = filled.next()?;
    if let Some((name, value)) = name.split_once(':').filter(|(_, value)| !value.trim().is_empty())
        && let Some(what) = declares(name)
    {
        return Some((name, what, value.trim()));
    }
    Some((name, declares(name)?, filled.next()?))
}

/// All that one row declares, where nothing else stands in it: names, each before its value.
pub fn all_declared(row: &[String]) -> Vec<(&str, Declares, &str)> {
    let filled: Vec<&str> = row.iter().map(String::as_str).filter(|own| !own.is_empty()).collect();
    let pairs = filled.chunks_exact(2).map(|pair| match pair {
        [name, value] if declares(value).is_none() => Some((*name, declares(name)?, *value)),
        _other => None,
    });
    let pairs = pairs.collect::<Option<Vec<_>>>().filter(|pairs| pairs.len() > 1);
    pairs.unwrap_or_else(|| declared(row.iter().map(String::as_str)).into_iter().collect())
}

/// What a row below the table declares for its end, by a word for a balance before its day:
/// `Kontostand;1.4.2026;;;2.110,90`.
pub fn closing_of_day<'a>(fields: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut filled = fields.filter(|field| !field.is_empty());
    let (name, day, value) = (filled.next()?, filled.next()?, filled.next()?);
    (normal(name) == "kontostand" && is_day(day)).then_some(value)
}

/// What a row above the table says that the account holds on a day: `Kontostand vom 1.4.2026:`.
pub fn balance_of_day(row: &[String]) -> Option<&str> {
    let mut filled = row.iter().filter(|field| !field.is_empty());
    let (name, value) = (filled.next()?, filled.next()?);
    normal(name).strip_prefix("kontostand").is_some_and(is_of_day).then_some(value)
}

/// The names of both sides in a row above the table, beside that of the currency alone, and where
/// each is: what all rows come to stands below them.
pub fn side_heads(row: &[String]) -> Vec<(usize, Declares)> {
    let names: Vec<String> = row.iter().map(|name| normal(name)).collect();
    let of = |name: &String| match name.as_str() {
        "wpływy" => Some(Declares::In),
        "wydatki" => Some(Declares::Out),
        _other => None,
    };
    let is_known = |name: &String| name.is_empty() || is_code(name) || of(name).is_some();
    if !names.iter().all(is_known) {
        return Vec::new();
    }
    let heads = names.iter().enumerate().filter_map(|(at, name)| Some((at, of(name)?)));
    heads.collect()
}

/// The names of such values that stand beside one another, above their values, and where each is.
pub fn declared_heads<'a>(fields: impl Iterator<Item = &'a str>) -> Vec<(usize, Declares)> {
    let filled = fields.enumerate().filter(|(_, field)| !field.is_empty());
    let heads = filled.map(|(at, field)| Some((at, declares(field)?)));
    let heads: Vec<(usize, Declares)> = heads.collect::<Option<_>>().unwrap_or_default();
    if heads.len() > 1 { heads } else { Vec::new() }
}

/// What a name beside the table declares.
fn declares(name: &str) -> Option<Declares> {
    let own = normal(name);
    // In other languages a balance with its day may be that of today.
    let is_dated = |word: &str| {
        let ends = ["gående saldo", " stav účtu", "ning balance", "ending balance"];
        ends.iter().any(|end| word.ends_with(end))
    };
    let is_own = |word: &&str| {
        let rest = own.strip_prefix(*word);
        rest.is_some_and(|rest| rest.is_empty() || is_dated(word) && is_of_day(rest))
    };
    DECLARED.iter().find(|(_, words)| words.iter().any(is_own)).map(|(what, _)| *what)
}

/// The currency that a row above the table says, by its name and in the same field (`Waluta: PLN`)
/// or the next one.
pub fn declared_currency(row: &[String]) -> Option<Currency> {
    // Some put the colon into a field of its own.
    let mut filled = row.iter().filter(|field| !field.is_empty() && *field != ":");
    let name = filled.next()?;
    let (name, value) = match name.split_once(':') {
        Some((name, value)) if !value.trim().is_empty() => (name, value),
        _alone => (name.as_str(), filled.next()?.as_str()),
    };
    let is_in = normal(name) == "controvalore in";
    let euro = Currency::parse("EUR").ok().filter(|_| is_in && value.trim() == "Euro");
    let is_named = is_in || CURRENCY.contains(&normal(name).as_str());
    one_currency(value).or(euro).filter(|_| is_named)
}

/// The same of each field of a row that holds a name and what it says: `Devise : EUR`.
pub fn currencies_within(row: &[String]) -> Vec<Currency> {
    let pairs = row.iter().filter_map(|field| field.split_once(':'));
    let own = pairs.filter(|(name, _)| CURRENCY.contains(&normal(name).as_str()));
    own.filter_map(|(_, value)| one_currency(value)).collect()
}

/// What else a row above the table says of the account in its currency.
const HELD_ABOVE: &[&str] =
    &["available balance", "ledger balance", "credit limit", "available limit"];

/// The code beside an amount or a number that a row above the table calls its balance or account,
/// in the same field or the next: `Saldo;8'024.64 CHF`, `Saldo: CHF 45.83`, `Konto-Nr.;0/01 CHF`.
pub fn currencies_beside(row: &[String]) -> Vec<Currency> {
    let said = named(row).filter_map(|(name, value)| {
        let is_named =
            [BALANCE, ACCOUNT_ABOVE, HELD_ABOVE].iter().any(|of| of.contains(&name.as_str()));
        code_beside(value).filter(|_| is_named)
    });
    said.chain(currency_of_conta(row)).collect()
}

/// What one bank of Portugal writes into the row of the account: `Conta;0001234;EUR` or
/// `Conta;0000 000 - EUR - Conta Caixa`.
fn currency_of_conta(row: &[String]) -> Option<Currency> {
    let mut filled = row.iter().filter(|field| !field.is_empty());
    let is_account = normal(filled.next()?) == "conta";
    let parts = filled.flat_map(|field| field.split(" - "));
    let mut codes = parts.filter_map(one_currency);
    codes.next().filter(|_| is_account && codes.next().is_none())
}

/// Currencies that files of banks are in: another code in capitals may be a word.
const USUAL: &[&str] = &[
    "EUR", "USD", "GBP", "CHF", "JPY", "CNY", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RON",
    "BGN", "TRY", "CAD", "AUD", "NZD", "SGD", "HKD", "INR", "BRL", "MXN", "ZAR", "UAH", "RUB",
    "ILS", "AED", "KRW", "THB",
];

/// What names of amounts and currencies say that are a payment's abroad, and not the account's.
const ABROAD: &[&str] = &[
    "original",
    "foreign",
    "instructed",
    "fremd",
    "ursprung",
    "ursprünglich",
    "extranj",
    "estera",
    "vreemd",
    "étrang",
    "utländsk",
    "utl ",
    "exchange",
];

/// Whether a name is one of these.
pub fn is_abroad(name: &str) -> bool {
    ABROAD.iter().any(|word| name.contains(word))
}

/// All currencies that a row above the table names, wherever.
pub fn codes_above(row: &[String]) -> impl Iterator<Item = Currency> {
    let words = row.iter().flat_map(|field| field.split(|c: char| !c.is_alphanumeric()));
    let codes = words.filter_map(|word| match word {
        "Euro" | "EURO" | "euro" => Some("EUR"),
        _code => USUAL.iter().copied().find(|code| *code == word),
    });
    codes.filter_map(|code| Currency::parse(code).ok())
}

/// The only word of a value that has letters: a code before or behind its figures.
fn code_beside(value: &str) -> Option<Currency> {
    let has_letter = |word: &&str| *word == "€" || word.contains(char::is_alphabetic);
    let (codes, figures): (Vec<&str>, Vec<&str>) = value.split_whitespace().partition(has_letter);
    let [code] = codes.as_slice() else { return None };
    let has_figure = figures.iter().any(|word| word.contains(|c: char| c.is_ascii_digit()));
    let code = if *code == "€" { "EUR" } else { code };
    one_currency(code).filter(|_| has_figure)
}

/// The same of a row that holds the name alone, by the one below it.
pub fn currency_below(row: &[String], below: &[String]) -> Option<Currency> {
    let only = |row: &[String]| {
        let mut filled = row.iter().filter(|field| !field.is_empty());
        let first = filled.next().cloned();
        first.filter(|_| filled.next().is_none())
    };
    let (name, value) = (only(row)?, only(below)?);
    let is_named = CURRENCY.contains(&normal(&name).as_str());
    one_currency(&value).filter(|_| is_named)
}

/// The same of a row that is a title, within its words: `Izvod … Valuta EUR Razdoblje …`. In German
/// this word is one for a day, and no code of a currency follows it.
pub fn titled_currency(row: &[String]) -> Option<Currency> {
    let mut filled = row.iter().filter(|field| !field.is_empty());
    let title = filled.next().filter(|_| filled.next().is_none())?;
    let mut words = title.split_whitespace();
    words.find(|word| word.trim_end_matches(':') == "Valuta")?;
    one_currency(words.next()?)
}

/// The currency that a title among rows says: by a name for it, or with a code at its end and no
/// figure, `Transactions in USD`.
pub fn currency_of_title(row: &[String]) -> Option<Currency> {
    let mut filled = row.iter().filter(|field| !field.is_empty());
    let title = filled.next()?;
    let is_alone = filled.next().is_none() && !title.contains(char::is_numeric);
    let last = || title.rsplit(' ').next().filter(|_| is_alone).and_then(one_currency);
    declared_currency(row).or_else(|| titled_currency(row)).or_else(last)
}

/// What a title says of all amounts below it.
const IN_EUROS: &[&str] = &[
    "importes expresados en euros",
    "importes en euros",
    "importi in euro",
    "importi espressi in euro",
    "montants en euros",
    "montants exprimés en euros",
    "beträge in euro",
    "alle beträge in euro",
    "bedragen in euro",
    "amounts in euro",
];

/// Whether a row is nothing but such a title.
pub fn is_in_euros(row: &[String]) -> bool {
    let mut filled = row.iter().filter(|field| !field.is_empty());
    let title = filled.next().filter(|_| filled.next().is_none());
    title.is_some_and(|title| IN_EUROS.contains(&normal(title).as_str()))
}

/// How the columns of a PSP's report begin that is no bank's: cut behind them, in its header row,
/// nothing else would tell the two apart.
const BEGUN_REPORTS: &[&[&str]] =
    &[&["date", "payment method", "currency", "amount", "status", "id"]];

/// Whether the columns begin as those of such a report.
pub fn is_begun_report(names: &[String]) -> bool {
    let begins =
        |own: &&[&str]| names.len() >= own.len() && names.iter().zip(*own).all(|(a, b)| a == b);
    BEGUN_REPORTS.iter().any(begins)
}

/// Columns that say which of the holder's pockets a row is of, each with a balance of its own.
pub const POCKETS: &[&str] = &[
    "product",
    "produkt",
    "produit",
    "producto",
    "prodotto",
    "produto",
    "produs",
    "termék",
    "продукт",
];

/// A code in upper case; `ALL` is none here, for it may say that nothing was left out.
fn one_currency(text: &str) -> Option<Currency> {
    let code = text.trim_matches(|c: char| matches!(c, '=' | '"') || c.is_whitespace());
    let is_code = code != "ALL" && code.bytes().all(|b| b.is_ascii_uppercase());
    Currency::parse(code).ok().filter(|_| is_code)
}

/// Of these the ones that no payer writes.
pub const NEVER_PAID: &[&str] = &["tagessaldo"];

/// Taken besides the amount.
pub const FEE: &[&str] =
    &["fee", "fees", "fee amount", "total fees", "gebühr", "gebühren", "poplatek", "kosten"];

/// More names of it, which some give to what kind of fee it is.
const FEES: &[&str] = &[
    "charge",
    "charges",
    "bank charge",
    "bank charges",
    "transaction fee",
    "commission",
    "commissions",
    "commissione",
    "commissioni",
    "comisión",
    "comision",
    "comisiones",
    "comissão",
    "comissões",
    "provision",
    "prowizja",
    "opłata",
    "frais",
    "spesen",
    "entgelt",
    "entgelte",
    "gebuehr",
    "gebuehren",
    "gebyr",
    "avgift",
    "vergoeding",
    "service charge",
    "fx fee",
    "surcharge",
    "tip",
    "tarifa",
    "tarifas",
    "taxa",
    "taxas",
    "costs",
    "transaction cost",
    "transaction costs",
];

/// What stands beside an amount that was paid out by another one, was given back in part, or was
/// put aside with it.
const OTHERWISE: &[&str] = &["payout", "refunded", "округление на инвесткопилку"];

/// Whether a name is one of what was taken, which a balance has to prove.
pub fn may_be_taken(name: &str) -> bool {
    FEES.contains(&name) || ["costo", "taxa", "díj", "poplatok", "комиссия"].contains(&name)
}

/// Words of what is taken or given besides an amount, in names that say more: `processing fee`,
/// `withheld tax`. Not of what an amount contains: `VAT`.
const BESIDES: &[&str] = &[
    "fee",
    "fees",
    "charge",
    "charges",
    "commission",
    "commissions",
    "tax",
    "taxes",
    "withholding",
    "deduction",
    "deductions",
    "cashback",
    "discount",
    "gratuity",
    "surcharge",
    "mdr",
    "poplatky",
    "provize",
    "prowizje",
    "opłaty",
    "spese",
    "imposta",
    "imposte",
    "ritenuta",
    "frais",
    "comisión",
    "comisiones",
    "retención",
    "impuesto",
    "gebyrer",
    "avgifter",
    "poplatek",
    "poplatok",
    "provizija",
    "prowizja",
    "opłata",
    "комиссия",
    "комісія",
    "díj",
    "díjak",
    "jutalék",
    "gebyr",
    "avgift",
    "komissio",
    "komisija",
    "komisyon",
    "masraf",
    "ücret",
    "tasu",
    "teenustasu",
    "palkkio",
    "kulu",
    "kulut",
    "kuluja",
    "palvelumaksu",
    "iof",
    "mokestis",
    "naknada",
    "provízia",
    "провизия",
    "手续费",
    "手数料",
];

/// What German names of such a thing end in: `Bankspesen`, `Kontogebühr`.
const BESIDES_END: &[&str] =
    &["gebühr", "gebühren", "gebuehr", "gebuehren", "spesen", "kosten", "entgelt", "steuer"];

/// Words of names that hold no money, whatever else they say: `tax number`, `fee type`; and of a
/// tax that the amount contains.
const NO_MONEY: &[&str] = &[
    "umsatzsteuer",
    "mehrwertsteuer",
    "vorsteuer",
    "id",
    "no",
    "nr",
    "number",
    "nummer",
    "numero",
    "code",
    "type",
    "typ",
    "art",
    "rate",
    "class",
    "category",
    "kategorie",
    "name",
    "date",
    "datum",
    "currency",
    "währung",
    "reference",
    "referenz",
    "description",
    "status",
    "percent",
    "free",
    "year",
    "jahr",
];

fn is_beside(name: &str) -> bool {
    let is_such =
        |word: &str| BESIDES.contains(&word) || BESIDES_END.iter().any(|end| word.ends_with(end));
    name.split(' ').any(is_such) && !name.split(' ').any(|word| NO_MONEY.contains(&word))
}

/// Whether a name is one of what may make another amount of a row's, the currency at its end apart:
/// [`FEE`], and more.
pub fn is_fee(name: &str) -> bool {
    if is_beside(name) {
        return true;
    }
    let stem = match name.rsplit_once(' ') {
        Some((stem, code)) if code.len() == 3 => stem.strip_suffix(" in").unwrap_or(stem),
        _name => name,
    };
    let is = |name: &&str| [FEE, FEES, OTHERWISE].iter().any(|known| known.contains(name));
    [name, stem].iter().any(is)
}

/// Whether a name is one of fees that are within the amount: a broker's of transfers, who says
/// what left the account, and how much of that was its own.
pub fn is_within(name: &str) -> bool {
    name == "total fees"
}

/// Whether a name is one of what may have been taken besides the amount.
pub fn may_be_besides(name: &str) -> bool {
    (is_fee(name) || may_be_taken(name)) && !is_within(name)
}

/// Whether a name is known, be it as that of a part of an amount, of a rate or of another amount.
pub fn is_known_figure(name: &str) -> bool {
    let is = [is_known, is_amount, is_fee, is_within, may_be_taken, is_rate, is_total];
    is.iter().any(|is| is(name))
}

/// Whether a name that is not known may be one of what an account held, or of a rate.
pub fn may_be_held(name: &str) -> bool {
    let words = ["sald", "balance", "solde", "stand", "zůstatek", "egyenleg", "bakiye", "остаток"];
    words.iter().chain(&["cours", "kurs", "corso", "rate"]).any(|word| name.contains(word))
}

/// Whether a name is one of an amount with what was taken besides.
pub fn is_total(name: &str) -> bool {
    ["total", "total amount", "net", "net amount", "netto", "nettobetrag", "gesamtbetrag"]
        .contains(&name)
}

/// Whether it was booked.
pub const STATUS: &[&str] = &[
    "status",
    "statut",
    "state",
    "info",
    "transaction status",
    "transaction state",
    "payment status",
    "booking status",
    "result",
    "resultat",
    "auth result",
    "outcome",
    "response",
    "response code",
    "txn status",
    "umsatzstatus",
    "esito",
    "stan",
    "stare",
    "olek",
    "státusz",
    "statuss",
    "būsena",
    "staatus",
    "стан",
    "entry status",
    "sts",
    "durum",
    "situação",
    "статус",
    "состояние",
    "buchungsstatus",
    "zustand",
    "buchungszustand",
    "contabilizzazione",
    "status transakcji",
    "stato",
    "estado",
    "estado de la operación",
    "situación",
    "état",
    "etat",
    "stav",
    "tila",
    "tilstand",
    "状态",
    "交易状态",
    "delstat",
    "állapot",
    "pending",
    "booked",
];

/// Words of the names of other such columns, which are believed where one of their values is known.
const STATUSES: &[&str] = &[
    "status",
    "statut",
    "stato",
    "estado",
    "estat",
    "stav",
    "state",
    "zustand",
    "tila",
    "olek",
    "статус",
    "состояние",
    "állapota",
    "durumu",
    "būsena",
];

/// Whether a name that is not known whole is one of a status, of the row and of nothing else.
pub fn may_be_status(name: &str) -> bool {
    let has = |words: &[&str]| name.split(' ').any(|own| words.contains(&own));
    let is_one = has(STATUSES) || name.ends_with("status");
    is_one && !has(&["account", "konto", "konta", "address", "marital", "card", "tax"])
}

/// Columns that say yes of a row that was booked.
const IF_BOOKED: &[&str] = &[
    "posted",
    "settled",
    "approved",
    "cleared",
    "processed",
    "success",
    "successful",
    "completed",
    "paid",
    "captured",
    "executed",
    "gebucht",
    "comptabilisé",
    "contabilizzato",
    "verbucht",
    "bokført",
    "bogført",
    "bokförd",
    "comptabilisée",
    "contabilizzata",
    "contabilizado",
    "zaksięgowano",
    "zaúčtováno",
];

/// Columns that say yes of a row that was not booked, or was taken back.
const IF_NOT: &[&str] = &[
    "is pending",
    "void",
    "voided",
    "reversed",
    "storno",
    "storniert",
    "cancelled",
    "canceled",
    "cancellation",
    "failed",
    "declined",
    "rejected",
    "vorgemerkt",
    "afgewezen",
    "deleted",
    "is deleted",
    "reserved",
    "is hold",
    "reserviert",
    "abgelehnt",
    "annulé",
    "annulée",
    "rejeté",
    "en attente",
    "refusé",
    "annullato",
    "annullata",
    "stornato",
    "anulado",
    "anulada",
    "cancelado",
    "cancelada",
    "anulowano",
    "anulowana",
    "zrušeno",
    "stornováno",
    "gestorneerd",
    "geannuleerd",
    "afvist",
    "annulleret",
    "makulerad",
    "avvist",
];

/// Columns that say why a row was not booked.
const WHY_NOT: &[&str] = &[
    "motif du refus",
    "reden van weigering",
    "decline reason",
    "failure reason",
    "failure message",
    "rejection reason",
    "reason for non execution",
    "error code",
    "error message",
    "ablehnungsgrund",
    "motif de rejet",
    "motivo rechazo",
    "motivo de rechazo",
    "motivo di rifiuto",
    "powód odrzucenia",
    "decline code",
    "failure code",
    "reject reason",
    "rejection code",
];

const YES: &[&str] =
    &["yes", "true", "ja", "y", "1", "x", "t", "ano", "oui", "si", "sí", "tak", "igen", "sim"];
const NO: &[&str] =
    &["no", "false", "nein", "nee", "n", "0", "f", "ne", "non", "nie", "nem", "não", "nej"];

/// Whether a column may say of a row that it was not booked, in other words than a status.
pub fn is_flag(name: &str) -> bool {
    [IF_BOOKED, IF_NOT, WHY_NOT].iter().any(|names| names.contains(&name))
}

/// Whether it says so here. A day, say, of a column `Posted` says nothing.
pub fn flags_unbooked(name: &str, value: &str) -> bool {
    let own = normal(value);
    let is = |words: &[&str]| words.contains(&own.as_str());
    if WHY_NOT.contains(&name) {
        return own.bytes().any(|byte| byte != b'0') && !is(&["none", "null", "n a"]);
    }
    if IF_NOT.contains(&name) { is(YES) } else { is(NO) }
}

/// Values of [`STATUS`] for what was.
const BOOKED: &[&str] = &[
    "card charged",
    "card refunded",
    "payment deposited",
    "payment sent",
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
    "uitgevoerd",
    "verbucht",
    "verwerkt",
    "geboekt",
    "exécuté",
    "comptabilisé",
    "contabilizzato",
    "contabilizado",
    "zaksięgowano",
    "zaksięgowana",
    "zaksięgowane",
    "zaúčtováno",
    "zaúčtovaná",
    "bokförd",
    "bogført",
    "bokført",
    "udført",
    "kirjattu",
    "könyvelt",
    "abgeschlossen",
    "terminé",
    "completado",
    "completato",
    "zakończono",
    "voltooid",
    "concluída",
    "concluído",
    "dokončeno",
    "dokončené",
    "elvégezve",
    "fullført",
    "выполнено",
    "исполнено",
    "виконано",
    "įvykdyta",
    "įvykdytas",
    "teostatud",
    "成功",
    "交易成功",
    "已完成",
    "已入账",
    "",
];

/// What no bank writes of a movement that was booked, in whatever column: it is still to come.
const PENDING: &[&str] = &[
    "pending",
    "vorgemerkt",
    "umsatz vorgemerkt",
    "vormerkposten",
    "vormerkung",
    "offen",
    "reserved",
    "reserveret",
    "reserverad",
    "reserverat",
    "reservert",
    "pendiente",
    "pendente",
    "en attente",
    "in attesa",
    "non contabilizzato",
    "blokace",
    "blokada",
    "w rozliczeniu",
    "oczekujące",
    "oczekuje",
    "in behandeling",
    "katevaraus",
    "ausstehend",
    "in sospeso",
];

/// The same: it did not come, or not for good.
const CALLED_OFF: &[&str] = &[
    "declined",
    "rejected",
    "reverted",
    "failed",
    "cancelled",
    "canceled",
    "rechazado",
    "rifiutato",
    "rejeté",
    "refusé",
    "annulé",
    "odrzucone",
    "odrzucono",
    "geweigerd",
    "abgelehnt",
    "storniert",
    "rückgängig gemacht",
    "revertido",
    "revertida",
    "anulado",
    "operazione annullata",
    "cofnięto",
    "zrušeno",
    "teruggedraaid",
];

/// What stands beside movements that were not booked, or were undone. Of a status nothing but the
/// words above are believed.
const DOUBTFUL: &[&str] = &[
    "voided",
    "refused",
    "declined payment",
    "failed payment",
    "decline",
    "pdng",
    "retención",
    "autorización",
    "preautorización",
    "autorizzazione",
    "preautorizzazione",
    "prenotazione",
    "blocage",
    "atmestas",
    "atšauktas",
    "rezervuota",
    "broneering",
    "tagasi lükatud",
    "очікується",
    "блокування",
    "not booked",
    "unposted",
    "unbooked",
    "on hold",
    "hold",
    "blocked",
    "in progress",
    "processing",
    "initiated",
    "reservation",
    "draft",
    "bounced",
    "reversed",
    "scheduled",
    "expired",
    "authorised",
    "authorized",
    "abgelehnt",
    "storniert",
    "nicht gebucht",
    "ungebucht",
    "reserviert",
    "in bearbeitung",
    "ausstehend",
    "fehlgeschlagen",
    "zurückgewiesen",
    "en cours",
    "non comptabilisé",
    "rechazada",
    "anulado",
    "anulada",
    "cancelado",
    "cancelada",
    "denegado",
    "denegada",
    "retenido",
    "retenida",
    "recusado",
    "recusada",
    "rejeitado",
    "rejeitada",
    "estornado",
    "annullato",
    "annullata",
    "rifiutata",
    "stornato",
    "geannuleerd",
    "gereserveerd",
    "mislukt",
    "niet geboekt",
    "väntande",
    "avvisad",
    "afventer",
    "afvist",
    "avvist",
    "odottaa",
    "hylätty",
    "oczekująca",
    "odrzucona",
    "odrzucony",
    "anulowana",
    "anulowany",
    "zablokowana",
    "nierozliczona",
    "čeká",
    "zamítnuto",
    "zrušeno",
    "függőben",
    "elutasítva",
    "in asteptare",
    "în așteptare",
    "respins",
    "beklemede",
    "reddedildi",
    "ожидает",
    "отклонено",
    "отменён",
    "refusée",
    "annulée",
    "rejetée",
    "deleted",
    "denied",
    "awaiting",
    "waiting",
    "submitted",
    "unsettled",
    "uncleared",
    "not posted",
    "not settled",
    "not cleared",
    "not completed",
    "not executed",
    "unsuccessful",
    "incomplete",
    "aborted",
    "timed out",
    "queued",
    "upcoming",
    "in process",
    "being processed",
    "under review",
    "in review",
    "suspended",
    "pending transaction",
    "pending authorization",
    "pending approval",
    "awaiting approval",
    "insufficient funds",
    "dishonoured",
    "dishonored",
    "autorisiert",
    "kartenreservierung",
    "schwebend",
    "in prüfung",
    "in verarbeitung",
    "in ausführung",
    "wird bearbeitet",
    "wird gebucht",
    "nicht ausgeführt",
    "nicht verbucht",
    "noch nicht gebucht",
    "noch nicht verbucht",
    "umsatz noch nicht gebucht",
    "vorgemerkter umsatz",
    "vorgemerkte buchung",
    "noch nicht abgerechnet",
    "nicht autorisiert",
    "nicht erfolgreich",
    "zurückgezogen",
    "abgebrochen",
    "gelöscht",
    "wartend",
    "pendent",
    "provisorisch",
    "vorläufig",
    "widerrufen",
    "annulliert",
    "gesperrt",
    "blockiert",
    "abgelaufen",
    "verweigert",
    "abgewiesen",
    "fehlerhaft",
    "en cours de traitement",
    "en traitement",
    "à venir",
    "échoué",
    "échouée",
    "échec",
    "en échec",
    "non exécuté",
    "non exécutée",
    "non comptabilisée",
    "autorisé",
    "autorisée",
    "suspendu",
    "bloqué",
    "expiré",
    "supprimé",
    "abandonné",
    "décliné",
    "déclinée",
    "en suspens",
    "en instance",
    "préautorisation",
    "en proceso",
    "en curso",
    "en trámite",
    "en espera",
    "fallido",
    "fallida",
    "no contabilizado",
    "no ejecutado",
    "no realizada",
    "autorizado",
    "autorizada",
    "caducado",
    "expirado",
    "bloqueado",
    "pendiente de contabilizar",
    "pendiente de liquidar",
    "non contabilizzata",
    "da contabilizzare",
    "autorizzato",
    "autorizzata",
    "non autorizzata",
    "in elaborazione",
    "in lavorazione",
    "in corso",
    "in verifica",
    "fallito",
    "fallita",
    "non riuscito",
    "non riuscita",
    "non eseguito",
    "non eseguita",
    "respinto",
    "respinta",
    "scaduto",
    "negato",
    "negata",
    "sospeso",
    "sospesa",
    "bloccato",
    "revocato",
    "revocata",
    "niet verwerkt",
    "niet uitgevoerd",
    "nog niet geboekt",
    "nog te verwerken",
    "wordt verwerkt",
    "in verwerking",
    "in uitvoering",
    "in afwachting",
    "wachtend",
    "wacht",
    "afgewezen",
    "afgekeurd",
    "ingetrokken",
    "verlopen",
    "verwijderd",
    "gestorneerd",
    "geblokkeerd",
    "oczekujący",
    "w realizacji",
    "w trakcie realizacji",
    "w trakcie",
    "w toku",
    "w przetwarzaniu",
    "przetwarzana",
    "nierozliczony",
    "nierozliczone",
    "nieudana",
    "nieudany",
    "nieudane",
    "niezrealizowana",
    "niezaksięgowana",
    "anulowane",
    "anulowano",
    "zablokowane",
    "blokada środków",
    "wycofano",
    "wycofana",
    "cofnięta",
    "oczekuje na rozliczenie",
    "oczekuje na zaksięgowanie",
    "zarezerwowana",
    "odmowa",
    "wstrzymana",
    "čekající",
    "čeká na zpracování",
    "čeká na zaúčtování",
    "nezaúčtováno",
    "nezaúčtovaná",
    "probíhá",
    "zpracovává se",
    "blokováno",
    "neprovedeno",
    "neprovedená",
    "zamítnutá",
    "zrušená",
    "odmítnuto",
    "selhalo",
    "neúspěšná",
    "stornováno",
    "čakajúca",
    "čaká",
    "zamietnutá",
    "zamietnuté",
    "zrušené",
    "neúspešná",
    "neúspešné",
    "függőben lévő",
    "függő",
    "zárolt",
    "zárolva",
    "elutasított",
    "visszautasítva",
    "sikertelen",
    "törölve",
    "törölt",
    "visszavonva",
    "visszavont",
    "feldolgozás alatt",
    "könyvelés alatt",
    "folyamatban",
    "nem könyvelt",
    "venter",
    "avventer",
    "slettet",
    "annulleret",
    "kansellert",
    "afbrudt",
    "avbrutt",
    "fejlet",
    "feilet",
    "mislykket",
    "ikke bogført",
    "ikke bokført",
    "ikke udført",
    "under behandling",
    "väntar",
    "nekad",
    "nekat",
    "makulerad",
    "annullerad",
    "avbruten",
    "misslyckad",
    "misslyckades",
    "preliminär",
    "preliminärt",
    "ej bokförd",
    "ej genomförd",
    "borttagen",
    "återkallad",
    "avslagen",
    "odottava",
    "varaus",
    "peruttu",
    "peruutettu",
    "epäonnistunut",
    "epäonnistui",
    "käsittelyssä",
    "kirjaamaton",
    "ei kirjattu",
    "ootel",
    "broneeritud",
    "tühistatud",
    "ebaõnnestunud",
    "gaida",
    "rezervēts",
    "noraidīts",
    "atcelts",
    "laukiama",
    "atmesta",
    "atšaukta",
    "respinsă",
    "respinsa",
    "anulat",
    "anulată",
    "eșuat",
    "eșuată",
    "blocat",
    "blocată",
    "în procesare",
    "in procesare",
    "refuzat",
    "em processamento",
    "em curso",
    "em espera",
    "falhou",
    "falhado",
    "falhada",
    "não efetuada",
    "não concluída",
    "por liquidar",
    "cativo",
    "cativado",
    "estornada",
    "negada",
    "bekliyor",
    "iptal",
    "iptal edildi",
    "başarısız",
    "işleniyor",
    "onay bekliyor",
    "в обработке",
    "обрабатывается",
    "отклонен",
    "отклонена",
    "отменено",
    "отменен",
    "отменена",
    "холд",
    "не исполнено",
    "не проведена",
    "в ожидании",
    "неуспешно",
    "не выполнено",
    "заблокировано",
    "очікує",
    "в обробці",
    "скасовано",
    "відхилено",
    "чакащ",
    "отхвърлен",
    "εκκρεμεί",
    "εκκρεμής",
    "απορρίφθηκε",
    "ακυρώθηκε",
    "απέτυχε",
    "na čekanju",
    "odbijeno",
    "odbijena",
    "otkazano",
    "neuspješno",
    "u obradi",
    "nije izvršeno",
    "v obdelavi",
    "zavrnjeno",
    "preklicano",
];

/// What stands beside money that came back: of the row itself, which then moved nothing, or of
/// another one, and this one moved. Only a balance beside the row shows which.
const CAME_BACK: &[&str] = &[
    "returned",
    "refunded",
    "reverted",
    "erstattet",
    "rückerstattet",
    "zurückgegeben",
    "zurückgebucht",
    "remboursé",
    "retourné",
    "rimborsato",
    "restituito",
    "reembolsado",
    "devuelto",
    "devolvido",
    "terugbetaald",
    "teruggeboekt",
    "zwrócono",
    "zwrócona",
    "cofnięto",
    "vráceno",
    "återbetald",
    "tilbagebetalt",
    "palautettu",
];

/// Columns that say in their own words what a bank did, and stand where texts do: of a payer's
/// words nothing is believed, and these are none.
const KIND_TEXTS: &[&str] = &["buchungstext", "vorgang"];

/// Whether a name is one of these.
pub fn is_kind_text(name: &str) -> bool {
    KIND_TEXTS.contains(&name)
}

/// How words begin that say of a row's kind that it was asked for and not booked, within whatever
/// else it says: `Card authorization hold`, `Pending card payment`.
const ASKED: &[&str] = &[
    "pending",
    "vorgemerkt",
    "authorization",
    "authorisation",
    "autorisation",
    "autorisierung",
    "vorautoris",
    "autorización",
    "autorização",
    "autorizzazione",
    "autoryzac",
    "autorizace",
    "reservering",
    "reserverad",
    "reserverat",
    "kartenreserv",
    "reservierung",
    "reservierter",
    "reservierte",
    "blokad",
    "blokac",
    "blokov",
    "foglalás",
    "varaus",
    "katevaraus",
];

/// Whether a column of this name may say so. What a budget calls a row says nothing of its booking.
pub fn may_ask(name: &str) -> bool {
    let is_budget = matches!(name, "category" | "kategorie");
    is_kind(name) && !is_budget || name == "vorgang"
}

/// Whether a field of a row's kind says so.
pub fn is_asked(kind: &str) -> bool {
    if kind.is_empty() || kind.len() > 60 {
        return false;
    }
    let kind = normal(kind);
    // A fee for one was booked, and so is what an authority to debit an account was used for.
    if ["fee", "prélèvement", "gebühr"].iter().any(|own| kind.contains(own)) {
        return false;
    }
    let is_such = |word: &str| {
        matches!(word, "hold" | "holds") || ASKED.iter().any(|begin| word.starts_with(begin))
    };
    kind.split(' ').any(is_such)
}

/// How words begin that say of the rows below a title that they were not booked, or not for good;
/// those of [`ASKED`] besides.
const TITLES: &[&str] = &[
    "upcoming",
    "scheduled",
    "future",
    "futur",
    "declin",
    "reject",
    "refus",
    "denied",
    "failed",
    "cancel",
    "void",
    "unposted",
    "unbooked",
    "uncleared",
    "unsettled",
    "processing",
    "vormerk",
    "vorgemerk",
    "reservier",
    "geplant",
    "anstehend",
    "terminier",
    "zukünft",
    "künftig",
    "abgelehnt",
    "ausstehend",
    "offene",
    "schwebend",
    "attente",
    "venir",
    "rejet",
    "annul",
    "pendient",
    "pendent",
    "pendenti",
    "retenid",
    "retencion",
    "rechazad",
    "anulad",
    "program",
    "agendad",
    "cativ",
    "rifiutat",
    "sospes",
    "prenotat",
    "reserver",
    "gereserveerd",
    "geweigerd",
    "afgewezen",
    "gepland",
    "toekomstig",
    "openstaand",
    "kommande",
    "kommende",
    "väntande",
    "avvisad",
    "preliminär",
    "venter",
    "ventende",
    "afvist",
    "avvist",
    "reservert",
    "reservasjon",
    "reservation",
    "tuleva",
    "odottava",
    "hylätty",
    "oczekuj",
    "odrzucon",
    "zaplanowan",
    "nierozliczon",
    "niezaksięgowan",
    "przyszłe",
    "čekající",
    "nezaúčtovan",
    "plánovan",
    "zamítnut",
    "čakajúc",
    "nezaúčtovan",
    "foglal",
    "zárol",
    "függő",
    "elutasított",
    "ожида",
    "отклон",
    "предстоящ",
    "запланирован",
    "заблокирован",
    "холд",
    "blocat",
    "respins",
    "bekleyen",
    "provizyon",
    "laukiam",
    "rezerv",
    "broneeri",
    "ootel",
];

/// The same in several words, or in a script without blanks.
const TITLED: &[&str] = &[
    "not booked",
    "not posted",
    "not yet",
    "in progress",
    "on hold",
    "noch nicht",
    "nicht gebucht",
    "en cours",
    "en curso",
    "non comptabilisé",
    "non contabilizzat",
    "da contabilizzare",
    "in attesa",
    "no contabilizad",
    "nog te verwerken",
    "niet geboekt",
    "in behandeling",
    "ej bokförd",
    "ikke bokført",
    "ikke bogført",
    "în așteptare",
    "в обработке",
    "на чекању",
    "na čekanju",
    "未入账",
    "未入帳",
    "待处理",
    "待入账",
    "未確定",
    "予定",
];

/// How words begin that name what a table lists: a title has one of them, or nothing besides.
const MOVEMENTS: &[&str] = &[
    "transaction",
    "transaktion",
    "transakc",
    "transazion",
    "transacc",
    "transaç",
    "tranzac",
    "umsatz",
    "umsätz",
    "buchung",
    "posten",
    "poster",
    "posting",
    "payment",
    "opération",
    "operation",
    "operacion",
    "operazion",
    "operacj",
    "operaç",
    "mouvement",
    "movement",
    "moviment",
    "movimient",
    "betalning",
    "betaling",
    "zahlung",
    "belopp",
    "beløb",
    "betrag",
    "beträge",
    "lançament",
    "pohyb",
    "platb",
    "płatn",
    "tapahtum",
    "tétel",
    "forgalom",
    "списан",
    "операци",
    "платеж",
    "hareket",
    "işlem",
    "makse",
    "mokėj",
];

/// Whether a title names what a table lists.
pub fn titles_movements(title: &str) -> bool {
    title.len() <= 100 && names_movements(&normal(title))
}

/// Whether a text says of what a table lists that it lists it.
fn names_movements(own: &str) -> bool {
    own.split(' ').any(|word| MOVEMENTS.iter().any(|begin| word.starts_with(begin)))
        || own.contains("rows")
}

/// Titles of one word.
const ALONE: &[&str] = &[
    "pending",
    "upcoming",
    "scheduled",
    "declined",
    "holds",
    "vormerkungen",
    "vorgemerkt",
    "reservierungen",
    "blokady",
    "foglalások",
    "pendientes",
    "oczekujące",
];

/// What a title says where there are none, or only others.
const NONE: &[&str] = &[
    "no", "not", "none", "only", "0", "keine", "kein", "nur", "nicht", "ohne", "aucune", "aucun",
    "ningún", "ninguna", "sin", "senza", "sans", "without", "geen", "zonder", "inga", "ingen",
    "utan", "uden", "bez", "brak",
];

/// Whether words below a title say that nothing stands there.
pub fn says_none(text: &str) -> bool {
    let own = normal(text);
    own.split(' ').any(|word| NONE.contains(&word))
}

/// What a title says of rows that are not in the file: `Vorgemerkte Umsätze sind nicht enthalten`.
const LEFT_OUT: &[&str] = &[
    "ausgeblendet",
    "hidden",
    "hors ",
    "exclu",
    "esclus",
    "sind nicht",
    "nicht enthalten",
    "not included",
    "not shown",
    "ne sont pas",
    "non sono",
    "no se incluyen",
    "niet opgenomen",
];

/// Whether a title says so of the rows below it.
pub fn titles_unbooked(title: &str) -> bool {
    if title.len() > 100 {
        return false;
    }
    let own = normal(title);
    if LEFT_OUT.iter().any(|of| own.contains(of)) {
        return false;
    }
    if TITLED.iter().any(|of| own.contains(of)) {
        return true;
    }
    let mut words = own.split(' ').filter(|word| word.chars().any(char::is_alphanumeric));
    let is_alone = words.clone().filter(|word| !word.chars().all(char::is_numeric)).count() == 1;
    if says_none(title) {
        return false;
    }
    let begins = |word: &str| TITLES.iter().any(|begin| word.starts_with(begin));
    match is_alone {
        true => words.any(|word| ALONE.contains(&word)),
        false => names_movements(&own) && (is_asked(title) || words.any(begins)),
    }
}

/// Whether a title says that the rows below it were booked.
pub fn titles_booked(title: &str) -> bool {
    let begins = [
        "posted",
        "booked",
        "cleared",
        "settled",
        "completed",
        "gebucht",
        "verbucht",
        "geboekt",
        "comptabilis",
        "contabiliz",
        "zaksięgowan",
        "zaúčtovan",
        "bokför",
        "bogført",
        "bokført",
        "kirjat",
        "könyvelt",
        "efetuad",
    ];
    let own = normal(title);
    let is_own = |word: &str| begins.iter().any(|begin| word.starts_with(begin));
    own.split(' ').any(is_own) && !titles_unbooked(title)
}

/// Words of a title of what went out.
const WENT_OUT: &[&str] = &[
    "withdrawals",
    "withdrawal",
    "debits",
    "outgoing",
    "ausgaben",
    "ausgänge",
    "abbuchungen",
    "belastungen",
    "lastschriften",
    "auszahlungen",
    "débits",
    "retraits",
    "dépenses",
    "prélèvements",
    "egresos",
    "retiros",
    "salidas",
    "débitos",
    "saídas",
    "despesas",
    "uscite",
    "addebiti",
    "prelievi",
    "uitgaven",
    "afschrijvingen",
    "opnames",
    "uttag",
    "utgifter",
    "udgifter",
    "uttak",
    "wydatki",
    "obciążenia",
    "wypłaty",
    "výdaje",
    "výběry",
    "расходы",
    "списания",
];

/// Whether a title says that the money of the rows below it went out.
pub fn titles_what_went_out(title: &str) -> bool {
    // Of both ways, or with more words, it says nothing of a row.
    let own = normal(title);
    let mut words = own.split(' ').filter(|word| word.chars().any(char::is_alphabetic));
    words.clone().count() <= 2 && words.any(|word| WENT_OUT.contains(&word))
}

/// Names of the id that a transaction has of its own: a bank writes each once.
const OWN_IDS: &[&str] = &[
    "transaction id",
    "transactionid",
    "transaktions id",
    "transaktionsid",
    "transferwise id",
    "id operace",
    "id pohybu",
    "id transakcji",
    "unique payment id generated by barion",
];

/// Whether a name is one of these.
pub fn is_own_id(name: &str) -> bool {
    OWN_IDS.contains(&name)
}

/// Columns of the currency of the running balance.
const OF_BALANCE: &[&str] = &[
    "balance currency",
    "currency of balance",
    "balance ccy",
    "saldo währung",
    "saldowährung",
    "währung saldo",
    "devise du solde",
    "divisa saldo",
    "valuta saldo",
    "waluta salda",
];

/// Whether a name is one of these.
pub fn is_code_of_balance(name: &str) -> bool {
    OF_BALANCE.contains(&name)
}

/// Names of what was paid in another currency.
const ORIGINAL_AMOUNTS: &[&str] = &[
    "original amount",
    "foreign amount",
    "amount foreign currency",
    "originalbetrag",
    "ursprungsbetrag",
    "betrag fremdwährung",
    "montant d origine",
    "importo originale",
    "importe original",
];

/// Whether a name is one of these.
pub fn is_original_amount(name: &str) -> bool {
    ORIGINAL_AMOUNTS.contains(&name)
}

/// Words within a row beside the table that say that the file is not whole.
const BROKEN_OFF: &[&str] = &[
    "truncated",
    "aborted",
    "timed out",
    "limit reached",
    "limit exceeded",
    "more rows",
    "more transactions available",
    "abgebrochen",
    "unvollständig",
    "tronqué",
    "troncato",
    "truncado",
    "afgebroken",
];

/// The same where rows or transactions are spoken of: a bank may cut descriptions and days.
const BROKEN_ROWS: &[&str] = &["only the first", "nur die ersten"];

/// How such a row begins, before a colon: elsewhere these are words of a bank that excuses itself
/// for what it never did (`errors and omissions excepted`).
const ERRORS: &[&str] = &["error", "exception", "fehler", "erreur", "fout", "errore", "błąd"];

/// Whether words beside the table say that the file is not whole.
pub fn says_broken_off(text: &str) -> bool {
    let own = normal(text);
    let is_error = text.split_once(':').is_some_and(|(first, _)| {
        let first = normal(first);
        ERRORS.contains(&first.as_str())
    });
    let may_be = || ["may ", "können", "description"].iter().all(|word| !own.contains(word));
    let is_told = |words: &[&str]| words.iter().any(|of| own.contains(of)) && may_be();
    is_error || is_told(BROKEN_OFF) || (is_told(BROKEN_ROWS) && names_movements(&own))
}

/// Whether words beside the table are of a balance or a sum, or what is left to spend.
pub fn names_figure(text: &str) -> bool {
    let text: String = normal(text).chars().map(bare).collect();
    let is_such = |word: &str| {
        BALANCES.contains(&word)
            || SUMS.contains(&word)
            || ["limit", "dispo", "available", "verfugbar", "disponible", "disponibile"]
                .iter()
                .any(|begin| word.starts_with(begin))
    };
    text.split(' ').any(is_such)
}

/// All of these, as fields of every row are looked up among them.
static NOT_SURE: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    [PENDING, CALLED_OFF, DOUBTFUL, CAME_BACK].into_iter().flatten().copied().collect()
});

/// Whether a field says that a row was not booked, or may not have been, and nothing else.
pub fn is_doubtful(field: &str) -> bool {
    is_word(field) && NOT_SURE.contains(normal(field).as_str())
}

/// Whether a field says that money came back, and nothing else.
pub fn came_back(field: &str) -> bool {
    is_word(field) && CAME_BACK.contains(&normal(field).as_str())
}

fn is_word(field: &str) -> bool {
    let has_digit = field.bytes().any(|b| b.is_ascii_digit());
    !field.is_empty() && field.len() <= 40 && !has_digit
}

/// What a field says that is a word for what was not booked, and nothing else.
pub fn unbooked(field: &str) -> Option<EntryStatus> {
    // Longer than any of them, or a figure: most fields are.
    if !is_word(field) {
        return None;
    }
    let field = normal(field);
    let is = |words: &[&str]| words.contains(&field.as_str());
    if is(PENDING) {
        Some(EntryStatus::Pending)
    } else {
        is(CALLED_OFF).then_some(EntryStatus::Info)
    }
}

/// Words of two banks for what is still to come, which elsewhere leave open what a row is, and
/// columns by which each of these banks is known.
const OF_LAYOUTS: &[(&str, &[&str])] = &[
    ("autorizzato", &["descrizione completa", "moneymap", "stato"]),
    ("venter", &["underkategori", "afstemt", "status"]),
];

/// Columns of a wallet that calls a payment approved once it was made: elsewhere that is what may
/// be captured.
const WITH_APPROVALS: &[&str] =
    &["id", "name", "state", "kind", "date", "amount", "currency", "extra info"];

/// What a column of [`STATUS`] says by a value; none where the value is not known. Elsewhere `sent`
/// may be an order that is still under way, and `OK` what was only asked.
pub fn status_of(names: &[String], at: usize, value: &str) -> Option<EntryStatus> {
    let own = normal(value);
    let is_asked = |(word, layout): &(&str, &[&str])| {
        *word == own && layout.iter().all(|name| names.iter().any(|own| own == name))
    };
    if OF_LAYOUTS.iter().any(is_asked) {
        return Some(EntryStatus::Pending);
    }
    match own.as_str() {
        "approved" if sheet::has(names, WITH_APPROVALS) => return Some(EntryStatus::Booked),
        "not approved" if sheet::has(names, WITH_APPROVALS) => return Some(EntryStatus::Info),
        _other => {}
    }
    let is_done = own == "sent" && is_in_dollars(names);
    if is_done || own == "ok" && in_account(names).is_some() {
        return Some(EntryStatus::Booked);
    }
    let (yes, no) = match names.get(at).map_or("", String::as_str) {
        "pending" => (EntryStatus::Pending, EntryStatus::Booked),
        "booked" if own.is_empty() => return None,
        "booked" => (EntryStatus::Booked, EntryStatus::Pending),
        _words if BOOKED.contains(&own.as_str()) => return Some(EntryStatus::Booked),
        _words => return unbooked(value),
    };
    match own.as_str() {
        "yes" | "true" | "ja" | "y" | "1" => Some(yes),
        "no" | "false" | "nein" | "nee" | "n" | "0" | "" => Some(no),
        _word => unbooked(value),
    }
}

/// References and texts.
pub const TAGS: &[(TagKind, &[&str])] = &[
    (
        TagKind::EndToEndId,
        &[
            "kundenreferenz end to end",
            "end to end id",
            "endtoendid",
            "end to end reference",
            "end to end referenz",
            "ende zu ende referenz",
        ],
    ),
    (TagKind::Mandate, &["mandatsreferenz", "machtigingskenmerk", "mandate reference"]),
    (
        TagKind::CreditorReference,
        &[
            "betalingskenmerk",
            "variable symbol",
            "variable symbol 1",
            "variabilní symbol",
            "variabilný symbol",
            "pnb primatelja",
            "viite",
            "viitenumero",
            "viitenumber",
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
            "id objednávky vs",
            "payment id generated by shop",
            "referencia platiteľa",
            "pnb platitelja",
            "riferimento",
            "referenz",
        ],
    ),
    (
        TagKind::TransactionId,
        &[
            "transaction id",
            "transactionid",
            "transactiereferentie",
            "transaction reference",
            "transaktions nr",
            "transaktions id",
            "buchungsreferenz",
            "id",
            "unique payment id generated by barion",
        ],
    ),
    (
        TagKind::Text,
        &[
            "description",
            "transaction description",
            "transaction remarks",
            "label",
            "reason",
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
            "vorgang verwendungszweck",
            "buchungstext",
            "booking text",
            "buchungsdetails",
            "buchungs details",
            "booking details",
            "détails de comptabilisation",
            "avisierungstext",
            "notification text",
            "texte de notification",
            "texte comptable",
            "testo di avviso",
            "description 1",
            "description 2",
            "description 3",
            "description1",
            "description2",
            "description3",
            "beschreibung",
            "beschreibung 1",
            "beschreibung 2",
            "beschreibung 3",
            "beschreibung1",
            "beschreibung2",
            "beschreibung3",
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
            "nom de la contrepartie",
            "concepto",
            "movimiento",
            "más datos",
            "descripción",
            "descripcion",
            "descrizione",
            "descrizione1",
            "descrizione2",
            "descrizione3",
            "descrizione operazione",
            "causale descrizione operazione",
            "descrizione completa",
            "causale",
            "testo di contabilizzazione",
            "testo contabilizzazione",
            "tipo di ordine testo di contabilizzazione",
            "testo",
            "texte",
            "movimento",
            "parola chiave",
            "osservazioni",
            "деталі операції",
            "descrição",
            "histórico",
            "historico",
            "lançamento",
            "lancamento",
            "opis",
            "opis operacji",
            "opis transakcji",
            "szczegóły transakcji",
            "tytuł",
            "tytułem",
            "tytuł operacji",
            "popis",
            "poznámka",
            "zpráva",
            "zpráva pro příjemce",
            "message for payee",
            "tekst",
            "forklaring",
            "tittel",
            "melding kid fakt nr",
            "açıklama",
            "transaktions info",
            "beskrivning",
            "beskrivelse",
            "beschrijving",
            "leírás",
            "описание",
            "описание операции",
            "rubrik",
            "viesti",
            "selitys",
            "közlemény",
            "közlemény 1",
            "közlemény 2",
            "közlemény 3",
            "közlemény 4",
            "selgitus",
            "paaiškinimai",
            "informācija saņēmējam",
            "popis transakcie",
            "popis transakce",
            "poznámka k úhradě",
            "опис операції",
            "основание",
            "informácia pre príjemcu",
            "správa pre príjemcu",
            "namen",
            "opis plaćanja",
            "opis placanja",
            "opis prejemnika",
            "descriere",
            "transaktionsbeschreibung",
            "popis pro prijemce",
        ],
    ),
];

/// Names of a text that some give to the other side or the kind of row, beside a text: only where
/// none of [`TAGS`] is one.
pub const TEXT_ALONE: &[&str] = &[
    "dettagli",
    "operazione",
    "otsikko",
    "transaction",
    "transactions",
    "transaktionen",
    "bezeichnung",
    "protistrana",
    "customer beneficiary",
    "transaction type",
];

/// The payer's reference within a text of a German bank, up to the next of the codewords.
const EREF: &str = r"(?x) (?: EREF\+\s? | \bEREF:\s+ ) (.+?)
    (?: \s*(?:KREF|MREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE)\+
      | \s+(?:KREF|MREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE|IBAN|BIC):\s
      | \s*$ )";

/// The same in one bank's own words.
const SPELLED_OUT: &str = r"(?xi) \bEnd-to-End-Ref\.:\s* (.+?)
    (?: \s+(?:CORE|B2B)\s?/
      | \s*(?:Mandatsref|Gl(?:ä|ae)ubiger-ID|Kundenref)
      | \s+Ref\.\s
      | \s*$ )";

/// The same between the slashes of a Dutch bank's codewords.
const SLASHED: &str = r"(?x) ^/(?: .*/ )? EREF/ (.+?) (?: /[A-Z]{3,4}/ | /?\s*$ )";

/// One bank's references begin with a word of its own, also where there is none.
const CREDITOR: &str = r"(?is)^(?:ref=)?(.*)$";

/// What a column of this kind yields: texts of German banks hold the payer's reference, too.
pub fn tag_rules(at: usize, kind: TagKind) -> Vec<TagRule> {
    let rule = |kind: TagKind, pattern: Option<Regex>| {
        let column = Column::Number(at.saturating_add(1));
        TagRule { column, kind, pattern }
    };
    // Without its pattern a rule would take the whole text.
    let within = |kind: TagKind, pattern: &str| {
        Regex::new(pattern).ok().map(|pattern| rule(kind, Some(pattern)))
    };
    let own = TagKind::EndToEndId;
    let rules: Vec<Option<TagRule>> = match kind {
        TagKind::Text => {
            let marks = [EREF, SPELLED_OUT, SLASHED].map(|pattern| within(own, pattern));
            marks.into_iter().chain([Some(rule(kind, None))]).collect()
        }
        TagKind::CreditorReference => vec![within(kind, CREDITOR)],
        _whole => vec![Some(rule(kind, None))],
    };
    rules.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Vec<String> {
        text.split(';').map(str::to_owned).collect()
    }

    #[test]
    fn a_balance_beside_a_table_is_known_by_its_name_and_some_by_their_day() {
        use Declares::{Closing, Opening};
        let what = |text: &str| {
            let row = row(text);
            declared(row.iter().map(String::as_str))
                .map(|(_, what, value)| (what, value.to_owned()))
        };
        for (text, wanted) in [
            ("openingBalance;195,00", Some((Opening, "195,00"))),
            ("closingBalance;295,01", Some((Closing, "295,01"))),
            ("Solde en fin de période;;;;655,25;", Some((Closing, "655,25"))),
            ("Inngående saldo pr. 01.05.2026:;;25 000,00 NOK", Some((Opening, "25 000,00 NOK"))),
            ("Utgående  saldo pr. 10.05.2026:;;1,00 NOK", Some((Closing, "1,00 NOK"))),
            ("Utgående saldo i banken;1,00", None),
            ("Closing balance as at 10.05.2026;1,00", None),
            ("Saldo;1,00", None),
        ] {
            let wanted = wanted.map(|(what, value)| (what, value.to_owned()));
            assert_eq!(what(text), wanted, "{text}");
        }
        let heads = |text: &str| declared_heads(row(text).iter().map(String::as_str));
        assert_eq!(heads("Schlusssaldo;;Anfangssaldo;"), [(0, Closing), (2, Opening)]);
        assert_eq!(heads("Schlusssaldo;Datum"), []);
        assert_eq!(heads("Schlusssaldo;;"), []);
        assert_eq!(is_before("solde en début de période"), Some(true));
        assert_eq!(is_before("solde en fin de période"), Some(false));
        assert!(is_stand("solde en fin de période"));
    }

    #[test]
    fn a_sum_of_both_sides_and_what_was_held_before_are_known_in_more_languages() {
        for sum in ["TOTALS", "Totali", "Összesen", "Итого", "合計", "Grand total"] {
            assert!(is_sum_of_sides(sum), "{sum}");
        }
        assert!(!is_sum_of_sides("Total of the week"));
        for stand in ["saldo anterior", "saldo precedente", "previous balance", "saldovortrag"] {
            assert!(is_stand(stand), "{stand}");
            assert_eq!(is_before(stand), Some(true), "{stand}");
        }
        assert_eq!(is_before("balance carried forward"), None);
    }

    #[test]
    fn an_account_above_a_table_is_known_by_its_name() {
        let told = |text: &str| accounts(&row(text));
        for text in ["Konto:;=\"CH93 0076\"", "Konto: CH93 0076", "x;Numéro de compte : CH93 0076"]
        {
            assert_eq!(told(text), [(false, "CH93 0076".to_owned())], "{text}");
        }
        assert_eq!(told("IBAN:;CH93 0076;"), [(true, "CH93 0076".to_owned())]);
        assert_eq!(told("Gegenkonto:;CH93 0076"), []);
        for (text, wanted) in [
            ("0278 00122087.01", true),
            ("CH93 0076", true),
            ("Privatkonto 1234", false),
            ("", false),
        ] {
            assert_eq!(may_be_account(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_currency_stands_in_any_field_above_a_table() {
        let euro = Currency::parse("EUR").unwrap();
        let told = currencies_within(&row("Compte : 1;Nom : M. ALL;Devise : EUR;;"));
        assert_eq!(told, [euro]);
        assert_eq!(currencies_within(&row("Devise : ALL;Devise;EUR")), []);
    }

    #[test]
    fn names_of_parts_days_and_rates_are_told_apart() {
        for name in ["einzelbetrag", "betrag detail", "betrag einzelzahlung chf"] {
            assert!(is_part(name), "{name}");
        }
        assert!(!is_part("betrag") && !is_part("details"));
        assert!(is_date("abschlussdatum") && is_date("utført dato") && !is_date("abschlusszeit"));
        assert!(!is_amount("devisenkurs zum originalbetrag in abrechnungswährung"));
        assert!(is_amount("originalbetrag"));
        assert_eq!([is_debit("Belastung"), is_debit("Gutschrift")], [Some(true), Some(false)]);
    }
}
