//! Who gets in, and what a stranger gets for an answer: SYNs at listeners, segments of no connection, resets. All of it is
//! bounded, whoever sends how much (RFC 4987, RFC 5961 §7).

use std::net::SocketAddr;

use airwire::options::{Options, Timestamps};
use airwire::segment::{self, Ecn, Flags, Header, Segment};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::cookies::{self, Cookie};
use super::standing::{Standing, Standings, Who};
use super::{Host, ListenId, keyed_hash};
use crate::events::Refusal;
use crate::profile::SynFin;
use crate::tcp::{Connection, State};

/// What strangers can take of a host, at most. What one listener keeps of them is its backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections that one source may have at this host's listeners: one IPv4 address, or one /64 of IPv6. It gets no
    /// further ones until one of them is closed. `None`: as many as there is room for.
    pub per_source: Option<usize>,
    /// Connections in TIME-WAIT. When there are more, the oldest is over.
    pub time_wait: usize,
    /// Connections that the application has closed and the peer has not. When there are more, the oldest is reset.
    pub orphans: usize,
    /// Resets a second that answer segments of no connection, or that their connection cannot have. Each second has between
    /// half of that and all of it, so that nobody can count what others have used up.
    pub resets: u32,
    /// ACKs a second that answer segments which may be forged, likewise: challenge ACKs (RFC 5961 §7), and those that answer
    /// data far outside the window. A connection's own limit holds besides.
    pub answers: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_source: None, time_wait: 16_384, orphans: 4096, resets: 1000, answers: 1000 }
    }
}

/// What a host counts of strangers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GateCounters {
    /// SYNs that were answered with a cookie, so that nothing was kept of them.
    pub cookies_sent: u64,
    /// Connections that began with a cookie that came back.
    pub cookies_accepted: u64,
    /// ACKs of no connection that came while cookies were out, and brought none or an old one. A reset answers them.
    pub cookies_refused: u64,
    /// Half-open connections that gave way to another one.
    pub half_open_evicted: u64,
    /// SYNs that were dropped, and handshakes that ended in a reset, because their source has its share.
    pub over_source: u64,
    /// Packets from one of the host's own addresses, which were dropped.
    pub from_self: u64,
    /// Resets that did not leave because there had been enough in that second.
    pub resets_withheld: u64,
    /// ACKs that did not.
    pub answers_withheld: u64,
    /// Connections in TIME-WAIT that ended before their time.
    pub time_wait_evicted: u64,
    /// Closed connections that were reset because there were too many.
    pub orphans_evicted: u64,
}

/// A half-open connection of this age gives way to a newer one when the listener has no room. Its SYN,ACK has left three
/// times by then, at 0, 1 and 3 s (RFC 6298 §2).
const GIVES_WAY_AFTER: Duration = Duration::from_secs(3);

/// Replies that belong to no connection and wait to leave, at most. Further ones are dropped.
const MAX_REPLIES: usize = 256;

/// So many a second.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    second: u64,
    left: u32,
}

impl Allowance {
    /// A full allowance of the same size each second would tell whoever counts his own answers how many others got
    /// (CVE-2016-5696), so the size differs, and nobody can know it.
    fn take(&mut self, now: Instant, most: u32, seed: u64) -> bool {
        // Second 0 has its number, too.
        let second = 1 + now.as_nanos() / 1_000_000_000;
        if self.second != second {
            let least = most.div_ceil(2);
            let more = keyed_hash(seed, &("allowance", most, second)) % u64::from(most - least + 1);
            *self = Self { second, left: least + more as u32 };
        }
        let granted = self.left > 0;
        self.left -= u32::from(granted);
        granted
    }
}

/// What a host remembers for all this.
#[derive(Debug, Default)]
pub(super) struct Gate {
    pub(super) limits: Limits,
    pub(super) standings: Standings,
    resets: Allowance,
    answers: Allowance,
}

impl Host {
    /// From now on; those that are more stay until the next one comes.
    pub fn set_limits(&mut self, limits: Limits) {
        self.gate.limits = limits;
    }

    /// A segment for no connection (RFC 9293 §3.10.7.1 and .2).
    pub(super) fn take_stray(&mut self, now: Instant, segment: &Segment<'_>) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(id) = self.listener_for(segment.dst) else {
            self.tell_refused(now, segment, Refusal::NobodyThere);
            self.reply_reset(now, segment, None);
            return;
        };
        if segment.flags.contains(Flags::ACK) {
            self.take_stray_ack(now, id, segment);
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            self.tell_refused(now, segment, Refusal::NoSyn);
            return;
        }
        if segment.flags.contains(Flags::FIN) && self.profile.syn_fin != SynFin::Taken {
            self.drop_syn(now, segment, Refusal::SynFin);
            return;
        }
        self.take_syn(now, id, segment);
    }

    /// A listener's SYN: it is kept if there is room, or else answered with a cookie.
    fn take_syn(&mut self, now: Instant, id: ListenId, segment: &Segment<'_>) {
        if self.budget.is_full() {
            self.budget.note_refused_connection();
            self.drop_syn(now, segment, Refusal::NoMemory);
            return;
        }
        let Some(listener) = self.listeners.get(&id) else { return };
        // The application takes no connection out: another one would only wait with them.
        if listener.ready.len() >= listener.room() {
            self.drop_syn(now, segment, Refusal::BacklogFull);
            return;
        }
        let visitors = self.gate.standings.visitors(segment.src.ip());
        let share = self.gate.limits.per_source.unwrap_or(usize::MAX);
        if visitors.arrived >= share {
            self.counters.gate.over_source += 1;
            self.drop_syn(now, segment, Refusal::SourceFull);
            return;
        }
        // Anybody can send SYNs with this source, so half-open connections alone shut nobody out.
        let source_full = visitors.arrived + visitors.half_open >= share;
        if source_full || (listener.opening >= listener.room() && !self.evict_half_open(now, id)) {
            self.answer_with_cookie(now, id, segment);
            return;
        }
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        listener.opening += 1;
        let options = listener.options.clone();
        let opening = self.opening(now, segment.dst, segment.src, options);
        let index = self.insert(Connection::accept(now, opening, segment), Some(id));
        self.set_standing(now, index, Standing::HalfOpen);
        self.gather(now, index);
        self.mark_ready(index);
    }

    fn drop_syn(&mut self, now: Instant, segment: &Segment<'_>, why: Refusal) {
        self.counters.syns_dropped += 1;
        self.tell_refused(now, segment, why);
    }

    /// Returns true if the oldest one had its time, so that there is room for another one.
    fn evict_half_open(&mut self, now: Instant, id: ListenId) -> bool {
        let oldest = self.gate.standings.oldest_half_open(id);
        let Some((_, index)) = oldest.filter(|(since, _)| now - *since >= GIVES_WAY_AFTER) else {
            return false;
        };
        if let Some(connection) = self.slots.at_mut(index) {
            connection.retire();
        }
        self.gather(now, index);
        self.drop_connection(now, index);
        self.counters.gate.half_open_evicted += 1;
        true
    }

    fn answer_with_cookie(&mut self, now: Instant, id: ListenId, segment: &Segment<'_>) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        listener.cookies_until = Some(now + cookies::LIFETIME);
        let options = listener.options.clone();
        let cookie = Cookie::of(segment, self.profile.timestamps);
        let mut opening = self.opening(now, segment.dst, segment.src, options);
        opening.iss = cookie.seal(self.seed, now, segment);
        let syn = cookie.syn(segment, segment.seq);
        self.reply(Connection::answer_once(now, opening, &syn, cookie.hidden()));
        self.counters.gate.cookies_sent += 1;
    }

    /// An ACK of no connection: it may bring a cookie back, if there were any lately.
    fn take_stray_ack(&mut self, now: Instant, id: ListenId, segment: &Segment<'_>) {
        let Some(listener) = self.listeners.get(&id) else { return };
        let cookies_are_out = listener.cookies_until.is_some_and(|until| now < until);
        if segment.flags.contains(Flags::SYN) || !cookies_are_out {
            self.tell_refused(now, segment, Refusal::NoConnection);
            self.reply_reset(now, segment, None);
            return;
        }
        let Some(cookie) = Cookie::open(self.seed, now, segment, self.profile.timestamps) else {
            self.counters.gate.cookies_refused += 1;
            self.tell_refused(now, segment, Refusal::NoConnection);
            self.reply_reset(now, segment, None);
            return;
        };
        if self.budget.is_full() {
            // The client sends it again, or what follows it.
            self.budget.note_refused_connection();
            self.tell_refused(now, segment, Refusal::NoMemory);
            return;
        }
        if listener.ready.len() >= listener.room() {
            // So it does here.
            self.tell_refused(now, segment, Refusal::BacklogFull);
            return;
        }
        if self.source_has_its_share(segment.src) {
            self.counters.gate.over_source += 1;
            self.tell_refused(now, segment, Refusal::SourceFull);
            self.reply_reset(now, segment, None);
            return;
        }
        let options = listener.options.clone();
        let mut opening = self.opening(now, segment.dst, segment.src, options);
        opening.iss = Seq(segment.ack.0.wrapping_sub(1));
        let syn = cookie.syn(segment, Seq(segment.seq.0.wrapping_sub(1)));
        let mut connection = Connection::accept_answered(now, opening, &syn);
        let reaction = connection.handle_segment(now, segment);
        let index = self.insert(connection, Some(id));
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.opening += 1;
        }
        self.set_standing(now, index, Standing::HalfOpen);
        self.counters.gate.cookies_accepted += 1;
        self.after_segment(now, index, reaction, segment);
    }

    fn source_has_its_share(&self, source: SocketAddr) -> bool {
        let share = self.gate.limits.per_source.unwrap_or(usize::MAX);
        self.gate.standings.visitors(source.ip()).arrived >= share
    }

    /// A handshake at a listener is complete. Returns false if the source has its share by now: then it is reset.
    pub(super) fn let_in(&mut self, now: Instant, index: u32) -> bool {
        let Some(peer) = self.slots.at_mut(index).map(|connection| connection.remote()) else { return false };
        if !self.source_has_its_share(peer) {
            self.set_standing(now, index, Standing::Arrived);
            return true;
        }
        self.counters.gate.over_source += 1;
        if let Some(connection) = self.slots.at_mut(index) {
            connection.abort();
        }
        self.set_standing(now, index, Standing::Ordinary);
        false
    }

    /// A connection may ask for an ACK that a forger could have wanted: it leaves, or not.
    pub(super) fn decide_about_answer(&mut self, now: Instant, index: u32) {
        let Some(connection) = self.slots.at_mut(index).filter(|connection| connection.asks_to_answer())
        else {
            return;
        };
        let granted = self.gate.answers.take(now, self.gate.limits.answers, self.seed);
        connection.answer(granted);
        self.counters.gate.answers_withheld += u64::from(!granted);
    }

    /// A connection has nothing more to send now. What does it count as, and are there too many?
    pub(super) fn note_standing(&mut self, now: Instant, index: u32, state: State) {
        let new = match state {
            State::Closed => Standing::Ordinary,
            State::TimeWait => Standing::TimeWait,
            _ if self.slots.is_let_go(index) => Standing::Orphan,
            _ => return,
        };
        if new == self.slots.standing(index) {
            return;
        }
        self.set_standing(now, index, new);
        if let Some(oldest) = self.gate.standings.superfluous_time_wait(self.gate.limits.time_wait) {
            self.counters.gate.time_wait_evicted += 1;
            self.make_room(now, oldest, Connection::retire);
        }
        if let Some(oldest) = self.gate.standings.superfluous_orphan(self.gate.limits.orphans) {
            self.counters.gate.orphans_evicted += 1;
            self.make_room(now, oldest, Connection::abort);
        }
    }

    fn make_room(&mut self, now: Instant, index: u32, end: fn(&mut Connection)) {
        if let Some(connection) = self.slots.at_mut(index) {
            end(connection);
        }
        self.set_standing(now, index, Standing::Ordinary);
        self.gather(now, index);
        self.mark_ready(index);
    }

    pub(super) fn set_standing(&mut self, now: Instant, index: u32, to: Standing) {
        let Some(peer) = self.slots.at_mut(index).map(|connection| connection.remote().ip()) else { return };
        let from = self.slots.replace_standing(index, to);
        if from != to {
            let who = Who { index, peer, listener: self.slots.listener_of(index) };
            self.gate.standings.change(now, who, from, to);
        }
    }

    /// The reset that answers a segment of no connection, or one that a connection cannot have (RFC 9293 §3.5.2).
    pub(super) fn reply_reset(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        timestamps: Option<Timestamps>,
    ) {
        if !self.gate.resets.take(now, self.gate.limits.resets, self.seed) {
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

    pub(super) fn reply(&mut self, packet: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(packet);
        }
    }
}
