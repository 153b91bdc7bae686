//! Deadlines of all stages of a path.

use airwire::time::{Duration, Instant};

use crate::packet::{Direction, PerDirection};

/// Deadlines after each stage's last call. Polling all stages at each event would cost more than the events.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// The deadline of each stage, or `NEVER`. The whole list is scanned at each event, and plain numbers
    /// compare faster than options.
    of: Vec<Instant>,
    /// The deadline that each stage asks for. `of` has the earlier of this deadline and the stage's
    /// departures.
    own: Vec<Instant>,
    /// For each stage, the next departure from the chains that end there, by direction.
    departures: Vec<PerDirection<Instant>>,
    /// The earliest deadline at the last call of `settle`, or an earlier one that was set later.
    next: Instant,
    /// Whether the deadline at `next` has become later since then.
    is_stale: bool,
}

/// The latest time that can be represented, after 584 years. A deadline at this time is ignored.
const NEVER: Instant = Instant::from_nanos(Duration::MAX.as_nanos());
/// The latest deadline that is not ignored.
const LAST: Instant = Instant::from_nanos(NEVER.as_nanos() - 1);

impl Deadlines {
    pub(super) fn new(of: impl Iterator<Item = Option<Instant>>) -> Self {
        let own: Vec<_> = of.map(|deadline| deadline.unwrap_or(NEVER)).collect();
        let departures = vec![PerDirection { down: NEVER, up: NEVER }; own.len()];
        let mut deadlines = Self { of: own.clone(), own, departures, next: NEVER, is_stale: true };
        deadlines.settle();
        deadlines
    }

    pub(super) fn set(&mut self, stage: usize, deadline: Option<Instant>) {
        self.own[stage] = deadline.unwrap_or(NEVER);
        self.combine(stage);
    }

    /// Sets the next departure of a chain that ends at this stage.
    pub(super) fn set_departure(&mut self, stage: usize, direction: Direction, at: Option<Instant>) {
        self.departures[stage][direction] = at.unwrap_or(NEVER);
        self.combine(stage);
    }

    fn combine(&mut self, stage: usize) {
        let PerDirection { down, up } = self.departures[stage];
        let deadline = self.own[stage].min(down).min(up);
        let former = std::mem::replace(&mut self.of[stage], deadline);
        self.is_stale |= former == self.next;
        self.next = self.next.min(deadline);
    }

    /// Returns whether packets leave a chain that ends at this stage.
    pub(super) fn has_departures(&self, stage: usize, direction: Direction, now: Instant) -> bool {
        self.departures[stage][direction] <= now
    }

    /// Returns whether the stage itself has something to do.
    pub(super) fn is_due(&self, stage: usize, now: Instant) -> bool {
        self.own[stage] <= now && self.own[stage] < NEVER
    }

    /// Finds the earliest deadline, after all packets have stopped at a stage.
    pub(super) fn settle(&mut self) {
        if !self.is_stale {
            return;
        }
        self.is_stale = false;
        self.next = NEVER;
        for deadline in &self.of {
            if *deadline < self.next {
                self.next = *deadline;
            }
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        (self.next < NEVER).then_some(self.next)
    }

    /// The first stage, starting at this index, whose deadline has passed.
    pub(super) fn due(&self, from: usize, now: Instant) -> Option<usize> {
        let now = now.min(LAST);
        let due = self.of.get(from..)?.iter().position(|deadline| *deadline <= now)?;
        Some(from + due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_stages_are_found_in_path_order() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut deadlines = Deadlines::new([None, Some(at(3)), None, Some(at(2)), Some(at(3))].into_iter());
        assert_eq!(deadlines.next(), Some(at(2)));
        assert_eq!(deadlines.due(0, at(1)), None);
        assert_eq!(deadlines.due(0, at(2)), Some(3));
        assert_eq!(deadlines.due(0, at(3)), Some(1));
        assert_eq!(deadlines.due(2, at(3)), Some(3));
        assert_eq!(deadlines.due(4, at(3)), Some(4));
        assert_eq!(deadlines.due(5, at(3)), None);
        [1, 3, 4].into_iter().for_each(|stage| deadlines.set(stage, None));
        deadlines.settle();
        assert_eq!(deadlines.next(), None);
        assert_eq!(deadlines.due(0, NEVER), None);
    }

    #[test]
    fn next_follows_earlier_and_later_deadlines() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut deadlines = Deadlines::new([Some(at(5)), Some(at(7)), None].into_iter());
        let mut next_after = |changes: &[(usize, Option<Instant>)]| {
            changes.iter().for_each(|(stage, deadline)| deadlines.set(*stage, *deadline));
            deadlines.settle();
            deadlines.next()
        };
        assert_eq!(next_after(&[(2, Some(at(9)))]), Some(at(5)));
        assert_eq!(next_after(&[(2, Some(at(3)))]), Some(at(3)));
        assert_eq!(next_after(&[(2, Some(at(8)))]), Some(at(5)));
        assert_eq!(next_after(&[(1, Some(at(2))), (1, None)]), Some(at(5)));
        assert_eq!(next_after(&[(0, Some(at(1))), (0, Some(at(9)))]), Some(at(8)));
        assert_eq!(next_after(&[(0, None), (1, None), (2, None)]), None);
    }
}
