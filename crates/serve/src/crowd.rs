//! Selects the session that is reset when a limit is reached.

use airwire::time::{Duration, Instant};

/// Finds the session that has been idle for longest. Does not scan the sessions before one of them can have
/// been idle for long enough.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// Minimum idle time of a session that can be selected.
    spared: Duration,
    /// No session can have been idle for long enough before this time.
    not_before: Instant,
}

impl Crowd {
    pub(crate) fn new(spared: Duration) -> Self {
        Self { spared, not_before: Instant::ZERO }
    }

    /// Returns the session that has been idle for longest, if it was idle for long enough. `moved` contains
    /// all sessions, each with the time at which it last moved data.
    pub(crate) fn idlest(
        &mut self,
        now: Instant,
        moved: impl Iterator<Item = (u64, Instant)>,
    ) -> Option<u64> {
        if now < self.not_before {
            return None;
        }
        let (number, moved_at) = moved.min_by_key(|(number, moved_at)| (*moved_at, *number))?;
        // All other sessions moved data later than this one.
        self.not_before = moved_at + self.spared;
        (self.not_before <= now).then_some(number)
    }

    /// Returns the earliest time at which [`Crowd::idlest`] can succeed.
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
        let mut crowd = Crowd::new(Duration::from_secs(5));
        let moved = [(1, at(10)), (2, at(7)), (3, at(12))];
        assert_eq!(crowd.idlest(at(11), moved.into_iter()), None);
        assert_eq!(crowd.next_deadline(), at(12));
        // Number 2 has moved data in the meantime.
        let moved = [(1, at(10)), (2, at(11)), (3, at(12))];
        assert_eq!(crowd.idlest(at(12), moved.into_iter()), None);
        assert_eq!(crowd.next_deadline(), at(15));
        assert_eq!(
            crowd.idlest(at(14), std::iter::once((1, at(0)))),
            None,
            "no session is scanned before the deadline"
        );
        assert_eq!(crowd.idlest(at(15), moved.into_iter()), Some(1));
        assert_eq!(crowd.idlest(at(15), std::iter::empty()), None);
    }
}
