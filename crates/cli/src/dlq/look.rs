//! Dead letters, listed and shown.

use std::process::ExitCode;

use anyhow::Context;
use comfy_table::ContentArrangement;
use events::header;
use messaging::{Letter, read_all};
use serde_json::json;

use crate::{
    local::Profile,
    output::{line, note, table},
};

use super::{TIMEOUT, Tray, Which, kafka, spot};

pub(super) async fn list(which: &Which, json: bool) -> anyhow::Result<ExitCode> {
    let trays = which.open().await?;
    if json {
        let all: Vec<_> =
            trays.iter().flat_map(|one| one.letters.iter().map(|letter| as_json(one, letter))).collect();
        line(serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    if trays.iter().all(|one| one.letters.is_empty()) {
        note("no dead letter waits for a decision");
    } else {
        show_all(&trays);
    }
    for one in &trays {
        for (aggregate, count) in &one.waiting {
            note(format_args!("{aggregate} waits at {}, behind {count} dead letter(s)", one.consumer));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show_all(trays: &[Tray]) {
    let mut table = table();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header([
        "dead letter topic",
        "at",
        "consumer",
        "key",
        "outbox-id",
        "type",
        "why",
        "when",
        "from",
    ]);
    for one in trays {
        for letter in &one.letters {
            table.add_row([
                one.topic.clone(),
                spot(&letter.received.place()),
                letter.consumer.clone(),
                text(&letter.received.key),
                told(letter, header::OUTBOX_ID),
                told(letter, header::EVENT_TYPE),
                letter.reason.clone(),
                letter.at.clone(),
                spot(&letter.origin),
            ]);
        }
    }
    line(table);
}

/// Bytes as a person can read them.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn told(letter: &Letter, name: &str) -> String {
    letter.received.header(name).unwrap_or("-").to_owned()
}

fn as_json(one: &Tray, letter: &Letter) -> serde_json::Value {
    let key = text(&letter.received.key);
    json!({
        "topic": one.topic, "at": spot(&letter.received.place()), "consumer": letter.consumer,
        "outbox_id": letter.received.outbox_id(), "event_type": letter.received.header(header::EVENT_TYPE),
        "why": letter.reason, "when": letter.at, "from": letter.origin.to_string(),
        "first_place": letter.first_place.to_string(), "waiting": one.waiting.get(&key).unwrap_or(&0),
        "key": key,
    })
}

pub(super) async fn show(profile: &Profile, topic: &str, at: &str, json: bool) -> anyhow::Result<ExitCode> {
    let records = read_all(&kafka(profile)?, topic, TIMEOUT).await?;
    let found = records.into_iter().find(|record| spot(&record.place()) == at);
    let found = found.with_context(|| format!("nothing stands at {at} of {topic} (partition:offset)"))?;
    let letter = Letter::read(found).with_context(|| format!("{topic} {at} is no dead letter of Brew's"))?;
    let headers: Vec<(&str, String)> =
        letter.original_headers().iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    if json {
        let shown = json!({
            "topic": topic, "at": at, "consumer": letter.consumer, "why": letter.reason, "when": letter.at,
            "from": letter.origin.to_string(), "first_place": letter.first_place.to_string(),
            "key": text(&letter.received.key), "headers": headers, "payload": text(&letter.received.payload),
        });
        line(serde_json::to_string_pretty(&shown)?);
        return Ok(ExitCode::SUCCESS);
    }
    let say = |name: &str, value: &str| line(format_args!("{name:<12} {value}"));
    say("letter", &format!("{topic} {at}, of {}", letter.consumer));
    say("why", &letter.reason);
    say("when", &letter.at);
    say("from", &letter.origin.to_string());
    if letter.first_place != letter.origin {
        say("first at", &letter.first_place.to_string());
    }
    say("key", &text(&letter.received.key));
    for (name, value) in headers {
        say("header", &format!("{name}: {value}"));
    }
    say("payload", &text(&letter.received.payload));
    Ok(ExitCode::SUCCESS)
}
