//! Stages whose decision about a packet is known as soon as the packet arrives.
//!
//! A link with a fixed rate, for example, serves packets in order of arrival. It can therefore compute when
//! a packet will leave without waiting for that time. A path in virtual time uses this to carry a packet over
//! several such stages at once, see [`Path::look_ahead`](crate::path::Path::look_ahead).

use std::sync::Arc;

use airwire::time::Instant;

use super::DropReason;
use crate::packet::Direction;

/// The role of one direction of a stage in a path that looks ahead.
pub enum Ahead<'a> {
    /// The stage has to wait for the clock.
    No,
    /// Packets pass unchanged and without delay.
    Passes,
    /// The stage knows at once when a packet leaves.
    Carries(&'a mut dyn Lookahead),
    /// The stage adds packets of its own, at times that are known in advance. Other packets pass. It is the first
    /// of the stages that a packet crosses at once.
    Emits(&'a mut dyn Emitter),
}

/// A packet on its way through stages that look ahead.
#[derive(Clone, Copy, Debug)]
pub struct PassingPacket<'a> {
    /// The path's time.
    pub now: Instant,
    /// The time at which the packet arrives at the next stage. It may be later than `now`.
    pub at: Instant,
    /// Direction in which the packet travels.
    pub direction: Direction,
    /// The packet, starting with the IP header. It may be [abbreviated](airwire::segment::abbreviate), unless a
    /// stage [reads](Lookahead::reads_packets) packets.
    pub bytes: &'a [u8],
    /// Length on the wire.
    pub len: usize,
}

/// A stage that knows at once when a packet leaves. It keeps packets in order.
pub trait Lookahead {
    /// Carries a packet that arrives at `packet.at`, which never decreases. Sets `packet.at` to the time at
    /// which the packet leaves, or returns the reason why it is dropped on arrival.
    fn carry(&mut self, packet: &mut PassingPacket<'_>) -> Result<(), DropReason>;

    /// Returns whether the stage reads the bytes of packets.
    fn reads_packets(&self) -> bool;

    /// Returns whether packets spend time in the stage.
    fn delays(&self) -> bool;

    /// Makes counters and state refer to this time, which is not earlier than the path's time.
    fn settle(&mut self, now: Instant);

    /// Returns whether background traffic of this many bits per second leaves the stage at the rate at which
    /// it enters, so that its packets take little memory.
    fn sustains(&self, background: u64) -> bool;
}

/// The packets that a stage adds in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// Upper bound on the rate of all packets together, in bits per second.
    pub rate: u64,
    /// Index of the stage after which the packets leave the path. It is at most `u16::MAX`.
    pub leaves_after: usize,
}

/// A stage that emits packets at times that do not depend on other packets.
pub trait Emitter {
    /// Prepares the stage before the first packet, and returns the bytes of each packet, except for its
    /// number. From then on, the stage has no deadlines of its own.
    fn prepare(&mut self) -> Arc<[u8]>;

    /// Time of the next packet.
    fn next(&self) -> Instant;

    /// Emits the next packet, and returns the time of the one after it.
    fn emit(&mut self) -> Instant;
}
