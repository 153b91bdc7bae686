//! Statistics of a bearer.

use serde_json::{Value, json};

use super::{Bearer, DirectionState};
use crate::packet::Direction;
use crate::rlc::umts::dch::Dch;
use crate::rlc::umts::entity::Entity;

impl Bearer {
    pub(super) fn statistics(&self) -> Value {
        let direction = |direction: Direction| {
            let DirectionState { channel, queue, ledger, counters, .. } = &self.directions[direction];
            let (waiting, waiting_bytes) = ledger.waiting();
            let blocks = channel.counters();
            let bler = if blocks.blocks == 0 { 0.0 } else { blocks.lost as f64 / blocks.blocks as f64 };
            let mut stats = json!({
                "packets": counters.packets,
                "bytes": counters.bytes,
                "delivered": counters.delivered,
                "delivered_bytes": counters.delivered_bytes,
                "queue_full": counters.queue_full,
                "rlc_discard": counters.rlc_discard,
                "rlc_reset": counters.rlc_reset,
                "refused": counters.refused,
                "unknown_sdus": counters.unknown_sdus,
                "queue_packets": waiting + queue.len(),
                "queue_bytes": waiting_bytes + queue.bytes(),
                "held": ledger.held() + queue.len(),
                "rate": channel.rate().map(Dch::name),
                "ttis": blocks.ttis,
                "blocks": blocks.blocks,
                "blocks_lost": blocks.lost,
                "blocks_lost_in_outage": blocks.lost_in_outage,
                "bler": bler,
                "sender": sender_stats(&self.entities[direction], self.config.direction(direction).sender.window),
                "receiver": receiver_stats(&self.entities[direction.reversed()]),
            });
            if !queue.is_drop_tail() {
                stats["queue"] = queue.stats();
            }
            stats
        };
        let mut down = direction(Direction::Down);
        if let Some(link) = self.link() {
            down["hsdpa"] = link.stats();
        }
        json!({
            "down": down,
            "up": direction(Direction::Up),
            "reestablished": self.reestablished,
        })
    }
}

/// Statistics of an entity as the sender of its direction. `configured` is its configured window; the current
/// window is included only if the peer has reduced it.
fn sender_stats(entity: &Entity, configured: u16) -> Value {
    let stats = entity.stats();
    let window = entity.window();
    json!({
        "window": (window < configured).then_some(window),
        "suspended": entity.suspended(),
        "windows_applied": stats.windows_applied,
        "pdus_new": stats.pdus_new,
        "pdus_resent": stats.pdus_resent,
        "poll_retransmissions": stats.poll_retransmissions,
        "polls": stats.polls,
        "timer_poll_expiries": stats.timer_poll_expiries,
        "nacks": stats.nacks,
        "nacks_ignored": stats.nacks_ignored,
        "window_full": stats.window_full,
        "window_stalls": stats.window_stalls,
        "statuses_received": stats.statuses_received,
        "statuses_refused": stats.statuses_refused,
        "resets": stats.resets(),
        "resets_max_dat": stats.resets_max_dat,
        "resets_max_mrw": stats.resets_max_mrw,
        "resets_erroneous_sn": stats.resets_erroneous_sn,
        "reset_pdus": stats.reset_pdus,
        "unrecoverable_errors": stats.unrecoverable_errors,
        "discards": stats.discards,
        "mrws_sent": stats.mrws_sent,
        "sdus_discarded": stats.sdus_discarded,
        "sdus_reset": stats.sdus_reset,
    })
}

/// Statistics of an entity as a receiver.
pub(in crate::rlc) fn receiver_stats(entity: &Entity) -> Value {
    let (stats, faults) = (entity.stats(), entity.faults());
    json!({
        "windows_sent": stats.windows_sent,
        "faults": faults,
        "pdus_received": stats.pdus_received,
        "duplicates": stats.duplicates,
        "outside_window": stats.outside_window,
        "polled": stats.polled,
        "statuses_sent": stats.statuses_sent,
        "piggybacked": stats.piggybacked,
        "mrws_received": stats.mrws_received,
        "mrws_obsolete": stats.mrws_obsolete,
        "decode_errors": stats.decode_errors,
        "ignored": stats.ignored,
    })
}
