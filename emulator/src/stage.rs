//! What every stage of a path looks like: a sans-I/O machine that hands packets on, and reports what it did to
//! each of them.
//!
//! [`Stage`] is the contract and [`Outbox`] is where a stage puts its packets and says what happened: an [`Event`]
//! with its time and place is a [`Record`]. This module knows neither the kinds of stages nor their settings.

use std::any::Any;
use std::sync::Arc;

mod outbox;

use airwire::Cause;
use airwire::time::{Duration, Instant};
use serde::Serialize;
use serde_json::Value;

use crate::packet::{Direction, Packet, PacketId};

pub use outbox::Outbox;

/// One stage. Calls come in the order that `machine::Machine` lays down; what leaves is put into `out` during the
/// call, at the time of the call.
pub trait Stage {
    /// `packet` arrived; its direction tells from which side.
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox);

    /// Time passed: `now` has reached `next_deadline()`.
    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox);

    /// When `handle_deadline` is wanted next. `None`: not before another packet comes in.
    fn next_deadline(&self) -> Option<Instant>;

    /// While it is lazy nobody looks at what happens inside, but after `catch_up`: `next_deadline` may be as late as nothing
    /// leaves before it. What is done late has the outcome that it would have had in time. At first it is not lazy.
    fn be_lazy(&mut self, _is_lazy: bool) {}

    /// Somebody looks: does everything that a lazy stage has put off. Nothing leaves.
    fn catch_up(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// Packets that came in and have neither been handed on nor dropped.
    fn held(&self) -> usize;

    /// Live counters, for people and programs.
    fn stats(&self) -> Value;

    /// Takes over new settings while it runs: `settings` is the type of settings that this kind of stage is built
    /// from, and any other type is refused. What cannot change under way is refused too, and then nothing changes.
    fn reconfigure(&mut self, now: Instant, settings: &dyn Any, out: &mut Outbox) -> Result<(), NotLive>;

    /// The direction in which packets go from here to the radio link that this stage measures. That link is all
    /// stages on that side, up to the next one that measures or to the end of the path. `None`: it measures nothing.
    fn radio_side(&self) -> Option<Direction> {
        None
    }

    /// A host's packet came to the far end of that radio link, or was damaged on it. Packets that a full queue drops
    /// are not reported.
    fn radio_carried(&mut self, _direction: Direction, _fate: RadioFate) {}
}

/// What a radio link did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioFate {
    /// It crossed the link.
    Arrived,
    /// A stage of the link dropped it for a reason whose cause is the radio.
    Damaged,
}

/// Why a stage that runs refuses new settings.
#[derive(Debug, thiserror::Error)]
#[error("`{setting}` cannot be changed while the link runs: {why}")]
pub struct NotLive {
    /// Where in the stage's settings, with dots: `down.trace`.
    pub setting: String,
    /// What stands against it, as a clause.
    pub why: String,
}

impl NotLive {
    /// `setting` as seen from the table that is checked.
    pub fn new(setting: impl Into<String>, why: impl Into<String>) -> Self {
        Self { setting: setting.into(), why: why.into() }
    }
}

/// One direction of a stage whose directions know nothing of each other. `stages::duplex::Duplex` makes a `Stage`
/// of two of them; the rules are those of `Stage`.
pub trait OneWay {
    /// The settings of one direction.
    type Config: 'static;

    /// As [`Stage::handle_packet`].
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox);
    /// As [`Stage::handle_deadline`].
    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox);
    /// As [`Stage::next_deadline`].
    fn next_deadline(&self) -> Option<Instant>;
    /// As [`Stage::be_lazy`].
    fn be_lazy(&mut self, _is_lazy: bool) {}
    /// As [`Stage::catch_up`].
    fn catch_up(&mut self, _now: Instant, _out: &mut Outbox) {}
    /// As [`Stage::held`].
    fn held(&self) -> usize;
    /// As [`Stage::stats`].
    fn stats(&self) -> Value;

    /// Whether these settings can be taken over while it runs.
    fn check(&self, config: &Self::Config) -> Result<(), NotLive>;

    /// Takes over settings that `check` has let pass.
    fn reconfigure(&mut self, now: Instant, config: &Self::Config, out: &mut Outbox);
}

/// What happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It came into the path: from a host, or from a traffic source (then the record names a stage).
    Entered {
        /// The length of the packet.
        bytes: usize,
    },
    /// It waits behind so many others.
    Queued {
        /// How many wait before it.
        packets: usize,
        /// Their octets.
        bytes: u64,
    },
    /// Its transmission began, after having waited.
    Sent {
        /// How long it was in the queue; zero if it did not have to wait.
        waited: Duration,
    },
    /// A local retransmission: the `attempt`th transmission of this packet (2: the first retransmission).
    Resent {
        /// The first transmission has the number 1.
        attempt: u32,
    },
    /// It is kept back: until the end of an outage, or to be overtaken.
    Held {
        /// When it goes on at the latest, as far as is known now.
        until: Instant,
    },
    /// It goes on, behind packets that came after it.
    Overtaken {
        /// How many of those have gone on before it.
        packets: u64,
    },
    /// It came into being as a copy of another packet, just now.
    Copied {
        /// The other one.
        of: PacketId,
    },
    /// Bits of it were turned over.
    Corrupted {
        /// Which, counted from the first of the packet as they are sent, in ascending order.
        bits: Box<[u32]>,
        /// Whether a checksum of the packet (IPv4, TCP, UDP, ICMP) gives it away to whoever verifies it.
        found: bool,
    },
    /// Its end was cut off.
    Truncated {
        /// Its octets before.
        from: usize,
        /// Its octets now.
        to: usize,
    },
    /// Bits in its header were changed.
    Marked {
        /// Which bits.
        what: Mark,
    },
    /// It goes no further.
    Dropped {
        /// For which reason.
        why: Why,
    },
    /// It left the path: to a host or, if it is a traffic source's, after the stage.
    Left,
}

/// What a queue or a station changed in a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The transit agent's bits on an ACK.
    Transit {
        /// [`airwire::marks::OB`] is set now.
        ob: bool,
        /// [`airwire::marks::DB`] is set now.
        db: bool,
    },
    /// The transit agent made itself known on a SYN.
    Announced,
    /// The loss rate that the ACK carries now.
    LossRate {
        /// In units of 2^-16.
        rate: u16,
    },
    /// A queue set the CE codepoint in the IP header (RFC 3168), in place of dropping the packet.
    Congestion,
}

/// Why a packet went no further. The ground truth that no real network gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// There was no room for it in a queue.
    QueueFull,
    /// The active queue management dropped it, so that its sender slows down before the queue is full.
    Aqm,
    /// The channel damaged it.
    Loss,
    /// A drop list named it.
    Listed,
    /// A policer had no tokens left for it.
    Policed,
    /// It arrived during an outage.
    Outage,
    /// Local retransmission gave up.
    RetryLimit,
    /// RLC discarded it (MaxDAT or Timer_Discard) and told its peer.
    RlcDiscard,
    /// An RLC RESET threw it away.
    RlcReset,
    /// Longer than this stage can carry.
    TooLong,
    /// Not a whole IP packet.
    Malformed,
}

impl Why {
    /// In the order of their numbers (`Why as usize`).
    pub const ALL: [Self; 11] = [
        Self::QueueFull,
        Self::Aqm,
        Self::Loss,
        Self::Listed,
        Self::Policed,
        Self::Outage,
        Self::RetryLimit,
        Self::RlcDiscard,
        Self::RlcReset,
        Self::TooLong,
        Self::Malformed,
    ];

    /// As records, summaries and traces write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Aqm => "aqm",
            Self::Loss => "loss",
            Self::Listed => "listed",
            Self::Policed => "policed",
            Self::Outage => "outage",
            Self::RetryLimit => "retry-limit",
            Self::RlcDiscard => "rlc-discard",
            Self::RlcReset => "rlc-reset",
            Self::TooLong => "too-long",
            Self::Malformed => "malformed",
        }
    }

    /// The name of the cause as views write it; `refused` where there is none.
    pub fn cause_name(self) -> &'static str {
        self.cause().map_or("refused", Cause::name)
    }

    /// What an algorithm that attributes losses ought to say. `None`: the stage cannot carry such a packet, and
    /// neither a queue nor the radio is to blame.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            // More came than the rate allows: a sender that slows down loses fewer.
            Self::QueueFull | Self::Aqm | Self::Policed => Some(Cause::Congestion),
            Self::Loss
            | Self::Listed
            | Self::Outage
            | Self::RetryLimit
            | Self::RlcDiscard
            | Self::RlcReset => Some(Cause::Radio),
            Self::TooLong | Self::Malformed => None,
        }
    }
}

/// An event, and to which packet, where and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time of the call in which the stage reported it.
    pub at: Instant,
    /// Index of the stage in its path; `None`: the path's own ends.
    pub stage: Option<usize>,
    /// The packet to which it happened.
    pub packet: PacketId,
    /// Which way the packet goes.
    pub direction: Direction,
    /// What happened.
    pub event: Event,
    /// The packet as it was at that moment, if somebody wants to see packets; only with `Entered`, `Dropped` and
    /// `Left`.
    pub bytes: Option<Box<[u8]>>,
}

/// Something that befalls a stage and not a packet, and is rare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// When the stage reported it.
    pub at: Instant,
    /// Index of the stage in its path.
    pub stage: usize,
    /// What it is.
    pub what: Mishap,
}

/// What an [`Incident`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// An RLC entity initiates the reset procedure (TS 25.322 §11.4.2).
    RlcReset {
        /// The direction in which the entity sends data: the network's end sends down.
        direction: Direction,
        /// What for: as [`ResetCause::name`](crate::rlc::umts::entity::ResetCause::name) has it.
        cause: &'static str,
    },
    /// VT(RST) of an RLC entity has reached MaxRST, an unrecoverable error (§11.4.4a). It is silent until RLC starts anew.
    RlcFailed {
        /// The direction in which the entity sends data.
        direction: Direction,
    },
    /// An RLC sender goes on with another window, because its receiver said so (WINDOW, §9.2.2.11.3).
    RlcWindow {
        /// The direction in which it sends data.
        direction: Direction,
        /// VT(WS), in PDUs.
        pdus: u16,
    },
    /// An RLC sender is suspended (LOCAL_SUSPEND, §9.3.3.4).
    RlcSuspended {
        /// The direction in which it sends data.
        direction: Direction,
        /// How many new PDUs it may still send.
        pdus: u64,
    },
    /// It is so no longer.
    RlcResumed {
        /// The direction in which it sends data.
        direction: Direction,
    },
    /// An RLC receiver has ignored something in a well-formed PDU, because it contradicts the PDUs before it.
    RlcFault {
        /// The direction of the PDU.
        direction: Direction,
        /// What: as [`Faults::each`](crate::rlc::umts::reassembly::Faults::each) has it.
        fault: &'static str,
    },
    /// RRC starts RLC anew.
    RlcReestablished,
    /// There is something to transmit for an idle terminal, which has no dedicated channel (CELL_FACH).
    Promotion {
        /// When it has one.
        until: Instant,
    },
    /// A radio channel has another rate from now on.
    RateChanged {
        /// Which way it goes.
        direction: Direction,
        /// As a scenario writes it.
        rate: &'static str,
    },
    /// A packet, or a radio block, has met an outage that none has met before.
    Outage {
        /// Which way it goes.
        direction: Direction,
        /// When the outage is over.
        until: Instant,
    },
    /// The mobile is with another base station than at the last packet.
    Handover {
        /// How often it has moved since then.
        times: u64,
    },
}

/// By which standard a radio PDU is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technology {
    /// RLC acknowledged mode of UMTS (TS 25.322).
    Umts {
        /// Bits of a "Length Indicator": 7 or 15.
        indicators: u8,
    },
}

/// A radio PDU at the moment of its transmission, whether it then arrives or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioPdu {
    /// When its transmission begins.
    pub at: Instant,
    /// Index of the stage in its path.
    pub stage: usize,
    /// Which way the PDU goes.
    pub direction: Direction,
    /// What its octets are.
    pub technology: Technology,
    /// The PDU as it is on the air.
    pub bytes: Arc<[u8]>,
    /// Grows with every wrap of the sequence number and every RESET, so that (epoch, SN) is unique.
    pub epoch: u32,
    /// The channel damages this transmission.
    pub lost: bool,
    /// Counts the transmissions of this PDU; 1 is the first.
    pub transmission: u32,
    /// The packets of which it carries octets.
    pub packets: Vec<PacketId>,
}

/// How much of what happens to packets is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recording {
    /// Nothing. Stages still count.
    #[default]
    Off,
    /// What befalls stages themselves, not packets: every [`Incident`].
    Incidents,
    /// Every event as well, without the packets' octets.
    Events,
    /// Every event, with the packet's octets where it enters, is dropped or leaves.
    Bytes,
}
