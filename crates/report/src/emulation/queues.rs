//! Reads queue lengths and packet drops from airlink's event stream (docs/reference/link-views.md).

use std::collections::BTreeMap;
use std::path::Path;

use airfiles::PathSource;
use airtcp_analyze::airlink_events::{AirlinkEvent, EventReader, EventsError};

use super::{Bins, DropCount, EmulationError};

/// Maximum number of packets whose length is stored. A path contains far fewer packets.
const MAX_PACKETS: usize = 1 << 20;
/// Maximum number of distinct queues. A path has far fewer.
const MAX_QUEUES: usize = 256;

/// Queue lengths and drops from the events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueuesAndDrops {
    /// The start of the run, in nanoseconds since 1970.
    pub wall_zero: i64,
    /// The queues, in the order of their first use.
    pub queues: Vec<Queue>,
    /// Dropped packets by cause. Times are in nanoseconds since the start of the run.
    pub drops: Vec<DropCount>,
}

/// The length of a queue over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The name of its stage.
    pub stage: String,
    /// `down` or `up`.
    pub direction: String,
    /// Lengths in bytes.
    bins: Bins,
    /// The length in bytes after the last event.
    length: f64,
}

impl Queue {
    /// Returns times in seconds since the start of the run, and lengths in bytes.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.bins.levels()
    }
}

impl QueuesAndDrops {
    /// Reads a file of events.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if it is not an event stream of airlink.
    pub fn read(path: &Path) -> Result<Self, EmulationError> {
        // Only regular files are accepted, because a pipe that another user has placed there would block.
        airfiles::open(path, PathSource::File)
            .map_err(|error| EventsError::Read { path: path.to_owned(), error })?;
        let mut stream = EventReader::open(path)?;
        let mut reader = Reader::default();
        reader.events.wall_zero = stream.wall_zero();
        while let Some(event) = stream.read()? {
            reader.add(&event);
        }
        Ok(reader.events)
    }
}

#[derive(Default)]
struct Reader {
    events: QueuesAndDrops,
    /// The lengths of the packets inside the path, in bytes.
    inside: BTreeMap<u64, f64>,
}

impl Reader {
    fn add(&mut self, event: &AirlinkEvent<'_>) {
        let bytes = event.bytes as f64;
        let packet_bytes = self.inside.get(&event.packet).copied().unwrap_or_default();
        match (&*event.what, &event.stage) {
            ("entered", _) => {
                self.inside.insert(event.packet, bytes);
                if self.inside.len() > MAX_PACKETS {
                    self.inside.pop_first();
                }
            }
            ("queued", Some(stage)) => {
                if let Some(queue) = self.queue(stage, &event.direction) {
                    queue.length = bytes + packet_bytes;
                    queue.bins.add(event.t, queue.length);
                }
            }
            ("sent", Some(stage)) => {
                if let Some(queue) = self.queue(stage, &event.direction).filter(|queue| queue.length > 0.0) {
                    queue.length = (queue.length - packet_bytes).max(0.0);
                    queue.bins.add(event.t, queue.length);
                }
            }
            ("dropped", _) => {
                self.inside.remove(&event.packet);
                let cause = event.cause.as_deref().unwrap_or("unknown");
                let drops = &mut self.events.drops;
                let index = drops.iter().position(|count| count.cause == cause);
                let index = index.unwrap_or_else(|| {
                    drops.push(DropCount { cause: cause.to_owned(), bins: Bins::default() });
                    drops.len() - 1
                });
                drops[index].bins.add(event.t, 1.0);
            }
            ("left", _) => {
                self.inside.remove(&event.packet);
            }
            _ => {}
        }
    }

    fn queue(&mut self, stage: &str, direction: &str) -> Option<&mut Queue> {
        let queues = &mut self.events.queues;
        let known = queues.iter().position(|queue| queue.stage == stage && queue.direction == direction);
        if known.is_none() && queues.len() < MAX_QUEUES {
            let (stage, direction) = (stage.to_owned(), direction.to_owned());
            queues.push(Queue { stage, direction, bins: Bins::default(), length: 0.0 });
            return queues.last_mut();
        }
        queues.get_mut(known?)
    }
}
