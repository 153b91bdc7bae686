//! The decision trace: who decided what, when, and why.

use airwire::time::Instant;

use super::catalogue::Question;
use super::episode::Phase;

/// One decision, applied. The stream of these is the trace that plots and tests read.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// When it was applied.
    pub at: Instant,
    /// The state of the sender's loss recovery then. What begins a loss event stands before its `Enter`, and has the
    /// state from before.
    pub episode: Phase,
    /// The question that it answers.
    pub question: Question,
    /// The catalogue name of the answer that decided; `restart-window` when the window shrinks after an idle time.
    pub by: &'static str,
    /// What was decided.
    pub what: What,
    /// The answer's reason, for people.
    pub why: &'static str,
}

/// What was decided. Offsets are octets of the stream; windows are in segments.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Segments are taken for lost.
    Lost {
        /// Where the first of them begins.
        offset: u64,
        /// How many.
        segments: u64,
    },
    /// The loss of a segment was put down to something.
    Cause {
        /// Where the segment begins.
        offset: u64,
        /// What it was put down to.
        cause: airwire::Cause,
    },
    /// A judge that only watches would have put the loss of a segment down to something.
    Judged {
        /// Where the segment begins.
        offset: u64,
        /// What it would have been put down to.
        cause: airwire::Cause,
    },
    /// A loss event begins, or the window was reduced although nothing is missing.
    Enter {
        /// How it is repaired.
        phase: Phase,
        /// The event ends when this offset is acknowledged.
        recover: u64,
    },
    /// The event reduces the window after all. What has left until now is of the window that is reduced for.
    Extend {
        /// The event ends when this offset is acknowledged.
        recover: u64,
    },
    /// It is over.
    Leave {
        /// How it was repaired.
        phase: Phase,
    },
    /// The congestion window or the threshold changes.
    Window {
        /// cwnd from now on.
        cwnd: f64,
        /// ssthresh from now on; infinite until something sets it.
        ssthresh: f64,
        /// cwnd until now.
        was_cwnd: f64,
        /// ssthresh until now.
        was_ssthresh: f64,
    },
    /// A segment is sent again.
    Resend {
        /// Where it begins.
        offset: u64,
    },
    /// A segment, sent before or not, leaves to provoke an ACK.
    Probe {
        /// Where it begins.
        offset: u64,
    },
    /// The retransmission timer fired.
    Timeout {
        /// SND.UNA, where the segment begins that it fired for.
        offset: u64,
    },
    /// SND.NXT returns to SND.MAX: no more old segments are sent again.
    Resume {
        /// SND.MAX.
        at: u64,
    },
    /// An answer steps aside because the peer lacks what it needs.
    Fallback {
        /// The name of the answer in its place.
        to: &'static str,
    },
}

impl What {
    /// As logs write it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost",
            Self::Cause { .. } => "cause",
            Self::Judged { .. } => "judged",
            Self::Enter { .. } => "enter",
            Self::Extend { .. } => "extend",
            Self::Leave { .. } => "leave",
            Self::Window { .. } => "window",
            Self::Resend { .. } => "resend",
            Self::Probe { .. } => "probe",
            Self::Timeout { .. } => "timeout",
            Self::Resume { .. } => "resume",
            Self::Fallback { .. } => "fallback",
        }
    }
}
