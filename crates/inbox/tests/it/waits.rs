//! Aggregates that wait behind a dead letter: in the order in which records first stood, whatever comes when.

use events::{Envelope, Place};
use inbox::{
    Accepted, Action, Arrival, Decider, LetterAt, decide, decided, migrations, note_dead_letter, waiting,
};
use sea_orm::{DatabaseConnection, TransactionTrait};
use testkit::TestDatabase;

use crate::envelope;

const CONSUMER: &str = "c";
const TOPIC: &str = "orders";

fn place(offset: i64) -> Place {
    Place { topic: TOPIC.to_owned(), partition: 0, offset }
}

/// Offers events of `order-1` that first stood at these offsets as one batch, and commits. `+` took effect, `=` was
/// known, the number is what it waits behind.
async fn offer(pool: &DatabaseConnection, offsets: &[i64]) -> Vec<String> {
    let events: Vec<(Envelope, Place)> = offsets
        .iter()
        .map(|offset| (envelope(*offset, "a", offset.unsigned_abs().into()), place(*offset)))
        .collect();
    let batch: Vec<Arrival<'_>> =
        events.iter().map(|(envelope, place)| Arrival { envelope, first_place: Some(place) }).collect();
    let tx = pool.begin().await.unwrap();
    let accepted = inbox::accept(&tx, CONSUMER, &batch).await.unwrap();
    tx.commit().await.unwrap();
    let told = accepted.iter().map(|one| match one {
        Accepted::New => "+".to_owned(),
        Accepted::Known => "=".to_owned(),
        Accepted::Waits(head) => head.place.offset.to_string(),
    });
    told.collect()
}

async fn note(pool: &DatabaseConnection, offset: i64) {
    note_dead_letter(pool, CONSUMER, Some("order-1"), &place(offset), Some(offset)).await.unwrap();
}

async fn open() -> (TestDatabase, DatabaseConnection) {
    let database = testkit::database(migrations()).await;
    let pool = database.pool().await;
    (database, pool)
}

#[tokio::test]
async fn later_records_wait_and_earlier_ones_do_not() {
    let (database, pool) = open().await;
    note(&pool, 5).await;
    note(&pool, 5).await;
    assert_eq!(offer(&pool, &[4, 6, 7]).await, ["+", "5", "5"]);
    // Delivered again: the same.
    assert_eq!(offer(&pool, &[4, 6]).await, ["=", "5"]);
    assert_eq!(database.number("select count(*) from dead_letter_waits").await, 3);
    // What waits is not processed.
    assert_eq!(database.number("select count(*) from processed_outbox_ids").await, 1);
}

/// A newer record that comes between the redriven ones overtakes none of them.
#[tokio::test]
async fn redriven_records_are_applied_in_their_order_and_newer_ones_after_them() {
    let (database, pool) = open().await;
    note(&pool, 5).await;
    assert_eq!(offer(&pool, &[6]).await, ["5"]);
    // The second too early, then as redriven, with a new record in between.
    assert_eq!(offer(&pool, &[6]).await, ["5"]);
    assert_eq!(offer(&pool, &[5, 9, 6]).await, ["+", "6", "+"]);
    assert_eq!(offer(&pool, &[10]).await, ["9"]);
    // Twice redriven is once applied.
    assert_eq!(offer(&pool, &[5, 6, 9, 9]).await, ["=", "=", "+", "="]);
    assert_eq!(offer(&pool, &[10, 11]).await, ["+", "+"]);
    assert_eq!(database.number("select count(*) from dead_letter_waits").await, 0);
}

#[tokio::test]
async fn a_rolled_back_effect_still_waits() {
    let (_database, pool) = open().await;
    note(&pool, 5).await;
    let (event, first) = (envelope(5, "a", 5), place(5));
    let tx = pool.begin().await.unwrap();
    let batch = [Arrival { envelope: &event, first_place: Some(&first) }];
    assert_eq!(inbox::accept(&tx, CONSUMER, &batch).await.unwrap(), [Accepted::New]);
    tx.rollback().await.unwrap();
    assert_eq!(offer(&pool, &[6]).await, ["5"]);
}

#[tokio::test]
async fn others_do_not_wait() {
    let (_database, pool) = open().await;
    note(&pool, 5).await;
    let other = Envelope { aggregate_id: "order-2".to_owned(), ..envelope(6, "a", 6) };
    let elsewhere = [Place { topic: "payments".to_owned(), ..place(7) }, Place { partition: 1, ..place(8) }];
    let (one, two) = (envelope(7, "a", 7), envelope(8, "a", 8));
    let first = place(6);
    let batch = [
        Arrival { envelope: &other, first_place: Some(&first) },
        Arrival { envelope: &one, first_place: Some(&elsewhere[0]) },
        Arrival { envelope: &two, first_place: Some(&elsewhere[1]) },
    ];
    let tx = pool.begin().await.unwrap();
    assert_eq!(
        inbox::accept(&tx, CONSUMER, &batch).await.unwrap(),
        [Accepted::New, Accepted::New, Accepted::New]
    );
    // Nor does another consumer in the same database, nor one whose aggregates do not wait.
    let event = envelope(9, "a", 9);
    let later = place(9);
    let batch = [Arrival { envelope: &event, first_place: Some(&later) }];
    assert_eq!(inbox::accept(&tx, "d", &batch).await.unwrap(), [Accepted::New]);
    let batch = [Arrival { envelope: &event, first_place: None }];
    assert_eq!(inbox::accept(&tx, CONSUMER, &batch).await.unwrap(), [Accepted::New]);
}

#[tokio::test]
async fn decisions_are_written_down_and_a_discarded_letter_is_waited_for_no_longer() {
    let (database, pool) = open().await;
    let mut client = database.client().await;
    note(&pool, 5).await;
    assert_eq!(offer(&pool, &[6]).await, ["5"]);
    assert_eq!(waiting(&client, CONSUMER, TOPIC).await.unwrap(), [("order-1".to_owned(), 2)]);

    let letter = Place { topic: "orders.c.dlq".to_owned(), partition: 2, offset: 0 };
    let first = place(5);
    let at = LetterAt { place: &letter, origin: &first, first_place: &first };
    let decider = Decider { who: "ada", why: "never was an order" };
    decide(&mut client, CONSUMER, Action::Redrive, at, decider).await.unwrap();
    assert_eq!(offer(&pool, &[7]).await, ["5"], "a redrive is no effect yet");
    decide(&mut client, CONSUMER, Action::Discard, at, decider).await.unwrap();
    assert_eq!(decided(&client, "orders.c.dlq").await.unwrap(), [(letter, first)].into());
    assert_eq!(offer(&pool, &[6, 7, 8]).await, ["+", "+", "+"]);
    let said = "select count(*) from dead_letter_decisions where by_whom = 'ada' and why like 'never%'";
    assert_eq!(database.number(said).await, 2);
}
