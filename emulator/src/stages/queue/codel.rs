//! CoDel (Nichols, Jacobson, McGregor, Iyengar; RFC 8289 §5). It drops packets when they leave the queue. The
//! drop rate grows as long as packets wait too long.
//!
//! Choice: the RFC's pseudocode does not include marking. As in Linux, a packet that is marked instead of
//! dropped is sent, and the search for packets to drop ends. At most one packet is marked per call.

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::config::CodelConfig;
use super::{CallContext, QueuedPacket};

/// The state, with the RFC's names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// Time at which the sojourn time will have been above the target for one interval. `None`: it is below
    /// the target.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    /// Packets dropped or marked since the dropping state began.
    count: u32,
    /// The value of `count` when the dropping state began.
    lastcount: u32,
    dropping: bool,
}

/// Computes t + interval / sqrt(count). IEEE 754 defines square root and division exactly, so the result is
/// the same on all platforms.
fn control_law(t: Instant, interval: Duration, count: u32) -> Instant {
    t + Duration::from_nanos((interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64)
}

impl Codel {
    /// Returns whether the sojourn time, as of this dequeued packet, has been too long for an interval (§5.5,
    /// dodequeue()).
    fn ok_to_drop(
        &mut self,
        config: &CodelConfig,
        head: Option<&QueuedPacket>,
        context: &CallContext<'_>,
    ) -> bool {
        let waits_too_long = head.filter(|head| {
            context.now.saturating_since(head.queued_at) >= config.target
                && context.counters.bytes > config.mtu.as_bytes()
        });
        if waits_too_long.is_none() {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            Some(first_above) => context.now >= first_above,
            None => {
                self.first_above_time = Some(context.now + config.interval);
                false
            }
        }
    }

    /// Removes the next packet to send (§5.5, dequeue()).
    pub(super) fn dequeue(
        &mut self,
        config: &CodelConfig,
        packets: &mut VecDeque<QueuedPacket>,
        context: &mut CallContext<'_>,
    ) -> Option<QueuedPacket> {
        let mut head = context.take(packets);
        let ok_to_drop = self.ok_to_drop(config, head.as_ref(), context);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && context.now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                head = context.signal(head?, config.ecn);
                if head.is_some() {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                    break;
                }
                head = context.take(packets);
                self.dropping = self.ok_to_drop(config, head.as_ref(), context);
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                }
            }
        } else if ok_to_drop {
            head = context.signal(head?, config.ecn);
            if head.is_none() {
                head = context.take(packets);
                // This packet is sent in any case, but it updates `first_above_time`.
                self.ok_to_drop(config, head.as_ref(), context);
            }
            self.begin_dropping(config, context.now);
        }
        head
    }

    /// Enters the dropping state. If the previous one ended recently, its drop rate is a good start.
    fn begin_dropping(&mut self, config: &CodelConfig, now: Instant) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.lastcount);
        let recently = now.saturating_since(self.drop_next) < config.interval.saturating_mul(16);
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.lastcount = self.count;
        self.drop_next = control_law(now, config.interval, self.count);
    }

    /// Counts packets that FQ-CoDel dropped from the head for lack of room.
    pub(super) fn count_overflow_drops(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }
}
