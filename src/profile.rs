//! A profile: everything in which one standard TCP differs from another, as plain data.
//!
//! `default` follows the RFCs, `linux` and `freebsd` look on the wire like those systems, `ns2` like the
//! one-way agents of that simulator. A recipe's options may change single fields.

pub mod knobs;

use airwire::options::Layout;
use airwire::time::Duration;
pub use knobs::Knobs;

use self::knobs::{
    Accounting, Careful, DecreaseFrom, ExitWindow, Growth, GrowthLimit, InitialSsthresh, InitialWindow,
    PartialAckDeflation, PartialAckTimer, RepeatedTimeout, Rounding, SackDialect,
};
use crate::rtt::{RtoLimits, TimerStyle};

/// When an ACK that nothing urgent asks for is sent (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckPolicy {
    /// Zero: every segment is acknowledged at once.
    pub delay: Duration,
    /// At the latest every so many full-sized segments.
    pub every: u32,
    /// ACKs that are not delayed at the start of a connection and after an idle time ("quick-ACK").
    pub quick: u32,
    /// Whether the ACK of a FIN is delayed too when data is being answered with data.
    pub delay_fin: bool,
}

impl AckPolicy {
    pub const EVERY: Self = Self { delay: Duration::ZERO, every: 1, quick: 0, delay_fin: false };
    pub const DELAYED: Self = Self { delay: Duration::from_millis(40), every: 2, quick: 0, delay_fin: false };
    pub const LINUX: Self = Self { delay: Duration::from_millis(40), every: 2, quick: 1, delay_fin: true };
    /// As a kernel does it: TCP_MAX_QUICKACKS, with a window of that many segments and more.
    pub const KERNEL: Self = Self { quick: 16, ..Self::LINUX };
}

/// Which small segments wait for an ACK (RFC 9293 §3.7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nagle {
    Off,
    /// While anything is unacknowledged.
    Classic,
    /// While another small segment is unacknowledged (Minshall; Linux).
    Minshall,
}

impl Nagle {
    pub const fn holds_back(self) -> bool {
        !matches!(self, Self::Off)
    }
}

/// Whether a SYN carries SACK-Permitted (RFC 2018 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackOffer {
    Never,
    /// Only if the recipe's sender makes use of SACK: one that offers it in vain gets its duplicate ACKs compressed
    /// by today's receivers.
    IfUsed,
    Always,
}

impl SackOffer {
    pub const fn is_offered(self, used: bool) -> bool {
        match self {
            Self::Never => false,
            Self::IfUsed => used,
            Self::Always => true,
        }
    }
}

/// What a window probe looks like (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowProbe {
    /// One octet of new data.
    NewOctet,
    /// No data, and a sequence number that is already acknowledged (Linux).
    OldSequence,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timer {
    pub style: TimerStyle,
    pub limits: RtoLimits,
}

impl Timer {
    pub const RFC6298: Self =
        Self::new(TimerStyle::Rfc6298 { granularity: Duration::from_millis(1) }, 1000, 1000);
    pub const BSD: Self = Self::new(TimerStyle::Bsd { tick: Duration::from_millis(500) }, 1000, 6000);
    pub const LINUX22: Self = Self::new(TimerStyle::Linux22, 200, 3000);
    pub const LINUX24: Self = Self::new(TimerStyle::Linux24 { floor: Duration::from_millis(200) }, 200, 1000);
    pub const SOLARIS: Self = Self::new(TimerStyle::Solaris, 400, 3000);

    const fn new(style: TimerStyle, min_ms: u64, initial_ms: u64) -> Self {
        let limits = RtoLimits {
            min: Duration::from_millis(min_ms),
            max: Duration::from_secs(120),
            initial: Duration::from_millis(initial_ms),
        };
        Self { style, limits }
    }
}

/// How an unexpected RST or SYN in the window is met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Challenge {
    /// RFC 5961: only an exact sequence number resets, anything else in the window gets a challenge ACK.
    Rfc5961,
    /// RFC 793: anything in the window resets (FreeBSD's insecure_rst, insecure_syn).
    Rfc793,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub name: &'static str,
    pub layout: Layout,
    /// MSS to advertise; `None` takes it from the MTU.
    pub mss: Option<u16>,
    /// Window scale to offer.
    pub window_scale: Option<u8>,
    pub sack: SackOffer,
    pub dsack: bool,
    /// Receiver: tells with each ACK how many segments arrived reordered by more than three (P3 §III B).
    pub reordering_alarm: bool,
    pub timestamps: bool,
    /// Accept segments without the option once it has been negotiated.
    pub tolerate_missing_timestamps: bool,
    /// Negotiate ECN when opening; it is accepted from a peer either way if `ecn_passive`.
    pub ecn: bool,
    pub ecn_passive: bool,
    pub send_buffer: usize,
    pub recv_buffer: usize,
    pub ack: AckPolicy,
    pub timer: Timer,
    /// The round trip of the handshake is the first RTT sample (RFC 6298 §2).
    pub time_handshake: bool,
    pub challenge_rst: Challenge,
    pub challenge_syn: Challenge,
    /// Challenge ACKs per second, at most (RFC 5961 §7).
    pub challenge_acks_per_second: u32,
    pub nagle: Nagle,
    pub window_probe: WindowProbe,
    /// Twice the maximum segment lifetime (RFC 9293 §3.4.2: two minutes each; systems use less).
    pub time_wait: Duration,
    /// Retransmissions of a SYN before giving up.
    pub syn_retries: u32,
    /// Consecutive timeouts of a segment before giving up (RFC 9293 §3.8.3, R2).
    pub retries: u32,
    pub persist_min: Duration,
    pub persist_max: Duration,
    /// ms of the timestamp clock's tick.
    pub ts_tick: Duration,
    pub pmtu_discovery: bool,
    pub ttl: u8,
    pub recovery: Knobs,
    /// Parameters of algorithms, by the word that a recipe has for them; a recipe's own values come first.
    pub parameters: &'static [(&'static str, f64)],
}

impl Profile {
    pub const NAMES: [&'static str; 4] = ["default", "linux", "freebsd", "ns2"];

    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::default()),
            "linux" => Some(Self::linux()),
            "freebsd" => Some(Self::freebsd()),
            "ns2" => Some(Self::ns2()),
            _ => None,
        }
    }

    /// The Linux wire image; where scripts do not depend on it, the RFCs.
    pub fn linux() -> Self {
        Self {
            name: "linux",
            ack: AckPolicy::LINUX,
            nagle: Nagle::Minshall,
            window_probe: WindowProbe::OldSequence,
            sack: SackOffer::Always,
            tolerate_missing_timestamps: true,
            timer: Timer::LINUX24,
            recovery: Knobs {
                accounting: Accounting::Segments,
                growth: Growth::Delivered,
                growth_limit: GrowthLimit::TwiceThePeak,
                decrease_from: DecreaseFrom::Cwnd,
                beta: 0.7,
                rounding: Rounding::Whole,
                initial_window: InitialWindow::Segments(10),
                partial_ack_deflation: PartialAckDeflation::InflationOnly,
                exit_window: ExitWindow::Ssthresh,
                limited_transmit: true,
                restart_after_idle: false,
                forget_sacks_at_timeout: false,
                ..Knobs::rfc()
            },
            ..Self::default()
        }
    }

    pub fn freebsd() -> Self {
        Self {
            name: "freebsd",
            layout: Layout::FreeBsd,
            window_scale: Some(6),
            sack: SackOffer::Always,
            recv_buffer: 65_535,
            ack: AckPolicy::DELAYED,
            timer: Timer {
                style: TimerStyle::Rfc6298 { granularity: Duration::from_millis(200) },
                limits: RtoLimits {
                    min: Duration::from_millis(230),
                    max: Duration::from_secs(64),
                    initial: Duration::from_secs(1),
                },
            },
            recovery: Knobs { limited_transmit: true, ..Knobs::rfc() },
            ..Self::default()
        }
    }

    /// ns-2.35's one-way agents with their defaults: whole segments, coarse ticks, windows as real numbers.
    pub fn ns2() -> Self {
        let tick = Duration::from_millis(10);
        Self {
            name: "ns2",
            window_scale: Some(8),
            timestamps: false,
            ack: AckPolicy::EVERY,
            nagle: Nagle::Off,
            timer: Timer {
                style: TimerStyle::Ns2 {
                    tick,
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
            syn_retries: u32::MAX,
            parameters: &[("frto-window", 2.0)],
            recovery: Knobs {
                accounting: Accounting::Segments,
                initial_window: InitialWindow::Segments(1),
                ssthresh_after_lost_syn: Some(2.0),
                initial_ssthresh: InitialSsthresh::ReceiverWindow,
                growth: Growth::PerAck,
                growth_limit: GrowthLimit::None,
                decrease_from: DecreaseFrom::Window,
                rounding: Rounding::WholeSsthresh,
                careful: Careful::Yes,
                careless_until: Some(0),
                dupacks_survive_timeout: true,
                keep_pass_in_recovery: true,
                careful_reno: true,
                partial_ack_timer: PartialAckTimer::SlowButSteady,
                partial_ack_deflation: PartialAckDeflation::All,
                exit_window: ExitWindow::Keep,
                grow_on_exit: true,
                repeated_timeout: RepeatedTimeout::ReduceAgain,
                sack_dialect: SackDialect::Pipe1996,
                restart_after_idle: false,
                recovery_burst: Some(2),
                ..Knobs::rfc()
            },
            ..Self::default()
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: "default",
            layout: Layout::Linux,
            mss: None,
            window_scale: Some(8),
            sack: SackOffer::IfUsed,
            dsack: true,
            reordering_alarm: false,
            timestamps: true,
            tolerate_missing_timestamps: false,
            ecn: false,
            ecn_passive: false,
            send_buffer: 4 << 20,
            recv_buffer: 4 << 20,
            ack: AckPolicy::DELAYED,
            timer: Timer::RFC6298,
            time_handshake: true,
            challenge_rst: Challenge::Rfc5961,
            challenge_syn: Challenge::Rfc5961,
            challenge_acks_per_second: 100,
            nagle: Nagle::Classic,
            window_probe: WindowProbe::NewOctet,
            time_wait: Duration::from_secs(60),
            syn_retries: 6,
            retries: 15,
            persist_min: Duration::from_millis(200),
            persist_max: Duration::from_secs(60),
            ts_tick: Duration::from_millis(1),
            pmtu_discovery: true,
            ttl: 64,
            recovery: Knobs::rfc(),
            parameters: &[],
        }
    }
}
