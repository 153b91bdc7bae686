//! Fast Timeout (Ludwig 2002; P2 §3.2 and Fig. 8): duplicate ACKs after a timeout say that the network delivers, so
//! the sender leaves slow start for fast recovery.
//!
//! These are steps 1 to 6 of Fig. 8; step 7 is `loss-retransmission`. A timeout is answered as ever, but cwnd is
//! remembered. If an acceptable ACK comes first, it was a timeout like any other. If DupThresh duplicate ACKs come
//! first, nothing more is sent again: new segments go out from SND.MAX, the window is half of what it was before the
//! timeout, and the timer is restarted with twice the SRTT. It needs nothing from the receiver.
//!
//! Choice: the second timeout of the same segment is an ordinary one (Fig. 8 does not speak of it). P2 §7.2 has an
//! ssthresh of 2 then: RFC 2581's half of a window that the first timeout had cut to one segment. After fast recovery
//! the window is no longer one segment. So ssthresh is half of half in profile `ns2`, and half with RFC 5681 §3.1,
//! which holds it while the same segment times out again.
//! Choice: the RTO that step 5 recalculates is not backed off. Fig. 8 does not say; §7.2 has the second timeout "following
//! the exponential backoff algorithm", but 4.7 s after the first, which is less than without backoff here.

use super::{Afterwards, Reaction, Timeout};
use crate::recovery::{Ack, View};

/// Fast Timeout (Ludwig 2002; P2 Fig. 8).
#[derive(Debug, Default)]
pub(crate) struct FastTimeout {
    waiting: Option<Waiting>,
}

/// Step 2: what comes first, an acceptable ACK or DupThresh duplicate ones?
#[derive(Clone, Copy, Debug)]
struct Waiting {
    cwnd_prev: f64,
    dupacks: u32,
}

impl Timeout for FastTimeout {
    fn name(&self) -> &'static str {
        "fast-timeout"
    }

    fn on_timeout(&mut self, view: &View<'_>) -> Reaction {
        // Step 1.
        let first = view.cc.timeouts_in_row == 0;
        self.waiting = first.then_some(Waiting { cwnd_prev: view.cc.cwnd, dupacks: 0 });
        Reaction::Restart { cwnd: view.knobs.loss_window }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Afterwards {
        let Some(waiting) = &mut self.waiting else { return Afterwards::Nothing };
        if ack.advances() {
            self.waiting = None;
            return Afterwards::Nothing;
        }
        waiting.dupacks += u32::from(ack.duplicate);
        // Step 3.
        if waiting.dupacks < view.knobs.dup_thresh {
            return Afterwards::Nothing;
        }
        // Step 6; steps 4 and 5 are the same for whoever answers with `Recover`.
        let ssthresh = (waiting.cwnd_prev / 2.0).max(view.knobs.least_ssthresh);
        self.waiting = None;
        let why = "fast timeout: DupThresh duplicate ACKs after the timeout";
        Afterwards::Recover { cwnd: ssthresh, ssthresh, why }
    }
}

#[cfg(test)]
mod tests;
