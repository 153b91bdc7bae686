//! A passive open of Linux until its handshake completes: a request without a socket.

use airwire::segment::{Flags, Segment};
use airwire::time::Instant;

use super::Connection;
use super::input::Reaction;
use crate::events::Refusal;
use crate::tcp::socket::{Ended, State};

impl Connection {
    /// Returns true while the connection is a request.
    pub(in crate::tcp) fn is_request(&self) -> bool {
        self.cx.profile.validation.request_sockets
            && self.cx.lifecycle.is_passive()
            && self.state() == State::SynReceived
            && !self.was_opened_early()
    }

    /// tcp_check_req() of Linux 6.18. Returns `None` if the segment completes the handshake. The connection
    /// then processes it as usual.
    pub(in crate::tcp) fn check_request(&mut self, now: Instant, segment: &Segment<'_>) -> Option<Reaction> {
        let has = |flag| segment.flags.contains(flag);
        let next = self.receiver.nxt();
        let start = self.receiver.offset_of(segment);
        let old = self.fails_paws(now, segment);
        let repeats_syn = start == Some(0) && has(Flags::SYN);
        if repeats_syn && !old && !segment.flags.intersects(Flags::ACK.with(Flags::RST)) {
            if self.receiver.may_challenge(&self.cx.profile, now) {
                self.cx.lifecycle.send_syn();
            }
            return Some(Reaction::Done);
        }
        let is_in_window = start.is_some_and(|start| self.receiver.overlaps_window(start, segment));
        // RFC 5961 §3.2, before the ACK.
        if has(Flags::RST) && is_in_window {
            if start == Some(next) {
                self.end(Some(Ended::Refused));
            } else {
                self.refuse(segment, Refusal::ResetNotExact);
                self.challenge_ack(now);
            }
            return Some(Reaction::Done);
        }
        if has(Flags::ACK) && !self.sender.acks_our_syn(segment) {
            self.refuse(segment, Refusal::NotOurSyn);
            return Some(if has(Flags::RST) { Reaction::Done } else { Reaction::Reset(None) });
        }
        let is_valid = is_in_window && !old && self.sender.echoes_syn(&self.cx, segment);
        let Some(start) = start.filter(|_| is_valid) else {
            self.statistics.unacceptable += 1;
            self.refuse(segment, if old { Refusal::OldTimestamp } else { Refusal::OutOfWindow });
            // tcp_oow_rate_limited() does not limit the answers to data.
            let is_data = segment.seq_len() > 0 && !has(Flags::SYN);
            if !has(Flags::RST) && (is_data || self.receiver.may_challenge(&self.cx.profile, now)) {
                self.receiver.ack_now();
            }
            return Some(Reaction::Done);
        };
        if has(Flags::SYN) && !repeats_syn {
            self.end(Some(Ended::Refused));
            return Some(Reaction::Reset(None));
        }
        if !has(Flags::ACK) {
            self.refuse(segment, Refusal::NoAck);
            return Some(Reaction::Done);
        }
        if start <= next {
            self.receiver.replace_ts_recent(&self.cx.negotiated, now, segment);
        }
        // The new socket has limits of its own.
        self.receiver.forget_challenges();
        None
    }
}
