//! NewReno (RFC 6582): a partial ACK reveals the next hole, and recovery lasts until `recover` is
//! acknowledged.

use super::{Entry, Repair, RepairStep};
use crate::profile::recovery::PartialAckTimer;
use crate::recovery::{Ack, RecoveryState, View};

/// NewReno, the default repair (RFC 6582).
#[derive(Debug, Default)]
pub struct NewReno {
    seen_partial: bool,
}

impl Repair for NewReno {
    fn on_loss(&mut self, view: &View<'_>) -> Entry {
        self.seen_partial = false;
        // RFC 5681 §3.2 step 3: cwnd grows by one SMSS for each segment that has left the network.
        Entry::Recover { inflation: f64::from(view.cc.dupacks()) }
    }

    fn burst(&self, view: &View<'_>, _begins: bool) -> Option<u32> {
        view.rules.transmission.recovery_burst.filter(|_| view.cc.state() == RecoveryState::Recovery)
    }

    fn on_recovery_ack(&mut self, view: &View<'_>, ack: &Ack) -> RepairStep {
        // RFC 5681 §3.2 step 4: each further duplicate ACK inflates cwnd by one SMSS.
        if !ack.advances() {
            return if ack.duplicate { RepairStep::Inflate(1.0) } else { RepairStep::Wait };
        }
        // §3.2 step 3: a full ACK covers everything sent before the episode began.
        if view.cc.recover.is_none_or(|recover| view.flight.una() >= recover) {
            let inflates = view.rules.fast_recovery.ends_by_inflation && view.cc.inflation() == 0.0;
            return RepairStep::Exit { inflates };
        }
        // §3.2 step 3, partial ACK: "retransmit the first unacknowledged segment. Deflate the congestion
        // window by the amount of new data acknowledged". The first partial ACK also restarts the
        // retransmission timer. In the Slow-but-Steady variant, each one does (RFC 3782 §4).
        let first = !std::mem::replace(&mut self.seen_partial, true);
        RepairStep::Partial {
            resend_head: true,
            deflation: view.rules.fast_recovery.partial_ack_deflation,
            restart_timer: first
                || view.rules.fast_recovery.partial_ack_timer == PartialAckTimer::SlowButSteady,
        }
    }
}
