//! Output: `poll_packet` decides which segment is sent next, and `emit` and `emit_reset` write it.

use std::iter::once;

use airwire::options::{Layout, Options, Timestamps};
use airwire::piece::{Payload, Piece};
use airwire::segment::{self, Ecn, Flags, Header, Segment};
use airwire::seq::Seq;
use airwire::text::Known;
use airwire::time::Instant;

use super::Connection;
use super::Parts;
use crate::events::{EventKind, Offer};
use crate::profile::Resets;
use crate::tcp::sender::Choice;
use crate::tcp::socket::State;

/// The buffer that a segment is written to.
pub(crate) enum Out<'a> {
    /// Overwritten with a whole packet.
    Packet(&'a mut Vec<u8>),
    /// The same, without the TCP checksum, and [abbreviated](segment::abbreviate) if possible.
    Abbreviated(&'a mut Vec<u8>),
    /// The segment is appended to `piece` if it continues it; otherwise it overwrites `next`.
    Piece { piece: &'a mut Piece, next: &'a mut Piece },
}

impl Out<'_> {
    /// Writes a segment whose `text` has `len` bytes.
    fn put<'a>(
        &mut self,
        header: &Header,
        options: &Options,
        layout: Layout,
        len: usize,
        mut text: impl Iterator<Item = Payload<'a>>,
    ) {
        let write_options = |packet: &mut Vec<u8>| options.write(layout, packet);
        match self {
            Self::Packet(packet) => {
                segment::reserve(packet, len);
                let tcp = segment::emit_headers(packet, header, write_options, len);
                text.for_each(|text| text.copy_to(packet));
                segment::fill_checksum(packet, tcp, header);
            }
            Self::Abbreviated(packet) => {
                segment::emit_headers(packet, header, write_options, len);
                match text.next() {
                    None => {}
                    Some(Payload::Known(known)) if known.len() == len && len >= Known::MIN_ABBREVIATED => {
                        segment::abbreviate(packet, known);
                    }
                    Some(first) => once(first).chain(text).for_each(|text| text.copy_to(packet)),
                }
            }
            Self::Piece { piece, .. } if piece.is_empty() => piece.begin(header, options, layout, len, text),
            Self::Piece { piece, .. } if piece.can_append(header, options, len) => {
                piece.append(header, len, text);
            }
            Self::Piece { next, .. } => next.begin(header, options, layout, len, text),
        }
    }

    /// Returns how many segments like the last one, with `len` bytes of text, can be appended.
    fn room_after(&self, len: usize) -> usize {
        match self {
            Self::Piece { piece, next } if next.is_empty() => piece.room_for(len),
            _ => 0,
        }
    }

    /// Appends as many segments like the last one as [`Self::room_after`] permits.
    fn append<'a>(&mut self, count: usize, text: impl Iterator<Item = Payload<'a>>) {
        if let Self::Piece { piece, .. } = self {
            piece.append_many(count, text);
        }
    }
}

impl Connection {
    /// Returns true if a poll would find nothing and change nothing. If false, a poll may still find nothing.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.sends_only_acks() && !self.receiver.ack_is_due() && !self.cx.lifecycle.has_pending()
    }

    /// Returns true if nothing but ACKs can be sent now. Most receivers never send anything else.
    #[inline]
    fn sends_only_acks(&self) -> bool {
        self.sender.is_quiet() && self.state().is_synchronized()
    }

    /// Writes the next segment that must be sent, and into a piece also those that follow for the same reasons.
    /// Returns the number of segments.
    #[inline]
    pub(crate) fn poll_packets(&mut self, now: Instant, out: &mut Out<'_>) -> usize {
        if self.is_quiet() { 0 } else { self.emit_next(now, out) }
    }

    fn emit_next(&mut self, now: Instant, out: &mut Out<'_>) -> usize {
        if self.cx.lifecycle.reset_is_due() {
            self.emit_reset(now, out);
            self.end(None);
            return 1;
        }
        match self.state() {
            State::Closed => return 0,
            state @ (State::SynSent | State::SynReceived) => {
                if self.cx.lifecycle.syn_is_due() {
                    self.emit_syn(now, out);
                    return 1;
                }
                if !self.is_open_early() {
                    // This ACK answers an unacceptable segment; the SYN,ACK has already been sent.
                    let due = state == State::SynReceived && self.receiver.ack_is_due();
                    if due {
                        self.emit_ack(now, out, self.sender.nxt());
                    }
                    return usize::from(due);
                }
            }
            _ => {}
        }
        // Kernels send the third segment of the handshake without data, and some peers, such as passt's TCP,
        // drop its data. SACK blocks are sent without data too, unless data segments carry them.
        let alone = self.cx.lifecycle.take_lone_ack();
        let reports_blocks = self.receiver.has_blocks_to_report(&self.cx.profile, &self.cx.negotiated);
        if self.receiver.ack_is_due() && (alone || (reports_blocks && !self.cx.profile.sending.sack_on_data))
        {
            self.emit_due_ack(now, out);
            return 1;
        }
        if !self.sends_only_acks() {
            let count = self.emit_next_text(now, out, reports_blocks);
            if count > 0 {
                return count;
            }
        }
        if self.cx.lifecycle.take_keepalive() {
            self.statistics.keepalives += 1;
            let at = self.sender.on_keepalive_sent();
            self.emit_ack(now, out, at);
            return 1;
        }
        if self.receiver.ack_is_due() {
            self.emit_due_ack(now, out);
            return 1;
        }
        0
    }

    /// Sends the next segments with data or a FIN, or a window probe. Returns their number.
    fn emit_next_text(&mut self, now: Instant, out: &mut Out<'_>, reports_blocks: bool) -> usize {
        if let Some(choice) = self.choose_text(now, reports_blocks) {
            return self.emit_text(now, out, &choice);
        }
        let Parts { sender, statistics, cx, .. } = self.parts();
        let Some(probe) = sender.take_window_probe(cx, statistics, now) else { return 0 };
        self.emit(now, out, probe.start, (probe.flags, Ecn::NotEct), (probe.start, probe.data_end));
        1
    }

    fn choose_text(&mut self, now: Instant, reports_blocks: bool) -> Option<Choice> {
        let sends = match self.is_open_early() {
            true => self.prepare_early_data(now),
            false => self.state().may_send_data(),
        };
        let Parts { sender, receiver, statistics, cx, .. } = self.parts();
        sender.reserve_for_blocks(receiver.sack_len_on_data(cx));
        sender.choose(cx, statistics, now, (sends, reports_blocks))
    }

    /// Writes the chosen segment and those that follow it. Returns the number of segments.
    fn emit_text(&mut self, now: Instant, out: &mut Out<'_>, choice: &Choice) -> usize {
        let Parts { sender, receiver, cx, .. } = self.parts();
        let (data_end, flags, ecn) = sender.header_fields(cx, now, choice);
        if cx.profile.sending.sack_on_data && sender.continues_burst(choice) {
            receiver.repeat_duplicate();
        }
        self.emit(now, out, choice.start, (flags, ecn), (choice.start, data_end));
        let Parts { sender, receiver, statistics, cx, .. } = self.parts();
        if data_end > choice.start {
            receiver.on_data_sent(now);
        }
        sender.on_sent(cx, statistics, now, choice, data_end);
        1 + self.emit_more(now, out, choice)
    }

    /// Appends segments to the piece that follow `first` for the same reasons. Returns their number.
    fn emit_more(&mut self, now: Instant, out: &mut Out<'_>, first: &Choice) -> usize {
        let room = out.room_after(first.len());
        if room == 0 {
            return 0;
        }
        let Parts { sender, statistics, cx, .. } = self.parts();
        let count = sender.send_more(cx, statistics, now, first, room);
        if count > 0 {
            let end = first.end() + (count * first.len()) as u64;
            out.append(count, self.sender.payloads(first.end(), end));
            self.statistics.segments_out += count as u64;
        }
        count
    }

    fn emit_syn(&mut self, now: Instant, out: &mut Out<'_>) {
        self.cx.lifecycle.on_syn_sent();
        let state = self.state();
        let mut flags = Flags::SYN;
        if state == State::SynReceived {
            flags = flags.with(Flags::ACK);
            if self.cx.negotiated.ecn() {
                flags = flags.with(Flags::ECE);
            }
        } else if self.cx.profile.handshake.ecn && self.sender.syn_timeouts() == 0 {
            // RFC 3168 §6.1.1.1: a SYN may have been dropped because of its ECN bits, so clear the bits in
            // retransmissions.
            flags = flags.with(Flags::ECE).with(Flags::CWR);
        }
        let text = self.syn_text_len();
        self.emit(now, out, 0, (flags, Ecn::NotEct), (1, 1 + text));
        let is_listed = self.cx.fast_open.on_syn_sent(state, now, text);
        let tsval = self.cx.negotiated.ts_now(&self.cx.profile, now);
        self.sender.on_syn_sent(&mut self.statistics, now, (tsval, text, is_listed));
        if self.is_request() {
            // tcp_check_req() of Linux 6.18: a SYN,ACK for a repeated SYN restarts the timer.
            self.sender.restart_rto(now);
        }
    }

    /// Sends the ACK that is due. In some profiles it repeats a FIN that is not acknowledged.
    fn emit_due_ack(&mut self, now: Instant, out: &mut Out<'_>) {
        let repeats =
            self.cx.profile.acks.repeat_fin && matches!(self.state(), State::Closing | State::LastAck);
        match self.sender.fin_to_repeat().filter(|_| repeats) {
            Some(fin) => self.emit(now, out, fin, (Flags::ACK.with(Flags::FIN), Ecn::NotEct), (fin, fin)),
            None => self.emit_ack(now, out, self.sender.bare_seq(&self.cx)),
        }
    }

    fn emit_ack(&mut self, now: Instant, out: &mut Out<'_>, at: u64) {
        self.emit(now, out, at, (Flags::ACK, Ecn::NotEct), (at, at));
        self.sender.on_bare_ack_sent(now);
    }

    fn emit_reset(&mut self, now: Instant, out: &mut Out<'_>) {
        let at = self.sender.reset_at(&self.cx);
        let flags = Flags::RST.with(Flags::ACK);
        if self.cx.profile.validation.resets == Resets::Linux {
            self.emit(now, out, at, (flags, Ecn::NotEct), (at, at));
            return;
        }
        let header = Header {
            seq: self.sender.iss().at(at),
            ack: self.receiver.nxt_seq(),
            ..self.header(flags, Ecn::NotEct)
        };
        let timestamps = self.cx.negotiated.timestamps().then(|| self.timestamps(now));
        let options = Options { timestamps, ..Options::default() };
        self.statistics.segments_out += 1;
        out.put(&header, &options, self.cx.profile.layout, 0, std::iter::empty());
    }

    /// Returns the timestamps of the RST that answers `segment` (RFC 7323 §3.2). The RST has an ACK, and
    /// therefore a TSecr, only if `segment` has none.
    pub(in crate::tcp) fn timestamps_of_reset(
        &self,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Option<Timestamps> {
        if self.cx.profile.validation.resets == Resets::Linux {
            return None;
        }
        let timestamps = self.cx.negotiated.timestamps().then(|| self.timestamps(now))?;
        let answers_ack = segment.flags.contains(Flags::ACK);
        Some(Timestamps { ecr: if answers_ack { 0 } else { timestamps.ecr }, ..timestamps })
    }

    /// Builds a segment at offset `at` with the data in the range `text`, and records what it acknowledges.
    fn emit(
        &mut self,
        now: Instant,
        out: &mut Out<'_>,
        at: u64,
        (mut flags, ecn): (Flags, Ecn),
        text: (u64, u64),
    ) {
        let syn = flags.contains(Flags::SYN);
        if self.receiver.echoes_ce() && !syn {
            flags = flags.with(Flags::ECE);
        }
        let Parts { sender, receiver, charge, cx, .. } = self.parts();
        let max_seg = || sender.max_seg(&cx.negotiated, &cx.options);
        let scale = if syn { 0 } else { cx.negotiated.rcv_scale() };
        let window = receiver.window_to_advertise(cx, charge.budget(), scale, max_seg);
        let acks = flags.contains(Flags::ACK);
        let header = Header {
            seq: self.sender.iss().at(at),
            ack: if acks { self.receiver.nxt_seq() } else { Seq(0) },
            window: window.field,
            ..self.header(flags, ecn)
        };
        let options = if syn { self.syn_options(now) } else { self.segment_options(now, text.0 == text.1) };
        if syn {
            self.log(|| EventKind::Offered(Offer::of(&options, flags)));
        }
        let len = (text.1 - text.0) as usize;
        out.put(&header, &options, self.cx.profile.layout, len, self.sender.payloads(text.0, text.1));
        self.statistics.segments_out += 1;
        if acks {
            self.receiver.on_ack_sent(&window);
        }
    }

    fn header(&self, flags: Flags, ecn: Ecn) -> Header {
        Header {
            src: self.local,
            dst: self.remote,
            seq: Seq(0),
            ack: Seq(0),
            flags,
            window: 0,
            ecn,
            tos: self.cx.options.tos,
            ttl: self.cx.profile.ttl,
            dont_fragment: self.sender.forbids_fragments(&self.cx.options),
            // The identification begins at a number that cannot be guessed, and grows with each packet.
            ident: (self.sender.iss().0 as u16).wrapping_add(self.statistics.segments_out as u16),
        }
    }

    fn timestamps(&self, now: Instant) -> Timestamps {
        Timestamps { val: self.cx.negotiated.ts_now(&self.cx.profile, now), ecr: self.receiver.ts_echo() }
    }

    fn syn_options(&self, now: Instant) -> Options {
        let (negotiated, state) = (&self.cx.negotiated, self.state());
        // A SYN,ACK repeats only options that the SYN offered (RFC 7323 §2.2, §3.2; RFC 2018 §2).
        let repeats_offer = self.cx.profile.handshake.repeats_offer && !self.cx.lifecycle.is_passive();
        let (timestamps, scaled, sack) = match state == State::SynReceived && !repeats_offer {
            true => (negotiated.timestamps(), negotiated.scaling(), negotiated.sack()),
            false => (
                self.cx.profile.handshake.timestamps,
                self.cx.profile.handshake.window_scale.is_some(),
                self.offers_sack(),
            ),
        };
        let scale = match repeats_offer {
            true => self.receiver.scale_to_offer(&self.cx.profile),
            false => negotiated.rcv_scale(),
        };
        Options {
            mss: Some(negotiated.advertised_mss(&self.cx.profile, &self.cx.options)),
            window_scale: scaled.then_some(scale),
            sack_permitted: sack,
            timestamps: timestamps.then(|| self.timestamps(now)),
            fast_open: self.cx.fast_open.option(state),
            ..Options::default()
        }
    }

    fn segment_options(&self, now: Instant, pure_ack: bool) -> Options {
        let mut options = Options::default();
        if self.cx.negotiated.timestamps() {
            options.timestamps = Some(self.timestamps(now));
        }
        let (profile, negotiated) = (&self.cx.profile, &self.cx.negotiated);
        if (pure_ack || profile.sending.sack_on_data)
            && self.receiver.has_blocks_to_report(profile, negotiated)
        {
            options.sack = self.receiver.blocks_to_report(profile);
        }
        if pure_ack {
            options.reordered = self.receiver.alarm_count(&self.cx.negotiated);
        }
        options
    }
}
