//! Output: `poll_packet` decides which segment is sent next, `emit` builds it, and `emit_reset` builds RSTs.

use airwire::options::{Layout, Options, Timestamps};
use airwire::piece::{Piece, Text};
use airwire::segment::{self, Ecn, Flags, Header, Segment};
use airwire::time::{Duration, Instant};

use super::connection::Connection;
use super::mtu_search::NextSegment;
use super::pacer::Pacer;
use super::socket::State;
use super::variables::{AckDue, Tail};
use crate::events::{EventKind, Offer};
use crate::profile::{Nagle, Resets, TimerNews, WindowProbe};
use crate::recovery::{Departure, Transmission};

/// Time that a corked partial segment is held (as documented for TCP_CORK).
const CORK: Duration = Duration::from_millis(200);

/// A segment with data or a FIN that may be sent now.
#[derive(Clone, Copy, Debug)]
struct Choice {
    start: u64,
    end: u64,
    kind: Transmission,
}

/// The buffer that a segment is written to.
pub(crate) enum Out<'a> {
    /// Overwritten with a whole packet.
    Packet(&'a mut Vec<u8>),
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
        text: impl Iterator<Item = Text<'a>>,
    ) {
        match self {
            Self::Packet(packet) => {
                let write_options = |packet: &mut Vec<u8>| options.write(layout, packet);
                let tcp = segment::emit_headers(packet, header, write_options, len);
                text.for_each(|text| text.copy_to(packet));
                segment::sum(packet, tcp, header);
            }
            Self::Piece { piece, .. } if piece.is_empty() => piece.begin(header, options, layout, len, text),
            Self::Piece { piece, .. } if piece.is_continued_by(header, options, len) => {
                piece.go_on(header, len, text);
            }
            Self::Piece { next, .. } => next.begin(header, options, layout, len, text),
        }
    }
}

impl Connection {
    /// Writes the next segment that must be sent. Returns false if there is none.
    pub(crate) fn poll_packet(&mut self, now: Instant, out: &mut Out<'_>) -> bool {
        if self.pending.reset {
            self.emit_reset(now, out);
            self.end(None);
            return true;
        }
        match self.state {
            State::Closed => return false,
            State::SynSent | State::SynReceived => {
                if self.pending.syn {
                    self.emit_syn(now, out);
                    return true;
                }
                if !self.is_open_early() {
                    // This ACK answers an unacceptable segment; the SYN,ACK has already been sent.
                    let due = self.state == State::SynReceived && self.rcv.ack == AckDue::Now;
                    if due {
                        self.emit_ack(now, out, self.flight.max());
                    }
                    return due;
                }
            }
            _ => {}
        }
        // The handshake's third segment is sent alone, as the kernels do: some peers, such as passt's TCP,
        // drop data that comes with it. SACK blocks do not wait either, because data segments have no room
        // for them.
        let alone = std::mem::take(&mut self.pending.handshake_ack);
        if self.rcv.ack == AckDue::Now && (alone || self.has_blocks_to_report()) {
            self.emit_due_ack(now, out);
            return true;
        }
        if let Some(choice) = self.choose(now) {
            self.emit_text(now, out, choice);
            return true;
        }
        if std::mem::take(&mut self.pending.window_probe) && self.emit_window_probe(now, out) {
            return true;
        }
        if std::mem::take(&mut self.pending.keepalive) {
            // RFC 9293 §3.8.4: an old sequence number makes the peer answer.
            self.timers.probes_sent += 1;
            self.statistics.keepalives += 1;
            self.emit_ack(now, out, self.flight.una().saturating_sub(1));
            return true;
        }
        if self.rcv.ack == AckDue::Now {
            self.emit_due_ack(now, out);
            return true;
        }
        false
    }

    fn choose(&mut self, now: Instant) -> Option<Choice> {
        let is_early = self.is_open_early();
        let sends = if is_early { self.prepare_early_data(now) } else { self.state.may_send_data() };
        if !sends && (is_early || self.flight.is_empty()) {
            return None;
        }
        let is_its_turn = self.pacer().is_none_or(|pacer| pacer.permits(now));
        if !is_its_turn {
            return if self.is_within_piece() { self.choose_new(now) } else { None };
        }
        if is_early {
            // Nothing but the SYN,ACK is retransmitted before it is acknowledged.
            return self.choose_new(now);
        }
        if let Some(choice) = self.choose_old(now) {
            return Some(choice);
        }
        if let Some(choice) = self.choose_new(now) {
            return Some(choice);
        }
        if self.flight.is_empty() || self.snd.wnd == 0 {
            return None;
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        let (start, kind) = recovery.next_resend_without_new_data(&mut path)?;
        self.clip_old(start, kind)
    }

    fn choose_old(&mut self, now: Instant) -> Option<Choice> {
        if self.flight.is_empty() {
            return None;
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        let (start, kind) = recovery.next_resend(&mut path)?;
        // The peer shrank its window: retransmit only the first segment (RFC 9293 §3.8.6).
        if start >= self.flight.una() + self.snd.wnd && start > self.flight.una() {
            return None;
        }
        self.clip_old(start, kind)
    }

    /// Returns the segment at `start` for retransmission, cut to the current SMSS.
    fn clip_old(&mut self, start: u64, kind: Transmission) -> Option<Choice> {
        let segment = self.flight.segment_at(start)?;
        let (start, mut end) = (segment.start, segment.end);
        if end - start > self.snd.smss + 1 || (end - start > self.snd.smss && self.snd.fin != Some(end - 1)) {
            end = start + self.snd.smss;
            self.flight.split(start, end);
        }
        Some(Choice { start, end, kind })
    }

    fn choose_new(&mut self, now: Instant) -> Option<Choice> {
        self.raise_pmtu(now);
        let start = self.flight.max();
        let data_end = self.snd.buffer.end();
        let fin_due = self.fin_to_send();
        let fin_sent = fin_due.is_some_and(|fin| start > fin);
        if fin_sent || (start >= data_end && fin_due.is_none()) {
            return None;
        }
        let edge = self.flight.una() + self.snd.wnd;
        // A segment does not extend beyond the end of a record.
        let unsent = self.snd.buffer.record_end(start) - start;
        let usable = edge.saturating_sub(start).min(unsent);
        let next = self.next_segment(now, start, edge, unsent);
        let len = match next {
            NextSegment::Ordinary => usable.min(self.snd.smss),
            NextSegment::Probe(data) => data,
            NextSegment::ProbeLater => return None,
        };
        let last = fin_due == Some(start + len);
        // Nothing can be added to the end of a record, so it does not wait (Linux 6.18, tcp_write_xmit(), where
        // only the last buffer in the queue waits).
        let is_complete = len == unsent && start + len < data_end;
        // A FIN takes a sequence number, and therefore needs space in the window.
        let fin = last && start + len < edge;
        if len == 0 && !fin {
            if self.flight.is_empty() {
                self.start_persist(now);
            }
            return None;
        }
        if !last && !is_complete && len < self.snd.smss && !self.small_segment_may_leave(now, len, unsent) {
            return None;
        }
        if self.flight.len() >= self.most_in_flight() {
            return None;
        }
        let (recovery, path) = self.recovery_and_path(now);
        let may_leave = recovery.may_send_new(&path, len.max(u64::from(fin)));
        if !may_leave || (next == NextSegment::Ordinary && self.defers(now, start, edge, unsent)) {
            return None;
        }
        if next != NextSegment::Ordinary {
            self.begin_mtu_probe(now, start, len);
        }
        self.stop_persist();
        // Data that was held back is sent with this segment, or starts to wait again.
        self.timers.cork = None;
        self.snd.small_once = false;
        Some(Choice { start, end: start + len + u64::from(fin), kind: Transmission::New })
    }

    /// Returns the offset of our FIN, if it may be sent. Before the handshake is complete, only close() sends
    /// one, and not a shutdown of writing (Linux, tcp_close_state(), tcp_shutdown()).
    pub(super) fn fin_to_send(&self) -> Option<u64> {
        self.snd.fin.filter(|_| self.state.is_synchronized() || self.orphaned)
    }

    /// Nagle and the sender's side of silly-window avoidance (RFC 9293 §3.7.4, §3.8.6.2.1).
    fn small_segment_may_leave(&mut self, now: Instant, len: u64, unsent: u64) -> bool {
        let idle = self.flight.is_empty();
        if len < unsent {
            // The segment is small because of the window, not because of the application.
            if len * 2 >= self.snd.max_wnd {
                return true;
            }
            let fits = 2 * (self.snd.smss + len) <= self.snd.max_wnd;
            if self.profile.fills_window && fits && self.follows_full_segment(now) && self.nagle_allows(idle)
            {
                return true;
            }
            if !idle {
                return false;
            }
            let overdue = std::mem::take(&mut self.snd.small_once);
            if !overdue {
                self.start_persist(now);
            }
            return overdue;
        }
        // RFC 8985 §7.3: the waiting segment is new data, which makes a better probe than a retransmission.
        if self.snd.pushed || self.recovery.is_probing() {
            return true;
        }
        if self.options.cork || self.snd.tail == Tail::Waits {
            if self.timers.cork.is_none() {
                self.timers.cork = Some(now + CORK);
            }
            return std::mem::take(&mut self.snd.small_once);
        }
        self.nagle_allows(idle)
    }

    /// Returns true if a small segment must wait while data is in flight.
    pub(super) fn holds_small_segments(&self) -> bool {
        let corked = self.options.cork || self.snd.tail == Tail::Waits;
        !self.snd.pushed && (corked || !self.nagle_allows(false))
    }

    fn nagle_allows(&self, idle: bool) -> bool {
        match self.profile.nagle {
            _ if self.options.nodelay => true,
            Nagle::Off => true,
            Nagle::Classic => idle,
            Nagle::Minshall => self.snd.small_end <= self.flight.una(),
        }
    }

    /// Returns true if the last segment sent was full-sized and was sent at this instant.
    fn follows_full_segment(&self, now: Instant) -> bool {
        let last = self.flight.iter().next_back();
        last.is_some_and(|last| last.last_sent == now && last.len() >= self.snd.smss)
    }

    fn emit_text(&mut self, now: Instant, out: &mut Out<'_>, choice: Choice) {
        let Choice { start, end, kind } = choice;
        let data_end = end.min(self.snd.buffer.end());
        let mut flags = Flags::ACK;
        if self.snd.fin == Some(end - 1) {
            flags = flags.with(Flags::FIN);
        }
        let pushes = match data_end == self.snd.buffer.end() {
            true => self.snd.tail == Tail::End,
            false => self.snd.buffer.ends_record(data_end),
        };
        if pushes && data_end > start {
            flags = flags.with(Flags::PSH);
        }
        let mut ecn = Ecn::NotEct;
        if self.negotiated.ecn() && kind == Transmission::New && data_end > start {
            // RFC 3168: never on a retransmission (§6.1.5) or without data (§6.1.4).
            ecn = Ecn::Ect0;
            if self.recovery.take_cwr() {
                flags = flags.with(Flags::CWR);
            }
        }
        let tsval = self.negotiated.ts_now(&self.profile, now);
        self.emit(now, out, start, flags, ecn, (start, data_end));

        if let Some(linux) = self.rcv.linux.as_mut().filter(|_| data_end > start) {
            linux.on_text_sent(now);
        }
        if kind == Transmission::New {
            if self.rtt.style().times_one_segment() && self.timed.is_none() {
                self.timed = Some(Box::new((end, now)));
            }
            if end - start < self.snd.smss {
                self.snd.small_end = end;
            }
            self.flight.on_new(end, now, tsval);
            if self.is_mtu_probe(end) {
                self.flight.set_probes_mtu(end, true);
            }
        } else {
            self.abandon_mtu_probe();
            self.statistics.bytes_resent += data_end - start;
            // Karn: retransmitting the timed segment makes its timing ambiguous, and a loss distorts it.
            let ambiguous =
                !self.rtt.style().times_copies() && self.timed.as_ref().is_some_and(|timed| timed.0 == end);
            if ambiguous || matches!(kind, Transmission::FastRetransmit | Transmission::Timeout) {
                self.timed = None;
            }
            if self.recovery.leaves_apart_from_pass(start) {
                self.flight.on_resent_apart(start, now, tsval);
            } else {
                self.flight.on_resent(start, now, tsval);
            }
        }
        self.snd.last_sent = now;
        self.statistics.data_segments_out += 1;
        let departure = Departure { start, end, kind, tsval };
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_sent(&mut path, &departure);
        self.pace(now, data_end - start);
        if self.timers.rto.is_none() || self.is_awaited_copy(now, start, kind) {
            self.restart_rto(now);
        }
    }

    /// Returns true if the first outstanding segment was retransmitted and the timer must allow time for its
    /// ACK.
    fn is_awaited_copy(&self, now: Instant, start: u64, kind: Transmission) -> bool {
        self.profile.timer_news == TimerNews::Linux
            && kind != Transmission::New
            && start == self.flight.una()
            && self.recovery.waits_until(now).is_none()
    }

    /// Charges `bytes` of sent data to the pacer, which delays the next segment.
    #[inline]
    fn pace(&mut self, now: Instant, bytes: u64) {
        if self.pacer().is_none() {
            return;
        }
        let (recovery, path) = self.recovery_and_path(now);
        let rate = recovery.pacing_rate(&path);
        if let (Some(pacer), Some(rate)) = (self.pacer(), rate) {
            pacer.on_sent(bytes, rate);
        }
    }

    #[inline]
    pub(super) fn pacer(&mut self) -> Option<&mut Pacer> {
        self.snd.spacing.as_mut()?.pacer.as_mut()
    }

    fn emit_syn(&mut self, now: Instant, out: &mut Out<'_>) {
        self.pending.syn = false;
        let mut flags = Flags::SYN;
        if self.state == State::SynReceived {
            flags = flags.with(Flags::ACK);
            if self.negotiated.ecn() {
                flags = flags.with(Flags::ECE);
            }
        } else if self.profile.ecn && self.syn_timeouts == 0 {
            // RFC 3168 §6.1.1.1: a SYN may have been dropped because of its ECN bits, so retransmit it
            // without them.
            flags = flags.with(Flags::ECE).with(Flags::CWR);
        }
        let tsval = self.negotiated.ts_now(&self.profile, now);
        let text = self.text_of_syn();
        self.emit(now, out, 0, flags, Ecn::NotEct, (1, 1 + text));
        let is_listed = self.note_syn_sent(now, text);
        if self.timers.rto.is_some() {
            self.handshake_resent = self.handshake_resent.saturating_add(1);
        }
        if is_listed && self.flight.max() == 0 {
            self.flight.on_new(1, now, tsval);
        } else if is_listed {
            self.flight.on_resent(0, now, tsval);
        }
        if text > 0 {
            self.flight.on_new(1 + text, now, tsval);
            self.statistics.data_segments_out += 1;
        }
        if self.timers.rto.is_none() {
            self.restart_rto(now);
        }
    }

    /// Returns true if data or a FIN is unacknowledged, so that a window probe has something to carry.
    pub(super) fn waits_for_window(&self) -> bool {
        let una = self.flight.una();
        una < self.snd.buffer.end() || self.snd.fin.is_some_and(|fin| una <= fin)
    }

    fn emit_window_probe(&mut self, now: Instant, out: &mut Out<'_>) -> bool {
        if self.snd.wnd > 0 || !self.waits_for_window() {
            return false;
        }
        self.timers.probes_sent += 1;
        self.statistics.window_probes += 1;
        match self.profile.window_probe {
            WindowProbe::OldSequence => self.emit_ack(now, out, self.flight.una().saturating_sub(1)),
            WindowProbe::NewOctet => {
                let start = self.flight.una();
                let end = self.flight.head().map_or(start + 1, |head| head.end.min(start + 1));
                if self.flight.is_empty() {
                    self.flight.on_new(end, now, self.negotiated.ts_now(&self.profile, now));
                } else {
                    self.flight.split(start, end);
                    self.flight.on_resent(start, now, self.negotiated.ts_now(&self.profile, now));
                }
                let data_end = end.min(self.snd.buffer.end());
                let flags = if data_end < end { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
                self.emit(now, out, start, flags, Ecn::NotEct, (start, data_end));
            }
        }
        true
    }

    /// Sends the ACK that is due. In some profiles it repeats a FIN that is not acknowledged.
    fn emit_due_ack(&mut self, now: Instant, out: &mut Out<'_>) {
        let next = self.flight.max();
        let repeats = self.profile.acks_repeat_fin && matches!(self.state, State::Closing | State::LastAck);
        match self.snd.fin.filter(|fin| repeats && *fin < next) {
            Some(fin) => {
                self.emit(now, out, fin, Flags::ACK.with(Flags::FIN), Ecn::NotEct, (fin, fin));
            }
            None => self.emit_ack(now, out, next),
        }
    }

    fn emit_ack(&mut self, now: Instant, out: &mut Out<'_>, at: u64) {
        self.emit(now, out, at, Flags::ACK, Ecn::NotEct, (at, at));
    }

    fn emit_reset(&mut self, now: Instant, out: &mut Out<'_>) {
        let at = self.flight.max().min(self.flight.una() + self.snd.wnd.max(1));
        let flags = Flags::RST.with(Flags::ACK);
        if self.profile.resets == Resets::Linux {
            self.emit(now, out, at, flags, Ecn::NotEct, (at, at));
            return;
        }
        let header = Header {
            seq: self.snd.iss.at(at),
            ack: self.rcv.irs.at(self.rcv_nxt()),
            flags,
            window: 0,
            ..self.header(Flags::NONE, Ecn::NotEct)
        };
        let timestamps = self.negotiated.timestamps().then(|| self.timestamps(now));
        let options = Options { timestamps, ..Options::default() };
        self.statistics.segments_out += 1;
        out.put(&header, &options, self.profile.layout, 0, std::iter::empty());
    }

    /// Returns the timestamps of the RST that answers `segment` (RFC 7323 §3.2). The RST has an ACK, and
    /// therefore a TSecr, only if `segment` has none.
    pub(super) fn timestamps_of_reset(&self, now: Instant, segment: &Segment<'_>) -> Option<Timestamps> {
        if self.profile.resets == Resets::Linux {
            return None;
        }
        let timestamps = self.negotiated.timestamps().then(|| self.timestamps(now))?;
        let answers_ack = segment.flags.contains(Flags::ACK);
        Some(Timestamps { ecr: if answers_ack { 0 } else { timestamps.ecr }, ..timestamps })
    }

    /// Builds a segment at offset `at` with the data in the range `text`, and records what it acknowledges.
    fn emit(&mut self, now: Instant, out: &mut Out<'_>, at: u64, flags: Flags, ecn: Ecn, text: (u64, u64)) {
        let syn = flags.contains(Flags::SYN);
        let mut flags = flags;
        if self.rcv.echo_ce && !syn {
            flags = flags.with(Flags::ECE);
        }
        let window = self.window_to_advertise(if syn { 0 } else { self.negotiated.rcv_scale() });
        let header = Header {
            seq: self.snd.iss.at(at),
            ack: if flags.contains(Flags::ACK) {
                self.rcv.irs.at(self.rcv_nxt())
            } else {
                airwire::seq::Seq(0)
            },
            flags,
            window: window.field,
            ..self.header(flags, ecn)
        };
        let options = if syn { self.syn_options(now) } else { self.segment_options(now, text.0 == text.1) };
        if syn {
            self.log(|| EventKind::Offered(Offer::of(&options, flags)));
        }
        let len = (text.1 - text.0) as usize;
        out.put(&header, &options, self.profile.layout, len, self.snd.buffer.texts(text.0..text.1));
        self.ip_ident = self.ip_ident.wrapping_add(1);
        self.statistics.segments_out += 1;
        if flags.contains(Flags::ACK) {
            self.rcv.adv = self.rcv.adv.max(window.edge);
            self.rcv.promised = self.rcv.promised.max(window.promised);
            self.rcv.last_ack_sent = self.rcv_nxt();
            let offered = window.promised - self.rcv_nxt();
            if let Some(linux) = &mut self.rcv.linux {
                linux.on_ack_sent(offered);
            }
            self.rcv.ack = AckDue::No;
            self.rcv.dsack = None;
            self.forget_blocks();
            self.rcv.copy_tsval = None;
            self.timers.delayed_ack = None;
        }
    }

    fn header(&self, flags: Flags, ecn: Ecn) -> Header {
        Header {
            src: self.local,
            dst: self.remote,
            seq: airwire::seq::Seq(0),
            ack: airwire::seq::Seq(0),
            flags,
            window: 0,
            ecn,
            tos: self.options.tos,
            ttl: self.profile.ttl,
            dont_fragment: self.forbids_fragments(),
            ident: self.ip_ident,
        }
    }

    fn timestamps(&self, now: Instant) -> Timestamps {
        Timestamps {
            val: self.negotiated.ts_now(&self.profile, now),
            ecr: self.rcv.copy_tsval.unwrap_or(self.rcv.ts_recent),
        }
    }

    fn syn_options(&self, now: Instant) -> Options {
        let answering = self.state == State::SynReceived;
        // A SYN,ACK repeats only options that the SYN offered (RFC 7323 §2.2, §3.2; RFC 2018 §2).
        let timestamps = if answering { self.negotiated.timestamps() } else { self.profile.timestamps };
        let scaled = if answering { self.negotiated.scaling() } else { self.profile.window_scale.is_some() };
        Options {
            mss: Some(self.negotiated.advertised_mss(&self.profile, &self.options)),
            window_scale: scaled.then_some(self.negotiated.rcv_scale()),
            sack_permitted: if answering { self.negotiated.sack() } else { self.offers_sack() },
            timestamps: timestamps.then(|| self.timestamps(now)),
            fast_open: self.fast_open_option(),
            ..Options::default()
        }
    }

    fn segment_options(&self, now: Instant, pure_ack: bool) -> Options {
        let mut options = Options::default();
        if self.negotiated.timestamps() {
            options.timestamps = Some(self.timestamps(now));
        }
        if pure_ack {
            options.sack = self.blocks_to_report();
            // Without timestamps nothing is counted, so the option is omitted. A count of 0 would mean
            // something else.
            options.reordered =
                self.rcv.alarm.as_ref().filter(|_| self.negotiated.timestamps()).map(|alarm| alarm.count());
        }
        options
    }
}
