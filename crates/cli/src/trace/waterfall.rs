//! A trace as text: who did what, when, and where the order waited.

use std::collections::BTreeMap;

use crate::output::verdict;

use super::jaeger::{Span, Trace};

/// Characters of the time line.
const BAR: usize = 32;

/// Of one line of the waterfall.
struct Row {
    service: String,
    text: String,
    start_us: u64,
    took_us: u64,
    /// Nothing happens meanwhile.
    waits: bool,
    failed: bool,
}

/// The whole waterfall, a line a span; statements only if `statements`.
pub(crate) fn lines(trace: &Trace, statements: bool) -> Vec<String> {
    let shown = |span: &Span| statements || !span.is_statement();
    let (begin, end) = range(trace);
    let rows = rows(trace, shown);
    let service = rows.iter().map(|row| row.service.chars().count()).max().unwrap_or(0).max("service".len());
    let text = rows.iter().map(|row| row.text.chars().count()).max().unwrap_or(0).max("span".len());
    let mut lines =
        vec![format!("{:<service$}  {:<text$}  {:>9}  {:>9}", "service", "span", "at ms", "took ms")];
    for row in rows {
        let padded = format!("{:<text$}", row.text);
        let name = if row.failed { verdict(&padded, false) } else { padded };
        lines.push(format!(
            "{:<service$}  {name}  {:>9}  {:>9}  {}",
            row.service,
            ms(row.start_us - begin),
            ms(row.took_us),
            bar(row.start_us - begin, row.took_us, end - begin, if row.waits { '·' } else { '█' }),
        ));
    }
    lines
}

/// From the first span's begin to the last one's end.
pub(crate) fn range(trace: &Trace) -> (u64, u64) {
    let begin = trace.spans.iter().map(|span| span.start_us).min().unwrap_or(0);
    (begin, trace.spans.iter().map(Span::end_us).max().unwrap_or(begin))
}

pub(crate) fn ms(us: u64) -> String {
    format!("{}.{}", us / 1000, us % 1000 / 100)
}

fn bar(at: u64, took: u64, whole: u64, sign: char) -> String {
    let scaled = |us: u64| (us as usize * BAR).checked_div(whole as usize).unwrap_or(0);
    let begin = scaled(at).min(BAR - 1);
    let end = scaled(at + took).clamp(begin + 1, BAR);
    std::iter::repeat_n(' ', begin).chain(std::iter::repeat_n(sign, end - begin)).collect()
}

/// Depth first, children by when they began. A span whose parent is not there stands at the margin.
fn rows(trace: &Trace, shown: impl Fn(&Span) -> bool) -> Vec<Row> {
    let by_id: BTreeMap<&str, &Span> = trace.spans.iter().map(|span| (span.id.as_str(), span)).collect();
    let parent = |span: &Span| span.parent.as_deref().and_then(|parent| by_id.get(parent)).copied();
    let all_children = trace.children();
    let mut rows = Vec::new();
    // What is to be told next comes last. Traces are not deep, but a loop cannot overflow.
    let mut next: Vec<(&Span, Vec<bool>)> = trace
        .spans
        .iter()
        .rev()
        .filter(|span| parent(span).is_none())
        .map(|span| (span, Vec::new()))
        .collect();
    while let Some((span, last)) = next.pop() {
        if let Some((text, from)) = waited(span, &trace.spans, parent(span)) {
            let text = format!("{}{text}", indent(&last, true));
            let took_us = span.start_us - from;
            rows.push(Row {
                service: String::new(),
                text,
                start_us: from,
                took_us,
                waits: true,
                failed: false,
            });
        }
        rows.push(Row {
            service: span.service.clone(),
            text: format!("{}{}", indent(&last, false), label(span)),
            start_us: span.start_us,
            took_us: span.took_us,
            waits: false,
            failed: span.tags.contains_key("error.type"),
        });
        let children = all_children.get(span.id.as_str()).into_iter().flatten().copied();
        let children: Vec<&Span> = children.filter(|child| shown(child)).collect();
        for (position, child) in children.iter().enumerate().rev() {
            let mut depth = last.clone();
            depth.push(position + 1 == children.len());
            next.push((child, depth));
        }
    }
    rows
}

/// What a span waited for before it began, and since when.
fn waited(span: &Span, all: &[Span], parent: Option<&Span>) -> Option<(&'static str, u64)> {
    let (text, from) = if span.is("send") {
        ("waits in the outbox", parent?.end_us())
    } else if span.is("process") {
        let place = |span: &Span| {
            let tags = ["messaging.destination.partition.id", "messaging.kafka.offset"];
            tags.map(|tag| span.tags.get(tag).cloned())
        };
        let same =
            |sent: &&Span| sent.is("send") && sent.event() == span.event() && place(sent) == place(span);
        ("waits in Kafka", all.iter().find(same)?.end_us())
    } else {
        return None;
    };
    // Known to the consumer before the publisher knew of its ack: no wait.
    (from < span.start_us).then_some((text, from))
}

fn label(span: &Span) -> String {
    let mut text = span.name.clone();
    if let Some(number) = span.tags.get("brew.outbox.attempt").and_then(serde_json::Value::as_i64)
        && number > 1
    {
        text += &format!(" (try {number})");
    }
    if span.tags.get("brew.message.duplicate").and_then(serde_json::Value::as_bool) == Some(true) {
        text += " (duplicate: no effect)";
    }
    if let Some(error) = span.text("error.type") {
        text += &format!(" ✗ {error}");
    }
    text
}

/// The lines of a tree before a span; before what is told ahead of it, it goes on.
fn indent(last: &[bool], ahead: bool) -> String {
    let Some((own, above)) = last.split_last() else { return String::new() };
    let mut text: String = above.iter().map(|last| if *last { "   " } else { "│  " }).collect();
    text += match (ahead, own) {
        (true, _) => "│  ",
        (false, true) => "└─ ",
        (false, false) => "├─ ",
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: &str, name: &str, start_us: u64, took_us: u64) -> Span {
        let operation = name.split(' ').next().unwrap_or_default();
        Span {
            id: id.to_owned(),
            parent: (!parent.is_empty()).then(|| parent.to_owned()),
            service: "shop".to_owned(),
            name: name.to_owned(),
            start_us,
            took_us,
            tags: [("messaging.operation.name".to_owned(), operation.into())].into(),
        }
    }

    #[test]
    fn waits_and_failures_and_duplicates_are_seen() {
        let mut again = span("5", "2", "process orders", 7_500, 500);
        again.tags.insert("brew.message.duplicate".to_owned(), true.into());
        let mut failed = span("4", "2", "process orders", 6_000, 1_000);
        failed.tags.insert("error.type".to_owned(), "deadlock".into());
        let mut statement = span("6", "1", "INSERT orders", 100, 100);
        statement.tags.insert("db.system.name".to_owned(), "postgresql".into());
        let spans = vec![
            span("1", "", "PlaceOrder", 0, 2_000),
            statement,
            span("2", "1", "create orders", 1_000, 1_000),
            span("3", "2", "send orders", 4_000, 1_000),
            failed,
            again,
        ];
        let trace = Trace { id: "a".to_owned(), spans };
        let expected = "\
service  span                                             at ms    took ms
shop     PlaceOrder                                         0.0        2.0  ████████
shop     └─ create orders                                   1.0        1.0      ████
            │  waits in the outbox                          2.0        2.0          ········
shop        ├─ send orders                                  4.0        1.0                  ████
            │  waits in Kafka                               5.0        1.0                      ····
shop        ├─ process orders ✗ deadlock                    6.0        1.0                          ████
            │  waits in Kafka                               5.0        2.5                      ··········
shop        └─ process orders (duplicate: no effect)        7.5        0.5                                ██";
        let told = lines(&trace, false);
        let told: Vec<&str> = told.iter().map(|line| line.trim_end()).collect();
        assert_eq!(told.join("\n"), expected, "{}", told.join("\n"));
        assert!(lines(&trace, true).iter().any(|line| line.contains("├─ INSERT orders")));
    }
}
