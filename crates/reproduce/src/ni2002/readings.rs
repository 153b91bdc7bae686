//! Details of the set-up that §4.1 leaves open: which of the error models and which of the source rates a figure uses.

use airlink::scenario::{StageConfig, StageSettings};
use airlink::settings::Directions;
use airlink::stages::loss::LossConfig;
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;
use airwire::units::Probability;

use super::setting::{Bad, good_to_bad};
use crate::reading::{Factor, Repetitions, Value};

/// Figs. 8 to 11 are single transfers. §4.2.1 repeats other experiments five times.
pub(super) const REPETITIONS: Repetitions = Repetitions { chosen: 1, others: &[5] };

pub(crate) static FACTORS: [Factor; 2] = [
    Factor {
        name: "the error model",
        chosen: "as in the figure",
        others: &[
            Value { name: "uniform", apply: |run| change_loss(run, uniform) },
            Value { name: "two-state", apply: |run| change_loss(run, two_state) },
        ],
    },
    Factor {
        name: "the rate of the sources",
        chosen: "as in the figure",
        others: &[
            Value { name: "160 kbit/s", apply: |run| change_sources(run, &[(5, "160kbit")]) },
            Value { name: "200 kbit/s", apply: |run| change_sources(run, &[(5, "200kbit")]) },
            Value { name: "300 kbit/s", apply: |run| change_sources(run, &[(5, "300kbit")]) },
            Value {
                name: "300, 160 and 200 kbit/s",
                apply: |run| change_sources(run, &[(2, "300kbit"), (2, "160kbit"), (1, "200kbit")]),
            },
        ],
    },
];

fn change_loss(run: &mut Run, to: fn(f64) -> LossConfig) -> Result<(), WorldError> {
    for StageSettings { config, .. } in &mut run.scenario.stages {
        if let StageConfig::Loss(directions) = config
            && let Some(down) = &mut directions.down
            && let Some(mean) = mean_loss(down)
        {
            *down = to(mean);
        }
    }
    Ok(())
}

/// The mean loss rate of the two models of this paper.
fn mean_loss(config: &LossConfig) -> Option<f64> {
    let value = |probability: Option<Probability>| probability.map(Probability::value);
    if let Some(per) = value(config.per) {
        return Some(per);
    }
    let (begins, ends) = (value(config.good_to_bad)?, value(config.bad_to_good)?);
    Some(value(config.bad)? * begins / (begins + ends))
}

fn uniform(mean: f64) -> LossConfig {
    LossConfig::uniform(Probability::new(mean))
}

fn two_state(mean: f64) -> LossConfig {
    let Bad { loss, ends } = Bad::CHOSEN;
    let [loss, begins, ends] = [loss, good_to_bad(mean, Bad::CHOSEN), ends].map(Probability::new);
    LossConfig::gilbert_elliott(Probability::ZERO, loss, begins, ends)
}

/// Replaces each group of sources by groups with these numbers of sources and rates.
fn change_sources(run: &mut Run, groups: &[(u32, &str)]) -> Result<(), WorldError> {
    let mut stages = Vec::new();
    for stage in std::mem::take(&mut run.scenario.stages) {
        let StageConfig::Traffic(Directions { down: Some(_), .. }) = &stage.config else {
            stages.push(stage);
            continue;
        };
        for (index, (sources, rate)) in groups.iter().enumerate() {
            let mut group = stage.clone();
            if index > 0 {
                group.name = format!("{}-{rate}", stage.name);
            }
            if let StageConfig::Traffic(Directions { down: Some(down), .. }) = &mut group.config {
                down.sources = *sources;
                down.rate = rate.parse().expect("the rates above are valid");
            }
            stages.push(group);
        }
    }
    run.scenario.stages = stages;
    Ok(())
}
