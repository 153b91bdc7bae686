//! §III-C: Theorem 1, equation (16), compared with the measured throughput of flows.

use airtcp::recovery::window::theorem_1;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::flows::{LARGE, Sample, exact, measure};
use super::grid::percent_shown;
use super::setting::{Extent, NR_PLUS, Site};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, shown};

/// Other paths, which show whether the verdict depends on the path. They do not decide it.
const OTHERS: [(&str, Site); 4] = [
    ("10 Mbit/s, access delay 100 ms", Site { wire_ms: 100, ..LARGE[0].1 }),
    ("10 Mbit/s, MSS 536 bytes", Site { mss: 536, ..LARGE[0].1 }),
    ("10 Mbit/s, MSS 1460 bytes", Site { mss: 1460, ..LARGE[0].1 }),
    ("2 Mbit/s", Site::DUMBBELL),
];

impl Sample {
    fn predicted(&self, tax: f64) -> f64 {
        theorem_1(self.round_trip, 0.0, tax, self.congestion)
    }
}

/// Relative difference of the measured throughput from (16), by error rate.
type Off = Vec<(u32, Mean)>;

fn verdict(off: &Off) -> Judged {
    Judged::all(off.iter().map(|(_, off)| Judged::similar(off)))
}

fn said((name, off): &(&str, Off)) -> String {
    let points: Vec<_> = off.iter().map(|(at, off)| format!("{} at {at} %", percent_shown(off))).collect();
    format!("{name}: {}", points.join(", "))
}

pub fn overlay(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let mut table = Table::new(
        "Throughput of one of twelve TCP-NR+ flows in packets per second: measured, and by equation (16)",
        &[
            "radio link",
            "error rate",
            "D in ms",
            "window",
            "q^c",
            "measured",
            "equation (16)",
            "measured / equation (16)",
        ],
    );
    let (mut charts, mut offs) = (Vec::new(), Vec::new());
    for (name, site) in LARGE.into_iter().chain(OTHERS) {
        let points: Vec<_> = over.error_rates.iter().map(|percent| (NR_PLUS, *percent)).collect();
        let found = measure(effort, site, &points, over)?;
        let (mut measured, mut predicted, mut off) = (Vec::new(), Vec::new(), Vec::new());
        for (percent, samples) in over.error_rates.iter().zip(&found) {
            let tax = f64::from(*percent) / 100.0;
            let of = |value: &dyn Fn(&Sample) -> f64| samples.iter().map(value).collect::<Vec<f64>>();
            // (16) is not finite without drops. At a point where only some runs have drops, their mean misleads.
            let all_drop = samples.iter().all(|sample| sample.congestion > 0.0);
            let beside = |value: &dyn Fn(&Sample) -> f64| if all_drop { of(value) } else { Vec::new() };
            let columns = [
                (of(&|sample| sample.round_trip * 1e3), 1),
                (of(&|sample| sample.throughput * sample.round_trip), 1),
                (of(&|sample| sample.congestion), 5),
                (of(&|sample| sample.throughput), 2),
                (beside(&|sample| sample.predicted(tax)), 2),
                (beside(&|sample| sample.throughput / sample.predicted(tax)), 2),
            ];
            let cells = columns.iter().map(|(samples, digits)| {
                Mean::of(samples).map_or_else(|| "–".to_owned(), |mean| shown(&mean, *digits))
            });
            table.row([name.to_owned(), format!("{percent} %")].into_iter().chain(cells));
            let difference = beside(&|sample| sample.throughput / sample.predicted(tax) - 1.0);
            off.extend(Mean::of(&difference).map(|off| (*percent, off)));
            let [.., (ours, _), (theirs, _), _] = columns;
            measured.push((f64::from(*percent), ours));
            predicted.push((f64::from(*percent), theirs));
        }
        let line = |caption: &str, points: &[(f64, Vec<f64>)]| {
            Curve::line(caption, points.iter().map(|(x, samples)| (*x, samples.as_slice())))
        };
        charts.push(Chart {
            title: format!("Theorem 1 at {name} (not drawn in the paper)"),
            x: Axis::new("packet error rate, %", Scale::FromZero),
            y: Axis::new("throughput per flow, packets/s", Scale::Logarithmic),
            curves: vec![line("TCP-NR+", &measured), line("equation (16)", &predicted)],
        });
        offs.push((name, off));
    }
    let (large, others) = offs.split_at(LARGE.len());
    let beside = |(name, off): &(&str, Off)| format!("{name}: {}", verdict(off).name());
    let approximately = Claim {
        paper: "“The throughput of TCP-NR+ is approximately: (16)”".to_owned(),
        place: "§III-C, Theorem 1".to_owned(),
        counts: Counts::Yes,
        ours: format!(
            "measured throughput compared with (16): {}",
            large.iter().map(said).collect::<Vec<_>>().join("; ")
        ),
        judged: Judged::all(large.iter().map(|(_, off)| verdict(off))),
    };
    Ok(Finding {
        charts,
        tables: vec![table],
        claims: vec![approximately, without_tax()],
        remarks: vec![format!(
            "Verdict on other paths: {}.",
            others.iter().map(beside).collect::<Vec<_>>().join("; ")
        )],
        ..Finding::default()
    })
}

/// Without a tax, (16) is the square-root law. This is calculated, without a run.
fn without_tax() -> Claim {
    let off = [1e-4, 1e-3, 1e-2, 1e-1].map(|q_c| {
        let friendly = (1.5_f64 / q_c).sqrt() / 0.1;
        theorem_1(0.1, 0.0, 0.0, q_c) / friendly - 1.0
    });
    let largest = off.into_iter().map(f64::abs).fold(0.0, f64::max);
    Claim {
        paper: "“It is worth noting that (16) reduces to … the throughput of a TCP-friendly flow defined in \
                [7], when q^wb = q^r = 0.”"
            .to_owned(),
        place: "§III-C".to_owned(),
        counts: Counts::ByConstruction("calculated, without a run".to_owned()),
        ours: format!("largest relative difference {largest:.0e}, for q^c from 1e-4 to 0.1"),
        judged: Judged::all(off.map(|off| Judged::similar(&exact(off)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calculated by hand: q^w = 0.04, q^r = 0, q^c = 0.02, so q = 0.06.
    /// 8·0.06·0.02 / (0.18 + 0.04) = 0.0096 / 0.22 = 0.0436364; √(0.0016 + 0.0436364) = 0.2126884;
    /// 2 / (0.2126884 − 0.04) = 11.58155; divided by D = 0.2 s: 57.908 packets per second.
    #[test]
    fn equation_16_matches_hand_calculation() {
        assert!((theorem_1(0.2, 0.0, 0.04, 0.02) - 57.908).abs() < 1e-3);
        assert!((theorem_1(0.2, 0.01, 0.03, 0.02) - 57.908).abs() < 1e-3, "reordering is taxed as well");
    }

    #[test]
    fn theorem_without_tax_follows_square_root_law() {
        assert_eq!(without_tax().judged, Judged::Holds);
    }

    #[test]
    fn throughput_decreases_with_congestion() {
        let at = |q_c| theorem_1(0.1, 0.0, 0.02, q_c);
        assert!(at(0.01) > at(0.02) && at(0.02) > at(0.05));
    }
}
