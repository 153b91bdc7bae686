//! Checks that the sender is never silent for longer than its retransmission timer allows.
//!
//! While data is outstanding, the timer runs, and the sender transmits when it expires (RFC 6298 §5).
//! Transmissions start the timer, and ACKs of new data restart it. So while the sender has data outstanding
//! or data to send, it transmits at the latest one timeout after the last departure or arrival. The longest
//! legitimate silence is one (backed-off) timeout, plus the round trip in which ACKs of earlier data can
//! still arrive.
//!
//! The round trip is observed from the arrivals, independently of the sender's own RTT estimate.

use airtcp::recovery::RecoveryState;
use airtcp::tcp::Connection;
use airtcp_sim::world::World;
use airwire::time::{Duration, Instant};

/// A silence that exceeded the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Silence {
    /// The time of the last departure before the silence.
    pub(crate) since: Instant,
    /// The duration of the silence.
    pub(crate) lasted: Duration,
    /// The time from `since` to the last arrival during the silence.
    pub(crate) round_trip: Duration,
    /// The retransmission timeout that should have ended the silence.
    pub(crate) timer: Duration,
    /// The loss detector's own minimum for the retransmission timer.
    pub(crate) own: Duration,
}

impl Silence {
    /// Returns the excess over the retransmission timer.
    pub(crate) fn excess(&self) -> Duration {
        self.beyond(self.timer)
    }

    /// Returns the excess if `times` times the detector's own minimum is allowed.
    pub(crate) fn excess_with_own_timers(&self, times: u32) -> Duration {
        self.beyond(self.timer.max(self.own * u64::from(times)))
    }

    fn beyond(&self, timer: Duration) -> Duration {
        self.lasted.saturating_sub(timer + self.round_trip)
    }
}

/// Observes the sender of flow 0.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    /// Segments sent and segments received up to the last event.
    segments: (u64, u64),
    /// Bytes acknowledged up to the last event.
    acked: u64,
    /// The timer that limits the silence. `None` if the connection has no data outstanding or to send.
    limit: Option<SilenceLimit>,
    /// Number of window probes when the window was last open.
    probes_before: u32,
    /// The worst silence so far.
    worst: Option<Silence>,
}

#[derive(Clone, Copy, Debug)]
struct SilenceLimit {
    last_sent: Instant,
    last_received: Instant,
    /// The latest time at which the timer expires.
    deadline: Instant,
    /// The longest timeout since the timer was last known to start.
    timer: Duration,
    /// The detector's highest minimum in the same period.
    own: Duration,
}

impl Watcher {
    /// Checks the sender. Must be called after every event.
    pub(crate) fn observe(&mut self, world: &World) {
        let Some(connection) = world.sender(0) else { return };
        let now = world.now();
        self.judge(now);
        let statistics = connection.statistics();
        let segments = (statistics.segments_out, statistics.segments_in);
        let (left, arrived) = (segments.0 > self.segments.0, segments.1 > self.segments.1);
        self.segments = segments;
        let advanced = std::mem::replace(&mut self.acked, statistics.bytes_acked) < statistics.bytes_acked;
        if connection.info().snd_wnd > 0 {
            self.probes_before = statistics.window_probes;
        }
        if connection.flight().is_empty() && connection.unsent() == 0 {
            self.limit = None;
            return;
        }
        let timer = self.timer_in_force(connection);
        let own = connection.recovery().timer_floor().unwrap_or_default();
        let Some(limit) = &mut self.limit else {
            self.limit =
                Some(SilenceLimit { last_sent: now, last_received: now, deadline: now + timer, timer, own });
            return;
        };
        // In fast recovery, not every ACK that advances restarts the timer (RFC 6582 §3.2 step 3). The
        // running timer may have started earlier, with a longer timeout.
        if advanced && connection.recovery().congestion().state() != RecoveryState::Recovery {
            (limit.deadline, limit.timer, limit.own) = (now + timer, timer, own);
        }
        // The detector may decide to wait longer when its timer expires.
        limit.own = limit.own.max(own);
        if left || arrived {
            limit.deadline = limit.deadline.max(now + timer);
            limit.timer = limit.timer.max(timer);
            limit.last_received = now;
        }
        if left {
            limit.last_sent = now;
        }
    }

    /// Ends the observation at `now` and returns the worst silence.
    pub(crate) fn finish(mut self, now: Instant) -> Option<Silence> {
        self.judge(now);
        self.worst
    }

    fn judge(&mut self, now: Instant) {
        let Some(limit) = self.limit.filter(|limit| now > limit.deadline) else { return };
        let silence = Silence {
            since: limit.last_sent,
            lasted: now - limit.last_sent,
            round_trip: limit.last_received - limit.last_sent,
            timer: limit.timer,
            own: limit.own,
        };
        if self.worst.is_none_or(|worst| worst.excess() < silence.excess()) {
            self.worst = Some(silence);
        }
    }

    /// Returns the backed-off retransmission timeout or, for a zero window, the interval between probes
    /// (RFC 9293 §3.8.6.1).
    fn timer_in_force(&self, connection: &Connection) -> Duration {
        let rto = connection.rtt().rto().get();
        if !connection.flight().is_empty() || connection.info().snd_wnd > 0 {
            return rto;
        }
        let profile = connection.profile();
        let probes = (connection.statistics().window_probes - self.probes_before).min(20);
        (rto.max(profile.persist.min) * (1 << probes)).min(profile.persist.max)
    }
}
