//! What a sender's time was spent with.

use super::compact::{ALLOCATION, Seldom};
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

/// The last three kinds are those of few connections.
const USUAL: usize = 2;
const UNUSUAL: usize = 3;

/// Nanoseconds of each kind.
#[derive(Debug, Default)]
struct Sums {
    usual: [i64; USUAL],
    unusual: Seldom<[i64; UNUSUAL]>,
}

impl Sums {
    fn add(&mut self, spent: Spent, ns: i64) {
        match (spent as usize).checked_sub(USUAL) {
            None => self.usual[spent as usize] += ns,
            Some(_) if ns == 0 => {}
            Some(unusual) => self.unusual.made()[unusual] += ns,
        }
    }

    fn of(&self, spent: Spent) -> i64 {
        match (spent as usize).checked_sub(USUAL) {
            None => self.usual[spent as usize],
            Some(unusual) => self.unusual.get().map_or(0, |sums| sums[unusual]),
        }
    }

    fn heap(&self) -> usize {
        self.unusual.get().map_or(0, |sums| size_of_val(sums) + ALLOCATION)
    }

    fn total(&self) -> i64 {
        let kinds = [
            Spent::Network,
            Spent::ApplicationLimited,
            Spent::WindowLimited,
            Spent::ZeroWindow,
            Spent::WaitingForTimeout,
        ];
        kinds.into_iter().map(|spent| self.of(spent)).sum()
    }

    /// Takes everything out of `other`.
    fn take_from(&mut self, other: &mut Self) {
        for (sum, other) in self.usual.iter_mut().zip(&mut other.usual) {
            *sum += std::mem::take(other);
        }
        if let Some(other) = other.unusual.get_mut() {
            for (sum, other) in self.unusual.made().iter_mut().zip(other) {
                *sum += std::mem::take(other);
            }
        }
    }
}

/// Runs from the first data on. What comes after the last ACK for new data does not count.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// Once there has been data.
    running: Option<Running>,
    sums: Sums,
    /// Octets in flight times nanoseconds.
    flown: f64,
    /// Since the last ACK for new data.
    pending: Sums,
    pending_flown: f64,
    longest_wait: i64,
}

/// Since the last event.
#[derive(Debug)]
struct Running {
    since: i64,
    state: Spent,
    flight: u32,
}

impl Clocks {
    pub(super) fn start(&mut self, at: i64) {
        self.running.get_or_insert(Running { since: at, state: Spent::Network, flight: 0 });
    }

    /// Time has passed until `at`; as it turns out, it was a `wait` for the timer. Returns what it was spent with,
    /// and how much it was.
    pub(super) fn pass(&mut self, at: i64, wait: bool) -> (Spent, i64) {
        let Some(running) = &mut self.running else { return (Spent::Network, 0) };
        let passed = at - std::mem::replace(&mut running.since, at);
        let state = if wait { Spent::WaitingForTimeout } else { running.state };
        self.pending.add(state, passed);
        self.pending_flown += f64::from(running.flight) * passed as f64;
        if wait {
            self.longest_wait = self.longest_wait.max(passed);
        }
        (state, passed)
    }

    /// What the time from now on is spent with.
    pub(super) fn set(&mut self, state: Spent, flight: u32) {
        if let Some(running) = &mut self.running {
            (running.state, running.flight) = (state, flight);
        }
    }

    /// New data have been acknowledged.
    pub(super) fn commit(&mut self) {
        self.sums.take_from(&mut self.pending);
        self.flown += std::mem::take(&mut self.pending_flown);
    }

    /// Octets of heap.
    pub(super) fn heap(&self) -> usize {
        self.sums.heap() + self.pending.heap()
    }

    /// From the first data to the last packet, if nothing was ever acknowledged.
    pub(super) fn total_unacknowledged(&self) -> i64 {
        self.pending.total()
    }

    pub(super) fn total(&self) -> i64 {
        self.sums.total()
    }

    pub(super) fn mean_flight(&self) -> f64 {
        if self.total() > 0 { self.flown / self.total() as f64 } else { 0.0 }
    }

    pub(super) fn findings(&self) -> TimeFindings {
        let seconds = |spent: Spent| self.sums.of(spent) as f64 / 1e9;
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
