//! Matches packets across several captures of one path.
//!
//! A packet *enters* at the capture of its sender's end. If a later capture does not contain it, it was lost
//! before that capture point. The captures are read in parallel in chronological order. Only packets in
//! transit are remembered, so memory does not grow with the captures.
//!
//! [`read`] is the entry point. `clock` compares the captures' clocks, `tracker` matches the packets of one
//! sender, and `ground_truth` reads airlink's record of each packet. [`judges`] evaluates P1's attribution
//! algorithms, and [`sender_log`] compares the captures with the sender's counters.

mod clock;
pub mod findings;
mod ground_truth;
pub mod judges;
mod reader;
pub mod sender_log;
#[cfg(test)]
mod tests;
mod text;
mod tracker;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use aircaptures::capture::CaptureError;
use aircaptures::packet::Packet;
pub use airlink_fit::clock::Clock;
use airwire::direction::Direction;
pub use findings::PathFindings;

use self::findings::{CaptureFindings, ConnectionOnPath, FlowFindings};
use self::ground_truth::{DropReason, GroundTruth, Observed};
use self::reader::Reader;
use self::tracker::{FlowTracker, Now};
use super::airlink_events::EventsError;
use super::trace::{Fate, Trace};

/// The files to read.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The captures, at least two, in order from one end of the path to the other.
    pub captures: Vec<PathBuf>,
    /// A pcap-filter expression for all captures.
    pub filter: Option<String>,
    /// Nanoseconds by which the clock of each capture except the first is ahead of the first capture's clock.
    /// `None` estimates them from the captures.
    pub ahead: Option<Vec<i64>>,
    /// airlink's events of the same run. `down` is the direction from the first capture to the last.
    pub truth: Option<PathBuf>,
}

/// The reason why a path cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// There are fewer than two captures.
    #[error("--path needs at least two captures; give them in order, from one end of the path to the other")]
    OneCapture,
    /// A capture is a pipe, which cannot be read twice.
    #[error("--path reads each capture twice, so it cannot read from a pipe; write the data to a file first")]
    Pipe,
    /// The number of clock offsets does not match the number of captures.
    #[error(
        "{given} clock offsets for {captures} captures; give one for each capture except the first, for example \
         --clock-offset=3ms,-20us"
    )]
    Offsets {
        /// The number of given offsets.
        given: usize,
        /// The number of captures, which must be one more.
        captures: usize,
    },
    /// A capture cannot be opened.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// airlink's events cannot be read.
    #[error(transparent)]
    Truth(#[from] EventsError),
}

/// Converts between the index of a capture and its position in a direction. The function is its own inverse.
/// `down` is the direction from the first capture to the last.
fn position(direction: Direction, capture: usize, captures: usize) -> usize {
    match direction {
        Direction::Down => capture,
        Direction::Up => captures - 1 - capture,
    }
}

/// Returns the index of the gap that precedes `position` in a direction. Gaps are counted from the first
/// capture.
fn gap(direction: Direction, position: usize, captures: usize) -> usize {
    match direction {
        Direction::Down => position - 1,
        Direction::Up => captures - 1 - position,
    }
}

/// The fates of the packets that entered at one capture.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// The fates by frame number. The time in `Arrived` is in nanoseconds since 1970 by the clock of that
    /// capture.
    by_frame: Option<BTreeMap<u64, Fate>>,
}

impl Fates {
    /// Enters the fates into a trace of that capture. A retransmission that the trace has proved spurious
    /// keeps its fate.
    pub fn apply_to(&self, trace: &mut Trace) {
        let Some(by_frame) = &self.by_frame else { return };
        for segment in &mut trace.segments {
            let Some(fate) = by_frame.get(&segment.number) else { continue };
            segment.fate = match (segment.fate, *fate) {
                (proven @ Fate::Spurious { .. }, _) => proven,
                (_, Fate::Arrived { at }) => Fate::Arrived { at: at.saturating_sub(trace.origin) },
                (_, fate) => fate,
            };
        }
    }

    fn insert(&mut self, frame: u64, fate: Fate) {
        if let Some(by_frame) = &mut self.by_frame {
            by_frame.insert(frame, fate);
        }
    }
}

/// Selects the data to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Only the findings.
    Findings,
    /// The findings, and the fate of each packet that entered at the first capture. Memory grows with that
    /// capture.
    Fates,
}

/// Reads the captures. The returned fates are for packets that entered at the first capture.
pub fn read(files: &Files, keep: Keep) -> Result<(PathFindings, Fates), PathError> {
    let captures = files.captures.len();
    if captures < 2 {
        return Err(PathError::OneCapture);
    }
    if files.captures.iter().any(|path| path.exists() && !path.is_file()) {
        return Err(PathError::Pipe);
    }
    if let Some(given) = files.ahead.as_ref().map(Vec::len).filter(|given| given + 1 != captures) {
        return Err(PathError::Offsets { given, captures });
    }
    let open = || -> Result<Vec<Reader>, CaptureError> {
        let filter = files.filter.as_deref();
        files.captures.iter().map(|path| Reader::open(path, filter)).collect()
    };
    let clocks = clock::compare(&mut open()?, files.ahead.as_deref());
    let truth = files.truth.as_deref().map(|path| GroundTruth::open(path, captures)).transpose()?;
    let mut readers = open()?;
    for (reader, clock) in readers.iter_mut().zip(&clocks.captures) {
        reader.ahead = clock.ahead();
    }
    let mut survey = PathSurvey::new(captures, clocks, truth, keep);
    while let Some(at) = earliest(&mut readers, &survey.sides) {
        let packet = readers[at].take().expect("the reader has a packet");
        survey.process(at, &packet)?;
    }
    survey.finish(readers)
}

/// Returns the index of the capture whose next packet is the earliest. If packets are simultaneous, a packet that
/// enters the path comes first, and then the capture from which fewer packets have been read.
fn earliest(readers: &mut [Reader], sides: &BTreeMap<IpAddr, Direction>) -> Option<usize> {
    let captures = readers.len();
    let next = readers.iter_mut().enumerate().filter_map(|(at, reader)| {
        let packet = reader.peek()?;
        let position = sides.get(&packet.src.ip()).map_or(0, |direction| position(*direction, at, captures));
        let (time, passes) = (packet.at, position > 0);
        Some((time, passes, reader.packets, position, at))
    });
    next.min().map(|(.., at)| at)
}

struct PathSurvey {
    captures: usize,
    clocks: clock::Clocks,
    flows: BTreeMap<(SocketAddr, SocketAddr), FlowTracker>,
    sides: BTreeMap<IpAddr, Direction>,
    records: Records,
}

/// Records the fate of each packet.
struct Records {
    truth: Option<GroundTruth>,
    fates: Fates,
}

impl Records {
    /// Compares the captures' result with the packet's events, if known. Returns the reason if airlink dropped
    /// it.
    fn compare(&mut self, event: Option<u64>, observed: Observed) -> Option<DropReason> {
        self.truth.as_mut()?.packets.compare(event?, observed)
    }
}

impl PathSurvey {
    fn new(captures: usize, clocks: clock::Clocks, truth: Option<GroundTruth>, keep: Keep) -> Self {
        let by_frame = (keep == Keep::Fates).then(BTreeMap::new);
        let sides = clocks.sides.clone();
        let records = Records { truth, fates: Fates { by_frame } };
        Self { captures, clocks, flows: BTreeMap::new(), sides, records }
    }

    fn process(&mut self, capture: usize, packet: &Packet) -> Result<(), PathError> {
        let Self { captures, clocks, flows, sides, records } = self;
        if let Some(truth) = &mut records.truth {
            truth.read_until(packet.at.0)?;
        }
        // A packet that first appears between the ends: the capture at its sender's end began later.
        let direction = if capture + 1 == *captures { Direction::Up } else { Direction::Down };
        let direction = *sides.entry(packet.src.ip()).or_insert(direction);
        sides.entry(packet.dst.ip()).or_insert_with(|| direction.reversed());
        let flow = flows.entry((packet.src, packet.dst));
        let flow = flow.or_insert_with(|| FlowTracker::new(direction, *captures));
        let now = Now { at: packet.at.0, all_began: clocks.all_began };
        flow.process(now, capture, packet, records);
        Ok(())
    }

    fn finish(mut self, readers: Vec<Reader>) -> Result<(PathFindings, Fates), PathError> {
        if let Some(truth) = &mut self.records.truth {
            truth.read_until(i64::MAX)?;
        }
        let ends: Vec<i64> = readers.iter().map(|reader| reader.latest).collect();
        let mut connections: BTreeMap<(SocketAddr, SocketAddr), ConnectionOnPath> = BTreeMap::new();
        let (mut matched, mut early) = (0, vec![0; self.captures]);
        for ((from, to), flow) in self.flows {
            let findings = flow.finish(from, to, &ends, &mut self.records, &mut early);
            matched += findings.matched;
            let ends = (from.min(to), from.max(to));
            connections.entry(ends).or_default().directions.push(findings);
        }
        let mut connections: Vec<_> = connections.into_values().collect();
        for connection in &mut connections {
            // The direction with the most data comes first.
            connection.directions.sort_by_key(|direction: &FlowFindings| {
                std::cmp::Reverse((direction.bytes, direction.data.entered))
            });
        }
        let captures = readers.into_iter().zip(self.clocks.captures).zip(early);
        let captures = captures.map(|((reader, clock), early)| CaptureFindings {
            name: reader.name().to_owned(),
            tcp_packets: reader.packets,
            clock,
            clock_ahead_seconds: clock.ahead() as f64 / 1e9,
            negative_delays: early,
            problems: reader.problems,
        });
        let report = PathFindings {
            captures: captures.collect(),
            matched,
            connections,
            truth: self.records.truth.map(GroundTruth::finish),
        };
        Ok((report, self.records.fates))
    }
}
