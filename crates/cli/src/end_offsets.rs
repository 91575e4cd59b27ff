//! How far the topics have come.

use std::process::ExitCode;

use serde_json::json;

use crate::{
    lab,
    local::{Profile, State},
    output::{align_numbers, line, table},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    profile: Profile,
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let state = State::running(&args.profile)?;
    let mut ends = Vec::new();
    for spec in lab::topic_specs(1) {
        let partitions = lab::end_offsets(&state, &spec.name).await?;
        ends.push((spec.name, partitions));
    }
    if args.json {
        let all: Vec<_> =
            ends.iter().map(|(topic, ends)| json!({"topic": topic, "end_offsets": ends})).collect();
        line(serde_json::to_string_pretty(&all)?);
    } else {
        show(&ends);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(ends: &[(String, Vec<i64>)]) {
    let partitions = ends.iter().map(|(_, ends)| ends.len()).max().unwrap_or_default();
    let mut table = table();
    let numbers = (0..partitions).map(|number| number.to_string());
    table.set_header(std::iter::once("topic".to_owned()).chain(numbers).chain(["in all".to_owned()]));
    for (topic, ends) in ends {
        let counts = ends.iter().chain([&ends.iter().sum()]).map(i64::to_string).collect::<Vec<_>>();
        table.add_row(std::iter::once(topic.clone()).chain(counts));
    }
    align_numbers(&mut table);
    line(table);
}
