//! The sending half: the Send Sequence Variables (RFC 9293 §3.3.1), the send buffer, the data in flight, the
//! retransmission and persist timers, and loss recovery.
//!
//! | module | contents |
//! |---|---|
//! | `handshake` | our SYN, its acknowledgment, and the SYN's data |
//! | `ack` | processing of acknowledgments |
//! | `choice` | the choice of the segment that is sent next |
//! | `pacer`, `defer` | delays of data that the windows allow: pacing and deferral |
//! | `timers` | retransmission, zero-window probing, R1 and R2 |
//! | `path_mtu`, `mtu_search` | path MTU discovery with and without ICMP errors |
//! | `buffer`, `pushes` | the send buffer, and the positions at which PSH is set |

mod ack;
mod buffer;
mod choice;
mod defer;
mod handshake;
mod mtu_search;
mod pacer;
mod path_mtu;
mod pushes;
mod timers;

use airwire::piece::Payload;
use airwire::seq::Seq;
use airwire::time::Instant;

use self::buffer::SendBuffer;
pub(super) use self::choice::Choice;
use self::defer::Burst;
use self::mtu_search::Search;
use self::pacer::Pacer;
use self::path_mtu::NarrowPath;
use self::pushes::Pushes;
pub(super) use self::timers::Timeout;
use self::timers::UnansweredPeriod;
use super::context::Context;
use super::negotiated::Negotiated;
use super::socket::{Push, SocketOptions};
use crate::flight::Flight;
use crate::memory::{Budget, RESERVE};
use crate::profile::Profile;
use crate::profile::recovery::AfterIdle;
use crate::recovery::{Path, Recovery};
use crate::rtt::RttEstimator;

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    iss: Seq,
    buffer: SendBuffer,
    flight: Flight,
    rtt: RttEstimator,
    /// The timed segment, in styles that time one segment per window: its end offset and sending time.
    timed: Option<Box<(u64, Instant)>>,
    recovery: Recovery,
    /// SND.WND in bytes.
    wnd: u64,
    /// SND.WL1 and SND.WL2 as offsets: the segment that last updated the window.
    wl1: u64,
    wl2: u64,
    /// MAX.SND.WND (RFC 5961 §5.2).
    max_wnd: u64,
    /// Lowest valid acknowledgment number of this connection, as an offset.
    min_ack: u64,
    /// Bytes of data in a full-sized segment, after deducting options.
    smss: u64,
    /// Bytes that SACK blocks take from the data of the next segment.
    sack_len: u16,
    /// A burst is being sent, whose segments all have the same size (Linux, tcp_write_xmit()).
    keeps_sack_len: bool,
    /// Offset of our FIN, once the application has closed.
    fin: Option<u64>,
    /// End of the last segment sent that was not full-sized, for Minshall's variant of Nagle.
    small_end: u64,
    last_sent: Instant,
    /// The cork or override timeout has expired: one partial segment may be sent.
    may_send_partial: bool,
    /// Nagle and a cork do not delay the unsent data.
    pushed: bool,
    more_data: MoreData,
    /// `None`: no push is recorded. Boxed because only one profile keeps them.
    pushes: Option<Box<Pushes>>,
    /// `None`: data is sent as soon as the windows allow. Boxed because few senders need it.
    spacing: Option<Box<Spacing>>,
    /// `None`: no ICMP error has reported an MTU below the interface's. Boxed because it is rare.
    narrow_path: Option<Box<NarrowPath>>,
    /// `None`: no search for the path MTU has begun. Boxed because it is rare.
    mtu_search: Option<Box<Search>>,
    /// Deadline of the retransmission timer (RFC 6298 §5).
    rto: Option<Instant>,
    /// Deadline of the persist timer (RFC 9293 §3.8.6.1).
    persist: Option<Instant>,
    /// Latest time at which a corked partial segment is sent.
    cork: Option<Instant>,
    persist_backoff: u32,
    /// A window probe is sent next.
    window_probe_is_due: bool,
    /// Window probes and keep-alives since the last segment from the peer.
    probes_sent: u32,
    /// Timeouts while the peer's window was closed, since data was last acknowledged.
    closed_window_timeouts: u32,
    /// Boxed because it is rare.
    unanswered: Option<Box<UnansweredPeriod>>,
    handshake_resent: u16,
    syn_timeouts: u16,
}

/// Delays of data that the windows allow: pacing and deferral.
#[derive(Debug, Default)]
struct Spacing {
    /// `None`: the sender is not paced.
    pacer: Option<Pacer>,
    /// `None`: the sender does not [`defer`](crate::profile::Profile::defers), or never had more than one
    /// segment to send.
    burst: Option<Burst>,
    /// Time of the last ACK without data.
    acked_at: Instant,
}

/// Whether more data is expected after the end of the written data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MoreData {
    /// No more data is expected, and the last segment carries PSH.
    None,
    /// More data follows immediately, and a partial segment is delayed until then (MSG_MORE).
    Expected,
    /// More data was expected, but an ACK arrived before.
    Overdue,
}

impl Sender {
    pub(super) fn new(
        now: Instant,
        profile: &Profile,
        options: &SocketOptions,
        negotiated: &Negotiated,
        (iss, recovery): (Seq, Recovery),
    ) -> Self {
        let fits = (negotiated.mtu() as usize).saturating_sub(negotiated.header_len()) as u64;
        Self {
            iss,
            buffer: SendBuffer::new(1, options.send_buffer),
            flight: Flight::default(),
            rtt: RttEstimator::new(profile.timers.rto.style, profile.timers.rto.limits),
            timed: None,
            recovery,
            wnd: 0,
            wl1: 0,
            wl2: 0,
            max_wnd: 0,
            min_ack: 0,
            smss: u64::from(negotiated.peer_mss()).min(fits).max(8),
            sack_len: 0,
            keeps_sack_len: false,
            fin: None,
            small_end: 0,
            last_sent: now,
            may_send_partial: false,
            pushed: false,
            more_data: MoreData::None,
            pushes: None,
            spacing: None,
            narrow_path: None,
            mtu_search: None,
            rto: None,
            persist: None,
            cork: None,
            persist_backoff: 0,
            window_probe_is_due: false,
            probes_sent: 0,
            closed_window_timeouts: 0,
            unanswered: None,
            handshake_resent: 0,
            syn_timeouts: 0,
        }
    }

    /// Writes as much of `data` as fits into the send buffer, and returns the number of bytes.
    pub(super) fn write(
        &mut self,
        cx: &Context,
        budget: &Budget,
        now: Instant,
        data: Payload<'_>,
        push: Push,
    ) -> usize {
        // In Linux, data that waits for the window does not prevent this (tcp_slow_start_after_idle_check()).
        let may_wait = cx.profile.recovery.growth.after_idle == AfterIdle::Decay;
        let is_idle = self.flight.is_empty() && (may_wait || self.buffer.end() == self.flight.max());
        if is_idle && cx.state().is_synchronized() {
            let idle = now - self.last_sent;
            if idle > self.rtt.rto().get() {
                let last_sent = self.last_sent;
                let (recovery, mut path) = self.recovery_and_path(now);
                recovery.on_idle(&mut path, last_sent);
            }
        }
        if self.recovery.samples_rates() {
            let (recovery, path) = self.recovery_and_path(now);
            recovery.on_write(&path);
        }
        // A push lasts until all unsent data is sent. It includes data that is added to a segment that the
        // window delays.
        self.pushed &= self.unsent() > 0;
        self.reconsider_burst();
        self.more_data = match push {
            Push::Now => MoreData::None,
            Push::Later => MoreData::Expected,
        };
        let room = self.room_to_write(budget);
        let start = self.buffer.end();
        let taken = self.buffer.write(data.truncated(room));
        self.mark_pushes(cx, now, start);
        taken
    }

    /// Ends a record: no segment contains both data written before and data written later.
    pub(super) fn end_record(&mut self) {
        self.buffer.end_record();
    }

    /// Exempts all data written so far from Nagle and cork.
    pub(super) fn push(&mut self) {
        self.pushed = true;
    }

    /// Ends the stream: a FIN follows the buffered data.
    pub(super) fn finish(&mut self) {
        self.fin = Some(self.buffer.end());
    }

    /// Returns true if the application has ended the stream.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some()
    }

    pub(super) fn fin_is_sent(&self) -> bool {
        self.fin.is_some_and(|fin| self.flight.max() > fin)
    }

    pub(super) fn fin_is_acked(&self) -> bool {
        self.fin.is_some_and(|fin| self.flight.una() > fin)
    }

    /// Returns the offset of our FIN, if it may be sent. Before the handshake is complete, only close() sends
    /// one, and not a shutdown of writing (Linux, tcp_close_state(), tcp_shutdown()).
    fn fin_to_send(&self, cx: &Context) -> Option<u64> {
        self.fin.filter(|_| cx.state().is_synchronized() || cx.lifecycle.is_orphaned())
    }

    /// Returns the offset of a FIN that an ACK may repeat: it was sent.
    pub(super) fn fin_to_repeat(&self) -> Option<u64> {
        self.fin.filter(|fin| *fin < self.flight.max())
    }

    /// Applies a change of the socket options.
    pub(super) fn set_options(&mut self, cx: &Context) {
        self.buffer.set_limit(cx.options.send_buffer);
        self.update_smss(cx);
    }

    /// Returns the free space for data to send, reduced when memory is short.
    pub(super) fn room_to_write(&self, budget: &Budget) -> usize {
        let free = self.buffer.free();
        let Some(share) = budget.share() else { return free };
        let len = self.buffer.len();
        let within = free.min(share.saturating_sub(len));
        match budget.has(self.buffer.growth(within)) {
            true => within,
            false => within.min(self.buffer.spare().max(RESERVE.saturating_sub(len))),
        }
    }

    /// Returns true if the maximum number of segments is in flight. The maximum is proportional to the send
    /// buffer, which bounds the work that a peer can cause and the state per segment even if the peer offers
    /// a tiny MSS (CVE-2019-11478, CVE-2019-11479). Segments of at least 512 bytes never reach this limit,
    /// and smaller segments do not reach it if our options or profile set their size.
    fn flight_is_full(&self, cx: &Context) -> bool {
        const ALWAYS_ALLOWED: usize = 1024;
        if self.flight.len() < ALWAYS_ALLOWED {
            return false;
        }
        // The timestamps option takes space in each segment.
        let text = |own: u16| own.saturating_sub(12).clamp(8, 512);
        let own = cx.options.max_seg.or(cx.profile.handshake.mss).map_or(512, text);
        self.flight.len() >= cx.options.send_buffer / usize::from(own)
    }

    /// Returns the bytes of memory in use.
    #[inline]
    pub(super) fn cost(&self) -> usize {
        self.buffer.cost() + self.flight.cost()
    }

    /// Returns the recovery and the parts of the sender that it controls.
    fn recovery_and_path(&mut self, now: Instant) -> (&mut Recovery, Path<'_>) {
        let unsent = self.unsent() as u64;
        let path = Path {
            now,
            flight: &mut self.flight,
            rtt: &mut self.rtt,
            smss: self.smss,
            rwnd: self.wnd,
            unsent,
        };
        (&mut self.recovery, path)
    }

    /// Updates SMSS. Options reduce the data of a segment, not the MSS value (RFC 6691).
    fn update_smss(&mut self, cx: &Context) {
        let options = cx.negotiated.options_len();
        let smss = self.max_seg(&cx.negotiated, &cx.options).saturating_sub(options);
        // Linux, tcp_bound_to_half_wnd(): at least 68 bytes less the headers.
        let half = match self.max_wnd {
            0 => u64::MAX,
            window @ 1..=536 => window.max(48 - options),
            window => window / 2,
        };
        self.smss = if cx.profile.sending.half_window { smss.min(half) } else { smss }.max(8);
    }

    /// Returns the bytes of options and data in a full-sized segment.
    pub(super) fn max_seg(&self, negotiated: &Negotiated, options: &SocketOptions) -> u64 {
        let packet = self.longest_packet(negotiated) as usize;
        let fits = packet.saturating_sub(negotiated.header_len()).max(8) as u64;
        fits.min(negotiated.permitted_seg(options))
    }

    pub(super) fn smss(&self) -> u64 {
        self.smss
    }

    /// Returns true if [`Self::choose`] would find nothing and change nothing, because everything written is
    /// acknowledged.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.flight.is_empty()
            && self.flight.max() >= self.buffer.end()
            && self.fin.is_none()
            && !self.window_probe_is_due
            && !self.keeps_sack_len
            && self.spacing.is_none()
            && self.narrow_path.is_none()
            && !self.recovery.has_new_usage()
    }

    /// Reserves `sack_len` bytes of the next segment for SACK blocks.
    pub(super) fn reserve_for_blocks(&mut self, sack_len: u64) {
        if !self.keeps_sack_len {
            // At most 36 bytes: four blocks.
            self.sack_len = sack_len as u16;
        }
    }

    /// Returns the bytes of data in a full-sized segment that is sent now (Linux 6.18, tcp_current_mss()).
    fn current_smss(&self) -> u64 {
        self.smss.saturating_sub(self.sack_len.into()).max(8)
    }

    pub(super) fn iss(&self) -> Seq {
        self.iss
    }

    /// Returns SND.UNA as an offset.
    pub(super) fn una(&self) -> u64 {
        self.flight.una()
    }

    /// Returns SND.NXT as an offset: the first that was never sent.
    pub(super) fn nxt(&self) -> u64 {
        self.flight.max()
    }

    /// Returns SND.WND.
    pub(super) fn wnd(&self) -> u64 {
        self.wnd
    }

    /// Returns the data in `start..end` that the buffer holds.
    pub(super) fn payloads(&self, start: u64, end: u64) -> impl Iterator<Item = Payload<'_>> {
        self.buffer.payloads(start..end)
    }

    /// Returns the number of bytes that may be outstanding.
    pub(super) fn window(&self) -> u64 {
        let congestion = self.recovery.congestion();
        let allowed = (congestion.cwnd + congestion.inflation()) * self.smss as f64;
        self.wnd.min(allowed as u64)
    }

    /// Returns the number of bytes written but not yet sent.
    pub(super) fn unsent(&self) -> usize {
        self.buffer.end().saturating_sub(self.flight.max().max(1)) as usize
    }

    /// Returns the number of bytes written and not yet acknowledged.
    pub(super) fn unacknowledged(&self) -> usize {
        self.buffer.len()
    }

    /// See [`Connection::enough_unsent`](super::Connection::enough_unsent).
    pub(super) fn enough_unsent(&mut self, cx: &Context, now: Instant) -> u64 {
        /// A timer may permit a probe, and with nothing in flight any window permits one segment.
        const BEYOND_WINDOW: u64 = 1;
        let by_peer = (self.flight.una() + self.wnd).saturating_sub(self.flight.max());
        let (whole, smss) = (self.window(), self.smss);
        let (recovery, path) = self.recovery_and_path(now);
        let by_cwnd = if recovery.makes_room_by_clock() { whole } else { recovery.room_for_new(&path) };
        (by_peer.min(by_cwnd + BEYOND_WINDOW * smss) + smss).max(self.data_for_mtu_probe(cx))
    }

    /// Returns the lowest offset that is not acknowledged, and the time when it was first sent.
    fn oldest_sent(&self, cx: &Context) -> Option<(u64, Instant)> {
        let syn_ack = cx.fast_open.early_syn_ack().map(|(first, _)| (0, first));
        syn_ack.or_else(|| self.flight.head().map(|head| (head.start, head.first_sent)))
    }

    /// Returns the memory of the data and FIN that are not acknowledged, as Linux counts it (sk_wmem_queued).
    pub(super) fn memory(&self) -> u64 {
        /// An empty buffer (alloc_skb_fclone(), MAX_TCP_HEADER).
        const BUFFER: u64 = 832;
        let una = self.flight.una();
        let has_lone_fin = self.flight.iter().next_back().is_some_and(|last| self.fin == Some(last.start));
        let (buffers, start) = self.queued_buffers(una);
        (buffers + u64::from(has_lone_fin)) * BUFFER + self.buffer.end().saturating_sub(start)
    }

    /// Returns true if `seq` is in flight (RFC 5927 §4.1).
    pub(super) fn is_in_flight(&self, cx: &Context, seq: Seq) -> bool {
        let oldest = self.oldest_sent(cx).map_or_else(|| self.flight.una(), |(start, _)| start);
        seq.offset(self.iss, oldest).is_some_and(|offset| (oldest..self.flight.max()).contains(&offset))
    }

    pub(super) fn flight(&self) -> &Flight {
        &self.flight
    }

    pub(super) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(super) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub(super) fn recovery_mut(&mut self) -> &mut Recovery {
        &mut self.recovery
    }

    /// Returns the number of segments retransmitted since the connection began, including SYNs.
    pub(super) fn retransmissions(&self) -> u64 {
        self.recovery.counters().resent() + u64::from(self.handshake_resent)
    }

    pub(super) fn probes_sent(&self) -> u32 {
        self.probes_sent
    }

    pub(super) fn syn_timeouts(&self) -> u16 {
        self.syn_timeouts
    }

    /// Records an acceptable segment, which shows that the peer is alive.
    pub(super) fn note_peer_alive(&mut self) {
        self.probes_sent = 0;
        // Linux 6.18: MSG_MORE delays a partial segment during the call (tcp_push()), but not after the next
        // ACK (tcp_data_snd_check()).
        if self.more_data == MoreData::Expected {
            self.more_data = MoreData::Overdue;
        }
    }

    /// Counts a keep-alive, and returns its sequence number as an offset. The peer answers because the number
    /// is old.
    pub(super) fn on_keepalive_sent(&mut self) -> u64 {
        self.probes_sent += 1;
        self.flight.una().saturating_sub(1)
    }

    /// Stops all timers and resets their counters.
    pub(super) fn stop_timers(&mut self) {
        (self.rto, self.persist, self.cork) = (None, None, None);
        (self.persist_backoff, self.probes_sent, self.closed_window_timeouts) = (0, 0, 0);
        self.unanswered = None;
    }

    /// Ends transmission, and drops all data.
    pub(super) fn end(&mut self) {
        self.stop_timers();
        self.window_probe_is_due = false;
        self.narrow_path = None;
        self.mtu_search = None;
        self.spacing = None;
        self.pushes = None;
        self.buffer = SendBuffer::new(1, 0);
        self.flight = Flight::default();
    }
}
