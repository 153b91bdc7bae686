//! Reads the TCP packets of one capture, with their times in the clock of the path's first capture.

use std::path::Path;

use crate::capture::{Capture, CaptureError, Frame, Next};
use crate::ip::Found;
use crate::packet::{Packet, Timestamp};
use crate::problem::{Problem, Problems};

pub(super) struct Reader {
    capture: Capture,
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
        let problems = Problems::default();
        Ok(Self { capture, ahead: 0, next: None, has_ended: false, packets: 0, latest: i64::MIN, problems })
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
                return self.has_ended = true;
            }
            Next::End => return self.has_ended = true,
        };
        // Times must not go back, since the other captures were read up to here.
        let at = frame.at.0.saturating_sub(self.ahead).max(self.latest);
        let packet = match (Frame { at: Timestamp(at), ..frame }).packet() {
            Found::Tcp(packet) => packet,
            Found::Flawed(packet, problem) => {
                if problem != Problem::PayloadCut {
                    problems.note(problem, frame.number);
                }
                packet
            }
            Found::Nothing(problem) => return problems.note(problem, frame.number),
            Found::Other => return,
        };
        self.latest = at;
        self.next = Some(packet);
    }
}
