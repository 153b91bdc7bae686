//! The results for a connection, serialized as JSON. `Display` formats them as text.
//!
//! A result that the capture does not show is `null`, `unknown` or `undetermined`. Fields are never
//! omitted.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

pub use aircaptures::icmp::IcmpKind;

/// All results for a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionFindings {
    /// The two ends. The end that opened the connection, or that sent the first packet seen, comes first.
    pub ends: [SocketAddr; 2],
    /// The frame number of the first packet.
    pub first_packet: u64,
    /// The time of the first packet, in nanoseconds since 1970.
    pub begin_unix_ns: i64,
    /// Time from the first packet to the last.
    pub seconds: f64,
    /// Number of packets in both directions, including copies.
    pub packets: u64,
    /// Number of packets captured twice, because of the network or the capture. They are included only here
    /// and in `packets`.
    pub copies: u64,
    /// Number of packets with an earlier timestamp than the packet before. The time of that packet is used
    /// instead.
    pub clock_went_back: u64,
    /// The client's name for the server. `None` if the first bytes do not contain it or were not captured.
    pub name: Option<Name>,
    /// The handshake.
    pub handshake: Handshake,
    /// The capture point.
    pub capture_at: CaptureAt,
    /// The minimum time from a packet at the capture point to the response of each end. The capture point is
    /// derived from these times.
    pub answers_after_seconds: [Option<f64>; 2],
    /// Whether and how the connection ended.
    pub close: Close,
    /// Whether timestamps (RFC 7323) are in use: both SYNs have the option, or a packet has it if a SYN is
    /// missing.
    pub timestamps: bool,
    /// Whether SACK (RFC 2018) is in use, determined in the same way.
    pub sack: bool,
    /// Whether any packet is ECN-capable (RFC 3168).
    pub ecn: bool,
    /// Response times: from data of `ends[0]` to the next data of `ends[1]`.
    pub answers: AnswerFindings,
    /// ICMP errors about packets of either end: one entry per kind and sender, at most eight.
    pub icmp: Vec<IcmpFindings>,
    /// The data of `ends[0]`, then of `ends[1]`.
    pub directions: [DirectionFindings; 2],
}

/// The handshake as captured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Handshake {
    /// The captured part of the handshake.
    pub seen: HandshakeSeen,
    /// The outcome of the handshake.
    pub outcome: Opening,
    /// Number of RSTs before the connection was open.
    pub resets: u64,
    /// The SYNs of `ends[0]` and `ends[1]`. `None` if the capture does not contain the SYN.
    pub syns: [Option<SynFindings>; 2],
    /// Time from the SYN to the SYN-ACK: the round trip from the capture point to `ends[1]`.
    pub syn_to_syn_ack_seconds: Option<f64>,
    /// Time from the SYN-ACK to its ACK: the round trip from the capture point to `ends[0]`.
    pub syn_ack_to_ack_seconds: Option<f64>,
    /// The sum of both, which is the whole round trip.
    pub rtt_seconds: Option<f64>,
}

/// The captured part of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeSeen {
    /// Both SYNs.
    Whole,
    /// One of the two SYNs.
    Part,
    /// Neither SYN: the capture began later.
    None,
}

/// The outcome of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Opening {
    /// The connection was opened: the SYN-ACK was acknowledged, or data arrived.
    Open,
    /// The SYN was answered by an RST.
    Refused,
    /// An RST came between the SYN-ACK and its ACK, or from the end that sent the SYN.
    Reset {
        /// Index of the end in [`ConnectionFindings::ends`].
        by: usize,
    },
    /// ICMP reports that the SYN cannot reach its destination.
    Unreachable,
    /// The SYN was not answered.
    NoAnswer,
    /// The SYN-ACK was not acknowledged.
    HalfOpen,
    /// The capture does not contain a SYN.
    Unseen,
}

impl Opening {
    /// Returns whether the connection attempt failed.
    pub fn has_failed(self) -> bool {
        !matches!(self, Self::Open | Self::Unseen)
    }
}

/// The contents of the SYN of one end. If the SYN was retransmitted, the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SynFindings {
    /// Number of transmissions, limited to 255.
    pub times: u64,
    /// The MSS option: the longest segment that this end accepts.
    pub mss: Option<u16>,
    /// The window scale option (RFC 7323 §2). It is in effect only if both ends send it.
    pub window_scale: Option<u8>,
    /// The SACK-permitted option (RFC 2018 §2).
    pub sack_permitted: bool,
    /// The timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// Whether the capture cut off some of the options.
    pub options_cut: bool,
}

/// A client's name for its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Name {
    /// The name as the client sent it, with control characters escaped.
    pub name: String,
    /// The protocol field that contains the name.
    pub by: NamedBy,
}

impl Name {
    pub(super) fn new(by: NamedBy, octets: &[u8]) -> Self {
        let text = String::from_utf8_lossy(octets);
        let escaped = text.chars().map(|c| match c {
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        });
        Self { name: escaped.collect(), by }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The protocol field that contains the name of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBy {
    /// The server name in a TLS ClientHello (RFC 6066 §3).
    TlsServerName,
    /// The Host field of an HTTP request (RFC 9110 §7.2).
    HttpHost,
}

/// Response times of `ends[1]`: from the last new data of `ends[0]` to the next new data of `ends[1]`. With a
/// capture at `ends[0]`, they include the round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AnswerFindings {
    /// Number of times that data of `ends[1]` followed data of `ends[0]`.
    pub count: u64,
    /// The first response time.
    pub first_seconds: Option<f64>,
    /// The mean response time.
    pub mean_seconds: Option<f64>,
    /// The longest response time.
    pub max_seconds: Option<f64>,
}

/// ICMP errors of one kind, from one sender, about the packets of one end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IcmpFindings {
    /// The reason that the errors state.
    pub kind: IcmpKind,
    /// The ICMP type, or the ICMPv6 type if `from` is an IPv6 address.
    pub icmp_type: u8,
    /// The ICMP code.
    pub icmp_code: u8,
    /// The sender of the errors.
    pub from: IpAddr,
    /// The end whose packets caused the errors: an index in [`ConnectionFindings::ends`].
    pub caused_by_end: usize,
    /// Number of errors.
    pub count: u64,
    /// The frame number of the first error.
    pub first_frame: u64,
    /// The time of the first error, relative to the connection's first packet.
    pub first_seconds: f64,
    /// The smallest reported MTU of the next link.
    pub mtu: Option<u32>,
}

/// The capture point. The meaning of RTTs, of the order of events and of losses depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum CaptureAt {
    /// At an end, whose responses take less than a tenth of the round trip.
    End {
        /// Index of the end in [`ConnectionFindings::ends`].
        end: usize,
    },
    /// Between the ends.
    Between {
        /// The share of the round trip between the capture point and `ends[0]`, from 0 to 1.
        share: f64,
    },
    /// The capture does not show it.
    Unknown,
}

/// Whether and how a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Close {
    /// The connection did not end before the capture did, or it was idle for too long to be followed.
    Open,
    /// Both FINs were acknowledged.
    Closed,
    /// An RST ended it.
    Reset {
        /// Index of the end in [`ConnectionFindings::ends`].
        by: usize,
    },
}

/// The data that one end sent, and the ACKs for it.
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
    /// Time from the first packet with data to the last ACK for new data, or to the last packet if the
    /// capture does not contain ACKs.
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
    /// The frame of its first retransmission.
    pub lost_segment_frame: Option<u64>,
    /// Number of its transmissions.
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
    /// Timeouts whose first retransmission was spurious.
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
    /// Number of times that its right edge moved to the left (RFC 9293 §3.8.6).
    pub shrunk: u64,
}

/// The time of a transfer by what limited the sender. It extends from the first data to the last ACK for new
/// data, or to the last packet if data was outstanding or the window was closed at the end. The parts add up
/// to the total.
///
/// Fields are `None` if the capture does not show them. A capture at the receiver does not show data in
/// transit, so a slow network cannot be distinguished from a sender that has nothing to send.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeFindings {
    /// The sum of the parts.
    pub total_seconds: f64,
    /// The receiver's window was closed.
    pub zero_window_seconds: f64,
    /// Neither end sent anything until the sender retransmitted by timeout.
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

/// The order in which packets passed the capture point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrivals {
    /// Packets with data that were sent before packets that passed earlier.
    pub out_of_order: u64,
    /// Packets with data that had been seen completely before: copies made by the network, and
    /// retransmissions.
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
    /// The median of their delay, relative to the fastest ACK.
    pub delayed_by_median_seconds: Option<f64>,
    /// The maximum of their delay.
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

/// The characteristics of the sender. `None` or `Undetermined` if a capture at the receiver does not show
/// them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SenderFindings {
    /// The MSS in the SYN of the other end.
    pub mss_option: Option<u16>,
    /// The longest payload of a packet.
    pub longest_segment_bytes: u32,
    /// Bytes of new data sent before the first ACK for data. The window may be larger if the application had
    /// less data.
    pub initial_window_bytes: Option<u64>,
    /// The same in segments.
    pub initial_window_segments: Option<u64>,
    /// The factor by which the window grew per round trip, from the start of the connection to the first loss
    /// or limit. It is 2 in slow start, or 1.5 with one ACK for two segments.
    pub growth_per_round_trip: Option<f64>,
    /// The data that the sender retransmits after a timeout.
    pub after_timeout: AfterTimeout,
    /// The reaction to partial ACKs.
    pub partial_acks: PartialAcks,
    /// Whether the sender sends new data on the first two duplicate ACKs (limited transmit, RFC 3042).
    pub limited_transmit: Evidence,
    /// The apparent congestion control.
    pub congestion: CongestionFindings,
}

/// The apparent congestion control of a sender, and the evidence. It can be determined only from a capture at
/// the sender, and only while the congestion window, not the application or the receiver, is the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CongestionFindings {
    /// The verdict.
    pub looks_like: CongestionControl,
    /// Number of losses from which the window reduction can be measured: detected without a timeout, with at
    /// least 16 segments in flight, and with a flight that equals the window before and after.
    pub falls: u64,
    /// The median of the reduction factor: the flight in the round trip after the recovery, divided by the
    /// flight before the loss.
    pub falls_to: Option<f64>,
    /// The smallest reduction factor.
    pub falls_to_least: Option<f64>,
    /// The largest reduction factor.
    pub falls_to_most: Option<f64>,
    /// The median growth of the flight in segments per round trip, between losses at least eight round trips
    /// apart.
    pub grows_segments_per_round_trip: Option<f64>,
    /// By how much the mean flight between two such losses exceeds the midpoint of its first and last value,
    /// as a fraction of their difference. It is 0 for linear growth, and larger if growth is fast at first
    /// and slow later.
    pub growth_curvature: Option<f64>,
    /// Number of times that at most four segments were in flight for about 0.2 s without a loss or a limit,
    /// and nearly as many as before afterwards.
    pub min_rtt_probes: u64,
}

/// A congestion control that captures can identify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// The window is halved at a loss and grows by one segment, or half a segment, per round trip (RFC 5681).
    Reno,
    /// The window is reduced to 0.7 at a loss (RFC 9438).
    Cubic,
    /// The window is not reduced at a loss, but falls to four segments about every ten seconds (BBR version
    /// 1).
    Bbr,
    /// There were too few losses, they are inconsistent, or it is another congestion control.
    #[default]
    Undetermined,
}

/// The data that a sender retransmits after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTimeout {
    /// All data from the first unacknowledged segment on, including data that has arrived.
    GoBackN,
    /// Only the missing data, then new data.
    HolesOnly,
    /// Such a timeout did not occur, or the capture does not show it.
    Undetermined,
}

/// A sender's reaction to a partial ACK, which does not end fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// The sender does not have fast recovery and retransmits from there as after a timeout.
    Tahoe,
    /// The sender leaves fast recovery.
    Reno,
    /// The sender retransmits the next segment immediately.
    NewReno,
    /// The sender retransmits what SACK reports as missing, without waiting for partial ACKs.
    Sack,
    /// A partial ACK did not occur, or the capture does not show the reaction.
    Undetermined,
}

/// Whether a sender uses a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The sender mostly used it when it was applicable.
    Yes,
    /// The sender mostly did not use it when it was applicable.
    No,
    /// It was never applicable, or the capture does not show it.
    Undetermined,
}
