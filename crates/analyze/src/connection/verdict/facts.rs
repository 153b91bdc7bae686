//! The facts about the direction that a verdict is about.

use super::{MIN_REQUESTS, ONE_FLIGHT, REPEATED, SOME_PAUSES};
use crate::connection::findings::{
    Cause, Close, ConnectionFindings, DirectionFindings, RoundTripFindings, RttOf, TurnFindings,
};

/// Seconds. A shorter delay above the minimum round trip is jitter.
pub(super) const JITTER: f64 = 0.004;
/// Seconds without data after which a sender that has more data counts as cut off.
const MIN_SILENCE: f64 = 1.0;
/// Minimum queueing delay, as a share of the minimum round trip, of a queue that explains the rate. A larger
/// window would only lengthen such a queue.
pub(super) const QUEUEING: f64 = 0.25;
/// Ratio of the largest to the smallest limiting window of a receiver whose application reads fast enough.
/// The window of Linux shrinks by a few segments while data waits for the application.
const STEADY_WINDOW: f64 = 2.5;
/// Data waits in the receiver's buffer if its largest window exceeds the mean of the limiting windows by this
/// factor: the receiver has offered more space before.
const FULL_BUFFER: f64 = 1.3;
/// Minimum share of the time with a closed window if the application reads slowly.
pub(super) const CLOSED: f64 = 0.05;
/// The largest window scale (RFC 7323 §2.3).
const MAX_SCALE: u32 = 14;
/// The largest window without scaling (RFC 9293 §3.1).
const UNSCALED: u64 = 65_535;
/// Minimum goodput of a full link, as a share of the bottleneck's rate. Packet headers take 4 %, and the
/// estimate of the rate is uncertain by 10 %.
pub(super) const FULL: f64 = 0.8;
/// Minimum goodput of a link that is not mostly idle, as a share of the bottleneck's rate.
const BUSY: f64 = 0.4;
/// Maximum delay, in seconds, of the ACKs of a receiver at the capture point.
const UNKNOWN_ROUND_TRIP: f64 = 0.001;
/// Minimum queueing delay at the sender, in seconds and in minimum round trips, that delayed ACKs do not cause.
const LONG_QUEUE: f64 = 0.1;
const LONG_QUEUE_RTTS: f64 = 2.0;
/// A queueing delay of less than this share of the minimum round trip, or of this number of seconds, is jitter.
const NO_QUEUE: f64 = 0.05;
const MIN_QUEUE: f64 = 0.001;
/// Minimum number of round trips with a constant flight. A congestion window that nothing limits grows in
/// every round trip.
const MIN_CONSTANT: u64 = 15;

/// Minimum share of the time in which a sender with a small buffer fills its flight again and again. Lost ACKs cause
/// the same pattern at times.
const REFILLING: f64 = 0.6;
/// Maximum goodput of a link that such a sender leaves idle, as a share of the bottleneck's rate. It is higher than
/// [`FULL`], because the pattern shows that the link is idle.
const ALMOST_FULL: f64 = 0.9;

/// Minimum share of the time in which a direction is held back that is judged although the other has more data.
const HELD_BACK: f64 = 0.5;

/// Returns the time that short segments wait for delayed ACKs: the delay of each ACK and a round trip.
pub(super) fn stalled_seconds(rounds: &RoundTripFindings, round_trip: f64) -> f64 {
    rounds.delayed_ack_stall_seconds + rounds.delayed_ack_stalls as f64 * round_trip
}

pub(super) struct Facts<'a> {
    pub(super) findings: &'a ConnectionFindings,
    pub(super) data: &'a DirectionFindings,
    pub(super) direction: usize,
    pub(super) rounds: Option<&'a RoundTripFindings>,
    pub(super) turns: &'a [TurnFindings; 2],
    /// The time from the first packet to the end of the transfer.
    pub(super) seconds: f64,
    /// The minimum round-trip time between the ends.
    pub(super) round_trip: f64,
    pub(super) segment: u32,
    pub(super) has_acks: bool,
    /// Whether the findings include the start of the transfer.
    pub(super) has_start: bool,
    /// Retransmitted packets that were necessary.
    pub(super) lost: u64,
}

impl<'a> Facts<'a> {
    /// Returns the facts about the direction with more data, or about requests that are held back most of the time.
    /// `None` without data.
    pub(super) fn new(findings: &'a ConnectionFindings, has_start: bool) -> Option<Self> {
        let [first, second] = &findings.directions;
        let larger = usize::from(second.sent_bytes > first.sent_bytes);
        let [a, b] = findings.answers_after_seconds;
        let round_trip = match a.zip(b) {
            Some((a, b)) => a + b,
            None => {
                let min = findings.directions[larger].rtt.min_seconds;
                min.or(findings.handshake.rtt_seconds).unwrap_or(0.0)
            }
        };
        let stalled = |direction: usize| {
            let rounds = findings.directions[direction].round_trips.as_deref();
            rounds.map_or(0.0, |rounds| stalled_seconds(rounds, round_trip))
        };
        let is_held_back = stalled(1 - larger) > stalled(larger).max(HELD_BACK * findings.active_seconds);
        let direction = if is_held_back { 1 - larger } else { larger };
        let data = &findings.directions[direction];
        if data.sent_bytes == 0 {
            return None;
        }
        let rounds = data.round_trips.as_deref();
        let found = &data.retransmissions;
        Some(Self {
            findings,
            data,
            direction,
            rounds,
            turns: &findings.turns,
            seconds: findings.active_seconds.max(data.transfer_seconds).max(1e-9),
            round_trip,
            segment: data.sender.longest_segment_bytes.max(1),
            has_acks: data.acks.packets > 0,
            has_start,
            lost: found.packets.saturating_sub(found.spurious.packets),
        })
    }

    /// Returns the time from the first packet to the first data if SYNs were lost, without the client's waiting.
    pub(super) fn delay_of_handshake(&self) -> f64 {
        let syns = self.findings.handshake.syns.iter().flatten();
        if syns.map(|syn| syn.times).all(|times| times <= 1) {
            return 0.0;
        }
        (self.seconds - self.data.transfer_seconds - self.turns[0].waited_seconds).max(0.0)
    }

    pub(super) fn share(&self, seconds: f64) -> f64 {
        seconds / self.seconds
    }

    pub(super) fn loss_frames(&self) -> impl Iterator<Item = u64> + use<> {
        let frames = self.rounds.map(|rounds| rounds.frames.losses).unwrap_or_default();
        frames.iter().collect::<Vec<_>>().into_iter()
    }

    pub(super) fn is_at_sender(&self) -> bool {
        self.data.rtt_of == RttOf::RoundTrip
    }

    pub(super) fn is_at_receiver(&self) -> bool {
        self.data.rtt_of == RttOf::ReceiverDelay
    }

    /// Returns the time from the last data to the end of the capture of this connection.
    pub(super) fn silence_at_end(&self) -> f64 {
        (self.findings.seconds - self.findings.active_seconds).max(0.0)
    }

    /// Returns whether, at the receiver, the data stopped within a message and did not continue.
    pub(super) fn falls_silent(&self) -> bool {
        let is_ended_by_sender = match self.findings.close {
            Close::Open => false,
            Close::Closed => true,
            Close::Reset { by } => by == self.direction,
        };
        // The receiver's FIN, or its own data.
        let is_unanswered = self.findings.directions[1 - self.direction].outages.unanswered_timeouts > 0;
        self.is_at_receiver()
            && (self.rounds.is_some_and(|rounds| rounds.ends_within_message) || is_unanswered)
            && self.data.time.zero_window_seconds == 0.0
            && !is_ended_by_sender
            && !self.data.is_complete
            && self.silence_at_end() >= MIN_SILENCE.max(4.0 * self.round_trip)
    }

    /// Returns the median queueing delay in seconds.
    pub(super) fn queue(&self) -> f64 {
        self.rounds.and_then(|rounds| rounds.queueing_delay.median_seconds).unwrap_or(0.0)
    }

    /// Returns whether the capture shows the round trip. Without the handshake and timestamps, it does not at
    /// the receiver.
    pub(super) fn knows_round_trip(&self) -> bool {
        let [a, b] = self.findings.answers_after_seconds;
        a.is_some() && b.is_some() || self.round_trip >= UNKNOWN_ROUND_TRIP
    }

    /// Returns whether the capture shows the queueing delay. At the receiver, this needs timestamps.
    pub(super) fn knows_queue(&self) -> bool {
        self.rounds.is_some_and(|rounds| rounds.queueing_delay.median_seconds.is_some())
    }

    /// Returns whether a queue explains the rate of the transfer. A delay on a mostly idle link has other reasons,
    /// such as delayed ACKs. Without an estimate of the link's rate, the ends may also cause the delay.
    pub(super) fn is_queueing(&self) -> bool {
        let Some(rounds) = self.rounds else { return false };
        let is_by_window = self.share(rounds.window_limited_seconds) >= HELD_BACK;
        let is_by_ends = self.is_exchange() || is_by_window;
        self.has_long_queue()
            || self.queue() >= JITTER + QUEUEING * self.round_trip
                && self.utilization().map_or(!is_by_ends, |share| share >= BUSY)
    }

    /// Returns whether the sender sees a delay that is too long for other reasons than a queue. If ACKs arrive
    /// in bunches, the estimate of the link's rate is too high.
    fn has_long_queue(&self) -> bool {
        let paused = self.rounds.map_or(0.0, |rounds| rounds.pause_seconds + rounds.gap_seconds);
        self.queue() >= LONG_QUEUE.max(LONG_QUEUE_RTTS * self.round_trip)
            && self.share(paused) < SOME_PAUSES
            && self.data.window.zero_windows == 0
            && !self.is_at_receiver()
            && !self.is_exchange()
    }

    /// Returns whether the queue is known to be empty nearly all the time. A sender that paces its packets can
    /// then look like a full link.
    pub(super) fn never_queues(&self) -> bool {
        let delay = self.rounds.and_then(|rounds| rounds.queueing_delay.p90_seconds);
        delay.is_some_and(|delay| delay < JITTER.min(NO_QUEUE * self.round_trip).max(MIN_QUEUE))
    }

    /// Returns whether packets hardly ever follow each other faster than on average, as on a full link.
    pub(super) fn is_evenly_spaced(&self) -> bool {
        let high = self.rounds.and_then(|rounds| rounds.bottleneck_high_bit_per_s);
        high.is_some_and(|rate| self.data.throughput_bit_per_s >= FULL * rate)
    }

    /// Returns whether the link is busy for a considerable part of the time.
    pub(super) fn is_busy(&self) -> bool {
        self.utilization().is_some_and(|share| share >= BUSY)
    }

    /// Returns whether the ends exchange short requests and answers.
    pub(super) fn is_exchange(&self) -> bool {
        let requests = self.turns[0].count.min(self.turns[1].count);
        requests >= MIN_REQUESTS && self.data.data_packets <= ONE_FLIGHT * requests
    }

    /// Returns the goodput as a share of the bottleneck's rate.
    pub(super) fn utilization(&self) -> Option<f64> {
        let rate = self.rounds?.bottleneck_bit_per_s?;
        // The rate counts payload, like the goodput.
        Some(self.data.throughput_bit_per_s / rate)
    }

    /// Returns whether the limiting windows of a receiver differ, or are smaller than an earlier window.
    pub(super) fn window_changes(&self) -> bool {
        let Some(rounds) = self.rounds else { return false };
        let [min, max] = [rounds.limiting_window_min_bytes, rounds.limiting_window_max_bytes]
            .map(|bytes| bytes.unwrap_or(0) as f64);
        let mean = rounds.limiting_window_bytes.unwrap_or(f64::INFINITY);
        let offered_more = self.data.window.max_receiver_window_bytes as f64 > FULL_BUFFER * mean;
        offered_more || max > STEADY_WINDOW * min.max(1.0)
    }

    /// Returns the reason for a small window. `closed` is the share of the time with a closed window.
    pub(super) fn window_cause(&self, closed: f64) -> Cause {
        if self.rounds.is_none() {
            return Cause::SlowReader;
        }
        let syns = self.findings.handshake.syns;
        let has_scales = syns.iter().flatten().all(|syn| syn.window_scale.is_some() || syn.options_cut);
        if closed >= CLOSED || self.data.window.zero_windows >= REPEATED || self.window_changes() {
            Cause::SlowReader
        } else if !has_scales
            && syns.iter().all(Option::is_some)
            && (UNSCALED / 2..=UNSCALED).contains(&self.data.window.max_receiver_window_bytes)
        {
            Cause::NoWindowScaling
        } else {
            Cause::ReceiverWindow
        }
    }

    /// Returns whether the window of a capture without the SYNs, with some scale, equals the constant flight.
    pub(super) fn is_scaled_window(&self, flight: f64) -> bool {
        const TOLERANCE: f64 = 0.03;
        let window = &self.data.window;
        let (min, max) = (window.min_receiver_window_bytes.unwrap_or(0), window.max_receiver_window_bytes);
        min * 10 >= max * 9
            && max > 0
            && (0..=MAX_SCALE).any(|scale| (flight / (max << scale) as f64 - 1.0).abs() <= TOLERANCE)
    }

    /// Returns whether the sender fills its flight only after most of the last one was acknowledged, for a
    /// considerable share of the time, and so leaves the link idle.
    pub(super) fn refills_flight(&self) -> bool {
        let Some(rounds) = self.rounds else { return false };
        rounds.refills >= MIN_CONSTANT
            && !self.has_long_queue()
            && self.share(rounds.refill_seconds) >= REFILLING
            && self.utilization().is_some_and(|share| share < ALMOST_FULL)
    }

    /// Returns whether a constant flight below the receiver's window shows that the sender's buffer is full:
    /// new data follows each ACK, nothing is lost, and the link is idle for a part of each round trip.
    pub(super) fn has_constant_flight(&self) -> bool {
        let Some(rounds) = self.rounds else { return false };
        self.refills_flight()
            || rounds.constant_flight >= MIN_CONSTANT
                && rounds.loss_episodes == 0
                && rounds.marked == 0
                && !self.is_queueing()
                && rounds.pause_seconds + rounds.gap_seconds < 0.1 * self.seconds
                && self.utilization().is_some_and(|share| share < FULL - 0.1)
    }
}
