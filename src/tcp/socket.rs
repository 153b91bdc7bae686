//! The application's view of a connection: options, state and the reason why it ended.

use std::sync::Arc;

use airwire::time::{Duration, Instant};

use super::fast_open::keys::FastOpenKeys;
use super::icmp::Unreachable;
use crate::profile::{MtuProbing, OpeningErrors, Profile};

/// The states of RFC 9293 §3.3.2. LISTEN is missing, because a listener is not a connection: the host has the
/// listeners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No connection: it has ended, or never began.
    Closed,
    /// Our SYN waits for an answer.
    SynSent,
    /// Both sides have sent a SYN; ours is not acknowledged yet.
    SynReceived,
    /// Data flows in both directions.
    Established,
    /// We have closed; our FIN is not acknowledged yet.
    FinWait1,
    /// We have closed and the peer has acknowledged our FIN; it may still send.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both sides have closed simultaneously; our FIN is not acknowledged yet.
    Closing,
    /// The peer closed first, then we did; our FIN is not acknowledged yet.
    LastAck,
    /// Closed, but kept for a while to absorb late segments.
    TimeWait,
}

impl State {
    /// Returns the name as RFC 9293 writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }

    /// Returns true if the SYNs were exchanged and acknowledged.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// Returns true if data can still be sent or retransmitted.
    pub const fn may_send_data(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }

    /// Returns true if data can still arrive.
    pub const fn may_receive_data(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

/// The reason why a connection ended other than by both sides closing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ended {
    /// A RST answered our SYN or SYN,ACK, or an ICMP error reported that the port has no listener.
    #[error("connection refused: no listener on that port")]
    Refused,
    /// The peer sent a RST, or a SYN that the profile treats like one.
    #[error("connection reset by the peer")]
    Reset,
    /// Retransmissions, window probes or keep-alives were not answered.
    #[error("timed out: the peer no longer answers")]
    TimedOut,
    /// An ICMP error aborted the opening, or preceded the timeout (RFC 5461 §4).
    #[error("destination unreachable: {0}")]
    Unreachable(Unreachable),
    /// The application aborted the connection, or closed it or shut down reading while the peer was still
    /// sending.
    #[error("aborted locally")]
    Aborted,
}

/// The effect of close() on unsent data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Linger {
    /// Send it, then a FIN.
    #[default]
    Default,
    /// Discard it and send a RST (SO_LINGER with a time of zero).
    Abort,
    /// Send it, then a FIN; close() blocks until the peer has acknowledged both, but at most this long
    /// (SO_LINGER with a time). A host never blocks: the socket layer above it does, and polls
    /// `Connection::is_closing`.
    Wait(Duration),
}

/// Whether more data follows a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Push {
    /// Unknown: send the data now.
    #[default]
    Now,
    /// More data follows immediately (MSG_MORE). A partial segment is delayed until the next write or the
    /// next acceptable segment, at most 200 ms.
    Later,
}

/// The times at which a silent peer is probed (RFC 9293 §3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Silence after which the first probe is sent.
    pub idle: Duration,
    /// Time between two probes.
    pub interval: Duration,
    /// Number of unanswered probes that end the connection.
    pub probes: u32,
}

impl Default for KeepAlive {
    /// Linux's defaults. RFC 9293 §3.8.4 requires that the default idle time is at least two hours (MUST-28).
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// R1 or R2 of RFC 9293 §3.8.3: a limit on unanswered retransmissions of a segment. It is checked when the
/// timer expires, and is reached when both conditions hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Threshold {
    /// Minimum number of retransmissions of the segment.
    pub retransmissions: u32,
    /// Minimum time since it was first sent.
    pub time: Duration,
}

impl Threshold {
    /// Creates a threshold that is a number of retransmissions.
    pub const fn retransmissions(count: u32) -> Self {
        Self { retransmissions: count, time: Duration::ZERO }
    }

    /// Creates a threshold that is a time.
    pub const fn time(time: Duration) -> Self {
        Self { retransmissions: 0, time }
    }

    pub(crate) fn is_reached(self, retransmissions: u32, since: Instant, now: Instant) -> bool {
        retransmissions >= self.retransmissions && now.saturating_since(since) >= self.time
    }
}

/// The time for which the peer may leave data unanswered (RFC 9293 §3.8.3, MUST-20, MUST-21). `None` selects
/// the profile's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Patience {
    /// R1: the threshold of the report [`Connection::unanswered`](super::Connection::unanswered).
    pub r1: Option<Threshold>,
    /// R2: the connection is given up.
    pub r2: Option<Threshold>,
    /// R2 for a SYN or SYN,ACK (TCP_SYNCNT), without the timeouts that do not double the next one
    /// ([`Handshake::syn_linear_timeouts`](crate::profile::Handshake::syn_linear_timeouts)).
    pub syn_r2: Option<Threshold>,
    /// TCP_USER_TIMEOUT (RFC 9293 §3.9.1.1, RFC 5482): the connection is given up exactly when data has been
    /// unacknowledged, or blocked by a closed window, for this time. With keep-alive it replaces the number
    /// of probes. `None`: only R2 applies.
    pub user_timeout: Option<Duration>,
}

/// The report that R1 is reached, although the connection still exists (RFC 9293 §3.8.3 (e)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unanswered {
    /// Number of retransmissions of the oldest segment or of the probe.
    pub retransmissions: u32,
    /// Time of the first timeout.
    pub since: Instant,
    /// The last ICMP error for this connection (SHLD-25).
    pub error: Option<Unreachable>,
}

/// TCP Fast Open on a socket (RFC 7413), within the profile's
/// [`FastOpenRules`](crate::profile::FastOpenRules).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FastOpenOptions {
    /// TCP_FASTOPEN_CONNECT: an active open requests a cookie. If a cookie of the server is cached, the SYN
    /// waits for the first write and carries as much of its data as fits.
    pub connect: bool,
    /// TCP_FASTOPEN: maximum number of connections of a listener whose handshake is not complete although
    /// the data of the SYN was accepted. Zero: the listener does not use Fast Open.
    pub pending: usize,
    /// TCP_FASTOPEN_NO_COOKIE: data is sent and accepted without a cookie.
    pub without_cookie: bool,
    /// TCP_FASTOPEN_KEY: keys of the listener's cookies. `None`: the keys of the host.
    pub keys: Option<FastOpenKeys>,
}

/// Options that an application can set on a connection, or on a listener for its connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// TCP_NODELAY: small segments do not wait for ACKs, and the profile's Nagle rule is ignored. Enabling it
    /// [pushes](crate::host::Host::push) once.
    pub nodelay: bool,
    /// TCP_CORK: a partial segment is delayed until more data is written, at most 200 ms. It overrides
    /// `nodelay`.
    pub cork: bool,
    /// TCP_MAXSEG: an upper bound on the segments of both sides.
    pub max_seg: Option<u16>,
    /// Send buffer size: bytes that may be written and not acknowledged.
    pub send_buffer: usize,
    /// Receive buffer size (SO_RCVBUF): bytes that may be received and not read, which is the largest window
    /// advertised. It does not grow. `None`: the profile's.
    pub recv_buffer: Option<usize>,
    /// SO_LINGER.
    pub linger: Linger,
    /// SO_KEEPALIVE and its times; `None`: off.
    pub keepalive: Option<KeepAlive>,
    /// TCP_LINGER2: how long a closed connection may stay in FIN-WAIT-2; `None`: the profile's TIME-WAIT
    /// length.
    pub linger2: Option<Duration>,
    /// The TOS or traffic class byte of each packet. Its two ECN bits are ignored.
    pub tos: u8,
    /// Packets have Don't Fragment set, and ICMP errors may lower the path MTU (RFC 1191).
    pub pmtu_discovery: bool,
    /// The conditions under which the sender looks for the segment size without ICMP errors (RFC 4821). Read
    /// when the connection is established and at timeouts.
    pub mtu_probing: MtuProbing,
    /// The ICMP errors that abort a connection that is being opened.
    pub opening_errors: OpeningErrors,
    /// R1, R2 and the user timeout; `None`: the profile's values.
    pub patience: Option<Box<Patience>>,
    /// `None`: no TCP Fast Open.
    pub fast_open: Option<Arc<FastOpenOptions>>,
}

impl SocketOptions {
    /// Returns the defaults of a system with this profile.
    pub fn of(profile: &Profile) -> Self {
        Self {
            nodelay: !profile.sending.nagle.holds_back(),
            cork: false,
            max_seg: None,
            send_buffer: profile.sending.send_buffer,
            recv_buffer: None,
            linger: Linger::Default,
            keepalive: None,
            linger2: None,
            tos: 0,
            pmtu_discovery: profile.icmp.pmtu_discovery,
            mtu_probing: profile.icmp.mtu_probing,
            opening_errors: profile.icmp.opening_errors,
            patience: None,
            fast_open: None,
        }
    }

    /// Returns R1, R2 and the user timeout. An unset value is `None`.
    pub(crate) fn patience(&self) -> Patience {
        self.patience.as_deref().copied().unwrap_or_default()
    }

    /// Returns the receive buffer size in bytes.
    pub(crate) fn recv_limit(&self, profile: &Profile) -> usize {
        self.recv_buffer.unwrap_or(profile.acks.recv_buffer)
    }
}
