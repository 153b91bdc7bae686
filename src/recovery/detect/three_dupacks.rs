//! Three duplicate ACKs (RFC 5681 §3.2) and, with SACK, IsLost() with the same threshold (RFC 6675 §4).

use super::{Detect, Verdict};
use crate::profile::recovery::SackDialect;
use crate::recovery::{Ack, View};

/// The default detector (RFC 5681 §3.2, RFC 6675 §4).
#[derive(Debug, Default)]
pub struct ThreeDupacks;

impl Detect for ThreeDupacks {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        judge(view, ack, view.rules.detection.dup_thresh)
    }
}

/// Applies the rule with any threshold.
pub(super) fn judge(view: &View<'_>, ack: &Ack, dup_thresh: u32) -> Verdict {
    if view.rules.dialects.sack == SackDialect::Rfc6675 && !view.flight.sacked_ranges().is_empty() {
        let edge = view.flight.is_lost_edge(dup_thresh, view.smss);
        if edge > view.flight.una() {
            return Verdict::Below { offset: edge, why: "IsLost: DupThresh SACKed above" };
        }
    }
    if ack.duplicate && view.cc.dupacks() >= dup_thresh {
        return Verdict::Head { why: "DupThresh duplicate ACKs" };
    }
    Verdict::Nothing
}
