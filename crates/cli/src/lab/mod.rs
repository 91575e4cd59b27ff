//! The lab: one verb a step, over the real services as processes. A verb that answers with a number prints just
//! that number, so that scripts can use it.

mod kafka;
mod orders;
mod service;
mod tables;

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;

use crate::{
    local::{Profile, State},
    output::line,
};

pub(crate) use kafka::{
    CONSUMERS, committed_records, delete_topics, end_offsets, make_topics, options as kafka_options,
    refuse_foreign_records, topic_create, topic_specs, topics,
};
pub(crate) use orders::{MENU, run_service};
pub(crate) use service::{Delivery, chaos_kill_publisher, run_consumer, run_publisher, service};
pub(crate) use tables::{
    GATEWAY, INVENTORY, ORDERS, PAYMENTS, connect, database_url, db_count, db_init, drop_databases,
    dup_count, open, outbox_count, outbox_pending,
};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make the services' databases and bring them to this version's schema.
    DbInit,
    /// Make the topics.
    TopicCreate,
    /// Run order-service and place orders through gRPC.
    RunService {
        /// How many orders.
        #[arg(long, default_value_t = 20)]
        count: u32,
    },
    /// How many orders there are.
    DbCount,
    /// How many rows order-service's outbox has.
    OutboxCount,
    /// How many of them are not published.
    OutboxPending,
    /// Run a publisher that dies for real after the acks of its first batch and before the mark.
    ChaosKillPublisher {
        /// Rows a batch.
        #[arg(long, default_value_t = 5)]
        batch_size: u32,
        #[command(flatten)]
        delivery: Delivery,
    },
    /// Run a publisher until nothing is pending.
    RunPublisher {
        /// Rows a batch; the publisher's own default if not given.
        #[arg(long)]
        batch_size: Option<u32>,
        #[command(flatten)]
        delivery: Delivery,
    },
    /// Run inventory-service until it has read its topic to the end.
    RunConsumer,
    /// How many events inventory-service has applied.
    DupCount,
    /// How far the orders topic has come, per partition and in all, and how many records a reader of what is committed
    /// meets; a transaction's end takes an offset, too.
    EndOffsets,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let state = State::running(&Profile::named("lab"))?;
    match command {
        Command::DbInit => {
            db_init(&state).await?;
            line("the services' databases are ready");
        }
        Command::TopicCreate => topic_create(&state).await?.into_iter().for_each(line),
        Command::RunService { count } => line(run_service(&state, count).await?),
        Command::DbCount => line(db_count(&state).await?),
        Command::OutboxCount => line(outbox_count(&state).await?),
        Command::OutboxPending => line(outbox_pending(&state).await?),
        Command::ChaosKillPublisher { batch_size, delivery } => {
            let run = chaos_kill_publisher(&state, batch_size, &delivery, true).await?;
            if !run.crashed {
                bail!("the publisher was to die of its crash point, but {}", run.end);
            }
        }
        Command::RunPublisher { batch_size, delivery } => {
            run_publisher(&state, batch_size, &delivery, true).await?.must_succeed()?;
        }
        Command::RunConsumer => {
            run_consumer(&state, true).await?.must_succeed()?;
        }
        Command::DupCount => line(dup_count(&state).await?),
        Command::EndOffsets => {
            print_end_offsets(&end_offsets(&state, events::topic::ORDERS).await?);
            let committed = committed_records(&state, events::topic::ORDERS).await?;
            line(format_args!("{} records:     {committed:>6}", events::topic::ORDERS));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_end_offsets(counts: &[i64]) {
    for (partition, count) in counts.iter().enumerate() {
        line(format_args!("{} partition {partition}: {count:>6}", events::topic::ORDERS));
    }
    line(format_args!("{} in all:      {:>6}", events::topic::ORDERS, counts.iter().sum::<i64>()));
}
