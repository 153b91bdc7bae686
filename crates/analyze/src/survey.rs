//! One capture, from its first frame to its last.

use serde::Serialize;

use super::capture::{Capture, Frame, Next};
use super::connections::{Connections, Finished, Limits, Traces};
use super::ip::Found;
use super::packet::Timestamp;
use super::problem::{Problem, Problems};

/// What there was beside the connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// That passed the filter.
    pub frames: u64,
    pub tcp_packets: u64,
    /// Frames with something else than TCP.
    pub other_frames: u64,
    pub connections: u64,
    /// Of the first frame.
    pub begin_unix_ns: Option<i64>,
    /// From the earliest frame to the latest.
    pub seconds: f64,
    pub problems: Problems,
}

pub struct Survey {
    connections: Connections,
    totals: Totals,
    earliest: Timestamp,
    latest: Timestamp,
    /// Of the frame before.
    last: Timestamp,
    largest_step_back: f64,
}

impl Survey {
    pub fn new(traces: Traces, limits: Limits) -> Self {
        Self {
            connections: Connections::new(traces, limits),
            totals: Totals::default(),
            earliest: Timestamp::default(),
            latest: Timestamp::default(),
            last: Timestamp::default(),
            largest_step_back: 0.0,
        }
    }

    pub fn take(&mut self, frame: &Frame<'_>, finished: &mut dyn FnMut(Finished)) {
        self.look_at_clock(frame);
        self.totals.frames += 1;
        let problems = &mut self.totals.problems;
        if frame.snap_length.is_some_and(|snap| frame.data.len() > snap as usize) {
            problems.note(Problem::AboveSnapLength, frame.number);
        }
        let packet = match frame.packet() {
            Found::Tcp(packet) => packet,
            Found::Flawed(packet, problem) => {
                problems.note(problem, frame.number);
                packet
            }
            Found::Nothing(problem) => return problems.note(problem, frame.number),
            Found::Other => return self.totals.other_frames += 1,
        };
        self.totals.tcp_packets += 1;
        self.connections.take(&packet, problems, finished);
    }

    fn look_at_clock(&mut self, frame: &Frame<'_>) {
        if self.totals.begin_unix_ns.is_none() {
            self.totals.begin_unix_ns = Some(frame.at.0);
            (self.earliest, self.latest, self.last) = (frame.at, frame.at, frame.at);
        }
        let step_back = self.last.since(frame.at);
        if step_back > 0.0 {
            self.largest_step_back = self.largest_step_back.max(step_back);
            let detail = format!("by {:.9} s at most", self.largest_step_back);
            self.totals.problems.note_detail(Problem::ClockBackwards, frame.number, detail);
        }
        self.earliest = self.earliest.min(frame.at);
        self.latest = self.latest.max(frame.at);
        self.last = frame.at;
    }

    /// What a capture's reader brings.
    pub fn feed(&mut self, next: Next<'_>, finished: &mut dyn FnMut(Finished)) -> Progress {
        let problems = &mut self.totals.problems;
        match next {
            Next::Frame(frame) => {
                self.take(&frame, finished);
                return Progress::More;
            }
            Next::LeftOut => return Progress::More,
            Next::Nothing => return Progress::Nothing,
            Next::Flaw { problem, frame, detail } => problems.note_detail(problem, frame, detail),
            Next::Damaged { frame, detail } => {
                problems.note_detail(Problem::Damaged, frame, detail);
                return Progress::End;
            }
            Next::End => return Progress::End,
        }
        Progress::More
    }

    /// Hands out what is over, when packets have become rare.
    pub fn let_go(&mut self, now: Timestamp, finished: &mut dyn FnMut(Finished)) {
        self.connections.let_go(now, finished);
    }

    /// Frames that never came here.
    pub fn lost(&mut self, frames: u64) {
        self.totals.problems.add(Problem::NotCaptured, 1, frames);
    }

    pub fn finish(mut self, finished: &mut dyn FnMut(Finished)) -> Totals {
        self.totals.connections = self.connections.count();
        self.totals.seconds = self.latest.since(self.earliest);
        self.connections.finish(finished);
        self.totals
    }
}

/// What there is to do after something was fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    More,
    /// Of an interface: wait.
    Nothing,
    End,
}

/// Reads a file to its end. `finished` gets each connection when no more is expected of it, which may be at any time.
pub fn read(capture: &mut Capture, traces: Traces, finished: &mut dyn FnMut(Finished)) -> Totals {
    let mut survey = Survey::new(traces, Limits::default());
    while survey.feed(capture.read(), finished) != Progress::End {}
    survey.finish(finished)
}
