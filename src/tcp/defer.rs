//! The option `tso-defer`: a sender with segmentation offload sends in pieces of several segments, and waits for an ACK
//! rather than send a short piece (Linux 6.18, tcp_tso_should_defer()). It is part of what its segments look like on the
//! wire, offload or not.
//!
//! A piece has what the pacing rate has for a millisecond, two segments at least, and more where the round trip is short
//! (tcp_tso_autosize()), and never more than half the window (tcp_cwnd_test()). Its turn comes as one: a sender that is
//! paced at 10 Mbit/s sends two segments every 2.4 ms, and the receiver acknowledges both at once.
//!
//! Short of that, and of a third of the window, it waits if the last segment left just now and the next ACK is less than
//! a millisecond away (half a round trip, in older kernels). In recovery nothing waits.

use airwire::time::{Duration, Instant};

use super::connection::Connection;
use crate::profile::knobs::Pacing;

/// The last departure is so recent that waiting makes no burst.
const RECENT: Duration = Duration::from_millis(1);
/// What comes within it is worth waiting for.
const NEAR: Duration = Duration::from_millis(1);
/// `net.ipv4.tcp_tso_win_divisor`
const WIN_DIVISOR: u64 = 3;
/// `net.ipv4.tcp_tso_rtt_log`
const TSO_RTT_LOG: u32 = 9;
/// `sk_gso_max_size`
const GSO_MAX_SIZE: u64 = 65_536;
/// bbr_min_tso_rate, in octets per second: below it segments leave one by one, if the window gives the rate.
const MIN_TSO_RATE: f64 = 150_000.0;

/// What leaves at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece {
    /// What has begun to leave leaves up to here.
    end: u64,
    /// It was too short. It waits for the next ACK, or for what the application writes.
    waits: bool,
}

/// Octets for which there is room.
#[derive(Clone, Copy)]
struct Room {
    by_window: u64,
    by_cwnd: u64,
}

impl Connection {
    /// An ACK has come, or the application has written: what waited may be long enough now.
    #[inline]
    pub(super) fn look_at_piece_again(&mut self) {
        if let Some(piece) = self.waiting_piece() {
            piece.waits = false;
        }
    }

    /// The rest of a piece that has begun to leave does not wait for its turn.
    #[inline]
    pub(super) fn is_within_piece(&self) -> bool {
        let piece = self.snd.spacing.as_ref().and_then(|spacing| spacing.piece);
        piece.is_some_and(|piece| self.flight.max() < piece.end)
    }

    #[inline]
    fn waiting_piece(&mut self) -> Option<&mut Piece> {
        self.snd.spacing.as_mut()?.piece.as_mut()
    }

    /// Whether new text from `start` on waits for company, though a segment might leave. `edge` is the right edge of the
    /// peer's window.
    #[inline]
    pub(super) fn defers(&mut self, now: Instant, start: u64, edge: u64, unsent: u64) -> bool {
        if !self.profile.defers || unsent <= self.snd.smss {
            return false;
        }
        let Piece { end, waits } = self.waiting_piece().copied().unwrap_or_default();
        if start < end {
            return false;
        }
        let piece = match waits || self.is_short(now, start, edge, unsent) {
            true => Piece { end, waits: true },
            false => {
                let length = self.length_from(now, start, edge).min(self.ready_of(unsent));
                Piece { end: start + length, waits: false }
            }
        };
        self.snd.spacing.get_or_insert_default().piece = Some(piece);
        piece.waits
    }

    /// So much of the text that has not left may leave in one piece (tcp_mss_split_point()): a last small segment belongs to
    /// it if nothing holds that back.
    fn ready_of(&self, unsent: u64) -> u64 {
        if self.holds_small_segments() { unsent - unsent % self.snd.smss } else { unsent }
    }

    fn is_short(&mut self, now: Instant, start: u64, edge: u64, unsent: u64) -> bool {
        let srtt = self.rtt.srtt().unwrap_or_default();
        let just_now = now - self.snd.last_sent <= RECENT;
        // The next ACK is about the head.
        let ack_is_near =
            self.flight.head().is_some_and(|head| head.last_sent + srtt <= now + NEAR.min(srtt / 2));
        if !just_now || !ack_is_near {
            return false;
        }
        let Room { by_window, by_cwnd } = self.room(now, start, edge);
        let limit = by_window.min(by_cwnd);
        let cwnd = (self.recovery.congestion().cwnd * self.snd.smss as f64) as u64;
        let third = self.snd.wnd.min(cwnd) / WIN_DIVISOR;
        let is_last = self.snd.fin.is_some() && limit >= unsent;
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

    fn length_from(&mut self, now: Instant, start: u64, edge: u64) -> u64 {
        let Room { by_window, by_cwnd } = self.room(now, start, edge);
        let smss = self.snd.smss;
        let half = (self.recovery.congestion().cwnd / 2.0) as u64 * smss;
        (by_window.min(by_cwnd).min(half).min(self.autosized(now)) / smss).max(1) * smss
    }

    /// tcp_tso_autosize(), in octets.
    fn autosized(&mut self, now: Instant) -> u64 {
        let smss = self.snd.smss;
        let (recovery, path) = self.recovery_and_path(now);
        let own = recovery.own_rate(&path);
        let rate = own.or_else(|| recovery.rate_of_window(&path, Pacing::LINUX)).unwrap_or_default();
        // bbr_min_tso_segs()
        let least = if own.is_some() && rate < MIN_TSO_RATE { 1 } else { 2 };
        let micros = self.rtt.min().unwrap_or_default().as_micros();
        let short = micros >> TSO_RTT_LOG;
        let bonus = if short < 32 { GSO_MAX_SIZE >> short } else { 0 };
        let octets = (rate as u64 / 1024 + bonus).min(GSO_MAX_SIZE);
        (octets / smss).max(least) * smss
    }
}
