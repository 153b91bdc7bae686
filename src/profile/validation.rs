//! The segments that a synchronised connection accepts, and the answers to all others.

use airwire::time::Duration;

/// The segments that a synchronised connection accepts, and the answers to all others.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Validation {
    /// Accept segments without timestamps after they were negotiated (RFC 7323 §3.2 would drop them).
    pub tolerate_missing_timestamps: bool,
    /// Ticks of the peer's clock by which a timestamp may be older than TS.Recent (Linux, TCP_PAWS_WINDOW;
    /// zero in RFC 7323 §5.3).
    pub paws_slack: i32,
    /// A segment that ends below RCV.NXT is still acceptable if it ends at or above the last ACK sent. A
    /// segment that ends beyond the window is acceptable if nothing waits to be read (Linux, tcp_sequence()).
    /// Its ACK is then processed.
    pub accepts_unacknowledged: bool,
    /// Until its handshake completes, a passive open is a request without a socket, which checks segments in
    /// an order of its own (Linux, tcp_check_req()).
    pub request_sockets: bool,
    /// Effect of a RST in the window.
    pub challenge_rst: Challenge,
    /// Effect of a SYN in the window.
    pub challenge_syn: Challenge,
    /// Maximum number of challenge ACKs per second on one connection (RFC 5961 §7).
    pub challenge_acks_per_second: u32,
    /// Minimum time between two challenge ACKs on one connection, and between two ACKs of data that is
    /// probably forged (Linux, tcp_invalid_ratelimit).
    pub challenge_interval: Duration,
    /// The contents of a RST for an existing connection.
    pub resets: Resets,
    /// Rules for segments in TIME-WAIT.
    pub time_wait: TimeWaitRules,
}

/// The effect of an unexpected RST or SYN in the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Challenge {
    /// Only a RST at RCV.NXT resets the connection. Any other RST or SYN in the window triggers a challenge
    /// ACK (RFC 5961).
    Rfc5961,
    /// Any RST or SYN in the window resets the connection (RFC 793; FreeBSD's insecure_rst, insecure_syn).
    Rfc793,
}

/// The contents of a RST for an existing connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Resets {
    /// Timestamps, if they are in use (RFC 7323 §3.2), and no window.
    Rfc7323,
    /// The window and options of any other segment. A RST in reply to a segment has neither.
    Linux,
}

/// The rules for segments that arrive in TIME-WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TimeWaitRules {
    /// RFC 9293 §3.10.7.4 and RFC 5961. A SYN with a later timestamp or sequence number opens a new
    /// connection (RFC 6191).
    Rfc9293,
    /// Linux 6.18, tcp_timewait_state_process(): the ACK field is ignored, and an ACK answers every segment
    /// except an empty one with the expected sequence number. FIN-WAIT-2 after a close has similar rules.
    Linux,
    /// FreeBSD 14, tcp_twcheck(): RSTs, timestamps and SYNs with an old sequence number are ignored.
    FreeBsd,
}
