//! An outbox row as a Kafka record.

use std::borrow::Cow;

use events::header;
use messaging::Record;
use outbox::PendingRow;
use runtime::seeded::{Bug, seeded};

/// Key, value and headers of `row`; the payload's bytes are passed on as they are.
pub(crate) fn record<'c>(row: &'c PendingRow<'c>) -> Record<'c> {
    let mut headers: Vec<(&str, Cow<'_, [u8]>)> = vec![
        (header::OUTBOX_ID, owned(&row.id)),
        (header::AGGREGATE_ID, Cow::Borrowed(row.aggregate_id.as_bytes())),
        (header::OUTBOX_SOURCE, Cow::Borrowed(row.source.as_bytes())),
        (header::EVENT_ID, event_id(row)),
        (header::EVENT_TYPE, Cow::Borrowed(row.event_type.as_bytes())),
        (header::CONTENT_TYPE, Cow::Borrowed(header::JSON.as_bytes())),
    ];
    let reserved = headers.len();
    for (name, value) in &row.headers {
        // What identifies the event comes from the row's columns alone.
        if !headers[..reserved].iter().any(|(taken, _)| taken == name) {
            headers.push((name, Cow::Borrowed(value.as_bytes())));
        }
    }
    Record { topic: row.topic, key: row.aggregate_id.as_bytes(), payload: row.payload.as_bytes(), headers }
}

fn event_id(row: &PendingRow<'_>) -> Cow<'static, [u8]> {
    let id = row.event_id.to_string();
    if seeded(Bug::ForgesEventId) {
        return owned(&format!("{:08x}{}", std::process::id(), &id[8..]));
    }
    Cow::Owned(id.into_bytes())
}

/// Payloads for second copies of `rows`; none but for [`Bug::RewritesCopies`].
pub(crate) fn rewritten(rows: &[PendingRow<'_>]) -> Vec<Vec<u8>> {
    let count = if seeded(Bug::RewritesCopies) { rows.len() } else { 0 };
    rows[..count].iter().map(|row| format!("{} ", row.payload).into_bytes()).collect()
}

fn owned(value: &impl ToString) -> Cow<'static, [u8]> {
    Cow::Owned(value.to_string().into_bytes())
}
