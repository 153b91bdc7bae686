//! When each stage of a path wants to be called.

use airwire::time::{Duration, Instant};

/// As of each stage's last call: asking all of them at each event would cost more than the events.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// One for each stage; `NEVER` where there is none. They are looked through at each event, and plain numbers are
    /// compared fastest.
    of: Vec<Instant>,
    /// The earliest, as of the last time when every packet had come to rest.
    next: Instant,
}

/// After 584 years. A stage that really means this instant is not called at it.
const NEVER: Instant = Instant::from_nanos(Duration::MAX.as_nanos());

impl Deadlines {
    pub(super) fn new(of: impl Iterator<Item = Option<Instant>>) -> Self {
        let of = of.map(|deadline| deadline.unwrap_or(NEVER)).collect();
        let mut deadlines = Self { of, next: NEVER };
        deadlines.settle();
        deadlines
    }

    pub(super) fn set(&mut self, stage: usize, deadline: Option<Instant>) {
        self.of[stage] = deadline.unwrap_or(NEVER);
    }

    /// Every packet has come to rest: looks for the earliest.
    pub(super) fn settle(&mut self) {
        self.next = NEVER;
        for deadline in &self.of {
            if *deadline < self.next {
                self.next = *deadline;
            }
        }
    }

    /// The earliest.
    pub(super) fn next(&self) -> Option<Instant> {
        (self.next < NEVER).then_some(self.next)
    }

    /// The first stage from this index on whose deadline has come.
    pub(super) fn due(&self, from: usize, now: Instant) -> Option<usize> {
        let later = self.of.get(from..)?;
        let due = later.iter().position(|deadline| *deadline <= now && *deadline < NEVER)?;
        Some(from + due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_due_in_their_order_and_those_without_a_deadline_never() {
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
}
