//! RLC re-establishment by RRC.

use airwire::time::Instant;

use super::Bearer;
use crate::packet::Direction;
use crate::rlc::rrc::{BegunPackets, Sides};
use crate::rlc::umts::entity::SduId;
use crate::stage::{IncidentKind, Outbox};

impl Bearer {
    /// Re-establishes RLC if that is due.
    pub(super) fn reestablish(&mut self, now: Instant, out: &mut Outbox) {
        let Some(sides) = self.rrc.take_due_reestablishment(now) else { return };
        // Choice: while a RESET is unanswered, it is unknown whether the peer has reset both directions, so
        // RRC re-establishes both.
        let resets = self.entities.iter().any(|(_, entity)| entity.is_resetting());
        let sides = if resets { Sides::Both } else { sides };
        self.reestablished += 1;
        out.report_incident(IncidentKind::RlcReestablished);
        // PDUs in flight have sequence numbers from before the re-establishment, also in STATUS PDUs about
        // the other direction.
        for direction in Direction::BOTH {
            self.directions[direction].channel.clear();
        }
        // TS 25.331 §8.5.9: START is two more than the highest HFN of the bearer.
        let hfn = 2 + self.entities.iter().map(|(_, entity)| entity.highest_hfn()).max().unwrap_or(0);
        let directions = match sides {
            Sides::Both => &Direction::BOTH[..],
            Sides::Down => &[Direction::Down],
            Sides::Up => &[Direction::Up],
        };
        match directions {
            [direction] => {
                self.entities[*direction].reestablish_transmitting(now, hfn);
                self.entities[direction.reversed()].reestablish_receiving(now, hfn);
            }
            _ => Direction::BOTH
                .into_iter()
                .for_each(|direction| self.entities[direction].reestablish(now, hfn)),
        }
        if self.rrc.begun_packets() == BegunPackets::Requeued {
            directions.iter().for_each(|direction| self.requeue(now, *direction, out));
        }
        self.settle_packets(out);
    }

    /// Resubmits undelivered packets after the re-establishment of `direction`. They are transmitted again
    /// from their first byte.
    fn requeue(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        self.drop_discarded(direction, BegunPackets::Requeued, out);
        let entity = &mut self.entities[direction];
        entity.withdraw();
        self.directions[direction].ledger.requeue_all(now, |number, since, octets| {
            entity.submit(since, SduId(number), octets.to_vec());
        });
        // Timer_Discard may have expired already for packets that waited before.
        entity.handle_deadline(now);
    }
}
