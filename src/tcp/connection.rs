//! The connection: its parts, and the commands of the application.

mod deadlines;
mod events;
mod fast_open;
mod icmp;
pub(super) mod info;
pub(crate) mod input;
pub(crate) mod output;
mod request;
mod stateless;
mod time_wait;

use std::net::SocketAddr;
use std::sync::Arc;

use airwire::piece::Payload;
use airwire::seq::Seq;
use airwire::text::Known;
use airwire::time::Instant;

use super::context::Context;
use super::event_log::EventLog;
use super::fast_open::{FastOpen, Plan};
use super::icmp::Unreachable;
use super::lifecycle::Lifecycle;
use super::negotiated::Negotiated;
use super::receiver::{Receiver, Storing};
use super::sender::Sender;
use super::socket::{Ended, Linger, Push, SocketOptions, State, Unanswered};
use super::statistics::Statistics;
use crate::flight::Flight;
use crate::memory::{Budget, Charge};
use crate::profile::{Profile, ShutRead};
use crate::recovery::Recovery;
use crate::rtt::RttEstimator;

/// One connection. [`Host::connection`](crate::host::Host::connection) gives read access to a connection;
/// commands go through the host.
///
/// The connection routes segments, commands and deadlines to its parts. Each part owns its state.
#[derive(Debug)]
pub struct Connection {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// The facts that both halves read.
    pub(super) cx: Context,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) statistics: Statistics,
    /// The connection's part of the host's memory budget.
    charge: Charge,
    /// `None`: logging is off.
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

/// The two halves, the counters, and the facts that the halves read.
pub(super) struct Parts<'a> {
    pub(super) sender: &'a mut Sender,
    pub(super) receiver: &'a mut Receiver,
    pub(super) statistics: &'a mut Statistics,
    /// The connection's part of the host's memory budget.
    pub(super) charge: &'a mut Charge,
    pub(super) cx: &'a Context,
}

impl Connection {
    /// Creates a connection by active open. The next poll sends the SYN, unless it waits for data (TCP Fast
    /// Open).
    pub(crate) fn connect(now: Instant, opening: Opening) -> Self {
        let plan = opening.fast_open;
        let mut connection = Self::new(now, opening, State::SynSent);
        connection.plan_fast_open(plan);
        connection
    }

    pub(super) fn new(now: Instant, opening: Opening, state: State) -> Self {
        let Opening { local, remote, profile, recovery, options, iss, ts_offset, mtu, budget, .. } = opening;
        let mut negotiated = Negotiated::new(local.is_ipv4(), mtu, ts_offset);
        let advmss = negotiated.advertised_mss(&profile, &options);
        let receiver = Receiver::new(now, &profile, &options, advmss.into());
        negotiated.offer_scale(receiver.scale_to_offer(&profile));
        Self {
            local,
            remote,
            sender: Sender::new(now, &profile, &options, &negotiated, (iss, recovery)),
            receiver,
            cx: Context {
                profile,
                options,
                negotiated,
                lifecycle: Lifecycle::new(state),
                fast_open: FastOpen::default(),
            },
            statistics: Statistics::default(),
            charge: Charge::of(&budget),
            event_log: opening.logs_events.then(|| Box::new(EventLog::new(mtu as u32))),
        }
    }

    /// Borrows the halves and the facts that they read.
    pub(super) fn parts(&mut self) -> Parts<'_> {
        Parts {
            sender: &mut self.sender,
            receiver: &mut self.receiver,
            statistics: &mut self.statistics,
            charge: &mut self.charge,
            cx: &self.cx,
        }
    }

    /// Borrows the receiver and everything that it needs to store data.
    pub(super) fn storing(&mut self) -> (&mut Receiver, &Context, Storing<'_>) {
        let Parts { sender, receiver, statistics, charge, cx } = self.parts();
        let sender_memory = if charge.budget().is_limited() { sender.cost() } else { 0 };
        (receiver, cx, Storing { statistics, charge, sender_memory, rtt: sender.rtt() })
    }

    /// Writes as much of `data` as fits into the send buffer, and returns the number of bytes.
    pub(crate) fn write(&mut self, now: Instant, data: Payload<'_>, push: Push) -> usize {
        self.release_syn();
        let Parts { sender, receiver, charge, cx, .. } = self.parts();
        sender.reserve_for_blocks(receiver.sack_len_on_data(cx));
        sender.write(cx, charge.budget(), now, data, push)
    }

    /// Ends a record: no segment contains both data written before and data written later.
    pub(crate) fn end_record(&mut self) {
        self.sender.end_record();
    }

    /// Exempts all data written so far from Nagle and cork, so that only the windows delay it (Linux 6.18,
    /// TCP_NAGLE_PUSH).
    pub(crate) fn push(&mut self) {
        self.sender.push();
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let count = self.receiver.read(out, self.charge.budget());
        if count > 0 {
            self.consider_window_update();
        }
        count
    }

    /// Reads up to `max` bytes that arrived in order, if they are one part of the known stream.
    pub(crate) fn read_known(&mut self, max: usize) -> Option<Known> {
        let known = self.receiver.read_known(max)?;
        self.consider_window_update();
        Some(known)
    }

    fn consider_window_update(&mut self) {
        let Parts { sender, receiver, charge, cx, .. } = self.parts();
        let max_seg = || sender.max_seg(&cx.negotiated, &cx.options);
        receiver.consider_window_update(cx, charge.budget(), max_seg);
    }

    pub(crate) fn peek(&self, out: &mut [u8]) -> usize {
        self.receiver.peek(out)
    }

    /// Ends the outgoing stream: a FIN follows the buffered data (RFC 9293 §3.10.4).
    pub(crate) fn shutdown_write(&mut self) {
        if self.sender.is_finished() {
            return;
        }
        match self.state() {
            // §3.10.4 queues a CLOSE in SYN-RECEIVED until the handshake completes. A half-close in SYN-SENT
            // is also queued: written data is sent (§3.9.1.4), and the peer's data can still be read.
            State::SynSent | State::SynReceived => {
                self.sender.finish();
                self.release_syn();
            }
            State::Established => {
                self.sender.finish();
                self.enter(State::FinWait1);
            }
            State::CloseWait => {
                self.sender.finish();
                self.enter(State::LastAck);
            }
            _ => {}
        }
    }

    /// Shuts down reading. The profile decides whether buffered data can still be read.
    pub(crate) fn shutdown_read(&mut self) {
        self.receiver.shut(&self.cx.profile, self.charge.budget());
    }

    /// Returns true if new data is answered with a RST, because the application has closed both directions
    /// (RFC 9293 §3.6.1). If reading was shut down but the socket is still open, a profile that discards data
    /// still discards it.
    pub(super) fn refuses_data(&self) -> bool {
        let both_shut = self.receiver.is_shut() && self.sender.is_finished();
        self.cx.lifecycle.is_orphaned()
            || (both_shut && self.cx.profile.acks.after_shutdown == ShutRead::Keep)
    }

    /// Closes the connection: the application will neither read nor write any more.
    pub(crate) fn close(&mut self, now: Instant) {
        self.cx.lifecycle.orphan();
        self.receiver.empty_queue();
        let state = self.state();
        if state == State::TimeWait {
            // Both sides have closed. The connection must still absorb late segments, even if data is unread.
            return;
        }
        let unread = self.readable() > 0 && state != State::Closed;
        if self.cx.options.linger == Linger::Abort || unread {
            // RFC 2525 §2.17: closing with unread data sends a RST.
            match unread {
                true => self.cx.lifecycle.reset(Ended::Aborted),
                false => self.abort(),
            }
            return;
        }
        if state == State::SynSent && self.unacknowledged() == 0 {
            // §3.10.4 deletes the connection and returns an error for each queued SEND. The writes here have
            // already returned, so the connection is deleted only if nothing was written.
            self.end(None);
            return;
        }
        self.shutdown_write();
        if self.state() == State::FinWait2 {
            self.cx.lifecycle.limit_fin_wait_2(now, &self.cx.profile, &self.cx.options);
            self.release_socket(now);
        }
    }

    /// ABORT (RFC 9293 §3.10.5). No RST is needed if both sides have closed and everything was sent to the
    /// peer.
    pub(crate) fn abort(&mut self) {
        match self.state() {
            State::Closed | State::TimeWait => self.end(None),
            // The peer has no connection to reset yet.
            State::SynSent => self.end(Some(Ended::Aborted)),
            State::Closing | State::LastAck if self.sender.fin_is_sent() => self.end(None),
            _ => self.cx.lifecycle.reset(Ended::Aborted),
        }
    }

    pub(crate) fn set_options(&mut self, now: Instant, options: SocketOptions) {
        let before = std::mem::replace(&mut self.cx.options, options);
        let Parts { sender, receiver, cx, .. } = self.parts();
        receiver.set_buffer(&cx.profile, &cx.options, before.recv_buffer);
        // Linux 6.18, __tcp_sock_set_nodelay(): this overrides even a cork for the data written so far.
        if cx.options.nodelay && !before.nodelay {
            sender.push();
        }
        sender.set_options(cx);
        if self.cx.options.keepalive != before.keepalive {
            self.cx.lifecycle.restart_keepalive(now, &self.cx.options);
        }
    }

    /// Ends a TIME-WAIT connection to make room for a new one. Received data can still be read.
    pub(crate) fn retire(&mut self) {
        self.end(None);
    }

    /// Ends the connection.
    pub(super) fn end(&mut self, why: Option<Ended>) {
        self.conclude_fast_open();
        let from = self.cx.lifecycle.end(why);
        self.log_state(from);
        self.receiver.end();
        self.sender.end();
    }

    /// Drops out-of-order data, highest offset first, until `enough` bytes of memory are free or none is
    /// left.
    pub(crate) fn prune(&mut self, enough: usize) {
        self.receiver.prune(self.charge.budget(), enough);
        self.account();
    }

    /// Updates the host's budget after a change.
    #[inline]
    pub(crate) fn account(&mut self) {
        if self.charge.budget().is_limited() {
            self.receiver.account(&mut self.charge, self.sender.cost());
        }
    }

    /// Returns the bytes of memory that out-of-order data takes.
    pub(crate) fn memory_out_of_order(&self) -> usize {
        self.charge.held_out_of_order()
    }

    /// Returns the connection's state in the diagram of RFC 9293.
    pub fn state(&self) -> State {
        self.cx.lifecycle.state()
    }

    /// Returns our address and the peer's.
    pub(crate) fn ends(&self) -> (&SocketAddr, &SocketAddr) {
        (&self.local, &self.remote)
    }

    /// Returns our address and port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns true if these are our address and the peer's.
    #[inline]
    pub(crate) fn is_between(&self, (local, remote): (&SocketAddr, &SocketAddr)) -> bool {
        self.local == *local && self.remote == *remote
    }

    /// Returns the peer's address and port.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Returns the options in force.
    pub fn options(&self) -> &SocketOptions {
        &self.cx.options
    }

    /// Returns the receive memory in bytes, which grows with the amount that the application reads
    /// (sk_rcvbuf). `None` if the profile has a receive buffer of a fixed size.
    pub fn receive_memory(&self) -> Option<usize> {
        self.receiver.memory_limit()
    }

    /// Returns the profile in force, with the recipe's options applied.
    pub fn profile(&self) -> &Profile {
        &self.cx.profile
    }

    /// Returns the loss recovery: window, counters and trace.
    pub fn recovery(&self) -> &Recovery {
        self.sender.recovery()
    }

    /// Returns the loss recovery, to start or take its trace of decisions.
    pub fn recovery_mut(&mut self) -> &mut Recovery {
        self.sender.recovery_mut()
    }

    /// Returns the data sent and not yet acknowledged.
    pub fn flight(&self) -> &Flight {
        self.sender.flight()
    }

    /// Returns the round-trip time estimator, which also computes the retransmission timeout.
    pub fn rtt(&self) -> &RttEstimator {
        self.sender.rtt()
    }

    /// Returns the connection's counters.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the reason why the connection ended, unless both sides closed it.
    pub fn ended(&self) -> Option<Ended> {
        self.cx.lifecycle.ended()
    }

    /// Returns true if the application has shut down writing.
    pub fn write_is_shut(&self) -> bool {
        self.sender.is_finished()
    }

    /// Returns the number of bytes that can be read now.
    pub fn readable(&self) -> usize {
        self.receiver.readable()
    }

    /// Returns the number of bytes that can be written now; 0 also if writing was shut down or the connection
    /// has ended.
    pub fn writable(&self) -> usize {
        let open = matches!(
            self.state(),
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        );
        if !open || self.write_is_shut() {
            return 0;
        }
        self.sender.room_to_write(self.charge.budget())
    }

    /// Returns true if everything that arrived has been read, and the peer has closed or reading was shut
    /// down.
    pub fn at_end_of_stream(&self) -> bool {
        self.readable() == 0
            && (self.read_is_shut()
                || self.receiver.has_reached_fin()
                || matches!(self.state(), State::Closed | State::TimeWait))
    }

    /// Returns true if the application has shut down reading.
    pub fn read_is_shut(&self) -> bool {
        self.receiver.is_shut()
    }

    /// Returns true if the application has closed, and our data or FIN is not yet acknowledged.
    pub fn is_closing(&self) -> bool {
        matches!(self.state(), State::SynReceived | State::FinWait1 | State::Closing | State::LastAck)
            && self.write_is_shut()
    }

    /// Returns the number of bytes that may be outstanding: the minimum of congestion window and peer's
    /// window.
    pub fn window(&self) -> u64 {
        self.sender.window()
    }

    /// Returns the number of bytes written but not yet sent. An application that keeps this small keeps its
    /// data in the CPU cache.
    pub fn unsent(&self) -> usize {
        self.sender.unsent()
    }

    /// Returns the bytes of data in a full-sized segment.
    pub fn smss(&self) -> u64 {
        self.sender.smss()
    }

    /// Returns the amount of unsent data up to which more data can change the segments that are sent before
    /// the peer's next segment arrives: the room in the windows plus one segment, or the data for an MTU
    /// probe. With this much unsent data, no segment is cut short, and none has PSH because it is the last
    /// one.
    pub fn enough_unsent(&mut self, now: Instant) -> u64 {
        let Parts { sender, cx, .. } = self.parts();
        sender.enough_unsent(cx, now)
    }

    /// Returns the number of bytes written and not yet acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.sender.unacknowledged()
    }

    /// Returns the report that R1 is reached, until the peer acknowledges something (RFC 9293 §3.8.3 (e)).
    pub fn unanswered(&self) -> Option<Unanswered> {
        self.sender.unanswered(&self.cx)
    }

    /// Returns and clears the last ICMP error that did not end the connection (RFC 9293 §3.9.2.2, SHLD-25). A
    /// later timeout then does not report it again.
    pub fn take_soft_error(&mut self) -> Option<Unreachable> {
        self.cx.lifecycle.take_soft_error()
    }
}
