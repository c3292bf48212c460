//! The names that people give to things: read from the schemas of many applications, likeliest
//! first.

use std::collections::BTreeSet;

use crate::store::inspect::Surveyed;
use crate::store::source_table::{Column, TypeClass};
use crate::store::tellers::{
    FAILED, PENDING, PROCESSING, RETRYABLE, SUCCEEDED, may_be_on_its_way, names_psp, plain,
};

/// What a table of payments may be called, and how much that says.
const TABLES: [(&str, u32); 31] = [
    ("payment", 10),
    ("charge", 9),
    ("transaction", 8),
    ("refund", 7),
    ("payout", 7),
    ("donation", 6),
    ("top_up", 6),
    ("topup", 6),
    ("contribution", 6),
    ("pay", 6),
    ("capture", 5),
    ("transfer", 5),
    ("billing", 4),
    ("invoice", 3),
    ("zahlung", 10),
    ("buchung", 8),
    ("umsatz", 8),
    ("umsaetze", 8),
    ("umsätze", 8),
    ("erstattung", 7),
    ("auszahlung", 7),
    ("pago", 10),
    ("cobro", 9),
    ("devolucion", 7),
    ("reembolso", 7),
    ("paiement", 10),
    ("remboursement", 7),
    ("pagament", 10),
    ("rimborso", 7),
    ("betaling", 10),
    ("terugbetaling", 7),
];

/// What a table of orders may be called, by what its name ends with: an order is worked on once it
/// is paid.
const ORDERS: [&str; 55] = [
    "order",
    "orders",
    "purchase",
    "purchases",
    "sale",
    "sales",
    "booking",
    "bookings",
    "reservation",
    "reservations",
    "cart",
    "carts",
    "basket",
    "baskets",
    "bestellung",
    "bestellungen",
    "auftrag",
    "auftraege",
    "aufträge",
    "kauf",
    "kaeufe",
    "käufe",
    "verkaeufe",
    "verkäufe",
    "commande",
    "commandes",
    "achat",
    "achats",
    "vente",
    "ventes",
    "pedido",
    "pedidos",
    "orden",
    "ordenes",
    "órdenes",
    "compra",
    "compras",
    "venta",
    "ventas",
    "ordine",
    "ordini",
    "acquisto",
    "acquisti",
    "vendita",
    "vendite",
    "bestelling",
    "bestellingen",
    "aankoop",
    "aankopen",
    "verkoop",
    "verkopen",
    "encomenda",
    "encomendas",
    "venda",
    "vendas",
];

/// A name of a table that says at least so much is one of payments; invoices are sent, and orders
/// are billed.
const SAYS_PAYMENTS: u32 = 5;

/// Parts of names of tables that only speak about payments.
const BESIDE: [&str; 14] = [
    "event", "log", "history", "audit", "method", "item", "webhook", "session", "version",
    "archive", "setting", "config", "token", "plan",
];

pub(super) const STATUS: [&str; 40] = [
    "status",
    "state",
    "payment_status",
    "payment_state",
    "transaction_status",
    "charge_status",
    "processing_status",
    "current_status",
    "st",
    "settled",
    "is_settled",
    "paid",
    "is_paid",
    "captured",
    "zahlungsstatus",
    "zustand",
    "estado",
    "estado_pago",
    "situacao",
    "statut",
    "etat",
    "stato",
    "betaalstatus",
    "zahlstatus",
    "bezahlstatus",
    "buchungsstatus",
    "transaktionsstatus",
    "statut_paiement",
    "statut_transaction",
    "etat_paiement",
    "estado_transaccion",
    "estado_pagamento",
    "situacao_pagamento",
    "status_pagamento",
    "stato_pagamento",
    "stato_transazione",
    "betalingsstatus",
    "paymentstatus",
    "transactionstatus",
    "chargestatus",
];
/// What a status is called whose values are codes, or point at a table of statuses: taken where no
/// other column says it. What is called so may also be what a PSP answered.
const CODED_STATUS: [&str; 12] = [
    "payment_status_code",
    "payment_status_id",
    "status_code",
    "status_id",
    "statuscode",
    "statusid",
    "status_key",
    "status_nr",
    "statut_code",
    "statut_id",
    "id_status",
    "id_statut",
];
pub(super) const AMOUNT: [&str; 33] = [
    "amount_minor",
    "amount_cents",
    "amount_in_cents",
    "cents",
    "total_cents",
    "price_cents",
    "amount",
    "total_amount",
    "gross_amount",
    "charge_amount",
    "payment_amount",
    "amount_total",
    "grand_total",
    "value",
    "total",
    "sum",
    "gross",
    "price",
    "betrag_cent",
    "betrag_in_cent",
    "betrag",
    "gesamtbetrag",
    "bruttobetrag",
    "summe",
    "importe_centimos",
    "importe",
    "monto",
    "montant_centimes",
    "montant",
    "importo",
    "bedrag",
    "valor",
    "montante",
];
/// What sums of parts are called, and what was paid in the end.
const SUMS: [&str; 24] = [
    "order_total",
    "charge_total",
    "payment_total",
    "invoice_total",
    "sum_total",
    "total_sum",
    "total_price",
    "total_value",
    "total_gross",
    "gross_total",
    "total_incl_tax",
    "total_including_tax",
    "total_with_tax",
    "total_inc_tax",
    "total_charged",
    "brutto",
    "brutto_total",
    "charge_value",
    "payment_value",
    "gross_value",
    "price_paid",
    "sale_price",
    "amount_value",
    "amount_number",
];
/// Words of names of amounts that are a part of what is charged, or another sum than it.
const PARTS: [&str; 36] = [
    "fee",
    "fees",
    "tax",
    "taxes",
    "vat",
    "tip",
    "tips",
    "discount",
    "discounts",
    "shipping",
    "refund",
    "refunds",
    "refunded",
    "commission",
    "net",
    "paid",
    "captured",
    "settlement",
    "settled",
    "deposit",
    "min",
    "minimum",
    "max",
    "maximum",
    "credit",
    "debit",
    "converted",
    "balance",
    "subtotal",
    "platform",
    "cost",
    "costs",
    "surcharge",
    "gratuity",
    "due",
    "outstanding",
];
/// Words of names that say an amount, or a part of one.
const SAYS_AMOUNT: [&str; 20] = [
    "amount", "amounts", "amt", "total", "totals", "sum", "price", "value", "gross", "cents",
    "micros", "betrag", "summe", "importe", "monto", "montant", "importo", "bedrag", "valor",
    "montante",
];
/// Words beside them that say something of it, and not it.
const SAYS_NO_SUM: [&str; 26] = [
    "id", "ids", "type", "currency", "ccy", "code", "status", "state", "count", "items", "rate",
    "percent", "quantity", "qty", "number", "no", "at", "on", "date", "time", "unit", "units",
    "exponent", "decimals", "scale", "places",
];
/// Words of names of amounts that are in minor units.
const MINOR: [&str; 10] = [
    "cent",
    "cents",
    "minor",
    "centimos",
    "céntimos",
    "centimes",
    "centavos",
    "centesimi",
    "pence",
    "grosze",
];
/// Words between an amount and its unit.
const IN: [&str; 4] = ["in", "en", "em", "as"];
/// Words of names that say a currency.
const SAYS_CURRENCY: [&str; 13] = [
    "currency",
    "currencies",
    "crncy",
    "curr",
    "ccy",
    "waehrung",
    "währung",
    "moneda",
    "divisa",
    "devise",
    "monnaie",
    "valuta",
    "moeda",
];
/// Words beside them that say something of it, and not it.
const SAYS_NO_CODE: [&str; 9] =
    ["rate", "symbol", "name", "exponent", "decimals", "scale", "places", "units", "at"];
/// Words of names of currencies by their numbers: 978 is EUR.
const SAYS_NUMBER: [&str; 4] = ["iso", "num", "number", "numeric"];
/// What a table of currencies calls their codes.
const CODES: [&str; 8] = [
    "code",
    "iso_code",
    "currency_code",
    "currency",
    "iso",
    "alpha_code",
    "letter_code",
    "currency_iso",
];
/// Words beside `rate` that make it one of exchange.
const SAYS_EXCHANGE: [&str; 9] =
    ["exchange", "currency", "curr", "ccy", "fx", "forex", "conversion", "convert", "converted"];
/// What a rate of exchange is called besides.
const RATES: [&str; 9] = [
    "currency_value",
    "currency_factor",
    "conversion_factor",
    "exchange_factor",
    "exchangerate",
    "fxrate",
    "wechselkurs",
    "umrechnungskurs",
    "tipo_cambio",
];
/// Words of names that say a status.
const SAYS_STATUS: [&str; 13] = [
    "status", "state", "sts", "stat", "result", "outcome", "phase", "zustand", "estado",
    "situacao", "statut", "etat", "stato",
];
/// Words beside them that say something of it, and not it.
const SAYS_NO_STATUS: [&str; 10] =
    ["at", "on", "by", "date", "time", "reason", "message", "note", "notes", "text"];
/// What a boolean is called that may be the status: true says that it was paid.
const MAY_BE_DONE: [&str; 12] = [
    "success",
    "is_success",
    "successful",
    "is_successful",
    "succeeded",
    "is_succeeded",
    "completed",
    "is_completed",
    "processed",
    "is_processed",
    "confirmed",
    "is_confirmed",
];
/// Words of names of a status that has a bit for each of its words.
const SAYS_BITS: [&str; 5] = ["flag", "flags", "bits", "bitmask", "mask"];
/// A word of an amount that another one beside it goes before.
const BASE: &str = "base";
pub(super) const EXPONENT: [&str; 7] = [
    "decimals",
    "exponent",
    "currency_exponent",
    "currency_decimals",
    "scale",
    "places",
    "minor_units",
];
pub(super) const CURRENCY: [&str; 18] = [
    "currency",
    "currency_code",
    "amount_currency",
    "currency_iso",
    "iso_currency",
    "payment_currency",
    "ccy",
    "cur",
    "waehrung",
    "währung",
    "waehrungscode",
    "moneda",
    "divisa",
    "devise",
    "monnaie",
    "valuta",
    "divisa_iso",
    "moeda",
];
pub(super) const CREATED: [&str; 54] = [
    "created_at",
    "created",
    "created_on",
    "created_date",
    "creation_date",
    "create_date",
    "creation",
    "inserted_at",
    "date_created",
    "date_created_gmt",
    "create_time",
    "creation_time",
    "created_time",
    "made",
    "made_at",
    "timestamp",
    "date",
    "created_ms",
    "angelegt_am",
    "erstellt_am",
    "erzeugt_am",
    "creado",
    "creado_en",
    "creado_el",
    "creada_el",
    "creada_en",
    "fecha_creacion",
    "fecha_de_creacion",
    "fecha_alta",
    "skapad",
    "skapad_den",
    "opprettet",
    "oprettet",
    "data_utworzenia",
    "utworzono",
    "datum_vytvoreni",
    "vytvoreno",
    "cree_le",
    "créé_le",
    "date_creation",
    "creato_il",
    "data_creazione",
    "aangemaakt_op",
    "criado_em",
    "data_criacao",
    "created_on_utc",
    "created_at_utc",
    "created_date_utc",
    "created_utc",
    "order_date",
    "ordered_at",
    "placed_at",
    "date_placed",
    "requested_at",
];
pub(super) const ATTEMPTED: [&str; 29] = [
    "last_attempted_at",
    "attempted_at",
    "last_attempt_at",
    "last_attempt",
    "last_tried_at",
    "tried_at",
    "last_try",
    "tried",
    "last_sent_at",
    "sent_at",
    "sent",
    "submitted_at",
    "requested_at",
    "charged_at",
    "last_send_at",
    "last_send",
    "sent_ms",
    "gesendet_am",
    "letzter_versuch",
    "letzter_versuch_am",
    "enviado_en",
    "ultimo_intento",
    "envoye_le",
    "derniere_tentative",
    "inviato_il",
    "ultimo_tentativo",
    "verzonden_op",
    "enviado_em",
    "ultima_tentativa",
];
/// Words of names of times that are written at an end or after it, or that lie ahead.
const SAYS_ENDED: [&str; 42] = [
    "voided",
    "reversed",
    "collected",
    "completed",
    "settled",
    "paid",
    "captured",
    "succeeded",
    "failed",
    "refused",
    "declined",
    "rejected",
    "refunded",
    "cancelled",
    "canceled",
    "expired",
    "expires",
    "expiry",
    "expiration",
    "valid",
    "until",
    "due",
    "deleted",
    "archived",
    "superseded",
    "disputed",
    "released",
    "finished",
    "ended",
    "closed",
    "resolved",
    "processed",
    "confirmed",
    "reconciled",
    "cleared",
    "funded",
    "deposited",
    "received",
    "booked",
    "modified",
    "updated",
    "changed",
];
/// Words beside them of names of times that are written at each send all the same.
const SAYS_SENT: [&str; 12] = [
    "attempt",
    "attempts",
    "attempted",
    "try",
    "tried",
    "retry",
    "retried",
    "send",
    "sent",
    "submit",
    "submitted",
    "requested",
];
pub(super) const REFERENCE: [&str; 26] = [
    "psp_reference",
    "psp_ref",
    "psp_id",
    "provider_payment_id",
    "provider_reference",
    "provider_transaction_id",
    "stripe_payment_intent_id",
    "stripe_intent_id",
    "payment_intent_id",
    "payment_intent",
    "stripe_charge_id",
    "stripe_refund_id",
    "stripe_id",
    "gateway_reference",
    "gateway_transaction_id",
    "gateway_id",
    "processor_reference",
    "processor_id",
    "external_id",
    "external_reference",
    "transaction_reference",
    "psp",
    "psp_payment_id",
    "psp_transaction_id",
    "stripe_payment_id",
    "stripe_payment_intent",
];
/// What may as well be an id of the application's, or of a bank's.
pub(super) const MAY_BE_REFERENCE: [&str; 20] = [
    "connector_transaction_id",
    "connector_payment_id",
    "processor_transaction_id",
    "provider_ref",
    "provider_charge_id",
    "gateway_ref",
    "gateway_payment_id",
    "gateway_charge_id",
    "transaction_id",
    "transaction_ref",
    "txn_id",
    "charge_id",
    "external_ref",
    "remote_id",
    "remote_reference",
    "payment_reference",
    "payment_ref",
    "response_code",
    "reference",
    "ref",
];
/// Words of names of what Stripe has besides payments, or of what only opens one.
const NO_PAYMENTS: [&str; 14] = [
    "refund", "refunds", "refunded", "dispute", "disputes", "secret", "session", "customer",
    "method", "setup", "event", "events", "token", "webhook",
];
pub(super) const ACCOUNT: [&str; 16] = [
    "gateway",
    "provider",
    "psp",
    "processor",
    "payment_provider",
    "payment_gateway",
    "payment_processor",
    "gateway_name",
    "provider_name",
    "zahlungsanbieter",
    "anbieter",
    "pasarela",
    "proveedor",
    "prestataire",
    "passerelle",
    "fornitore",
];
pub(super) const DELETED: [&str; 12] = [
    "deleted_at",
    "discarded_at",
    "archived_at",
    "removed_at",
    "geloescht_am",
    "gelöscht_am",
    "borrado_en",
    "eliminado_en",
    "supprime_le",
    "cancellato_il",
    "verwijderd_op",
    "excluido_em",
];
pub(super) const IS_DELETED: [&str; 16] = [
    "deleted",
    "is_deleted",
    "archived",
    "del_flg",
    "del_flag",
    "delete_flag",
    "is_del",
    "del_yn",
    "geloescht",
    "gelöscht",
    "ist_geloescht",
    "borrado",
    "eliminado",
    "supprime",
    "verwijderd",
    "excluido",
];
pub(super) const IS_CANCELLED: [&str; 9] = [
    "is_cancelled",
    "is_canceled",
    "void",
    "storniert",
    "annulliert",
    "anulado",
    "annule",
    "annullato",
    "cancelado",
];
/// What says that another row stands for its own: a flag, and what names that row.
pub(super) const IS_SUPERSEDED: [&str; 3] = ["superseded", "is_superseded", "is_duplicate"];
pub(super) const SUPERSEDED_BY: [&str; 5] =
    ["superseded_by", "superseded_by_id", "superseded_at", "duplicate_of", "duplicate_of_id"];
/// What says of a row with versions that it is the one that counts.
pub(super) const IS_CURRENT: [&str; 2] = ["is_current", "is_latest"];
const VALID_TO: [&str; 2] = ["valid_to", "effective_to"];
/// Years from this one on are no end: of `9999-12-31` nobody means the day.
const FAR_FROM: u32 = 2200;
pub(super) const IS_REVERSED: [&str; 2] = ["is_reversed", "reversed"];
pub(super) const IS_VOIDED: [&str; 2] = ["is_voided", "voided"];
pub(super) const REVERSED_AT: [&str; 2] = ["reversed_at", "reversed_on"];
pub(super) const VOIDED_AT: [&str; 2] = ["voided_at", "voided_on"];
/// `refunded` alone says what became of a charge, and mostly counts what was.
pub(super) const IS_REFUNDED: [&str; 1] = ["is_refunded"];
pub(super) const ON_HOLD: [&str; 2] = ["on_hold", "is_on_hold"];
pub(super) const IS_LOCKED: [&str; 1] = ["is_locked"];
pub(super) const IS_TEMPLATE: [&str; 1] = ["is_template"];
pub(super) const DOCSTATUS: [&str; 1] = ["docstatus"];
pub(super) const IS_LIVE: [&str; 4] = ["livemode", "live_mode", "is_live", "live"];
pub(super) const IS_TEST: [&str; 6] =
    ["is_test", "test", "test_mode", "sandbox", "test_flg", "test_flag"];
pub(super) const ENVIRONMENT: [&str; 3] = ["environment", "env", MODE];
/// A mode may be of anything: only its values tell.
pub(super) const MODE: &str = "mode";
/// Values of an environment whose rows are of live money.
pub(super) const LIVE: [&str; 3] = ["live", "prod", "production"];
/// Values of one whose rows are of no money.
pub(super) const TEST: [&str; 8] =
    ["test", "testing", "sandbox", "dev", "development", "stage", "staging", "demo"];
pub(super) const IS_REFUND: [&str; 1] = ["is_refund"];
/// What a row pays, once each. What pays for a customer, or for what is paid again and again, does
/// not say which payment it is.
pub(super) const PAID_ONCE: [&str; 14] = [
    "payment_request_id",
    "invoice_id",
    "invoice_no",
    "invoice_number",
    "order_id",
    "order_no",
    "order_number",
    "booking_id",
    "reservation_id",
    "checkout_id",
    "cart_id",
    "basket_id",
    "purchase_id",
    "bill_id",
];
/// What is paid again and again.
pub(super) const PAID_AGAIN: [&str; 5] =
    ["subscription_id", "subscription", "membership_id", "contract_id", "lease_id"];
/// Which of those times it is.
pub(super) const PERIOD: [&str; 8] = [
    "period",
    "billing_period",
    "billing_cycle",
    "cycle",
    "period_start",
    "period_from",
    "billing_date",
    "due_date",
];
/// Which part of one sum.
pub(super) const INSTALMENT: [&str; 6] = [
    "installment_id",
    "installment_no",
    "installment_number",
    "instalment_id",
    "instalment_no",
    "instalment_number",
];
/// Whose numbers those are.
pub(super) const TENANT: [&str; 8] = [
    "tenant_id",
    "tenant",
    "merchant_id",
    "shop_id",
    "store_id",
    "company_id",
    "organization_id",
    "organisation_id",
];
/// The number of a try; it is no part of what the tries share.
pub(super) const TRY: [&str; 9] = [
    "attempt",
    "attempt_no",
    "attempt_number",
    "attempt_count",
    "try_no",
    "try_number",
    "retry",
    "retry_no",
    "retry_number",
];
pub(super) const UPDATED: [&str; 42] = [
    "updated_at",
    "updated",
    "updated_on",
    "modified_at",
    "modified",
    "last_modified",
    "update_time",
    "geaendert_am",
    "geändert_am",
    "aktualisiert_am",
    "actualizado",
    "actualizado_en",
    "modifie_le",
    "mis_a_jour_le",
    "modificato_il",
    "aggiornato_il",
    "gewijzigd_op",
    "atualizado_em",
    "last_modified_at",
    "last_modified_on",
    "last_modified_date",
    "last_modified_time",
    "modified_on",
    "modified_date",
    "modified_time",
    "date_modified",
    "updated_date",
    "updated_time",
    "update_date",
    "date_updated",
    "last_updated",
    "last_updated_at",
    "last_update",
    "write_date",
    "changed_at",
    "changed_on",
    "last_modified_on_utc",
    "last_modified_utc",
    "modified_on_utc",
    "updated_on_utc",
    "updated_at_utc",
    "updated_utc",
];
/// Counts of writes, by the usual name of optimistic locking, which other things have as well.
const VERSION: [&str; 3] = ["version", "opt_lock", "optlock"];
pub(super) const LOCK: [&str; 3] = ["lock_version", "row_version", "optimistic_lock"];
pub(super) const MOVED: [&str; 24] = [
    "captured_at",
    "paid_at",
    "settled_at",
    "completed_at",
    "succeeded_at",
    "charged_at",
    "collected_at",
    "paid_on",
    "captured_on",
    "settled_on",
    "completed_on",
    "collected_on",
    "paid_date",
    "date_paid",
    "captured_at_utc",
    "captured_on_utc",
    "captured_utc",
    "paid_at_utc",
    "paid_on_utc",
    "paid_date_utc",
    "paid_utc",
    "settled_utc",
    "completed_utc",
    COMPLETED,
];
/// A time, a flag or a count: only its type and its values tell.
pub(super) const COMPLETED: &str = "completed";
/// When a row failed, and why.
pub(super) const FAILED_AT: [&str; 5] =
    ["failed_at", "failed_on", "failed_at_utc", "failed_on_utc", "failed_utc"];
pub(super) const FAILED_WHY: [&str; 6] = [
    "failure_reason",
    "failed_reason",
    "failure_message",
    "decline_reason",
    "error_reason",
    "failure_code",
];
/// A value that means that a call is on its way, or that a person has sent an order in.
const MAY_BE_UNPAID: &str = "submitted";
/// Marks of the newest row of a history.
const NEWEST: [&str; 6] =
    ["most_recent", "is_most_recent", "is_current", "is_latest", "current", "latest"];
/// What counts the rows of a history.
const COUNTS: [&str; 10] = [
    "sort_key",
    "sort_order",
    "sequence",
    "sequence_no",
    "sequence_number",
    "seq",
    "position",
    "ordinal",
    "version",
    "revision",
];

/// Values that ask nothing of anybody: nothing was sent, or what was sent is no longer open.
const AT_REST: [&str; 40] = [
    "new",
    "created",
    "draft",
    "none",
    "not_started",
    "checkout",
    "cart",
    "requires_payment_method",
    "requires_confirmation",
    "requires_capture",
    "authorized",
    "authorised",
    "charged_back",
    "chargeback",
    "skipped",
    "invalid",
    "inactive",
    "neu",
    "angelegt",
    "erstellt",
    "entwurf",
    "autorisiert",
    "nouveau",
    "créé",
    "cree",
    "créée",
    "creee",
    "brouillon",
    "nuevo",
    "creado",
    "borrador",
    "nuovo",
    "creato",
    "bozza",
    "nieuw",
    "aangemaakt",
    "concept",
    "novo",
    "criado",
    "rascunho",
];
/// Values that say the same, and that nothing was paid: of a call that is on its way, some
/// applications say so too.
const UNPAID: [&str; 16] = [
    "unpaid",
    "not_paid",
    "not_charged",
    "unbezahlt",
    "nicht_bezahlt",
    "impayé",
    "impaye",
    "non_payé",
    "non_paye",
    "impagado",
    "no_pagado",
    "non_pagato",
    "onbetaald",
    "niet_betaald",
    "não_pago",
    "nao_pago",
];
/// Values that say it of what was paid in part.
const PARTLY: [&str; 5] = [
    "partially_paid",
    "partially_charged",
    "partially_captured",
    "partial_charged",
    "teilweise_bezahlt",
];
/// What values of an end end with, besides words of failure: `partially_refunded`.
const ENDED: [&str; 50] = [
    "refunded",
    "cancelled",
    "canceled",
    "void",
    "voided",
    "expired",
    "abandoned",
    "disputed",
    "reversed",
    "deleted",
    "archived",
    "discarded",
    "storniert",
    "erstattet",
    "rückerstattet",
    "rueckerstattet",
    "zurückgezahlt",
    "abgebrochen",
    "abgelaufen",
    "annulliert",
    "annulé",
    "annule",
    "annulée",
    "annulee",
    "remboursé",
    "rembourse",
    "remboursée",
    "remboursee",
    "expiré",
    "expire",
    "cancelado",
    "cancelada",
    "anulado",
    "anulada",
    "reembolsado",
    "devuelto",
    "caducado",
    "vencido",
    "expirado",
    "annullato",
    "annullata",
    "stornato",
    "rimborsato",
    "rimborsata",
    "scaduto",
    "geannuleerd",
    "terugbetaald",
    "verlopen",
    "estornado",
    "devolvido",
];

/// What values end with that say that goods were sent.
const DELIVERED: [&str; 26] = [
    "shipped",
    "delivered",
    "fulfilled",
    "dispatched",
    "versandt",
    "versendet",
    "verschickt",
    "geliefert",
    "ausgeliefert",
    "zugestellt",
    "expédié",
    "expédiée",
    "expedie",
    "expediee",
    "livré",
    "livrée",
    "livree",
    "entregado",
    "entregada",
    "spedito",
    "spedita",
    "consegnato",
    "consegnata",
    "bezorgd",
    "geleverd",
    "entregue",
];
/// What values end with that say so of goods, or of a payment's call.
const SENT_OFF: [&str; 10] = [
    "gesendet",
    "envoyé",
    "envoyée",
    "envoye",
    "envoyee",
    "enviado",
    "enviada",
    "inviato",
    "inviata",
    "verzonden",
];
/// Values that say that something came to an end: a payment, or the order that it was for.
const FINISHED: [&str; 28] = [
    "completed",
    "complete",
    "done",
    "confirmed",
    "finished",
    "abgeschlossen",
    "erledigt",
    "beendet",
    "fertig",
    "terminé",
    "terminée",
    "termine",
    "terminee",
    "completado",
    "completada",
    "terminado",
    "terminada",
    "finalizado",
    "finalizada",
    "completato",
    "completata",
    "terminato",
    "voltooid",
    "afgerond",
    "concluído",
    "concluída",
    "concluido",
    "concluida",
];

/// So many values that begin alike share a mark, and no word.
const MARKED: usize = 3;

/// Names of PSPs and of ways to pay that Stripe does not know of.
const OTHERS: [&str; 16] = [
    "adyen",
    "paypal",
    "braintree",
    "mollie",
    "razorpay",
    "square",
    "checkout",
    "worldpay",
    "gocardless",
    "klarna",
    "cash",
    "manual",
    "offline",
    "bank_transfer",
    "wire",
    "check",
];

/// Words beside a PSP's name that say otherwise.
const NO_STRIPE: [&str; 17] = [
    "no", "not", "non", "un", "ex", "fake", "mock", "dummy", "test", "testing", "sandbox", "demo",
    "old", "legacy", "former", "migrated", "disabled",
];

/// Which types a thing may have.
type Takes = fn(&TypeClass) -> bool;

/// So many names, the likeliest ones, are known at the end of a longer one as well.
const ENDINGS: usize = 8;

/// An ending is longer than this; `st` ends too many.
const ENDING_OVER: usize = 4;

/// A shorter word of a table's name begins too many others.
const OWN_FROM: usize = 3;

/// The likeliest column of these names whose type fits.
pub(super) fn pick<'s>(of: &'s Surveyed, names: &[&str], takes: Takes) -> Option<&'s Column> {
    picks(of, names, takes).first().copied()
}

/// All columns of these names whose type fits, the likeliest first.
pub(super) fn picks<'s>(of: &'s Surveyed, names: &[&str], takes: Takes) -> Vec<&'s Column> {
    let columns = &of.relation.columns;
    let mut found: Vec<&'s Column> = Vec::new();
    for name in names {
        found.extend(columns.iter().filter(|column| plain(&column.name) == *name));
    }
    // `payment_amount_cents` ends like one of them.
    for name in names.iter().take(ENDINGS).filter(|name| name.len() > ENDING_OVER) {
        let ending = format!("_{name}");
        found.extend(columns.iter().filter(|column| plain(&column.name).ends_with(&ending)));
    }
    found.retain(|column| takes(&column.class));
    let mut known = BTreeSet::new();
    found.retain(|column| known.insert(column.name.as_str()));
    found
}

/// All columns that are called so and not otherwise, whose type fits, in the order of the names.
pub(super) fn called<'s>(of: &'s Surveyed, names: &[&str], takes: Takes) -> Vec<&'s Column> {
    let columns = &of.relation.columns;
    let mut found: Vec<&'s Column> = Vec::new();
    for name in names {
        found.extend(columns.iter().filter(|column| plain(&column.name) == *name));
    }
    found.retain(|column| takes(&column.class));
    found
}

/// Columns that are called as an amount, be it a part of what is charged: the likeliest first.
pub(super) fn amounts(of: &Surveyed) -> Vec<&Column> {
    let mut found = picks(of, &[&AMOUNT[..], &SUMS[..]].concat(), is_number);
    let prices = of
        .relation
        .columns
        .iter()
        .filter(|column| is_number(&column.class))
        .filter(|column| is_number_of_price(&column.name) || is_in_minor(&column.name));
    for column in prices {
        if !found.iter().any(|known| known.name == column.name) {
            found.push(column);
        }
    }
    found.sort_by_key(|column| plain(&column.name).split('_').any(|word| word == BASE));
    found
}

/// Drupal keeps a price in two columns: `total_price__number`, `total_price__currency_code`.
fn is_number_of_price(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_suffix("__number").is_some_and(|price| has_word(price, &SAYS_AMOUNT))
}

/// Whether a name says an amount and its minor unit, and nothing else: `summe_cent`,
/// `importo_in_centesimi`.
fn is_in_minor(name: &str) -> bool {
    let name = plain(name);
    let (units, others): (Vec<&str>, Vec<&str>) =
        name.split('_').filter(|word| !IN.contains(word)).partition(|word| MINOR.contains(word));
    let is_sum = !others.is_empty() && others.iter().all(|word| SAYS_AMOUNT.contains(word));
    !units.is_empty() && is_sum
}

/// Whether a column that is called as an amount is, by its words, a part of what is charged, or
/// another sum than it.
pub(super) fn is_part(of: &Surveyed, column: &Column) -> bool {
    let name = plain(&column.name);
    let is_known = AMOUNT.contains(&name.as_str()) || SUMS.contains(&name.as_str());
    !is_known && says_one_of(of, column, &PARTS)
}

/// Whether a name has one of these words.
fn has_word(name: &str, known: &[&str]) -> bool {
    plain(name).split('_').any(|word| known.contains(&word))
}

/// Columns that may be the amount by a word of their names, of whatever type.
pub(super) fn may_be_amounts(of: &Surveyed) -> Vec<&Column> {
    let may_be = |column: &&Column| {
        let says = match &column.class {
            TypeClass::Integer | TypeClass::Decimal | TypeClass::Float | TypeClass::Other => {
                has_word(&column.name, &SAYS_AMOUNT)
            }
            TypeClass::Text | TypeClass::Padded => has_word(&column.name, &["amount", "amt"]),
            _no_number => false,
        };
        says && !has_word(&column.name, &SAYS_NO_SUM)
    };
    of.relation.columns.iter().filter(may_be).collect()
}

/// Columns that may be the currency, or point at it, by a word of their names.
pub(super) fn may_be_currencies(of: &Surveyed) -> Vec<&Column> {
    let may_be = |column: &&Column| {
        let is_apt = is_word(&column.class)
            || matches!(column.class, TypeClass::Integer | TypeClass::Uuid | TypeClass::Other);
        is_apt && has_word(&column.name, &SAYS_CURRENCY) && !has_word(&column.name, &SAYS_NO_CODE)
    };
    of.relation.columns.iter().filter(may_be).collect()
}

/// Whether a whole number says a currency by its own number, by its name.
pub(super) fn is_currency_number(column: &Column) -> bool {
    is_whole(&column.class) && has_word(&column.name, &SAYS_NUMBER)
}

/// The column with the codes, in a table of currencies.
pub(super) fn currency_code(of: &Surveyed) -> Option<&Column> {
    called(of, &CODES, is_word).first().copied()
}

/// Columns that may have a rate of exchange by their names: Magento's are called
/// `base_to_order_rate`.
pub(super) fn exchange_rates(of: &Surveyed) -> Vec<&Column> {
    let is_rate = |column: &&Column| {
        let has = |known: &[&str]| has_word(&column.name, known);
        let is_called = has(&["rate"]) && (has(&SAYS_EXCHANGE) || (has(&[BASE]) && has(&["to"])));
        let is_known = RATES.contains(&plain(&column.name).as_str());
        is_number(&column.class) && (is_called || is_known)
    };
    of.relation.columns.iter().filter(is_rate).collect()
}

/// Columns that may be the status by a word of their names.
pub(super) fn may_be_statuses(of: &Surveyed) -> Vec<&Column> {
    let may_be = |column: &&Column| {
        let says = is_status(&column.class)
            && has_word(&column.name, &SAYS_STATUS)
            && !has_word(&column.name, &SAYS_NO_STATUS);
        says || (is_flag(&column.class) && MAY_BE_DONE.contains(&plain(&column.name).as_str()))
    };
    of.relation.columns.iter().filter(may_be).collect()
}

/// Whether a status has a bit for each of its words, by its name.
pub(super) fn has_bits(column: &Column) -> bool {
    is_whole(&column.class) && has_word(&column.name, &SAYS_BITS)
}

/// Whether an amount is in minor units by its name.
pub(super) fn says_minor(name: &str) -> bool {
    has_word(name, &MINOR)
}

/// Whether an amount is in millionths by its name.
pub(super) fn says_micros(name: &str) -> bool {
    has_word(name, &["micro", "micros"])
}

/// Whether a column has, by its words, ids of something else than payments.
pub(super) fn is_of_no_payment(of: &Surveyed, column: &Column) -> bool {
    says_one_of(of, column, &NO_PAYMENTS)
}

/// Whether a column's name has one of these words. What its table is of is left out: the amount of
/// a refund is what `refunds` are about.
fn says_one_of(of: &Surveyed, column: &Column, known: &[&str]) -> bool {
    let table = plain(of.name.rsplit('.').next().unwrap_or(&of.name));
    let is_own = |word: &str| {
        let mut own = table.split('_').map(|own| own.trim_end_matches('s'));
        own.any(|own| own.len() >= OWN_FROM && word.starts_with(own))
    };
    plain(&column.name).split('_').any(|word| known.contains(&word) && !is_own(word))
}

/// Whether a column has, by its words, ids of charges, which are not those of their payments.
pub(super) fn says_charge(name: &str) -> bool {
    let name = plain(name);
    let has = |known: &str| name.split('_').any(|word| word == known);
    has("charge") && !has("payment") && !has("intent")
}

/// Whether rows of a table are orders, by the last word of its name: `wp_wc_orders`,
/// `sales_order`, `kundenbestellungen`.
pub(super) fn is_of_orders(of: &Surveyed) -> bool {
    says_orders(of.name.rsplit('.').next().unwrap_or(&of.name))
}

/// Whether a table is one of orders by its name, without its schema.
fn says_orders(name: &str) -> bool {
    let name = plain(name);
    let last = name.rsplit('_').next().unwrap_or_default();
    ORDERS.iter().any(|known| last.ends_with(known))
}

/// Whether rows of a table are payments, by its name.
fn is_of_payments(of: &Surveyed) -> bool {
    let name = plain(of.name.rsplit('.').next().unwrap_or(&of.name));
    TABLES.iter().any(|(part, by)| *by >= SAYS_PAYMENTS && name.contains(part))
}

/// Columns besides the status that may say the same.
pub(super) fn other_statuses<'s>(of: &'s Surveyed, status: &Column) -> Vec<&'s Column> {
    let says = |column: &&Column| {
        let name = plain(&column.name);
        column.name != status.name
            && is_word(&column.class)
            && name.split('_').any(|word| matches!(word, "status" | "state"))
    };
    of.relation.columns.iter().filter(says).collect()
}

/// The status column: the one that was named, else the likeliest.
pub(super) fn status<'s>(of: &'s Surveyed, named: Option<&str>) -> Option<&'s Column> {
    match named {
        Some(name) => of.relation.column(name),
        None => pick(of, &STATUS, is_status)
            .or_else(|| called(of, &CODED_STATUS, is_status).first().copied()),
    }
}

/// The column that may count the writes of a row, by its whole name: `api_version` does not.
pub(super) fn version(of: &Surveyed) -> Option<&Column> {
    let is_version = |column: &&Column| {
        is_whole(&column.class) && VERSION.contains(&plain(&column.name).as_str())
    };
    of.relation.columns.iter().find(is_version)
}

/// Whether a column of this name says when its row was changed last, whoever changed it.
fn says_changed(name: &str) -> bool {
    let mut endings = UPDATED.iter().take(ENDINGS).filter(|known| known.len() > ENDING_OVER);
    UPDATED.contains(&name) || endings.any(|known| name.ends_with(&format!("_{known}")))
}

/// Whether a time is written at an end or after it, or lies ahead, by a word of its name.
fn says_ended(name: &str) -> bool {
    has_word(name, &SAYS_ENDED) && !has_word(name, &SAYS_SENT)
}

/// Columns of times that may be the one of the last attempt, by their types and names.
pub(super) fn may_be_attempted(of: &Surveyed) -> Vec<&Column> {
    let others = [&CREATED[..], &DELETED[..], &MOVED[..]];
    let may_be = |column: &&Column| {
        let name = plain(&column.name);
        let is_moment = matches!(column.class, TypeClass::TimestampTz | TypeClass::Timestamp);
        let is_called = ["_at", "_on", "_time", "_ms"].iter().any(|end| name.ends_with(end));
        (is_moment || (is_called && is_time(&column.class)))
            && !says_changed(&name)
            && !says_ended(&name)
            && !others.iter().any(|names| names.contains(&name.as_str()))
    };
    of.relation.columns.iter().filter(may_be).collect()
}

/// Whether the status column is called so.
pub fn is_the_status(of: &Surveyed, named: Option<&str>, column: &str) -> bool {
    status(of, named).is_some_and(|status| status.name == column)
}

/// Whether a time has no zone and its name says that it is UTC.
pub(super) fn says_utc(name: &str) -> bool {
    has_word(name, &["utc"])
}

/// Whether a time lies so far ahead that it says "for ever".
pub(super) fn is_for_ever(value: &str) -> bool {
    let year = value.split_once('-').and_then(|(year, _rest)| year.parse::<u32>().ok());
    value == "infinity" || year.is_some_and(|year| year >= FAR_FROM)
}

/// Whether a column says until when a row counts, by its name.
pub(super) fn is_valid_to(column: &Column) -> bool {
    is_no_flag(&column.class) && VALID_TO.contains(&plain(&column.name).as_str())
}

/// Columns of a history that each of its rows needs and that no template fills: a mark that the row
/// before loses, a count that goes on from it.
pub(super) fn counted_on(of: &Surveyed) -> Vec<&Column> {
    let is_shared = |column: &Column| {
        let mut keys = of.relation.unique_keys.iter();
        keys.any(|key| key.len() > 1 && key.contains(&column.name))
    };
    let is_one = |column: &&Column| {
        let name = plain(&column.name);
        let is_mark = is_flag(&column.class) && NEWEST.contains(&name.as_str());
        let is_count = is_whole(&column.class) && COUNTS.contains(&name.as_str());
        !column.generated && (is_mark || (is_count && (column.required || is_shared(column))))
    };
    of.relation.columns.iter().filter(is_one).collect()
}

pub(super) fn is_status(class: &TypeClass) -> bool {
    is_word(class) || matches!(class, TypeClass::Integer | TypeClass::Boolean)
}

pub(super) fn is_word(class: &TypeClass) -> bool {
    matches!(class, TypeClass::Text | TypeClass::Padded | TypeClass::Enum(_))
}

pub(super) fn is_text(class: &TypeClass) -> bool {
    matches!(class, TypeClass::Text | TypeClass::Padded)
}

pub(super) fn is_number(class: &TypeClass) -> bool {
    matches!(
        class,
        TypeClass::Integer
            | TypeClass::Decimal
            | TypeClass::Float
            | TypeClass::Text
            | TypeClass::Padded
    )
}

pub(super) fn is_whole(class: &TypeClass) -> bool {
    matches!(class, TypeClass::Integer)
}

/// Whether rows can be told to share it.
pub(super) fn is_shared(class: &TypeClass) -> bool {
    !matches!(class, TypeClass::Boolean | TypeClass::Float | TypeClass::Other)
}

pub(super) fn is_flag(class: &TypeClass) -> bool {
    matches!(class, TypeClass::Boolean)
}

/// What a flag may be kept in besides.
pub(super) fn is_odd_flag(class: &TypeClass) -> bool {
    is_whole(class) || is_text(class)
}

/// Whatever says something but yes and no.
pub(super) fn is_no_flag(class: &TypeClass) -> bool {
    !is_flag(class)
}

/// Whatever a flag may be kept in.
pub(super) fn is_any_flag(class: &TypeClass) -> bool {
    is_flag(class) || is_odd_flag(class)
}

/// Whether a column is a flag by what its name ends with, whatever its type.
pub(super) fn is_called_flag(name: &str) -> bool {
    ["_yn", "_flg", "_flag"].iter().any(|end| plain(name).ends_with(end))
}

/// Times; whole numbers of the epoch; text, as SQLite keeps times.
pub(super) fn is_time(class: &TypeClass) -> bool {
    matches!(
        class,
        TypeClass::TimestampTz | TypeClass::Timestamp | TypeClass::Integer | TypeClass::Text
    )
}

/// Times that may be NULL as long as nothing happened.
pub(super) fn is_moment(class: &TypeClass) -> bool {
    matches!(class, TypeClass::TimestampTz | TypeClass::Timestamp | TypeClass::Text)
}

/// Whatever a time may be kept in that is written.
pub(super) fn is_any_time(class: &TypeClass) -> bool {
    is_moment(class) || is_whole(class)
}

/// What a time of deletion may be kept in besides: whether NULL says "not deleted" is not told.
pub(super) fn is_odd_moment(class: &TypeClass) -> bool {
    matches!(class, TypeClass::Date | TypeClass::Integer)
}

/// How much a relation looks like a table of payments; 0: it cannot be one.
pub(super) fn score(of: &Surveyed) -> u32 {
    let short = of.name.rsplit('.').next().unwrap_or(&of.name);
    let name = plain(short);
    let has =
        |part: &str| -> bool { name.split('_').any(|word| word.trim_end_matches('s') == part) };
    let named = TABLES.iter().filter(|(part, _)| name.contains(part)).map(|(_, by)| *by).max();
    let found = |names: &[&str], takes| pick(of, names, takes).is_some();
    // A table of payments by its name is shown though only a person can say which is its status.
    let may_have_status = || is_of_payments(of) && !may_be_statuses(of).is_empty();
    let has_status = status(of, None).is_some();
    if (!has_status && !may_have_status()) || amounts(of).is_empty() {
        return 0;
    }
    let mut score = named.unwrap_or(0).saturating_add(if has_status { 11 } else { 1 });
    let signs: [(&[&str], Takes, u32); 4] = [
        (&CURRENCY, is_word, 3),
        (&CREATED, is_time, 2),
        (&REFERENCE, is_text, 3),
        (&ATTEMPTED, is_time, 2),
    ];
    for (names, takes, by) in signs {
        if found(names, takes) {
            score = score.saturating_add(by);
        }
    }
    if of.relation.is_view {
        score = score.saturating_sub(1);
    }
    if BESIDE.iter().any(|part| has(part)) {
        score = score.saturating_sub(12);
    }
    score
}

/// Whether it has a currency.
pub fn has_currency(of: &Surveyed) -> bool {
    pick(of, &CURRENCY, is_word).is_some()
}

/// Whether it looks like a record of changes.
pub fn is_history(of: &Surveyed) -> bool {
    let name = plain(of.name.rsplit('.').next().unwrap_or(&of.name));
    let is_part = |word: &str| {
        ["event", "log", "history", "histories", "audit", "transition"]
            .contains(&word.trim_end_matches('s'))
    };
    name.split('_').any(is_part) && status(of, None).is_some()
}

/// The values of a status by what they say.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) processing: Vec<String>,
    pub(super) pending: Vec<String>,
    pub(super) succeeded: Option<String>,
    pub(super) failed: Option<String>,
    pub(super) retryable: Option<String>,
}

/// Words that change what stands behind them, and so are no mark.
const CHANGING: [&str; 15] = [
    "not",
    "un",
    "partially",
    "partial",
    "requires",
    "nicht",
    "teilweise",
    "in",
    "en",
    "non",
    "no",
    "niet",
    "em",
    "não",
    "nao",
];

/// What all values of a status begin with, which says nothing of any of them: `wc-`.
pub(super) fn mark_of(values: &[String]) -> &str {
    let Some(first) = values.first().filter(|_| values.len() >= MARKED) else { return "" };
    let Some(at) = first.find(['-', '_', ':', '.', '/', ' ']) else { return "" };
    let mark = first.get(..=at).unwrap_or_default();
    let word = first.get(..at).unwrap_or_default().to_ascii_lowercase();
    let is_shared = values.iter().all(|value| value.len() > mark.len() && value.starts_with(mark));
    if is_shared && !CHANGING.contains(&word.as_str()) { mark } else { "" }
}

/// A value without its mark.
pub(super) fn unmarked<'v>(value: &'v str, mark: &str) -> &'v str {
    value.strip_prefix(mark).unwrap_or(value)
}

/// Sorts the values of a status by their words.
pub(super) fn sorted(values: &[String]) -> Sorted {
    let mark = mark_of(values);
    let word_of = |value: &String| plain(unmarked(value, mark));
    let all = |words: &[&str]| -> Vec<String> {
        let is_one = |value: &&String| words.contains(&word_of(value).as_str());
        values.iter().filter(is_one).cloned().collect()
    };
    let first = |words: &[&str]| {
        let of = |word: &&str| values.iter().find(|value| word_of(value) == **word).cloned();
        words.iter().find_map(of)
    };
    Sorted {
        processing: all(&PROCESSING),
        pending: all(&PENDING),
        succeeded: first(&SUCCEEDED),
        failed: first(&FAILED),
        retryable: first(&RETRYABLE),
    }
}

/// Whether a value of a status may say by its last word that the payment failed.
pub(super) fn may_be_failed(value: &str) -> bool {
    let value = plain(value);
    FAILED.contains(&value.rsplit('_').next().unwrap_or_default())
}

/// Whether a value of a status that says a call is on its way may also be of what nobody has paid
/// yet, by its last word.
pub(super) fn may_be_unpaid(value: &str) -> bool {
    plain(value).rsplit('_').next() == Some(MAY_BE_UNPAID)
}

/// Whether a value of a status is known to ask nothing of tieout: nothing was sent yet, or it came
/// to an end that has no target.
pub(super) fn is_at_rest(value: &str) -> bool {
    let value = plain(value);
    let last = value.rsplit('_').next().unwrap_or_default();
    let whole = [&AT_REST[..], &UNPAID[..], &PARTLY[..], &SUCCEEDED[..], &RETRYABLE[..]];
    let ends = [&ENDED[..], &FAILED[..]];
    whole.iter().any(|words| words.contains(&value.as_str()))
        || ends.iter().any(|words| words.contains(&last))
}

/// Whether a value of a status says that nothing was paid.
pub(super) fn says_unpaid(value: &str) -> bool {
    UNPAID.contains(&plain(value).as_str())
}

/// Whether a value of a status says that a part was paid.
pub(super) fn says_part_paid(value: &str) -> bool {
    PARTLY.contains(&plain(value).as_str())
}

/// Whether a value of a status says that something came to an end, which may be an order's, and
/// not the payment's.
pub(super) fn says_finished(value: &str) -> bool {
    FINISHED.contains(&plain(value).as_str())
}

/// Whether the values of a status show what becomes of an order: goods are sent, or it is finished,
/// and no word is one of payments.
pub(super) fn show_orders(of: &Surveyed, values: &[String], mark: &str) -> bool {
    let words: Vec<String> = values.iter().map(|value| plain(unmarked(value, mark))).collect();
    let has = |known: &[&str]| {
        words.iter().any(|word| known.contains(&word.rsplit('_').next().unwrap_or_default()))
    };
    if has(&DELIVERED) {
        return true;
    }
    let is_of_payment = |word: &String| {
        may_be_failed(word) || (SUCCEEDED.contains(&word.as_str()) && !says_finished(word))
    };
    let is_either = !is_of_payments(of) && !words.iter().any(is_of_payment);
    is_either && (has(&SENT_OFF) || words.iter().any(|word| says_finished(word)))
}

/// Whether a value of a status is known to be of a row that came to an end, however it is stuck:
/// what was just made may be on its way.
pub(super) fn is_over(value: &str) -> bool {
    let value = plain(value);
    let last = value.rsplit('_').next().unwrap_or_default();
    let ends = [&ENDED[..], &FAILED[..]];
    let is_end = ends.iter().any(|words| words.contains(&last));
    (is_end || SUCCEEDED.contains(&value.as_str())) && !may_be_on_its_way(&value)
}

/// Whether an account's value names Stripe.
pub(super) fn is_stripe(value: &str) -> bool {
    plain(value).contains("stripe")
}

/// Whether an account's value is the name of Stripe, and nothing else.
pub(super) fn is_called_stripe(value: &str) -> bool {
    plain(value) == "stripe"
}

/// Whether an account's value may say, by another word, that its rows are not at Stripe, or not for
/// live money: `not_stripe`, `stripe_test`.
pub(super) fn may_be_no_stripe(value: &str) -> bool {
    plain(value).split('_').any(|word| NO_STRIPE.contains(&word))
}

/// Whether an account's value names another way to pay; `stripe_klarna` is Stripe's.
pub(super) fn is_other(value: &str) -> bool {
    let words = plain(value);
    let is_named = OTHERS.iter().any(|other| words.contains(other)) || names_psp(value);
    is_named && !is_stripe(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tellers::{says_no, says_yes};

    #[test]
    fn names_are_told_apart_from_their_spelling() {
        for (name, words) in [
            ("CreatedAt", "created_at"),
            ("Currency Code", "currency_code"),
            ("IN FLIGHT", "in_flight"),
            ("InFlight", "in_flight"),
            ("amount2Pay", "amount2_pay"),
            ("  odd-- ", "odd"),
            ("ID", "id"),
        ] {
            assert_eq!(plain(name), words, "{name}");
        }
    }

    /// Names as applications of a language have them.
    const FOREIGN: [(&str, [&str; 4]); 12] = [
        ("zahlungen", ["status", "betrag", "waehrung", "angelegt_am"]),
        ("buchungen", ["zustand", "Betrag", "währung", "erstellt_am"]),
        ("umsaetze", ["zahlungsstatus", "betrag_cent", "waehrung", "angelegt_am"]),
        ("pagos", ["estado", "importe", "moneda", "creado"]),
        ("cobros", ["estado", "monto", "divisa", "fecha_creacion"]),
        ("paiements", ["statut", "montant", "devise", "cree_le"]),
        ("pagamenti", ["stato", "importo", "valuta", "creato_il"]),
        ("betalingen", ["status", "bedrag", "valuta", "aangemaakt_op"]),
        ("pagamentos", ["situacao", "valor", "moeda", "criado_em"]),
        ("zahlungen", ["Zahlstatus", "gesamtbetrag", "waehrung", "angelegt_am"]),
        ("paiements", ["statut_paiement", "montant_centimes", "devise", "date_creation"]),
        ("pagamenti", ["stato_pagamento", "importo", "valuta", "data_creazione"]),
    ];

    #[test]
    fn an_amount_and_its_minor_unit_are_an_amount() {
        for name in ["summe_cent", "SummeInCents", "importo_centesimi", "valor_em_centavos"] {
            assert!(is_in_minor(name) && says_minor(name), "{name}");
        }
        for name in ["summe", "fee_cents", "per_cent", "minor", "minor_units", "summe_netto"] {
            assert!(!is_in_minor(name), "{name}");
        }
    }

    #[test]
    fn names_of_other_languages_are_known() {
        let has = |names: &[&str], name: &str| names.contains(&plain(name).as_str());
        for (table, [status, amount, currency, created]) in FOREIGN {
            assert!(TABLES.iter().any(|(part, _)| plain(table).contains(part)), "{table}");
            assert!(has(&STATUS, status), "{status}");
            assert!(has(&AMOUNT, amount), "{amount}");
            assert!(has(&CURRENCY, currency), "{currency}");
            assert!(has(&CREATED, created), "{created}");
        }
    }

    /// Words of a status as applications of a language have them: a call is on its way, nobody may
    /// have paid yet, paid, failed, and an end that has no target.
    const FOREIGN_STATUSES: [[&str; 5]; 6] = [
        ["in Bearbeitung", "offen", "bezahlt", "fehlgeschlagen", "storniert"],
        ["en cours", "en attente", "payé", "échoué", "annulé"],
        ["en proceso", "pendiente", "pagado", "fallido", "cancelado"],
        ["in corso", "in attesa", "pagato", "fallito", "rimborsato"],
        ["in behandeling", "openstaand", "betaald", "mislukt", "geannuleerd"],
        ["em processamento", "pendente", "pago", "falhou", "estornado"],
    ];

    #[test]
    fn words_of_statuses_of_other_languages_are_known() {
        for words in FOREIGN_STATUSES {
            let sorted = sorted(&words.map(str::to_owned));
            let [processing, pending, paid, failed, ended] = words;
            assert_eq!(sorted.processing, [processing]);
            assert_eq!(sorted.pending, [pending]);
            assert_eq!(sorted.succeeded.as_deref(), Some(paid));
            assert_eq!(sorted.failed.as_deref(), Some(failed));
            assert!(is_over(ended) && is_over(paid) && is_over(failed), "{words:?}");
            assert!(may_be_on_its_way(processing) && may_be_on_its_way(pending), "{words:?}");
        }
        // What was sent may be goods, and what was approved is not paid yet.
        for word in ["versendet", "enviado", "envoyé", "freigegeben", "aprobado"] {
            let sorted = sorted(&[word.to_owned()]);
            let is_known = !sorted.processing.is_empty() || sorted.succeeded.is_some();
            assert!(!is_known && sorted.failed.is_none() && !is_at_rest(word), "{word}");
        }
        // What only begins alike has no mark: `en attente`, `en cours`.
        let values = ["en attente", "en cours", "en erreur"].map(str::to_owned);
        assert_eq!(mark_of(&values), "");
    }

    #[test]
    fn words_of_a_call_on_its_way_are_known() {
        for word in ["pending", "PENDING_CAPTURE", "Submitted", "authorizing", "initiated"] {
            assert!(may_be_on_its_way(word), "{word}");
        }
        for word in ["paid", "authorized", "processed", "new", "refunded", "failed"] {
            assert!(!may_be_on_its_way(word), "{word}");
        }
    }

    #[test]
    fn only_values_of_known_meaning_are_at_rest() {
        for word in [
            "new",
            "Created",
            "REFUNDED",
            "partially_refunded",
            "auto_refunded",
            "canceled",
            "PLUGIN_FAILURE",
            "capture_failed",
            "paid",
            "authorized",
        ] {
            assert!(is_at_rest(word), "{word}");
        }
        for word in [
            "UNKNOWN",
            "weird",
            "pending",
            "void_initiated",
            "unresolved",
            "authentication_successful",
            "0",
        ] {
            assert!(!is_at_rest(word), "{word}");
        }
        assert!(may_be_on_its_way("capture_initiated"));
    }

    #[test]
    fn tables_of_orders_are_known_by_the_last_word_of_their_names() {
        for name in [
            "orders",
            "wp_wc_orders",
            "shoporder",
            "CustomerOrders",
            "customerorders",
            "purchases",
            "sales",
            "bookings",
            "carts",
            "bestellungen",
            "wc_bestellungen",
            "auftraege",
            "\"Auftrag\"",
            "kundenaufträge",
            "verkaeufe",
            "kauf",
            "commandes",
            "commande",
            "achats",
            "pedidos",
            "compras",
            "ordini",
            "ordine",
            "acquisti",
            "bestellingen",
            "encomendas",
            "vendas",
        ] {
            assert!(says_orders(name), "{name}");
        }
        for name in ["order_payments", "payments", "zahlungen", "order_items", "buchungen"] {
            assert!(!says_orders(name), "{name}");
        }
    }

    #[test]
    fn what_was_paid_in_part_or_not_at_all_is_at_rest_and_told() {
        for word in ["unpaid", "nicht bezahlt", "non payé", "impayé", "no_pagado", "onbetaald"] {
            assert!(says_unpaid(word) && !says_part_paid(word) && is_at_rest(word), "{word}");
        }
        for word in ["partially_paid", "teilweise bezahlt", "PartiallyCaptured"] {
            assert!(says_part_paid(word) && !says_unpaid(word) && is_at_rest(word), "{word}");
        }
        for word in ["new", "paid", "partially_refunded"] {
            assert!(!says_unpaid(word) && !says_part_paid(word), "{word}");
        }
    }

    #[test]
    fn what_came_to_an_end_is_over_and_what_was_made_is_not() {
        for word in ["Cancelled", "partially_refunded", "capture_failed", "paid"] {
            assert!(is_over(word), "{word}");
        }
        for word in ["Created", "new", "authorized", "pending", "not_paid", "unknown"] {
            assert!(!is_over(word), "{word}");
        }
    }

    #[test]
    fn a_mark_that_all_values_share_is_no_word_of_theirs() {
        for (values, mark) in [
            (&["wc-pending", "wc-failed", "wc-completed"][..], "wc-"),
            (&["PAYMENT_SENT", "PAYMENT_DONE", "PAYMENT_FAILED"], "PAYMENT_"),
            (&["wc-pending", "wc-failed"], ""),
            (&["wc-pending", "wc-failed", "trash"], ""),
            (&["not_paid", "not_charged", "not_sent"], ""),
            (&["paid", "partial", "pending"], ""),
            (&["wc-pending", "wc-", "wc-failed"], ""),
        ] {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(mark_of(&values), mark, "{values:?}");
        }
        let values = ["wc-processing", "wc-completed", "wc-failed"].map(str::to_owned);
        let sorted = sorted(&values);
        assert_eq!(sorted.processing, ["wc-processing"]);
        assert_eq!(sorted.succeeded.as_deref(), Some("wc-completed"));
        assert_eq!(sorted.failed.as_deref(), Some("wc-failed"));
    }

    #[test]
    fn names_of_charges_are_not_those_of_their_payments() {
        for (name, is_of_charge) in [
            ("stripe_charge_id", true),
            ("ChargeId", true),
            ("charge_payment_intent_id", false),
            ("payment_charge_id", false),
            ("charged_by", false),
        ] {
            assert_eq!(says_charge(name), is_of_charge, "{name}");
        }
    }

    #[test]
    fn times_of_an_end_are_told_from_those_of_a_send() {
        for name in ["voided_at", "PaidDateUtc", "CapturedUtc", "valid_to", "completed_on"] {
            assert!(says_ended(name), "{name}");
        }
        for name in ["pushed_at", "last_failed_attempt_at", "next_retry_due_at", "captures_at"] {
            assert!(!says_ended(name), "{name}");
        }
    }

    #[test]
    fn a_time_far_ahead_says_for_ever() {
        for value in ["infinity", "9999-12-31", "2999-01-01 00:00:00+00"] {
            assert!(is_for_ever(value), "{value}");
        }
        for value in ["", "2026-11-19", "-infinity", "253402214400", "9999"] {
            assert!(!is_for_ever(value), "{value}");
        }
    }

    #[test]
    fn a_price_in_two_columns_is_known_by_how_it_is_written() {
        assert!(is_number_of_price("total__number") && is_number_of_price("Unit_Price__number"));
        assert!(!is_number_of_price("total_number") && !is_number_of_price("order__number"));
    }

    #[test]
    fn minor_units_and_millionths_are_told_by_a_word() {
        assert!(says_minor("amount_cents") && says_minor("AmountMinor") && !says_minor("percent"));
        assert!(says_micros("amount_micros") && says_micros("MicrosAmount"));
        assert!(!says_micros("amount") && !says_micros("microsoft_amount"));
    }

    #[test]
    fn flags_are_told_by_their_values_and_by_what_their_names_end_with() {
        assert!(["Y", "yes", "1", "T"].iter().all(|value| says_yes(value) && !says_no(value)));
        assert!(["N", "no", "0", "false"].iter().all(|value| says_no(value) && !says_yes(value)));
        assert!(["del_yn", "DEL_FLG", "test_flag"].iter().all(|name| is_called_flag(name)));
        assert!(!is_called_flag("deleted") && !says_yes("2026-11-19"));
    }

    #[test]
    fn what_is_stripes_is_not_anothers() {
        assert!(is_other("adyen") && is_other("GoCardless") && is_other("bank_transfer"));
        assert!(!is_other("stripe_klarna") && !is_other("stripe_checkout"));
    }

    #[test]
    fn the_name_of_stripe_is_told_from_names_that_have_it() {
        assert!(is_called_stripe("STRIPE") && is_called_stripe(" Stripe "));
        assert!(!is_called_stripe("stripe_uk") && !is_called_stripe("not_stripe"));
        for value in ["not_stripe", "fake_stripe", "stripe_test", "Stripe (legacy)"] {
            assert!(may_be_no_stripe(value), "{value}");
        }
        assert!(!may_be_no_stripe("pp_stripe_stripe") && !may_be_no_stripe("stripe_eu"));
    }

    #[test]
    fn values_are_sorted_by_what_they_say() {
        let values = ["Created", "InFlight", "Paid", "Declined", "To Retry", "pending"];
        let sorted = sorted(&values.map(str::to_owned));
        assert_eq!(sorted.processing, ["InFlight"]);
        assert_eq!(sorted.pending, ["pending"]);
        assert_eq!(sorted.succeeded.as_deref(), Some("Paid"));
        assert_eq!(sorted.failed.as_deref(), Some("Declined"));
        assert_eq!(sorted.retryable.as_deref(), Some("To Retry"));
    }
}
