//! Linux 6.18's receiver: when an ACK is sent, and how large the window is.
//!
//! Time is counted in ticks of the kernel (`HZ`), and memory as a driver allocates it for a segment. The
//! names are from `struct tcp_sock` and `struct inet_connection_sock`.

mod acks;
mod buffer;
mod held;
mod memory;
mod out_of_order;
mod sacks;
#[cfg(test)]
mod tests;
mod window;

use airwire::time::Instant;

pub(super) use self::acks::{AckDelay, Acks};
use self::buffer::{Buffer, HeldSegment};
use self::held::{Decided, Held};
use self::memory::Memory;
pub(super) use self::out_of_order::{Advance, Placed};
use self::sacks::Sacks;
pub(super) use self::window::{Selected, Window};
use crate::profile::{AckCompression, ReceiveMemory};

/// The properties of a data segment that the receiver uses.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp::receiver) struct Text {
    pub(in crate::tcp::receiver) start: u64,
    pub(in crate::tcp::receiver) end: u64,
    /// A FIN follows the data.
    pub(in crate::tcp::receiver) fin: bool,
    /// Bytes of data in this segment, and in the largest segment that may arrive.
    pub(in crate::tcp::receiver) len: u32,
    pub(in crate::tcp::receiver) advmss: u32,
    /// Bytes of IP and TCP headers, including options.
    pub(in crate::tcp::receiver) headers: u32,
    /// Bytes of this TCP header, and of the shortest one on this connection.
    pub(in crate::tcp::receiver) tcp_header: u32,
    pub(in crate::tcp::receiver) min_tcp_header: u32,
    pub(in crate::tcp::receiver) psh: bool,
    /// PSH, FIN, URG or SYN: the segment may be smaller than full-sized (TCP_REMNANT).
    pub(in crate::tcp::receiver) remnant: bool,
}

impl Text {
    fn buffer(&self) -> Buffer {
        Buffer::of_packet(self.headers + self.len)
    }

    fn truesize(&self) -> u32 {
        self.buffer().truesize
    }

    fn segment(&self) -> HeldSegment {
        let fin = self.fin.then_some(self.end);
        HeldSegment::new(self.start, self.end + u64::from(self.fin), fin, self.buffer())
    }
}

/// The values that decide whether an ACK is delayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckState {
    pub(super) now: Instant,
    pub(super) rcv_nxt: u64,
    /// Bytes that were received and not acknowledged.
    pub(super) unacked: u64,
    /// True if out-of-order data is held.
    pub(super) has_holes: bool,
    /// True if SACK was negotiated.
    pub(super) sack: bool,
    /// The sender's smoothed round-trip time in nanoseconds, if there is one.
    pub(super) srtt: Option<u64>,
    /// Deadline of an ACK that is already delayed.
    pub(super) timer: Option<Instant>,
}

/// The state after the application has read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    /// The offset after the last byte that was read.
    pub(super) copied_seq: u64,
    pub(super) rcv_nxt: u64,
    /// Last.ACK.sent, and the right edge of the advertised window.
    pub(super) last_ack: u64,
    pub(super) edge: u64,
    /// Distance from RCV.NXT to the end of the out-of-order data.
    pub(super) span: u64,
    /// True if no more data will arrive.
    pub(super) closed: bool,
}

/// The receiving side of one connection.
#[derive(Debug)]
pub(in crate::tcp::receiver) struct LinuxReceiver {
    pub(super) acks: Acks,
    pub(super) window: Window,
    held: Option<Box<Held>>,
}

impl LinuxReceiver {
    /// Creates a receiver. `advmss` is the MSS that we advertise; see [`Window::new`] for the other
    /// parameters.
    pub(in crate::tcp::receiver) fn new(
        memory: Option<ReceiveMemory>,
        locked: Option<usize>,
        advmss: u32,
    ) -> Self {
        Self { acks: Acks::default(), window: Window::new(memory, locked, advmss), held: None }
    }

    fn held(&mut self) -> &mut Held {
        self.held.get_or_insert_default()
    }

    /// Returns the memory cost of waiting segments (sk_rmem_alloc).
    fn used(&self) -> u64 {
        self.held.as_ref().map_or(0, |held| held.memory.used())
    }

    /// Returns true if a packet with data fits into the reserved memory (sk_forward_alloc). `queued` is the memory
    /// of unacknowledged data.
    pub(in crate::tcp::receiver) fn has_reserved(&self, packet: u32, queued: u64) -> bool {
        match &self.held {
            Some(held) => held.memory.has_reserved(packet, queued),
            None => Memory::default().has_reserved(packet, queued),
        }
    }

    /// Updates the memory of unacknowledged data, before a segment is held.
    pub(in crate::tcp::receiver) fn set_queued(&mut self, queued: u64) {
        if let Some(held) = &mut self.held {
            held.memory.set_queued(queued);
        }
    }

    /// Returns the bytes of memory that this accounting takes.
    pub(in crate::tcp::receiver) fn cost(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.memory.cost())
    }

    fn free_if_unused(&mut self) {
        self.held.take_if(|held| held.is_unused());
    }

    /// Chooses the window for a SYN,ACK. `mss` is the data of the largest segment that may arrive.
    pub(in crate::tcp::receiver) fn choose_first_window(&mut self, mss: u32) {
        self.window.choose_first(mss);
    }

    /// Returns the window of a SYN.
    pub(in crate::tcp::receiver) fn first_window(&self) -> u64 {
        self.window.rcv_wnd()
    }

    /// Returns the shift count for our SYN; see [`Window::scale_to_offer`].
    pub(in crate::tcp::receiver) fn scale_to_offer(&self, settable: usize) -> u8 {
        self.window.scale_to_offer(settable)
    }

    /// Returns the bytes of memory that received data may take (sk_rcvbuf).
    pub(in crate::tcp::receiver) fn receive_memory(&self) -> usize {
        self.window.receive_memory()
    }

    /// Initialises the receiver when the connection opens; see [`Window::establish`].
    pub(in crate::tcp::receiver) fn establish(
        &mut self,
        now: Instant,
        scale: u8,
        advmss: u32,
        smss: u64,
        copied_seq: u64,
    ) {
        self.window.establish(now, scale, advmss, smss, copied_seq);
        self.acks.establish(now);
    }

    /// Returns true if this receiver determines the window.
    pub(in crate::tcp::receiver) fn tunes_window(&self) -> bool {
        self.window.is_tuned()
    }

    /// Applies SO_RCVBUF.
    pub(in crate::tcp::receiver) fn lock(&mut self, size: usize) {
        self.window.lock(size);
    }

    /// Returns true if data or a FIN after a hole has arrived.
    pub(in crate::tcp::receiver) fn has_out_of_order(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.memory.out_of_order().is_empty())
    }

    /// Returns true if a FIN after a hole has arrived.
    pub(in crate::tcp::receiver) fn has_early_fin(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.memory.out_of_order().has_fin())
    }

    /// Processes in-order data (tcp_event_data_recv()).
    pub(super) fn on_in_order(&mut self, now: Instant, text: &Text, rto: u64, quick: u32) {
        self.held().memory.receive(text.segment());
        self.acks.schedule();
        self.acks.note_burst_end(self.window.measure_rcv_mss(text));
        self.window.measure_rtt_by_window(now, text.end);
        self.acks.adapt(now, rto, self.window.quick_acks(quick));
        if text.len >= 128 && self.window.grow(text, self.used()) {
            self.acks.ensure_quick();
        }
    }

    /// Processes the data and the FIN that follow in-order data, which ends at `rcv_nxt` (tcp_ofo_queue()). If that
    /// data ends with a FIN, all data above is dropped (tcp_fin()). `dsack` is the duplicate in the in-order data. If
    /// `has_closed`, the application has ended its stream, and the ACK of the FIN precedes the end of the SACK blocks.
    pub(super) fn advance(
        &mut self,
        rcv_nxt: u64,
        (has_fin, has_closed): (bool, bool),
        dsack: Option<(u64, u64)>,
    ) -> Advance {
        let mut advance = Advance { rcv_nxt, fin: has_fin.then(|| rcv_nxt - 1), dsack };
        if self.has_out_of_order() && !has_fin {
            advance = self.held().memory.advance(rcv_nxt, dsack);
            if !self.has_out_of_order() {
                // RFC 5681 §4.2: a segment that fills a hole is acknowledged at once.
                self.acks.schedule_now();
            }
        }
        let is_empty = !self.has_out_of_order();
        let Some(held) = &mut self.held else { return advance };
        if advance.fin.is_some() {
            let sacks = std::mem::take(&mut held.sacks);
            self.on_pruned(0);
            if has_closed {
                self.held().decided.sacks = Some(sacks);
            }
        } else {
            held.sacks.remove_below(if is_empty { u64::MAX } else { advance.rcv_nxt });
        }
        advance
    }

    /// Processes out-of-order data (tcp_data_queue_ofo()). `sack` is true if SACK was negotiated.
    pub(super) fn on_out_of_order(&mut self, text: &Text, rcv_nxt: u64, sack: bool) -> Placed {
        self.acks.note_burst_end(self.window.measure_rcv_mss(text));
        self.acks.schedule();
        let (is_first, used) = (!self.has_out_of_order(), self.used());
        let placed = self.held().memory.place(text.segment());
        if is_first {
            self.held().sacks = Sacks::default();
        }
        // Without SACK, an ACK with another window is not a duplicate ACK.
        if placed.is_new && sack && self.window.grow(text, used) {
            self.acks.ensure_quick();
        }
        let end = self.held().memory.out_of_order().end().unwrap_or(rcv_nxt);
        self.window.make_room_for(end - rcv_nxt);
        placed
    }

    /// Drops out-of-order data above `end` after pruning (tcp_prune_ofo_queue()), and the SACK blocks.
    pub(in crate::tcp::receiver) fn on_pruned(&mut self, end: u64) {
        let Some(held) = &mut self.held else { return };
        held.memory.drop_from(end);
        held.sacks = Sacks::default();
        held.decided.sacks = None;
        self.free_if_unused();
    }

    /// Adds the SACK block of an out-of-order segment. Returns true if it displaces blocks that a compressed
    /// ACK has yet to report. An ACK with the previous blocks is then sent first
    /// (tcp_sack_compress_send_ack()).
    pub(super) fn add_sack(&mut self, start: u64, end: u64) -> bool {
        let held = self.held();
        let must_report_first =
            held.compressed.is_compressing() && held.sacks.displaces_unreported((start, end));
        if must_report_first {
            held.decided.sacks = Some(held.sacks.clone());
        }
        held.sacks.add((start, end));
        must_report_first
    }

    /// Decides how long the scheduled ACK is delayed (__tcp_ack_snd_check()).
    pub(super) fn delay_of_ack(&mut self, state: &AckState, compression: Option<AckCompression>) -> AckDelay {
        let more_than_one = state.unacked > u64::from(self.window.rcv_mss());
        let full = more_than_one && (!self.window.is_tuned() || self.select() >= self.window.rcv_wnd());
        if full || self.acks.is_quick() || self.acks.is_due_now() {
            return AckDelay::None;
        }
        if !state.has_holes {
            let timer = state.timer.filter(|_| !self.is_compressing());
            return self.acks.delay(&AckState { timer, ..*state });
        }
        let Some(compression) = compression.filter(|_| state.sack) else { return AckDelay::None };
        let round_trip = self.window.round_trip(state.srtt);
        self.held().compressed.compress(state, compression, round_trip)
    }

    /// Handles the expiry of the ACK timer.
    pub(in crate::tcp::receiver) fn on_ack_timer(&mut self, rto: u64) {
        if !self.is_compressing() {
            self.acks.on_timer(rto);
        }
    }

    pub(super) fn is_compressing(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.compressed.is_compressing())
    }

    /// Decides the window of an ACK that is about to be sent.
    pub(super) fn decide_window(&mut self, rcv_nxt: u64, edge: u64) {
        if self.window.is_tuned() && self.held.is_some() {
            let window = self.select_without_shrinking(rcv_nxt, edge);
            self.held().decided.window = Some((rcv_nxt, window));
        }
    }

    /// Returns the SACK blocks of the next ACK.
    pub(super) fn sacks_to_report(&self) -> &[(u64, u64)] {
        let Some(held) = &self.held else { return &[] };
        held.decided.sacks.as_ref().unwrap_or(&held.sacks).as_slice()
    }

    /// Returns the window of a segment that is sent now. [`Self::decide_window`] may have decided it before.
    pub(super) fn window_to_advertise(&mut self, rcv_nxt: u64, edge: u64) -> u64 {
        match self.held.as_mut().and_then(|held| held.decided.window.take()) {
            Some((at, window)) if at == rcv_nxt => window.max(edge.saturating_sub(rcv_nxt)),
            _ => self.select_without_shrinking(rcv_nxt, edge),
        }
    }

    /// Returns the window that an ACK would advertise now, without moving the right edge back
    /// (tcp_select_window()).
    fn select_without_shrinking(&mut self, rcv_nxt: u64, edge: u64) -> u64 {
        let offered = edge.saturating_sub(rcv_nxt);
        let window = self.select();
        if window < offered { self.window.round_up(offered) } else { window }
    }

    /// Returns the window that an ACK would advertise now. If little memory is free, quick ACKs end
    /// (__tcp_select_window()).
    fn select(&mut self) -> u64 {
        let Selected { window, scarce } = self.window.select(self.used());
        if scarce {
            self.acks.end_quick();
        }
        window
    }

    /// Records that a segment with an ACK and this window was sent.
    pub(in crate::tcp::receiver) fn on_ack_sent(&mut self, window: u64) {
        self.window.set_rcv_wnd(window);
        self.acks.on_ack_sent();
        if let Some(held) = &mut self.held {
            held.compressed.end();
            held.decided = Decided::default();
        }
        self.free_if_unused();
    }

    /// Records that data was sent, which may answer received data.
    pub(in crate::tcp::receiver) fn on_text_sent(&mut self, now: Instant) {
        self.acks.on_text_sent(now);
    }

    /// Processes a read by the application, successful or not. Returns true if an ACK must be sent now
    /// (tcp_cleanup_rbuf()).
    pub(super) fn on_read(&mut self, read: &Read) -> bool {
        let has_read = self.release(read);
        if self.acks.is_scheduled() {
            let more_than_one = read.rcv_nxt - read.last_ack > u64::from(self.window.rcv_mss());
            if more_than_one || (has_read && self.acks.read_triggers_ack() && self.used() == 0) {
                return true;
            }
        }
        let offered = read.edge.saturating_sub(read.rcv_nxt);
        if !has_read || read.closed || !self.tunes_window() || 2 * offered > self.window.clamp() {
            return false;
        }
        let window = self.select();
        window > 0 && window >= 2 * offered
    }

    /// Frees the memory of segments that were read. Returns true if there were any.
    fn release(&mut self, read: &Read) -> bool {
        let Some(mut held) = self.held.take() else { return false };
        let mut any = false;
        while let Some(end) = held.memory.release_one(read.copied_seq) {
            any = true;
            self.window.adjust_space(end, read.rcv_nxt, read.span);
        }
        self.held = Some(held).filter(|held| !held.is_unused());
        any
    }
}
