//! Eifel detection (RFC 3522): an ACK that echoes an older timestamp than the retransmission carried was caused
//! by the original, so that the retransmission was a mistake.
//!
//! Every connection runs it to count how many of its timeouts and fast retransmits were spurious, whatever the recipe
//! does about them. The answer `eifel` runs one of its own, and acts on it.
//!
//! Choice: an echo of 0 proves nothing: a peer sends it that has seen no timestamp yet.

use super::{Ack, Departure, Entered, Transmission, View};

/// Watches one loss event at a time (RFC 3522 §3.2).
#[derive(Debug, Default, Clone)]
pub(super) struct EifelDetection {
    watched: Option<Watch>,
    /// Step (5): the peer is known to report duplicates.
    dsack_seen: bool,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    entered: Entered,
    /// SND.UNA when the event began.
    una: u64,
    first: Option<FirstRetransmit>,
}

/// The retransmission that began the event.
#[derive(Debug, Clone, Copy)]
struct FirstRetransmit {
    start: u64,
    /// RetransmitTS.
    ts: u32,
}

impl EifelDetection {
    /// A loss event begins. While nothing has been acknowledged since the last one began, it belongs to that:
    /// RetransmitTS stays that of the first retransmission (step (2)).
    pub(super) fn on_event(&mut self, view: &View<'_>, entered: Entered) {
        if !self.is_pending(view) {
            self.watched = Some(Watch { entered, una: view.flight.una(), first: None });
        }
    }

    /// Nothing has been acknowledged since the last event began.
    pub(super) fn is_pending(&self, view: &View<'_>) -> bool {
        self.watched.is_some_and(|watch| watch.una == view.flight.una())
    }

    /// The first retransmission of the event gives RetransmitTS.
    pub(super) fn on_sent(&mut self, departure: &Departure) {
        if departure.kind == Transmission::New || departure.kind == Transmission::Probe {
            return;
        }
        if let Some(watch) = &mut self.watched {
            watch.first.get_or_insert(FirstRetransmit { start: departure.start, ts: departure.tsval });
        }
    }

    /// The kind of event that this ACK proves to have been a mistake.
    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Entered> {
        let reported_before = self.dsack_seen;
        self.dsack_seen |= ack.dsack.is_some();
        let una = view.flight.una();
        let acceptable =
            |watch: &mut Watch| ack.advances() && watch.first.is_none_or(|retransmit| una > retransmit.start);
        // Step (3).
        let watch = self.watched.take_if(acceptable)?;
        // Step (4).
        let (ecr, ts) = (ack.ecr.filter(|ecr| *ecr != 0)?, watch.first?.ts);
        let older = (ecr.wrapping_sub(ts) as i32) < 0;
        // Step (5): if all ACKs of a window were lost, this ACK answers the duplicate, and still echoes the original's
        // timestamp.
        let by_the_original = ack.dsack.is_none() && (reported_before || !view.flight.is_empty());
        (older && by_the_original).then_some(watch.entered)
    }
}
