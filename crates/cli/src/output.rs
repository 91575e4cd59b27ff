//! Standard output for results, standard error for everything else.

use std::{
    fmt::Display,
    io::{IsTerminal, Write},
};

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};

/// One line of result. A reader that has gone away (`brew ... | head`) is no error.
pub(crate) fn line(text: impl Display) {
    let _gone = writeln!(std::io::stdout().lock(), "{text}");
}

/// One line about what is going on.
pub(crate) fn note(text: impl Display) {
    let _gone = writeln!(std::io::stderr().lock(), "{text}");
}

/// An empty table in the house's style.
pub(crate) fn table() -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table
}

/// Sets all but the first column to the right, as numbers are read.
pub(crate) fn align_numbers(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// `text` in green or red, on a terminal that wants colour.
pub(crate) fn verdict(text: &str, good: bool) -> String {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\u{1b}[{}m{text}\u{1b}[0m", if good { "32" } else { "31" })
    } else {
        text.to_owned()
    }
}
