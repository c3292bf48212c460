//! What the tests stand on: where the services are, databases of their own, the built program.
//!
//! A test never skips because something is missing: it panics and says how to get it. It never
//! shares a database, a file or a port with another test either.

pub mod events;
pub mod golden;
pub mod ports;
pub mod postgres;
pub mod raw;
pub mod receiver;
pub mod terminal;

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The value that `./test` or `tests/services.sh` exports, or a loud end with the way to get it.
pub fn need_env(name: &str) -> String {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => value,
        _ => panic!(
            "{name} is not set: this test needs a real service and does not skip. \
             Run ./test, or start the services with: eval \"$(tests/services.sh start)\""
        ),
    }
}

/// The program as it was built for these tests.
pub fn tieout_bin() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tieout"))
}

/// A place for one SQLite database; the folder and what SQLite puts beside the file go with it.
pub struct SqlitePlace {
    folder: TempDir,
}

impl SqlitePlace {
    /// The file, which does not exist yet.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("tieout.db")
    }

    /// The folder, for whatever else the test writes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address in the form that sqlx and tieout.toml take.
    pub fn url(&self) -> String {
        format!("sqlite://{}", self.path().display())
    }
}

/// A fresh place for an SQLite database.
pub fn sqlite_path() -> SqlitePlace {
    SqlitePlace { folder: tempfile::tempdir().expect("a temporary folder") }
}

#[test]
fn a_missing_service_is_named_and_never_skipped() {
    let panic = std::panic::catch_unwind(|| need_env("TEST_NO_SUCH_SERVICE_URL")).unwrap_err();
    let text = panic.downcast_ref::<String>().expect("a formatted message");
    assert!(text.starts_with("TEST_NO_SUCH_SERVICE_URL is not set"), "{text}");
    assert!(text.contains("./test"), "{text}");
}

#[test]
fn an_sqlite_place_is_gone_with_its_owner() {
    let place = sqlite_path();
    std::fs::write(place.path(), b"x").unwrap();
    let folder = place.folder().to_path_buf();
    assert!(place.url().ends_with("/tieout.db"));
    drop(place);
    assert!(!folder.exists());
}

#[test]
fn the_built_program_starts() {
    let output = std::process::Command::new(tieout_bin()).arg("--version").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn every_third_party_stripe_answers() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    for (name, list) in [
        ("TEST_LOCALSTRIPE_URL", "/v1/payment_intents"),
        ("TEST_STRIPE_MOCK_URL", "/v1/charges"),
        ("TEST_EMULATE_URL", "/v1/payment_intents"),
    ] {
        let url = format!("{}{list}", need_env(name));
        let answer = client.get(&url).basic_auth("sk_test_support", Some("")).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{name} at {url}: {error}"));
        assert_eq!(answer.status(), 200, "{name} at {url}");
        let body: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(body["object"], "list", "{name} at {url}");
    }
}
