//! Forwarding of delivered packets, and dropping of packets that RLC gave up.

use super::{Bearer, Lane};
use crate::packet::Direction;
use crate::rlc::rrc::Begun;
use crate::rlc::umts::entity::{SduId, SduOutcome};
use crate::stage::{DropReason, Outbox};

impl Bearer {
    pub(super) fn settle_packets(&mut self, out: &mut Outbox) {
        for direction in Direction::BOTH {
            let Lane { ledger, counters, .. } = &mut self.lanes[direction];
            while let Some(octets) = self.entities[direction.reversed()].poll_sdu() {
                match ledger.deliver(&octets) {
                    Some(packet) => {
                        counters.delivered += 1;
                        counters.delivered_bytes += packet.len() as u64;
                        out.forward(packet);
                    }
                    None => counters.unknown_sdus += 1,
                }
            }
            // PDUs of a failed sender may still be in flight. Packets that it gave up can arrive until RLC is
            // re-established.
            if !self.entities[direction].is_unrecoverable() {
                self.settle_outcomes(direction, Begun::Lost, out);
            }
        }
    }

    /// Drops the packets that RLC gave up. `begun` decides about packets that a reset or a re-establishment
    /// removed.
    pub(super) fn settle_outcomes(&mut self, direction: Direction, begun: Begun, out: &mut Outbox) {
        let Lane { ledger, counters, .. } = &mut self.lanes[direction];
        while let Some((SduId(number), outcome)) = self.entities[direction].poll_outcome() {
            if outcome == SduOutcome::Reset && begun == Begun::Requeued {
                continue;
            }
            let Some(packet) = ledger.settle(number) else { continue };
            let why = match outcome {
                // An acknowledged packet is still in the ledger if its delivery was credited to an earlier,
                // discarded packet with the same content.
                SduOutcome::Acknowledged | SduOutcome::Discarded => {
                    counters.rlc_discard += 1;
                    DropReason::RlcDiscard
                }
                SduOutcome::Reset => {
                    counters.rlc_reset += 1;
                    DropReason::RlcReset
                }
            };
            out.drop(packet, why);
        }
    }
}
