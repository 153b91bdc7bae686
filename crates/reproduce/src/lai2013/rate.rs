//! Equation (1), the rate adaptation process (§II-B): its equilibrium in the ideal case, with (4) and (5) of the ideal
//! compensator, and with (7) and (11) of the rebate. The measured throughput of flows is compared with the ideal case.

use airtcp::recovery::window::ideal_compensator;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::comparison::percent_shown;
use super::flows::{Cells, LARGE, Path, Row, Sample, calculated, exact, measure, measured, modelled};
use super::setting::{Extent, NR, NR_PLUS, Plus, Scheme, Variant};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::{At, Claim, Counts, Effort, Finding, Found, Judged, Table, column, found, mean};

const DIFFERENTIATOR: Variant = Scheme::IdealDifferentiator.plain();
const COMPENSATOR: Variant = Scheme::NewReno.plus(Plus::Ideal);
/// The senders that should attain the ideal process although packets are damaged.
const SENDERS: [Variant; 3] = [DIFFERENTIATOR, COMPENSATOR, NR_PLUS];

/// Values of q^c: the range of the drop rates of queues in these runs.
const CONGESTION: [f64; 3] = [1e-4, 1e-3, 1e-2];
/// Values of T: the paper's error rates, 1 to 12 %.
const TAXES: [f64; 5] = [0.01, 0.02, 0.04, 0.08, 0.12];

/// The source of γ and ε in (1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parameters {
    /// Both zero, and q = q^c: "the ideal rate adaptation process".
    Ideal,
    /// (4) and (5), and q = q^a.
    Compensator,
    /// (7) and (11), and q = q^a.
    Rebate,
}

impl Parameters {
    /// q, γ and ε for a window of `w` packets.
    fn at(self, w: f64, q_c: f64, tax: f64) -> (f64, f64, f64) {
        let q = q_c + tax;
        match self {
            Self::Ideal => (q_c, 0.0, 0.0),
            Self::Compensator => {
                let (gamma, epsilon) = ideal_compensator(w, q_c, q);
                (q, gamma, epsilon)
            }
            Self::Rebate => {
                let np = w / (1.0 - (1.0 - q).powf(w));
                (q, w * tax, (tax * (np - w)).min(1.0))
            }
        }
    }

    /// The equilibrium window of (1) in packets: x(t+1) = x(t), with W = Dx. It does not depend on the unit of t,
    /// unlike the result of stepping through (1).
    fn equilibrium_window(self, q_c: f64, tax: f64) -> f64 {
        let grows = |w: f64| {
            let (q, gamma, epsilon) = self.at(w, q_c, tax);
            let unmarked = (1.0 - q).powf(w);
            (1.0 + gamma) * unmarked > 2.0 * (1.0 - epsilon) / (3.0 + epsilon) * (1.0 - unmarked) * w
        };
        let (mut low, mut high) = (1e-6, 1e6);
        for _ in 0..200 {
            let middle = f64::sqrt(low * high);
            if grows(middle) { low = middle } else { high = middle }
        }
        low
    }
}

/// Relative difference of the equilibrium with `parameters` from the equilibrium with `reference`, for each q^c and
/// tax.
fn differences(parameters: Parameters, reference: Parameters) -> Vec<Mean> {
    let points = CONGESTION.into_iter().flat_map(|q_c| TAXES.map(|tax| (q_c, tax)));
    points
        .map(|(q_c, tax)| {
            exact(parameters.equilibrium_window(q_c, tax) / reference.equilibrium_window(q_c, tax) - 1.0)
        })
        .collect()
}

fn range(gains: &[Mean]) -> String {
    let by = |one: &&Mean, other: &&Mean| one.mean.total_cmp(&other.mean);
    match gains.iter().min_by(by).zip(gains.iter().max_by(by)) {
        Some((least, most)) => format!("{:+.0} to {:+.0} %", 100.0 * least.mean, 100.0 * most.mean),
        None => String::new(),
    }
}

/// Packets per second at the ideal equilibrium of (1).
fn predicted(sample: &Sample, _: f64) -> f64 {
    Parameters::Ideal.equilibrium_window(sample.congestion, 0.0) / sample.round_trip
}

/// Measured throughput divided by the ideal equilibrium of (1) for the same q^c and D.
fn ratio(sample: &Sample, tax: f64) -> f64 {
    sample.throughput / predicted(sample, tax)
}

/// The ratio of a sender by error rate, then by seed. Error rates without values are left out.
fn ratios(cells: &Cells, path: Path, sender: Variant) -> Vec<(u32, Vec<f64>)> {
    let points = cells.points().iter().filter(|(point_sender, _)| *point_sender == sender);
    let ratios = points.map(|point| (point.1, modelled(cells, (path, *point), ratio)));
    ratios.filter(|(_, ratios)| !ratios.is_empty()).collect()
}

/// The relative difference from the ideal equilibrium on each path.
fn compared(cells: &Cells, sender: Variant) -> Found {
    let difference = |(at, ratios): (u32, Vec<f64>)| {
        (at, mean(&ratios.iter().map(|ratio| ratio - 1.0).collect::<Vec<_>>()))
    };
    let on_path =
        |path: Path| -> Vec<_> { ratios(cells, path, sender).into_iter().map(difference).collect() };
    let paths_shown = LARGE.map(|path| {
        let shown = |(at, difference): (u32, Mean)| format!("{} at {at} %", percent_shown(&difference));
        let points: Vec<_> = on_path(path).into_iter().map(shown).collect();
        format!("{}, {}: {}", sender.name(), path.0, points.join(", "))
    });
    let judged = LARGE
        .map(|path| Judged::all(on_path(path).iter().map(|(_, difference)| Judged::similar(difference))));
    (format!("measured throughput compared with (1): {}", paths_shown.join("; ")), Judged::all(judged))
}

fn equilibrium_table() -> Table {
    let equilibrium = |parameters: Parameters| {
        move |(q_c, tax): &(f64, f64)| format!("{:.2}", parameters.equilibrium_window(*q_c, *tax))
    };
    Table::of(
        "Equilibrium window of equation (1), in packets",
        [
            column("q^c", |(q_c, _): &(f64, f64)| format!("{q_c}")),
            column("T", |(_, tax): &(f64, f64)| format!("{} %", 100.0 * tax)),
            column("ideal", equilibrium(Parameters::Ideal)),
            column("(4) and (5)", equilibrium(Parameters::Compensator)),
            column("rebate, (7) and (11)", equilibrium(Parameters::Rebate)),
            // TCP-NR reacts to the tax as to congestion.
            column("TCP-NR", |(q_c, tax): &(f64, f64)| {
                format!("{:.2}", Parameters::Ideal.equilibrium_window(q_c + tax, 0.0))
            }),
        ],
        CONGESTION.into_iter().flat_map(|q_c| TAXES.map(|tax| (q_c, tax))),
    )
}

fn table(cells: &Cells) -> Table {
    Table::of(
        "Throughput of one of twelve flows in packets per second: measured, and by (1) with the flows' q^c \
         and D",
        [
            column("radio link", |((name, _), _): &Row| (*name).to_owned()),
            column("sender", |(_, (sender, _)): &Row| sender.name()),
            column("error rate", |(_, (_, percent)): &Row| format!("{percent} %")),
            measured(cells, "D in ms", 1, |sample| 1e3 * sample.round_trip),
            measured(cells, "q^c", 5, |sample| sample.congestion),
            measured(cells, "measured", 2, |sample| sample.throughput),
            calculated(cells, "equation (1)", predicted),
            calculated(cells, "measured / equation (1)", ratio),
        ],
        LARGE.into_iter().flat_map(|path| cells.points().iter().map(move |point| (path, *point))),
    )
}

fn chart(cells: &Cells, path: Path) -> Chart {
    let curve = |sender: Variant| {
        let ratios = ratios(cells, path, sender);
        let points = ratios.iter().map(|(at, samples)| (f64::from(*at), samples.as_slice()));
        (!ratios.is_empty()).then(|| Curve::line(sender.name(), points))
    };
    Chart {
        title: format!("Measured throughput over equation (1), at {} (not drawn in the paper)", path.0),
        x: Axis::new("packet error rate, %", Scale::FromZero),
        y: Axis::new("measured / equation (1)", Scale::Logarithmic),
        curves: [NR].into_iter().chain(SENDERS).filter_map(curve).collect(),
    }
}

/// Compares (1) with measured flows. Cost: 20 runs of 120 s at 10 and 20 Mbit/s per seed.
pub fn rate_adaptation(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let lossy: Vec<_> = extent.error_rates.iter().copied().filter(|percent| *percent > 0).collect();
    let points: Vec<_> = std::iter::once((NR, 0))
        .chain(SENDERS.into_iter().flat_map(|sender| lossy.iter().map(move |percent| (sender, *percent))))
        .collect();
    let cells = measure(effort, &LARGE, &points, extent)?;
    Ok(Finding {
        charts: LARGE.map(|path| chart(&cells, path)).to_vec(),
        tables: vec![equilibrium_table(), table(&cells)],
        claims: claims(&cells),
        remarks: vec![
            "(5) neglects the ε in the denominator of (1). With (4) and (5), a decrease has the factor 2/(3 \
             + ε) instead of the ideal 2/3. The equilibrium is therefore up to 15 % higher: √(4/3) times the \
             ideal one."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

fn claims(cells: &Cells) -> Vec<Claim> {
    let compensated = differences(Parameters::Compensator, Parameters::Ideal);
    let rebated = differences(Parameters::Rebate, Parameters::Compensator);
    let compared_by_formula = |gains: &[Mean]| (range(gains), Judged::all(gains.iter().map(Judged::similar)));
    vec![
        found(
            At("§II-B"),
            "“(1) with q(t) = q^c(t) and ϵ = γ = 0 corresponds to the well-behaved rate adaptation process \
             of TCP-NR over reliable, in-order transmission channels.”",
            compared(cells, NR),
        ),
        found(
            At("§II-B 2"),
            "“It restores q(t) to be q^c(t), thereby attaining the ideal rate adaptation process.” (Here: \
             the ideal differentiator.)",
            compared(cells, DIFFERENTIATOR),
        ),
        found(
            At("§II-B 3"),
            "“With q(t) = q^a(t), this is attained by adapting γ and ϵ as: …” (Here: equations (4) and (5).)",
            {
                let (ours, judged) = compared_by_formula(&compensated);
                let (measured, _) = compared(cells, COMPENSATOR);
                (
                    format!(
                        "equilibrium with (4) and (5): {ours} compared with the ideal, over all q^c and T; \
                         {measured}"
                    ),
                    judged,
                )
            },
        )
        .not_counted(Counts::ByConstruction("equations (4) and (5) define these values".to_owned())),
        found(
            At("§III"),
            "“In this section, we propose a tax-rebate approach as a close approximation of the compensation \
             scheme.”",
            {
                let (ours, judged) = compared_by_formula(&rebated);
                let (measured, _) = compared(cells, NR_PLUS);
                (
                    format!(
                        "equilibrium with the rebate: {ours} compared with (4) and (5), over all q^c and T; \
                         {measured}"
                    ),
                    judged,
                )
            },
        )
        .not_counted(Counts::Repeats(
            "“an excellent approximation of the compensation schemes” (§V)".to_owned(),
        )),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With few losses, (1) adds 1 and subtracts 2/3 · qW · W: W = √(1.5 / q), the TCP-friendly flow of §III-C.
    #[test]
    fn ideal_rate_follows_square_root_law() {
        for q_c in [1e-4, 1e-5] {
            let friendly = (1.5_f64 / q_c).sqrt();
            assert!((Parameters::Ideal.equilibrium_window(q_c, 0.3) / friendly - 1.0).abs() < 0.01, "{q_c}");
        }
    }

    /// Without a tax, all three parameter sets are the same.
    #[test]
    fn parameter_sets_are_equal_without_tax() {
        let ideal = Parameters::Ideal.equilibrium_window(1e-3, 0.0);
        for parameters in [Parameters::Compensator, Parameters::Rebate] {
            let settled = parameters.equilibrium_window(1e-3, 0.0);
            assert!((settled / ideal - 1.0).abs() < 1e-9, "{parameters:?}: {settled}, {ideal}");
        }
    }

    /// Calculated by hand for W = 10, q^c = 0.001 and T = 0.04. With (4), equation (1) adds (0.999)^10 as in the ideal
    /// case. With (5), it subtracts 2 / (3 + ε) of 1 − 0.999^10, where ε = 1 − 0.009955 / 0.342060 = 0.970897.
    #[test]
    fn equations_4_and_5_match_hand_calculation() {
        let (q, gamma, epsilon) = Parameters::Compensator.at(10.0, 0.001, 0.04);
        assert!((q - 0.041).abs() < 1e-12);
        assert!(((1.0 + gamma) * (1.0 - q).powf(10.0) - 0.999_f64.powf(10.0)).abs() < 1e-12);
        assert!((epsilon - 0.970897).abs() < 1e-5, "{epsilon}");
    }
}
