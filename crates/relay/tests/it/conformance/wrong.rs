//! Relays that are wrong on purpose, each in one way that people have taken for right.

use std::{borrow::Cow, time::Duration};

use events::header;
use messaging::{KafkaOptions, Producer, Record};
use testkit::TestDatabase;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// What is not acknowledged then, is never sent.
    MarksBeforeAck,
    /// Ids do not commit in their order.
    CursorById,
    /// Two replicas have rows of one aggregate, and the later ones may go first. What lies between its claim and its
    /// sends is drawn out, as a slow broker does.
    LocksRows,
    /// Its snapshot is older than its lock, and shows rows that another has marked in between. The time between the
    /// two is drawn out, as a busy server does.
    LocksAndReadsAtOnce,
}

impl Wrong {
    /// Reads what it takes for pending above `$1`.
    fn read(self) -> &'static str {
        match self {
            Self::MarksBeforeAck | Self::CursorById => {
                "select id, aggregate_id, topic from outbox
                  where published_at is null and id > $1 order by id limit 100"
            }
            Self::LocksRows => {
                "select id, aggregate_id, topic from outbox
                  where published_at is null and id > $1 order by id limit 100
                    for update skip locked"
            }
            Self::LocksAndReadsAtOnce => {
                "with snapshot as materialized (select pg_sleep_for('5 ms')),
                      locked as materialized (
                          select shard from snapshot, outbox_shard order by random()
                             for update of outbox_shard skip locked limit 8)
                 select id, aggregate_id, topic from outbox join locked using (shard)
                  where published_at is null and id > $1 order by id limit 100"
            }
        }
    }
}

const MARK: &str = "update outbox set published_at = clock_timestamp() where id = any ($1)";

pub(crate) async fn run(
    wrong: Wrong,
    database: TestDatabase,
    kafka: KafkaOptions,
    shutdown: CancellationToken,
) {
    let client = database.client().await;
    client.batch_execute("set application_name = 'brew-relay'").await.unwrap();
    let timeout = Duration::from_secs(10);
    let mut producer = Producer::connect(&kafka, "wrong", timeout).await.unwrap();
    let mut cursor = 0i64;
    while !shutdown.is_cancelled() {
        client.batch_execute("begin").await.unwrap();
        let rows = client.query(wrong.read(), &[&cursor]).await.unwrap();
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        if wrong == Wrong::MarksBeforeAck {
            client.execute(MARK, &[&ids]).await.unwrap();
            client.batch_execute("commit; begin").await.unwrap();
        }
        if wrong == Wrong::LocksRows {
            client.batch_execute("select pg_sleep_for(interval '20 ms' * random())").await.unwrap();
        }
        let texts: Vec<(&str, &str, String)> =
            rows.iter().zip(&ids).map(|(row, id)| (row.get(1), row.get(2), id.to_string())).collect();
        let records: Vec<Record<'_>> =
            texts.iter().map(|(aggregate, topic, id)| record(aggregate, topic, id)).collect();
        let outcome = producer.send(&records, Instant::now() + timeout).await;
        let acked: Vec<i64> =
            ids.iter().zip(&outcome.acks).filter(|(_, ack)| ack.is_some()).map(|(id, _)| *id).collect();
        client.execute(MARK, &[&acked]).await.unwrap();
        client.batch_execute("commit").await.unwrap();
        if wrong == Wrong::CursorById {
            cursor = ids.last().copied().unwrap_or(cursor);
        }
        producer.refresh_topics(timeout).await.unwrap();
    }
    producer.retire().await;
}

fn record<'a>(aggregate: &'a str, topic: &'a str, id: &'a str) -> Record<'a> {
    let headers = vec![
        (header::AGGREGATE_ID, Cow::Borrowed(aggregate.as_bytes())),
        (header::OUTBOX_ID, Cow::Borrowed(id.as_bytes())),
    ];
    Record { topic, key: aggregate.as_bytes(), payload: b"{}", headers }
}
