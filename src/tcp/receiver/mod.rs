//! The receiving half: the Receive Sequence Variables (RFC 9293 §3.3.1), the receive buffer, and the decision
//! when to acknowledge.
//!
//! | module | contents |
//! |---|---|
//! | `arrives` | the steps of RFC 9293 §3.10.7.4 that concern the receiver |
//! | `data` | incoming data and its ACK |
//! | `blocks` | SACK and D-SACK blocks |
//! | `window` | the advertised window |
//! | `memory` | storing and pruning when memory is short |
//! | `policy`, `linux` | when to acknowledge and how large the window is, by plain rules or by Linux's |
//! | `alarm` | the reordering alarm |
//! | `buffer`, `reassembly`, `stored_text` | the receive buffer |

mod alarm;
mod arrives;
mod blocks;
mod buffer;
mod data;
mod linux;
mod memory;
mod policy;
mod reassembly;
mod stored_text;
mod window;

use airwire::options::Timestamps;
use airwire::segment::{Flags, Segment};
use airwire::seq::Seq;
use airwire::text::{Known, Text};
use airwire::time::{Duration, Instant};

use self::alarm::ReorderingAlarm;
pub(super) use self::arrives::{Acceptability, PAWS_VALID};
use self::arrives::{Challenges, FIRST_DATA_CREDIT};
use self::blocks::RecentBlocks;
use self::buffer::RecvBuffer;
pub(super) use self::memory::Storing;
use self::policy::Policy;
use super::context::Context;
use super::lifecycle::take_due;
use super::negotiated::Negotiated;
use super::socket::SocketOptions;
use crate::memory::Budget;
use crate::profile::{DataOnSyn, Profile, ShutRead};

/// A duplicate to report in an ACK (RFC 2883).
#[derive(Debug)]
struct Dsack {
    /// Offsets. Those below the SYN wrap around.
    block: (u64, u64),
    is_sent: bool,
}

impl Dsack {
    fn new(block: (u64, u64)) -> Box<Self> {
        Box::new(Self { block, is_sent: false })
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    irs: Seq,
    buffer: RecvBuffer,
    /// Right edge of the last advertised window as the peer computes it. Everything below it is accepted.
    adv: u64,
    /// The same edge before rounding up to the unit of the window scale (RFC 7323 §2.4).
    unrounded: u64,
    /// Offset of the peer's FIN, once it has arrived in or out of order. By the rules of Linux, once it has arrived in
    /// order.
    fin: Option<u64>,
    /// Sequence numbers that the FIN counts: 1, or more by the rules of Linux.
    fin_len: u32,
    /// True after the application has read the peer's FIN, that is, the end of the stream, or has closed.
    fin_is_read: bool,
    /// True after the application shut down reading (SHUT_RD).
    is_shut: bool,
    /// TS.Recent (RFC 7323 §4.3) and the time of its last update.
    ts_recent: u32,
    ts_recent_at: Instant,
    /// TSval of a duplicate segment, which the next segment echoes.
    copy_tsval: Option<u32>,
    /// Last.ACK.sent.
    last_ack_sent: u64,
    ack: AckDue,
    /// Deadline of a delayed ACK.
    delayed_ack: Option<Instant>,
    /// Number of unacceptable data segments near RCV.NXT that are acknowledged at once. Each accepted segment
    /// adds one, because the network may duplicate it or the peer may retransmit it.
    data_credit: u16,
    /// Boxed because few connections need it.
    challenges: Option<Box<Challenges>>,
    policy: Policy,
    /// Data of the largest segment so far, an estimate of the peer's SMSS.
    mss_seen: u32,
    /// The SACK blocks that grew most recently (RFC 2018 §4).
    recent: Option<Box<RecentBlocks>>,
    /// The present segment takes the fast path of Linux.
    on_fast_path: bool,
    /// A duplicate that the next ACK reports, or that the last ACK has reported.
    dsack: Option<Box<Dsack>>,
    /// `None` unless the profile enables it.
    alarm: Option<Box<ReorderingAlarm>>,
    /// A segment marked CE was received and no CWR since (RFC 3168 §6.1.3).
    echo_ce: bool,
    /// True once an ECN-capable data segment has arrived.
    ect_seen: bool,
    /// Boxed because it is rare.
    queued: Option<Box<Queued>>,
}

/// Whether an ACK is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckDue {
    No,
    /// The delayed-ACK timer is running.
    Delayed,
    Now,
}

/// A SYN with data or a FIN, which is queued until the connection is established. At most one segment is
/// queued.
#[derive(Debug)]
pub(super) struct Queued {
    /// The segment without its data.
    bare: Segment<'static>,
    text: Vec<u8>,
}

impl Queued {
    fn of(syn: &Segment<'_>) -> Self {
        Self { bare: Segment { payload: Text::EMPTY, ..syn.clone() }, text: syn.payload.to_vec() }
    }

    pub(super) fn segment(&self) -> Segment<'_> {
        Segment { payload: Text::Bytes(&self.text), ..self.bare.clone() }
    }
}

/// An advertised window, as the header field and as offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advertisement {
    pub(super) field: u16,
    /// The right edge as the peer computes it from the field.
    edge: u64,
    /// The right edge before rounding, which is less than one unit of the window scale below `edge`.
    unrounded: u64,
}

impl Receiver {
    /// Creates the receiver of a connection whose SYN announces `advmss`.
    pub(super) fn new(now: Instant, profile: &Profile, options: &SocketOptions, advmss: u32) -> Self {
        Self {
            irs: Seq(0),
            buffer: RecvBuffer::new(1, options.recv_limit(profile)),
            adv: 0,
            unrounded: 0,
            fin: None,
            fin_len: 1,
            fin_is_read: false,
            is_shut: false,
            ts_recent: 0,
            ts_recent_at: now,
            copy_tsval: None,
            last_ack_sent: 0,
            ack: AckDue::No,
            delayed_ack: None,
            data_credit: FIRST_DATA_CREDIT,
            challenges: None,
            policy: Policy::new(profile, options, advmss),
            mss_seen: 0,
            recent: None,
            on_fast_path: false,
            dsack: None,
            alarm: profile.acks.reordering_alarm.then(Box::default),
            echo_ce: false,
            ect_seen: false,
            queued: None,
        }
    }

    /// Processes the sequence number and the timestamp of the peer's SYN, and opens the first window.
    pub(super) fn process_peer_syn(&mut self, cx: &Context, now: Instant, segment: &Segment<'_>) {
        self.irs = segment.seq;
        self.last_ack_sent = 1;
        if let Some(ts) = cx.negotiated.timestamps_of(segment) {
            self.set_ts_recent(now, ts);
        }
        self.adv = 1 + self.first_window(cx);
        self.unrounded = self.adv;
    }

    /// RFC 9293 §3.10.7.2 and §3.10.7.3: data and a FIN that arrive with a SYN are queued until the
    /// connection is established.
    pub(super) fn queue_syn_text(&mut self, profile: &Profile, syn: &Segment<'_>) {
        let has_any = !syn.payload.is_empty() || syn.flags.contains(Flags::FIN);
        if has_any && profile.handshake.data_on_syn == DataOnSyn::Queued {
            self.queued = Some(Box::new(Queued::of(syn)));
        }
    }

    pub(super) fn take_queued(&mut self) -> Option<Box<Queued>> {
        self.queued.take()
    }

    /// Prepares for the peer's data. `smss` is the data of a full-sized segment of ours.
    pub(super) fn begin(&mut self, cx: &Context, now: Instant, smss: u64) {
        let mss = cx.negotiated.expected_mss(&cx.profile, &cx.options);
        self.policy.establish(now, cx.negotiated.rcv_scale(), mss, smss);
    }

    /// Forgets the arrival of the handshake. After a simultaneous open, data that is sent soon would
    /// otherwise count as an answer to a received segment (lrcvtime).
    pub(super) fn forget_last_arrival(&mut self, now: Instant) {
        self.policy.forget_last_arrival(now);
    }

    /// Accepts the data of a SYN before the handshake is complete (RFC 7413 §4.2).
    pub(super) fn store_syn_text(&mut self, storing: &mut Storing<'_>, syn: &Segment<'_>) {
        self.queued = None;
        if !syn.payload.is_empty() && self.admits(storing, 1, syn.payload.len()) {
            storing.statistics.bytes_received += self.buffer.insert(1, syn.payload, self.adv);
            self.mss_seen = syn.payload.len() as u32;
        }
    }

    pub(super) fn irs(&self) -> Seq {
        self.irs
    }

    /// Returns RCV.NXT as an offset. It includes the peer's FIN once all earlier data has arrived.
    pub(super) fn nxt(&self) -> u64 {
        self.buffer.next() + if self.has_reached_fin() { self.fin_len.into() } else { 0 }
    }

    /// Returns RCV.NXT.
    pub(super) fn nxt_seq(&self) -> Seq {
        self.irs.at(self.nxt())
    }

    /// Chooses the path of an acceptable segment. `is_predicted` is true if its header is the expected one.
    /// Data takes the fast path of Linux only if it fits into memory that is already reserved. `queued` returns the
    /// memory of unacknowledged data.
    pub(in crate::tcp) fn choose_path(
        &mut self,
        cx: &Context,
        segment: &Segment<'_>,
        is_predicted: bool,
        queued: impl FnOnce() -> u64,
    ) {
        let fits = segment.payload.is_empty() || self.policy.account(cx, segment, queued);
        self.on_fast_path = is_predicted && fits;
    }

    /// Returns the duplicate that the next ACK reports.
    fn dsack(&self) -> Option<(u64, u64)> {
        self.dsack.as_ref().filter(|dsack| !dsack.is_sent).map(|dsack| dsack.block)
    }

    /// Reports the duplicate of the last ACK again, because the next segment belongs to the same burst
    /// (__tcp_transmit_skb()).
    pub(in crate::tcp) fn repeat_duplicate(&mut self) {
        if let Some(dsack) = &mut self.dsack {
            dsack.is_sent = false;
        }
    }

    /// Returns true if the segment takes the fast path of Linux (tcp_rcv_established()).
    pub(in crate::tcp) fn is_on_fast_path(&self) -> bool {
        self.on_fast_path
    }

    /// Returns the offset of a segment in the peer's stream.
    pub(super) fn offset_of(&self, segment: &Segment<'_>) -> Option<u64> {
        segment.seq.offset(self.irs, self.nxt())
    }

    /// Returns RCV.WND as the peer computes it.
    pub(super) fn wnd(&self) -> u64 {
        self.adv.saturating_sub(self.nxt())
    }

    /// Returns true if the peer's FIN and all earlier data has arrived.
    pub(super) fn has_reached_fin(&self) -> bool {
        self.fin.is_some_and(|fin| self.buffer.next() >= fin)
    }

    /// Returns the offset of the peer's FIN while earlier data is missing.
    fn early_fin(&self) -> Option<u64> {
        self.fin.filter(|fin| *fin > self.buffer.next())
    }

    /// Returns true if the peer's FIN has arrived, and earlier data is missing.
    pub(super) fn has_early_fin(&self) -> bool {
        self.early_fin().is_some() || self.policy.has_early_fin()
    }

    /// Returns true if data after a hole has arrived.
    pub(super) fn holds_out_of_order(&self) -> bool {
        !self.buffer.out_of_order().is_empty()
    }

    /// Returns the number of bytes that can be read now.
    pub(super) fn readable(&self) -> usize {
        self.buffer.readable()
    }

    pub(super) fn peek(&self, out: &mut [u8]) -> usize {
        self.buffer.peek(out)
    }

    /// Reads bytes that arrived in order.
    pub(super) fn read(&mut self, out: &mut [u8], budget: &Budget) -> usize {
        let count = self.buffer.read(out, budget);
        self.on_read(count, out.len());
        count
    }

    /// Reads up to `max` bytes that arrived in order, if they are one part of the known stream.
    pub(super) fn read_known(&mut self, max: usize) -> Option<Known> {
        let known = self.buffer.read_known(max)?;
        self.on_read(known.len(), max);
        Some(known)
    }

    /// The application has read `count` of `max` bytes.
    fn on_read(&mut self, count: usize, max: usize) {
        self.fin_is_read |= count < max && self.has_reached_fin();
    }

    /// Shuts down reading. The profile decides whether buffered data can still be read.
    pub(super) fn shut(&mut self, profile: &Profile, budget: &Budget) {
        self.is_shut = true;
        self.discard_unwanted(profile, budget);
    }

    /// Removes the peer's FIN from the receive queue, because close() empties it (Linux, __tcp_close()).
    pub(super) fn empty_queue(&mut self) {
        self.fin_is_read |= self.has_reached_fin();
    }

    pub(super) fn is_shut(&self) -> bool {
        self.is_shut
    }

    /// Discards received data after SHUT_RD, in profiles that do not keep the data.
    pub(super) fn discard_unwanted(&mut self, profile: &Profile, budget: &Budget) {
        if self.is_shut && profile.acks.after_shutdown == ShutRead::Discard {
            self.buffer.discard(self.buffer.readable(), budget);
        }
    }

    /// Applies SO_RCVBUF, whose previous value was `before`.
    pub(super) fn set_buffer(&mut self, profile: &Profile, options: &SocketOptions, before: Option<usize>) {
        self.buffer.set_limit(options.recv_limit(profile));
        if let Some(size) = options.recv_buffer.filter(|_| options.recv_buffer != before) {
            self.policy.lock(size);
        }
    }

    /// Returns the bytes of memory that received data may take, if it is tuned (sk_rcvbuf).
    pub(super) fn memory_limit(&self) -> Option<usize> {
        self.policy.receive_memory()
    }

    pub(super) fn buffer_limit(&self) -> usize {
        self.buffer.limit()
    }

    /// Returns the data of the largest segment so far.
    pub(super) fn mss_seen(&self) -> u32 {
        self.mss_seen
    }

    /// Returns the count of the reordering alarm for an ACK without data.
    pub(super) fn alarm_count(&self, negotiated: &Negotiated) -> Option<u16> {
        // Without timestamps nothing is counted, so the option is omitted. A count of 0 would report that no
        // segment was reordered.
        self.alarm.as_ref().filter(|_| negotiated.timestamps()).map(|alarm| alarm.count())
    }

    /// Returns the timestamp to echo.
    pub(super) fn ts_echo(&self) -> u32 {
        self.copy_tsval.unwrap_or(self.ts_recent)
    }

    /// Returns true if segments carry ECE.
    pub(super) fn echoes_ce(&self) -> bool {
        self.echo_ce
    }

    pub(super) fn stop_echoing_ce(&mut self) {
        self.echo_ce = false;
    }

    pub(super) fn ack_is_due(&self) -> bool {
        self.ack == AckDue::Now
    }

    pub(super) fn ack_now(&mut self) {
        self.ack = AckDue::Now;
    }

    /// Records that a segment with an ACK and this window was sent.
    pub(super) fn on_ack_sent(&mut self, window: &Advertisement) {
        self.adv = self.adv.max(window.edge);
        self.unrounded = self.unrounded.max(window.unrounded);
        self.last_ack_sent = self.nxt();
        self.policy.on_ack_sent(window.unrounded - self.nxt());
        self.ack = AckDue::No;
        self.dsack.take_if(|dsack| dsack.is_sent);
        if let Some(dsack) = &mut self.dsack {
            dsack.is_sent = true;
        }
        self.clear_blocks();
        self.copy_tsval = None;
        self.delayed_ack = None;
    }

    /// Records that data was sent, which may answer received data.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.policy.on_data_sent(now);
    }

    /// Returns the deadline of a delayed ACK.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.delayed_ack
    }

    /// Handles the delayed-ACK timer. `rto` is the sender's retransmission timeout.
    pub(super) fn handle_deadline(&mut self, now: Instant, rto: Duration) {
        if take_due(&mut self.delayed_ack, now) && self.ack == AckDue::Delayed {
            self.ack_now();
            self.policy.on_ack_timer(rto);
        }
    }

    /// Stops the timer in TIME-WAIT. A delayed ACK is sent at once. `has_new_limits` is true if the limits on
    /// answers start again.
    pub(super) fn enter_time_wait(&mut self, has_new_limits: bool) {
        if has_new_limits {
            self.forget_challenges();
        }
        if self.ack == AckDue::Delayed {
            self.ack_now();
        }
        self.delayed_ack = None;
    }

    /// Drops the state that Linux releases with a socket: out-of-order data and a FIN after a hole, a delayed
    /// ACK, and the limits on answers.
    pub(super) fn release(&mut self) {
        self.drop_out_of_order();
        self.fin = None;
        if self.ack == AckDue::Delayed {
            (self.ack, self.delayed_ack) = (AckDue::No, None);
        }
        self.forget_challenges();
    }

    /// Accepts the FIN at RCV.NXT.
    pub(super) fn accept_fin(&mut self) {
        self.fin = Some(self.nxt());
        self.ack_now();
    }

    /// Ends reception. Data that has arrived in order can still be read.
    pub(super) fn end(&mut self) {
        self.ack = AckDue::No;
        self.delayed_ack = None;
        self.drop_out_of_order();
        self.queued = None;
    }

    fn drop_out_of_order(&mut self) {
        self.buffer.drop_from(0);
        self.shorten_blocks();
        self.policy.on_pruned(0);
    }

    fn set_ts_recent(&mut self, now: Instant, ts: Timestamps) {
        self.ts_recent = ts.val;
        self.ts_recent_at = now;
    }
}
