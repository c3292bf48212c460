//! The files of a report and their columns, in their fixed order.
//!
//! A column is never renamed, moved or taken away: new ones are appended, and
//! [`SCHEMA_VERSION`] grows. `docs/reports.md` explains each; a test holds the two equal.

/// Version of the files; the manifest carries it.
pub const SCHEMA_VERSION: u32 = 1;

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
pub const SHEETS: [&Sheet; 7] =
    [&RECONCILIATION, &EXCEPTIONS, &SUMMARY, &BRIDGE, &TRANSITIONS, &INPUTS, &AGING];

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
    sums: &[("local_amount_minor", "currency"), ("psp_amount_minor", "psp_currency")],
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
