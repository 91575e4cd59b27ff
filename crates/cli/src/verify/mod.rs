//! An independent reconciliation: reads every database, every topic and the provider's books, and says of each
//! invariant whether it holds. Shares no code with the services beyond the events. Run it when the shop is
//! quiet.

mod evidence;
mod invariants;

use std::process::ExitCode;

use anyhow::bail;
use comfy_table::{ContentArrangement, Table, presets::UTF8_FULL_CONDENSED};

use crate::{
    local::{Profile, State},
    output::{line, verdict},
};

pub(crate) use evidence::Evidence;
pub(crate) use invariants::{Finding, check};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    profile: Profile,
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

/// Exit codes: 0 all hold, 1 at least one is broken, 2 not all could be looked at.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(state) = State::load(&args.profile)? else {
        bail!("Postgres and Kafka do not run; `make up` starts them");
    };
    let findings = match Evidence::gather(&state).await {
        Ok(evidence) => check(&evidence),
        Err(error) => {
            line(format_args!("unknown: {error:#}"));
            return Ok(ExitCode::from(2));
        }
    };
    if args.json {
        line(serde_json::to_string_pretty(&findings)?);
    } else {
        show(&findings);
    }
    let holds = findings.iter().all(Finding::holds);
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn show(findings: &[Finding]) {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["", "invariant", "looked at", "first counterexamples"]);
    for finding in findings {
        let mark = if finding.holds() { "✓" } else { "✗" };
        let examples = finding.broken.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
        table.add_row([mark, finding.invariant, &finding.looked_at.to_string(), &examples]);
    }
    line(table);
    let broken = findings.iter().filter(|finding| !finding.holds()).count();
    let text = if broken == 0 { "verify: all hold".to_owned() } else { format!("verify: {broken} broken") };
    line(verdict(&text, broken == 0));
}
