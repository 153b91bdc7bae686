//! Figs. 8 to 11: transfer of one file of 100 kB at a loss rate of 2 %.

use airtcp_numbers::statistics::{gains, ratios};
use airtcp_sim::world::{Length, WorldError};

use super::readings::REPETITIONS;
use super::setting::{
    InitialState, Loss, MSS, Place, SECONDS, Setting, Sources, Topology, VARIANTS, percent,
};
use super::traces;
use crate::judge::{across, of_repetitions};
use crate::{At, Claim, Effort, Finding, Judged, Table, cell, claim, mean};

/// Length of the file, in packets of 1000 bytes.
const FILE: u64 = 100;
const PER: f64 = 0.02;
/// "around 1.8 times shorter".
const STATED_RATIO: f64 = 1.8;
/// "about 6 seconds".
const STATED_SECONDS: f64 = 6.0;

/// §4.1 names three rates of the sources and two error models. The claims are judged by the first case.
const CASES: [(&str, Place); 7] = [
    ("200 kbit/s, uniform loss", congested(Loss::Uniform(PER), Sources::at(200))),
    ("200 kbit/s, two-state loss", congested(Loss::two_state(PER), Sources::at(200))),
    ("160 kbit/s, uniform loss", congested(Loss::Uniform(PER), Sources::at(160))),
    ("300 kbit/s, uniform loss", congested(Loss::Uniform(PER), Sources::at(300))),
    (
        "200 kbit/s, uniform loss, sources initially on",
        congested(Loss::Uniform(PER), Sources { initial_state: InitialState::On, ..Sources::at(200) }),
    ),
    (
        "300 kbit/s, uniform loss, sources initially on",
        congested(Loss::Uniform(PER), Sources { initial_state: InitialState::On, ..Sources::at(300) }),
    ),
    ("none, uniform loss", Place::new(Topology::LastHop, Loss::Uniform(PER))),
];

const fn congested(loss: Loss, sources: Sources) -> Place {
    Place { sources, ..Place::new(Topology::Congestion, loss) }
}

/// Transfer times of the file in one case, in seconds, by seed.
struct TransferTimes<'a> {
    tahoe: &'a [f64],
    reno: &'a [f64],
    newreno: &'a [f64],
    sack: &'a [f64],
}

impl<'a> TransferTimes<'a> {
    fn of(samples: &'a [Vec<f64>]) -> Option<Self> {
        let [tahoe, reno, newreno, sack] = samples else { return None };
        Some(Self { tahoe, reno, newreno, sack })
    }

    /// The mean of Tahoe and Reno.
    fn older(&self) -> Vec<f64> {
        across(&[self.tahoe.to_vec(), self.reno.to_vec()])
    }

    /// The mean of NewReno and SACK.
    fn newer(&self) -> Vec<f64> {
        across(&[self.newreno.to_vec(), self.sack.to_vec()])
    }

    /// Both numbers of the paper's sentence.
    fn numbers(&self, repetitions: u32) -> Judged {
        let six = [self.newreno, self.sack].map(|seconds| {
            Judged::number(&mean(seconds), STATED_SECONDS, of_repetitions(seconds, repetitions))
        });
        Judged::all(six.into_iter().chain([self.ratio(repetitions)]))
    }

    /// The tolerance is the variation of a pair of runs and not of single runs: all four runs of the paper met the same
    /// traffic, because ns-2 uses the same random numbers in each run by default.
    fn ratio(&self, repetitions: u32) -> Judged {
        let excess: Vec<f64> = self.ratios().iter().map(|ratio| ratio - 1.0).collect();
        Judged::effect(&mean(&excess), STATED_RATIO - 1.0, of_repetitions(&excess, repetitions))
    }

    fn ratios(&self) -> Vec<f64> {
        ratios(&self.older(), &self.newer())
    }

    fn larger(&self) -> Judged {
        Judged::better(&mean(&gains(&self.older(), &self.newer())))
    }
}

pub(super) fn figures_8_to_11(effort: &Effort) -> Result<Finding, WorldError> {
    let mut points = Vec::new();
    for (_, place) in &CASES {
        for variant in VARIANTS {
            let setting = Setting::new(place, variant.recipe())?;
            points.push(Setting { length: Length::Octets(FILE * u64::from(MSS)), ..setting });
        }
    }
    let samples = effort.sample_named(
        "time, s",
        &points,
        |setting, seed| setting.run(seed),
        // An incomplete transfer takes at least the whole run.
        |_, report| report.flows[0].took_seconds.unwrap_or(SECONDS as f64),
    )?;

    let mut table = Table::new(
        "Time in seconds to transfer 100 kB at 2 % loss, by cross traffic (rate of each of five sources) and \
         error model",
        &[
            "cross traffic",
            "Tahoe",
            "Reno",
            "NewReno",
            "SACK",
            "ratio older / newer",
            "6 s and 1.8 times",
            "newer are faster",
        ],
    );
    let mut cases = Vec::new();
    for ((name, _), samples) in CASES.iter().zip(samples.chunks(VARIANTS.len())) {
        let Some(times) = TransferTimes::of(samples) else { continue };
        let mut row = vec![(*name).to_owned()];
        row.extend(samples.iter().map(|times| cell(times, 2)));
        row.push(cell(&times.ratios(), 2));
        row.extend([times.numbers(REPETITIONS.chosen).name().to_owned(), times.larger().name().to_owned()]);
        table.row(row);
        cases.push(times);
    }
    let Some(first) = cases.first() else { return Ok(Finding::default()) };
    let mut charts = Vec::new();
    for (figure, (variant, setting)) in (8..).zip(VARIANTS.iter().zip(&points)) {
        charts.push(traces::sequence(
            &format!("Fig. {figure}: congestion & wireless loss, last-hop ({variant})"),
            setting,
        )?);
    }
    Ok(Finding {
        charts,
        tables: vec![table],
        claims: vec![six_seconds(first), larger(first)],
        remarks: vec![remark(first)],
        ..Finding::default()
    })
}

fn six_seconds(times: &TransferTimes<'_>) -> Claim {
    claim(
        At("§4.2.2, Figs. 8 to 11"),
        "“The transmission time of SACK and NewReno is about 6 seconds when PER=2%, which is around 1.8 \
         times shorter than those of Reno and Tahoe versions.”",
        format!(
            "SACK takes {} s and NewReno {} s; 95 % of single runs are within {:.1} s and {:.1} s of these. \
             Tahoe and Reno take {} times as long; 95 % of pairs are within {:.2} of this (1.8 times: {}).",
            cell(times.sack, 2),
            cell(times.newreno, 2),
            of_repetitions(times.sack, 1),
            of_repetitions(times.newreno, 1),
            cell(&times.ratios(), 2),
            of_repetitions(&times.ratios(), 1),
            times.ratio(REPETITIONS.chosen).name()
        ),
        times.numbers(REPETITIONS.chosen),
    )
    .repeated(REPETITIONS, |repetitions| times.numbers(repetitions))
}

fn larger(times: &TransferTimes<'_>) -> Claim {
    claim(
        At("§4.2.2, Figs. 8 to 11"),
        "“So the throughputs of SACK and NewReno are larger than those of Reno and Tahoe.”",
        format!(
            "Tahoe and Reno take {} % longer than NewReno and SACK.",
            percent(&gains(&times.older(), &times.newer()), 1)
        ),
        times.larger(),
    )
}

/// The variation of single runs, because the paper shows one run of each version.
fn remark(times: &TransferTimes<'_>) -> String {
    let (older, newer) = (times.older(), times.newer());
    let single: Vec<_> = older.iter().zip(&newer).map(|(older, newer)| older / newer).collect();
    let as_large = single.iter().filter(|ratio| **ratio >= STATED_RATIO).count();
    let reversed = single.iter().filter(|ratio| **ratio < 1.0).count();
    let extreme = |of: fn(f64, f64) -> f64| newer.iter().copied().reduce(of).unwrap_or(f64::NAN);
    format!(
        "The paper shows one run of each version, but single runs vary widely. The mean of NewReno and SACK \
         was {:.1} to {:.1} s here. The ratio older / newer was 1.8 or more in {as_large} of {} pairs, and \
         the older versions were faster in {reversed} pairs. ns-2.35 yields ratios of 1.07 to 1.28 with 200 \
         kbit/s per source.",
        extreme(f64::min),
        extreme(f64::max),
        single.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six seconds and 1.8 times are two numbers: one alone does not meet the sentence.
    #[test]
    fn transfer_time_claim_requires_both_numbers() {
        let six = [5.5, 6.0, 6.5, 5.8, 6.2];
        let [longer, same] = [1.8, 1.0].map(|factor| six.map(|times| factor * times));
        let of = |older: &[f64; 5], newer: &[f64; 5]| {
            let samples = [older, older, newer, newer].map(|times| times.to_vec());
            TransferTimes::of(&samples).map(|times| times.numbers(1))
        };
        assert_eq!(of(&longer, &six), Some(Judged::Holds));
        assert_eq!(of(&same, &six), Some(Judged::DoesNotHold), "the times are equal, not 1.8 times as long");
        let [nine, five] = [longer.map(|times| 2.0 * times), longer.map(|times| times / 0.9)];
        assert_eq!(of(&nine, &five), Some(Judged::DoesNotHold), "12 s instead of 6 s");
    }
}
