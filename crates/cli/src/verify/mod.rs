//! An independent reconciliation: reads every database, every topic and the provider's books, and says of each
//! invariant whether it holds. Shares no code with the services beyond the events. Run it when the shop is
//! quiet.

mod evidence;
mod invariants;
mod rest;

use std::process::ExitCode;

use comfy_table::ContentArrangement;

use crate::{
    local::{Profile, State},
    output::{line, table, verdict},
};

pub(crate) use evidence::Evidence;
pub(crate) use invariants::{Finding, Verdict, check};
pub(crate) use rest::{Patience, at_rest};

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
    let state = State::running(&args.profile)?;
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
    Ok(exit_code(&findings))
}

/// 0 all hold, 1 at least one is broken, 2 none is broken and not all could be looked at.
pub(crate) fn exit_code(findings: &[Finding]) -> ExitCode {
    let any = |verdict| findings.iter().any(|finding| finding.verdict() == verdict);
    match (any(Verdict::Broken), any(Verdict::Unknown)) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::from(2),
        (false, false) => ExitCode::SUCCESS,
    }
}

pub(crate) fn show(findings: &[Finding]) {
    let mut table = table();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["", "invariant", "looked at", "first counterexamples"]);
    for finding in findings {
        let mark = match finding.verdict() {
            Verdict::Holds => "✓",
            Verdict::Broken => "✗",
            Verdict::Unknown => "?",
        };
        let examples = finding.broken.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
        table.add_row([mark, finding.invariant, &finding.looked_at.to_string(), &examples]);
    }
    line(table);
    let count = |verdict| findings.iter().filter(|finding| finding.verdict() == verdict).count();
    let text = match (count(Verdict::Broken), count(Verdict::Unknown)) {
        (0, 0) => "verify: all hold".to_owned(),
        (0, unknown) => format!("verify: {unknown} unknown, there was nothing to look at"),
        (broken, _) => format!("verify: {broken} broken"),
    };
    line(verdict(&text, findings.iter().all(Finding::holds)));
}
