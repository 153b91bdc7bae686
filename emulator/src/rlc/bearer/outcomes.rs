//! Forwarding of delivered packets, and dropping of packets that RLC discarded.

use super::{Bearer, DirectionState};
use crate::packet::Direction;
use crate::rlc::rrc::BegunPackets;
use crate::rlc::umts::entity::{SduId, SduOutcome};
use crate::stage::{DropReason, Outbox};

impl Bearer {
    pub(super) fn settle_packets(&mut self, out: &mut Outbox) {
        for direction in Direction::BOTH {
            let DirectionState { ledger, counters, .. } = &mut self.directions[direction];
            while let Some(octets) = self.entities[direction.reversed()].poll_sdu() {
                match ledger.deliver(&octets) {
                    Some(packet) => {
                        counters.delivered += 1;
                        counters.delivered_bytes += packet.len() as u64;
                        out.forward(packet);
                    }
                    None => counters.unknown_sdus += 1,
                }
                self.entities[direction.reversed()].recycle(octets);
            }
            // PDUs of a failed sender may still be in flight. Packets that it discarded can arrive until RLC is
            // re-established.
            if !self.entities[direction].is_unrecoverable() {
                self.drop_discarded(direction, BegunPackets::Lost, out);
            }
        }
    }

    /// Drops the packets that RLC discarded. With `Requeued`, packets that a reset or a re-establishment
    /// discarded stay in the ledger.
    pub(super) fn drop_discarded(&mut self, direction: Direction, begun: BegunPackets, out: &mut Outbox) {
        let DirectionState { ledger, counters, .. } = &mut self.directions[direction];
        while let Some((SduId(number), outcome)) = self.entities[direction].poll_outcome() {
            if outcome == SduOutcome::Reset && begun == BegunPackets::Requeued {
                continue;
            }
            let Some(packet) = ledger.settle(number) else { continue };
            let (counter, why) = match outcome {
                // An acknowledged packet is still in the ledger if its delivery was credited to an earlier,
                // discarded packet with the same content.
                SduOutcome::Acknowledged | SduOutcome::Discarded => {
                    (&mut counters.rlc_discard, DropReason::RlcDiscard)
                }
                SduOutcome::Reset => (&mut counters.rlc_reset, DropReason::RlcReset),
            };
            *counter += 1;
            out.drop(packet, why);
        }
    }
}
