//! Names of the record headers (design: "The record").

use std::collections::BTreeMap;

/// The outbox row's id, in decimal.
pub const OUTBOX_ID: &str = "outbox-id";
/// The aggregate, equal to the record's key.
pub const AGGREGATE_ID: &str = "aggregate-id";
/// Which outbox the row stood in.
pub const OUTBOX_SOURCE: &str = "outbox-source";
/// The event's UUID: the same for every copy of the event.
pub const EVENT_ID: &str = "event-id";
/// What happened, for example `order.created`.
pub const EVENT_TYPE: &str = "event-type";
/// Always [`JSON`].
pub const CONTENT_TYPE: &str = "content-type";
/// W3C trace context of the span that created the event.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace state, if there was one.
pub const TRACESTATE: &str = "tracestate";

/// The trace context among headers, of which `header` finds one by its name, if it is there and a text: a broken one
/// costs the trace, never the event.
pub fn trace<'a>(header: impl Fn(&str) -> Option<&'a str>) -> BTreeMap<String, String> {
    let found = |name: &str| Some((name.to_owned(), header(name)?.to_owned()));
    [TRACEPARENT, TRACESTATE].into_iter().filter_map(found).collect()
}

/// The value of [`CONTENT_TYPE`].
pub const JSON: &str = "application/json";

/// On a dead letter: why it was given up.
pub const DEAD_REASON: &str = "dead-letter-reason";
/// On a dead letter: when, in RFC 3339.
pub const DEAD_AT: &str = "dead-letter-at";
/// On a dead letter: `topic/partition/offset` of the original.
pub const DEAD_ORIGIN: &str = "dead-letter-origin";
/// On a dead letter: who gave it up.
pub const DEAD_CONSUMER: &str = "dead-letter-consumer";

/// On a record that was put back from a dead letter topic: `topic/partition/offset` where it first stood.
pub const REDRIVEN_FROM: &str = "redriven-from";
