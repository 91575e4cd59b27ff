//! How many events a second inventory-service applies: dedup, reservation, stock and the answer in one transaction.

use std::time::{Duration, Instant};

use events::{Event, OrderCreated, OrderId, OrderLine, Sku};
use messaging::Producer;
use serde::Serialize;
use tokio_postgres::Client;

use crate::{lab::MENU, output::note};

use super::{
    Args,
    ceilings::{Made, send},
    drain::rest,
    ground::{Ground, Part, TIMEOUT},
    judge::{Check, Checked},
    meter::{Meter, Span, wait_for_quiet},
    running::{Running, migrate},
};

/// A consumer needs fewer events than a publisher to show its rate.
const SHARE: u64 = 4;

/// Records that are sent together.
const SEND: usize = 10_000;

const LOOK: Duration = Duration::from_millis(20);
/// Nothing was applied for so long: what is missing will not come.
const STALLED: Duration = Duration::from_secs(30);

/// All rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Consumed {
    pub(crate) rounds: Vec<Span>,
    pub(crate) resident_mb: f64,
}

/// Orders, one line each, in a topic that the consumer finds full.
pub(crate) async fn measure(ground: &Ground, args: &Args) -> anyhow::Result<Checked<Consumed>> {
    let client = ground.database(Part::Consumer).await?;
    let url = ground.url(Part::Consumer)?;
    migrate("inventory-service", &["migrate"], ("BREW__DATABASE__URL", url.clone())).await?;
    let (kafka, topic) = (ground.kafka()?, ground.topic(Part::Consumer).await?);
    let mut producer = Producer::connect(&kafka, "brew-bench", TIMEOUT).await?;
    let mut consumer = Running::start(
        "inventory-service",
        &[
            ("BREW__DATABASE__URL", url),
            ("BREW__GRPC__ADDRESS", "127.0.0.1:0".to_owned()),
            ("BREW__KAFKA__BROKERS", kafka.brokers),
            ("BREW__CONSUMER__TOPICS", topic.clone()),
            ("BREW__CONSUMER__GROUP", topic.clone()),
        ],
    )?;
    let events = (args.events / SHARE).max(1);
    let mut written = events.div_ceil(SHARE);
    send_all(&mut producer, &topic, &made(1, written)?).await?;
    reach(&client, written, &mut consumer).await?;

    let mut rounds = Vec::new();
    for _ in 0..args.repeats {
        let records = made(written + 1, events)?;
        rest(&client).await?;
        wait_for_quiet(ground, args.quiet_wait).await?;
        // Not for longer than this: the group would take its partitions away.
        consumer.halt()?;
        send_all(&mut producer, &topic, &records).await?;
        written += events;
        let meter = Meter::start(ground, Some(consumer.pid()?), &client).await?;
        consumer.go_on()?;
        let seconds = reach(&client, written, &mut consumer).await?;
        let span = meter.stop(events, seconds, &client).await?;
        note(format_args!("  consumer: {:.0} events/s", span.rate()));
        rounds.push(span);
    }
    producer.retire().await;
    let resident_mb = consumer.close().await?;
    Ok(Checked::new(check(&client, written).await?, Consumed { rounds, resident_mb }))
}

fn made(first: u64, events: u64) -> anyhow::Result<Vec<Made>> {
    (first..first + events)
        .map(|number| {
            let order_id = OrderId(i64::try_from(number)?);
            let sku = MENU[usize::try_from(number)? % MENU.len()];
            let line = OrderLine { sku: Sku(sku.to_owned()), quantity: 1, unit_price_minor: 300 };
            let event = Event::OrderCreated(OrderCreated {
                order_id,
                version: 1,
                lines: vec![line],
                total_minor: 300,
                currency: "EUR".to_owned(),
                payment_token: "tok_good".to_owned(),
            });
            let payload = serde_json::to_string(&event)?;
            Ok(Made::new(number, order_id.to_string(), event.event_type(), payload))
        })
        .collect()
}

async fn send_all(producer: &mut Producer, topic: &str, records: &[Made]) -> anyhow::Result<()> {
    for records in records.chunks(SEND) {
        send(producer, topic, records).await?;
    }
    Ok(())
}

/// Waits until so many events are applied in all, or no more are; returns how many seconds it took.
async fn reach(client: &Client, events: u64, consumer: &mut Running) -> anyhow::Result<f64> {
    let (began, mut moved, mut last) = (Instant::now(), Instant::now(), 0);
    let events = i64::try_from(events)?;
    // Each event has one answer, and the sequence of their ids is quick to ask; it is ahead of the commit by one batch.
    let answers = "select case when is_called then last_value else 0 end from outbox_id_seq";
    let applied = "select count(*) from processed_outbox_ids";
    while last < events && moved.elapsed() < STALLED {
        tokio::time::sleep(LOOK).await;
        consumer.must_run()?;
        let mut now: i64 = client.query_one(answers, &[]).await?.try_get(0)?;
        if now >= events {
            now = client.query_one(applied, &[]).await?.try_get(0)?;
        }
        if now != last {
            (last, moved) = (now, Instant::now());
        }
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Each event applied once, one line reserved for each, and one answer given.
async fn check(client: &Client, events: u64) -> anyhow::Result<Check> {
    let sql = "
        select (select count(*) from processed_outbox_ids),
               (select count(*) from reservations where status = 'reserved'),
               (select coalesce(sum(opening - available), 0)::bigint from stock),
               (select count(*) from outbox)";
    let row = client.query_one(sql, &[]).await?;
    let count = |at: usize| anyhow::Ok(u64::try_from(row.try_get::<_, i64>(at)?)?);
    let (applied, reserved, taken, answers) = (count(0)?, count(1)?, count(2)?, count(3)?);
    let mut check = Check {
        events,
        lost: events.saturating_sub(applied),
        duplicates: answers.max(taken).saturating_sub(events),
        ..Check::default()
    };
    check.none(events.saturating_sub(reserved), "not reserved");
    check.none(events.saturating_sub(answers.min(taken)), "without an answer, or without what was taken");
    Ok(check)
}
