//! The `brew` command.

mod demo;
mod lab;
mod local;
mod output;
mod shop;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Brew at a terminal: local infrastructure, the lab, and the demo.
#[derive(Parser)]
#[command(name = "brew", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Postgres and Kafka on this machine: with Docker where it runs, without where it does not.
    #[command(subcommand)]
    Local(local::Command),
    /// One step of the lab at a time, over the real services. Begin with `brew local up`.
    #[command(subcommand)]
    Lab(lab::Command),
    /// The whole story with a crash in the middle, on infrastructure of its own; ends with a verdict.
    Demo(demo::Args),
    /// Many orders at once, with services killed and a provider that misbehaves; then verify.
    Storm(shop::StormArgs),
    /// Read every database, topic and book, and say whether all adds up.
    Verify(verify::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let end = match Args::parse().command {
        Command::Local(command) => local::run(command).await,
        Command::Lab(command) => lab::run(command).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Storm(args) => shop::storm(args).await,
        Command::Verify(args) => verify::run(args).await,
    };
    match end {
        Ok(code) => code,
        Err(error) => {
            output::note(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
