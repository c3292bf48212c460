//! A mapped table for the unit tests of this room, as a catalogue would describe it.

use crate::store::fit::{Catalogue, fit};
use crate::store::mapping::TableSettings;
use crate::store::source_table::{Column, QuotedIdent, Relation, SourceTable, TypeClass};

/// A column of this class.
pub fn column(name: &str, type_name: &str, class: TypeClass) -> Column {
    Column {
        name: name.to_owned(),
        ident: QuotedIdent::of_catalogue(name),
        type_name: type_name.to_owned(),
        class,
        max_chars: None,
        odd_text: None,
        decimals: 0,
        required: false,
        generated: false,
        may_write: true,
    }
}

/// A table with every sort of column.
pub fn payments() -> Relation {
    let status = ["new", "sending", "paid", "failed", "retry"].map(str::to_owned).to_vec();
    Relation {
        name: QuotedIdent::qualified("public", "payments"),
        is_view: false,
        updatable: true,
        hidden: Vec::new(),
        may_read: true,
        closed: None,
        columns: vec![
            column("id", "bigint", TypeClass::Integer),
            column("tenant", "text", TypeClass::Text),
            column("external_id", "text", TypeClass::Text),
            column("status", "pay_status", TypeClass::Enum(status)),
            column("amount", "numeric", TypeClass::Decimal),
            column("places", "integer", TypeClass::Integer),
            column("ratio", "double precision", TypeClass::Float),
            column("currency", "text", TypeClass::Text),
            column("provider", "text", TypeClass::Text),
            column("gateway_id", "bigint", TypeClass::Integer),
            column("refund", "boolean", TypeClass::Boolean),
            column("created_at", "timestamp with time zone", TypeClass::TimestampTz),
            column("sent_at", "timestamp without time zone", TypeClass::Timestamp),
            column("sent_s", "bigint", TypeClass::Integer),
            column("psp_id", "text", TypeClass::Text),
            column("order_id", "bigint", TypeClass::Integer),
            column("notes", "jsonb", TypeClass::Other),
        ],
        unique_keys: vec![vec!["id".to_owned()]],
        nullable: Vec::new(),
        indexed: vec!["id".to_owned()],
        writes_alone: true,
    }
}

/// The least mapping of it, with these lines of TOML on top.
pub fn settings(more: &str) -> TableSettings {
    let given: toml::Table = more.parse().unwrap();
    let mut whole: toml::Table = r#"
        name = "payments"
        read = "payments"
        key = ["id"]
        tag = "{id}"
        amount = { column = "amount", unit = "major" }
        currency = { column = "currency" }
        account = ["provider"]
        accounts = { stripe = "stripe_live" }
        status = "status"
        created = "created_at"
        mode = "full"
        map = [{ from = ["sending"], succeeded = "paid", failed = "failed", retryable = "retry" }]
    "#
    .parse()
    .unwrap();
    for (key, value) in given {
        match value.as_str() {
            Some("(absent)") => whole.remove(&key),
            _other => whole.insert(key, value),
        };
    }
    whole.try_into().unwrap()
}

/// The accounts of the tests' configuration.
pub fn accounts() -> Vec<String> {
    vec!["stripe_live".to_owned(), "stripe_eu".to_owned()]
}

/// What a catalogue without a history table says.
pub fn catalogue() -> Catalogue {
    Catalogue { read: Some(payments()), write: Some(payments()), history: None, text_times: false }
}

/// The table, mapped.
pub fn table(more: &str) -> SourceTable {
    fit(&settings(more), &catalogue(), &accounts()).unwrap()
}
