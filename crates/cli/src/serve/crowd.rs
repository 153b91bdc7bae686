//! Who gives way when every place is taken.

use airwire::time::{Duration, Instant};

/// Finds the connection that has been idle for longest, among many, and not more often than it can succeed.
#[derive(Debug)]
pub(super) struct Crowd {
    /// Whoever has moved within this time keeps his place.
    spared: Duration,
    /// Nobody can be idle for long enough before.
    not_before: Instant,
}

impl Crowd {
    pub(super) fn new(spared: Duration) -> Self {
        Self { spared, not_before: Instant::ZERO }
    }

    /// The session that has been idle for longest, if that is long enough. `moved` are all of them, each with when it last
    /// moved something.
    pub(super) fn idlest(
        &mut self,
        now: Instant,
        moved: impl Iterator<Item = (u64, Instant)>,
    ) -> Option<u64> {
        if now < self.not_before {
            return None;
        }
        let (number, moved_at) = moved.min_by_key(|(number, moved_at)| (*moved_at, *number))?;
        // Whoever moves later than that is idle later, too.
        self.not_before = moved_at + self.spared;
        (self.not_before <= now).then_some(number)
    }

    /// When it is worth asking again.
    pub(super) fn next_deadline(&self) -> Instant {
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idlest_gives_way_and_only_after_its_time() {
        let at = Instant::from_secs;
        let mut crowd = Crowd::new(Duration::from_secs(5));
        let moved = [(1, at(10)), (2, at(7)), (3, at(12))];
        assert_eq!(crowd.idlest(at(11), moved.into_iter()), None);
        assert_eq!(crowd.next_deadline(), at(12));
        // Number 2 has moved meanwhile.
        let moved = [(1, at(10)), (2, at(11)), (3, at(12))];
        assert_eq!(crowd.idlest(at(12), moved.into_iter()), None);
        assert_eq!(crowd.next_deadline(), at(15));
        assert_eq!(crowd.idlest(at(14), std::iter::once((1, at(0)))), None, "it is not even asked");
        assert_eq!(crowd.idlest(at(15), moved.into_iter()), Some(1));
        assert_eq!(crowd.idlest(at(15), std::iter::empty()), None);
    }
}
