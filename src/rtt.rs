//! Round-trip time and retransmission timeout: RFC 6298, and the timer *styles* of the systems that the
//! papers measured (Inamura et al., Fig. 5).
//!
//! A style defines rounding, minimum and smoothing. The connection starts and stops the timer and applies
//! Karn's rule (RFC 6298 §3), so an estimator receives only unambiguous samples.

use airwire::time::{Duration, Instant};

/// A retransmission timeout, within its bounds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rto(Duration);

impl Rto {
    fn clamped(value: Duration, limits: &RtoLimits) -> Self {
        Self(value.max(limits.min).min(limits.max))
    }

    /// Returns the timeout as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// The bounds of a retransmission timeout, and its initial value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct RtoLimits {
    /// Lower bound.
    pub min: Duration,
    /// Upper bound, including backoff (RFC 6298 (2.5)).
    pub max: Duration,
    /// Timeout before the first sample (RFC 6298 (2.1)).
    pub initial: Duration,
}

/// The algorithm by which a system computes its timeout.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
pub enum TimerStyle {
    /// RFC 6298 with clock granularity G: RTO = SRTT + max(G, 4·RTTVAR).
    Rfc6298 {
        /// G, the period of the clock.
        granularity: Duration,
    },
    /// 4.4BSD without timestamps: times in ticks of a coarse clock, one segment timed per window, RTO at
    /// least two ticks (G. R. Wright and W. R. Stevens, *TCP/IP Illustrated*, Volume 2, 1995, chapter 25).
    Bsd {
        /// Period of the clock that measures RTTs and fires timers.
        tick: Duration,
    },
    /// FreeBSD with timestamps: the same arithmetic with two more fraction bits (L. S. Brakmo and L. L.
    /// Peterson, *Performance Problems in BSD4.4 TCP*, Computer Communication Review 25(5), 1995), and a
    /// sample from each ACK.
    FreeBsd {
        /// Period of the clock that measures RTTs and fires timers.
        tick: Duration,
    },
    /// Linux 2.2: SRTT + 4·MDEV, increased by a quarter, and by more while the window is small; 200 ms
    /// minimum.
    Linux22,
    /// Linux 2.4 and later: the minimum applies to the variance term, which decreases at most once per round
    /// trip.
    Linux24 {
        /// Minimum of the variance term.
        floor: Duration,
    },
    /// Solaris 8: 1.25·SRTT + 4·RTTVAR, 400 ms minimum.
    Solaris,
    /// ns-2's one-way agents: integer ticks with a phase, the variance scaled by four, a backoff that lasts
    /// until a segment *timed after the backoff* is acknowledged.
    Ns2 {
        /// Period of the clock that measures RTTs.
        tick: Duration,
        /// Time between that clock's last tick and time zero.
        phase: Duration,
        /// True if the minimum applies before the backoff doubles the timeout; false if it applies to the
        /// result.
        min_before_backoff: bool,
    },
}

impl TimerStyle {
    /// Returns the number of fraction bits in tick estimates, besides the three of SRTT and the two of
    /// RTTVAR.
    const fn fraction(self) -> u32 {
        if matches!(self, Self::FreeBsd { .. }) { 2 } else { 0 }
    }

    /// Returns true if at most one segment is timed at once.
    pub(crate) const fn times_one_segment(self) -> bool {
        matches!(self, Self::Bsd { .. } | Self::Ns2 { .. })
    }

    /// Returns true if retransmitting the timed segment does not cancel the measurement. Only a loss event
    /// does then.
    pub(crate) const fn times_copies(self) -> bool {
        matches!(self, Self::Ns2 { .. })
    }

    /// Returns G of RFC 6298: the resolution at which the system measures time.
    pub const fn granularity(self) -> Duration {
        match self {
            Self::Rfc6298 { granularity } => granularity,
            Self::Bsd { tick } | Self::FreeBsd { tick } | Self::Ns2 { tick, .. } => tick,
            Self::Linux22 | Self::Linux24 { .. } | Self::Solaris => Duration::from_millis(10),
        }
    }

    /// Returns true if an ACK of new data ends the backoff, unless the profile says otherwise. In the other styles
    /// only a new sample does (RFC 6298 §5, Karn).
    pub(crate) const fn backoff_ends_with_progress(self) -> bool {
        matches!(self, Self::Linux22 | Self::Linux24 { .. })
    }

    /// Returns true if a SYN's backoff still applies to data, until a sample ends it.
    pub(crate) const fn backoff_outlives_handshake(self) -> bool {
        matches!(self, Self::Ns2 { .. })
    }

    /// Returns true if the timer counts from the transmission of the oldest outstanding segment. The other
    /// styles restart it with each ACK of new data (RFC 6298 (5.3)), which adds about one round trip (Ludwig;
    /// Inamura et al. 2009, §5.2).
    pub(crate) const fn counts_from_transmission(self) -> bool {
        matches!(self, Self::Linux22)
    }

    /// Returns the time at which a timer with this deadline fires. A coarse clock counts ticks, and the first
    /// one may follow immediately, so the timer fires up to one tick early.
    pub(crate) fn align(self, deadline: Instant) -> Instant {
        match self {
            Self::Bsd { tick } | Self::FreeBsd { tick } => {
                let ticks = deadline.as_nanos() / tick.as_nanos().max(1);
                Instant::from_nanos(ticks.saturating_mul(tick.as_nanos()))
            }
            _ => deadline,
        }
    }
}

/// One unambiguous RTT measurement, with the connection state that the styles need.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The time at which the segment was sent.
    pub sent_at: Instant,
    /// The time at which its ACK arrived.
    pub now: Instant,
    /// SND.UNA after the ACK. Rules that apply once per round trip wait until it passes an earlier `nxt`.
    pub una: u64,
    /// SND.NXT after the ACK.
    pub nxt: u64,
    /// cwnd in segments.
    pub cwnd: f64,
}

/// The RTT estimator of one connection, which turns samples into a timeout.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    style: TimerStyle,
    limits: RtoLimits,
    state: Estimate,
    backoff: u32,
    base: Duration,
    latest: Option<Duration>,
    min: Option<Duration>,
    samples: u64,
}

/// The estimator's internal state, in the units that its system uses.
#[derive(Clone, Debug)]
enum Estimate {
    /// Nanoseconds.
    Plain {
        srtt: Option<Duration>,
        rttvar: Duration,
    },
    Linux(LinuxEstimate),
    Ticks(TickEstimate),
}

/// The fields of `tcp_sock` in nanoseconds: `srtt8` scaled by 8, the deviations by 4.
#[derive(Clone, Debug, Default)]
struct LinuxEstimate {
    srtt8: u64,
    mdev4: u64,
    mdev_max4: u64,
    rttvar4: u64,
    rtt_seq: u64,
}

impl LinuxEstimate {
    /// tcp_rtt_estimator()
    fn on_sample(&mut self, style: TimerStyle, sample: &Sample) {
        let floor = match style {
            TimerStyle::Linux24 { floor } => floor.as_nanos(),
            _ => 0,
        };
        let m = (sample.now - sample.sent_at).as_nanos().max(1);
        if self.srtt8 == 0 {
            self.srtt8 = m << 3;
            self.mdev4 = m << 1;
            self.rttvar4 = self.mdev4.max(floor);
            self.mdev_max4 = self.rttvar4;
            self.rtt_seq = sample.nxt;
            return;
        }
        let error = m as i64 - (self.srtt8 >> 3) as i64;
        self.srtt8 = self.srtt8.saturating_add_signed(error);
        // A falling RTT must not raise the deviation as fast as a rising one does.
        let mut change = error.abs() - (self.mdev4 >> 2) as i64;
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev4 = self.mdev4.saturating_add_signed(change);
        if self.mdev4 > self.mdev_max4 {
            self.mdev_max4 = self.mdev4;
            self.rttvar4 = self.rttvar4.max(self.mdev_max4);
        }
        if sample.una > self.rtt_seq {
            if self.mdev_max4 < self.rttvar4 {
                self.rttvar4 -= (self.rttvar4 - self.mdev_max4) >> 2;
            }
            self.rtt_seq = sample.nxt;
            self.mdev_max4 = floor;
        }
    }
}

/// Ticks: `srtt8` scaled by 8, `rttvar4` by 4, both with the style's additional fraction bits.
#[derive(Clone, Debug)]
struct TickEstimate {
    srtt8: i64,
    rttvar4: i64,
}

impl TickEstimate {
    fn on_sample(&mut self, style: TimerStyle, sample: &Sample) {
        let (phase, min, first) = match style {
            TimerStyle::Ns2 { phase, .. } => (phase, 1, 0),
            // BSD's tick counter starts at 1. The first sample includes that tick, later ones subtract it.
            _ => (Duration::ZERO, 0, 1),
        };
        let tick = style.granularity().as_nanos().max(1);
        let since_tick = (sample.sent_at.as_nanos() + phase.as_nanos()) % tick;
        let rtt = (sample.now - sample.sent_at).as_nanos();
        let m = ((rtt + since_tick) / tick).max(min) as i64;
        let fraction = style.fraction();
        if self.srtt8 == 0 {
            self.srtt8 = (m + first) << (3 + fraction);
            self.rttvar4 = (m + first) << (1 + fraction);
        } else {
            let error = (m << fraction) - (self.srtt8 >> 3);
            self.srtt8 = (self.srtt8 + error).max(1);
            self.rttvar4 = (self.rttvar4 + error.abs() - (self.rttvar4 >> 2)).max(1);
        }
    }
}

impl RttEstimator {
    /// Creates an estimator. Before the first sample the timeout is `limits.initial`.
    pub fn new(style: TimerStyle, limits: RtoLimits) -> Self {
        let state = match style {
            TimerStyle::Rfc6298 { .. } | TimerStyle::Solaris | TimerStyle::Linux22 => {
                Estimate::Plain { srtt: None, rttvar: Duration::ZERO }
            }
            TimerStyle::Linux24 { .. } => Estimate::Linux(LinuxEstimate::default()),
            TimerStyle::Bsd { tick } | TimerStyle::FreeBsd { tick } | TimerStyle::Ns2 { tick, .. } => {
                let twelve_seconds = Duration::from_secs(12).as_nanos() / tick.as_nanos().max(1);
                let rttvar4 = (twelve_seconds as i64) << (2 + style.fraction());
                Estimate::Ticks(TickEstimate { srtt8: 0, rttvar4 })
            }
        };
        Self { style, limits, state, backoff: 0, base: limits.initial, latest: None, min: None, samples: 0 }
    }

    /// Adds a sample and ends the backoff (RFC 6298 (2.2), (2.3)).
    pub fn on_sample(&mut self, sample: &Sample) {
        let rtt = sample.now - sample.sent_at;
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.samples += 1;
        self.backoff = 0;
        match &mut self.state {
            Estimate::Plain { srtt, rttvar } => smooth(srtt, rttvar, rtt),
            Estimate::Linux(estimate) => estimate.on_sample(self.style, sample),
            Estimate::Ticks(estimate) => estimate.on_sample(self.style, sample),
        }
        self.base = self.compute(sample.cwnd);
    }

    /// Returns the timeout before clamping and backoff.
    fn compute(&self, cwnd: f64) -> Duration {
        match (&self.state, self.style) {
            (Estimate::Plain { srtt: None, .. }, _) => self.limits.initial,
            (Estimate::Plain { srtt: Some(srtt), rttvar }, TimerStyle::Rfc6298 { granularity }) => {
                *srtt + granularity.max(*rttvar * 4)
            }
            (Estimate::Plain { srtt: Some(srtt), rttvar }, TimerStyle::Solaris) => {
                *srtt + *srtt / 4 + *rttvar * 4
            }
            (Estimate::Plain { srtt: Some(srtt), rttvar }, _) => {
                // Linux 2.2 tcp_set_rto(): add a quarter, and 2^-(cwnd-1) of the value to allow for delayed
                // ACKs.
                let rto = *srtt + *rttvar * 4;
                let shift = (cwnd.max(1.0) as u32 - 1).min(63);
                rto + rto / 4 + Duration::from_nanos(rto.as_nanos() >> shift)
            }
            (Estimate::Linux(it), _) => Duration::from_nanos((it.srtt8 >> 3) + it.rttvar4),
            (Estimate::Ticks(it), TimerStyle::Ns2 { tick, .. }) => {
                tick * (((it.rttvar4 << 3) + it.srtt8) >> 3).max(0) as u64
            }
            (Estimate::Ticks(it), TimerStyle::Bsd { tick } | TimerStyle::FreeBsd { tick }) => {
                tick * (((it.srtt8 >> 3) + it.rttvar4) >> self.style.fraction()).max(2) as u64
            }
            (Estimate::Ticks(_), _) => self.limits.initial,
        }
    }

    /// Returns the timeout in force, including backoff.
    pub fn rto(&self) -> Rto {
        match self.style {
            TimerStyle::Ns2 { tick, min_before_backoff, .. } => {
                let raw = if min_before_backoff {
                    self.base.max(self.limits.min) * (1 << self.backoff)
                } else {
                    (self.base * (1 << self.backoff)).max(self.limits.min)
                };
                Rto(raw.min(self.limits.max).max(tick * 2))
            }
            _ => {
                let once = Rto::clamped(self.base, &self.limits).get();
                Rto::clamped(once * (1_u64 << self.backoff.min(32)), &self.limits)
            }
        }
    }

    /// Doubles the timeout after an expiry (RFC 6298 (5.5)).
    pub(crate) fn back_off(&mut self) {
        match self.style {
            TimerStyle::Ns2 { min_before_backoff, .. } => {
                if self.backoff < 6 || (min_before_backoff && self.rto().get() < self.limits.max) {
                    self.backoff += 1;
                }
                if self.backoff > 3
                    && let Estimate::Ticks(it) = &mut self.state
                {
                    it.rttvar4 += it.srtt8 >> 3;
                    it.srtt8 = 0;
                }
            }
            _ => self.backoff = (self.backoff + 1).min(32),
        }
    }

    /// RFC 6298 (5.7): if the SYN's timer expired, data starts with an RTO of at least 3 s. Choice: a sample
    /// from the handshake replaces these 3 s.
    pub(crate) fn fall_back_after_lost_syn(&mut self) {
        if self.samples == 0 && !matches!(self.style, TimerStyle::Ns2 { .. }) {
            self.base = self.base.max(Duration::from_secs(3));
        }
    }

    /// Ends the backoff without a sample.
    pub(crate) fn clear_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Returns how many times the timeout in force has been doubled.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Overwrites the estimates, as some algorithms do in response to a spurious or fast timeout (RFC 4015
    /// §3.1; Inamura et al. 2009, Fig. 8).
    pub(crate) fn set_smoothed(&mut self, srtt: Duration, rttvar: Duration, cwnd: f64) {
        match &mut self.state {
            Estimate::Plain { srtt: s, rttvar: v } => (*s, *v) = (Some(srtt), rttvar),
            Estimate::Linux(it) => {
                it.srtt8 = srtt.as_nanos() << 3;
                it.mdev4 = rttvar.as_nanos() << 2;
                it.rttvar4 = it.rttvar4.max(it.mdev4);
                it.mdev_max4 = it.rttvar4;
            }
            Estimate::Ticks(it) => {
                let (tick, fraction) = (self.style.granularity().as_nanos().max(1), self.style.fraction());
                it.srtt8 = ((srtt.as_nanos() << (3 + fraction)) / tick) as i64;
                it.rttvar4 = ((rttvar.as_nanos() << (2 + fraction)) / tick) as i64;
            }
        }
        self.base = self.compute(cwnd);
    }

    /// Returns the timer style.
    pub fn style(&self) -> TimerStyle {
        self.style
    }

    /// Returns the latest sample; `None` before the first.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Returns the smallest sample so far; `None` before the first.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Returns the number of samples taken.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the smoothed round-trip time; `None` before the first sample, and in ns-2's style also after
    /// the fourth backoff.
    pub fn srtt(&self) -> Option<Duration> {
        match &self.state {
            Estimate::Plain { srtt, .. } => *srtt,
            Estimate::Linux(it) => (it.srtt8 > 0).then(|| Duration::from_nanos(it.srtt8 >> 3)),
            Estimate::Ticks(it) => {
                (it.srtt8 > 0).then(|| self.tick() * (it.srtt8 as u64) / (8 << self.style.fraction()))
            }
        }
    }

    /// Returns the smoothed deviation. Styles that count ticks start it at 12 s, before the first sample.
    pub fn rttvar(&self) -> Duration {
        match &self.state {
            Estimate::Plain { rttvar, .. } => *rttvar,
            Estimate::Linux(it) => Duration::from_nanos(it.rttvar4 >> 2),
            Estimate::Ticks(it) => self.tick() * it.rttvar4.max(0) as u64 / (4 << self.style.fraction()),
        }
    }

    fn tick(&self) -> Duration {
        self.style.granularity()
    }
}

/// RFC 6298 (2.2) and (2.3): alpha = 1/8, beta = 1/4.
fn smooth(srtt: &mut Option<Duration>, rttvar: &mut Duration, rtt: Duration) {
    match srtt {
        None => {
            *srtt = Some(rtt);
            *rttvar = rtt / 2;
        }
        Some(s) => {
            // RTTVAR is updated with the SRTT from before this sample.
            *rttvar = (*rttvar * 3 + s.abs_diff(rtt)) / 4;
            *s = (*s * 7 + rtt) / 8;
        }
    }
}

#[cfg(test)]
mod tests;
