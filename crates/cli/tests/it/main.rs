//! The lab, verb by verb, on the Postgres and the Kafka of the tests, as `DATABASE_URL` and `KAFKA_BROKERS` give
//! them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::PathBuf;

use tokio::process::Command;

const BREW: &str = env!("CARGO_BIN_EXE_brew");

struct Lab {
    state: PathBuf,
    database: String,
    brokers: String,
}

impl Lab {
    /// A lab on given infrastructure, with its state in a folder of its own.
    fn new() -> Self {
        let variable = |name| std::env::var(name).expect("run the tests by `make test`");
        Self {
            state: std::env::temp_dir().join(format!("brew-lab-test-{}", std::process::id())),
            database: variable("BREW_TEST_POSTGRES"),
            brokers: variable("BREW_TEST_KAFKA"),
        }
    }

    async fn brew(&self, arguments: &str) -> String {
        let output = Command::new(BREW)
            .args(arguments.split(' '))
            .env("BREW_STATE", &self.state)
            .env("DATABASE_URL", &self.database)
            .env("KAFKA_BROKERS", &self.brokers)
            .output()
            .await
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "brew {arguments}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn starting_with(text: &str, prefix: &str) -> usize {
    text.lines().filter(|line| line.starts_with(prefix)).count()
}

/// All on one broker, one after the other, since the topics' names are fixed.
#[tokio::test]
async fn the_lab_and_the_storms() {
    let lab = Lab::new();
    every_number_of_the_lab_comes_out(&lab).await;
    services_killed_at_random(&lab).await;
    a_provider_that_misbehaves(&lab).await;
    five_hundred_orders_for_a_hundred_cakes(&lab).await;
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
    assert!(said.contains("killed "), "{said}");
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
        let ends = lab.brew("lab end-offsets").await;
        assert_eq!(ends.lines().count(), 7);
        assert!(ends.lines().last().unwrap().ends_with(&format!(" {}", count + batch)), "{ends}");
        lab.brew("local reset").await;
    }
}

#[tokio::test]
async fn a_lab_without_infrastructure_says_what_to_do() {
    let nowhere = std::env::temp_dir().join(format!("brew-lab-none-{}", std::process::id()));
    let output =
        Command::new(BREW).args(["lab", "db-count"]).env("BREW_STATE", nowhere).output().await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("make up"));
}
