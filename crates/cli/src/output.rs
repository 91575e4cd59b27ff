//! Standard output for results, standard error for everything else.

use std::{
    fmt::Display,
    io::{IsTerminal, Write},
};

/// One line of result. A reader that has gone away (`brew ... | head`) is no error.
pub(crate) fn line(text: impl Display) {
    let _gone = writeln!(std::io::stdout().lock(), "{text}");
}

/// One line about what is going on.
pub(crate) fn note(text: impl Display) {
    let _gone = writeln!(std::io::stderr().lock(), "{text}");
}

/// `text` in green or red, on a terminal that wants colour.
pub(crate) fn verdict(text: &str, good: bool) -> String {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\u{1b}[{}m{text}\u{1b}[0m", if good { "32" } else { "31" })
    } else {
        text.to_owned()
    }
}
