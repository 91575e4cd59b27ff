//! Stock from a terminal.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use proto::inventory::v1::{
    ListStockRequest, RestockRequest, inventory_service_client::InventoryServiceClient,
};

use serde_json::json;

use crate::output::line;

#[derive(Args)]
pub(crate) struct StockArgs {
    /// Where inventory-service listens.
    #[arg(long, env = "BREW_INVENTORY_SERVICE", default_value = "http://127.0.0.1:50052", global = true)]
    inventory_service: String,
    /// Print JSON, for scripts.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Say how many of each are available (the default).
    List,
    /// Put more on the shelf.
    Add {
        /// What.
        sku: String,
        /// How many.
        quantity: i32,
    },
}

pub(crate) async fn run(args: StockArgs) -> anyhow::Result<ExitCode> {
    let place = args.inventory_service;
    let mut client = InventoryServiceClient::connect(place.clone())
        .await
        .with_context(|| format!("inventory-service does not answer at {place} (--inventory-service)"))?;
    let levels = match args.command.unwrap_or(Command::List) {
        Command::List => client.list_stock(ListStockRequest {}).await?.into_inner().levels,
        Command::Add { sku, quantity } => {
            let idempotency_key = uuid::Uuid::new_v4().to_string();
            let request = RestockRequest { sku, quantity, idempotency_key };
            client.restock(request).await?.into_inner().level.into_iter().collect()
        }
    };
    if args.json {
        let levels: Vec<_> =
            levels.iter().map(|level| json!({"sku": level.sku, "available": level.available})).collect();
        line(serde_json::to_string_pretty(&levels)?);
        return Ok(ExitCode::SUCCESS);
    }
    for level in levels {
        line(format_args!("{:<20} {:>9}", level.sku, level.available));
    }
    Ok(ExitCode::SUCCESS)
}
