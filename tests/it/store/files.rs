//! What only an SQLite file can be: types of values rather than columns, several processes on one
//! file, triggers and constraints that end a whole transaction.

use tieout::model::reason::{Outcome, Reason};
use tieout::model::time::to_text;
use tieout::store::driver::Driver as _;
use tieout::store::error::StoreError;
use tieout::store::records::{ApplyEnd, ClaimFilter};
use tieout::store::sqlite::SqliteStore;

use super::applies::done;
use super::world::{MAPPING, World, accounts, at, eur, noon, settings, succeeded, wait};
use crate::support::raw::Raw;
use crate::support::sqlite_path;

type Lite = World<SqliteStore>;

/// The least mapping, with lines of TOML before and the table's columns as they are.
fn mapping(more: &str) -> String {
    format!(
        r#"
        {more}
        name = "charges"
        read = "charges"
        key = ["id"]
        tag = "{{id}}"
        currency = {{ const = "EUR" }}
        accounts = {{ "*" = "stripe_live" }}
        status = "status"
        mode = "full"
        map = [{{ from = ["1"], succeeded = "2", failed = "3" }}]
        "#
    )
}

#[tokio::test]
async fn times_are_read_and_compared_as_they_are_written() {
    // The declared zone or epoch, the value of 11:00 UTC, the value of 11:50 UTC.
    for (time, kind, early, late) in [
        ("utc", "datetime", "'2026-11-19 11:00:00'", "'2026-11-19 11:50:00.123'"),
        ("utc", "text", "'2026-11-19T11:00:00Z'", "'2026-11-19T12:50:00+01:00'"),
        ("Europe/Berlin", "timestamp", "'2026-11-19 12:00:00'", "'2026-11-19 12:50:00'"),
        ("Europe/Berlin", "varchar(30)", "'2026-11-19T11:00:00Z'", "'2026-11-19 12:50'"),
        ("epoch_s", "integer", "1795086000", "1795089000"),
        ("epoch_ms", "bigint", "1795086000000", "1795089000123"),
        ("epoch_ms", "datetime", "1795086000000", "1795089000123"),
    ] {
        let more = format!(
            "time = \"{time}\"\ncreated = \"made\"\nattempted = \"sent\"\n\
             amount = {{ column = \"amount\", unit = \"minor\" }}\n"
        );
        let ddl = format!(
            "create table charges (id integer primary key, status integer, amount integer,
               made {kind}, sent {kind}, done {kind});
             insert into charges values (1, 1, 100, {early}, null, null),
               (2, 1, 100, {early}, {late}, null), (3, 1, 100, {late}, null, null)"
        );
        let text = format!("{}\n[set]\nalways = {{ done = \"{{now}}\" }}", mapping(&more));
        let w = Lite::of(&ddl, &text).await;
        let stuck = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
        assert_eq!(w.store.enrol(&w.table, &stuck, noon()).await.unwrap(), 1, "{time} {kind}");
        let mut writer = w.start("r1", noon()).await;
        let mut claimed = w.claim("r1", 9, noon()).await;
        claimed.sort_by(|a, b| a.row.key.id.cmp(&b.row.key.id));
        let times: Vec<_> =
            claimed.iter().map(|c| (c.row.created_at, c.row.attempted_at)).collect();
        let (sent, made) = (times[1].1.unwrap(), times[2].0);
        assert_eq!(times[0], (at(-60), None), "{time} {kind}");
        assert!((at(-10)..at(-9)).contains(&sent) && (at(-10)..at(-9)).contains(&made));
        w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
        let notation = w.table.sets["done"].notation;
        let written = w.raw.one("select cast(done as text) from charges where id = 1").await;
        assert_eq!(notation.read(&written), Ok(Some(noon())), "{time} {kind}: {written}");
        w.finish_unmapped().await;
    }
}

#[tokio::test]
async fn amounts_are_exact_or_refused() {
    let more =
        "time = \"utc\"\ncreated = \"made\"\namount = { column = \"amount\", unit = \"major\" }\n";
    let ddl = "create table charges (id integer primary key, status integer, amount decimal(10,2),
          made text);
        insert into charges values (1, 1, 19.99, '2026-11-19'), (2, 1, 20, '2026-11-19'),
          (3, 1, 0.1 + 0.2, '2026-11-19'), (4, 1, 19.995, '2026-11-19'),
          (5, 1, 12345678901234.56, '2026-11-19'), (6, 1, null, '2026-11-19'),
          (7, 1, 'much', '2026-11-19'), (8, 1, 1e300, '2026-11-19'), (9, 1, -5, '2026-11-19'),
          (10, 1, 90071992547409.93, '2026-11-19')";
    let w = Lite::of(ddl, &mapping(more)).await;
    w.start("r1", noon()).await;
    let mut claimed = w.claim("r1", 99, noon()).await;
    claimed.sort_by_key(|c| c.row.key.id.parse::<i64>().unwrap());
    let money: Vec<_> = claimed.iter().map(|c| c.row.money).collect();
    assert_eq!(money[..3], [Some(eur(1999)), Some(eur(2000)), Some(eur(30))]);
    for index in [3, 5, 6, 7, 8] {
        assert_eq!(money[index], None, "row {}", index + 1);
        assert!(!claimed[index].row.defects.is_empty());
    }
    // Beyond what a float can tell apart: never silently another amount.
    for index in [4, 9] {
        let exact = [Some(eur(1_234_567_890_123_456)), Some(eur(9_007_199_254_740_993)), None];
        assert!(exact.contains(&money[index]), "{:?}", money[index]);
    }
    assert_eq!(w.claimed_total("r1").await.0, 10, "what cannot be read counts as nothing, by rows");
    w.finish_unmapped().await;
}

#[tokio::test]
async fn keys_and_statuses_of_any_type_are_found_again() {
    let more =
        "time = \"utc\"\ncreated = \"made\"\namount = { column = \"amount\", unit = \"minor\" }\n";
    for (key, ids, status, strict) in [
        ("id integer primary key", ["7", "8"], "status integer", ""),
        ("id integer primary key", ["7", "8"], "status int", "strict"),
        ("id uuid primary key", ["'0191-a'", "'12e3-b'"], "status varchar", ""),
        ("id text primary key", ["'007'", "'a|b''c'"], "status text", "strict"),
        ("id blob primary key", ["x'00ff10'", "x'27'"], "status integer", ""),
        ("id primary key", ["7", "'8x'"], "status", ""),
        ("id string primary key", ["'a'", "'b'"], "status numeric", ""),
        (
            "id bigint primary key",
            ["-9223372036854775808", "9223372036854775807"],
            "status int",
            "",
        ),
    ] {
        let ddl = format!(
            "create table charges ({key}, {status}, amount integer, made text) {strict};
             create index by_status on charges (status);
             insert into charges values ({}, 1, 100, '2026-11-19'), ({}, 1, 200, '2026-11-19')",
            ids[0], ids[1]
        );
        if status == "status numeric" {
            // A float column cannot be a status: it is said, not guessed.
            let place = sqlite_path();
            let raw = Raw::open(&place.url()).await;
            raw.execute(&ddl).await;
            let store = SqliteStore::connect(&place.url()).await.unwrap();
            let error = store.map_tables(&[settings(&mapping(more))], &accounts()).await;
            assert!(matches!(error, Err(StoreError::Mapping(_))), "{error:?}");
            continue;
        }
        // Bytes are no text that a PSP could have been handed.
        let tag = if key.contains("blob") { "{made}-{amount}" } else { "{id}" };
        let w = Lite::of(&ddl, &mapping(more).replace("{id}", tag)).await;
        let mut writer = w.start("r1", noon()).await;
        let claimed = w.claim("r1", 9, noon()).await;
        assert_eq!(claimed.len(), 2, "{key}");
        let tags: Vec<String> = claimed.iter().map(|c| c.row.tag.text().to_owned()).collect();
        let end = w.apply("r1", &mut writer, &claimed[..1], succeeded, noon()).await;
        assert_eq!(end, done(1, 0, 0), "{key} {status}");
        w.apply("r1", &mut writer, &claimed[1..], wait(noon()), noon()).await;
        let left = "select cast(status as text) from charges order by amount";
        let mut left: Vec<_> = w.raw.rows(left).await.into_iter().flatten().flatten().collect();
        left.sort();
        assert_eq!(left, ["1", "2"], "{key} {status}");
        let found = w.store.resolve_tags(&w.table, "stripe_live", &tags).await.unwrap();
        assert_eq!(found.len(), 2, "{key}: {tags:?}");
        assert!(w.store.unmapped_statuses(&w.table).await.unwrap().is_empty(), "{status}");
        w.finish_unmapped().await;
    }
}

#[tokio::test]
async fn a_trigger_that_rolls_everything_back_costs_its_row_alone() {
    let w = Lite::new().await;
    w.stuck(1..=9).await;
    w.raw
        .execute(
            "create trigger drastic before update on charges when new.id = 4
             begin select raise(rollback, 'not on my watch'); end;",
        )
        .await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let end = w.apply("r1", &mut writer, &claimed, succeeded, noon()).await;
    assert_eq!(end, done(9, 0, 0));
    assert_eq!([w.status("4").await, w.status("5").await], ["processing", "paid"]);
    let record = w.store.journal_of_row("charges", "4").await.unwrap().remove(0);
    assert_eq!((record.outcome, record.reason), (Outcome::Review, Reason::WriteRefused));
    assert!(record.text.contains("not on my watch"), "{}", record.text);
    w.close("r1", at(1)).await;
    w.finish().await;
}

#[tokio::test]
async fn a_deferred_foreign_key_costs_its_row_alone() {
    let ddl = "create table states (name text primary key);
        insert into states values ('processing'), ('sent'), ('paid'), ('failed');
        create table charges (id bigint primary key, account text, status text not null
          references states (name) deferrable initially deferred, amount bigint, currency text,
          created_at text not null, attempted_at text, psp_ref text, subscription bigint,
          moto boolean not null default false, attempt integer not null default 1,
          updated_at text, version integer, note text);
        create table charge_events (charge_id bigint, status text, was text, happened text);";
    let w = Lite::of(ddl, MAPPING).await;
    w.stuck(1..=5).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    // `retry` is no state that the application knows.
    let decide = |c: &tieout::store::records::Claimed| match c.row.key.id.as_str() {
        "3" => super::world::retryable(noon())(c),
        _other => succeeded(c),
    };
    let end = w.apply("r1", &mut writer, &claimed, decide, noon()).await;
    assert_eq!(end, done(5, 0, 0));
    assert_eq!([w.status("3").await, w.status("4").await], ["processing", "paid"]);
    let record = w.store.journal_of_row("charges", "3").await.unwrap().remove(0);
    assert_eq!(record.reason, Reason::WriteRefused);
    assert!(w.store.handbacks("charges", "3").await.unwrap().is_empty());
    w.finish().await;
}

/// Applications that have no NULL for text write '' for "never".
#[tokio::test]
async fn a_last_attempt_that_is_empty_is_none() {
    let w = Lite::new().await;
    w.stuck(1..=3).await;
    w.raw.execute("update charges set attempted_at = '' where id = 1").await;
    w.raw.execute("update charges set attempted_at = ' ' where id = 2").await;
    w.raw.execute("update charges set attempted_at = 'soon' where id = 3").await;
    w.start("r1", noon()).await;
    let stuck = ClaimFilter { stuck_before: Some(at(-20)), ..ClaimFilter::default() };
    let claimed = w.claim_with("r1", &stuck, 9, noon()).await;
    let read: Vec<_> = claimed.iter().map(|c| (c.row.attempted_at, c.row.defects.len())).collect();
    assert_eq!(read, [(None, 0), (None, 0), (None, 1)]);
    w.finish().await;
}

#[tokio::test]
async fn a_view_is_read_and_its_table_written_or_its_trigger() {
    let w = Lite::new().await;
    w.raw.execute("create view seen as select * from charges").await;
    let through = MAPPING.replace("read = \"charges\"", "read = \"seen\"");
    let error = w.store.map_tables(&[settings(&through)], &accounts()).await.unwrap_err();
    let StoreError::Mapping(errors) = &error else { panic!("{error:?}") };
    assert!(errors.iter().any(|e| e.expected.contains("base table")), "{errors:?}");
    let both = through.replace("read = \"seen\"", "read = \"seen\"\nwrite = \"charges\"");
    assert!(!w.mapped(&both).await.write_is_read);
}

#[tokio::test]
async fn writers_on_one_file_take_turns() {
    let w = Lite::new().await;
    w.stuck(1..=60).await;
    let runs: Vec<String> = (0..6).map(|n| format!("r{n}")).collect();
    for run in &runs {
        w.start(run, noon()).await;
    }
    w.store.enrol(&w.table, &ClaimFilter::default(), noon()).await.unwrap();
    let mut workers = tokio::task::JoinSet::new();
    for run in runs.clone() {
        let (place, table) = (w.place.clone(), w.table.clone());
        workers.spawn(async move {
            let store = SqliteStore::connect(&place).await.unwrap();
            let mut writer =
                tieout::store::driver::Writer { name: "w1".to_owned(), seq: 0, head: run.clone() };
            let mut applied = 0;
            loop {
                let filter = ClaimFilter::default();
                let claimed =
                    store.claim_due(&run, &table, &filter, 3, noon(), at(2)).await.unwrap();
                if claimed.is_empty() {
                    return applied;
                }
                let batch = claimed
                    .iter()
                    .map(|c| super::world::effect_of(&table, &run, c, succeeded(c), noon()))
                    .collect();
                match store.apply(&run, &mut writer, &table, batch, noon()).await.unwrap() {
                    ApplyEnd::Done { applied: more, .. } => applied += more,
                    ApplyEnd::RunClosed => panic!("{run} was closed"),
                }
            }
        });
    }
    let applied: usize = workers.join_all().await.into_iter().sum();
    assert_eq!(applied, 60);
    for run in &runs {
        assert!(w.close(run, at(1)).await);
    }
    w.finish().await;
}

#[tokio::test]
async fn a_file_that_cannot_serve_is_refused() {
    let place = sqlite_path();
    let missing = SqliteStore::connect(&place.url()).await.unwrap_err();
    assert!(matches!(missing, StoreError::File { .. }), "{missing:?}");
    assert!(!place.path().exists(), "a mistyped path makes no file");
    for url in ["sqlite::memory:", "sqlite://?mode=memory", "sqlite:x.db?mode=sideways"] {
        let error = SqliteStore::connect(url).await.unwrap_err();
        assert!(matches!(error, StoreError::Setting { .. }), "{url}: {error:?}");
    }
    let made = SqliteStore::connect(&format!("{}?mode=rwc", place.url())).await.unwrap();
    assert_eq!(made.schema_state().await.unwrap().0, 0);
    made.migrate().await.unwrap();
    made.close().await;
    let read_only = SqliteStore::connect(&format!("{}?mode=ro", place.url())).await;
    let error = match read_only {
        Ok(store) => store.put_account_state("a", None, None).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let w = Lite::new().await;
    w.raw
        .execute(
            "insert into tieout_migrations (version, description, success, checksum,
             execution_time) values (99, 'later', true, x'00', 0)",
        )
        .await;
    let error = w.store.migrate().await.unwrap_err();
    assert!(matches!(error, StoreError::SchemaAhead { found: 99, .. }), "{error:?}");
    assert_eq!(w.store.schema_state().await.unwrap().0, 99);
}

#[tokio::test]
async fn two_processes_make_the_tables_once() {
    let place = sqlite_path();
    let url = format!("{}?mode=rwc", place.url());
    let one = SqliteStore::connect(&url).await.unwrap();
    let two = SqliteStore::connect(&url).await.unwrap();
    let (first, second) = tokio::join!(one.migrate(), two.migrate());
    first.unwrap();
    second.unwrap();
    let (found, wanted) = one.schema_state().await.unwrap();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn a_cancelled_write_leaves_nothing_behind() {
    let w = Lite::new().await;
    for polls in 1..30 {
        let write = w.store.put_account_state("cancelled", Some(noon()), None);
        let mut write = Box::pin(write);
        for _ in 0..polls {
            let waker = std::task::Waker::noop();
            let done = write.as_mut().poll(&mut std::task::Context::from_waker(waker));
            if done.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(write);
        // The next writer's commit must be seen from outside.
        let name = format!("after{polls}");
        w.store.put_account_state(&name, Some(at(1)), None).await.unwrap();
        let seen = format!("select unanswered_since from tieout_accounts where account = '{name}'");
        assert_eq!(w.raw.one(&seen).await, to_text(at(1)));
    }
}
