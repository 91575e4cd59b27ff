//! The consumer loop: nothing lost, nothing skipped, bad records aside.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use events::{header, topic::dead_letter};
use messaging::{
    ApplyError, ConsumeMode, Consumer, ConsumerOptions, Consumption, HeldBack, Producer, Received, Record,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAME: &str = "tester";

async fn topic_with(payloads: &[&str]) -> String {
    let options = testkit::kafka();
    let topic = testkit::topic(&options, Some(NAME)).await;
    let mut producer = Producer::connect(&options, "test", Duration::from_secs(20)).await.unwrap();
    let batch: Vec<Record<'_>> = payloads
        .iter()
        .map(|payload| Record {
            topic: &topic,
            key: b"one-key",
            payload: payload.as_bytes(),
            headers: vec![("kept", b"\xff\x00".as_slice().into())],
        })
        .collect();
    let outcome = producer.send(&batch, Instant::now() + Duration::from_secs(20)).await;
    assert_eq!(outcome.acks.iter().flatten().count(), payloads.len());
    topic
}

fn options(topic: &str) -> ConsumerOptions {
    ConsumerOptions {
        group: format!("{topic}-group"),
        topics: vec![topic.to_owned()],
        batch_max_records: 100,
        batch_wait_ms: 50,
        dead_letter_aggregates_wait: false,
    }
}

fn consumer(topic: &str) -> Consumer {
    Consumer::new(&testkit::kafka(), &options(topic), NAME).unwrap()
}

fn decode(record: &Received) -> Result<String, String> {
    let text = String::from_utf8(record.payload.clone()).map_err(|error| error.to_string())?;
    if text.starts_with("unreadable") { Err(format!("cannot read {text}")) } else { Ok(text) }
}

fn noted_nowhere(_: Received) -> std::future::Ready<Result<(), ApplyError>> {
    std::future::ready(Ok(()))
}

/// Runs a consumer to the end of `topic`; `apply` is asked about each batch, and what it takes is returned in
/// order.
async fn consume(
    topic: &str,
    apply: impl Fn(&[Arc<String>]) -> Result<(), ApplyError>,
) -> (Vec<String>, Consumption) {
    let seen = Mutex::new(Vec::new());
    let apply = |batch: Vec<Arc<String>>| {
        let outcome = apply(&batch);
        if outcome.is_ok() {
            seen.lock().unwrap().extend(batch.iter().map(|text| text.to_string()));
        }
        std::future::ready(outcome.map(|()| Vec::new()))
    };
    let token = CancellationToken::new();
    let done =
        consumer(topic).run(decode, apply, noted_nowhere, ConsumeMode::UntilIdle, token).await.unwrap();
    (seen.into_inner().unwrap(), done)
}

#[tokio::test]
async fn offsets_are_committed_behind_what_was_applied() {
    let topic = topic_with(&["a", "b", "c"]).await;
    let (seen, done) = consume(&topic, |_| Ok(())).await;
    assert_eq!(seen, ["a", "b", "c"]);
    assert_eq!(done, Consumption { records: 3, dead_letters: 0 });
    let (seen, _) = consume(&topic, |_| Ok(())).await;
    assert!(seen.is_empty(), "read again: {seen:?}");
}

#[tokio::test]
async fn bad_records_become_dead_letters_and_the_others_are_applied_in_order() {
    let topic = topic_with(&["a", "unreadable-1", "b", "bad-2", "c", "bad-3", "d"]).await;
    let refuse = |batch: &[Arc<String>]| {
        let bad = batch.iter().find(|text| text.starts_with("bad"));
        bad.map_or(Ok(()), |text| Err(ApplyError::Data(format!("constraint on {text}"))))
    };
    let (seen, done) = consume(&topic, refuse).await;
    assert_eq!(seen, ["a", "b", "c", "d"]);
    assert_eq!(done, Consumption { records: 7, dead_letters: 3 });

    let dead = testkit::read(&dead_letter(&topic, NAME)).await;
    let told: Vec<(String, &str)> = dead
        .iter()
        .map(|record| {
            (String::from_utf8(record.payload.clone()).unwrap(), record.header(header::DEAD_REASON).unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("unreadable-1".to_owned(), "cannot read unreadable-1"),
            ("bad-2".to_owned(), "constraint on bad-2"),
            ("bad-3".to_owned(), "constraint on bad-3"),
        ]
    );
    for record in &dead {
        assert_eq!(record.key, b"one-key");
        assert_eq!(record.headers[0], ("kept".to_owned(), b"\xff\x00".to_vec()));
        assert!(record.header(header::DEAD_ORIGIN).unwrap().starts_with(&topic));
        assert_eq!(record.header(header::DEAD_CONSUMER), Some(NAME));
        assert!(record.header(header::DEAD_AT).unwrap().contains('T'));
    }
}

#[tokio::test]
async fn what_is_away_for_a_while_loses_nothing() {
    let topic = topic_with(&["a", "b", "c"]).await;
    let attempts = Mutex::new(0);
    let sometimes = |_: &[Arc<String>]| {
        let mut attempts = attempts.lock().unwrap();
        *attempts += 1;
        match *attempts {
            1 => Err(ApplyError::Unavailable("away".to_owned())),
            2 => Err(ApplyError::Conflict("deadlock".to_owned())),
            _ => Ok(()),
        }
    };
    let (seen, done) = consume(&topic, sometimes).await;
    assert_eq!(seen, ["a", "b", "c"]);
    assert_eq!(done.dead_letters, 0);
}

#[tokio::test]
async fn shutdown_while_away_commits_nothing() {
    let topic = topic_with(&["a"]).await;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let never = |_: Vec<Arc<String>>| {
        stop.cancel();
        std::future::ready(Err(ApplyError::Unavailable("away".to_owned())))
    };
    let consumer = consumer(&topic);
    let done = consumer.run(decode, never, noted_nowhere, ConsumeMode::Forever, shutdown).await.unwrap();
    assert_eq!(done.records, 0);
    let (seen, _) = consume(&topic, |_| Ok(())).await;
    assert_eq!(seen, ["a"]);
}

/// What waits behind a bad record becomes a dead letter with it, and whoever notes the bad one hears of it first.
#[tokio::test]
async fn nothing_of_an_aggregate_is_applied_before_its_dead_letter_is_noted() {
    let topic = topic_with(&["a", "bad", "b", "unreadable", "c"]).await;
    let (noted, applied, tries) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()), Mutex::new(0));
    let apply = |batch: Vec<Arc<String>>| {
        let noted = noted.lock().unwrap();
        let outcome = if batch.iter().any(|text| text.as_str() == "bad") {
            Err(ApplyError::Data("bad".to_owned()))
        } else {
            let waits = noted.iter().any(|one| one == "bad");
            let reasons = batch.iter().map(|_| waits.then(|| "waits behind bad".to_owned()));
            let held = HeldBack::of(reasons);
            if held.is_empty() {
                applied.lock().unwrap().extend(batch.iter().map(|text| text.to_string()));
            }
            Ok(held)
        };
        std::future::ready(outcome)
    };
    let gave_up = |record: Received| {
        *tries.lock().unwrap() += 1;
        // The first try fails: it is made again, and nothing else happens before.
        let again = *tries.lock().unwrap() == 1;
        if !again {
            noted.lock().unwrap().push(String::from_utf8(record.payload).unwrap());
        }
        std::future::ready(if again { Err(ApplyError::Unavailable("away".to_owned())) } else { Ok(()) })
    };
    let options = ConsumerOptions { dead_letter_aggregates_wait: true, ..options(&topic) };
    let consumer = Consumer::new(&testkit::kafka(), &options, NAME).unwrap();
    let done = consumer
        .run(decode, &apply, gave_up, ConsumeMode::UntilIdle, CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(done, Consumption { records: 5, dead_letters: 4 });
    assert_eq!(*applied.lock().unwrap(), ["a"]);
    assert_eq!(*noted.lock().unwrap(), ["unreadable", "bad"]);
    let dead = testkit::read(&dead_letter(&topic, NAME)).await;
    let dead: Vec<_> =
        dead.iter().map(|one| (one.payload.as_slice(), one.header(header::DEAD_REASON))).collect();
    assert_eq!(
        dead,
        [
            (b"unreadable".as_slice(), Some("cannot read unreadable")),
            (b"bad", Some("bad")),
            (b"b", Some("waits behind bad")),
            (b"c", Some("waits behind bad")),
        ]
    );
}
