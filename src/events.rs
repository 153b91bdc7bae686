//! What a host tells whoever listens, for logs: what its connections offer and agree on, the states they enter, what
//! they refuse and why, their timers, windows and decisions.
//!
//! [`Host::note_events`](crate::Host::note_events) asks for it and [`Host::poll_event`](crate::Host::poll_event) hands it
//! out. Nothing is put together while nobody has asked. Offsets are octets of a stream: offset 0 is the SYN, so they
//! are the relative sequence numbers that tcpdump prints.

use std::net::SocketAddr;

use airwire::options::Options;
use airwire::segment::{BadPacket, Flags, Segment};
use airwire::seq::Seq;
use airwire::time::Instant;

use crate::recovery::Decision;
use crate::tcp::{Ended, IcmpError, State};

/// Something that happened to a connection, or to a packet of none.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// Our end of the connection and the peer's. `None`: the packet has no addresses that can be believed.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Our SYN or SYN,ACK left with this.
    Offered(Offer),
    /// The peer's came with this.
    PeerOffered(Offer),
    /// The handshake is complete: this is in force.
    Agreed(Agreement),
    /// Another state of RFC 9293 §3.3.2.
    State {
        /// Until now.
        from: State,
        /// From now on.
        to: State,
    },
    /// It is over; why, if not by both sides closing.
    Ended(Option<Ended>),
    /// Loss recovery has decided something.
    Decided(Decision),
    /// A timer runs from now on, or until another time than before.
    TimerSet {
        /// Which.
        timer: Timer,
        /// Its deadline.
        until: Instant,
    },
    /// A timer runs no longer.
    TimerStopped {
        /// Which.
        timer: Timer,
    },
    /// A timer's time has come.
    TimerFired {
        /// Which.
        timer: Timer,
    },
    /// A segment was not taken, or no more of it than its ACK.
    Refused {
        /// Why.
        why: Refusal,
        /// The segment.
        segment: Refused,
    },
    /// The peer's window has closed (0 octets), or opened again.
    PeerWindow {
        /// SND.WND.
        octets: u64,
    },
    /// The window that we offer has closed (0 octets), or opened again.
    OwnWindow {
        /// RCV.WND.
        octets: u64,
    },
    /// The path takes smaller packets than was thought.
    Pmtu {
        /// Until now, in octets of IP packets.
        from: u32,
        /// From now on.
        to: u32,
    },
    /// An ICMP error about this connection.
    Icmp {
        /// What it says.
        says: IcmpError,
        /// False if it changed nothing: it quotes nothing that is in flight, or its MTU is no news (RFC 5927 §4).
        believed: bool,
    },
    /// A packet that no connection saw.
    Bad(BadPacket),
}

/// Options of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// SACK is permitted.
    pub sack: bool,
    /// It has timestamps.
    pub timestamps: bool,
    /// ECN is asked for, or accepted in a SYN,ACK (RFC 3168 §6.1.1).
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

/// What both sides do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// SMSS: octets of data in a full-sized segment of ours.
    pub smss: u64,
    /// Our windows are shifted by this.
    pub own_scale: u8,
    /// The peer's are.
    pub peer_scale: u8,
    /// SACK is permitted.
    pub sack: bool,
    /// Segments have timestamps.
    pub timestamps: bool,
    /// ECN is in use.
    pub ecn: bool,
}

/// The timers of a connection. Pacing has none here: it has a deadline with every segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Retransmission (RFC 6298 §5).
    Retransmission,
    /// A detector of losses: RACK's reordering timer, TCP-PR's, a tail loss probe.
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
    /// All, in the order of their numbers (`Timer as usize`).
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

    /// As logs write it.
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

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// All flags of it.
    pub flags: Flags,
    /// The offset of its first octet in the peer's stream. `None`: before the SYN, or no SYN has come.
    pub seq: Option<u64>,
    /// What it acknowledges, as an offset in ours. `None`: nothing, or what lies before our SYN.
    pub ack: Option<u64>,
    /// Octets of data.
    pub len: usize,
}

impl Refused {
    /// As seen from a connection whose streams begin at `iss` and `irs`, near these offsets.
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

/// Why a segment was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// PAWS: its timestamp is older than TS.Recent.
    OldTimestamp,
    /// Timestamps were agreed on, and it has none.
    MissingTimestamp,
    /// All of it was received before.
    Copy,
    /// It lies outside the window.
    OutOfWindow,
    /// A reset outside the window.
    ResetOutOfWindow,
    /// A reset in the window, but not at RCV.NXT: a challenge ACK asks whether it is meant.
    ResetNotExact,
    /// A reset that acknowledges nothing, while our SYN waits for an answer.
    ResetWithoutAck,
    /// A SYN for a connection that is open: a challenge ACK asks whether it is meant.
    SynWhenOpen,
    /// It has no ACK.
    NoAck,
    /// In the handshake: it acknowledges something else than our SYN, and is answered with a reset.
    NotOurSyn,
    /// It acknowledges what was never sent.
    AckOfUnsent,
    /// It acknowledges what was acknowledged long ago.
    AckTooOld,
    /// No SYN, where one is needed.
    NoSyn,
    /// Data that nobody is left to read: a reset answers it.
    NobodyReads,
    /// No connection and no listener is at that address: a reset answers it.
    NobodyThere,
    /// A listener has no connection for it, and it is no SYN: a reset answers it.
    NoConnection,
    /// The listener's backlog is full.
    BacklogFull,
    /// Its source has as many connections as one may have.
    SourceFull,
    /// The host has no memory left for another connection.
    NoMemory,
    /// A SYN with a FIN, where the profile drops it.
    SynFin,
}

impl Refusal {
    /// The name, for programs.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// The reason, for people, with the rule that it comes from.
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
            Self::NobodyThere => {
                ("nobody-there", "no listener on that port: answered with RST (RFC 9293 §3.10.7.1)")
            }
            Self::NoConnection => ("no-connection", "no connection, and not a SYN (RFC 9293 §3.10.7.2)"),
            Self::NoMemory => ("no-memory", "no memory left in the host"),
            Self::BacklogFull => ("backlog-full", "the listener's backlog is full"),
            Self::SourceFull => ("source-full", "too many connections from this source"),
            Self::SynFin => ("syn-fin", "SYN with FIN, which this profile drops"),
        }
    }
}
