//! Figs. 4 to 7: throughput against the radio's loss rate.

use airtcp_numbers::statistics::{gains, ratios};
use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};
use super::setting::{CHOICES, Loss, Setting, Topology, VARIANTS, Variant, above_zero, paired, throughput};

/// "In each set, PER is randomly generated"; the rates here are chosen.
const RATES: [f64; 5] = [0.01, 0.02, 0.04, 0.06, 0.08];
/// From here on, the error rate has "increased to some extent".
const HIGH: f64 = 0.04;
/// Differences up to this are "little", and performances this close are "similar".
const LITTLE: f64 = 0.1;

/// Fig. 4a in ns-2.35, in kbit/s: Tahoe, Reno, NewReno, SACK.
const NS2_UNIFORM: [(f64, [u32; 4]); 4] = [
    (0.01, [443, 447, 475, 477]),
    (0.02, [376, 367, 424, 426]),
    (0.04, [253, 235, 290, 285]),
    (0.08, [123, 115, 134, 130]),
];

/// The last hop as it was in ns-2's runs: the radio is the bottleneck.
const RADIO_IS_THE_BOTTLENECK: &str = "[[stage]]\nname = \"wire\"\nboth = { rate = \"10Mbit\", delay = \"5ms\", queue = { packets = 19 } }\n\
     [[stage]]\nname = \"radio\"\nboth = { rate = \"500kbit\", delay = \"30ms\", queue = { packets = 19 } }\n";

#[derive(Clone, Copy)]
struct Measured {
    kbit_per_s: f64,
    reductions: f64,
    timeouts: f64,
    queue_drops: f64,
}

/// A panel of a figure: its points, by variant and loss rate.
struct Curves(Vec<(Variant, f64, Vec<Measured>)>);

impl Curves {
    fn run(effort: &Effort, path: impl Fn(f64) -> String) -> Result<Self, WorldError> {
        let mut points = Vec::new();
        for per in RATES {
            for variant in VARIANTS {
                points.push((variant, per, Setting::new(&path(per), variant.recipe())?));
            }
        }
        let samples = effort.sample(
            &points,
            |(.., setting), seed| setting.run(seed),
            |_, report| {
                let flow = &report.flows[0];
                Measured {
                    kbit_per_s: throughput(flow),
                    reductions: flow.counters.window_reductions as f64,
                    timeouts: flow.counters.timeouts as f64,
                    queue_drops: report.dropped_by_queues as f64,
                }
            },
        )?;
        Ok(Self(points.into_iter().zip(samples).map(|((variant, per, _), of)| (variant, per, of)).collect()))
    }

    fn samples(&self, variant: Variant, per: f64, of: impl Fn(&Measured) -> f64) -> Vec<f64> {
        let point = self.0.iter().find(|(known, rate, _)| *known == variant && *rate == per);
        point.map(|(.., outcomes)| outcomes.iter().map(of).collect()).unwrap_or_default()
    }

    fn throughput(&self, variant: Variant, per: f64) -> Vec<f64> {
        self.samples(variant, per, |outcome| outcome.kbit_per_s)
    }

    /// The mean over these rates, for each seed.
    fn pooled(&self, variant: Variant, rates: &[f64], of: impl Fn(&Measured) -> f64) -> Vec<f64> {
        let of_rates: Vec<_> = rates.iter().map(|per| self.samples(variant, *per, &of)).collect();
        let seeds = of_rates.first().map_or(0, Vec::len);
        (0..seeds)
            .map(|seed| of_rates.iter().map(|samples| samples[seed]).sum::<f64>() / rates.len() as f64)
            .collect()
    }

    fn table(&self, title: &str, ns2: &[(f64, [u32; 4])]) -> Table {
        let mut columns = vec!["loss"];
        let names = VARIANTS.map(|variant| variant.to_string());
        columns.extend(names.iter().map(String::as_str));
        columns.push("timeouts of the four");
        if !ns2.is_empty() {
            columns.push("ns-2");
        }
        let mut table = Table::new(title, &columns);
        for per in RATES {
            let mut row = vec![format!("{:.0} %", 100.0 * per)];
            row.extend(VARIANTS.map(|variant| cell(&self.throughput(variant, per), 0)));
            let timeouts = VARIANTS.map(|variant| {
                let of_seeds = self.samples(variant, per, |outcome| outcome.timeouts);
                format!("{:.0}", mean(&of_seeds).mean)
            });
            row.push(timeouts.join(" / "));
            if !ns2.is_empty() {
                let known = ns2.iter().find(|(rate, _)| *rate == per);
                row.push(known.map_or_else(
                    || "–".to_owned(),
                    |(_, values)| values.map(|value| value.to_string()).join(" / "),
                ));
            }
            table.row(row);
        }
        table
    }

    /// What §4.2.1 says about each of its figures. `panel` stands before each claim.
    fn claims(&self, panel: &str) -> Vec<Claim> {
        let mut claims: Vec<_> = [Variant::Tahoe, Variant::Reno, Variant::NewReno]
            .into_iter()
            .map(|other| self.sack_against(other, panel))
            .collect();
        claims.push(self.newer_against_older(panel));
        claims.push(self.worst_under_loss(panel));
        claims.push(self.little_differences(panel));
        claims
    }

    fn sack_against(&self, other: Variant, panel: &str) -> Claim {
        let judged = RATES.map(|per| {
            above_zero(&paired(&self.throughput(Variant::Sack, per), &self.throughput(other, per), |a, b| {
                a - b
            }))
        });
        let count = |wanted| judged.iter().filter(|judged| **judged == wanted).count();
        let (above, below) = (count(Judged::Holds), count(Judged::DoesNotHold));
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("{panel}\"TCP SACK performs best in most cases\": above {other}"),
            ours: format!(
                "above it at {above} of {} loss rates, below it at {below}; over all {}",
                RATES.len(),
                gain(&self.all(Variant::Sack), &self.all(other))
            ),
            judged: if 2 * above > RATES.len() {
                Judged::Holds
            } else if 2 * below > RATES.len() {
                Judged::DoesNotHold
            } else {
                Judged::Undecided
            },
        }
    }

    fn all(&self, variant: Variant) -> Vec<f64> {
        self.pooled(variant, &RATES, |outcome| outcome.kbit_per_s)
    }

    fn newer_against_older(&self, panel: &str) -> Claim {
        let both = |a, b| paired(&self.all(a), &self.all(b), f64::midpoint);
        let newer = both(Variant::NewReno, Variant::Sack);
        let older = both(Variant::Tahoe, Variant::Reno);
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!(
                "{panel}\"the throughput of SACK and NewReno are slightly higher than those of Tahoe and Reno\""
            ),
            ours: gain(&newer, &older),
            judged: above_zero(&paired(&newer, &older, |a, b| a - b)),
        }
    }

    fn worst_under_loss(&self, panel: &str) -> Claim {
        let high: Vec<f64> = RATES.into_iter().filter(|per| *per >= HIGH).collect();
        let of = |variant| self.pooled(variant, &high, |outcome| outcome.kbit_per_s);
        let pairs = [
            (Variant::NewReno, Variant::Tahoe),
            (Variant::NewReno, Variant::Reno),
            (Variant::Sack, Variant::Tahoe),
            (Variant::Sack, Variant::Reno),
        ];
        let judged = pairs.map(|(a, b)| above_zero(&paired(&of(a), &of(b), |a, b| a - b)));
        let shown = pairs.map(|(a, b)| format!("{a} over {b} {}", gain(&of(a), &of(b))));
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!(
                "{panel}\"Tahoe and Reno perform worst when wireless PER increases to some extent\" (from {:.0} %)",
                100.0 * HIGH
            ),
            ours: shown.join("; "),
            judged: Judged::all(judged),
        }
    }

    fn little_differences(&self, panel: &str) -> Claim {
        let spreads = RATES.map(|per| {
            let means = VARIANTS.map(|variant| mean(&self.throughput(variant, per)).mean);
            means.iter().copied().fold(0.0, f64::max) / means.iter().copied().fold(f64::INFINITY, f64::min)
                - 1.0
        });
        let little = spreads.iter().filter(|spread| **spread <= LITTLE).count();
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!(
                "{panel}\"little differences between the four TCP versions\" (at most {:.0} %)",
                100.0 * LITTLE
            ),
            ours: format!(
                "the best is above the worst by {}",
                RATES
                    .iter()
                    .zip(spreads)
                    .map(|(per, spread)| format!("{:.0} % at {:.0} %", 100.0 * spread, 100.0 * per))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            judged: match little {
                0 => Judged::DoesNotHold,
                all if all == RATES.len() => Judged::Holds,
                _ => Judged::HoldsInPart,
            },
        }
    }
}

/// The mean gain in per cent.
fn gain(a: &[f64], b: &[f64]) -> String {
    format!("{} %", cell(&gains(a, b).into_iter().map(|gain| 100.0 * gain).collect::<Vec<_>>(), 1))
}

fn choices(more: &[String]) -> Vec<String> {
    let two_state = "The paper gives no transition probabilities: two losses in each bad time on average (half of the packets in the bad state, which a packet ends with 24 %).";
    CHOICES.into_iter().chain([two_state]).map(str::to_owned).chain(more.iter().cloned()).collect()
}

pub(super) fn figure_4(effort: &Effort) -> Result<Finding, WorldError> {
    let path = |loss: Loss| Topology::LastHop.path(&format!("{RADIO_IS_THE_BOTTLENECK}{}", loss.stage()));
    let uniform = Curves::run(effort, |per| path(Loss::Uniform(per)))?;
    let two_state = Curves::run(effort, |per| path(Loss::TwoState(per)))?;
    let mut claims = uniform.claims("(a) ");
    claims.extend(two_state.claims("(b) "));
    claims.push(similar(&uniform, &two_state));
    claims.push(unnecessary(&uniform));
    Ok(Finding {
charts: Vec::new(),
        tables: vec![
            uniform.table("(a) uniform loss, kbit/s", &NS2_UNIFORM),
            two_state.table("(b) two-state loss, kbit/s", &[]),
        ],
        claims,
        choices: choices(&[
            "Fixed host to base station 10 Mbit/s and 5 ms, base station to mobile host 0.5 Mbit/s and 30 ms, queues of 20 packets: the reading of Fig. 3a that ns-2 was asked about. Its window of 20 packets never fills a queue.".to_owned(),
        ]),
        remarks: vec![format!(
            "The paper's values are only in its picture. ns-2.35 on the same path (20 seeds) has Tahoe / Reno / NewReno / SACK as in the last column; ours are off by at most {}. In ns-2 SACK and NewReno are about equal, Tahoe and Reno below them, and under two-state loss Reno is far the worst.",
            off_ns2(&uniform)
        )],
    })
}

/// The largest difference from ns-2 among the four means, at each rate.
fn off_ns2(uniform: &Curves) -> String {
    let at = NS2_UNIFORM.map(|(per, known)| {
        let off = VARIANTS.iter().zip(known).map(|(variant, known)| {
            (mean(&uniform.throughput(*variant, per)).mean / f64::from(known) - 1.0).abs()
        });
        format!("{:.0} % at {:.0} %", 100.0 * off.fold(0.0, f64::max), 100.0 * per)
    });
    at.join(", ")
}

fn similar(uniform: &Curves, two_state: &Curves) -> Claim {
    let ratios = VARIANTS.map(|variant| (variant, ratios(&two_state.all(variant), &uniform.all(variant))));
    let close = ratios.iter().filter(|(_, ratios)| (mean(ratios).mean - 1.0).abs() <= LITTLE).count();
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: format!(
            "\"the performance observed using these two error-models are similar\" (within {:.0} %)",
            100.0 * LITTLE
        ),
        ours: format!(
            "two-state over uniform: {}",
            ratios
                .iter()
                .map(|(variant, ratios)| format!("{variant} {}", cell(ratios, 2)))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        judged: match close {
            0 => Judged::DoesNotHold,
            4 => Judged::Holds,
            _ => Judged::HoldsInPart,
        },
    }
}

fn unnecessary(uniform: &Curves) -> Claim {
    let drops =
        VARIANTS.map(|variant| mean(&uniform.pooled(variant, &RATES, |outcome| outcome.queue_drops)).mean);
    let reductions = VARIANTS.map(|variant| uniform.pooled(variant, &RATES, |outcome| outcome.reductions));
    let none_congested = drops.iter().all(|drops| *drops == 0.0);
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "\"even with random transient errors and no congestion, the four TCP versions unnecessarily reduce the congestion window\"".to_owned(),
        ours: format!(
            "packets dropped by queues: {}; reductions in 400 s over all loss rates: {}",
            if none_congested { "none".to_owned() } else { format!("{drops:.1?}") },
            VARIANTS
                .iter()
                .zip(&reductions)
                .map(|(variant, reductions)| format!("{variant} {}", cell(reductions, 0)))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        judged: if none_congested {
            Judged::all([0, 1, 2, 3].map(|i: usize| above_zero(&reductions[i])))
        } else {
            Judged::DoesNotHold
        },
    }
}

fn with_congestion(effort: &Effort, topology: Topology) -> Result<Finding, WorldError> {
    let curves = Curves::run(effort, |per| topology.path(&Loss::TwoState(per).stage()))?;
    let drops: Vec<_> = VARIANTS
        .iter()
        .map(|variant| {
            format!("{variant} {}", cell(&curves.pooled(*variant, &RATES, |outcome| outcome.queue_drops), 0))
        })
        .collect();
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![curves.table("kbit/s", &[])],
        claims: curves.claims(""),
        choices: choices(&[topology.choice()]),
        remarks: vec![format!(
            "The paper's values are only in its picture. Packets of the flow that queues dropped in 400 s, over all loss rates: {}.",
            drops.join(", ")
        )],
    })
}

pub(super) fn figure_5(effort: &Effort) -> Result<Finding, WorldError> {
    with_congestion(effort, Topology::Congestion)
}

pub(super) fn figure_6(effort: &Effort) -> Result<Finding, WorldError> {
    with_congestion(effort, Topology::SmallQueue)
}

pub(super) fn figure_7(effort: &Effort) -> Result<Finding, WorldError> {
    with_congestion(effort, Topology::LongQueue)
}
