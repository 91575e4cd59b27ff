//! Counting acks: one shared table a batch, no future a record.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::{
    ClientContext, Message,
    producer::{DeliveryResult, NoCustomPartitioner, ProducerContext},
};
use tokio::{sync::Notify, time::Instant};

use super::failure::{self, ProducerFailure};

/// Where the broker has a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// In which partition.
    pub partition: i32,
    /// At which offset.
    pub offset: i64,
}

/// The batch that is under way. A producer has one at a time and is retired after an error, so a late report never
/// meets the next batch.
#[derive(Clone, Default)]
pub(super) struct Acks(Arc<Shared>);

#[derive(Default)]
struct Shared {
    batch: Mutex<Batch>,
    changed: Notify,
}

#[derive(Default)]
struct Batch {
    acks: Vec<Option<Ack>>,
    outstanding: usize,
    failure: Option<ProducerFailure>,
}

impl Acks {
    pub(super) fn begin(&self, records: usize) {
        *self.batch() = Batch { acks: vec![None; records], outstanding: 0, failure: None };
    }

    /// So many more records will be reported on.
    pub(super) fn expect(&self, records: usize) {
        self.batch().outstanding += records;
    }

    /// So many of them will not, since they were not enqueued.
    pub(super) fn expect_fewer(&self, records: usize) {
        let mut batch = self.batch();
        batch.outstanding = batch.outstanding.saturating_sub(records);
    }

    /// Waits until every expected report is here, or the first error, or `deadline`.
    pub(super) async fn wait(&self, deadline: Instant) -> Result<(), ProducerFailure> {
        let settled = async {
            loop {
                // Made before the look, so that a report in between is not missed.
                let changed = self.0.changed.notified();
                {
                    let batch = self.batch();
                    if let Some(failure) = &batch.failure {
                        return Err(failure.clone());
                    }
                    if batch.outstanding == 0 {
                        return Ok(());
                    }
                }
                changed.await;
            }
        };
        match tokio::time::timeout_at(deadline, settled).await {
            Ok(end) => end,
            Err(_) => Err(ProducerFailure::Deadline),
        }
    }

    pub(super) fn take(&self) -> Vec<Option<Ack>> {
        std::mem::take(&mut self.batch().acks)
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.0.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Acks {
    fn error(&self, error: rdkafka::error::KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "producer");
    }
}

impl ProducerContext<NoCustomPartitioner> for Acks {
    type DeliveryOpaque = usize;

    /// Runs on the client's polling thread.
    fn delivery(&self, result: &DeliveryResult<'_>, position: usize) {
        let mut batch = self.batch();
        match result {
            Ok(message) => {
                let ack = Ack { partition: message.partition(), offset: message.offset() };
                if let Some(slot) = batch.acks.get_mut(position) {
                    *slot = Some(ack);
                }
                batch.outstanding = batch.outstanding.saturating_sub(1);
                fail::fail_point!("producer-acked", |_| std::process::abort());
            }
            Err((error, _)) => {
                batch.failure.get_or_insert_with(|| failure::of_delivery(error));
            }
        }
        // Waking the waiter at each record would cost more than the record.
        if batch.outstanding == 0 || batch.failure.is_some() {
            self.0.changed.notify_one();
        }
    }
}
