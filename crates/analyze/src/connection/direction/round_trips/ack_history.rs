//! The ACKs that a sender far from the capture point has received.

use std::collections::VecDeque;

use crate::compact::heap_of_vec;

/// The part of the receiver's state that a sender knows from an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AckState {
    /// The time when the ACK passed the capture point.
    pub(super) at: i64,
    pub(super) una: u64,
    /// The bytes above `una` that are SACKed.
    pub(super) sacked: u32,
    /// The receiver's timestamp, which the sender echoes, or 0.
    pub(super) tsval: u32,
    /// The number of ACKs so far.
    pub(super) acks: u32,
    /// The round-trip time in microseconds that the sender measures with this ACK.
    pub(super) rtt: u32,
    /// The right edge of the receiver's window. `None` if its scale is unknown.
    pub(super) edge: Option<u64>,
}

/// The most recent ACKs. An ACK takes effect when it has reached the sender and the data that it triggers has
/// come back to the capture point. The entries cover one round trip, so with 32 entries their times are exact
/// to 1/28 of the round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct AckHistory<const ENTRIES: usize> {
    entries: VecDeque<AckState>,
    effective: Option<AckState>,
}

impl<const ENTRIES: usize> AckHistory<ENTRIES> {
    /// Adds an ACK. `lag` is the time until it takes effect.
    pub(super) fn add(&mut self, state: AckState, lag: i64) {
        if let Some(newest) = self.entries.back_mut()
            && state.at - newest.at < lag / (ENTRIES as i64 - 4)
        {
            *newest = AckState { at: newest.at, ..state };
            return;
        }
        if self.entries.len() == ENTRIES {
            self.effective = self.entries.pop_front();
        }
        self.entries.push_back(state);
    }

    /// Returns the newest ACK that passed the capture point at `time` or earlier.
    pub(super) fn at(&mut self, time: i64) -> Option<AckState> {
        self.effective_while(|_, ack| ack.at <= time)
    }

    /// Returns the newest ACK that the sender had received when it echoed this timestamp. `time` chooses from
    /// the ACKs with the same timestamp.
    pub(super) fn echoed(&mut self, echo: u32, time: i64) -> Option<AckState> {
        self.effective_while(|effective, ack| match echo.wrapping_sub(ack.tsval) as i32 {
            0 => ack.at <= time || effective.is_none_or(|known| known.tsval != ack.tsval),
            later => later > 0,
        })
    }

    fn effective_while(
        &mut self,
        is_effective: impl Fn(&Option<AckState>, &AckState) -> bool,
    ) -> Option<AckState> {
        while self.entries.front().is_some_and(|oldest| is_effective(&self.effective, oldest)) {
            self.effective = self.entries.pop_front();
        }
        self.effective
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        heap_of_vec::<AckState>(self.entries.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ack_takes_effect_after_lag() {
        let mut history = AckHistory::<32>::default();
        let state = |at: i64| AckState { at, una: at as u64, ..AckState::default() };
        for at in 1..=100 {
            history.add(state(at), 28);
        }
        // The oldest entries were displaced and count as effective.
        let found = [10, 90, 95, 1000, 1000].map(|time| history.at(time).map(|state| state.una));
        assert_eq!(found, [68, 90, 95, 100, 100].map(Some));
        assert_eq!(AckHistory::<32>::default().at(5), None);
    }

    #[test]
    fn echoed_timestamp_selects_ack() {
        let mut history = AckHistory::<32>::default();
        for (at, tsval) in [(10, 1), (20, 2), (21, 2), (30, 3)] {
            history.add(AckState { at, una: at as u64, tsval, ..AckState::default() }, 0);
        }
        let found =
            [(1, 99), (2, 20), (2, 21), (3, 0)].map(|(echo, time)| history.echoed(echo, time).unwrap().una);
        assert_eq!(found, [10, 20, 21, 30]);
    }

    #[test]
    fn close_acks_share_an_entry() {
        let mut history = AckHistory::<32>::default();
        for at in 1..=28_000 {
            history.add(
                AckState { at, una: at as u64, edge: Some(at as u64 + 9), ..AckState::default() },
                28_000,
            );
        }
        let known = history.at(14_000).unwrap();
        assert!((14_000..15_001).contains(&known.una), "{known:?}");
    }
}
