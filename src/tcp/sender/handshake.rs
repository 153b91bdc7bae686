//! The sender's part of the handshake: our SYN, its acknowledgment, and the SYN's data (RFC 9293 §3.5, RFC
//! 7413).

use airwire::segment::{Flags, Segment};
use airwire::time::Instant;

use super::pacer::Pacer;
use super::{Sender, Spacing};
use crate::profile::RtoEvents;
use crate::recovery::{Handshake, Transmission, TransmissionKind};
use crate::tcp::context::Context;
use crate::tcp::statistics::Statistics;

impl Sender {
    /// Processes the window of the peer's SYN, which is not scaled (RFC 7323 §2.2).
    pub(in crate::tcp) fn process_peer_syn(&mut self, cx: &Context, syn: &Segment<'_>) {
        self.wnd = u64::from(syn.window);
        self.max_wnd = self.wnd;
        self.wl1 = 0;
        self.wl2 = 0;
        self.update_smss(cx);
    }

    /// Returns true if the segment acknowledges our SYN, and no data that was not sent. False if the SYN is
    /// not sent yet: a host may process several packets before its first transmission.
    pub(in crate::tcp) fn acks_our_syn(&self, segment: &Segment<'_>) -> bool {
        segment.ack.offset(self.iss, 1).is_some_and(|acked| (1..=self.flight.max()).contains(&acked))
    }

    /// Returns true if the segment echoes a timestamp of our SYN, or none.
    pub(in crate::tcp) fn echoes_syn(&self, cx: &Context, segment: &Segment<'_>) -> bool {
        let ecr = cx.negotiated.timestamps_of(segment).map_or(0, |ts| ts.ecr);
        let Some(syn) = self.flight.head().filter(|_| ecr != 0) else { return true };
        let first = cx.negotiated.ts_now(&cx.profile, syn.first_sent);
        ecr.wrapping_sub(first) <= syn.tsval.wrapping_sub(first)
    }

    /// Records the SYN that was just sent with `text` bytes of data. `is_listed` is false if it is not in the
    /// list of data in flight.
    pub(in crate::tcp) fn on_syn_sent(
        &mut self,
        statistics: &mut Statistics,
        now: Instant,
        (tsval, text, is_listed): (u32, u64, bool),
    ) {
        if self.rto.is_some() {
            self.handshake_resent = self.handshake_resent.saturating_add(1);
        }
        if is_listed && self.flight.max() == 0 {
            self.flight.on_new(1, now, tsval);
        } else if is_listed {
            self.flight.on_resent(0, now, tsval);
        }
        if text > 0 {
            self.flight.on_new(1 + text, now, tsval);
            statistics.data_segments_out += 1;
        }
        if self.rto.is_none() {
            self.restart_rto(now);
        }
    }

    /// Begins our stream after a SYN,ACK that is not in the list of data in flight.
    pub(in crate::tcp) fn begin_after_syn_ack(&mut self, now: Instant) {
        self.flight.on_new(1, now, 0);
        self.flight.on_ack(1);
    }

    /// Records the ACK of a SYN,ACK whose sending time is unknown.
    pub(in crate::tcp) fn ack_untimed_syn(&mut self) {
        self.flight.on_ack(1);
    }

    /// Processes the ACK of our SYN, which establishes the connection. `seq` is the segment's offset in the
    /// peer's stream.
    pub(in crate::tcp) fn establish(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        segment: &Segment<'_>,
        seq: Option<u64>,
    ) {
        self.rto = None;
        let was_early = cx.fast_open.is_server();
        let sent = match was_early {
            true => cx.fast_open.early_syn_ack(),
            false => self.process_ack_of_syn(cx, statistics, segment),
        };
        if !self.rtt.style().backoff_outlives_handshake() {
            self.rtt.clear_backoff();
        }
        let ecr = segment.options.timestamps.map(|ts| ts.ecr);
        match sent {
            Some((sent_at, 1)) if cx.profile.timers.samples_handshake => self.sample_rtt(now, sent_at),
            Some((first_sent, 2..)) if cx.negotiated.timestamps() => {
                if let Some(rtt) = ecr.and_then(|ecr| self.rtt_from_echo(cx, now, ecr, Some(first_sent))) {
                    self.sample_rtt(now, now - rtt);
                }
            }
            _ => {}
        }
        if self.syn_timeouts > 0 {
            self.rtt.fall_back_after_lost_syn();
        }
        if cx.lifecycle.is_passive() {
            self.min_ack = 1;
            if cx.profile.sending.half_window && !was_early {
                // Linux creates the socket at this point and does not keep the window of the SYN.
                self.max_wnd = 0;
                self.update_smss(cx);
            }
        }
        if !segment.flags.contains(Flags::SYN) {
            self.update_window(cx, statistics, now, segment, (seq, 1, 1));
        }
        self.start_mtu_search(cx, now);
    }

    /// Processes the ACK of our SYN and of its data. Returns when the SYN was first sent, and how often.
    fn process_ack_of_syn(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        segment: &Segment<'_>,
    ) -> Option<(Instant, u16)> {
        // In a simultaneous open, the SYN,ACK takes the place of the SYN. Linux times it, and does not count it as a
        // retransmission (tcp_send_synack()).
        let is_syn_ack = cx.profile.timers.rto_events == RtoEvents::Linux
            && !cx.lifecycle.is_passive()
            && self.syn_timeouts == 0;
        let sent = self.flight.head().map(|syn| match syn.transmissions {
            2 if is_syn_ack => (syn.last_sent, 1),
            transmissions => (syn.first_sent, transmissions),
        });
        self.flight.on_ack(1);
        if let Some(acked) = segment.ack.offset(self.iss, 1).filter(|acked| *acked > 1) {
            self.advance(statistics, acked);
        }
        sent
    }

    /// Prepares the recovery for our data, when the options are negotiated.
    pub(in crate::tcp) fn begin(&mut self, cx: &Context, now: Instant) {
        let negotiated = &cx.negotiated;
        let handshake = Handshake {
            sack: negotiated.sack(),
            scoreboard: self.has_scoreboard(negotiated),
            timestamps: negotiated.timestamps(),
            ecn: negotiated.ecn(),
            peer_flags: negotiated.peer_flags(),
            syn_was_lost: self.syn_timeouts > cx.profile.recovery.initial.syn_timeouts_forgiven,
            ..Handshake::default()
        };
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_established(&mut path, &handshake);
        if recovery.paces() {
            self.spacing = Some(Box::new(Spacing { pacer: Some(Pacer::new(now)), ..Spacing::default() }));
        }
        self.last_sent = now;
    }

    /// Retransmits the data of the SYN at once, without a change of the congestion window.
    pub(in crate::tcp) fn resend_syn_text(&mut self, now: Instant, tsval: u32) {
        let (start, end) = (self.flight.una(), self.flight.max());
        let transmission =
            Transmission { start, end, kind: TransmissionKind::New, tsval, is_window_probe: false };
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_sent(&mut path, &transmission);
        self.flight.rewind();
    }

    /// Returns the number of bytes that the SYN can carry of the data written so far.
    pub(in crate::tcp) fn syn_text_len(&self, limit: u64) -> u64 {
        limit.min(self.buffer.record_end(1) - 1)
    }

    /// Returns true if data or a FIN is to be sent although the SYN,ACK is not acknowledged.
    pub(in crate::tcp) fn has_early_data(&self, cx: &Context) -> bool {
        let fin = self.fin_to_send(cx).is_some_and(|fin| self.flight.max() <= fin);
        // After a timeout, data that was sent early is retransmitted first, when the handshake is complete.
        (self.unsent() > 0 || fin) && self.wnd > 0 && !self.flight.has_rewound()
    }
}
