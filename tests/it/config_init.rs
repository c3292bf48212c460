//! `config init` on other people's tables: with flags alone it writes a mapping that fits its
//! database and that a person would write, and says what it could not tell.
//!
//! The written files are golden (`fixtures/init`): `TIEOUT_BLESS=1` writes them anew; read them as
//! the person would who has to trust them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::events;
use crate::support::golden::golden;
use crate::support::postgres::{Database, postgres_database};
use crate::support::raw::Raw;
use crate::support::terminal::{answer, terminal};
use crate::support::tieout_bin;

/// How a call ended.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

fn tieout(folder: &Path, words: &[&str]) -> Ended {
    let mut command = Command::new(tieout_bin());
    // What is looked for in a line is to stand in one.
    command.args(words).current_dir(folder).env_clear().env("COLUMNS", "1000");
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Answers that no catalogue holds.
const SAID: [&str; 4] = ["--timezone", "Europe/Berlin", "--tag-at", "metadata[order_id]"];

/// What rows of [`Place::in_schema_shop`] would tell.
const IN_SHOP: [&str; 6] =
    ["--processing", "processing", "--succeeded", "paid", "--attempted", "once"];

/// A folder, and a database with these tables.
struct Place {
    folder: tempfile::TempDir,
    url: String,
    _server: Option<Database>,
}

impl Place {
    async fn postgres(schema: &str) -> Self {
        let path = format!("{}/fixtures/schemas/{schema}.sql", env!("CARGO_MANIFEST_DIR"));
        let server = postgres_database().await;
        server.execute(std::fs::read_to_string(path).unwrap()).await;
        server.execute("analyze").await;
        let url = server.url().to_owned();
        Self { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) }
    }

    /// PostgreSQL with one table, in the schema `shop`.
    async fn in_schema_shop() -> Self {
        let server = postgres_database().await;
        server
            .execute(
                "create schema shop;
                create table shop.payments (
                    id bigint primary key, amount_cents bigint not null, currency text not null,
                    status text not null, created_at timestamptz not null)",
            )
            .await;
        let url = server.url().to_owned();
        Self { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) }
    }

    async fn sqlite(ddl: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.db");
        let raw = Raw::open(&file.display().to_string()).await;
        raw.execute(ddl).await;
        raw.close().await;
        Self { folder, url: "sqlite:shop.db".to_owned(), _server: None }
    }

    fn init(&self, flags: &[&str]) -> Ended {
        let mut words = vec!["config", "init", "--url", self.url.as_str(), "--yes", "--force"];
        words.extend(SAID);
        words.extend(flags);
        tieout(self.folder.path(), &words)
    }

    fn file(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("tieout.toml")).unwrap()
    }

    /// The file and what was said of it, golden; then the file is held against the database.
    fn golden(&self, name: &str, ended: &Ended) {
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let text = format!("{}--- stdout\n{}", self.file(), ended.stdout);
        let text = text.replace(&self.url, "[url]");
        golden("fixtures/init", name, &text);
    }

    #[track_caller]
    fn fits(&self) {
        let check = tieout(self.folder.path(), &["config", "check", "--connect"]);
        assert_eq!(check.code, 0, "{}\n{}", check.stderr, self.file());
        assert!(check.stdout.contains("every mapping fits the database"), "{}", check.stdout);
    }
}

/// The lines of the file that decide, without its comments.
fn settings(file: &str) -> Vec<&str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[tokio::test]
async fn foreign_schemas_get_the_mapping_that_a_person_would_write() {
    let rails = ["--processing", "1", "--succeeded", "2", "--failed", "3", "--retryable", "4"];
    let capture = ["--processing", "CAPTURE READY,CAPTURE SUBMITTED", "--currency", "EUR"];
    let padded = ["--processing", "10,11", "--succeeded", "20", "--failed", "30"];
    let tenants = ["--tag", "{tenant}:{number}", "--attempted", "once"];
    for (schema, flags, wanted) in [
        (
            "rails",
            &rails[..],
            &[
                "read = \"payments\"",
                "key = [\"id\"]",
                "amount = { column = \"amount_cents\", unit = \"minor\" }",
                "currency = { column = \"currency\" }",
                "attempted = \"attempted_at\"",
                "psp_reference = \"stripe_intent_id\"",
                "time = \"utc\"",
                "from = [1]",
                "retryable = 4",
                "always = { updated_at = \"{now}\", lock_version = \"+1\" }",
                "succeeded = { stripe_intent_id = \"{psp_reference}\", \
                 captured_at = \"{psp_time}\" }",
            ][..],
        ),
        (
            "quoted",
            &[],
            &[
                "read = \"Billing.Payments\"",
                "tag = \"{Id}\"",
                "amount = { column = \"Amount\", unit = \"major\" }",
                "currency = { column = \"Currency Code\" }",
                "account = [\"Gateway\"]",
                "accounts = { \"stripe\" = \"stripe\" }",
                "where = [{ column = \"Gateway\", not_in = [\"adyen\"] }]",
                "created = \"CreatedAt\"",
                "attempted = \"LastTry\"",
                "from = [\"InFlight\"]",
                "succeeded = \"Paid\"",
                "failed = \"Declined\"",
                "retryable = \"To Retry\"",
                "ignore = [\"Created\"]",
                "succeeded = { \"Psp Reference\" = \"{psp_reference}\" }",
            ],
        ),
        (
            "tenants",
            &tenants,
            &[
                "key = [\"tenant\", \"number\"]",
                "tag = \"{tenant}:{number}\"",
                "status = \"state\"",
                "attempts = \"once\"",
                "account = [\"provider\"]",
                "from = [\"sent\"]",
                "succeeded = \"done\"",
            ],
        ),
        (
            "parent",
            &[],
            &[
                "read = \"payments_to_check\"",
                "write = \"order_payments\"",
                "key = [\"id\"]",
                "amount = { column = \"value\", unit = { exponent = \"decimals\" } }",
                "currency = { column = \"currency\" }",
                "where = [{ column = \"deleted_at\", is = \"null\" }]",
                "attempted = \"sent_at\"",
                "psp_reference = \"external_id\"",
                "from = [\"processing\"]",
            ],
        ),
        (
            "capture",
            &capture,
            &[
                "amount = { column = \"cents\", unit = \"minor\" }",
                "currency = { const = \"EUR\" }",
                "attempted = \"tried_at\"",
                "psp_reference = \"psp_id\"",
                "from = [\"CAPTURE READY\", \"CAPTURE SUBMITTED\"]",
                "ignore = [\"PENDING\"]",
            ],
        ),
        (
            "padded",
            &padded,
            &[
                "key = [\"ref\"]",
                "amount = { column = \"sum\", unit = \"major\" }",
                "currency = { column = \"cur\" }",
                "created = \"made\"",
                "attempted = \"tried\"",
                "time = \"epoch_s\"",
                "from = [10, 11]",
                "succeeded = 20",
            ],
        ),
        (
            "local",
            &["--time", "America/New_York"],
            &[
                "kind = { column = \"is_refund\", values = { false = \"charge\", \
                 true = \"refund\" } }",
                "amount = { column = \"amount_minor\", unit = \"minor\" }",
                "time = \"America/New_York\"",
                "status = \"settled\"",
                "from = [false]",
                "succeeded = true",
                "succeeded = { settled_at = \"{psp_time}\" }",
            ],
        ),
        (
            "events",
            &["--currency", "eur", "--attempted", "once"],
            &[
                "read = \"charges\"",
                "currency = { const = \"EUR\" }",
                "from = [\"sent\"]",
                "retryable = \"again\"",
            ],
        ),
    ] {
        let place = Place::postgres(schema).await;
        let ended = place.init(flags);
        place.golden(schema, &ended);
        let file = place.file();
        let lines = settings(&file);
        for want in wanted {
            assert!(lines.contains(want), "{schema}: {want} is not in\n{file}");
        }
        assert!(file.contains("mode = \"succeed_only\"") && !file.contains("\"full\"\n"));
        place.fits();
    }
}

#[tokio::test]
async fn what_no_catalogue_tells_is_left_open_and_refused_until_it_is_answered() {
    let place = Place::postgres("wallet").await;
    let ended = place.init(&[]);
    place.golden("wallet", &ended);
    assert!(ended.stdout.contains("customer has not paid yet"), "{}", ended.stdout);
    let check = tieout(place.folder.path(), &["config", "check"]);
    assert_eq!(check.code, 10, "{}", check.stdout);
    golden("fixtures/init", "wallet_open", &check.stderr);
    // One answer, and it is whole.
    assert_eq!(place.init(&["--currency", "GBP"]).code, 0);
    place.fits();
    // The table without its view: the currency stands on the parent.
    let place = Place::postgres("parent").await;
    let ended = place.init(&["--table", "order_payments"]);
    assert!(ended.stdout.contains("it stands on `orders`"), "{}", ended.stdout);
    let written = std::fs::read_to_string(place.folder.path().join("tieout.toml")).unwrap();
    assert!(written.contains("# as you said: a table"), "{written}");
    let check = tieout(place.folder.path(), &["config", "check", "--connect"]);
    assert!(check.code == 10 && check.stderr.contains("it stands on `orders`"), "{}", check.stderr);
    // Nothing was said of the zone and of the tag's place.
    let words = ["config", "init", "--url", &place.url, "--yes", "--force"];
    assert_eq!(tieout(place.folder.path(), &words).code, 0);
    let check = tieout(place.folder.path(), &["config", "check"]);
    for part in ["`business_timezone` is still open", "`tag` of [[account]] stripe is still open"] {
        assert!(check.stderr.contains(part), "{part}: {}", check.stderr);
    }
}

const SHOP: &str = "
    create table schema_migrations (version varchar not null primary key);
    create table orders (id integer primary key, total integer, currency text);
    create table charges (
        id integer primary key autoincrement, order_id integer references orders (id),
        amount_cents integer not null, currency varchar(3) not null default 'EUR',
        state varchar not null default 'new' check (state in ('new', 'sending', 'paid', 'failed',
            'retry')),
        stripe_id varchar, sent_at datetime, paid_at datetime,
        created_at datetime not null, updated_at datetime not null, livemode boolean not null);
    create index charges_state on charges (state);
    insert into charges (amount_cents, state, stripe_id, created_at, updated_at, livemode) values
        (100, 'paid', 'pi_1', '2026-11-19 08:00:00', '2026-11-19 08:00:00', 1)";

const TENANTS: &str = "
    create table payments (tenant text not null, number integer not null, amount numeric not null,
        currency text not null, status text not null, created_at text not null,
        external_ref text, primary key (tenant, number)) without rowid;
    create view payments_v as select p.*, 'x' as memo from payments p;
    insert into payments values ('a', 1, 12.5, 'USD', 'processing', '2026-11-19T08:00:00Z', null),
        ('a', 2, 12.5, 'USD', 'succeeded', '2026-11-19T08:00:00Z', 'ch_2')";

#[tokio::test]
async fn sqlite_files_get_theirs_too() {
    let place = Place::sqlite(SHOP).await;
    let ended = place.init(&["--live", "true"]);
    place.golden("sqlite_shop", &ended);
    let file = place.file();
    for want in [
        "where = [{ column = \"livemode\", in = [true] }]",
        "psp_reference = \"stripe_id\"",
        "from = [\"sending\"]",
        "retryable = \"retry\"",
        "ignore = [\"new\"]",
        "time = \"utc\"",
    ] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
    }
    place.fits();
    let place = Place::sqlite(TENANTS).await;
    let ended = place.init(&["--attempted", "once"]);
    place.golden("sqlite_tenants", &ended);
    let file = place.file();
    for want in [
        "read = \"payments\"",
        "key = [\"tenant\", \"number\"]",
        "tag = \"{tenant}-{number}\"",
        "psp_reference = \"external_ref\"",
        "from = [\"processing\"]",
    ] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
    }
    assert!(!file.contains("time = "), "the times say their zone:\n{file}");
    place.fits();
    let ended = place.init(&["--table", "payments_v", "--attempted", "once"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(place.file().contains("write = \"payments\""), "{}", place.file());
    place.fits();
}

/// Names of tables and columns are known in other languages, too. The words of a status may stand
/// in a table of their own: its key is no row's, and nothing is written there.
#[tokio::test]
async fn tables_of_other_languages_are_found() {
    const ZAHLUNGEN: &str = "
        create table kunden (id integer primary key, name text not null);
        create table zahlungen (
            id integer primary key, kunde_id integer not null, betrag integer not null,
            waehrung text not null, status text not null, angelegt_am text not null,
            gesendet_am text);
        insert into zahlungen values
            (1, 1, 1999, 'EUR', 'unterwegs', '2026-11-19T08:00:00Z', '2026-11-19T08:00:01Z'),
            (2, 1, 1999, 'EUR', 'bezahlt', '2026-11-19T08:00:00Z', '2026-11-19T08:00:01Z')";
    let place = Place::sqlite(ZAHLUNGEN).await;
    let said = ["--processing", "unterwegs", "--succeeded", "bezahlt"];
    place.init(&said);
    let file = place.file();
    for want in [
        "read = \"zahlungen\"",
        "key = [\"id\"]",
        "amount = { column = \"betrag\", unit = \"minor\" }",
        "currency = { column = \"waehrung\" }",
        "created = \"angelegt_am\"",
        "attempted = \"gesendet_am\"",
    ] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
    }
    const WORDS: &str = "
        create table zustaende (status_id integer primary key, status text not null unique);
        create table zahlungen (
            id integer primary key, betrag integer not null, waehrung text not null,
            status_id integer not null references zustaende, angelegt_am text not null);
        create view zahlungen_v as select z.id, z.betrag, z.waehrung, z.angelegt_am, s.status_id,
            s.status from zahlungen z join zustaende s on s.status_id = z.status_id;
        insert into zustaende values (1, 'unterwegs'), (2, 'bezahlt');
        insert into zahlungen values
            (1, 1999, 'EUR', 1, '2026-11-19T08:00:00Z'),
            (2, 1999, 'EUR', 2, '2026-11-19T08:00:00Z')";
    let place = Place::sqlite(WORDS).await;
    place.init(&[&said[..], &["--table", "zahlungen_v", "--attempted", "once"]].concat());
    let file = place.file();
    assert!(settings(&file).contains(&"key = [\"id\"]"), "{file}");
    assert!(!file.contains("write = \"zustaende\""), "{file}");
}

/// What no word tells stays open: `freigegeben` may be anything.
#[tokio::test]
async fn words_of_statuses_of_other_languages_are_proposed() {
    let doubt = |word: &str| format!("from: `{word}` may also mean that the customer has not paid");
    for (words, wanted, part) in [
        (
            &["in Bearbeitung", "bezahlt", "fehlgeschlagen", "storniert", "freigegeben"][..],
            &[
                "from = [\"in Bearbeitung\"]",
                "succeeded = \"bezahlt\"",
                "failed = \"fehlgeschlagen\"",
                "ignore = [\"storniert\"]",
            ][..],
            "ignore: the meaning of `freigegeben` is not known".to_owned(),
        ),
        (&["offen", "bezahlt"], &["from = [\"offen\"]"], doubt("offen")),
        (
            &["en attente", "payé", "échoué"],
            &["from = [\"en attente\"]", "succeeded = \"payé\"", "failed = \"échoué\""],
            doubt("en attente"),
        ),
        (
            &["pendiente", "pagado", "fallido"],
            &["from = [\"pendiente\"]", "succeeded = \"pagado\"", "failed = \"fallido\""],
            doubt("pendiente"),
        ),
    ] {
        for place in in_both(&of_statuses(words)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            for want in wanted {
                assert!(settings(&file).contains(want), "{want} is not in\n{file}");
            }
            assert!(told_of.contains(&part), "{part}: {told_of}");
        }
    }
}

/// A second word of an outcome, and what was paid in part or not at all: a run that ignored it
/// would say nothing of it, so that the file does, and whoever proposes it.
#[tokio::test]
async fn further_words_of_an_outcome_are_never_ignored_untold() {
    let further = |word: &str, written: &str| {
        format!("by its word a row with {word} was paid, as one with `{written}` was")
    };
    let of_file = |word: &str| format!("by its word such a row was paid, as one with `{word}` was");
    let part = "by its word a part was paid of a row with `teilweise bezahlt`".to_owned();
    let unpaid = "by its word a row with `nicht bezahlt` was not paid".to_owned();
    let failed = "by its word a row with `abgelehnt` failed, as one with `fehlgeschlagen`";
    let again = "by its word a row with `to_retry` is to be charged again, as one with `retry` is";
    let doubt = "succeeded: beside `paid`, `completed` may say that a row was paid, or what became";
    for (words, wanted, in_file, parts) in [
        (
            &["processing", "paid", "succeeded", "failed"][..],
            &["succeeded = [\"paid\"]", "succeeded = \"succeeded\""][..],
            vec![of_file("succeeded")],
            vec![further("`paid`", "succeeded")],
        ),
        (
            &["processing", "captured", "paid", "settled", "declined", "partially_paid"],
            &[
                "succeeded = [\"captured\", \"settled\"]",
                "succeeded = \"paid\"",
                "failed = \"declined\"",
                "ignore = [\"partially_paid\"]",
            ],
            vec![of_file("paid"), part.replace("teilweise bezahlt", "partially_paid")],
            vec![further("`captured`, `settled`", "paid")],
        ),
        (
            &[
                "in Bearbeitung",
                "bezahlt",
                "erfolgreich",
                "teilweise bezahlt",
                "nicht bezahlt",
                "fehlgeschlagen",
                "abgelehnt",
            ],
            &[
                "succeeded = [\"erfolgreich\"]",
                "succeeded = \"bezahlt\"",
                "ignore = [\"abgelehnt\", \"nicht bezahlt\", \"teilweise bezahlt\"]",
            ],
            vec![of_file("bezahlt"), part.clone(), unpaid.clone(), failed.to_owned()],
            vec![format!("ignore: {part}"), format!("ignore: {unpaid}"), failed.to_owned()],
        ),
        // One of two words of "charge again" is written, and a worker may take the other.
        (
            &["processing", "paid", "failed", "retry", "to_retry"],
            &["retryable = \"retry\"", "ignore = [\"to_retry\"]"],
            vec![again.to_owned()],
            vec![format!("ignore: {again}")],
        ),
        // It may be the end of what was paid for.
        (
            &["processing", "paid", "completed", "failed"],
            &["from = [\"processing\"]", "succeeded = \"paid\""],
            vec![],
            vec![doubt.to_owned()],
        ),
    ] {
        for place in in_both(&of_statuses(words)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            for want in wanted {
                assert!(settings(&file).contains(want), "{want} is not in\n{file}");
            }
            let comments = file.replace("\n# ", " ");
            for part in &in_file {
                assert!(comments.contains(part.as_str()), "{part} is not in\n{file}");
            }
            for part in &parts {
                assert!(told_of.contains(part.as_str()), "{part}: {told_of}");
            }
            assert!(!file.contains("\"completed\""), "{file}");
            place.fits();
        }
    }
}

/// Payments whose status has these words, one row each.
fn of_statuses(words: &[&str]) -> String {
    let mut ddl = String::from(
        "create table payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, created_at timestamptz not null);",
    );
    for (id, word) in words.iter().enumerate() {
        ddl.push_str(&format!(
            "insert into payments values
                ({id}, 100, 'EUR', '{word}', '2026-11-19T08:00:00Z');"
        ));
    }
    ddl
}

/// A copy of Stripe's objects is keyed by Stripe's id: nothing writes a key.
#[tokio::test]
async fn a_reference_that_is_the_key_is_not_written() {
    const COPY: &str = "
        create table payment_intents (
            id text primary key, amount integer not null, currency text not null,
            status text not null, created integer not null);
        insert into payment_intents values
            ('pi_1', 1999, 'eur', 'processing', 1763546405);";
    let place = Place::sqlite(COPY).await;
    assert_eq!(place.init(&["--attempted", "once"]).code, 0);
    let file = place.file();
    assert!(settings(&file).contains(&"psp_reference = \"id\""), "{file}");
    assert!(!file.contains("{psp_reference}"), "{file}");
    place.fits();
}

/// Nothing due must never mean nothing seen.
#[tokio::test]
async fn words_of_a_call_that_are_ignored_are_told() {
    const TWO: &str = "
        create table payments (
            id integer primary key, amount_cents integer not null, currency text not null,
            status text not null, created_at text not null, sent_at text);
        insert into payments values
            (1, 1999, 'EUR', 'authorizing', '2026-11-19T08:00:00Z', null),
            (2, 1999, 'EUR', 'pending', '2026-11-19T08:00:00Z', null),
            (3, 1999, 'EUR', 'succeeded', '2026-11-19T08:00:00Z', null)";
    let place = Place::sqlite(TWO).await;
    let ended = place.init(&[]);
    let told = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("ignore: `pending` may also say that a call is on its way"), "{told}");
    assert!(!place.file().contains("\nignore"), "nor is it ignored: {}", place.file());
    assert!(settings(&place.file()).contains(&"from = [\"authorizing\"]"), "{}", place.file());
    // Who says which values are stuck is believed.
    let place = Place::sqlite(TWO).await;
    let ended = place.init(&["--processing", "authorizing"]);
    assert!(!ended.stdout.contains("on its way"), "{}", ended.stdout);
    let part = "ignore: `pending` only because of what you said of `from`";
    assert!(ended.stdout.contains(part), "{}", ended.stdout);
    assert!(settings(&place.file()).contains(&"ignore = [\"pending\"]"), "{}", place.file());
}

/// By a word that no row has nothing is seen, and nothing else may be ignored by it.
#[tokio::test]
async fn a_misspelt_value_is_told_with_the_values_that_are_there() {
    const THREE: &str = "
        create table payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, created_at timestamptz not null);
        insert into payments values
            (1, 1999, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, 1999, 'EUR', 'new', '2026-11-19T08:00:00Z'),
            (3, 1999, 'EUR', 'succeeded', '2026-11-19T08:00:00Z')";
    for place in in_both(THREE).await {
        let told_of = told(&place.init(&["--attempted", "once", "--processing", "procesing"]));
        for part in [
            "from: `status` was not seen to have `procesing`; its values are `new`, `processing`, \
             `succeeded`: ",
            "ignore: `processing` may also say that a call is on its way",
        ] {
            assert!(told_of.contains(part), "{part}: {told_of}");
        }
        let file = place.file();
        for want in ["from = [\"procesing\"]", "ignore = [\"new\"]"] {
            assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
        }
    }
    // Where nothing is there yet, nothing can be told of a word.
    let empty = THREE.split_once("insert").unwrap().0;
    for place in in_both(empty).await {
        let told_of = told(&place.init(&["--attempted", "once", "--processing", "sent"]));
        assert!(!told_of.contains("was not seen to have"), "{told_of}");
    }
}

/// What is written by a misspelt word nobody reads.
#[tokio::test]
async fn a_misspelt_target_is_told_with_the_values_that_are_there() {
    const PAID: &str = "
        create table payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, created_at timestamptz not null);
        insert into payments values
            (1, 1999, 'EUR', 'Sent', '2026-11-19T08:00:00Z'),
            (2, 1999, 'EUR', 'Paid', '2026-11-19T08:00:00Z'),
            (3, 1999, 'EUR', 'Declined', '2026-11-19T08:00:00Z')";
    for place in in_both(PAID).await {
        let words = ["--attempted", "once", "--succeeded", "Payd", "--failed", "Declned"];
        let told_of = told(&place.init(&[&words[..], &["--retryable", "retry"]].concat()));
        let values = "its values are `Declined`, `Paid`, `Sent`: a run writes it as it stands";
        for part in [
            format!("succeeded: `status` was not seen to have `Payd`; {values}"),
            format!("failed: `status` was not seen to have `Declned`; {values}"),
        ] {
            assert!(told_of.contains(&part), "{part}: {told_of}");
        }
        // A word that says what it is for may be the first of its kind.
        assert!(!told_of.contains("retryable: `status`"), "{told_of}");
        let check = tieout(place.folder.path(), &["config", "check", "--connect"]);
        let said = told(&check);
        let part = "no looked-at row has `Payd`, which [[table.map]] writes as succeeded, and \
                    ignore holds `Paid`";
        assert!(said.contains(part), "{said}");
        let right = ["--attempted", "once", "--succeeded", "Paid", "--failed", "Declined"];
        let told_of = told(&place.init(&right));
        assert!(!told_of.contains("was not seen to have"), "{told_of}");
    }
}

/// Purchases, refunds and voids in one table, with a status whose words are not all known.
const KINDS: &str = "
    create table payment_transactions (
        record_id integer primary key, id text not null unique, transaction_type text not null,
        transaction_status text not null, amount_cents bigint not null, currency text not null,
        card_type text, created_at timestamptz not null);
    insert into payment_transactions values
        (1, 'a', 'PURCHASE', 'PENDING', 100, 'EUR', 'credit', '2026-11-19T08:00:00Z'),
        (2, 'b', 'PURCHASE', 'UNKNOWN', 100, 'EUR', 'debit', '2026-11-19T08:00:00Z'),
        (3, 'c', 'REFUND', 'SUCCESS', 100, 'EUR', 'credit', '2026-11-19T08:00:00Z'),
        (4, 'd', 'VOID', 'PLUGIN_FAILURE', 100, 'EUR', null, '2026-11-19T08:00:00Z')";

/// The same tables in both databases.
async fn in_both(ddl: &str) -> [Place; 2] {
    let server = postgres_database().await;
    server.execute(ddl.to_owned()).await;
    let (folder, url) = (tempfile::tempdir().unwrap(), server.url().to_owned());
    [Place { folder, url, _server: Some(server) }, Place::sqlite(ddl).await]
}

/// What was said, in one line.
fn told(ended: &Ended) -> String {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A refund that is looked for among charges is not found, and would be handed back.
#[tokio::test]
async fn a_column_that_tells_refunds_from_charges_is_never_passed_over() {
    for place in in_both(KINDS).await {
        let told_of = told(&place.init(&["--attempted", "once", "--key", "id"]));
        let file = place.file();
        let kind = "kind = { column = \"transaction_type\", values = { \"PURCHASE\" = \"charge\", \
                    \"REFUND\" = \"refund\" } }";
        for want in [kind, "from = [\"PENDING\"]", "ignore = [\"PLUGIN_FAILURE\"]"] {
            assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
        }
        assert!(file.contains("# as you said\nkey = [\"id\"]"), "{file}");
        for part in [
            "kind: of `transaction_type` `VOID` is no charge, refund or payout",
            "ignore: the meaning of `UNKNOWN` is not known",
            "failed: could be `PLUGIN_FAILURE`; name it with --failed",
        ] {
            assert!(told_of.contains(part), "{part}: {told_of}");
        }
        assert!(!told_of.contains("card_type"), "a credit card is no credit: {told_of}");
        place.fits();
        // What is in no list is named by the check, too.
        let check = tieout(place.folder.path(), &["config", "check", "--connect"]);
        let unnamed = "neither mapped nor ignored: `UNKNOWN`";
        assert!(told(&check).contains(unnamed), "{}", check.stdout);
    }
    let more = KINDS.replace("'b', 'PURCHASE'", "'b', 'AUTHORIZE'");
    for place in in_both(&more).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let part = "kind: `transaction_type` tells kinds, and has 1 value (`AUTHORIZE`) besides";
        assert!(told_of.contains(part), "{told_of}");
        let check = tieout(place.folder.path(), &["config", "check"]);
        let open = "`kind` of [[table]] payment_transactions is still open";
        assert!(check.code == 10 && check.stderr.contains(open), "{}", check.stderr);
    }
}

/// One table for several PSPs, whose column nobody would know by its name.
const VIA: &str = "
    create table payments (
        id bigint primary key, via text, amount_cents bigint not null, currency text not null,
        status text not null, created_at timestamptz not null);
    insert into payments values
        (1, 'stripe', 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
        (2, 'adyen', 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
        (3, 'acme_pay', 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
        (4, null, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";

#[tokio::test]
async fn a_column_whose_values_name_psps_tells_accounts_whatever_it_is_called() {
    for place in in_both(VIA).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let file = place.file();
        for want in [
            "account = [\"via\"]",
            "accounts = { \"stripe\" = \"stripe\" }",
            "where = [{ column = \"via\", not_in = [\"adyen\"] }]",
        ] {
            assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
        }
        let left = "accounts: `via` has 1 value (`acme_pay`) besides";
        assert!(told_of.contains(left), "{told_of}");
        place.fits();
    }
    // None of them is Stripe; or no value is known, and the name is.
    let renamed = VIA.replace("via text", "connector text").replace("'stripe'", "'ours'");
    for (ddl, column) in [
        (VIA.replace("'stripe'", "'braintree'"), "via"),
        (renamed.replace("'adyen'", "'theirs'"), "connector"),
    ] {
        for place in in_both(&ddl).await {
            told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let account = format!("account = [\"{column}\"]");
            assert!(settings(&file).contains(&account.as_str()), "{file}");
            let check = tieout(place.folder.path(), &["config", "check"]);
            let open = "`accounts` of [[table]] payments is still open";
            assert!(check.code == 10 && check.stderr.contains(open), "{}", check.stderr);
        }
    }
}

/// Rows of a second account at Stripe are never found at the first, and would be handed back.
#[tokio::test]
async fn of_several_values_that_name_stripe_only_its_own_name_is_taken() {
    let two = VIA.replace("'adyen'", "'STRIPE_UK'").replace("'acme_pay'", "'not_stripe'");
    for place in in_both(&two).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let file = place.file();
        for want in
            ["\"stripe\" = \"stripe\"", "\"STRIPE_UK\" = \"???\"", "\"not_stripe\" = \"???\""]
        {
            let mut lines = settings(&file).into_iter();
            let is_there = lines.any(|line| line.starts_with("accounts = ") && line.contains(want));
            assert!(is_there, "{want} is not in\n{file}");
        }
        let part = "accounts: `via` has 2 values (";
        assert!(told_of.contains(part) && told_of.contains("never found at this one"), "{told_of}");
        let check = tieout(place.folder.path(), &["config", "check"]);
        let open = "`accounts` of [[table]] payments is still open";
        assert!(check.code == 10 && check.stderr.contains(open), "{}", check.stderr);
    }
    // One alone is taken where no other word of it says otherwise.
    for (value, account) in [("pp_stripe_stripe", "stripe"), ("stripe_test", "???")] {
        let one = VIA.replace("'stripe'", &format!("'{value}'"));
        for place in in_both(&one).await {
            told(&place.init(&["--attempted", "once"]));
            let want = format!("accounts = {{ \"{value}\" = \"{account}\" }}");
            assert!(settings(&place.file()).contains(&want.as_str()), "{}", place.file());
        }
    }
}

/// Whatever such a column is called, its rows of another PSP would be charged again.
#[tokio::test]
async fn names_that_say_otherwise_hide_no_psps_and_a_flag_tells_refunds() {
    const MADE: &str = "
        create table pay (
            id bigint primary key, paid_by text, is_refund integer not null,
            amount_cents bigint not null, currency text not null, status text not null,
            created_at timestamptz not null);
        insert into pay values
            (1, 'stripe', 0, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, 'paypal', 0, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (3, 'stripe', 1, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for column in [
        "paid_by",
        "event_source",
        "payment_data",
        "psp_description",
        "provider_title",
        "gateway_message",
        "processor_country",
    ] {
        for place in in_both(&MADE.replace("paid_by", column)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let account = format!("account = [\"{column}\"]");
            let left_out = format!("where = [{{ column = \"{column}\", not_in = [\"paypal\"] }}]");
            let kind = "kind = { column = \"is_refund\", values = { \"0\" = \"charge\", \"1\" = \
                        \"refund\" } }";
            for want in [account.as_str(), left_out.as_str(), kind] {
                assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
            }
            assert!(!told_of.contains("no column was seen to tell PSPs apart"), "{told_of}");
            place.fits();
        }
    }
    // Where nothing tells kinds apart, that is said, though PSPs are.
    for place in in_both(&MADE.replace("is_refund", "is_late")).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        assert!(place.file().contains("account = [\"paid_by\"]"), "{}", place.file());
        let part = "kind: no column was seen to tell refunds from charges";
        assert!(told_of.contains(part), "{told_of}");
    }
    // Where nothing tells them apart, that is said.
    for place in in_both(&MADE.replace("'paypal'", "'stripe'")).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let part = "account: no column was seen to tell PSPs apart";
        assert!(told_of.contains(part), "{told_of}");
    }
}

#[tokio::test]
async fn directions_abbreviations_and_flags_tell_kinds() {
    const MOVED: &str = "
        create table payments (
            id bigint primary key, {column} text not null, is_void boolean not null default false,
            has_refund integer not null default 0, refund boolean, refunded boolean,
            voided boolean, payout integer, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into payments (id, {column}, amount_cents, currency, status, created_at) values
            (1, '{one}', 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, '{other}', 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for (column, [one, other], values) in [
        ("direction", ["IN", "OUT"], "\"IN\" = \"charge\", \"OUT\" = \"???\""),
        ("flow", ["incoming", "outgoing"], "\"incoming\" = \"charge\", \"outgoing\" = \"???\""),
        ("dc", ["C", "D"], "\"C\" = \"???\", \"D\" = \"???\""),
        ("tx_type", ["PAY", "REF"], "\"PAY\" = \"charge\", \"REF\" = \"refund\""),
    ] {
        let ddl = MOVED.replace("{column}", column).replace("{one}", one);
        for place in in_both(&ddl.replace("{other}", other)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let kind = format!("kind = {{ column = \"{column}\", values = {{ {values} }} }}");
            assert!(settings(&file).contains(&kind.as_str()), "{kind} is not in\n{file}");
            for part in [
                "kind: `is_void` may say that a row is no charge; where it does, add { column = \
                 \"is_void\", in = [false] } to where",
                "kind: `has_refund` may say that a row is no charge; where it does, add { column = \
                 \"has_refund\", in = [0] } to where",
                "kind: `refund` may say that a row is no charge; where it does, add { column = \
                 \"refund\", not_in = [true] } to where",
            ] {
                assert!(told_of.contains(part), "{part}: {told_of}");
            }
            // What became of a charge, and an amount.
            for name in ["refunded", "voided", "payout"] {
                assert!(!told_of.contains(&format!("kind: `{name}`")), "{told_of}");
            }
        }
    }
}

/// A place whose file has this line in place of the one that begins so; what its check says.
fn checked_with(place: &Place, begins: &str, line: &str) -> String {
    let lines: Vec<String> = place
        .file()
        .lines()
        .map(|it| if it.starts_with(begins) { line.to_owned() } else { it.to_owned() })
        .collect();
    std::fs::write(place.folder.path().join("tieout.toml"), lines.join("\n")).unwrap();
    told(&tieout(place.folder.path(), &["config", "check", "--connect"]))
}

/// A credit note that is handed back as an absent charge is paid out twice.
#[tokio::test]
async fn credit_notes_and_both_sides_of_a_booking_are_never_passed_over() {
    const BOOKED: &str = "
        create table invoice_payments (
            id bigint primary key, {column}, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into invoice_payments values
            (1, {one}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {other}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    let open = "???";
    for (column, [one, other], [first, second]) in [
        ("is_credit_note boolean", ["false", "true"], ["charge", open]),
        ("is_debit boolean", ["false", "true"], [open, open]),
        ("\"CR_DBT_IND\" char(4)", ["'DBIT'", "'CRDT'"], [open, open]),
        ("dr_cr text", ["'DR'", "'CR'"], [open, open]),
        ("sign smallint", ["-1", "1"], [open, open]),
        ("doc text", ["'Zahlung'", "'Gutschrift'"], ["charge", open]),
        ("art text", ["'Zahlung'", "'Erstattung'"], ["charge", "refund"]),
        ("tipo text", ["'pago'", "'abono'"], ["charge", open]),
        ("ist_storno char(1)", ["'N'", "'J'"], ["charge", open]),
        ("es_devolucion text", ["'N'", "'S'"], ["charge", "refund"]),
        ("ist_gutschrift text", ["''", "'X'"], ["charge", open]),
        ("is_refund text", ["'-'", "'x'"], ["charge", "refund"]),
        ("is_refund text", ["'faux'", "'vrai'"], ["charge", "refund"]),
        ("is_refund integer", ["1", "2"], [open, open]),
        ("isrefund boolean", ["false", "true"], ["charge", "refund"]),
        ("eh_reembolso char(1)", ["'N'", "'S'"], ["charge", "refund"]),
        ("e_estorno char(1)", ["'N'", "'S'"], ["charge", open]),
        ("reembolso text", ["'N'", "'S'"], ["charge", open]),
        ("reembolso boolean", ["false", "true"], ["charge", open]),
        ("refund integer", ["0", "1"], ["charge", open]),
        ("erstattung integer", ["0", "1"], ["charge", open]),
        ("terugbetaling text", ["'nee'", "'ja'"], ["charge", open]),
        ("zwrot char(1)", ["'N'", "'T'"], ["charge", open]),
        ("rueckzahlung char(1)", ["'N'", "'J'"], ["charge", open]),
        ("refund_flag char(1)", ["'N'", "'Y'"], ["charge", open]),
        ("refund_ind text", ["'0'", "'1'"], ["charge", open]),
        ("refund_yn text", ["'A'", "'B'"], [open, open]),
        ("fl_estorno char(1)", ["'N'", "'S'"], ["charge", open]),
        ("erstattung_kz text", ["''", "'X'"], ["charge", open]),
        ("stornokennzeichen text", ["''", "'X'"], ["charge", open]),
    ] {
        let ddl = BOOKED.replace("{column}", column).replace("{one}", one);
        for place in in_both(&ddl.replace("{other}", other)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let name = column.split(' ').next().unwrap().replace('"', "");
            let begins = format!("kind = {{ column = \"{name}\", values = {{ ");
            let kind = settings(&file).into_iter().find(|line| line.starts_with(&begins));
            let kind = kind.unwrap_or_default();
            assert!(!kind.is_empty(), "{begins} is not in\n{file}");
            for (value, word) in [(one, first), (other, second)] {
                let bare = value.trim_matches('\'');
                let is_flag = column.contains("boolean");
                let key = if is_flag { bare.to_owned() } else { format!("\"{bare}\"") };
                assert!(kind.contains(&format!("{key} = \"{word}\"")), "{key} {word}: {kind}");
            }
            let check = tieout(place.folder.path(), &["config", "check"]);
            if [first, second].contains(&open) {
                assert!(told_of.contains(&format!("kind: `{name}` tells ")), "{told_of}");
                let is_open = "`kind` of [[table]] invoice_payments is still open";
                assert!(check.code == 10 && check.stderr.contains(is_open), "{}", check.stderr);
            } else {
                place.fits();
            }
            // Without the line the check says it, and with an answer it does not.
            let warned = checked_with(&place, "kind = ", "# (no kind)");
            assert!(warned.contains(&format!("{name} has 2 values")), "{warned}");
            assert!(warned.contains(&begins), "{warned}");
            let answered = kind.replace(open, "charge");
            let checked = checked_with(&place, "# (no kind)", &answered);
            assert!(!checked.contains("is taken for a charge"), "{checked}");
            place.fits();
        }
    }
}

/// What has NULL where it is a charge is left out by a filter that NULL passes: no value of `kind`
/// names NULL. What became of a charge is told.
#[tokio::test]
async fn flags_that_have_null_for_charges_leave_out_what_they_mark_or_are_told() {
    const MARKED: &str = "
        create table payments (
            id bigint primary key, {column}, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into payments values
            (1, {none}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {mark}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    let made = |column: &str, none: &str, mark: &str| {
        MARKED.replace("{column}", column).replace("{none}", none).replace("{mark}", mark)
    };
    for (column, mark, test) in [
        ("is_refund text", "'Y'", "not_in = [\"Y\"]"),
        ("is_refund integer", "1", "not_in = [1]"),
        ("ist_storno char(1)", "'X'", "not_in = [\"X\"]"),
    ] {
        let name = column.split(' ').next().unwrap();
        for place in in_both(&made(column, "null", mark)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let left_out = format!("where = [{{ column = \"{name}\", {test} }}]");
            assert!(settings(&file).contains(&left_out.as_str()), "{left_out} is not in\n{file}");
            assert!(!settings(&file).iter().any(|line| line.starts_with("kind = ")), "{file}");
            assert!(told_of.contains("where: rows that have "), "{told_of}");
            assert!(
                told_of.contains("NULL says charge; for refunds make a [[table]]"),
                "{told_of}"
            );
            place.fits();
            let warned = checked_with(&place, "where = ", "");
            assert!(warned.contains(&format!("{name} has 1 value")), "{warned}");
            assert!(warned.contains(test), "{warned}");
        }
    }
    for (column, none, mark, test) in [
        ("refund text", "null", "'X'", "not_in = [\"X\"]"),
        ("storno_kz text", "null", "'X'", "not_in = [\"X\"]"),
        ("estornado char(1)", "'N'", "'S'", "not_in = [\"S\"]"),
    ] {
        let name = column.split(' ').next().unwrap();
        for place in in_both(&made(column, none, mark)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let part = format!(
                "kind: `{name}` may say that a row is no charge; where it does, add {{ column = \
                 \"{name}\", {test} }} to where, which NULL passes"
            );
            assert!(told_of.contains(&part), "{part}: {told_of}");
            place.fits();
            let warned = checked_with(&place, "# nothing", "");
            assert!(warned.contains("no column is mapped as kind, and "), "{warned}");
            assert!(warned.contains(&format!("{name} has ")) && warned.contains(test), "{warned}");
        }
    }
    // What no setting can name is told.
    for place in in_both(&made("is_refund numeric(1)", "0", "1")).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let part = "may say that a row is no charge, and neither kind nor where takes its type";
        assert!(told_of.contains(part), "{told_of}");
        place.fits();
        let warned = checked_with(&place, "# nothing", "");
        assert!(warned.contains("is_refund has 2 values"), "{warned}");
    }
    // A flag that most rows do not have says charge by NULL, whatever a few of them have.
    let more = "; insert into payments values
        (3, null, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
        (4, null, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z'),
        (5, null, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')";
    let ddl = format!("{}{more}", made("is_refund boolean", "false", "true"));
    for place in in_both(&ddl).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let file = place.file();
        let left_out = "where = [{ column = \"is_refund\", not_in = [true] }]";
        assert!(settings(&file).contains(&left_out), "{left_out} is not in\n{file}");
        assert!(!settings(&file).iter().any(|line| line.starts_with("kind = ")), "{file}");
        let part = "where: rows that have true in `is_refund` are left out, as it marks what is no \
                    charge, and NULL says charge";
        assert!(told_of.contains(part), "{part}: {told_of}");
        place.fits();
    }
    // Of a flag that says both, NULL is told.
    for place in in_both(&made("is_refund boolean", "false", "true")).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let part = "kind: `is_refund` may be NULL, which no value of kind names";
        assert!(told_of.contains(part) && told_of.contains("not_in = [true]"), "{told_of}");
        place.fits();
    }
}

/// A refund that names its charge is no charge; a parent may be one.
#[tokio::test]
async fn rows_that_take_another_one_back_are_left_out_or_told() {
    const PAID: &str = "
        create table payments (
            id bigint primary key, refunded_payment_id bigint, parent_id bigint,
            amount_cents bigint not null, currency text not null, status text not null,
            created_at timestamptz not null);
        insert into payments values
            (1, null, null, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, 1, null, -100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (3, null, 1, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for place in in_both(PAID).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let left_out = "where = [{ column = \"refunded_payment_id\", is = \"null\" }]";
        assert!(settings(&place.file()).contains(&left_out), "{}", place.file());
        for part in [
            "where: rows that have `refunded_payment_id` are left out",
            "where: `parent_id` may say that a row takes another one back; where it does, add { \
             column = \"parent_id\", is = \"null\" } to where",
            "amount: `amount_cents` has values below zero (`-100`)",
        ] {
            assert!(told_of.contains(part), "{part}: {told_of}");
        }
        place.fits();
        let checked = checked_with(&place, "# nothing", "");
        assert!(!checked.contains("is taken for a charge"), "{checked}");
        let warned = checked_with(&place, "where = ", "");
        assert!(warned.contains("some have refunded_payment_id, which names"), "{warned}");
        assert!(warned.contains(left_out) && !warned.contains("parent_id"), "{warned}");
    }
    let charges = PAID.replace("(2, 1, null, -100", "(2, null, null, 100");
    for place in in_both(&charges).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        assert!(!told_of.contains("refunded_payment_id"), "{told_of}");
        assert!(!told_of.contains("below zero") && !place.file().contains("where = "));
    }
}

/// Names and values that only look alike.
/// A word that may as well be of a call on its way is taken, and told.
#[tokio::test]
async fn words_of_targets_that_may_mean_a_call_are_told() {
    let words =
        VIA.replace("(2, 'adyen', 100, 'EUR', 'processing'", "(2, 'adyen', 100, 'EUR', 'retrying'");
    for place in in_both(&words).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        assert!(settings(&place.file()).contains(&"retryable = \"retrying\""), "{}", place.file());
        let part = "retryable: \"retrying\" may also say that a call is on its way";
        assert!(told_of.contains(part), "{told_of}");
        let told_of = told(&place.init(&["--attempted", "once", "--retryable", "retrying"]));
        assert!(!told_of.contains(part), "{told_of}");
    }
}

/// What a column is called may say what its values do not.
#[tokio::test]
async fn a_column_that_may_tell_kinds_is_named_where_none_does() {
    let coded = VIA
        .replace("via text", "kind text")
        .replace("'stripe'", "'D'")
        .replace("'adyen'", "'R'")
        .replace("'acme_pay'", "'D'");
    for place in in_both(&coded).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let part = "a refund among charges (is it `kind`, which has `D`, `R`?), is never found";
        assert!(told_of.contains(part), "{told_of}");
        place.fits();
        let checked = checked_with(&place, "# nothing", "");
        assert!(checked.contains("kind has 2 values: `D`, `R`"), "{checked}");
    }
    let fees = coded.replace("'D'", "'payment'").replace("'R'", "'refund_fee'");
    for place in in_both(&fees).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let kind = "kind = { column = \"kind\", values = { \"payment\" = \"charge\", \
                    \"refund_fee\" = \"???\" } }";
        assert!(settings(&place.file()).contains(&kind), "{}", place.file());
        assert!(told_of.contains("has 1 value (`refund_fee`) besides"), "{told_of}");
    }
}

#[tokio::test]
async fn common_columns_are_not_taken_for_kinds() {
    const COMMON: &str = "
        create table payments (
            id bigint primary key, is_active boolean, refunded boolean, direction text, side text,
            credit_card_id bigint, card_type text, debit_day integer, credits integer,
            kind integer, refund_id text, parent_company_id bigint, is_default_payment boolean,
            amount_cents bigint not null, currency text not null, status text not null,
            created_at timestamptz not null);
        insert into payments values
            (1, false, false, 'N', 'left', 1, 'debit', 1, 0, 0, null, null, false,
             100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, true, true, 'S', 'right', 2, 'credit', 15, 1, 1, 'x', 1, true,
             100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for place in in_both(COMMON).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let file = place.file();
        assert!(!told_of.contains("kind: ") && !told_of.contains("where: "), "{told_of}");
        let is_filter = |line: &&str| line.starts_with("kind = ") || line.starts_with("where = ");
        assert_eq!(settings(&file).into_iter().filter(is_filter).count(), 0, "{file}");
        place.fits();
        let checked = checked_with(&place, "# nothing", "");
        assert!(!checked.contains("is taken for a charge"), "{checked}");
    }
}

/// Rows that are wrongly taken for siblings hold each other up: what no two rows share is written,
/// what tries may share stands behind a `#`, and what is paid again and again is not proposed.
#[tokio::test]
async fn what_the_tries_of_one_payment_share_is_offered_and_never_guessed() {
    const TRIES: &str = "
        create table {table} (
            id bigint primary key, {columns}, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null{unique});
        insert into {table} (id, amount_cents, currency, status, created_at) values
            (1, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, 100, 'EUR', 'succeeded', '2026-11-19T08:00:00Z')";
    let by_order = "# natural_key = [\"order_id\"]";
    for (table, columns, unique, line) in [
        (
            "charges",
            "subscription_id text, period text",
            "subscription_id, period",
            "natural_key = [\"subscription_id\", \"period\"]",
        ),
        ("charges", "order_id bigint", "order_id", "natural_key = [\"order_id\"]"),
        ("charges", "order_id bigint, attempt integer", "order_id, attempt", by_order),
        // An order has a row at each PSP.
        ("charges", "order_id bigint, provider text", "order_id, provider", by_order),
        ("charges", "customer_id bigint, \"OrderId\" bigint", "", "# natural_key = [\"OrderId\"]"),
        (
            "charges",
            "subscription_id text, billing_period date",
            "",
            "# natural_key = [\"subscription_id\", \"billing_period\"]",
        ),
        (
            "charges",
            "tenant_id bigint, order_id bigint, installment_no integer",
            "",
            "# natural_key = [\"tenant_id\", \"order_id\", \"installment_no\"]",
        ),
        ("charges", "subscription_id text, attempt integer", "subscription_id, attempt", ""),
        ("charges", "customer_id bigint, stripe_order_id text", "", ""),
        // An order is refunded in parts.
        ("refunds", "order_id bigint", "", ""),
    ] {
        let unique = if unique.is_empty() { String::new() } else { format!(", unique ({unique})") };
        let ddl = TRIES.replace("{table}", table).replace("{columns}", columns);
        for place in in_both(&ddl.replace("{unique}", &unique)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let lines: Vec<&str> = file.lines().filter(|it| it.contains("natural_key")).collect();
            let wanted: Vec<&str> = [line].into_iter().filter(|line| !line.is_empty()).collect();
            assert_eq!(lines, wanted, "{columns}{unique}");
            let is_told = told_of.contains("natural_key: ");
            assert_eq!(is_told, !line.starts_with("natural_key"), "{columns}{unique}: {told_of}");
            assert_eq!(told_of.contains("take the # from its line"), line.starts_with('#'));
            if !is_told {
                place.fits();
            }
        }
    }
}

/// A partitioned table has its time in its key, which no tag holds.
#[tokio::test]
async fn the_tag_of_a_partitioned_table_is_made_of_what_else_is_in_its_key() {
    let server = postgres_database().await;
    server
        .execute(
            "create table payments (id bigint, status text not null, cents bigint not null, \
             currency text not null, made_at timestamptz not null, pushed_at timestamptz, \
             primary key (id, made_at)) partition by range (made_at); \
             create table payments_rest partition of payments default; \
             insert into payments values (1, 'processing', 100, 'EUR', '2026-11-19 08:00:00Z')",
        )
        .await;
    let url = server.url().to_owned();
    let place = Place { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) };
    let told_of = told(&place.init(&["--table", "payments"]));
    assert!(settings(&place.file()).contains(&"tag = \"{id}\""), "{}", place.file());
    let part = "no column says when a row was last sent (is it `pushed_at`?)";
    assert!(told_of.contains(part), "{told_of}");
    place.fits();
}

/// What is unique where it is not NULL names no row for sure; who asks is told of it.
#[tokio::test]
async fn a_unique_column_that_may_be_null_is_named_where_no_key_is_found() {
    const KEYLESS: &str = "
        create table payments (uuid text unique, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into payments values ('a', 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for place in in_both(KEYLESS).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let part = "no unique key was found (`uuid` is unique, but may be NULL)";
        assert!(told_of.contains(part), "{told_of}");
    }
}

/// Of two tables with a status below a view nobody is guessed: the other's rows would be written.
#[tokio::test]
async fn the_written_table_below_a_join_is_asked_for() {
    const JOINED: &str = "
        create table spree_orders (id integer primary key, state text not null, total numeric,
            currency text not null, completed_at datetime);
        create table spree_payments (id integer primary key, order_id integer not null,
            state text not null, amount numeric not null, response_code text,
            created_at datetime not null, updated_at datetime not null);
        create view reconcile_payments as select p.*, o.currency from spree_payments p
            join spree_orders o on o.id = p.order_id;
        insert into spree_orders values (1, 'complete', 12.5, 'USD', null);
        insert into spree_payments values (1, 1, 'processing', 12.5, null,
            '2026-11-19 08:00:00', '2026-11-19 08:00:00')";
    let place = Place::sqlite(JOINED).await;
    let ended = place.init(&["--table", "reconcile_payments", "--attempted", "once"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let file = place.file();
    assert!(settings(&file).contains(&"write = \"???\""), "{file}");
    assert!(ended.stdout.contains("spree_orders and spree_payments"), "{}", ended.stdout);
}

/// What a view, or its table, works out is written by nobody: it is no status to propose.
#[tokio::test]
async fn a_status_that_is_worked_out_is_left_open() {
    let server = postgres_database().await;
    server
        .execute(
            "create table payments (id bigint primary key, step smallint not null, \
             cents bigint not null, currency text not null, created_at timestamptz not null); \
             create view payments_v as select id, step, cents, currency, created_at, \
             case step when 1 then 'processing' else 'paid' end as status from payments; \
             create table charges (id bigint primary key, step smallint not null, \
             cents bigint not null, currency text not null, created_at timestamptz not null, \
             status text generated always as \
             (case step when 1 then 'processing' else 'paid' end) stored); \
             insert into payments values (1, 1, 100, 'EUR', '2026-11-19 08:00:00Z'), \
             (2, 2, 100, 'EUR', '2026-11-19 08:00:00Z'); \
             insert into charges select * from payments",
        )
        .await;
    let url = server.url().to_owned();
    let place = Place { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) };
    for (table, why) in [
        ("payments_v", "`status` (text) is worked out by the view and cannot be written"),
        ("charges", "`status` (text) is generated and cannot be written"),
    ] {
        let ended = place.init(&["--table", table, "--attempted", "once"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let file = place.file();
        assert!(settings(&file).contains(&"status = \"???\""), "{file}");
        let written = |line: &&str| line.starts_with("succeeded") || line.starts_with("write");
        assert_eq!(settings(&file).into_iter().find(written), None, "{file}");
        let told = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(&format!("status: {why}")), "{told}");
        let check = tieout(place.folder.path(), &["config", "check"]);
        let open = format!("`status` of [[table]] {table} is still open");
        assert!(check.code == 10 && check.stderr.contains(&open), "{}", check.stderr);
    }
    // What the view takes from its table as it is can be named.
    let of_view = ["--table", "payments_v", "--attempted", "once", "--status", "step"];
    let values = ["--processing", "1", "--succeeded", "2"];
    let ended = place.init(&[&of_view[..], &values].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let file = place.file();
    for want in ["write = \"payments\"", "status = \"step\"", "from = [1]", "succeeded = 2"] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
    }
    place.fits();
}

/// One view shows the status in other words than its table has them: what were written would not be
/// what is read. The other shows stuck rows alone: what they become is its table's to say.
const SHOWN: &str = "
    create table payments (id bigint primary key, status text not null,
        cents bigint not null, currency text not null, created_at timestamptz not null);
    create view loud_payments as select id, cents, currency, created_at, upper(status) as status
        from payments;
    create view stuck_payments as select id, cents, currency, created_at, status || '' as status
        from payments where status = 'processing';
    insert into payments values (1, 'processing', 100, 'EUR', '2026-11-19T08:00:00Z'),
        (2, 'paid', 100, 'EUR', '2026-11-19T08:00:00Z'),
        (3, 'failed', 100, 'EUR', '2026-11-19T08:00:00Z'),
        (4, 'new', 100, 'EUR', '2026-11-19T08:00:00Z')";

#[tokio::test]
async fn what_is_written_are_words_of_the_written_table() {
    let server = postgres_database().await;
    server.execute(SHOWN).await;
    let url = server.url().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let on_server = Place { folder, url, _server: Some(server) };
    for (place, why) in [
        (on_server, "# the view works `status` out, so that it cannot be written there"),
        (Place::sqlite(SHOWN).await, "# the table below the view that has the status"),
    ] {
        let init = |view: &str, more: &[&str]| {
            let words = ["--table", view, "--attempted", "once"];
            let ended = place.init(&[&words[..], more].concat());
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            let file = place.file();
            assert!(file.contains(why), "{why} is not in\n{file}");
            assert!(settings(&file).contains(&"write = \"payments\""), "{file}");
            (file, ended.stdout.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let strange = "status: `loud_payments` shows 4 values (`FAILED`, `NEW`, `PAID`, \
                       `PROCESSING`) that `payments` was not seen to have";
        let (file, told) = init("loud_payments", &[]);
        assert!(told.contains(strange), "{told}");
        assert!(settings(&file).contains(&"status = \"???\""), "{file}");
        assert!(!file.contains("\nsucceeded"), "{file}");
        // Who names the column is believed, and told all the same.
        let (file, told) = init("loud_payments", &["--status", "status"]);
        assert!(told.contains(strange), "{told}");
        assert!(settings(&file).contains(&"from = [\"PROCESSING\"]"), "{file}");
        assert!(!file.contains("\nsucceeded"), "{file}");
        place.fits();
        let (file, _) = init("stuck_payments", &[]);
        for want in [
            "status = \"status\"",
            "from = [\"processing\"]",
            "succeeded = \"paid\"",
            "failed = \"failed\"",
            "ignore = [\"new\"]",
        ] {
            assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
        }
        // Its words are right, and no run may look through it: rows leave it once they are decided.
        let check = tieout(place.folder.path(), &["config", "check", "--connect"]);
        assert_eq!(check.code, 10, "{}", check.stdout);
        let said = check.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("by `where`, which only says what is taken"), "{said}");
    }
}

/// What is stuck now is seldom among the oldest rows: both ends of the key are looked at.
#[tokio::test]
async fn a_status_without_an_index_is_seen_at_both_ends_of_its_table() {
    let server = postgres_database().await;
    server
        .execute(
            "create table payments (id bigint primary key, status text not null, cents bigint, \
             currency text, created_at timestamptz not null); \
             insert into payments select i, case when i = 119999 then 'sending' else 'paid' end, \
             i, 'EUR', '2026-11-19 08:00:00Z' from generate_series(1, 120000) i",
        )
        .await;
    let url = server.url().to_owned();
    let place = Place { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) };
    assert_eq!(place.init(&["--attempted", "once"]).code, 0);
    assert!(settings(&place.file()).contains(&"from = [\"sending\"]"), "{}", place.file());
    place.fits();
}

/// A deleted row that is left in is paid all the same: what may say so is never passed over.
#[tokio::test]
async fn columns_of_deleted_rows_are_filtered_by_or_told() {
    let place = Place::sqlite(
        "create table payments (id integer primary key, amount_cents integer not null, \
         currency text not null, status text not null check (status in ('sending', 'paid')), \
         created_at datetime not null, deleted_at datetime, is_deleted integer not null, \
         docstatus integer not null, discarded_at integer)",
    )
    .await;
    let ended = place.init(&["--attempted", "once"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let filter = "where = [{ column = \"deleted_at\", is = \"null\" }]";
    assert!(settings(&place.file()).contains(&filter), "{}", place.file());
    let told = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for says in [
        "`discarded_at` may say that a row is deleted; where it does, add { column = \
         \"discarded_at\", is = \"null\" } to where",
        "`is_deleted` may say that a row is deleted; where it does, add { column = \"is_deleted\", \
         in = [0] } to where",
        "`docstatus` may say that a row is cancelled (2); where it does, add { column = \
         \"docstatus\", not_in = [2] } to where",
    ] {
        assert!(told.contains(says), "{says} is not in: {told}");
    }
    place.fits();
}

/// By a key that changes with the write no row is found again once it is written.
#[tokio::test]
async fn the_status_is_in_no_key_and_in_no_tag() {
    const KEYED: &str = "
        create table payments (
            id bigint not null, uuid text not null, status text not null,
            amount_cents bigint not null, currency text not null,
            created_at timestamptz not null, primary key (id, status){unique});
        insert into payments values
            (1, 'a', 'processing', 100, 'EUR', '2026-11-19T08:00:00Z'),
            (2, 'b', 'paid', 100, 'EUR', '2026-11-19T08:00:00Z')";
    let part = "key: no key was found but (`id`, `status`), and `status` changes with each write";
    for (unique, key, tag) in [
        ("", "key = [\"???\"]", "tag = \"{id}\""),
        (", unique (uuid)", "key = [\"uuid\"]", "tag = \"{uuid}\""),
        (", unique (uuid), unique (id)", "key = [\"id\"]", "tag = \"{id}\""),
    ] {
        for place in in_both(&KEYED.replace("{unique}", unique)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            for want in [key, tag] {
                assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
            }
            assert_eq!(told_of.contains(part), unique.is_empty(), "{told_of}");
            if !unique.is_empty() {
                place.fits();
            }
            // Nor is it where somebody says so.
            let told_of = told(&place.init(&["--attempted", "once", "--key", "id,status"]));
            assert!(told_of.contains(part), "{told_of}");
            assert!(settings(&place.file()).contains(&"key = [\"???\"]"), "{}", place.file());
        }
    }
}

/// A row that `where` hides is decided by no run, and no run says so.
#[tokio::test]
async fn flags_that_most_rows_do_not_have_hide_none_of_them() {
    const FLAGS: &str = "
        create table payments (
            id bigint primary key, {flag} boolean, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into payments values
            (1, {value}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {value}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (3, true, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (4, true, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')";
    let line_of = |file: &str| {
        let line = file.lines().find(|line| line.contains("where = ")).map(str::to_owned);
        line.unwrap_or_default()
    };
    for (flag, live, marked) in [
        ("is_deleted", "true", false),
        ("archived", "false", false),
        ("is_test", "true", false),
        ("is_live", "false", false),
        ("is_live", "true", true),
        ("is_test", "false", true),
    ] {
        let ddl = FLAGS.replace("{flag}", flag);
        let words = ["--attempted", "once", "--live", live];
        for place in in_both(&ddl.replace("{value}", "null")).await {
            let told_of = told(&place.init(&words));
            let (file, part) = (place.file(), "is NULL in 2 of 3 looked-at stuck rows");
            let line = match marked {
                false => format!("where = [{{ column = \"{flag}\", not_in = [true] }}]"),
                true => format!("# where = [{{ column = \"{flag}\", in = [true] }}]"),
            };
            assert_eq!(line_of(&file), line, "{file}");
            assert_eq!(told_of.contains(part), marked, "{told_of}");
            let comments = file.replace("\n# ", " ");
            assert_eq!(comments.contains(": 1 of 3 looked-at stuck rows"), !marked, "{file}");
            place.fits();
        }
        // Where each row has the flag, it is filtered by, and what that hides is told.
        for place in in_both(&ddl.replace("{value}", "false")).await {
            let told_of = told(&place.init(&words));
            let file = place.file();
            let part = format!("where: `{flag}` leaves out 2 of 3 looked-at stuck rows");
            assert!(line_of(&file).starts_with("where = "), "{file}");
            assert_eq!(told_of.contains(&part), marked, "{told_of}");
            let comments = file.replace("\n# ", " ");
            assert_eq!(comments.contains(": 2 of 3 looked-at stuck rows"), marked, "{file}");
        }
    }
}

/// A row whose version stands still is written over by whoever read it before.
#[tokio::test]
async fn a_version_is_counted_up_where_it_counts_writes() {
    const VERSIONED: &str = "
        create table payments (
            id bigint primary key, version {type}, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into payments values
            (1, {value}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {value}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')";
    let (counted, may_be) =
        ("set: `version` is counted up with each write", "set: `version` may count the writes");
    for (of, value, said) in [
        ("integer not null", "3", Some(counted)),
        ("integer", "3", Some(may_be)),
        ("integer not null", "20261119", Some(may_be)),
        ("text not null", "'1.2.0'", None),
    ] {
        let ddl = VERSIONED.replace("{type}", of).replace("{value}", value);
        for place in in_both(&ddl).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            for part in [counted, may_be] {
                assert_eq!(told_of.contains(part), said == Some(part), "{of} {value}: {told_of}");
            }
            let line = "always = { version = \"+1\" }";
            assert_eq!(settings(&file).contains(&line), said == Some(counted), "{file}");
            place.fits();
        }
    }
    let other = VERSIONED.replace("version {type}", "api_version integer not null");
    for place in in_both(&other.replace("{value}", "3")).await {
        assert!(!told(&place.init(&["--attempted", "once"])).contains("api_version"));
        assert!(!place.file().contains("always = "), "{}", place.file());
    }
}

/// When a row was changed is no time of sending it.
#[tokio::test]
async fn times_of_change_are_written_and_never_offered_as_the_last_attempt() {
    const CHANGED: &str = "
        create table payments (
            id bigint primary key, {name} {type}, amount_cents bigint not null,
            currency text not null, status text not null, created_at {type} not null);
        insert into payments values
            (1, {changed}, 100, 'EUR', 'processing', {made})";
    let ddl = |name: &str, class: &str, [changed, made]: [&str; 2]| {
        let ddl = CHANGED.replace("{name}", name).replace("{type}", class);
        ddl.replace("{changed}", changed).replace("{made}", made)
    };
    for name in [
        "last_modified_date",
        "updated_date",
        "write_date",
        "date_updated",
        "last_updated",
        "\"lastModifiedAt\"",
        "\"changedAt\"",
    ] {
        for place in in_both(&ddl(name, "timestamptz", ["'2026-11-19T08:00:00Z'"; 2])).await {
            let told_of = told(&place.init(&[]));
            let line = format!("always = {{ {} = \"{{now}}\" }}", name.replace('"', ""));
            assert!(settings(&place.file()).contains(&line.as_str()), "{}", place.file());
            let part = "no column says when a row was last sent; without it";
            assert!(told_of.contains(part), "{told_of}");
            place.fits();
        }
    }
    let refused = "set: `updated_at` may say when a row was changed, and is not written: it is \
                   bigint, and `time` would have to say epoch_ms";
    for (changed, made, is_written) in [
        ("1763546405000", "1763546405000", true),
        ("null", "1763546405000", true),
        ("1763546405", "1763546405", true),
        ("1763546405000", "1763546405", false),
    ] {
        for place in in_both(&ddl("updated_at", "bigint", [changed, made])).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let line = "always = { updated_at = \"{now}\" }";
            assert_eq!(settings(&place.file()).contains(&line), is_written, "{}", place.file());
            assert_eq!(told_of.contains(refused), !is_written, "{told_of}");
            place.fits();
        }
    }
}

/// Whether a column has the PSP's own ids is told where no value shows it.
#[tokio::test]
async fn columns_that_may_have_the_psps_ids_are_named() {
    const NAMED: &str = "
        create table payments (
            id bigint primary key, transaction_id text, response_code text, data json,
            amount_cents bigint not null, currency text not null, status text not null,
            created_at timestamptz not null);
        insert into payments values
            (1, 't-1', '00', null, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, 't-2', '00', null, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')";
    let lines = |file: &str| -> Vec<String> {
        file.lines().filter(|it| it.contains("psp_reference = ")).map(str::to_owned).collect()
    };
    for place in in_both(NAMED).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let part = "psp_reference: no column was seen to have the PSP's own ids (is it \
                    `transaction_id`?): name it where there is one; where they stand inside JSON, \
                    read a view";
        assert!(told_of.contains(part), "{told_of}");
        assert_eq!(lines(&place.file()), ["# psp_reference = \"transaction_id\""]);
        // Who says that there is none is believed.
        let told_of = told(&place.init(&["--attempted", "once", "--reference", "none"]));
        assert!(!told_of.contains("psp_reference") && lines(&place.file()).is_empty(), "{told_of}");
    }
    for place in in_both(&NAMED.replace("'t-2'", "'pi_2'")).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        assert!(!told_of.contains("psp_reference"), "{told_of}");
        assert_eq!(lines(&place.file()), ["psp_reference = \"transaction_id\""]);
    }
}

/// By a part of what is charged no payment is known again that lost its tag.
#[tokio::test]
async fn a_part_of_what_is_charged_is_never_taken_for_the_amount() {
    const SUMS: &str = "
        create table {table} (
            id bigint primary key, {columns}, currency text not null, status text not null,
            created_at timestamptz not null);
        insert into {table} values
            (1, {values}, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {values}, 'EUR', 'paid', '2026-11-19T08:00:00Z')";
    for (table, [first, second], values, wanted, part) in [
        ("payments", ["tax_amount", "order_total"], "2.5, 12.5", "order_total", ""),
        ("payments", ["fee_amount", "total_with_tax"], "2.5, 12.5", "total_with_tax", ""),
        ("payments", ["vat_amount", "brutto"], "2.5, 12.5", "brutto", ""),
        ("payments", ["platform_fee_amount", "payment_value"], "2.5, 12.5", "payment_value", ""),
        ("payments", ["min_amount", "price_paid"], "2.5, 12.5", "price_paid", ""),
        ("payments", ["paid_amount", "invoice_amount"], "0, 12.5", "invoice_amount", ""),
        ("payments", ["settlement_amount", "sale_amount"], "12.1, 12.5", "sale_amount", ""),
        ("payments", ["fee_amount", "amount_value"], "2.5, 12.5", "amount_value", ""),
        // Drupal's: a number and a currency code make a price.
        (
            "payments",
            ["refunded_amount__number", "amount__number"],
            "2.5, 12.5",
            "amount__number",
            "",
        ),
        ("payments", ["weight", "total__number"], "2.5, 12.5", "total__number", ""),
        // What is always 0 is no amount, whatever it is called.
        ("payments", ["amount", "charge_total"], "0.00, 12.5", "charge_total", ""),
        // What a table is about is no part of it.
        ("refunds", ["fee_amount", "refund_amount"], "2.5, 12.5", "refund_amount", ""),
        (
            "payments",
            ["base_amount", "order_amount"],
            "12.1, 12.5",
            "order_amount",
            "amount: `order_amount` is taken for what is charged (or is it `base_amount`?)",
        ),
        (
            "payments",
            ["price", "amount"],
            "12.1, 12.5",
            "amount",
            "amount: `amount` is taken for what is charged (or is it `price`?)",
        ),
        (
            "payments",
            ["credit_amount", "debit_amount"],
            "2.5, 12.5",
            "???",
            "amount: `credit_amount` or `debit_amount` may be a part of it: is it what is charged?",
        ),
        (
            "payments",
            ["tax_amount", "weight"],
            "2.5, 12.5",
            "???",
            "amount: `tax_amount` may be a part of it: is it what is charged?",
        ),
        (
            "payments",
            ["amount", "weight"],
            "null, 12.5",
            "???",
            "amount: `amount` is 0 or NULL in all looked-at rows",
        ),
    ] {
        let columns = format!("{first} numeric(12, 2), {second} numeric(12, 2)");
        let ddl = SUMS.replace("{table}", table).replace("{columns}", &columns);
        for place in in_both(&ddl.replace("{values}", values)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let begins = format!("amount = {{ column = \"{wanted}\", ");
            let is_there = settings(&file).iter().any(|line| line.starts_with(&begins));
            assert!(is_there, "{begins} is not in\n{file}");
            let is_told = told_of.contains("amount: `") && told_of.contains(part);
            assert_eq!(is_told, !part.is_empty(), "{first}, {second}: {told_of}");
            if wanted == "???" {
                let check = tieout(place.folder.path(), &["config", "check"]);
                let open = "`amount` of [[table]] payments is still open";
                assert!(check.code == 10 && check.stderr.contains(open), "{}", check.stderr);
            }
        }
    }
}

/// Stripe has ids for more than payments, and a charge's is another than its payment's.
#[tokio::test]
async fn ids_of_something_else_are_no_reference_and_ids_of_charges_are_not_written() {
    const IDS: &str = "
        create table {table} (
            id bigint primary key, {columns}, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into {table} values
            (1, {values}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z');
        insert into {table} (id, amount_cents, currency, status, created_at) values
            (2, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    let pair = "stripe_charge_id text, stripe_payment_intent_id text";
    for (table, columns, values, wanted, is_written) in [
        ("payments", pair, "'ch_1', 'pi_1'", "stripe_payment_intent_id", true),
        ("payments", "refund_id text, intent text", "'re_1', 'pi_1'", "intent", true),
        (
            "payments",
            "charge_ref text, client_secret text",
            "'ch_1', 'pi_1_secret_x'",
            "charge_ref",
            false,
        ),
        ("payments", "stripe_refund_id text", "'re_1'", "", false),
        ("payments", "stripe_id text", "'cs_test_1'", "", false),
        ("payments", "stripe_charge_id text", "'ch_1'", "stripe_charge_id", false),
        ("payments", "stripe_charge_id text", "null", "stripe_charge_id", false),
        ("payments", "stripe_charge_id text", "'pi_1'", "stripe_charge_id", true),
        ("payments", "external_id text", "'ch_1'", "external_id", false),
        (
            "refunds",
            "intent text, stripe_refund_id text",
            "'pi_1', 're_1'",
            "stripe_refund_id",
            true,
        ),
    ] {
        let ddl = IDS.replace("{table}", table).replace("{columns}", columns);
        for place in in_both(&ddl.replace("{values}", values)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let lines = settings(&file);
            let found = lines.iter().find(|line| line.starts_with("psp_reference = "));
            let line = format!("psp_reference = \"{wanted}\"");
            let line = Some(line.as_str()).filter(|_| !wanted.is_empty());
            assert_eq!(found.copied(), line, "{columns} {values}: {file}");
            let set = format!("succeeded = {{ {wanted} = \"{{psp_reference}}\" }}");
            assert_eq!(lines.contains(&set.as_str()), is_written, "{columns} {values}: {file}");
            let part = format!("set: `{wanted}` has ids of charges (ch_), so that none is written");
            let is_told = !wanted.is_empty() && !is_written;
            assert_eq!(told_of.contains(&part), is_told, "{columns} {values}: {told_of}");
            let part = "psp_reference: no column was seen to have the PSP's own ids";
            assert_eq!(told_of.contains(part), wanted.is_empty(), "{told_of}");
        }
    }
}

/// A column full of something else has no ids of payments, whatever it is called.
#[tokio::test]
async fn values_of_another_form_are_no_reference() {
    const IDS: &str = "
        create table payments (
            id bigint primary key, external_id text, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into payments values
            (1, {a}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z'),
            (2, {b}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z'),
            (3, {c}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for ([a, b, c], is_it) in [
        (["'ERP-1'", "'ERP-2'", "'ERP-3'"], false),
        (["'ERP-1'", "'pi_2'", "null"], true),
        (["'ERP-1'", "null", "null"], true),
        (["null", "null", "null"], true),
    ] {
        let ddl = IDS.replace("{a}", a).replace("{b}", b).replace("{c}", c);
        for place in in_both(&ddl).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let found = settings(&file).contains(&"psp_reference = \"external_id\"");
            assert_eq!(found, is_it, "{a} {b} {c}: {file}");
            let part = "psp_reference: no column was seen to have the PSP's own ids";
            assert_eq!(told_of.contains(part), !is_it, "{told_of}");
        }
    }
}

/// A CHECK over two columns may name words of the other one, which no row's status may be given.
#[tokio::test]
async fn words_of_a_check_over_two_columns_are_no_words_of_the_status() {
    const CHECKED: &str = "
        create table payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, payout_status text not null default 'none',
            created_at timestamptz not null, {checks});
        insert into payments values
            (1, 100, 'EUR', 'processing', 'none', '2026-11-19T08:00:00Z'),
            (2, 100, 'EUR', 'done', 'none', '2026-11-19T08:00:00Z')";
    let own = "check (status in ('processing', 'done', 'declined'))";
    let both = "check (status <> 'done' or payout_status in ('none', 'sent', 'paid'))";
    let swapped = "check (payout_status = 'paid' or status is not null)";
    for (checks, failed) in [
        (both.to_owned(), false),
        (swapped.to_owned(), false),
        (format!("{own}, {both}"), true),
        (own.to_owned(), true),
    ] {
        for place in in_both(&CHECKED.replace("{checks}", &checks)).await {
            told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let lines = settings(&file);
            for line in ["from = [\"processing\"]", "succeeded = \"done\""] {
                assert!(lines.contains(&line), "{checks}: {line} is not in\n{file}");
            }
            assert_eq!(lines.contains(&"failed = \"declined\""), failed, "{checks}: {file}");
            assert!(!file.contains("\"sent\"") && !file.contains("\"paid\""), "{checks}: {file}");
        }
    }
}

/// The time that is written is the one that paid rows have.
#[tokio::test]
async fn the_time_of_payment_is_the_one_that_paid_rows_have() {
    const PAID: &str = "
        create table payments (
            id bigint primary key, settled_at timestamptz, completed_at timestamptz,
            amount_cents bigint not null, currency text not null, status text not null,
            created_at timestamptz not null);
        insert into payments values
            (1, null, null, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {times}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z'),
            (3, {times}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')";
    let at = "'2026-11-19T08:00:05Z'";
    for (settled, completed, wanted) in [
        ("null", at, "completed_at"),
        (at, at, "settled_at"),
        (at, "null", "settled_at"),
        ("null", "null", "settled_at"),
    ] {
        let ddl = PAID.replace("{times}", &format!("{settled}, {completed}"));
        for place in in_both(&ddl).await {
            told(&place.init(&["--attempted", "once"]));
            let set = format!("succeeded = {{ {wanted} = \"{{psp_time}}\" }}");
            let file = place.file();
            assert!(settings(&file).contains(&set.as_str()), "{set} is not in\n{file}");
            place.fits();
        }
    }
}

/// What says that a row is not to be touched is told, in whatever type it is kept.
#[tokio::test]
async fn flags_of_rows_that_are_not_to_be_touched_are_told() {
    const FLAGGED: &str = "
        create table payments (
            id bigint primary key, {column}, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
        insert into payments values
            (1, {one}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {other}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')";
    for (column, [one, other], says, test) in [
        (
            "del_yn char(1) not null",
            ["'N'", "'Y'"],
            "say that a row is deleted",
            "not_in = [\"Y\"]",
        ),
        ("del_flg char(1) not null", ["'N'", "'N'"], "say that a row is deleted", "not_in = […]"),
        ("delete_flag integer not null", ["0", "1"], "say that a row is deleted", "in = [0]"),
        ("is_del integer", ["0", "1"], "say that a row is deleted", "not_in = [1]"),
        (
            "is_cancelled boolean not null",
            ["false", "true"],
            "say that a row is cancelled",
            "in = [false]",
        ),
        (
            "is_canceled boolean",
            ["false", "true"],
            "say that a row is cancelled",
            "not_in = [true]",
        ),
        ("test_flag integer not null", ["0", "1"], "say that a row is a test", "in = [0]"),
        ("deleted_at bigint not null", ["0", "0"], "say that a row is deleted", "in = [0]"),
        ("deleted_at bigint", ["null", "null"], "say that a row is deleted", "is = \"null\""),
        (
            "environment text not null",
            ["'live'", "'test'"],
            "tell live rows from test rows",
            "in = [\"live\"]",
        ),
        (
            "mode text not null",
            ["'live'", "'test'"],
            "tell live rows from test rows",
            "in = [\"live\"]",
        ),
        ("void boolean not null", ["false", "true"], "say that a row is cancelled", "in = [false]"),
        ("void integer", ["0", "1"], "say that a row is cancelled", "not_in = [1]"),
        (
            "is_reversed boolean not null",
            ["false", "true"],
            "say that a row is reversed",
            "in = [false]",
        ),
        ("voided integer", ["0", "1"], "say that a row is voided", "not_in = [1]"),
        ("voided integer", ["0", "1999"], "", ""),
        ("is_refunded boolean", ["false", "true"], "say that a row is refunded", "not_in = [true]"),
        (
            "on_hold boolean not null",
            ["false", "true"],
            "say that a row is on hold",
            "in = [false]",
        ),
        ("is_locked boolean", ["false", "true"], "say that a row is locked", "not_in = [true]"),
        ("is_template integer not null", ["0", "1"], "say that a row is a template", "in = [0]"),
        ("superseded integer", ["0", "1"], "say that a row is superseded", "not_in = [1]"),
        ("is_current integer not null", ["1", "0"], "say that a row is current", "in = [1]"),
        (
            "reversed_at timestamptz",
            ["null", "'2026-11-19T08:00:00Z'"],
            "say that a row is reversed",
            "is = \"null\"",
        ),
        ("voided_at bigint not null", ["0", "1"], "say that a row is voided", "in = [0]"),
        ("superseded_by bigint not null", ["0", "1"], "say that a row is superseded", "in = [0]"),
        (
            "valid_to date",
            ["null", "'2026-11-19'"],
            "say that a row no longer counts",
            "is = \"null\"",
        ),
        (
            "valid_to text not null",
            ["'9999-12-31'", "'2026-11-19'"],
            "say that a row no longer counts",
            "in = [\"9999-12-31\"]",
        ),
        ("superseded boolean not null", ["false", "true"], "", "in = [false]"),
        ("is_duplicate boolean", ["false", "true"], "", "not_in = [true]"),
        ("is_current boolean not null", ["true", "false"], "", "in = [true]"),
        ("is_latest boolean not null", ["true", "false"], "", "in = [true]"),
        ("superseded_by bigint", ["null", "1"], "", "is = \"null\""),
        ("env text", ["'live'", "'live'"], "", ""),
        ("mode text", ["'fast'", "'slow'"], "", ""),
        ("deleted text", ["null", "'2026-11-19'"], "", ""),
        ("del_flag boolean not null", ["false", "true"], "", "in = [false]"),
    ] {
        let ddl = FLAGGED.replace("{column}", column).replace("{one}", one);
        for place in in_both(&ddl.replace("{other}", other)).await {
            let told_of = told(&place.init(&["--attempted", "once", "--live", "true"]));
            let name = column.split(' ').next().unwrap();
            let condition = format!("{{ column = \"{name}\", {test} }}");
            let part = match says.is_empty() {
                true => format!("where: `{name}` may "),
                false => {
                    format!("where: `{name}` may {says}; where it does, add {condition} to where")
                }
            };
            assert_eq!(told_of.contains(&part), !says.is_empty(), "{part}: {told_of}");
            let line = format!("where = [{condition}]");
            let is_filter = says.is_empty() && !test.is_empty();
            assert_eq!(settings(&place.file()).contains(&line.as_str()), is_filter, "{column}");
        }
    }
}

/// Two stuck rows and a paid one, of which the first has one thing in these columns.
async fn versions(columns: &str, [one, other]: [&str; 2]) -> [Place; 2] {
    let ddl = format!(
        "create table payments (
            id bigint primary key, {columns}, amount_cents bigint not null,
            currency text not null, status text not null, created_at timestamptz not null);
         insert into payments values
            (1, {one}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (2, {other}, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z'),
            (3, {other}, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')"
    );
    in_both(&ddl).await
}

/// Of versions of a row the current one alone is decided; which it is, NULL does not say.
#[tokio::test]
async fn rows_that_no_longer_count_are_left_out_or_told() {
    let live = ["--attempted", "once", "--live", "true"];
    let made = "'2026-11-19T08:00:00Z'";
    // Two filters of one reason, each with its column.
    let deleted = ["null, false".to_owned(), format!("{made}, true")];
    let columns = "deleted_at timestamptz, is_deleted boolean not null";
    for place in versions(columns, [&deleted[0], &deleted[1]]).await {
        told(&place.init(&live));
        let file = place.file().replace("\n# ", " ");
        let why = "deleted rows are out by `deleted_at`: 1 of 2 looked-at stuck rows; deleted rows \
                   are out by `is_deleted`: 1 of 2 looked-at stuck rows";
        assert!(file.contains(why), "{file}");
        place.fits();
    }
    let columns = "superseded_by bigint, is_current boolean not null";
    for place in versions(columns, ["null, true", "1, false"]).await {
        let told_of = told(&place.init(&live));
        let file = place.file();
        let line = "where = [{ column = \"is_current\", in = [true] }, { column = \
                    \"superseded_by\", is = \"null\" }]";
        assert!(settings(&file).contains(&line), "{line} is not in\n{file}");
        for why in ["rows that are not current are out: 1", "another one stands for are out: 1"] {
            assert!(file.replace("\n# ", " ").contains(why), "{why} is not in\n{file}");
        }
        assert!(!told_of.contains("where: "), "{told_of}");
        place.fits();
    }
    for place in versions("is_latest boolean", ["true", "null"]).await {
        let told_of = told(&place.init(&live));
        assert!(!told_of.contains("where: "), "as many have it as not: {told_of}");
        assert!(place.file().contains("in = [true]"), "{}", place.file());
    }
    for place in versions("is_latest boolean", ["null", "null"]).await {
        let told_of = told(&place.init(&live));
        let part = "where: `is_latest` is NULL in 2 of 2 looked-at stuck rows, so that current and \
                    other rows are not told apart";
        assert!(told_of.contains(part), "{told_of}");
        let line = "# where = [{ column = \"is_latest\", in = [true] }]";
        assert!(place.file().contains(line), "{}", place.file());
        place.fits();
    }
    // No where asks for a time; SQLite's are texts.
    let [on_server, file] =
        versions("valid_to timestamptz", ["'9999-12-31 00:00:00Z'", made]).await;
    let told_of = told(&on_server.init(&live));
    let part = "where: `valid_to` may say that a row no longer counts, where it is not `9999-12-31";
    assert!(told_of.contains(part) && told_of.contains("no where asks for a time"), "{told_of}");
    let told_of = told(&file.init(&live));
    let part = "add { column = \"valid_to\", in = [\"9999-12-31 00:00:00Z\"] } to where";
    assert!(told_of.contains(part), "{told_of}");
    // Of an account of tests, test rows are those that count.
    for place in versions("is_test integer", ["0", "1"]).await {
        let told_of = told(&place.init(&["--attempted", "once", "--live", "false"]));
        let part = "where: `is_test` may say that a row is a test; where it does, add { column = \
                    \"is_test\", in = [1] } to where: else a row that is not is decided and \
                    written as any other";
        assert!(told_of.contains(part), "{told_of}");
    }
}

/// A rate says that there are two currencies, and only one of them is the amount's.
#[tokio::test]
async fn a_rate_of_exchange_beside_the_amount_is_told() {
    const RATED: &str = "
        create table payments (
            id bigint primary key, amount numeric(12, 2) not null, {rate} numeric(12, 6),
            {currency} text not null, status text not null, created_at timestamptz not null);
        insert into payments values
            (1, 12.5, 1.1, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    let by = |column: &str| {
        format!(
            "so that `amount` may be in another currency than `{column}` says: by the wrong one"
        )
    };
    let none = "so that `amount` may be in another currency than is named here: by the wrong one";
    for (rate, currency, part) in [
        ("\"CurrencyRate\"", "\"CurrencyCode\"", by("CurrencyCode")),
        ("currency_value", "currency_code", by("currency_code")),
        ("exchange_rate", "currency", by("currency")),
        ("fx_rate", "currency", by("currency")),
        ("conversion_rate", "currency", by("currency")),
        ("base_to_order_rate", "currency", by("currency")),
        ("fx_rate", "memo", none.to_owned()),
        ("tax_rate", "currency", String::new()),
        ("rate", "currency", String::new()),
        ("value_date_no", "currency", String::new()),
    ] {
        let ddl = RATED.replace("{rate}", rate).replace("{currency}", currency);
        for place in in_both(&ddl).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let is_told = told_of.contains("may be a rate of exchange");
            assert_eq!(is_told, !part.is_empty(), "{rate}: {told_of}");
            assert!(told_of.contains(&part), "{part}: {told_of}");
            let named = format!("currency: `{}` may be a rate", rate.trim_matches('"'));
            assert_eq!(told_of.contains(&named), is_told, "{named}: {told_of}");
        }
    }
}

/// A key of another table is no code and no word, and its table is named.
#[tokio::test]
async fn tables_of_currencies_and_of_statuses_are_named() {
    const POINTING: &str = "
        create table currencies (id bigint primary key, code text not null);
        create table payment_statuses (id bigint primary key, label text not null);
        create table payments (
            id bigint primary key, currency_id bigint not null references currencies (id),
            \"PaymentStatusId\" bigint not null references payment_statuses (id),
            amount_cents bigint not null, created_at timestamptz not null);
        insert into currencies values (1, 'EUR');
        insert into payment_statuses values (1, 'processing');
        insert into payments values (1, 1, 1, 100, '2026-11-19T08:00:00Z')";
    for place in in_both(POINTING).await {
        let told_of = told(&place.init(&["--table", "payments", "--attempted", "once"]));
        for part in [
            "currency: `currency_id` points at `currencies`, where it stands: read a view that has \
             its code (`code` there) as a column, or name one currency",
            "status: `payment_statuses` lists what the values of `PaymentStatusId` mean",
        ] {
            assert!(told_of.contains(part), "{part}: {told_of}");
        }
        assert!(settings(&place.file()).contains(&"status = \"PaymentStatusId\""));
    }
}

/// What applications call a status and an amount besides: the table is found without being named,
/// and what its values say is left open where they are codes.
#[tokio::test]
async fn statuses_and_amounts_are_known_by_further_names() {
    const CALLED: &str = "
        create table notes (id bigint primary key, note text);
        create table zahlungen (
            id bigint primary key, {columns}, waehrung text not null,
            angelegt_am timestamptz not null);
        insert into zahlungen values (1, {values}, 'EUR', '2026-11-19T08:00:00Z')";
    for (columns, values, wanted) in [
        ("zahlstatus text, summe_cent bigint", "'bezahlt', 100", "status = \"zahlstatus\""),
        (
            "zahlstatus text, summe_cent bigint",
            "'bezahlt', 100",
            "amount = { column = \"summe_cent\", unit = \"minor\" }",
        ),
        ("statut_paiement text, montant numeric(12, 2)", "'payé', 1", "\"statut_paiement\""),
        ("stato_pagamento text, importo numeric(12, 2)", "'pagato', 1", "\"stato_pagamento\""),
        ("status_code text, betrag numeric(12, 2)", "'bezahlt', 1", "status = \"status_code\""),
        ("status_id integer, betrag numeric(12, 2)", "3, 1", "status = \"status_id\""),
        ("status_id integer, betrag numeric(12, 2)", "3, 1", "from = [\"???\"]"),
        // A code may be what the PSP answered.
        (
            "status_code integer, gateway_status text, betrag numeric(12, 2)",
            "200, 'bezahlt', 1",
            "status = \"gateway_status\"",
        ),
        // Only a person can say it, and the table is shown.
        ("sts_cd text, betrag numeric(12, 2)", "'PR', 1", "status = \"???\""),
    ] {
        let ddl = CALLED.replace("{columns}", columns).replace("{values}", values);
        for place in in_both(&ddl).await {
            told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let lines = settings(&file);
            assert!(lines.contains(&"read = \"zahlungen\""), "{columns}: {file}");
            assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted} is not in\n{file}");
        }
    }
}

/// Times as applications on .NET, shops and ledgers call them.
#[tokio::test]
async fn times_are_known_by_their_names_and_those_of_an_end_are_no_attempt() {
    const TIMED: &str = "
        create table payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, {created} timestamptz not null, {other} timestamptz);
        insert into payments values
            (1, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z', '2026-11-19T08:00:01Z')";
    for (created, other) in [
        ("\"CreatedOnUtc\"", "voided_at"),
        ("\"CreatedUtc\"", "collected_at"),
        ("created_on_utc", "completed_on"),
        ("requested_at", "settled_on"),
        ("\"OrderDate\"", "\"PaidDateUtc\""),
        ("created_at", "\"CapturedUtc\""),
        ("created_at", "valid_to"),
        ("created_at", "last_modified_on_utc"),
        ("created_at", "refund_expires_at"),
    ] {
        let ddl = TIMED.replace("{created}", created).replace("{other}", other);
        for place in in_both(&ddl).await {
            let told_of = told(&place.init(&[]));
            let line = format!("created = \"{}\"", created.trim_matches('"'));
            let file = place.file();
            assert!(settings(&file).contains(&line.as_str()), "{line} is not in\n{file}");
            assert!(!file.contains("\nattempted"), "{file}");
            let part = "attempted: no column says when a row was last sent; without it";
            assert!(told_of.contains(part), "{other}: {told_of}");
            place.fits();
        }
    }
    // What is asked for once and sent again is its last attempt.
    let ddl = TIMED.replace("{created}", "created_at").replace("{other}", "requested_at");
    for place in in_both(&ddl).await {
        told(&place.init(&[]));
        let file = place.file();
        assert!(settings(&file).contains(&"attempted = \"requested_at\""), "{file}");
    }
}

/// Orders are sent in by whoever buys, and charged later.
#[tokio::test]
async fn what_was_submitted_may_be_of_nobody_who_has_paid() {
    let ddl = |status: &str| {
        format!(
            "create table payments (
                id bigint primary key, amount_cents bigint not null, currency text not null,
                status text not null, created_at timestamptz not null);
             insert into payments values
                (1, 100, 'EUR', '{status}', '2026-11-19T08:00:00Z'),
                (2, 100, 'EUR', 'sending', '2026-11-19T08:00:00Z'),
                (3, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z')"
        )
    };
    for (status, is_told) in [("Submitted", true), ("submitted", true), ("processing", false)] {
        for place in in_both(&ddl(status)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let part = format!("from: `{status}` may also mean that the customer has not paid yet");
            assert_eq!(told_of.contains(&part), is_told, "{told_of}");
            assert!(!told_of.contains("`sending` may also"), "{told_of}");
            let told_of = told(&place.init(&["--attempted", "once", "--processing", status]));
            assert!(!told_of.contains("customer has not paid"), "{told_of}");
        }
    }
}

/// What a row gets with its outcome, besides the status.
#[tokio::test]
async fn times_of_each_outcome_are_written_and_reasons_told() {
    const ENDED: &str = "
        create table payments (
            id bigint primary key, {column}, amount_cents bigint not null,
            currency text not null, status text not null, created_at {type} not null);
        insert into payments values
            (1, null, 100, 'EUR', 'processing', {made}),
            (2, {value}, 100, 'EUR', 'paid', {made}),
            (3, {value}, 100, 'EUR', 'failed', {made})";
    let (at, made) = ("timestamptz", "'2026-11-19T08:00:05Z'");
    let (epoch, seconds) = ("bigint", "1795089600");
    let paid = |name: &str| format!("succeeded = {{ {name} = \"{{psp_time}}\" }}");
    for (column, class, value, wanted) in [
        ("collected_at timestamptz", at, made, paid("collected_at")),
        ("\"PaidDateUtc\" timestamptz", at, made, paid("PaidDateUtc")),
        ("\"CapturedUtc\" timestamptz", at, "null", paid("CapturedUtc")),
        ("completed timestamptz", at, made, paid("completed")),
        ("completed bigint", epoch, seconds, paid("completed")),
        ("failed_at timestamptz", at, made, "failed = { failed_at = \"{psp_time}\" }".to_owned()),
        // A flag, a count, and a day.
        ("completed bigint", epoch, "1", String::new()),
        ("completed text", at, "'yes'", String::new()),
        ("paid_date text", at, "'2026-11-19'", String::new()),
    ] {
        let made = if class == epoch { seconds } else { made };
        let ddl = ENDED.replace("{column}", column).replace("{type}", class);
        for place in in_both(&ddl.replace("{made}", made).replace("{value}", value)).await {
            told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let (_, set) = file.split_once("[table.set]\n").unwrap_or_default();
            assert_eq!(set.trim_end(), wanted, "{column} {value}: {file}");
            place.fits();
        }
    }
    let ddl = ENDED.replace("{column}", "failure_reason text").replace("{type}", at);
    let ddl = ddl.replace("{made}", made).replace("{value}", "null");
    let part = "set: `failure_reason` may say why a row failed; where tieout's own words may stand \
                there (`declined_final`), add failure_reason = \"{reason}\" to failed of \
                [table.set]";
    for place in in_both(&ddl).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        assert!(told_of.contains(part), "{told_of}");
    }
    // Of another sort of time than the others it is told, and not written.
    let server = postgres_database().await;
    let ddl = ENDED.replace("{column}", "captured_at timestamp").replace("{type}", at);
    server.execute(ddl.replace("{made}", made).replace("{value}", "null")).await;
    let url = server.url().to_owned();
    let place = Place { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) };
    let told_of = told(&place.init(&["--attempted", "once"]));
    let part = "set: `captured_at` may say when a row was paid, and is not written: it is \
                timestamp without time zone, and `time` would have to say a zone";
    assert!(told_of.contains(part), "{told_of}");
    assert!(!place.file().contains("{psp_time}"), "{}", place.file());
}

/// A history whose rows follow one on the other takes none of tieout's.
#[tokio::test]
async fn a_history_that_no_insert_fits_is_not_proposed() {
    const TRANSITIONS: &str = "
        create table payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, created_at timestamptz not null);
        create table payment_transitions (
            id bigint primary key, payment_id bigint not null references payments (id),
            to_state text not null, status text not null, {columns});
        insert into payments values
            (1, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for (columns, part) in [
        (
            "sort_key integer not null, most_recent boolean not null",
            "is nothing for [table.history]: what stands in `sort_key`, `most_recent` follows",
        ),
        (
            "sort_key integer default 0, unique (payment_id, sort_key)",
            "is nothing for [table.history]: what stands in `sort_key` follows",
        ),
        ("is_current boolean", "what stands in `is_current` follows from the row before"),
        ("sort_key integer default 0", "there, map it as [table.history]"),
        ("at timestamptz", "there, map it as [table.history]"),
    ] {
        for place in in_both(&TRANSITIONS.replace("{columns}", columns)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            assert!(told_of.contains("history: `payment_transitions` points at"), "{told_of}");
            assert!(told_of.contains(part), "{part}: {told_of}");
        }
    }
}

/// What may be meant by a word of its name is asked for, and millionths are no cents.
#[tokio::test]
async fn columns_that_may_be_meant_are_named_where_none_is_taken() {
    const NEAR: &str = "
        create table payments (
            id bigint primary key, {columns}, created_at timestamptz not null);
        insert into payments values (1, {values}, '2026-11-19T08:00:00Z')";
    let plain = "currency text, status text";
    let counted = "amount_cents bigint, currency text";
    let amount = |column: &str| format!("{column}, {plain}");
    let status = |column: &str| format!("{column}, {counted}");
    let currency = |column: &str| format!("{column}, amount_cents bigint, status text");
    let (text, number) = ("100, 'EUR', 'paid'", "3, 100, 'EUR'");
    for (columns, values, part) in [
        (amount("amount_required bigint"), text, "amount (is it `amount_required`?)"),
        (amount("amount_wanted numeric(12, 2)"), text, "amount (is it `amount_wanted`?)"),
        (amount("\"Amount (EUR)\" numeric(12, 2)"), text, "amount (is it `Amount (EUR)`?)"),
        (amount("amt numeric(12, 2)"), text, "amount (is it `amt`?)"),
        (
            amount("amount_due bigint, amount_required bigint"),
            "100, 100, 'EUR', 'paid'",
            "amount (is it `amount_required` or `amount_due`?)",
        ),
        (
            amount("tax_amount bigint, amount_required bigint"),
            "100, 100, 'EUR', 'paid'",
            "amount (is it `amount_required` or `tax_amount`?)",
        ),
        (
            amount("amount_micros bigint"),
            text,
            "amount (is it `amount_micros`?); `amount_micros` has millionths by its name, which \
             are neither minor nor major units: read a view that has \"amount_micros\" / 1000000.0",
        ),
        // What is always 0, and what only speaks of an amount.
        (amount("amt bigint"), "0, 'EUR', 'paid'", "no column looks like an amount \u{b7}"),
        (amount("amount_id bigint"), text, "no column looks like an amount \u{b7}"),
        (
            currency("currency_iso_code char(3)"),
            "'EUR', 100, 'paid'",
            "currency: no column tells it (is it `currency_iso_code`?): name it, or one currency",
        ),
        (
            currency("crncy_cd text"),
            "'EUR', 100, 'paid'",
            "currency: no column tells it (is it `crncy_cd`?): name it, or one currency",
        ),
        (
            currency("currency_id integer"),
            "1, 100, 'paid'",
            ", and no code: read a view that has the code as a column",
        ),
        (
            currency("currency_rate integer"),
            "1, 100, 'paid'",
            "currency: no column tells it: name one currency",
        ),
        (
            currency("\"CurrencyIso\" smallint"),
            "978, 100, 'paid'",
            "as a column, such as EUR for 978",
        ),
        (status("contribution_status_id integer"), number, "(is it `contribution_status_id`?)"),
        (status("order_status_id integer"), number, "a status (is it `order_status_id`?)"),
        (
            status("\"StatusFlags\" integer"),
            number,
            "a status (is it `StatusFlags`?): name it with --status, and what its values say with \
             --processing, --succeeded and --failed; of `StatusFlags` each sum of bits",
        ),
        (status("success boolean"), "true, 100, 'EUR'", "a status (is it `success`?)"),
        (status("sts_cd text"), "'PR', 100, 'EUR'", "a status (is it `sts_cd`?)"),
        (status("result_note text"), "'x', 100, 'EUR'", "no column looks like a status \u{b7}"),
    ] {
        let ddl = NEAR.replace("{columns}", &columns).replace("{values}", values);
        for place in in_both(&ddl).await {
            let ended = place.init(&["--table", "payments", "--attempted", "once"]);
            // Where a sentence ends is part of what is looked for.
            let told_of = told(&ended).replace(" - ", " \u{b7} ").replace(" next:", " \u{b7}");
            assert!(told_of.contains(part), "{part}: {told_of}");
            assert!(place.file().contains("\"???\""), "{}", place.file());
        }
    }
    let ddl = NEAR.replace("{columns}", &amount("amount_micros bigint"));
    for place in in_both(&ddl.replace("{values}", text)).await {
        told(&place.init(&[
            "--attempted",
            "once",
            "--amount",
            "amount_micros",
            "--table",
            "payments",
        ]));
        let line = "amount = { column = \"amount_micros\", unit = \"???\" }";
        assert!(settings(&place.file()).contains(&line), "{}", place.file());
        let check = tieout(place.folder.path(), &["config", "check"]);
        let open = "`amount` of [[table]] payments is still open: `amount_micros` has millionths";
        assert!(check.code == 10 && check.stderr.contains(open), "{}", check.stderr);
    }
}

/// PostgreSQL's money and composites are read by a view.
#[tokio::test]
async fn a_type_that_no_amount_is_read_of_is_named() {
    for (ddl, type_name) in [("total money", "money"), ("total priced", "priced")] {
        let server = postgres_database().await;
        server
            .execute(format!(
                "create type priced as (code text, amount numeric); \
                 create table payments (id bigint primary key, {ddl}, currency text, status text, \
                 created_at timestamptz not null)"
            ))
            .await;
        let url = server.url().to_owned();
        let place = Place { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) };
        let told_of = told(&place.init(&["--table", "payments", "--attempted", "once"]));
        let part = format!(
            "amount: no column looks like an amount (is it `total`?); `total` is {type_name}, and \
             no plain number: read a view that has its number as a numeric column"
        );
        assert!(told_of.contains(&part), "{part}: {told_of}");
    }
}

/// What was said of a status's values is not dropped where its column is not known.
#[tokio::test]
async fn values_that_were_said_stand_though_no_status_is_known() {
    const NUMBERED: &str = "
        create table payments (
            id bigint primary key, order_status_id integer not null, amount_cents bigint not null,
            currency text not null, created_at timestamptz not null);
        insert into payments values
            (1, 1, 100, 'EUR', '2026-11-19T08:00:00Z'),
            (2, 4, 100, 'EUR', '2026-11-19T08:00:00Z')";
    let said = ["--processing", "1,2", "--succeeded", "4", "--failed", "3", "--retryable", "5"];
    for place in in_both(NUMBERED).await {
        told(&place.init(&[&said[..], &["--table", "payments", "--attempted", "once"]].concat()));
        let file = place.file();
        for want in [
            "status = \"???\"",
            "from = [\"1\", \"2\"]",
            "succeeded = \"4\"",
            "failed = \"3\"",
            "retryable = \"5\"",
        ] {
            assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
        }
        // The column is all that is left to say.
        checked_with(&place, "status = ", "status = \"order_status_id\"");
        place.fits();
    }
}

/// PostgreSQL compares no text as times: the way out is a view, and another column goes first.
#[tokio::test]
async fn times_that_are_text_are_told_where_they_are_not_compared() {
    const TEXTS: &str = "
        create table payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, created_at text not null, sent_at text{more});
        insert into payments (id, amount_cents, currency, status, created_at, sent_at) values
            (1, 100, 'EUR', 'processing', '2026-11-19T08:00:00Z', '2026-11-19T08:00:01Z'),
            (2, 100, 'EUR', 'paid', '2026-11-19T08:00:00Z', '2026-11-19T08:00:01Z')";
    let [on_server, file] = in_both(&TEXTS.replace("{more}", "")).await;
    let told_of = told(&on_server.init(&[]));
    let check = tieout(on_server.folder.path(), &["config", "check", "--connect"]);
    let refused = check.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(check.code, 10, "{refused}");
    for name in ["created", "attempted"] {
        let column = if name == "created" { "created_at" } else { "sent_at" };
        let part = format!(
            "{name}: `{column}` is text, and PostgreSQL compares no text as times: as `read` take \
             a view with \"{column}\"::timestamptz as \"{column}\""
        );
        assert!(told_of.contains(&part), "{part}: {told_of}");
        let part = format!("as `read` a view with \"{column}\"::timestamptz as \"{column}\"");
        assert!(refused.contains(&part), "{part}: {refused}");
    }
    let server = on_server._server.as_ref().unwrap();
    server
        .execute(
            "create view payments_v as select id, amount_cents, currency, status, \
             created_at::timestamptz as created_at, sent_at::timestamptz as sent_at from payments",
        )
        .await;
    let told_of = told(&on_server.init(&["--table", "payments_v"]));
    assert!(!told_of.contains("compares no text"), "{told_of}");
    on_server.fits();
    // SQLite has no others.
    assert!(!told(&file.init(&[])).contains("compares no text"));
    file.fits();
    let two = TEXTS.replace("{more}", ", inserted_at timestamptz not null default '2026-11-19'");
    let [on_server, file] = in_both(&two).await;
    for (place, created) in [(on_server, "inserted_at"), (file, "created_at")] {
        told(&place.init(&["--attempted", "once"]));
        let line = format!("created = \"{created}\"");
        assert!(settings(&place.file()).contains(&line.as_str()), "{}", place.file());
        place.fits();
    }
}

/// SQLite types values: what is refused is the text among the numbers, and not the column.
#[tokio::test]
async fn a_text_among_whole_numbers_of_the_epoch_is_shown() {
    const MIXED: &str = "
        create table payments (
            id integer primary key, amount_cents integer not null, currency text not null,
            status text not null, \"createdAt\" datetime not null);
        insert into payments values
            (1, 100, 'EUR', 'processing', 1763546405000),
            (2, 100, 'EUR', 'paid', '2026-11-19 08:00:00')";
    let words = ["--attempted", "once", "--time", "epoch_ms"];
    let place = Place::sqlite(MIXED).await;
    assert_eq!(place.init(&words).code, 0);
    let check = tieout(place.folder.path(), &["config", "check", "--connect"]);
    let refused = check.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = "created: column `createdAt` has text among its whole numbers, such as `2026-11-19 \
                08:00:00`; expected whole numbers in every row, as `time` says epoch";
    assert!(check.code == 10 && refused.contains(part), "{refused}");
    let place = Place::sqlite(&MIXED.replace("'2026-11-19 08:00:00'", "1763546405000")).await;
    assert_eq!(place.init(&words).code, 0);
    place.fits();
}

/// Rows that store a payment as paid ones do may be paid already: none is taken for stuck.
#[tokio::test]
async fn rows_that_may_be_paid_already_are_not_taken_for_stuck() {
    let ddl = |table: &str, rows: &[(&str, &str, usize)]| {
        let mut ddl = format!(
            "create table {table} (
                id bigint primary key, intent text, amount_cents bigint not null,
                currency text not null, status text not null, created_at timestamptz not null);"
        );
        let each = rows
            .iter()
            .flat_map(|(status, mark, count)| std::iter::repeat_n((*status, *mark), *count));
        for (id, (status, mark)) in each.enumerate() {
            let intent = if mark == "pi" { format!("'pi_{id}'") } else { mark.to_owned() };
            ddl.push_str(&format!(
                "insert into {table} values
                    ({id}, {intent}, 100, 'EUR', '{status}', '2026-11-19T08:00:00Z');"
            ));
        }
        ddl
    };
    let stored = "from: rows with `processing` store a payment as `completed` ones do: are they \
                  paid already? 3 of 3 looked-at ones have `intent`";
    let ordered = "from: `processing` of an order mostly says that it is paid, and not yet sent: \
                   are such rows paid already?";
    let german = ordered.replace("processing", "in Bearbeitung");
    let french = ordered.replace("processing", "en cours");
    for (table, processing, paid, other, part) in [
        ("payments", ("processing", "pi", 3), 3, ("new", "null", 2), stored),
        ("payments", ("processing", "pi", 3), 12, ("new", "null", 2), stored),
        // Nothing is stored yet; or everything is, before it is paid; or there are too few, alone
        // or beside those that are paid.
        ("payments", ("processing", "''", 3), 3, ("new", "null", 2), ""),
        ("payments", ("processing", "pi", 3), 3, ("failed", "pi", 3), ""),
        ("payments", ("processing", "pi", 2), 3, ("new", "null", 2), ""),
        ("payments", ("processing", "pi", 3), 13, ("new", "null", 2), ""),
        ("sales_order", ("processing", "null", 1), 3, ("pending_payment", "null", 2), ordered),
        ("wc_orders", ("processing", "null", 1), 3, ("pending", "null", 2), ordered),
        ("orders", ("in Bearbeitung", "null", 1), 3, ("offen", "null", 2), german.as_str()),
        ("orders", ("sending", "null", 1), 3, ("new", "null", 2), ""),
        ("bestellungen", ("in Bearbeitung", "null", 1), 3, ("offen", "null", 2), german.as_str()),
        ("commandes", ("en cours", "null", 1), 3, ("en attente", "null", 2), french.as_str()),
        // Whatever the table is called, where its words are those of orders.
        ("vorgaenge", ("in Bearbeitung", "null", 1), 3, ("offen", "null", 2), german.as_str()),
        ("payments", ("processing", "null", 1), 3, ("shipped", "null", 2), ordered),
        ("vorgaenge", ("in Bearbeitung", "null", 1), 3, ("fehlgeschlagen", "null", 2), ""),
        ("zahlungen", ("in Bearbeitung", "null", 1), 3, ("offen", "null", 2), ""),
    ] {
        let rows = [processing, ("completed", "pi", paid), other];
        for place in in_both(&ddl(table, &rows)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let file = place.file();
            let (value, ..) = processing;
            let from = format!("from = [\"{}\"]", if part.is_empty() { value } else { "???" });
            assert!(settings(&file).contains(&from.as_str()), "{from} is not in\n{file}");
            assert_eq!(told_of.contains("paid already?"), !part.is_empty(), "{told_of}");
            assert!(told_of.contains(part), "{part}: {told_of}");
            // Who says which values are stuck is believed.
            let told_of = told(&place.init(&["--attempted", "once", "--processing", value]));
            assert!(!told_of.contains("paid already?"), "{told_of}");
        }
    }
}

#[tokio::test]
async fn an_amount_in_floats_is_said_to_be_one() {
    for (of, is_float) in [("double precision", true), ("real", true), ("numeric", false)] {
        let ddl = format!(
            "create table payments (id bigint primary key, amount {of} not null, \
             currency text not null, status text not null, created_at timestamptz not null); \
             insert into payments values (1, 12.5, 'EUR', 'processing', '2026-11-19T08:00:00Z')"
        );
        for place in in_both(&ddl).await {
            told(&place.init(&["--attempted", "once"]));
            let file = place.file().replace("\n# ", " ");
            let part = "a float, which is read only where it is a whole number of minor units \
                        within 1e-6, and else its row goes to a person";
            assert_eq!(file.contains(part), is_float, "{of}: {file}");
            place.fits();
        }
    }
}

/// What a policy hides says nothing of the table.
#[tokio::test]
async fn rows_that_a_policy_hides_are_told() {
    let server = postgres_database().await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    server
        .execute(format!(
            "create table payments (id bigint primary key, amount_cents bigint not null, \
             currency text not null, status text not null, created_at timestamptz not null); \
             insert into payments select i, 100, 'EUR', 'processing', '2026-11-19 08:00:00Z' \
             from generate_series(1, 3) i; \
             create role {role} login; grant usage on schema public to {role}; \
             grant select, update on payments to {role}; \
             alter table payments enable row level security"
        ))
        .await;
    server.execute("analyze payments").await;
    let url = server.url().replace("postgres@", &format!("{role}@"));
    assert_ne!(url, server.url());
    let place = Place { folder: tempfile::tempdir().unwrap(), url, _server: None };
    let told_of = told(&place.init(&["--attempted", "once"]));
    let part = "read: row-level security hides rows of `payments` from this login (of about 3 rows \
                none was seen)";
    assert!(told_of.contains(part), "{told_of}");
    server.execute(format!("drop owned by {role}; drop role {role}")).await;
}

#[tokio::test]
async fn events_are_printed_where_they_are_asked_for() {
    let place = Place::sqlite(SHOP).await;
    let ended = place.init(&["--json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    events::check(&ended.stdout);
    let event: Value = serde_json::from_str(ended.stdout.trim()).expect("one object");
    assert_eq!(event["type"], "mapping_proposal");
    let of = ["file", "table", "name"].map(|field| event[field].as_str().unwrap());
    assert_eq!(of, ["tieout.toml", "charges", "charges"]);
    assert_eq!(event["candidates"][0], "charges", "{event}");
    let settings = event["settings"].as_array().unwrap();
    let of = |section: &str, name: &str| {
        let found = settings.iter().find(|one| one["section"] == section && one["setting"] == name);
        found.unwrap_or_else(|| panic!("no {section} {name}: {event}"))
    };
    assert_eq!(of("table", "status")["value"], "\"state\"");
    assert_eq!(of("table.map", "from")["value"], "[\"sending\"]");
    assert!(of("table", "amount")["why"].as_str().is_some_and(|why| !why.is_empty()));
    assert_eq!(of("table", "amount")["open"], false);
    let untold = event["could_not_tell"].as_array().unwrap();
    assert!(untold.iter().any(|text| text.as_str().unwrap().starts_with("tag: ")), "{event}");
    // What is left open is marked.
    let place = Place::sqlite(PROVIDERS).await;
    let ended = place.init(&["--json"]);
    assert!(ended.stdout.contains("\"open\":true"), "{}", ended.stdout);
    assert!(place.file().contains("???"), "the file is written as ever");
}

/// A sign that ends an address is written as it is in many a password.
#[test]
fn a_password_that_splits_its_address_is_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    for address in
        ["u:verysecret#1@127.0.0.1:1/d", "u:verysecret?1@127.0.0.1:1/d", "u:12#verysecret@h/d"]
    {
        let url = format!("postgres://{address}");
        let ended = tieout(folder.path(), &["config", "init", "--url", &url, "--yes"]);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, 10, "{said}");
        assert!(!said.contains("verysecret") && said.contains("`postgres://***`"), "{said}");
        assert!(said.contains("%23 %3F"), "{said}");
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_nothing_is_written_over() {
    let place = Place::sqlite(SHOP).await;
    let folder = place.folder.path();
    let before = std::fs::read(folder.join("shop.db")).unwrap();
    std::fs::write(folder.join("junk.db"), "no database, but a text").unwrap();
    let notes: String = (0..11).map(|n| format!("create table n{n:02} (note text);")).collect();
    for (file, ddl) in [("notes.db", notes.as_str()), ("bare.db", "pragma user_version = 1")] {
        let raw = Raw::open(&folder.join(file).display().to_string()).await;
        raw.execute(ddl).await;
        raw.close().await;
    }
    for (words, code, part) in [
        (&["--url", "sqlite:none.db"][..], 14, "there is no such file"),
        (&["--url", "sqlite:none.db"], 14, "by its whole path, such as sqlite:/"),
        (&["--url", "sqlite:shop.db", "--table", "chrages"], 10, "did you mean charges?"),
        (&["--url", "sqlite:junk.db"], 14, "sqlite:junk.db is no SQLite database"),
        (&["--url", "sqlite:notes.db"], 10, "none of the 11 tables and views looks like payments"),
        (
            &["--url", "sqlite:notes.db"],
            10,
            "seen: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09",
        ),
        (&["--url", "sqlite:notes.db"], 10, "n09, …"),
        (&["--url", "sqlite:bare.db"], 10, "let this login read the table, then name it with"),
        (&["--url", "sqlite:shop.db", "--status", "stat"], 2, "stat: it is no column of charges"),
        (&["--url", "sqlite:shop.db", "--status", "stat"], 2, "did you mean state?"),
        (&["--url", "sqlite:shop.db", "--created", "creatd_at"], 2, "did you mean created_at?"),
        (&["--url", "sqlite:shop.db", "--attempted", "send_at"], 2, "did you mean sent_at?"),
        (&["--url", "sqlite:shop.db", "--reference", "strip_id"], 2, "did you mean stripe_id?"),
        (&["--url", "sqlite:shop.db", "--amount", "sum"], 2, "its columns: id, order_id, "),
        (&["--url", "sqlite:shop.db", "--key", "id,order"], 2, "--key order: it is no column"),
        (&["--url", "sqlite:shop.db", "--tag", "pay_{ids}"], 2, "--tag ids: it is no column"),
        (&["--url", "sqlite:shop.db", "--currency", "EURO"], 2, "and no code of a currency"),
        (&["--url", "sqlite:shop.db", "--account", "x=mollie"], 2, "expected NAME=stripe"),
        (&["--url", "sqlite:shop.db", "--account", "x=files"], 2, "and psp = \"files\""),
        (&["--url", "sqlite:shop.db", "--timezone", "Mars/X"], 2, "--timezone Mars/X: expected"),
        (&[], 2, "DATABASE_URL is not set"),
    ] {
        let words: Vec<&str> = ["config", "init", "--yes"].iter().chain(words).copied().collect();
        let ended = tieout(folder, &words);
        assert!(ended.code == code && ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
        assert!(!folder.join("tieout.toml").exists());
    }
    assert_eq!(tieout(folder, &["config", "init", "--url", "sqlite:shop.db", "--yes"]).code, 0);
    let again = tieout(folder, &["config", "init", "--url", "sqlite:shop.db", "--yes"]);
    assert!(again.code == 2 && again.stderr.contains("is there already"), "{}", again.stderr);
    assert_eq!(std::fs::read(folder.join("shop.db")).unwrap(), before, "the file changed");
    // What is no file is neither waited for nor replaced.
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let words = ["config", "init", "--yes", "--force", "--url", "sqlite:shop.db", "--output"];
    for place in ["pipe", "/dev/null", "."] {
        let ended = tieout(folder, &[&words[..], &[place]].concat());
        let said = format!("{place} is no file; nothing was written");
        assert!(ended.code == 2 && ended.stderr.contains(&said), "{}", ended.stderr);
    }
    assert!(!std::fs::metadata(folder.join("pipe")).unwrap().is_file());
}

/// Where the file is kept elsewhere and linked to, the link stays one.
#[tokio::test]
async fn a_link_is_written_through_and_never_replaced() {
    let place = Place::sqlite(SHOP).await;
    let folder = place.folder.path();
    for made in ["etc", "srv"] {
        std::fs::create_dir(folder.join(made)).unwrap();
    }
    let (link, file) = (folder.join("etc/tieout.toml"), folder.join("srv/tieout.toml"));
    std::os::unix::fs::symlink("../srv/tieout.toml", &link).unwrap();
    std::os::unix::fs::symlink("loop.toml", folder.join("loop.toml")).unwrap();
    let init = ["config", "init", "--yes", "--url", "sqlite:shop.db", "--config"];
    for (place, force, said) in [
        ("etc/tieout.toml", &[][..], "is a link to ../srv/tieout.toml, which is not there"),
        ("etc/tieout.toml", &["--force"], "is a link to ../srv/tieout.toml, which is not there"),
        ("loop.toml", &["--force"], "is a link to loop.toml, which cannot be reached"),
    ] {
        let ended = tieout(folder, &[&init[..], &[place], force].concat());
        assert!(ended.code == 2 && ended.stderr.contains(said), "{}", ended.stderr);
        assert!(ended.stderr.contains("nothing was written"), "{}", ended.stderr);
    }
    assert!(!file.exists());
    std::fs::write(&file, "old").unwrap();
    let ended = tieout(folder, &[&init[..], &["etc/tieout.toml"]].concat());
    assert!(ended.code == 2 && ended.stderr.contains("is there already"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    let ended = tieout(folder, &[&init[..], &["etc/tieout.toml", "--force"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().contains("[[table]]"));
    let left = std::fs::read_dir(folder.join("srv")).unwrap().count();
    assert_eq!(left, 1, "what was written on the way there is left");
}

/// A path in the file goes from the file's own folder.
#[tokio::test]
async fn a_file_in_another_folder_names_the_database_by_its_whole_path() {
    let place = Place::sqlite(SHOP).await;
    let folder = place.folder.path();
    std::fs::create_dir(folder.join("conf")).unwrap();
    let init = ["config", "init", "--yes", "--force", "--url", "sqlite:shop.db", "--output"];
    let whole = folder.canonicalize().unwrap().join("shop.db");
    for (output, url) in [
        ("conf/tieout.toml", format!("url = \"sqlite:{}\"", whole.display())),
        ("./tieout.toml", "url = \"sqlite:shop.db\"".to_owned()),
    ] {
        let ended = tieout(folder, &[&init[..], &[output]].concat());
        assert_eq!(ended.code, 0);
        let named = "  tieout --config conf/tieout.toml doctor\n";
        assert_eq!(ended.stdout.contains(named), output.starts_with("conf"), "{}", ended.stdout);
        assert_eq!(ended.stdout.contains("  tieout doctor\n"), !output.starts_with("conf"));
        let file = std::fs::read_to_string(folder.join(output)).unwrap();
        assert!(settings(&file).contains(&url.as_str()), "{url} is not in\n{file}");
    }
}

/// What a variable names is read from the file's folder by each run: init looks there, too.
#[tokio::test]
async fn the_path_in_a_variable_goes_from_the_files_folder() {
    let place = Place::sqlite(SHOP).await;
    let folder = place.folder.path();
    std::fs::create_dir(folder.join("conf")).unwrap();
    for (output, path, is_there) in [
        ("conf/tieout.toml", "sqlite:shop.db", false),
        ("conf/tieout.toml", "sqlite:../shop.db", true),
        ("tieout.toml", "sqlite:shop.db", true),
        ("./tieout.toml", "sqlite:shop.db", true),
    ] {
        let mut command = Command::new(tieout_bin());
        command.args(["config", "init", "--yes", "--force", "--url-env", "SHOP", "--output"]);
        command.arg(output).current_dir(folder).env_clear().env("SHOP", path);
        let ended = command.stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(ended.status.success(), is_there, "{output}, {path}: {ended:?}");
        assert_eq!(folder.join(output).exists(), is_there, "{output}, {path}");
    }
    assert!(!folder.join("conf/shop.db").exists(), "it makes no database");
}

/// Another schema's payments may be another shop's.
#[tokio::test]
async fn only_tables_of_the_schemas_that_are_named_are_proposed() {
    const MADE: &str = "
        create schema s1;
        create schema s3;
        create table s1.payments (
            id bigint primary key, amount_cents bigint not null, currency text not null,
            status text not null, created_at timestamptz not null);
        create table s3.notes (id bigint primary key, note text)";
    let server = postgres_database().await;
    server.execute(MADE.to_owned()).await;
    let (folder, url) = (tempfile::tempdir().unwrap(), server.url().to_owned());
    let place = Place { folder, url, _server: Some(server) };
    let ended = place.init(&["--search-path", "s3"]);
    let none = "looks like payments in s3";
    assert!(ended.code == 10 && ended.stderr.contains(none), "{}", ended.stderr);
    let seen = "hint: name it with --table; seen: s1.payments, notes\n";
    assert!(ended.stderr.contains(seen), "{}", ended.stderr);
    for (path, text, hint) in [
        ("s4", "--search-path s4: there is no schema `s4`", "did you mean s1?"),
        ("S1, shop", "--search-path S1, shop: there is no schema `shop`", "public, s1, s3"),
        ("\"S1\"", "there is no schema `S1`", "did you mean s1?"),
    ] {
        let ended = place.init(&["--search-path", path]);
        let is_told = ended.stderr.contains(text) && ended.stderr.contains(hint);
        assert!(ended.code == 2 && is_told, "{path}: {} {}", ended.code, ended.stderr);
    }
    assert!(!place.folder.path().join("tieout.toml").exists());
    for (words, read) in [
        (&["--search-path", "s3", "--table", "s1.payments"][..], "read = \"s1.payments\""),
        (&["--search-path", "s3, s1"], "read = \"payments\""),
        (&[], "read = \"s1.payments\""),
    ] {
        told(&place.init(words));
        assert!(settings(&place.file()).contains(&read), "{words:?}: {}", place.file());
    }
    let sqlite = Place::sqlite("create table payments (id integer primary key)").await;
    let ended = sqlite.init(&["--search-path", "main"]);
    let none = "--search-path main: an SQLite file has no schemas";
    assert!(ended.code == 2 && ended.stderr.contains(none), "{}", ended.stderr);
}

/// By a path that leads elsewhere no table is seen, neither the shop's nor tieout's own, and those
/// would be made in the next schema.
#[tokio::test]
async fn a_schema_of_the_file_that_is_not_there_is_told_as_that() {
    let place = Place::in_schema_shop().await;
    told(&place.init(&[&IN_SHOP[..], &["--search-path", "Shop, public"]].concat()));
    place.fits();
    let file = place.file().replace("Shop, public", "shpo, public");
    std::fs::write(place.folder.path().join("other.toml"), file).unwrap();
    for words in [&["config", "check", "--connect"][..], &["doctor"], &["db", "migrate"]] {
        let ended = tieout(place.folder.path(), &[&["--config", "other.toml"], words].concat());
        let told_of = format!("{} {}", ended.stdout, ended.stderr);
        let told_of = told_of.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "there is no schema `shpo`, which search_path of [database] names",
            "correct search_path in other.toml; the database has public, shop",
        ] {
            assert!(told_of.contains(part), "{words:?}: {part}: {told_of}");
        }
        assert_eq!(ended.code, 10, "{words:?}: {told_of}");
    }
}

/// Such a path was passed by every check, and no table could be made by it.
#[tokio::test]
async fn a_search_path_that_leads_nowhere_is_told_by_its_name() {
    let place = Place::in_schema_shop().await;
    let folder = place.folder.path();
    let wrong = place.init(&["--search-path", "\"tt, shop"]);
    let said = "--search-path `\"tt, shop`: a name in it begins with a double quote";
    assert!(wrong.code == 2 && wrong.stderr.contains(said), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("tieout.toml"), "{}", wrong.stderr);
    assert!(!folder.join("tieout.toml").exists());
    told(&place.init(&[&IN_SHOP[..], &["--search-path", "shop"]].concat()));
    let file = place.file();
    let line = file.lines().position(|line| line.starts_with("search_path")).unwrap() + 1;
    let in_file = format!("other.toml:{line}:");
    let connect = ["config", "check", "--connect"];
    let all = [&connect[..2], &connect, &["doctor"], &["db", "migrate"], &["run"]];
    for (path, from, part) in [
        ("\\\"\\\"", 0, "a name in it is empty"),
        (" ", 0, "it names no schema"),
        ("\\\"\\\", shop", 0, "a name in it is empty"),
        ("shop,\\tpublic", 0, "`shop,\\tpublic`: a control character stands in it"),
        ("shop,\\npublic", 0, "`shop,\\npublic`: a control character stands in it"),
        // Only a database tells whether there is one.
        ("tt\\\"", 1, "there is no schema `tt\"`"),
    ] {
        let text = file.replace("search_path = \"shop\"", &format!("search_path = \"{path}\""));
        std::fs::write(folder.join("other.toml"), text).unwrap();
        for words in &all[from..] {
            let ended = tieout(folder, &[&["--config", "other.toml"], *words].concat());
            let told_of = format!("{} {}", ended.stdout, ended.stderr);
            let told_of = told_of.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(ended.code, 10, "{words:?}: {told_of}");
            let is_told = told_of.contains(part) && told_of.contains("search_path");
            assert!(is_told, "{words:?}: {part}: {told_of}");
            let is_check = from == 0 && words.starts_with(&connect[..2]);
            assert_eq!(told_of.contains(&in_file), is_check, "{words:?}: {told_of}");
        }
    }
    // The user's own need not be there; but tables are made in none.
    let text = file.replace("search_path = \"shop\"", "search_path = \"\\\"$user\\\"\"");
    std::fs::write(folder.join("other.toml"), text).unwrap();
    let ended = tieout(folder, &["--config", "other.toml", "db", "migrate"]);
    let said = "the database setting `search_path` is not usable: it leads to no schema";
    assert!(ended.code == 10 && ended.stderr.contains(said), "{}", ended.stderr);
}

/// With its schema a table is found, too, where the search path leads to it.
#[tokio::test]
async fn a_table_is_taken_by_its_name_with_its_schema() {
    let place = Place::in_schema_shop().await;
    let server = place._server.as_ref().unwrap();
    server.execute("create table public.charges (like shop.payments including all)").await;
    for (path, table, read) in [
        ("", "public.charges", "charges"),
        ("", "charges", "charges"),
        ("", "\"public\".\"charges\"", "charges"),
        ("", "shop.payments", "shop.payments"),
        ("shop", "shop.payments", "payments"),
        ("shop", "public.charges", "public.charges"),
        ("shop, public", "public.charges", "charges"),
    ] {
        let words = [&IN_SHOP[..], &["--table", table, "--search-path", path]].concat();
        told(&place.init(&words));
        let read = format!("read = \"{read}\"");
        let file = place.file();
        assert!(settings(&file).contains(&read.as_str()), "{path}: {table}: {file}");
        place.fits();
    }
    let ended = place.init(&["--table", "public.chrages"]);
    let near = "hint: did you mean public.charges?";
    assert!(ended.code == 10 && ended.stderr.contains(near), "{}", ended.stderr);
    let sqlite = Place::sqlite(SHOP).await;
    told(&sqlite.init(&["--table", "main.charges"]));
    assert!(settings(&sqlite.file()).contains(&"read = \"charges\""), "{}", sqlite.file());
    sqlite.fits();
}

/// The catalogue shows such a table, and that it might be read; but nobody can.
#[tokio::test]
async fn a_table_whose_schema_the_login_may_not_look_into_is_passed_over() {
    let mut place = Place::in_schema_shop().await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    let server = place._server.as_ref().unwrap();
    server
        .execute(format!(
            "create table charges (like shop.payments including all); create role {role} login; \
             grant select on shop.payments to {role}; \
             alter role {role} set search_path = shop, public"
        ))
        .await;
    let everybodys = place.url.clone();
    place.url = everybodys.replace("postgres@", &format!("{role}@"));
    let grant = format!("`grant usage on schema shop to {role};` by the schema's owner");
    let closed = "`shop.payments` stands in a schema that this login may not look into";
    for (words, text) in [
        (&[][..], "this login sees no table or view that looks like payments"),
        (&["--table", "shop.payments"], closed),
        (&["--table", "payments"], closed),
    ] {
        let ended = place.init(words);
        let is_told = ended.stderr.contains(text) && ended.stderr.contains(&grant);
        assert!(ended.code == 10 && is_told, "{words:?}: {} {}", ended.code, ended.stderr);
        assert!(!place.folder.path().join("tieout.toml").exists());
    }
    let server = place._server.as_ref().unwrap();
    server.execute(format!("grant select, update on charges to {role}")).await;
    told(&place.init(&IN_SHOP));
    assert!(settings(&place.file()).contains(&"read = \"charges\""), "{}", place.file());
    server.execute(format!("grant usage on schema shop to {role}")).await;
    for table in ["payments", "shop.payments"] {
        told(&place.init(&[&IN_SHOP[..], &["--table", table]].concat()));
        assert!(settings(&place.file()).contains(&"read = \"payments\""), "{}", place.file());
    }
    server.execute(format!("drop owned by {role}; drop role {role}")).await;
}

/// Of bytes no tag is made, and a file that says so is refused.
#[tokio::test]
async fn a_key_of_bytes_is_no_tag() {
    const BYTES: &str = "
        create table payments (
            ref {bytes} primary key, {more} cents bigint not null, currency text not null,
            status text not null, stripe_id text not null unique,
            created_at timestamptz not null)";
    for more in ["", "number text not null unique,", "number text unique,"] {
        let ddl = BYTES.replace("{more}", more);
        let [mut postgres, sqlite] = in_both("").await;
        let server = postgres._server.take().unwrap();
        server.execute(ddl.replace("{bytes}", "bytea")).await;
        postgres._server = Some(server);
        let file = sqlite.folder.path().join("shop.db");
        let raw = Raw::open(&file.display().to_string()).await;
        raw.execute(&ddl.replace("{bytes}", "blob")).await;
        raw.close().await;
        for (place, kind) in [(postgres, "bytea"), (sqlite, "blob")] {
            let told_of = told(&place.init(&IN_SHOP)).replace("BLOB", "blob");
            let (tag, why) = match more.contains("not null") {
                true => ("tag = \"{number}\"", "tag: what your application hands the PSP"),
                false => ("tag = \"???\"", "tag: `ref` is {kind}, of which no tag is made"),
            };
            assert!(settings(&place.file()).contains(&tag), "{more}: {}", place.file());
            assert!(told_of.contains(&why.replace("{kind}", kind)), "{more}: {told_of}");
            if tag.contains("???") {
                let said = "`tag` of [[table]] payments is still open: `ref` is";
                let check = tieout(place.folder.path(), &["config", "check", "--connect"]);
                assert!(check.code == 10 && check.stderr.contains(said), "{}", check.stderr);
                let said = ["--tag", "{stripe_id}", "--reference", "none"];
                told(&place.init(&[&IN_SHOP[..], &said].concat()));
            }
            place.fits();
        }
    }
}

/// By the wrong unit each payment is of a hundred times its sum.
#[tokio::test]
async fn an_amount_in_cents_by_its_name_is_never_taken_for_one_in_major_units() {
    const SUMS: &str = "
        create table payments (
            id bigint primary key, amount numeric(12,2) not null,
            amount_cents {type} not null, currency text not null, status text not null,
            created_at timestamptz not null);
        insert into payments values
            (1, 19.99, {sum}, 'EUR', 'processing', '2026-11-19T08:00:00Z')";
    for (kind, sum, unit) in [
        ("numeric(12,2)", "1999.00", "minor"),
        ("double precision", "1999", "minor"),
        ("text", "'1999'", "minor"),
        ("numeric(12,2)", "19.99", "???"),
    ] {
        for place in in_both(&SUMS.replace("{type}", kind).replace("{sum}", sum)).await {
            let told_of = told(&place.init(&["--attempted", "once"]));
            let line = format!("amount = {{ column = \"amount_cents\", unit = \"{unit}\" }}");
            assert!(settings(&place.file()).contains(&line.as_str()), "{line}: {}", place.file());
            let is_asked =
                told_of.contains("`amount_cents` has minor units by its name, and `19.9");
            assert_eq!(is_asked, unit == "???", "{told_of}");
        }
    }
}

/// One table for several PSPs: which value is whose account stands in another table, so that
/// nothing is guessed; and a second column with the status's words is told.
const PROVIDERS: &str = "
    create table payment_providers (id integer primary key, code text);
    create table payments (
        id integer primary key, payment_provider_id integer references payment_providers (id),
        provider_payment_method_id text, amount_cents integer not null, currency text not null,
        status text not null, payable_payment_status text, created_at text not null);
    insert into payment_providers values (1, 'stripe'), (2, 'gocardless');
    insert into payments values
        (1, 1, 'pm_1', 100, 'EUR', 'processing', 'processing', '2026-11-19T08:00:00Z'),
        (2, 2, 'pm_2', 100, 'EUR', 'succeeded', 'succeeded', '2026-11-19T08:00:00Z'),
        (3, 1, 'pm_3', 100, 'EUR', 'failed', 'failed', '2026-11-19T08:00:00Z')";

#[tokio::test]
async fn a_column_that_may_tell_psps_apart_is_never_taken_for_one_account() {
    let place = Place::sqlite(PROVIDERS).await;
    let ended = place.init(&["--attempted", "once"]);
    place.golden("sqlite_providers", &ended);
    let file = place.file();
    let open = "accounts = { \"1\" = \"???\", \"2\" = \"???\" }";
    for want in ["account = [\"payment_provider_id\"]", open] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
    }
    let told = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("`payment_provider_id` has 2 values (`1`, `2`)"), "{told}");
    assert!(told.contains("status: `payable_payment_status` has the same words"), "{told}");
    assert!(!told.contains("method"), "ids of saved cards are no accounts: {told}");
    let check = tieout(place.folder.path(), &["config", "check"]);
    let said = check.stderr.contains("`accounts` of [[table]] payments is still open");
    assert!(check.code == 10 && said, "{}", check.stderr);
    // With one PSP in it, the table is one account's.
    let one = PROVIDERS.replace("(2, 2, 'pm_2'", "(2, 1, 'pm_2'");
    let place = Place::sqlite(&one).await;
    assert_eq!(place.init(&["--attempted", "once"]).code, 0);
    assert!(settings(&place.file()).contains(&"account = { const = \"stripe\" }"));
    place.fits();
    // More values than there are accounts, by a uuid.
    let server = postgres_database().await;
    server
        .execute(
            "create table payments (id bigint primary key, status text not null, cents bigint, \
             currency text, created_at timestamptz not null, gateway_id uuid not null); \
             insert into payments select i, 'processing', i, 'EUR', '2026-11-19 08:00:00Z', \
             gen_random_uuid() from generate_series(1, 50) i",
        )
        .await;
    let url = server.url().to_owned();
    let place = Place { folder: tempfile::tempdir().unwrap(), url, _server: Some(server) };
    let ended = place.init(&["--attempted", "once"]);
    assert!(ended.stdout.contains("`gateway_id` has 50 values"), "{}", ended.stdout);
    let file = place.file();
    assert!(settings(&file).contains(&"account = { const = \"???\" }"), "{file}");
}

/// Words that all begin alike, a stuck value that nothing tells, and money that both come and go.
#[tokio::test]
async fn words_are_read_without_the_mark_that_all_of_them_share() {
    let ddl = |statuses: [&str; 4]| {
        let [one, two, three, four] = statuses;
        format!(
            "create table payments (
                id bigint primary key, amount numeric not null, currency text not null,
                status text not null, payment_type text, created_at timestamptz not null);
             insert into payments values
                (1, 10, 'EUR', '{one}', 'Inward', '2026-11-19T08:00:00Z'),
                (2, 20, 'EUR', '{two}', 'Inward', '2026-11-19T08:00:00Z'),
                (3, 30, 'EUR', '{three}', 'Outward', '2026-11-19T08:00:00Z'),
                (4, 40, 'EUR', '{four}', 'Inward', '2026-11-19T08:00:00Z')"
        )
    };
    let marked = ["wc-processing", "wc-completed", "wc-failed", "wc-refunded"];
    for place in in_both(&ddl(marked)).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let file = place.file();
        for want in [
            "from = [\"???\"]",
            "succeeded = \"wc-completed\"",
            "failed = \"wc-failed\"",
            "ignore = [\"wc-refunded\"]",
            "kind = { column = \"payment_type\", values = { \"Inward\" = \"charge\", \"Outward\" = \
             \"???\" } }",
            "amount = { column = \"amount\", unit = \"major\" }",
        ] {
            assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
        }
        for part in [
            "amount: `amount` has whole numbers alone; taken as major units",
            "from: `wc-processing` of an order mostly says that it is paid, and not yet sent: are \
             such rows paid already?",
        ] {
            assert!(told_of.contains(part), "{part}: {told_of}");
        }
    }
    for place in in_both(&ddl(["Created", "Settled", "Error", "Cancelled"])).await {
        let told_of = told(&place.init(&["--attempted", "once"]));
        let file = place.file();
        for want in ["from = [\"???\"]", "ignore = [\"Cancelled\"]"] {
            assert!(settings(&file).contains(&want), "{want} is not in\n{file}");
        }
        let part = "ignore: `Created` may be what `from` is to name";
        assert!(told_of.contains(part), "{told_of}");
    }
}

/// A column that holds nothing yet says nothing of a zone.
#[tokio::test]
async fn times_that_say_their_zone_are_not_said_to_have_none() {
    const TIMES: &str = "
        create table payments (
            id integer primary key, amount_cents integer not null, currency text not null,
            status text not null, created text not null, sent_at text not null default '');
        insert into payments (amount_cents, currency, status, created) values
            (100, 'EUR', 'processing', '2026-11-22 08:47:09.802Z')";
    let place = Place::sqlite(TIMES).await;
    let told_of = told(&place.init(&[]));
    let file = place.file();
    assert!(settings(&file).contains(&"attempted = \"sent_at\""), "{file}");
    assert!(!file.contains("\ntime = ") && !told_of.contains("no zone"), "{told_of}\n{file}");
    place.fits();
}

/// What is typed and cannot be meant is asked for again.
#[tokio::test]
async fn a_wrong_zone_and_a_tag_without_a_column_are_asked_for_again() {
    let place = Place::postgres("wallet").await;
    let enters = "\n".repeat(8);
    let tag = "metadata[order_id]\ntop_{id}\n";
    let rest = "GBP\nmetadata[order_id]\nMars/Base\nEurope/Paris\n\n\n";
    let said = typed_in(&place, &format!("{enters}{tag}{rest}"));
    let file = place.file();
    for want in [
        "tag = \"top_{id}\"",
        "currency = { const = \"GBP\" }",
        "tag = \"metadata[order_id]\"",
        "business_timezone = \"Europe/Paris\"",
    ] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}\n{said}");
    }
    for part in ["`metadata[order_id]` names no column", "`Mars/Base` is no time zone"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Who is asked what values mean sees them, and a column that is not there is asked for again.
#[tokio::test]
async fn values_are_shown_before_their_question_and_wrong_columns_asked_for_again() {
    let place = Place::postgres("wallet").await;
    let columns = "statuz\n\n\n\n\n\ncreated_et\n\nnobody\nonce\nno_id\n\n";
    let said = typed_in(&place, &format!("{columns}\nGBP\nmetadata[order_id]\nEurope/Paris\n\n"));
    for part in [
        "`statuz` is no column of wallet_top_ups; did you mean status?",
        "`created_et` is no column of wallet_top_ups; did you mean created_at?",
        "`nobody` is no column of wallet_top_ups",
        "`no_id` is no column of wallet_top_ups",
        "pending 4",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (before, after) = said.split_once("values of stuck rows [pending]").unwrap();
    assert!(before.contains("values of status, with their rows"), "{said}");
    assert!(after.contains("no value of status says it"), "{said}");
    let file = place.file();
    for want in ["status = \"status\"", "created = \"created_at\"", "attempts = \"once\""] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}\n{said}");
    }
}

/// A word that no row has is asked for again, and taken from who means it.
#[tokio::test]
async fn a_target_that_no_row_has_a_wrong_tag_and_place_are_asked_for_again() {
    let place = Place::postgres("wallet").await;
    let tag = "{idd}\ntop_{id}\n";
    let rest = "GBP\nmetadata.order\nmetadata[order_id]\nEurope/Paris\n\n";
    let said = typed_in(&place, &format!("\n\nsetled\nsettled\nnope\nnope\n\n\n\n\n{tag}{rest}"));
    for part in [
        "`setled` was not seen in the status",
        "`nope` was not seen in the status",
        "`idd` is no column of wallet_top_ups",
        "`metadata.order` is no place",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let file = place.file();
    for want in [
        "succeeded = \"settled\"",
        "failed = \"nope\"",
        "tag = \"top_{id}\"",
        "tag = \"metadata[order_id]\"",
    ] {
        assert!(settings(&file).contains(&want), "{want} is not in\n{file}\n{said}");
    }
}

/// What is said on a terminal on which these lines are typed.
fn typed_in(place: &Place, lines: &str) -> String {
    let command = format!(
        "{} config init --url '{}' --table wallet_top_ups --force",
        tieout_bin().display(),
        place.url
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    script.current_dir(place.folder.path()).env_remove("TIEOUT_YES");
    script.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut running = script.spawn().unwrap_or_else(|error| {
        panic!("script: {error}; install Debian's package `bsdutils`, then run this again")
    });
    std::io::Write::write_all(running.stdin.as_mut().unwrap(), lines.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// On a terminal a bare Enter takes what was found, and answers nothing that was not.
#[tokio::test]
async fn enter_leaves_open_what_could_not_be_told() {
    let place = Place::postgres("wallet").await;
    let said = typed_in(&place, &"\n".repeat(40));
    let file = place.file();
    for open in ["currency = { const = \"???\" }", "tag = \"???\"", "business_timezone = \"???\""] {
        assert!(settings(&file).contains(&open), "{open} is not in\n{file}");
    }
    let untold = said.split_once("could not be told").unwrap().1;
    for part in ["currency: ", "tag of [[account]]: ", "business_timezone: "] {
        assert!(untold.contains(part), "{part}: {untold}");
    }
}

/// What no column's name tells is asked for, the amount and its unit as well.
#[tokio::test]
async fn the_amount_is_asked_for_on_a_terminal() {
    let place = Place::sqlite(
        "create table maksut (id integer primary key, tila text not null, summa_x integer,
             valuutta text, luotu text);
         insert into maksut values (1, 'kesken', 1250, 'EUR', '2026-11-01T10:00:00Z'),
             (2, 'maksettu', 990, 'EUR', '2026-11-01T10:00:00Z')",
    )
    .await;
    let (mut person, own) = terminal();
    let flags = "--table maksut --status tila --processing kesken --succeeded maksettu \
                 --failed hylatty --retryable uudelleen --currency valuutta --created luotu \
                 --attempted once --reference none --tag {id}";
    let mut command = Command::new(tieout_bin());
    command.args(["config", "init", "--url", &place.url]).args(flags.split_whitespace()).args(SAID);
    command.current_dir(place.folder.path()).env_clear();
    command.stdin(own.try_clone().unwrap()).stdout(own.try_clone().unwrap()).stderr(own);
    let mut child = command.spawn().unwrap();
    drop(command);
    let asked = "amount column, such as amount [???]:";
    answer(&mut person, asked, "sum\n");
    let shown = answer(&mut person, asked, "summa_x\n");
    assert!(shown.contains("`sum` is no column of maksut"), "{shown}");
    let asked = "its unit, such as minor or major [???]:";
    answer(&mut person, asked, "cents\n");
    let shown = answer(&mut person, asked, "minor\n");
    assert!(shown.contains("`cents` is no unit"), "{shown}");
    answer(&mut person, "tieout.toml", "");
    assert!(child.wait().unwrap().success());
    let amount = "amount = { column = \"summa_x\", unit = \"minor\" }";
    assert!(place.file().contains(amount), "{}", place.file());
    place.fits();
}
