//! Separates losses by a full queue from losses with other causes.

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};
use airwire::units::Size;
use serde::Serialize;

use crate::{Crossing, PiecewiseConstant};

/// A loss may be a queue loss if the queue has at least this share of its maximum length.
const NEARLY_FULL: f64 = 0.85;
/// Losses are attributed to the queue if they are more than this many times as frequent while it is nearly
/// full as otherwise.
const MIN_LOSS_RATIO: f64 = 5.0;
/// Losses are bursty only if bursts are at least this many times as long as with independent losses.
const MIN_BURST_RATIO: f64 = 1.3;
/// Losses are bursty only if the number of bursts is at least this many standard deviations below the number
/// expected for independent losses.
const MIN_DEVIATIONS: f64 = 3.0;
/// Bursts that last at least this long are modelled by their duration, shorter ones by their number of
/// packets.
const MIN_TIMED_BURST: Duration = Duration::from_millis(20);

/// Limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Limit in packets.
    Packets(u64),
    /// Limit in bytes.
    Bytes(Size),
}

/// Losses in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Limit of the queue. `None`: a full queue did not drop any packet.
    pub bound: Option<Bound>,
    /// The longest queue, in bytes.
    pub longest_queue: u64,
    /// Packets that a full queue dropped.
    pub to_queue: u64,
    /// Packets that were lost for other reasons.
    pub others: u64,
    /// Share of `others` among the packets that the queue did not drop.
    pub share: f64,
    /// Mean length of the bursts in `others`.
    pub burst: Option<Burst>,
}

/// Mean length of loss bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Burst {
    /// Number of packets, independent of time.
    Packets(f64),
    /// Duration of a burst, and the share of the time in bursts.
    Time(Duration, f64),
}

/// The losses, and for each packet whether the queue's transmitter sent it, even if it was lost afterwards.
#[derive(Clone, Debug)]
pub(crate) struct LossAnalysis {
    pub(crate) losses: Losses,
    pub(crate) was_sent: Vec<bool>,
}

/// Queue contents when a packet enters, without that packet.
#[derive(Clone, Copy, Debug, Default)]
struct QueueState {
    packets: u64,
    octets: u64,
}

/// Analyses the losses. `wire` is the delay of packets without the transmitter.
pub(crate) fn losses(crossings: &[Crossing], wire: &PiecewiseConstant<Duration>) -> LossAnalysis {
    let waiting = waiting(crossings, wire);
    let most = |of: fn(&QueueState) -> u64| waiting.iter().map(of).max().unwrap_or_default();
    let (most_packets, most_octets) = (most(|waiting| waiting.packets), most(|waiting| waiting.octets));
    // The unit of the limit is not known yet.
    let is_nearly_full = |waiting: &QueueState| {
        waiting.packets as f64 >= NEARLY_FULL * most_packets as f64
            || waiting.octets as f64 >= NEARLY_FULL * most_octets as f64
    };
    let (mut full, mut other) = ([0_u64; 2], [0_u64; 2]);
    for (crossing, waiting) in crossings.iter().zip(&waiting) {
        let counts = if is_nearly_full(waiting) { &mut full } else { &mut other };
        counts[usize::from(crossing.left.is_none())] += 1;
    }
    let share = |[kept, lost]: [u64; 2]| lost as f64 / (kept + lost).max(1) as f64;
    // One or two losses may be a coincidence.
    let overflows = most_packets > 0 && full[1] >= 3 && share(full) > MIN_LOSS_RATIO * share(other);
    let by_queue = |index: usize| overflows && is_nearly_full(&waiting[index]);
    let was_sent = (0..crossings.len()).map(|index| crossings[index].left.is_some() || !by_queue(index));
    let was_sent: Vec<bool> = was_sent.collect();
    let to_queue = was_sent.iter().filter(|sent| !**sent).count() as u64;
    let (share, burst, others) = others(crossings, &was_sent);
    let bound = (to_queue > 0).then(|| bound(crossings, &waiting, &was_sent));
    let losses = Losses { bound, longest_queue: most_octets, to_queue, others, share, burst };
    LossAnalysis { losses, was_sent }
}

/// Queue contents at the entry of each packet. A packet waits from its entry until the previous packet has
/// left the transmitter. A lost packet does not wait.
fn waiting(crossings: &[Crossing], wire: &PiecewiseConstant<Duration>) -> Vec<QueueState> {
    let mut queue: VecDeque<(Instant, u32)> = VecDeque::new();
    let (mut octets, mut free) = (0, Instant::ZERO);
    let mut all = Vec::with_capacity(crossings.len());
    for crossing in crossings {
        while let Some((_, first)) = queue.pop_front_if(|(begin, _)| *begin <= crossing.entered) {
            octets -= u64::from(first);
        }
        all.push(QueueState { packets: queue.len() as u64, octets });
        if let Some(delay) = crossing.delay() {
            queue.push_back((free.max(crossing.entered), crossing.octets));
            octets += u64::from(crossing.octets);
            free = free.max(crossing.entered + (delay - wire.at(crossing.entered)));
        }
    }
    all
}

/// Determines the limit of the queue. The unit is the one in which the queue lengths at losses vary less. The
/// limit is at least the room that the packets which were not lost needed.
fn bound(crossings: &[Crossing], waiting: &[QueueState], was_sent: &[bool]) -> Bound {
    let found = |of: fn(&QueueState) -> u64| {
        let lost = waiting.iter().zip(was_sent).filter(|(_, sent)| !**sent);
        let mut lost: Vec<u64> = lost.map(|(waiting, _)| of(waiting)).collect();
        lost.sort_unstable();
        let [least, middle, most] = [lost[0], lost[lost.len() / 2], lost[lost.len() - 1]];
        (middle, (most - least) as f64 / most.max(1) as f64)
    };
    let [(packets, by_packets), (octets, by_octets)] =
        [found(|waiting| waiting.packets), found(|waiting| waiting.octets)];
    let kept = || crossings.iter().zip(waiting).filter(|(crossing, _)| crossing.left.is_some());
    if by_packets <= by_octets {
        let room = kept().map(|(_, waiting)| waiting.packets + 1).max().unwrap_or_default();
        Bound::Packets(packets.max(room))
    } else {
        let room = kept().map(|(crossing, waiting)| waiting.octets + u64::from(crossing.octets)).max();
        // The queue length at a loss is too small for a limit, since all but one byte of the packet may have
        // fit.
        Bound::Bytes(Size::bytes(octets.max(room.unwrap_or_default())))
    }
}

/// Share, bursts and number of losses with other causes.
fn others(crossings: &[Crossing], was_sent: &[bool]) -> (f64, Option<Burst>, u64) {
    let sent: Vec<_> = crossings.iter().zip(was_sent).filter(|(_, sent)| **sent).map(|(it, _)| it).collect();
    let (mut lost, mut bursts, mut nanos) = (0_u64, 0_u64, 0_u128);
    let mut since: Option<Instant> = None;
    for crossing in &sent {
        match (crossing.left, since) {
            (None, None) => {
                since = Some(crossing.entered);
                bursts += 1;
            }
            (Some(_), Some(begun)) => {
                nanos += u128::from(crossing.entered.saturating_since(begun).as_nanos());
                since = None;
            }
            _ => {}
        }
        lost += u64::from(crossing.left.is_none());
    }
    let share = lost as f64 / sent.len().max(1) as f64;
    if bursts == 0 || share == 1.0 {
        return (share, None, lost);
    }
    let length = lost as f64 / bursts as f64;
    // Expected number of bursts with independent losses. Its standard deviation is about the square root.
    let by_chance = lost as f64 * (1.0 - share);
    if length <= MIN_BURST_RATIO / (1.0 - share)
        || bursts as f64 > by_chance - MIN_DEVIATIONS * by_chance.sqrt()
    {
        return (share, None, lost);
    }
    let (lasts, all) =
        (Duration::from_nanos((nanos / u128::from(bursts)) as u64), sent[sent.len() - 1].entered);
    let burst = if lasts < MIN_TIMED_BURST {
        Burst::Packets(length)
    } else {
        Burst::Time(lasts, nanos as f64 / all.as_nanos().max(1) as f64)
    };
    (share, Some(burst), lost)
}
