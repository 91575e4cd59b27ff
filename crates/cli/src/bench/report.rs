//! The figures as tables: what was measured beside what the machine gives, and first of all whether it was correct.

use std::collections::BTreeMap;

use comfy_table::Table;
use serde::Serialize;
use serde_json::json;

use crate::output::{align_numbers, line, table, verdict};

use super::{
    backlog::Flatness,
    consumer::Consumed,
    drain::Drained,
    ground::Setting,
    judge::{Check, Checked},
    latency::{Latency, Times},
    meter::Span,
    place_order::{Cost, Kind},
    traced::Traced,
};

const NONE: &str = "-";
const NOT_OURS: &str = "not ours";

/// Drains and ceilings.
#[derive(Serialize)]
pub(crate) struct Rates {
    pub(crate) drain: Checked<Drained>,
    pub(crate) fetch_and_mark: Vec<Span>,
    pub(crate) produce: Vec<Span>,
}

/// Everything.
#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) setting: Setting,
    pub(crate) rates: Option<Rates>,
    pub(crate) traced: Vec<Traced>,
    pub(crate) latency: Vec<Checked<Latency>>,
    pub(crate) consumer: Option<Checked<Consumed>>,
    pub(crate) place_order: Option<Cost>,
    pub(crate) backlog: Option<Checked<Flatness>>,
}

impl Figures {
    /// None yet.
    pub(crate) fn of(setting: Setting) -> Self {
        Self {
            setting,
            rates: None,
            traced: Vec::new(),
            latency: Vec::new(),
            consumer: None,
            place_order: None,
            backlog: None,
        }
    }

    fn drained(&self) -> Option<&Drained> {
        self.rates.as_ref()?.drain.figures.as_ref()
    }

    fn consumed(&self) -> Option<&Consumed> {
        self.consumer.as_ref()?.figures.as_ref()
    }

    fn checks(&self) -> Vec<(&'static str, &Check)> {
        let mut checks = Vec::new();
        checks.extend(self.rates.iter().map(|rates| ("drain", &rates.drain.check)));
        checks.extend(self.traced.iter().map(|traced| (traced.name(), &traced.drained.check)));
        let latency = ["latency with NOTIFY", "latency without NOTIFY"].into_iter().zip(&self.latency);
        checks.extend(latency.map(|(name, latency)| (name, &latency.check)));
        checks.extend(self.consumer.iter().map(|consumer| ("consumer", &consumer.check)));
        checks.extend(self.backlog.iter().map(|backlog| ("backlog", &backlog.check)));
        checks
    }

    /// Whether every part was correct.
    pub(crate) fn hold(&self) -> bool {
        self.checks().iter().all(|(_, check)| check.holds())
    }
}

/// Everything, with the medians beside it.
pub(crate) fn json(figures: &Figures) -> anyhow::Result<String> {
    let rates = figures.rates.as_ref();
    let medians = json!({
        "drain": figures.drained().map(|drained| Summary::of(&drained.spans())),
        "fetch_and_mark": rates.map(|rates| Summary::of(&rates.fetch_and_mark)),
        "produce": rates.map(|rates| Summary::of(&rates.produce)),
        "traced": figures.traced.iter().map(|traced| {
            let summary = traced.drained.figures.as_ref().map(|drained| Summary::of(&drained.spans()));
            (traced.name(), summary)
        }).collect::<BTreeMap<_, _>>(),
        "consumer": figures.consumed().map(|consumed| Summary::of(&consumed.rounds)),
    });
    Ok(serde_json::to_string_pretty(&json!({"medians": medians, "measured": figures}))?)
}

pub(crate) fn show(figures: &Figures) {
    figures.setting.lines().iter().for_each(line);
    line("\ncorrect?");
    line(correctness(figures));
    let good = figures.hold();
    let text = if good { "all correct" } else { "NOT CORRECT: what failed has no figures" };
    line(verdict(text, good));
    if figures.rates.is_some() || figures.consumed().is_some() {
        line("\nrates: the medians of the quiet rounds; * = in some, others used more than 0.3 cores");
        line(
            "client: the service, or brew itself; M: a million events; images: of pages, after a checkpoint",
        );
        line(rates(figures));
    }
    if !figures.traced.is_empty() {
        line(
            "\ntracing: the same drain without and with it, in turns; spans: that came to a collector in brew itself",
        );
        line(traced(figures));
    }
    if !figures.latency.is_empty() {
        line("\nlatency in ms, open loop");
        line(latencies(figures));
    }
    if let Some(cost) = &figures.place_order {
        line("\nthe outbox row in PlaceOrder: the same statements with and without it, in turns, in SQL");
        line(place_order(cost));
    }
    if let Some(flatness) = figures.backlog.as_ref().and_then(|backlog| backlog.figures.as_ref()) {
        let others = flatness.span.other_cores.map_or("not known".to_owned(), |cores| format!("{cores:.2}"));
        line(format_args!("\nbacklog; cores that others used: {others}"));
        line(backlog(figures, flatness));
    }
}

fn correctness(figures: &Figures) -> Table {
    let mut table = table();
    table.set_header(["", "events", "lost", "duplicates", "out of order", "else"]);
    for (name, check) in figures.checks() {
        table.add_row([
            name.to_owned(),
            check.events.to_string(),
            check.lost.to_string(),
            check.duplicates.to_string(),
            check.out_of_order.to_string(),
            check.other.join("\n"),
        ]);
    }
    align_numbers(&mut table);
    table
}

fn rates(figures: &Figures) -> Table {
    let mut table = table();
    table.set_header([
        "",
        "events/s",
        "of the\nceiling",
        "client\nCPU s/M",
        "Postgres\nCPU s/M",
        "Kafka\nCPU s/M",
        "all three\nCPU s/M",
        "WAL\nB/event",
        "without\nimages",
        "peak\nMB",
        "others\ncores",
    ]);
    if let Some(rates) = &figures.rates {
        let ceiling = Summary::of(&rates.fetch_and_mark);
        if let Some(drained) = figures.drained() {
            let summary = Summary::of(&drained.spans());
            table.add_row(row("outbox-publisher", &summary, Some(&ceiling), Some(drained.resident_mb)));
        }
        table.add_row(row("fetch and mark, no Kafka", &ceiling, Some(&ceiling), None));
        let produce = Summary::of(&rates.produce);
        table.add_row(row("produce, no Postgres", &produce, Some(&ceiling), None));
    }
    if let Some(consumed) = figures.consumed() {
        let summary = Summary::of(&consumed.rounds);
        table.add_row(row("inventory-service", &summary, None, Some(consumed.resident_mb)));
    }
    align_numbers(&mut table);
    table
}

fn traced(figures: &Figures) -> Table {
    let mut table = table();
    table.set_header([
        "",
        "events/s",
        "of untraced",
        "client\nCPU s/M",
        "spans\nof 100 due",
        "peak\nMB",
        "others\ncores",
    ]);
    let of = |traced: &Traced| traced.drained.figures.as_ref().map(|drained| Summary::of(&drained.spans()));
    let untraced = figures.traced.iter().find(|traced| traced.percent.is_none()).and_then(of);
    for traced in &figures.traced {
        let (Some(summary), Some(drained)) = (of(traced), &traced.drained.figures) else { continue };
        let share = untraced.as_ref().map(|untraced| summary.per_second / untraced.per_second * 100.0);
        let due = traced.percent.map(|percent| traced.drained.check.events * percent / 100);
        table.add_row([
            traced.name().to_owned(),
            format!("{:.0}{}", summary.per_second, if summary.disturbed { "*" } else { "" }),
            share.map_or(NONE.to_owned(), |share| format!("{share:.0} %")),
            format!("{:.1}", summary.client_cpu_s),
            due.map_or(NONE.to_owned(), |due| format!("{:.0}", traced.collected as f64 / due as f64 * 100.0)),
            format!("{:.0}", drained.resident_mb),
            summary.other_cores.map_or(NONE.to_owned(), |cores| format!("{cores:.2}")),
        ]);
    }
    align_numbers(&mut table);
    table
}

fn row(name: &str, summary: &Summary, ceiling: Option<&Summary>, resident_mb: Option<f64>) -> Vec<String> {
    let share = |ceiling: &Summary| format!("{:.0} %", summary.per_second / ceiling.per_second * 100.0);
    let number =
        |value: Option<f64>, none: &str| value.map_or(none.to_owned(), |value| format!("{value:.1}"));
    let whole = |value: Option<f64>| value.map_or(NONE.to_owned(), |value| format!("{value:.0}"));
    let all = summary
        .postgres_cpu_s
        .zip(summary.kafka_cpu_s)
        .map(|(postgres, kafka)| summary.client_cpu_s + postgres + kafka);
    vec![
        name.to_owned(),
        format!("{:.0}{}", summary.per_second, if summary.disturbed { "*" } else { "" }),
        ceiling.map_or(NONE.to_owned(), share),
        number(Some(summary.client_cpu_s), NONE),
        number(summary.postgres_cpu_s, NOT_OURS),
        number(summary.kafka_cpu_s, NOT_OURS),
        number(all, NONE),
        whole(Some(summary.wal_bytes)),
        whole(summary.wal_bytes_without_images),
        whole(resident_mb),
        summary.other_cores.map_or(NONE.to_owned(), |cores| format!("{cores:.2}")),
    ]
}

/// Medians over the rounds that were quiet; over all where none was. CPU in seconds for a million events, log in bytes
/// for one.
#[derive(Serialize)]
struct Summary {
    per_second: f64,
    client_cpu_s: f64,
    postgres_cpu_s: Option<f64>,
    kafka_cpu_s: Option<f64>,
    wal_bytes: f64,
    wal_bytes_without_images: Option<f64>,
    other_cores: Option<f64>,
    /// In some rounds, other processes used more of the machine than they should.
    disturbed: bool,
}

impl Summary {
    fn of(spans: &[Span]) -> Self {
        let quiet: Vec<&Span> = spans.iter().filter(|span| span.quiet()).collect();
        let disturbed = quiet.len() < spans.len();
        let chosen = if quiet.is_empty() { spans.iter().collect() } else { quiet };
        let all = |value: &dyn Fn(&Span) -> Option<f64>| {
            median(chosen.iter().filter_map(|span| value(span)).collect())
        };
        let per_event = |bytes: i64, span: &Span| bytes as f64 / span.events as f64;
        Self {
            per_second: all(&|span| Some(span.rate())).unwrap_or_default(),
            client_cpu_s: all(&|span| Some(span.per_million(span.client_cpu_s))).unwrap_or_default(),
            postgres_cpu_s: all(&|span| Some(span.per_million(span.postgres_cpu_s?))),
            kafka_cpu_s: all(&|span| Some(span.per_million(span.kafka_cpu_s?))),
            wal_bytes: all(&|span| Some(per_event(span.wal_bytes, span))).unwrap_or_default(),
            wal_bytes_without_images: all(&|span| {
                Some(per_event(span.wal_bytes - span.wal_image_bytes?, span))
            }),
            other_cores: all(&|span| span.other_cores),
            disturbed,
        }
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn latencies(figures: &Figures) -> Table {
    let mut table = table();
    table.set_header(["", "p50", "p95", "p99", "max", "relay\ncores", "peak\nMB", "others\ncores"]);
    for latency in figures.latency.iter().filter_map(|latency| latency.figures.as_ref()) {
        let with = if latency.notify { "with" } else { "without" };
        let name = |what: &str| format!("{}/s {with} NOTIFY: {what}", latency.per_second);
        let span = &latency.span;
        let more = [
            format!("{:.2}", span.client_cpu_s / span.seconds),
            format!("{:.0}", latency.resident_mb),
            span.other_cores.map_or(NONE.to_owned(), |cores| format!("{cores:.2}")),
        ];
        table.add_row(times(name("commit to readable"), &latency.commit_to_readable, more));
        let none = || [(); 3].map(|()| String::new());
        table.add_row(times(name("schedule to readable"), &latency.scheduled_to_readable, none()));
        table.add_row(times(name("writer late"), &latency.writer_late, none()));
    }
    align_numbers(&mut table);
    table
}

fn times<const N: usize>(name: String, times: &Times, more: [String; N]) -> Vec<String> {
    let of = [times.p50_ms, times.p95_ms, times.p99_ms, times.max_ms];
    [name].into_iter().chain(of.map(|ms| format!("{ms:.2}"))).chain(more).collect()
}

fn place_order(cost: &Cost) -> Table {
    let mut table = table();
    table.set_header(["", "p50 ms", "p95 ms", "p99 ms", "max ms", "WAL\nB/order", "cost at p50"]);
    let mut add = |name: &str, kind: &Kind, percent: String| {
        let wal = format!("{:.0}", kind.wal_bytes);
        table.add_row(times(name.to_owned(), &kind.times, [wal, percent]));
    };
    add(&format!("without, {} orders", cost.orders), &cost.without, String::new());
    add("with", &cost.with, format!("{:+.1} %", cost.percent()));
    align_numbers(&mut table);
    table
}

fn backlog(figures: &Figures, flatness: &Flatness) -> Table {
    let mut table = table();
    table.set_header(["", "events/s", "of the empty start"]);
    let empty = figures.drained().map(|drained| Summary::of(&drained.spans()).per_second);
    let mut add = |name: String, rate: f64| {
        let share = empty.map_or(NONE.to_owned(), |empty| format!("{:.0} %", rate / empty * 100.0));
        table.add_row([name, format!("{rate:.0}"), share]);
    };
    empty.into_iter().for_each(|rate| add("empty start".to_owned(), rate));
    let held = if flatness.held_snapshot { ", snapshot held" } else { "" };
    add(format!("{} events{held}", flatness.span.events), flatness.span.rate());
    for (tenth, rate) in (1..).zip(&flatness.tenths) {
        add(format!("  tenth {tenth}"), *rate);
    }
    align_numbers(&mut table);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(seconds: f64, other_cores: f64) -> Span {
        Span {
            events: 1000,
            seconds,
            client_cpu_s: 0.1,
            postgres_cpu_s: None,
            kafka_cpu_s: None,
            other_cores: Some(other_cores),
            wal_bytes: 600_000,
            wal_image_bytes: Some(100_000),
        }
    }

    #[test]
    fn disturbed_rounds_are_left_out_where_there_are_others() {
        let summary = Summary::of(&[span(1.0, 0.0), span(10.0, 1.5), span(2.0, 0.1)]);
        assert_eq!((summary.per_second, summary.disturbed), (1000.0, true));
        assert_eq!((summary.client_cpu_s, summary.postgres_cpu_s), (100.0, None));
        assert_eq!((summary.wal_bytes, summary.wal_bytes_without_images), (600.0, Some(500.0)));
        let summary = Summary::of(&[span(1.0, 1.0), span(10.0, 1.5), span(2.0, 1.1)]);
        assert_eq!(summary.per_second, 500.0);
    }
}
