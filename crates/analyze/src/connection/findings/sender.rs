//! The characteristics of a sender.

use std::fmt;

use serde::Serialize;

use super::Confidence;

/// The characteristics of the sender. `None` or `Undetermined` if a capture at the receiver does not show
/// them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SenderFindings {
    /// The MSS in the SYN of the other end.
    pub mss_option: Option<u16>,
    /// The longest payload of a packet on the path. If a device of the capturing host splits or merges packets
    /// (TSO, GSO, GRO), it is derived from the MSS options and the lengths of the packets. 0 without data.
    pub segment_bytes: u32,
    /// The longest payload of a packet in the capture.
    pub longest_segment_bytes: u32,
    /// Bytes of new data sent before the first ACK for data. The window may be larger if the application had
    /// less data.
    pub initial_window_bytes: Option<u64>,
    /// The same in segments of `segment_bytes`.
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
    /// The name of the congestion control.
    pub congestion_control: CongestionControlFindings,
    /// The changes of the window in numbers.
    pub congestion: CongestionFindings,
}

/// The congestion control of a sender, inferred from its window. This needs a capture at the sender, or one
/// at the receiver with timestamps, and a time in which only the congestion window is the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CongestionControlFindings {
    /// The most likely name. `None` if the capture does not decide.
    pub name: Option<CongestionControl>,
    /// Others that the capture does not exclude, the most likely first.
    pub or: Vec<CongestionControl>,
    /// How certain the names are.
    pub confidence: Confidence,
    /// The explanation.
    pub evidence: Option<String>,
}

/// The reductions and the growth of a sender's window. A capture at the sender shows them while the congestion
/// window, not the application or the receiver, is the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CongestionFindings {
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

/// A congestion control that captures can identify. In JSON, it has the name that Linux uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// Reno (RFC 5681), or another with the same window: TCP-LP.
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR, version 1.
    Bbr,
    /// BIC.
    Bic,
    /// CAIA Delay-Gradient.
    Cdg,
    /// Data Center TCP (RFC 8257).
    Dctcp,
    /// HighSpeed TCP (RFC 3649).
    HighSpeed,
    /// H-TCP.
    HTcp,
    /// TCP Hybla.
    Hybla,
    /// TCP-Illinois.
    Illinois,
    /// TCP-NV.
    Nv,
    /// Scalable TCP.
    Scalable,
    /// TCP Vegas.
    Vegas,
    /// TCP Veno.
    Veno,
    /// TCP Westwood+.
    Westwood,
    /// YeAH-TCP.
    Yeah,
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reno => "Reno",
            Self::Cubic => "CUBIC",
            Self::Bbr => "BBR",
            Self::Bic => "BIC",
            Self::Cdg => "CDG",
            Self::Dctcp => "DCTCP",
            Self::HighSpeed => "HighSpeed",
            Self::HTcp => "H-TCP",
            Self::Hybla => "Hybla",
            Self::Illinois => "Illinois",
            Self::Nv => "NV",
            Self::Scalable => "Scalable",
            Self::Vegas => "Vegas",
            Self::Veno => "Veno",
            Self::Westwood => "Westwood",
            Self::Yeah => "YeAH",
        })
    }
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
    /// The sender does not have fast recovery. It retransmits all data from the partial ACK on, as after a
    /// timeout.
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
    /// The mechanism was never applicable, or the capture does not show its use.
    Undetermined,
}
