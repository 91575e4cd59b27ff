//! What a real broker does not do on command: refusals and slowness, of the one in this process.

use std::{collections::BTreeMap, time::Duration};

use messaging::{EmbeddedBroker, KafkaOptions, ProducerFailure, read_all};
use relay::{Mode, Options, Source, Target, Turn, TurnError, Worker};
use testkit::{History, TestDatabase, history, relay_options, start_relay, until};
use tokio_util::sync::CancellationToken;

const TOPIC: &str = "orders";

struct Stage {
    broker: EmbeddedBroker,
    kafka: KafkaOptions,
    database: TestDatabase,
}

impl Stage {
    async fn new() -> Self {
        let broker = EmbeddedBroker::start(&[(TOPIC.to_owned(), 6)]).unwrap();
        let kafka = KafkaOptions { brokers: broker.brokers(), ..testkit::kafka() };
        Self { broker, kafka, database: testkit::database(outbox::migrations("shop")).await }
    }

    /// Ten events each of twenty aggregates.
    async fn append(&self) {
        let insert = format!(
            "insert into outbox (aggregate_id, topic, payload)
             select 'order-' || n % 20, '{TOPIC}', '{{}}' from generate_series(1, 200) n"
        );
        self.database.client().await.batch_execute(&insert).await.unwrap();
    }

    async fn marked(&self) -> Vec<i64> {
        let ids =
            "select coalesce(array_agg(id order by id), '{}') from outbox where published_at is not null";
        self.database.client().await.query_one(ids, &[]).await.unwrap().get(0)
    }

    async fn log(&self) -> History {
        history(&read_all(&self.kafka, TOPIC, Duration::from_secs(60)).await.unwrap())
    }
}

/// After such an answer a client never sends again (librdkafka #3584): the relay goes on with another.
#[tokio::test]
async fn a_producer_that_is_done_for_is_replaced_and_nothing_of_its_batch_is_marked_unsent() {
    let stage = Stage::new().await;
    let target = Target { kafka: stage.kafka.clone(), declared: BTreeMap::new() };
    let options = Options { max_shards: 64, batch_size: 1000, ..relay_options() };
    let mut relay = Worker::new(Source::new("test", &stage.database.url), target, options, None);
    stage.append().await;
    assert_eq!(relay.drain_once().await.unwrap(), Turn::Moved { rows: 200 });

    stage.broker.refuse_as_out_of_order();
    stage.append().await;
    let turn = relay.drain_once().await;
    let Err(TurnError::Send { acknowledged, failure: ProducerFailure::Fatal(_) }) = turn else {
        panic!("the answer was not fatal: {turn:?}")
    };
    assert!(acknowledged < 200);
    let (marked, log) = (stage.marked().await, stage.log().await);
    assert!(marked.iter().all(|id| log.ids.contains(id)), "marked and not in the log");
    assert_eq!(marked.len(), 200 + acknowledged);

    assert_eq!(relay.drain_once().await.unwrap(), Turn::Moved { rows: 200 - acknowledged });
    relay.close().await;
    let log = stage.log().await;
    assert_eq!((log.ids.len(), log.out_of_order().len()), (400, 0));
}

/// A slow broker must not become the database's problem: one transaction a relay, whoever writes does not wait, and
/// a claim that the server ends is lost without harm (Agendia #323, transaction-outbox #788).
#[tokio::test]
async fn while_the_broker_is_slow_a_relay_holds_one_transaction_and_hinders_no_writer() {
    let stage = Stage::new().await;
    stage.broker.delay(Duration::from_secs(1)).unwrap();
    let shutdown = CancellationToken::new();
    let start = || start_relay(&stage.database.url, &stage.kafka, relay_options(), Mode::Forever, &shutdown);
    let relays = [start(), start(), start()];
    let writer = stage.database.client().await;
    writer.batch_execute("set lock_timeout = '500ms'").await.unwrap();
    let claims = "from pg_stat_activity where datname = current_database()
                   and application_name = 'brew-relay' and state = 'idle in transaction'";
    let (open, end) = (
        format!("select count(*) {claims}"),
        format!("select count(pg_terminate_backend(pid)) from (select pid {claims} limit 1) one"),
    );
    let mut most = 0;
    for round in 0..30 {
        let insert = format!(
            "insert into outbox (aggregate_id, topic, payload)
             select 'order-' || n % 20, '{TOPIC}', '{{}}' from generate_series(1, 20) n"
        );
        writer.batch_execute(&insert).await.unwrap();
        until("a claim", async || (stage.database.number(&open).await > 0).then_some(())).await;
        most = most.max(stage.database.number(&open).await);
        if round % 10 == 5 {
            stage.database.number(&end).await;
        }
    }
    assert!(most <= 3, "{most} transactions of three relays");
    stage.broker.delay(Duration::ZERO).unwrap();
    let pending = "select count(*) from outbox where published_at is null";
    until("all to be published", async || (stage.database.number(pending).await == 0).then_some(())).await;
    shutdown.cancel();
    for relay in relays {
        relay.await.unwrap();
    }
    let log = stage.log().await;
    assert_eq!((log.ids.len(), log.out_of_order().len()), (600, 0));
}
