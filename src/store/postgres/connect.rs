//! Opening PostgreSQL, and refusing at start what would make every later answer doubtful: a
//! replica, a read-only session, a pooler that hands statements to other sessions.
//!
//! A server takes the session's settings at its start. A pooler refuses them or drops them,
//! whatever its mode: there they are set once the sessions have shown that they are sessions.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgRow, PgSslMode};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Postgres, Row as _,
};

use crate::store::error::{READ_ONLY_SESSIONS, StoreError};
use crate::store::pool;
use crate::store::postgres::errors::{answered, failed, shown};
use crate::store::postgres::schemas;
use crate::store::postgres::silence::in_time;
use crate::store::settings::{DatabaseSettings, odd_address, shown_address};

/// A connection that lay idle for longer is asked whether it still lives.
const IDLE_UNASKED: Duration = Duration::from_millis(500);

/// A transaction of tieout's is never idle: a process that was stopped in the middle of one must
/// not hold the user's rows for longer.
pub(super) const IDLE_IN_TRANSACTION: TimeDelta = TimeDelta::seconds(60);

/// How many sessions are opened beside each other to see whether they stay apart. Two counts: a
/// pooler that takes its server connections in turn may give each its own again by chance.
const BESIDE_EACH_OTHER: [usize; 2] = [2, 3];

/// How often each count is looked at. A busy pooler hands its server connections out by chance,
/// and of four, two sessions get their own again one time in twelve.
const LOOKS: usize = 6;

/// How long the reason of a failure is looked for.
const ONE_MORE_TRY: Duration = Duration::from_secs(5);

/// The server itself refuses a dry run every write, and every lock of a row.
const READ_ONLY: (&str, &str) = ("default_transaction_read_only", "on");

/// A session's settings: name and value.
type Words = Vec<(&'static str, String)>;

/// Opens the pool and probes the session; for a dry run, one that is read-only.
pub(super) async fn open(
    settings: &DatabaseSettings,
    rehearses: bool,
) -> Result<(PgPool, String), StoreError> {
    let url = settings.address()?;
    settings.check_search_path()?;
    let address = shown_address(url);
    let nonce = fresh_nonce();
    let words = session_words(settings, &nonce);
    let options = options(url)?;
    let options = match settings.read_password().await? {
        Some(password) => options.password(&password),
        None => options,
    };
    let direct = options.clone().options(words.iter().map(|(name, value)| (*name, value)));
    // Never through a pooler: one that forgets nothing would hand it on to the application.
    let direct = if rehearses { direct.options([READ_ONLY]) } else { direct };
    match connect(settings, direct, Vec::new()).await {
        Ok(pool) => {
            let session = ask(&pool, &address).await?;
            if session.nonce.as_deref() == Some(&nonce) {
                session.check(rehearses)?;
                return Ok((pool, address));
            }
            pool.close().await;
        }
        Err(error) if is_about_startup(&error) => {}
        Err(sqlx::Error::PoolTimedOut) => return Err(refused(why_not(&options).await, &address)),
        Err(error) => return Err(refused(error, &address)),
    }
    // No setting of the start may be left: a strict pooler refuses this one of the driver's too.
    let options = options.extra_float_digits(None);
    see_sessions_apart(settings, &options, &address).await?;
    let pool = connect(settings, options, words).await.map_err(|e| refused(e, &address))?;
    ask(&pool, &address).await?.check(rehearses)?;
    Ok((pool, address))
}

/// The pool; `words` are set in each session once it is open.
async fn connect(
    settings: &DatabaseSettings,
    options: PgConnectOptions,
    words: Words,
) -> Result<PgPool, sqlx::Error> {
    let (names, values): (Vec<&str>, Vec<String>) = words.into_iter().unzip();
    let words = Arc::new((names, values));
    pool::lasting::<Postgres>(settings.connections.max(2))
        .acquire_timeout(duration(settings.connect_timeout))
        // The driver asks each whether it lives as it comes back; one that lay idle since, as while
        // a PSP is asked, may have been ended by the server or by something between.
        .test_before_acquire(false)
        .before_acquire(|connection, lay| {
            Box::pin(
                async move { Ok(lay.idle_for < IDLE_UNASKED || connection.ping().await.is_ok()) },
            )
        })
        .after_connect(move |connection, _| {
            let words = Arc::clone(&words);
            Box::pin(async move { set(connection, &words.0, &words.1).await })
        })
        .connect_with(options)
        .await
}

/// The pool tries again until its time is over and then says only that: what keeps a connection
/// from being made, asked once more without a pool.
async fn why_not(options: &PgConnectOptions) -> sqlx::Error {
    match tokio::time::timeout(ONE_MORE_TRY, PgConnection::connect_with(options)).await {
        Ok(Err(error)) => error,
        Ok(Ok(_)) | Err(_) => sqlx::Error::PoolTimedOut,
    }
}

async fn set(
    connection: &mut PgConnection,
    names: &[&str],
    values: &[String],
) -> Result<(), sqlx::Error> {
    if names.is_empty() {
        return Ok(());
    }
    let sql = "select count(set_config(w.name, w.value, false)) \
               from unnest($1::text[], $2::text[]) as w (name, value)";
    sqlx::query(sql).bind(names).bind(values).execute(connection).await.map(|_| ())
}

fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    if let Some(how) = odd_address(url) {
        let problem = format!("`{}`: {how}", shown_address(url));
        return Err(StoreError::Setting { field: "url".to_owned(), problem });
    }
    let parsed = PgConnectOptions::from_str(url).map_err(|_| StoreError::Setting {
        field: "url".to_owned(),
        problem: format!("`{}` is no PostgreSQL address", shown_address(url)),
    })?;
    warn_of_unknown(url);
    let is_local = parsed.get_socket().is_some()
        || parsed.get_host().starts_with('/')
        || matches!(parsed.get_host(), "localhost" | "127.0.0.1" | "::1" | "[::1]");
    let names_mode = url.contains("sslmode=") || url.contains("ssl-mode=");
    let parsed = match is_local || names_mode {
        true => parsed,
        // The driver has read PGSSLMODE.
        false => {
            let mode = encrypting(parsed.get_ssl_mode());
            parsed.ssl_mode(mode)
        }
    };
    // A slow statement is no news to whoever reads cron's mail.
    Ok(parsed.application_name("tieout").disable_statement_logging())
}

/// The parameters of an address that the driver knows; `options[…]` besides.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// Names the parameters that the driver passes over: its own warning quotes their values, one of
/// which may be a secret, and is switched off.
fn warn_of_unknown(url: &str) {
    let (_, parameters) = url.split_once('?').unwrap_or((url, ""));
    let names = parameters.split('&').filter_map(|one| one.split_once('=')).map(|(name, _)| name);
    let is_known = |name: &&str| PARAMETERS.contains(name) || name.starts_with("options[");
    for name in names.filter(|name| !is_known(name)) {
        tracing::warn!(parameter = name, "The database's address has an unknown parameter");
    }
}

/// How a server on another machine is spoken to where the address names no mode: as the environment
/// says, so far as that encrypts. A word that nobody set or wrote right is the driver's `prefer`.
fn encrypting(mode: PgSslMode) -> PgSslMode {
    match mode {
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => mode,
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => PgSslMode::VerifyFull,
    }
}

fn session_words(settings: &DatabaseSettings, nonce: &str) -> Words {
    let millis = |span: TimeDelta| span.num_milliseconds().to_string();
    let mut words = vec![
        ("statement_timeout", millis(settings.statement_timeout)),
        ("lock_timeout", millis(settings.lock_timeout)),
        ("idle_in_transaction_session_timeout", millis(IDLE_IN_TRANSACTION)),
        // What texts look like must not depend on the role's or the database's settings.
        ("bytea_output", "hex".to_owned()),
        ("standard_conforming_strings", "on".to_owned()),
        ("IntervalStyle", "postgres".to_owned()),
        ("default_transaction_isolation", "read committed".to_owned()),
        // Estimates are of the tables as they were before the run: what they compile for a third
        // of a second runs for less.
        ("jit", "off".to_owned()),
        ("tieout.session", nonce.to_owned()),
    ];
    if let Some(path) = &settings.search_path {
        words.push(("search_path", path.clone()));
    }
    words
}

fn fresh_nonce() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// What the server says of the session.
struct Session {
    nonce: Option<String>,
    is_replica: bool,
    is_read_only: bool,
}

impl Session {
    fn check(&self, rehearses: bool) -> Result<(), StoreError> {
        if self.is_replica {
            return Err(StoreError::ReadOnly { detail: "the server is a replica".to_owned() });
        }
        if self.is_read_only && !rehearses {
            return Err(StoreError::ReadOnly { detail: READ_ONLY_SESSIONS.to_owned() });
        }
        Ok(())
    }
}

/// Its first statement is waited for no longer than a connection.
async fn ask(pool: &PgPool, address: &str) -> Result<Session, StoreError> {
    // Simple, as is all that is asked before the sessions are known to be sessions.
    let sql = sqlx::raw_sql(
        "select current_setting('tieout.session', true), pg_is_in_recovery(), \
         current_setting('transaction_read_only')::boolean",
    );
    let read = |row: PgRow| -> Result<Session, sqlx::Error> {
        let (nonce, is_replica) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Session { nonce, is_replica, is_read_only: row.try_get(2)? })
    };
    let patience = pool.options().get_acquire_timeout();
    let row = in_time(patience, address, pool.fetch_one(sql)).await?;
    row.and_then(read).map_err(failed("asking the server what it is"))
}

/// Refuses a pooler whose sessions are not sessions.
async fn see_sessions_apart(
    settings: &DatabaseSettings,
    options: &PgConnectOptions,
    address: &str,
) -> Result<(), StoreError> {
    let patience = duration(settings.connect_timeout);
    // A pooler lets clients in whether its server is there or not: one session, first.
    let answered = in_time(patience, address, Box::pin(alone(options))).await?;
    answered.map_err(|error| refused(error, address))?;
    for count in BESIDE_EACH_OTHER {
        // Connections of its own and none of a pool's: left halfway, they are closed.
        let seen = tokio::time::timeout(patience, mixed_up(options, count)).await;
        let detail = match seen {
            Ok(Ok(None)) => continue,
            Ok(Ok(Some(detail))) => detail,
            Ok(Err(error)) => return Err(refused(error, address)),
            Err(_elapsed) => format!("{count} sessions could not be open beside each other"),
        };
        return Err(StoreError::Pooler { detail });
    }
    Ok(())
}

/// One session that answers a statement.
async fn alone(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let mut session = PgConnection::connect_with(options).await?;
    session.execute(sqlx::raw_sql("select 1")).await?;
    session.close().await
}

/// Whether sessions see each other's settings; the text says how. Each leaves a mark, and what is
/// handed from one to another later shows a wrong one.
async fn mixed_up(options: &PgConnectOptions, count: usize) -> Result<Option<String>, sqlx::Error> {
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        let mut session = PgConnection::connect_with(options).await?;
        let mark = fresh_nonce();
        // Simple queries: through a pooler that mixes sessions up, prepared ones would as well.
        let sql = format!("select set_config('tieout.session', '{mark}', false)");
        session.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await?;
        sessions.push((session, mark));
    }
    let mut mixed = None;
    for look in 0..LOOKS {
        mixed = seen_mixed_up(&mut sessions).await?;
        if mixed.is_some() {
            break;
        }
        sessions.rotate_left(1 + look % 2);
    }
    // Closed whatever was seen: what a pooler still holds open for them it rolls back.
    for (session, _) in sessions {
        session.close().await?;
    }
    Ok(mixed)
}

/// One look: all hold a transaction open at once, each asks for its mark.
async fn seen_mixed_up(
    sessions: &mut [(PgConnection, String)],
) -> Result<Option<String>, sqlx::Error> {
    for (session, _) in sessions.iter_mut() {
        if let Err(error) = session.execute(sqlx::raw_sql("begin")).await {
            return Ok(Some(shown(&error)));
        }
    }
    let mut mixed = None;
    for (session, mark) in sessions.iter_mut() {
        let sql = "select current_setting('tieout.session', true)";
        let row = session.fetch_one(sqlx::raw_sql(sql)).await?;
        let seen: Option<String> = row.try_get(0)?;
        if seen.as_deref() != Some(mark) {
            mixed = Some("a session does not keep its settings between transactions".to_owned());
        }
    }
    for (session, _) in sessions {
        session.execute(sqlx::raw_sql("rollback")).await?;
    }
    Ok(mixed)
}

/// What poolers say to a session's own settings.
fn is_about_startup(error: &sqlx::Error) -> bool {
    answered(error)
        .is_some_and(|pg| pg.code() == "08P01" && pg.message().contains("startup parameter"))
}

fn refused(error: sqlx::Error, address: &str) -> StoreError {
    let address = address.to_owned();
    let Some((code, message)) =
        answered(&error).map(|pg| (pg.code().to_owned(), pg.message().to_owned()))
    else {
        return StoreError::Unreachable { address, source: error };
    };
    match code.as_str() {
        "08P01" if is_about_startup(&error) => StoreError::Pooler { detail: message },
        code if code.starts_with("28") => StoreError::Refused { address, message },
        "3D000" => StoreError::Setting { field: "url".to_owned(), problem: message },
        "22023" if message.contains("search_path") => {
            let problem = format!("{message}: {}", schemas::HOW);
            StoreError::Setting { field: "search_path".to_owned(), problem }
        }
        _other => StoreError::Unreachable { address, source: error },
    }
}

fn duration(span: TimeDelta) -> Duration {
    span.to_std().unwrap_or(Duration::from_secs(15))
}
