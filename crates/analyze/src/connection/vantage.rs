//! Locates the capture point: it is near the end that responds immediately.

use super::compact::CompactOption;
use super::findings::CaptureAt;
use aircaptures::packet::Packet;

/// The response time of one end, seen from the capture point. It is measured with handshakes, timestamps and
/// ACKs.
#[derive(Debug, Default)]
pub(super) struct ReplyDelay {
    /// The minimum so far.
    least: CompactOption,
    /// A timestamp of the *other* end that this end has not echoed yet. `since` is the time when it passed.
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

    /// Records a packet of the other end, whose timestamp this end will echo.
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

    /// Records a packet of this end, which may contain the echo.
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

/// An end whose share of the round trip is at most this value is at the capture point.
const NEAR: f64 = 0.1;
/// Nanoseconds. A shorter round trip, as within one machine, does not show the capture point.
const TOO_SHORT: i64 = 300_000;

/// Locates the capture point from the minimum response times of both ends.
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
    fn capture_point_is_inferred_from_response_times() {
        let ms = |a: i64, b: i64| capture_at([Some(a * 1_000_000), Some(b * 1_000_000)]);
        assert_eq!(ms(0, 100), CaptureAt::End { end: 0 });
        assert_eq!(ms(100, 5), CaptureAt::End { end: 1 });
        assert_eq!(ms(25, 75), CaptureAt::Between { share: 0.25 });
        assert_eq!(ms(0, 0), CaptureAt::Unknown, "both ends respond immediately");
        assert_eq!(capture_at([None, Some(1_000_000)]), CaptureAt::Unknown);
    }
}
