//! The shipped alert rules and the dashboard name metrics that tieout writes, and no other.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;
use serde_json::Value;
use tieout::model::reason::Reason;
use tieout::monitor::conditions::{Kind, class_of};
use tieout::monitor::metrics::FAMILIES;

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitoring").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn metrics_in(text: &str) -> BTreeSet<String> {
    let metric = Regex::new(r"\btieout_[a-z_]+\b").unwrap();
    metric.find_iter(text).map(|found| found.as_str().to_owned()).collect()
}

#[test]
fn rules_and_dashboard_name_what_is_written() {
    let written: BTreeSet<String> = FAMILIES.iter().map(|family| family.name.to_owned()).collect();
    for name in ["alerts.yml", "dashboard.json"] {
        let named = metrics_in(&shipped(name));
        assert!(named.len() > 5, "{name}: {named:?}");
        let unknown: Vec<&String> = named.difference(&written).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
    let dashboard = metrics_in(&shipped("dashboard.json"));
    let unseen: Vec<&String> = written.difference(&dashboard).collect();
    assert!(unseen.is_empty(), "the dashboard shows everything but {unseen:?}");
}

/// Every rule has what Prometheus asks of it, in the one form that the file is written in.
#[test]
fn rules_are_whole() {
    let text = shipped("alerts.yml");
    let rules: Vec<&str> = text.split("\n      - alert: ").skip(1).collect();
    assert_eq!(rules.len(), 13);
    for rule in rules {
        for part in ["\n        expr: ", "\n        labels:\n          severity: "] {
            assert!(rule.contains(part), "{part}: {rule}");
        }
        for part in ["\n        annotations:\n", "          summary: ", "          description: "] {
            assert!(rule.contains(part), "{part}: {rule}");
        }
    }
    assert!(!text.contains('\t'));
}

/// The daily run succeeds daily, and shows what the others show: it has a rule of its own, and is
/// left out of those that would fire by it for nothing, or twice.
#[test]
fn the_daily_schedule_has_rules_of_its_own() {
    let text = shipped("alerts.yml");
    let rules: Vec<(&str, &str)> = text
        .split("\n      - alert: ")
        .skip(1)
        .map(|rule| (rule.lines().next().unwrap(), rule))
        .collect();
    for (name, rule) in rules {
        let expr = rule.split_once("\n        expr: ").unwrap().1.lines().next().unwrap();
        let own = name == "TieoutNoDailySuccess";
        assert_eq!(expr.contains("scope=\"daily\""), own, "{name}");
        // A residual is its run's own.
        let others = !own && name != "TieoutUntied";
        assert_eq!(expr.contains("scope!=\"daily\""), others, "{name}");
    }
}

/// Whatever compares a metric is silent where there is none.
#[test]
fn a_rule_fires_where_no_metric_comes_at_all() {
    let text = shipped("alerts.yml");
    let absent = "expr: absent(tieout_last_success_timestamp_seconds{";
    assert_eq!(text.matches(absent).count(), 1);
}

/// A rule by a reason that no case has would never fire; money that may be taken twice has one.
#[test]
fn rules_by_reason_name_reasons_that_there_are() {
    let text = shipped("alerts.yml");
    let matcher = Regex::new(r#"reason=~?"([a-z_.*]+)""#).unwrap();
    let patterns: Vec<Regex> = matcher
        .captures_iter(&text)
        .map(|found| Regex::new(&format!("^(?:{})$", &found[1])).unwrap())
        .collect();
    let known = |pattern: &Regex| Reason::ALL.iter().any(|r| pattern.is_match(r.as_str()));
    assert!(patterns.iter().all(known), "{patterns:?}");
    let money = [Reason::DuplicateCapture, Reason::DuplicateLive, Reason::LateContradiction];
    for reason in money.into_iter().chain([Reason::FileMissing]) {
        let is_told = patterns.iter().any(|pattern| pattern.is_match(reason.as_str()));
        assert!(is_told, "{}", reason.as_str());
    }
}

/// The page's table is the program's list, in its order.
#[test]
fn the_page_of_monitoring_has_every_condition_with_its_class() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/monitoring.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| condition | class |").unwrap();
    let row = Regex::new(r"^\| `([a-z_]+)(?:/[A-Z]+)?` \| ([a-z]+) \|").unwrap();
    let rows = table.lines().skip(2).map_while(|line| row.captures(line));
    let found: Vec<(String, String)> =
        rows.map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
    let want: Vec<(String, String)> = Kind::ALL
        .iter()
        .map(|kind| kind.as_str())
        .map(|kind| (kind.to_owned(), class_of(kind).class().to_owned()))
        .collect();
    assert_eq!(found, want);
}

#[test]
fn every_panel_has_a_query_and_a_place() {
    let dashboard: Value = serde_json::from_str(&shipped("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert!(panel["title"].is_string() && panel["gridPos"]["w"].is_u64(), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            assert!(target["expr"].as_str().unwrap().contains("scope=~\"$scope\""), "{panel}");
        }
    }
    assert!(panels.len() >= 8);
}
