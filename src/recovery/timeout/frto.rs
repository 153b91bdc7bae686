//! F-RTO (RFC 5682): after a timeout, look at two ACKs before believing it.
//!
//! The first segment is sent again. If the next ACK advances, two *new* segments are sent instead of old ones. If the
//! ACK after that acknowledges something below them that was not sent again, the originals are arriving: the timeout
//! was spurious. Where there is a scoreboard, this is the SACK-enhanced algorithm (§3.1): duplicate ACKs before the
//! first new one decide nothing, and a SACK of an original is as good as an ACK. Else it is the basic one (§2.1).
//!
//! Choice: the response is a full restoration of cwnd and ssthresh (RFC 5682 leaves it open; ns-2's
//! spurious_response_ = 1).
//! Choice: when there is nothing new to send, conventional recovery goes on (step 2b; Appendix A has alternatives).
//!
//! Any receiver will do.

use super::{Afterwards, Reaction, Timeout};
use crate::recovery::parameter::{Given, Parameter};
use crate::recovery::undo::Restore;
use crate::recovery::window::Reduction;
use crate::recovery::{Ack, Entered, Handshake, Phase, View};

pub(crate) const WINDOW: Parameter = Parameter::number(
    "frto-window",
    (1.0, 3.0, "segments"),
    "frto: cwnd when two new segments show that the timeout was not spurious (3)",
    "RFC 5682 §2.1 step 3a",
);

/// F-RTO (RFC 5682), with SACK where there is a scoreboard.
#[derive(Debug, Default)]
pub(crate) struct Frto {
    /// cwnd after step 3a, which allows 3 segments at most.
    window: f64,
    scoreboard: bool,
    step: Step,
    /// cwnd and ssthresh before the timeout.
    before: (f64, f64),
    /// RecoveryPoint: SND.MAX before the new segments left.
    recovery_point: u64,
    /// One past the highest octet SACKed before the timeout. The scoreboard may have forgotten it, but it is no news
    /// when the receiver repeats it.
    sacked_before: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// Step 2: the retransmission has left.
    Retransmitted,
    /// Step 3: the new segments have left, or may.
    SentNew,
}

impl Frto {
    pub(crate) fn new(given: &Given<'_>) -> Self {
        Self { window: given.number(&WINDOW).unwrap_or(3.0), ..Self::default() }
    }
}

impl Timeout for Frto {
    fn name(&self) -> &'static str {
        "frto"
    }

    fn on_established(&mut self, handshake: &Handshake) {
        self.scoreboard = handshake.scoreboard;
    }

    fn on_timeout(&mut self, view: &View<'_>) -> Reaction {
        // Step 1: not while an earlier timeout is being recovered from; with SACK, not in fast recovery either.
        let recovering = match view.cc.phase() {
            Phase::Restarted => view.cc.last_entry == Some(Entered::ByTimeout),
            Phase::Recovery => self.scoreboard,
            Phase::Open | Phase::Reduced => false,
        };
        if view.cc.timeouts_in_row > 0 || recovering {
            self.step = Step::Idle;
            return Reaction::Restart { cwnd: view.knobs.loss_window };
        }
        self.step = Step::Retransmitted;
        self.before = (view.cc.cwnd, view.cc.ssthresh);
        self.sacked_before = view.flight.sacked_ranges().last().map_or(0, |range| range.end);
        Reaction::Probe { cwnd: view.knobs.loss_window }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Afterwards {
        if !(ack.advances() || ack.duplicate) {
            return Afterwards::Nothing;
        }
        match self.step {
            Step::Idle => Afterwards::Nothing,
            Step::Retransmitted if ack.advances() => self.on_first_ack(view),
            // With SACK: stay in step 2.
            Step::Retransmitted if self.scoreboard => Afterwards::Nothing,
            Step::Retransmitted => {
                self.step = Step::Idle;
                Afterwards::GoBack {
                    cwnd: view.knobs.loss_window,
                    head_sent: true,
                    why: "F-RTO step 2a: a duplicate ACK",
                }
            }
            Step::SentNew => self.on_second_ack(view, ack),
        }
    }

    fn is_undecided(&self) -> bool {
        self.step != Step::Idle
    }

    fn on_nothing_new(&mut self, view: &View<'_>) -> Afterwards {
        if self.step != Step::SentNew || view.flight.max() > self.recovery_point {
            return Afterwards::Nothing;
        }
        self.step = Step::Idle;
        // As if the ACK had been taken for one of the retransmission: slow start has made one step.
        Afterwards::GoBack {
            cwnd: view.knobs.loss_window + 1.0,
            head_sent: false,
            why: "F-RTO step 2b: no new data to send",
        }
    }
}

impl Frto {
    /// Step 2, an ACK that advances.
    fn on_first_ack(&mut self, view: &View<'_>) -> Afterwards {
        // Step 2a: the retransmission completed the window; nothing can be learnt.
        if view.cc.recover.is_none_or(|recover| view.flight.una() >= recover) {
            self.step = Step::Idle;
            return Afterwards::Nothing;
        }
        self.step = Step::SentNew;
        self.recovery_point = view.flight.max();
        let in_flight = view.segments(view.flight.outstanding()) - view.segments(view.flight.sacked());
        let cwnd = in_flight + 2.0;
        Afterwards::SendNew { cwnd, why: "F-RTO step 2b: two new segments" }
    }

    /// With SACK, step 3: data below RecoveryPoint that was sent once has arrived, and nothing above it.
    fn originals_arrive(&self, view: &View<'_>, ack: &Ack) -> bool {
        if ack.highest_sacked.max(Some(view.flight.una())) > Some(self.recovery_point) {
            return false;
        }
        let sacked = ack.highest_sacked.filter(|end| *end > self.sacked_before);
        let sent_once = |end| view.flight.segment_at(end - 1).is_some_and(|s| s.transmissions == 1);
        ack.advances() && !ack.any_resent || sacked.is_some_and(sent_once)
    }

    fn on_second_ack(&mut self, view: &View<'_>, ack: &Ack) -> Afterwards {
        self.step = Step::Idle;
        let spurious = match self.scoreboard {
            false => ack.advances(),
            true => self.originals_arrive(view, ack),
        };
        if !spurious {
            return Afterwards::GoBack {
                cwnd: self.window,
                head_sent: false,
                why: "F-RTO step 3a: no original arrived",
            };
        }
        let (cwnd, ssthresh) = self.before;
        Afterwards::Spurious {
            restore: Restore {
                window: Some(Reduction { cwnd, ssthresh }),
                resume: true,
                reordered: false,
                timer: None,
                why: "F-RTO step 3b: two consecutive ACKs acknowledged originals",
            },
        }
    }
}

#[cfg(test)]
mod tests;
