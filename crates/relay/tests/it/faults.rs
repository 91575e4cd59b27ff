//! Brokers that are away, rows that cannot be sent, topics that are not as declared.

use std::collections::BTreeMap;

use messaging::KafkaOptions;
use relay::{Mode, Options, Source, Target, Turn, TurnError, Worker};
use testkit::{TestDatabase, drain, history, relay_options, start_relay, until};
use tokio_util::sync::CancellationToken;

fn worker(database: &TestDatabase, kafka: &KafkaOptions, declared: BTreeMap<String, usize>) -> Worker {
    let source = Source::new("test", &database.url);
    let target = Target { kafka: kafka.clone(), declared };
    let options = Options { connect_timeout_ms: 5_000, ..relay_options() };
    Worker::new(source, target, options, None)
}

async fn insert(database: &TestDatabase, aggregate: &str, topic: &str, count: u32) {
    let insert = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select '{aggregate}', '{topic}', '{{}}' from generate_series(1, {count})"
    );
    database.client().await.batch_execute(&insert).await.unwrap();
}

/// A row of 32,000 bytes that no compression makes small.
async fn insert_large(database: &TestDatabase, aggregate: &str, topic: &str) {
    let noise = format!(
        "insert into outbox (aggregate_id, topic, payload) select '{aggregate}', '{topic}',
             to_jsonb(string_agg(md5(n::text), '')) from generate_series(1, 1000) n"
    );
    database.client().await.batch_execute(&noise).await.unwrap();
}

async fn pending(database: &TestDatabase) -> i64 {
    database.number("select count(*) from outbox where published_at is null").await
}

#[tokio::test]
async fn while_the_broker_is_away_no_shard_is_locked_and_afterwards_all_flows() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    insert(&database, "a", &topic, 10).await;

    let away = KafkaOptions { brokers: "127.0.0.1:1".to_owned(), ..kafka.clone() };
    let mut relay = worker(&database, &away, BTreeMap::new());
    let turn = tokio::spawn(async move {
        let turn = relay.drain_once().await;
        relay.close().await;
        turn
    });
    let in_transaction = "select count(*) from pg_stat_activity where datname = current_database()
                           and application_name = 'brew-relay' and xact_start is not null
                           and state <> 'active'";
    while !turn.is_finished() {
        assert_eq!(database.number(in_transaction).await, 0, "a transaction waits for the broker");
        tokio::task::yield_now().await;
    }
    assert!(matches!(turn.await.unwrap(), Err(TurnError::Kafka(messaging::Error::BrokerAway(_)))));
    assert_eq!(pending(&database).await, 10);

    drain(&database.url, &kafka).await;
    assert_eq!(history(&testkit::read(&topic).await).ids.len(), 10);
}

/// One record in the middle that the broker refuses: its aggregate stops there, nothing overtakes it, the others
/// flow, also those of the shards next to it.
#[tokio::test]
async fn a_refused_record_stops_its_aggregate_and_no_other() {
    let kafka = testkit::kafka();
    let narrow = KafkaOptions { max_message_bytes: 5_000, ..kafka.clone() };
    let topic = testkit::topic(&narrow, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    insert(&database, "bad", &topic, 3).await;
    insert_large(&database, "bad", &topic).await;
    insert(&database, "bad", &topic, 3).await;
    for n in 0..20 {
        insert(&database, &format!("good-{n}"), &topic, 3).await;
    }
    // And twenty that share its shard, behind it.
    let neighbours = format!(
        "insert into outbox (aggregate_id, topic, payload)
         select name, '{topic}', '{{}}'
           from (select 'near-' || n as name from generate_series(1, 10000) n
                  where (hashtextextended('near-' || n, 0) & 63) = (hashtextextended('bad', 0) & 63)
                  limit 20) near, generate_series(1, 3)"
    );
    database.client().await.batch_execute(&neighbours).await.unwrap();
    let shutdown = CancellationToken::new();
    let relay = start_relay(&database.url, &kafka, relay_options(), Mode::Forever, &shutdown);
    until("all but the bad one and its successors", async || (pending(&database).await == 4).then_some(()))
        .await;
    shutdown.cancel();
    relay.await.unwrap();

    let history = history(&testkit::read(&topic).await);
    assert_eq!(history.out_of_order(), [""; 0]);
    assert_eq!(history.first_seen["bad"], [1, 2, 3]);
    assert_eq!(history.ids.len(), 123);
    let marked = "select count(*) from outbox where aggregate_id = 'bad' and published_at is not null";
    assert_eq!(database.number(marked).await, 3);
    let parked = outbox::parked(&database.client().await, 10).await.unwrap();
    assert_eq!((parked.len(), parked[0].outbox_id, parked[0].aggregate_id.as_str()), (1, 4, "bad"));
}

/// A row that is over the limit is known before it is sent: nobody is sent twice for it. When the limit is raised and
/// it is tried again, it goes first and its successors after it.
#[tokio::test]
async fn a_row_over_the_limit_is_parked_and_goes_first_when_it_is_redriven() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    insert_large(&database, "bad", &topic).await;
    insert(&database, "bad", &topic, 300).await;
    for n in 0..20 {
        insert(&database, &format!("good-{n}"), &topic, 3).await;
    }
    let narrow = KafkaOptions { max_message_bytes: 5_000, ..kafka.clone() };
    drain(&database.url, &narrow).await;
    let sent = history(&testkit::read(&topic).await);
    assert_eq!((sent.ids.len(), sent.repeats), (60, 0));
    let mut client = database.client().await;
    let parked = outbox::parked(&client, 10).await.unwrap();
    assert_eq!((parked.len(), parked[0].outbox_id, parked[0].behind), (1, 1, 300));
    assert!(parked[0].reason.contains("over the limit of 5000"), "{}", parked[0].reason);

    let ada = outbox::Decider { who: "ada", why: "limit raised" };
    outbox::decide(&mut client, outbox::Action::Redrive, 1, ada, false).await.unwrap();
    drain(&database.url, &kafka).await;
    let sent = history(&testkit::read(&topic).await);
    assert_eq!((sent.ids.len(), sent.repeats, sent.out_of_order().len()), (361, 0, 0));
    assert_eq!(pending(&database).await, 0);
}

/// With the setting that lets them pass, later rows do not wait.
#[tokio::test]
async fn later_rows_pass_a_parked_one_if_they_are_let() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    insert(&database, "a", "no.such.topic", 1).await;
    insert(&database, "a", &topic, 3).await;
    let options = Options { unknown_topic_grace_ms: 0, parked_aggregates_wait: false, ..relay_options() };
    let shutdown = CancellationToken::new();
    start_relay(&database.url, &kafka, options, Mode::UntilDrained, &shutdown).await.unwrap();
    assert_eq!(history(&testkit::read(&topic).await).ids.len(), 3);
    let parked = outbox::parked(&database.client().await, 10).await.unwrap();
    assert!(parked[0].parked && parked[0].reason.contains("no.such.topic"), "{parked:?}");
}

/// Twenty thousand rows for a topic that is not there do not hold up those that share their shard.
#[tokio::test]
async fn many_rows_for_an_unknown_topic_hold_up_no_shard() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    insert(&database, "a", &format!("{topic}.never"), 20_000).await;
    let neighbour = "select 'near-' || n from generate_series(1, 10000) n
                      where (hashtextextended('near-' || n, 0) & 63) = (hashtextextended('a', 0) & 63) limit 1";
    let neighbour: String = database.client().await.query_one(neighbour, &[]).await.unwrap().get(0);
    insert(&database, &neighbour, &topic, 10).await;
    let shutdown = CancellationToken::new();
    let options = Options { batch_size: 1000, ..relay_options() };
    let relay = start_relay(&database.url, &kafka, options, Mode::Forever, &shutdown);
    until("the neighbour's rows", async || (pending(&database).await == 20_000).then_some(())).await;
    shutdown.cancel();
    relay.await.unwrap();
    let parked = outbox::parked(&database.client().await, 10).await.unwrap();
    assert_eq!((parked.len(), parked[0].parked), (1, false));
}

#[tokio::test]
async fn nothing_is_published_while_a_topic_has_another_partition_count_than_declared() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    insert(&database, "a", &topic, 1).await;
    let mut relay = worker(&database, &kafka, BTreeMap::from([(topic.clone(), 12)]));
    let turn = relay.drain_once().await;
    assert!(matches!(
        turn,
        Err(TurnError::Kafka(messaging::Error::PartitionCount { found: 6, declared: 12, .. }))
    ));
    assert!(testkit::read(&topic).await.is_empty());

    let mut relay = worker(&database, &kafka, BTreeMap::from([(topic.clone(), 6)]));
    assert_eq!(relay.drain_once().await.unwrap(), Turn::Moved { rows: 1 });
    assert_eq!(relay.drain_once().await.unwrap(), Turn::Idle);
}

#[tokio::test]
async fn options_that_do_not_fit_are_refused_before_anything_is_connected() {
    let options = Options { keepalive_ms: 1, ..relay_options() };
    let setup = testkit::relay_setup("nowhere", &testkit::kafka(), options, Mode::Forever);
    let end = relay::run(setup, CancellationToken::new()).await;
    assert!(end.unwrap_err().to_string().contains("keepalive_ms"));
}
