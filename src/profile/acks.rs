//! Receiving: when ACKs and window updates are sent, and what they report.

use airwire::time::Duration;

/// The timing and the content of ACKs and window updates.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Acks {
    /// The rules for delaying ACKs.
    pub policy: AckPolicy,
    /// The rules for announcing a larger window to the peer.
    pub window_update: WindowUpdate,
    /// Receive buffer size in bytes, which is the largest window to advertise. A socket option overrides it.
    pub recv_buffer: usize,
    /// Largest size in bytes that SO_RCVBUF can set (net.core.rmem_max).
    pub recv_buffer_max: usize,
    /// Duplicate data is reported with D-SACK (RFC 2883).
    pub dsack: bool,
    /// SACK and D-SACK blocks count the peer's FIN as one byte. FreeBSD reports data only.
    pub sack_counts_fin: bool,
    /// The ACK of a duplicate segment echoes that segment's timestamp. Real systems echo TS.Recent, which a
    /// duplicate does not update.
    pub echo_duplicates: bool,
    /// Each ACK carries the number of segments that arrived reordered by more than three (Lai et al. 2013,
    /// §III B).
    pub reordering_alarm: bool,
    /// In CLOSING and LAST-ACK, each ACK repeats our FIN, and the ACK of a repeated FIN is processed
    /// (FreeBSD, tcp_output() and tcp_do_segment()). FreeBSD does the same in FIN-WAIT-1 and with repeated
    /// data. This implementation does not: two such ends that miss data could answer each other's FINs
    /// forever, and ACKs would be easier to forge.
    pub repeat_fin: bool,
    /// Handling of data that arrives after SHUT_RD.
    pub after_shutdown: ShutRead,
}

/// The rules for sending ACKs that are not urgent (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct AckPolicy {
    /// Longest delay of an ACK. Zero: every segment is acknowledged at once.
    pub delay: Duration,
    /// Number of full-sized segments after which an ACK is sent.
    pub every: u32,
    /// The remaining rules.
    pub rules: AckRules,
}

impl AckPolicy {
    /// One ACK per segment, at once.
    pub const EVERY: Self = Self { delay: Duration::ZERO, every: 1, rules: AckRules::Plain };
    /// One ACK per two segments or 40 ms (RFC 5681 §4.2).
    pub const DELAYED: Self = Self { delay: Duration::from_millis(40), every: 2, rules: AckRules::Plain };
    /// Linux 6.18 with its default values.
    pub const LINUX: Self =
        Self { delay: Duration::from_millis(40), every: 2, rules: AckRules::Linux(LinuxAcks::DEFAULT) };
}

/// The rules by which ACKs are delayed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AckRules {
    /// Only [`AckPolicy::delay`] and [`AckPolicy::every`]. Out-of-order segments are acknowledged at once.
    Plain,
    /// Linux 6.18: the delay follows the time between segments, the ACK of a FIN is delayed too, and a read
    /// by the application may send an ACK. `delay` and `every` are ignored.
    Linux(LinuxAcks),
}

/// The parameters of [`AckRules::Linux`].
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct LinuxAcks {
    /// Upper bound on consecutive ACKs that are not delayed (TCP_MAX_QUICKACKS): at the start of a
    /// connection, after an idle RTO and after a duplicate segment, unless the connection is interactive. In
    /// a small window the bound is one ACK per two segments. ACKs are not delayed either while the window
    /// grows.
    pub quick: u32,
    /// Compression of the ACKs that report holes, after the first three. `None`, or no SACK: every ACK is
    /// sent.
    pub compression: Option<AckCompression>,
}

impl LinuxAcks {
    /// The kernel's default values.
    pub const DEFAULT: Self = Self {
        quick: 16,
        compression: Some(AckCompression {
            most: 44,
            delay: Duration::from_millis(1),
            slack: Duration::from_micros(100),
        }),
    };
}

/// The compression of ACKs that report holes (tcp_comp_sack_nr, tcp_comp_sack_delay_ns,
/// tcp_comp_sack_slack_ns).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct AckCompression {
    /// Maximum number of ACKs that are merged into one.
    pub most: u32,
    /// Longest delay of a compressed ACK. A twentieth of the round-trip time also bounds it.
    pub delay: Duration,
    /// Slack of the timer: how much later it may fire.
    pub slack: Duration,
}

/// The size of the advertised window, and the separate ACKs that announce it (RFC 9293 §3.8.6.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum WindowUpdate {
    /// The right edge moves by at least one segment or half the buffer. An ACK is sent once the window is
    /// twice as large as last advertised (Linux 6.18, tcp_cleanup_rbuf()).
    Doubled,
    /// Each ACK offers all free space, if that is at least a segment or a quarter of the buffer. A separate
    /// ACK is sent once the application has freed two segments and a quarter of the buffer, or half the
    /// buffer. It is sent earlier if the buffer is small or nearly full (FreeBSD 13, tcp_output()).
    QuarterBuffer,
    /// The window starts at half of the connection's receive memory and grows by two segments for each
    /// received segment, until the memory is full. The memory grows with the amount that the application
    /// reads per round trip. A separate ACK is sent once the window is twice as large as last advertised
    /// (Linux 6.18). A buffer size set on the socket is doubled and then fixed, as SO_RCVBUF does.
    Tuned(ReceiveMemory),
}

/// Receive memory of a connection, in bytes (tcp_rmem).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct ReceiveMemory {
    /// Initial value.
    pub initial: usize,
    /// Maximum.
    pub most: usize,
}

impl ReceiveMemory {
    /// The defaults of Linux on a machine with enough memory.
    pub const LINUX: Self = Self { initial: 131_072, most: 6 << 20 };
}

/// The handling of data that arrives after the application shut down reading while it may still write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ShutRead {
    /// The data is acknowledged and kept for later reads (Linux, where SHUT_RD only stops reads from
    /// blocking).
    Keep,
    /// The data is acknowledged and discarded, together with data that was already buffered (FreeBSD,
    /// `sorflush`, SBS_CANTRCVMORE).
    Discard,
}
