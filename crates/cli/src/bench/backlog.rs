//! Whether the rate depends on how much has piled up, and on a snapshot that is held meanwhile, which keeps dead rows
//! and dead index entries where they are.

use messaging::Ends;
use serde::Serialize;

use crate::output::note;

use super::{
    Args,
    drain::{Sample, judge, reach, rest},
    ground::{Ground, Part, TIMEOUT},
    judge::Checked,
    meter::{Meter, Span, wait_for_quiet},
    running::{Running, make_outbox},
    seed::fill,
};

/// Rows a transaction of those that write the backlog: nobody would wait for as many small ones.
const ROWS: usize = 1000;

/// One long drain.
#[derive(Debug, Serialize)]
pub(crate) struct Flatness {
    pub(crate) held_snapshot: bool,
    pub(crate) span: Span,
    /// Events a second in the first tenth of the events, and so on to the last.
    pub(crate) tenths: Vec<f64>,
    pub(crate) resident_mb: f64,
    pub(crate) samples: Vec<Sample>,
}

pub(crate) async fn measure(ground: &Ground, args: &Args, events: u64) -> anyhow::Result<Checked<Flatness>> {
    let client = make_outbox(ground, Part::Backlog).await?;
    let topic = ground.topic(Part::Backlog).await?;
    note(format_args!("  writing {events} events ..."));
    fill(ground, Part::Backlog, &topic, events, ROWS).await?;
    rest(&client).await?;
    // Ends with its connection.
    let holder = ground.connect(Part::Backlog).await?;
    if args.held_snapshot {
        let hold = "begin isolation level repeatable read; select count(*) from outbox_shard";
        holder.batch_execute(hold).await?;
    }
    wait_for_quiet(ground, args.quiet_wait).await?;
    let ends = Ends::of(&ground.kafka()?, &topic, TIMEOUT).await?;
    let mut publisher = Running::publisher(ground, Part::Backlog, &[])?;
    let meter = Meter::start(ground, Some(publisher.pid()?), &client).await?;
    let samples = reach(&ends, events, &mut publisher).await?;
    let seconds = samples.last().map_or(0.0, |last| last.seconds);
    let span = meter.stop(events, seconds, &client).await?;
    drop(holder);
    let resident_mb = publisher.close().await?;
    let check = judge(ground, &topic, events, &client).await?;
    let tenths = tenths(&samples);
    let held_snapshot = args.held_snapshot;
    Ok(Checked::new(check, Flatness { held_snapshot, span, tenths, resident_mb, samples }))
}

/// The rate in each tenth of the events.
fn tenths(samples: &[Sample]) -> Vec<f64> {
    let all = samples.last().map_or(0, |last| last.events);
    let at = |tenth: i64| samples.iter().find(|sample| sample.events >= all * tenth / 10);
    let rate = |tenth| {
        let (from, to) = at(tenth).zip(at(tenth + 1))?;
        Some((to.events - from.events) as f64 / (to.seconds - from.seconds))
    };
    (0..10).filter_map(rate).filter(|rate| rate.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_that_slows_down_shows_it() {
        let sample = |seconds: f64, events| Sample { seconds, events };
        let steady: Vec<_> = (0..=20).map(|at| sample(f64::from(at), i64::from(at) * 50)).collect();
        assert_eq!(tenths(&steady), [50.0; 10]);
        let slower: Vec<_> = (0..=10).map(|at| sample(f64::from(at * at), i64::from(at) * 100)).collect();
        assert!(tenths(&slower).is_sorted_by(|a, b| a > b));
        assert!(tenths(&[]).is_empty());
    }
}
