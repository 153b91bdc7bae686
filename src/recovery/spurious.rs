//! Eifel detection (RFC 3522): if an ACK echoes an older timestamp than the retransmission carried, it
//! answers the original segment, so the retransmission was spurious.
//!
//! Every connection runs this detection to count its spurious timeouts and fast retransmissions, with every
//! recipe. The answer `eifel` has a separate instance and acts on its result.
//!
//! Choice: an echo of 0 proves nothing, because a peer that has not received a timestamp sends 0.

use super::{Ack, Entered, Transmission, TransmissionKind};
use crate::flight::Flight;

/// Detection for one episode at a time (RFC 3522 §3.2).
#[derive(Debug, Default, Clone)]
pub(super) struct EifelDetection {
    watched: Option<Watch>,
    /// Step (5): whether the peer is known to report duplicates.
    dsack_seen: bool,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    entered: Entered,
    /// SND.UNA when the episode began.
    una: u64,
    first: Option<FirstRetransmit>,
}

/// The first retransmission of the episode.
#[derive(Debug, Clone, Copy)]
struct FirstRetransmit {
    start: u64,
    /// RetransmitTS.
    ts: u32,
}

impl EifelDetection {
    /// Begins an episode. If nothing was acknowledged since the previous one began, both count as one:
    /// RetransmitTS keeps the timestamp of the first retransmission (step (2)).
    pub(super) fn on_episode(&mut self, flight: &Flight, entered: Entered) {
        if !self.is_pending(flight) {
            self.watched = Some(Watch { entered, una: flight.una(), first: None });
        }
    }

    /// Returns whether nothing was acknowledged since the last episode began.
    pub(super) fn is_pending(&self, flight: &Flight) -> bool {
        self.watched.is_some_and(|watch| watch.una == flight.una())
    }

    /// Records RetransmitTS from the first retransmission of the episode.
    pub(super) fn on_sent(&mut self, transmission: &Transmission) {
        if transmission.kind == TransmissionKind::New || transmission.kind == TransmissionKind::Probe {
            return;
        }
        if let Some(watch) = &mut self.watched {
            watch.first.get_or_insert(FirstRetransmit { start: transmission.start, ts: transmission.tsval });
        }
    }

    /// Returns how the episode began, if this ACK proves that the episode was spurious.
    pub(super) fn on_ack(&mut self, flight: &Flight, ack: &Ack) -> Option<Entered> {
        let reported_before = self.dsack_seen;
        self.dsack_seen |= ack.dsack.is_some();
        let una = flight.una();
        let acceptable =
            |watch: &mut Watch| ack.advances() && watch.first.is_none_or(|retransmit| una > retransmit.start);
        // Step (3): the first acceptable ACK decides.
        let watch = self.watched.take_if(acceptable)?;
        // Step (4): the echo must be older than RetransmitTS.
        let (ecr, ts) = (ack.ecr.filter(|ecr| *ecr != 0)?, watch.first?.ts);
        let older = (ecr.wrapping_sub(ts) as i32) < 0;
        // Step (5): if all ACKs of a window were lost, this ACK answers the duplicate, and yet it echoes the
        // timestamp of the original.
        let by_the_original = ack.dsack.is_none() && (reported_before || !flight.is_empty());
        (older && by_the_original).then_some(watch.entered)
    }
}
