//! What airlink says about each packet (docs/views.md), read beside the captures.
//!
//! A packet that enters does so in the events as well, at the same moment and as long: the n-th of the captures is
//! the n-th of the events, but for those that are no TCP.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Way;
use super::findings::TruthFindings;
use crate::analyze::packet::Packet;

const SCHEMA: u32 = 1;
/// A line of a path with very many stages is shorter.
const LONGEST: u64 = 1 << 16;
/// A capture that airlink did not make itself sees a packet a little earlier or later.
const NEAR: i64 = 20_000_000;

#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    #[error("cannot read {}: {error}", .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is not airlink's event stream: name the file that `airlink --events` wrote", .0.display())]
    NoEvents(PathBuf),
    #[error("{}:{line}: this line is damaged: write the events again, or delete it", .path.display())]
    Damaged { path: PathBuf, line: u64 },
}

/// Why airlink has dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Congestion,
    Radio,
    Refused,
}

/// What the captures say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Arrived,
    Lost {
        gap: usize,
    },
    /// They do not reach far enough.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Left,
    Dropped(Why),
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    end: Option<End>,
    said: Option<Said>,
}

#[derive(Clone, Copy, Debug)]
struct Entered {
    event: u64,
    at: i64,
    bytes: u64,
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
    bytes: u64,
    #[serde(borrow)]
    cause: Option<Cow<'a, str>>,
    schema_version: Option<u32>,
    wall_zero: Option<i64>,
}

pub(super) struct Truth {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    wall_zero: i64,
    /// Of the last line that was read.
    read_to: i64,
    has_ended: bool,
    /// Not yet seen in a capture: those that go forth, and back.
    entered: [VecDeque<Entered>; 2],
    inside: BTreeMap<u64, State>,
    findings: TruthFindings,
}

impl Truth {
    pub(super) fn open(path: &Path, captures: usize) -> Result<Self, TruthError> {
        let unreadable = |error| TruthError::Read { path: path.to_owned(), error };
        let mut truth = Self {
            path: path.to_owned(),
            file: BufReader::new(File::open(path).map_err(unreadable)?),
            line: Vec::new(),
            number: 0,
            wall_zero: 0,
            read_to: i64::MIN,
            has_ended: false,
            entered: Default::default(),
            inside: BTreeMap::new(),
            findings: TruthFindings {
                congestion_between: vec![0; captures - 1],
                radio_between: vec![0; captures - 1],
                ..TruthFindings::default()
            },
        };
        let no_events = || TruthError::NoEvents(path.to_owned());
        if !truth.read_line()? {
            return Err(no_events());
        }
        let read: Result<Line<'_>, _> = serde_json::from_slice(&truth.line);
        match read {
            Ok(Line { event, schema_version: Some(SCHEMA), wall_zero: Some(zero), .. })
                if event == "start" =>
            {
                truth.wall_zero = zero;
                Ok(truth)
            }
            _ => Err(no_events()),
        }
    }

    fn read_line(&mut self) -> Result<bool, TruthError> {
        self.line.clear();
        let read = self.file.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        let len = read.map_err(|error| TruthError::Read { path: self.path.clone(), error })?;
        self.number += 1;
        // The run may still go on, or was stopped in the middle of a line.
        Ok(len > 0 && (self.line.last() == Some(&b'\n') || len as u64 == LONGEST))
    }

    /// Everything that had happened a moment after `at`.
    pub(super) fn read_until(&mut self, at: i64) -> Result<(), TruthError> {
        while !self.has_ended && self.read_to <= at.saturating_add(NEAR) {
            if !self.read_line()? {
                self.has_ended = true;
                break;
            }
            let line = std::mem::take(&mut self.line);
            let read: Result<Line<'_>, _> = serde_json::from_slice(&line);
            match read {
                Ok(read) => self.take(&read),
                Err(_) => return Err(TruthError::Damaged { path: self.path.clone(), line: self.number }),
            }
            self.line = line;
        }
        Ok(())
    }

    fn take(&mut self, line: &Line<'_>) {
        let at = self.wall_zero.saturating_add(line.t);
        self.read_to = at;
        let end = match &*line.event {
            // A traffic source's packet enters at a stage, and comes past no capture.
            "entered" if line.stage.is_none() => {
                let way = usize::from(line.direction != "down");
                self.entered[way].push_back(Entered { event: line.packet, at, bytes: line.bytes });
                self.inside.insert(line.packet, State::default());
                return;
            }
            "left" => End::Left,
            "dropped" => End::Dropped(match line.cause.as_deref() {
                Some("congestion") => Why::Congestion,
                Some("radio") => Why::Radio,
                _ => Why::Refused,
            }),
            _ => return,
        };
        let Some(state) = self.inside.get_mut(&line.packet) else { return };
        state.end = Some(end);
        if let Some(said) = state.said {
            self.inside.remove(&line.packet);
            self.count(end, said);
        }
    }

    /// The number that a packet has in the events.
    pub(super) fn entered(&mut self, way: Way, at: i64, packet: &Packet) -> Option<u64> {
        let waiting = &mut self.entered[usize::from(way == Way::Back)];
        while let Some(old) = waiting.front().filter(|entered| entered.at < at - NEAR) {
            self.inside.remove(&old.event);
            waiting.pop_front();
        }
        // Headers with and without options, of either version of IP.
        let lengths = u64::from(packet.len) + 40..=u64::from(packet.len) + 120;
        let fits = |entered: &Entered| lengths.contains(&entered.bytes) && entered.at <= at + NEAR;
        let exact = waiting.iter().position(|entered| entered.at == at && fits(entered));
        let found = exact.or_else(|| waiting.iter().position(fits)).and_then(|place| waiting.remove(place));
        match found {
            Some(_) => self.findings.known += 1,
            None => self.findings.unknown += 1,
        }
        found.map(|entered| entered.event)
    }

    /// Returns why it was dropped, if it was.
    pub(super) fn compare(&mut self, event: u64, said: Said) -> Option<Why> {
        let state = self.inside.get_mut(&event)?;
        let Some(end) = state.end else {
            state.said = Some(said);
            return None;
        };
        self.inside.remove(&event);
        self.count(end, said);
        match end {
            End::Left => None,
            End::Dropped(why) => Some(why),
        }
    }

    fn count(&mut self, end: End, said: Said) {
        let findings = &mut self.findings;
        match (end, said) {
            (End::Left, Said::Arrived) => findings.arrivals_found += 1,
            (End::Left, Said::Lost { .. }) => findings.losses_invented += 1,
            (End::Left, Said::Nothing) => findings.arrivals_not_told += 1,
            (End::Dropped(_), Said::Arrived) => findings.losses_missed += 1,
            (End::Dropped(_), Said::Nothing) => findings.losses_not_told += 1,
            (End::Dropped(why), Said::Lost { gap }) => {
                findings.losses_found += 1;
                match why {
                    Why::Congestion => findings.congestion_between[gap] += 1,
                    Why::Radio => findings.radio_between[gap] += 1,
                    Why::Refused => {}
                }
            }
        }
    }

    pub(super) fn finish(self) -> TruthFindings {
        self.findings
    }
}
