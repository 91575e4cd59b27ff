//! Which room may know which (ARCHITECTURE.md, "The arrows"), and what every manifest must say.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, Package};

/// Left knows right. A room that is not here knows nothing of ours.
const ARROWS: [(&str, &[&str]); 10] = [
    ("database", &["telemetry"]),
    ("events", &["proto"]),
    ("runtime", &["telemetry"]),
    ("outbox", &["database", "events", "telemetry"]),
    ("inbox", &["database", "events", "telemetry"]),
    ("messaging", &["events", "telemetry"]),
    ("relay", &["events", "messaging", "outbox", "runtime", "telemetry"]),
    ("cli", &["events", "inbox", "messaging", "outbox", "proto", "relay", "settings", "telemetry"]),
    ("testkit", &["database", "events", "inbox", "messaging", "outbox", "relay", "runtime", "telemetry"]),
    ("xtask", &[]),
];

pub(crate) fn check(metadata: &Metadata) -> Vec<String> {
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    metadata.packages.iter().flat_map(|package| check_package(package, &ours)).collect()
}

fn check_package(package: &Package, ours: &BTreeSet<&str>) -> Vec<String> {
    let name = package.name.as_str();
    let path = package.manifest_path.as_str();
    let folder = package.manifest_path.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
    let mut complaints = Vec::new();
    if folder != name {
        complaints.push(format!("{path}: the package is `{name}`, its folder `{folder}`: name them alike"));
    }
    let service = path.contains("/services/");
    let allowed = ARROWS.iter().find(|(from, _)| *from == name).map_or(&[][..], |(_, to)| to);
    for dependency in &package.dependencies {
        let to = dependency.name.as_str();
        if to == "rdkafka" && name != "messaging" {
            complaints.push(format!("{path}: only `messaging` may name rdkafka"));
        }
        if !ours.contains(to) || dependency.kind == DependencyKind::Development {
            continue;
        }
        let may =
            if service { !is_service(to) && to != "testkit" && to != "cli" } else { allowed.contains(&to) };
        if !may {
            complaints.push(format!("{path}: `{name}` must not know `{to}` (ARCHITECTURE.md, The arrows)"));
        }
    }
    complaints
}

fn is_service(name: &str) -> bool {
    name.ends_with("-service") || name == "outbox-publisher" || name == "payment-gateway"
}
