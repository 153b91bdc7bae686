//! Is the sender ever silent for longer than its retransmission timer allows?
//!
//! While anything is outstanding that timer runs, and something leaves when it fires (RFC 6298 §5). Departures start it,
//! and ACKs of new data start it anew. So as long as the sender has something outstanding or to send, something leaves
//! at the latest one timeout after the last packet that left or arrived: no silence lasts longer than a timeout, backed
//! off as it is, and the round trip in which the ACKs of what had left before still come in.
//!
//! What arrives is seen, not computed: the round trip is the path's own, whatever the sender has measured of it.

use airtcp::recovery::Phase;
use airtcp::tcp::Connection;
use airtcp_sim::world::World;
use airwire::time::{Duration, Instant};

/// A silence that was too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Silence {
    /// The last packet that had left.
    pub(crate) since: Instant,
    /// How long nothing left.
    pub(crate) lasted: Duration,
    /// How long after `since` something still arrived.
    pub(crate) round_trip: Duration,
    /// The timer that should have ended it.
    pub(crate) timer: Duration,
    /// How far the detector had put that timer off behind its own.
    pub(crate) own: Duration,
}

impl Silence {
    /// By how much.
    pub(crate) fn too_long(&self) -> Duration {
        self.beyond(self.timer)
    }

    /// By how much, if the detector's own timer counts, so many times.
    pub(crate) fn too_long_for_its_own(&self, times: u32) -> Duration {
        self.beyond(self.timer.max(self.own * u64::from(times)))
    }

    fn beyond(&self, timer: Duration) -> Duration {
        self.lasted.saturating_sub(timer + self.round_trip)
    }
}

/// Follows the sender of flow 0.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    /// As of the last event: what had left and what had arrived.
    seen: (u64, u64),
    /// As of the last event: the octets acknowledged.
    acked: u64,
    /// Of the connection that has something outstanding or to send. `None`: it has not.
    owes: Option<Owes>,
    /// Window probes when the window was open for the last time.
    probes_before: u64,
    /// The worst silence so far.
    worst: Option<Silence>,
}

#[derive(Clone, Copy, Debug)]
struct Owes {
    last_sent: Instant,
    last_heard: Instant,
    /// When the timer fires at the latest.
    deadline: Instant,
    /// The longest timeout since the timer was last known to be started.
    timer: Duration,
    /// The same of the detector's own timer.
    own: Duration,
}

impl Watcher {
    /// Called after every event.
    pub(crate) fn look(&mut self, world: &World) {
        let Some(connection) = world.sender(0) else { return };
        let now = world.now();
        self.judge(now);
        let statistics = connection.statistics();
        let seen = (statistics.segments_out, statistics.segments_in);
        let (left, arrived) = (seen.0 > self.seen.0, seen.1 > self.seen.1);
        self.seen = seen;
        let advanced = std::mem::replace(&mut self.acked, statistics.bytes_acked) < statistics.bytes_acked;
        if connection.info().snd_wnd > 0 {
            self.probes_before = statistics.window_probes;
        }
        if connection.flight().is_empty() && connection.unsent() == 0 {
            self.owes = None;
            return;
        }
        let timer = self.timer_in_force(connection);
        let own = connection.recovery().timer_floor().unwrap_or_default();
        let Some(owes) = &mut self.owes else {
            self.owes = Some(Owes { last_sent: now, last_heard: now, deadline: now + timer, timer, own });
            return;
        };
        // In fast recovery not every ACK that advances starts the timer anew (RFC 6582 §4): it may have been started
        // before, with a longer timeout.
        if advanced && connection.recovery().congestion().phase() != Phase::Recovery {
            (owes.deadline, owes.timer, owes.own) = (now + timer, timer, own);
        }
        // It may decide to wait for longer when its timer fires.
        owes.own = owes.own.max(own);
        if left || arrived {
            owes.deadline = owes.deadline.max(now + timer);
            owes.timer = owes.timer.max(timer);
            owes.last_heard = now;
        }
        if left {
            owes.last_sent = now;
        }
    }

    /// The run is over, at `now`.
    pub(crate) fn finish(mut self, now: Instant) -> Option<Silence> {
        self.judge(now);
        self.worst
    }

    fn judge(&mut self, now: Instant) {
        let Some(owes) = self.owes.filter(|owes| now > owes.deadline) else { return };
        let silence = Silence {
            since: owes.last_sent,
            lasted: now - owes.last_sent,
            round_trip: owes.last_heard - owes.last_sent,
            timer: owes.timer,
            own: owes.own,
        };
        if self.worst.is_none_or(|worst| worst.too_long() < silence.too_long()) {
            self.worst = Some(silence);
        }
    }

    /// The retransmission timeout, backed off; towards a closed window the time between two probes (RFC 9293 §3.8.6.1).
    fn timer_in_force(&self, connection: &Connection) -> Duration {
        let rto = connection.rtt().rto().get();
        if !connection.flight().is_empty() || connection.info().snd_wnd > 0 {
            return rto;
        }
        let profile = connection.profile();
        let probes = (connection.statistics().window_probes - self.probes_before).min(20);
        (rto.max(profile.persist_min) * (1 << probes)).min(profile.persist_max)
    }
}
