//! The decision trace: who decided what, when, and why.

use airwire::time::Instant;

use super::catalogue::Question;

/// One decision, applied. The trace of these is what plots and tests read.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub at: Instant,
    pub question: Question,
    /// The catalogue name of the answer that decided.
    pub by: &'static str,
    pub what: What,
    pub why: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// `segments` are taken for lost, the first at `offset`.
    Lost {
        offset: u64,
        segments: u64,
    },
    /// The loss was put down to this.
    Cause(airwire::Cause),
    /// A judge that only watches would have put it down to this.
    Judged(airwire::Cause),
    /// A loss event begins; it ends when `recover` is acknowledged.
    Enter {
        phase: super::Phase,
        recover: u64,
    },
    Leave {
        phase: super::Phase,
    },
    /// The congestion window or the threshold changes, in segments.
    Window {
        cwnd: f64,
        ssthresh: f64,
        was_cwnd: f64,
        was_ssthresh: f64,
    },
    /// The segment at `offset` is sent again.
    Resend {
        offset: u64,
    },
    /// The segment at `offset`, sent before or not, leaves to provoke an ACK.
    Probe {
        offset: u64,
    },
    /// The retransmission timer fired for the segment at `offset`.
    Timeout {
        offset: u64,
    },
    /// SND.NXT returns to SND.MAX: nothing more is sent again.
    Resume {
        at: u64,
    },
    /// An answer stepped aside because the peer lacks what it needs.
    Fallback {
        to: &'static str,
    },
}
