//! What tracing costs the relay: the same drain without it, with every trace sampled, and with one in ten, in turns.

use serde::Serialize;

use super::{
    Args, WARMUP,
    collector::Collector,
    drain::{Drain, Drained},
    ground::{Ground, Part},
    judge::Checked,
};

/// Where a publisher's spans go; empty: nowhere.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// One of them.
#[derive(Debug, Serialize)]
pub(crate) struct Traced {
    /// Of 100 events, so many belong to a trace that is sampled; none: tracing is off.
    pub(crate) percent: Option<u64>,
    pub(crate) drained: Checked<Drained>,
    /// Spans that came to the collector.
    pub(crate) collected: u64,
}

impl Traced {
    pub(crate) fn name(&self) -> &'static str {
        match self.percent {
            None => "tracing off",
            Some(100) => "every trace sampled",
            Some(_) => "one trace in ten",
        }
    }
}

/// Drains in turns, so that all have the same machine.
pub(crate) async fn measure(ground: &Ground, args: &Args) -> anyhow::Result<Vec<Traced>> {
    let mut running = Vec::new();
    for (part, percent) in [(Part::Untraced, None), (Part::Traced, Some(100)), (Part::TracedTenth, Some(10))]
    {
        let collector = Collector::start().await?;
        let endpoint = if percent.is_some() { collector.url.clone() } else { String::new() };
        let drain = Drain::open(ground, part, &[(ENDPOINT, endpoint)], WARMUP.min(args.events)).await?;
        running.push((percent, drain, collector));
    }
    'rounds: for _ in 0..args.repeats {
        for (_, drain, _) in &mut running {
            if !drain.round(args).await? {
                break 'rounds;
            }
        }
    }
    let mut all = Vec::new();
    for (percent, drain, collector) in running {
        let (check, drained) = drain.close().await?;
        all.push(Traced {
            percent,
            drained: Checked::new(check, drained),
            collected: collector.close().await?,
        });
    }
    Ok(all)
}
