//! Interface of all stages of a path. A stage is a sans-I/O machine that forwards packets and reports what
//! happened to each packet.
//!
//! [`Stage`] is the trait that stages implement. An [`Outbox`] takes the packets that leave a stage and the
//! events that it reports. An [`Event`] with its time and place is a [`Record`]. This module does not depend
//! on particular kinds of stages or their settings.

use std::any::Any;
use std::sync::Arc;

mod lookahead;
mod outbox;

use airwire::Cause;
use airwire::time::{Duration, Instant};
use serde::Serialize;
use serde_json::Value;

use crate::packet::{Direction, Packet, PacketId};

pub use lookahead::{Ahead, Background, Emitter, Lookahead, PassingPacket};
pub use outbox::Outbox;

/// One stage of a path. The order of calls follows the rules of [`Machine`](crate::machine::Machine). Packets
/// that leave during a call are put into `out`, at the time of that call. By default, a stage has no
/// deadlines and holds no packets.
pub trait Stage {
    /// A packet arrived. Its direction shows from which side it arrived.
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox);

    /// The time `now` has reached `next_deadline()`.
    fn handle_deadline(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// When `handle_deadline` must be called next. `None`: not before another packet arrives.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Switches lazy mode on or off. It is off at first. In lazy mode the stage may defer internal events
    /// until a packet leaves or `catch_up` runs, so `next_deadline` may be as late as the next departure.
    /// Results are identical.
    fn be_lazy(&mut self, _is_lazy: bool) {}

    /// Processes all events that a lazy stage has deferred. No packet leaves.
    fn catch_up(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// The stage's role in a path that looks ahead. Only a reconfiguration changes the role of a running
    /// stage.
    fn lookahead(&mut self, _direction: Direction) -> Ahead<'_> {
        Ahead::No
    }

    /// Carries a packet like [`Lookahead::carry`], if that is the stage's role in this direction. With other
    /// roles, the packet passes. A path calls this method for each packet, because it takes one dynamic call
    /// instead of two.
    fn carry(&mut self, packet: &mut PassingPacket<'_>) -> Result<(), DropReason> {
        match self.lookahead(packet.direction) {
            Ahead::Carries(stage) => stage.carry(packet),
            Ahead::No | Ahead::Passes | Ahead::Emits(_) => Ok(()),
        }
    }

    /// The packets that the stage adds in this direction. `None`: it adds none.
    fn background(&self, _direction: Direction) -> Option<Background> {
        None
    }

    /// Number of packets that came in and were neither forwarded nor dropped.
    fn held(&self) -> usize {
        0
    }

    /// Current counters, as JSON.
    fn stats(&self) -> Value;

    /// Applies new settings while the stage runs. `settings` must have the settings type of this kind of
    /// stage. If a setting cannot change at run time, the stage returns an error and changes nothing.
    fn reconfigure(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError>;

    /// The direction from this stage to the radio link that it measures. The link consists of all stages on
    /// that side, up to the next measuring stage or to the end of the path. `None`: this stage does not
    /// measure a link.
    fn radio_side(&self) -> Option<Direction> {
        None
    }

    /// A host's packet crossed the measured radio link or was damaged on it. Packets that a full queue drops
    /// are not reported.
    fn report_radio_outcome(&mut self, _direction: Direction, _outcome: RadioOutcome) {}
}

/// Outcome of a packet on a radio link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioOutcome {
    /// The packet crossed the link.
    Arrived,
    /// A stage of the link dropped the packet for a reason whose cause is the radio.
    Damaged,
}

/// Error that a running stage returns when it cannot apply new settings.
#[derive(Debug, thiserror::Error)]
#[error("`{setting}` cannot be changed while the link runs: {why}")]
pub struct ReconfigureError {
    /// Path of the setting within the stage, with dots: `down.trace`.
    pub setting: String,
    /// The reason, as a clause.
    pub why: String,
}

impl ReconfigureError {
    /// Creates the error. `setting` is relative to the table that is being checked.
    pub fn new(setting: impl Into<String>, why: impl Into<String>) -> Self {
        Self { setting: setting.into(), why: why.into() }
    }
}

/// Something that happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The packet entered the path. It came from a host or, if the record names a stage, from a traffic
    /// source.
    Entered {
        /// Length of the packet.
        bytes: usize,
    },
    /// The packet waits in a queue.
    Queued {
        /// Number of packets ahead in the queue.
        packets: usize,
        /// Bytes of the packets ahead in the queue.
        bytes: u64,
    },
    /// The transmission of the packet began.
    Sent {
        /// Time that the packet spent in the queue. Zero if the packet did not have to wait.
        waited: Duration,
    },
    /// The packet was retransmitted locally.
    Resent {
        /// Number of this transmission. The first transmission is 1, so the first retransmission is 2.
        attempt: u32,
    },
    /// The packet is held back, either until an outage ends or so that later packets overtake it.
    Held {
        /// The currently known latest time at which the packet continues.
        until: Instant,
    },
    /// The packet continues after packets that entered later.
    Overtaken {
        /// Number of packets that overtook it.
        packets: u64,
    },
    /// The packet was created as a copy of another one.
    Copied {
        /// The packet that was copied.
        of: PacketId,
    },
    /// Bits of the packet were flipped.
    Corrupted {
        /// Positions of the flipped bits in ascending order, counted from the packet's first bit in
        /// transmission order.
        bits: Box<[u32]>,
        /// Whether a receiver that verifies the packet's checksums (IPv4, TCP, UDP, ICMP) detects the damage.
        found: bool,
    },
    /// The end of the packet was cut off.
    Truncated {
        /// Length before, in bytes.
        from: usize,
        /// Length after, in bytes.
        to: usize,
    },
    /// Bits in the packet's headers were changed.
    Marked {
        /// The change.
        mark: Mark,
    },
    /// The packet was dropped.
    Dropped {
        /// The reason.
        why: DropReason,
    },
    /// The packet left the path: to a host or, if it is background traffic, after the stage that its source
    /// names.
    Left,
}

/// A change that a queue or a base station made to a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A transit agent set bits on an ACK.
    Transit {
        /// Whether [`airwire::marks::OB`] is now set.
        ob: bool,
        /// Whether [`airwire::marks::DB`] is now set.
        db: bool,
    },
    /// A transit agent announced itself on a SYN.
    Announced,
    /// A transit agent wrote a loss rate into an ACK.
    LossRate {
        /// The rate, in units of 2^-16.
        rate: u16,
    },
    /// A queue set the CE codepoint in the IP header (RFC 3168) instead of dropping the packet.
    Congestion,
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $reason:ident = $name:literal,)*) => {
        /// The reason why a packet was dropped. This is ground truth, which a real network does not provide.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum DropReason {
            $($(#[$doc])* $reason,)*
        }

        impl DropReason {
            /// All reasons, in the order of their numbers (`DropReason as usize`).
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$reason),*];

            /// The name in records, summaries and traces.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// The queue had no room for the packet.
    QueueFull = "queue-full",
    /// Active queue management dropped the packet before the queue was full, to slow down its sender.
    Aqm = "aqm",
    /// The channel damaged the packet.
    Loss = "loss",
    /// A drop list named the packet.
    Listed = "listed",
    /// A policer had no tokens left for the packet.
    Policed = "policed",
    /// The packet arrived during an outage.
    Outage = "outage",
    /// Local retransmission gave up on the packet.
    RetryLimit = "retry-limit",
    /// RLC discarded the packet (MaxDAT or Timer_Discard) and informed its peer.
    RlcDiscard = "rlc-discard",
    /// An RLC RESET discarded the packet.
    RlcReset = "rlc-reset",
    /// RLC in unacknowledged mode did not receive all of the packet.
    RlcLoss = "rlc-loss",
    /// PDCP discarded the packet because discardTimer expired.
    PdcpDiscard = "pdcp-discard",
    /// The packet arrived after t-Reordering of PDCP had expired.
    PdcpLate = "pdcp-late",
    /// A handover did not forward the packet to the target cell.
    Handover = "handover",
    /// The packet is longer than this stage can carry.
    TooLong = "too-long",
    /// The bytes are not a complete IP packet.
    Malformed = "malformed",
}

impl DropReason {
    /// The name of the cause in views. `refused` if [`cause`](Self::cause) is `None`.
    pub fn cause_name(self) -> &'static str {
        self.cause().map_or("refused", Cause::name)
    }

    /// The attribution that a correct algorithm gives this loss. `None`: the stage cannot carry such a
    /// packet, so neither congestion nor the radio link is the cause.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            // More arrived than the rate allows, so a sender that slows down loses fewer packets.
            Self::QueueFull | Self::Aqm | Self::Policed => Some(Cause::Congestion),
            Self::Loss
            | Self::Listed
            | Self::Outage
            | Self::RetryLimit
            | Self::RlcDiscard
            | Self::RlcReset
            | Self::RlcLoss
            | Self::PdcpDiscard
            | Self::PdcpLate
            | Self::Handover => Some(Cause::Radio),
            Self::TooLong | Self::Malformed => None,
        }
    }
}

/// An event with its packet, place and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the call in which the stage reported the event.
    pub at: Instant,
    /// Index of the stage in its path. `None`: one of the path's ends.
    pub stage: Option<usize>,
    /// The packet that the event is about.
    pub packet: PacketId,
    /// Direction in which the packet travels.
    pub direction: Direction,
    /// The event.
    pub event: Event,
    /// The packet's bytes at that moment, if packets are recorded. Only `Entered`, `Dropped` and `Left` have
    /// them.
    pub bytes: Option<Box<[u8]>>,
}

/// A rare occurrence that concerns a stage rather than a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Time at which the stage reported it.
    pub at: Instant,
    /// Index of the stage in its path.
    pub stage: usize,
    /// The kind of incident.
    pub kind: IncidentKind,
}

/// Kind of an [`Incident`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentKind {
    /// An RLC entity initiated the RLC reset procedure (TS 25.322 §11.4.2).
    RlcReset {
        /// The direction in which the entity sends data. The entity of the network sends down.
        direction: Direction,
        /// The cause, named by [`ResetCause::name`](crate::rlc::umts::entity::ResetCause::name).
        cause: &'static str,
    },
    /// VT(RST) of an RLC entity reached MaxRST, an unrecoverable error (TS 25.322 §11.4.4a). The entity sends
    /// nothing until RLC is re-established.
    RlcFailed {
        /// The direction in which the entity sends data.
        direction: Direction,
    },
    /// An RLC sender changed its window size at its receiver's request (WINDOW SUFI, TS 25.322 §9.2.2.11.3).
    RlcWindow {
        /// The direction in which the sender sends data.
        direction: Direction,
        /// The new VT(WS), in PDUs.
        pdus: u16,
    },
    /// An RLC sender was suspended (LOCAL_SUSPEND, TS 25.322 §9.3.3.4).
    RlcSuspended {
        /// The direction in which the sender sends data.
        direction: Direction,
        /// Number of new PDUs that it may still send.
        pdus: u64,
    },
    /// A suspended RLC sender was resumed.
    RlcResumed {
        /// The direction in which the sender sends data.
        direction: Direction,
    },
    /// An RLC receiver ignored part of a well-formed PDU because it contradicts earlier PDUs.
    RlcFault {
        /// The direction of the PDU.
        direction: Direction,
        /// The fault, named by [`Faults::each`](crate::rlc::umts::reassembly::Faults::each).
        fault: &'static str,
    },
    /// RRC re-established RLC.
    RlcReestablished,
    /// RLC reached maxRetxThreshold (TS 38.322 §5.3.2). RRC re-establishes the connection.
    RadioLinkFailure {
        /// The direction in which the entity sends data.
        direction: Direction,
        /// Time at which the connection is re-established.
        until: Instant,
    },
    /// The network has commanded a handover.
    HandoverCommand {
        /// Time of the first transmission in the target cell.
        until: Instant,
    },
    /// Data is waiting for an idle terminal that has no dedicated channel (CELL_FACH).
    Promotion {
        /// Time at which the terminal has a dedicated channel.
        until: Instant,
    },
    /// A radio channel changed its rate.
    RateChanged {
        /// The direction of the channel.
        direction: Direction,
        /// The new rate, as written in a scenario.
        rate: &'static str,
    },
    /// A packet or radio block met an outage. Only the first one of each outage is reported.
    Outage {
        /// The direction of the packet or block.
        direction: Direction,
        /// Time at which the outage ends.
        until: Instant,
    },
    /// The mobile has changed its base station since the last packet.
    Handover {
        /// Number of changes since the last packet.
        times: u64,
    },
}

/// The standard that defines the format of a radio PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technology {
    /// RLC acknowledged mode of UMTS (TS 25.322).
    Umts {
        /// Size of a "Length Indicator" in bits: 7 or 15.
        indicators: u8,
    },
    /// RLC acknowledged mode of LTE (TS 36.322).
    Lte {
        /// Size of a sequence number in bits: 10 or 16.
        sn: u8,
    },
    /// RLC unacknowledged mode of LTE.
    LteUm {
        /// Size of a sequence number in bits: 5 or 10.
        sn: u8,
    },
    /// RLC acknowledged mode of NR (TS 38.322).
    Nr {
        /// Size of a sequence number in bits: 12 or 18.
        sn: u8,
    },
    /// RLC unacknowledged mode of NR.
    NrUm {
        /// Size of a sequence number in bits: 6 or 12.
        sn: u8,
    },
    /// MAC of LTE (TS 36.321): a transport block.
    LteMac(BlockContext),
    /// MAC of NR (TS 38.321): a transport block.
    NrMac(BlockContext),
    /// PDCP of LTE (TS 36.323).
    LtePdcp {
        /// Size of a sequence number in bits: 12, 15 or 18.
        sn: u8,
    },
    /// PDCP of NR (TS 38.323).
    NrPdcp {
        /// Size of a sequence number in bits: 12 or 18.
        sn: u8,
    },
}

/// The slot and the HARQ process of a transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockContext {
    /// Whether the cell separates the directions by time (TDD).
    pub is_tdd: bool,
    /// Number of the frame, modulo 1024.
    pub frame: u16,
    /// Number of the slot in its frame.
    pub slot: u16,
    /// HARQ process.
    pub process: usize,
}

/// A protocol layer of LTE and NR whose PDUs are recorded. UMTS has only RLC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "program", derive(clap::ValueEnum))]
pub enum RadioLayer {
    /// Transport blocks, with each of their HARQ transmissions
    Mac,
    /// RLC PDUs, in the order of their first transmission
    #[default]
    Rlc,
    /// PDCP PDUs, in the order in which RLC delivers them
    Pdcp,
}

impl Technology {
    /// The layer of the PDU.
    pub fn layer(self) -> RadioLayer {
        match self {
            Self::LteMac(_) | Self::NrMac(_) => RadioLayer::Mac,
            Self::LtePdcp { .. } | Self::NrPdcp { .. } => RadioLayer::Pdcp,
            _ => RadioLayer::Rlc,
        }
    }
}

/// A radio PDU at the moment of its transmission, whether or not it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioPdu {
    /// Time at which its transmission begins.
    pub at: Instant,
    /// Index of the stage in its path.
    pub stage: usize,
    /// LTE and NR: 0 for the default bearer, 1 for the dedicated one.
    pub bearer: usize,
    /// The direction of the PDU.
    pub direction: Direction,
    /// The format of the bytes.
    pub technology: Technology,
    /// The PDU as transmitted.
    pub bytes: Arc<[u8]>,
    /// UMTS: a counter that grows with every wrap of the sequence number and every RESET, so that (epoch, SN)
    /// is unique. LTE and NR: the number of re-establishments.
    pub epoch: u32,
    /// Whether the channel damages this transmission.
    pub lost: bool,
    /// RLC of LTE and NR: when the PDU arrives, if it does. HARQ makes this time differ between PDUs.
    pub arrival: Option<Instant>,
    /// Number of this transmission of the PDU. The first is 1.
    pub transmission: u32,
    /// The packets whose bytes the PDU carries.
    pub packets: Vec<PacketId>,
}

impl RadioPdu {
    /// The sequence number of an RLC data PDU. `None`: another layer, a control PDU, whose D/C field is 0, or a
    /// PDU of NR's UM with a whole SDU.
    pub fn sequence_number(&self) -> Option<u32> {
        let &[first, second, ..] = &*self.bytes else { return None };
        let third = u32::from(self.bytes.get(2).copied().unwrap_or_default());
        let [first, second] = [first, second].map(u32::from);
        let acknowledged = |sn: u32| (first & 0x80 != 0).then_some(sn);
        match self.technology {
            // TS 25.322 §9.2.1.4.
            Technology::Umts { .. } => acknowledged((first & 0x7f) << 5 | second >> 3),
            // TS 36.322 §6.2.1.4: the first octet has the fields D/C, RF, P, FI and E.
            Technology::Lte { sn: 10 } => acknowledged((first & 0x03) << 8 | second),
            Technology::Lte { .. } => acknowledged(second << 8 | third),
            // TS 36.322 §6.2.1.3: FI, E and SN; with 10 bits after three reserved bits.
            Technology::LteUm { sn: 5 } => Some(first & 0x1f),
            Technology::LteUm { .. } => Some((first & 0x03) << 8 | second),
            // TS 38.322 §6.2.2.4.
            Technology::Nr { sn: 12 } => acknowledged((first & 0x0f) << 8 | second),
            Technology::Nr { .. } => acknowledged((first & 0x03) << 16 | second << 8 | third),
            // TS 38.322 §6.2.2.3: SI is not 00.
            Technology::NrUm { .. } if first & 0xc0 == 0 => None,
            Technology::NrUm { sn: 6 } => Some(first & 0x3f),
            Technology::NrUm { .. } => Some((first & 0x0f) << 8 | second),
            Technology::LteMac(_) | Technology::NrMac(_) => None,
            Technology::LtePdcp { .. } | Technology::NrPdcp { .. } => None,
        }
    }
}

/// The packet events that are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recording {
    /// Record nothing. Stages still count.
    #[default]
    Off,
    /// Record every [`Incident`].
    Incidents,
    /// Record also every event, without the bytes of packets.
    Events,
    /// Record also the bytes of packets that enter, leave or are dropped.
    Bytes,
}
