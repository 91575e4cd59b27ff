//! Topic names.

/// Events of orders; key `order-<id>`.
pub const ORDERS: &str = "brew.orders.v1";
/// Events of stock; key `order-<id>`.
pub const INVENTORY: &str = "brew.inventory.v1";
/// Events of payments; key `order-<id>`.
pub const PAYMENTS: &str = "brew.payments.v1";

/// Every topic that carries events.
pub const ALL: [&str; 3] = [ORDERS, INVENTORY, PAYMENTS];

/// Where `consumer` puts the records of `topic` that it cannot read or apply.
#[must_use]
pub fn dead_letter(topic: &str, consumer: &str) -> String {
    format!("{topic}.{consumer}.dlq")
}

/// Where exactly-once publishers of the outbox `source` say what they have sent.
#[must_use]
pub fn progress(source: &str) -> String {
    format!("brew.progress.{source}")
}

/// How many partitions that topic has: one for each of an outbox's lanes.
pub const PROGRESS_PARTITIONS: usize = 4;
