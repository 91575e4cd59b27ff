//! Decisions about dead letters.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use inbox::{Action, LetterAt};
use messaging::{KafkaOptions, Letter};

use crate::{
    because::Because,
    output::{line, note},
};

use super::{TIMEOUT, Tray, Which, kafka, spot};

/// So many are sent before they are written down. A crash in between sends them again.
const CHUNK: usize = 500;

#[derive(Args)]
pub(crate) struct Decision {
    #[command(flatten)]
    which: Which,
    /// Of this aggregate only, for example order-42; any number of times.
    #[arg(long, conflicts_with = "all")]
    key: Vec<String>,
    /// Where the letters stand, as `list` says: partition:offset. Needs --topic.
    #[arg(requires = "topic", required_unless_present_any = ["all", "key"], conflicts_with_all = ["all", "key"])]
    at: Vec<String>,
    /// Every dead letter about which nobody has decided yet.
    #[arg(long)]
    all: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    because: Because,
}

impl Decision {
    fn takes(&self, letter: &Letter) -> bool {
        let is = |key: &String| letter.received.key == key.as_bytes();
        self.all || self.key.iter().any(is) || self.at.contains(&spot(&letter.received.place()))
    }

    /// What is asked for, by dead letter topic, in the order in which the records first stood.
    async fn open(&self) -> anyhow::Result<Vec<Tray>> {
        let mut trays = self.which.open().await?;
        for one in &mut trays {
            one.letters.retain(|letter| self.takes(letter));
        }
        for at in &self.at {
            let found = trays.iter().flat_map(|one| &one.letters);
            if !found.into_iter().any(|letter| spot(&letter.received.place()) == *at) {
                bail!("there is no dead letter at {at}, or somebody has decided about it (`brew dlq list`)");
            }
        }
        if trays.iter().all(|one| one.letters.is_empty()) {
            note("no dead letter waits for a decision");
        }
        Ok(trays)
    }

    /// Writes down that `action` was done to `letters`.
    async fn write_down(
        &self,
        one: (&mut tokio_postgres::Client, &str),
        action: Action,
        letters: &[&Letter],
    ) -> anyhow::Result<()> {
        let (client, consumer) = one;
        for letter in letters {
            let place = letter.received.place();
            let at = LetterAt { place: &place, origin: &letter.origin, first_place: &letter.first_place };
            inbox::decide(client, consumer, action, at, self.because.decider())
                .await
                .context("write the decision down")?;
        }
        Ok(())
    }
}

pub(super) async fn redrive(decision: Decision) -> anyhow::Result<ExitCode> {
    let kafka = kafka(&decision.which.profile)?;
    for mut one in decision.open().await? {
        let letters: Vec<&Letter> = one.letters.iter().collect();
        for chunk in letters.chunks(CHUNK) {
            if !decision.dry_run {
                send(&kafka, &decision, (&mut one.client, one.consumer), chunk).await?;
            }
            tell(&decision, "redrive", &one.topic, chunk);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts the records of `letters` back, and writes down which of them the broker has.
async fn send(
    kafka: &KafkaOptions,
    decision: &Decision,
    one: (&mut tokio_postgres::Client, &str),
    letters: &[&Letter],
) -> anyhow::Result<()> {
    let outcome = messaging::redrive(kafka, letters, TIMEOUT).await?;
    let sent = letters.iter().zip(&outcome.acks).filter(|(_, ack)| ack.is_some());
    let sent: Vec<&Letter> = sent.map(|(letter, _)| *letter).collect();
    decision.write_down(one, Action::Redrive, &sent).await?;
    if sent.len() < letters.len() {
        let why = outcome.why().unwrap_or_default();
        bail!("{} of {} were put back, then: {why}; run it again for the rest", sent.len(), letters.len());
    }
    Ok(())
}

pub(super) async fn discard(decision: Decision) -> anyhow::Result<ExitCode> {
    if !decision.dry_run {
        decision.because.must_be_told()?;
    }
    for mut one in decision.open().await? {
        let letters: Vec<&Letter> = one.letters.iter().collect();
        if !decision.dry_run {
            decision.write_down((&mut one.client, one.consumer), Action::Discard, &letters).await?;
        }
        tell(&decision, "discard", &one.topic, &letters);
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(decision: &Decision, what: &str, topic: &str, letters: &[&Letter]) {
    let would = if decision.dry_run { "would " } else { "" };
    for letter in letters {
        let (at, key) = (spot(&letter.received.place()), String::from_utf8_lossy(&letter.received.key));
        line(format_args!("{would}{what} {topic} {at}, of {key}, from {}", letter.origin));
    }
}
