//! Loss episodes: their sizes, the queue at their beginning, and their explanation by a token bucket.

use std::ops::Range;

use crate::compact::heap_of_vec;
use crate::connection::findings::LossCounts;

/// Maximum number of remembered drops. When there are more, every second one is forgotten.
const POINTS: usize = 128;

/// Minimum number of episodes whose similarities are not a coincidence.
const MIN_EPISODES: usize = 3;

/// Number of remembered episodes.
const EPISODES: usize = 32;

/// Nanoseconds between drops in close succession. With longer round trips, a longer pause separates the
/// flights.
const MAX_BETWEEN: i64 = 30_000_000;

/// A lost segment: its send time, and the bytes that had passed earlier.
#[derive(Clone, Copy, Debug)]
struct LostSegment {
    at: i64,
    passed: u64,
}

/// An episode: the offset of its first lost byte, the queueing delay at its beginning in nanoseconds, and its
/// losses.
#[derive(Clone, Copy, Debug)]
struct Episode {
    start: u64,
    delay: i64,
    segments: u32,
    runs: u32,
}

/// The queueing delay when a segment was lost, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueAtLoss {
    /// Whether, in one of the last two round trips, the minimum delay was at least half of the maximum.
    pub(super) is_long: bool,
    /// The delay of the packet next to the lost one.
    pub(super) delay: i64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LossEpisodes {
    pub(super) episodes: u32,
    pub(super) segments: u32,
    /// Segments of the newest episode, and of the largest one.
    newest: u32,
    pub(super) largest: u32,
    /// Episodes that began while the queue was long.
    pub(super) with_queue: u32,
    /// Contiguous groups of lost segments.
    pub(super) runs: u32,
    /// The first episodes.
    first: Vec<Episode>,
    last_end: u64,
    /// Bytes lost in this episode, and the end of the data sent at its beginning.
    lost: u64,
    recover: u64,
    drops: Vec<LostSegment>,
    last: Option<LostSegment>,
    /// The bytes that passed and the time that elapsed between drops in close succession.
    passed_between: u64,
    time_between: i64,
    /// One in 2^`skip` drops is remembered.
    skip: u8,
    seen: u32,
}

/// A token bucket without a queue that explains the drops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TokenBucket {
    /// Bytes per second.
    pub(super) rate: f64,
    /// Bytes that passed before the first drop in excess of the rate.
    pub(super) burst: f64,
}

impl LossEpisodes {
    /// Records the loss of `range`, which was sent at `sent_at`. `first` is the first byte of the stream, and
    /// `max` the end of the data sent so far.
    pub(super) fn lost(
        &mut self,
        sent_at: i64,
        range: &Range<u64>,
        first: u64,
        max: u64,
        queue: QueueAtLoss,
    ) {
        if range.start >= self.recover {
            self.last = None;
            self.episodes = self.episodes.saturating_add(1);
            self.with_queue += u32::from(queue.is_long);
            if self.first.len() < EPISODES {
                self.first.push(Episode { start: range.start, delay: queue.delay, segments: 0, runs: 0 });
            }
            (self.lost, self.recover) = (0, max);
            self.newest = 0;
        }
        self.segments = self.segments.saturating_add(1);
        self.newest = self.newest.saturating_add(1);
        self.largest = self.largest.max(self.newest);
        let run = u32::from(range.start != self.last_end);
        self.runs += run;
        self.last_end = range.end;
        if self.episodes as usize == self.first.len()
            && let Some(episode) = self.first.last_mut()
        {
            episode.segments += 1;
            episode.runs += run;
        }
        let passed = range.start.saturating_sub(first).saturating_sub(self.lost);
        self.lost += range.end - range.start;
        let segment = LostSegment { at: sent_at, passed };
        if let Some(last) = self.last.replace(segment)
            && (0..=MAX_BETWEEN).contains(&(sent_at - last.at))
        {
            self.passed_between += passed.saturating_sub(last.passed);
            self.time_between += sent_at - last.at;
        }
        self.seen = self.seen.wrapping_add(1);
        if !self.seen.is_multiple_of(1 << self.skip) {
            return;
        }
        if self.drops.len() == POINTS {
            let mut index = 0;
            self.drops.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.skip = (self.skip + 1).min(30);
        }
        self.drops.push(segment);
    }

    /// Returns whether `range` is a later part of a large segment that begins at `start`, after the parts that
    /// were lost before.
    pub(super) fn continues(&self, range: &Range<u64>, start: u64) -> bool {
        range.start > start && range.start >= self.last_end
    }

    /// Records that data between two offsets has not arrived in order. If the last data before a retransmission
    /// was lost, the sender had sent it before it detected the loss.
    pub(super) fn missing(&mut self, from: u64, to: u64) {
        if self.recover == from {
            self.recover = to;
        }
    }

    /// Returns the rate in bytes per second at which packets passed between drops in close succession. The bucket
    /// of a policer is empty then, so this rate is the rate of the tokens.
    pub(super) fn rate_between_drops(&self) -> Option<f64> {
        const MIN_BYTES: u64 = 14_000;
        let is_enough = self.passed_between >= MIN_BYTES && self.time_between > 0;
        is_enough.then(|| self.passed_between as f64 * 1e9 / self.time_between as f64)
    }

    /// Returns the queueing delay in nanoseconds at which most episodes begin, if it is at least `least`. A queue
    /// drops packets when it is full, always with the same delay. Random losses occur at any length of the queue.
    pub(super) fn queue(&self, least: i64) -> Option<i64> {
        if self.first.len() < MIN_EPISODES {
            return None;
        }
        let full = self.delay_quantile(3)?;
        let near = self.first.iter().filter(|episode| (episode.delay - full).abs() * 7 <= full).count();
        (full >= least && near * 5 >= self.first.len() * 3).then_some(full)
    }

    /// Returns the losses that a full queue does not explain, because they began with a much shorter queueing delay
    /// than other losses. `least` is the shortest delay of a full queue.
    pub(super) fn without_full_queue(&self, least: i64) -> LossCounts {
        let longest = self.first.iter().map(|episode| episode.delay).max().unwrap_or(0);
        let is_full = |episode: &&Episode| longest >= least && episode.delay * 4 >= longest * 3;
        let is_short = |episode: &&Episode| longest >= least && episode.delay * 2 < longest;
        let (mut losses, mut full) = (LossCounts::default(), LossCounts::default());
        for (index, episode) in self.first.iter().enumerate() {
            // Slow start ends with more losses than later episodes, also in a short queue.
            let ends_slow_start =
                index == 0 && episode.segments == self.largest && self.first.len() > MIN_EPISODES;
            let counts = if is_full(&episode) || ends_slow_start { &mut full } else { &mut losses };
            counts.episodes += 1;
            counts.segments += u64::from(episode.segments);
            counts.runs += u64::from(episode.runs);
        }
        let at_begin = self.first.iter().take_while(is_full).count() as u64;
        LossCounts {
            episodes: u64::from(self.episodes) - full.episodes,
            segments: u64::from(self.segments) - full.segments,
            runs: u64::from(self.runs) - full.runs,
            largest_episode: if full.episodes == 0 { self.largest.into() } else { 0 },
            with_short_delay: self.first.iter().filter(is_short).count() as u64,
            full_later: full.episodes - at_begin,
        }
    }

    /// Returns a quartile of the queueing delays in nanoseconds at the beginning of an episode.
    pub(super) fn delay_quantile(&self, quarters: usize) -> Option<i64> {
        let mut delays: Vec<_> = self.first.iter().map(|episode| episode.delay).collect();
        delays.sort_unstable();
        delays.get(delays.len() * quarters / 4).copied()
    }

    /// Returns the standard deviation of the number of bytes from one episode to the next, relative to their
    /// mean. Episodes of random losses have a deviation of about 1. The first interval does not count, because
    /// slow start ends in it.
    pub(super) fn deviation_of_intervals(&self) -> Option<f64> {
        const MIN_INTERVALS: usize = 6;
        let starts = self.first.get(1..)?;
        let intervals: Vec<_> =
            starts.windows(2).map(|pair| pair[1].start.saturating_sub(pair[0].start) as f64).collect();
        if intervals.len() < MIN_INTERVALS {
            return None;
        }
        let count = intervals.len() as f64;
        let mean = intervals.iter().sum::<f64>() / count;
        let variance =
            intervals.iter().map(|interval| (interval - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Some(variance.sqrt() / mean.max(1.0))
    }

    pub(super) fn heap(&self) -> usize {
        heap_of_vec::<LostSegment>(self.drops.capacity()) + heap_of_vec::<Episode>(self.first.capacity())
    }

    /// Returns the token bucket that explains the drops. `began` is the time of the first data, and
    /// `round_trip` the minimum RTT.
    ///
    /// An empty bucket drops packets that exceed its rate. Between two drops, as many bytes pass as tokens
    /// arrive, or fewer if the bucket was full in between. A random loss does not bound the bytes between two
    /// drops. (Flach et al. 2016, §3, simulate the bucket with the same idea.)
    pub(super) fn token_bucket(&self, began: i64, round_trip: i64) -> Option<TokenBucket> {
        const MIN_INTERVALS: usize = 5;
        /// An interval may exceed the rate by this factor, because of the drops that a sample skips.
        const EXCESS: f64 = 1.12;
        /// Share of the intervals that must be within the tolerance of the rate. The rest may be lower.
        const NEAR: f64 = 0.6;
        const TOLERANCE: f64 = 0.12;
        let mut rates = Vec::new();
        let mut last = *self.drops.first()?;
        for drop in &self.drops[1..] {
            // Within a round trip, the number of segments is too small for a rate.
            if drop.at - last.at < 2 * round_trip.max(1_000_000) || drop.passed <= last.passed {
                continue;
            }
            rates.push((drop.passed - last.passed) as f64 * 1e9 / (drop.at - last.at) as f64);
            last = *drop;
        }
        if rates.len() < MIN_INTERVALS {
            return None;
        }
        rates.sort_by(f64::total_cmp);
        // Intervals in which the bucket was full are slower, so the rate is in the upper part.
        let rate = rates[rates.len() * 3 / 4];
        let near = rates.iter().filter(|other| (**other / rate - 1.0).abs() <= TOLERANCE).count();
        let fastest = rates[(rates.len() * 19 / 20).min(rates.len() - 1)];
        if fastest > rate * EXCESS || (near as f64) < NEAR * rates.len() as f64 {
            return None;
        }
        let first = self.drops.first()?;
        let burst = first.passed as f64 - rate * (first.at - began).max(0) as f64 / 1e9;
        Some(TokenBucket { rate, burst: burst.max(0.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: i64 = 50_000_000;

    /// Sends with a window that grows by one segment per round and is halved after drops. Each round begins with
    /// the retransmissions.
    fn episodes(mut drops: impl FnMut(i64) -> bool) -> LossEpisodes {
        let mut losses = LossEpisodes::default();
        let (mut offset, mut window, mut missing) = (0_u64, 10_u64, 0_u64);
        for round in 0..600_i64 {
            let mut lost = 0;
            for index in 0..window {
                let at = round * RTT + index as i64 * 300_000;
                let is_dropped = drops(at);
                if missing > 0 {
                    missing -= u64::from(!is_dropped);
                    continue;
                }
                if is_dropped {
                    losses.lost(
                        at,
                        &(offset..offset + 1500),
                        0,
                        offset + window * 1500,
                        QueueAtLoss::default(),
                    );
                    lost += 1;
                }
                offset += 1500;
            }
            window = if lost > 0 { (window / 2).max(2) } else { window + 1 };
            missing += lost;
        }
        losses
    }

    #[test]
    fn full_queue_has_constant_delay_at_losses() {
        let queue = |delays: &[i64]| {
            let mut losses = LossEpisodes::default();
            for (offset, delay) in (0..).zip(delays) {
                let queue = QueueAtLoss { delay: *delay, ..QueueAtLoss::default() };
                losses.lost(0, &(offset..offset + 1), 0, offset + 1, queue);
            }
            losses.queue(3)
        };
        assert_eq!(queue(&[58, 61, 12, 60, 59, 60]), Some(60));
        assert_eq!(queue(&[5, 61, 12, 30, 44, 21]), None);
        assert_eq!(queue(&[1, 2, 1, 2]), None);
        assert_eq!(queue(&[60, 60]), None);
    }

    #[test]
    fn token_bucket_explains_the_drops_of_a_policer() {
        let (rate, burst) = (500_000.0, 200_000.0);
        let (mut tokens, mut last) = (burst, 0);
        let losses = episodes(|at| {
            tokens = f64::min(burst, tokens + rate * (at - last) as f64 / 1e9);
            last = at;
            let is_dropped = tokens < 1500.0;
            tokens -= if is_dropped { 0.0 } else { 1500.0 };
            is_dropped
        });
        let bucket = losses.token_bucket(0, RTT).unwrap();
        assert!((bucket.rate / rate - 1.0).abs() < 0.1, "{bucket:?}");
    }

    #[test]
    fn token_bucket_does_not_explain_random_losses() {
        for seed in 1..20_u64 {
            let mut state = seed;
            let losses = episodes(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33 < (1 << 31) / 100
            });
            assert_eq!(losses.token_bucket(0, RTT), None, "seed {seed}: {losses:?}");
        }
    }

    /// Returns episodes with a single loss, with this number of bytes between them.
    fn with_intervals(intervals: &[u64]) -> LossEpisodes {
        let mut losses = LossEpisodes::default();
        let mut offset = 0;
        for interval in intervals {
            losses.lost(0, &(offset..offset + 1), 0, offset + 1, QueueAtLoss::default());
            offset += interval;
        }
        losses
    }

    #[test]
    fn intervals_between_episodes_deviate_if_losses_are_random() {
        let regular = with_intervals(&[9000, 1000, 1100, 900, 1000, 1000, 1050, 1000, 1000]);
        assert!(regular.deviation_of_intervals().unwrap() < 0.1);
        let random = with_intervals(&[9000, 100, 3000, 600, 200, 1700, 50, 900, 1000]);
        assert!(random.deviation_of_intervals().unwrap() > 0.8);
        assert_eq!(with_intervals(&[1000; 7]).deviation_of_intervals(), None);
    }

    #[test]
    fn missing_data_after_loss_belongs_to_its_episode() {
        let episodes = |is_missing: bool| {
            let mut losses = LossEpisodes::default();
            losses.lost(0, &(10..20), 0, 30, QueueAtLoss::default());
            if is_missing {
                losses.missing(30, 40);
            }
            losses.lost(0, &(30..40), 0, 60, QueueAtLoss::default());
            losses.episodes
        };
        assert_eq!((episodes(false), episodes(true)), (2, 1));
    }

    #[test]
    fn largest_episode_at_begin_is_the_end_of_slow_start() {
        let mut losses = LossEpisodes::default();
        let mut offset = 0;
        for segments in [20, 2, 1, 2, 1] {
            let end = offset + 2 * segments;
            for number in 0..segments {
                let start = offset + 2 * number;
                losses.lost(0, &(start..start + 1), 0, end, QueueAtLoss::default());
            }
            offset = end + 10;
        }
        let counts = losses.without_full_queue(1);
        assert_eq!((counts.episodes, counts.segments), (4, 6));
    }
}
