//! Counts mistakes without correcting them: Eifel detection (RFC 3522) as a silent observer, and D-SACK.
//!
//! Every run can then say how many of its timeouts were spurious, whatever the recipe does about them.

use super::{Ack, Departure, Entered, Transmission};

#[derive(Debug, Default, Clone)]
pub struct SpuriousObserver {
    watched: Option<Watch>,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    start: u64,
    /// RFC 3522 §3.2: the timestamp of the first retransmission of the event, once it has left.
    retransmit_ts: Option<u32>,
    entered: Entered,
}

impl SpuriousObserver {
    /// A loss event begins with the segment at `start`.
    pub fn on_event(&mut self, start: u64, entered: Entered) {
        self.watched = Some(Watch { start, retransmit_ts: None, entered });
    }

    pub fn on_sent(&mut self, departure: &Departure) {
        if let Some(watch) = &mut self.watched
            && departure.kind != Transmission::New
            && departure.start == watch.start
            && watch.retransmit_ts.is_none()
        {
            watch.retransmit_ts = Some(departure.tsval);
        }
    }

    /// The kind of event that this ACK proves to have been a mistake: it echoes an older timestamp than the
    /// retransmission carried, so the original had arrived.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<Entered> {
        if !ack.advances() {
            return None;
        }
        let watch = self.watched.take()?;
        let (ts, ecr) = (watch.retransmit_ts?, ack.ecr?);
        ((ecr.wrapping_sub(ts) as i32) < 0).then_some(watch.entered)
    }
}
