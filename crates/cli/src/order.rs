//! Orders from a terminal.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use proto::order::v1::{
    CancelOrderRequest, GetOrderRequest, ListOrdersRequest, Order, OrderLine, OrderStatus, PlaceOrderRequest,
    WatchOrderRequest, order_service_client::OrderServiceClient,
};
use serde_json::{Value as Json, json};
use telemetry::rpc::{TRACE_ID, Traced};
use tonic::transport::{Channel, Endpoint};

use crate::{
    output::{line, note, table},
    trace,
};

/// order-service, in the trace of whoever calls.
pub(crate) type Client = OrderServiceClient<Traced<Channel>>;

#[derive(Args)]
pub(crate) struct OrderArgs {
    /// Where order-service listens.
    #[arg(long, env = "BREW_ORDER_SERVICE", default_value = "http://127.0.0.1:50051", global = true)]
    order_service: String,
    /// Print JSON, for scripts: one document, of `watch` one a line.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Place an order; prints its id and, if it is traced, where its trace is. Example: brew order place latte=2
    /// croissant=1
    Place {
        /// What and how many: SKU=QUANTITY, or SKU for one.
        #[arg(required = true)]
        lines: Vec<String>,
        /// Who orders.
        #[arg(long, default_value = "me")]
        customer: String,
        /// What the provider calls the means of payment; tok_declined, tok_timeout_once and others misbehave.
        #[arg(long, default_value = "tok_good")]
        token: String,
        /// Names this order: the same key again gives the same order back. A new one if not given.
        #[arg(long)]
        key: Option<String>,
        #[command(flatten)]
        jaeger: trace::Jaeger,
    },
    /// Show an order.
    Get {
        /// order-42
        order_id: String,
    },
    /// Show an order, and each change of it until it is final.
    Watch {
        /// order-42
        order_id: String,
    },
    /// List orders, newest first.
    List {
        /// Only this customer's.
        #[arg(long, default_value = "")]
        customer: String,
        /// How many, at most 100.
        #[arg(long, default_value_t = 20)]
        count: i32,
    },
    /// Cancel an order that is not completed.
    Cancel {
        /// order-42
        order_id: String,
    },
}

/// A connection to order-service at `address`, `http://host:port`.
pub(crate) async fn connect(address: &str) -> anyhow::Result<Client> {
    let channel = Endpoint::from_shared(address.to_owned())?.connect().await?;
    Ok(OrderServiceClient::new(Traced(channel)))
}

/// The trace that an answer names, if it is sampled.
pub(crate) fn trace_id<T>(answer: &tonic::Response<T>) -> Option<String> {
    answer.metadata().get(TRACE_ID).and_then(|id| id.to_str().ok()).map(str::to_owned)
}

pub(crate) async fn run(args: OrderArgs) -> anyhow::Result<ExitCode> {
    // Of each call, where OTEL_EXPORTER_OTLP_ENDPOINT says that they are wanted.
    let traces = telemetry::init_traces("brew")?;
    let called = call(args).await;
    tokio::task::spawn_blocking(|| traces.finish()).await?;
    called.map(|()| ExitCode::SUCCESS)
}

async fn call(args: OrderArgs) -> anyhow::Result<()> {
    let mut client = connect(&args.order_service).await.with_context(|| {
        format!("order-service does not answer at {} (--order-service)", args.order_service)
    })?;
    match args.command {
        Command::Place { lines, customer, token, key, jaeger } => {
            let idempotency_key = key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
            let lines = lines.iter().map(|text| order_line(text)).collect::<anyhow::Result<_>>()?;
            let request = PlaceOrderRequest { customer, lines, idempotency_key, payment_token: token };
            let placed = client.place_order(request).await.map_err(said)?;
            let trace = trace_id(&placed);
            let order = placed.into_inner().order.context("an answer without an order")?;
            line(if args.json { pretty(&as_json(&order)) } else { order.order_id });
            if let Some(id) = trace {
                note(format_args!("trace: {}", jaeger.link(&id)));
            }
        }
        Command::Get { order_id } => {
            let found = client.get_order(GetOrderRequest { order_id }).await.map_err(said)?.into_inner();
            show_one(&found.order.context("an answer without an order")?, args.json);
        }
        Command::Watch { order_id } => watch(&mut client, order_id, args.json).await?,
        Command::List { customer, count } => {
            let request = ListOrdersRequest { customer, page_size: count, page_token: String::new() };
            let orders = client.list_orders(request).await.map_err(said)?.into_inner().orders;
            if args.json {
                line(pretty(&orders.iter().map(as_json).collect()));
            } else {
                show(&orders);
            }
        }
        Command::Cancel { order_id } => {
            let request = CancelOrderRequest { order_id };
            let cancelled = client.cancel_order(request).await.map_err(said)?.into_inner();
            show_one(&cancelled.order.context("an answer without an order")?, args.json);
        }
    }
    Ok(())
}

async fn watch(client: &mut Client, order_id: String, json: bool) -> anyhow::Result<()> {
    let mut changes = client.watch_order(WatchOrderRequest { order_id }).await.map_err(said)?.into_inner();
    while let Some(change) = changes.message().await.map_err(said)? {
        let order = change.order.context("a change without an order")?;
        if json {
            line(as_json(&order));
        } else {
            line(format_args!("{} version {:>2}: {}", order.order_id, order.version, status(&order)));
        }
    }
    Ok(())
}

/// `latte=2` or `latte`.
fn order_line(text: &str) -> anyhow::Result<OrderLine> {
    let (sku, quantity) = text.split_once('=').unwrap_or((text, "1"));
    let Ok(quantity) = quantity.parse() else {
        bail!("`{text}` is no line of an order; write SKU=QUANTITY, for example latte=2");
    };
    Ok(OrderLine { sku: sku.to_owned(), quantity })
}

/// The service's own words, without the transport's.
fn said(status: tonic::Status) -> anyhow::Error {
    anyhow::anyhow!("{} ({:?})", status.message(), status.code())
}

fn status_name(status: OrderStatus) -> String {
    status.as_str_name().trim_start_matches("ORDER_STATUS_").to_lowercase()
}

/// `completed`, or `cancelled (out_of_stock)`.
pub(crate) fn status_text(status: OrderStatus, reason: &str) -> String {
    let name = status_name(status);
    if reason.is_empty() { name } else { format!("{name} ({reason})") }
}

fn status(order: &Order) -> String {
    status_text(order.status(), &order.cancel_reason)
}

fn as_json(order: &Order) -> Json {
    let lines: Vec<Json> = order
        .lines
        .iter()
        .map(|line| json!({"sku": line.sku, "quantity": line.quantity, "unit_price_minor": line.unit_price_minor}))
        .collect();
    json!({
        "order_id": order.order_id, "customer": order.customer, "status": status_name(order.status()),
        "cancel_reason": (!order.cancel_reason.is_empty()).then_some(&order.cancel_reason),
        "lines": lines, "total_minor": order.total_minor, "currency": order.currency, "version": order.version,
    })
}

fn pretty(value: &Json) -> String {
    format!("{value:#}")
}

fn show_one(order: &Order, json: bool) {
    if json {
        line(pretty(&as_json(order)));
    } else {
        show(std::slice::from_ref(order));
    }
}

fn show(orders: &[Order]) {
    let mut table = table();
    table.set_header(["order", "status", "lines", "total"]);
    for order in orders {
        let lines: Vec<String> =
            order.lines.iter().map(|line| format!("{} x {}", line.quantity, line.sku)).collect();
        let total = format!("{}.{:02} {}", order.total_minor / 100, order.total_minor % 100, order.currency);
        table.add_row([order.order_id.clone(), status(order), lines.join(", "), total]);
    }
    line(table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_from_a_terminal() {
        let read = |text| order_line(text).map(|line| (line.sku, line.quantity));
        assert_eq!(read("latte").unwrap(), ("latte".to_owned(), 1));
        assert_eq!(read("latte=12").unwrap(), ("latte".to_owned(), 12));
        assert!(read("latte=two").unwrap_err().to_string().contains("SKU=QUANTITY"));
    }
}
