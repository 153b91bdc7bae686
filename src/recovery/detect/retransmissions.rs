//! Counts transmissions and ACKs for detectors that look for lost retransmissions.
//!
//! Every segment that arrives out of order or fills a hole causes one ACK (RFC 5681 §4.2). If more ACKs
//! arrive than segments were sent before a retransmission, a segment sent after the retransmission has
//! arrived. Lost or delayed ACKs postpone this conclusion, but do not make it wrong.

use std::collections::BTreeMap;

use crate::recovery::{Ack, RecoveryState, Transmission, TransmissionKind, View};

#[derive(Debug, Default)]
pub(super) struct Retransmissions {
    /// Segments in flight when counting began, plus all segments sent since then.
    sent: u64,
    /// ACKs since then, duplicate or new.
    acks: u64,
    /// SND.UNA and the number of duplicate ACKs at the last counted ACK. They prevent the ACK that begins an
    /// episode from counting twice.
    counted: (u64, u32),
    /// The latest retransmission of each segment, by the segment's start.
    latest: BTreeMap<u64, Retransmission>,
}

#[derive(Clone, Copy, Debug)]
struct Retransmission {
    /// Value of `Retransmissions::sent` at the time of the retransmission.
    sent: u64,
    /// SND.HIGH, the highest offset sent, at the time of the retransmission.
    high: u64,
}

/// State of the latest retransmission of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RetransmissionState {
    /// Number of ACKs beyond those that earlier segments can have caused.
    pub(super) overtaken_by: u64,
    /// SND.HIGH, the highest offset sent, at the time of the retransmission.
    pub(super) high: u64,
}

impl Retransmissions {
    /// Starts to count, with this number of segments in flight.
    pub(super) fn begin(&mut self, in_path: u64) {
        *self = Self { sent: in_path, ..Self::default() };
    }

    /// Starts to count when an episode begins. If another episode is in progress, its count continues.
    pub(super) fn on_episode(&mut self, view: &View<'_>) {
        if matches!(view.cc.state(), RecoveryState::Open | RecoveryState::Cwr) {
            self.begin(all_but_the_head(view));
            self.acks = u64::from(view.cc.dupacks());
            self.counted = (view.flight.una(), view.cc.dupacks());
        }
    }

    pub(super) fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        if transmission.kind != TransmissionKind::New {
            // More ACKs than segments: the path duplicates packets, or the receiver sends extra ACKs. Start
            // again.
            if self.acks > self.sent {
                (self.sent, self.acks) = (view.flight.outstanding().segments, 0);
            }
            self.latest
                .insert(transmission.start, Retransmission { sent: self.sent, high: view.flight.max() });
        }
        self.sent += 1;
    }

    /// Counts an ACK and returns the number of retransmissions that it covers.
    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> u64 {
        let this = (view.flight.una(), view.cc.dupacks());
        if (ack.duplicate || ack.advances()) && this != self.counted {
            self.acks += 1;
            self.counted = this;
        }
        if !ack.advances() || self.latest.is_empty() {
            return 0;
        }
        let above = self.latest.split_off(&view.flight.una());
        std::mem::replace(&mut self.latest, above).len() as u64
    }

    pub(super) fn get(&self, start: u64) -> Option<RetransmissionState> {
        let Retransmission { sent, high } = *self.latest.get(&start)?;
        Some(RetransmissionState { overtaken_by: self.acks.saturating_sub(sent), high })
    }

    /// Removes a retransmission that was declared lost, because it is no longer in flight.
    pub(super) fn lost(&mut self, start: u64) {
        if self.latest.remove(&start).is_some() {
            self.sent = self.sent.saturating_sub(1);
        }
    }
}

/// Returns the highest right edge of a SACK block, or 0 without one. With a scoreboard it makes counting
/// unnecessary.
pub(super) fn right_edge(view: &View<'_>) -> u64 {
    view.flight.sacked_ranges().last().map_or(0, |range| range.end)
}

/// Returns the number of segments that can still cause a duplicate ACK if the first segment is lost.
pub(super) fn all_but_the_head(view: &View<'_>) -> u64 {
    view.flight.outstanding().segments.saturating_sub(1)
}
