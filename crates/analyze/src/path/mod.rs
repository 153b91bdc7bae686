//! Several captures of one path: each packet is looked for in all of them.
//!
//! A packet *enters* at the capture of its sender's end. If a later capture on its way does not have it, it was lost in
//! front of that one. The captures are read side by side in the order of time, and only packets that are under way are
//! remembered, so that memory does not grow with the captures.
//!
//! [`read`] does it. `clock` compares the captures' clocks, `tracker` finds the packets of one sender again, and
//! `ground_truth` reads what airlink says about each of them. [`judges`] asks P1's judges why packets were lost, and
//! [`sender_log`] compares with what the sender counted.

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

pub use airlink::fit::clock::Clock;
pub use findings::PathFindings;

use self::findings::{CaptureFindings, ConnectionOnPath, FlowFindings};
use self::ground_truth::GroundTruth;
use self::reader::Reader;
use self::tracker::{Now, Tracker};
use super::airlink_events::EventsError;
use super::trace::{Fate, Trace};
use aircaptures::capture::CaptureError;
use aircaptures::packet::Packet;

/// The files to read.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// At least two, from one end of the path to the other.
    pub captures: Vec<PathBuf>,
    /// In tcpdump's language, for all captures.
    pub filter: Option<String>,
    /// By how many nanoseconds the clock of each capture but the first is ahead of the first one's. `None`: find out from
    /// the captures.
    pub ahead: Option<Vec<i64>>,
    /// airlink's events of the same run; `down` is from the first capture to the last.
    pub truth: Option<PathBuf>,
}

/// Why a path cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// There is only one capture, or none.
    #[error("--path needs at least two captures; give them in order, from one end of the path to the other")]
    OneCapture,
    /// A capture comes from a pipe.
    #[error("--path reads each capture twice, so it cannot read from a pipe; write the data to a file first")]
    Pipe,
    /// The number of clock offsets does not fit that of the captures.
    #[error(
        "{given} clock offsets for {captures} captures; give one for each capture except the first, for example \
         --clock-offset=3ms,-20us"
    )]
    Offsets {
        /// How many there are.
        given: usize,
        /// One more than there should be.
        captures: usize,
    },
    /// A capture cannot be opened.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// airlink's events cannot be read.
    #[error(transparent)]
    Truth(#[from] EventsError),
}

/// From which end of the path a packet comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the first capture to the last.
    Forth,
    Back,
}

impl Way {
    fn turned(self) -> Self {
        match self {
            Self::Forth => Self::Back,
            Self::Back => Self::Forth,
        }
    }

    /// Which one on the packet's way capture `capture` of `count` is; also the other way round.
    fn position(self, capture: usize, count: usize) -> usize {
        match self {
            Self::Forth => capture,
            Self::Back => count - 1 - capture,
        }
    }

    /// Which gap between captures, in their order, lies in front of the one at `position` on the packet's way.
    fn gap(self, position: usize, count: usize) -> usize {
        match self {
            Self::Forth => position - 1,
            Self::Back => count - 1 - position,
        }
    }
}

/// What became of the packets that entered at one capture.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// By frame number. The time in `Arrived` counts from 1970 by the clock of that capture.
    by_frame: Option<BTreeMap<u64, Fate>>,
}

impl Fates {
    /// Puts the fates into a trace of that capture. A retransmission that the trace shows to be unneeded stays so.
    pub fn lay_over(&self, trace: &mut Trace) {
        let Some(by_frame) = &self.by_frame else { return };
        for segment in &mut trace.segments {
            let Some(fate) = by_frame.get(&segment.number) else { continue };
            segment.fate = match (segment.fate, *fate) {
                (proven @ Fate::Unneeded { .. }, _) => proven,
                (_, Fate::Arrived { at }) => Fate::Arrived { at: at.saturating_sub(trace.origin) },
                (_, fate) => fate,
            };
        }
    }

    fn put(&mut self, frame: u64, fate: Fate) {
        if let Some(by_frame) = &mut self.by_frame {
            by_frame.insert(frame, fate);
        }
    }
}

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The findings alone.
    Findings,
    /// Also the fate of each packet that entered at the first capture: memory grows with it.
    Fates,
}

/// Reads the captures. The fates are those of packets that entered at the first one.
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
    let mut sources = open()?;
    for (reader, clock) in sources.iter_mut().zip(&clocks.captures) {
        reader.ahead = clock.ahead();
    }
    let mut survey = PathSurvey::new(captures, clocks, truth, keep);
    while let Some(at) = earliest(&mut sources) {
        let packet = sources[at].take().expect("it was looked at");
        survey.take(at, &packet)?;
    }
    survey.finish(sources)
}

/// The index of the capture that has the earliest packet.
fn earliest(sources: &mut [Reader]) -> Option<usize> {
    let times = sources.iter_mut().enumerate().filter_map(|(at, reader)| Some((reader.peek()?, at)));
    times.min().map(|(_, at)| at)
}

struct PathSurvey {
    captures: usize,
    clocks: clock::Clocks,
    truth: Option<GroundTruth>,
    flows: BTreeMap<(SocketAddr, SocketAddr), Tracker>,
    sides: BTreeMap<IpAddr, Way>,
    fates: Fates,
}

impl PathSurvey {
    fn new(captures: usize, clocks: clock::Clocks, truth: Option<GroundTruth>, keep: Keep) -> Self {
        let by_frame = (keep == Keep::Fates).then(BTreeMap::new);
        let sides = clocks.sides.clone();
        Self { captures, clocks, truth, flows: BTreeMap::new(), sides, fates: Fates { by_frame } }
    }

    fn take(&mut self, capture: usize, packet: &Packet) -> Result<(), PathError> {
        let Self { captures, clocks, truth, flows, sides, fates } = self;
        if let Some(truth) = truth {
            truth.read_until(packet.at.0)?;
        }
        let last = *captures - 1;
        let way = *sides.entry(packet.src.ip()).or_insert(match capture {
            0 => Way::Forth,
            capture if capture == last => Way::Back,
            // First seen between the ends: the capture at its sender's end began later.
            _ => Way::Forth,
        });
        sides.entry(packet.dst.ip()).or_insert_with(|| way.turned());
        let flow = flows.entry((packet.src, packet.dst)).or_insert_with(|| Tracker::new(way, *captures));
        let now = Now { at: packet.at.0, all_began: clocks.all_began };
        flow.take(now, capture, packet, truth.as_mut(), fates);
        Ok(())
    }

    fn finish(mut self, sources: Vec<Reader>) -> Result<(PathFindings, Fates), PathError> {
        if let Some(truth) = &mut self.truth {
            truth.read_until(i64::MAX)?;
        }
        let ends: Vec<i64> = sources.iter().map(|reader| reader.latest).collect();
        let mut connections: BTreeMap<(SocketAddr, SocketAddr), ConnectionOnPath> = BTreeMap::new();
        let (mut found, mut early) = (0, vec![0; self.captures]);
        for ((from, to), flow) in self.flows {
            let findings = flow.finish(from, to, &ends, self.truth.as_mut(), &mut self.fates, &mut early);
            found += findings.found;
            let ends = (from.min(to), from.max(to));
            connections.entry(ends).or_default().directions.push(findings);
        }
        let mut connections: Vec<_> = connections.into_values().collect();
        for connection in &mut connections {
            // The direction with most data first.
            connection.directions.sort_by_key(|direction: &FlowFindings| {
                std::cmp::Reverse((direction.bytes, direction.data.entered))
            });
        }
        let captures = sources.into_iter().zip(self.clocks.captures).zip(early);
        let captures = captures.map(|((reader, clock), early)| CaptureFindings {
            name: reader.name().to_owned(),
            tcp_packets: reader.packets,
            clock,
            clock_ahead_seconds: clock.ahead() as f64 / 1e9,
            arrived_before_they_left: early,
            problems: reader.problems,
        });
        let report = PathFindings {
            captures: captures.collect(),
            found_again: found,
            connections,
            truth: self.truth.map(GroundTruth::finish),
        };
        Ok((report, self.fates))
    }
}
