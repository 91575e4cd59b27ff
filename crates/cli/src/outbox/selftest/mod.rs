//! Whether an outbox, and a program that writes to it, keep the contract. For whoever writes such a program, against a
//! database of their own: rows are made in it and deleted again.

mod database;
mod writer;

use std::process::ExitCode;

use serde_json::json;

use crate::output::{line, note, table, verdict};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The outbox's database: postgres://user:password@host:port/name
    #[arg(long, env = "BREW_OUTBOX_URL", hide_env_values = true)]
    url: String,
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
    /// Your writer, after `--`: it is run with an aggregate id as its last argument, which no other row has, and must
    /// append one event of that aggregate and commit. It finds the database in DATABASE_URL.
    #[arg(last = true)]
    writer: Vec<String>,
}

/// One thing that was looked at.
struct Check {
    what: &'static str,
    /// Else: what is wrong, and what to do.
    found: Result<String, String>,
}

impl Check {
    fn new(what: &'static str, found: Result<String, String>) -> Self {
        Self { what, found }
    }
}

/// Exit codes: 0 all holds, 1 something does not.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut checks = database::check(&args.url).await?;
    let sound = checks.iter().all(|check| check.found.is_ok());
    match args.writer.split_first() {
        Some((program, arguments)) if sound => {
            checks.extend(writer::check(&args.url, program, arguments).await?);
        }
        Some(_) => note("the writer was not run: first mend the outbox"),
        None => {}
    }
    show(&checks, args.json)?;
    let holds = checks.iter().all(|check| check.found.is_ok());
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(checks: &[Check], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let checks: Vec<_> = checks
            .iter()
            .map(|check| {
                let (Ok(text) | Err(text)) = &check.found;
                json!({ "check": check.what, "holds": check.found.is_ok(), "found": text })
            })
            .collect();
        line(serde_json::to_string_pretty(&checks)?);
        return Ok(());
    }
    let mut table = table();
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_header(["", "what must hold", "found"]);
    for check in checks {
        let (mark, text) = match &check.found {
            Ok(text) => ("✓", text),
            Err(text) => ("✗", text),
        };
        table.add_row([mark, check.what, text]);
    }
    line(table);
    let broken = checks.iter().filter(|check| check.found.is_err()).count();
    let text =
        if broken == 0 { "selftest: all holds".to_owned() } else { format!("selftest: {broken} broken") };
    line(verdict(&text, broken == 0));
    Ok(())
}
