//! Distinguishes a pause of a connection from a step of the capture's clock. The timestamps in the packets
//! count the time of the ends, which the clock of the capture does not affect.

use aircaptures::packet::Packet;

use super::Connection;
use crate::connection::direction::DirectionAnalysis;

/// Evidence from the first packets after a long time without packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockVote {
    /// The time has passed.
    Pause,
    /// The clock was set forward by this number of nanoseconds.
    Step { by: i64 },
}

/// Nanoseconds. A longer time without packets may be a step of the clock.
pub(crate) const MIN_STEP: i64 = 5_000_000_000;
/// Nanoseconds. The network does not delay packets by more than this.
pub(crate) const LONG_STEP: i64 = 60_000_000_000;
/// Nanoseconds per tick of a timestamp clock: the longest value (RFC 7323 §5.4), and the usual one.
const SLOWEST_TICK: i64 = 1_000_000_000;
const USUAL_TICK: i64 = 1_000_000;
/// Nanoseconds and ticks after which the rate of a timestamp clock is known.
const MEASURED_AFTER: i64 = 100_000_000;
const MEASURED_TICKS: u32 = 20;

/// Nanoseconds per tick: the longest and the most likely value.
struct Tick {
    longest: f64,
    likely: f64,
}

impl Connection {
    /// Returns what the packet shows about a long time without packets before it. `None` if that time was
    /// short. Must be called before the packet is processed.
    pub(crate) fn clock_vote(&self, packet: &Packet) -> Option<ClockVote> {
        let set_back = self.rare.get().map_or(0, |rare| rare.clock_set_back);
        let at = packet.at.0.saturating_sub(self.begin.0).saturating_add(set_back);
        let gap = at.saturating_sub(self.now);
        if gap < MIN_STEP {
            return None;
        }
        let from = self.from(packet);
        match packet.options.timestamps {
            Some(timestamps) => self.vote_by_timestamp(packet, from, timestamps.val, gap),
            None => self.vote_by_ack(packet, from, gap),
        }
    }

    fn vote_by_timestamp(&self, packet: &Packet, from: usize, tsval: u32, gap: i64) -> Option<ClockVote> {
        let [first, newest] = self.reply_delays[1 - from].timestamps()?;
        let ticks = tsval.wrapping_sub(newest);
        if ticks.cast_signed() < 0 {
            return None;
        }
        let tick = self.tick(newest.wrapping_sub(first));
        let (longest, likely) = (f64::from(ticks) * tick.longest, f64::from(ticks) * tick.likely);
        let gap_ns = gap as f64;
        if likely >= gap_ns / 2.0 {
            Some(ClockVote::Pause)
        } else if longest < gap_ns / 4.0 && !self.is_old_data(packet, from) {
            Some(ClockVote::Step { by: gap - likely as i64 })
        } else {
            None
        }
    }

    /// Returns the duration of a tick of a clock that has counted `ticks` since the connection began.
    fn tick(&self, ticks: u32) -> Tick {
        if self.now >= MEASURED_AFTER && ticks >= MEASURED_TICKS {
            let tick = self.now as f64 / f64::from(ticks);
            return Tick { longest: tick, likely: tick };
        }
        Tick { longest: SLOWEST_TICK as f64, likely: USUAL_TICK as f64 }
    }

    /// Some stacks retransmit data with the timestamp of the original.
    fn is_old_data(&self, packet: &Packet, from: usize) -> bool {
        let direction = &self.directions[from];
        packet.len > 0 && direction.offset(packet.seq).is_none_or(|start| start < direction.sent_end())
    }

    /// Without timestamps, an ACK for data that was sent once is evidence: the sender would have
    /// retransmitted it during the pause.
    fn vote_by_ack(&self, packet: &Packet, from: usize, gap: i64) -> Option<ClockVote> {
        let acked: &DirectionAnalysis = &self.directions[1 - from];
        let is_evidence = gap >= LONG_STEP && packet.ack.is_some_and(|ack| acked.is_first_copy_acked(ack));
        is_evidence.then_some(ClockVote::Step { by: gap })
    }
}
