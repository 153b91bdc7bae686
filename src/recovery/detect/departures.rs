//! Copies on their way, in the order in which they left: for detectors that go by time.
//!
//! Copies that were delivered, judged lost or sent again since are dropped when they come to an end of the list, so
//! that a copy costs the same however many are outstanding.

use std::collections::VecDeque;

use airwire::time::Instant;

use crate::flight::{Fate, Flight, Sent};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Departed {
    pub(super) sent_at: Instant,
    pub(super) start: u64,
}

impl Departed {
    pub(super) fn of(sent: &Sent) -> Self {
        Self { sent_at: sent.last_sent, start: sent.start }
    }

    /// The segment of which it is the newest copy, if it is not known what became of that.
    pub(super) fn on_its_way(self, flight: &Flight) -> Option<&Sent> {
        let sent = flight.segment_at(self.start)?;
        (is_on_its_way(sent) && Self::of(sent) == self).then_some(sent)
    }
}

pub(super) fn is_on_its_way(sent: &Sent) -> bool {
    match sent.fate {
        Fate::InFlight | Fate::Resent | Fate::InDoubt => true,
        Fate::Lost | Fate::Sacked => false,
    }
}

#[derive(Debug, Default)]
pub(super) struct Departures(VecDeque<Departed>);

impl Departures {
    pub(super) fn push(&mut self, copy: Departed) {
        self.0.push_back(copy);
    }

    /// The copy on its way that left first.
    pub(super) fn first<'a>(&mut self, flight: &'a Flight) -> Option<(Departed, &'a Sent)> {
        // An idle connection owns no list.
        if flight.is_empty() {
            self.0 = VecDeque::new();
        }
        while let Some(copy) = self.0.front().copied() {
            if let Some(sent) = copy.on_its_way(flight) {
                return Some((copy, sent));
            }
            self.0.pop_front();
        }
        None
    }

    /// The copy on its way that left last.
    pub(super) fn last(&mut self, flight: &Flight) -> Option<Departed> {
        while let Some(copy) = self.0.back().copied() {
            if copy.on_its_way(flight).is_some() {
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
