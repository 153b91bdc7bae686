//! TIME-WAIT: reactions to late segments, and SYNs that open a new connection.
//!
//! The default follows RFC 9293, whose steps are in `input`. The kernels of Linux and FreeBSD keep only a few
//! values of such a connection, and make fewer checks. After a close, Linux does the same in FIN-WAIT-2.

use airwire::segment::{Flags, Segment};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::Connection;
use super::Parts;
use super::input::Reaction;
use crate::events::Refusal;
use crate::profile::TimeWaitRules;
use crate::tcp::receiver::PAWS_VALID;
use crate::tcp::socket::{Ended, State};

/// Time for which Linux refuses a RST with an old timestamp (TCP_PAWS_MSL).
const PAWS_RESET: Duration = Duration::from_secs(60);

impl Connection {
    /// Enters TIME-WAIT, or restarts it.
    pub(in crate::tcp) fn enter_time_wait(&mut self, now: Instant) {
        let from = self.cx.lifecycle.enter_time_wait(now, &self.cx.profile);
        self.log_state(from);
        // Linux limits the ACKs of TIME-WAIT separately (tw_last_oow_ack_time).
        self.receiver.enter_time_wait(from != State::TimeWait && !self.cx.lifecycle.is_released());
        self.sender.stop_timers();
    }

    /// Returns SND.NXT, the first sequence number that this connection has not used.
    pub(crate) fn snd_nxt(&self) -> Seq {
        self.sender.iss().at(self.sender.nxt())
    }

    /// Returns true if a SYN may replace this TIME-WAIT connection, because its timestamp or sequence number
    /// shows that it is new (RFC 6191, RFC 9293 §3.6.1).
    #[inline]
    pub(crate) fn may_be_replaced_by(&self, now: Instant, segment: &Segment<'_>) -> bool {
        self.state() == State::TimeWait && self.is_new_syn(now, segment)
    }

    fn is_new_syn(&self, now: Instant, segment: &Segment<'_>) -> bool {
        let next = self.receiver.nxt();
        let newer_seq = self.receiver.offset_of(segment).is_some_and(|offset| offset > next);
        let stamp = self.cx.negotiated.timestamps_of(segment);
        let newer_ts = stamp.is_some_and(|ts| ts.val.wrapping_sub(self.receiver.ts_recent().0) as i32 > 0);
        let new = match self.cx.profile.validation.time_wait {
            TimeWaitRules::FreeBsd => newer_seq,
            // An old timestamp shows that the SYN is old, even if its sequence number is new.
            TimeWaitRules::Rfc9293 | TimeWaitRules::Linux => {
                (newer_seq || newer_ts) && !self.fails_paws(now, segment)
            }
        };
        new && segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK.with(Flags::RST))
    }

    /// Processes a segment by the rules of Linux or FreeBSD. Returns `None` if the profile follows RFC 9293
    /// in this state.
    pub(in crate::tcp) fn in_late_states(&mut self, now: Instant, segment: &Segment<'_>) -> Option<Reaction> {
        let reaction = match (self.cx.profile.validation.time_wait, self.state()) {
            (TimeWaitRules::Linux, State::TimeWait) => self.in_time_wait_of_linux(now, segment),
            (TimeWaitRules::Linux, State::FinWait2) if self.is_socket_released(now) => {
                self.in_fin_wait_2_of_linux(now, segment)
            }
            (TimeWaitRules::FreeBsd, State::TimeWait) => self.in_time_wait_of_freebsd(now, segment),
            _ => return None,
        };
        // The ACKs of these rules have neither ECE nor D-SACK.
        self.receiver.stop_echoing_ce();
        Some(reaction)
    }

    /// The fifth and the later steps of RFC 9293 §3.10.7.4 in TIME-WAIT: acknowledge the segment, and restart
    /// the timer. An empty segment in order is not acknowledged, because two ends in TIME-WAIT would
    /// acknowledge each other's ACKs forever.
    pub(in crate::tcp) fn process_in_time_wait(&mut self, now: Instant, segment: &Segment<'_>, offset: u64) {
        // By the other rules, only the ACK of our FIN in CLOSING leads here, and no other part of the segment
        // is processed.
        let follows_rfc = self.cx.profile.validation.time_wait == TimeWaitRules::Rfc9293;
        if follows_rfc && (segment.seq_len() > 0 || offset != self.receiver.nxt()) {
            self.enter_time_wait(now);
            self.ack_late_segment(now, segment);
        }
    }

    /// tcp_timewait_state_process() of Linux 6.18, with tcp_rfc1337 = 0. The ACK field is not checked.
    fn in_time_wait_of_linux(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        let reset = segment.flags.contains(Flags::RST);
        let old = self.fails_paws(now, segment);
        let in_order = segment.seq == self.receiver.nxt_seq();
        if in_order && !old && (reset || segment.seq_len() == 0) {
            if reset {
                self.end(None);
            } else {
                self.receiver.replace_ts_recent(&self.cx.negotiated, now, segment);
                self.enter_time_wait(now);
            }
            return Reaction::Done;
        }
        self.refuse(segment, if old { Refusal::OldTimestamp } else { Refusal::TimeWait });
        if self.is_new_syn(now, segment) {
            // No socket listens, or the host would have replaced this connection (TCP_TW_SYN in tcp_v4_rcv()).
            // No limit applies to this ACK.
            self.receiver.ack_now();
        } else if !reset {
            // A SYN without ACK may be a new one with a low sequence number, which must not prolong the wait.
            if old || segment.flags.contains(Flags::ACK) {
                self.enter_time_wait(now);
            }
            self.ack_late_segment(now, segment);
        }
        Reaction::Done
    }

    /// Releases the socket in FIN-WAIT-2 after a close, as Linux does at most one minute before the end of this
    /// state (tcp_time_wait()).
    pub(in crate::tcp) fn release_socket(&mut self, now: Instant) {
        let last_minute = self.cx.profile.timers.time_wait;
        let is_due = self.cx.profile.validation.time_wait == TimeWaitRules::Linux
            && self.cx.lifecycle.is_orphaned()
            && self.cx.lifecycle.linger_deadline().is_some_and(|at| at - now <= last_minute);
        if is_due && self.cx.lifecycle.release() {
            self.receiver.release();
        }
    }

    /// Returns true if Linux has released the socket.
    fn is_socket_released(&mut self, now: Instant) -> bool {
        // A timer releases the socket if the wait is longer than a minute (tcp_keepalive_timer()).
        if self.cx.options.linger2.is_some_and(|wait| wait > self.cx.profile.timers.time_wait) {
            self.release_socket(now);
        }
        self.cx.lifecycle.is_released()
    }

    /// tcp_timewait_state_process() in FIN-WAIT-2, after the socket was released: only a FIN in order is
    /// accepted.
    fn in_fin_wait_2_of_linux(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        let (flags, len, next) = (segment.flags, segment.seq_len(), self.receiver.nxt());
        let old = self.fails_paws(now, segment);
        let start = self.receiver.offset_of(segment);
        let start = start.filter(|start| !old && self.receiver.overlaps_window(*start, segment));
        let Some(start) = start else {
            self.statistics.unacceptable += 1;
            self.refuse(segment, if old { Refusal::OldTimestamp } else { Refusal::OutOfWindow });
            self.ack_late_segment(now, segment);
            return Reaction::Done;
        };
        if flags.contains(Flags::RST) {
            self.end(None);
            return Reaction::Done;
        }
        let end = start + len;
        let is_new_syn = flags.contains(Flags::SYN) && start >= next;
        if !is_new_syn && (!flags.contains(Flags::ACK) || len == 0 || end <= next) {
            return Reaction::Done;
        }
        if is_new_syn || !flags.contains(Flags::FIN) || end != next + 1 {
            self.refuse(segment, Refusal::NobodyReads);
            self.end(Some(Ended::Aborted));
            return Reaction::Reset(None);
        }
        self.receiver.accept_fin();
        self.receiver.replace_ts_recent(&self.cx.negotiated, now, segment);
        self.enter_time_wait(now);
        Reaction::Done
    }

    /// tcp_twcheck() of FreeBSD 14. A RST is ignored (RFC 1337), and timestamps are not compared.
    fn in_time_wait_of_freebsd(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        let flags = segment.flags;
        let has_timestamp = segment.options.timestamps.is_some()
            || !self.cx.negotiated.timestamps()
            || self.receiver.ts_recent().0 == 0;
        let next = self.receiver.nxt();
        let start = self.receiver.offset_of(segment);
        let duplicate_ack = flags == Flags::ACK
            && segment.payload.is_empty()
            && start == Some(next)
            && segment.ack == self.snd_nxt();
        if flags.contains(Flags::RST) {
            self.refuse(segment, Refusal::TimeWait);
        } else if !flags.contains(Flags::ACK) {
            self.refuse(segment, Refusal::NoAck);
        } else if !has_timestamp && !self.cx.profile.validation.tolerate_missing_timestamps {
            self.refuse(segment, Refusal::MissingTimestamp);
        } else if !duplicate_ack {
            self.refuse(segment, Refusal::TimeWait);
            let ends_at_fin = start.is_some_and(|start| start + segment.seq_len() == next);
            if flags.contains(Flags::FIN) && ends_at_fin {
                self.enter_time_wait(now);
            }
            self.ack_late_segment(now, segment);
        }
        Reaction::Done
    }

    /// Answers a late segment with an ACK.
    fn ack_late_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        let Parts { receiver, statistics, cx, .. } = self.parts();
        receiver.ack_late_segment(cx, statistics, now, segment);
    }

    /// Returns true if PAWS rejects a late segment in Linux (tcp_paws_reject()): without slack, and also a
    /// RST.
    pub(super) fn fails_paws(&self, now: Instant, segment: &Segment<'_>) -> bool {
        let (ts_recent, ts_recent_at) = self.receiver.ts_recent();
        let known = self.cx.negotiated.timestamps() && ts_recent != 0;
        let reset = segment.flags.contains(Flags::RST);
        let valid = if reset { PAWS_RESET } else { PAWS_VALID };
        segment.options.timestamps.is_some_and(|ts| {
            let behind = ts_recent.wrapping_sub(ts.val) as i32;
            known && behind > 0 && now - ts_recent_at < valid
        })
    }
}
