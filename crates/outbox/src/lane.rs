//! Lanes: what exactly-once delivery keeps in the database, which is an offset for each.

use time::OffsetDateTime;

use crate::{Error, SHARDS, Session, settle::widen};

/// How many lanes an outbox has. Frozen: a lane's number is part of its transactional id, and only that keeps a
/// publisher that is presumed dead from writing.
pub const LANES: i16 = 4;

/// The lane of `shard`.
#[must_use]
pub fn lane_of(shard: i16) -> i16 {
    shard.rem_euclid(SHARDS) % LANES
}

/// Rows that are in Kafka for certain: what a progress record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Their ids.
    pub ids: Vec<i64>,
    /// The first `created_at` among them.
    pub first: OffsetDateTime,
    /// The last.
    pub last: OffsetDateTime,
}

const OWN: &str = "select pg_try_advisory_lock(hashtext('brew_outbox_lane'), $1::smallint::int)";
const STATE: &str = "select outbox_source_name(), progress_offset from outbox_lane where lane = $1";

impl Session {
    /// Makes this session the lane's keeper until it ends, unless another session is; says whether it is now. A matter
    /// of manners: two publishers in one lane fence each other all the time, and do no harm. Not behind a pooler in
    /// transaction mode. Once for each session.
    ///
    /// # Errors
    /// The session is of no more use.
    pub async fn keep_lane(&mut self, lane: i16) -> Result<bool, Error> {
        self.abandon().await?;
        let kept = self.client.query_one(OWN, &[&lane]).await?.try_get(0)?;
        if kept {
            // A keeper that is frozen loses the lane as it loses a claim.
            self.client.batch_execute(&self.idle).await?;
        }
        Ok(kept)
    }

    /// The outbox's name, and up to which offset the lane's progress is marked.
    ///
    /// # Errors
    /// The session is of no more use.
    pub async fn lane(&mut self, lane: i16) -> Result<(String, i64), Error> {
        self.abandon().await?;
        let row = self.client.query_one(STATE, &[&lane]).await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    /// Marks what a publisher before this one has sent and not marked; `offset` is that of the progress record behind
    /// the last that was read. Harmless if it was marked, or is being: it says only what is true.
    ///
    /// # Errors
    /// The session is of no more use, and what was marked unknown; to be done again.
    pub async fn catch_up(&mut self, lane: i16, sent: &[Sent], offset: i64) -> Result<u64, Error> {
        self.abandon().await?;
        let transaction = self.client.transaction().await?;
        let mut marked = 0;
        for one in sent {
            let mark = &self.statements.mark_published;
            marked += mark.execute(transaction.client(), &[&one.ids, &one.first, &one.last]).await?;
        }
        self.statements.advance_lane.execute(transaction.client(), &[&lane, &offset]).await?;
        transaction.commit().await?;
        Ok(marked)
    }
}

impl crate::Claim<'_> {
    /// What a progress record says of the rows at `positions`; none if there are none.
    ///
    /// # Errors
    /// Only if the table is not the one of this crate's migrations.
    pub fn sent(&self, positions: &[usize]) -> Result<Option<Sent>, Error> {
        let (mut ids, mut span) = (Vec::with_capacity(positions.len()), None);
        for row in positions.iter().filter_map(|position| self.rows.get(*position)) {
            ids.push(row.try_get(0)?);
            span = Some(widen(span, row.try_get(1)?));
        }
        Ok(span.map(|(first, last)| Sent { ids, first, last }))
    }
}
