//! airlink's event stream (docs/views.md): how full its queues were, and when packets were dropped.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use super::{Bins, Count, LinkError};

const SCHEMA: u32 = 1;
/// A line of a path with very many stages is shorter.
const LONGEST: u64 = 1 << 16;
/// Packets whose length is remembered, and queues that are told apart: a path has far fewer.
const INSIDE: usize = 1 << 20;
const QUEUES: usize = 256;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// The run's begin, in nanoseconds since 1970.
    pub wall_zero: i64,
    pub queues: Vec<Queue>,
    /// By cause.
    pub drops: Vec<Count>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    pub stage: String,
    pub direction: String,
    /// Octets.
    bins: Bins,
    now: f64,
}

impl Queue {
    /// When, in seconds since the run's begin, and how many octets.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.bins.levels()
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(default)]
    t: i64,
    #[serde(default)]
    packet: u64,
    #[serde(borrow, default)]
    direction: Cow<'a, str>,
    #[serde(borrow)]
    stage: Option<Cow<'a, str>>,
    #[serde(default)]
    bytes: f64,
    #[serde(borrow)]
    cause: Option<Cow<'a, str>>,
    schema_version: Option<u32>,
    wall_zero: Option<i64>,
}

impl Events {
    pub fn read(path: &Path) -> Result<Self, LinkError> {
        let unreadable = |error| LinkError::Read { path: path.to_owned(), error };
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut reader = Reader::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let len = file.by_ref().take(LONGEST).read_until(b'\n', &mut line).map_err(unreadable)?;
            // The run may still go on, or was stopped in the middle of a line.
            if len == 0 || (line.last() != Some(&b'\n') && (len as u64) < LONGEST) {
                break;
            }
            let read: Result<Line<'_>, _> = serde_json::from_slice(&line);
            match read {
                Ok(line) if number > 1 => reader.take(&line),
                Ok(Line { event, schema_version: Some(SCHEMA), wall_zero: Some(zero), .. })
                    if event == "start" =>
                {
                    reader.events.wall_zero = zero;
                }
                _ if number == 1 => return Err(LinkError::NoEvents(path.to_owned())),
                _ => return Err(LinkError::Damaged { path: path.to_owned(), line: number }),
            }
        }
        Ok(reader.events)
    }
}

#[derive(Default)]
struct Reader {
    events: Events,
    /// The lengths of packets inside the path.
    inside: BTreeMap<u64, f64>,
}

impl Reader {
    fn take(&mut self, line: &Line<'_>) {
        match (&*line.event, &line.stage) {
            ("entered", _) => {
                self.inside.insert(line.packet, line.bytes);
                if self.inside.len() > INSIDE {
                    self.inside.pop_first();
                }
            }
            ("queued", Some(stage)) => {
                let own = self.inside.get(&line.packet).copied().unwrap_or_default();
                if let Some(queue) = self.queue(stage, &line.direction) {
                    queue.now = line.bytes + own;
                    queue.bins.add(line.t, queue.now);
                }
            }
            ("sent", Some(stage)) => {
                let own = self.inside.get(&line.packet).copied().unwrap_or_default();
                if let Some(queue) = self.queue(stage, &line.direction).filter(|queue| queue.now > 0.0) {
                    queue.now = (queue.now - own).max(0.0);
                    queue.bins.add(line.t, queue.now);
                }
            }
            ("dropped", _) => {
                self.inside.remove(&line.packet);
                let cause = line.cause.as_deref().unwrap_or("unknown");
                let drops = &mut self.events.drops;
                let index = drops.iter().position(|count| count.what == cause);
                let index = index.unwrap_or_else(|| {
                    drops.push(Count { what: cause.to_owned(), bins: Bins::default() });
                    drops.len() - 1
                });
                drops[index].bins.add(line.t, 1.0);
            }
            ("left", _) => {
                self.inside.remove(&line.packet);
            }
            _ => {}
        }
    }

    fn queue(&mut self, stage: &str, direction: &str) -> Option<&mut Queue> {
        let queues = &mut self.events.queues;
        let known = queues.iter().position(|queue| queue.stage == stage && queue.direction == direction);
        if known.is_none() && queues.len() < QUEUES {
            let (stage, direction) = (stage.to_owned(), direction.to_owned());
            queues.push(Queue { stage, direction, bins: Bins::default(), now: 0.0 });
            return queues.last_mut();
        }
        queues.get_mut(known?)
    }
}
