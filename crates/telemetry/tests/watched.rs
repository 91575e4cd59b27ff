//! What is written down about metrics: in docs/telemetry.md, on the dashboard, in the alerts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::{collections::BTreeSet, path::Path};

use regex::Regex;
use serde_json::Value;
use telemetry::catalogue::{ALL, Kind, Metric};

/// Of the Prometheus client, and of Prometheus itself.
const OTHERS: [&str; 3] = ["process_cpu_seconds_total", "process_resident_memory_bytes", "up"];

/// What Prometheus adds to every series.
const ADDED: [&str; 3] = ["instance", "job", "le"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails if `expression` names a metric that there is not, or a label that the metric has not.
fn judge(expression: &str) {
    // What stands in quotes is a value.
    let bare = Regex::new("\"[^\"]*\"").unwrap().replace_all(expression, "\"\"");
    let names = Regex::new(r"\b(?:brew|rpc|process|target)_[a-z_]+\b|\bup\b").unwrap();
    let found: Vec<&str> = names.find_iter(&bare).map(|name| name.as_str()).collect();
    let labelled = |name: &&&str| !matches!(**name, "rpc_method" | "rpc_response_status_code");
    let metrics: Vec<&&str> = found.iter().filter(labelled).collect();
    assert!(!metrics.is_empty(), "no metric in {expression}");
    let mut known: BTreeSet<&str> = ADDED.into();
    for name in metrics {
        if OTHERS.contains(name) {
            continue;
        }
        let metric = metric(name).unwrap_or_else(|| panic!("there is no metric {name}: {expression}"));
        known.extend(metric.labels);
    }
    let by = Regex::new(r"\bby \(([^)]*)\)|\{([^}]*)\}").unwrap();
    for group in by.captures_iter(&bare) {
        for label in group.get(1).or(group.get(2)).unwrap().as_str().split(',') {
            let label = label.split(['=', '!']).next().unwrap().trim();
            assert!(known.contains(label), "no metric has the label {label}: {expression}");
        }
    }
}

/// The metric with the series `name`: of a histogram, its buckets, its sum and its count.
fn metric(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| match metric.kind {
        Kind::Histogram => {
            ["_bucket", "_sum", "_count"].iter().any(|end| name == format!("{}{end}", metric.name))
        }
        Kind::Counter | Kind::Gauge => name == metric.name,
    })
}

#[test]
fn every_metric_stands_in_the_docs_with_its_kind_and_labels() {
    let docs = read("docs/telemetry.md");
    for Metric { name, kind, help, labels } in &ALL {
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let labels = if labels.is_empty() { "–" } else { &labels };
        let line = format!("| `{name}` | {} | {labels} | {help} |\n", format!("{kind:?}").to_lowercase());
        assert!(docs.contains(&line), "docs/telemetry.md has not\n{line}");
    }
    let listed =
        docs.lines().filter(|line| line.starts_with("| `brew_") || line.starts_with("| `rpc_")).count();
    assert_eq!(listed, ALL.len(), "docs/telemetry.md has a metric that there is not");
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are_and_for_all_of_them() {
    let dashboard = read("deploy/grafana/brew.json");
    let parsed: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = parsed["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_i64().unwrap()), "two panels have the id {}", panel["id"]);
        for target in panel["targets"].as_array().into_iter().flatten() {
            judge(target["expr"].as_str().unwrap());
        }
    }
    for metric in &ALL {
        assert!(dashboard.contains(metric.name), "the dashboard has no {}", metric.name);
    }
}

#[test]
fn every_alert_asks_for_metrics_that_there_are_fires_in_a_test_and_is_in_the_runbook() {
    let (rules, tests) = (read("deploy/prometheus/alerts.yml"), read("deploy/prometheus/alerts_test.yml"));
    let runbook = read("docs/runbook.md");
    let rules: Value = serde_norway::from_str(&rules).unwrap();
    let tests: Value = serde_norway::from_str(&tests).unwrap();
    let tests = tests["tests"].as_array().unwrap();
    let rules =
        rules["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    let mut count = 0;
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        judge(rule["expr"].as_str().unwrap());
        assert!(runbook.contains(&format!("\n### {name}\n")), "the runbook has no {name}");
        let place = format!("docs/runbook.md#{}", name.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"], place.as_str());
        let of_rule = |test: &&Value| test["alertname"] == name;
        let all = tests.iter().flat_map(|test| test["alert_rule_test"].as_array().unwrap());
        let fires = |test: &Value| !test["exp_alerts"].as_array().unwrap().is_empty();
        assert!(all.clone().filter(of_rule).any(fires), "{name} fires in no test");
        assert!(all.filter(of_rule).any(|test| !fires(test)), "{name} is silent in no test");
        count += 1;
    }
    assert!(count >= 10);
}

#[test]
#[should_panic(expected = "there is no metric brew_outbox_pendings")]
fn a_metric_that_there_is_not_is_found() {
    judge("max by (source) (brew_outbox_pendings)");
}

#[test]
#[should_panic(expected = "no metric has the label topic")]
fn a_label_that_there_is_not_is_found() {
    judge("max by (topic) (brew_outbox_pending_rows)");
}
