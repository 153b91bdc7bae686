//! Segment-in-Flight Estimation (Pan et al. 2004, §4.2). A sender that knows that few segments are in flight
//! does not have to wait for three duplicate ACKs that cannot arrive.
//!
//! `sifest_` counts the segments in flight. A new segment adds one, a new ACK subtracts what it covers, and a
//! timeout or an idle round trip sets it to zero. On a duplicate ACK, the first unacknowledged segment is
//! retransmitted if `dupacks >= sifest_ - 1` or `dupacks` has reached DupThresh, *and* if it was not
//! retransmitted within the last round trip. The second condition finds lost retransmissions (Pan et al.
//! 2004, Fig. 9). Such a loss starts a new episode (RFC 5681 §4.3) and reduces the window again.
//!
//! The receiver only has to send duplicate ACKs immediately (RFC 5681 §4.2). With a scoreboard, IsLost() of
//! RFC 6675 applies in addition.
//!
//! Where the paper leaves something open, or its rule costs more than it gains, [`choices`] makes a choice.
//! Each choice is an enum, and a parameter selects the paper's wording instead. `sifest-literal` combines
//! five of these parameters. `airtcp reproduce p0-text` measures the effect of each.
//!
//! In the profile `ns2`, the dialect of `sack` counts no duplicate ACKs between a timeout and the next new
//! ACK, so the estimate receives none then.

mod choices;
#[cfg(test)]
mod tests;

use airwire::time::{Duration, Instant};

pub(crate) use choices::{
    ANY_ACK, BEFORE_RECOVER, BY_CLOCK, COUNTS_ALL_COPIES, COUNTS_NEW_DATA, IDLE_BY_CLOCK, IN_VAIN,
    IN_VAIN_AT_THREE, PATH_IS_EMPTY,
};
use choices::{AfterTimeout, Choices, Counted, Idle, InVain, Least, Overdue, Recover};

use super::retransmissions::{RetransmissionState, Retransmissions, all_but_the_head, right_edge};
use super::{Detect, ThreeDupacks, Verdict};
use crate::recovery::parameter::Arguments;
use crate::recovery::{Ack, RecoveryState, Transmission, TransmissionKind, View};

/// The reason for a go-back-N pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Pass {
    /// A loss found by duplicate ACKs (Tahoe).
    #[default]
    AfterDupacks,
    AfterTimeout,
}

#[derive(Debug, Default)]
pub(crate) struct Sifest {
    choices: Choices,
    three_dupacks: ThreeDupacks,
    /// `sifest_`: the estimated number of segments in flight.
    sifest: u64,
    /// One past the highest offset sent since the last timeout. Segments below it have already been counted.
    counted_to: u64,
    pass: Pass,
    /// Time of the last transmission.
    last_sent: Option<Instant>,
    /// Time of the last ACK.
    last_ack: Option<Instant>,
    retransmissions: Retransmissions,
    /// Number of retransmissions covered by the last new ACK that may arrive after the one that caused the
    /// ACK.
    in_vain: u64,
}

impl Sifest {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        Self { choices: Choices::new(arguments), ..Self::default() }
    }

    /// Returns the number of duplicate ACKs that are enough according to the estimate.
    fn enough(&self) -> u64 {
        let estimated = self.sifest.saturating_sub(1);
        let estimated = match self.choices.least {
            Least::OneDupack => estimated.max(1),
            Least::AnyAck => estimated,
        };
        match self.choices.in_vain {
            InVain::RaisesBoth | InVain::RaisesEstimate => estimated + self.in_vain,
            InVain::Ignored => estimated,
        }
    }

    /// Returns the number of duplicate ACKs that are enough without the estimate.
    fn fixed_threshold(&self, view: &View<'_>) -> u64 {
        let fixed = u64::from(view.rules.detection.dup_thresh);
        match self.choices.in_vain {
            InVain::RaisesBoth => fixed + self.in_vain,
            InVain::RaisesEstimate | InVain::Ignored => fixed,
        }
    }

    /// Returns whether the sender was idle before this transmission: "or the sender has been idle for more
    /// than one rtt".
    fn was_idle(&self, view: &View<'_>, transmission: &Transmission) -> bool {
        let longer = |since: Option<Instant>| {
            since.is_some_and(|since| view.now.saturating_since(since) > round_trip(view))
        };
        match self.choices.idle {
            // The idle period begins with the ACK of all outstanding data.
            Idle::NothingOutstanding => {
                transmission.kind == TransmissionKind::New
                    && view.flight.una() == transmission.start
                    && longer(self.last_ack)
            }
            Idle::NothingSent => longer(self.last_sent),
        }
    }

    fn counts(&self, transmission: &Transmission) -> bool {
        match self.choices.counted {
            Counted::EachOnce => transmission.end > self.counted_to,
            Counted::EachCopy => match transmission.kind {
                TransmissionKind::New => true,
                TransmissionKind::Timeout => self.pass == Pass::AfterTimeout,
                _ => false,
            },
            Counted::NewData => transmission.kind == TransmissionKind::New,
        }
    }

    /// Returns whether the latest copy of the head should have been acknowledged by now.
    fn is_overdue(&self, view: &View<'_>, sent_at: Instant) -> bool {
        let passed = view.now.saturating_since(sent_at);
        match self.choices.overdue {
            Overdue::Overtaken => {
                let overtaken =
                    |copy: RetransmissionState| copy.overtaken_by > 0 || right_edge(view) > copy.high;
                let shortest = view.rtt.min().unwrap_or_else(|| view.rtt.rto().get());
                self.retransmissions.get(view.flight.una()).is_none_or(overtaken) && passed >= shortest
            }
            Overdue::ByClock => passed >= round_trip(view),
        }
    }
}

impl Detect for Sifest {
    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        if self.was_idle(view, transmission) {
            (self.sifest, self.in_vain) = (0, 0);
        }
        self.last_sent = Some(view.now);
        self.sifest += u64::from(self.counts(transmission));
        self.counted_to = self.counted_to.max(transmission.end);
        self.retransmissions.on_sent(view, transmission);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let covered = self.retransmissions.on_ack(view, ack);
        self.last_ack = Some(view.now);
        if ack.advances() {
            self.sifest = self.sifest.saturating_sub(ack.acked.segments);
            self.in_vain = covered.saturating_sub(1);
        }
        let by_default = self.three_dupacks.on_ack(view, ack);
        let is_asked = ack.duplicate || self.choices.least == Least::AnyAck;
        let Some(head) = view.flight.head().filter(|_| is_asked) else { return by_default };
        let dupacks = u64::from(view.cc.dupacks());
        let estimated = dupacks >= self.enough();
        let by_number = dupacks >= self.fixed_threshold(view);
        if head.transmissions > 1 {
            if (estimated || by_number) && self.is_overdue(view, head.last_sent) {
                self.retransmissions.lost(head.start);
                return Verdict::RetransmittedHead {
                    new_episode: true,
                    why: "retransmitted one round trip ago",
                };
            }
            // The head has already been retransmitted, but a scoreboard may show more holes.
            return if matches!(by_default, Verdict::Head { .. }) { Verdict::Nothing } else { by_default };
        }
        if matches!(by_default, Verdict::Below { .. }) {
            return by_default;
        }
        let pass_will_reach_it = view.cc.state() == RecoveryState::Loss;
        match by_default {
            Verdict::Head { why } if self.choices.recover == Recover::Ignored => {
                Verdict::HeadDespiteRecover { why }
            }
            _ if estimated && !pass_will_reach_it => {
                Verdict::HeadDespiteRecover { why: "sifest - 1 duplicate ACKs" }
            }
            _ => by_default,
        }
    }

    fn on_episode(&mut self, view: &View<'_>) {
        self.pass = Pass::AfterDupacks;
        self.retransmissions.on_episode(view);
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        (self.sifest, self.in_vain) = (0, 0);
        self.counted_to = view.flight.una();
        self.pass = Pass::AfterTimeout;
        let is_recent = self.last_ack.is_some_and(|at| view.now.saturating_since(at) < round_trip(view));
        let in_path = match self.choices.after_timeout {
            AfterTimeout::RecentAck if is_recent => all_but_the_head(view),
            AfterTimeout::RecentAck | AfterTimeout::Empty => 0,
        };
        self.retransmissions.begin(in_path);
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.rules.detection.dup_thresh.min(self.enough() as u32)
    }
}

/// Returns the paper's "rtt": SRTT or, before the first sample, the RTO.
pub(super) fn round_trip(view: &View<'_>) -> Duration {
    view.rtt.srtt().unwrap_or_else(|| view.rtt.rto().get())
}
