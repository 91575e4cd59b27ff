//! A steady stream of orders, open loop: each order has its time, and its latency counts from that time, also when the
//! orders before it were slow.

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use backon::{ExponentialBuilder, Retryable};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use proto::order::v1::{OrderLine, PlaceOrderRequest, order_service_client::OrderServiceClient};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};
use tonic::{Code, Status, transport::Channel};

use crate::{
    lab::MENU,
    local::{Profile, State},
    output::{line, note, table},
    shop,
    verify::{self, Evidence, Finding, Patience, at_rest},
};

/// At most so many calls wait at once; a service that is slower than the rate gets no more, and the latency tells.
const IN_FLIGHT: usize = 1000;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Between the tries of an order that was turned away; doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// How long the shop may take to come to rest afterwards.
const REST: Patience = Patience { whole: Duration::from_secs(300), quiet: Duration::from_secs(75) };

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    profile: Profile,
    /// Where order-service listens.
    #[arg(long, env = "BREW_ORDER_SERVICE", default_value = "http://127.0.0.1:50051")]
    order_service: String,
    /// Open a shop on the local Postgres and Kafka for as long as this takes, instead of using one that is open.
    #[arg(long)]
    shop: bool,
    /// Orders a second.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// For how long; at most an hour.
    #[arg(long, default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Do not wait for the orders' ends, and do not verify. Without a local Postgres and Kafka that is so anyway.
    #[arg(long)]
    no_verify: bool,
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(found) if (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&found) => Ok(found),
        Ok(_) => Err("from 100ms to 1h".to_owned()),
        Err(error) => Err(format!("{error}; for example 30s")),
    }
}

/// Exit codes: 0 every order was accepted and all invariants hold; else 1, or 2 as of `brew verify`.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (state, shop) = if args.shop {
        let state = shop::ground(&args.profile).await?;
        let shop = shop::open(&state, 0).await?;
        (Some(state), Some(shop))
    } else {
        (State::found(&args.profile)?, None)
    };
    let address = match &shop {
        Some(shop) => format!("http://{}", shop.orders),
        None => args.order_service.clone(),
    };
    let (seen, took) = send(&args, &address).await?;
    let looked = match &state {
        Some(state) if !args.no_verify => {
            note("waiting for the orders' ends ...");
            Some(at_rest(state, REST).await?)
        }
        _ => None,
    };
    report(&args, &seen, took, looked.as_ref())?;
    if let Some(shop) = shop {
        shop.close().await?;
    }
    Ok(match looked {
        _ if seen.failed > 0 => ExitCode::FAILURE,
        Some((_, findings)) => verify::exit_code(&findings),
        None => ExitCode::SUCCESS,
    })
}

/// Places the orders, each at its time.
async fn send(args: &Args, address: &str) -> anyhow::Result<(Seen, Duration)> {
    let client = OrderServiceClient::connect(address.to_owned()).await.with_context(|| {
        format!("order-service does not answer at {address} (--order-service, or --shop)")
    })?;
    let count = (f64::from(args.rate) * args.duration.as_secs_f64()).round().max(1.0) as u64;
    let bar = ProgressBar::new(count);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} orders, {eta} left")?);

    let mut seen = Seen { latency_us: Histogram::new(3)?, turned_away: 0, failed: 0, first_failure: None };
    let mut calls = JoinSet::new();
    let began = Instant::now();
    for number in 0..count {
        let due = began + Duration::from_secs(1).mul_f64(number as f64 / f64::from(args.rate));
        tokio::time::sleep_until(due).await;
        calls.spawn(place(client.clone(), number, due));
        while let Some(done) =
            if calls.len() >= IN_FLIGHT { calls.join_next().await } else { calls.try_join_next() }
        {
            seen.note(done?)?;
            bar.inc(1);
        }
    }
    while let Some(done) = calls.join_next().await {
        seen.note(done?)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((seen, began.elapsed()))
}

/// An order that was accepted.
struct Placed {
    /// Since it was due.
    us: u64,
    turned_away: u64,
}

/// What the calls came to.
struct Seen {
    latency_us: Histogram<u64>,
    turned_away: u64,
    failed: u64,
    first_failure: Option<String>,
}

impl Seen {
    fn note(&mut self, done: Result<Placed, String>) -> anyhow::Result<()> {
        match done {
            Ok(placed) => {
                self.latency_us.record(placed.us)?;
                self.turned_away += placed.turned_away;
            }
            Err(why) => {
                self.failed += 1;
                self.first_failure.get_or_insert(why);
            }
        }
        Ok(())
    }
}

/// How long an order took, and how often it was turned away before; why, if it was not accepted.
///
/// A service that has no room, or whose database is away, says so and takes the same order later; one that was killed
/// says nothing. As a till would, this asks again, with the same key, so that the order is placed once.
async fn place(client: OrderServiceClient<Channel>, number: u64, due: Instant) -> Result<Placed, String> {
    let sku = MENU[usize::try_from(number).unwrap_or_default() % MENU.len()];
    let request = PlaceOrderRequest {
        customer: format!("customer-{}", number % 20),
        lines: vec![OrderLine { sku: sku.to_owned(), quantity: 1 }],
        idempotency_key: uuid::Uuid::new_v4().to_string(),
        payment_token: "tok_good".to_owned(),
    };
    let (mut turned_away, mut last) = (0, String::new());
    let said = |status: &Status| format!("{} ({:?})", status.message(), status.code());
    let try_once = || {
        let (mut client, request) = (client.clone(), request.clone());
        async move { client.place_order(request).await }
    };
    let pauses = ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LAST_PAUSE)
        .with_jitter()
        .without_max_times();
    let placing = try_once
        .retry(pauses)
        // Cancelled: the connection broke while the service worked.
        .when(|status| {
            matches!(
                status.code(),
                Code::ResourceExhausted | Code::Unavailable | Code::Unknown | Code::Cancelled
            )
        })
        .notify(|status, _| {
            turned_away += 1;
            last = said(status);
        });
    match tokio::time::timeout(CALL_TIMEOUT, placing).await {
        Ok(Ok(_)) => {
            let us = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
            Ok(Placed { us, turned_away })
        }
        Ok(Err(status)) => Err(said(&status)),
        Err(_) if last.is_empty() => Err(format!("no answer within {CALL_TIMEOUT:?}")),
        Err(_) => Err(format!("not taken within {CALL_TIMEOUT:?}: {last}")),
    }
}

type Looked = (Evidence, Vec<Finding>);

fn report(args: &Args, seen: &Seen, took: Duration, looked: Option<&Looked>) -> anyhow::Result<()> {
    let (latency_us, failed) = (&seen.latency_us, seen.failed);
    let ms = |us: u64| us as f64 / 1000.0;
    let at = |quantile| ms(latency_us.value_at_quantile(quantile));
    let rate = latency_us.len() as f64 / took.as_secs_f64();
    if args.json {
        let figures = json!({
            "accepted": latency_us.len(), "turned_away": seen.turned_away, "failed": failed,
            "first_failure": seen.first_failure,
            "per_second": rate, "p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99),
            "max_ms": ms(latency_us.max()), "verify": looked.map(|(_, findings)| findings),
        });
        line(serde_json::to_string_pretty(&figures)?);
        return Ok(());
    }
    let mut table = table();
    table.set_header([
        "accepted",
        "turned away",
        "failed",
        "per second",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
    ]);
    table.add_row([
        latency_us.len().to_string(),
        seen.turned_away.to_string(),
        failed.to_string(),
        format!("{rate:.1}"),
        format!("{:.1}", at(0.5)),
        format!("{:.1}", at(0.9)),
        format!("{:.1}", at(0.99)),
        format!("{:.1}", ms(latency_us.max())),
    ]);
    line(table);
    if let Some(why) = &seen.first_failure {
        line(format_args!("first failure: {why}"));
    }
    match looked {
        Some((evidence, findings)) => {
            for (status, count) in evidence.ends() {
                line(format_args!("orders {status}={count}"));
            }
            verify::show(findings);
        }
        None => note("not verified: that takes the local Postgres and Kafka, and no --no-verify"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_with_its_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert!(duration("30").unwrap_err().contains("30s"));
        assert!(duration("3h").is_err());
    }
}
