//! Statistics of a bearer.

use serde_json::{Value, json};

use super::bearer::{Bearer, DirectionState};
use super::{Channel, Drb};
use crate::packet::Direction;

impl Drb {
    pub(super) fn statistics(&self) -> Value {
        let [down, up] = Direction::BOTH.map(|direction| self.direction_statistics(direction));
        let mut stats = json!({
            "down": down,
            "up": up,
            "cell": self.cell,
            "handovers": self.handovers,
            "radio_link_failures": self.radio_link_failures,
        });
        if let [dedicated, _] = &self.bearers[..] {
            let [down, up] = Direction::BOTH.map(|direction| dedicated.statistics(direction));
            stats["dedicated"] = json!({ "down": down, "up": up });
        }
        if !self.others.is_empty() {
            let (slots, octets) = self.others.counters();
            stats["others"] = json!({ "slots": slots, "bytes": octets.collect::<Vec<_>>() });
        }
        stats
    }

    /// Statistics of the default bearer and of the channel.
    fn direction_statistics(&self, direction: Direction) -> Value {
        let mut stats = self.bearers.last().map_or_else(|| json!({}), |bearer| bearer.statistics(direction));
        let Channel { shared, .. } = &self.channels[direction];
        let harq = shared.harq_counters();
        let transmissions: u64 = harq.attempts.iter().sum();
        stats["blocks"] = transmissions.into();
        stats["blocks_lost"] = harq.failed.into();
        stats["bler"] =
            if transmissions == 0 { 0.0 } else { harq.failed as f64 / transmissions as f64 }.into();
        stats["harq"] = json!({
            "transport_blocks": harq.blocks(),
            "transmissions": harq.attempts,
            "exhausted": harq.exhausted,
            "nack_to_ack": harq.nack_to_ack,
            "block_bytes": shared.capacity,
            "pdu_bytes": shared.used,
        });
        if let Some(requests) = shared.requests() {
            stats["grants"] = json!({ "scheduling_requests": requests, "unused": shared.padding });
        }
        stats
    }
}

impl Bearer {
    fn statistics(&self, direction: Direction) -> Value {
        let DirectionState { queue, ledger, counters, .. } = &self.directions[direction];
        let (waiting, waiting_bytes) = ledger.waiting();
        let mut stats = json!({
            "packets": counters.packets,
            "bytes": counters.bytes,
            "delivered": counters.delivered,
            "delivered_bytes": counters.delivered_bytes,
            "queue_full": counters.queue_full,
            "rlc_loss": counters.rlc_loss,
            "pdcp_discard": counters.pdcp_discard,
            "pdcp_late": counters.pdcp_late,
            "handover": counters.handover,
            "refused": counters.refused,
            "unknown_sdus": counters.unknown_sdus,
            "queue_packets": waiting + queue.len(),
            "queue_bytes": waiting_bytes + queue.bytes(),
            "queue_peak_bytes": counters.queue_peak_bytes,
            "held": ledger.held() + queue.len(),
            "sender": self.sender_statistics(direction),
            "receiver": self.receiver_statistics(direction),
            "pdcp": self.pdcp_statistics(direction),
        });
        if self.settings.directions[direction].queues_in_pdcp() {
            stats["queue"] = queue.stats();
        }
        stats
    }

    /// Statistics of RLC at the sender of this direction.
    fn sender_statistics(&self, direction: Direction) -> Value {
        let stats = self.entities[direction].stats();
        let buffer = self.entities[direction].buffer_status();
        json!({
            "pdus_new": stats.pdus_new,
            "pdus_resent": stats.pdus_retransmitted,
            "polls": stats.polls,
            "poll_timeouts": stats.poll_timeouts,
            "statuses_received": stats.statuses_received,
            "buffer_bytes": buffer.total(),
        })
    }

    /// Statistics of RLC at the receiver of this direction.
    fn receiver_statistics(&self, direction: Direction) -> Value {
        let stats = self.entities[direction.reversed()].stats();
        json!({
            "statuses_sent": stats.statuses_sent,
            "duplicates": stats.duplicates,
            "reassembly_timeouts": stats.reassembly_timeouts,
            "refused": stats.refused,
        })
    }

    fn pdcp_statistics(&self, direction: Direction) -> Value {
        let DirectionState { receiver, counters, .. } = &self.directions[direction];
        let pdcp = receiver.counters();
        json!({
            "retransmitted_sdus": counters.retransmitted_sdus,
            "held_now": receiver.held(),
            "held": pdcp.held,
            "mean_hold_seconds": pdcp.hold_time.as_secs_f64() / pdcp.held.max(1) as f64,
            "longest_hold_seconds": pdcp.longest_hold.as_secs_f64(),
            "discarded": pdcp.discarded,
            "t_reordering_expiries": pdcp.t_reordering_expiries,
        })
    }
}
