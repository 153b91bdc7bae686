//! Profile `default`: what the RFCs require or recommend.

use airwire::options::Layout;
use airwire::time::Duration;

use super::{
    AckPolicy, Acks, Challenge, DataOnSyn, FastOpenRules, HalfOpen, Handshake, Icmp, MtuLimits, MtuProbing,
    MtuSearch, Nagle, OpeningErrors, Persist, Profile, RecoveryRules, Resets, RtoEvents, SackOffer,
    SendWindowUpdate, Sending, ShutRead, SynFin, TimeWaitRules, Timer, Timers, UserTimeoutFrom, Validation,
    WindowProbe, WindowUpdate,
};

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: "default",
            layout: Layout::Linux,
            ttl: 64,
            handshake: Handshake {
                mss: None,
                window_scale: Some(8),
                sack: SackOffer::IfUsed,
                timestamps: true,
                ecn: false,
                ecn_passive: false,
                fast_open: FastOpenRules::BOTH,
                // RFC 9293 §3.10.7.2: "should be queued for processing later".
                data_on_syn: DataOnSyn::Queued,
                syn_fin: SynFin::Accepted,
                repeats_offer: false,
                repeats_refused_syn: false,
                syn_linear_timeouts: 0,
                syn_retries: 7,
                syn_ack_retries: None,
                // RFC 9293 MUST-23.
                min_syn_time: Duration::from_secs(180),
                half_open: HalfOpen::Reset,
            },
            validation: Validation {
                tolerate_missing_timestamps: false,
                paws_slack: 0,
                accepts_unacknowledged: false,
                request_sockets: false,
                // RFC 5961 §3.2, §4.2.
                challenge_rst: Challenge::Rfc5961,
                challenge_syn: Challenge::Rfc5961,
                challenge_acks_per_second: 100,
                challenge_interval: Duration::from_millis(500),
                resets: Resets::Rfc7323,
                time_wait: TimeWaitRules::Rfc9293,
            },
            acks: Acks {
                policy: AckPolicy::DELAYED,
                window_update: WindowUpdate::Doubled,
                recv_buffer: 4 << 20,
                recv_buffer_max: usize::MAX,
                dsack: true,
                sack_counts_fin: true,
                echo_duplicates: true,
                reordering_alarm: false,
                repeat_fin: false,
                after_shutdown: ShutRead::Keep,
            },
            sending: Sending {
                send_buffer: 4 << 20,
                nagle: Nagle::Classic,
                half_window: false,
                fills_window: false,
                keeps_pushes: false,
                merges_retransmissions: false,
                bounds_bare_seq: false,
                sack_on_data: false,
                defers: false,
                send_window_update: SendWindowUpdate::Rfc9293,
            },
            persist: Persist {
                probe: WindowProbe::NewByte,
                restarted_by_acks: false,
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
            },
            timers: Timers {
                rto: Timer::RFC6298,
                rto_events: RtoEvents::Rfc6298,
                samples_handshake: true,
                reported_retries: 3,
                retries: 15,
                user_timeout_from: UserTimeoutFrom::Transmission,
                time_wait: Duration::from_secs(60),
                timestamp_tick: Duration::from_millis(1),
            },
            icmp: Icmp {
                opening_errors: OpeningErrors::Hard,
                pmtu_discovery: true,
                mtu_probing: MtuProbing::Off,
                mtu_search: MtuSearch::Linux(MtuLimits::LINUX),
            },
            recovery: RecoveryRules::rfc(),
            parameters: &[],
        }
    }
}
