//! A bench in small: its figures say nothing, but all are there, and none where something is wrong.

use serde_json::Value;

use crate::Lab;

const SMALL: &str = "bench --events 1000 --repeats 1 --latency 300ms --quiet-wait 0s --out";

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is no number"))
}

#[tokio::test]
async fn a_bench_measures_every_part() {
    let lab = Lab::new("bench");
    let out = lab.state.join("out");
    let said = lab.brew(&format!("{SMALL} {} --backlog 2000 --held-snapshot --json", out.display())).await;
    let all: Value = serde_json::from_str(&said).unwrap();
    let (medians, measured) = (&all["medians"], &all["measured"]);
    for part in ["drain", "fetch_and_mark", "produce", "consumer"] {
        assert!(number(&medians[part]["per_second"]) > 0.0, "{part}");
        // Postgres and Kafka of the tests are not the bench's own.
        assert_eq!(medians[part]["postgres_cpu_s"], Value::Null);
        assert_eq!(medians[part]["kafka_cpu_s"], Value::Null);
    }
    for part in ["drain", "fetch_and_mark", "consumer"] {
        assert!(number(&medians[part]["wal_bytes"]) > 100.0, "{part}");
    }
    let drain = &measured["rates"]["drain"];
    assert_eq!(drain["check"]["events"], 2000);
    assert!(number(&drain["figures"]["resident_mb"]) > 1.0);
    for (latency, notify) in measured["latency"].as_array().unwrap().iter().zip([true, false]) {
        let figures = &latency["figures"];
        assert_eq!(figures["notify"], notify);
        let times = &figures["commit_to_readable"];
        assert!(number(&times["p50_ms"]) > 0.0 && number(&times["max_ms"]) >= number(&times["p99_ms"]));
    }
    let order = &measured["place_order"];
    // Which is more is not asked: other tests write to the same log at the same time.
    assert!(number(&order["with"]["wal_bytes"]) > 100.0 && number(&order["without"]["wal_bytes"]) > 100.0);
    let backlog = &measured["backlog"];
    assert_eq!((&backlog["check"]["events"], &backlog["check"]["lost"]), (&2000.into(), &0.into()));
    assert!(std::fs::read_to_string(out.join("bench.svg")).unwrap().contains("events/s"));
    assert!(out.join("bench.json").exists());
    std::fs::remove_dir_all(&lab.state).unwrap();
}

/// The publisher is built with bugs that can be switched on: run the tests by `make test`.
#[tokio::test]
async fn a_publisher_that_sends_backwards_has_no_rate() {
    let lab = Lab::new("bad-bench");
    let out = lab.state.join("out");
    let (code, said, noted) =
        lab.ends(&format!("{SMALL} {} --only rates", out.display()), Some("sends-backwards")).await;
    assert_eq!(code, Some(1), "{said}{noted}");
    assert!(said.contains("NOT CORRECT"), "{said}");
    assert!(said.contains("fetch and mark") && !said.contains("outbox-publisher"), "{said}");
    let all: Value = serde_json::from_slice(&std::fs::read(out.join("bench.json")).unwrap()).unwrap();
    let drain = &all["measured"]["rates"]["drain"];
    assert!(number(&drain["check"]["out_of_order"]) > 0.0);
    assert_eq!((&drain["figures"], &all["medians"]["drain"]), (&Value::Null, &Value::Null));
    std::fs::remove_dir_all(&lab.state).unwrap();
}
