//! Transmissions in flight in sending order, for time-based detectors.
//!
//! Transmissions that were delivered, declared lost or replaced by a retransmission are removed only when
//! they reach an end of the list. So the cost per transmission does not depend on the number outstanding.

use std::collections::VecDeque;

use airwire::time::Instant;

use crate::flight::{Flight, SegmentState, Sent};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OrderedTransmission {
    pub(super) sent_at: Instant,
    pub(super) start: u64,
}

impl OrderedTransmission {
    pub(super) fn of(sent: &Sent) -> Self {
        Self { sent_at: sent.last_sent, start: sent.start }
    }

    /// Returns the segment if this is its latest transmission and its state is still unknown.
    pub(super) fn in_flight(self, flight: &Flight) -> Option<&Sent> {
        let sent = flight.segment_at(self.start)?;
        (is_in_flight(sent) && Self::of(sent) == self).then_some(sent)
    }
}

pub(super) fn is_in_flight(sent: &Sent) -> bool {
    match sent.state {
        SegmentState::InFlight | SegmentState::Resent | SegmentState::InDoubt => true,
        SegmentState::Lost | SegmentState::Sacked => false,
    }
}

#[derive(Debug, Default)]
pub(super) struct SendOrder(VecDeque<OrderedTransmission>);

impl SendOrder {
    pub(super) fn push(&mut self, copy: OrderedTransmission) {
        self.0.push_back(copy);
    }

    /// Returns the earliest transmission in flight.
    pub(super) fn first<'a>(&mut self, flight: &'a Flight) -> Option<(OrderedTransmission, &'a Sent)> {
        // An idle connection needs no memory here.
        if flight.is_empty() {
            self.0 = VecDeque::new();
        }
        while let Some(copy) = self.0.front().copied() {
            if let Some(sent) = copy.in_flight(flight) {
                return Some((copy, sent));
            }
            self.0.pop_front();
        }
        None
    }

    /// Returns the latest transmission in flight.
    pub(super) fn last(&mut self, flight: &Flight) -> Option<OrderedTransmission> {
        while let Some(copy) = self.0.back().copied() {
            if copy.in_flight(flight).is_some() {
                return Some(copy);
            }
            self.0.pop_back();
        }
        None
    }

    pub(super) fn pop_first(&mut self) {
        self.0.pop_front();
    }
}
