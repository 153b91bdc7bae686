//! F-RTO (RFC 5682): after a timeout, the next two ACKs show whether it was spurious.
//!
//! The sender retransmits the first segment. If the next ACK advances, it sends two *new* segments instead of
//! further retransmissions. If the second ACK acknowledges older data that was not retransmitted, the
//! originals are arriving, and the timeout was spurious. With a scoreboard, this is the SACK-enhanced
//! algorithm (§3.1): duplicate ACKs before the first new one decide nothing, and a SACK of an original counts
//! like an ACK. Without a scoreboard, it is the basic algorithm (§2.1).
//!
//! Profile `linux` follows Linux 6.18 instead ([`FrtoDialect::Linux`]), with and without SACK: the first ACK or SACK of an
//! original that was sent before the timeout shows that the timeout was spurious. Without SACK, the ACK must not
//! cover a retransmission too. The number of new segments follows from slow start.
//!
//! - Choice: the response fully restores cwnd and ssthresh. RFC 5682 leaves it open; ns-2 does the same with
//!   spurious_response_ = 1.
//! - Choice: without new data to send, conventional recovery continues (step 2b; Appendix A has
//!   alternatives).
//!
//! The algorithm works with every receiver.

use airwire::time::Instant;

use super::{Reaction, Timeout, TimeoutVerdict};
use crate::profile::recovery::FrtoDialect;
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::undo::Restore;
use crate::recovery::window::Reduction;
use crate::recovery::{Ack, Entered, RecoveryState, View};

pub(crate) const WINDOW: Parameter = Parameter::number(
    "frto-window",
    (1.0, 3.0, "segments"),
    "frto: cwnd when two new segments show that the timeout was not spurious (3)",
    "RFC 5682 §2.1 step 3a",
);

#[derive(Debug, Default)]
pub(crate) struct Frto {
    /// cwnd after step 3a, which allows at most 3 segments.
    window: f64,
    step: Step,
    /// Time of the timeout.
    at: Instant,
    /// cwnd and ssthresh before the timeout.
    before: (f64, f64),
    /// RecoveryPoint: SND.MAX before the new segments were sent.
    recovery_point: u64,
    /// One past the highest byte SACKed before the timeout. If the scoreboard was cleared and the receiver
    /// repeats such a block, the block is not new information.
    sacked_before: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// Step 2: the retransmission was sent.
    Retransmitted,
    /// Step 3: the new segments were sent, or may be sent.
    SentNew,
}

impl Frto {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        Self { window: arguments.number(&WINDOW).unwrap_or(3.0), ..Self::default() }
    }
}

impl Timeout for Frto {
    fn on_timeout(&mut self, view: &View<'_>) -> Reaction {
        let is_first = match is_linux(view) {
            true => view.cc.open_timeouts == 0,
            false => view.cc.timeouts_in_row == 0,
        };
        if is_first {
            self.before = (view.cc.cwnd, view.cc.ssthresh);
        }
        if !Self::is_applicable(view) {
            self.step = Step::Idle;
            return Reaction::Restart { cwnd: view.rules.timeout.loss_window };
        }
        self.step = Step::Retransmitted;
        self.at = view.now;
        self.sacked_before = view.flight.sacked_ranges().last().map_or(0, |range| range.end);
        Reaction::Probe { cwnd: view.rules.timeout.loss_window }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> TimeoutVerdict {
        if !(ack.advances() || ack.duplicate) {
            return TimeoutVerdict::Nothing;
        }
        let is_linux = is_linux(view);
        // Without SACK, an ACK that also covers a retransmission proves nothing (tcp_clean_rtx_queue()).
        let is_certain = view.handshake.scoreboard || !ack.any_resent;
        if is_linux && self.step != Step::Idle && is_certain && self.delivers_original(ack) {
            return self.spurious("F-RTO of Linux: an original arrived");
        }
        match self.step {
            Step::Idle => TimeoutVerdict::Nothing,
            Step::Retransmitted if ack.advances() => self.on_first_ack(view, ack),
            // With SACK, stay in step 2.
            Step::Retransmitted if view.handshake.scoreboard || is_linux => TimeoutVerdict::Nothing,
            Step::Retransmitted => {
                self.step = Step::Idle;
                TimeoutVerdict::GoBack {
                    cwnd: view.rules.timeout.loss_window,
                    head_sent: true,
                    why: "F-RTO step 2a: a duplicate ACK",
                }
            }
            Step::SentNew => self.on_second_ack(view, ack),
        }
    }

    fn on_no_new_data(&mut self, view: &View<'_>) -> TimeoutVerdict {
        if self.step != Step::SentNew || view.flight.max() > self.recovery_point {
            return TimeoutVerdict::Nothing;
        }
        self.step = Step::Idle;
        // Treat the ACK as one for the retransmission: slow start has taken one step.
        TimeoutVerdict::GoBack {
            cwnd: view.rules.timeout.loss_window + 1.0,
            // The ACK may have covered only a part of the retransmission.
            head_sent: view
                .flight
                .head()
                .is_some_and(|head| head.transmissions > 1 && head.last_sent >= self.at),
            why: "F-RTO step 2b: no new data to send",
        }
    }
}

impl Frto {
    /// Step 1: F-RTO is not used during recovery from an earlier timeout. With SACK, it is not used in fast recovery
    /// either.
    fn is_applicable(view: &View<'_>) -> bool {
        let recovering = match view.cc.state() {
            RecoveryState::Loss => is_linux(view) || view.cc.last_entry == Some(Entered::ByTimeout),
            RecoveryState::Recovery => is_linux(view) || view.handshake.scoreboard,
            RecoveryState::Open | RecoveryState::Cwr => false,
        };
        match view.cc.timeouts_in_row {
            0 => !recovering,
            // Retransmissions into a closed window do not count (tcp_enter_loss()).
            _ => is_linux(view) && view.cc.open_timeouts > 0,
        }
    }

    /// Returns whether the ACK delivers data that was sent once, before the timeout or the new segments.
    fn delivers_original(&self, ack: &Ack) -> bool {
        let is_old = |end| self.step == Step::Retransmitted || end <= self.recovery_point;
        ack.originals.lowest.is_some_and(|(_, end)| is_old(end))
    }

    fn spurious(&mut self, why: &'static str) -> TimeoutVerdict {
        self.step = Step::Idle;
        let (cwnd, ssthresh) = self.before;
        TimeoutVerdict::Spurious {
            restore: Restore {
                window: Some(Reduction { cwnd, ssthresh }),
                resume: true,
                reordered: false,
                timer: None,
                why,
            },
        }
    }

    /// Step 2: handles an ACK that advances.
    fn on_first_ack(&mut self, view: &View<'_>, ack: &Ack) -> TimeoutVerdict {
        // Step 2a: the retransmission completed the window, so the ACK shows nothing.
        if view.cc.recover.is_none_or(|recover| view.flight.una() >= recover) {
            self.step = Step::Idle;
            return TimeoutVerdict::Nothing;
        }
        self.step = Step::SentNew;
        self.recovery_point = view.flight.max();
        let in_flight = view.segments(view.flight.outstanding()) - view.segments(view.flight.sacked());
        // In Linux, slow start determines their number.
        let number = if is_linux(view) { 1.0 + view.segments(ack.delivered).max(1.0) } else { 2.0 };
        let cwnd = in_flight + number;
        TimeoutVerdict::SendNew { cwnd, why: "F-RTO step 2b: two new segments" }
    }

    /// Step 3 with SACK: returns whether data below RecoveryPoint that was sent once has arrived, and no data
    /// above it.
    fn originals_arrive(&self, view: &View<'_>, ack: &Ack) -> bool {
        if ack.highest_sacked.max(Some(view.flight.una())) > Some(self.recovery_point) {
            return false;
        }
        let sacked = ack.highest_sacked.filter(|end| *end > self.sacked_before);
        let sent_once = |end| view.flight.segment_at(end - 1).is_some_and(|s| s.transmissions == 1);
        ack.advances() && !ack.any_resent || sacked.is_some_and(sent_once)
    }

    fn on_second_ack(&mut self, view: &View<'_>, ack: &Ack) -> TimeoutVerdict {
        self.step = Step::Idle;
        let spurious = match view.handshake.scoreboard {
            _ if is_linux(view) => false,
            false => ack.advances(),
            true => self.originals_arrive(view, ack),
        };
        if !spurious {
            return TimeoutVerdict::GoBack {
                cwnd: self.window,
                head_sent: false,
                why: "F-RTO step 3a: no original arrived",
            };
        }
        self.spurious("F-RTO step 3b: two consecutive ACKs acknowledged originals")
    }
}

fn is_linux(view: &View<'_>) -> bool {
    view.rules.dialects.frto == FrtoDialect::Linux
}

#[cfg(test)]
mod tests;
