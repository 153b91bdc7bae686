//! The advertised window, and the ACKs that announce it after a read.

use super::linux::Read;
use super::{AckDue, Advertisement, Receiver};
use crate::memory::Budget;
use crate::profile::{Profile, WindowUpdate};
use crate::tcp::context::Context;
use crate::tcp::socket::State;

impl Receiver {
    /// Returns the shift count for our SYN.
    pub(in crate::tcp) fn scale_to_offer(&self, profile: &Profile) -> u8 {
        let limit = self.buffer.limit();
        let by_buffer = || (0..=14).find(|scale| limit >> scale <= 65_535).unwrap_or(14);
        let needed = self.policy.scale_to_offer(profile).unwrap_or_else(by_buffer);
        profile.handshake.window_scale.map_or(0, |offered| offered.max(needed))
    }

    /// Returns the first window, which begins after the peer's SYN.
    pub(super) fn first_window(&mut self, cx: &Context) -> u64 {
        let mss = cx.negotiated.expected_mss(&cx.profile, &cx.options);
        let own = self.policy.first_window(mss, cx.state() == State::SynReceived);
        own.unwrap_or_else(|| self.buffer.window().min(65_535) as u64)
    }

    /// Returns the window of the next segment. `max_seg` returns the length of a full-sized segment of ours.
    pub(in crate::tcp) fn window_to_advertise(
        &mut self,
        cx: &Context,
        budget: &Budget,
        scale: u8,
        max_seg: impl Fn() -> u64,
    ) -> Advertisement {
        let (next, edge) = (self.nxt(), self.adv);
        let Some(window) = self.policy.window(next, edge, !cx.state().is_synchronized()) else {
            return self.plain_window(cx, budget, scale, max_seg);
        };
        let window = window.min(self.tuned_room(budget).max(edge.saturating_sub(next)));
        let field = (window >> scale).min(65_535);
        Advertisement { field: field as u16, edge: next + window, unrounded: next + window }
    }

    fn plain_window(
        &self,
        cx: &Context,
        budget: &Budget,
        scale: u8,
        max_seg: impl Fn() -> u64,
    ) -> Advertisement {
        let next = self.nxt();
        let advertised = self.unrounded.saturating_sub(next);
        let (room, limit) = self.room_to_offer(budget);
        // The right edge never moves back. RFC 9293 §3.8.6.2.2: small increments are not advertised.
        let advances = match cx.profile.acks.window_update {
            WindowUpdate::Doubled | WindowUpdate::Tuned(_) => {
                let mss = || u64::from(cx.negotiated.advertised_mss(&cx.profile, &cx.options));
                room >= limit || room >= advertised + mss().min(limit / 2).max(1)
            }
            WindowUpdate::QuarterBuffer => room >= advertised && (room >= limit / 4 || room >= max_seg()),
        };
        let wanted = if advances { room } else { advertised };
        let unit = 1_u64 << scale;
        // Rounding must not shrink the advertised window. If it enlarged the window each time, the edge would
        // advance with every ACK, and the window would never close (RFC 7323 §2.4).
        let rounded_up = |bytes: u64| (bytes + unit - 1) >> scale;
        let units = match (cx.profile.acks.window_update, wanted >> scale) {
            // A buffer smaller than one unit must not keep the window closed.
            (WindowUpdate::QuarterBuffer, _) | (_, 0) => rounded_up(wanted),
            (_, whole) => whole.max(rounded_up(advertised)),
        };
        let units = units.min(65_535);
        Advertisement {
            field: units as u16,
            edge: next + units * unit,
            unrounded: next + wanted.min(units * unit),
        }
    }

    /// Sends a window update if a read has widened the window enough to justify a separate ACK. `max_seg`
    /// returns the length of a full-sized segment of ours.
    pub(in crate::tcp) fn consider_window_update(
        &mut self,
        cx: &Context,
        budget: &Budget,
        max_seg: impl Fn() -> u64,
    ) {
        let is_over = !cx.state().may_receive_data() || self.fin.is_some();
        if self.policy.is_linux()
            && self.policy.on_read(&cx.profile, &self.last_read(is_over), self.ack_is_due())
        {
            self.ack_now();
        }
        if self.policy.tunes_window() || is_over {
            return;
        }
        let scale = cx.negotiated.rcv_scale();
        let update = match cx.profile.acks.window_update {
            WindowUpdate::Doubled | WindowUpdate::Tuned(_) => {
                let advertised = self.unrounded.saturating_sub(self.nxt());
                let offered = || self.plain_window(cx, budget, scale, &max_seg).unrounded - self.nxt();
                let enough = (2 * advertised).max(1);
                // The room is an upper bound, and usually too small.
                self.room_to_offer(budget).0 >= enough && offered() >= enough
            }
            // A pending delayed ACK will announce the window.
            WindowUpdate::QuarterBuffer => {
                self.ack != AckDue::Delayed && self.has_opened_a_quarter(scale, max_seg())
            }
        };
        if update {
            self.ack = AckDue::Now;
        }
    }

    /// Returns the state after a read by the application, as Linux needs it. `is_over` is true if no more data arrives.
    fn last_read(&self, is_over: bool) -> Read {
        let readable = self.buffer.readable() as u64;
        Read {
            // The last byte is read together with the FIN.
            copied_seq: if readable == 0 { self.nxt() } else { self.buffer.next() - readable },
            rcv_nxt: self.nxt(),
            last_ack: self.last_ack_sent,
            edge: self.adv,
            span: self.buffer.out_of_order_span(),
            closed: is_over,
        }
    }

    /// FreeBSD 13, tcp_output(): standalone window updates.
    fn has_opened_a_quarter(&self, scale: u8, max_seg: u64) -> bool {
        let limit = self.buffer.limit() as u64;
        let largest = 65_535 << scale;
        let recwin = (self.buffer.window() as u64).min(largest);
        let oldwin = self.wnd();
        let adv = recwin.saturating_sub(oldwin);
        let enough = adv >= limit / 4 || recwin <= limit / 8 || limit <= 8 * max_seg || adv >= largest;
        // The window must change by at least one unit of the scale.
        oldwin >> scale < recwin >> scale && (adv >= 2 * max_seg && enough || 2 * adv >= limit)
    }
}
