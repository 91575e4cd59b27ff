//! The table of spans in docs/telemetry.md.

/// Fails unless the table has the span `name`, by what it is, with each of its attributes `keys`; `operation` is its
/// `messaging.operation.name`, if it has one.
///
/// # Panics
/// When it has not.
pub fn span_in_docs(name: &str, operation: Option<&str>, keys: &[&str]) {
    let docs = include_str!("../../../docs/telemetry.md");
    let row = match operation {
        Some(operation) => format!("| `{operation} {{topic}}` |"),
        None if keys.contains(&"rpc.method") => "| `{rpc.method}` |".to_owned(),
        None if keys.contains(&"db.system.name") => "| `{operation} {table}` |".to_owned(),
        None if keys.contains(&"http.request.method") => "| `{method} {path}` |".to_owned(),
        None => format!("| `{name}` |"),
    };
    let line = docs.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("no {row}"));
    for key in keys {
        assert!(line.contains(&format!("`{key}`")), "docs/telemetry.md has no {key} in {row}");
    }
}
