//! Profile `ns2`: ns-2.35's one-way agents with their defaults (tcl/lib/ns-default.tcl).

use airwire::time::Duration;

use super::knobs::{
    Accounting, AfterIdle, Careful, DecreaseFrom, ExitWindow, GrowOnExit, Growth, GrowthLimit,
    InitialSsthresh, InitialWindow, PartialAckDeflation, PartialAckTimer, RepeatedTimeout, Rounding,
    SackDialect,
};
use super::{AckPolicy, Acks, FastOpenRules, Handshake, Knobs, Nagle, Profile, Sending, Timer, Timers};
use crate::rtt::{RtoLimits, TimerStyle};

impl Profile {
    /// ns-2.35's one-way agents with their defaults: whole segments, coarse ticks, windows as real numbers.
    pub fn ns2() -> Self {
        let rfc = Self::default();
        Self {
            name: "ns2",
            handshake: Handshake {
                fast_open: FastOpenRules::NONE,
                timestamps: false,
                syn_retries: u32::MAX,
                ..rfc.handshake
            },
            acks: Acks { policy: AckPolicy::EVERY, ..rfc.acks },
            sending: Sending { nagle: Nagle::Off, ..rfc.sending },
            timers: Timers {
                rto: Timer {
                    style: TimerStyle::Ns2 {
                        tick: Duration::from_millis(10),
                        phase: Duration::from_nanos(5_558_807),
                        min_before_backoff: true,
                    },
                    limits: RtoLimits {
                        min: Duration::from_secs(1),
                        max: Duration::from_secs(60),
                        initial: Duration::from_secs(6),
                    },
                },
                retries: u32::MAX,
                ..rfc.timers
            },
            recovery: Knobs::ns2(),
            parameters: &[("frto-window", 2.0)],
            ..rfc
        }
    }
}

impl Knobs {
    /// ns-2.35.
    fn ns2() -> Self {
        Self {
            accounting: Accounting::Segments,
            initial_window: InitialWindow::Segments(1),
            ssthresh_after_lost_syn: Some(2.0),
            initial_ssthresh: InitialSsthresh::ReceiverWindow,
            growth: Growth::PerAck,
            growth_limit: GrowthLimit::None,
            decrease_from: DecreaseFrom::Window,
            rounding: Rounding::WholeSsthresh,
            least_window: 0.0,
            careful: Careful::Yes,
            relaxed_recover_at: Some(0),
            dupacks_survive_timeout: true,
            keep_pass_in_recovery: true,
            careful_reno: true,
            partial_ack_timer: PartialAckTimer::SlowButSteady,
            partial_ack_deflation: PartialAckDeflation::All,
            exit_window: ExitWindow::Keep,
            grow_on_exit: GrowOnExit::WithoutScoreboard,
            recovery_ends_by_inflation: true,
            repeated_timeout: RepeatedTimeout::ReduceAgain,
            sack_dialect: SackDialect::Pipe1996,
            after_idle: AfterIdle::Keep,
            recovery_burst: Some(2),
            ..Self::rfc()
        }
    }
}
