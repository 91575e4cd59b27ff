//! Dead letters read back and put again: nothing of the record is lost on the way.

use std::{collections::BTreeSet, time::Duration};

use events::{header, topic::dead_letter};
use messaging::{DeadLetters, Letter, Producer, Received, Record, dead_letters, redrive};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAME: &str = "tester";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Nothing a decoder likes: bytes that are no text, a name twice, an empty value, the names of a dead letter's own.
const HEADERS: [(&str, &[u8]); 6] = [
    (header::EVENT_ID, b"\xff\x00\xfe"),
    ("twice", b"1"),
    ("twice", b"2"),
    ("empty", b""),
    (header::DEAD_REASON, b"of another life"),
    (header::TRACEPARENT, b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
];

async fn send(topic: &str, records: &[(&[u8], &[u8])]) {
    let mut producer = Producer::connect(&testkit::kafka(), "test", TIMEOUT).await.unwrap();
    let headers = || HEADERS.iter().map(|(name, value)| (*name, (*value).into())).collect();
    let records: Vec<Record<'_>> =
        records.iter().map(|(key, payload)| Record { topic, key, payload, headers: headers() }).collect();
    let outcome = producer.send(&records, Instant::now() + TIMEOUT).await;
    assert_eq!(outcome.acks.iter().flatten().count(), records.len(), "{outcome:?}");
}

async fn give_up(records: &[Received]) {
    let reasons: Vec<_> = records.iter().map(|record| (record, "no reason".to_owned())).collect();
    DeadLetters::new(&testkit::kafka(), NAME).write(&reasons, &CancellationToken::new()).await.unwrap();
}

async fn letters(topic: &str, settled: &BTreeSet<(events::Place, events::Place)>) -> Vec<Letter> {
    dead_letters(&testkit::kafka(), &dead_letter(topic, NAME), settled, TIMEOUT).await.unwrap()
}

async fn put_back(letters: &[Letter]) {
    let all: Vec<&Letter> = letters.iter().collect();
    let outcome = redrive(&testkit::kafka(), &all, TIMEOUT).await.unwrap();
    assert_eq!(outcome.acks.iter().flatten().count(), letters.len(), "{outcome:?}");
}

#[tokio::test]
async fn a_redriven_record_is_the_original_byte_for_byte() {
    let topic = testkit::topic(&testkit::kafka(), Some(NAME)).await;
    // As large as can be: there is room for the header that comes on top.
    let large = vec![b'x'; 1_000_000 - 1024 - 400];
    send(&topic, &[(b"\xff\x00key", b"\x00\xffpayload"), (b"order-1", &large)]).await;
    let originals = testkit::read(&topic).await;
    give_up(&originals).await;
    put_back(&letters(&topic, &BTreeSet::new()).await).await;

    let all = testkit::read(&topic).await;
    assert_eq!(all.len(), 4);
    for original in &originals {
        let copy = all.iter().find(|one| one.key == original.key && one.offset != original.offset).unwrap();
        assert_eq!(copy.partition, original.partition);
        assert_eq!(copy.payload, original.payload);
        let added = (header::REDRIVEN_FROM.to_owned(), original.place().to_string().into_bytes());
        assert_eq!(copy.headers, [original.headers.clone(), vec![added]].concat());
        assert_eq!(copy.first_place(), original.place());
    }
}

#[tokio::test]
async fn a_record_that_is_given_up_again_keeps_its_first_place() {
    let topic = testkit::topic(&testkit::kafka(), Some(NAME)).await;
    send(&topic, &[(b"order-1", b"a"), (b"order-1", b"b")]).await;
    let originals = testkit::read(&topic).await;
    give_up(&originals).await;
    // A consumer that dies before its offset commit writes them again.
    give_up(&originals).await;
    let first = letters(&topic, &BTreeSet::new()).await;
    assert_eq!(first.len(), 2);
    put_back(&first).await;
    // The second comes back before the first does: still they are told in their order.
    let again = testkit::read(&topic).await.split_off(2);
    give_up(&[again[1].clone(), again[0].clone()]).await;

    let second = letters(&topic, &BTreeSet::new()).await;
    let payloads: Vec<&[u8]> = second.iter().map(|letter| letter.received.payload.as_slice()).collect();
    assert_eq!(payloads, [b"a", b"b"]);
    for ((letter, original), again) in second.iter().zip(&originals).zip(&again) {
        assert_eq!((&letter.first_place, &letter.origin), (&original.place(), &again.place()));
    }
    // One header a record, however often it is put back.
    put_back(&second).await;
    let last = testkit::read(&topic).await.split_off(4);
    assert_eq!(
        last.iter().map(|record| &record.headers).collect::<Vec<_>>(),
        [&again[0].headers, &again[1].headers]
    );

    // About what is settled nobody is asked again; an older letter about the same record stays settled with it.
    let settled = second.iter().map(|one| (one.received.place(), one.origin.clone())).collect();
    assert_eq!(letters(&topic, &settled).await, []);
}

/// A record without a key is in no partition of its own, and can be given up all the same.
#[tokio::test]
async fn a_record_without_a_key_can_be_given_up_and_put_back() {
    let topic = testkit::topic(&testkit::kafka(), Some(NAME)).await;
    let record = Received {
        topic: topic.clone(),
        partition: 3,
        offset: 7,
        key: Vec::new(),
        payload: b"x".to_vec(),
        headers: Vec::new(),
    };
    assert_eq!(record.aggregate(), None);
    tokio::time::timeout(TIMEOUT, give_up(&[record])).await.expect("a letter without a key");
    put_back(&letters(&topic, &BTreeSet::new()).await).await;
    assert_eq!(testkit::read(&topic).await[0].payload, b"x");
}
