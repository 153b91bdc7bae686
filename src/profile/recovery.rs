//! The details of loss recovery in which TCP stacks with the same algorithm differ, grouped by subject.
//!
//! A [profile](crate::profile::Profile) sets these rules, and a recipe's options may override some. The
//! algorithms themselves are answers in the [catalogue](crate::recovery::catalogue).
//!
//! Each field cites the clause or the kernel function (Linux 6.18) that decides it. The words in parentheses
//! after ns-2 are that simulator's variables.

/// The unit in which a host counts its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Accounting {
    /// Bytes (RFC 5681).
    Bytes,
    /// Whole segments of any size (Linux, ns-2). The window is truncated to an integer.
    Segments,
}

/// cwnd when the connection is established.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum InitialWindow {
    /// This number of segments of any size.
    Segments(u32),
    /// min(4·MSS, max(2·MSS, 4380 bytes)).
    Rfc3390,
    /// min(10·MSS, max(2·MSS, 14600 bytes)).
    Rfc6928,
}

impl InitialWindow {
    /// Returns the window in segments of `smss` bytes; at least one.
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum InitialSsthresh {
    /// "Arbitrarily high" (RFC 5681 §3.1).
    Infinite,
    /// The receiver's window (Pan et al. 2004, §2.2; ns-2).
    ReceiverWindow,
}

/// The amount by which an ACK opens the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Growth {
    /// One segment per ACK, or 1/cwnd above ssthresh, for any number of bytes acknowledged (Jacobson 1988,
    /// ns-2).
    PerAck,
    /// min(newly acknowledged, SMSS) per ACK (RFC 5681 equations 2 and 3).
    Rfc5681,
    /// One segment for each segment that this ACK reports first. Segments that SACK blocks or duplicate ACKs
    /// reported before do not count. During the response to an ECN echo, and on an ACK that reveals the first
    /// loss of an episode, the window stays. A retransmission that the receiver did not need counts (D-SACK;
    /// Linux 6.18).
    Delivered,
}

/// The condition under which an ACK may open the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GrowthLimit {
    /// Always (ns-2).
    None,
    /// Only if the window was in use (cwnd-limited, RFC 7661 §4.3).
    CwndLimited,
    /// In slow start while cwnd < 2 × the largest flight; above ssthresh only if the window was full (Linux).
    TwiceThePeak,
}

/// The value that the multiplicative decrease is applied to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum DecreaseFrom {
    /// FlightSize (RFC 5681 equation 4).
    FlightSize,
    /// The congestion window (Linux).
    Cwnd,
    /// min(cwnd, receiver window), including inflation (ns-2).
    Window,
}

/// Whether a reduced window keeps its fraction of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Rounding {
    /// cwnd and ssthresh keep their fractions.
    Exact,
    /// ssthresh is truncated to whole segments, cwnd keeps its fraction (ns-2, precisionReduce_).
    WholeSsthresh,
    /// Both are truncated to whole segments (Linux).
    Whole,
}

/// Whether duplicate ACKs may start another recovery in a window that already had its loss event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
pub enum Careful {
    /// Only after data above `recover` has been acknowledged (RFC 6582 §3.2 step 2).
    Yes,
    /// As soon as `recover` is acknowledged ("Less Careful" in RFC 2582).
    Less,
    /// Also if the last new ACK covered few segments: then no retransmitted segment can have filled a hole
    /// below data that had already arrived (RFC 6582 §4.1).
    AckHeuristic {
        /// Maximum number of segments that it may have covered (4 in RFC 6582, 3 in ns-2).
        segments: u32,
    },
    /// Also if the last new ACK echoes the timestamp of the latest retransmission of the data it acknowledges
    /// (RFC 6582 §4.2).
    TimestampHeuristic,
    /// Always, once per series of duplicate ACKs.
    No,
}

/// The partial ACKs that restart the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum PartialAckTimer {
    /// Only the first one in a recovery (RFC 6582 §3.2 step 3).
    Impatient,
    /// Every partial ACK (RFC 3782 §4; Linux, tcp_ack()).
    SlowButSteady,
}

/// The deflation of the window by a partial ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum PartialAckDeflation {
    /// By the amount acknowledged. One segment is added back if at least one was acknowledged (RFC 6582 §3.2
    /// step 3).
    Rfc6582,
    /// By the amount acknowledged less one segment, but at most by the inflation; the window itself stays
    /// (Linux, which counts duplicate ACKs as SACKed segments instead of inflating the window).
    InflationOnly,
    /// By all of the inflation (ns-2 without partial_window_deflation_).
    All,
}

/// cwnd when fast recovery ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ExitWindow {
    /// ssthresh (RFC 6582 §3.2 step 3, option 2).
    Ssthresh,
    /// min(ssthresh, max(FlightSize, 1) + 1) (RFC 6582 §3.2 step 3, option 1), which avoids a burst.
    Flight,
    /// min(ssthresh, FlightSize + 1) (ns-2, exit_recovery_fix_).
    Outstanding,
    /// The current value without the inflation (ns-2).
    Keep,
}

/// Whether the ACK that ends fast recovery also opens the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GrowOnExit {
    /// Never (RFC 5681).
    Never,
    /// Only for senders without a scoreboard: NewReno and Reno (ns-2).
    WithoutScoreboard,
    /// Only for senders with a scoreboard. Others leave recovery after more than `recover` is acknowledged,
    /// which is a later ACK (Linux 6.18, tcp_try_undo_recovery(), tcp_cong_control()).
    WithScoreboard,
}

/// Effect of a timeout on ssthresh, if losses in the same window have already reduced it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RepeatedTimeout {
    /// ssthresh stays if the same segment times out again (RFC 5681 §3.1).
    HoldSsthresh,
    /// ssthresh also stays at a timeout during fast recovery, because that recovery has already reduced the
    /// window (Linux 6.18, tcp_enter_loss()).
    OncePerWindow,
    /// ssthresh is computed from the window again (ns-2).
    ReduceAgain,
}

/// The losses above an episode's `recover` that start a new episode when that episode ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum BeyondRecover {
    /// Only losses that have not been retransmitted yet.
    Unrepaired,
    /// Also losses that have been retransmitted, which count as lost until acknowledged (Linux 6.18,
    /// tcp_time_to_recover()).
    AnyLoss,
}

/// The SACK sender that the recipe `sack` selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SackDialect {
    /// The scoreboard and `pipe` of RFC 6675.
    Rfc6675,
    /// Fall and Floyd's "pipe" sender of 1996, as in ns-2. It counts duplicate ACKs and ignores marks on
    /// single segments. With a detector that sets such marks (`pr`, `rack`), `sack` therefore always selects
    /// RFC 6675.
    Pipe1996,
}

/// The CUBIC that the recipe `cubic` selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum CubicDialect {
    /// RFC 9438.
    Rfc9438,
    /// Linux 6.18, which implements an older version.
    Linux,
}

/// The effect of an idle time of more than an RTO on cwnd, unless the window algorithm sets its own pacing
/// rate. The restart window is the initial window, or cwnd if that is smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AfterIdle {
    /// None.
    Keep,
    /// cwnd becomes the restart window (RFC 5681 §4.1).
    Restart,
    /// cwnd is halved for each RTO, down to the restart window. ssthresh rises to at least three quarters of
    /// the old cwnd. A sender that has not used its window for an RTO loses half of the unused part (Linux
    /// 6.18, tcp_cwnd_restart(), tcp_cwnd_application_limited()).
    Decay,
}

/// The RACK that the recipe `rack` selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RackDialect {
    /// RFC 8985.
    Rfc8985,
    /// Linux 6.18, which learns more about reordering.
    Linux,
}

/// The F-RTO that the recipe `frto` selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum FrtoDialect {
    /// RFC 5682.
    Rfc5682,
    /// Linux 6.18 (tcp_enter_loss(), tcp_process_loss()): never in fast recovery, also after repeated timeouts, and
    /// the first ACK of an original decides.
    Linux,
}

/// Pacing rates for window algorithms that do not set their own, as multiples of cwnd per round trip (Linux
/// 6.18, tcp_update_pacing_rate()).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Pacing {
    /// Factor while cwnd is below half of ssthresh (`net.ipv4.tcp_pacing_ss_ratio`).
    pub slow_start: f64,
    /// Factor above that (`net.ipv4.tcp_pacing_ca_ratio`).
    pub congestion_avoidance: f64,
}

impl Pacing {
    /// 200 % and 120 %.
    pub const LINUX: Self = Self { slow_start: 2.0, congestion_avoidance: 1.2 };
}

/// The rules of a stack's loss recovery. Windows are in segments.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct RecoveryRules {
    /// The unit in which the window is counted.
    pub accounting: Accounting,
    /// The window and the threshold after the handshake.
    pub initial: InitialRules,
    /// The rules by which ACKs open the window.
    pub growth: GrowthRules,
    /// The rules by which a loss reduces the window.
    pub decrease: DecreaseRules,
    /// The duplicate ACKs that indicate a loss, and the segments that they release.
    pub detection: DetectionRules,
    /// The beginning, the partial ACKs and the end of fast recovery.
    pub fast_recovery: FastRecoveryRules,
    /// The effects of a retransmission timeout.
    pub timeout: TimeoutRules,
    /// Limits on bursts, and pacing.
    pub transmission: TransmissionRules,
    /// The implementations that algorithm names select.
    pub dialects: Dialects,
}

/// The window and the threshold after the handshake.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct InitialRules {
    /// cwnd when the connection is established (RFC 6928; tcp_init_cwnd()).
    pub window: InitialWindow,
    /// ssthresh when the connection is established (RFC 5681 §3.1).
    pub ssthresh: InitialSsthresh,
    /// The initial window if our SYN was retransmitted (RFC 5681 §3.1: one segment; tcp_init_transfer()).
    /// `None`: unchanged.
    pub window_after_lost_syn: Option<f64>,
    /// ssthresh if our SYN was retransmitted, for stacks that treat this as a loss event (ns-2). `None`:
    /// unchanged.
    pub ssthresh_after_lost_syn: Option<f64>,
    /// Number of SYN timeouts that leave the initial window unchanged. tcp_init_transfer() tolerates one,
    /// because the first timeout is only 1 s.
    pub syn_timeouts_forgiven: u16,
}

/// The rules by which ACKs open the window.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct GrowthRules {
    /// The amount by which an ACK opens the window (RFC 5681 §3.1; tcp_slow_start(), tcp_cong_avoid_ai()).
    pub amount: Growth,
    /// The condition under which an ACK may open the window (RFC 7661 §4.3; tcp_is_cwnd_limited()).
    pub limit: GrowthLimit,
    /// cwnd after an idle RTO (RFC 5681 §4.1; tcp_slow_start_after_idle_check()).
    pub after_idle: AfterIdle,
}

/// The rules by which a loss reduces the window.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct DecreaseRules {
    /// The value that the multiplicative decrease is applied to (RFC 5681 equation 4; tcp_reno_ssthresh()).
    pub from: DecreaseFrom,
    /// Factor by which a loss multiplies the window (RFC 5681 equation 4: 1/2; RFC 9438 §4.6: 0.7).
    pub beta: f64,
    /// Whether a reduced window keeps its fraction of a segment.
    pub rounding: Rounding,
    /// Lower bound of a reduced window (RFC 5681 equation 4: two segments; ns-2: none).
    pub min_window: f64,
    /// Lower bound of a reduced ssthresh (RFC 5681 equation 4: two segments).
    pub min_ssthresh: f64,
}

/// The duplicate ACKs that indicate a loss, and the segments that they release.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct DetectionRules {
    /// DupThresh: number of duplicate ACKs that indicate a loss (RFC 5681 §3.2: three;
    /// net.ipv4.tcp_reordering).
    pub dup_thresh: u32,
    /// Whether each duplicate ACK before DupThresh releases a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether Limited Transmit also applies while the data outstanding at a timeout is being repaired.
    pub limited_transmit_after_timeout: bool,
}

/// The beginning, the partial ACKs and the end of fast recovery.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct FastRecoveryRules {
    /// Whether duplicate ACKs may start another recovery in a window that already had its loss event
    /// (RFC 6582 §3.2 step 2).
    pub careful: Careful,
    /// ns-2, bugfix_ss_: if exactly this number of segments has been acknowledged, `recover` is ignored. With
    /// fewer, no recovery starts. The number is zero if segment 0 is the SYN. `None`: `recover` always
    /// counts.
    pub relaxed_recover_at: Option<u32>,
    /// Whether Reno also waits for `recover` (ns-2). RFC 5681 has no such state: Reno may enter recovery
    /// again after leaving it.
    pub careful_reno: bool,
    /// Whether a recovery that starts during go-back-N retransmission continues it. Retransmissions after
    /// partial ACKs are then sent in addition (ns-2). If false, SND.NXT returns to SND.MAX.
    pub continues_pass: bool,
    /// The partial ACKs that restart the retransmission timer (RFC 6582 §3.2 step 3; tcp_ack(),
    /// FLAG_SET_XMIT_TIMER).
    pub partial_ack_timer: PartialAckTimer,
    /// The deflation of the window by a partial ACK (RFC 6582 §3.2 step 3).
    pub partial_ack_deflation: PartialAckDeflation,
    /// cwnd when fast recovery ends (RFC 6582 §3.2 step 3; tcp_end_cwnd_reduction()).
    pub exit_window: ExitWindow,
    /// Whether the ACK that ends fast recovery also opens the window (tcp_try_undo_recovery(),
    /// tcp_cong_control()).
    pub grow_on_exit: GrowOnExit,
    /// Whether NewReno recognizes the end of a recovery by the deflation of the window (ns-2). If the window
    /// is not inflated when a recovery ends, duplicate ACKs after the third then continue to inflate it.
    pub ends_by_inflation: bool,
    /// The losses above `recover` that start a new episode when the current one ends (tcp_time_to_recover()).
    pub beyond_recover: BeyondRecover,
}

/// The effects of a retransmission timeout.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct TimeoutRules {
    /// cwnd after a timeout, or after a fast retransmission that restarts from one segment (RFC 5681 §3.1,
    /// LW).
    pub loss_window: f64,
    /// Effect on ssthresh if losses in the same window have already reduced it (RFC 5681 §3.1;
    /// tcp_enter_loss()).
    pub repeated: RepeatedTimeout,
    /// Whether a timeout clears the scoreboard (RFC 2018 §5). tcp_timeout_mark_lost() clears it only if the
    /// receiver reneged.
    pub forgets_sacks: bool,
    /// Whether duplicate ACKs counted before a timeout still count after the timeout (ns-2's Tahoe).
    pub keeps_dupacks: bool,
}

/// Limits on bursts, and pacing.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct TransmissionRules {
    /// Maximum number of segments that one ACK may release. `None`: no limit.
    pub max_burst: Option<u32>,
    /// `max_burst` while NewReno is in recovery (ns-2: two segments). `None`: `max_burst` applies there too.
    pub recovery_burst: Option<u32>,
    /// Pacing of segments (tcp_update_pacing_rate()). `None`: the sender transmits as soon as the window
    /// allows, unless the window algorithm sets a rate.
    pub pacing: Option<Pacing>,
    /// Maximum pacing rate, in bytes of data per second (SO_MAX_PACING_RATE).
    pub max_rate: Option<f64>,
}

/// The implementations that algorithm names select.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Dialects {
    /// The SACK sender that the recipe `sack` selects.
    pub sack: SackDialect,
    /// The CUBIC that the recipe `cubic` selects.
    pub cubic: CubicDialect,
    /// The RACK that the recipe `rack` selects.
    pub rack: RackDialect,
    /// The F-RTO that the recipe `frto` selects.
    pub frto: FrtoDialect,
}

impl RecoveryRules {
    /// The rules of RFCs 5681, 6582, 6675 and 6928.
    pub fn rfc() -> Self {
        Self {
            accounting: Accounting::Bytes,
            initial: InitialRules {
                window: InitialWindow::Rfc6928,
                ssthresh: InitialSsthresh::Infinite,
                window_after_lost_syn: Some(1.0),
                ssthresh_after_lost_syn: None,
                syn_timeouts_forgiven: 0,
            },
            growth: GrowthRules {
                amount: Growth::Rfc5681,
                limit: GrowthLimit::CwndLimited,
                after_idle: AfterIdle::Restart,
            },
            decrease: DecreaseRules {
                from: DecreaseFrom::FlightSize,
                beta: 0.5,
                rounding: Rounding::Exact,
                min_window: 2.0,
                min_ssthresh: 2.0,
            },
            detection: DetectionRules {
                dup_thresh: 3,
                limited_transmit: false,
                limited_transmit_after_timeout: true,
            },
            fast_recovery: FastRecoveryRules {
                careful: Careful::Yes,
                relaxed_recover_at: None,
                careful_reno: false,
                continues_pass: false,
                partial_ack_timer: PartialAckTimer::Impatient,
                partial_ack_deflation: PartialAckDeflation::Rfc6582,
                exit_window: ExitWindow::Flight,
                grow_on_exit: GrowOnExit::Never,
                ends_by_inflation: false,
                beyond_recover: BeyondRecover::Unrepaired,
            },
            timeout: TimeoutRules {
                loss_window: 1.0,
                repeated: RepeatedTimeout::HoldSsthresh,
                forgets_sacks: true,
                keeps_dupacks: false,
            },
            transmission: TransmissionRules {
                max_burst: None,
                recovery_burst: None,
                pacing: None,
                max_rate: None,
            },
            dialects: Dialects {
                sack: SackDialect::Rfc6675,
                cubic: CubicDialect::Rfc9438,
                rack: RackDialect::Rfc8985,
                frto: FrtoDialect::Rfc5682,
            },
        }
    }
}
