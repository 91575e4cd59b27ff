//! Figures about every outbox.

use std::process::ExitCode;

use ::outbox::Status;
use anyhow::Context;
use serde_json::json;

use crate::{
    local::Profile,
    output::{align_numbers, line, table},
};

use super::Service;

pub(super) async fn run(profile: &Profile, json: bool) -> anyhow::Result<ExitCode> {
    let mut found = Vec::new();
    for service in Service::ALL {
        let client = service.open(profile).await?;
        let name = service.name();
        found.push((name, ::outbox::status(&client).await.with_context(|| format!("outbox of {name}"))?));
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
    let mut table = table();
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
    align_numbers(&mut table);
    line(table);
}
