//! The event log: the events of every packet as JSON lines. `docs/reference/link-views.md` describes the
//! fields.

use std::path::Path as FilePath;
use std::time::SystemTime;

use airwire::time::Instant;
use serde::Serialize;

use super::RunInfo;
use super::summary::DirectionTotals;
use crate::output::{Output, OutputError};
use crate::packet::{Direction, PacketId};
use crate::path::Path;
use crate::stage::{DropReason, Event, Mark, Record};

/// Incremented when a field changes its meaning or is removed, not when one is added.
const SCHEMA_VERSION: u32 = 1;

pub(super) struct EventLog {
    output: Output,
    stages: Vec<String>,
    line: Vec<u8>,
}

#[derive(Serialize)]
struct Start<'a> {
    schema_version: u32,
    event: &'static str,
    scenario: &'a str,
    seed: u64,
    /// Nanoseconds since 1970 at `t` = 0.
    wall_zero: u64,
    stages: &'a [String],
}

#[derive(Serialize)]
struct End {
    t: u64,
    event: &'static str,
    down: DirectionTotals,
    up: DirectionTotals,
    held: usize,
}

#[derive(Serialize)]
struct Line<'a> {
    t: u64,
    event: &'static str,
    packet: PacketId,
    direction: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'a str>,
    #[serde(flatten)]
    detail: Detail,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Detail {
    Nothing {},
    Entered { bytes: usize },
    Queued { packets: usize, bytes: u64 },
    Sent { waited: u64 },
    Resent { attempt: u32 },
    Held { until: u64 },
    Overtaken { packets: u64 },
    Copied { of: PacketId },
    Corrupted { bits: Box<[u32]>, found: bool },
    Truncated { from: usize, to: usize },
    Transit { mark: &'static str, ob: bool, db: bool },
    Bits { mark: &'static str },
    LossRate { mark: &'static str, rate: u16 },
    Dropped { why: DropReason, cause: &'static str },
}

impl EventLog {
    pub(super) fn create(path: &FilePath, run: &RunInfo) -> Result<Self, OutputError> {
        let mut log = Self { output: Output::create(path)?, stages: run.stages.clone(), line: Vec::new() };
        let wall_zero = run.wall_zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        log.write(&Start {
            schema_version: SCHEMA_VERSION,
            event: "start",
            scenario: &run.scenario,
            seed: run.seed,
            wall_zero: wall_zero.as_nanos() as u64,
            stages: &run.stages,
        })?;
        Ok(log)
    }

    pub(super) fn record(&mut self, record: &Record) -> Result<(), OutputError> {
        let (event, detail) = describe(&record.event);
        let stages = std::mem::take(&mut self.stages);
        let written = self.write(&Line {
            t: record.at.as_nanos(),
            event,
            packet: record.packet,
            direction: record.direction,
            stage: record.stage.map(|stage| stages[stage].as_str()),
            detail,
        });
        self.stages = stages;
        written
    }

    pub(super) fn finish(mut self, path: &Path, now: Instant) -> Result<(), OutputError> {
        let totals = path.totals();
        self.write(&End {
            t: now.as_nanos(),
            event: "end",
            down: DirectionTotals::from(&totals.down),
            up: DirectionTotals::from(&totals.up),
            held: path.held(),
        })?;
        self.output.flush()
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), OutputError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line).expect("these structures have only string keys");
        self.line.push(b'\n');
        self.output.write(&self.line)
    }
}

fn describe(event: &Event) -> (&'static str, Detail) {
    match *event {
        Event::Overtaken { packets } => ("overtaken", Detail::Overtaken { packets }),
        Event::Copied { of } => ("copied", Detail::Copied { of }),
        Event::Corrupted { ref bits, found } => {
            ("corrupted", Detail::Corrupted { bits: bits.clone(), found })
        }
        Event::Truncated { from, to } => ("truncated", Detail::Truncated { from, to }),
        Event::Entered { bytes } => ("entered", Detail::Entered { bytes }),
        Event::Queued { packets, bytes } => ("queued", Detail::Queued { packets, bytes }),
        Event::Sent { waited } => ("sent", Detail::Sent { waited: waited.as_nanos() }),
        Event::Resent { attempt } => ("resent", Detail::Resent { attempt }),
        Event::Held { until } => ("held", Detail::Held { until: until.as_nanos() }),
        Event::Marked { mark: Mark::Transit { ob, db } } => {
            ("marked", Detail::Transit { mark: "transit", ob, db })
        }
        Event::Marked { mark: Mark::Announced } => ("marked", Detail::Bits { mark: "announced" }),
        Event::Marked { mark: Mark::Congestion } => ("marked", Detail::Bits { mark: "congestion" }),
        Event::Marked { mark: Mark::LossRate { rate } } => {
            ("marked", Detail::LossRate { mark: "loss-rate", rate })
        }
        Event::Dropped { why } => ("dropped", Detail::Dropped { why, cause: why.cause_name() }),
        Event::Left => ("left", Detail::Nothing {}),
    }
}
