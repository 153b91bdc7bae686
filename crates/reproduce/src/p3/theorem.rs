//! Theorem 1, compared with what the flows do.

use airlink::stage::Why;
use airtcp::recovery::window::theorem_1;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{Run, Until, run_watched};
use airtcp_sim::world::{World, WorldError};
use airwire::Cause;
use airwire::time::{Duration, Instant};
use rayon::prelude::*;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, shown};
use super::fairness::choices_of_the_dumbbell;
use super::setting::{Extent, Radio, Tax, Variant, plan};

/// Enough to have congestion losses at every error rate: without any, (16) has no bound.
const FLOWS: usize = 12;
/// How often the round-trip times are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// What one run measured: means over its flows.
#[derive(Clone, Copy)]
struct Sample {
    /// Packets per second, the retransmissions among them.
    throughput: f64,
    /// D, in seconds.
    round_trip: f64,
    /// q^c: the share of all packets that queues dropped.
    congestion: f64,
}

pub fn overlay(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let mut table = Table::new(
        "Throughput of one of twelve NewReno+ flows, and equation (16), in packets per second",
        &["error rate", "D in ms", "q^c", "measured", "equation (16)", "measured / (16)"],
    );
    let mut ratios = Vec::new();
    for percent in over.error_rates {
        let point = plan(Radio::Shared, *percent, &[Variant::NewRenoPlus(Tax::All); FLOWS], over)?;
        let seeds: Vec<_> = effort.seeds().collect();
        let samples: Vec<_> = seeds
            .into_par_iter()
            .map(|seed| measure(&Run { seed, ..point.clone() }))
            .collect::<Result<_, _>>()?;
        let tax = f64::from(*percent) / 100.0;
        let of = |value: &dyn Fn(&Sample) -> f64| Mean::of(&samples.iter().map(value).collect::<Vec<_>>());
        let predicted = |sample: &Sample| theorem_1(sample.round_trip, 0.0, tax, sample.congestion);
        let cells = [
            (of(&|sample| sample.round_trip * 1e3), 1),
            (of(&|sample| sample.congestion), 5),
            (of(&|sample| sample.throughput), 2),
            (of(&predicted), 2),
        ];
        let ratio = of(&|sample| sample.throughput / predicted(sample));
        let cells = cells.into_iter().chain([(ratio, 2)]);
        let cells = cells.map(|(mean, digits)| mean.map_or_else(String::new, |mean| shown(&mean, digits)));
        table.row([format!("{percent} %")].into_iter().chain(cells));
        ratios.extend(ratio.map(|ratio| (*percent, ratio)));
    }
    let shown: Vec<_> = ratios.iter().map(|(at, ratio)| format!("{:.2} at {at} %", ratio.mean)).collect();
    let approximately = Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "the throughput of TCP-NR+ is approximately (16)".to_owned(),
        ours: format!("measured, as a share of it: {}", shown.join(", ")),
        judged: Judged::all(ratios.iter().map(|(_, ratio)| agrees(ratio))),
    };
    Ok(Finding {
charts: Vec::new(),
        tables: vec![table],
        claims: vec![without_tax(), approximately],
        choices: choices_of_the_dumbbell(),
        remarks: vec![
            "D is the mean of the senders' smoothed round trips, one look a second; q^c the packets that the queue \
             dropped, of those sent. Agreement means: the whole interval of the mean is within a quarter. \
             (16) knows neither timeouts nor a least window of two segments."
                .to_owned(),
        ],
    })
}

fn measure(run: &Run) -> Result<Sample, WorldError> {
    let (mut next, mut sum, mut looks) = (run.from, 0.0, 0_u32);
    let mut at_start = None;
    let (_, world) = run_watched(run, |world| {
        if world.now() < next {
            return;
        }
        next += EVERY;
        at_start.get_or_insert_with(|| (sent(world), dropped(world)));
        let rtts = (0..world.flows()).filter_map(|flow| world.sender(flow)?.rtt().srtt());
        for rtt in rtts {
            sum += rtt.as_secs_f64();
            looks += 1;
        }
    })?;
    let (sent_before, dropped_before) = at_start.unwrap_or_default();
    let packets = (sent(&world) - sent_before) as f64;
    let end = match run.until {
        Until::At(end) => end,
        Until::Complete(limit) => Instant::ZERO + limit,
    };
    let seconds = end.saturating_since(run.from).as_secs_f64();
    Ok(Sample {
        throughput: packets / seconds / FLOWS as f64,
        round_trip: sum / f64::from(looks),
        congestion: (dropped(&world) - dropped_before) as f64 / packets,
    })
}

/// Data packets sent, copies included.
fn sent(world: &World) -> u64 {
    (0..world.flows()).map(|flow| world.result(flow).statistics.data_segments_out).sum()
}

/// Packets that queues dropped on the way down.
fn dropped(world: &World) -> u64 {
    let whys = Why::ALL.into_iter().filter(|why| why.cause() == Some(Cause::Congestion));
    whys.map(|why| world.path().totals().down.dropped_for(why)).sum()
}

/// Whether the two are within a quarter of each other, by the interval.
fn agrees(ratio: &Mean) -> Judged {
    let width = ratio.half_width.unwrap_or(f64::INFINITY);
    let (low, high) = (ratio.mean - width, ratio.mean + width);
    if low >= 0.75 && high <= 1.25 {
        Judged::Holds
    } else if high < 0.75 || low > 1.25 {
        Judged::DoesNotHold
    } else {
        Judged::Undecided
    }
}

/// "(16) reduces to (1/D)·√(1.5/q^c) … when q^w = q^r = 0": this is arithmetic, without a run.
fn without_tax() -> Claim {
    let largest = [1e-4, 1e-3, 1e-2, 1e-1].map(|q_c| {
        let friendly = (1.5_f64 / q_c).sqrt() / 0.1;
        (theorem_1(0.1, 0.0, 0.0, q_c) / friendly - 1.0).abs()
    });
    let largest = largest.into_iter().fold(0.0, f64::max);
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper:
            "(16) reduces to the throughput of a TCP-friendly flow without non-congestive loss and reordering"
                .to_owned(),
        ours: format!("off by {largest:.0e} of it at most, q^c from 1e-4 to 0.1"),
        judged: if largest < 1e-9 { Judged::Holds } else { Judged::DoesNotHold },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: q^w = 0.04, q^r = 0, q^c = 0.02, so q = 0.06. 8·0.06·0.02 / (0.18 + 0.04) = 0.0096 / 0.22 = 0.0436364;
    /// √(0.0016 + 0.0436364) = 0.2126884; 2 / (0.2126884 − 0.04) = 11.58155; by D = 0.2 s, 57.908 packets a second.
    #[test]
    fn equation_16_is_what_a_calculator_says() {
        assert!((theorem_1(0.2, 0.0, 0.04, 0.02) - 57.908).abs() < 1e-3);
        assert!((theorem_1(0.2, 0.01, 0.03, 0.02) - 57.908).abs() < 1e-3, "reordering is taxed as well");
    }

    #[test]
    fn without_tax_it_is_the_square_root_law() {
        assert_eq!(without_tax().judged, Judged::Holds);
    }

    #[test]
    fn more_of_the_same_congestion_is_less() {
        let at = |q_c| theorem_1(0.1, 0.0, 0.02, q_c);
        assert!(at(0.01) > at(0.02) && at(0.02) > at(0.05));
    }
}
