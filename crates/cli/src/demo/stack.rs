//! The demo on a stack that runs: in containers or in Kubernetes.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{
    local::{Profile, State},
    output::{line, note},
    shop::Ordered,
    trace, verify,
};

use super::{Story, conclude, saga, show};

/// For the spans of an order: services send theirs every 5 s.
const SPANS: Duration = Duration::from_secs(20);

pub(super) async fn run(order_service: &str) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let state = State::found(&Profile::named("lab"))?;
    let jaeger = trace::Jaeger::of_environment();
    let mut story = Story::default();
    note(format_args!("  placing orders at {order_service}"));
    let orders = saga::place_all(order_service).await?;
    saga::tell_ends(&orders, &mut story);
    if let (Some(jaeger), Some(ordered)) = (&jaeger, orders.first()) {
        trace_one(jaeger, ordered, began, &mut story).await?;
    }
    let findings = match &state {
        Some(state) => saga::check_all(state, &mut story).await?,
        None => Vec::new(),
    };

    show(&story, &[format!("stack     {order_service}")]);
    if state.is_some() {
        verify::show(&findings);
    } else {
        note("not verified: DATABASE_URL and KAFKA_BROKERS are not set");
    }
    links(jaeger.as_ref(), &orders);
    Ok(conclude(&story, "every order came to its end", began))
}

/// The waterfall of one order, with the check of its shape.
async fn trace_one(
    jaeger: &trace::Jaeger,
    ordered: &Ordered,
    began: Instant,
    story: &mut Story,
) -> anyhow::Result<()> {
    note(format_args!("  brew trace {} --check", ordered.order_id));
    let good = trace::show_checked(&ordered.order_id, jaeger, SPANS, began.elapsed()).await?;
    let seen = if good { "one trace, one root" } else { "not as it should be" };
    let did = format!("look at the trace of {}", ordered.order_id);
    story.tell(did, seen, &"one trace, one root", "every service and every event is in it");
    Ok(())
}

fn links(jaeger: Option<&trace::Jaeger>, orders: &[Ordered]) {
    let Some(jaeger) = jaeger else { return };
    for (ordered, trace_id) in orders.iter().filter_map(|one| Some((one, one.trace_id.as_ref()?))) {
        line(format_args!("{:<12} {}", ordered.order_id, jaeger.link(trace_id)));
    }
}
