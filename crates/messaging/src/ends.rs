//! How far a topic has come, asked again and again.

use std::{sync::Arc, time::Duration};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};

use crate::{Error, KafkaOptions, admin};

/// Asks over one connection, with one request for all partitions: to watch a topic grow costs the broker next to
/// nothing.
pub struct Ends {
    consumer: Arc<BaseConsumer>,
    topic: String,
    partitions: i32,
    timeout: Duration,
}

impl Ends {
    /// Connects; `timeout` is for this and for each later question.
    ///
    /// # Errors
    /// The broker is away, or there is no such topic.
    pub async fn of(options: &KafkaOptions, topic: &str, timeout: Duration) -> Result<Self, Error> {
        let found = admin::topics(options, timeout).await?.get(topic).copied();
        let partitions = found.ok_or_else(|| Error::NoTopic(topic.to_owned()))?;
        let consumer =
            options.client("brew-ends").create().map_err(Error::kafka("make a metadata client"))?;
        Ok(Self {
            consumer: Arc::new(consumer),
            topic: topic.to_owned(),
            partitions: i32::try_from(partitions).unwrap_or(i32::MAX),
            timeout,
        })
    }

    /// Which topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The next offset of each partition, added up: how many records there have been, where nobody writes in
    /// transactions.
    ///
    /// # Errors
    /// The broker's, or its silence.
    pub async fn sum(&self) -> Result<i64, Error> {
        let (consumer, timeout) = (Arc::clone(&self.consumer), self.timeout);
        let mut asked = TopicPartitionList::new();
        for partition in 0..self.partitions {
            // To the client an offset for a time, of which this one stands for the end.
            asked
                .add_partition_offset(&self.topic, partition, Offset::End)
                .map_err(Error::kafka("name a partition"))?;
        }
        let answer = tokio::task::spawn_blocking(move || consumer.offsets_for_times(asked, timeout)).await?;
        let mut sum = 0;
        for partition in answer.map_err(Error::kafka("ask for ends"))?.elements() {
            partition.error().map_err(Error::kafka("ask for an end"))?;
            sum += match partition.offset() {
                Offset::Offset(end) => end,
                // No record yet.
                _ => 0,
            };
        }
        Ok(sum)
    }
}
