//! What the trace of an order must look like, whatever happened to the order.

use std::collections::{BTreeMap, BTreeSet};

use events::topic;

use crate::lab;

use super::jaeger::{Span, Trace};

/// What is wrong with the traces of one order; nothing if there is one and it is whole: one root, every parent there,
/// every event sent and processed by each service that reads its topic, every call answered.
pub(crate) fn problems(traces: &[Trace]) -> Vec<String> {
    let trace = match traces {
        [] => return vec!["there is no trace".to_owned()],
        [trace] => trace,
        several => {
            let ids: Vec<&str> = several.iter().map(|trace| trace.id.as_str()).collect();
            return vec![format!("one order is one trace; this has {}: {}", ids.len(), ids.join(", "))];
        }
    };
    let children = trace.children();
    let mut problems = shape(&trace.spans);
    problems.extend(events(&trace.spans, &children));
    problems.extend(calls(&trace.spans, &children));
    problems
}

/// One root, and no orphan.
fn shape(spans: &[Span]) -> Vec<String> {
    let mut problems = Vec::new();
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    let roots: Vec<String> = spans.iter().filter(|span| span.parent.is_none()).map(said).collect();
    if roots.len() != 1 {
        problems.push(format!("a trace has one root; this has {}: {}", roots.len(), roots.join(", ")));
    }
    for span in spans {
        if let Some(parent) = span.parent.as_deref().filter(|parent| !ids.contains(parent)) {
            problems.push(format!("{} is an orphan: its parent {parent} is not there", said(span)));
        }
    }
    problems
}

/// Each event was sent, and processed by everyone whom it concerns.
fn events(spans: &[Span], children: &BTreeMap<&str, Vec<&Span>>) -> Vec<String> {
    let mut problems = Vec::new();
    let created = || spans.iter().filter(|span| span.is("create"));
    if !created().any(|span| topic_of(span) == topic::ORDERS) {
        problems.push(format!("no span has created an event for {}", topic::ORDERS));
    }
    for created in created() {
        // A dead letter goes to another topic.
        let of_event = |span: &&&Span| span.event() == created.event() && topic_of(span) == topic_of(created);
        let children = || children.get(created.id.as_str()).into_iter().flatten().filter(of_event);
        if !children().any(|span| span.is("send")) {
            problems.push(format!("missing service: nobody has sent what {} wrote", said(created)));
        }
        let readers = lab::CONSUMERS.iter().filter(|(topic, _)| *topic == topic_of(created));
        for (_, reader) in readers {
            if !children().any(|span| span.is("process") && span.service == *reader) {
                problems.push(format!(
                    "missing service: {reader} has not processed what {} wrote",
                    said(created)
                ));
            }
        }
    }
    problems
}

/// Each HTTP call was answered by somebody who is in the trace, too.
fn calls(spans: &[Span], children: &BTreeMap<&str, Vec<&Span>>) -> Vec<String> {
    let client = |span: &&Span| {
        span.text("span.kind") == Some("client")
            && span.tags.contains_key("http.request.method")
            // Who hung up or never answered has no span to show.
            && span.tags.contains_key("http.response.status_code")
    };
    let unanswered = spans.iter().filter(client).filter(|span| !children.contains_key(span.id.as_str()));
    unanswered.map(|span| format!("missing service: nobody has served {}", said(span))).collect()
}

fn topic_of(span: &Span) -> &str {
    span.text("messaging.destination.name").unwrap_or_default()
}

fn said(span: &Span) -> String {
    format!("`{}` of {} ({})", span.name, span.service, span.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: &str, service: &str, name: &str) -> Span {
        let (operation, topic) = name.split_once(' ').unwrap_or((name, ""));
        let tags = [
            ("messaging.operation.name", operation),
            ("messaging.destination.name", topic),
            ("messaging.message.id", "event"),
        ];
        Span {
            id: id.to_owned(),
            parent: (!parent.is_empty()).then(|| parent.to_owned()),
            service: service.to_owned(),
            name: name.to_owned(),
            start_us: 0,
            took_us: 1,
            tags: tags.map(|(key, value)| (key.to_owned(), value.into())).into(),
        }
    }

    fn whole() -> Trace {
        let spans = vec![
            span("1", "", "order-service", "PlaceOrder"),
            span("2", "1", "order-service", "create brew.orders.v1"),
            span("3", "2", "outbox-publisher", "send brew.orders.v1"),
            span("4", "2", "inventory-service", "process brew.orders.v1"),
            span("5", "2", "payment-service", "process brew.orders.v1"),
        ];
        Trace { id: "a".to_owned(), spans }
    }

    #[test]
    fn a_whole_trace_is_well() {
        assert_eq!(problems(&[whole()]), [""; 0]);
    }

    #[test]
    fn no_trace_and_two_are_wrong() {
        assert!(problems(&[])[0].contains("no trace"));
        assert!(problems(&[whole(), whole()])[0].contains("this has 2"));
    }

    #[test]
    fn a_second_root_and_an_orphan_are_named() {
        let mut trace = whole();
        trace.spans.push(span("6", "", "payment-service", "lost"));
        trace.spans.push(span("7", "99", "payment-gateway", "POST"));
        let found = problems(&[trace]);
        assert!(
            found[0].contains("this has 2") && found[0].contains("`lost` of payment-service"),
            "{found:?}"
        );
        assert!(found[1].contains("`POST` of payment-gateway (7) is an orphan"), "{found:?}");
    }

    #[test]
    fn each_service_that_is_missing_is_named() {
        for (without, said) in
            [("3", "nobody has sent"), ("4", "inventory-service has not"), ("5", "payment-service has not")]
        {
            let mut trace = whole();
            trace.spans.retain(|span| span.id != without);
            let found = problems(&[trace]);
            assert!(found.len() == 1 && found[0].contains(said), "{without}: {found:?}");
        }
        let mut trace = whole();
        let mut call = span("6", "5", "payment-service", "POST /v1/charges");
        let tags = [("span.kind", "client".into()), ("http.request.method", "POST".into())];
        call.tags = tags.map(|(key, value)| (key.to_owned(), value)).into();
        trace.spans.push(call.clone());
        assert_eq!(problems(&[trace.clone()]), [""; 0], "a call that was never answered");
        call.id = "7".to_owned();
        call.tags.insert("http.response.status_code".to_owned(), 200.into());
        trace.spans.push(call);
        assert!(problems(&[trace])[0].contains("nobody has served `POST /v1/charges`"));
    }
}
