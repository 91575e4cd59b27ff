//! Rules about files: length, first line, forbidden words, forbidden imports.

use std::path::{Path, PathBuf};

use anyhow::Context;

const MAX_FILE: usize = 400;
const MAX_MAIN: usize = 60;
const MAX_COLUMNS: usize = 120;

/// A text that must not stand in files whose path contains one of `inside` (empty: anywhere).
struct Forbidden {
    text: &'static str,
    inside: &'static [&'static str],
    except: &'static [&'static str],
    why: &'static str,
}

const FORBIDDEN: [Forbidden; 12] = [
    Forbidden {
        text: "rdkafka::",
        inside: &[],
        except: &["crates/messaging/", "xtask/"],
        why: "only `messaging` may name rdkafka",
    },
    Forbidden {
        text: "sleep(",
        inside: &["/tests/"],
        except: &[],
        why: "poll for the condition with testkit::until instead of waiting for a time",
    },
    Forbidden {
        text: "#[ignore",
        inside: &["/tests/", "/src/"],
        except: &["xtask/"],
        why: "a test that is not run is no test",
    },
    Forbidden {
        text: "anyhow",
        inside: &["crates/", "services/"],
        except: &["main.rs", "crates/cli/", "Cargo.toml"],
        why: "one typed error per crate; anyhow in binaries only",
    },
    Forbidden { text: "async fn", inside: &["/src/domain/"], except: &[], why: "domain is pure: no async" },
    Forbidden { text: "sea_orm", inside: &["/src/domain/"], except: &[], why: "domain is pure: no database" },
    Forbidden { text: "tonic", inside: &["/src/domain/"], except: &[], why: "domain is pure: no network" },
    Forbidden { text: "tracing", inside: &["/src/domain/"], except: &[], why: "domain is pure: no logs" },
    Forbidden {
        text: "\"brew.orders",
        inside: &["/src/"],
        except: &["crates/events/", "crates/proto/", "xtask/"],
        why: "topic names stand in `events::topic`",
    },
    Forbidden {
        text: "\"brew.inventory",
        inside: &["/src/"],
        except: &["crates/events/", "crates/proto/", "xtask/"],
        why: "topic names stand in `events::topic`",
    },
    Forbidden {
        text: "TODO",
        inside: &[],
        except: &["xtask/"],
        why: "finish it, or write it down where it is found",
    },
    Forbidden {
        text: "FIXME",
        inside: &[],
        except: &["xtask/"],
        why: "finish it, or write it down where it is found",
    },
];

pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["crates", "services", "xtask", "proto"] {
        collect(&root.join(folder), &mut files)?;
    }
    let mut complaints = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        if path.ends_with(".rs") {
            check_rust(&path, &text, &mut complaints);
        }
        if path.ends_with("Cargo.toml") {
            check_manifest(&path, &text, &mut complaints);
        }
        if path.ends_with(".sql") {
            check_migration(&file, &path, &mut complaints);
        }
    }
    Ok(complaints)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

fn check_rust(path: &str, text: &str, complaints: &mut Vec<String>) {
    let count = text.lines().count();
    if !text.starts_with("//!") {
        complaints.push(format!("{path}: begin with a `//!` line that says what the file is for"));
    }
    if count > MAX_FILE {
        complaints.push(format!("{path}: {count} lines, at most {MAX_FILE}: split it by job"));
    }
    if path.ends_with("src/main.rs") && count >= MAX_MAIN {
        complaints.push(format!("{path}: {count} lines, fewer than {MAX_MAIN}: move work to the library"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if line.chars().count() > MAX_COLUMNS {
            complaints.push(format!("{path}:{number}: longer than {MAX_COLUMNS} columns"));
        }
        for rule in &FORBIDDEN {
            let inside = rule.inside.is_empty() || rule.inside.iter().any(|part| path.contains(part));
            let except = rule.except.iter().any(|part| path.contains(part));
            if inside && !except && line.contains(rule.text) {
                complaints.push(format!("{path}:{number}: `{}`: {}", rule.text, rule.why));
            }
        }
    }
}

fn check_manifest(path: &str, text: &str, complaints: &mut Vec<String>) {
    if !text.contains("[lints]\nworkspace = true") {
        complaints.push(format!("{path}: say `[lints] workspace = true`"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        let versioned = line.contains("version = \"") && !line.starts_with("version");
        if versioned || line.contains("= \"^") || line.contains("git = ") {
            complaints.push(format!("{path}:{number}: versions stand in the root manifest"));
        }
    }
}

/// Each migration has a way back.
fn check_migration(file: &Path, path: &str, complaints: &mut Vec<String>) {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(stem) = name.strip_suffix(".up.sql")
        && !file.with_file_name(format!("{stem}.down.sql")).exists()
    {
        complaints.push(format!("{path}: there is no {stem}.down.sql"));
    }
}
