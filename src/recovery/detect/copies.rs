//! Is a copy still in the path? Counts what left and what arrived, for detectors that look for lost copies.
//!
//! Every segment that arrives out of order causes one ACK (RFC 5681 §4.2), and so does one that fills a hole. When
//! more ACKs have come than segments left before the copy, something that left after it has arrived. ACKs that are
//! lost or held back make this later, not wrong.

use std::collections::BTreeMap;

use crate::recovery::{Ack, Departure, Phase, Transmission, View};

#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Segments in the path when counting began, and all that have left since.
    sent: u64,
    /// ACKs since then, duplicate or new.
    heard: u64,
    /// SND.UNA and dupacks when an ACK was counted last: the ACK that begins an event is not counted twice.
    counted: (u64, u32),
    /// The newest copy of each segment sent again, by its first offset.
    left: BTreeMap<u64, Left>,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    /// `sent` when it left.
    sent: u64,
    /// SND.HIGH when it left.
    high: u64,
}

/// What is known about the newest copy of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CopyState {
    /// How many more ACKs have come than the segments that left before it can have caused.
    pub(super) overtaken_by: u64,
    /// SND.HIGH when it left.
    pub(super) high: u64,
}

impl Copies {
    /// Counts from here on, with this many segments in the path.
    pub(super) fn begin(&mut self, in_path: u64) {
        *self = Self { sent: in_path, ..Self::default() };
    }

    /// A loss event begins, and counting with it. In the middle of another event the count goes on.
    pub(super) fn on_event(&mut self, view: &View<'_>) {
        if matches!(view.cc.phase(), Phase::Open | Phase::Reduced) {
            self.begin(all_but_the_head(view));
            self.heard = u64::from(view.cc.dupacks());
            self.counted = (view.flight.una(), view.cc.dupacks());
        }
    }

    pub(super) fn on_sent(&mut self, view: &View<'_>, departure: &Departure) {
        if departure.kind != Transmission::New {
            // More ACKs than segments: the path duplicates, or the receiver makes them up.
            if self.heard > self.sent {
                (self.sent, self.heard) = (view.flight.outstanding().segments, 0);
            }
            self.left.insert(departure.start, Left { sent: self.sent, high: view.flight.max() });
        }
        self.sent += 1;
    }

    /// How many copies this ACK covers.
    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> u64 {
        let this = (view.flight.una(), view.cc.dupacks());
        if (ack.duplicate || ack.advances()) && this != self.counted {
            self.heard += 1;
            self.counted = this;
        }
        if !ack.advances() || self.left.is_empty() {
            return 0;
        }
        let above = self.left.split_off(&view.flight.una());
        std::mem::replace(&mut self.left, above).len() as u64
    }

    pub(super) fn get(&self, start: u64) -> Option<CopyState> {
        let Left { sent, high } = *self.left.get(&start)?;
        Some(CopyState { overtaken_by: self.heard.saturating_sub(sent), high })
    }

    /// The copy was judged lost: it is not in the path any more.
    pub(super) fn lost(&mut self, start: u64) {
        if self.left.remove(&start).is_some() {
            self.sent = self.sent.saturating_sub(1);
        }
    }
}

/// The highest right edge of a SACK block; 0 if there is none. With a scoreboard nothing need be counted.
pub(super) fn right_edge(view: &View<'_>) -> u64 {
    view.flight.sacked_ranges().last().map_or(0, |range| range.end)
}

/// Segments that can still cause a duplicate ACK when the first one is lost.
pub(super) fn all_but_the_head(view: &View<'_>) -> u64 {
    view.flight.outstanding().segments.saturating_sub(1)
}
