//! Fast Timeout (Ludwig 2002; Inamura et al. 2009, §3.2 and Fig. 8): duplicate ACKs after a timeout show that
//! the network delivers, so the sender leaves slow start for fast recovery.
//!
//! This file implements steps 1 to 6 of Fig. 8; step 7 is `loss-retransmission`. A timeout has its usual
//! effects, but the sender remembers cwnd. If an acceptable ACK arrives first, it was a normal timeout. If
//! DupThresh duplicate ACKs arrive first, the sender stops retransmitting and sends new segments from
//! SND.MAX. It sets the window to half of its value before the timeout and restarts the timer with twice the
//! SRTT. The receiver needs no special support.
//!
//! - Choice: the second timeout of the same segment is a normal one, because Fig. 8 does not cover it. In
//!   §7.2 of the paper, ssthresh is then 2: RFC 2581 halves a window that the first timeout had reduced to
//!   one segment. Here the window is larger than one segment after fast recovery. So ssthresh becomes a
//!   quarter of the original window in the profile `ns2`. With RFC 5681 §3.1 it stays at half, because the
//!   same segment timed out again.
//! - Choice: the RTO that step 5 recalculates has no backoff. Fig. 8 does not say. In §7.2 the second timeout
//!   follows "the exponential backoff algorithm", but only 4.7 s after the first, which is less than without
//!   backoff here.

use super::{Reaction, Timeout, TimeoutVerdict};
use crate::recovery::{Ack, View};

#[derive(Debug, Default)]
pub(crate) struct FastTimeout {
    waiting: Option<Waiting>,
}

/// Step 2: waiting for an acceptable ACK or for DupThresh duplicate ACKs.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    cwnd_prev: f64,
    dupacks: u32,
}

impl Timeout for FastTimeout {
    fn on_timeout(&mut self, view: &View<'_>) -> Reaction {
        // Step 1: remember cwnd.
        let first = view.cc.timeouts_in_row == 0;
        self.waiting = first.then_some(Waiting { cwnd_prev: view.cc.cwnd, dupacks: 0 });
        Reaction::Restart { cwnd: view.rules.timeout.loss_window }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> TimeoutVerdict {
        let Some(waiting) = &mut self.waiting else { return TimeoutVerdict::Nothing };
        if ack.advances() {
            self.waiting = None;
            return TimeoutVerdict::Nothing;
        }
        waiting.dupacks += u32::from(ack.duplicate);
        // Step 3: wait for DupThresh duplicate ACKs.
        if waiting.dupacks < view.rules.detection.dup_thresh {
            return TimeoutVerdict::Nothing;
        }
        // Step 6. The engine performs steps 4 and 5 for every answer that returns `Recover`.
        let ssthresh = (waiting.cwnd_prev / 2.0).max(view.rules.decrease.min_ssthresh);
        self.waiting = None;
        let why = "fast timeout: DupThresh duplicate ACKs after the timeout";
        TimeoutVerdict::Recover { cwnd: ssthresh, ssthresh, why }
    }
}

#[cfg(test)]
mod tests;
