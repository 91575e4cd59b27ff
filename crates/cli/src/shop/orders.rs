//! Orders, placed and watched to their end.

use std::time::{Duration, Instant};

use crate::order::{self, status_text};
use anyhow::Context;
use proto::order::v1::{OrderLine, OrderStatus, PlaceOrderRequest, WatchOrderRequest};

/// How long an order may take to its final state.
const DEADLINE: Duration = Duration::from_secs(60);

/// An order that has come to its end, or has not in time.
#[derive(Debug, Clone)]
pub(crate) struct Ordered {
    pub(crate) order_id: String,
    pub(crate) status: OrderStatus,
    pub(crate) reason: String,
    pub(crate) took: Duration,
    /// If it is sampled.
    pub(crate) trace_id: Option<String>,
}

impl Ordered {
    /// `completed`, or `cancelled (out_of_stock)`.
    pub(crate) fn end(&self) -> String {
        status_text(self.status, &self.reason)
    }
}

/// Places an order of `lines`, paid with `token`, and watches it until it is final; `changed` is told of each change.
pub(crate) async fn place_and_watch(
    address: &str,
    lines: &[(&str, i32)],
    token: &str,
    changed: impl Fn(&Ordered),
) -> anyhow::Result<Ordered> {
    let mut client = order::connect(address).await?;
    let lines = lines.iter().map(|(sku, quantity)| OrderLine { sku: (*sku).to_owned(), quantity: *quantity });
    let began = Instant::now();
    let request = PlaceOrderRequest {
        customer: "a customer of the demo".to_owned(),
        lines: lines.collect(),
        idempotency_key: uuid::Uuid::new_v4().to_string(),
        payment_token: token.to_owned(),
    };
    let placed = client.place_order(request).await.context("place an order")?;
    let trace_id = order::trace_id(&placed);
    let order_id = placed.into_inner().order.context("an answer without an order")?.order_id;
    let mut last = Ordered {
        order_id: order_id.clone(),
        status: OrderStatus::Pending,
        reason: String::new(),
        took: Duration::ZERO,
        trace_id,
    };
    // An order that is not final in time is returned as it stood.
    let changed = |last: &mut Ordered| {
        last.took = began.elapsed();
        changed(last);
    };
    let watched = tokio::time::timeout(DEADLINE, watch(&mut client, order_id, &mut last, changed)).await;
    if let Ok(watched) = watched {
        watched?;
    }
    last.took = began.elapsed();
    Ok(last)
}

async fn watch(
    client: &mut order::Client,
    order_id: String,
    last: &mut Ordered,
    changed: impl Fn(&mut Ordered),
) -> anyhow::Result<()> {
    let mut changes = client.watch_order(WatchOrderRequest { order_id }).await?.into_inner();
    while let Some(change) = changes.message().await.context("watch an order")? {
        let order = change.order.context("a change without an order")?;
        last.status = order.status();
        last.reason = order.cancel_reason;
        changed(last);
    }
    Ok(())
}
