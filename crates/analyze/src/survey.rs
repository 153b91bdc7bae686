//! Reads one capture from its first frame to its last.

use serde::Serialize;

use super::capture::{Capture, Frame, Next};
use super::connections::{Connections, Finished, Limits, Traces};
use super::ip::Found;
use super::packet::Timestamp;
use super::problem::{Problem, Problems};

/// What there is to say about a capture beside its connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Frames that passed the filter.
    pub frames: u64,
    /// Frames with a TCP packet in them.
    pub tcp_packets: u64,
    /// Frames with something else than TCP.
    pub other_frames: u64,
    /// Connections that were followed.
    pub connections: u64,
    /// The time of the first frame in nanoseconds since 1970; `None` if there is no frame.
    pub begin_unix_ns: Option<i64>,
    /// From the earliest frame to the latest.
    pub seconds: f64,
    /// What is wrong with the capture.
    pub problems: Problems,
}

/// Takes in the frames of a capture one by one. [`read`] does so for a whole file.
pub struct Survey {
    connections: Connections,
    totals: Totals,
    earliest: Timestamp,
    latest: Timestamp,
    /// The time of the frame before.
    last: Timestamp,
    largest_step_back: f64,
}

impl Survey {
    /// Keeps the traces of those connections, and follows no more than the limits allow.
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

    fn take(&mut self, frame: &Frame<'_>, finished: &mut dyn FnMut(Finished)) {
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

    /// Takes in what [`Capture::read`] returns, and calls `finished` with each connection that is over.
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

    /// Finishes the connections that have been over for a while at `now`. [`feed`](Self::feed) does it by itself while
    /// packets come; on a quiet interface this is to be called from time to time.
    pub fn finish_old(&mut self, now: Timestamp, finished: &mut dyn FnMut(Finished)) {
        self.connections.finish_old(now, finished);
    }

    /// Notes how many frames [`Capture::lost`] says were lost.
    pub fn lost(&mut self, frames: u64) {
        self.totals.problems.add(Problem::NotCaptured, 1, frames);
    }

    /// Calls `finished` with all connections that are left.
    pub fn finish(mut self, finished: &mut dyn FnMut(Finished)) -> Totals {
        self.totals.connections = self.connections.count();
        self.totals.seconds = self.latest.since(self.earliest);
        self.connections.finish(finished);
        self.totals
    }
}

/// What to do after [`Survey::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Read on.
    More,
    /// The interface has nothing for now: wait.
    Nothing,
    /// The capture has ended.
    End,
}

/// Reads a file to its end. Calls `finished` with each connection as soon as no more of it is expected: in the order in
/// which they end, not in that of their numbers.
pub fn read(capture: &mut Capture, traces: Traces, finished: &mut dyn FnMut(Finished)) -> Totals {
    let mut survey = Survey::new(traces, Limits::default());
    while survey.feed(capture.read(), finished) != Progress::End {}
    survey.finish(finished)
}
