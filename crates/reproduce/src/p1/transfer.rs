//! Figs. 8 to 11: one file of 100 kB at a loss rate of 2 %.

use airtcp_numbers::statistics::{Mean, gains, ratios};
use airtcp_sim::world::{Length, WorldError};

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, cell};
use super::setting::{CHOICES, Loss, MSS, SECONDS, Setting, Topology, VARIANTS, above_zero, paired};

/// Length of the file, in packets of 1000 octets.
const FILE: u64 = 100;
const PER: f64 = 0.02;
/// "around 1.8 times shorter", and "about 6 seconds".
const RATIO: f64 = 1.8;
const TOOK: f64 = 6.0;

/// A path: five sources of cross traffic at so many kbit/s each, or none, and an error model.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    cross_traffic: Option<u32>,
    loss: Loss,
    ns2: &'static str,
}

/// §4.1 names three rates for the sources, and two error models. The claims are judged by the first case.
const CASES: [Case; 5] = [
    Case {
        name: "200 kbit/s, uniform loss",
        cross_traffic: Some(200),
        loss: Loss::Uniform(PER),
        ns2: "5.8–7.1 s",
    },
    Case {
        name: "200 kbit/s, two-state loss",
        cross_traffic: Some(200),
        loss: Loss::TwoState(PER),
        ns2: "–",
    },
    Case { name: "160 kbit/s, uniform loss", cross_traffic: Some(160), loss: Loss::Uniform(PER), ns2: "–" },
    Case { name: "300 kbit/s, uniform loss", cross_traffic: Some(300), loss: Loss::Uniform(PER), ns2: "–" },
    Case { name: "none, uniform loss", cross_traffic: None, loss: Loss::Uniform(PER), ns2: "2.2–2.8 s" },
];

impl Case {
    fn path(&self) -> String {
        match self.cross_traffic {
            Some(rate) => Topology::Congestion.path(&format!(
                "{}[[stage]]\nname = \"cross-traffic\"\ndown.rate = \"{rate}kbit\"\n",
                self.loss.stage()
            )),
            None => Topology::LastHop.path(&self.loss.stage()),
        }
    }
}

pub(super) fn figures_8_to_11(effort: &Effort) -> Result<Finding, WorldError> {
    let mut points = Vec::new();
    for case in &CASES {
        for variant in VARIANTS {
            let mut setting = Setting::new(&case.path(), variant.recipe())?;
            setting.length = Length::Octets(FILE * u64::from(MSS));
            points.push(setting);
        }
    }
    let samples = effort.sample(
        &points,
        |setting, seed| setting.run(seed),
        // A transfer that is not complete took at least the whole run.
        |_, report| report.flows[0].took_seconds.unwrap_or(SECONDS as f64),
    )?;

    let mut table = Table::new(
        "seconds for 100 kB at 2 %, by cross traffic (five sources) and error model",
        &["cross traffic", "Tahoe", "Reno", "NewReno", "SACK", "older over newer", "ns-2, the four"],
    );
    let mut compared = Vec::new();
    for (case, took) in CASES.iter().zip(samples.chunks(VARIANTS.len())) {
        let [tahoe, reno, newreno, sack] = took else { continue };
        let older = paired(tahoe, reno, f64::midpoint);
        let newer = paired(newreno, sack, f64::midpoint);
        let mut row = vec![case.name.to_owned()];
        row.extend(took.iter().map(|took| cell(took, 2)));
        row.push(cell(&ratios(&older, &newer), 2));
        row.push(case.ns2.to_owned());
        table.row(row);
        compared.push((older, newer));
    }
    let Some((older, newer)) = compared.first() else { return Ok(Finding::default()) };
    Ok(Finding {
charts: Vec::new(),
        tables: vec![table],
        claims: vec![about_six_seconds(newer), shorter(older, newer), how_much_shorter(older, newer)],
        choices: CHOICES
            .map(str::to_owned)
            .into_iter()
            .chain([
                Topology::Congestion.choice(),
                "The captions say congestion and wireless loss over a last hop, but not the rate of the cross traffic nor the error model: the claims are judged with 200 kbit/s a source and uniform loss; the other cases stand beside. The file begins when the sources do.".to_owned(),
                "100 kB are 100 packets of 1000 octets. A time is from the SYN to the last octet at the receiver. \"Older\" is the mean of Tahoe and Reno, \"newer\" that of NewReno and SACK with the same seed.".to_owned(),
            ])
            .collect(),
        remarks: vec![remark(older, newer)],
    })
}

fn about_six_seconds(newer: &[f64]) -> Claim {
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "\"The transmission time of SACK and NewReno is about 6 seconds when PER=2%\" (within 10 %)"
            .to_owned(),
        ours: format!("{} s", cell(newer, 2)),
        judged: within(newer, TOOK, 0.1 * TOOK),
    }
}

fn shorter(older: &[f64], newer: &[f64]) -> Claim {
    let gap = paired(older, newer, |older, newer| older - newer);
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "… which is shorter than those of Reno and Tahoe".to_owned(),
        ours: format!("shorter by {} s", cell(&gap, 2)),
        judged: above_zero(&gap),
    }
}

fn how_much_shorter(older: &[f64], newer: &[f64]) -> Claim {
    let ratios = ratios(older, newer);
    let judged = match (within(&ratios, RATIO, 0.1 * RATIO), above_zero(&gains(older, newer))) {
        (Judged::Holds, _) => Judged::Holds,
        (Judged::DoesNotHold, Judged::Holds) => Judged::HoldsInPart,
        (judged, _) => judged,
    };
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "… \"around 1.8 times\" (within 10 %)".to_owned(),
        ours: format!("{} times; in ns-2 1.07 to 1.28", cell(&ratios, 2)),
        judged,
    }
}

/// Whether the mean is no farther than `close` from `value`, by its interval.
fn within(samples: &[f64], value: f64, close: f64) -> Judged {
    let Some(Mean { mean, half_width: Some(width), .. }) = Mean::of(samples) else {
        return Judged::Undecided;
    };
    let off = (mean - value).abs();
    if off + width <= close {
        Judged::Holds
    } else if off - width > close {
        Judged::DoesNotHold
    } else {
        Judged::Undecided
    }
}

/// What single runs say: the paper ran each case once.
fn remark(older: &[f64], newer: &[f64]) -> String {
    let ratios = paired(older, newer, |older, newer| older / newer);
    let as_large = ratios.iter().filter(|ratio| **ratio >= RATIO).count();
    let reversed = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let extreme =
        |samples: &[f64], of: fn(f64, f64) -> f64| samples.iter().copied().reduce(of).unwrap_or(f64::NAN);
    format!(
        "The paper ran each once, and one run says little: the newer two took {:.1} to {:.1} s here, {as_large} of {} pairs have a ratio of 1.8 or more, and in {reversed} the older two were faster.",
        extreme(newer, f64::min),
        extreme(newer, f64::max),
        ratios.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_near_far_or_uncertain() {
        assert_eq!(within(&[1.75, 1.8, 1.85], 1.8, 0.18), Judged::Holds);
        assert_eq!(within(&[1.1, 1.2, 1.15], 1.8, 0.18), Judged::DoesNotHold);
        assert_eq!(within(&[1.0, 2.6, 1.6], 1.8, 0.18), Judged::Undecided);
        assert_eq!(within(&[1.8], 1.8, 0.18), Judged::Undecided, "of one sample nothing is known");
    }
}
