//! What is said about a connection, for programs; `text` says the same to a person.
//!
//! What cannot be told is `null`, `unknown` or `cannot-be-told`: no field is ever left out.

use std::net::SocketAddr;

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionFindings {
    /// The end that opened the connection, or that sent the first packet seen, comes first.
    pub ends: [SocketAddr; 2],
    /// Frame number of the first packet.
    pub first_packet: u64,
    pub begin_unix_ns: i64,
    pub seconds: f64,
    pub packets: u64,
    /// Packets that the network, or the capture, brought twice: counted here and nowhere else.
    pub copies: u64,
    /// Packets that are older than the one before them: their time is taken for that one's.
    pub clock_went_back: u64,
    pub handshake: Handshake,
    pub capture_at: CaptureAt,
    pub close: Close,
    /// Both ends' SYNs allowed it; without them, it is in use.
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: bool,
    /// Data of `ends[0]`, then of `ends[1]`.
    pub directions: [DirectionFindings; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Handshake {
    pub seen: HandshakeSeen,
    /// From the SYN to the SYN-ACK: the way from the capture to `ends[1]` and back.
    pub syn_to_syn_ack_seconds: Option<f64>,
    /// From the SYN-ACK to its acknowledgment: the way from the capture to `ends[0]` and back.
    pub syn_ack_to_ack_seconds: Option<f64>,
    /// The whole round trip.
    pub rtt_seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeSeen {
    Whole,
    /// One of the two SYNs only.
    Part,
    /// The capture began later.
    None,
}

/// Where the capture was made. Round trips, the order of events and what was lost mean different things.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum CaptureAt {
    /// At `ends[end]`, whose answers take less than a tenth of the round trip.
    End {
        end: usize,
    },
    /// On the way: `share` of the round trip lies between the capture and `ends[0]`.
    Between {
        share: f64,
    },
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Close {
    /// The capture, or the patience of its reader, ended first.
    Open,
    /// Both FINs were acknowledged.
    Closed,
    Reset {
        by: usize,
    },
}

/// The data that one end sent, and the ACKs that came back for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionFindings {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// All packets of this end, those without data, too.
    pub packets: u64,
    /// With payload.
    pub data_packets: u64,
    /// Octets of payload, copies that were sent again included.
    pub sent_bytes: u64,
    /// Octets of payload that were acknowledged, each counted once.
    pub acked_bytes: u64,
    /// Acknowledged, although no packet of the capture has them: the capture missed them.
    pub acked_unseen_bytes: u64,
    /// From the first packet with data to the last ACK for new data; without any ACK, to the last packet.
    pub transfer_seconds: f64,
    pub goodput_bit_per_s: f64,
    pub throughput_bit_per_s: f64,
    pub series: SeriesFindings,
    pub retransmissions: Retransmissions,
    /// Of the round trip from the capture to the receiver and back: `rtt_of` says what part of the whole it is.
    pub rtt: RttFindings,
    pub rtt_of: RttOf,
    pub window: WindowFindings,
    pub time: TimeFindings,
    pub arrivals: Arrivals,
    pub acks: AckFindings,
    pub marks: Marks,
    pub sender: SenderFindings,
}

/// Over time, from the direction's first data; at most [`super::series::BINS`] bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesFindings {
    /// Since the connection's first packet.
    pub begin_seconds: f64,
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
    pub bytes: u64,
    /// Of these: after duplicate ACKs, for a hole that SACK or a partial ACK showed, or because what left later has
    /// arrived (RACK, RFC 8985).
    pub fast: u64,
    /// By the timer, and what was sent again on its account before everything outstanding then was acknowledged.
    pub timeout: u64,
    /// The last segment again before the timer would have sent it (TLP, RFC 8985 §7).
    pub tail: u64,
    /// Nothing in the capture tells why.
    pub unexplained: u64,
    /// Beside these: SYNs.
    pub syns: u64,
    /// Beside these: into a closed window (RFC 9293 §3.8.6.1), and of an idle connection (§3.8.4).
    pub window_probes: u64,
    pub keep_alives: u64,
    /// Of `packets`: those of which the capture has no earlier copy, because that was lost before it got here.
    pub lost_before_capture: u64,
    /// Loss recoveries that began without a timeout (P0 §4.1: succeeded-dupack).
    pub fast_retransmits: u64,
    pub timeouts: u64,
    /// By how many duplicate ACKs had come: 0, 1, 2, 3 and more (P0 §4.1: x-dupack).
    pub timeouts_by_dupacks: [u64; 4],
    /// With x duplicate ACKs of x + 1 segments outstanding (P0 §4.1).
    pub failed_dupack: u64,
    pub spurious: Spurious,
}

/// Retransmissions that were a mistake, each with its first proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spurious {
    pub packets: u64,
    /// The ACK echoed a timestamp from before the retransmission (Eifel, RFC 3522).
    pub by_timestamp: u64,
    /// The receiver reported a duplicate (RFC 2883, RFC 3708).
    pub by_dsack: u64,
    /// Events of which the first retransmission was a mistake.
    pub timeouts: u64,
    pub fast_retransmits: u64,
}

/// One sample per ACK that acknowledges something new: from the newest segment that it covers, if nothing that it
/// covers was sent twice or waited behind a hole (Karn); else from the transmission that its timestamp names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RttFindings {
    pub samples: u64,
    /// Of these, by timestamps.
    pub by_timestamps: u64,
    pub min_seconds: Option<f64>,
    pub mean_seconds: Option<f64>,
    pub median_seconds: Option<f64>,
    pub p90_seconds: Option<f64>,
    pub p99_seconds: Option<f64>,
    pub max_seconds: Option<f64>,
    /// The mean of how far samples are from their mean.
    pub mean_deviation_seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttOf {
    /// The capture is at the sender.
    RoundTrip,
    /// The capture is on the way: the part behind it.
    PartOfRoundTrip,
    /// The capture is at the receiver: how long it takes to acknowledge.
    ReceiverDelay,
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowFindings {
    /// Sent and neither acknowledged, nor reported by SACK or duplicate ACKs, nor given up by a timeout.
    pub max_flight_bytes: Option<u64>,
    pub mean_flight_bytes: Option<f64>,
    /// Most in flight within a round trip: the sender's window, if nothing else held it back.
    pub max_estimated_cwnd_bytes: Option<u64>,
    /// Offered by the receiver, scaled.
    pub max_receiver_window_bytes: u64,
    pub min_receiver_window_bytes: Option<u64>,
    /// The receiver's scale is not known: windows are as they stand in the header.
    pub unscaled: bool,
    /// Times that the window closed.
    pub zero_windows: u64,
    /// Times that its right edge moved to the left (RFC 9293 §3.8.6).
    pub shrunk: u64,
}

/// What the time from the first data to the last ACK, or to the FIN, was spent with. The parts add up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeFindings {
    pub total_seconds: f64,
    /// The receiver's window is closed.
    pub zero_window_seconds: f64,
    /// Silence in both directions that a retransmission by timeout ended.
    pub waiting_for_timeout_seconds: f64,
    /// Less than a segment more fits into the receiver's window.
    pub window_limited_seconds: f64,
    /// Nothing is outstanding, or the newest segment was not full and no loss is being repaired.
    pub application_limited_seconds: f64,
    /// All the rest: the sender's window and the network decide.
    pub network_limited_seconds: f64,
    pub longest_wait_for_timeout_seconds: f64,
}

/// In which order packets came past the capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrivals {
    /// With data that belong before others already seen, and that were sent before those.
    pub out_of_order: u64,
    /// With data all of which were seen before: copies of the network and what was sent again.
    pub duplicate: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AckFindings {
    /// Packets that acknowledge this direction.
    pub packets: u64,
    /// RFC 5681 §2: no data, no SYN or FIN, same window, the highest acknowledgment again, data outstanding.
    pub duplicate: u64,
    /// Below what was acknowledged before.
    pub old: u64,
    pub with_sack: u64,
    pub sack_blocks: u64,
    pub dsacks: u64,
    /// Congestion experienced, echoed (RFC 3168).
    pub ece: u64,
}

/// What routers and base stations wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Marks {
    /// Packets of this direction.
    pub ecn_capable: u64,
    pub ecn_ce: u64,
    pub cwr: u64,
    pub resets: u64,
    /// ACKs for this direction with Ob, Db (docs/wire-extensions.md).
    pub ob: u64,
    pub db: u64,
    /// ACKs for this direction with a loss-rate report, and the last one's value.
    pub loss_reports: u64,
    pub last_loss_report: Option<f64>,
    /// The receiver's last count of segments reordered by more than three.
    pub reordering_alarm: Option<u16>,
}

/// What kind of sender it looks like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SenderFindings {
    /// What the other end's SYN allowed, and the longest payload seen.
    pub mss_option: Option<u16>,
    pub longest_segment_bytes: u32,
    /// New data before the first ACK for any; at least, if the application had no more.
    pub initial_window_bytes: Option<u64>,
    pub initial_window_segments: Option<u64>,
    /// From round trip to round trip while it grew from its beginning, until the first loss or any limit: 2 is slow
    /// start, with one ACK for two segments 1.5.
    pub growth_per_round_trip: Option<f64>,
    pub after_timeout: AfterTimeout,
    pub partial_acks: PartialAcks,
    pub limited_transmit: Evidence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTimeout {
    /// Sends again from the first unacknowledged segment on, what has arrived included.
    GoBackN,
    /// Sends again what is missing, then new data.
    HolesOnly,
    CannotBeTold,
}

/// What it does with an ACK that ends a fast recovery's first hole, but not the recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// Sends again from there on as after a timeout: there is no fast recovery.
    Tahoe,
    /// Takes it for the end.
    Reno,
    /// Sends the next segment again at once.
    NewReno,
    /// Sends again what SACK shows to be missing, without waiting for it.
    Sack,
    CannotBeTold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    Yes,
    No,
    CannotBeTold,
}
