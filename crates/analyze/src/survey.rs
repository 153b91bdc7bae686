//! Reads one capture from its first frame to its last.

mod repeats;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use serde::Serialize;

use self::repeats::{Repeats, Verdict};
use super::connection::findings::RecentFindings;
use super::connection::{ClockVote, Ended, LONG_STEP, MIN_STEP};
use super::connections::{Connections, Finished, Followed, Limits, Traces};
use super::damage::Damage;
use aircaptures::capture::{Capture, Frame, Next};
use aircaptures::fragments::Fragments;
use aircaptures::ip::Found;
use aircaptures::other::{Other, Others};
use aircaptures::packet::{Packet, Timestamp};
use aircaptures::problem::{Problem, Problems};

/// The results for a capture that do not belong to a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Frames that passed the filter.
    pub frames: u64,
    /// Frames that contain a TCP packet.
    pub tcp_packets: u64,
    /// Frames that contain another protocol.
    pub other_frames: u64,
    /// The numbers of frames by protocol.
    pub others: Others,
    /// Frames with a fragment of a packet that a later frame completed.
    pub fragments: u64,
    /// ICMP errors about TCP packets. They are included in `other_frames`.
    pub icmp_errors: u64,
    /// ICMP errors about connections that are not in the capture or were no longer followed. They are
    /// included in `icmp_errors`.
    pub icmp_errors_elsewhere: u64,
    /// Number of connections that were followed.
    pub connections: u64,
    /// The time of the first frame in nanoseconds since 1970. `None` if the capture is empty.
    pub begin_unix_ns: Option<i64>,
    /// Time from the earliest to the latest frame.
    pub seconds: f64,
    /// The problems of the capture.
    pub problems: Problems,
}

/// Analyses the frames of a capture one by one. [`read`] does this for a whole file.
pub struct Survey {
    connections: Connections,
    fragments: Fragments,
    damage: Damage,
    totals: Totals,
    earliest: Timestamp,
    latest: Timestamp,
    repeats: Repeats,
    /// The last frame, held back until the next one shows whether its timestamp is plausible. After a long time
    /// without frames, the last few frames.
    queue: VecDeque<Held>,
    /// The payload of the last packet in the queue, if its connection needs it.
    payload: Vec<u8>,
    /// The number of the last frame after a long time without frames.
    judged: u64,
    /// The sum of all forward steps of the clock in nanoseconds.
    stepped: i64,
    /// The timestamp of the frame before `held`.
    last: Timestamp,
    largest_step_back: f64,
}

struct Held {
    number: u64,
    at: Timestamp,
    packet: Option<Packet>,
    /// The payload, unless it is the last packet in the queue.
    payload: Vec<u8>,
}

/// Number of frames that show whether the clock was set after a long time without frames.
const LOOKAHEAD: usize = 64;
/// Number of packets of a single host that show it.
const LONE_VOTES: u32 = 3;
/// A timestamp that differs from both neighbours by more than this many nanoseconds is an error.
const MAX_JUMP: i64 = 1_000_000_000;

impl Survey {
    /// Creates a survey that keeps the selected traces and respects the limits.
    pub fn new(traces: Traces, limits: Limits) -> Self {
        Self {
            connections: Connections::new(traces, limits),
            fragments: Fragments::default(),
            damage: Damage::default(),
            totals: Totals::default(),
            earliest: Timestamp::default(),
            latest: Timestamp::default(),
            repeats: Repeats::default(),
            queue: VecDeque::new(),
            payload: Vec::new(),
            judged: 0,
            stepped: 0,
            last: Timestamp::default(),
            largest_step_back: 0.0,
        }
    }

    /// Also judges the last seconds of each connection ([`Self::recent`]), which takes more time and memory.
    #[must_use]
    pub fn judging_recent(mut self) -> Self {
        self.connections.judge_recent();
        self
    }

    fn take(&mut self, frame: &Frame<'_>, finished: &mut dyn FnMut(Finished)) {
        self.totals.frames += 1;
        match self.repeats.check(frame) {
            Verdict::Undecided => {}
            Verdict::Repeated { count, first } => {
                self.totals.problems.add(Problem::Repeated, first, count);
            }
            Verdict::New(held) => {
                held.iter().for_each(|held| self.take_new(&held.frame(), finished));
                self.take_new(frame, finished);
            }
        }
    }

    fn take_new(&mut self, frame: &Frame<'_>, finished: &mut dyn FnMut(Finished)) {
        let at = Timestamp(frame.at.0.saturating_sub(self.stepped));
        self.process_queue(Some(at), finished);
        let at = Timestamp(frame.at.0.saturating_sub(self.stepped));
        let problems = &mut self.totals.problems;
        if frame.snap_length.is_some_and(|snap| frame.data.len() > snap as usize) {
            problems.record(Problem::AboveSnapLength, frame.number);
        }
        let packet = match self.damage.judge(self.fragments.packet(frame, problems)) {
            Found::Tcp(packet) => Some(packet),
            Found::Flawed(packet, problem) => {
                problems.record(problem, frame.number);
                Some(packet)
            }
            Found::Unreadable(problem) => {
                problems.record(problem, frame.number);
                None
            }
            Found::Fragment => {
                self.totals.fragments += 1;
                None
            }
            Found::Other(other) => {
                self.totals.others.record(other);
                self.totals.other_frames += 1;
                if matches!(other, Other::Icmp | Other::Icmpv6) {
                    self.process_icmp(frame);
                }
                None
            }
        };
        self.totals.tcp_packets += u64::from(packet.is_some());
        if let Some(newest) = self.queue.back_mut() {
            newest.payload = std::mem::take(&mut self.payload);
        }
        self.payload.clear();
        // Skip the payload if the capture contains only headers, as most captures do.
        let has_payload = |packet: &&Packet| {
            packet.len > 0 && frame.data.len() + packet.len as usize > frame.length as usize
        };
        if let Some(packet) = packet.as_ref().filter(has_payload)
            && self.connections.may_want_payload(packet)
        {
            self.payload.extend_from_slice(frame.payload());
        }
        self.queue.push_back(Held { number: frame.number, at, packet, payload: Vec::new() });
    }

    fn process_icmp(&mut self, frame: &Frame<'_>) {
        let Some(error) = frame.icmp() else { return };
        self.totals.icmp_errors += 1;
        let is_followed = self.connections.process_icmp(&error, frame.number, frame.at);
        self.totals.icmp_errors_elsewhere += u64::from(!is_followed);
    }

    /// Processes the frames in the queue. `next` is the timestamp of the frame after the queue, if there is
    /// one. After a long time without frames, the first frames remain in the queue until they show whether
    /// the clock was set.
    fn process_queue(&mut self, next: Option<Timestamp>, finished: &mut dyn FnMut(Finished)) {
        while let Some(front) = self.queue.front() {
            let (number, at) = (front.number, front.at);
            let following = self.queue.get(1).map(|held| held.at).or(next);
            if self.is_after_gap(number, at, following) {
                if next.is_some() && self.queue.len() < LOOKAHEAD {
                    return;
                }
                self.judge_gap(number, at);
                continue;
            }
            let Some(mut held) = self.queue.pop_front() else { return };
            let at = self.plausible_time(number, at, following);
            self.update_clock(at, number);
            let Some(packet) = &mut held.packet else { continue };
            packet.at = at;
            self.connections.process(packet, &mut self.totals.problems, finished);
            let payload = if self.queue.is_empty() { &self.payload } else { &held.payload };
            if !payload.is_empty() {
                self.connections.process_payload(packet, payload);
            }
        }
    }

    /// Returns whether a gap before this frame may be a step of the clock and has not been judged yet.
    fn is_after_gap(&self, number: u64, at: Timestamp, following: Option<Timestamp>) -> bool {
        let gap = at.0.saturating_sub(self.last.0);
        let is_long = gap > MIN_STEP && self.totals.begin_unix_ns.is_some() && self.judged != number;
        // The timestamp of a single frame may be wrong.
        is_long && following.is_none_or(|next| next.0.saturating_sub(self.last.0) > gap / 2)
    }

    /// Decides whether the clock was set before the frame, and corrects the timestamps in the queue if so.
    fn judge_gap(&mut self, number: u64, at: Timestamp) {
        self.judged = number;
        let gap = at.0.saturating_sub(self.last.0);
        let packets = self.queue.iter().filter_map(|held| held.packet.as_ref());
        let votes =
            packets.filter_map(|packet| Some((packet.src.ip(), self.connections.clock_vote(packet)?)));
        // The first packet of a host is the most exact, because queues on the path delay later ones.
        let (mut steps, mut count) = (BTreeMap::new(), 0);
        for (host, vote) in votes {
            match vote {
                ClockVote::Pause => return,
                ClockVote::Step { by } => steps.entry(host).or_insert(by),
            };
            count += 1;
        }
        // Packets that were stuck on the path have old timestamps. This happens to one host, and not for long.
        if steps.len() < 2 && (count < LONE_VOTES || gap < LONG_STEP) {
            return;
        }
        let step = steps.into_values().max().unwrap_or(0).min(gap);
        let step = step - step % self.connections.resolution().step().max(1);
        self.stepped = self.stepped.saturating_add(step);
        for held in &mut self.queue {
            held.at.0 = held.at.0.saturating_sub(step);
        }
        let detail = format!("by {:.3} s", self.stepped as f64 / 1e9);
        self.totals.problems.record_detail(Problem::ClockStepped, number, detail);
    }

    /// Returns the frame's own timestamp, or a neighbour's if the frame's timestamp is implausible.
    fn plausible_time(&mut self, number: u64, at: Timestamp, next: Option<Timestamp>) -> Timestamp {
        let Some(next) = next else { return at };
        let after = |later: Timestamp, earlier: Timestamp| later.0.saturating_sub(earlier.0);
        let before = self.totals.begin_unix_ns.map(|_| self.last);
        let is_outlier = match before {
            None => after(at, next) > MAX_JUMP,
            Some(before) if at > before => {
                after(at, before) > MAX_JUMP && after(at, next) > MAX_JUMP && after(before, next) <= MAX_JUMP
            }
            Some(before) => after(before, at) > MAX_JUMP && after(next, before) >= 0,
        };
        if !is_outlier {
            return at;
        }
        let detail = format!("to {} s since 1970", at.0 / 1_000_000_000);
        self.totals.problems.record_detail(Problem::ClockJumped, number, detail);
        before.unwrap_or(next)
    }

    fn update_clock(&mut self, at: Timestamp, frame: u64) {
        if self.totals.begin_unix_ns.is_none() {
            self.totals.begin_unix_ns = Some(at.0);
            (self.earliest, self.latest, self.last) = (at, at, at);
        }
        let step_back = self.last.since(at);
        if step_back > 0.0 {
            self.largest_step_back = self.largest_step_back.max(step_back);
            let detail = format!("by {:.9} s at most", self.largest_step_back);
            self.totals.problems.record_detail(Problem::ClockBackwards, frame, detail);
        }
        self.earliest = self.earliest.min(at);
        self.latest = self.latest.max(at);
        self.last = at;
    }

    /// Processes the held frames when no other frame follows for now.
    fn flush(&mut self, finished: &mut dyn FnMut(Finished)) {
        for held in self.repeats.release() {
            self.take_new(&held.frame(), finished);
        }
        self.process_queue(None, finished);
    }

    /// Processes a result of [`Capture::read`], and calls `finished` with each connection that has ended.
    pub fn feed(&mut self, next: Next<'_>, finished: &mut dyn FnMut(Finished)) -> Progress {
        let problems = &mut self.totals.problems;
        match next {
            Next::Frame(frame) => {
                self.take(&frame, finished);
                return Progress::More;
            }
            Next::Filtered => return Progress::More,
            Next::NoFrame => {
                self.flush(finished);
                return Progress::Nothing;
            }
            Next::Flaw { problem, frame, detail } => problems.record_detail(problem, frame, detail),
            Next::Damaged { frame, detail } => {
                problems.record_detail(Problem::Damaged, frame, detail);
                return Progress::End;
            }
            Next::End => return Progress::End,
        }
        Progress::More
    }

    /// Returns the time of the first frame.
    pub fn begin(&self) -> Option<Timestamp> {
        self.totals.begin_unix_ns.map(Timestamp)
    }

    /// Finishes the connections that ended a while before `now`. [`feed`](Self::feed) does this itself while
    /// packets arrive. On an idle interface, the caller must do it from time to time.
    pub fn finish_old(&mut self, now: Timestamp, finished: &mut dyn FnMut(Finished)) {
        self.connections.finish_old(now, finished);
    }

    /// Returns the connections that are open at the moment, in no particular order.
    pub fn followed(&self) -> impl Iterator<Item = Followed> {
        self.connections.all()
    }

    /// Returns the results so far for the open connection between these ends. The connection is still
    /// followed. The call copies its state, including its trace if that is kept.
    pub fn results_so_far(&self, ends: [SocketAddr; 2]) -> Option<Ended> {
        self.connections.results_so_far(ends)
    }

    /// Returns the verdict about the last seconds of the open connection between these ends, before `now`: the
    /// last four to eight seconds, or 20 to 40 round trips if these are longer, but at most 40 seconds. Only for a
    /// survey that is [`judging_recent`](Self::judging_recent).
    pub fn recent(&self, ends: [SocketAddr; 2], now: Timestamp) -> Option<RecentFindings> {
        self.connections.recent(ends, now)
    }

    /// Records the number of lost frames that [`Capture::lost`] reports.
    pub fn lost(&mut self, frames: u64) {
        self.totals.problems.add(Problem::NotCaptured, 1, frames);
    }

    /// Calls `finished` with all remaining connections, and returns the totals.
    pub fn finish(mut self, finished: &mut dyn FnMut(Finished)) -> Totals {
        self.flush(finished);
        self.fragments.finish(&mut self.totals.problems);
        // Fragments of incomplete packets are counted as problems instead.
        let lost = [Problem::Fragment, Problem::FragmentOverlap].map(|lost| self.totals.problems.count(lost));
        self.totals.fragments = self.totals.fragments.saturating_sub(lost.iter().sum());
        self.totals.connections = self.connections.count();
        self.totals.seconds = self.latest.since(self.earliest);
        if let Some(step) = self.connections.resolution().coarse() {
            let detail = format!("steps of {} ms", step as f64 / 1e6);
            self.totals.problems.record_detail(Problem::ClockCoarse, 1, detail);
        }
        self.connections.finish(finished);
        self.totals
    }
}

/// The caller's next step after [`Survey::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Continue reading.
    More,
    /// The interface currently has no frame: wait.
    Nothing,
    /// The capture has ended.
    End,
}

/// Reads a file to its end. Calls `finished` with each connection when no more of its packets are expected,
/// so connections are reported in the order of their ends and not of their numbers.
pub fn read(capture: &mut Capture, traces: Traces, finished: &mut dyn FnMut(Finished)) -> Totals {
    let mut survey = Survey::new(traces, Limits::default());
    while survey.feed(capture.read(), finished) != Progress::End {}
    survey.finish(finished)
}

#[cfg(test)]
mod distorted;
#[cfg(test)]
mod tests {
    use airwire::seq::Seq;

    use super::*;
    use crate::test_support::packet;

    /// Surveys frames of one connection with these timestamps in seconds. Returns each connection's duration.
    fn surveyed(times: &[i64]) -> (Totals, Vec<f64>) {
        let mut survey = Survey::new(Traces::None, Limits::default());
        let mut seconds = Vec::new();
        let mut finished = |done: Finished| seconds.push(done.ended.findings.seconds);
        for (number, at) in times.iter().enumerate() {
            let at = Timestamp(*at * 1_000_000_000);
            let packet = Packet {
                number: number as u64 + 1,
                at,
                seq: Seq(1 + 1000 * number as u32),
                ack: Some(Seq(1)),
                len: 1000,
                ..packet("10.0.0.1:1000".parse().unwrap(), "10.0.0.2:80".parse().unwrap())
            };
            survey.process_queue(Some(at), &mut finished);
            let (number, payload) = (packet.number, Vec::new());
            survey.queue.push_back(Held { number, at, packet: Some(packet), payload });
        }
        let totals = survey.finish(&mut finished);
        (totals, seconds)
    }

    #[test]
    fn isolated_wrong_timestamps_count_as_clock_jumps() {
        const FUTURE: i64 = 9_000_000_000;
        for (times, jumped, back, seconds) in [
            // A wrong timestamp in the middle, at the beginning, and in the past.
            (&[100, 101, FUTURE, 102, 103][..], 1, 0, 3.0),
            (&[FUTURE, 100, 101, 102], 1, 0, 2.0),
            (&[100, 101, 0, 102, 103], 1, 0, 3.0),
            (&[100, FUTURE, 101, FUTURE, 102], 2, 0, 2.0),
            // A step of the clock, a pause, and a late last frame are not wrong timestamps.
            (&[100, 101, 50, 51, 52], 0, 1, 3.0),
            (&[100, 101, 5000, 5001], 0, 0, 4901.0),
            (&[100, 101, 5000], 0, 0, 4900.0),
        ] {
            let (totals, found) = surveyed(times);
            let problems =
                [Problem::ClockJumped, Problem::ClockBackwards].map(|problem| totals.problems.count(problem));
            assert_eq!((problems, found), ([jumped, back], vec![seconds]), "{times:?}");
        }
    }
}
