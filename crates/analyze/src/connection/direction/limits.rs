//! Divides a sender's time by what limited the sender: the receiver's window, the application, timeouts, or
//! the network.

use super::recovery::Recovery;
use super::{DirectionAnalysis, PacketContext};
use crate::compact::{ALLOCATOR_OVERHEAD, OnDemand};
use crate::connection::findings::TimeFindings;
use crate::trace::WindowPoint;

/// The limit of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Limit {
    /// The sender's window and the network.
    #[default]
    Network,
    Application,
    ReceiverWindow,
    ZeroWindow,
    Timeout,
}

/// The reason why a packet ends the preceding period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeriodEnd {
    Other,
    /// A retransmission by timeout: the sender was waiting for its timer.
    TimerExpired,
    /// An ACK for new data: the period counts.
    DataAcked,
}

impl Limit {
    const ALL: [Self; FREQUENT + RARE] =
        [Self::Network, Self::Application, Self::ReceiverWindow, Self::ZeroWindow, Self::Timeout];
}

/// Number of limits that every connection meets. Times of rare limits take memory only if such limits occur.
const FREQUENT: usize = 2;
const RARE: usize = 3;

/// Nanoseconds by limit.
#[derive(Clone, Debug, Default)]
struct Sums {
    frequent: [i64; FREQUENT],
    rare: OnDemand<[i64; RARE]>,
}

impl Sums {
    fn add(&mut self, limit: Limit, ns: i64) {
        match (limit as usize).checked_sub(FREQUENT) {
            None => self.frequent[limit as usize] += ns,
            Some(_) if ns == 0 => {}
            Some(rare) => self.rare.get_or_default()[rare] += ns,
        }
    }

    fn of(&self, limit: Limit) -> i64 {
        match (limit as usize).checked_sub(FREQUENT) {
            None => self.frequent[limit as usize],
            Some(rare) => self.rare.get().map_or(0, |sums| sums[rare]),
        }
    }

    fn heap(&self) -> usize {
        self.rare.get().map_or(0, |sums| size_of_val(sums) + ALLOCATOR_OVERHEAD)
    }

    fn total(&self) -> i64 {
        Limit::ALL.into_iter().map(|limit| self.of(limit)).sum()
    }

    /// Moves all times from `other` to this struct.
    fn take_from(&mut self, other: &mut Self) {
        for limit in Limit::ALL {
            self.add(limit, other.of(limit));
        }
        other.frequent = Default::default();
        if let Some(rare) = other.rare.get_mut() {
            *rare = Default::default();
        }
    }
}

/// The time since the first data. Time after the last ACK for new data counts only if the transfer was
/// incomplete.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitTimes {
    /// The period since the last packet. Set at the first data.
    period: Option<Period>,
    sums: Sums,
    /// The integral of the flight over time, in byte-nanoseconds.
    flight_integral: f64,
    /// The time since the last ACK for new data, which may not count.
    pending: Sums,
    pending_flight_integral: f64,
    /// Microseconds, because they fit into 32 bits.
    longest_wait: u32,
    pending_wait: u32,
}

#[derive(Clone, Debug)]
struct Period {
    since: i64,
    limit: Limit,
    flight: u32,
}

impl LimitTimes {
    /// Returns the state with the times from `at` on.
    pub(super) fn continued(&self, at: i64) -> Self {
        let period = self.period.clone().map(|period| Period { since: period.since.max(at), ..period });
        Self { period, ..Self::default() }
    }

    pub(super) fn start(&mut self, at: i64) {
        self.period.get_or_insert(Period { since: at, limit: Limit::Network, flight: 0 });
    }

    /// Counts the period up to a packet at `at`. Returns its limit and its length.
    fn end_period(&mut self, at: i64, end: PeriodEnd) -> (Limit, i64) {
        let Some(period) = &mut self.period else { return (Limit::Network, 0) };
        let passed = at - std::mem::replace(&mut period.since, at);
        let waited = end == PeriodEnd::TimerExpired;
        let limit = if waited { Limit::Timeout } else { period.limit };
        self.pending.add(limit, passed);
        self.pending_flight_integral += f64::from(period.flight) * passed as f64;
        if waited {
            self.pending_wait = self.pending_wait.max(u32::try_from(passed / 1000).unwrap_or(u32::MAX));
        }
        (limit, passed)
    }

    /// Sets the limit of the time from now on.
    fn set_limit(&mut self, limit: Limit, flight: u32) {
        if let Some(period) = &mut self.period {
            (period.limit, period.flight) = (limit, flight);
        }
    }

    /// Counts the pending time, because new data was acknowledged or never will be.
    pub(super) fn commit(&mut self) {
        self.longest_wait = self.longest_wait.max(std::mem::take(&mut self.pending_wait));
        self.sums.take_from(&mut self.pending);
        self.flight_integral += std::mem::take(&mut self.pending_flight_integral);
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        self.sums.heap() + self.pending.heap()
    }

    pub(super) fn total(&self) -> i64 {
        self.sums.total()
    }

    pub(super) fn mean_flight(&self) -> f64 {
        if self.total() > 0 { self.flight_integral / self.total() as f64 } else { 0.0 }
    }

    /// Returns the results. `flight_is_known` means that the capture shows the data in flight, and so the
    /// reason why the sender waits.
    pub(super) fn findings(&self, flight_is_known: bool) -> TimeFindings {
        let seconds = |limit: Limit| self.sums.of(limit) as f64 / 1e9;
        let if_known = |limit: Limit| flight_is_known.then(|| seconds(limit));
        let undetermined = seconds(Limit::Application) + seconds(Limit::Network);
        TimeFindings {
            total_seconds: self.total() as f64 / 1e9,
            zero_window_seconds: seconds(Limit::ZeroWindow),
            waiting_for_timeout_seconds: seconds(Limit::Timeout),
            window_limited_seconds: seconds(Limit::ReceiverWindow),
            application_limited_seconds: if_known(Limit::Application),
            network_limited_seconds: if_known(Limit::Network),
            undetermined_seconds: if flight_is_known { 0.0 } else { undetermined },
            longest_wait_for_timeout_seconds: f64::from(self.longest_wait) / 1e6,
        }
    }
}

impl DirectionAnalysis {
    /// Returns what limits the sender now.
    fn limit(&self) -> Limit {
        let segment = self.path_segment();
        let outstanding = self.flight.is_outstanding();
        let all_new = self.flight.pass_next >= self.flight.max;
        // A packet with several segments (TSO) ends short only if its last segment is not full. Their number
        // may vary although the sender has more data.
        let ends_short = !self.sizes.last_new.is_multiple_of(segment);
        if self.window.is_closed() {
            Limit::ZeroWindow
        } else if self.room().is_some_and(|room| room < u64::from(segment)) {
            Limit::ReceiverWindow
        } else if !outstanding || self.recovery == Recovery::None && all_new && ends_short {
            Limit::Application
        } else {
            Limit::Network
        }
    }

    /// Accounts for the time up to a packet of either end, after the packet has been processed.
    pub(super) fn account_time(&mut self, context: &PacketContext, end: PeriodEnd) {
        let (limit, passed) = self.limits.end_period(context.at, end);
        // For a moment between an ACK and the data that it triggers, no data may be outstanding. This is not
        // a limit.
        if limit != Limit::Network && passed > self.rtt.min().unwrap_or(0) / 4 {
            self.rounds.limited();
            if let Some(anomalies) = self.anomalies.get_mut() {
                anomalies.congestion.interrupted();
            }
        }
        if end == PeriodEnd::DataAcked {
            self.limits.commit();
        }
        let flight = self.flight_bytes();
        self.limits.set_limit(self.limit(), flight);
        if self.sizes.longest == 0 {
            return;
        }
        self.rounds.flight(flight);
        self.record_window(context.at, u64::from(flight));
    }

    fn record_window(&mut self, at: i64, in_flight: u64) {
        let estimated = self.rounds.estimate();
        let Some(trace) = &mut self.trace else { return };
        let point = WindowPoint { at, in_flight, estimated, cwnd: None, ssthresh: None };
        match trace.windows.last_mut() {
            Some(last) if last.at == at => *last = point,
            Some(last) if (last.in_flight, last.estimated) == (in_flight, estimated) => {}
            _ => trace.windows.push(point),
        }
    }
}
