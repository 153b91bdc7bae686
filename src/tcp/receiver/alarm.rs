//! The receiver's reordering alarm (Lai, Leung, Li, *Design and analysis of TCP AIMD in wireless networks*,
//! Lai et al. 2013, §III B).
//!
//! "Whenever a TCP receiver detects an arrived packet reordered by more than three packets, it infers that
//! such packet reordering will lead to a window reduction at the sender side, and thus alarms its TCP sender
//! via a TCP option." The alarm counts segments with new data that arrive after three segments with higher
//! sequence numbers. Every ACK with enough option space carries the running count, so lost ACKs lose no
//! information:
//!
//! ```text
//!     0        1        2        3        4        5
//! +--------+--------+--------+--------+--------+--------+
//! |Kind=254| Len=6  |   ExID = 0x7178 |      count      |
//! +--------+--------+--------+--------+--------+--------+
//! ```
//!
//! A retransmission of a lost segment fills its hole in the same way. Timestamps distinguish the two: a
//! retransmission was sent later than the segments above it, an overtaken segment earlier. Equal timestamps
//! indicate one burst, because a retransmission is sent one round trip later. Without timestamps nothing is
//! counted.
//!
//! Only the three highest segments are stored, so that no peer can make the list long. A retransmission that
//! is itself overtaken by three newer segments therefore counts, because it was reordered too.

#[derive(Debug, Default)]
pub(super) struct ReorderingAlarm {
    count: u16,
    /// The highest segments that arrived out of order, highest first.
    ahead: [Option<Ahead>; 3],
}

#[derive(Clone, Copy, Debug)]
struct Ahead {
    offset: u64,
    tsval: u32,
}

impl ReorderingAlarm {
    /// Returns the running count, which wraps.
    pub(super) const fn count(&self) -> u16 {
        self.count
    }

    /// Records new data at `offset`, where `next` was expected.
    pub(super) fn on_segment(&mut self, offset: u64, next: u64, tsval: u32) {
        let overtook = |ahead: &Ahead| ahead.offset > offset && ahead.tsval.wrapping_sub(tsval) as i32 >= 0;
        if self.ahead.iter().all(|ahead| ahead.as_ref().is_some_and(overtook)) {
            self.count = self.count.wrapping_add(1);
        }
        if offset > next {
            let place = self.ahead.iter().position(|ahead| ahead.is_none_or(|ahead| ahead.offset < offset));
            if let Some(place) = place {
                self.ahead[place..].rotate_right(1);
                self.ahead[place] = Some(Ahead { offset, tsval });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the count after `arrivals`: one-byte segments as (number, timestamp), the first expected
    /// number being 1.
    fn count(arrivals: &[(u64, u32)]) -> u16 {
        let (mut alarm, mut held, mut next) = (ReorderingAlarm::default(), Vec::new(), 1);
        for (offset, tsval) in arrivals {
            alarm.on_segment(*offset, next, *tsval);
            held.push(*offset);
            while held.contains(&next) {
                next += 1;
            }
        }
        alarm.count()
    }

    #[test]
    fn segment_overtaken_by_three_counts_as_reordered() {
        assert_eq!(count(&[(1, 10), (3, 12), (4, 13), (5, 14), (2, 11), (6, 15)]), 1);
        assert_eq!(count(&[(1, 10), (3, 10), (4, 10), (5, 10), (2, 10)]), 1, "all in one burst");
        assert_eq!(count(&[(3, 12), (4, 13), (5, 14), (2, 11), (1, 10)]), 2, "two segments were overtaken");
    }

    #[test]
    fn segment_overtaken_by_two_does_not_count() {
        assert_eq!(count(&[(1, 10), (3, 12), (4, 13), (2, 11), (5, 14), (6, 15)]), 0);
    }

    #[test]
    fn retransmission_does_not_count_as_reordered() {
        assert_eq!(count(&[(1, 10), (3, 12), (4, 13), (5, 14), (2, 111), (6, 15)]), 0);
        // Two holes; the upper one is the overtaken segment.
        assert_eq!(count(&[(1, 10), (3, 12), (5, 14), (6, 15), (7, 16), (2, 111), (4, 13)]), 1);
    }

    #[test]
    fn in_order_segments_do_not_count_as_overtaking() {
        assert_eq!(count(&[(1, 10), (2, 11), (3, 12), (4, 13), (6, 15), (5, 14), (7, 16)]), 0);
    }

    #[test]
    fn order_of_overtaking_segments_does_not_matter() {
        assert_eq!(count(&[(1, 10), (5, 14), (3, 12), (4, 13), (2, 11)]), 1);
    }

    #[test]
    fn timestamp_comparison_handles_wrap() {
        assert_eq!(count(&[(3, u32::MAX), (4, 0), (5, 1), (2, u32::MAX - 1)]), 1);
        assert_eq!(count(&[(3, u32::MAX), (4, 0), (5, 1), (2, 90)]), 0);
    }
}
