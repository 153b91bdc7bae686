//! `airtcp send --for`: ends a stream after a given time.

use airtcp::tcp::Connection;
use airwire::time::{Duration, Instant};

use crate::shared::digest::Hasher;
use crate::shared::summary::InTime;

/// The time limit of an endless stream, and the digest of the data written so far.
pub(super) struct TimeLimit {
    time: Duration,
    /// Known from the end of the handshake.
    end: Option<Instant>,
    written: u64,
    hasher: Hasher,
}

/// Unacknowledged data that the host may hold, in congestion windows. More would still have to be sent when
/// the time has elapsed, and less would not fill the window.
const WINDOWS_AHEAD: f64 = 2.0;
/// Minimum of that amount in bytes.
const MIN_AHEAD: u64 = 64 << 10;

impl TimeLimit {
    pub(super) fn new(time: Duration, digest: bool) -> Self {
        Self { time, end: None, written: 0, hasher: Hasher::new(digest) }
    }

    /// Returns the number of bytes that can be passed to the host now, or `None` if the time has elapsed.
    pub(super) fn room(&mut self, now: Instant, connection: &Connection) -> Option<usize> {
        if self.end.is_none() && connection.state().is_synchronized() {
            self.end = Some(now + self.time);
        }
        if self.end.is_some_and(|end| end <= now) {
            return None;
        }
        let window = connection.recovery().congestion().cwnd * f64::from(connection.info().snd_mss);
        let ahead = MIN_AHEAD.max((WINDOWS_AHEAD * window) as u64);
        let waiting = self.written.saturating_sub(connection.statistics().bytes_acked);
        Some(ahead.saturating_sub(waiting) as usize)
    }

    /// Returns the time at which the stream ends, once it is known.
    pub(super) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Records data that was passed to the host.
    pub(super) fn record(&mut self, data: &[u8]) {
        self.written += data.len() as u64;
        self.hasher.update(data);
    }

    /// Returns the result when the time has elapsed.
    pub(super) fn result(&self, connection: &Connection) -> InTime {
        InTime::new(connection.statistics().bytes_acked, self.time)
    }

    /// Returns the SHA-256 of the written data, if it was computed.
    pub(super) fn digest(self) -> Option<String> {
        self.hasher.finish()
    }
}
