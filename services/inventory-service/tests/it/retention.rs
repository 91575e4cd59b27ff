//! The law that what was applied is remembered longer than it can come again.

use std::{sync::Arc, time::Duration};

use inventory_service::{Options, serve};
use messaging::{KafkaOptions, Tally, retentions};
use testkit::run_to_end;
use tokio_util::sync::CancellationToken;

use crate::shelf::{CONSUMER, Shelf};

/// As testkit makes topics.
const TOPIC_MS: u64 = 3_600_000;

#[tokio::test]
async fn settings_that_break_the_law_stop_the_start() {
    let shelf = Shelf::new().await;
    let brokers = testkit::kafka().brokers;
    let settings = [
        ("BREW__DATABASE__URL", shelf.database.url.as_str()),
        ("BREW__GRPC__ADDRESS", "127.0.0.1:0"),
        ("BREW__KAFKA__BROKERS", brokers.as_str()),
        ("BREW__CONSUMER__TOPICS", shelf.topic.as_str()),
        ("BREW__INBOX__RETENTION_MS", "3601000"),
        ("BREW__INBOX__LONGEST_REPLAY_MS", "1000"),
    ];
    let end = run_to_end(env!("CARGO_BIN_EXE_inventory-service"), &["--exit-when-idle"], &settings).await;
    assert!(!end.status.success());
    let said = String::from_utf8(end.stderr).unwrap();
    assert!(said.contains("`inbox.retention_ms` is 3601000"), "{said}");
    assert!(
        said.contains(&format!("`retention.ms` of topic `{}`, which is {TOPIC_MS}", shelf.topic)),
        "{said}"
    );
}

#[tokio::test]
async fn the_broker_is_asked_what_it_keeps() {
    let shelf = Shelf::new().await;
    let topics = [shelf.topic.clone()];
    let told = retentions(&testkit::kafka(), &topics, Duration::from_secs(20)).await.unwrap();
    assert_eq!(told, [(shelf.topic.clone(), Some(TOPIC_MS))].into());
    let nowhere = KafkaOptions { brokers: "127.0.0.1:1".to_owned(), ..testkit::kafka() };
    assert!(retentions(&nowhere, &topics, Duration::from_millis(300)).await.is_err());
    let missing = ["test.no.such.topic".to_owned()];
    assert!(retentions(&testkit::kafka(), &missing, Duration::from_secs(20)).await.is_err());
}

/// Away, it tells nothing, and that is no reason not to serve what needs no broker.
#[tokio::test]
async fn with_the_broker_away_the_service_starts_and_prunes_nothing() {
    let shelf = Shelf::new().await;
    let sql = "insert into processed_outbox_ids (outbox_id, source, event_id, consumer, processed_at)
               values (1, 'order-service', gen_random_uuid(), $1, now() - interval '90 days')";
    shelf.database.client().await.execute(sql, &[&CONSUMER]).await.unwrap();
    let mut settings = shelf.settings("a");
    settings.kafka.brokers = "127.0.0.1:1".to_owned();
    settings.inbox.retention_ms = 1;
    settings.inbox.prune_every_ms = 1;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    settings.grpc.address = free.local_addr().unwrap();
    drop(free);
    let (address, shutdown) = (settings.grpc.address, CancellationToken::new());
    let service = serve(settings, Options::default(), Arc::new(Tally::default()), shutdown.clone());
    let watch = async {
        testkit::until("gRPC", async || tokio::net::TcpStream::connect(address).await.ok()).await;
        shutdown.cancel();
    };
    let (ended, ()) = tokio::join!(service, watch);
    ended.unwrap();
    assert_eq!(shelf.database.number("select count(*) from processed_outbox_ids").await, 1);
}

#[tokio::test]
async fn a_running_service_forgets_what_is_old_and_nothing_else() {
    let shelf = Shelf::new().await;
    let sql = "insert into processed_outbox_ids (outbox_id, source, event_id, consumer, processed_at)
               select id, 'order-service', gen_random_uuid(), $1, now() - make_interval(mins => id * 10)
                 from generate_series(1, 20) as id";
    shelf.database.client().await.execute(sql, &[&CONSUMER]).await.unwrap();
    let mut settings = shelf.settings("a");
    settings.inbox.retention_ms = TOPIC_MS + 35 * 60_000;
    settings.inbox.longest_replay_ms = 60_000;
    settings.inbox.prune_every_ms = 20;
    settings.inbox.prune_chunk_rows = 3;
    let shutdown = CancellationToken::new();
    let service = serve(settings, Options::default(), Arc::new(Tally::default()), shutdown.clone());
    let watch = async {
        // 95 minutes are kept: the nine that were applied 10 to 90 minutes ago.
        let left = "select count(*) from processed_outbox_ids";
        testkit::until("old ids to go", async || (shelf.database.number(left).await == 9).then_some(()))
            .await;
        shutdown.cancel();
    };
    let (ended, ()) = tokio::join!(service, watch);
    ended.unwrap();
    assert_eq!(shelf.database.number("select max(outbox_id) from processed_outbox_ids").await, 9);
}
