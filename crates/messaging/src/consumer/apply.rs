//! One batch: decode, apply, repeat, split.

use std::{fmt::Display, future::Future, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{DeadLetters, Error, Received};

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

pub(super) async fn batch<T, E, A, F>(
    records: &[Received],
    (decode, apply): (&impl Fn(&Received) -> Result<T, E>, &A),
    (source, dead): (&mut Source, &mut DeadLetters),
    shutdown: &CancellationToken,
) -> Result<Applied, Error>
where
    E: Display,
    A: Fn(Vec<Arc<T>>) -> F,
    F: Future<Output = Result<(), ApplyError>>,
{
    let mut dead_letters = 0;
    let mut items: Vec<Item<'_, T>> = Vec::with_capacity(records.len());
    for record in records {
        match decode(record) {
            Ok(decoded) => items.push((Arc::new(decoded), record)),
            Err(reason) => {
                dead.write(record, &reason.to_string(), shutdown).await?;
                dead_letters += 1;
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
            Ok(()) => delays = backoff(),
            Err(error @ (ApplyError::Conflict(_) | ApplyError::Unavailable(_))) => {
                parts.push(part);
                let delay = delays.next().unwrap_or_default();
                tracing::warn!(%error, records = part.len(), ?delay, "batch not applied, trying again");
                if source.wait(delay, shutdown).await? {
                    return Ok(Applied::Stopped);
                }
            }
            Err(ApplyError::Data(reason)) => match part {
                [(_, record)] => {
                    dead.write(record, &reason, shutdown).await?;
                    dead_letters += 1;
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
