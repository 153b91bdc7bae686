//! ICMP errors, and path MTU discovery with and without such errors.

use airwire::time::Duration;

/// The effect of ICMP errors, and path MTU discovery with and without such errors.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Icmp {
    /// The ICMP errors that abort a connection that is being opened. A socket option overrides it.
    pub opening_errors: OpeningErrors,
    /// Set Don't Fragment, and reduce the segment size on ICMP "packet too big" (RFC 1191).
    pub pmtu_discovery: bool,
    /// The conditions under which the sender looks for the segment size without ICMP errors. Off in all
    /// profiles, as in Linux and FreeBSD: an outage of a radio link looks like a black hole, and would change
    /// the segment size. A socket option overrides it.
    pub mtu_probing: MtuProbing,
    /// The method with which the sender looks for the segment size.
    pub mtu_search: MtuSearch,
}

/// The ICMP errors that abort a connection that is being opened. None aborts an open connection (RFC 5927
/// §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum OpeningErrors {
    /// The hard errors of RFC 9293 §3.9.2.2: protocol or port unreachable. The others are soft errors, which
    /// MUST NOT abort the connection (MUST-56).
    Hard,
    /// All errors abort an active open, as RFC 5461 §4.1 describes. Some errors also abort a passive open
    /// (Linux, `tcp_v4_err` and `tcp_req_err`).
    All,
    /// In SYN-SENT, also "prohibited" and "time exceeded" (`icmp_may_rst`). Any other error aborts the
    /// opening only after an earlier error and at least four retransmissions of the SYN, or three of the
    /// SYN,ACK (RFC 5461 §4.2; FreeBSD, `tcp_ctlinput`, `tcp_notify`).
    FreeBsd,
}

/// The conditions under which a sender looks for a segment size that the path delivers. A path may be a black
/// hole, which drops long packets without an ICMP error (RFC 2923 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum MtuProbing {
    /// Never: only ICMP errors change the segment size.
    Off,
    /// After timeouts that suggest a black hole.
    OnLoss,
    /// From the beginning, with short segments first. With [`MtuSearch::FreeBsd`], the same as `OnLoss`.
    Always,
}

/// The method with which a sender looks for the segment size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum MtuSearch {
    /// RFC 4821 as in Linux 6.18: timeouts shorten the segments, and a single longer segment, the MTU probe,
    /// finds out whether the path delivers more.
    Linux(MtuLimits),
    /// FreeBSD's black hole detection (tcp_timer_rexmt()): the second and the fourth timeout in a row reduce
    /// the MSS, and the sixth restores it. Longer segments are never tried.
    FreeBsd,
}

/// The parameters of [`MtuSearch::Linux`]. An MSS does not include options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct MtuLimits {
    /// Data in the first segments of a search (`net.ipv4.tcp_base_mss`).
    pub base_mss: u16,
    /// Least data in a segment (`net.ipv4.tcp_mtu_probe_floor`).
    pub floor: u16,
    /// Also a lower bound (`net.ipv4.tcp_min_snd_mss`).
    pub least_mss: u16,
    /// Difference in packet length that is not worth a probe (`net.ipv4.tcp_probe_threshold`).
    pub threshold: u32,
    /// Time after which longer packets are tried again (`net.ipv4.tcp_probe_interval`).
    pub interval: Duration,
}

impl MtuLimits {
    /// The kernel's default values.
    pub const LINUX: Self =
        Self { base_mss: 1024, floor: 48, least_mss: 48, threshold: 8, interval: Duration::from_secs(600) };
}
