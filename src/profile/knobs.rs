//! The plain options of the ordinary answers: how systems differ that all call themselves Reno.
//!
//! A [profile](crate::profile::Profile) sets them, a recipe's options may override some. They are facts
//! about a stack, not algorithms: an algorithm is an answer in the catalogue.

/// In what a host counts its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accounting {
    /// Octets (RFC 5681).
    Bytes,
    /// Whole segments, however small (Linux, ns-2); the window is cut to an integer.
    Segments,
}

/// The initial window, in segments of `smss` octets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum InitialWindow {
    Segments(u32),
    /// min(4·MSS, max(2·MSS, 4380 octets)).
    Rfc3390,
    /// min(10·MSS, max(2·MSS, 14600 octets)).
    Rfc6928,
}

impl InitialWindow {
    pub fn segments(self, smss: u64) -> f64 {
        let bytes = match self {
            Self::Segments(n) => return f64::from(n),
            Self::Rfc3390 => (4 * smss).min((2 * smss).max(4380)),
            Self::Rfc6928 => (10 * smss).min((2 * smss).max(14_600)),
        };
        (bytes / smss.max(1)).max(1) as f64
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialSsthresh {
    /// "Arbitrarily high" (RFC 5681 §3.1).
    Infinite,
    /// The receiver's window (P0 §2.2, ns-2).
    ReceiverWindow,
}

/// How an ACK opens the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// One segment per ACK, whatever it covers, and 1/cwnd above ssthresh (Jacobson 1988, ns-2).
    PerAck,
    /// min(newly acknowledged, SMSS) per ACK (RFC 5681 equations 2 and 3).
    Rfc5681,
    /// Every segment newly delivered counts (Linux).
    Delivered,
}

/// When an ACK may open the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrowthLimit {
    /// Always (ns-2).
    None,
    /// Only if the window was in use (RFC 7661 §4.3: cwnd-limited).
    CwndLimited,
    /// Slow start while cwnd < 2 × the largest flight; above it only if the window was full (Linux).
    TwiceThePeak,
}

/// From what the multiplicative decrease is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecreaseFrom {
    /// FlightSize (RFC 5681 equation 4).
    FlightSize,
    Cwnd,
    /// min(cwnd, receiver window), inflation included (ns-2).
    Window,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// The window keeps its fraction.
    Exact,
    /// ssthresh is cut to whole segments, cwnd keeps its fraction (ns-2, precisionReduce_).
    WholeSsthresh,
    Whole,
}

/// Whether duplicate ACKs may start another recovery in a window that has had its loss event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Careful {
    /// Only once more than `recover` is acknowledged (RFC 6582 §3.2 step 1).
    Yes,
    /// As soon as `recover` is reached (RFC 6582 §6, "less careful").
    Less,
    /// Also if the last new ACK covered at most so many segments: then no retransmitted segment can have
    /// filled a hole below data that had arrived before (RFC 6582 §4.1 has 4, ns-2 3).
    AckHeuristic {
        segments: u32,
    },
    /// Also if the last new ACK echoes the timestamp of the newest copy of what it acknowledges (RFC 6582 §4.2).
    TimestampHeuristic,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialAckTimer {
    /// Only the first partial ACK restarts the timer (RFC 6582 §4).
    Impatient,
    SlowButSteady,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialAckDeflation {
    /// By the amount acknowledged, plus one segment (RFC 6582 §3.2 step 3).
    Rfc6582,
    /// By the amount acknowledged less one segment, never below zero; the window itself stays (Linux, which
    /// counts duplicate ACKs as SACKed segments instead of inflating).
    InflationOnly,
    /// The whole inflation is dropped (ns-2 without partial_window_deflation_).
    All,
}

/// cwnd when fast recovery ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitWindow {
    Ssthresh,
    /// min(ssthresh, max(FlightSize, 1) + 1) (RFC 6582 §3.2 step 3, option 1): no burst.
    Flight,
    /// min(ssthresh, FlightSize + 1) (ns-2, exit_recovery_fix_).
    Outstanding,
    /// What it was, without the inflation (ns-2).
    Keep,
}

/// What ends a timeout's effect on ssthresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepeatedTimeout {
    /// ssthresh is held while the same segment times out again (RFC 5681 §3.1).
    HoldSsthresh,
    /// It is taken from the window each time (ns-2).
    ReduceAgain,
}

/// Which SACK sender the recipe `sack` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackDialect {
    Rfc6675,
    /// Fall and Floyd's "pipe" sender of 1996, as in ns-2.
    Pipe1996,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Knobs {
    pub accounting: Accounting,
    pub initial_window: InitialWindow,
    /// Window after a timeout, or after a fast retransmit that restarts.
    pub loss_window: f64,
    /// The initial window after the SYN itself was lost (RFC 5681 §3.1: one segment).
    pub window_after_lost_syn: Option<f64>,
    /// ssthresh after the SYN itself was lost, where a stack counts that as a loss event (ns-2).
    pub ssthresh_after_lost_syn: Option<f64>,
    pub initial_ssthresh: InitialSsthresh,
    pub growth: Growth,
    pub growth_limit: GrowthLimit,
    pub decrease_from: DecreaseFrom,
    /// The window is multiplied by this at a loss.
    pub beta: f64,
    pub rounding: Rounding,
    pub careful: Careful,
    /// `recover` is not asked before more than so many segments are acknowledged (ns-2, bugfix_ss_: none but
    /// its segment 0, which is the SYN where there is one).
    pub careless_until: Option<u32>,
    /// A recovery that begins while old segments are sent again goes on with them (ns-2); else SND.NXT
    /// returns to SND.MAX.
    pub keep_pass_in_recovery: bool,
    /// Reno too waits for `recover` (ns-2): RFC 5681 knows no such state, and may enter again after a recovery.
    pub careful_reno: bool,
    pub partial_ack_timer: PartialAckTimer,
    pub partial_ack_deflation: PartialAckDeflation,
    pub exit_window: ExitWindow,
    /// The ACK that ends a NewReno or Reno recovery also opens the window (ns-2).
    pub grow_on_exit: bool,
    pub repeated_timeout: RepeatedTimeout,
    pub sack_dialect: SackDialect,
    /// RFC 2018 §8: SACK information is forgotten at a timeout.
    pub forget_sacks_at_timeout: bool,
    /// Duplicate ACKs counted before a timeout still count after it (ns-2 Tahoe).
    pub dupacks_survive_timeout: bool,
    pub dup_thresh: u32,
    pub limited_transmit: bool,
    /// cwnd returns to the restart window after an idle RTO (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// New segments per incoming ACK, at most.
    pub max_burst: Option<u32>,
    /// The same while NewReno is in recovery.
    pub recovery_burst: Option<u32>,
}

impl Knobs {
    /// The RFCs: 5681, 6582, 6675, 6928.
    pub fn rfc() -> Self {
        Self {
            accounting: Accounting::Bytes,
            initial_window: InitialWindow::Rfc6928,
            loss_window: 1.0,
            window_after_lost_syn: Some(1.0),
            ssthresh_after_lost_syn: None,
            initial_ssthresh: InitialSsthresh::Infinite,
            growth: Growth::Rfc5681,
            growth_limit: GrowthLimit::CwndLimited,
            decrease_from: DecreaseFrom::FlightSize,
            beta: 0.5,
            rounding: Rounding::Exact,
            careful: Careful::Yes,
            careless_until: None,
            keep_pass_in_recovery: false,
            careful_reno: false,
            partial_ack_timer: PartialAckTimer::Impatient,
            partial_ack_deflation: PartialAckDeflation::Rfc6582,
            exit_window: ExitWindow::Flight,
            grow_on_exit: false,
            repeated_timeout: RepeatedTimeout::HoldSsthresh,
            sack_dialect: SackDialect::Rfc6675,
            forget_sacks_at_timeout: true,
            dupacks_survive_timeout: false,
            dup_thresh: 3,
            limited_transmit: false,
            restart_after_idle: true,
            max_burst: None,
            recovery_burst: None,
        }
    }
}
