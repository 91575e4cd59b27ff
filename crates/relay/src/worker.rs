//! One worker: one connection, one producer, one batch at a time. Produce first, mark last.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use messaging::{Ack, Producer, ProducerFailure, Record, RefusedReason, SendOutcome};
use outbox::{Claim, ClaimLimits, PendingRow, SHARDS, Session, Settlement, lane_of};
use runtime::{
    fault::{CrashPoint, crash_if_armed},
    seeded::{Bug, seeded},
};
use telemetry::spans;
use tokio::time::Instant;

use crate::{
    aside::{Aside, set_aside},
    lane::Lane,
    options::{Options, Source, Target},
    records::{record, rewritten},
    tell,
};

/// How often a topic that a row names in vain is asked for again.
const TOPIC_REFRESH: Duration = Duration::from_secs(1);

/// Is told of each record that the broker has, before its row is marked.
pub type Observer = Arc<dyn Fn(&Published<'_>) + Send + Sync>;

/// A record that the broker has.
#[derive(Debug, Clone, Copy)]
pub struct Published<'c> {
    /// The row's id.
    pub outbox_id: i64,
    /// Whose event.
    pub aggregate_id: &'c str,
    /// Where it is.
    pub topic: &'c str,
    /// Where it is.
    pub ack: Ack,
}

/// What one turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing is pending.
    Idle,
    /// Something is pending, in shards that others hold.
    Elsewhere,
    /// Something is pending, in a lane that another replica keeps for as long as it lives.
    Standby,
    /// Something is pending, and nothing of it could be sent or set aside now.
    Held,
    /// All went well: so many rows were acknowledged and marked. Others may have been set aside, which is said in
    /// the log.
    Moved {
        /// How many.
        rows: usize,
    },
}

/// Why a turn did not go well. Rows that were acknowledged are marked all the same, unless the database is the
/// reason; all others stay pending and are read again from the shard's first pending row.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The database is away, or has ended the session: the claim is lost, and nothing was marked.
    #[error("claim lost")]
    Outbox(#[from] outbox::Error),
    /// The broker is away; no claim was made.
    #[error("no producer")]
    Kafka(#[from] messaging::Error),
    /// A progress record that this version cannot read. Nothing is sent in its lane, or it might be sent twice.
    #[error("progress at {topic}[{partition}]@{offset} cannot be read")]
    Progress {
        /// Where it is.
        topic: String,
        /// Where it is.
        partition: i32,
        /// Where it is.
        offset: i64,
    },
    /// A batch was not acknowledged whole; so many rows were.
    #[error("batch not acknowledged whole, {acknowledged} row(s) are: {failure}")]
    Send {
        /// Acknowledged and marked.
        acknowledged: usize,
        /// Why not all.
        failure: ProducerFailure,
    },
}

/// One worker of one source.
pub struct Worker {
    source: Source,
    client_id: String,
    sender: spans::Sender,
    target: Target,
    options: Options,
    observer: Option<Observer>,
    session: Option<Session>,
    producer: Option<Producer>,
    /// Where the next claim begins looking for shards.
    start: i16,
    batch: usize,
    /// The last claim was.
    full: bool,
    deadline_ms: u64,
    topics_asked: Instant,
    /// Of exactly-once delivery.
    lane: Option<Lane>,
}

impl Worker {
    /// One that delivers exactly once what is in lane `number`.
    pub(crate) fn of_lane(
        number: i16,
        source: Source,
        (target, options): (Target, Options),
        observer: Option<Observer>,
    ) -> Self {
        Self { lane: Some(Lane::new(number)), ..Self::new(source, target, options, observer) }
    }

    /// A worker that connects in its first turn.
    #[must_use]
    pub fn new(source: Source, target: Target, options: Options, observer: Option<Observer>) -> Self {
        let (batch, deadline_ms) = (options.batch_size, options.send_deadline_ms);
        let (session, producer) = (None, None);
        let topics_asked = Instant::now();
        let client_id = format!("brew-relay-{}", source.name);
        let sender = spans::Sender::new(&client_id, target.kafka.first_broker());
        Self {
            source,
            client_id,
            sender,
            target,
            options,
            observer,
            session,
            producer,
            start: 0,
            batch,
            full: false,
            deadline_ms,
            topics_asked,
            lane: None,
        }
    }

    /// One turn: look, claim, send, await the acks, mark what was acknowledged. Lasts no longer than the connect
    /// timeouts and the send deadline together, so a shutdown waits for it; not cancellation safe in that a
    /// cancelled turn's records may be in Kafka unmarked (they are sent again).
    ///
    /// # Errors
    /// See [`TurnError`]; the next turn starts afresh.
    pub async fn drain_once(&mut self) -> Result<Turn, TurnError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.connect_session().await?,
        };
        // After a full claim there is more, most likely everywhere.
        let mut pending = if self.full { (0..SHARDS).collect() } else { session.pending_shards().await? };
        pending.retain(|shard| *shard < SHARDS / 2 || !seeded(Bug::LeavesShards));
        if let Some(lane) = &self.lane {
            pending.retain(|shard| lane_of(*shard) == lane.number);
        }
        if pending.is_empty() {
            self.session = Some(session);
            return Ok(Turn::Idle);
        }
        if let Some(lane) = &mut self.lane
            && !lane.keep(&mut session).await?
        {
            self.session = Some(session);
            return Ok(Turn::Standby);
        }
        // Before the claim: no shard is locked while the broker is known to be away.
        let producer = match self.connect(&mut session).await {
            Ok(producer) => producer,
            Err(error) => {
                if !matches!(error, TurnError::Outbox(_)) {
                    self.session = Some(session);
                }
                return Err(error);
            }
        };
        let limits =
            ClaimLimits { max_shards: as_i64(self.options.max_shards), max_rows: as_i64(self.batch) };
        let claimed = Instant::now();
        let claim = session.claim(&pending, self.start, limits).await?;
        fail::fail_point!("relay-claimed", |_| std::process::abort());
        // Behind the last row, not a fixed step on: with a step, shards behind one whose row fails may never be
        // the first.
        self.full = claim.len() >= self.batch;
        self.start = (claim.last_shard()?.unwrap_or(self.start) + 1) % SHARDS;
        let turn = self.publish(claim, producer).await;
        tell::turned(&self.source.name, &turn, claimed.elapsed());
        if !matches!(turn, Err(TurnError::Outbox(_))) {
            self.session = Some(session);
        }
        turn
    }

    /// Whether some row waits for another try; false also when the outbox cannot be asked.
    pub async fn waits(&self) -> bool {
        match &self.session {
            Some(session) => session.waits().await.unwrap_or(false),
            None => false,
        }
    }

    /// Ends the producer. Nothing is under way between turns.
    pub async fn close(mut self) {
        if let Some(producer) = self.producer.take() {
            producer.retire().await;
        }
    }

    /// A session; what the one before has committed to Kafka in a lane may not be marked, so it is looked at again.
    async fn connect_session(&mut self) -> Result<Session, outbox::Error> {
        let Some(lane) = &mut self.lane else {
            return Session::connect(&self.options.session(&self.source)).await;
        };
        lane.lost();
        if let Some(producer) = self.producer.take() {
            producer.retire().await;
        }
        Session::connect(&self.options.direct_session(&self.source)).await
    }

    /// A producer that has seen the broker, with topics as declared.
    async fn connect(&mut self, session: &mut Session) -> Result<Producer, TurnError> {
        let timeout = self.options.connect_timeout();
        let producer = match (self.producer.take(), &mut self.lane) {
            (Some(producer), _) => producer,
            (None, lane) => {
                self.topics_asked = Instant::now();
                match lane {
                    Some(lane) => lane.open(session, &self.target, (&self.options, &self.client_id)).await?,
                    None => Producer::connect(&self.target.kafka, &self.client_id, timeout).await?,
                }
            }
        };
        for (topic, declared) in &self.target.declared {
            if let Some(found) = producer.partitions(topic)
                && found != *declared
            {
                let (topic, declared) = (topic.clone(), *declared);
                producer.retire().await;
                return Err(messaging::Error::PartitionCount { topic, found, declared }.into());
            }
        }
        Ok(producer)
    }

    async fn publish(&mut self, claim: Claim<'_>, mut producer: Producer) -> Result<Turn, TurnError> {
        if claim.is_empty() {
            self.producer = Some(producer);
            let moves_others = claim.moves_others();
            claim.settle(Settlement::default()).await?;
            return Ok(if moves_others { Turn::Moved { rows: 0 } } else { Turn::Elsewhere });
        }
        let mut rows = claim.rows()?;
        let mut positions: Vec<usize> = (0..rows.len()).collect();
        if seeded(Bug::SendsBackwards) {
            positions.reverse();
            rows.reverse();
        }
        let rewritten = rewritten(&rows);
        let mut records: Vec<Record<'_>> = rows.iter().map(record).collect();
        records.extend(rows.iter().zip(&rewritten).map(|(row, payload)| Record { payload, ..record(row) }));
        if seeded(Bug::MarksUnsent) {
            records.truncate(rows.len() / 2);
        }
        let deadline = Instant::now() + Duration::from_millis(self.deadline_ms);
        let began = SystemTime::now();
        let (outcome, progress) = self.send(&mut producer, &claim, (&records, &positions), deadline).await?;

        let mut acknowledged = self.acknowledged(&positions, &rows, &outcome);
        if seeded(Bug::MarksUnsent) {
            acknowledged.clone_from(&positions);
        }
        fail::fail_point!("relay-all-acked", |_| std::process::abort());
        crash_if_armed(CrashPoint::AfterAckBeforeMark, || {
            format!("{} record(s) are in Kafka, no row is marked", acknowledged.len())
        });
        tell::sent(&self.source.name, &self.sender, &rows, &outcome, began);
        let Aside { waiting, parked } = set_aside(&self.source.name, &rows, &outcome, &self.options);
        let alone = rows.len() == 1;
        drop(records);
        tell::parked(&self.source.name, parked.len());
        let moved = acknowledged.len() + waiting.len() + parked.len();
        let settlement = Settlement {
            acknowledged: &acknowledged,
            waiting: &waiting,
            parked: &parked,
            pass_parked: !self.options.parked_aggregates_wait,
            progress,
        };
        let moves_others = claim.moves_others();
        let marked = claim.settle(settlement).await;
        self.after(producer, &outcome, alone).await;
        let marked = marked?;
        fail::fail_point!("relay-committed", |_| std::process::abort());
        if marked < acknowledged.len() as u64 {
            tracing::warn!(marked, acknowledged = acknowledged.len(), "rows were marked by somebody else");
        }
        match outcome.failure {
            Some(failure) => Err(TurnError::Send { acknowledged: acknowledged.len(), failure }),
            None if moved == 0 && !moves_others => Ok(Turn::Held),
            None => Ok(Turn::Moved { rows: acknowledged.len() }),
        }
    }

    /// Sends; in a lane, as a transaction, which is committed or counts for nothing.
    async fn send(
        &self,
        producer: &mut Producer,
        claim: &Claim<'_>,
        (records, positions): (&[Record<'_>], &[usize]),
        deadline: Instant,
    ) -> Result<(SendOutcome, Option<(i16, i64)>), TurnError> {
        let Some(lane) = &self.lane else { return Ok((producer.send(records, deadline).await, None)) };
        producer.begin().await?;
        let mut outcome = producer.send(records, deadline).await;
        let acks = positions.iter().zip(&outcome.acks);
        let acknowledged: Vec<usize> =
            acks.filter(|(_, ack)| ack.is_some()).map(|(position, _)| *position).collect();
        let sent = claim.sent(&acknowledged)?;
        let progress = lane.decide(producer, sent, &mut outcome, deadline).await;
        Ok((outcome, progress))
    }

    /// Positions in the claim of the rows that the broker has.
    fn acknowledged(
        &self,
        positions: &[usize],
        rows: &[PendingRow<'_>],
        outcome: &SendOutcome,
    ) -> Vec<usize> {
        let mut acknowledged = Vec::with_capacity(rows.len());
        for ((position, row), ack) in positions.iter().zip(rows).zip(&outcome.acks) {
            let Some(ack) = *ack else { continue };
            acknowledged.push(*position);
            if let Some(observer) = &self.observer {
                let (aggregate_id, topic) = (row.aggregate_id, row.topic);
                observer(&Published { outbox_id: row.id, aggregate_id, topic, ack });
            }
        }
        acknowledged
    }

    /// Keeps or retires the producer, and fits batch and deadline to how the broker does.
    async fn after(&mut self, mut producer: Producer, outcome: &SendOutcome, alone: bool) {
        let Some(failure) = &outcome.failure else {
            self.batch = (self.batch * 2).min(self.options.batch_size);
            self.deadline_ms = self.options.send_deadline_ms;
            let unknown = outcome.refused.iter().any(|(_, why)| *why == RefusedReason::UnknownTopic);
            if unknown && self.topics_asked.elapsed() > TOPIC_REFRESH {
                self.topics_asked = Instant::now();
                if let Err(error) = producer.refresh_topics(self.options.connect_timeout()).await {
                    tracing::warn!(%error, "topics not asked for again");
                }
            }
            self.producer = Some(producer);
            return;
        };
        producer.retire().await;
        match failure {
            ProducerFailure::Deadline => {
                self.batch = (self.batch / 2).max(1);
                self.deadline_ms = (self.deadline_ms * 2).min(self.options.send_deadline_cap_ms);
            }
            // The request that holds the bad record fails whole: smaller ones free its neighbours, until it fails
            // alone and is known.
            ProducerFailure::BadRecord(_) if alone => self.batch = self.options.batch_size,
            ProducerFailure::BadRecord(_) => self.batch = (self.batch / 2).max(1),
            ProducerFailure::Transient(_)
            | ProducerFailure::Topic(_)
            | ProducerFailure::Unauthorized(_)
            | ProducerFailure::Fatal(_)
            | ProducerFailure::PartitionsChanged
            | ProducerFailure::Retired => {}
        }
    }
}

fn as_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
