//! A host with many connections: demultiplexing, ports, listeners, RSTs and ICMP.
//!
//! The methods of [`Host`] are of four kinds: input (`handle_*`), commands from the application (`opening`
//! and `commands`), output (`poll_*` and `next_deadline`), and getters. After any input or command, call
//! [`Host::poll_packet`] until it returns false, then call [`Host::next_deadline`]. Packets passed in before
//! that are answered by one ACK instead of one each. `now` must never go backwards; several calls may have
//! the same `now`.

mod admission;
mod commands;
mod cookies;
mod demux;
mod event_log;
mod fast_open;
mod gate;
mod icmp;
mod keyed_hash;
mod opening;
mod output;
mod resets;
mod slots;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use admission::AdmissionClass;
use airwire::piece::Piece;
use airwire::segment::{self, BadPacket, Flags, Ip, Segment, Verified};
use airwire::time::Instant;
pub use commands::IoError;
use demux::{Demux, Ends};
use fast_open::FastOpen;
pub use fast_open::{FastOpenCounters, FastOpenServer};
use gate::Gate;
pub use gate::{GateCounters, Limits};
use keyed_hash::keyed_hash;
use opening::Listener;
pub use opening::{ConnectError, ListenError, ListenId};
pub use slots::ConnId;
use slots::Slots;
use smoltcp::wire::IpProtocol;

use crate::events::{Event, Refusal};
use crate::memory::{Budget, MemoryUse};
use crate::profile::{Profile, SynFin};
use crate::recovery::Recipe;
use crate::tcp::connection::input::Reaction;
use crate::tcp::{Connection, State};

/// The configuration of a new host.
pub struct HostConfig {
    /// The host's addresses, IPv4 or IPv6. Packets to other addresses are counted and dropped.
    pub addrs: Vec<IpAddr>,
    /// Maximum size of an IP packet on the device, in bytes.
    pub mtu: usize,
    /// The behaviour of the host's TCP where standards leave a choice. The recipe's options override it.
    pub profile: Profile,
    /// The loss recovery of its senders.
    pub recipe: Recipe,
    /// Seed of initial sequence numbers, timestamp offsets, ephemeral ports and the key of Fast Open cookies.
    pub seed: u64,
}

/// Counters of a host: all packets, and those that no connection processed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets passed in, valid or not.
    pub packets_in: u64,
    /// Packets returned for sending.
    pub packets_out: u64,
    /// Packets dropped because they are malformed, by reason.
    pub bad: BTreeMap<BadPacket, u64>,
    /// Packets to an address that the host does not have.
    pub not_ours: u64,
    /// RSTs in answer to segments without a connection (RFC 9293 §3.5.2).
    pub resets_sent: u64,
    /// SYNs dropped because the backlog was full of connections that wait to be accepted, because their
    /// source had reached its limit, or because they also had a FIN.
    pub syns_dropped: u64,
    /// Counters of admission decisions.
    pub gate: GateCounters,
    /// Counters of TCP Fast Open.
    pub fast_open: FastOpenCounters,
    /// ICMP errors that a connection accepted.
    pub icmp_errors: u64,
    /// ICMP messages without effect: unknown, without a connection, or rejected.
    pub icmp_ignored: u64,
    /// Echo requests answered.
    pub echo_replies: u64,
}

/// A TCP host: connections and listeners at a set of addresses. See the [module](self) for how to drive it.
pub struct Host {
    addrs: Vec<IpAddr>,
    mtu: usize,
    /// The profile with the recipe's options applied.
    profile: Arc<Profile>,
    recipe: Recipe,
    seed: u64,
    budget: Arc<Budget>,
    slots: Slots,
    demux: Demux,
    listeners: BTreeMap<ListenId, Listener>,
    /// IDs of listeners are never reused.
    next_listener: u32,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// At most one entry per connection. It may be earlier than the connection's next deadline.
    deadlines: BTreeSet<(Instant, u32)>,
    /// Packets that belong to no connection.
    replies: VecDeque<Vec<u8>>,
    /// A segment that [`Host::poll_piece`] has built but could not append to the piece that it returned.
    next_piece: Piece,
    /// Segments that the first connection in `ready` has sent in its current turn.
    in_turn: usize,
    gate: Gate,
    fast_open: FastOpen,
    /// Number of ephemeral ports chosen, modulo 2^16, for each group of destinations.
    ports_used: Box<[u16; opening::PORT_COUNTERS]>,
    /// Whether new connections record a trace of their decisions.
    traced: bool,
    /// Connections that have changed since `poll_changed` last returned them. `None` unless `note_changes`
    /// was called.
    changed: Option<VecDeque<u32>>,
    /// Events since the last `poll_event`. `None` unless `note_events` was called.
    events: Option<VecDeque<Event>>,
    counters: HostCounters,
}

impl Host {
    /// Creates a host without connections. It sends nothing before the first command or packet.
    pub fn new(config: HostConfig) -> Self {
        let HostConfig { addrs, mtu, profile, recipe, seed } = config;
        Self {
            addrs,
            // Maximum length of an IP packet.
            mtu: mtu.min(65_535),
            profile: Arc::new(recipe.tune(&profile)),
            recipe,
            seed,
            budget: Budget::unlimited(),
            slots: Slots::default(),
            demux: Demux::new(seed),
            listeners: BTreeMap::new(),
            next_listener: 0,
            ready: VecDeque::new(),
            deadlines: BTreeSet::new(),
            replies: VecDeque::new(),
            next_piece: Piece::default(),
            in_turn: 0,
            gate: Gate::default(),
            fast_open: FastOpen::new(seed),
            ports_used: Box::new([0; opening::PORT_COUNTERS]),
            traced: false,
            changed: None,
            events: None,
            counters: HostCounters::default(),
        }
    }

    /// Processes one whole IP packet. A malformed packet is only counted.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.handle(now, packet, segment::parse_ip(packet), Verified::NotYet);
    }

    /// Like [`Host::handle_packet`], for a packet whose TCP checksum the device has verified. The checksum is
    /// not computed, and its field may have any value.
    pub fn handle_verified_packet(&mut self, now: Instant, packet: &[u8]) {
        self.handle(now, packet, segment::parse_ip(packet), Verified::ByDevice);
    }

    /// Like [`Host::handle_packet`], for a packet of [`Host::poll_abbreviated_packet`].
    pub fn handle_abbreviated_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some(segment) = &segment::parse_usual_abbreviated(packet) else {
            return self.handle(now, packet, segment::parse_abbreviated_ip(packet), Verified::ByDevice);
        };
        self.counters.packets_in += 1;
        if self.is_for_us(segment.src.ip(), segment.dst.ip()) {
            self.process_segment(now, segment);
        }
    }

    #[inline]
    fn handle(&mut self, now: Instant, packet: &[u8], ip: Result<Ip<'_>, BadPacket>, verified: Verified) {
        self.counters.packets_in += 1;
        if let Err(bad) = ip.and_then(|ip| self.process_packet(now, &ip, verified)) {
            *self.counters.bad.entry(bad).or_default() += 1;
            self.log_bad(now, packet, bad);
        }
    }

    /// Returns true if a packet is from another host to this one. Otherwise counts it.
    #[inline]
    fn is_for_us(&mut self, src: IpAddr, dst: IpAddr) -> bool {
        let is_ours = self.addrs.contains(&dst);
        // RFC 1122 §3.2.1.3: no other host has this source address, and the answer would come back here.
        let is_from_self = is_ours && self.addrs.contains(&src);
        self.counters.not_ours += u64::from(!is_ours);
        self.counters.gate.from_self += u64::from(is_from_self);
        is_ours && !is_from_self
    }

    fn process_packet(&mut self, now: Instant, ip: &Ip<'_>, verified: Verified) -> Result<(), BadPacket> {
        if !self.is_for_us(ip.src, ip.dst) {
            return Ok(());
        }
        match ip.protocol {
            IpProtocol::Tcp => {
                let segment = segment::parse_tcp(ip, verified)?;
                self.process_segment(now, &segment);
                Ok(())
            }
            IpProtocol::Icmp | IpProtocol::Icmpv6 => self.process_icmp(now, ip),
            _ => Err(BadPacket::Protocol),
        }
    }

    fn process_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        let syn_fin = segment.flags.contains(Flags::SYN.with(Flags::FIN));
        if let Some(index) = self.index_of((&segment.dst, &segment.src)) {
            if syn_fin && self.profile.handshake.syn_fin == SynFin::Drop {
                self.counters.syns_dropped += 1;
                self.log_refused(now, segment, Refusal::SynFin);
                return;
            }
            if let Some(next) = self.replace_time_wait(now, index, segment) {
                self.process_without_connection(now, segment, Some(next));
                return;
            }
            let Some(connection) = self.slots.at_mut(index) else { return };
            let reaction = connection.handle_segment(now, segment);
            self.after_segment(now, index, reaction, segment);
            return;
        }
        self.process_without_connection(now, segment, None);
    }

    #[inline]
    fn after_segment(&mut self, now: Instant, index: u32, reaction: Reaction, segment: &Segment<'_>) {
        match reaction {
            Reaction::Done => {}
            Reaction::Reset(timestamps) => self.reply_reset(now, segment, timestamps),
            Reaction::Established => self.on_established(now, index),
        }
        self.account(index);
        self.collect_events(now, index);
        self.mark_ready(index);
    }

    /// Passes a connection whose passive open is complete to its listener.
    fn on_established(&mut self, now: Instant, index: u32) {
        if let Some(id) = self.slots.listener_of(index)
            && self.admit(now, index)
            && let Some(listener) = self.listeners.get_mut(&id)
            && let Some(connection) = self.slots.at_mut(index)
        {
            listener.ready.push_back(index);
            // Options set on the listener since the SYN arrived apply too: kernels create the socket at this
            // point.
            if *connection.options() != listener.options {
                connection.set_options(now, listener.options.clone());
            }
        }
    }

    /// Runs every timer that is due at `now`. Calling it too early has no effect.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some((at, index)) = self.deadlines.first().copied() {
            if at > now {
                break;
            }
            self.deadlines.pop_first();
            self.slots.take_deadline(index);
            let Some(connection) = self.slots.at_mut(index) else { continue };
            let due = connection.next_deadline();
            if due.is_some_and(|due| due <= now) {
                connection.log_due_timers(now);
                connection.handle_deadline(now);
            } else if connection.is_quiet() {
                // The timer has been stopped or restarted, and a poll would change nothing.
                self.note_deadline(index, due);
                continue;
            }
            self.collect_events(now, index);
            self.mark_ready(index);
        }
    }

    /// Limits the memory that all connections together may use for received, unsent and out-of-order data, in
    /// bytes. See [`memory`](crate::memory) for the effects of a shortage. Without this call there is no
    /// limit.
    pub fn limit_memory(&mut self, bytes: usize) {
        self.budget.set_limit(bytes);
    }

    /// Starts a trace of decisions in every connection opened from now on.
    pub fn trace_decisions(&mut self) {
        self.traced = true;
    }

    /// Enables [`Host::poll_changed`], which returns the connections that have changed. The driver must then
    /// call `poll_changed` until it returns `None`, and only then wait.
    pub fn note_changes(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// Enables [`Host::poll_event`] for connections opened from now on, and for packets that belong to none.
    pub fn note_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Returns when [`Host::handle_deadline`] must be called. The value is valid after all packets have been
    /// polled, until the next input or command.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns the next connection of the application that has changed: a packet, a timer or a command was
    /// processed, and every resulting packet has been polled. There may be data to read, room to write, or
    /// the end of the connection. Each connection is returned once for all its changes. Always `None` unless
    /// [`Host::note_changes`] was called.
    pub fn poll_changed(&mut self) -> Option<ConnId> {
        let changed = self.changed.as_mut()?;
        while let Some(index) = changed.pop_front() {
            if let Some(id) = self.slots.take_changed(index) {
                return Some(id);
            }
        }
        None
    }

    /// Returns the next event. Always `None` unless [`Host::note_events`] was called.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop_front()
    }

    /// Returns true if [`Host::poll_changed`] may return a connection.
    pub fn has_changes(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| !changed.is_empty())
    }

    /// Returns the connection. An ended connection exists until the application closes it.
    pub fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.slots.get(id)
    }

    /// Returns the connection, to start or take the trace of its decisions.
    pub fn connection_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.slots.get_mut(id)
    }

    /// Returns the host's addresses.
    pub fn addrs(&self) -> &[IpAddr] {
        &self.addrs
    }

    /// Returns the profile in force: the configured one, with the recipe's options applied.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the configured recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the memory use of all connections, if [`Host::limit_memory`] was called.
    pub fn memory(&self) -> MemoryUse {
        self.budget.report()
    }

    /// Returns the host's counters.
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// Returns the number of connections in any state, including TIME-WAIT.
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of connections in TIME-WAIT.
    pub fn in_time_wait(&self) -> usize {
        self.slots.iter().filter(|connection| connection.state() == State::TimeWait).count()
    }

    /// Returns the index of the connection with these addresses, the local one first.
    fn index_of(&mut self, ends: Ends<'_>) -> Option<u32> {
        self.demux.find(ends, |index| self.slots.is_between(index, ends))
    }

    fn hash(&self, what: &impl Hash) -> u64 {
        keyed_hash(self.seed, what)
    }

    fn insert(&mut self, connection: Connection, listener: Option<ListenId>) -> u32 {
        let (local, remote) = (connection.local(), connection.remote());
        let index = self.slots.insert(connection, listener);
        let ends = (&local, &remote);
        self.demux.insert(ends, index, |other| self.slots.is_between(other, ends));
        index
    }

    fn mark_ready(&mut self, index: u32) {
        if self.slots.queue(index) {
            self.ready.push_back(index);
        }
    }

    /// Removes a connection from the ready queue, because it has nothing more to send. Records its next
    /// deadline, or removes the connection if it has ended.
    fn unready(&mut self, now: Instant, index: u32) {
        self.slots.unqueue(index);
        if let Some(changed) = &mut self.changed
            && self.slots.note_change(index)
        {
            changed.push_back(index);
        }
        let Some(state) = self.slots.at_mut(index).map(|connection| connection.state()) else { return };
        self.update_class(now, index, state);
        self.update_fast_open(now, index);
        let Some(connection) = self.slots.at_mut(index) else { return };
        connection.account();
        if state == State::Closed {
            self.demux.remove(connection.ends(), index);
            if self.slots.is_released(index) && !self.waits_for_accept(index) {
                self.drop_connection(now, index);
            }
            return;
        }
        let deadline = connection.next_deadline();
        self.note_deadline(index, deadline);
    }

    /// Adds the next deadline of a connection to the queue, unless the queue has an earlier entry.
    #[inline]
    fn note_deadline(&mut self, index: u32, deadline: Option<Instant>) {
        if let Some(at) = deadline
            && let Some(replaced) = self.slots.note_deadline(index, at)
        {
            if let Some(replaced) = replaced {
                self.deadlines.remove(&(replaced, index));
            }
            self.deadlines.insert((at, index));
        }
    }

    /// Updates the memory use after a step that may have changed it, and prunes if necessary.
    #[inline]
    fn account(&mut self, index: u32) {
        if !self.budget.is_limited() {
            return;
        }
        if let Some(connection) = self.slots.at_mut(index) {
            connection.account();
        }
        if self.budget.to_prune() > 0 {
            self.prune();
        }
    }

    /// Prunes out-of-order data, starting with the connection that holds the most.
    #[cold]
    fn prune(&mut self) {
        let has_any = |connection: &&mut Connection| connection.memory_out_of_order() > 0;
        let mut holders: Vec<_> = self.slots.iter_mut().filter(has_any).collect();
        holders.sort_by_key(|connection| std::cmp::Reverse(connection.memory_out_of_order()));
        for connection in holders {
            match self.budget.to_prune() {
                0 => return,
                enough => connection.prune(enough),
            }
        }
    }

    /// Removes a connection that the application does not hold.
    fn drop_connection(&mut self, now: Instant, index: u32) {
        if let Some(at) = self.slots.take_deadline(index) {
            self.deadlines.remove(&(at, index));
        }
        self.set_class(now, index, AdmissionClass::Ordinary);
        let Some((connection, listener)) = self.slots.remove(index) else { return };
        self.demux.remove(connection.ends(), index);
        if let Some(listener) = listener {
            // The listener may have closed in the meantime.
            if let Some(listener) = self.listeners.get_mut(&listener) {
                listener.opening = listener.opening.saturating_sub(1);
                listener.ready.retain(|waiting| *waiting != index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airwire::seq::Seq;

    use super::*;
    use crate::tcp::SocketOptions;

    /// Returns a host with its address and the default options of its connections.
    fn host() -> (Host, IpAddr, SocketOptions) {
        let (addr, profile) = (IpAddr::from([192, 0, 2, 1]), Profile::default());
        let options = SocketOptions::of(&profile);
        let recipe = Recipe::default();
        let host = Host::new(HostConfig { addrs: vec![addr], mtu: 1500, profile, recipe, seed: 1 });
        (host, addr, options)
    }

    #[test]
    fn closed_listener_is_removed() {
        let (mut host, addr, options) = host();
        for _ in 0..3 {
            let id = host.listen((addr, 80).into(), 1, options.clone()).unwrap();
            host.unlisten(id);
        }
        assert!(host.listeners.is_empty(), "{:?}", host.listeners);
    }

    #[test]
    fn verified_packet_skips_tcp_checksum_check() {
        let (mut host, addr, options) = host();
        host.listen((addr, 80).into(), 1, options).unwrap();
        let header = segment::Header {
            src: ([192, 0, 2, 2], 1000).into(),
            dst: (addr, 80).into(),
            seq: Seq(7),
            ack: Seq(0),
            flags: Flags::SYN,
            window: 1000,
            ecn: segment::Ecn::NotEct,
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            ident: 0,
        };
        let (mut syn, mut answer) = (Vec::new(), Vec::new());
        let tcp = segment::emit_headers(&mut syn, &header, |_| (), 0);
        assert_eq!((tcp, &syn[36..38]), (20, &[0, 0][..]));
        host.handle_packet(Instant::ZERO, &syn);
        assert_eq!(host.counters().bad[&BadPacket::TcpChecksum], 1);
        assert!(!host.poll_packet(Instant::ZERO, &mut answer), "the SYN with a bad checksum is not answered");
        host.handle_verified_packet(Instant::ZERO, &syn);
        assert_eq!(host.counters().bad.len(), 1, "{:?}", host.counters().bad);
        assert!(host.poll_packet(Instant::ZERO, &mut answer), "the SYN is answered");
        // The checksum of the IP header is still verified.
        syn[8] ^= 1;
        host.handle_verified_packet(Instant::ZERO, &syn);
        assert_eq!(host.counters().bad[&BadPacket::IpChecksum], 1);
    }
}
