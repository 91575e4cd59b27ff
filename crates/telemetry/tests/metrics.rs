//! What Prometheus reads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::Write,
    process::{Command, Stdio},
};

use opentelemetry::KeyValue;
use telemetry::{
    catalogue::{ALL, Kind, Metric},
    metrics,
};

/// Gives `metric` a value, with each of its labels.
fn record(metric: &Metric) {
    let labels: Vec<KeyValue> = metric.labels.iter().map(|label| KeyValue::new(*label, "some")).collect();
    match metric.kind {
        Kind::Counter => metrics::counter(metric).add(1, &labels),
        Kind::Gauge => metrics::gauge(metric).record(1.0, &labels),
        Kind::Histogram => metrics::seconds(metric).record(1.0, &labels),
    }
}

#[tokio::test]
async fn every_metric_of_the_catalogue_is_scraped_under_its_name_with_its_kind_and_labels() {
    let _guard = telemetry::init("tester").unwrap();
    for metric in &ALL {
        record(metric);
    }
    let text = metrics::text().unwrap();
    for Metric { name, kind, help, labels } in &ALL {
        let kind = format!("{kind:?}").to_lowercase();
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} is no {kind} in\n{text}");
        assert!(text.contains(&format!("# HELP {name} {help}\n")), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        let sample = text.lines().find(|line| {
            line.starts_with(*name) && labels.iter().all(|label| line.contains(&format!("{label}=\"some\"")))
        });
        assert!(sample.is_some(), "{name} has not its labels in\n{text}");
    }
    assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
    as_prometheus_reads_it(&text);
}

/// Prometheus' own parser and its rules for names, where it is installed.
fn as_prometheus_reads_it(text: &str) {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        // Past the harness, which shows nothing of a test that passes.
        let _told =
            writeln!(std::io::stderr(), "not run: promtool check metrics (promtool is not installed)");
        return;
    };
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
