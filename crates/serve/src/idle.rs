//! Selects the session that is reset when a limit is reached.

use airwire::time::{Duration, Instant};

/// Finds the session that has been idle for longest. After each scan, it computes the earliest time of the
/// next result, and does not scan the sessions before that time.
#[derive(Debug)]
pub(crate) struct IdleSelector {
    /// Minimum idle time of a session that can be selected.
    min_idle: Duration,
    /// No session can have been idle for long enough before this time.
    not_before: Instant,
}

impl IdleSelector {
    pub(crate) fn new(min_idle: Duration) -> Self {
        Self { min_idle, not_before: Instant::ZERO }
    }

    /// Returns the session that has been idle for longest, if it was idle for long enough. `sessions`
    /// contains all sessions, each with the time at which it last moved data.
    pub(crate) fn idlest(
        &mut self,
        now: Instant,
        sessions: impl Iterator<Item = (u64, Instant)>,
    ) -> Option<u64> {
        if now < self.not_before {
            return None;
        }
        let (number, last_activity) = sessions.min_by_key(|(number, time)| (*time, *number))?;
        // All other sessions moved data later than this one.
        self.not_before = last_activity + self.min_idle;
        (self.not_before <= now).then_some(number)
    }

    /// Returns the earliest time at which [`IdleSelector::idlest`] can succeed.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idlest_session_is_selected_after_minimum_idle_time() {
        let at = Instant::from_secs;
        let mut selector = IdleSelector::new(Duration::from_secs(5));
        let mut idlest = |now, sessions: &[(u64, Instant)]| {
            (selector.idlest(at(now), sessions.iter().copied()), selector.next_deadline())
        };
        let sessions = [(1, at(10)), (2, at(7)), (3, at(12))];
        assert_eq!(idlest(11, &sessions), (None, at(12)));
        // Number 2 has moved data in the meantime.
        let sessions = [(1, at(10)), (2, at(11)), (3, at(12))];
        assert_eq!(idlest(12, &sessions), (None, at(15)));
        assert_eq!(idlest(14, &[(1, at(0))]).0, None, "no session is scanned before the deadline");
        assert_eq!(idlest(15, &sessions).0, Some(1));
        assert_eq!(idlest(15, &[]).0, None);
    }
}
