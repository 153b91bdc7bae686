//! Many connections behind one host: demultiplexing, ports, listeners, resets, ICMP.
//!
//! The methods of [`Host`] are of four kinds: what comes in (`handle_*`), what the application commands (those that open a
//! connection are in `opening`), what goes out (`poll_*` and `next_deadline`; packets in `leaving`), and getters. After anything of the first two kinds, call
//! [`Host::poll_packet`] until it says false, then ask for [`Host::next_deadline`]. Packets that come in before that are
//! answered by one ACK instead of one each. `now` never goes back; the same `now` again is another event at the same
//! instant.

mod cookies;
mod demux;
mod gate;
mod icmp;
mod keyed_hash;
mod leaving;
mod opening;
mod slots;
mod standing;
mod telling;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use airwire::piece::Piece;
use airwire::segment::{self, BadPacket, Flags, Segment, Verified};
use airwire::time::Instant;
use demux::{Demux, Tuple};
use gate::Gate;
pub use gate::{GateCounters, Limits};
use keyed_hash::keyed_hash;
use opening::Listener;
pub use opening::{ConnectError, ListenError, ListenId};
pub use slots::ConnId;
use slots::Slots;
use smoltcp::wire::IpProtocol;
use standing::Standing;

use crate::events::{Event, Refusal};
use crate::memory::{Budget, MemoryUse};
use crate::profile::{Profile, SynFin};
use crate::recovery::Recipe;
use crate::tcp::input::Reaction;
use crate::tcp::{Connection, Ended, Push, SocketOptions, State};

/// What a host starts from.
pub struct HostConfig {
    /// Its own addresses, of either family. Packets to others are counted and dropped.
    pub addrs: Vec<IpAddr>,
    /// The longest IP packet that the device takes, in octets.
    pub mtu: usize,
    /// How its TCP behaves where standards leave a choice. The recipe's options override it.
    pub profile: Profile,
    /// How its senders find and repair losses.
    pub recipe: Recipe,
    /// Initial sequence numbers, timestamp offsets and ephemeral ports come from it.
    pub seed: u64,
}

/// Why a read or write did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IoError {
    /// No data has arrived, or the send buffer is full. Try again when the connection has changed.
    #[error("would block")]
    WouldBlock,
    /// The application has closed it, or both sides have and it is over.
    #[error("not connected")]
    NotConnected,
    /// Writing was shut down.
    #[error("this side was closed")]
    Closed,
    /// The connection has failed. Data that arrived before can still be read.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// What a host counts: packets in all, and those that no connection has dealt with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets handed in, good or bad.
    pub packets_in: u64,
    /// Packets handed out.
    pub packets_out: u64,
    /// Packets that were dropped because something is wrong with them.
    pub bad: BTreeMap<BadPacket, u64>,
    /// Packets to an address that the host does not have.
    pub not_ours: u64,
    /// Resets that answered segments of no connection (RFC 9293 §3.5.2).
    pub resets_sent: u64,
    /// SYNs dropped because the listener's backlog was full of connections that nobody accepts, because their source has
    /// its share, or because they had a FIN as well.
    pub syns_dropped: u64,
    /// What became of strangers.
    pub gate: GateCounters,
    /// ICMP errors that a connection believed.
    pub icmp_errors: u64,
    /// ICMP messages that changed nothing: unknown, about no connection, or not believed.
    pub icmp_ignored: u64,
    /// Echo requests answered.
    pub echo_replies: u64,
}

/// A TCP host: connections and listeners behind a set of addresses. See the [module](self) for how to drive it.
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
    /// Names of listeners are not used again.
    next_listener: u32,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// At most one entry per connection. An early one does no harm: the connection is asked again.
    deadlines: BTreeSet<(Instant, u32)>,
    replies: VecDeque<Vec<u8>>,
    /// A segment that left together with a piece that it does not continue.
    next_piece: Piece,
    /// Segments that the first of `ready` has sent in its turn.
    in_turn: usize,
    gate: Gate,
    ports_given: u64,
    traced: bool,
    /// Connections that have changed since they were last named. `None` unless `note_changes` was called.
    changed: Option<VecDeque<u32>>,
    /// What has happened since the last `poll_event`. `None` unless `note_events` was called.
    events: Option<VecDeque<Event>>,
    counters: HostCounters,
}

impl Host {
    /// A host without connections. Nothing leaves before the first command or packet.
    pub fn new(config: HostConfig) -> Self {
        let HostConfig { addrs, mtu, profile, recipe, seed } = config;
        Self {
            addrs,
            // No IP packet is longer.
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
            ports_given: 0,
            traced: false,
            changed: None,
            events: None,
            counters: HostCounters::default(),
        }
    }

    // ----- in -----

    /// Takes in one whole IP packet. What is wrong with it, if anything, is only counted.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.handle(now, packet, Verified::NotYet);
    }

    /// The same, for a packet whose TCP checksum is right by the word of the device that brought it, or of whoever wrote it in
    /// this very process: it is not computed, and the field may hold anything.
    pub fn handle_verified_packet(&mut self, now: Instant, packet: &[u8]) {
        self.handle(now, packet, Verified::ByDevice);
    }

    fn handle(&mut self, now: Instant, packet: &[u8], verified: Verified) {
        self.counters.packets_in += 1;
        if let Err(bad) = self.take_packet(now, packet, verified) {
            *self.counters.bad.entry(bad).or_default() += 1;
            self.tell_bad(now, packet, bad);
        }
    }

    fn take_packet(&mut self, now: Instant, packet: &[u8], verified: Verified) -> Result<(), BadPacket> {
        let ip = segment::parse_ip(packet)?;
        if !self.addrs.contains(&ip.dst) {
            self.counters.not_ours += 1;
            return Ok(());
        }
        // RFC 1122 §3.2.1.3: no other host has this address, and the answer would come back here.
        if self.addrs.contains(&ip.src) {
            self.counters.gate.from_self += 1;
            return Ok(());
        }
        match ip.protocol {
            IpProtocol::Tcp => {
                let segment = segment::parse_tcp_of(&ip, verified)?;
                self.take_segment(now, &segment);
                Ok(())
            }
            IpProtocol::Icmp | IpProtocol::Icmpv6 => self.take_icmp(now, &ip),
            _ => Err(BadPacket::Protocol),
        }
    }

    fn take_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        let tuple = (segment.dst, segment.src);
        let syn_fin = segment.flags.contains(Flags::SYN.with(Flags::FIN));
        if let Some(index) = self.index_of(&tuple) {
            if syn_fin && self.profile.syn_fin == SynFin::Drop {
                self.counters.syns_dropped += 1;
                self.tell_refused(now, segment, Refusal::SynFin);
                return;
            }
            let Some(connection) = self.slots.at_mut(index) else { return };
            if !connection.yields_to(segment) {
                let reaction = connection.handle_segment(now, segment);
                self.after_segment(now, index, reaction, segment);
                return;
            }
            connection.retire();
            self.gather(now, index);
            self.mark_ready(index);
        }
        self.take_stray(now, segment);
    }

    fn after_segment(&mut self, now: Instant, index: u32, reaction: Reaction, segment: &Segment<'_>) {
        self.decide_about_answer(now, index);
        match reaction {
            Reaction::Done => {}
            Reaction::Reset(timestamps) => self.reply_reset(now, segment, timestamps),
            Reaction::Established => {
                if let Some(id) = self.slots.listener_of(index)
                    && self.let_in(now, index)
                    && let Some(listener) = self.listeners.get_mut(&id)
                    && let Some(connection) = self.slots.at_mut(index)
                {
                    listener.ready.push_back(index);
                    // What was set on the listener since the SYN came holds too, as where systems make the socket now.
                    if *connection.options() != listener.options {
                        connection.set_options(now, listener.options.clone());
                    }
                }
            }
        }
        self.account(index);
        self.gather(now, index);
        self.mark_ready(index);
    }

    /// Time has passed: fires every timer that is due. A call too early does no harm.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some((at, index)) = self.deadlines.first().copied() {
            if at > now {
                break;
            }
            self.deadlines.pop_first();
            self.slots.take_deadline(index);
            if let Some(connection) = self.slots.at_mut(index) {
                if connection.next_deadline().is_some_and(|due| due <= now) {
                    connection.tell_due_timers(now);
                    connection.handle_deadline(now);
                }
                self.gather(now, index);
                self.mark_ready(index);
            }
        }
    }

    // ----- commands -----

    /// Buffers as much of `data` as there is room for; returns how many octets that is.
    pub fn write(&mut self, now: Instant, id: ConnId, data: &[u8]) -> Result<usize, IoError> {
        self.write_with(now, id, data, Push::Now)
    }

    /// Like [`Host::write`], and says whether more follows at once (MSG_MORE).
    pub fn write_with(
        &mut self,
        now: Instant,
        id: ConnId,
        data: &[u8],
        push: Push,
    ) -> Result<usize, IoError> {
        let connection = self.slots.get_mut(id).ok_or(IoError::NotConnected)?;
        match connection.state() {
            State::Closed => return Err(connection.ended().map_or(IoError::NotConnected, IoError::Ended)),
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
                if !connection.write_is_shut() => {}
            _ => return Err(IoError::Closed),
        }
        let taken = connection.write(now, data, push);
        self.account(id.index());
        self.mark_ready(id.index());
        if taken == 0 && !data.is_empty() { Err(IoError::WouldBlock) } else { Ok(taken) }
    }

    /// What has been written so far leaves as soon as the windows permit: neither Nagle nor a cork holds it back. In
    /// Linux that is what setting TCP_NODELAY does besides.
    pub fn push(&mut self, id: ConnId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.push();
        self.mark_ready(id.index());
    }

    /// Takes octets that have arrived in order; returns how many. `Ok(0)` is the end of the stream.
    pub fn read(&mut self, _now: Instant, id: ConnId, out: &mut [u8]) -> Result<usize, IoError> {
        let connection = self.slots.get_mut(id).ok_or(IoError::NotConnected)?;
        match connection.read(out) {
            0 if out.is_empty() => Ok(0),
            0 => nothing_to_read(connection),
            count => {
                self.mark_ready(id.index());
                Ok(count)
            }
        }
    }

    /// Like [`Host::read`], but the octets stay where they are.
    pub fn peek(&self, id: ConnId, out: &mut [u8]) -> Result<usize, IoError> {
        let connection = self.slots.get(id).ok_or(IoError::NotConnected)?;
        match connection.peek(out) {
            0 if !out.is_empty() => nothing_to_read(connection),
            count => Ok(count),
        }
    }

    /// Nothing more will be read than what has arrived: from then on reads are at the end of the stream. What becomes of
    /// data that still arrives the profile says.
    pub fn shutdown_read(&mut self, _now: Instant, id: ConnId) -> Result<(), IoError> {
        let connection = self.slots.get_mut(id).ok_or(IoError::NotConnected)?;
        if connection.state() == State::Closed {
            return Err(IoError::NotConnected);
        }
        connection.shutdown_read();
        self.mark_ready(id.index());
        Ok(())
    }

    /// Sends FIN after what is buffered, when the handshake is over. Reading goes on.
    pub fn shutdown_write(&mut self, _now: Instant, id: ConnId) -> Result<(), IoError> {
        let connection = self.slots.get_mut(id).ok_or(IoError::NotConnected)?;
        if connection.state() == State::Closed {
            return Err(IoError::NotConnected);
        }
        connection.shutdown_write();
        self.mark_ready(id.index());
        Ok(())
    }

    /// Like close(2): the connection ends by itself, and the application must not use the id any more, but to see by
    /// [`Host::connection`] whether it still [is closing](Connection::is_closing). Nothing waits here, whatever
    /// [`Linger`](crate::tcp::Linger) says.
    pub fn close(&mut self, now: Instant, id: ConnId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.close(now);
        self.slots.release(id.index());
        self.mark_ready(id.index());
    }

    /// Resets the connection. Its id stays valid until it is closed.
    pub fn abort(&mut self, _now: Instant, id: ConnId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.abort();
        self.mark_ready(id.index());
    }

    /// Changes the options of an open connection. Smaller buffers keep what is in them.
    pub fn set_options(&mut self, now: Instant, id: ConnId, options: SocketOptions) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.set_options(now, options);
        self.mark_ready(id.index());
    }

    /// All connections together may hold so many octets of data, to be read, to be sent or out of order. See
    /// [`memory`](crate::memory) for what happens when that is short. Without this call there is no limit.
    pub fn limit_memory(&mut self, octets: usize) {
        self.budget.set_limit(octets);
    }

    /// Every connection opened from now on keeps a trace of its decisions.
    pub fn trace_decisions(&mut self) {
        self.traced = true;
    }

    /// From now on [`Host::poll_changed`] names the connections to which something has happened. Whoever asks for this
    /// must poll it: until it has said `None` the driver does not rest.
    pub fn note_changes(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// From now on [`Host::poll_event`] tells what happens, to connections opened from now on and to packets of none.
    pub fn note_events(&mut self) {
        self.events.get_or_insert_default();
    }

    // ----- out -----

    /// When [`Host::handle_deadline`] must be called, if nothing else happens before. Ask again after each drain.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The next of the application's connections to which something has happened: a packet, a timer or a command was
    /// handled, and every packet that followed has left. There may be more to read, room to write, or an end. Each is
    /// named once, however much has happened. `None` always, unless [`Host::note_changes`] was called.
    pub fn poll_changed(&mut self) -> Option<ConnId> {
        let changed = self.changed.as_mut()?;
        while let Some(index) = changed.pop_front() {
            if let Some(id) = self.slots.take_changed(index) {
                return Some(id);
            }
        }
        None
    }

    /// The next of the events that have happened. `None` always, unless [`Host::note_events`] was called.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop_front()
    }

    /// True if [`Host::poll_changed`] may have a connection to name.
    pub fn has_changes(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| !changed.is_empty())
    }

    // ----- getters -----

    /// The connection, also after it has ended, until the application closes it.
    pub fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.slots.get(id)
    }

    /// The same, to start or take the trace of its decisions.
    pub fn connection_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.slots.get_mut(id)
    }

    /// The addresses it was given.
    pub fn addrs(&self) -> &[IpAddr] {
        &self.addrs
    }

    /// The profile in force: the one given, with the recipe's options applied.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The recipe it was given.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What its connections' data take, where [`Host::limit_memory`] was called.
    pub fn memory(&self) -> MemoryUse {
        self.budget.report()
    }

    /// What it has counted so far.
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// Connections in any state, TIME-WAIT included.
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    /// How many of them only wait for the end of TIME-WAIT.
    pub fn in_time_wait(&self) -> usize {
        self.slots.iter().filter(|connection| connection.state() == State::TimeWait).count()
    }

    // ----- inside -----

    /// The connection between these ends, the local one first.
    fn index_of(&self, ends: &Tuple) -> Option<u32> {
        self.demux.find(ends, |index| self.slots.is_between(index, ends))
    }

    fn hash(&self, what: &impl Hash) -> u64 {
        keyed_hash(self.seed, what)
    }

    fn insert(&mut self, connection: Connection, listener: Option<ListenId>) -> u32 {
        let tuple = connection.ends();
        let index = self.slots.insert(connection, listener);
        self.demux.insert(&tuple, index, |other| self.slots.is_between(other, &tuple));
        index
    }

    fn mark_ready(&mut self, index: u32) {
        if self.slots.queue(index) {
            self.ready.push_back(index);
        }
    }

    /// Nothing more to send: note the next deadline, or let go of what has ended.
    fn settle(&mut self, now: Instant, index: u32) {
        self.slots.unqueue(index);
        if let Some(changed) = &mut self.changed
            && self.slots.note_change(index)
        {
            changed.push_back(index);
        }
        let Some(state) = self.slots.at_mut(index).map(|connection| connection.state()) else { return };
        self.note_standing(now, index, state);
        let Some(connection) = self.slots.at_mut(index) else { return };
        connection.account();
        if state == State::Closed {
            self.demux.remove(&connection.ends(), index);
            if self.slots.is_released(index) {
                self.drop_connection(now, index);
            }
            return;
        }
        if let Some(at) = connection.next_deadline()
            && let Some(late) = self.slots.note_deadline(index, at)
        {
            if let Some(late) = late {
                self.deadlines.remove(&(late, index));
            }
            self.deadlines.insert((at, index));
        }
    }

    /// After a step of this connection that may take memory.
    #[inline]
    fn account(&mut self, index: u32) {
        if let Some(connection) = self.slots.at_mut(index) {
            connection.account();
        }
        if self.budget.to_prune() > 0 {
            self.prune();
        }
    }

    /// Memory is short: whoever holds most out of order gives up most.
    #[cold]
    fn prune(&mut self) {
        let holds = |connection: &&mut Connection| connection.memory_out_of_order() > 0;
        let mut holders: Vec<_> = self.slots.iter_mut().filter(holds).collect();
        holders.sort_by_key(|connection| std::cmp::Reverse(connection.memory_out_of_order()));
        for connection in holders {
            match self.budget.to_prune() {
                0 => return,
                enough => connection.prune(enough),
            }
        }
    }

    fn drop_connection(&mut self, now: Instant, index: u32) {
        if let Some(at) = self.slots.take_deadline(index) {
            self.deadlines.remove(&(at, index));
        }
        self.set_standing(now, index, Standing::Ordinary);
        let Some((connection, listener)) = self.slots.remove(index) else { return };
        self.demux.remove(&connection.ends(), index);
        if let Some(listener) = listener {
            // It may have closed since.
            if let Some(listener) = self.listeners.get_mut(&listener) {
                listener.opening = listener.opening.saturating_sub(1);
                listener.ready.retain(|waiting| *waiting != index);
            }
        }
    }
}

fn nothing_to_read(connection: &Connection) -> Result<usize, IoError> {
    match connection.state() {
        _ if connection.at_end_of_stream() && connection.ended().is_none() => Ok(0),
        State::Closed => Err(connection.ended().map_or(IoError::NotConnected, IoError::Ended)),
        _ if connection.at_end_of_stream() => Ok(0),
        _ => Err(IoError::WouldBlock),
    }
}

#[cfg(test)]
mod tests {
    use airwire::seq::Seq;

    use super::*;

    #[test]
    fn a_listener_that_closes_leaves_nothing_behind() {
        let addr = IpAddr::from([192, 0, 2, 1]);
        let profile = Profile::default();
        let options = SocketOptions::of(&profile);
        let recipe = Recipe::ordinary();
        let mut host = Host::new(HostConfig { addrs: vec![addr], mtu: 1500, profile, recipe, seed: 1 });
        for _ in 0..3 {
            let id = host.listen((addr, 80).into(), 1, options.clone()).unwrap();
            host.unlisten(id);
        }
        assert!(host.listeners.is_empty());
    }

    #[test]
    fn a_verified_packet_is_taken_whatever_its_checksum() {
        let addr = IpAddr::from([192, 0, 2, 1]);
        let profile = Profile::default();
        let options = SocketOptions::of(&profile);
        let recipe = Recipe::ordinary();
        let mut host = Host::new(HostConfig { addrs: vec![addr], mtu: 1500, profile, recipe, seed: 1 });
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
        assert!(!host.poll_packet(Instant::ZERO, &mut answer));
        host.handle_verified_packet(Instant::ZERO, &syn);
        assert_eq!(host.counters().bad.len(), 1);
        assert!(host.poll_packet(Instant::ZERO, &mut answer), "the SYN is answered");
        // The header's own checksum is looked at all the same.
        syn[8] ^= 1;
        host.handle_verified_packet(Instant::ZERO, &syn);
        assert_eq!(host.counters().bad[&BadPacket::IpChecksum], 1);
    }
}
