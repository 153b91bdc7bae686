//! F-RTO (RFC 5682, basic algorithm): after a timeout, look at two ACKs before believing it.
//!
//! The first segment is sent again. If the next ACK advances, two *new* segments are sent instead of old
//! ones; if the one after advances too, neither can have been caused by the retransmission: the timeout was
//! spurious.
//!
//! Choice: the response is a full restoration of cwnd and ssthresh (RFC 5682 leaves it open; ns-2's
//! spurious_response_ = 1).

use super::super::undo::Restore;
use super::super::{Ack, View};
use super::{Afterwards, Plan, Timeout};

#[derive(Debug, Default)]
pub struct Frto {
    step: Step,
    /// cwnd and ssthresh before the timeout.
    before: (f64, f64),
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// §2.1 step 2: the retransmission has left.
    Retransmitted,
    /// Step 3: the new segments have left.
    SentNew,
}

impl Timeout for Frto {
    fn name(&self) -> &'static str {
        "frto"
    }

    fn on_timeout(&mut self, view: &View<'_>) -> Plan {
        // Step 1: not when the same segment has timed out already.
        if view.cc.timeouts_in_row > 0 {
            self.step = Step::Idle;
            return Plan::Restart { cwnd: view.knobs.loss_window };
        }
        self.step = Step::Retransmitted;
        self.before = (view.cc.cwnd, view.cc.ssthresh);
        Plan::Probe { cwnd: view.knobs.loss_window }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Afterwards {
        let advances = ack.advances();
        if self.step == Step::Idle || !(advances || ack.duplicate) {
            return Afterwards::Nothing;
        }
        let all_acked = view.cc.recover.is_none_or(|recover| view.flight.una() >= recover);
        match self.step {
            Step::Idle => Afterwards::Nothing,
            Step::Retransmitted if !advances => {
                self.step = Step::Idle;
                Afterwards::GoBack {
                    cwnd: view.knobs.loss_window,
                    head_sent: true,
                    why: "F-RTO step 2a: a duplicate ACK",
                }
            }
            // Step 2a: the retransmission completed the window; nothing can be learnt.
            Step::Retransmitted if all_acked => {
                self.step = Step::Idle;
                Afterwards::Nothing
            }
            Step::Retransmitted => {
                self.step = Step::SentNew;
                let cwnd = view.segments(view.flight.outstanding()) + 2.0;
                Afterwards::SendNew { cwnd, why: "F-RTO step 2b: two new segments" }
            }
            Step::SentNew if !advances => {
                self.step = Step::Idle;
                Afterwards::GoBack {
                    cwnd: view.knobs.frto_window,
                    head_sent: false,
                    why: "F-RTO step 3a: a duplicate ACK",
                }
            }
            Step::SentNew => {
                self.step = Step::Idle;
                let (cwnd, ssthresh) = self.before;
                let why = "F-RTO step 3b: two ACKs in a row advanced";
                Afterwards::Spurious { restore: Restore { cwnd, ssthresh, resume: true, timer: None, why } }
            }
        }
    }
}
