//! Judges the last seconds of each connection, to answer why it is slow now.
//!
//! A part of a connection is a copy of its state without the evidence from before. A new part begins after each
//! step, and the earlier one of the last two parts is judged. It covers one to two steps.

use std::collections::BTreeMap;

use aircaptures::packet::{Packet, Timestamp};

use super::connection::Connection;
use super::connection::findings::RecentFindings;

/// Nanoseconds between two parts. Shorter parts have too few losses and round trips for a verdict.
const MIN_STEP: i64 = 4_000_000_000;
/// The same in round trips, because windows and queues change once per round trip.
const STEP_ROUND_TRIPS: i64 = 20;
/// Upper bound in nanoseconds, which is reached with round trips of a second.
const MAX_STEP: i64 = 20_000_000_000;

/// The last parts of the connections, by slot.
#[derive(Default)]
pub(crate) struct Recent {
    parts: BTreeMap<usize, Parts>,
    /// The memory of all parts in bytes.
    memory: usize,
}

/// The last parts of a connection: at most two, in order of their begin.
#[derive(Default)]
struct Parts {
    parts: Vec<Connection>,
    /// The memory in bytes when the last part began.
    memory: usize,
}

/// Returns the time between two parts in nanoseconds.
fn step(whole: &Connection) -> i64 {
    let round_trip = whole.round_trip().unwrap_or(0);
    round_trip.saturating_mul(STEP_ROUND_TRIPS).clamp(MIN_STEP, MAX_STEP)
}

impl Recent {
    /// Processes a packet that `whole` has not processed yet.
    pub(crate) fn process(&mut self, slot: usize, whole: &Connection, packet: &Packet) {
        let (at, step) = (whole.time_of(packet.at), step(whole));
        if at < step {
            return;
        }
        let parts = self.parts.entry(slot).or_default();
        if at - parts.parts.last().map_or(0, Connection::judged_from) >= step {
            // After a long silence, the new part begins before the end of the silence.
            let earliest = at - 2 * step;
            parts.parts.retain(|part| part.judged_from() > earliest);
            parts.parts.push(whole.continued(whole.now().max(earliest)));
            let memory = size_of::<Parts>() + parts.parts.iter().map(Connection::memory).sum::<usize>();
            self.memory = self.memory - std::mem::replace(&mut parts.memory, memory) + memory;
        }
        parts.parts.iter_mut().for_each(|part| part.process(packet));
    }

    /// Returns the verdict about the last seconds before `now`.
    pub(crate) fn findings(
        &self,
        slot: usize,
        whole: &Connection,
        now: Timestamp,
        resolution: i64,
    ) -> RecentFindings {
        let earliest = whole.time_of(now).max(whole.now()) - 2 * step(whole);
        let parts = self.parts.get(&slot).map_or(&[][..], |parts| &parts.parts);
        let part = parts.iter().find(|part| part.judged_from() >= earliest).or_else(|| parts.last());
        let mut judged = part.filter(|_| earliest > 0).unwrap_or(whole).clone();
        if !whole.is_over() {
            judged.wait_until(now);
        }
        let findings = judged.finish(resolution).findings;
        RecentFindings { seconds: findings.seconds, verdict: findings.verdict }
    }

    /// Forgets the parts of a connection.
    pub(crate) fn forget(&mut self, slot: usize) {
        if let Some(parts) = self.parts.remove(&slot) {
            self.memory -= parts.memory;
        }
    }

    /// Forgets the parts of connections that were idle during all of the last seconds.
    pub(crate) fn forget_idle(&mut self, now: Timestamp) {
        let memory = &mut self.memory;
        self.parts.retain(|_, parts| {
            let last = parts.parts.last().map_or(now, Connection::last_packet);
            let is_recent = now.0.saturating_sub(last.0) <= 2 * MAX_STEP;
            *memory -= if is_recent { 0 } else { parts.memory };
            is_recent
        });
    }

    /// Returns the memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }
}
