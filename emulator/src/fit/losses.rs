//! What was lost because the queue was full, and what for another reason.

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};
use airwire::units::Size;
use serde::Serialize;

use super::{Course, Crossing};

/// From this share of the longest queue on, a loss may be the queue's.
const NEARLY_FULL: f64 = 0.85;
/// The queue is what loses packets if they are lost so many times as often while it is nearly full as otherwise.
const MORE_OFTEN: f64 = 5.0;
/// Losses come in bursts if these are so many times as long as by chance.
const LONGER: f64 = 1.3;
/// And if so many standard deviations fewer of them are there than by chance.
const CERTAIN: f64 = 3.0;
/// Bursts that last so long go by time, and shorter ones by packets.
const LASTING: Duration = Duration::from_millis(20);

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// So many packets.
    Packets(u64),
    /// So many octets.
    Octets(Size),
}

/// What was lost in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// The queue's end. `None`: nothing was lost because it was full.
    pub bound: Option<Bound>,
    /// The most octets that have waited.
    pub longest_queue: u64,
    /// Packets that a full queue has lost.
    pub to_queue: u64,
    /// Packets that something else has lost.
    pub others: u64,
    /// The share of `others` in what the queue has not lost.
    pub share: f64,
    /// How many of `others` follow each other.
    pub burst: Option<Burst>,
}

/// Losses that follow each other, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Burst {
    /// So many packets, whenever they come.
    Packets(f64),
    /// For so long, and in which share of the time.
    Time(Duration, f64),
}

/// The losses, and which packets the queue's transmitter has sent, lost or not.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) losses: Losses,
    pub(super) was_sent: Vec<bool>,
}

/// What waits when a packet enters, itself not counted.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    packets: u64,
    octets: u64,
}

/// `wire` is what a packet takes without the transmitter.
pub(super) fn losses(crossings: &[Crossing], wire: &Course<Duration>) -> Judged {
    let waiting = waiting(crossings, wire);
    let most = |of: fn(&Waiting) -> u64| waiting.iter().map(of).max().unwrap_or_default();
    let (most_packets, most_octets) = (most(|waiting| waiting.packets), most(|waiting| waiting.octets));
    // It is not known yet in which of them it is bounded.
    let is_nearly_full = |waiting: &Waiting| {
        waiting.packets as f64 >= NEARLY_FULL * most_packets as f64
            || waiting.octets as f64 >= NEARLY_FULL * most_octets as f64
    };
    let (mut full, mut other) = ([0_u64; 2], [0_u64; 2]);
    for (crossing, waiting) in crossings.iter().zip(&waiting) {
        let counts = if is_nearly_full(waiting) { &mut full } else { &mut other };
        counts[usize::from(crossing.left.is_none())] += 1;
    }
    let share = |[kept, lost]: [u64; 2]| lost as f64 / (kept + lost).max(1) as f64;
    // One or two losses may be there by chance.
    let overflows = most_packets > 0 && full[1] >= 3 && share(full) > MORE_OFTEN * share(other);
    let by_queue = |index: usize| overflows && is_nearly_full(&waiting[index]);
    let was_sent = (0..crossings.len()).map(|index| crossings[index].left.is_some() || !by_queue(index));
    let was_sent: Vec<bool> = was_sent.collect();
    let to_queue = was_sent.iter().filter(|sent| !**sent).count() as u64;
    let (share, burst, others) = others(crossings, &was_sent);
    let bound = (to_queue > 0).then(|| bound(crossings, &waiting, &was_sent));
    let losses = Losses { bound, longest_queue: most_octets, to_queue, others, share, burst };
    Judged { losses, was_sent }
}

/// A packet waits until it is on the transmitter: from when it is there and the one before has left. One that was lost
/// did not wait.
fn waiting(crossings: &[Crossing], wire: &Course<Duration>) -> Vec<Waiting> {
    let mut queue: VecDeque<(Instant, u32)> = VecDeque::new();
    let (mut octets, mut free) = (0, Instant::ZERO);
    let mut all = Vec::with_capacity(crossings.len());
    for crossing in crossings {
        while let Some((_, first)) = queue.pop_front_if(|(begin, _)| *begin <= crossing.entered) {
            octets -= u64::from(first);
        }
        all.push(Waiting { packets: queue.len() as u64, octets });
        if let Some(delay) = crossing.delay() {
            queue.push_back((free.max(crossing.entered), crossing.octets));
            octets += u64::from(crossing.octets);
            free = free.max(crossing.entered + (delay - wire.at(crossing.entered)));
        }
    }
    all
}

/// In packets if those that were lost found more alike numbers of packets than of octets. What was kept has had room.
fn bound(crossings: &[Crossing], waiting: &[Waiting], was_sent: &[bool]) -> Bound {
    let found = |of: fn(&Waiting) -> u64| {
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
        // Where a packet is refused there may have been room for all but one octet of it.
        Bound::Octets(Size::bytes(octets.max(room.unwrap_or_default())))
    }
}

/// Their share of what was sent, their bursts, and their number.
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
    // Of independent losses so many follow one that arrived; their number scatters by its root.
    let by_chance = lost as f64 * (1.0 - share);
    if length <= LONGER / (1.0 - share) || bursts as f64 > by_chance - CERTAIN * by_chance.sqrt() {
        return (share, None, lost);
    }
    let (lasts, all) =
        (Duration::from_nanos((nanos / u128::from(bursts)) as u64), sent[sent.len() - 1].entered);
    let burst = if lasts < LASTING {
        Burst::Packets(length)
    } else {
        Burst::Time(lasts, nanos as f64 / all.as_nanos().max(1) as f64)
    };
    (share, Some(burst), lost)
}
