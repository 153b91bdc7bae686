//! The results for the data that one end sent.

use std::net::SocketAddr;

use serde::Serialize;

use super::{CapturePoint, OutageFindings, RoundTripFindings, SenderFindings};

/// The data that one end sent, and the ACKs for this data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionFindings {
    /// The sender of the data.
    pub from: SocketAddr,
    /// The receiver of the data.
    pub to: SocketAddr,
    /// Number of packets of the sender, including packets without data.
    pub packets: u64,
    /// Number of packets with payload.
    pub data_packets: u64,
    /// Bytes of payload, including retransmissions.
    pub sent_bytes: u64,
    /// Acknowledged bytes of payload, each counted once.
    pub acked_bytes: u64,
    /// Acknowledged bytes that are not in any packet of the capture, because the capture missed them.
    pub acked_unseen_bytes: u64,
    /// Whether the FIN was acknowledged, so that all data has arrived.
    #[serde(skip)]
    pub is_complete: bool,
    /// Time from the first packet with data to the last ACK for new data. If data was outstanding or the
    /// receiver's window was closed at the end, or if the capture does not contain ACKs, to the last packet.
    pub transfer_seconds: f64,
    /// `acked_bytes` per `transfer_seconds`.
    pub goodput_bit_per_s: f64,
    /// `sent_bytes` per `transfer_seconds`.
    pub throughput_bit_per_s: f64,
    /// The data sent and acknowledged over time.
    pub series: SeriesFindings,
    /// The retransmissions.
    pub retransmissions: Retransmissions,
    /// The time from the capture point to the receiver and back.
    pub rtt: RttFindings,
    /// The part of the round trip that `rtt` measures.
    pub rtt_of: RttOf,
    /// The windows of both ends.
    pub window: WindowFindings,
    /// The sender's time by what limited the sender.
    pub time: TimeFindings,
    /// The order in which packets arrived.
    pub arrivals: Arrivals,
    /// The ACKs for the data.
    pub acks: AckFindings,
    /// The marks that routers and base stations wrote.
    pub marks: Marks,
    /// The characteristics of the sender.
    pub sender: SenderFindings,
    /// Evidence per round trip. `None` if the direction has fewer than twelve packets of data.
    pub round_trips: Option<Box<RoundTripFindings>>,
    /// Silences during which the data met no answer.
    pub outages: OutageFindings,
    /// Evidence about the path MTU. `None` if there are neither ICMP errors nor lost segments.
    pub path_mtu: Option<PathMtuFindings>,
}

/// Evidence that segments are too long for the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathMtuFindings {
    /// Whether long segments disappear on the path.
    pub black_hole: BlackHole,
    /// Payload of the segment that was retransmitted and never acknowledged as a whole.
    pub lost_segment_bytes: Option<u64>,
    /// The frame of the segment's first retransmission.
    pub lost_segment_frame: Option<u64>,
    /// Number of transmissions of the segment.
    pub lost_segment_times: u64,
    /// Whether its data was sent in shorter segments afterwards.
    pub lost_segment_split: bool,
    /// The longest payload that was acknowledged.
    pub longest_acked_bytes: u64,
    /// The smallest MTU that ICMP reported to the sender.
    pub icmp_mtu: Option<u32>,
    /// Number of packets longer than this MTU that were sent afterwards.
    pub above_icmp_mtu: u64,
}

/// Whether long segments disappear on the path (RFC 2923 §2.1). The evidence is a segment of more than 512
/// bytes that was sent at least three times, while the receiver never acknowledged a segment of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlackHole {
    /// No evidence.
    No,
    /// Possible, but nothing more was received from the other end, so it may have disappeared.
    Possible,
    /// The other end still sent packets, the data arrived in shorter segments, or ICMP reported it.
    Likely,
}

/// Bytes over time, from the direction's first data, in at most 200 bins of equal width.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesFindings {
    /// The beginning of the first bin, relative to the connection's first packet.
    pub begin_seconds: f64,
    /// The width of a bin.
    pub bin_seconds: f64,
    /// Bytes of payload sent in each bin.
    pub sent_bytes: Vec<u64>,
    /// Bytes acknowledged for the first time in each bin.
    pub acked_bytes: Vec<u64>,
}

/// The retransmissions. Each packet is counted in exactly one of `fast`, `timeout`, `tail` and `unexplained`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retransmissions {
    /// Number of retransmitted packets with data or a FIN.
    pub packets: u64,
    /// Bytes of payload in these packets.
    pub bytes: u64,
    /// Fast retransmissions: after duplicate ACKs, for a hole that SACK or a partial ACK revealed, or because
    /// data sent later has arrived (RACK, RFC 8985).
    pub fast: u64,
    /// Retransmissions by timeouts, including the following ones until all data that was outstanding is
    /// acknowledged.
    pub timeout: u64,
    /// Tail loss probes: retransmissions of the last segment before the timer expires (TLP, RFC 8985 §7).
    pub tail: u64,
    /// Retransmissions whose reason the capture does not show.
    pub unexplained: u64,
    /// Retransmitted SYNs. They are not included in `packets`.
    pub syns: u64,
    /// Zero-window probes (RFC 9293 §3.8.6.1). They are not included in `packets`.
    pub window_probes: u64,
    /// Keep-alives (RFC 9293 §3.8.4). They are not included in `packets`.
    pub keep_alives: u64,
    /// The retransmissions without an earlier copy in the capture, because it was lost before the capture
    /// point.
    pub lost_before_capture: u64,
    /// Number of loss recoveries that began without a timeout (Pan et al. 2004, §4.1: succeeded-dupack).
    pub fast_retransmits: u64,
    /// Number of expiries of the retransmission timer.
    pub timeouts: u64,
    /// The timeouts by the number of preceding duplicate ACKs: 0, 1, 2, and 3 or more (Pan et al. 2004, §4.1:
    /// x-dupack).
    pub timeouts_by_dupacks: [u64; 4],
    /// Timeouts after x duplicate ACKs with x + 1 segments outstanding (Pan et al. 2004, §4.1:
    /// failed-dupack).
    pub failed_dupack: u64,
    /// The spurious retransmissions.
    pub spurious: Spurious,
}

/// Spurious retransmissions, each counted with its first proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spurious {
    /// Number of spurious retransmissions.
    pub packets: u64,
    /// The ACK echoed a timestamp from before the retransmission (Eifel, RFC 3522).
    pub by_timestamp: u64,
    /// The receiver reported a duplicate (RFC 2883, RFC 3708).
    pub by_dsack: u64,
    /// The data had been acknowledged before the retransmission passed the capture point.
    pub by_ack: u64,
    /// Timeouts whose first retransmission was spurious. If D-SACK is the proof, only those after which no
    /// other segment had been lost.
    pub timeouts: u64,
    /// Fast retransmits whose first retransmission was spurious.
    pub fast_retransmits: u64,
}

/// Round-trip times. An ACK for new data yields at most one sample. The sample is measured from the newest
/// segment that the ACK covers, if none of the covered segments was sent twice or waited for a hole to be
/// filled (Karn's algorithm). Otherwise it is measured from the transmission whose timestamp the ACK echoes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RttFindings {
    /// Number of samples. If it is 0, all following fields are `None`.
    pub samples: u64,
    /// Number of samples measured with echoed timestamps.
    pub by_timestamps: u64,
    /// The minimum.
    pub min_seconds: Option<f64>,
    /// The mean.
    pub mean_seconds: Option<f64>,
    /// The median. With more than 64 samples, all quantiles have an error of up to 1 %.
    pub median_seconds: Option<f64>,
    /// The 90 % quantile.
    pub p90_seconds: Option<f64>,
    /// The 99 % quantile.
    pub p99_seconds: Option<f64>,
    /// The maximum.
    pub max_seconds: Option<f64>,
    /// The mean absolute deviation from the mean.
    pub mean_deviation_seconds: Option<f64>,
    /// The resolution of the clock, if it is known. Shorter times are `None`.
    pub resolution_seconds: Option<f64>,
}

impl RttFindings {
    /// Replaces the times that are shorter than a step of the clock.
    pub(in crate::connection) fn with_resolution(self, resolution_seconds: Option<f64>) -> Self {
        let visible = |seconds: Option<f64>| seconds.filter(|seconds| *seconds > 0.0);
        Self {
            min_seconds: visible(self.min_seconds),
            mean_seconds: visible(self.mean_seconds),
            median_seconds: visible(self.median_seconds),
            p90_seconds: visible(self.p90_seconds),
            p99_seconds: visible(self.p99_seconds),
            max_seconds: visible(self.max_seconds),
            resolution_seconds: resolution_seconds.filter(|_| self.samples > 0),
            ..self
        }
    }
}

/// The part of the round trip that the RTT samples of a direction measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttOf {
    /// The whole round trip, because the capture point is at the sender.
    RoundTrip,
    /// The round trip between the capture point, which is between the ends, and the receiver.
    PartOfRoundTrip,
    /// The response time of the receiver, because the capture point is at the receiver.
    ReceiverDelay,
    /// Unknown, because the capture point is unknown.
    #[default]
    Unknown,
}

impl RttOf {
    /// Returns the part that a capture measures for the data of end `from`.
    pub(in crate::connection) fn of_direction(capture_at: CapturePoint, from: usize) -> Self {
        match capture_at {
            CapturePoint::End { end } if end == from => Self::RoundTrip,
            CapturePoint::End { .. } => Self::ReceiverDelay,
            CapturePoint::Between { .. } => Self::PartOfRoundTrip,
            CapturePoint::Unknown => Self::Unknown,
        }
    }

    /// Returns the axis label for graphs.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundTrip | Self::Unknown => "round-trip time",
            Self::PartOfRoundTrip => "partial round-trip time",
            Self::ReceiverDelay => "receiver delay",
        }
    }
}

/// The data in flight and the windows. Values that depend on the flight are `None` for a capture at the
/// receiver or without ACKs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowFindings {
    /// Maximum flight: data that was sent and is neither acknowledged, nor SACKed or covered by duplicate
    /// ACKs, nor considered lost after a timeout.
    pub max_flight_bytes: Option<u64>,
    /// Mean flight over the time of the transfer.
    pub mean_flight_bytes: Option<f64>,
    /// Maximum flight within a round trip. It equals the sender's window if nothing else limited the sender.
    pub max_estimated_cwnd_bytes: Option<u64>,
    /// The largest window that the receiver advertised, scaled.
    pub max_receiver_window_bytes: u64,
    /// The smallest window that the receiver advertised, scaled. `None` without ACKs.
    pub min_receiver_window_bytes: Option<u64>,
    /// Whether the receiver's window scale is unknown, so that its windows are not scaled.
    pub unscaled: bool,
    /// Number of times that the receiver's window closed.
    pub zero_windows: u64,
    /// Number of times that the window's right edge moved to the left (RFC 9293 §3.8.6).
    pub shrunk: u64,
}

/// The time of a transfer by what limited the sender. It extends from the first data to the last ACK for new
/// data. If data was outstanding or the window was closed at the end, it extends to the last packet. The
/// parts add up to the total.
///
/// Fields are `None` if the capture does not show them. A capture at the receiver does not show data in
/// transit, so a slow network cannot be distinguished from a sender that has nothing to send.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeFindings {
    /// The sum of the parts.
    pub total_seconds: f64,
    /// The receiver's window was closed.
    pub zero_window_seconds: f64,
    /// Both ends were silent until the sender retransmitted by timeout.
    pub waiting_for_timeout_seconds: f64,
    /// Less than one more segment fitted into the receiver's window.
    pub window_limited_seconds: f64,
    /// Nothing was outstanding, or the newest segment was not full and the sender was not in recovery.
    pub application_limited_seconds: Option<f64>,
    /// The remaining time, when the sender's window and the network were the limit.
    pub network_limited_seconds: Option<f64>,
    /// Time that is either application-limited or network-limited. At the receiver, it may also include
    /// timeouts.
    pub undetermined_seconds: f64,
    /// The longest single wait in `waiting_for_timeout_seconds`.
    pub longest_wait_for_timeout_seconds: f64,
}

impl TimeFindings {
    /// Returns the time in which nothing could be sent: waiting for timeouts, and with a closed window.
    pub fn waiting_seconds(&self) -> f64 {
        self.waiting_for_timeout_seconds + self.zero_window_seconds
    }
}

/// The order in which packets passed the capture point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrivals {
    /// Packets with data that were sent before packets that passed earlier.
    pub out_of_order: u64,
    /// Packets whose data had already passed completely: copies made by the network, and retransmissions.
    pub duplicate: u64,
}

/// The ACKs for the data of a direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AckFindings {
    /// Number of packets that acknowledge this direction.
    pub packets: u64,
    /// Duplicate ACKs (RFC 5681 §2): the highest ACK number is repeated while data is outstanding, in a
    /// packet without data, SYN or FIN and with the same window.
    pub duplicate: u64,
    /// ACKs below the highest ACK number.
    pub old: u64,
    /// Number of packets with a SACK option.
    pub with_sack: u64,
    /// Number of SACK blocks, including D-SACKs.
    pub sack_blocks: u64,
    /// Number of blocks that report a duplicate (D-SACK, RFC 2883).
    pub dsacks: u64,
    /// Number of ACKs that echo a congestion mark (ECE, RFC 3168).
    pub ece: u64,
    /// The ACK frequency.
    pub policy: AckPolicyFindings,
}

/// The ACK frequency of a receiver for data that arrives in order, without loss. If the receiver or the
/// capture merges segments (GRO), there are fewer ACKs, and each covers more.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AckPolicyFindings {
    /// The verdict.
    pub looks_like: AckPolicy,
    /// ACKs for one segment, without the delayed ones.
    pub for_one_segment: u64,
    /// ACKs for two segments.
    pub for_two_segments: u64,
    /// ACKs for more than two segments.
    pub for_more_segments: u64,
    /// ACKs for a segment that was alone in flight, at least 20 ms later than the fastest ACK.
    pub delayed: u64,
    /// The median of the ACKs' delay, relative to the fastest ACK.
    pub delayed_by_median_seconds: Option<f64>,
    /// The maximum of the ACKs' delay.
    pub delayed_by_max_seconds: Option<f64>,
}

/// The number of segments for which a receiver sends an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckPolicy {
    /// At least four in five ACKs are for one segment.
    EverySegment,
    /// At least half of the ACKs are for two or more segments, mostly for two (RFC 9293 §3.8.6.3).
    EverySecondSegment,
    /// At least half of the ACKs are for two or more segments, mostly for more than two.
    Fewer,
    /// None of the other patterns.
    Mixed,
    /// There were too few ACKs.
    #[default]
    Undetermined,
}

/// The marks that routers and base stations wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Marks {
    /// Number of ECN-capable packets of the sender.
    pub ecn_capable: u64,
    /// Number of these packets that are marked "congestion experienced".
    pub ecn_ce: u64,
    /// Number of packets of the sender with CWR, except SYNs.
    pub cwr: u64,
    /// Number of packets of the sender with RST.
    pub resets: u64,
    /// Number of ACKs for this direction with the bit Ob of E-TCP (docs/reference/header-extensions.md).
    pub ob: u64,
    /// Number of ACKs for this direction with the bit Db of E-TCP.
    pub db: u64,
    /// Number of ACKs for this direction with a loss-rate report.
    pub loss_reports: u64,
    /// The loss rate in the last report, from 0 to 1.
    pub last_loss_report: Option<f64>,
    /// The receiver's last count of segments reordered by more than three.
    pub reordering_alarm: Option<u16>,
}
