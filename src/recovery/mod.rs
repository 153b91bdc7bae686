//! A TCP sender asks six questions, and an algorithm is a file that answers one of them.
//!
//! | question | folder | ordinary answer |
//! |---|---|---|
//! | Is it lost? | [`detect`] | three duplicate ACKs |
//! | Why was it lost? | [`attribute`] | always congestion |
//! | What to send again? | [`repair`] | NewReno |
//! | How much may be in flight? | [`window`] | AIMD; in recovery what has left may be replaced |
//! | What does a timeout mean? | [`timeout`] | restart from one segment, back off |
//! | Was that a mistake? | [`undo`] | never asked |
//!
//! An answer decides, it does not act: it gets a read-only [`View`] and returns a small value. The
//! [`engine`] applies decisions to the connection, in one place, and the stream of decisions is the trace
//! that plots and tests read. The [`catalogue`] is the one table of everything that can be asked for by name.
//!
//! "Is it lost?" may have several witnesses: the detector, and others beside it that speak when it is silent.
//! Judges may watch: they are asked why a segment was lost, are written down, and change nothing.

pub mod attribute;
pub mod catalogue;
pub mod confusion;
pub mod decision;
pub mod detect;
pub mod engine;
pub mod parameter;
pub mod recipe;
pub mod repair;
pub mod spurious;
#[cfg(test)]
pub mod testing;
pub mod timeout;
pub mod undo;
pub mod window;

use airwire::segment::Flags;
use airwire::time::{Duration, Instant};
pub use decision::{Decision, What};
pub use engine::{Counters, Path, Recovery};
pub use recipe::{Recipe, RecipeError};

use crate::flight::{Amount, Delivery, Flight, Originals};
use crate::profile::Knobs;
use crate::profile::knobs::Accounting;
use crate::rtt::RttEstimator;

/// Where the sender stands between two losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// No loss is being repaired.
    #[default]
    Open,
    /// The window was reduced for an ECN echo; nothing is missing (RFC 3168 §6.1.2).
    Reduced,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// Going back after a timeout, or after a fast retransmit that restarts, until `recover` is acknowledged.
    Restarted,
}

/// The congestion state of one connection, in segments. Plain data; only the engine writes it.
#[derive(Clone, Debug)]
pub struct Congestion {
    pub cwnd: f64,
    pub ssthresh: f64,
    /// Temporary inflation by duplicate ACKs (RFC 5681 §3.2 step 4), kept apart from `cwnd`.
    pub inflation: f64,
    pub phase: Phase,
    /// RFC 6582's `recover`, RFC 6675's RecoveryPoint: one past the highest offset sent when the present
    /// (or the last) loss event began.
    pub recover: Option<u64>,
    /// How the last loss event was entered.
    pub last_entry: Option<Entered>,
    pub dupacks: u32,
    /// SND.UNA before the last new ACK (RFC 6582 §4.1, `prev_highest_ack`).
    pub previous_una: u64,
    /// What the last new ACK echoed, and the timestamp of the newest copy of the last segment that it
    /// acknowledged (RFC 6582 §4.2).
    pub echoed: Option<u32>,
    pub acked_tsval: Option<u32>,
    /// Segments sent under Limited Transmit since the first duplicate ACK (RFC 3042).
    pub limited: u32,
    /// Consecutive timeouts without progress.
    pub timeouts_in_row: u32,
    /// For growth validation (`GrowthLimit::TwiceThePeak`): the largest flight, whether the window was what
    /// limited it, and the offset at which both are taken anew.
    pub peak_flight: f64,
    pub cwnd_limited: bool,
    pub usage_seq: u64,
    /// The present loss event was put down to the radio: this was cwnd when it began, and will be when it ends. It
    /// stays known until `recover` is acknowledged.
    pub kept_window: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    ByDuplicates,
    ByTimeout,
}

/// What an answer may look at.
pub struct View<'a> {
    pub now: Instant,
    pub flight: &'a Flight,
    pub cc: &'a Congestion,
    pub rtt: &'a RttEstimator,
    pub knobs: &'a Knobs,
    /// Sender maximum segment size, in octets of data.
    pub smss: u64,
    /// The receiver's window, in octets.
    pub rwnd: u64,
}

impl View<'_> {
    /// An amount in segments, as this host counts them.
    pub fn segments(&self, amount: Amount) -> f64 {
        match self.knobs.accounting {
            Accounting::Bytes => amount.bytes as f64 / self.smss as f64,
            Accounting::Segments => amount.segments as f64,
        }
    }

    /// FlightSize of RFC 5681, without what Limited Transmit added (its §3.2 step 2).
    pub fn flight_size(&self) -> f64 {
        let all = self.segments(self.flight.outstanding());
        (all - f64::from(self.cc.limited)).max(0.0)
    }

    pub fn rwnd_segments(&self) -> f64 {
        self.rwnd as f64 / self.smss as f64
    }

    pub fn in_slow_start(&self) -> bool {
        self.cc.cwnd < self.cc.ssthresh
    }
}

/// What both ends have agreed on when the connection is established.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    pub sack: bool,
    /// What is SACKed is put down: the repair has use for it.
    pub scoreboard: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// Header flags of the peer's SYN: a transit agent announces itself in the reserved ones.
    pub peer_flags: Flags,
    /// Our SYN had to be sent again.
    pub syn_was_lost: bool,
}

/// An incoming ACK as the recovery machinery sees it, after the scoreboard has taken it in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Its acknowledgment number, as a stream offset. Below SND.UNA in an old ACK that brings news all the same.
    pub number: u64,
    /// Octets and segments cumulatively acknowledged by it.
    pub acked: Amount,
    /// Octets and segments newly known to be delivered, in sequence or by SACK.
    pub delivered: Amount,
    pub newly_sacked: Amount,
    pub highest_sacked: Option<u64>,
    /// A duplicate ACK in the sense of RFC 5681 §2 (or, with SACK, RFC 6675 §2).
    pub duplicate: bool,
    /// The range of a D-SACK block (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// Everything that a segment could acknowledge, sent only once, was acknowledged or SACKed by this.
    pub original_delivered: bool,
    pub any_resent: bool,
    pub rtt: Option<Duration>,
    /// TSecr, when timestamps are in use.
    pub ecr: Option<u32>,
    /// Timestamp of the newest copy of the last segment that it acknowledges.
    pub acked_tsval: Option<u32>,
    pub ece: bool,
    /// Flags of the ACK's header: a transit agent writes into the reserved ones.
    pub flags: Flags,
    pub newest: Option<Delivery>,
    pub originals: Originals,
    /// Sum of the loss rates that base stations measured on the radio links (P3 §III B), where it says one.
    pub loss_report: Option<f64>,
    /// How many segments the receiver saw reordered by more than three so far (P3 §III B), where it says so.
    pub reordered: Option<u16>,
    /// FlightSize before the ACK.
    pub flight_before: Amount,
}

impl Ack {
    pub fn advances(&self) -> bool {
        self.acked.bytes > 0
    }
}

/// A segment that leaves, for answers that keep count.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub start: u64,
    pub end: u64,
    pub kind: Transmission,
    pub tsval: u32,
}

/// Why a segment leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transmission {
    New,
    /// The first segment of a loss event found without a timeout.
    FastRetransmit,
    /// Further holes of the same event.
    Recovery,
    /// After a timeout, or going back over the window.
    Timeout,
    /// To provoke an ACK (tail probe, rescue).
    Probe,
}
