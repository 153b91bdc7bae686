//! Determines how the receiver of data acknowledges: every segment, every second segment, or by a timer.

use crate::compact::OnDemand;
use crate::connection::findings::{AckPolicy, AckPolicyFindings};
use crate::rtt::{Measured, Rtt};

/// A timer delayed an ACK that is at least this number of nanoseconds later than the fastest ACK. Delayed-ACK
/// timers are longer (40 ms or more in Linux, up to 500 ms in other stacks, RFC 9293 §3.8.6.3), and hosts
/// respond faster.
pub(super) const WAITED: i64 = 20_000_000;
/// Minimum number of ACKs for a verdict.
const MIN_ACKS: u32 = 10;

/// ACKs for new data that arrived in order without loss.
#[derive(Clone, Debug, Default)]
pub(super) struct AckCounts {
    one: u32,
    two: u32,
    more: u32,
    /// The ACK delays of segments that were alone in flight.
    waited: OnDemand<Rtt>,
}

/// The data that an ACK covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) octets: u64,
    pub(super) segment: u32,
    /// The time until the ACK, and the minimum RTT, if the ACK covers the newest segment and this segment was
    /// alone in flight.
    pub(super) alone: Option<[i64; 2]>,
}

impl AckCounts {
    pub(super) fn add(&mut self, acked: Acked) {
        match acked.alone {
            Some([took, least]) if took - least >= WAITED => {
                self.waited.get_or_default().add(took - least, Measured::BySegment);
                return;
            }
            // Receivers may acknowledge a short segment, such as a request, immediately. Such an ACK is not
            // evidence.
            Some(_) if acked.octets < u64::from(acked.segment) => return,
            _ => {}
        }
        let segments = (acked.octets + u64::from(acked.segment) / 2) / u64::from(acked.segment);
        let count = match segments {
            0 | 1 => &mut self.one,
            2 => &mut self.two,
            _ => &mut self.more,
        };
        *count = count.saturating_add(1);
    }

    pub(super) fn heap(&self) -> usize {
        self.waited.get().map_or(0, |waited| size_of_val(waited) + waited.heap())
    }

    pub(super) fn findings(self) -> AckPolicyFindings {
        let waited = self.waited.into_inner().findings();
        let all = self.one.saturating_add(self.two).saturating_add(self.more);
        let fewer = self.two.saturating_add(self.more);
        let looks_like = match () {
            _ if all < MIN_ACKS => AckPolicy::Undetermined,
            _ if u64::from(self.one) * 5 >= u64::from(all) * 4 => AckPolicy::EverySegment,
            _ if u64::from(fewer) * 2 < u64::from(all) => AckPolicy::Mixed,
            _ if self.two >= self.more => AckPolicy::EverySecondSegment,
            _ => AckPolicy::Fewer,
        };
        AckPolicyFindings {
            looks_like,
            for_one_segment: u64::from(self.one),
            for_two_segments: u64::from(self.two),
            for_more_segments: u64::from(self.more),
            delayed: waited.samples,
            delayed_by_median_seconds: waited.median_seconds,
            delayed_by_max_seconds: waited.max_seconds,
        }
    }
}
