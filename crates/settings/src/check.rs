//! Holds loaded settings against the defaults: the same keys, values of the same kind.

use serde_json::{Map, Value};

/// The table that is a pattern for its free-named siblings.
const FREE: &str = "_";

/// Brings `value` to the kinds of `pattern` (the environment has only texts) and returns every misfit.
pub(crate) fn conform(pattern: &Value, value: &mut Value) -> Vec<String> {
    let mut problems = Vec::new();
    walk("", pattern, value, &mut problems);
    problems
}

fn walk(path: &str, pattern: &Value, value: &mut Value, problems: &mut Vec<String>) {
    match (pattern, &mut *value) {
        (Value::Object(known), Value::Object(given)) => {
            if let Some(free) = known.get(FREE) {
                free_tables(path, free, given, problems);
            } else {
                table(path, known, given, problems);
            }
        }
        (_, given) => match coerce(pattern, given) {
            Some(fitting) => *given = fitting,
            None => problems.push(format!("`{path}` must be {}", kind(pattern))),
        },
    }
}

fn table(path: &str, known: &Map<String, Value>, given: &mut Map<String, Value>, problems: &mut Vec<String>) {
    for (key, value) in given {
        let here = join(path, key);
        match known.get(key) {
            Some(pattern) => walk(&here, pattern, value, problems),
            None => problems.push(unknown(path, key, known.keys())),
        }
    }
}

fn free_tables(path: &str, free: &Value, given: &mut Map<String, Value>, problems: &mut Vec<String>) {
    given.remove(FREE);
    for (key, value) in given {
        let here = join(path, key);
        if let (Value::Object(defaults), Value::Object(table)) = (free, &mut *value) {
            for (name, default) in defaults {
                table.entry(name.clone()).or_insert_with(|| default.clone());
            }
        }
        walk(&here, free, value, problems);
    }
}

fn unknown<'a>(path: &str, key: &str, known: impl Iterator<Item = &'a String>) -> String {
    let here = join(path, key);
    let nearest = known
        .map(|candidate| (strsim::damerau_levenshtein(candidate, key), candidate))
        .min()
        .filter(|(distance, _)| *distance <= 3);
    match nearest {
        Some((_, candidate)) => {
            format!("unknown key `{here}`: did you mean `{}`?", join(path, candidate))
        }
        None => format!("unknown key `{here}`"),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn coerce(pattern: &Value, given: &Value) -> Option<Value> {
    match (pattern, given) {
        (Value::Number(_), Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        (Value::Bool(_), Value::String(text)) => text.trim().parse::<bool>().ok().map(Value::from),
        (Value::Array(_), Value::String(text)) => {
            Some(text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect())
        }
        (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Array(_), Value::Array(_))
        | (Value::String(_), Value::String(_)) => Some(given.clone()),
        (Value::String(_), Value::Number(number)) => Some(Value::from(number.to_string())),
        _ => None,
    }
}

fn kind(pattern: &Value) -> &'static str {
    match pattern {
        Value::Number(_) => "a whole number",
        Value::Bool(_) => "true or false",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table of keys",
        Value::String(_) | Value::Null => "a text",
    }
}
