//! Profiles: everything besides loss recovery in which standard TCP stacks differ, as plain data.
//!
//! `default` follows the RFCs. `linux` and `freebsd` look on the wire like those systems, and `ns2` like that
//! simulator's one-way agents. A recipe's options change single fields.

mod fast_open;
pub(crate) mod jiffies;
pub mod knobs;
mod mtu;
mod name;

use airwire::options::Layout;
use airwire::time::Duration;
pub use fast_open::FastOpenRules;
pub use knobs::Knobs;
pub use mtu::{MtuLimits, MtuProbing, MtuSearch};
pub use name::ProfileName;

use self::knobs::{
    Accounting, BeyondRecover, Careful, CubicDialect, DecreaseFrom, ExitWindow, GrowOnExit, Growth,
    GrowthLimit, InitialSsthresh, InitialWindow, PartialAckDeflation, PartialAckTimer, RackDialect,
    RepeatedTimeout, Rounding, SackDialect,
};
use crate::rtt::{RtoLimits, TimerStyle};

/// When ACKs that are not urgent are sent (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckPolicy {
    /// Longest delay of an ACK. Zero: every segment is acknowledged at once.
    pub delay: Duration,
    /// Number of full-sized segments after which an ACK is sent.
    pub every: u32,
    /// The remaining rules.
    pub rules: AckRules,
}

/// The rules by which ACKs are delayed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AckRules {
    /// Only [`AckPolicy::delay`] and [`AckPolicy::every`]. Out-of-order segments are acknowledged at once.
    Plain,
    /// Linux 6.18: the delay follows the time between segments, the ACK of a FIN is delayed too, and a read
    /// by the application may send an ACK. `delay` and `every` are ignored.
    Linux(LinuxAcks),
}

/// The parameters of [`AckRules::Linux`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinuxAcks {
    /// Upper bound on consecutive ACKs that are not delayed (TCP_MAX_QUICKACKS): at the start of a
    /// connection, after an idle RTO and after a duplicate segment, unless the connection is interactive. In
    /// a small window the bound is one ACK per two segments. ACKs are not delayed either while the window
    /// grows.
    pub quick: u32,
    /// Compression of the ACKs that report holes, after the first three. `None`, or no SACK: each of them is
    /// sent.
    pub compression: Option<AckCompression>,
}

/// How ACKs that report holes are compressed (tcp_comp_sack_nr, tcp_comp_sack_delay_ns,
/// tcp_comp_sack_slack_ns).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckCompression {
    /// Maximum number of ACKs that are merged into one.
    pub most: u32,
    /// Longest delay of a compressed ACK. A twentieth of the round-trip time also bounds it.
    pub delay: Duration,
    /// Slack of the timer: how much later it may fire.
    pub slack: Duration,
}

impl LinuxAcks {
    /// The kernel's default values.
    pub const DEFAULT: Self = Self {
        quick: 16,
        compression: Some(AckCompression {
            most: 44,
            delay: Duration::from_millis(1),
            slack: Duration::from_micros(100),
        }),
    };
}

impl AckPolicy {
    /// One ACK per segment, at once.
    pub const EVERY: Self = Self { delay: Duration::ZERO, every: 1, rules: AckRules::Plain };
    /// One ACK per two segments or 40 ms (RFC 5681 §4.2).
    pub const DELAYED: Self = Self { delay: Duration::from_millis(40), every: 2, rules: AckRules::Plain };
    /// Linux 6.18 with its default values.
    pub const LINUX: Self =
        Self { delay: Duration::from_millis(40), every: 2, rules: AckRules::Linux(LinuxAcks::DEFAULT) };
}

/// Which small segments wait for an ACK (RFC 9293 §3.7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nagle {
    /// None: a small segment is sent at once (TCP_NODELAY).
    Off,
    /// A small segment waits while any data is unacknowledged.
    Classic,
    /// A small segment waits while another small segment is unacknowledged (Minshall; Linux).
    Minshall,
}

impl Nagle {
    /// Returns true if small segments ever wait.
    pub(crate) const fn holds_back(self) -> bool {
        !matches!(self, Self::Off)
    }
}

/// Whether a SYN carries SACK-Permitted (RFC 2018 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackOffer {
    /// SACK is never negotiated.
    Never,
    /// Only if the recipe uses SACK. Current receivers send fewer duplicate ACKs when SACK is permitted (ACK
    /// compression), which hurts a sender that counts them.
    IfUsed,
    /// Always, even if the recipe does not use it.
    Always,
}

impl SackOffer {
    /// Returns true if a SYN offers SACK. `used`: the recipe uses SACK
    /// ([`Recipe::wants_sack`](crate::recovery::Recipe::wants_sack)).
    pub const fn is_offered(self, used: bool) -> bool {
        match self {
            Self::Never => false,
            Self::IfUsed => used,
            Self::Always => true,
        }
    }
}

/// The handling of data and a FIN that arrive with a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextOnSyn {
    /// They are queued until the connection is established (RFC 9293 §3.10.7.2).
    Queued,
    /// They are dropped, and the peer retransmits them (Linux and FreeBSD without TCP Fast Open).
    Dropped,
}

/// The format of a window probe (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowProbe {
    /// One byte of new data.
    NewOctet,
    /// No data, and a sequence number that is already acknowledged (Linux).
    OldSequence,
}

/// Which segments update the send window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendWindowUpdate {
    /// Segments with a sequence number or ACK that is not older than the last one used (RFC 9293 §3.10.7.4).
    Rfc9293,
    /// With the same numbers, only a larger window or a zero window counts (Linux, tcp_may_update_window()),
    /// so a reordered segment without data cannot shrink the window.
    Linux,
}

/// The events that affect the retransmission timer besides ACKs of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerNews {
    /// Nothing (RFC 6298).
    Rfc6298,
    /// Linux 6.18. A SACK of data that was sent once yields an RTT sample, unless an ACK of new data does
    /// (tcp_ack_update_rtt()). The timer restarts when the first outstanding segment is retransmitted, unless
    /// the detector has its own timer (tcp_xmit_retransmit_queue()). It also restarts when a SACK covers data
    /// older than that retransmission, whose own ACK is still to come (tcp_clean_rtx_queue()).
    Linux,
}

/// The contents of a RST for an existing connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resets {
    /// Timestamps, if they are in use (RFC 7323 §3.2), and no window.
    Rfc7323,
    /// The window and options of any other segment. A RST in reply to a segment has neither.
    Linux,
}

/// How far the advertised window opens, and when a separate ACK announces it (RFC 9293 §3.8.6.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowUpdate {
    /// The right edge moves by at least one segment or half the buffer. An ACK is sent once the window is
    /// twice as large as the one last advertised (Linux 6.18, tcp_cleanup_rbuf()).
    Doubled,
    /// Each ACK offers all free space, if that is at least a segment or a quarter of the buffer. A separate
    /// ACK is sent once the application has freed two segments and a quarter of the buffer, or half the
    /// buffer. It is sent earlier if the buffer is small or nearly full (FreeBSD 13, tcp_output()).
    QuarterBuffer,
    /// The window starts at half of the connection's receive memory and grows by two segments for each one
    /// received, until the memory is full. The memory grows with the amount that the application reads per
    /// round trip. A separate ACK is sent once the window is twice as large as the one last advertised (Linux
    /// 6.18). A buffer size set on the socket is doubled and then fixed, as SO_RCVBUF does.
    Tuned(ReceiveMemory),
}

/// Receive memory of a connection, in bytes (tcp_rmem).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveMemory {
    /// Initial value.
    pub initial: usize,
    /// Maximum.
    pub most: usize,
}

impl ReceiveMemory {
    /// The defaults of Linux on a machine with enough memory.
    pub const LINUX: Self = Self { initial: 131_072, most: 6 << 20 };
}

/// How a SYN that also has a FIN is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynFin {
    /// As a SYN. [`TextOnSyn`] decides about its FIN as it does about data.
    Taken,
    /// It does not open a connection. In other states it counts as a SYN (Linux 6.18,
    /// tcp_rcv_state_process()).
    NoConnection,
    /// It is dropped wherever a connection or a listener would process it (FreeBSD 13,
    /// net.inet.tcp.drop_synfin).
    Drop,
}

/// The rules for segments that arrive in TIME-WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeWaitRules {
    /// RFC 9293 §3.10.7.4 and RFC 5961. A SYN with a later timestamp or sequence number opens a new
    /// connection (RFC 6191).
    Rfc9293,
    /// Linux 6.18, tcp_timewait_state_process(): the ACK field is ignored, and an ACK answers every segment
    /// but an empty one in order. FIN-WAIT-2 after a close has similar rules.
    Linux,
    /// FreeBSD 14, tcp_twcheck(): RSTs, timestamps and SYNs with an old sequence number are ignored.
    FreeBsd,
}

/// The retransmission timer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timer {
    /// How the timeout is computed from round-trip times.
    pub style: TimerStyle,
    /// The minimum, maximum and initial timeout.
    pub limits: RtoLimits,
}

impl Timer {
    /// RFC 6298 with a 1 ms clock: minimum 1 s, initially 1 s.
    pub const RFC6298: Self =
        Self::new(TimerStyle::Rfc6298 { granularity: Duration::from_millis(1) }, 1000, 1000);
    /// 4.4BSD with 500 ms ticks: minimum 1 s, initially 6 s (P2 §2.2).
    pub const BSD: Self = Self::new(TimerStyle::Bsd { tick: Duration::from_millis(500) }, 1000, 6000);
    /// FreeBSD 2.2 (P2 Fig. 5). Its slow timer runs twice a second (PR_SLOWHZ): minimum 1 s (TCPTV_MIN is
    /// PR_SLOWHZ), initially 3 s (TCPTV_RTOBASE).
    pub const FREEBSD22: Self =
        Self::new(TimerStyle::FreeBsd { tick: Duration::from_millis(500) }, 1000, 3000);
    /// FreeBSD 4.5 (P2 Fig. 5). Its timers count ticks of the 100 Hz system clock: minimum 1 s (TCPTV_MIN is
    /// hz), initially 3 s (tcp_timer.h 1.18, 1999). Later versions have a lower minimum.
    pub const FREEBSD45: Self =
        Self::new(TimerStyle::FreeBsd { tick: Duration::from_millis(10) }, 1000, 3000);
    /// Linux 2.2: minimum 200 ms, initially 3 s (P2 Fig. 5).
    pub const LINUX22: Self = Self::new(TimerStyle::Linux22, 200, 3000);
    /// Linux 2.4 and later: minimum of 200 ms for the variance term, initially 1 s (P2 Fig. 5).
    pub const LINUX24: Self = Self::new(TimerStyle::Linux24 { floor: Duration::from_millis(200) }, 200, 1000);
    /// Solaris 8: minimum 400 ms, initially 3 s (P2 Fig. 5).
    pub const SOLARIS: Self = Self::new(TimerStyle::Solaris, 400, 3000);

    /// Returns ns-2's timer with a tick other than the one of profile `ns2`: minimum two ticks, initially 3 s
    /// (P0 §3.1, Fig. 9).
    pub fn ns2(tick: Duration) -> Self {
        let phase = Duration::from_secs_f64(0.555_880_72 * tick.as_secs_f64());
        let style = TimerStyle::Ns2 { tick, phase, min_before_backoff: true };
        let limits = RtoLimits {
            min: tick.saturating_mul(2),
            max: Duration::from_secs(64),
            initial: Duration::from_secs(3),
        };
        Self { style, limits }
    }

    const fn new(style: TimerStyle, min_ms: u64, initial_ms: u64) -> Self {
        let limits = RtoLimits {
            min: Duration::from_millis(min_ms),
            max: Duration::from_secs(120),
            initial: Duration::from_millis(initial_ms),
        };
        Self { style, limits }
    }
}

/// The effect of an unexpected RST or SYN in the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Challenge {
    /// Only a RST at RCV.NXT resets the connection. Any other RST or SYN in the window triggers a challenge
    /// ACK (RFC 5961).
    Rfc5961,
    /// Any RST or SYN in the window resets the connection (RFC 793; FreeBSD's insecure_rst, insecure_syn).
    Rfc793,
}

/// Which ICMP errors abort a connection that is being opened. None aborts an open connection (RFC 5927 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpeningErrors {
    /// The hard errors of RFC 9293 §3.9.2.2: protocol or port unreachable. The others are soft errors, which
    /// MUST NOT abort the connection (MUST-56).
    Hard,
    /// All errors abort an active open, as RFC 5461 §4.1 describes. Some of them abort a passive open (Linux,
    /// `tcp_v4_err` and `tcp_req_err`).
    All,
    /// In SYN-SENT, also "prohibited" and "time exceeded" (`icmp_may_rst`). Any other error aborts the
    /// opening only after an earlier error and at least four retransmissions of the SYN, or three of the
    /// SYN,ACK (RFC 5461 §4.2; FreeBSD, `tcp_ctlinput`, `tcp_notify`).
    FreeBsd,
}

/// The handling of data that arrives after the application shut down reading while it may still write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutRead {
    /// It is acknowledged and kept for later reads (Linux, where SHUT_RD only stops reads from blocking).
    Keep,
    /// It is acknowledged and discarded, together with data that was already buffered (FreeBSD, `sorflush`,
    /// SBS_CANTRCVMORE).
    Discard,
}

/// The effect of closing a listener on its half-open connections. Connections that wait to be accepted are
/// always reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfOpen {
    /// It resets them: ABORT in SYN-RECEIVED (RFC 9293 §3.10.5).
    Reset,
    /// It drops them silently. The peer's next ACK is answered with a RST (Linux, `inet_csk_listen_stop`).
    Forget,
}

/// The event from which TCP_USER_TIMEOUT counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserTimeoutFrom {
    /// The first transmission of the unacknowledged data (RFC 5482 §1).
    Transmission,
    /// The first retransmission or window probe (Linux, `retrans_stamp`, `icsk_probes_tstamp`). For a SYN,
    /// Linux also counts from the first transmission.
    Retransmission,
}

/// Everything besides loss recovery in which standard TCP stacks differ. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name that [`Profile::by_name`] looks up.
    pub name: &'static str,
    /// Order and padding of TCP options on the wire.
    pub layout: Layout,
    /// MSS to advertise, in bytes; `None` derives it from the MTU.
    pub mss: Option<u16>,
    /// Minimum window scale to offer (RFC 7323 §2); a larger receive buffer raises it. `None`: no scaling.
    pub window_scale: Option<u8>,
    /// Whether a SYN offers SACK.
    pub sack: SackOffer,
    /// Receiver: report duplicate data with D-SACK (RFC 2883).
    pub dsack: bool,
    /// Receiver: each ACK carries the number of segments that arrived reordered by more than three (P3 §III
    /// B).
    pub reordering_alarm: bool,
    /// Offer and accept the timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// Accept segments without timestamps after they were negotiated (RFC 7323 §3.2 would drop them).
    pub tolerate_missing_timestamps: bool,
    /// Receiver: the ACK of a duplicate segment echoes that segment's timestamp. Real systems echo TS.Recent,
    /// which a duplicate does not update.
    pub echo_copies: bool,
    /// Offer ECN when opening, and accept it when a peer offers it (RFC 3168 §6.1.1).
    pub ecn: bool,
    /// Accept ECN when a peer offers it, without offering it.
    pub ecn_passive: bool,
    /// Send buffer size in bytes: data that the application wrote and the peer has not acknowledged. A socket
    /// option overrides it.
    pub send_buffer: usize,
    /// Receive buffer size in bytes, which is the largest window to advertise. A socket option overrides it.
    pub recv_buffer: usize,
    /// Largest size in bytes that SO_RCVBUF can set (net.core.rmem_max).
    pub recv_buffer_max: usize,
    /// When ACKs are delayed.
    pub ack: AckPolicy,
    /// When a larger window is announced to the peer.
    pub window_update: WindowUpdate,
    /// The retransmission timer.
    pub timer: Timer,
    /// The handshake provides the first RTT sample (RFC 6298 §2).
    pub time_handshake: bool,
    /// How SACKs and retransmissions affect the retransmission timer.
    pub timer_news: TimerNews,
    /// Receiver: handling of data that arrives with a SYN, unless TCP Fast Open accepts it.
    pub text_on_syn: TextOnSyn,
    /// Which ends may use TCP Fast Open. A socket must ask for it:
    /// [`FastOpenOptions`](crate::tcp::FastOpenOptions).
    pub fast_open: FastOpenRules,
    /// Effect of a RST in the window.
    pub challenge_rst: Challenge,
    /// Effect of a SYN in the window.
    pub challenge_syn: Challenge,
    /// Handling of a SYN that also has a FIN.
    pub syn_fin: SynFin,
    /// Rules for segments in TIME-WAIT.
    pub time_wait_rules: TimeWaitRules,
    /// Receiver: SACK and D-SACK blocks count the peer's FIN as one byte. FreeBSD reports data only.
    pub sack_counts_fin: bool,
    /// In CLOSING and LAST-ACK, each ACK repeats our FIN, and the ACK of a repeated FIN is processed (FreeBSD,
    /// tcp_output() and tcp_do_segment()). FreeBSD does the same in FIN-WAIT-1 and with repeated data. There,
    /// two such ends that miss data could answer each other's FINs forever, and forged ACKs would be easier.
    pub acks_repeat_fin: bool,
    /// Maximum number of challenge ACKs per second on one connection (RFC 5961 §7).
    pub challenge_acks_per_second: u32,
    /// Minimum time between two challenge ACKs on one connection, and between two ACKs of data that is
    /// probably forged (Linux, tcp_invalid_ratelimit).
    pub challenge_interval: Duration,
    /// Ticks of the peer's clock by which a timestamp may be older than TS.Recent (Linux, TCP_PAWS_WINDOW;
    /// zero in RFC 7323 §5.3).
    pub paws_slack: i32,
    /// Receiver: a segment that ends below RCV.NXT is still acceptable if it ends at or above the last ACK
    /// sent (Linux, tcp_sequence()). Its ACK is then processed.
    pub accepts_unacknowledged: bool,
    /// Which small segments wait.
    pub nagle: Nagle,
    /// Limit segments to half of the largest window that the peer has offered, or to that window if it is
    /// tiny (Linux). Two segments then fit, and the first one's ACK arrives while the second is on its way.
    pub half_window: bool,
    /// After a full segment, fill the rest of the peer's window with a short one if Nagle's rule allows it
    /// and both fit into half of the largest window, which limits what goes into one buffer (Linux,
    /// tcp_mss_split_point()).
    pub fills_window: bool,
    /// Data waits for an ACK instead of leaving in a burst of less than two segments (Linux,
    /// tcp_tso_should_defer()).
    pub defers: bool,
    /// Which segments update the send window.
    pub send_window_update: SendWindowUpdate,
    /// The contents of a RST for an existing connection.
    pub resets: Resets,
    /// The format of a window probe.
    pub window_probe: WindowProbe,
    /// Twice the maximum segment lifetime (RFC 9293 §3.4.2: two minutes each; real systems use less).
    pub time_wait: Duration,
    /// Retransmissions of a SYN before giving up: R2 for SYNs (RFC 9293 §3.8.3) as a count.
    pub syn_retries: u32,
    /// Retransmissions of a SYN,ACK before giving up. `None`: the value of `syn_retries`.
    pub syn_ack_retries: Option<u32>,
    /// Minimum time before giving up on a SYN or a SYN,ACK, however short the timeouts are (MUST-23: at least
    /// 3 minutes).
    pub syn_time: Duration,
    /// R1: the number of retransmissions of a segment after which the application is notified.
    pub retries_told: u32,
    /// Consecutive timeouts of a segment before giving up (RFC 9293 §3.8.3, R2).
    pub retries: u32,
    /// The event from which TCP_USER_TIMEOUT counts.
    pub user_timeout_from: UserTimeoutFrom,
    /// Which ICMP errors abort a connection that is being opened. A socket option overrides it.
    pub opening_errors: OpeningErrors,
    /// Handling of data that arrives after SHUT_RD.
    pub shut_read: ShutRead,
    /// The effect of closing a listener on its half-open connections.
    pub half_open: HalfOpen,
    /// Each ACK from a peer whose window stays closed postpones the next window probe (Linux,
    /// tcp_ack_probe()).
    pub acks_restart_probes: bool,
    /// Minimum time between two window probes, if the RTO is shorter.
    pub persist_min: Duration,
    /// Maximum time between two window probes (RFC 9293 §3.8.6.1).
    pub persist_max: Duration,
    /// Tick of the clock that generates timestamps (RFC 7323 §5.4).
    pub ts_tick: Duration,
    /// Set Don't Fragment, and reduce the segment size on ICMP "packet too big" (RFC 1191).
    pub pmtu_discovery: bool,
    /// When the sender looks for the segment size without ICMP errors. Off in all profiles, as in Linux and
    /// FreeBSD: an outage of a radio link looks like a black hole, and would change the segment size. A
    /// socket option overrides it.
    pub mtu_probing: MtuProbing,
    /// How it looks for the segment size.
    pub mtu_search: MtuSearch,
    /// Hop limit of outgoing packets.
    pub ttl: u8,
    /// Settings of the default answers.
    pub recovery: Knobs,
    /// Parameters of algorithms, by their names in recipes. Values in a recipe override them.
    pub parameters: &'static [(&'static str, f64)],
}

impl Profile {
    /// The names that [`Profile::by_name`] accepts.
    pub const NAMES: [&'static str; 4] = [
        ProfileName::Default.as_str(),
        ProfileName::Linux.as_str(),
        ProfileName::FreeBsd.as_str(),
        ProfileName::Ns2.as_str(),
    ];

    /// Returns the profile with this name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        let known = ProfileName::ALL.into_iter().find(|known| known.as_str() == name);
        known.map(ProfileName::profile)
    }

    /// Linux as seen on the wire. Behaviour that the wire does not show follows the RFCs.
    pub fn linux() -> Self {
        Self {
            name: "linux",
            ack: AckPolicy::LINUX,
            window_update: WindowUpdate::Tuned(ReceiveMemory::LINUX),
            window_scale: Some(0),
            recv_buffer_max: 4 << 20,
            syn_fin: SynFin::NoConnection,
            time_wait_rules: TimeWaitRules::Linux,
            nagle: Nagle::Minshall,
            half_window: true,
            fills_window: true,
            send_window_update: SendWindowUpdate::Linux,
            resets: Resets::Linux,
            acks_restart_probes: true,
            window_probe: WindowProbe::OldSequence,
            sack: SackOffer::Always,
            tolerate_missing_timestamps: true,
            text_on_syn: TextOnSyn::Dropped,
            fast_open: FastOpenRules::CLIENT,
            echo_copies: false,
            ecn_passive: true,
            paws_slack: 1,
            accepts_unacknowledged: true,
            timer: Timer::LINUX24,
            timer_news: TimerNews::Linux,
            syn_retries: 6,
            syn_ack_retries: Some(5),
            syn_time: Duration::ZERO,
            user_timeout_from: UserTimeoutFrom::Retransmission,
            opening_errors: OpeningErrors::All,
            half_open: HalfOpen::Forget,
            recovery: Knobs {
                accounting: Accounting::Segments,
                growth: Growth::Delivered,
                growth_limit: GrowthLimit::TwiceThePeak,
                decrease_from: DecreaseFrom::Cwnd,
                // The value of CUBIC, the default. Linux's Reno (`reno-linux`) halves the window.
                beta: 0.7,
                rounding: Rounding::Whole,
                initial_window: InitialWindow::Segments(10),
                syn_timeouts_forgiven: 1,
                partial_ack_timer: PartialAckTimer::SlowButSteady,
                partial_ack_deflation: PartialAckDeflation::InflationOnly,
                repeated_timeout: RepeatedTimeout::OncePerWindow,
                beyond_recover: BeyondRecover::AnyLoss,
                exit_window: ExitWindow::Ssthresh,
                grow_on_exit: GrowOnExit::WithScoreboard,
                limited_transmit: true,
                limited_transmit_after_timeout: false,
                cubic_dialect: CubicDialect::Linux,
                rack_dialect: RackDialect::Linux,
                restart_after_idle: false,
                forget_sacks_at_timeout: false,
                ..Knobs::rfc()
            },
            ..Self::default()
        }
    }

    /// FreeBSD as seen on the wire.
    pub fn freebsd() -> Self {
        Self {
            name: "freebsd",
            layout: Layout::FreeBsd,
            window_scale: Some(6),
            text_on_syn: TextOnSyn::Dropped,
            fast_open: FastOpenRules::CLIENT,
            echo_copies: false,
            time_wait_rules: TimeWaitRules::FreeBsd,
            sack_counts_fin: false,
            acks_repeat_fin: true,
            sack: SackOffer::Always,
            recv_buffer: 65_535,
            ack: AckPolicy::DELAYED,
            window_update: WindowUpdate::QuarterBuffer,
            syn_retries: 6,
            syn_time: Duration::ZERO,
            opening_errors: OpeningErrors::FreeBsd,
            shut_read: ShutRead::Discard,
            mtu_search: MtuSearch::FreeBsd,
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
            fast_open: FastOpenRules::NONE,
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
            echo_copies: true,
            ecn: false,
            ecn_passive: false,
            send_buffer: 4 << 20,
            recv_buffer: 4 << 20,
            recv_buffer_max: usize::MAX,
            ack: AckPolicy::DELAYED,
            window_update: WindowUpdate::Doubled,
            timer: Timer::RFC6298,
            time_handshake: true,
            timer_news: TimerNews::Rfc6298,
            text_on_syn: TextOnSyn::Queued,
            fast_open: FastOpenRules::BOTH,
            challenge_rst: Challenge::Rfc5961,
            challenge_syn: Challenge::Rfc5961,
            syn_fin: SynFin::Taken,
            time_wait_rules: TimeWaitRules::Rfc9293,
            sack_counts_fin: true,
            acks_repeat_fin: false,
            challenge_acks_per_second: 100,
            challenge_interval: Duration::from_millis(500),
            paws_slack: 0,
            accepts_unacknowledged: false,
            nagle: Nagle::Classic,
            half_window: false,
            fills_window: false,
            defers: false,
            send_window_update: SendWindowUpdate::Rfc9293,
            resets: Resets::Rfc7323,
            window_probe: WindowProbe::NewOctet,
            time_wait: Duration::from_secs(60),
            syn_retries: 7,
            syn_ack_retries: None,
            syn_time: Duration::from_secs(180),
            retries_told: 3,
            retries: 15,
            user_timeout_from: UserTimeoutFrom::Transmission,
            opening_errors: OpeningErrors::Hard,
            shut_read: ShutRead::Keep,
            half_open: HalfOpen::Reset,
            acks_restart_probes: false,
            persist_min: Duration::from_millis(200),
            persist_max: Duration::from_secs(60),
            ts_tick: Duration::from_millis(1),
            pmtu_discovery: true,
            mtu_probing: MtuProbing::Off,
            mtu_search: MtuSearch::Linux(MtuLimits::LINUX),
            ttl: 64,
            recovery: Knobs::rfc(),
            parameters: &[],
        }
    }
}
