//! A sender with segmentation offload sends in pieces of several segments, and waits for an ACK rather than send a short
//! piece (Linux 6.18, tcp_tso_should_defer()). It is part of what its segments look like on the wire, offload or not.
//!
//! A piece has what the pacing rate has for a millisecond, two segments at least, and more where the round trip is short
//! (tcp_tso_autosize()). Short of that, and of a third of the window, it waits if the last segment left just now and the
//! next ACK is near. In recovery nothing waits.

use airwire::time::{Duration, Instant};

use super::connection::Connection;

/// The last departure is so recent that waiting makes no burst.
const RECENT: Duration = Duration::from_millis(1);
/// `net.ipv4.tcp_tso_win_divisor`
const WIN_DIVISOR: u64 = 3;
/// `net.ipv4.tcp_tso_rtt_log`
const TSO_RTT_LOG: u32 = 9;
/// `sk_gso_max_size`
const GSO_MAX_SIZE: u64 = 65_536;

impl Connection {
    /// Whether new text from `start` on waits for company, though a segment might leave. `edge` is the right edge of the
    /// peer's window.
    #[inline]
    pub(super) fn defers(&mut self, now: Instant, start: u64, edge: u64, unsent: u64) -> bool {
        if !self.profile.defers || unsent <= self.snd.smss || start < self.snd.piece_end {
            return false;
        }
        self.snd.deferred = self.snd.deferred || self.is_short(now, start, edge, unsent);
        self.snd.deferred
    }

    fn is_short(&mut self, now: Instant, start: u64, edge: u64, unsent: u64) -> bool {
        let (smss, srtt) = (self.snd.smss, self.rtt.srtt().unwrap_or_default());
        let piece = self.piece();
        let wnd = self.snd.wnd;
        let just_now = now - self.snd.last_sent <= RECENT;
        // The next ACK is about the head, and not half a round trip away.
        let ack_is_near = self.flight.head().is_some_and(|head| now - head.last_sent >= srtt / 2);
        let last = self.snd.fin.is_some();
        let (recovery, path) = self.recovery_and_path(now);
        let by_window = edge.saturating_sub(start);
        let by_cwnd = recovery.room_for_new(&path);
        let limit = by_window.min(by_cwnd);
        let third = wnd.min((recovery.congestion().cwnd * smss as f64) as u64) / WIN_DIVISOR;
        let waits = just_now && ack_is_near && limit < piece.min(third) && !recovery.is_repairing();
        if !waits || (last && limit >= unsent) {
            // What has begun to leave leaves in whole segments.
            self.snd.piece_end = start + (limit.min(piece) / smss).max(1) * smss;
            return false;
        }
        if by_cwnd < by_window {
            recovery.note_full_window(&path);
        }
        true
    }

    /// tcp_tso_autosize(), in octets.
    fn piece(&mut self) -> u64 {
        let smss = self.snd.smss;
        let srtt = self.rtt.srtt().unwrap_or_default().as_secs_f64();
        let cc = self.recovery.congestion();
        let ratio = if cc.cwnd < cc.ssthresh / 2.0 { 2.0 } else { 1.2 };
        let outstanding = self.flight.outstanding().segments as f64;
        let rate = ratio * cc.cwnd.max(outstanding) * smss as f64 / srtt.max(1e-6);
        let micros = self.rtt.min().unwrap_or_default().as_micros() as u64;
        let short = micros >> TSO_RTT_LOG;
        let bonus = if short < 32 { GSO_MAX_SIZE >> short } else { 0 };
        let octets = (rate as u64 / 1024 + bonus).min(GSO_MAX_SIZE);
        (octets / smss).max(2) * smss
    }
}
