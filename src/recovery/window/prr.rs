//! Proportional rate reduction (RFC 9937): fast recovery sends in proportion to the delivered data. So the
//! window decreases evenly over a round trip and ends at ssthresh after any number of losses.
//!
//! While more data is in flight (`pipe`) than ssthresh, sndcnt = CEIL(prr_delivered·ssthresh / RecoverFS) -
//! prr_out. Below ssthresh, sndcnt is the delivered amount (the conservative bound), plus one segment for an
//! ACK that advances and reveals no further loss (safeACK: the slow-start bound).
//!
//! PRR is an add-on to the window algorithm. The window algorithm determines ssthresh, and PRR acts from the
//! beginning to the end of a recovery. It requires the repair `sack`, because it uses `pipe`. The receiver
//! only has to send SACK.
//!
//! - Choice: RecoverFS is the amount from which ssthresh was computed: FlightSize as in the RFC, or cwnd in
//!   some profiles.
//! - Choice: sndcnt is a whole number of segments, as in the examples of the RFC.
//! - Choice: the engine sends the fast retransmission in any case. It counts in prr_out.
//! - Choice: after losses that a timer finds, the window shrinks with `pipe`, so only the fast retransmission
//!   is sent before the next ACK.
//!
//! In the profile `linux`, cwnd stays when nothing is delivered, so retransmissions replace the segments that
//! a timer declares lost (Linux 6.18, tcp_cwnd_reduction()). If these losses begin recovery, one segment
//! counts as delivered (tcp_rack_reo_timeout()).

use super::{InRecovery, Progress, Reduction};
use crate::flight::Amount;
use crate::profile::recovery::DecreaseFrom;
use crate::recovery::{Transmission, View};

#[derive(Debug, Default)]
pub(crate) struct Prr {
    ssthresh: f64,
    /// RecoverFS: FlightSize when recovery began.
    recover_fs: f64,
    prr_delivered: f64,
    prr_out: f64,
}

impl InRecovery for Prr {
    fn on_enter(&mut self, view: &View<'_>, before: f64, reduction: &Reduction, progress: &Progress) -> f64 {
        let unreported = view.segments(view.flight.outstanding()) - view.segments(view.flight.sacked());
        let delivered = view.segments(progress.delivered);
        let (recover_fs, delivered) = match view.rules.decrease.from {
            // Linux 6.18, tcp_cwnd_reduction(): prior_cwnd.
            DecreaseFrom::Cwnd => (before, delivered.max(1.0)),
            _ => (unreported + delivered, delivered),
        };
        *self = Self {
            ssthresh: reduction.ssthresh.min(reduction.cwnd).max(1.0),
            recover_fs: recover_fs.max(1.0),
            ..Self::default()
        };
        self.window(view, progress, delivered)
    }

    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        self.prr_out += view.segments(Amount { bytes: transmission.end - transmission.start, segments: 1 });
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> f64 {
        let delivered = view.segments(progress.delivered);
        if delivered > 0.0 {
            return self.window(view, progress, delivered);
        }
        match view.rules.decrease.from {
            DecreaseFrom::Cwnd => view.cc.cwnd,
            _ => self.window(view, progress, delivered).min(view.cc.cwnd),
        }
    }
}

impl Prr {
    fn window(&mut self, view: &View<'_>, progress: &Progress, delivered: f64) -> f64 {
        let pipe = view.segments(progress.pipe);
        self.prr_delivered += delivered;
        let sndcnt = if pipe > self.ssthresh {
            (self.prr_delivered * self.ssthresh / self.recover_fs).ceil() - self.prr_out
        } else {
            let safe = if progress.is_safe { 1.0 } else { 0.0 };
            let limit = (self.prr_delivered - self.prr_out).max(delivered) + safe;
            limit.min(self.ssthresh - pipe)
        };
        (pipe + sndcnt.max(0.0)).max(1.0)
    }
}

#[cfg(test)]
mod tests;
