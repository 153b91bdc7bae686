//! Admission of connections at listeners, and answers to segments without a connection. The state and the
//! answers that peers can cause are bounded (RFC 4987).

use std::net::SocketAddr;

use airwire::options::{Options, Timestamps};
use airwire::segment::{self, Ecn, Flags, Header, Segment};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::admission::{AdmissionClass, AdmissionTable, Member};
use super::cookies::{self, Cookie};
use super::resets::Resets;
use super::{Host, ListenId};
use crate::events::Refusal;
use crate::profile::SynFin;
use crate::tcp::{Connection, State};

/// Limits on the resources of a host that remote peers can use. The resources of one listener are limited by
/// its backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of connections from one source (an IPv4 address or an IPv6 /64) at this host's
    /// listeners. Further ones are refused until one is closed. `None`: no limit.
    pub per_source: Option<usize>,
    /// Maximum number of connections in TIME-WAIT. Beyond it, the oldest one ends.
    pub time_wait: usize,
    /// Maximum number of connections that the application has closed but the peer still holds open. Beyond
    /// it, the oldest one is reset.
    pub orphans: usize,
    /// Maximum number of RSTs per second to one source, in answer to segments that have no connection, or
    /// that are invalid for their connection.
    pub resets: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_source: None, time_wait: 16_384, orphans: 4096, resets: 100 }
    }
}

/// Counters of admission decisions and limited answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GateCounters {
    /// SYNs answered with a cookie, for which no state was kept.
    pub cookies_sent: u64,
    /// Connections that began with a returned cookie.
    pub cookies_accepted: u64,
    /// ACKs that belong to no connection, arrived while cookies were outstanding, and carried an expired
    /// cookie or none. A RST answers them.
    pub cookies_refused: u64,
    /// Half-open connections that were dropped in favour of another one.
    pub half_open_evicted: u64,
    /// SYNs that were dropped, and handshakes that ended in a RST, because their source had reached its
    /// limit.
    pub over_source: u64,
    /// Packets dropped because their source is one of the host's own addresses.
    pub from_self: u64,
    /// RSTs suppressed by the limit per second.
    pub resets_withheld: u64,
    /// Connections in TIME-WAIT that ended early.
    pub time_wait_evicted: u64,
    /// Closed connections that were reset because there were too many.
    pub orphans_evicted: u64,
}

/// Minimum age of a half-open connection that may be dropped in favour of a newer one when the listener has
/// no room. By then its SYN,ACK has been sent three times, at 0, 1 and 3 s (RFC 6298 §2).
const EVICTABLE_AFTER: Duration = Duration::from_secs(3);

/// Maximum number of queued replies that belong to no connection. Further ones are dropped.
const MAX_REPLIES: usize = 256;

/// The admission state of a host.
#[derive(Debug, Default)]
pub(super) struct Gate {
    pub(super) limits: Limits,
    pub(super) admissions: AdmissionTable,
    resets: Resets,
}

impl Host {
    /// Sets the limits. Connections beyond a new limit stay until the next one arrives.
    pub fn set_limits(&mut self, limits: Limits) {
        self.gate.limits = limits;
    }

    /// Processes a segment without a connection (RFC 9293 §3.10.7.1 and .2). If a TIME-WAIT has just ended
    /// for this segment, `unused` is the first sequence number that the old connection has not used.
    pub(super) fn process_without_connection(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        unused: Option<Seq>,
    ) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(id) = self.listener_for(segment.dst) else {
            self.log_refused(now, segment, Refusal::NoListener);
            self.reply_reset(now, segment, None);
            return;
        };
        if segment.flags.contains(Flags::ACK) {
            self.process_ack_without_connection(now, id, segment);
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            self.log_refused(now, segment, Refusal::NoSyn);
            return;
        }
        if segment.flags.contains(Flags::FIN) && self.profile.handshake.syn_fin != SynFin::Accepted {
            self.drop_syn(now, segment, Refusal::SynFin);
            return;
        }
        self.process_syn(now, id, segment, unused);
    }

    /// Processes a SYN at a listener: stores it if there is room, else answers it with a cookie.
    fn process_syn(&mut self, now: Instant, id: ListenId, segment: &Segment<'_>, unused: Option<Seq>) {
        if self.budget.is_full() {
            self.budget.note_refused_connection();
            self.drop_syn(now, segment, Refusal::NoMemory);
            return;
        }
        let Some(listener) = self.listeners.get(&id) else { return };
        // The application accepts too slowly.
        if listener.ready.len() >= listener.room() {
            self.drop_syn(now, segment, Refusal::BacklogFull);
            return;
        }
        let counts = self.gate.admissions.counts_of(segment.src.ip());
        let limit = self.gate.limits.per_source.unwrap_or(usize::MAX);
        if counts.established >= limit {
            self.counters.gate.over_source += 1;
            self.drop_syn(now, segment, Refusal::SourceFull);
            return;
        }
        // SYNs from this source can be forged, so half-open connections alone must not exclude it.
        let source_full = counts.established + counts.half_open >= limit;
        if source_full || (listener.opening >= listener.room() && !self.evict_half_open(now, id)) {
            self.answer_with_cookie(now, id, segment);
            return;
        }
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        listener.opening += 1;
        let options = listener.options.clone();
        let mut opening = self.opening(now, segment.dst, segment.src, options);
        if let Some(unused) = unused
            && opening.iss.offset(unused, 0).is_none()
        {
            // RFC 9293 §3.6.1, MAY-2 (1). The distance is Linux's.
            opening.iss = unused.at(65_537);
        }
        let answer = self.decide_fast_open(now, id, segment);
        let mut connection = Connection::accept(now, opening, segment);
        connection.answer_fast_open(now, segment, answer);
        let index = self.insert(connection, Some(id));
        let class = self.admit_early(index, id, answer);
        self.set_class(now, index, class);
        self.account(index);
        self.collect_events(now, index);
        self.mark_ready(index);
    }

    fn drop_syn(&mut self, now: Instant, segment: &Segment<'_>, why: Refusal) {
        self.counters.syns_dropped += 1;
        self.log_refused(now, segment, why);
    }

    /// Drops the oldest half-open connection if it is old enough. Returns true if there is room for another
    /// one.
    fn evict_half_open(&mut self, now: Instant, id: ListenId) -> bool {
        let oldest = self.gate.admissions.oldest_half_open(id);
        let Some((_, index)) = oldest.filter(|(since, _)| now - *since >= EVICTABLE_AFTER) else {
            return false;
        };
        if let Some(connection) = self.slots.at_mut(index) {
            connection.retire();
        }
        self.collect_events(now, index);
        self.drop_connection(now, index);
        self.counters.gate.half_open_evicted += 1;
        true
    }

    fn answer_with_cookie(&mut self, now: Instant, id: ListenId, segment: &Segment<'_>) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        listener.cookies_until = Some(now + cookies::LIFETIME);
        let options = listener.options.clone();
        let cookie = Cookie::of(segment, self.profile.handshake.timestamps);
        let mut opening = self.opening(now, segment.dst, segment.src, options);
        opening.iss = cookie.initial_seq(self.seed, now, segment);
        let syn = cookie.syn(segment, segment.seq);
        self.reply(Connection::syn_cookie(now, opening, &syn, cookie.ts_bits()));
        self.counters.gate.cookies_sent += 1;
    }

    /// Processes an ACK without a connection, which may carry a cookie if any were sent recently.
    fn process_ack_without_connection(&mut self, now: Instant, id: ListenId, segment: &Segment<'_>) {
        let Some(listener) = self.listeners.get(&id) else { return };
        let expects_cookies = listener.cookies_until.is_some_and(|until| now < until);
        if segment.flags.contains(Flags::SYN) || !expects_cookies {
            self.log_refused(now, segment, Refusal::NoConnection);
            self.reply_reset(now, segment, None);
            return;
        }
        let Some(cookie) = Cookie::decode(self.seed, now, segment, self.profile.handshake.timestamps) else {
            self.counters.gate.cookies_refused += 1;
            self.log_refused(now, segment, Refusal::NoConnection);
            self.reply_reset(now, segment, None);
            return;
        };
        if self.budget.is_full() {
            // The client gets no answer and retransmits this segment or later data.
            self.budget.note_refused_connection();
            self.log_refused(now, segment, Refusal::NoMemory);
            return;
        }
        if listener.ready.len() >= listener.room() {
            self.log_refused(now, segment, Refusal::BacklogFull);
            return;
        }
        if self.source_is_at_limit(segment.src) {
            self.counters.gate.over_source += 1;
            self.log_refused(now, segment, Refusal::SourceFull);
            self.reply_reset(now, segment, None);
            return;
        }
        let options = listener.options.clone();
        let mut opening = self.opening(now, segment.dst, segment.src, options);
        opening.iss = Seq(segment.ack.0.wrapping_sub(1));
        let syn = cookie.syn(segment, Seq(segment.seq.0.wrapping_sub(1)));
        let mut connection = Connection::accept_cookie(now, opening, &syn);
        let reaction = connection.handle_segment(now, segment);
        let index = self.insert(connection, Some(id));
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.opening += 1;
        }
        self.set_class(now, index, AdmissionClass::HalfOpen);
        self.counters.gate.cookies_accepted += 1;
        self.after_segment(now, index, reaction, segment);
    }

    /// Returns true if a source has as many complete connections as the limits permit.
    fn source_is_at_limit(&self, source: SocketAddr) -> bool {
        let limit = self.gate.limits.per_source.unwrap_or(usize::MAX);
        self.gate.admissions.counts_of(source.ip()).established >= limit
    }

    /// Admits a connection whose handshake at a listener has completed. Returns false and resets it if its
    /// source has reached its limit in the meantime.
    pub(super) fn admit(&mut self, now: Instant, index: u32) -> bool {
        let Some(peer) = self.slots.at_mut(index).map(|connection| connection.remote()) else { return false };
        if !self.source_is_at_limit(peer) {
            self.set_class(now, index, AdmissionClass::Established);
            return true;
        }
        self.counters.gate.over_source += 1;
        if let Some(connection) = self.slots.at_mut(index) {
            connection.abort();
        }
        self.set_class(now, index, AdmissionClass::Ordinary);
        false
    }

    /// Updates the class of a connection that has nothing more to send, and enforces the limits on TIME-WAIT
    /// and orphans.
    pub(super) fn update_class(&mut self, now: Instant, index: u32, state: State) {
        let new = match state {
            State::Closed => AdmissionClass::Ordinary,
            State::TimeWait => AdmissionClass::TimeWait,
            _ if self.slots.is_orphan(index) => AdmissionClass::Orphan,
            _ => return,
        };
        if new == self.slots.class(index) {
            return;
        }
        self.set_class(now, index, new);
        if let Some(oldest) = self.gate.admissions.excess_time_wait(self.gate.limits.time_wait) {
            self.counters.gate.time_wait_evicted += 1;
            self.evict(now, oldest, Connection::retire);
        }
        if let Some(oldest) = self.gate.admissions.excess_orphan(self.gate.limits.orphans) {
            self.counters.gate.orphans_evicted += 1;
            self.evict(now, oldest, Connection::abort);
        }
    }

    /// Ends a connection that exceeds a limit.
    fn evict(&mut self, now: Instant, index: u32, end: fn(&mut Connection)) {
        if let Some(connection) = self.slots.at_mut(index) {
            end(connection);
        }
        self.set_class(now, index, AdmissionClass::Ordinary);
        self.collect_events(now, index);
        self.mark_ready(index);
    }

    pub(super) fn set_class(&mut self, now: Instant, index: u32, to: AdmissionClass) {
        let Some(peer) = self.slots.at_mut(index).map(|connection| connection.remote().ip()) else { return };
        let from = self.slots.replace_class(index, to);
        if from != to {
            let member = Member { index, peer, listener: self.slots.listener_of(index) };
            self.gate.admissions.change(now, member, from, to);
        }
    }

    /// Sends the RST that answers a segment without a connection, or one that is invalid for its connection
    /// (RFC 9293 §3.5.2).
    pub(super) fn reply_reset(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        timestamps: Option<Timestamps>,
    ) {
        if !self.gate.resets.permits(now, segment.src.ip(), self.gate.limits.resets, self.seed) {
            self.counters.gate.resets_withheld += 1;
            return;
        }
        let (seq, ack, flags) = if segment.flags.contains(Flags::ACK) {
            (segment.ack, Seq(0), Flags::RST)
        } else {
            (Seq(0), segment.seq.at(segment.seq_len()), Flags::RST.with(Flags::ACK))
        };
        let header = Header {
            src: segment.dst,
            dst: segment.src,
            seq,
            ack,
            flags,
            window: 0,
            ecn: Ecn::NotEct,
            tos: 0,
            ttl: self.profile.ttl,
            dont_fragment: true,
            ident: 0,
        };
        let (mut packet, mut options) = (Vec::new(), Vec::new());
        Options { timestamps, ..Options::default() }.write(self.profile.layout, &mut options);
        segment::emit(&mut packet, &header, &options, (&[], &[]));
        self.counters.resets_sent += 1;
        self.reply(packet);
    }

    /// Queues a packet that belongs to no connection.
    pub(super) fn reply(&mut self, packet: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(packet);
        }
    }
}
