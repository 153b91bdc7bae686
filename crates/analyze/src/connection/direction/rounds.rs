//! Estimates the sender's window, which is not contained in any packet, from the maximum flight in each round
//! trip.

use super::congestion::UNLIMITED_ROUNDS;

/// The round trips of a sender. A round ends with the first ACK for data that was sent after the round began.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    end: u64,
    /// The maximum flight in this round, and in the previous round.
    current: u32,
    previous: u32,
    max: u32,
    growth: Growth,
    /// Number of rounds since something other than the window limited the sender.
    unlimited: u8,
}

/// The growth at the start of the connection, as long as the window grows.
#[derive(Clone, Debug, Default)]
struct Growth {
    first: u32,
    last: u32,
    rounds: u16,
    has_ended: bool,
}

/// Minimum factor by which a window grows per round in slow start.
const SLOW_START_GROWTH: f64 = 1.2;

impl Rounds {
    /// Returns the state with the maximum flight from now on.
    pub(super) fn continued(&self) -> Self {
        let growth = Growth { has_ended: true, ..Growth::default() };
        Self { max: self.current, growth, ..self.clone() }
    }

    pub(super) fn flight(&mut self, bytes: u32) {
        self.current = self.current.max(bytes);
        self.max = self.max.max(bytes);
    }

    /// Records that new data up to `una` was acknowledged, with data up to `max` sent. If this ends a round,
    /// returns the maximum flight of the round.
    pub(super) fn acknowledged(&mut self, una: u64, max: u64) -> Option<u32> {
        if una <= self.end {
            return None;
        }
        let flight = self.current;
        self.unlimited = self.unlimited.saturating_add(1);
        let growth = &mut self.growth;
        if !growth.has_ended && flight > 0 {
            if growth.first == 0 {
                (growth.first, growth.last) = (flight, flight);
            } else if f64::from(flight) >= f64::from(growth.last) * SLOW_START_GROWTH {
                growth.last = flight;
                growth.rounds = growth.rounds.saturating_add(1);
            } else {
                growth.has_ended = true;
            }
        }
        (self.previous, self.current, self.end) = (flight, 0, max);
        Some(flight)
    }

    /// Records a limit other than the sender's window. Afterwards, the flight does not show how the window
    /// grows.
    pub(super) fn limited(&mut self) {
        self.growth.has_ended = true;
        self.unlimited = 0;
    }

    /// Starts a new round, so that its flight is measured from now on.
    pub(super) fn restart(&mut self, max: u64) {
        (self.current, self.end) = (0, max);
    }

    /// Returns the maximum flight within a round trip, if only the window has limited it.
    pub(super) fn window(&self) -> Option<u32> {
        (self.unlimited >= UNLIMITED_ROUNDS).then(|| self.previous.max(self.current))
    }

    pub(super) fn reduced(&mut self, flight: u32) {
        self.growth.has_ended = true;
        (self.previous, self.current) = (flight, flight);
    }

    pub(super) fn estimate(&self) -> u64 {
        u64::from(self.previous.max(self.current))
    }

    pub(super) fn max(&self) -> u64 {
        u64::from(self.max)
    }

    /// Returns the factor by which the window grew per round at the start of the connection.
    pub(super) fn growth(&self) -> Option<f64> {
        let Growth { first, last, rounds, .. } = self.growth;
        (rounds > 0).then(|| (f64::from(last) / f64::from(first)).powf(1.0 / f64::from(rounds)))
    }
}
