//! Figs. 4 to 7: throughput against the loss rate of the radio link.

use airtcp_sim::world::WorldError;

use super::panels::{BURSTS, FEW, Measured, Panel, Point, figures, run, variations};
use super::setting::{VARIANTS, Variant, percent};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::{across, pooled_gains};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};

/// Lowest packet error rate that counts as "increases to some extent" (§4.2.1).
const HIGH: f64 = 0.04;

/// Throughput in ns-2.35 for Fig. 4 (a) over `RADIO_IS_THE_BOTTLENECK`, in kbit/s. One row per rate of `FEW`, with the
/// values of Tahoe, Reno, NewReno and SACK.
const NS2: [[f64; 4]; 2] = [[376.0, 367.0, 424.0, 426.0], [123.0, 115.0, 134.0, 130.0]];

/// The gain of one version over another, pooled over the points.
fn more(points: &[&Point], more: Variant, less: Variant) -> Vec<f64> {
    let of = |variant| points.iter().map(|point| point.throughput(variant)).collect::<Vec<_>>();
    pooled_gains(&of(more), &of(less))
}

/// The gain of the mean of SACK and NewReno over the mean of Tahoe and Reno.
fn newer_over_older(points: &[&Point]) -> Vec<f64> {
    let of = |a, b| {
        let both = |point: &&Point| across(&[point.throughput(a), point.throughput(b)]);
        points.iter().map(both).collect::<Vec<_>>()
    };
    pooled_gains(&of(Variant::NewReno, Variant::Sack), &of(Variant::Tahoe, Variant::Reno))
}

/// "little differences": all pairs of versions must be similar.
fn little_differences(points: &[&Point]) -> (Judged, String) {
    let mut judged = Vec::new();
    let mut largest: (f64, String) = (0.0, String::new());
    for (i, a) in VARIANTS.into_iter().enumerate() {
        for b in &VARIANTS[..i] {
            let gain = more(points, a, *b);
            judged.push(Judged::similar(&mean(&gain)));
            if mean(&gain).mean.abs() >= largest.0 {
                largest = (mean(&gain).mean.abs(), format!("{a} compared with {b}, {} %", percent(&gain, 1)));
            }
        }
    }
    (Judged::all(judged), largest.1)
}

/// The gain of each version with two-state loss over the same version with uniform loss.
fn similar_models(uniform: &[&Point], two_state: &[&Point]) -> (Judged, String) {
    let gains = VARIANTS.map(|variant| {
        let of = |points: &[&Point]| points.iter().map(|point| point.throughput(variant)).collect::<Vec<_>>();
        (variant, pooled_gains(&of(two_state), &of(uniform)))
    });
    let shown = gains.iter().map(|(variant, gain)| format!("{variant} {} %", percent(gain, 1)));
    let judged = Judged::all(gains.iter().map(|(_, gain)| Judged::similar(&mean(gain))));
    (judged, shown.collect::<Vec<_>>().join(", "))
}

pub(super) fn figures_4_to_7(effort: &Effort) -> Result<Finding, WorldError> {
    let (panels, open) = (figures(), variations());
    let curves = run(effort, &panels)?;
    let varied = run(effort, &open)?;
    let all: Vec<&Point> = curves.iter().flatten().collect();
    let mut tables: Vec<_> =
        panels.iter().zip(&curves).map(|(panel, points)| table(&panel.name, points)).collect();
    tables.push(varied_table(&open, &varied, &curves));
    tables.push(bursts_table(&curves, &varied));
    Ok(Finding {
        charts: panels.iter().zip(&curves).map(|(panel, points)| chart(&panel.name, points)).collect(),
        tables,
        claims: vec![
            little_and_similar(&all, &curves),
            sack_best(&all),
            unnecessary(&curves[0]),
            worst_under_loss(&all),
            slightly_higher(&all),
        ],
        remarks: vec![range(&open, &varied), off_ns2(&open, &varied)],
        ..Finding::default()
    })
}

fn little_and_similar(all: &[&Point], curves: &[Vec<Point>]) -> Claim {
    let (little, largest) = little_differences(all);
    let of = |panel: usize| curves[panel].iter().collect::<Vec<_>>();
    let (similar, models) = similar_models(&of(0), &of(1));
    Claim {
        paper: "“From the figures we notice little differences between the four TCP versions, and show that \
                the performance observed using these two error-models are similar.”"
            .to_owned(),
        place: "§4.2.1, Figs. 4 to 7".to_owned(),
        counts: Counts::Yes,
        ours: format!(
            "Largest difference: {largest} (little differences: {}). Gain with two-state instead of uniform \
             loss: {models} (similar: {}).",
            little.name(),
            similar.name()
        ),
        judged: Judged::all([little, similar]),
    }
}

fn sack_best(all: &[&Point]) -> Claim {
    let others = [Variant::Tahoe, Variant::Reno, Variant::NewReno]
        .map(|other| (other, more(all, Variant::Sack, other)));
    let shown = others.iter().map(|(other, gain)| format!("{} % over {other}", percent(gain, 1)));
    Claim {
        paper: "“TCP SACK performs best in most cases than those of Tahoe, Reno and NewReno.”".to_owned(),
        place: "§4.2.1, Figs. 4 to 7".to_owned(),
        counts: Counts::Yes,
        ours: format!("Gain of SACK: {}.", shown.collect::<Vec<_>>().join(", ")),
        judged: Judged::all(others.iter().map(|(_, gain)| Judged::better(&mean(gain)))),
    }
}

fn slightly_higher(all: &[&Point]) -> Claim {
    let gain = newer_over_older(all);
    Claim {
        paper:
            "“the average throughput of SACK and NewReno are slightly higher than those of Tahoe and Reno”"
                .to_owned(),
        place: "abstract; §5".to_owned(),
        counts: Counts::Yes,
        ours: format!("Mean of SACK and NewReno: {} % above the mean of Tahoe and Reno.", percent(&gain, 1)),
        judged: Judged::slightly(&mean(&gain)),
    }
}

fn worst_under_loss(all: &[&Point]) -> Claim {
    let high: Vec<&Point> = all.iter().copied().filter(|point| point.per >= HIGH).collect();
    let pairs = [
        (Variant::NewReno, Variant::Tahoe),
        (Variant::NewReno, Variant::Reno),
        (Variant::Sack, Variant::Tahoe),
        (Variant::Sack, Variant::Reno),
    ]
    .map(|(a, b)| (a, b, more(&high, a, b)));
    let shown = pairs.iter().map(|(a, b, gain)| format!("{a} over {b} {} %", percent(gain, 1)));
    Claim {
        paper: "“TCP Tahoe and Reno perform worst when wireless PER increases to some extent.”".to_owned(),
        place: "§4.2.1, Figs. 4 to 7".to_owned(),
        counts: Counts::Yes,
        ours: format!("Gains at high PER: {}.", shown.collect::<Vec<_>>().join(", ")),
        judged: Judged::all(pairs.iter().map(|(.., gain)| Judged::better(&mean(gain)))),
    }
}

fn unnecessary(uniform: &[Point]) -> Claim {
    let total = |variant, of: fn(&Measured) -> f64| {
        across(&uniform.iter().map(|point| point.samples(variant, of)).collect::<Vec<_>>())
    };
    let reductions = VARIANTS.map(|variant| total(variant, |measured| measured.reductions));
    let drops = VARIANTS.map(|variant| mean(&total(variant, |measured| measured.queue_drops)).mean);
    let shown = VARIANTS.iter().zip(&reductions).map(|(variant, of)| format!("{variant} {}", cell(of, 0)));
    Claim {
        paper: "“Even with random transient errors and no congestion, the four TCP versions unnecessarily \
                reduce the congestion window size and extend the transmission time.”"
            .to_owned(),
        place: "§4.2.1, Fig. 4 (a)".to_owned(),
        counts: Counts::ByConstruction("all four versions treat every loss as congestion".to_owned()),
        ours: format!(
            "Window reductions in 400 s: {}. Packets dropped by queues: {:.0}.",
            shown.collect::<Vec<_>>().join(", "),
            drops.iter().sum::<f64>()
        ),
        judged: Judged::all(reductions.iter().map(|of| Judged::above_zero(&mean(of)))),
    }
}

fn table(title: &str, points: &[Point]) -> Table {
    let names = VARIANTS.map(|variant| variant.to_string());
    let mut columns = vec!["PER"];
    columns.extend(names.iter().map(String::as_str));
    columns.push("timeouts, same order");
    let mut table = Table::new(format!("{title}. Throughput in kbit/s, timeouts per run"), &columns);
    for point in points {
        let mut row = vec![format!("{:.0} %", 100.0 * point.per)];
        row.extend(VARIANTS.map(|variant| cell(&point.throughput(variant), 0)));
        let timeouts = VARIANTS.map(|variant| {
            format!("{:.0}", mean(&point.samples(variant, |measured| measured.timeouts)).mean)
        });
        row.push(timeouts.join(" / "));
        table.row(row);
    }
    table
}

fn chart(title: &str, points: &[Point]) -> Chart {
    let curve = |variant: Variant| {
        let samples: Vec<_> =
            points.iter().map(|point| (100.0 * point.per, point.throughput(variant))).collect();
        Curve::line(format!("TCP {variant}"), samples.iter().map(|(per, of)| (*per, of.as_slice())))
    };
    Chart {
        title: title.to_owned(),
        x: Axis::new("packet error rate (PER, %)", Scale::FromZero),
        y: Axis::new("average throughput (kbit/s)", Scale::FromZero),
        curves: VARIANTS.map(curve).to_vec(),
    }
}

/// The gains in each panel alone, and with alternative assumptions where the paper is silent.
fn varied_table(open: &[Panel], varied: &[Vec<Point>], curves: &[Vec<Point>]) -> Table {
    let mut table = Table::new(
        "Throughput gain in %, by panel and with alternative assumptions (at PER 2 and 8 %); newer: mean of \
         NewReno and SACK, older: mean of Tahoe and Reno",
        &["panel", "SACK over Tahoe", "SACK over Reno", "SACK over NewReno", "newer over older"],
    );
    let named = ["Fig. 4 (a)", "Fig. 4 (b)", "Fig. 5", "Fig. 6", "Fig. 7"].into_iter().zip(curves);
    for (name, points) in named.chain(open.iter().map(|panel| panel.name.as_str()).zip(varied)) {
        let points: Vec<_> = points.iter().collect();
        let mut row = vec![name.to_owned()];
        for other in [Variant::Tahoe, Variant::Reno, Variant::NewReno] {
            row.push(percent(&more(&points, Variant::Sack, other), 1));
        }
        row.push(percent(&newer_over_older(&points), 1));
        table.row(row);
    }
    table
}

fn bursts_table(curves: &[Vec<Point>], varied: &[Vec<Point>]) -> Table {
    let mut table = Table::new(
        "Throughput gain with two-state instead of uniform loss at PER 2 and 8 %, for several bad states",
        &["bad state", "gain over uniform loss", "similar"],
    );
    let few = |points: &'_ [Point]| -> Vec<usize> {
        (0..points.len()).filter(|at| FEW.contains(&points[*at].per)).collect()
    };
    let uniform: Vec<&Point> = few(&curves[0]).into_iter().map(|at| &curves[0][at]).collect();
    let chosen = ("as in Fig. 4 (b): loss probability 50 %, end probability 24 %", &curves[1]);
    let names = BURSTS.map(|(name, bad)| {
        format!(
            "{name}: loss probability {:.0} %, end probability {:.0} %",
            100.0 * bad.loss,
            100.0 * bad.ends
        )
    });
    for (name, points) in std::iter::once(chosen).chain(names.iter().map(String::as_str).zip(varied)) {
        let points: Vec<&Point> = few(points).into_iter().map(|at| &points[at]).collect();
        let (judged, gains) = similar_models(&uniform, &points);
        table.row([name.to_owned(), gains, judged.name().to_owned()]);
    }
    table
}

/// The verdicts with alternative assumptions.
fn range(open: &[Panel], varied: &[Vec<Point>]) -> String {
    let says = |judge: &dyn Fn(&[&Point]) -> Judged| {
        let by = |wanted| -> Vec<&str> {
            let of = open.iter().zip(varied).filter_map(|(panel, points)| {
                (judge(&points.iter().collect::<Vec<_>>()) == wanted).then_some(panel.name.as_str())
            });
            of.collect()
        };
        let named = |wanted| match by(wanted) {
            names if names.is_empty() => "none".to_owned(),
            names => format!("{} ({})", names.len(), names.join("; ")),
        };
        format!(
            "holds in {}, does not hold in {}, undecided in {}",
            named(Judged::Holds),
            named(Judged::DoesNotHold),
            by(Judged::Undecided).len()
        )
    };
    let better = |points: &[&Point]| {
        let others = [Variant::Tahoe, Variant::Reno, Variant::NewReno];
        Judged::all(others.map(|other| Judged::better(&mean(&more(points, Variant::Sack, other)))))
    };
    format!(
        "Verdicts for {} variants, each of one panel with one alternative assumption, at PER 2 and 8 %. SACK \
         is best: {}. The differences are little: {}. NewReno and SACK are slightly higher: {}.",
        open.len(),
        says(&better),
        says(&|points| little_differences(points).0),
        says(&|points| Judged::slightly(&mean(&newer_over_older(points))))
    )
}

fn off_ns2(open: &[Panel], varied: &[Vec<Point>]) -> String {
    let Some(at) = open.iter().position(|panel| panel.name.contains("radio 0.5")) else {
        return String::new();
    };
    let of_rates = varied[at].iter().zip(NS2).map(|(point, known)| {
        let off = VARIANTS
            .iter()
            .zip(known)
            .map(|(variant, known)| (mean(&point.throughput(*variant)).mean / known - 1.0).abs());
        format!("{:.0} % at PER {:.0} %", 100.0 * off.fold(0.0, f64::max), 100.0 * point.per)
    });
    format!(
        "The paper shows its values only as curves. For comparison, ns-2.35 (20 seeds) with a wire of 10 \
         Mbit/s and a radio link of 0.5 Mbit/s yields the following for Tahoe / Reno / NewReno / SACK: 376 / \
         367 / 424 / 426 kbit/s at PER 2 % and 123 / 115 / 134 / 130 kbit/s at PER 8 %. The results here \
         differ from these by at most {}.",
        of_rates.collect::<Vec<_>>().join(", ")
    )
}
