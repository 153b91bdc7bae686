//! Helpers for the tests of all answers to "Was that a mistake?".

use crate::recovery::testing::{BareSender, RTT};

/// The timestamp of the segments that [`under_way`] sends.
pub(super) const ORIGINAL: u32 = 1000;

/// Returns a sender with ten outstanding segments, cwnd 10 and ssthresh 8.
pub(super) fn under_way(recipe: &str) -> BareSender {
    let sender = BareSender::new(recipe).under_way(10.0, 8.0, RTT);
    assert_eq!(sender.now.as_millis() as u32, ORIGINAL);
    sender
}

/// Returns the number of undone reductions.
pub(super) fn undone(sender: &BareSender) -> u64 {
    sender.counters().undone
}
