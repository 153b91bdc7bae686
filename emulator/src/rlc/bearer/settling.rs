//! What became of packets: they are handed on, or dropped.

use super::{Bearer, Lane};
use crate::packet::Direction;
use crate::rlc::rrc::Begun;
use crate::rlc::umts::entity::{SduId, SduOutcome};
use crate::stage::{Outbox, Why};

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
                    None => counters.foreign += 1,
                }
            }
            // What a failed sender gave up may still be on the air, and arrive until RLC starts anew.
            if !self.entities[direction].is_unrecoverable() {
                self.settle_outcomes(direction, Begun::Lost, out);
            }
        }
    }

    /// `begun`: what becomes of packets that a reset, or RLC's start anew, took.
    pub(super) fn settle_outcomes(&mut self, direction: Direction, begun: Begun, out: &mut Outbox) {
        let Lane { ledger, counters, .. } = &mut self.lanes[direction];
        while let Some((SduId(number), outcome)) = self.entities[direction].poll_outcome() {
            if outcome == SduOutcome::Reset && begun == Begun::Requeued {
                continue;
            }
            let Some(packet) = ledger.settle(number) else { continue };
            let why = match outcome {
                // It was delivered, under the name of an earlier packet of the same octets, which was given up.
                SduOutcome::Acknowledged | SduOutcome::Discarded => {
                    counters.rlc_discard += 1;
                    Why::RlcDiscard
                }
                SduOutcome::Reset => {
                    counters.rlc_reset += 1;
                    Why::RlcReset
                }
            };
            out.drop(packet, why);
        }
    }
}
