//! Eifel detection (RFC 3522): an ACK that echoes an older timestamp than the retransmission carried was caused
//! by the original, so that the retransmission was a mistake.
//!
//! Every run asks it silently, and can say how many of its timeouts and fast retransmits were spurious, whatever
//! the recipe does about them. The answer `eifel` asks it too, and acts.
//!
//! Choice: an echo of 0 proves nothing. It is what a peer sends that has seen no timestamp yet.

use super::{Ack, Departure, Entered, Transmission, View};

#[derive(Debug, Default, Clone)]
pub struct EifelDetection {
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
    /// A loss event begins. As long as nothing is acknowledged, it is none of its own: RetransmitTS stays that of
    /// the first retransmission (step (2)).
    pub fn on_event(&mut self, view: &View<'_>, entered: Entered) {
        if !self.is_pending(view) {
            self.watched = Some(Watch { entered, una: view.flight.una(), first: None });
        }
    }

    /// Nothing has been acknowledged since the last event began.
    pub fn is_pending(&self, view: &View<'_>) -> bool {
        self.watched.is_some_and(|watch| watch.una == view.flight.una())
    }

    pub fn on_sent(&mut self, departure: &Departure) {
        if departure.kind == Transmission::New || departure.kind == Transmission::Probe {
            return;
        }
        if let Some(watch) = &mut self.watched {
            watch.first.get_or_insert(FirstRetransmit { start: departure.start, ts: departure.tsval });
        }
    }

    /// The kind of event that this ACK proves to have been a mistake.
    pub fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Entered> {
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
        // Step (5): if all ACKs of a window were lost, it is the duplicate that is acknowledged, and its
        // acknowledgment echoes the original.
        let by_the_original = ack.dsack.is_none() && (reported_before || !view.flight.is_empty());
        (older && by_the_original).then_some(watch.entered)
    }
}
