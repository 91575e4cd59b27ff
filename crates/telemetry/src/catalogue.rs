//! Every metric that a service of Brew has, by the name under which Prometheus sees it. A test
//! scrapes every one of them.

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// As Prometheus sees it.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What it says, in a sentence.
    pub help: &'static str,
    /// Its labels. None of them grows with the number of orders.
    pub labels: &'static [&'static str],
}

const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels }
}

const fn gauge(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels }
}

const fn histogram(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Metric {
    Metric { name, kind: Kind::Histogram, help, labels }
}

/// Rows that wait.
pub const OUTBOX_PENDING: Metric =
    gauge("brew_outbox_pending_rows", "Rows that wait to be published; counted up to 100,000.", &["source"]);
/// How long the oldest has waited.
pub const OUTBOX_OLDEST: Metric = gauge(
    "brew_outbox_oldest_pending_age_seconds",
    "Age of the oldest row that waits to be published; 0 when none does.",
    &["source"],
);
/// Rows for a person.
pub const OUTBOX_PARKED: Metric =
    gauge("brew_outbox_parked_rows", "Rows that cannot be sent and wait for a person.", &["source"]);
/// Log that is kept.
pub const OUTBOX_SLOT: Metric = gauge(
    "brew_outbox_slot_lag_bytes",
    "Log that the furthest replication slot of the outbox's database keeps on the disk; 0 without a slot.",
    &["source"],
);
/// Published.
pub const RELAY_PUBLISHED: Metric =
    counter("brew_relay_published_total", "Rows that Kafka has acknowledged.", &["source"]);
/// Turns.
pub const RELAY_TURNS: Metric =
    counter("brew_relay_turns_total", "Turns of the relay that claimed shards.", &["source", "outcome"]);
/// Failed sends.
pub const RELAY_FAILURES: Metric = counter(
    "brew_relay_failures_total",
    "Turns of the relay that failed, by what failed.",
    &["source", "reason"],
);
/// Parked.
pub const RELAY_PARKED: Metric =
    counter("brew_relay_parked_total", "Rows that the relay has parked.", &["source"]);
/// Rows a batch.
pub const RELAY_BATCH: Metric = histogram("brew_relay_batch_rows", "Rows a claim.", &["source"]);
/// From the row's transaction to the ack.
pub const RELAY_WAIT: Metric = histogram(
    "brew_relay_commit_to_ack_seconds",
    "From the begin of a row's transaction to Kafka's acknowledgement.",
    &["source"],
);
/// How long shards were locked.
pub const RELAY_CLAIM: Metric = histogram(
    "brew_relay_claim_seconds",
    "How long a claim held its shards, from the lock to the commit of the marks.",
    &["source"],
);
/// Events by what became of them.
pub const CONSUMER_EVENTS: Metric = counter(
    "brew_consumer_events_total",
    "Events by what became of them: inserted, skipped (known before), held (behind a dead letter).",
    &["group", "outcome"],
);
/// Behind.
pub const CONSUMER_LAG: Metric = gauge(
    "brew_consumer_lag_records",
    "Records that this member has not settled, of its own partitions.",
    &["group", "topic"],
);
/// Dead letters.
pub const CONSUMER_DEAD: Metric =
    counter("brew_consumer_dead_letters_total", "Records that became dead letters.", &["group"]);
/// Repeats.
pub const CONSUMER_RETRIES: Metric = counter(
    "brew_consumer_retries_total",
    "Batches that were not applied and tried again, by reason.",
    &["group", "reason"],
);
/// Seconds a batch.
pub const CONSUMER_BATCH: Metric =
    histogram("brew_consumer_batch_seconds", "One try to apply a batch, in one transaction.", &["group"]);
/// Moves of orders.
pub const ORDER_MOVES: Metric =
    counter("brew_order_moves_total", "Orders by the status they came to.", &["status"]);
/// How long an order took.
pub const ORDER_FINAL: Metric =
    histogram("brew_order_final_seconds", "From an order's acceptance to its final status.", &["status"]);
/// How old the oldest is that goes on.
pub const ORDER_OPEN: Metric = gauge(
    "brew_order_oldest_open_age_seconds",
    "Age of the oldest order that is neither completed nor cancelled; 0 when there is none.",
    &[],
);
/// Calls of the payment provider.
pub const GATEWAY_CALLS: Metric = histogram(
    "brew_gateway_call_seconds",
    "Calls of the payment provider: settled, unclear (made again) or senseless (for a person).",
    &["operation", "outcome"],
);
/// gRPC.
pub const RPC_SERVER: Metric = histogram(
    "rpc_server_call_duration_seconds",
    "gRPC calls until the answer begins.",
    &["rpc_method", "rpc_response_status_code"],
);
/// Connections.
pub const DB_CONNECTIONS: Metric =
    gauge("brew_db_connections", "Connections of the pool: idle or used.", &["state"]);
/// Build.
pub const BUILD_INFO: Metric = gauge("brew_build_info", "1, with the version.", &["service", "version"]);

/// All of them. Beside these there are `process_*`, of the Prometheus client, and `target_info`.
pub const ALL: [Metric; 23] = [
    OUTBOX_PENDING,
    OUTBOX_OLDEST,
    OUTBOX_PARKED,
    OUTBOX_SLOT,
    RELAY_PUBLISHED,
    RELAY_TURNS,
    RELAY_FAILURES,
    RELAY_PARKED,
    RELAY_BATCH,
    RELAY_WAIT,
    RELAY_CLAIM,
    CONSUMER_EVENTS,
    CONSUMER_LAG,
    CONSUMER_DEAD,
    CONSUMER_RETRIES,
    CONSUMER_BATCH,
    ORDER_MOVES,
    ORDER_FINAL,
    ORDER_OPEN,
    GATEWAY_CALLS,
    RPC_SERVER,
    DB_CONNECTIONS,
    BUILD_INFO,
];
