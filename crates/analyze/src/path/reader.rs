//! Reads the TCP packets of one capture, with their times in the clock of the path's first capture.

use std::path::Path;

use crate::capture::{Capture, CaptureError, Frame, Next};
use crate::fragments::Fragments;
use crate::ip::Found;
use crate::packet::{Packet, Timestamp};
use crate::problem::{Problem, Problems};

pub(super) struct Reader {
    capture: Capture,
    fragments: Fragments,
    /// Nanoseconds by which its clock is ahead.
    pub(super) ahead: i64,
    next: Option<Packet>,
    has_ended: bool,
    pub(super) packets: u64,
    /// The latest time so far.
    pub(super) latest: i64,
    pub(super) problems: Problems,
}

impl Reader {
    pub(super) fn open(path: &Path, filter: Option<&str>) -> Result<Self, CaptureError> {
        let capture = Capture::open(path, filter)?;
        let (fragments, problems) = (Fragments::default(), Problems::default());
        let latest = i64::MIN;
        Ok(Self { capture, fragments, ahead: 0, next: None, has_ended: false, packets: 0, latest, problems })
    }

    pub(super) fn name(&self) -> &str {
        self.capture.name()
    }

    /// The time of the next packet.
    pub(super) fn peek(&mut self) -> Option<i64> {
        while self.next.is_none() && !self.has_ended {
            self.read();
        }
        self.next.as_ref().map(|packet| packet.at.0)
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
            Next::LeftOut | Next::Nothing => return,
            Next::Flaw { problem, frame, detail } => return problems.note_detail(problem, frame, detail),
            Next::Damaged { frame, detail } => {
                problems.note_detail(Problem::Damaged, frame, detail);
                self.fragments.finish(problems);
                return self.has_ended = true;
            }
            Next::End => {
                self.fragments.finish(problems);
                return self.has_ended = true;
            }
        };
        // Times must not go back, since the other captures were read up to here.
        let at = frame.at.0.saturating_sub(self.ahead).max(self.latest);
        let packet = match self.fragments.packet(&Frame { at: Timestamp(at), ..frame }, problems) {
            Found::Tcp(packet) => packet,
            Found::Flawed(packet, problem) => {
                if problem != Problem::PayloadCut {
                    problems.note(problem, frame.number);
                }
                packet
            }
            Found::Nothing(problem) => return problems.note(problem, frame.number),
            Found::Fragment | Found::Other(_) => return,
        };
        self.latest = at;
        self.next = Some(packet);
    }
}
