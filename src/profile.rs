//! Everything in which one standard TCP differs from another, as plain data.
//!
//! `default` follows the RFCs, `linux` and `freebsd` look on the wire like those systems, `ns2` like the
//! one-way agents of that simulator. A recipe's options change single fields.

pub(crate) mod jiffies;
pub mod knobs;
mod name;

use airwire::options::Layout;
use airwire::time::Duration;
pub use knobs::Knobs;
pub use name::ProfileName;

use self::knobs::{
    Accounting, BeyondRecover, Careful, CubicDialect, DecreaseFrom, ExitWindow, GrowOnExit, Growth,
    GrowthLimit, InitialSsthresh, InitialWindow, PartialAckDeflation, PartialAckTimer, RackDialect,
    RepeatedTimeout, Rounding, SackDialect,
};
use crate::rtt::{RtoLimits, TimerStyle};

/// When an ACK that nothing urgent asks for is sent (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckPolicy {
    /// How long an ACK may wait. Zero: every segment is acknowledged at once.
    pub delay: Duration,
    /// An ACK leaves once this many full-sized segments wait for it.
    pub every: u32,
    /// What else there is to it.
    pub rules: AckRules,
}

/// By what rules ACKs are delayed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AckRules {
    /// Those of [`AckPolicy::delay`] and [`AckPolicy::every`] alone, and what is out of order is acknowledged at once.
    Plain,
    /// Linux 6.18: the delay follows the time between segments, the ACK of a FIN waits too, and an application that reads
    /// may send an ACK. `delay` and `every` do not count.
    Linux(LinuxAcks),
}

/// The numbers of [`AckRules::Linux`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinuxAcks {
    /// At most so many ACKs in a row are not delayed (TCP_MAX_QUICKACKS): at the start of a connection, after an idle RTO
    /// and after a copy of what had arrived, unless data is being answered with data. In a small window they are fewer, one
    /// for two segments. While the window grows, ACKs are not delayed either.
    pub quick: u32,
    /// ACKs of holes beyond the third are put together. `None`, and without SACK: each leaves.
    pub compression: Option<AckCompression>,
}

/// How ACKs of holes are put together (tcp_comp_sack_nr, tcp_comp_sack_delay_ns, tcp_comp_sack_slack_ns).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckCompression {
    /// At most so many become one.
    pub most: u32,
    /// They wait no longer, and no longer than a twentieth of the round trip.
    pub delay: Duration,
    /// So much later than that a timer may be.
    pub slack: Duration,
}

impl LinuxAcks {
    /// As the kernel comes.
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
    /// Linux 6.18 as it comes.
    pub const LINUX: Self =
        Self { delay: Duration::from_millis(40), every: 2, rules: AckRules::Linux(LinuxAcks::DEFAULT) };
}

/// Which small segments wait for an ACK (RFC 9293 §3.7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nagle {
    /// None: a small segment leaves at once (TCP_NODELAY).
    Off,
    /// A small segment waits while anything is unacknowledged.
    Classic,
    /// A small segment waits while another small segment is unacknowledged (Minshall; Linux).
    Minshall,
}

impl Nagle {
    /// Whether small segments ever wait.
    pub(crate) const fn holds_back(self) -> bool {
        !matches!(self, Self::Off)
    }
}

/// Whether a SYN carries SACK-Permitted (RFC 2018 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackOffer {
    /// No connection has SACK.
    Never,
    /// Only if the recipe has use for SACK: today's receivers send fewer duplicate ACKs where it is permitted
    /// (ACK compression), which costs a sender that counts them.
    IfUsed,
    /// Whatever the recipe does with it.
    Always,
}

impl SackOffer {
    /// `used`: the recipe has use for SACK ([`Recipe::wants_sack`](crate::recovery::Recipe::wants_sack)).
    pub const fn is_offered(self, used: bool) -> bool {
        match self {
            Self::Never => false,
            Self::IfUsed => used,
            Self::Always => true,
        }
    }
}

/// What becomes of text and FIN that come with a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextOnSyn {
    /// They wait until the connection is established (RFC 9293 §3.10.7.2).
    Queued,
    /// They are dropped, and the peer sends them again (Linux without TCP Fast Open; FreeBSD's SYN cache).
    Dropped,
}

/// What a window probe looks like (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowProbe {
    /// One octet of new data.
    NewOctet,
    /// No data, and a sequence number that is already acknowledged (Linux).
    OldSequence,
}

/// Which segments' windows are believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowNews {
    /// Those with a newer sequence number or ACK than the last one, or the same (RFC 9293 §3.10.7.4).
    Rfc9293,
    /// With the same numbers, only a window that is larger, or zero (Linux, tcp_may_update_window()): a segment without
    /// text that was reordered closes nothing.
    Linux,
}

/// What the retransmission timer learns, apart from ACKs of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerNews {
    /// Nothing (RFC 6298).
    Rfc6298,
    /// Linux 6.18. A SACK of what was sent once measures the round trip, unless an ACK of new data does
    /// (tcp_ack_update_rtt()). The timer starts anew when the first outstanding segment is sent again, unless the detector
    /// has a timer of its own (tcp_xmit_retransmit_queue()); and when a SACK is about something older than that copy, whose
    /// own answer is still to come (tcp_clean_rtx_queue()).
    Linux,
}

/// What a reset of a connection carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resets {
    /// Timestamps, if the connection has them (RFC 7323 §3.2), and no window.
    Rfc7323,
    /// The window and the options of any other segment; one that answers a segment has neither.
    Linux,
}

/// How far the window opens that we offer, and when an ACK of its own says so (RFC 9293 §3.8.6.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowUpdate {
    /// The right edge moves by a segment or half the buffer at least; an ACK leaves once the window is twice as large as
    /// the peer knows it (Linux 6.18, tcp_cleanup_rbuf()).
    Doubled,
    /// Each ACK offers all the room there is, if that is a segment or a quarter of the buffer; one of its own leaves
    /// when the application has made room for two segments and a quarter of the buffer, or half of it, and earlier if
    /// the buffer is small or nearly full (FreeBSD 13, tcp_output()).
    QuarterBuffer,
    /// The window begins with half of the memory that a connection has, grows by two segments for each that comes until
    /// the memory is full, and the memory grows with what the application reads in a round trip. An ACK of its own leaves
    /// once the window is twice as large as the peer knows it (Linux 6.18). A buffer that a socket has asked for is
    /// doubled and stays, as SO_RCVBUF there.
    Tuned(ReceiveMemory),
}

/// What segments that were received may cost (tcp_rmem), in octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveMemory {
    /// At first.
    pub initial: usize,
    /// At most.
    pub most: usize,
}

impl ReceiveMemory {
    /// As Linux comes on a machine with enough memory.
    pub const LINUX: Self = Self { initial: 131_072, most: 6 << 20 };
}

/// What becomes of a SYN that has a FIN as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynFin {
    /// It is a SYN, and its FIN what [`TextOnSyn`] makes of text.
    Taken,
    /// No connection begins with it; elsewhere it is a SYN (Linux 6.18, tcp_rcv_state_process()).
    NoConnection,
    /// Nothing: it is dropped wherever a connection or a listener would take it (FreeBSD 13's net.inet.tcp.drop_synfin).
    Drop,
}

/// The retransmission timer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timer {
    /// How the timeout is computed from round-trip times.
    pub style: TimerStyle,
    /// The least, the largest and the first timeout.
    pub limits: RtoLimits,
}

impl Timer {
    /// RFC 6298 with a clock of 1 ms: at least 1 s, at first 1 s.
    pub const RFC6298: Self =
        Self::new(TimerStyle::Rfc6298 { granularity: Duration::from_millis(1) }, 1000, 1000);
    /// 4.4BSD with ticks of 500 ms: at least 1 s, at first 6 s (P2 §2.2).
    pub const BSD: Self = Self::new(TimerStyle::Bsd { tick: Duration::from_millis(500) }, 1000, 6000);
    /// FreeBSD 2.2 (P2 Fig. 5), whose timers its slow timer counts down twice a second (PR_SLOWHZ): at least one second
    /// (TCPTV_MIN is PR_SLOWHZ), at first three (TCPTV_RTOBASE).
    pub const FREEBSD22: Self =
        Self::new(TimerStyle::FreeBsd { tick: Duration::from_millis(500) }, 1000, 3000);
    /// FreeBSD 4.5 (P2 Fig. 5), whose timers count ticks of the system's clock, a hundred in a second: at least one second
    /// (TCPTV_MIN is hz), at first three (tcp_timer.h 1.18, 1999). Later systems have less.
    pub const FREEBSD45: Self =
        Self::new(TimerStyle::FreeBsd { tick: Duration::from_millis(10) }, 1000, 3000);
    /// Linux 2.2: at least 200 ms, at first 3 s (P2 Fig. 5).
    pub const LINUX22: Self = Self::new(TimerStyle::Linux22, 200, 3000);
    /// Linux 2.4 and later: 200 ms under the variance term, at first 1 s (P2 Fig. 5).
    pub const LINUX24: Self = Self::new(TimerStyle::Linux24 { floor: Duration::from_millis(200) }, 200, 1000);
    /// Solaris 8: at least 400 ms, at first 3 s (P2 Fig. 5).
    pub const SOLARIS: Self = Self::new(TimerStyle::Solaris, 400, 3000);

    /// ns-2's timer with another tick than profile `ns2` has, at least two of them; at first 3 s (P0 §3.1, Fig. 9).
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

/// What an unexpected RST or SYN in the window does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Challenge {
    /// Only an RST with the exact sequence number resets; anything else in the window gets a challenge ACK (RFC 5961).
    Rfc5961,
    /// Anything in the window resets (RFC 793; FreeBSD's insecure_rst, insecure_syn).
    Rfc793,
}

/// Which ICMP errors end a connection that is being opened. Once it is open, none does (RFC 5927 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpeningErrors {
    /// Those that RFC 9293 §3.9.2.2 calls hard: no such protocol or port. The others are soft, and MUST NOT (MUST-56).
    Hard,
    /// All of them end an attempt to connect, as RFC 5461 §4.1 found it done; some of them one to accept (Linux,
    /// `tcp_v4_err` and `tcp_req_err`).
    All,
    /// In SYN-SENT also those that say "prohibited" or "time exceeded" (`icmp_may_rst`). Another one does when some came
    /// before, and the SYN was sent again more than three times (RFC 5461 §4.2; FreeBSD, `tcp_ctlinput`, `tcp_notify`).
    FreeBsd,
}

/// What becomes of data that arrives after the application has shut reading down, while it may still write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutRead {
    /// It is acknowledged and kept: a read finds it (Linux, where SHUT_RD only keeps reads from waiting).
    Keep,
    /// It is acknowledged and thrown away, with what was there before (FreeBSD, `sorflush`, SBS_CANTRCVMORE).
    Discard,
}

/// What a listener that closes does about half-open connections. Those that wait to be accepted are reset by all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfOpen {
    /// It resets them: ABORT in SYN-RECEIVED (RFC 9293 §3.10.5).
    Reset,
    /// It forgets them; the peer learns of it when its ACK is answered by a reset (Linux, `inet_csk_listen_stop`).
    Forget,
}

/// From when on TCP_USER_TIMEOUT counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserTimeoutFrom {
    /// From the first transmission of what is not acknowledged (RFC 5482 §1).
    Transmission,
    /// From its first retransmission, or from the first window probe (Linux, `retrans_stamp`, `icsk_probes_tstamp`).
    /// A SYN counts from its first transmission there too.
    Retransmission,
}

/// Everything in which one standard TCP differs from another. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The word by which [`Profile::by_name`] finds it.
    pub name: &'static str,
    /// Order and padding of TCP options on the wire.
    pub layout: Layout,
    /// MSS to advertise, in octets; `None` takes it from the MTU.
    pub mss: Option<u16>,
    /// The least window scale to offer (RFC 7323 §2); a larger receive buffer raises it. `None`: no scaling.
    pub window_scale: Option<u8>,
    /// Whether a SYN offers SACK.
    pub sack: SackOffer,
    /// Receiver: octets that arrive twice are reported by D-SACK (RFC 2883).
    pub dsack: bool,
    /// Receiver: each ACK tells how many segments arrived reordered by more than three (P3 §III B).
    pub reordering_alarm: bool,
    /// Offer and accept the timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// Accept segments without the timestamps option after it was negotiated (RFC 7323 §3.2 would drop them).
    pub tolerate_missing_timestamps: bool,
    /// Receiver: the answer to a copy of what has arrived echoes the copy's timestamp. Systems go on echoing TS.Recent,
    /// which such a copy does not change.
    pub echo_copies: bool,
    /// Offer ECN when opening, and accept it when a peer offers it (RFC 3168 §6.1.1).
    pub ecn: bool,
    /// Accept ECN when a peer offers it, without offering it.
    pub ecn_passive: bool,
    /// Octets that the application may have written and the peer not acknowledged; a socket may ask for others.
    pub send_buffer: usize,
    /// Octets that may wait for the application: the largest window to advertise. A socket may ask for others.
    pub recv_buffer: usize,
    /// When ACKs are delayed.
    pub ack: AckPolicy,
    /// When the peer is told of a wider window.
    pub window_update: WindowUpdate,
    /// The retransmission timer.
    pub timer: Timer,
    /// The round trip of the handshake is the first RTT sample (RFC 6298 §2).
    pub time_handshake: bool,
    /// What SACKs and copies mean for the retransmission timer.
    pub timer_news: TimerNews,
    /// Receiver: what becomes of text that comes with a SYN.
    pub text_on_syn: TextOnSyn,
    /// What an RST in the window does.
    pub challenge_rst: Challenge,
    /// What a SYN in the window does.
    pub challenge_syn: Challenge,
    /// What becomes of a SYN that has a FIN as well.
    pub syn_fin: SynFin,
    /// The most challenge ACKs that leave in a second (RFC 5961 §7).
    pub challenge_acks_per_second: u32,
    /// The least time between two of them (Linux, tcp_invalid_ratelimit).
    pub challenge_interval: Duration,
    /// By how many ticks of the peer's clock a timestamp may be older than TS.Recent (Linux, TCP_PAWS_WINDOW; RFC 7323
    /// §5.3 has none).
    pub paws_slack: i32,
    /// Receiver: a segment is acceptable as well if it ends at or above the last ACK that was sent, though below RCV.NXT
    /// (Linux, tcp_sequence()): its ACK counts.
    pub accepts_unacknowledged: bool,
    /// Which small segments wait.
    pub nagle: Nagle,
    /// Segments are at most half as large as the largest window that the peer has offered, or as large as that window if
    /// it is tiny (Linux): two fit, and the ACK of the first comes while the second is on its way.
    pub half_window: bool,
    /// Behind a full segment a short one fills what is left of the peer's window, if Nagle's rule has nothing against it
    /// and both fit into half of the largest window: the most that goes into one buffer (Linux, tcp_mss_split_point()).
    pub fills_window: bool,
    /// Text waits for an ACK rather than leave in a piece of less than two segments (tcp_tso_should_defer() of Linux).
    pub defers: bool,
    /// Which segments' windows are believed.
    pub window_news: WindowNews,
    /// What a reset of a connection carries.
    pub resets: Resets,
    /// What a window probe looks like.
    pub window_probe: WindowProbe,
    /// Twice the maximum segment lifetime (RFC 9293 §3.4.2: two minutes each; systems use less).
    pub time_wait: Duration,
    /// Retransmissions of a SYN before giving up: its R2 (RFC 9293 §3.8.3) as a count.
    pub syn_retries: u32,
    /// The same of a SYN,ACK. `None`: as of a SYN.
    pub syn_ack_retries: Option<u32>,
    /// A SYN and a SYN,ACK are not given up earlier, however short the timeouts are (MUST-23: at least three minutes).
    pub syn_time: Duration,
    /// R1: after so many retransmissions of a segment the application can learn of them.
    pub retries_told: u32,
    /// Consecutive timeouts of a segment before giving up (RFC 9293 §3.8.3, R2).
    pub retries: u32,
    /// From when on TCP_USER_TIMEOUT counts.
    pub user_timeout_from: UserTimeoutFrom,
    /// Which ICMP errors end a connection that is being opened. A socket may ask for others.
    pub opening_errors: OpeningErrors,
    /// What becomes of data that arrives after SHUT_RD.
    pub shut_read: ShutRead,
    /// What a listener that closes does about half-open connections.
    pub half_open: HalfOpen,
    /// Each ACK of a peer whose window stays closed puts the next window probe off (Linux, tcp_ack_probe()).
    pub acks_restart_probes: bool,
    /// The shortest time between two window probes, where the RTO is shorter.
    pub persist_min: Duration,
    /// The longest time between two window probes (RFC 9293 §3.8.6.1).
    pub persist_max: Duration,
    /// One tick of the clock that timestamps are read from (RFC 7323 §5.4).
    pub ts_tick: Duration,
    /// Packets may not be fragmented, and ICMP "too big" makes segments smaller (RFC 1191).
    pub pmtu_discovery: bool,
    /// Hop limit of packets that leave.
    pub ttl: u8,
    /// Knobs of the ordinary answers.
    pub recovery: Knobs,
    /// Parameters of algorithms, by the word that a recipe has for them. A recipe's own values come first.
    pub parameters: &'static [(&'static str, f64)],
}

impl Profile {
    /// What [`Profile::by_name`] knows.
    pub const NAMES: [&'static str; 4] = [
        ProfileName::Default.as_str(),
        ProfileName::Linux.as_str(),
        ProfileName::FreeBsd.as_str(),
        ProfileName::Ns2.as_str(),
    ];

    /// `None`: no profile has this name.
    pub fn by_name(name: &str) -> Option<Self> {
        let known = ProfileName::ALL.into_iter().find(|known| known.as_str() == name);
        known.map(ProfileName::profile)
    }

    /// Linux as it looks on the wire; what cannot be seen there follows the RFCs.
    pub fn linux() -> Self {
        Self {
            name: "linux",
            ack: AckPolicy::LINUX,
            window_update: WindowUpdate::Tuned(ReceiveMemory::LINUX),
            window_scale: Some(0),
            syn_fin: SynFin::NoConnection,
            nagle: Nagle::Minshall,
            half_window: true,
            fills_window: true,
            window_news: WindowNews::Linux,
            resets: Resets::Linux,
            acks_restart_probes: true,
            window_probe: WindowProbe::OldSequence,
            sack: SackOffer::Always,
            tolerate_missing_timestamps: true,
            text_on_syn: TextOnSyn::Dropped,
            echo_copies: false,
            ecn_passive: true,
            challenge_interval: Duration::from_millis(500),
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
                // CUBIC's, which is the default; its Reno (`reno-linux`) halves.
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

    /// FreeBSD as it looks on the wire.
    pub fn freebsd() -> Self {
        Self {
            name: "freebsd",
            layout: Layout::FreeBsd,
            window_scale: Some(6),
            text_on_syn: TextOnSyn::Dropped,
            echo_copies: false,
            sack: SackOffer::Always,
            recv_buffer: 65_535,
            ack: AckPolicy::DELAYED,
            window_update: WindowUpdate::QuarterBuffer,
            syn_retries: 6,
            syn_time: Duration::ZERO,
            opening_errors: OpeningErrors::FreeBsd,
            shut_read: ShutRead::Discard,
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
                least_window: 0.0,
                careful: Careful::Yes,
                careless_at: Some(0),
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
            ack: AckPolicy::DELAYED,
            window_update: WindowUpdate::Doubled,
            timer: Timer::RFC6298,
            time_handshake: true,
            timer_news: TimerNews::Rfc6298,
            text_on_syn: TextOnSyn::Queued,
            challenge_rst: Challenge::Rfc5961,
            challenge_syn: Challenge::Rfc5961,
            syn_fin: SynFin::Taken,
            challenge_acks_per_second: 100,
            challenge_interval: Duration::ZERO,
            paws_slack: 0,
            accepts_unacknowledged: false,
            nagle: Nagle::Classic,
            half_window: false,
            fills_window: false,
            defers: false,
            window_news: WindowNews::Rfc9293,
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
            ttl: 64,
            recovery: Knobs::rfc(),
            parameters: &[],
        }
    }
}
