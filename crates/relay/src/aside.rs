//! Rows that cannot be sent: which of them wait for another try, and which are parked until a person decides. Only a
//! row's own fault counts; whatever ails the broker or the network leaves it as it is.

use std::time::Duration;

use messaging::{ProducerFailure, RefusedReason, SendOutcome};
use outbox::PendingRow;

use crate::options::Options;

/// Shortest and longest pause before a topic that is not there is asked for again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Positions with reasons.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Aside {
    pub(crate) waiting: Vec<(usize, String, Duration)>,
    pub(crate) parked: Vec<(usize, String)>,
}

/// Sorts out what the broker or the client has refused, and says so in the log.
pub(crate) fn set_aside(
    source: &str,
    rows: &[PendingRow<'_>],
    outcome: &SendOutcome,
    options: &Options,
) -> Aside {
    let mut aside = Aside::default();
    for (position, reason) in &outcome.refused {
        let Some(row) = rows.get(*position) else { continue };
        match reason {
            RefusedReason::TooLarge { .. } => aside.parked.push((*position, reason.to_string())),
            RefusedReason::UnknownTopic => unknown_topic(*position, row, options, &mut aside),
            // Nothing is wrong with the row.
            RefusedReason::QueueFull => {}
        }
    }
    // A request fails whole for one record in it; only a record that fails alone is known to be the one.
    if let (Some(ProducerFailure::BadRecord(reason)), 1) = (&outcome.failure, rows.len()) {
        aside.parked.push((0, reason.clone()));
    }
    tell(source, rows, &aside, options.parked_aggregates_wait);
    aside
}

fn unknown_topic(position: usize, row: &PendingRow<'_>, options: &Options, aside: &mut Aside) {
    let (attempts, age) = row.blocked.map_or((0, Duration::ZERO), |blocked| (blocked.attempts, blocked.age));
    if age >= Duration::from_millis(options.unknown_topic_grace_ms) {
        let reason = format!("topic {} was unknown to the broker for {} s", row.topic, age.as_secs());
        aside.parked.push((position, reason));
    } else {
        let doublings = u32::try_from(attempts.clamp(0, 10)).unwrap_or_default();
        let pause = (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE);
        aside.waiting.push((position, format!("topic {} is unknown to the broker", row.topic), pause));
    }
}

fn tell(source: &str, rows: &[PendingRow<'_>], aside: &Aside, aggregate_waits: bool) {
    for (position, reason, pause) in &aside.waiting {
        let Some(row) = rows.get(*position) else { continue };
        tracing::warn!(
            source,
            outbox_id = row.id,
            aggregate_id = row.aggregate_id,
            reason,
            ?pause,
            "row waits"
        );
    }
    for (position, reason) in &aside.parked {
        let Some(row) = rows.get(*position) else { continue };
        tracing::error!(
            source,
            outbox_id = row.id,
            aggregate_id = row.aggregate_id,
            reason,
            aggregate_waits,
            "row parked: see `brew outbox parked`"
        );
    }
}
