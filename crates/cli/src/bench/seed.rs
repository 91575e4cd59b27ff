//! The events of a bench, and writing many of them at once.

use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use tokio_postgres::Client;
use uuid::Uuid;

use super::ground::{Ground, Part};

pub(crate) const EVENT_TYPE: &str = "bench.event";

/// Size of a payload as JSON text, in bytes.
const PAYLOAD_BYTES: usize = 300;

/// Each writes events of its own aggregates, so that in each aggregate the order of ids is the order of commits.
const WRITERS: u64 = 4;

/// So many statements of a writer are under way at once.
const PIPELINED: usize = 4;

const OUTBOX: &str = "
    insert into outbox (aggregate_id, topic, payload, event_type, headers)
    select e.aggregate_id, $3, e.payload::jsonb, $4, $5::text::jsonb
      from unnest($1::text[], $2::text[]) with ordinality as e(aggregate_id, payload, position)
     order by e.position";

/// How many aggregates share so many events.
pub(crate) fn aggregates(events: u64) -> u64 {
    (events / 20).clamp(16, 10_000)
}

/// What event `number` says: half of it told by chance, half of it words.
pub(crate) fn payload(number: u64, aggregate: &str) -> String {
    const WORDS: &str = "leave at the door please ring twice fragile goods inside handle with care ";
    let mut random = fastrand::Rng::with_seed(number);
    let mut text = format!(
        r#"{{"type": "{EVENT_TYPE}", "seq": {number}, "aggregate": "{aggregate}", "total_minor": {}, "#,
        random.u32(100..100_000),
    );
    text += &format!(r#""customer": "{:016x}{:016x}", "note": ""#, random.u64(..), random.u64(..));
    while text.len() < PAYLOAD_BYTES - 2 {
        let from = random.usize(..WORDS.len() - 1);
        text.extend(WORDS[from..].chars().take(PAYLOAD_BYTES - 2 - text.len()));
    }
    text + r#""}"#
}

/// A trace context, as every event of a service has one.
pub(crate) fn traceparent(sampled: bool) -> String {
    let id = Uuid::new_v4().simple().to_string();
    format!("00-{id}-{}-0{}", &id[..16], u8::from(sampled))
}

/// Of how many traces in a part one is sampled.
fn one_sampled_of(part: Part) -> u64 {
    if part == Part::TracedTenth { 10 } else { 1 }
}

/// Writes `events` events for `topic` into a part's outbox, in transactions of `rows` rows each.
pub(crate) async fn fill(
    ground: &Ground,
    part: Part,
    topic: &str,
    events: u64,
    rows: usize,
) -> anyhow::Result<()> {
    let write = async |writer: u64| {
        let client = ground.connect(part).await?;
        client.batch_execute("set synchronous_commit = off").await?;
        write(&client, writer, (part, topic), events, rows).await
    };
    try_join_all((0..WRITERS).map(write)).await?;
    Ok(())
}

async fn write(
    client: &Client,
    writer: u64,
    (part, topic): (Part, &str),
    events: u64,
    rows: usize,
) -> anyhow::Result<()> {
    let statement = &client.prepare(OUTBOX).await?;
    let of = one_sampled_of(part);
    let headers: &Vec<String> = &(0..of)
        .map(|number| serde_json::json!({ "traceparent": traceparent(number == 0) }).to_string())
        .collect();
    let mut random = fastrand::Rng::with_seed(events + writer);
    let of_its_own = aggregates(events) / WRITERS;
    let event = move |number: u64| {
        let aggregate = format!("bench-{}", random.u64(..of_its_own) * WRITERS + writer);
        let payload = payload(number, &aggregate);
        (aggregate, payload)
    };
    let step = usize::try_from(WRITERS).unwrap_or(usize::MAX);
    stream::iter((writer..events).step_by(step).map(event))
        .chunks(rows)
        .zip(stream::iter(headers.iter().cycle()))
        .map(|(chunk, headers)| async move {
            let (aggregates, payloads): (Vec<String>, Vec<String>) = chunk.into_iter().unzip();
            client.execute(statement, &[&aggregates, &payloads, &topic, &EVENT_TYPE, headers]).await.map(drop)
        })
        .buffered(PIPELINED)
        .try_collect::<()>()
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_of_its_size_and_says_what_it_is() {
        for number in [0, 7, 9_999_999] {
            let text = payload(number, "bench-9999");
            assert_eq!(text.len(), PAYLOAD_BYTES);
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["seq"], number);
        }
    }
}
