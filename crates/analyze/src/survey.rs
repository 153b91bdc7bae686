//! Reads one capture from its first frame to its last.

use serde::Serialize;

use super::connections::{Connections, Finished, Limits, Traces};
use super::damage::Damage;
use aircaptures::capture::{Capture, Frame, Next};
use aircaptures::fragments::Fragments;
use aircaptures::ip::Found;
use aircaptures::other::{Other, Others};
use aircaptures::packet::{Packet, Timestamp};
use aircaptures::problem::{Problem, Problems};

/// What there is to say about a capture beside its connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Frames that passed the filter.
    pub frames: u64,
    /// Frames with a TCP packet in them.
    pub tcp_packets: u64,
    /// Frames with something else than TCP.
    pub other_frames: u64,
    /// What that was.
    pub others: Others,
    /// Frames with a part of a packet that a later frame completed.
    pub fragments: u64,
    /// Of these: ICMP errors about TCP packets.
    pub icmp_errors: u64,
    /// Of these: about connections that are not in the capture, or were not followed any more.
    pub icmp_errors_elsewhere: u64,
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
    fragments: Fragments,
    damage: Damage,
    totals: Totals,
    earliest: Timestamp,
    latest: Timestamp,
    /// The last frame waits until the next one shows whether its time can be.
    held: Option<Held>,
    /// The payload of its packet, if its connection asks for it.
    payload: Vec<u8>,
    /// The time of the frame before that.
    last: Timestamp,
    largest_step_back: f64,
}

struct Held {
    number: u64,
    at: Timestamp,
    packet: Option<Packet>,
}

/// Nanoseconds: a time that is further than this from those of both neighbours is a mistake.
const JUMP: i64 = 1_000_000_000;

impl Survey {
    /// Keeps the traces of those connections, and follows no more than the limits allow.
    pub fn new(traces: Traces, limits: Limits) -> Self {
        Self {
            connections: Connections::new(traces, limits),
            fragments: Fragments::default(),
            damage: Damage::default(),
            totals: Totals::default(),
            earliest: Timestamp::default(),
            latest: Timestamp::default(),
            held: None,
            payload: Vec::new(),
            last: Timestamp::default(),
            largest_step_back: 0.0,
        }
    }

    fn take(&mut self, frame: &Frame<'_>, finished: &mut dyn FnMut(Finished)) {
        self.let_go(Some(frame.at), finished);
        self.totals.frames += 1;
        let problems = &mut self.totals.problems;
        if frame.snap_length.is_some_and(|snap| frame.data.len() > snap as usize) {
            problems.note(Problem::AboveSnapLength, frame.number);
        }
        let packet = match self.damage.judge(self.fragments.packet(frame, problems)) {
            Found::Tcp(packet) => Some(packet),
            Found::Flawed(packet, problem) => {
                problems.note(problem, frame.number);
                Some(packet)
            }
            Found::Nothing(problem) => {
                problems.note(problem, frame.number);
                None
            }
            Found::Fragment => {
                self.totals.fragments += 1;
                None
            }
            Found::Other(other) => {
                self.totals.others.note(other);
                self.totals.other_frames += 1;
                if matches!(other, Other::Icmp | Other::Icmpv6) {
                    self.take_icmp(frame);
                }
                None
            }
        };
        self.totals.tcp_packets += u64::from(packet.is_some());
        self.payload.clear();
        // Most captures keep headers only.
        let has_kept = |packet: &&Packet| {
            packet.len > 0 && frame.data.len() + packet.len as usize > frame.length as usize
        };
        if let Some(packet) = packet.as_ref().filter(has_kept)
            && self.connections.may_want_octets(packet)
        {
            self.payload.extend_from_slice(frame.payload());
        }
        self.held = Some(Held { number: frame.number, at: frame.at, packet });
    }

    fn take_icmp(&mut self, frame: &Frame<'_>) {
        let Some(error) = frame.icmp() else { return };
        self.totals.icmp_errors += 1;
        let is_here = self.connections.take_icmp(&error, frame.number, frame.at);
        self.totals.icmp_errors_elsewhere += u64::from(!is_here);
    }

    /// `next` is the time of the frame behind the one that waits, if there is one.
    fn let_go(&mut self, next: Option<Timestamp>, finished: &mut dyn FnMut(Finished)) {
        let Some((number, at)) = self.held.as_ref().map(|held| (held.number, held.at)) else { return };
        let at = self.time_of(number, at, next);
        self.look_at_clock(at, number);
        if let Some(packet) = self.held.as_mut().and_then(|held| held.packet.as_mut()) {
            packet.at = at;
            self.connections.take(packet, &mut self.totals.problems, finished);
            if !self.payload.is_empty() {
                self.connections.take_octets(packet, &self.payload);
            }
        }
        self.held = None;
    }

    /// The frame's own time, unless its neighbours show that it cannot be.
    fn time_of(&mut self, number: u64, at: Timestamp, next: Option<Timestamp>) -> Timestamp {
        let Some(next) = next else { return at };
        let after = |later: Timestamp, earlier: Timestamp| later.0.saturating_sub(earlier.0);
        let before = self.totals.begin_unix_ns.map(|_| self.last);
        let stands_out = match before {
            None => after(at, next) > JUMP,
            Some(before) if at > before => {
                after(at, before) > JUMP && after(at, next) > JUMP && after(before, next) <= JUMP
            }
            Some(before) => after(before, at) > JUMP && after(next, before) >= 0,
        };
        if !stands_out {
            return at;
        }
        let detail = format!("to {} s since 1970", at.0 / 1_000_000_000);
        self.totals.problems.note_detail(Problem::ClockJumped, number, detail);
        before.unwrap_or(next)
    }

    fn look_at_clock(&mut self, at: Timestamp, frame: u64) {
        if self.totals.begin_unix_ns.is_none() {
            self.totals.begin_unix_ns = Some(at.0);
            (self.earliest, self.latest, self.last) = (at, at, at);
        }
        let step_back = self.last.since(at);
        if step_back > 0.0 {
            self.largest_step_back = self.largest_step_back.max(step_back);
            let detail = format!("by {:.9} s at most", self.largest_step_back);
            self.totals.problems.note_detail(Problem::ClockBackwards, frame, detail);
        }
        self.earliest = self.earliest.min(at);
        self.latest = self.latest.max(at);
        self.last = at;
    }

    /// Nothing comes behind the last frame for now.
    fn flush(&mut self, finished: &mut dyn FnMut(Finished)) {
        self.let_go(None, finished);
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
            Next::Nothing => {
                self.flush(finished);
                return Progress::Nothing;
            }
            Next::Flaw { problem, frame, detail } => problems.note_detail(problem, frame, detail),
            Next::Damaged { frame, detail } => {
                problems.note_detail(Problem::Damaged, frame, detail);
                return Progress::End;
            }
            Next::End => return Progress::End,
        }
        Progress::More
    }

    /// When the first frame came.
    pub fn begin(&self) -> Option<Timestamp> {
        self.totals.begin_unix_ns.map(Timestamp)
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
        self.flush(finished);
        self.fragments.finish(&mut self.totals.problems);
        // Those that were no part of a whole packet are among the problems.
        let lost = [Problem::Fragment, Problem::FragmentOverlap].map(|lost| self.totals.problems.count(lost));
        self.totals.fragments = self.totals.fragments.saturating_sub(lost.iter().sum());
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

#[cfg(test)]
mod tests {
    use airwire::options::Options;
    use airwire::segment::{Ecn, Flags};
    use airwire::seq::Seq;

    use super::*;

    /// Frames of two connections, each with one time of its own.
    fn surveyed(times: &[i64]) -> (Totals, Vec<f64>) {
        let mut world = Survey::new(Traces::None, Limits::default());
        let mut seconds = Vec::new();
        let mut finished = |done: Finished| seconds.push(done.ended.findings.seconds);
        for (number, at) in times.iter().enumerate() {
            let at = Timestamp(*at * 1_000_000_000);
            let packet = Packet { number: number as u64 + 1, at, ..data(number as u32) };
            world.let_go(Some(at), &mut finished);
            world.held = Some(Held { number: packet.number, at, packet: Some(packet) });
        }
        let totals = world.finish(&mut finished);
        (totals, seconds)
    }

    fn data(number: u32) -> Packet {
        Packet {
            number: 0,
            at: Timestamp(0),
            src: "10.0.0.1:1000".parse().unwrap(),
            dst: "10.0.0.2:80".parse().unwrap(),
            seq: Seq(1 + 1000 * number),
            ack: Some(Seq(1)),
            flags: Flags::ACK,
            window: 1000,
            ecn: Ecn::NotEct,
            len: 1000,
            ip_id: None,
            options: Options::default(),
            options_cut: false,
        }
    }

    #[test]
    fn a_time_that_neither_neighbour_can_have_is_a_mistake_of_its_frame() {
        const FUTURE: i64 = 9_000_000_000;
        for (times, jumped, back, seconds) in [
            // In the midst, at the beginning, from the past.
            (&[100, 101, FUTURE, 102, 103][..], 1, 0, 3.0),
            (&[FUTURE, 100, 101, 102], 1, 0, 2.0),
            (&[100, 101, 0, 102, 103], 1, 0, 3.0),
            (&[100, FUTURE, 101, FUTURE, 102], 2, 0, 2.0),
            // A clock that is set is no mistake of a frame; nor is a pause, or the last frame of all.
            (&[100, 101, 50, 51, 52], 0, 1, 3.0),
            (&[100, 101, 5000, 5001], 0, 0, 4901.0),
            (&[100, 101, 5000], 0, 0, 4900.0),
        ] {
            let (totals, found) = surveyed(times);
            let problems =
                [Problem::ClockJumped, Problem::ClockBackwards].map(|it| totals.problems.count(it));
            assert_eq!((problems, found), ([jumped, back], vec![seconds]), "{times:?}");
        }
    }
}
