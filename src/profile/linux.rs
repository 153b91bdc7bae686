//! Profile `linux`: the behaviour of Linux 6.18 on the wire. Behaviour that has no effect on the wire follows
//! the RFCs.

use airwire::time::Duration;

use super::recovery::{
    Accounting, AfterIdle, BeyondRecover, CubicDialect, DecreaseFrom, DecreaseRules, DetectionRules,
    Dialects, ExitWindow, FastRecoveryRules, FrtoDialect, GrowOnExit, Growth, GrowthLimit, GrowthRules,
    InitialRules, InitialWindow, PartialAckDeflation, PartialAckTimer, RackDialect, RepeatedTimeout,
    Rounding, TimeoutRules,
};
use super::{
    AckPolicy, Acks, DataOnSyn, FastOpenRules, HalfOpen, Handshake, Icmp, Nagle, OpeningErrors, Persist,
    Profile, ReceiveMemory, RecoveryRules, Resets, RtoEvents, SackOffer, SendWindowUpdate, Sending, SynFin,
    TimeWaitRules, Timer, Timers, UserTimeoutFrom, Validation, WindowProbe, WindowUpdate,
};

impl Profile {
    /// The behaviour of Linux on the wire. Behaviour that has no effect on the wire follows the RFCs.
    pub fn linux() -> Self {
        let rfc = Self::default();
        Self {
            name: "linux",
            handshake: Handshake {
                // tcp_select_initial_window(): the scale follows from the largest receive buffer.
                window_scale: Some(0),
                // tcp_syn_options(): net.ipv4.tcp_sack, with every congestion control.
                sack: SackOffer::Always,
                // net.ipv4.tcp_ecn = 2.
                ecn_passive: true,
                // net.ipv4.tcp_fastopen = 1.
                fast_open: FastOpenRules::CLIENT,
                // tcp_conn_request().
                data_on_syn: DataOnSyn::Dropped,
                // tcp_rcv_state_process(), TCP_LISTEN.
                syn_fin: SynFin::NoConnection,
                // tcp_send_synack().
                repeats_offer: true,
                // tcp_rcv_synsent_state_process().
                repeats_refused_syn: true,
                // net.ipv4.tcp_syn_linear_timeouts, tcp_syn_retries and tcp_synack_retries.
                syn_linear_timeouts: 4,
                syn_retries: 6,
                syn_ack_retries: Some(5),
                min_syn_time: Duration::ZERO,
                // inet_csk_listen_stop().
                half_open: HalfOpen::Forget,
                ..rfc.handshake
            },
            validation: Validation {
                // tcp_validate_incoming().
                tolerate_missing_timestamps: true,
                // tcp_paws_check(), TCP_PAWS_WINDOW.
                paws_slack: 1,
                // tcp_sequence().
                accepts_unacknowledged: true,
                // tcp_check_req().
                request_sockets: true,
                // tcp_send_active_reset().
                resets: Resets::Linux,
                // tcp_timewait_state_process().
                time_wait: TimeWaitRules::Linux,
                ..rfc.validation
            },
            acks: Acks {
                // tcp_event_data_recv(), __tcp_ack_snd_check().
                policy: AckPolicy::LINUX,
                // tcp_rcv_space_adjust(), __tcp_select_window(), tcp_cleanup_rbuf().
                window_update: WindowUpdate::Tuned(ReceiveMemory::LINUX),
                // net.core.rmem_max.
                recv_buffer_max: 4 << 20,
                // tcp_replace_ts_recent().
                echo_duplicates: false,
                ..rfc.acks
            },
            sending: Sending {
                // tcp_nagle_check(), tcp_minshall_check().
                nagle: Nagle::Minshall,
                // tcp_bound_to_half_wnd().
                half_window: true,
                // tcp_mss_split_point().
                fills_window: true,
                // tcp_mark_push(), forced_push().
                keeps_pushes: true,
                merges_retransmissions: true,
                bounds_bare_seq: true,
                // tcp_current_mss().
                sack_on_data: true,
                // tcp_may_update_window().
                send_window_update: SendWindowUpdate::Linux,
                ..rfc.sending
            },
            persist: Persist {
                // tcp_xmit_probe_skb().
                probe: WindowProbe::OldSequence,
                // tcp_ack_probe().
                restarted_by_acks: true,
                ..rfc.persist
            },
            timers: Timers {
                // tcp_rtt_estimator().
                rto: Timer::LINUX24,
                // tcp_ack_update_rtt(), tcp_xmit_retransmit_queue(), tcp_clean_rtx_queue().
                rto_events: RtoEvents::Linux,
                // retransmits_timed_out().
                user_timeout_from: UserTimeoutFrom::Retransmission,
                ..rfc.timers
            },
            icmp: Icmp {
                // tcp_v4_err(), tcp_req_err().
                opening_errors: OpeningErrors::All,
                ..rfc.icmp
            },
            recovery: RecoveryRules::linux(),
            ..rfc
        }
    }
}

impl RecoveryRules {
    /// Linux 6.18. The fields of [`RecoveryRules`] name the kernel functions.
    fn linux() -> Self {
        let rfc = Self::rfc();
        Self {
            accounting: Accounting::Segments,
            initial: InitialRules {
                // TCP_INIT_CWND.
                window: InitialWindow::Segments(10),
                syn_timeouts_forgiven: 1,
                ..rfc.initial
            },
            growth: GrowthRules {
                amount: Growth::Delivered,
                limit: GrowthLimit::TwiceThePeak,
                // tcp_slow_start_after_idle_check(), tcp_cwnd_validate().
                after_idle: AfterIdle::Decay,
            },
            decrease: DecreaseRules {
                from: DecreaseFrom::Cwnd,
                // The value of CUBIC, the default. Linux's Reno (`reno-linux`) halves the window.
                beta: 0.7,
                rounding: Rounding::Whole,
                ..rfc.decrease
            },
            detection: DetectionRules {
                limited_transmit: true,
                limited_transmit_after_timeout: false,
                ..rfc.detection
            },
            fast_recovery: FastRecoveryRules {
                partial_ack_timer: PartialAckTimer::SlowButSteady,
                partial_ack_deflation: PartialAckDeflation::InflationOnly,
                exit_window: ExitWindow::Ssthresh,
                grow_on_exit: GrowOnExit::WithScoreboard,
                beyond_recover: BeyondRecover::AnyLoss,
                ..rfc.fast_recovery
            },
            timeout: TimeoutRules {
                repeated: RepeatedTimeout::OncePerWindow,
                forgets_sacks: false,
                ..rfc.timeout
            },
            transmission: rfc.transmission,
            dialects: Dialects {
                cubic: CubicDialect::Linux,
                rack: RackDialect::Linux,
                frto: FrtoDialect::Linux,
                ..rfc.dialects
            },
        }
    }
}
