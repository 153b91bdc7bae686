//! A stream that ends when its time is up: `airtcp send --for`.

use airtcp::tcp::Connection;
use airwire::time::{Duration, Instant};

use crate::shared::digest::Hasher;
use crate::shared::summary::InTime;

/// Ends a stream that would have no end.
pub(super) struct TimeLimit {
    time: Duration,
    /// Known with the end of the handshake.
    end: Option<Instant>,
    written: u64,
    hasher: Hasher,
}

/// The host is given so many windows of data before they are acknowledged: more would still have to be sent when the time
/// is up, and less would leave the window empty.
const WINDOWS_AHEAD: f64 = 2.0;
/// And as much at least.
const LEAST_AHEAD: u64 = 64 << 10;

impl TimeLimit {
    pub(super) fn new(time: Duration, digest: bool) -> Self {
        Self { time, end: None, written: 0, hasher: Hasher::new(digest) }
    }

    /// How much more the host may be given now. `None`: the time is up.
    pub(super) fn room(&mut self, now: Instant, connection: &Connection) -> Option<usize> {
        if self.end.is_none() && connection.state().is_synchronized() {
            self.end = Some(now + self.time);
        }
        if self.end.is_some_and(|end| end <= now) {
            return None;
        }
        let window = connection.recovery().congestion().cwnd * f64::from(connection.info().snd_mss);
        let ahead = LEAST_AHEAD.max((WINDOWS_AHEAD * window) as u64);
        let waiting = self.written.saturating_sub(connection.statistics().bytes_acked);
        Some(ahead.saturating_sub(waiting) as usize)
    }

    /// When the time is up, as soon as that is known.
    pub(super) fn end(&self) -> Option<Instant> {
        self.end
    }

    pub(super) fn wrote(&mut self, octets: &[u8]) {
        self.written += octets.len() as u64;
        self.hasher.update(octets);
    }

    /// What came of it, now that the time is up.
    pub(super) fn came_to(&self, connection: &Connection) -> InTime {
        InTime::new(connection.statistics().bytes_acked, self.time)
    }

    /// Of what was written.
    pub(super) fn digest(self) -> Option<String> {
        self.hasher.finish()
    }
}
