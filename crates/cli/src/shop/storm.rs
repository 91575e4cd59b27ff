//! Many orders at once, with services killed among them and a provider that misbehaves; then an independent look at
//! everything. The faults come from a seed that is printed: the same seed, the same schedule.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use futures::StreamExt;
use proto::{
    inventory::v1::{RestockRequest, inventory_service_client::InventoryServiceClient},
    order::v1::{OrderLine, PlaceOrderRequest, order_service_client::OrderServiceClient},
};
use tokio::sync::Mutex;

use crate::{
    lab,
    local::{Profile, State},
    output::{line, note},
    verify::{self, Evidence, Finding, check},
};

use super::services::{Shop, open};

const MENU: [&str; 7] = ["espresso", "americano", "cappuccino", "flat-white", "latte", "mocha", "croissant"];

/// Customers that wait at the same time.
const CUSTOMERS: usize = 50;
/// How long one order may take to be accepted, over all tries.
const ACCEPTED: Duration = Duration::from_secs(60);
/// How long the shop may take to come to rest afterwards.
const REST: Duration = Duration::from_secs(240);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    profile: Profile,
    /// How many orders.
    #[arg(long, default_value_t = 500)]
    orders: u64,
    /// How many times a service is killed (SIGKILL) and started again.
    #[arg(long, default_value_t = 0)]
    kills: u32,
    /// So many of 100 calls to the payment provider go wrong.
    #[arg(long, default_value_t = 0)]
    misbehave: u64,
    /// All orders are for one of this; several kinds if not given.
    #[arg(long)]
    sku: Option<String>,
    /// Put so many more of --sku on the shelf first.
    #[arg(long, requires = "sku")]
    restock: Option<i32>,
    /// Where the faults come from; by chance if not given.
    #[arg(long)]
    seed: Option<u64>,
}

/// Exit codes: 0 all hold, 1 at least one invariant is broken.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(state) = State::load(&args.profile)? else {
        bail!("Postgres and Kafka do not run; `make up` starts them");
    };
    lab::db_init(&state).await?;
    lab::topic_create(&state).await?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    line(format_args!(
        "seed={seed} orders={} kills={} misbehave={}",
        args.orders, args.kills, args.misbehave
    ));
    let shop = open(&state, args.misbehave).await?;
    if let (Some(sku), Some(quantity)) = (&args.sku, args.restock) {
        restock(&shop.inventory, sku, quantity).await?;
    }
    let orders = shop.orders.clone();
    let shop = Mutex::new(shop);
    let (accepted, killed) =
        tokio::join!(place_all(&orders, &args, seed), kill_some(&shop, args.kills, seed));
    let (accepted, killed) = (accepted?, killed?);
    line(format_args!("accepted={accepted}"));
    for (name, count) in killed {
        line(format_args!("killed {name}={count}"));
    }
    let (findings, ends) = at_rest(&state).await?;
    for (status, count) in ends {
        line(format_args!("orders {status}={count}"));
    }
    verify::show(&findings);
    shop.into_inner().close().await?;
    let holds = findings.iter().all(Finding::holds);
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn restock(address: &str, sku: &str, quantity: i32) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let idempotency_key = uuid::Uuid::new_v4().to_string();
    loop {
        let request =
            RestockRequest { sku: sku.to_owned(), quantity, idempotency_key: idempotency_key.clone() };
        let sent = async {
            let mut client = InventoryServiceClient::connect(format!("http://{address}")).await?;
            anyhow::Ok(client.restock(request).await?)
        };
        match sent.await {
            Ok(_) => return Ok(()),
            Err(error) if tokio::time::Instant::now() > deadline => return Err(error).context("restock"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn place_all(address: &str, args: &Args, seed: u64) -> anyhow::Result<u64> {
    let mut accepted = 0;
    let mut placing = futures::stream::iter(0..args.orders)
        .map(|number| place(address, args.sku.as_deref(), seed, number))
        .buffer_unordered(CUSTOMERS);
    while let Some(placed) = placing.next().await {
        placed?;
        accepted += 1;
        if accepted % 100 == 0 {
            note(format_args!("  {accepted} orders accepted"));
        }
    }
    Ok(accepted)
}

/// Places one order; while the service is away, again with the same key and body.
async fn place(address: &str, sku: Option<&str>, seed: u64, number: u64) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::with_seed(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let sku = sku.unwrap_or_else(|| MENU[random.usize(..MENU.len())]);
    let request = PlaceOrderRequest {
        customer: format!("customer-{}", number % 20),
        lines: vec![OrderLine { sku: sku.to_owned(), quantity: 1 }],
        idempotency_key: format!("storm-{seed:016x}-{number:08}-{:08x}", std::process::id()),
        payment_token: "tok_good".to_owned(),
    };
    let deadline = tokio::time::Instant::now() + ACCEPTED;
    loop {
        let sent = async {
            let mut client = OrderServiceClient::connect(format!("http://{address}")).await?;
            anyhow::Ok(client.place_order(request.clone()).await?)
        };
        match sent.await {
            Ok(_) => return Ok(()),
            Err(error) if tokio::time::Instant::now() > deadline => {
                return Err(error).context("an order was not accepted");
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Kills processes by the seed's schedule, one at a time, each started again a moment later.
async fn kill_some(shop: &Mutex<Shop>, kills: u32, seed: u64) -> anyhow::Result<BTreeMap<&'static str, u32>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut killed = BTreeMap::new();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(random.u64(200..1000))).await;
        let mut shop = shop.lock().await;
        let number = random.usize(..shop.len());
        let name = shop.kill(number).await?;
        note(format_args!("  killed {name}"));
        tokio::time::sleep(Duration::from_millis(random.u64(0..500))).await;
        shop.restart(number)?;
        *killed.entry(name).or_default() += 1;
    }
    Ok(killed)
}

/// Looks until all holds, or for as long as the shop may take to come to rest; with orders by status.
async fn at_rest(state: &State) -> anyhow::Result<(Vec<Finding>, BTreeMap<String, usize>)> {
    let deadline = tokio::time::Instant::now() + REST;
    loop {
        let evidence = Evidence::gather(state).await?;
        let findings = check(&evidence);
        if findings.iter().all(Finding::holds) || tokio::time::Instant::now() > deadline {
            let mut ends = BTreeMap::new();
            for order in &evidence.orders {
                *ends.entry(order.status.clone()).or_default() += 1;
            }
            return Ok((findings, ends));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
