//! With PostgreSQL who signs in is a login of the server, at every statement: maker and checker are
//! told apart by the server, whatever the page says.

use tieout::sandbox::seeds::Seed;

use super::browser::{Browser, Site};
use super::until;
use crate::run::shop::{Engine, Payment, Shop, Words};
use crate::support::postgres::login_role;
use crate::support::raw::Raw;
use crate::support::{need_env, tieout_bin};

const MARA: &str = "tieout_web_mara";
const JONAS: &str = "tieout_web_jonas";
const READER: &str = "tieout_web_reader";
const PASSWORD: &str = "the tests' own";

/// A payment that was captured twice; mara and jonas may decide, and nothing else.
async fn shop() -> Shop {
    let mut shop = Shop::open_with(Engine::Postgres, Words::default()).await;
    shop.background(60).await;
    let payment = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&payment)).await;
    let again = Seed { id: Some("pi_11".to_owned()), ..payment.captured() };
    shop.plant(vec![payment.captured(), again]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "review duplicate_capture");
    shop.under_role("run").await;
    for (name, role) in [(MARA, "people"), (JONAS, "people"), (READER, "read")] {
        login_role(name).await;
        // One at a time at the whole server, whichever test it is for.
        let sql = format!(
            "select pg_advisory_xact_lock(hashtextextended('roles of the tests', 0)); \
             alter role {name} password '{}'; grant tieout_suite_{role} to {name}",
            PASSWORD.replace('\'', "''")
        );
        Raw::open(&need_env("TEST_POSTGRES_URL")).await.execute(&sql).await;
    }
    shop
}

fn serve(shop: &Shop) -> Site {
    let mut command = std::process::Command::new(tieout_bin());
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--json"])
        .current_dir(shop.folder())
        .env_clear()
        .env("SHOP_PSP_KEY", crate::run::shop::KEY)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    Site::of(command.spawn().unwrap())
}

async fn logins(shop: &Shop, name: &str) -> i64 {
    shop.count(&format!(
        "pg_stat_activity where usename = '{name}' and datname = current_database()"
    ))
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_knows_each_person_by_their_own_login() {
    let shop = shop().await;
    let site = serve(&shop);
    let mut mara = Browser::new(&site);
    mara.sign_in(MARA, "wrong").await.ended(401);
    // Nobody signs in as the server, and no login without a password is anybody.
    mara.sign_in("tieout_suite_run", "x").await.ended(401);
    let trusted = mara.sign_in("postgres", "x").await.ended(403);
    assert!(trusted.body.contains("whatever its password is"), "{}", trusted.body);
    mara.sign_in(MARA, PASSWORD).await.ended(303);
    let jonas = Browser::of(&site, JONAS, PASSWORD).await;
    assert!(logins(&shop, MARA).await > 0);
    let fields = [("as", "succeeded"), ("other_object", "pi_1"), ("why", "one order")];
    mara.act(1, "propose", &fields).await.ended(303);
    let proposed = shop.texts("select proposed_by from tieout_proposals").await;
    assert_eq!(proposed, [MARA]);
    let own = mara.get("/cases/C-1").await.ended(200);
    let (csrf, seen) = (own.csrf(), own.seen("reject"));
    mara.act_seen(&csrf, &seen, "approve", &[("why", "sure")]).await.ended(403);
    assert_eq!(shop.count("tieout_proposals where state = 'open'").await, 1);
    jonas.act(1, "approve", &[("why", "checked")]).await.ended(303);
    let both = "select proposed_by || ' ' || approved_by from tieout_proposals";
    assert_eq!(shop.texts(both).await, [format!("{MARA} {JONAS}")]);
    // The run that carries it out is the server's.
    until("the row is paid", async || shop.status(1).await == "paid").await;
    shop.check(false).await;
    // Whoever undoes it by another object is told what stays in the row.
    let undo = mara.get("/cases/C-1").await.ended(200).body;
    assert!(undo.contains("where the row has a reference in `psp_ref` already"), "{undo}");
    let page = mara.get("/cases").await.ended(200);
    mara.post("/logout", &[("csrf", &page.csrf())]).await.ended(303);
    until("her connections are closed", async || logins(&shop, MARA).await == 0).await;
}

/// Who could take the server's guards away speaks for anybody, and reads so on every page.
#[tokio::test(flavor = "multi_thread")]
async fn who_owns_the_tables_reads_that_nothing_holds_them() {
    let shop = shop().await;
    shop.raw.execute(&format!("alter table tieout_journal owner to {READER}")).await;
    let site = serve(&shop);
    let reader = Browser::of(&site, READER, PASSWORD).await;
    let held = "the server holds this login by nothing";
    for path in ["/cases", "/cases/C-1", "/runs"] {
        let page = reader.get(path).await.ended(200).body;
        let said = format!("{READER} is the owner of tieout&#39;s tables: {held}");
        assert!(page.contains(&said), "{path}: {page}");
    }
    let mara = Browser::of(&site, MARA, PASSWORD).await;
    let page = mara.get("/cases").await.ended(200).body;
    assert!(!page.contains(held), "{page}");
}

/// Who may say nothing of a case kicks none; who may is named by the server, and a run of the
/// page's own login decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_kick_is_by_a_login_that_may_speak() {
    let shop = shop().await;
    let site = serve(&shop);
    let reader = Browser::of(&site, READER, PASSWORD).await;
    reader.act(1, "kick", &[("why", "curious")]).await.ended(403);
    reader.act(1, "comment", &[("why", "curious")]).await.ended(403);
    assert_eq!(shop.count("tieout_runs where command = 'kick'").await, 0);
    let mara = Browser::of(&site, MARA, PASSWORD).await;
    mara.act(1, "kick", &[("why", "look again")]).await.ended(303);
    let ended = "tieout_runs where command = 'kick' and ended_at is not null";
    until("the kick ended", async || shop.count(ended).await == 1).await;
    assert_eq!(shop.texts("select by_whom from tieout_case_notes").await, [MARA]);
    let page = mara.get("/cases/C-1").await.ended(200).body;
    let kicked = format!("kicked by {MARA} on the review page (look again) with run ");
    assert!(page.contains(&kicked), "{page}");
    assert!(page.contains(": needs a person (duplicate_capture)"), "{page}");
    shop.check(false).await;
}

/// PostgreSQL takes no such letter in a text: it is asked for none, and is not said to be away.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_database_takes_is_not_found_or_not_meant() {
    let shop = shop().await;
    let site = serve(&shop);
    let mara = Browser::of(&site, MARA, PASSWORD).await;
    for path in ["/runs/%00", "/runs/a%1b", "/cases/%00", "/reports/%00/x/y"] {
        mara.get(path).await.ended(404);
    }
    for query in ["owner=%00", "table=a%00b", "run=%00", "policy=%1b"] {
        mara.get(&format!("/cases?{query}")).await.ended(422);
        mara.get(&format!("/cases.csv?{query}")).await.ended(422);
    }
}

/// Even where the page's own words were changed: the server refuses what a login may not say.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_says_nothing_in_anothers_name() {
    let shop = shop().await;
    let place = shop.place().replacen("postgres@", &format!("{MARA}:the%20tests'%20own@"), 1);
    let mara = Raw::open(&place).await;
    let sql = format!(
        "insert into tieout_proposals (case_number, what, undoes, why, four_eyes, proposed_by, \
         proposed_at, state) values (1, 'failed', false, 'x', true, '{JONAS}', now(), 'open')"
    );
    let error = mara.try_execute(&sql).await.unwrap_err();
    let code = error.as_database_error().and_then(|e| e.code()).map(|c| c.into_owned());
    assert_eq!(code.as_deref(), Some("23001"), "{error}");
}
