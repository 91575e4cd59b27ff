//! Rows that cannot be sent, and decisions about them.

use std::process::ExitCode;

use ::outbox::{Action, Parked};
use anyhow::Context;
use clap::Args;
use comfy_table::ContentArrangement;
use serde_json::json;

use crate::{
    because::Because,
    output::{line, note, table},
};

use super::Which;

/// At most so many are listed, or decided about, at once.
const LIMIT: i64 = 1000;

#[derive(Args)]
pub(crate) struct Why {
    #[command(flatten)]
    pub(super) which: Which,
    #[command(flatten)]
    because: Because,
}

#[derive(Args)]
pub(crate) struct Decision {
    #[command(flatten)]
    why: Why,
    /// The rows' ids.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    outbox_id: Vec<i64>,
    /// Every row that cannot be sent.
    #[arg(long)]
    all: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn list(which: &Which, json: bool) -> anyhow::Result<ExitCode> {
    let found = ::outbox::parked(&which.open().await?, LIMIT).await?;
    if json {
        let all: Vec<_> = found.iter().map(as_json).collect();
        line(serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        note("no row is parked, and none waits");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = table();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["id", "aggregate", "topic", "type", "state", "since", "tries", "behind it", "why"]);
    for one in &found {
        table.add_row([
            one.outbox_id.to_string(),
            one.aggregate_id.clone(),
            one.topic.clone(),
            one.event_type.clone(),
            if one.parked { "parked" } else { "retrying" }.to_owned(),
            format!("{} s", one.age_ms / 1000),
            one.attempts.to_string(),
            one.behind.to_string(),
            one.reason.clone(),
        ]);
    }
    line(table);
    Ok(ExitCode::SUCCESS)
}

fn as_json(one: &Parked) -> serde_json::Value {
    json!({
        "outbox_id": one.outbox_id, "aggregate_id": one.aggregate_id, "topic": one.topic,
        "event_type": one.event_type, "parked": one.parked, "reason": one.reason, "attempts": one.attempts,
        "age_ms": one.age_ms, "behind": one.behind,
    })
}

pub(super) async fn decide(action: Action, decision: Decision) -> anyhow::Result<ExitCode> {
    if action != Action::Redrive && !decision.dry_run {
        decision.why.because.must_be_told()?;
    }
    let mut client = decision.why.which.open().await?;
    let ids = if decision.all {
        ::outbox::parked(&client, LIMIT).await?.iter().map(|one| one.outbox_id).collect()
    } else {
        decision.outbox_id
    };
    let decider = decision.why.because.decider();
    for id in ids {
        let row = ::outbox::decide(&mut client, action, id, decider, decision.dry_run)
            .await
            .with_context(|| format!("{} row {id}", action.as_str()))?;
        line(format_args!(
            "{}{} row {id} of {}, {} behind it",
            if decision.dry_run { "would " } else { "" },
            action.as_str(),
            row.aggregate_id,
            row.behind
        ));
        if action == Action::Redrive && row.parked && row.behind == 0 {
            note("  if its aggregate went on without it, it now comes after its successors");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn pause(paused: bool, why: &Why) -> anyhow::Result<ExitCode> {
    let mut client = why.which.open().await?;
    let changed = ::outbox::pause(&mut client, paused, why.because.decider()).await?;
    let state = if paused { "paused" } else { "published" };
    line(format_args!("{state}{}", if changed { "" } else { ", as before" }));
    Ok(ExitCode::SUCCESS)
}
