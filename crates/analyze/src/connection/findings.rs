//! What is said about a connection, for programs: serialized as JSON. `Display` says the same to a person.
//!
//! What cannot be told is `null`, `unknown` or `cannot-be-told`: no field is ever left out.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

pub use aircaptures::icmp::IcmpKind;

/// Everything that is said about a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionFindings {
    /// The end that opened the connection, or that sent the first packet seen, comes first.
    pub ends: [SocketAddr; 2],
    /// Frame number of the first packet.
    pub first_packet: u64,
    /// The time of the first packet, in nanoseconds since 1970.
    pub begin_unix_ns: i64,
    /// From the first packet to the last.
    pub seconds: f64,
    /// Of both directions, copies included.
    pub packets: u64,
    /// Packets that the network, or the capture, brought twice: they count here and in `packets` alone.
    pub copies: u64,
    /// Packets that are older than the one before them: they count as if they had come at the same time.
    pub clock_went_back: u64,
    /// What the client calls the server; `None` if its first octets do not say it or were not kept.
    pub name: Option<Name>,
    /// What is seen of the handshake.
    pub handshake: Handshake,
    /// Where the capture was made.
    pub capture_at: CaptureAt,
    /// How soon each end answers, seen from the capture: the least time from a packet to what answers it. Where the capture was
    /// made follows from these.
    pub answers_after_seconds: [Option<f64>; 2],
    /// How the connection ended.
    pub close: Close,
    /// The timestamps option (RFC 7323): both SYNs have it, or, if the capture lacks a SYN, it is in use.
    pub timestamps: bool,
    /// SACK (RFC 2018): in the same way.
    pub sack: bool,
    /// A packet of either end is ECN-capable (RFC 3168).
    pub ecn: bool,
    /// From data of `ends[0]` to the next data of `ends[1]`.
    pub answers: AnswerFindings,
    /// ICMP errors about packets of either end, each kind from each sender once, eight at most.
    pub icmp: Vec<IcmpFindings>,
    /// Data of `ends[0]`, then of `ends[1]`.
    pub directions: [DirectionFindings; 2],
}

/// The handshake as the capture has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Handshake {
    /// How much of it the capture has.
    pub seen: HandshakeSeen,
    /// What came of it.
    pub outcome: Opening,
    /// RSTs before the connection was open.
    pub resets: u64,
    /// What the SYN of `ends[0]`, then that of `ends[1]` said; `None` where the capture has none.
    pub syns: [Option<SynFindings>; 2],
    /// From the SYN to the SYN-ACK: the way from the capture to `ends[1]` and back.
    pub syn_to_syn_ack_seconds: Option<f64>,
    /// From the SYN-ACK to its acknowledgment: the way from the capture to `ends[0]` and back.
    pub syn_ack_to_ack_seconds: Option<f64>,
    /// The whole round trip: the sum of both.
    pub rtt_seconds: Option<f64>,
}

/// How much of the handshake the capture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeSeen {
    /// Both SYNs.
    Whole,
    /// One of the two SYNs.
    Part,
    /// No SYN: the capture began later.
    None,
}

/// What came of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Opening {
    /// The connection was open: the SYN-ACK was acknowledged, or data came.
    Open,
    /// The SYN was answered by an RST.
    Refused,
    /// An RST came between the SYN-ACK and its acknowledgment, or from who had sent the SYN.
    Reset {
        /// Index in [`ConnectionFindings::ends`].
        by: usize,
    },
    /// ICMP says that the SYN cannot get there.
    Unreachable,
    /// Nothing came back.
    NoAnswer,
    /// The SYN-ACK came, and nothing upon it.
    HalfOpen,
    /// The capture has no SYN.
    Unseen,
}

impl Opening {
    /// Whether no connection came of it.
    pub fn has_failed(self) -> bool {
        !matches!(self, Self::Open | Self::Unseen)
    }
}

/// What the SYN of an end said: the last one, if it was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SynFindings {
    /// How often it was sent, 255 times at most.
    pub times: u64,
    /// The MSS option: the longest segment that this end takes.
    pub mss: Option<u16>,
    /// The window scale option (RFC 7323 §2), as it stands there. It counts if both ends have it.
    pub window_scale: Option<u8>,
    /// The SACK-permitted option (RFC 2018 §2).
    pub sack_permitted: bool,
    /// The timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// The capture did not keep all of its options.
    pub cut: bool,
}

/// What a client calls its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Name {
    /// As the client wrote it, control characters as escapes.
    pub name: String,
    /// Where it stands.
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

/// Where the name of a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBy {
    /// In a TLS ClientHello (RFC 6066 §3).
    TlsServerName,
    /// In the Host of an HTTP request (RFC 9110 §7.2).
    HttpHost,
}

/// How long `ends[1]` took to answer: from the last new data of `ends[0]` to its own next new data. A capture at `ends[0]`
/// has the round trip in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AnswerFindings {
    /// How often data of `ends[1]` followed data of `ends[0]`.
    pub count: u64,
    /// The first time.
    pub first_seconds: Option<f64>,
    /// The mean of all.
    pub mean_seconds: Option<f64>,
    /// The longest.
    pub max_seconds: Option<f64>,
}

/// ICMP errors of one kind, from one sender, about the packets of one end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IcmpFindings {
    /// What they say.
    pub kind: IcmpKind,
    /// The type of ICMP, or of ICMPv6 if `from` is an IPv6 address.
    pub icmp_type: u8,
    /// Its code.
    pub icmp_code: u8,
    /// Who sent them.
    pub from: IpAddr,
    /// Whose packets they are about: an index in [`ConnectionFindings::ends`].
    pub about: usize,
    /// How many.
    pub count: u64,
    /// The frame number of the first one.
    pub first_frame: u64,
    /// When it came, since the connection's first packet.
    pub first_seconds: f64,
    /// The least MTU of the next link that they name.
    pub mtu: Option<u32>,
}

/// Where the capture was made: what round trips, the order of events and losses mean depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum CaptureAt {
    /// At an end whose answers take less than a tenth of the round trip.
    End {
        /// Index in [`ConnectionFindings::ends`].
        end: usize,
    },
    /// On the way.
    Between {
        /// The part of the round trip, from 0 to 1, that lies between the capture and `ends[0]`.
        share: f64,
    },
    /// The capture does not tell.
    Unknown,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Close {
    /// It did not: the capture ended first, or the connection was silent for too long to be followed.
    Open,
    /// Both FINs were acknowledged.
    Closed,
    /// An RST ended it.
    Reset {
        /// Index in [`ConnectionFindings::ends`].
        by: usize,
    },
}

/// The data that one end sent, and the ACKs that came back for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionFindings {
    /// The sender of the data.
    pub from: SocketAddr,
    /// The receiver of the data.
    pub to: SocketAddr,
    /// All packets of the sender, those without data included.
    pub packets: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// Octets of payload, retransmissions included.
    pub sent_bytes: u64,
    /// Octets of payload that were acknowledged, each counted once.
    pub acked_bytes: u64,
    /// Octets that were acknowledged although no packet of the capture has them: the capture missed them.
    pub acked_unseen_bytes: u64,
    /// From the first packet with data to the last ACK for new data; without any ACK, to the last packet.
    pub transfer_seconds: f64,
    /// `acked_bytes` in `transfer_seconds`.
    pub goodput_bit_per_s: f64,
    /// `sent_bytes` in `transfer_seconds`.
    pub throughput_bit_per_s: f64,
    /// What was sent and acknowledged, over time.
    pub series: SeriesFindings,
    /// What was sent again.
    pub retransmissions: Retransmissions,
    /// The time from the capture to the receiver and back: `rtt_of` says which part of the round trip that is.
    pub rtt: RttFindings,
    /// What `rtt` measures.
    pub rtt_of: RttOf,
    /// The windows of both ends.
    pub window: WindowFindings,
    /// What the sender's time was spent on.
    pub time: TimeFindings,
    /// In which order packets came.
    pub arrivals: Arrivals,
    /// The ACKs for the data.
    pub acks: AckFindings,
    /// What routers and base stations wrote.
    pub marks: Marks,
    /// What kind of sender it looks like.
    pub sender: SenderFindings,
    /// What shows the MTU of the path; `None` if neither ICMP nor lost segments do.
    pub path_mtu: Option<PathMtuFindings>,
}

/// Segments that are too long for the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathMtuFindings {
    /// Whether long segments vanish on the way.
    pub black_hole: BlackHole,
    /// Payload of the segment that was sent again and never acknowledged whole.
    pub lost_segment_bytes: Option<u64>,
    /// The frame in which it was first sent again.
    pub lost_segment_frame: Option<u64>,
    /// How often it was sent.
    pub lost_segment_times: u64,
    /// Its data were then sent in shorter segments.
    pub in_pieces: bool,
    /// The longest payload that was acknowledged.
    pub longest_acked_bytes: u64,
    /// The least MTU that ICMP names to the sender.
    pub icmp_mtu: Option<u32>,
    /// Packets above it that were sent all the same.
    pub above_icmp_mtu: u64,
}

/// Whether long segments vanish on the way (RFC 2923 §2.1): one of more than 512 octets was sent three times or more, and
/// nothing as long was ever acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlackHole {
    /// Nothing shows one.
    No,
    /// The other end was not heard of any more: it may be gone altogether.
    Possible,
    /// The other end still sent packets, the same data arrived in shorter segments, or ICMP says so.
    Likely,
}

/// Octets over time, from the direction's first data on, in 200 bins of equal width at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesFindings {
    /// The begin of the first bin, since the connection's first packet.
    pub begin_seconds: f64,
    /// The width of a bin.
    pub bin_seconds: f64,
    /// Octets of payload that left in each bin.
    pub sent_bytes: Vec<u64>,
    /// Octets acknowledged for the first time in each bin.
    pub acked_bytes: Vec<u64>,
}

/// Everything that was sent again. A packet is in exactly one of `fast`, `timeout`, `tail` and `unexplained`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retransmissions {
    /// With data or a FIN.
    pub packets: u64,
    /// Octets of payload in them.
    pub bytes: u64,
    /// Of these: after duplicate ACKs, for a hole that SACK or a partial ACK showed, or because what left later has
    /// arrived (RACK, RFC 8985).
    pub fast: u64,
    /// By the timer, and what was sent again because of it, until everything that had been outstanding was acknowledged.
    pub timeout: u64,
    /// The last segment again before the timer would have sent it (TLP, RFC 8985 §7).
    pub tail: u64,
    /// Nothing in the capture tells why.
    pub unexplained: u64,
    /// Beside these: SYNs.
    pub syns: u64,
    /// Beside these: into a closed window (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Beside these: of an idle connection (RFC 9293 §3.8.4).
    pub keep_alives: u64,
    /// Of `packets`: those of which the capture has no earlier copy, since that was lost before the capture.
    pub lost_before_capture: u64,
    /// Loss recoveries that began without a timeout (Pan et al. 2004, §4.1: succeeded-dupack).
    pub fast_retransmits: u64,
    /// Times that the retransmission timer ran out.
    pub timeouts: u64,
    /// `timeouts` by how many duplicate ACKs had come: 0, 1, 2, 3 and more (Pan et al. 2004, §4.1: x-dupack).
    pub timeouts_by_dupacks: [u64; 4],
    /// Timeouts after x duplicate ACKs with x + 1 segments outstanding (Pan et al. 2004, §4.1: failed-dupack).
    pub failed_dupack: u64,
    /// Those that were a mistake.
    pub spurious: Spurious,
}

/// Retransmissions that were a mistake, each with its first proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spurious {
    /// All of them.
    pub packets: u64,
    /// The ACK echoed a timestamp from before the retransmission (Eifel, RFC 3522).
    pub by_timestamp: u64,
    /// The receiver reported a duplicate (RFC 2883, RFC 3708).
    pub by_dsack: u64,
    /// The ACK for all of it had come past the capture before it left.
    pub by_ack: u64,
    /// Timeouts of which the first retransmission was a mistake.
    pub timeouts: u64,
    /// Fast retransmits of which the first retransmission was a mistake.
    pub fast_retransmits: u64,
}

/// Round-trip times. An ACK for something new gives one sample at most: from the newest segment that it covers, if nothing
/// that it covers was sent twice or waited behind a hole (Karn); else from the transmission whose timestamp it echoes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RttFindings {
    /// How many there are. If there is none, all that follows is `None`.
    pub samples: u64,
    /// Samples from echoed timestamps.
    pub by_timestamps: u64,
    /// The least.
    pub min_seconds: Option<f64>,
    /// The mean.
    pub mean_seconds: Option<f64>,
    /// Of more than 64 samples within a hundredth, as the other quantiles.
    pub median_seconds: Option<f64>,
    /// The 90 % quantile.
    pub p90_seconds: Option<f64>,
    /// The 99 % quantile.
    pub p99_seconds: Option<f64>,
    /// The greatest.
    pub max_seconds: Option<f64>,
    /// The mean distance of samples from their mean.
    pub mean_deviation_seconds: Option<f64>,
}

/// What round-trip times of a direction measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttOf {
    /// The whole round trip: the capture is at the sender.
    RoundTrip,
    /// The part between the capture, which is on the way, and the receiver.
    PartOfRoundTrip,
    /// How long the receiver takes to acknowledge: the capture is there.
    ReceiverDelay,
    /// Where the capture was made is not known.
    #[default]
    Unknown,
}

impl RttOf {
    /// What the axis of a picture is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundTrip | Self::Unknown => "round-trip time",
            Self::PartOfRoundTrip => "partial round-trip time",
            Self::ReceiverDelay => "receiver delay",
        }
    }
}

/// What was in flight, and what the windows allowed. What depends on the flight is `None` where a capture at the receiver,
/// or one without ACKs, does not show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowFindings {
    /// Sent and neither acknowledged, nor reported by SACK or duplicate ACKs, nor given up by a timeout.
    pub max_flight_bytes: Option<u64>,
    /// The same, as the mean over the time of the transfer.
    pub mean_flight_bytes: Option<f64>,
    /// Most in flight within a round trip: the sender's window, if nothing else held it back.
    pub max_estimated_cwnd_bytes: Option<u64>,
    /// The greatest that the receiver offered, scaled.
    pub max_receiver_window_bytes: u64,
    /// The least that the receiver offered, scaled; `None` without ACKs.
    pub min_receiver_window_bytes: Option<u64>,
    /// The receiver's scale is not known: its windows are as they stand in the header.
    pub unscaled: bool,
    /// Times that the receiver's window closed.
    pub zero_windows: u64,
    /// Times that its right edge moved to the left (RFC 9293 §3.8.6).
    pub shrunk: u64,
}

/// What the time of a transfer was spent on: from the first data to the last ACK for new data, or to the last packet, if
/// data were outstanding then or the window was closed. The parts add up to it. What is `None` the capture does not tell:
/// at the receiver nobody sees what is on its way, and so the network looks like a sender with nothing to send.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeFindings {
    /// The sum of the parts.
    pub total_seconds: f64,
    /// The receiver's window is closed.
    pub zero_window_seconds: f64,
    /// Silence in both directions that ended with a retransmission by timeout.
    pub waiting_for_timeout_seconds: f64,
    /// Less than a segment more fits into the receiver's window.
    pub window_limited_seconds: f64,
    /// Nothing is outstanding, or the newest segment was not full and no loss is being repaired.
    pub application_limited_seconds: Option<f64>,
    /// All the rest: the sender's window and the network decide.
    pub network_limited_seconds: Option<f64>,
    /// One of these two, and at the receiver also a timer of which nothing was seen.
    pub untold_seconds: f64,
    /// The longest single silence of `waiting_for_timeout_seconds`.
    pub longest_wait_for_timeout_seconds: f64,
}

/// In which order packets came past the capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrivals {
    /// Packets with data that were sent before others that came earlier.
    pub out_of_order: u64,
    /// Packets with data all of which was seen before: copies that the network made, and retransmissions.
    pub duplicate: u64,
}

/// The ACKs for the data of a direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AckFindings {
    /// Packets that acknowledge this direction.
    pub packets: u64,
    /// RFC 5681 §2: no data, no SYN or FIN, same window, the highest acknowledgment again, data outstanding.
    pub duplicate: u64,
    /// Below what was acknowledged before.
    pub old: u64,
    /// Packets with a SACK option.
    pub with_sack: u64,
    /// Blocks in these, D-SACKs included.
    pub sack_blocks: u64,
    /// Blocks that report a duplicate (RFC 2883).
    pub dsacks: u64,
    /// Congestion experienced, echoed (RFC 3168).
    pub ece: u64,
    /// For how much of the data an ACK comes.
    pub policy: AckPolicyFindings,
}

/// How a receiver acknowledges data in order, while nothing is lost, in packets without data. Where it, or the capture, puts
/// segments together (GRO), there are fewer ACKs, each for more.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AckPolicyFindings {
    /// The judgement.
    pub looks_like: AckPolicy,
    /// ACKs for one segment, beside those that waited.
    pub for_one_segment: u64,
    /// For two.
    pub for_two_segments: u64,
    /// For more.
    pub for_more_segments: u64,
    /// ACKs for a segment that was alone in flight, 20 ms or more later than the fastest.
    pub delayed: u64,
    /// By how much they came later: the median.
    pub delayed_by_median_seconds: Option<f64>,
    /// The most.
    pub delayed_by_max_seconds: Option<f64>,
}

/// For how many segments a receiver sends an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckPolicy {
    /// For each, four times in five at least.
    EverySegment,
    /// Half of them at least are for two or more, mostly for two (RFC 9293 §3.8.6.3).
    EverySecondSegment,
    /// Half of them at least are for two or more, mostly for more.
    Fewer,
    /// None of these.
    Mixed,
    /// There were too few.
    #[default]
    CannotBeTold,
}

/// What routers and base stations wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Marks {
    /// Packets of the sender that are ECN-capable.
    pub ecn_capable: u64,
    /// Of these, those that are marked "congestion experienced".
    pub ecn_ce: u64,
    /// Packets of the sender with CWR, SYNs excepted.
    pub cwr: u64,
    /// Packets of the sender with RST.
    pub resets: u64,
    /// ACKs for this direction with E-TCP's bit Ob (docs/reference/header-extensions.md).
    pub ob: u64,
    /// ACKs for this direction with E-TCP's bit Db.
    pub db: u64,
    /// ACKs for this direction with a loss-rate report.
    pub loss_reports: u64,
    /// The last report's loss rate, from 0 to 1.
    pub last_loss_report: Option<f64>,
    /// The receiver's last count of segments reordered by more than three.
    pub reordering_alarm: Option<u16>,
}

/// What kind of sender it looks like. What a capture at the receiver does not show is `None` or `CannotBeTold`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SenderFindings {
    /// The MSS that the SYN of the other end allows.
    pub mss_option: Option<u16>,
    /// The longest payload of a packet.
    pub longest_segment_bytes: u32,
    /// New data that left before the first ACK for data. The window may be larger, if the application had no more.
    pub initial_window_bytes: Option<u64>,
    /// The same in segments.
    pub initial_window_segments: Option<u64>,
    /// The factor by which the window grew in each round trip from the beginning on, until the first loss or any limit: 2
    /// in slow start, or 1.5 with one ACK for two segments.
    pub growth_per_round_trip: Option<f64>,
    /// What it sends again after a timeout.
    pub after_timeout: AfterTimeout,
    /// What it does with partial ACKs.
    pub partial_acks: PartialAcks,
    /// Whether it sends new data upon the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: Evidence,
    /// Which congestion control it seems to have.
    pub congestion: CongestionFindings,
}

/// Which congestion control a sender seems to have, and what speaks for it. Only a capture at the sender shows it, and only
/// where the window and not the application or the receiver limits the sender.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CongestionFindings {
    /// The judgement.
    pub looks_like: CongestionControl,
    /// Losses that were found without a timeout, before and after which the flight stands for the window, and at least sixteen
    /// segments were in flight.
    pub falls: u64,
    /// The flight in the round trip after the repair, as a part of that before the loss: the median.
    pub falls_to: Option<f64>,
    /// The least.
    pub falls_to_least: Option<f64>,
    /// The greatest.
    pub falls_to_most: Option<f64>,
    /// By how many segments the flight grows in a round trip between two losses eight rounds or more apart: the median.
    pub grows_segments_per_round_trip: Option<f64>,
    /// By how much the mean flight in such a time is above the middle of its beginning and end, as a part of their difference:
    /// 0 where it grows in a line, more where it grows fast at first and then slowly.
    pub grows_above_a_line: Option<f64>,
    /// Times that, without a loss or a limit, no more than four segments were in flight for a fifth of a second, and then as
    /// many as before.
    pub min_rtt_probes: u64,
}

/// A congestion control that can be told by its traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// The window is halved at a loss and grows by a segment in a round trip, or by half of one (RFC 5681).
    Reno,
    /// The window falls to 0.7 at a loss (RFC 9438).
    Cubic,
    /// The window does not fall at a loss, and goes down to four segments about each ten seconds (version 1).
    Bbr,
    /// There were too few losses, they do not agree, or it is another one.
    #[default]
    CannotBeTold,
}

/// What a sender sends after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTimeout {
    /// Everything from the first unacknowledged segment on, even what has arrived.
    GoBackN,
    /// What is missing, then new data.
    HolesOnly,
    /// There was no such timeout, or the capture does not show it.
    CannotBeTold,
}

/// What a sender does in fast recovery with an ACK that does not end the recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// Sends again from there on as after a timeout: there is no fast recovery.
    Tahoe,
    /// Takes it for the end.
    Reno,
    /// Sends the next segment again at once.
    NewReno,
    /// Does not wait for it: it sends again what SACK shows to be missing.
    Sack,
    /// There was no such ACK, or the capture does not show it.
    CannotBeTold,
}

/// Whether a sender does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// It mostly did where it could have.
    Yes,
    /// It mostly did not where it could have.
    No,
    /// It never could have, or the capture does not show it.
    CannotBeTold,
}
