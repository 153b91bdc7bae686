//! DCH switching: a channel changes its rate during a run, on a schedule or by its buffer occupancy.
//!
//! RRC receives a measurement report when the buffer occupancy has been above or below a threshold for the
//! time to trigger (events 4a and 4b of TS 25.331 §14.4.2). It then reconfigures the transport channel, which
//! takes some time. The first TTI of the new rate begins after the end of the old one.

use airwire::time::{Duration, Instant};
use airwire::units::Size;
use serde::{Deserialize, Serialize};

use super::umts::dch::Dch;
use crate::settings::Invalid;

/// Trigger that makes a channel change its rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode", deny_unknown_fields)]
pub enum Switching {
    /// The rate does not change.
    Never {},
    /// A schedule.
    Scheduled {
        /// The changes, in ascending order of their times.
        changes: Vec<Change>,
    },
    /// The buffer occupancy: bytes of packets whose transmission has not begun. (Choice: data that waits
    /// for an acknowledgement does not count.)
    ByOccupancy {
        /// The possible rates, in ascending order. The list includes the channel's own rate.
        between: Vec<Dch>,
        /// Occupancy above which the channel changes to the next faster rate.
        above: Size,
        /// How long the occupancy must be above `above`.
        above_for: Duration,
        /// Occupancy at or below which the channel changes to the next slower rate.
        below: Size,
        /// How long the occupancy must be at or below `below`.
        below_for: Duration,
        /// Time from the decision to the change.
        takes: Duration,
    },
}

/// A scheduled change of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Time of the change, counted from the start.
    pub at: Duration,
    /// The new rate.
    pub dch: Dch,
}

impl Default for Switching {
    fn default() -> Self {
        Self::Never {}
    }
}

impl Switching {
    /// Checks the settings. `dch` is the rate at the start.
    pub(super) fn validate(&self, dch: Option<Dch>) -> Result<(), Invalid> {
        match self {
            Self::Never {} => Ok(()),
            Self::Scheduled { changes } => {
                if changes.is_empty() || !changes.is_sorted_by(|a, b| a.at < b.at) {
                    let message = "write the changes in the order of their times, such as \
                                   [{ at = \"10s\", dch = \"64kbit\" }]";
                    return Err(Invalid::new("changes", message));
                }
                Ok(())
            }
            Self::ByOccupancy { between, above, below, .. } => {
                if between.len() < 2 || !between.is_sorted_by(|a, b| a < b) {
                    let message = "write two or more rates, ascending, such as [\"64kbit\", \"384kbit\"]";
                    return Err(Invalid::new("between", message));
                }
                if dch.is_none_or(|dch| !between.contains(&dch)) {
                    let message =
                        "the channel must start with one of these rates: set it as the channel's `dch`";
                    return Err(Invalid::new("between", message));
                }
                if below >= above {
                    let message = format!(
                        "must be less than `above` ({above}), not {below}: the channel would switch back and forth"
                    );
                    return Err(Invalid::new("below", message));
                }
                Ok(())
            }
        }
    }
}

/// Rate switching of one channel.
pub(super) struct RateSwitch {
    config: Switching,
    state: State,
}

enum State {
    /// Number of scheduled changes made so far.
    Scheduled { made: usize },
    /// Times since which the occupancy has been above or below its threshold.
    Watching { above: Option<Instant>, below: Option<Instant> },
    /// A change has been decided.
    Changing { to: Dch, at: Instant },
}

impl RateSwitch {
    pub(super) fn new(config: Switching, now: Instant) -> Self {
        let state = match &config {
            Switching::Scheduled { changes } => {
                State::Scheduled { made: changes.partition_point(|change| Instant::ZERO + change.at < now) }
            }
            Switching::Never {} | Switching::ByOccupancy { .. } => {
                State::Watching { above: None, below: None }
            }
        };
        Self { config, state }
    }

    /// Updates the occupancy. `waiting` is the number of bytes that wait now, `rate` the current rate.
    pub(super) fn observe(&mut self, now: Instant, waiting: u64, rate: Option<Dch>) {
        let Switching::ByOccupancy { between, above, below, .. } = &self.config else { return };
        let State::Watching { above: since_above, below: since_below } = &mut self.state else { return };
        let faster = rate < between.last().copied();
        let slower = rate > between.first().copied();
        let since = |holds: bool, since: Option<Instant>| holds.then(|| since.unwrap_or(now));
        *since_above = since(faster && waiting > above.as_bytes(), *since_above);
        *since_below = since(slower && waiting <= below.as_bytes(), *since_below);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match (&self.config, &self.state) {
            (Switching::Scheduled { changes }, State::Scheduled { made }) => {
                changes.get(*made).map(|change| Instant::ZERO + change.at)
            }
            (Switching::ByOccupancy { above_for, below_for, .. }, State::Watching { above, below }) => {
                let expiries = [above.map(|since| since + *above_for), below.map(|since| since + *below_for)];
                expiries.into_iter().flatten().min()
            }
            (_, State::Changing { at, .. }) => Some(*at),
            _ => None,
        }
    }

    /// Returns the rate to change to now. `rate` is the current rate.
    pub(super) fn take_due(&mut self, now: Instant, rate: Option<Dch>) -> Option<Dch> {
        let mut due = None;
        while self.next_deadline().is_some_and(|at| at <= now) {
            match (&self.config, &mut self.state) {
                (Switching::Scheduled { changes }, State::Scheduled { made }) => {
                    due = Some(changes[*made].dch);
                    *made += 1;
                }
                (Switching::ByOccupancy { between, takes, above_for, .. }, State::Watching { above, .. }) => {
                    let is_faster = above.is_some_and(|since| since + *above_for <= now);
                    let next = if is_faster {
                        between.iter().find(|other| Some(**other) > rate)
                    } else {
                        between.iter().rev().find(|other| Some(**other) < rate)
                    };
                    self.state = match next {
                        Some(next) => State::Changing { to: *next, at: now + *takes },
                        None => State::Watching { above: None, below: None },
                    };
                }
                (_, State::Changing { to: decided, .. }) => {
                    due = Some(*decided);
                    self.state = State::Watching { above: None, below: None };
                }
                _ => break,
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn by_occupancy() -> Switching {
        Switching::ByOccupancy {
            between: vec![Dch::Kbit64, Dch::Kbit128, Dch::Kbit384],
            above: Size::bytes(1000),
            above_for: ms(100),
            below: Size::bytes(10),
            below_for: ms(2000),
            takes: ms(500),
        }
    }

    #[test]
    fn sustained_high_occupancy_raises_rate_stepwise() {
        let mut rate_switch = RateSwitch::new(by_occupancy(), Instant::ZERO);
        let mut rate = Some(Dch::Kbit64);
        let mut changes = Vec::new();
        for millis in 0..3000 {
            rate_switch.observe(at(millis), 5000, rate);
            if let Some(to) = rate_switch.take_due(at(millis), rate) {
                changes.push((millis, to));
                rate = Some(to);
            }
        }
        // After the first change, the occupancy counts as above the threshold only from the next observation
        // on.
        assert_eq!(changes, [(600, Dch::Kbit128), (1201, Dch::Kbit384)]);
        assert_eq!(rate_switch.next_deadline(), None, "no faster rate exists");
    }

    #[test]
    fn occupancy_dip_restarts_time_to_trigger() {
        let mut rate_switch = RateSwitch::new(by_occupancy(), Instant::ZERO);
        let rate = Some(Dch::Kbit64);
        rate_switch.observe(at(0), 1001, rate);
        rate_switch.observe(at(90), 1000, rate);
        rate_switch.observe(at(95), 1001, rate);
        assert_eq!(rate_switch.next_deadline(), Some(at(195)));
    }

    #[test]
    fn empty_buffer_lowers_rate_stepwise_to_slowest() {
        let mut rate_switch = RateSwitch::new(by_occupancy(), Instant::ZERO);
        let mut rate = Some(Dch::Kbit384);
        let mut changes = Vec::new();
        rate_switch.observe(at(0), 0, rate);
        while let Some(deadline) = rate_switch.next_deadline() {
            if let Some(to) = rate_switch.take_due(deadline, rate) {
                changes.push((deadline, to));
                rate = Some(to);
            }
            rate_switch.observe(deadline, 10, rate);
        }
        assert_eq!(changes, [(at(2500), Dch::Kbit128), (at(5000), Dch::Kbit64)]);
    }

    #[test]
    fn scheduled_rates_apply_and_past_changes_are_skipped() {
        let changes =
            vec![Change { at: ms(100), dch: Dch::Kbit64 }, Change { at: ms(200), dch: Dch::Kbit384 }];
        let schedule = Switching::Scheduled { changes };
        let mut rate_switch = RateSwitch::new(schedule.clone(), Instant::ZERO);
        assert_eq!(rate_switch.take_due(at(99), None), None);
        assert_eq!(rate_switch.take_due(at(100), None), Some(Dch::Kbit64));
        assert_eq!(rate_switch.next_deadline(), Some(at(200)));
        assert_eq!(rate_switch.take_due(at(900), None), Some(Dch::Kbit384));
        assert_eq!(rate_switch.next_deadline(), None);
        assert_eq!(RateSwitch::new(schedule, at(150)).next_deadline(), Some(at(200)));
    }

    #[test]
    fn invalid_rate_switching_settings_are_rejected() {
        let refused = |switching: &Switching, dch| switching.validate(dch).map_err(|invalid| invalid.key);
        assert_eq!(refused(&by_occupancy(), Some(Dch::Kbit128)), Ok(()));
        assert_eq!(refused(&by_occupancy(), None), Err("between".to_owned()));
        let Switching::ByOccupancy { between, above, above_for, below_for, takes, .. } = by_occupancy()
        else {
            return;
        };
        let same = Switching::ByOccupancy { between, above, above_for, below: above, below_for, takes };
        assert_eq!(refused(&same, Some(Dch::Kbit64)), Err("below".to_owned()));
        assert_eq!(refused(&Switching::Scheduled { changes: Vec::new() }, None), Err("changes".to_owned()));
    }
}
