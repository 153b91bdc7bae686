//! Timeouts: their computation, the number of retries, and the length of TIME-WAIT.

use airwire::time::Duration;

use crate::rtt::{RtoLimits, TimerStyle};

/// The computation of timeouts, the number of retries, and the length of TIME-WAIT.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Timers {
    /// The retransmission timer.
    pub rto: Timer,
    /// The effect of SACKs and retransmissions on the retransmission timer.
    pub rto_events: RtoEvents,
    /// The handshake provides the first RTT sample (RFC 6298 §2).
    pub samples_handshake: bool,
    /// R1: the number of retransmissions of a segment after which the application is notified.
    pub reported_retries: u32,
    /// Consecutive timeouts of a segment before giving up (RFC 9293 §3.8.3, R2).
    pub retries: u32,
    /// The event from which TCP_USER_TIMEOUT counts.
    pub user_timeout_from: UserTimeoutFrom,
    /// Twice the maximum segment lifetime (RFC 9293 §3.4.2: two minutes each; real systems use less).
    pub time_wait: Duration,
    /// Tick of the clock that generates timestamps (RFC 7323 §5.4).
    pub timestamp_tick: Duration,
}

/// The retransmission timer.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Timer {
    /// The computation of the timeout from round-trip times.
    pub style: TimerStyle,
    /// The minimum, maximum and initial timeout.
    pub limits: RtoLimits,
}

impl Timer {
    /// RFC 6298 with a 1 ms clock: minimum 1 s, initially 1 s.
    pub const RFC6298: Self =
        Self::new(TimerStyle::Rfc6298 { granularity: Duration::from_millis(1) }, 1000, 1000);
    /// 4.4BSD with 500 ms ticks: minimum 1 s, initially 6 s (Inamura et al. 2009, §2.2).
    pub const BSD: Self = Self::new(TimerStyle::Bsd { tick: Duration::from_millis(500) }, 1000, 6000);
    /// FreeBSD 2.2 (Inamura et al. 2009, Fig. 5). Its slow timer runs twice a second (PR_SLOWHZ): minimum 1 s
    /// (TCPTV_MIN is PR_SLOWHZ), initially 3 s (TCPTV_RTOBASE).
    pub const FREEBSD22: Self =
        Self::new(TimerStyle::FreeBsd { tick: Duration::from_millis(500) }, 1000, 3000);
    /// FreeBSD 4.5 (Inamura et al. 2009, Fig. 5). Its timers count ticks of the 100 Hz system clock: minimum
    /// 1 s (TCPTV_MIN is hz), initially 3 s (tcp_timer.h 1.18, 1999). Later versions have a lower minimum.
    pub const FREEBSD45: Self =
        Self::new(TimerStyle::FreeBsd { tick: Duration::from_millis(10) }, 1000, 3000);
    /// Linux 2.2: minimum 200 ms, initially 3 s (Inamura et al. 2009, Fig. 5).
    pub const LINUX22: Self = Self::new(TimerStyle::Linux22, 200, 3000);
    /// Linux 2.4 and later: minimum of 200 ms for the variance term, initially 1 s (Inamura et al. 2009, Fig.
    /// 5).
    pub const LINUX24: Self = Self::new(TimerStyle::Linux24 { floor: Duration::from_millis(200) }, 200, 1000);
    /// Solaris 8: minimum 400 ms, initially 3 s (Inamura et al. 2009, Fig. 5).
    pub const SOLARIS: Self = Self::new(TimerStyle::Solaris, 400, 3000);

    /// Returns ns-2's timer with a tick other than the one of profile `ns2`: minimum two ticks, initially 3 s
    /// (Pan et al. 2004, §3.1, Fig. 9).
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

/// The events that affect the retransmission timer besides ACKs of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RtoEvents {
    /// Nothing (RFC 6298).
    Rfc6298,
    /// Linux 6.18. A SACK of data that was sent once yields an RTT sample, unless an ACK of new data does
    /// (tcp_ack_update_rtt()). The timer restarts when the first outstanding segment is retransmitted, unless
    /// the detector has its own timer (tcp_xmit_retransmit_queue()). It also restarts when a SACK covers data
    /// older than that retransmission, whose own ACK is still to come (tcp_clean_rtx_queue()). It expires half a
    /// round trip after an ACK below SACKed data (tcp_check_sack_reneging()). Only a sample ends the backoff
    /// (tcp_ack_update_rtt()), which also delays window probes (`icsk_backoff`).
    Linux,
}

/// The event from which TCP_USER_TIMEOUT counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum UserTimeoutFrom {
    /// The first transmission of the unacknowledged data (RFC 5482 §1).
    Transmission,
    /// The first retransmission or window probe (Linux, `retrans_stamp`, `icsk_probes_tstamp`). For a SYN,
    /// Linux also counts from the first transmission.
    Retransmission,
}
