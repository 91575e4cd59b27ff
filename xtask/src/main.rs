//! `cargo xtask tidy`: the house rules that a machine can hold. Each complaint names a file and what to do.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for a terminal")]

mod arrows;
mod files;

use std::process::ExitCode;

use anyhow::Context;
use cargo_metadata::MetadataCommand;

fn main() -> anyhow::Result<ExitCode> {
    let verb = std::env::args().nth(1);
    if verb.as_deref() != Some("tidy") {
        eprintln!("usage: cargo xtask tidy");
        return Ok(ExitCode::from(2));
    }
    let metadata = MetadataCommand::new().no_deps().exec().context("read the workspace")?;
    let root = metadata.workspace_root.as_std_path();
    let mut complaints = arrows::check(&metadata);
    complaints.extend(files::check(root)?);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        println!("tidy: {} packages are in order", metadata.packages.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} complaint(s)", complaints.len());
    Ok(ExitCode::FAILURE)
}
