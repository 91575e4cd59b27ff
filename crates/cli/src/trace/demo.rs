//! A shop with Jaeger, and one order's way through it.

use std::{
    process::{ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tokio::process::Command;

use crate::{
    lab,
    local::{self, Profile, State},
    output::{line, note},
    shop,
};

use super::{Args, Jaeger};

#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// What and how many: SKU=QUANTITY, or SKU for one.
    #[arg(default_values = ["latte=2", "croissant=1"])]
    lines: Vec<String>,
    /// Show the statements, too.
    #[arg(long)]
    statements: bool,
}

/// On infrastructure of its own, which is deleted at the end. Jaeger is the one that JAEGER_URL and
/// OTEL_EXPORTER_OTLP_ENDPOINT name, else one in Docker.
pub(crate) async fn demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let profile = Profile { jaeger: true, ..Profile::named("trace-demo") };
    // A demo that was interrupted may have left something.
    local::reset(&profile).await?;
    let told = tokio::select! {
        told = on_own_infrastructure(&profile, args) => told,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    note("cleaning up ...");
    local::reset(&profile).await?;
    told
}

async fn on_own_infrastructure(profile: &Profile, args: DemoArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let state = local::up(profile).await?;
    lab::refuse_foreign_records(&state).await?;
    let url = state.jaeger()?.url.clone();
    shop::ground(profile).await?;
    let shop = shop::open(&state, 0).await?;
    note(format_args!("brew order place {}", args.lines.join(" ")));
    let place = [vec!["place".to_owned()], args.lines].concat();
    let order_id = order(&state, &shop.orders, &place).await?;
    note(format_args!("brew order watch {order_id}"));
    let changes = order(&state, &shop.orders, &["watch".to_owned(), order_id.clone()]).await?;
    changes.lines().for_each(line);
    note(format_args!("brew trace {order_id} --check"));
    // The customer has the last word, but two services still have to hear it, and spans leave a process every 5 s: the
    // shop stays open until all is there.
    let wait = Duration::from_secs(30);
    let (jaeger, since, statements) = (Jaeger { url, page: None }, began.elapsed(), args.statements);
    let told = super::run(Args { order_id, jaeger, check: true, wait, since, statements, json: false }).await;
    shop.close().await?;
    told
}

/// What `brew order` prints, run as a person runs it.
async fn order(state: &State, address: &str, arguments: &[String]) -> anyhow::Result<String> {
    let output = Command::new(std::env::current_exe()?)
        .arg("order")
        .args(arguments)
        .env("BREW_ORDER_SERVICE", format!("http://{address}"))
        .envs(state.jaeger()?.variables())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .context("run `brew order`")?;
    if !output.status.success() {
        bail!("`brew order` ended with {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
