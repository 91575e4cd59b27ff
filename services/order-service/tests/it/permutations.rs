//! Every order of the saga's messages, each delivered twice, over a real Kafka and a real Postgres: the same end.

use std::collections::BTreeMap;

use events::OrderId;

use crate::{
    answers::{Consuming, answer},
    shop::order,
};

/// What the two other services can say about one order, and what it comes to.
const WORLDS: [(&[&str], &str); 4] = [
    (&["stock.reserved", "payment.authorized", "stock.committed", "payment.captured"], "completed"),
    (&["stock.rejected", "payment.authorized", "payment.voided"], "cancelled"),
    (&["stock.reserved", "payment.declined", "stock.released"], "cancelled"),
    (&["stock.reserved", "payment.authorized", "stock.committed", "payment.capture_failed"], "cancelled"),
];

/// All orders of `items`.
fn permutations<'a>(items: &[&'a str]) -> Vec<Vec<&'a str>> {
    if items.is_empty() {
        return vec![vec![]];
    }
    let first = |position: usize| {
        let mut rest = items.to_vec();
        let one = rest.remove(position);
        permutations(&rest).into_iter().map(move |rest| [vec![one], rest].concat())
    };
    (0..items.len()).flat_map(first).collect()
}

#[tokio::test]
async fn every_order_of_every_message_with_repeats_comes_to_the_same_end() {
    let mut shop = Consuming::open().await;
    let (mut events, mut ends, mut number) = (Vec::new(), BTreeMap::new(), 0_u128);
    for (world, end) in WORLDS {
        for messages in permutations(world) {
            let placed = shop.client.place_order(order(&[("latte", 1)])).await.unwrap().into_inner();
            let id: OrderId = placed.order.unwrap().order_id.parse().unwrap();
            ends.insert(id.0, (end, messages.clone()));
            let numbered: Vec<_> = messages
                .iter()
                .map(|message| {
                    number += 1;
                    (number, answer(id, message))
                })
                .collect();
            // Each once more, at once or behind all others.
            let (now, later) = numbered.split_at(numbered.len() / 2);
            events.extend(now.iter().flat_map(|one| [one.clone(), one.clone()]));
            events.extend(later.iter().cloned());
            events.extend(later.iter().rev().cloned());
        }
    }
    assert_eq!(ends.len(), 24 + 6 + 6 + 24);
    shop.send(&events).await;
    testkit::until("every answer to be applied", async || {
        let applied = shop.database.number("select count(*) from processed_outbox_ids").await;
        (applied == i64::try_from(number).unwrap()).then_some(())
    })
    .await;

    let client = shop.database.client().await;
    let rows = client.query("select id, status from orders", &[]).await.unwrap();
    for row in &rows {
        let (end, messages) = &ends[&row.get::<_, i64>(0)];
        assert_eq!(row.get::<_, &str>(1), *end, "after {messages:?}");
    }
    // One way through the graph, told of once each: the effects of the handlers, not what the keys let through.
    let twice =
        "select count(*) from (select from outbox group by aggregate_id, event_type having count(*) > 1) t";
    assert_eq!(shop.database.number(twice).await, 0);
    let finals = "select count(*) from outbox where event_type in ('order.completed', 'order.cancelled')";
    assert_eq!(shop.database.number(finals).await, 60);
    let steps = "select count(*) from order_history";
    let told = "select count(*) from outbox where event_type <> 'order.created'";
    assert_eq!(shop.database.number(steps).await, shop.database.number(told).await);
    shop.close().await;
}
