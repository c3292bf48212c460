//! The page of a run that did not end by itself: what it wrote, when it last showed life, and what
//! nobody knows of it any more.

use tieout::sandbox::seeds::Seed;

use super::{serve, shop_with, sign_in};
use crate::cli_run::Shop;

/// A shop whose account observes, with a second run that withheld the only row it found; and that
/// run's id.
async fn observed() -> (Shop, String) {
    let shop = shop_with("pay_1", "").await;
    let path = shop.path().join("tieout.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let observes = config.replacen("mode = \"full\"", "mode = \"observe\"", 1);
    assert_ne!(observes, config);
    std::fs::write(&path, observes).unwrap();
    let at = "strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 hours')";
    let row = format!("('pay_2', 500, 'EUR', 'processing', null, {at}, {at})");
    shop.sql(&format!("insert into charges values {row}")).await;
    let seed = Seed::captured("tieout_id", "pay_2", 500, "eur").created_at(shop.psp.now() - 7_200);
    shop.psp.seed([seed]).unwrap();
    let ran = shop.tieout(&["run", "--json"], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = shop.tieout(&["runs", "show", "--json"], &[]).stdout;
    let run: serde_json::Value = serde_json::from_str(shown.trim()).unwrap();
    assert_eq!(run["notes"]["withheld"], 1, "{run}");
    let id = run["run_id"].as_str().unwrap().to_owned();
    (shop, id)
}

/// As it stood while it went on, and as it stands where its process was killed.
async fn as_if_killed(shop: &Shop, run: &str) {
    shop.sql(&format!(
        "drop trigger tieout_runs_closed; \
         update tieout_runs set state = 'running', notes = '{{}}', ended_at = null, \
         exit_code = null, exit_class = null, close_number = null, prev_close_hash = null, \
         close_hash = null, heartbeat_at = '2026-01-01T10:00:07.000000Z' where id = '{run}'"
    ))
    .await;
}

const WITHHELD: &str = "Withheld: 1 row by the mode: nothing was written or handed back.";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_withheld_is_said_before_it_ends_and_where_it_died() {
    let (shop, run) = observed().await;
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let path = format!("/runs/{run}");
    let page = async || mara.get(&path).await.ended(200).body;
    let alive = "last sign of life";
    let ended = page().await;
    assert!(ended.contains(WITHHELD) && ended.contains("ties out"), "{ended}");
    assert!(!ended.contains(alive), "{ended}");
    as_if_killed(&shop, &run).await;
    let running = page().await;
    assert!(running.contains(WITHHELD) && !running.contains("ties out"), "{running}");
    let at = "<time datetime=\"2026-01-01T10:00:07Z\">2026-01-01 10:00:07Z</time>";
    let says = format!(
        "Its {alive} was at {at}; silent for 120 s it counts as dead, and the next `tieout run` \
         closes it."
    );
    assert!(running.contains(&says), "{running}");
    let closed = shop.tieout(&["runs", "abandon", &run], &[]);
    assert_eq!(closed.code, Some(0), "{}", closed.stderr);
    let dead = page().await;
    assert!(dead.contains(WITHHELD) && dead.contains("ties out"), "{dead}");
    assert!(!dead.contains(alive), "{dead}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_run_that_was_pruned_has_no_verdict() {
    let (shop, run) = observed().await;
    as_if_killed(&shop, &run).await;
    let closed = shop.tieout(&["runs", "abandon", &run], &[]);
    assert_eq!(closed.code, Some(0), "{}", closed.stderr);
    let old = |column: &str| format!("{column} = '2020' || substr({column}, 5)");
    let years_ago = format!("update tieout_runs set {}, {}", old("started_at"), old("ended_at"));
    shop.sql(&years_ago).await;
    let pruned = shop.tieout(&["db", "prune", "--keep", "90d", "--yes"], &[]);
    assert_eq!(pruned.code, Some(0), "{}", pruned.stderr);
    let shown = shop.tieout(&["runs", "show", &run], &[]).stdout;
    assert!(shown.contains("its totals went with its records"), "{shown}");
    let site = serve(&shop);
    let mara = sign_in(&site, "mara").await;
    let page = mara.get(&format!("/runs/{run}")).await.ended(200).body;
    assert!(page.contains("Its totals went with its records"), "{page}");
    for claim in ["ties out", "No row was claimed", "UNTIED", "Withheld"] {
        assert!(!page.contains(claim), "{claim}: {page}");
    }
    // Of a run that noted its totals they are told as ever.
    let listed = shop.tieout(&["runs", "list", "--json"], &[]).stdout;
    let first: serde_json::Value = serde_json::from_str(listed.lines().last().unwrap()).unwrap();
    let first = first["run_id"].as_str().unwrap();
    assert_ne!(first, run);
    let page = mara.get(&format!("/runs/{first}")).await.ended(200).body;
    assert!(page.contains("Its records were pruned") && page.contains("ties out"), "{page}");
}
