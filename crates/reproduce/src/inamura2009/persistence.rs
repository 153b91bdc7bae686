//! Fig. 3 (§2.3): the more often RLC retransmits a PDU, the fewer segments TCP loses.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::setting::{Buffers, Point, Sample, Transfer, max_dat, percent, sample};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::{At, Counts, Effort, Finding, Judged, Table, claim, column, shown};

/// "The traffic is a 2 Mbyte TCP stream" (§5.1).
const FILE: u64 = 2_000_000;
/// "Original simulator implemented RLC on OPNET with BSD RTO emulation".
const SENDER: &str = "timer-bsd";

/// Values of MAX DAT: retransmissions of a PDU.
const ATTEMPTS: [u32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
/// The values of MAX DAT that decide the claim.
const FEW_ATTEMPTS: [u32; 4] = [3, 4, 5, 8];
/// "MAX DAT should be at least 5".
const ENOUGH: u32 = 5;

const BLER: f64 = 0.1;
/// PDUs per segment: 1500 bytes at 40 bytes per PDU, and one more because a segment can begin anywhere in a PDU.
const PDUS: f64 = 1500.0 / 40.0 + 1.0;

/// The probability that at least one of `pdus` PDUs is damaged in all of its transmissions.
fn segment_loss(bler: f64, transmissions: u32, pdus: f64) -> f64 {
    1.0 - (1.0 - bler.powi(transmissions as i32)).powf(pdus)
}

/// Settings that the paper does not state.
struct Unstated {
    name: &'static str,
    preset: &'static str,
    tsp: &'static str,
    buffers: Buffers,
}

/// The preset in which RLC discards packets one by one.
const MRW: &str = "wcdma-384-maxdat";
/// The preset in which RLC resets the bearer, which discards all packets in transit.
const RESET: &str = "wcdma-384-tsp";

const CHOSEN: Unstated =
    Unstated { name: "as chosen", preset: MRW, tsp: "300ms", buffers: Buffers::Unlimited };
const OTHERS: [Unstated; 4] = [
    Unstated { name: "window of 64 KB", buffers: Buffers::Kbytes64, ..CHOSEN },
    Unstated { name: "RESET instead of MRW", preset: RESET, ..CHOSEN },
    Unstated { name: "TSP 150 ms", tsp: "150ms", ..CHOSEN },
    Unstated { name: "TSP 500 ms", tsp: "500ms", ..CHOSEN },
];

fn run(effort: &Effort, unstated: &Unstated, attempts: &[u32]) -> Result<Vec<Sample>, WorldError> {
    let points = attempts
        .iter()
        .map(|&attempts| {
            let settings = [
                ("sender.discard.max_dat", max_dat(attempts).to_string()),
                ("receiver.timer_status_prohibit", unstated.tsp.to_owned()),
            ];
            Point::new(unstated.preset, &settings, SENDER, FILE, unstated.buffers)
        })
        .collect::<Result<Vec<_>, _>>()?;
    sample(effort, &points)
}

/// Throughput gain of the largest MAX DAT over the value below [`ENOUGH`], and over [`ENOUGH`].
fn gains_of_most(attempts: &[u32], samples: &[Sample]) -> [Mean; 2] {
    let at = |wanted: u32| {
        let index = attempts.iter().position(|attempts| *attempts == wanted);
        &samples[index.expect("a value that was run")]
    };
    let most = samples.last().expect("at least one sample");
    [most.gain(at(ENOUGH - 1)), most.gain(at(ENOUGH))]
}

/// Whether less than [`ENOUGH`] is too low, and [`ENOUGH`] is similar to the largest value.
fn is_needed_and_enough([one_less, enough]: &[Mean; 2]) -> Judged {
    Judged::all([Judged::better(one_less), Judged::similar(enough)])
}

/// A row of the second table.
type Row<'a> = (&'a Unstated, &'a Vec<Sample>);

/// Cost: 25 transfers for each seed.
pub(super) fn figure_3(effort: &Effort) -> Result<Finding, WorldError> {
    let samples = run(effort, &CHOSEN, &ATTEMPTS)?;
    let others =
        OTHERS.iter().map(|unstated| run(effort, unstated, &FEW_ATTEMPTS)).collect::<Result<Vec<_>, _>>()?;

    let of = |heading: &str, digits: usize, value: fn(&Transfer) -> f64| {
        column(heading, move |(_, sample): &(u32, &Sample)| shown(&sample.mean(value), digits))
    };
    let table = Table::of(
        "Transfers of 2 MB at BLER 10 %, unlimited windows (n: transmissions per PDU)",
        [
            column("MAX DAT (retransmissions)", |(attempts, _): &(u32, &Sample)| attempts.to_string()),
            column("MaxDAT of TS 25.322", |(attempts, _): &(u32, &Sample)| max_dat(*attempts).to_string()),
            of("kbit/s", 1, |t| t.kbit_per_s),
            of("segments lost, %", 3, |t| 100.0 * t.lost),
            column("1 − (1 − BLER^n)^PDUs, %", |(attempts, _): &(u32, &Sample)| {
                format!("{:.3}", 100.0 * segment_loss(BLER, attempts + 1, PDUS))
            }),
            of("timeouts", 1, |t| t.timeouts),
        ],
        ATTEMPTS.into_iter().zip(&samples),
    );
    let gains = |(_, samples): &Row<'_>| gains_of_most(&FEW_ATTEMPTS, samples);
    let throughput = |index: usize| {
        column(FEW_ATTEMPTS[index].to_string(), move |(_, samples): &Row<'_>| {
            shown(&samples[index].mean(|t| t.kbit_per_s), 1)
        })
    };
    let swept = Table::of(
        "Settings that the paper does not state: kbit/s by MAX DAT, and the gain of 8 over 4 and 5",
        [
            column("changed setting", |(unstated, _): &Row<'_>| unstated.name.to_owned()),
            throughput(0),
            throughput(1),
            throughput(2),
            throughput(3),
            column("8 over 4", |row: &Row<'_>| percent(&gains(row)[0])),
            column("8 over 5", |row: &Row<'_>| percent(&gains(row)[1])),
            column("5 needed and sufficient", |row: &Row<'_>| {
                is_needed_and_enough(&gains(row)).name().to_owned()
            }),
        ],
        OTHERS.iter().zip(&others),
    );

    let gains = gains_of_most(&ATTEMPTS, &samples);
    let fewer_lost = samples[1].minus(&samples[3], |t| 100.0 * t.lost);
    let claims = vec![
        claim(
            At("§2.3, Fig. 3"),
            "“we found that MAX DAT should be at least 5 to achieve BLER (BLock Error Rate) 0 = 10% in the \
             simulated network” (Here: 4 is too low, and 5 is similar to higher values.)",
            format!(
                "throughput with 8: {} compared with 4, {} compared with 5",
                percent(&gains[0]),
                percent(&gains[1])
            ),
            is_needed_and_enough(&gains),
        ),
        claim(
            At("Fig. 3"),
            "“Throughput and Down link segment loss rate vs MAX DAT” (Here: with more retransmissions, fewer \
             segments are lost.)",
            format!(
                "with 3 instead of 1 retransmissions, {} percentage points fewer segments are lost",
                shown(&fewer_lost, 2)
            ),
            Judged::above_zero(&fewer_lost),
        )
        .not_counted(Counts::Own(
            "the second curve of the figure, which the text does not discuss".to_owned(),
        )),
    ];
    let charts = charts(&samples);
    Ok(Finding { tables: vec![table, swept], charts, claims, ..Finding::default() })
}

fn charts(samples: &[Sample]) -> Vec<Chart> {
    let chart = |name: &str, caption: &str, values: Vec<Vec<f64>>| {
        let xs = ATTEMPTS.iter().map(|attempts| f64::from(*attempts));
        Chart {
            title: format!("{name} vs MAX DAT"),
            x: Axis::new("MAX DAT", Scale::FromZero),
            y: Axis::new(caption, Scale::FromZero),
            curves: vec![Curve::line(name, xs.zip(values.iter().map(Vec::as_slice)))],
        }
    };
    let lost = samples.iter().map(|sample| sample.values(|t| 100.0 * t.lost)).collect();
    vec![
        chart("Throughput", "TCP throughput, kbit/s", samples.iter().map(Sample::throughputs).collect()),
        chart("Down link segment loss rate", "segments lost, %", lost),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_is_lost_if_any_pdu_exhausts_transmissions() {
        assert!((segment_loss(0.1, 1, 1.0) - 0.1).abs() < 1e-12);
        assert!((segment_loss(0.1, 2, 2.0) - (1.0 - 0.99 * 0.99)).abs() < 1e-12);
        // 38.5 PDUs: four transmissions lose one segment in 260, three one in 26.
        assert!((1.0 / segment_loss(0.1, 4, PDUS) - 260.0).abs() < 1.0);
        assert!((1.0 / segment_loss(0.1, 3, PDUS) - 26.5).abs() < 0.1);
    }
}
