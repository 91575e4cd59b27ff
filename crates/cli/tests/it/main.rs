//! The lab, verb by verb, on the Postgres and the Kafka of the tests, as `DATABASE_URL` and `KAFKA_BROKERS` give
//! them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod bench;
mod trace;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use events::{header, topic};
use messaging::{KafkaOptions, Producer, Record};
use tokio::process::Command;

const BREW: &str = env!("CARGO_BIN_EXE_brew");

struct Lab {
    state: PathBuf,
    database: String,
    brokers: String,
}

impl Lab {
    /// A lab on given infrastructure, with its state in a folder of its own.
    fn new(name: &str) -> Self {
        let variable = |name| std::env::var(name).expect("run the tests by `make test`");
        Self {
            state: std::env::temp_dir().join(format!("brew-{name}-test-{}", std::process::id())),
            database: variable("BREW_TEST_POSTGRES"),
            brokers: variable("BREW_TEST_KAFKA"),
        }
    }

    /// What `brew` prints; it must succeed.
    async fn brew(&self, arguments: &str) -> String {
        let (code, said, noted) = self.ends(arguments, None).await;
        assert_eq!(code, Some(0), "brew {arguments}: {said}{noted}");
        said
    }

    /// How `brew` ends, and what it prints, when each service has `bug`.
    async fn ends(&self, arguments: &str, bug: Option<&str>) -> (Option<i32>, String, String) {
        let mut command = self.command(arguments);
        let output = command.envs(bug.map(|bug| ("BREW_SEEDED_BUG", bug))).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(BREW);
        command
            .args(arguments.split(' '))
            .env("BREW_STATE", &self.state)
            .env("DATABASE_URL", &self.database)
            .env("KAFKA_BROKERS", &self.brokers)
            .kill_on_drop(true);
        command
    }
}

fn starting_with(text: &str, prefix: &str) -> usize {
    text.lines().filter(|line| line.starts_with(prefix)).count()
}

/// All on one broker, one after the other, since the topics' names are fixed.
#[tokio::test]
async fn the_lab_and_the_storms() {
    let lab = Lab::new("lab");
    the_lab_delivers_exactly_once(&lab).await;
    every_number_of_the_lab_comes_out(&lab).await;
    a_dead_letter_is_listed_shown_redriven_and_discarded(&lab).await;
    services_killed_at_random(&lab).await;
    a_provider_that_misbehaves(&lab).await;
    five_hundred_orders_for_a_hundred_cakes(&lab).await;
    each_seeded_bug_is_found(&lab).await;
    a_writer_that_tells_two_one_after_the_other_loses_or_invents(&lab).await;
    trace::in_jaeger(&lab).await;
}

/// The arguments are those of `brew storm`; it fails when an invariant is broken.
async fn storm(lab: &Lab, arguments: &str) -> String {
    lab.brew("local up").await;
    let said = lab.brew(&format!("storm {arguments}")).await;
    assert!(said.contains("verify: all hold"), "{said}");
    let verified = lab.brew("verify --json").await;
    assert_eq!(verified.matches("\"broken\": []").count(), 10, "{verified}");
    lab.brew("local reset").await;
    said
}

async fn services_killed_at_random(lab: &Lab) {
    let said = storm(lab, "--orders 500 --kills 8").await;
    assert!(said.contains("accepted=500"), "{said}");
    for service in ["order", "inventory", "payment"].map(|name| format!("killed {name}-service=")) {
        assert!(said.contains(&service), "{said}");
    }
    assert!(said.contains("killed outbox-publisher=") && said.contains("killed payment-gateway="), "{said}");
}

async fn a_provider_that_misbehaves(lab: &Lab) {
    let said = storm(lab, "--orders 150 --misbehave 30").await;
    assert!(said.contains("orders completed="), "{said}");
}

async fn five_hundred_orders_for_a_hundred_cakes(lab: &Lab) {
    // Five are on the shelf.
    let said = storm(lab, "--orders 500 --sku panettone --restock 95").await;
    assert!(said.contains("orders completed=100\n"), "{said}");
    assert!(said.contains("orders cancelled=400\n"), "{said}");
}

/// A bug of the product, what else the storm takes to bring it out, and the invariant that must find it.
const BUGS: [(&str, &str, &str); 11] = [
    ("marks-unsent", "", "no lost event"),
    ("forges-event-id", "", "no phantom"),
    ("rewrites-copies", "", "copies agree"),
    // Only rows of one order that are claimed together can go out backwards.
    ("sends-backwards", " --cancel 80 --backlog", "order per aggregate"),
    ("swallows-events", "", "effect once"),
    ("answers-twice", "", "effect once"),
    ("leaves-shelf", "", "stock adds up"),
    ("believes-capture", "", "money adds up"),
    ("new-key-per-try", " --misbehave 60", "no double capture"),
    ("ignores-capture", "", "none stuck"),
    ("leaves-shards", "", "drained"),
];

/// The services are built with the feature `seeded-bugs` of `runtime`: run the tests by `make test`.
async fn each_seeded_bug_is_found(lab: &Lab) {
    let mut invariants = BTreeSet::new();
    for (bug, more, invariant) in BUGS {
        lab.brew("local up").await;
        let storm = format!("storm --orders 60 --quiet 5s{more}");
        let (code, said, noted) = lab.ends(&storm, Some(bug)).await;
        assert_eq!(code, Some(1), "{bug}: {said}{noted}");
        let (code, verified, _) = lab.ends("verify --json", None).await;
        assert_eq!(code, Some(1));
        let findings: Vec<serde_json::Value> = serde_json::from_str(&verified).unwrap();
        let broken = |finding: &&serde_json::Value| finding["broken"] != serde_json::json!([]);
        let broken: Vec<&str> =
            findings.iter().filter(broken).map(|finding| finding["invariant"].as_str().unwrap()).collect();
        assert!(broken.iter().any(|found| found.starts_with(invariant)), "{bug}: {broken:?}\n{said}");
        invariants.insert(invariant);
        lab.brew("local reset").await;
    }
    assert_eq!(invariants.len(), 10, "an invariant has no bug");
}

/// `brew` itself compares what it sees with what the lesson says.
async fn a_writer_that_tells_two_one_after_the_other_loses_or_invents(lab: &Lab) {
    let said = lab.brew("dual-write kafka-first").await;
    assert!(said.contains("verify, after kafka-first: ") && said.contains("is of no outbox row"), "{said}");
    let said = lab.brew("dual-write db-first").await;
    assert!(
        said.contains("verify, after db-first: ") && said.contains("is marked and in no topic"),
        "{said}"
    );
}

async fn every_number_of_the_lab_comes_out(lab: &Lab) {
    for (count, batch) in [(20, 5), (100, 20)] {
        lab.brew("local up").await;
        lab.brew("lab db-init").await;
        lab.brew("lab topic-create").await;
        lab.brew(&format!("lab run-service --count {count}")).await;
        for verb in ["db-count", "outbox-count", "outbox-pending"] {
            assert_eq!(lab.brew(&format!("lab {verb}")).await, format!("{count}\n"), "{verb}");
        }
        let chaos = lab.brew(&format!("lab chaos-kill-publisher --batch-size {batch}")).await;
        assert_eq!((starting_with(&chaos, "PUB outbox_id="), starting_with(&chaos, "CRASH ")), (batch, 1));
        assert_eq!(lab.brew("lab outbox-pending").await, format!("{count}\n"));

        let run = lab.brew("lab run-publisher").await;
        assert_eq!(starting_with(&run, "PUB outbox_id="), count);
        assert_eq!(lab.brew("lab outbox-pending").await, "0\n");

        let run = lab.brew("lab run-consumer").await;
        let sums = format!("processed={} inserted={count} skipped={batch}", count + batch);
        assert_eq!(run.lines().last(), Some(sums.as_str()));
        assert_eq!((starting_with(&run, "INSERT "), starting_with(&run, "DUP ")), (count, batch));
        assert_eq!(lab.brew("lab dup-count").await, format!("{count}\n"));
        let outboxes: serde_json::Value =
            serde_json::from_str(&lab.brew("outbox status --json").await).unwrap();
        assert_eq!((&outboxes[0]["published"], &outboxes[0]["pending"]), (&count.into(), &0.into()));
        // Nobody publishes the answers in the lab.
        assert_eq!(outboxes[1]["pending"], count);
        assert!(outboxes[1]["oldest_pending_age_ms"].as_i64().unwrap() > 0);
        let topics: serde_json::Value = serde_json::from_str(&lab.brew("end-offsets --json").await).unwrap();
        let records: i64 =
            topics[0]["end_offsets"].as_array().unwrap().iter().filter_map(serde_json::Value::as_i64).sum();
        assert_eq!(records, count as i64 + batch as i64);
        let ends = lab.brew("lab end-offsets").await;
        assert_eq!(ends.lines().count(), 8);
        for told in ends.lines().skip(6) {
            assert!(told.ends_with(&format!(" {}", count + batch)), "{ends}");
        }
        lab.brew("local reset").await;
    }
}

/// A publisher that dies after the commit in Kafka and before the mark has nothing to send again.
async fn the_lab_delivers_exactly_once(lab: &Lab) {
    for step in ["local up", "lab db-init", "lab topic-create", "lab run-service"] {
        lab.brew(step).await;
    }
    let chaos = lab.brew("lab chaos-kill-publisher --delivery exactly-once").await;
    let sent = starting_with(&chaos, "PUB outbox_id=");
    assert_eq!((sent > 0, starting_with(&chaos, "CRASH ")), (true, 1), "{chaos}");
    assert_eq!(lab.brew("lab outbox-pending").await, "20\n");
    let run = lab.brew("lab run-publisher --delivery exactly-once").await;
    // What other lanes had committed when it died was not told of.
    assert!(starting_with(&run, "PUB outbox_id=") + sent <= 20, "{run}");
    assert_eq!(lab.brew("lab outbox-pending").await, "0\n");
    let run = lab.brew("lab run-consumer").await;
    assert_eq!(run.lines().last(), Some("processed=20 inserted=20 skipped=0"));
    let ends = lab.brew("lab end-offsets").await;
    assert!(ends.lines().last().unwrap().ends_with(" 20"), "{ends}");
    lab.brew("local reset").await;
}

async fn a_dead_letter_is_listed_shown_redriven_and_discarded(lab: &Lab) {
    const LETTERS: &str = "brew.orders.v1.inventory-service.dlq";
    for step in ["local up", "lab db-init", "lab topic-create"] {
        lab.brew(step).await;
    }
    let listed = async |filter: &str| -> Vec<serde_json::Value> {
        serde_json::from_str(&lab.brew(&format!("dlq list --json{filter}")).await).unwrap()
    };
    assert_eq!(listed("").await, [] as [serde_json::Value; 0]);
    poison(lab).await;
    assert!(lab.brew("lab run-consumer").await.ends_with("dead_letters=1\n"));

    let letter = listed("").await.pop().unwrap();
    assert_eq!((&letter["key"], &letter["outbox_id"]), (&"order-7".into(), &7.into()));
    assert!(letter["why"].as_str().unwrap().contains("payload cannot be read"), "{letter}");
    assert_eq!(listed(" --of payment-service").await, [] as [serde_json::Value; 0]);
    let at = letter["at"].as_str().unwrap();
    let shown = lab.brew(&format!("dlq show {LETTERS} {at}")).await;
    assert!(shown.contains("payload      {") && shown.contains("event-type: order.created"), "{shown}");

    assert!(lab.brew("dlq redrive --all --dry-run").await.starts_with("would redrive "));
    assert!(lab.brew("dlq redrive --key order-7").await.starts_with(&format!("redrive {LETTERS} {at}, ")));
    assert_eq!(listed("").await, [] as [serde_json::Value; 0]);
    // It is as unreadable as before.
    assert!(lab.brew("lab run-consumer").await.ends_with("dead_letters=1\n"));
    let again = listed("").await.pop().unwrap();
    assert_eq!(again["first_place"], letter["from"]);
    assert_ne!(again["from"], letter["from"]);
    let discard = format!("dlq discard --topic {LETTERS} {}", again["at"].as_str().unwrap());
    assert_eq!(lab.ends(&discard, None).await.0, Some(1), "without a reason");
    lab.brew(&format!("{discard} --why unreadable")).await;
    assert_eq!(lab.ends(&format!("{discard} --why unreadable"), None).await.0, Some(1), "a second time");
    lab.brew("local reset").await;
}

/// A record that no consumer can read.
async fn poison(lab: &Lab) {
    let kafka = KafkaOptions { brokers: lab.brokers.clone(), max_message_bytes: 1_000_000, partitions: 6 };
    let timeout = Duration::from_secs(20);
    let headers = vec![
        (header::OUTBOX_ID, b"7".as_slice().into()),
        (header::AGGREGATE_ID, b"order-7".as_slice().into()),
        (header::OUTBOX_SOURCE, b"order-service".as_slice().into()),
        (header::EVENT_ID, b"01890a5d-ac96-774b-bcce-b302099a8057".as_slice().into()),
        (header::EVENT_TYPE, b"order.created".as_slice().into()),
    ];
    let record = Record { topic: topic::ORDERS, key: b"order-7", payload: b"{", headers };
    let mut producer = Producer::connect(&kafka, "test", timeout).await.unwrap();
    let sent = producer.send(&[record], tokio::time::Instant::now() + timeout).await;
    assert!(sent.acks[0].is_some(), "{sent:?}");
}

#[tokio::test]
async fn a_lab_without_infrastructure_says_what_to_do() {
    let nowhere = std::env::temp_dir().join(format!("brew-lab-none-{}", std::process::id()));
    let output =
        Command::new(BREW).args(["lab", "db-count"]).env("BREW_STATE", nowhere).output().await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("make up"));
}

#[tokio::test]
async fn completions_know_the_verbs() {
    let output = Command::new(BREW).args(["completions", "bash"]).output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(["dual-write", "end-offsets", "storm"].iter().all(|verb| said.contains(verb)));
}
