//! The figures as a picture: each drain over time, and latency towards its tail.

use std::path::Path;

use plotters::prelude::*;

use super::{drain::Sample, report::Figures};

const SIZE: (u32, u32) = (900, 900);

/// Draws into an SVG file.
pub(crate) fn draw(figures: &Figures, file: &Path) -> anyhow::Result<()> {
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(SIZE.1 / 2);
    drains(figures, &above)?;
    latencies(figures, &below)?;
    root.present()?;
    Ok(())
}

type Area<'f> = DrawingArea<SVGBackend<'f>, plotters::coord::Shift>;

fn drains(figures: &Figures, area: &Area<'_>) -> anyhow::Result<()> {
    let Some(rates) = &figures.rates else { return Ok(()) };
    let rounds = rates.drain.figures.iter().flat_map(|drained| &drained.rounds);
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = (1..)
        .zip(rounds)
        .map(|(number, round)| (format!("drain {number}"), rate_over_time(&round.samples)))
        .collect();
    let ceilings = [("fetch and mark", &rates.fetch_and_mark), ("produce", &rates.produce)];
    let end = highest(&lines, |(seconds, _)| *seconds);
    for (name, spans) in ceilings {
        let best = spans.iter().map(super::meter::Span::rate).fold(0.0, f64::max);
        lines.push((format!("ceiling: {name}"), vec![(0.0, best), (end, best)]));
    }
    let mut chart = ChartBuilder::on(area)
        .caption("events/s while a backlog is drained", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..end, 0.0..highest(&lines, |(_, rate)| *rate) * 1.05)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_desc("seconds")
        .y_desc("events/s")
        .y_label_formatter(&|rate: &f64| format!("{rate:.0}"))
        .draw()?;
    legend(&mut chart, &lines)
}

/// Rates between samples, each at the end of its time.
fn rate_over_time(samples: &[Sample]) -> Vec<(f64, f64)> {
    samples
        .windows(2)
        .filter_map(|pair| {
            let [from, to] = pair else { return None };
            let seconds = to.seconds - from.seconds;
            (seconds > 0.0).then(|| (to.seconds, (to.events - from.events) as f64 / seconds))
        })
        .collect()
}

fn latencies(figures: &Figures, area: &Area<'_>) -> anyhow::Result<()> {
    // Each step to the right is ten times as rare.
    let curve = |(quantile, ms): &(f64, f64)| (-(1.0 - quantile).log10(), *ms);
    let lines: Vec<(String, Vec<(f64, f64)>)> = figures
        .latency
        .iter()
        .filter_map(|latency| latency.figures.as_ref())
        .map(|latency| {
            let with = if latency.notify { "with NOTIFY" } else { "without NOTIFY" };
            (with.to_owned(), latency.curve.iter().map(curve).collect())
        })
        .collect();
    let mut chart = ChartBuilder::on(area)
        .caption("commit to readable in Kafka, open loop", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..3.5, (0.1..highest(&lines, |(_, ms)| *ms).max(1.0)).log_scale())?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_labels(4)
        .x_desc("so many of 100 were as fast, or faster")
        .y_desc("milliseconds")
        .x_label_formatter(&|rare: &f64| format!("{:.1}", 100.0 * (1.0 - 10_f64.powf(-rare))))
        .draw()?;
    legend(&mut chart, &lines)
}

fn highest(lines: &[(String, Vec<(f64, f64)>)], of: impl Fn(&(f64, f64)) -> f64) -> f64 {
    let highest = lines.iter().flat_map(|(_, points)| points).map(of).fold(0.0, f64::max);
    if highest > 0.0 { highest } else { 1.0 }
}

fn legend<'f, X, Y>(
    chart: &mut ChartContext<'f, SVGBackend<'f>, Cartesian2d<X, Y>>,
    lines: &[(String, Vec<(f64, f64)>)],
) -> anyhow::Result<()>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (number, (name, points)) in lines.iter().enumerate() {
        let colour = Palette99::pick(number).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(())
}
