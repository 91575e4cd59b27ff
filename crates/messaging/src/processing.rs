//! What a try to apply a batch tells: a span for each event, in the event's trace, and a measurement.

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use telemetry::{catalogue, context, metrics, spans};
use tracing::{Instrument, Span};

use crate::{ApplyError, Delivery};

static EVENTS: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::CONSUMER_EVENTS));
static RETRIES: LazyLock<Counter<u64>> = LazyLock::new(|| metrics::counter(&catalogue::CONSUMER_RETRIES));
static BATCHES: LazyLock<Histogram<f64>> = LazyLock::new(|| metrics::seconds(&catalogue::CONSUMER_BATCH));

/// One try to apply a batch.
pub struct Processing {
    group: &'static str,
    began: Instant,
    spans: Vec<Span>,
}

impl Processing {
    /// Begins a span for each event of `batch`, if spans are sent anywhere; the events' trace context is then
    /// that span's, so that what follows from an event is its child.
    #[must_use]
    pub fn begin(group: &'static str, batch: &mut [Arc<Delivery>]) -> Self {
        let spans =
            if spans::on() { batch.iter_mut().map(|one| begin(group, one)).collect() } else { Vec::new() };
        Self { group, began: Instant::now(), spans }
    }

    /// Applies the batch by `apply`, whose statements are one each for the whole batch and belong to the first event's
    /// span. `is_new` says of what became of an event whether it took effect now, or nothing if it was held back.
    ///
    /// # Errors
    /// What `apply` fails with; nothing of the batch has any effect then.
    pub async fn run<A, E: Into<ApplyError>>(
        self,
        apply: impl Future<Output = Result<Vec<A>, E>>,
        is_new: impl Fn(&A) -> Option<bool>,
    ) -> Result<Vec<A>, ApplyError> {
        let first = self.spans.first().cloned().unwrap_or_else(Span::none);
        match apply.instrument(first).await {
            Ok(applied) => {
                self.applied(applied.iter().map(is_new));
                Ok(applied)
            }
            Err(error) => {
                let error = error.into();
                self.failed(&error);
                Err(error)
            }
        }
    }

    fn applied(self, new: impl IntoIterator<Item = Option<bool>>) {
        let (mut inserted, mut skipped, mut held) = (0, 0, 0);
        for (position, new) in new.into_iter().enumerate() {
            match new {
                Some(true) => inserted += 1,
                Some(false) => skipped += 1,
                None => held += 1,
            }
            if let Some(span) = self.spans.get(position) {
                match new {
                    Some(new) => span.record("brew.message.duplicate", !new),
                    None => span.record("error.type", "waits_behind_dead_letter"),
                };
            }
        }
        for (outcome, count) in [("inserted", inserted), ("skipped", skipped), ("held", held)] {
            EVENTS.add(count, &[KeyValue::new("group", self.group), KeyValue::new("outcome", outcome)]);
        }
        BATCHES.record(self.began.elapsed().as_secs_f64(), &[KeyValue::new("group", self.group)]);
    }

    fn failed(self, error: &ApplyError) {
        let reason = match error {
            ApplyError::Conflict(_) => "conflict",
            ApplyError::Unavailable(_) => "unavailable",
            ApplyError::Data(_) => "bad_data",
        };
        for span in &self.spans {
            spans::failed(span, reason);
        }
        RETRIES.add(1, &[KeyValue::new("group", self.group), KeyValue::new("reason", reason)]);
    }
}

fn begin(group: &str, one: &mut Arc<Delivery>) -> Span {
    let event_id = one.envelope.event_id.0.to_string();
    let message = spans::Message {
        topic: &one.place.topic,
        partition: Some(one.place.partition),
        offset: Some(one.place.offset),
        key: &one.envelope.aggregate_id,
        event_id: &event_id,
    };
    let span = spans::process(group, message, &one.envelope.trace);
    Arc::make_mut(one).envelope.trace = context::of(&span);
    span
}
