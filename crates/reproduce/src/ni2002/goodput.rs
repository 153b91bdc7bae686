//! Figs. 4 to 7: throughput against the loss rate of the radio link.

use airtcp_sim::world::WorldError;

use super::panels::{BURSTS, Cells, FEW_RATES, Measured, Panel, figures, run, variations};
use super::setting::{Bad, VARIANTS, Variant, percent};
use crate::chart::{Axis, Chart, Scale};
use crate::grid::Series;
use crate::judge::{across, pooled_gains};
use crate::{At, Claim, Counts, Effort, Finding, Found, Judged, Table, cell, claim, column, mean};

/// Lowest packet error rate that counts as "increases to some extent" (§4.2.1).
const HIGH: f64 = 0.04;

/// Throughput in ns-2.35 for Fig. 4 (a) over `RADIO_IS_THE_BOTTLENECK`, in kbit/s. One row per rate of `FEW_RATES`,
/// with the values of Tahoe, Reno, NewReno and SACK.
const NS2: [[f64; 4]; 2] = [[376.0, 367.0, 424.0, 426.0], [123.0, 115.0, 134.0, 130.0]];

fn kbit(one: &Measured) -> f64 {
    one.kbit_per_s
}

/// The gain of one version over another, per seed, averaged over the points.
fn gains_over(cells: &Cells, more: Variant, less: Variant) -> Vec<f64> {
    across(&cells.gains(more, less, kbit))
}

/// The gain of the mean of SACK and NewReno over the mean of Tahoe and Reno.
fn newer_over_older(cells: &Cells) -> Vec<f64> {
    let both = |a, b| -> Series {
        cells.of(a, kbit).into_iter().zip(cells.of(b, kbit)).map(|(a, b)| across(&[a, b])).collect()
    };
    pooled_gains(&both(Variant::NewReno, Variant::Sack), &both(Variant::Tahoe, Variant::Reno))
}

/// The points of one panel.
fn panel(cells: &Cells, index: usize) -> Cells {
    cells.only(|(panel, _)| panel == index)
}

/// "little differences": all pairs of versions must be similar.
fn little_differences(cells: &Cells) -> Found {
    let mut judged = Vec::new();
    let mut largest: (f64, String) = (0.0, String::new());
    for (i, a) in VARIANTS.into_iter().enumerate() {
        for b in &VARIANTS[..i] {
            let gain = gains_over(cells, a, *b);
            judged.push(Judged::similar(&mean(&gain)));
            if mean(&gain).mean.abs() >= largest.0 {
                largest = (mean(&gain).mean.abs(), format!("{a} compared with {b}, {} %", percent(&gain, 1)));
            }
        }
    }
    (largest.1, Judged::all(judged))
}

/// The gain of each version with two-state loss over the same version with uniform loss.
fn similar_models(uniform: &Cells, two_state: &Cells) -> Found {
    let gain = |variant| pooled_gains(&two_state.of(variant, kbit), &uniform.of(variant, kbit));
    let gains = VARIANTS.map(|variant| (variant, gain(variant)));
    let shown = gains.iter().map(|(variant, gain)| format!("{variant} {} %", percent(gain, 1)));
    let judged = Judged::all(gains.iter().map(|(_, gain)| Judged::similar(&mean(gain))));
    (shown.collect::<Vec<_>>().join(", "), judged)
}

pub(super) fn figures_4_to_7(effort: &Effort) -> Result<Finding, WorldError> {
    let (panels, variants) = (figures(), variations());
    let cells = run(effort, &panels)?;
    let varied = run(effort, &variants)?;
    let cells_of = |index| panel(&cells, index);
    let mut tables: Vec<_> =
        panels.iter().enumerate().map(|(index, panel)| table(&panel.name, &cells_of(index))).collect();
    tables.push(varied_table(&variants, &varied, &cells));
    tables.push(bursts_table(&cells, &varied));
    Ok(Finding {
        charts: panels
            .iter()
            .enumerate()
            .map(|(index, panel)| chart(&panel.name, &cells_of(index)))
            .collect(),
        tables,
        claims: vec![
            little_and_similar(&cells),
            sack_best(&cells),
            unnecessary_reductions(&cells_of(0)),
            worst_under_loss(&cells),
            slightly_higher(&cells),
        ],
        remarks: vec![range(&variants, &varied), compared_with_ns2(&variants, &varied)],
        ..Finding::default()
    })
}

fn little_and_similar(cells: &Cells) -> Claim {
    let (largest, little) = little_differences(cells);
    let (models, similar) = similar_models(&panel(cells, 0), &panel(cells, 1));
    claim(
        At("§4.2.1, Figs. 4 to 7"),
        "“From the figures we notice little differences between the four TCP versions, and show that the \
         performance observed using these two error-models are similar.”",
        format!(
            "Largest difference: {largest} (little differences: {}). Gain with two-state instead of uniform \
             loss: {models} (similar: {}).",
            little.name(),
            similar.name()
        ),
        Judged::all([little, similar]),
    )
}

fn sack_best(all: &Cells) -> Claim {
    let others = [Variant::Tahoe, Variant::Reno, Variant::NewReno]
        .map(|other| (other, gains_over(all, Variant::Sack, other)));
    let shown = others.iter().map(|(other, gain)| format!("{} % over {other}", percent(gain, 1)));
    claim(
        At("§4.2.1, Figs. 4 to 7"),
        "“TCP SACK performs best in most cases than those of Tahoe, Reno and NewReno.”",
        format!("Gain of SACK: {}.", shown.collect::<Vec<_>>().join(", ")),
        Judged::all(others.iter().map(|(_, gain)| Judged::better(&mean(gain)))),
    )
}

fn slightly_higher(all: &Cells) -> Claim {
    let gain = newer_over_older(all);
    claim(
        At("abstract; §5"),
        "“the average throughput of SACK and NewReno are slightly higher than those of Tahoe and Reno”",
        format!("Mean of SACK and NewReno: {} % above the mean of Tahoe and Reno.", percent(&gain, 1)),
        Judged::slightly(&mean(&gain)),
    )
}

fn worst_under_loss(all: &Cells) -> Claim {
    let high = all.only(|(_, per)| per >= HIGH);
    let pairs = [
        (Variant::NewReno, Variant::Tahoe),
        (Variant::NewReno, Variant::Reno),
        (Variant::Sack, Variant::Tahoe),
        (Variant::Sack, Variant::Reno),
    ]
    .map(|(a, b)| (a, b, gains_over(&high, a, b)));
    let shown = pairs.iter().map(|(a, b, gain)| format!("{a} over {b} {} %", percent(gain, 1)));
    claim(
        At("§4.2.1, Figs. 4 to 7"),
        "“TCP Tahoe and Reno perform worst when wireless PER increases to some extent.”",
        format!("Gains at high PER: {}.", shown.collect::<Vec<_>>().join(", ")),
        Judged::all(pairs.iter().map(|(.., gain)| Judged::better(&mean(gain)))),
    )
}

fn unnecessary_reductions(uniform: &Cells) -> Claim {
    let total = |variant, value: fn(&Measured) -> f64| across(&uniform.of(variant, value));
    let reductions = VARIANTS.map(|variant| total(variant, |measured| measured.reductions));
    let drops = VARIANTS.map(|variant| mean(&total(variant, |measured| measured.queue_drops)).mean);
    let shown =
        VARIANTS.iter().zip(&reductions).map(|(variant, counts)| format!("{variant} {}", cell(counts, 0)));
    claim(
        At("§4.2.1, Fig. 4 (a)"),
        "“Even with random transient errors and no congestion, the four TCP versions unnecessarily reduce \
         the congestion window size and extend the transmission time.”",
        format!(
            "Window reductions in 400 s: {}. Packets dropped by queues: {:.0}.",
            shown.collect::<Vec<_>>().join(", "),
            drops.iter().sum::<f64>()
        ),
        Judged::all(reductions.iter().map(|counts| Judged::above_zero(&mean(counts)))),
    )
    .not_counted(Counts::ByConstruction("all four versions treat every loss as congestion".to_owned()))
}

fn table(title: &str, cells: &Cells) -> Table {
    let throughputs = VARIANTS.map(|variant| cells.column(variant.to_string(), variant, 0, kbit));
    let timeouts = |point: &(usize, f64)| {
        let mean = |variant| mean(&cells.at(variant, *point, |measured| measured.timeouts)).mean;
        VARIANTS.map(|variant| format!("{:.0}", mean(variant))).join(" / ")
    };
    Table::of(
        format!("{title}. Throughput in kbit/s, timeouts per run"),
        [column("PER", |(_, per): &(usize, f64)| format!("{:.0} %", 100.0 * per))]
            .into_iter()
            .chain(throughputs)
            .chain([column("timeouts, same order", timeouts)]),
        cells.points().iter().copied(),
    )
}

fn chart(title: &str, cells: &Cells) -> Chart {
    let line = |variant| cells.line(variant, format!("TCP {variant}"), |(_, per)| 100.0 * per, kbit);
    Chart {
        title: title.to_owned(),
        x: Axis::new("packet error rate (PER, %)", Scale::FromZero),
        y: Axis::new("average throughput (kbit/s)", Scale::FromZero),
        curves: VARIANTS.map(line).to_vec(),
    }
}

/// The gains in each panel alone, and with alternative assumptions where the paper gives no value.
fn varied_table(variants: &[Panel], varied: &Cells, cells: &Cells) -> Table {
    let panels = ["Fig. 4 (a)", "Fig. 4 (b)", "Fig. 5", "Fig. 6", "Fig. 7"].into_iter().enumerate();
    let panels = panels.map(|(index, name)| (name, panel(cells, index)));
    let variants =
        variants.iter().enumerate().map(|(index, variant)| (variant.name.as_str(), panel(varied, index)));
    let sack_over = |other: Variant| {
        column(format!("SACK over {other}"), move |(_, cells): &(&str, Cells)| {
            percent(&gains_over(cells, Variant::Sack, other), 1)
        })
    };
    Table::of(
        "Throughput gain in %, by panel and with alternative assumptions (at PER 2 and 8 %); newer: mean of \
         NewReno and SACK, older: mean of Tahoe and Reno",
        [
            column("panel", |(name, _): &(&str, Cells)| (*name).to_owned()),
            sack_over(Variant::Tahoe),
            sack_over(Variant::Reno),
            sack_over(Variant::NewReno),
            column("newer over older", |(_, cells): &(&str, Cells)| percent(&newer_over_older(cells), 1)),
        ],
        panels.chain(variants),
    )
}

fn bursts_table(cells: &Cells, varied: &Cells) -> Table {
    let few = |cells: &Cells, index| cells.only(|(panel, per)| panel == index && FEW_RATES.contains(&per));
    let uniform = few(cells, 0);
    let name = |(name, bad): (&str, Bad)| {
        let [loss, ends] = [bad.loss, bad.ends].map(|share| 100.0 * share);
        format!("{name}: loss probability {loss:.0} %, end probability {ends:.0} %")
    };
    let chosen = (name(("as in Fig. 4 (b)", Bad::CHOSEN)), few(cells, 1));
    let bursts = BURSTS.into_iter().enumerate().map(|(index, burst)| (name(burst), few(varied, index)));
    Table::of(
        "Throughput gain with two-state instead of uniform loss at PER 2 and 8 %, for several bad states",
        [
            column("bad state", |(name, _): &(String, Cells)| name.clone()),
            column("gain over uniform loss", |(_, two_state): &(String, Cells)| {
                similar_models(&uniform, two_state).0
            }),
            column("similar", |(_, two_state): &(String, Cells)| {
                similar_models(&uniform, two_state).1.name().to_owned()
            }),
        ],
        [chosen].into_iter().chain(bursts),
    )
}

/// The verdicts with alternative assumptions.
fn range(variants: &[Panel], varied: &Cells) -> String {
    let verdicts = |judge: &dyn Fn(&Cells) -> Judged| {
        let judged: Vec<_> = (0..variants.len()).map(|index| judge(&panel(varied, index))).collect();
        let with = |wanted| -> Vec<&str> {
            let panels = variants.iter().zip(&judged).filter(|(_, judged)| **judged == wanted);
            panels.map(|(panel, _)| panel.name.as_str()).collect()
        };
        let named = |wanted| match with(wanted) {
            names if names.is_empty() => "none".to_owned(),
            names => format!("{} ({})", names.len(), names.join("; ")),
        };
        format!(
            "holds in {}, does not hold in {}, undecided in {}",
            named(Judged::Holds),
            named(Judged::DoesNotHold),
            with(Judged::Undecided).len()
        )
    };
    let better = |cells: &Cells| {
        let others = [Variant::Tahoe, Variant::Reno, Variant::NewReno];
        Judged::all(others.map(|other| Judged::better(&mean(&gains_over(cells, Variant::Sack, other)))))
    };
    format!(
        "Verdicts for {} variants, each of one panel with one alternative assumption, at PER 2 and 8 %. SACK \
         is best: {}. The differences are little: {}. NewReno and SACK are slightly higher: {}.",
        variants.len(),
        verdicts(&better),
        verdicts(&|cells| little_differences(cells).1),
        verdicts(&|cells| Judged::slightly(&mean(&newer_over_older(cells))))
    )
}

/// The largest difference from ns-2's throughput on the same path.
fn compared_with_ns2(variants: &[Panel], varied: &Cells) -> String {
    let Some(at) = variants.iter().position(|panel| panel.name.contains("radio 0.5")) else {
        return String::new();
    };
    let largest = FEW_RATES.into_iter().zip(NS2).map(|(per, known)| {
        let differences = VARIANTS
            .iter()
            .zip(known)
            .map(|(variant, known)| (mean(&varied.at(*variant, (at, per), kbit)).mean / known - 1.0).abs());
        format!("{:.0} % at PER {:.0} %", 100.0 * differences.fold(0.0, f64::max), 100.0 * per)
    });
    format!(
        "The paper shows its values only as curves. For comparison, ns-2.35 (20 seeds) with a wire of 10 \
         Mbit/s and a radio link of 0.5 Mbit/s yields the following for Tahoe / Reno / NewReno / SACK: 376 / \
         367 / 424 / 426 kbit/s at PER 2 % and 123 / 115 / 134 / 130 kbit/s at PER 8 %. The results here \
         differ from these by at most {}.",
        largest.collect::<Vec<_>>().join(", ")
    )
}
