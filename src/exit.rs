//! The process's exit codes: part of the stable face, together with `--json`.
//!
//! New codes may be added; whoever reads them must treat an unknown code as a failure.

use std::io::ErrorKind;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Everything in scope was examined and ties out.
    Ok,
    /// A bug, or a broken invariant; nothing further was applied.
    Internal,
    /// Wrong words on the command line.
    Usage,
    /// Finished, and something was not examined; nothing was guessed.
    Partial,
    /// A condition of `--fail-on` holds.
    Attention,
    /// Totals do not bridge to zero; the report says so.
    Untied,
    /// Configuration, mapping or schema of the user's tables.
    Config,
    /// A command that must be alone was not.
    Locked,
    /// Credentials refused.
    Auth,
    /// TLS or SSH host key.
    Trust,
    /// The database is unreachable, read-only or full, or a disk of this machine is full.
    Database,
    /// tieout's tables are missing, older or newer.
    Schema,
    /// The audit chain or a report does not verify.
    Integrity,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// All, strongest first: when several apply, the first of them is the process's.
    pub const BY_PRECEDENCE: [Self; 15] = [
        Self::Internal,
        Self::Integrity,
        Self::Untied,
        Self::Trust,
        Self::Auth,
        Self::Usage,
        Self::Config,
        Self::Schema,
        Self::Locked,
        Self::Database,
        Self::Interrupted,
        Self::Terminated,
        Self::Partial,
        Self::Attention,
        Self::Ok,
    ];

    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Partial => 3,
            Self::Attention => 4,
            Self::Untied => 5,
            Self::Config => 10,
            Self::Locked => 11,
            Self::Auth => 12,
            Self::Trust => 13,
            Self::Database => 14,
            Self::Schema => 15,
            Self::Integrity => 16,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The class's word in summaries and events.
    pub fn class(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Partial => "partial",
            Self::Attention => "attention",
            Self::Untied => "untied",
            Self::Config => "config",
            Self::Locked => "locked",
            Self::Auth => "auth",
            Self::Trust => "trust",
            Self::Database => "db",
            Self::Schema => "schema",
            Self::Integrity => "integrity",
            Self::Interrupted | Self::Terminated => "interrupted",
        }
    }

    /// Of a file that could not be written: a full disk passes, and needs nothing corrected.
    pub fn of_file(error: &std::io::Error, otherwise: Self) -> Self {
        if is_full(error) { Self::Database } else { otherwise }
    }

    /// The stronger of two ends.
    pub fn or_stronger(self, other: Self) -> Self {
        let rank = |exit: Self| Self::BY_PRECEDENCE.iter().position(|e| *e == exit);
        if rank(self) <= rank(other) { self } else { other }
    }
}

/// Whether there is no room for what was to be written.
pub fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_mistake_of_the_configuration() {
        for (kind, want) in [
            (ErrorKind::StorageFull, Exit::Database),
            (ErrorKind::QuotaExceeded, Exit::Database),
            (ErrorKind::PermissionDenied, Exit::Config),
            (ErrorKind::NotADirectory, Exit::Config),
        ] {
            assert_eq!(Exit::of_file(&kind.into(), Exit::Config), want, "{kind:?}");
        }
    }

    #[test]
    fn the_stronger_end_wins_whichever_comes_first() {
        for (a, b, want) in [
            (Exit::Ok, Exit::Partial, Exit::Partial),
            (Exit::Untied, Exit::Partial, Exit::Untied),
            (Exit::Internal, Exit::Untied, Exit::Internal),
            (Exit::Auth, Exit::Database, Exit::Auth),
            (Exit::Database, Exit::Partial, Exit::Database),
            (Exit::Attention, Exit::Partial, Exit::Partial),
        ] {
            assert_eq!(a.or_stronger(b), want);
            assert_eq!(b.or_stronger(a), want);
        }
    }
}
