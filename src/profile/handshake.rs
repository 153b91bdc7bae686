//! Opening a connection: the options and retransmissions of SYNs, and the data and flags accepted in a SYN.

use airwire::time::Duration;

/// The options and retransmissions of SYNs, and the data and flags accepted in a SYN.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Handshake {
    /// MSS to advertise, in bytes; `None` derives it from the MTU.
    pub mss: Option<u16>,
    /// Minimum window scale to offer (RFC 7323 §2); a larger receive buffer raises it. `None`: no scaling.
    pub window_scale: Option<u8>,
    /// Whether a SYN offers SACK.
    pub sack: SackOffer,
    /// Offer and accept the timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// Offer ECN when opening, and accept it when a peer offers it (RFC 3168 §6.1.1).
    pub ecn: bool,
    /// Accept ECN when a peer offers it, without offering it.
    pub ecn_passive: bool,
    /// The ends that may use TCP Fast Open. Each socket must also request it:
    /// [`FastOpenOptions`](crate::tcp::FastOpenOptions).
    pub fast_open: FastOpenRules,
    /// Handling of data that arrives with a SYN, unless TCP Fast Open accepts it.
    pub data_on_syn: DataOnSyn,
    /// Handling of a SYN that also has a FIN.
    pub syn_fin: SynFin,
    /// In a simultaneous open, the SYN,ACK repeats the options that our SYN offered, even those that the
    /// peer's SYN lacks (Linux, tcp_send_synack()).
    pub repeats_offer: bool,
    /// An unacceptable ACK makes the first retransmission of a SYN leave at the next tick, because the peer may
    /// have answered for an old connection (Linux, tcp_rcv_synsent_state_process()).
    pub repeats_refused_syn: bool,
    /// Number of timeouts of a SYN that do not double the next one (Linux, tcp_syn_linear_timeouts). R2 for SYNs
    /// does not count them.
    pub syn_linear_timeouts: u16,
    /// Retransmissions of a SYN before giving up: R2 for SYNs (RFC 9293 §3.8.3) as a count.
    pub syn_retries: u32,
    /// Retransmissions of a SYN,ACK before giving up. `None`: the value of `syn_retries`.
    pub syn_ack_retries: Option<u32>,
    /// Minimum time before giving up on a SYN or a SYN,ACK, however short the timeouts are (MUST-23: at least
    /// 3 minutes).
    pub min_syn_time: Duration,
    /// The effect of closing a listener on its half-open connections.
    pub half_open: HalfOpen,
}

/// Whether a SYN carries SACK-Permitted (RFC 2018 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SackOffer {
    /// SACK is never negotiated.
    Never,
    /// Only if the recipe uses SACK. Current receivers send fewer duplicate ACKs when SACK is permitted (ACK
    /// compression), which hurts a sender that counts them.
    IfUsed,
    /// Always, even if the recipe does not use it.
    Always,
}

impl SackOffer {
    /// Returns true if a SYN offers SACK. `used`: the recipe uses SACK
    /// ([`Recipe::wants_sack`](crate::recovery::Recipe::wants_sack)).
    pub const fn is_offered(self, used: bool) -> bool {
        match self {
            Self::Never => false,
            Self::IfUsed => used,
            Self::Always => true,
        }
    }
}

/// The handling of data and a FIN that arrive with a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum DataOnSyn {
    /// Data and FIN are queued until the connection is established (RFC 9293 §3.10.7.2).
    Queued,
    /// Data and FIN are dropped, and the peer retransmits both (Linux and FreeBSD without TCP Fast Open).
    Dropped,
}

/// The handling of a SYN that also has a FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SynFin {
    /// As a SYN. [`DataOnSyn`] applies to the FIN and to data alike.
    Accepted,
    /// The segment does not open a connection. In other states it counts as a SYN (Linux 6.18,
    /// tcp_rcv_state_process()).
    NoConnection,
    /// Connections and listeners drop the segment (FreeBSD 13, net.inet.tcp.drop_synfin).
    Drop,
}

/// The effect of closing a listener on its half-open connections. Connections that wait to be accepted are
/// always reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum HalfOpen {
    /// Half-open connections are reset: ABORT in SYN-RECEIVED (RFC 9293 §3.10.5).
    Reset,
    /// Half-open connections are removed, and no segment is sent. A RST answers the peer's next ACK (Linux,
    /// `inet_csk_listen_stop`).
    Forget,
}

/// The ends that may use TCP Fast Open on request of the application, and the conditions:
/// `net.ipv4.tcp_fastopen` and `net.ipv4.tcp_fastopen_blackhole_timeout_sec`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct FastOpenRules {
    /// Active opens may use it (0x1).
    pub client: bool,
    /// Listeners may use it (0x2).
    pub server: bool,
    /// A SYN carries data even if no cookie of the server is known, and never a cookie (0x4).
    pub client_without_cookie: bool,
    /// Data in a SYN is accepted without a cookie (0x200).
    pub server_without_cookie: bool,
    /// Every listener uses it, with or without a request in its options (0x400).
    pub all_listeners: bool,
    /// The time for which active opens do not use TCP Fast Open. The time begins when connections with TCP
    /// Fast Open time out three times in a row, or receive only a FIN. This suggests that a firewall drops
    /// their packets. The time doubles with each further case, up to 64 times this value. Zero: TCP Fast Open
    /// is never suspended.
    pub black_hole: Duration,
}

impl FastOpenRules {
    /// Neither end.
    pub const NONE: Self = Self::of_bits(0);
    /// Active opens only: the default of Linux and FreeBSD.
    pub const CLIENT: Self = Self::of_bits(0x1);
    /// Both ends.
    pub const BOTH: Self = Self::of_bits(0x3);

    /// Returns the rules for a value of `net.ipv4.tcp_fastopen`. Unknown bits are ignored.
    pub const fn of_bits(bits: u32) -> Self {
        Self {
            client: bits & 0x1 != 0,
            server: bits & 0x2 != 0,
            client_without_cookie: bits & 0x4 != 0,
            server_without_cookie: bits & 0x200 != 0,
            all_listeners: bits & 0x400 != 0,
            black_hole: Duration::ZERO,
        }
    }
}
