//! How far the topics have come.

use std::process::ExitCode;

use anyhow::bail;
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use serde_json::json;

use crate::{
    lab,
    local::{Profile, State},
    output::line,
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
    let Some(state) = State::load(&args.profile)? else {
        bail!("Postgres and Kafka do not run; `make up` starts them");
    };
    let mut ends = Vec::new();
    for spec in lab::topic_specs() {
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
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let numbers = (0..partitions).map(|number| number.to_string());
    table.set_header(std::iter::once("topic".to_owned()).chain(numbers).chain(["in all".to_owned()]));
    for (topic, ends) in ends {
        let counts = ends.iter().chain([&ends.iter().sum()]).map(i64::to_string).collect::<Vec<_>>();
        table.add_row(std::iter::once(topic.clone()).chain(counts));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    line(table);
}
