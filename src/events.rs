//! Events that a host reports for logs: options offered and agreed on, state changes, refused segments,
//! timers, windows and recovery decisions.
//!
//! [`Host::note_events`](crate::Host::note_events) enables them and
//! [`Host::poll_event`](crate::Host::poll_event) returns them. While they are disabled, a host builds no
//! events. Offsets count bytes of a stream: offset 0 is the SYN, so they equal the relative sequence numbers
//! that tcpdump prints.

use std::net::SocketAddr;

use airwire::options::Options;
use airwire::segment::{BadPacket, Flags, Segment};
use airwire::seq::Seq;
use airwire::time::Instant;

use crate::recovery::Decision;
use crate::tcp::{Ended, IcmpError, State};

/// An event of a connection, or of a packet that belongs to none.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The time of the event.
    pub at: Instant,
    /// Our address and the peer's. `None`: the packet's addresses cannot be trusted.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// Our SYN or SYN,ACK left with these options.
    Offered(Offer),
    /// The peer's SYN or SYN,ACK arrived with these options.
    PeerOffered(Offer),
    /// The handshake is complete with these parameters.
    Agreed(Agreement),
    /// The connection changed its state (RFC 9293 §3.3.2).
    State {
        /// The previous state.
        from: State,
        /// The new state.
        to: State,
    },
    /// The connection ended. Gives the reason unless both sides closed it.
    Ended(Option<Ended>),
    /// Loss recovery made a decision.
    Decided(Decision),
    /// A timer was started, or its deadline changed.
    TimerSet {
        /// The timer.
        timer: Timer,
        /// The timer's deadline.
        until: Instant,
    },
    /// A timer was stopped.
    TimerStopped {
        /// The timer.
        timer: Timer,
    },
    /// A timer expired.
    TimerFired {
        /// The timer.
        timer: Timer,
    },
    /// A segment was rejected, or only its ACK was processed.
    Refused {
        /// The reason.
        why: Refusal,
        /// The segment.
        segment: Refused,
    },
    /// The peer's window closed (0 bytes) or reopened.
    PeerWindow {
        /// SND.WND.
        bytes: u64,
    },
    /// Our advertised window closed (0 bytes) or reopened.
    OwnWindow {
        /// RCV.WND.
        bytes: u64,
    },
    /// The path MTU was reduced, by an ICMP error or because of a suspected black hole. Or longer packets are
    /// used again, because an MTU probe was delivered or because the reduction is long ago.
    Pmtu {
        /// The previous value, in bytes of IP packets.
        from: u32,
        /// The new value.
        to: u32,
    },
    /// An ICMP error for this connection arrived.
    Icmp {
        /// The error.
        error: IcmpError,
        /// False if the error was ignored: it quotes nothing in flight, or its MTU changes nothing (RFC 5927
        /// §4).
        believed: bool,
    },
    /// A malformed packet that did not reach any connection.
    Bad(BadPacket),
}

/// Options of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// SACK-Permitted is present.
    pub sack: bool,
    /// The timestamps option is present.
    pub timestamps: bool,
    /// ECN is requested, or accepted in a SYN,ACK (RFC 3168 §6.1.1).
    pub ecn: bool,
}

impl Offer {
    pub(crate) fn of(options: &Options, flags: Flags) -> Self {
        let asks = flags.contains(Flags::ECE.with(Flags::CWR));
        let accepts = flags.contains(Flags::ECE.with(Flags::ACK)) && !flags.contains(Flags::CWR);
        Self {
            mss: options.mss,
            window_scale: options.window_scale,
            sack: options.sack_permitted,
            timestamps: options.timestamps.is_some(),
            ecn: asks || accepts,
        }
    }
}

/// Parameters that the handshake settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// SMSS: bytes of data in a full-sized segment of ours.
    pub smss: u64,
    /// Shift count of the windows that we advertise.
    pub own_scale: u8,
    /// Shift count of the peer's windows.
    pub peer_scale: u8,
    /// SACK is permitted.
    pub sack: bool,
    /// Segments carry timestamps.
    pub timestamps: bool,
    /// ECN is in use.
    pub ecn: bool,
}

/// The timers of a connection. Pacing is excluded, because its deadline changes with every segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Retransmission (RFC 6298 §5).
    Retransmission,
    /// A timer of a loss detector: RACK's reordering timer, TCP-PR's timer or a tail loss probe.
    Detection,
    /// Zero-window probing (RFC 9293 §3.8.6.1).
    Persist,
    /// Delayed ACK (RFC 9293 §3.8.6.3).
    DelayedAck,
    /// Keep-alive (RFC 9293 §3.8.4).
    KeepAlive,
    /// The end of TIME-WAIT, or of an orphan's FIN-WAIT-2.
    TimeWait,
    /// A partial segment is corked.
    Cork,
    /// The user timeout (RFC 9293 §3.10.8).
    User,
}

impl Timer {
    /// All timers, ordered by their discriminants (`Timer as usize`).
    pub const ALL: [Self; 8] = [
        Self::Retransmission,
        Self::Detection,
        Self::Persist,
        Self::DelayedAck,
        Self::KeepAlive,
        Self::TimeWait,
        Self::Cork,
        Self::User,
    ];

    /// Returns the name used in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retransmission => "retransmission",
            Self::Detection => "detection",
            Self::Persist => "persist",
            Self::DelayedAck => "delayed-ack",
            Self::KeepAlive => "keep-alive",
            Self::TimeWait => "time-wait",
            Self::Cork => "cork",
            Self::User => "user",
        }
    }
}

/// The segment that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// All of its flags.
    pub flags: Flags,
    /// Offset of the segment's first byte in the peer's stream. `None`: the segment precedes the SYN, or no
    /// SYN has arrived.
    pub seq: Option<u64>,
    /// The offset in our stream that the segment acknowledges. `None`: the segment has no ACK, or
    /// acknowledges an offset before our SYN.
    pub ack: Option<u64>,
    /// Bytes of data.
    pub len: usize,
}

impl Refused {
    /// Describes `segment` for a connection. `own` and `peer` each give a stream's initial sequence number
    /// and an offset close to the segment's.
    pub(crate) fn of(segment: &Segment<'_>, own: (Seq, u64), peer: (Seq, u64)) -> Self {
        let acks = segment.flags.contains(Flags::ACK);
        Self {
            flags: segment.flags,
            seq: segment.seq.offset(peer.0, peer.1),
            ack: segment.ack.offset(own.0, own.1).filter(|_| acks),
            len: segment.payload.len(),
        }
    }
}

/// The reason why a segment was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// PAWS: its timestamp is older than TS.Recent.
    OldTimestamp,
    /// Timestamps were negotiated, but the segment has none.
    MissingTimestamp,
    /// All data of the segment was received before.
    Copy,
    /// The segment lies outside the window.
    OutOfWindow,
    /// A RST outside the window.
    ResetOutOfWindow,
    /// A RST in the window but not at RCV.NXT: the peer must confirm it (challenge ACK).
    ResetNotExact,
    /// A RST without an acceptable ACK in SYN-SENT.
    ResetWithoutAck,
    /// A SYN on an open connection: the peer must confirm it (challenge ACK).
    SynWhenOpen,
    /// The segment has no ACK.
    NoAck,
    /// During the handshake, a segment acknowledges something other than our SYN. A RST answers it.
    NotOurSyn,
    /// The segment acknowledges data that was never sent.
    AckOfUnsent,
    /// The segment's ACK is older than RFC 5961 §5.2 accepts.
    AckTooOld,
    /// The segment has no SYN in a state that requires one.
    NoSyn,
    /// Data arrived after the application closed the socket. A RST answers it.
    NobodyReads,
    /// No connection and no listener has that address. A RST answers it.
    NoListener,
    /// The segment reached a listener, belongs to no connection and is not a SYN. A RST answers it.
    NoConnection,
    /// The listener's backlog is full.
    BacklogFull,
    /// The source of the SYN has reached the limit of connections per source.
    SourceFull,
    /// The host has no memory left for another connection.
    NoMemory,
    /// A SYN with a FIN, which the profile drops.
    SynFin,
    /// The segment arrived in TIME-WAIT.
    TimeWait,
}

impl Refusal {
    /// Returns the machine-readable name.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns the human-readable reason, with the clause it is based on.
    pub const fn why(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::OldTimestamp => ("old-timestamp", "PAWS: old timestamp (RFC 7323 §5.3)"),
            Self::MissingTimestamp => {
                ("no-timestamp", "no timestamp, although timestamps are in use (RFC 7323 §3.2)")
            }
            Self::Copy => ("copy", "all of its data was already received (RFC 9293 §3.10.7.4)"),
            Self::OutOfWindow => ("out-of-window", "outside the receive window (RFC 9293 §3.10.7.4)"),
            Self::ResetOutOfWindow => ("reset-out-of-window", "RST outside the window (RFC 5961 §3.2)"),
            Self::ResetNotExact => {
                ("reset-not-exact", "RST in the window but not at RCV.NXT: challenge ACK (RFC 5961 §3.2)")
            }
            Self::ResetWithoutAck => {
                ("reset-without-ack", "RST that does not acknowledge the SYN (RFC 9293 §3.10.7.3)")
            }
            Self::SynWhenOpen => {
                ("syn-when-open", "SYN on an open connection: challenge ACK (RFC 5961 §4.2)")
            }
            Self::NoAck => ("no-ack", "no ACK bit (RFC 9293 §3.10.7.4)"),
            Self::NotOurSyn => {
                ("not-our-syn", "ACK does not match our SYN: answered with RST (RFC 9293 §3.10.7)")
            }
            Self::AckOfUnsent => ("ack-of-unsent", "ACK of data that was never sent (RFC 9293 §3.10.7.4)"),
            Self::AckTooOld => ("ack-too-old", "ACK older than one window: challenge ACK (RFC 5961 §5.2)"),
            Self::NoSyn => ("no-syn", "no SYN bit, which this state needs (RFC 9293 §3.10.7.3)"),
            Self::NobodyReads => {
                ("nobody-reads", "data after the socket was closed: answered with RST (RFC 9293 §3.6.1)")
            }
            Self::NoListener => {
                ("nobody-there", "no listener on that port: answered with RST (RFC 9293 §3.10.7.1)")
            }
            Self::NoConnection => ("no-connection", "no connection, and not a SYN (RFC 9293 §3.10.7.2)"),
            Self::NoMemory => ("no-memory", "no memory left in the host"),
            Self::BacklogFull => ("backlog-full", "the listener's backlog is full"),
            Self::SourceFull => ("source-full", "too many connections from this source"),
            Self::SynFin => ("syn-fin", "SYN with FIN, which this profile drops"),
            Self::TimeWait => ("time-wait", "late segment in TIME-WAIT (RFC 9293 §3.10.7.4)"),
        }
    }
}
