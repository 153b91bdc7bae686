//! The option `tso-defer`: a sender with segmentation offload sends bursts of several segments, and defers a
//! short burst until the next ACK (Linux 6.18, tcp_tso_should_defer()). The segments on the wire are the same
//! with and without offload.
//!
//! The length of a burst is the amount of one millisecond at the pacing rate, at least two segments, and more
//! if the round trip is short (tcp_tso_autosize()). It never exceeds half the window (tcp_cwnd_test()). A
//! burst is paced as one unit: a sender paced at 10 Mbit/s sends two segments every 2.4 ms, and the receiver
//! acknowledges both at once.
//!
//! A burst that is shorter than this and than a third of the window is deferred if the last segment was sent
//! within the last millisecond and the next ACK is expected within a millisecond (half a round trip in older
//! kernels). Exceptions are recovery, and a buffer that is not the last one, if the whole buffer may be sent.

use airwire::time::{Duration, Instant};

use super::{Choice, Sender};
use crate::profile::recovery::Pacing;
use crate::tcp::context::Context;

/// Maximum age of the last transmission for which a burst is deferred.
const MAX_AGE: Duration = Duration::from_millis(1);
/// Maximum time until the next ACK for which a burst is deferred.
const MAX_WAIT: Duration = Duration::from_millis(1);
/// `net.ipv4.tcp_tso_win_divisor`
const WIN_DIVISOR: u64 = 3;
/// `net.ipv4.tcp_tso_rtt_log`
const TSO_RTT_LOG: u32 = 9;
/// `sk_gso_max_size`
const GSO_MAX_SIZE: u64 = 65_536;
/// bbr_min_tso_rate, in bytes per second. If the window algorithm sets a lower rate, segments are sent one by
/// one.
const MIN_TSO_RATE: f64 = 150_000.0;

/// A burst of segments that are sent back to back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Start and end offset of a burst whose transmission has begun.
    start: u64,
    end: u64,
    /// True if a burst was too short. It is deferred until the next ACK or write.
    is_deferred: bool,
}

/// Free space in bytes.
#[derive(Clone, Copy)]
struct Room {
    by_window: u64,
    by_cwnd: u64,
}

impl Sender {
    /// Ends the deferral of a burst after an ACK or a write, because it may be long enough now.
    #[inline]
    pub(super) fn reconsider_burst(&mut self) {
        if let Some(burst) = self.burst_mut() {
            burst.is_deferred = false;
        }
    }

    /// Records an ACK without data, which Linux also counts as a transmission (tcp_wstamp_ns).
    #[inline]
    pub(in crate::tcp) fn on_bare_ack_sent(&mut self, now: Instant) {
        if let Some(spacing) = &mut self.spacing {
            spacing.acked_at = now;
        }
    }

    /// Returns true if a part of a burst was sent. The rest is not paced.
    #[inline]
    pub(super) fn is_within_burst(&self) -> bool {
        let burst = self.spacing.as_ref().and_then(|spacing| spacing.burst);
        burst.is_some_and(|burst| self.flight.max() < burst.end)
    }

    /// Returns true if new data continues a burst.
    pub(in crate::tcp) fn continues_burst(&self, choice: &Choice) -> bool {
        let burst = self.spacing.as_ref().and_then(|spacing| spacing.burst).filter(|_| choice.is_new());
        burst.is_some_and(|burst| burst.start < choice.start && choice.start < burst.end)
    }

    /// Returns true if a burst of several segments ends at `end`.
    pub(super) fn ends_burst(&self, start: u64, end: u64) -> bool {
        let burst = self.spacing.as_ref().and_then(|spacing| spacing.burst);
        burst.is_some_and(|burst| burst.start < start && burst.end == end)
    }

    #[inline]
    fn burst_mut(&mut self) -> Option<&mut Burst> {
        self.spacing.as_mut()?.burst.as_mut()
    }

    /// Returns true if new data from `start` on is deferred although a segment could be sent. Only for
    /// profiles that defer. `edge` is the right edge of the peer's window.
    pub(super) fn defers(&mut self, cx: &Context, now: Instant, start: u64, edge: u64, unsent: u64) -> bool {
        if unsent <= self.current_smss() {
            return false;
        }
        let before = self.burst_mut().copied().unwrap_or_default();
        if start < before.end {
            return false;
        }
        let length = self.burst_length(now, start, edge);
        let Room { by_window, by_cwnd } = self.room(now, start, edge);
        let end = self.buffer_end(start);
        // Only the last buffer can get more data.
        let is_whole = end < self.buffer.end() && end - start <= by_window.min(by_cwnd);
        let is_single = end - start <= self.current_smss();
        let is_complete = is_single || is_whole;
        let burst = match !is_complete && (before.is_deferred || self.is_short(now, start, edge, unsent)) {
            true => Burst { is_deferred: true, ..before },
            false => {
                let sendable = self.sendable(cx, unsent.min(edge.saturating_sub(start)));
                let end = self.buffer_end(start).min(start + length.min(sendable));
                self.split_buffer(end);
                Burst { start, end, is_deferred: false }
            }
        };
        self.spacing.get_or_insert_default().burst = Some(burst);
        burst.is_deferred
    }

    /// Returns how much of the unsent data may be sent in one burst (tcp_mss_split_point()). A small last
    /// segment belongs to the burst unless Nagle or a cork holds it back.
    fn sendable(&self, cx: &Context, unsent: u64) -> u64 {
        if self.holds_small_segments(cx) { unsent - unsent % self.current_smss() } else { unsent }
    }

    /// Returns true if a burst that begins now would be short, and the next ACK is near.
    fn is_short(&mut self, now: Instant, start: u64, edge: u64, unsent: u64) -> bool {
        let srtt = self.rtt.srtt().unwrap_or_default();
        let acked_at = self.spacing.as_ref().map_or(Instant::ZERO, |spacing| spacing.acked_at);
        let is_recent = now - self.last_sent.max(acked_at) <= MAX_AGE;
        // The next ACK is the one of the first outstanding segment.
        let ack_is_near =
            self.flight.head().is_some_and(|head| head.last_sent + srtt <= now + MAX_WAIT.min(srtt / 2));
        if !is_recent || !ack_is_near {
            return false;
        }
        let Room { by_window, by_cwnd } = self.room(now, start, edge);
        let limit = by_window.min(by_cwnd);
        let cwnd = (self.recovery.congestion().cwnd * self.smss as f64) as u64;
        let third = self.wnd.min(cwnd) / WIN_DIVISOR;
        // No data can be added before a FIN or to the end of a record.
        let ends = self.fin.is_some() || start + unsent < self.buffer.end();
        let is_last = ends && limit >= unsent;
        if limit >= self.autosized(now).min(third) || is_last || self.recovery.is_repairing() {
            return false;
        }
        if by_cwnd < by_window {
            let (recovery, path) = self.recovery_and_path(now);
            recovery.note_full_window(&path);
        }
        true
    }

    fn room(&mut self, now: Instant, start: u64, edge: u64) -> Room {
        let (recovery, path) = self.recovery_and_path(now);
        Room { by_window: edge.saturating_sub(start), by_cwnd: recovery.room_for_new(&path) }
    }

    /// Returns the length of a burst that begins at `start`, in whole segments, at least one.
    pub(super) fn burst_length(&mut self, now: Instant, start: u64, edge: u64) -> u64 {
        let smss = self.current_smss();
        let (burst, by_cwnd) = self.longest_burst(now, start, edge);
        (by_cwnd.min(burst) / smss).max(1) * smss
    }

    /// Returns the length to which the buffer of a burst that begins at `start` is extended. A full congestion window
    /// extends none (tcp_write_xmit()).
    pub(super) fn growth_limit(&mut self, now: Instant, start: u64, edge: u64) -> u64 {
        let smss = self.current_smss();
        let (burst, by_cwnd) = self.longest_burst(now, start, edge);
        by_cwnd.min(burst) / smss * smss
    }

    /// Returns the longest burst and the room in the congestion window, in bytes.
    pub(super) fn longest_burst(&mut self, now: Instant, start: u64, edge: u64) -> (u64, u64) {
        let Room { by_cwnd, .. } = self.room(now, start, edge);
        let smss = self.current_smss();
        let congestion = self.recovery.congestion();
        // Without SACK, the state of a timeout is kept until data above `recover` is acknowledged.
        let is_repaired = congestion.recover.is_some_and(|recover| self.flight.una() >= recover);
        // F-RTO sends up to two segments although Linux's cwnd is still small after the timeout.
        let is_small = self.recovery.timeout_is_undecided() && !is_repaired;
        let cwnd = if is_small { 1.0 } else { congestion.cwnd };
        let half = (cwnd / 2.0) as u64 * smss;
        (half.min(self.autosized(now)).max(smss), by_cwnd)
    }

    /// tcp_tso_autosize(), in bytes.
    pub(super) fn autosized(&mut self, now: Instant) -> u64 {
        let smss = self.current_smss();
        let (recovery, path) = self.recovery_and_path(now);
        let own = recovery.own_rate(&path);
        let rate = own.or_else(|| recovery.rate_of_window(&path, Pacing::LINUX)).unwrap_or_default();
        // bbr_min_tso_segs()
        let least = if own.is_some() && rate < MIN_TSO_RATE { 1 } else { 2 };
        let micros = self.rtt.min().unwrap_or_default().as_micros();
        let short = micros >> TSO_RTT_LOG;
        let bonus = if short < 32 { GSO_MAX_SIZE >> short } else { 0 };
        let bytes = (rate as u64 / 1024 + bonus).min(GSO_MAX_SIZE);
        (bytes / smss).max(least) * smss
    }
}
