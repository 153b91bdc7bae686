//! The sender's congestion window in each round trip: the evidence of its congestion control.

use crate::compact::heap_of_vec;
use crate::connection::congestion::{Event, Round};

/// Maximum number of remembered round trips. They last 50 s at a round trip of 25 ms.
const MAX_ROUNDS: usize = 2048;

/// Measures the windows. All calls are from the sender's point of view.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    pub(super) rounds: Vec<Round>,
    current: Current,
    previous_flight: u32,
    /// The end of the data sent when a loss was detected. `None` once all data before this offset is
    /// acknowledged.
    recover: Option<u64>,
    after_timeout: bool,
}

/// The current round trip.
#[derive(Clone, Debug, Default)]
struct Current {
    began: i64,
    /// The end of the data sent before this round trip.
    end: u64,
    flight: u32,
    acked: u64,
    acks: u32,
    min_rtt: i64,
    max_rtt: i64,
    rtt_sum: i64,
    rtts: i64,
    is_limited: bool,
}

impl Current {
    fn new(began: i64, end: u64) -> Self {
        Self { began, end, min_rtt: i64::MAX, ..Self::default() }
    }
}

impl Windows {
    pub(super) fn new(at: i64, end: u64) -> Self {
        Self { current: Current::new(at, end), ..Self::default() }
    }

    /// Returns the largest flight of this round trip and the last one.
    pub(super) fn largest_flight(&self) -> u32 {
        self.current.flight.max(self.previous_flight)
    }

    /// Records a packet with data. `flight` includes it.
    pub(super) fn sent(&mut self, flight: u32) {
        self.current.flight = self.current.flight.max(flight);
    }

    /// Records that the sender has learned from an ACK that everything before `una` has arrived, and has sent
    /// everything before `max`.
    pub(super) fn advanced(&mut self, at: i64, una: u64, max: u64) {
        if let Some(recover) = self.recover {
            if una >= recover {
                (self.recover, self.previous_flight) = (None, 0);
                if let Some(loss) = self.rounds.last_mut() {
                    loss.max_rtt = loss.max_rtt.max(to_micros(self.current.max_rtt));
                    loss.min_rtt = loss.min_rtt.min(to_micros(self.current.min_rtt));
                }
                self.current = Current::new(at, max);
            }
            return;
        }
        if una > self.current.end {
            let event = if self.current.is_limited { Event::Limited } else { Event::Round };
            self.push(at, event, self.current.flight);
            self.previous_flight = self.current.flight;
            self.after_timeout = false;
            self.current = Current::new(at, max);
        }
    }

    pub(super) fn acked(&mut self, bytes: u64, acks: u32) {
        self.current.acked += bytes;
        self.current.acks += acks;
    }

    pub(super) fn add_rtt(&mut self, ns: i64) {
        let current = &mut self.current;
        current.min_rtt = current.min_rtt.min(ns);
        current.max_rtt = current.max_rtt.max(ns);
        current.rtt_sum += ns;
        current.rtts += 1;
    }

    pub(super) fn forget_rtts(&mut self) {
        for round in &mut self.rounds {
            (round.min_rtt, round.mean_rtt, round.max_rtt) = (0, 0, 0);
        }
        let current = &mut self.current;
        (current.min_rtt, current.max_rtt, current.rtt_sum, current.rtts) = (i64::MAX, 0, 0, 0);
    }

    pub(super) fn limited(&mut self) {
        self.current.is_limited = true;
    }

    /// Records the first retransmission of lost data. `max` is the end of the data sent so far.
    pub(super) fn lost(&mut self, at: i64, max: u64) {
        if self.recover.is_none() {
            self.push(at, Event::Loss, self.current.flight.max(self.previous_flight));
            self.recover = Some(max);
        }
    }

    /// Records that data between two offsets has not arrived in order. If the first data after a loss was
    /// lost, the sender had sent it before it detected the loss.
    pub(super) fn missing(&mut self, from: u64, to: u64) {
        self.recover = self.recover.map(|recover| if recover == from { to } else { recover });
    }

    pub(super) fn timed_out(&mut self, at: i64, max: u64) {
        if !self.after_timeout {
            self.push(at, Event::Timeout, self.current.flight);
            self.after_timeout = true;
        }
        self.recover = Some(max);
        self.previous_flight = 0;
    }

    fn push(&mut self, at: i64, event: Event, flight: u32) {
        if self.rounds.len() == MAX_ROUNDS {
            return;
        }
        let current = &self.current;
        let has_rtt = current.rtts > 0;
        self.rounds.push(Round {
            ended: to_micros(at),
            lasted: to_micros(at - current.began),
            flight,
            acked: u32::try_from(current.acked).unwrap_or(u32::MAX),
            min_rtt: if has_rtt { to_micros(current.min_rtt) } else { 0 },
            max_rtt: to_micros(current.max_rtt),
            mean_rtt: if has_rtt { to_micros(current.rtt_sum / current.rtts) } else { 0 },
            acks: u16::try_from(current.acks).unwrap_or(u16::MAX),
            event,
        });
    }

    pub(super) fn heap(&self) -> usize {
        heap_of_vec::<Round>(self.rounds.capacity())
    }
}

fn to_micros(ns: i64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: i64 = 20_000_000;

    #[test]
    fn missing_data_after_loss_belongs_to_recovery() {
        let losses = |is_missing: bool| {
            let mut windows = Windows::new(0, 0);
            windows.sent(30);
            windows.lost(RTT, 30);
            if is_missing {
                windows.missing(30, 40);
            }
            windows.advanced(2 * RTT, 35, 60);
            windows.sent(20);
            windows.lost(2 * RTT, 60);
            windows.rounds.iter().filter(|round| round.event == Event::Loss).count()
        };
        assert_eq!((losses(false), losses(true)), (2, 1));
    }

    #[test]
    fn loss_includes_rtts_of_recovery() {
        let mut windows = Windows::new(0, 0);
        windows.add_rtt(RTT);
        windows.lost(RTT, 30);
        windows.add_rtt(3 * RTT);
        windows.add_rtt(RTT / 2);
        windows.advanced(2 * RTT, 30, 60);
        let loss = &windows.rounds[0];
        assert_eq!((loss.min_rtt, loss.mean_rtt, loss.max_rtt), (10_000, 20_000, 60_000));
    }
}
