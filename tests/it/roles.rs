//! The roles that `tieout db roles` prints, on a real server: the main job works under the one
//! for the schedule, and whatever no role needs is refused to it by the server itself.

use tieout::sandbox::seeds::Seed;

use crate::run::shop::{Engine, Payment, Ran, Shop, Words};
use crate::support::golden::golden;
use crate::support::raw::Raw;
use crate::support::receiver::{Answer, Receiver};

/// A shop that writes everything that a mapping can write.
async fn shop() -> Shop {
    let words = Words {
        more: "[table.history]\ntable = \"events\"\ncolumns = { payment = \"{id}\", \
               status = \"{status}\", happened = \"{now}\" }\n"
            .to_owned(),
        ..Words::default()
    };
    let mut shop = Shop::open_bare(Engine::Postgres, words).await;
    shop.raw
        .execute(
            "create table events (n serial primary key, payment bigint not null, \
             status text not null, happened timestamptz not null);
             create table secrets (word text); insert into secrets values ('x')",
        )
        .await;
    shop.tieout(&["db", "migrate"]).await.ended(0);
    shop.background(60).await;
    shop
}

/// A stuck payment of which the PSP shows two captures.
async fn capture_twice(shop: &mut Shop, id: i64) {
    let payment = Payment::stuck(id);
    shop.insert(std::slice::from_ref(&payment)).await;
    let again = Seed { id: Some(format!("pi_{id}{id}")), ..payment.captured() };
    shop.plant(vec![payment.captured(), again]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_job_works_under_the_role_for_the_schedule() {
    let mut shop = shop().await;
    let paid: Vec<Payment> = (1..=3).map(Payment::stuck).collect();
    shop.insert(&paid).await;
    shop.plant(paid.iter().map(Payment::captured).collect());
    // Absent: it goes through waits and misses to a hand-back.
    shop.insert(&[Payment::stuck(4)]).await;
    // Captured twice: a case.
    capture_twice(&mut shop, 5).await;
    let hook = Receiver::start(Answer::Status(200)).await;
    let gone = Receiver::start(Answer::Status(500)).await;
    for (name, url) in [("hook", hook.url()), ("gone", gone.url())] {
        let alert = format!("[[monitoring.alert]]\nname = \"{name}\"\nkind = \"slack\"\n");
        shop.words.more += &format!("{alert}url = \"{url}\"\n");
    }
    shop.under_role("run").await;
    assert_eq!(shop.raw_as_role().await.one("select current_user::text").await, "tieout_suite_run");
    // What is not its business is refused, with the role that it is the business of.
    let paused = shop.tieout(&["pause", "shop", "--why", "x"]).await.ended(12);
    for part in ["`tieout_suite_run` may not do that", "needs tieout_suite_people", "tieout_suite`"]
    {
        assert!(paused.stderr.contains(part), "{part}: {}", paused.stderr);
    }
    shop.run_until_proven().await;
    let statuses = shop.texts("select status from payments where id < 9 order by id").await;
    assert_eq!(statuses, ["paid", "paid", "paid", "retry", "processing"]);
    assert_eq!(shop.count("events").await, 4);
    assert_eq!(shop.open_cases().await, ["5 duplicate_capture"]);
    for words in
        [&["audit", "verify"][..], &["explain", "4"], &["cases", "list"], &["db", "status"]]
    {
        shop.tieout(words).await.ended(0);
    }
    shop.check(false).await;
    // Alerts are remembered under that role as well: begun once, and ended once.
    shop.raw
        .execute(
            "alter table tieout_cases disable trigger tieout_cases_close_guard;
             update tieout_cases set state = 'closed', closed_at = now(), resolution = 'refunded';
             alter table tieout_cases enable trigger tieout_cases_close_guard",
        )
        .await;
    shop.run().await.ended(0);
    let told: Vec<String> = hook.sent("").into_iter().map(|sent| sent.body).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("RAISED duplicates"), "{told:?}");
    assert!(told[1].contains("RESOLVED duplicates"), "{told:?}");
    assert!(gone.sent("").len() > 2, "what was not taken is told again");
    assert_eq!(
        shop.count("tieout_alerts").await,
        0,
        "what was over before it was told is forgotten"
    );
    let runs = shop.texts("select notes from tieout_runs").await;
    assert!(runs.iter().any(|notes| notes.contains("alert gone: answered 500")), "{runs:?}");
}

/// What no schedule needs, and what would hide what it did.
const REFUSED_TO_RUN: &[&str] = &[
    "update tieout_journal set text = 'x'",
    "delete from tieout_journal",
    "truncate tieout_journal cascade",
    "update tieout_evidence set body = 'x'",
    "delete from tieout_evidence",
    "truncate tieout_evidence",
    "delete from tieout_runs",
    "update tieout_runs set id = 'x'",
    "update tieout_runs set started_at = now()",
    "delete from tieout_checks",
    "delete from tieout_cases",
    "delete from tieout_handbacks",
    "update tieout_handbacks set key = 'x'",
    "delete from tieout_references",
    "update tieout_references set psp_reference = 'x'",
    "delete from tieout_outbox",
    "update tieout_outbox set payload = 'x'",
    "update tieout_accounts set paused_at = null, paused_by = null",
    "insert into tieout_migrations select * from tieout_migrations",
    "update tieout_migrations set success = false",
    "delete from tieout_migrations",
    "update payments set amount = 1",
    "update payments set account = 'x'",
    "delete from payments",
    "insert into payments select * from payments",
    "truncate payments",
    "update events set status = 'x'",
    "delete from events",
    "select * from events",
    "select * from secrets",
    "drop table tieout_journal cascade",
    "alter table tieout_journal disable trigger all",
    "drop trigger tieout_journal_append_only on tieout_journal",
    "create table tieout_mine (x int)",
];

/// What people say of a file, in another's name.
const RELEASE: &str = "insert into tieout_releases (file_id, what, at, by_whom, why, state) \
                       values (1, 'held', now(), 'mara', 'x', 'waiting')";

async fn refuses(role: &Raw, statements: &[&str]) {
    for sql in statements {
        let error = match role.try_execute(sql).await {
            Ok(_done) => panic!("{sql}: it is allowed"),
            Err(error) => error,
        };
        let code = error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned());
        assert_eq!(code.as_deref(), Some("42501"), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_is_refused_what_it_does_not_need() {
    let mut shop = shop().await;
    // From PostgreSQL 15 on nobody may make tables here; before, everybody.
    shop.raw.execute("revoke create on schema public from public").await;
    let paid = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&paid)).await;
    shop.plant(vec![paid.captured()]);
    shop.run().await.ended(0);
    shop.under_role("run").await;
    let raw = shop.raw_as_role().await;
    refuses(&raw, REFUSED_TO_RUN).await;
    refuses(&raw, &[RELEASE, "update tieout_releases set why = 'x'"]).await;
    // A right on the column, and not on what is said of a run that ended: a prune goes by it.
    let back = "update tieout_runs set ended_at = now() - interval '3 years' \
                where close_number = 1";
    let error = raw.try_execute(back).await.expect_err("a closed run is dated back");
    let code = error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned());
    assert_eq!(code.as_deref(), Some("23001"), "{error}");
    for role in ["read", "people"] {
        shop.under_role(role).await;
        let raw = shop.raw_as_role().await;
        refuses(
            &raw,
            REFUSED_TO_RUN
                .iter()
                .filter(|sql| role != "people" || !sql.contains("paused_at"))
                .copied()
                .collect::<Vec<_>>()
                .as_slice(),
        )
        .await;
        refuses(
            &raw,
            &[
                "update payments set status = 'paid'",
                "insert into tieout_journal select * from tieout_journal",
                "update tieout_checks set state = 'closed'",
                "update tieout_runs set heartbeat_at = now()",
                "insert into tieout_case_notes (case_number, at, kind, by_whom, text, run_id) \
                 select number, now(), 'comment', 'run', 'x', opened_run from tieout_cases",
                "update tieout_proposals set ended_run = 'x'",
                "insert into tieout_proposals (case_number, what, undoes, why, four_eyes, \
                 proposed_by, proposed_at, state, ended_run) select number, 'left', false, 'x', \
                 false, session_user, now(), 'open', 'x' from tieout_cases",
                "update tieout_cases set state = 'closed'",
                "insert into tieout_lines select * from tieout_lines",
                "update tieout_lines set decides = true",
                "update tieout_lines set state = 'open', reason = null",
                "insert into tieout_line_tags select * from tieout_line_tags",
                "insert into tieout_statements select * from tieout_statements",
                "update tieout_statements set state = 'live'",
                "update tieout_files set state = 'released'",
                "update tieout_releases set state = 'carried_out', ended_at = now()",
                "delete from tieout_releases",
            ],
        )
        .await;
        for words in [&["audit", "verify"][..], &["cases", "list"], &["runs", "show"]] {
            shop.tieout(words).await.ended(0);
        }
    }
    shop.tieout(&["pause", "shop", "--why", "test"]).await.ended(0);
    let by = shop.texts("select paused_by from tieout_accounts").await;
    assert!(by[0].ends_with(" (database user tieout_suite_people)"), "{by:?}");
    shop.tieout(&["resume", "shop"]).await.ended(0);
}

/// Refunds that are read through a view, which hides some of them.
const REFUNDS: &str = r#"
[[table]]
name = "refunds"
read = "refunds_seen"
write = "refunds"
key = ["id"]
tag = "refund-{id}"
kind = { const = "refund" }
amount = { column = "cents", unit = "minor" }
currency = { const = "EUR" }
account = []
accounts = { "*" = "shop" }
status = "status"
created = "made"
attempts = "once"
psp_reference = "re_id"
mode = "full"
map = [{ from = ["sent"], succeeded = "done", failed = "failed", retryable = "again" }]
"#;

/// What a dry run sees of a table that is written through another name, by whoever only looks: the
/// rows of the view, and none of what it hides.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_does_without_the_table_that_a_run_writes() {
    let words = Words { more: REFUNDS.to_owned(), ..Words::default() };
    let mut shop = Shop::open_bare(Engine::Postgres, words).await;
    let view = "create view refunds_seen as select * from refunds where cents < 1000";
    shop.raw.execute(view).await;
    shop.tieout(&["db", "migrate"]).await.ended(0);
    shop.raw
        .execute(
            "insert into refunds (id, status, cents, made)
             select n, status, cents, now() - interval '40 minutes'
             from (values (1, 'sent', 70), (2, 'odd', 80), (3, 'hidden', 5000))
             as v (n, status, cents)",
        )
        .await;
    let unmapped = |ran: &Ran| -> Vec<String> {
        let told = ran.of_type("unmapped_status").into_iter();
        let mut values: Vec<String> = told.map(|event| event["value"].to_string()).collect();
        values.sort();
        values
    };
    let whole = shop.run_with(&["--dry-run"]).await.ended(3);
    assert_eq!(unmapped(&whole), ["\"hidden\"", "\"odd\""]);
    assert_eq!(whole.verdicts().len(), 1, "{}", whole.stdout);
    for role in ["read", "people"] {
        shop.under_role(role).await;
        refuses(&shop.raw_as_role().await, &["select status from refunds"]).await;
        let seen = shop.run_with(&["--dry-run"]).await.ended(3);
        assert_eq!(unmapped(&seen), ["\"odd\""]);
        assert_eq!(seen.verdicts(), whole.verdicts());
    }
    shop.under_role("run").await;
    let ran = shop.run().await.ended(3);
    assert_eq!(unmapped(&ran), ["\"hidden\"", "\"odd\""]);
    assert_eq!(ran.verdicts(), whole.verdicts());
    shop.check(false).await;
}

/// What no right says, triggers hold: figures of runs, other people's names, and what files say,
/// also where an earlier version granted it.
#[tokio::test(flavor = "multi_thread")]
async fn people_change_nothing_that_runs_found_out() {
    let mut shop = shop().await;
    let known = "insert into tieout_accounts (account, usual_permille) values ('shop', 900)";
    shop.raw.execute(known).await;
    shop.under_role("people").await;
    shop.raw
        .execute(
            "grant insert, update on tieout_lines, tieout_line_tags, tieout_statements, \
             tieout_files to tieout_suite_people",
        )
        .await;
    shop.tieout(&["pause", "shop", "--why", "test"]).await.ended(0);
    let raw = shop.raw_as_role().await;
    // Whoever may create functions somewhere puts them before the server's own.
    shop.raw.execute("create schema lab authorization tieout_suite_people").await;
    raw.execute(
        "create function lab.has_table_privilege(text, text) returns boolean language sql \
         as 'select true'; \
         create function lab.never(text, text) returns boolean language sql as 'select false'; \
         create operator lab.<> (leftarg = text, rightarg = text, function = lab.never)",
    )
    .await;
    for sql in [
        "update tieout_accounts set usual_permille = 0",
        "update tieout_accounts set usual_permille = null",
        "update tieout_accounts set unanswered_since = now()",
        "update tieout_accounts set account = 'another'",
        "update tieout_accounts set paused_by = 'mara'",
        "update tieout_accounts set paused_by = 'mara (database user mara)'",
        "insert into tieout_accounts (account, usual_permille) values ('new', 0)",
        "insert into tieout_accounts (account, unanswered_since) values ('new', now())",
        "insert into tieout_accounts (account, paused_at, paused_by) values ('new', now(), 'mara')",
        RELEASE,
        "insert into tieout_lines default values",
        "update tieout_lines set decides = true",
        "insert into tieout_line_tags default values",
        "insert into tieout_statements default values",
        "update tieout_statements set state = 'live'",
        "update tieout_files set state = 'loaded'",
    ] {
        for sql in [sql.to_owned(), format!("set search_path = lab, pg_catalog, public; {sql}")] {
            let error = match raw.try_execute(&sql).await {
                Ok(_done) => panic!("{sql}: it is allowed"),
                Err(error) => error,
            };
            let code = error.as_database_error().and_then(|e| e.code().map(|c| c.into_owned()));
            assert_eq!(code.as_deref(), Some("23001"), "{sql}: {error}");
        }
    }
    shop.tieout(&["resume", "shop"]).await.ended(0);
    let left = "select account || ' ' || usual_permille || ' ' || coalesce(paused_by, '-') \
                from tieout_accounts";
    assert_eq!(shop.texts(left).await, ["shop 900 -"]);
}

/// What people say, at a time.
const SAID: [&str; 4] = [
    "insert into tieout_case_notes (case_number, at, kind, by_whom, text) \
     select number, [at], 'comment', session_user, 'x' from tieout_cases",
    "insert into tieout_proposals (case_number, what, undoes, why, evidence_sha256, four_eyes, \
     proposed_by, proposed_at, state) select number, 'left', false, 'x', evidence_sha256, false, \
     session_user, [at], 'open' from tieout_cases",
    "insert into tieout_releases (file_id, what, at, by_whom, why, state) values \
     (1, 'held', [at], 'x (database user ' || session_user || ')', 'x', 'waiting')",
    "insert into tieout_accounts (account, paused_at, paused_by, paused_why) values \
     ('shop', [at], 'x (database user ' || session_user || ')', 'x') on conflict (account) \
     do update set paused_at = excluded.paused_at, paused_by = excluded.paused_by, \
     paused_why = excluded.paused_why",
];

/// What they answer to a proposal.
const ANSWERED: [&str; 2] = [
    "update tieout_proposals set state = 'withdrawn', ended_at = [at], ended_why = 'x'",
    "update tieout_proposals set state = 'approved', approved_by = session_user, \
     approved_at = [at], approved_why = 'x', approved_evidence = evidence_sha256",
];

/// No word is dated back to before what it answers, and none ahead.
#[tokio::test(flavor = "multi_thread")]
async fn what_people_say_is_said_now() {
    let mut shop = shop().await;
    capture_twice(&mut shop, 1).await;
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await, ["1 duplicate_capture"]);
    shop.under_role("people").await;
    let raw = shop.raw_as_role().await;
    let refused = async |said: &str| {
        for at in [
            "now() - interval '6 minutes'",
            "now() + interval '6 minutes'",
            "'-infinity'::timestamptz",
            "'infinity'::timestamptz",
        ] {
            let sql = said.replace("[at]", at);
            let error = match raw.try_execute(&sql).await {
                Ok(_done) => panic!("{sql}: it is allowed"),
                Err(error) => error,
            };
            let code = error.as_database_error().and_then(|e| e.code().map(|c| c.into_owned()));
            assert_eq!(code.as_deref(), Some("23001"), "{sql}: {error}");
            assert!(error.to_string().contains("the server's clock says"), "{sql}: {error}");
        }
    };
    for said in SAID {
        refused(said).await;
    }
    // The program asks for the time first, and then writes.
    let [note, propose, ..] = SAID;
    raw.execute(&note.replace("[at]", "now() - interval '4 minutes'")).await;
    raw.execute(&propose.replace("[at]", "now()")).await;
    for said in ANSWERED {
        refused(said).await;
    }
    let [_withdraw, approve] = ANSWERED;
    raw.execute(&approve.replace("[at]", "now()")).await;
    let states = shop.texts("select state from tieout_proposals").await;
    assert_eq!(states, ["approved"]);
    shop.tieout(&["pause", "shop", "--why", "test"]).await.ended(0);
    shop.tieout(&["resume", "shop"]).await.ended(0);
}

/// The server passes over a schema that a login may not look into, as if nothing were in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_may_not_be_looked_into_is_not_taken_for_an_empty_one() {
    let mut shop = shop().await;
    shop.under_role("run").await;
    shop.run().await.ended(0);
    let schema = shop.raw.one("select current_schema()::text").await;
    shop.raw.execute(&format!("revoke usage on schema {schema} from public")).await;
    shop.raw.execute(&format!("revoke usage on schema {schema} from tieout_suite_run")).await;
    for command in ["run", "doctor"] {
        let ran = shop.tieout(&[command]).await;
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&format!("permission denied for schema {schema}")), "{said}");
        assert!(!said.contains("db migrate"), "{said}");
        // The login is the role for runs itself.
        let grant = format!("`grant usage on schema {schema} to tieout_suite_run`; then `tieout");
        assert!(said.contains(&grant), "{said}");
    }
}

/// A kick is a run, and logins for people make none. Whoever is refused one is sent to who does,
/// and asks nobody for a right.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_for_people_kicks_nothing_and_lacks_no_right() {
    let mut shop = shop().await;
    capture_twice(&mut shop, 1).await;
    shop.run().await.ended(0);
    let kick = ["cases", "kick", "C-1", "--why", "look again"];
    for role in ["people", "read"] {
        shop.under_role(role).await;
        let kicked = shop.tieout(&kick).await.ended(12);
        let said = kicked.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "auth: this login may not run, and a kick is a run; nothing was done",
            "kick as the login of the runs, or on the page of `tieout serve`; docs/security.md",
        ] {
            assert!(said.contains(part), "{role}: {said}");
        }
        assert!(!said.contains("grant") && !said.contains("update"), "{role}: {said}");
        assert_eq!(kicked.stdout, "", "{role}");
        // It may see what would become of it.
        shop.tieout(&[&kick[..], &["--dry-run"]].concat()).await.ended(0);
    }
    assert_eq!(shop.count("tieout_runs").await, 1, "nothing was run");
    shop.under_role("run").await;
    shop.tieout(&kick).await.ended(0);
    assert_eq!(shop.count("tieout_runs where command = 'kick'").await, 1);
}

/// What two people decided no schedule's login turns down; what nobody approved ends with its case,
/// and not before.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_for_runs_rejects_nothing() {
    let mut shop = shop().await;
    capture_twice(&mut shop, 1).await;
    shop.run().await.ended(0);
    let ([_note, propose, ..], [_withdraw, approve]) = (SAID, ANSWERED);
    let reject = "update tieout_proposals set state = 'rejected', ended_at = now(), \
                  ended_why = 'x'";
    for said in [propose, approve] {
        shop.under_role("people").await;
        shop.raw_as_role().await.execute(&said.replace("[at]", "now()")).await;
        shop.under_role("run").await;
        let error = shop.raw_as_role().await.try_execute(reject).await.expect_err("it is allowed");
        let code = error.as_database_error().and_then(|e| e.code().map(|c| c.into_owned()));
        assert_eq!(code.as_deref(), Some("23001"), "{error}");
        assert!(error.to_string().contains("and no more"), "{error}");
    }
    shop.under_role("people").await;
    shop.raw_as_role().await.execute(reject).await;
    assert_eq!(shop.texts("select state from tieout_proposals").await, ["rejected"]);
}

/// A table that is new must be given, or not given, to each role on purpose.
#[tokio::test(flavor = "multi_thread")]
async fn every_table_has_its_grants_and_the_words_are_stable() {
    let shop = shop().await;
    let printed = shop.tieout(&["db", "roles"]).await.ended(0);
    let database = shop.texts("select quote_ident(current_database())").await.remove(0);
    golden("fixtures/cli", "db_roles", &printed.stdout.replace(&database, "[database]"));
    let tables = "select quote_ident(table_name) from information_schema.tables \
                  where table_name like 'tieout\\_%' order by 1";
    for table in shop.texts(tables).await {
        let grant = format!("grant select on public.{table} to ");
        assert!(printed.stdout.contains(&grant), "{table}: no line in postgres/roles.rs");
    }
    for prefix in ["Tieout", "x; drop", "", "9a"] {
        shop.tieout(&["db", "roles", "--prefix", prefix]).await.ended(2);
    }
    let file = Shop::open(Engine::Sqlite).await;
    let said = file.tieout(&["db", "roles"]).await.ended(2);
    assert!(said.stderr.contains("has no roles"), "{}", said.stderr);
}
