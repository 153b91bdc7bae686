//! What an application sets and sees of a connection: options, state, and how it ended.

use airwire::time::Duration;

use crate::profile::Profile;

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
    #[error("connection refused: nothing listens on that port")]
    Refused,
    /// The peer sent a reset, or a SYN where the profile takes it for one.
    #[error("connection reset by the peer")]
    Reset,
    /// Retransmissions, window probes or keepalives stayed without an answer.
    #[error("timed out: the peer stopped answering")]
    TimedOut,
    /// An ICMP error ended the opening, or came before the timeout (RFC 5461 §4); the text is what it said.
    #[error("destination unreachable: {0}")]
    Unreachable(&'static str),
    /// The application aborted it, or closed it while the peer still sent.
    #[error("aborted by this side")]
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

/// What an application can set on a connection, or on a listener for the connections that it opens.
#[derive(Clone, Debug)]
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
        }
    }
}
