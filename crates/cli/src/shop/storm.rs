//! Many orders at once, with services killed among them and a provider that misbehaves; then an independent look at
//! everything. The faults come from a seed that is printed: the same seed, the same schedule.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::Context;
use futures::StreamExt;
use proto::{
    inventory::v1::{RestockRequest, inventory_service_client::InventoryServiceClient},
    order::v1::{CancelOrderRequest, OrderLine, PlaceOrderRequest, order_service_client::OrderServiceClient},
};
use tokio::sync::Mutex;

use crate::{
    lab::{self, MENU},
    local::{Profile, State},
    output::{line, note},
    verify::{self, Patience, at_rest},
};

use super::services::{Shop, ground, open};

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
    /// So many of 100 customers cancel as soon as they have ordered.
    #[arg(long, default_value_t = 0)]
    cancel: u64,
    /// Publish no order before all are in (and cancelled, where so): a backlog, as after an outage of the publishers.
    #[arg(long)]
    backlog: bool,
    /// All orders are for one of this; several kinds if not given.
    #[arg(long)]
    sku: Option<String>,
    /// Put so many more of --sku on the shelf first.
    #[arg(long, requires = "sku")]
    restock: Option<i32>,
    /// Take the shop as it stands when nothing has moved for so long.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    quiet: Duration,
    /// Where the faults come from; by chance if not given.
    #[arg(long)]
    seed: Option<u64>,
}

/// Exit codes as of `brew verify`.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let state = ground(&args.profile).await?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    line(format_args!(
        "seed={seed} orders={} kills={} misbehave={} cancel={}",
        args.orders, args.kills, args.misbehave, args.cancel
    ));
    let shop = open(&state, args.misbehave).await?;
    if let (Some(sku), Some(quantity)) = (&args.sku, args.restock) {
        restock(&shop.inventory, sku, quantity).await?;
    }
    if args.backlog {
        hold_orders_back(&state, true).await?;
    }
    let orders = shop.orders.clone();
    let shop = Mutex::new(shop);
    let (accepted, killed) =
        tokio::join!(place_all(&orders, &args, seed), kill_some(&shop, args.kills, seed));
    let (accepted, killed) = (accepted?, killed?);
    line(format_args!("accepted={accepted}"));
    if args.backlog {
        hold_orders_back(&state, false).await?;
    }
    for (name, count) in killed {
        line(format_args!("killed {name}={count}"));
    }
    let (evidence, findings) = at_rest(&state, Patience { whole: REST, quiet: args.quiet }).await?;
    for (status, count) in evidence.ends() {
        line(format_args!("orders {status}={count}"));
    }
    verify::show(&findings);
    shop.into_inner().close().await?;
    Ok(verify::exit_code(&findings))
}

async fn hold_orders_back(state: &State, held: bool) -> anyhow::Result<()> {
    let mut orders = lab::open(state, lab::ORDERS).await?;
    let decider = outbox::Decider { who: "brew storm", why: "a backlog" };
    outbox::pause(&mut orders, held, decider).await?;
    Ok(())
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
        .map(|number| customer(address, args, seed, number))
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

/// Places one order, and cancels it if this is such a customer.
async fn customer(address: &str, args: &Args, seed: u64, number: u64) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::with_seed(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let sku = args.sku.as_deref().unwrap_or_else(|| MENU[random.usize(..MENU.len())]);
    let order_id = place(address, sku, seed, number).await?;
    if random.u64(..100) < args.cancel {
        // Refused when it is completed already; lost when the service has just been killed. Both are as in life.
        if let Ok(mut client) = OrderServiceClient::connect(format!("http://{address}")).await {
            let _answer = client.cancel_order(CancelOrderRequest { order_id }).await;
        }
    }
    Ok(())
}

/// Places one order; while the service is away, again with the same key and body. Returns its id.
async fn place(address: &str, sku: &str, seed: u64, number: u64) -> anyhow::Result<String> {
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
            Ok(placed) => {
                return Ok(placed.into_inner().order.context("an answer without an order")?.order_id);
            }
            Err(error) if tokio::time::Instant::now() > deadline => {
                return Err(error).context("an order was not accepted");
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Kills processes by the seed's schedule, one at a time, each started again a moment later; every one before any is
/// killed again.
async fn kill_some(shop: &Mutex<Shop>, kills: u32, seed: u64) -> anyhow::Result<BTreeMap<&'static str, u32>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut killed = BTreeMap::new();
    let mut turn: Vec<usize> = Vec::new();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(random.u64(200..1000))).await;
        let mut shop = shop.lock().await;
        if turn.is_empty() {
            turn = (0..shop.len()).collect();
            random.shuffle(&mut turn);
        }
        let Some(number) = turn.pop() else { break };
        let name = shop.kill(number).await?;
        note(format_args!("  killed {name}"));
        tokio::time::sleep(Duration::from_millis(random.u64(0..500))).await;
        shop.restart(number)?;
        *killed.entry(name).or_default() += 1;
    }
    Ok(killed)
}
