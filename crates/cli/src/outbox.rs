//! What stands in the services' outboxes.

use std::process::ExitCode;

use ::outbox::Status;
use anyhow::{Context, bail};
use clap::Subcommand;
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use serde_json::json;

use crate::{
    lab,
    local::{Profile, State},
    output::line,
};

/// Each service with an outbox, and its database.
const OUTBOXES: [(&str, &str); 3] = [
    ("order-service", lab::ORDERS),
    ("inventory-service", lab::INVENTORY),
    ("payment-service", lab::PAYMENTS),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// How many rows wait, for how long, and how many are published, parked and discarded.
    Status {
        #[command(flatten)]
        profile: Profile,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let Command::Status { profile, json } = command;
    let Some(state) = State::load(&profile)? else {
        bail!("Postgres and Kafka do not run; `make up` starts them");
    };
    let mut found = Vec::new();
    for (service, database) in OUTBOXES {
        let client = lab::connect(&lab::database_url(state.postgres_url()?, database)?).await;
        let client = client.with_context(|| format!("database {database}; `make db-init` makes it"))?;
        found.push((
            service,
            ::outbox::status(&client).await.with_context(|| format!("outbox of {service}"))?,
        ));
    }
    if json {
        let all: Vec<_> = found.iter().map(|(service, status)| as_json(service, status)).collect();
        line(serde_json::to_string_pretty(&all)?);
    } else {
        show(&found);
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(service: &str, status: &Status) -> serde_json::Value {
    json!({
        "service": service, "rows": status.total, "pending": status.pending,
        "oldest_pending_age_ms": status.oldest_pending_age_ms, "published": status.published,
        "parked": status.parked, "discarded": status.discarded,
    })
}

fn show(found: &[(&str, Status)]) {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["outbox of", "pending", "oldest waits", "published", "parked", "discarded", "rows"]);
    for (service, status) in found {
        let oldest =
            status.oldest_pending_age_ms.map_or("-".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
        table.add_row([
            (*service).to_owned(),
            status.pending.to_string(),
            oldest,
            status.published.to_string(),
            status.parked.to_string(),
            status.discarded.to_string(),
            status.total.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    line(table);
}
