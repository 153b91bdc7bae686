//! The results about single round trips: evidence for the verdict.

use serde::{Serialize, Serializer};

/// Evidence about the limit of a sender, gathered per round trip. A round trip ends when the sender learns
/// that data of this round trip has arrived. Only directions with at least twelve packets of data have such
/// evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoundTripFindings {
    /// Number of round trips.
    pub count: u64,
    /// The total duration of the round trips. Pauses of the application are not included.
    pub seconds: f64,
    /// Number of round trips in which the flight grew by at least a fifth.
    pub growing: u64,
    /// Whether the flight also grew in the last round trip.
    pub grows_at_end: bool,
    /// Number of round trips in which the flight reached the receiver's window.
    pub window_limited: u64,
    /// Duration of these round trips.
    pub window_limited_seconds: f64,
    /// The mean window in these round trips.
    pub limiting_window_bytes: Option<f64>,
    /// The smallest window in these round trips.
    pub limiting_window_min_bytes: Option<u64>,
    /// The largest window in these round trips.
    pub limiting_window_max_bytes: Option<u64>,
    /// Number of round trips without a loss, a pause or a full window in which the flight was nearly the same
    /// as in the round trip before.
    pub constant_flight: u64,
    /// Duration of these round trips.
    pub constant_flight_seconds: f64,
    /// The mean flight in these round trips.
    pub constant_flight_bytes: Option<f64>,
    /// Number of pauses: everything was acknowledged, and the sender continued later, although the other end
    /// had not sent data in between.
    pub pauses: u64,
    /// Duration of the pauses.
    pub pause_seconds: f64,
    /// The longest pause.
    pub longest_pause_seconds: f64,
    /// Number of gaps after a segment that was not full, while data was outstanding. An ACK did not end them.
    pub gaps: u64,
    /// Duration of the gaps.
    pub gap_seconds: f64,
    /// Number of times that an ACK ended a gap.
    pub prompted_bursts: u64,
    /// Number of times that the sender left ACKs unanswered until at most a quarter of its flight was outstanding, and then
    /// filled it again. The receiver's window permitted to answer earlier.
    #[serde(skip)]
    pub refills: u64,
    /// The total time from each of them to the next one.
    #[serde(skip)]
    pub refill_seconds: f64,
    /// Number of times that the sender started with at most 11 segments after a pause, although it had sent
    /// twice as many before.
    pub restarts: u64,
    /// Number of times that the sender waited for a delayed ACK of a short segment.
    pub delayed_ack_stalls: u64,
    /// The time by which these ACKs were delayed.
    pub delayed_ack_stall_seconds: f64,
    /// Number of round trips with a congestion mark (CE), or its echo (ECE).
    pub marked: u64,
    /// Duration of these round trips.
    pub marked_seconds: f64,
    /// The round-trip time above its minimum.
    pub queueing_delay: DelayFindings,
    /// The part of the queueing delay on the way of the ACKs, measured with timestamps.
    pub ack_path_queueing_delay: DelayFindings,
    /// The rate of closely spaced packets: the median, weighted by bytes.
    pub bottleneck_bit_per_s: Option<f64>,
    /// The same rate at the 90th percentile.
    pub bottleneck_high_bit_per_s: Option<f64>,
    /// Number of loss episodes. The losses of one episode were all sent before the first one was detected.
    pub loss_episodes: u64,
    /// Number of lost segments that retransmissions reveal.
    pub lost_segments: u64,
    /// Number of lost segments in the largest episode.
    #[serde(skip)]
    pub largest_loss_episode: u64,
    /// The losses that a full queue does not explain.
    #[serde(skip)]
    pub losses_without_full_queue: LossCounts,
    /// Number of contiguous groups of lost segments.
    pub loss_runs: u64,
    /// Number of episodes that began while the queueing delay was at least half of its maximum.
    pub loss_episodes_with_queue: u64,
    /// The queueing delay with which most episodes began. `None` if the delays differ, or are short.
    pub loss_queue_seconds: Option<f64>,
    /// The median queueing delay with which episodes began.
    pub loss_delay_median_seconds: Option<f64>,
    /// The lower quartile of the queueing delay with which episodes began.
    #[serde(skip)]
    pub loss_delay_quartile_seconds: Option<f64>,
    /// The relative standard deviation of the data between two loss episodes.
    #[serde(skip)]
    pub loss_interval_deviation: Option<f64>,
    /// The token bucket that explains the losses. `None` if none does.
    pub token_bucket: Option<TokenBucketFindings>,
    /// The rate at which packets passed between lost segments in close succession.
    pub rate_between_losses_bit_per_s: Option<f64>,
    /// Number of segments that arrived after later ones although they were sent once, as SACK shows.
    pub overtaken_segments: u64,
    /// Number of ACKs lost before the capture point, from their IP identifications. `None` if these do not
    /// count packets.
    pub lost_acks: Option<u64>,
    /// Whether the last packet of data was full and without PSH, so that the sender had more data.
    pub ends_within_message: bool,
    /// The first frames that show each kind of evidence.
    pub frames: Frames,
}

/// Losses that a full queue does not explain: they began with a much shorter delay than other losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossCounts {
    /// Number of episodes.
    pub episodes: u64,
    /// Number of lost segments.
    pub segments: u64,
    /// Number of contiguous groups of lost segments.
    pub runs: u64,
    /// Number of lost segments in the largest episode.
    pub largest_episode: u64,
    /// Number of episodes that began with less than half of the longest delay of an episode.
    pub with_short_delay: u64,
    /// Number of episodes with a full queue, without those before the first other episode.
    pub full_later: u64,
}

/// A delay, weighted by the time for which it lasted. The error is at most 20 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DelayFindings {
    /// The median.
    pub median_seconds: Option<f64>,
    /// The 90 % quantile.
    pub p90_seconds: Option<f64>,
}

/// A token bucket without a queue (policer).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TokenBucketFindings {
    /// The rate of the tokens.
    pub rate_bit_per_s: f64,
    /// Bytes above the rate that passed before the first loss.
    pub burst_bytes: f64,
}

/// Frame numbers of evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Frames {
    /// Packets after which the receiver's window was full.
    pub window_full: FirstFrames,
    /// Retransmissions of lost segments.
    pub losses: FirstFrames,
    /// Packets that waited for a delayed ACK.
    pub delayed_acks: FirstFrames,
    /// Packets with congestion marks or their echo.
    pub marks: FirstFrames,
    /// The packet after the longest pause.
    pub longest_pause: Option<u64>,
}

/// The first frames of one kind. Unused entries are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FirstFrames([u64; FRAMES]);

impl Serialize for FirstFrames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Number of remembered frames of each kind.
const FRAMES: usize = 3;

impl FirstFrames {
    pub(in crate::connection) fn add(&mut self, frame: u64) {
        if let Some(free) = self.0.iter_mut().find(|known| **known == 0) {
            *free = frame;
        }
    }

    /// Returns the frames.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.into_iter().filter(|frame| *frame > 0)
    }
}

/// Silences in which a sender or its data met no answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OutageFindings {
    /// Number of silences of at least a second during which at least two timeouts were not answered. At the
    /// receiver, each silence ends with a retransmission.
    pub count: u64,
    /// The total duration of these silences, each from the last packet of the other end to its next packet.
    pub seconds: f64,
    /// The longest one.
    pub longest_seconds: f64,
    /// The time without a packet of the other end around all timeouts, also single ones.
    pub stalled_seconds: f64,
    /// The frame that ended the longest one.
    pub frame: Option<u64>,
    /// Number of timeouts since the last packet of the other end, at the end of the capture.
    pub unanswered_timeouts: u64,
}

/// The time that the application of one end waited before sending data, without the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TurnFindings {
    /// Number of times that data of this end followed data of the other end.
    pub count: u64,
    /// The total wait before the data that followed, including the first data after the handshake.
    pub waited_seconds: f64,
    /// The longest wait.
    pub longest_seconds: f64,
    /// The frame that ended the longest wait.
    pub longest_frame: Option<u64>,
    /// The wait before the first data, if this end sent the first data of the connection.
    pub first_seconds: Option<f64>,
}
