//! The hole that `docs/decisions/0003` is about: success reported for records that are in no log. The mock cluster
//! shows it every time with a client as it comes, and never with ours.

use std::time::Duration;

use messaging::{KafkaOptions, Producer, Record, read_all};
use rdkafka::{
    ClientConfig,
    mocking::MockCluster,
    producer::{DefaultProducerContext, FutureProducer, FutureRecord},
    types::{RDKafkaApiKey, RDKafkaRespErr},
};
use tokio::time::Instant;

const TOPIC: &str = "hole";
const RECORDS: usize = 10;

fn cluster() -> (MockCluster<'static, DefaultProducerContext>, KafkaOptions) {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, 1, 1).unwrap();
    let options =
        KafkaOptions { brokers: cluster.bootstrap_servers(), max_message_bytes: 1_000_000, partitions: 1 };
    (cluster, options)
}

fn refuse_once(cluster: &MockCluster<'static, DefaultProducerContext>, error: RDKafkaRespErr) {
    cluster.request_errors(RDKafkaApiKey::Produce, &[error]);
}

async fn in_the_log(options: &KafkaOptions) -> Vec<String> {
    let records = read_all(options, TOPIC, Duration::from_secs(20)).await.unwrap();
    records.into_iter().map(|record| String::from_utf8(record.payload).unwrap()).collect()
}

const ERRORS: [RDKafkaRespErr; 2] = [
    RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
    RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
];

/// The control: without our settings and warming the test does see the loss, so it can fail.
#[tokio::test]
async fn a_client_as_it_comes_acknowledges_what_is_in_no_log() {
    let mut lost = 0;
    for error in ERRORS {
        let (cluster, options) = cluster();
        let producer: FutureProducer = ClientConfig::new()
            .set("bootstrap.servers", &options.brokers)
            .set("enable.idempotence", "true")
            .set("max.in.flight.requests.per.connection", "5")
            .set("batch.num.messages", "1")
            .set("linger.ms", "0")
            .create()
            .unwrap();
        refuse_once(&cluster, error);
        let payloads: Vec<String> = (0..RECORDS).map(|n| n.to_string()).collect();
        let sends = payloads.iter().map(|payload| {
            producer.send(FutureRecord::to(TOPIC).key("k").payload(payload), Duration::from_secs(20))
        });
        let acked = futures::future::join_all(sends).await.into_iter().filter(Result::is_ok).count();
        lost += acked.saturating_sub(in_the_log(&options).await.len());
    }
    assert!(lost > 0, "the mock cluster no longer shows the hole: this test guards nothing");
}

#[tokio::test]
async fn our_producer_acknowledges_only_what_is_in_the_log_and_in_order() {
    for round in 0..20 {
        let (cluster, options) = cluster();
        let mut producer = Producer::connect(&options, "test", Duration::from_secs(20)).await.unwrap();
        refuse_once(&cluster, ERRORS[round % ERRORS.len()]);
        let payloads: Vec<String> = (0..RECORDS).map(|n| n.to_string()).collect();
        let records: Vec<Record<'_>> = payloads
            .iter()
            .map(|payload| Record {
                topic: TOPIC,
                key: b"k",
                payload: payload.as_bytes(),
                headers: Vec::new(),
            })
            .collect();
        let outcome = producer.send(&records, Instant::now() + Duration::from_secs(20)).await;
        producer.retire().await;
        let log = in_the_log(&options).await;
        for (payload, ack) in payloads.iter().zip(&outcome.acks) {
            assert!(ack.is_none() || log.contains(payload), "{payload} is acknowledged and in no log");
        }
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_eq!(log, payloads);
    }
}
