//! Settling a claim: what was acknowledged is marked, what cannot be sent is set aside, the shards are free.

use std::time::Duration;

use futures::future::try_join;
use time::OffsetDateTime;

use crate::{Claim, Error};

/// What became of a claim's rows, by their positions in it. Rows that are not named stay as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settlement<'a> {
    /// Acknowledged by the broker.
    pub acknowledged: &'a [usize],
    /// Cannot be sent now: why, and how long until the next try. Their aggregates wait.
    pub waiting: &'a [(usize, String, Duration)],
    /// Cannot be sent until a person does something: why.
    pub parked: &'a [(usize, String)],
    /// Whether the aggregates of parked rows go on without them.
    pub pass_parked: bool,
    /// Of exactly-once delivery: the lane, and the offset behind its newest progress record.
    pub progress: Option<(i16, i64)>,
}

impl Claim<'_> {
    /// Marks, sets aside, commits, and frees the shards. Returns how many rows were marked, which is fewer than
    /// acknowledged only if somebody else had marked one.
    ///
    /// # Errors
    /// The rows may be marked or not: the commit's outcome is unknown. Not cancellation safe in the same sense.
    pub async fn settle(self, settlement: Settlement<'_>) -> Result<u64, Error> {
        self.set_aside(settlement).await?;
        let mut free = self.stale.clone();
        let mut ids: Vec<i64> = Vec::with_capacity(settlement.acknowledged.len());
        let mut span: Option<(OffsetDateTime, OffsetDateTime)> = None;
        for row in settlement.acknowledged.iter().filter_map(|position| self.rows.get(*position)) {
            let (id, created) = (row.try_get(0)?, row.try_get(1)?);
            ids.push(id);
            span = Some(widen(span, created));
            if self.retried.contains_key(&id) {
                free.push(row.try_get(2)?);
            }
        }
        if !free.is_empty() {
            self.unblock(&free).await?;
        }
        if let Some((lane, offset)) = settlement.progress {
            self.session.statements.advance_lane.execute(&self.session.client, &[&lane, &offset]).await?;
        }
        let Claim { session, .. } = self;
        let commit = session.client.batch_execute("commit");
        let marked = match span {
            Some((first, last)) => {
                let mark = &session.statements.mark_published;
                // Sent together. A mark that fails makes a rollback of the commit, and this returns the failure.
                try_join(mark.execute(&session.client, &[&ids, &first, &last]), commit).await?.0
            }
            None => {
                commit.await?;
                0
            }
        };
        session.in_claim = false;
        Ok(marked)
    }

    async fn set_aside(&self, settlement: Settlement<'_>) -> Result<(), Error> {
        let (client, statements) = (&self.session.client, &self.session.statements);
        for (position, why, pause) in settlement.waiting {
            let Some(row) = self.rows.get(*position) else { continue };
            let (id, created): (i64, OffsetDateTime) = (row.try_get(0)?, row.try_get(1)?);
            let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
            statements.wait.execute(client, &[&id, &created, why, &pause_ms]).await?;
        }
        let mut passed: Vec<String> = Vec::new();
        for (position, why) in settlement.parked {
            let Some(row) = self.rows.get(*position) else { continue };
            let (id, created): (i64, OffsetDateTime) = (row.try_get(0)?, row.try_get(1)?);
            statements.park.execute(client, &[&id, &created, why, &!settlement.pass_parked]).await?;
            if settlement.pass_parked {
                passed.push(row.try_get(2)?);
            }
        }
        if !passed.is_empty() {
            self.unblock(&passed).await?;
        }
        if let Some((_, created)) = self.behind.first() {
            let ids: Vec<i64> = self.behind.iter().map(|(id, _)| *id).collect();
            let (first, last) = self
                .behind
                .iter()
                .fold((*created, *created), |span, (_, created)| widen(Some(span), *created));
            statements.hold.execute(client, &[&ids, &first, &last]).await?;
        }
        Ok(())
    }

    async fn unblock(&self, aggregates: &[String]) -> Result<(), Error> {
        self.session.statements.unblock.execute(&self.session.client, &[&aggregates]).await?;
        Ok(())
    }
}

pub(crate) fn widen(
    span: Option<(OffsetDateTime, OffsetDateTime)>,
    created: OffsetDateTime,
) -> (OffsetDateTime, OffsetDateTime) {
    span.map_or((created, created), |(first, last)| (first.min(created), last.max(created)))
}
