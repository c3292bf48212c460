//! The files of a report and their columns, in their fixed order.
//!
//! A column is never renamed, moved or taken away: new ones are appended, and
//! [`SCHEMA_VERSION`] grows. `docs/reports.md` explains each; a test holds the two equal.

/// Version of the files; the manifest carries it.
pub const SCHEMA_VERSION: u32 = 3;

/// One CSV file.
#[derive(Debug, Clone, Copy)]
pub struct Sheet {
    /// The file's name.
    pub file: &'static str,
    /// Its header.
    pub columns: &'static [&'static str],
    /// Columns that the manifest sums: (minor units, the column that names their currency).
    pub sums: &'static [(&'static str, &'static str)],
}

/// The name of the file that makes a directory a report.
pub const MANIFEST: &str = "manifest.json";

/// All CSV files, in the order of the manifest.
pub const SHEETS: [&Sheet; 10] = [
    &RECONCILIATION,
    &EXCEPTIONS,
    &MATCHED,
    &SUMMARY,
    &BRIDGE,
    &TRANSITIONS,
    &INPUTS,
    &AGING,
    &COMPARED,
    &PAYOUTS,
];

/// Every claimed row that was decided.
pub const RECONCILIATION: Sheet = Sheet {
    file: "reconciliation.csv",
    columns: &[
        "run_id",
        "table",
        "key",
        "account",
        "tag",
        "kind",
        "currency",
        "amount",
        "amount_minor",
        "status_before",
        "status_after",
        "outcome",
        "reason",
        "reason_text",
        "applied",
        "psp_reference",
        "psp_status",
        "psp_amount",
        "psp_amount_minor",
        "difference",
        "difference_minor",
        "evidence_sha256",
        "created_at",
        "attempted_at",
        "age_days",
        "age_bucket",
        "checks",
        "next_check_at",
        "handback_no",
        "case_id",
        "policy_version",
        // Appended: a PSP's amount means nothing without its currency, finance reads local
        // times, and (writer, audit_seq) leads to the record in transitions.csv.
        "psp_currency",
        "created_at_local",
        "attempted_at_local",
        "next_check_at_local",
        "asked",
        "rule",
        "writer",
        "audit_seq",
        // Appended: a double charge may be in two currencies, which no one amount can show.
        "psp_captured",
    ],
    sums: &[("amount_minor", "currency"), ("psp_amount_minor", "psp_currency")],
};

/// Every row or account that this run gave to a person.
pub const EXCEPTIONS: Sheet = Sheet {
    file: "exceptions.csv",
    columns: &[
        "run_id",
        "case_id",
        "side",
        "reason",
        "reason_text",
        "suggested_action",
        "internal_id",
        "psp_name",
        "psp_account",
        "psp_txn_id",
        "bank_ref",
        "file_name",
        "file_sha256",
        "line_no",
        "local_status",
        "psp_status",
        "currency",
        "local_amount",
        "local_amount_minor",
        "psp_amount",
        "psp_amount_minor",
        "bank_amount",
        "bank_amount_minor",
        "difference",
        "difference_minor",
        "created_at",
        "psp_at",
        "booked_on",
        "value_date",
        "age_days",
        "age_bucket",
        "due_at",
        "severity",
        "first_seen_run",
        "times_seen",
        "last_checked_at",
        "next_check_at",
        "attempts",
        "owner",
        "status",
        "comment_count",
        "resolved_by",
        "approved_by",
        "resolved_at",
        "resolution",
        "evidence_sha256",
        // Appended: keys are unique within a table only.
        "table",
        "tag",
        "kind",
        "psp_currency",
        "created_at_local",
        "psp_at_local",
    ],
    sums: &[
        ("local_amount_minor", "currency"),
        ("psp_amount_minor", "psp_currency"),
        ("bank_amount_minor", "currency"),
    ],
};

/// Every line of a settlement file that became a row's by this run.
pub const MATCHED: Sheet = Sheet {
    file: "matched.csv",
    columns: &[
        "run_id",
        "match_id",
        "method",
        "confidence",
        "internal_id",
        "psp_txn_id",
        "bank_ref",
        "currency",
        "local_amount",
        "local_amount_minor",
        "psp_gross",
        "psp_gross_minor",
        "psp_fee",
        "psp_fee_minor",
        "psp_net",
        "psp_net_minor",
        "bank_amount",
        "bank_amount_minor",
        "created_at",
        "psp_at",
        "booked_on",
        "payout_id",
        "decided_by",
        "policy_version",
        // Appended: keys are unique within a table, each amount has a currency of its own, and a
        // line is found again by its place.
        "table",
        "account",
        "reason",
        "kind",
        "tag",
        "local_currency",
        "gross_currency",
        "fee_currency",
        "net_currency",
        "difference",
        "difference_minor",
        "value_date",
        "file_name",
        "file_sha256",
        "file_place",
        "line_no",
    ],
    sums: &[("local_amount_minor", "local_currency"), ("bank_amount_minor", "currency")],
};

/// Counts and sums of both sides.
pub const SUMMARY: Sheet = Sheet {
    file: "summary.csv",
    columns: &[
        "run_id",
        "source",
        "counterparty",
        "currency",
        "side",
        "bucket",
        "reason",
        "count",
        "amount",
        "amount_minor",
    ],
    sums: &[],
};

/// The proof: what was claimed leads, item by item, to what the PSPs say moved.
pub const BRIDGE: Sheet = Sheet {
    file: "bridge.csv",
    columns: &[
        "run_id",
        "currency",
        "line_no",
        "label",
        "kind",
        "reason",
        "count",
        "amount",
        "amount_minor",
        "ref_file",
    ],
    sums: &[],
};

/// Every record of the run's journal with its place in the audit chain.
pub const TRANSITIONS: Sheet = Sheet {
    file: "transitions.csv",
    columns: &[
        "run_id",
        "audit_seq",
        "txn_id",
        "from_status",
        "to_status",
        "reason",
        "actor",
        "evidence_sha256",
        "at",
        "prev_hash",
        "hash",
        // Appended: the sequence counts within a writer, and keys within a table.
        "writer",
        "table",
        "applied",
        "at_local",
    ],
    sums: &[],
};

/// What each source was asked, and what it gave.
pub const INPUTS: Sheet = Sheet {
    file: "inputs.csv",
    columns: &[
        "source",
        "kind",
        "name",
        "sha256",
        "bytes",
        "pages_or_lines_read",
        "declared_count",
        "parsed_count",
        "declared_sum",
        "parsed_sum",
        "opening_balance",
        "closing_balance",
        "first_at",
        "last_at",
        "state",
        "note",
        // Appended: what an API was asked about.
        "rows_asked",
        "rows_answered",
        "retries",
        "duration_ms",
        // Appended: of a file, once for each of its currencies, whose its lines are.
        "currency",
        "declared_sum_minor",
        "parsed_sum_minor",
        "opening_balance_minor",
        "closing_balance_minor",
        "account",
        "format",
        "received_at",
        "business_day",
        "lines_counted",
        "lines_matched",
        "matched_amount",
        "matched_amount_minor",
        "lines_open",
        "open_amount",
        "open_amount_minor",
        "lines_no_row",
        "no_row_amount",
        "no_row_amount_minor",
        "lines_elsewhere",
        "elsewhere_amount",
        "elsewhere_amount_minor",
    ],
    sums: &[],
};

/// Cases open at the run's end, by age.
pub const AGING: Sheet = Sheet {
    file: "aging.csv",
    columns: &[
        "as_of",
        "currency",
        "reason",
        "owner",
        "bucket",
        "count",
        "amount",
        "amount_minor",
        "oldest_case",
        "opening",
        "new",
        "closed",
        "closing",
    ],
    sums: &[("amount_minor", "currency")],
};

/// A window compared whole: each row, object at the PSP and line of a file in it, once.
pub const COMPARED: Sheet = Sheet {
    file: "compared.csv",
    columns: &[
        "run_id",
        "number",
        "bucket",
        "account",
        "table",
        "internal_id",
        "tag",
        "local_status",
        "currency",
        "local_amount",
        "local_amount_minor",
        "psp_txn_id",
        "psp_status",
        "psp_currency",
        "psp_amount",
        "psp_amount_minor",
        "file_place",
        "file_currency",
        "file_amount",
        "file_amount_minor",
        "at",
        "at_local",
        "note",
    ],
    sums: &[
        ("local_amount_minor", "currency"),
        ("psp_amount_minor", "psp_currency"),
        ("file_amount_minor", "file_currency"),
    ],
};

/// Each payout to the cent: its own lines, what was paid out, and the bank's booking.
pub const PAYOUTS: Sheet = Sheet {
    file: "payouts.csv",
    columns: &[
        "run_id",
        "account",
        "payout_id",
        "currency",
        "lines",
        "gross",
        "gross_minor",
        "fees",
        "fees_minor",
        "refunds",
        "refunds_minor",
        "chargebacks",
        "chargebacks_minor",
        "adjustments",
        "adjustments_minor",
        "net",
        "net_minor",
        "paid_out",
        "paid_out_minor",
        "difference",
        "difference_minor",
        "bank_account",
        "bank_amount",
        "bank_amount_minor",
        "booked_on",
        "bank_place",
        "bank_ref",
        "state",
        "file_id",
        "merchant_account",
    ],
    sums: &[("net_minor", "currency"), ("bank_amount_minor", "currency")],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_unique_and_what_is_summed_exists() {
        for sheet in SHEETS {
            for (index, column) in sheet.columns.iter().enumerate() {
                assert!(!sheet.columns[index + 1..].contains(column), "{}: {column}", sheet.file);
            }
            for (amount, currency) in sheet.sums {
                assert!(sheet.columns.contains(amount), "{}: {amount}", sheet.file);
                assert!(sheet.columns.contains(currency), "{}: {currency}", sheet.file);
            }
        }
    }
}
