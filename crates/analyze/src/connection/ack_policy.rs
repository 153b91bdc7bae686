//! How the receiver of data acknowledges: each segment, every second one, or by a timer.

use super::compact::OnDemand;
use super::findings::{AckPolicy, AckPolicyFindings};
use super::rtt::{Measured, Rtt};

/// Nanoseconds. What comes so much later than the fastest answer has waited for a timer: none is shorter (Linux takes 40 ms
/// or more, others up to 500, RFC 9293 §3.8.6.3), and machines take less to answer.
const WAITED: i64 = 20_000_000;
/// ACKs that a judgement needs.
const ENOUGH: u32 = 10;

/// ACKs for new data in order, while nothing was lost.
#[derive(Debug, Default)]
pub(super) struct AckCounts {
    one: u32,
    two: u32,
    more: u32,
    /// For how long segments waited that had nothing beside them in flight.
    waited: OnDemand<Rtt>,
}

/// What an ACK is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) octets: u64,
    pub(super) segment: u32,
    /// The segment, if it is one that left when nothing else was in flight, and nothing else has left since: for how long
    /// it took, and what the fastest answer takes.
    pub(super) alone: Option<[i64; 2]>,
}

impl AckCounts {
    pub(super) fn take(&mut self, acked: Acked) {
        match acked.alone {
            Some([took, least]) if took - least >= WAITED => {
                self.waited.get_or_default().add(took - least, Measured::BySegment);
                return;
            }
            // It may be that the ACK is at once for a segment of a request, say: that tells nothing.
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
            _ if all < ENOUGH => AckPolicy::CannotBeTold,
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
