//! Gathers evidence per round trip: did the flight reach the receiver's window, did the application leave a
//! gap, how long was the queue, how fast is the bottleneck, and how do losses occur?
//!
//! All questions are asked from the sender's point of view, also if the capture point is elsewhere. A packet
//! that passes the capture point was sent with the knowledge of the ACKs that had passed it one
//! `sender_reply_delay` earlier. At the receiver, this is the round-trip time.

mod ack_history;
mod delays;
mod losses;
mod observe;
mod trains;
mod windows;

use std::ops::Range;

use aircaptures::packet::Packet;

use self::ack_history::{AckHistory, AckState};
use self::delays::{DelayTimes, OneWayDelay};
use self::losses::{LossEpisodes, QueueAtLoss};
use self::trains::Trains;
use self::windows::Windows;
use crate::compact::ALLOCATOR_OVERHEAD;
use crate::connection::congestion;
use crate::connection::findings::{DelayFindings, Frames, RoundTripFindings, TokenBucketFindings};

/// Number of data packets from which evidence is gathered. Most connections have fewer, and need no memory.
const MIN_PACKETS: u32 = 12;
/// Nanoseconds. If the sender answers faster, its ACKs take effect immediately.
const MIN_LAG: i64 = 1_000_000;
/// Nanoseconds by which a delay that is computed from timestamps may be too long.
const MAX_TICK: i64 = 1_000_000;
/// Nanoseconds within which a sender reacts to an ACK, including the jitter of the path.
const PROMPT: i64 = 3_000_000;
/// Nanoseconds without data after which the next packet needs an explanation.
const MIN_GAP: i64 = 3_000_000;
/// Minimum pause in nanoseconds that is longer than any round trip, if the round trip is unknown.
const MIN_UNKNOWN_PAUSE: i64 = 1_000_000_000;
/// Minimum pause in nanoseconds before a restart of slow start (RFC 5681 §4.1). Linux's minimum timeout is
/// 200 ms.
const MIN_RESTART_PAUSE: i64 = 200_000_000;
/// Largest initial window in segments (RFC 6928), which is also the restart window.
const RESTART_WINDOW: u32 = 10;
/// Minimum growth of the flight per round trip in slow start with delayed ACKs.
const SLOW_START_GROWTH: f64 = 1.2;
/// Relative change of the flight between rounds that still counts as constant.
const FLAT: f64 = 0.1;

/// The current round trip. It ends when the sender learns that data of this round trip has arrived.
#[derive(Clone, Debug)]
struct Round {
    began: i64,
    /// The end of the data sent before the round.
    end: u64,
    flight: u32,
    /// The window that the flight has reached.
    reached: Option<u32>,
    is_idle: bool,
    has_loss: bool,
    is_marked: bool,
    /// Minimum delays in nanoseconds, to the receiver and back, to the sender and back, and one way.
    rtt: i64,
    echo: i64,
    one_way: [i64; 2],
}

impl Round {
    fn new(began: i64, end: u64) -> Self {
        Self {
            began,
            end,
            flight: 0,
            reached: None,
            is_idle: false,
            has_loss: false,
            is_marked: false,
            rtt: i64::MAX,
            echo: i64::MAX,
            one_way: [i64::MAX; 2],
        }
    }
}

/// A count and a duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u32,
    time: i64,
}

impl Sum {
    fn add(&mut self, time: i64) {
        self.count = self.count.saturating_add(1);
        self.time = self.time.saturating_add(time);
    }

    fn seconds(self) -> f64 {
        self.time as f64 / 1e9
    }
}

/// Rounds whose flight or window had a similar size.
#[derive(Clone, Debug, Default)]
struct SizedRounds {
    sum: Sum,
    /// The integral of the size over time, in byte-nanoseconds.
    bytes: f64,
    min: u32,
    max: u32,
}

impl SizedRounds {
    fn add(&mut self, time: i64, size: u32) {
        self.min = if self.sum.count == 0 { size } else { self.min.min(size) };
        self.max = self.max.max(size);
        self.sum.add(time);
        self.bytes += f64::from(size) * time as f64;
    }

    fn mean(&self) -> Option<f64> {
        (self.sum.time > 0).then(|| self.bytes / self.sum.time as f64)
    }
}

/// Detects ACKs that were lost before the capture point, by the gaps in their IP identifications.
#[derive(Clone, Debug, Default)]
struct AckIds {
    last: Option<u16>,
    consecutive: u32,
    missing: u32,
    /// Steps that an incrementing identification does not make.
    odd: u32,
}

impl AckIds {
    fn add(&mut self, id: Option<u16>) {
        if let (Some(id), Some(last)) = (id, self.last) {
            match id.wrapping_sub(last) {
                1 => self.consecutive += 1,
                step @ 2..=64 => self.missing += u32::from(step) - 1,
                _ => self.odd += 1,
            }
        }
        self.last = id;
    }

    /// Returns the number of lost packets, if the identifications count packets.
    fn lost(&self) -> Option<u32> {
        let steps = self.consecutive + self.missing + self.odd;
        (self.odd * 20 <= steps && self.consecutive > 8).then_some(self.missing)
    }
}

#[derive(Clone, Debug)]
pub(super) struct RoundTrips {
    round: Round,
    previous_flight: u32,
    /// The flight before a pause, until the end of the first round after the pause.
    before_pause: Option<u32>,
    history: Option<Box<AckHistory<32>>>,
    /// The same ACKs, until they have passed the queue of the data.
    delayed_history: Option<Box<AckHistory<256>>>,
    windows: Windows,
    /// The number of ACKs to a sender far away, and the newest one that it knows.
    acks: u32,
    known: AckState,
    /// The minimum round-trip time of a sender far away, in nanoseconds, as the handshake has shown it.
    assumed_rtt: i64,
    /// The receiver's timestamp that the sender has not echoed yet, and its time.
    unechoed: Option<(u32, i64)>,
    newest_tsval: Option<u32>,
    min_echo: i64,
    /// The minimum without the delay of the data's packets.
    min_echo_of_data: i64,
    /// Delays of the data's and of the ACKs' packets.
    one_way: [OneWayDelay; 2],
    /// A delayed ACK of a short segment: its time, and by how much it was delayed.
    delayed_ack: Option<(i64, i64)>,
    last_sent: i64,
    last_is_short: bool,
    last_is_pushed: bool,
    rounds: Sum,
    growing: u32,
    growing_at_end: bool,
    window: SizedRounds,
    flat: SizedRounds,
    idle: Sum,
    longest_idle: i64,
    starved: Sum,
    /// Flights that the sender filled again only after most of the last one was acknowledged: the times from one to
    /// the next.
    refills: Sum,
    refilled_at: Option<i64>,
    /// Number of ACKs for new data at the sender since its last packet.
    unanswered_acks: u32,
    /// The time of the last ACK at the sender.
    acked_at: i64,
    /// Whether the last packet has filled the receiver's window.
    last_fills_window: bool,
    prompted: u32,
    restarts: u32,
    stalls: Sum,
    marked: Sum,
    recent_queue: [i64; 2],
    max_queue: i64,
    /// The one-way delay of the last packet, and the longer of the two delays around the last gap.
    last_delay: i64,
    max_delay: i64,
    gap_delay: i64,
    last_rtt: i64,
    queue: DelayTimes,
    ack_path_queue: DelayTimes,
    trains: Trains,
    losses: LossEpisodes,
    ack_ids: AckIds,
    overtaken: u32,
    /// Whether the capture has cut off SACK blocks.
    hides_sacks: bool,
    first_data_at: i64,
    first_byte: u64,
    frames: Frames,
}

/// Returns the shortest queueing delay that is not jitter, for a round trip.
fn shortest_queue(round_trip: i64) -> i64 {
    (round_trip / 10).max(MIN_GAP)
}

/// A packet with data.
pub(super) struct Sent {
    pub(super) range: Range<u64>,
    pub(super) is_new: bool,
    /// The end of the data sent earlier.
    pub(super) sent_before: u64,
}

impl RoundTrips {
    fn new(at: i64, first_byte: u64, end: u64, first_data_at: i64) -> Self {
        Self {
            round: Round::new(at, end),
            previous_flight: 0,
            before_pause: None,
            history: None,
            delayed_history: None,
            windows: Windows::new(at, end),
            acks: 0,
            known: AckState { una: first_byte, ..AckState::default() },
            assumed_rtt: 0,
            unechoed: None,
            newest_tsval: None,
            min_echo: i64::MAX,
            min_echo_of_data: i64::MAX,
            one_way: Default::default(),
            delayed_ack: None,
            last_sent: at,
            last_is_short: false,
            last_is_pushed: false,
            rounds: Sum::default(),
            growing: 0,
            growing_at_end: false,
            window: SizedRounds::default(),
            flat: SizedRounds::default(),
            idle: Sum::default(),
            longest_idle: 0,
            starved: Sum::default(),
            refills: Sum::default(),
            refilled_at: None,
            unanswered_acks: 0,
            acked_at: at,
            last_fills_window: false,
            prompted: 0,
            restarts: 0,
            stalls: Sum::default(),
            marked: Sum::default(),
            recent_queue: [0; 2],
            max_queue: 0,
            last_delay: 0,
            max_delay: 0,
            gap_delay: 0,
            last_rtt: 0,
            queue: DelayTimes::default(),
            ack_path_queue: DelayTimes::default(),
            trains: Trains::default(),
            losses: LossEpisodes::default(),
            ack_ids: AckIds::default(),
            overtaken: 0,
            hides_sacks: false,
            first_data_at,
            first_byte,
            frames: Frames::default(),
        }
    }

    /// Returns the state with the evidence from `at` on.
    pub(super) fn continued(&self, at: i64) -> Self {
        let [data, acks] = &self.one_way;
        Self {
            round: Round { began: self.round.began.max(at), ..self.round.clone() },
            previous_flight: self.previous_flight,
            history: self.history.clone(),
            delayed_history: self.delayed_history.clone(),
            acks: self.acks,
            known: self.known,
            assumed_rtt: self.assumed_rtt,
            unechoed: self.unechoed,
            newest_tsval: self.newest_tsval,
            min_echo: self.min_echo,
            min_echo_of_data: self.min_echo_of_data,
            one_way: [data.continued(at), acks.continued(at)],
            last_sent: self.last_sent,
            last_is_short: self.last_is_short,
            last_is_pushed: self.last_is_pushed,
            recent_queue: self.recent_queue,
            last_delay: self.last_delay,
            max_delay: self.max_delay,
            last_rtt: self.last_rtt,
            hides_sacks: self.hides_sacks,
            ack_ids: AckIds { last: self.ack_ids.last, ..AckIds::default() },
            ..Self::new(at, self.first_byte, self.round.end, at)
        }
    }

    pub(super) fn heap(&self) -> usize {
        let history = self.history.as_ref().map_or(0, |history| size_of_val(&**history) + history.heap());
        let delayed =
            self.delayed_history.as_ref().map_or(0, |history| size_of_val(&**history) + history.heap());
        size_of::<Self>() + ALLOCATOR_OVERHEAD + history + delayed + self.losses.heap() + self.windows.heap()
    }

    pub(super) fn add_rtt(&mut self, ns: i64) {
        self.round.rtt = self.round.rtt.min(ns);
        self.last_rtt = ns;
    }

    /// Adds the RTT that a sender at the capture point measures.
    pub(super) fn add_sender_rtt(&mut self, ns: i64, sender_reply_delay: i64) {
        if sender_reply_delay < MIN_LAG {
            // The sender has answered slowly until now, which looked like a capture far away from it.
            if std::mem::take(&mut self.acks) > 0 {
                self.windows.forget_rtts();
            }
            self.windows.add_rtt(ns);
        }
    }

    /// Returns the sender's window in each round trip.
    pub(super) fn windows(&self) -> Vec<congestion::Round> {
        let mut rounds = self.windows.rounds.clone();
        // The round trip of data may be longer than the handshake, because a slow link takes longer for data.
        if self.acks > 0 && self.min_echo_of_data < i64::MAX {
            let excess = (self.min_echo_of_data - self.assumed_rtt) / 1000;
            for round in rounds.iter_mut().filter(|round| round.min_rtt > 0) {
                for rtt in [&mut round.min_rtt, &mut round.mean_rtt, &mut round.max_rtt] {
                    *rtt = u32::try_from(i64::from(*rtt) + excess).unwrap_or(0);
                }
            }
        }
        rounds
    }

    /// Returns the RTT in nanoseconds of a segment that does not wait in a queue, for a sender far away.
    pub(super) fn base_rtt_behind_link(&self, segment: u32) -> Option<i64> {
        let rate = self.trains.rate(0.5)?;
        (self.acks > 0).then(|| self.assumed_rtt + (f64::from(segment) * 8e9 / rate) as i64)
    }

    /// Returns whether timestamps show the queueing delay of the data.
    pub(super) fn has_delays(&self) -> bool {
        self.one_way[0].is_known()
    }

    /// Returns the queue when a segment was lost. `base_rtt` is the minimum of `last_rtt`, and `share` the part of
    /// the round trip on the sender's side.
    fn queue_at_loss(&self, base_rtt: i64, share: f64, least: i64) -> QueueAtLoss {
        let recent = self.recent_queue[0].max(self.recent_queue[1]);
        let delay = if share <= 0.5 { self.last_rtt - base_rtt } else { self.gap_delay };
        // An overflowing queue is nearly at its maximum length.
        QueueAtLoss { is_long: recent >= least && recent * 2 >= self.max_queue, delay }
    }

    /// Records segments that arrived after later ones, although they were sent once.
    pub(super) fn add_overtaken(&mut self, segments: u32) {
        self.overtaken = self.overtaken.saturating_add(segments);
    }

    /// Records a delayed ACK for a short segment that was alone in flight.
    pub(super) fn delayed_ack(&mut self, at: i64, delay: i64) {
        self.delayed_ack = Some((at, delay));
    }

    /// Ends the round. `base_rtt` is the minimum RTT between the capture point and the receiver, and `share`
    /// the part of the round trip on the sender's side.
    fn end_round(&mut self, at: i64, end: u64, base_rtt: i64, share: f64, segment: u32) {
        let round = std::mem::replace(&mut self.round, Round::new(at, end));
        let lasted = at - round.began;
        self.rounds.add(lasted);
        if round.is_marked {
            self.marked.add(lasted);
        }
        let (flight, previous) = (f64::from(round.flight), f64::from(self.previous_flight));
        let grows = self.previous_flight > 0 && flight >= previous * SLOW_START_GROWTH;
        self.growing += u32::from(grows);
        self.growing_at_end = grows;
        if let Some(before) = self.before_pause.take() {
            let is_small = round.flight <= (RESTART_WINDOW + 1) * segment;
            self.restarts += u32::from(is_small && round.flight <= before / 2);
        }
        if let Some(window) = round.reached.filter(|_| !round.has_loss) {
            self.window.add(lasted, window);
        } else if !round.has_loss
            && !round.is_idle
            && (flight - previous).abs() <= (previous * FLAT).max(f64::from(segment))
        {
            self.flat.add(lasted, round.flight);
        }
        self.previous_flight = round.flight;
        if !round.is_idle {
            self.add_delays(&round, lasted, base_rtt, share);
        }
    }

    fn add_delays(&mut self, round: &Round, lasted: i64, base_rtt: i64, share: f64) {
        const NEAR: f64 = 0.1;
        let above = |min: i64, base: i64| (min < i64::MAX).then(|| (min - base).max(0));
        let forth = above(round.rtt, base_rtt);
        let back = above(round.echo, self.min_echo);
        let queue = if share <= NEAR {
            forth
        } else if share >= 1.0 - NEAR {
            back
        } else {
            forth.zip(back).map(|(forth, back)| forth + back).or(forth)
        };
        let Some(queue) = queue else { return };
        self.queue.add(queue, lasted);
        self.max_queue = self.max_queue.max(queue);
        self.recent_queue = [queue, self.recent_queue[0]];
        let one_way = round.one_way.map(|delay| (delay < i64::MAX).then_some(delay));
        let of_acks = if share >= 1.0 - NEAR {
            one_way[0].map(|of_data| (queue - of_data).max(0))
        } else {
            one_way[1].map(|of_acks| of_acks.min(queue))
        };
        if let Some(of_acks) = of_acks {
            self.ack_path_queue.add(of_acks, lasted);
        }
    }

    fn echoed(&mut self, packet: &Packet, at: i64, delay: i64) {
        let Some(timestamps) = packet.options.timestamps else { return };
        if let Some((tsval, since)) = self.unechoed
            && timestamps.ecr.wrapping_sub(tsval) as i32 >= 0
        {
            self.unechoed = None;
            self.round.echo = self.round.echo.min(at - since);
            self.min_echo = self.min_echo.min(at - since);
            self.min_echo_of_data = self.min_echo_of_data.min(at - since).min(at - since - delay + MAX_TICK);
        }
    }

    /// Measures the round trip of an ACK whose timestamp is echoed. Other than the first ACK that is not echoed yet, it
    /// does not include the time for which the sender had nothing to send.
    fn observe_echo(&mut self, packet: &Packet, at: i64, known: AckState) {
        let Some(timestamps) = packet.options.timestamps else { return };
        if timestamps.ecr == known.tsval && known.at > 0 {
            self.round.echo = self.round.echo.min(at - known.at);
            self.min_echo = self.min_echo.min(at - known.at);
        }
    }

    /// Adds a packet of the sender (0) or of the receiver (1). Returns its delay above the minimum.
    fn add_one_way(&mut self, of: usize, packet: &Packet, at: i64) -> Option<i64> {
        let delay = self.one_way[of].add(packet.options.timestamps?.val, at)?;
        self.round.one_way[of] = self.round.one_way[of].min(delay);
        Some(delay)
    }

    fn starts_request_of_echo(&mut self, packet: &Packet, at: i64) {
        let Some(timestamps) = packet.options.timestamps else { return };
        if self.newest_tsval.is_none_or(|newest| timestamps.val.wrapping_sub(newest) as i32 > 0) {
            self.newest_tsval = Some(timestamps.val);
            self.unechoed.get_or_insert((timestamps.val, at));
        }
    }

    /// Returns the results. `base_rtt` is the whole minimum round trip in nanoseconds.
    pub(super) fn findings(mut self, base_rtt: i64, segment: u32) -> RoundTripFindings {
        self.trains.end(u64::from(segment));
        let bucket = self.losses.token_bucket(self.first_data_at, base_rtt);
        let delays = |times: &DelayTimes| DelayFindings {
            median_seconds: times.quantile(0.5),
            p90_seconds: times.quantile(0.9),
        };
        let seconds = |ns: i64| ns as f64 / 1e9;
        RoundTripFindings {
            count: self.rounds.count.into(),
            seconds: self.rounds.seconds(),
            growing: self.growing.into(),
            grows_at_end: self.growing_at_end,
            window_limited: self.window.sum.count.into(),
            window_limited_seconds: self.window.sum.seconds(),
            limiting_window_bytes: self.window.mean(),
            limiting_window_min_bytes: (self.window.sum.count > 0).then_some(self.window.min.into()),
            limiting_window_max_bytes: (self.window.sum.count > 0).then_some(self.window.max.into()),
            constant_flight: self.flat.sum.count.into(),
            constant_flight_seconds: self.flat.sum.seconds(),
            constant_flight_bytes: self.flat.mean(),
            pauses: self.idle.count.into(),
            pause_seconds: self.idle.seconds(),
            longest_pause_seconds: seconds(self.longest_idle),
            gaps: self.starved.count.into(),
            gap_seconds: self.starved.seconds(),
            prompted_bursts: self.prompted.into(),
            refills: self.refills.count.into(),
            refill_seconds: self.refills.seconds(),
            restarts: self.restarts.into(),
            delayed_ack_stalls: self.stalls.count.into(),
            delayed_ack_stall_seconds: self.stalls.seconds(),
            marked: self.marked.count.into(),
            marked_seconds: self.marked.seconds(),
            queueing_delay: delays(&self.queue),
            ack_path_queueing_delay: delays(&self.ack_path_queue),
            bottleneck_bit_per_s: self.trains.rate(0.5),
            bottleneck_high_bit_per_s: self.trains.rate(0.9),
            loss_episodes: self.losses.episodes.into(),
            lost_segments: self.losses.segments.into(),
            largest_loss_episode: self.losses.largest.into(),
            losses_without_full_queue: self.losses.without_full_queue(shortest_queue(base_rtt)),
            loss_runs: self.losses.runs.into(),
            loss_episodes_with_queue: self.losses.with_queue.into(),
            loss_queue_seconds: self.losses.queue(shortest_queue(base_rtt)).map(seconds),
            loss_delay_median_seconds: self.losses.delay_quantile(2).map(seconds),
            loss_delay_quartile_seconds: self.losses.delay_quantile(1).map(seconds),
            loss_interval_deviation: self.losses.deviation_of_intervals(),
            token_bucket: bucket.map(|bucket| TokenBucketFindings {
                rate_bit_per_s: bucket.rate * 8.0,
                burst_bytes: bucket.burst,
            }),
            overtaken_segments: if self.hides_sacks { 0 } else { self.overtaken.into() },
            rate_between_losses_bit_per_s: self.losses.rate_between_drops().map(|rate| rate * 8.0),
            lost_acks: self.ack_ids.lost().map(u64::from),
            ends_within_message: !self.last_is_short && !self.last_is_pushed,
            frames: self.frames,
        }
    }
}
