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

/// From one byte to as much as the table takes; numbers that no float holds, and text of every kind. What Postgres has
/// is what Kafka has, byte for byte.
#[tokio::test]
async fn payloads_are_passed_on_byte_for_byte() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    let long = "x".repeat(outbox::MAX_PAYLOAD_BYTES - 100);
    let payloads = [
        "7".to_owned(),
        r#"{"total": 0.30, "minor": 9007199254740993, "max": 9223372036854775807}"#.to_owned(),
        r#"{"n": 12345678901234.56, "less": -1e3, "digits": 3.14159265358979323846264338327950288}"#
            .to_owned(),
        r#"{"note": "\\u0000 typed by hand, \"quoted\", \u2028, tab\t, 🦀é"}"#.to_owned(),
        format!("\"{}\"", "e\u{301}".repeat(10_000)),
        format!("\"{long}\""),
    ];
    let client = database.client().await;
    let insert = "insert into outbox (aggregate_id, topic, payload) values ('a', $1, $2::text::jsonb)";
    for payload in &payloads {
        client.execute(insert, &[&topic, payload]).await.unwrap();
    }
    let stored = client.query("select payload::text from outbox order by id", &[]).await.unwrap();
    drain(&database.url, &kafka).await;
    let records = testkit::read(&topic).await;
    assert_eq!(records.len(), payloads.len());
    for (row, record) in stored.iter().zip(&records) {
        assert!(row.get::<_, &str>(0).as_bytes() == record.payload, "{:.200}", row.get::<_, &str>(0));
    }
    let text = String::from_utf8(records[1].payload.clone()).unwrap();
    assert!(text.contains("0.30") && text.contains("9007199254740993"), "{text}");
}

/// Whatever the table lets pass is published: a row that the relay cannot read would hold up its neighbours.
#[tokio::test]
async fn odd_rows_are_published_too() {
    let kafka = testkit::kafka();
    let topic = testkit::topic(&kafka, None).await;
    let database = testkit::database(outbox::migrations("shop")).await;
    let odd = [
        r#"'a', '$topic', 'null', null, '{"n": 1, "list": [1], "none": null, "": ""}'"#,
        r#"'ö "quoted"', '$topic', '"text"', '', '{}'"#,
        r#"'a', '$topic', '1e1000', 'x', '{"n": {"deep": true}}'"#,
        r#"'a', '$topic', '{"type": {"not": "a text"}}', null, '{}'"#,
        r#"'a', '$topic', '{"type": null}', null, '{}'"#,
    ];
    for values in odd {
        let insert = format!(
            "insert into outbox (aggregate_id, topic, payload, event_type, headers) values ({})",
            values.replace("$topic", &topic)
        );
        database.client().await.batch_execute(&insert).await.unwrap();
    }
    drain(&database.url, &kafka).await;
    let records = testkit::read(&topic).await;
    assert_eq!(records.len(), odd.len());
    let first = records.iter().find(|record| record.header(header::OUTBOX_ID) == Some("1")).unwrap();
    let headers = ["n", "list", "none"].map(|name| first.header(name));
    assert_eq!(headers, [Some("1"), Some("[1]"), Some("null")]);
}
