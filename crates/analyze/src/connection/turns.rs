//! Measures how long each end waits to send data after the other end: a server that prepares its
//! answer, or a client that thinks between two requests.

use super::findings::{ResponseTimeFindings, TurnFindings};

/// Times are in microseconds, at most about an hour, because there may be 100,000 connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    last_data_at: i64,
    /// The end that sent the last data.
    last: Option<u8>,
    /// The end that sent the first data.
    first: u8,
    /// The time from the end of the handshake to the first data.
    first_wait: u32,
    first_answer: u32,
    /// Number of answers of `ends[1]`.
    answers: u32,
    /// Seconds from the last data of the other end to the next data of this one.
    sums: [f32; 2],
    longest: [u32; 2],
    longest_frame: [u32; 2],
}

fn micros(ns: i64) -> u32 {
    u32::try_from(ns.max(0) / 1000).unwrap_or(u32::MAX)
}

impl Turns {
    /// Returns the state with the waits from `at` on.
    pub(super) fn continued(&self, at: i64) -> Self {
        let last_data_at = self.last_data_at.max(at);
        Self { last_data_at, last: self.last, first: self.first, ..Self::default() }
    }

    /// Returns whether data of end `from` is an answer: the other end sent the last data.
    pub(super) fn is_answer(&self, from: usize) -> bool {
        self.last != Some(from as u8)
    }

    /// Records that an end sends new data. The handshake ended at `opened_at`.
    pub(super) fn new_data(&mut self, at: i64, from: usize, opened_at: Option<i64>, frame: u64) {
        if self.last.is_none() {
            self.first = from as u8;
            self.first_wait = opened_at.map_or(0, |opened_at| micros(at - opened_at));
            if from == 0 {
                self.note_longest(from, self.first_wait, frame);
            }
        } else if self.is_answer(from) {
            let wait = (at - self.last_data_at).max(0);
            self.sums[from] += wait as f32 / 1e9;
            self.note_longest(from, micros(wait), frame);
            if from == 1 {
                if self.answers == 0 {
                    self.first_answer = micros(wait);
                }
                self.answers = self.answers.saturating_add(1);
            }
        }
        (self.last, self.last_data_at) = (Some(from as u8), at);
    }

    fn note_longest(&mut self, from: usize, wait: u32, frame: u64) {
        if wait > self.longest[from] {
            (self.longest[from], self.longest_frame[from]) = (wait, u32::try_from(frame).unwrap_or(0));
        }
    }

    /// Returns the time of the last new data.
    pub(super) fn last_data_at(&self) -> i64 {
        self.last_data_at
    }

    /// Returns the response times of `ends[1]`.
    pub(super) fn answers(&self) -> ResponseTimeFindings {
        let seconds = |micros: u32| (self.answers > 0).then(|| f64::from(micros) / 1e6);
        // Rounded to microseconds, because a 32-bit sum is not more precise.
        let mean = f64::from(self.sums[1]) / f64::from(self.answers.max(1));
        ResponseTimeFindings {
            count: u64::from(self.answers),
            first_seconds: seconds(self.first_answer),
            mean_seconds: (self.answers > 0).then(|| (mean * 1e6).round() / 1e6),
            max_seconds: seconds(self.longest[1]),
        }
    }

    /// Returns the waits of the applications. `reply_delays` are the parts of each wait that packets take from
    /// the capture point to an end and back.
    pub(super) fn findings(&self, reply_delays: [Option<i64>; 2]) -> [TurnFindings; 2] {
        [0, 1].map(|end: usize| {
            let begins = self.last.is_some() && usize::from(self.first) == end;
            let answers = if end == 0 { self.answers.saturating_sub(1) } else { self.answers };
            let delay = reply_delays[end].unwrap_or(0) as f64 / 1e9;
            let network = |wait: f64, count: u32| (wait - f64::from(count) * delay).max(0.0);
            // The ACK that opened the connection and the client's first data take the same way.
            let first = network(f64::from(self.first_wait) / 1e6, end as u32);
            let first = if begins { first } else { 0.0 };
            let waited = first + network(f64::from(self.sums[end]), answers);
            TurnFindings {
                count: u64::from(answers) + u64::from(begins),
                waited_seconds: (waited * 1e6).round() / 1e6,
                longest_seconds: f64::from(self.longest[end]) / 1e6,
                longest_frame: (self.longest_frame[end] > 0).then_some(self.longest_frame[end].into()),
                first_seconds: begins.then_some(first),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn waits_do_not_include_the_round_trip() {
        let mut turns = Turns::default();
        // The client thinks for 500 ms; the server answers after 80 ms, of which 50 ms are the network.
        turns.new_data(500 * MS, 0, Some(0), 4);
        turns.new_data(580 * MS, 1, Some(0), 5);
        turns.new_data(590 * MS, 1, Some(0), 6);
        turns.new_data(600 * MS, 0, Some(0), 7);
        turns.new_data(680 * MS, 1, Some(0), 8);
        let [client, server] = turns.findings([Some(0), Some(50 * MS)]);
        assert_eq!((client.count, client.waited_seconds, client.first_seconds), (2, 0.51, Some(0.5)));
        assert_eq!((server.count, server.waited_seconds, server.longest_frame), (2, 0.06, Some(5)));
        let answers = turns.answers();
        assert_eq!((answers.count, answers.first_seconds, answers.mean_seconds), (2, Some(0.08), Some(0.08)));
    }
}
