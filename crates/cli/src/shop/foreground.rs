//! The shop until somebody closes it.

use std::process::ExitCode;

use crate::{
    local::Profile,
    output::{line, note},
};

use super::services::{ground, open};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    profile: Profile,
    /// So many of 100 calls to the payment provider go wrong.
    #[arg(long, default_value_t = 0)]
    misbehave: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let state = ground(&args.profile).await?;
    let shop = open(&state, args.misbehave).await?;
    line(format_args!("export BREW_ORDER_SERVICE=http://{}", shop.orders));
    line(format_args!("export BREW_INVENTORY_SERVICE=http://{}", shop.inventory));
    for (name, value) in state.jaeger.iter().flat_map(|jaeger| jaeger.variables()) {
        line(format_args!("export {name}={value}"));
    }
    note("the shop is open; Ctrl-C closes it");
    tokio::signal::ctrl_c().await?;
    note("closing ...");
    shop.close().await?;
    Ok(ExitCode::SUCCESS)
}
