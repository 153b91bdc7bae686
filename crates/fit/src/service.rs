//! Delays of packets, and the rate at which they leave.

use std::collections::BTreeMap;

use airwire::time::{Duration, Instant};
use airwire::units::Rate;

use crate::{Crossing, MeasuredRate, Overtaken, PiecewiseConstant};

/// If the directions differ in bytes by at least this factor, the smaller one is assumed to carry only ACKs.
/// Such a direction has no standing queue, so its packets show the current delay of the wire.
pub(crate) const MIN_ASYMMETRY: u64 = 5;
const SECOND: u64 = 1_000_000_000;
/// Delays count as equal if they differ by at most this number of nanoseconds.
const LEAST_STEP: u64 = 500_000;
/// Delays also count as equal if they differ by at most this share.
const SAME_DELAY: f64 = 0.02;
/// Rates count as equal if they differ by at most this share.
const SAME_RATE: f64 = 0.03;
/// The rate is constant if at least this share of the steps has the same rate.
const NEARLY_ALL: f64 = 0.97;
/// Nanoseconds around an unknown rate in which known rates are averaged.
const SMOOTHING: u64 = SECOND;

/// The largest number of bytes that entered within one second.
pub(crate) fn busiest_second(crossings: &[Crossing]) -> u64 {
    let mut seconds = BTreeMap::<u64, u64>::new();
    for crossing in crossings {
        *seconds.entry(crossing.entered.as_nanos() / SECOND).or_default() += u64::from(crossing.octets);
    }
    seconds.into_values().max().unwrap_or_default()
}

/// Delay of packets that do not wait: the delay of the wire plus the transmission time.
pub(crate) fn least_delay(crossings: &[Crossing]) -> PiecewiseConstant<Duration> {
    PiecewiseConstant::constant(crossings.iter().filter_map(Crossing::delay).min().unwrap_or_default())
}

/// The delay in each `step` of time, for a direction without a queue: the smallest delay of the packets that
/// entered in the step. Steps without packets keep the previous delay.
pub(crate) fn delay(crossings: &[Crossing], step: Duration) -> PiecewiseConstant<Duration> {
    let mut steps = BTreeMap::<u64, u64>::new();
    for (entered, delay) in crossings.iter().filter_map(|it| Some((it.entered, it.delay()?.as_nanos()))) {
        let least = steps.entry(entered.as_nanos() / step.as_nanos()).or_insert(delay);
        *least = delay.min(*least);
    }
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for (index, delay) in steps {
        let is_same = |last: u64| {
            let apart = last.abs_diff(delay);
            apart <= LEAST_STEP || apart as f64 <= SAME_DELAY * last as f64
        };
        if pieces.last().is_none_or(|(_, last)| !is_same(*last)) {
            pieces.push((if pieces.is_empty() { 0 } else { index * step.as_nanos() }, delay));
        }
    }
    if let [_] = pieces[..] {
        return least_delay(crossings);
    }
    PiecewiseConstant::new(
        pieces.into_iter().map(|(at, delay)| (Instant::from_nanos(at), Duration::from_nanos(delay))),
    )
}

/// The delay without the transmission time of the fastest packet.
pub(crate) fn without_transmission(
    crossings: &[Crossing],
    delay: &PiecewiseConstant<Duration>,
    rate: Option<&MeasuredRate>,
) -> PiecewiseConstant<Duration> {
    let arrived =
        crossings.iter().filter_map(|crossing| Some((crossing.delay()?, crossing.left?, crossing.octets)));
    let (Some(rate), Some((_, left, octets))) = (rate, arrived.min()) else { return delay.clone() };
    let transmission = rate.over_time.at(left).time_for(octets as usize);
    PiecewiseConstant::new(delay.pieces().iter().map(|(from, delay)| (*from, *delay - transmission)))
}

/// Twice the mean of the delays above `delay`, because the mean of uniform jitter is half its maximum.
pub(crate) fn jitter(crossings: &[Crossing], delay: &PiecewiseConstant<Duration>) -> Duration {
    let more = crossings.iter().filter_map(|it| Some((it.delay()? - delay.at(it.entered)).as_nanos()));
    let (sum, count) = more.fold((0_u128, 0), |(sum, count), more| (sum + u128::from(more), count + 1));
    Duration::from_nanos((2 * sum / count.max(1)) as u64)
}

/// Packets that left after one that had entered later.
pub(crate) fn overtaken(crossings: &[Crossing]) -> Option<Overtaken> {
    let arrived: Vec<_> = crossings.iter().filter_map(|crossing| crossing.left).collect();
    let mut earliest_later_exit = Instant::from_nanos(u64::MAX);
    let (mut count, mut late) = (0_u64, 0_u128);
    for left in arrived.iter().rev() {
        if *left > earliest_later_exit {
            count += 1;
            late += u128::from((*left).saturating_since(earliest_later_exit).as_nanos());
        }
        earliest_later_exit = earliest_later_exit.min(*left);
    }
    (count > 0).then(|| Overtaken {
        share: count as f64 / arrived.len() as f64,
        late: Duration::from_nanos((late / u128::from(count)) as u64),
    })
}

/// Time in which packets waited, and the bytes that left in this time.
#[derive(Clone, Copy, Debug, Default)]
struct BusyTime {
    octets: f64,
    nanos: f64,
}

impl BusyTime {
    fn rate(self) -> f64 {
        self.octets * 8e9 / self.nanos
    }

    fn plus(self, other: Self) -> Self {
        Self { octets: self.octets + other.octets, nanos: self.nanos + other.nanos }
    }
}

/// The rate in each `step` of time. The rate can be measured if a packet is already waiting when the previous
/// one leaves. Until it leaves, the path then transmits nothing but this packet and packets that are lost
/// after the queue.
pub(crate) fn rate(
    crossings: &[Crossing],
    delay: &PiecewiseConstant<Duration>,
    was_sent: &[bool],
    duration: Duration,
    step: Duration,
) -> Option<MeasuredRate> {
    let (step, duration) = (step.as_nanos(), duration.as_nanos());
    let mut busy = vec![BusyTime::default(); duration.div_ceil(step) as usize];
    // Bytes that were transmitted since the previous packet left, but lost afterwards.
    let mut lost_octets = 0;
    let mut previous: Option<Instant> = None;
    for (crossing, is_sent) in crossings.iter().zip(was_sent) {
        let Some(left) = crossing.left else {
            lost_octets += u64::from(*is_sent) * u64::from(crossing.octets);
            continue;
        };
        if previous.is_some_and(|previous| left < previous) {
            // Reordered packets do not contribute a usable time.
            continue;
        }
        let waited = |previous: &Instant| crossing.entered + delay.at(crossing.entered) < *previous;
        if let Some(previous) = previous.filter(waited) {
            spread(&mut busy, step, (previous, left), (lost_octets + u64::from(crossing.octets)) as f64);
        }
        (previous, lost_octets) = (Some(left), 0);
    }
    let all = busy.iter().copied().fold(BusyTime::default(), BusyTime::plus);
    // A few packets that arrive close together do not determine a rate.
    if all.nanos < 0.01 * duration as f64 || all.octets == 0.0 {
        return None;
    }
    let rates = smoothed(&busy, all, step as f64, (SMOOTHING / step).max(1) as usize);
    let pieces = match constant(&rates) {
        Some(rate) => vec![(0, rate)],
        None => merged(&rates),
    };
    let pieces = pieces.into_iter().map(|(index, rate)| {
        (Instant::from_nanos(index as u64 * step), Rate::bits_per_second((rate.round() as u64).max(1)))
    });
    Some(MeasuredRate {
        over_time: PiecewiseConstant::new(pieces),
        mean: Rate::bits_per_second((all.rate().round() as u64).max(1)),
        measured: (all.nanos / duration as f64).min(1.0),
    })
}

/// Distributes bytes that left at a constant rate over the steps of their time, within the recording.
fn spread(busy: &mut [BusyTime], step: u64, (from, to): (Instant, Instant), octets: f64) {
    let (from, to) = (from.as_nanos(), to.as_nanos());
    let index = |at: u64| (at / step) as usize;
    if let (true, Some(piece)) = (from == to, busy.get_mut(index(to))) {
        piece.octets += octets;
        return;
    }
    let each = octets / (to - from) as f64;
    let mut at = from;
    while at < to {
        let end = to.min((at / step + 1) * step);
        let Some(piece) = busy.get_mut(index(at)) else { return };
        piece.nanos += (end - at) as f64;
        piece.octets += each * (end - at) as f64;
        at = end;
    }
}

/// The rate of each step. For the part of a step in which the rate was not observed, the rate of the
/// surrounding steps, or of the whole recording, is used. A rate that was observed only briefly does not
/// count for the whole step.
fn smoothed(busy: &[BusyTime], all: BusyTime, step: f64, around: usize) -> Vec<f64> {
    let mut sums = vec![BusyTime::default()];
    for piece in busy {
        sums.push(sums[sums.len() - 1].plus(*piece));
    }
    let between = |from: usize, to: usize| BusyTime {
        octets: sums[to].octets - sums[from].octets,
        nanos: sums[to].nanos - sums[from].nanos,
    };
    let near = |index: usize| between(index.saturating_sub(around), (index + around + 1).min(busy.len()));
    let rate = |(index, piece): (usize, &BusyTime)| {
        let around = match near(index) {
            near if near.nanos > 0.0 => near.rate(),
            _ => all.rate(),
        };
        (piece.octets * 8e9 + (step - piece.nanos).max(0.0) * around) / step
    };
    busy.iter().enumerate().map(rate).collect()
}

/// The rate that nearly all steps share. The other steps contain losses that cannot be assigned to the queue.
fn constant(rates: &[f64]) -> Option<f64> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let alike = rates.iter().filter(|rate| (**rate - median).abs() <= SAME_RATE * median).count();
    (alike as f64 >= NEARLY_ALL * rates.len() as f64).then_some(median)
}

/// Merges neighbours of about the same rate into pieces with their mean rate. Each piece has the index of its
/// first step.
fn merged(rates: &[f64]) -> Vec<(usize, f64)> {
    let mut pieces: Vec<(usize, f64, usize)> = Vec::new();
    for (index, rate) in rates.iter().enumerate() {
        match pieces.last_mut() {
            Some((_, mean, count)) if (rate - *mean).abs() <= SAME_RATE * *mean => {
                *mean += (rate - *mean) / (*count + 1) as f64;
                *count += 1;
            }
            _ => pieces.push((index, *rate, 1)),
        }
    }
    pieces.into_iter().map(|(index, mean, _)| (index, mean)).collect()
}
