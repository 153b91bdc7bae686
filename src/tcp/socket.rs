//! What an application sets and sees of a connection: options, state, and how it ended.

use airwire::time::{Duration, Instant};

use super::icmp::Unreachable;
use crate::profile::{OpeningErrors, Profile};

/// The states of RFC 9293 §3.3.2. LISTEN is the host's: it has no connection yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Over, or never begun.
    Closed,
    /// Our SYN waits for an answer.
    SynSent,
    /// Both have sent a SYN; ours waits for its ACK.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// We have closed; our FIN is not acknowledged yet.
    FinWait1,
    /// We have closed, and the peer knows; it may still send.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both have closed at once; our FIN is not acknowledged yet.
    Closing,
    /// The peer closed first, then we did; our FIN is not acknowledged yet.
    LastAck,
    /// Over, and kept for a while so that late segments do no harm.
    TimeWait,
}

impl State {
    /// As RFC 9293 writes it.
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

    /// SYN exchanged and acknowledged.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// Data, or a retransmission of it, can still leave.
    pub const fn may_send_data(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }

    /// Data can still arrive.
    pub const fn may_receive_data(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

/// Why a connection ended other than by both sides closing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ended {
    /// A reset answered our SYN or SYN,ACK, or an ICMP error said that there is no such port.
    #[error("connection refused: no listener on that port")]
    Refused,
    /// The peer sent a reset, or a SYN where the profile takes it for one.
    #[error("connection reset by the peer")]
    Reset,
    /// Retransmissions, window probes or keepalives stayed without an answer.
    #[error("timed out: the peer no longer answers")]
    TimedOut,
    /// An ICMP error ended the opening, or came before the timeout (RFC 5461 §4).
    #[error("destination unreachable: {0}")]
    Unreachable(Unreachable),
    /// The application aborted it, or closed it or shut reading down while the peer still sent.
    #[error("aborted locally")]
    Aborted,
}

/// What close() does with unsent data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Linger {
    /// Send it, then FIN.
    #[default]
    Default,
    /// Throw it away and reset (SO_LINGER with a time of zero).
    Abort,
    /// Send it, then FIN; who calls close() waits for so long until the peer has acknowledged both (SO_LINGER with a
    /// time). A host waits for nothing: the socket layer above it does, and `Connection::is_closing` tells it how long.
    Wait(Duration),
}

/// What a write says about the data behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Push {
    /// Nothing.
    #[default]
    Now,
    /// More follows at once (MSG_MORE): a partial segment waits for it as if corked, until something else is written
    /// or an acceptable segment arrives, 200 ms at most.
    Later,
}

/// When to ask a silent peer whether it is still there (RFC 9293 §3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Silence after which the first probe leaves.
    pub idle: Duration,
    /// Between two probes.
    pub interval: Duration,
    /// Probes without an answer that end the connection.
    pub probes: u32,
}

impl Default for KeepAlive {
    /// As Linux has it. RFC 9293 §3.8.4: idle no less than two hours.
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// R1 or R2 of RFC 9293 §3.8.3: how much may have been done in vain for a segment. It is looked at when the segment's
/// timer expires, and is reached when both hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Threshold {
    /// The segment was sent again at least so often.
    pub retransmissions: u32,
    /// So much time has passed since it was first sent.
    pub time: Duration,
}

impl Threshold {
    /// As a count alone.
    pub const fn retransmissions(count: u32) -> Self {
        Self { retransmissions: count, time: Duration::ZERO }
    }

    /// In units of time alone.
    pub const fn time(time: Duration) -> Self {
        Self { retransmissions: 0, time }
    }

    pub(crate) fn is_reached(self, retransmissions: u32, since: Instant, now: Instant) -> bool {
        retransmissions >= self.retransmissions && now.saturating_since(since) >= self.time
    }
}

/// How long the peer may leave unanswered what was sent (RFC 9293 §3.8.3, MUST-20, MUST-21). What is `None` the profile
/// decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Patience {
    /// R1: from then on [`Connection::unanswered`](super::Connection::unanswered) says so.
    pub r1: Option<Threshold>,
    /// R2: then the connection is given up.
    pub r2: Option<Threshold>,
    /// R2 of a SYN or SYN,ACK (TCP_SYNCNT).
    pub syn_r2: Option<Threshold>,
    /// TCP_USER_TIMEOUT (RFC 9293 §3.9.1.1, RFC 5482): the connection is given up at the very moment at which something
    /// has been unacknowledged, or could not be sent because the peer's window is closed, for so long. With keep-alive
    /// it takes the place of the number of probes. `None`: only R2 counts.
    pub user_timeout: Option<Duration>,
}

/// R1 is reached: nothing is lost yet, but the application may want to know (RFC 9293 §3.8.3 (e)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unanswered {
    /// How often the oldest segment, or the probe, was sent again.
    pub retransmissions: u32,
    /// When it first timed out.
    pub since: Instant,
    /// What the last ICMP error about this connection said (SHLD-25).
    pub error: Option<Unreachable>,
}

/// What an application can set on a connection, or on a listener for the connections that it opens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// TCP_NODELAY: a small segment waits for no ACK, whatever the profile says about Nagle. To switch it on is to
    /// [push](crate::host::Host::push) once.
    pub nodelay: bool,
    /// TCP_CORK: a partial segment waits for more data, 200 ms at most. It is stronger than `nodelay`.
    pub cork: bool,
    /// TCP_MAXSEG: neither side's segments are larger.
    pub max_seg: Option<u16>,
    /// Octets that may be written and not acknowledged.
    pub send_buffer: usize,
    /// Octets that may be received and not read: the largest window that is offered.
    pub recv_buffer: usize,
    /// SO_LINGER.
    pub linger: Linger,
    /// SO_KEEPALIVE and its times; `None` is off.
    pub keepalive: Option<KeepAlive>,
    /// TCP_LINGER2: how long a closed connection may stay in FIN-WAIT-2; `None` is the profile's TIME-WAIT length.
    pub linger2: Option<Duration>,
    /// The TOS or traffic class octet of each packet. Its two ECN bits are ignored.
    pub tos: u8,
    /// Packets are sent with Don't Fragment, and ICMP errors may lower the MTU of the path (RFC 1191).
    pub pmtu_discovery: bool,
    /// Which ICMP errors end a connection that is being opened.
    pub opening_errors: OpeningErrors,
    /// R1, R2 and the user timeout; `None` leaves all of them to the profile.
    pub patience: Option<Box<Patience>>,
}

impl SocketOptions {
    /// Those that a system with this profile has when nothing was set.
    pub fn of(profile: &Profile) -> Self {
        Self {
            nodelay: !profile.nagle.holds_back(),
            cork: false,
            max_seg: None,
            send_buffer: profile.send_buffer,
            recv_buffer: profile.recv_buffer,
            linger: Linger::Default,
            keepalive: None,
            linger2: None,
            tos: 0,
            pmtu_discovery: profile.pmtu_discovery,
            opening_errors: profile.opening_errors,
            patience: None,
        }
    }
}
