//! Discontinuous reception of a connected terminal (C-DRX, TS 38.321 §5.7, TS 36.321 §5.7).
//!
//! Choices: there is one cycle, either the short or the long one. A terminal is also active while it waits for
//! a retransmission or a grant, so DRX delays only new data of the downlink.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::settings::Invalid;

/// Settings of DRX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrxConfig {
    /// drx-InactivityTimer: the time for which the terminal stays active after new data in either direction.
    pub inactivity: Duration,
    /// Length of a DRX cycle.
    pub cycle: Duration,
    /// drx-onDuration: the time at the beginning of each cycle in which the terminal is active.
    pub on: Duration,
}

impl DrxConfig {
    /// Refuses a cycle that is not longer than its active part.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.on.is_zero() {
            return Err(Invalid::new("on", "must be above 0: write for example \"10ms\""));
        }
        if self.on >= self.cycle {
            let message = format!("{} is not shorter than the cycle of {}", self.on, self.cycle);
            return Err(Invalid::new("on", message));
        }
        Ok(())
    }
}

/// DRX of one terminal.
#[derive(Clone, Copy, Debug)]
pub struct Drx {
    config: DrxConfig,
    /// Expiry of drx-InactivityTimer.
    active_until: Instant,
}

impl Drx {
    /// Creates the state of a terminal that has been inactive so far.
    pub fn new(config: DrxConfig) -> Self {
        Self { config, active_until: Instant::ZERO }
    }

    /// Changes the settings. A running timer continues.
    pub fn reconfigure(&mut self, config: DrxConfig) {
        self.config = config;
    }

    /// The terminal has received or sent new data at `now`.
    pub fn record_new_data(&mut self, now: Instant) {
        self.active_until = now + self.config.inactivity;
    }

    /// Earliest time, at `at` or later, at which the terminal is active.
    pub fn active_from(&self, at: Instant) -> Instant {
        let offset = (at - Instant::ZERO).as_nanos() % self.config.cycle.as_nanos();
        if at < self.active_until || offset < self.config.on.as_nanos() {
            return at;
        }
        at + Duration::from_nanos(self.config.cycle.as_nanos() - offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inactive_terminal_is_reached_in_next_on_duration() {
        let at = Instant::from_millis;
        let config = DrxConfig {
            inactivity: Duration::from_millis(100),
            cycle: Duration::from_millis(40),
            on: Duration::from_millis(10),
        };
        let mut drx = Drx::new(config);
        for (from, active) in [(0, 0), (9, 9), (10, 40), (39, 40), (45, 45), (51, 80)] {
            assert_eq!(drx.active_from(at(from)), at(active), "{from}");
        }
        drx.record_new_data(at(45));
        assert_eq!(drx.active_from(at(144)), at(144));
        assert_eq!(drx.active_from(at(145)), at(160));
    }

    #[test]
    fn on_duration_must_be_shorter_than_cycle() {
        let ms = Duration::from_millis;
        let valid = DrxConfig { inactivity: ms(0), cycle: ms(40), on: ms(10) };
        assert_eq!(valid.validate(), Ok(()));
        assert!(DrxConfig { on: ms(40), ..valid }.validate().is_err());
        assert!(DrxConfig { on: ms(0), ..valid }.validate().is_err());
    }
}
