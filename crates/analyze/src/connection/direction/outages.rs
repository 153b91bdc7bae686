//! Detects silences: the sender retransmits by timeout several times without any answer.

use crate::compact::CompactOption;
use crate::connection::findings::OutageFindings;

/// Number of consecutive timeouts. One is the normal response to the loss of the last segments.
const MIN_TIMEOUTS: u32 = 2;
/// Nanoseconds. Two timeouts of a sender with a short round trip take less, and occur in random loss.
pub(super) const MIN_SILENCE: i64 = 1_000_000_000;

/// Nanoseconds to the sender and back. Farther from the sender, a capture does not show every timeout.
pub(super) const MIN_REMOTE: i64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Outages {
    /// Number of timeouts since the last packet of the other end.
    timeouts: u32,
    /// The time of that packet.
    heard_at: i64,
    /// The end of the last silence.
    ended_at: i64,
    count: u32,
    total: i64,
    longest: i64,
    longest_frame: u64,
    /// Total duration of the silences with at least one timeout.
    stalled: i64,
}

impl Outages {
    /// Returns the state with the silences from `at` on.
    pub(super) fn continued(&self, at: i64) -> Self {
        Self {
            timeouts: self.timeouts,
            heard_at: self.heard_at.max(at),
            ended_at: self.ended_at,
            ..Self::default()
        }
    }

    /// Records a timeout. The last packet of the other end arrived at `heard_at`.
    pub(super) fn timed_out(&mut self, heard_at: CompactOption) {
        if self.timeouts == 0 {
            self.heard_at = heard_at.as_time().unwrap_or(0);
        }
        self.timeouts += 1;
    }

    /// Records a packet of the other end.
    pub(super) fn heard(&mut self, at: i64, frame: u64) {
        let silence = at - self.heard_at;
        if self.timeouts > 0 {
            self.stalled += silence.max(0);
        }
        // At the receiver, the sender's first packet has already ended the silence.
        let is_known = self.heard_at < self.ended_at;
        if std::mem::take(&mut self.timeouts) >= MIN_TIMEOUTS && silence >= MIN_SILENCE && !is_known {
            self.add(at, silence, frame);
        }
    }

    /// Records a silence that the packet in `frame` ended at `at`.
    pub(super) fn add(&mut self, at: i64, silence: i64, frame: u64) {
        self.ended_at = at;
        self.count += 1;
        self.total += silence;
        if silence > self.longest {
            (self.longest, self.longest_frame) = (silence, frame);
        }
    }

    pub(super) fn findings(&self) -> OutageFindings {
        OutageFindings {
            count: self.count.into(),
            seconds: self.total as f64 / 1e9,
            longest_seconds: self.longest as f64 / 1e9,
            stalled_seconds: self.stalled as f64 / 1e9,
            frame: (self.longest_frame > 0).then_some(self.longest_frame),
            unanswered_timeouts: self.timeouts.into(),
        }
    }
}
