//! One row, explained.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;

use crate::output::line;

use super::Which;

pub(super) async fn run(which: &Which, outbox_id: i64, json: bool) -> anyhow::Result<ExitCode> {
    let Some(found) = ::outbox::explain(&mut which.open().await?, outbox_id).await? else {
        bail!("there is no row {outbox_id}; published rows are pruned after their retention");
    };
    if json {
        let text = json!({
            "outbox_id": found.outbox_id, "aggregate_id": found.aggregate_id, "topic": found.topic,
            "shard": found.shard, "state": found.state, "age_ms": found.age_ms, "claimed": found.claimed,
            "paused": found.paused, "waits_for": found.waits_for, "before": found.before,
            "last_error": found.last_error, "next_try_in_ms": found.next_try_in_ms, "advice": found.advice(),
        });
        line(serde_json::to_string_pretty(&text)?);
        return Ok(ExitCode::SUCCESS);
    }
    let say = |name: &str, value: &str| line(format_args!("{name:<12} {value}"));
    say("row", &format!("{} of {}, for {}", found.outbox_id, found.aggregate_id, found.topic));
    say("state", &format!("{}, for {:.1} s", found.state, found.age_ms as f64 / 1000.0));
    let holder = if found.claimed { "a publisher holds it now" } else { "nobody holds it now" };
    say("shard", &format!("{}: {holder}; {} row(s) go first", found.shard, found.before));
    if let Some(by) = &found.paused {
        say("paused", by);
    }
    if let Some(head) = found.waits_for {
        say("waits for", &format!("row {head} of its aggregate"));
    }
    if let Some(error) = &found.last_error {
        say("last error", error);
    }
    if let Some(ms) = found.next_try_in_ms {
        say("next try", &format!("in {:.1} s", ms.max(0) as f64 / 1000.0));
    }
    say("do", &found.advice());
    Ok(ExitCode::SUCCESS)
}
