//! Divides a sender's time by what limited the sender.

use super::compact::{ALLOCATOR_OVERHEAD, OnDemand};
use super::findings::TimeFindings;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SpentOn {
    #[default]
    Network,
    ApplicationLimited,
    WindowLimited,
    ZeroWindow,
    WaitingForTimeout,
}

/// The evidence of a packet about the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    Nothing,
    /// A retransmission by timeout: the sender was waiting for its timer.
    TimerFired,
    /// An ACK for new data: the time before it counts.
    DataAcked,
}

/// Number of [`SpentOn`] kinds that every connection has. The others take memory only if they occur.
const USUAL: usize = 2;
const UNUSUAL: usize = 3;

/// Nanoseconds by kind.
#[derive(Debug, Default)]
struct Sums {
    usual: [i64; USUAL],
    unusual: OnDemand<[i64; UNUSUAL]>,
}

impl Sums {
    fn add(&mut self, spent: SpentOn, ns: i64) {
        match (spent as usize).checked_sub(USUAL) {
            None => self.usual[spent as usize] += ns,
            Some(_) if ns == 0 => {}
            Some(unusual) => self.unusual.get_or_default()[unusual] += ns,
        }
    }

    fn of(&self, spent: SpentOn) -> i64 {
        match (spent as usize).checked_sub(USUAL) {
            None => self.usual[spent as usize],
            Some(unusual) => self.unusual.get().map_or(0, |sums| sums[unusual]),
        }
    }

    fn heap(&self) -> usize {
        self.unusual.get().map_or(0, |sums| size_of_val(sums) + ALLOCATOR_OVERHEAD)
    }

    fn total(&self) -> i64 {
        let kinds = [
            SpentOn::Network,
            SpentOn::ApplicationLimited,
            SpentOn::WindowLimited,
            SpentOn::ZeroWindow,
            SpentOn::WaitingForTimeout,
        ];
        kinds.into_iter().map(|spent| self.of(spent)).sum()
    }

    /// Moves all times from `other` to this struct.
    fn take_from(&mut self, other: &mut Self) {
        for (sum, other) in self.usual.iter_mut().zip(&mut other.usual) {
            *sum += std::mem::take(other);
        }
        if let Some(other) = other.unusual.get_mut() {
            for (sum, other) in self.unusual.get_or_default().iter_mut().zip(other) {
                *sum += std::mem::take(other);
            }
        }
    }
}

/// The time since the first data. Time after the last ACK for new data counts only if the transfer was
/// incomplete.
#[derive(Debug, Default)]
pub(super) struct TimeSpent {
    /// Set at the first data.
    running: Option<Running>,
    sums: Sums,
    /// The integral of the flight over time, in byte-nanoseconds.
    flown: f64,
    /// The time since the last ACK for new data, which may not count.
    pending: Sums,
    pending_flown: f64,
    /// Microseconds, because they fit into 32 bits.
    longest_wait: u32,
    pending_wait: u32,
}

/// The state since the last event.
#[derive(Debug)]
struct Running {
    since: i64,
    state: SpentOn,
    flight: u32,
}

impl TimeSpent {
    pub(super) fn start(&mut self, at: i64) {
        self.running.get_or_insert(Running { since: at, state: SpentOn::Network, flight: 0 });
    }

    /// Counts the time up to a packet at `at`. `shows` is the packet's evidence about this time. Returns the
    /// kind and the length of the time.
    pub(super) fn pass(&mut self, at: i64, shows: Shows) -> (SpentOn, i64) {
        let Some(running) = &mut self.running else { return (SpentOn::Network, 0) };
        let passed = at - std::mem::replace(&mut running.since, at);
        let waited = shows == Shows::TimerFired;
        let state = if waited { SpentOn::WaitingForTimeout } else { running.state };
        self.pending.add(state, passed);
        self.pending_flown += f64::from(running.flight) * passed as f64;
        if waited {
            self.pending_wait = self.pending_wait.max(u32::try_from(passed / 1000).unwrap_or(u32::MAX));
        }
        (state, passed)
    }

    /// Sets the kind of the time from now on.
    pub(super) fn set(&mut self, state: SpentOn, flight: u32) {
        if let Some(running) = &mut self.running {
            (running.state, running.flight) = (state, flight);
        }
    }

    /// Counts the pending time, because new data was acknowledged or never will be.
    pub(super) fn commit(&mut self) {
        self.longest_wait = self.longest_wait.max(std::mem::take(&mut self.pending_wait));
        self.sums.take_from(&mut self.pending);
        self.flown += std::mem::take(&mut self.pending_flown);
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        self.sums.heap() + self.pending.heap()
    }

    /// Returns the time from the first data to the last packet, for a connection without any ACK.
    pub(super) fn total_unacknowledged(&self) -> i64 {
        self.pending.total()
    }

    pub(super) fn total(&self) -> i64 {
        self.sums.total()
    }

    pub(super) fn mean_flight(&self) -> f64 {
        if self.total() > 0 { self.flown / self.total() as f64 } else { 0.0 }
    }

    /// Returns the results. `flight_is_known` means that the capture shows the data in flight, and so the
    /// reason why the sender waits.
    pub(super) fn findings(&self, flight_is_known: bool) -> TimeFindings {
        let seconds = |spent: SpentOn| self.sums.of(spent) as f64 / 1e9;
        let told = |spent: SpentOn| flight_is_known.then(|| seconds(spent));
        let undetermined = seconds(SpentOn::ApplicationLimited) + seconds(SpentOn::Network);
        TimeFindings {
            total_seconds: self.total() as f64 / 1e9,
            zero_window_seconds: seconds(SpentOn::ZeroWindow),
            waiting_for_timeout_seconds: seconds(SpentOn::WaitingForTimeout),
            window_limited_seconds: seconds(SpentOn::WindowLimited),
            application_limited_seconds: told(SpentOn::ApplicationLimited),
            network_limited_seconds: told(SpentOn::Network),
            undetermined_seconds: if flight_is_known { 0.0 } else { undetermined },
            longest_wait_for_timeout_seconds: f64::from(self.longest_wait) / 1e6,
        }
    }
}
