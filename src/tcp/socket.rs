//! What an application sets and sees of a connection: options, state, and how it ended.

use airwire::time::Duration;

use crate::profile::Profile;

/// RFC 9293 §3.3.2. LISTEN is the host's: it has no connection yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Closed,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl State {
    /// SYN exchanged and acknowledged.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

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
    #[error("connection refused: nothing listens on that port")]
    Refused,
    #[error("connection reset by the peer")]
    Reset,
    #[error("timed out: the peer stopped answering")]
    TimedOut,
    #[error("destination unreachable: {0}")]
    Unreachable(&'static str),
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

/// RFC 9293 §3.8.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    pub idle: Duration,
    pub interval: Duration,
    pub probes: u32,
}

#[derive(Clone, Debug)]
pub struct SocketOptions {
    pub nodelay: bool,
    pub cork: bool,
    /// TCP_MAXSEG: neither side's segments are larger.
    pub max_seg: Option<u16>,
    pub send_buffer: usize,
    pub recv_buffer: usize,
    pub linger: Linger,
    pub keepalive: Option<KeepAlive>,
    /// How long an orphaned connection may stay in FIN-WAIT-2; `None` is the profile's TIME-WAIT length.
    pub linger2: Option<Duration>,
    pub tos: u8,
    pub pmtu_discovery: bool,
}

impl SocketOptions {
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
