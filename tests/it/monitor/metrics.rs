//! Metrics as Prometheus reads them: the file whole or not at all, the push, and the form itself.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use regex::Regex;

use super::{TWICE, configure, receiver};
use crate::cli_run::{CAPTURED, Shop};
use crate::support::tieout_bin;

/// Reads the text form strictly: a HELP, a TYPE, then the family's samples, each series once.
fn parsed(text: &str) -> BTreeMap<String, String> {
    let value = r#"-?(\d+)(\.\d+)?"#;
    let label = r#"[a-z_]+="([^"\\\n]|\\\\|\\"|\\n)*""#;
    let sample = format!(r"^([a-z_]+)\{{{label}(,{label})*\}} {value}$");
    let sample = Regex::new(&sample).unwrap();
    let meta = Regex::new(r"^# (HELP|TYPE) ([a-z_]+) (.+)$").unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let mut series = BTreeMap::new();
    let mut family = (String::new(), 0);
    for line in text.lines() {
        if let Some(found) = meta.captures(line) {
            let wanted = if &found[1] == "HELP" { 0 } else { 1 };
            if wanted == 1 {
                assert!(["gauge", "counter"].contains(&&found[3]), "{line}");
                assert_eq!(family, (found[2].to_owned(), 1), "{line}: TYPE follows HELP");
            }
            family = (found[2].to_owned(), wanted + 1);
            continue;
        }
        let found = sample.captures(line).unwrap_or_else(|| panic!("no sample: {line}"));
        assert_eq!(family, (found[1].to_owned(), 2), "{line}: outside of its family");
        let (key, value) = line.rsplit_once(' ').unwrap();
        assert!(series.insert(key.to_owned(), value.to_owned()).is_none(), "{line}: twice");
    }
    series
}

fn value(series: &BTreeMap<String, String>, key: &str) -> i64 {
    let value = series.get(key).unwrap_or_else(|| panic!("{key}: {series:#?}"));
    value.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_not_replaced_by_one() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    configure(&shop, "[monitoring]\nprometheus = { textfile = \"shop.prom\" }\n");
    let path = shop.path().join("shop.prom");
    let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    let run = shop.tieout(&["runs", "show"], &[]).stdout;
    assert!(run.contains("monitoring: prometheus textfile shop.prom: it is no file"), "{run}");
    assert!(!std::fs::metadata(&path).unwrap().is_file());
    drop(socket);
}

/// The shipped units' mask keeps reports to the run's user; the node exporter is another one.
#[tokio::test(flavor = "multi_thread")]
async fn the_node_exporter_may_read_the_file() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    configure(&shop, "[monitoring]\nprometheus = { textfile = \"shop.prom\" }\n");
    let mut masked = std::process::Command::new("sh");
    masked.args(["-c", "umask 077; exec \"$0\" run"]).arg(tieout_bin());
    masked.current_dir(shop.path()).env_clear().env("SHOP_KEY", "sk_test_shop");
    assert!(masked.status().unwrap().success());
    let metadata = std::fs::metadata(shop.path().join("shop.prom")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o644);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_writes_its_metrics_and_pushes_them() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED), ("pay_2", 500, TWICE)]).await;
    let receiver = receiver().await;
    let prometheus = format!(
        "[monitoring]\nscope = \"shop\"\n\
         prometheus = {{ textfile = \"{{scope}}.prom\", push = \"{}/gate/\" }}\n",
        receiver.url()
    );
    configure(&shop, &prometheus);
    std::fs::write(shop.path().join("shop.prom"), "nonsense\ntieout_run_exit_code{x} y\n").unwrap();
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    let text = std::fs::read_to_string(shop.path().join("shop.prom")).unwrap();
    let series = parsed(&text);
    let of = |rest: &str| rest.replacen('{', "{scope=\"shop\",", 1).replace(",}", "}");
    for (key, want) in [
        ("tieout_run_exit_code{}", 0),
        ("tieout_rows_examined{source=\"stripe_test\",outcome=\"succeeded\"}", 1),
        ("tieout_rows_examined{source=\"stripe_test\",outcome=\"review\"}", 1),
        ("tieout_rows_examined{source=\"stripe_test\",outcome=\"wait\"}", 0),
        ("tieout_stuck_rows{source=\"stripe_test\"}", 0),
        ("tieout_cases_open{reason=\"duplicate_capture\",age_bucket=\"0-1\"}", 1),
        ("tieout_cases_open{reason=\"late_contradiction\",age_bucket=\"0-1\"}", 0),
        ("tieout_cases_open{reason=\"file_missing\",age_bucket=\"0-1\"}", 0),
        ("tieout_cases_open{reason=\"absence_brake\",age_bucket=\"0-1\"}", 0),
        ("tieout_paid_twice{}", 0),
        ("tieout_residual_minor{currency=\"EUR\"}", 0),
        ("tieout_psp_unreachable_streak{source=\"stripe_test\"}", 0),
        ("tieout_psp_requests_total{source=\"stripe_test\",status_class=\"5xx\"}", 0),
    ] {
        assert_eq!(value(&series, &of(key)), want, "{key}");
    }
    assert!(value(&series, &of("tieout_last_success_timestamp_seconds{}")) > 1_700_000_000);
    let pushed = receiver.sent("/gate/metrics/job/tieout/scope/shop");
    assert_eq!(pushed.len(), 1, "{:?}", receiver.paths());
    assert_eq!(parsed(&pushed[0].body), series);
    let left: Vec<String> = std::fs::read_dir(shop.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_keeps_the_last_success_and_counts_on() {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    let receiver = receiver().await;
    let prometheus = format!(
        "[monitoring]\nprometheus = {{ textfile = \"x.prom\", push = \"{}\" }}\n",
        receiver.url()
    );
    configure(&shop, &prometheus);
    let read = || parsed(&std::fs::read_to_string(shop.path().join("x.prom")).unwrap());
    let success = "tieout_last_success_timestamp_seconds{scope=\"default\"}";
    let exit = "tieout_run_exit_code{scope=\"default\"}";
    let streak = "tieout_psp_unreachable_streak{scope=\"default\",source=\"stripe_test\"}";
    let failed = "tieout_psp_requests_total{scope=\"default\",source=\"stripe_test\",\
                  status_class=\"5xx\"}";
    // A window before the row was made: nothing is due.
    assert_eq!(shop.tieout(&["run", "--to", "2020-01-01"], &[]).code, Some(0));
    let first = read();
    shop.psp.scenario("outage").unwrap();
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(3));
    let second = read();
    assert_eq!(second[success], first[success]);
    assert_eq!((second[exit].as_str(), second[streak].as_str()), ("3", "1"));
    let stuck = "tieout_oldest_stuck_seconds{scope=\"default\",source=\"stripe_test\"}";
    assert!(value(&second, stuck) >= 7_200, "{second:#?}");
    let seen = value(&second, failed);
    assert!(seen > 0, "{second:#?}");
    shop.sql("update tieout_checks set next_check_at = '2020-01-01T00:00:00.000000Z'").await;
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(3));
    let third = read();
    assert_eq!(third[streak], "2");
    assert!(value(&third, failed) > seen, "a counter grows over runs");
    // The push is an addition as well: it leaves out what it says nothing of.
    let pushed = &receiver.sent("/metrics/job/tieout/scope/default")[1].body;
    assert!(!pushed.contains("last_success") && pushed.contains("last_run"), "{pushed}");
    // In the outage nothing is due any more: all that is stuck waits for the silent account.
    let path = shop.path().join("x.prom");
    let text = std::fs::read_to_string(&path).unwrap();
    let long_ago = format!("{success} 1700000000");
    let text = text.replace(&format!("{success} {}", third[success]), &long_ago);
    std::fs::write(&path, text).unwrap();
    assert_eq!(shop.tieout(&["run"], &[]).code, Some(0));
    let fourth = read();
    assert_eq!((fourth[success].as_str(), fourth[exit].as_str()), ("1700000000", "0"));
}
