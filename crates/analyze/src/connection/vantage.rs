//! Where a capture was made: the end that answers at once is near.

use super::compact::CompactOption;
use super::findings::CaptureAt;
use aircaptures::packet::Packet;

/// How soon one end answers, seen from the capture: it is measured from handshakes, timestamps and ACKs.
#[derive(Debug, Default)]
pub(super) struct ReplyDelay {
    /// The least so far.
    least: CompactOption,
    /// A timestamp of the *other* end that this one has not echoed, and when it came past.
    waiting: Option<u32>,
    since: i64,
    /// The newest timestamp of the other end.
    newest: Option<u32>,
}

impl ReplyDelay {
    pub(super) fn least(&self) -> Option<i64> {
        self.least.as_time()
    }

    pub(super) fn add(&mut self, ns: i64) {
        self.least = CompactOption::time(self.least().map_or(ns, |least| least.min(ns)));
    }

    /// A packet of the other end came past: its timestamp is to be echoed.
    pub(super) fn take_request(&mut self, at: i64, packet: &Packet) {
        let Some(timestamps) = packet.options.timestamps else { return };
        let newer = self.newest.is_none_or(|newest| (timestamps.val.wrapping_sub(newest) as i32) > 0);
        if newer {
            self.newest = Some(timestamps.val);
            if self.waiting.is_none() {
                (self.waiting, self.since) = (Some(timestamps.val), at);
            }
        }
    }

    /// A packet of this end came past: it may have the echo.
    pub(super) fn take_reply(&mut self, at: i64, packet: &Packet) {
        let (Some(timestamps), Some(val)) = (packet.options.timestamps, self.waiting) else { return };
        let distance = timestamps.ecr.wrapping_sub(val) as i32;
        if distance == 0 {
            self.add(at - self.since);
        }
        if distance >= 0 {
            self.waiting = None;
        }
    }
}

/// An end that takes less than this share of the round trip is where the capture was made.
const NEAR: f64 = 0.1;
/// Nanoseconds: of a shorter round trip, as within one machine, nothing can be said.
const TOO_SHORT: i64 = 300_000;

/// From the least delay of the replies of either end.
pub(super) fn capture_at(least: [Option<i64>; 2]) -> CaptureAt {
    let [Some(first), Some(second)] = least else { return CaptureAt::Unknown };
    let whole = first + second;
    if whole < TOO_SHORT {
        return CaptureAt::Unknown;
    }
    let share = first as f64 / whole as f64;
    if share <= NEAR {
        CaptureAt::End { end: 0 }
    } else if share >= 1.0 - NEAR {
        CaptureAt::End { end: 1 }
    } else {
        CaptureAt::Between { share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_answers_at_once_is_near() {
        let ms = |a: i64, b: i64| capture_at([Some(a * 1_000_000), Some(b * 1_000_000)]);
        assert_eq!(ms(0, 100), CaptureAt::End { end: 0 });
        assert_eq!(ms(100, 5), CaptureAt::End { end: 1 });
        assert_eq!(ms(25, 75), CaptureAt::Between { share: 0.25 });
        assert_eq!(ms(0, 0), CaptureAt::Unknown, "nobody is far away");
        assert_eq!(capture_at([None, Some(1_000_000)]), CaptureAt::Unknown);
    }
}
