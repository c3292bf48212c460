//! Which columns may tell PSP accounts apart, or kinds of movement, by their names and values; and
//! which values of a status may say that a call is on its way.
//!
//! A row of another PSP that is taken for one of Stripe's is not found there, and neither is a
//! refund among charges. What is never found is charged again, or refunded again, in the end: such
//! a column is never passed over in silence.

use crate::store::source_table::{Column, TypeClass};

/// More values than this are hardly accounts.
pub const ACCOUNTS_MAX: usize = 20;

/// What such a column may be of, whatever its type: a word, or a key of another table. The
/// likeliest first.
const PROVIDERS: [&str; 20] = [
    "payment_provider",
    "payment_gateway",
    "payment_processor",
    "provider",
    "gateway",
    "psp",
    "processor",
    "acquirer",
    "merchant_account",
    "psp_account",
    "stripe_account",
    "provider_account",
    "gateway_account",
    "payment_method",
    "merchant_connector",
    "connector",
    "plugin",
    "service",
    "channel",
    "tenant",
];

/// What stands behind such a word.
const OF_PROVIDER: [&str; 8] = ["id", "uuid", "name", "code", "type", "key", "slug", "record"];

/// Names of PSPs as they stand in values, whatever the column is called. Those that are common
/// words too (checkout, cash) are none.
const PSPS: [&str; 20] = [
    "stripe",
    "adyen",
    "paypal",
    "braintree",
    "mollie",
    "worldpay",
    "gocardless",
    "square",
    "klarna",
    "razorpay",
    "checkoutcom",
    "authorizenet",
    "cybersource",
    "paystack",
    "flutterwave",
    "mercadopago",
    "xendit",
    "dlocal",
    "nuvei",
    "bluesnap",
];

/// Columns that are looked at for what their values say; a wider table has such a one among the
/// first.
const CODED_MAX: usize = 40;

/// A longer text is no word of a list.
const CODE_CHARS: usize = 64;

/// A longer value is hardly one of a flag.
const WORD_CHARS: usize = 12;

/// Parts of names of columns that hold secrets, or whole messages: they are not read.
const UNREAD: [&str; 9] =
    ["secret", "token", "email", "url", "ip", "agent", "payload", "response", "metadata"];

/// Parts of names of columns that hold sentences, people, or how a row stands. They are looked at
/// last, and tell PSPs apart where half of their values are names of PSPs.
const UNCODED: [&str; 17] = [
    "by",
    "error",
    "message",
    "reason",
    "note",
    "notes",
    "memo",
    "comment",
    "description",
    "title",
    "data",
    "event",
    "currency",
    "status",
    "state",
    "country",
    "locale",
];

/// What a column that tells kinds of movement ends with.
const OF_KIND: [&str; 31] = [
    "type",
    "kind",
    "operation",
    "direction",
    "flow",
    "dc",
    "drcr",
    "crdr",
    "inout",
    "side",
    "sign",
    "action",
    "category",
    "movement",
    "entry",
    "purpose",
    "typ",
    "art",
    "buchungsart",
    "belegart",
    "richtung",
    "vorzeichen",
    "sh",
    "shkzg",
    "tipo",
    "sentido",
    "sens",
    "nature",
    "movimiento",
    "movimento",
    "mouvement",
];

/// What a column ends with besides that may tell kinds, by values that say nothing themselves.
const MAY_BE_OF_KIND: [&str; 3] = ["rectype", "soort", "event"];

/// More values than this are hardly kinds of movement.
const KINDS_MAX: usize = 6;

/// Parts of values that are ways to pay.
const WAYS: [&str; 13] = [
    "card", "cards", "visa", "amex", "sepa", "ach", "bank", "cash", "wallet", "ideal", "giropay",
    "invoice", "cheque",
];

/// What stands behind such a word.
const OF_CODE: [&str; 8] = ["flag", "ind", "indicator", "code", "cd", "kz", "kennzeichen", "name"];

/// A name of several words, all of which are such, names both ways that money goes: `debit_credit`,
/// `CR_DBT_IND`.
const SIDES: [&str; 17] = [
    "d", "c", "dr", "cr", "dbt", "cdt", "dbit", "crdt", "debit", "credit", "in", "out", "or",
    "soll", "haben", "debe", "haber",
];

/// Parts of names under which S and H are the two sides of a book.
const OF_BOOKS: [&str; 4] = ["soll", "haben", "sh", "shkzg"];

/// Where these are in the name, the type is one of cards or of ways to pay.
const OF_CARDS: [&str; 5] = ["card", "funding", "method", "source", "instrument"];

const REFUNDS: [&str; 2] = ["refund", "refunds"];
/// What a word of refunds ends with in other languages: `Teilerstattung`.
const REFUNDED: [&str; 12] = [
    "erstattung",
    "remboursement",
    "rimborso",
    "reembolso",
    "devolución",
    "devolucion",
    "devolução",
    "devolucao",
    "terugbetaling",
    "återbetalning",
    "tilbagebetaling",
    "zwrot",
];
const PAYOUTS: [&str; 4] = ["payout", "payouts", "withdrawal", "disbursement"];
const NO_KIND: [&str; 6] = ["void", "voids", "chargeback", "chargebacks", "dispute", "disputes"];
/// Words beside those that leave the movement what it is.
const BESIDE: [&str; 39] = [
    "partial",
    "partially",
    "full",
    "fully",
    "total",
    "auto",
    "automatic",
    "manual",
    "instant",
    "standard",
    "pay",
    "out",
    "payment",
    "payments",
    "charge",
    "charges",
    "card",
    "credit",
    "order",
    "customer",
    "transaction",
    "txn",
    "sale",
    "purchase",
    "donation",
    "capture",
    "invoice",
    "bank",
    "stripe",
    "psp",
    "of",
    "to",
    "de",
    "del",
    "di",
    "do",
    "parcial",
    "partiel",
    "teil",
];
/// What is taken back, by a refund or by a booking alone.
const BACK: [&str; 3] = ["reversal", "reversals", "avoir"];
/// What a word of such ends with.
const BOOKED_BACK: [&str; 10] = [
    "gutschrift",
    "storno",
    "stornobuchung",
    "stornierung",
    "creditnote",
    "creditmemo",
    "kreditnota",
    "rueckzahlung",
    "rückzahlung",
    "reintegro",
];
/// The same in several words.
const NOTES: [&str; 5] =
    ["credit_note", "credit_memo", "nota_credito", "nota_de_credito", "nota_di_credito"];
const CREDITS: [&str; 6] = ["credit", "credits", "abono", "accredito", "return", "returns"];
const TRANSFERS: [&str; 2] = ["transfer", "transfers"];
/// Money that goes out: back to a customer, or to a bank account.
const OUT: [&str; 4] = ["outward", "outbound", "outgoing", "outflow"];
const IN: [&str; 4] = ["inward", "inbound", "incoming", "inflow"];
const CHARGES: [&str; 21] = [
    "charge",
    "charges",
    "payment",
    "payments",
    "purchase",
    "sale",
    "donation",
    "topup",
    "top_up",
    "payin",
    "pay_in",
    "zahlung",
    "betaling",
    "paiement",
    "pago",
    "cobro",
    "pagamento",
    "vente",
    "venta",
    "compra",
    "vendita",
];

/// Letters and words for debit and credit, in and out, with the reversals of both. Which of them is
/// a charge only a person can say.
const LETTERS: [&str; 31] = [
    "c", "d", "cr", "dr", "rc", "rd", "i", "o", "cdt", "dbt", "crdt", "dbit", "cred", "deb",
    "credit", "debit", "crédit", "débit", "crédito", "débito", "credito", "debito", "kredit",
    "debet", "haben", "soll", "haber", "debe", "avere", "dare", "cargo",
];

/// Words that say it under whatever name, where a column has both and no others.
const PAIRS: [[&str; 2]; 6] = [
    ["dbit", "crdt"],
    ["dr", "cr"],
    ["in", "out"],
    ["inbound", "outbound"],
    ["incoming", "outgoing"],
    ["inward", "outward"],
];

/// The sign of an amount in a column of its own.
const SIGNS: [&str; 5] = ["+", "-", "+1", "-1", "1"];

/// What a flag is called that may say that a row is one, or that there is one of it; what ends with
/// a word of refunds or of reversals is one as well. `refunded` and `voided` say what became of a
/// charge.
const BARE: [&str; 3] = ["payout", "withdrawal", "disbursement"];

/// What says in other languages what became of a charge, or that a row takes one back.
const UNDONE: [&str; 16] = [
    "estornado",
    "estornada",
    "reembolsado",
    "reembolsada",
    "devolvido",
    "devolvida",
    "devuelto",
    "devuelta",
    "erstattet",
    "rimborsato",
    "rimborsata",
    "remboursé",
    "rembourse",
    "remboursee",
    "terugbetaald",
    "zwrocono",
];

/// What a flag begins with that says what its row is.
const IS: [&str; 7] = ["is", "was", "ist", "es", "est", "eh", "jest"];

/// The same, where what follows is a word of refunds alone: an `e_payment` is an electronic one.
const IS_BRIEFLY: [&str; 2] = ["e", "é"];

/// What one begins with that says what a row has.
const HAS: [&str; 6] = ["has", "hat", "tiene", "tem", "heeft", "ha"];

/// What a name ends with, or begins with, that says nothing but that it is a flag.
const FLAG_ENDS: [&str; 13] = [
    "flag",
    "flg",
    "fl",
    "kz",
    "kennz",
    "kennzeichen",
    "ind",
    "indicator",
    "yn",
    "jn",
    "sn",
    "bool",
    "mark",
];

/// The same, written in one word with what stands before it: `stornokennzeichen`.
const JOINED_ENDS: [&str; 6] = ["kennzeichen", "kz", "flag", "indicator", "ind", "yn"];

/// Parts of names of flags that say what may be done with a charge.
const MAY_BE_DONE: [&str; 7] = ["can", "may", "allow", "allows", "enable", "no", "not"];

/// What such a flag goes on with, or is called, where it says which way money goes.
const SIDE_FLAGS: [&str; 8] =
    ["debit", "credit", "inbound", "outbound", "incoming", "outgoing", "abono", "cargo"];

/// What it goes on with where rows without it are no charges.
const CHARGE_FLAGS: [&str; 6] = ["charge", "payment", "purchase", "sale", "payin", "pay_in"];

/// Goods that came back, and their money with them.
const RETURNS: [&str; 2] = ["return", "returns"];

/// What a column begins with that names the row which its own row takes back: a refund's charge.
const TAKES_BACK: [&str; 5] = ["refunded", "refunds", "reversed", "reverses", "credited"];

/// What may be taken back, and `of` behind it: `refund_of`, `reversal_of_payment_id`.
const TAKEN_BACK: [&str; 6] =
    ["refund_of", "reversal_of", "chargeback_of", "credit_note_of", "storno_zu", "storno_von"];

/// What a column begins with that names another row, which may be the one that it takes back.
const POINTS: [&str; 6] = ["parent", "original", "orig", "originating", "related", "linked"];

/// What such a column goes on with.
const ROWS: [&str; 11] = [
    "payment",
    "charge",
    "transaction",
    "txn",
    "trx",
    "capture",
    "sale",
    "invoice",
    "donation",
    "entry",
    "movement",
];

/// What it ends with.
const OF_ROW: [&str; 4] = ["id", "uuid", "ref", "reference"];

/// Values of a flag that say yes, in the languages that payments are kept in; a mark is an `X`.
const YES: [&str; 20] = [
    "1", "true", "t", "y", "yes", "j", "ja", "s", "si", "sí", "sì", "sim", "o", "oui", "x", "tak",
    "wahr", "vrai", "vero", "+",
];

/// Those that say no; rows without a mark have a blank, or a dash.
const NO: [&str; 16] = [
    "", "0", "false", "f", "n", "no", "nein", "non", "nao", "não", "nee", "nie", "-", "falsch",
    "faux", "falso",
];

/// What an id begins with that Stripe made: of a payment, a saved card, a customer.
const IDS: [&str; 11] =
    ["pi_", "ch_", "re_", "py_", "pm_", "card_", "src_", "ba_", "cus_", "seti_", "mandate_"];

/// Values of a status that say: the call is on its way. Other languages' words for "sent" are not
/// among them: they rather say that goods were.
pub const PROCESSING: [&str; 31] = [
    "processing",
    "in_flight",
    "inflight",
    "in_progress",
    "sending",
    "sent",
    "submitted",
    "submitting",
    "capturing",
    "charging",
    "executing",
    "authorizing",
    "requested",
    "in_bearbeitung",
    "in_verarbeitung",
    "wird_verarbeitet",
    "en_cours",
    "en_cours_de_traitement",
    "en_traitement",
    "en_proceso",
    "en_curso",
    "procesando",
    "in_corso",
    "in_elaborazione",
    "in_lavorazione",
    "in_behandeling",
    "in_verwerking",
    "wordt_verwerkt",
    "em_processamento",
    "em_andamento",
    "processando",
];

/// Values that may say the same, or that nobody has paid yet.
pub const PENDING: [&str; 12] = [
    "pending",
    "initiated",
    "started",
    "open",
    "offen",
    "ausstehend",
    "en_attente",
    "pendiente",
    "in_attesa",
    "in_sospeso",
    "openstaand",
    "pendente",
];

/// Values of a status that say: the payment was made. The likeliest first.
pub const SUCCEEDED: [&str; 43] = [
    "succeeded",
    "success",
    "successful",
    "paid",
    "captured",
    "completed",
    "complete",
    "settled",
    "done",
    "charged",
    "confirmed",
    "bezahlt",
    "gezahlt",
    "erfolgreich",
    "abgeschlossen",
    "payé",
    "paye",
    "payée",
    "payee",
    "réussi",
    "reussi",
    "réussie",
    "reussie",
    "encaissé",
    "encaisse",
    "pagado",
    "pagada",
    "cobrado",
    "exitoso",
    "completado",
    "pagato",
    "pagata",
    "riuscito",
    "completato",
    "incassato",
    "betaald",
    "voldaan",
    "geslaagd",
    "voltooid",
    "pago",
    "paga",
    "concluído",
    "concluido",
];

/// Values of a status that say: the payment was refused.
pub const FAILED: [&str; 41] = [
    "failed",
    "failure",
    "declined",
    "refused",
    "error",
    "errored",
    "rejected",
    "fehlgeschlagen",
    "gescheitert",
    "abgelehnt",
    "fehler",
    "échoué",
    "echoue",
    "échouée",
    "echouee",
    "échec",
    "echec",
    "refusé",
    "refusée",
    "refusee",
    "rejeté",
    "rejete",
    "erreur",
    "fallido",
    "fallida",
    "rechazado",
    "rechazada",
    "fallito",
    "fallita",
    "rifiutato",
    "respinto",
    "errore",
    "mislukt",
    "geweigerd",
    "afgewezen",
    "falhou",
    "falhado",
    "falha",
    "recusado",
    "rejeitado",
    "erro",
];

/// Values of a status that say: charge it again.
pub const RETRYABLE: [&str; 15] = [
    "retryable",
    "retry",
    "to_retry",
    "again",
    "retrying",
    "requeued",
    "pending_retry",
    "erneut_versuchen",
    "wiederholen",
    "à_réessayer",
    "a_reessayer",
    "reintentar",
    "da_riprovare",
    "opnieuw_proberen",
    "tentar_novamente",
];

/// Whether a value of a status says by itself this outcome, as `[[table.map]]` calls it.
pub fn says_outcome(outcome: &str, value: &str) -> bool {
    let words = match outcome {
        "succeeded" => &SUCCEEDED[..],
        "failed" => &FAILED[..],
        "retryable" => &RETRYABLE[..],
        _other => &[],
    };
    words.contains(&plain(value).as_str())
}

/// Whether a value of a status says by itself that the payment was made.
pub fn says_success(value: &str) -> bool {
    SUCCEEDED.contains(&plain(value).as_str())
}

/// Whether a value of a status is a word of payments that failed.
pub fn says_failure(value: &str) -> bool {
    FAILED.contains(&plain(value).as_str())
}

/// Whether a value of a status may say that a call is on its way, by a part of it, and that nothing
/// failed yet.
pub fn is_on_its_way(value: &str) -> bool {
    let says_failure = plain(value).split('_').any(|part| FAILED.contains(&part));
    may_be_on_its_way(value) && !says_failure
}

/// Whether a value of a status may say that a call is on its way, by a part of it.
pub fn may_be_on_its_way(value: &str) -> bool {
    let value = plain(value);
    let parts = [
        "pending",
        "processing",
        "submit",
        "authorizing",
        "authorising",
        "progress",
        "bearbeitung",
        "ausstehend",
        "en_attente",
        "en_cours",
        "pendiente",
        "pendente",
        "in_attesa",
        "in_behandeling",
    ];
    let is_like = parts.iter().any(|part| value.contains(part));
    let last = value.rsplit('_').next().unwrap_or_default();
    is_like
        || last == "initiated"
        || PENDING.contains(&value.as_str())
        || PROCESSING.contains(&value.as_str())
}

/// A name as words: `CreatedAt`, `Created At` and `created-at` are `created_at`.
pub fn plain(name: &str) -> String {
    let mut words = String::new();
    let mut before: Option<char> = None;
    for c in name.chars() {
        let starts = c.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_numeric());
        if starts {
            words.push('_');
        }
        match c.is_alphanumeric() {
            true if c.is_ascii() => words.push(c.to_ascii_lowercase()),
            true => words.extend(c.to_lowercase()),
            false if !words.is_empty() && !words.ends_with('_') => words.push('_'),
            false => {}
        }
        before = Some(c);
    }
    words.trim_end_matches('_').to_owned()
}

/// Columns that may tell accounts or PSPs apart, the likeliest first.
pub fn tell_accounts(columns: &[Column]) -> Vec<&Column> {
    let is_apt = |column: &&Column| {
        matches!(
            column.class,
            TypeClass::Text
                | TypeClass::Padded
                | TypeClass::Enum(_)
                | TypeClass::Integer
                | TypeClass::Uuid
        )
    };
    let mut found: Vec<&Column> = Vec::new();
    for word in PROVIDERS {
        for column in columns.iter().filter(is_apt).filter(|column| is_of(&column.name, word)) {
            if !found.iter().any(|known| known.name == column.name) {
                found.push(column);
            }
        }
    }
    found
}

/// Whether a column of this name may tell accounts apart, whatever its values are.
pub fn is_teller(name: &str) -> bool {
    PROVIDERS.iter().any(|word| is_of(name, word))
}

/// Whether a name is this word, or ends with it: `tenant_record_id` is of `tenant`.
fn is_of(name: &str, word: &str) -> bool {
    let name = plain(name);
    let mut bare = name.as_str();
    while let Some((before, last)) = bare.rsplit_once('_')
        && OF_PROVIDER.contains(&last)
    {
        bare = before;
    }
    bare == word || bare.strip_suffix(word).is_some_and(|before| before.ends_with('_'))
}

/// Columns of words, which may be words of a short list, and of whole numbers that may be signs:
/// the likeliest first.
pub fn coded(columns: &[Column]) -> Vec<&Column> {
    let is_coded = |column: &&Column| {
        let may_be = match &column.class {
            TypeClass::Text | TypeClass::Padded | TypeClass::Enum(_) => true,
            TypeClass::Integer => is_of_kinds(&column.name),
            _other => false,
        };
        may_be && !has_part(&column.name, &UNREAD)
    };
    let mut found: Vec<&Column> = columns.iter().filter(is_coded).collect();
    found.sort_by_key(|column| is_uncoded(&column.name));
    found.truncate(CODED_MAX);
    found
}

/// Whether a column's name says that its values are hardly words of a short list.
pub fn is_uncoded(name: &str) -> bool {
    has_part(name, &UNCODED)
}

fn has_part(name: &str, parts: &[&str]) -> bool {
    plain(name).split('_').any(|part| parts.contains(&part))
}

/// Whether these may be all the words of a short list.
pub fn are_codes(values: &[String]) -> bool {
    let is_short = |value: &String| value.chars().count() <= CODE_CHARS;
    (1..=ACCOUNTS_MAX).contains(&values.len()) && values.iter().all(is_short)
}

/// Whether a value names a PSP.
pub fn names_psp(value: &str) -> bool {
    let value = plain(value).replace('_', "");
    PSPS.iter().any(|psp| value.contains(psp))
}

/// Whether a value is the name of a PSP, with no more than a region or a version: `stripe_eu`.
fn is_psp(value: &str) -> bool {
    let value = plain(value);
    let is_name = |word: &str| PSPS.contains(&word);
    let words: Vec<&str> = value.split('_').collect();
    let is_apt = |word: &&str| is_name(word) || word.chars().count() <= 3;
    let has_name = words.iter().any(|word| is_name(word));
    is_name(&value.replace('_', "")) || (words.len() == 2 && has_name && words.iter().all(is_apt))
}

/// Whether words of a column of this name name PSPs, so that they tell accounts apart: one of them
/// does, and where the name says otherwise half of several are nothing else.
pub fn tells_psps(name: &str, values: &[String]) -> bool {
    if !are_codes(values) {
        return false;
    }
    let psps = values.iter().filter(|value| is_psp(value)).count();
    match is_uncoded(name) {
        true => values.len() > 1 && psps.saturating_mul(2) >= values.len(),
        false => values.iter().any(|value| names_psp(value)),
    }
}

/// What a value says of the kind of its row's movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movement {
    /// Money that came in.
    Charge,
    /// Money that went back.
    Refund,
    /// Money that went out.
    Payout,
    /// No movement that is looked up: a void, a chargeback.
    Other,
    /// What is taken back, by a refund or by a booking alone: a credit note; or what goes with a
    /// refund or a payout: its fee. Which it is only a person can say.
    Back,
    /// One of the two ways that money goes. Which of them is a charge only a person can say.
    Side,
    /// It is none of a charge, and which it is only a person can say: a credit.
    Unsure,
}

impl Movement {
    /// As `kind` of a mapping names it.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Charge => Some("charge"),
            Self::Refund => Some("refund"),
            Self::Payout => Some("payout"),
            Self::Other | Self::Back | Self::Side | Self::Unsure => None,
        }
    }
}

/// What a value says of the kind of movement, by its words; ids, which have digits, say nothing.
pub fn movement(value: &str) -> Option<Movement> {
    let value = plain(value);
    if value.chars().any(char::is_numeric) {
        return None;
    }
    let has = |words: &[&str]| value.split('_').any(|part| words.contains(&part));
    let ends = |words: &[&str]| {
        value.split('_').any(|part| words.iter().any(|ending| part.ends_with(ending)))
    };
    let last = value.rsplit('_').next().unwrap_or_default();
    if has(&NO_KIND) || value.contains("charge_back") {
        Some(Movement::Other)
    } else if has(&REFUNDS) || ends(&REFUNDED) {
        Some(if is_alone(&value) { Movement::Refund } else { Movement::Back })
    } else if has(&PAYOUTS) || value.contains("pay_out") {
        Some(if is_alone(&value) { Movement::Payout } else { Movement::Back })
    } else if has(&BACK) || ends(&BOOKED_BACK) || NOTES.iter().any(|note| value.contains(note)) {
        Some(Movement::Back)
    } else if CREDITS.contains(&value.as_str()) || is_transfer(&value) || has(&OUT) {
        Some(Movement::Unsure)
    } else if has(&IN) || CHARGES.contains(&value.as_str()) || CHARGES.contains(&last) {
        Some(Movement::Charge)
    } else {
        None
    }
}

/// Whether the word for a refund or a payout stands alone, or beside words that change nothing: a
/// `refund_fee` or a `refund_reversal` is another movement, and which only a person can say.
fn is_alone(value: &str) -> bool {
    let says_it = |part: &str| {
        REFUNDS.contains(&part)
            || PAYOUTS.contains(&part)
            || REFUNDED.iter().any(|ending| part.ends_with(ending))
    };
    value.split('_').all(|part| says_it(part) || BESIDE.contains(&part))
}

fn is_transfer(value: &str) -> bool {
    TRANSFERS.contains(&value)
}

/// What a value says under a name of kinds, among these values: abbreviations too.
pub fn movement_in(name: &str, values: &[String], value: &str) -> Option<Movement> {
    movement(value).or_else(|| abbreviated(name, values, value))
}

/// Abbreviations say something under a name of kinds alone, or as a pair; letters and signs where
/// all of several values are such.
fn abbreviated(name: &str, values: &[String], value: &str) -> Option<Movement> {
    if !tells_sides(name, values) {
        return None;
    }
    if are_signs(values) {
        return Some(Movement::Unsure);
    }
    let is_letter = |value: &str| {
        let is_of_books = matches!(value, "s" | "h") && has_part(name, &OF_BOOKS);
        LETTERS.contains(&value) || CREDITS.contains(&value) || is_of_books
    };
    let mut words = values.iter().map(|value| plain(value));
    let are_letters =
        values.len() > 1 && words.all(|word| word.is_empty() || is_letter(word.as_str()));
    match plain(value).as_str() {
        "in" | "pay" | "pmt" | "chg" => Some(Movement::Charge),
        "ref" | "rfd" | "rfnd" => Some(Movement::Refund),
        "out" => Some(Movement::Unsure),
        letter if are_letters && is_letter(letter) => Some(Movement::Unsure),
        _other => None,
    }
}

/// Whether words for the two ways that money goes say something among these values.
fn tells_sides(name: &str, values: &[String]) -> bool {
    is_of_kinds(name) || (is_pair(values) && !has_part(name, &OF_CARDS))
}

/// Whether these are both words of a pair, and no others.
fn is_pair(values: &[String]) -> bool {
    let words: Vec<String> = values.iter().map(|value| plain(value)).collect();
    PAIRS.iter().any(|pair| {
        let are_all = words.iter().all(|it| it.is_empty() || pair.contains(&it.as_str()));
        are_all && pair.iter().all(|word| words.iter().any(|known| known == word))
    })
}

/// Whether these are signs, and one of them is less than nothing.
fn are_signs(values: &[String]) -> bool {
    let mut signs = values.iter().map(|value| value.trim());
    values.len() > 1
        && values.iter().any(|value| value.trim().starts_with('-'))
        && signs.all(|sign| SIGNS.contains(&sign))
}

/// What a flag of this name says of rows that have it, where these may be all its values;
/// [`Movement::Unsure`]: that a row has a refund does not say that it is one. [`Movement::Charge`]:
/// rows that have it not are none. [`Movement::Back`] as well: what it says nobody can tell, as a
/// value of it says neither yes nor no.
pub fn flag_of(name: &str, values: &[String]) -> Option<Movement> {
    let said = called(name)?;
    if values.iter().all(|value| says_yes(value) || says_no(value)) {
        return Some(said);
    }
    let is_word = |value: &String| {
        let value = value.trim();
        let is_digit = value.len() == 1 && value.bytes().all(|byte| byte.is_ascii_digit());
        let is_short = value.chars().count() <= WORD_CHARS;
        is_digit || (is_short && value.chars().all(char::is_alphabetic))
    };
    let may_be_one = match said {
        Movement::Side | Movement::Charge => false,
        _no_charge if is_surely_flag(name) => are_codes(values),
        // What is called so may hold an id, an amount or a sentence.
        _no_charge => is_noun(name) && values.len() <= KINDS_MAX && values.iter().all(is_word),
    };
    may_be_one.then_some(Movement::Back)
}

/// What a flag of this name says of rows that have it, whatever its values are.
fn called(name: &str) -> Option<Movement> {
    let whole = plain(name);
    if SIDE_FLAGS.contains(&whole.as_str()) {
        return Some(Movement::Side);
    }
    let bare = unended(&whole);
    if BARE.contains(&bare) || bare.split('_').any(|part| UNDONE.contains(&part)) {
        return Some(Movement::Unsure);
    }
    let (prefix, rest) = begun(bare);
    match prefix {
        Some(has) if HAS.contains(&has) => no_charge(rest).map(|_it| Movement::Unsure),
        Some(is) if IS.contains(&is) && SIDE_FLAGS.contains(&rest) => Some(Movement::Side),
        Some(is) if IS.contains(&is) && CHARGE_FLAGS.contains(&rest) => Some(Movement::Charge),
        Some(brief) if IS_BRIEFLY.contains(&brief) && RETURNS.contains(&rest) => None,
        Some(_is) => no_charge(rest),
        None if has_part(bare, &MAY_BE_DONE) || RETURNS.contains(&bare) => None,
        None => match no_charge(bare)? {
            Movement::Refund | Movement::Back => Some(Movement::Unsure),
            _other => None,
        },
    }
}

/// A flag's name without what says only that it is one.
fn unended(name: &str) -> &str {
    let mut bare = name;
    while let Some((before, last)) = bare.rsplit_once('_')
        && FLAG_ENDS.contains(&last)
    {
        bare = before;
    }
    let mut joined = JOINED_ENDS.iter().filter_map(|end| bare.strip_suffix(end));
    joined.find(|before| no_charge(before).is_some()).unwrap_or(bare)
}

/// What a flag's name begins with that says what its row is or has, and what follows. PostgreSQL
/// makes `isrefund` of `isRefund`.
fn begun(name: &str) -> (Option<&str>, &str) {
    if let Some((prefix, rest)) = name.split_once('_')
        && [&IS[..], &IS_BRIEFLY, &HAS].iter().any(|words| words.contains(&prefix))
    {
        return (Some(prefix), rest);
    }
    let says = |rest: &str| {
        SIDE_FLAGS.contains(&rest) || CHARGE_FLAGS.contains(&rest) || no_charge(rest).is_some()
    };
    let joined = IS.iter().filter(|_| !name.contains('_') && no_charge(name).is_none());
    let mut joined = joined.filter_map(|is| name.strip_prefix(is).map(|rest| (Some(*is), rest)));
    joined.find(|(_, rest)| says(rest)).unwrap_or((None, name))
}

/// Whether a column that is called so can be nothing but a flag.
fn is_surely_flag(name: &str) -> bool {
    let whole = plain(name);
    let bare = unended(&whole);
    bare != whole || begun(bare).0.is_some()
}

/// Whether a flag is called by a word of refunds or of reversals alone, so that its rows may be
/// such: `reembolso`, `refund_flag`. What is called `has_refund` or `estornado` rather says what
/// became of a charge.
pub fn is_noun(name: &str) -> bool {
    let whole = plain(name);
    let bare = unended(&whole);
    let is_apt = |part: &str| {
        let said = movement(part);
        BESIDE.contains(&part)
            || FLAG_ENDS.contains(&part)
            || BARE.contains(&part)
            || matches!(said, Some(Movement::Refund | Movement::Back))
    };
    called(name) == Some(Movement::Unsure) && bare.split('_').all(is_apt)
}

/// What a flag's name says that is no charge, by its end: `is_partial_refund`. What it begins with
/// may be of another thing: `is_refund_allowed`.
fn no_charge(name: &str) -> Option<Movement> {
    if RETURNS.contains(&name) || NOTES.iter().any(|note| name.ends_with(note)) {
        return Some(Movement::Back);
    }
    let last = name.rsplit('_').next().unwrap_or_default();
    movement(last).filter(|said| !matches!(said, Movement::Charge | Movement::Unsure))
}

/// What a row is, as `kind` of a mapping names it, by this one of the values of a column that tells
/// kinds; `None`: only a person can say, or it is no kind.
pub fn kind_word(name: &str, values: &[String], value: &str) -> Option<&'static str> {
    let said = match flag_of(name, values) {
        Some(Movement::Side) => None,
        Some(Movement::Charge) => says_yes(value).then_some(Movement::Charge),
        Some(said) if says_yes(value) => Some(said),
        Some(_no_charge) if says_no(value) => Some(Movement::Charge),
        None | Some(_) => movement_in(name, values, value),
    };
    said.and_then(Movement::word)
}

/// Whether a column of this name says which row its own row takes back, where it is not NULL.
pub fn takes_back(name: &str) -> bool {
    let name = plain(name);
    let is_taken = TAKEN_BACK.iter().any(|word| {
        name.strip_prefix(*word).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    });
    is_taken || names_row(&name, &TAKES_BACK)
}

/// Columns that name another row, which may be the one that their own row takes back.
pub fn pointers(columns: &[Column]) -> Vec<&Column> {
    let may_name = |column: &&Column| {
        matches!(
            column.class,
            TypeClass::Integer | TypeClass::Uuid | TypeClass::Text | TypeClass::Padded
        )
    };
    columns.iter().filter(may_name).filter(|column| is_pointer(&column.name)).collect()
}

/// Whether a column of this name names another row: of such a one only whether it is NULL is read.
pub fn is_pointer(name: &str) -> bool {
    takes_back(name) || names_row(&plain(name), &POINTS)
}

/// Whether a name begins with one of these, goes on with a row or nothing, and ends with an id.
fn names_row(name: &str, first: &[&str]) -> bool {
    let Some((before, last)) = name.rsplit_once('_') else { return false };
    let (word, rest) = before.split_once('_').unwrap_or((before, ""));
    OF_ROW.contains(&last) && first.contains(&word) && (rest.is_empty() || ROWS.contains(&rest))
}

/// Whether some rows, and not all, name another one, by what [`FILLED`] and [`EMPTY`] say of them.
pub fn points_in_some(values: &[String]) -> bool {
    [FILLED, EMPTY].iter().all(|word| values.iter().any(|value| value == word))
}

/// What is read of a pointer that is not NULL.
pub const FILLED: &str = "not_null";

/// What is read of one that is NULL.
pub const EMPTY: &str = "null";

/// Whether a value of a flag says yes.
pub fn says_yes(value: &str) -> bool {
    YES.contains(&value.trim().to_lowercase().as_str())
}

/// Whether a value of a flag says no.
pub fn says_no(value: &str) -> bool {
    NO.contains(&value.trim().to_lowercase().as_str())
}

/// What a column says of rows that have it, as [`flag_of`] tells it: a text that is called `storno`
/// may be an id as long as none of its values says otherwise, and a number an amount.
pub fn flag_in(column: &Column, values: &[String]) -> Option<Movement> {
    let is_one = match &column.class {
        TypeClass::Boolean => true,
        _any if is_surely_flag(&column.name) => true,
        TypeClass::Integer | TypeClass::Decimal | TypeClass::Float => {
            values.iter().any(|value| says_yes(value))
        }
        _text => values.iter().any(|value| !value.trim().is_empty()),
    };
    flag_of(&column.name, values).filter(|_| is_one)
}

/// Columns that may be flags of refunds, payouts and the like, by their names.
pub fn flags(columns: &[Column]) -> Vec<&Column> {
    let is_flag = |column: &&Column| {
        let may_be = match &column.class {
            TypeClass::Boolean | TypeClass::Text | TypeClass::Padded | TypeClass::Enum(_) => true,
            // A number that is called `credit` is an amount.
            TypeClass::Integer | TypeClass::Decimal | TypeClass::Float => {
                !SIDE_FLAGS.contains(&plain(&column.name).as_str())
            }
            _other => false,
        };
        may_be && called(&column.name).is_some()
    };
    columns.iter().filter(is_flag).collect()
}

/// Whether a flag of this name, with these values, says of rows that they are of another kind than
/// `own`.
pub fn flags_kinds(name: &str, values: &[String], own: &str) -> bool {
    let has_no = values.iter().any(|value| says_no(value));
    match flag_of(name, values) {
        None | Some(Movement::Unsure) => false,
        Some(Movement::Side) => has_no && is_marked(values),
        Some(Movement::Charge) if own == "charge" => has_no,
        Some(said) => said.word() != Some(own) && is_marked(values),
    }
}

/// Whether some of these values of a flag say something else than no.
fn is_marked(values: &[String]) -> bool {
    values.iter().any(|value| !says_no(value))
}

/// Whether a flag of this name, with these values, may say of rows that they are no charges, or
/// what became of such. What says that a row has a refund does not say that it is one.
pub fn may_flag_kinds(name: &str, values: &[String]) -> bool {
    let whole = plain(name);
    let says_has = begun(unended(&whole)).0.is_some_and(|prefix| HAS.contains(&prefix));
    !says_has && is_marked(values) && flag_of(name, values) == Some(Movement::Unsure)
}

/// Whether a flag marks the rows that are no charges, and has nothing in the others.
pub fn marks_alone(values: &[String]) -> bool {
    !values.is_empty() && values.iter().all(|value| says_yes(value))
}

/// Whether a column of this name, with these values, tells rows of another kind than `own` (as
/// [`Movement::word`] spells it). `credit` says so under a name of kinds alone: cards have it too.
pub fn tells_kinds(name: &str, values: &[String], own: &str) -> bool {
    if is_uncoded(name) {
        return false;
    }
    let said = |of: &[&String]| -> Vec<Movement> {
        of.iter().filter_map(|value| movement_in(name, values, value)).collect()
    };
    // Among ways to pay a transfer is one of them.
    let others: Vec<&String> = values.iter().filter(|value| !is_transfer(&plain(value))).collect();
    let is_way = said(&others).is_empty();
    let all: Vec<&String> = values.iter().collect();
    let said = if is_way { Vec::new() } else { said(&all) };
    let tells = said.iter().any(|movement| match movement {
        Movement::Charge => false,
        Movement::Unsure | Movement::Side => tells_sides(name, values),
        Movement::Refund | Movement::Payout | Movement::Other | Movement::Back => true,
    });
    tells && are_codes(values) && said.iter().any(|movement| movement.word() != Some(own))
}

/// Whether a column's name says that it tells kinds.
pub fn is_of_kinds(name: &str) -> bool {
    let whole = plain(name);
    let mut bare = whole.as_str();
    while let Some((before, last)) = bare.rsplit_once('_')
        && OF_CODE.contains(&last)
    {
        bare = before;
    }
    let last = bare.rsplit('_').next().unwrap_or_default();
    let are_sides = bare.contains('_') && bare.split('_').all(|part| SIDES.contains(&part));
    (OF_KIND.contains(&last) || are_sides) && !has_part(name, &OF_CARDS)
}

/// Whether a column of this name, with these few values, may tell kinds, though its values do not
/// say so by themselves: `kind` of D and R. Ways to pay are none.
pub fn may_tell_kinds(name: &str, values: &[String]) -> bool {
    let name = plain(name);
    let last = name.rsplit('_').next().unwrap_or_default();
    let is_called = is_of_kinds(&name) || (MAY_BE_OF_KIND.contains(&last) && !is_of_cards(&name));
    let is_way = |value: &String| {
        let value = plain(value);
        value.split('_').any(|part| WAYS.contains(&part)) || names_psp(&value)
    };
    is_called
        && (2..=KINDS_MAX).contains(&values.len())
        && are_codes(values)
        && !are_ids_at_stripe(values)
        && !values.iter().any(is_way)
}

fn is_of_cards(name: &str) -> bool {
    has_part(name, &OF_CARDS)
}

/// Whether all of these are ids that Stripe made: they name payments and cards, no accounts.
pub fn are_ids_at_stripe(values: &[String]) -> bool {
    let is_id = |value: &String| IDS.iter().any(|prefix| value.starts_with(prefix));
    values.iter().all(is_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_may_tell_accounts_are_known_with_what_stands_behind_them() {
        for name in [
            "connector",
            "merchant_connector_id",
            "PluginName",
            "tenant_record_id",
            "sales_channel",
            "payment_service",
            "gatewayType",
            "provider_code",
        ] {
            assert!(is_teller(name), "{name}");
        }
        for name in ["connector_metadata", "tenants_seen", "id", "record_id", "amount"] {
            assert!(!is_teller(name), "{name}");
        }
    }

    #[test]
    fn values_say_which_kind_of_movement_a_row_is() {
        for (value, said) in [
            ("PURCHASE", Some(Movement::Charge)),
            ("card_payment", Some(Movement::Charge)),
            ("Top Up", Some(Movement::Charge)),
            ("REFUND", Some(Movement::Refund)),
            ("PartialRefund", Some(Movement::Refund)),
            ("payment_refund", Some(Movement::Refund)),
            ("payout", Some(Movement::Payout)),
            ("VOID", Some(Movement::Other)),
            ("ChargeBack", Some(Movement::Other)),
            ("credit", Some(Movement::Unsure)),
            ("Inward", Some(Movement::Charge)),
            ("inbound", Some(Movement::Charge)),
            ("incoming_payment", Some(Movement::Charge)),
            ("Outward", Some(Movement::Unsure)),
            ("outbound", Some(Movement::Unsure)),
            ("OUTGOING", Some(Movement::Unsure)),
            ("transfer", Some(Movement::Unsure)),
            ("bank_transfer", None),
            ("credit_card", None),
            ("AUTHORIZE", None),
            ("refund-17", None),
            ("refund_fee", Some(Movement::Back)),
            ("refund_reversal", Some(Movement::Back)),
            ("no_refund", Some(Movement::Back)),
            ("refund_failed", Some(Movement::Back)),
            ("payout_fee", Some(Movement::Back)),
            ("withdrawal_deposit", Some(Movement::Back)),
            ("full_refund", Some(Movement::Refund)),
            ("pay_out", Some(Movement::Payout)),
            ("bank payout", Some(Movement::Payout)),
            ("Credit Note", Some(Movement::Back)),
            ("reversal", Some(Movement::Back)),
            ("Storno", Some(Movement::Back)),
            ("estorno", Some(Movement::Back)),
            ("Rückerstattung", Some(Movement::Refund)),
            ("reembolso", Some(Movement::Refund)),
            ("payin", Some(Movement::Charge)),
            ("abono", Some(Movement::Unsure)),
            ("return", Some(Movement::Unsure)),
        ] {
            assert_eq!(movement(value), said, "{value}");
        }
    }

    #[test]
    fn columns_tell_kinds_by_their_values_and_cards_do_not() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, own, tells) in [
            ("transaction_type", &["PURCHASE", "REFUND"][..], "charge", true),
            ("what", &["sale", "void"], "charge", true),
            ("entry_type", &["debit", "credit"], "charge", true),
            ("payment_request_type", &["Inward", "Outward"], "charge", true),
            ("payment_type", &["inbound", "outbound"], "charge", true),
            ("payment_type", &["inbound"], "charge", false),
            ("payment_type", &["card", "transfer"], "charge", false),
            ("payment_type", &["inbound", "transfer"], "charge", true),
            ("card_type", &["debit", "credit", "prepaid"], "charge", false),
            ("type", &["refund", "partial_refund"], "refund", false),
            ("type", &["refund", "payout"], "refund", true),
            ("type", &["charge", "payment"], "charge", false),
            ("direction", &["IN", "OUT"], "charge", true),
            ("direction", &["in"], "charge", false),
            ("flow", &["incoming", "outgoing"], "charge", true),
            ("type", &["C", "D"], "charge", true),
            ("type", &["A", "B", "C"], "charge", false),
            ("card_type", &["C", "D"], "charge", false),
            ("dc", &["debit", "credit"], "charge", true),
            ("tx_type", &["PAY", "REF"], "charge", true),
            ("cancel_reason", &["refund", "late"], "charge", false),
            ("CR_DBT_IND", &["CRDT", "DBIT"], "charge", true),
            ("CR_DBT_IND", &["DBIT"], "charge", false),
            ("indicator", &["DBIT", "CRDT"], "charge", true),
            ("way", &["IN", "OUT"], "charge", true),
            ("way", &["IN", "DE"], "charge", false),
            ("dr_cr", &["DR", "CR"], "charge", true),
            ("debit_credit", &["D", "C"], "charge", true),
            ("debit_credit_code", &["D", "C", "RD"], "charge", true),
            ("in_out", &["O", "I"], "charge", true),
            ("side", &["credit", "debit"], "charge", true),
            ("side", &["buy", "sell"], "charge", false),
            ("soll_haben", &["S", "H"], "charge", true),
            ("type", &["S", "H"], "charge", false),
            ("sign", &["+", "-"], "charge", true),
            ("sign", &["-1", "1"], "charge", true),
            ("sign", &["1"], "charge", false),
            ("kind", &["0", "1"], "charge", false),
            ("direction", &["N", "S", "E", "W"], "charge", false),
            ("direction", &["left", "right"], "charge", false),
            ("funding", &["debit", "credit"], "charge", false),
            ("card_type", &["DR", "CR"], "charge", false),
            ("currency", &["EUR", "USD"], "charge", false),
            ("document", &["invoice", "credit_note"], "charge", true),
            ("tipo", &["pago", "abono"], "charge", true),
            ("art", &["Zahlung", "Teilerstattung"], "charge", true),
            ("beleg", &["Rechnung", "Gutschrift"], "charge", true),
            ("mouvement", &["paiement", "remboursement"], "charge", true),
            ("piece", &["facture", "avoir"], "charge", true),
            ("what", &["pagamento", "rimborso"], "charge", true),
            ("what", &["pago", "devolución"], "charge", true),
            ("type", &["sale", "return"], "charge", true),
            ("plan", &["credit", "standard"], "charge", false),
        ] {
            assert_eq!(tells_kinds(name, &values(words), own), tells, "{name} {words:?}");
        }
    }

    #[test]
    fn columns_that_may_tell_kinds_are_known_by_their_names() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, may) in [
            ("kind", &["D", "R"][..], true),
            ("rectype", &["P", "R"], true),
            ("art", &["Lastschrift", "Rücklastschrift"], true),
            ("event", &["charge.created", "charge.refunded"], true),
            ("kind", &["D"], false),
            ("note", &["D", "R"], false),
            ("card_type", &["D", "R"], false),
            ("payment_type", &["card", "sepa_debit"], false),
            ("type", &["stripe", "paypal"], false),
            ("type", &["a", "b", "c", "d", "e", "f", "g"], false),
        ] {
            assert_eq!(may_tell_kinds(name, &values(words)), may, "{name} {words:?}");
        }
    }

    #[test]
    fn flags_say_a_kind_by_their_names_and_are_known_by_their_values() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, said) in [
            ("is_refund", &["0", "1"][..], Some(Movement::Refund)),
            ("IsRefund", &["N", "Y"], Some(Movement::Refund)),
            ("is_payout", &[], Some(Movement::Payout)),
            ("is_void", &["false"], Some(Movement::Other)),
            ("is_reversal", &["true"], Some(Movement::Back)),
            ("is_credit_note", &["false", "true"], Some(Movement::Back)),
            ("IsCreditNote", &["0", "1"], Some(Movement::Back)),
            ("ist_gutschrift", &[], Some(Movement::Back)),
            ("est_avoir", &[], Some(Movement::Back)),
            ("es_devolucion", &[], Some(Movement::Refund)),
            ("is_return", &["f", "t"], Some(Movement::Back)),
            ("is_debit", &["f", "t"], Some(Movement::Side)),
            ("credit", &["false", "true"], Some(Movement::Side)),
            ("is_outgoing", &["0"], Some(Movement::Side)),
            ("is_payment", &["false"], Some(Movement::Charge)),
            ("has_credit_note", &["false"], Some(Movement::Unsure)),
            ("storno", &["false", "true"], Some(Movement::Unsure)),
            ("is_test", &["0", "1"], None),
            ("is_active", &["0", "1"], None),
            ("is_default_payment", &["0", "1"], None),
            ("is_credit_card", &["0", "1"], None),
            ("is_store_credit", &["0", "1"], None),
            ("is_refund_allowed", &["0", "1"], None),
            ("is_disputed", &["0", "1"], None),
            ("credits", &["0", "1"], None),
            ("credit", &["0", "1900"], None),
            ("debit_day", &["1", "15"], None),
            ("has_refund", &["0", "1"], Some(Movement::Unsure)),
            ("is_refund", &["no", "partial"], Some(Movement::Back)),
            ("is_refund", &["J", "N"], Some(Movement::Refund)),
            ("es_devolucion", &["N", "S"], Some(Movement::Refund)),
            ("ist_gutschrift", &["ja", "nein"], Some(Movement::Back)),
            ("ist_storno", &["", "X"], Some(Movement::Back)),
            ("storno", &["J", "N"], Some(Movement::Unsure)),
            ("storno", &["ST-1"], None),
            ("is_refunded", &["0", "1"], None),
            ("refunded", &["false", "true"], None),
            ("voided", &["false", "true"], None),
            ("refund", &["false", "true"], Some(Movement::Unsure)),
            ("Payout", &["false", "true"], Some(Movement::Unsure)),
            ("refund", &["0", "1900"], None),
        ] {
            assert_eq!(flag_of(name, &values(words)), said, "{name} {words:?}");
        }
        for (name, words, own, tells) in [
            ("is_refund", &["0", "1"][..], "charge", true),
            ("is_refund", &["J", "N"], "charge", true),
            ("ist_storno", &["", "X"], "charge", true),
            ("is_refund", &["0"], "charge", false),
            ("ist_storno", &[""], "charge", false),
            ("is_refund", &["1"], "refund", false),
            ("has_refund", &["0", "1"], "charge", false),
            ("refund", &["false", "true"], "charge", false),
            ("refunded", &["false", "true"], "charge", false),
            ("is_credit_note", &["false", "true"], "charge", true),
            ("is_credit_note", &["false"], "charge", false),
            ("is_debit", &["false", "true"], "charge", true),
            ("is_debit", &["true"], "charge", false),
            ("is_payment", &["false", "true"], "charge", true),
            ("is_payment", &["true"], "charge", false),
            ("storno", &["false", "true"], "charge", false),
        ] {
            assert_eq!(flags_kinds(name, &values(words), own), tells, "{name} {words:?}");
        }
    }

    #[test]
    fn flags_are_known_in_other_languages_and_with_what_they_end_with() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, said) in [
            ("is_refund", &["1", "2"][..], Some(Movement::Back)),
            ("refund_flag", &["A", "B"], Some(Movement::Back)),
            ("refund", &["full", "partial"], Some(Movement::Back)),
            ("refund", &["1", "2"], Some(Movement::Back)),
            ("reembolso", &["0", "1", "2"], Some(Movement::Back)),
            ("refund", &["10", "1900"], None),
            ("refund", &["re_1", "re_2"], None),
            ("is_refund", &["-", "x"], Some(Movement::Refund)),
            ("is_refund", &["faux", "vrai"], Some(Movement::Refund)),
            ("is_refund", &["falsch", "wahr"], Some(Movement::Refund)),
            ("isrefund", &["false", "true"], Some(Movement::Refund)),
            ("ehReembolso", &["N", "S"], Some(Movement::Refund)),
            ("e_estorno", &["N", "S"], Some(Movement::Back)),
            ("ist_rueckzahlung", &["J", "N"], Some(Movement::Back)),
            ("reembolso", &["N", "S"], Some(Movement::Unsure)),
            ("estorno", &["N", "S"], Some(Movement::Unsure)),
            ("estornado", &["N", "S"], Some(Movement::Unsure)),
            ("rimborso", &["N", "S"], Some(Movement::Unsure)),
            ("devolucion", &["N", "S"], Some(Movement::Unsure)),
            ("erstattung", &["J", "N"], Some(Movement::Unsure)),
            ("rueckzahlung", &["J", "N"], Some(Movement::Unsure)),
            ("terugbetaling", &["ja", "nee"], Some(Movement::Unsure)),
            ("zwrot", &["N", "T"], Some(Movement::Unsure)),
            ("refund_flag", &["N", "Y"], Some(Movement::Unsure)),
            ("refund_ind", &["0", "1"], Some(Movement::Unsure)),
            ("REFUND_YN", &["N", "Y"], Some(Movement::Unsure)),
            ("fl_estorno", &["N", "S"], Some(Movement::Unsure)),
            ("erstattung_kz", &["", "X"], Some(Movement::Unsure)),
            ("storno_kz", &["X"], Some(Movement::Unsure)),
            ("stornokennzeichen", &["X"], Some(Movement::Unsure)),
            ("partial_refund", &["false", "true"], Some(Movement::Unsure)),
            ("can_refund", &["false", "true"], None),
            ("no_refund", &["false", "true"], None),
            ("e_payment", &["false", "true"], None),
            ("refund_amount", &["0", "1"], None),
            ("refunded_cents", &["0", "1"], None),
            ("refund_id", &["1"], None),
            ("refund_count", &["0", "1"], None),
            ("refunded_at", &[], None),
            ("refundable", &["false", "true"], None),
        ] {
            assert_eq!(flag_of(name, &values(words)), said, "{name} {words:?}");
        }
    }

    #[test]
    fn flags_that_may_say_what_became_of_a_charge_are_told_from_those_of_refunds() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, tells) in [
            ("is_refund", &["1", "2"][..], true),
            ("is_refund", &["-"], false),
            ("refund_flag", &["A", "B"], true),
            ("refund_flag", &["N", "Y"], false),
        ] {
            assert_eq!(flags_kinds(name, &values(words), "charge"), tells, "{name} {words:?}");
        }
        for (name, words, may) in [
            ("refund", &["false", "true"][..], true),
            ("storno", &["X"], true),
            ("estornado", &["N", "S"], true),
            ("refund", &["0", "1"], true),
            ("refund", &["0"], false),
            ("refund", &["0", "1900"], false),
            ("has_refund", &["0", "1"], false),
            ("is_refund", &["0", "1"], false),
            ("refunded", &["false", "true"], false),
        ] {
            assert_eq!(may_flag_kinds(name, &values(words)), may, "{name} {words:?}");
        }
        for (name, is) in [
            ("reembolso", true),
            ("refund_flag", true),
            ("fl_estorno", true),
            ("stornokennzeichen", true),
            ("partial_refund", true),
            ("has_refund", false),
            ("estornado", false),
            ("reason_refund", false),
            ("is_refund", false),
        ] {
            assert_eq!(is_noun(name), is, "{name}");
        }
    }

    #[test]
    fn a_kind_is_named_where_the_value_says_it() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, said) in [
            ("is_refund", ["false", "true"], [Some("charge"), Some("refund")]),
            ("is_refund", ["", "X"], [Some("charge"), Some("refund")]),
            ("is_refund", ["-", "x"], [Some("charge"), Some("refund")]),
            ("is_refund", ["1", "2"], [None, None]),
            ("refund_flag", ["N", "Y"], [Some("charge"), None]),
            ("refund_flag", ["refund", "sale"], [Some("refund"), Some("charge")]),
            ("is_credit_note", ["false", "true"], [Some("charge"), None]),
            ("is_debit", ["false", "true"], [None, None]),
            ("is_payment", ["false", "true"], [None, Some("charge")]),
            ("type", ["sale", "refund"], [Some("charge"), Some("refund")]),
            ("dr_cr", ["DR", "CR"], [None, None]),
        ] {
            let values = values(&words);
            let told: Vec<_> = values.iter().map(|it| kind_word(name, &values, it)).collect();
            assert_eq!(told, said, "{name}");
        }
    }

    #[test]
    fn columns_that_name_the_row_which_theirs_takes_back_are_known() {
        for name in [
            "refund_of",
            "refund_of_id",
            "RefundOfPaymentId",
            "reversal_of_transaction_id",
            "refunded_payment_id",
            "reversed_entry_id",
            "credited_invoice_uuid",
            "storno_zu",
        ] {
            assert!(takes_back(name) && is_pointer(name), "{name}");
        }
        for name in ["parent_id", "original_payment_id", "related_transaction_ref"] {
            assert!(!takes_back(name) && is_pointer(name), "{name}");
        }
        for name in [
            "refund_id",
            "refunded_at",
            "refunded_amount",
            "refunded_by_id",
            "refund_offer_id",
            "credit_note_id",
            "credit_card_id",
            "original_amount",
            "parent_company_id",
            "id",
        ] {
            assert!(!is_pointer(name), "{name}");
        }
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        assert!(points_in_some(&values(&[FILLED, EMPTY])));
        assert!(!points_in_some(&values(&[FILLED])) && !points_in_some(&[]));
    }

    #[test]
    fn a_name_that_says_otherwise_needs_values_that_are_names_of_psps() {
        let values = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, words, tells) in [
            ("paid_by", &["stripe", "paypal"][..], true),
            ("gateway_message", &["Stripe EU", "Adyen"], true),
            ("event_source", &["stripe", "cash"], true),
            ("cancelled_by", &["stripe", "customer", "merchant"], false),
            ("error_message", &["Stripe refused it", "Adyen refused it"], false),
            ("paid_by", &["stripe"], false),
            ("via", &["stripe"], true),
            ("via", &["pp_stripe_stripe", "web"], true),
        ] {
            assert_eq!(tells_psps(name, &values(words)), tells, "{name} {words:?}");
        }
    }

    #[test]
    fn psps_are_known_by_their_names_in_values() {
        for value in ["stripe", "PayPal", "pp_stripe_stripe", "Go Cardless", "checkout.com"] {
            assert!(names_psp(value), "{value}");
        }
        for value in ["checkout", "web", "card", "cash", "acct_1"] {
            assert!(!names_psp(value), "{value}");
        }
    }
}
