//! What a sender's time was spent with.

use super::findings::TimeFindings;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Spent {
    #[default]
    Network,
    ApplicationLimited,
    WindowLimited,
    ZeroWindow,
    WaitingForTimeout,
}

const KINDS: usize = 5;

/// Runs from the first data on. What comes after the last ACK for new data does not count.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// The last event, once there has been data.
    since: Option<i64>,
    state: Spent,
    flight: u64,
    sums: [i64; KINDS],
    /// Octets in flight times nanoseconds.
    flown: f64,
    /// Since the last ACK for new data.
    pending: [i64; KINDS],
    pending_flown: f64,
    longest_wait: i64,
}

impl Clocks {
    pub(super) fn start(&mut self, at: i64) {
        self.since.get_or_insert(at);
    }

    /// Time has passed until `at`; as it turns out, it was a `wait` for the timer. Returns what it was spent with,
    /// and how much it was.
    pub(super) fn pass(&mut self, at: i64, wait: bool) -> (Spent, i64) {
        let Some(since) = &mut self.since else { return (Spent::Network, 0) };
        let passed = at - std::mem::replace(since, at);
        let state = if wait { Spent::WaitingForTimeout } else { self.state };
        self.pending[state as usize] += passed;
        self.pending_flown += self.flight as f64 * passed as f64;
        if wait {
            self.longest_wait = self.longest_wait.max(passed);
        }
        (state, passed)
    }

    /// What the time from now on is spent with.
    pub(super) fn set(&mut self, state: Spent, flight: u64) {
        (self.state, self.flight) = (state, flight);
    }

    /// New data have been acknowledged.
    pub(super) fn commit(&mut self) {
        for (sum, pending) in self.sums.iter_mut().zip(std::mem::take(&mut self.pending)) {
            *sum += pending;
        }
        self.flown += std::mem::take(&mut self.pending_flown);
    }

    pub(super) fn total(&self) -> i64 {
        self.sums.iter().sum()
    }

    pub(super) fn mean_flight(&self) -> f64 {
        if self.total() > 0 { self.flown / self.total() as f64 } else { 0.0 }
    }

    pub(super) fn findings(&self) -> TimeFindings {
        let seconds = |spent: Spent| self.sums[spent as usize] as f64 / 1e9;
        TimeFindings {
            total_seconds: self.total() as f64 / 1e9,
            zero_window_seconds: seconds(Spent::ZeroWindow),
            waiting_for_timeout_seconds: seconds(Spent::WaitingForTimeout),
            window_limited_seconds: seconds(Spent::WindowLimited),
            application_limited_seconds: seconds(Spent::ApplicationLimited),
            network_limited_seconds: seconds(Spent::Network),
            longest_wait_for_timeout_seconds: self.longest_wait as f64 / 1e9,
        }
    }
}
