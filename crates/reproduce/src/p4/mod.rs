//! The figures of P4: E-TCP, which is told where a packet was lost.

pub mod setting;

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::{Report, Run};
use airtcp_sim::world::WorldError;
use airwire::time::Duration;
use setting::{BIT_ERROR_RATES, MSS, Variant, Way, choices, packet_error_rate, plan};

use super::{Claim, Counts, Effort, Figure, Finding, Judged, Paper, Table, cell, shown};

const LENGTH: Duration = Duration::from_secs(600);

pub const FIGURES: &[Figure] = &[
    figure("p4-table3", "E-TCP against Reno at a bit error rate of 1e-3, in three directions", |effort| {
        table3(effort, LENGTH)
    }),
    figure("p4-fig6", "goodput against the bit error rate, from a fixed host to a mobile one", |effort| {
        goodput(effort, Way::FixedToMobile, LENGTH)
    }),
    figure("p4-fig7", "goodput against the bit error rate, from a mobile host to a fixed one", |effort| {
        goodput(effort, Way::MobileToFixed, LENGTH)
    }),
    figure("p4-fig8", "goodput against the bit error rate, from a mobile host to another", |effort| {
        goodput(effort, Way::MobileToMobile, LENGTH)
    }),
];

const fn figure(
    id: &'static str,
    title: &'static str,
    run: fn(&Effort) -> Result<Finding, WorldError>,
) -> Figure {
    Figure { id, paper: Paper::P4, title, run }
}

/// Received packets: Reno, E-TCP, and what the paper calls the gain in percent.
const TABLE3: [(u32, u32, f64); 3] = [(2624, 3176, 21.04), (2722, 3341, 22.74), (2735, 3459, 26.47)];

/// By sender in the order of `Variant::ALL`, then by seed.
type BySender = [Vec<f64>; Variant::ALL.len()];

/// What was measured, in the order of the cases.
struct Samples {
    packets: Vec<BySender>,
    timeouts: Vec<BySender>,
}

fn received(report: &Report) -> f64 {
    (report.flows[0].delivered / u64::from(MSS)) as f64
}

fn run(effort: &Effort, cases: &[(Way, f64)], length: Duration) -> Result<Samples, WorldError> {
    let mut points = Vec::new();
    for (way, bit_error_rate) in cases {
        for sender in Variant::ALL {
            points.push(plan(*way, sender, *bit_error_rate, length)?);
        }
    }
    let found = effort.sample(
        &points,
        |point, seed| Run { seed, ..point.clone() },
        |_, report| (received(report), report.flows[0].counters.timeouts as f64),
    )?;
    let by_sender = |value: fn(&(f64, f64)) -> f64| {
        let mut samples = found.iter().map(|point| point.iter().map(value).collect());
        cases.iter().map(|_| Variant::ALL.map(|_| samples.next().unwrap_or_default())).collect()
    };
    Ok(Samples { packets: by_sender(|sample| sample.0), timeouts: by_sender(|sample| sample.1) })
}

/// The mean gain in per cent.
fn gain(samples: &[f64], over: &[f64]) -> Option<Mean> {
    Mean::of(&gains(samples, over).into_iter().map(|gain| 100.0 * gain).collect::<Vec<_>>())
}

pub fn table3(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let cases = Way::ALL.map(|way| (way, 1e-3));
    let Samples { packets: samples, timeouts } = run(effort, &cases, length)?;
    let mut table = Table::new(
        format!("Packets received in {} s, and in the paper", length.as_secs_f64()),
        &[
            "direction",
            "Reno in the paper",
            "E-TCP in the paper",
            "gain in the paper",
            "Reno",
            "E-TCP",
            "gain in %",
            "E-TCP, first mark",
            "NewReno",
        ],
    );
    let mut claims = Vec::new();
    let mut gains = Vec::new();
    for ((way, [reno, etcp, early, newreno]), (paper_reno, paper_etcp, paper)) in
        Way::ALL.into_iter().zip(&samples).zip(TABLE3)
    {
        let Some(ours) = gain(etcp, reno) else { continue };
        table.row([
            way.name().to_owned(),
            paper_reno.to_string(),
            paper_etcp.to_string(),
            format!("{paper} %"),
            cell(reno, 0),
            cell(etcp, 0),
            shown(&ours, 1),
            cell(early, 0),
            cell(newreno, 0),
        ]);
        claims.push(Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("{}: E-TCP receives {paper}% more packets than Reno", way.name()),
            ours: format!("{} % more", shown(&ours, 1)),
            judged: Judged::extent(&ours, paper),
        });
        gains.push(ours.mean);
    }
    let pairs = |one: usize, other: usize| {
        let of = |way: usize| {
            let [reno, etcp, ..] = &samples[way];
            etcp.iter().zip(reno).map(|(etcp, reno)| 100.0 * (etcp / reno - 1.0)).collect::<Vec<_>>()
        };
        let differences: Vec<_> = of(other).iter().zip(of(one)).map(|(other, one)| other - one).collect();
        Mean::of(&differences).map_or(Judged::Undecided, |mean| Judged::above_zero(&mean))
    };
    claims.push(Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "the gain is largest from mobile to mobile, over two radio links".to_owned(),
        ours: format!(
            "gains of {}",
            gains.iter().map(|gain| format!("{gain:.0} %")).collect::<Vec<_>>().join(", ")
        ),
        judged: match (pairs(0, 2), pairs(1, 2)) {
            (Judged::Holds, Judged::Holds) => Judged::Holds,
            (Judged::DoesNotHold, _) | (_, Judged::DoesNotHold) => Judged::DoesNotHold,
            _ => Judged::Undecided,
        },
    });
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![table],
        claims,
        choices: choices(),
        remarks: vec![about_timeouts(&timeouts, length)],
    })
}

/// E-TCP changes nothing about timeouts, so their number limits what marks can gain.
fn about_timeouts(timeouts: &[BySender], length: Duration) -> String {
    let row = |(way, [reno, etcp, early, _]): (Way, &BySender)| {
        let [reno, etcp, early] = [reno, etcp, early].map(|samples| cell(samples, 0));
        format!("{}: {reno} of Reno, {etcp} of E-TCP, {early} if it acts on the first mark", way.name())
    };
    let rows: Vec<_> = Way::ALL.into_iter().zip(timeouts).map(row).collect();
    format!("Timeouts in {} s, which E-TCP takes as Reno does. {}.", length.as_secs_f64(), rows.join("; "))
}

pub fn goodput(effort: &Effort, way: Way, length: Duration) -> Result<Finding, WorldError> {
    let cases = BIT_ERROR_RATES.map(|(_, rate)| (way, rate));
    let samples = run(effort, &cases, length)?.packets;
    let names = Variant::ALL.map(Variant::name);
    let columns: Vec<_> =
        ["BER", "packets lost"].into_iter().chain(names).chain(["E-TCP over Reno, in %"]).collect();
    let mut table = Table::new("Goodput in kbit/s, against the bit error rate of the radio", &columns);
    let kbit_s = |packets: &f64| packets * f64::from(MSS) * 8.0 / length.as_secs_f64() / 1e3;
    let mut gains = Vec::new();
    for ((name, rate), row) in BIT_ERROR_RATES.into_iter().zip(&samples) {
        let [reno, etcp, ..] = row;
        let Some(over_reno) = gain(etcp, reno) else { continue };
        let cells = row.each_ref().map(|samples| cell(&samples.iter().map(kbit_s).collect::<Vec<_>>(), 2));
        let lost = format!("{:.3} %", 100.0 * packet_error_rate(rate));
        table.row([name.to_owned(), lost].into_iter().chain(cells).chain([shown(&over_reno, 1)]));
        gains.push((name, over_reno));
    }
    let listed: Vec<_> = gains.iter().map(|(name, gain)| format!("{} % at {name}", shown(gain, 1))).collect();
    let (worst, rest) = (gains.first(), gains.get(1..).unwrap_or_default());
    // The worst radio decides: where hardly anything is lost, there is nothing to gain.
    let behind = rest.iter().any(|(_, gain)| Judged::above_zero(gain) == Judged::DoesNotHold);
    let at_worst = worst.map_or(Judged::Undecided, |(_, gain)| Judged::above_zero(gain));
    let grows = rest.iter().zip(&gains).map(|((_, less), (_, more))| more.mean - less.mean);
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("{}: E-TCP provides a better goodput than Reno", way.name()),
            ours: listed.join(", "),
            judged: match at_worst {
                Judged::Holds if behind => Judged::HoldsInPart,
                other => other,
            },
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "… the more so the higher the bit error rate".to_owned(),
            ours: "the same numbers, from the worst radio to the best".to_owned(),
            judged: grows_with_errors(&grows.collect::<Vec<_>>(), &gains),
        },
    ];
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices: choices(), remarks: Vec::new() })
}

/// Whether every step to a worse radio adds more to the gain than the interval of the smaller gain covers.
fn grows_with_errors(steps: &[f64], gains: &[(&str, Mean)]) -> Judged {
    let widths = gains.iter().skip(1).map(|(_, gain)| gain.half_width.unwrap_or(f64::INFINITY));
    let mut judged = Judged::Holds;
    for (step, width) in steps.iter().zip(widths) {
        if *step < -width {
            return Judged::DoesNotHold;
        }
        if step.abs() <= width {
            judged = Judged::HoldsInPart;
        }
    }
    judged
}
