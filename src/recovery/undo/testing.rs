//! Helpers for the tests of all answers to "Was that a mistake?".

use airwire::time::Duration;

use crate::recovery::testing::BareSender;

pub(super) const RTT: Duration = Duration::from_millis(100);
/// The timestamp of the segments that [`under_way`] sends.
pub(super) const ORIGINAL: u32 = 1000;

/// Returns a sender with ten outstanding segments, cwnd 10 and ssthresh 8.
pub(super) fn under_way(recipe: &str) -> BareSender {
    let sender = BareSender::new(recipe).under_way(10.0, 8.0, RTT);
    assert_eq!(sender.now.as_millis() as u32, ORIGINAL);
    sender
}

/// Returns cwnd and ssthresh.
pub(super) fn window(sender: &BareSender) -> (f64, f64) {
    (sender.cc().cwnd, sender.cc().ssthresh)
}

/// Returns the number of undone reductions.
pub(super) fn undone(sender: &BareSender) -> u64 {
    sender.recovery.counters().undone
}
