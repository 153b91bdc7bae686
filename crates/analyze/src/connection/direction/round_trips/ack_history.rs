//! The ACKs that a sender far from the capture point has received.

/// The part of the receiver's state that a sender knows from an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AckState {
    /// The time when the ACK passed the capture point.
    pub(super) at: i64,
    pub(super) una: u64,
    /// The right edge of the receiver's window. `None` if its scale is unknown.
    pub(super) edge: Option<u64>,
}

/// The most recent ACKs. An ACK takes effect when it has reached the sender and the data that it triggers has
/// come back to the capture point. The entries cover one round trip, so with 32 entries their times are exact
/// to 1/28 of the round trip.
#[derive(Clone, Debug)]
pub(super) struct AckHistory<const ENTRIES: usize> {
    entries: [AckState; ENTRIES],
    first: u8,
    len: u8,
    effective: Option<AckState>,
}

impl<const ENTRIES: usize> Default for AckHistory<ENTRIES> {
    fn default() -> Self {
        Self { entries: [AckState::default(); ENTRIES], first: 0, len: 0, effective: None }
    }
}

impl<const ENTRIES: usize> AckHistory<ENTRIES> {
    /// Adds an ACK. `lag` is the time until it takes effect.
    pub(super) fn add(&mut self, state: AckState, lag: i64) {
        let newest = (usize::from(self.first) + usize::from(self.len) + ENTRIES - 1) % ENTRIES;
        let known = &mut self.entries[newest];
        if self.len > 0 && state.at - known.at < lag / (ENTRIES as i64 - 4) {
            (known.una, known.edge) = (state.una, state.edge);
            return;
        }
        if usize::from(self.len) == ENTRIES {
            self.effective = Some(self.entries[usize::from(self.first)]);
            self.remove_first();
        }
        let next = (usize::from(self.first) + usize::from(self.len)) % ENTRIES;
        self.entries[next] = state;
        self.len += 1;
    }

    fn remove_first(&mut self) {
        self.first = (self.first + 1) % ENTRIES as u8;
        self.len -= 1;
    }

    /// Returns the newest ACK that passed the capture point at `time` or earlier.
    pub(super) fn at(&mut self, time: i64) -> Option<AckState> {
        while self.len > 0 && self.entries[usize::from(self.first)].at <= time {
            self.effective = Some(self.entries[usize::from(self.first)]);
            self.remove_first();
        }
        self.effective
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ack_takes_effect_after_lag() {
        let mut history = AckHistory::<32>::default();
        let state = |at: i64| AckState { at, una: at as u64, edge: None };
        for at in 1..=100 {
            history.add(state(at), 28);
        }
        // The oldest entries were displaced and count as effective.
        let found = [10, 90, 95, 1000, 1000].map(|time| history.at(time).map(|state| state.una));
        assert_eq!(found, [68, 90, 95, 100, 100].map(Some));
        assert_eq!(AckHistory::<32>::default().at(5), None);
    }

    #[test]
    fn close_acks_share_an_entry() {
        let mut history = AckHistory::<32>::default();
        for at in 1..=28_000 {
            history.add(AckState { at, una: at as u64, edge: Some(at as u64 + 9) }, 28_000);
        }
        let known = history.at(14_000).unwrap();
        assert!((14_000..15_001).contains(&known.una), "{known:?}");
    }
}
