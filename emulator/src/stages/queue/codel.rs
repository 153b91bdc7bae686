//! CoDel: Nichols, Jacobson, McGregor, Iyengar, RFC 8289 §5. Packets are dropped when they leave the queue, ever more
//! often for as long as each of them has waited too long.
//!
//! Choice: the RFC has no word on marking in its code. As in Linux, a packet that is marked in place of being dropped
//! is handed on, and that ends the search for one: what is marked is one packet at a time.

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::config::CodelConfig;
use super::{Desk, Waiting};

/// The state, in the RFC's names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// When the sojourn time will have been above the target for an interval. `None`: it is below.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    /// Packets dropped since the dropping state began.
    count: u32,
    /// `count` as the dropping state began with it.
    lastcount: u32,
    dropping: bool,
}

/// t + interval / sqrt(count). Square roots and divisions of an `f64` are the same everywhere.
fn control_law(t: Instant, interval: Duration, count: u32) -> Instant {
    t + Duration::from_nanos((interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64)
}

impl Codel {
    /// Whether this packet, which was at the head of the queue, has been there for too long (§5.5, dodequeue()).
    fn ok_to_drop(&mut self, config: &CodelConfig, head: Option<&Waiting>, desk: &Desk<'_>) -> bool {
        let waits_too_long = head.filter(|head| {
            desk.now.saturating_since(head.since) >= config.target && desk.tally.bytes > config.mtu.as_bytes()
        });
        if waits_too_long.is_none() {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            Some(first_above) => desk.now >= first_above,
            None => {
                self.first_above_time = Some(desk.now + config.interval);
                false
            }
        }
    }

    /// The next packet of `line` that goes on (§5.5, dequeue()).
    pub(super) fn dequeue(
        &mut self,
        config: &CodelConfig,
        line: &mut VecDeque<Waiting>,
        desk: &mut Desk<'_>,
    ) -> Option<Waiting> {
        let mut head = desk.take(line);
        let ok_to_drop = self.ok_to_drop(config, head.as_ref(), desk);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && desk.now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                head = desk.signal(head?, config.ecn);
                if head.is_some() {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                    break;
                }
                head = desk.take(line);
                self.dropping = self.ok_to_drop(config, head.as_ref(), desk);
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                }
            }
        } else if ok_to_drop {
            head = desk.signal(head?, config.ecn);
            if head.is_none() {
                head = desk.take(line);
                // It goes on in any case, but tells whether the queue is still too long.
                self.ok_to_drop(config, head.as_ref(), desk);
            }
            self.begin_dropping(config, desk.now);
        }
        head
    }

    /// If the last dropping state ended not long ago, its rate is a good one to begin with.
    fn begin_dropping(&mut self, config: &CodelConfig, now: Instant) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.lastcount);
        let recently = now.saturating_since(self.drop_next) < config.interval.saturating_mul(16);
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.lastcount = self.count;
        self.drop_next = control_law(now, config.interval, self.count);
    }

    /// So many packets were dropped from the head because there was no room (FQ-CoDel).
    pub(super) fn dropped_otherwise(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }
}
