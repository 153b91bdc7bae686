//! The calls from a connection to [`LinuxReceiver`](super::linux::LinuxReceiver): its receive steps under
//! [`AckRules::Linux`] and [`WindowUpdate::Tuned`].

use airwire::segment::{Flags, Segment};
use airwire::time::{Duration, Instant};

use super::Advertisement;
use super::linux::{LinuxReceiver, Moment, Read, Text, Waiting};
use crate::profile::{AckRules, LinuxAcks, Profile, WindowUpdate};
use crate::tcp::connection::Connection;
use crate::tcp::socket::SocketOptions;
use crate::tcp::variables::AckDue;

/// Returns the receiver for a profile. `advmss` is the MSS that we advertise.
pub(in crate::tcp) fn receiver_of(
    profile: &Profile,
    options: &SocketOptions,
    advmss: u32,
) -> Option<Box<LinuxReceiver>> {
    let memory = match profile.window_update {
        WindowUpdate::Tuned(memory) => Some(memory),
        WindowUpdate::Doubled | WindowUpdate::QuarterBuffer => None,
    };
    if memory.is_none() && profile.ack.rules == AckRules::Plain {
        return None;
    }
    Some(Box::new(LinuxReceiver::new(memory, options.recv_buffer, advmss)))
}

impl Connection {
    pub(in crate::tcp) fn tunes_window(&self) -> bool {
        self.rcv.linux.as_ref().is_some_and(|linux| linux.tunes_window())
    }

    fn linux_acks(&self) -> Option<LinuxAcks> {
        match self.profile.ack.rules {
            AckRules::Linux(acks) => Some(acks),
            AckRules::Plain => None,
        }
    }

    /// Schedules an ACK for a segment that requires one.
    pub(super) fn ack_news(&mut self) {
        match (&mut self.rcv.linux, self.profile.ack.rules) {
            (Some(linux), AckRules::Linux(_)) => linux.acks.owe(),
            _ => self.rcv.ack = AckDue::Now,
        }
    }

    /// Schedules an ACK that is not delayed.
    pub(super) fn ack_at_once(&mut self) {
        match (&mut self.rcv.linux, self.profile.ack.rules) {
            (Some(linux), AckRules::Linux(_)) => linux.acks.owe_at_once(),
            _ => self.rcv.ack = AckDue::Now,
        }
    }

    /// Enters quick-ACK mode: up to `most` of the next ACKs are not delayed and do not wait for data to carry
    /// them.
    pub(in crate::tcp) fn enter_quick_ack(&mut self, most: u32) {
        let Some(acks) = self.linux_acks() else { return };
        if let Some(linux) = &mut self.rcv.linux {
            let quick = linux.window.quick_acks(most.min(acks.quick));
            linux.acks.enter_quick_mode(quick);
        }
    }

    /// Measures the round-trip time from the echoed timestamp of an acceptable segment with data.
    pub(in crate::tcp) fn measure_receive_rtt(&mut self, now: Instant, segment: &Segment<'_>) {
        let ts_now = self.negotiated.ts_now(&self.profile, now);
        let ecr = self.negotiated.timestamps_of(segment).map_or(0, |ts| ts.ecr);
        let idle = self.rcv.buffer.readable() == 0;
        if let Some(linux) = &mut self.rcv.linux {
            linux.window.measure_rtt_by_echo(now, ecr, ts_now, segment.seq_len(), idle);
        }
    }

    /// Passes stored data to the Linux receiver: `len` bytes at `offset`, of which `repeated` were received
    /// before. `next` was RCV.NXT when the segment arrived.
    pub(super) fn show_linux(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        (offset, next): (u64, u64),
        len: u64,
        repeated: Option<(u64, u64)>,
    ) {
        let Some(mut linux) = self.rcv.linux.take() else { return };
        let options = self.negotiated.options_len() as u32;
        let sack = match segment.options.sack.as_slice().len() as u32 {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        let text = Text {
            start: offset,
            end: offset + len,
            len: len as u32,
            advmss: self.negotiated.expected_mss(&self.profile, &self.options),
            headers: self.negotiated.header_len() as u32 + options + sack,
            tcp_header: 20 + options + sack,
            least_tcp_header: 20 + options,
            psh: segment.flags.contains(Flags::PSH),
            remnant: segment.flags.intersects(Flags::PSH.with(Flags::FIN).with(Flags::URG)),
        };
        if offset <= next {
            let rto = self.rtt.rto().get().as_nanos();
            let quick = self.linux_acks().map_or(0, |acks| acks.quick);
            let next = self.rcv.buffer.next();
            linux.on_in_order(now, &text, text.end.min(next), rto, quick);
            linux.on_progress(next);
        } else {
            let span = self.out_of_order_span();
            let stored = self.rcv.buffer.out_of_order().containing(offset).is_some();
            let fresh = stored && repeated.is_none_or(|(start, end)| start > text.start || end < text.end);
            linux.on_out_of_order(&text, span, fresh, self.negotiated.sack());
        }
        self.rcv.linux = Some(linux);
    }

    /// Returns the distance from RCV.NXT to the end of the out-of-order data.
    fn out_of_order_span(&self) -> u64 {
        let ranges = self.rcv.buffer.out_of_order();
        ranges.last().map_or(0, |last| last.end - self.rcv.buffer.next())
    }

    /// Adds an out-of-order segment to the SACK blocks. If it displaces blocks that no ACK has reported yet,
    /// an ACK with those blocks is sent first.
    pub(super) fn remember_segment(&mut self, start: u64, end: u64) {
        let next = self.rcv.buffer.next();
        // Data beyond the window, or without room in the buffer, is not held.
        let Some((_, held)) = self.held_around(start) else { return };
        let end = end.min(held);
        // A FIN may be a duplicate, or in order.
        let Some(linux) = self.rcv.linux.as_mut().filter(|_| start > next) else { return };
        if linux.add_sack(start, end) {
            self.rcv.ack = AckDue::Now;
        }
    }

    /// Decides about the ACK once the segment has been processed.
    pub(in crate::tcp) fn settle_ack(&mut self, now: Instant, segment: &Segment<'_>) {
        let Some(rules) = self.linux_acks() else { return };
        let moment = Moment {
            now,
            rcv_nxt: self.rcv_nxt(),
            unacked: self.rcv_nxt() - self.rcv.last_ack_sent,
            holes: self.has_holes(),
            sack: self.negotiated.sack(),
            srtt: self.rtt.srtt().map(Duration::as_nanos),
            running: self.timers.delayed_ack,
        };
        let Some(linux) = &mut self.rcv.linux else { return };
        if !linux.acks.is_owed() || self.rcv.ack == AckDue::Now {
            return;
        }
        // tcp_ecn_accept_cwr(): a sender that has just reduced its window may have room for one segment only.
        if self.negotiated.ecn() && segment.flags.contains(Flags::CWR) && segment.seq_len() > 0 {
            linux.acks.owe_at_once();
        }
        match linux.decide(&moment, rules.compression) {
            Waiting::Not => {
                linux.choose(moment.rcv_nxt, self.rcv.adv);
                self.rcv.ack = AckDue::Now;
            }
            Waiting::Until(at) => {
                self.rcv.ack = AckDue::Delayed;
                self.timers.delayed_ack = Some(at);
            }
        }
    }

    /// Sends an ACK after a read, if one is due.
    pub(super) fn ack_read(&mut self) {
        let closed = !self.state.may_receive_data() || self.rcv.fin.is_some();
        let rcv_nxt = self.rcv_nxt();
        let copied = self.rcv.buffer.next() - self.rcv.buffer.readable() as u64;
        let (last_ack, edge) = (self.rcv.last_ack_sent, self.rcv.adv);
        let span = self.out_of_order_span();
        let asked = self.linux_acks().is_some() || self.tunes_window();
        let Some(linux) = &mut self.rcv.linux else { return };
        if linux.on_read(&Read { copied, rcv_nxt, last_ack, edge, span, closed })
            && asked
            && self.rcv.ack != AckDue::Now
        {
            linux.choose(rcv_nxt, edge);
            self.rcv.ack = AckDue::Now;
        }
    }

    /// Returns the first window of the connection, which starts after the peer's SYN.
    pub(in crate::tcp) fn first_window(&mut self, answers_syn: bool) -> u64 {
        let mss = self.negotiated.expected_mss(&self.profile, &self.options);
        match &mut self.rcv.linux {
            Some(linux) if linux.tunes_window() => {
                if answers_syn {
                    linux.answer_syn(mss);
                }
                linux.first_window()
            }
            _ => self.rcv.buffer.window().min(65_535) as u64,
        }
    }

    /// Returns the window for a segment that is sent now.
    pub(super) fn offer_tuned(&mut self, scale: u8) -> Advertisement {
        let (next, edge) = (self.rcv_nxt(), self.rcv.adv);
        let syn = !self.state.is_synchronized();
        let room = self.tuned_room();
        let Some(linux) = &mut self.rcv.linux else { return self.plain_window(scale) };
        let window = if syn { linux.first_window() } else { linux.offer_chosen(next, edge) };
        let window = window.min(room.max(edge.saturating_sub(next)));
        let field = (window >> scale).min(65_535);
        Advertisement { field: field as u16, edge: next + window, promised: next + window }
    }
}
