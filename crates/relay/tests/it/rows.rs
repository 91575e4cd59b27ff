//! What becomes of a row: its record.

use events::header;
use serde_json::{Value, json};
use testkit::drain;

async fn published(insert: &str) -> messaging::Received {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("order-service")).await;
    database.client().await.batch_execute(&insert.replace("$topic", &topic)).await.unwrap();
    drain(&database.url, &kafka).await;
    let mut records = testkit::read(&topic).await;
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[tokio::test]
async fn a_plain_insert_from_psql_is_published() {
    let record = published(
        "insert into outbox (aggregate_id, topic, payload) values ('order-42', '$topic', '{\"type\": \"told\"}')",
    )
    .await;
    assert_eq!(record.key, b"order-42");
    assert_eq!(serde_json::from_slice::<Value>(&record.payload).unwrap(), json!({"type": "told"}));
    assert_eq!(record.header(header::OUTBOX_ID), Some("1"));
    assert_eq!(record.header(header::AGGREGATE_ID), Some("order-42"));
    assert_eq!(record.header(header::OUTBOX_SOURCE), Some("order-service"));
    assert_eq!(record.header(header::EVENT_TYPE), Some("told"));
    assert_eq!(record.header(header::CONTENT_TYPE), Some("application/json"));
    assert_eq!(record.header(header::EVENT_ID).unwrap().len(), 36);
    assert_eq!(record.header(header::TRACEPARENT), None);
}

#[tokio::test]
async fn a_rows_headers_are_passed_on_but_cannot_pose_as_its_identity() {
    let record = published(
        "insert into outbox (aggregate_id, topic, payload, event_type, headers)
         values ('order-42', '$topic', '\"\u{1f980}\"', 'told', '{\"traceparent\": \"00-a-b-01\", \"outbox-id\": \"7\",
                 \"event-type\": \"false\", \"mine\": \"\u{e9}\"}')",
    )
    .await;
    assert_eq!(record.payload, "\"\u{1f980}\"".as_bytes());
    assert_eq!(record.header(header::TRACEPARENT), Some("00-a-b-01"));
    assert_eq!(record.header("mine"), Some("\u{e9}"));
    let of = |name| record.header_pairs().filter(|(found, _)| *found == name).count();
    assert_eq!((of(header::OUTBOX_ID), of(header::EVENT_TYPE)), (1, 1));
    assert_eq!(record.header(header::OUTBOX_ID), Some("1"));
}
