//! Profile `ns2`: ns-2.35's one-way agents with their defaults (tcl/lib/ns-default.tcl).

use airwire::time::Duration;

use super::recovery::{
    Accounting, AfterIdle, Careful, DecreaseFrom, DecreaseRules, Dialects, ExitWindow, FastRecoveryRules,
    GrowOnExit, Growth, GrowthLimit, GrowthRules, InitialRules, InitialSsthresh, InitialWindow,
    PartialAckDeflation, PartialAckTimer, RepeatedTimeout, Rounding, SackDialect, TimeoutRules,
    TransmissionRules,
};
use super::{
    AckPolicy, Acks, FastOpenRules, Handshake, Nagle, Profile, RecoveryRules, Sending, Timer, Timers,
};
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
            recovery: RecoveryRules::ns2(),
            parameters: &[("frto-window", 2.0)],
            ..rfc
        }
    }
}

impl RecoveryRules {
    /// ns-2.35.
    fn ns2() -> Self {
        let rfc = Self::rfc();
        Self {
            accounting: Accounting::Segments,
            initial: InitialRules {
                window: InitialWindow::Segments(1),
                ssthresh: InitialSsthresh::ReceiverWindow,
                ssthresh_after_lost_syn: Some(2.0),
                ..rfc.initial
            },
            growth: GrowthRules {
                amount: Growth::PerAck,
                limit: GrowthLimit::None,
                after_idle: AfterIdle::Keep,
            },
            decrease: DecreaseRules {
                from: DecreaseFrom::Window,
                rounding: Rounding::WholeSsthresh,
                min_window: 0.0,
                ..rfc.decrease
            },
            detection: rfc.detection,
            fast_recovery: FastRecoveryRules {
                careful: Careful::Yes,
                relaxed_recover_at: Some(0),
                careful_reno: true,
                continues_pass: true,
                partial_ack_timer: PartialAckTimer::SlowButSteady,
                partial_ack_deflation: PartialAckDeflation::All,
                exit_window: ExitWindow::Keep,
                grow_on_exit: GrowOnExit::WithoutScoreboard,
                ends_by_inflation: true,
                ..rfc.fast_recovery
            },
            timeout: TimeoutRules {
                repeated: RepeatedTimeout::ReduceAgain,
                keeps_dupacks: true,
                ..rfc.timeout
            },
            transmission: TransmissionRules { recovery_burst: Some(2), ..rfc.transmission },
            dialects: Dialects { sack: SackDialect::Pipe1996, ..rfc.dialects },
        }
    }
}
