//! What can go wrong at the store's door, in the words that operators act on.
//!
//! A lost race, a row that changed, a closed run are answers, not errors: they stand in the
//! verbs' return types. An error here means that the step could not be done.

/// A store failure. The text says what was not done; [`StoreError::hint`] what to do next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No connection.
    #[error("the database at {address} cannot be reached")]
    Unreachable {
        /// Host and port, or the file; never a password.
        address: String,
        /// The driver's error.
        #[source]
        source: sqlx::Error,
    },
    /// An SQLite file that cannot be used as a database.
    #[error("the database {address} {problem}")]
    File {
        /// The address.
        address: String,
        /// What is wrong with the file.
        problem: &'static str,
        /// What to do next.
        hint: &'static str,
    },
    /// Login refused.
    #[error("the database at {address} refused the login: {message}")]
    Refused {
        /// Host and port.
        address: String,
        /// The server's words.
        message: String,
    },
    /// The settings cannot be a connection.
    #[error("the database setting `{field}` is not usable: {problem}")]
    Setting {
        /// Which setting.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A schema of the search path is not there: PostgreSQL passes over it in silence.
    #[error("there is no schema `{name}`, which search_path of [database] names")]
    NoSchema {
        /// The first one that is missing.
        name: String,
        /// The schemas that are there.
        known: Vec<String>,
    },
    /// A standby, or a read-only database.
    #[error("the database is read-only: {detail}")]
    ReadOnly {
        /// A replica, a read-only file, …
        detail: String,
    },
    /// A pooler in transaction mode stands between.
    #[error("a connection pooler in transaction mode answers instead of PostgreSQL: {detail}")]
    Pooler {
        /// What gave it away.
        detail: String,
    },
    /// tieout's tables are missing or older than this binary.
    #[error("tieout's tables are at schema {found}, and this version needs {wanted}")]
    SchemaBehind {
        /// Migrations found.
        found: i64,
        /// Migrations of this binary.
        wanted: i64,
        /// Where none were found: schemas that have tables of tieout's, and that `search_path`
        /// does not lead to.
        elsewhere: Vec<String>,
    },
    /// tieout's tables are newer than this binary.
    #[error("tieout's tables are at schema {found}, newer than this version's {wanted}")]
    SchemaAhead {
        /// Migrations found.
        found: i64,
        /// Migrations of this binary.
        wanted: i64,
    },
    /// The mapping does not fit the catalogue; every misfit is listed.
    #[error("the mapping of {} does not fit the database", count(.0))]
    Mapping(Vec<MappingError>),
    /// A statement failed.
    #[error("{doing} failed: {message}")]
    Query {
        /// What was being done.
        doing: &'static str,
        /// The server's message, without its source line.
        message: String,
        /// SQLSTATE, or SQLite's result code.
        code: Option<String>,
        /// The server's own hint or place.
        detail: Option<String>,
        /// Who asked, where it was refused for want of a right.
        asker: Option<Box<Asker>>,
    },
    /// What was read back is not what this version writes.
    #[error("{doing}: {problem}")]
    Unexpected {
        /// What was being done.
        doing: &'static str,
        /// What was found.
        problem: String,
    },
}

/// Whose statement was refused, and what the roles are called here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The role that asked.
    pub login: String,
    /// What the names of the roles of `tieout db roles` begin with.
    pub prefix: String,
}

/// As the roles are called where nobody says otherwise.
pub const PREFIX: &str = "tieout";

impl Asker {
    /// The role, its roles' prefix, and the command that prints their statements.
    fn words(asker: Option<&Self>) -> (String, &str, String) {
        let prefix = asker.map_or(PREFIX, |asker| asker.prefix.as_str());
        let flag = if prefix == PREFIX { String::new() } else { format!(" --prefix {prefix}") };
        let login = asker.map_or("this role".to_owned(), |asker| format!("`{}`", asker.login));
        (login, prefix, format!("`tieout db roles{flag}`"))
    }
}

/// How many of a database's schemas are named.
const SCHEMAS_NAMED: usize = 10;

fn count(errors: &[MappingError]) -> String {
    let mut tables: Vec<&str> = errors.iter().map(|e| e.table.as_str()).collect();
    tables.dedup();
    match tables.as_slice() {
        [only] => format!("table `{only}`"),
        several => format!("{} tables", several.len()),
    }
}

/// One misfit between the mapping and the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[[table]] {table}: {field}: {problem}; expected {expected}")]
pub struct MappingError {
    /// The mapping's name.
    pub table: String,
    /// The mapping's field: `amount.column`, `key`, `map.from`.
    pub field: String,
    /// What is wrong, with the column and its type.
    pub problem: String,
    /// What was expected.
    pub expected: String,
    /// What is changed for it.
    pub mend: Mend,
}

/// What is changed for a misfit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mend {
    /// The mapping, or the table.
    Mapping,
    /// The rights of the role.
    Rights,
    /// What row-level security shows to the role, or to the owner of a view.
    Sight,
}

impl Mend {
    /// The next step.
    pub fn next(self) -> &'static str {
        match self {
            Self::Mapping => "correct tieout.toml, then `tieout doctor`",
            Self::Rights => {
                "the owner of the tables grants what is missing: `tieout db roles`, at the owner's \
                 address, prints the statements; then `tieout doctor`"
            }
            Self::Sight => {
                "a superuser's `alter role … bypassrls` for that role, or a policy that shows it \
                 every row; then `tieout doctor`"
            }
        }
    }
}

/// The next step for all of them; each kind once.
fn mends(errors: &[MappingError]) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for error in errors {
        let step = error.mend.next();
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps.join("; ")
}

/// The kinds that exit codes and retries are chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorClass {
    /// Exit 10.
    Config,
    /// Exit 12.
    Auth,
    /// Exit 14.
    Database,
    /// Exit 15.
    Schema,
    /// Exit 1.
    Internal,
}

/// What running again would not mend.
enum Trouble<'m> {
    /// The role may not look into this schema.
    Closed(&'m str),
    /// The role may not do it.
    NoRight,
    /// The role lacks a right on what is the user's.
    NoRightThere,
    /// A table of tieout's is missing.
    NotMade,
    /// A name of tieout's is taken.
    LeftOver,
    /// The file is something else than a database.
    NoDatabase,
    /// The database's disk has no room.
    Full,
    /// Anything else: another time it may work.
    Other,
}

/// How the server says that a role may not look into a schema, whose name follows.
pub const CLOSED_SCHEMA: &str = "permission denied for schema ";

/// What the user's tables are made of, in the server's words.
const USERS: [&str; 4] = ["for table ", "for view ", "for column ", "for sequence "];

fn trouble<'m>(message: &'m str, code: Option<&str>) -> Trouble<'m> {
    let is_ours = message.contains("tieout_");
    if let Some(schema) = message.strip_prefix(CLOSED_SCHEMA).filter(|_| code == Some("42501")) {
        return Trouble::Closed(schema);
    }
    match code {
        Some("42501") if !is_ours && USERS.iter().any(|of| message.contains(of)) => {
            Trouble::NoRightThere
        }
        Some("42501") => Trouble::NoRight,
        Some("42P01") if is_ours => Trouble::NotMade,
        Some("42P07" | "42710" | "42723") if is_ours => Trouble::LeftOver,
        _any if is_ours && message.contains("no such table") => Trouble::NotMade,
        _any if is_ours && message.contains("already exists") => Trouble::LeftOver,
        // The words of SQLite, which looks into a file as it is first read.
        _any if message.contains("file is not a database") => Trouble::NoDatabase,
        Some("53100" | "13") => Trouble::Full,
        _any => Trouble::Other,
    }
}

/// What to do about a schema that a role may not look into. Nor can the statements of all roles be
/// printed for it then.
fn closed(schema: &str, asker: Option<&Asker>) -> String {
    let login = asker.map_or("LOGIN".to_owned(), |asker| in_path(&asker.login));
    let prefix = asker.map_or(PREFIX, |asker| asker.prefix.as_str());
    let run = in_path(&format!("{prefix}_run"));
    let usage = format!("`grant usage on schema {} to {login}`", in_path(schema));
    match login == run {
        true => format!("the schema's owner says {usage}; then `tieout doctor`"),
        false => format!(
            "the schema's owner says {usage}, or, where that role is made, `grant {run} to \
             {login}`; then `tieout doctor`"
        ),
    }
}

/// What to do where tieout's tables stand in schemas that `search_path` does not lead to.
pub fn off_path(schemas: &[String]) -> String {
    format!(
        "tieout's tables stand in schema {}, which search_path does not lead to: name it in \
         search_path of [database]; or, for a second set of its own, `tieout db migrate`",
        schemas.join(", ")
    )
}

/// What to do about a role that may not do something of tieout's own.
fn no_right(asker: Option<&Asker>) -> String {
    let (login, prefix, roles) = Asker::words(asker);
    format!(
        "{login} may not do that: a run needs the role {prefix}_run, a dry run {prefix}_read; what \
         a person says (pause and resume, deliver retry and what else changes a delivery, files \
         release, deciding cases) needs {prefix}_people; {roles} prints the statements"
    )
}

/// What to do about a role that may not do something to the user's tables.
fn no_right_there(asker: Option<&Asker>) -> String {
    let (login, _, roles) = Asker::words(asker);
    format!(
        "the owner of what the server names grants {login} what it lacks there, on every column \
         that is mapped: `tieout config check --connect` names what is missing, and {roles} prints \
         the statements"
    )
}

/// Said of a session that was opened to look.
pub const READ_ONLY_SESSIONS: &str = "sessions of this role or database are read-only";

/// What to do about a schema that is not there.
fn other_schema(known: &[String]) -> String {
    let shown: Vec<String> = known.iter().take(SCHEMAS_NAMED).map(|name| in_path(name)).collect();
    let more = if known.len() > shown.len() { ", …" } else { "" };
    format!("correct search_path in tieout.toml; the database has {}{more}", shown.join(", "))
}

/// A schema as a search path has it: PostgreSQL reads a name without quotes in small letters.
fn in_path(name: &str) -> String {
    let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
    let is_bare = name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    match is_bare {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

impl StoreError {
    /// Whether PostgreSQL does not take the values that it was given, and will not another time: a
    /// data exception, a limit of an index.
    pub fn is_of_values(&self) -> bool {
        self.is_of_class("22") || self.is_of_class("54")
    }

    /// Whether the SQLSTATE is of this class.
    pub fn is_of_class(&self, class: &str) -> bool {
        let Self::Query { code: Some(code), .. } = self else { return false };
        code.len() == 5 && code.starts_with(class)
    }

    /// The class that the exit code is chosen by.
    pub fn class(&self) -> StoreErrorClass {
        match self {
            Self::Setting { .. }
            | Self::NoSchema { .. }
            | Self::Mapping(_)
            | Self::Pooler { .. } => StoreErrorClass::Config,
            // DESIGN section 4: a replica is refused at start as a configuration error.
            Self::ReadOnly { .. } => StoreErrorClass::Config,
            Self::Refused { .. } => StoreErrorClass::Auth,
            Self::Unreachable { .. } | Self::File { .. } => StoreErrorClass::Database,
            Self::Query { message, code, .. } => match trouble(message, code.as_deref()) {
                Trouble::Closed(_) | Trouble::NoRight | Trouble::NoRightThere => {
                    StoreErrorClass::Auth
                }
                Trouble::NotMade | Trouble::LeftOver => StoreErrorClass::Schema,
                Trouble::NoDatabase | Trouble::Full | Trouble::Other => StoreErrorClass::Database,
            },
            Self::SchemaBehind { .. } | Self::SchemaAhead { .. } => StoreErrorClass::Schema,
            Self::Unexpected { .. } => StoreErrorClass::Internal,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unreachable { source: sqlx::Error::Tls(_), .. } => {
                "check sslmode in [database] url: the server may speak no TLS, or its certificate \
                 may be of an authority that this machine does not know"
            }
            Self::Unreachable { source: sqlx::Error::Protocol(_), .. } => {
                "check the host and the port in [database] url: what answers there does not speak \
                 as PostgreSQL does"
            }
            Self::Unreachable { .. } => "check [database] url and that the server is up",
            Self::File { hint, .. } => hint,
            Self::Refused { message, .. } if message.contains("no encryption") => {
                "the server may take encrypted connections alone: add sslmode=require (or \
                 verify-full) to [database] url; where it has one, check the user and the host in \
                 the server's pg_hba.conf"
            }
            Self::Refused { .. } => "check the user and the password setting of [database]",
            Self::Mapping(errors) if !errors.is_empty() => return Some(mends(errors)),
            Self::NoSchema { known, .. } => return Some(other_schema(known)),
            Self::Setting { .. } | Self::Mapping(_) => Mend::Mapping.next(),
            // The words of SQLite, which has no replicas.
            Self::ReadOnly { detail } if detail.contains("readonly database") => {
                "let the user that runs tieout write the file and its folder (SQLite keeps its log \
                 beside it); where [database] url says mode=ro, take that out"
            }
            Self::ReadOnly { detail } if detail == READ_ONLY_SESSIONS => {
                "let [database] name a login whose sessions may write \
                 (default_transaction_read_only); a dry run needs no other"
            }
            Self::ReadOnly { .. } => {
                "point [database] url at the primary: a replica lags, and lag looks like absence"
            }
            Self::Pooler { .. } => {
                "give [database] url the server's own address, or the pooler's session-mode port"
            }
            Self::SchemaBehind { elsewhere, .. } if !elsewhere.is_empty() => {
                return Some(off_path(elsewhere));
            }
            Self::SchemaBehind { .. } => "run `tieout db migrate`",
            Self::SchemaAhead { .. } => "install the newer tieout",
            Self::Query { message, code, asker, .. } => match trouble(message, code.as_deref()) {
                Trouble::Closed(schema) => return Some(closed(schema, asker.as_deref())),
                Trouble::NoRight => return Some(no_right(asker.as_deref())),
                Trouble::NoRightThere => return Some(no_right_there(asker.as_deref())),
                Trouble::NotMade => "run `tieout db migrate`",
                Trouble::NoDatabase => "check [database] url: that file is no SQLite database",
                Trouble::LeftOver => {
                    "something of that name was left over: look at it and drop it as its owner, \
                     then `tieout db migrate`; nothing of this step was written"
                }
                Trouble::Full => {
                    "make room on the disk of the database, then run again: nothing of this step \
                     was written"
                }
                // The connection's own failure: a commit may have landed without an answer.
                Trouble::Other if code.is_none() => {
                    "run again when the database is well: what was committed stands, whole, and \
                     the rest was never written"
                }
                Trouble::Other => "nothing of this step was written; run again",
            },
            Self::Unexpected { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_not_mended_in_the_file() {
        let misfit = |mend| MappingError {
            table: "t".to_owned(),
            field: "read".to_owned(),
            problem: "p".to_owned(),
            expected: "e".to_owned(),
            mend,
        };
        let of = |mends: &[Mend]| {
            StoreError::Mapping(mends.iter().map(|mend| misfit(*mend)).collect()).hint().unwrap()
        };
        let rights = of(&[Mend::Rights, Mend::Rights]);
        assert_eq!(rights.matches("tieout db roles").count(), 1, "{rights}");
        assert!(!rights.contains("tieout.toml"), "{rights}");
        assert!(of(&[Mend::Sight]).contains("bypassrls"));
        let both = of(&[Mend::Mapping, Mend::Rights]);
        assert!(both.contains("correct tieout.toml") && both.contains("db roles"), "{both}");
    }

    #[test]
    fn a_hint_is_of_what_refused() {
        let read_only = |detail: &str| StoreError::ReadOnly { detail: detail.to_owned() };
        let refused = |message: &str| StoreError::Refused {
            address: "h/d".to_owned(),
            message: message.to_owned(),
        };
        let unreachable = |source| StoreError::Unreachable { address: "h/d".to_owned(), source };
        for (error, part) in [
            (read_only("the server is a replica"), "at the primary"),
            (read_only(READ_ONLY_SESSIONS), "a login whose sessions may write"),
            (
                read_only("opening a run: attempt to write a readonly database"),
                "write the file and its folder",
            ),
            (refused("password authentication failed for user \"u\""), "the password setting"),
            (refused("pg_hba.conf rejects connection for host, no encryption"), "sslmode=require"),
            (unreachable(sqlx::Error::Tls("no TLS".into())), "check sslmode"),
            (unreachable(sqlx::Error::PoolTimedOut), "the server is up"),
            (unreachable(sqlx::Error::Protocol("0x00".into())), "the host and the port"),
        ] {
            let hint = error.hint().unwrap();
            assert!(hint.contains(part), "{error}: {hint}");
        }
    }

    #[test]
    fn who_was_refused_is_named_with_the_roles_as_they_are_called_here() {
        let asker = |prefix: &str| {
            Some(Box::new(Asker { login: "app".to_owned(), prefix: prefix.to_owned() }))
        };
        for (message, asker, parts) in [
            (
                "permission denied for table tieout_runs",
                None,
                ["this role may", "role tieout_run,"],
            ),
            (
                "permission denied for table tieout_runs",
                asker("pay"),
                ["`app` may not do that", "pay_people; `tieout db roles --prefix pay` prints"],
            ),
            (
                "permission denied for table tieout_runs",
                asker("tieout"),
                ["`app` may not do that", "tieout_people; `tieout db roles` prints"],
            ),
            (
                "permission denied for table orders",
                asker("pay"),
                ["grants `app` what it lacks", "`tieout db roles --prefix pay` prints"],
            ),
            (
                "permission denied for schema tt",
                asker("pay"),
                ["`grant usage on schema tt to app`, or", "`grant pay_run to app`; then"],
            ),
            (
                "permission denied for schema My tieout_x",
                asker("tieout"),
                ["`grant usage on schema \"My tieout_x\" to app`", "`grant tieout_run to app`"],
            ),
            (
                "permission denied for schema tt",
                None,
                ["`grant usage on schema tt to LOGIN`", "`grant tieout_run to LOGIN`"],
            ),
        ] {
            let (message, code) = (message.to_owned(), Some("42501".to_owned()));
            let error = StoreError::Query { doing: "trying", message, code, detail: None, asker };
            let said = error.hint().unwrap();
            assert!(parts.iter().all(|part| said.contains(part)), "{error}: {said}");
        }
    }

    #[test]
    fn a_schema_that_is_not_there_is_told_with_those_that_are() {
        let known = (0..12).map(|n| format!("s{n}")).collect();
        for (name, want) in [("shop", "shop"), ("Shop", "\"Shop\""), ("a\"b", "\"a\"\"b\"")] {
            assert_eq!(in_path(name), want);
        }
        let error = StoreError::NoSchema { name: "shpo".to_owned(), known };
        assert_eq!(error.class(), StoreErrorClass::Config);
        assert!(error.to_string().contains("no schema `shpo`, which search_path"), "{error}");
        let said = error.hint().unwrap();
        assert!(
            said.ends_with("the database has s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, …"),
            "{said}"
        );
    }

    #[test]
    fn what_another_try_would_not_mend_has_a_way_out_of_its_own() {
        for (message, code, class, hint) in [
            ("permission denied for table a", "42501", StoreErrorClass::Auth, "every column"),
            (
                "permission denied for table tieout_pauses",
                "42501",
                StoreErrorClass::Auth,
                "tieout_people",
            ),
            (
                "relation \"tieout_runs\" does not exist",
                "42P01",
                StoreErrorClass::Schema,
                "migrate",
            ),
            ("relation \"orders\" does not exist", "42P01", StoreErrorClass::Database, "run again"),
            ("function \"tieout_x\" already exists", "42723", StoreErrorClass::Schema, "drop it"),
            ("table tieout_runs already exists", "1", StoreErrorClass::Schema, "drop it"),
            ("no such table: tieout_references", "1", StoreErrorClass::Schema, "migrate"),
            ("deadlock detected", "40P01", StoreErrorClass::Database, "run again"),
            ("could not extend file", "53100", StoreErrorClass::Database, "make room on the disk"),
            ("database or disk is full", "13", StoreErrorClass::Database, "make room on the disk"),
        ] {
            let (message, code) = (message.to_owned(), Some(code.to_owned()));
            let error =
                StoreError::Query { doing: "trying", message, code, detail: None, asker: None };
            let said = error.hint().unwrap();
            assert!(error.class() == class && said.contains(hint), "{error}: {said}");
        }
    }
}
