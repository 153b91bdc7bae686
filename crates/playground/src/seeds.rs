//! Runs with many seeds, one at a time, and their statistics.

use std::ops::ControlFlow;

use airtcp_numbers::statistics::Mean;
use airtcp_numbers::verdict::Comparison;
use airtcp_report::html::chart::{Chart, Interval, Sender};
use airtcp_sim::run;
use serde_json::{Value, json};

use crate::request::CheckedSetup;
use crate::run::ProgressReporter;
use crate::{Limits, OnProgress, Trouble};

/// Returns the goodput of one sender in bit/s. The seed of the run is the setup's plus `seed_offset`.
pub(crate) fn goodput(
    checked: &CheckedSetup,
    sender: usize,
    seed_offset: u64,
    limits: Limits,
    progress: OnProgress<'_>,
) -> Result<f64, Vec<Trouble>> {
    let plan = checked
        .with_senders(&[sender])?
        .run(checked.scenario.clone(), checked.seed.wrapping_add(seed_offset));
    let mut reporter = ProgressReporter::new(plan.until, progress);
    let result = run::run_stoppable(
        &plan,
        |world| world.limit_memory(limits.packets, limits.records),
        |world| {
            reporter.step(world);
            ControlFlow::Continue(())
        },
    );
    let (report, _) = result.map_err(|error| vec![Trouble::new("run", 0, error)])?;
    Ok(report.flows.first().map_or(0.0, |flow| flow.goodput_bit_per_s))
}

/// Returns the mean of each sender with its interval, its gain over the first sender (runs with the same seed
/// form pairs), and the report's chart of these numbers.
pub(crate) fn compare(names: &[String], goodputs: &[Vec<f64>]) -> Value {
    let first = goodputs.first().zip(names.first());
    let compared: Vec<_> = names
        .iter()
        .zip(goodputs)
        .enumerate()
        .map(|(index, (name, values))| {
            let against = first.filter(|_| index > 0).map(|(first, than)| {
                let pairs = values.len().min(first.len());
                (Comparison::of(&values[..pairs], &first[..pairs]), than)
            });
            (name, values, against)
        })
        .collect();
    let interval = |mean: Mean, scale: f64| Interval {
        mean: mean.mean * scale,
        half_width: mean.half_width.map(|half| half * scale),
    };
    let senders = compared.iter().map(|(name, values, against)| Sender {
        name: (*name).clone(),
        goodput: Mean::of(values).map(|mean| interval(mean, 1e-3)),
        transfers: values.iter().map(|value| value / 1e3).collect(),
        gain: against.as_ref().and_then(|(compared, _)| compared.gain).map(|gain| interval(gain, 100.0)),
        verdict: against.as_ref().map(|(compared, _)| compared.verdict.to_string()).unwrap_or_default(),
        ..Sender::default()
    });
    let chart = Chart { against: names.first().cloned().unwrap_or_default(), senders: senders.collect() };
    let row = |(name, values, against): &(&String, &Vec<f64>, Option<(Comparison, &String)>)| {
        let against = against.as_ref().map(
            |(compared, than)| json!({ "gain": compared.gain, "sentence": compared.sentence(name, than) }),
        );
        json!({ "name": name, "goodput": Mean::of(values), "against": against })
    };
    json!({ "chart": chart.html(), "senders": compared.iter().map(row).collect::<Vec<_>>() })
}
