//! The connection: its state, and the commands of the application.

use std::net::SocketAddr;
use std::sync::Arc;

use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::buffer::RecvBuffer;
use super::event_log::EventLog;
use super::fast_open::{FastOpen, Plan};
use super::icmp::Unreachable;
use super::input::FIRST_DATA_CREDIT;
use super::mtu_search::Search;
use super::negotiated::Negotiated;
use super::path_mtu::NarrowPath;
use super::receive::linux_steps::receiver_of;
use super::send_buffer::SendBuffer;
use super::socket::{Ended, Linger, Push, SocketOptions, State};
use super::statistics::Statistics;
use super::variables::{AckDue, Challenges, Pending, ReceiveVariables, SendVariables, Tail, Timers};
use crate::flight::Flight;
use crate::memory::{Budget, Charge};
use crate::profile::{Profile, ShutRead};
use crate::recovery::{Path, Recovery};
use crate::rtt::RttEstimator;

/// One connection. [`Host::connection`](crate::host::Host::connection) gives read access to it; commands go
/// through the host.
#[derive(Debug)]
pub struct Connection {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) profile: Arc<Profile>,
    pub(super) options: SocketOptions,
    pub(super) state: State,
    pub(super) ended: Option<Ended>,
    /// A soft ICMP error, reported if the connection then times out (RFC 5461).
    pub(super) soft_error: Option<Unreachable>,
    pub(super) snd: SendVariables,
    pub(super) rcv: ReceiveVariables,
    pub(super) flight: Flight,
    pub(super) rtt: RttEstimator,
    /// The timed segment, in styles that time one segment per window: its end offset and sending time.
    pub(super) timed: Option<Box<(u64, Instant)>>,
    pub(super) recovery: Recovery,
    pub(super) timers: Timers,
    pub(super) pending: Pending,
    pub(super) negotiated: Negotiated,
    /// `None`: the path takes packets of `mtu` bytes, as far as known. Boxed because it is rare.
    pub(super) narrow_path: Option<Box<NarrowPath>>,
    /// `None`: no search for the path MTU has begun. Boxed because it is rare.
    pub(super) mtu_search: Option<Box<Search>>,
    pub(super) ip_ident: u16,
    pub(super) handshake_resent: u16,
    pub(super) syn_timeouts: u16,
    pub(super) fast_open: FastOpen,
    pub(super) orphaned: bool,
    /// True after the application shut down reading (SHUT_RD).
    pub(super) read_shut: bool,
    /// Boxed because few connections need it.
    pub(super) challenges: Option<Box<Challenges>>,
    pub(super) statistics: Statistics,
    /// The connection's part of the host's memory budget.
    pub(super) charge: Charge,
    /// Log events. `None`: logging is off.
    pub(super) event_log: Option<Box<EventLog>>,
}

/// The parameters of a new connection.
pub(crate) struct Opening {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) profile: Arc<Profile>,
    pub(crate) recovery: Recovery,
    pub(crate) options: SocketOptions,
    pub(crate) iss: Seq,
    pub(crate) ts_offset: u32,
    pub(crate) mtu: usize,
    pub(crate) budget: Arc<Budget>,
    /// `None`: an active open does not use TCP Fast Open.
    pub(crate) fast_open: Option<Plan>,
    /// True if the connection's [events](crate::events) are logged.
    pub(crate) logs_events: bool,
}

impl Connection {
    /// Creates a connection by active open. The next poll sends the SYN, unless it waits for data to carry.
    pub(crate) fn connect(now: Instant, opening: Opening) -> Self {
        let plan = opening.fast_open;
        let mut connection = Self::new(now, opening, State::SynSent);
        connection.pending.syn = connection.plan_fast_open(plan);
        connection
    }

    pub(super) fn new(now: Instant, opening: Opening, state: State) -> Self {
        let Opening { local, remote, profile, recovery, options, iss, ts_offset, mtu, budget, .. } = opening;
        let mut negotiated = Negotiated::new(local.is_ipv4(), mtu, ts_offset);
        let advmss = negotiated.advertised_mss(&profile, &options);
        let linux = receiver_of(&profile, &options, advmss.into());
        let recv_limit = options.recv_limit(&profile);
        let scale_needed = match &linux {
            Some(linux) if linux.tunes_window() => linux.scale_to_offer(profile.recv_buffer_max),
            _ => (0..=14).find(|s| recv_limit >> s <= 65_535).unwrap_or(14),
        };
        negotiated.offer_scale(profile.window_scale.map_or(0, |offered| offered.max(scale_needed)));
        Self {
            local,
            remote,
            options: options.clone(),
            state,
            ended: None,
            soft_error: None,
            snd: SendVariables {
                iss,
                buffer: SendBuffer::new(1, options.send_buffer),
                wnd: 0,
                wl1: 0,
                wl2: 0,
                max_wnd: 0,
                least_ack: 0,
                smss: u64::from(negotiated.peer_mss())
                    .min(mtu.saturating_sub(negotiated.header_len()) as u64)
                    .max(8),
                fin: None,
                small_end: 0,
                last_sent: now,
                small_once: false,
                pushed: false,
                tail: Tail::End,
                spacing: None,
            },
            rcv: ReceiveVariables {
                irs: Seq(0),
                buffer: RecvBuffer::new(1, recv_limit),
                adv: 0,
                promised: 0,
                fin: None,
                ts_recent: 0,
                ts_recent_at: now,
                copy_tsval: None,
                last_ack_sent: 0,
                ack: AckDue::No,
                data_credit: FIRST_DATA_CREDIT,
                linux,
                mss_seen: 0,
                recent: None,
                dsack: None,
                alarm: profile.reordering_alarm.then(Box::default),
                echo_ce: false,
                queued: None,
                ect_seen: false,
            },
            flight: Flight::default(),
            rtt: RttEstimator::new(profile.timer.style, profile.timer.limits),
            timed: None,
            recovery,
            timers: Timers::default(),
            pending: Pending::default(),
            negotiated,
            narrow_path: None,
            mtu_search: None,
            ip_ident: iss.0 as u16,
            handshake_resent: 0,
            syn_timeouts: 0,
            fast_open: FastOpen::default(),
            orphaned: false,
            read_shut: false,
            challenges: None,
            statistics: Statistics::default(),
            charge: Charge::of(&budget),
            event_log: opening.logs_events.then(|| Box::new(EventLog::new(mtu as u32))),
            profile,
        }
    }

    /// Writes as much of `data` as fits into the send buffer, and returns the number of bytes.
    pub(crate) fn write(&mut self, now: Instant, data: &[u8], push: Push) -> usize {
        if self.flight.is_empty()
            && self.snd.buffer.end() == self.flight.max()
            && self.state.is_synchronized()
        {
            let idle = now - self.snd.last_sent;
            if idle > self.rtt.rto().get() {
                let (recovery, mut path) = self.recovery_and_path(now);
                recovery.on_idle(&mut path);
            }
        }
        if self.recovery.samples_rates() {
            let (recovery, path) = self.recovery_and_path(now);
            recovery.on_write(&path);
        }
        // A push lasts until all unsent data has left. Data that joins a segment waiting for the window is
        // pushed too.
        self.snd.pushed &= self.unsent() > 0;
        self.look_at_piece_again();
        self.release_syn();
        self.snd.tail = match push {
            Push::Now => Tail::End,
            Push::Later => Tail::Waits,
        };
        let room = self.room_to_write();
        self.snd.buffer.write(&data[..data.len().min(room)])
    }

    /// Ends a record: no segment contains both data written before and data written later.
    pub(crate) fn end_record(&mut self) {
        self.snd.buffer.end_record();
    }

    /// Exempts all data written so far from Nagle and cork, so that only the windows delay it (Linux 6.18,
    /// TCP_NAGLE_PUSH).
    pub(crate) fn push(&mut self) {
        self.snd.pushed = true;
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let count = self.rcv.buffer.read(out);
        if count > 0 {
            self.consider_window_update();
        }
        count
    }

    pub(crate) fn peek(&self, out: &mut [u8]) -> usize {
        self.rcv.buffer.peek(out)
    }

    /// Ends the outgoing stream: a FIN follows the buffered data (RFC 9293 §3.10.4).
    pub(crate) fn shutdown_write(&mut self) {
        if self.snd.fin.is_some() {
            return;
        }
        match self.state {
            // §3.10.4 queues a CLOSE in SYN-RECEIVED until the handshake completes. A half-close in SYN-SENT
            // is queued as well: written data is sent (§3.9.1.4), and the peer's data can still be read.
            State::SynSent | State::SynReceived | State::Established => {
                self.snd.fin = Some(self.snd.buffer.end());
                self.release_syn();
                if self.state == State::Established {
                    self.enter(State::FinWait1);
                }
            }
            State::CloseWait => {
                self.snd.fin = Some(self.snd.buffer.end());
                self.enter(State::LastAck);
            }
            _ => {}
        }
    }

    /// Shuts down reading. The profile decides whether buffered data can still be read.
    pub(crate) fn shutdown_read(&mut self) {
        self.read_shut = true;
        self.discard_unwanted();
    }

    /// Discards received data after SHUT_RD, if the profile does so.
    pub(super) fn discard_unwanted(&mut self) {
        if self.read_shut && self.profile.shut_read == ShutRead::Discard {
            self.rcv.buffer.discard(self.rcv.buffer.readable());
        }
    }

    /// Returns true if new data is answered with a RST, because the application has given up both directions
    /// (RFC 9293 §3.6.1). If reading was shut down but the socket is still open, a profile that discards data
    /// continues to do so.
    pub(super) fn refuses_data(&self) -> bool {
        let both_shut = self.read_shut && self.snd.fin.is_some();
        self.orphaned || (both_shut && self.profile.shut_read == ShutRead::Keep)
    }

    /// Closes the connection: the application will neither read nor write any more.
    pub(crate) fn close(&mut self, now: Instant) {
        self.orphaned = true;
        if self.state == State::TimeWait {
            // Both sides have closed. The connection must still absorb late segments, even if data is unread.
            return;
        }
        let unread = self.rcv.buffer.readable() > 0;
        if self.options.linger == Linger::Abort || (unread && self.state != State::Closed) {
            // RFC 2525 §2.17: closing with unread data sends a RST.
            match unread {
                true => self.reset(),
                false => self.abort(),
            }
            return;
        }
        if self.state == State::SynSent && self.snd.buffer.len() == 0 {
            // §3.10.4 deletes the connection and returns an error for each queued SEND. The writes here have
            // already returned, so the connection is deleted only if nothing was written.
            self.end(None);
            return;
        }
        self.shutdown_write();
        if self.state == State::FinWait2 {
            self.timers.start_orphan(now + self.orphan_limit());
        }
    }

    pub(super) fn orphan_limit(&self) -> Duration {
        self.options.linger2.unwrap_or(self.profile.time_wait)
    }

    /// ABORT (RFC 9293 §3.10.5). No RST is needed if both sides have closed and everything was sent to the
    /// peer.
    pub(crate) fn abort(&mut self) {
        match self.state {
            State::Closed | State::TimeWait => self.end(None),
            // The peer has no connection to reset yet.
            State::SynSent => self.end(Some(Ended::Aborted)),
            State::Closing | State::LastAck if self.snd.fin.is_some_and(|fin| self.flight.max() > fin) => {
                self.end(None);
            }
            _ => self.reset(),
        }
    }

    fn reset(&mut self) {
        self.pending.reset = true;
        self.ended = Some(Ended::Aborted);
    }

    pub(crate) fn set_options(&mut self, now: Instant, options: SocketOptions) {
        self.snd.buffer.set_limit(options.send_buffer);
        self.rcv.buffer.set_limit(options.recv_limit(&self.profile));
        if let Some(size) = options.recv_buffer.filter(|_| options.recv_buffer != self.options.recv_buffer)
            && let Some(linux) = &mut self.rcv.linux
        {
            linux.lock(size);
        }
        // Linux 6.18, __tcp_sock_set_nodelay(): this overrides even a cork for the data written so far.
        if options.nodelay && !self.options.nodelay {
            self.push();
        }
        let keepalive = std::mem::replace(&mut self.options, options).keepalive;
        self.update_smss();
        if self.options.keepalive != keepalive {
            self.timers.keepalive = None;
            self.start_keepalive(now);
        }
    }

    /// Ends a TIME-WAIT connection to make room for a new one. Received data can still be read.
    pub(crate) fn retire(&mut self) {
        self.end(None);
    }

    /// Ends the connection.
    pub(super) fn end(&mut self, why: Option<Ended>) {
        self.conclude_fast_open();
        self.enter(State::Closed);
        self.ended = self.ended.or(why);
        self.timers = Timers::default();
        self.pending = Pending::default();
        self.narrow_path = None;
        self.mtu_search = None;
        self.rcv.ack = AckDue::No;
        self.rcv.buffer.drop_out_of_order();
        self.rcv.queued = None;
        self.snd.spacing = None;
        self.snd.buffer = SendBuffer::new(1, 0);
        self.flight = Flight::default();
    }

    /// Returns the recovery and the parts of this connection that it controls.
    pub(super) fn recovery_and_path(&mut self, now: Instant) -> (&mut Recovery, Path<'_>) {
        let unsent = self.unsent() as u64;
        let path = Path {
            now,
            flight: &mut self.flight,
            rtt: &mut self.rtt,
            smss: self.snd.smss,
            rwnd: self.snd.wnd,
            unsent,
        };
        (&mut self.recovery, path)
    }

    /// Updates SMSS. Options reduce the data of a segment, not the MSS value (RFC 6691).
    pub(super) fn update_smss(&mut self) {
        let options = self.negotiated.options_len();
        let smss = self.max_seg().saturating_sub(options);
        // Linux, tcp_bound_to_half_wnd(): at least what remains of 68 bytes after the headers.
        let half = match self.snd.max_wnd {
            0 => u64::MAX,
            window @ 1..=536 => window.max(48 - options),
            window => window / 2,
        };
        self.snd.smss = if self.profile.half_window { smss.min(half) } else { smss }.max(8);
    }

    /// Returns the bytes of options and data in a full-sized segment of ours.
    pub(super) fn max_seg(&self) -> u64 {
        let fits =
            (self.longest_packet() as usize).saturating_sub(self.negotiated.header_len()).max(8) as u64;
        fits.min(self.negotiated.permitted_seg(&self.options))
    }

    /// Returns the connection's state in the diagram of RFC 9293.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns our address and the peer's.
    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.local, self.remote)
    }

    /// Returns our address and port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the peer's address and port.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Returns the options in force.
    pub fn options(&self) -> &SocketOptions {
        &self.options
    }

    /// Returns the receive memory in bytes, which grows with the amount that the application reads
    /// (sk_rcvbuf). `None` if the profile has a receive buffer of a fixed size.
    pub fn receive_memory(&self) -> Option<usize> {
        self.rcv.linux.as_ref().filter(|linux| linux.tunes_window()).map(|linux| linux.receive_memory())
    }

    /// Returns the profile in force, with the recipe's options applied.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the loss recovery: window, counters and trace.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Returns the loss recovery, to start or take its trace of decisions.
    pub fn recovery_mut(&mut self) -> &mut Recovery {
        &mut self.recovery
    }

    /// Returns the data sent and not yet acknowledged.
    pub fn flight(&self) -> &Flight {
        &self.flight
    }

    /// Returns the round-trip time estimator, which also computes the retransmission timeout.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the connection's counters.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the reason why the connection ended, unless both sides closed it.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Returns true if the application has shut down writing.
    pub fn write_is_shut(&self) -> bool {
        self.snd.fin.is_some()
    }

    /// Returns the number of bytes that can be read now.
    pub fn readable(&self) -> usize {
        self.rcv.buffer.readable()
    }

    /// Returns the number of bytes that can be written now; 0 also if writing was shut down or the connection
    /// has ended.
    pub fn writable(&self) -> usize {
        let open =
            matches!(self.state, State::SynSent | State::SynReceived | State::Established | State::CloseWait);
        if open && self.snd.fin.is_none() { self.room_to_write() } else { 0 }
    }

    /// Returns true if everything that arrived has been read, and the peer has closed or reading was shut
    /// down.
    pub fn at_end_of_stream(&self) -> bool {
        self.readable() == 0
            && (self.read_shut
                || self.rcv.fin.is_some_and(|fin| self.rcv.buffer.next() >= fin)
                || matches!(self.state, State::Closed | State::TimeWait))
    }

    /// Returns true if the application has shut down reading.
    pub fn read_is_shut(&self) -> bool {
        self.read_shut
    }

    /// Returns true if the application has closed, and our data or FIN is not yet acknowledged.
    pub fn is_closing(&self) -> bool {
        matches!(self.state, State::SynReceived | State::FinWait1 | State::Closing | State::LastAck)
            && self.snd.fin.is_some()
    }

    /// Returns the number of bytes that may be outstanding: the minimum of congestion window and peer's
    /// window.
    pub fn window(&self) -> u64 {
        let congestion = self.recovery.congestion();
        let allowed = (congestion.cwnd + congestion.inflation()) * self.snd.smss as f64;
        self.snd.wnd.min(allowed as u64)
    }

    /// Returns the number of bytes written but not yet sent. An application that keeps this small keeps its
    /// data in the CPU cache.
    pub fn unsent(&self) -> usize {
        self.snd.buffer.end().saturating_sub(self.flight.max().max(1)) as usize
    }

    /// Returns the bytes of data in a full-sized segment.
    pub fn smss(&self) -> u64 {
        self.snd.smss
    }

    /// Returns an amount of unsent data beyond which more data makes no difference until the peer's next
    /// segment: what the windows can release until then, plus one segment, or what an MTU probe requires. With
    /// that much unsent, no segment is cut short and none looks like the end of the stream.
    pub fn enough_unsent(&mut self, now: Instant) -> u64 {
        /// A timer may release a probe, and an empty path takes one segment whatever the window is.
        const BEYOND_WINDOW: u64 = 1;
        let by_peer = (self.flight.una() + self.snd.wnd).saturating_sub(self.flight.max());
        let (whole, smss) = (self.window(), self.snd.smss);
        let (recovery, path) = self.recovery_and_path(now);
        let by_cwnd = if recovery.makes_room_by_clock() { whole } else { recovery.room_for_new(&path) };
        (by_peer.min(by_cwnd + BEYOND_WINDOW * smss) + smss).max(self.data_for_mtu_probe())
    }

    /// Returns the number of bytes written and not yet acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.snd.buffer.len()
    }
}
