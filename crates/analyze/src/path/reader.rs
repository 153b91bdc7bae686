//! Reads the TCP packets of one capture, with timestamps converted to the clock of the path's first capture.

use std::path::Path;

use crate::damage::Damage;
use aircaptures::capture::{Capture, CaptureError, Frame, Next};
use aircaptures::fragments::Fragments;
use aircaptures::ip::Found;
use aircaptures::packet::{Packet, Timestamp};
use aircaptures::problem::{Problem, Problems};

pub(super) struct Reader {
    capture: Capture,
    fragments: Fragments,
    damage: Damage,
    /// Nanoseconds by which the clock of this capture is ahead.
    pub(super) ahead: i64,
    next: Option<Packet>,
    has_ended: bool,
    pub(super) packets: u64,
    /// The latest timestamp so far.
    pub(super) latest: i64,
    pub(super) problems: Problems,
}

impl Reader {
    pub(super) fn open(path: &Path, filter: Option<&str>) -> Result<Self, CaptureError> {
        Ok(Self {
            capture: Capture::open(path, filter)?,
            fragments: Fragments::default(),
            damage: Damage::default(),
            ahead: 0,
            next: None,
            has_ended: false,
            packets: 0,
            latest: i64::MIN,
            problems: Problems::default(),
        })
    }

    pub(super) fn name(&self) -> &str {
        self.capture.name()
    }

    /// Returns the next packet without taking it.
    pub(super) fn peek(&mut self) -> Option<&Packet> {
        while self.next.is_none() && !self.has_ended {
            self.read();
        }
        self.next.as_ref()
    }

    pub(super) fn take(&mut self) -> Option<Packet> {
        self.peek()?;
        self.packets += 1;
        self.next.take()
    }

    fn read(&mut self) {
        let problems = &mut self.problems;
        let frame = match self.capture.read() {
            Next::Frame(frame) => frame,
            Next::Filtered | Next::NoFrame => return,
            Next::Flaw { problem, frame, detail } => return problems.record_detail(problem, frame, detail),
            Next::Damaged { frame, detail } => {
                problems.record_detail(Problem::Damaged, frame, detail);
                self.fragments.finish(problems);
                return self.has_ended = true;
            }
            Next::End => {
                self.fragments.finish(problems);
                return self.has_ended = true;
            }
        };
        // Timestamps must not decrease, since the other captures have been read up to this time.
        let at = frame.at.0.saturating_sub(self.ahead).max(self.latest);
        let found = self.fragments.packet(&Frame { at: Timestamp(at), ..frame }, problems);
        let packet = match self.damage.judge(found) {
            Found::Tcp(packet) => packet,
            Found::Flawed(packet, problem) => {
                if problem != Problem::PayloadCut {
                    problems.record(problem, frame.number);
                }
                packet
            }
            Found::Unreadable(problem) => return problems.record(problem, frame.number),
            Found::Fragment | Found::Other(_) => return,
        };
        self.latest = at;
        self.next = Some(packet);
    }
}
