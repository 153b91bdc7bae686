//! Eifel as Linux 2.4 has it, the sender of P2 §5.2 ("The implementation of Eifel in Linux makes difference").
//!
//! Detection is tcp_packet_delayed(): an ACK of something new that echoes a timestamp older than that of the first copy
//! (`rcv_tsecr < retrans_stamp`). RFC 3522's step (5) is not there: an ACK of everything that is outstanding counts like
//! any other, so a first window of two segments can be judged too. What it risks is a mistake if all ACKs of a window
//! are lost. Every new ACK of the event is asked, not the first alone, and a timeout of what had been sent again before is
//! not asked about (tcp_enter_loss(): "nothing was retransmitted").
//!
//! The response is tcp_undo_cwr(): ssthresh is what it was, or three quarters of the window if that is more, and cwnd
//! twice the reduced ssthresh, but no more than three segments above what is in flight (tcp_moderate_cwnd()). Slow start
//! brings the rest back. The timer stays as it is: P2 §3.1 says that Eifel "can adjust parameters for setting the RTO",
//! and Linux does not.
//!
//! Choice: a fast retransmit is taken back at the first ACK that shows the mistake; Linux waits for the end of the event.
//! Choice: a duplicate ACK proves nothing, as in later kernels: beside a hole it always echoes an old timestamp.
//! Choice: after an ECN echo nothing is taken back.

use super::{Restore, Undo};
use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, Departure, Phase, Transmission, View};

/// tcp_max_burst().
const BURST: f64 = 3.0;

/// The Eifel algorithm of Linux 2.4 (P2 §5.2).
#[derive(Debug, Default)]
pub(crate) struct EifelLinux {
    event: Option<Event>,
}

/// What may turn out to have been a mistake.
#[derive(Debug)]
struct Event {
    prior_ssthresh: f64,
    /// SND.UNA when it began.
    una: u64,
    /// SND.MAX when it began: it is over when that is acknowledged.
    high_seq: u64,
    /// TSval of its first copy.
    retrans_stamp: Option<u32>,
    kind: LossKind,
}

impl Undo for EifelLinux {
    fn name(&self) -> &'static str {
        "eifel-linux"
    }

    fn needs_timestamps(&self) -> bool {
        true
    }

    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        let nothing_sent_again = view.flight.iter().all(|segment| segment.transmissions == 1);
        // tcp_current_ssthresh()
        let prior_ssthresh = match before.phase() {
            Phase::Open => before.ssthresh.max(0.75 * before.cwnd),
            Phase::Recovery | Phase::Reduced | Phase::Restarted => before.ssthresh,
        };
        let (una, high_seq) = (view.flight.una(), view.flight.max());
        let event = Event { prior_ssthresh, una, high_seq, retrans_stamp: None, kind };
        self.event = Some(event).filter(|_| kind != LossKind::EcnEcho && nothing_sent_again);
    }

    fn on_sent(&mut self, _view: &View<'_>, departure: &Departure) {
        if departure.kind == Transmission::New || departure.kind == Transmission::Probe {
            return;
        }
        // A second copy of the first segment: the timer fired again.
        self.event.take_if(|event| event.retrans_stamp.is_some() && departure.start == event.una);
        if let Some(event) = &mut self.event {
            event.retrans_stamp.get_or_insert(departure.tsval);
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        let event = self.event.as_ref().filter(|_| ack.advances())?;
        // 0: the peer has seen no timestamp yet.
        let echoed = ack.ecr.filter(|ecr| *ecr != 0 && !ack.ece).zip(event.retrans_stamp);
        if echoed.is_none_or(|(ecr, stamp)| (ecr.wrapping_sub(stamp) as i32) >= 0) {
            self.event.take_if(|event| view.flight.una() >= event.high_seq);
            return None;
        }
        let Event { prior_ssthresh, kind, .. } = self.event.take()?;
        let in_flight = view.segments(view.flight.outstanding());
        let cwnd = view.cc.cwnd.max(2.0 * view.cc.ssthresh).min(in_flight + BURST).max(1.0);
        let window = Reduction { cwnd, ssthresh: prior_ssthresh.max(view.cc.ssthresh) };
        let why = match kind {
            LossKind::Timeout => "older timestamp echo: the timeout was spurious",
            LossKind::Duplicates | LossKind::EcnEcho => {
                "older timestamp echo: the fast retransmission was spurious"
            }
        };
        Some(Restore { window: Some(window), resume: true, reordered: false, timer: None, why })
    }
}

#[cfg(test)]
mod tests;
