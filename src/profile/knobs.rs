//! Knobs of the ordinary answers: where systems differ that all call themselves Reno.
//!
//! A [profile](crate::profile::Profile) sets them, and a recipe's options may override some. They are facts about a
//! stack, not algorithms: an algorithm is an answer in the catalogue.

/// The unit in which a host counts its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accounting {
    /// Octets (RFC 5681).
    Bytes,
    /// Whole segments, however small (Linux, ns-2); the window is cut to an integer.
    Segments,
}

/// cwnd when the connection is established.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum InitialWindow {
    /// This many segments, whatever their size.
    Segments(u32),
    /// min(4·MSS, max(2·MSS, 4380 octets)).
    Rfc3390,
    /// min(10·MSS, max(2·MSS, 14600 octets)).
    Rfc6928,
}

impl InitialWindow {
    /// The window in segments of `smss` octets; at least one.
    pub(crate) fn segments(self, smss: u64) -> f64 {
        let bytes = match self {
            Self::Segments(n) => return f64::from(n),
            Self::Rfc3390 => (4 * smss).min((2 * smss).max(4380)),
            Self::Rfc6928 => (10 * smss).min((2 * smss).max(14_600)),
        };
        (bytes / smss.max(1)).max(1) as f64
    }
}

/// ssthresh when the connection is established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitialSsthresh {
    /// "Arbitrarily high" (RFC 5681 §3.1).
    Infinite,
    /// The receiver's window (P0 §2.2, ns-2).
    ReceiverWindow,
}

/// How much an ACK opens the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// One segment per ACK, whatever it covers, and 1/cwnd above ssthresh (Jacobson 1988, ns-2).
    PerAck,
    /// min(newly acknowledged, SMSS) per ACK (RFC 5681 equations 2 and 3).
    Rfc5681,
    /// Every segment that the ACK is the first to report counts: not what SACK blocks or duplicate ACKs have reported
    /// before, and nothing while an ECN echo is being answered (Linux 6.18).
    Delivered,
}

/// When an ACK may open the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrowthLimit {
    /// Always (ns-2).
    None,
    /// Only if the window was in use (cwnd-limited, RFC 7661 §4.3).
    CwndLimited,
    /// Slow start while cwnd < 2 × the largest flight; above it only if the window was full (Linux).
    TwiceThePeak,
}

/// What the multiplicative decrease is taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecreaseFrom {
    /// FlightSize (RFC 5681 equation 4).
    FlightSize,
    /// The congestion window (Linux).
    Cwnd,
    /// min(cwnd, receiver window), inflation included (ns-2).
    Window,
}

/// Whether a reduced window keeps its fraction of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// cwnd and ssthresh keep their fraction.
    Exact,
    /// ssthresh is cut to whole segments, cwnd keeps its fraction (ns-2, precisionReduce_).
    WholeSsthresh,
    /// Both are cut to whole segments (Linux).
    Whole,
}

/// Whether duplicate ACKs may start another recovery in a window that has had its loss event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Careful {
    /// Only once more than `recover` is acknowledged (RFC 6582 §3.2 step 1).
    Yes,
    /// As soon as `recover` is reached (RFC 6582 §6, "less careful").
    Less,
    /// Also if the last new ACK covered few segments: then no retransmitted segment can have filled a hole below data
    /// that had arrived before (RFC 6582 §4.1).
    AckHeuristic {
        /// The most that it may have covered (RFC 6582 has 4, ns-2 3).
        segments: u32,
    },
    /// Also if the last new ACK echoes the timestamp of the newest copy of what it acknowledges (RFC 6582 §4.2).
    TimestampHeuristic,
    /// Always, once for each row of duplicate ACKs.
    No,
}

/// Which partial ACKs restart the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialAckTimer {
    /// Only the first of a recovery (RFC 6582 §4).
    Impatient,
    /// Each of them (RFC 6582 §4; Linux, tcp_ack()).
    SlowButSteady,
}

/// By how much a partial ACK takes back the inflation of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialAckDeflation {
    /// By the amount acknowledged, plus one segment (RFC 6582 §3.2 step 3).
    Rfc6582,
    /// By the amount acknowledged less one segment, at most by all of it; the window itself stays (Linux, which
    /// counts duplicate ACKs as SACKed segments instead of inflating).
    InflationOnly,
    /// All of it (ns-2 without partial_window_deflation_).
    All,
}

/// cwnd when fast recovery ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitWindow {
    /// ssthresh (RFC 6582 §3.2 step 3, option 2).
    Ssthresh,
    /// min(ssthresh, max(FlightSize, 1) + 1) (RFC 6582 §3.2 step 3, option 1): no burst.
    Flight,
    /// min(ssthresh, FlightSize + 1) (ns-2, exit_recovery_fix_).
    Outstanding,
    /// What it is, without the inflation (ns-2).
    Keep,
}

/// Whether the ACK that ends fast recovery also opens the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrowOnExit {
    /// Never (RFC 5681).
    Never,
    /// That of NewReno and Reno (ns-2).
    WithoutScoreboard,
    /// That of a sender with a scoreboard. Without one it takes more than `recover`, which is another ACK (Linux 6.18,
    /// tcp_try_undo_recovery(), tcp_cong_control()).
    WithScoreboard,
}

/// What happens to ssthresh at a timeout, when losses of the same window have taken it down before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepeatedTimeout {
    /// When the same segment times out again, it is held (RFC 5681 §3.1).
    HoldSsthresh,
    /// So it is at a timeout in fast recovery, whose losses have paid for the whole window (Linux 6.18, tcp_enter_loss()).
    OncePerWindow,
    /// It is taken from the window again (ns-2).
    ReduceAgain,
}

/// Of what was found lost in an event and left behind its `recover`: what begins an event of its own when that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BeyondRecover {
    /// What has not been sent again yet.
    Unrepaired,
    /// What has been sent again, too: it counts as lost until it is acknowledged (Linux 6.18, tcp_time_to_recover()).
    AnyLoss,
}

/// Which SACK sender the recipe `sack` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackDialect {
    /// The scoreboard and `pipe` of RFC 6675.
    Rfc6675,
    /// Fall and Floyd's "pipe" sender of 1996, as in ns-2. It counts duplicate ACKs, and reads no marks on single
    /// segments: with a detector that sets them (`pr`, `rack`) `sack` means RFC 6675 all the same.
    Pipe1996,
}

/// Which CUBIC the recipe `cubic` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CubicDialect {
    /// RFC 9438.
    Rfc9438,
    /// That of Linux 6.18, which is older.
    Linux,
}

/// Which RACK the recipe `rack` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RackDialect {
    /// RFC 8985.
    Rfc8985,
    /// That of Linux 6.18, which learns more of reordering.
    Linux,
}

/// How fast a window leaves whose algorithm does not say so itself: so many times cwnd a round trip (Linux 6.18,
/// tcp_update_pacing_rate()).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pacing {
    /// While cwnd is below half of ssthresh (`net.ipv4.tcp_pacing_ss_ratio`).
    pub slow_start: f64,
    /// Above it (`net.ipv4.tcp_pacing_ca_ratio`).
    pub congestion_avoidance: f64,
}

impl Pacing {
    /// 200 % and 120 %.
    pub const LINUX: Self = Self { slow_start: 2.0, congestion_avoidance: 1.2 };
}

/// All knobs. Windows are in segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Knobs {
    /// The unit in which the window is counted.
    pub accounting: Accounting,
    /// cwnd when the connection is established.
    pub initial_window: InitialWindow,
    /// cwnd after a timeout, or after a fast retransmit that restarts (RFC 5681 §3.1, LW).
    pub loss_window: f64,
    /// The initial window if our SYN had to be sent again (RFC 5681 §3.1: one segment). `None`: as ever.
    pub window_after_lost_syn: Option<f64>,
    /// So many timeouts of our SYN leave the initial window as it is (Linux: one, since the timeout is only a second).
    pub syn_timeouts_forgiven: u16,
    /// ssthresh if our SYN had to be sent again, where a stack counts that as a loss event (ns-2). `None`: as ever.
    pub ssthresh_after_lost_syn: Option<f64>,
    /// ssthresh when the connection is established.
    pub initial_ssthresh: InitialSsthresh,
    /// How much an ACK opens the window.
    pub growth: Growth,
    /// When an ACK may open the window.
    pub growth_limit: GrowthLimit,
    /// What the multiplicative decrease is taken from.
    pub decrease_from: DecreaseFrom,
    /// The window is multiplied by this at a loss.
    pub beta: f64,
    /// Whether a reduced window keeps its fraction of a segment.
    pub rounding: Rounding,
    /// No reduction leaves a window that is smaller (RFC 5681 equation 4: two segments; ns-2 knows no least window, but for
    /// ssthresh, of which it is two).
    pub least_window: f64,
    /// No reduction leaves a smaller ssthresh (RFC 5681 equation 4: two segments).
    pub least_ssthresh: f64,
    /// Whether duplicate ACKs may start another recovery in a window that has had its loss event.
    pub careful: Careful,
    /// With exactly this many segments acknowledged `recover` does not count, and with fewer no recovery begins (ns-2,
    /// whose segment 0 is the SYN where there is one, and then this is zero; bugfix_ss_). `None`: it always counts.
    pub careless_at: Option<u32>,
    /// A recovery that begins while old segments are being sent again goes on with them, and what a partial ACK sends is
    /// none of them (ns-2). Otherwise SND.NXT returns to SND.MAX.
    pub keep_pass_in_recovery: bool,
    /// Reno too waits for `recover` (ns-2). RFC 5681 has no such state: Reno may enter again after a recovery.
    pub careful_reno: bool,
    /// Which partial ACKs restart the retransmission timer.
    pub partial_ack_timer: PartialAckTimer,
    /// By how much a partial ACK takes back the inflation of the window.
    pub partial_ack_deflation: PartialAckDeflation,
    /// cwnd when fast recovery ends.
    pub exit_window: ExitWindow,
    /// Whether the ACK that ends fast recovery also opens the window.
    pub grow_on_exit: GrowOnExit,
    /// A NewReno recovery that ends without inflation is not noticed to end: duplicate ACKs after the third go on inflating
    /// the window (ns-2).
    pub recovery_ends_by_inflation: bool,
    /// What happens to ssthresh when the same segment times out again.
    pub repeated_timeout: RepeatedTimeout,
    /// Which losses behind `recover` begin another event at the end of one.
    pub beyond_recover: BeyondRecover,
    /// Which SACK sender the recipe `sack` means.
    pub sack_dialect: SackDialect,
    /// Which CUBIC the recipe `cubic` means.
    pub cubic_dialect: CubicDialect,
    /// Which RACK the recipe `rack` means.
    pub rack_dialect: RackDialect,
    /// A timeout empties the scoreboard (RFC 2018 §8).
    pub forget_sacks_at_timeout: bool,
    /// Duplicate ACKs counted before a timeout still count after it (ns-2's Tahoe).
    pub dupacks_survive_timeout: bool,
    /// DupThresh: this many duplicate ACKs mean a loss (RFC 5681 §3.2: three).
    pub dup_thresh: u32,
    /// The first duplicate ACKs, fewer than DupThresh, release a new segment each (RFC 3042).
    pub limited_transmit: bool,
    /// They do so too while what was outstanding at a timeout is repaired.
    pub limited_transmit_after_timeout: bool,
    /// cwnd returns to the restart window after an idle RTO (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// The most segments that one ACK may release. `None`: no limit.
    pub max_burst: Option<u32>,
    /// The same while NewReno is in recovery. `None`: `max_burst` holds there too.
    pub recovery_burst: Option<u32>,
    /// Segments leave evenly. `None`: as soon as the window lets them, unless its algorithm gives a rate.
    pub pacing: Option<Pacing>,
    /// However fast the window would be, segments leave no faster: octets of text a second (Linux: SO_MAX_PACING_RATE).
    pub max_rate: Option<f64>,
}

impl Knobs {
    /// What RFCs 5681, 6582, 6675 and 6928 say.
    pub fn rfc() -> Self {
        Self {
            accounting: Accounting::Bytes,
            initial_window: InitialWindow::Rfc6928,
            loss_window: 1.0,
            window_after_lost_syn: Some(1.0),
            syn_timeouts_forgiven: 0,
            ssthresh_after_lost_syn: None,
            initial_ssthresh: InitialSsthresh::Infinite,
            growth: Growth::Rfc5681,
            growth_limit: GrowthLimit::CwndLimited,
            decrease_from: DecreaseFrom::FlightSize,
            beta: 0.5,
            rounding: Rounding::Exact,
            least_window: 2.0,
            least_ssthresh: 2.0,
            careful: Careful::Yes,
            careless_at: None,
            keep_pass_in_recovery: false,
            careful_reno: false,
            partial_ack_timer: PartialAckTimer::Impatient,
            partial_ack_deflation: PartialAckDeflation::Rfc6582,
            exit_window: ExitWindow::Flight,
            grow_on_exit: GrowOnExit::Never,
            recovery_ends_by_inflation: false,
            repeated_timeout: RepeatedTimeout::HoldSsthresh,
            beyond_recover: BeyondRecover::Unrepaired,
            sack_dialect: SackDialect::Rfc6675,
            cubic_dialect: CubicDialect::Rfc9438,
            rack_dialect: RackDialect::Rfc8985,
            forget_sacks_at_timeout: true,
            dupacks_survive_timeout: false,
            dup_thresh: 3,
            limited_transmit: false,
            limited_transmit_after_timeout: true,
            restart_after_idle: true,
            max_burst: None,
            recovery_burst: None,
            pacing: None,
            max_rate: None,
        }
    }
}
