//! The `brew` command.

mod because;
mod bench;
mod commands;
mod demo;
mod dlq;
mod dual_write;
mod end_offsets;
mod lab;
mod load;
mod local;
mod order;
mod outbox;
mod output;
mod shop;
mod stock;
mod topics;
mod trace;
mod verify;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    match commands::run(commands::Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            output::note(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
