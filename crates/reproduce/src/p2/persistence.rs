//! Fig. 3 (§2.3): how often RLC tries decides how many segments TCP loses.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::setting::{Buffers, Point, Sample, max_dat, percent, sample};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, shown};

/// "The traffic is a 2 Mbyte TCP stream" (§5.1).
const FILE: u64 = 2_000_000;
/// "Original simulator implemented RLC on OPNET with BSD RTO emulation".
const SENDER: &str = "timer-bsd";

/// MAX DAT: retransmissions of a PDU.
const ATTEMPTS: [u32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
/// Those that the verdict hangs on.
const FEW_ATTEMPTS: [u32; 4] = [3, 4, 5, 8];
/// "MAX DAT should be at least 5".
const ENOUGH: u32 = 5;

const BLER: f64 = 0.1;
/// PDUs of a segment: 1500 octets at 40 in each, and one more, because a segment begins anywhere in a PDU.
const PDUS: f64 = 1500.0 / 40.0 + 1.0;

/// The probability that at least one of `pdus` PDUs is damaged in all of its transmissions.
fn segment_loss(bler: f64, transmissions: u32, pdus: f64) -> f64 {
    1.0 - (1.0 - bler.powi(transmissions as i32)).powf(pdus)
}

/// What the paper does not say.
struct Unstated {
    name: &'static str,
    preset: &'static str,
    tsp: &'static str,
    buffers: Buffers,
}

/// Packets are given up one by one.
const MRW: &str = "wcdma-384-maxdat";
/// Giving one up throws away all that is under way.
const RESET: &str = "wcdma-384-tsp";

const CHOSEN: Unstated =
    Unstated { name: "as chosen", preset: MRW, tsp: "300ms", buffers: Buffers::Unlimited };
const OTHERS: [Unstated; 4] = [
    Unstated { name: "window of 64 KB", buffers: Buffers::Kbytes64, ..CHOSEN },
    Unstated { name: "RESET, not MRW", preset: RESET, ..CHOSEN },
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

/// How much more there is with the largest MAX DAT than with one less than enough, and than with enough.
fn lacking(attempts: &[u32], samples: &[Sample]) -> [Mean; 2] {
    let at = |wanted: u32| {
        let index = attempts.iter().position(|attempts| *attempts == wanted);
        &samples[index.expect("one of those that ran")]
    };
    let most = samples.last().expect("some ran");
    [most.gain(at(ENOUGH - 1)), most.gain(at(ENOUGH))]
}

/// Less than 5 is too little, and 5 is as good as more.
fn is_needed([one_less, enough]: &[Mean; 2]) -> Judged {
    Judged::all([Judged::better(one_less), Judged::similar(enough)])
}

/// Cost: 25 transfers for each seed.
pub(super) fn figure_3(effort: &Effort) -> Result<Finding, WorldError> {
    let samples = run(effort, &CHOSEN, &ATTEMPTS)?;
    let others =
        OTHERS.iter().map(|unstated| run(effort, unstated, &FEW_ATTEMPTS)).collect::<Result<Vec<_>, _>>()?;

    let mut table = Table::new(
        "2 MB at BLER 10 %, windows without limit",
        &[
            "MAX DAT (retransmissions)",
            "MaxDAT of TS 25.322",
            "kbit/s",
            "segments lost, %",
            "1 − (1 − BLER^n)^PDUs, %",
            "timeouts",
        ],
    );
    for (&attempts, sample) in ATTEMPTS.iter().zip(&samples) {
        table.row([
            attempts.to_string(),
            max_dat(attempts).to_string(),
            shown(&sample.mean(|t| t.kbit_per_s), 1),
            shown(&sample.mean(|t| 100.0 * t.lost), 3),
            format!("{:.3}", 100.0 * segment_loss(BLER, attempts + 1, PDUS)),
            shown(&sample.mean(|t| t.timeouts), 1),
        ]);
    }
    let mut swept = Table::new(
        "What is not stated, swept: kbit/s by MAX DAT, and what 8 has over 4 and 5",
        &["", "3", "4", "5", "8", "8 over 4", "8 over 5", "5 is needed, and enough"],
    );
    for (unstated, samples) in OTHERS.iter().zip(&others) {
        let lacking = lacking(&FEW_ATTEMPTS, samples);
        let throughputs = samples.iter().map(|sample| shown(&sample.mean(|t| t.kbit_per_s), 1));
        swept.row(
            std::iter::once(unstated.name.to_owned())
                .chain(throughputs)
                .chain(lacking.iter().map(percent))
                .chain([is_needed(&lacking).name().to_owned()]),
        );
    }

    let needed = lacking(&ATTEMPTS, &samples);
    let fewer_lost = samples[1].minus(&samples[3], |t| 100.0 * t.lost);
    let claims = vec![
        Claim {
            paper: "“we found that MAX DAT should be at least 5 to achieve BLER (BLock Error Rate) 0 = 10% in the simulated network”: 4 is too little, and 5 similar to more.".to_owned(),
            place: "§2.3, Fig. 3".to_owned(),
            counts: Counts::Yes,
            ours: format!("8 has {} over 4, and {} over 5", percent(&needed[0]), percent(&needed[1])),
            judged: is_needed(&needed),
        },
        Claim {
            paper: "“Throughput and Down link segment loss rate vs MAX DAT”: more persistence, fewer segments lost.".to_owned(),
            place: "Fig. 3".to_owned(),
            counts: Counts::Own("the figure's second curve, of which the text says nothing".to_owned()),
            ours: format!("from 1 to 3 retransmissions {} % of all segments fewer", shown(&fewer_lost, 2)),
            judged: Judged::above_zero(&fewer_lost),
        },
    ];
    let choices = [
        "The other reading, that of TS 25.322, in which MAX DAT counts transmissions and 5 of them are never made, would have the paper's 5 in the row of 3, where the throughput is far below.",
        "What RLC gives up is discarded alone (an MRW tells the receiver); a RESET would throw away all that is under way. TSP 300 ms, as long as the round trip, so that no report asks for what was just sent again. The second table has other choices.",
    ]
    .map(str::to_owned)
    .to_vec();
    let charts = charts(&samples);
    Ok(Finding { tables: vec![table, swept], charts, claims, choices, remarks: Vec::new() })
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
    fn a_segment_is_lost_if_one_pdu_of_it_fails_each_time() {
        assert!((segment_loss(0.1, 1, 1.0) - 0.1).abs() < 1e-12);
        assert!((segment_loss(0.1, 2, 2.0) - (1.0 - 0.99 * 0.99)).abs() < 1e-12);
        // 38.5 PDUs: four transmissions lose one segment in 260, three one in 26.
        assert!((1.0 / segment_loss(0.1, 4, PDUS) - 260.0).abs() < 1.0);
        assert!((1.0 / segment_loss(0.1, 3, PDUS) - 26.5).abs() < 0.1);
    }
}
