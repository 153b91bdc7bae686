//! Analyses one connection in one capture.
//!
//! The capture may have been made at either end or between them. It may begin in the middle of the
//! connection, lack a direction, or contain packets twice. Memory is bounded by the data in flight, not by
//! the length of the connection.
//!
//! Each direction is analysed separately: the data that one end sends, and the ACKs of the other end.

mod ack;
mod ack_policy;
mod anomalies;
mod answers;
mod compact;
mod congestion;
mod copies;
mod direction;
pub mod findings;
mod flight;
mod guess;
mod long_segments;
mod naming;
mod numbering;
mod opening;
mod receiver_window;
pub(super) mod rtt;
mod send;
mod series;
#[cfg(test)]
mod tests;
pub(super) mod text;
mod time_spent;
mod trigger;
mod vantage;

use airwire::segment::Flags;
use airwire::seq::Seq;
pub use findings::ConnectionFindings;

use self::answers::Answers;
use self::compact::{CompactOption, OnDemand};
use self::copies::Copies;
use self::direction::{Direction, Moment};
use self::findings::{Close, DirectionFindings, Handshake, HandshakeSeen, SynFindings};
use self::long_segments::LongSegments;
use self::naming::Naming;
use self::opening::{Messages, Progress, Step};
use self::receiver_window::Scale;
use self::vantage::ReplyDelay;
use super::endpoints::Endpoints;
use super::trace::Trace;
use aircaptures::icmp::{IcmpError, IcmpKind};
use aircaptures::packet::{Packet, Timestamp};

/// Selects the data to keep for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Findings,
    /// The findings and a trace for graphs. Memory grows with the connection.
    Trace,
}

/// The results for a connection that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The findings for both directions.
    pub findings: ConnectionFindings,
    /// The traces in the order of `findings.directions`, if requested.
    pub traces: Option<[Trace; 2]>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    ends: Endpoints,
    first_packet: u64,
    begin: Timestamp,
    /// Nanoseconds since `begin`. It never decreases.
    now: i64,
    packets: u64,
    copied: u32,
    clock_went_back: u32,
    copies: [Copies; 2],
    reply_delays: [ReplyDelay; 2],
    directions: [Direction; 2],
    syns: [Option<Syn>; 2],
    /// The durations of the handshake: from SYN to SYN-ACK, and from SYN-ACK to its ACK.
    opening: [CompactOption; 2],
    progress: Progress,
    rare: OnDemand<Rare>,
    naming: Naming,
    answers: Answers,
    long_segments: [LongSegments; 2],
    close: Close,
    timestamps: bool,
    sacks: bool,
    ecn: bool,
}

/// State that few connections need.
#[derive(Debug, Default)]
struct Rare {
    /// The sum of all backward steps of the clock, in nanoseconds.
    set_back: i64,
    icmp: Messages,
}

/// The contents of the SYN of one end. If the SYN was retransmitted, the last one counts.
#[derive(Clone, Copy, Debug)]
struct Syn {
    at: i64,
    times: u8,
    scale: Option<u8>,
    sack: bool,
    timestamps: bool,
    /// Whether the capture cut off some of its options.
    cut: bool,
}

impl Syn {
    /// Returns whether both ends' SYNs have an option. Returns `None` if the capture does not show it.
    fn agreed(syns: [Option<Self>; 2], option: fn(&Self) -> bool) -> Option<bool> {
        let [first, second] = [syns[0]?, syns[1]?];
        let is_told = |syn: &Self| option(syn) || !syn.cut;
        (is_told(&first) && is_told(&second)).then(|| option(&first) && option(&second))
    }
}

/// Largest time in a connection: nine years in nanoseconds. Later timestamps are clamped, so that sums of
/// times do not overflow.
const LONGEST: i64 = 1 << 58;

/// A backward step of more than this many nanoseconds means that the clock was set back.
const SET_BACK: i64 = 1_000_000_000;

impl Connection {
    /// Creates a connection from its first packet. The caller must also pass this packet to `take`.
    pub(crate) fn new(first: &Packet, keep: Keep) -> Self {
        let syn_ack = first.flags.contains(Flags::SYN.with(Flags::ACK));
        let ends = if syn_ack { [first.dst, first.src] } else { [first.src, first.dst] };
        let direction = |from: usize| {
            let trace = || Trace {
                name: format!("{} → {}", ends[from], ends[1 - from]),
                origin: first.at.0,
                ..Trace::default()
            };
            Direction::new((keep == Keep::Trace).then(trace))
        };
        Self {
            ends: Endpoints::new(ends[0], ends[1]),
            first_packet: first.number,
            begin: first.at,
            now: 0,
            packets: 0,
            copied: 0,
            clock_went_back: 0,
            copies: Default::default(),
            reply_delays: Default::default(),
            directions: [direction(0), direction(1)],
            syns: [None; 2],
            opening: [CompactOption::default(); 2],
            progress: Progress::default(),
            rare: OnDemand::default(),
            naming: Naming::default(),
            answers: Answers::default(),
            long_segments: Default::default(),
            close: Close::Open,
            timestamps: false,
            sacks: false,
            ecn: false,
        }
    }

    /// Processes a packet. Packets are passed in the order of the capture.
    pub(crate) fn take(&mut self, packet: &Packet) {
        let at = packet.at.0.saturating_sub(self.begin.0).saturating_add(self.set_back()).min(LONGEST);
        self.clock_went_back += u32::from(at < self.now);
        // Smaller backward steps are reordered packets.
        if self.now.saturating_sub(at) > SET_BACK {
            let step = self.now.saturating_sub(at);
            let rare = self.rare.get_or_default();
            rare.set_back = rare.set_back.saturating_add(step);
        }
        let silence = at.max(self.now) - self.now;
        self.now = at.max(self.now);
        self.packets += 1;
        let from = self.from(packet);
        if self.is_of_an_earlier_one(packet, from) {
            return;
        }
        if self.copies[from].is_copy(self.now, packet) {
            self.copied = self.copied.saturating_add(1);
            return;
        }
        self.take_handshake(packet, from);
        self.take_reply_delays(packet, from);

        let now = self.moment(from, silence);
        let sent = self.directions[from].flight.max;
        self.directions[from].take_packet(&now, packet);
        if packet.len > 0 {
            self.take_data(packet, from, sent);
        }
        if let Some(ack) = packet.ack {
            let now = self.moment(1 - from, silence);
            self.directions[1 - from].take_ack(&now, packet, ack);
            self.long_segments[1 - from].acked(self.directions[1 - from].una());
        }
        self.take_close(packet, from);
    }

    fn set_back(&self) -> i64 {
        self.rare.get().map_or(0, |rare| rare.set_back)
    }

    /// Returns whether [`take_octets`](Self::take_octets) needs the payload of this packet.
    pub(super) fn wants_octets(&self, packet: &Packet) -> bool {
        self.naming.wants(self.from(packet))
    }

    /// Processes the captured payload of the packet that was passed to [`take`](Self::take) last.
    pub(super) fn take_octets(&mut self, packet: &Packet, octets: &[u8]) {
        let from = self.from(packet);
        let Some(offset) = self.directions[from].offset(packet.seq) else { return };
        let start = offset + u64::from(packet.flags.contains(Flags::SYN));
        self.naming.take(from, start, octets, packet.len as usize);
    }

    /// Processes an ICMP error about one of the connection's packets, in frame `number`.
    pub(super) fn take_icmp(&mut self, error: &IcmpError, number: u64, at: Timestamp) {
        let about = usize::from(error.about[0] != self.ends.first());
        self.rare.get_or_default().icmp.take(error, number, at, self.begin, about);
        if error.kind == IcmpKind::PacketTooBig {
            self.long_segments[about].too_big(error.mtu);
        }
    }

    fn from(&self, packet: &Packet) -> usize {
        usize::from(packet.src != self.ends.first())
    }

    pub(super) fn ends(&self) -> &Endpoints {
        &self.ends
    }

    /// Returns whether the connection was reset or closed by both ends. Later packets with the same ports may
    /// belong to another connection.
    pub(crate) fn is_over(&self) -> bool {
        self.close != Close::Open
    }

    /// Returns whether the packet is a SYN that starts another connection.
    pub(crate) fn begins_anew(&self, packet: &Packet) -> bool {
        if !packet.flags.contains(Flags::SYN) || packet.flags.contains(Flags::RST) {
            return false;
        }
        let from = self.from(packet);
        !self.directions[from].may_begin_with(packet.seq)
    }

    /// Returns the memory in bytes, without the traces.
    pub(super) fn octets(&self) -> usize {
        let heap: usize = self.directions.iter().map(Direction::heap).sum();
        let long: usize = self.long_segments.iter().map(LongSegments::heap).sum();
        let icmp = self.rare.get().map_or(0, |rare| size_of::<i64>() + rare.icmp.heap());
        size_of::<Self>() + self.ends.heap() + heap + long + icmp + self.naming.heap()
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    pub(crate) fn last_packet(&self) -> Timestamp {
        Timestamp(self.begin.0.saturating_add(self.now))
    }

    pub(crate) fn finish(self) -> Ended {
        let answers_after = [self.reply_delays[0].least(), self.reply_delays[1].least()];
        let capture_at = vantage::capture_at(answers_after);
        let handshake = self.handshake();
        let messages = self.rare.into_inner().icmp;
        let timestamps = Syn::agreed(self.syns, |syn| syn.timestamps).unwrap_or(self.timestamps);
        let sack = Syn::agreed(self.syns, |syn| syn.sack).unwrap_or(self.sacks);
        let mss = [self.directions[1].numbering.syn_mss, self.directions[0].numbering.syn_mss];
        let ends = self.ends.both();
        let [first_mtu, second_mtu] = self.long_segments;
        let [first, second] = self.directions;
        let first_mtu = first_mtu.findings(first.counts.acks > 0);
        let second_mtu = second_mtu.findings(second.counts.acks > 0);
        let (first, first_trace) = first.findings(ends, 0, capture_at, mss[0]);
        let (second, second_trace) = second.findings(ends, 1, capture_at, mss[1]);
        let first = DirectionFindings { path_mtu: first_mtu, ..first };
        let second = DirectionFindings { path_mtu: second_mtu, ..second };
        let findings = ConnectionFindings {
            ends,
            first_packet: self.first_packet,
            begin_unix_ns: self.begin.0,
            seconds: self.now as f64 / 1e9,
            packets: self.packets,
            copies: u64::from(self.copied),
            clock_went_back: u64::from(self.clock_went_back),
            name: self.naming.into_name(),
            handshake,
            capture_at,
            answers_after_seconds: answers_after.map(|ns| ns.map(|ns| ns as f64 / 1e9)),
            close: self.close,
            timestamps,
            sack,
            ecn: self.ecn,
            answers: self.answers.findings(),
            icmp: messages.into_findings(),
            directions: [first, second],
        };
        Ended { findings, traces: first_trace.zip(second_trace).map(<[Trace; 2]>::from) }
    }

    fn moment(&self, sender: usize, silence: i64) -> Moment {
        let [a, b] = [self.reply_delays[0].least(), self.reply_delays[1].least()];
        Moment {
            at: self.now,
            silence,
            sender_replies: self.reply_delays[sender].least().unwrap_or(0),
            round_trip: a.zip(b).map(|(a, b)| a.saturating_add(b)),
            hides_sacks: !self.sacks && Syn::agreed(self.syns, |syn| syn.sack) == Some(true),
            peer_mss: self.directions[1 - sender].numbering.syn_mss,
        }
    }

    /// Returns whether the packet belongs to an earlier connection. The other end may still have one while a
    /// SYN is unanswered. Its packets acknowledge something other than the SYN (RFC 9293 §3.10.7.3, RFC 5961
    /// §4).
    fn is_of_an_earlier_one(&self, packet: &Packet, from: usize) -> bool {
        let is_waited_for = self.syns[1 - from].is_some() && self.syns[from].is_none();
        if !is_waited_for || packet.flags.contains(Flags::SYN) {
            return false;
        }
        let other = &self.directions[1 - from];
        let syn = other.numbering.syn_range();
        let acked = packet.ack.and_then(|ack| other.offset(ack));
        acked.is_none_or(|acked| acked < syn.end || acked > other.flight.max + ack::UNSEEN)
    }

    /// Processes a packet with payload. `sent` is the end of the data sent before it.
    fn take_data(&mut self, packet: &Packet, from: usize, sent: u64) {
        let direction = &self.directions[from];
        let Some(start) = direction.offset(packet.seq) else { return };
        let is_new = direction.flight.max > sent;
        if is_new {
            self.answers.sent(self.now, from);
        }
        let ip = if packet.src.is_ipv4() { 20 } else { 40 };
        self.long_segments[from].sent(start, packet.len, is_new, packet.number, ip + 20);
    }

    fn take_handshake(&mut self, packet: &Packet, from: usize) {
        if self.progress.take(packet, from, self.syns[1].is_some()) == Step::AfterAll {
            self.close = Close::Open;
        }
        if !packet.flags.contains(Flags::SYN) {
            let answered = self.syns[1].filter(|syn| self.opening[1].as_time().is_none() && syn.times == 1);
            if let (0, Some(syn), Some(_)) = (from, answered, packet.ack) {
                self.opening[1] = CompactOption::time(self.now - syn.at);
                self.reply_delays[0].add(self.now - syn.at);
            }
            return;
        }
        let options = &packet.options;
        let times = self.syns[from].map_or(0, |syn| syn.times).saturating_add(1);
        self.syns[from] = Some(Syn {
            at: self.now,
            times,
            scale: options.window_scale,
            sack: options.sack_permitted,
            timestamps: options.timestamps.is_some(),
            cut: packet.options_cut,
        });
        if let (1, 1, Some(syn)) = (from, times, self.syns[0])
            && syn.times == 1
            && packet.ack.is_some()
        {
            self.opening[0] = CompactOption::time(self.now - syn.at);
            self.reply_delays[1].add(self.now - syn.at);
        }
        let scaled = Syn::agreed(self.syns, |syn| syn.scale.is_some());
        if let (Some(_), [Some(first), Some(second)]) = (scaled, self.syns) {
            let scales = match (first.scale, second.scale) {
                (Some(first), Some(second)) => [first, second],
                // RFC 7323 §2.2: window scaling is in effect only if both ends send the option.
                _ => [0; 2],
            };
            // The data of one end is limited by the window of the other end.
            self.directions[0].window.scale = Scale::Shift(scales[1]);
            self.directions[1].window.scale = Scale::Shift(scales[0]);
        }
    }

    fn take_reply_delays(&mut self, packet: &Packet, from: usize) {
        self.timestamps |= packet.options.timestamps.is_some();
        self.sacks |= !packet.options.sack.is_empty();
        self.ecn |= packet.ecn != airwire::segment::Ecn::NotEct;
        self.reply_delays[from].take_reply(self.now, packet);
        self.reply_delays[1 - from].take_request(self.now, packet);
        if let Some(least) = self.directions[1 - from].rtt.min() {
            self.reply_delays[from].add(least);
        }
    }

    fn take_close(&mut self, packet: &Packet, from: usize) {
        if self.is_over() {
            return;
        }
        if packet.flags.contains(Flags::RST) {
            if self.may_reset(packet.seq, from) {
                self.close = Close::Reset { by: from };
            }
        } else if self.directions.iter().all(|direction| direction.numbering.fin_acked) {
            self.close = Close::Closed;
        }
    }

    /// Returns whether the RST is valid. RFC 5961 §3.2: an RST outside the receive window must be discarded.
    /// A tolerance allows for packets that the capture has missed.
    fn may_reset(&self, seq: Seq, from: usize) -> bool {
        let direction = &self.directions[from];
        let Some(offset) = direction.offset(seq) else { return true };
        let edge = direction.window.edge().unwrap_or(0).max(direction.flight.max + send::AROUND);
        !direction.numbering.syn_seen || (direction.una().saturating_sub(1)..=edge).contains(&offset)
    }

    fn handshake(&self) -> Handshake {
        let seconds = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e9);
        let seen = match self.syns {
            [Some(_), Some(_)] => HandshakeSeen::Whole,
            [None, None] => HandshakeSeen::None,
            _ => HandshakeSeen::Part,
        };
        let [to, back] = self.opening.map(CompactOption::as_time);
        let whole = to.zip(back).map(|(to, back)| to + back);
        let syn = |end: usize| {
            let syn = self.syns[end]?;
            Some(SynFindings {
                times: u64::from(syn.times),
                mss: self.directions[end].numbering.syn_mss,
                window_scale: syn.scale,
                sack_permitted: syn.sack,
                timestamps: syn.timestamps,
                options_cut: syn.cut,
            })
        };
        Handshake {
            seen,
            outcome: self
                .progress
                .findings(self.syns.map(|syn| syn.is_some()), self.rare.get().map(|rare| &rare.icmp)),
            resets: u64::from(self.progress.resets),
            syns: [syn(0), syn(1)],
            syn_to_syn_ack_seconds: seconds(to),
            syn_ack_to_ack_seconds: seconds(back),
            rtt_seconds: seconds(whole),
        }
    }
}
