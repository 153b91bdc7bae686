//! Locates the capture point: it is near the end that responds immediately.

use aircaptures::packet::Packet;

use super::findings::CapturePoint;
use crate::compact::CompactOption;

/// The response time of one end, counted at the capture point. It is measured with handshakes, timestamps and
/// ACKs.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyDelay {
    min: CompactOption,
    /// The time when the other end's timestamp `pending` passed. `None` once this end has echoed it.
    pending_at: CompactOption,
    pending: u32,
    /// The first and the newest timestamp of the other end.
    timestamps: Option<[u32; 2]>,
}

impl ReplyDelay {
    pub(super) fn min(&self) -> Option<i64> {
        self.min.as_time()
    }

    /// Returns the first and the newest timestamp of the other end.
    pub(super) fn timestamps(&self) -> Option<[u32; 2]> {
        self.timestamps
    }

    pub(super) fn add(&mut self, ns: i64) {
        self.min = CompactOption::time(self.min().map_or(ns, |min| min.min(ns)));
    }

    /// Records a packet of the other end, whose timestamp this end will echo.
    pub(super) fn process_request(&mut self, at: i64, packet: &Packet) {
        let Some(timestamps) = packet.options.timestamps else { return };
        let [first, newest] = self.timestamps.unwrap_or([timestamps.val; 2]);
        if self.timestamps.is_none() || (timestamps.val.wrapping_sub(newest) as i32) > 0 {
            self.timestamps = Some([first, timestamps.val]);
            if self.pending_at.as_time().is_none() {
                (self.pending, self.pending_at) = (timestamps.val, CompactOption::time(at));
            }
        }
    }

    /// Records a packet of this end, which may contain the echo.
    pub(super) fn process_reply(&mut self, at: i64, packet: &Packet) {
        let pending_at = self.pending_at.as_time();
        let (Some(timestamps), Some(pending_at)) = (packet.options.timestamps, pending_at) else { return };
        let distance = timestamps.ecr.wrapping_sub(self.pending) as i32;
        if distance == 0 {
            self.add(at - pending_at);
        }
        if distance >= 0 {
            self.pending_at = CompactOption::default();
        }
    }
}

/// An end whose share of the round trip is at most this value is at the capture point.
const NEAR: f64 = 0.1;
/// Nanoseconds. A shorter round trip, as within one machine, does not show the capture point.
const MIN_ROUND_TRIP: i64 = 300_000;

/// Locates the capture point from the minimum response times of both ends. `resolution` is the step
/// of the capture's clock in nanoseconds.
pub(super) fn locate(response_times: [Option<i64>; 2], resolution: i64) -> CapturePoint {
    let [Some(first), Some(second)] = response_times else { return CapturePoint::Unknown };
    let round_trip = first + second;
    if round_trip < MIN_ROUND_TRIP || round_trip as f64 * NEAR < resolution as f64 {
        return CapturePoint::Unknown;
    }
    let share = first as f64 / round_trip as f64;
    if share <= NEAR {
        CapturePoint::End { end: 0 }
    } else if share >= 1.0 - NEAR {
        CapturePoint::End { end: 1 }
    } else {
        CapturePoint::Between { share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_point_is_inferred_from_response_times() {
        let ms = |a: i64, b: i64| locate([Some(a * 1_000_000), Some(b * 1_000_000)], 1000);
        assert_eq!(ms(0, 100), CapturePoint::End { end: 0 });
        assert_eq!(ms(100, 5), CapturePoint::End { end: 1 });
        assert_eq!(ms(25, 75), CapturePoint::Between { share: 0.25 });
        assert_eq!(ms(0, 0), CapturePoint::Unknown, "both ends respond immediately");
        assert_eq!(locate([None, Some(1_000_000)], 1000), CapturePoint::Unknown);
        let coarse = locate([Some(0), Some(50_000_000)], 10_000_000);
        assert_eq!(coarse, CapturePoint::Unknown, "the clock has steps of 10 ms");
    }
}
