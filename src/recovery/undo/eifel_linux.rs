//! Eifel as in Linux 2.4, the sender of Inamura et al. 2009, §5.2 ("The implementation of Eifel in Linux
//! makes difference").
//!
//! Detection follows tcp_packet_delayed(): a new ACK echoes an older timestamp than the first retransmission
//! carried (`rcv_tsecr < retrans_stamp`). Step (5) of RFC 3522 is missing. An ACK of everything outstanding
//! counts like any other, so a first window of two segments can be judged too. In return, the detection is
//! wrong if all ACKs of a window are lost. Every new ACK of the episode is checked, not only the first. A
//! timeout of data that was retransmitted before is not checked (tcp_enter_loss(): "nothing was
//! retransmitted").
//!
//! The response follows tcp_undo_cwr(): ssthresh returns to its old value, or to three quarters of the window
//! if that is more. cwnd becomes twice the reduced ssthresh, but at most three segments more than the data in
//! flight (tcp_moderate_cwnd()). Slow start restores the rest. The timer does not change. Inamura et al.
//! (§3.1) write that Eifel "can adjust parameters for setting the RTO", but Linux leaves the timer unchanged.
//!
//! - Choice: a fast retransmission is undone at the first ACK that shows the mistake. Linux waits for the end
//!   of the episode.
//! - Choice: a duplicate ACK proves nothing, as in later kernels, because every duplicate ACK at a hole
//!   echoes an old timestamp.
//! - Choice: nothing is undone after an ECN echo.

use super::{Restore, Undo};
use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, RecoveryState, Transmission, TransmissionKind, View};

/// tcp_max_burst(), in segments.
const BURST: f64 = 3.0;

#[derive(Debug, Default)]
pub(crate) struct EifelLinux {
    episode: Option<WatchedEpisode>,
}

/// An episode that may turn out to be spurious.
#[derive(Debug)]
struct WatchedEpisode {
    prior_ssthresh: f64,
    /// SND.UNA when the episode began.
    una: u64,
    /// SND.MAX when the episode began. The episode is over when it is acknowledged.
    high_seq: u64,
    /// TSval of the first retransmission.
    retrans_stamp: Option<u32>,
    kind: LossKind,
}

impl Undo for EifelLinux {
    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        let nothing_sent_again = view.flight.iter().all(|segment| segment.transmissions == 1);
        // tcp_current_ssthresh()
        let prior_ssthresh = match before.state() {
            RecoveryState::Open => before.ssthresh.max(0.75 * before.cwnd),
            RecoveryState::Recovery | RecoveryState::Cwr | RecoveryState::Loss => before.ssthresh,
        };
        let (una, high_seq) = (view.flight.una(), view.flight.max());
        let episode = WatchedEpisode { prior_ssthresh, una, high_seq, retrans_stamp: None, kind };
        self.episode = Some(episode).filter(|_| kind != LossKind::EcnEcho && nothing_sent_again);
    }

    fn on_sent(&mut self, transmission: &Transmission) {
        if transmission.kind == TransmissionKind::New || transmission.kind == TransmissionKind::Probe {
            return;
        }
        // The first segment is retransmitted a second time: the timer has fired again.
        self.episode.take_if(|episode| episode.retrans_stamp.is_some() && transmission.start == episode.una);
        if let Some(episode) = &mut self.episode {
            episode.retrans_stamp.get_or_insert(transmission.tsval);
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        let episode = self.episode.as_ref().filter(|_| ack.advances())?;
        // A peer that has not received a timestamp sends 0.
        let echoed = ack.ecr.filter(|ecr| *ecr != 0 && !ack.ece).zip(episode.retrans_stamp);
        if echoed.is_none_or(|(ecr, stamp)| (ecr.wrapping_sub(stamp) as i32) >= 0) {
            self.episode.take_if(|episode| view.flight.una() >= episode.high_seq);
            return None;
        }
        let WatchedEpisode { prior_ssthresh, kind, .. } = self.episode.take()?;
        let in_flight = view.segments(view.flight.outstanding());
        let cwnd = view.cc.cwnd.max(2.0 * view.cc.ssthresh).min(in_flight + BURST).max(1.0);
        let window = Reduction { cwnd, ssthresh: prior_ssthresh.max(view.cc.ssthresh) };
        let why = match kind {
            LossKind::Timeout => "older timestamp echo: the timeout was spurious",
            LossKind::Detected | LossKind::EcnEcho => {
                "older timestamp echo: the fast retransmission was spurious"
            }
        };
        Some(Restore { window: Some(window), resume: true, reordered: false, timer: None, why })
    }
}

#[cfg(test)]
mod tests;
