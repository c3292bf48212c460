//! Settlement files: what banks and PSPs leave in a folder, read as a stream in flat memory.
//!
//! A file is bytes ([`unwrap`]: .gz, .zip), then text ([`text`]: encodings, line ends), then items
//! ([`Parse`]: one file a format), and its own arithmetic is checked while they pass
//! ([`ledger::Ledger`]). A parser never guesses: what it cannot read is a [`Problem`] with its
//! line, unknown elements are passed over, and nothing that moves money is dropped in silence.
//! Signs come from the file; where a flag could be read two ways, the balances decide.
//!
//! How to add a format: a file here with `recognise` and `open`, a variant of [`Format`], its line
//! in [`FORMATS`], small fixtures under `fixtures/settlement/` and a line in
//! `docs/settlement-files.md`.

use crate::model::money::Currency;
use crate::model::settlement::{Control, Entry, Line, Problem, Statement, StatementEnd};

pub mod text;
pub mod unwrap;
pub mod watch;
pub mod amount;
pub mod ledger;
pub mod sources;
pub mod bai2;
pub mod nacha;
pub mod xml;
pub mod camt;
pub mod camt_details;
pub mod camt_statement;
pub mod camt_batch;
pub mod camt_codes;
pub mod camt_totals;
pub mod mt940;
pub mod mt940_frame;
pub mod mt940_text;
pub mod pain002;
pub mod sheet;
pub mod numeral;
pub mod adyen;
pub mod stripe;
pub mod paypal;
pub mod paypal_activity;
pub mod braintree;
pub mod checkout;
pub mod trustly;
pub mod mollie;
pub mod shopify;
pub mod amazon;
pub mod mercadopago;
pub mod balance;
pub mod kinds;
pub mod once;
pub mod proven;
pub mod named;
pub mod table;
pub mod table_rows;
pub mod doubts;
pub mod last_row;
pub mod marks;
pub mod twice;
pub mod bank_words;
pub mod own_signs;
pub mod bank_csv;
pub mod tags;

use text::Source;

/// A stream of what a file says, in its own order.
pub trait Parse: Send {
    /// The next item; none at the end of the file.
    ///
    /// # Errors
    /// Where nothing after this can be read; the file is then quarantined. Whatever leaves the
    /// rest readable is an [`Item::Problem`] instead.
    fn next(&mut self) -> Result<Option<Item>, Problem>;
}

/// What a parser tells. Entries stand between a statement and its end, where a format has them;
/// an entry's lines follow it, and every entry has at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A statement begins.
    Statement(Box<Statement>),
    /// A booked movement.
    Entry(Box<Entry>),
    /// A payment of the last entry.
    Line(Box<Line>),
    /// The file declares a sum of what came so far.
    Control(Box<Control>),
    /// Something is wrong, and the rest can still be read.
    Problem(Box<Problem>),
    /// The statement ends.
    StatementEnd(Box<StatementEnd>),
}

impl From<Problem> for Item {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<Control> for Item {
    fn from(control: Control) -> Self {
        Self::Control(Box::new(control))
    }
}

impl From<Statement> for Item {
    fn from(statement: Statement) -> Self {
        Self::Statement(Box::new(statement))
    }
}

impl From<Entry> for Item {
    fn from(entry: Entry) -> Self {
        Self::Entry(Box::new(entry))
    }
}

impl From<Line> for Item {
    fn from(line: Line) -> Self {
        Self::Line(Box::new(line))
    }
}

impl From<StatementEnd> for Item {
    fn from(end: StatementEnd) -> Self {
        Self::StatementEnd(Box::new(end))
    }
}

/// The formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// Bank report of the running day.
    Camt052,
    /// Bank statement.
    Camt053,
    /// Bank notification.
    Camt054,
    /// Status of payment orders.
    Pain002,
    /// SWIFT customer statement.
    Mt940,
    /// SWIFT interim report.
    Mt942,
    /// BAI2.
    Bai2,
    /// NACHA.
    Nacha,
    /// Adyen settlement details.
    AdyenSettlement,
    /// Adyen payment accounting.
    AdyenAccounting,
    /// Adyen received payments.
    AdyenReceived,
    /// Stripe balance report.
    Stripe,
    /// PayPal settlement report.
    PayPalSettlement,
    /// PayPal transaction detail report.
    PayPalDetail,
    /// Braintree transactions.
    Braintree,
    /// Checkout.com settlement breakdown.
    CheckoutBreakdown,
    /// Checkout.com payouts.
    CheckoutPayouts,
    /// Checkout.com financial actions.
    CheckoutActions,
    /// Trustly funding file.
    Trustly,
    /// Mollie settlement report.
    Mollie,
    /// Shopify Payments transactions.
    Shopify,
    /// Amazon settlement report.
    Amazon,
    /// Mercado Pago account money report.
    MercadoPago,
    /// Mercado Pago release report.
    MercadoPagoRelease,
    /// PayPal activity download.
    PayPalActivity,
    /// A bank's CSV export.
    BankCsv,
    /// A format that the configuration describes: [`table`].
    Table,
}

/// A format: how it is called, known and read.
pub struct Known {
    /// Which.
    pub format: Format,
    /// Its word in `--format`, in the configuration and in `--json`.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Looks at the first text (up to 64 KiB) and tells the version, or an empty text where the
    /// format has none; nothing where it is another format.
    pub recognise: fn(&str) -> Option<String>,
    /// Begins to read.
    pub open: fn(Source) -> Box<dyn Parse>,
}

/// All, in the order in which a head is shown to them.
pub const FORMATS: &[Known] = &[
    Known {
        format: Format::Camt052,
        name: "camt.052",
        title: "ISO 20022 account report",
        recognise: camt::recognise_report,
        open: camt::open,
    },
    Known {
        format: Format::Camt053,
        name: "camt.053",
        title: "ISO 20022 statement",
        recognise: camt::recognise_statement,
        open: camt::open,
    },
    Known {
        format: Format::Camt054,
        name: "camt.054",
        title: "ISO 20022 notification",
        recognise: camt::recognise_notification,
        open: camt::open,
    },
    Known {
        format: Format::Pain002,
        name: "pain.002",
        title: "ISO 20022 status of orders",
        recognise: pain002::recognise,
        open: pain002::open,
    },
    Known {
        format: Format::Mt940,
        name: "mt940",
        title: "MT940 statement",
        recognise: mt940::recognise_statement,
        open: mt940::open,
    },
    Known {
        format: Format::Mt942,
        name: "mt942",
        title: "MT942 interim report",
        recognise: mt940::recognise_report,
        open: mt940::open,
    },
    Known {
        format: Format::Bai2,
        name: "bai2",
        title: "BAI2",
        recognise: bai2::recognise,
        open: bai2::open,
    },
    Known {
        format: Format::Nacha,
        name: "nacha",
        title: "NACHA",
        recognise: nacha::recognise,
        open: nacha::open,
    },
    Known {
        format: Format::AdyenSettlement,
        name: "adyen_settlement",
        title: "Adyen settlement details",
        recognise: adyen::recognise_settlement,
        open: adyen::open_settlement,
    },
    Known {
        format: Format::AdyenAccounting,
        name: "adyen_accounting",
        title: "Adyen payment accounting",
        recognise: adyen::recognise_accounting,
        open: adyen::open_accounting,
    },
    Known {
        format: Format::AdyenReceived,
        name: "adyen_received",
        title: "Adyen received payments",
        recognise: adyen::recognise_received,
        open: adyen::open_received,
    },
    Known {
        format: Format::Stripe,
        name: "stripe",
        title: "Stripe balance report",
        recognise: stripe::recognise,
        open: stripe::open,
    },
    Known {
        format: Format::PayPalSettlement,
        name: "paypal_stl",
        title: "PayPal settlement report",
        recognise: paypal::recognise_stl,
        open: paypal::open,
    },
    Known {
        format: Format::PayPalDetail,
        name: "paypal_trr",
        title: "PayPal transaction detail report",
        recognise: paypal::recognise_trr,
        open: paypal::open,
    },
    Known {
        format: Format::Braintree,
        name: "braintree",
        title: "Braintree transactions",
        recognise: braintree::recognise,
        open: braintree::open,
    },
    Known {
        format: Format::CheckoutBreakdown,
        name: "checkout_breakdown",
        title: "Checkout.com settlement breakdown",
        recognise: checkout::recognise_breakdown,
        open: checkout::open_breakdown,
    },
    Known {
        format: Format::CheckoutPayouts,
        name: "checkout_payouts",
        title: "Checkout.com payouts",
        recognise: checkout::recognise_payouts,
        open: checkout::open_payouts,
    },
    Known {
        format: Format::CheckoutActions,
        name: "checkout_actions",
        title: "Checkout.com financial actions",
        recognise: checkout::recognise_actions,
        open: checkout::open_actions,
    },
    Known {
        format: Format::Trustly,
        name: "trustly",
        title: "Trustly funding file",
        recognise: trustly::recognise,
        open: trustly::open,
    },
    Known {
        format: Format::Mollie,
        name: "mollie",
        title: "Mollie settlement report",
        recognise: mollie::recognise,
        open: mollie::open,
    },
    Known {
        format: Format::Shopify,
        name: "shopify",
        title: "Shopify Payments transactions",
        recognise: shopify::recognise,
        open: shopify::open,
    },
    Known {
        format: Format::Amazon,
        name: "amazon",
        title: "Amazon settlement report",
        recognise: amazon::recognise,
        open: amazon::open,
    },
    Known {
        format: Format::MercadoPago,
        name: "mercadopago",
        title: "Mercado Pago account money",
        recognise: mercadopago::recognise_account,
        open: mercadopago::open_account,
    },
    Known {
        format: Format::MercadoPagoRelease,
        name: "mercadopago_release",
        title: "Mercado Pago releases",
        recognise: mercadopago::recognise_release,
        open: mercadopago::open_release,
    },
    Known {
        format: Format::PayPalActivity,
        name: "paypal_activity",
        title: "PayPal activity download",
        recognise: paypal_activity::recognise,
        open: paypal_activity::open,
    },
    Known {
        format: Format::BankCsv,
        name: "bank_csv",
        title: "Bank CSV",
        recognise: bank_csv::recognise,
        open: bank_csv::open,
    },
];

impl Format {
    /// Its entry of [`FORMATS`].
    pub fn known(self) -> Option<&'static Known> {
        FORMATS.iter().find(|known| known.format == self)
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        // It is opened by its description, so it is not among those that a head is shown to.
        self.known().map_or("table", |known| known.name)
    }

    /// Reads the word.
    pub fn parse(name: &str) -> Option<Self> {
        FORMATS.iter().find(|known| known.name == name).map(|known| known.format)
    }
}

/// What a file's first text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// The format.
    pub format: Format,
    /// Its version as the file says it; may be empty.
    pub version: String,
}

/// Tells the format by the content alone: names of files lie. With the currency that a person says
/// of files that name none, also a bank's export in it; its code is the version then, so that the
/// file can be read so once more.
pub fn recognise(head: &[u8], currency: Option<Currency>) -> Option<Recognised> {
    let head = String::from_utf8_lossy(head);
    let found = FORMATS.iter().find_map(|known| {
        let version = (known.recognise)(&head)?;
        Some(Recognised { format: known.format, version })
    });
    found.or_else(|| {
        let version = bank_csv::recognise_in(&head, currency?)?;
        Some(Recognised { format: Format::BankCsv, version })
    })
}

/// Begins to read a file as `format`; none where the format is not among [`FORMATS`].
pub fn open(format: Format, source: Source) -> Option<Box<dyn Parse>> {
    format.known().map(|known| (known.open)(source))
}
