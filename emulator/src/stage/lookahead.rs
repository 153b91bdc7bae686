//! Stages whose decision about a packet is known as soon as the packet arrives.
//!
//! A link with a fixed rate, for example, serves packets in order of arrival. It can therefore compute when
//! a packet will leave without waiting for that time. A path in virtual time uses this to carry a packet over
//! several such stages at once, see [`Path::look_ahead`](crate::path::Path::look_ahead).

use std::sync::Arc;

use airwire::time::Instant;

use super::DropReason;

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

/// A stage that knows at once when a packet leaves. It keeps packets in order.
pub trait Lookahead {
    /// Carries a packet that arrives at `at`, and returns the time at which it leaves, or the reason why it is
    /// dropped on arrival. `at` never decreases. It may be later than the path's time `now`. The packet has
    /// `len` bytes on the wire, and `packet` may be abbreviated unless the stage [reads](Self::reads_packets) it.
    fn carry(&mut self, now: Instant, at: Instant, packet: &[u8], len: usize) -> Result<Instant, DropReason>;

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
    /// Time of the next packet.
    fn next(&self) -> Instant;

    /// Emits the next packet. The packet's number is not filled in.
    fn emit(&mut self) -> Arc<[u8]>;

    /// Prepares the stage before the first packet. From then on, it has no deadlines of its own.
    fn prepare(&mut self);
}
