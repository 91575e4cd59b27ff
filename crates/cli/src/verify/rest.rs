//! Waiting for the shop to come to rest.

use std::time::Duration;

use tokio::time::Instant;

use crate::local::State;

use super::{Evidence, Finding, check};

/// Shortest pause between two looks. A look at much takes long, and is not to hold up what it waits for.
const PAUSE: Duration = Duration::from_millis(500);

/// When to stop looking although something is broken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// After so long in any case.
    pub(crate) whole: Duration,
    /// When nothing has changed for so long.
    pub(crate) quiet: Duration,
}

/// Looks until all holds, or patience ends; returns the last look.
pub(crate) async fn at_rest(state: &State, patience: Patience) -> anyhow::Result<(Evidence, Vec<Finding>)> {
    let deadline = Instant::now() + patience.whole;
    let (mut seen, mut changed) = (None, Instant::now());
    loop {
        let began = Instant::now();
        let evidence = Evidence::gather(state).await?;
        let pause = PAUSE.max(began.elapsed());
        let findings = check(&evidence);
        let now = extent(&evidence, &findings);
        if seen.as_ref() != Some(&now) {
            (seen, changed) = (Some(now), Instant::now());
        }
        let holds = findings.iter().all(Finding::holds);
        if holds || Instant::now() > deadline || changed.elapsed() > patience.quiet {
            return Ok((evidence, findings));
        }
        tokio::time::sleep(pause).await;
    }
}

/// What grows or shrinks while anything still goes on.
fn extent(evidence: &Evidence, findings: &[Finding]) -> Vec<usize> {
    let marked = evidence.rows.iter().filter(|row| row.published).count();
    let processed = evidence.processed.values().map(std::collections::BTreeSet::len).sum();
    let mut extent = vec![evidence.rows.len(), marked, evidence.records.len(), processed];
    extent.extend(findings.iter().map(|finding| finding.broken.len()));
    extent
}
