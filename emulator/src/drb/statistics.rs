//! Statistics of a bearer.

use serde_json::{Value, json};

use super::{DirectionState, Drb};
use crate::packet::Direction;

impl Drb {
    pub(super) fn statistics(&self) -> Value {
        let mut stats = json!({
            "down": self.direction_statistics(Direction::Down),
            "up": self.direction_statistics(Direction::Up),
            "cell": self.cell,
            "handovers": self.handovers,
            "radio_link_failures": self.radio_link_failures,
        });
        if !self.others.is_empty() {
            let (slots, octets) = self.others.counters();
            stats["others"] = json!({ "slots": slots, "bytes": octets.collect::<Vec<_>>() });
        }
        stats
    }

    fn direction_statistics(&self, direction: Direction) -> Value {
        let DirectionState { queue, ledger, counters, channel, .. } = &self.directions[direction];
        let (waiting, waiting_bytes) = ledger.waiting();
        let harq = channel.harq_counters();
        let transmissions: u64 = harq.attempts.iter().sum();
        let mut stats = json!({
            "packets": counters.packets,
            "bytes": counters.bytes,
            "delivered": counters.delivered,
            "delivered_bytes": counters.delivered_bytes,
            "queue_full": counters.queue_full,
            "pdcp_discard": counters.pdcp_discard,
            "pdcp_late": counters.pdcp_late,
            "handover": counters.handover,
            "refused": counters.refused,
            "unknown_sdus": counters.unknown_sdus,
            "queue_packets": waiting + queue.len(),
            "queue_bytes": waiting_bytes + queue.bytes(),
            "held": ledger.held() + queue.len(),
            "blocks": transmissions,
            "blocks_lost": harq.failed,
            "bler": if transmissions == 0 { 0.0 } else { harq.failed as f64 / transmissions as f64 },
            "harq": {
                "transport_blocks": harq.blocks(),
                "transmissions": harq.attempts,
                "exhausted": harq.exhausted,
                "nack_to_ack": harq.nack_to_ack,
                "block_bytes": channel.capacity,
                "pdu_bytes": channel.used,
            },
            "sender": self.sender_statistics(direction),
            "receiver": self.receiver_statistics(direction),
            "pdcp": self.pdcp_statistics(direction),
        });
        if let Some(requests) = channel.requests() {
            stats["grants"] = json!({ "scheduling_requests": requests, "unused": channel.padding });
        }
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
