//! Helpers for the tests of detectors with an adaptive DupThresh.

use crate::recovery::Ack;
use crate::recovery::testing::{BareSender, RTT, SMSS};

/// Returns a sender with twenty segments in flight.
pub(super) fn under_way(recipe: &str) -> BareSender {
    let mut sender = BareSender::new(recipe);
    sender.rwnd = 1000;
    sender.under_way(20.0, 2.0, RTT)
}

/// Delivers the first unacknowledged segment after `by` later ones, and a D-SACK if it was retransmitted.
/// Returns whether the segment was retransmitted.
pub(super) fn reorder(sender: &mut BareSender, by: u32) -> bool {
    let una = sender.flight.una();
    let resent = sender.wait(RTT).dupacks(by).contains('r');
    sender.ack(una / SMSS + u64::from(by) + 1);
    if resent {
        report(sender, una);
    }
    sender.settle(20.0);
    resent
}

/// Delivers a D-SACK for the segment that begins at `start`.
pub(super) fn report(sender: &mut BareSender, start: u64) {
    let dsack = Some((start, start + SMSS));
    sender.receive(Ack { dsack, ..Ack::default() }, sender.una(), &[]);
}

/// Returns the number of duplicate ACKs at which a lost segment is now detected.
pub(super) fn dup_thresh(sender: &mut BareSender) -> usize {
    sender.wait(RTT);
    let count = (1..=50).find(|_| sender.dupacks(1).contains('r'));
    sender.settle(20.0);
    count.expect("no fast retransmission after 50 duplicate ACKs")
}
