//! One order's trace, out of Jaeger: a waterfall, a link, and a check of its shape.

mod check;
mod demo;
mod jaeger;
mod waterfall;

use std::{
    collections::BTreeSet,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::bail;
use serde_json::{Value as Json, json};

use crate::output::{line, note, verdict};

pub(crate) use demo::{DemoArgs, demo};
pub(crate) use jaeger::Jaeger;
use jaeger::{Span, Trace};

/// How long to wait between two looks; services send their spans every few seconds.
const LOOK: Duration = Duration::from_millis(250);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// order-42
    order_id: String,
    #[command(flatten)]
    jaeger: Jaeger,
    /// Fail unless the trace has its right shape: one trace and one root, no orphan, each event sent and processed by
    /// every service that reads its topic. Spans of a process that was killed may be lost; then it fails, too.
    #[arg(long)]
    check: bool,
    /// With --check: how long to wait until the spans are there, since services send theirs every 5 s.
    #[arg(long, default_value = "15s", value_parser = humantime::parse_duration)]
    wait: Duration,
    /// Only what began so long ago at most: a new database begins with order-1 again.
    #[arg(long, default_value = "2days", value_parser = humantime::parse_duration)]
    since: Duration,
    /// Show the statements, too.
    #[arg(long)]
    statements: bool,
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

/// Shows an order's trace, begun so long ago at most, and says whether it has its right shape.
pub(crate) async fn show_checked(
    order_id: &str,
    jaeger: &Jaeger,
    wait: Duration,
    since: Duration,
) -> anyhow::Result<bool> {
    let (order_id, jaeger) = (order_id.to_owned(), jaeger.clone());
    let args = Args { order_id, jaeger, check: true, wait, since, statements: false, json: false };
    Ok(run(args).await? == ExitCode::SUCCESS)
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (traces, problems) = look(&args).await?;
    if args.json {
        let traces: Vec<Json> = traces.iter().map(|trace| as_json(trace, &args.jaeger)).collect();
        line(format_args!(
            "{:#}",
            json!({"order_id": args.order_id, "traces": traces, "problems": problems})
        ));
    } else {
        if traces.is_empty() {
            bail!(
                "Jaeger at {} knows nothing of {}: are the services started with OTEL_EXPORTER_OTLP_ENDPOINT, and \
                 did it have 5 s to come? Jaeger in memory forgets with a restart",
                args.jaeger.url,
                args.order_id
            );
        }
        for trace in &traces {
            show(trace, &args);
        }
    }
    if !args.check {
        return Ok(ExitCode::SUCCESS);
    }
    for problem in &problems {
        note(format_args!("{} {problem}", verdict("✗", false)));
    }
    if problems.is_empty() {
        note(format_args!("check: {}", verdict("one trace, one root, every service", true)));
        Ok(ExitCode::SUCCESS)
    } else {
        note(format_args!("check: {}", verdict("the trace is not as it should be", false)));
        Ok(ExitCode::FAILURE)
    }
}

/// What Jaeger has; for a check, as soon as nothing is wrong with it any more.
async fn look(args: &Args) -> anyhow::Result<(Vec<Trace>, Vec<String>)> {
    let since = SystemTime::now().checked_sub(args.since).unwrap_or(SystemTime::UNIX_EPOCH);
    let deadline = tokio::time::Instant::now() + args.wait;
    loop {
        let traces = args.jaeger.traces_of(&args.order_id, since).await?;
        let problems = check::problems(&traces);
        if !args.check || problems.is_empty() || tokio::time::Instant::now() >= deadline {
            return Ok((traces, problems));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn show(trace: &Trace, args: &Args) {
    waterfall::lines(trace, args.statements).into_iter().for_each(line);
    let services: BTreeSet<&str> = trace.spans.iter().map(|span| span.service.as_str()).collect();
    let statements = trace.spans.iter().filter(|span| span.is_statement()).count();
    let (begin, end) = waterfall::range(trace);
    let hidden = if args.statements { "" } else { ", --statements shows them" };
    line(format_args!(
        "{}: {} ms, {} services, {} spans ({statements} of them statements{hidden})",
        args.order_id,
        waterfall::ms(end - begin),
        services.len(),
        trace.spans.len(),
    ));
    line(args.jaeger.link(&trace.id));
}

fn as_json(trace: &Trace, jaeger: &Jaeger) -> Json {
    let span = |span: &Span| {
        json!({
            "span_id": span.id, "parent_id": span.parent, "service": span.service, "name": span.name,
            "start_us": span.start_us, "took_us": span.took_us, "tags": span.tags,
        })
    };
    json!({
        "trace_id": trace.id, "link": jaeger.link(&trace.id),
        "spans": trace.spans.iter().map(span).collect::<Vec<_>>(),
    })
}
