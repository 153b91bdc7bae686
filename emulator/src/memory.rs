//! Memory of the packets inside a path, and its upper bound.
//!
//! An unlimited queue, a long delay or a traffic source that is faster than the next link would otherwise
//! take all memory of the machine.

use airwire::time::Instant;

use crate::packet::{Direction, PerDirection};

/// Default upper bound on the memory of the packets inside a path, in bytes.
pub const DEFAULT_MEMORY: u64 = 1_000_000_000;

/// A stage may use this many times the memory that is still free, in each direction. A queue that grows
/// without limit thus leaves room for the packets of all other stages, and for the other direction (dynamic
/// thresholds, Choudhury and Hahne 1998).
const TIMES_FREE: u64 = 8;

/// Memory of the packets inside a path.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: u64,
    used: u64,
    /// The part of each stage, including the packets that are about to enter it. Empty in an outbox that does
    /// not belong to a path.
    stages: Vec<PerDirection<u64>>,
    /// The first time that a stage had no room.
    full: Option<Full>,
}

/// A stage that has no room for another packet.
#[derive(Clone, Copy, Debug)]
struct Full {
    at: Instant,
    stage: usize,
    direction: Direction,
    bytes: u64,
    limit: u64,
}

/// Error: the packets inside a path reached the upper bound on their memory, so that packets were dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of memory at {at} s: the packets in stage `{stage}` ({direction}) take {:.1} MB, and all packets in a path may take {:.1} MB; bound the queue ({stage}.{direction}.queue.packets) or shorten the delay",
    megabytes(.bytes), megabytes(.limit)
)]
pub struct OutOfMemory {
    /// Time of the first drop.
    pub at: Instant,
    /// Name of the stage that had no room.
    pub stage: String,
    /// Direction of its packets.
    pub direction: Direction,
    /// Memory of its packets in this direction, in bytes.
    pub bytes: u64,
    /// Upper bound for all packets inside the path, in bytes.
    pub limit: u64,
}

fn megabytes(bytes: &u64) -> f64 {
    *bytes as f64 / 1e6
}

impl Default for Memory {
    fn default() -> Self {
        Self { limit: DEFAULT_MEMORY, used: 0, stages: Vec::new(), full: None }
    }
}

impl Memory {
    /// Prepares for the packets of this number of stages.
    pub(crate) fn set_stages(&mut self, stages: usize) {
        self.stages = vec![PerDirection::default(); stages];
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Memory of all packets inside, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the error if a stage had no room. `name` returns the name of a stage.
    #[inline]
    pub(crate) fn check<'a>(&self, name: impl FnOnce(usize) -> &'a str) -> Result<(), OutOfMemory> {
        let Some(Full { at, stage, direction, bytes, limit }) = self.full else { return Ok(()) };
        Err(OutOfMemory { at, stage: name(stage).to_owned(), direction, bytes, limit })
    }

    fn part(&mut self, stage: Option<usize>, direction: Direction) -> Option<&mut u64> {
        Some(&mut self.stages.get_mut(stage?)?[direction])
    }

    /// Counts memory that is used from now on. `stage`: the place of the packet, if it is in a stage.
    pub(crate) fn add(&mut self, stage: Option<usize>, direction: Direction, bytes: u64) {
        self.used += bytes;
        if let Some(part) = self.part(stage, direction) {
            *part += bytes;
        }
    }

    /// Counts memory that is no longer used.
    pub(crate) fn remove(&mut self, stage: Option<usize>, direction: Direction, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        if let Some(part) = self.part(stage, direction) {
            *part = part.saturating_sub(bytes);
        }
    }

    /// Counts a packet that moves to another stage.
    pub(crate) fn shift(&mut self, from: Option<usize>, to: Option<usize>, direction: Direction, bytes: u64) {
        if let Some(part) = self.part(from, direction) {
            *part = part.saturating_sub(bytes);
        }
        if let Some(part) = self.part(to, direction) {
            *part += bytes;
        }
    }

    /// Returns whether the stage may keep all packets that were counted as its own.
    #[inline]
    pub(crate) fn has_room(&self, stage: usize, direction: Direction) -> bool {
        let free = self.limit.saturating_sub(self.used);
        self.stages.get(stage).is_none_or(|part| part[direction] / TIMES_FREE <= free)
    }

    /// Records that the stage had no room.
    pub(crate) fn note_full(&mut self, at: Instant, stage: usize, direction: Direction) {
        let (bytes, limit) = (self.stages.get(stage).map_or(0, |part| part[direction]), self.limit);
        self.full.get_or_insert(Full { at, stage, direction, bytes, limit });
    }
}
