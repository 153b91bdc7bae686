//! The "pipe" SACK sender of Fall and Floyd (1996), Sack1 in ns-2. In the profile `ns2`, `sack` means this
//! sender.
//!
//! Differences from RFC 6675: `pipe` is an estimated counter and is not computed from a scoreboard. Every
//! hole below a SACKed block is retransmitted once, lowest first, whether or not it is lost. Only duplicate
//! ACKs with new SACK information count.

use super::{Entry, Repair, RepairStep, beyond_recover};
use crate::flight::Amount;
use crate::profile::recovery::PartialAckDeflation;
use crate::recovery::{Ack, RecoveryState, Transmission, TransmissionKind, View};

#[derive(Debug, Default)]
pub(crate) struct Sack1 {
    /// Estimated number of segments in flight during recovery.
    pipe: i64,
    /// Holes below this offset have been retransmitted.
    h_seqno: u64,
    /// Whether the last episode ended in fast recovery. That clears `recover`, so the next episode may begin
    /// at once.
    recovered: bool,
}

impl Repair for Sack1 {
    fn may_enter(&self, view: &View<'_>) -> bool {
        self.recovered || beyond_recover(view)
    }

    fn on_loss(&mut self, view: &View<'_>) -> Entry {
        self.recovered = false;
        // No duplicate ACKs are counted between a timeout and the next new ACK.
        let delivered =
            if view.cc.dupacks() > 0 { view.cc.dupacks() } else { view.rules.detection.dup_thresh };
        self.pipe = view.flight.outstanding().segments as i64 - i64::from(delivered);
        self.h_seqno = view.flight.head().map_or_else(|| view.flight.una(), |head| head.end);
        Entry::Recover { inflation: 0.0 }
    }

    fn on_recovery_ack(&mut self, view: &View<'_>, ack: &Ack) -> RepairStep {
        self.pipe -= 1;
        if !ack.advances() {
            return RepairStep::Wait;
        }
        if view.cc.recover.is_none_or(|recover| view.flight.una() >= recover) {
            self.recovered = true;
            return RepairStep::Exit { inflates: false };
        }
        // A partial ACK means that two segments have left the network: the retransmitted one and the lost
        // one.
        self.pipe -= 1;
        RepairStep::Partial { resend_head: false, deflation: PartialAckDeflation::All, restart_timer: true }
    }

    /// The ACK that begins an episode releases only the fast retransmission.
    fn burst(&self, _view: &View<'_>, begins: bool) -> Option<u32> {
        begins.then_some(0)
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.recovered = false;
        self.h_seqno = view.flight.una();
    }

    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        // The fast retransmission itself does not count.
        if view.cc.state() != RecoveryState::Recovery || transmission.kind == TransmissionKind::FastRetransmit
        {
            return;
        }
        self.pipe += 1;
        if transmission.kind != TransmissionKind::New {
            self.h_seqno = self.h_seqno.max(transmission.end);
        }
    }

    fn in_flight(&self, view: &View<'_>) -> Amount {
        match view.cc.state() {
            RecoveryState::Recovery => {
                let segments = self.pipe.max(0) as u64;
                Amount { bytes: segments * view.smss, segments }
            }
            _ => view.flight.passed(),
        }
    }

    fn next(&mut self, view: &View<'_>) -> Option<u64> {
        if view.cc.state() != RecoveryState::Recovery {
            return view.flight.head_of_pass().map(|s| s.start);
        }
        let highest = view.flight.sacked_ranges().last()?.start;
        let hole = view.flight.first_hole_from(self.h_seqno.max(view.flight.una()))?;
        (hole.start < highest).then_some(hole.start)
    }
}
