//! What is refused at start with exit 10 and the way out, and what must do.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tieout::store::driver::Driver as _;
use tieout::store::error::StoreErrorClass;
use tieout::store::postgres::PgStore;
use tieout::store::settings::DatabaseSettings;

use super::{assert_paid_once, go_through, shop_with};
use crate::run::shop::{Engine, Ran, Shop, Words};
use crate::support::postgres::postgres_database;

/// Nothing was looked at, nothing was written, and the way out is told.
async fn assert_refused(shop: &Shop, says: &[&str]) {
    let before = shop.dump().await;
    let ran = shop.tieout(&["run"]).await.ended(10);
    for says in says {
        assert!(ran.stderr.contains(says), "`{says}` is not in: {}", ran.stderr);
    }
    assert_eq!(shop.dump().await, before);
}

#[tokio::test]
async fn poolers_in_transaction_mode_are_refused() {
    let mut shop = shop_with(Words::default(), 1..=1).await;
    let database = shop.server().unwrap();
    for url in [database.pgbouncer_url(), database.lenient_pgbouncer_url()] {
        go_through(&mut shop, url);
        let says = ["a connection pooler in transaction mode", "hint: ", "session-mode"];
        assert_refused(&shop, &says).await;
    }
    assert_eq!(shop.status(1).await, "processing");
}

/// However busy it is: other clients' statements lie between the probe's.
#[tokio::test]
async fn a_busy_pooler_in_transaction_mode_is_refused_every_time() {
    let database = postgres_database().await;
    for url in [database.pgbouncer_url(), database.lenient_pgbouncer_url()] {
        let mut others = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let url = url.clone();
            others.spawn(async move {
                use sqlx::{Connection as _, Executor as _};
                let mut other = sqlx::PgConnection::connect(&url).await.unwrap();
                loop {
                    other.execute(sqlx::raw_sql("select 1")).await.unwrap();
                }
            });
        }
        for _ in 0..50 {
            let refused = PgStore::connect(&DatabaseSettings::of_url(&url)).await.unwrap_err();
            assert_eq!(refused.class(), StoreErrorClass::Config, "{refused:?}");
        }
    }
}

#[tokio::test]
async fn a_pooler_in_session_mode_does() {
    let words = Words { database_more: "lock_timeout = \"1s\"", ..Words::default() };
    let mut shop = shop_with(words, 1..=3).await;
    let url = shop.server().unwrap().session_pgbouncer_url();
    go_through(&mut shop, url.clone());
    shop.tieout(&["db", "migrate"]).await.ended(0);
    shop.tieout(&["run", "--dry-run"]).await.ended(0);
    // The settings of the session hold: a row that somebody keeps is not waited for.
    let mut other = shop.begin_holding(2).await;
    shop.run().await;
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.status(2).await, "processing");
    other.rollback().await;
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=3).await;
    // Each session has them, and none of the last one's.
    let settings = DatabaseSettings { connections: 3, ..DatabaseSettings::of_url(&url) };
    let store = PgStore::connect(&settings).await.unwrap();
    let (one, two, three) = tokio::join!(store.now(), store.now(), store.now());
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    store.close().await;
}

#[tokio::test]
async fn a_replica_is_refused() {
    let mut shop = shop_with(Words::default(), 1..=1).await;
    let url = shop.server().unwrap().replica_url().await;
    go_through(&mut shop, url);
    assert_refused(&shop, &["the server is a replica", "point [database] url at the primary"])
        .await;
    // A plan of what lags would be another plan.
    let dry = shop.tieout(&["run", "--dry-run"]).await.ended(10);
    assert!(dry.stderr.contains("the server is a replica"), "{}", dry.stderr);
}

#[tokio::test]
async fn a_read_only_database_is_refused() {
    let shop = shop_with(Words::default(), 1..=1).await;
    let name = shop.server().unwrap().name().to_owned();
    shop.raw
        .execute(&format!("alter database {name} set default_transaction_read_only = on"))
        .await;
    assert_refused(&shop, &["the database is read-only"]).await;
}

/// A role of the test's own with everything that a run needs.
async fn role(shop: &Shop) -> String {
    let name = shop.server().unwrap().name().replace("t_", "r_");
    shop.raw
        .execute(&format!(
            "create role {name} login; grant usage on schema public to {name}; \
             grant all on all tables in schema public to {name}; \
             grant all on all sequences in schema public to {name}"
        ))
        .await;
    name
}

fn address_of(shop: &Shop, role: &str) -> String {
    shop.server().unwrap().url().replace("postgres@", &format!("{role}@"))
}

#[tokio::test]
async fn a_role_that_may_not_write_is_refused() {
    let mut shop = shop_with(Words::default(), 1..=1).await;
    let role = role(&shop).await;
    let url = address_of(&shop, &role);
    go_through(&mut shop, url);
    shop.raw.execute(&format!("alter role {role} set default_transaction_read_only = on")).await;
    assert_refused(&shop, &["the database is read-only"]).await;
    // What it may see is as true as ever.
    let dry = shop.tieout(&["run", "--dry-run"]).await.ended(0);
    assert!(dry.stdout.contains("1 → succeeded"), "{}", dry.stdout);
    assert_eq!(shop.status(1).await, "processing");
    let reading =
        [&["runs", "list"][..], &["cases", "list"], &["audit", "verify"], &["files", "list"]];
    for command in reading {
        shop.tieout(command).await.ended(0);
    }
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

/// Two sets of tieout's tables would know nothing of each other: what one decided or paused is free
/// for the other.
#[tokio::test]
async fn tables_are_made_once_and_looked_for_where_they_were_made() {
    let mut shop = shop_with(Words::default(), 1..=1).await;
    let sets = "select n.nspname::text from pg_class c \
                join pg_namespace n on n.oid = c.relnamespace \
                where c.relname = 'tieout_checks' order by 1";
    // A schema of the login's own name comes first in the usual path.
    shop.raw.execute("create schema postgres").await;
    shop.tieout(&["db", "migrate"]).await.ended(0);
    assert_eq!(shop.texts(sets).await, ["public"]);
    // One that has a set of its own, and that the login may not look into, is not passed over.
    let role = role(&shop).await;
    shop.raw
        .execute(&format!(
            "create schema meant; create table meant.tieout_migrations (n integer); \
             alter role {role} set search_path = meant, public"
        ))
        .await;
    let url = address_of(&shop, &role);
    go_through(&mut shop, url);
    for command in [&["run"][..], &["db", "status"], &["db", "migrate"]] {
        let ran = shop.tieout(command).await.ended(12);
        assert!(ran.stderr.contains("permission denied for schema meant"), "{}", ran.stderr);
    }
    assert_eq!(shop.status(1).await, "processing");
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

#[tokio::test]
async fn row_level_security_on_the_role_is_refused() {
    let mut shop = shop_with(Words::default(), 1..=2).await;
    let role = role(&shop).await;
    let url = address_of(&shop, &role);
    go_through(&mut shop, url);
    shop.raw
        .execute(
            "alter table payments enable row level security; \
             create policy one on payments using (id = 1)",
        )
        .await;
    let says = ["row-level security hides rows", "payments", "hint: a superuser's `alter role"];
    assert_refused(&shop, &says).await;
    // With everything in sight it works.
    shop.raw.execute(&format!("alter role {role} bypassrls")).await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=2).await;
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

/// Points the shop's program at another address, and its mapping at what these words name.
fn read_by(shop: &mut Shop, url: &str, words: &str) {
    go_through(shop, url.to_owned());
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let read = "read = \"payments\"";
    assert!(text.contains(read), "{text}");
    std::fs::write(&path, text.replace(read, words)).unwrap();
}

/// A view reads as its owner, or as whoever asks it: what a policy hides from that role no run
/// sees, however many views lie between.
#[tokio::test]
async fn row_level_security_below_a_view_is_refused() {
    let mut shop = shop_with(Words::default(), 1..=2).await;
    let role = role(&shop).await;
    let keeper = format!("{role}_k");
    let url = address_of(&shop, &role);
    shop.raw
        .execute(&format!(
            "create role {keeper}; grant all on payments to {keeper}; \
             alter table payments enable row level security; \
             create policy one on payments using (id = 1); \
             create view asked with (security_invoker = true) as select * from payments; \
             create view kept as select * from payments; \
             alter view kept owner to {keeper}; \
             create view far as select * from kept; \
             grant select, update on asked, kept, far to {role}"
        ))
        .await;
    let says = |view: &'static str| {
        ["row-level security hides rows", "payments", view, "hint: a superuser's `alter role"]
    };
    read_by(&mut shop, &url, "read = \"asked\"");
    assert_refused(&shop, &says("asked")).await;
    let checked = shop.tieout(&["config", "check", "--connect"]).await.ended(10);
    assert!(checked.stderr.contains("row-level security hides rows"), "{}", checked.stderr);
    let looked = shop.tieout(&["doctor"]).await.ended(10);
    assert!(looked.stdout.contains("row-level security hides rows"), "{}", looked.stdout);
    // The run's own role sees every row, and a view's owner does not.
    shop.raw.execute(&format!("create policy whole on payments to {role} using (true)")).await;
    shop.tieout(&["run", "--dry-run"]).await.ended(0);
    for view in ["kept", "far"] {
        read_by(&mut shop, &url, &format!("read = \"{view}\"\nwrite = \"payments\""));
        assert_refused(&shop, &says(view)).await;
    }
    read_by(&mut shop, &url, "read = \"kept\"");
    assert_refused(&shop, &says("kept")).await;
    shop.raw.execute(&format!("create policy kept on payments to {keeper} using (true)")).await;
    shop.run().await.ended(0);
    assert_paid_once(&shop, 1..=2).await;
    shop.raw
        .execute(&format!(
            "drop owned by {role}, {keeper} cascade; drop role {role}; drop role {keeper}"
        ))
        .await;
}

/// A rule in place of the write: the server answers with no row, and no run could go on.
#[tokio::test]
async fn a_rule_that_writes_something_else_instead_is_refused() {
    let shop = shop_with(Words::default(), 1..=1).await;
    shop.raw
        .execute(
            "create table payments_2025 (like payments); \
             create rule old_ones as on update to payments where old.id < 0 do instead \
                 update payments_2025 set status = new.status where id = old.id",
        )
        .await;
    assert_refused(&shop, &["the rule `old_ones` ON UPDATE DO INSTEAD", "hint: "]).await;
    let checked = shop.tieout(&["config", "check", "--connect"]).await.ended(10);
    assert!(checked.stderr.contains("`old_ones`"), "{}", checked.stderr);
    let looked = shop.tieout(&["doctor"]).await.ended(10);
    assert!(looked.stdout.contains("`old_ones`"), "{}", looked.stdout);
    // What does something besides is no trouble.
    shop.raw
        .execute(
            "drop rule old_ones on payments; \
             create rule besides as on update to payments do also notify changed",
        )
        .await;
    shop.tieout(&["config", "check", "--connect"]).await.ended(0);
}

#[tokio::test]
async fn what_a_role_may_not_do_is_mended_by_rights() {
    let mut shop = shop_with(Words::default(), 1..=1).await;
    let role = role(&shop).await;
    let url = address_of(&shop, &role);
    go_through(&mut shop, url);
    shop.raw.execute(&format!("revoke update on payments from {role}")).await;
    assert_refused(&shop, &["may not write `status`", "`tieout db roles`"]).await;
    // Of a login that carries runs out a dry run says what the run would say.
    let dry = shop.tieout(&["run", "--dry-run"]).await.ended(10);
    assert!(dry.stderr.contains("may not write `status`"), "{}", dry.stderr);
    // One that does not is asked for what it does alone: to read, all that it reads.
    shop.raw.execute(&format!("revoke insert on tieout_journal from {role}")).await;
    shop.tieout(&["run", "--dry-run"]).await.ended(0);
    shop.raw.execute(&format!("revoke select on tieout_checks from {role}")).await;
    let dry = shop.tieout(&["run", "--dry-run"]).await.ended(12);
    assert!(dry.stderr.contains("a dry run tieout_read"), "{}", dry.stderr);
    shop.raw.execute(&format!("revoke select on tieout_migrations from {role}")).await;
    let dry = shop.tieout(&["run", "--dry-run"]).await.ended(12);
    assert!(dry.stderr.contains("a dry run tieout_read"), "{}", dry.stderr);
    // Migrating is the owner's, as long as there is something to migrate.
    let mut bare = Shop::open_bare(Engine::Postgres, Words::default()).await;
    bare.raw.execute("revoke create on schema public from public").await;
    let url = bare.server().unwrap().url().replace("postgres@", &format!("{role}@"));
    go_through(&mut bare, url);
    // Nor can there be a plan before.
    let dry = bare.tieout(&["run", "--dry-run"]).await.ended(15);
    assert!(dry.stderr.contains("hint: run `tieout db migrate`"), "{}", dry.stderr);
    let ran = bare.tieout(&["db", "migrate"]).await.ended(12);
    assert!(ran.stderr.contains("for the owner of tieout's tables"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("tieout_run"), "{}", ran.stderr);
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

#[tokio::test]
async fn tables_of_a_newer_version_are_left_alone() {
    let shop = shop_with(Words::default(), 1..=1).await;
    shop.raw
        .execute(
            "insert into tieout_migrations (version, description, success, checksum, \
             execution_time) select 999, 'later', true, checksum, 0 from tieout_migrations \
             where version = 1",
        )
        .await;
    for words in [&["run"][..], &["db", "migrate"]] {
        let ran = shop.tieout(words).await.ended(15);
        assert!(ran.stderr.contains("newer than this version"), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn a_login_that_is_refused_names_no_password() {
    let mut shop = shop_with(Words::default(), 1..=1).await;
    let role = role(&shop).await;
    shop.raw.execute(&format!("alter role {role} nologin")).await;
    // Such an address does not stand in the file, which would be refused for it.
    let url = address_of(&shop, &role).replace('@', ":pass4711@");
    std::fs::write(shop.folder().join("address"), &url).unwrap();
    go_through(&mut shop, url.clone());
    let ran = shop.tieout(&["run"]).await.ended(10);
    assert!(ran.stderr.contains("holds a password"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("pass4711"), "{}", ran.stderr);
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = format!("url = \"{url}\"");
    assert!(text.contains(&line), "{text}");
    std::fs::write(&path, text.replace(&line, "url_file = \"address\"")).unwrap();
    let ran = shop.tieout(&["run"]).await.ended(12);
    assert!(ran.stderr.contains("refused the login"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("pass4711"), "{}", ran.stderr);
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_changes_nothing() {
    let words = Words { database_more: "connect_timeout = \"1s\"", ..Words::default() };
    let mut shop = shop_with(words, 1..=1).await;
    go_through(&mut shop, "postgres://postgres@127.0.0.1:1/nowhere".to_owned());
    let ran = shop.tieout(&["run"]).await.ended(14);
    assert!(ran.stderr.contains("cannot be reached"), "{}", ran.stderr);
    assert_eq!(shop.status(1).await, "processing");
}

const SELF_SIGNED: &[u8] = include_bytes!("../../../fixtures/tls/self-signed.pem");

/// What the server below answers to a login that came through.
const NOBODY: &str = "nobody is let in";

/// The port of a server on 127.0.0.2, which stands for another machine. Nobody signed its
/// certificate, and it speaks TLS alone.
fn self_signed_server() -> u16 {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(SELF_SIGNED).collect();
    let key = PrivateKeyDer::from_pem_slice(SELF_SIGNED).unwrap();
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.unwrap(), key)
            .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Whoever wants no TLS begins with the login itself.
            let mut request = [0_u8; 8];
            if stream.read_exact(&mut request).is_err()
                || request != [0, 0, 0, 8, 4, 210, 22, 47]
                || stream.write_all(b"S").is_err()
            {
                continue;
            }
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut login = [0_u8; 1024];
            if stream.read(&mut login).is_ok_and(|length| length > 0) {
                let body = format!("SFATAL\0VFATAL\0C28000\0M{NOBODY}\0\0");
                let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
                let answer = [&b"E"[..], &length, body.as_bytes()].concat();
                let _gone = stream.write_all(&answer);
            }
        }
    });
    port
}

/// Heroku's DATABASE_URL names no mode, and its certificates are self-signed.
#[tokio::test]
async fn a_certificate_that_nobody_signed_is_taken_where_the_environment_says_so() {
    let mut shop = Shop::open_with(Engine::Sqlite, Words::default()).await;
    let port = self_signed_server();
    go_through(&mut shop, format!("postgres://me@127.0.0.2:{port}/shop"));
    for (mode, is_taken) in [
        ("require", true),
        ("", false),
        ("verify-full", false),
        // None of these is less than what no word is.
        ("prefer", false),
        ("allow", false),
        ("disable", false),
        ("requre", false),
    ] {
        let ran = shop.program(&["db", "status"]).env("PGSSLMODE", mode).output().await.unwrap();
        let ran = Ran::of(&ran);
        assert_eq!(ran.stderr.contains(NOBODY), is_taken, "PGSSLMODE={mode}: {}", ran.stderr);
        assert_eq!(ran.code == Some(12), is_taken, "PGSSLMODE={mode}: {}", ran.stderr);
    }
    let heroku = include_str!("../../../cron/heroku.txt");
    assert!(heroku.contains("config:set PGSSLMODE=require\n"), "{heroku}");
    assert!(heroku.contains("url_env = \"DATABASE_URL\"") && !heroku.contains("config:get"));
}
