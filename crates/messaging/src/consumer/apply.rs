//! One batch: decode, apply, repeat, split.

use std::{fmt::Display, future::Future, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{DeadLetters, Error, HeldBack, Received};

use super::{backoff, source::Source};

/// Why a batch was not applied; nothing of it has any effect then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Lost against another transaction.
    #[error("conflict: {0}")]
    Conflict(String),
    /// What it takes to apply records is away.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// At least one record can never be applied.
    #[error("bad data: {0}")]
    Data(String),
}

pub(super) enum Applied {
    All {
        dead_letters: u64,
    },
    /// Shutdown came first; what was not applied is not committed.
    Stopped,
}

type Item<'r, T> = (Arc<T>, &'r Received);

/// Where records come from, and where those go that cannot be applied.
pub(super) struct Ends<'a> {
    pub(super) source: &'a mut Source,
    pub(super) dead: &'a mut DeadLetters,
    pub(super) shutdown: &'a CancellationToken,
}

pub(super) async fn batch<T, E, A, F, G, H>(
    records: &[Received],
    (decode, apply, gave_up): (&impl Fn(&Received) -> Result<T, E>, &A, Option<&G>),
    mut ends: Ends<'_>,
) -> Result<Applied, Error>
where
    E: Display,
    A: Fn(Vec<Arc<T>>) -> F,
    F: Future<Output = Result<Vec<HeldBack>, ApplyError>>,
    G: Fn(Received) -> H,
    H: Future<Output = Result<(), ApplyError>>,
{
    let mut dead_letters = 0;
    let mut items: Vec<Item<'_, T>> = Vec::with_capacity(records.len());
    for record in records {
        match decode(record) {
            Ok(decoded) => items.push((Arc::new(decoded), record)),
            Err(reason) => {
                dead_letters += 1;
                if ends.give_up(record, reason.to_string(), gave_up).await? {
                    return Ok(Applied::Stopped);
                }
            }
        }
    }
    // Parts still to apply, the next one last.
    let mut parts: Vec<&[Item<'_, T>]> = vec![&items];
    let mut delays = backoff();
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        match apply(part.iter().map(|(item, _)| Arc::clone(item)).collect()).await {
            Ok(held) => {
                delays = backoff();
                dead_letters += ends.hold_back(part, held).await?;
            }
            Err(error @ (ApplyError::Conflict(_) | ApplyError::Unavailable(_))) => {
                parts.push(part);
                let delay = delays.next().unwrap_or_default();
                tracing::warn!(%error, records = part.len(), ?delay, "batch not applied, trying again");
                if ends.source.wait(delay, ends.shutdown).await? {
                    return Ok(Applied::Stopped);
                }
            }
            Err(ApplyError::Data(reason)) => match part {
                [(_, record)] => {
                    dead_letters += 1;
                    if ends.give_up(record, reason, gave_up).await? {
                        return Ok(Applied::Stopped);
                    }
                }
                _ => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.push(right);
                    parts.push(left);
                }
            },
        }
    }
    Ok(Applied::All { dead_letters })
}

impl Ends<'_> {
    /// Makes `record` a dead letter, and tells `gave_up` until it knows: nothing later of the aggregate may be applied
    /// before. In this order, since a letter that is written twice does no harm, and one that is waited for must be
    /// there. True: shutdown came.
    async fn give_up<G, H>(
        &mut self,
        record: &Received,
        reason: String,
        gave_up: Option<&G>,
    ) -> Result<bool, Error>
    where
        G: Fn(Received) -> H,
        H: Future<Output = Result<(), ApplyError>>,
    {
        self.dead.write(&[(record, reason)], self.shutdown).await?;
        let Some(gave_up) = gave_up else { return Ok(false) };
        for delay in backoff() {
            let Err(error) = gave_up(record.clone()).await else { return Ok(false) };
            tracing::warn!(%error, place = %record.place(), ?delay, "dead letter not noted, trying again");
            if self.source.wait(delay, self.shutdown).await? {
                break;
            }
        }
        Ok(true)
    }

    /// Makes those of `part` dead letters that wait for another one, and returns how many.
    async fn hold_back<T>(&mut self, part: &[Item<'_, T>], held: Vec<HeldBack>) -> Result<u64, Error> {
        let waiting: Vec<(&Received, String)> = held
            .into_iter()
            .filter_map(|one| part.get(one.position).map(|(_, record)| (*record, one.reason)))
            .collect();
        if !waiting.is_empty() {
            self.dead.write(&waiting, self.shutdown).await?;
        }
        Ok(waiting.len() as u64)
    }
}
