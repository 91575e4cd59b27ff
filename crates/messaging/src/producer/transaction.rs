//! A producer whose batches become visible whole or not at all, and that fences whoever had its id before.

use std::time::Duration;

use rdkafka::producer::{Producer as _, ThreadedProducer};

use crate::{Error, KafkaOptions};

use super::{Acks, Producer};

impl Producer {
    /// As [`connect`](Self::connect), for one `transactional_id`: whoever had the id before can write no more, and
    /// what that one had begun is decided when this returns. A transaction that is open for longer than
    /// `longest` is ended by the broker.
    ///
    /// # Errors
    /// The broker is away, refuses, or has not decided within `timeout`.
    pub async fn connect_transactional(
        options: &KafkaOptions,
        client_id: &str,
        transactional_id: &str,
        (timeout, longest): (Duration, Duration),
    ) -> Result<Self, Error> {
        let mut config = options.producer(client_id);
        let longest_ms = longest.as_millis().to_string();
        config
            .set("transactional.id", transactional_id)
            .set("transaction.timeout.ms", &longest_ms)
            // The client wants no more than the above; the deadline of a batch is shorter.
            .set("message.timeout.ms", &longest_ms);
        let mut producer = Self::made(options, &config)?;
        let begun =
            producer.blocking("fence the producer before", move |inner| inner.init_transactions(timeout));
        let ready = match begun.await {
            Ok(()) => producer.refresh_topics(timeout).await,
            Err(error) => Err(error),
        };
        producer.if_ready(ready).await
    }

    /// Begins a transaction: what is sent from now on is seen when it is [committed](Self::commit), or never.
    ///
    /// # Errors
    /// This producer must be retired.
    pub async fn begin(&self) -> Result<(), Error> {
        self.blocking("begin a transaction", |inner| inner.begin_transaction()).await
    }

    /// Commits. After an error the batch is visible or will never be; the next producer of the id knows.
    ///
    /// # Errors
    /// This producer must be retired.
    pub async fn commit(&self, timeout: Duration) -> Result<(), Error> {
        self.blocking("commit a transaction", move |inner| inner.commit_transaction(timeout)).await
    }

    /// Aborts: nothing of the transaction is ever visible.
    ///
    /// # Errors
    /// This producer must be retired.
    pub async fn abort(&self, timeout: Duration) -> Result<(), Error> {
        self.blocking("abort a transaction", move |inner| inner.abort_transaction(timeout)).await
    }

    /// These calls of the client block.
    async fn blocking(
        &self,
        context: &'static str,
        call: impl FnOnce(&ThreadedProducer<Acks>) -> Result<(), rdkafka::error::KafkaError> + Send + 'static,
    ) -> Result<(), Error> {
        let Some(inner) = self.inner.clone() else { return Ok(()) };
        tokio::task::spawn_blocking(move || call(&inner)).await?.map_err(Error::kafka(context))
    }
}
