//! Profile `freebsd`: the behaviour of FreeBSD 14 on the wire.

use airwire::options::Layout;
use airwire::time::Duration;

use super::recovery::DetectionRules;
use super::{
    AckPolicy, Acks, DataOnSyn, FastOpenRules, Handshake, Icmp, MtuSearch, OpeningErrors, Profile,
    RecoveryRules, SackOffer, ShutRead, TimeWaitRules, Timer, Timers, Validation, WindowUpdate,
};
use crate::rtt::{RtoLimits, TimerStyle};

impl Profile {
    /// The behaviour of FreeBSD on the wire.
    pub fn freebsd() -> Self {
        let rfc = Self::default();
        Self {
            name: "freebsd",
            layout: Layout::FreeBsd,
            handshake: Handshake {
                // The scale of a buffer of up to 2 MiB (net.inet.tcp.recvbuf_max).
                window_scale: Some(6),
                sack: SackOffer::Always,
                fast_open: FastOpenRules::CLIENT,
                // syncache_add().
                data_on_syn: DataOnSyn::Dropped,
                syn_retries: 6,
                min_syn_time: Duration::ZERO,
                ..rfc.handshake
            },
            // tcp_twcheck().
            validation: Validation { time_wait: TimeWaitRules::FreeBsd, ..rfc.validation },
            acks: Acks {
                policy: AckPolicy::DELAYED,
                // tcp_output(), "sender silly window avoidance" of window updates.
                window_update: WindowUpdate::QuarterBuffer,
                // net.inet.tcp.recvspace.
                recv_buffer: 65_535,
                sack_counts_fin: false,
                echo_duplicates: false,
                // tcp_output().
                repeat_fin: true,
                // sorflush().
                after_shutdown: ShutRead::Discard,
                ..rfc.acks
            },
            timers: Timers {
                // tcp_rexmit_min is 30 ms and tcp_rexmit_slop is 200 ms.
                rto: Timer {
                    style: TimerStyle::Rfc6298 { granularity: Duration::from_millis(200) },
                    limits: RtoLimits {
                        min: Duration::from_millis(230),
                        max: Duration::from_secs(64),
                        initial: Duration::from_secs(1),
                    },
                },
                ..rfc.timers
            },
            icmp: Icmp {
                // tcp_ctlinput(), tcp_notify().
                opening_errors: OpeningErrors::FreeBsd,
                // tcp_timer_rexmt().
                mtu_search: MtuSearch::FreeBsd,
                ..rfc.icmp
            },
            recovery: RecoveryRules {
                detection: DetectionRules { limited_transmit: true, ..rfc.recovery.detection },
                ..rfc.recovery
            },
            ..rfc
        }
    }
}
