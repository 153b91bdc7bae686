//! §III-C: Theorem 1, equation (16), compared with the measured throughput of flows.

use airtcp::recovery::window;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::comparison::percent_shown;
use super::flows::{Cells, LARGE, Path, Point, Row, Sample, calculated, exact, measure, measured, modelled};
use super::setting::{Extent, NR_PLUS, Site};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim, column};

/// Other paths. They show whether the verdict depends on the path, but they do not decide it.
const OTHERS: [Path; 4] = [
    ("10 Mbit/s, access delay 100 ms", Site { wire_ms: 100, ..LARGE[0].1 }),
    ("10 Mbit/s, MSS 536 bytes", Site { mss: 536, ..LARGE[0].1 }),
    ("10 Mbit/s, MSS 1460 bytes", Site { mss: 1460, ..LARGE[0].1 }),
    ("2 Mbit/s", Site::DUMBBELL),
];

fn predicted(sample: &Sample, tax: f64) -> f64 {
    window::theorem_1(sample.round_trip, 0.0, tax, sample.congestion)
}

fn ratio(sample: &Sample, tax: f64) -> f64 {
    sample.throughput / predicted(sample, tax)
}

/// Relative difference of the measured throughput from (16), by error rate.
fn differences(cells: &Cells, path: Path) -> Vec<(u32, Mean)> {
    let difference = |point: &Point| {
        let samples = modelled(cells, (path, *point), |sample, tax| ratio(sample, tax) - 1.0);
        Some((point.1, Mean::of(&samples)?))
    };
    cells.points().iter().filter_map(difference).collect()
}

fn verdict(cells: &Cells, path: Path) -> Judged {
    Judged::all(differences(cells, path).iter().map(|(_, difference)| Judged::similar(difference)))
}

fn differences_shown(cells: &Cells, path: Path) -> String {
    let shown = |(at, difference): (u32, Mean)| format!("{} at {at} %", percent_shown(&difference));
    format!("{}: {}", path.0, differences(cells, path).into_iter().map(shown).collect::<Vec<_>>().join(", "))
}

fn table(cells: &Cells) -> Table {
    Table::of(
        "Throughput of one of twelve TCP-NR+ flows in packets per second: measured, and by equation (16)",
        [
            column("radio link", |((name, _), _): &Row| (*name).to_owned()),
            column("error rate", |(_, (_, percent)): &Row| format!("{percent} %")),
            measured(cells, "D in ms", 1, |sample| sample.round_trip * 1e3),
            measured(cells, "window", 1, |sample| sample.throughput * sample.round_trip),
            measured(cells, "q^c", 5, |sample| sample.congestion),
            measured(cells, "measured", 2, |sample| sample.throughput),
            calculated(cells, "equation (16)", predicted),
            calculated(cells, "measured / equation (16)", ratio),
        ],
        cells.senders().iter().flat_map(|path| cells.points().iter().map(|point| (*path, *point))),
    )
}

fn chart(cells: &Cells, path: Path) -> Chart {
    let theorem: Vec<_> = cells
        .points()
        .iter()
        .map(|point| (f64::from(point.1), modelled(cells, (path, *point), predicted)))
        .collect();
    Chart {
        title: format!("Theorem 1 at {} (not drawn in the paper)", path.0),
        x: Axis::new("packet error rate, %", Scale::FromZero),
        y: Axis::new("throughput per flow, packets/s", Scale::Logarithmic),
        curves: vec![
            cells.line(path, "TCP-NR+", |(_, percent)| f64::from(percent), |sample| sample.throughput),
            Curve::line("equation (16)", theorem.iter().map(|(x, samples)| (*x, samples.as_slice()))),
        ],
    }
}

/// Compares (16) with the measured throughput of TCP-NR+ on several paths.
pub fn theorem_1(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let points: Vec<_> = extent.error_rates.iter().map(|percent| (NR_PLUS, *percent)).collect();
    let paths: Vec<_> = LARGE.into_iter().chain(OTHERS).collect();
    let cells = measure(effort, &paths, &points, extent)?;
    let on_other = |path: Path| format!("{}: {}", path.0, verdict(&cells, path).name());
    let approximately = claim(
        At("§III-C, Theorem 1"),
        "“The throughput of TCP-NR+ is approximately: (16)”",
        format!(
            "measured throughput compared with (16): {}",
            LARGE.map(|path| differences_shown(&cells, path)).join("; ")
        ),
        Judged::all(LARGE.map(|path| verdict(&cells, path))),
    );
    Ok(Finding {
        charts: paths.iter().map(|path| chart(&cells, *path)).collect(),
        tables: vec![table(&cells)],
        claims: vec![approximately, without_tax()],
        remarks: vec![format!("Verdict on other paths: {}.", OTHERS.map(on_other).join("; "))],
        ..Finding::default()
    })
}

/// Without a tax, (16) is the square-root law. This is calculated, without a run.
fn without_tax() -> Claim {
    let differences = [1e-4, 1e-3, 1e-2, 1e-1].map(|q_c| {
        let friendly = (1.5_f64 / q_c).sqrt() / 0.1;
        window::theorem_1(0.1, 0.0, 0.0, q_c) / friendly - 1.0
    });
    let largest = differences.into_iter().map(f64::abs).fold(0.0, f64::max);
    claim(
        At("§III-C"),
        "“It is worth noting that (16) reduces to … the throughput of a TCP-friendly flow defined in [7], \
         when q^wb = q^r = 0.”",
        format!("largest relative difference {largest:.0e}, for q^c from 1e-4 to 0.1"),
        Judged::all(differences.map(|difference| Judged::similar(&exact(difference)))),
    )
    .not_counted(Counts::ByConstruction("calculated, without a run".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calculated by hand: q^w = 0.04, q^r = 0, q^c = 0.02, so q = 0.06.
    /// 8·0.06·0.02 / (0.18 + 0.04) = 0.0096 / 0.22 = 0.0436364; √(0.0016 + 0.0436364) = 0.2126884;
    /// 2 / (0.2126884 − 0.04) = 11.58155; divided by D = 0.2 s: 57.908 packets per second.
    #[test]
    fn equation_16_matches_hand_calculation() {
        assert!((window::theorem_1(0.2, 0.0, 0.04, 0.02) - 57.908).abs() < 1e-3);
        assert!(
            (window::theorem_1(0.2, 0.01, 0.03, 0.02) - 57.908).abs() < 1e-3,
            "reordering is taxed as well"
        );
    }

    #[test]
    fn theorem_without_tax_follows_square_root_law() {
        assert_eq!(without_tax().judged, Judged::Holds);
    }

    #[test]
    fn throughput_decreases_with_congestion() {
        let at = |q_c| window::theorem_1(0.1, 0.0, 0.02, q_c);
        assert!(at(0.01) > at(0.02) && at(0.02) > at(0.05));
    }
}
