//! A link that looks ahead: it computes when a packet leaves at the time when the packet arrives.

use airwire::time::Instant;
use serde_json::{Value, json};

use super::{Link, Pace, Transmitter};
use crate::stage::{DropReason, Lookahead, PassingPacket};

/// The packets that have arrived, with their future.
#[derive(Debug, Default)]
pub(super) struct Forecast {
    /// The time to which counters refer.
    settled: Instant,
    /// End of the last transmission.
    free_at: Instant,
    last_landing: Instant,
    /// In order of arrival. Packets that have left are removed from time to time.
    plans: Vec<Plan>,
    /// Length of `plans` at which packets are removed.
    removal_at: usize,
    /// Number of packets at the front whose transmission has begun at the time of the last arrival.
    begun: usize,
    /// The queue at the time of the last arrival.
    queue: Length,
    /// The longest queue until the last arrival.
    longest: Length,
    /// Counters of all arrivals, including future ones.
    packets: u64,
    bytes: u64,
    refused: u64,
    refused_bytes: u64,
}

/// Minimum number of arrivals after which packets that have left are removed.
const REMOVAL_INTERVAL: usize = 64;

/// The future of a packet.
#[derive(Clone, Copy, Debug)]
struct Plan {
    arrives: Instant,
    begins: Instant,
    ends: Instant,
    /// Never decreases from packet to packet. For a refused packet, the time at which the one before it lands.
    lands: Instant,
    bytes: u32,
    fate: Fate,
    /// The longest queue before the packet arrives.
    longest: Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The transmission begins on arrival.
    Served,
    Queued,
    Refused,
}

#[derive(Clone, Copy, Debug, Default)]
struct Length {
    packets: u32,
    bytes: u64,
}

/// Number and bytes of the packets for which something is true.
fn sum<'a>(plans: impl Iterator<Item = &'a Plan>) -> Length {
    plans.fold(Length::default(), |sum, plan| Length {
        packets: sum.packets + 1,
        bytes: sum.bytes + u64::from(plan.bytes),
    })
}

impl Forecast {
    /// Updates the queue to the time of an arrival.
    fn advance(&mut self, at: Instant) {
        if at >= self.free_at {
            self.queue = Length::default();
            self.begun = self.plans.len();
            return;
        }
        while let Some(plan) = self.plans.get(self.begun)
            && plan.begins <= at
        {
            if plan.fate == Fate::Queued {
                self.queue.packets -= 1;
                self.queue.bytes -= u64::from(plan.bytes);
            }
            self.begun += 1;
        }
    }

    /// Removes the packets that have left at `now`, which is not later than the last arrival.
    #[cold]
    fn remove(&mut self, now: Instant) {
        let left = self.plans.partition_point(|plan| plan.lands <= now);
        self.plans.drain(..left);
        self.begun -= left;
        // The interval grows with the list, because the remaining packets move.
        let remaining = self.plans.len();
        self.removal_at = remaining + REMOVAL_INTERVAL.max(remaining / 4);
    }

    /// Plans a packet that arrives.
    fn plan(&mut self, plan: Plan) {
        self.packets += 1;
        self.bytes += u64::from(plan.bytes);
        self.plans.push(plan);
    }

    /// Adds a packet to the queue.
    fn queue(&mut self, bytes: u32) {
        self.queue.packets += 1;
        self.queue.bytes += u64::from(bytes);
        self.longest.packets = self.longest.packets.max(self.queue.packets);
        self.longest.bytes = self.longest.bytes.max(self.queue.bytes);
    }

    /// The packets that have been accepted at the settled time and have not landed.
    fn inside(&self) -> impl Iterator<Item = &Plan> {
        let arrived = |plan: &&Plan| plan.arrives <= self.settled && plan.fate != Fate::Refused;
        self.plans.iter().filter(arrived).filter(|plan| plan.lands > self.settled)
    }

    pub(super) fn held(&self) -> usize {
        self.inside().count()
    }

    pub(super) fn stats(&self) -> Value {
        let settled = self.settled;
        let later = || self.plans.iter().filter(|plan| plan.arrives > settled);
        let refused_later = || later().filter(|plan| plan.fate == Fate::Refused);
        let (later_in, later_refused) = (sum(later()), sum(refused_later()));
        let (packets_in, bytes_in) =
            (self.packets - u64::from(later_in.packets), self.bytes - later_in.bytes);
        let refused = self.refused - u64::from(later_refused.packets);
        let refused_bytes = self.refused_bytes - later_refused.bytes;
        let inside = sum(self.inside());
        let queue = sum(self.inside().filter(|plan| plan.begins > settled));
        let sending = |plan: &&Plan| plan.begins <= settled && plan.ends > settled;
        let longest = later().next().map_or(self.longest, |plan| plan.longest);
        json!({
            "packets_in": packets_in,
            "bytes_in": bytes_in,
            "packets_out": packets_in - refused - u64::from(inside.packets),
            "bytes_out": bytes_in - refused_bytes - inside.bytes,
            "queue": {
                "packets": queue.packets,
                "bytes": queue.bytes,
                "most_packets": longest.packets,
                "most_bytes": longest.bytes,
                "refused": refused,
            },
            "transmitting": self.inside().filter(sending).count(),
            "on_the_wire": self.inside().filter(|plan| plan.ends <= settled).count(),
        })
    }
}

/// Upper bound on the background packets that a link may hold in advance, in bits.
const MAX_BACKGROUND: u64 = 8 * 50_000_000;

impl Lookahead for Link {
    #[inline]
    fn carry(&mut self, packet: &mut PassingPacket<'_>) -> Result<(), DropReason> {
        let (at, length) = (packet.at, packet.len);
        let forecast = self.forecast.get_or_insert_default();
        forecast.advance(at);
        if forecast.plans.len() >= forecast.removal_at {
            // Background traffic may arrive before `now`, if no other packet has met it yet.
            forecast.remove(packet.now.min(at));
        }
        let bytes = length as u32;
        let longest = forecast.longest;
        let (begins, ends, fate) = match &mut self.transmitter {
            Transmitter::AtRate { pace, .. } if at < forecast.free_at => {
                let Length { packets, bytes: queued } = forecast.queue;
                if !self.queue.bounds().have_room(packets as usize, queued, length) {
                    forecast.refused += 1;
                    forecast.refused_bytes += u64::from(bytes);
                    let (lands, fate) = (forecast.last_landing, Fate::Refused);
                    forecast.plan(Plan { arrives: at, begins: at, ends: at, lands, bytes, fate, longest });
                    return Err(DropReason::QueueFull);
                }
                forecast.queue(bytes);
                let begins = forecast.free_at;
                (begins, begins + pace.next(length), Fate::Queued)
            }
            Transmitter::AtRate { pace, .. } => {
                if at > forecast.free_at {
                    *pace = Pace::new(pace.rate());
                }
                (at, at + pace.next(length), Fate::Served)
            }
            Transmitter::Immediate | Transmitter::ByTrace { .. } | Transmitter::Scheduled(_) => {
                (at, at, Fate::Served)
            }
        };
        let lands = self.wire.arrival(ends).max(forecast.last_landing);
        (forecast.free_at, forecast.last_landing) = (ends, lands);
        forecast.plan(Plan { arrives: at, begins, ends, lands, bytes, fate, longest });
        packet.at = lands;
        Ok(())
    }

    fn reads_packets(&self) -> bool {
        false
    }

    fn delays(&self) -> bool {
        matches!(self.transmitter, Transmitter::AtRate { .. }) || !self.wire.max_delay().is_zero()
    }

    fn settle(&mut self, now: Instant) {
        self.forecast.get_or_insert_default().settled = now;
    }

    fn sustains(&self, background: u64) -> bool {
        let (keeps_up, rate) = match &self.transmitter {
            Transmitter::AtRate { pace, .. } => {
                let rate = pace.rate().as_bits_per_second();
                (self.queue.bounds().are_set() || background <= rate / 10 * 9, rate.min(background))
            }
            _ => (true, background),
        };
        keeps_up && rate as f64 * self.wire.max_delay().as_secs_f64() <= MAX_BACKGROUND as f64
    }
}
