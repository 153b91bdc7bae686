//! Detects captures whose directions were recorded with different clocks.
//!
//! Two taps record one direction each. If their clocks differ by more than the round trip, packets appear in
//! the capture after their responses.

use aircaptures::packet::Packet;

/// Nanoseconds within which a host or a capture may reorder packets. Wireshark uses the same value.
pub(super) const REORDERED_WITHIN: i64 = 3_000_000;
/// Number of packets that must follow their own responses to prove that the clocks differ. The capture itself
/// reorders single packets.
const MIN_PACKETS: u8 = 3;
/// Nanoseconds after which an echo without its original is forgotten.
const FORGOTTEN_AFTER: i64 = 10_000_000_000;

/// Packets that appear in the capture after their responses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AfterResponse {
    count: u8,
    /// The longest time between the response and the packet in microseconds.
    longest: u32,
}

impl AfterResponse {
    /// Records `count` packets that follow their responses after `delay` nanoseconds. Hosts and captures may
    /// reorder packets within a few milliseconds.
    pub(super) fn add(&mut self, delay: i64, count: u8) {
        if delay > REORDERED_WITHIN {
            self.count = self.count.saturating_add(count);
            self.longest = self.longest.max(u32::try_from(delay / 1000).unwrap_or(u32::MAX));
        }
    }

    /// Records a packet that follows its response and that only different clocks can explain.
    pub(super) fn prove(&mut self, delay: i64) {
        self.add(delay, MIN_PACKETS);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the smallest possible difference of the clocks in nanoseconds, or `None` without sufficient
    /// evidence.
    pub(super) fn clock_difference(&self) -> Option<i64> {
        (self.count >= MIN_PACKETS).then_some(i64::from(self.longest) * 1000)
    }
}

/// An echo whose original is missing.
#[derive(Clone, Copy, Debug)]
struct PendingEcho {
    value: u32,
    at: i64,
    /// The newest value that was echoed since `at`. `values` is the number of different values.
    newest: u32,
    values: u8,
}

/// Evidence from timestamps: an end echoes a value that the other end has not sent yet.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlyEchoes {
    pending: [Option<PendingEcho>; 2],
    pub(super) found: AfterResponse,
}

impl EarlyEchoes {
    /// Records that end `from` echoes a value that is newer than all values in the capture.
    pub(super) fn echo(&mut self, from: usize, value: u32, at: i64) {
        match &mut self.pending[from] {
            Some(pending) if at - pending.at <= FORGOTTEN_AFTER => {
                if (value.wrapping_sub(pending.newest) as i32) > 0 {
                    (pending.newest, pending.values) = (value, pending.values.saturating_add(1));
                }
            }
            pending => *pending = Some(PendingEcho { value, at, newest: value, values: 1 }),
        }
    }

    /// Processes a packet of end `from`, which may be the original of an echo.
    pub(super) fn original(&mut self, packet: &Packet, from: usize, at: i64) {
        let pending = &mut self.pending[1 - from];
        let (Some(echo), Some(timestamps)) = (*pending, packet.options.timestamps) else { return };
        let distance = timestamps.val.wrapping_sub(echo.value) as i32;
        if distance == 0 {
            self.found.add(at - echo.at, echo.values);
        }
        // If this value is newer, the capture does not contain the original.
        if distance >= 0 {
            *pending = None;
        }
    }
}
