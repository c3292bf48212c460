//! The doctor on a shop of both kinds: a healthy one's screen, each finding planted and mended,
//! exit codes, and that looking changes nothing.

use serde_json::Value;
use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::seeds::{Seed, SeedKind};

use crate::run::shop::{Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, tieout_now};
use crate::support::golden::golden;
use crate::support::postgres::postgres_database;

/// A shop with a past.
async fn healthy(engine: Engine, words: Words) -> Shop {
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(30).await;
    shop
}

async fn doctor(shop: &Shop) -> Ran {
    shop.tieout(&["doctor", "--json"]).await
}

/// Findings of one code.
fn of_code(ran: &Ran, code: &str) -> Vec<Value> {
    ran.of_type("check").into_iter().filter(|check| check["code"] == code).collect()
}

/// The one finding of this code: (what, state, text, next).
#[track_caller]
fn finding(ran: &Ran, code: &str) -> (String, String, String, String) {
    let found = of_code(ran, code);
    assert_eq!(found.len(), 1, "{code}: {}\n{}", ran.stdout, ran.stderr);
    let text = |name: &str| found[0][name].as_str().unwrap_or_default().to_owned();
    (text("what"), text("state"), text("text"), text("next"))
}

#[track_caller]
fn has_none(ran: &Ran, code: &str) {
    assert!(of_code(ran, code).is_empty(), "{code}: {}", ran.stdout);
}

/// Changes the words of the shop's tieout.toml.
fn rewrite(shop: &Shop, from: &str, to: &str) {
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from} is not in\n{text}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
}

/// What differs between machines and moments, masked.
fn masked(shop: &Shop, text: &str) -> String {
    let filters = [
        (r"PostgreSQL \d+(\.\d+)*", "PostgreSQL [version]"),
        (r"SQLite \d+(\.\d+)*", "SQLite [version]"),
        (r"[+-]\d+\.\d s", "[span]"),
        (r"newest object \d+ \w+\s+old", "newest object [age] old"),
        (r"\d+ [KMGT]iB", "[size]"),
        (r", about [\d,]+ rows", ", about [n] rows"),
    ];
    let folder = shop.folder().display().to_string();
    filters.iter().fold(text.replace(&folder, "[folder]"), |text, (pattern, by)| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, *by).into_owned()
    })
}

async fn a_healthy_shop_is_told_line_by_line_and_left_as_it_was(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("analyze").await;
    let before = shop.dump().await;
    let ran = shop.tieout(&["doctor"]).await;
    let name = match engine {
        Engine::Sqlite => "doctor_sqlite",
        Engine::Postgres => "doctor_postgres",
    };
    let code = ran.code.unwrap();
    let text = format!("exit {code}\n--- stdout\n{}--- stderr\n{}", ran.stdout, ran.stderr);
    golden("fixtures/cli", name, &masked(&shop, &text));
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 80 || line.contains('→'), "{line}");
    }
    assert_eq!(shop.dump().await, before);
    assert!(!shop.folder().join("reports").exists());
    let quiet = shop.tieout(&["doctor", "--quiet"]).await;
    let ok = quiet.stdout.lines().filter(|line| line.contains("  ok  ")).count();
    assert_eq!((quiet.code, ok), (Some(0), 0), "{}", quiet.stdout);
}

async fn an_index_that_the_claim_lacks_is_written_out_and_serves(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    has_none(&doctor(&shop).await, "no_index");
    shop.raw.execute("drop index payments_status").await;
    let (what, state, text, create) = finding(&doctor(&shop).await, "no_index");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
    assert!(text.contains("payments whole"), "{text}");
    match engine {
        Engine::Postgres => assert_eq!(
            create,
            "create index concurrently on public.payments (\"created_at\") \
             where \"status\" = 'processing';"
        ),
        Engine::Sqlite => assert_eq!(
            create,
            "create index \"payments_status\" on \"payments\" (\"status\", \"created_at\");"
        ),
    }
    // Values are found without an index too.
    shop.insert(&[Payment { status: "strange", ..Payment::stuck(7) }]).await;
    let (.., text, _) = finding(&doctor(&shop).await, "status_unmapped");
    assert!(text.contains("`strange`"), "{text}");
    shop.raw.execute(&create).await;
    let ran = doctor(&shop).await;
    has_none(&ran, "no_index");
    shop.raw.execute("drop index payments_ref").await;
    // An index that is there under the name that would be proposed is not in the way.
    shop.raw.execute("create index payments_psp_ref on payments (amount)").await;
    let (.., text, create) = finding(&doctor(&shop).await, "no_lookup_index");
    assert!(text.contains("psp_ref"), "{text}");
    shop.raw.execute(&create).await;
    has_none(&doctor(&shop).await, "no_lookup_index");
    // The columns of a natural key are compared together: an index of any of them serves.
    rewrite(&shop, "natural_key = [\"order_no\"]", "natural_key = [\"account\", \"order_no\"]");
    has_none(&doctor(&shop).await, "no_lookup_index");
    shop.raw.execute("drop index payments_order").await;
    let (.., text, create) = finding(&doctor(&shop).await, "no_lookup_index");
    assert!(text.starts_with("no index leads with account or order_no, "), "{text}");
    assert!(
        create.contains("payments") && create.contains("(\"account\", \"order_no\")"),
        "{create}"
    );
    shop.raw.execute(&create).await;
    has_none(&doctor(&shop).await, "no_lookup_index");
}

/// The parents of a view's subqueries may have columns of the same names; nobody walks those.
#[tokio::test(flavor = "multi_thread")]
async fn below_a_view_the_table_in_its_from_is_meant() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    shop.raw
        .execute(
            "create table a_parents (id bigint primary key, status text, created_at timestamptz); \
             create view payments_v as select p.*, \
                 (select a.status from a_parents a where a.id = 1) as word from payments p; \
             drop index payments_status",
        )
        .await;
    rewrite(&shop, "read = \"payments\"", "read = \"payments_v\"");
    let (.., text, create) = finding(&doctor(&shop).await, "no_index");
    assert!(text.contains("public.payments whole"), "{text}");
    assert!(create.contains(" on public.payments ("), "{create}");
}

/// What stands on the status is found below a view that calls it otherwise, in its table's words.
#[tokio::test(flavor = "multi_thread")]
async fn below_a_view_the_status_is_found_by_whatever_name() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    shop.raw
        .execute(
            "create function note_it() returns trigger language plpgsql as \
             $$ begin return new; end $$; \
             create trigger notes before update on payments \
                 for each row execute function note_it(); \
             create unique index by_status on payments (order_no, status); \
             alter table payments add constraint known check (status <> 'failed') not valid; \
             drop index payments_status; \
             create view shown as select id, order_no, account, status as state, amount, \
                 currency, created_at, attempted_at, psp_ref, attempt, updated_at, note as status \
                 from payments",
        )
        .await;
    rewrite(&shop, "read = \"payments\"", "read = \"shown\"");
    rewrite(&shop, "status = \"status\"", "status = \"state\"");
    let ran = doctor(&shop).await;
    for (code, part) in [
        ("trigger", "trigger notes of public.payments fires"),
        ("unique_over_status", "the unique index by_status of public.payments covers state"),
        ("check_refuses", "the CHECK known refuses `failed`"),
    ] {
        let (.., text, _) = finding(&ran, code);
        assert!(text.contains(part), "{code}: {text}");
    }
    shop.raw.execute("drop index by_status").await;
    let (.., text, create) = finding(&doctor(&shop).await, "no_index");
    assert!(text.contains("public.payments whole"), "{text}");
    assert_eq!(
        create,
        "create index concurrently on public.payments (\"created_at\") \
         where \"status\" = 'processing';"
    );
    shop.raw.execute(&create).await;
    has_none(&doctor(&shop).await, "no_index");
}

async fn what_stands_on_the_table_is_found(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    let trigger = match engine {
        Engine::Postgres => {
            "create function note_it() returns trigger language plpgsql as \
             $$ begin return new; end $$; \
             create trigger notes before update on payments \
                 for each row execute function note_it(); \
             create trigger births before insert on payments \
                 for each row execute function note_it()"
        }
        Engine::Sqlite => {
            "create trigger notes after update of status on payments begin \
             update untouched set word = new.status; end; \
             create trigger births after insert on payments begin \
             delete from untouched where id = 9; end"
        }
    };
    let none = "select 1";
    for (plant, code, word, mend) in [
        (trigger, "trigger", "notes", "drop trigger notes"),
        (
            "create unique index one_paid on payments (order_no) where status = 'paid'",
            "unique_over_status",
            "one_paid",
            "drop index one_paid",
        ),
        (
            "create unique index by_status on payments (order_no, status)",
            "unique_over_status",
            "by_status",
            "drop index by_status",
        ),
        (
            "insert into payments (id, account, status, amount, created_at) \
             values (7, 'live', 'strange', 1, '2026-11-19T08:00:00Z')",
            "status_unmapped",
            "`strange`",
            "delete from payments where id = 7",
        ),
        (
            "insert into payments (id, account, status, amount, created_at) \
             values (7, 'mystery', 'paid', 1, '2026-11-19T08:00:00Z')",
            "account_unmapped",
            "`mystery`",
            "delete from payments where id = 7",
        ),
        (none, "table", "fits", none),
    ] {
        has_none_yet(&shop, code).await;
        shop.raw.execute(plant).await;
        let ran = doctor(&shop).await;
        let (what, _, text, _) = finding(&ran, code);
        assert!(what == "payments" && text.contains(word), "{code}: {text}");
        let mend = match (engine, mend) {
            (Engine::Postgres, "drop trigger notes") => "drop trigger notes on payments",
            (_, mend) => mend,
        };
        shop.raw.execute(mend).await;
    }
    // A key among the columns: no change of the status can violate it.
    shop.raw.execute("create unique index wide on payments (id, status)").await;
    if engine == Engine::Postgres {
        has_none(&doctor(&shop).await, "unique_over_status");
    }
}

async fn has_none_yet(shop: &Shop, code: &str) {
    if code != "table" {
        has_none(&doctor(shop).await, code);
    }
}

/// What a CHECK asks of a row besides its status is told before a run meets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_over_the_status_and_another_column_is_asked_of_stuck_rows() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    // One that fails with an error, one that only the PSP's reference decides, one that is met, and
    // one of what no mode but `full` writes.
    let checks = [
        ("broken", "paid", "100 / (attempt - 1) > 0"),
        ("paid_by_stripe", "paid", "(psp_ref is not null and psp_ref like 'pi_%')"),
        ("paid_has_note", "paid", "note is not null"),
        ("paid_is_dated", "paid", "updated_at is not null"),
        ("failed_has_note", "failed", "note is not null"),
    ];
    for (name, status, asks) in checks {
        let check = format!("constraint {name} check (status <> '{status}' or {asks}) not valid");
        shop.raw.execute(&format!("alter table payments add {check}")).await;
    }
    has_none(&doctor(&shop).await, "check_refuses_rows");
    shop.insert(&[Payment::stuck(7)]).await;
    let refused = |ran: &Ran| of_code(ran, "check_refuses_rows").len();
    assert_eq!(refused(&doctor(&shop).await), 2, "paid_has_note and failed_has_note");
    let full = "mode = \"full\"";
    rewrite(&shop, full, "mode = \"succeed_only\"");
    assert_eq!(refused(&doctor(&shop).await), 1);
    rewrite(&shop, "mode = \"succeed_only\"", "mode = \"observe\"");
    assert_eq!(refused(&doctor(&shop).await), 0);
    rewrite(&shop, "mode = \"observe\"", full);
    shop.raw.execute("alter table payments drop constraint failed_has_note").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "check_refuses_rows");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "fail", Some(10)));
    assert_eq!(
        text,
        "the CHECK paid_has_note of public.payments refuses `paid` on 1 of 1 looked-at stuck rows \
         as a run would write them; it goes by `note` as well"
    );
    assert!(next.contains("under succeeded of [table.set]"), "{next}");
    // Some rows have what it asks for, and a trigger may see to the others.
    shop.insert(&[Payment::stuck(8)]).await;
    shop.raw.execute("update payments set note = 'gift' where id = 8").await;
    let (_, state, text, _) = finding(&doctor(&shop).await, "check_refuses_rows");
    assert_eq!(state, "warn");
    assert!(text.contains("on 1 of 2 looked-at stuck rows"), "{text}");
    shop.raw
        .execute(
            "delete from payments where id = 8; \
             create function notes() returns trigger language plpgsql as \
             $$ begin new.note := 'paid'; return new; end $$; \
             create trigger notes before update on payments \
                 for each row execute function notes()",
        )
        .await;
    let (_, state, text, _) = finding(&doctor(&shop).await, "check_refuses_rows");
    assert_eq!(state, "warn");
    assert!(text.contains("unless a trigger mends them first (notes)"), "{text}");
    shop.raw.execute("drop trigger notes on payments").await;
    // A view's rows are asked in the table that is written.
    shop.raw.execute("create view payments_v as select * from payments").await;
    let read = "read = \"payments\"";
    rewrite(&shop, read, "read = \"payments_v\"\nwrite = \"payments\"");
    assert_eq!(finding(&doctor(&shop).await, "check_refuses_rows").1, "fail");
    rewrite(&shop, "read = \"payments_v\"\nwrite = \"payments\"", read);
    let set = "psp_ref = \"{psp_reference}\"";
    rewrite(&shop, set, &format!("{set}, note = \"{{reason}}\""));
    has_none(&doctor(&shop).await, "check_refuses_rows");
}

async fn a_status_that_its_table_of_words_lacks_is_told(engine: Engine) {
    let words = Words { more: gifts("", "gift-{id}"), ..Words::default() };
    let shop = healthy(engine, words).await;
    let made = match engine {
        Engine::Sqlite => "text",
        Engine::Postgres => "timestamptz",
    };
    shop.raw
        .execute(&format!(
            "create table states (word text primary key); \
             insert into states values ('sent'), ('done'); \
             create table gifts (id bigint primary key, cents bigint not null, \
                 made {made} not null, state text not null references states (word)); \
             create index gifts_state on gifts (state)"
        ))
        .await;
    let ran = doctor(&shop).await;
    let (what, state, text, _) = finding(&ran, "check_refuses");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("gifts", "fail", Some(10)));
    assert!(text.starts_with("the foreign key ") && text.contains("refuses `again`"), "{text}");
    shop.raw.execute("insert into states values ('again')").await;
    has_none(&doctor(&shop).await, "check_refuses");
}

/// A second table, with these words in place of the plain ones.
fn gifts(more: &str, tag: &str) -> String {
    format!(
        r#"
[[table]]
name = "gifts"
read = "gifts"
key = ["id"]
tag = "{tag}"
amount = {{ column = "cents", unit = "minor" }}
currency = {{ const = "EUR" }}
accounts = {{ "*" = "shop" }}
status = "state"
created = "made"
time = "utc"
mode = "full"
{more}
map = [{{ from = ["sent"], succeeded = "done", retryable = "again" }}]
"#
    )
}

const GIFTS: &str = "
    create table gifts (id bigint primary key, ref text, cents bigint not null, made text not null,
        state text not null check (state in ('sent', 'done')));
    create index gifts_state on gifts (state);
    create index gifts_ref on gifts (ref)";

async fn a_second_table_is_held_against_its_check_and_the_first_one(engine: Engine) {
    let words = Words { more: gifts("", "{ref}"), ..Words::default() };
    let shop = healthy(engine, words).await;
    let made = match engine {
        Engine::Sqlite => GIFTS.to_owned(),
        Engine::Postgres => GIFTS.replace("made text", "made timestamptz"),
    };
    shop.raw.execute(&made).await;
    let insert = |id: i64, reference: &str| {
        let at = at_text(tieout_now() - 3_600);
        format!("insert into gifts values ({id}, {reference}, 100, '{at}', 'sent')")
    };
    shop.raw.execute(&insert(1, "'g-1'")).await;
    let ran = doctor(&shop).await;
    assert_eq!(ran.code, Some(10), "{}", ran.stdout);
    let (what, state, text, _) = finding(&ran, "check_refuses");
    assert_eq!((what.as_str(), state.as_str()), ("gifts", "fail"));
    assert!(text.contains("`again`"), "{text}");
    let checked = shop.tieout(&["config", "check", "--connect"]).await.ended(10);
    assert!(checked.stderr.contains("`again`"), "{}", checked.stderr);
    let (.., text, _) = finding(&ran, "attempts_unknown");
    assert!(text.contains("never proven"), "{text}");
    for code in ["tag_shared", "tag_missing", "tag_in_two_tables", "tag_too_long"] {
        has_none(&ran, code);
    }
    shop.raw.execute(&insert(2, "'g-1'")).await;
    shop.raw.execute(&insert(3, "null")).await;
    shop.raw.execute(&insert(4, "'pay_900003'")).await;
    shop.raw.execute(&insert(5, &format!("'{}'", "x".repeat(501)))).await;
    let ran = doctor(&shop).await;
    let (.., text, _) = finding(&ran, "tag_shared");
    assert!(text.contains("`g-1` by 2: such a row is settled by the PSP reference"), "{text}");
    // The other row is over: an earlier try that was paid, say.
    shop.raw.execute("update gifts set state = 'done' where id = 2").await;
    let (.., text, _) = finding(&doctor(&shop).await, "tag_shared");
    assert!(text.contains("`g-1` by 2: such a row is settled by the PSP reference"), "{text}");
    shop.raw.execute("update gifts set state = 'sent' where id = 2").await;
    let (.., text, _) = finding(&ran, "tag_missing");
    assert!(text.starts_with("1 of 5"), "{text}");
    let (.., text, _) = finding(&ran, "tag_too_long");
    assert!(text.contains("501 characters"), "{text}");
    // Found from the first table's side, which is asked about the second's rows.
    shop.insert(&[Payment::stuck(900_003 + 1_000_000)]).await;
    shop.raw.execute("update gifts set ref = 'pay_1900003' where id = 4").await;
    let (what, _, text, _) = finding(&doctor(&shop).await, "tag_in_two_tables");
    assert!(what == "payments" && text.contains("`pay_1900003`"), "{what}: {text}");
    // Where no index finds the second's rows, those that were looked at are compared.
    shop.raw.execute("drop index gifts_ref").await;
    let (.., text, _) = finding(&doctor(&shop).await, "tag_in_two_tables");
    assert!(text.contains("`pay_1900003`"), "{text}");
    // What does not fit is told as `config check --connect` tells it.
    rewrite(&shop, "key = [\"id\"]\ntag = \"{ref}\"", "key = [\"ref\"]\ntag = \"{ref}\"");
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "mapping");
    assert_eq!((what.as_str(), state.as_str()), ("gifts", "fail"));
    assert!(text.contains("(ref) is no unique key") && next.contains("config check"), "{text}");
}

/// A row without a tag is found by the PSP reference that it stores.
async fn rows_that_nothing_leads_to_are_counted(engine: Engine) {
    let words = Words { more: gifts("psp_reference = \"psp\"", "{ref}"), ..Words::default() };
    let shop = healthy(engine, words).await;
    let made = GIFTS.replace("ref text,", "ref text, psp text,");
    let made = match engine {
        Engine::Sqlite => made,
        Engine::Postgres => made.replace("made text", "made timestamptz"),
    };
    shop.raw.execute(&made).await;
    let at = at_text(tieout_now() - 3_600);
    let insert = |id: i64, words: &str| {
        format!("insert into gifts values ({id}, {words}, 100, '{at}', 'sent')")
    };
    for (id, words) in [(1, "'g-1', null"), (2, "null, 'pi_1'")] {
        shop.raw.execute(&insert(id, words)).await;
    }
    has_none(&doctor(&shop).await, "tag_missing");
    for (id, words) in [(3, "null, null"), (4, "'', ''")] {
        shop.raw.execute(&insert(id, words)).await;
    }
    let (_, state, text, _) = finding(&doctor(&shop).await, "tag_missing");
    assert_eq!(state, "warn");
    assert!(text.starts_with("2 of 4 looked-at rows have no tag and no PSP reference"), "{text}");
}

/// What files say of such a tag is masked before it is kept, and finds no row.
async fn tags_that_look_like_card_numbers_are_told_where_files_decide(engine: Engine) {
    let words = Words {
        accounts: ", bank = \"bank\"",
        more: "[[account]]\nname = \"bank\"\npsp = \"files\"\nmode = \"full\"\nlivemode = true\n"
            .to_owned(),
        ..Words::default()
    };
    let shop = healthy(engine, words).await;
    let looks_so = 4_111_111_111_111_111;
    let row = |id, account| Payment { account, amount: Some(100), ..Payment::stuck(id) };
    shop.insert(&[row(looks_so + 1, "bank")]).await;
    has_none(&doctor(&shop).await, "tag_like_card");
    shop.insert(&[row(looks_so, "bank")]).await;
    let (what, state, text, next) = finding(&doctor(&shop).await, "tag_like_card");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
    assert!(text.contains("looked-at tags at bank look like card numbers"), "{text}");
    assert!(text.contains("`pay_************1111`") && !text.contains("4111"), "{text}");
    assert!(next.contains("a letter between the digits"), "{next}");
    let check = shop.tieout(&["config", "check", "--connect"]).await.ended(0);
    assert!(check.stdout.contains("look like card numbers"), "{}", check.stdout);
    // An API is asked by the tag as it is.
    rewrite(&shop, ", bank = \"bank\"", ", bank = \"shop\"");
    has_none(&doctor(&shop).await, "tag_like_card");
}

async fn an_account_that_does_not_serve_is_told_with_its_exit(engine: Engine) {
    let mut shop = healthy(engine, Words::default()).await;
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "witness");
    assert_eq!((state.as_str(), ran.code), ("ok", Some(0)), "{}", ran.stdout);
    assert_eq!(text, "30 of the newest 30 captured objects are rows of yours");

    shop.sandbox.fault(FaultRule::always(Action::RefuseConnections { for_ms: 0 }));
    shop.tieout(&["doctor"]).await;
    let ran = doctor(&shop).await;
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    assert_eq!(finding(&ran, "no_answer").1, "fail");
    shop.sandbox.clear_faults();
    shop.sandbox.door(tieout::sandbox::settings::Door::Open, None);

    shop.sandbox.advance(300);
    let ran = doctor(&shop).await;
    let (what, state, text, _) = finding(&ran, "clock_skew");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("clock", "fail", Some(10)));
    assert!(text.contains("shop +30"), "{text}");
    shop.sandbox.advance(-300);

    rewrite(&shop, "livemode = false", "livemode = true");
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "wrong_environment").1.as_str(), ran.code), ("fail", Some(12)));
    rewrite(&shop, "livemode = true", "livemode = false");

    rewrite(&shop, "metadata[order_id]", "metadata[other]");
    let ran = doctor(&shop).await;
    let (_, state, text, next) = finding(&ran, "no_tags");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)), "{}", ran.stdout);
    assert!(text.contains("30 captured objects has a tag in metadata[other]"), "{text}");
    assert!(next.contains("look at pi_") && next.contains("[[account]] shop"), "{next}");
    has_none(&ran, "witness");
    rewrite(&shop, "metadata[other]", "metadata[order_id]");
    shop.raw.execute("update payments set psp_ref = null").await;
    rewrite(&shop, "tag = \"pay_{id}\"", "tag = \"gift_{id}\"");
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "no_witness");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)));
    assert!(text.contains("no absence proven"), "{text}");
    rewrite(&shop, "tag = \"gift_{id}\"", "tag = \"pay_{id}\"");

    let foreign = (0..40).map(|n| Payment::stuck(n).captured()).collect();
    shop.plant(foreign);
    let (.., text, _) = finding(&doctor(&shop).await, "few_witnesses");
    assert!(text.starts_with("30 of the newest 70"), "{text}");

    rewrite(&shop, "key_env = \"", "key_env = \"NO_");
    let ran = doctor(&shop).await;
    let (_, state, text, next) = finding(&ran, "no_key");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)), "{text}");
    assert!(next.contains("key_env") && !next.contains("base_url"), "{next}");
    rewrite(&shop, "key_env = \"NO_", "key_env = \"");

    // A command that fails is no other trouble.
    let (by_env, by_command) = ("key_env = \"SHOP_PSP_KEY\"", "key_command = [\"false\"]");
    rewrite(&shop, by_env, by_command);
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "no_key");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)), "{text}");
    assert!(text.starts_with("key_command: the key command `false` failed"), "{text}");
    rewrite(&shop, by_command, by_env);

    shop.sandbox.scenario("revoked_key").unwrap();
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "auth").1.as_str(), ran.code), ("fail", Some(12)), "{}", ran.stdout);
}

/// A tag that is right and that no index finds is not looked up, and so is not said to be wrong.
async fn tags_without_an_index_are_said_to_be_not_looked_up(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("update payments set psp_ref = null, order_no = 'pay_' || id").await;
    rewrite(&shop, "tag = \"pay_{id}\"", "tag = \"{order_no}\"");
    assert_eq!(finding(&doctor(&shop).await, "witness").1, "ok");
    shop.raw.execute("drop index payments_order").await;
    let ran = doctor(&shop).await;
    let (what, state, text, create) = finding(&ran, "not_looked_up");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    assert!(text.ends_with("no index leads with order_no of payments"), "{text}");
    shop.raw.execute(&create).await;
    assert_eq!(finding(&doctor(&shop).await, "witness").1, "ok");
}

/// A label that no row has is none that a run meets.
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_no_row_has_ends_no_run() {
    for index in ["", "drop index payments_status"] {
        let shop = healthy(Engine::Postgres, Words::default()).await;
        shop.raw
            .execute(
                "create type phase as enum \
                     ('new', 'cart', 'processing', 'paid', 'failed', 'retry', 'OFFEN'); \
                 alter table payments alter column status type phase using status::phase",
            )
            .await;
        if !index.is_empty() {
            shop.raw.execute(index).await;
        }
        let ran = doctor(&shop).await;
        has_none(&ran, "status_unmapped");
        let (_, state, text, _) = finding(&ran, "status_label");
        assert!(state == "warn" && text.contains("`OFFEN`"), "{text}");
        shop.tieout(&["run"]).await.ended(0);
        shop.raw.execute("update payments set status = 'OFFEN' where id = 900003").await;
        let ran = shop.tieout(&["run"]).await.ended(3);
        assert!(ran.stderr.contains("status `OFFEN` is neither mapped nor ignored"), "{ran:?}");
        let ran = doctor(&shop).await;
        assert!(finding(&ran, "status_unmapped").2.contains("`OFFEN`"), "{}", ran.stdout);
        has_none(&ran, "status_label");
        let unset = "alter table payments alter column status drop not null; \
                     update payments set status = null where id = 900003";
        shop.raw.execute(unset).await;
        let ran = doctor(&shop).await;
        assert!(finding(&ran, "status_unmapped").2.contains("NULL"), "{}", ran.stdout);
    }
}

/// A table that is mapped to one account, and whose rows may be of several.
async fn rows_of_other_psps_in_a_table_of_one_account_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.insert(&[Payment { account: "mystery", ..Payment::stuck(7) }]).await;
    assert!(finding(&doctor(&shop).await, "account_unmapped").2.contains("`mystery`"));
    let account = "account = [\"account\"]";
    let left_out = "where = [{ column = \"account\", not_in = [\"mystery\"] }]";
    rewrite(&shop, account, &format!("{account}\n{left_out}"));
    has_none(&doctor(&shop).await, "account_unmapped");
    rewrite(&shop, account, "account = { const = \"shop\" }");
    rewrite(&shop, "accounts = { live = \"shop\" }\n", "");
    shop.raw.execute("alter table payments add column gateway_id bigint default 1").await;
    has_none(&doctor(&shop).await, "account_untold");
    shop.raw.execute("update payments set gateway_id = 2 where id = 900003").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "account_untold");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "warn", Some(0)));
    assert!(text.contains("gateway_id has 2 values: `1`, `2`"), "{text}");
    assert!(next.contains("where = [{ column = \"gateway_id\""), "{next}");
    rewrite(&shop, left_out, "where = [{ column = \"gateway_id\", in = [1] }]");
    has_none(&doctor(&shop).await, "account_untold");
    // By its values, whatever it is called.
    shop.raw.execute("alter table payments add column via text default 'stripe'").await;
    has_none(&doctor(&shop).await, "account_untold");
    shop.raw.execute("update payments set via = 'adyen' where id = 900004").await;
    let (.., text, _) = finding(&doctor(&shop).await, "account_untold");
    assert!(text.contains("via has 2 values: `adyen`, `stripe`"), "{text}");
}

/// Two values that go to one account, and one of them is another account's.
async fn a_value_whose_paid_rows_the_account_does_not_know_is_told(engine: Engine) {
    let words = Words { accounts: ", uk = \"shop\"", ..Words::default() };
    let mut shop = healthy(engine, words).await;
    has_none(&doctor(&shop).await, "account_value");
    let row = |id| Payment { account: "uk", status: "paid", ..Payment::stuck(id) };
    let rows: Vec<Payment> = (1..=3).map(row).collect();
    shop.insert(&rows).await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "account_value");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    assert!(text.contains("is a row of payments with `uk` in account, though 3 of them"), "{text}");
    assert!(text.contains("30 objects are rows of other values"), "{text}");
    assert!(next.starts_with("name an [[account]] of its own for `uk`"), "{next}");
    // What is stuck may have been sent nowhere.
    shop.raw.execute("update payments set status = 'processing' where id <= 3").await;
    has_none(&doctor(&shop).await, "account_value");
    shop.raw.execute("update payments set status = 'paid' where id <= 3").await;
    shop.plant(rows.iter().map(Payment::captured).collect());
    has_none(&doctor(&shop).await, "account_value");
}

/// A table that is mapped to charges, and some of whose rows are refunds.
async fn rows_of_other_kinds_in_a_table_of_one_kind_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("alter table payments add column movement text default 'purchase'").await;
    has_none(&doctor(&shop).await, "kind_untold");
    shop.raw.execute("update payments set movement = 'refund' where id = 900003").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "kind_untold");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "warn", Some(0)));
    assert!(text.contains("movement has 2 values: `purchase`, `refund`"), "{text}");
    assert!(next.starts_with("kind = { column = \"movement\""), "{next}");
    let ran = shop.tieout(&["config", "check", "--connect", "--json"]).await.ended(0);
    assert_eq!(of_code(&ran, "kind_untold").len(), 1, "{}", ran.stdout);
    let account = "account = [\"account\"]";
    let kinds = "values = { purchase = \"charge\", refund = \"refund\" }";
    rewrite(&shop, account, &format!("{account}\nkind = {{ column = \"movement\", {kinds} }}"));
    let ran = doctor(&shop).await;
    has_none(&ran, "kind_untold");
    has_none(&ran, "kind_unmapped");
    // What its values do not say its name may.
    rewrite(&shop, &format!("{account}\nkind = {{ column = \"movement\", {kinds} }}"), account);
    shop.raw.execute("update payments set movement = 'D'").await;
    has_none(&doctor(&shop).await, "kind_unsure");
    shop.raw.execute("update payments set movement = 'R' where id = 900003").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "kind_unsure");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "warn", Some(0)));
    assert!(text.contains("movement has 2 values: `D`, `R`"), "{text}");
    assert!(next.contains("\"D\" = \"…\", \"R\" = \"…\""), "{next}");
    rewrite(&shop, account, &format!("{account}\nkind = {{ column = \"movement\", {kinds} }}"));
    has_none(&doctor(&shop).await, "kind_unsure");
    shop.raw.execute("update payments set movement = 'purchase'").await;
    // One that the mapping does not know, and none.
    shop.raw.execute("update payments set movement = 'void' where id = 900004").await;
    shop.raw.execute("update payments set movement = null where id = 900005").await;
    let (what, state, text, next) = finding(&doctor(&shop).await, "kind_unmapped");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
    let words = "movement has values that name no kind: `NULL`, `void`";
    assert!(text.starts_with(words) && next.contains("leave the rows out by where"), "{text}");
    let ran = shop.tieout(&["config", "check", "--connect", "--json"]).await.ended(0);
    assert_eq!(of_code(&ran, "kind_unmapped").len(), 1, "{}", ran.stdout);
    // An empty text that is named names no NULL.
    shop.raw.execute("update payments set movement = 'purchase' where id = 900004").await;
    rewrite(&shop, kinds, &kinds.replace(" }", ", \"\" = \"charge\" }"));
    let (.., text, next) = finding(&doctor(&shop).await, "kind_unmapped");
    assert!(text.starts_with("movement has values that name no kind: `NULL`;"), "{text}");
    assert!(next.contains("not_in, which NULL passes"), "{next}");
}

/// Names that say nothing of it, and flags, tell such rows too.
async fn odd_names_and_flags_tell_rows_of_other_psps_and_kinds(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    rewrite(&shop, "account = [\"account\"]", "account = { const = \"shop\" }");
    rewrite(&shop, "accounts = { live = \"shop\" }\n", "");
    shop.raw.execute("alter table payments add column paid_by text default 'stripe'").await;
    shop.raw.execute("alter table payments add column is_refund integer default 0").await;
    let ran = doctor(&shop).await;
    has_none(&ran, "account_untold");
    has_none(&ran, "kind_untold");
    shop.raw
        .execute("update payments set paid_by = 'paypal', is_refund = 1 where id = 900003")
        .await;
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "account_untold");
    assert!(text.contains("paid_by has 2 values: `paypal`, `stripe`"), "{text}");
    assert_eq!((state.as_str(), ran.code), ("warn", Some(0)), "{}", ran.stdout);
    let (_, state, text, _) = finding(&ran, "kind_untold");
    assert!(text.contains("is_refund has 2 values: `0`, `1`"), "{text}");
    assert_eq!(state, "warn");
}

/// What tells refunds from charges is told with what to write, and common columns are not.
async fn columns_that_tell_refunds_are_told_with_what_to_write(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    for column in [
        "is_credit_note boolean default false",
        "refund_of bigint",
        "\"CR_DBT_IND\" char(4) default 'DBIT'",
        "is_test boolean default false",
        "direction text default 'N'",
        "parent_id bigint",
        "debit_day integer default 1",
    ] {
        shop.raw.execute(&format!("alter table payments add column {column}")).await;
    }
    let common = "update payments set is_test = true, direction = 'S', parent_id = 1, \
                  debit_day = 2 where id = 900003";
    shop.raw.execute(common).await;
    has_none(&doctor(&shop).await, "kind_untold");
    let account = "account = [\"account\"]";
    let mut before = account.to_owned();
    let mut filters: Vec<&str> = Vec::new();
    for (update, said, filter) in [
        (
            "update payments set is_credit_note = true where id = 900003",
            "is_credit_note has 2 values: `false`, `true`;",
            "{ column = \"is_credit_note\", not_in = [true] }",
        ),
        (
            "update payments set refund_of = 1 where id = 900004",
            "some have refund_of, which names the row that theirs takes back;",
            "{ column = \"refund_of\", is = \"null\" }",
        ),
        (
            "update payments set \"CR_DBT_IND\" = 'CRDT' where id = 900005",
            "CR_DBT_IND has 2 values: `CRDT`, `DBIT`;",
            "{ column = \"CR_DBT_IND\", in = [",
        ),
    ] {
        shop.raw.execute(update).await;
        let ran = doctor(&shop).await;
        let (what, state, text, next) = finding(&ran, "kind_untold");
        assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "warn", Some(0)));
        assert!(text.contains(said) && next.contains(filter), "{text} → {next}");
        let ran = shop.tieout(&["config", "check", "--connect", "--json"]).await.ended(0);
        assert_eq!(of_code(&ran, "kind_untold").len(), 1, "{}", ran.stdout);
        // What is left out by where is told no more.
        let left_out = match filter.ends_with('[') {
            true => "{ column = \"CR_DBT_IND\", in = [\"DBIT\"] }",
            false => filter,
        };
        filters.push(left_out);
        let after = format!("{account}\nwhere = [{}]", filters.join(", "));
        rewrite(&shop, &before, &after);
        before = after;
        has_none(&doctor(&shop).await, "kind_untold");
    }
    let kind = "kind = { column = \"is_credit_note\", values = { false = \"charge\", true = \
                \"refund\" } }";
    rewrite(&shop, &before, &format!("{account}\n{kind}"));
    let ran = doctor(&shop).await;
    has_none(&ran, "kind_untold");
    has_none(&ran, "kind_unmapped");
}

/// A row of two mappings is decided and written twice.
async fn rows_that_two_mappings_take_are_told(engine: Engine) {
    const AGAIN: &str = r#"
[[table]]
name = "again"
read = "payments"
key = ["id"]
tag = "pay_{id}"
amount = { column = "amount", unit = "minor" }
currency = { column = "currency" }
account = ["account"]
status = "status"
created = "created_at"
attempted = "attempted_at"
psp_reference = "psp_ref"
mode = "full"
ignore = ["new", "cart"]
accounts = { live = "shop" }
where = []
map = [{ from = ["processing"], succeeded = "paid", failed = "failed", retryable = "retry" }]
"#;
    let shop = healthy(engine, Words { more: AGAIN.to_owned(), ..Words::default() }).await;
    shop.insert(&[Payment::stuck(1)]).await;
    let mut before = "where = []".to_owned();
    for (filter, said) in [
        ("", Some("payments the rows in `processing` are taken by [[table]] payments and by")),
        ("{ column = \"id\", in = [1] }", Some("payments 1 looked-at stuck row (`1`) is taken")),
        ("{ column = \"id\", in = [2] }", None),
        // Whatever the rows' status: once they are stuck it is late.
        (
            "{ column = \"id\", in = [900003] }",
            Some("payments 1 looked-at row (`900003`), none of them stuck now, would be taken by"),
        ),
    ] {
        let after = format!("where = [{filter}]");
        rewrite(&shop, &before, &after);
        before = after;
        let ran = doctor(&shop).await;
        let checked = shop.tieout(&["config", "check", "--connect", "--json"]).await;
        for ran in [ran, checked] {
            match said {
                Some(said) => {
                    has_none(&ran, "rows_may_be_taken_twice");
                    let (what, state, text, _) = finding(&ran, "rows_taken_twice");
                    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
                    assert!(text.contains(said), "{text}");
                }
                None => {
                    has_none(&ran, "rows_taken_twice");
                    let (what, state, text, _) = finding(&ran, "rows_may_be_taken_twice");
                    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
                    assert!(text.contains("do not exclude each other"), "{text}");
                }
            }
        }
    }
    let natural = "natural_key = [\"order_no\"]";
    let apart = format!("{natural}\nwhere = [{{ column = \"id\", not_in = [900003] }}]");
    rewrite(&shop, natural, &apart);
    let ran = doctor(&shop).await;
    has_none(&ran, "rows_taken_twice");
    has_none(&ran, "rows_may_be_taken_twice");
}

/// What is written by a misspelt word nobody reads.
async fn a_target_that_no_row_has_is_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    rewrite(&shop, "ignore = [\"new\", \"cart\"]", "ignore = [\"new\", \"cart\", \"settled\"]");
    has_none(&doctor(&shop).await, "target_unseen");
    rewrite(&shop, "succeeded = \"paid\"", "succeeded = \"payd\"");
    rewrite(&shop, "\"settled\"]", "\"paid\"]");
    for index in ["", "drop index payments_status"] {
        if !index.is_empty() {
            shop.raw.execute(index).await;
        }
        let (what, state, text, next) = finding(&doctor(&shop).await, "target_unseen");
        assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
        let said = "no looked-at row has `payd`, which [[table.map]] writes as succeeded, and \
                    ignore holds `paid`";
        assert!(text.starts_with(said) && next.contains("spelling of succeeded"), "{text}: {next}");
    }
}

/// Nothing due must never mean nothing seen.
async fn a_word_of_from_that_no_row_has_is_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.insert(&[Payment::stuck(1)]).await;
    let ignore = "ignore = [\"new\", \"cart\"]";
    rewrite(&shop, ignore, "ignore = [\"new\", \"cart\", \"pending\"]");
    has_none(&doctor(&shop).await, "from_unseen");
    rewrite(&shop, "from = [\"processing\"]", "from = [\"procesing\"]");
    rewrite(&shop, "\"pending\"]", "\"processing\"]");
    let (what, state, text, next) = finding(&doctor(&shop).await, "from_unseen");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
    let words = "status (`procesing`), and ignore holds `processing`";
    assert!(text.contains(words) && next.contains("[[table.map]]"), "{text}: {next}");
    let ran = shop.tieout(&["config", "check", "--connect", "--json"]).await.ended(0);
    assert_eq!(of_code(&ran, "from_unseen").len(), 1, "{}", ran.stdout);
}

/// Nor must it mean that `where` lets nothing be seen; what may be meant is no more than a note.
async fn stuck_rows_that_where_leaves_out_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("alter table payments add column via text default 'stripe'").await;
    shop.raw.execute("alter table payments add column hidden boolean").await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    let account = "account = [\"account\"]";
    let misspelt = "where = [{ column = \"via\", in = [\"Stripe\"] }]";
    rewrite(&shop, account, &format!("{account}\n{misspelt}"));
    for index in ["", "drop index payments_status"] {
        if !index.is_empty() {
            shop.raw.execute(index).await;
        }
        let ran = doctor(&shop).await;
        let (what, state, text, next) = finding(&ran, "where_leaves_out");
        assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "fail", Some(10)));
        let said = "where leaves out 2 of 2 looked-at rows with a value of from in status: via is \
                    to be `Stripe`, which holds for no row of the table; in them it is `stripe` \
                    (2); no run looks at them";
        assert_eq!(text, said);
        assert!(next.contains("in = [\"stripe\"] }] in [[table]] payments"), "{next}");
    }
    let checked = shop.tieout(&["config", "check", "--connect"]).await.ended(10);
    assert!(checked.stderr.contains("where leaves out 2 of 2"), "{}", checked.stderr);
    // Where an index leads with the column, it tells whether any row has the value.
    shop.raw.execute("create index payments_via on payments (via)").await;
    assert_eq!(finding(&doctor(&shop).await, "where_leaves_out").1, "fail");

    // A value that may be to come.
    let to_come = misspelt.replace("Stripe", "braintree");
    rewrite(&shop, misspelt, &to_come);
    let ran = doctor(&shop).await;
    let (_, state, ..) = finding(&ran, "where_leaves_out");
    assert_eq!((state.as_str(), ran.code), ("warn", Some(0)));

    let flag = "where = [{ column = \"hidden\", in = [false] }]";
    rewrite(&shop, &to_come, flag);
    let (_, state, text, next) = finding(&doctor(&shop).await, "where_leaves_out");
    assert!(state == "fail" && text.contains("in them it is NULL (2)"), "{state}: {text}");
    assert!(next.contains("not_in = [true]"), "{next}");
    shop.raw.execute("update payments set hidden = false where id = 1").await;
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "where_leaves_out");
    assert_eq!((state.as_str(), ran.code), ("warn", Some(0)));
    assert!(text.contains("1 of 2 looked-at rows") && text.contains("NULL (1)"), "{text}");
    rewrite(&shop, flag, "where = [{ column = \"hidden\", not_in = [true] }]");
    has_none(&doctor(&shop).await, "where_leaves_out");

    rewrite(&shop, "\"hidden\", not_in = [true]", "\"via\", in = [\"stripe\"]");
    shop.raw.execute("update payments set via = 'adyen' where id = 2").await;
    let (_, state, text, _) = finding(&doctor(&shop).await, "where_leaves_out");
    assert!(state == "ok" && text.contains("in them it is `adyen` (1)"), "{state}: {text}");
    shop.raw.execute("update payments set via = 'adyen' where id = 1").await;
    let ran = doctor(&shop).await;
    let (_, state, _, next) = finding(&ran, "where_leaves_out");
    assert_eq!((state.as_str(), ran.code), ("warn", Some(0)));
    assert!(next.starts_with("nothing to do, where such rows"), "{next}");
}

async fn amounts_that_are_kept_as_floats_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    has_none(&doctor(&shop).await, "amount_float");
    shop.raw.execute("alter table payments add column price real").await;
    shop.raw.execute("update payments set price = amount").await;
    rewrite(&shop, "column = \"amount\", unit", "column = \"price\", unit");
    let (what, state, text, _) = finding(&doctor(&shop).await, "amount_float");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "ok"));
    assert!(text.to_lowercase().starts_with("price may hold binary floats (real)"), "{text}");
}

/// Where the application alone writes what was paid, its word for that is no value to ignore.
async fn a_word_of_success_of_an_outbox_table_is_asked_for(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.insert(&[Payment { status: "settled", ..Payment::stuck(1) }]).await;
    let (.., next) = finding(&doctor(&shop).await, "status_unmapped");
    assert!(!next.contains("under succeeded"), "{next}");
    let map = "succeeded = \"paid\", failed = \"failed\", retryable = \"retry\" }]";
    rewrite(&shop, &format!(", {map}"), " }]\nchannel = \"outbox\"");
    let (_, _, text, next) = finding(&doctor(&shop).await, "status_unmapped");
    assert!(text.contains("`paid`") && next.contains("paid under succeeded"), "{text}: {next}");
}

async fn an_account_without_objects_and_a_pause_are_told(engine: Engine) {
    let shop = Shop::open(engine).await;
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "no_objects").1.as_str(), ran.code), ("warn", Some(0)));
    has_none(&ran, "paused");
    shop.raw
        .execute(
            "insert into tieout_accounts (account, paused_at, paused_by, paused_why) \
             values ('shop', '2026-11-19T08:00:00.000000Z', 'mara', 'moving')",
        )
        .await;
    let (_, _, text, next) = finding(&doctor(&shop).await, "paused");
    assert!(text.contains("moving") && next == "tieout resume shop", "{text} {next}");
}

/// Each paid row would end as a case, one by one.
async fn a_column_without_room_for_an_id_is_told_at_the_start(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("alter table payments add column number bigint").await;
    rewrite(&shop, "psp_ref = \"{psp_reference}\"", "number = \"{psp_reference}\"");
    let ran = doctor(&shop).await;
    let (what, state, text, _) = finding(&ran, "mapping");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "fail"));
    // Nor is it said that no object is a row's: nobody could look.
    let untold = of_code(&ran, "untold");
    let told = untold.iter().find(|found| found["what"] == "shop").unwrap();
    assert!(told["text"].as_str().unwrap().ends_with("table payments does not fit"), "{told}");
    assert!(text.starts_with("set.succeeded.number: column `number` (bigint) cannot"), "{text}");
    assert!(text.ends_with("expected a column of text, of at least 27 characters"), "{text}");
    let ran = shop.tieout(&["config", "check", "--connect"]).await.ended(10);
    assert!(ran.stderr.contains("cannot hold an id of account"), "{}", ran.stderr);
    let ran = shop.tieout(&["run"]).await.ended(10);
    assert!(ran.stderr.contains("set.succeeded.number"), "{}", ran.stderr);
}

async fn what_the_database_refuses_ends_nothing_else(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("delete from tieout_migrations").await;
    let ran = doctor(&shop).await;
    let (_, _, _, next) = finding(&ran, "schema_behind");
    assert_eq!((next.as_str(), ran.code), ("tieout db migrate", Some(15)), "{}", ran.stdout);
    assert_eq!(finding(&ran, "witness").1, "ok");
    // Before the first migration no table of tieout's is there to be asked.
    let mut fresh = Shop::open_bare(engine, Words::default()).await;
    fresh.insert(&[Payment::stuck(1)]).await;
    fresh.plant(vec![Payment::stuck(1).captured()]);
    let ran = doctor(&fresh).await;
    let untold = of_code(&ran, "untold");
    let told = untold.iter().find(|found| found["what"] == "shop").unwrap();
    assert!(told["text"].as_str().unwrap().ends_with("tables are not made yet"), "{told}");
    assert_eq!(told["next"], "tieout db migrate, then tieout doctor");
    let needs_it = |found: &&Value| found["text"].as_str().unwrap().contains("tieout_checks");
    for found in untold.iter().filter(needs_it) {
        assert_eq!(found["next"], "tieout db migrate", "{found}");
    }
    rewrite(&shop, "dir = \"reports\"", "dir = \"tieout.toml/reports\"");
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "report_dir").1.as_str(), ran.code), ("fail", Some(10)));
    let (from, to) = match engine {
        Engine::Sqlite => (".db", ".none"),
        Engine::Postgres => ("/t_", "/none_"),
    };
    rewrite(&shop, from, to);
    let ran = doctor(&shop).await;
    assert_eq!(finding(&ran, "database_refused").1, "fail");
    assert_eq!(finding(&ran, "account").1, "ok", "the PSP is asked without a database");
    rewrite(&shop, "mode = \"full\"", "mode = \"fll\"");
    let ran = shop.tieout(&["doctor"]).await.ended(10);
    assert!(ran.stdout.starts_with("config        FAIL  it cannot be used"), "{}", ran.stdout);
    assert!(ran.stderr.contains("did you mean `full`?"), "{}", ran.stderr);
}

/// By the run that could not write its report, by whoever builds it then, and by the doctor.
async fn what_stands_in_the_way_of_reports_is_named_alike(engine: Engine) {
    const ID: &str = "01a00000-0000-7000-8000-000000000009";
    let shop = healthy(engine, Words::default()).await;
    let at = |name: &str| shop.folder().join(name);
    std::os::unix::fs::symlink("loop", at("loop")).unwrap();
    std::os::unix::fs::symlink("gone", at("link")).unwrap();
    let mut dir = "reports".to_owned();
    for (number, next, part) in [
        (1, "loop", "is a link that leads back to itself"),
        (2, "link", "is a link, and what it leads to is not there: make the folder /"),
        (3, "/proc/x", "the file system of /proc keeps no files: set report.dir to a folder on"),
        (4, "tieout.toml/x", "is a file, and stands where a folder is needed: move it away"),
    ] {
        rewrite(&shop, &format!("dir = \"{dir}\""), &format!("dir = \"{next}\""));
        dir = next.to_owned();
        let id = &format!("{}{number}", &ID[..ID.len() - 1]);
        shop.insert(&[Payment::stuck(number)]).await;
        for (words, code) in [(&["run", "--run-id", id][..], 3), (&["report", "build", id], 10)] {
            let ran = shop.tieout(words).await.ended(code);
            let hint = ran.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap();
            assert!(hint.contains(part), "{next}, {words:?}: {}", ran.stderr);
            let then = format!("; then `tieout report build {id}`");
            assert!(hint.ends_with(&then), "{next}, {words:?}: {}", ran.stderr);
        }
        let (_, state, text, mend) = finding(&doctor(&shop).await, "report_dir");
        assert!(state == "fail" && mend.contains(part), "{next}: {text} {mend}");
    }
}

/// A mapping that writes another table than it reads fits the catalogue, and its rows may still be
/// others.
async fn stuck_rows_of_read_are_held_against_those_of_write(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    for sql in [
        "create table archive (id bigint primary key, status text not null, psp_ref text, \
         updated_at timestamptz)",
        "create view seen as select * from payments",
    ] {
        shop.raw.execute(sql).await;
    }
    let stuck: Vec<Payment> = (7..12).map(Payment::stuck).collect();
    shop.insert(&stuck).await;
    rewrite(&shop, "read = \"payments\"", "read = \"seen\"\nwrite = \"archive\"");
    let connect = ["config", "check", "--connect"];

    // None is there.
    let (what, state, text, next) = finding(&doctor(&shop).await, "write_lacks");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "fail"));
    let said = "5 of 5 looked-at stuck rows of seen are not in archive, `";
    assert!(text.replace("public.", "").starts_with(said), "{text}");
    assert!(next.starts_with("correct write or key"), "{next}");
    let ran = shop.tieout(&connect).await.ended(10);
    assert!(ran.stderr.contains("tieout: config: payments: 5 of 5"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nhint: correct write or key"), "{}", ran.stderr);

    // One is not, and one stands elsewhere.
    let copy = "insert into archive (id, status) select id, status from payments \
                where status = 'processing'";
    shop.raw.execute(&format!("{copy} and id <> 11")).await;
    shop.raw.execute("update archive set status = 'paid' where id = 8").await;
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "write_lacks");
    assert!(state == "warn" && text.starts_with("1 of 5"), "{state} {text}");
    assert!(text.contains("`11` for one"), "{text}");
    let (_, state, text, next) = finding(&ran, "write_differs");
    assert_eq!(state, "warn", "{text}");
    let text = text.replace("public.", "");
    assert!(text.contains("`8` is `processing` in seen and `paid` in archive"), "{text}");
    assert!(next.starts_with("correct write or status"), "{next}");
    let ran = shop.tieout(&connect).await.ended(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].contains("tieout.toml: ok"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\npayments: warn: 1 of 5 looked-at"), "{}", ran.stdout);
    let ran = shop.tieout(&["config", "check", "--connect", "--json"]).await.ended(0);
    assert_eq!(of_code(&ran, "write_differs").len(), 1, "{}", ran.stdout);

    // The table itself, behind its view; and a column of stuck rows that no index leads to.
    rewrite(&shop, "write = \"archive\"", "write = \"payments\"");
    shop.raw.execute("drop index payments_status").await;
    let ran = doctor(&shop).await;
    has_none(&ran, "write_lacks");
    has_none(&ran, "write_differs");
    let ran = shop.tieout(&connect).await.ended(0);
    assert!(!ran.stdout.contains("warn"), "{}", ran.stdout);
}

/// Rows that a view shows without a key are counted, and hold up none of the others.
async fn stuck_rows_without_a_key_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    let stuck: Vec<Payment> = (7..12).map(Payment::stuck).collect();
    shop.insert(&stuck).await;
    for sql in [
        "create table links (n bigint primary key, id bigint)",
        "insert into links select id, case when id = 8 then null else id end from payments",
        "create view seen as select l.id, p.order_no, p.account, p.status, p.amount, p.currency, \
         p.created_at, p.attempted_at, p.psp_ref, p.attempt \
         from payments p join links l on l.n = p.id",
    ] {
        shop.raw.execute(sql).await;
    }
    rewrite(&shop, "read = \"payments\"", "read = \"seen\"\nwrite = \"payments\"");
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "key_missing");
    let text = text.replace("public.", "");
    assert_eq!(state, "warn", "{text}");
    let said = "1 of 5 looked-at stuck rows of seen have no key: id is NULL in them";
    assert!(text.starts_with(said), "{text}");
    has_none(&ran, "write_lacks");
    let ran = shop.tieout(&["config", "check", "--connect", "--json"]).await.ended(0);
    assert_eq!(of_code(&ran, "key_missing").len(), 1, "{}", ran.stdout);
    has_none(&ran, "untold");
    let ran = shop.run().await.ended(0);
    let looked_at: Vec<String> = ran.verdicts().into_keys().collect();
    assert_eq!(looked_at, ["10", "11", "7", "9"]);
}

/// A view that shows rows by their status loses sight of each row that is decided; one that leaves
/// rows out by anything else does not.
async fn a_view_that_hides_rows_by_their_status_is_refused(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    let hiding = "create view seen as select * from payments where status = 'processing'";
    shop.raw.execute(hiding).await;
    rewrite(&shop, "read = \"payments\"", "read = \"seen\"\nwrite = \"payments\"");
    // As long as nothing is stuck, it may be a view of other rows as well.
    has_none(&doctor(&shop).await, "mapping");
    shop.insert(&[Payment::stuck(7)]).await;
    let (what, state, text, next) = finding(&doctor(&shop).await, "mapping");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "fail"));
    let said = "read: `seen` leaves rows out by their `status`: of the rows of `payments`";
    assert!(text.starts_with(said) && text.contains("leave rows out by `where`"), "{text}");
    assert!(next.contains("correct tieout.toml"), "{next}");
    for command in [&["config", "check", "--connect"][..], &["run"], &["run", "--dry-run"]] {
        let ran = shop.tieout(command).await.ended(10);
        assert!(ran.stderr.contains("`seen` leaves rows out"), "{}", ran.stderr);
    }
    assert_eq!(shop.status(7).await, "processing");

    // The newest rows that are over are all of others.
    let other = |id| Payment { account: "mystery", status: "paid", ..Payment::stuck(id) };
    shop.insert(&(2_000_000..2_000_300).map(other).collect::<Vec<_>>()).await;
    shop.raw.execute("drop view seen").await;
    shop.raw.execute("create view seen as select * from payments where account = 'live'").await;
    has_none(&doctor(&shop).await, "mapping");
    shop.tieout(&["config", "check", "--connect"]).await.ended(0);
    // Of the last rows, none is over: a night in which nothing was paid.
    shop.raw.execute("drop view seen").await;
    let last = "create view seen as select * from payments where id < 100 and amount > 0";
    shop.raw.execute(last).await;
    shop.raw.execute("delete from payments where id < 100 and status <> 'processing'").await;
    has_none(&doctor(&shop).await, "mapping");
    shop.tieout(&["config", "check", "--connect"]).await.ended(0);
    // Nothing is over yet.
    shop.raw.execute("delete from payments where status <> 'processing'").await;
    shop.raw.execute("drop view seen").await;
    shop.raw.execute(hiding).await;
    has_none(&doctor(&shop).await, "mapping");
}

/// A view that is written itself says by its text that a decided row leaves it: no row is needed to
/// tell, and none is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_loses_what_is_written_into_it_is_refused() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    rewrite(&shop, "read = \"payments\"", "read = \"seen\"");
    let raw = &shop.raw;
    let plant = |condition: &'static str| async move {
        let view = format!("create view seen as select * from payments where {condition}");
        raw.execute("drop view if exists seen").await;
        raw.execute(&view).await;
    };
    for condition in [
        "account = 'live'",
        "status <> 'new'",
        "status in ('processing', 'paid', 'failed', 'retry')",
    ] {
        plant(condition).await;
        has_none(&doctor(&shop).await, "mapping");
    }
    let lost = ["status <> 'failed'", "status in ('processing', 'retry')", "status = 'processing'"];
    for condition in lost {
        plant(condition).await;
        let (what, state, text, next) = finding(&doctor(&shop).await, "mapping");
        assert_eq!((what.as_str(), state.as_str()), ("payments", "fail"), "{condition}");
        let said = "read: `seen` leaves rows out by their `status`: a row that is paid, or over";
        assert!(text.starts_with(said) && text.contains("leave rows out by `where`"), "{text}");
        assert!(next.contains("correct tieout.toml"), "{next}");
    }
    for command in [&["config", "check", "--connect"][..], &["run"], &["run", "--dry-run"]] {
        let ran = shop.tieout(command).await.ended(10);
        assert!(ran.stderr.contains("`seen` leaves rows out"), "{}", ran.stderr);
    }
    // What the mode never writes may be lost; what is over in every way may not.
    rewrite(&shop, "mode = \"full\"", "mode = \"succeed_only\"");
    plant("status <> 'failed'").await;
    has_none(&doctor(&shop).await, "mapping");
    rewrite(&shop, "mode = \"succeed_only\"", "mode = \"observe\"");
    has_none(&doctor(&shop).await, "mapping");
    plant("status = 'processing'").await;
    assert_eq!(finding(&doctor(&shop).await, "mapping").1, "fail");
}

/// Words of rows that are over are so, though `ignore` names them as well.
async fn a_view_that_hides_rows_that_ignore_names_is_refused(engine: Engine) {
    let ignore = vec!["new", "cart", "paid", "failed", "retry"];
    let shop = healthy(engine, Words { ignore, ..Words::default() }).await;
    let hiding = "create view seen as select * from payments where status = 'processing'";
    shop.raw.execute(hiding).await;
    rewrite(&shop, "read = \"payments\"", "read = \"seen\"\nwrite = \"payments\"");
    shop.insert(&[Payment::stuck(7)]).await;
    let (_, state, text, _) = finding(&doctor(&shop).await, "mapping");
    assert_eq!(state, "fail");
    assert!(text.starts_with("read: `seen` leaves rows out by their `status`"), "{text}");
    shop.run().await.ended(10);
    assert_eq!(shop.status(7).await, "processing");
}

/// What statistics say of values is read as the column's own values are.
#[tokio::test(flavor = "multi_thread")]
async fn mapped_values_of_any_type_are_known_by_their_statistics() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let stuck: Vec<Payment> = (7..12).map(Payment::stuck).collect();
    shop.insert(&stuck).await;
    shop.raw
        .execute(
            "drop index payments_status; alter table payments alter status type char(12); \
             analyze payments",
        )
        .await;
    let seen = "select cast(most_common_vals as text) from pg_stats \
                where tablename = 'payments' and attname = 'status'";
    assert!(shop.raw.one(seen).await.contains("processing  "), "there are statistics");
    has_none(&doctor(&shop).await, "status_unmapped");
    shop.raw
        .execute(
            "alter table payments alter status type boolean using status = 'paid'; \
             analyze payments",
        )
        .await;
    assert_eq!(shop.raw.one(seen).await, "{t,f}");
    rewrite(&shop, "ignore = [\"new\", \"cart\"]", "ignore = []");
    let words = "from = [\"processing\"], succeeded = \"paid\", failed = \"failed\", \
                 retryable = \"retry\"";
    rewrite(&shop, words, "from = [false], succeeded = true");
    let ran = doctor(&shop).await;
    has_none(&ran, "mapping");
    has_none(&ran, "status_unmapped");
}

/// A run would never take such rows, and say that nothing is due.
async fn times_that_no_payment_has_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.insert(&[Payment::stuck(6)]).await;
    let ran = doctor(&shop).await;
    has_none(&ran, "times_ahead");
    has_none(&ran, "times_long_ago");
    let day = 24 * 3_600;
    shop.insert(&[Payment { age: -day, attempted: None, ..Payment::stuck(7) }]).await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "times_ahead");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
    assert!(text.starts_with("1 stuck row has times in the future (the newest 2"), "{text}");
    assert!(next.contains("time of [[table]]"), "{next}");
    has_none(&ran, "times_long_ago");
    let long_ago = "update payments set created_at = '1970-01-20T10:00:00Z', attempted_at = null \
                    where status = 'processing'";
    shop.raw.execute(long_ago).await;
    let ran = doctor(&shop).await;
    let (what, state, text, _) = finding(&ran, "times_long_ago");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
    assert!(text.contains("made at 1970-01-20T10:00:00Z: seconds"), "{text}");
    has_none(&ran, "times_ahead");
}

/// Where no value says that a row is to be charged again, a worker that reads the status waits.
async fn a_worker_that_no_status_tells_is_told_of(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    has_none(&doctor(&shop).await, "retry_unseen");
    rewrite(&shop, "retryable = \"retry\"", "absent = \"canceled\"");
    let (what, state, text, next) = finding(&doctor(&shop).await, "retry_unseen");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "warn"));
    assert!(text.contains("no value of retryable for `processing`"), "{text}");
    assert!(next.contains("channel = \"outbox\""), "{next}");
    let ran = shop.tieout(&["config", "check", "--connect", "--json"]).await.ended(0);
    assert_eq!(of_code(&ran, "retry_unseen").len(), 1, "{}", ran.stdout);
    rewrite(&shop, "status = \"status\"", "status = \"status\"\nchannel = \"outbox\"");
    has_none(&doctor(&shop).await, "retry_unseen");
}

/// What rows say of their amounts is held against what was captured.
async fn a_unit_that_is_wrong_is_told_by_what_was_captured(engine: Engine) {
    let mut shop = healthy(engine, Words::default()).await;
    let ran = doctor(&shop).await;
    let (what, state, text, _) = finding(&ran, "agreement");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "ok", Some(0)));
    assert_eq!(text, "amounts and times of 30 rows agree with the PSP's");

    shop.raw.execute("update payments set amount = amount + 1 where id = 900003").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "amounts_differ");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    let said = "the amounts of 1 of 30 rows of payments are not what was captured: \
                `900003` says 5.04 EUR, and pi_900003 5.03 EUR; ";
    assert!(text.starts_with(said), "{text}");
    assert!(next.ends_with("as amount of [[table]] payments"), "{next}");
    has_none(&ran, "agreement");
    shop.raw.execute("update payments set amount = amount - 1 where id = 900003").await;

    // Where those of all rows differ, they are of another column than what is charged.
    shop.raw.execute("update payments set amount = amount + 1").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "amounts_differ");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    assert!(text.starts_with("the amounts of 30 of 30 rows of payments are not what"), "{text}");
    let said = "map the column that is charged as amount of [[table]] payments: amount.column";
    assert!(next.starts_with(said), "{next}");
    shop.raw.execute("update payments set amount = amount - 1").await;

    rewrite(&shop, "unit = \"minor\"", "unit = \"major\"");
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "amount_unit");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    let said = "the amounts of 30 of 30 EUR rows of payments are 100 times what was captured: ";
    assert!(text.starts_with(said), "{text}");
    assert_eq!(next, "set unit = \"minor\" in amount of [[table]] payments");
    has_none(&ran, "amounts_differ");
    rewrite(&shop, "unit = \"major\"", "unit = \"minor\"");

    let currency = "currency = { column = \"currency\" }";
    rewrite(&shop, currency, "currency = { const = \"USD\" }");
    let ran = doctor(&shop).await;
    let (_, state, text, next) = finding(&ran, "amount_currency");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)));
    assert!(text.contains("30 of 30 rows of payments is another"), "{text}");
    assert_eq!(next, "correct currency in [[table]] payments");
    rewrite(&shop, "currency = { const = \"USD\" }", currency);

    // Yen in hundredths: the others agree, and so their unit is right.
    let yen = |id: i64, amount: i64| Payment {
        status: "paid",
        currency: "JPY",
        amount: Some(amount),
        ..Payment::stuck(id)
    };
    shop.plant((1..=3).map(|id| yen(id, 500 + id).captured()).collect());
    let rows: Vec<Payment> = (1..=3).map(|id| yen(id, 50_000 + 100 * id)).collect();
    shop.insert(&rows).await;
    let ran = doctor(&shop).await;
    let (_, state, text, next) = finding(&ran, "amount_unit");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)));
    let said = "the amounts of 3 of 3 JPY rows of payments are 100 times what was captured: ";
    assert!(text.starts_with(said), "{text}");
    assert!(next.contains("{ exponent = \"column\" }"), "{next}");
}

const BACK: &str = r#"
[[table]]
name = "refunds"
read = "refunds"
key = ["id"]
tag = "refund-{id}"
kind = { const = "refund" }
amount = { column = "cents", unit = "major" }
currency = { const = "EUR" }
accounts = { "*" = "shop" }
status = "status"
created = "made"
attempts = "once"
psp_reference = "re_id"
mode = "full"
map = [{ from = ["sent"], succeeded = "done", failed = "failed", retryable = "again" }]
"#;

/// Refunds are held against refunds, and payments against payments, under one tag as well.
async fn refunds_are_compared_with_the_rows_of_refunds(engine: Engine) {
    let words = Words { more: BACK.to_owned(), ..Words::default() };
    let mut shop = healthy(engine, words).await;
    let now = tieout_now();
    for id in 1..=3 {
        let seed = Seed::captured("order_id", &format!("refund-{id}"), 70 + id, "eur");
        let (kind, name) = (SeedKind::Refund, Some(format!("re_{id}")));
        shop.plant(vec![Seed { kind, id: name, ..seed.created_at(now - 60) }]);
        let sql = format!(
            "insert into refunds (id, status, cents, made) values ({id}, 'done', {}, '{}')",
            70 + id,
            at_text(now - 61)
        );
        shop.raw.execute(&sql).await;
    }
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "amount_unit");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    let said = "the amounts of 3 of 3 EUR rows of refunds are 100 times what was captured: ";
    assert!(text.starts_with(said), "{text}");
    assert_eq!(next, "set unit = \"minor\" in amount of [[table]] refunds");
    rewrite(&shop, "unit = \"major\"", "unit = \"minor\"");
    let (.., text, _) = finding(&doctor(&shop).await, "agreement");
    assert_eq!(text, "amounts and times of 33 rows agree with the PSP's");
}

/// Refunds that carry their payments' ids, which are other refunds' by chance.
async fn refunds_under_their_payments_tags_are_told(engine: Engine) {
    let back = BACK.replace("refund-{id}", "pay_{id}").replace("\"major\"", "\"minor\"");
    let mut shop = healthy(engine, Words { more: back, ..Words::default() }).await;
    let now = tieout_now();
    for n in 1..=6 {
        let tag = format!("pay_{}", 900_007 - n);
        let seed = Seed::captured("order_id", &tag, 70 + n, "eur").created_at(now - 60);
        let (kind, id) = (SeedKind::Refund, Some(format!("re_{n}")));
        shop.plant(vec![Seed { kind, id, ..seed }]);
        let sql = format!(
            "insert into refunds (id, status, cents, made) values ({}, 'done', {}, '{}')",
            900_000 + n,
            70 + n,
            at_text(now - 61)
        );
        shop.raw.execute(&sql).await;
    }
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "foreign_tags");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    assert!(text.starts_with("refunds carry their payments' tags: of 6 of 6 "), "{text}");
    assert!(next.starts_with("let refunds carry the tags of their own rows"), "{next}");
    has_none(&ran, "amounts_differ");
}

/// Of one amount, and made before the rows whose tags they have.
async fn refunds_that_were_made_before_their_rows_are_told(engine: Engine) {
    let back = BACK.replace("refund-{id}", "pay_{id}").replace("\"major\"", "\"minor\"");
    let mut shop = healthy(engine, Words { more: back, ..Words::default() }).await;
    let now = tieout_now();
    for n in 1..=6 {
        let tag = format!("pay_{}", 900_000 + n);
        let seed = Seed::captured("order_id", &tag, 70, "eur").created_at(now - 300 - 30 * n);
        let (kind, id) = (SeedKind::Refund, Some(format!("re_{n}")));
        shop.plant(vec![Seed { kind, id, ..seed }]);
        let sql = format!(
            "insert into refunds (id, status, cents, made) values ({}, 'done', 70, '{}')",
            900_000 + n,
            at_text(now - 61)
        );
        shop.raw.execute(&sql).await;
    }
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "times_differ");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    let said = "6 of 6 objects, refunds, were made before the rows of refunds whose tags they have";
    assert!(text.starts_with(said), "{text}");
    assert!(next.starts_with("let refunds carry the tags of their own rows"), "{next}");
    // What a row stores is its own, whenever it was made.
    shop.raw.execute("update refunds set re_id = 're_' || (id - 900000)").await;
    has_none(&doctor(&shop).await, "times_differ");
}

/// What rows say of their times is held against when their objects were made.
async fn a_zone_that_is_wrong_is_told_by_when_objects_were_made(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("alter table payments add column made_at timestamp").await;
    let off_by = async |hours: i64| {
        let sql = match engine {
            Engine::Sqlite => format!("datetime(created_at, '{hours:+} hours')"),
            Engine::Postgres => format!("created_at at time zone 'utc' + interval '{hours} hours'"),
        };
        shop.raw.execute(&format!("update payments set made_at = {sql}")).await;
    };
    off_by(0).await;
    rewrite(&shop, "created = \"created_at\"", "created = \"made_at\"\ntime = \"utc\"");
    assert_eq!(finding(&doctor(&shop).await, "agreement").1, "ok");

    // Rows that look younger than what was made after them.
    off_by(2).await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "time_zone");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    let said = "made_at looks +2 h off: 30 of 30 rows of payments are 2 h younger than their \
                objects: `9000";
    assert!(text.starts_with(said), "{text}");
    let set = "set time of [[table]] payments to the zone that made_at is written in, ";
    assert_eq!(next, format!("{set}UTC+02:00 by these rows"));
    has_none(&ran, "agreement");
    rewrite(&shop, "time = \"utc\"", "time = \"Africa/Johannesburg\"");
    has_none(&doctor(&shop).await, "time_zone");

    // Rows that look older: while the last send is known, no payment is missed.
    off_by(0).await;
    rewrite(&shop, "time = \"Africa/Johannesburg\"", "time = \"Asia/Tokyo\"");
    has_none(&doctor(&shop).await, "time_zone");
    rewrite(&shop, "attempted = \"attempted_at\"", "attempts = \"once\"");
    let ran = doctor(&shop).await;
    let (_, state, text, next) = finding(&ran, "time_zone");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)));
    assert!(text.starts_with("made_at looks -9 h off: 30 of 30 rows"), "{text}");
    assert!(text.ends_with("may be missed, and its row charged again"), "{text}");
    assert!(next.starts_with("set time = \"utc\" in [[table]] payments; or, "), "{next}");
    // Nothing tells of sends, and so no absence is proven.
    rewrite(&shop, "attempts = \"once\"\n", "");
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "time_zone").1.as_str(), ran.code), ("warn", Some(0)));
}

/// An object that a call made long after the last send that its row tells of.
async fn payments_made_long_after_the_last_send_are_told(engine: Engine) {
    let mut shop = healthy(engine, Words::default()).await;
    let unsaid = Payment { status: "paid", attempted: Some(30 * 60), ..Payment::stuck(7) };
    shop.plant(vec![unsaid.captured().created_at(tieout_now() - 60)]);
    shop.insert(&[unsaid]).await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "times_differ");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    let said = "1 of 31 objects were made more than 1s after the last send of their rows of \
                payments, as attempted_at tells it: `7` ";
    assert!(text.starts_with(said), "{text}");
    assert!(next.contains("written before every send"), "{next}");
    // An object of long before its row is no call's of it.
    shop.raw.execute("delete from payments where id = 7").await;
    let reused = Payment { status: "paid", age: 90, attempted: Some(80), ..Payment::stuck(8) };
    shop.plant(vec![reused.captured().created_at(tieout_now() - 50 * 60)]);
    shop.insert(&[reused]).await;
    let (_, state, text, _) = finding(&doctor(&shop).await, "times_differ");
    assert_eq!(state, "warn");
    let said = "1 of 31 objects are more than 30min older than their rows of payments: `8` ";
    assert!(text.starts_with(said), "{text}");
}

/// Words that are mapped the wrong way round would be written the wrong way round.
async fn statuses_that_are_swapped_are_told_by_what_was_captured(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    let right = "succeeded = \"paid\", failed = \"failed\"";
    let swapped = "succeeded = \"failed\", failed = \"paid\"";
    rewrite(&shop, right, swapped);
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "status_swapped");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    let said = "30 of 30 rows of payments whose money was captured stand at values that \
                [[table.map]] has for unpaid ones, and 0 at one for succeeded: `9000";
    assert!(text.starts_with(said), "{text}");
    assert!(text.contains("is `paid`, which it calls failed, and pi_9000"), "{text}");
    assert!(next.contains("are succeeded and failed swapped?"), "{next}");
    has_none(&ran, "agreement");
    // Some that were given up and paid late say nothing of the mapping.
    rewrite(&shop, swapped, right);
    let some = "update payments set status = 'failed' where id < 900010";
    shop.raw.execute(some).await;
    let ran = doctor(&shop).await;
    has_none(&ran, "status_swapped");
    assert_eq!((finding(&ran, "agreement").1.as_str(), ran.code), ("ok", Some(0)));
    // Nor do rows that are stuck.
    shop.raw.execute("update payments set status = 'processing' where id >= 900002").await;
    has_none(&doctor(&shop).await, "status_swapped");
}

/// Paid two days ago, with the objects that say so.
async fn paid_long_ago(shop: &mut Shop, status: &'static str) {
    let row =
        |id| Payment { status, age: 3 * 86_400, attempted: Some(2 * 86_400), ..Payment::stuck(id) };
    let rows: Vec<Payment> = (1..=4).map(row).collect();
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop.insert(&rows).await;
}

/// Paid rows that the mapping calls processing would be taken for stuck ones.
async fn paid_rows_that_are_mapped_as_processing_are_told(engine: Engine) {
    let mut shop = healthy(engine, Words::default()).await;
    paid_long_ago(&mut shop, "paid").await;
    has_none(&doctor(&shop).await, "status_swapped");
    let right = "from = [\"processing\"], succeeded = \"paid\"";
    let swapped = "from = [\"paid\"], succeeded = \"processing\"";
    rewrite(&shop, right, swapped);
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "status_swapped");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    let said = "`paid` is mapped as processing: 4 of 4 rows of payments whose money was captured \
                over a day ago stand at values of from, and none at one for succeeded: `";
    assert!(text.starts_with(said), "{text}");
    assert!(next.contains("are from and succeeded swapped?"), "{next}");
    // Rows that a worker left for days are stuck; others were paid since.
    rewrite(&shop, swapped, right);
    shop.raw.execute("update payments set status = 'processing' where id <= 4").await;
    has_none(&doctor(&shop).await, "status_swapped");
    // Where none was, it may be either.
    shop.raw.execute("delete from payments where status = 'paid'").await;
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "status_swapped");
    assert_eq!(state, "warn", "{text}");
    assert!(text.starts_with("`processing` is mapped as processing: 4 of 4 rows"), "{text}");
}

/// No captured object tells of failed rows: the words do.
async fn failed_rows_that_are_mapped_as_processing_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    let right = "from = [\"processing\"], succeeded = \"paid\", failed = \"failed\"";
    rewrite(&shop, right, "from = [\"failed\"], succeeded = \"paid\", failed = \"processing\"");
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "status_swapped");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    let said = "`failed` is mapped as processing in payments, and `processing` as failed; ";
    assert!(text.starts_with(said), "{text}");
    assert!(next.contains("are from and failed swapped?"), "{next}");
}

/// Rows at a word that nothing calls a success are not held to be paid.
async fn a_word_of_success_that_is_ignored_is_told(engine: Engine) {
    let words = Words { ignore: vec!["new", "cart", "settled"], ..Words::default() };
    let mut shop = healthy(engine, words).await;
    paid_long_ago(&mut shop, "settled").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "success_word");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    let said = "4 of 4 rows of payments whose money was captured over a day ago stand at \
                `settled`, which is ignored: `";
    assert!(text.starts_with(said), "{text}");
    assert!(next.ends_with("succeeded = [\"settled\"]"), "{next}");
    // Money that went back is no success.
    shop.raw.execute("update payments set status = 'refunded' where id <= 4").await;
    has_none(&doctor(&shop).await, "success_word");
    shop.raw.execute("update payments set status = 'settled' where id <= 4").await;
    let ignored = "ignore = [\"new\", \"cart\", \"settled\"]";
    rewrite(&shop, ignored, "ignore = [\"new\", \"cart\"]\nsucceeded = [\"settled\"]");
    has_none(&doctor(&shop).await, "success_word");
}

/// Rows that store what they were paid by show by its tag whether theirs is the right one.
async fn tags_of_a_wrong_column_are_told_by_what_was_captured(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("update payments set note = 'x' || id").await;
    rewrite(&shop, "tag = \"pay_{id}\"", "tag = \"{note}\"");
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "tag_differs");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "fail", Some(10)));
    let said = "the tags of 30 of 30 rows of payments are not those of the payments that they \
                store: the tag of `9000";
    assert!(text.starts_with(said), "{text}");
    assert!(text.contains(" carries `pay_9000"), "{text}");
    assert!(next.starts_with("set tag of [[table]] payments to what"), "{next}");
    // Some were sent before the tag was what it is now.
    shop.raw.execute("update payments set note = 'pay_' || id where id >= 900020").await;
    has_none(&doctor(&shop).await, "tag_differs");
}

/// A column that no send is written to proves nothing of a row's absence.
async fn a_last_attempt_that_nobody_writes_is_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("update payments set attempted_at = null").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "attempted_empty");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    let said = "30 of 30 rows of payments whose money was captured have no attempted_at, `9000";
    assert!(text.starts_with(said), "{text}");
    assert!(next.starts_with("map attempted of [[table]] payments to a column"), "{next}");
    shop.raw.execute("update payments set attempted_at = created_at where id < 900020").await;
    has_none(&doctor(&shop).await, "attempted_empty");
    // A mapping that names no such column promises nothing.
    shop.raw.execute("update payments set attempted_at = null").await;
    rewrite(&shop, "attempted = \"attempted_at\"", "attempts = \"once\"");
    has_none(&doctor(&shop).await, "attempted_empty");
}

/// A column that is no reference, and rows that nobody can read, are told before they are stuck.
async fn references_and_rows_that_are_of_no_use_are_told(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    shop.raw.execute("update payments set psp_ref = 'x' || id where id = 900003").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "reference_differs");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    let said = "psp_ref of 1 of 30 rows of payments is none of the ids of what they were paid by: \
                `900003` has `x900003`, and pi_900003 was captured; ";
    assert!(text.starts_with(said), "{text}");
    assert!(next.starts_with("map psp_reference of [[table]] payments to"), "{next}");
    shop.raw.execute("update payments set psp_ref = 'x' || id").await;
    let ran = doctor(&shop).await;
    let (_, state, text, _) = finding(&ran, "reference_differs");
    assert_eq!((state.as_str(), ran.code), ("fail", Some(10)));
    assert!(text.starts_with("psp_ref of 30 of 30 rows"), "{text}");
    shop.raw.execute("update payments set psp_ref = null").await;
    has_none(&doctor(&shop).await, "reference_differs");

    shop.raw.execute("alter table payments add column movement text default 'odd'").await;
    shop.raw.execute("update payments set movement = 'purchase' where id <> 900003").await;
    let account = "account = [\"account\"]";
    let kinds = "kind = { column = \"movement\", values = { purchase = \"charge\" } }";
    rewrite(&shop, account, &format!("{account}\n{kinds}"));
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "rows_unreadable");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("shop", "warn", Some(0)));
    let said = "1 of 30 rows of payments whose money was captured cannot be read: `900003`, kind: \
                the mapping has no kind for `odd`; ";
    assert!(text.starts_with(said), "{text}");
    assert!(next.starts_with("correct kind in [[table]] payments"), "{next}");
    // No run looks at a row that `where` leaves out.
    let left_out = format!("{kinds}\nwhere = [{{ column = \"movement\", not_in = [\"odd\"] }}]");
    rewrite(&shop, kinds, &left_out);
    has_none(&doctor(&shop).await, "rows_unreadable");
    rewrite(&shop, &left_out, kinds);
    shop.raw.execute("update payments set movement = 'odd'").await;
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "rows_unreadable").1.as_str(), ran.code), ("fail", Some(10)));
}

/// A run refuses as `config check --connect` does, before it looks at a row, and writes nothing.
async fn a_run_is_refused(shop: &Shop, said: &str) {
    shop.insert(&[Payment::stuck(1)]).await;
    for words in [&["run"][..], &["run", "--dry-run"][..]] {
        let ran = shop.tieout(words).await.ended(10);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert!(ran.stderr.contains("nothing was done"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: correct "), "{}", ran.stderr);
    }
    assert_eq!([shop.count("tieout_runs").await, shop.count("tieout_checks").await], [0, 0]);
    shop.raw.execute("delete from payments where id = 1").await;
}

/// A column whose values say nothing of what it is mapped to would make a case of every row.
async fn columns_without_one_value_of_use_are_refused(engine: Engine) {
    let shop = healthy(engine, Words::default()).await;
    let connect = ["config", "check", "--connect"];
    shop.raw.execute("update payments set note = 'a lot ' || id").await;
    rewrite(&shop, "column = \"amount\", unit", "column = \"note\", unit");
    let ran = shop.tieout(&connect).await.ended(10);
    let said = "none of 20 looked-at values of note is a number, `a lot 9000";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let (what, state, _, next) = finding(&doctor(&shop).await, "values_unreadable");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "fail"));
    assert_eq!(next, "correct amount in [[table]] payments");
    a_run_is_refused(&shop, "payments: none of 20 looked-at values of note is a number").await;
    // One number among them, and it may be the others that are odd.
    shop.raw.execute("update payments set note = '7' where id >= 900003").await;
    shop.tieout(&connect).await.ended(0);
    shop.tieout(&["run"]).await.ended(0);
    rewrite(&shop, "column = \"note\", unit", "column = \"amount\", unit");

    // A key that is read as seconds lies in 1970.
    let (created, attempted) = ("created = \"created_at\"", "attempted = \"attempted_at\"");
    rewrite(&shop, attempted, "attempts = \"once\"");
    rewrite(&shop, created, "created = \"id\"\ntime = \"epoch_s\"");
    let ran = shop.tieout(&connect).await.ended(10);
    let said = "looked-at values of id is a time of a payment, `9000";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// SQLite keeps what it is given: what PostgreSQL refuses by type is told by values there.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_shows_by_its_values_what_its_types_do_not() {
    let shop = healthy(Engine::Sqlite, Words::default()).await;
    let connect = ["config", "check", "--connect"];
    shop.raw.execute("update payments set order_no = 'no ' || id").await;
    rewrite(&shop, "created = \"created_at\"", "created = \"order_no\"");
    let ran = shop.tieout(&connect).await.ended(10);
    let said = "none of 20 looked-at values of order_no is a time of a payment, `no 9000";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    a_run_is_refused(&shop, said).await;
    // A zone is all that these lack: the column is right.
    let clock = "update payments set order_no = '2025-11-19 10:01:' || substr(id % 60 + 100, 2)";
    shop.raw.execute(clock).await;
    let ran = shop.tieout(&connect).await.ended(10);
    let said = "looked-at values of order_no is a time with its zone, `2025-11-19 10:01:";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let (.., next) = finding(&doctor(&shop).await, "values_unreadable");
    assert!(next.starts_with("set `time` in [[table]]: \"utc\", or"), "{next}");
    rewrite(&shop, "created = \"order_no\"", "created = \"created_at\"");
    rewrite(&shop, "status = \"status\"", "status = \"created_at\"");
    let ran = shop.tieout(&connect).await.ended(10);
    let said = "status: column `created_at` is timestamptz; expected a column of text, whole";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// SQLite knows no key of a view: whether a trigger writes through it or nothing does, the table
/// that is written is to be named.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_in_a_file_is_refused_without_its_table() {
    let shop = healthy(Engine::Sqlite, Words::default()).await;
    shop.insert(&[Payment::stuck(7)]).await;
    shop.raw.execute("create view seen as select * from payments").await;
    rewrite(&shop, "read = \"payments\"", "read = \"seen\"");
    let by_trigger = "create trigger through instead of update on seen begin \
                      update payments set status = new.status where id = old.id; end";
    let (problem, expected) =
        ("key: (id) is no unique key of ", "expected the base table in `write`");
    for (sql, is_written) in [("select 1", false), (by_trigger, true)] {
        shop.raw.execute(sql).await;
        for command in [&["config", "check", "--connect"][..], &["run"], &["run", "--dry-run"]] {
            let said = shop.tieout(command).await.ended(10).stderr;
            assert!(said.contains(problem) && said.contains(expected), "{command:?}: {said}");
            let is_told = said.contains("is a view that the database cannot write through");
            assert_eq!(is_told, !is_written, "{command:?}: {said}");
        }
        let found = of_code(&doctor(&shop).await, "mapping");
        let texts: Vec<&str> = found.iter().filter_map(|check| check["text"].as_str()).collect();
        let is_it = |text: &&str| text.starts_with(problem) && text.contains(expected);
        assert_eq!(texts.iter().filter(|text| is_it(text)).count(), 1, "{texts:?}");
    }
    assert_eq!(shop.status(7).await, "processing");
    rewrite(&shop, "read = \"seen\"", "read = \"seen\"\nwrite = \"payments\"");
    shop.tieout(&["config", "check", "--connect"]).await.ended(0);
}

/// Whoever has rows that files alone tell of has no key to be asked for.
async fn an_account_of_files_alone_is_not_asked(engine: Engine) {
    let words = Words {
        accounts: ", bank = \"bank\"",
        more: "[[account]]\nname = \"bank\"\npsp = \"files\"\nmode = \"full\"\nlivemode = true\n"
            .to_owned(),
        ..Words::default()
    };
    let shop = healthy(engine, words).await;
    let ran = doctor(&shop).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let accounts = of_code(&ran, "account");
    let told: Vec<String> =
        accounts.iter().map(|check| format!("{} {}", check["what"], check["state"])).collect();
    assert_eq!(told, ["\"bank\" \"ok\"", "\"shop\" \"ok\""]);
    assert_eq!(accounts[0]["text"], "files only; no API is asked");
    has_none(&ran, "no_key");
}

on_both_databases!(
    statuses_that_are_swapped_are_told_by_what_was_captured,
    paid_rows_that_are_mapped_as_processing_are_told,
    failed_rows_that_are_mapped_as_processing_are_told,
    refunds_that_were_made_before_their_rows_are_told,
    a_word_of_success_that_is_ignored_is_told,
    tags_of_a_wrong_column_are_told_by_what_was_captured,
    a_view_that_hides_rows_that_ignore_names_is_refused,
    a_last_attempt_that_nobody_writes_is_told,
    references_and_rows_that_are_of_no_use_are_told,
    columns_without_one_value_of_use_are_refused,
    an_account_of_files_alone_is_not_asked,
    a_healthy_shop_is_told_line_by_line_and_left_as_it_was,
    a_unit_that_is_wrong_is_told_by_what_was_captured,
    refunds_are_compared_with_the_rows_of_refunds,
    refunds_under_their_payments_tags_are_told,
    a_zone_that_is_wrong_is_told_by_when_objects_were_made,
    payments_made_long_after_the_last_send_are_told,
    stuck_rows_without_a_key_are_told,
    a_view_that_hides_rows_by_their_status_is_refused,
    a_worker_that_no_status_tells_is_told_of,
    times_that_no_payment_has_are_told,
    stuck_rows_of_read_are_held_against_those_of_write,
    an_index_that_the_claim_lacks_is_written_out_and_serves,
    what_stands_on_the_table_is_found,
    a_status_that_its_table_of_words_lacks_is_told,
    a_second_table_is_held_against_its_check_and_the_first_one,
    rows_that_nothing_leads_to_are_counted,
    tags_that_look_like_card_numbers_are_told_where_files_decide,
    an_account_that_does_not_serve_is_told_with_its_exit,
    an_account_without_objects_and_a_pause_are_told,
    tags_without_an_index_are_said_to_be_not_looked_up,
    rows_of_other_psps_in_a_table_of_one_account_are_told,
    a_value_whose_paid_rows_the_account_does_not_know_is_told,
    rows_of_other_kinds_in_a_table_of_one_kind_are_told,
    a_word_of_from_that_no_row_has_is_told,
    odd_names_and_flags_tell_rows_of_other_psps_and_kinds,
    columns_that_tell_refunds_are_told_with_what_to_write,
    rows_that_two_mappings_take_are_told,
    a_target_that_no_row_has_is_told,
    stuck_rows_that_where_leaves_out_are_told,
    amounts_that_are_kept_as_floats_are_told,
    a_word_of_success_of_an_outbox_table_is_asked_for,
    a_column_without_room_for_an_id_is_told_at_the_start,
    what_the_database_refuses_ends_nothing_else,
    what_stands_in_the_way_of_reports_is_named_alike,
);

/// Whoever switches a trigger off takes the journal's guard away.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_of_the_journal_that_is_off_or_gone_is_told() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    has_none(&doctor(&shop).await, "guard_off");
    shop.raw.execute("alter table tieout_journal disable trigger user").await;
    shop.raw.execute("drop trigger tieout_evidence_no_delete on tieout_evidence").await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "guard_off");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("role", "fail", Some(10)));
    for part in [
        "tieout_evidence_no_delete of tieout_evidence",
        "tieout_journal_append_only of tieout_journal",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(next.contains("\nalter table tieout_journal enable trigger user;"), "{next}");
    has_none(&ran, "role");
    // An owner need be no superuser, and have another search path.
    let owner = format!("t_{}", uuid::Uuid::now_v7().simple());
    let statements = next.split_once('\n').unwrap().1;
    shop.raw
        .execute(&format!(
            "create role {owner}; alter table tieout_journal owner to {owner}; \
             alter table tieout_evidence owner to {owner}; \
             set role {owner}; set search_path = pg_catalog; {statements} \
             reset role; reset search_path; \
             reassign owned by {owner} to current_user; drop owned by {owner}; drop role {owner}"
        ))
        .await;
    has_none(&doctor(&shop).await, "guard_off");
}

/// Foreign keys are held by triggers of PostgreSQL's own, which a superuser alone may switch.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_foreign_keys_are_off_too_is_told() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    shop.raw.execute("alter table tieout_case_notes disable trigger all").await;
    let (.., text, next) = finding(&doctor(&shop).await, "guard_off");
    assert!(text.contains("RI_ConstraintTrigger_"), "{text}");
    assert!(next.contains("enable trigger all; -- by a superuser"), "{next}");
    shop.raw.execute(next.split_once('\n').unwrap().1).await;
    has_none(&doctor(&shop).await, "guard_off");
}

/// What is printed is carried out once, from above.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_is_gone_with_its_function_is_told_function_first() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    shop.raw.execute("drop function tieout_append_only() cascade").await;
    let ran = doctor(&shop).await;
    has_none(&ran, "guard_altered");
    let (.., next) = finding(&ran, "guard_off");
    let statements = next.split_once('\n').unwrap().1;
    shop.raw.execute(&format!("set search_path = pg_catalog; {statements}")).await;
    let ran = doctor(&shop).await;
    has_none(&ran, "guard_off");
    has_none(&ran, "guard_altered");
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

/// Whoever puts another function in the place of one leaves the trigger standing.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_is_another_one_is_told_with_the_statement_that_mends_it() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    for (tampering, part) in [
        (
            "create or replace function tieout_unless_pruned() returns trigger language plpgsql \
             as $$ begin return new; end $$",
            "tieout_unless_pruned",
        ),
        (
            "create or replace function tieout_may_speak_for_run(home text, run text) \
             returns boolean language plpgsql as $$ begin return true; end $$",
            "tieout_may_speak_for_run",
        ),
        (
            "drop trigger tieout_runs_closed on tieout_runs; \
             create function let_pass() returns trigger language plpgsql \
             as $$ begin return new; end $$; \
             create trigger tieout_runs_closed before update on tieout_runs \
             for each row execute function let_pass()",
            "tieout_runs_closed of tieout_runs calls let_pass",
        ),
        (
            "drop trigger tieout_runs_closed on tieout_runs; \
             create trigger tieout_runs_closed before update on tieout_runs \
             for each row when (false) execute function tieout_closed_run_guard()",
            "tieout_runs_closed of tieout_runs fires at something else",
        ),
        (
            "drop trigger tieout_journal_no_delete on tieout_journal; \
             create trigger tieout_journal_no_delete after delete on tieout_journal \
             for each row execute function tieout_unless_pruned()",
            "tieout_journal_no_delete of tieout_journal fires at something else",
        ),
        (
            "drop trigger tieout_evidence_append_only on tieout_evidence; \
             create trigger tieout_evidence_append_only before insert on tieout_evidence \
             for each row execute function tieout_append_only()",
            "tieout_evidence_append_only of tieout_evidence fires at something else",
        ),
        (
            "drop trigger tieout_journal_append_only on tieout_journal; \
             create trigger tieout_journal_append_only before update of at on tieout_journal \
             for each row execute function tieout_append_only()",
            "tieout_journal_append_only of tieout_journal fires at something else",
        ),
        (
            "alter function tieout_closed_run_guard() security definer",
            "tieout_closed_run_guard runs as its owner",
        ),
        (
            "alter function tieout_closed_run_guard() reset search_path",
            "tieout_closed_run_guard has other settings",
        ),
    ] {
        has_none(&doctor(&shop).await, "guard_altered");
        shop.raw.execute(tampering).await;
        let ran = doctor(&shop).await;
        let (what, state, text, next) = finding(&ran, "guard_altered");
        assert_eq!((what.as_str(), state.as_str(), ran.code), ("role", "fail", Some(10)));
        assert!(text.contains(&format!("made it: {part};")), "{text}");
        has_none(&ran, "role");
        // The owner's search path may lead to another schema.
        let statements = next.split_once('\n').unwrap().1;
        shop.raw.execute(&format!("set search_path = pg_catalog; {statements}")).await;
    }
    let ran = doctor(&shop).await;
    has_none(&ran, "guard_altered");
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

/// SQLite keeps its guards in the file, where each program that opens it may take them away.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_of_a_file_that_is_gone_or_another_one_is_told() {
    let shop = healthy(Engine::Sqlite, Words::default()).await;
    let gone = "drop trigger tieout_evidence_no_update";
    let altered = "drop trigger tieout_journal_no_update; \
                   create trigger tieout_journal_no_update before update on tieout_journal \
                   begin select 1; end";
    for (tampering, code, part) in [
        (gone, "guard_off", "gone: tieout_evidence_no_update of tieout_evidence;"),
        (altered, "guard_altered", "made it: tieout_journal_no_update;"),
    ] {
        has_none(&doctor(&shop).await, code);
        shop.raw.execute(tampering).await;
        let ran = doctor(&shop).await;
        let (what, state, text, next) = finding(&ran, code);
        assert_eq!((what.as_str(), state.as_str(), ran.code), ("role", "fail", Some(10)));
        assert!(text.contains(part) && !next.contains("alter table"), "{text} {next}");
        shop.raw.execute(next.split_once('\n').unwrap().1).await;
    }
    let ran = doctor(&shop).await;
    has_none(&ran, "guard_off");
    has_none(&ran, "guard_altered");
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

/// As the applier of a replica, a session fires no trigger that nobody asks of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_whose_sessions_fire_no_trigger_is_told() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    has_none(&doctor(&shop).await, "guard_silenced");
    let silence = "do $$ begin execute format('alter database %I set \
                   session_replication_role = replica', current_database()); end $$";
    shop.raw.execute(silence).await;
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "guard_silenced");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("role", "fail", Some(10)));
    assert!(text.contains("session_replication_role is replica"), "{text}");
    assert!(next.starts_with("alter database "), "{next}");
    shop.raw.execute(&next).await;
    has_none(&doctor(&shop).await, "guard_silenced");
}

/// Where `db roles --prefix` made the roles, they have other names.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_of_another_prefix_is_named_as_it_is_called() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "create role {role} login; create role {role}_run nologin; \
             grant select on all tables in schema public to {role}; \
             grant insert on tieout_journal to {role}_run"
        ))
        .await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let (.., next) = finding(&doctor(&shop).await, "rights_missing");
    assert!(next.starts_with(&format!("tieout db roles --prefix {role} | psql")), "{next}");
    assert!(next.ends_with(&format!("grant {role}_run to \"{role}\";")), "{next}");
    shop.raw
        .execute(&format!(
            "drop owned by {role}, {role}_run; drop role {role}; drop role {role}_run"
        ))
        .await;
}

/// A role that can only read sees every line, and what it lacks; one that may change the journal
/// is told so; what doctor prints mends both.
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_of_a_role_are_told_with_the_statements_that_mend_them() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "create role {role} login; grant select on all tables in schema public to {role}; \
             grant update (status, psp_ref, updated_at) on payments to {role}"
        ))
        .await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let ran = doctor(&shop).await;
    assert_eq!(ran.code, Some(10), "{}", ran.stdout);
    // Where most of it is missing, the roles are shorter than the rights.
    let (what, _, text, next) = finding(&ran, "rights_missing");
    let most = format!("{role} lacks most of what a run needs (insert on ");
    assert!(what == "role" && text.starts_with(&most) && text.len() < 140, "{text}");
    assert!(next.starts_with("tieout db roles | psql -v ON_ERROR_STOP=1 "), "{next}");
    assert!(next.ends_with(&format!("grant tieout_run to \"{role}\";")), "{next}");
    for code in ["table", "witness", "disk", "account"] {
        assert_eq!(finding(&ran, code).1, "ok", "{}", ran.stdout);
    }
    shop.raw.execute(&format!("grant insert on all tables in schema public to {role}")).await;
    let (.., text, grant) = finding(&doctor(&shop).await, "rights_missing");
    assert!(text.contains("lacks update (state, ") && text.contains(" on tieout_runs"), "{text}");
    shop.raw.execute(&grant).await;
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "role").1.as_str(), ran.code), ("ok", Some(0)), "{}", ran.stdout);
    shop.insert(&[Payment::stuck(1)]).await;
    shop.tieout(&["run", "--id", "1"]).await.ended(0);
    shop.raw
        .execute(&format!(
            "grant delete on tieout_journal to {role}; \
             grant update on tieout_journal, tieout_evidence to {role}; \
             create role {role}_group; grant {role}_group to {role}; \
             grant truncate on tieout_journal to {role}_group; \
             grant delete on tieout_cases to public"
        ))
        .await;
    let ran = doctor(&shop).await;
    let (.., text, revoke) = finding(&ran, "rights_excess");
    let rights = "can delete on tieout_cases, tieout_journal; update on tieout_evidence, \
                  tieout_journal; truncate on tieout_journal";
    assert!(text.ends_with(rights), "{text}");
    assert_eq!(ran.code, Some(10));
    shop.raw.execute(&revoke).await;
    has_none(&doctor(&shop).await, "rights_excess");
    let roles = format!("{role}, {role}_group");
    shop.raw.execute(&format!("drop owned by {roles}; drop role {roles}")).await;
}

/// A shop whose own tables are to be in a schema of theirs, read by a login that may not look into
/// it, and a role for runs without a right.
async fn closed_to_a_login() -> (Shop, String) {
    let words = Words { database_more: "search_path = \"tt, public\"", ..Words::default() };
    let mut shop = Shop::open_bare(Engine::Postgres, words).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "create schema tt; create role {role} login; create role {role}_run nologin; \
             grant select, update on payments to {role}"
        ))
        .await;
    shop.background(30).await;
    (shop, role)
}

async fn drop_both(shop: &Shop, role: &str) {
    let drop = format!("drop owned by {role}, {role}_run; drop role {role}; drop role {role}_run");
    shop.raw.execute(&drop).await;
}

/// Before there is anything that it could have a right to, nobody can say that a role has all.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_role_may_do_is_not_told_before_the_tables_are_made() {
    let (shop, role) = closed_to_a_login().await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let ran = doctor(&shop).await;
    let untold = of_code(&ran, "untold");
    let told = untold.iter().find(|found| found["what"] == "role").unwrap();
    assert_eq!(told["state"], "warn", "{told}");
    let text = told["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("whether {role} may do what a run needs cannot")), "{told}");
    assert!(text.ends_with("be told yet: tieout's tables are not made yet"), "{told}");
    assert_eq!(told["next"], "tieout db migrate, then tieout doctor");
    has_none(&ran, "role");
    drop_both(&shop, &role).await;
}

/// A server passes over a schema that a login may not look into: no line takes that for tables that
/// are not made, or for a role that may do all.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_may_not_look_into_the_schema_is_told_so_by_every_line() {
    let (shop, role) = closed_to_a_login().await;
    shop.tieout(&["db", "migrate"]).await.ended(0);
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let ran = doctor(&shop).await;
    let (_, state, text, next) = finding(&ran, "database_refused");
    assert!(state == "fail" && text.ends_with("permission denied for schema tt"), "{text}");
    let says = format!("the schema's owner says `grant usage on schema tt to {role}`, or, ");
    assert!(next.starts_with(&says), "{next}");
    let (what, state, text, grant) = finding(&ran, "rights_missing");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("role", "fail", Some(12)));
    assert!(text.starts_with(&format!("{role} lacks usage on schema tt: ")), "{text}");
    assert_eq!(grant, format!("grant usage on schema tt to \"{role}\";"));
    has_none(&ran, "role");
    for wrong in ["db migrate", "not made yet"] {
        assert!(!ran.stdout.contains(wrong), "{wrong}: {}", ran.stdout);
    }
    let untold = of_code(&ran, "untold");
    let told = untold.iter().find(|found| found["what"] == "shop").unwrap();
    let why = "told: reading the schema's number failed: permission denied for schema tt";
    assert!(told["text"].as_str().unwrap().ends_with(why), "{told}");
    assert_eq!(told["next"], "tieout doctor, after what stands above");
    for (words, code) in [(&["run"][..], 12), (&["config", "check", "--connect"], 0)] {
        let ran = shop.tieout(words).await.ended(code);
        let said = format!("{} {}", ran.stdout, ran.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("permission denied for schema tt"), "{said}");
        assert!(said.contains(&says) && !said.contains("migrate"), "{said}");
        let is_warned = said.contains("every mapping fits the database database: warn: ");
        assert_eq!(is_warned, code == 0, "{said}");
    }
    // Where the role for runs is made, it has this right among the others.
    shop.raw
        .execute(&format!(
            "grant usage on schema tt to {role}_run; \
             grant select, insert on tt.tieout_journal to {role}_run"
        ))
        .await;
    let (.., next) = finding(&doctor(&shop).await, "rights_missing");
    let made = format!("{grant} or, with all that a run needs, grant {role}_run to \"{role}\";");
    assert_eq!(next, made);
    let ran = shop.tieout(&["run"]).await.ended(12);
    assert!(ran.stderr.contains(&format!("`grant {role}_run to {role}`")), "{}", ran.stderr);
    shop.raw.execute(&grant).await;
    let (.., text, _) = finding(&doctor(&shop).await, "rights_missing");
    assert!(text.starts_with(&format!("{role} lacks most of what a run needs (")), "{text}");
    drop_both(&shop, &role).await;
}

/// Rights by column: what of the mapping cannot be read is named, and nothing else is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_mapped_column_that_the_login_may_not_read_is_named() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "alter table payments add column version integer; \
             create role {role} login; grant select on all tables in schema public to {role}; \
             revoke select on payments from {role}; \
             grant select (id, order_no, account, status, amount, currency, created_at, \
                 attempted_at, attempt) on payments to {role}; \
             grant update (status, psp_ref, updated_at, version) on payments to {role}"
        ))
        .await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let connect = ["config", "check", "--connect"];
    let mut now = "updated_at = \"{now}\"".to_owned();
    for (column, set) in [("psp_ref", ""), ("version", ", version = \"+1\"")] {
        let before = now.clone();
        now.push_str(set);
        rewrite(&shop, &before, &now);
        let checked = shop.tieout(&connect).await.ended(10);
        let said = checked.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let lacks = format!("this role may not read `{column}` of \"public\".\"payments\"");
        assert!(said.contains(&lacks), "{said}");
        let grant = format!("grant select (\"{column}\") on \"public\".\"payments\"");
        assert!(said.contains(&grant), "{said}");
        let ran = doctor(&shop).await;
        let (what, state, text, _) = finding(&ran, "mapping");
        assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "fail", Some(10)));
        assert!(text.contains(&lacks), "{text}");
        shop.raw.execute(&format!("{grant} to {role}")).await;
        shop.tieout(&connect).await.ended(0);
    }
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

/// The catalogue shows a table to whoever may not look into its schema, and no run can read it. By
/// a name alone, too, though the server passes over such a schema of the search path.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_a_mapped_table_that_the_login_may_not_look_into_is_named() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "create schema bills; alter table payments set schema bills; \
             create schema books; create view books.payments as select * from bills.payments; \
             create role {role} login; \
             grant select, insert, update on all tables in schema public, bills, books to {role}; \
             grant usage on all sequences in schema public to {role}; \
             alter role {role} set search_path = \"$user\", public, bills"
        ))
        .await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let mut read = "\"payments\"".to_owned();
    let connect = ["config", "check", "--connect"];
    for (now, field, closed) in [
        ("\"payments\"", "read", "bills"),
        ("\"bills.payments\"", "read", "bills"),
        ("\"books.payments\"\nwrite = \"bills.payments\"", "read", "books"),
        ("\"books.payments\"\nwrite = \"bills.payments\"", "write", "bills"),
    ] {
        rewrite(&shop, &format!("read = {read}"), &format!("read = {now}"));
        read = now.to_owned();
        let other = if closed == "bills" { "books" } else { "bills" };
        shop.raw
            .execute(&format!(
                "revoke usage on schema {closed} from {role}; \
                 grant usage on schema {other} to {role}"
            ))
            .await;
        let lacks =
            format!("{field}: this role may not look into the schema of \"{closed}\".\"payments\"");
        let grant = format!("grant usage on schema \"{closed}\" to \"{role}\";");
        let ran = doctor(&shop).await;
        let (what, state, text, next) = finding(&ran, "mapping");
        assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "fail", Some(10)));
        assert!(text.contains(&lacks) && text.contains(&grant), "{text}");
        assert!(next.contains("the owner of the tables grants"), "{next}");
        has_none(&ran, "table");
        for words in [&connect[..], &["run"], &["run", "--dry-run"]] {
            let said = shop.tieout(words).await.ended(10).stderr;
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(&lacks) && said.contains(&grant), "{words:?}: {said}");
        }
        shop.raw.execute(&grant).await;
        shop.tieout(&connect).await.ended(0);
    }
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

/// A run that compares such a status ends with an error of the server, whatever its rights are.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_nothing_is_compared_with_is_named() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    shop.raw
        .execute(
            "create type pst as enum \
                 ('new', 'cart', 'processing', 'paid', 'failed', 'retry'); \
             create domain pstd as pst; \
             delete from payments; \
             alter table payments alter status drop default, \
                 alter status type pstd using status::pst",
        )
        .await;
    let says = "`status` is of pstd, a domain over an enum, and PostgreSQL compares no values";
    let (what, state, text, _) = finding(&doctor(&shop).await, "mapping");
    assert_eq!((what.as_str(), state.as_str()), ("payments", "fail"));
    assert!(text.contains(says), "{text}");
    let said = shop.tieout(&["run"]).await.ended(10).stderr;
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(says), "{said}");
}

/// A search path that leads past tieout's schema makes no second set in silence.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_tieout_s_where_the_search_path_does_not_lead_are_told_of() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    shop.raw.execute("create schema other").await;
    rewrite(&shop, "[database]\n", "[database]\nsearch_path = \"other\"\n");
    let (what, state, text, next) = finding(&doctor(&shop).await, "schema_behind");
    assert_eq!((what.as_str(), state.as_str()), ("database", "fail"));
    assert!(text.ends_with("they stand in schema public"), "{text}");
    assert!(next.starts_with("name that schema in search_path of [database]"), "{next}");
    let stand = "tieout's tables stand in schema public, which search_path does not lead to";
    for command in [vec!["run"], vec!["db", "status", "--check"], vec!["cases", "list"]] {
        let refused = shop.tieout(&command).await.ended(15).stderr;
        assert!(refused.contains(&format!("hint: {stand}")), "{command:?}: {refused}");
    }
    let status = shop.tieout(&["db", "status"]).await.ended(0).stdout;
    assert!(status.contains(stand), "{status}");
    let made = shop.tieout(&["db", "migrate"]).await.ended(0).stderr;
    assert!(made.contains("note: schema public has tables of tieout's as well"), "{made}");
    let again = shop.tieout(&["db", "migrate"]).await.ended(0).stderr;
    assert_eq!(again, "");
}

/// What is compared and written is cast to the column's type, whose schema may be another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_a_column_s_type_that_the_login_may_not_look_into_is_named() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "create schema kinds; create domain kinds.word as text; \
             create domain kinds.cents as bigint; \
             alter table payments alter status type kinds.word, alter amount type kinds.cents; \
             create role {role} login"
        ))
        .await;
    let roles = shop.tieout(&["db", "roles", "--prefix", &role]).await.ended(0).stdout;
    let usage = format!("grant usage on schema kinds, public to \"{role}_run\"");
    assert!(roles.contains(&usage), "{roles}");
    shop.raw.execute(&roles).await;
    shop.raw.execute(&format!("grant {role}_run to {role}")).await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let connect = ["config", "check", "--connect"];
    shop.tieout(&connect).await.ended(0);
    shop.raw.execute(&format!("revoke usage on schema kinds from {role}_run")).await;
    let lacks = "this role may not look into the schema of the type of `status` (kinds.word) of \
                 \"public\".\"payments\"";
    let grant = format!("grant usage on schema kinds to \"{role}\";");
    let ran = doctor(&shop).await;
    let (what, state, text, _) = finding(&ran, "mapping");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("payments", "fail", Some(10)));
    assert!(text.contains(lacks) && text.contains(&grant), "{text}");
    for words in [&connect[..], &["run"], &["run", "--dry-run"]] {
        let said = shop.tieout(words).await.ended(10).stderr;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(lacks) && said.contains(&grant), "{words:?}: {said}");
    }
    shop.raw.execute(&grant).await;
    shop.tieout(&["run"]).await.ended(0);
    let all = ["", "_run", "_read", "_people"].map(|of| format!("{role}{of}")).join(", ");
    shop.raw.execute(&format!("drop owned by {all}; drop role {all}")).await;
}

/// Who only looks lacks what a run needs, and needs none of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_for_looking_is_told_as_one() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "create role {role} login; create role {role}_read; grant {role}_read to {role}; \
             grant select on all tables in schema public to {role}_read; \
             grant update (status, psp_ref, updated_at) on payments to {role}"
        ))
        .await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "role_looks");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("role", "warn", Some(0)));
    assert!(text.contains(&format!("is for looking ({role}_read)")), "{text}");
    assert!(next.contains("tieout_run"), "{next}");
    has_none(&ran, "rights_missing");
    has_none(&ran, "role");
    // Without a right to write anything, it is told no more than that.
    let revoke = format!("revoke update (status, psp_ref, updated_at) on payments from {role}");
    shop.raw.execute(&revoke).await;
    let ran = doctor(&shop).await;
    assert_eq!((finding(&ran, "role_looks").1.as_str(), ran.code), ("warn", Some(0)));
    has_none(&ran, "mapping");
    assert_eq!(finding(&ran, "witness").1, "ok", "{}", ran.stdout);
    let connect = ["config", "check", "--connect"];
    let checked = shop.tieout(&connect).await.ended(0);
    let said = checked.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let looks = format!("every mapping fits the database role: warn: {text} → nothing to do");
    assert!(said.contains(&looks), "{said}");
    // One that carries runs out is asked for all of it.
    shop.raw.execute(&format!("grant insert on tieout_journal to {role}")).await;
    let checked = shop.tieout(&connect).await.ended(10);
    assert!(checked.stderr.contains("may not write"), "{}", checked.stderr);
    let ran = doctor(&shop).await;
    assert!(!of_code(&ran, "mapping").is_empty() && ran.code == Some(10), "{}", ran.stdout);
    shop.raw
        .execute(&format!("drop owned by {role}, {role}_read; drop role {role}, {role}_read"))
        .await;
}

/// What doctor prints against row-level security makes every row seen, and what restricts it again
/// is refused again.
#[tokio::test(flavor = "multi_thread")]
async fn policies_that_show_every_row_are_enough() {
    let shop = healthy(Engine::Postgres, Words::default()).await;
    let role = format!("t_{}", uuid::Uuid::now_v7().simple());
    shop.raw
        .execute(&format!(
            "create role {role} login; grant usage on schema public to {role}; \
             grant all on all tables in schema public to {role}; \
             grant all on all sequences in schema public to {role}; \
             alter table payments enable row level security; \
             create policy part on payments for select using (id > 0)"
        ))
        .await;
    rewrite(&shop, "postgres@", &format!("{role}@"));
    let hides = || async {
        let ran = doctor(&shop).await;
        let texts: Vec<String> = of_code(&ran, "mapping")
            .iter()
            .map(|check| check["text"].as_str().unwrap().to_owned())
            .collect();
        texts.into_iter().find(|text| text.contains("row-level security hides rows"))
    };
    let told = hides().await.expect("rows are hidden");
    assert!(told.contains(&format!("`alter role \"{role}\" bypassrls;`")), "{told}");
    let create = told.split('`').find(|part| part.starts_with("create policy")).unwrap();
    // To read them all is not enough for a role that writes.
    shop.raw.execute("create policy readable on payments for select using (true)").await;
    assert!(hides().await.is_some());
    shop.raw.execute(create).await;
    assert_eq!(hides().await, None);
    shop.insert(&[Payment::stuck(1)]).await;
    shop.tieout(&["run", "--id", "1"]).await.ended(0);
    let only = "create policy narrower on payments as restrictive using (id <> 1)";
    shop.raw.execute(only).await;
    assert!(hides().await.is_some());
    shop.raw.execute(&format!("drop owned by {role}; drop role {role}")).await;
}

/// A replica and a pooler in transaction mode are told with the way out; the rest goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_and_a_pooler_are_told_with_the_way_out() {
    let shop = healthy(Engine::Sqlite, Words::default()).await;
    let server = postgres_database().await;
    for (url, part) in [
        (server.replica_url().await, "replica"),
        (server.pgbouncer_url(), "pooler in transaction mode"),
    ] {
        let path = shop.folder().join("tieout.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let line = text.lines().find(|line| line.starts_with("url = ")).unwrap().to_owned();
        std::fs::write(&path, text.replace(&line, &format!("url = \"{url}\""))).unwrap();
        let ran = doctor(&shop).await;
        let (what, state, text, next) = finding(&ran, "database_refused");
        assert_eq!((what.as_str(), state.as_str(), ran.code), ("database", "fail", Some(10)));
        assert!(text.contains(part) && next.contains("[database] url"), "{text}: {next}");
        assert_eq!(finding(&ran, "account").1, "ok");
    }
}

/// A key that everybody reads is told; a pipe to which nobody writes holds nobody up for ever.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_secrets_are_looked_at() {
    let shop = healthy(Engine::Sqlite, Words::default()).await;
    rewrite(&shop, "key_env = \"SHOP_PSP_KEY\"", "key_file = \"psp.key\"");
    let key = shop.folder().join("psp.key");
    std::fs::write(&key, format!("{}\n", shop.words.key)).unwrap();
    let rights = |mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&key, mode).unwrap();
    };
    rights(0o600);
    let ran = doctor(&shop).await;
    has_none(&ran, "secret_open");
    assert_eq!(finding(&ran, "account").1, "ok");
    rights(0o604);
    let ran = doctor(&shop).await;
    let (what, state, text, next) = finding(&ran, "secret_open");
    assert_eq!((what.as_str(), state.as_str(), ran.code), ("secrets", "warn", Some(0)));
    assert!(text.contains("psp.key") && text.contains("account.shop.key_file"), "{text}");
    assert!(next.starts_with("chmod 600 ") && next.ends_with("psp.key"), "{next}");
    std::fs::remove_file(&key).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&key).status().unwrap().success());
    let ran = doctor(&shop).await;
    let (.., text, _next) = finding(&ran, "no_key");
    assert!(text.contains("no regular file") && ran.code == Some(10), "{text}");
    has_none(&ran, "secret_open");
    // What `<(…)` is to a program.
    let to = key.clone();
    let key_text = shop.words.key.clone();
    let writing = std::thread::spawn(move || std::fs::write(to, key_text));
    shop.insert(&[Payment::stuck(1)]).await;
    shop.run().await.ended(0);
    writing.join().unwrap().unwrap();
}

/// Who is never told of a run cannot know it: a run with all of them is as silent as a good one.
#[tokio::test(flavor = "multi_thread")]
async fn receivers_that_can_never_be_told_are_told() {
    let more = r#"
[monitoring]
healthcheck = { url_env = "PING_URL" }
prometheus = { textfile = "metrics/{scope}.prom" }
[[monitoring.alert]]
name = "hook"
kind = "webhook"
url = "https://hooks.example/tieout"
key_env = "HOOK_KEY"
[[monitoring.alert]]
name = "chat"
kind = "slack"
url_file = "chat.url"
[[monitoring.alert]]
name = "mail"
kind = "sendmail"
command = ["no-such-sendmail"]
to = ["ops@example.com"]
"#;
    let shop = healthy(Engine::Sqlite, Words { more: more.to_owned(), ..Words::default() }).await;
    let told = |ran: &Ran| -> Vec<(String, String)> {
        let text = |check: &Value, name: &str| check[name].as_str().unwrap().to_owned();
        let found = of_code(ran, "receiver");
        assert!(
            found.iter().all(|check| check["state"] == "warn" && check["what"] == "monitoring")
        );
        found.iter().map(|check| (text(check, "text"), text(check, "next"))).collect()
    };
    let ran = doctor(&shop).await;
    let found = told(&ran);
    assert_eq!((found.len(), ran.code), (5, Some(0)), "{found:#?}");
    for ((text, next), (lacks, mend)) in found.iter().zip([
        ("healthcheck is told of no run: the variable PING_URL (url_env) is not", "set PING_URL "),
        ("prometheus textfile is told of no run: there is no folder ", "make it, or correct "),
        ("alert hook is told of no run: the variable HOOK_KEY (key_env) is not set", "HOOK_KEY"),
        ("alert chat is told of no run: ", "correct url_file of [[monitoring.alert]] chat"),
        ("alert mail is told of no run: there is no program `no-such-sendmail` ", "install it"),
    ]) {
        assert!(text.starts_with(lacks) && next.contains(mend), "{text}: {next}");
    }
    let folder = shop.folder().join("metrics");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(shop.folder().join("chat.url"), "http://hooks.example/plain").unwrap();
    rewrite(&shop, "no-such-sendmail", "true");
    rewrite(&shop, "\"HOOK_KEY\"", "\"SHOP_PSP_KEY\"");
    rewrite(&shop, "url_env = \"PING_URL\"", "url = \"https://ping.example/1\"");
    let found = told(&doctor(&shop).await);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].0.contains("what url_file names is no address: expected an https"));
    assert!(!found[0].0.contains("hooks.example"), "{found:?}");
    std::fs::write(shop.folder().join("chat.url"), "https://hooks.example/plain").unwrap();
    has_none(&doctor(&shop).await, "receiver");
    // What stands where the file belongs is not replaced.
    std::fs::create_dir(folder.join("default.prom")).unwrap();
    let (.., text, _next) = finding(&doctor(&shop).await, "receiver");
    assert!(text.ends_with("default.prom is no file"), "{text}");
}

/// What PostgreSQL alone can plant: an enum, row-level security, a view, a zoneless time.
#[tokio::test(flavor = "multi_thread")]
async fn mappings_that_do_not_fit_are_told_all_at_once() {
    let words = Words { more: gifts("", "{ref}"), ..Words::default() };
    let shop = healthy(Engine::Postgres, words).await;
    rewrite(&shop, "time = \"utc\"\n", "");
    shop.raw
        .execute(
            "create type gift_state as enum ('sent', 'done'); \
             create table gift_rows (id bigint primary key, ref text, cents bigint not null, \
                 made timestamp not null, state gift_state not null); \
             create view gifts as select g.* from gift_rows g join untouched u on true",
        )
        .await;
    let ran = doctor(&shop).await;
    let told: Vec<String> = of_code(&ran, "mapping")
        .iter()
        .map(|check| check["text"].as_str().unwrap().to_owned())
        .collect();
    for part in ["`again` is no value", "does not name its zone", "cannot write through"] {
        assert!(told.iter().any(|text| text.contains(part)), "{part}: {told:?}");
    }
    assert_eq!(ran.code, Some(10));
}
